//! What the operator saw is passed on to those who want to hear of it, each once; and the marks of
//! what was told do not pile up.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "tests"
)]

mod common;

use common::recorder::Recorder;
use common::{Runner, fixture};
use serde_json::{Value, json};

fn secret() -> Value {
    json!({"name": "s", "key": "k"})
}

/// A runner that is given this notice and these receivers, and nothing to back up.
fn told(event: &str, run: &str, receivers: &[(&str, &str, Value)]) -> Runner {
    let mut runner = Runner::bare();
    let mut notifications = vec![];
    for (i, (type_, url, on)) in receivers.iter().enumerate() {
        let path = runner.out.path().join(format!("url-{i}"));
        if !url.is_empty() {
            std::fs::write(&path, format!("{url}\n")).unwrap();
        }
        notifications
            .push(json!({"type": type_, "urlSecretKeyRef": secret(), "on": on, "urlFile": path}));
    }
    let notice = json!({
        "event": event, "run": run, "slot": "2025-01-15T10:30:00Z", "reason": "OOMKilled",
        "message": "the container used more memory than its limit; raise resources.limits.memory",
    });
    runner = runner.set("TZ", "Asia/Shanghai");
    let more = json!({"action": "Notify", "notifications": notifications, "notice": notice});
    runner.spec("shop-n00000001", None, more)
}

fn bodies(recorder: &Recorder) -> Vec<Value> {
    let seen = recorder.seen.lock().unwrap();
    let body = |r: &String| serde_json::from_str(r.split_once("\r\n\r\n").unwrap().1).unwrap();
    seen.iter().map(body).collect()
}

#[test]
fn every_receiver_of_the_event_hears_it_in_its_own_form() {
    let (bot, hook, ping, other) = (
        Recorder::good(),
        Recorder::empty(),
        Recorder::empty(),
        Recorder::empty(),
    );
    let runner = told(
        "Failure",
        "shop-28950870",
        &[
            ("Feishu", &bot.url, json!([])),
            ("Webhook", &hook.url, json!(["Failure", "Missed"])),
            ("Ping", &ping.url, json!(["Failure"])),
            ("Webhook", &other.url, json!(["Success", "Overdue"])),
        ],
    );
    let done = runner.run();
    done.assert_good();
    assert!(done.report.notified);
    assert!(!done.stdout.contains("S3cr3t-token"));
    assert_eq!(
        bot.texts(),
        [
            "Backup FAILED: MysqlBackup ns1/shop\nrun: shop-28950870\nreason: OOMKilled\nthe container used more memory than its limit; raise resources.limits.memory\nslot: 2025-01-15T18:30:00+08:00"
        ]
    );
    let body = bodies(&hook).remove(0);
    assert_eq!(body["event"], "Failure");
    assert_eq!(body["object"]["name"], "shop");
    assert_eq!(body["slot"], "2025-01-15T10:30:00Z");
    assert_eq!(body["report"]["run"], "shop-28950870");
    assert_eq!(body["report"]["good"], false);
    assert_eq!(body["report"]["reason"], "OOMKilled");
    let seen = ping.seen.lock().unwrap();
    assert!(
        seen[0].starts_with("GET /hook/S3cr3t-token/fail "),
        "{seen:?}"
    );
    assert!(other.seen.lock().unwrap().is_empty());
}

/// Of binary logs: bad news and good.
#[test]
fn a_gap_and_its_end_are_told_as_what_they_are() {
    for (event, title, good, path) in [
        (
            "Gap",
            "Backup GAP in binary logs: MysqlBackup ns1/shop",
            false,
            "/fail",
        ),
        (
            "Recovered",
            "Backup binary logs complete again: MysqlBackup ns1/shop",
            true,
            "",
        ),
    ] {
        let (bot, hook, ping) = (Recorder::good(), Recorder::empty(), Recorder::empty());
        let all = json!(["Gap", "Recovered"]);
        let runner = told(
            event,
            "",
            &[
                ("Feishu", &bot.url, all.clone()),
                ("Webhook", &hook.url, all.clone()),
                ("Ping", &ping.url, all),
            ],
        );
        runner.run().assert_good();
        assert_eq!(bot.texts()[0].lines().next(), Some(title));
        assert_eq!(bodies(&hook)[0]["report"]["good"], good, "{event}");
        let seen = ping.seen.lock().unwrap();
        let wanted = format!("GET /hook/S3cr3t-token{path} ");
        assert!(seen[0].starts_with(&wanted), "{seen:?}");
    }
}

/// A notification of one webhook with a header whose value is in this file.
fn with_headers(runner: Runner, url: &str, token: &std::path::Path) -> Runner {
    let path = runner.out.path().join("url");
    std::fs::write(&path, url).unwrap();
    let headers = json!([
        {"name": "Authorization", "valueSecretKeyRef": secret()},
        {"name": "X-Team", "value": "ops"},
        {"name": "content-type", "value": "application/x-backup"},
    ]);
    let receivers = json!([{
        "type": "Webhook", "urlSecretKeyRef": secret(), "urlFile": path, "method": "PUT", "headers": headers,
        "headerFiles": [token, "", ""], "events": ["Success"],
    }]);
    runner.spec("shop-00000001", None, json!({"notifications": receivers}))
}

