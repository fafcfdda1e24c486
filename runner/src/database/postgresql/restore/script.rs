//! The text of a plain dump of PostgreSQL, read as psql reads it: quotes, dollar quotes, comments,
//! rows of COPY, commands of psql's own. A restore is one transaction, so what would end it is left
//! out where pg_dump writes it (BEGIN and COMMIT round large objects), and refused where it means
//! something. What a dump says of its own database is said of the one it is restored into.

/// So many bytes ahead tell what comes.
const AHEAD: usize = 80;
/// So much of a statement tells what it is.
const HEAD: usize = 4096;
/// So much of its end tells that rows follow.
const END: usize = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// Between statements.
    Between,
    /// In a line of psql's own.
    Command,
    /// In a statement.
    Statement,
    /// In the rows of a COPY.
    Rows,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Lex {
    Code,
    /// In a string; true if a backslash escapes.
    Text(bool),
    /// In a name.
    Name,
    /// In a dollar quote that ends so.
    Dollar(Vec<u8>),
    Line,
    /// So deep in comments.
    Block(u32),
}

/// What is done with a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// Not known yet.
    Open,
    Sent,
    LeftOut,
}

/// Reads a dump in chunks and gives what is to be sent for it.
pub(crate) struct Script {
    /// Name of the database in the dump.
    own: String,
    /// The dump named it itself.
    named: bool,
    /// Name of the database it goes into.
    to: String,
    input: Vec<u8>,
    at: At,
    lex: Lex,
    /// `standard_conforming_strings` is off.
    escapes: bool,
    /// The statement or line, until it is known what becomes of it.
    text: Vec<u8>,
    end: Vec<u8>,
    verdict: Verdict,
    copies: bool,
    /// First words of the statement, as psql counts them.
    words: Vec<String>,
    word: Vec<u8>,
    parentheses: u32,
    begins: u32,
    /// First bytes of a line of rows.
    row: Vec<u8>,
    refusals: Vec<String>,
    sets_sequences: bool,
}

impl Script {
    /// A reader of a dump of the database `own` that goes into `to`.
    pub(crate) fn new(own: &str, to: &str) -> Self {
        Self {
            own: own.to_owned(),
            named: false,
            to: to.to_owned(),
            input: vec![],
            at: At::Between,
            lex: Lex::Code,
            escapes: false,
            text: vec![],
            end: vec![],
            verdict: Verdict::Open,
            copies: false,
            words: vec![],
            word: vec![],
            parentheses: 0,
            begins: 0,
            row: vec![],
            refusals: vec![],
            sets_sequences: false,
        }
    }

    /// It sets values of sequences.
    pub(crate) fn sets_sequences(&self) -> bool {
        self.sets_sequences
    }

    /// What it holds that a restore in one transaction can't do.
    pub(crate) fn refusals(&self) -> &[String] {
        &self.refusals
    }

    /// Takes the next bytes and adds what is to be sent to `out`.
    pub(crate) fn feed(&mut self, chunk: &[u8], out: &mut Vec<u8>) {
        let mut input = std::mem::take(&mut self.input);
        input.extend_from_slice(chunk);
        let limit = input.len().saturating_sub(AHEAD);
        let read = self.read(&input, limit, out);
        input.drain(..read);
        self.input = input;
    }

