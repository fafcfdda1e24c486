//! Snapshots of Redis in an archive of a gobackup.io Backup on their way into a running server.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "tests"
)]

mod common;

use common::backup::{Backup, archives};
use common::databases::Certificates;
use common::free_port;
use common::servers::{
    REDIS_PASSWORD, directory, redis, redis_cli, spawn, start_redis, start_redis_with, wait_for,
};
use serde_json::{Value, json};

const RUN: &str = "nightly-28950870";
/// Every type a Redis 7.0 writes, small and large, in three databases.
const FILL: &str = include_str!("fixtures/redis.lua");
const LIBRARY: &str = "#!lua name=lib\nredis.register_function('f', function() return 7 end)";

/// A Redis that tells a digest of all its data.
fn server(password: Option<&str>, options: &[&str]) -> u16 {
    let options = [&["--enable-debug-command", "yes"], options].concat();
    start_redis_with(&directory("restore-redis"), password, &options)
}

fn filled(policy: &str) -> u16 {
    let port = server(Some(REDIS_PASSWORD), &["--maxmemory-policy", policy]);
    let cli = |args: &[&str]| redis_cli(port, Some(REDIS_PASSWORD), args);
    cli(&["debug", "quicklist-packed-threshold", "1000b"]);
    cli(&["eval", FILL, "0"]);
    assert_eq!(cli(&["function", "load", LIBRARY]), "lib");
    port
}

/// A Backup of the Redis at this port alone.
fn backup(port: u16) -> Backup {
    let mut backup = Backup::new().with_disk(0);
    backup.plan["databases"][0]["port"] = json!(port);
    backup
}

fn to(backup: &Backup, port: u16, password: &str) -> Value {
    json!({
        "host": "127.0.0.1", "port": port,
        "usernameFile": backup.secret("to-user", "default"), "passwordFile": backup.secret("to", password),
    })
}

/// What a server holds, but for what changes as it is looked at.
fn content(port: u16, password: Option<&str>) -> Vec<String> {
    let cli = |args: &[&str]| redis_cli(port, password, args);
    let mut found = vec![cli(&["debug", "digest"]), cli(&["function", "dump"])];
    for key in ["lasting", "lasting hash", "text"] {
        found.push(cli(&["pexpiretime", key]));
    }
    found.push(cli(&["xinfo", "stream", "stream", "full", "count", "0"]));
    for database in ["0", "3", "15"] {
        found.push(cli(&["-n", database, "dbsize"]));
    }
    found
}

#[test]
fn every_type_comes_back_as_it_was() {
    for policy in ["noeviction", "allkeys-lru", "allkeys-lfu"] {
        let source = filled(policy);
        let mut backup = backup(source);
        let target = server(None, &["--maxmemory-policy", policy]);
        backup.run(RUN).assert_good();
        let done = backup.restore(to(&backup, target, ""), json!({"dryRun": true}));
        done.assert_good();
        assert_eq!(done.report.reason, "WouldRestore");
        assert_eq!(redis_cli(target, None, &["info", "keyspace"]), "# Keyspace");

        let done = backup.restore(to(&backup, target, ""), json!({}));
        done.assert_good();
        assert_eq!(done.report.reason, "Restored");
        let message = &done.report.message;
        assert!(
            message.starts_with("restored 28 keys in 3 databases of redis/cache of ")
                && message.ends_with(&format!(
                    " into 127.0.0.1:{target}, with 1 libraries of functions"
                )),
            "{message}"
        );
        let before = content(source, Some(REDIS_PASSWORD));
        assert_eq!(before[5].matches("name").count(), 4, "{}", before[5]);
        assert_eq!(content(target, None), before, "{policy}");
        let scan = redis_cli(target, None, &["--scan"]);
        assert_eq!(scan.lines().count(), 26, "{scan}");
        if policy == "allkeys-lfu" {
            redis_cli(source, Some(REDIS_PASSWORD), &["object", "freq", "text"]);
        }
    }
}

