//! Retention of both kinds, by the program itself, over artefacts written by hand: what stays, what
//! is read for it, and how much memory that takes.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "tests"
)]

mod common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use common::backup::{Backup, archives};
use common::s3::with_bucket;
use common::{Finished, Runner, fixture};
use serde_json::{Value, json};

const DIRECTORY: &str = "ns1/MysqlBackup/shop";

/// Files in which `kubectl backup` keeps what it stored, as the runner of the version before wrote them.
struct Dump<'a> {
    name: String,
    slot: Option<&'a str>,
    started: &'a str,
    raw: u64,
    cluster: &'a str,
    uid: &'a str,
    read_back: bool,
    tables: usize,
}

impl Dump<'_> {
    /// The n-th night of January 2025.
    fn night(n: u32) -> Dump<'static> {
        Dump {
            name: format!("202501{n:02}T030000Z-{n:08}.sql.zst"),
            slot: Some(Box::leak(
                format!("2025-01-{n:02}T03:00:00Z").into_boxed_str(),
            )),
            started: Box::leak(format!("2025-01-{n:02}T03:00:05Z").into_boxed_str()),
            raw: 1000,
            cluster: "",
            uid: "uid-1",
            read_back: true,
            tables: 1,
        }
    }

    fn key(&self) -> String {
        format!("{DIRECTORY}/{}", self.name)
    }

    /// What comes before the lists, and the lists.
    fn manifest(&self) -> (String, String) {
        let slot = self
            .slot
            .map_or(String::new(), |s| format!("\"slot\":\"{s}\","));
        let head = format!(
            "{{\"schema\":\"batch.isekiro.com/manifest/v1\",\"runnerVersion\":\"1.0.0\",\"clusterId\":\"{}\",\
             \"object\":{{\"kind\":\"MysqlBackup\",\"namespace\":\"ns1\",\"name\":\"shop\",\"uid\":\"{}\"}},\
             \"run\":\"shop-{}\",{slot}\"trigger\":\"Schedule\",\"startedAt\":\"{}\",\"endedAt\":\"{}\",\"key\":\"{}\",\
             \"compression\":\"zstd\",\"rawBytes\":{},\"rawSha256\":\"00\",\"storedBytes\":4,\"storedSha256\":\"{}\",\
             \"readBack\":{},",
            self.cluster,
            self.uid,
            &self.name[17..25],
            self.started,
            self.started,
            self.key(),
            self.raw,
            // Of "dump", by sha256sum.
            "f4c5a42c2b1d2a24e2f1e2c5bd4f0d0f6a7ccf2ef64e54ba4a9d0f3f1f5c9d57",
            self.read_back,
        );
        (head, tables(self.tables))
    }

    fn write(&self, root: &Path) {
        let directory = root.join(DIRECTORY);
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(root.join(self.key()), "dump").unwrap();
        let (head, rest) = self.manifest();
        std::fs::write(root.join(format!("{}.json", self.key())), head + &rest).unwrap();
    }
}

/// The end of a manifest with so many tables.
fn tables(count: usize) -> String {
    let tables: Vec<String> = (0..count)
        .map(|n| {
            format!(
                "{{\"database\":\"shop\",\"name\":\"a_table_with_a_usual_name_{n:06}\",\"rows\":{n},\"hash\":\"{n:032x}\"}}"
            )
        })
        .collect();
    format!(
        "\"server\":\"10.11.6-MariaDB\",\"serverIdentity\":{{\"hostname\":\"h\",\"port\":\"3306\",\"datadir\":\"/d\"}},\
         \"client\":\"mariadb-dump\",\"arguments\":[\"--quick\"],\"databases\":[\"shop\"],\"tables\":[{}],\
         \"views\":0,\"triggers\":0,\"routines\":0,\"events\":0}}",
        tables.join(",")
    )
}

