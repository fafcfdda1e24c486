//! A real MariaDB for a test, and the runner as a process.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    missing_docs,
    unreachable_pub,
    reason = "tests"
)]

pub mod backup;
pub mod cache;
pub mod databases;
pub mod fake_s3;
pub mod native;
pub mod peers;
pub mod recorder;
pub mod s3;
pub mod segments;
pub mod servers;
pub mod stores;
pub mod versitygw;

use std::collections::BTreeMap;
use std::io::Write;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crds::report::Report;
use tempfile::TempDir;

/// Waits for another second: which of two archives is the newer one is told by the second of their start.
pub fn next_second() {
    let second = || std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
    let begun = second();
    while second() == begun {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A server of its own, ended by its pid when dropped.
pub struct MariaDb {
    pub port: u16,
    pub dir: TempDir,
    child: Child,
    /// What starts it again.
    server: Command,
    /// Its own SQL client.
    program: PathBuf,
}

/// How a server of one kind is made and started.
struct Server<'a> {
    name: &'a str,
    program: &'a Path,
    /// A new directory for one.
    directory: &'a dyn Fn() -> TempDir,
    /// Makes `data` in it.
    install: &'a dyn Fn(&Path),
    /// What runs on it.
    command: &'a dyn Fn(&Path) -> Command,
    /// Its own SQL client.
    client: PathBuf,
}

impl Server<'_> {
    /// Starts one on a copy of the data of one that was started once and shut down: what a server does before and at its first
    /// start takes seconds, and the tests start hundreds.
    fn start(self, environment: &[(&str, &str)], options: &[&str]) -> MariaDb {
        use std::os::unix::fs::MetadataExt;
        let is = std::fs::metadata(self.program).unwrap();
        let user = rustix::process::getuid().as_raw();
        // Another version of the server has other data.
        let name = format!("{}-{}-{}-{user}", self.name, is.len(), is.mtime());
        let copy = |from: &Path, to: &Path| {
            run(Command::new("cp")
                .args(["-a", "--sparse=always", "--"])
                .args([from, to]));
        };
        let kept = cache::once(&name, |kept| {
            let dir = (self.directory)();
            (self.install)(dir.path());
            let command = (self.command)(dir.path());
            let mut first = MariaDb::serve(
                command,
                dir,
                free_port(),
                self.client.clone(),
                &["--skip-log-bin"],
            );
            first.shut_down();
            let data = first.dir.path().join("data");
            // MySQL's name of this one server.
            let _ = std::fs::remove_file(data.join("auto.cnf"));
            copy(&data, kept);
        });
        let dir = (self.directory)();
        copy(&kept, &dir.path().join("data"));
        let mut command = (self.command)(dir.path());
        command.envs(environment.iter().copied());
        MariaDb::serve(command, dir, free_port(), self.client, options)
    }
}

fn program(names: &[&str]) -> PathBuf {
    for dir in ["/usr/sbin", "/usr/bin", "/usr/local/bin"] {
        for name in names {
            let path = Path::new(dir).join(name);
            if path.exists() {
                return path;
            }
        }
    }
    panic!("none of {names:?} is installed: apt-get install mariadb-server mariadb-client");
}

/// The path that tests/testbed prints for these arguments.
pub fn testbed(arguments: &[&str]) -> PathBuf {
    let testbed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/testbed/testbed");
    let output = run(Command::new(testbed).args(arguments));
    PathBuf::from(String::from_utf8(output.stdout).unwrap().trim())
}

pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
}

pub fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

impl MariaDb {
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    pub fn start_with(options: &[&str]) -> Self {
        Self::start_in(&[], options)
    }

    /// With more variables of its environment.
    pub fn start_in(environment: &[(&str, &str)], options: &[&str]) -> Self {
        let root = rustix::process::getuid().is_root();
        let user = root.then_some("--user=mysql");
        let program_of_server = program(&["mariadbd"]);
        let kind = Server {
            name: "mariadb-10",
            program: &program_of_server,
            directory: &|| {
                let dir = databases::empty();
                if root {
                    run(Command::new("chown").arg("mysql:mysql").arg(dir.path()));
                    run(Command::new("chmod").arg("755").arg(dir.path()));
                }
                dir
            },
            install: &|dir| {
                run(Command::new(program(&["mariadb-install-db"]))
                    .arg("--no-defaults")
                    .arg(format!("--datadir={}", dir.join("data").display()))
                    .arg(format!("--tmpdir={}", dir.display()))
                    .args(["--skip-test-db", "--auth-root-authentication-method=normal"])
                    .args(user));
            },
            command: &|_| {
                let mut command = Command::new(&program_of_server);
                command
                    .args(["--no-defaults", "--innodb-log-file-size=64M"])
                    .args(user);
                command
            },
            client: program(&["mariadb"]),
        };
        kind.start(environment, options)
    }

