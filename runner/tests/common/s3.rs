//! A real S3 server: moto, installed once into the user's cache.
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

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use super::backup::{Backup, storage};
use super::{Runner, cache, end_with_this_process, free_port};

/// What each of these servers takes.
pub const ACCESS: &str = "AKIDEXAMPLE";
pub const SECRET: &str = "S3cr3t-marker-of-the-store";

const MOTO: &str = "moto[server,s3]==5.*";

fn moto_program() -> PathBuf {
    cache::virtual_environment("moto-5", &[MOTO]).join("bin/moto_server")
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

pub fn remove(url: &str, key: &str) {
    let (good, _) = curl(&["-X", "DELETE", &format!("{url}/backups/{key}")]);
    assert!(good, "{key} could not be removed");
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

/// This bucket as the destination of a run, with its keys beside the runner.
pub fn destination(runner: &Runner, url: &str, bucket: &str) -> serde_json::Value {
    let dir = runner.out.path();
    std::fs::write(dir.join("id"), ACCESS).unwrap();
    std::fs::write(dir.join("key"), SECRET).unwrap();
    serde_json::json!({"s3": {
        "bucket": bucket, "prefix": "pre/fix", "endpoint": url, "region": "us-east-1", "forcePathStyle": true,
        "accessKeyIdFile": dir.join("id"), "secretAccessKeyFile": dir.join("key"),
    }})
}

/// A Backup that stores in the bucket `backups` at `url`.
pub fn archive(url: &str) -> Backup {
    let mut backup = Backup::new();
    let fields = serde_json::json!({
        "provider": "s3", "bucket": "backups", "region": "us-east-1", "endpoint": url, "forcePathStyle": true,
        "maxRetries": 3, "accessKeyId": backup.secret("id", ACCESS), "secretAccessKey": backup.secret("key", SECRET),
    });
    backup.add("storages", storage("bucket", "s3", "arch", fields));
    backup
}

/// The runner with this bucket as destination; `more` is merged into the spec.
pub fn with_bucket(
    runner: Runner,
    run: &str,
    url: &str,
    bucket: &str,
    more: serde_json::Value,
) -> Runner {
    let mut spec = serde_json::json!({"destination": destination(&runner, url, bucket)});
    for (key, value) in more.as_object().unwrap() {
        spec[key] = value.clone();
    }
    runner
        .unset("SQLPATH")
        .spec(run, Some("2025-01-15T10:30:00Z"), spec)
}