    /// The end of the dump.
    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) {
        let input = std::mem::take(&mut self.input);
        self.read(&input, input.len(), out);
        match self.at {
            At::Statement => self.ends(&[], out),
            At::Command => self.command(out),
            At::Between | At::Rows => {}
        }
    }

    fn read(&mut self, input: &[u8], limit: usize, out: &mut Vec<u8>) -> usize {
        let mut at = 0;
        while at < limit {
            let rest = &input[at..];
            at += match self.at {
                At::Between => self.between(rest, out),
                At::Command => self.line(&input[at..limit], out),
                At::Statement => self.code(rest, out),
                At::Rows => self.rows(&input[at..limit], out),
            };
        }
        at.min(input.len())
    }

    fn between(&mut self, rest: &[u8], out: &mut Vec<u8>) -> usize {
        match (&self.lex, rest[0]) {
            (Lex::Code, b'\\') => {
                self.at = At::Command;
                0
            }
            (Lex::Code, byte) if byte.is_ascii_whitespace() => {
                out.push(byte);
                1
            }
            (Lex::Code, _) if rest.starts_with(b"--") => self.pass(rest, out),
            (Lex::Code, _) if rest.starts_with(b"/*") => self.pass(rest, out),
            (Lex::Line | Lex::Block(_), _) => self.pass(rest, out),
            _ => {
                self.at = At::Statement;
                self.lex = Lex::Code;
                self.verdict = Verdict::Open;
                self.words.clear();
                self.word.clear();
                self.end.clear();
                (self.parentheses, self.begins, self.copies) = (0, 0, false);
                0
            }
        }
    }

    /// A step that goes out as it is.
    fn pass(&mut self, rest: &[u8], out: &mut Vec<u8>) -> usize {
        let n = self.step(rest);
        out.extend_from_slice(&rest[..n]);
        n
    }

    fn line(&mut self, rest: &[u8], out: &mut Vec<u8>) -> usize {
        let end = memchr::memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
        let room = HEAD.saturating_sub(self.text.len()).min(end);
        self.text.extend_from_slice(&rest[..room]);
        if rest[..end].ends_with(b"\n") {
            self.command(out);
        }
        end
    }

    /// A command of psql's own.
    fn command(&mut self, out: &mut Vec<u8>) {
        let text = std::mem::take(&mut self.text);
        self.at = At::Between;
        let line = String::from_utf8_lossy(&text);
        let mut parts = line.trim().splitn(2, char::is_whitespace);
        let (name, rest) = (
            parts.next().unwrap_or_default(),
            parts.next().unwrap_or_default(),
        );
        match name {
            "\\restrict" | "\\unrestrict" | "\\encoding" => out.extend_from_slice(&text),
            "\\connect" | "\\c" => {
                let database = connected(rest);
                match database {
                    Some(name) => {
                        self.is_own(&name, "\\connect");
                    }
                    None => self.refuse("\\connect without a database's name"),
                }
                out.push(b'\n');
            }
            name => self.refuse(&format!("{name}, a command of psql's own")),
        }
    }

    /// One step in a statement.
    fn code(&mut self, rest: &[u8], out: &mut Vec<u8>) -> usize {
        let byte = rest[0];
        if self.lex == Lex::Code {
            if byte == b';' && self.parentheses == 0 {
                self.counted();
                if self.begins == 0 {
                    self.ends(b";", out);
                    return 1;
                }
            }
            if byte == b'\\' {
                self.refuse("a command of psql's own within a statement");
            }
            match byte {
                b'(' => self.parentheses += 1,
                b')' => self.parentheses = self.parentheses.saturating_sub(1),
                _ => {}
            }
            if of_word(byte) {
                if self.word.len() < 64 {
                    self.word.push(byte);
                }
            } else {
                self.counted();
            }
        }
        let n = self.step(rest);
        match self.verdict {
            Verdict::Open => self.text.extend_from_slice(&rest[..n]),
            Verdict::Sent => out.extend_from_slice(&rest[..n]),
            Verdict::LeftOut => {}
        }
        self.end.extend_from_slice(&rest[..n]);
        if self.end.len() > 8 * END {
            self.end.drain(..7 * END);
        }
        if self.verdict == Verdict::Open && self.text.len() > HEAD {
            self.judge(out);
        }
        n
    }

    /// A word is over: psql counts what begins and ends in a body of standard SQL.
    fn counted(&mut self) {
        if self.word.is_empty() {
            return;
        }
        let word = String::from_utf8_lossy(&self.word).to_ascii_uppercase();
        self.word.clear();
        let words: Vec<&str> = self.words.iter().map(String::as_str).collect();
        let of_function = matches!(
            words[..],
            ["CREATE", "FUNCTION" | "PROCEDURE", ..]
                | ["CREATE", "OR", "REPLACE", "FUNCTION" | "PROCEDURE", ..]
        );
        if of_function && self.parentheses == 0 {
            match word.as_str() {
                "BEGIN" => self.begins += 1,
                "CASE" if self.begins > 0 => self.begins += 1,
                "END" => self.begins = self.begins.saturating_sub(1),
                _ => {}
            }
        }
        if self.words.len() < 8 {
            self.words.push(word);
        }
    }

    /// The end of a statement.
    fn ends(&mut self, sign: &[u8], out: &mut Vec<u8>) {
        self.judge(out);
        if self.verdict == Verdict::Sent {
            out.extend_from_slice(sign);
        }
        let end = String::from_utf8_lossy(&self.end).to_ascii_uppercase();
        let words: Vec<&str> = end.split_whitespace().collect();
        let stdin = words
            .windows(2)
            .any(|pair| pair[0] == "FROM" && pair[1] == "STDIN");
        self.at = if self.copies && stdin {
            At::Rows
        } else {
            At::Between
        };
        self.row.clear();
        self.lex = if self.at == At::Rows {
            Lex::Line
        } else {
            Lex::Code
        };
    }

    /// Decides what becomes of a statement, once.
    fn judge(&mut self, out: &mut Vec<u8>) {
        if self.verdict != Verdict::Open {
            return;
        }
        let mut text = std::mem::take(&mut self.text);
        self.verdict = self.verdict_of(&mut text);
        if self.verdict == Verdict::Sent {
            out.extend_from_slice(&text);
        }
    }

    fn verdict_of(&mut self, text: &mut Vec<u8>) -> Verdict {
        let all = self.words.clone();
        let words: Vec<&str> = all.iter().map(String::as_str).collect();
        match words[..] {
            ["COPY", ..] => self.copies = true,
            ["SELECT", "SETVAL", ..] | ["SELECT", "PG_CATALOG", "SETVAL", ..] => {
                self.sets_sequences = true;
            }
            ["BEGIN" | "END", ..] | ["START", "TRANSACTION", ..] => return Verdict::LeftOut,
            ["COMMIT"] | ["COMMIT", "WORK" | "TRANSACTION"] => return Verdict::LeftOut,
            ["COMMIT" | "ROLLBACK" | "ABORT", ..] | ["PREPARE", "TRANSACTION", ..] => {
                self.refuse(&words[..words.len().min(2)].join(" "));
                return Verdict::LeftOut;
            }
            ["CREATE" | "DROP", "DATABASE", ..] => {
                let skipped = if words.get(2) == Some(&"IF") { 4 } else { 2 };
                if let Some((name, _)) = name_after(text, skipped) {
                    self.is_own(&name, &words[..2].join(" "));
                }
                return Verdict::LeftOut;
            }
            ["ALTER", "DATABASE", ..] => self.of_database(text, 2, "ALTER DATABASE"),
            ["COMMENT", "ON", "DATABASE", ..] => self.of_database(text, 3, "COMMENT ON DATABASE"),
            ["GRANT" | "REVOKE" | "SECURITY", ..] => {
                let on = words.windows(2).position(|pair| pair == ["ON", "DATABASE"]);
                if let Some(on) = on {
                    self.of_database(text, on + 2, words[0]);
                }
            }
            ["VACUUM" | "CLUSTER" | "REINDEX", ..]
            | ["ALTER", "SYSTEM", ..]
            | ["CREATE" | "DROP" | "ALTER", "TABLESPACE", ..] => {
                self.refuse(&words[..words.len().min(2)].join(" "));
            }
            [_, "INDEX", "CONCURRENTLY", ..] | [_, _, "INDEX", "CONCURRENTLY", ..] => {
                self.refuse("an INDEX made or dropped CONCURRENTLY");
            }
            ["SET", "STANDARD_CONFORMING_STRINGS", ..] => {
                self.escapes = words.contains(&"OFF");
            }
            // A setting of PostgreSQL 17, which older ones do not know: the others of its kind are
            // at rest too.
            ["SET", "TRANSACTION_TIMEOUT", "0"] => return Verdict::LeftOut,
            _ => {}
        }
        Verdict::Sent
    }

    /// A statement of the dump's database becomes one of the database it goes into.
    fn of_database(&mut self, text: &mut Vec<u8>, words: usize, what: &str) {
        let Some((name, range)) = name_after(text, words) else {
            return self.refuse(what);
        };
        if self.is_own(&name, what) {
            let to = format!("\"{}\"", self.to.replace('"', "\"\""));
            text.splice(range, to.into_bytes());
        }
    }

    /// It is the name of the dump's one database. The first that a dump names is.
    fn is_own(&mut self, name: &str, what: &str) -> bool {
        if !self.named {
            name.clone_into(&mut self.own);
            self.named = true;
        }
        if name == self.own {
            return true;
        }
        self.refuse(&format!("{what} of database {name}"));
        false
    }

    fn refuse(&mut self, what: &str) {
        let what = what.to_owned();
        if self.refusals.len() < 20 && !self.refusals.contains(&what) {
            self.refusals.push(what);
        }
    }

    /// Rows, to the line that ends them.
    fn rows(&mut self, rest: &[u8], out: &mut Vec<u8>) -> usize {
        let end = memchr::memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
        let line = &rest[..end];
        out.extend_from_slice(line);
        // The rest of the statement's own line comes first.
        let room = 4usize.saturating_sub(self.row.len()).min(line.len());
        self.row.extend_from_slice(&line[..room]);
        if line.ends_with(b"\n") {
            if self.lex == Lex::Code && matches!(&self.row[..], b"\\.\n" | b"\\.\r\n") {
                self.at = At::Between;
            }
            self.lex = Lex::Code;
            self.row.clear();
        }
        end
    }

    /// How many bytes belong together, and how the next are read.
    fn step(&mut self, rest: &[u8]) -> usize {
        let byte = rest[0];
        let (n, next) = match &self.lex {
            Lex::Code => match byte {
                b'\'' => {
                    let escape = matches!(&self.end[..], [.., b'E' | b'e'])
                        && !matches!(&self.end[..], [.., before, _] if of_word(*before));
                    (1, Lex::Text(escape || self.escapes))
                }
                b'"' => (1, Lex::Name),
                b'-' if rest.starts_with(b"--") => (2, Lex::Line),
                b'/' if rest.starts_with(b"/*") => (2, Lex::Block(1)),
                b'$' if !self.end.last().copied().is_some_and(of_word) => match tag(rest) {
                    Some(tag) => (tag.len(), Lex::Dollar(tag.to_vec())),
                    None => (1, Lex::Code),
                },
                _ => (1, Lex::Code),
            },
            Lex::Text(true) if byte == b'\\' => (2.min(rest.len()), self.lex.clone()),
            // A doubled quote closes and opens again: an escape string stays one.
            Lex::Text(escapes) if rest.starts_with(b"''") => (2, Lex::Text(*escapes)),
            Lex::Text(_) if byte == b'\'' => (1, Lex::Code),
            Lex::Name if byte == b'"' => (1, Lex::Code),
            Lex::Dollar(tag) if rest.starts_with(tag) => (tag.len(), Lex::Code),
            Lex::Line if byte == b'\n' => (1, Lex::Code),
            Lex::Block(depth) if rest.starts_with(b"/*") => (2, Lex::Block(depth + 1)),
            Lex::Block(1) if rest.starts_with(b"*/") => (2, Lex::Code),
            Lex::Block(depth) if rest.starts_with(b"*/") => (2, Lex::Block(depth - 1)),
            // The longest run that holds no end.
            lex => {
                let stop = |b: &u8| matches!(b, b'\'' | b'\\' | b'"' | b'$' | b'\n' | b'*' | b'/');
                let plain = rest[1..]
                    .iter()
                    .take(4096)
                    .position(stop)
                    .map_or(1, |n| n + 1);
                // What comes ahead is kept for the next step.
                (
                    plain.min(rest.len().saturating_sub(AHEAD)).max(1),
                    lex.clone(),
                )
            }
        };
        self.lex = next;
        n
    }
}

