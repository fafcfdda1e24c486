//! Sessions of the native dump see one moment, on every rung, however much is written; what takes it from them is told.
//!
//! `make test` takes a few dumps; KUBECTL_BACKUP_LONG=1 takes 100, with more writers.
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

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use common::native;
use common::{MariaDb, databases};
use dump::{Chunk, Error, Options, Reader, Rung, Snapshot, Table};
use wire::{Connection, Stop};

const ACCOUNTS: u64 = 400;
const TABLES: u64 = 4;
const EACH: i64 = 1000;

fn long() -> bool {
    std::env::var("KUBECTL_BACKUP_LONG").is_ok_and(|v| v == "1")
}

fn mariadb() -> MariaDb {
    MariaDb::start_with(&["--log-bin=bin", "--server-id=1"])
}

fn mariadb_11() -> MariaDb {
    databases::mariadb_11(&["--log-bin=bin", "--server-id=1"])
}

fn without_log() -> MariaDb {
    MariaDb::start()
}

fn mysql() -> MariaDb {
    databases::mysql(&[])
}

/// A bank: the money of all accounts is always the same.
fn bank(db: &MariaDb) {
    let mut sql = "create database bank; use bank;".to_owned();
    for table in 0..TABLES {
        let rows: Vec<_> = (0..ACCOUNTS).map(|id| format!("({id},{EACH})")).collect();
        sql += &format!(
            "create table t{table} (id int primary key, money bigint not null) engine=innodb; insert into t{table} values {};",
            rows.join(",")
        );
    }
    sql += "create user dumper@'%' identified by 'x'; grant select on bank.* to dumper@'%';
        create user locker@'%' identified by 'x'; grant select, lock tables on bank.* to locker@'%';";
    db.sql(&sql);
}

/// Moves money between tables as fast as it can, until it is told to stop.
fn writing<T>(db: &MariaDb, writers: u64, dumps: impl FnOnce() -> T) -> (T, u64) {
    let (stop, commits) = (AtomicBool::new(false), AtomicU64::new(0));
    let (stop, commits) = (&stop, &commits);
    let begun = Instant::now();
    let done = thread::scope(|scope| {
        for writer in 0..writers {
            scope.spawn(move || {
                let mut session = Connection::open(&native::settings(db)).unwrap();
                let mut n = writer * 7919;
                while !stop.load(Ordering::Relaxed) {
                    n = n
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1_442_695_040_888_963_407);
                    let (from, to) = ((n >> 33) % TABLES, (n >> 40) % TABLES);
                    let (a, b) = ((n >> 20) % ACCOUNTS, (n >> 11) % ACCOUNTS);
                    let statements = [
                        "begin".to_owned(),
                        format!("update bank.t{from} set money = money - 1 where id = {a}"),
                        format!("update bank.t{to} set money = money + 1 where id = {b}"),
                        "commit".to_owned(),
                    ];
                    let moved = statements
                        .iter()
                        .try_for_each(|s| session.execute(s).map(drop));
                    match moved {
                        Ok(()) => _ = commits.fetch_add(1, Ordering::Relaxed),
                        // Two that wait for each other.
                        Err(e) if matches!(e.number(), Some(1213 | 1205 | 1020)) => {
                            session.execute("rollback").unwrap();
                        }
                        Err(e) => panic!("{e}"),
                    }
                }
            });
        }
        // Stopped also where a dump panics.
        struct Stopping<'a>(&'a AtomicBool);
        impl Drop for Stopping<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let _stopping = Stopping(stop);
        dumps()
    });
    let commits =
        commits.load(Ordering::Relaxed) * 1000 / begun.elapsed().as_millis().max(1) as u64;
    (done, commits)
}

/// Monitoring that asks for the server's status without a pause, until it is dropped.
fn watching(db: &MariaDb) -> impl Drop {
    struct Watching(Stop, Vec<thread::JoinHandle<()>>);
    impl Drop for Watching {
        fn drop(&mut self) {
            self.0.stop();
            self.1.drain(..).for_each(|watcher| watcher.join().unwrap());
        }
    }
    let stop = Stop::default();
    let watcher = || {
        let (mut session, stop) = (open(db, "root").unwrap(), stop.clone());
        thread::spawn(move || {
            while !stop.is_stopped() {
                session.execute("show status like 'Binlog%'").unwrap();
            }
        })
    };
    let watchers = vec![watcher(), watcher()];
    Watching(stop, watchers)
}

fn open(db: &MariaDb, user: &str) -> Result<Connection, wire::Error> {
    let mut settings = native::settings(db);
    user.clone_into(&mut settings.user);
    settings.password = if user == "root" { "" } else { "x" }.to_owned().into();
    Connection::open(&settings)
}

