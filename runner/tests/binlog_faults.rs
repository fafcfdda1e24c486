//! What happens to runs that pull binary logs, to the server and to the store, at random: each transaction is stored, or lies in a
//! gap that is named with its moments. The seed is printed; KUBECTL_BACKUP_SEED sets it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    missing_docs,
    reason = "tests"
)]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use binlog::Segment;
use binlog::chain::chain;
use common::segments::{decoded, mariadb, mysql};
use common::{MariaDb, Runner};
use serde_json::{Value, json};

/// A sequence without order (Knuth's MMIX).
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

const FAULTS: [&str; 11] = [
    "none",
    "runner killed",
    "server killed and restarted",
    "log removed before it was read",
    "log begun anew",
    "store away",
    "newest manifest lost",
    "segment lost",
    "segment altered",
    "manifests exchanged",
    "clock stepped",
];

/// A server, what is stored of it, and what was committed.
struct World {
    db: MariaDb,
    runner: Runner,
    random: Random,
    reset: &'static str,
    /// Each transaction's mark and the second it was committed in, by the server's clock.
    marks: Vec<(String, u64)>,
    /// How far that clock is from ours, in seconds.
    step: i64,
    whole_run: Duration,
    /// The marks that are in what lies at a key.
    known: BTreeMap<String, Vec<Vec<u8>>>,
}

fn now() -> u64 {
    std::time::UNIX_EPOCH.elapsed().unwrap().as_secs()
}

impl World {
    fn new(db: MariaDb, reset: &'static str, seed: u64) -> Self {
        let runner = Runner::new(&db).set("USERNAME", "p").spec(
            "shop-b-1",
            None,
            json!({"action": "Binlogs", "binlogs": {"intervalSeconds": 300}}),
        );
        let begun = Instant::now();
        runner.run().assert_good();
        Self {
            db,
            runner,
            random: Random(seed),
            reset,
            marks: vec![],
            step: 0,
            whole_run: begun.elapsed(),
            known: BTreeMap::new(),
        }
    }

    fn write(&mut self) {
        for _ in 0..=self.random.below(6) {
            let mark = format!("mark-{:06}-", self.marks.len());
            let size = match self.random.below(12) {
                0 => 1_500_000,
                n => n * 100,
            };
            let second = now().checked_add_signed(self.step).unwrap();
            // What a session says of its clock is what the log then says.
            let clock = match self.step {
                0 => String::new(),
                _ => format!("set timestamp={second}; "),
            };
            self.db.sql(&format!(
                "{clock}replace w.t values ({}, concat('{mark}', repeat('x', {size})))",
                self.marks.len() % 50
            ));
            let second = now().checked_add_signed(self.step).unwrap();
            self.marks.push((mark, second));
        }
    }

    fn stored(&self, end: &str) -> Vec<PathBuf> {
        let files = self.runner.files().into_iter();
        let mut found: Vec<String> = files
            .filter(|f| {
                f.contains("/binlogs/")
                    && f.contains(end)
                    && !f.contains("seen")
                    && !f.contains("/.")
            })
            .collect();
        found.sort();
        found
            .iter()
            .map(|f| self.runner.sql_path().join(f))
            .collect()
    }

    fn pick(&mut self, mut from: Vec<PathBuf>) -> Option<PathBuf> {
        // Not the newest: that is a fault of its own.
        from.pop();
        let n = from.len() as u64;
        (n > 0).then(|| from.swap_remove(usize::try_from(self.random.below(n)).unwrap()))
    }

