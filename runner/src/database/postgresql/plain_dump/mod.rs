//! A plain dump of PostgreSQL as it goes by: whether it is whole, what it holds, and what it needs
//! to load. It is whole by its structure: it ends between two statements, with the client's last
//! lines, once; their words in a row, a program or a name close nothing. Text in a function's body may look like a statement or a comment of pg_dump's: the same
//! text is in a second dump, and is read the same.

pub mod syntax;

use std::collections::{BTreeMap, BTreeSet};

use memchr::memchr;
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use crate::database::contents::{Contents, Table};

use syntax::{Syntax, is_text};

/// So much of a statement's line is looked at.
const BEGIN: usize = 8192;
/// So much of a row's line tells whether it is one, and not the first line of another dump.
const ROW: usize = 48;
/// So much of a line's end tells that rows follow.
const END: usize = 64;

/// First and last line of a dump of a database, and of all databases of a server.
const ENDS: [(&str, &str); 2] = [
    (
        "PostgreSQL database dump",
        "PostgreSQL database dump complete",
    ),
    (
        "PostgreSQL database cluster dump",
        "PostgreSQL database cluster dump complete",
    ),
];

/// The client's last lines: how far they have come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Closing {
    /// They have not begun.
    #[default]
    No,
    /// The line with the words.
    Words,
    /// The dashes after it.
    Dashes,
    /// The empty line: all of it, where psql was not restricted.
    Done,
    /// `\unrestrict`, which has an empty line of its own.
    Unrestricted,
}

/// Objects that are counted, as pg_dump calls them.
const KINDS: [(&str, &str); 16] = [
    ("TABLE", "tables"),
    ("FOREIGN TABLE", "foreign tables"),
    ("SEQUENCE", "sequences"),
    ("VIEW", "views"),
    ("MATERIALIZED VIEW", "materialized views"),
    ("FUNCTION", "functions"),
    ("PROCEDURE", "procedures"),
    ("AGGREGATE", "aggregates"),
    ("TYPE", "types"),
    ("DOMAIN", "domains"),
    ("EXTENSION", "extensions"),
    ("INDEX", "indexes"),
    ("CONSTRAINT", "constraints"),
    ("FK CONSTRAINT", "foreign keys"),
    ("TRIGGER", "triggers"),
    ("POLICY", "policies"),
];

/// What a dump needs of the server it is loaded into.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Needs {
    /// Roles that own or are granted something.
    pub(crate) roles: BTreeSet<String>,
    /// Major version of the pg_dump that made it.
    pub(crate) version: Option<u32>,
    /// Its encoding.
    pub(crate) encoding: Option<String>,
    /// It changes between databases.
    pub(crate) connects: bool,
    /// It drops what may not be there.
    pub(crate) drops: bool,
}

/// Reads a dump; feed it chunks, then ask.
#[derive(Default)]
pub(crate) struct PlainDump {
    /// Tables that are made.
    pub(crate) tables: u64,
    /// Rows that are copied.
    pub(crate) rows: u64,
    /// What it needs.
    pub(crate) needs: Needs,
    head: Vec<u8>,
    syntax: Syntax,
    /// The line at hand does not begin in a statement.
    began: Began,
    /// The statement at hand is a COPY.
    copy: bool,
    /// First and last lines, as in [`ENDS`].
    ends: [(u32, u32); 2],
    closing: Closing,
    /// psql takes no command until it is given this word.
    restricted: Option<String>,
    /// Rows of several columns come.
    columns: bool,
    /// A row was the first line of another dump.
    torn: bool,
    line: Vec<u8>,
    end: Vec<u8>,
    open: Option<Box<Xxh3>>,
    copying: bool,
    inserting: bool,
    /// The table whose rows come.
    table: Option<usize>,
    sums: Vec<(Table, u128)>,
    index: BTreeMap<(String, String), usize>,
    others: BTreeMap<String, u64>,
    names: BTreeSet<String>,
}

/// Where a line begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Began {
    #[default]
    Top,
    Inside,
}

