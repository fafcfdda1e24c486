//! What breaks the reading of rows on real servers: sessions and servers that are killed, definitions that are changed.
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

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use common::native;
use common::{MariaDb, databases};
use dump::{Error, Reader, Server, Snapshot, Sum, Table};
use wire::{Connection, Stop};

fn shared(start: fn(&[&str]) -> MariaDb, at: &'static OnceLock<MariaDb>) -> &'static MariaDb {
    at.get_or_init(|| {
        let db = start(&["--log-bin=bin", "--server-id=1"]);
        db.end_with_process();
        db
    })
}

/// The servers, for one test at a time.
fn servers() -> (
    MutexGuard<'static, ()>,
    [(&'static str, &'static MariaDb); 3],
) {
    static TURN: Mutex<()> = Mutex::new(());
    static OLD: OnceLock<MariaDb> = OnceLock::new();
    static NEW: OnceLock<MariaDb> = OnceLock::new();
    static MYSQL: OnceLock<MariaDb> = OnceLock::new();
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let all = [
        ("10.11", shared(MariaDb::start_with, &OLD)),
        ("11.8", shared(databases::mariadb_11, &NEW)),
        ("9.7", shared(databases::mysql, &MYSQL)),
    ];
    (turn, all)
}

/// A dump that has begun, of tables `a`, `b` and `c` of 20,000 rows.
struct Begun {
    snapshot: Snapshot,
    server: Server,
    tables: Vec<Table>,
}

const ROWS: u64 = 20_000;

fn fill(db: &MariaDb) {
    db.sql(
        "drop database if exists shop; create database shop; use shop;
         create table digits (n int primary key); insert into digits values (0),(1),(2),(3),(4),(5),(6),(7),(8),(9);
         create table a (id int primary key, v varchar(400), w int);
         insert into a select a.n + 10 * b.n + 100 * c.n + 1000 * d.n + 10000 * (e.n mod 2), repeat('x', 400), 1
           from digits a, digits b, digits c, digits d, digits e where e.n < 2;
         drop table digits; create table b like a; insert into b select * from a; create table c like a; insert into c select * from a;
         analyze table a, b, c",
    );
}

/// As a user who may not lock the instance: on MySQL nothing keeps definitions then.
fn begun(db: &MariaDb, sessions: usize) -> Begun {
    let (mut control, server) = native::session(db);
    let mut options = native::options("shop");
    (options.bare, options.sessions) = (false, sessions);
    let tables = dump::schema::names(&mut control, &server, &options).unwrap();
    let open = || Connection::open(&native::settings(db));
    let prepare = |session: &mut Connection| dump::schema::prepare(session, &server);
    let stop = Stop::default();
    let mut snapshot = dump::begin(&open, &prepare, &server, &options, &tables, &stop).unwrap();
    snapshot.guard = None;
    let schema = dump::schema::schema(&mut snapshot.sessions[0], &server, &options).unwrap();
    let tables = native::with_rows(&schema).into_iter().cloned().collect();
    Begun {
        snapshot,
        server,
        tables,
    }
}

impl Begun {
    /// Reads a table in some chunks; `between` happens after the first.
    fn read(
        &mut self,
        table: &str,
        reader: &mut Reader,
        between: impl FnOnce(),
    ) -> Result<Sum, Error> {
        let table = self
            .tables
            .iter()
            .find(|t| t.name == table)
            .unwrap()
            .clone();
        let session = &mut self.snapshot.sessions[0];
        let chunks = native::chunks(session, &table, 0, table.bytes / 6)?;
        // Of rows that others have deleted since the server guesses nothing: they are one chunk.
        assert!(chunks.len() > 2 || table.name == "c", "{chunks:?}");
        let (mut between, mut whole) = (Some(between), Sum::default());
        for chunk in &chunks {
            let sum = native::of_chunk(reader, session, &self.server, &table, chunk, &mut vec![])?;
            native::add(&mut whole, sum);
            if let Some(between) = between.take() {
                between();
            }
        }
        Ok(whole)
    }
}

#[track_caller]
fn is_changed(result: Result<Sum, Error>, table: &str, what: &str) {
    match result {
        Err(Error::Changed(words)) => {
            assert!(
                words.starts_with(&format!("table {table} was changed")),
                "{what}: {words}"
            );
        }
        other => panic!("{what}: {other:?}"),
    }
}

#[test]
fn a_table_that_is_changed_before_its_turn_fails_the_dump() {
    let (_turn, servers) = servers();
    for (name, db) in servers {
        for change in [
            "alter table b drop column w",
            "alter table b add column (z int), algorithm=instant",
            "alter table b rename column w to z",
            "alter table b modify w bigint",
            "alter table b add column (z int), algorithm=copy",
            "drop table b",
            "drop table b; create table b (id int primary key, v varchar(400), w int)",
            "truncate b",
            "rename table b to other",
        ] {
            fill(db);
            let mut dump = begun(db, 2);
            let mut reader = Reader::default();
            let a = dump.read("a", &mut reader, || ()).unwrap();
            assert_eq!(a.rows, ROWS, "{name}");
            db.sql(&format!("set lock_wait_timeout=20; use shop; {change}"));
            match dump.read("b", &mut reader, || ()) {
                // Rows need not be touched for it: those that were read are those of the snapshot.
                Ok(sum) if change.contains("instant") => assert_eq!(sum, a, "{name}: {change}"),
                b => is_changed(b, "shop.b", &format!("{name}: {change}")),
            }
        }
    }
}

/// Nobody changes a table while it is read, and nobody waits for one that has been read.
#[test]
fn a_table_is_kept_while_it_is_read_and_no_longer() {
    let (_turn, servers) = servers();
    for (name, db) in servers {
        for change in [
            "alter table shop.a add column (z int)",
            "truncate shop.a",
            "drop table shop.a",
        ] {
            fill(db);
            let mut dump = begun(db, 2);
            let mut reader = Reader::default();
            let change = format!("set lock_wait_timeout=1; {change}");
            let sum = dump.read("a", &mut reader, || {
                let refused = db.try_sql(&change).unwrap_err();
                assert!(
                    refused.contains("ERROR 1205"),
                    "{name}: {change}: {refused}"
                );
            });
            assert_eq!(sum.unwrap().rows, ROWS);
            // MariaDB lets nobody at a table until the session ends, where it has a binary log; mariadb-dump meets the same.
            let kept = name != "9.7";
            let sum = dump.read("b", &mut reader, || {
                assert_eq!(db.try_sql(&change).is_err(), kept, "{name}: {change}");
            });
            assert_eq!(sum.unwrap().rows, ROWS, "{name}: {change}");
            // New rows and new tables are not of this moment.
            db.sql("delete from shop.c; create table shop.new (id int)");
            assert_eq!(
                dump.read("c", &mut reader, || ()).unwrap().rows,
                ROWS,
                "{name}"
            );
        }
    }
}

#[test]
fn a_session_that_is_killed_is_told_with_its_table() {
    let (_turn, servers) = servers();
    for (name, db) in servers {
        fill(db);
        let mut dump = begun(db, 2);
        let id = {
            let mut rows = dump.snapshot.sessions[0]
                .query("select connection_id()")
                .unwrap();
            let id = rows.read().unwrap().unwrap().text().unwrap().to_owned();
            rows.finish().unwrap();
            id
        };
        // Between two chunks, and as the rows come.
        let result = dump.read("a", &mut Reader::default(), || {
            db.sql(&format!("kill {id}"));
        });
        let error = result.unwrap_err().to_string();
        assert!(
            error.starts_with("reading table shop.a: "),
            "{name}: {error}"
        );

        let mut dump = begun(db, 2);
        let table = dump.tables[1].clone();
        let mut session = dump.snapshot.sessions.remove(0);
        let id = {
            let mut rows = session.query("select connection_id()").unwrap();
            let id = rows.read().unwrap().unwrap().text().unwrap().to_owned();
            rows.finish().unwrap();
            id
        };
        let mut pieces = 0;
        let whole = dump::Chunk::default();
        let result = Reader::default().read(
            &mut session,
            &dump.server,
            &table,
            &whole,
            &mut |piece, _| {
                pieces += 1;
                assert!(piece.rows < ROWS);
                if pieces == 1 {
                    db.sql(&format!("kill {id}"));
                    let ask = format!(
                        "select count(*) from information_schema.processlist where id = {id}"
                    );
                    let deadline = Instant::now() + Duration::from_secs(30);
                    while db.sql(&ask).trim() != "0" {
                        assert!(Instant::now() < deadline);
                    }
                }
                Ok(vec![])
            },
        );
        let error = result.unwrap_err().to_string();
        assert!(
            error.starts_with("reading table shop.b: "),
            "{name}: {error}"
        );
    }
}

#[test]
fn a_server_that_is_killed_is_told_with_the_table() {
    for start in [
        MariaDb::start as fn() -> MariaDb,
        || databases::mariadb_11(&[]),
        || databases::mysql(&[]),
    ] {
        let mut db = start();
        fill(&db);
        let mut dump = begun(&db, 1);
        let table = dump.tables[0].clone();
        let whole = dump::Chunk::default();
        let mut pieces = 0;
        let session = &mut dump.snapshot.sessions[0];
        let result = Reader::default().read(session, &dump.server, &table, &whole, &mut |_, _| {
            pieces += 1;
            if pieces == 1 {
                db.kill();
            }
            Ok(vec![])
        });
        let error = result.unwrap_err().to_string();
        assert!(
            error.starts_with("reading table shop.a: the connection was lost"),
            "{error}"
        );
    }
}
