//! Restores to moments and transactions behind a backup, from binary logs that were pulled of real servers (MariaDB 10.11 and 11.8,
//! MySQL 9.7): equal to what was there then, or refused with the reason before the target is touched.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    missing_docs,
    reason = "tests"
)]

mod common;
#[path = "replay/parts.rs"]
mod parts;
#[path = "replay/verification.rs"]
mod verification;

use std::path::Path;

use common::{Finished, MariaDb, Runner, databases};
use serde_json::{Value, json};

/// A family's servers and programs.
struct Family {
    name: &'static str,
    start: fn(&[&str]) -> MariaDb,
    options: &'static [&'static str],
    programs: fn() -> Option<&'static Path>,
    /// The GTID of the transaction that was committed last.
    last_gtid: fn(&MariaDb) -> String,
}

const OPTIONS: [&str; 3] = ["--log-bin=bin", "--binlog-format=row", "--sync-binlog=0"];

fn maria_gtid(db: &MariaDb) -> String {
    db.sql("select @@global.gtid_binlog_pos").trim().to_owned()
}

fn mysql_gtid(db: &MariaDb) -> String {
    let set = db.sql("select @@global.gtid_executed");
    let set = set.trim();
    let (uuid, last) = (&set[..36], set.rsplit(['-', ':']).next().unwrap());
    format!("{uuid}:{last}")
}

const FAMILIES: [Family; 3] = [
    Family {
        name: "MariaDB 10.11",
        start: MariaDb::start_with,
        options: &["--binlog-checksum=CRC32"],
        programs: || None,
        last_gtid: maria_gtid,
    },
    Family {
        name: "MariaDB 11.8",
        start: databases::mariadb_11,
        options: &["--binlog-checksum=CRC32", "--log-bin-compress"],
        programs: || Some(databases::mariadb_11_directory()),
        last_gtid: maria_gtid,
    },
    Family {
        name: "MySQL 9.7",
        start: databases::mysql,
        options: &["--gtid-mode=ON", "--enforce-gtid-consistency=ON"],
        programs: || Some(databases::mysql_directory()),
        last_gtid: mysql_gtid,
    },
];

impl Family {
    fn server(&self, id: u32, more: &[&str]) -> MariaDb {
        let id = format!("--server-id={id}");
        let mut options: Vec<&str> = OPTIONS.iter().chain(self.options).copied().collect();
        options.push(&id);
        options.extend(more);
        let db = (self.start)(&options);
        db.sql("create user full@'%' identified by 'S3cr3t-marker'; grant all on *.* to full@'%' with grant option;");
        db
    }

    fn runner(&self, db: &MariaDb) -> Runner {
        let runner = Runner::new(db);
        match (self.programs)() {
            Some(directory) => runner.programs_of(directory),
            None => runner,
        }
    }
}

/// A source with its backup and its log, and an empty server to restore into.
struct Pair<'a> {
    family: &'a Family,
    source: MariaDb,
    target: MariaDb,
    runner: Runner,
    runs: u32,
}

impl<'a> Pair<'a> {
    fn new(family: &'a Family) -> Self {
        let source = family.server(1, &["--max-binlog-size=131072"]);
        let target = family.server(2, &[]);
        source.sql(
            "create database w; create table w.n (id int primary key auto_increment, v int);
             create table w.t (id int primary key, v longtext)",
        );
        let runner = family.runner(&source);
        Self {
            family,
            source,
            target,
            runner,
            runs: 0,
        }
    }

    fn run(&mut self, port: u16, more: Value) -> Finished {
        self.runs += 1;
        let run = format!("shop-{:08}", self.runs);
        let runner = std::mem::replace(&mut self.runner, Runner::bare());
        self.runner = runner.set("PORT", port.to_string()).spec(&run, None, more);
        self.runner.run()
    }

    fn pull(&mut self) -> Finished {
        let done = self.run(
            self.source.port,
            json!({"action": "Binlogs", "binlogs": {"intervalSeconds": 300}}),
        );
        done.assert_good();
        done
    }

    fn backup(&mut self) {
        let done = self.run(self.source.port, json!({}));
        done.assert_good();
        assert!(!done.report.position.is_empty(), "{:?}", done.report);
    }

    fn restore(&mut self, mut options: Value, until: Value) -> Finished {
        options["replay"] = until;
        let spec = json!({"action": "Restore", "options": {"restore": options}});
        self.run(self.target.port, spec)
    }

