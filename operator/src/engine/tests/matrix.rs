//! The matrix of rule 49: what ran before × what is due × policy, as upstream tests its sync.

use super::*;

/// What came before, what is due, and what Allow, Forbid and Replace do.
const ROWS: &[[&str; 5]] = &[
    ["never", "not due", "-", "-", "-"],
    ["never", "due", "start", "start", "start"],
    ["never", "due, with deadline", "start", "start", "start"],
    ["never", "past deadline", "missed", "missed", "missed"],
    ["never", "suspended", "-", "-", "-"],
    ["never", "asked for", "start", "start", "start"],
    [
        "never",
        "asked for while suspended",
        "start",
        "start",
        "start",
    ],
    ["never", "invalid", "-", "-", "-"],
    ["never", "foreign", "-", "-", "-"],
    ["never", "being deleted", "-", "-", "-"],
    ["ran", "not due", "-", "-", "-"],
    ["ran", "due", "start", "start", "start"],
    ["ran", "due, with deadline", "start", "start", "start"],
    ["ran", "past deadline", "missed", "missed", "missed"],
    ["ran", "suspended", "-", "-", "-"],
    ["ran", "asked for", "start", "start", "start"],
    [
        "ran",
        "asked for while suspended",
        "start",
        "start",
        "start",
    ],
    ["ran", "invalid", "-", "-", "-"],
    ["ran", "foreign", "-", "-", "-"],
    ["ran", "being deleted", "-", "-", "-"],
    ["active", "not due", "-", "-", "-"],
    ["active", "due", "start", "wait", "replace"],
    ["active", "due, with deadline", "start", "wait", "replace"],
    ["active", "past deadline", "missed", "missed", "missed"],
    ["active", "suspended", "-", "-", "-"],
    ["active", "asked for", "start", "refuse", "refuse"],
    [
        "active",
        "asked for while suspended",
        "start",
        "refuse",
        "refuse",
    ],
    ["active", "asked for, queued", "start", "wait", "wait"],
    ["active", "invalid", "-", "-", "-"],
    ["active", "foreign", "-", "-", "-"],
    ["active", "being deleted", "-", "-", "-"],
];

fn before(what: &str, policy: ConcurrencyPolicy) -> World {
    let mut world =
        World::unseen("0 * * * *", "2025-01-01T00:30:00Z").with(|s| s.concurrency = policy);
    world.settle();
    if what != "never" {
        world.at("2025-01-01T01:00:00Z");
    }
    if what == "ran" {
        world.finish_all();
    }
    if what == "never" {
        world.seen.object.created = t("2025-01-01T01:30:00Z");
        world.seen.status = ScheduleStatus::default();
        world.now = t("2025-01-01T01:30:00Z");
        world.settle();
    }
    world.started.clear();
    world
}

fn happen(world: &mut World, what: &str) {
    let settings = &mut world.seen.settings;
    match what {
        "not due" => {
            world.at("2025-01-01T01:45:00Z");
            return;
        }
        "due, with deadline" => settings.starting_deadline = Some(600),
        "past deadline" => settings.starting_deadline = Some(60),
        "suspended" => settings.suspend = true,
        "invalid" => {
            world.seen.problems = vec![crds::validate::Problem {
                path: "spec.x".into(),
                message: "bad".into(),
            }]
        }
        "foreign" => world.seen.foreign = Some("CronJob x acts on it".into()),
        "being deleted" => world.seen.object.deleting = true,
        "asked for while suspended" => settings.suspend = true,
        _ => {}
    }
    if what.starts_with("asked") {
        world.now = t("2025-01-01T01:45:00Z");
        world.ask(Action::Backup, "r", |r| {
            r.options.queue = what.ends_with("queued")
        });
    } else {
        world.at("2025-01-01T02:05:00Z");
    }
}

fn outcome(world: &World) -> &'static str {
    let status = &world.seen.status;
    let waits = status.runs.iter().any(|r| r.result == RunResult::Waiting);
    let refused = status
        .requests
        .iter()
        .any(|r| r.state == crds::status::RequestState::Refused);
    match (world.started.len(), world.deleted.len()) {
        (1, 0) if !waits => "start",
        (1, 1) => "replace",
        (0, 0) if waits => "wait",
        (0, 0) if refused => "refuse",
        (0, 0) if status.missed.iter().any(|m| m.reason == "DeadlineExceeded") => "missed",
        (0, 0) => "-",
        other => panic!("{other:?}"),
    }
}

#[test]
fn rule_49_matrix() {
    let mut cells = 0;
    for [prior, due, expected @ ..] in ROWS {
        for (policy, expected) in policies().into_iter().zip(expected) {
            let mut world = before(prior, policy);
            happen(&mut world, due);
            assert_eq!(outcome(&world), *expected, "{prior}, {due}, {policy:?}");
            cells += 1;
        }
    }
    assert_eq!(cells, 93);
}
