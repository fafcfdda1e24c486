//! An S3 server in memory that breaks on request, and whose answers to one caller can be held back: for
//! that caller the world stands still there, as for a frozen pod.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    missing_docs,
    unreachable_pub,
    reason = "tests"
)]

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use chrono::{DateTime, Utc};
use md5::Digest as _;

/// How the fake breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    None,
    RefuseStart,
    RefusePart,
    RefuseCompletion,
    FewerBytes,
    BitFlip,
    Gone,
    /// GET of an artefact: it is in an archive class.
    NoGet,
    /// GET of an artefact: the key may not.
    Forbidden,
    /// And what it keeps has other bytes, of the same number.
    ForbiddenAndFlipped,
    /// If-None-Match is passed over.
    IgnoresCondition,
    /// If-None-Match is answered by 501.
    RefusesCondition,
    /// The first write of each manifest, record or small file loses its end.
    TruncatesOnce,
    /// Every write of them flips a bit.
    FlipsAlways,
    /// A bucket with Object Lock: nothing without a checksum of the body.
    WantsChecksums,
    /// Completes, and answers 500 the first time.
    LosesAnswer,
}

/// Where a caller is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Its request has not been acted upon.
    Before,
    /// It has, and the answer is not there yet.
    After,
}

/// Holds one caller at one of its requests.
#[derive(Default)]
pub struct Gate {
    state: Mutex<Held>,
    changed: Condvar,
}

#[derive(Default)]
struct Held {
    seen: usize,
    at: Option<(usize, Moment)>,
    at_removal: bool,
    held: bool,
    open: bool,
}

impl Gate {
    /// Waits until the caller is held there; false if it has ended before.
    pub fn wait(&self, ended: &mut dyn FnMut() -> bool) -> bool {
        let deadline = Instant::now() + Duration::from_secs(120);
        let mut state = self.state.lock().unwrap();
        while !state.held {
            assert!(Instant::now() < deadline, "the caller never came");
            if ended() {
                return false;
            }
            state = self
                .changed
                .wait_timeout(state, Duration::from_millis(20))
                .unwrap()
                .0;
        }
        true
    }

    /// Lets it go on.
    pub fn open(&self) {
        self.state.lock().unwrap().open = true;
        self.changed.notify_all();
    }

    /// Requests so far.
    pub fn seen(&self) -> usize {
        self.state.lock().unwrap().seen
    }

    fn pass(&self, number: usize, moment: Moment, removes: bool) {
        let mut state = self.state.lock().unwrap();
        let removal = state.at_removal && removes && moment == Moment::Before;
        if state.at != Some((number, moment)) && !removal {
            return;
        }
        state.held = true;
        self.changed.notify_all();
        while !state.open {
            state = self.changed.wait(state).unwrap();
        }
    }
}

#[derive(Clone)]
struct Object {
    bytes: Vec<u8>,
    modified: DateTime<Utc>,
}

struct Upload {
    key: String,
    begun: DateTime<Utc>,
    parts: BTreeMap<u32, Vec<u8>>,
}

struct Fake {
    fault: Fault,
    objects: Mutex<BTreeMap<String, Object>>,
    uploads: Mutex<BTreeMap<String, Upload>>,
    /// Small files that were written once, and completions that were answered once.
    once: Mutex<std::collections::BTreeSet<String>>,
    count: std::sync::atomic::AtomicU64,
}

/// The fake's URL and a look at its keys.
pub struct FakeS3 {
    pub url: String,
    fake: Arc<Fake>,
}

impl FakeS3 {
    pub fn start(fault: Fault) -> Self {
        let fake = Arc::new(Fake {
            fault,
            objects: Mutex::default(),
            uploads: Mutex::default(),
            once: Mutex::default(),
            count: std::sync::atomic::AtomicU64::default(),
        });
        let url = serve(&fake, &Arc::default());
        Self { url, fake }
    }

    /// Another address of the same store, whose caller is held at its request of this number.
    pub fn gated(&self, number: usize, moment: Moment) -> (String, Arc<Gate>) {
        let gate = Arc::new(Gate::default());
        gate.state.lock().unwrap().at = Some((number, moment));
        (serve(&self.fake, &gate), gate)
    }