    /// True if the fault could be made.
    fn happen(&mut self, fault: usize) -> bool {
        match FAULTS[fault] {
            "runner killed" => {
                let mut child = self.runner.start();
                let after = self
                    .whole_run
                    .mul_f64(self.random.below(1200) as f64 / 1000.0);
                std::thread::sleep(after);
                let _ = child.kill();
                child.wait().unwrap();
            }
            "server killed and restarted" => {
                self.db.kill();
                self.db.start_again();
            }
            "log removed before it was read" => {
                self.db.sql("flush binary logs");
                self.write();
                self.db.sql("flush binary logs");
                let listed = self.db.sql("show binary logs");
                let newest = listed
                    .lines()
                    .last()
                    .unwrap()
                    .split('\t')
                    .next()
                    .unwrap()
                    .to_owned();
                let _ = self.db.try_sql(&format!("purge binary logs to '{newest}'"));
            }
            "log begun anew" => {
                self.db.sql(self.reset);
            }
            "store away" => {
                let (here, away) = (self.runner.sql_path(), self.runner.out.path().join("away"));
                std::fs::rename(&here, &away).unwrap();
                let done = self.runner.run();
                assert_ne!(done.code, Some(0), "{}", done.report.message);
                std::fs::rename(&away, &here).unwrap();
            }
            "newest manifest lost" => match self.stored(".json").pop() {
                Some(path) => std::fs::remove_file(path).unwrap(),
                None => return false,
            },
            "segment lost" => match self.pick(self.stored(".json")) {
                Some(path) => std::fs::remove_file(path).unwrap(),
                None => return false,
            },
            "segment altered" => {
                let Some(path) = self.pick(self.stored(".binlog")) else {
                    return false;
                };
                let whole = std::fs::read(&path).unwrap();
                let mut altered = whole.clone();
                let at = usize::try_from(self.random.below(whole.len() as u64)).unwrap();
                altered[at] ^= 1 << self.random.below(8);
                std::fs::write(&path, &altered).unwrap();
                let tested = std::process::Command::new("zstd")
                    .arg("-tq")
                    .arg(&path)
                    .status()
                    .unwrap();
                let listed = String::from_utf8(
                    common::run(std::process::Command::new("sha256sum").arg(&path)).stdout,
                )
                .unwrap();
                let named = self
                    .stored(".json")
                    .iter()
                    .any(|m| std::fs::read_to_string(m).unwrap().contains(&listed[..64]));
                assert!(
                    !tested.success() || !named,
                    "an altered segment fits its manifest"
                );
                std::fs::write(&path, &whole).unwrap();
            }
            "manifests exchanged" => {
                let all = self.stored(".json");
                let (Some(one), Some(other)) = (self.pick(all.clone()), self.pick(all)) else {
                    return false;
                };
                let (a, b) = (std::fs::read(&one).unwrap(), std::fs::read(&other).unwrap());
                std::fs::write(&one, b).unwrap();
                std::fs::write(&other, a).unwrap();
            }
            "clock stepped" => {
                self.step = match self.step {
                    0 if self.random.below(2) == 0 => 3600,
                    0 => -3600,
                    _ => 0,
                };
            }
            _ => {}
        }
        true
    }

    /// How many transactions are stored, and in gaps; none is in neither.
    fn account(&mut self) -> (usize, usize) {
        let (mut segments, mut keys) = (vec![], vec![]);
        for path in self.stored(".json") {
            let stored: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
            let segment: Segment = serde_json::from_value(stored["segment"].clone()).unwrap();
            segments.push(segment);
            keys.push(stored["key"].as_str().unwrap().to_owned());
        }
        let chain = chain(&segments);
        let mut places: BTreeSet<Vec<u8>> = BTreeSet::new();
        for at in chain.windows.iter().flat_map(|w| &w.segments) {
            let (key, runner) = (&keys[*at], &self.runner);
            // A segment is never written again.
            let marks = self.known.entry(key.clone()).or_insert_with(|| {
                let text = decoded(key, runner.read(key), None);
                let found = memchr::memmem::find_iter(&text, b"mark-");
                found.map(|at| text[at..at + 12].to_vec()).collect()
            });
            places.extend(marks.iter().cloned());
        }
        let (mut stored, mut gone) = (0, 0);
        for (mark, second) in &self.marks {
            if places.contains(mark.as_bytes()) {
                stored += 1;
                continue;
            }
            let second = u32::try_from(*second).unwrap();
            // The second was read after the server had committed.
            let named = chain
                .gaps
                .iter()
                .any(|gap| (gap.from..=gap.to + 1).contains(&second));
            assert!(
                named,
                "{mark} of second {second} is neither stored nor in a gap: {:?}",
                chain.gaps
            );
            gone += 1;
        }
        (stored, gone)
    }
}

type Start = fn() -> MariaDb;

const SERVERS: [(&str, Start, &str); 2] = [
    (
        "MariaDB 10.11",
        || mariadb(&["--max-binlog-size=65536"]),
        "reset master",
    ),
    (
        "MySQL 9.7",
        || mysql(&["--max-binlog-size=65536"]),
        "reset binary logs and gtids",
    ),
];

fn random_faults(servers: &[(&'static str, Start, &'static str)], rounds: u64, seed: u64) {
    println!("seed {seed}");
    for (name, start, reset) in servers {
        let mut world = World::new(start(), reset, seed);
        // By fault: times, of which all that was committed was stored, of which gaps were named.
        let mut table: BTreeMap<&str, (u32, u32, u32)> = BTreeMap::new();
        let mut before = (0, 0);
        for round in 0..rounds {
            world.write();
            // Each once, so that none is left out by chance.
            let each = FAULTS.len() as u64;
            let fault = if round < each {
                round
            } else {
                world.random.below(each)
            };
            let fault = usize::try_from(fault).unwrap();
            if !world.happen(fault) {
                continue;
            }
            world.write();
            let done = world.runner.run();
            assert_eq!(
                done.code,
                Some(0),
                "{name} {}: {}",
                FAULTS[fault],
                done.report.message
            );
            let after = world.account();
            let row = table.entry(FAULTS[fault]).or_default();
            row.0 += 1;
            if after.1 > before.1 {
                row.2 += 1;
            } else {
                row.1 += 1;
            }
            before = after;
        }
        println!(
            "{name}: {} transactions, {} stored, {} in named gaps, 0 silent",
            world.marks.len(),
            before.0,
            before.1
        );
        println!("| fault | times | complete | named gap |\n|---|---|---|---|");
        for (fault, (times, complete, named)) in table {
            println!("| {fault} | {times} | {complete} | {named} |");
        }
    }
}