/// The runner on a volume with these; it needs no server for what is asked here.
fn volume(dumps: &[Dump<'_>]) -> Runner {
    let runner = Runner::bare();
    let sql = runner.out.path().join("sql");
    std::fs::create_dir_all(sql.join(DIRECTORY)).unwrap();
    for dump in dumps {
        dump.write(&sql);
    }
    runner
        .set("SQLPATH", sql.display().to_string())
        .set("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
}

/// Asks for a Prune.
fn prune(runner: Runner, more: Value) -> (Runner, Finished) {
    let mut spec = json!({"action": "Prune"});
    for (key, value) in more.as_object().unwrap() {
        spec[key] = value.clone();
    }
    let runner = runner.spec("shop-p0000001", None, spec);
    let done = runner.run();
    (runner, done)
}

/// Nights whose artefact is left.
fn nights(runner: &Runner) -> Vec<u32> {
    let keys = runner.artefacts();
    let own = keys.iter().filter(|k| k.ends_with(".sql.zst"));
    own.map(|k| k.rsplit('/').next().unwrap()[6..8].parse().unwrap())
        .collect()
}

/// Decisions of a run, as its log says them.
fn decisions(done: &Finished) -> Vec<(String, bool)> {
    let lines = done.stdout.lines();
    lines
        .filter_map(|l| serde_json::from_str::<Value>(l).ok())
        .filter(|v| v["event"] == "retention")
        .map(|v| (v["key"].as_str().unwrap().to_owned(), v["goes"] == true))
        .collect()
}

fn warned(done: &Finished, word: &str) -> bool {
    done.report.warnings.iter().any(|w| w.contains(word))
}

#[test]
fn r1_a_future_artefact_takes_no_place_and_the_slot_is_the_order() {
    let mut dumps: Vec<Dump<'_>> = (1..=6).map(Dump::night).collect();
    // A run that somebody asked for, by a pod whose clock was years ahead.
    dumps[5].slot = None;
    dumps[5].started = "2099-01-06T03:00:05Z";
    // Another of the schedule by the same clock: its slot says when it was.
    dumps[0].started = "2099-01-01T03:00:05Z";
    let runner = volume(&dumps);
    let rules = json!({"retention": {"keepLast": 3}});
    let (runner, done) = prune(runner, rules);
    done.assert_good();
    assert_eq!(nights(&runner), [3, 4, 5, 6], "{}", done.stdout);
    assert!(warned(&done, "dated in the future"), "{:?}", done.report);
    let (runner, done) = prune(runner, json!({"retention": {"keepLast": 1}}));
    done.assert_good();
    assert_eq!(nights(&runner), [5, 6]);
    let (runner, done) = prune(runner, json!({"options": {"all": true}}));
    done.assert_good();
    assert_eq!(runner.files(), [""; 0]);
}

/// One store, one name, two clusters: what names another cluster, or may be another's, stays.
#[test]
fn r2_two_clusters_in_one_store_remove_nothing_of_each_other() {
    let row = |n: u32, cluster: &'static str, uid: &'static str| Dump {
        cluster,
        uid,
        ..Dump::night(n)
    };
    for (cluster, uid, left) in [
        // Its operator may read kube-system: its own two, of which the object of one was made anew.
        ("east", "uid-1", vec![2, 3, 4, 5, 6]),
        // Its operator may not.
        ("", "uid-4", vec![1, 2, 3, 4, 5, 6]),
        // The same, and it has been so from the start.
        ("", "uid-3", vec![1, 2, 3, 4, 5, 6]),
    ] {
        let runner = volume(&[
            row(1, "east", "uid-0"),
            row(2, "west", "uid-2"),
            row(3, "", "uid-3"),
            row(4, "west", "uid-4"),
            row(5, "east", "uid-1"),
            row(6, "", "uid-9"),
        ]);
        let spec = json!({
            "retention": {"keepLast": 1}, "clusterId": cluster,
            "object": {"kind": "MysqlBackup", "namespace": "ns1", "name": "shop", "uid": uid},
        });
        let (runner, done) = prune(runner, spec.clone());
        done.assert_good();
        assert_eq!(nights(&runner), left, "{cluster} {uid}");
        assert!(
            warned(&done, "may be another cluster's"),
            "{:?}",
            done.report
        );
        // Nor when the object goes with its data.
        let mut all = spec;
        all["options"] = json!({"all": true});
        let (runner, done) = prune(runner, all);
        done.assert_good();
        let foreign: &[u32] = match (cluster, uid) {
            ("east", _) => &[2, 3, 4, 6],
            (_, "uid-4") => &[1, 2, 3, 5, 6],
            _ => &[1, 2, 4, 5, 6],
        };
        assert_eq!(nights(&runner), foreign, "{cluster} {uid}");
    }
}

#[test]
fn r2_orphans_of_a_few_bytes_displace_nothing() {
    let dumps: Vec<Dump<'_>> = (1..=3).map(Dump::night).collect();
    let runner = volume(&dumps);
    let root = runner.sql_path();
    for n in 0..5 {
        std::fs::write(root.join(format!("new-{n}.sql.gz")), "gzip").unwrap();
        let old = root.join(format!("old-{n}.sql.gz"));
        std::fs::write(&old, "gzip").unwrap();
        let file = std::fs::File::options().write(true).open(&old).unwrap();
        let years = std::time::Duration::from_secs(10 * 365 * 24 * 3600);
        file.set_modified(std::time::SystemTime::now() - years)
            .unwrap();
    }
    let (runner, done) = prune(
        runner,
        json!({"retention": {"keepLast": 3, "adoptPattern": "*"}}),
    );
    done.assert_good();
    assert_eq!(nights(&runner), [1, 2, 3], "{}", done.stdout);
    let left = runner.artefacts();
    assert!(left.iter().any(|k| k.starts_with("new-")), "{left:?}");
    assert!(!left.iter().any(|k| k.starts_with("old-")), "{left:?}");
    assert_eq!(done.report.pruned, Some(5));
}

#[test]
fn r2_what_was_not_read_back_is_neither_counted_nor_a_reason() {
    let mut dumps: Vec<Dump<'_>> = (1..=4).map(Dump::night).collect();
    dumps[2].read_back = false;
    dumps[3].read_back = false;
    let (runner, done) = prune(volume(&dumps), json!({"retention": {"keepLast": 1}}));
    done.assert_good();
    assert_eq!(nights(&runner), [2, 3, 4], "{}", done.stdout);
}

/// A dry run and the run after it say the same, and only the second one removes.
#[test]
fn h1_a_dry_run_says_what_a_run_does() {
    let dumps: Vec<Dump<'_>> = (1..=5).map(Dump::night).collect();
    let rules = json!({"keepLast": 2, "maxAge": "24h"});
    let (runner, dry) = prune(
        volume(&dumps),
        json!({"retention": rules, "options": {"dryRun": true}}),
    );
    dry.assert_good();
    assert!(
        !dry.stdout.contains("\"event\":\"pruned\""),
        "{}",
        dry.stdout
    );
    assert_eq!(nights(&runner), [1, 2, 3, 4, 5]);
    assert_eq!(runner.files().len(), 10, "{:?}", runner.files());
    let (runner, done) = prune(runner, json!({"retention": rules}));
    done.assert_good();
    assert_eq!(done.stdout.matches("\"event\":\"pruned\"").count(), 3);
    assert_eq!(nights(&runner), [4, 5]);
    assert_eq!(decisions(&dry), decisions(&done));
    assert_eq!(decisions(&done).len(), 5);
}

/// An archive and its record, as the version before wrote them.
fn archive(backup: &Backup, night: u32, bytes: u64) -> PathBuf {
    let disk = backup.disk();
    let name = format!("2025.01.{night:02}.03.00.00.tar");
    let content = "x".repeat(usize::try_from(bytes).unwrap());
    std::fs::write(disk.join(&name), content).unwrap();
    let hash = crds::names::short_hash(&["uid-1"], 8);
    let records = disk.join(format!(".gobackup-state/ns1.nightly.{hash}"));
    std::fs::create_dir_all(&records).unwrap();
    let record = json!({
        "schema": "batch.isekiro.com/archive/v1", "runnerVersion": "1.0.0", "clusterId": "",
        "object": {"kind": "Backup", "namespace": "ns1", "name": "nightly", "uid": "uid-1"},
        "run": format!("nightly-{night:08}"), "startedAt": format!("2025-01-{night:02}T03:00:05Z"),
        "key": name, "storedBytes": bytes, "storedSha256": "00",
        "files": [{"path": "nightly/redis/cache/dump.rdb", "bytes": bytes, "sha256": "00"}],
    });
    let at = records.join(format!("{name}.json"));
    std::fs::write(&at, record.to_string()).unwrap();
    at
}

fn left(backup: &Backup) -> Vec<u32> {
    let names = archives(&backup.disk());
    let names = names
        .iter()
        .map(|p| p.file_name().unwrap().to_string_lossy().into_owned());
    names.map(|n| n[8..10].parse().unwrap()).collect()
}

#[test]
fn h1_archives_have_the_guard_too_and_a_lone_record_vouches_for_nothing() {
    let mut backup = Backup::new().with_disk(1);
    for (night, bytes) in [(1, 1000), (2, 1000), (3, 10)] {
        archive(&backup, night, bytes);
    }
    for options in [json!({"dryRun": true}), json!({})] {
        let done = backup.act("nightly-prune-1", "Prune", options);
        done.assert_good();
        assert_eq!(left(&backup), [1, 2, 3]);
        assert!(
            warned(&done, "storage disk: nothing was removed"),
            "{:?}",
            done.report
        );
        assert!(!done.stdout.contains("\"event\":\"pruned\""));
        assert_eq!(done.report.pruned, Some(0));
    }
    // Records whose archive is gone, or cut, are no archives.
    for night in [4, 5] {
        archive(&backup, night, 1000);
    }
    std::fs::remove_file(backup.disk().join("2025.01.04.03.00.00.tar")).unwrap();
    std::fs::write(backup.disk().join("2025.01.05.03.00.00.tar"), "cut").unwrap();
    archive(&backup, 6, 1000);
    // The one before is that of ten bytes.
    let done = backup.act("nightly-prune-2", "Prune", json!({}));
    done.assert_good();
    assert_eq!(left(&backup), [5, 6], "{}", done.stdout);
    let listed = backup.act("nightly-list-1", "List", json!({}));
    assert_eq!(listed.report.artefacts.len(), 1, "{:?}", listed.report);
}

#[test]
fn r1_a_future_archive_takes_no_place() {
    let mut backup = Backup::new().with_disk(2);
    for night in 1..=4 {
        archive(&backup, night, 1000);
    }
    let at = archive(&backup, 5, 1000);
    let record = std::fs::read_to_string(&at).unwrap();
    std::fs::write(&at, record.replace("2025-01-05T", "2099-01-05T")).unwrap();
    let done = backup.act("nightly-prune-1", "Prune", json!({}));
    done.assert_good();
    assert_eq!(left(&backup), [3, 4, 5], "{}", done.stdout);
    assert!(warned(&done, "dated in the future"));
}

/// The list that gobackup itself keeps names a model and nothing else.
#[test]
fn r2_a_state_file_is_left_alone_until_somebody_says_whose_it_is() {
    let mut backup = Backup::new().with_disk(1);
    let disk = backup.disk();
    let old = "2024.01.01.00.00.00.tar.gz";
    std::fs::write(disk.join(old), "another cluster's").unwrap();
    let state = disk.join(".gobackup-state");
    std::fs::create_dir(&state).unwrap();
    let entries = json!([{"file_key": old, "created_at": "2024-01-01T00:00:00Z"}]);
    std::fs::write(state.join("nightly_disk.json"), entries.to_string()).unwrap();
    let before = std::fs::read(state.join("nightly_disk.json")).unwrap();
    let done = backup.run("nightly-28950870");
    done.assert_good();
    assert!(warned(&done, "spec.job.adoptState"), "{:?}", done.report);
    backup
        .act("nightly-prune-1", "Prune", json!({"all": true}))
        .assert_good();
    assert!(disk.join(old).exists());
    assert_eq!(
        std::fs::read(state.join("nightly_disk.json")).unwrap(),
        before
    );
    backup.adopt_state = Some(false);
    let done = backup.run("nightly-28950871");
    done.assert_good();
    assert_eq!(done.report.warnings, [""; 0]);
    assert!(disk.join(old).exists());
    backup.adopt_state = Some(true);
    backup.run("nightly-28950872").assert_good();
    assert!(!disk.join(old).exists());
}

/// What one storage lacks does not let the others fill up, and no attempt stores twice.
#[test]
fn r4_one_broken_storage_of_two() {
    let mut backup = Backup::new().with_disk(1).with_dav("site/r4", 1);
    let good = std::fs::read_to_string(backup.dir().join("dav")).unwrap();
    backup.secret("dav", "wrong");
    for night in 0..2 {
        for attempt in 0..3 {
            let done = backup.run(&format!("nightly-2895087{night}"));
            done.assert_failed(4, "PermissionDenied", &["Storage dav"]);
            assert_eq!(
                done.stdout.contains("\"Dumping\""),
                attempt == 0,
                "{}",
                done.stdout
            );
            assert_eq!(
                archives(&backup.disk()).len(),
                1,
                "night {night}, attempt {attempt}"
            );
            assert_eq!(done.report.artefacts.len(), 1);
        }
    }
    // Mended: the next attempt gives it what the other has.
    backup.secret("dav", good.trim());
    let done = backup.run("nightly-28950871");
    done.assert_good();
    assert!(!done.stdout.contains("\"Dumping\""), "{}", done.stdout);
    let copies = archives(&common::servers::webdav().1.join("site/r4"));
    let original = archives(&backup.disk()).remove(0);
    assert_eq!(copies.len(), 1);
    assert_eq!(
        std::fs::read(&copies[0]).unwrap(),
        std::fs::read(&original).unwrap()
    );
    assert_eq!(copies[0].file_name(), original.file_name());
    let verified = backup.act("nightly-verify-1", "Verify", json!({}));
    verified.assert_good();
    assert_eq!(verified.report.artefacts.len(), 2);
    // What does not read back any more does not count: it is made again.
    for file in copies.iter().chain([&original]) {
        let mut bytes = std::fs::read(file).unwrap();
        bytes[0] ^= 1;
        std::fs::write(file, bytes).unwrap();
    }
    let done = backup.run("nightly-28950871");
    done.assert_good();
    assert!(done.stdout.contains("\"Dumping\""));
}

#[test]
fn r4_the_parts_of_a_split_archive_are_copied_as_one() {
    let mut backup = Backup::new().with_disk(0).with_dav("site/r4-split", 0);
    backup.plan["split"] = json!({"bytes": 64, "suffixLength": 4, "numeric": true});
    let good = std::fs::read_to_string(backup.dir().join("dav")).unwrap();
    backup.secret("dav", "wrong");
    backup
        .run("nightly-28950870")
        .assert_failed(4, "PermissionDenied", &[]);
    backup.secret("dav", good.trim());
    backup.run("nightly-28950870").assert_good();
    let whole = |root: &Path| {
        let directory = archives(root).remove(0);
        let parts = archives(&directory);
        assert!(parts.len() > 2);
        let parts = parts.iter().map(|p| std::fs::read(p).unwrap());
        parts.collect::<Vec<_>>().concat()
    };
    let dav = common::servers::webdav().1.join("site/r4-split");
    assert_eq!(whole(&backup.disk()), whole(&dav));
    backup
        .act("nightly-verify-1", "Verify", json!({}))
        .assert_good();
}

/// A dump that was restored and compared stays when newer ones come, and one that is damaged takes
/// no place.
#[test]
fn h2_what_a_verification_found_decides_for_a_mysql_backup() {
    let rules = json!({"retention": {"keepLast": 1}});
    let mut runner = Runner::new(fixture()).set("DATABASES", "shop");
    let run = |runner: Runner, n: u32| {
        let slot = format!("2025-01-{:02}T03:00:00Z", n + 1);
        let runner = runner.spec(&format!("shop-{n:08}"), Some(&slot), rules.clone());
        runner.run().assert_good();
        runner
    };
    let act = |runner: Runner, mode: &str| {
        let options = json!({"action": "Verify", "options": {"mode": mode}});
        let runner = runner.spec("shop-v0000001", None, options);
        let done = runner.run();
        (runner, done)
    };
    runner = run(runner, 0);
    let first = runner.artefacts().remove(0);
    let (mut runner, done) = act(runner, "Restore");
    done.assert_good();
    let beside = runner.sql_path().join(format!("{first}.verified"));
    let said: Value = serde_json::from_slice(&std::fs::read(&beside).unwrap()).unwrap();
    assert_eq!(said["sha256"], runner.manifest(&first)["storedSha256"]);
    assert_eq!(
        (said["mode"].as_str(), said["passed"].as_bool()),
        (Some("Restore"), Some(true))
    );
    for n in 1..4 {
        runner = run(runner, n);
    }
    let stored = |runner: &Runner| {
        let keys = runner.artefacts().into_iter();
        keys.filter(|k| k.ends_with(".sql.zst")).collect::<Vec<_>>()
    };
    let keys = stored(&runner);
    assert_eq!(keys.len(), 2, "{keys:?}");
    assert_eq!(keys[0], first);

    // The newest is damaged: a verification says so, and the next run keeps another beside it.
    let newest = runner.sql_path().join(&keys[1]);
    let whole = std::fs::read(&newest).unwrap();
    let mut bytes = whole.clone();
    bytes[20] ^= 1;
    std::fs::write(&newest, bytes).unwrap();
    let (runner, done) = act(runner, "Checksum");
    done.assert_failed(5, "ReadBackDiffers", &[]);
    let failed = format!("{}.verify-failed", keys[1]);
    assert!(runner.files().contains(&failed), "{:?}", runner.files());
    // Who asks for the newest gets the newest that is whole, and hears of the other.
    let newest_sent = |runner: &Runner| {
        let words = ["download", "send", "--head"];
        let output = runner.command().args(words).output().unwrap();
        let header: Value = serde_json::from_slice(&output.stdout).unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (header["key"].as_str().unwrap().to_owned(), said)
    };
    let (sent, said) = newest_sent(&runner);
    assert_eq!(sent, first);
    assert!(
        said.contains(&keys[1]) && said.contains("passed over"),
        "{said}"
    );
    let (runner, done) = prune(runner, json!({"retention": {"keepLast": 0}}));
    done.assert_good();
    assert!(stored(&runner).contains(&first));
    // Whole again, as far as bytes go.
    std::fs::write(&newest, whole).unwrap();
    let (runner, done) = act(runner, "Checksum");
    done.assert_good();
    assert!(!runner.files().contains(&failed));
    assert_eq!(newest_sent(&runner).0, keys[1]);
    // What is said of another artefact's bytes is not said of these.
    let text = std::fs::read_to_string(&beside).unwrap();
    let sha = runner.manifest(&first)["storedSha256"]
        .as_str()
        .unwrap()
        .to_owned();
    std::fs::write(&beside, text.replace(&sha, &format!("{}x", &sha[1..]))).unwrap();
    let index = runner.sql_path().join(DIRECTORY).join(".facts");
    std::fs::remove_file(&index).unwrap();
    let (runner, done) = prune(runner, json!({"retention": {"keepLast": 1}}));
    done.assert_good();
    assert_eq!(stored(&runner), [keys[1].clone()], "{}", done.stdout);
    let gone = runner.files();
    assert!(!gone.iter().any(|k| k.ends_with(".verified")), "{gone:?}");
    let (runner, done) = prune(runner, json!({"options": {"all": true}}));
    done.assert_good();
    assert_eq!(runner.files(), [""; 0]);
}

#[test]
fn h2_what_a_verification_found_decides_for_a_backup() {
    let mut backup = Backup::new().with_disk(1).with_dav("site/h2", 1);
    backup.run("nightly-28950870").assert_good();
    let first = archives(&backup.disk()).remove(0);
    let room = backup.dir().join("tmp");
    std::fs::create_dir(&room).unwrap();
    backup
        .runner
        .env
        .insert("TMPDIR".into(), room.display().to_string());
    let done = backup.act("nightly-verify-1", "Verify", json!({"mode": "Restore"}));
    done.assert_good();
    for n in 1..4 {
        backup.run(&format!("nightly-2895087{n}")).assert_good();
    }
    let copies = archives(&common::servers::webdav().1.join("site/h2"));
    for kept in [archives(&backup.disk()), copies] {
        assert_eq!(kept.len(), 2, "{kept:?}");
        assert_eq!(kept[0].file_name(), first.file_name());
    }
    // The newest fails a verification on one storage: the other's is taken, and that is told.
    let newest = archives(&backup.disk()).remove(1);
    let whole = std::fs::read(&newest).unwrap();
    let mut bytes = whole.clone();
    bytes[20] ^= 1;
    std::fs::write(&newest, bytes).unwrap();
    let done = backup.act("nightly-verify-2", "Verify", json!({}));
    done.assert_failed(5, "ReadBackDiffers", &[]);
    let (code, _, sent, said) = backup.download(&["--raw"]);
    assert_eq!(code, 0, "{said}");
    assert!(
        sent.starts_with(&whole) && said.contains("passed over"),
        "{said}"
    );
    backup
        .act("nightly-prune-1", "Prune", json!({"all": true}))
        .assert_good();
    let left = common::backup::sh("find $1 -type f", &backup.disk());
    assert_eq!(left, "");
}

/// A store that counts what is asked of it. Manifests share the text of their lists.
#[derive(Default)]
struct Counting {
    objects: Mutex<BTreeMap<String, Bytes>>,
    tails: Mutex<BTreeMap<String, Bytes>>,
    asked: Mutex<Vec<String>>,
}

impl Counting {
    fn start(self: &Arc<Self>) -> String {
        let app = Router::new().fallback(answer).with_state(Arc::clone(self));
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                axum::serve(listener, app).await.unwrap();
            });
        });
        url
    }

    fn add(&self, dump: &Dump<'_>, tail: &Bytes) {
        let key = format!("pre/fix/{}", dump.key());
        let manifest = format!("{key}.json");
        let mut objects = self.objects.lock().unwrap();
        objects.insert(manifest.clone(), dump.manifest().0.into());
        objects.insert(key, Bytes::from_static(b"dump"));
        self.tails.lock().unwrap().insert(manifest, tail.clone());
    }

    /// Requests since the last look that begin so.
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }

    fn dumps(&self) -> usize {
        let objects = self.objects.lock().unwrap();
        objects.keys().filter(|k| k.ends_with(".sql.zst")).count()
    }
}

