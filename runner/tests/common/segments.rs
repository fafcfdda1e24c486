//! Servers whose binary logs are pulled, and segments as they are stored.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    missing_docs,
    unreachable_pub,
    reason = "tests"
)]

use std::collections::BTreeMap;
use std::io::Read;
use std::process::Command;

use binlog::Segment;
use binlog::chain::{Chain, chain};
use serde_json::Value;

use super::{MariaDb, Runner, databases, run};

pub const OPTIONS: [&str; 4] = [
    "--log-bin=bin",
    "--binlog-format=row",
    "--sync-binlog=0",
    "--server-id=1",
];

pub fn mariadb(more: &[&str]) -> MariaDb {
    let options: Vec<&str> = OPTIONS.iter().chain(more).copied().collect();
    let options = [&options[..], &["--binlog-checksum=CRC32"]].concat();
    with_user(
        MariaDb::start_with(&options),
        "replication slave, binlog monitor",
    )
}

pub fn mariadb_11(more: &[&str]) -> MariaDb {
    let options: Vec<&str> = OPTIONS.iter().chain(more).copied().collect();
    let options = [
        &options[..],
        &["--binlog-checksum=CRC32", "--log-bin-compress"],
    ]
    .concat();
    with_user(
        databases::mariadb_11(&options),
        "replication slave, binlog monitor",
    )
}

pub fn mysql(more: &[&str]) -> MariaDb {
    let options: Vec<&str> = OPTIONS.iter().chain(more).copied().collect();
    let options = [
        &options[..],
        &["--gtid-mode=ON", "--enforce-gtid-consistency=ON"],
    ]
    .concat();
    with_user(
        databases::mysql(&options),
        "replication slave, replication client",
    )
}

pub fn with_user(db: MariaDb, rights: &str) -> MariaDb {
    db.sql(&format!(
        "create user p@'%' identified by 'S3cr3t-marker'; grant {rights} on *.* to p@'%';
         create user full@'%' identified by 'S3cr3t-marker'; grant all on *.* to full@'%' with grant option;
         create database w; create table w.t (id int primary key, v longtext) engine=innodb;
         create table w.n (id int primary key auto_increment, v int) engine=innodb"
    ));
    db
}

/// A segment's manifest, and its bytes as the server had them.
pub struct Kept {
    pub number: String,
    pub segment: Segment,
    pub bytes: Vec<u8>,
}

/// All that is stored, in order of the numbers: `get` gives what lies at a key.
pub fn kept_of(
    keys: Vec<String>,
    get: &dyn Fn(&str) -> Vec<u8>,
    identity: Option<&age::x25519::Identity>,
) -> Vec<Kept> {
    let manifests = keys.into_iter().filter(|f| {
        let name = f.rsplit('/').next().unwrap();
        f.contains("/binlogs/") && name.ends_with(".json") && name != "seen.json"
    });
    manifests
        .filter_map(|manifest| {
            // One that a store lost half of is none.
            let stored: Value = serde_json::from_slice(&get(&manifest)).ok()?;
            assert_eq!(stored["schema"], "batch.isekiro.com/segment/v1");
            let key = stored["key"].as_str().unwrap();
            let raw = get(key);
            assert_eq!(raw.len() as u64, stored["storedBytes"].as_u64().unwrap());
            let bytes = decoded(key, raw, identity);
            Some(Kept {
                number: manifest.rsplit('/').next().unwrap().to_owned(),
                segment: serde_json::from_value(stored["segment"].clone()).unwrap(),
                bytes,
            })
        })
        .collect()
}

/// Stored bytes as the server had them, by the `zstd` program.
pub fn decoded(key: &str, mut raw: Vec<u8>, identity: Option<&age::x25519::Identity>) -> Vec<u8> {
    if let Some(identity) = identity {
        assert!(key.ends_with(".binlog.zst.age"), "{key}");
        let decryptor = age::Decryptor::new(&raw[..]).unwrap();
        let mut plain = vec![];
        let identities = std::iter::once(identity as &dyn age::Identity);
        let mut reader = decryptor.decrypt(identities).unwrap();
        reader.read_to_end(&mut plain).unwrap();
        raw = plain;
    }
    if !key.contains(".zst") {
        return raw;
    }
    let mut text = tempfile::NamedTempFile::new().unwrap();
    std::io::Write::write_all(&mut text, &raw).unwrap();
    run(Command::new("zstd").arg("-dcq").arg(text.path())).stdout
}

/// All of a runner's directory.
pub fn kept(runner: &Runner, identity: Option<&age::x25519::Identity>) -> Vec<Kept> {
    kept_of(runner.files(), &|key| runner.read(key), identity)
}

pub fn chained(kept: &[Kept]) -> Chain {
    let segments: Vec<Segment> = kept.iter().map(|k| k.segment.clone()).collect();
    chain(&segments)
}

/// Each closed file is what was stored of it; gives their number.
pub fn compare(db: &MariaDb, kept: &[Kept]) -> usize {
    let mut files: BTreeMap<&str, Vec<u8>> = BTreeMap::new();
    for k in kept {
        let file = files.entry(&k.segment.file).or_default();
        assert_eq!(file.len() as u64, k.segment.from, "{}", k.segment.file);
        file.extend_from_slice(&k.bytes);
    }
    let last = *files.keys().last().unwrap();
    let mut whole = 0;
    for (file, bytes) in files.iter().filter(|(file, _)| **file != last) {
        let mut on_disk = std::fs::read(db.dir.path().join("data").join(file)).unwrap();
        // That the file is in use is said by no server that sends it.
        on_disk[4 + 17] &= !1;
        assert!(*bytes == on_disk, "{file} differs");
        whole += 1;
    }
    whole
}

/// One window, no gap, nothing twice, numbers without a hole.
#[track_caller]
pub fn assert_whole(kept: &[Kept]) {
    let chain = chained(kept);
    assert_eq!(
        (chain.windows.len(), chain.gaps.len(), chain.spare.len()),
        (1, 0, 0),
        "{:?}",
        chain.gaps
    );
    for (number, kept) in kept.iter().enumerate() {
        assert_eq!(kept.number, format!("{number:09}.json"));
    }
}

pub fn writes(from: u32, count: u32) -> String {
    (from..from + count)
        .map(|i| format!("insert w.n (v) values ({i});\n"))
        .collect()
}

/// File and position up to which something is stored.
pub fn stored_up_to(runner: &Runner) -> (String, u64) {
    let mut manifests = runner.files().into_iter().filter(|f| {
        let name = f.rsplit('/').next().unwrap();
        f.contains("/binlogs/") && name.ends_with(".json") && !name.starts_with(['.', 's'])
    });
    let stored: Option<Value> = manifests
        .next_back()
        .and_then(|newest| serde_json::from_slice(&runner.read(&newest)).ok());
    let Some(stored) = stored else {
        return Default::default();
    };
    let segment = &stored["segment"];
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    (text(&segment["file"]), segment["to"].as_u64().unwrap())
}

/// File and position of the end of a server's log.
pub fn end_of_log(db: &MariaDb, statement: &str) -> (String, u64) {
    let status = db.sql(statement);
    let mut words = status.split('\t');
    let file = words.next().unwrap().to_owned();
    (file, words.next().unwrap().parse().unwrap())
}
