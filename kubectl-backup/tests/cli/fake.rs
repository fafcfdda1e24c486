//! An API server on loopback that knows just enough: objects of custom kinds, Tables in chunks,
//! watches, merge patches; and that remembers what it was asked.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures::StreamExt;
use kube::CustomResourceExt;
use serde_json::{Value, json};
use tokio::sync::broadcast;

/// Plays the operator: called with each object that was patched; what it gives back is stored.
pub type Operator = Arc<dyn Fn(&Value) -> Option<Value> + Send + Sync>;

/// One request as it came.
#[derive(Clone, Debug)]
pub struct Seen {
    pub method: String,
    pub path: String,
    pub query: HashMap<String, String>,
    /// The query as it came, decoded: names may come several times.
    pub line: String,
    pub accept: String,
    pub headers: HashMap<String, String>,
    pub body: Value,
}

#[derive(Default)]
struct World {
    objects: BTreeMap<String, Value>,
    plurals: Vec<String>,
    pods: Vec<Value>,
    paths: HashMap<String, Value>,
    logs: HashMap<String, String>,
    version: u64,
    seen: Vec<Seen>,
    gone_once: Option<String>,
    deny: Option<(Method, u16, Value)>,
    deny_path: Option<(String, u16, Value)>,
    operator: Option<Operator>,
    clock: Option<chrono::DateTime<chrono::Utc>>,
    no_node: bool,
}

/// The server; it ends with the test.
pub struct Fake {
    pub address: SocketAddr,
    world: Arc<Mutex<World>>,
    events: broadcast::Sender<Value>,
    _runtime: tokio::runtime::Runtime,
}

#[derive(Clone)]
struct Shared {
    world: Arc<Mutex<World>>,
    events: broadcast::Sender<Value>,
}

const API: &str = "batch.isekiro.com/v1";

