//! What somebody with the right to write objects, Jobs, pods and CronJobs can do to others, and to
//! the operator: arbitrary metadata, in other namespaces and in the object's own.
//!
//! A story is made from one number, which a failure prints; `HOSTILE_SEED` plays that one alone.

use chrono::{DateTime, Duration, Utc};
use crds::labels;
use crds::report::Report;
use crds::time::{parse_rfc3339, rfc3339};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::driver::{Caches, Ending, OBJECT, Scenario, Try};
use super::scenarios;
use crate::fake_api::{State, key};

/// A story ends here.
const END: &str = "2025-01-15T10:20:00Z";
/// The one object in whose name others speak.
const VICTIM: &str = "uid-1";
const OTHERS: &str = "evil";
/// Most writes a minute while nobody asks for anything: two a second.
const MOST: usize = 120;
/// Writes that one thing somebody wrote may cost: a Job, its run's status as it moves, events.
const EACH: usize = 12;
/// Steps in which the operator has to come to rest.
const STEPS: usize = 1000;

/// Numbers that follow from a seed.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    fn of<T: Clone>(&mut self, all: &[T]) -> T {
        all[usize::try_from(self.below(all.len() as u64)).unwrap()].clone()
    }
}

fn text(dice: &mut Dice) -> String {
    let long = "x".repeat(5000);
    dice.of(&[
        "",
        "true",
        VICTIM,
        OBJECT,
        "2030-01-01T00:00:00Z",
        "9999-12-31T23:59:59Z",
        "0000-01-01T00:00:00+23:59",
        "2025-01-15T10:10:00Z",
        "+262143-01-01T00:00:00Z",
        "Schedule",
        "Manual",
        "Backup",
        "-9223372036854775808",
        "\u{202e}\u{0}\n{\"",
        &long,
    ])
    .to_owned()
}

fn time(dice: &mut Dice, now: DateTime<Utc>) -> String {
    let seconds = [-86_400, -600, -30, 0, 30, 600, 86_400, 157_680_000];
    rfc3339(now + Duration::seconds(dice.of(&seconds)))
}

fn number(dice: &mut Dice) -> i64 {
    dice.of(&[
        0,
        1,
        -1,
        30,
        600,
        i64::from(i32::MAX),
        i64::MAX,
        i64::MIN,
        8_208_468_115_199,
    ])
}

/// Labels, annotations and owners that claim to be of the operator.
fn metadata(dice: &mut Dice, state: &State, namespace: &str, name: &str) -> Value {
    let uid = dice.of(&[VICTIM, VICTIM, "uid-2", "no-such"]).to_owned();
    let mut meta = json!({
        "name": name, "namespace": namespace,
        "labels": {labels::MANAGED_BY: labels::MANAGER},
        "annotations": {labels::OWNER_KIND: "MysqlBackup", labels::OWNER_NAME: OBJECT},
    });
    if !dice.one_in(4) {
        meta["labels"][labels::OWNER_UID] = json!(uid);
    }
    for key in [
        labels::SCHEDULED_AT,
        labels::TRIGGER,
        labels::REQUEST_ID,
        labels::ACTION,
    ] {
        if dice.one_in(2) {
            let now = state.now;
            let value = if dice.one_in(2) {
                time(dice, now)
            } else {
                text(dice)
            };
            meta["annotations"][key] = json!(value);
        }
    }
    if !dice.one_in(4) {
        let kind = dice.of(&["MysqlBackup", "MysqlBackup", "Backup", "Restore", "Job"]);
        let group = dice.of(&["batch.isekiro.com/v1", "gobackup.io/v1", "v1", ""]);
        meta["ownerReferences"] = json!([{
            "apiVersion": group, "kind": kind, "name": OBJECT, "uid": uid,
            "controller": !dice.one_in(4), "blockOwnerDeletion": true,
        }]);
    }
    if dice.one_in(6) {
        meta["finalizers"] = json!(["example.org/for-ever"]);
    }
    meta
}

fn job_status(dice: &mut Dice, now: DateTime<Utc>) -> Value {
    let begun = rfc3339(now);
    match dice.below(4) {
        0 => json!({}),
        1 => json!({"startTime": begun, "active": 1}),
        2 => {
            json!({"startTime": begun, "completionTime": begun, "succeeded": 1,
            "conditions": [{"type": "Complete", "status": "True", "lastTransitionTime": begun}]})
        }
        _ => json!({"startTime": begun, "failed": i32::MAX,
            "conditions": [{"type": "Failed", "status": "True", "reason": text(dice), "message": text(dice)}]}),
    }
}

