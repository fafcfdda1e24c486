//! `$NAME` and `${NAME}` as Go's `os.Expand` reads them, which is what gobackup does with its file.

use std::collections::BTreeSet;

/// What was met on the way.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Variables that have no value.
    pub(crate) unset: BTreeSet<String>,
    /// Shell's own variables, such as `$$` and `$1`: empty to gobackup, hardly what was meant.
    pub(crate) special: bool,
}

/// The text with variables replaced; one without a value is empty.
pub(crate) fn expand(
    text: &str,
    value: &dyn Fn(&str) -> Option<String>,
    seen: &mut Seen,
) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let (name, after) = name(rest);
        match name {
            Some("") => {}
            Some(name) => {
                let special = name.len() == 1 && !name.starts_with(is_word);
                let special = special || name.starts_with(|c: char| c.is_ascii_digit());
                match value(name) {
                    Some(value) => out.push_str(&value),
                    None if special => seen.special = true,
                    None => {
                        seen.unset.insert(name.to_owned());
                    }
                }
            }
            None => out.push('$'),
        }
        rest = after;
    }
    out + rest
}

fn is_word(c: char) -> bool {
    c == '_' || c.is_ascii_alphanumeric()
}

/// The name behind a `$` and what follows it: none for a bare `$`, an empty one for bad syntax,
/// which is dropped.
fn name(text: &str) -> (Option<&str>, &str) {
    if let Some(inner) = text.strip_prefix('{') {
        return match inner.find('}') {
            Some(end) if inner[..end].chars().all(is_word) || end == 1 => {
                (Some(&inner[..end]), &inner[end + 1..])
            }
            Some(end) => (Some(""), &inner[end + 1..]),
            None => (Some(""), inner),
        };
    }
    let first = text.chars().next();
    if first.is_some_and(|c| "*#$@!?-0123456789".contains(c)) {
        return (Some(&text[..1]), &text[1..]);
    }
    let end = text.find(|c| !is_word(c)).unwrap_or(text.len());
    if end == 0 {
        return (None, text);
    }
    (Some(&text[..end]), &text[end..])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Forms and results of Go's own tests of os.Expand (os/env_test.go).
    #[test]
    fn as_go_does() {
        let value = |name: &str| match name {
            "HOME" => Some("/usr/gopher".to_owned()),
            "H" => Some("(Value of H)".to_owned()),
            "home_1" => Some("/usr/foo".to_owned()),
            "_" => Some("underscore".to_owned()),
            "*" => Some("all the args".to_owned()),
            "1" => Some("ARGUMENT1".to_owned()),
            _ => None,
        };
        for (text, expected) in [
            ("", ""),
            ("$*", "all the args"),
            ("${*}", "all the args"),
            ("$1", "ARGUMENT1"),
            ("now is the time", "now is the time"),
            ("$HOME", "/usr/gopher"),
            ("$home_1", "/usr/foo"),
            ("${HOME}", "/usr/gopher"),
            ("${H}OME", "(Value of H)OME"),
            ("A$$$#$1$H$home_1*B", "AARGUMENT1(Value of H)/usr/foo*B"),
            ("start$+middle$^end$", "start$+middle$^end$"),
            ("mixed$|bag$", "mixed$|bag$"),
            ("${}", ""),
            ("$(cmd)", "$(cmd)"),
            ("a$", "a$"),
        ] {
            assert_eq!(
                expand(text, &value, &mut Seen::default()),
                expected,
                "{text}"
            );
        }
        let mut seen = Seen::default();
        expand("$A ${B} $A $$", &value, &mut seen);
        assert_eq!(seen.unset.into_iter().collect::<Vec<_>>(), ["A", "B"]);
        assert!(seen.special);
    }
}
