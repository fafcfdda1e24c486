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
    snapbox::assert_data_eq!(
        stable.join("\n"),
        snapbox::str![[r#"
Name:          shop
Kind:          MysqlBackup (batch.isekiro.com/v1)
Namespace:     prod
Schedule:      0 2 * * *  "at 02:00 every day"  (Europe/Berlin)
Next runs:     none while suspended
Suspended:     yes
Database:      mysql://db.prod:3306
Storage:       /mnt  encryption: off  retention: 24h
Environment:
  HOST: db.prod
  PORT: 3306
  USERNAME: backup
  PASSWORD: ******
  APIURL: ******
  TOKEN: <secret s, key k>
  SQLPATH: /mnt
  EXPIREAT: 24h
Last success:  <never>   consecutive failures: 0
Slots:         7 due, 5 succeeded, 1 failed, 0 skipped, 1 missed; 2 manual runs
Missed:        1 from 2026-01-03T02:00:00+01:00 to 2026-01-03T02:00:00+01:00: Outage
Last runs:     ✔ ✖   (oldest to newest)
Run:           shop-2  failed after 31s in phase "Connecting": access denied for user 'backup'@'10.1.2.3' (AccessDenied)
Job:           job/shop-2 is gone
Pods:          <none>
Events:        <none>
Hint:          correct user or password in the Secret, then: kubectl backup run-now mysqlbackup/shop --wait
"#]]
    );
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
