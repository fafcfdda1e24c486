//! What is too large to be read: an object, and a request.

use crds::labels::{REQUEST_PREFIX, TOO_LARGE};
use serde_json::{Value, json};

use super::driver::{Caches, OBJECT, Try};
use super::scenarios;
use crds::time::parse_rfc3339;

fn story() -> super::Scenario {
    let mut story = scenarios::all()
        .into_iter()
        .find(|s| s.name == "slots")
        .unwrap();
    story.spec["schedule"] = json!("* * * * *");
    story
}

fn object(process: &Try) -> Value {
    process.state().get("mysqlbackups", OBJECT).unwrap()
}

fn accepted(process: &Try) -> Value {
    let status = object(process)["status"].clone();
    let all = status["conditions"].as_array().cloned().unwrap_or_default();
    all.into_iter().find(|c| c["type"] == "Accepted").unwrap()
}

/// As the reader of the API server's answers gives it: see `answers`.
#[tokio::test(start_paused = true)]
async fn o4_an_object_that_is_too_large_says_so_once_and_starts_nothing() {
    let mut process = Try::new(&story(), None, Caches::Fresh);
    process.state().change("mysqlbackups", OBJECT, |o| {
        o["metadata"]["annotations"] = json!({TOO_LARGE: "1200000"});
        o["spec"].take();
    });
    process.work().await;
    let said = accepted(&process);
    assert_eq!(
        (&said["status"], &said["reason"]),
        (&json!("False"), &json!("Unreadable"))
    );
    let message = said["message"].as_str().unwrap();
    assert!(
        message.contains("too large") && message.contains("1172 KiB"),
        "{message}"
    );
    let calls = process.state().calls;
    process
        .pass_to(parse_rfc3339("2025-01-15T10:05:30Z").unwrap())
        .await;
    process.work().await;
    assert!(process.state().created.is_empty());
    assert_eq!(process.state().calls, calls);
    // Shortened, it runs.
    process.state().change("mysqlbackups", OBJECT, |o| {
        o["metadata"]["annotations"].take();
        o["spec"] = json!({"schedule": "* * * * *", "image": "dump:v1"});
    });
    process.work().await;
    assert_eq!(accepted(&process)["status"], "True");
    process
        .pass_to(parse_rfc3339("2025-01-15T10:06:00Z").unwrap())
        .await;
    process.work().await;
    assert!(!process.state().created.is_empty());
}

#[tokio::test(start_paused = true)]
async fn o11_a_request_beyond_8_kib_is_refused_with_words_and_taken_off() {
    let key = format!("{REQUEST_PREFIX}0123456789");
    let mut process = Try::new(&story(), None, Caches::Fresh);
    process.state().change("mysqlbackups", OBJECT, |o| {
        o["metadata"]["annotations"] = json!({
            &key: "x".repeat(9000),
            "other.io/long": "y".repeat(9000),
        });
    });
    process.work().await;
    let seen = object(&process);
    let answer = &seen["status"]["requests"][0];
    assert_eq!(answer["state"], "Refused", "{seen}");
    assert!(
        answer["message"].as_str().unwrap().contains("8192 bytes"),
        "{answer}"
    );
    assert_eq!(
        seen["metadata"]["annotations"].as_object().unwrap().len(),
        1
    );
    let calls = process.state().calls;
    process.work().await;
    assert_eq!(process.state().calls, calls);
}