async fn answer(
    State(store): State<Arc<Counting>>,
    method: Method,
    uri: Uri,
    body: Bytes,
) -> Response {
    let key = uri
        .path()
        .trim_start_matches("/backups")
        .trim_start_matches('/')
        .to_owned();
    let query = uri.query().unwrap_or_default();
    let name = if key.is_empty() { query } else { &key };
    store.asked.lock().unwrap().push(format!("{method} {name}"));
    let tail = store
        .tails
        .lock()
        .unwrap()
        .get(&key)
        .cloned()
        .unwrap_or_default();
    let mut objects = store.objects.lock().unwrap();
    match method {
        Method::PUT => {
            objects.insert(key, body);
            ([("etag", "\"e\"")], "").into_response()
        }
        Method::DELETE => {
            objects.remove(&key);
            StatusCode::NO_CONTENT.into_response()
        }
        Method::GET if query.contains("uploads") => {
            "<ListMultipartUploadsResult></ListMultipartUploadsResult>".into_response()
        }
        Method::GET if key.is_empty() => {
            let prefix = query.split('&').find_map(|p| p.strip_prefix("prefix="));
            let prefix = prefix.unwrap_or_default().replace("%2F", "/");
            let tails = store.tails.lock().unwrap();
            let contents: String = objects
                .iter()
                .filter(|(k, _)| k.starts_with(&prefix) && !k[prefix.len()..].contains('/'))
                .map(|(k, v)| {
                    let size = v.len() + tails.get(k).map_or(0, Bytes::len);
                    format!("<Contents><Key>{k}</Key><Size>{size}</Size><LastModified>2025-01-15T10:30:00.000Z</LastModified><ETag>\"e\"</ETag></Contents>")
                })
                .collect();
            format!(
                "<ListBucketResult><IsTruncated>false</IsTruncated>{contents}</ListBucketResult>"
            )
            .into_response()
        }
        _ => {
            let Some(head) = objects.get(&key).cloned() else {
                let text = "<Error><Code>NoSuchKey</Code><Message>none</Message></Error>";
                return (StatusCode::NOT_FOUND, text).into_response();
            };
            let length = (head.len() + tail.len()).to_string();
            let headers = [
                ("content-length", length),
                ("etag", "\"e\"".to_owned()),
                ("last-modified", "Wed, 15 Jan 2025 10:30:00 GMT".to_owned()),
            ];
            if method == Method::HEAD {
                return (headers, "").into_response();
            }
            let chunks = futures::stream::iter([head, tail].map(Ok::<_, std::io::Error>));
            (headers, axum::body::Body::from_stream(chunks)).into_response()
        }
    }
}

