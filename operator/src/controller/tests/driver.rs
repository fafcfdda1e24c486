//! Runs the real controller against the fake server: a story of steps in time, one fault, restarts.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use chrono::{DateTime, Duration, Utc};
use crds::labels;
use crds::report::Report;
use crds::run_spec::SPEC_ENV;
use crds::time::{parse_rfc3339, rfc3339};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::Pod;
use kube::core::{DynamicObject, PartialObjectMeta};
use serde_json::{Value, json};

use super::super::Controller;
use super::super::watch::{CronJobs, Feed, ForeignJobs, Jobs, Objects, Pods};
use crate::context::{ApiClient, Clock, Config, Context, Leadership};
use crate::fake_api::{Change, Fault, Server, State};
use crate::metrics::Metrics;
use crate::mysql_backup::MysqlBackups;

pub(super) const OBJECT: &str = "shop";

/// The installation under test.
pub(super) const HERE: &str = "backup-system/backup-operator";

/// What a restarted process knows at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Caches {
    /// Everything there is.
    Fresh,
    /// The state of some changes ago; the rest comes one by one.
    Stale(usize),
    /// The n-th change is never brought; the watch is begun anew at rest.
    Dropping(usize),
}

/// One thing that happens in the cluster.
pub(super) type Act = fn(&mut State);

/// A story: what happens when, and how Jobs behave.
#[derive(Clone)]
pub(super) struct Scenario {
    pub(super) name: &'static str,
    pub(super) spec: Value,
    pub(super) steps: Vec<(&'static str, Act)>,
    /// The operator is not there in this stretch.
    pub(super) away: Option<(&'static str, &'static str)>,
    pub(super) end: &'static str,
    /// Seconds a Job takes.
    pub(super) lasts: i64,
    /// Seconds after its end at which a Job is removed by its TTL.
    pub(super) ttl: Option<i64>,
}

/// What there is in the end, without what depends on the second or on numbering.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ending {
    pub(super) totals: Value,
    /// Those of binary logs.
    pub(super) pulls: Value,
    pub(super) runs: Vec<(String, String, String)>,
    pub(super) missed: Value,
    pub(super) requests: Vec<(String, String)>,
    pub(super) accounted: Value,
    pub(super) annotations: Vec<String>,
    pub(super) jobs: Vec<String>,
    pub(super) suspended: Value,
    pub(super) created: BTreeMap<String, usize>,
}

/// One try of a scenario.
pub(super) struct Try {
    scenario: Scenario,
    server: Server,
    clock: Arc<AtomicI64>,
    controller: Arc<Controller>,
    caches: Caches,
    /// Changes taken in so far.
    cursor: usize,
    /// How far the cluster's clock is ahead of the operator's.
    ahead: Duration,
}

fn at(text: &str) -> DateTime<Utc> {
    parse_rfc3339(text).unwrap()
}

impl Try {
    /// The story from its beginning.
    pub(super) fn new(scenario: &Scenario, fault: Option<(usize, Fault)>, caches: Caches) -> Self {
        let mut state = State {
            now: at(super::BEGIN),
            fault,
            ..State::default()
        };
        let object = json!({
            "apiVersion": "batch.isekiro.com/v1", "kind": "MysqlBackup",
            "metadata": {"name": OBJECT}, "spec": scenario.spec,
        });
        state.put("mysqlbackups", object);
        Self::from(scenario, state, caches)
    }

    /// The story from a state in the middle of it, in which a process begins.
    pub(super) fn from(scenario: &Scenario, state: State, caches: Caches) -> Self {
        let clock = Arc::new(AtomicI64::new(state.now.timestamp_millis()));
        let server = Server::of(state);
        let controller = start(&server, &clock, &config(HERE));
        let mut new = Self {
            scenario: scenario.clone(),
            server,
            clock,
            controller,
            caches,
            cursor: 0,
            ahead: Duration::zero(),
        };
        new.load();
        new
    }

    /// The same, keeping the state before and after each call.
    pub(super) fn kept(scenario: &Scenario) -> Self {
        let mut new = Self::new(scenario, None, Caches::Fresh);
        new.server.keep_points();
        new.controller = start(&new.server, &new.clock, &config(HERE));
        new.load();
        new
    }

    /// Another installation of the operator, in the same cluster at the same time.
    pub(super) fn concurrency_hold(&self, installation: &str) -> Self {
        self.another(&config(installation))
    }