    /// Starts `server` on the data in `dir`, and waits until its root may log in.
    fn serve(
        mut server: Command,
        dir: TempDir,
        port: u16,
        client: PathBuf,
        options: &[&str],
    ) -> Self {
        let log = std::fs::File::create(dir.path().join("log")).unwrap();
        server
            .arg(format!("--datadir={}", dir.path().join("data").display()))
            .arg(format!("--socket={}", dir.path().join("s").display()))
            .arg(format!("--port={port}"))
            .arg(format!("--tmpdir={}", dir.path().display()))
            .args([
                "--bind-address=127.0.0.1",
                "--innodb-buffer-pool-size=64M",
                "--innodb-flush-log-at-trx-commit=0",
                "--max-allowed-packet=1G",
                "--skip-name-resolve",
            ])
            .args(options)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        let child = server.spawn().unwrap();
        let db = Self {
            port,
            dir,
            child,
            server,
            program: client,
        };
        db.wait_until_it_answers();
        db
    }

    fn wait_until_it_answers(&self) {
        let deadline = Instant::now() + Duration::from_secs(120);
        while self.try_sql("select 1").is_err() {
            assert!(
                Instant::now() < deadline,
                "the server did not start: {}",
                std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
            );
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Shuts it down in order.
    pub fn shut_down(&mut self) {
        self.sql("shutdown");
        self.child.wait().unwrap();
    }

    /// Starts it again on its data, after [`MariaDb::kill`] or [`MariaDb::shut_down`].
    pub fn start_again(&mut self) {
        self.child = self.server.spawn().unwrap();
        self.wait_until_it_answers();
    }

    fn client(&self) -> Command {
        let mut command = Command::new(&self.program);
        command
            .arg("--no-defaults")
            .arg(format!("--socket={}", self.dir.path().join("s").display()))
            // A server whose TLS is tested may have none that this client takes.
            .args(self.program.ends_with("mariadb").then_some("--skip-ssl"))
            .args([
                "-uroot",
                "--unbuffered",
                "--batch",
                "--skip-column-names",
                "--default-character-set=utf8mb4",
            ]);
        command
    }

    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// For statics, which are never dropped.
    pub fn end_with_process(&self) {
        end_with_this_process(self.child.id());
        remove_with_this_process(self.dir.path());
    }

    pub fn try_sql(&self, sql: &str) -> Result<String, String> {
        let mut child = self
            .client()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let text = sql.to_owned();
        let writer = std::thread::spawn(move || {
            let _ = stdin.write_all(text.as_bytes());
        });
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        if output.status.success() {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        } else {
            Err(String::from_utf8_lossy(&output.stderr).into_owned())
        }
    }

    pub fn sql(&self, sql: &str) -> String {
        self.try_sql(sql).unwrap()
    }

    /// Loads the text of a dump.
    pub fn load(&self, dump: &[u8]) {
        self.try_load(dump).unwrap();
    }

    /// The same; what the client says where it fails.
    pub fn try_load(&self, dump: &[u8]) -> Result<(), String> {
        let mut child = self
            .client()
            .arg("--comments")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let output = std::thread::scope(|scope| {
            let writer = scope.spawn(move || stdin.write_all(dump));
            let output = child.wait_with_output().unwrap();
            let _ = writer.join().unwrap();
            output
        });
        if output.status.success() {
            return Ok(());
        }
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }

    /// Loads a dump from its file.
    pub fn load_file(&self, dump: &Path) {
        let file = std::fs::File::open(dump).unwrap();
        let status = self.client().stdin(file).status().unwrap();
        assert!(status.success(), "the dump does not load");
    }

    /// A session that holds what `sql` takes until the result is dropped.
    pub fn hold(&self, sql: &str) -> Held {
        let mut child = self
            .client()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin
            .write_all(format!("{sql};\nselect 'held';\n").as_bytes())
            .unwrap();
        stdin.flush().unwrap();
        let mut out = [0; 4];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut out).unwrap();
        Held {
            child,
            stdin: Some(stdin),
        }
    }
}

impl Drop for MariaDb {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub struct Held {
    child: Child,
    stdin: Option<std::process::ChildStdin>,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.stdin.take();
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The server with the fixture, shared by the tests of one file that do not change it.
pub fn fixture() -> &'static MariaDb {
    static SHARED: OnceLock<MariaDb> = OnceLock::new();
    SHARED.get_or_init(|| {
        let db = MariaDb::start();
        db.sql(include_str!("../fixtures/db_fixture.sql"));
        db.sql("create user full@'%' identified by 'S3cr3t-marker'; grant all on *.* to full@'%';");
        db.end_with_process();
        db
    })
}

/// A small watcher outside this process ends `pid` when this process is gone.
pub fn end_with_this_process(pid: u32) {
    after_this_process(&format!("kill -9 {pid}"), Path::new("/"));
}

/// Statics are never dropped: a watcher removes what a server kept in one of them leaves. A server
/// that is being ended meanwhile may still write.
pub fn remove_with_this_process(directory: &Path) {
    after_this_process(
        "for i in 1 2 3 4 5 6 7 8 9; do sleep 0.3; rm -rf \"$1\" && [ ! -e \"$1\" ] && break; done",
        directory,
    );
}

/// Runs `script`, whose `$1` is `path`, when this process is gone.
#[expect(clippy::zombie_processes, reason = "the watcher outlives this process")]
fn after_this_process(script: &str, path: &Path) {
    Command::new("sh")
        .arg("-c")
        .arg(format!(
            "while [ -d /proc/{me} ]; do sleep 0.3; done; {script}",
            me = std::process::id()
        ))
        .arg("sh")
        .arg(path)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
}

/// One start of the runner.
pub struct Runner {
    pub env: BTreeMap<String, String>,
    pub out: TempDir,
    log: PathBuf,
}

/// How it ended.
pub struct Finished {
    pub code: Option<i32>,
    pub stdout: String,
    pub report: Report,
    pub took: Duration,
}

impl Runner {
    /// A run of `db` as `full` into a directory of its own.
    pub fn new(db: &MariaDb) -> Self {
        let out = tempfile::Builder::new()
            .prefix("runner-out")
            .tempdir()
            .unwrap();
        let sql = out.path().join("sql");
        std::fs::create_dir(&sql).unwrap();
        let log = out.path().join("termination");
        let pairs = [
            ("PATH", "/usr/sbin:/usr/bin:/sbin:/bin".to_owned()),
            ("HOST", "127.0.0.1".to_owned()),
            ("PORT", db.port.to_string()),
            ("USERNAME", "full".to_owned()),
            ("PASSWORD", "S3cr3t-marker".to_owned()),
            ("SQLPATH", sql.display().to_string()),
            ("HOSTNAME", "m-28308960-abcde".to_owned()),
            ("BACKUP_TERMINATION_LOG", log.display().to_string()),
        ];
        Self {
            env: pairs.map(|(k, v)| (k.to_owned(), v)).into(),
            out,
            log,
        }
    }

