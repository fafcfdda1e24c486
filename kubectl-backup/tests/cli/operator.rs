//! An operator that is dead, without rights, or not to be asked: every verb says it.

use axum::http::Method;
use serde_json::{Value, json};

use super::Config;
use super::fake::{Fake, backup, status};

fn at(seconds: i64) -> String {
    crds::time::rfc3339(chrono::Utc::now() + chrono::Duration::seconds(seconds))
}

/// A minutely object that was well until its next slot, so many seconds ago.
fn minutely(late: i64) -> Value {
    let run = json!({
        "name": "shop-1", "trigger": "Schedule", "result": "Succeeded",
        "slot": at(-late - 60), "startTime": at(-late - 60), "completionTime": at(-late - 55),
    });
    let ready = json!([{ "type": "Ready", "status": "True", "reason": "AsScheduled", "message": "",
        "lastTransitionTime": at(-3600) }]);
    backup(
        "prod",
        "shop",
        json!({ "schedule": "* * * * *" }),
        json!({
            "observedGeneration": 1, "activeCount": 0, "lastResult": "Succeeded",
            "lastSuccessfulTime": at(-late - 55), "nextScheduleTime": at(-late), "runs": [run],
            "conditions": ready, "controller": "backup-system/backup-operator",
            "schedule": { "text": "* * * * *", "timeZone": "UTC" },
        }),
    )
}

const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/backup-system/leases/backup-operator";

fn lease(holder: &str, renewed: i64) -> Value {
    let renewed = chrono::Utc::now() + chrono::Duration::seconds(renewed);
    json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": { "name": "backup-operator", "namespace": "backup-system" },
        "spec": { "holderIdentity": holder, "leaseDurationSeconds": 15,
            "renewTime": renewed.to_rfc3339_opts(chrono::SecondsFormat::Micros, true) },
    })
}

#[test]
fn u6_a_slot_that_nobody_starts_is_said_everywhere() {
    let fake = Fake::start();
    let config = Config::new(&fake);
    // Seconds since the slot, the status of `health`, and what it says.
    for (late, code, state) in [(10, 0, "OK"), (50, 1, "WARNING"), (150, 2, "CRITICAL")] {
        fake.put(minutely(late));
        let overdue = code > 0;
        let health = config.run(&["health"]);
        assert_eq!(health.code, Some(code), "{late}: {health:?}");
        assert!(health.out.starts_with(state), "{}", health.out);
        assert_eq!(
            health.out.contains("was not started"),
            overdue,
            "{}",
            health.out
        );
        let listed = config.run(&["list", "--no-headers"]).ok().out;
        let words: Vec<&str> = listed.split_whitespace().collect();
        assert_eq!(words.contains(&"Overdue"), overdue, "{listed}");
        // No slot is shown as if it came next.
        assert_eq!(words.contains(&"overdue"), overdue, "{listed}");
        let page = config.run(&["describe", "shop"]).ok().out;
        let next = page.lines().find(|l| l.starts_with("Next runs:")).unwrap();
        assert_eq!(
            page.contains(" Overdue, newest good run"),
            overdue,
            "{page}"
        );
        assert_eq!(
            next.contains("none comes while no operator starts it"),
            overdue,
            "{next}"
        );
        assert_eq!(
            page.ends_with(
                "Hint:          no operator acts on it; find out why: kubectl backup doctor\n"
            ),
            overdue,
            "{page}"
        );
        let all = config.run(&[]).ok().out;
        assert_eq!(
            all.contains("Not good: mysqlbackup/shop (overdue)\n"),
            overdue,
            "{all}"
        );
    }
}

#[test]
fn u6_doctor_asks_the_operator_and_looks_at_its_lease_and_rights() {
    let fake = Fake::start();
    fake.put(minutely(150));
    fake.operate(|_| None);
    fake.path(LEASE, lease("operator-1", -3610));
    fake.items(
        "/apis/apps/v1/deployments",
        json!([{
            "metadata": { "name": "backup-operator", "namespace": "backup-system" },
            "spec": { "selector": {}, "template": { "spec": {
                "serviceAccountName": "operator", "containers": [{ "name": "operator", "image": "x" }],
            } } },
            "status": { "readyReplicas": 1 },
        }]),
    );
    fake.path(
        "/apis/authorization.k8s.io/v1/subjectaccessreviews",
        json!({ "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "metadata": {},
            "spec": {}, "status": { "allowed": false } }),
    );
    let ran = Config::new(&fake).run(&["doctor"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    for line in [
        "✖ operator: lease backup-system/backup-operator is held by operator-1 and was not renewed for 60m: no operator leads\n",
        "✖ operator: system:serviceaccount:backup-system:operator may not list mysqlbackups, ",
        "✖ operator: does not answer: nothing came within 10s of what mysqlbackup/shop asked it\n    fix: kubectl -n backup-system logs deployment/backup-operator\n",
        "✖ mysqlbackup/shop: newest good run ",
    ] {
        assert!(ran.out.contains(line), "{line}\n{}", ran.out);
    }
    // Nobody acts on the question later.
    let notes = &fake.get("prod", "shop").unwrap()["metadata"]["annotations"];
    assert!(
        notes.as_object().is_none_or(serde_json::Map::is_empty),
        "{notes}"
    );
}

#[test]
fn u6_doctor_says_what_it_could_not_ask() {
    let fake = Fake::start();
    fake.put(minutely(10));
    fake.deny(Method::PATCH, 403, status(403, "Forbidden", "no", "shop"));
    fake.path(LEASE, lease("", -1));
    let ran = Config::new(&fake).run(&["doctor"]);
    for line in [
        "- operator: not asked: you may not patch mysqlbackups\n",
        "✖ operator: lease backup-system/backup-operator is held by nobody: no operator leads\n",
    ] {
        assert!(ran.out.contains(line), "{line}\n{}", ran.out);
    }
    let empty = Fake::start();
    let ran = Config::new(&empty).run(&["doctor"]);
    assert!(
        ran.out
            .contains("- operator: not asked: there is no object here to ask it by\n"),
        "{}",
        ran.out
    );
}

#[test]
fn u7_a_claim_and_a_storage_that_are_gone() {
    for (destination, end, kind, what) in [
        (
            json!({ "volume": { "persistentVolumeClaim": { "claimName": "backups" } } }),
            "/persistentvolumeclaims/backups",
            "persistentvolumeclaims",
            "volume claim backups is not there",
        ),
        (
            json!({ "storageRef": { "name": "nightly" } }),
            "/storages/nightly",
            "storages",
            "Storage nightly is not there",
        ),
    ] {
        let fake = Fake::start();
        let mut object = minutely(10);
        object["spec"]["destination"] = destination;
        fake.put(object);
        let text = format!("{kind} not found");
        fake.deny_path(end, 404, status(404, "NotFound", &text, "x"));
        let config = Config::new(&fake);
        let told = config.run(&["doctor"]);
        assert!(
            told.out
                .contains(&format!("✖ mysqlbackup/shop: {what}\n    fix: ")),
            "{}",
            told.out
        );
        let page = config.run(&["describe", "shop"]).ok().out;
        assert!(
            page.contains(&format!("✖ Active, {what}\n"))
                && page.contains(&format!("Missing:       {what}\n")),
            "{page}"
        );
    }
}
