//! Keeps secrets out of everything that leaves the program.

use std::io::{BufRead, BufReader, Read, Write};
use std::sync::{Arc, OnceLock};

pub use crds::secret::Scrub;

/// Bytes of a line that are looked at: longer than any secret in any form, beside what is shown.
const LINE: usize = 64 * 1024;
/// Characters of a line that are shown.
const SHOWN: usize = 8 * 1024;

/// Calls `each` with every line that another program says, without secrets and without rows; what a
/// line has beyond its first 8 KiB is left out, after secrets are.
pub fn each_line(said: impl Read, scrub: &Scrub, mut each: impl FnMut(String)) {
    let mut reader = BufReader::new(said);
    let mut line = vec![];
    loop {
        line.clear();
        match reader
            .by_ref()
            .take(LINE as u64)
            .read_until(b'\n', &mut line)
        {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let cut = line.len() == LINE && !line.ends_with(b"\n");
        if cut && skip_line(&mut reader).is_err() {
            return;
        }
        let text = without_rows(&scrub.clean(String::from_utf8_lossy(&line).trim()));
        if !text.is_empty() {
            each(crds::report::clean(&text, SHOWN));
        }
    }
}

fn skip_line(reader: &mut impl BufRead) -> std::io::Result<()> {
    loop {
        let data = reader.fill_buf()?;
        let end = data.iter().position(|b| *b == b'\n');
        let (used, done) = (
            end.map_or(data.len(), |i| i + 1),
            end.is_some() || data.is_empty(),
        );
        reader.consume(used);
        if done {
            return Ok(());
        }
    }
}

/// The log's last gate: no line of it leaves with a secret, whoever wrote it.
#[derive(Clone, Debug, Default)]
pub struct Gate {
    scrub: Arc<OnceLock<Scrub>>,
}

impl Gate {
    /// From now on these secrets are kept back.
    pub fn close(&self, scrub: Scrub) {
        let _ = self.scrub.set(scrub);
    }

    /// A writer of whole lines to `sink`.
    pub fn over<W: Write>(&self, sink: W) -> Gated<W> {
        Gated {
            scrub: Arc::clone(&self.scrub),
            sink,
        }
    }
}

/// Writes lines without secrets.
#[derive(Debug)]
pub struct Gated<W> {
    scrub: Arc<OnceLock<Scrub>>,
    sink: W,
}

impl<W: Write> Write for Gated<W> {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        match self.scrub.get() {
            None => self.sink.write_all(line)?,
            Some(scrub) => {
                let text = String::from_utf8_lossy(line);
                // A JSON document stays one: its strings are cleaned, not its signs.
                let clean = match serde_json::from_str(text.trim_end()) {
                    Ok(value) => clean_json(scrub, value).to_string() + "\n",
                    Err(_) => scrub.clean(&text),
                };
                self.sink.write_all(clean.as_bytes())?;
            }
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.sink.flush()
    }
}

fn clean_json(scrub: &Scrub, value: serde_json::Value) -> serde_json::Value {
    use serde_json::Value;
    match value {
        Value::String(text) => Value::String(scrub.clean(&text)),
        Value::Array(all) => all.into_iter().map(|v| clean_json(scrub, v)).collect(),
        Value::Object(all) => all
            .into_iter()
            .map(|(k, v)| (k, clean_json(scrub, v)))
            .collect(),
        other => other,
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
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
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

    /// Wherever a secret stands in a line, of whatever length: at the edge of what is read at once, of
    /// what is shown, and of what is looked at.
    #[test]
    fn s2_a_long_line_shows_no_part_of_a_secret() {
        let secret = "S3cr3t-marker-0123456789";
        let scrub = Scrub::new([secret.to_owned()]);
        for at in [
            0,
            8180,
            8190,
            8192,
            16380,
            LINE - 30,
            LINE - 20,
            LINE - 1,
            LINE,
            LINE + 5,
        ] {
            let line = format!("{}{secret} end\nnext\n", "x".repeat(at));
            let mut lines = vec![];
            each_line(line.as_bytes(), &scrub, |l| lines.push(l));
            assert_eq!(lines.len(), 2, "{at}");
            assert_eq!(lines[1], "next");
            for n in 6..secret.len() {
                assert!(!lines[0].contains(&secret[..n]), "{at}: {n}");
            }
            assert!(lines[0].chars().count() <= SHOWN);
        }
    }

    #[test]
    fn s2_no_line_of_the_log_leaves_with_a_secret() {
        let gate = Gate::default();
        let mut out = vec![];
        gate.over(&mut out)
            .write_all(b"{\"message\":\"before\"}\n")
            .unwrap();
        gate.close(Scrub::new(["p\"x,y".to_owned()]));
        gate.over(&mut out)
            .write_all(b"{\"message\":\"it is p\\\"x,y\",\"n\":1}\n")
            .unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "{\"message\":\"before\"}\n{\"message\":\"it is ***\",\"n\":1}\n"
        );
    }
}
