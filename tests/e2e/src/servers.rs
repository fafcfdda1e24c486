//! Servers in the cluster, shared by the tests of a run: PostgreSQL, Redis, an S3 server and a WebDAV server.

use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::{Cluster, Output, cluster, setting, wait_for};

/// Their namespace. Each is a Service and a Deployment of its name.
pub const NAMESPACE: &str = "e2e-servers";
/// Password of PostgreSQL's user `postgres`, as the manifests of gobackup-operator have it.
pub const POSTGRES_PASSWORD: &str = "mysecretpassword";
/// Password of the Redis.
pub const REDIS_PASSWORD: &str = "S3cr3t-marker $r";
/// Password of WebDAV's user `dav`.
pub const DAV_PASSWORD: &str = "S3cr3t-marker $d";
/// A bucket of the S3 server, which takes every key.
pub const BUCKET: &str = "backups";

/// The servers.
pub struct Servers(&'static Cluster);

/// Starts the servers at first use and waits until each answers.
pub fn servers() -> &'static Servers {
    static SERVERS: OnceLock<Servers> = OnceLock::new();
    SERVERS.get_or_init(|| {
        let image = setting("E2E_SERVERS_IMAGE");
        let manifest = [
            format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {NAMESPACE}}}\n"),
            manifest(&image, "postgresql", 5432, POSTGRES_PASSWORD),
            manifest(&image, "redis", 6379, REDIS_PASSWORD),
            manifest(&image, "webdav", 8080, DAV_PASSWORD),
            manifest(&image, "s3", 5000, ""),
        ];
        cluster()
            .kubectl_with(&["apply", "-f", "-"], &manifest.join("---\n"))
            .ok();
        let servers = Servers(cluster());
        wait_for("PostgreSQL answers", 120, || {
            good(servers.try_sql("postgres", "select 1"))
        });
        wait_for("Redis answers", 60, || {
            good(servers.shell("redis", "redis-cli ping | grep PONG", ""))
        });
        wait_for("the WebDAV server answers", 60, || {
            good(servers.shell("webdav", "curl -s -o /dev/null http://localhost:8080/", ""))
        });
        wait_for("the S3 server has a bucket", 60, || {
            good(servers.shell(
                "s3",
                &format!("{CURL} -X PUT http://localhost:5000/{BUCKET}"),
                "",
            ))
        });
        servers
    })
}

/// The server looks at no signature, but at the service in it.
const CURL: &str = "curl -sf -H 'Authorization: AWS4-HMAC-SHA256 Credential=x/20250115/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0'";

fn good(output: Output) -> Option<()> {
    (output.code == 0).then_some(())
}

fn manifest(image: &str, name: &str, port: u16, password: &str) -> String {
    let environment = serde_json::json!([
        {"name": "PASSWORD", "value": password.replace('$', "$$")},
        {"name": "REDISCLI_AUTH", "value": password.replace('$', "$$")},
    ]);
    format!(
        "apiVersion: v1
kind: Service
metadata: {{name: {name}, namespace: {NAMESPACE}}}
spec: {{selector: {{app: {name}}}, ports: [{{port: {port}}}]}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}, namespace: {NAMESPACE}}}
spec:
  selector: {{matchLabels: {{app: {name}}}}}
  strategy: {{type: Recreate}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec:
      enableServiceLinks: false
      containers:
      - name: server
        image: {image}
        imagePullPolicy: IfNotPresent
        args: [{name}]
        env: {environment}
"
    )
}

/// The address of a server inside the cluster.
pub fn host(server: &str) -> String {
    format!("{server}.{NAMESPACE}.svc.cluster.local")
}

impl Servers {
    /// Runs shell text in a server's container.
    pub fn shell(&self, server: &str, text: &str, input: &str) -> Output {
        let server = format!("deployment/{server}");
        let arguments = [
            "-n", NAMESPACE, "exec", "-i", &server, "--", "bash", "-eo", "pipefail", "-c", text,
        ];
        self.0.kubectl_with(&arguments, input)
    }

