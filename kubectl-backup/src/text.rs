//! Text of others, made fit for one line of a terminal.

use crds::text::is_unseen;

/// One line without unseen characters ([`crds::text`]): cut at the first line break, as kubectl
/// does, and escape codes made visible.
pub(crate) fn sanitise(text: &str) -> String {
    let (line, cut) = match text.find(['\n', '\r', '\u{c}']) {
        Some(at) => (&text[..at], true),
        None => (text, false),
    };
    let mut safe: String = line
        .chars()
        .map(|c| match c {
            '\u{1b}' => "^[".to_owned(),
            '\t' => " ".to_owned(),
            c if is_unseen(c) => char::REPLACEMENT_CHARACTER.to_string(),
            c => c.to_string(),
        })
        .collect();
    if cut {
        safe.push_str("...");
    }
    safe
}

/// A count with its noun: `1 run`, `2 runs`.
pub(crate) fn counted(count: impl std::fmt::Display, noun: &str) -> String {
    let count = count.to_string();
    let plural = if count == "1" { "" } else { "s" };
    format!("{count} {noun}{plural}")
}
