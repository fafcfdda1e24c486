//! Watches against an API server that lacks a kind, or answers badly, on tokio's paused clock.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::sync::Mutex;

use http::{Request, Response};
use kube::client::Body;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::context::{ApiClient, Clock, Config, Context, Leadership};
use crate::kind::Kind;
use crate::metrics::Metrics;
use crate::mysql_backup::MysqlBackups;

/// What lists of the kind are answered, and when they were asked for.
#[derive(Default)]
struct Kinds {
    answer: Option<(u16, Value)>,
    asked: Vec<Instant>,
}

#[derive(Clone, Default)]
struct Server(Arc<Mutex<Kinds>>);

impl Server {
    fn answer(&self, code: u16, body: Value) {
        self.0.lock().unwrap().answer = Some((code, body));
    }

    fn asked(&self) -> Vec<Instant> {
        self.0.lock().unwrap().asked.clone()
    }

    fn client(&self) -> kube::Client {
        let kinds = self.0.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let kinds = kinds.clone();
            async move {
                let watches = request
                    .uri()
                    .query()
                    .is_some_and(|q| q.contains("watch=true"));
                let ours = request.uri().path().ends_with("/mysqlbackups");
                let mut answer = (200, list(&json!([])));
                if ours && !watches {
                    let mut kinds = kinds.lock().unwrap();
                    kinds.asked.push(Instant::now());
                    answer = kinds.answer.clone().unwrap_or(answer);
                }
                if watches {
                    std::future::pending::<()>().await;
                }
                let body = Body::from(serde_json::to_vec(&answer.1).unwrap());
                Ok::<_, std::convert::Infallible>(
                    Response::builder().status(answer.0).body(body).unwrap(),
                )
            }
        });
        kube::Client::new(service, "default")
    }

    fn controller(&self) -> Arc<Controller> {
        self.of(Box::new(MysqlBackups::new("backup-runner:test")))
    }

    fn of(&self, kind: Box<dyn super::super::Kind>) -> Arc<Controller> {
        let now = || chrono::DateTime::from_timestamp(1_736_935_230, 0).unwrap();
        let ctx = Context {
            client: ApiClient(self.client()),
            leadership: Leadership::none(),
            clock: Clock::new(now),
            config: Arc::new(Config::default()),
            metrics: Metrics::default(),
        };
        Controller::new(ctx, vec![kind])
    }
}