/// Runs the program; gives also the most memory it had at any time, in bytes.
fn measured(runner: &Runner) -> (Finished, u64) {
    let started = std::time::Instant::now();
    let mut child = runner.start();
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    // Its output is read meanwhile, else it would wait.
    let mut out = child.stdout.take().unwrap();
    let reader = std::thread::spawn(move || {
        let mut text = vec![];
        std::io::Read::read_to_end(&mut out, &mut text).unwrap();
        text
    });
    while let Ok(text) = std::fs::read_to_string(&status) {
        let line = text.lines().find_map(|l| l.strip_prefix("VmHWM:"));
        let Some(line) = line else { break };
        let kib: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
        peak = peak.max(kib * 1024);
        std::thread::yield_now();
    }
    let text = String::from_utf8(reader.join().unwrap()).unwrap();
    (runner.finish_said(child, started, &text), peak)
}

/// How many artefacts, and tables in each.
fn scale() -> (usize, usize) {
    if std::env::var_os("KUBECTL_BACKUP_LONG").is_some() {
        (500, 20_000)
    } else {
        (60, 2_000)
    }
}

const MOST: u64 = 64 << 20;

/// The n-th hour of 2025.
fn hour(n: usize) -> Dump<'static> {
    let at = crds::time::parse_rfc3339("2025-01-01T00:00:00Z").unwrap()
        + chrono::Duration::hours(i64::try_from(n).unwrap());
    let slot = crds::time::rfc3339(at);
    Dump {
        name: format!("{}-{n:08}.sql.zst", at.format("%Y%m%dT%H%M%SZ")),
        slot: Some(Box::leak(slot.clone().into_boxed_str())),
        started: Box::leak(slot.into_boxed_str()),
        ..Dump::night(1)
    }
}