    /// A new process in the same cluster.
    pub(super) fn another(&self, config: &Config) -> Self {
        let mut new = Self {
            scenario: self.scenario.clone(),
            server: self.server.clone(),
            clock: self.clock.clone(),
            controller: start(&self.server, &self.clock, config),
            caches: Caches::Fresh,
            cursor: 0,
            ahead: Duration::zero(),
        };
        new.load();
        new
    }

    pub(super) fn points(&self) -> Vec<[State; 2]> {
        self.server.points()
    }

    pub(super) fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.server.state()
    }

    pub(super) fn now(&self) -> DateTime<Utc> {
        DateTime::from_timestamp_millis(self.clock.load(Ordering::SeqCst)).unwrap()
    }

    /// The first lists.
    fn load(&mut self) {
        let history = self.server.state().history.clone();
        self.cursor = 0;
        let known = match self.caches {
            Caches::Stale(behind) => history.len().saturating_sub(behind).max(1),
            _ => history.len(),
        };
        for change in &history[..known] {
            self.take(change);
        }
        self.cursor = known;
    }

    fn take(&self, change: &Change) {
        let objects = Objects {
            controller: self.controller.clone(),
            kind: 0,
        };
        let jobs = Jobs(self.controller.clone());
        match change.resource.as_str() {
            "mysqlbackups" => {
                let object: DynamicObject = serde_json::from_value(change.object.clone()).unwrap();
                if change.deleted {
                    objects.delete(&object)
                } else {
                    drop(objects.apply(&object))
                }
            }
            "pods" => {
                let pods = Pods(self.controller.clone());
                let pod: Pod = serde_json::from_value(change.object.clone()).unwrap();
                if change.deleted {
                    pods.delete(&pod)
                } else {
                    drop(pods.apply(&pod))
                }
            }
            "cronjobs" => {
                let cron_jobs = CronJobs(self.controller.clone());
                let cron_job: CronJob = serde_json::from_value(change.object.clone()).unwrap();
                if change.deleted {
                    cron_jobs.delete(&cron_job)
                } else {
                    drop(cron_jobs.apply(&cron_job))
                }
            }
            // The watch of those that carry our label does not bring them.
            "jobs" if change.object["metadata"]["labels"][labels::OWNER_UID].is_null() => {
                let foreign_jobs = ForeignJobs(self.controller.clone());
                let job: PartialObjectMeta<Job> =
                    serde_json::from_value(change.object.clone()).unwrap();
                if change.deleted {
                    foreign_jobs.delete(&job)
                } else {
                    drop(foreign_jobs.apply(&job))
                }
            }
            "jobs" => {
                let job: Job = serde_json::from_value(change.object.clone()).unwrap();
                if change.deleted {
                    jobs.delete(&job)
                } else {
                    drop(jobs.apply(&job))
                }
            }
            _ => {}
        }
    }

    /// Brings the next changes: all, or one if the caches are behind. False if there was none.
    fn deliver(&mut self) -> bool {
        let stale = matches!(self.caches, Caches::Stale(_));
        let most = if stale { 1 } else { usize::MAX };
        let fresh: Vec<_> = self
            .server
            .state()
            .history
            .iter()
            .skip(self.cursor)
            .take(most)
            .cloned()
            .collect();
        for change in &fresh {
            if self.caches != Caches::Dropping(self.cursor) {
                self.take(change);
            }
            self.cursor += 1;
        }
        !fresh.is_empty()
    }

    /// A watch that lost a change is begun anew.
    fn relist(&mut self) -> bool {
        let Caches::Dropping(index) = self.caches else {
            return false;
        };
        let history = self.server.state().history.clone();
        if index >= history.len() {
            return false;
        }
        self.take(&history[index]);
        for change in &history[index..] {
            self.take(change);
        }
        self.caches = Caches::Fresh;
        true
    }

    /// Works until nothing is left to do at this instant.
    pub(super) async fn work(&mut self) {
        self.work_at_most(500).await;
    }

    /// As [`Try::work`], in so many steps at most.
    pub(super) async fn work_at_most(&mut self, steps: usize) {
        for _ in 0..steps {
            if !self.step().await {
                return;
            }
        }
        let state = self.server.state();
        let last: Vec<_> = state.writes.iter().rev().take(12).collect();
        panic!(
            "{}: the operator does not come to rest: {last:#?}",
            self.scenario.name
        );
    }

    /// Takes in what there is and reconciles once. False if nothing was left to do.
    pub(super) async fn step(&mut self) -> bool {
        let brought = self.deliver();
        self.controller.queue.fire(self.now());
        let Some(key) = self.controller.queue.try_next() else {
            return brought || self.relist();
        };
        let controller = self.controller.clone();
        controller.turn(&key).await;
        true
    }

    /// When this process wakes next.
    pub(super) fn wakes(&self) -> Option<DateTime<Utc>> {
        self.controller.queue.fire(DateTime::<Utc>::MIN_UTC)
    }

    /// Sets the operator's wall clock; no time passes, and the cluster keeps its own.
    pub(super) fn step_clock(&mut self, to: DateTime<Utc>) {
        self.ahead += self.now() - to;
        self.clock.store(to.timestamp_millis(), Ordering::SeqCst);
    }

    /// Time passes to `then`, for clocks, server and Jobs.
    pub(super) async fn pass_to(&self, then: DateTime<Utc>) {
        let passed = (then - self.now()).to_std().unwrap_or_default();
        tokio::time::advance(passed).await;
        self.clock.store(then.timestamp_millis(), Ordering::SeqCst);
        self.server.state().now = then + self.ahead;
        self.move_jobs(then + self.ahead);
    }

    /// The whole story.
    pub(super) async fn play(&mut self) -> Ending {
        let steps = self.scenario.steps.clone();
        let end = at(self.scenario.end);
        let away = self.scenario.away.map(|(from, to)| (at(from), at(to)));
        for _ in 0..5000 {
            let now = self.now();
            let gone = away.is_some_and(|(from, to)| from <= now && now < to);
            if !gone {
                self.work().await;
            }
            let step = steps
                .get(self.server.state().steps)
                .map(|(when, act)| (at(when), *act));
            let mut next = vec![end];
            next.extend(step.map(|(when, _)| when));
            next.extend(self.jobs_move());
            next.extend(
                away.iter()
                    .flat_map(|(from, to)| [*from, *to])
                    .filter(|t| *t > now),
            );
            if !gone {
                next.extend(self.wakes());
            }
            let then = next
                .into_iter()
                .min()
                .unwrap()
                .max(now + Duration::milliseconds(1));
            if then > end {
                return self.ending();
            }
            self.pass_to(then).await;
            if let Some((_, act)) = step.filter(|(when, _)| *when <= then) {
                self.server.state().steps += 1;
                act(&mut self.server.state());
            }
        }
        panic!("{}: time stands still", self.scenario.name);
    }

    /// When the Job controller does something next.
    pub(super) fn jobs_move(&self) -> Vec<DateTime<Utc>> {
        let state = self.server.state();
        let jobs = state.objects.iter().filter(|((r, _), _)| r == "jobs");
        jobs.filter_map(|(_, job)| self.job_moves(job)).collect()
    }

    fn job_moves(&self, job: &Value) -> Option<DateTime<Utc>> {
        if let Some(deleting) = job["metadata"]["deletionTimestamp"].as_str() {
            return Some(at(deleting) + Duration::seconds(20));
        }
        if let Some(done) = job["status"]["completionTime"].as_str() {
            return Some(at(done) + Duration::seconds(self.scenario.ttl?));
        }
        let starts = at(job["status"]["startTime"].as_str()?);
        // One that stays ends by the moment that it was told.
        let stays = stays_until(job).map(|until| until.max(starts) + Duration::seconds(2));
        Some(stays.unwrap_or(starts + Duration::seconds(self.scenario.lasts)))
    }

    fn move_jobs(&self, now: DateTime<Utc>) {
        let mut state = self.server.state();
        let due: Vec<(String, Value)> = state
            .objects
            .iter()
            .filter(|((r, _), job)| r == "jobs" && self.job_moves(job).is_some_and(|t| t <= now))
            .map(|((_, name), job)| (name.clone(), job.clone()))
            .collect();
        for (name, job) in due {
            let ended = !job["status"]["completionTime"].is_null();
            if ended || !job["metadata"]["deletionTimestamp"].is_null() {
                state.remove("pods", &pod_of(&name));
                state.remove("jobs", &name);
            } else {
                let now = rfc3339(now);
                if job["spec"]["template"]["spec"]["containers"][0]["image"] == RUNNER {
                    state.put("pods", reported_good(&job, &name, &now));
                }
                state.change("jobs", &name, |job| {
                    let start = job["status"]["startTime"].clone();
                    job["status"] = json!({
                        "startTime": start, "completionTime": now, "succeeded": 1,
                        "conditions": [{"type": "Complete", "status": "True", "lastTransitionTime": now}],
                    });
                });
            }
        }
    }

    pub(super) fn ending(&self) -> Ending {
        let state = self.server.state();
        let object = state.get("mysqlbackups", OBJECT).unwrap();
        let status = &object["status"];
        let list = |field: &str| status[field].as_array().cloned().unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let what = |run: &Value| {
            if run["slot"].is_null() {
                text(&run["requestId"])
            } else {
                text(&run["slot"])
            }
        };
        let mut runs: Vec<_> = list("runs")
            .iter()
            .map(|r| (what(r), text(&r["result"]), text(&r["reason"])))
            .collect();
        runs.sort();
        let annotations = object["metadata"]["annotations"]
            .as_object()
            .cloned()
            .unwrap_or_default();
        let jobs = state
            .objects
            .iter()
            .filter(|((r, name), _)| r == "jobs" && !name.contains('/'))
            .map(|((_, name), _)| name.clone());
        Ending {
            totals: status["totals"].clone(),
            pulls: status["binlogs"]["totals"].clone(),
            runs,
            missed: status["missed"].clone(),
            requests: list("requests")
                .iter()
                .map(|r| (text(&r["id"]), text(&r["state"])))
                .collect(),
            accounted: status["accountedUntil"].clone(),
            annotations: annotations
                .keys()
                .filter(|k| k.starts_with(labels::PREFIX))
                .cloned()
                .collect(),
            jobs: jobs.collect(),
            suspended: object["spec"]["suspend"].clone(),
            created: state
                .created
                .iter()
                .filter(|(what, _)| !what.contains('/'))
                .map(|(what, n)| (what.clone(), *n))
                .collect(),
        }
    }

    pub(super) fn changes(&self) -> usize {
        self.server.state().history.len()
    }
}

