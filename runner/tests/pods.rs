//! Two pods of one run, each frozen, killed and thawed at any moment. At each request to an S3 store in
//! turn one is held while the other runs to its end; and real processes are stopped at random. What
//! must hold: a run that was reported good has an artefact that its manifest fits, and no artefact
//! that was vouched for is lost. The seed of the random part is printed; KUBECTL_BACKUP_SEED sets it,
//! and KUBECTL_BACKUP_LONG=1 makes it 200 rounds at each store and holds at every request.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "tests"
)]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use common::backup::{Backup, azure_backup, ftp_backup, ssh_backup, storage};
use common::fake_s3::{FakeS3, Fault, Moment};
use common::s3::with_bucket;
use common::servers::webdav;
use common::stores::{azure, ftp, gcs, ssh};
use common::{Finished, Runner, fixture};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// A dump client that dumps something else each time, whatever the server holds.
const CLIENT: &str = r#"#!/bin/sh
case "$*" in
*--version*) echo "mariadb-dump from 10.11.6-MariaDB, client 10.19 for debian-linux-gnu (x86_64)"; exit;;
*--help*) exit;;
esac
cat <<END
-- MariaDB dump 10.19  Distrib 10.11.6-MariaDB
CREATE DATABASE /*!32312 IF NOT EXISTS*/ \`d\`;
USE \`d\`;
CREATE TABLE \`t\` (\`body\` text);
INSERT INTO \`t\` VALUES ('$(head -c 3000 /dev/urandom | base64 -w0)');
-- Dump completed on 2025-01-15 10:30:00
END
"#;

fn long() -> bool {
    std::env::var("KUBECTL_BACKUP_LONG").is_ok_and(|v| v == "1")
}

/// A pod of a run of ns1/MysqlBackup/shop by the stand-in for a dump client.
fn pod(run: &str, uid: &str) -> Runner {
    let runner = Runner::bare();
    let bin = runner.out.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let client = bin.join("mariadb-dump");
    std::fs::write(&client, CLIENT).unwrap();
    std::fs::set_permissions(&client, std::fs::Permissions::from_mode(0o755)).unwrap();
    for tool in ["sh", "cat", "head", "base64"] {
        let found = ["/bin", "/usr/bin"].map(|d| Path::new(d).join(tool));
        let real = found.iter().find(|p| p.exists()).unwrap();
        std::os::unix::fs::symlink(real, bin.join(tool)).unwrap();
    }
    runner
        .set("PATH", bin.display().to_string())
        .by_client()
        .set("HOST", "127.0.0.1")
        .set("PORT", fixture().port.to_string())
        .set("USERNAME", "full")
        .set("PASSWORD", "S3cr3t-marker")
        .set("DATABASES", "d")
        .set("BACKUP_POD_UID", uid)
        .spec(run, Some("2025-01-15T10:30:00Z"), json!({}))
}

/// Where artefacts are, past the runner.
trait Shelf {
    fn keys(&self) -> Vec<String>;
    fn get(&self, key: &str) -> Option<Vec<u8>>;
}

impl Shelf for FakeS3 {
    fn keys(&self) -> Vec<String> {
        self.keys()
            .into_iter()
            .filter_map(|k| k.strip_prefix("pre/fix/").map(str::to_owned))
            .collect()
    }

    fn get(&self, key: &str) -> Option<Vec<u8>> {
        self.get(&format!("pre/fix/{key}"))
    }
}

/// Files of a volume, or of a server.
struct Files(PathBuf);

impl Shelf for Files {
    fn keys(&self) -> Vec<String> {
        let directory = self.0.join("ns1/MysqlBackup/shop");
        let Ok(entries) = std::fs::read_dir(directory) else {
            return vec![];
        };
        entries
            .map(|e| {
                let name = e.unwrap().file_name().into_string().unwrap();
                format!("ns1/MysqlBackup/shop/{name}")
            })
            .collect()
    }

    fn get(&self, key: &str) -> Option<Vec<u8>> {
        std::fs::read(self.0.join(key)).ok()
    }
}

/// Blobs below this path in the container of Azure's emulator.
struct Blobs(&'static str);

impl Shelf for Blobs {
    fn keys(&self) -> Vec<String> {
        let below = format!("{}/", self.0);
        let names = azure().list(&below).into_iter();
        names
            .filter_map(|name| name.strip_prefix(&below).map(str::to_owned))
            .collect()
    }

    fn get(&self, key: &str) -> Option<Vec<u8>> {
        let there = self.keys().iter().any(|k| k == key);
        there.then(|| azure().request("GET", &format!("backups/{}/{key}", self.0)))
    }
}

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect()
}

/// What is wrong with a run that was reported good; empty if nothing is.
fn wrong(shelf: &dyn Shelf, done: &Finished) -> Vec<String> {
    let mut wrong = vec![];
    for artefact in &done.report.artefacts {
        let key = &artefact.key;
        match shelf.get(key) {
            None => wrong.push(format!("{key} is lost")),
            Some(bytes) if hex(&bytes) != artefact.sha256 => {
                wrong.push(format!("{key} is not what was reported"));
            }
            Some(_) => {}
        }
    }
    if done.report.artefacts.is_empty() {
        wrong.push("good without an artefact".to_owned());
    }
    wrong
}

/// Manifests that do not fit what they stand beside.
fn false_manifests(shelf: &dyn Shelf) -> Vec<String> {
    let keys = shelf.keys();
    let manifests = keys.iter().filter(|k| k.ends_with(".json"));
    manifests
        .filter(|k| {
            let manifest: Option<Value> = shelf
                .get(k)
                .and_then(|text| serde_json::from_slice(&text).ok());
            let artefact = shelf.get(k.strip_suffix(".json").unwrap());
            manifest.zip(artefact).is_none_or(|(manifest, artefact)| {
                manifest["storedSha256"] != json!(hex(&artefact))
            })
        })
        .cloned()
        .collect()
}

/// A pod is held at its request of this number, the other runs to its end, the first goes on. False
/// if it makes fewer requests.
fn held(fault: Fault, number: usize, moment: Moment) -> bool {
    let fake = FakeS3::start(fault);
    let (url, gate) = fake.gated(number, moment);
    let run = "shop-28950870";
    let late = with_bucket(pod(run, "pod-late"), run, &url, "backups", json!({}));
    let other = with_bucket(pod(run, "pod-other"), run, &fake.url, "backups", json!({}));
    let started = Instant::now();
    let mut child = late.start();
    let was_held = gate.wait(&mut || child.try_wait().unwrap().is_some());
    let what = format!("{fault:?}, held {moment:?} request {number}");
    let good = other.run();
    good.assert_good();
    assert_eq!(wrong(&fake, &good), [""; 0], "{what}");
    let before = good.report.artefacts.clone();
    gate.open();
    let done = late.finish(child, started);
    if done.code == Some(0) {
        assert_eq!(wrong(&fake, &done), [""; 0], "{what}, the late one");
    }
    assert_eq!(
        wrong(&fake, &good),
        [""; 0],
        "{what}: the late pod harmed the other's {before:?}"
    );
    assert_eq!(false_manifests(&fake), [""; 0], "{what}");
    // Nothing of either is left beside what was vouched for.
    let keys = Shelf::keys(&fake);
    let single = |k: &&String| !k.ends_with(".json") && !keys.contains(&format!("{k}.json"));
    let left: Vec<_> = keys.iter().filter(single).collect();
    assert!(left.is_empty(), "{what} left {left:?}");
    let noticed = done.report.warnings.iter().chain(&good.report.warnings);
    let noticed = noticed.filter(|w| w.contains("If-None-Match")).count();
    match fault {
        Fault::None => assert_eq!(noticed, 0, "{what}"),
        _ => assert!(noticed > 0, "{what}: nobody noticed what the store does"),
    }
    was_held
}

fn all_requests(fault: Fault, step: usize) {
    let mut pairs = 0;
    for moment in [Moment::Before, Moment::After] {
        let mut number = 1;
        while held(fault, number, moment) {
            number += step;
            pairs += 1;
            assert!(number < 100, "the runner never ended");
        }
    }
    println!("{fault:?}: held at {pairs} requests, none harmed");
    assert!(pairs * step >= 20, "{pairs} requests were held");
}

#[test]
fn t1_a_pod_that_is_held_at_any_request_harms_nobody_where_conditions_are_ignored() {
    all_requests(Fault::IgnoresCondition, if long() { 1 } else { 3 });
}

#[test]
fn t1_a_pod_that_is_held_at_any_request_harms_nobody_where_conditions_are_kept() {
    all_requests(Fault::None, if long() { 1 } else { 4 });
}

#[test]
fn t1_p1_a_pod_that_is_held_at_any_request_harms_nobody_where_conditions_are_refused() {
    all_requests(Fault::RefusesCondition, if long() { 1 } else { 5 });
}

/// A Backup whose archives are named by the second: two pods that begin in one second meet there.
fn archive_pod(uid: &str, url: &str) -> Backup {
    let mut backup = Backup::new();
    let fields = json!({
        "provider": "s3", "bucket": "backups", "region": "us-east-1", "endpoint": url, "forcePathStyle": true,
        "maxRetries": 3, "accessKeyId": backup.secret("id", "AKIDEXAMPLE"),
        "secretAccessKey": backup.secret("key", "S3cr3t-marker-of-the-store"),
    });
    backup.add("storages", storage("bucket", "s3", "pre/fix", fields));
    backup.runner = backup.runner.set("BACKUP_POD_UID", uid);
    backup
}

#[test]
fn t1_a_late_pod_of_a_backup_harms_nothing_of_its_replacement() {
    for number in (1..60).step_by(if long() { 1 } else { 4 }) {
        let fake = FakeS3::start(Fault::IgnoresCondition);
        let (url, gate) = fake.gated(number, Moment::After);
        let mut late = archive_pod("pod-late", &url);
        let mut other = archive_pod("pod-other", &fake.url);
        let spec = late.spec_of("nightly-28950870");
        late.runner.env.insert("BACKUP_SPEC".into(), spec);
        let started = Instant::now();
        let mut child = late.runner.start();
        let was_held = gate.wait(&mut || child.try_wait().unwrap().is_some());
        let good = other.run("nightly-28950870");
        good.assert_good();
        gate.open();
        let done = late.runner.finish(child, started);
        for done in [&good, &done] {
            if done.code != Some(0) {
                continue;
            }
            for artefact in &done.report.artefacts {
                let bytes = fake.get(&artefact.key).unwrap_or_default();
                assert_eq!(hex(&bytes), artefact.sha256, "held at request {number}");
            }
        }
        if !was_held {
            assert!(number > 15, "only {number} requests");
            return;
        }
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

fn signal(child: &Child, name: &str) {
    let pid = child.id().to_string();
    let _ = Command::new("kill").args([name, &pid]).status().unwrap();
}

/// Freezes, kills and thaws two pods of one run at random, round after round on one store.
fn freezes(what: &str, shelf: &dyn Shelf, rounds: u64, pod: &dyn Fn(&str, &str) -> Runner) {
    let seed = std::env::var("KUBECTL_BACKUP_SEED")
        .ok()
        .and_then(|s| s.parse().ok())
        .unwrap_or_else(|| u64::from(std::process::id()) * 7919 + rounds);
    let mut random = Random(seed | 1);
    let first = pod("shop-28940000", "first").run();
    first.assert_good();
    let usual = u64::try_from(first.took.as_millis()).unwrap().max(20);
    let mut vouched: BTreeMap<String, String> = BTreeMap::new();
    let mut good_runs = 0;
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    for round in 0..rounds {
        let run = format!("shop-{}", 28_950_000 + round);
        let pods = [
            pod(&run, &format!("a{round}")),
            pod(&run, &format!("b{round}")),
        ];
        let mut children: Vec<Option<(Child, Instant)>> = vec![None, None];
        let mut killed: BTreeSet<usize> = BTreeSet::new();
        for step in 0..7 {
            std::thread::sleep(Duration::from_millis(random.below(usual)));
            let which = usize::from(step > 0 && random.below(2) == 1);
            match (&mut children[which], random.below(10)) {
                (slot @ None, _) => *slot = Some((pods[which].start(), Instant::now())),
                (Some((child, _)), 0) if killed.insert(which) => {
                    let _ = child.kill();
                    *counts.entry("kills").or_default() += 1;
                }
                (Some((child, _)), 1..=5) => {
                    signal(child, "-STOP");
                    *counts.entry("freezes").or_default() += 1;
                }
                (Some((child, _)), _) => {
                    signal(child, "-CONT");
                    *counts.entry("thaws").or_default() += 1;
                }
            }
        }
        let mut any = false;
        for (which, slot) in children.into_iter().enumerate() {
            let Some((mut child, started)) = slot else {
                continue;
            };
            signal(&child, "-CONT");
            if killed.contains(&which) {
                child.wait().unwrap();
                continue;
            }
            let done = pods[which].finish(child, started);
            if done.code == Some(0) {
                any = true;
                good_runs += 1;
                let found = wrong(shelf, &done);
                assert!(found.is_empty(), "seed {seed}, round {round}: {found:?}");
                let stored = done.report.artefacts.iter();
                vouched.extend(stored.map(|a| (a.key.clone(), a.sha256.clone())));
            }
        }
        if !any {
            // The Job's next try: it meets whatever the others left.
            let done = pod(&run, &format!("c{round}")).run();
            done.assert_good();
            let found = wrong(shelf, &done);
            assert!(found.is_empty(), "seed {seed}, round {round}: {found:?}");
        }
    }
    let lost: Vec<_> = vouched
        .iter()
        .filter(|(key, sha)| shelf.get(key).is_none_or(|bytes| hex(&bytes) != **sha))
        .collect();
    let fail = false_manifests(shelf);
    println!(
        "{what}: seed {seed}, {rounds} rounds of two pods of one run, {counts:?}: {good_runs} runs good, 0 whose artefact does not verify, {} verified artefacts lost, {} manifests that fit nothing",
        lost.len(),
        fail.len()
    );
    assert!(lost.is_empty(), "seed {seed}: {lost:?}");
    assert!(fail.is_empty(), "seed {seed}: {fail:?}");
}

fn rounds(short: u64) -> u64 {
    if long() { 200 } else { short }
}

#[test]
fn t1_random_freezes_on_a_volume() {
    let root = tempfile::tempdir().unwrap();
    let sql = root.path().display().to_string();
    let shelf = Files(root.path().to_owned());
    freezes("volume", &shelf, rounds(6), &|run, uid| {
        pod(run, uid).set("SQLPATH", sql.clone())
    });
}

#[test]
fn t1_random_freezes_on_s3_with_and_without_conditions() {
    for (what, fault) in [
        ("S3", Fault::None),
        ("S3 that ignores If-None-Match", Fault::IgnoresCondition),
    ] {
        let fake = FakeS3::start(fault);
        freezes(what, &fake, rounds(4), &|run, uid| {
            with_bucket(pod(run, uid), run, &fake.url, "backups", json!({}))
        });
    }
}

/// A pod that stores on the one storage of this Backup.
fn on_storage<'a>(backup: &'a Backup) -> impl Fn(&str, &str) -> Runner + 'a {
    |run, uid| {
        let spec = json!({"destination": {"storage": backup.plan["storages"][0]}});
        let mut runner = pod(run, uid).spec(run, Some("2025-01-15T10:30:00Z"), spec);
        for name in ["SSL_CERT_FILE", "AZURE_AUTHORITY_HOST"] {
            let value = backup.runner.env.get(name);
            runner
                .env
                .extend(value.map(|v| (name.to_owned(), v.clone())));
        }
        runner
    }
}

#[test]
fn t1_random_freezes_on_webdav_ftp_and_sftp() {
    let dav = Backup::new().with_dav("frozen", 0);
    let shelf = Files(webdav().1.join("frozen"));
    freezes("WebDAV", &shelf, rounds(3), &on_storage(&dav));
    let site = ftp_backup(ftp().port, "/frozen", json!({}));
    let shelf = Files(ftp().root.join("frozen"));
    freezes("FTP", &shelf, rounds(3), &on_storage(&site));
    let root = ssh().root.join("frozen");
    let vault = ssh_backup(root.to_str().unwrap(), json!({}));
    freezes("SFTP", &Files(root), rounds(3), &on_storage(&vault));
}

#[test]
fn t1_random_freezes_on_gcs_and_azure() {
    let mut cloud = Backup::new();
    let fields = json!({"bucket": "backups", "endpoint": gcs().url});
    cloud.add("storages", storage("cloud", "gcs", "frozen", fields));
    let shelf = Files(gcs().root.join("backups/frozen"));
    freezes("GCS", &shelf, rounds(3), &on_storage(&cloud));
    let blobs = azure_backup("frozen", json!({}));
    freezes("Azure", &Blobs("frozen"), rounds(3), &on_storage(&blobs));
}

/// SIGTERM while an older artefact is being removed: what was stored is whole and vouched for.
#[test]
fn r6_a_pod_that_is_ended_while_it_prunes_has_made_a_good_backup() {
    let fake = FakeS3::start(Fault::None);
    let keep = |n: i32| json!({"retention": {"keepLast": n}});
    for run in ["shop-28950868", "shop-28950869"] {
        with_bucket(pod(run, run), run, &fake.url, "backups", keep(9))
            .run()
            .assert_good();
    }
    let (url, gate) = fake.gated_at_removal();
    let run = "shop-28950870";
    let last = with_bucket(pod(run, run), run, &url, "backups", keep(1));
    let started = Instant::now();
    let mut child = last.start();
    assert!(gate.wait(&mut || child.try_wait().unwrap().is_some()));
    signal(&child, "-TERM");
    let done = last.finish(child, started);
    gate.open();
    done.assert_good();
    assert_eq!(wrong(&fake, &done), [""; 0]);
    let told = |w: &String| w.contains("retention was not applied") && w.contains("SIGTERM");
    assert!(
        done.report.warnings.iter().any(told),
        "{:?}",
        done.report.warnings
    );
    assert!(
        !done.stdout.contains("nothing was stored"),
        "{}",
        done.stdout
    );

    let mut backup = archive_pod("pod-1", &fake.url);
    backup.run("nightly-28950869").assert_good();
    common::next_second();
    let (url, gate) = fake.gated_at_removal();
    let mut backup = archive_pod("pod-2", &url);
    backup.plan["storages"][0]["keep"] = json!(1);
    let spec = backup.spec_of("nightly-28950870");
    backup.runner.env.insert("BACKUP_SPEC".into(), spec);
    let started = Instant::now();
    let mut child = backup.runner.start();
    assert!(gate.wait(&mut || child.try_wait().unwrap().is_some()));
    signal(&child, "-TERM");
    let done = backup.runner.finish(child, started);
    gate.open();
    done.assert_good();
    assert!(
        done.report.warnings.iter().any(told),
        "{:?}",
        done.report.warnings
    );
}

/// Killed at any request, each time another run: when all of the object is removed on request, nothing
/// of it is left, no matter how young.
#[test]
fn r5_what_killed_attempts_left_goes_when_all_is_removed() {
    let fake = FakeS3::start(Fault::None);
    let mut kills = 0;
    for number in (1..60).step_by(if long() { 1 } else { 4 }) {
        let (url, gate) = fake.gated(number, Moment::After);
        let run = format!("shop-{}", 28_950_870 + number);
        let killed = with_bucket(pod(&run, &run), &run, &url, "backups", json!({}));
        let mut child = killed.start();
        let was_held = gate.wait(&mut || child.try_wait().unwrap().is_some());
        let _ = child.kill();
        child.wait().unwrap();
        gate.open();
        if !was_held {
            break;
        }
        kills += 1;
    }
    assert!(kills >= 4, "{kills}");
    let all = json!({"action": "Prune", "options": {"all": true}});
    with_bucket(pod("p-1", "p-1"), "p-1", &fake.url, "backups", all)
        .run()
        .assert_good();
    assert_eq!(FakeS3::keys(&fake), [""; 0], "after {kills} kills");
    assert_eq!(fake.open_uploads(), [""; 0]);
}

/// The same for archives in parts, which lie in directories of their own.
#[test]
fn r5_parts_of_archives_that_killed_attempts_left_go_when_all_is_removed() {
    let fake = FakeS3::start(Fault::None);
    fake.put("pre/fix/photos.tar", b"x", 30);
    let mut kills = 0;
    for number in (1..80).step_by(if long() { 1 } else { 5 }) {
        let (url, gate) = fake.gated(number, Moment::After);
        let mut backup = archive_pod(&format!("pod-{number}"), &url);
        backup.plan["split"] = json!({"bytes": 100, "suffixLength": 3, "numeric": true});
        let spec = backup.spec_of(&format!("nightly-{}", 28_950_870 + number));
        backup.runner.env.insert("BACKUP_SPEC".into(), spec);
        let mut child = backup.runner.start();
        let was_held = gate.wait(&mut || child.try_wait().unwrap().is_some());
        let _ = child.kill();
        child.wait().unwrap();
        gate.open();
        if !was_held {
            break;
        }
        kills += 1;
    }
    assert!(kills >= 4, "{kills}");
    let parts = FakeS3::keys(&fake)
        .into_iter()
        .filter(|k| k.contains(".tar") && k.contains("-00"))
        .count();
    assert!(parts > 0, "no part was left: nothing is shown");
    let mut backup = archive_pod("pod-last", &fake.url);
    backup
        .act("p-1", "Prune", json!({"all": true}))
        .assert_good();
    assert_eq!(
        FakeS3::keys(&fake),
        ["pre/fix/photos.tar"],
        "after {kills} kills"
    );
    assert_eq!(fake.open_uploads(), [""; 0]);
}
