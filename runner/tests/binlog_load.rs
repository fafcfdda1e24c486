//! What pulling costs, and how far behind it is, while a server commits more than 1,000 transactions a second; and what a day of
//! small segments costs.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    missing_docs,
    reason = "tests"
)]

mod common;

use std::process::Child;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use binlog::{Anchor, Link, Segment};
use common::segments::{
    assert_whole, compare, end_of_log, kept, mariadb, mariadb_11, mysql, stored_up_to,
};
use common::{Finished, MariaDb, Runner};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// Transactions of a batch of a writer.
const BATCH: u64 = 500;
/// Seconds of load.
const LOAD: u64 = 60;

type Start = fn(&[&str]) -> MariaDb;

const SERVERS: [(&str, Start, &str); 3] = [
    ("MariaDB 10.11", mariadb, "show master status"),
    ("MariaDB 11.8", mariadb_11, "show master status"),
    ("MySQL 9.7", mysql, "show binary log status"),
];

fn puller(db: &MariaDb, binlogs: Value) -> Runner {
    asking(Runner::new(db).set("USERNAME", "p"), binlogs)
}

fn asking(runner: Runner, binlogs: Value) -> Runner {
    // What is stored is what the server has: compression is another matter.
    let spec = json!({"action": "Binlogs", "binlogs": binlogs, "compression": {"type": "none"}});
    runner.spec("shop-b-1", None, spec)
}

fn once() -> Value {
    json!({"intervalSeconds": 30})
}

fn until(seconds: u64) -> Value {
    let until = chrono::Utc::now() + chrono::Duration::seconds(seconds.cast_signed());
    json!({"intervalSeconds": 300, "until": crds::time::rfc3339(until)})
}

/// What a process took, as far as it was seen.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    /// Seconds of processor, by /proc/PID/stat.
    processor: f64,
    /// Memory of its own, in KiB.
    own: u64,
    /// With its program and libraries, in KiB.
    whole: u64,
}

impl Cost {
    fn see(&mut self, child: &Child) {
        self.processor = self.processor.max(ticks(&child.id().to_string()));
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let kib = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let number = line.and_then(|l| l.trim().strip_suffix(" kB")?.parse().ok());
            number.unwrap_or(0)
        };
        self.own = self.own.max(kib("RssAnon:"));
        self.whole = self.whole.max(kib("VmHWM:"));
    }

    fn and(self, other: Self) -> Self {
        Self {
            processor: self.processor + other.processor,
            own: self.own.max(other.own),
            whole: self.whole.max(other.whole),
        }
    }
}

/// Runs to its end.
fn watched(runner: &Runner) -> (Finished, Cost) {
    let (started, mut child, mut cost) = (Instant::now(), runner.start(), Cost::default());
    while child.try_wait().unwrap().is_none() {
        cost.see(&child);
        std::thread::sleep(Duration::from_millis(2));
    }
    let done = runner.finish(child, started);
    done.assert_good();
    (done, cost)
}

/// Seconds of processor that SHA-256 of so many bytes takes here.
fn hashing(bytes: u64) -> f64 {
    let block = vec![7_u8; 1 << 20];
    let begun = ticks("thread-self");
    let mut hash = Sha256::new();
    for _ in 0..1024 {
        hash.update(&block);
    }
    assert_ne!(hash.finalize()[..], [0; 32]);
    (ticks("thread-self") - begun) * bytes as f64 / f64::from(1024 << 20)
}

/// Seconds of processor of a process: fields 14 and 15 of proc(5), in hundredths, behind the name, which may hold spaces.
fn ticks(of: &str) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{of}/stat")).unwrap_or_default();
    let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields);
    let ticks = fields.split(' ').skip(11).take(2);
    let ticks: u32 = ticks.filter_map(|t| t.parse::<u32>().ok()).sum();
    f64::from(ticks) / 100.0
}

/// Seconds of processor for each GB, without the three times that each byte is hashed: as it comes, as it is stored, as it is read
/// back.
fn beyond_hashing(cost: Cost, bytes: u64) -> f64 {
    (cost.processor - 3.0 * hashing(bytes)).max(0.0) / (bytes as f64 / 1e9)
}

/// Commits until it is told to end; counts them.
fn write(db: &MariaDb, writer: u64, ends: &AtomicBool, count: &AtomicU64) {
    let text: String = (0..BATCH)
        .map(|n| {
            format!(
                "insert w.l (k, v) values ({}, repeat('{writer}', 120));\n",
                n * 7
            )
        })
        .collect();
    while !ends.load(Ordering::Relaxed) {
        db.load(text.as_bytes());
        count.fetch_add(BATCH, Ordering::Relaxed);
    }
}