fn options(sessions: usize) -> Options {
    let mut options = native::options("bank");
    (options.bare, options.sessions) = (false, sessions);
    options
}

fn begin(db: &MariaDb, user: &str, options: &Options) -> Result<Snapshot, Error> {
    let mut control = open(db, user).unwrap();
    let server = dump::schema::server(&mut control).unwrap();
    dump::schema::prepare(&mut control, &server).unwrap();
    let tables = dump::schema::names(&mut control, &server, options).unwrap();
    let prepare = |session: &mut Connection| dump::schema::prepare(session, &server);
    dump::begin(
        &|| open(db, user),
        &prepare,
        &server,
        options,
        &tables,
        &Stop::default(),
    )
}

/// Reads all tables, each by another session at the same time as the others; gives the money of all, by the text.
fn money(snapshot: Snapshot, server: &dump::Server, tables: &[Table]) -> i64 {
    let sessions = snapshot.sessions.len();
    let next = Mutex::new(tables.iter());
    let total = Mutex::new(0);
    thread::scope(|scope| {
        for mut session in snapshot.sessions {
            let (next, total) = (&next, &total);
            scope.spawn(move || {
                let mut reader = Reader::default();
                loop {
                    let Some(table) = next.lock().unwrap().next() else {
                        break;
                    };
                    let chunk = Chunk::default();
                    let mut text = vec![];
                    native::of_chunk(&mut reader, &mut session, server, table, &chunk, &mut text)
                        .unwrap();
                    let text = String::from_utf8(text).unwrap();
                    let rows = text.lines().filter_map(|line| line.strip_prefix('('));
                    let sum: i64 = rows
                        .map(|row| {
                            row.split_once(',')
                                .unwrap()
                                .1
                                .split(')')
                                .next()
                                .unwrap()
                                .parse::<i64>()
                                .unwrap()
                        })
                        .sum();
                    *total.lock().unwrap() += sum;
                }
            });
        }
    });
    assert!(sessions >= 1);
    total.into_inner().unwrap()
}

fn described(db: &MariaDb) -> (dump::Server, Vec<Table>) {
    let (mut session, server) = native::session(db);
    let schema = dump::schema::schema(&mut session, &server, &options(1)).unwrap();
    let tables = native::with_rows(&schema).into_iter().cloned().collect();
    (server, tables)
}

const WHOLE: i64 = (ACCOUNTS * TABLES) as i64 * EACH;

#[test]
fn every_dump_is_of_one_moment_on_every_rung() {
    type Start = fn() -> MariaDb;
    let (writers, dumps) = if long() { (8, 100) } else { (4, 6) };
    let table: [(&str, Start, &str, Rung); 6] = [
        ("10.11", mariadb, "dumper", Rung::Agreed),
        ("11.8", mariadb_11, "dumper", Rung::Agreed),
        (
            "10.11 without a log",
            without_log,
            "locker",
            Rung::LockTables,
        ),
        ("10.11 without a log", without_log, "dumper", Rung::Single),
        ("9.7", mysql, "locker", Rung::LockTables),
        ("9.7", mysql, "dumper", Rung::Single),
    ];
    let mut servers: BTreeMap<&str, (MariaDb, dump::Server, Vec<Table>)> = BTreeMap::new();
    for (name, start, user, rung) in table {
        let (db, server, tables) = servers.entry(name).or_insert_with(|| {
            let db = start();
            bank(&db);
            let (server, tables) = described(&db);
            (db, server, tables)
        });
        for sessions in [2, 4] {
            let ((took, lower), commits) = writing(db, writers, || {
                let _watch = watching(db);
                let (mut took, mut lower) = (vec![], 0);
                for n in 0..dumps {
                    let snapshot = begin(db, user, &options(sessions)).unwrap();
                    // Where the writers leave it no room within its time, a lower rung is taken, and says so.
                    let crowded = snapshot
                        .passed
                        .iter()
                        .any(|(passed, why)| *passed == rung && why.contains("within 2 s"));
                    if crowded {
                        lower += 1;
                    } else {
                        assert_eq!(snapshot.rung, rung, "{name} {user}: {:?}", snapshot.passed);
                    }
                    let there = match snapshot.rung {
                        Rung::Single => 1,
                        _ => sessions,
                    };
                    assert_eq!(snapshot.sessions.len(), there);
                    took.push(snapshot.took);
                    assert_eq!(
                        money(snapshot, server, tables),
                        WHOLE,
                        "{name} {user}: dump {n} of {sessions} sessions"
                    );
                }
                took.sort();
                (took, lower)
            });
            println!(
                "{name}, {rung:?}, {sessions} sessions, {commits} commits/s: {dumps} dumps whole, {lower} of them by a lower rung, snapshot in {:?} (median), {:?} (worst)",
                took[took.len() / 2],
                took[took.len() - 1]
            );
            assert!(lower * 4 <= dumps, "{name}: it hardly ever holds");
            assert!(commits > 20, "{name}: nobody wrote");
        }
    }
}

