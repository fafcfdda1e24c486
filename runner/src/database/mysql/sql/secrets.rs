//! Passwords in a statement.

use crds::secret::MASK;

use super::tokens::{Kind, Modes, Token, tokens};

/// Numbers in `sql_mode`: ANSI_QUOTES, NO_BACKSLASH_ESCAPES.
const ANSI_QUOTES: u64 = 1 << 2;
const NO_BACKSLASH_ESCAPES: u64 = 1 << 20;

/// A statement without the texts that may be passwords or their hashes, as the session's `sql_mode` reads it: each behind a word
/// that speaks of one, but for those of an account's name and for the name of a plugin. One text too many is masked rather than
/// one too few.
pub(crate) fn masked(text: &[u8], sql_mode: u64) -> Vec<u8> {
    let modes = Modes {
        ansi: sql_mode & ANSI_QUOTES != 0,
        plain: sql_mode & NO_BACKSLASH_ESCAPES != 0,
    };
    let all = tokens(text, modes);
    let mut shown = Vec::with_capacity(text.len());
    let (mut done, mut speaks) = (0, false);
    for (at, token) in all.iter().enumerate() {
        if speaks && is_value(text, &all, at) {
            shown.extend_from_slice(&text[done..token.at.start]);
            shown.push(b'\'');
            shown.extend_from_slice(MASK.as_bytes());
            shown.push(b'\'');
            done = token.at.end;
        }
        speaks |= names_a_secret(text, token);
    }
    shown.extend_from_slice(&text[done..]);
    shown
}

/// True for the words of a statement behind which a password may come, among them names of columns.
fn names_a_secret(text: &[u8], token: &Token) -> bool {
    let Some(name) = token.name(text) else {
        return false;
    };
    let name = name.to_ascii_uppercase();
    ["IDENTIFIED", "PASSWORD", "PASSWD", "SECRET", "TOKEN"]
        .iter()
        .any(|word| name.ends_with(word))
}

fn is_value(text: &[u8], all: &[Token], at: usize) -> bool {
    let token = &all[at];
    let hexadecimal = || {
        let word = text.get(token.at.clone()).unwrap_or_default();
        word.len() > 2 && word[..2].eq_ignore_ascii_case(b"0x")
    };
    match token.kind {
        Kind::Text => {
            let before = at.checked_sub(1).map(|at| &all[at]);
            // `'user'@'host'`: the second is one token with its sign.
            let of_account = all
                .get(at + 1)
                .is_some_and(|t| t.kind == Kind::Variable && t.at.start == token.at.end);
            let plugin = before.is_some_and(|t| t.is(text, "WITH") || t.is(text, "VIA"));
            !of_account && !plugin
        }
        Kind::Word => hexadecimal(),
        Kind::Quoted | Kind::Variable | Kind::Sign(_) => false,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    /// As MariaDB 10.11 and MySQL 9 write them into their logs.
    #[test]
    fn s2_no_password_of_a_statement_is_shown() {
        for (text, shown) in [
            (
                "CREATE USER 'a'@'%' IDENTIFIED BY 'S3cr3t-marker' REQUIRE SSL",
                "CREATE USER 'a'@'%' IDENTIFIED BY '******' REQUIRE SSL",
            ),
            (
                "CREATE USER 'a'@'%' IDENTIFIED WITH 'caching_sha2_password' AS '$A$005$S3cr3t\\'marker\n;' PASSWORD EXPIRE DEFAULT",
                "CREATE USER 'a'@'%' IDENTIFIED WITH 'caching_sha2_password' AS '******' PASSWORD EXPIRE DEFAULT",
            ),
            (
                "ALTER USER a IDENTIFIED VIA ed25519 USING 'S3cr3t' OR unix_socket, 'b'@'h' IDENTIFIED BY \"S3cr3t\"",
                "ALTER USER a IDENTIFIED VIA ed25519 USING '******' OR unix_socket, 'b'@'h' IDENTIFIED BY '******'",
            ),
            (
                "alter user a identified with 'x' as 0x5333637233740D",
                "alter user a identified with 'x' as '******'",
            ),
            (
                "SET PASSWORD FOR 'u'@'h' = 'S3cr3t'",
                "SET PASSWORD FOR 'u'@'h' = '******'",
            ),
            (
                "SET PASSWORD = PASSWORD('it''s S3cr3t')",
                "SET PASSWORD = PASSWORD('******')",
            ),
            (
                "GRANT ALL ON *.* TO u IDENTIFIED BY PASSWORD '*S3CR3T'",
                "GRANT ALL ON *.* TO u IDENTIFIED BY PASSWORD '******'",
            ),
            (
                "CREATE SERVER s FOREIGN DATA WRAPPER mysql OPTIONS (USER 'r', PASSWORD 'S3cr3t', HOST 'h')",
                "CREATE SERVER s FOREIGN DATA WRAPPER mysql OPTIONS (USER 'r', PASSWORD '******', HOST '******')",
            ),
            (
                "/* it's */ CHANGE MASTER TO MASTER_PASSWORD='S3cr3t' -- it's\n, MASTER_USER=\"x\"",
                "/* it's */ CHANGE MASTER TO MASTER_PASSWORD='******' -- it's\n, MASTER_USER='******'",
            ),
            (
                "update u set `password` = 'S3cr3t' where n = 'x",
                "update u set `password` = '******' where n = '******'",
            ),
        ] {
            let found = String::from_utf8(masked(text.as_bytes(), 0)).unwrap();
            assert_eq!(found, shown);
        }
    }

    #[test]
    fn what_speaks_of_no_password_stays_and_modes_are_heard() {
        let text = "DROP TABLE `t` /* generated by server */; insert t values ('a', 0x00)";
        assert_eq!(masked(text.as_bytes(), 0), text.as_bytes());
        let text = "insert t values ('\\'); create user a identified by 'S3cr3t'";
        let found = String::from_utf8(masked(text.as_bytes(), NO_BACKSLASH_ESCAPES)).unwrap();
        assert!(found.ends_with("identified by '******'"), "{found}");
        let text = "create user \"S\" identified by 'S3cr3t' comment \"n\"";
        let found = String::from_utf8(masked(text.as_bytes(), ANSI_QUOTES)).unwrap();
        assert_eq!(
            found,
            "create user \"S\" identified by '******' comment \"n\""
        );
    }
}