    /// Restores into an empty server, and gives what is there then.
    #[track_caller]
    fn restored(&mut self, until: &Value) -> String {
        self.target
            .sql("drop database if exists w; drop database if exists w2");
        let done = self.restore(json!({}), until.clone());
        assert_eq!(
            done.code,
            Some(0),
            "{} {until}: {}",
            self.family.name,
            done.report.message
        );
        state(&self.target)
    }

    /// Refused with these words, and nothing is touched.
    #[track_caller]
    fn refused(&mut self, until: &Value, words: &[&str]) {
        self.target.sql("drop database if exists w");
        let done = self.restore(json!({}), until.clone());
        let text = &done.report.message;
        assert_ne!(done.code, Some(0), "{} {until}: {text}", self.family.name);
        for word in words {
            assert!(text.contains(word), "{word:?} is not in {text:?}");
        }
        assert_eq!(self.target.sql("show databases like 'w'"), "", "{text}");
    }
}

/// All that is in the databases of the test.
fn state(db: &MariaDb) -> String {
    let tables = db.sql("select concat(table_schema, '.', table_name) from information_schema.tables where table_schema in ('w', 'w2') order by 1");
    let sums: String = tables
        .lines()
        .map(|table| db.sql(&format!("checksum table {table}")))
        .collect();
    format!("{tables}{sums}")
}

fn now() -> u64 {
    std::time::UNIX_EPOCH.elapsed().unwrap().as_secs()
}

fn rfc3339(seconds: u64) -> String {
    let at = chrono::DateTime::from_timestamp(i64::try_from(seconds).unwrap(), 0).unwrap();
    at.to_rfc3339_opts(chrono::SecondsFormat::Secs, true)
}

/// A fixed sequence without order (Knuth's MMIX).
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    /// Transactions, definitions among them.
    fn work(&mut self, round: u64) -> String {
        let mut sql = String::new();
        for step in 0..3 + self.below(12) {
            let (id, other) = (self.below(50), self.below(1000));
            sql += &match self.below(9) {
                0..4 => format!("insert w.n (v) values ({other});\n"),
                4 => format!(
                    "update w.n set v = v + {other} where id % 7 = {};\n",
                    id % 7
                ),
                5 => format!("delete from w.n where id = {id};\n"),
                6 => format!("replace w.t values ({id}, repeat('ä{other}', {other}));\n"),
                7 => format!(
                    "begin; insert w.n (v) values ({other}); savepoint s; delete from w.n; rollback to s; replace w.t values ({id}, 'x'); commit;\n"
                ),
                _ => format!(
                    "create table w.d{round}_{step} as select id, v from w.n; alter table w.d{round}_{step} add column c int default {other};\n"
                ),
            };
        }
        if self.below(3) == 0 {
            sql += "flush binary logs;\n";
        }
        sql
    }
}

/// Moments, each with what was there then; the GTID of a DROP, with what was there before it.
fn moments(pair: &mut Pair<'_>, count: u64, seed: u64) -> (Vec<(Value, String)>, u64) {
    let mut random = Random(seed);
    let mut found = vec![];
    for round in 0..count {
        pair.source.sql(&random.work(round));
        if random.below(2) == 0 {
            pair.pull();
        }
        let before = state(&pair.source);
        // All that was written was written before this second.
        common::next_second();
        found.push((json!({"at": rfc3339(now())}), before.clone()));
        let gtid = (pair.family.last_gtid)(&pair.source);
        found.push((json!({"gtid": gtid}), before));
    }
    let before = state(&pair.source);
    pair.source.sql("drop table w.t");
    let dropped = (pair.family.last_gtid)(&pair.source);
    found.push((json!({"beforeGtid": dropped}), before));
    found.push((json!({"gtid": dropped}), state(&pair.source)));
    pair.source
        .sql("create table w.t (id int primary key, v longtext); insert w.n (v) values (7)");
    found.push((json!({"latest": true}), state(&pair.source)));
    common::next_second();
    let end = now();
    common::next_second();
    pair.pull();
    // Nothing came behind it, and that is known.
    found.push((json!({"at": rfc3339(end)}), state(&pair.source)));
    (found, end)
}

fn each_moment(family: &Family, count: u64, seed: u64) {
    let mut pair = Pair::new(family);
    pair.pull();
    pair.source
        .sql("insert w.n (v) values (1), (2), (3); insert w.t values (1, 'a')");
    let early = now();
    pair.backup();
    common::next_second();
    let (moments, end) = moments(&mut pair, count, seed);
    for (until, wanted) in &moments {
        let found = pair.restored(until);
        assert!(
            found == *wanted,
            "{} {until}:\n{found}\n{wanted}",
            family.name
        );
    }
    println!("{}: {} targets, all equal", family.name, moments.len());
    pair.refused(
        &json!({"at": rfc3339(end + 3600)}),
        &["beyond what is stored"],
    );
    pair.refused(&json!({"at": rfc3339(early - 3600)}), &["no artefact"]);
}

