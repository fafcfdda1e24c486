//! Verification by replay: the backup before and the stored log give the backup that is verified, or the tables that differ are named.

use std::path::PathBuf;

use binlog::Segment;
use binlog::event::{HEADER, Header};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::*;

impl Pair<'_> {
    /// A backup, and the name of its run.
    fn named_backup(&mut self) -> String {
        self.backup();
        common::next_second();
        format!("shop-{:08}", self.runs)
    }

    fn verify(&mut self, run: &str) -> Finished {
        let room = common::servers::directory("replayed");
        let path = self.runner.env["PATH"].clone();
        let runner = std::mem::replace(&mut self.runner, Runner::bare());
        self.runner = runner.set("TMPDIR", room.display().to_string());
        let spec = json!({"action": "Verify", "options": {"run": run, "mode": "Replay"}});
        let done = self.run(self.source.port, spec);
        assert_eq!(self.runner.env["PATH"], path);
        let left: Vec<_> = std::fs::read_dir(room).unwrap().collect();
        assert!(left.is_empty(), "{left:?}");
        done
    }

    /// Passed by this mode, and the message has these words.
    #[track_caller]
    fn passes(&mut self, run: &str, mode: &str, words: &[&str]) {
        let done = self.verify(run);
        let text = &done.report.message;
        assert_eq!(done.code, Some(0), "{}: {text}", self.family.name);
        let outcome = done.report.verification.unwrap();
        assert_eq!(
            (outcome.mode.as_str(), outcome.passed),
            (mode, true),
            "{text}"
        );
        for word in words {
            assert!(
                outcome.message.contains(word),
                "{word:?} is not in {text:?}"
            );
        }
    }

    fn pull_plain(&mut self) {
        let spec = json!({"action": "Binlogs", "binlogs": {"intervalSeconds": 300}, "compression": {"type": "none"}});
        self.run(self.source.port, spec).assert_good();
    }

    /// Manifests of segments, by their numbers.
    fn manifests(&self) -> Vec<PathBuf> {
        let mut found: Vec<String> = self
            .runner
            .files()
            .into_iter()
            .filter(|f| f.contains("/binlogs/") && f.ends_with(".json") && !f.contains("seen"))
            .collect();
        found.sort();
        found
            .iter()
            .map(|f| self.runner.sql_path().join(f))
            .collect()
    }

    /// Puts another value into one event of what is stored, and makes all that speaks of it anew, as whoever writes to the store
    /// can: checksum of the event, hashes of segment, manifests and what was seen last.
    fn forge(&self, from: &[u8], to: &[u8]) {
        let (mut old, mut new, mut altered) = (String::new(), String::new(), 0);
        for path in self.manifests() {
            let mut stored: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
            let mut segment: Segment = serde_json::from_value(stored["segment"].clone()).unwrap();
            let before = segment.digest();
            if !old.is_empty() && segment.link.previous() == Some(old.as_str()) {
                let text = serde_json::to_string(&segment.link)
                    .unwrap()
                    .replace(&old, &new);
                segment.link = serde_json::from_str(&text).unwrap();
            }
            let bytes = self.runner.sql_path().join(stored["key"].as_str().unwrap());
            if stored["compression"] == "none" {
                let mut content = std::fs::read(&bytes).unwrap();
                if alter(&mut content, &mut segment, from, to) {
                    altered += 1;
                    let sum = hex(&Sha256::digest(&content));
                    segment.sha256.clone_from(&sum);
                    stored["storedSha256"] = sum.into();
                    std::fs::write(&bytes, content).unwrap();
                }
            }
            (old, new) = (before, segment.digest());
            stored["segment"] = serde_json::to_value(&segment).unwrap();
            std::fs::write(&path, stored.to_string()).unwrap();
        }
        assert_eq!(altered, 1, "one event has it");
        let seen = self.manifests()[0]
            .ancestors()
            .find_map(|at| Some(at.join("seen.json")).filter(|at| at.is_file()))
            .unwrap();
        let text = std::fs::read_to_string(&seen).unwrap();
        assert!(text.contains(&old));
        std::fs::write(&seen, text.replace(&old, &new)).unwrap();
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// CRC-32 bit by bit, as IEEE 802.3 has it.
fn crc(bytes: &[u8]) -> u32 {
    let mut sum = u32::MAX;
    for byte in bytes {
        sum ^= u32::from(*byte);
        for _ in 0..8 {
            sum = (sum >> 1) ^ (0xedb8_8320 & (sum & 1).wrapping_neg());
        }
    }
    !sum
}

/// Alters the event that holds `from`; false if none does.
fn alter(content: &mut [u8], segment: &mut Segment, from: &[u8], to: &[u8]) -> bool {
    let mut at = if segment.from == 0 { 4 } else { 0 };
    while at < content.len() {
        let header = Header::parse(&content[at..]).unwrap();
        let end = at + header.size as usize;
        let body = &content[at + HEADER..end - 4];
        let found = body.windows(from.len()).position(|window| window == from);
        // Not in the text of an annotation.
        if let Some(found) = found.filter(|_| matches!(header.kind, 23 | 30)) {
            let place = at + HEADER + found;
            content[place..place + to.len()].copy_from_slice(to);
            let sum = crc(&content[at..end - 4]);
            content[end - 4..end].copy_from_slice(&sum.to_le_bytes());
            if segment.last_event.position == segment.from + at as u64 {
                segment.last_event.sum = sum;
            }
            return true;
        }
        at = end;
    }
    false
}

fn from_one_backup_to_the_next(family: &Family) {
    let mut pair = Pair::new(family);
    pair.source
        .sql("insert w.n (v) values (1), (2), (3); insert w.t values (1, 'a')");
    pair.pull();
    let first = pair.named_backup();
    pair.passes(
        &first,
        "Restore",
        &["restored and compared", "not replayed: no sound backup"],
    );
    let mut random = Random(7);
    for round in 0..4 {
        pair.source.sql(&random.work(round));
        pair.pull();
    }
    pair.source.sql(
        "create database w2; create table w2.a (id int primary key, v timestamp); insert w2.a values (1, '2026-01-01 10:00:00');
         create view w2.b as select * from w2.a; create trigger w2.c before insert on w2.a for each row set new.id = new.id + 100;
         insert w2.a values (2, '2026-01-01 10:00:00'); drop table w.t; create table w.t (id int primary key, v longtext)",
    );
    let second = pair.named_backup();
    // The log is not stored so far: it is restored, and says why.
    pair.passes(&second, "Restore", &["not replayed", "do not reach"]);
    // What comes behind it is none of its.
    pair.source
        .sql("insert w.n (v) values (777); drop view w2.b; drop table w2.a");
    pair.pull();
    pair.passes(
        &second,
        "Replay",
        &["replayed and compared", "transactions", "all equal"],
    );
    // Nothing has changed.
    let third = pair.named_backup();
    let fourth = pair.named_backup();
    pair.pull();
    pair.passes(&third, "Replay", &[" 3 transactions"]);
    pair.passes(&fourth, "Replay", &[" 0 transactions"]);

    // One event is altered, and everything else says that it is whole.
    pair.source
        .sql("insert w.n (v) values (424242); insert w.t values (5, 'five')");
    let fifth = pair.named_backup();
    pair.source.sql("insert w.n (v) values (5)");
    pair.pull_plain();
    let latest = state(&pair.source);
    pair.passes(&fifth, "Replay", &[" 2 transactions"]);
    pair.forge(&424_242_u32.to_le_bytes(), &424_243_u32.to_le_bytes());
    let done = pair.verify(&fifth);
    done.assert_failed(5, "ReplayDiffers", &["table w.n has", "but other values"]);
    let outcome = done.report.verification.clone().unwrap();
    assert_eq!((outcome.mode.as_str(), outcome.passed), ("Replay", false));
    assert!(!outcome.message.contains("w.t"), "{}", outcome.message);
    // Nobody else could tell.
    pair.target
        .sql("drop database if exists w; drop database if exists w2");
    pair.restore(json!({"run": fourth}), json!({"latest": true}))
        .assert_good();
    assert_ne!(state(&pair.target), latest);
    pair.passes(&fourth, "Replay", &[]);
    // It says nothing against the backup, which is whole: what comes behind it is replayed onto it.
    pair.source.sql("insert w.n (v) values (6)");
    let sixth = pair.named_backup();
    pair.pull();
    pair.passes(&sixth, "Replay", &[" 2 transactions"]);
    println!("{}: six backups, one event altered and seen", family.name);
}

#[test]
fn a_backup_and_the_log_behind_it_give_the_next_one_and_an_altered_event_is_seen() {
    from_one_backup_to_the_next(&FAMILIES[0]);
}

#[test]
fn the_same_of_mysql_in_a_server_of_mysql() {
    from_one_backup_to_the_next(&FAMILIES[2]);
}

/// Where events are missing, or a segment was altered by who does not know the sums, it is told.
#[test]
fn a_gap_is_no_failed_verification_and_a_damaged_segment_is_one() {
    let mut pair = Pair::new(&FAMILIES[0]);
    pair.pull();
    pair.named_backup();
    pair.source.sql("insert w.n (v) values (1)");
    pair.pull_plain();
    pair.source.sql("insert w.n (v) values (2)");
    pair.pull_plain();
    let second = pair.named_backup();
    pair.source.sql("insert w.n (v) values (3)");
    pair.pull_plain();
    pair.passes(&second, "Replay", &[" 2 transactions"]);
    let manifests = pair.manifests();
    let at = &manifests[manifests.len() - 3];
    let text = std::fs::read(at).unwrap();
    let stored: Value = serde_json::from_slice(&text).unwrap();
    let bytes = pair.runner.sql_path().join(stored["key"].as_str().unwrap());
    let whole = std::fs::read(&bytes).unwrap();
    let mut content = whole.clone();
    let middle = content.len() / 2;
    content[middle] ^= 4;
    std::fs::write(&bytes, content).unwrap();
    let done = pair.verify(&second);
    done.assert_failed(5, "Damaged", &["binlogs/"]);
    std::fs::write(&bytes, whole).unwrap();
    std::fs::remove_file(at).unwrap();
    pair.passes(
        &second,
        "Restore",
        &["not replayed", "events may be missing"],
    );
}