impl PlainDump {
    /// Takes the next bytes.
    pub(crate) fn feed(&mut self, chunk: &[u8]) {
        let room = 512usize.saturating_sub(self.head.len()).min(chunk.len());
        self.head.extend_from_slice(&chunk[..room]);
        let mut rest = chunk;
        while !rest.is_empty() {
            let (text, after) = match memchr(b'\n', rest) {
                Some(at) => (&rest[..at], Some(&rest[at + 1..])),
                None => (rest, None),
            };
            let most = if self.copying { ROW } else { BEGIN };
            let room = most.saturating_sub(self.line.len()).min(text.len());
            self.line.extend_from_slice(&text[..room]);
            if !self.copying {
                self.syntax.feed(text);
                self.end
                    .extend_from_slice(&text[text.len().saturating_sub(END)..]);
                let over = self.end.len().saturating_sub(END);
                self.end.drain(..over);
            }
            let Some(after) = after else {
                self.open.get_or_insert_default().update(text);
                break;
            };
            let hash = match self.open.take() {
                Some(mut open) => {
                    open.update(text);
                    open.digest128()
                }
                None => xxh3_128(text),
            };
            self.close(hash);
            rest = after;
        }
    }

    fn close(&mut self, hash: u128) {
        let line = std::mem::take(&mut self.line);
        if !self.copying {
            self.syntax.feed(b"\n");
            self.frame(&line);
            self.statement(&line, hash);
            self.began = if self.syntax.is_top() {
                Began::Top
            } else {
                Began::Inside
            };
        } else if line == b"\\." {
            self.copying = false;
        } else {
            // As a row it would have as many tabs as the table has columns but one.
            let head = || {
                ENDS.iter()
                    .any(|(first, _)| line.get(3..) == Some(first.as_bytes()))
            };
            self.torn |= self.columns && line.starts_with(b"-- ") && head();
            self.add(hash, true);
        }
        self.line = line;
        self.line.clear();
        self.end.clear();
    }

    /// A row, or a line of one, of the table at hand.
    fn add(&mut self, hash: u128, row: bool) {
        self.rows += u64::from(row);
        let sum = self.table.and_then(|at| self.sums.get_mut(at));
        if let Some((table, sum)) = sum {
            table.rows += u64::from(row);
            *sum = sum.wrapping_add(hash);
        }
    }

    /// Looks for the first and last lines of the client, and whether rows follow.
    fn frame(&mut self, line: &[u8]) {
        let top = self.began == Began::Top;
        self.copy = self.copy || top && line.starts_with(b"COPY ");
        if self.copy && self.syntax.is_top() {
            self.copy = false;
            self.copying = self.end.ends_with(b" FROM stdin;");
            self.columns = line.contains(&b',');
        }
        let text = String::from_utf8_lossy(line);
        let comment = text.strip_prefix("-- ").map(str::trim_end);
        // Also in what a cut has left open.
        for (at, (first, _)) in ENDS.iter().enumerate() {
            self.ends[at].0 += u32::from(comment == Some(first));
        }
        if !top {
            self.closing = Closing::No;
            return;
        }
        let restrict = |word: &str| text.strip_prefix(word).map(|w| w.trim().to_owned());
        let ended = ENDS.iter().position(|(_, last)| comment == Some(last));
        self.closing = match (self.closing, &*text) {
            _ if ended.is_some() => Closing::Words,
            (Closing::Words, "--") => Closing::Dashes,
            (Closing::Dashes | Closing::Unrestricted, "") => Closing::Done,
            (Closing::Done, "") => Closing::Done,
            (Closing::Done, t) if t.starts_with("\\unrestrict ") => Closing::Unrestricted,
            _ => Closing::No,
        };
        if let Some(word) = restrict("\\restrict ") {
            self.restricted = Some(word);
        } else if self.restricted.is_some() && restrict("\\unrestrict ") == self.restricted {
            self.restricted = None;
        }
        if let Some(at) = ended {
            self.ends[at].1 += 1;
        }
    }