#[test]
fn what_is_restored_to_a_moment_or_transaction_is_what_was_there_then() {
    each_moment(&FAMILIES[2], 1, 1);
}

/// A segment that is lost, altered, exchanged or another's, and events that never came: each is named, before the target is touched.
#[test]
fn what_is_lost_altered_or_exchanged_is_named_and_nothing_is_touched() {
    let mut pair = Pair::new(&FAMILIES[0]);
    pair.source.sql("insert w.n (v) values (1)");
    pair.backup();
    pair.pull();
    let mut moments = vec![];
    for round in 0..5 {
        pair.source.sql(&format!(
            "insert w.n (v) values ({round}); insert w.n (v) values ({round})"
        ));
        pair.pull();
        common::next_second();
        moments.push((json!({"at": rfc3339(now())}), state(&pair.source)));
    }
    pair.source.sql("insert w.n (v) values (99)");
    pair.pull();
    let latest = json!({"latest": true});
    let files = |end: &str| -> Vec<std::path::PathBuf> {
        let mut found: Vec<String> = pair
            .runner
            .files()
            .into_iter()
            .filter(|f| f.contains("/binlogs/") && f.contains(end) && !f.contains("seen"))
            .collect();
        found.sort();
        found
            .iter()
            .map(|f| pair.runner.sql_path().join(f))
            .collect()
    };
    let (manifests, bytes) = (files(".json"), files(".binlog"));
    assert_eq!((manifests.len(), bytes.len()), (7, 7));
    let read = |path: &std::path::PathBuf| std::fs::read(path).unwrap();
    let saved: Vec<_> = manifests
        .iter()
        .chain(&bytes)
        .map(|p| (p.clone(), read(p)))
        .collect();
    let heal = || {
        for (path, content) in &saved {
            std::fs::write(path, content).unwrap();
        }
    };
    let mut faults = 0;
    let mut fault = |pair: &mut Pair<'_>, damage: &dyn Fn(), words: &[&str]| {
        damage();
        pair.refused(&latest, words);
        // What lies before it is restored all the same.
        assert_eq!(pair.restored(&moments[0].0), moments[0].1);
        heal();
        faults += 1;
    };
    // Of those in the middle, each.
    for at in 4..6 {
        fault(
            &mut pair,
            &|| std::fs::remove_file(&manifests[at]).unwrap(),
            &["events may be missing"],
        );
        fault(
            &mut pair,
            &|| std::fs::remove_file(&bytes[at]).unwrap(),
            &["events may be missing"],
        );
        let flipped = || {
            let mut content = read(&bytes[at]);
            let middle = content.len() / 2;
            content[middle] ^= 4;
            std::fs::write(&bytes[at], content).unwrap();
        };
        fault(&mut pair, &flipped, &["binlogs/"]);
        // One in the other's place, bytes and manifest, or the manifest alone.
        let exchanged = || {
            let (one, other) = (read(&bytes[at]), read(&bytes[at - 1]));
            std::fs::write(&bytes[at], other).unwrap();
            std::fs::write(&bytes[at - 1], one).unwrap();
        };
        fault(&mut pair, &exchanged, &[]);
        let altered = || {
            let text = String::from_utf8(read(&manifests[at])).unwrap();
            let text = text.replace("\"transactions\":2", "\"transactions\":1");
            std::fs::write(&manifests[at], text).unwrap();
        };
        fault(&mut pair, &altered, &["events may be missing"]);
    }
    // The last, which no other names: that it was there is known.
    fault(
        &mut pair,
        &|| std::fs::remove_file(&manifests[6]).unwrap(),
        &["stored last"],
    );
    fault(
        &mut pair,
        &|| std::fs::remove_file(&bytes[6]).unwrap(),
        &["stored last"],
    );
    // In another order in the store all is as before.
    for (at, manifest) in manifests.iter().enumerate() {
        std::fs::write(manifest, &saved[(at + 3) % manifests.len()].1).unwrap();
    }
    for (until, wanted) in &moments {
        assert_eq!(pair.restored(until), *wanted);
    }
    heal();
    // A gap at the server: behind it nothing is restored, before it all.
    pair.source.sql("reset master; insert w.n (v) values (100)");
    pair.pull();
    pair.refused(
        &latest,
        &["events may be missing", "begun anew", "all before"],
    );
    assert_eq!(pair.restored(&moments[4].0), moments[4].1);
    println!("{faults} faults, 0 silent");
}