#[test]
#[ignore = "make test-long: 200 faults of each family"]
fn each_transaction_is_stored_or_in_a_named_gap() {
    let seed = std::env::var("KUBECTL_BACKUP_SEED")
        .ok()
        .and_then(|s| s.parse().ok());
    random_faults(&SERVERS, 200, seed.unwrap_or_else(now));
}

#[test]
fn some_faults_leave_each_transaction_stored_or_in_a_named_gap() {
    random_faults(&SERVERS[..1], FAULTS.len() as u64 + 3, 4);
}

/// A server and its replica that change places; what each family calls it.
struct Roles {
    name: &'static str,
    start: fn(&[&str]) -> MariaDb,
    /// Options of both.
    options: &'static [&'static str],
    /// Forgets its own history.
    forget: &'static str,
    /// Follows the server of this port.
    follow: fn(u16) -> String,
    lead: &'static str,
    /// All that it has committed, and the question whether another has it.
    history: &'static str,
    has: fn(&str) -> String,
}

const ROLES: [Roles; 2] = [
    Roles {
        name: "MariaDB 10.11",
        start: mariadb,
        options: &["--max-binlog-size=65536", "--log-slave-updates"],
        forget: "reset master",
        follow: |port| {
            format!(
                "stop slave; set global gtid_slave_pos = @@global.gtid_current_pos; change master to master_host='127.0.0.1', master_port={port}, master_user='full', master_password='S3cr3t-marker', master_use_gtid=slave_pos; start slave"
            )
        },
        lead: "stop slave; reset slave all",
        history: "select @@global.gtid_binlog_pos",
        has: |all| format!("select master_gtid_wait('{all}', 60)"),
    },
    Roles {
        name: "MySQL 9.7",
        start: mysql,
        options: &["--max-binlog-size=65536"],
        forget: "reset binary logs and gtids",
        follow: |port| {
            format!(
                "stop replica; change replication source to source_host='127.0.0.1', source_port={port}, source_user='full', source_password='S3cr3t-marker', source_auto_position=1, get_source_public_key=1; start replica"
            )
        },
        lead: "stop replica; reset replica all",
        history: "select @@global.gtid_executed",
        has: |all| format!("select wait_for_executed_gtid_set('{all}', 60)"),
    },
];

/// Behind one name one server follows the other, back and forth, pulled in between or not, with runs that are killed.
fn change_places(roles: &Roles, rounds: u32, seed: u64) {
    let options = |id: &'static str| [roles.options, &[id]].concat();
    let first = (roles.start)(&options("--server-id=1"));
    let mut other = (roles.start)(&options("--server-id=3"));
    other.sql(&format!(
        "drop database w; drop user p@'%'; drop user full@'%'; {}",
        roles.forget
    ));
    other.sql(&(roles.follow)(first.port));
    let mut world = World::new(first, roles.forget, seed);
    let (mut joins, mut killed) = (0, 0);
    for _ in 0..rounds {
        world.write();
        if world.random.below(2) == 0 {
            world.runner.run().assert_good();
            world.write();
        }
        if world.random.below(3) == 0 {
            assert!(world.happen(1));
            killed += 1;
        }
        let all = world.db.sql(roles.history).trim().replace("\\n", "");
        assert_eq!(other.sql(&(roles.has)(&all)).trim(), "0", "{}", roles.name);
        other.sql(roles.lead);
        std::mem::swap(&mut world.db, &mut other);
        let port = world.db.port;
        other.sql(&(roles.follow)(port));
        let runner = std::mem::replace(&mut world.runner, Runner::bare());
        world.runner = runner.set("PORT", port.to_string());
        world.write();
        let done = world.runner.run();
        assert_eq!(
            done.code,
            Some(0),
            "{}: {}",
            roles.name,
            done.report.message
        );
        let report = done.report.binlogs.unwrap();
        assert!(report.gaps.is_empty(), "{}: {:?}", roles.name, report.gaps);
        joins += report.joins;
        assert_eq!(world.account(), (world.marks.len(), 0), "{}", roles.name);
    }
    println!(
        "| {}: failover to the replica and back | {rounds} | {rounds} | 0 | {} transactions, {joins} joins, {killed} runs killed |",
        roles.name,
        world.marks.len()
    );
    assert!(joins > 0);
}

#[test]
#[ignore = "make test-long: twenty failovers of each family"]
fn twenty_failovers_to_a_replica_and_back_lose_nothing() {
    let seed = now();
    println!("seed {seed}");
    for roles in &ROLES {
        change_places(roles, 20, seed);
    }
}