fn list(items: &Value) -> Value {
    json!({"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "7"}, "items": items})
}

fn refusal(code: u16) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": "No", "message": "no"})
}

fn object() -> Value {
    json!({
        "apiVersion": "batch.isekiro.com/v1", "kind": "MysqlBackup",
        "metadata": {"name": "shop", "namespace": "default", "uid": "uid-1", "resourceVersion": "5",
                     "creationTimestamp": "2025-01-15T10:00:00Z"},
        "spec": {"schedule": "@daily", "image": "dump:v1"},
    })
}

/// Runs the controller for as long as `story` lasts.
async fn during(controller: Arc<Controller>, story: impl Future<Output = ()>) {
    let stop = CancellationToken::new();
    tokio::select! {
        ended = controller.run(stop) => drop(ended),
        () = story => {}
    }
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_not_installed_is_looked_for_twice_a_minute_and_blocks_nothing() {
    let server = Server::default();
    server.answer(404, refusal(404));
    let controller = server.controller();
    during(controller.clone(), async {
        sleep(Duration::from_secs(1)).await;
        assert!(controller.is_ready());
        sleep(Duration::from_secs(600)).await;
        assert_eq!(server.asked().len(), 21, "{:?}", server.asked());
        server.answer(200, list(&json!([object()])));
        sleep(Duration::from_secs(31)).await;
        assert_eq!(controller.store.sizes().0, 1);
    })
    .await;
}

/// Right after its start an API server may not know a kind yet.
#[tokio::test(start_paused = true)]
async fn a_kind_that_is_forgotten_for_a_moment_keeps_its_objects() {
    let server = Server::default();
    server.answer(200, list(&json!([object()])));
    let controller = server.controller();
    let feed = Objects {
        controller: controller.clone(),
        kind: 0,
    };
    let known: DynamicObject = serde_json::from_value(object()).unwrap();
    feed.apply(&known);
    let mut patience = Patience::default();
    let unknown = || {
        let status = serde_json::from_value(refusal(404)).unwrap();
        watcher::Error::InitialListFailed(kube::Error::Api(Box::new(status)))
    };
    assert!(is_unknown_kind(&unknown()));
    let waits: Vec<_> = (0..7).map(|_| patience.failed(&unknown())).collect();
    let seconds: Vec<f64> = waits.iter().map(|(w, _)| w.as_secs_f64()).collect();
    assert_eq!(seconds, [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0]);
    let news: Vec<bool> = waits.iter().map(|(_, news)| *news).collect();
    assert_eq!(news, [true, false, false, false, false, false, false]);
    assert_eq!(controller.store.sizes().0, 1);
}

/// A list that is refused is tried again later each time, though each try begins well.
#[tokio::test(start_paused = true)]
async fn a_refused_list_is_tried_again_later_each_time() {
    let server = Server::default();
    server.answer(403, refusal(403));
    let controller = server.controller();
    during(controller.clone(), async {
        sleep(Duration::from_secs(60)).await;
        assert!(!controller.is_ready());
        // At 0, 0.8, 2.4, 5.6, 12, 24.8 and 50.4 s.
        assert_eq!(server.asked().len(), 7, "{:?}", server.asked());
        server.answer(200, list(&json!([])));
        sleep(Duration::from_secs(30)).await;
        assert!(controller.is_ready());
    })
    .await;
}

/// MysqlBackup, of which objects named `trap` can't be taken in.
struct Trapped(MysqlBackups);

impl Kind for Trapped {
    fn resource(&self) -> ApiResource {
        self.0.resource()
    }

    fn managed_paths(&self) -> crate::kind::ManagedPaths {
        self.0.managed_paths()
    }

    fn take_spec(&self, object: &mut DynamicObject) -> Value {
        assert!(object.metadata.name.as_deref() != Some("trap"), "a trap");
        self.0.take_spec(object)
    }

    fn read(
        &self,
        object: &crate::engine::Object,
        spec: &Value,
    ) -> Result<(crate::engine::Settings, Vec<crds::validate::Problem>), String> {
        self.0.read(object, spec)
    }

    fn job(
        &self,
        object: &crate::engine::Object,
        spec: &Value,
        seed: &crate::engine::Seed,
    ) -> Result<Job, String> {
        self.0.job(object, spec, seed)
    }
}

#[tokio::test(start_paused = true)]
async fn o1_an_object_that_panics_when_it_is_taken_in_hides_no_other() {
    let server = Server::default();
    let mut trap = object();
    trap["metadata"]["name"] = json!("trap");
    trap["metadata"]["uid"] = json!("uid-0");
    server.answer(200, list(&json!([trap, object()])));
    let kind = Trapped(MysqlBackups::new("backup-runner:test"));
    let controller = server.of(Box::new(kind));
    during(controller.clone(), async {
        sleep(Duration::from_secs(1)).await;
        assert!(controller.is_ready());
        assert_eq!(controller.store.sizes().0, 1);
    })
    .await;
    let text = controller.ctx.metrics.text();
    assert!(text.contains("backup_operator_panics_total{task=\"watch\"} 1"));
}

/// A feed that panics with its first list.
struct Once(std::sync::atomic::AtomicBool, Arc<Mutex<usize>>);

impl Feed<DynamicObject> for Once {
    fn apply(&self, _: &DynamicObject) -> Option<Box<str>> {
        None
    }

    fn delete(&self, _: &DynamicObject) {}

    fn retain(&self, _: &HashSet<Box<str>>, _: Option<&str>) {
        *self.1.lock().unwrap() += 1;
        let first = self.0.swap(false, std::sync::atomic::Ordering::SeqCst);
        assert!(!first, "the first list");
    }
}

#[tokio::test(start_paused = true)]
async fn o1_a_watch_that_panics_is_begun_anew() {
    let server = Server::default();
    let controller = server.controller();
    let lists = Arc::new(Mutex::new(0));
    let feed = Once(true.into(), lists.clone());
    let resource = controller.resources[0].clone();
    let api = Api::all_with(server.client(), &resource);
    let config = watcher::Config::default();
    let work = keep(
        controller.clone(),
        "objects".into(),
        api,
        None,
        feed,
        config,
    );
    tokio::select! {
        () = work => panic!("it is for ever"),
        () = sleep(Duration::from_secs(10)) => {}
    }
    assert_eq!(*lists.lock().unwrap(), 2);
    assert_eq!(*controller.unsynced.borrow(), Some(-1), "one list was read");
    let text = controller.ctx.metrics.text();
    assert!(text.contains("backup_operator_panics_total{task=\"watch\"} 1"));
}
