//! Binary logs pulled from real servers (MariaDB 10.11 and 11.8, MySQL 9.7): byte for byte, and each gap named.
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
use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use binlog::chain::chain;
use binlog::{Cause, Error, Fault, Limits, Link, Pulled, Request, Segment, Sink};
use common::{MariaDb, databases, run};
use wire::{Address, Connection, Settings};

/// A server's kind, and how it says what is tested.
#[derive(Clone, Copy)]
struct Kind {
    name: &'static str,
    start: fn(&[&str]) -> MariaDb,
    options: &'static [&'static str],
    rights: &'static str,
    decoder: fn() -> PathBuf,
    decoder_options: &'static [&'static str],
    reset: &'static str,
    own: &'static str,
}

const COMMON: [&str; 3] = ["--log-bin=bin", "--binlog-format=row", "--sync-binlog=0"];

const KINDS: [Kind; 3] = [
    Kind {
        name: "MariaDB 10.11",
        start: MariaDb::start_with,
        options: &["--binlog-checksum=CRC32"],
        rights: "replication slave, binlog monitor",
        decoder: || "/usr/bin/mariadb-binlog".into(),
        decoder_options: &[],
        reset: "reset master",
        own: "set session gtid_domain_id=7; insert w.t values (-1,'d'); set session gtid_domain_id=0;",
    },
    Kind {
        name: "MariaDB 11.8",
        start: databases::mariadb_11,
        options: &["--binlog-checksum=CRC32", "--log-bin-compress"],
        rights: "replication slave, binlog monitor",
        decoder: || databases::mariadb_11_directory().join("usr/bin/mariadb-binlog"),
        decoder_options: &[],
        reset: "reset master",
        own: "set session gtid_domain_id=7; insert w.t values (-1,'d'); set session gtid_domain_id=0;",
    },
    Kind {
        name: "MySQL 9.7",
        start: databases::mysql,
        options: &["--gtid-mode=ON", "--enforce-gtid-consistency=ON"],
        rights: "replication slave, replication client",
        decoder: || databases::mysql_directory().join("usr/bin/mysqlbinlog"),
        decoder_options: &["--skip-gtids"],
        reset: "reset binary logs and gtids",
        own: "set gtid_next='automatic:tag_a'; insert w.t values (-1,'d'); set gtid_next='automatic';
              set session binlog_transaction_compression=on; insert w.t values (-2, repeat('z', 300));
              set session binlog_transaction_compression=off;",
    },
];

/// The user that pulls may read the log and nothing else.
fn started(kind: &Kind, id: u32, more: &[&str]) -> MariaDb {
    let id = format!("--server-id={id}");
    let mut options: Vec<&str> = COMMON.iter().chain(kind.options).copied().collect();
    options.push(&id);
    options.extend(more);
    (kind.start)(&options)
}

fn with_user(db: &MariaDb, kind: &Kind) {
    db.sql(&format!(
        "create user p@'%' identified by 'x'; grant {} on *.* to p@'%';
         create database w; create table w.t (id int primary key, v longtext) engine=innodb;
         create table w.n (id int primary key auto_increment, v int) engine=innodb",
        kind.rights
    ));
}

/// Segments as they were stored.
#[derive(Default)]
struct Kept {
    segments: Vec<(Segment, Vec<u8>)>,
    open: Vec<u8>,
    largest: usize,
    abandoned: usize,
}

impl Sink for Kept {
    fn begin(&mut self, _: &str, _: u64) -> io::Result<()> {
        self.open.clear();
        Ok(())
    }
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.largest = self.largest.max(bytes.len());
        self.open.extend_from_slice(bytes);
        Ok(())
    }
    fn end(&mut self, segment: &Segment) -> io::Result<()> {
        assert_eq!(segment.to - segment.from, self.open.len() as u64);
        let bytes = std::mem::take(&mut self.open);
        self.segments.push((segment.clone(), bytes));
        Ok(())
    }
    fn abandon(&mut self) {
        self.open.clear();
        self.abandoned += 1;
    }
}

impl Kept {
    fn pull(&mut self, db: &MariaDb, limits: Limits) -> Result<Pulled, Error> {
        let last = self.segments.last().map(|(segment, _)| segment.clone());
        pull(db, last.as_ref(), limits, self)
    }

