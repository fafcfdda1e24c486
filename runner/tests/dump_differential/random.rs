//! Random schemas with random rows. What a server refuses is left out: the source is what is there afterwards.

use std::fmt::Write;

/// A generator of numbers that gives the same ones for the same seed.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() >> 33) as usize % n
    }

    /// True in `n` of 100 cases.
    pub fn percent(&mut self, n: usize) -> bool {
        self.below(100) < n
    }

    pub fn pick<'a, T: ?Sized>(&mut self, all: &[&'a T]) -> &'a T {
        all[self.below(all.len())]
    }
}

/// What a server can.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    MariaDb10,
    MariaDb11,
    MySql,
}

impl Kind {
    pub fn is_mariadb(self) -> bool {
        self != Self::MySql
    }
}

pub fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

fn literal(text: &str) -> String {
    let mut out = String::from("'");
    for c in text.chars() {
        match c {
            '\0' => out.push_str("\\0"),
            '\'' => out.push_str("''"),
            '\\' => out.push_str("\\\\"),
            c => out.push(c),
        }
    }
    out.push('\'');
    out
}

const PARTS: [&str; 22] = [
    "a", "B", "order", "ü", "ß日", "`", "'", "\"", " x", "%", "_", "\\", "-- ", "/*", "*/", ";;",
    "$$", "#", "\n", "é", "select", ".",
];
const TEXTS: [&str; 26] = [
    "", "a", "Z", "é", "ü", "日本", "😀", "'", "\"", "\\", "\n", "\r\n", "\t", "\0", "\u{1a}", "`",
    "%", "--", "/*", "*/", ";", "),(", "NULL", "'),('", " ", "\\'",
];
const CHARSETS: [&str; 16] = [
    "utf8mb4", "utf8mb4", "utf8mb4", "utf8mb3", "latin1", "latin1", "latin2", "ascii", "ucs2",
    "utf16", "utf32", "cp1251", "koi8r", "sjis", "gbk", "binary",
];
const MODES: [&str; 8] = [
    "",
    "",
    "STRICT_ALL_TABLES",
    "ANSI_QUOTES",
    "NO_BACKSLASH_ESCAPES",
    "PIPES_AS_CONCAT,NO_ZERO_DATE",
    "ANSI",
    "IGNORE_SPACE",
];

/// What values a column takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Values {
    Integer(u32, bool),
    Decimal(u32, u32),
    Real,
    Bits(u32),
    Text(u32),
    Bytes(u32),
    Member(bool),
    Date,
    Time(u32),
    Moment(u32),
    Stamp(u32),
    Year,
    Json,
    Shape(u32),
    Inet4,
    Inet6,
    Uuid,
    Vector,
}

#[derive(Clone, Debug)]
struct Column {
    name: String,
    values: Values,
    /// It is computed by the server.
    generated: bool,
    nullable: bool,
}

struct Table {
    database: String,
    name: String,
    columns: Vec<Column>,
    versioned: bool,
    memory: bool,
}

/// Statements for one connection, in their order.
pub struct Made {
    pub databases: Vec<String>,
    pub statements: Vec<String>,
}

struct Maker {
    random: Random,
    kind: Kind,
    seed: u64,
    out: Vec<String>,
    used: usize,
    /// Tables with one of their columns, and procedures, as grants name them.
    tables: Vec<(String, String)>,
    procedures: Vec<String>,
}

/// Makes the databases of a seed.
pub fn make(seed: u64, kind: Kind) -> Made {
    let mut maker = Maker {
        random: Random::new(seed),
        kind,
        seed,
        out: vec![],
        used: 0,
        tables: vec![],
        procedures: vec![],
    };
    let mut databases = vec![];
    for _ in 0..1 + maker.random.below(2) {
        databases.push(maker.database());
    }
    if maker.random.percent(40) {
        maker.accounts(&databases);
    }
    Made {
        databases,
        statements: maker.out,
    }
}

impl Maker {
    fn say(&mut self, statement: impl Into<String>) {
        self.out.push(statement.into());
    }

    /// A name that nothing else has, be it in another case.
    fn name(&mut self, of: &str) -> String {
        self.used += 1;
        let mut name = format!("{of}{}", self.used);
        if self.random.percent(45) {
            for _ in 0..1 + self.random.below(3) {
                name.push_str(self.random.pick(&PARTS));
            }
        }
        if self.random.percent(5) {
            while name.chars().count() < 64 {
                name.push('ä');
            }
        }
        let name: String = name.chars().take(64).collect();
        // No name may end with a blank; and MySQL's client takes a backslash before a line end for nothing.
        name.trim_end().replace("\\\n", "\n")
    }

    fn text(&mut self, longest: u32) -> String {
        let mut text = String::new();
        for _ in 0..self.random.below(6) {
            text.push_str(self.random.pick(&TEXTS));
        }
        text.chars().take(longest as usize).collect()
    }

