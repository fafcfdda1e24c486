//! What a run does beside its dump: retention, notices, encryption, and the actions that make no dump.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "tests"
)]

mod common;

use std::process::Command;
use std::time::{Duration, Instant};

use common::recorder::Recorder;
use common::{MariaDb, Runner, fixture};
use serde_json::{Value, json};

#[test]
fn a_good_and_a_failed_run_are_told_once_each() {
    let bot = Recorder::good();
    let runner = Runner::new(fixture())
        .set("APIURL", &bot.url)
        .set("TZ", "Asia/Shanghai");
    let done = runner.run();
    done.assert_good();
    assert!(done.report.notified);
    assert!(!done.stdout.contains("S3cr3t-token"));
    let texts = bot.texts();
    assert_eq!(texts.len(), 1);
    assert!(
        texts[0].starts_with("Backup succeeded: 127.0.0.1-") && texts[0].contains("+08:00"),
        "{texts:?}"
    );

    let bot = Recorder::good();
    let runner = Runner::new(fixture())
        .set("APIURL", &bot.url)
        .set("PASSWORD", "Wr0ng-marker")
        .spec("shop-28950870", Some("2025-01-15T10:30:00Z"), json!({}));
    for _ in 0..3 {
        runner.run().assert_failed(3, "AccessDenied", &[]);
    }
    let texts = bot.texts();
    assert_eq!(texts.len(), 1, "{texts:?}");
    assert!(
        texts[0].starts_with("Backup FAILED: MysqlBackup ns1/shop")
            && texts[0].contains("AccessDenied"),
        "{texts:?}"
    );
    assert!(!texts[0].contains("Wr0ng-marker"));
}

/// A failure is final when the run's Job is; its pods leave it to the operator, as far as that knows
/// whom to tell.
#[test]
fn what_the_operator_tells_no_attempt_tells() {
    let (bot, hook) = (Recorder::good(), Recorder::empty());
    let runner = Runner::new(fixture()).set("APIURL", &bot.url);
    let path = runner.out.path().join("url");
    std::fs::write(&path, &hook.url).unwrap();
    let secret = json!({"name": "s", "key": "k"});
    let told = |tells: Value| {
        let on = ["Success", "Failure"];
        let hook = json!({"type": "Webhook", "urlSecretKeyRef": secret, "on": on, "urlFile": path});
        json!({"notifications": [hook], "operatorTells": tells})
    };
    let heard = || (bot.texts().len(), hook.seen.lock().unwrap().len());
    let everybody = json!({"notifications": true, "apiUrl": true});
    let mut runner =
        runner
            .set("PASSWORD", "wrong")
            .spec("shop-00000001", None, told(everybody.clone()));
    for _ in 0..2 {
        let done = runner.run();
        done.assert_failed(3, "AccessDenied", &[]);
        assert!(!done.report.notified);
    }
    assert_eq!(heard(), (0, 0));
    assert_eq!(runner.files(), Vec::<String>::new());
    // A bot the operator does not see hears of it from the pod, once.
    runner = runner.spec("shop-00000002", None, told(json!({"notifications": true})));
    for _ in 0..2 {
        runner.run().assert_failed(3, "AccessDenied", &[]);
    }
    assert_eq!(heard(), (1, 0));
    runner = runner
        .set("PASSWORD", "S3cr3t-marker")
        .spec("shop-00000003", None, told(everybody));
    runner.run().assert_good();
    assert_eq!(heard(), (2, 1));
}

#[test]
fn what_was_told_goes_with_the_data() {
    let bot = Recorder::good();
    let runner = Runner::new(fixture()).set("APIURL", &bot.url);
    let runner = runner.spec("shop-00000001", None, json!({}));
    runner.run().assert_good();
    let runner = runner
        .set("PASSWORD", "wrong")
        .spec("shop-00000002", None, json!({}));
    runner.run().assert_failed(3, "AccessDenied", &[]);
    let files = runner.files();
    for own in [".told", ".failing", "~told-success", "~told-failure"] {
        assert!(files.iter().any(|f| f.ends_with(own)), "{own}: {files:?}");
    }
    let runner = action(runner, "Prune", json!({"all": true}));
    runner.run().assert_good();
    assert_eq!(runner.files(), Vec::<String>::new());
}