/// `$tag$` at the start of this text.
fn tag(text: &[u8]) -> Option<&[u8]> {
    let end = text.iter().skip(1).take(AHEAD).position(|b| *b == b'$')? + 1;
    let name = &text[1..end];
    let good = name.iter().all(|b| *b != b'$' && of_word(*b))
        && !name.first().is_some_and(u8::is_ascii_digit);
    good.then(|| &text[..=end])
}

fn of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 0x80..)
}

/// The name after so many words of a statement, and where it is.
fn name_after(text: &[u8], words: usize) -> Option<(String, std::ops::Range<usize>)> {
    let mut at = 0;
    for _ in 0..words {
        at += text[at..].iter().position(|b| of_word(*b))?;
        at += text[at..].iter().position(|b| !of_word(*b))?;
    }
    at += text[at..].iter().position(|b| !b.is_ascii_whitespace())?;
    if text[at] != b'"' {
        let length = text[at..].iter().take_while(|b| of_word(**b)).count();
        let name = String::from_utf8_lossy(&text[at..at + length]).to_lowercase();
        return (length > 0).then_some((name, at..at + length));
    }
    let mut end = at + 1;
    while end < text.len() {
        if text[end] == b'"' {
            if text.get(end + 1) != Some(&b'"') {
                let name = String::from_utf8_lossy(&text[at + 1..end]).replace("\"\"", "\"");
                return Some((name, at..end + 1));
            }
            end += 1;
        }
        end += 1;
    }
    None
}