#[test]
fn what_is_there_is_touched_with_consent_alone() {
    let source = start_redis(&directory("restore-redis"), Some(REDIS_PASSWORD));
    let cli = |args: &[&str]| redis_cli(source, Some(REDIS_PASSWORD), args);
    cli(&["debug", "set-active-expire", "0"]);
    cli(&["set", "a", "1"]);
    cli(&["-n", "3", "set", "b", "2"]);
    let mut backup = backup(source);
    backup.run(RUN).assert_good();
    let target = start_redis(
        &directory("restore-redis"),
        Some("S3cr3t-marker of the target"),
    );
    let there = |args: &[&str]| redis_cli(target, Some("S3cr3t-marker of the target"), args);
    let place = to(&backup, target, "S3cr3t-marker of the target");
    there(&["-n", "5", "set", "elsewhere", "x"]);
    there(&["-n", "3", "mset", "b", "old", "c", "3"]);
    for dry in [true, false] {
        let done = backup.restore(place.clone(), json!({"dryRun": dry}));
        done.assert_failed(
            2,
            "TargetNotEmpty",
            &["2 keys are in database 3 already", "set overwrite"],
        );
    }
    assert_eq!(there(&["dbsize"]), "0");
    let done = backup.restore(place.clone(), json!({"overwrite": true}));
    done.assert_good();
    let said = "2 keys it held those of the same name are replaced";
    assert!(
        done.report.message.contains(said),
        "{}",
        done.report.message
    );
    assert_eq!(there(&["get", "a"]), "1");
    assert_eq!(there(&["-n", "3", "mget", "b", "c"]), "2\n3");
    assert_eq!(there(&["-n", "5", "get", "elsewhere"]), "x");

    // The very server, even where its keys are gone.
    cli(&["flushall"]);
    let done = backup.restore(to(&backup, source, REDIS_PASSWORD), json!({}));
    done.assert_failed(2, "TargetIsSource", &["set overwrite"]);
    assert_eq!(cli(&["dbsize"]), "0");

    let wrong = to(&backup, target, "S3cr3t-marker wrong");
    let done = backup.restore(wrong, json!({"overwrite": true}));
    done.assert_failed(
        3,
        "AccessDenied",
        &["WRONGPASS", "spec.to.credentialsSecretRef"],
    );
    let away = to(&backup, free_port(), "");
    let done = backup.restore(away, json!({}));
    done.assert_failed(3, "ConnectionFailed", &["check spec.to.host and port"]);
    let done = backup.restore(place.clone(), json!({"database": "7"}));
    done.assert_failed(2, "InvalidSettings", &["spec.to.database", "leave it out"]);

    // What is stored is other than what was: nothing is touched.
    there(&["flushall"]);
    let file = archives(&backup.disk()).remove(0);
    let mut bytes = std::fs::read(&file).unwrap();
    let last = bytes.len() - 40;
    bytes[last] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let done = backup.restore(place, json!({"overwrite": true}));
    done.assert_failed(
        5,
        "ReadBackDiffers",
        &["another archive or another storage"],
    );
    assert_eq!(there(&["dbsize"]), "0");
}

#[test]
fn a_server_that_can_not_take_it_is_told_with_the_remedy() {
    let source = start_redis(&directory("restore-redis"), Some(REDIS_PASSWORD));
    let cli = |args: &[&str]| redis_cli(source, Some(REDIS_PASSWORD), args);
    cli(&["-n", "9", "set", "a", &"x".repeat(3000)]);
    let mut backup = backup(source);
    backup.run(RUN).assert_good();

    let few = server(None, &["--databases", "4"]);
    let done = backup.restore(to(&backup, few, ""), json!({}));
    done.assert_failed(3, "NotFound", &["database 9: ", "raise `databases`"]);

    let full = server(None, &["--maxmemory", "1mb"]);
    redis_cli(full, None, &["config", "set", "maxmemory", "1"]);
    let done = backup.restore(to(&backup, full, ""), json!({}));
    done.assert_failed(3, "NoSpace", &["database 9: ", "OOM", "raise maxmemory"]);

    let replica = server(
        None,
        &["--replicaof", &format!("127.0.0.1 {}", free_port())],
    );
    let done = backup.restore(to(&backup, replica, ""), json!({}));
    done.assert_failed(2, "InvalidSettings", &["is a replica", "name the primary"]);

    let cluster = server(None, &["--cluster-enabled", "yes"]);
    let done = backup.restore(to(&backup, cluster, ""), json!({}));
    done.assert_failed(
        2,
        "InvalidSettings",
        &["node of a cluster", "spec.to.volume"],
    );

    let rights = [
        "--user", "default", "on", "nopass", "~*", "+ping", "+info", "+select", "+dbsize",
    ];
    let limited = server(None, &rights);
    let done = backup.restore(to(&backup, limited, ""), json!({}));
    done.assert_failed(3, "PermissionDenied", &["NOPERM", "+restore"]);
}