#[test]
fn a_time_limit_and_a_signal_are_told() {
    let db = MariaDb::start();
    db.sql(include_str!("fixtures/db_fixture.sql"));
    db.sql("create user full@'%' identified by 'S3cr3t-marker'; grant all on *.* to full@'%'");
    let _held = db.hold("lock tables shop.t write");
    let bot = Recorder::good();
    Runner::new(&db)
        .set("APIURL", &bot.url)
        .set("TIMEOUT", "3s")
        .run()
        .assert_failed(6, "Timeout", &[]);
    assert!(bot.texts()[0].contains("Timeout"));
    let bot = Recorder::good();
    let runner = Runner::new(&db).set("APIURL", &bot.url);
    let started = Instant::now();
    let child = runner.start();
    let report = runner.out.path().join("termination");
    while !std::fs::read_to_string(&report)
        .unwrap_or_default()
        .contains("Dumping")
    {
        assert!(started.elapsed() < Duration::from_secs(30));
        std::thread::sleep(Duration::from_millis(50));
    }
    Command::new("kill")
        .arg(child.id().to_string())
        .status()
        .unwrap();
    runner
        .finish(child, started)
        .assert_failed(1, "Terminated", &[]);
    assert_eq!(bot.texts().len(), 1);
    assert!(bot.texts()[0].contains("Terminated"));
}

#[test]
fn a_bot_that_hangs_or_errs_costs_a_warning_and_a_few_seconds() {
    let plain = Runner::new(fixture()).run().took;
    for (answer, word) in [
        ("never", "no answer within 3 s"),
        (
            "HTTP/1.1 500 Oops\r\ncontent-length: 0\r\n\r\n",
            "HTTP status 500",
        ),
        ("", "notice to APIURL failed"),
        (
            "HTTP/1.1 302 Found\r\nlocation: /\r\ncontent-length: 0\r\n\r\n",
            "HTTP status 302",
        ),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 32\r\n\r\n{\"code\":19001,\"msg\":\"bad token\"}",
            "code 19001",
        ),
    ] {
        let bot = Recorder::start(answer);
        let done = Runner::new(fixture()).set("APIURL", &bot.url).run();
        done.assert_good();
        assert!(
            done.report.warnings.iter().any(|w| w.contains(word)),
            "{word}: {:?}",
            done.report.warnings
        );
        assert!(!done.report.notified);
        assert!(
            done.took < plain + Duration::from_secs(8),
            "{:?} against {plain:?}",
            done.took
        );
        assert!(!done.stdout.contains("S3cr3t-token"));
    }
    let done = Runner::new(fixture())
        .set("APIURL", "http://nowhere.invalid/S3cr3t-token")
        .run();
    done.assert_good();
    assert_eq!(done.report.warnings.len(), 1, "{:?}", done.report.warnings);
}