    /// The files of a server as far as they were stored, joined.
    fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let mut files: BTreeMap<String, Vec<u8>> = BTreeMap::new();
        for (segment, bytes) in &self.segments {
            let file = files.entry(segment.file.clone()).or_default();
            assert_eq!(file.len() as u64, segment.from, "{}", segment.file);
            file.extend_from_slice(bytes);
        }
        files
    }

    fn described(&self) -> Vec<Segment> {
        self.segments.iter().map(|(s, _)| s.clone()).collect()
    }
}

fn pull(
    db: &MariaDb,
    last: Option<&Segment>,
    limits: Limits,
    sink: &mut dyn Sink,
) -> Result<Pulled, Error> {
    let address = Address::Tcp("127.0.0.1".into(), db.port);
    let mut settings = Settings::new(address, "p", "x".to_owned().into());
    settings.limits.idle = Some(Duration::from_secs(120));
    let request = Request {
        last,
        first: binlog::plan::First::Oldest,
        server_id: binlog::replica(db.port.to_string().as_bytes()),
        limits,
    };
    let mut open = || Connection::open(&settings);
    binlog::pull(&mut open, &request, &mut || Duration::ZERO, sink)
}

/// Small segments, so that much is cut.
const SMALL: Limits = Limits {
    bytes: 20_000,
    age: Duration::MAX,
};

/// Each closed file is what was stored of it; the last may be still written.
fn compare(db: &MariaDb, kept: &Kept, name: &str) -> usize {
    let files = kept.files();
    let last = files.keys().last().unwrap().clone();
    let mut whole = 0;
    for (file, bytes) in &files {
        let mut on_disk = std::fs::read(db.dir.path().join("data").join(file)).unwrap();
        if *file == last {
            continue;
        }
        // Of a file that a killed server left, the first event still says that it is in use; what is sent never says so, and
        // its checksum is made without it (LOG_EVENT_BINLOG_IN_USE_F).
        on_disk[4 + 17] &= !1;
        let differs = bytes.iter().zip(&on_disk).position(|(a, b)| a != b);
        assert!(
            bytes.len() == on_disk.len() && differs.is_none(),
            "{name}: {file} of {} bytes and {} differs at {differs:?}",
            on_disk.len(),
            bytes.len()
        );
        whole += 1;
    }
    whole
}

fn writes(from: u32, count: u32) -> String {
    (from..from + count)
        .map(|i| format!("insert w.n (v) values ({i});\n"))
        .collect()
}