    /// A run that needs no database.
    pub fn bare() -> Self {
        let out = tempfile::Builder::new()
            .prefix("runner-out")
            .tempdir()
            .unwrap();
        let log = out.path().join("termination");
        let pairs = [("BACKUP_TERMINATION_LOG", log.display().to_string())];
        Self {
            env: pairs.map(|(k, v)| (k.to_owned(), v)).into(),
            out,
            log,
        }
    }

    pub fn set(mut self, name: &str, value: impl Into<String>) -> Self {
        self.env.insert(name.to_owned(), value.into());
        self
    }

    /// By the dump client: the argument changes nothing else that a test looks at, and only a client knows it.
    pub fn by_client(mut self) -> Self {
        let args = self.env.entry("MYSQLDUMP_ARGS".to_owned()).or_default();
        *args = format!("{args} --complete-insert").trim().to_owned();
        self
    }

    pub fn unset(mut self, name: &str) -> Self {
        self.env.remove(name);
        self
    }

    /// With a spec of the object ns1/MysqlBackup/shop and this run; `more` is merged into it.
    pub fn spec(self, run: &str, slot: Option<&str>, more: serde_json::Value) -> Self {
        let mut spec = serde_json::json!({
            "version": 1, "action": "Backup",
            "object": {"kind": "MysqlBackup", "namespace": "ns1", "name": "shop", "uid": "uid-1"},
            "run": {"name": run, "slot": slot, "trigger": if slot.is_some() { "Schedule" } else { "Manual" }},
        });
        for (key, value) in more.as_object().cloned().unwrap_or_default() {
            spec[key] = value;
        }
        self.set("BACKUP_SPEC", spec.to_string())
    }

    /// With the programs of this installation before the host's.
    pub fn programs_of(self, directory: &Path) -> Self {
        let path = format!("{}:/usr/bin:/bin", directory.join("usr/bin").display());
        self.set("PATH", path)
    }