#[test]
fn r3_memory_and_requests_do_not_grow_with_the_tables_of_what_is_stored() {
    let (count, each) = scale();
    let store = Arc::new(Counting::default());
    let url = store.start();
    let tail = Bytes::from(tables(each));
    for n in 0..count {
        store.add(&hour(n), &tail);
    }
    let ask = |keep: usize| {
        let more = json!({"action": "Prune", "retention": {"keepLast": keep}});
        with_bucket(
            Runner::bare().set("PATH", "/usr/bin:/bin"),
            "shop-p0000001",
            &url,
            "backups",
            more,
        )
    };
    let run = |keep: usize| {
        let runner = ask(keep);
        let (done, peak) = measured(&runner);
        done.assert_good();
        assert!(peak <= MOST, "{} MiB", peak >> 20);
        (done, store.take())
    };
    let of = |asked: &[String], begin: &str, end: &str| {
        let fits = |a: &&String| a.starts_with(begin) && a.ends_with(end);
        asked.iter().filter(fits).count()
    };
    let lists = |asked: &[String]| {
        asked
            .iter()
            .filter(|a| a.starts_with("GET list-type=2"))
            .count()
    };
    // What it has never seen it reads once.
    let (_, asked) = run(count);
    assert_eq!(
        (lists(&asked), of(&asked, "GET pre/", ".json")),
        (1, count),
        "{asked:?}"
    );
    assert_eq!(of(&asked, "PUT ", "/.facts"), 1);
    // Then nothing but what is new, and nothing is written where nothing is.
    let (_, asked) = run(count);
    assert_eq!(
        (lists(&asked), of(&asked, "GET pre/", ".json")),
        (1, 0),
        "{asked:?}"
    );
    assert_eq!(of(&asked, "PUT ", ""), 0, "{asked:?}");
    store.add(&hour(count), &tail);
    let (done, asked) = run(count);
    // One new, and once more the one that goes.
    assert_eq!(
        (lists(&asked), of(&asked, "GET pre/", ".json")),
        (1, 2),
        "{asked:?}"
    );
    assert_eq!((done.report.pruned, store.dumps()), (Some(1), count));
    // An index that is broken, or of somebody's making, is made anew; what was pruned before is forgotten.
    let content = |text: &[u8]| {
        let json = text.splitn(2, |b| *b == b'\n').nth(1).unwrap();
        serde_json::from_slice::<Value>(json).unwrap()
    };
    let index = format!("pre/fix/{DIRECTORY}/.facts");
    let text = store.objects.lock().unwrap()[&index].clone();
    let mut broken = text.to_vec();
    let middle = broken.len() / 2;
    broken[middle] ^= 1;
    for other in [&b""[..], b"{}", &broken] {
        let mut objects = store.objects.lock().unwrap();
        objects.insert(index.clone(), Bytes::copy_from_slice(other));
        drop(objects);
        let (_, asked) = run(count);
        assert_eq!(of(&asked, "GET pre/", ".json"), count);
        let (anew, before) = (
            content(&store.objects.lock().unwrap()[&index]),
            content(&text),
        );
        let keys = |of: &Value| {
            of["artefacts"]
                .as_object()
                .unwrap()
                .keys()
                .cloned()
                .collect::<Vec<_>>()
        };
        assert_eq!(keys(&anew), keys(&before));
        assert!(anew["artefacts"] == before["artefacts"]);
        assert_eq!(
            (before["pruned"].as_object().unwrap().len(), &anew["pruned"]),
            (1, &Value::Null)
        );
    }
    // What another made of a manifest meanwhile is seen before its artefact is removed.
    let oldest = hour(1);
    let manifest = format!("pre/fix/{}.json", oldest.key());
    let changed = String::from_utf8(store.objects.lock().unwrap()[&manifest].to_vec()).unwrap();
    let changed = changed.replace("\"uid\":\"uid-1\"", "\"uid\":\"uid-7\"");
    store
        .objects
        .lock()
        .unwrap()
        .insert(manifest, changed.into());
    let (done, _) = run(count - 1);
    assert_eq!((done.report.pruned, store.dumps()), (Some(0), count));
    assert!(
        warned(&done, "was changed by somebody"),
        "{:?}",
        done.report
    );
}

