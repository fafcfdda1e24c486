//! Binary logs: slots of their own, their books, and Jobs that are no runs.

use crds::binlogs::{BinlogStatus, Gap, Window};
use crds::report::{self, Report};
use crds::time::{rfc3339, to_k8s};

use super::*;

const MINUTE: i64 = 60;

/// Binary logs are pulled each minute from 10:00:00 on; the backup itself is due once a day.
fn world() -> World {
    let mut world = World::new("0 0 * * *", "2025-01-01T09:59:30Z");
    world.seen.settings.binlog_interval = Some(MINUTE);
    world.at("2025-01-01T10:00:00Z");
    world
}

fn books(world: &World) -> &BinlogStatus {
    world.seen.status.binlogs.as_ref().unwrap()
}

/// due, succeeded, failed, skipped, missed.
fn totals(world: &World) -> [i64; 5] {
    let t = books(world).totals;
    let open = i64::from(books(world).open.is_some());
    assert_eq!(t.due, t.succeeded + t.failed + t.skipped + t.missed + open);
    [t.due, t.succeeded, t.failed, t.skipped, t.missed]
}

fn pulls(world: &World) -> Vec<&str> {
    let jobs = world.started.iter().filter(|s| s.action == Action::Binlogs);
    jobs.map(|s| s.name.as_str()).collect()
}

fn name(slot: &str) -> String {
    crds::names::binlogs_name("shop", "uid-shop", t(slot))
}

/// The Job ends well, its pod with a report of what was stored.
fn pulled(world: &mut World, job: &str, said: report::Binlogs) {
    let mut report = Report::new(job);
    report.good = Some(true);
    report.binlogs = Some(said);
    let end = Ended {
        exit_code: 0,
        reason: "Completed".into(),
        message: report.to_termination_message().into(),
        at: Some(world.now),
    };
    world.leave(job, true, Some(end));
}

#[test]
fn each_interval_is_pulled_once_and_stands_in_books_of_its_own() {
    let mut world = world();
    assert_eq!(pulls(&world), [""; 0], "none is due at the beginning");
    assert_eq!(world.wake, Some(t("2025-01-01T10:01:00Z")));
    world.live_to(t("2025-01-01T10:01:00Z"));
    assert_eq!(pulls(&world), [name("2025-01-01T10:01:00Z")]);
    assert_eq!(totals(&world), [1, 0, 0, 0, 0]);
    world.now += Duration::seconds(5);
    world.finish(&name("2025-01-01T10:01:00Z"), true);
    assert_eq!(totals(&world), [1, 1, 0, 0, 0]);
    assert_eq!(world.wake, Some(t("2025-01-01T10:02:00Z")));
    // Of the object's own books nothing has moved.
    let own = world.seen.status.totals.unwrap();
    assert_eq!((own.due, own.manual), (0, 0));
    assert_eq!(world.seen.status.runs, []);
    // What went well goes after a minute.
    world.live_to(t("2025-01-01T10:02:30Z"));
    assert!(
        world
            .deleted
            .contains(&(name("2025-01-01T10:01:00Z"), false))
    );
    assert_eq!(pulls(&world).len(), 2);
}

/// The slot stands in status before the Job is asked for: the plan that opens it creates nothing.
#[test]
fn a_crash_between_books_and_job_neither_loses_nor_doubles_a_slot() {
    let mut world = world();
    world.now = t("2025-01-01T10:01:00Z");
    let opening = plan(&world.seen, world.now, &built);
    assert!(opening.steps.is_empty(), "{:?}", opening.steps);
    let open = opening.status.binlogs.clone().unwrap().open.unwrap();
    assert_eq!(open.job, name("2025-01-01T10:01:00Z"));
    world.seen.status = opening.status;
    // The next leader, a minute and a half later: it looks live, and creates that very Job.
    world.at("2025-01-01T10:02:30Z");
    assert_eq!(pulls(&world), [name("2025-01-01T10:01:00Z")]);
    assert!(world.live_reads > 0);
    // The Job vanishes while it runs: what it pulls is pulled again under the same name.
    world.seen.jobs.clear();
    world.settle();
    assert_eq!(pulls(&world).len(), 2);
    assert_eq!(pulls(&world)[1], name("2025-01-01T10:01:00Z"));
    assert_eq!(totals(&world), [1, 0, 0, 0, 0]);
}

