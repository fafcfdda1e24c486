//! A plain dump of PostgreSQL as it goes by: whether it is whole, what it holds, and what it needs
//! to load. Text in a function's body may look like a statement or a comment of pg_dump's: the same
//! text is in a second dump, and is read the same.

use std::collections::{BTreeMap, BTreeSet};

use memchr::memchr;
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use super::dump::postgresql::{FOOTERS, is_text};
use super::holds::Holds;
use crate::dump_reader::Table;

/// So much of a statement's line is looked at.
const BEGIN: usize = 8192;
/// So much of a row's line tells whether it is one.
const ROW: usize = 3;
/// So much of a line's end tells that rows follow.
const END: usize = 64;
/// So much of the dump's end holds its closing line.
const TAIL: usize = 4096;

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
pub(super) struct Needs {
    /// Roles that own or are granted something.
    pub(super) roles: BTreeSet<String>,
    /// Major version of the pg_dump that made it.
    pub(super) version: Option<u32>,
    /// Its encoding.
    pub(super) encoding: Option<String>,
    /// It changes between databases.
    pub(super) connects: bool,
    /// It drops what may not be there.
    pub(super) drops: bool,
}

/// Reads a dump; feed it chunks, then ask.
#[derive(Default)]
pub(super) struct Script {
    /// Tables that are made.
    pub(super) tables: u64,
    /// Rows that are copied.
    pub(super) rows: u64,
    /// What it needs.
    pub(super) needs: Needs,
    head: Vec<u8>,
    tail: Vec<u8>,
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

impl Script {
    /// Takes the next bytes.
    pub(super) fn feed(&mut self, chunk: &[u8]) {
        let room = 512usize.saturating_sub(self.head.len()).min(chunk.len());
        self.head.extend_from_slice(&chunk[..room]);
        let kept = chunk.len().saturating_sub(TAIL);
        self.tail.extend_from_slice(&chunk[kept..]);
        let over = self.tail.len().saturating_sub(TAIL);
        self.tail.drain(..over);
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
            self.statement(&line, hash);
        } else if line == b"\\." {
            self.copying = false;
        } else {
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
        if text.starts_with("COPY ") && self.end.ends_with(b" FROM stdin;") {
            self.copying = true;
            if self.table.is_none() {
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
    pub(super) fn is_text(&self) -> bool {
        is_text(&self.head)
    }

    /// The closing line is there.
    pub(super) fn is_whole(&self) -> bool {
        let tail = String::from_utf8_lossy(&self.tail);
        !self.copying && FOOTERS.iter().any(|footer| tail.contains(footer))
    }

    /// It holds rows of tables it does not make.
    pub(super) fn is_data_alone(&self) -> bool {
        !self.others.contains_key("tables") && !self.sums.is_empty()
    }

    /// What it holds.
    pub(super) fn holds(self, options: Vec<String>) -> Holds {
        let tables = self.sums.into_iter().map(|(table, hash)| Table {
            hash: format!("{hash:032x}"),
            ..table
        });
        Holds {
            tables: tables.collect(),
            others: self.others,
            options,
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

    fn read(text: &str, size: usize) -> Script {
        let mut script = Script::default();
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

    #[test]
    fn what_is_cut_off_or_no_text_is_seen() {
        let mut script = Script::default();
        script.feed(&DUMP.as_bytes()[..DUMP.len() - 20]);
        assert!(!script.is_whole());
        let mut custom = Script::default();
        custom.feed(b"PGDMP\x01\x0e");
        assert!(!custom.is_text());
    }
}