fn forge_job(dice: &mut Dice, state: &mut State, namespace: &str) {
    // Sometimes the very name of the run that comes next.
    let minutes = state.now.timestamp() / 60;
    let names = [
        format!("{OBJECT}-{}", minutes + 5 - minutes % 5),
        format!("job-{}", dice.below(20)),
    ];
    let name = dice.of(&names);
    if state.get("jobs", &key(Some(namespace), &name)).is_some() {
        return;
    }
    let meta = metadata(dice, state, namespace, &name);
    let mut job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": meta});
    let suspend = dice.one_in(2);
    job["spec"] = json!({"suspend": suspend, "template": {"spec": {"containers": []}}});
    job["status"] = job_status(dice, state.now);
    state.put("jobs", job);
}

fn forge_pod(dice: &mut Dice, state: &mut State, namespace: &str) {
    let name = format!("pod-{}", dice.below(20));
    let mut meta = metadata(dice, state, namespace, &name);
    // The UID of a Job that is really there is no secret.
    let real = state.objects.iter().filter(|((r, _), _)| r == "jobs");
    let uids: Vec<Value> = real
        .map(|(_, job)| job["metadata"]["uid"].clone())
        .collect();
    if !uids.is_empty() {
        let uid = dice.of(&uids);
        meta["ownerReferences"] = json!([{"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": uid, "controller": !dice.one_in(4)}]);
    }
    let mut report = Report::new("forged");
    report.good = Some(dice.one_in(2));
    report.reason = dice.of(&["Forged", "AccessDenied"]).to_owned();
    report.stored_bytes = Some(number(dice));
    let said = [report.to_termination_message(), text(dice)];
    let state_of = match dice.below(3) {
        0 => json!({"waiting": {"reason": "ImagePullBackOff", "message": text(dice)}}),
        1 => json!({"running": {}}),
        _ => {
            json!({"terminated": {"exitCode": dice.of(&[0, 1, i32::MAX, i32::MIN]), "message": dice.of(&said)}})
        }
    };
    let container = |name: &str, state: Value| json!({"name": name, "image": "i", "imageID": "", "ready": false, "restartCount": i32::MAX, "state": state});
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": meta,
        "spec": {"restartPolicy": "Never", "containers": []},
        "status": {"containerStatuses": [container("backup", state_of), container("proxy", json!({"running": {}}))]},
    });
    state.put("pods", pod);
}

fn forge_cron_job(dice: &mut Dice, state: &mut State, namespace: &str) {
    let meta = metadata(dice, state, namespace, "cron");
    state.put(
        "cronjobs",
        json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": meta,
            "spec": {"schedule": "* * * * *", "suspend": dice.one_in(2),
                "jobTemplate": {"spec": {"template": {"spec": {"containers": []}}}}}}),
    );
}

/// An object with whatever a schema would let through, and annotations in floods. Gives their number.
fn forge_object(dice: &mut Dice, state: &mut State, namespace: &str) -> usize {
    let name = format!("mine-{}", dice.below(3));
    let place = key(Some(namespace), &name);
    let schedule = dice.of(&[
        "* * * * *",
        "*/5 * * * *",
        "0 0 1 1 *",
        "0 0 30 2 *",
        "@every 1m",
        "x",
    ]);
    let spec = json!({
        "schedule": schedule, "image": "mine:v1",
        "timeZone": dice.of(&[Value::Null, json!("Asia/Tokyo"), json!("Nowhere/Land")]),
        "concurrencyPolicy": dice.of(&["Forbid", "Allow", "Replace"]),
        "startupDeadlineSeconds": number(dice), "startingDeadlineSeconds": number(dice),
        "jitterSeconds": number(dice), "activeDeadlineSeconds": number(dice),
        "successfulJobsHistoryLimit": dice.of(&[0, 3, i32::MAX]),
        "notifications": [{"type": "Slack", "urlSecretKeyRef": {"name": "a", "key": "b"}, "events": ["Missed", "Overdue", "Failure"]}],
    });
    let mut notes = serde_json::Map::new();
    for key in [
        labels::SUSPENDED_SINCE,
        labels::RESUME_AT,
        labels::SKIP_SLOTS_UNTIL,
        labels::SCHEDULE_SINCE,
    ] {
        if dice.one_in(3) {
            let now = state.now;
            let value = if dice.one_in(2) {
                time(dice, now)
            } else {
                text(dice)
            };
            notes.insert(key.to_owned(), json!(value));
        }
    }
    for n in 0..dice.of(&[0, 1, 30]) {
        let request = crds::request::Request::new(
            crds::request::Action::Backup,
            &format!("r-{n}-{}", dice.below(9)),
            "me",
            state.now,
        );
        let value = if dice.one_in(5) {
            text(dice)
        } else {
            request.annotation_value()
        };
        let key = crds::request::Request::annotation_key(&request.id);
        notes.insert(key, json!(value));
    }
    let items = 1 + notes.len();
    if state.get("mysqlbackups", &place).is_some() {
        if dice.one_in(4) {
            state.remove("mysqlbackups", &place);
        } else {
            state.change("mysqlbackups", &place, |o| {
                o["spec"] = spec;
                o["metadata"]["annotations"] = Value::Object(notes);
            });
        }
        return items;
    }
    state.put(
        "mysqlbackups",
        json!({"apiVersion": "batch.isekiro.com/v1", "kind": "MysqlBackup",
            "metadata": {"name": name, "namespace": namespace, "annotations": notes}, "spec": spec}),
    );
    items
}