    fn collation(&mut self, set: &str) -> String {
        if set == "binary" || self.random.percent(50) {
            return String::new();
        }
        if set == "utf8mb4" {
            let all: &[&str] = match self.kind {
                Kind::MySql => &[
                    "utf8mb4_bin",
                    "utf8mb4_0900_as_cs",
                    "utf8mb4_unicode_ci",
                    "utf8mb4_de_pb_0900_ai_ci",
                ],
                Kind::MariaDb10 => &[
                    "utf8mb4_bin",
                    "utf8mb4_general_ci",
                    "utf8mb4_unicode_520_ci",
                    "utf8mb4_uca1400_as_cs",
                    "utf8mb4_nopad_bin",
                ],
                Kind::MariaDb11 => &[
                    "utf8mb4_bin",
                    "utf8mb4_general_ci",
                    "utf8mb4_uca1400_german2_ai_ci",
                    "utf8mb4_nopad_bin",
                ],
            };
            return format!(" COLLATE {}", self.random.pick(all));
        }
        if self.random.percent(50) {
            return format!(" COLLATE {set}_bin");
        }
        String::new()
    }

    fn database(&mut self) -> String {
        let mut database = self.name("d").replace(['\n', '/'], "_");
        database = database.chars().take(60).collect();
        let database = database.trim_end().to_owned();
        let set = self.random.pick(&["utf8mb4", "latin1", "utf8mb4"]);
        let collate = self.collation(set);
        self.say(format!(
            "CREATE DATABASE {} CHARACTER SET {set}{collate}",
            quoted(&database)
        ));
        self.say(format!("USE {}", quoted(&database)));
        let mut sequences = vec![];
        if self.kind.is_mariadb() {
            for _ in 0..self.random.below(3) {
                sequences.push(self.sequence());
            }
        }
        let mut tables = vec![];
        for _ in 0..1 + self.random.below(5) {
            tables.push(self.table(&database, &sequences));
        }
        self.circle(&tables);
        for table in &tables {
            self.rows(table);
        }
        let mut readable: Vec<(String, Vec<String>)> = tables
            .iter()
            .map(|t| {
                (
                    t.name.clone(),
                    t.columns.iter().map(|c| c.name.clone()).collect(),
                )
            })
            .collect();
        self.functions();
        for _ in 0..self.random.below(4) {
            let view = self.view(&readable);
            readable.push(view);
        }
        for table in &tables {
            self.triggers(table);
        }
        self.procedures(&database);
        self.events();
        if self.random.percent(30) {
            let set = self.random.pick(&["utf8mb4", "latin1"]);
            let collate = self.collation(set);
            self.say(format!(
                "ALTER DATABASE {} CHARACTER SET {set}{collate}",
                quoted(&database)
            ));
        }
        database
    }

    fn sequence(&mut self) -> String {
        let name = self.name("s");
        let mut ddl = format!("CREATE SEQUENCE {}", quoted(&name));
        let cycle = self.random.percent(40);
        match self.random.below(4) {
            0 => {}
            1 => write!(ddl, " START {}", self.random.below(1000)).unwrap(),
            2 => ddl.push_str(" START 5 MINVALUE 1 MAXVALUE 9 INCREMENT 3 CACHE 2"),
            _ => ddl.push_str(" START -1 MINVALUE -100 MAXVALUE -1 INCREMENT -7 NOCACHE"),
        }
        if cycle {
            ddl.push_str(" CYCLE");
        }
        self.say(ddl);
        for _ in 0..self.random.below(6) {
            self.say(format!("DO NEXTVAL({})", quoted(&name)));
        }
        if self.random.percent(10) {
            self.say(format!("ALTER SEQUENCE {} RESTART 3", quoted(&name)));
        }
        name
    }