/// The database in the words after `\connect`: a name, or `-reuse-previous=on "dbname='…'"`.
fn connected(words: &str) -> Option<String> {
    let words = words.trim();
    let words = words
        .strip_prefix("-reuse-previous=on")
        .unwrap_or(words)
        .trim();
    let plain = match words.strip_prefix('"') {
        Some(rest) => rest.strip_suffix('"')?.replace("\"\"", "\""),
        None => words.split_whitespace().next()?.to_owned(),
    };
    let Some(value) = plain.strip_prefix("dbname=") else {
        return Some(plain);
    };
    let value = value
        .strip_prefix('\'')
        .and_then(|v| v.strip_suffix('\''))
        .unwrap_or(value);
    let mut name = String::new();
    let mut characters = value.chars();
    while let Some(c) = characters.next() {
        name.push(if c == '\\' { characters.next()? } else { c });
    }
    Some(name)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str, size: usize) -> (String, Vec<String>) {
        let mut script = Script::new("app", "new \"one");
        let mut out = vec![];
        for chunk in text.as_bytes().chunks(size) {
            script.feed(chunk, &mut out);
        }
        script.finish(&mut out);
        (String::from_utf8(out).unwrap(), script.refusals)
    }

    /// As pg_dump 15 writes it with `--create`, cut; bodies and rows hold what looks like more.
    const DUMP: &str = r#"--
