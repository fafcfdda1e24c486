//! Runs whose archive another program makes and stores, against real servers: a stand-in for gobackup, or gobackup itself where
//! the variable GOBACKUP names its program (tests/run does, where it can be built; gobackup_peer.rs holds the two side by side).
//! What it stored is opened by the programs of its users.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "tests"
)]

mod common;

use common::backup::{Backup, archives, sh};
use common::s3::{get, list, moto};
use common::servers::{postgres, psql, restored, webdav};
use serde_json::{Value, json};

const ROWS: &str = "select count(*), md5(string_agg(id || v, ',' order by id)) from t";

fn sealed(backup: &mut Backup) {
    backup.plan["encrypt"] = json!({
        "type": "openssl", "password": backup.secret("enc", "open $sesame 'S3cr3t-marker'"), "bits": 192, "iterations": 20_000,
        "digest": "sha512", "base64": true,
    });
}

const OPEN: &str = r#"openssl enc -d -aes-192-cbc -pbkdf2 -iter 20000 -md sha512 -a -pass "pass:open \$sesame 'S3cr3t-marker'" -in $1"#;

/// A settings file that gobackup understands, no secret on any command line, and an archive that is what it should be.
#[test]
fn its_archive_is_on_every_storage_and_is_restored_equal() {
    let mut backup = Backup::new()
        .with_postgres()
        .with_mariadb()
        .with_disk(0)
        .with_bucket("by-gobackup", 0)
        .with_dav("site/by-gobackup", 0)
        .by_gobackup();
    sealed(&mut backup);
    // Clients that note their words are found before the real ones.
    let called = backup.dir().join("called");
    for client in ["mysqldump", "redis-cli", "pg_dump"] {
        let program = backup.dir().join("bin").join(client);
        let real = sh("command -v $(basename $1)", &program);
        let real = real.trim();
        let script = format!(
            "#!/bin/sh\necho {client} \"$@\" >>'{}'\nexec {real} \"$@\"\n",
            called.display()
        );
        std::fs::write(&program, script).unwrap();
        sh("chmod +x $1", &program);
    }
    let done = backup.run("nightly-28950870");
    done.assert_good();
    let called = std::fs::read_to_string(called).unwrap();
    assert_eq!(called.lines().count(), 3, "{called}");
    assert!(!called.contains("S3cr3t"), "{called}");
    // What would be a secret is shown so.
    assert!(!done.stdout.contains("***"), "{}", done.stdout);
    assert!(done.report.warnings.is_empty(), "{:?}", done.report);

    let artefacts = &done.report.artefacts;
    let storages: Vec<_> = artefacts.iter().map(|a| a.storage.as_deref()).collect();
    assert_eq!(storages, [Some("disk"), Some("bucket"), Some("dav")]);
    let file = archives(&backup.disk()).remove(0);
    let bytes = std::fs::read(&file).unwrap();
    assert_eq!(get(moto(), &artefacts[1].key), bytes);
    assert_eq!(
        std::fs::read(webdav().1.join(&artefacts[2].key)).unwrap(),
        bytes
    );
    for artefact in artefacts {
        assert_eq!(artefact.size, i64::try_from(bytes.len()).unwrap());
        assert!(sh("sha256sum < $1", &file).starts_with(&artefact.sha256));
        assert!(
            artefact.read_back && artefact.key.ends_with(".tar.gz.enc"),
            "{artefact:?}"
        );
    }
    assert_eq!(done.report.stored_bytes, Some(artefacts[0].size * 3));
    assert!(
        done.report.rows.is_some_and(|rows| rows > 0),
        "{:?}",
        done.report
    );

    sh(
        &format!("{OPEN} | tar xz -C $(dirname $(dirname $1))"),
        &file,
    );
    let root = backup.dir().join("nightly");
    let dump = root.join("postgresql/maindb/app.sql");
    assert_eq!(
        restored(postgres(), &dump, ROWS),
        psql(postgres(), "app", ROWS)
    );
    let sql = std::fs::read_to_string(root.join("mysql/shop/shop.sql")).unwrap();
    assert!(
        sql.trim_end()
            .lines()
            .last()
            .unwrap()
            .starts_with("-- Dump completed")
    );
    assert!(root.join("redis/cache/dump.rdb").exists());

    // The archive is the Backup's own from now on, whoever made it.
    backup.gobackup = false;
    let verified = backup.act("nightly-v1", "Verify", json!({}));
    verified.assert_good();
    assert!(
        verified
            .report
            .message
            .contains("and so have the 3 files in it"),
        "{:?}",
        verified.report
    );
}

