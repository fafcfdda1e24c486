//! What a List says is stored, on every type of store, and what becomes of it: what is missing, what was
//! pruned, what a Backup's former self or gobackup itself stored.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "tests"
)]

mod common;

use std::path::{Path, PathBuf};

use common::backup::{Backup, archives, azure_backup, ftp_backup, sh, ssh_backup, storage};
use common::servers::{POSTGRES_PASSWORD, postgres, psql, webdav};
use common::stores::{azure, ftp, gcs, ssh};
use common::{Finished, Runner, fixture};
use serde_json::{Value, json};

const RUN: &str = "nightly-28950870";

/// The events of this name in the log.
fn events(done: &Finished, name: &str) -> Vec<Value> {
    let lines = done.stdout.lines();
    let lines = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.filter(|line| line["event"] == name).collect()
}

/// State and key of each artefact of a List.
fn states(done: &Finished) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let events = events(done, "artefact");
    let mut all: Vec<_> = events
        .iter()
        .map(|e| (text(&e["state"]), text(&e["key"])))
        .collect();
    all.sort();
    all
}

fn list(backup: &mut Backup) -> Finished {
    backup.act("nightly-list-1", "List", json!({}))
}

/// On every type of store: a record whose archive is gone, and the archives of a Backup deleted since.
#[test]
fn u7_g3_what_is_missing_and_what_a_former_self_stored() {
    type Remove = Box<dyn Fn(&str)>;
    let below = |root: PathBuf| -> Remove {
        Box::new(move |key| std::fs::remove_file(root.join(key)).unwrap())
    };
    let cloud = json!({"bucket": "backups", "endpoint": gcs().url, "keep": 0});
    let mut in_cloud = Backup::new();
    in_cloud.add("storages", storage("cloud", "gcs", "u7", cloud));
    let disk = Backup::new().with_disk(0);
    let at_disk = disk.disk();
    let vault = ssh().root.join("u7");
    let kinds: [(Backup, Remove); 7] = [
        (disk, below(at_disk)),
        (
            Backup::new().with_bucket("u7", 0),
            Box::new(|key| common::s3::remove(common::s3::moto(), key)),
        ),
        (
            Backup::new().with_dav("site/u7", 0),
            below(webdav().1.clone()),
        ),
        (
            ftp_backup(ftp().port, "u7", json!({"keep": 0})),
            below(ftp().root.clone()),
        ),
        (
            ssh_backup(vault.to_str().unwrap(), json!({"keep": 0})),
            below(PathBuf::from("/")),
        ),
        (in_cloud, below(gcs().root.join("backups"))),
        (
            azure_backup("u7", json!({"keep": 0})),
            Box::new(|key| drop(azure().request("DELETE", &format!("backups/{key}")))),
        ),
    ];
    for (mut backup, remove) in kinds {
        let name = backup.plan["storages"][0]["name"]
            .as_str()
            .unwrap()
            .to_owned();
        backup.run(RUN).assert_good();
        let done = list(&mut backup);
        done.assert_good();
        let key = done.report.artefacts[0].key.clone();
        let only = |state: &str| [(state.to_owned(), key.clone())];
        assert_eq!(states(&done), only("Stored"), "{name}");

        backup.uid = "uid-2";
        let done = list(&mut backup);
        done.assert_good();
        assert_eq!(states(&done), only("Former"), "{name}");
        assert_eq!(
            done.report.artefacts.len(),
            0,
            "it is none of this Backup's"
        );
        backup
            .act("nightly-verify-1", "Verify", json!({}))
            .assert_failed(4, "ArtefactNotFound", &["--stored"]);
        backup
            .act("nightly-verify-2", "Verify", json!({"key": key}))
            .assert_good();
        let (code, header, _, said) = backup.download(&["--key", &key, "--raw"]);
        assert_eq!(code, 0, "{name}: {said}");
        assert_eq!(header["key"], key, "{name}");
        // Nothing of it is this Backup's to remove.
        let done = backup.act("nightly-prune-1", "Prune", json!({"all": true}));
        done.assert_good();
        assert_eq!(done.report.pruned, Some(0), "{name}");

        backup.uid = "uid-1";
        remove(&key);
        let done = list(&mut backup);
        done.assert_good();
        assert_eq!(states(&done), only("Missing"), "{name}");
        assert_eq!(done.report.artefacts.len(), 0);
        backup
            .act("nightly-verify-3", "Verify", json!({}))
            .assert_failed(5, "ArtefactGone", &[&name]);
    }
}