/// What `download binlog` gives.
#[derive(Debug, Default)]
struct Listing {
    code: i32,
    header: crds::download::BinlogHeader,
    text: String,
    shown: Option<u64>,
    err: String,
}

impl Pair<'_> {
    fn listed(&mut self, words: &[&str], more: Value) -> Listing {
        let mut spec = json!({"action": "List"});
        for (key, value) in more.as_object().unwrap() {
            spec[key] = value.clone();
        }
        let runner = std::mem::replace(&mut self.runner, Runner::bare());
        self.runner = runner.spec("shop-list", None, spec);
        let said = self
            .runner
            .command()
            .args(["download", "binlog"])
            .args(words)
            .output()
            .unwrap();
        let mut found = Listing {
            code: said.status.code().unwrap(),
            err: String::from_utf8(said.stderr).unwrap(),
            ..Listing::default()
        };
        let line = |rest: &mut &[u8]| {
            let end = rest.iter().position(|b| *b == b'\n')?;
            let line = serde_json::from_slice::<Value>(&rest[..end]).unwrap();
            *rest = &rest[end + 1..];
            Some(line)
        };
        let mut rest = said.stdout.as_slice();
        let Some(header) = line(&mut rest) else {
            return found;
        };
        found.header = serde_json::from_value(header).unwrap();
        while let Some(part) = line(&mut rest) {
            let length = usize::try_from(part["length"].as_u64().unwrap()).unwrap();
            found.text += std::str::from_utf8(&rest[..length]).unwrap();
            rest = &rest[length..];
            found.shown = part["transactions"].as_u64();
        }
        found
    }
}

/// GTID, file and position of each transaction that is shown, with its own text.
fn transactions(text: &str) -> Vec<(String, String, u64, &str)> {
    let parts = text.split("# transaction GTID ").skip(1);
    let of_one = |part| -> Option<(String, String, u64, &str)> {
        let (title, text): (&str, &str) = str::split_once(part, '\n')?;
        let (gtid, rest) = title.split_once(" at ")?;
        let (place, _) = rest.split_once(" of ")?;
        let (file, position) = place.split_once(':')?;
        Some((gtid.into(), file.into(), position.parse().ok()?, text))
    };
    parts.map(|part| of_one(part).unwrap()).collect()
}

