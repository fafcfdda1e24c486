#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
//! Counts are worked out by hand from a daily slot at 02:00; pages are snapshots.

use serde_json::{Value, json};

use super::days::Outcome;
use super::*;
use crate::kind::{GOBACKUP, Kind, MYSQL, RESTORE};
use crate::view::table::Look;

fn at(text: &str) -> DateTime<Utc> {
    parse_rfc3339(text).unwrap()
}

fn now() -> DateTime<Utc> {
    at("2026-09-11T12:00:00Z")
}

/// Ten days: slots at 02:00 of the 2nd to the 11th.
fn period() -> Period {
    Period {
        from: at("2026-09-01T12:00:00Z"),
        until: now(),
    }
}

fn object(kind: &'static Kind, value: Value) -> Object {
    Object {
        kind,
        object: serde_json::from_value(value).unwrap(),
    }
}

fn mysql(spec: Value, status: Value) -> Object {
    let meta = json!({ "name": "shop", "namespace": "prod", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z" });
    object(
        &MYSQL,
        json!({ "metadata": meta, "spec": spec, "status": status }),
    )
}

fn of(objects: &[Object], restores: &[Object], period: Period, now: DateTime<Utc>) -> Audit {
    audit(Inputs {
        objects,
        restores,
        whole: true,
        namespace: Some("prod"),
        left_out: vec![],
        period,
        zone: Zone::Schedule,
        now,
    })
}

/// The run of a day's slot.
fn run(day: u32, result: &str, reason: &str) -> Value {
    json!({
        "name": format!("shop-{day}"), "trigger": "Schedule", "result": result, "reason": reason,
        "slot": format!("2026-09-{day:02}T02:00:00Z"), "startTime": format!("2026-09-{day:02}T02:00:05Z"),
        "completionTime": format!("2026-09-{day:02}T02:04:14Z"),
    })
}

/// Good runs of these days, newest first.
fn good(days: std::ops::RangeInclusive<u32>) -> Vec<Value> {
    days.rev()
        .map(|day| run(day, "Succeeded", "Completed"))
        .collect()
}

fn missed(from: &str, to: &str, count: i64, reason: &str) -> Value {
    json!({ "from": format!("2026-{from}T02:00:00Z"), "to": format!("2026-{to}T02:00:00Z"), "count": count, "reason": reason })
}

fn status(runs: Vec<Value>, missed: Vec<Value>) -> Value {
    json!({
        "observedGeneration": 1,
        "schedule": { "text": "0 2 * * *", "timeZone": "UTC", "since": "2026-01-01T00:00:00Z", "anchor": "2026-01-01T00:00:00Z" },
        "accountedUntil": "2026-09-11T02:00:00Z", "runs": runs, "missed": missed,
    })
}

fn daily() -> Value {
    json!({ "schedule": "0 2 * * *" })
}

/// Status, then due, outcomes that are not 0, whether all is known, and since when.
type Case = (&'static str, Value, i64, &'static str, bool, &'static str);

fn with(mut status: Value, changes: &[(&str, Value)]) -> Value {
    for (field, value) in changes {
        status[*field] = value.clone();
    }
    status
}

#[test]
fn each_slot_of_the_period_is_counted_once_or_unknown() {
    let begin = "2026-09-01T12:00:00Z";
    let replaced = |day: u32, result: &str, reason: &str| {
        let mut runs = good(2..=11);
        runs[11 - day as usize] = run(day, result, reason);
        runs
    };
    let mut edited = status(good(2..=11), vec![]);
    edited["schedule"]["since"] = "2026-09-06T00:00:00Z".into();
    let mut books_of_all = replaced(5, "Skipped", "ConcurrencyForbid");
    books_of_all.retain(|run| run["name"] != "shop-4");
    let cases: Vec<Case> = vec![
        (
            "all good",
            status(good(1..=11), vec![]),
            10,
            "10 succeeded",
            true,
            begin,
        ),
        (
            "longer than history",
            status(good(8..=11), vec![]),
            10,
            "4 succeeded, 6 unknown",
            false,
            "2026-09-08T02:00:00Z",
        ),
        (
            "history is gone",
            status(vec![], vec![]),
            10,
            "10 unknown",
            false,
            "",
        ),
        (
            "a hole in the history",
            status([good(8..=11), good(2..=5)].concat(), vec![]),
            10,
            "8 succeeded, 2 unknown",
            false,
            "2026-09-08T02:00:00Z",
        ),
        (
            "an outage",
            status(
                [good(8..=11), good(2..=4)].concat(),
                vec![missed("09-05", "09-07", 3, "Outage")],
            ),
            10,
            "7 succeeded, 3 missed",
            true,
            begin,
        ),
        (
            "an outage that began before",
            status(good(4..=11), vec![missed("08-28", "09-03", 7, "Outage")]),
            10,
            "8 succeeded, 2 missed",
            true,
            begin,
        ),
        (
            "a suspension that has ended",
            status(
                [good(8..=11), good(2..=4)].concat(),
                vec![missed("09-05", "09-07", 3, "Suspended")],
            ),
            10,
            "7 succeeded, 3 suspended",
            true,
            begin,
        ),
        (
            "a suspension that lasts",
            with(
                status(good(2..=7), vec![]),
                &[
                    ("accountedUntil", json!("2026-09-07T02:00:00Z")),
                    ("suspendedSince", json!("2026-09-08T00:00:00Z")),
                ],
            ),
            10,
            "6 succeeded, 4 suspended",
            true,
            begin,
        ),
        (
            "an operator that is gone",
            with(
                status(good(2..=7), vec![]),
                &[("accountedUntil", json!("2026-09-07T02:00:00Z"))],
            ),
            10,
            "6 succeeded, 4 pending",
            true,
            begin,
        ),
        (
            "runs lie within that are no longer listed",
            status(good(9..=11), vec![missed("09-02", "09-08", 3, "Outage")]),
            10,
            "3 succeeded, 3 missed, 4 unknown",
            false,
            "2026-09-09T02:00:00Z",
        ),
        (
            "a skipped run is listed twice",
            status(
                books_of_all,
                vec![
                    missed("09-05", "09-05", 1, "ConcurrencyForbid"),
                    missed("09-04", "09-04", 1, "SkippedByUser"),
                ],
            ),
            10,
            "8 succeeded, 2 skipped",
            true,
            begin,
        ),
        (
            "too late",
            status(replaced(5, "Skipped", "DeadlineExceeded"), vec![]),
            10,
            "9 succeeded, 1 missed",
            true,
            begin,
        ),
        (
            "failed",
            status(replaced(5, "Failed", "AccessDenied"), vec![]),
            10,
            "9 succeeded, 1 failed",
            true,
            begin,
        ),
        (
            "cancelled",
            status(replaced(5, "Failed", "Cancelled"), vec![]),
            10,
            "9 succeeded, 1 ended",
            true,
            begin,
        ),
        (
            "under way",
            status(replaced(11, "Running", ""), vec![]),
            10,
            "9 succeeded, 1 open",
            true,
            begin,
        ),
        (
            "the schedule was edited",
            edited,
            6,
            "6 succeeded",
            false,
            "2026-09-06T00:00:00Z",
        ),
        (
            "no operator has seen it",
            json!({}),
            10,
            "10 pending",
            true,
            begin,
        ),
    ];
    for (name, status, due, words, complete, since) in cases {
        let made = of(&[mysql(daily(), status)], &[], period(), now());
        let item = &made.items[0];
        let slots = item.slots.unwrap();
        assert_eq!((slots.due, slots.words().as_str()), (due, words), "{name}");
        let known = item.known_since.map(|at| rfc3339(at.0));
        assert_eq!(
            (item.complete, known.unwrap_or_default().as_str()),
            (complete, since),
            "{name}"
        );
        assert_eq!(made.summary.incomplete, usize::from(!complete), "{name}");
        // Days say the same, where it is known which slots were meant.
        let mut sum = Slots::default();
        item.days.iter().for_each(|day| sum.add(&day.slots));
        let former = i64::from(name == "the schedule was edited") * 4;
        if name != "runs lie within that are no longer listed" {
            sum.due -= former;
            sum.succeeded -= former;
            assert_eq!(sum, slots, "{name}");
        }
    }
}

#[test]
fn what_came_before_an_object_is_not_missing() {
    let mut object = mysql(daily(), json!({}));
    object.object.metadata.creation_timestamp =
        Some(crds::time::to_k8s(at("2026-09-09T00:00:00Z")));
    let made = of(&[object], &[], period(), now());
    let item = &made.items[0];
    assert_eq!(item.slots.unwrap().words(), "3 pending");
    assert_eq!(item.slots_since, Some(Moment(at("2026-09-09T00:00:00Z"))));
    assert!(item.complete);
    let outcomes: Vec<Outcome> = item.days.iter().map(|day| day.outcome).collect();
    let want = [[Outcome::NotDue; 8].as_slice(), &[Outcome::Open; 3]].concat();
    assert_eq!(outcomes, want);
}

#[test]
fn an_object_without_a_schedule_has_runs_and_no_slots() {
    let immediate = json!({ "name": "once", "trigger": "Immediate", "result": "Succeeded", "startTime": "2026-09-03T08:00:00Z", "completionTime": "2026-09-03T08:01:00Z" });
    let listed = |manual: i64| {
        let status =
            json!({ "observedGeneration": 1, "runs": [immediate], "totals": { "manual": manual } });
        let made = of(&[mysql(json!({}), status)], &[], period(), now());
        let item = made.items[0].clone();
        assert_eq!(
            (item.slots, item.schedule.is_none(), item.runs.len()),
            (None, true, 1)
        );
        item
    };
    assert!(listed(1).complete);
    let item = listed(3);
    assert!(!item.complete && item.known_since.is_none());
    let days: Vec<_> = item.days.iter().filter(|day| day.manual > 0).collect();
    assert_eq!(
        (days.len(), days[0].date.to_string(), days[0].outcome),
        (1, "2026-09-03".into(), Outcome::Good)
    );
}

/// In Berlin clocks go back from 03:00 to 02:00 on 2026-10-25.
#[test]
fn slots_and_days_are_of_the_schedules_zone() {
    let of_policy = |policy: &str| {
        let spec =
            json!({ "schedule": "30 2 * * *", "timeZone": "Europe/Berlin", "dstPolicy": policy });
        let mut status = status(vec![], vec![]);
        status["schedule"]["text"] = "30 2 * * *".into();
        status["schedule"]["timeZone"] = "Europe/Berlin".into();
        let period = Period {
            from: at("2026-10-23T22:00:00Z"),
            until: at("2026-10-26T23:00:00Z"),
        };
        of(
            &[mysql(spec, status)],
            &[],
            period,
            at("2026-10-27T00:00:00Z"),
        )
    };
    let days = |made: &Audit| -> Vec<(String, i64)> {
        let days = made.items[0].days.iter();
        days.map(|day| (day.date.to_string(), day.slots.due))
            .collect()
    };
    let want = |second: i64| {
        [("2026-10-24", 1), ("2026-10-25", second), ("2026-10-26", 1)]
            .map(|(day, due)| (day.to_owned(), due))
    };
    assert_eq!(days(&of_policy("Kubernetes")), want(2));
    assert_eq!(days(&of_policy("Once")), want(1));
}

#[test]
fn a_day_has_the_worst_of_its_outcomes() {
    let hourly = |hour: u32, result: &str, reason: &str| json!({ "name": format!("h{hour}"), "trigger": "Schedule", "result": result, "reason": reason, "slot": format!("2026-09-10T{hour:02}:00:00Z") });
    let of_day = |runs: Vec<Value>, missed: Value| {
        let mut status = status(runs, vec![]);
        status["schedule"]["text"] = "0 0-3 * * *".into();
        status["missed"] = missed;
        let made = of(
            &[mysql(json!({ "schedule": "0 0-3 * * *" }), status)],
            &[],
            period(),
            now(),
        );
        let day = made.items[0]
            .days
            .iter()
            .find(|d| d.date.to_string() == "2026-09-10")
            .cloned();
        day.unwrap()
    };
    let all = |last: Value| {
        let mut runs: Vec<Value> = (0..3).map(|hour| hourly(hour, "Succeeded", "")).collect();
        runs.push(last);
        runs
    };
    let mut unverified = hourly(3, "Succeeded", "");
    unverified["verification"] =
        json!({ "mode": "Restore", "passed": false, "time": "2026-09-10T03:10:00Z" });
    for (last, outcome) in [
        (hourly(3, "Succeeded", ""), Outcome::Good),
        (hourly(3, "Running", ""), Outcome::Open),
        (hourly(3, "Skipped", "ConcurrencyForbid"), Outcome::Skipped),
        (hourly(3, "Failed", "Cancelled"), Outcome::Skipped),
        (hourly(3, "Skipped", "DeadlineExceeded"), Outcome::Missed),
        (hourly(3, "Failed", "NoSpace"), Outcome::Failed),
        (unverified, Outcome::Failed),
    ] {
        let day = of_day(all(last.clone()), json!([]));
        assert_eq!(day.outcome, outcome, "{last}");
    }
    let gone = of_day(
        (0..3).map(|hour| hourly(hour, "Succeeded", "")).collect(),
        json!([]),
    );
    assert_eq!((gone.outcome, gone.slots.unknown), (Outcome::Unknown, 1));
    let asked = json!({ "name": "m", "trigger": "Manual", "result": "Failed", "reason": "NoSpace", "startTime": "2026-09-10T15:00:00Z" });
    let day = of_day(
        [all(hourly(3, "Succeeded", "")), vec![asked]].concat(),
        json!([]),
    );
    assert_eq!(
        (day.outcome, day.manual, day.slots.failed),
        (Outcome::Failed, 1, 0)
    );
}

#[test]
fn who_suspended_is_told_as_far_as_it_is_known() {
    let suspended = |notes: Value, managers: Value| {
        let mut object = mysql(
            json!({ "schedule": "0 2 * * *", "suspend": true }),
            with(
                status(good(2..=11), vec![]),
                &[("suspendedSince", json!("2026-09-10T00:00:00Z"))],
            ),
        );
        object.object.metadata.annotations = serde_json::from_value(notes).unwrap();
        object.object.metadata.managed_fields = serde_json::from_value(managers).unwrap();
        let made = of(&[object], &[], period(), now());
        made.items[0].suspension.clone()
    };
    let manager = |name: &str, day: u32, fields: Value| json!({ "manager": name, "operation": "Update", "time": format!("2026-09-{day:02}T00:00:00Z"), "fieldsV1": fields });
    let field = || json!({ "f:spec": { "f:suspend": {} } });
    let nobody = suspended(
        json!({}),
        json!([manager(
            "argocd",
            1,
            json!({ "f:spec": { "f:schedule": {} } })
        )]),
    );
    assert_eq!(
        (nobody.by, nobody.manager, nobody.reason),
        (None, None, None)
    );
    assert_eq!(nobody.since, Some(Moment(at("2026-09-10T00:00:00Z"))));
    let told = suspended(
        json!({ "batch.isekiro.com/suspended-by": "alice", "batch.isekiro.com/suspend-reason": "move password=hunter22secret", "batch.isekiro.com/resume-at": "2026-09-12T06:00:00Z" }),
        json!([
            manager("helm", 1, field()),
            manager("kubectl-edit", 10, field())
        ]),
    );
    assert_eq!(
        (told.by.as_deref(), told.manager.as_deref()),
        (Some("alice"), Some("kubectl-edit"))
    );
    assert_eq!(told.resume_at, Some(Moment(at("2026-09-12T06:00:00Z"))));
    assert!(!told.reason.unwrap().contains("hunter22secret"));
    // What a suspension that is over left behind says nothing of now.
    let mut over = mysql(
        daily(),
        with(
            status(good(2..=11), vec![]),
            &[("resumedAt", json!("2026-09-05T00:00:00Z"))],
        ),
    );
    over.object.metadata.annotations =
        serde_json::from_value(json!({ "batch.isekiro.com/suspended-by": "alice" })).unwrap();
    let made = of(&[over], &[], period(), now());
    let over = &made.items[0].suspension;
    assert_eq!(
        (over.suspended, &over.by, over.last_ended),
        (false, &None, Some(Moment(at("2026-09-05T00:00:00Z"))))
    );
}

fn restored(name: &str, from: Value, day: u32, phase: &str, dry: bool) -> Object {
    object(
        &RESTORE,
        json!({
            "metadata": { "name": name, "namespace": "prod", "creationTimestamp": format!("2026-09-{day:02}T09:00:00Z") },
            "spec": { "from": from, "to": { "host": "copy-db", "credentialsSecretRef": { "name": "copy" } }, "dryRun": dry },
            "status": { "phase": phase, "reason": "Restored", "message": "12 tables", "startTime": format!("2026-09-{day:02}T09:00:10Z"), "completionTime": format!("2026-09-{day:02}T09:02:11Z"), "rows": 4711, "job": name },
        }),
    )
}

#[test]
fn restores_belong_to_what_they_are_of() {
    let shop = || json!({ "name": "shop", "latest": true });
    let other = json!({ "name": "gone", "latest": true });
    let restores = [
        restored("checked", shop(), 9, "Succeeded", true),
        restored("failed", shop(), 8, "Failed", false),
        restored("real", shop(), 7, "Succeeded", false),
        restored("before", shop(), 1, "Succeeded", false),
        restored("elsewhere", other, 6, "Succeeded", false),
    ];
    let objects = [mysql(daily(), status(good(2..=11), vec![]))];
    let names = |made: &Audit| {
        made.restores
            .iter()
            .map(|r| r.name.clone())
            .collect::<Vec<_>>()
    };
    let made = of(&objects, &restores, period(), now());
    // That of the 1st began before the period.
    assert_eq!(names(&made), ["checked", "failed", "real", "elsewhere"]);
    let last = made.items[0].last_restore.as_ref().unwrap();
    assert_eq!((last.name.as_str(), last.seconds), ("real", Some(121)));
    let named = audit(Inputs {
        objects: &objects,
        restores: &restores,
        whole: false,
        namespace: Some("prod"),
        left_out: vec![],
        period: period(),
        zone: Zone::Utc,
        now: now(),
    });
    assert_eq!(names(&named), ["checked", "failed", "real"]);
}

/// An object with everything, one of gobackup.io that is suspended, one with hostile words, and one that no
/// operator has seen.
fn fleet() -> Audit {
    let mut runs = good(8..=11);
    runs[0]["storedBytes"] = 1_932_735_283i64.into();
    runs[0]["artefacts"] =
        json!([{ "key": "prod/shop.sql.zst", "size": 1_932_735_283i64, "readBack": true }]);
    runs[1]["verification"] = json!({ "mode": "Restore", "passed": true, "time": "2026-09-10T02:30:00Z", "message": "12 tables equal" });
    runs[2] = run(9, "Failed", "AccessDenied");
    runs[2]["message"] = "access denied for user backup".into();
    runs.insert(0, json!({ "name": "shop-now", "trigger": "Manual", "requestId": "r1", "result": "Succeeded", "startTime": "2026-09-11T09:00:00Z", "completionTime": "2026-09-11T09:00:40Z" }));
    let shop = mysql(
        json!({
            "schedule": "0 2 * * *", "encryption": { "age": { "recipients": ["age1x"] } },
            "retention": { "keepLast": 7, "maxAge": "720h" }, "binlogs": { "interval": "5m" },
        }),
        with(
            status(runs, vec![missed("09-06", "09-07", 2, "Outage")]),
            &[
                ("lastSuccessfulTime", json!("2026-09-11T09:00:40Z")),
                ("lastVerifiedTime", json!("2026-09-10T02:30:00Z")),
                (
                    "totals",
                    json!({ "due": 253, "succeeded": 249, "failed": 2, "skipped": 0, "missed": 2, "manual": 1 }),
                ),
                (
                    "requests",
                    json!([{ "id": "r1", "action": "Backup", "by": "alice", "state": "Succeeded" }]),
                ),
                (
                    "binlogs",
                    json!({
                        "intervalSeconds": 300, "anchor": "2026-09-01T00:00:00Z", "accountedUntil": "2026-09-11T11:55:00Z",
                        "windows": [{ "from": "2026-09-05T00:10:00Z", "until": "2026-09-11T11:55:00Z" }],
                        "gaps": [{ "from": "2026-09-04T23:00:00Z", "to": "2026-09-05T00:10:00Z", "reason": "Purged", "message": "the server removed binlog.000007" }],
                    }),
                ),
            ],
        ),
    );
    let mut nightly = object(
        &GOBACKUP,
        json!({
            "metadata": {
                "name": "nightly", "namespace": "prod", "creationTimestamp": "2026-03-01T00:00:00Z",
                "annotations": { "batch.isekiro.com/suspended-by": "bob", "batch.isekiro.com/suspend-reason": "upgrade" },
            },
            "spec": {
                "schedule": { "cron": "0 3 * * *", "timeZone": "Europe/Berlin", "suspend": true },
                "databaseRefs": [{ "name": "pg" }], "storageRefs": [{ "name": "bucket", "keep": 14 }],
                "encodeWith": { "type": "openssl" },
            },
            "status": status(vec![], vec![]),
        }),
    );
    let status = &mut nightly.object.data["status"];
    status["schedule"] = json!({ "text": "0 3 * * *", "timeZone": "Europe/Berlin", "since": "2026-09-08T00:00:00Z" });
    status["accountedUntil"] = "2026-09-08T00:00:00Z".into();
    status["suspendedSince"] = "2026-09-08T00:00:00Z".into();
    let mut hostile = mysql(
        daily(),
        with(
            self::status(vec![], vec![]),
            &[(
                "runs",
                json!([{
                    "name": "=cmd|' /C calc'!A0", "trigger": "Schedule", "slot": "2026-09-11T02:00:00Z", "result": "Failed", "reason": "Error",
                    "message": "<script>alert(\"1\")</script> & 'quoted' \u{202e}turned\nnew line, comma",
                }]),
            )],
        ),
    );
    hostile.object.metadata.name = Some("=1+1".into());
    let mut fresh = mysql(json!({ "schedule": "@every 6h" }), Value::Null);
    fresh.object.metadata.name = Some("fresh".into());
    fresh.object.metadata.creation_timestamp = Some(crds::time::to_k8s(at("2026-09-11T11:59:30Z")));
    let restores = [restored(
        "drill",
        json!({ "name": "shop", "latest": true }),
        9,
        "Succeeded",
        false,
    )];
    let mut made = of(&[shop, nightly, hostile, fresh], &restores, period(), now());
    made.left_out = vec!["cronbackups may not be listed".into()];
    made
}

fn json_of(made: &Audit) -> Value {
    serde_json::to_value(made).unwrap()
}

#[test]
fn a_report_as_text() {
    let shape = Shape {
        zone: Zone::Schedule,
        look: Look::default(),
        ..Shape::default()
    };
    insta::assert_snapshot!("report_text", text(&fleet(), shape));
}

#[test]
fn a_report_as_json() {
    let page =
        crate::view::output::structured(&json_of(&fleet()), crate::cli::StructuredOutput::Json);
    insta::assert_snapshot!("report_json", page);
}

#[test]
fn a_report_as_csv() {
    let page = csv(&fleet());
    assert!(page.ends_with("\r\n"));
    insta::assert_snapshot!("report_csv", page.replace("\r\n", "\n"));
}

#[test]
fn a_report_as_html() {
    let page = html(&fleet(), Zone::Schedule);
    let (_, body) = page.split_once("</style>").unwrap();
    insta::assert_snapshot!("report_html", body);
}

/// The cells of a line, as RFC 4180 reads them.
fn cells(line: &str) -> Vec<String> {
    let (mut all, mut cell, mut quoted) = (vec![], String::new(), false);
    let mut letters = line.chars().peekable();
    while let Some(c) = letters.next() {
        match c {
            '"' if quoted && letters.peek() == Some(&'"') => {
                letters.next();
                cell.push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => all.push(std::mem::take(&mut cell)),
            c => cell.push(c),
        }
    }
    all.push(cell);
    all
}

#[test]
fn no_cell_of_csv_is_a_formula_and_each_line_has_all_columns() {
    let page = csv(&fleet());
    let lines: Vec<Vec<String>> = page.trim_end().split("\r\n").map(cells).collect();
    assert_eq!(lines.len(), 5);
    let column = |name: &str| lines[0].iter().position(|title| title == name).unwrap();
    for line in &lines {
        assert_eq!(line.len(), lines[0].len(), "{line:?}");
        for cell in line {
            assert!(!cell.starts_with(['=', '+', '-', '@']), "{cell}");
        }
    }
    assert_eq!(lines[3][column("name")], "'=1+1");
    let failures = &lines[3][column("failures")];
    assert!(
        failures.starts_with("'=cmd|") && failures.contains("new line, comma"),
        "{failures}"
    );
    assert_eq!(lines[1][column("recoverableUntil")], "2026-09-11T11:55:00Z");
    assert_eq!(lines[2][column("suspendedBy")], "bob");
}

/// The text of a page as a browser shows it, titles of drawings included.
fn shown(page: &str) -> String {
    let mut text = String::new();
    for part in page.split('<').skip(1) {
        let (_, rest) = part.split_once('>').unwrap();
        text.push(' ');
        text.push_str(rest);
    }
    for (name, sign) in [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&amp;", "&"),
    ] {
        text = text.replace(name, sign);
    }
    text
}

/// Values of JSON, as a page has them in words; those that say that there is none of something are left out.
fn values(value: &Value, key: &str, found: &mut Vec<String>) {
    match value {
        Value::Null => {}
        Value::Bool(yes) => found.push(
            match (key, yes) {
                ("suspended", true) => "yes",
                ("suspended", false) => "no",
                ("complete", true) => "all known since",
                ("complete", false) => "not",
                ("passed", true) => "passed",
                ("passed", false) => "failed",
                ("continuous", true) => "continuously",
                ("continuous", false) => "every",
                ("dryRun", true) => "dry run",
                ("dryRun", false) => "",
                (key, _) => panic!("{key}"),
            }
            .to_owned(),
        ),
        Value::Number(count) if count.as_i64() == Some(0) => {}
        Value::Number(count) => found.push(count.to_string()),
        Value::String(text) => found.push(text.chars().map(crds::text::seen).collect()),
        Value::Array(items) => items.iter().for_each(|item| values(item, key, found)),
        Value::Object(fields) => fields
            .iter()
            .for_each(|(key, value)| values(value, key, found)),
    }
}

#[test]
fn the_page_says_what_the_json_says_and_loads_nothing() {
    let made = fleet();
    let page = html(&made, Zone::Utc);
    for forbidden in [
        "http://", "https://", "<script", "src=", "url(", "@import", "onload", "\u{202e}",
    ] {
        assert!(!page.contains(forbidden), "{forbidden}");
    }
    // The hostile message is there, as text.
    assert!(
        page.contains("&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt; &amp; &#39;quoted&#39;")
    );
    let json = json_of(&made);
    let whole = shown(&page);
    for (index, item) in json["items"].as_array().unwrap().iter().enumerate() {
        let line = page.split(&format!("href=\"#o{index}\"")).nth(1).unwrap();
        let line = line.split("</li>").next().unwrap();
        let own = page
            .split(&format!("<section id=\"o{index}\""))
            .nth(1)
            .unwrap();
        let own = own.split("</section>").next().unwrap();
        let text = shown(&format!("<{line}<{own}"));
        let mut wanted = vec![];
        values(item, "", &mut wanted);
        assert!(wanted.len() > 20, "{wanted:?}");
        for value in wanted {
            assert!(text.contains(&value), "{value:?} of {item:#} in {text}");
        }
    }
    let mut rest = vec![];
    for key in ["madeAt", "from", "until", "leftOut", "restores", "summary"] {
        values(&json[key], key, &mut rest);
    }
    for value in rest {
        assert!(whole.contains(&value), "{value:?}");
    }
}

/// docs/report.md has a row for each field of JSON and each column of CSV.
#[test]
fn each_field_is_documented() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/report.md");
    let text = std::fs::read_to_string(path).unwrap();
    fn keys(value: &Value, found: &mut std::collections::BTreeSet<String>) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| keys(item, found)),
            Value::Object(fields) => {
                for (key, value) in fields {
                    found.insert(key.clone());
                    keys(value, found);
                }
            }
            _ => {}
        }
    }
    let mut all = std::collections::BTreeSet::new();
    keys(&json_of(&fleet()), &mut all);
    let page = csv(&fleet());
    all.extend(cells(page.lines().next().unwrap()));
    assert!(all.len() > 80, "{all:?}");
    let missing: Vec<_> = all
        .iter()
        .filter(|key| !text.contains(&format!("`{key}`")))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}