    /// A column's type, the values it takes, and whether it can be in a key as it is.
    fn data_type(&mut self) -> (String, Values) {
        let mariadb = self.kind.is_mariadb();
        let fraction = self.random.below(7) as u32;
        let f = if fraction > 0 {
            format!("({fraction})")
        } else {
            String::new()
        };
        match self.random.below(if mariadb { 24 } else { 22 }) {
            0..=3 => {
                let (name, bits) = [
                    ("TINYINT", 8),
                    ("SMALLINT", 16),
                    ("MEDIUMINT", 24),
                    ("INT", 32),
                    ("BIGINT", 64),
                ][self.random.below(5)];
                let unsigned = self.random.percent(30);
                let zerofill = unsigned && self.random.percent(20);
                let more = if zerofill {
                    " UNSIGNED ZEROFILL"
                } else if unsigned {
                    " UNSIGNED"
                } else {
                    ""
                };
                (format!("{name}{more}"), Values::Integer(bits, unsigned))
            }
            4 => {
                let digits = 1 + self.random.below(38) as u32;
                let scale = (self.random.below(31) as u32).min(digits);
                (
                    format!("DECIMAL({digits},{scale})"),
                    Values::Decimal(digits, scale),
                )
            }
            5 => (
                self.random.pick(&["FLOAT", "DOUBLE"]).to_owned(),
                Values::Real,
            ),
            6 => {
                let n = 1 + self.random.below(64) as u32;
                (format!("BIT({n})"), Values::Bits(n))
            }
            7..=10 => {
                let set = self.random.pick(&CHARSETS);
                let collate = self.collation(set);
                let (name, longest) = match self.random.below(6) {
                    0 => ("CHAR(12)", 12),
                    1..=3 => ("VARCHAR(40)", 40),
                    4 => ("TEXT", 200),
                    _ => ("MEDIUMTEXT", 200),
                };
                let compressed = mariadb && longest > 12 && self.random.percent(8);
                let compressed = if compressed { " COMPRESSED" } else { "" };
                (
                    format!("{name}{compressed} CHARACTER SET {set}{collate}"),
                    Values::Text(longest),
                )
            }
            11 | 12 => {
                let (name, longest) = [
                    ("BINARY(9)", 9),
                    ("VARBINARY(50)", 50),
                    ("BLOB", 300),
                    ("LONGBLOB", 300),
                    ("TINYBLOB", 200),
                ][self.random.below(5)];
                (name.to_owned(), Values::Bytes(longest))
            }
            13 => {
                let several = self.random.percent(50);
                let set = self.random.pick(&["utf8mb4", "latin1"]);
                let word = if several { "SET" } else { "ENUM" };
                (
                    format!("{word}('a','é','it''s','x\\\\y','') CHARACTER SET {set}"),
                    Values::Member(several),
                )
            }
            14 => ("DATE".to_owned(), Values::Date),
            15 => (format!("TIME{f}"), Values::Time(fraction)),
            16 => (format!("DATETIME{f}"), Values::Moment(fraction)),
            17 => (format!("TIMESTAMP{f}"), Values::Stamp(fraction)),
            18 => ("YEAR".to_owned(), Values::Year),
            19 => ("JSON".to_owned(), Values::Json),
            20 => {
                let shape = self
                    .random
                    .pick(&["GEOMETRY", "POINT", "LINESTRING", "POLYGON"]);
                let srid = if self.random.percent(50) { 4326 } else { 0 };
                let said = if mariadb {
                    format!("{shape} REF_SYSTEM_ID={srid}")
                } else if srid > 0 {
                    format!("{shape} /*!80003 SRID {srid} */")
                } else {
                    shape.to_owned()
                };
                let kind = match shape {
                    "LINESTRING" => 1,
                    "POLYGON" => 2,
                    _ => 0,
                };
                (said, Values::Shape(kind + 10 * u32::from(srid > 0)))
            }
            21 if self.kind == Kind::MariaDb10 => ("INET4".to_owned(), Values::Inet4),
            21 => ("VECTOR(3)".to_owned(), Values::Vector),
            22 => ("INET6".to_owned(), Values::Inet6),
            _ => ("UUID".to_owned(), Values::Uuid),
        }
    }

