//! An API server in memory: resource versions, conflicts, preconditions, a history for watches, and
//! faults at any one call.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use chrono::{DateTime, Utc};
use crds::labels;
use crds::time::rfc3339;
use http::{Method, Request, Response, StatusCode};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

/// What happens to one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Refused with this code, without effect.
    Refused(u16),
    /// The write takes effect, its answer is lost.
    AnswerLost,
    /// Another client writes the object just before the call.
    Conflict,
}

/// One change, as a watch brings it.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) resource: String,
    pub(crate) deleted: bool,
    pub(crate) object: Value,
}

#[derive(Clone, Default)]
pub(crate) struct State {
    pub(crate) objects: BTreeMap<(String, String), Value>,
    pub(crate) history: Vec<Arc<Change>>,
    /// How often a Job of this slot or request was created.
    pub(crate) created: BTreeMap<String, usize>,
    pub(crate) calls: usize,
    pub(crate) fault: Option<(usize, Fault)>,
    /// Writes, each with when it was made.
    pub(crate) writes: Vec<(DateTime<Utc>, String)>,
    /// What creations of Jobs are answered, if not yes: code and body.
    pub(crate) refuse: Option<(u16, Value)>,
    pub(crate) now: DateTime<Utc>,
    pub(crate) version: u64,
    pub(crate) uids: u64,
    /// Steps of the story that are done.
    pub(crate) steps: usize,
}

/// The server; clones share its state.
#[derive(Clone, Default)]
pub(crate) struct Server {
    state: Arc<Mutex<State>>,
    /// The state before and after each call, if they are kept.
    points: Option<Arc<Mutex<Vec<[State; 2]>>>>,
}

type Answer = (StatusCode, Value);

impl Server {
    /// A server in this state.
    pub(crate) fn of(state: State) -> Self {
        Self {
            state: Arc::new(Mutex::new(state)),
            ..Self::default()
        }
    }

    /// Keeps the state before and after each call from now on.
    pub(crate) fn keep_points(&mut self) {
        self.points = Some(Arc::default());
    }

    /// What was kept.
    pub(crate) fn points(&self) -> Vec<[State; 2]> {
        self.points
            .as_ref()
            .map(|p| p.lock().unwrap().clone())
            .unwrap_or_default()
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub(crate) fn client(&self) -> Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move { server.call(request).await }
        });
        Client::new(service, "default")
    }

    async fn call(self, request: Request<Body>) -> Result<Response<Body>, std::io::Error> {
        let (parts, body) = request.into_parts();
        let body = body.collect_bytes().await.unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let fault = {
            let mut state = self.state();
            state.calls += 1;
            let at = state.calls;
            state
                .fault
                .filter(|(n, _)| *n == at)
                .map(|(_, fault)| fault)
        };
        let lost = || std::io::Error::other("connection reset");
        match fault {
            Some(Fault::Refused(code)) => return Ok(respond(refusal(code, "Refused", "no"))),
            Some(Fault::Conflict) => self.state().touch(parts.uri.path()),
            _ => {}
        }
        let target = parts
            .uri
            .path_and_query()
            .map(ToString::to_string)
            .unwrap_or_default();
        if parts.method != Method::GET {
            let mut state = self.state();
            let write = (state.now, format!("{} {}", parts.method, parts.uri.path()));
            state.writes.push(write);
        }
        let before = self.points.as_ref().map(|_| self.state().clone());
        let answer = self.state().handle(&parts.method, &target, &body);
        if let (Some(points), Some(before)) = (&self.points, before) {
            points.lock().unwrap().push([before, self.state().clone()]);
        }
        match fault {
            Some(Fault::AnswerLost) => Err(lost()),
            _ => Ok(respond(answer)),
        }
    }
}

fn respond((code, body): Answer) -> Response<Body> {
    let body = Body::from(serde_json::to_vec(&body).unwrap());
    Response::builder().status(code).body(body).unwrap()
}

pub(crate) fn status_body(code: u16, reason: &str, message: &str) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": message})
}

fn refusal(code: u16, reason: &str, message: &str) -> Answer {
    (
        StatusCode::from_u16(code).unwrap(),
        status_body(code, reason, message),
    )
}

/// What `namespaces/<ns>/` leads to.
struct Target {
    namespace: String,
    resource: String,
    name: Option<String>,
    sub: Option<String>,
    query: String,
}

impl Target {
    /// Where an object of that name is kept.
    fn key(&self, name: &str) -> String {
        // The Leases of a story have names of their own.
        if self.resource == "leases" {
            return name.to_owned();
        }
        key(Some(&self.namespace), name)
    }
}

/// Names are kept with their namespace, but those of the usual one.
pub(crate) fn key(namespace: Option<&str>, name: &str) -> String {
    match namespace {
        None | Some("default") => name.to_owned(),
        Some(namespace) => format!("{namespace}/{name}"),
    }
}

