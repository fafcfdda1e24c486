//! The stories, each with what must be there in the end, written down from the rules.

use crds::request::{Action, Request};
use crds::time::parse_rfc3339;
use crds::{labels, names};
use serde_json::{Value, json};

use super::driver::{Act, Ending, OBJECT, Scenario};
use crate::fake_api::{State, status_body};

fn spec(more: Value) -> Value {
    let mut spec =
        json!({"schedule": "*/10 * * * *", "image": "dump:v1", "successfulJobsHistoryLimit": 10});
    spec.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    spec
}

fn scenario(name: &'static str, more: Value, steps: Vec<(&'static str, Act)>) -> Scenario {
    Scenario {
        name,
        spec: spec(more),
        steps,
        away: None,
        end: "2025-01-15T10:34:00Z",
        lasts: 120,
        ttl: None,
    }
}

fn ask(state: &mut State, action: Action, id: &str, change: impl FnOnce(&mut Request)) {
    let mut request = Request::new(action, id, "alice", state.now);
    change(&mut request);
    state.change("mysqlbackups", OBJECT, |o| {
        o["metadata"]["annotations"][Request::annotation_key(id)] =
            json!(request.annotation_value());
    });
}

fn set(state: &mut State, field: &str, value: Value) {
    state.change("mysqlbackups", OBJECT, |o| o["spec"][field] = value);
}

/// Another installation claims the object; its Lease is not renewed any more.
fn claimed_by_another(state: &mut State) {
    let lease = json!({
        "metadata": {"name": "backup-operator"},
        "spec": {"holderIdentity": "other", "renewTime": "2025-01-15T10:09:30.000000Z"},
    });
    state.put("leases", lease);
    state.change("mysqlbackups", OBJECT, |o| {
        o["status"]["controller"] = json!("other/backup-operator")
    });
}

fn note(state: &mut State, key: &str, value: &str) {
    state.change("mysqlbackups", OBJECT, |o| {
        o["metadata"]["annotations"][key] = json!(value)
    });
}

fn job(slot: &str) -> String {
    format!("{OBJECT}-{}", parse_rfc3339(slot).unwrap().timestamp() / 60)
}

/// Receivers of all that no pod can tell.
fn receivers() -> Value {
    json!({"notifications": [{
        "type": "Webhook",
        "urlSecretKeyRef": {"name": "s", "key": "k"},
        "on": ["Failure", "Missed", "Overdue"],
    }]})
}

/// Each of these notices has one Job.
fn told(ending: &Ending, notices: &[(&str, &str)]) {
    // The first object has the first UID.
    let name = |(event, subject): &(&str, &str)| {
        format!(
            "Notify {}",
            names::notify_name(OBJECT, "uid-1", subject, event)
        )
    };
    let mut expected: Vec<String> = notices.iter().map(name).collect();
    expected.sort();
    let found = ending
        .created
        .iter()
        .filter(|(what, _)| what.starts_with("Notify "));
    let found: Vec<String> = found
        .map(|(what, count)| {
            assert_eq!(*count, 1, "{what}");
            what.clone()
        })
        .collect();
    assert_eq!(found, expected, "{ending:?}");
}