    fn value(&mut self, values: Values) -> String {
        let random = &mut self.random;
        let seconds = |random: &mut Random, digits: u32| {
            if digits == 0 {
                return String::new();
            }
            format!(".{:06}", random.below(1_000_000))[..1 + digits as usize].to_owned()
        };
        match values {
            Values::Integer(bits, unsigned) => {
                let top = if unsigned {
                    (1i128 << bits) - 1
                } else {
                    (1i128 << (bits - 1)) - 1
                };
                let least = if unsigned { 0 } else { -(1i128 << (bits - 1)) };
                match random.below(5) {
                    0 => top.to_string(),
                    1 => least.to_string(),
                    2 => "0".to_owned(),
                    _ => (i128::from(random.next()) % (top + 1)).to_string(),
                }
            }
            Values::Decimal(digits, scale) => {
                let mut number = String::new();
                for _ in 0..(digits - scale) {
                    write!(number, "{}", random.below(10)).unwrap();
                }
                number.push_str("0.");
                for _ in 0..scale {
                    write!(number, "{}", random.below(10)).unwrap();
                }
                number.push('0');
                let number = if digits > scale {
                    number.replacen("0.", ".", 1)
                } else {
                    number
                };
                if random.percent(40) {
                    format!("-{number}")
                } else {
                    number
                }
            }
            Values::Real => match random.below(6) {
                0 => "0".to_owned(),
                1 => "-0e0".to_owned(),
                2 => "16777217".to_owned(),
                3 => "3.4028234e38".to_owned(),
                4 => "1.17549435e-38".to_owned(),
                _ => format!("{}e{}", random.next() as i64, random.below(30) as i64 - 25),
            },
            Values::Bits(n) => format!("b'{:b}'", random.next() >> (64 - n)),
            Values::Text(longest) => literal(&self.text(longest)),
            Values::Bytes(longest) => {
                let mut hex = String::from("x'");
                for _ in 0..random.below(longest as usize) {
                    let byte = if random.percent(30) {
                        *b"'\\\"\0\n\x1a\xff`\x80".get(random.below(9)).unwrap()
                    } else {
                        random.next() as u8
                    };
                    write!(hex, "{byte:02x}").unwrap();
                }
                hex + "'"
            }
            Values::Member(several) => {
                let one = random.pick(&["a", "é", "it''s", "x\\\\y", ""]);
                if several && random.percent(50) {
                    format!("'{one},a'")
                } else {
                    format!("'{one}'")
                }
            }
            Values::Date => literal(random.pick(&[
                "0000-00-00",
                "2024-02-30",
                "2024-00-10",
                "9999-12-31",
                "1000-01-01",
                "2024-02-29",
                "1970-01-01",
            ])),
            Values::Time(f) => {
                let text = format!(
                    "{}{:02}:{:02}{}",
                    random.pick(&["00:", "23:", "-12:", "838:", "-838:"]),
                    random.below(60),
                    random.below(60),
                    seconds(random, f)
                );
                literal(&text)
            }
            Values::Moment(f) => {
                let text = format!(
                    "{} {:02}:{:02}:00{}",
                    random.pick(&[
                        "0000-00-00",
                        "2024-02-30",
                        "9999-12-30",
                        "2024-03-31",
                        "1000-01-01"
                    ]),
                    random.below(24),
                    random.below(60),
                    seconds(random, f)
                );
                literal(&text)
            }
            Values::Stamp(f) => {
                let text = format!(
                    "{}{}",
                    random.pick(&[
                        "0000-00-00 00:00:00",
                        "1970-01-01 00:00:01",
                        "2024-10-27 01:30:00",
                        "2038-01-19 03:14:07",
                        "2024-03-31 02:30:00"
                    ]),
                    seconds(random, f)
                );
                literal(&text)
            }
            Values::Year => literal(random.pick(&["0000", "1901", "2155", "2024"])),
            Values::Json => {
                let text = random.pick(&[
                    "null",
                    "{}",
                    "[1, 2.5, -3e10, true]",
                    "{\"a\": {\"é😀\": \"x'y\\\\n\"}}",
                    "\"\"",
                    "9007199254740993",
                    "[\"a\\\\\\\"b\"]",
                ]);
                format!("'{}'", text.replace('\'', "''"))
            }
            Values::Shape(n) => {
                let srid = if n >= 10 { 4326 } else { 0 };
                let (a, b) = (random.below(90), random.below(90));
                let text = match n % 10 {
                    1 => format!("LINESTRING({a} {b},1 1,2.5 -3)"),
                    2 => "POLYGON((0 0,0 5,5 5,5 0,0 0))".to_owned(),
                    _ => format!("POINT({a} -{b}.25)"),
                };
                format!("ST_GeomFromText('{text}',{srid})")
            }
            Values::Inet4 => literal(random.pick(&["0.0.0.0", "255.255.255.255", "10.1.2.3"])),
            Values::Inet6 => {
                literal(random.pick(&["::", "::ffff:1.2.3.4", "2001:db8::ff00:42:8329"]))
            }
            Values::Uuid => literal(random.pick(&[
                "00000000-0000-0000-0000-000000000000",
                "f47ac10b-58cc-4372-a567-0e02b2c3d479",
                "ffffffff-ffff-ffff-ffff-ffffffffffff",
            ])),
            Values::Vector => format!(
                "x'{:016x}{:08x}'",
                random.next() & 0x3f3f_3f3f_3f3f_3f3f,
                random.next() as u32 & 0x3f3f_3f3f
            ),
        }
    }

    fn column(&mut self, sequences: &[String]) -> (String, Column) {
        let (mut ddl, values) = self.data_type();
        let name = self.name("c");
        let nullable = self.random.percent(70);
        if values == Values::Stamp(0) || matches!(values, Values::Stamp(_)) {
            ddl.push_str(if nullable { " NULL" } else { " NOT NULL" });
            if self.random.percent(30) {
                let f = if let Values::Stamp(f) = values { f } else { 0 };
                write!(ddl, " DEFAULT CURRENT_TIMESTAMP({f})").unwrap();
                if self.random.percent(50) {
                    write!(ddl, " ON UPDATE CURRENT_TIMESTAMP({f})").unwrap();
                }
            } else if !nullable {
                ddl.push_str(" DEFAULT '1971-01-01 00:00:00'");
            }
        } else {
            let whole = matches!(values, Values::Integer(32..=64, false));
            if !nullable {
                ddl.push_str(" NOT NULL");
            }
            if whole && !sequences.is_empty() && self.random.percent(25) {
                let all: Vec<&str> = sequences.iter().map(String::as_str).collect();
                write!(ddl, " DEFAULT NEXTVAL({})", quoted(self.random.pick(&all))).unwrap();
            } else if self.random.percent(30) {
                let blob = matches!(
                    values,
                    Values::Text(200)
                        | Values::Bytes(200..)
                        | Values::Json
                        | Values::Shape(_)
                        | Values::Vector
                );
                let value = self.value(values);
                if !blob {
                    write!(ddl, " DEFAULT {value}").unwrap();
                } else {
                    write!(ddl, " DEFAULT ({value})").unwrap();
                }
            }
        }
        if self.random.percent(10) {
            ddl.push_str(" INVISIBLE");
        }
        if self.random.percent(15) {
            write!(
                ddl,
                " COMMENT {}",
                literal(&self.text(30).replace('😀', "☺"))
            )
            .unwrap();
        }
        let column = Column {
            name,
            values,
            generated: false,
            nullable,
        };
        (format!("{} {ddl}", quoted(&column.name)), column)
    }