/// What was committed and is not stored yet, and how long the slowest took.
struct Lag<'a> {
    db: &'a MariaDb,
    status: &'static str,
    open: Vec<((String, u64), Instant)>,
    most: Duration,
}

impl Lag<'_> {
    fn look(&mut self, runner: &Runner, committing: bool) {
        if committing {
            let end = end_of_log(self.db, self.status);
            self.open.push((end, Instant::now()));
        }
        let stored = stored_up_to(runner);
        let most = &mut self.most;
        self.open.retain(|(place, committed)| {
            let behind = *place > stored;
            if !behind {
                *most = (*most).max(committed.elapsed());
            }
            behind
        });
    }
}

/// Load for a minute, pulled each 30 seconds or by one that stays; gives the greatest lag.
fn under_load(name: &str, start: Start, status: &'static str, stays: bool) -> Duration {
    let db = start(&["--sync-binlog=0", "--innodb-flush-log-at-trx-commit=0"]);
    db.sql(
        "create table w.l (id int primary key auto_increment, k int, v varchar(200)) engine=innodb",
    );
    let mut runner = puller(&db, once());
    runner.run().assert_good();
    let (ends, count) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut lag = Lag {
        db: &db,
        status,
        open: vec![],
        most: Duration::ZERO,
    };
    let mut total = Cost::default();
    let (mut bytes, mut segments, mut rate) = (0, 0, 0.0);
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for writer in 0..2 {
            let (db, ends, count) = (&db, &ends, &count);
            scope.spawn(move || write(db, writer, ends, count));
        }
        let load = Duration::from_secs(LOAD);
        for pull in 1.. {
            if stays {
                let before = std::mem::replace(&mut runner, Runner::bare());
                runner = asking(before, until(LOAD + 3));
            } else {
                while begun.elapsed() < Duration::from_secs(30 * pull) {
                    lag.look(&runner, !ends.load(Ordering::Relaxed));
                }
            }
            let last = stays || begun.elapsed() >= load;
            if last && !stays {
                rate = count.load(Ordering::Relaxed) as f64 / begun.elapsed().as_secs_f64();
                ends.store(true, Ordering::Relaxed);
            }
            let (started, mut child, mut cost) = (Instant::now(), runner.start(), Cost::default());
            while child.try_wait().unwrap().is_none() {
                cost.see(&child);
                if begun.elapsed() >= load && !ends.swap(true, Ordering::Relaxed) {
                    rate = count.load(Ordering::Relaxed) as f64 / begun.elapsed().as_secs_f64();
                }
                lag.look(&runner, !ends.load(Ordering::Relaxed));
            }
            let done = runner.finish(child, started);
            done.assert_good();
            let report = done.report.binlogs.unwrap();
            assert!(report.gaps.is_empty(), "{:?}", report.gaps);
            bytes += report.bytes.cast_unsigned();
            segments += report.segments;
            total = total.and(cost);
            if last {
                return;
            }
        }
    });
    // Of a batch that was on its way.
    runner = asking(runner, once());
    db.sql("flush binary logs");
    watched(&runner);
    lag.look(&runner, false);
    assert!(lag.open.is_empty(), "{:?}", lag.open);
    let kept = kept(&runner, None);
    assert_whole(&kept);
    let files = compare(&db, &kept);
    let how = if stays { "continuous" } else { "each 30 s" };
    println!(
        "| {name} | {how} | {rate:.0} | {} | {segments} | {files} files equal | {:.1} | {:.2} | {:.1} | {:.1} |",
        bytes / 1_000_000,
        lag.most.as_secs_f64(),
        total.processor,
        total.own as f64 / 1024.0,
        total.whole as f64 / 1024.0,
    );
    assert!(rate >= 1000.0, "{rate} commits a second");
    assert!(files > 0);
    assert!(total.own < 32 << 10, "{total:?}");
    lag.most
}

#[test]
#[ignore = "make test-long: minutes of load on each server"]
fn at_a_thousand_commits_a_second_pulls_are_seconds_behind_and_byte_for_byte() {
    println!(
        "| server | pulled | commits/s | MB | segments | | most behind, s | processor, s | own MiB | resident MiB |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for (name, start, status) in SERVERS {
        let behind = under_load(name, start, status, false);
        assert!(behind <= Duration::from_secs(60), "{behind:?}");
        let behind = under_load(name, start, status, true);
        assert!(behind <= Duration::from_secs(10), "{behind:?}");
    }
}