pub(super) fn all() -> Vec<Scenario> {
    let mut list = vec![
        scenario("slots", json!({}), vec![]),
        scenario("history", json!({"successfulJobsHistoryLimit": 1}), vec![]),
        scenario("forbid", json!({"concurrencyPolicy": "Forbid"}), vec![]),
        scenario("replace", json!({"concurrencyPolicy": "Replace"}), vec![]),
        scenario(
            "manual",
            json!({"schedule": "@daily", "image": "dump:v1"}),
            vec![("2025-01-15T10:05:00Z", |s| {
                ask(s, Action::Backup, "r1", |_| {})
            })],
        ),
        scenario(
            "queue",
            json!({"concurrencyPolicy": "Forbid"}),
            vec![("2025-01-15T10:11:00Z", |s| {
                ask(s, Action::Backup, "r1", |r| r.options.queue = true)
            })],
        ),
        scenario(
            "refused",
            json!({"concurrencyPolicy": "Forbid"}),
            vec![("2025-01-15T10:11:00Z", |s| {
                ask(s, Action::Backup, "r1", |_| {})
            })],
        ),
        scenario(
            "cancel",
            json!({}),
            vec![("2025-01-15T10:11:00Z", |s| {
                ask(s, Action::Cancel, "c1", |_| {})
            })],
        ),
        scenario(
            "squatter",
            json!({}),
            vec![("2025-01-15T10:09:00Z", |s| {
                let name = job("2025-01-15T10:10:00Z");
                s.put("jobs", json!({"metadata": {"name": name}}));
            })],
        ),
        scenario(
            "quota",
            json!({}),
            vec![
                ("2025-01-15T10:09:00Z", |s| {
                    s.refuse = Some((403, status_body(403, "Forbidden", "exceeded quota: jobs")))
                }),
                ("2025-01-15T10:12:00Z", |s| s.refuse = None),
            ],
        ),
        scenario(
            "terminating",
            json!({}),
            vec![
                ("2025-01-15T10:09:00Z", |s| {
                    let mut body = status_body(403, "Forbidden", "namespace is being terminated");
                    body["details"] = json!({"causes": [{"reason": "NamespaceTerminating", "message": "", "field": "metadata.namespace"}]});
                    s.refuse = Some((403, body));
                }),
                ("2025-01-15T10:12:00Z", |s| s.refuse = None),
            ],
        ),
        scenario(
            "deleted by hand",
            json!({}),
            vec![("2025-01-15T10:11:00Z", |s| {
                s.remove("jobs", &job("2025-01-15T10:10:00Z"))
            })],
        ),
        scenario(
            "status wiped",
            json!({}),
            vec![("2025-01-15T10:15:00Z", |s| {
                s.change("mysqlbackups", OBJECT, |o| o["status"] = json!({}))
            })],
        ),
        scenario(
            "suspend and resume",
            json!({}),
            vec![
                ("2025-01-15T10:05:00Z", |s| set(s, "suspend", json!(true))),
                ("2025-01-15T10:25:00Z", |s| set(s, "suspend", json!(false))),
            ],
        ),
        scenario(
            "resume without the missed run",
            json!({}),
            vec![
                ("2025-01-15T10:05:00Z", |s| set(s, "suspend", json!(true))),
                ("2025-01-15T10:25:00Z", |s| {
                    note(s, labels::SKIP_SLOTS_UNTIL, "2025-01-15T10:25:00Z");
                    set(s, "suspend", json!(false));
                }),
            ],
        ),
        scenario(
            "resume at",
            json!({}),
            vec![("2025-01-15T10:05:00Z", |s| {
                note(s, labels::RESUME_AT, "2025-01-15T10:25:00Z");
                set(s, "suspend", json!(true));
            })],
        ),
        scenario(
            "edit",
            json!({}),
            vec![("2025-01-15T10:15:00Z", |s| {
                note(s, labels::SCHEDULE_SINCE, "2025-01-15T10:15:00Z");
                set(s, "schedule", json!("5,12,32 * * * *"));
            })],
        ),
        scenario(
            "probe",
            json!({"schedule": "@daily", "image": "backup-runner:test", "source": {"host": "db", "credentialsSecretRef": {"name": "db"}}, "destination": {"s3": {"bucket": "b"}}}),
            vec![("2025-01-15T10:05:00Z", |s| {
                ask(s, Action::Probe, "p1", |_| {})
            })],
        ),
        scenario(
            "verify by restore",
            json!({"schedule": "5 * * * *", "image": "backup-runner:test", "source": {"host": "db", "credentialsSecretRef": {"name": "db"}}, "destination": {"s3": {"bucket": "b"}}, "verify": {"mode": "Restore"}}),
            vec![],
        ),
        scenario(
            "binary logs",
            json!({"schedule": "5 * * * *", "image": "backup-runner:test", "source": {"host": "db", "credentialsSecretRef": {"name": "db"}}, "destination": {"s3": {"bucket": "b"}}, "binlogs": {"interval": "4m"}}),
            vec![],
        ),
        scenario(
            "binary logs that stay",
            json!({"schedule": "5 * * * *", "image": "backup-runner:test", "source": {"host": "db", "credentialsSecretRef": {"name": "db"}}, "destination": {"s3": {"bucket": "b"}}, "binlogs": {"interval": "4m", "continuous": true}}),
            vec![],
        ),
        scenario(
            "binary logs that stay, then do not",
            json!({"schedule": "5 * * * *", "image": "backup-runner:test", "source": {"host": "db", "credentialsSecretRef": {"name": "db"}}, "destination": {"s3": {"bucket": "b"}}, "binlogs": {"interval": "4m", "continuous": true}}),
            vec![
                ("2025-01-15T10:10:00Z", |s| {
                    set(s, "binlogs", json!({"interval": "4m"}))
                }),
                ("2025-01-15T10:21:00Z", |s| {
                    set(s, "binlogs", json!({"interval": "1h", "continuous": true}))
                }),
                ("2025-01-15T10:30:00Z", |s| set(s, "binlogs", Value::Null)),
            ],
        ),
        scenario(
            "claimed, then given up",
            json!({}),
            vec![
                ("2025-01-15T10:09:30Z", |s| claimed_by_another(s)),
                ("2025-01-15T10:12:00Z", |s| {
                    s.remove("leases", "backup-operator")
                }),
            ],
        ),
        scenario(
            "claimed by one that stands still",
            json!({}),
            vec![("2025-01-15T10:09:30Z", |s| claimed_by_another(s))],
        ),
        scenario(
            "a deletion by hand is told",
            receivers(),
            vec![("2025-01-15T10:11:00Z", |s| {
                s.remove("jobs", &job("2025-01-15T10:10:00Z"))
            })],
        ),
        scenario(
            "bad spec mended",
            json!({"schedule": "61 * * * *", "image": "dump:v1"}),
            vec![("2025-01-15T10:15:00Z", |s| {
                set(s, "schedule", json!("*/10 * * * *"))
            })],
        ),
    ];
    let long = |name: &str, lasts: i64, list: &mut Vec<Scenario>| {
        list.iter_mut()
            .filter(|s| s.name == name)
            .for_each(|s| s.lasts = lasts);
    };
    long("forbid", 900, &mut list);
    long("replace", 900, &mut list);
    let mut outage = scenario("outage", json!({}), vec![]);
    outage.away = Some(("2025-01-15T10:05:00Z", "2025-01-15T10:33:00Z"));
    let mut late = scenario(
        "outage past the deadline",
        json!({"startingDeadlineSeconds": 60}),
        vec![],
    );
    late.away = Some(("2025-01-15T10:05:00Z", "2025-01-15T10:33:00Z"));
    let mut told = scenario("an outage is told", receivers(), vec![]);
    told.away = Some(("2025-01-15T10:05:00Z", "2025-01-15T10:33:00Z"));
    list.push(told);
    let mut ttl = scenario("TTL", json!({}), vec![]);
    ttl.ttl = Some(15);
    list.extend([outage, late, ttl]);
    for story in &mut list {
        // Long enough for what the last slot started to end.
        if story.name != "forbid" && story.name != "replace" {
            story.end = "2025-01-15T10:38:00Z";
        }
    }
    list
}