#[test]
fn every_codec_that_is_let_through_is_made_stored_and_looked_into() {
    for (codec, extension, open) in [
        ("tar", ".tar", "cat"),
        ("gzip", ".tar.gz", "gzip -dc"),
        ("bzip2", ".tar.bz2", "bzip2 -dc"),
        ("xz", ".tar.xz", "xz -dc --format=xz"),
        ("lzma", ".tar.lzma", "xz -dc"),
        ("zstd", ".tar.zst", "zstd -dc"),
    ] {
        let mut backup = Backup::new().with_disk(0).by_gobackup();
        backup.plan["compress"] = json!({"codec": codec, "level": 2});
        backup.run("nightly-28950870").assert_good();
        let file = archives(&backup.disk()).remove(0);
        assert!(file.to_string_lossy().ends_with(extension), "{file:?}");
        let listed = sh(&format!("{open} < $1 | tar t"), &file);
        assert!(listed.contains("nightly/redis/cache/dump.rdb"), "{listed}");
    }
}

/// gobackup keeps count in a file that is gone with the pod; the runner counts what is on the storage.
#[test]
fn keep_is_kept_and_the_name_is_never_anothers() {
    let mut backup = Backup::new()
        .with_disk(2)
        .with_bucket("kept-by-gobackup", 2)
        .by_gobackup();
    let mut keys = vec![];
    for n in 0..4 {
        let done = backup.run(&format!("nightly-2895087{n}"));
        done.assert_good();
        // gobackup's own list on the storage names what is this Backup's own.
        assert!(done.report.warnings.is_empty(), "{:?}", done.report);
        keys.push(done.report.artefacts[1].key.clone());
    }
    assert_eq!(archives(&backup.disk()).len(), 2);
    let mut left = list(moto(), "kept-by-gobackup/");
    left.retain(|k| !k.contains("/."));
    let mut newest = keys[2..].to_vec();
    newest.sort();
    assert_eq!(left, newest);
    // Of one second or not: each has letters of its own behind the time.
    let tokens: std::collections::BTreeSet<_> = keys.iter().map(|k| k.split('.').nth(6)).collect();
    assert_eq!(tokens.len(), 4, "{keys:?}");
}

/// gobackup's own list on the storage names the archive, and claims it for nobody else.
#[test]
fn prune_all_takes_an_archive_that_is_damaged() {
    let mut backup = Backup::new()
        .with_dav("site/damaged-by-gobackup", 0)
        .by_gobackup();
    let done = backup.run("nightly-28950870");
    done.assert_good();
    let archive = webdav().1.join(&done.report.artefacts[0].key);
    let list = archive.with_file_name(".gobackup-state/nightly_dav.json");
    assert!(list.exists(), "{list:?}");
    std::fs::write(&archive, "cut").unwrap();
    backup.gobackup = false;
    backup
        .act("nightly-prune-1", "Prune", json!({"all": true}))
        .assert_good();
    assert!(!archive.exists());
}

/// It ends with status 0 in all of these.
#[test]
fn its_exit_status_alone_is_never_believed() {
    for (fault, code, reason, words) in [
        (
            "nothing",
            3,
            "NothingPacked",
            &["packed no archive", "spec.job.image"][..],
        ),
        (
            "unstored",
            4,
            "NotStored",
            &["Storage disk", "is not there"],
        ),
        (
            "undumped",
            3,
            "IncompleteDump",
            &["Database cache", "holds no dump"],
        ),
        ("cut", 5, "ReadBackDiffers", &["Storage disk", "not kept"]),
        (
            "other-bytes",
            5,
            "ReadBackDiffers",
            &["Storage disk", "not kept"],
        ),
    ] {
        let mut backup = Backup::new().with_disk(0).by_stand_in();
        backup.runner.env.insert("STAND_IN".into(), fault.into());
        let done = backup.run("nightly-28950870");
        done.assert_failed(code, reason, words);
        assert!(
            done.report.artefacts.is_empty(),
            "{fault}: {:?}",
            done.report
        );
        // What looks like a backup and is none does not stay.
        assert_eq!(
            archives(&backup.disk()),
            Vec::<std::path::PathBuf>::new(),
            "{fault}"
        );
    }
}

#[test]
fn what_it_fails_with_is_said_with_cause_and_remedy() {
    let mut backup = Backup::new().with_postgres().with_disk(0).by_gobackup();
    backup.secret("pg", "wrong");
    let done = backup.run("nightly-28950870");
    done.assert_failed(
        3,
        "AccessDenied",
        &[
            "Database maindb",
            "password authentication failed",
            "check the user name and the password",
        ],
    );
    assert!(archives(&backup.disk()).is_empty());
    let unreached: Vec<_> = done
        .report
        .endpoints
        .iter()
        .filter(|e| !e.reached)
        .map(|e| e.name.as_str())
        .collect();
    assert_eq!(unreached, ["maindb"]);

    let mut backup = Backup::new().with_disk(0).by_gobackup();
    backup.plan["databases"][0]["beforeScript"] = json!("echo \"it's $((40 + 2))\" >&2; exit 3");
    backup
        .run("nightly-28950870")
        .assert_failed(3, "DumpFailed", &["Database cache", "it's 42"]);

    let mut backup = Backup::new().with_disk(0);
    backup.gobackup = true;
    backup.run("nightly-28950870").assert_failed(
        2,
        "InvalidSettings",
        &["no gobackup", "BACKUP_JOB_IMAGE"],
    );
}

