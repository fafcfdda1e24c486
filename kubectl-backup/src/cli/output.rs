//! Output formats: words, and kubectl's templates.

use std::ffi::OsStr;
use std::marker::PhantomData;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, Error, ValueEnum};

use crate::template::columns::Columns;
use crate::template::jsonpath::Template;

/// How objects are printed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Format {
    /// As JSON.
    Json,
    /// As YAML.
    Yaml,
    /// By kubectl's JSONPath template.
    JsonPath(Template),
    /// As a table of columns one names.
    Columns(Columns),
}

/// Formats for machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StructuredOutput {
    /// As JSON.
    Json,
    /// As YAML.
    Yaml,
}

/// Output formats of `list` and `runs`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Output {
    /// A table of about 100 columns.
    #[default]
    Table,
    /// A table with everything.
    Wide,
    /// One kind.group/name a line.
    Name,
    /// A List, or the object if one is named.
    Print(Format),
}

/// How a changed object is printed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ChangeOutput {
    /// As kind.group/name.
    Name,
    /// As it is.
    Print(Format),
}

/// Formats of one set of verbs: words of their own, and [`Format`].
pub(crate) trait Formats: Clone + Send + Sync + 'static {
    /// Words beside [`Format`]'s, with what they mean.
    const WORDS: &'static [(&'static str, &'static str)];
    /// The format a word of these means.
    fn word(word: &str) -> Option<Self>;
    /// The set's form of a format.
    fn print(format: Format) -> Self;
}

impl Formats for Output {
    const WORDS: &'static [(&'static str, &'static str)] = &[
        ("table", "A table of about 100 columns"),
        ("wide", "A table with everything"),
        ("name", "One kind.group/name a line"),
    ];

    fn word(word: &str) -> Option<Self> {
        match word {
            "table" => Some(Self::Table),
            "wide" => Some(Self::Wide),
            "name" => Some(Self::Name),
            _ => None,
        }
    }

    fn print(format: Format) -> Self {
        Self::Print(format)
    }
}

impl Formats for ChangeOutput {
    const WORDS: &'static [(&'static str, &'static str)] = &[("name", "As kind.group/name")];

    fn word(word: &str) -> Option<Self> {
        (word == "name").then_some(Self::Name)
    }

    fn print(format: Format) -> Self {
        Self::Print(format)
    }
}

/// Formats every set has.
const FORMATS: [(&str, &str); 4] = [
    ("json", "As JSON: a List, or the object if one is named"),
    ("yaml", "As json, as YAML"),
    (
        "jsonpath=",
        "By kubectl's template, such as jsonpath='{.items[*].metadata.name}'",
    ),
    (
        "custom-columns=",
        "A table, such as custom-columns=NAME:.metadata.name,NEXT:.status.nextScheduleTime",
    ),
];

/// Reads `-o`.
#[derive(Clone, Debug)]
pub(crate) struct FormatParser<T>(PhantomData<T>);

impl<T> FormatParser<T> {
    /// A reader of the formats of `T`.
    pub(crate) fn new() -> Self {
        Self(PhantomData)
    }
}

impl<T: Formats> TypedValueParser for FormatParser<T> {
    type Value = T;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<T, Error> {
        let text = value.to_string_lossy();
        let refuse = |why: String| {
            let arg = arg.map(ToString::to_string).unwrap_or_default();
            Error::raw(
                ErrorKind::ValueValidation,
                format!("invalid value '{text}' for '{arg}': {why}\n"),
            )
            .with_cmd(command)
        };
        match parse(&text) {
            Some(Ok(format)) => Ok(T::print(format)),
            Some(Err(why)) => Err(refuse(why)),
            None => T::word(&text).ok_or_else(|| {
                let mut error = Error::new(ErrorKind::InvalidValue).with_cmd(command);
                let words = T::WORDS.iter().chain(&FORMATS);
                let valid = words.map(|(word, _)| (*word).to_owned()).collect();
                let arg = arg.map(ToString::to_string).unwrap_or_default();
                for (kind, value) in [
                    (ContextKind::InvalidArg, ContextValue::String(arg)),
                    (
                        ContextKind::InvalidValue,
                        ContextValue::String(text.to_string()),
                    ),
                    (ContextKind::ValidValue, ContextValue::Strings(valid)),
                ] {
                    error.insert(kind, value);
                }
                error
            }),
        }
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let words = T::WORDS.iter().chain(&FORMATS);
        Some(Box::new(
            words.map(|(word, about)| PossibleValue::new(*word).help(*about)),
        ))
    }
}

fn parse(text: &str) -> Option<Result<Format, String>> {
    let (name, template) = text.split_once('=').unwrap_or((text, ""));
    match name {
        "json" | "yaml" if text.contains('=') => None,
        "json" => Some(Ok(Format::Json)),
        "yaml" => Some(Ok(Format::Yaml)),
        "jsonpath" | "custom-columns" if template.is_empty() => {
            Some(Err(format!("{name} needs a template: {name}=…")))
        }
        "jsonpath" => Some(Template::parse(template).map(Format::JsonPath)),
        "custom-columns" => Some(Columns::parse(template).map(Format::Columns)),
        _ => None,
    }
}

impl From<StructuredOutput> for Format {
    fn from(output: StructuredOutput) -> Self {
        match output {
            StructuredOutput::Json => Self::Json,
            StructuredOutput::Yaml => Self::Yaml,
        }
    }
}