#[test]
fn segments_joined_are_the_servers_files() {
    for kind in &KINDS {
        let mut db = started(kind, 1, &["--max-binlog-size=131072"]);
        with_user(&db, kind);
        let mut kept = Kept::default();
        // Pulled again and again while it is written.
        let begun = std::time::Instant::now();
        let commits = std::thread::scope(|scope| {
            let writers: Vec<_> = (0..2)
                .map(|n| {
                    scope.spawn({
                        let db = &db;
                        move || db.sql(&writes(n * 10_000, 3000))
                    })
                })
                .collect();
            while !writers
                .iter()
                .all(std::thread::ScopedJoinHandle::is_finished)
            {
                let pulled = kept
                    .pull(&db, SMALL)
                    .unwrap_or_else(|e| panic!("{}: {e}", kind.name));
                assert!(pulled.gaps.is_empty() && pulled.joins == 0 && pulled.broken.is_none());
                assert!(pulled.seen.is_some());
            }
            6000
        });
        let rate = f64::from(commits) / begun.elapsed().as_secs_f64();
        let during = kept.segments.len();
        // One event above the protocol's packet, several domains, tags, what is compressed, DDL.
        db.sql(&format!(
            "insert w.t values (1, repeat('z', 17000000)); update w.t set v = 'x' where id = 1; {}
             create table w.d as select * from w.n limit 10; alter table w.d add column c int; drop table w.d;
             begin; insert w.t values (2,'a'); savepoint s; insert w.t values (3,'b'); rollback to s; commit",
            kind.own
        ));
        kept.pull(&db, SMALL).unwrap();
        assert!(kept.largest < 2 << 20, "{}", kept.largest);
        // Replayed by the family's own program it gives the same tables.
        let wanted = db.sql("checksum table w.t, w.n");
        let dir = tempfile::tempdir().unwrap();
        let mut decode = Command::new((kind.decoder)());
        decode.arg("--no-defaults").args(kind.decoder_options);
        for (file, bytes) in kept.files() {
            let path = dir.path().join(file);
            std::fs::write(&path, bytes).unwrap();
            decode.arg(path);
        }
        let statements = run(&mut decode).stdout;
        let other = started(kind, 2, &[]);
        other.load(&statements);
        assert_eq!(
            other.sql("checksum table w.t, w.n"),
            wanted,
            "{}",
            kind.name
        );
        drop(other);
        // Two-phase commits, a restart in order and one after kill -9.
        db.sql(
            "xa start 'x1'; insert w.t values (5,'e'); xa end 'x1'; xa prepare 'x1'; xa commit 'x1';
             xa start 'x2'; insert w.t values (6,'f'); xa end 'x2'; xa prepare 'x2'; xa rollback 'x2';
             xa start 'x3'; insert w.t values (7,'g'); xa end 'x3'; xa commit 'x3' one phase",
        );
        kept.pull(&db, SMALL).unwrap();
        db.shut_down();
        db.start_again();
        db.sql("insert w.t values (8,'h')");
        kept.pull(&db, SMALL).unwrap();
        db.sql("insert w.t values (9,'i')");
        db.kill();
        db.start_again();
        db.sql("insert w.t values (10,'j')");
        let pulled = kept.pull(&db, SMALL).unwrap();
        assert!(
            pulled.gaps.is_empty() && pulled.joins == 0,
            "{}: {pulled:?}",
            kind.name
        );
        // Nothing new is nothing, and seen. MariaDB adds a checkpoint of its own some time after a file has begun.
        db.sql("flush binary logs");
        kept.pull(&db, SMALL).unwrap();
        let until = Instant::now() + Duration::from_secs(60);
        let pulled = loop {
            let pulled = kept.pull(&db, SMALL).unwrap();
            if pulled.count.segments == 0 || Instant::now() > until {
                break pulled;
            }
        };
        assert!(pulled.count.segments == 0 && pulled.last.is_none() && pulled.seen.is_some());
        let whole = compare(&db, &kept, kind.name);
        let chain = chain(&kept.described());
        assert_eq!(chain.windows.len(), 1, "{}: {:?}", kind.name, chain.gaps);
        assert_eq!(chain.windows[0].segments.len(), kept.segments.len());
        assert!(whole > 5 && chain.spare.is_empty() && kept.abandoned == 0);
        println!(
            "{}: {rate:.0} commits/s, {during} segments meanwhile, {} in all, {whole} files equal",
            kind.name,
            kept.segments.len()
        );
    }
}

/// Removes all files but the newest. The server keeps one for a while that it may need after a crash.
fn purge(db: &MariaDb) {
    common::servers::wait_for("removal of binary logs", || {
        let listed = db.sql("show binary logs");
        let newest = listed.lines().last().unwrap().split('\t').next().unwrap();
        db.sql(&format!("purge binary logs to '{newest}'"));
        listed.lines().count() == 1
    });
}

#[test]
fn what_is_gone_is_a_gap_with_its_name() {
    for kind in &KINDS {
        let db = started(kind, 1, &[]);
        with_user(&db, kind);
        let mut kept = Kept::default();
        kept.pull(&db, SMALL).unwrap();
        // Removed after it was read: no gap, though the file's last event, which only names the next, was not there yet.
        db.sql("flush binary logs");
        purge(&db);
        db.sql("insert w.t values (1,'a')");
        let pulled = kept.pull(&db, SMALL).unwrap();
        assert_eq!(
            (pulled.gaps, pulled.count.transactions),
            (vec![], 1),
            "{}",
            kind.name
        );
        assert!(chain(&kept.described()).gaps.is_empty());
        // Removed before.
        db.sql("insert w.t values (2,'b'); flush binary logs; insert w.t values (3,'c'); flush binary logs");
        purge(&db);
        db.sql("insert w.t values (4,'d')");
        let before = kept.segments.len();
        let pulled = kept.pull(&db, SMALL).unwrap();
        assert_eq!(
            (pulled.gaps, pulled.count.transactions),
            (vec![Cause::Purged], 1),
            "{}",
            kind.name
        );
        assert!(matches!(
            kept.segments[before].0.link,
            Link::Gap {
                cause: Cause::Purged,
                ..
            }
        ));
        // Begun anew, with a lower number; and again while it has the same name and has grown beyond what was stored.
        db.sql(&format!("{}; insert w.t values (5,'e')", kind.reset));
        let pulled = kept.pull(&db, SMALL).unwrap();
        assert_eq!(
            (pulled.gaps, pulled.count.transactions),
            (vec![Cause::Reset], 1),
            "{}",
            kind.name
        );
        let stored = kept.segments.last().unwrap().0.clone();
        common::next_second();
        db.sql(&format!("{}; {}", kind.reset, writes(1, 100)));
        let pulled = kept.pull(&db, SMALL).unwrap();
        let last = pulled.last.unwrap();
        assert!(last.file == stored.file && last.to > stored.to);
        assert_eq!(
            (pulled.gaps, pulled.count.transactions),
            (vec![Cause::Reset], 100),
            "{}",
            kind.name
        );
        // Within the same second the events themselves tell.
        db.sql(&format!("{}; {}", kind.reset, writes(1, 200)));
        let pulled = kept.pull(&db, SMALL).unwrap();
        assert_eq!(
            (pulled.gaps, pulled.count.transactions),
            (vec![Cause::Reset], 200),
            "{}",
            kind.name
        );
        let chain = chain(&kept.described());
        let causes: Vec<Cause> = chain.gaps.iter().map(|gap| gap.cause).collect();
        assert_eq!(
            causes,
            [Cause::Purged, Cause::Reset, Cause::Reset, Cause::Reset]
        );
    }
}