pub(super) fn config(installation: &str) -> Config {
    Config {
        instance: "test".into(),
        installation: installation.into(),
        workers: 1,
        ..Config::default()
    }
}

/// A new process.
fn start(server: &Server, clock: &Arc<AtomicI64>, config: &Config) -> Arc<Controller> {
    let read = clock.clone();
    let clock =
        Clock::new(move || DateTime::from_timestamp_millis(read.load(Ordering::SeqCst)).unwrap());
    let ctx = Context {
        client: ApiClient(server.client()),
        leadership: Leadership::always(clock.now()),
        clock,
        config: Arc::new(config.clone()),
        metrics: Metrics::default(),
    };
    let kind = MysqlBackups::new(RUNNER);
    Controller::new(ctx, vec![Box::new(kind)])
}

/// Image of the runner, whose pods leave a report.
const RUNNER: &str = "backup-runner:test";

fn pod_of(job: &str) -> String {
    format!("{job}-pod")
}

fn stays_until(job: &Value) -> Option<DateTime<Utc>> {
    let env = &job["spec"]["template"]["spec"]["containers"][0]["env"];
    let told = env.as_array()?.iter().find(|e| e["name"] == SPEC_ENV)?;
    let spec: Value = serde_json::from_str(told["value"].as_str()?).unwrap();
    parse_rfc3339(spec["binlogs"]["until"].as_str()?)
}

/// The pod that a Job of the runner leaves when all went well.
fn reported_good(job: &Value, name: &str, now: &str) -> Value {
    let mut report = Report::new(name);
    report.good = Some(true);
    "Completed".clone_into(&mut report.reason);
    let ended = json!({"terminated": {"exitCode": 0, "finishedAt": now, "message": report.to_termination_message()}});
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": pod_of(name), "namespace": job["metadata"]["namespace"],
            "labels": job["spec"]["template"]["metadata"]["labels"],
            "ownerReferences": [{
                "apiVersion": "batch/v1", "kind": "Job", "name": job["metadata"]["name"],
                "uid": job["metadata"]["uid"], "controller": true,
            }],
        },
        "spec": {"restartPolicy": "Never", "containers": []},
        "status": {"phase": "Succeeded", "containerStatuses": [{
            "name": crds::labels::CONTAINER, "image": RUNNER, "imageID": "", "ready": false,
            "restartCount": 0, "state": ended,
        }]},
    })
}
