//! A real S3 server (moto, installed once into the user's cache), and a fake one that breaks on request.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    clippy::zombie_processes,
    missing_docs,
    unreachable_pub,
    reason = "tests"
)]

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};

use super::{Runner, end_with_this_process, free_port};

const MOTO: &str = "moto[server,s3]==5.*";

fn moto_program() -> PathBuf {
    let cache = std::env::var("XDG_CACHE_HOME").map_or_else(
        |_| PathBuf::from(std::env::var("HOME").unwrap()).join(".cache"),
        PathBuf::from,
    );
    let venv = cache.join("backup-runner-tests").join("moto-5");
    let program = venv.join("bin/moto_server");
    if !program.exists() {
        for command in [
            Command::new("python3").args(["-m", "venv"]).arg(&venv),
            Command::new(venv.join("bin/pip")).args(["-q", "install", MOTO]),
        ] {
            assert!(
                command.status().unwrap().success(),
                "{command:?}; apt-get install python3-venv"
            );
        }
    }
    program
}

/// The Python that the server runs in.
pub fn python() -> PathBuf {
    moto_program().with_file_name("python3")
}

/// URL of a real server with the bucket `backups`, ended with this process.
pub fn moto() -> &'static str {
    static URL: OnceLock<String> = OnceLock::new();
    URL.get_or_init(|| {
        let port = free_port();
        let child = Command::new(moto_program())
            .args(["-H", "127.0.0.1", "-p", &port.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        end_with_this_process(child.id());
        let url = format!("http://127.0.0.1:{port}");
        let deadline = Instant::now() + Duration::from_secs(60);
        while !curl(&["-X", "PUT", &format!("{url}/backups")]).0 {
            assert!(Instant::now() < deadline, "moto did not start");
            std::thread::sleep(Duration::from_millis(200));
        }
        url
    })
}

fn curl(args: &[&str]) -> (bool, Vec<u8>) {
    let output = Command::new("curl").args(["-sf", "--max-time", "60", "-H", "Authorization: AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20250115/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"]).args(args).output().unwrap();
    (output.status.success(), output.stdout)
}

pub fn get(url: &str, key: &str) -> Vec<u8> {
    let (good, bytes) = curl(&[&format!("{url}/backups/{key}")]);
    assert!(good, "{key} is not in the store");
    bytes
}

pub fn list(url: &str, prefix: &str) -> Vec<String> {
    let (good, text) = curl(&[&format!("{url}/backups?list-type=2&prefix={prefix}")]);
    assert!(good);
    let text = String::from_utf8(text).unwrap();
    text.split("<Key>")
        .skip(1)
        .map(|t| t.split("</Key>").next().unwrap().to_owned())
        .collect()
}

/// Keys of uploads in parts that were begun and not completed.
pub fn open_uploads(url: &str, bucket: &str) -> Vec<String> {
    let (good, text) = curl(&[&format!("{url}/{bucket}?uploads")]);
    assert!(good);
    let text = String::from_utf8(text).unwrap();
    text.split("<Key>")
        .skip(1)
        .map(|t| t.split("</Key>").next().unwrap().to_owned())
        .collect()
}

/// True if an upload of `key` was begun and has a part.
pub fn has_part(url: &str, bucket: &str, key: &str) -> bool {
    let (good, text) = curl(&[&format!("{url}/{bucket}?uploads")]);
    assert!(good);
    let text = String::from_utf8(text).unwrap();
    let tag = format!("<Key>{key}</Key>");
    let Some(upload) = text.split("<Upload>").find(|u| u.contains(&tag)) else {
        return false;
    };
    let id = upload.split("<UploadId>").nth(1).unwrap();
    let id = id.split("</UploadId>").next().unwrap();
    let (good, parts) = curl(&[&format!("{url}/{bucket}/{key}?uploadId={id}")]);
    good && String::from_utf8(parts).unwrap().contains("<PartNumber>")
}

/// Begins an upload in parts, as somebody else's program would.
pub fn begin_upload(url: &str, bucket: &str, key: &str) {
    assert!(curl(&["-X", "POST", &format!("{url}/{bucket}/{key}?uploads")]).0);
}

pub fn make_bucket(url: &str, bucket: &str) {
    assert!(curl(&["-X", "PUT", &format!("{url}/{bucket}")]).0);
}

/// The runner with this bucket as destination; `more` is merged into the spec.
pub fn with_bucket(
    runner: Runner,
    run: &str,
    url: &str,
    bucket: &str,
    more: serde_json::Value,
) -> Runner {
    let dir = runner.out.path().to_owned();
    std::fs::write(dir.join("id"), "AKIDEXAMPLE").unwrap();
    std::fs::write(dir.join("key"), "S3cr3t-marker-of-the-store").unwrap();
    let mut spec = serde_json::json!({"destination": {"s3": {
        "bucket": bucket, "prefix": "pre/fix", "endpoint": url, "region": "us-east-1", "forcePathStyle": true,
        "accessKeyIdFile": dir.join("id"), "secretAccessKeyFile": dir.join("key"),
    }}});
    for (key, value) in more.as_object().unwrap() {
        spec[key] = value.clone();
    }
    runner
        .unset("SQLPATH")
        .spec(run, Some("2025-01-15T10:30:00Z"), spec)
}

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
    NoGet,
}

