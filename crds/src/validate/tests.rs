#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use k8s_openapi::api::core::v1::{EnvVar, Volume, VolumeMount};

use super::*;
use crate::mysql_backup::{MysqlBackupSpec, MysqlSource};
use crate::parts::{
    Destination, Encryption, Engine, PodMetadata, Retention, Verify, VolumeDestination,
};

#[test]
fn o9_arguments_go_with_an_image_of_the_users() {
    let paths = |spec: &str| -> Vec<String> {
        let spec = serde_json::from_str(spec).expect(spec);
        let all = mysql_backup(&spec).into_iter().map(|p| p.path);
        all.filter(|path| path == "spec.args").collect()
    };
    let with = |more: &str| format!(r#"{{"schedule":"@daily"{more}}}"#);
    assert_eq!(paths(&with(r#","args":["copy","/x"]"#)), ["spec.args"]);
    assert_eq!(paths(&with(r#","args":[""]"#)), ["spec.args"]);
    assert_eq!(paths(&with(r#","args":[]"#)), [""; 0]);
    assert_eq!(paths(&with(r#","args":["x"],"image":"mine""#)), [""; 0]);
}

#[test]
fn how_a_restore_loads_goes_with_a_server_and_has_bounds() {
    let of = |to: &str, more: &str| -> Vec<String> {
        let text = format!(
            r#"{{"from":{{"kind":"Backup","name":"shop","latest":true}},"to":{{{to}}}{more}}}"#
        );
        let found = restore(&serde_json::from_str(&text).unwrap());
        found.iter().map(|p| p.path.to_string()).collect()
    };
    let host = r#""host":"db","credentialsSecretRef":{"name":"db"}"#;
    let volume = r#""volume":{"persistentVolumeClaim":{"claimName":"c"}}"#;
    let whole = r#","verify":"Whole""#;
    assert_eq!(of(&format!(r#"{host},"sessions":16"#), whole), [""; 0]);
    for sessions in [0, 17] {
        let to = format!(r#"{host},"sessions":{sessions}"#);
        assert_eq!(of(&to, ""), ["spec.to.sessions"]);
    }
    assert_eq!(of(volume, whole), ["spec.verify"]);
    let to = format!(r#"{volume},"sessions":2"#);
    assert_eq!(of(&to, ""), ["spec.to.sessions"]);
}

#[test]
fn a_restore_says_what_and_where_once() {
    const TO: &str = r#""to":{"host":"db","credentialsSecretRef":{"name":"db"}}"#;
    const S3: &str = r#""destination":{"s3":{"bucket":"b"}}"#;
    let rows = [
        (r#"{"name":"shop","latest":true}"#.to_owned(), vec![]),
        (
            r#"{"name":"shop","at":"2025-01-15T10:30:00Z"}"#.into(),
            vec![],
        ),
        (format!(r#"{{"location":{{{S3},"key":"k"}}}}"#), vec![]),
        (r#"{"name":"shop","key":"k"}"#.into(), vec![]),
        (
            r#"{"name":"shop","key":"k","latest":true}"#.into(),
            vec!["spec.from"],
        ),
        (r#"{"name":"shop"}"#.into(), vec!["spec.from"]),
        (
            r#"{"name":"shop","latest":false}"#.into(),
            vec!["spec.from"],
        ),
        (
            r#"{"name":"shop","run":"r","latest":true}"#.into(),
            vec!["spec.from"],
        ),
        (r#"{"latest":true}"#.into(), vec!["spec.from"]),
        (
            r#"{"name":"shop","at":"yesterday"}"#.into(),
            vec!["spec.from.at"],
        ),
        (
            r#"{"kind":"Storage","name":"shop","latest":true}"#.into(),
            vec!["spec.from.kind"],
        ),
        (
            r#"{"kind":"CronBackup","name":"shop","latest":true,"database":"d","storage":"s"}"#
                .into(),
            vec![],
        ),
        (
            r#"{"name":"shop","latest":true,"database":"d","storage":"s"}"#.into(),
            vec!["spec.from.database", "spec.from.storage"],
        ),
        (
            format!(r#"{{"location":{{{S3}}}}}"#),
            vec!["spec.from.location", "spec.from.location.object"],
        ),
        (
            r#"{"location":{"destination":{},"latest":true,"object":{"name":"shop"}}}"#.into(),
            vec!["spec.from.location.destination"],
        ),
    ];
    for (from, paths) in rows {
        let text = format!(r#"{{"from":{from},{TO}}}"#);
        let found = restore(&serde_json::from_str(&text).unwrap());
        let found: Vec<&str> = found.iter().map(|p| p.path.as_str()).collect();
        assert_eq!(found, paths, "{from}");
    }
    let neither =
        r#"{"from":{"name":"a","latest":true},"to":{"credentialsSecretRef":{"name":"db"}}}"#;
    assert_eq!(
        restore(&serde_json::from_str(neither).unwrap())[0].path,
        "spec.to"
    );
}

#[test]
fn a_replay_has_one_end_and_the_dumps_own_databases() {
    let paths = |replay: &str, from: &str, to: &str| -> Vec<String> {
        let text = format!(
            r#"{{"from":{{"name":"a","latest":true{from}}},"to":{{"host":"db","credentialsSecretRef":{{"name":"db"}}{to}}},"replay":{replay}}}"#
        );
        let found = restore(&serde_json::from_str(&text).unwrap());
        found.into_iter().map(|p| p.path).collect()
    };
    for good in [
        r#"{"at":"2025-01-15T10:30:00+01:00"}"#,
        r#"{"gtid":"0-1-5"}"#,
        r#"{"beforeGtid":"0-1-5"}"#,
        r#"{"latest":true}"#,
    ] {
        assert!(paths(good, "", "").is_empty(), "{good}");
    }
    for bad in [
        r#"{}"#,
        r#"{"latest":false}"#,
        r#"{"latest":true,"gtid":"0-1-5"}"#,
    ] {
        assert_eq!(paths(bad, "", ""), ["spec.replay"], "{bad}");
    }
    for at in ["yesterday", "2025-01-15T10:30:00.5Z"] {
        let replay = format!(r#"{{"at":"{at}"}}"#);
        assert_eq!(paths(&replay, "", ""), ["spec.replay.at"], "{at}");
    }
    let latest = r#"{"latest":true}"#;
    assert_eq!(paths(latest, r#","kind":"Backup""#, ""), ["spec.replay"]);
    assert_eq!(paths(latest, "", r#","database":"copy""#), ["spec.replay"]);
}

#[test]
fn a_restore_of_a_part_names_it_and_is_of_a_dump() {
    for (from, more, paths) in [
        (
            "",
            r#""tables":["shop.orders"],"withoutForeignKeys":true"#,
            &[][..],
        ),
        (
            "",
            r#""databases":["shop"],"excludeTables":["shop.log"]"#,
            &[],
        ),
        (
            "",
            r#""tables":["orders",".x","y."]"#,
            &["spec.tables[0]", "spec.tables[1]", "spec.tables[2]"],
        ),
        ("", r#""databases":[" "]"#, &["spec.databases[0]"]),
        (
            "",
            r#""withoutForeignKeys":true"#,
            &["spec.withoutForeignKeys"],
        ),
        (
            "",
            r#""accounts":true,"tables":["a.b"]"#,
            &["spec.accounts"],
        ),
        (
            r#""kind":"Backup","#,
            r#""tables":["a.b"]"#,
            &["spec.tables"],
        ),
        (
            r#""kind":"CronBackup","#,
            r#""withoutForeignKeys":true"#,
            &["spec.withoutForeignKeys"],
        ),
    ] {
        let text = format!(
            r#"{{"from":{{{from}"name":"a","latest":true}},"to":{{"host":"db","credentialsSecretRef":{{"name":"db"}}}},{more}}}"#
        );
        let found = restore(&serde_json::from_str(&text).unwrap());
        let found: Vec<&str> = found.iter().map(|p| p.path.as_str()).collect();
        assert_eq!(found, paths, "{text}");
    }
}

fn spec(change: impl FnOnce(&mut MysqlBackupSpec)) -> MysqlBackupSpec {
    let mut spec = MysqlBackupSpec {
        schedule: "0 3 * * *".into(),
        image: Some("mine".into()),
        ..Default::default()
    };
    change(&mut spec);
    spec
}

#[test]
fn o12_events_and_on_that_differ_are_refused() {
    for fields in [
        "events: [Failure]\n'on': [Missed]",
        "events: [Failure]\n'on': [Failure, Missed]",
    ] {
        let text = format!("type: Slack\nurlSecretKeyRef: {{name: a, key: b}}\n{fields}");
        let found = mysql_backup(&spec(|s| {
            s.notifications = vec![serde_yaml::from_str(&text).unwrap()];
        }));
        assert_eq!(found[0].path, "spec.notifications[0]", "{found:?}");
        assert!(found[0].message.contains("keep events and remove on"));
    }
}

#[test]
fn method_and_headers_are_a_webhooks() {
    let header = "headers: [{name: X-Team, value: ops}]";
    for (text, path) in [
        (format!("type: Webhook\nmethod: PUT\n{header}"), None),
        (
            "type: Slack\nmethod: PUT".to_owned(),
            Some("spec.notifications[0]"),
        ),
        (
            format!("type: Mail\n{header}"),
            Some("spec.notifications[0]"),
        ),
        (
            "type: Webhook\nheaders: [{name: A, value: b}, {name: Cookie, value: b}]".to_owned(),
            Some("spec.notifications[0].headers[1]"),
        ),
    ] {
        let text = format!("{text}\nurlSecretKeyRef: {{name: a, key: b}}");
        let all = [serde_yaml::from_str(&text).unwrap()];
        let found: Vec<String> = notifications(&all).into_iter().map(|p| p.path).collect();
        assert_eq!(found, path.into_iter().collect::<Vec<_>>(), "{text}");
    }
}

#[test]
fn each_mistake_names_its_path() {
    let volume = |name: &str| Volume {
        name: name.into(),
        ..Default::default()
    };
    let rows: Vec<(&str, MysqlBackupSpec)> = vec![
        ("spec.schedule", spec(|s| s.schedule = "61 * * * *".into())),
        ("spec.schedule", spec(|s| s.schedule = "0 0 * * 7".into())),
        (
            "spec.schedule",
            spec(|s| s.schedule = "TZ=UTC 0 0 * * *".into()),
        ),
        (
            "spec.timeZone",
            spec(|s| s.time_zone = Some("Mars/X".into())),
        ),
        ("spec.timeZone", spec(|s| s.time_zone = Some(String::new()))),
        (
            "spec.failedJobsHistoryLimit",
            spec(|s| s.failed_jobs_history_limit = Some(-1)),
        ),
        (
            "spec.startingDeadlineSeconds",
            spec(|s| s.starting_deadline_seconds = Some(-1)),
        ),
        (
            "spec.volumes[1].name",
            spec(|s| s.volumes = vec![volume("a"), volume("a")]),
        ),
        (
            "spec.volumeMounts[0].name",
            spec(|s| {
                s.volume_mounts = vec![VolumeMount {
                    name: "x".into(),
                    ..Default::default()
                }]
            }),
        ),
        (
            "spec.podMetadata",
            spec(|s| {
                s.pod_metadata = Some(PodMetadata {
                    labels: [("batch.isekiro.com/owner-uid".into(), "x".into())].into(),
                    ..Default::default()
                })
            }),
        ),
        (
            "spec.source",
            spec(|s| {
                s.source = Some(MysqlSource {
                    host: Some("h".into()),
                    socket: Some("/s".into()),
                    ..Default::default()
                })
            }),
        ),
        (
            "spec.source.databases[0]",
            spec(|s| {
                s.source = Some(MysqlSource {
                    databases: vec![String::new()],
                    ..Default::default()
                })
            }),
        ),
        (
            "spec.source.sessions",
            spec(|s| {
                s.source = Some(MysqlSource {
                    sessions: Some(17),
                    ..Default::default()
                })
            }),
        ),
        (
            "spec.source.sessions",
            spec(|s| {
                s.source = Some(MysqlSource {
                    engine: Some(Engine::Client),
                    sessions: Some(2),
                    ..Default::default()
                })
            }),
        ),
        (
            "spec.source.accounts",
            spec(|s| {
                s.source = Some(MysqlSource {
                    engine: Some(Engine::Client),
                    accounts: Some(true),
                    ..Default::default()
                })
            }),
        ),
        (
            "spec.source.extraArgs",
            spec(|s| {
                s.source = Some(MysqlSource {
                    engine: Some(Engine::Native),
                    extra_args: vec!["--quick".into(), "--where=id<5".into()],
                    ..Default::default()
                })
            }),
        ),
        (
            "spec.source.excludeTables[0]",
            spec(|s| {
                s.source = Some(MysqlSource {
                    exclude_tables: vec!["t".into()],
                    ..Default::default()
                })
            }),
        ),
        (
            "spec.destination",
            spec(|s| s.destination = Some(Destination::default())),
        ),
        (
            "spec.encryption.age",
            spec(|s| s.encryption = Some(Encryption::default())),
        ),
        (
            "spec.verify.volume",
            spec(|s| {
                s.verify = Some(Verify {
                    volume: Some(VolumeDestination::default()),
                    ..Default::default()
                })
            }),
        ),
        (
            "spec.retention.maxAge",
            spec(|s| {
                s.retention = Some(Retention {
                    max_age: Some("a week".into()),
                    ..Default::default()
                })
            }),
        ),
    ];
    assert_eq!(mysql_backup(&spec(|_| {})), vec![]);
    for (path, bad) in rows {
        let found = mysql_backup(&bad);
        assert_eq!(
            found.iter().map(|p| p.path.as_str()).collect::<Vec<_>>(),
            [path],
            "{found:?}"
        );
    }
}

const SERVER: &str = r#""source":{"host":"db","credentialsSecretRef":{"name":"db"}}"#;

/// A server, a login and a store, by field or by the variables that the original read.
#[test]
fn u10_our_runner_gets_what_it_can_t_do_without() {
    const STORE: &str = r#""destination":{"s3":{"bucket":"b"}}"#;
    let envs = |names: &[&str]| {
        let each = names
            .iter()
            .map(|n| format!(r#"{{"name":"{n}","value":"/v"}}"#));
        format!(r#""backupEnvs":[{}]"#, each.collect::<Vec<_>>().join(","))
    };
    let (server, login, store) = (
        "spec.source.host",
        "spec.source.credentialsSecretRef",
        "spec.destination",
    );
    let rows = [
        (r#""suspend":false"#.to_owned(), vec![server, login, store]),
        (SERVER.to_owned(), vec![store]),
        (format!("{SERVER},{STORE}"), vec![]),
        (format!("{STORE},{}", envs(&["HOST"])), vec![login]),
        (format!("{STORE},{}", envs(&["HOST", "USERNAME"])), vec![]),
        (r#""image":"mine""#.to_owned(), vec![]),
        (
            format!(
                r#"{STORE},"source":{{"socket":"/run/m.sock"}},{}"#,
                envs(&["USERNAME"])
            ),
            vec![],
        ),
        (
            format!(
                r#"{STORE},"backupEnvs":[{{"name":"HOST","value":""}},{{"name":"USERNAME","valueFrom":{{"secretKeyRef":{{"name":"a","key":"b"}}}}}}]"#
            ),
            vec![server],
        ),
    ];
    for (fields, wanted) in rows {
        let text = format!(r#"{{"schedule":"@daily",{fields}}}"#);
        let found = mysql_backup(&serde_json::from_str(&text).unwrap());
        let paths: Vec<&str> = found.iter().map(|p| p.path.as_str()).collect();
        assert_eq!(paths, wanted, "{fields}");
    }
}

#[test]
fn u10_keys_levels_and_hosts_are_checked_without_quoting_secrets() {
    // `age-keygen` printed it; one letter changed breaks its checksum.
    const KEY: &str = "age1t7rxyev2z3rw82stdlrrepyc39nvn86l5078zqkf5uasdy86jp6svpy7pa";
    let with = |fields: &str| {
        let text = format!(r#"{{"schedule":"@daily","image":"mine",{fields}}}"#);
        let found = mysql_backup(&serde_json::from_str(&text).unwrap());
        found.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let to = |key: &str| {
        with(&format!(
            r#""encryption":{{"age":{{"recipients":["{key}"]}}}}"#
        ))
    };
    assert_eq!(to(KEY), [""; 0]);
    for bad in [
        "age1foo",
        &KEY[..60],
        &KEY.replace('q', "p"),
        "ssh-ed25519 AAAA",
        "",
    ] {
        let found = to(bad);
        assert_eq!(found.len(), 1, "{bad}");
        assert!(found[0].starts_with("spec.encryption.age.recipients[0]: is not an age"));
    }
    let secret = to("AGE-SECRET-KEY-1MARKER");
    assert!(secret[0].contains("private key") && !secret[0].contains("MARKER"));
    let level = |type_: &str, level: i32| {
        with(&format!(
            r#""compression":{{"type":"{type_}","level":{level}}}"#
        ))
    };
    for (type_, good, bad) in [("zstd", 19, 20), ("gzip", 9, 10), ("gzip", 1, 0)] {
        assert_eq!(level(type_, good), [""; 0]);
        assert_eq!(level(type_, bad).len(), 1, "{type_} {bad}");
    }
    let host = with(r#""source":{"host":"mysql://u:S3cr3t@db/x"}"#);
    assert!(
        host[0].starts_with("spec.source.host: ") && !host[0].contains("S3cr3t"),
        "{host:?}"
    );
    let restored = r#"{"from":{"name":"a","latest":true},"to":{"host":"db:3306","credentialsSecretRef":{"name":"s"}}}"#;
    assert_eq!(
        restore(&serde_json::from_str(restored).unwrap())[0].path,
        "spec.to.host"
    );
}

/// The replay is filtered to what is restored; what foreign keys do is in no log.
#[test]
fn a_replay_goes_with_a_part_and_not_without_its_foreign_keys() {
    let paths = |more: &str| -> Vec<String> {
        let text = format!(
            r#"{{"from":{{"name":"a","latest":true}},"to":{{"host":"db","credentialsSecretRef":{{"name":"db"}}}},"replay":{{"latest":true}},{more}}}"#
        );
        let found = restore(&serde_json::from_str(&text).unwrap());
        found.into_iter().map(|p| p.path).collect()
    };
    for part in [
        r#""tables":["shop.orders"]"#,
        r#""databases":["shop"]"#,
        r#""excludeTables":["shop.log"]"#,
    ] {
        assert_eq!(paths(part), [""; 0], "{part}");
        let without = format!(r#"{part},"withoutForeignKeys":true"#);
        assert_eq!(paths(&without), ["spec.withoutForeignKeys"], "{part}");
    }
}

/// Where there are no binary logs there is nothing to replay, whatever the kind.
#[test]
fn a_verification_by_replay_needs_binary_logs() {
    let typed = |more: &str| {
        let text = format!(
            r#"{{"schedule":"@daily","destination":{{"s3":{{"bucket":"b"}}}},"verify":{{"mode":"Replay"}},{SERVER}{more}}}"#
        );
        mysql_backup(&serde_json::from_str(&text).unwrap())
    };
    let found = typed("");
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].path, "spec.verify.mode");
    for words in ["spec.binlogs", "--binlogs", "mode Restore"] {
        assert!(found[0].message.contains(words), "{}", found[0]);
    }
    assert_eq!(typed(r#","binlogs":{}"#), vec![]);
    let replay = serde_json::from_str(r#"{"mode":"Replay"}"#).unwrap();
    let of_backup = verify("spec.job.verify", &replay, Replays::Never);
    assert_eq!(of_backup[0].path, "spec.job.verify.mode");
    assert!(of_backup[0].message.contains("MysqlBackup"));
    for mode in ["Checksum", "Restore"] {
        let other = serde_json::from_str(&format!(r#"{{"mode":"{mode}"}}"#)).unwrap();
        assert_eq!(verify("spec.verify", &other, Replays::Never), vec![]);
    }
}

/// Every field that names a place to store on, with every volume that is gone with the pod; the
/// scratch server of a verification may have any.
#[test]
fn t7_nothing_is_stored_on_what_goes_with_the_pod() {
    let gone = [
        r#"{"emptyDir":{}}"#,
        r#"{"emptyDir":{"medium":"Memory"},"path":"a"}"#,
        r#"{"ephemeral":{"volumeClaimTemplate":{"spec":{}}}}"#,
        r#"{"csi":{"driver":"inline.storage.kubernetes.io"}}"#,
    ];
    let stays = [
        r#"{"persistentVolumeClaim":{"claimName":"c"}}"#,
        r#"{"nfs":{"server":"s","path":"/"}}"#,
        r#"{"hostPath":{"path":"/srv"}}"#,
        r#"{"csi":{"driver":"smb.csi.k8s.io"}}"#,
    ];
    let paths = |found: Vec<Problem>| -> Vec<String> {
        for problem in &found {
            let words = ["gone with the pod", "persistentVolumeClaim"];
            assert!(
                words.iter().all(|w| problem.message.contains(w)),
                "{problem}"
            );
        }
        found.into_iter().map(|p| p.path).collect()
    };
    let typed = |volume: &str| {
        let text =
            format!(r#"{{"schedule":"@daily","destination":{{"volume":{volume}}},{SERVER}}}"#);
        mysql_backup(&serde_json::from_str(&text).unwrap())
    };
    let restored = |volume: &str| {
        let text = format!(
            r#"{{"from":{{"kind":"Backup","name":"b","latest":true}},"to":{{"volume":{volume}}}}}"#
        );
        restore(&serde_json::from_str(&text).unwrap())
    };
    let scratch = |volume: &str| {
        let text = format!(
            r#"{{"schedule":"@daily","image":"mine","verify":{{"mode":"Restore","volume":{volume}}}}}"#
        );
        mysql_backup(&serde_json::from_str(&text).unwrap())
    };
    for volume in gone {
        assert_eq!(
            paths(typed(volume)),
            ["spec.destination.volume"],
            "{volume}"
        );
        assert_eq!(paths(restored(volume)), ["spec.to.volume"], "{volume}");
        assert_eq!(scratch(volume), vec![], "{volume}");
    }
    for volume in stays {
        assert_eq!(typed(volume), vec![], "{volume}");
        assert_eq!(restored(volume), vec![], "{volume}");
        assert_eq!(scratch(volume), vec![], "{volume}");
    }
}

/// The original's form: a path in the environment, a mount over it.
#[test]
fn t7_sqlpath_is_held_to_the_same() {
    let judge = |path: &str, more: &str| {
        let text = format!(
            r#"{{"schedule":"@daily",{SERVER},"backupEnvs":[{{"name":"SQLPATH",{path}}}],
            "volumes":[{{"name":"kept","persistentVolumeClaim":{{"claimName":"c"}}}},{{"name":"tmp","emptyDir":{{}}}}],
            "volumeMounts":[{{"name":"kept","mountPath":"/mnt"}},{{"name":"tmp","mountPath":"/mnt/tmp"}}]{more}}}"#
        );
        let found = mysql_backup(&serde_json::from_str(&text).unwrap());
        found.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    for good in [r#""value":"/mnt""#, r#""value":"/mnt/a/""#] {
        assert_eq!(judge(good, ""), [""; 0], "{good}");
    }
    let one = |path: &str| {
        let found = judge(path, "");
        assert_eq!(found.len(), 1, "{path} {found:?}");
        found[0].clone()
    };
    assert!(one(r#""value":"/mnt/tmp/x""#).contains("volume \"tmp\", which is an emptyDir"));
    assert!(one(r#""value":"/data""#).contains("container's own disk"));
    // Not known here, another program's own matter, or without effect.
    let tmp = r#""value":"/mnt/tmp""#;
    assert_eq!(
        judge(
            r#""valueFrom":{"configMapKeyRef":{"name":"c","key":"k"}}"#,
            ""
        ),
        [""; 0]
    );
    assert_eq!(judge(r#""value":"$(ROOT)/x""#, ""), [""; 0]);
    assert_eq!(judge(tmp, r#","image":"mine""#), [""; 0]);
    assert_eq!(
        judge(tmp, r#","destination":{"s3":{"bucket":"b"}}"#),
        [""; 0]
    );
}

#[test]
fn the_name_limit_is_52() {
    assert_eq!(name(&"x".repeat(52)), None);
    assert!(name(&"x".repeat(53)).unwrap().message.contains("52"));
}

#[test]
fn o7_an_interval_of_seconds_is_warned_of() {
    let said = |text: &str| {
        let found = mysql_backup_warnings(&spec(|s| s.schedule = text.into()));
        found.concat()
    };
    assert!(
        said("@every 9s")
            .starts_with("spec.schedule: \"@every 9s\" is shorter than the least interval of 10s")
    );
    for text in ["@every 10s", "@every 59s"] {
        assert!(said(text).contains("write @every 1m or longer"), "{text}");
    }
    for text in ["@every 60s", "@every 1h", "* * * * *", "@daily"] {
        assert_eq!(said(text), "", "{text}");
    }
}

#[test]
fn warnings_never_quote_the_value() {
    let risky = spec(|s| {
        s.backup_envs = vec![EnvVar {
            name: "PASSWORD".into(),
            value: Some("S3cr3t-marker".into()),
            value_from: None,
        }];
        s.args = vec!["mysql://u:S3cr3t-marker@db/x".into()];
        s.schedule = "0 0 30 2 *".into();
    });
    let warnings = mysql_backup_warnings(&risky);
    assert_eq!(warnings.len(), 3, "{warnings:?}");
    assert!(!warnings.concat().contains("S3cr3t"));
}

/// Binary logs are of the whole server: beside a backup of a part of it they are refused, wherever the part is named.
#[test]
fn binary_logs_go_with_a_backup_of_the_whole_server() {
    let said = |change: &dyn Fn(&mut MysqlBackupSpec)| {
        let found = mysql_backup(&spec(|s| {
            s.binlogs = Some(crate::binlogs::Binlogs::default());
            change(s);
        }));
        let found = found.into_iter().filter(|p| p.path == "spec.binlogs");
        found.map(|p| p.message).collect::<String>()
    };
    let source = |change: fn(&mut crate::mysql_backup::MysqlSource)| {
        said(&move |s| change(s.source.get_or_insert_default()))
    };
    let variable = |name: &str, value: &str| {
        said(&|s| {
            s.backup_envs.push(EnvVar {
                name: name.into(),
                value: Some(value.into()),
                value_from: None,
            });
        })
    };
    assert_eq!(said(&|_| {}), "");
    assert_eq!(variable("DATABASES", ""), "");
    for (found, named) in [
        (
            source(|s| s.databases = vec!["shop".into()]),
            "spec.source.databases",
        ),
        (
            source(|s| s.exclude_tables = vec!["a.b".into()]),
            "spec.source.excludeTables",
        ),
        (
            variable("DATABASES", "shop"),
            "DATABASES in spec.backupEnvs",
        ),
        (
            variable("EXCLUDE_TABLES", "a.b"),
            "EXCLUDE_TABLES in spec.backupEnvs",
        ),
    ] {
        assert!(
            found.contains(&format!("but {named} leaves some out")),
            "{found}"
        );
    }
}