const SLOTS: [&str; 3] = [
    "2025-01-15T10:10:00Z",
    "2025-01-15T10:20:00Z",
    "2025-01-15T10:30:00Z",
];

fn totals(
    ending: &Ending,
    due: i64,
    succeeded: i64,
    failed: i64,
    skipped: i64,
    missed: i64,
    manual: i64,
) {
    let expected = json!({"due": due, "succeeded": succeeded, "failed": failed, "skipped": skipped, "missed": missed, "manual": manual});
    assert_eq!(ending.totals, expected, "{ending:?}");
}

fn started(ending: &Ending, slots: &[&str]) {
    let found: Vec<&str> = ending.created.keys().map(String::as_str).collect();
    assert_eq!(found, slots, "{ending:?}");
}

/// What the story must come to.
pub(super) fn expected(name: &str) -> fn(&Ending) {
    match name {
        "slots" | "TTL" => |e| {
            started(e, &SLOTS);
            totals(e, 3, 3, 0, 0, 0, 0)
        },
        "verify by restore" => |e| {
            totals(e, 1, 1, 0, 0, 0, 0);
            let verified =
                |(what, count): (&String, &usize)| what.starts_with("Verify ") && *count == 1;
            assert!(e.created.iter().any(verified), "{:?}", e.created)
        },
        "binary logs" => |e| {
            totals(e, 1, 1, 0, 0, 0, 0);
            // From 10:04:30 to 10:36:30; each takes two minutes, so that the last is open at the end.
            let all = json!({"due": 9, "succeeded": 8, "failed": 0, "skipped": 0, "missed": 0});
            assert_eq!(e.pulls, all, "{e:?}");
            let pulls = e
                .created
                .iter()
                .filter(|(what, _)| what.starts_with("Binlogs "));
            assert_eq!(pulls.map(|(_, n)| *n).collect::<Vec<_>>(), [1; 9], "{e:?}")
        },
        "binary logs that stay" => |e| {
            // From 10:00:30 to 10:36:30; each is followed by the next, and the last is open at the end.
            let all = json!({"due": 10, "succeeded": 9, "failed": 0, "skipped": 0, "missed": 0});
            assert_eq!(e.pulls, all, "{e:?}");
            let pulls = e
                .created
                .iter()
                .filter(|(what, _)| what.starts_with("Binlogs "));
            assert_eq!(pulls.map(|(_, n)| *n).collect::<Vec<_>>(), [1; 10], "{e:?}")
        },
        "binary logs that stay, then do not" => |e| {
            assert_eq!(e.pulls, Value::Null, "{e:?}");
            let pulls = e
                .created
                .iter()
                .filter(|(what, _)| what.starts_with("Binlogs "));
            // At 10:00:30, 10:04:30, 10:08:30; 10:14 and 10:18; 10:21.
            assert_eq!(pulls.map(|(_, n)| *n).collect::<Vec<_>>(), [1; 6], "{e:?}");
            assert!(!e.jobs.iter().any(|j| j.contains("-b")), "{e:?}")
        },
        "history" => |e| {
            started(e, &SLOTS);
            totals(e, 3, 3, 0, 0, 0, 0);
            assert_eq!(e.jobs, [job(SLOTS[2])])
        },
        "forbid" => |e| {
            started(e, &SLOTS[..2]);
            totals(e, 3, 1, 0, 0, 0, 0)
        },
        "replace" => |e| {
            started(e, &SLOTS);
            totals(e, 3, 0, 2, 0, 0, 0)
        },
        "manual" => |e| {
            started(e, &["r1"]);
            totals(e, 0, 0, 0, 0, 0, 1);
            assert_eq!(e.requests, [("r1".to_owned(), "Succeeded".to_owned())]);
            assert!(e.annotations.is_empty())
        },
        "queue" => |e| {
            started(e, &[SLOTS[0], SLOTS[1], SLOTS[2], "r1"]);
            totals(e, 3, 3, 0, 0, 0, 1)
        },
        "refused" => |e| {
            started(e, &SLOTS);
            totals(e, 3, 3, 0, 0, 0, 0);
            assert_eq!(e.requests, [("r1".to_owned(), "Refused".to_owned())])
        },
        "cancel" => |e| {
            started(e, &SLOTS);
            totals(e, 3, 2, 1, 0, 0, 0);
            assert_eq!(e.requests, [("c1".to_owned(), "Succeeded".to_owned())])
        },
        "squatter"
        | "quota"
        | "terminating"
        | "claimed, then given up"
        | "claimed by one that stands still" => |e| {
            started(e, &SLOTS);
            totals(e, 3, 3, 0, 0, 0, 0)
        },
        "deleted by hand" => |e| {
            started(e, &SLOTS);
            totals(e, 3, 2, 1, 0, 0, 0)
        },
        "a deletion by hand is told" => |e| {
            totals(e, 3, 2, 1, 0, 0, 0);
            // The run of 10:20 ends at 10:22, later than the slot of 10:10 may wait.
            told(e, &[("Failure", &job(SLOTS[0])), ("Overdue", SLOTS[0])])
        },
        "an outage is told" => |e| {
            totals(e, 3, 1, 0, 0, 2, 0);
            told(e, &[("Missed", SLOTS[0]), ("Overdue", SLOTS[0])])
        },
        "status wiped" => |e| {
            started(e, &SLOTS);
            totals(e, 3, 3, 0, 0, 0, 0)
        },
        "suspend and resume" | "resume at" => |e| {
            started(e, &SLOTS[1..]);
            totals(e, 3, 2, 0, 0, 1, 0);
            assert_eq!(e.suspended, json!(false))
        },
        "resume without the missed run" => |e| {
            started(e, &SLOTS[2..]);
            totals(e, 3, 1, 0, 2, 0, 0)
        },
        "edit" => |e| {
            started(e, &[SLOTS[0], "2025-01-15T10:32:00Z"]);
            totals(e, 2, 2, 0, 0, 0, 0)
        },
        "probe" => |e| {
            started(e, &["p1"]);
            totals(e, 0, 0, 0, 0, 0, 0);
            assert_eq!(e.requests, [("p1".to_owned(), "Succeeded".to_owned())])
        },
        "bad spec mended" => |e| {
            started(e, &SLOTS[1..]);
            totals(e, 2, 2, 0, 0, 0, 0)
        },
        "outage" => |e| {
            started(e, &SLOTS[2..]);
            totals(e, 3, 1, 0, 0, 2, 0)
        },
        "outage past the deadline" => |e| {
            started(e, &[]);
            totals(e, 3, 0, 0, 0, 3, 0)
        },
        other => panic!("nothing is written down for {other}"),
    }
}
