//! One object whose work panics, among others, on the fake API server.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use chrono::{DateTime, TimeDelta};
use k8s_openapi::api::batch::v1::Job;
use kube::core::{ApiResource, DynamicObject};
use serde_json::{Value, json};

use super::super::watch::{Feed as _, Objects};
use super::super::*;
use crate::context::{ApiClient, Clock, Config, Context, Leadership};
use crate::engine::Settings;
use crate::fake_api::{Server, State};
use crate::kind::ManagedPaths;
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
    let (read, metrics) = (clock.clone(), Metrics::default());
    let armed = Arc::new(AtomicBool::new(true));
    let controller = Controller::new(
        Context {
            client: ApiClient(server.client()),
            leadership: Leadership::always(begin),
            clock: Clock::new(move || {
                DateTime::from_timestamp(read.load(Ordering::SeqCst), 0).unwrap()
            }),
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
    );
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
