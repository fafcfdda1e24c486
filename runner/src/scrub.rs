//! Keeps secrets out of everything that leaves the program.

/// Shorter values are not searched for: they would match ordinary words.
const SHORTEST: usize = 4;

/// Replaces each known secret by `***`.
#[derive(Clone, Default)]
pub struct Scrub {
    secrets: Vec<String>,
}

impl std::fmt::Debug for Scrub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Scrub({} secrets)", self.secrets.len())
    }
}

impl Scrub {
    /// A scrubber of these secrets; those of fewer than four bytes are left out.
    pub fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        let mut secrets: Vec<String> = secrets
            .into_iter()
            .filter(|s| s.len() >= SHORTEST)
            .collect();
        // The longest first, so that a secret that contains another vanishes whole.
        secrets.sort_by_key(|s| std::cmp::Reverse(s.len()));
        secrets.dedup();
        Self { secrets }
    }

    /// `text` without secrets.
    pub fn clean(&self, text: &str) -> String {
        self.secrets
            .iter()
            .fold(text.to_owned(), |text, secret| text.replace(secret, "***"))
    }
}

/// Where database clients quote what is in a row: what stands before it, and what after it. A quote
/// without an end goes on to the end of the line.
const QUOTES: [(&str, &str); 6] = [
    // MySQL and MariaDB: syntax errors, duplicates, values that do not fit.
    (" near '", "' at line "),
    ("Duplicate entry '", "' for key"),
    (" value: '", "' for column"),
    // PostgreSQL: constraints, syntax errors.
    (")=(", ") "),
    ("Failing row contains (", ")."),
    (" at or near \"", "\""),
];

/// A line of a database client without the rows it quotes: who may read a status need not be one
/// who may read the data.
pub fn without_rows(line: &str) -> String {
    // PostgreSQL's client ends these with what it quotes.
    let quote = if line.starts_with("LINE ") {
        Some(": ")
    } else if line.contains("CONTEXT:  COPY ") || line.contains("invalid input ") {
        Some(": \"")
    } else {
        None
    };
    if let Some((said, _)) = quote.and_then(|quote| line.split_once(quote)) {
        return format!("{said}: …");
    }
    let mut text = line.to_owned();
    for (open, close) in QUOTES {
        let Some(from) = text.find(open).map(|i| i + open.len()) else {
            continue;
        };
        let to = text[from..].rfind(close).map_or(text.len(), |i| from + i);
        text.replace_range(from..to, "…");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages as MariaDB 10.11, MySQL 9 and PostgreSQL 15 give them.
    #[test]
    fn rows_are_not_quoted() {
        for (said, shown) in [
            (
                "ERROR 1064 (42000) at line 7: You have an error in your SQL syntax; check the manual for the right syntax to use near 'S3cr3t','it's')' at line 1",
                "ERROR 1064 (42000) at line 7: You have an error in your SQL syntax; check the manual for the right syntax to use near '…' at line 1",
            ),
            (
                "ERROR 1062 (23000) at line 3: Duplicate entry 'a@b.example' for key 'users.email'",
                "ERROR 1062 (23000) at line 3: Duplicate entry '…' for key 'users.email'",
            ),
            (
                "ERROR 1366 (22007) at line 3: Incorrect integer value: 'S3cr3t' for column `a`.`t`.`n` at row 1",
                "ERROR 1366 (22007) at line 3: Incorrect integer value: '…' for column `a`.`t`.`n` at row 1",
            ),
            (
                "DETAIL:  Key (email)=(a@b.example) already exists.",
                "DETAIL:  Key (email)=(…) already exists.",
            ),
            (
                "DETAIL:  Failing row contains (1, S3cr3t, (x)).",
                "DETAIL:  Failing row contains (…).",
            ),
            (
                "psql:/d.sql:9: ERROR:  syntax error at or near \"S3cr3t\"",
                "psql:/d.sql:9: ERROR:  syntax error at or near \"…\"",
            ),
            ("LINE 1: INSERT INTO t VALUES ('S3cr3t');", "LINE 1: …"),
            (
                "CONTEXT:  COPY t, line 3, column n: \"S3cr3t\"",
                "CONTEXT:  COPY t, line 3, column n: …",
            ),
            (
                "psql:/d.sql:9: ERROR:  invalid input syntax for type integer: \"S3cr3t\"",
                "psql:/d.sql:9: ERROR:  invalid input syntax for type integer: …",
            ),
        ] {
            assert_eq!(without_rows(said), shown);
        }
    }

    #[test]
    fn what_quotes_no_row_stays() {
        for said in [
            "mysqldump: Got error: 1045: \"Access denied for user 'u'@'h' (using password: YES)\" when trying to connect",
            "psql: error: connection to server at \"db\" (10.0.0.1), port 5432 failed: FATAL:  password authentication failed for user \"u\"",
            "ERROR:  role \"owner\" does not exist",
            "Error: GOAWAY; ONLINE 3: no",
        ] {
            assert_eq!(without_rows(said), said);
        }
    }

    #[test]
    fn secrets_vanish_the_longest_first() {
        let scrub = Scrub::new(["S3cr3t".into(), "S3cr3t-marker".into(), "ab".into()]);
        assert_eq!(scrub.clean("x S3cr3t-marker y S3cr3t ab"), "x *** y *** ab");
    }

    #[test]
    fn debug_shows_no_secret() {
        assert_eq!(
            format!("{:?}", Scrub::new(["S3cr3t-marker".into()])),
            "Scrub(1 secrets)"
        );
    }
}
