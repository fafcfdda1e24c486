//! What any generation of the runner stored is listed, verified and restored by this one: a folder of fixtures/artefacts
//! each, with the artefacts as they were stored, the contents as the server's own client told them, and the key.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "tests"
)]

mod common;

use std::path::{Path, PathBuf};

use common::backup::Backup;
use common::{Finished, MariaDb, Runner, fixture};
use dump::{Compress, Encoder, File, Frames, Meta, Section};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// Contents of the database `shop`, whatever its name is now.
fn content(db: &MariaDb, name: &str) -> String {
    let text = [
        "select id, txt, hex(b), total, ts from NAME.t order by id",
        "select count(*) from NAME.big",
        "select * from NAME.v order by id",
        "select table_name, table_type from information_schema.tables where table_schema='NAME' order by 1",
        "select routine_name, routine_definition from information_schema.routines where routine_schema='NAME'",
        "select event_name, event_definition from information_schema.events where event_schema='NAME'",
        "select trigger_name, action_statement from information_schema.triggers where trigger_schema='NAME'",
    ]
    .map(|sql| db.sql(&sql.replace("NAME", name)));
    text.join("--\n")
}

fn home() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/artefacts")
}

fn generations() -> Vec<PathBuf> {
    let all = std::fs::read_dir(home()).unwrap();
    let mut all: Vec<PathBuf> = all.map(|entry| entry.unwrap().path()).collect();
    all.sort();
    assert!(!all.is_empty());
    all
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let to = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &to);
        } else {
            std::fs::copy(&path, &to).unwrap();
        }
    }
}

/// Keys of the artefacts that a List names.
fn listed(done: &Finished) -> Vec<String> {
    done.assert_good();
    let lines = done.stdout.lines();
    let lines = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut keys: Vec<String> = lines
        .filter(|line| line["event"] == "artefact" && line["state"] == "Stored")
        .map(|line| line["key"].as_str().unwrap().to_owned())
        .collect();
    keys.sort();
    keys
}

/// Lists, verifies and restores every dump below `directory` and compares it with `expected`.
fn dumps_are_good(who: &str, directory: &Path, identity: &Path, expected: &str, least: usize) {
    let target = fixture();
    let runner = Runner::new(target);
    copy(directory, &runner.sql_path());
    let keys = runner.artefacts();
    assert!(keys.len() >= least, "{keys:?}");
    let act = |runner: Runner, action: &str, options: Value| {
        let more = json!({"action": action, "options": options, "identityFile": identity});
        let runner = runner.spec("shop-1", None, more);
        let done = runner.run();
        (runner, done)
    };
    let (mut runner, done) = act(runner, "List", json!({}));
    assert_eq!(listed(&done), keys);
    for (n, key) in keys.iter().enumerate() {
        let done;
        (runner, done) = act(runner, "Verify", json!({"key": key}));
        done.assert_good();
        let name = format!("{who}_{n}");
        let options = json!({"restore": {"key": key, "database": name}});
        let done;
        (runner, done) = act(runner, "Restore", options);
        done.assert_good();
        assert_eq!(content(target, &name), expected, "{key}");
        target.sql(&format!("drop database {name}"));
    }
    // A byte of it that is another one is seen.
    let key = &keys[0];
    let file = runner.sql_path().join(key);
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let (_, done) = act(runner, "Verify", json!({"key": key}));
    assert_eq!(done.code, Some(5), "{}", done.stdout);
}

/// A Backup whose disk holds an archive of this generation.
fn archived(directory: &Path) -> Backup {
    let backup = sealed();
    copy(directory, &backup.disk());
    backup
}

fn sealed() -> Backup {
    let mut backup = Backup::new();
    backup.plan["databases"] = json!([]);
    let mut backup = backup.with_mariadb().with_disk(0);
    backup.plan["compress"] = json!({"codec": "gzip"});
    backup.plan["split"] = json!({"bytes": 512, "suffixLength": 3, "numeric": true});
    backup.plan["encrypt"] = json!({
        "type": "openssl", "password": backup.secret("enc", "open sesame"), "bits": 256, "iterations": 10_000,
        "digest": "sha256", "base64": false,
    });
    backup
}

#[test]
fn what_older_runners_stored_is_listed_verified_and_restored() {
    for generation in generations() {
        let expected = std::fs::read_to_string(generation.join("content")).unwrap();
        let identity = generation.join("age-identity");
        dumps_are_good("older", &generation.join("dumps"), &identity, &expected, 4);

        let mut backup = archived(&generation.join("archives"));
        let keys = listed(&backup.act("nightly-list-1", "List", json!({})));
        assert_eq!(keys.len(), 1, "{}: {keys:?}", generation.display());
        backup
            .act("nightly-verify-1", "Verify", json!({"key": keys[0]}))
            .assert_good();
        let target = fixture();
        let source = json!({
            "host": "127.0.0.1", "port": target.port,
            "usernameFile": backup.secret("to-user", "full"), "passwordFile": backup.secret("to", "S3cr3t-marker"),
        });
        let name = "archived";
        backup
            .restore(source, json!({"key": keys[0], "database": name}))
            .assert_good();
        assert_eq!(content(target, name), expected);
        target.sql(&format!("drop database {name}"));
    }
}

