//! Splitting of an argument line, and the small checks that several modules share.

use crate::parts::SecretKeyRef;
use crate::storage::SecretKeySelector;
use crate::validate::Problem;

use crate::plan::Credential;

/// One mistake at a path.
pub(super) fn problem(path: impl Into<String>, message: impl Into<String>) -> Problem {
    Problem {
        path: path.into(),
        message: message.into(),
    }
}

/// Trimmed text, `None` if nothing is left: the original's samples set fields to "".
pub(super) fn text(value: Option<&str>) -> Option<String> {
    let value = value?.trim();
    (!value.is_empty()).then(|| value.to_owned())
}

/// A name that gobackup gave, in lower case as gobackup reads its keys; a path of its own is a mistake.
pub(super) fn gobackup_name(
    path: &str,
    name: Option<&str>,
    found: &mut Vec<Problem>,
) -> Option<String> {
    let name = text(name)?.to_lowercase();
    let bad = |c: char| c == '/' || c == '\\' || c.is_control();
    if name.len() > LONGEST || name.contains(bad) || matches!(name.as_str(), "." | "..") {
        found.push(problem(
            path,
            format!("must be one name of at most {LONGEST} bytes, without / and \\"),
        ));
    }
    Some(name)
}

/// Longest name of a file that every file system takes, less what stands around it.
const LONGEST: usize = 120;

/// The reference if there is one, else the literal (the original's winner was random).
pub(super) fn credential(
    reference: Option<&SecretKeySelector>,
    literal: Option<&str>,
) -> Option<Credential> {
    if let Some(r) = reference.filter(|r| !r.name.is_empty() && !r.key.is_empty()) {
        return Some(Credential::Secret {
            name: r.name.clone(),
            key: r.key.clone(),
            optional: r.optional.unwrap_or(false),
        });
    }
    literal
        .filter(|l| !l.is_empty())
        .map(|l| Credential::Literal(l.to_owned()))
}

/// A reference of our own style.
pub(super) fn secret_key(reference: &SecretKeyRef) -> Credential {
    Credential::Secret {
        name: reference.name.clone(),
        key: reference.key.clone(),
        optional: false,
    }
}

/// A sentence about a Database, said of the PostgreSQL it was made from.
pub(super) fn as_postgresql(text: &str, name: &str) -> String {
    let pairs = [
        ("spec.config.args", "spec.additionalOptions"),
        ("spec.config.", "spec."),
        (
            "or set all_databases: true",
            "or write a Database of type postgresql with all_databases: true",
        ),
        (
            "; use password_ref",
            "; write a Database of type postgresql with password_ref",
        ),
    ];
    reworded(text, &format!("Database {name}:"), "PostgreSQL", &pairs)
}

/// A sentence about a Storage, said of the S3 it was made from.
pub(super) fn as_s3(text: &str, name: &str) -> String {
    let pairs = [
        ("spec.config.account_id", "spec.endpoint"),
        ("spec.config.secret_access_key ", "spec.secretAccessKey "),
        ("spec.config.", "spec."),
        ("spec.config", "spec"),
        (
            "access_key_id and secret_access_key;",
            "accessKeyID and secretAccessKey;",
        ),
        (
            "; use secret_access_key_ref",
            "; write a Storage of type s3 with secret_access_key_ref",
        ),
    ];
    reworded(text, &format!("Storage {name}:"), "S3", &pairs)
}

/// `whose` is the object that sentences begin with, `kind` what it is called instead.
fn reworded(text: &str, whose: &str, kind: &str, pairs: &[(&str, &str)]) -> String {
    let name = whose.split_once(' ').map_or("", |(_, name)| name);
    let text = match text.strip_prefix(whose) {
        Some(rest) => format!("{kind} {name}{rest}"),
        None => text.to_owned(),
    };
    pairs
        .iter()
        .fold(text, |text, (old, new)| text.replace(old, new))
}

/// Splits as a shell would, without any expansion: blanks separate, quotes and `\` protect.
///
/// # Errors
/// A quote that is never closed.
pub(super) fn split(line: &str) -> Result<Vec<String>, String> {
    let mut words = vec![];
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (Some('"') | None, '\\') => {
                let escaped = chars.next().ok_or("ends in a backslash")?;
                word.get_or_insert_default().push(escaped);
            }
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    if let Some(quote) = quote {
        return Err(format!("has a {quote} that is never closed"));
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_as_a_shell_splits_them() {
        let rows: &[(&str, &[&str])] = &[
            ("", &[]),
            ("  --no-owner  --no-acl ", &["--no-owner", "--no-acl"]),
            ("--where='a = 1' -x", &["--where=a = 1", "-x"]),
            (r#""a b" '' c\ d"#, &["a b", "", "c d"]),
            (r#""a\"b" 'a\b'"#, &["a\"b", r"a\b"]),
            ("$HOME $(id)", &["$HOME", "$(id)"]),
        ];
        for (line, expected) in rows {
            assert_eq!(split(line).unwrap(), *expected, "{line}");
        }
        assert!(split("'open").is_err());
        assert!(split("end\\").is_err());
    }
}