#[test]
fn what_comes_due_meanwhile_is_skipped_but_the_newest_and_an_outage_is_missed() {
    let mut world = world();
    world.live_to(t("2025-01-01T10:01:00Z"));
    // It takes three and a half minutes.
    world.live_to(t("2025-01-01T10:04:30Z"));
    assert_eq!(pulls(&world).len(), 1);
    world.finish(&name("2025-01-01T10:01:00Z"), true);
    assert_eq!(pulls(&world)[1], name("2025-01-01T10:04:00Z"));
    assert_eq!(totals(&world), [4, 1, 0, 2, 0]);
    world.finish(&name("2025-01-01T10:04:00Z"), true);
    // The operator is away for ten minutes.
    world.at("2025-01-01T10:14:10Z");
    assert_eq!(pulls(&world)[2], name("2025-01-01T10:14:00Z"));
    assert_eq!(totals(&world), [14, 2, 0, 2, 9]);
}

#[test]
fn a_suspended_object_pulls_nothing_and_counts_what_it_missed() {
    let mut world = world();
    world.seen.settings.suspend = true;
    world.live_to(t("2025-01-01T10:10:30Z"));
    assert_eq!(pulls(&world), [""; 0]);
    world.seen.settings.suspend = false;
    world.settle();
    assert_eq!(pulls(&world), [name("2025-01-01T10:10:00Z")]);
    assert_eq!(totals(&world), [10, 0, 0, 0, 9]);
}

#[test]
fn an_edited_interval_counts_from_its_first_sight_on() {
    let mut world = world();
    world.seen.settings.binlog_interval = Some(30);
    world.at("2025-01-01T10:00:40Z");
    world.live_to(t("2025-01-01T10:01:10Z"));
    assert_eq!(pulls(&world), [name("2025-01-01T10:01:10Z")]);
    assert_eq!(totals(&world), [1, 0, 0, 0, 0]);
}

#[test]
fn without_the_field_the_books_end_once_no_pull_is_open() {
    let mut world = world();
    world.live_to(t("2025-01-01T10:01:00Z"));
    world.seen.settings.binlog_interval = None;
    world.settle();
    assert!(world.seen.status.binlogs.is_some(), "a pull is open");
    world.finish(&name("2025-01-01T10:01:00Z"), true);
    world.settle();
    assert_eq!(world.seen.status.binlogs, None);
    world.live_to(t("2025-01-01T10:10:00Z"));
    assert_eq!(pulls(&world).len(), 1);
}

#[test]
fn a_failed_pull_is_told_once_and_so_is_its_end() {
    let mut world = world();
    for minute in 1..=4 {
        let slot = format!("2025-01-01T10:0{minute}:00Z");
        world.live_to(t(&slot));
        world.finish(&name(&slot), minute == 4);
    }
    let told: Vec<&str> = world.events.iter().map(|e| e.reason.as_str()).collect();
    let of = |reason: &str| told.iter().filter(|r| **r == reason).count();
    assert_eq!((of("BinlogsFailed"), of("BinlogsPulled")), (1, 1));
    assert_eq!(totals(&world), [4, 1, 3, 0, 0]);
    assert_eq!(books(&world).consecutive_failures, 0);
    assert_eq!(books(&world).message, "");
}

#[test]
fn a_job_that_never_runs_is_given_up_and_the_next_interval_comes() {
    let mut world = world().with(|s| s.startup_deadline = 30);
    world.now = t("2025-01-01T10:01:00Z");
    world.settle();
    let first = name("2025-01-01T10:01:00Z");
    world.seen.jobs[0].ran = false;
    world.live_to(t("2025-01-01T10:01:40Z"));
    assert_eq!(totals(&world), [1, 0, 1, 0, 0]);
    assert!(books(&world).message.contains("not running within 30 s"));
    assert!(world.deleted.contains(&(first, true)));
    world.live_to(t("2025-01-01T10:02:00Z"));
    assert_eq!(pulls(&world)[1], name("2025-01-01T10:02:00Z"));
}