#[test]
fn a_log_is_joined_where_another_server_goes_on() {
    for kind in [&KINDS[0], &KINDS[2]] {
        let mysql = kind.name.starts_with("MySQL");
        let one = started(kind, 1, &[]);
        let follower: &[&str] = if mysql { &[] } else { &["--log-slave-updates"] };
        let two = started(kind, 2, follower);
        with_user(&one, kind);
        let (port, position) = (one.port, |db: &MariaDb| {
            let name = if mysql {
                "gtid_executed"
            } else {
                "gtid_binlog_pos"
            };
            db.sql(&format!("select @@global.{name}"))
                .trim()
                .replace("\\n", "")
        });
        let follow = if mysql {
            format!(
                "change replication source to source_host='127.0.0.1', source_port={port}, source_user='p', source_password='x', source_auto_position=1, get_source_public_key=1; start replica"
            )
        } else {
            format!(
                "change master to master_host='127.0.0.1', master_port={port}, master_user='p', master_password='x', master_use_gtid=slave_pos; start slave"
            )
        };
        two.sql(&follow);
        let caught_up = || {
            let wait = if mysql {
                "wait_for_executed_gtid_set"
            } else {
                "master_gtid_wait"
            };
            let done = two.sql(&format!("select {wait}('{}', 60)", position(&one)));
            assert_eq!(done.trim(), "0", "{}", kind.name);
        };
        one.sql("insert w.t values (1,'a'); flush binary logs; insert w.t values (2,'b')");
        caught_up();
        let mut kept = Kept::default();
        kept.pull(&one, SMALL).unwrap();
        // The other takes over, behind the same name.
        two.sql(if mysql {
            "stop replica; set global read_only=0"
        } else {
            "stop slave"
        });
        two.sql("insert w.t values (3,'c'); flush binary logs; insert w.t values (4,'d')");
        let before = kept.segments.len();
        let pulled = kept.pull(&two, SMALL).unwrap();
        assert_eq!(
            (pulled.gaps, pulled.joins, pulled.count.transactions),
            (vec![], 1, 2),
            "{}",
            kind.name
        );
        assert!(matches!(kept.segments[before].0.link, Link::Joins { .. }));
        // And goes on as any other.
        two.sql("insert w.t values (5,'e')");
        let pulled = kept.pull(&two, SMALL).unwrap();
        assert_eq!(
            (pulled.gaps, pulled.joins, pulled.count.transactions),
            (vec![], 0, 1)
        );
        let chain_one = chain(&kept.described());
        assert_eq!(
            (chain_one.windows.len(), chain_one.gaps.len()),
            (1, 0),
            "{:?}",
            chain_one.gaps
        );
        // The first has not what came since: that is a gap.
        one.sql("insert w.t values (3,'other')");
        let pulled = kept.pull(&one, SMALL).unwrap();
        assert_eq!(
            (pulled.gaps, pulled.joins),
            (vec![Cause::OtherServer], 0),
            "{}",
            kind.name
        );
        assert_eq!(chain(&kept.described()).gaps.len(), 1);
    }
}