#[test]
#[ignore = "make test-long: logs of hundreds of megabytes"]
fn a_gigabyte_costs_a_second_of_processor_beyond_hashing() {
    println!(
        "| server | log | MB | processor, s | of it hashing, s | s/GB beyond | own MiB | resident MiB |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for (name, start, _) in SERVERS {
        for (what, transactions, size) in [
            ("rows of 120 bytes", 100_000_u64, 120),
            ("rows of 8 KB", 60_000, 8000),
        ] {
            let db = start(&["--sync-binlog=0", "--innodb-flush-log-at-trx-commit=0"]);
            db.sql("create table w.l (id int primary key auto_increment, v varchar(8000)) engine=innodb");
            let text: String = (0..transactions)
                .map(|n| format!("insert w.l (v) values (repeat('{}', {size}));\n", n % 10))
                .collect();
            db.load(text.as_bytes());
            let runner = puller(&db, once());
            let (done, cost) = watched(&runner);
            let report = done.report.binlogs.unwrap();
            let bytes = report.bytes.cast_unsigned();
            let beyond = beyond_hashing(cost, bytes);
            println!(
                "| {name} | {what} | {} | {:.2} | {:.2} | {beyond:.2} | {:.1} | {:.1} |",
                bytes / 1_000_000,
                cost.processor,
                3.0 * hashing(bytes),
                cost.own as f64 / 1024.0,
                cost.whole as f64 / 1024.0,
            );
            assert!(cost.own < 32 << 10, "{cost:?}");
        }
    }
}

/// Many small segments: 20,000 of a day are found, listed and gone on from.
#[test]
#[ignore = "make test-long: 20,000 segments"]
fn twenty_thousand_segments_of_a_day_are_gone_on_from_and_listed() {
    const COUNT: u64 = 20_000;
    let db = mariadb(&[]);
    let runner = puller(&db, once());
    runner.run().assert_good();
    let files = runner.files();
    let of = |ends: &str| {
        files
            .iter()
            .find(|f| f.contains("/0000") && f.ends_with(ends))
    };
    let (manifest, bytes) = (of(".json").unwrap(), of(".binlog").unwrap());
    let mut stored: Value = serde_json::from_slice(&runner.read(manifest)).unwrap();
    let real: Segment = serde_json::from_value(stored["segment"].clone()).unwrap();
    let raw = runner.read(bytes);
    let root = runner.sql_path();
    let place = |number: u64, name: &str| {
        let at = manifest.replace("/000000/000000000.json", "");
        format!("{at}/{:06}/{number:09}.{name}", number / 1000)
    };
    std::fs::remove_file(root.join(manifest)).unwrap();
    std::fs::remove_file(root.join(bytes)).unwrap();
    let mut previous = None::<Segment>;
    for number in 0..=COUNT {
        let directory = root.join(place(number, "json"));
        std::fs::create_dir_all(directory.parent().unwrap()).unwrap();
        let (from, link) = match &previous {
            None => (4_000_000_000, Link::First),
            Some(before) => {
                let previous = before.digest();
                (before.to, Link::Follows { previous })
            }
        };
        let mut segment = Segment {
            from,
            to: from + raw.len() as u64,
            last_event: Anchor {
                position: from,
                sum: 0,
            },
            file: "bin.000000".into(),
            before: real.after.clone(),
            link,
            ..real.clone()
        };
        if number == COUNT {
            // The one that the server knows.
            segment = Segment {
                link: segment.link,
                ..real.clone()
            };
        }
        let key = place(number, "0a1b2c3d.binlog");
        std::fs::write(root.join(&key), &raw).unwrap();
        stored["key"] = json!(key);
        stored["segment"] = serde_json::to_value(&segment).unwrap();
        std::fs::write(root.join(place(number, "json")), stored.to_string()).unwrap();
        previous = Some(segment);
    }
    db.sql("insert w.t values (1, 'a')");
    let (done, cost) = watched(&runner);
    let report = done.report.binlogs.unwrap();
    assert_eq!((report.segments, report.gaps.len()), (1, 0));
    println!("a pull behind {COUNT} segments: {:?}, {cost:?}", done.took);
    let out = runner.sql_path().display().to_string();
    let list =
        puller(&db, once())
            .set("SQLPATH", out)
            .spec("shop-list", None, json!({"action": "List"}));
    let begun = Instant::now();
    let from = crds::time::rfc3339(chrono::Utc::now() + chrono::Duration::hours(1));
    let mut command = list.command();
    let said = command
        .args(["download", "binlogs", "--from", &from])
        .output()
        .unwrap();
    println!(
        "the chain of {COUNT} segments: {:?}, {} bytes said",
        begun.elapsed(),
        said.stdout.len()
    );
    assert!(
        said.status.success(),
        "{}",
        String::from_utf8_lossy(&said.stderr)
    );
}