#[test]
fn a_window_grows_and_a_gap_is_told_once() {
    let mut world = world();
    let at = |text: &str| to_k8s(t(text));
    world.live_to(t("2025-01-01T10:01:00Z"));
    let stored = report::Binlogs {
        first: "2025-01-01T09:00:00Z".into(),
        seen: "2025-01-01T10:01:02Z".into(),
        ..report::Binlogs::default()
    };
    pulled(&mut world, &name("2025-01-01T10:01:00Z"), stored);
    let window = Window {
        from: at("2025-01-01T09:00:00Z"),
        until: at("2025-01-01T10:01:02Z"),
    };
    assert_eq!(books(&world).windows, std::slice::from_ref(&window));

    world.live_to(t("2025-01-01T10:02:00Z"));
    let hole = report::Gap {
        cause: "Purged".into(),
        from: "2025-01-01T10:01:02Z".into(),
        to: "2025-01-01T10:01:40Z".into(),
        message: "the server removed binary logs before they were read".into(),
        segment: "a1".into(),
    };
    let stored = report::Binlogs {
        first: "2025-01-01T10:01:40Z".into(),
        seen: "2025-01-01T10:02:01Z".into(),
        gaps: vec![hole],
        ..report::Binlogs::default()
    };
    pulled(&mut world, &name("2025-01-01T10:02:00Z"), stored.clone());
    let begun = Window {
        from: at("2025-01-01T10:01:40Z"),
        until: at("2025-01-01T10:02:01Z"),
    };
    assert_eq!(books(&world).windows, [begun, window]);
    let gap = Gap {
        from: Some(at("2025-01-01T10:01:02Z")),
        to: Some(at("2025-01-01T10:01:40Z")),
        reason: "Purged".into(),
        message: "the server removed binary logs before they were read".into(),
        segment: "a1".into(),
    };
    assert_eq!(books(&world).gaps, [gap]);
    let told: Vec<&EventSpec> = world
        .events
        .iter()
        .filter(|e| e.reason == "BinlogGap")
        .collect();
    assert_eq!(told.len(), 1);
    assert!(told[0].warning);
    assert_eq!(
        told[0].note,
        "between 2025-01-01T10:01:02Z and 2025-01-01T10:01:40Z events of the binary log may be missing: the server removed binary logs before they were read; no moment in between can be restored to"
    );
}

/// Receivers hear of a gap and of the backup that ends it, each once; a pull that fails is another matter.
#[test]
fn a_gap_and_its_end_are_told_once() {
    let mut world = world().with(|s| {
        s.own_image = true;
        s.notices.gap = true;
        s.notices.recovered = true;
    });
    let told = |world: &World| -> Vec<(String, String)> {
        let notices = world.started.iter().filter_map(|s| s.notice.as_ref());
        notices
            .map(|n| (n.event.as_str().to_owned(), n.message.clone()))
            .collect()
    };
    let sent = |world: &mut World| {
        let jobs = world.seen.jobs.iter();
        let open = jobs.filter(|j| j.is_active() && j.action == Action::Notify);
        let names: Vec<String> = open.map(|j| j.name.to_string()).collect();
        for name in names {
            world.finish(&name, true);
        }
    };
    let said = |from: &str, until: &str, gap: Option<&str>| report::Binlogs {
        first: from.into(),
        seen: until.into(),
        stored_bytes: 100,
        lag_seconds: Some(2),
        gaps: gap
            .map(|since| report::Gap {
                cause: "Purged".into(),
                from: since.into(),
                to: from.into(),
                message: "purged".into(),
                segment: "a1".into(),
            })
            .into_iter()
            .collect(),
        ..report::Binlogs::default()
    };
    let slot = |minute: u32| format!("2025-01-01T10:{minute:02}:00Z");
    let pull = |world: &mut World, minute: u32, said: report::Binlogs| {
        world.live_to(t(&slot(minute)));
        pulled(world, &name(&slot(minute)), said);
    };
    pull(&mut world, 1, said("2025-01-01T09:00:00Z", &slot(1), None));
    // The hole is told by each pull that stores something behind it, and stays one.
    for minute in 2..5 {
        let gap = said("2025-01-01T10:01:40Z", &slot(minute), Some(&slot(1)));
        pull(&mut world, minute, gap);
        sent(&mut world);
    }
    let gap = (
        "Gap".to_owned(),
        "between 2025-01-01T10:01:00Z and 2025-01-01T10:01:40Z events of the binary log may be missing: purged; no moment in between can be restored to".to_owned(),
    );
    assert_eq!(told(&world), std::slice::from_ref(&gap));
    world.live_to(t(&slot(5)));
    world.finish(&name(&slot(5)), false);
    pull(&mut world, 6, said("", &slot(6), None));
    assert_eq!(told(&world).len(), 1);
    assert_eq!(books(&world).incomplete_since, Some(to_k8s(t(&slot(2)))));
    // A backup begins anew.
    world.ask(Action::Backup, "anew", |_| {});
    let run = world.newest().name.clone();
    world.finish(&run, true);
    world.live_to(t("2025-01-01T10:06:40Z"));
    sent(&mut world);
    pull(&mut world, 7, said("", &slot(7), None));
    sent(&mut world);
    let found = told(&world);
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!(found[1].0, "Recovered");
    assert!(found[1].1.starts_with("every moment from "), "{found:?}");
    let books = books(&world);
    assert_eq!(
        (
            books.incomplete_since.clone(),
            books.gaps_found,
            books.stored_bytes,
            books.lag_seconds
        ),
        (None, 1, 600, Some(2))
    );
}

