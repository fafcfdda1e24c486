//! An API server whose objects are as large as it lets them be: what is read of them is counted, as it
//! is pulled.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crds::labels::TOO_LARGE;
use crds::mysql_backup::MysqlBackup;
use futures::stream;
use k8s_openapi::api::batch::v1::Job;
use kube::api::{Api, ListParams};
use kube::core::{ApiResource, DynamicObject};
use kube::runtime::watcher::{self, Event, watcher};
use serde_json::{Value, json};

use super::*;

/// Bytes of a large object: what etcd takes by default, less a little.
const BIG: usize = 1_200_000;

/// One list that was asked for: its limit, and the bytes of the answer that were pulled.
#[derive(Clone, Debug)]
struct Asked {
    limit: usize,
    pulled: Arc<AtomicUsize>,
}

#[derive(Clone)]
struct Server {
    objects: Arc<Vec<Arc<[u8]>>>,
    events: Arc<Vec<Value>>,
    asked: Arc<Mutex<Vec<Asked>>>,
}

fn object(name: usize, bytes: usize) -> Value {
    json!({
        "apiVersion": "batch.isekiro.com/v1", "kind": "MysqlBackup",
        "metadata": {"name": format!("o-{name}"), "namespace": "app", "uid": format!("u-{name}"), "resourceVersion": "5",
            "creationTimestamp": "2025-01-15T10:30:00Z",
            "managedFields": [{"manager": "m", "fieldsV1": {"f:spec": {"f:schedule": {}}}}]},
        "spec": {"schedule": "@daily", "args": ["x".repeat(bytes)]},
    })
}

impl Server {
    fn new(objects: &[Value], events: Vec<Value>) -> Self {
        let texts = objects.iter().map(|o| o.to_string().into_bytes().into());
        Self {
            objects: Arc::new(texts.collect()),
            events: Arc::new(events),
            asked: Arc::default(),
        }
    }

    fn client(&self) -> Client {
        let server = self.clone();
        let raw = Client::new(
            tower::service_fn(move |request: Request<Body>| {
                let server = server.clone();
                async move { Ok::<_, std::convert::Infallible>(server.answer(request.uri())) }
            }),
            "default",
        );
        bounded(raw)
    }

    fn answer(&self, uri: &Uri) -> Response<Answer> {
        let value = |key: &str| {
            let prefix = format!("{key}=");
            query(uri).find_map(|p| p.strip_prefix(&prefix).map(str::to_owned))
        };
        if value("watch").is_some() {
            let lines: String = self.events.iter().map(|e| format!("{e}\n")).collect();
            return Response::new(pulled(vec![lines.into_bytes()], Arc::default()));
        }
        let from: usize = value("continue").map_or(0, |c| c.parse().unwrap());
        let limit: usize = value("limit").map_or(usize::MAX, |l| l.parse().unwrap());
        let until = from.saturating_add(limit).min(self.objects.len());
        let more = if until < self.objects.len() {
            until.to_string()
        } else {
            String::new()
        };
        let head = format!(
            r#"{{"kind":"List","apiVersion":"v1","metadata":{{"resourceVersion":"7","continue":"{more}"}},"items":["#
        );
        let mut parts = vec![head.into_bytes()];
        for (i, object) in self.objects[from..until].iter().enumerate() {
            if i > 0 {
                parts.push(b",".to_vec());
            }
            parts.extend(object.chunks(16 * 1024).map(<[u8]>::to_vec));
        }
        parts.push(b"]}".to_vec());
        let asked = Asked {
            limit,
            pulled: Arc::default(),
        };
        self.asked.lock().unwrap().push(asked.clone());
        Response::new(pulled(parts, asked.pulled))
    }
}

/// A body of these parts, counted as they are taken.
fn pulled(parts: Vec<Vec<u8>>, count: Arc<AtomicUsize>) -> Answer {
    Answer::from_stream(stream::iter(parts).map(move |part| {
        count.fetch_add(part.len(), Ordering::Relaxed);
        Ok::<_, std::convert::Infallible>(part)
    }))
}

fn api(server: &Server) -> Api<DynamicObject> {
    Api::all_with(server.client(), &ApiResource::erase::<MysqlBackup>(&()))
}