    pub fn sql_path(&self) -> PathBuf {
        self.out.path().join("sql")
    }

    /// The program with this environment alone. KUBECTL_BACKUP_RUNNER names one that is optimised, where that is measured.
    pub fn command(&self) -> Command {
        let program = std::env::var_os("KUBECTL_BACKUP_RUNNER");
        let program = program.unwrap_or_else(|| env!("CARGO_BIN_EXE_backup-runner").into());
        let mut command = Command::new(program);
        command.env_clear().envs(&self.env);
        command
    }

    pub fn start(&self) -> Child {
        self.command()
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    pub fn finish(&self, child: Child, started: Instant) -> Finished {
        let output = child.wait_with_output().unwrap();
        self.judge(output, started)
    }

    /// As [`Self::finish`], of a run whose output was read by somebody else.
    pub fn finish_said(&self, child: Child, started: Instant, stdout: &str) -> Finished {
        let mut output = child.wait_with_output().unwrap();
        output.stdout = stdout.as_bytes().to_vec();
        self.judge(output, started)
    }

    fn judge(&self, output: Output, started: Instant) -> Finished {
        let stdout = String::from_utf8(output.stdout).unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        let message = std::fs::read_to_string(&self.log).unwrap_or_default();
        let report = Report::parse(&message)
            .unwrap_or_else(|| panic!("no report: {message:?}\n{stdout}\n{stderr}"));
        let last = stdout.lines().last().unwrap_or_default();
        // Whole in the log, shortened in the message: a list of 250 artefacts is longer than a message may be.
        let logged: serde_json::Value = serde_json::from_str(last)
            .unwrap_or_else(|e| panic!("the last log line is no report ({e}): {last}"));
        assert_eq!(logged["schema"], crds::report::SCHEMA);
        assert_eq!(logged["run"], report.run.as_str());
        assert_eq!(report.exit_code, output.status.code(), "{stdout}\n{stderr}");
        for place in [&stdout, &message, &stderr.into_owned()] {
            assert!(
                !place.contains("S3cr3t-marker"),
                "the password shows: {place}"
            );
        }
        Finished {
            code: output.status.code(),
            stdout,
            report,
            took: started.elapsed(),
        }
    }

    pub fn run(&self) -> Finished {
        let started = Instant::now();
        let child = self.start();
        self.finish(child, started)
    }

    /// All files below the destination, temporaries and marks included, with their paths in it.
    pub fn files(&self) -> Vec<String> {
        let root = self.sql_path();
        let mut found = vec![];
        let mut todo = vec![root.clone()];
        while let Some(dir) = todo.pop() {
            for entry in std::fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    todo.push(path);
                } else {
                    found.push(path.strip_prefix(&root).unwrap().display().to_string());
                }
            }
        }
        found.sort();
        found
    }

    /// Artefacts without their manifests.
    pub fn artefacts(&self) -> Vec<String> {
        self.files()
            .into_iter()
            .filter(|f| !f.ends_with(".json") && !f.contains("/."))
            .collect()
    }

    /// Directory without artefacts, manifests, temporaries: a failed run leaves nothing.
    pub fn assert_nothing_left(&self) {
        let files = self.files();
        let left: Vec<&String> = files.iter().filter(|f| !f.contains("~told-")).collect();
        assert!(left.is_empty(), "left behind: {left:?}");
    }

    pub fn read(&self, key: &str) -> Vec<u8> {
        std::fs::read(self.sql_path().join(key)).unwrap()
    }

    /// The dump of the one artefact, by the `zstd` program.
    pub fn dump(&self, key: &str) -> Vec<u8> {
        let output = run(Command::new("zstd")
            .arg("-dc")
            .arg(self.sql_path().join(key)));
        output.stdout
    }

    pub fn manifest(&self, key: &str) -> serde_json::Value {
        serde_json::from_slice(&self.read(&format!("{key}.json"))).unwrap()
    }
}

impl Finished {
    /// Failed with this code and reason; the message holds each of the words.
    #[track_caller]
    pub fn assert_failed(&self, code: i32, reason: &str, words: &[&str]) {
        assert_eq!(
            (self.code, self.report.reason.as_str()),
            (Some(code), reason),
            "{}",
            self.stdout
        );
        assert_eq!(self.report.good, Some(false));
        for word in words {
            assert!(
                self.report.message.contains(word),
                "{word:?} is not in {:?}",
                self.report.message
            );
        }
    }

    #[track_caller]
    pub fn assert_good(&self) {
        assert_eq!(self.code, Some(0), "{}", self.stdout);
        assert_eq!(self.report.good, Some(true));
    }
}