/// A DROP is found among random transactions, and its GTID is the one that a restore ends just before.
fn found_and_restored(family: &Family, seed: u64) {
    let mut pair = Pair::new(family);
    pair.pull();
    pair.source
        .sql("insert w.n (v) values (1), (2), (3); insert w.t values (1, 'a')");
    pair.backup();
    common::next_second();
    let from = rfc3339(now());
    let first = (family.last_gtid)(&pair.source);
    let mut random = Random(seed);
    for round in 0..3 {
        if family.name.starts_with("MySQL") {
            pair.source
                .sql("set session binlog_transaction_compression=on; insert w.n (v) values (70), (71); replace w.t values (8, repeat('x', 9999))");
        }
        pair.source.sql(&random.work(round));
        pair.pull();
    }
    let before = state(&pair.source);
    pair.source.sql("use w; drop table t");
    let dropped = (family.last_gtid)(&pair.source);
    pair.source
        .sql("create user someone@'%' identified by 'Pw-marker-1'; alter user someone@'%' identified by 'Pw-marker-2'; insert w.n (v) values (9)");
    let last = (family.last_gtid)(&pair.source);
    common::next_second();
    let to = rfc3339(now());
    common::next_second();
    pair.pull();

    let all = pair.listed(&["--from", &from, "--to", &to], json!({}));
    assert_eq!(all.code, 0, "{}: {}", family.name, all.err);
    assert_eq!(all.header.warnings, [""; 0], "{}", family.name);
    let every = transactions(&all.text);
    let number = |gtid: &str| -> u64 { gtid.rsplit(['-', ':']).next().unwrap().parse().unwrap() };
    let numbers: Vec<u64> = every.iter().map(|(gtid, ..)| number(gtid)).collect();
    let wanted: Vec<u64> = (number(&first) + 1..=number(&last)).collect();
    assert_eq!(numbers, wanted, "{}", family.name);
    let count = wanted.len() as u64;
    assert_eq!((all.header.transactions, all.shown), (count, Some(count)));
    // No password, nor what the server makes of it.
    assert!(
        all.text.to_lowercase().contains("create user"),
        "{}",
        family.name
    );
    for secret in ["Pw-marker", "$A$005$", "*7"] {
        assert!(
            !all.text
                .lines()
                .any(|l| l.contains("IDENTIFIED") && l.contains(secret))
                && !all.text.contains("Pw-marker"),
            "{}: {secret}",
            family.name
        );
    }
    assert_eq!(all.text.matches("******").count(), 2, "{}", family.name);

    let of_table = pair.listed(&["--from", &from, "--to", &to, "--table", "w.t"], json!({}));
    assert_eq!(of_table.code, 0, "{}", of_table.err);
    let drops: Vec<_> = transactions(&of_table.text)
        .into_iter()
        .filter(|(_, _, _, text)| {
            text.lines()
                .any(|l| l.to_uppercase().starts_with("DROP TABLE"))
        })
        .map(|(gtid, file, position, text)| (gtid, file, position, text.to_owned()))
        .collect();
    assert_eq!(drops.len(), 1, "{}", family.name);
    let (gtid, file, position, text) = &drops[0];
    assert_eq!(*gtid, dropped, "{}", family.name);
    assert!(text.contains("use `w`"), "{text}");
    // As the server itself has it.
    let events = pair.source.sql(&format!(
        "show binlog events in '{file}' from {position} limit 1"
    ));
    let event: Vec<&str> = events.trim().split('\t').collect();
    assert_eq!(
        (event[1], event[2]),
        (position.to_string().as_str(), "Gtid")
    );
    assert!(of_table.shown < all.shown && of_table.shown > Some(1));
    for (_, _, _, text) in transactions(&of_table.text) {
        assert!(
            text.contains("`t`") || text.contains(" t") || text.contains("w.t"),
            "{text}"
        );
    }
    let none = pair.listed(&["--from", &from, "--table", "w.nothing"], json!({}));
    assert_eq!(
        (none.code, none.shown, none.text.as_str()),
        (0, Some(0), "")
    );

    assert_eq!(
        pair.restored(&json!({"beforeGtid": gtid})),
        before,
        "{}",
        family.name
    );
    println!("{}: {count} transactions, the DROP is {gtid}", family.name);
}

#[test]
fn a_drop_is_found_by_its_gtid_and_a_restore_ends_just_before_it() {
    found_and_restored(&FAMILIES[0], 5);
    found_and_restored(&FAMILIES[2], 6);
}

#[test]
#[ignore = "make test-long: of MariaDB 11.8 too"]
fn a_drop_is_found_in_compressed_logs_of_mariadb_11() {
    found_and_restored(&FAMILIES[1], 7);
}

/// The server's own files come back byte for byte, but for the bit that says a file is in use; of the newest what is stored.
#[test]
fn the_servers_own_files_are_sent_byte_for_byte() {
    for family in [&FAMILIES[0], &FAMILIES[2]] {
        let mut pair = Pair::new(family);
        let mut random = Random(11);
        for round in 0..3 {
            pair.pull();
            pair.source
                .sql(&format!("{} flush binary logs;", random.work(round)));
        }
        pair.pull();
        let runner = std::mem::replace(&mut pair.runner, Runner::bare());
        pair.runner = runner.spec("shop-list", None, json!({"action": "List"}));
        let ask = |words: &[&str]| {
            let mut command = pair.runner.command();
            let from = ["download", "binlogs", "--from", "2001-01-01T00:00:00Z"];
            common::run(command.args(from).args(words)).stdout
        };
        let list: crds::download::BinlogFiles = serde_json::from_slice(&ask(&[])).unwrap();
        assert!(list.files.len() > 3, "{list:?}");
        for (index, file) in list.files.iter().enumerate() {
            let expected = format!("{}:{}", file.length, file.sha256);
            let said = ask(&["--file", &file.name, "--expect", &expected]);
            let begin = said.iter().position(|b| *b == b'\n').unwrap() + 1;
            let length = usize::try_from(file.length).unwrap();
            let bytes = &said[begin..begin + length];
            assert!(said.ends_with(b"}\n"), "{}: it has no trailer", file.name);
            let mut on_disk =
                std::fs::read(pair.source.dir.path().join("data").join(&file.name)).unwrap();
            on_disk[4 + 17] &= !1;
            if index + 1 == list.files.len() {
                on_disk.truncate(length);
            }
            assert!(bytes == on_disk, "{} {} differs", family.name, file.name);
            // From any byte on.
            let rest = ask(&[
                "--file", &file.name, "--expect", &expected, "--offset", "99",
            ]);
            let begin = rest.iter().position(|b| *b == b'\n').unwrap() + 1;
            assert_eq!(&rest[begin..begin + length - 99], &bytes[99..]);
        }
        println!("{}: {} files", family.name, list.files.len());
    }
}