    /// Another address of the same store, whose caller is held when it removes an artefact.
    pub fn gated_at_removal(&self) -> (String, Arc<Gate>) {
        let gate = Arc::new(Gate::default());
        gate.state.lock().unwrap().at_removal = true;
        (serve(&self.fake, &gate), gate)
    }

    pub fn keys(&self) -> Vec<String> {
        self.fake.objects.lock().unwrap().keys().cloned().collect()
    }

    pub fn get(&self, key: &str) -> Option<Vec<u8>> {
        let objects = self.fake.objects.lock().unwrap();
        objects.get(key).map(|o| o.bytes.clone())
    }

    /// Puts an object that was written so many days ago.
    pub fn put(&self, key: &str, bytes: &[u8], days: i64) {
        let object = Object {
            bytes: bytes.to_vec(),
            modified: Utc::now() - chrono::Duration::days(days),
        };
        self.fake
            .objects
            .lock()
            .unwrap()
            .insert(key.to_owned(), object);
    }

    pub fn remove(&self, key: &str) {
        self.fake.objects.lock().unwrap().remove(key);
    }

    /// Begins an upload so many days ago, with one part of that time.
    pub fn begin(&self, key: &str, days: i64) {
        let upload = Upload {
            key: key.to_owned(),
            begun: Utc::now() - chrono::Duration::days(days),
            parts: [(1, b"part".to_vec())].into(),
        };
        self.fake
            .uploads
            .lock()
            .unwrap()
            .insert(format!("by-hand-{key}"), upload);
    }

    /// Keys of open uploads.
    pub fn open_uploads(&self) -> Vec<String> {
        let uploads = self.fake.uploads.lock().unwrap();
        let mut keys: Vec<String> = uploads.values().map(|u| u.key.clone()).collect();
        keys.sort();
        keys
    }

    pub fn open_parts(&self) -> usize {
        let uploads = self.fake.uploads.lock().unwrap();
        uploads.values().map(|u| u.parts.len()).sum()
    }
}

fn serve(fake: &Arc<Fake>, gate: &Arc<Gate>) -> String {
    let app = Router::new()
        .fallback(gated)
        .layer(axum::extract::DefaultBodyLimit::disable())
        .with_state((Arc::clone(fake), Arc::clone(gate)));
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            axum::serve(listener, app).await.unwrap();
        });
    });
    url
}

async fn gated(
    State((fake, gate)): State<(Arc<Fake>, Arc<Gate>)>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let number = {
        let mut state = gate.state.lock().unwrap();
        state.seen += 1;
        state.seen
    };
    tokio::task::spawn_blocking(move || {
        let removes = method == Method::DELETE && is_artefact(uri.path()) && uri.query().is_none();
        gate.pass(number, Moment::Before, removes);
        let response = answer(&fake, &method, &uri, &headers, &body);
        gate.pass(number, Moment::After, removes);
        response
    })
    .await
    .unwrap()
}

fn error(status: u16, code: &str) -> Response {
    let text = format!(
        "<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>the fake says {code}</Message></Error>"
    );
    (StatusCode::from_u16(status).unwrap(), text).into_response()
}

fn stamp(time: DateTime<Utc>) -> String {
    time.format("%Y-%m-%dT%H:%M:%S.000Z").to_string()
}

fn is_artefact(key: &str) -> bool {
    let name = key.rsplit('/').next().unwrap();
    let kinds = [".sql", ".tar", ".binlog"];
    kinds.iter().any(|kind| name.contains(kind)) && !name.ends_with(".json") && !is_own(key)
}

fn is_own(key: &str) -> bool {
    key.rsplit('/').next().unwrap().starts_with('.')
}