/// A tar of gobackup's own, with its inner tree, sealed by the user's openssl; and gobackup's list.
fn by_gobackup(backup: &Backup, name: &str, listed: bool) {
    let tree = backup.dir().join("tree");
    let dump = tree.join("nightly/postgresql/maindb");
    std::fs::create_dir_all(&dump).unwrap();
    let sql = "CREATE TABLE public.old (x integer);\nCOPY public.old (x) FROM stdin;\n1\n2\n\\.\n\n--\n-- PostgreSQL database dump complete\n--\n\n";
    let head = "--\n-- PostgreSQL database dump\n--\n\n-- Dumped from database version 15.0\n-- Dumped by pg_dump version 15.0\n\n";
    std::fs::write(dump.join("app.sql"), format!("{head}{sql}")).unwrap();
    let pack = format!(
        "tar -C $1 -c nightly | gzip | openssl enc -aes-256-cbc -pbkdf2 -pass 'pass:open sesame' -out {}",
        backup.disk().join(name).display()
    );
    sh(&pack, &tree);
    if listed {
        let state = backup.disk().join(".gobackup-state");
        std::fs::create_dir_all(&state).unwrap();
        let entries = json!([{"file_key": name, "created_at": "2024-01-01T02:00:00Z"}]);
        std::fs::write(state.join("nightly_disk.json"), entries.to_string()).unwrap();
    }
}

#[test]
fn g3_gobackups_own_archives_are_listed_downloaded_and_restored_by_key() {
    let mut backup = Backup::new().with_postgres().with_disk(0);
    backup.plan["encrypt"] = json!({
        "type": "openssl", "password": backup.secret("enc", "open sesame"), "bits": 256, "iterations": 10_000,
        "digest": "sha256", "base64": false,
    });
    let (listed, bare) = (
        "2024.01.01.03.00.00.tar.gz.enc",
        "2024.01.02.03.00.00.tar.gz.enc",
    );
    by_gobackup(&backup, listed, true);
    by_gobackup(&backup, bare, false);
    std::fs::write(backup.disk().join("notes.tar"), "somebody's").unwrap();
    let done = list(&mut backup);
    done.assert_good();
    let expected = [("Gobackup", listed), ("NoRecord", bare)];
    assert_eq!(
        states(&done),
        expected.map(|(state, key)| (state.to_owned(), key.to_owned()))
    );
    for event in events(&done, "artefact") {
        assert_eq!(event["encryption"], "openssl", "{event}");
        assert_eq!(event["readBack"], false, "{event}");
    }
    assert_eq!(
        events(&done, "artefact")[0]["startedAt"],
        "2024-01-01T02:00:00Z"
    );

    backup.run(RUN).assert_good();
    let target = json!({
        "host": "127.0.0.1", "port": postgres(),
        "usernameFile": backup.secret("to-user", "postgres"), "passwordFile": backup.secret("to", POSTGRES_PASSWORD),
    });
    for (n, key) in [listed, bare].into_iter().enumerate() {
        let (code, header, rest, said) = backup.download(&["--key", key]);
        assert_eq!(code, 0, "{said}");
        assert_eq!(header["key"], key);
        let warnings = header["warnings"].to_string();
        assert!(warnings.contains("no record says"), "{warnings}");
        let length = usize::try_from(header["length"].as_u64().unwrap()).unwrap();
        let tar = backup.dir().join("fetched.tar");
        std::fs::write(&tar, &rest[..length]).unwrap();
        assert!(sh("tar tf $1", &tar).contains("nightly/postgresql/maindb/app.sql"));

        let database = format!("g3_copy_{n}");
        let options = json!({"key": key, "database": database});
        let done = backup.restore(target.clone(), options);
        done.assert_good();
        assert!(
            done.report
                .warnings
                .iter()
                .any(|w| w.starts_with("no record says")),
            "{:?}",
            done.report
        );
        assert_eq!(psql(postgres(), &database, "select count(*) from old"), "2");
        backup
            .act("nightly-verify-1", "Verify", json!({"key": key}))
            .assert_failed(2, "NotVerifiable", &["no record says"]);
    }
    // The newest is that of a run, whatever else is there.
    backup
        .act("nightly-verify-2", "Verify", json!({}))
        .assert_good();
    // Without the list's own word nothing of it goes.
    backup
        .act("nightly-prune-1", "Prune", json!({"all": true}))
        .assert_good();
    for key in [listed, bare, "notes.tar"] {
        assert!(backup.disk().join(key).exists(), "{key}");
    }
}

