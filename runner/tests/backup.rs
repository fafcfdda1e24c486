//! Runs of a gobackup.io Backup against real servers. `fault_NN` are the faults of the original
//! that lost data, and show that they do not happen here.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "tests"
)]

mod common;

use std::path::Path;

use common::backup::{Backup, archives, sh};
use common::s3::{get, list, moto};
use common::servers::{etcdctl, postgres, redis_cli, restored, start_etcd, start_redis, webdav};
use serde_json::{Value, json};

const ROWS: &str = "select count(*), md5(string_agg(id || v, ',' order by id)) from t";

#[test]
fn fault_22_three_databases_reach_two_storages_and_are_restored_equal() {
    let mut backup = Backup::new()
        .with_postgres()
        .with_mariadb()
        .with_bucket("three", 0)
        .with_dav("site/three", 0);
    backup.plan["encrypt"] = json!({
        "type": "openssl", "password": backup.secret("enc", "open sesame"), "bits": 256, "iterations": 10_000,
        "digest": "sha256", "base64": false,
    });
    let done = backup.run("nightly-28950870");
    done.assert_good();
    let [bucket, dav] = &done.report.artefacts[..] else {
        panic!("{:?}", done.report)
    };
    assert!(bucket.read_back && dav.read_back);
    assert_eq!(bucket.sha256, dav.sha256);
    // As of a MysqlBackup, what dumped MariaDB is told.
    assert_eq!(
        (&done.report.engine[..], &done.report.engine_reason[..]),
        ("Native", "")
    );
    assert!(
        done.report.snapshot.contains("session"),
        "{:?}",
        done.report
    );
    let file = backup.dir().join("from-bucket");
    std::fs::write(&file, get(moto(), &bucket.key)).unwrap();
    let stored = webdav().1.join(&dav.key);
    assert_eq!(
        std::fs::read(&file).unwrap(),
        std::fs::read(stored).unwrap()
    );
    assert!(sh("sha256sum < $1", &file).starts_with(&bucket.sha256));

    let open = "cd $(dirname $1) && openssl enc -d -aes-256-cbc -pbkdf2 -pass 'pass:open sesame' -in $1 | tar xzv";
    let listed = sh(open, &file);
    assert_eq!(
        listed.lines().collect::<Vec<_>>(),
        [
            "nightly/",
            "nightly/redis/",
            "nightly/redis/cache/",
            "nightly/redis/cache/dump.rdb",
            "nightly/postgresql/",
            "nightly/postgresql/maindb/",
            "nightly/postgresql/maindb/app.sql",
            "nightly/mariadb/",
            "nightly/mariadb/shop/",
            "nightly/mariadb/shop/shop.sql",
        ]
    );
    let root = backup.dir().join("nightly");
    let dump = root.join("postgresql/maindb/app.sql");
    assert_eq!(
        restored(postgres(), &dump, ROWS),
        common::servers::psql(postgres(), "app", ROWS)
    );
    assert_eq!(
        common::servers::psql(postgres(), "restored", "select to_regclass('skipme')"),
        ""
    );
    let copy = start_redis(&root.join("redis/cache"), None);
    assert_eq!(redis_cli(copy, None, &["get", "hello"]), "world");
    let sql = std::fs::read_to_string(root.join("mariadb/shop/shop.sql")).unwrap();
    // As gobackup dumps it: it loads into a database of any name.
    assert!(!sql.contains("CREATE DATABASE") && !sql.contains("\nUSE "));
}

#[test]
fn fault_01_keep_is_kept_on_every_storage() {
    let mut backup = Backup::new()
        .with_disk(2)
        .with_bucket("kept", 2)
        .with_dav("site/kept", 2);
    for n in 0..4 {
        backup.run(&format!("nightly-2895087{n}")).assert_good();
    }
    let good = backup.run("nightly-28950879");
    good.assert_good();
    assert_eq!(archives(&backup.disk()).len(), 2);
    assert_eq!(archives(&webdav().1.join("site/kept")).len(), 2);
    let in_bucket: Vec<String> = list(moto(), "kept/")
        .into_iter()
        .filter(|k| !k.contains("/."))
        .collect();
    assert_eq!(in_bucket.len(), 2);
    let newest = &good.report.artefacts[0].key;
    assert!(archives(&backup.disk()).iter().any(|p| p.ends_with(newest)));
}