    fn table(&mut self, database: &str, sequences: &[String]) -> Table {
        let name = self.name("t");
        let versioned = self.kind.is_mariadb() && self.random.percent(15);
        let engine = match self.random.below(20) {
            0 | 1 => "MyISAM",
            2 if self.kind.is_mariadb() => "Aria",
            2 | 3 => "MEMORY",
            _ => "InnoDB",
        };
        let mut lines = vec![];
        let mut columns: Vec<Column> = vec![];
        let id = self.name("id");
        let key = self.random.below(5);
        let auto = key <= 1;
        if key <= 2 {
            let how = if auto { " AUTO_INCREMENT" } else { "" };
            lines.push(format!("{} INT NOT NULL{how}", quoted(&id)));
            columns.push(Column {
                name: id.clone(),
                values: Values::Integer(32, false),
                generated: false,
                nullable: false,
            });
        }
        for _ in 0..1 + self.random.below(6) {
            let (line, column) = self.column(sequences);
            lines.push(line);
            columns.push(column);
        }
        for _ in 0..self.random.below(3) {
            self.generated(&mut lines, &mut columns);
        }
        let partitioned = key <= 2 && engine != "MEMORY" && self.random.percent(20);
        match key {
            0..=2 => lines.push(format!("PRIMARY KEY ({})", quoted(&id))),
            3 => {
                let fitting: Vec<&Column> = columns
                    .iter()
                    .filter(|c| {
                        !c.nullable
                            && !c.generated
                            && !matches!(
                                c.values,
                                Values::Text(200)
                                    | Values::Bytes(200..)
                                    | Values::Json
                                    | Values::Shape(_)
                                    | Values::Vector
                            )
                    })
                    .collect();
                let some: Vec<String> = fitting.iter().take(2).map(|c| quoted(&c.name)).collect();
                if !some.is_empty() {
                    let word = if self.random.percent(50) {
                        "PRIMARY KEY"
                    } else {
                        "UNIQUE KEY `uk`"
                    };
                    lines.push(format!("{word} ({})", some.join(",")));
                }
            }
            _ => {}
        }
        if !partitioned {
            self.indexes(&columns, &mut lines);
        }
        if self.random.percent(25) && !auto {
            let check = self.name("chk");
            let column = quoted(&columns[0].name);
            let not = if !self.kind.is_mariadb() && self.random.percent(30) {
                " NOT ENFORCED"
            } else {
                ""
            };
            lines.push(format!(
                "CONSTRAINT {} CHECK ({column} IS NULL OR {column} IS NOT NULL){not}",
                quoted(&check)
            ));
        }
        let mut period = String::new();
        if versioned && self.random.percent(40) {
            lines.push("rs TIMESTAMP(6) GENERATED ALWAYS AS ROW START".to_owned());
            lines.push("re TIMESTAMP(6) GENERATED ALWAYS AS ROW END".to_owned());
            lines.push("PERIOD FOR SYSTEM_TIME(rs, re)".to_owned());
        } else if self.kind.is_mariadb() && self.random.percent(6) {
            lines.push("p1 DATE NOT NULL DEFAULT '2024-01-01'".to_owned());
            lines.push("p2 DATE NOT NULL DEFAULT '2025-01-01'".to_owned());
            period = "PERIOD FOR per(p1, p2)".to_owned();
        }
        if !period.is_empty() {
            lines.push(period);
        }
        let mut ddl = format!(
            "CREATE TABLE {} (\n{}\n) ENGINE={engine}",
            quoted(&name),
            lines.join(",\n")
        );
        if self.random.percent(40) {
            let set = self.random.pick(&["utf8mb4", "latin1", "utf8mb3"]);
            let collate = self.collation(set);
            write!(ddl, " DEFAULT CHARSET={set}{collate}").unwrap();
        }
        if self.random.percent(15) {
            write!(
                ddl,
                " COMMENT={}",
                literal(&self.text(20).replace('😀', "☺"))
            )
            .unwrap();
        }
        if engine == "InnoDB" && self.random.percent(15) {
            write!(
                ddl,
                " ROW_FORMAT={}",
                self.random
                    .pick(&["DYNAMIC", "COMPACT", "COMPRESSED", "REDUNDANT"])
            )
            .unwrap();
        }
        if self.random.percent(10) {
            ddl.push_str(" STATS_PERSISTENT=0");
        }
        if auto && self.random.percent(30) {
            write!(ddl, " AUTO_INCREMENT={}", 1 + self.random.below(5000)).unwrap();
        }
        if versioned {
            ddl.push_str(" WITH SYSTEM VERSIONING");
        }
        if partitioned {
            let id = quoted(&id);
            ddl.push_str(&match self.random.below(5) {
                0 => format!(" PARTITION BY HASH({id}) PARTITIONS 3"),
                1 => format!(" PARTITION BY KEY({id}) PARTITIONS 2"),
                2 => format!(" PARTITION BY LIST({id}) (PARTITION a VALUES IN (1,2,3,4,5,6,7,8,9), PARTITION `b ü` VALUES IN (10,11,12,13,14))"),
                3 => format!(" PARTITION BY RANGE({id}) SUBPARTITION BY HASH({id}) SUBPARTITIONS 2 (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN MAXVALUE)"),
                _ => format!(" PARTITION BY RANGE COLUMNS({id}) (PARTITION p0 VALUES LESS THAN (5) COMMENT = 'its', PARTITION p1 VALUES LESS THAN (MAXVALUE))"),
            });
        }
        self.say(ddl);
        self.tables.push((
            format!("{}.{}", quoted(database), quoted(&name)),
            quoted(&columns[0].name),
        ));
        Table {
            database: database.to_owned(),
            name,
            columns,
            versioned,
            memory: engine == "MEMORY",
        }
    }