/// A store that fails at one of its calls: what it was told before has happened.
struct Failing<'a> {
    kept: &'a mut Kept,
    calls: u64,
}

impl Failing<'_> {
    fn call(&mut self) -> io::Result<()> {
        self.calls = self.calls.saturating_sub(1);
        if self.calls == 0 {
            return Err(io::Error::other("no space"));
        }
        Ok(())
    }
}

impl Sink for Failing<'_> {
    fn begin(&mut self, file: &str, from: u64) -> io::Result<()> {
        self.call()?;
        self.kept.begin(file, from)
    }
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.call()?;
        self.kept.write(bytes)
    }
    fn end(&mut self, segment: &Segment) -> io::Result<()> {
        self.call()?;
        self.kept.end(segment)
    }
    fn abandon(&mut self) {
        self.kept.abandon();
    }
}

#[test]
fn a_store_that_fails_anywhere_loses_nothing() {
    for kind in [&KINDS[0], &KINDS[2]] {
        let mut db = started(kind, 1, &["--max-binlog-size=65536"]);
        with_user(&db, kind);
        let mut kept = Kept::default();
        // A fixed sequence without order (Knuth's MMIX).
        let mut random = 1_u64;
        let mut failures = 0;
        for round in 0..60_u32 {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let large = if round % 7 == 3 {
                "insert w.t select max(id) + 1, repeat('y', 3000000) from w.t;"
            } else {
                ""
            };
            db.sql(&format!(
                "insert ignore w.t values (0, ''); {}{large}",
                writes(round * 100, 40)
            ));
            if round == 40 {
                db.kill();
                db.start_again();
            }
            let calls = (random >> 33) % 12 + 1;
            let last = kept.segments.last().map(|(segment, _)| segment.clone());
            let mut failing = Failing {
                kept: &mut kept,
                calls,
            };
            let outcome = pull(&db, last.as_ref(), SMALL, &mut failing);
            match outcome {
                Ok(pulled) => assert!(pulled.gaps.is_empty() && pulled.broken.is_none()),
                Err(Error::Sink(e)) => {
                    assert_eq!(e.to_string(), "no space");
                    failures += 1;
                }
                Err(e) => panic!("{}: {e}", kind.name),
            }
        }
        db.sql("flush binary logs");
        let pulled = kept.pull(&db, SMALL).unwrap();
        assert!(pulled.gaps.is_empty() && pulled.seen.is_some());
        let whole = compare(&db, &kept, kind.name);
        let chain = chain(&kept.described());
        assert_eq!(
            (chain.windows.len(), chain.spare.len()),
            (1, 0),
            "{:?}",
            chain.gaps
        );
        assert!(failures > 20 && whole > 3, "{failures} {whole}");
        println!(
            "{}: {failures} failures, {} segments, {whole} files equal",
            kind.name,
            kept.segments.len()
        );
    }
}

#[test]
fn what_can_not_be_stored_is_refused() {
    let kind = &KINDS[0];
    let keys = tempfile::tempdir().unwrap();
    run(Command::new("chmod").arg("755").arg(keys.path()));
    let file = keys.path().join("keys");
    std::fs::write(&file, "1;770A8A65DA156D24EE2A093277530142\n").unwrap();
    let name = format!("--file-key-management-filename={}", file.display());
    let encrypted = [
        "--plugin-load-add=file_key_management",
        &name,
        "--encrypt-binlog=ON",
    ];
    let db = started(kind, 1, &encrypted);
    with_user(&db, kind);
    let mut kept = Kept::default();
    match kept.pull(&db, SMALL) {
        Err(Error::Encrypted(file)) => assert_eq!(file, "bin.000001"),
        other => panic!("{other:?}"),
    }
    // No checksums; no log; no right.
    let db = started(kind, 1, &["--binlog-checksum=NONE"]);
    with_user(&db, kind);
    match kept.pull(&db, SMALL) {
        Err(Error::Broken(at)) => assert_eq!(at.fault, Fault::NoChecksum),
        other => panic!("{other:?}"),
    }
    db.sql("revoke replication slave on *.* from p@'%'");
    let words = kept.pull(&db, SMALL).unwrap_err().to_string();
    assert!(words.contains("REPLICATION SLAVE"), "{words}");
    let db = MariaDb::start_with(&["--server-id=1"]);
    with_user(&db, kind);
    assert!(matches!(kept.pull(&db, SMALL), Err(Error::Off)));
    assert!(kept.segments.is_empty());
}
