//! Real PostgreSQL, Redis and WebDAV servers for a test, ended with this process.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use super::{cache, end_with_this_process, free_port, remove_with_this_process};

/// Passwords with what broke the original: blanks, `$`, colons, backslashes.
pub const POSTGRES_PASSWORD: &str = "S3cr3t-marker $x:y\\z";
pub const REDIS_PASSWORD: &str = "S3cr3t-marker $r";
pub const DAV_PASSWORD: &str = "S3cr3t-marker $d";

pub fn wait_for(what: &str, ready: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while !ready() {
        assert!(Instant::now() < deadline, "{what} did not start");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[expect(
    clippy::zombie_processes,
    reason = "a watcher ends it with this process"
)]
pub fn spawn(command: &mut Command) {
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap_or_else(|e| panic!("{command:?}: {e}"));
    end_with_this_process(child.id());
}

/// A directory that lives as long as the process.
pub fn directory(name: &str) -> PathBuf {
    let dir = tempfile::Builder::new().prefix(name).tempdir().unwrap();
    remove_with_this_process(dir.path());
    dir.keep()
}

fn postgres_program(name: &str) -> PathBuf {
    let mut versions: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .unwrap_or_else(|_| panic!("apt-get install postgresql"))
        .map(|e| e.unwrap().path().join("bin").join(name))
        .filter(|p| p.exists())
        .collect();
    versions.sort();
    versions
        .pop()
        .unwrap_or_else(|| panic!("{name}: apt-get install postgresql"))
}

/// As the user postgres where the test is root: its server refuses root.
fn as_postgres(program: &Path) -> Command {
    if rustix::process::getuid().is_root() {
        let mut command = Command::new("setpriv");
        command
            .args(["--reuid=postgres", "--regid=postgres", "--clear-groups"])
            .arg(program);
        return command;
    }
    Command::new(program)
}

/// Port of a PostgreSQL with the database `app`: 3,000 rows in `t`, and a table `skipme`.
pub fn postgres() -> u16 {
    static PORT: OnceLock<u16> = OnceLock::new();
    *PORT.get_or_init(|| {
        let (dir, port) = (directory("backup-pg"), free_port());
        let password = dir.join("password");
        std::fs::write(&password, POSTGRES_PASSWORD).unwrap();
        if rustix::process::getuid().is_root() {
            let owned = Command::new("chown").args(["-R", "postgres"]).arg(&dir).status().unwrap();
            assert!(owned.success());
        }
        let made = as_postgres(&postgres_program("initdb"))
            .args(["-A", "scram-sha-256", "-U", "postgres", "-E", "UTF8", "--no-sync", "-D"])
            .arg(dir.join("data"))
            .arg(format!("--pwfile={}", password.display()))
            .output()
            .unwrap();
        assert!(made.status.success(), "{made:?}");
        spawn(
            as_postgres(&postgres_program("postgres"))
                .arg("-D")
                .arg(dir.join("data"))
                .args(["-p", &port.to_string(), "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off", "-k"])
                .arg(&dir),
        );
        wait_for("PostgreSQL", || try_psql(port, "postgres", "select 1").is_ok());
        psql(port, "postgres", "create database app");
        psql(port, "app", "create table t(id int primary key, v text); insert into t select g, md5(g::text) from generate_series(1,3000) g; create table skipme(x int)");
        port
    })
}

pub fn try_psql(port: u16, database: &str, sql: &str) -> Result<String, String> {
    let output = Command::new("psql")
        .env("PGPASSWORD", POSTGRES_PASSWORD)
        .args([
            "-h",
            "127.0.0.1",
            "-p",
            &port.to_string(),
            "-U",
            "postgres",
            "-d",
            database,
            "-v",
            "ON_ERROR_STOP=1",
            "-qAtc",
            sql,
        ])
        .output()
        .unwrap();
    if output.status.success() {
        Ok(String::from_utf8(output.stdout).unwrap().trim().to_owned())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

pub fn psql(port: u16, database: &str, sql: &str) -> String {
    try_psql(port, database, sql).unwrap_or_else(|e| panic!("{e}"))
}

/// Loads a dump into a database of its own and gives what `sql` says there.
pub fn restored(port: u16, dump: &Path, sql: &str) -> String {
    psql(port, "postgres", "drop database if exists restored");
    psql(port, "postgres", "create database restored");
    let loaded = Command::new("psql")
        .env("PGPASSWORD", POSTGRES_PASSWORD)
        .args([
            "-h",
            "127.0.0.1",
            "-p",
            &port.to_string(),
            "-U",
            "postgres",
            "-d",
            "restored",
            "-v",
            "ON_ERROR_STOP=1",
            "-q",
            "-f",
        ])
        .arg(dump)
        .output()
        .unwrap();
    assert!(loaded.status.success(), "{loaded:?}");
    psql(port, "restored", sql)
}

/// Port of a Redis in which `hello` is `world`.
pub fn redis() -> u16 {
    static PORT: OnceLock<u16> = OnceLock::new();
    *PORT.get_or_init(|| {
        let port = start_redis(&directory("backup-redis"), Some(REDIS_PASSWORD));
        redis_cli(port, Some(REDIS_PASSWORD), &["set", "hello", "world"]);
        port
    })
}

pub fn start_redis(dir: &Path, password: Option<&str>) -> u16 {
    start_redis_with(dir, password, &[])
}

/// The same with more options.
pub fn start_redis_with(dir: &Path, password: Option<&str>, options: &[&str]) -> u16 {
    let port = free_port();
    let mut command = Command::new("redis-server");
    command
        .args([
            "--port",
            &port.to_string(),
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--dir",
        ])
        .arg(dir)
        .args(options);
    if let Some(password) = password {
        command.args(["--requirepass", password]);
    }
    spawn(&mut command);
    wait_for("Redis (apt-get install redis-server)", || {
        redis_cli(port, password, &["ping"]) == "PONG"
    });
    port
}

pub fn redis_cli(port: u16, password: Option<&str>, args: &[&str]) -> String {
    let mut command = Command::new("redis-cli");
    command.args(["-p", &port.to_string()]).args(args);
    if let Some(password) = password {
        command.env("REDISCLI_AUTH", password);
    }
    String::from_utf8_lossy(&command.output().unwrap().stdout)
        .trim()
        .to_owned()
}

/// Client port of an etcd over this data directory.
pub fn start_etcd(data: &Path) -> u16 {
    let (client, peer) = (free_port(), free_port());
    let (client_url, peer_url) = (
        format!("http://127.0.0.1:{client}"),
        format!("http://127.0.0.1:{peer}"),
    );
    spawn(
        Command::new("etcd")
            .arg("--data-dir")
            .arg(data)
            .args([
                "--unsafe-no-fsync",
                "--listen-client-urls",
                &client_url,
                "--advertise-client-urls",
                &client_url,
            ])
            .args([
                "--listen-peer-urls",
                &peer_url,
                "--initial-advertise-peer-urls",
                &peer_url,
                "--initial-cluster",
                &format!("default={peer_url}"),
            ]),
    );
    wait_for("etcd (apt-get install etcd-server etcd-client)", || {
        etcdctl(client, &["endpoint", "health"]).is_some()
    });
    client
}

/// What etcdctl prints, if it ends well.
pub fn etcdctl(port: u16, args: &[&str]) -> Option<String> {
    let output = Command::new("etcdctl")
        .env("ETCDCTL_API", "3")
        .arg(format!("--endpoints=127.0.0.1:{port}"))
        .args(args)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    output.status.success().then_some(text)
}

/// URL and directory of a WebDAV server; the user is `dav`.
pub fn webdav() -> &'static (String, PathBuf) {
    static SERVER: OnceLock<(String, PathBuf)> = OnceLock::new();
    SERVER.get_or_init(|| {
        let venv = cache::virtual_environment("wsgidav-4", &["wsgidav==4.*", "cheroot"]);
        let program = venv.join("bin/wsgidav");
        let (dir, port) = (directory("backup-dav"), free_port());
        let root = dir.join("root");
        std::fs::create_dir(&root).unwrap();
        let config = dir.join("wsgidav.yaml");
        std::fs::write(&config, format!(
            "host: 127.0.0.1\nport: {port}\nserver: cheroot\nserver_args: {{timeout: 300}}\nprovider_mapping: {{\"/\": {root:?}}}\nsimple_dc: {{user_mapping: {{\"*\": {{dav: {{password: {DAV_PASSWORD:?}}}}}}}}}\nhttp_authenticator: {{accept_basic: true, accept_digest: false, default_to_digest: false}}\n"
        )).unwrap();
        spawn(Command::new(program).arg("-c").arg(&config));
        wait_for("WebDAV", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
        (format!("http://127.0.0.1:{port}"), root)
    })
}
