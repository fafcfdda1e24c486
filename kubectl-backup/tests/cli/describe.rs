//! `describe`: the whole chain, and no secret.

use serde_json::json;

use super::Config;
use super::fake::{Fake, backup, status};

fn shop() -> serde_json::Value {
    backup(
        "prod",
        "shop",
        json!({
            "schedule": "0 2 * * *", "timeZone": "Europe/Berlin", "suspend": true,
            "backupEnvs": [
                { "name": "HOST", "value": "db.prod" },
                { "name": "PORT", "value": "3306" },
                { "name": "USERNAME", "value": "backup" },
                { "name": "PASSWORD", "value": "S3cr3t-marker" },
                { "name": "APIURL", "value": "https://open.feishu.cn/open-apis/bot/v2/hook/S3cr3t-marker" },
                { "name": "TOKEN", "valueFrom": { "secretKeyRef": { "name": "s", "key": "k" } } },
                { "name": "SQLPATH", "value": "/mnt" },
                { "name": "EXPIREAT", "value": "24h" },
            ],
        }),
        json!({
            "observedGeneration": 1,
            "schedule": { "text": "0 2 * * *", "timeZone": "Europe/Berlin" },
            "totals": { "due": 7, "succeeded": 5, "failed": 1, "skipped": 0, "missed": 1, "manual": 2 },
            "missed": [{ "from": "2026-01-03T01:00:00Z", "to": "2026-01-03T01:00:00Z", "count": 1, "reason": "Outage" }],
            "runs": [
                { "name": "shop-2", "trigger": "Schedule", "result": "Failed", "reason": "AccessDenied",
                  "message": "access denied for user 'backup'@'10.1.2.3'", "phase": "Connecting",
                  "startTime": "2026-01-04T01:00:00Z", "completionTime": "2026-01-04T01:00:31Z" },
                { "name": "shop-1", "trigger": "Schedule", "result": "Succeeded",
                  "startTime": "2026-01-02T01:00:00Z", "completionTime": "2026-01-02T01:04:12Z" },
            ],
        }),
    )
}

#[test]
fn the_chain_with_one_piece_of_advice() {
    let fake = Fake::start();
    fake.put(shop());
    let ran = Config::new(&fake).run(&["describe", "shop"]).ok();
    assert!(!ran.out.contains("S3cr3t"), "{}", ran.out);
    let stable: Vec<&str> = ran.out.lines().filter(|l| !l.contains(" ago")).collect();
    insta::assert_snapshot!(stable.join("\n"), @r"
    ");
}

#[test]
fn what_may_not_be_read_is_a_line() {
    let fake = Fake::start();
    fake.put(shop());
    fake.deny_path("/events", 403, status(403, "Forbidden", "no", ""));
    let ran = Config::new(&fake).run(&["describe", "shop"]).ok();
    assert!(
        ran.out.contains("(no permission to list events)"),
        "{}",
        ran.out
    );
}