#[test]
fn r3_the_same_on_a_volume_and_for_archives() {
    let (count, each) = scale();
    let runner = volume(&[]);
    let root = runner.sql_path();
    for n in 0..count {
        Dump {
            tables: each,
            ..hour(n)
        }
        .write(&root);
    }
    let runner = runner.spec(
        "shop-p0000001",
        None,
        json!({"action": "Prune", "retention": {"keepLast": count / 2}}),
    );
    let (done, peak) = measured(&runner);
    done.assert_good();
    assert!(peak <= MOST, "{} MiB", peak >> 20);
    assert_eq!(
        done.report.pruned,
        Some(i64::try_from(count - count / 2).unwrap())
    );
    let choose = runner.spec("shop-v0000001", None, json!({"action": "List"}));
    let (done, peak) = measured(&choose);
    done.assert_good();
    assert!(peak <= MOST, "{} MiB", peak >> 20);
    drop(choose);

    let mut backup = Backup::new().with_disk(u32::try_from(count / 2).unwrap());
    let held: Vec<Value> = (0..each)
        .map(|n| json!({"database": "shop", "name": format!("a_table_with_a_usual_name_{n:06}"), "rows": n, "hash": format!("{n:032x}")}))
        .collect();
    let held = json!({"tables": held});
    for n in 0..count {
        let at = archive(&backup, 1, 1000);
        let text: Value = serde_json::from_slice(&std::fs::read(&at).unwrap()).unwrap();
        let hour = hour(n);
        let name = format!("{}.tar", hour.name);
        let mut record = text;
        record["key"] = json!(name);
        record["startedAt"] = json!(hour.started);
        record["files"][0]["holds"] = held.clone();
        std::fs::remove_file(&at).unwrap();
        let to = at.with_file_name(format!("{name}.json"));
        std::fs::write(to, record.to_string()).unwrap();
        let from = backup.disk().join("2025.01.01.03.00.00.tar");
        std::fs::rename(from, backup.disk().join(name)).unwrap();
    }
    let spec = backup.spec_for("nightly-prune-1", "Prune");
    backup.runner.env.insert("BACKUP_SPEC".into(), spec);
    let (done, peak) = measured(&backup.runner);
    done.assert_good();
    assert!(peak <= MOST, "{} MiB", peak >> 20);
    assert_eq!(archives(&backup.disk()).len(), count / 2);
}
