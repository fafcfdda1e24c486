//! What runs and requests say of databases and storages.

use crds::report::{Endpoint, EndpointKind, Report};

use super::*;

fn endpoints() -> Vec<Endpoint> {
    let endpoint = |kind, name: &str, reason: &str| Endpoint {
        kind,
        name: name.into(),
        reached: reason.is_empty(),
        reason: reason.into(),
        message: String::new(),
    };
    vec![
        endpoint(EndpointKind::Storage, "bucket", ""),
        endpoint(EndpointKind::Database, "maindb", "AccessDenied"),
    ]
}

/// The one active Job ends badly, its pod with a report.
fn end(world: &mut World) {
    let mut report = Report::new("r");
    report.good = Some(false);
    report.reason = "AccessDenied".into();
    report.endpoints = endpoints();
    let job = world.seen.jobs.iter().find(|j| j.is_active()).unwrap();
    let name = job.name.to_string();
    let end = Ended {
        exit_code: 3,
        reason: "Error".into(),
        message: report.to_termination_message().into(),
        at: Some(world.now),
    };
    world.leave(&name, false, Some(end));
}

#[test]
fn a_run_and_a_probe_say_once_at_their_end_what_they_reached() {
    let mut world = World::new("0 * * * *", "2025-01-01T00:30:00Z").with(|s| s.own_image = true);
    world.at("2025-01-01T01:00:00Z");
    assert_eq!(world.reached, Vec::<Vec<Endpoint>>::new());
    end(&mut world);
    assert_eq!(world.reached, [endpoints()]);
    world.at("2025-01-01T01:30:00Z");
    assert_eq!(world.reached.len(), 1);

    world.ask(Action::Probe, "by-hand", |_| {});
    assert_eq!(world.reached.len(), 1);
    end(&mut world);
    assert_eq!(world.reached, [endpoints(), endpoints()]);
    world.at("2025-01-01T01:45:00Z");
    assert_eq!(world.reached.len(), 2);
}