/// Writes something; gives how many things that is.
fn act(dice: &mut Dice, state: &mut State, namespace: &str) -> usize {
    match dice.below(8) {
        0..=2 => forge_job(dice, state, namespace),
        3 | 4 => forge_pod(dice, state, namespace),
        5 => forge_cron_job(dice, state, namespace),
        6 => return forge_object(dice, state, namespace),
        _ => {
            // What was forged goes again; never what is the victim's.
            let forged = |(r, name): &&(String, String)| {
                matches!(r.as_str(), "jobs" | "pods" | "cronjobs")
                    && (name.contains('/') || name.starts_with("job-") || name.starts_with("pod-"))
            };
            let all: Vec<_> = state.objects.keys().filter(forged).cloned().collect();
            if !all.is_empty() {
                let (resource, name) = dice.of(&all);
                state.remove(&resource, &name);
            }
        }
    }
    1
}

/// A story at its end.
struct Story {
    world: Try,
    /// How much somebody wrote, and when.
    written: Vec<(DateTime<Utc>, usize)>,
}

impl Story {
    /// Fails if the operator wrote more in a minute than what was written into the cluster in it, and
    /// in the one before, accounts for.
    fn check_writes(&self, seed: u64) {
        let state = self.world.state();
        for (from, _) in &state.writes {
            let until = *from + Duration::minutes(1);
            let mine = |at: &DateTime<Utc>| *at >= *from && *at < until;
            let most = state.writes.iter().filter(|(at, _)| mine(at)).count();
            let theirs = |at: &DateTime<Utc>| *at >= *from - Duration::minutes(1) && *at < until;
            let items = self
                .written
                .iter()
                .filter(|(at, _)| theirs(at))
                .map(|(_, n)| n);
            let allowed = MOST + EACH * items.sum::<usize>();
            assert!(
                most <= allowed,
                "{most} writes a minute, {allowed} allowed, seed {seed}"
            );
        }
    }
}

/// The victim alone, or with somebody beside it who acts in this namespace.
async fn play(seed: u64, namespace: Option<&str>) -> Story {
    let mut story: Scenario = scenarios::all()
        .into_iter()
        .find(|s| s.name == "slots")
        .unwrap();
    story.spec = json!({"schedule": "*/5 * * * *", "image": "dump:v1"});
    story.lasts = 70;
    let mut world = Try::new(&story, None, Caches::Fresh);
    let mut written = vec![];
    let mut dice = Dice(seed);
    let end = parse_rfc3339(END).unwrap();
    let mut next_act = world.now() + Duration::seconds(20);
    loop {
        world.work_at_most(STEPS).await;
        let now = world.now();
        let mut next = vec![end];
        next.extend(world.jobs_move());
        next.extend(world.wakes());
        if namespace.is_some() {
            next.push(next_act);
        }
        let then = next.into_iter().min().unwrap();
        let then = then.max(now + Duration::milliseconds(1));
        if then > end || now >= end {
            return Story { world, written };
        }
        world.pass_to(then).await;
        if let Some(namespace) = namespace.filter(|_| then >= next_act) {
            for _ in 0..=dice.below(6) {
                let items = act(&mut dice, &mut world.state(), namespace);
                written.push((then, items));
            }
            next_act = then + Duration::seconds(1 + i64::try_from(dice.below(60)).unwrap());
        }
    }
}