    fn statement(&mut self, line: &[u8], hash: u128) {
        let text = String::from_utf8_lossy(line);
        if let Some(comment) = text.strip_prefix("--") {
            return self.comment(comment.trim_start());
        }
        if let Some(command) = text.strip_prefix('\\') {
            self.needs.connects |= command.starts_with("connect");
            return;
        }
        if text.is_empty() {
            return;
        }
        let begins = text.starts_with("INSERT INTO ");
        if self.inserting || begins && self.table.is_some() {
            self.inserting = true;
            let row = begins && !self.end.ends_with(b" VALUES") || text.starts_with("\t(");
            return self.add(hash, row);
        }
        if text.starts_with("COPY ") && self.began == Began::Top {
            if self.copying && self.table.is_none() {
                let name = text[5..].split([' ', '(']).next().unwrap_or_default();
                self.table = Some(self.of("", name));
            }
        } else if begins {
            self.rows += 1;
        } else if text.starts_with("CREATE TABLE ") {
            self.tables += 1;
        } else if text.starts_with("SELECT pg_catalog.setval(") {
            self.names
                .insert(format!("the value of {}", text.trim_end()));
        } else if text.starts_with("SELECT pg_catalog.lowrite(") {
            let at = self.of("", "large objects");
            self.table = Some(at);
            self.add(hash, true);
            self.table = None;
        } else if let Some(rest) = text.strip_prefix("SET client_encoding = '") {
            self.needs.encoding = rest.split('\'').next().map(str::to_owned);
        } else if text.starts_with("DROP ") && !text.contains(" IF EXISTS ") {
            self.needs.drops = true;
        }
        self.needs.roles.extend(roles(&text));
    }

    /// `Name: t; Type: TABLE; Schema: public; Owner: -`, or `Data for Name: …`.
    fn comment(&mut self, text: &str) {
        if let Some(version) = text.strip_prefix("Dumped by pg_dump version ") {
            let digits = version.split(|c: char| !c.is_ascii_digit()).next();
            self.needs.version = digits.and_then(|d| d.parse().ok());
            return;
        }
        let named = text.strip_prefix("Data for Name: ");
        let Some(rest) = named.or_else(|| text.strip_prefix("Name: ")) else {
            return;
        };
        let Some((name, rest)) = rest.split_once("; Type: ") else {
            return;
        };
        let Some((kind, rest)) = rest.split_once("; Schema: ") else {
            return;
        };
        let schema = rest.split("; Owner:").next().unwrap_or_default();
        (self.inserting, self.table) = (false, None);
        if kind == "TABLE DATA" {
            self.table = Some(self.of(schema, name));
        }
        if let Some((_, plural)) = KINDS.iter().find(|(k, _)| *k == kind) {
            *self.others.entry((*plural).to_owned()).or_default() += 1;
            self.names.insert(format!("{kind} {schema}.{name}"));
        }
    }

    fn of(&mut self, schema: &str, name: &str) -> usize {
        let key = (schema.to_owned(), name.to_owned());
        *self.index.entry(key).or_insert_with(|| {
            let table = Table {
                database: schema.to_owned(),
                name: name.to_owned(),
                ..Table::default()
            };
            self.sums.push((table, 0));
            self.sums.len() - 1
        })
    }

    /// SQL, and not one of pg_dump's own formats.
    pub(crate) fn is_text(&self) -> bool {
        is_text(&self.head)
    }

    /// It is a whole dump.
    pub(crate) fn is_whole(&self) -> bool {
        self.flaw().is_none()
    }

    /// What it lacks of a whole dump, as what follows "the dump".
    pub(crate) fn flaw(&self) -> Option<&'static str> {
        let [one, all] = self.ends;
        // All databases of a server are dumped one after the other.
        let once = if all == (0, 0) {
            one == (1, 1)
        } else {
            all == (1, 1) && one.0 == one.1
        };
        if self.copying || !self.syntax.is_top() || !self.line.is_empty() || self.open.is_some() {
            Some("ends in the middle of a statement or a table")
        } else if one.1 + all.1 == 0 {
            Some("has no closing line")
        } else if self.torn || !once {
            Some("is more than one dump, or lacks the beginning of one")
        } else if self.closing != Closing::Done || self.restricted.is_some() {
            Some("does not end with its closing line")
        } else {
            None
        }
    }

    /// It holds rows of tables it does not make.
    pub(crate) fn is_data_alone(&self) -> bool {
        !self.others.contains_key("tables") && !self.sums.is_empty()
    }

    /// What it holds.
    pub(crate) fn holds(self, options: Vec<String>) -> Contents {
        let tables = self.sums.into_iter().map(|(table, hash)| Table {
            hash: format!("{hash:032x}"),
            ..table
        });
        Contents {
            native: false,
            tables: tables.collect(),
            others: self.others,
            options,
            partial: vec![],
            names: self.names,
        }
    }
}

