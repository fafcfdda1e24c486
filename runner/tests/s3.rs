//! S3: a real server, and a fake one that breaks at each step.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod common;

use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use common::fake_s3::{FakeS3, Fault};
use common::s3::{
    archive, begin_upload, get, has_part, list, make_bucket, moto, open_uploads, with_bucket,
};
use common::{Finished, MariaDb, Runner, fixture};
use serde_json::json;

const KEY: &str = "pre/fix/ns1/MysqlBackup/shop/20250115T103000Z-28950870.sql";
const RUN: &str = "shop-28950870";

#[test]
fn a_dump_in_one_request_is_stored_read_back_and_adopted_by_a_retry() {
    let runner = with_bucket(Runner::new(fixture()), RUN, moto(), "backups", json!({}));
    let done = runner.run();
    done.assert_good();
    assert!(done.report.artefacts[0].read_back);
    let key = format!("{KEY}.zst");
    assert_eq!(
        list(moto(), "pre/fix/ns1/"),
        [key.clone(), format!("{key}.json")]
    );
    let file = runner.out.path().join("x.zst");
    std::fs::write(&file, get(moto(), &key)).unwrap();
    let output = Command::new("zstd").arg("-dc").arg(&file).output().unwrap();
    assert_eq!(
        done.report.raw_bytes,
        i64::try_from(output.stdout.len()).ok()
    );
    let again = runner.run();
    again.assert_good();
    assert_eq!(again.report.artefacts, done.report.artefacts);
}

/// 20 MB that nothing compresses: more than two parts.
fn large() -> &'static MariaDb {
    static DB: OnceLock<MariaDb> = OnceLock::new();
    DB.get_or_init(|| {
        let db = make_large();
        db.end_with_process();
        db
    })
}

fn make_large() -> MariaDb {
    let db = MariaDb::start();
    db.sql("create database d; use d; create table big (id int primary key auto_increment, body longblob); insert into big (body) select random_bytes(1000) from seq_1_to_10000; create user full@'%' identified by 'S3cr3t-marker'; grant all on *.* to full@'%'");
    db
}

#[test]
fn many_parts() {
    let more = json!({"compression": {"type": "none"}});
    let runner = with_bucket(
        Runner::new(large()),
        "big-28950870",
        moto(),
        "backups",
        more,
    );
    let done = runner.run();
    done.assert_good();
    assert!(done.report.stored_bytes.unwrap() > 20_000_000);
    assert_eq!(done.report.rows, Some(10_000));
    assert_eq!(done.report.stored_bytes, done.report.raw_bytes);
}

#[test]
fn a_killed_attempt_leaves_no_upload_after_the_next_one() {
    let more = || json!({"compression": {"type": "none"}});
    let db = make_large();
    db.sql("create table d.z (id int primary key)");
    let with = |run: &str| with_bucket(Runner::new(&db), run, moto(), "killed", more());
    let dir = "pre/fix/ns1/MysqlBackup/shop/";
    make_bucket(moto(), "killed");
    // Of a neighbour object, and of nobody the runner knows.
    let others = [
        format!("{dir}deeper/x.sql"),
        format!("{dir}notes.txt"),
        "pre/fix/ns1/MysqlBackup/shop2/20250115T103000Z-28950870.sql".to_owned(),
    ];
    for key in &others {
        begin_upload(moto(), "killed", key);
    }
    // Of another run; moto says of every upload that it was begun in 2010.
    let old = format!("{dir}20101110T204833Z-21483648.sql.zst");
    begin_upload(moto(), "killed", &old);
    let runner = with(RUN);
    let held = db.hold("lock tables d.z write");
    let mut child = runner.start();
    let deadline = Instant::now() + Duration::from_secs(60);
    while !has_part(moto(), "killed", KEY) {
        assert!(Instant::now() < deadline, "no part was uploaded");
        assert!(
            child.try_wait().unwrap().is_none(),
            "the run ended before it was killed"
        );
    }
    child.kill().unwrap();
    child.wait().unwrap();
    drop(held);
    assert!(open_uploads(moto(), "killed").contains(&KEY.to_owned()));
    // Another run of the object leaves it: that one may still be at work.
    let other = with("shop-28950871").run();
    other.assert_good();
    assert!(
        open_uploads(moto(), "killed").contains(&KEY.to_owned()),
        "{}",
        other.stdout
    );
    let done = runner.run();
    done.assert_good();
    assert!(!done.stdout.contains("be looked for"), "{}", done.stdout);
    let mut left = open_uploads(moto(), "killed");
    left.sort();
    let mut expected = others.to_vec();
    expected.sort();
    assert_eq!(left, expected);
}