/// Writes into the victim's namespace, in order.
fn writes(world: &Try) -> Vec<(DateTime<Utc>, String)> {
    let state = world.state();
    let here = |(_, write): &&(DateTime<Utc>, String)| write.contains("/namespaces/default/");
    state.writes.iter().filter(here).cloned().collect()
}

fn runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().start_paused(true).build().unwrap()
}

#[expect(clippy::disallowed_methods, reason = "a test that is played again")]
fn seeds() -> BoxedStrategy<u64> {
    match std::env::var("HOSTILE_SEED")
        .ok()
        .and_then(|s| s.parse().ok())
    {
        Some(seed) => Just(seed).boxed(),
        None => any::<u64>().boxed(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, max_shrink_iters: 0, ..ProptestConfig::default() })]

    /// Whatever is written in other namespaces: the object's run, its history and every write about
    /// it are the same as without. Nothing panics, the operator comes to rest, its writes are bounded.
    #[test]
    fn o2_other_namespaces_change_nothing_of_an_object(seed in seeds()) {
        runtime().block_on(async {
            let plain = play(seed, None).await;
            let attacked = play(seed, Some(OTHERS)).await;
            let (expected, found): (Ending, Ending) = (plain.world.ending(), attacked.world.ending());
            assert_eq!(expected.created.len(), 4, "{expected:?}");
            assert_eq!(found, expected, "seed {seed}");
            assert_eq!(writes(&attacked.world), writes(&plain.world), "seed {seed}");
            attacked.check_writes(seed);
        });
    }

    /// In the object's own namespace much can be forged, but no slot is accounted before it is due.
    #[test]
    fn o2_in_its_own_namespace_nobody_forges_the_future(seed in seeds()) {
        runtime().block_on(async {
            let attacked = play(seed, Some("default")).await;
            let state = attacked.world.state();
            let object = state.get("mysqlbackups", OBJECT).unwrap();
            drop(state);
            let until = object["status"]["accountedUntil"].as_str().and_then(parse_rfc3339);
            assert!(until.unwrap() <= parse_rfc3339(END).unwrap(), "seed {seed}: {until:?}");
            attacked.check_writes(seed);
        });
    }
}

/// A Job that names the object as its controller, in this namespace.
fn forged(namespace: &str, name: &str, slot: &str) -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {
            "name": name, "namespace": namespace, "labels": {labels::OWNER_UID: VICTIM},
            "annotations": {labels::OWNER_KIND: "MysqlBackup", labels::OWNER_NAME: OBJECT, labels::SCHEDULED_AT: slot, labels::TRIGGER: "Schedule"},
            "ownerReferences": [{"apiVersion": "batch.isekiro.com/v1", "kind": "MysqlBackup", "name": OBJECT, "uid": VICTIM, "controller": true}],
        },
        "spec": {"suspend": true, "template": {"spec": {"containers": []}}},
        "status": {},
    })
}

/// Plays to the end with these Jobs there from the beginning.
async fn concurrency_hold(jobs: &[Value], limit: Option<usize>) -> Ending {
    let mut story: Scenario = scenarios::all()
        .into_iter()
        .find(|s| s.name == "slots")
        .unwrap();
    story.spec = json!({"schedule": "*/5 * * * *", "image": "dump:v1"});
    story.lasts = 70;
    (story.steps, story.end) = (vec![], END);
    let first = Try::new(&story, None, Caches::Fresh);
    for job in jobs {
        first.state().put("jobs", job.clone());
    }
    let mut config = super::driver::config(super::driver::HERE);
    config.max_active_runs = limit;
    let mut world = first.another(&config);
    world.play().await
}

#[tokio::test(start_paused = true)]
async fn o2_a_slot_of_the_future_stops_no_run() {
    let plain = concurrency_hold(&[], None).await;
    assert_eq!(plain.created.len(), 4);
    for namespace in [OTHERS, "default"] {
        let jobs = [forged(namespace, "future", "2030-01-01T00:00:00Z")];
        let mut found = concurrency_hold(&jobs, None).await;
        found.jobs.retain(|name| name != "future");
        assert_eq!(found, plain, "{namespace}");
    }
}

#[tokio::test(start_paused = true)]
async fn o2_jobs_of_other_namespaces_take_no_place() {
    let plain = concurrency_hold(&[], Some(1)).await;
    let jobs: Vec<Value> = (0..5)
        .map(|n| forged(OTHERS, &format!("held-{n}"), "2025-01-15T10:05:00Z"))
        .collect();
    assert_eq!(concurrency_hold(&jobs, Some(1)).await, plain);
}
