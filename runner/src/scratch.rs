//! Verification by restore: a scratch server without network is filled from the artefact, dumped
//! through the same reader, and compared with the manifest that was made from the dump itself. A
//! live database that changed during the dump never makes a good backup look bad.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::artefacts;
use crate::dump_reader::{DumpReader, Summary, Table};
use crate::failure::Failure;
use crate::load;
use crate::manifest::Manifest;
use crate::restore;
use crate::run::Context;
use crate::source::{Client, Clients, Dump, Flavour};
use crate::store::Store;

/// Where the operator mounts `spec.verify.volume`.
const VOLUME: &str = "/run/backup-verify";
/// A server that has not answered by then has failed.
const START: Duration = Duration::from_secs(120);

/// Restores `manifest` into a scratch server and compares; gives what was compared.
///
/// # Errors
/// There is no server program, the artefact does not load, or what was loaded differs.
pub fn verify(
    context: &Context,
    store: &dyn Store,
    manifest: &Manifest,
) -> Result<String, Failure> {
    context.reporter.phase("Verifying");
    let scratch = Scratch::start(context, "spec.verify.volume")?;
    let clients = Clients::find(&context.settings)?;
    let flavour = Some(Flavour::MariaDb);
    let sql = clients.sql(flavour).ok_or_else(|| {
        Failure::settings("no SQL client (mariadb, mysql) to load the artefact with")
    })?;
    scratch.wait(context, sql)?;
    context.reporter.expect(manifest.raw_bytes);
    let mut args = scratch.arguments();
    args.extend(restore::arguments(sql));
    let dump = artefacts::open(context, store, manifest)?;
    let loaded = load::load(context, sql, &args, dump, None)?;
    context.check()?;
    if !loaded.ended.good() {
        return Err(Failure::verification(
            "NotRestorable",
            format!(
                "{} does not load into a scratch server: {} ended with {} and said: {}",
                manifest.key,
                sql.name(),
                loaded.ended.status_text(),
                loaded
                    .ended
                    .messages
                    .last()
                    .map_or("nothing", String::as_str)
            ),
        ));
    }
    if loaded.sha256 != manifest.raw_sha256 {
        return Err(Failure::verification(
            "Damaged",
            format!(
                "the dump in {} has another SHA-256 than its manifest says",
                manifest.key
            ),
        ));
    }
    let restored = scratch.dump(context, clients.dump(flavour)?, &manifest.arguments)?;
    compare(manifest, &restored)
}

/// Compares what was restored with the manifest; names the first tables that differ.
fn compare(manifest: &Manifest, restored: &Summary) -> Result<String, Failure> {
    let mut differences = differences(&manifest.tables, &restored.tables);
    for (what, expected, found) in [
        ("views", manifest.views, restored.views),
        ("triggers", manifest.triggers, restored.triggers),
        ("routines", manifest.routines, restored.routines),
        ("events", manifest.events, restored.events),
    ] {
        if expected != found {
            differences.push(format!("{found} {what} instead of {expected}"));
        }
    }
    if differences.is_empty() {
        let rows: u64 = manifest.tables.iter().map(|t| t.rows).sum();
        return Ok(format!(
            "restored and compared: {} tables, {rows} rows, all equal",
            manifest.tables.len()
        ));
    }
    Err(differs(&manifest.key, &differences))
}

/// Tables that are missing, or have other rows, in words.
pub(crate) fn differences(expected: &[Table], found: &[Table]) -> Vec<String> {
    let by_name: HashMap<_, _> = found.iter().map(|t| ((&t.database, &t.name), t)).collect();
    let mut differences = vec![];
    for table in expected {
        let name = match table.database.as_str() {
            "" => table.name.clone(),
            database => format!("{database}.{}", table.name),
        };
        match by_name.get(&(&table.database, &table.name)) {
            None => differences.push(format!("table {name} is missing")),
            Some(t) if t.rows != table.rows => differences.push(format!(
                "table {name} has {} rows instead of {}",
                t.rows, table.rows
            )),
            Some(t) if t.hash != table.hash => {
                differences.push(format!("table {name} has {} rows but other values", t.rows));
            }
            Some(_) => {}
        }
    }
    differences
}

