//! S3: a real server, and a fake one that breaks at each step.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod common;

use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use common::s3::{
    FakeS3, Fault, begin_upload, get, has_part, list, make_bucket, moto, open_uploads, with_bucket,
};
use common::{MariaDb, Runner, fixture};
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
    let strangers = [
        format!("{dir}deeper/x.sql"),
        format!("{dir}notes.txt"),
        "pre/fix/ns1/MysqlBackup/shop2/20250115T103000Z-28950870.sql".to_owned(),
    ];
    for key in &strangers {
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
    let mut expected = strangers.to_vec();
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