#[test]
fn g4_what_was_pruned_is_told_and_a_broken_storage_keeps_nothing_back() {
    let mut backup = Backup::new().with_disk(1).with_dav("site/g4", 0);
    backup.run("nightly-28950870").assert_good();
    let first = archives(&backup.disk()).remove(0);
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    backup.run("nightly-28950871").assert_good();
    assert!(!first.exists());
    let done = list(&mut backup);
    done.assert_good();
    let pruned = events(&done, "prunedBefore");
    assert_eq!(pruned.len(), 1, "{pruned:?}");
    assert_eq!(pruned[0]["key"], name(&first));
    assert_eq!(pruned[0]["storage"], "disk");
    assert_eq!(states(&done).len(), 3);
    // Since the first run retention remembers; where nothing is ever pruned there is nothing to remember.
    let begun = events(&done, "forgotten");
    assert_eq!((begun.len(), &begun[0]["storage"]), (1, &json!("disk")));

    // Without what the store remembers nobody knows what was pruned before.
    sh(
        "find $1 -name .facts -print -delete | grep -q .",
        &backup.disk(),
    );
    let done = list(&mut backup);
    let forgotten = events(&done, "forgotten");
    assert_eq!(forgotten.len(), 1, "{forgotten:?}");
    assert_eq!(forgotten[0]["storage"], "disk");
    assert!(forgotten[0]["before"].as_str() > begun[0]["before"].as_str());
    assert_eq!(events(&done, "prunedBefore").len(), 0);
    backup.run("nightly-28950872").assert_good();
    let done = list(&mut backup);
    let later = events(&done, "forgotten");
    assert!(later[0]["before"].as_str() >= forgotten[0]["before"].as_str());
    assert_eq!((later.len(), events(&done, "prunedBefore").len()), (1, 1));

    let good = std::fs::read_to_string(backup.dir().join("dav")).unwrap();
    backup.secret("dav", "wrong");
    let done = list(&mut backup);
    done.assert_failed(
        4,
        "PermissionDenied",
        &["Storage dav", "the rest: 1 archives", "on storage disk"],
    );
    assert_eq!(states(&done).len(), 1);
    let lost = events(&done, "unreachable");
    assert_eq!(lost.len(), 1, "{lost:?}");
    assert_eq!(
        (&lost[0]["storage"], &lost[0]["reason"]),
        (&json!("dav"), &json!("PermissionDenied"))
    );
    let done = backup.act("nightly-verify-1", "Verify", json!({}));
    done.assert_failed(
        4,
        "PermissionDenied",
        &["Storage dav", "the rest: storage disk: "],
    );
    assert!(done.report.verification.unwrap().passed);
    backup.secret("dav", good.trim());
    // What all of it was asked to be removed leaves nothing behind.
    backup
        .act("nightly-prune-1", "Prune", json!({"all": true}))
        .assert_good();
    assert!(archives(&backup.disk()).is_empty());
}