/// `/apis/<group>/<version>/namespaces/<ns>/<resource>[/<name>[/<subresource>]]?<query>`.
fn split(target: &str) -> Target {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let at = parts.iter().position(|p| *p == "namespaces").unwrap();
    let part = |i: usize| parts.get(at + i).map(|p| (*p).to_owned());
    Target {
        namespace: part(1).unwrap(),
        resource: part(2).unwrap(),
        name: part(3),
        sub: part(4),
        query: query.to_owned(),
    }
}

impl State {
    fn stamp(&mut self, object: &mut Value) {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
    }

    fn store(&mut self, resource: &str, mut object: Value) -> Value {
        self.stamp(&mut object);
        let meta = &object["metadata"];
        let name = key(meta["namespace"].as_str(), meta["name"].as_str().unwrap());
        let deleted = false;
        self.history.push(Arc::new(Change {
            resource: resource.into(),
            deleted,
            object: object.clone(),
        }));
        self.objects.insert((resource.into(), name), object.clone());
        object
    }

    /// Adds an object as a user would.
    pub(crate) fn put(&mut self, resource: &str, mut object: Value) -> Value {
        let fresh = object["metadata"]["uid"].is_null();
        if fresh {
            self.uids += 1;
            object["metadata"]["uid"] = json!(format!("uid-{}", self.uids));
            object["metadata"]["creationTimestamp"] = json!(rfc3339(self.now));
            if object["metadata"]["namespace"].is_null() {
                object["metadata"]["namespace"] = json!("default");
            }
            object["metadata"]["generation"] = json!(1);
        }
        self.store(resource, object)
    }

    pub(crate) fn get(&self, resource: &str, name: &str) -> Option<Value> {
        self.objects
            .get(&(resource.to_owned(), name.to_owned()))
            .cloned()
    }

    /// Changes an object as another client would.
    pub(crate) fn change(&mut self, resource: &str, name: &str, change: impl FnOnce(&mut Value)) {
        if let Some(mut object) = self.get(resource, name) {
            let spec = object["spec"].clone();
            change(&mut object);
            if object["spec"] != spec {
                let generation = object["metadata"]["generation"].as_i64().unwrap_or(0);
                object["metadata"]["generation"] = json!(generation + 1);
            }
            self.store(resource, object);
        }
    }

    pub(crate) fn remove(&mut self, resource: &str, name: &str) {
        if let Some(mut object) = self.objects.remove(&(resource.to_owned(), name.to_owned())) {
            self.stamp(&mut object);
            self.history.push(Arc::new(Change {
                resource: resource.into(),
                deleted: true,
                object,
            }));
        }
    }

    /// A write of somebody else to the object a call is about.
    fn touch(&mut self, path: &str) {
        let target = split(path);
        let name = target.name.as_ref().map(|name| target.key(name));
        if let Some(name) = name.filter(|_| target.resource == "mysqlbackups") {
            self.change(&target.resource, &name, |o| {
                o["metadata"]["labels"]["touched"] = json!("yes")
            });
        }
    }

    fn handle(&mut self, method: &Method, target: &str, body: &Value) -> Answer {
        let target = split(target);
        let name = target.name.as_ref().map(|name| target.key(name));
        let resource = target.resource.as_str();
        match (method, name.as_deref()) {
            (&Method::GET, None) => self.list(&target),
            (&Method::GET, Some(name)) => self.get(resource, name).map_or_else(
                || refusal(404, "NotFound", "not found"),
                |object| (StatusCode::OK, object),
            ),
            (&Method::POST, _) => self.create(&target, body.clone()),
            (&Method::DELETE, Some(name)) => self.delete(resource, name, body),
            (&Method::PATCH, Some(name)) => self.patch(resource, name, target.sub.is_some(), body),
            other => panic!("{other:?}"),
        }
    }

    fn list(&self, target: &Target) -> Answer {
        let wanted = target
            .query
            .split('&')
            .find_map(|q| q.strip_prefix("labelSelector="));
        let wanted = wanted.and_then(|w| w.split_once("%3D"));
        let of = |object: &&Value| {
            wanted.is_none_or(|(label, value)| {
                object["metadata"]["labels"][label.replace("%2F", "/")].as_str() == Some(value)
            })
        };
        // Of events only what is about the object that is asked for.
        let about = target
            .query
            .split("involvedObject.uid%3D")
            .nth(1)
            .and_then(|rest| rest.split(['%', '&']).next());
        let about = |object: &&Value| {
            about.is_none_or(|uid| object["involvedObject"]["uid"].as_str() == Some(uid))
        };
        let here =
            |object: &&Value| object["metadata"]["namespace"].as_str() == Some(&*target.namespace);
        let all = self
            .objects
            .iter()
            .filter(|((r, _), _)| *r == target.resource)
            .map(|(_, o)| o);
        let all = all.filter(here).filter(of).filter(about);
        let items: Vec<Value> = all.cloned().collect();
        (
            StatusCode::OK,
            json!({"kind": "List", "apiVersion": "v1", "metadata": {}, "items": items}),
        )
    }