/// As with the native engine: the run fails, and the others have the archive.
#[test]
fn a_storage_that_fails_does_not_keep_the_archive_from_the_others() {
    let mut backup = Backup::new()
        .with_bucket("lost", 1)
        .with_disk(1)
        .by_gobackup();
    backup.plan["storages"][0]["bucket"] = json!("nosuch");
    let done = backup.run("nightly-28950870");
    assert_eq!(done.code, Some(4), "{}", done.stdout);
    assert!(
        done.report.message.contains("nosuch") || done.report.message.contains("NoSuchBucket"),
        "{}",
        done.report.message
    );
    let storages: Vec<_> = done
        .report
        .artefacts
        .iter()
        .map(|a| a.storage.as_deref())
        .collect();
    assert_eq!(storages, [Some("disk")]);
    assert_eq!(archives(&backup.disk()).len(), 1);
}

/// The one that works is pruned by its keep, and a retry stores nothing again.
#[test]
fn r4_a_broken_storage_costs_the_good_one_no_keep_and_no_second_archive() {
    let mut backup = Backup::new()
        .with_bucket("lost", 1)
        .with_disk(1)
        .by_gobackup();
    backup.plan["storages"][0]["bucket"] = json!("nosuch");
    let key = |done: &common::Finished| done.report.artefacts[0].key.clone();
    let done = backup.run("nightly-28950870");
    assert_eq!(done.code, Some(4), "{}", done.stdout);
    let second = backup.run("nightly-28950871");
    assert_eq!(second.code, Some(4), "{}", second.stdout);
    let again = backup.run("nightly-28950871");
    assert_eq!(again.code, Some(4), "{}", again.stdout);
    assert_eq!(
        (key(&again), key(&second) == key(&done)),
        (key(&second), false)
    );
    let left = archives(&backup.disk());
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(left[0].ends_with(key(&second)), "{left:?}");
}

/// Model-level scripts are the runner's: gobackup only logs that one failed.
#[test]
fn a_failing_script_of_the_backup_shows_as_a_warning() {
    let mut backup = Backup::new().with_disk(0).by_gobackup();
    backup.plan["beforeScript"] = json!("exit 3");
    let after = backup.dir().join("after");
    backup.plan["afterScript"] = Value::from(format!("echo $HOME > {}", after.display()));
    let done = backup.run("nightly-28950870");
    done.assert_good();
    assert!(
        done.report.warnings[0].contains("beforeScript"),
        "{:?}",
        done.report.warnings
    );
    assert!(after.exists());
}

/// As with the native engine: a script after a good dump that fails is a warning, and one before it fails the run. gobackup 3
/// knows no word for that.
#[test]
fn g1_a_failing_script_after_a_dump_shows_as_a_warning() {
    let mut backup = Backup::new().with_disk(0).by_gobackup();
    let ran = backup.dir().join("ran by");
    let script = format!("echo \"it's $((40 + 2))\" > '{}'\nexit 3", ran.display());
    backup.plan["databases"][0]["afterScript"] = script.into();
    let done = backup.run("nightly-28950870");
    done.assert_good();
    assert_eq!(std::fs::read_to_string(&ran).unwrap(), "it's 42\n");
    let warning = "after_script of Database cache: the script ended with status 3";
    assert!(
        done.report.warnings.iter().any(|w| w.starts_with(warning)),
        "{:?}",
        done.report.warnings
    );
    backup.plan["databases"][0]["afterScript"] = json!("true");
    let done = backup.run("nightly-28950871");
    done.assert_good();
    assert!(
        done.report.warnings.is_empty(),
        "{:?}",
        done.report.warnings
    );
}

#[test]
fn g2_a_gobackup_that_names_by_the_second_alone_is_refused() {
    let mut backup = Backup::new().with_disk(0).by_stand_in();
    let program = backup.dir().join("bin/gobackup");
    sh("sed -i '2i export STAND_IN_VERSION=2.14.0' $1", &program);
    backup.run("nightly-28950870").assert_failed(
        2,
        "InvalidSettings",
        &["gobackup 2.14", "filename_format", "spec.job.image", "2.17"],
    );
    assert!(archives(&backup.disk()).is_empty());
    sh("sed -i s/2.14.0/2.17.0/ $1", &program);
    backup.run("nightly-28950871").assert_good();
}

/// Names of a gobackup.yml go on with gobackup as engine too, and failures name the object.
#[test]
fn g6_its_archive_has_the_names_of_a_gobackup_yml() {
    let mut backup = Backup::new().with_disk(0).by_gobackup();
    backup.plan["model"] = json!("my_app");
    backup.plan["databases"][0]["gobackupName"] = json!("my_cache");
    backup.run("nightly-28950870").assert_good();
    let listed = sh("tar tzf $1", &archives(&backup.disk())[0]);
    assert!(
        listed.contains("my_app/redis/my_cache/dump.rdb"),
        "{listed}"
    );
    backup.plan["databases"][0]["beforeScript"] = json!("exit 3");
    backup
        .run("nightly-28950871")
        .assert_failed(3, "DumpFailed", &["Database cache"]);
}
