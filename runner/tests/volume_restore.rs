//! Dumps in an archive of a gobackup.io Backup on their way onto a volume, for a server that starts
//! with them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "tests"
)]

mod common;

use std::path::Path;

use common::backup::{Backup, archives, sh};
use common::servers::{
    POSTGRES_PASSWORD, directory, etcdctl, redis_cli, start_etcd, start_redis_with,
};
use serde_json::{Value, json};

const RUN: &str = "nightly-28950870";

fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    let mut names: Vec<String> = entries
        .map(|e| e.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn a_server_starts_with_the_dump_rdb_that_was_put_onto_its_volume() {
    let mut backup = Backup::new().with_disk(0);
    backup.run(RUN).assert_good();
    let target = backup.dir().join("volume/redis");
    let options = |more: Value| {
        let mut options = json!({"directory": target});
        let fields = options.as_object_mut().unwrap();
        fields.extend(more.as_object().unwrap().clone());
        options
    };
    let done = backup.restore(Value::Null, options(json!({"dryRun": true})));
    done.assert_good();
    assert_eq!(done.report.reason, "WouldRestore");
    assert!(!target.exists(), "a dry run makes nothing");

    let done = backup.restore(Value::Null, options(json!({})));
    done.assert_good();
    assert_eq!(done.report.reason, "Restored");
    let message = &done.report.message;
    assert!(
        message.starts_with("restored 1 files of redis/cache of ")
            && message.ends_with(&format!(" into {}", target.display())),
        "{message}"
    );
    assert_eq!(names(&target), ["dump.rdb"]);
    let file = archives(&backup.disk()).remove(0);
    let packed = sh(
        "tar xzOf $1 nightly/redis/cache/dump.rdb | sha256sum",
        &file,
    );
    assert_eq!(
        sh("sha256sum < $1", &target.join("dump.rdb")),
        packed,
        "{message}"
    );
    let port = start_redis_with(&target, None, &[]);
    assert_eq!(redis_cli(port, None, &["get", "hello"]), "world");

    // What the filesystem puts into its root is nobody's.
    std::fs::create_dir_all(target.join("lost+found")).unwrap();
    std::fs::create_dir_all(target.join("appendonlydir/x")).unwrap();
    std::fs::write(target.join("dump.rdb"), "old").unwrap();
    let done = backup.restore(Value::Null, options(json!({})));
    done.assert_failed(
        2,
        "TargetNotEmpty",
        &[
            "holds 2 files and directories already, appendonlydir for one",
            "set overwrite",
        ],
    );
    assert_eq!(names(&target), ["appendonlydir", "dump.rdb", "lost+found"]);
    let done = backup.restore(Value::Null, options(json!({"overwrite": true})));
    done.assert_good();
    assert!(
        done.report
            .message
            .contains("in place of all it holds (2 files and directories)"),
        "{}",
        done.report.message
    );
    assert_eq!(names(&target), ["dump.rdb", "lost+found"]);
    assert_eq!(sh("sha256sum < $1", &target.join("dump.rdb")), packed);

    let below = json!({"directory": target.join("dump.rdb/x")});
    let done = backup.restore(Value::Null, below);
    done.assert_failed(4, "AlreadyExists", &["it is no directory"]);

    // What is stored is other than what was: what is there stays.
    std::fs::write(target.join("dump.rdb"), "old").unwrap();
    let mut bytes = std::fs::read(&file).unwrap();
    let last = bytes.len() - 40;
    bytes[last] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let done = backup.restore(Value::Null, options(json!({"overwrite": true})));
    done.assert_failed(
        5,
        "ReadBackDiffers",
        &["another archive or another storage"],
    );
    assert_eq!(std::fs::read(target.join("dump.rdb")).unwrap(), b"old");
    assert_eq!(names(&target), ["dump.rdb", "lost+found"]);
}

#[test]
fn an_etcd_starts_on_the_data_directory_of_a_new_member() {
    let source = start_etcd(&directory("restore-etcd").join("data"));
    for i in 0..40 {
        etcdctl(source, &["put", &format!("/app/{i}"), &"v".repeat(i)]).unwrap();
    }
    etcdctl(source, &["del", "/app/7"]).unwrap();
    let mut backup = Backup::new().with_disk(0);
    let database = json!({"name": "kv", "engine": "etcd", "host": format!("127.0.0.1:{source}")});
    backup.add("databases", database);
    backup.run(RUN).assert_good();

    let target = directory("restore-etcd").join("data");
    let done = backup.restore(Value::Null, json!({"directory": target}));
    done.assert_failed(2, "InvalidSettings", &["redis/cache", "spec.from.database"]);
    let etcd = json!({
        "name": "m1", "initialCluster": "m1=http://127.0.0.1:2380", "initialClusterToken": "t",
        "initialAdvertisePeerUrls": "http://127.0.0.1:2380",
    });
    let wrong = json!({"name": "m2", "initialCluster": "m1=http://127.0.0.1:2380"});
    let done = backup.restore(
        Value::Null,
        json!({"directory": target, "dump": "kv", "etcd": wrong}),
    );
    done.assert_failed(3, "RestoreFailed", &["m2", "check spec.to.etcd"]);
    assert_eq!(names(&target), Vec::<String>::new());
    let done = backup.restore(
        Value::Null,
        json!({"directory": target, "dump": "kv", "etcd": etcd}),
    );
    done.assert_good();
    let message = &done.report.message;
    assert!(
        message.starts_with("restored the data directory of a new member of etcd/kv-127.0.0.1:")
            && message.ends_with(" at revision 42"),
        "{message}"
    );
    assert_eq!(names(&target), ["member"]);
    let restored = start_etcd(&target);
    let all = |port: u16| etcdctl(port, &["get", "", "--prefix", "-w", "fields"]).unwrap();
    let keys = |port: u16| {
        let text = all(port);
        // The cluster and its member are new ones.
        let lines = text.lines().filter(|l| {
            !["\"ClusterID\"", "\"MemberID\"", "\"RaftTerm\""]
                .iter()
                .any(|name| l.starts_with(name))
        });
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(keys(restored), keys(source));
    assert!(
        all(restored).contains("\"Count\" : 39"),
        "{}",
        all(restored)
    );
    let members = etcdctl(restored, &["member", "list"]).unwrap();
    assert!(members.contains(", http://127.0.0.1:2380, "), "{members}");
}

#[test]
fn a_dump_of_a_format_of_pg_dumps_own_is_put_there_as_it_is() {
    let mut backup = Backup::new().with_postgres().with_disk(0);
    backup.plan["databases"][1]["args"] = json!(["--format=custom"]);
    backup.run(RUN).assert_good();
    let to = json!({
        "host": "127.0.0.1", "port": common::servers::postgres(),
        "usernameFile": backup.secret("to-user", "postgres"), "passwordFile": backup.secret("to", POSTGRES_PASSWORD),
    });
    let done = backup.restore(to, json!({"database": "other"}));
    done.assert_good();
    let port = common::servers::postgres();
    assert_eq!(
        common::servers::psql(port, "other", "select count(*) from t"),
        "3000"
    );
    common::servers::psql(port, "postgres", "drop database other");
    let target = backup.dir().join("volume");
    let options = json!({"directory": target, "dump": "maindb"});
    backup.restore(Value::Null, options).assert_good();
    assert_eq!(names(&target), ["app.sql"]);
    let list = sh("pg_restore --list $1", &target.join("app.sql"));
    assert!(list.contains("TABLE DATA public t postgres"), "{list}");
}