#[test]
fn a_name_is_needed_only_where_an_archive_holds_more_than_fits() {
    let mut backup = Backup::new().with_disk(0);
    let other = json!({"name": "queue", "engine": "redis", "host": "127.0.0.1", "port": redis(), "password": backup.secret("redis", REDIS_PASSWORD)});
    backup.add("databases", other);
    backup.run(RUN).assert_good();
    let target = start_redis(&directory("restore-redis"), None);
    let done = backup.restore(to(&backup, target, ""), json!({}));
    done.assert_failed(
        2,
        "InvalidSettings",
        &["redis/cache, redis/queue", "spec.from.database"],
    );
    let done = backup.restore(to(&backup, target, ""), json!({"dump": "queue"}));
    done.assert_good();
    assert_eq!(redis_cli(target, None, &["get", "hello"]), "world");
}

#[test]
fn the_password_crosses_by_tls_where_that_is_asked_for() {
    let source = start_redis(&directory("restore-redis"), Some(REDIS_PASSWORD));
    redis_cli(source, Some(REDIS_PASSWORD), &["set", "a", "1"]);
    let mut backup = backup(source);
    backup.run(RUN).assert_good();
    let made = Certificates::make();
    let dir = directory("restore-redis");
    let secured = |certificate: &str| {
        let (port, socket) = (free_port(), dir.join(format!("{certificate}.sock")));
        let mut command = std::process::Command::new("redis-server");
        command
            .args([
                "--port",
                "0",
                "--bind",
                "127.0.0.1",
                "--save",
                "",
                "--tls-auth-clients",
                "no",
            ])
            .args(["--tls-port", &port.to_string(), "--unixsocket"])
            .arg(&socket)
            .args(["--tls-ca-cert-file", &made.path("ca.pem")])
            .args(["--tls-cert-file", &made.path(&format!("{certificate}.pem"))])
            .args(["--tls-key-file", &made.path(&format!("{certificate}.key"))])
            .current_dir(&dir);
        spawn(&mut command);
        wait_for("Redis with TLS", || {
            std::os::unix::net::UnixStream::connect(&socket).is_ok()
        });
        (port, socket)
    };
    let (good, socket) = secured("server");
    let (elsewhere, _) = secured("elsewhere");
    let ask = |backup: &mut Backup, port: u16, mode: &str, ca: Option<&str>| {
        let mut place = to(backup, port, "");
        place["tlsMode"] = json!(mode);
        place["caFile"] = json!(ca.map(|name| made.path(name)));
        backup.restore(place, json!({"overwrite": true}))
    };
    for (port, mode, ca, works) in [
        (good, "VerifyIdentity", Some("ca.pem"), true),
        (good, "VerifyIdentity", Some("other-ca.pem"), false),
        (good, "VerifyIdentity", None, false),
        (elsewhere, "VerifyIdentity", Some("ca.pem"), false),
        (elsewhere, "VerifyCA", Some("ca.pem"), true),
        (elsewhere, "VerifyCA", Some("other-ca.pem"), false),
        (elsewhere, "Required", None, true),
    ] {
        let done = ask(&mut backup, port, mode, ca);
        if works {
            done.assert_good();
        } else {
            done.assert_failed(3, "TlsFailed", &["spec.to.tls"]);
        }
    }
    let done = ask(&mut backup, good, "Disabled", None);
    done.assert_failed(3, "ConnectionLost", &["spec.to.tls.mode Required"]);
    // A socket of the pod.
    let place = json!({
        "socket": socket, "usernameFile": backup.secret("to-user", "default"), "passwordFile": backup.secret("to", ""),
    });
    let done = backup.restore(place, json!({"overwrite": true}));
    done.assert_good();
    assert!(
        done.report.message.contains("server.sock"),
        "{}",
        done.report.message
    );
}