struct Fake {
    fault: Fault,
    objects: Mutex<HashMap<String, Vec<u8>>>,
    parts: Mutex<HashMap<(String, u32), Vec<u8>>>,
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
            parts: Mutex::default(),
        });
        let app = Router::new()
            .fallback(answer)
            .layer(axum::extract::DefaultBodyLimit::disable())
            .with_state(Arc::clone(&fake));
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                axum::serve(listener, app).await.unwrap();
            });
        });
        Self { url, fake }
    }

    pub fn keys(&self) -> Vec<String> {
        let mut keys: Vec<String> = self.fake.objects.lock().unwrap().keys().cloned().collect();
        keys.sort();
        keys
    }

    pub fn open_parts(&self) -> usize {
        self.fake.parts.lock().unwrap().len()
    }
}

fn error(status: u16, code: &str) -> Response {
    let text = format!(
        "<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>the fake says {code}</Message></Error>"
    );
    (StatusCode::from_u16(status).unwrap(), text).into_response()
}

async fn answer(
    State(fake): State<Arc<Fake>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let key = uri
        .path()
        .trim_start_matches("/backups")
        .trim_start_matches('/')
        .to_owned();
    let query = uri.query().unwrap_or_default();
    let parameter = |name: &str| {
        query
            .split('&')
            .find_map(|p| p.strip_prefix(&format!("{name}=")))
            .map(str::to_owned)
    };
    let artefact = key.contains(".sql") && !key.ends_with(".json");
    let fault = fake.fault;
    match method {
        Method::POST if query.contains("uploads") => {
            if fault == Fault::RefuseStart {
                return error(403, "AccessDenied");
            }
            format!("<InitiateMultipartUploadResult><Bucket>backups</Bucket><Key>{key}</Key><UploadId>u1</UploadId></InitiateMultipartUploadResult>").into_response()
        }
        Method::POST => {
            if fault == Fault::RefuseCompletion {
                return error(403, "AccessDenied");
            }
            let mut parts = fake.parts.lock().unwrap();
            let mut numbers: Vec<u32> = parts
                .keys()
                .filter(|(k, _)| *k == key)
                .map(|(_, n)| *n)
                .collect();
            numbers.sort_unstable();
            let whole = numbers
                .iter()
                .flat_map(|n| parts.remove(&(key.clone(), *n)).unwrap())
                .collect();
            fake.objects.lock().unwrap().insert(key.clone(), whole);
            format!("<CompleteMultipartUploadResult><Bucket>backups</Bucket><Key>{key}</Key><ETag>\"e\"</ETag></CompleteMultipartUploadResult>").into_response()
        }
        Method::PUT => {
            if let Some(number) = parameter("partNumber") {
                if fault == Fault::RefusePart && number != "1" {
                    return error(403, "AccessDenied");
                }
                fake.parts
                    .lock()
                    .unwrap()
                    .insert((key, number.parse().unwrap()), body.to_vec());
            } else {
                let mut objects = fake.objects.lock().unwrap();
                if headers.contains_key("if-none-match") && objects.contains_key(&key) {
                    return error(412, "PreconditionFailed");
                }
                objects.insert(key, body.to_vec());
            }
            ([("etag", "\"e\"")], "").into_response()
        }
        Method::DELETE => {
            fake.objects.lock().unwrap().remove(&key);
            if query.contains("uploadId") {
                fake.parts.lock().unwrap().retain(|(k, _), _| *k != key);
            }
            StatusCode::NO_CONTENT.into_response()
        }
        Method::GET if key.is_empty() => {
            let prefix = parameter("prefix").unwrap_or_default().replace("%2F", "/");
            let objects = fake.objects.lock().unwrap();
            let contents: String = objects
                .iter()
                .filter(|(k, _)| k.starts_with(&prefix) && !k[prefix.len()..].contains('/'))
                .map(|(k, v)| format!("<Contents><Key>{k}</Key><Size>{}</Size><LastModified>2025-01-15T10:30:00.000Z</LastModified><ETag>\"e\"</ETag></Contents>", v.len()))
                .collect();
            format!("<ListBucketResult><IsTruncated>false</IsTruncated><KeyCount>1</KeyCount>{contents}</ListBucketResult>").into_response()
        }
        _ => read(&fake, &method, &key, artefact),
    }
}

fn read(fake: &Fake, method: &Method, key: &str, artefact: bool) -> Response {
    let objects = fake.objects.lock().unwrap();
    let Some(bytes) = objects.get(key) else {
        return error(404, "NoSuchKey");
    };
    let mut bytes = bytes.clone();
    if artefact && *method == Method::GET {
        match fake.fault {
            Fault::FewerBytes => bytes.truncate(bytes.len() / 2),
            Fault::BitFlip => bytes[0] ^= 1,
            Fault::Gone => return error(404, "NoSuchKey"),
            Fault::NoGet => return error(403, "InvalidObjectState"),
            _ => {}
        }
    }
    let length = bytes.len().to_string();
    let body = if *method == Method::HEAD {
        Vec::new()
    } else {
        bytes
    };
    (
        [
            ("content-length", length),
            ("etag", "\"e\"".into()),
            ("last-modified", "Wed, 15 Jan 2025 10:30:00 GMT".into()),
        ],
        body,
    )
        .into_response()
}