/// Backups were made before binary logs were asked for: what the server still has behind the newest is stored by the first pull.
#[test]
fn a_first_pull_begins_with_the_newest_backup() {
    for family in [&FAMILIES[0], &FAMILIES[2]] {
        let mut pair = Pair::new(family);
        pair.source.sql("flush binary logs");
        pair.backup();
        pair.source.sql("insert w.n (v) values (1)");
        pair.backup();
        let newest = || {
            let listed = pair.source.sql("show binary logs");
            let last = listed.lines().last().unwrap().to_owned();
            last.split('\t').next().unwrap().to_owned()
        };
        let file = newest();
        pair.source.sql(
            "insert w.n (v) values (2); flush binary logs; insert w.n (v) values (3); flush binary logs; insert w.n (v) values (4)",
        );
        assert_ne!(newest(), file);
        let report = pair.pull().report.binlogs.unwrap();
        let from = report.from.unwrap();
        assert_eq!((from.file, from.position), (file, 0), "{}", family.name);
        assert_eq!(report.gaps, [], "{}", family.name);
        let wanted = state(&pair.source);
        assert_eq!(pair.restored(&json!({"latest": true})), wanted);
    }
}

/// What may be missing of a span is said, and what is not what was stored is not shown.
#[test]
fn a_gap_within_a_span_is_said_and_what_was_altered_is_not_shown() {
    let identity = age::x25519::Identity::generate();
    let mut pair = Pair::new(&FAMILIES[0]);
    let secret = pair.runner.out.path().join("identity");
    std::fs::write(
        &secret,
        age::secrecy::ExposeSecret::expose_secret(&identity.to_string()),
    )
    .unwrap();
    let opens = json!({"identityFile": secret});
    let pulled = |pair: &mut Pair<'_>| {
        let spec = json!({
            "action": "Binlogs", "binlogs": {"intervalSeconds": 300},
            "encryption": {"age": {"recipients": [identity.to_public().to_string()]}},
        });
        let done = pair.run(pair.source.port, spec);
        done.assert_good();
    };
    let start = rfc3339(now());
    let nothing = pair.listed(&["--from", &start], json!({}));
    assert_eq!(nothing.code, 4, "{}", nothing.err);
    assert!(
        nothing.err.contains("ArtefactNotFound: no binary logs of"),
        "{}",
        nothing.err
    );
    pair.source.sql("insert w.n (v) values (1)");
    pulled(&mut pair);
    common::next_second();
    pair.source.sql("insert w.n (v) values (2)");
    pulled(&mut pair);
    pair.source
        .sql("insert w.n (v) values (3); reset master; insert w.n (v) values (4)");
    pulled(&mut pair);
    let whole = pair.listed(&["--from", "2001-01-01T00:00:00Z"], opens.clone());
    assert_eq!(whole.code, 0, "{}", whole.err);
    let told = whole.header.warnings.join("\n");
    for words in [
        "what is stored begins at",
        "events may be missing: the server's binary log was begun anew",
    ] {
        assert!(told.contains(words), "{told}");
    }
    for (row, there) in [(1, true), (2, true), (3, false), (4, true)] {
        assert_eq!(
            whole.text.contains(&format!("###   @2={row}\n")),
            there,
            "{row}"
        );
    }
    let beyond = pair.listed(
        &["--from", &start, "--to", "2100-01-01T00:00:00Z"],
        opens.clone(),
    );
    assert!(
        beyond
            .header
            .warnings
            .iter()
            .any(|w| w.contains("what is stored ends at")),
        "{beyond:?}"
    );
    // Without the key nothing is shown.
    let closed = pair.listed(&["--from", &start], json!({}));
    assert_eq!(
        (closed.code, closed.text.as_str()),
        (2, ""),
        "{}",
        closed.err
    );
    assert!(closed.err.contains("is encrypted"), "{}", closed.err);
    let bytes: Vec<String> = pair
        .runner
        .files()
        .into_iter()
        .filter(|f| f.contains("/binlogs/") && f.ends_with(".age"))
        .collect();
    assert_eq!(bytes.len(), 3);
    let path = pair.runner.sql_path().join(&bytes[1]);
    let mut content = std::fs::read(&path).unwrap();
    let last = content.len() - 9;
    content[last] ^= 1;
    std::fs::write(&path, content).unwrap();
    let altered = pair.listed(&["--from", &start], opens);
    assert_eq!(
        (altered.code, altered.text.as_str(), altered.shown),
        (5, "", None),
        "{}",
        altered.err
    );
    assert!(
        altered.err.contains(bytes[1].rsplit('/').next().unwrap()),
        "{}",
        altered.err
    );
}