/// Pulled continuously: the Job of a slot stays until the next slot, whose Job follows at once.
#[test]
fn a_pull_that_stays_is_followed_by_the_next_and_none_is_skipped() {
    let mut world = world();
    world.seen.status.binlogs = None;
    world.seen.settings.binlogs_stay = true;
    world.settle();
    let begun = [name("2025-01-01T10:00:00Z")];
    assert_eq!(pulls(&world), begun, "the first begins at once");
    let until = |world: &World| {
        let newest = world.started.iter().rev();
        let mut newest = newest.filter(|s| s.action == Action::Binlogs);
        newest.next().and_then(|s| s.until)
    };
    assert_eq!(until(&world), Some(t("2025-01-01T10:01:00Z")));
    for minute in 1..=20 {
        let at = t("2025-01-01T10:00:00Z") + Duration::minutes(minute);
        // It ends a little before or behind its time, as its clock says.
        world.live_to(at + Duration::seconds(minute % 7 - 2));
        let job = pulls(&world).last().unwrap().to_string();
        let said = report::Binlogs {
            first: "2025-01-01T09:59:00Z".into(),
            seen: rfc3339(world.now),
            ..report::Binlogs::default()
        };
        pulled(&mut world, &job, said);
        world.live_to(at + Duration::seconds(6));
        assert_eq!(pulls(&world).last(), Some(&&*name(&rfc3339(at))));
        assert_eq!(until(&world), Some(at + Duration::minutes(1)));
    }
    assert_eq!(totals(&world), [21, 20, 0, 0, 0]);
    assert_eq!(books(&world).windows.len(), 1);
    assert!(books(&world).continuous);
    // One that goes on for longer costs the slots that it was in the way of.
    let job = name("2025-01-01T10:20:00Z");
    world.live_to(t("2025-01-01T10:22:30Z"));
    world.finish(&job, false);
    assert_eq!(totals(&world), [23, 20, 1, 1, 0]);
    assert_eq!(pulls(&world).last(), Some(&&*name("2025-01-01T10:22:00Z")));
}

/// An edit does not wait for the end of a pull that stays: its Job is ended.
#[test]
fn a_pull_that_stays_is_taken_back_where_it_is_not_wanted_any_more() {
    for (interval, stays) in [
        (None, true),
        (Some(MINUTE), false),
        (Some(3600), true),
        (None, false),
    ] {
        let mut world = world();
        world.seen.status.binlogs = None;
        world.seen.settings.binlogs_stay = true;
        world.seen.settings.binlog_interval = Some(86_400);
        world.settle();
        let job = name("2025-01-01T10:00:00Z");
        assert_eq!(pulls(&world), [job.as_str()]);
        world.seen.settings.binlog_interval = interval;
        world.seen.settings.binlogs_stay = stays;
        world.at("2025-01-01T10:10:30Z");
        assert!(world.deleted.contains(&(job, true)), "{interval:?} {stays}");
        let Some(interval) = interval else {
            assert_eq!(world.seen.status.binlogs, None);
            continue;
        };
        let due = if stays {
            name("2025-01-01T10:10:30Z")
        } else {
            world.live_to(t("2025-01-01T10:11:30Z"));
            name("2025-01-01T10:11:30Z")
        };
        assert_eq!(pulls(&world).last(), Some(&&*due), "{interval} {stays}");
        assert_eq!(totals(&world), [2, 0, 0, 1, 0]);
    }
}

/// Its slot would name the Job that is ended, which would stay as it was told first.
#[test]
fn an_edit_in_the_second_in_which_a_pull_began_has_a_pull_of_its_own() {
    let mut world = world();
    world.seen.status.binlogs = None;
    world.seen.settings.binlogs_stay = true;
    world.seen.settings.binlog_interval = Some(86_400);
    world.settle();
    let job = name("2025-01-01T10:00:00Z");
    assert_eq!(pulls(&world), [job.as_str()]);
    world.seen.settings.binlog_interval = Some(MINUTE);
    world.settle();
    assert!(world.deleted.contains(&(job, true)));
    world.live_to(t("2025-01-01T10:00:02Z"));
    let due = name("2025-01-01T10:00:01Z");
    assert_eq!(pulls(&world).last(), Some(&&*due));
}

/// Books and backups beside each other, over a day of random ends.
#[test]
fn backups_run_as_if_there_were_no_binary_logs() {
    let ends = |interval: Option<i64>| {
        let mut world = World::new("*/7 * * * *", "2025-01-01T09:59:30Z");
        world.seen.settings.binlog_interval = interval;
        world.settle();
        for minute in 1..180 {
            let now = t("2025-01-01T10:00:00Z") + Duration::minutes(minute);
            world.live_to(now);
            let open: Vec<String> = world
                .seen
                .jobs
                .iter()
                .filter(|j| j.is_active())
                .map(|j| j.name.to_string())
                .collect();
            for job in open {
                world.finish(&job, minute % 5 != 0);
            }
        }
        (world.slots(), world.seen.status.totals)
    };
    assert_eq!(ends(Some(45)), ends(None));
}