    fn generated(&mut self, lines: &mut Vec<String>, columns: &mut Vec<Column>) {
        let from = columns[self.random.below(columns.len())].clone();
        if from.generated {
            return;
        }
        let of = quoted(&from.name);
        if from.name.starts_with("id") {
            return;
        }
        let (data_type, expression) = match from.values {
            Values::Integer(..) => ("BIGINT", format!("{of} % 100 + 1")),
            Values::Decimal(..) | Values::Real => ("DOUBLE", format!("{of} / 2")),
            Values::Text(_) => (
                "VARCHAR(60) CHARACTER SET utf8mb4",
                // MySQL reads the expression again in the mode of whoever opens the table, as NO_BACKSLASH_ESCAPES.
                match self.kind {
                    Kind::MySql => format!("CONCAT(LEFT({of},5),'é')"),
                    _ => format!("CONCAT(LEFT({of},5),'''é\\\\')"),
                },
            ),
            Values::Bytes(_) => ("BLOB", format!("CONCAT({of},x'00ff27')")),
            Values::Json => ("LONGTEXT", format!("JSON_EXTRACT({of},'$.a')")),
            Values::Date | Values::Moment(_) => ("INT", format!("YEAR({of})")),
            _ => return,
        };
        let name = self.name("g");
        let how = self.random.pick(&["VIRTUAL", "STORED"]);
        lines.push(format!(
            "{} {data_type} GENERATED ALWAYS AS ({expression}) {how}",
            quoted(&name)
        ));
        columns.push(Column {
            name,
            values: from.values,
            generated: true,
            nullable: true,
        });
    }

    fn indexes(&mut self, columns: &[Column], lines: &mut Vec<String>) {
        for column in columns {
            if !self.random.percent(25) {
                continue;
            }
            let index = quoted(&self.name("k"));
            let of = quoted(&column.name);
            lines.push(match column.values {
                Values::Text(200) if self.random.percent(40) => {
                    format!("FULLTEXT KEY {index} ({of})")
                }
                Values::Text(_) if self.kind == Kind::MySql && self.random.percent(30) => {
                    format!("KEY {index} ((LOWER({of})))")
                }
                Values::Text(_) => format!("KEY {index} ({of}(5))"),
                Values::Bytes(200..) => format!("KEY {index} ({of}(7))"),
                Values::Json | Values::Vector => continue,
                Values::Shape(_) if !column.nullable => format!("SPATIAL KEY {index} ({of})"),
                Values::Shape(_) => continue,
                _ => {
                    let descending = self.random.pick(&["", " DESC"]);
                    let seen = match self.kind {
                        Kind::MySql => self.random.pick(&["", " INVISIBLE"]),
                        _ => self.random.pick(&["", " IGNORED", " COMMENT 'x''y'"]),
                    };
                    format!("KEY {index} ({of}{descending}){seen}")
                }
            });
        }
    }

    /// Foreign keys, each table to the next.
    fn circle(&mut self, tables: &[Table]) {
        if !self.random.percent(40) {
            return;
        }
        for (i, table) in tables.iter().enumerate() {
            let to = &tables[(i + 1) % tables.len()];
            let column = quoted(&self.name("f"));
            let key = quoted(&self.name("fk"));
            let action = self.random.pick(&[
                "",
                " ON DELETE CASCADE",
                " ON DELETE SET NULL ON UPDATE CASCADE",
                " ON UPDATE NO ACTION",
            ]);
            self.say(format!(
                "ALTER TABLE {} ADD COLUMN {column} INT NULL",
                quoted(&table.name)
            ));
            self.say(format!(
                "ALTER TABLE {} ADD CONSTRAINT {key} FOREIGN KEY ({column}) REFERENCES {} ({}){action}",
                quoted(&table.name), quoted(&to.name), quoted(&to.columns[0].name)
            ));
        }
    }