impl Fake {
    /// A server that has MysqlBackup, and nothing else.
    pub fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let world = Arc::new(Mutex::new(World {
            plurals: vec!["mysqlbackups".into()],
            version: 100,
            ..World::default()
        }));
        let (events, _) = broadcast::channel(64);
        let shared = Shared {
            world: world.clone(),
            events: events.clone(),
        };
        let listener =
            runtime.block_on(async { tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap() });
        let address = listener.local_addr().unwrap();
        let router = Router::new().fallback(handle).with_state(shared);
        runtime.spawn(async move { axum::serve(listener, router).await });
        Self {
            address,
            world,
            events,
            _runtime: runtime,
        }
    }

    /// Takes the kind away.
    pub fn uninstall(&self) {
        self.world.lock().unwrap().plurals.clear();
    }

    /// Adds a kind.
    pub fn install(&self, plural: &str) {
        self.world.lock().unwrap().plurals.push(plural.to_owned());
    }

    /// Stores an object.
    pub fn put(&self, object: Value) {
        let shared = Shared {
            world: self.world.clone(),
            events: self.events.clone(),
        };
        let mut world = self.world.lock().unwrap();
        store(&shared, &mut world, object, "ADDED");
    }

    /// The object as it stands.
    pub fn get(&self, namespace: &str, name: &str) -> Option<Value> {
        let world = self.world.lock().unwrap();
        world.objects.get(&format!("{namespace}/{name}")).cloned()
    }

    /// Answers 410 the first time this continue token is used.
    pub fn expire(&self, token: &str) {
        self.world.lock().unwrap().gone_once = Some(token.to_owned());
    }

    /// Refuses a method.
    pub fn deny(&self, method: Method, code: u16, status: Value) {
        self.world.lock().unwrap().deny = Some((method, code, status));
    }

    /// Refuses paths with this end.
    pub fn deny_path(&self, end: &str, code: u16, status: Value) {
        self.world.lock().unwrap().deny_path = Some((end.to_owned(), code, status));
    }

    /// Puts an operator in place; one that gives nothing is dead.
    pub fn operate(&self, operator: impl Fn(&Value) -> Option<Value> + Send + Sync + 'static) {
        self.world.lock().unwrap().operator = Some(Arc::new(operator));
    }

    /// Answers a GET of this path.
    pub fn path(&self, path: &str, value: Value) {
        self.world
            .lock()
            .unwrap()
            .paths
            .insert(path.to_owned(), value);
    }

    /// Answers a list of this path with items.
    pub fn items(&self, path: &str, items: Value) {
        let list = json!({ "kind": "List", "apiVersion": "v1", "metadata": {}, "items": items });
        self.path(path, list);
    }

    /// Adds a pod, or changes the one of this name, and what it logged.
    pub fn pod(&self, pod: Value, log: &str) {
        let mut world = self.world.lock().unwrap();
        let name = pod["metadata"]["name"].as_str().unwrap().to_owned();
        world.pods.retain(|p| p["metadata"]["name"] != *name);
        world.logs.insert(name, log.to_owned());
        world.pods.push(pod);
    }

    /// What a pod logged.
    pub fn log(&self, pod: &str, text: &str) {
        let mut world = self.world.lock().unwrap();
        world.logs.insert(pod.to_owned(), text.to_owned());
    }

    /// A pod of this name in `prod` that has ended well, with one line of log.
    pub fn ended_pod(&self, name: &str) {
        self.pod(
            json!({
                "metadata": { "name": name, "namespace": "prod", "creationTimestamp": "2026-01-02T00:00:00Z" },
                "spec": { "containers": [{ "name": "backup" }] },
                "status": { "containerStatuses": [{ "name": "backup", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": { "terminated": { "exitCode": 0 } } }] },
            }),
            "a line\n",
        );
    }

    /// Starts none of the pods that are made from now on.
    pub fn no_node(&self) {
        self.world.lock().unwrap().no_node = true;
    }

    /// Ends every watch, as servers do after a while.
    pub fn hang_up(&self) {
        self.events.send(Value::Null).unwrap();
    }

    /// Says this time in every answer.
    pub fn clock(&self, at: chrono::DateTime<chrono::Utc>) {
        self.world.lock().unwrap().clock = Some(at);
    }

    /// Everything that was asked.
    pub fn seen(&self) -> Vec<Seen> {
        self.world.lock().unwrap().seen.clone()
    }
}

/// The operator that is there unless a test puts another in its place: it answers that it is, and does
/// nothing else.
fn echo(object: &Value) -> Option<Value> {
    let notes = object["metadata"]["annotations"].as_object()?;
    let asks = |value: &Value| {
        value
            .as_str()
            .is_some_and(|v| v.contains(r#""action":"Echo""#))
    };
    let (key, value) = notes.iter().find(|(_, value)| asks(value))?;
    let request: Value = serde_json::from_str(value.as_str()?).ok()?;
    let mut after = object.clone();
    after["metadata"]["annotations"]
        .as_object_mut()?
        .remove(key);
    after["status"]["requests"] = json!([{
        "id": request["id"], "action": "Echo", "state": "Succeeded", "message": "it is there",
    }]);
    Some(after)
}

/// A MysqlBackup with a spec and a status.
pub fn backup(namespace: &str, name: &str, spec: Value, status: Value) -> Value {
    let mut object = json!({
        "apiVersion": API,
        "kind": "MysqlBackup",
        "metadata": {
            "name": name, "namespace": namespace, "uid": format!("uid-{name}"), "generation": 1,
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": spec,
    });
    if !status.is_null() {
        object["status"] = status;
    }
    object
}

fn store(shared: &Shared, world: &mut World, mut object: Value, event: &str) -> Value {
    world.version += 1;
    object["metadata"]["resourceVersion"] = world.version.to_string().into();
    let key = format!(
        "{}/{}",
        object["metadata"]["namespace"].as_str().unwrap_or_default(),
        object["metadata"]["name"].as_str().unwrap_or_default()
    );
    if event == "DELETED" {
        world.objects.remove(&key);
    } else {
        world.objects.insert(key, object.clone());
    }
    let _ = shared
        .events
        .send(json!({ "type": event, "object": object }));
    object
}

fn answer(code: u16, value: &Value) -> Response {
    let status = StatusCode::from_u16(code).unwrap();
    (
        status,
        [(header::CONTENT_TYPE, "application/json")],
        value.to_string(),
    )
        .into_response()
}

/// A Status as the API server writes it.
pub fn status(code: u16, reason: &str, message: &str, name: &str) -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code,
        "details": { "name": name, "group": "batch.isekiro.com", "kind": "mysqlbackups" },
    })
}

async fn handle(State(shared): State<Shared>, request: Request) -> Response {
    let clock = shared.world.lock().unwrap().clock;
    let mut response = answered(shared, request).await;
    if let Some(at) = clock {
        let date = at.format("%a, %d %b %Y %H:%M:%S GMT").to_string();
        response
            .headers_mut()
            .insert(header::DATE, date.parse().unwrap());
    }
    response
}

async fn answered(shared: Shared, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 1 << 22).await.unwrap();
    let query: HashMap<String, String> = parts
        .uri
        .query()
        .unwrap_or_default()
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .map(|(k, v)| (k.to_owned(), decode(v)))
        .collect();
    let accept = parts
        .headers
        .get(header::ACCEPT)
        .and_then(|v| v.to_str().ok());
    let seen = Seen {
        method: parts.method.to_string(),
        path: parts.uri.path().to_owned(),
        query,
        line: decode(parts.uri.query().unwrap_or_default()),
        accept: accept.unwrap_or_default().to_owned(),
        headers: parts
            .headers
            .iter()
            .map(|(k, v)| (k.to_string(), v.to_str().unwrap_or_default().to_owned()))
            .collect(),
        body: serde_json::from_slice(&body).unwrap_or_default(),
    };
    let mut world = shared.world.lock().unwrap();
    world.seen.push(seen.clone());
    if let Some((method, code, value)) = &world.deny
        && *method == parts.method
    {
        return answer(*code, value);
    }
    if let Some((end, code, value)) = &world.deny_path
        && seen.path.ends_with(end.as_str())
    {
        return answer(*code, value);
    }
    let path: Vec<&str> = seen.path.trim_matches('/').split('/').collect();
    if let ["api", "v1", "namespaces", name] = path[..]
        && seen.method == "GET"
    {
        // Every namespace is there but one.
        return match name {
            "nope" => answer(
                404,
                &status(404, "NotFound", "namespaces \"nope\" not found", name),
            ),
            _ => answer(200, &json!({ "metadata": { "name": name } })),
        };
    }
    if let Some(value) = world.paths.get(&seen.path) {
        return answer(200, &events_of(value, &seen));
    }
    match path.as_slice() {
        [
            "apis",
            "authorization.k8s.io",
            "v1",
            "selfsubjectaccessreviews",
        ] => {
            let mut review = seen.body.clone();
            let asked = &review["spec"]["resourceAttributes"];
            review["status"] = json!({ "allowed": asked["verb"] != "delete" });
            answer(201, &review)
        }
        ["version"] => answer(
            200,
            &json!({
                "major": "1", "minor": "35", "gitVersion": "v1.35.4", "gitCommit": "", "gitTreeState": "",
                "buildDate": "", "goVersion": "", "compiler": "", "platform": "",
            }),
        ),
        ["api", "v1", "namespaces", _, "pods"] if seen.method == "POST" => {
            let mut pod = seen.body.clone();
            if !world.no_node {
                pod["status"] = json!({ "phase": "Running", "containerStatuses": [{
                    "name": "backup", "image": "", "imageID": "", "ready": true, "restartCount": 0,
                    "state": { "running": {} },
                }] });
            }
            world.pods.push(pod.clone());
            answer(201, &pod)
        }
        ["api", "v1", "namespaces", _, "pods"] => answer(
            200,
            &json!({ "kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": of_job(&world.pods, &seen.query) }),
        ),
        ["api", "v1", "namespaces", _, "pods", name, "log"] => world
            .logs
            .get(*name)
            .cloned()
            .unwrap_or_default()
            .into_response(),
        ["api", "v1", "namespaces", _, "pods", name] => {
            match world.pods.iter().find(|p| p["metadata"]["name"] == *name) {
                Some(pod) => answer(200, pod),
                None => answer(
                    404,
                    &status(404, "NotFound", &format!("pods {name:?} not found"), name),
                ),
            }
        }
        ["api", "v1", "namespaces", _, "events"] => answer(
            200,
            &json!({ "kind": "EventList", "apiVersion": "v1", "metadata": {}, "items": [] }),
        ),
        ["apis", "batch", "v1", "namespaces", _, "jobs", name] => answer(
            404,
            &status(
                404,
                "NotFound",
                &format!("jobs.batch {name:?} not found"),
                name,
            ),
        ),
        ["api", "v1", "namespaces", namespace, "secrets", name] if seen.method == "PATCH" => {
            one(&shared, &mut world, namespace, name, &seen)
        }
        // Every Secret and claim is there, with the usual keys, but those named so.
        [
            "api",
            "v1",
            "namespaces",
            _,
            kind @ ("secrets" | "persistentvolumeclaims"),
            name,
        ] if seen.method == "GET" => {
            if name.starts_with("nope") {
                let text = format!("{kind} {name:?} not found");
                return answer(404, &status(404, "NotFound", &text, name));
            }
            let keys = [
                "username",
                "password",
                "accessKeyId",
                "secretAccessKey",
                "id",
                "secret",
            ];
            let data: serde_json::Map<String, Value> = keys
                .iter()
                .map(|key| ((*key).to_owned(), "UzNjcjN0LW1hcmtlcg==".into()))
                .collect();
            let mut value = json!({ "apiVersion": "v1", "metadata": { "name": name } });
            match *kind {
                "secrets" => value["data"] = data.into(),
                _ => value["spec"] = json!({}),
            }
            answer(200, &value)
        }
        ["apis", "batch.isekiro.com" | "gobackup.io", "v1", rest @ ..] => {
            let (namespace, rest) = match rest {
                ["namespaces", namespace, rest @ ..] => (Some(*namespace), rest),
                rest => (None, rest),
            };
            match rest {
                [plural, ..] if !world.plurals.iter().any(|p| p == plural) => missing(),
                [_] if parts.method == Method::POST => {
                    create(&shared, &mut world, namespace, &seen)
                }
                [_] if seen.query.contains_key("watch") => {
                    let events = watch(&shared, &world, namespace, &seen);
                    drop(world);
                    events
                }
                [_] => list(&mut world, namespace, &seen),
                [_, name] => one(
                    &shared,
                    &mut world,
                    namespace.unwrap_or_default(),
                    name,
                    &seen,
                ),
                _ => missing(),
            }
        }
        _ => missing(),
    }
}

/// What was put at a path; of events those of the object that is asked for.
fn events_of(value: &Value, seen: &Seen) -> Value {
    let mut value = value.clone();
    let uid = seen
        .query
        .get("fieldSelector")
        .and_then(|f| f.strip_prefix("involvedObject.uid="));
    if let (Some(uid), Some(items)) = (uid, value["items"].as_array_mut()) {
        items.retain(|event| event["involvedObject"]["uid"] == uid);
    }
    value
}

fn missing() -> Response {
    (StatusCode::NOT_FOUND, "404 page not found\n").into_response()
}

fn decode(text: &str) -> String {
    let mut out = vec![];
    let mut bytes = text.bytes();
    while let Some(b) = bytes.next() {
        if b == b'%' {
            let hex: String = [bytes.next().unwrap(), bytes.next().unwrap()]
                .map(char::from)
                .iter()
                .collect();
            out.push(u8::from_str_radix(&hex, 16).unwrap());
        } else {
            out.push(if b == b'+' { b' ' } else { b });
        }
    }
    String::from_utf8(out).unwrap()
}

fn create(shared: &Shared, world: &mut World, namespace: Option<&str>, seen: &Seen) -> Response {
    let mut object = seen.body.clone();
    object["metadata"]["namespace"] = namespace.into();
    object["metadata"]["uid"] = "uid-new".into();
    object["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z".into();
    if seen.query.contains_key("dryRun") {
        return answer(201, &object);
    }
    let object = store(shared, world, object, "ADDED");
    let operator = world.operator.clone();
    if let Some(after) = operator.and_then(|operator| operator(&object)) {
        store(shared, world, after, "MODIFIED");
    }
    answer(201, &object)
}

fn one(shared: &Shared, world: &mut World, namespace: &str, name: &str, seen: &Seen) -> Response {
    let applies = seen
        .headers
        .get("content-type")
        .is_some_and(|t| t.contains("apply"));
    let stored = world.objects.get(&format!("{namespace}/{name}")).cloned();
    let Some(mut object) = stored.or_else(|| applies.then(|| json!({}))) else {
        let text = format!("mysqlbackups.batch.isekiro.com {name:?} not found");
        return answer(404, &status(404, "NotFound", &text, name));
    };
    match seen.method.as_str() {
        "GET" => answer(200, &object),
        "DELETE" if seen.body["dryRun"].is_array() => answer(200, &object),
        "DELETE" => answer(200, &store(shared, world, object, "DELETED")),
        "PATCH" => {
            merge(&mut object, &seen.body);
            object["metadata"]["namespace"] = namespace.into();
            if seen.query.contains_key("dryRun") {
                return answer(200, &object);
            }
            let object = store(shared, world, object, "MODIFIED");
            let operator = world.operator.clone();
            if let Some(after) = operator.unwrap_or_else(|| Arc::new(echo))(&object) {
                store(shared, world, after, "MODIFIED");
            }
            answer(200, &object)
        }
        _ => missing(),
    }
}

fn merge(target: &mut Value, patch: &Value) {
    let Some(patch) = patch.as_object() else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (key, value) in patch {
        if value.is_null() {
            target.as_object_mut().unwrap().remove(key);
        } else {
            merge(&mut target[key], value);
        }
    }
}

fn wanted(object: &Value, namespace: Option<&str>, seen: &Seen) -> bool {
    let metadata = &object["metadata"];
    // Kinds without a schedule are kept apart from the others.
    let plural = seen.path.rsplit('/').next().unwrap_or_default();
    let kind = object["kind"].as_str().unwrap_or_default();
    let own = format!("{}s", kind.to_lowercase());
    let apart = |plural: &str| ["restores", "databases", "storages"].contains(&plural);
    if own != plural && (apart(plural) || apart(&own)) {
        return false;
    }
    let by_name = seen
        .query
        .get("fieldSelector")
        .and_then(|f| f.strip_prefix("metadata.name="));
    let by_label = seen
        .query
        .get("labelSelector")
        .and_then(|l| l.split_once('='));
    namespace.is_none_or(|n| metadata["namespace"] == n)
        && by_name.is_none_or(|n| metadata["name"] == n)
        && by_label.is_none_or(|(k, v)| metadata["labels"][k] == v)
}

fn list(world: &mut World, namespace: Option<&str>, seen: &Seen) -> Response {
    let token = seen.query.get("continue").cloned().unwrap_or_default();
    if !token.is_empty() && world.gone_once.as_ref() == Some(&token) {
        world.gone_once = None;
        return answer(
            410,
            &status(
                410,
                "Expired",
                "the provided continue parameter is too old",
                "",
            ),
        );
    }
    let all: Vec<&Value> = world
        .objects
        .values()
        .filter(|o| wanted(o, namespace, seen))
        .collect();
    let start: usize = token.parse().unwrap_or(0);
    let limit: usize = seen
        .query
        .get("limit")
        .and_then(|l| l.parse().ok())
        .unwrap_or(usize::MAX);
    let part = &all[start.min(all.len())..start.saturating_add(limit).min(all.len())];
    let mut metadata = json!({ "resourceVersion": world.version.to_string() });
    if start + part.len() < all.len() {
        metadata["continue"] = (start + part.len()).to_string().into();
    }
    if seen.accept.contains("as=Table") {
        let mut table = table(part, seen);
        table["metadata"] = metadata;
        return answer(200, &table);
    }
    answer(
        200,
        &json!({
            "kind": "MysqlBackupList", "apiVersion": API, "metadata": metadata, "items": part,
        }),
    )
}

fn table(objects: &[&Value], seen: &Seen) -> Value {
    let crd = serde_json::to_value(crds::MysqlBackup::crd()).unwrap();
    let columns = crd["spec"]["versions"][0]["additionalPrinterColumns"]
        .as_array()
        .unwrap()
        .clone();
    let mut definitions = vec![json!({ "name": "Name", "type": "string", "format": "name" })];
    definitions.extend(
        columns
            .iter()
            .map(|c| json!({ "name": c["name"], "type": c["type"] })),
    );
    let rows: Vec<Value> = objects
        .iter()
        .map(|object| {
            let mut cells = vec![object["metadata"]["name"].clone()];
            cells.extend(columns.iter().map(|c| cell(object, c)));
            let mut row = json!({ "cells": cells });
            if seen.query.get("includeObject").map(String::as_str) == Some("Metadata") {
                row["object"] = json!({ "metadata": object["metadata"] });
            }
            row
        })
        .collect();
    json!({ "kind": "Table", "apiVersion": "meta.k8s.io/v1", "columnDefinitions": definitions, "rows": rows })
}

/// A cell as the API server makes it: a date is an age, 5d here but for objects of another day.
fn cell(object: &Value, column: &Value) -> Value {
    let path = column["jsonPath"].as_str().unwrap();
    let value = match path.split_once("[?(@.type=='Ready')]") {
        Some((_, field)) => {
            let conditions = object["status"]["conditions"].as_array();
            let ready = conditions
                .into_iter()
                .flatten()
                .find(|c| c["type"] == "Ready");
            ready
                .map(|c| c[field.trim_start_matches('.')].clone())
                .unwrap_or_default()
        }
        None => {
            let pointer = path.replace('[', "/").replace(']', "").replace('.', "/");
            object.pointer(&pointer).cloned().unwrap_or_default()
        }
    };
    let made = value.as_str().and_then(crds::time::parse_rfc3339);
    let usual = crds::time::parse_rfc3339("2026-01-01T00:00:00Z");
    let older = made
        .zip(usual)
        .map_or(0, |(made, usual)| (usual - made).num_days());
    if path == ".metadata.creationTimestamp" && older > 0 {
        json!(format!("{}d", older + 5))
    } else if column["type"] == "date" && !value.is_null() {
        json!("5d")
    } else if value.is_object() {
        // A string to the API server, which prints it as JSON.
        value.to_string().into()
    } else {
        value
    }
}

fn watch(shared: &Shared, world: &World, namespace: Option<&str>, seen: &Seen) -> Response {
    let after: u64 = seen
        .query
        .get("resourceVersion")
        .and_then(|v| v.parse().ok())
        .unwrap_or(0);
    // What happened since the list must not be lost.
    let missed: Vec<Value> = world
        .objects
        .values()
        .filter(|o| {
            o["metadata"]["resourceVersion"]
                .as_str()
                .unwrap()
                .parse::<u64>()
                .unwrap()
                > after
        })
        .map(|o| json!({ "type": "MODIFIED", "object": o }))
        .collect();
    let namespace = namespace.map(str::to_owned);
    let seen = seen.clone();
    let live = futures::stream::unfold(shared.events.subscribe(), |mut events| async move {
        let event = events.recv().await.ok().filter(|e| !e.is_null())?;
        Some((event, events))
    });
    let lines = futures::stream::iter(missed)
        .chain(live)
        .filter_map(move |mut event| {
            let keep = wanted(&event["object"], namespace.as_deref(), &seen);
            if keep && seen.accept.contains("as=Table") {
                event["object"] = table(&[&event["object"].clone()], &seen);
            }
            let line = keep.then(|| Ok::<_, std::io::Error>(format!("{event}\n")));
            std::future::ready(line)
        });
    Body::from_stream(lines).into_response()
}

/// Pods as the controller of the Job that is asked for makes them: it is their owner, unless they say
/// who is.
fn of_job(pods: &[Value], query: &HashMap<String, String>) -> Vec<Value> {
    let label = "batch.kubernetes.io/job-name=";
    let selector = query.get("labelSelector").map(String::as_str);
    let job = selector.and_then(|s| s.strip_prefix(label));
    let owned = |pod: &Value| {
        let mut pod = pod.clone();
        if pod["metadata"]["ownerReferences"].is_null() {
            pod["metadata"]["ownerReferences"] = json!([{
                "apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": "j", "controller": true,
            }]);
        }
        pod
    };
    if job.is_none() {
        return pods.to_vec();
    }
    pods.iter().map(owned).collect()
}