#[track_caller]
fn broken(fault: Fault, code: i32, reason: &str, words: &[&str]) {
    let fake = FakeS3::start(fault);
    let more = json!({"compression": {"type": "none"}});
    let runner = with_bucket(Runner::new(large()), RUN, &fake.url, "backups", more);
    let done = runner.run();
    done.assert_failed(code, reason, words);
    assert!(
        !done.stdout.contains("of-the-store"),
        "the store's key shows"
    );
    let left: Vec<String> = fake
        .keys()
        .into_iter()
        .filter(|k| !k.contains("~told-"))
        .collect();
    assert!(left.is_empty(), "{fault:?} left {left:?}");
    assert_eq!(fake.open_parts(), 0, "{fault:?} left parts");
}

#[test]
fn the_fake_is_good_without_a_fault() {
    let fake = FakeS3::start(Fault::None);
    let more = json!({"compression": {"type": "none"}});
    with_bucket(Runner::new(large()), RUN, &fake.url, "backups", more)
        .run()
        .assert_good();
    assert_eq!(fake.keys(), [KEY.to_owned(), format!("{KEY}.json")]);
}

#[test]
fn a_store_that_refuses_at_start_in_the_middle_and_at_completion() {
    broken(
        Fault::RefuseStart,
        4,
        "PermissionDenied",
        &["credentialsSecretRef"],
    );
    broken(
        Fault::RefusePart,
        4,
        "PermissionDenied",
        &["credentialsSecretRef"],
    );
    broken(
        Fault::RefuseCompletion,
        4,
        "PermissionDenied",
        &["completing"],
    );
}

#[test]
fn a_store_that_gives_fewer_or_other_bytes() {
    broken(
        Fault::FewerBytes,
        5,
        "ReadBackDiffers",
        &["read back", "not kept"],
    );
    broken(
        Fault::BitFlip,
        5,
        "ReadBackDiffers",
        &["SHA-256", "not kept"],
    );
    broken(Fault::Gone, 4, "NotFound", &["reading back"]);
}

#[test]
fn a_store_that_does_not_give_it_back_yet_is_never_called_read_back() {
    let fake = FakeS3::start(Fault::NoGet);
    let done = with_bucket(Runner::new(large()), RUN, &fake.url, "backups", json!({})).run();
    done.assert_good();
    assert_eq!(done.report.reason, "NotReadBack");
    assert!(!done.report.artefacts[0].read_back);
    assert!(
        done.report
            .warnings
            .iter()
            .any(|w| w.contains("could not be read back"))
    );
}

#[test]
fn a_bucket_that_does_not_exist_and_a_store_that_is_not_there() {
    let runner = with_bucket(Runner::new(fixture()), RUN, moto(), "nobucket", json!({}));
    runner.run().assert_failed(
        4,
        "DestinationNotFound",
        &["nobucket", "bucket does not exist"],
    );
    let url = format!("http://127.0.0.1:{}", common::free_port());
    let runner = with_bucket(Runner::new(fixture()), RUN, &url, "backups", json!({}));
    runner
        .run()
        .assert_failed(4, "StoreUnreachable", &["endpoint"]);
}

fn whole_dump(fake: &FakeS3) -> Finished {
    let more = json!({"compression": {"type": "none"}});
    with_bucket(Runner::new(large()), RUN, &fake.url, "backups", more).run()
}