    fn rows(&mut self, table: &Table) {
        let count = match self.random.below(6) {
            0 => 0,
            1 => 1,
            _ => self.random.below(40),
        };
        let names: Vec<String> = table
            .columns
            .iter()
            .filter(|c| !c.generated)
            .map(|c| quoted(&c.name))
            .collect();
        let of = format!("{}.{}", quoted(&table.database), quoted(&table.name));
        for row in 0..count {
            let mut values = vec![];
            for (i, column) in table.columns.iter().enumerate() {
                if column.generated {
                    continue;
                }
                values.push(if i == 0 && column.name.starts_with("id") {
                    (row + 1).to_string()
                } else if column.nullable && self.random.percent(20) {
                    "NULL".to_owned()
                } else {
                    self.value(column.values)
                });
            }
            self.say(format!(
                "INSERT IGNORE INTO {of} ({}) VALUES ({})",
                names.join(","),
                values.join(",")
            ));
        }
        if count > 2 && self.random.percent(30) && !table.memory {
            self.say(format!("DELETE FROM {of} LIMIT 1"));
        }
        if (table.versioned || self.random.percent(20))
            && let Some(column) = table
                .columns
                .iter()
                .rfind(|c| !c.generated && !c.name.starts_with("id"))
        {
            let value = self.value(column.values);
            self.say(format!(
                "UPDATE IGNORE {of} SET {} = {value} LIMIT 3",
                quoted(&column.name)
            ));
        }
    }

    fn view(&mut self, readable: &[(String, Vec<String>)]) -> (String, Vec<String>) {
        let (from, columns) = readable[self.random.below(readable.len())].clone();
        let name = self.name("v");
        let mut made = vec![];
        let mut selected = vec![];
        for column in columns {
            if !selected.is_empty() && self.random.percent(40) {
                continue;
            }
            let alias = self.name("a");
            selected.push(format!("{} AS {}", quoted(&column), quoted(&alias)));
            made.push(alias);
        }
        if self.random.percent(30) {
            let alias = self.name("a");
            selected.push(format!("'it''s */ é \\\\ ;;' AS {}", quoted(&alias)));
            made.push(alias);
        }
        let algorithm = self.random.pick(&["UNDEFINED", "MERGE", "TEMPTABLE"]);
        let security = self.random.pick(&["DEFINER", "INVOKER"]);
        let check = if algorithm == "MERGE" && self.random.percent(30) {
            " WITH LOCAL CHECK OPTION"
        } else {
            ""
        };
        self.say(format!(
            "CREATE ALGORITHM={algorithm} SQL SECURITY {security} VIEW {} AS SELECT {} FROM {}{check}",
            quoted(&name), selected.join(", "), quoted(&from)
        ));
        (name, made)
    }

    fn in_mode(&mut self, statement: String) {
        let mode = self.random.pick(&MODES);
        let collation = match self.kind {
            Kind::MySql => {
                self.random
                    .pick(&["utf8mb4_0900_ai_ci", "utf8mb4_bin", "latin1_swedish_ci"])
            }
            _ => self
                .random
                .pick(&["utf8mb4_general_ci", "utf8mb4_bin", "latin1_swedish_ci"]),
        };
        self.say(format!("SET collation_connection = {collation}"));
        self.say(format!("SET sql_mode = '{mode}'"));
        self.say(statement);
        self.say("SET sql_mode = 'ALLOW_INVALID_DATES,NO_AUTO_VALUE_ON_ZERO'");
        self.say("SET NAMES utf8mb4");
    }

    fn triggers(&mut self, table: &Table) {
        let mut last: Vec<String> = vec![];
        for _ in 0..self.random.below(4) {
            let name = self.name("tr");
            let (timing, event) = if last.is_empty() || self.random.percent(50) {
                last.clear();
                (
                    self.random.pick(&["BEFORE", "AFTER"]),
                    self.random.pick(&["INSERT", "UPDATE", "DELETE"]),
                )
            } else {
                ("BEFORE", "INSERT")
            };
            let order = match last.last() {
                Some(other) if self.random.percent(60) => format!(
                    " {} {}",
                    self.random.pick(&["FOLLOWS", "PRECEDES"]),
                    quoted(other)
                ),
                _ => String::new(),
            };
            let body = self.random.pick(&[
                "SET @x = 1",
                "BEGIN SET @x = 'it''s; ;; $$'; /* a;; */ SET @y = 2; END",
                "BEGIN\n  -- a comment; it's one ;;\n  IF 1 = 1 THEN SET @z = 'é'; END IF; # another\nEND",
                "SET @x = 'CREATE TABLE `x`'",
            ]);
            self.in_mode(format!(
                "CREATE TRIGGER {} {timing} {event} ON {} FOR EACH ROW{order} {body}",
                quoted(&name),
                quoted(&table.name)
            ));
            last.push(name);
        }
    }

    fn functions(&mut self) {
        for _ in 0..self.random.below(3) {
            let name = quoted(&self.name("fu"));
            let body = self.random.pick(&[
                "RETURN a + 1",
                "BEGIN DECLARE x INT DEFAULT 3; RETURN x * a; END",
                "RETURN CONCAT(a, ';;é''')",
            ]);
            let more = self.random.pick(&[
                "DETERMINISTIC",
                "NO SQL SQL SECURITY INVOKER",
                "READS SQL DATA COMMENT 'it''s é'",
            ]);
            let gives =
                self.random
                    .pick(&["INT", "VARCHAR(20) CHARSET latin1", "DECIMAL(10,2)", "TEXT"]);
            self.in_mode(format!(
                "CREATE FUNCTION {name}(a INT) RETURNS {gives} {more} {body}"
            ));
        }
    }