    fn create(&mut self, target: &Target, object: Value) -> Answer {
        let resource = target.resource.as_str();
        let name = target.key(object["metadata"]["name"].as_str().unwrap());
        if resource == "jobs"
            && let Some((code, body)) = &self.refuse
        {
            return (StatusCode::from_u16(*code).unwrap(), body.clone());
        }
        if self.get(resource, &name).is_some() {
            return refusal(
                409,
                "AlreadyExists",
                &format!("{resource} {name:?} already exists"),
            );
        }
        if resource == "jobs" {
            let notes = &object["metadata"]["annotations"];
            let of = |key: &str| notes[key].as_str().map(str::to_owned);
            let what = of(labels::SCHEDULED_AT)
                .or_else(|| of(labels::REQUEST_ID))
                .or_else(|| of(labels::ACTION).map(|action| format!("{action} {name}")))
                .unwrap();
            let what = key(Some(&target.namespace), &what);
            *self.created.entry(what).or_default() += 1;
        }
        let mut object = object;
        if resource == "jobs" {
            object["status"] = json!({"startTime": rfc3339(self.now), "active": 1, "ready": 1});
        }
        let object = self.put(resource, object);
        (StatusCode::CREATED, object)
    }

    fn delete(&mut self, resource: &str, name: &str, options: &Value) -> Answer {
        let Some(object) = self.get(resource, name) else {
            return refusal(404, "NotFound", "not found");
        };
        let wanted = &options["preconditions"]["uid"];
        if !wanted.is_null() && *wanted != object["metadata"]["uid"] {
            return refusal(409, "Conflict", "the UID in the precondition differs");
        }
        if options["propagationPolicy"] == "Foreground" {
            let now = rfc3339(self.now);
            self.change(resource, name, |o| {
                o["metadata"]["deletionTimestamp"] = json!(now)
            });
        } else {
            self.remove(resource, name);
        }
        (
            StatusCode::OK,
            json!({"kind": "Status", "apiVersion": "v1", "status": "Success"}),
        )
    }

    fn patch(&mut self, resource: &str, name: &str, status: bool, body: &Value) -> Answer {
        let Some(mut object) = self.get(resource, name) else {
            return refusal(404, "NotFound", "not found");
        };
        let expected = &body["metadata"]["resourceVersion"];
        if expected.is_string() && *expected != object["metadata"]["resourceVersion"] {
            return refusal(409, "Conflict", "the object has been modified");
        }
        let before = object.clone();
        if body.is_array() {
            if let Err(problem) = json_patch(&mut object, body) {
                return refusal(422, "Invalid", &problem);
            }
        } else {
            merge(&mut object, body);
        }
        object["metadata"]["resourceVersion"] = before["metadata"]["resourceVersion"].clone();
        if status {
            object["spec"] = before["spec"].clone();
        } else {
            object["status"] = before["status"].clone();
        }
        if object == before {
            return (StatusCode::OK, object);
        }
        if object["spec"] != before["spec"] {
            let generation = object["metadata"]["generation"].as_i64().unwrap_or(0);
            object["metadata"]["generation"] = json!(generation + 1);
        }
        (StatusCode::OK, self.store(resource, object))
    }
}

/// RFC 7386.
pub(crate) fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    let map = target.as_object_mut().unwrap();
    for (key, value) in patch {
        if value.is_null() {
            map.remove(key);
        } else {
            merge(map.entry(key.clone()).or_insert(Value::Null), value);
        }
    }
}

/// The part of RFC 6902 the operator uses.
fn json_patch(object: &mut Value, ops: &Value) -> Result<(), String> {
    for op in ops.as_array().unwrap() {
        let path = op["path"].as_str().unwrap();
        match op["op"].as_str().unwrap() {
            "test" if object.pointer(path) == Some(&op["value"]) => {}
            "test" => return Err(format!("test of {path} failed")),
            "replace" => *object.pointer_mut(path).ok_or("no such path")? = op["value"].clone(),
            "remove" => {
                let (parent, key) = path.rsplit_once('/').unwrap();
                let key = key.replace("~1", "/").replace("~0", "~");
                let parent = object.pointer_mut(parent).and_then(Value::as_object_mut);
                parent
                    .ok_or("no such path")?
                    .remove(&key)
                    .ok_or("no such key")?;
            }
            other => panic!("{other}"),
        }
    }
    Ok(())
}