#[test]
fn a_restore_goes_over_a_failover_and_what_is_encrypted() {
    over_a_failover(&[&FAMILIES[0]]);
}

#[test]
#[ignore = "make test-long: of MySQL too"]
fn a_restore_goes_over_a_failover_of_mysql() {
    over_a_failover(&[&FAMILIES[2]]);
}

/// A failover behind the same name, to a server whose files bear the same names: what was committed on both is restored.
#[test]
fn a_replay_that_was_killed_is_not_gone_on_with_and_done_again_on_what_is_empty() {
    let mut pair = Pair::new(&FAMILIES[0]);
    pair.backup();
    pair.pull();
    let rows: String = (0..4000)
        .map(|n| format!("insert w.n (v) values ({n});\n"))
        .collect();
    pair.source
        .sql(&format!("{rows} create table w.late (id int primary key)"));
    pair.pull();
    let wanted = state(&pair.source);
    let restore =
        json!({"action": "Restore", "options": {"restore": {"replay": {"latest": true}}}});
    let runner = std::mem::replace(&mut pair.runner, Runner::bare());
    pair.runner =
        runner
            .set("PORT", pair.target.port.to_string())
            .spec("restore-1", None, restore.clone());
    let mut child = pair.runner.start();
    common::servers::wait_for("replay", || {
        let rows = pair
            .target
            .try_sql("select count(*) from w.n")
            .unwrap_or_default();
        rows.trim().parse::<u32>().is_ok_and(|n| n > 20)
    });
    child.kill().unwrap();
    child.wait().unwrap();
    // Its client may still send what it has.
    let settled = || {
        let count = || {
            pair.target
                .sql("select count(*) from information_schema.processlist where user = 'full'")
        };
        count().trim() == "0"
    };
    common::servers::wait_for("end of the client", settled);
    assert_ne!(state(&pair.target), wanted, "killed too late");
    let again = pair.runner.run();
    again.assert_failed(2, "TargetNotEmpty", &[]);
    pair.target.sql("drop database w");
    pair.runner.run().assert_good();
    assert_eq!(state(&pair.target), wanted);
    // The server that refuses says so.
    pair.target
        .sql("drop database w; create database w; create table w.late (id int)");
    let mut over = restore;
    over["options"]["restore"]["overwrite"] = true.into();
    let refused = pair.run(pair.target.port, over);
    assert_eq!(
        refused.report.reason, "TargetNotEmpty",
        "{}",
        refused.report.message
    );
    assert!(
        refused.report.message.contains("drop w"),
        "{}",
        refused.report.message
    );
}