/// The first list of a watch: what it brings, until it is done.
async fn listed(server: &Server) -> Vec<DynamicObject> {
    let mut found = vec![];
    let mut events = watcher(api(server), watcher::Config::default()).boxed();
    loop {
        match events.next().await.unwrap().unwrap() {
            Event::Init => {}
            Event::InitApply(object) => found.push(object),
            Event::InitDone => return found,
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn o4_thirty_objects_of_megabytes_among_small_ones_are_listed_a_page_at_a_time() {
    let mut objects: Vec<Value> = (0..300).map(|n| object(n, 300)).collect();
    objects.splice(150..150, (1000..1030).map(|n| object(n, BIG)));
    let server = Server::new(&objects, vec![]);
    let found = listed(&server).await;
    assert_eq!(found.len(), 330);
    let large: Vec<_> = found
        .iter()
        .filter(|o| {
            o.metadata
                .annotations
                .as_ref()
                .is_some_and(|a| a.contains_key(TOO_LARGE))
        })
        .collect();
    assert_eq!(large.len(), 30);
    assert!(large.iter().all(|o| o.data["spec"].is_null()));
    assert!(
        found
            .iter()
            .all(|o| o.metadata.name.is_some() && o.metadata.uid.is_some())
    );
    let kept: usize = found
        .iter()
        .map(|o| serde_json::to_vec(o).unwrap().len())
        .sum();
    assert!(kept < 400_000, "{kept}");
    // Never was more of a page held than its bound, but of one object alone.
    let asked = server.asked.lock().unwrap().clone();
    for page in &asked {
        let pulled = page.pulled.load(Ordering::Relaxed);
        let most = if page.limit == 1 {
            OBJECT
        } else {
            PAGE + 32 * 1024
        };
        assert!(pulled <= most, "{page:?}");
    }
    assert!(asked.iter().any(|p| p.limit >= 32), "pages grow: {asked:?}");
    assert!(asked.len() < 80, "{} pages", asked.len());
}

/// A list that is asked for as a whole comes in pages too.
#[tokio::test]
async fn o4_jobs_that_are_listed_at_once_come_in_pages() {
    let job = |n: usize, bytes: usize| {
        json!({"metadata": {"name": format!("j-{n}"), "uid": format!("u-{n}"),
                 "labels": {"batch.isekiro.com/owner-uid": "o"}, "annotations": {"big": "x".repeat(bytes)}},
               "spec": {"template": {"spec": {"containers": []}}}})
    };
    let objects: Vec<Value> = (0..40)
        .map(|n| job(n, if n % 2 == 0 { BIG } else { 10 }))
        .collect();
    let server = Server::new(&objects, vec![]);
    let jobs: Api<Job> = Api::namespaced(server.client(), "app");
    let list = jobs
        .list(&ListParams::default().labels("batch.isekiro.com/owner-uid=o"))
        .await
        .unwrap();
    assert_eq!(list.items.len(), 40);
    assert!(list.items.iter().all(|j| j.metadata.labels.is_some()));
    for page in server.asked.lock().unwrap().iter() {
        assert!(page.limit <= 500, "{page:?}");
    }
}

#[tokio::test]
async fn o4_events_of_a_watch_are_cut_as_they_come() {
    let events = vec![
        json!({"type": "ADDED", "object": object(1, 10)}),
        json!({"type": "MODIFIED", "object": object(2, BIG)}),
        json!({"type": "BOOKMARK", "object": {"apiVersion": "batch.isekiro.com/v1", "kind": "MysqlBackup",
            "metadata": {"resourceVersion": "9"}}}),
        json!({"type": "DELETED", "object": object(3, BIG)}),
    ];
    let server = Server::new(&[], events);
    let mut all = watcher(api(&server), watcher::Config::default()).boxed();
    let mut seen = vec![];
    while seen.len() < 3 {
        match all.next().await.unwrap().unwrap() {
            Event::Apply(o) | Event::Delete(o) => {
                let large = o
                    .metadata
                    .annotations
                    .is_some_and(|a| a.contains_key(TOO_LARGE));
                seen.push((o.metadata.name.unwrap(), large));
            }
            Event::Init | Event::InitDone => {}
            Event::InitApply(_) => panic!("nothing was listed"),
        }
    }
    let wanted = [("o-1", false), ("o-2", true), ("o-3", true)];
    assert_eq!(seen, wanted.map(|(n, l)| (n.to_owned(), l)));
}

/// What is written back whole, and what is refused, passes as it is.
#[tokio::test]
async fn other_answers_pass_as_they_are() {
    let raw = Client::new(
        tower::service_fn(|request: Request<Body>| async move {
            let refused = request.uri().path().contains("/jobs/");
            let (status, body) = if refused {
                let body = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure",
                    "code": 403, "reason": "Forbidden", "message": "no"});
                (403, body)
            } else {
                (
                    200,
                    json!({"kind": "Secret", "apiVersion": "v1", "metadata": {"managedFields": [], "name": "x"}}),
                )
            };
            let body = Answer::from(body.to_string());
            Ok::<_, std::convert::Infallible>(
                Response::builder().status(status).body(body).unwrap(),
            )
        }),
        "default",
    );
    let client = bounded(raw);
    let jobs: Api<Job> = Api::namespaced(client.clone(), "app");
    let Err(kube::Error::Api(refused)) = jobs.get("j").await else {
        panic!()
    };
    assert_eq!((refused.code, refused.message.as_str()), (403, "no"));
    let secrets: Api<k8s_openapi::api::core::v1::Secret> = Api::namespaced(client, "app");
    let secret = secrets.get("s").await.unwrap();
    assert_eq!(secret.metadata.managed_fields, Some(vec![]));
}