#[test]
fn typed_receivers_hear_what_they_want() {
    let (hook, ping) = (
        Recorder::start("HTTP/1.1 204 No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"),
        Recorder::start("HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"),
    );
    let runner = Runner::new(fixture());
    let write = |name: &str, url: &str| {
        let path = runner.out.path().join(name);
        std::fs::write(&path, format!("{url}\n")).unwrap();
        path
    };
    let secret = json!({"name": "s", "key": "k"});
    let more = json!({"notifications": [
        {"type": "Webhook", "urlSecretKeyRef": secret, "events": ["Failure", "Recovery"], "urlFile": write("hook", &hook.url)},
        {"type": "Ping", "urlSecretKeyRef": secret, "on": ["Success", "Failure"], "urlFile": write("ping", &ping.url)},
        {"type": "Slack", "urlSecretKeyRef": secret, "urlFile": "/nonexistent"},
    ]});
    let bad = runner
        .set("PASSWORD", "wrong")
        .spec("shop-00000001", None, more.clone());
    bad.run().assert_failed(3, "AccessDenied", &[]);
    let good = bad
        .set("PASSWORD", "S3cr3t-marker")
        .spec("shop-00000002", None, more.clone());
    let done = good.run();
    done.assert_good();
    assert!(done.report.warnings.iter().any(|w| w.contains("Slack")));
    let again = good.spec("shop-00000003", None, more);
    again.run().assert_good();
    let events: Vec<Value> = hook
        .seen
        .lock()
        .unwrap()
        .iter()
        .map(|r| {
            serde_json::from_str::<Value>(r.split_once("\r\n\r\n").unwrap().1).unwrap()["event"]
                .clone()
        })
        .collect();
    assert_eq!(events, ["Failure", "Recovery"]);
    let paths: Vec<String> = ping
        .seen
        .lock()
        .unwrap()
        .iter()
        .map(|r| r.split(' ').nth(1).unwrap().to_owned())
        .collect();
    assert_eq!(
        paths,
        [
            "/hook/S3cr3t-token/fail",
            "/hook/S3cr3t-token",
            "/hook/S3cr3t-token"
        ]
    );
}

/// Makes an artefact look as if its run had started so many hours ago.
fn age(runner: &Runner, key: &str, hours: i64, change: impl Fn(&mut Value)) {
    let path = runner.sql_path().join(format!("{key}.json"));
    let mut manifest: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let at = crds::time::parse_rfc3339(manifest["startedAt"].as_str().unwrap()).unwrap()
        - chrono::Duration::hours(hours);
    manifest["startedAt"] = json!(crds::time::rfc3339(at));
    change(&mut manifest);
    std::fs::write(path, manifest.to_string()).unwrap();
}

fn run(runner: Runner, n: u32) -> (Runner, String) {
    let name = format!("shop-{n:08}");
    let slot = format!("2025-01-{:02}T03:00:00Z", n + 1);
    let runner = runner.spec(&name, Some(&slot), json!({}));
    runner.run().assert_good();
    let key = runner
        .artefacts()
        .into_iter()
        .find(|k| k.contains(&format!("{n:08}")))
        .unwrap();
    (runner, key)
}

#[test]
fn expired_artefacts_go_after_a_success_and_only_then() {
    let mut runner = Runner::new(fixture());
    let mut keys = vec![];
    for n in 0..4 {
        let key;
        (runner, key) = run(runner, n);
        keys.push(key);
    }
    for (key, hours) in keys.iter().zip([99, 50, 30, 1]) {
        age(&runner, key, hours, |_| {});
    }
    // One of another object, and somebody else's file: neither is this object's to remove.
    age(&runner, &keys[1], 0, |m| {
        m["object"]["name"] = json!("other")
    });
    std::fs::write(runner.sql_path().join("ns1/MysqlBackup/shop/old.sql"), "x").unwrap();
    let before = runner.artefacts();

    let failing = runner.set("EXPIREAT", "24h").set("DATABASES", "gone").spec(
        "shop-00000008",
        None,
        json!({}),
    );
    failing.run().assert_failed(3, "UnknownDatabase", &[]);
    assert_eq!(failing.artefacts(), before);

    let good = failing
        .unset("DATABASES")
        .spec("shop-00000009", None, json!({}));
    let done = good.run();
    done.assert_good();
    assert_eq!(done.report.pruned, Some(2));
    let left = good.artefacts();
    assert!(
        !left.contains(&keys[0]) && !left.contains(&keys[2]),
        "{left:?}"
    );
    assert!(
        left.contains(&keys[1])
            && left.contains(&keys[3])
            && left.iter().any(|k| k.ends_with("old.sql"))
    );
    assert!(!good.files().contains(&format!("{}.json", keys[0])));
}