/// Roles that a statement names as an owner or grantee.
fn roles(text: &str) -> Vec<String> {
    let mut found = vec![];
    let mut after = |word: &str| {
        let at = text.rfind(word).map(|at| at + word.len());
        found.extend(at.and_then(|at| identifier(&text[at..])));
    };
    if text.starts_with("ALTER ") {
        after(" OWNER TO ");
        after(" FOR ROLE ");
    }
    if [
        "GRANT ",
        "REVOKE ",
        "ALTER DEFAULT PRIVILEGES ",
        "CREATE POLICY ",
    ]
    .iter()
    .any(|begin| text.starts_with(begin))
    {
        after(" TO ");
        after(" FROM ");
    }
    found.retain(|role| {
        let keyword = ["PUBLIC", "CURRENT_USER", "SESSION_USER", "CURRENT_ROLE"];
        !keyword.contains(&role.as_str()) && !role.starts_with("pg_") && role != "postgres"
    });
    found
}

/// The name a text begins with, without its quotes.
fn identifier(text: &str) -> Option<String> {
    let Some(quoted) = text.strip_prefix('"') else {
        let name = text.split([' ', ';', ',']).next()?;
        return (!name.is_empty()).then(|| name.to_owned());
    };
    let mut name = String::new();
    let mut characters = quoted.chars().peekable();
    while let Some(c) = characters.next() {
        match (c, characters.peek()) {
            ('"', Some('"')) => {
                characters.next();
                name.push('"');
            }
            ('"', _) => return Some(name),
            _ => name.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use super::*;

    /// As pg_dump 15 writes it, cut.
    const DUMP: &str = "--\n-- PostgreSQL database dump\n--\n\nCREATE TABLE public.t (\n    id integer NOT NULL,\n    v text\n);\n\n\nCOPY public.t (id, v) FROM stdin;\n1\tCREATE TABLE x\n2\tCOPY y FROM stdin;\nCREATE TABLE \\N\n\\.\n\n\nCREATE TABLE public.\"COPY \" (\n    x integer\n);\n--\n-- PostgreSQL database dump complete\n--\n\n";

    /// As pg_dump 15.18 writes it, cut.
    const OWNED: &str = r#"--
-- PostgreSQL database dump
--

\restrict qqq

-- Dumped from database version 15.18 (Debian 15.18-0+deb12u1)
-- Dumped by pg_dump version 15.18 (Debian 15.18-0+deb12u1)

SET client_encoding = 'UTF8';

--
-- Name: v; Type: VIEW; Schema: public; Owner: a "b" c
--

ALTER TABLE public.v OWNER TO "a ""b"" c";

--
-- Data for Name: t; Type: TABLE DATA; Schema: s; Owner: app
--

COPY s.t (id, v) FROM stdin;
2	y
1	x
\.


--
-- Data for Name: u; Type: TABLE DATA; Schema: s; Owner: app
--

INSERT INTO s.u VALUES (1, 'two
lines');


--
-- Name: t_id_seq; Type: SEQUENCE SET; Schema: s; Owner: app
--

SELECT pg_catalog.setval('s.t_id_seq', 7, true);


--
-- Name: TABLE t; Type: ACL; Schema: s; Owner: app
--

GRANT SELECT ON TABLE s.t TO reader;
GRANT ALL ON SCHEMA public TO PUBLIC;
ALTER DEFAULT PRIVILEGES FOR ROLE maker IN SCHEMA s GRANT SELECT ON TABLES TO reader2;


--
-- PostgreSQL database dump complete
--

\unrestrict qqq

"#;

    fn read(text: &str, size: usize) -> PlainDump {
        let mut script = PlainDump::default();
        text.as_bytes().chunks(size).for_each(|c| script.feed(c));
        script
    }

    #[test]
    fn rows_are_never_statements_however_the_dump_comes_in_pieces() {
        for size in 1..80 {
            let script = read(DUMP, size);
            assert_eq!((script.tables, script.rows), (2, 3), "{size}");
            assert!(script.is_text() && script.is_whole(), "{size}");
        }
    }

    #[test]
    fn what_it_needs_and_holds_is_read_however_it_comes() {
        let whole = read(OWNED, OWNED.len());
        let needs = Needs {
            roles: ["a \"b\" c", "maker", "reader", "reader2"]
                .map(str::to_owned)
                .into(),
            version: Some(15),
            encoding: Some("UTF8".to_owned()),
            connects: false,
            drops: false,
        };
        assert_eq!(whole.needs, needs);
        assert!(whole.is_data_alone() && whole.is_whole());
        let expected = whole.holds(vec![]);
        let rows: Vec<(&str, u64)> = expected.tables.iter().map(|t| (&*t.name, t.rows)).collect();
        assert_eq!(rows, [("t", 2), ("u", 1)]);
        assert_eq!(expected.others, [("views".to_owned(), 1)].into());
        assert_eq!(
            expected.names,
            [
                "VIEW public.v",
                "the value of SELECT pg_catalog.setval('s.t_id_seq', 7, true);"
            ]
            .map(str::to_owned)
            .into()
        );
        for size in 1..80 {
            assert_eq!(read(OWNED, size).holds(vec![]), expected, "{size}");
        }
        // Another order is the same; another value, in whatever line of a row, is not.
        let turned = OWNED.replace("2\ty\n1\tx", "1\tx\n2\ty");
        assert_eq!(read(&turned, 99).holds(vec![]), expected);
        for (from, to, what) in [
            ("1\tx", "1\tz", "table s.t has 2 rows but other values"),
            ("1\tx\n", "", "table s.t has 1 rows instead of 2"),
            ("lines'", "line'", "table s.u has 1 rows but other values"),
            ("-- Name: v;", "-- Name: w;", "VIEW public.v is missing"),
            (
                "seq', 7,",
                "seq', 8,",
                "the value of SELECT pg_catalog.setval('s.t_id_seq', 7, true); is missing",
            ),
        ] {
            let other = read(&OWNED.replace(from, to), 99).holds(vec![]);
            assert_eq!(expected.differences(&other), [what], "{from}");
        }
    }

    #[test]
    fn what_can_not_be_loaded_as_it_is_is_seen() {
        assert!(read("\\connect app\n", 5).needs.connects);
        assert!(read("DROP TABLE public.t;\n", 5).needs.drops);
        assert!(!read("DROP TABLE IF EXISTS public.t;\n", 5).needs.drops);
    }

    /// What pg_dump 15.18 wrote of databases whose rows, names and programs hold its last lines: as
    /// COPY, as INSERT, and of all databases of a server.
    const REAL: [&str; 3] = [
        include_str!("../../../../tests/fixtures/closing-postgresql-copy.sql"),
        include_str!("../../../../tests/fixtures/closing-postgresql-inserts.sql"),
        include_str!("../../../../tests/fixtures/closing-postgresql-all.sql"),
    ];

    #[test]
    fn t4_of_every_beginning_of_a_plain_dump_none_but_the_whole_is_whole() {
        for (i, dump) in REAL.into_iter().chain([OWNED]).enumerate() {
            let mut script = PlainDump::default();
            for (at, byte) in dump.as_bytes().iter().enumerate() {
                script.feed(&[*byte]);
                let whole = at + 1 == dump.len();
                assert_eq!(script.is_whole(), whole, "{i}: {at}: {:?}", script.flaw());
            }
        }
    }

    #[test]
    fn t4_one_plain_dump_after_another_is_no_dump() {
        for dump in REAL {
            let step = (dump.len() / 100).max(1);
            for cut in (1..dump.len()).step_by(step).chain([dump.len()]) {
                if let Some(part) = dump.get(..cut) {
                    let whole = read(&format!("{dump}{part}"), 4096).is_whole();
                    // An empty line, or the dashes of a head, are nothing of another dump.
                    assert!(!whole || part.trim().is_empty(), "whole and {cut}");
                    let whole = read(&format!("{part}{dump}"), 4096).is_whole();
                    let begun = part.contains("Dumped by");
                    assert!(!whole || !begun, "{cut} and whole");
                }
            }
        }
    }

    #[test]
    fn a_line_end_in_a_name_does_not_hide_rows() {
        let script = read(REAL[0], 64);
        assert_eq!(script.rows, 6);
    }

    #[test]
    fn what_is_no_text_is_seen() {
        let mut custom = PlainDump::default();
        custom.feed(b"PGDMP\x01\x0e");
        assert!(!custom.is_text());
    }
}