    /// Runs SQL in a database of the PostgreSQL; returns what the client printed, without headings.
    pub fn sql(&self, database: &str, text: &str) -> String {
        self.try_sql(database, text).ok().stdout
    }

    /// Runs SQL in a database of the PostgreSQL.
    pub fn try_sql(&self, database: &str, text: &str) -> Output {
        let client = format!("psql -h /tmp -U postgres -d {database} -v ON_ERROR_STOP=1 -qAt");
        self.shell("postgresql", &client, text)
    }

    /// What redis-cli prints.
    pub fn redis(&self, command: &str) -> String {
        self.shell("redis", &format!("redis-cli {command}"), "")
            .ok()
            .stdout
    }

    /// What a Redis of its own prints that has loaded this dump.
    pub fn redis_of(&self, dump: &[u8], command: &str) -> String {
        let text = format!(
            "rm -rf /data/copy; mkdir /data/copy; base64 -d >/data/copy/dump.rdb; unset REDISCLI_AUTH
redis-server --port 6380 --save '' --dir /data/copy --daemonize yes >/dev/null
for n in {{1..100}}; do redis-cli -p 6380 ping 2>/dev/null | grep -q PONG && break; sleep 0.1; done
redis-cli -p 6380 {command}; redis-cli -p 6380 shutdown nosave"
        );
        self.shell("redis", &text, &base64(dump)).ok().stdout
    }

    /// Keys in the bucket that begin so; what the runner keeps for itself, in files with a leading dot, is left out.
    pub fn objects(&self, prefix: &str) -> Vec<String> {
        let list = format!("{CURL} 'http://localhost:5000/{BUCKET}?list-type=2&prefix={prefix}'");
        let answer = self.shell("s3", &list, "").ok().stdout;
        let keys = answer.split("<Key>").skip(1);
        visible(keys.filter_map(|rest| rest.split("</Key>").next()))
    }

    /// Stores an object in the bucket.
    pub fn put(&self, key: &str, content: &str) {
        let put = format!(
            "{CURL} -X PUT -H 'Content-Type: application/octet-stream' --data-binary @- http://localhost:5000/{BUCKET}/{key}"
        );
        self.shell("s3", &put, content).ok();
    }

    /// The bytes of an object in the bucket.
    pub fn object(&self, key: &str) -> Vec<u8> {
        let get = format!("{CURL} http://localhost:5000/{BUCKET}/{key} | base64");
        from_base64(&self.shell("s3", &get, "").ok().stdout)
    }

    /// Files the WebDAV server keeps below a path, likewise.
    pub fn dav_files(&self, path: &str) -> Vec<String> {
        let find = format!("cd /data/dav; find {path} -type f");
        visible(self.shell("webdav", &find, "").ok().stdout.lines())
    }

    /// The bytes of a file of the WebDAV server.
    pub fn dav_file(&self, path: &str) -> Vec<u8> {
        let get = format!("base64 '/data/dav/{path}'");
        from_base64(&self.shell("webdav", &get, "").ok().stdout)
    }
}

fn visible<'a>(paths: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut paths: Vec<String> = paths
        .filter(|path| !path.split('/').any(|part| part.starts_with('.')))
        .map(str::to_owned)
        .collect();
    paths.sort();
    paths
}

/// What a program of this machine makes of its input.
pub fn filter(program: &str, arguments: &[&str], input: &[u8]) -> Vec<u8> {
    use std::io::Write as _;
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|e| panic!("{program}: {e}"));
    let stdin = child.stdin.take();
    let output = std::thread::scope(|scope| {
        scope.spawn(|| {
            if let Some(mut stdin) = stdin {
                // A program that ends early says why by its status.
                let _ = stdin.write_all(input);
            }
        });
        child
            .wait_with_output()
            .expect("the program can be waited for")
    });
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}

fn base64(bytes: &[u8]) -> String {
    String::from_utf8(filter("base64", &[], bytes)).expect("base64 is text")
}

fn from_base64(text: &str) -> Vec<u8> {
    filter("base64", &["-d"], text.as_bytes())
}