#[test]
fn fault_01_what_gobackup_stored_is_pruned_as_its_own_and_others_stay() {
    let mut backup = Backup::new().with_disk(2);
    let disk = backup.disk();
    let old = ["2024.01.01.00.00.00.tar.gz", "2024.01.02.00.00.00.tar.gz"];
    for name in old.iter().chain(&["other.tar.gz"]) {
        std::fs::write(disk.join(name), "x").unwrap();
    }
    let state = disk.join(".gobackup-state");
    std::fs::create_dir(&state).unwrap();
    let entries = json!([
        {"file_key": old[0], "created_at": "2024-01-01T00:00:00Z"},
        {"file_key": old[1], "created_at": "2024-01-02T00:00:00Z"},
        {"file_key": "../../etc/passwd", "created_at": "2020-01-02T00:00:00Z"},
    ]);
    std::fs::write(state.join("nightly_disk.json"), entries.to_string()).unwrap();
    backup.adopt_state = Some(true);
    backup.run("nightly-28950870").assert_good();
    let names: Vec<String> = archives(&disk)
        .iter()
        .map(|p| p.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    assert!(!names.contains(&old[0].to_owned()), "{names:?}");
    assert!(
        names.contains(&old[1].to_owned()) && names.contains(&"other.tar.gz".to_owned()),
        "{names:?}"
    );
    let left: Value =
        serde_json::from_slice(&std::fs::read(state.join("nightly_disk.json")).unwrap()).unwrap();
    assert_eq!(left.as_array().unwrap().len(), 2);
}

/// What a gobackup.yml named goes on under its names: the path in the archive, gobackup's own list, and the user's own
/// command to open it.
#[test]
fn g6_a_backup_goes_on_where_a_gobackup_left_off() {
    let mut backup = Backup::new().with_disk(2);
    backup.plan["model"] = json!("my_app");
    backup.plan["databases"][0]["gobackupName"] = json!("my_cache");
    backup.plan["storages"][0]["gobackupName"] = json!("store.v1");
    backup.plan["encrypt"] = json!({
        "type": "openssl", "password": backup.secret("enc", "open sesame"), "bits": 256, "iterations": 0,
        "digest": "sha256", "base64": false,
    });
    let disk = backup.disk();
    let old = [
        "2024.01.01.00.00.00.tar.gz.enc",
        "2024.01.02.00.00.00.tar.gz.enc",
    ];
    for name in old {
        std::fs::write(disk.join(name), "x").unwrap();
    }
    let state = disk.join(".gobackup-state");
    std::fs::create_dir(&state).unwrap();
    let entries = json!([
        {"file_key": old[0], "created_at": "2024-01-01T00:00:00Z"},
        {"file_key": old[1], "created_at": "2024-01-02T00:00:00Z"},
    ]);
    let list = state.join("my_app_store.v1.json");
    std::fs::write(&list, entries.to_string()).unwrap();
    backup.adopt_state = Some(true);
    backup.run("nightly-28950870").assert_good();
    let left = archives(&disk);
    assert_eq!(left.len(), 2, "{left:?}");
    assert!(left[0].ends_with(old[1]), "{left:?}");
    let listed: Value = serde_json::from_slice(&std::fs::read(&list).unwrap()).unwrap();
    assert_eq!(listed.as_array().unwrap().len(), 1, "{listed}");
    // As `openssl enc -aes-256-cbc -salt -k PASSWORD` of gobackup is opened.
    let opened = sh(
        "openssl enc -d -aes-256-cbc -pass 'pass:open sesame' -in $1 | tar tz",
        &left[1],
    );
    assert!(
        opened.contains("my_app/redis/my_cache/dump.rdb"),
        "{opened}"
    );
    let verified = backup.act("nightly-v1", "Verify", json!({}));
    verified.assert_good();
    assert!(
        verified
            .report
            .message
            .contains("and so have the 1 files in it"),
        "{:?}",
        verified.report
    );
    // A list that is damaged is said, not taken for an empty one.
    std::fs::write(&list, "").unwrap();
    common::next_second();
    let done = backup.run("nightly-28950871");
    done.assert_good();
    let warned = done.report.warnings.iter();
    assert_eq!(warned.filter(|w| w.contains("own list")).count(), 1);
}

#[test]
fn fault_04_encryption_is_real() {
    let mut backup = Backup::new().with_disk(0);
    backup.plan["encrypt"] = json!({
        "type": "openssl", "password": backup.secret("enc", "open $sesame"), "bits": 128, "iterations": 20_000,
        "digest": "sha512", "base64": true,
    });
    backup.run("nightly-28950870").assert_good();
    let file = archives(&backup.disk()).remove(0);
    assert!(file.to_string_lossy().ends_with(".tar.gz.enc"));
    let listed = sh(
        "openssl enc -d -aes-128-cbc -pbkdf2 -iter 20000 -md sha512 -a -pass 'pass:open $sesame' -in $1 | tar tz",
        &file,
    );
    assert!(listed.contains("nightly/redis/cache/dump.rdb"), "{listed}");
}

#[test]
fn fault_05_every_codec_is_what_its_name_says() {
    for (codec, extension, open) in [
        ("tar", ".tar", "cat"),
        ("gzip", ".tar.gz", "gzip -dc"),
        ("bzip2", ".tar.bz2", "bzip2 -dc"),
        ("xz", ".tar.xz", "xz -dc --format=xz"),
        ("lzma", ".tar.lzma", "xz -dc --format=lzma"),
        ("zstd", ".tar.zst", "zstd -dc"),
    ] {
        let mut backup = Backup::new().with_disk(0);
        backup.plan["compress"] = json!({"codec": codec});
        backup.run("nightly-28950870").assert_good();
        let file = archives(&backup.disk()).remove(0);
        assert!(
            file.to_string_lossy().ends_with(extension),
            "{}",
            file.display()
        );
        let listed = sh(&format!("{open} < $1 | tar t"), &file);
        assert!(
            listed.contains("nightly/redis/cache/dump.rdb"),
            "{codec}: {listed}"
        );
    }
}

#[test]
fn fault_06_two_backups_of_one_second_do_not_overwrite_each_other() {
    let mut backup = Backup::new().with_disk(0);
    let now = chrono::Utc::now();
    let mut others = vec![];
    for second in 0..120 {
        let at = now + chrono::Duration::seconds(second);
        let path = backup
            .disk()
            .join(format!("{}.tar.gz", at.format("%Y.%m.%d.%H.%M.%S")));
        std::fs::write(&path, "another Backup's").unwrap();
        others.push(path);
    }
    let done = backup.run("nightly-28950870");
    done.assert_good();
    assert!(
        done.report.artefacts[0]
            .key
            .ends_with(".ns1.nightly.tar.gz"),
        "{:?}",
        done.report.artefacts
    );
    for other in others {
        assert_eq!(std::fs::read_to_string(other).unwrap(), "another Backup's");
    }
}

#[test]
fn fault_03_a_dump_that_fails_stores_nothing() {
    let mut backup = Backup::new().with_postgres().with_disk(0);
    backup.secret("pg", "wrong");
    let done = backup.run("nightly-28950870");
    done.assert_failed(
        3,
        "AccessDenied",
        &["Database maindb", "check the user name and the password"],
    );
    assert!(archives(&backup.disk()).is_empty());
    let mut backup = Backup::new().with_postgres().with_disk(0);
    backup.plan["databases"][1]["database"] = json!("nosuch");
    backup.run("nightly-28950870").assert_failed(
        3,
        "NotFound",
        &["nosuch", "check config.database"],
    );
    let mut backup = Backup::new().with_disk(0);
    backup.secret("redis", "wrong");
    backup
        .run("nightly-28950870")
        .assert_failed(3, "AccessDenied", &["Database cache"]);
    assert!(archives(&backup.disk()).is_empty());
}

#[test]
fn a_storage_that_fails_fails_the_run_and_the_others_have_the_archive() {
    let mut backup = Backup::new().with_dav("site/lost", 0).with_disk(0);
    backup.secret("dav", "wrong");
    let done = backup.run("nightly-28950870");
    done.assert_failed(
        4,
        "PermissionDenied",
        &["Storage dav", "check username and password"],
    );
    assert_eq!(archives(&backup.disk()).len(), 1);
    assert_eq!(
        done.report.artefacts.len(),
        1,
        "what was stored is told: {:?}",
        done.report
    );
}

#[test]
fn scripts_that_fail_show_and_a_databases_own_fails_the_run() {
    let mut backup = Backup::new().with_disk(0);
    let mark = backup.dir().join("after");
    backup.plan["beforeScript"] = json!("echo \"$((20 + 22)) $HOME\"; exit 3");
    backup.plan["afterScript"] = json!(format!("touch {}", mark.display()));
    let done = backup.run("nightly-28950870");
    done.assert_good();
    assert!(
        done.report
            .warnings
            .iter()
            .any(|w| w.contains("beforeScript") && w.contains("exit status 3")),
        "{:?}",
        done.report.warnings
    );
    assert!(done.stdout.contains("42 "));
    assert!(mark.exists());
    std::fs::remove_file(&mark).unwrap();
    backup.plan["databases"][0]["beforeScript"] = json!("echo no lock >&2; exit 1");
    backup
        .run("nightly-28950871")
        .assert_failed(3, "ScriptFailed", &["Database cache", "no lock"]);
    assert!(mark.exists(), "the closing script runs after a failure too");
}

fn sealed(backup: &mut Backup) {
    backup.plan["encrypt"] = json!({
        "type": "openssl", "password": backup.secret("enc", "open sesame"), "bits": 256, "iterations": 10_000,
        "digest": "sha256", "base64": false,
    });
}

#[test]
fn verify_reads_every_file_on_every_storage_and_sees_damage() {
    for codec in ["tar", "gzip", "zstd", "bzip2", "xz", "lzma"] {
        let mut backup = Backup::new().with_disk(0);
        backup.plan["compress"] = json!({"codec": codec});
        sealed(&mut backup);
        backup.run("nightly-28950870").assert_good();
        let done = backup.act("nightly-verify-1", "Verify", json!({}));
        done.assert_good();
        let verification = done.report.verification.clone().unwrap();
        assert!(verification.passed, "{codec}: {verification:?}");
        assert!(
            verification.message.contains("so have the 1 files in it"),
            "{codec}: {}",
            verification.message
        );
    }
    let mut backup = Backup::new().with_disk(0).with_dav("site/verify", 0);
    sealed(&mut backup);
    backup.run("nightly-28950870").assert_good();
    let done = backup.act(
        "nightly-verify-1",
        "Verify",
        json!({"run": "nightly-28950870"}),
    );
    done.assert_good();
    assert_eq!(done.report.artefacts.len(), 2, "{:?}", done.report);
    let key = done.report.artefacts[0].key.clone();

    // Stored well, but of other bytes: the record is believed, not the archive.
    let file = archives(&backup.disk()).remove(0);
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let done = backup.act("nightly-verify-2", "Verify", json!({"key": key}));
    done.assert_failed(5, "ReadBackDiffers", &["Storage disk"]);
    assert!(!done.report.verification.clone().unwrap().passed);

    std::fs::remove_file(&file).unwrap();
    let done = backup.act("nightly-verify-3", "Verify", json!({}));
    done.assert_failed(5, "ArtefactGone", &["Storage disk"]);
    backup
        .act("nightly-verify-4", "Verify", json!({"run": "nightly-1"}))
        .assert_failed(4, "ArtefactNotFound", &["list what is stored"]);
}

#[test]
fn list_tells_what_each_storage_has_and_prune_applies_keep_now() {
    let mut backup = Backup::new().with_disk(0).with_bucket("listed", 0);
    for n in 0..3 {
        backup.run(&format!("nightly-2895087{n}")).assert_good();
    }
    let done = backup.act("nightly-list-1", "List", json!({}));
    done.assert_good();
    assert_eq!(done.report.artefacts.len(), 6);
    assert!(
        done.report.message.contains("3 archives")
            && done.report.message.contains("storage bucket"),
        "{}",
        done.report.message
    );
    for storage in [0, 1] {
        backup.plan["storages"][storage]["keep"] = json!(1);
    }
    let dry = backup.act("nightly-prune-1", "Prune", json!({"dryRun": true}));
    dry.assert_good();
    assert!(
        dry.report
            .message
            .contains("4 of 6 archives would be removed"),
        "{}",
        dry.report.message
    );
    assert_eq!(archives(&backup.disk()).len(), 3);
    let done = backup.act("nightly-prune-2", "Prune", json!({}));
    done.assert_good();
    assert_eq!(done.report.pruned, Some(4));
    assert_eq!(archives(&backup.disk()).len(), 1);
    backup
        .act("nightly-prune-3", "Prune", json!({"all": true}))
        .assert_good();
    assert!(archives(&backup.disk()).is_empty());
    let left: Vec<String> = list(moto(), "listed/");
    assert!(left.is_empty(), "{left:?}");
}

/// What the report says of each Database and Storage, by name.
fn reached(done: &common::Finished) -> Vec<String> {
    let mut all: Vec<String> = done
        .report
        .endpoints
        .iter()
        .map(|e| {
            assert_eq!(e.reached, e.message.is_empty(), "{e:?}");
            let word = if e.reached { "reached" } else { &e.reason };
            format!("{}: {word}", e.name)
        })
        .collect();
    all.sort();
    all
}

/// Of what a run did not come to, and of what failed for another reason than being out of reach, nothing is said.
#[test]
fn a_run_tells_what_it_reached() {
    let mut backup = Backup::new()
        .with_postgres()
        .with_disk(0)
        .with_dav("site/reach", 0);
    let done = backup.run("nightly-28950870");
    done.assert_good();
    assert_eq!(
        reached(&done),
        ["cache", "dav", "disk", "maindb"].map(|name| format!("{name}: reached"))
    );
    backup.secret("dav", "wrong");
    let done = backup.run("nightly-28950871");
    done.assert_failed(4, "PermissionDenied", &["Storage dav"]);
    assert_eq!(
        reached(&done),
        [
            "cache: reached",
            "dav: PermissionDenied",
            "disk: reached",
            "maindb: reached"
        ]
    );
    backup.secret("redis", "wrong");
    let done = backup.run("nightly-28950872");
    done.assert_failed(3, "AccessDenied", &["Database cache"]);
    assert_eq!(
        reached(&done),
        [
            "cache: AccessDenied",
            "dav: PermissionDenied",
            "disk: reached"
        ]
    );
    let mut backup = Backup::new().with_disk(0);
    backup.plan["databases"][0]["beforeScript"] = json!("exit 1");
    let done = backup.run("nightly-28950873");
    done.assert_failed(3, "ScriptFailed", &["Database cache"]);
    assert_eq!(reached(&done), ["disk: reached"]);
}

#[test]
fn probe_logs_in_everywhere_and_names_all_that_is_wrong() {
    let mut backup = Backup::new()
        .with_postgres()
        .with_mariadb()
        .with_disk(0)
        .with_dav("site/probe", 0);
    let done = backup.act("nightly-probe-1", "Probe", json!({}));
    done.assert_good();
    for name in [
        "Storage disk",
        "Storage dav",
        "Database cache",
        "Database maindb",
        "Database shop",
    ] {
        assert!(
            done.report.message.contains(name),
            "{}",
            done.report.message
        );
    }
    assert_eq!(
        reached(&done),
        ["cache", "dav", "disk", "maindb", "shop"].map(|name| format!("{name}: reached"))
    );
    assert!(archives(&backup.disk()).is_empty());
    for secret in ["pg", "my", "redis", "dav"] {
        backup.secret(secret, "wrong");
    }
    let done = backup.act("nightly-probe-2", "Probe", json!({}));
    assert_ne!(done.code, Some(0));
    assert_eq!(
        reached(&done),
        [
            "cache: AccessDenied",
            "dav: PermissionDenied",
            "disk: reached",
            "maindb: AccessDenied",
            "shop: AccessDenied",
        ]
    );
    // The report is short: what comes last may be cut, the log has it.
    for name in ["Storage dav", "Database cache", "Database maindb"] {
        assert!(
            done.report.message.contains(name),
            "{}",
            done.report.message
        );
    }
}

#[test]
fn the_files_of_a_dump_that_failed_do_not_stay() {
    let mut backup = Backup::new().with_disk(0);
    backup.secret("redis", "wrong");
    let done = backup.run("nightly-28950870");
    done.assert_failed(3, "AccessDenied", &["Database cache"]);
    let left: Vec<_> = std::fs::read_dir(backup.disk()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn etcd_is_dumped_and_its_snapshot_starts_another_member() {
    let mut backup = Backup::new().with_disk(0);
    let port = start_etcd(&backup.dir().join("etcd"));
    for n in 0..200 {
        etcdctl(port, &["put", &format!("k{n:03}"), &format!("value {n}")]).unwrap();
    }
    let before = etcdctl(port, &["get", "", "--prefix"]).unwrap();
    backup.plan["databases"] = json!([
        {"name": "store", "engine": "etcd", "host": format!("127.0.0.1:{port}")},
    ]);
    backup
        .act("nightly-probe-1", "Probe", json!({}))
        .assert_good();
    backup.run("nightly-28950870").assert_good();
    let file = archives(&backup.disk()).remove(0);
    sh("cd $(dirname $1) && tar xzf $1", &file);
    let name = format!("store-127.0.0.1:{port}");
    let snapshot = backup.disk().join("nightly/etcd").join(name);
    assert!(backup.disk().join("nightly/etcd/store").is_dir());
    let data = backup.dir().join("restored");
    let restored = std::process::Command::new("etcdctl")
        .env("ETCDCTL_API", "3")
        .args(["snapshot", "restore"])
        .arg(&snapshot)
        .arg("--data-dir")
        .arg(&data)
        .output()
        .unwrap();
    assert!(restored.status.success(), "{restored:?}");
    let copy = start_etcd(&data);
    assert_eq!(etcdctl(copy, &["get", "", "--prefix"]).unwrap(), before);

    backup.plan["databases"][0]["host"] = json!(format!("127.0.0.1:{}", common::free_port()));
    backup
        .run("nightly-28950871")
        .assert_failed(3, "ConnectionFailed", &["Database store"]);
}

#[test]
fn a_split_archive_is_read_back_kept_and_verified_as_one() {
    let mut backup = Backup::new().with_disk(1).with_bucket("split", 1);
    let big = start_redis(&backup.dir(), None);
    for n in 0..3 {
        let file = backup.dir().join("value");
        let value = sh("head -c 750000 /dev/urandom | base64 -w0", Path::new("/"));
        std::fs::write(&file, value).unwrap();
        sh(&format!("redis-cli -p {big} -x set k{n} < $1"), &file);
    }
    backup.plan["databases"][0]["port"] = json!(big);
    backup.plan["databases"][0]
        .as_object_mut()
        .unwrap()
        .remove("password");
    backup.plan["compress"] = json!({"codec": "tar"});
    backup.plan["split"] = json!({"bytes": 1 << 20, "suffixLength": 3, "numeric": true});
    sealed(&mut backup);
    backup.run("nightly-28950870").assert_good();
    let done = backup.run("nightly-28950871");
    done.assert_good();
    let artefact = done
        .report
        .artefacts
        .iter()
        .find(|a| a.storage.as_deref() == Some("disk"))
        .unwrap();
    let (directory, name) = artefact.key.rsplit_once('/').unwrap();
    let directory = backup.disk().join(directory);
    let parts: Vec<String> = archives(&directory)
        .iter()
        .map(|p| p.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    assert!(parts.len() >= 3, "{parts:?}");
    for (n, part) in parts.iter().enumerate() {
        assert_eq!(*part, format!("{name}-{n:03}"));
    }
    let whole = backup.dir().join("whole");
    std::fs::write(&whole, sh("cat $1/* | base64 -w0", &directory)).unwrap();
    let open =
        "base64 -d < $1 | openssl enc -d -aes-256-cbc -pbkdf2 -pass 'pass:open sesame' | tar t";
    assert!(sh(open, &whole).contains("nightly/redis/cache/dump.rdb"));
    assert!(sh("base64 -d < $1 | sha256sum", &whole).starts_with(&artefact.sha256));

    // keep: 1 removed every part of the first.
    let stored: usize = archives(&backup.disk())
        .iter()
        .filter(|d| d.is_dir())
        .map(|d| archives(d).len())
        .sum();
    assert_eq!(stored, parts.len());
    let in_bucket = list(moto(), "split/")
        .into_iter()
        .filter(|k| !k.contains("/."))
        .count();
    assert_eq!(in_bucket, parts.len());

    let verified = backup.act("nightly-verify-1", "Verify", json!({}));
    verified.assert_good();
    assert!(
        verified.report.message.contains("so have the 1 files"),
        "{}",
        verified.report.message
    );
    std::fs::remove_file(directory.join(&parts[1])).unwrap();
    backup
        .act("nightly-verify-2", "Verify", json!({}))
        .assert_failed(5, "ArtefactGone", &["Storage disk"]);

    backup.plan["split"] = json!({"bytes": 1 << 20, "suffixLength": 1, "numeric": true});
    backup.plan["split"]["bytes"] = json!(100_000);
    backup
        .run("nightly-28950872")
        .assert_failed(2, "InvalidSettings", &["splitWith.chunkSize"]);
}
