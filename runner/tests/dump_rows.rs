//! Rows of the native dump: of every type and character set, read from real servers, loaded by the plain client, and
//! compared byte by byte; and tables cut into chunks by keys of every kind.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    missing_docs,
    unreachable_pub,
    reason = "tests"
)]

mod common;

use std::cell::Cell;
use std::fmt::Write;
use std::sync::OnceLock;

use common::native::{self, Native};
use common::{MariaDb, databases};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use runner::database::mysql::dump_reader::DumpReader;

fn shared(start: fn(&[&str]) -> MariaDb, at: &'static OnceLock<MariaDb>) -> &'static MariaDb {
    at.get_or_init(|| {
        let db = start(&["--log-bin=bin", "--server-id=1"]);
        db.end_with_process();
        db
    })
}

fn mariadb() -> &'static MariaDb {
    static AT: OnceLock<MariaDb> = OnceLock::new();
    shared(MariaDb::start_with, &AT)
}

fn mariadb_11() -> &'static MariaDb {
    static AT: OnceLock<MariaDb> = OnceLock::new();
    shared(databases::mariadb_11, &AT)
}

fn mysql() -> &'static MariaDb {
    static AT: OnceLock<MariaDb> = OnceLock::new();
    shared(databases::mysql, &AT)
}

fn servers() -> [(&'static str, &'static MariaDb); 3] {
    [
        ("10.11", mariadb()),
        ("11.8", mariadb_11()),
        ("9.7", mysql()),
    ]
}

/// Reads a database, checks its sums by the reader of dumps, loads it beside itself and compares all rows.
fn comes_back(server: &str, db: &MariaDb, database: &str, size: u64) -> Native {
    let native = native::read(db, database, size);
    let mut reader = DumpReader::default();
    for part in native.text.chunks(100_003) {
        reader.feed(part);
    }
    let found = reader.finish();
    assert!(found.whole, "{server}: the dump {}", found.flaw);
    for (name, sum) in &native.sums {
        let of_text = found.tables.iter().find(|t| t.name == *name);
        let (rows, hash) = of_text.map_or((0, String::new()), |t| (t.rows, t.hash.clone()));
        assert_eq!(rows, sum.rows, "{server}: rows of {name}");
        assert!(
            rows == 0 || hash == format!("{:032x}", sum.hash),
            "{server}: hash of {name}"
        );
    }
    let copy = format!("{database}_copy");
    db.sql(&format!(
        "drop database if exists `{copy}`; create database `{copy}`"
    ));
    let mut text = format!("USE `{copy}`;\n").into_bytes();
    text.extend_from_slice(&native.text);
    db.load(&text);
    for table in native::with_rows(&native.schema) {
        same(server, db, table, database, &copy);
    }
    native
}