/// What the test above would see if sessions began each by itself.
#[test]
fn sessions_that_begin_by_themselves_differ() {
    let db = mariadb();
    bank(&db);
    let (server, tables) = described(&db);
    let (differ, _) = writing(&db, 4, || {
        let mut differ = 0;
        for _ in 0..20 {
            let one = begin(&db, "dumper", &options(1)).unwrap();
            let commits = || {
                let mut session = open(&db, "root").unwrap();
                let mut rows = session
                    .query("show global status like 'Binlog_commits'")
                    .unwrap();
                let mut row = rows.read().unwrap().unwrap();
                row.value().unwrap();
                let n: u64 = row.text().unwrap().parse().unwrap();
                rows.finish().unwrap();
                n
            };
            let (before, deadline) = (commits(), Instant::now() + Duration::from_secs(60));
            while commits() < before + 20 {
                assert!(Instant::now() < deadline, "nobody writes");
            }
            let other = begin(&db, "dumper", &options(1)).unwrap();
            let sessions = [one, other].into_iter().flat_map(|s| s.sessions).collect();
            let both = Snapshot {
                sessions,
                ..begin(&db, "dumper", &options(1)).unwrap()
            };
            differ += usize::from(money(both, &server, &tables) != WHOLE);
        }
        differ
    });
    assert!(
        differ > 0,
        "20 dumps of sessions that began at different moments were whole"
    );
}

#[test]
fn rungs_that_do_not_hold_are_told_with_what_is_missing() {
    let told = |snapshot: &Snapshot, rung: Rung| {
        let found = snapshot.passed.iter().find(|(passed, _)| *passed == rung);
        found.map(|(_, why)| why.clone()).unwrap_or_default()
    };
    let db = without_log();
    bank(&db);
    let single = begin(&db, "dumper", &options(3)).unwrap();
    assert_eq!((single.rung, single.sessions.len()), (Rung::Single, 1));
    assert_eq!(
        told(&single, Rung::Agreed),
        "the server writes no binary log"
    );
    let why = told(&single, Rung::LockTables);
    assert!(
        why.starts_with("LOCK TABLES is not granted: ERROR 1044"),
        "{why}"
    );
    assert_eq!(single.position, None);
    // One session needs no rung, and none is told.
    let one = begin(&db, "locker", &options(1)).unwrap();
    assert_eq!((one.rung, one.passed.len()), (Rung::Single, 0));

    // A table that somebody writes to and does not let go of.
    let held = db.hold("begin; update bank.t1 set money = money where id = 1");
    let begun = Instant::now();
    let single = begin(&db, "locker", &options(2)).unwrap();
    let why = told(&single, Rung::LockTables);
    assert!(
        why.starts_with("the lock could not be had within 2 s"),
        "{why}"
    );
    assert!(
        (1..15).contains(&begun.elapsed().as_secs()),
        "{:?}",
        begun.elapsed()
    );
    drop(held);
    // Nothing is left locked, and nobody waits.
    db.sql("set lock_wait_timeout=1; update bank.t0 set money = money; update bank.t1 set money = money");
    assert_eq!(
        begin(&db, "locker", &options(2)).unwrap().rung,
        Rung::LockTables
    );

    // A server that lets in no more.
    db.sql("create user few@'%' identified by 'x' with max_user_connections 2; grant select, lock tables on bank.* to few@'%'");
    let few = begin(&db, "few", &options(4));
    match few {
        Err(Error::Wire { cause, .. }) => assert_eq!(cause.number(), Some(1226)),
        Ok(few) => assert_eq!(few.sessions.len(), 1, "{:?} {:?}", few.passed, few.notes),
        Err(e) => panic!("{e}"),
    }
}