fn answer(fake: &Fake, method: &Method, uri: &Uri, headers: &HeaderMap, body: &Bytes) -> Response {
    let key = uri
        .path()
        .trim_start_matches("/backups")
        .trim_start_matches('/')
        .replace("%7E", "~");
    let query = uri.query().unwrap_or_default();
    let parameter = |name: &str| {
        query
            .split('&')
            .find_map(|p| p.strip_prefix(&format!("{name}=")))
            .map(|v| v.replace("%2F", "/").replace("%7E", "~"))
    };
    let fault = fake.fault;
    let conditional = headers.contains_key("if-none-match");
    if conditional && fault == Fault::RefusesCondition && *method != Method::GET {
        return error(501, "NotImplemented");
    }
    let conditional = conditional && fault != Fault::IgnoresCondition;
    let there = |key: &str| fake.objects.lock().unwrap().contains_key(key);
    match *method {
        Method::POST if query.contains("uploads") => {
            if fault == Fault::RefuseStart {
                return error(403, "AccessDenied");
            }
            let number = fake.count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            let id = format!("u{number}");
            let upload = Upload {
                key: key.clone(),
                begun: Utc::now(),
                parts: BTreeMap::new(),
            };
            fake.uploads.lock().unwrap().insert(id.clone(), upload);
            format!("<InitiateMultipartUploadResult><Bucket>backups</Bucket><Key>{key}</Key><UploadId>{id}</UploadId></InitiateMultipartUploadResult>").into_response()
        }
        Method::POST => {
            if fault == Fault::RefuseCompletion {
                return error(403, "AccessDenied");
            }
            if conditional && there(&key) {
                return error(412, "PreconditionFailed");
            }
            let id = parameter("uploadId").unwrap();
            let Some(upload) = fake.uploads.lock().unwrap().remove(&id) else {
                return error(404, "NoSuchUpload");
            };
            let bytes = upload.parts.into_values().flatten().collect();
            keep(fake, &key, bytes);
            if fault == Fault::LosesAnswer && fake.once.lock().unwrap().insert(key.clone()) {
                return error(500, "InternalError");
            }
            format!("<CompleteMultipartUploadResult><Bucket>backups</Bucket><Key>{key}</Key><ETag>\"e\"</ETag></CompleteMultipartUploadResult>").into_response()
        }
        Method::PUT => put(fake, &key, &parameter, headers, body, conditional),
        Method::DELETE => {
            match parameter("uploadId") {
                Some(id) => {
                    fake.uploads.lock().unwrap().remove(&id);
                }
                None => {
                    fake.objects.lock().unwrap().remove(&key);
                }
            }
            StatusCode::NO_CONTENT.into_response()
        }
        Method::GET if key.is_empty() && query.contains("uploads") => {
            let prefix = parameter("prefix").unwrap_or_default();
            let uploads = fake.uploads.lock().unwrap();
            let found: String = uploads
                .iter()
                .filter(|(_, u)| u.key.starts_with(&prefix))
                .map(|(id, u)| format!("<Upload><Key>{}</Key><UploadId>{id}</UploadId><Initiated>{}</Initiated></Upload>", u.key, stamp(u.begun)))
                .collect();
            dated(format!(
                "<ListMultipartUploadsResult><IsTruncated>false</IsTruncated>{found}</ListMultipartUploadsResult>"
            ))
        }
        Method::GET if query.contains("uploadId") => {
            let uploads = fake.uploads.lock().unwrap();
            let Some(upload) = uploads.get(&parameter("uploadId").unwrap()) else {
                return error(404, "NoSuchUpload");
            };
            let parts: String = upload
                .parts
                .keys()
                .map(|n| {
                    format!(
                        "<Part><PartNumber>{n}</PartNumber><LastModified>{}</LastModified></Part>",
                        stamp(upload.begun)
                    )
                })
                .collect();
            dated(format!(
                "<ListPartsResult><IsTruncated>false</IsTruncated>{parts}</ListPartsResult>"
            ))
        }
        Method::GET if key.is_empty() => {
            let prefix = parameter("prefix").unwrap_or_default();
            let objects = fake.objects.lock().unwrap();
            let contents: String = objects
                .iter()
                .filter(|(k, _)| k.starts_with(&prefix) && !k[prefix.len()..].contains('/'))
                .map(|(k, o)| format!("<Contents><Key>{k}</Key><Size>{}</Size><LastModified>{}</LastModified><ETag>\"e\"</ETag></Contents>", o.bytes.len(), stamp(o.modified)))
                .collect();
            let below = objects
                .keys()
                .filter_map(|k| k.strip_prefix(&prefix)?.split_once('/'));
            let names: std::collections::BTreeSet<&str> = below.map(|(name, _)| name).collect();
            let directories: String = names
                .iter()
                .map(|name| {
                    format!("<CommonPrefixes><Prefix>{prefix}{name}/</Prefix></CommonPrefixes>")
                })
                .collect();
            format!("<ListBucketResult><IsTruncated>false</IsTruncated><KeyCount>1</KeyCount>{contents}{directories}</ListBucketResult>").into_response()
        }
        _ => read(fake, method, &key),
    }
}