-- PostgreSQL database dump; BEGIN;
--

\restrict abc

SET standard_conforming_strings = on;
CREATE DATABASE app WITH TEMPLATE = template0 ENCODING = 'UTF8';
ALTER DATABASE app OWNER TO "o;";
\unrestrict abc
\connect app
\restrict abc
COMMENT ON DATABASE app IS 'x;\';
GRANT CONNECT ON DATABASE app TO PUBLIC;
CREATE PROCEDURE public.p() LANGUAGE plpgsql AS $_X$ begin commit; rollback; -- '
end $_X$;
CREATE OR REPLACE FUNCTION public.b(a int) RETURNS int
    BEGIN ATOMIC
 SELECT CASE a WHEN 1 THEN 2 ELSE 3 END;
 SELECT 1;
END;
CREATE RULE ru AS ON INSERT TO public.v DO INSTEAD ( SELECT 1; ROLLBACK; );
CREATE TABLE public."COMMIT; " (x text DEFAULT E'\';COMMIT;'::text, y text DEFAULT 'it''s \'); /* COMMIT; /* ; */ ROLLBACK; */
COPY public."COMMIT; " (x, y) FROM stdin;
COMMIT;
\\.
ROLLBACK;	\N
\connect other
\.

SELECT pg_catalog.setval('s', 1);
INSERT INTO t VALUES ('
COMMIT;
\connect x
');
BEGIN;
SELECT pg_catalog.lo_open('16390', 131072);
COMMIT;
\unrestrict abc
"#;

    const SENT: &str = r#"ALTER DATABASE "new ""one" OWNER TO "o;";"#;

    #[test]
    fn l1_what_ends_a_transaction_is_left_out_wherever_the_pieces_begin() {
        let whole = read(DUMP, DUMP.len());
        assert_eq!(whole.1, [""; 0]);
        let expected = DUMP
            .replace(
                "CREATE DATABASE app WITH TEMPLATE = template0 ENCODING = 'UTF8';",
                "",
            )
            .replace("ALTER DATABASE app OWNER TO \"o;\";", SENT)
            .replace("\\connect app\n", "\n")
            .replace("ON DATABASE app ", "ON DATABASE \"new \"\"one\" ")
            .replace(
                "BEGIN;\nSELECT pg_catalog.lo_open('16390', 131072);\nCOMMIT;",
                "\nSELECT pg_catalog.lo_open('16390', 131072);\n",
            );
        assert_eq!(whole.0, expected);
        for size in 1..120 {
            assert_eq!(read(DUMP, size), whole, "{size}");
        }
    }

    #[test]
    fn l1_what_means_more_is_refused() {
        for (text, what) in [
            ("ROLLBACK;", "ROLLBACK"),
            ("COMMIT PREPARED 'x';", "COMMIT PREPARED"),
            ("COMMIT AND CHAIN;", "COMMIT AND"),
            ("prepare transaction 'x';", "PREPARE TRANSACTION"),
            ("VACUUM FULL t;", "VACUUM FULL"),
            ("ALTER SYSTEM SET x = 1;", "ALTER SYSTEM"),
            (
                "CREATE UNIQUE INDEX CONCURRENTLY i ON t (a);",
                "an INDEX made or dropped CONCURRENTLY",
            ),
            (
                "\\connect app\n\\connect other\n",
                "\\connect of database other",
            ),
            (
                "\\connect app\nALTER DATABASE live SET x = 1;",
                "ALTER DATABASE of database live",
            ),
            (
                "CREATE DATABASE a; CREATE DATABASE b;",
                "CREATE DATABASE of database b",
            ),
            ("\\! rm -rf /\n", "\\!, a command of psql's own"),
            (
                "SELECT 'x' \\gexec\n;",
                "a command of psql's own within a statement",
            ),
        ] {
            for size in [1, 7, 1000] {
                assert_eq!(read(text, size).1, [what], "{text}");
            }
        }
    }

    #[test]
    fn names_after_connect() {
        for (words, name) in [
            ("app", "app"),
            ("\"a b\"", "a b"),
            ("-reuse-previous=on \"dbname='it\\'s'\"", "it's"),
        ] {
            assert_eq!(connected(words).as_deref(), Some(name));
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "[a-zA-Z$'\"/*;\\\\ ().\n-]{0,300}", size in 1usize..50) {
            prop_assert_eq!(read(&text, size), read(&text, 1000));
        }
    }
}