/// Somebody asked for all to go: what is not there as it was stored goes too, where it can be nobody
/// else's.
#[test]
fn prune_all_takes_what_is_damaged_and_leaves_what_another_may_have_stored() {
    for other in [None, Some("record"), Some("list")] {
        let mut backup = Backup::new().with_disk(1);
        backup.run(RUN).assert_good();
        let archive = archives(&backup.disk()).remove(0);
        let name = archive.file_name().unwrap().to_str().unwrap().to_owned();
        std::fs::write(&archive, "cut").unwrap();
        let done = list(&mut backup);
        assert_eq!(states(&done), [("Damaged".to_owned(), name.clone())]);
        let done = backup.act("nightly-prune-1", "Prune", json!({}));
        done.assert_good();
        assert!(archive.exists() && done.stdout.contains("not what was stored"));

        let state = backup.disk().join(".gobackup-state");
        match other {
            Some("record") => {
                let directory = state.join("ns1.weekly.0123abcd");
                std::fs::create_dir(&directory).unwrap();
                std::fs::write(directory.join(format!("{name}.json")), "{}").unwrap();
            }
            Some(_) => {
                let entries = json!([{"file_key": name, "created_at": "2025-01-01T00:00:00Z"}]);
                std::fs::write(state.join("weekly_disk.json"), entries.to_string()).unwrap();
            }
            None => {}
        }
        let done = backup.act("nightly-prune-2", "Prune", json!({"all": true}));
        done.assert_good();
        assert_eq!(archive.exists(), other.is_some(), "{other:?}");
        let left = std::fs::read_dir(&state).map_or(0, |dir| {
            dir.filter(|e| {
                e.as_ref()
                    .unwrap()
                    .path()
                    .join(format!("{name}.json"))
                    .exists()
            })
            .count()
        });
        assert_eq!(
            left,
            if other == Some("record") {
                2
            } else {
                usize::from(other.is_some())
            }
        );
    }
}

#[test]
fn u7_a_dump_that_vanished_is_missing_and_no_verification_passes_over_it() {
    let mut runner = Runner::new(fixture());
    for n in 0..2 {
        runner = runner.spec(&format!("shop-0000000{n}"), None, json!({}));
        runner.run().assert_good();
    }
    let act = |runner: Runner, action: &str, options: Value| {
        runner.spec(
            "shop-r0000001",
            None,
            json!({"action": action, "options": options}),
        )
    };
    let mut keys = runner.artefacts();
    keys.sort();
    let newest = runner.sql_path().join(&keys[1]);
    for (state, reason) in [("Damaged", "ReadBackDiffers"), ("Missing", "ArtefactGone")] {
        match state {
            "Damaged" => std::fs::write(&newest, "cut").unwrap(),
            _ => std::fs::remove_file(&newest).unwrap(),
        }
        runner = act(runner, "List", Value::Null);
        let done = runner.run();
        done.assert_good();
        assert_eq!(
            states(&done),
            [
                (state.to_owned(), keys[1].clone()),
                ("Stored".to_owned(), keys[0].clone())
            ]
        );
        assert_eq!(done.report.artefacts.len(), 1);
        runner = act(runner, "Verify", Value::Null);
        runner.run().assert_failed(5, reason, &[&keys[1]]);
        runner = act(runner, "Verify", json!({"run": "shop-00000001"}));
        runner.run().assert_failed(5, reason, &[&keys[1]]);
    }
    runner = runner.spec(
        "shop-r0000002",
        None,
        json!({"action": "Prune", "options": {"all": true}}),
    );
    runner.run().assert_good();
    runner.assert_nothing_left();
}