#[test]
fn a_webhook_is_asked_by_the_method_and_with_the_headers_that_are_set() {
    let hook = Recorder::empty();
    let runner = Runner::new(fixture());
    let token = runner.out.path().join("token");
    std::fs::write(&token, "Bearer S3cr3t-marker\n").unwrap();
    let done = with_headers(runner, &hook.url, &token).run();
    done.assert_good();
    assert!(done.report.warnings.is_empty(), "{:?}", done.report);
    assert!(!done.stdout.contains("S3cr3t-marker"), "{}", done.stdout);
    let seen = hook.seen.lock().unwrap().remove(0);
    let (head, _) = seen.split_once("\r\n\r\n").unwrap();
    let lines: Vec<String> = head.lines().skip(1).map(str::to_lowercase).collect();
    assert!(head.starts_with("PUT /hook/S3cr3t-token "), "{head}");
    let all = |name: &str| -> Vec<&String> {
        let with = |line: &&String| line.starts_with(&format!("{name}: "));
        lines.iter().filter(with).collect()
    };
    assert_eq!(
        all("authorization"),
        ["authorization: bearer s3cr3t-marker"]
    );
    assert_eq!(all("x-team"), ["x-team: ops"]);
    // In place of its own, not beside it.
    assert_eq!(all("content-type"), ["content-type: application/x-backup"]);
}

/// As one whose URL is not there: a warning, and nothing is sent without what lets it in.
#[test]
fn a_header_whose_secret_is_not_there_is_a_warning() {
    let hook = Recorder::empty();
    let runner = Runner::new(fixture());
    let token = runner.out.path().join("nothing");
    let done = with_headers(runner, &hook.url, &token).run();
    done.assert_good();
    let warned = done.report.warnings.join("\n");
    let words = [
        "notifications[0]",
        "header Authorization",
        "check that the Secret",
    ];
    assert!(words.iter().all(|w| warned.contains(w)), "{warned}");
    assert!(hook.seen.lock().unwrap().is_empty());
}

#[test]
fn missed_and_overdue_have_words_of_their_own_and_are_bad_news() {
    for (event, title) in [("Missed", "MISSED"), ("Overdue", "OVERDUE")] {
        let (bot, ping) = (Recorder::good(), Recorder::empty());
        let on = json!([event]);
        told(
            event,
            "",
            &[("Feishu", &bot.url, on.clone()), ("Ping", &ping.url, on)],
        )
        .run()
        .assert_good();
        let text = bot.texts().remove(0);
        let start = format!("Backup {title}: MysqlBackup ns1/shop\nreason: ");
        assert!(text.starts_with(&start), "{text}");
        assert!(ping.seen.lock().unwrap()[0].contains("/fail "));
    }
}

#[test]
fn a_receiver_that_does_not_take_it_fails_the_notice_and_is_asked_once() {
    let (good, bad) = (
        Recorder::good(),
        Recorder::start("HTTP/1.1 500 Oops\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"),
    );
    let runner = told(
        "Failure",
        "shop-28950870",
        &[
            ("Feishu", &good.url, json!([])),
            ("Feishu", &bad.url, json!([])),
            ("Slack", "", json!([])),
        ],
    );
    let words = [
        "notifications[1]",
        "HTTP status 500",
        "notifications[2]",
        "check that the Secret",
    ];
    let done = runner.run();
    done.assert_failed(1, "NotificationFailed", &words);
    assert!(!done.stdout.contains("S3cr3t-token"));
    assert_eq!((good.texts().len(), bad.texts().len()), (1, 1));
}

#[test]
fn a_receiver_nobody_could_connect_to_is_tried_again() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/S3cr3t-token", free.local_addr().unwrap());
    drop(free);
    let done = told("Failure", "r", &[("Webhook", &url, json!([]))]).run();
    done.assert_failed(1, "NotificationFailed", &["refused"]);
    // The pauses between its tries.
    assert!(
        done.took >= std::time::Duration::from_secs(7),
        "{:?}",
        done.took
    );
    assert!(!done.stdout.contains("S3cr3t-token"));
}

#[test]
fn a_good_run_after_a_failure_the_operator_saw_is_a_recovery() {
    let hook = Recorder::empty();
    let runner = Runner::new(fixture());
    let path = runner.out.path().join("url");
    std::fs::write(&path, &hook.url).unwrap();
    let receivers = json!([{"type": "Webhook", "urlSecretKeyRef": secret(), "urlFile": path}]);
    let more = json!({"notifications": receivers, "afterFailure": true});
    let runner = runner.spec("shop-00000001", None, more);
    runner.run().assert_good();
    assert_eq!(bodies(&hook).remove(0)["event"], "Recovery");
}

#[test]
fn marks_of_what_was_told_stay_few() {
    let bot = Recorder::good();
    let mut runner = Runner::new(fixture())
        .set("APIURL", &bot.url)
        .set("PASSWORD", "wrong");
    for n in 0..24 {
        runner = runner.spec(&format!("shop-{n:08}"), None, json!({}));
        runner.run().assert_failed(3, "AccessDenied", &[]);
    }
    let files = runner.files();
    let marks: Vec<&String> = files
        .iter()
        .filter(|f| f.contains("~told-failure"))
        .collect();
    assert_eq!(marks.len(), 20, "{marks:?}");
    assert!(marks.iter().all(|m| !m.contains("shop-00000003~")));
    // A retry of a recent run stays silent.
    runner.run().assert_failed(3, "AccessDenied", &[]);
    assert_eq!(bot.texts().len(), 24);
    // A list somebody else wrote removes nothing but marks.
    let directory = runner.sql_path().join("ns1/MysqlBackup/shop");
    std::fs::write(directory.join("keep~told-failure"), "").unwrap();
    let list = "../../x/keep~told-failure\nkeep~other\n".repeat(30);
    std::fs::write(directory.join(".told"), list).unwrap();
    runner = runner.spec("shop-00000099", None, json!({}));
    runner.run().assert_failed(3, "AccessDenied", &[]);
    assert!(directory.join("keep~told-failure").exists());
    let list = std::fs::read_to_string(directory.join(".told")).unwrap();
    assert_eq!(list, "shop-00000099~told-failure");
}