fn same(server: &str, db: &MariaDb, table: &dump::Table, one: &str, other: &str) {
    let name = dump::sql::name(&table.name);
    let history = if table.versioned {
        " for system_time all"
    } else {
        ""
    };
    let all: Vec<String> = table
        .columns
        .iter()
        .map(|c| match (c.data_type.as_str(), dump::sql::name(&c.name)) {
            ("float" | "double", name) => format!("cast({name} as double)"),
            ("tinyint" | "int" | "bigint" | "decimal" | "bit", name) => {
                format!("cast({name} as char)")
            }
            // MySQL's own text, sorted as it is stored.
            (_, name) => format!("hex({name})"),
        })
        .collect();
    let rows = |database: &str| {
        let text = db.sql(&format!(
            "select {} from `{database}`.{name}{history}",
            all.join(", ")
        ));
        let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let (before, after) = (rows(one), rows(other));
    assert_eq!(before.len(), after.len(), "{server}: rows of {name}");
    for (before, after) in before.iter().zip(&after) {
        assert_eq!(before, after, "{server}: table {name}");
    }
    if table.versioned {
        return;
    }
    let sum = |database: &str| {
        let text = db.sql(&format!("checksum table `{database}`.{name}"));
        text.trim().rsplit('\t').next().unwrap().to_owned()
    };
    assert_eq!(sum(one), sum(other), "{server}: checksum of {name}");
}

/// Every type that all three have.
const TYPES: &str = r#"
set names utf8mb4, sql_mode='ALLOW_INVALID_DATES', time_zone='+00:00';
create table numbers (id int primary key, a tinyint, b smallint unsigned, c mediumint(8) unsigned zerofill, d int, e bigint,
  f bigint unsigned, g decimal(65,30), h decimal(10,0), k decimal(5,5) unsigned, y year, b1 bit(1), b9 bit(9), b64 bit(64), bo boolean);
insert into numbers values (1,-128,0,0,-2147483648,-9223372036854775808,0,-99999999999999999999999999999999999.999999999999999999999999999999,-9999999999,0,1901,b'0',b'0',b'0',false),
 (2,127,65535,16777215,2147483647,9223372036854775807,18446744073709551615,99999999999999999999999999999999999.999999999999999999999999999999,9999999999,0.99999,2155,b'1',b'111111111',x'ffffffffffffffff',true),
 (3,null,null,null,null,null,null,null,null,null,null,null,null,null,null),
 (4,0,1,42,-1,-1,9223372036854775808,-0.000000000000000000000000000001,-0,0.00001,0,b'1',b'100000000',x'0000000000000001',2);
create table texts (id int auto_increment primary key, c char(20), v varchar(400), tt tinytext, t text, mt mediumtext, lt longtext,
  e enum('a','b''c','ü','x,y'), s set('a','é','x''y'), vb varbinary(400), b binary(10), tb tinyblob, bl blob, mb mediumblob, lb longblob) default charset utf8mb4;
insert into texts values (null,'','','','','','','a','','','','','','',''),
 (null,'trailing  ','trailing  ','it''s','say "x"','back\\slash','\0\n\r\t\Z\b\%\_','b''c','a,é,x''y',x'00010a0d1a22275cff',x'00','\0','\'','"','\\'),
 (null,null,null,null,null,null,null,null,null,null,null,null,null,null,null),
 (null,'NULL','€ü😀','),(','\',\'','INSERT INTO `x` VALUES (1);','-- Dump completed','ü','é',x'4e554c4c','0123456789',repeat(x'ff',255),repeat('a',65535),repeat(x'2700',40000),repeat(x'5c',300000));
insert into texts (v) select concat(repeat('x', n), c, repeat('y', 31)) from (select 0 n union select 1 union select 15 union select 16 union select 31 union select 32 union select 33) a,
  (select '''' c union select '\\' union select '\n' union select '\Z' union select char(0 using utf8mb4) union select '"' union select 'é' union select '\r') b;
insert ignore into texts (e) values ('none of them');
create table members (id int primary key, e enum('','a',''''), s set('','a','b'));
insert ignore into members values (1,'',''),(2,'wrong','wrong'),(3,'a','a'),(4,null,null),(5,'''','a,b'),(6,1,1),(7,0,0),(8,3,7),(9,'','');
create table moments (id int primary key, d date, t0 time, t6 time(6), dt0 datetime, dt6 datetime(6), ts0 timestamp null, ts6 timestamp(6) null);
insert into moments values (1,'0000-00-00','-838:59:59','-838:59:58.999999','0000-00-00 00:00:00','0000-00-00 00:00:00','0000-00-00 00:00:00','0000-00-00 00:00:00'),
 (2,'9999-12-31','838:59:59','00:00:00.000001','9999-12-31 23:59:59','9999-12-31 23:59:59.999999','2038-01-19 03:14:07','2038-01-19 03:14:07.999999'),
 (3,null,null,null,null,null,null,null), (4,'2026-02-31','00:00:00','-00:00:00.1','2026-02-31 01:02:03','1000-01-01 00:00:00.5','1970-01-01 00:00:01','1970-01-01 00:00:01.000001'),
 (5,'2026-00-10','1:2:3','1:2:3.4','2026-11-00 00:00:00','2026-00-00 00:00:00','2026-03-29 02:30:00','2026-10-25 02:30:00.5');
create table made (a int primary key, st int as (a + 1) stored, v int as (a * 2) virtual, hidden varchar(10) invisible default 'h', last int);
insert into made (a, hidden, last) values (1,'x',2),(2,null,3);
create table plain (a int, b varchar(10)); insert into plain values (1,'x'),(1,'x'),(null,null);
create table own_key (b int, a varchar(20) not null, unique key k (a)); insert into own_key values (2,'b'),(1,'a'),(3,'');
create table fixed (id int primary key, c char(10)) engine=myisam; insert into fixed values (2,'b'),(1,'a');
create table nothing (id int primary key);
create table `odd ``name'"` (`a b` int primary key, `c``d` varchar(10), `'` int); insert into `odd ``name'"` values (1,'x',2);
create table shapes (id int primary key, g geometry, p point, l linestring, c geometrycollection);
insert into shapes values (1,null,null,null,null),(2,st_geomfromtext('POLYGON((0 0,1 0,1 1,0 0))'),st_geomfromtext('POINT(-1.5 2e10)'),st_geomfromtext('LINESTRING(0 0,1 1)'),st_geomfromtext('GEOMETRYCOLLECTION(POINT(1 1),LINESTRING(0 0,1 1))')),
 (3,st_geomfromtext('POINT(1 2)', 4326),null,null,null);
"#;

const MARIADB: &str = "
create table addresses (id int primary key, a inet6, u uuid, f inet4, j json, c longtext compressed);
insert into addresses values (1,'::1','123e4567-e89b-12d3-a456-426655440000','127.0.0.1','{\"a\": [1, null, \"it''s \\\\u00e9\"]}',repeat('z',1000)),
 (2,null,null,null,null,null),(3,'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff','ffffffff-ffff-ffff-ffff-ffffffffffff','255.255.255.255','[]',''),(4,'::','00000000-0000-0000-0000-000000000000','0.0.0.0','\"\"','é');
create table by_uuid (u uuid primary key, n int) ; insert into by_uuid values (uuid(), 1), (uuid(), 2), (uuid(), 3);
create table kept (id int primary key, n int) with system versioning; insert into kept values (1,1),(2,2); update kept set n = 9 where id = 1; delete from kept where id = 2;
create table kept_by (id int primary key, n int, s timestamp(6) generated always as row start, e timestamp(6) generated always as row end invisible, period for system_time(s, e)) with system versioning;
insert into kept_by (id, n) values (1,1); update kept_by set n = 3;
create table aria (id int primary key, c varchar(10)) engine=aria; insert into aria values (1, 'a');
";

const MARIADB_11: &str = "
create table vectors (id int primary key, v vector(3)); insert into vectors values (1, vec_fromtext('[1,-0.5,1e-30]')), (2, null);
";

const MYSQL: &str = r#"
create table documents (id int primary key, j json, v vector(3), p point srid 4326, b varchar(20) character set binary);
insert into documents values (1,'{"a": [1, null, true, "it''s é 😀 \\" \\u0000"], "b": 1.5, "": -0.0}',to_vector('[1,-0.5,1e-30]'),st_geomfromtext('POINT(1 2)', 4326),'a'),
 (2,null,null,null,null),(3,'"x"',null,null,''),(4,'12345678901234567890',null,null,x'00'),(5,'null',null,null,x'ff');
"#;

#[test]
fn a_value_of_every_type_comes_back() {
    for (server, db) in servers() {
        let more = match server {
            "10.11" => MARIADB.to_owned(),
            "11.8" => format!("{MARIADB}{MARIADB_11}"),
            _ => MYSQL.to_owned(),
        };
        db.sql(&format!("create database types; use types; {TYPES} {more}"));
        let native = comes_back(server, db, "types", 1 << 30);
        let text = String::from_utf8(native.text).unwrap();
        for line in [
            "INSERT INTO `nothing`",
            "(`a`, `hidden`, `last`) VALUES\n(1,'x',2),\n(2,NULL,3);\n",
            "INSERT INTO `odd ``name'\"` VALUES\n(1,'x',2);\n",
            "(4,0,1,00000042,-1,-1,9223372036854775808,-0.000000000000000000000000000001,0,0.00001,0000,0x01,0x0100,0x0000000000000001,2);\n",
            "(1,1,0),\n(2,0,0),\n(3,2,2),\n(4,NULL,NULL),\n(5,3,6),",
        ] {
            assert_eq!(
                text.contains(line),
                line != "INSERT INTO `nothing`",
                "{server}: {line}"
            );
        }
    }
}

/// Bits of numbers, as many as fit a test, by a generator of their own.
fn bits(seed: u64) -> impl Iterator<Item = u64> {
    // SplitMix64.
    let mut state = seed;
    std::iter::repeat_with(move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    })
}

#[test]
fn floats_come_back_bit_by_bit() {
    const COUNT: usize = 20_000;
    let edges = [
        0.0,
        -0.0,
        f32::MAX,
        f32::MIN,
        f32::MIN_POSITIVE,
        f32::from_bits(1),
        0.1,
        16_777_217.0,
        1e15,
        1e-5,
    ];
    let floats: Vec<f32> = bits(1)
        .map(|n| f32::from_bits(n as u32))
        .filter(|n| n.is_finite())
        .take(COUNT)
        .chain(edges)
        .collect();
    let edges = [
        0.0,
        -0.0,
        f64::MAX,
        f64::MIN,
        f64::MIN_POSITIVE,
        f64::from_bits(1),
        0.1,
        1e15,
        1e-5,
        1e22,
    ];
    let doubles: Vec<f64> = bits(2)
        .map(f64::from_bits)
        .filter(|n| n.is_finite())
        .take(COUNT)
        .chain(edges)
        .collect();
    for (server, db) in servers() {
        let mut sql = "create database floats; use floats; create table f (id int primary key, f float, d double);
            create table m (id int primary key, f float(10,3), d double(20,5), u float unsigned); insert into f values ".to_owned();
        for (id, (f, d)) in floats.iter().zip(&doubles).enumerate() {
            let comma = if id == 0 { "" } else { "," };
            write!(sql, "{comma}({id},{:e},{d:e})", f64::from(*f)).unwrap();
        }
        sql.push_str("; set sql_mode=''; insert into m select id, f * 1e0, d * 1e0, abs(f) from f where abs(f) < 1e6 and abs(d) < 1e14;
            insert into m select id + 1000000, id / 7, id * 1000 / 3, id / 11 from f");
        db.sql(&sql);
        // What stands in the table is what was meant.
        let (mut session, _) = native::session(db);
        let mut rows = session
            .query("select cast(f as double), d from floats.f order by id")
            .unwrap();
        for (f, d) in floats.iter().zip(&doubles) {
            let mut row = rows.read().unwrap().unwrap();
            let there: (f64, f64) = (
                row.text().unwrap().parse().unwrap(),
                row.text().unwrap().parse().unwrap(),
            );
            // MariaDB has no zero with a sign.
            let (f, d) = match server {
                "9.7" => (*f, *d),
                _ => (f + 0.0, d + 0.0),
            };
            assert_eq!((there.0 as f32).to_bits(), f.to_bits(), "{server}: {f:e}");
            assert_eq!(there.1.to_bits(), d.to_bits(), "{server}: {d:e}");
        }
        assert!(rows.read().unwrap().is_none());
        comes_back(server, db, "floats", 1 << 30);
    }
}

#[test]
fn text_of_every_character_set_comes_back() {
    for (server, db) in servers() {
        let sets = db.sql("select character_set_name, maxlen from information_schema.character_sets where character_set_name <> 'binary'");
        let sets: Vec<(&str, &str)> = sets.lines().map(|l| l.split_once('\t').unwrap()).collect();
        assert!(sets.len() > 35, "{sets:?}");
        let mut sql =
            "create database sets; use sets; set names utf8mb4; set sql_mode='';\n".to_owned();
        for (set, longest) in &sets {
            writeln!(sql, "create table `{set}` (id int auto_increment primary key, v varchar(300) character set {set}, c char(8) character set {set}, t text character set {set},
                e enum('a','é','ä') character set {set}) engine=innodb;").unwrap();
            let mut values: Vec<String> = (0..=255_u32).map(|n| format!("{n:02x}")).collect();
            if *longest != "1" {
                values.extend(
                    (0x0080..=0xffff_u32)
                        .step_by(if *longest == "2" { 1 } else { 7 })
                        .map(|n| format!("{n:04x}")),
                );
                values.extend(bits(3).take(2000).map(|n| format!("{:08x}", n as u32)));
            }
            for part in values.chunks(5000) {
                let part: Vec<_> = part.iter().map(|v| format!("(0x{v},0x{v})")).collect();
                writeln!(
                    sql,
                    "insert ignore into `{set}` (v, t) values {};",
                    part.join(",")
                )
                .unwrap();
            }
            for text in [
                "",
                "plain",
                "it''s \\\\ \"x\"",
                "é ä ß",
                "Ωλ",
                "Привет",
                "日本語 ～ ∥ − ¢ £ ¬",
                "한국어",
                "中文 繁體",
                "😀 €",
                "ｱｲｳ ㈱ №",
            ] {
                writeln!(sql, "insert ignore into `{set}` (v, c, t, e) values ('{text}','{text}','{text}','é');").unwrap();
            }
        }
        db.sql(&sql);
        let native = comes_back(server, db, "sets", 1 << 30);
        let text = String::from_utf8(native.text).unwrap();
        // As the clients write it, where that loses nothing.
        for set in ["latin1", "latin2", "utf8mb3", "utf8mb4", "utf16", "utf32"] {
            let table = text
                .split_once(&format!("INSERT INTO `{set}` VALUES"))
                .unwrap()
                .1;
            let table = table.split_once("-- Dumping").map_or(table, |(t, _)| t);
            assert!(table.contains(",'é ä ß',"), "{server}: {set}");
        }
    }
}

/// A key: what its columns are, and values of one.
#[derive(Clone, Debug)]
struct Keyed {
    columns: Vec<&'static str>,
    /// Rows, in SQL.
    rows: Vec<String>,
    /// Chunks that are asked for.
    wanted: u64,
}

/// A type, and literals of it.
fn of_type() -> impl Strategy<Value = (&'static str, BoxedStrategy<String>)> {
    let text = |set: &'static str| {
        let letters = prop::sample::select(vec![
            "a", "A", "b", "ä", "Z", " ", "_", "0", "é", "ß", "'", "\\",
        ]);
        let hex = |s: String| s.bytes().map(|b| format!("{b:02x}")).collect::<String>();
        prop::collection::vec(letters, 0..6)
            .prop_map(move |parts| match set {
                "utf8mb4" => format!("_utf8mb4 x'{}'", hex(parts.concat())),
                _ => format!("convert(_utf8mb4 x'{}' using {set})", hex(parts.concat())),
            })
            .boxed()
    };
    let bytes = || {
        prop::collection::vec(
            prop::sample::select(vec![0_u8, 1, 0x27, 0x5c, 0x80, 0xff]),
            0..5,
        )
    };
    let hex = |bytes: Vec<u8>| {
        format!(
            "x'{}'",
            bytes.iter().map(|b| format!("{b:02x}")).collect::<String>()
        )
    };
    prop_oneof![
        Just((
            "int",
            prop_oneof![any::<i32>(), -20..20]
                .prop_map(|n| n.to_string())
                .boxed()
        )),
        Just((
            "bigint",
            prop_oneof![any::<i64>(), -20..20_i64, Just(i64::MIN), Just(i64::MAX)]
                .prop_map(|n| n.to_string())
                .boxed()
        )),
        Just((
            "bigint unsigned",
            prop_oneof![any::<u64>(), 0..20_u64, Just(u64::MAX), Just(u64::MAX - 1)]
                .prop_map(|n| n.to_string())
                .boxed()
        )),
        Just((
            "decimal(30,10)",
            (any::<i64>(), 0..10_u32)
                .prop_map(|(n, point)| format!("{}e-{point}", n / 1000))
                .boxed()
        )),
        Just((
            "varchar(10) character set utf8mb4 collate utf8mb4_general_ci",
            text("utf8mb4")
        )),
        Just((
            "varchar(10) character set utf8mb4 collate utf8mb4_bin",
            text("utf8mb4")
        )),
        Just((
            "varchar(10) character set utf8mb4 collate utf8mb4_unicode_ci",
            text("utf8mb4")
        )),
        Just(("varchar(10) character set latin1", text("latin1"))),
        Just((
            "char(8) character set latin1 collate latin1_bin",
            text("latin1")
        )),
        Just(("varchar(10) character set utf16", text("utf16"))),
        Just(("varbinary(8)", bytes().prop_map(hex).boxed())),
        Just((
            "binary(4)",
            bytes()
                .prop_filter("fits", |b| b.len() <= 4)
                .prop_map(hex)
                .boxed()
        )),
        Just((
            "datetime(3)",
            (0..2000_u32, 0..999_u32)
                .prop_map(|(n, ms)| format!(
                    "'{}-{:02}-{:02} {:02}:00:00.{ms:03}'",
                    1000 + n * 4,
                    n % 13,
                    n % 29,
                    n % 24
                ))
                .boxed()
        )),
        Just((
            "timestamp(6)",
            (0..2_000_000_000_u32, 0..3_u32)
                .prop_map(|(n, us)| format!("from_unixtime({}.00000{us})", n + 1))
                .boxed()
        )),
        Just((
            "date",
            (0..3000_u32)
                .prop_map(|n| format!("'{}-{:02}-{:02}'", n, n % 13, n % 29))
                .boxed()
        )),
        Just((
            "time(2)",
            (-800..800_i32, 0..60_u32)
                .prop_map(|(h, m)| format!("'{h}:{m:02}:00.0{}'", m % 10))
                .boxed()
        )),
        Just((
            "year",
            prop_oneof![Just(0), 1901..2156_u32]
                .prop_map(|n| format!("'{n:04}'"))
                .boxed()
        )),
        Just((
            "bit(40)",
            (0..1_u64 << 40).prop_map(|n| n.to_string()).boxed()
        )),
        Just((
            "enum('z','a','m')",
            prop::sample::select(vec!["'z'", "'a'", "'m'"])
                .prop_map(str::to_owned)
                .boxed()
        )),
        Just((
            "double",
            any::<i32>().prop_map(|n| format!("{n}e-3")).boxed()
        )),
    ]
}

fn keyed() -> impl Strategy<Value = Keyed> {
    (
        prop::collection::vec(of_type(), 1..4),
        0..220_usize,
        2..14_u64,
    )
        .prop_flat_map(|(types, count, wanted)| {
            let columns: Vec<_> = types.iter().map(|(column, _)| *column).collect();
            let row = types
                .into_iter()
                .map(|(_, value)| value)
                .collect::<Vec<_>>();
            prop::collection::vec(row, count).prop_map(move |rows| Keyed {
                columns: columns.clone(),
                rows: rows
                    .into_iter()
                    .map(|row| format!("({})", row.join(",")))
                    .collect(),
                wanted,
            })
        })
}

/// The rows of a key's columns, in the order of a statement.
fn rows_of(session: &mut wire::Connection, columns: &str, rest: &str) -> Vec<Vec<u8>> {
    let mut rows = session
        .query(&format!("SELECT {columns} FROM t {rest}"))
        .unwrap();
    let mut all = vec![];
    while let Some(mut row) = rows.read().unwrap() {
        all.push(row.value().unwrap().unwrap().to_vec());
    }
    all
}

fn chunks_are_the_table(server: &str, db: &MariaDb, key: &Keyed, most: &Cell<usize>) {
    let names: Vec<_> = (0..key.columns.len()).map(|n| format!("k{n}")).collect();
    let columns: Vec<_> = names
        .iter()
        .zip(&key.columns)
        .map(|(n, of)| format!("{n} {of} not null"))
        .collect();
    let mut sql = format!(
        "create or replace database keys; use keys; set sql_mode='ALLOW_INVALID_DATES', time_zone='+00:00';
        create table t ({}, v int, primary key ({}));",
        columns.join(", "),
        names.join(", ")
    );
    if server == "9.7" {
        sql = sql
            .replace(
                "create or replace database keys",
                "drop database if exists `keys`; create database `keys`",
            )
            .replace("use keys", "use `keys`");
    } else {
        sql = sql
            .replace("database keys", "database `keys`")
            .replace("use keys", "use `keys`");
    }
    for part in key.rows.chunks(50) {
        write!(
            sql,
            "insert ignore into t ({}) values {};",
            names.join(", "),
            part.join(",")
        )
        .unwrap();
    }
    sql.push_str("update t set v = 1; analyze table t;");
    db.sql(&sql);
    let (mut session, of) = native::session(db);
    let schema = dump::schema::schema(&mut session, &of, &native::options("keys")).unwrap();
    session.execute("USE `keys`").unwrap();
    let mut table = native::with_rows(&schema)[0].clone();
    let order = names.join(", ");
    let hexed: Vec<_> = names
        .iter()
        .map(|n| format!("hex(concat({n}, ''))"))
        .collect();
    let hexed = format!("concat_ws('-', {})", hexed.join(", "));
    let whole = rows_of(&mut session, &hexed, &format!("order by {order}"));
    // As if it were larger, so that it is cut.
    table.bytes = 1 << 20;
    table.rows = whole.len() as u64;
    let chunks = native::chunks(&mut session, &table, 7, (1 << 20) / key.wanted).unwrap();
    most.set(most.get().max(chunks.len()));
    let mut joined = vec![];
    for (part, chunk) in chunks.iter().enumerate() {
        assert_eq!((chunk.table, chunk.part), (7, part));
        joined.extend(rows_of(&mut session, &hexed, &chunk.condition));
    }
    assert_eq!(joined, whole, "{server}: {key:?} {chunks:#?}");
    let (mut reader, mut text, mut sum) = (dump::Reader::default(), vec![], dump::Sum::default());
    for chunk in &chunks {
        let part = native::of_chunk(&mut reader, &mut session, &of, &table, chunk, &mut text);
        native::add(&mut sum, part.unwrap());
    }
    let all = dump::Chunk::default();
    let at_once =
        native::of_chunk(&mut reader, &mut session, &of, &table, &all, &mut text).unwrap();
    assert_eq!(
        (sum.rows, sum),
        (whole.len() as u64, at_once),
        "{server}: {key:?}"
    );
}

#[test]
fn chunks_of_random_keys_are_the_whole_table() {
    for (server, db) in servers() {
        let most = Cell::new(0);
        let mut runner = TestRunner::new(Config {
            cases: 40,
            max_shrink_iters: 60,
            failure_persistence: None,
            ..Config::default()
        });
        runner
            .run(&keyed(), |key| {
                chunks_are_the_table(server, db, &key, &most);
                Ok(())
            })
            .unwrap_or_else(|e| panic!("{server}: {e}"));
        assert!(most.get() > 8, "{server}: no table was cut");
    }
}

/// What a server says of how it finds a chunk's rows: by the index, and without sorting.
fn explained(session: &mut wire::Connection, chunk: &dump::Chunk) -> (String, String) {
    let mut rows = session
        .query(&format!(
            "EXPLAIN FORMAT=TRADITIONAL SELECT * FROM t FORCE INDEX (`PRIMARY`) {}",
            chunk.condition
        ))
        .unwrap();
    let names: Vec<_> = rows
        .columns()
        .iter()
        .map(|c| c.name.to_lowercase())
        .collect();
    let mut row = rows.read().unwrap().unwrap();
    let values: Vec<_> = names
        .iter()
        .map(|_| String::from_utf8_lossy(row.value().unwrap().unwrap_or_default()).into_owned())
        .collect();
    rows.finish().unwrap();
    let of = |name: &str| values[names.iter().position(|n| n == name).unwrap()].clone();
    (of("type"), of("extra"))
}

#[test]
fn chunks_are_even_and_found_by_the_index() {
    for (server, db) in servers() {
        for (kind, key, value) in [
            ("gaps", "id bigint primary key", "n * n * n"),
            (
                "tenants",
                "a int, b int, primary key (a, b)",
                "if(n < 15000, 1, n), n",
            ),
            (
                "names",
                "a varchar(40) character set utf8mb4 primary key",
                "hex(n * 2654435761)",
            ),
            (
                "dates",
                "d date, n int, primary key (d, n)",
                "date '2020-01-01' + interval (n mod 7) day, n",
            ),
        ] {
            db.sql(&format!(
                "drop database if exists even; create database even; use even; set session {}; create table t ({key}, v char(200));
                 create table n (n bigint primary key); insert into n with recursive c as (select 1 n union all select n + 1 from c where n < 20000) select n from c;
                 insert into t select {value}, repeat('x', 200) from n; analyze table t",
                if server == "9.7" { "cte_max_recursion_depth=100000" } else { "max_recursive_iterations=100000" }
            ));
            let (mut session, of) = native::session(db);
            let schema = dump::schema::schema(&mut session, &of, &native::options("even")).unwrap();
            session.execute("USE even").unwrap();
            let table = native::with_rows(&schema)
                .into_iter()
                .find(|t| t.name == "t")
                .unwrap()
                .clone();
            let chunks = native::chunks(&mut session, &table, 0, table.bytes / 16).unwrap();
            assert!(
                (10..=30).contains(&chunks.len()),
                "{server}: {kind}: {}",
                chunks.len()
            );
            let mut sum = 0;
            for chunk in &chunks {
                let rows = rows_of(&mut session, "v", &chunk.condition).len();
                assert!(
                    rows < 4 * 20_000 / 16,
                    "{server}: {kind}: {rows} rows in {chunk:?}"
                );
                sum += rows;
                let (how, extra) = explained(&mut session, chunk);
                assert!(
                    how == "range" || chunk.condition.starts_with("ORDER"),
                    "{server}: {kind}: {how} {chunk:?}"
                );
                assert!(
                    !extra.contains("filesort"),
                    "{server}: {kind}: {extra} {chunk:?}"
                );
            }
            assert_eq!(sum, 20_000, "{server}: {kind}");
        }
    }
}