#[test]
fn t2_a_manifest_that_came_out_otherwise_is_written_again_or_fails_the_run() {
    let fake = FakeS3::start(Fault::TruncatesOnce);
    let runner = with_bucket(Runner::new(fixture()), RUN, &fake.url, "backups", json!({}));
    runner.run().assert_good();
    let text = fake.get(&format!("{KEY}.zst.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(manifest["readBack"], json!(true));
    let done = archive(&fake.url).run("nightly-28950870");
    done.assert_good();
    let records: Vec<String> = fake
        .keys()
        .into_iter()
        .filter(|k| k.starts_with("arch/.gobackup-state/") && k.ends_with(".json"))
        .collect();
    assert_eq!(records.len(), 1, "{:?}", fake.keys());
    serde_json::from_slice::<serde_json::Value>(&fake.get(&records[0]).unwrap()).unwrap();

    let fake = FakeS3::start(Fault::FlipsAlways);
    let runner = with_bucket(Runner::new(fixture()), RUN, &fake.url, "backups", json!({}));
    let words = &["not what was written, twice", ".json"];
    runner.run().assert_failed(5, "ReadBackDiffers", words);
    let done = archive(&fake.url).run("nightly-28950870");
    done.assert_failed(5, "ReadBackDiffers", &["Storage bucket", ".json"]);
    assert_eq!(fake.keys(), [""; 0]);
}

#[test]
fn t3_a_key_that_may_not_read_is_no_archive_class() {
    for fault in [Fault::Forbidden, Fault::ForbiddenAndFlipped] {
        let fake = FakeS3::start(fault);
        whole_dump(&fake).assert_failed(4, "PermissionDenied", &["reading back"]);
        archive(&fake.url).run("nightly-28950870").assert_failed(
            4,
            "PermissionDenied",
            &["reading back"],
        );
        assert_eq!(fake.keys(), [""; 0], "{fault:?}");
    }
}

#[test]
fn t3_an_archive_class_is_good_for_both_kinds_and_removes_nothing() {
    let fake = FakeS3::start(Fault::NoGet);
    let keep = json!({"retention": {"keepLast": 1}});
    for run in ["shop-28950868", "shop-28950869"] {
        let runner = Runner::new(fixture());
        let done = with_bucket(runner, run, &fake.url, "backups", keep.clone()).run();
        done.assert_good();
        assert_eq!(done.report.reason, "NotReadBack");
        let warned = |w: &String| w.contains("retention was not applied");
        assert!(done.report.warnings.iter().any(warned), "{:?}", done.report);
    }
    let stored = |below: &str| {
        let keys = fake.keys().into_iter();
        keys.filter(|k| k.starts_with(below) && !k.ends_with(".json"))
            .count()
    };
    // Runs of the same slot: the second has a key of its own.
    assert_eq!(stored("pre/fix/ns1/MysqlBackup/shop/"), 2);
    for run in ["nightly-28950868", "nightly-28950869", "nightly-28950870"] {
        let mut backup = archive(&fake.url);
        backup.plan["storages"][0]["keep"] = json!(1);
        let done = backup.run(run);
        done.assert_good();
        assert_eq!(done.report.reason, "NotReadBack");
        assert!(!done.report.artefacts[0].read_back);
    }
    assert_eq!(stored("arch/2"), 3);
    // A retry takes what is there, and still does not call it read back.
    let runner = Runner::new(fixture());
    let again = with_bucket(runner, "shop-28950869", &fake.url, "backups", keep).run();
    again.assert_good();
    assert_eq!(again.report.reason, "NotReadBack");
    assert_eq!(stored("pre/fix/ns1/MysqlBackup/shop/"), 2);
}

#[test]
fn p1_a_store_without_conditional_writes_is_asked_before() {
    let fake = FakeS3::start(Fault::RefusesCondition);
    let done = whole_dump(&fake);
    done.assert_good();
    let warned: Vec<_> = done
        .report
        .warnings
        .iter()
        .filter(|w| w.contains("refuses requests with If-None-Match"))
        .collect();
    assert_eq!(warned.len(), 1, "{:?}", done.report.warnings);
    assert_eq!(fake.keys(), [KEY.to_owned(), format!("{KEY}.json")]);
    let done = archive(&fake.url).run("nightly-28950870");
    done.assert_good();
    assert!(done.report.warnings[0].contains("refuses requests with If-None-Match"));
    let moved = FakeS3::start(Fault::IgnoresCondition);
    let done = whole_dump(&moved);
    done.assert_good();
    assert!(
        done.report
            .warnings
            .iter()
            .any(|w| w.contains("ignores If-None-Match"))
    );
}

#[test]
fn p2_a_bucket_with_object_lock_gets_the_checksums_it_wants() {
    let fake = FakeS3::start(Fault::WantsChecksums);
    let done = whole_dump(&fake);
    done.assert_good();
    assert!(
        done.report.stored_bytes.unwrap() > 20_000_000,
        "not in parts"
    );
    archive(&fake.url).run("nightly-28950870").assert_good();
}

#[test]
fn p2_a_completion_whose_answer_was_lost_is_found_by_reading_it_back() {
    let fake = FakeS3::start(Fault::LosesAnswer);
    with_bucket(Runner::new(fixture()), RUN, &fake.url, "backups", json!({}))
        .run()
        .assert_good();
    archive(&fake.url).run("nightly-28950870").assert_good();
}

/// What attempts that were killed leave of each kind, and what only looks like it.
#[test]
fn r5_leftovers_of_dead_attempts_go_and_others_stay() {
    let fake = FakeS3::start(Fault::None);
    let dir = "pre/fix/ns1/MysqlBackup/shop";
    let manifest = |key: &str, object: &str| {
        json!({"schema": "batch.isekiro.com/manifest/v1", "key": key, "run": "shop-1", "startedAt": "2025-01-01T00:00:00Z",
            "object": {"kind": "MysqlBackup", "namespace": "ns1", "name": object, "uid": "uid-1"}, "readBack": true})
        .to_string()
    };
    let lone = |object: &str| {
        manifest(
            "ns1/MysqlBackup/shop/20250101T000000Z-00000001.sql.zst",
            object,
        )
    };
    let dead = [
        // Killed between completion and manifest, with and without a slot.
        (
            format!("{dir}/20250102T000000Z-28930000.sql.zst"),
            "x".to_owned(),
        ),
        (
            format!("{dir}/20250102T000001Z-abcdef12.0a1b2c3d.sql.gz.age"),
            "x".to_owned(),
        ),
        // A prune that was killed half-way.
        (
            format!("{dir}/20250101T000000Z-00000001.sql.zst.json"),
            lone("shop"),
        ),
        // A temporary and a claim of another run.
        (
            format!("{dir}/.backup-runner.shop-9~p~60f-1~00.tmp"),
            "x".to_owned(),
        ),
        (
            format!("{dir}/.backup-runner.shop-9~p~60f-1~00.claim"),
            "x".to_owned(),
        ),
    ];
    let others = [
        (format!("{dir}/notes.txt"), "x".to_owned()),
        (format!("{dir}/before.sql"), "x".to_owned()),
        (format!("{dir}/20250102-mine.sql"), "x".to_owned()),
        (
            "pre/fix/ns1/MysqlBackup/shop2/20250102T000000Z-28930000.sql".to_owned(),
            "x".to_owned(),
        ),
        (
            format!("{dir}/20250101T000000Z-00000001.sql.json"),
            lone("other"),
        ),
    ];
    for (key, text) in dead.iter().chain(&others) {
        fake.put(key, text.as_bytes(), 3);
    }
    // Of attempts that may live: an hour is no age.
    let young = [
        format!("{dir}/20250103T000000Z-28930001.sql.zst"),
        format!("{dir}/.backup-runner.shop-8~p~60f-1~00.tmp"),
    ];
    for key in &young {
        fake.put(key, b"x", 0);
    }
    fake.begin(&format!("{dir}/20250102T000000Z-28930002.sql.zst"), 3);
    let open = [
        (format!("{dir}/20250102T000000Z-28930003.sql.zst"), 0),
        (format!("{dir}/mine.bin"), 3),
    ];
    for (key, days) in &open {
        fake.begin(key, *days);
    }
    let keep = json!({"retention": {"keepLast": 5}});
    let runner = with_bucket(
        Runner::new(fixture()),
        RUN,
        &fake.url,
        "backups",
        keep.clone(),
    );
    let done = runner.run();
    done.assert_good();
    let keys = fake.keys();
    for (key, _) in &dead {
        assert!(!keys.contains(key), "{key} is left");
    }
    let stay: Vec<&String> = others.iter().map(|(k, _)| k).chain(&young).collect();
    for key in &stay {
        assert!(keys.contains(key), "{key} is gone");
    }
    let mut left: Vec<String> = open.iter().map(|(k, _)| k.clone()).collect();
    left.sort();
    assert_eq!(fake.open_uploads(), left);
    assert!(
        done.report
            .warnings
            .iter()
            .any(|w| w.contains("00000001.sql.zst.json"))
    );

    // All is removed on request, whatever its age, and still nothing of others.
    let more = json!({"action": "Prune", "options": {"all": true}, "retention": {"keepLast": 5}});
    let runner = with_bucket(Runner::new(fixture()), "p-1", &fake.url, "backups", more);
    runner.run().assert_good();
    let mut expected: Vec<String> = others.iter().map(|(k, _)| k.clone()).collect();
    expected.sort();
    assert_eq!(fake.keys(), expected);
    assert_eq!(fake.open_uploads(), [format!("{dir}/mine.bin")]);
}

#[test]
fn r5_leftovers_of_archives_go_by_the_claims_on_them() {
    let fake = FakeS3::start(Fault::None);
    let claim = |object: &str, key: &str, split: bool| {
        let name = key.rsplit('/').next().unwrap();
        json!({"object": {"kind": "Backup", "namespace": "ns1", "name": object, "uid": "uid-1"}, "run": "nightly-1",
            "key": key, "manifest": format!("arch/.gobackup-state/x/{name}.json"), "split": split})
        .to_string()
    };
    let single = "arch/2025.01.01.00.00.00.tar.gz";
    let split = "arch/2025.01.02.00.00.00/2025.01.02.00.00.00.tar.gz";
    let good = "arch/2025.01.03.00.00.00.tar.gz";
    let live = "arch/2025.01.04.00.00.00.tar.gz";
    let old = [
        (single.to_owned(), "x".to_owned()),
        (format!("{split}-000"), "x".to_owned()),
        (format!("{split}-001"), "x".to_owned()),
        (
            "arch/.backup-runner.r-1~p~1-1~a.claim".to_owned(),
            claim("nightly", single, false),
        ),
        (
            "arch/.backup-runner.r-2~p~2-1~a.claim".to_owned(),
            claim("other", split, true),
        ),
        (
            "arch/.backup-runner.r-3~p~3-1~a.claim".to_owned(),
            claim("nightly", good, false),
        ),
    ];
    for (key, text) in &old {
        fake.put(key, text.as_bytes(), 3);
    }
    // Vouched for: only the claim was left. Somebody else's, and gobackup's own.
    let stay = [
        (good.to_owned(), 3),
        (
            "arch/.gobackup-state/x/2025.01.03.00.00.00.tar.gz.json".to_owned(),
            3,
        ),
        ("arch/2024.01.01.00.00.00.tar.gz".to_owned(), 300),
        (format!("{split}.txt"), 3),
        (live.to_owned(), 0),
    ];
    for (key, days) in &stay {
        // A record is JSON to its end; a cut one vouches for nothing.
        let text: &[u8] = if key.ends_with(".json") { b"{}" } else { b"x" };
        fake.put(key, text, *days);
    }
    let mine = "arch/.backup-runner.r-4~p~4-1~a.claim";
    fake.put(mine, claim("nightly", live, false).as_bytes(), 0);
    fake.begin("arch/2025.01.02.00.00.00.tar.gz", 3);
    fake.begin("arch/photos.tar.gz", 3);
    fake.begin("arch/2025.01.05.00.00.00.tar.gz", 0);
    archive(&fake.url).run("nightly-28950870").assert_good();
    let keys = fake.keys();
    for (key, _) in &old {
        assert!(!keys.contains(key), "{key} is left");
    }
    for (key, _) in &stay {
        assert!(keys.contains(key), "{key} is gone");
    }
    assert!(keys.contains(&mine.to_owned()));
    assert_eq!(
        fake.open_uploads(),
        ["arch/2025.01.05.00.00.00.tar.gz", "arch/photos.tar.gz"]
    );
    archive(&fake.url)
        .act("nightly-1", "Prune", json!({"all": true}))
        .assert_good();
    let keys = fake.keys();
    assert!(!keys.contains(&mine.to_owned()) && !keys.contains(&live.to_owned()));
    for (key, _) in stay.iter().filter(|(k, _)| k != live) {
        assert!(keys.contains(key), "{key} is gone");
    }
}
