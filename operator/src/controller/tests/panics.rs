//! One object whose work panics, among others, on the fake API server.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use chrono::{DateTime, TimeDelta};
use crds::validate::Problem;
use k8s_openapi::api::batch::v1::Job;
use kube::core::{ApiResource, DynamicObject};
use serde_json::{Value, json};
use tracing::instrument::WithSubscriber as _;

use super::super::Controller;
use super::super::queue::Priority;
use super::super::watch::{Feed as _, Objects};
use crate::context::{ApiClient, Clock, Config, Context, Leadership};
use crate::engine::{Object, Seed, Settings};
use crate::fake_api::{Server, State};
use crate::kind::{Kind, ManagedPaths};
use crate::metrics::Metrics;
use crate::mysql_backup::MysqlBackups;

/// MysqlBackup, of which one that has this schedule is a trap.
const TRAP: &str = "1 2 3 4 5";

struct Trapped {
    kind: MysqlBackups,
    armed: Arc<AtomicBool>,
}

impl Kind for Trapped {
    fn resource(&self) -> ApiResource {
        self.kind.resource()
    }

    fn managed_paths(&self) -> ManagedPaths {
        self.kind.managed_paths()
    }

    fn read(&self, object: &Object, spec: &Value) -> Result<(Settings, Vec<Problem>), String> {
        let trap = spec["schedule"] == TRAP && self.armed.load(Ordering::SeqCst);
        assert!(!trap, "a trap");
        self.kind.read(object, spec)
    }

    fn job(&self, object: &Object, spec: &Value, seed: &Seed) -> Result<Job, String> {
        self.kind.job(object, spec, seed)
    }
}

fn object(name: &str, schedule: &str) -> Value {
    json!({
        "apiVersion": "batch.isekiro.com/v1", "kind": "MysqlBackup",
        "metadata": {"name": name},
        "spec": {"schedule": schedule, "image": "dump:v1"},
    })
}

/// A controller of the kind, at the time of the clock.
fn controller(
    server: &Server,
    clock: &Arc<AtomicI64>,
    metrics: &Metrics,
    armed: &Arc<AtomicBool>,
) -> Arc<Controller> {
    let read = clock.clone();
    let now = move || DateTime::from_timestamp(read.load(Ordering::SeqCst), 0).unwrap();
    Controller::new(
        Context {
            client: ApiClient(server.client()),
            leadership: Leadership::always(now()),
            clock: Clock::new(now),
            config: Arc::new(Config {
                installation: "backup-system/backup-operator".into(),
                ..Config::default()
            }),
            metrics: metrics.clone(),
        },
        vec![Box::new(Trapped {
            kind: MysqlBackups::new("backup-runner:test"),
            armed: armed.clone(),
        })],
    )
}

/// What was logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// An object is named in the log even if it could not be looked at.
#[tokio::test(start_paused = true)]
async fn h5_what_a_reconcile_logs_names_its_object() {
    let begin = 1_736_935_230;
    let mut state = State {
        now: DateTime::from_timestamp(begin, 0).unwrap(),
        ..State::default()
    };
    let trap = state.put("mysqlbackups", object("trap", TRAP));
    let server = Server::of(state);
    let clock = Arc::new(AtomicI64::new(begin));
    let armed = Arc::new(AtomicBool::new(true));
    let controller = controller(&server, &clock, &Metrics::default(), &armed);
    let feed = Objects {
        controller: controller.clone(),
        kind: 0,
    };
    let found: DynamicObject = serde_json::from_value(trap.clone()).unwrap();
    feed.apply(&found);
    let log = Log::default();
    let writer = log.clone();
    let lines = tracing_subscriber::fmt()
        .json()
        .with_span_list(false)
        .with_writer(move || writer.clone())
        .finish();
    let key = controller.queue.try_next().unwrap();
    controller.turn(&key).with_subscriber(lines).await;
    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    let line = text.lines().find(|l| l.contains("a reconcile panicked"));
    let line: Value = serde_json::from_str(line.unwrap()).unwrap();
    assert_eq!(
        line["span"],
        json!({
            "name": "reconcile", "kind": "MysqlBackup", "namespace": "default", "object": "trap",
            "uid": trap["metadata"]["uid"],
        })
    );
}

#[tokio::test(start_paused = true)]
async fn o1_a_panic_costs_one_turn_of_one_object_which_is_tried_later_each_time() {
    let begin = DateTime::from_timestamp(1_736_935_230, 0).unwrap();
    let mut state = State {
        now: begin,
        ..State::default()
    };
    let trap = state.put("mysqlbackups", object("trap", TRAP));
    let good = state.put("mysqlbackups", object("shop", "* * * * *"));
    let server = Server::of(state);
    let clock = Arc::new(AtomicI64::new(begin.timestamp()));
    let metrics = Metrics::default();
    let armed = Arc::new(AtomicBool::new(true));
    let controller = controller(&server, &clock, &metrics, &armed);
    let feed = Objects {
        controller: controller.clone(),
        kind: 0,
    };
    for object in [&trap, &good] {
        let object: DynamicObject = serde_json::from_value(object.clone()).unwrap();
        feed.apply(&object);
    }
    let mut panicked = vec![];
    let count = || {
        let text = metrics.text();
        let line = text
            .lines()
            .find(|l| l.starts_with("backup_operator_panics_total{task=\"reconcile\"}"))
            .unwrap();
        line.rsplit(' ').next().unwrap().parse::<usize>().unwrap()
    };
    for second in 0..600 {
        let now = begin + TimeDelta::seconds(second);
        clock.store(now.timestamp(), Ordering::SeqCst);
        server.state().now = now;
        controller.queue.fire(now);
        while let Some(key) = controller.queue.try_next() {
            let before = count();
            controller.turn(&key).await;
            if count() > before {
                panicked.push(second);
            }
        }
    }
    // 500 ms, doubled each time.
    assert_eq!(panicked.first(), Some(&0));
    assert!((8..=12).contains(&panicked.len()), "{panicked:?}");
    let waits: Vec<i64> = panicked.windows(2).map(|p| p[1] - p[0]).collect();
    assert!(waits.windows(2).all(|w| w[1] >= w[0]), "{waits:?}");
    assert!(waits.last().unwrap() >= &100, "{waits:?}");
    // The other ran each of its ten minutes.
    let started = server.state().created.len();
    assert_eq!(started, 10);
    // The scrape shows the one and leaves the other out.
    let text = metrics.text();
    assert!(text.contains(
        "mysqlbackup_accepted{kind=\"MysqlBackup\",namespace=\"default\",name=\"shop\"} 1"
    ));
    assert!(!text.contains("name=\"trap\""));
    assert!(text.ends_with("# EOF\n"));
    let line = "backup_operator_reconciles_total{result=\"panic\"}";
    assert!(text.contains(line));
    // Once it is mended, it works.
    armed.store(false, Ordering::SeqCst);
    let uid = trap["metadata"]["uid"].as_str().unwrap();
    let key = crate::ownership::key("MysqlBackup", "default", "trap", uid);
    controller.queue.push(key, Priority::Due);
    while let Some(key) = controller.queue.try_next() {
        controller.turn(&key).await;
    }
    let status = server.state().get("mysqlbackups", "trap").unwrap()["status"].clone();
    assert_eq!(status["schedule"]["text"], TRAP);
}