#[test]
fn nothing_goes_when_the_new_dump_shrank() {
    let (runner, old) = run(Runner::new(fixture()), 0);
    age(&runner, &old, 99, |m| {
        m["rawBytes"] = json!(m["rawBytes"].as_u64().unwrap() * 3)
    });
    let runner = runner
        .set("EXPIREAT", "24h")
        .spec("shop-00000009", None, json!({}));
    let done = runner.run();
    done.assert_good();
    assert_eq!(done.report.pruned, Some(0));
    assert!(
        done.report
            .warnings
            .iter()
            .any(|w| w.contains("nothing was removed"))
    );
    assert!(runner.artefacts().contains(&old));
}

/// A key pair of Debian's age, or none where it is not installed.
fn age_keys(runner: &Runner) -> (std::path::PathBuf, String) {
    let path = runner.out.path().join("identity");
    let output = Command::new("age-keygen")
        .arg("-o")
        .arg(&path)
        .output()
        .expect("apt-get install age");
    assert!(output.status.success());
    let text = std::fs::read_to_string(&path).unwrap();
    let public = text
        .lines()
        .find_map(|l| l.strip_prefix("# public key: "))
        .unwrap()
        .to_owned();
    (path, public)
}

#[test]
fn each_codec_with_and_without_age_opens_with_debians_programs() {
    let runner = Runner::new(fixture());
    let (identity, public) = age_keys(&runner);
    let mut runner = runner;
    let plain = {
        runner = runner.spec(
            "shop-00000000",
            None,
            json!({"compression": {"type": "none"}}),
        );
        runner.run().assert_good();
        let key = runner.artefacts()[0].clone();
        runner.read(&key)
    };
    let lines = |text: &[u8]| {
        String::from_utf8_lossy(text)
            .lines()
            .filter(|l| !l.starts_with("--"))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    for (n, (type_, end, open)) in [
        ("zstd", ".sql.zst", "zstd -dc"),
        ("gzip", ".sql.gz", "gzip -dc"),
        ("none", ".sql", "cat"),
    ]
    .into_iter()
    .enumerate()
    {
        for encrypted in [false, true] {
            let mut more = json!({"compression": {"type": type_}});
            if encrypted {
                more["encryption"] = json!({"age": {"recipients": [public]}});
            }
            let run = format!("shop-{:08}", 10 * (n + 1) + usize::from(encrypted));
            runner = runner.spec(&run, None, more);
            runner.run().assert_good();
            let end = if encrypted {
                format!("{end}.age")
            } else {
                end.to_owned()
            };
            let suffix = format!("{}{end}", &run[5..]);
            let key = runner
                .artefacts()
                .into_iter()
                .find(|k| k.ends_with(&suffix))
                .unwrap_or_else(|| panic!("no {suffix}: {:?}", runner.artefacts()));
            let path = runner.sql_path().join(&key);
            let decrypt = if encrypted {
                format!("age -d -i {}", identity.display())
            } else {
                "cat".to_owned()
            };
            let output = Command::new("sh")
                .arg("-c")
                .arg(format!("{decrypt} {} | {open}", path.display()))
                .output()
                .unwrap();
            assert_eq!(lines(&output.stdout), lines(&plain), "{type_} {encrypted}");
            let stored = runner.read(&key);
            assert_eq!(encrypted, stored.starts_with(b"age-encryption.org/v1"));
        }
    }
}

fn action(runner: Runner, action: &str, options: Value) -> Runner {
    runner.spec(
        "shop-r0000001",
        None,
        json!({"action": action, "options": options}),
    )
}

#[test]
fn list_probe_and_prune() {
    let mut runner = Runner::new(fixture());
    for n in 0..3 {
        (runner, _) = run(runner, n);
    }
    let runner = action(runner, "List", Value::Null);
    let done = runner.run();
    done.assert_good();
    assert_eq!(done.stdout.matches("\"event\":\"artefact\"").count(), 3);
    assert!(done.report.message.starts_with("3 artefacts"));
    assert_eq!(done.report.artefacts.len(), 3);

    let runner = action(runner, "Probe", Value::Null);
    let before = runner.files();
    let done = runner.run();
    done.assert_good();
    assert!(
        done.report.message.contains("\"full\" sees"),
        "{}",
        done.report.message
    );
    assert_eq!(runner.files(), before);

    let runner = runner.spec(
        "shop-r2",
        None,
        json!({"action": "Prune", "options": {"dryRun": true}, "retention": {"keepLast": 1}}),
    );
    let done = runner.run();
    done.assert_good();
    assert!(
        done.report
            .message
            .starts_with("2 of 3 artefacts would be removed"),
        "{}",
        done.report.message
    );
    assert_eq!(runner.files(), before);
    assert!(done.stdout.contains("keepLast"));
    let runner = runner.spec(
        "shop-r3",
        None,
        json!({"action": "Prune", "retention": {"keepLast": 1}}),
    );
    runner.run().assert_good();
    assert_eq!(runner.artefacts().len(), 1);
    let runner = action(runner, "Prune", json!({"all": true}));
    runner.run().assert_good();
    runner.assert_nothing_left();
}

#[test]
fn verify_by_checksum() {
    let (runner, key) = run(Runner::new(fixture()), 0);
    let runner = action(runner, "Verify", json!({"run": "shop-00000000"}));
    let done = runner.run();
    done.assert_good();
    assert!(done.report.verification.unwrap().passed);
    let path = runner.sql_path().join(&key);
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let done = runner.run();
    done.assert_failed(5, "ReadBackDiffers", &["SHA-256"]);
    assert!(!done.report.verification.unwrap().passed);
    let runner = action(runner, "Verify", json!({"run": "shop-nothere"}));
    runner
        .run()
        .assert_failed(4, "ArtefactNotFound", &["shop-nothere"]);
}

#[test]
fn verify_by_restore_finds_a_row_that_was_removed() {
    let db = MariaDb::start();
    db.sql(include_str!("fixtures/db_fixture.sql"));
    db.sql("create user full@'%' identified by 'S3cr3t-marker'; grant all on *.* to full@'%'; set global event_scheduler=off");
    let runner = Runner::new(&db);
    let (identity, public) = age_keys(&runner);
    let encryption = json!({"age": {"recipients": [public]}});
    let runner = runner.spec("shop-00000000", None, json!({"encryption": encryption}));
    runner.run().assert_good();
    let key = runner.artefacts()[0].clone();
    let verify =
        json!({"action": "Verify", "options": {"mode": "Restore"}, "identityFile": identity});
    let runner = runner.spec("shop-v1", None, verify.clone());
    let done = runner.run();
    done.assert_good();
    let verification = done.report.verification.unwrap();
    assert!(
        verification.passed && verification.message.contains("all equal"),
        "{verification:?}"
    );

    // The same dump without one row, under a manifest that vouches for its bytes.
    let stored = runner.sql_path().join(&key);
    let shell = |script: String| {
        assert!(
            Command::new("sh")
                .arg("-c")
                .arg(script)
                .status()
                .unwrap()
                .success()
        )
    };
    let p = stored.display();
    shell(format!(
        "age -d -i {i} {p} | zstd -dcq | sed '/^(1,.caf/d; s/^(2,NULL,NULL/(2,NULL,NULL/' > {p}.sql && zstd -q -f {p}.sql -o {p}.z && age -r {public} -o {p}.new {p}.z && mv {p}.new {p}; rm -f {p}.sql.raw {p}.z",
        i = identity.display()
    ));
    let raw = std::fs::read(format!("{p}.sql")).unwrap();
    std::fs::remove_file(format!("{p}.sql")).unwrap();
    let sum = |path: &std::path::Path| {
        String::from_utf8(Command::new("sha256sum").arg(path).output().unwrap().stdout).unwrap()
            [..64]
            .to_owned()
    };
    let scratch = runner.out.path().join("raw");
    std::fs::write(&scratch, &raw).unwrap();
    age(&runner, &key, 0, |m| {
        m["storedBytes"] = json!(std::fs::metadata(&stored).unwrap().len());
        m["storedSha256"] = json!(sum(&stored));
        m["rawSha256"] = json!(sum(&scratch));
        m["rawBytes"] = json!(raw.len());
    });
    let done = runner.run();
    done.assert_failed(5, "RestoreDiffers", &["shop.t", "1 rows instead of 2"]);
    assert!(!done.report.verification.unwrap().passed);
}

#[test]
fn a_restore_into_another_server_under_another_name_and_not_over_what_is_there() {
    let db = fixture();
    let runner = Runner::new(db)
        .set("DATABASES", "shop")
        .spec("shop-00000000", None, json!({}));
    runner.run().assert_good();
    let target = MariaDb::start();
    target.sql("create user full@'%' identified by 'S3cr3t-marker'; grant all on *.* to full@'%' with grant option");
    let runner = runner
        .unset("DATABASES")
        .set("PORT", target.port.to_string());
    let restore = |runner: Runner, options: Value| {
        runner.spec(
            "restore-1",
            None,
            json!({"action": "Restore", "options": {"restore": options}}),
        )
    };
    let runner = restore(runner, json!({"dryRun": true}));
    let done = runner.run();
    done.assert_good();
    assert_eq!(done.report.reason, "WouldRestore");
    assert!(
        done.report
            .message
            .starts_with("would restore 2 tables with 2 rows"),
        "{}",
        done.report.message
    );
    let runner = restore(runner, json!({"run": "shop-00000000"}));
    runner.run().assert_good();
    let query = "select id, txt, hex(b), total, ts from shop.t order by id";
    assert_eq!(target.sql(query), db.sql(query));
    runner
        .run()
        .assert_failed(2, "TargetNotEmpty", &["overwrite"]);
    let runner = restore(runner, json!({"database": "shop2"}));
    runner.run().assert_good();
    assert_eq!(target.sql(&query.replace("shop.", "shop2.")), db.sql(query));
    assert_eq!(target.sql("select count(*) from shop2.v"), "2\n");
    let runner = restore(runner, json!({"overwrite": true}));
    runner.run().assert_good();
    assert_eq!(target.sql(query), db.sql(query));
    let runner = restore(runner.set("PORT", db.port.to_string()), json!({}));
    runner
        .run()
        .assert_failed(2, "TargetIsSource", &["overwrite"]);
    let runner = restore(runner, json!({"at": "2001-01-01T00:00:00Z"}));
    runner
        .run()
        .assert_failed(4, "ArtefactNotFound", &["2001-01-01"]);
}

#[test]
fn older_files_are_removed_only_by_the_pattern_that_names_them() {
    let runner = Runner::new(fixture());
    let old = std::time::SystemTime::now() - Duration::from_secs(99 * 3600);
    for name in ["all-1.sql.gz", "all-2.sql.gz", "notes.txt", "young.sql.gz"] {
        let file = std::fs::File::create(runner.sql_path().join(name)).unwrap();
        if name != "young.sql.gz" {
            file.set_modified(old).unwrap();
        }
    }
    let more = json!({"retention": {"maxAge": "24h", "adoptPattern": "*.sql.gz"}});
    let runner = runner.spec("shop-00000001", None, more);
    let done = runner.run();
    done.assert_good();
    assert_eq!(done.report.pruned, Some(2));
    let left = runner.artefacts();
    assert!(!left.iter().any(|k| k.starts_with("all-")), "{left:?}");
    assert!(
        left.contains(&"notes.txt".to_owned()) && left.contains(&"young.sql.gz".to_owned()),
        "{left:?}"
    );
}