/// The same text in frames, with a seek table at its end: what a native dump is stored as, in each compression.
#[test]
fn a_dump_in_frames_is_listed_verified_and_restored_as_any() {
    let newest = generations().pop().unwrap();
    let expected = std::fs::read_to_string(newest.join("content")).unwrap();
    let from = tempfile::tempdir().unwrap();
    copy(&newest.join("dumps"), from.path());
    let root = from.path().join("ns1/MysqlBackup/shop");
    let plain = std::fs::read_dir(&root)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|e| e == "sql"))
        .unwrap();
    let text = std::fs::read(&plain).unwrap();
    let manifest: Value =
        serde_json::from_slice(&std::fs::read(format!("{}.json", plain.display())).unwrap())
            .unwrap();
    std::fs::remove_dir_all(&root).unwrap();
    std::fs::create_dir_all(&root).unwrap();
    for (n, (compress, codec, ending)) in [
        (Compress::Zstd(3), "zstd", ".sql.zst"),
        (Compress::Gzip(6), "gzip", ".sql.gz"),
        (Compress::None, "none", ".sql"),
    ]
    .into_iter()
    .enumerate()
    {
        let (stored, frames) = framed(&text, compress);
        assert!(frames.len() > 5, "{}", frames.len());
        let name = format!("20261101T00000{n}Z-0000000{n}{ending}");
        std::fs::write(root.join(&name), &stored).unwrap();
        let mut manifest = manifest.clone();
        // These are cut anywhere, so that no section is theirs: the manifest knows of none.
        manifest.as_object_mut().unwrap().remove("frames");
        manifest["key"] = json!(format!("ns1/MysqlBackup/shop/{name}"));
        manifest["compression"] = json!(codec);
        manifest["storedBytes"] = json!(stored.len());
        manifest["storedSha256"] = json!(hex(&Sha256::digest(&stored)));
        manifest["run"] = json!(format!("shop-0000000{n}"));
        let manifest = serde_json::to_vec(&manifest).unwrap();
        std::fs::write(root.join(format!("{name}.json")), manifest).unwrap();
    }
    dumps_are_good(
        "framed",
        from.path(),
        &newest.join("age-identity"),
        &expected,
        3,
    );
}

/// A text of statements in frames of a few lines.
fn framed(text: &[u8], compress: Compress) -> (Vec<u8>, Frames) {
    let mut encoder = Encoder::new(compress).unwrap();
    let mut file = File::new(vec![], compress);
    let (mut piece, mut out) = (vec![], vec![]);
    let mut lines = text.split_inclusive(|b| *b == b'\n').peekable();
    while let Some(line) = lines.next() {
        piece.extend_from_slice(line);
        if lines.peek().is_none() || piece.len() > 256 && line.ends_with(b";\n") {
            encoder.encode(&piece, &mut out).unwrap();
            let meta = Meta {
                section: Section::Data,
                database: "shop".into(),
                ..Meta::default()
            };
            file.write(meta, piece.len() as u64, &out).unwrap();
            piece.clear();
        }
    }
    file.finish().unwrap()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// Keeps what this runner stores as a generation of its own, named by the variable `GENERATION`.
#[test]
#[ignore = "writes a folder of fixtures"]
fn keep_a_generation() {
    let generation = home().join(std::env::var("GENERATION").unwrap());
    let secret = age::x25519::Identity::generate();
    let dumps = generation.join("dumps");
    std::fs::create_dir_all(&dumps).unwrap();
    let identity = age::secrecy::ExposeSecret::expose_secret(&secret.to_string()).to_owned();
    std::fs::write(generation.join("age-identity"), format!("{identity}\n")).unwrap();
    let public = secret.to_public().to_string();
    for (n, (codec, encryption)) in [
        ("none", Value::Null),
        ("gzip", Value::Null),
        ("zstd", Value::Null),
        ("zstd", json!({"age": {"recipients": [public]}})),
    ]
    .into_iter()
    .enumerate()
    {
        let more = json!({"compression": {"type": codec}, "encryption": encryption});
        let slot = format!("2026-11-0{}T00:00:00Z", n + 1);
        Runner::new(fixture())
            .set("DATABASES", "shop")
            .set("SQLPATH", dumps.display().to_string())
            .spec(&format!("shop-0000000{n}"), Some(&slot), more)
            .run()
            .assert_good();
    }
    std::fs::write(generation.join("content"), content(fixture(), "shop")).unwrap();
    let mut backup = sealed();
    backup.run("nightly-28950870").assert_good();
    copy(&backup.disk(), &generation.join("archives"));
}
