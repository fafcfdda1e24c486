//! Objects for machines.

use serde_json::{Value, json};

use crate::cli::{Format, StructuredOutput};
use crate::error::{Error, Result};

/// A value in the format asked for; a List has a line an item in a table.
///
/// # Errors
/// A template that does not fit the value.
pub(crate) fn formatted(value: &Value, format: &Format, no_headers: bool) -> Result<String> {
    let mistake = |why: String| Error::usage(format!("-o: {why}"));
    match format {
        Format::Json => Ok(structured(value, StructuredOutput::Json)),
        Format::Yaml => Ok(structured(value, StructuredOutput::Yaml)),
        Format::JsonPath(template) => template.print(value).map_err(mistake),
        Format::Columns(columns) => {
            let items: Vec<&Value> = match value["items"].as_array() {
                Some(items) if value["kind"] == "List" => items.iter().collect(),
                _ => vec![value],
            };
            columns.print(&items, no_headers).map_err(mistake)
        }
    }
}

/// One value as JSON or YAML, with a line break at its end.
pub(crate) fn structured(value: &Value, format: StructuredOutput) -> String {
    match format {
        StructuredOutput::Json => json_text(value),
        StructuredOutput::Yaml => yaml(value),
    }
}

/// JSON in which what a terminal would not show as it is stands as `\u202e`: the same text to whoever
/// reads JSON.
fn json_text(value: &Value) -> String {
    let mut text = String::new();
    for c in format!("{value:#}\n").chars() {
        if c != '\n' && crds::text::is_unseen(c) {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                text.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            text.push(c);
        }
    }
    text
}

/// Marks the end of text that must be quoted, until the emitter has decided how to write it.
const QUOTED: &str = "-QUOTED-FOR-YAML-1-1";

/// YAML whose text is text for readers of YAML 1.1 too: kubectl reads a bare `yes` as a boolean,
/// the emitter writes for YAML 1.2.
fn yaml(value: &Value) -> String {
    let text = serde_yaml::to_string(&marked(value)).unwrap_or_default();
    let mut parts = text.split(QUOTED).peekable();
    let mut out = String::new();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            out.push_str(part);
        } else {
            let start = part.rfind(|c: char| !is_word(c)).map_or(0, |at| at + 1);
            out.push_str(&format!("{}'{}'", &part[..start], &part[start..]));
        }
    }
    out
}

fn marked(value: &Value) -> Value {
    let mark = |text: &str| {
        if is_ambiguous(text) {
            format!("{text}{QUOTED}")
        } else {
            text.to_owned()
        }
    };
    match value {
        Value::String(text) => mark(text).into(),
        Value::Array(items) => items.iter().map(marked).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| (mark(key), marked(value)))
            .collect(),
        other => other.clone(),
    }
}

/// Text that YAML 1.1 takes for a boolean, a number or a time when it is not quoted.
fn is_ambiguous(text: &str) -> bool {
    let word = matches!(
        text.to_ascii_lowercase().as_str(),
        "y" | "yes" | "n" | "no" | "on" | "off" | "=" | "<<" | ".inf" | ".nan"
    );
    let number = text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.'))
        && text.chars().any(|c| c.is_ascii_digit())
        && text.chars().all(|c| {
            c.is_ascii_hexdigit()
                || matches!(c, '+' | '-' | '.' | '_' | ':' | 'x' | 'o' | 'T' | 'Z')
        })
        && !text.ends_with(':');
    word || number
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.' | '_' | ':' | '=' | '<')
}

/// A List of v1: always that, for none and for one item too.
pub(crate) fn list(items: Vec<Value>) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "List",
        "items": items,
        "metadata": { "resourceVersion": "" },
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use super::*;

    /// What YAML 1.1, which kubectl reads, takes for something else than text when bare.
    #[test]
    fn text_stays_text_for_a_yaml_1_1_reader() {
        for word in [
            "3306",
            "0123",
            "yes",
            "no",
            "on",
            "off",
            "y",
            "n",
            "Y",
            "N",
            "True",
            "1e3",
            "~",
            "null",
            "0x1F",
            "1_000",
            ".5",
            "1:30",
            "2026-01-01",
            "=",
            "",
            " x",
            "# x",
            "a: b",
            "- a",
            "*a",
            "&a",
            "!a",
            "%a",
            "@a",
            "`a",
            "{a",
            "[a",
            "Infinity",
            ".inf",
            "0o17",
        ] {
            let text = structured(&json!({ "value": word }), StructuredOutput::Yaml);
            let rest = text.strip_prefix("value: ").unwrap().trim_end();
            let quoted = rest.starts_with('\'') || rest.starts_with('"');
            assert!(quoted || word == "Infinity", "{word} became {text}");
            let back: Value = serde_yaml::from_str(&text).unwrap();
            assert_eq!(back["value"], json!(word));
            let key = structured(&json!({ word: [word, 1, true] }), StructuredOutput::Yaml);
            let back: Value = serde_yaml::from_str(&key).unwrap();
            assert_eq!(back, json!({ word: [word, 1, true] }), "{key}");
        }
        let nested = json!({ "a": [{ "no": { "x": "0123", "y": "plain" } }] });
        let text = structured(&nested, StructuredOutput::Yaml);
        assert_eq!(text, "a:\n- 'no':\n    x: '0123'\n    'y': plain\n");
    }

    #[test]
    fn o11_json_says_the_same_without_unseen_characters() {
        let value =
            json!({ "a\u{202e}": ["x\u{200b}y", "\u{1b}[31m", "tag\u{e0041}", "ok \u{f6}"] });
        let text = structured(&value, StructuredOutput::Json);
        assert!(
            !text.chars().any(|c| c != '\n' && crds::text::is_unseen(c)),
            "{text}"
        );
        assert!(
            text.contains("\\u202e") && text.contains('\u{f6}'),
            "{text}"
        );
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }

    #[test]
    fn a_list_is_a_list() {
        assert_eq!(list(vec![])["items"], json!([]));
        assert_eq!(list(vec![json!({})])["kind"], "List");
    }
}