/// The failure of a restore that differs; it names the first of the differences.
pub(crate) fn differs(what: &str, differences: &[String]) -> Failure {
    let shown = differences.len().min(3);
    let more = match differences.len() - shown {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    let shown = differences[..shown].join("; ");
    Failure::verification(
        "RestoreDiffers",
        format!("a restore of {what} differs: {shown}{more}"),
    )
}

/// Where scratch servers keep their data: the volume that is mounted for them, or where it is not,
/// the system's directory for temporary files.
pub(crate) fn root() -> PathBuf {
    let root = Path::new(VOLUME);
    if root.is_dir() {
        root.to_owned()
    } else {
        std::env::temp_dir()
    }
}

/// A server of its own in a directory of its own; both are gone when it is dropped.
pub(crate) struct Scratch {
    directory: PathBuf,
    server: Option<Child>,
    /// Field of the spec that gives it its volume.
    volume: &'static str,
}

impl Scratch {
    /// Makes its data and starts it; `volume` is the field of the spec that gives it room.
    ///
    /// # Errors
    /// The image has no such server, or there is no room.
    pub(crate) fn start(context: &Context, volume: &'static str) -> Result<Self, Failure> {
        let find = |name: &str| {
            let path = &context.settings.path;
            path.iter().map(|d| d.join(name)).find(|p| p.is_file()).ok_or_else(|| {
                Failure::settings(format!(
                    "verification by restore needs {name}, which this image lacks: use an image with mariadb-server"
                ))
            })
        };
        let (install, server) = (find("mariadb-install-db")?, find("mariadbd")?);
        let directory = root().join(format!("scratch-{}", context.nonce));
        std::fs::create_dir(&directory).map_err(|e| {
            Failure::other(
                "ScratchFailed",
                format!("{} can't be made ({e}): set {volume}", directory.display()),
            )
        })?;
        let mut scratch = Self {
            directory,
            server: None,
            volume,
        };
        scratch.install(&install)?;
        scratch.server = Some(scratch.launch(&server)?);
        Ok(scratch)
    }

    fn common(&self, command: &mut Command) {
        command
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .arg("--no-defaults")
            .arg(format!(
                "--datadir={}",
                self.directory.join("data").display()
            ))
            .arg(format!("--tmpdir={}", self.directory.display()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if rustix::process::geteuid().is_root() {
            command.arg("--user=root");
        }
    }

    fn install(&self, program: &Path) -> Result<(), Failure> {
        let mut command = Command::new(program);
        self.common(&mut command);
        let good = command
            .args(["--auth-root-authentication-method=normal", "--skip-test-db"])
            .status()
            .is_ok_and(|s| s.success());
        if good {
            return Ok(());
        }
        Err(Failure::other(
            "ScratchFailed",
            format!(
                "the scratch server's data directory can't be made: give {} more space",
                self.volume
            ),
        ))
    }

    fn launch(&self, program: &Path) -> Result<Child, Failure> {
        let mut command = Command::new(program);
        self.common(&mut command);
        command
            .arg(format!("--socket={}", self.socket().display()))
            .arg(format!(
                "--pid-file={}",
                self.directory.join("pid").display()
            ))
            .args([
                "--skip-networking",
                "--skip-log-bin",
                "--event-scheduler=OFF",
                "--innodb-flush-log-at-trx-commit=0",
                "--innodb-doublewrite=0",
                "--max-allowed-packet=1G",
            ])
            .spawn()
            .map_err(|e| {
                Failure::other(
                    "ScratchFailed",
                    format!("the scratch server can't be started: {e}"),
                )
            })
    }

    fn socket(&self) -> PathBuf {
        self.directory.join("s")
    }

    /// Arguments of a client that speaks to it.
    pub(crate) fn arguments(&self) -> Vec<String> {
        vec![
            "--no-defaults".to_owned(),
            format!("--socket={}", self.socket().display()),
            "--user=root".to_owned(),
        ]
    }

    /// Waits until it answers.
    ///
    /// # Errors
    /// It does not.
    pub(crate) fn wait(&self, context: &Context, client: &Client) -> Result<(), Failure> {
        let deadline = Instant::now() + START;
        loop {
            context.check()?;
            // What a client says of a server that is not there yet would fill the log.
            if self.socket().exists() && self.answers(context, client)? {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(Failure::other(
                    "ScratchFailed",
                    "the scratch server does not answer",
                ));
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    fn answers(&self, context: &Context, client: &Client) -> Result<bool, Failure> {
        let (_, ended) = Dump::run(
            client,
            &self.arguments(),
            "SELECT 1;\n",
            &context.cancel,
            &context.scrub,
        )?;
        Ok(ended.good())
    }

    /// Dumps it as the dump with these arguments was made, but for options that need a binlog.
    ///
    /// # Errors
    /// The client fails.
    pub(crate) fn dump(
        &self,
        context: &Context,
        client: &Client,
        arguments: &[String],
    ) -> Result<Summary, Failure> {
        const OF_THE_SOURCE: [&str; 5] = [
            "--master-data",
            "--source-data",
            "--set-gtid-purged",
            "--column-statistics",
            "--gtid",
        ];
        let mut args = self.arguments();
        let kept = arguments
            .iter()
            .filter(|a| !OF_THE_SOURCE.iter().any(|o| a.starts_with(o)));
        args.extend(kept.cloned());
        let (child, mut output) = Dump::start(client, &args, &context.cancel, &context.scrub)?;
        let mut reader = DumpReader::default();
        let mut buffer = vec![0; 256 * 1024];
        let read = loop {
            match std::io::Read::read(&mut output, &mut buffer) {
                Ok(0) => break Ok(()),
                Ok(n) => reader.feed(&buffer[..n]),
                Err(e) => break Err(e),
            }
        };
        let ended = child.wait()?;
        let summary = reader.finish();
        if read.is_err() || !ended.good() || !summary.footer {
            return Err(Failure::other(
                "ScratchFailed",
                format!(
                    "the restored data can't be dumped again: {} ended with {} and said: {}",
                    client.name(),
                    ended.status_text(),
                    ended.messages.last().map_or("nothing", String::as_str)
                ),
            ));
        }
        Ok(summary)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Some(mut server) = self.server.take() {
            // Nothing of it is kept, so it need not be shut down in order.
            if let Some(pid) = i32::try_from(server.id()).ok().and_then(Pid::from_raw) {
                let _ = kill_process(pid, Signal::KILL);
            }
            let _ = server.wait();
        }
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}