#[test]
fn a_log_that_leaves_something_out_agrees_on_nothing() {
    let db = MariaDb::start_with(&["--log-bin=bin", "--server-id=1", "--binlog-ignore-db=other"]);
    bank(&db);
    let root = begin(&db, "root", &options(2)).unwrap();
    assert_eq!(root.rung, Rung::LockTables);
    assert!(
        root.passed[0].1.contains("leaves databases out"),
        "{:?}",
        root.passed
    );
    // Who may not see that is told.
    let blind = begin(&db, "dumper", &options(2)).unwrap();
    assert_eq!(blind.rung, Rung::Agreed);
    assert!(
        blind.notes.iter().any(|n| n.contains("BINLOG MONITOR")),
        "{:?}",
        blind.notes
    );
    // A replica that does not log what it is sent.
    let source = mariadb();
    let replica = MariaDb::start_with(&["--log-bin=bin", "--server-id=2"]);
    source.sql("create user r@'%' identified by 'x'; grant replication slave on *.* to r@'%'");
    replica.sql(&format!(
        "change master to master_host='127.0.0.1', master_port={}, master_user='r', master_password='x', master_use_gtid=no, master_log_file='bin.000001', master_log_pos=4; start slave",
        source.port
    ));
    bank(&source);
    let deadline = Instant::now() + Duration::from_secs(60);
    while replica
        .try_sql("select money from bank.t3")
        .map_or(true, |rows| rows.lines().count() < ACCOUNTS as usize)
    {
        assert!(
            Instant::now() < deadline,
            "{}",
            replica.sql("show slave status")
        );
        thread::yield_now();
    }
    let of_replica = begin(&replica, "root", &options(2)).unwrap();
    assert_eq!(of_replica.rung, Rung::LockTables);
    assert!(
        of_replica.passed[0].1.contains("log_slave_updates"),
        "{:?}",
        of_replica.passed
    );
}

/// The position is that of the snapshot: what is replayed from there on brings all that came later, and nothing twice.
#[test]
fn the_position_is_exact() {
    for (start, user, rung) in [
        (mariadb as fn() -> MariaDb, "root", Rung::Agreed),
        (mysql, "root", Rung::LockTables),
    ] {
        let db = start();
        bank(&db);
        let (server, tables) = described(&db);
        let ((position, sums), _) = writing(&db, 4, || {
            let snapshot = begin(&db, user, &options(4)).unwrap();
            assert_eq!(snapshot.rung, rung, "{:?}", snapshot.passed);
            let position = snapshot.position.clone().unwrap();
            assert!(!position.gtid.is_empty() || rung == Rung::LockTables);
            let mut sums = vec![];
            let mut sessions = snapshot.sessions;
            for (n, table) in tables.iter().enumerate() {
                let session = &mut sessions[n % 4];
                let mut reader = Reader::default();
                let mut text = vec![];
                native::of_chunk(
                    &mut reader,
                    session,
                    &server,
                    table,
                    &Chunk::default(),
                    &mut text,
                )
                .unwrap();
                sums.push(text);
            }
            // More is written after it.
            let (before, deadline) = (position.offset, Instant::now() + Duration::from_secs(60));
            while log_end(&db, &server).1 < before + 100_000
                && log_end(&db, &server).0 == position.file
            {
                assert!(Instant::now() < deadline);
            }
            (position, sums)
        });
        // The tables as they were, and then what the log holds from there on.
        let (last, end) = log_end(&db, &server);
        assert_eq!(last, position.file);
        db.sql("create database now; create table now.t0 as select * from bank.t0; create table now.t1 as select * from bank.t1;
                create table now.t2 as select * from bank.t2; create table now.t3 as select * from bank.t3");
        let program = match rung {
            Rung::Agreed => "/usr/bin/mariadb-binlog".into(),
            _ => databases::mysql_directory().join("usr/bin/mysqlbinlog"),
        };
        let log = common::run(
            std::process::Command::new(program)
                .arg("--no-defaults")
                .args((rung == Rung::LockTables).then_some("--skip-gtids"))
                .arg(format!("--start-position={}", position.offset))
                .arg(format!("--stop-position={end}"))
                .arg(db.dir.path().join("data").join(&position.file)),
        );
        let mut sql = b"use bank; truncate t0; truncate t1; truncate t2; truncate t3;".to_vec();
        for text in sums {
            sql.extend_from_slice(&text);
        }
        db.load(&sql);
        db.load(&log.stdout);
        for n in 0..TABLES {
            let differ = db.sql(&format!("select count(*) from bank.t{n} a join now.t{n} b using (id) where a.money <> b.money"));
            assert_eq!(differ.trim(), "0", "{rung:?}: t{n}");
        }
    }
}

/// File and end of the server's log.
fn log_end(db: &MariaDb, server: &dump::Server) -> (String, u64) {
    let ask = match server.flavour {
        dump::Flavour::MariaDb => "show master status",
        dump::Flavour::MySql => "show binary log status",
    };
    let text = db.sql(ask);
    let mut words = text.split('\t');
    (
        words.next().unwrap().to_owned(),
        words.next().unwrap().trim().parse().unwrap(),
    )
}
