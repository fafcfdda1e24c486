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
        let now = || chrono::DateTime::from_timestamp(1_736_935_230, 0).unwrap();
        let ctx = Context {
            client: ApiClient(self.client()),
            leadership: Leadership::none(),
            clock: Clock::new(now),
            config: Arc::new(Config::default()),
            metrics: Metrics::default(),
        };
        let kind = MysqlBackups::new("backup-runner:test");
        Controller::new(ctx, vec![Box::new(kind)])
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
        () = controller.run(stop) => {}
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