fn dated(text: String) -> Response {
    (
        [(
            "date",
            Utc::now().format("%a, %d %b %Y %H:%M:%S GMT").to_string(),
        )],
        text,
    )
        .into_response()
}

fn put(
    fake: &Fake,
    key: &str,
    parameter: &dyn Fn(&str) -> Option<String>,
    headers: &HeaderMap,
    body: &Bytes,
    conditional: bool,
) -> Response {
    let fault = fake.fault;
    if let Some(said) = headers.get("content-md5") {
        let right = base64::engine::general_purpose::STANDARD.encode(md5::Md5::digest(body));
        if said.to_str().unwrap() != right {
            return error(400, "BadDigest");
        }
    } else if fault == Fault::WantsChecksums {
        // The words of Amazon S3.
        return (
            StatusCode::BAD_REQUEST,
            "<Error><Code>InvalidRequest</Code><Message>Content-MD5 OR x-amz-checksum- HTTP header is required for Put Part requests with Object Lock parameters</Message></Error>",
        )
            .into_response();
    }
    if let Some(number) = parameter("partNumber") {
        if fault == Fault::RefusePart && number != "1" {
            return error(403, "AccessDenied");
        }
        let id = parameter("uploadId").unwrap();
        let mut uploads = fake.uploads.lock().unwrap();
        let Some(upload) = uploads.get_mut(&id) else {
            return error(404, "NoSuchUpload");
        };
        upload.parts.insert(number.parse().unwrap(), body.to_vec());
        return ([("etag", "\"e\"")], "").into_response();
    }
    let taken = fake.objects.lock().unwrap().contains_key(key);
    if conditional && taken {
        return error(412, "PreconditionFailed");
    }
    let mut bytes = body.to_vec();
    let small = !is_artefact(key) && !is_own(key);
    if small && fault == Fault::FlipsAlways {
        bytes[0] ^= 1;
    }
    if small && fault == Fault::TruncatesOnce && fake.once.lock().unwrap().insert(key.to_owned()) {
        bytes.truncate(bytes.len() / 2);
    }
    keep(fake, key, bytes);
    let first = || fake.once.lock().unwrap().insert(key.to_owned());
    if fault == Fault::LosesAnswer && is_artefact(key) && first() {
        return error(500, "InternalError");
    }
    ([("etag", "\"e\"")], "").into_response()
}

fn keep(fake: &Fake, key: &str, mut bytes: Vec<u8>) {
    if fake.fault == Fault::ForbiddenAndFlipped && is_artefact(key) {
        bytes[0] ^= 1;
    }
    let object = Object {
        bytes,
        modified: Utc::now(),
    };
    fake.objects.lock().unwrap().insert(key.to_owned(), object);
}

fn read(fake: &Fake, method: &Method, key: &str) -> Response {
    let objects = fake.objects.lock().unwrap();
    let Some(object) = objects.get(key) else {
        return error(404, "NoSuchKey");
    };
    let mut bytes = object.bytes.clone();
    if is_artefact(key) && *method == Method::GET {
        match fake.fault {
            Fault::FewerBytes => bytes.truncate(bytes.len() / 2),
            Fault::BitFlip => bytes[0] ^= 1,
            Fault::Gone => return error(404, "NoSuchKey"),
            Fault::NoGet => return error(403, "InvalidObjectState"),
            Fault::Forbidden | Fault::ForbiddenAndFlipped => return error(403, "AccessDenied"),
            _ => {}
        }
    }
    let length = bytes.len().to_string();
    let body = if *method == Method::HEAD {
        Vec::new()
    } else {
        bytes
    };
    let modified = object
        .modified
        .format("%a, %d %b %Y %H:%M:%S GMT")
        .to_string();
    (
        [
            ("content-length", length),
            ("etag", "\"e\"".into()),
            ("last-modified", modified),
        ],
        body,
    )
        .into_response()
}
