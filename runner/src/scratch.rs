//! Verification by restore: a scratch server without network is filled from the artefact, dumped
//! through the same reader, and compared with the manifest that was made from the dump itself. A
//! live database that changed during the dump never makes a good backup look bad.

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
    let scratch = Scratch::start(context)?;
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
    let restored = scratch.dump(context, clients.dump(flavour)?, manifest)?;
    compare(manifest, &restored)
}

/// Compares what was restored with the manifest; names the first tables that differ.
fn compare(manifest: &Manifest, restored: &Summary) -> Result<String, Failure> {
    let mut differences: Vec<String> = vec![];
    for table in &manifest.tables {
        let there = |t: &&Table| t.name == table.name && t.database == table.database;
        let name = format!("{}.{}", table.database, table.name);
        match restored.tables.iter().find(there) {
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
    let more = differences.len().saturating_sub(3);
    differences.truncate(3);
    let more = if more > 0 {
        format!("; and {more} more")
    } else {
        String::new()
    };
    Err(Failure::verification(
        "RestoreDiffers",
        format!(
            "a restore of {} differs: {}{more}",
            manifest.key,
            differences.join("; ")
        ),
    ))
}

/// A server of its own in a directory of its own; both are gone when it is dropped.
struct Scratch {
    directory: PathBuf,
    server: Option<Child>,
}

impl Scratch {
    fn start(context: &Context) -> Result<Self, Failure> {
        let find = |name: &str| {
            let path = &context.settings.path;
            path.iter().map(|d| d.join(name)).find(|p| p.is_file()).ok_or_else(|| {
                Failure::settings(format!(
                    "verification by restore needs {name}, which this image lacks: use an image with mariadb-server"
                ))
            })
        };
        let (install, server) = (find("mariadb-install-db")?, find("mariadbd")?);
        let root = Path::new(VOLUME);
        let root = if root.is_dir() {
            root.to_owned()
        } else {
            std::env::temp_dir()
        };
        let directory = root.join(format!("scratch-{}", context.nonce));
        std::fs::create_dir(&directory).map_err(|e| {
            Failure::other(
                "ScratchFailed",
                format!(
                    "{} can't be made ({e}): set spec.verify.volume",
                    directory.display()
                ),
            )
        })?;
        let mut scratch = Self {
            directory,
            server: None,
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
            "the scratch server's data directory can't be made: give spec.verify.volume more space",
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
    fn arguments(&self) -> Vec<String> {
        vec![
            "--no-defaults".to_owned(),
            format!("--socket={}", self.socket().display()),
            "--user=root".to_owned(),
        ]
    }

    fn wait(&self, context: &Context, client: &Client) -> Result<(), Failure> {
        let deadline = Instant::now() + START;
        loop {
            context.check()?;
            let (_, ended) = Dump::run(
                client,
                &self.arguments(),
                "SELECT 1;\n",
                &context.cancel,
                &context.scrub,
            )?;
            if ended.good() {
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

    /// Dumps it as the manifest's dump was made, but for options that need a binlog.
    fn dump(
        &self,
        context: &Context,
        client: &Client,
        manifest: &Manifest,
    ) -> Result<Summary, Failure> {
        const OF_THE_SOURCE: [&str; 5] = [
            "--master-data",
            "--source-data",
            "--set-gtid-purged",
            "--column-statistics",
            "--gtid",
        ];
        let mut args = self.arguments();
        let kept = manifest
            .arguments
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