    fn procedures(&mut self, database: &str) {
        for _ in 0..self.random.below(3) {
            let name = quoted(&self.name("p"));
            self.procedures.push(format!("{}.{name}", quoted(database)));
            let body = self.random.pick(&[
                "SELECT 1",
                "BEGIN SELECT 'a\tb', \"c;;\"; END",
                "BEGIN\n\n  /* several\n lines; */ SELECT 1; -- the last line\nEND",
                "BEGIN DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN END; SELECT '$$;;%%'; END",
            ]);
            self.in_mode(format!("CREATE PROCEDURE {name}(IN a INT, OUT b VARCHAR(10) CHARSET utf8mb4, INOUT c DECIMAL(5,1)) {body}"));
        }
        if self.kind.is_mariadb() && self.random.percent(15) {
            let name = quoted(&self.name("pk"));
            self.say("SET sql_mode = ORACLE");
            self.say(format!(
                "CREATE PACKAGE {name} AS FUNCTION f(a INT) RETURN INT; PROCEDURE p; END"
            ));
            self.say(format!("CREATE PACKAGE BODY {name} AS FUNCTION f(a INT) RETURN INT AS BEGIN RETURN a + 1; END; PROCEDURE p AS BEGIN SELECT 'x;;'; END; END"));
            self.say("SET sql_mode = 'ALLOW_INVALID_DATES,NO_AUTO_VALUE_ON_ZERO'");
        }
    }

    fn events(&mut self) {
        for _ in 0..self.random.below(3) {
            let name = quoted(&self.name("e"));
            let when = self.random.pick(&[
                "EVERY 1 DAY STARTS '2037-01-01 00:00:00'",
                "AT '2037-05-05 12:00:00' ON COMPLETION PRESERVE",
                "EVERY '1:30' HOUR_MINUTE STARTS '2037-01-01 00:00:00' ENDS '2037-02-01 00:00:00'",
            ]);
            let state = match self.kind {
                Kind::MySql => {
                    self.random
                        .pick(&["", " ENABLE", " DISABLE", " DISABLE ON REPLICA"])
                }
                _ => self
                    .random
                    .pick(&["", " ENABLE", " DISABLE", " DISABLE ON SLAVE"]),
            };
            let comment = self.random.pick(&["", " COMMENT 'it''s ü'"]);
            let zone = self.random.pick(&["+00:00", "+05:30", "-11:00", "SYSTEM"]);
            self.say(format!("SET time_zone = '{zone}'"));
            let body = if self.random.percent(3) {
                "BEGIN SET @a = 'x;;'; END"
            } else {
                "BEGIN SET @a = 'x; é'; END"
            };
            self.in_mode(format!(
                "CREATE EVENT {name} ON SCHEDULE {when}{state}{comment} DO {body}"
            ));
            self.say("SET time_zone = '+00:00'");
        }
    }

    fn accounts(&mut self, databases: &[String]) {
        let n = self.seed;
        let on = quoted(&databases[0]);
        let odd = quoted(
            &self
                .name("u")
                .replace('\\', "")
                .chars()
                .take(30)
                .collect::<String>(),
        );
        self.say(format!("CREATE ROLE `r{n}`"));
        self.say(format!("CREATE ROLE `R {n}`"));
        self.say(format!(
            "CREATE USER {odd}@'%' IDENTIFIED BY 'secret' REQUIRE SSL WITH MAX_QUERIES_PER_HOUR 7"
        ));
        self.say(format!("CREATE USER `u{n}`@'10.0.0.%' IDENTIFIED BY 'p''w' PASSWORD EXPIRE INTERVAL 30 DAY ACCOUNT LOCK"));
        self.say(format!("GRANT SELECT, INSERT ON {on}.* TO `r{n}`"));
        self.say(format!("GRANT `r{n}` TO `R {n}`"));
        self.say(format!("GRANT `R {n}` TO {odd}@'%' WITH ADMIN OPTION"));
        self.say(format!(
            "GRANT RELOAD, PROCESS ON *.* TO {odd}@'%' WITH GRANT OPTION"
        ));
        self.say(format!(
            "GRANT CREATE ROUTINE, EVENT ON {on}.* TO `u{n}`@'10.0.0.%'"
        ));
        for (table, column) in self.tables.clone() {
            if self.random.percent(40) {
                self.say(format!(
                    "GRANT SELECT ({column}), INSERT ON {table} TO {odd}@'%'"
                ));
                self.say(format!("GRANT UPDATE, DELETE ON {table} TO `r{n}`"));
            }
        }
        for procedure in self.procedures.clone() {
            self.say(format!(
                "GRANT EXECUTE ON PROCEDURE {procedure} TO {odd}@'%'"
            ));
        }
        if self.kind.is_mariadb() {
            self.say(format!("SET DEFAULT ROLE `R {n}` FOR {odd}@'%'"));
        } else {
            self.say(format!("SET DEFAULT ROLE `R {n}` TO {odd}@'%'"));
        }
    }
}
