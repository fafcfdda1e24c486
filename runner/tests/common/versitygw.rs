//! A real S3 server that enforces Object Lock: versitygw, on files of its own.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    missing_docs,
    unreachable_pub,
    reason = "tests"
)]

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use base64::Engine as _;
use md5::Digest as _;
use tempfile::TempDir;

use super::s3::{ACCESS, SECRET};
use super::{free_port, testbed};

/// A server that ends when this is dropped.
pub struct Versitygw {
    pub url: String,
    child: Child,
    dir: TempDir,
}

impl Drop for Versitygw {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Versitygw {
    /// Starts one that has no bucket. What is removed from a bucket with Object Lock stays as a version.
    pub fn start() -> Self {
        let dir = tempfile::Builder::new()
            .prefix("runner-s3")
            .tempdir()
            .unwrap();
        let below = |name: &str| {
            let path = dir.path().join(name);
            std::fs::create_dir(&path).unwrap();
            path
        };
        let (objects, facts, old) = (below("objects"), below("facts"), below("versions"));
        let port = free_port();
        let mut command = Command::new(testbed(&["versitygw"]));
        let child = command
            .args(["--access", ACCESS, "--secret", SECRET, "--quiet"])
            .args(["--port", &format!("127.0.0.1:{port}"), "posix"])
            .arg("--sidecar")
            .arg(facts)
            .arg("--versioning-dir")
            .arg(old)
            .arg(objects)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let server = Self {
            url: format!("http://127.0.0.1:{port}"),
            child,
            dir,
        };
        let deadline = Instant::now() + Duration::from_secs(60);
        while !server.ask("GET", "", &[], "").0 {
            assert!(Instant::now() < deadline, "versitygw did not start");
            std::thread::sleep(Duration::from_millis(100));
        }
        server
    }

    /// A request that is signed; whether it was good, and the answer.
    pub fn ask(&self, method: &str, path: &str, headers: &[&str], body: &str) -> (bool, String) {
        let mut command = Command::new("curl");
        command
            .args(["-sS", "--fail-with-body", "--max-time", "60", "-X", method])
            .args(["--aws-sigv4", "aws:amz:us-east-1:s3"])
            .args(["--user", &format!("{ACCESS}:{SECRET}")])
            .args(["-H", "x-amz-content-sha256: UNSIGNED-PAYLOAD"]);
        for header in headers {
            command.args(["-H", header]);
        }
        if !body.is_empty() {
            command.args(["--data-binary", body]);
        }
        let output = command
            .arg(format!("{}/{path}", self.url))
            .output()
            .unwrap();
        let said = [output.stdout, output.stderr].concat();
        (
            output.status.success(),
            String::from_utf8_lossy(&said).into_owned(),
        )
    }

    fn must(&self, method: &str, path: &str, headers: &[&str], body: &str) -> String {
        let (good, said) = self.ask(method, path, headers, body);
        assert!(good, "{method} {path}: {said}");
        said
    }

    pub fn make_bucket(&self, bucket: &str) {
        self.must("PUT", bucket, &[], "");
    }

    /// A bucket in which each object stays for a day, whoever wants to remove it.
    pub fn make_locked_bucket(&self, bucket: &str) {
        let lock = "x-amz-bucket-object-lock-enabled: true";
        self.must("PUT", bucket, &[lock], "");
        let rule = "<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled><Rule><DefaultRetention><Mode>COMPLIANCE</Mode><Days>1</Days></DefaultRetention></Rule></ObjectLockConfiguration>";
        let sum = base64::engine::general_purpose::STANDARD.encode(md5::Md5::digest(rule));
        let headers = [
            "content-type: application/xml",
            &format!("content-md5: {sum}"),
        ];
        self.must("PUT", &format!("{bucket}?object-lock="), &headers, rule);
    }

    /// The objects that a list shows.
    pub fn keys(&self, bucket: &str) -> Vec<String> {
        let text = self.must("GET", &format!("{bucket}?list-type=2"), &[], "");
        between(&text, "Key")
    }

    /// Every version that is kept: key, version.
    pub fn versions(&self, bucket: &str) -> Vec<(String, String)> {
        let text = self.must("GET", &format!("{bucket}?versions="), &[], "");
        text.split("<Version>")
            .skip(1)
            .map(|version| {
                let one = |tag: &str| between(version, tag).remove(0);
                (one("Key"), one("VersionId"))
            })
            .collect()
    }
}

/// What stands in each element of this name.
fn between(text: &str, tag: &str) -> Vec<String> {
    text.split(&format!("<{tag}>"))
        .skip(1)
        .map(|rest| rest.split(&format!("</{tag}>")).next().unwrap().to_owned())
        .collect()
}
