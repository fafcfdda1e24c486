//! What begins here is no statement: comments as the SQL client knows them. PURE.

/// A comment of one line begins here.
pub(crate) fn is_dashes(rest: &[u8]) -> bool {
    rest.starts_with(b"--") && rest.get(2).is_none_or(|b| *b <= b' ')
}

/// What MariaDB's client takes as the end of its own commands.
pub(crate) fn is_mark(rest: &[u8]) -> bool {
    let Some(rest) = rest.strip_prefix(b"/*M!") else {
        return false;
    };
    let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
    rest.get(digits) == Some(&b'\\')
}

/// A comment that no server executes begins here.
pub(crate) fn is_plain_comment(rest: &[u8]) -> bool {
    rest.starts_with(b"/*")
        && !rest.starts_with(b"/*!")
        && !rest.starts_with(b"/*M!")
        && !rest.starts_with(b"/*+")
}