fn over_a_failover(families: &[&Family]) {
    let identity = age::x25519::Identity::generate();
    for family in families {
        let mysql = family.name.starts_with("MySQL");
        let mut pair = Pair::new(family);
        let more: &[&str] = if mysql { &[] } else { &["--log-slave-updates"] };
        let other = family.server(3, more);
        let port = pair.source.port;
        // From its first transaction on.
        other.sql(&if mysql {
            format!("drop user full@'%'; reset binary logs and gtids; change replication source to source_host='127.0.0.1', source_port={port}, source_user='full', source_password='S3cr3t-marker', source_auto_position=1, get_source_public_key=1; start replica")
        } else {
            format!("drop user full@'%'; reset master; change master to master_host='127.0.0.1', master_port={port}, master_user='full', master_password='S3cr3t-marker', master_use_gtid=slave_pos; start slave")
        });
        let secret = pair.runner.out.path().join("identity");
        std::fs::write(
            &secret,
            age::secrecy::ExposeSecret::expose_secret(&identity.to_string()),
        )
        .unwrap();
        let encrypted =
            json!({"encryption": {"age": {"recipients": [identity.to_public().to_string()]}}});
        let pulled = |pair: &mut Pair<'_>, port: u16| {
            let mut spec = encrypted.clone();
            spec["action"] = json!("Binlogs");
            spec["binlogs"] = json!({"intervalSeconds": 300});
            let done = pair.run(port, spec);
            done.assert_good();
            done.report.binlogs.unwrap()
        };
        pair.source
            .sql("insert w.n (v) values (1), (2); insert w.t values (1, 'a')");
        pair.run(port, encrypted.clone()).assert_good();
        pulled(&mut pair, port);
        pair.source
            .sql("flush binary logs; insert w.n (v) values (3); update w.n set v = v + 1");
        pulled(&mut pair, port);
        let gtid = (family.last_gtid)(&pair.source);
        let position = if mysql {
            "wait_for_executed_gtid_set"
        } else {
            "master_gtid_wait"
        };
        let reached = if mysql {
            pair.source.sql("select @@global.gtid_executed")
        } else {
            gtid.clone()
        };
        let wait = format!(
            "select {position}('{}', 60)",
            reached.trim().replace("\\n", "")
        );
        assert_eq!(other.sql(&wait).trim(), "0", "{}", family.name);
        let before = state(&pair.source);
        // The other takes over.
        other.sql(if mysql {
            "stop replica; set global read_only=0"
        } else {
            "stop slave"
        });
        other.sql("insert w.n (v) values (4); create table w.x as select * from w.n; flush binary logs; insert w.x values (9, 9)");
        let report = pulled(&mut pair, other.port);
        assert_eq!((report.joins, report.gaps.len()), (1, 0), "{}", family.name);
        let wanted = state(&other);
        for (until, wanted) in [
            (json!({"latest": true}), &wanted),
            (json!({"gtid": gtid}), &before),
        ] {
            pair.target.sql("drop database if exists w");
            let spec = json!({"action": "Restore", "identityFile": secret, "options": {"restore": {"replay": until}}});
            let done = pair.run(pair.target.port, spec);
            assert_eq!(
                done.code,
                Some(0),
                "{}: {}",
                family.name,
                done.report.message
            );
            assert_eq!(state(&pair.target), *wanted, "{} {until}", family.name);
        }
        // Without the key nothing is touched.
        pair.refused(&json!({"latest": true}), &["identity"]);
    }
}

#[test]
fn a_backup_that_names_no_position_and_a_user_without_the_right_are_refused_in_words() {
    let family = &FAMILIES[0];
    let mut pair = Pair::new(family);
    pair.pull();
    // The newest backup has no position, an older one has.
    pair.backup();
    pair.source.sql("insert w.n (v) values (5)");
    let wanted = state(&pair.source);
    pair.pull();
    common::next_second();
    pair.backup();
    let newest = pair
        .runner
        .files()
        .into_iter()
        .rfind(|f| f.ends_with(".sql.zst.json"))
        .unwrap();
    let path = pair.runner.sql_path().join(&newest);
    let mut manifest: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    manifest.as_object_mut().unwrap().remove("position");
    std::fs::write(&path, manifest.to_string()).unwrap();
    assert_eq!(pair.restored(&json!({"latest": true})), wanted);
    let key = newest.strip_suffix(".json").unwrap();
    pair.target.sql("drop database w");
    let named = pair.restore(json!({"key": key}), json!({"latest": true}));
    named.assert_failed(2, "InvalidSettings", &["BINLOG MONITOR"]);
    for bad in [
        json!({}),
        json!({"latest": true, "gtid": "0-1-1"}),
        json!({"at": "yesterday"}),
        json!({"gtid": "x"}),
        json!({"at": "2025-01-15T10:30:00.5Z"}),
    ] {
        pair.restore(json!({}), bad).assert_failed(
            2,
            "InvalidSettings",
            &["options.restore.replay"],
        );
    }
    let dry = pair.restore(json!({"dryRun": true}), json!({"latest": true}));
    dry.assert_good();
    assert!(
        dry.report.message.contains("then 1 transactions"),
        "{}",
        dry.report.message
    );
    pair.target.sql("create user 'q'@'%' identified by 'S3cr3t-marker'; grant create, drop, alter, insert, select, lock tables, index on *.* to q@'%'");
    let runner = std::mem::replace(&mut pair.runner, Runner::bare());
    pair.runner = runner.set("USERNAME", "q");
    let refused = pair.restore(json!({}), json!({"latest": true}));
    refused.assert_failed(3, "MissingPrivilege", &["GRANT BINLOG REPLAY"]);
    assert_eq!(pair.target.sql("show databases like 'w'"), "");
}

#[test]
#[ignore = "make test-long: twenty moments of each family"]
fn twenty_random_moments_of_each_family_are_equal() {
    for (index, family) in FAMILIES.iter().enumerate() {
        each_moment(family, 20, index as u64 + 77);
    }
}
