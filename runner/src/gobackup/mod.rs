//! A run whose archive gobackup makes and stores, in an image that has it. Its exit status alone is
//! never believed: it ends with 0 also where it stored nothing, or an archive without the dump. The
//! run is good only if what was packed is on every storage, byte by byte, and holds a complete dump
//! of every Database. Retention, records and status are those of the native engine.

mod check;
mod config;
pub mod log;
pub mod shims;

use std::io::{BufRead, BufReader, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use crds::plan::Encrypt;
use crds::report::{EndpointKind, Reason, exit};
use crds::run::Artefact;
use crds::run_spec::SPEC_ENV;

use crate::backup::record::{self, Archive, LETTERS};
use crate::backup::target::{Delivered, Target};
use crate::backup::{hooks, in_work_directory, retention, retry, storages};
use crate::context::Context;
use crate::database::partial;
use crate::database::spool::Member;
use crate::failure::Failure;
use crate::process;
use crate::report::Ticker;
use crate::settings::plan::BackupSettings;
use crate::store::{Claim, Note, Store};
use crate::stream::checksum::Stored;

use config::Config;
use log::{Said, Stage};
use shims::{Cipher, Clients, Made};

/// Variables that would have gobackup log its clients' command lines, or take settings elsewhere.
const FORGOTTEN: [&str; 3] = [SPEC_ENV, "DEBUG", "GO_ENV"];
/// The first version that knows `filename_format`.
const NAMES_BY_FORMAT: (u32, u32) = (2, 17);

/// Has gobackup make and store the archive, then checks and prunes.
///
/// # Errors
/// The first thing that went wrong; with several storages, what went wrong at each.
pub(crate) fn run(context: &Context, backup: &BackupSettings) -> Result<(), Failure> {
    in_work_directory(context, backup, |work| run_in(context, backup, work))
}

fn run_in(context: &Context, backup: &BackupSettings, work: &Path) -> Result<(), Failure> {
    context.reporter.phase("Connecting");
    let program = find(context)?;
    refuse_old(context, &program)?;
    let (targets, lost) = storages::open(context, backup)?;
    let targets = match retry::find(context, targets) {
        Ok(before) => return retry::complete(context, backup, before, lost),
        Err(targets) => targets,
    };
    hooks::run_or_warn(
        context,
        "beforeScript",
        backup.plan.before_script.as_deref(),
    );
    context.check()?;
    let home = Home::new(context, backup, work)?;
    for database in &backup.plan.databases {
        partial::warn(context, database);
    }
    context.reporter.phase("Dumping");
    let claims = Arc::new(claim(context, &targets)?);
    let _ticker = {
        let (claims, stores) = (Arc::clone(&claims), stores(&targets));
        Ticker::start(Arc::clone(&context.reporter), move || {
            stores.iter().for_each(|s| s.keep_alive());
            claims.iter().for_each(Claim::renew);
        })
    };
    let mut said = perform(context, &program, &home)?;
    // It knows a Database by the key in its settings.
    said.database = said.database.map(|key| {
        let mut all = backup.plan.databases.iter();
        let known = all.find(|d| d.directory() == key);
        known.map_or(key, |d| d.name.clone())
    });
    for (name, file) in &home.after_scripts {
        if let Ok(status) = std::fs::read_to_string(file) {
            context.reporter.warn(&format!(
                "after_script of Database {name}: the script ended with status {}; gobackup's log above has what it said",
                status.trim()
            ));
        }
    }
    context.check()?;
    let failed = (!said.ended.good()).then(|| said.failure());
    note_databases(context, backup, &said, failed.as_ref());
    context.reporter.phase("ReadingBack");
    // Dumped and packed: what a storage that works has then is as good as any. Of all else that
    // gobackup calls failed nothing goes.
    let packed = failed.is_none() || said.stage == Stage::Storing;
    let checked = check_all(
        context,
        backup,
        targets,
        home.made(),
        (failed, lost),
        &claims,
    );
    let (delivered, failed) = checked?;
    if packed {
        retention::after_run(context, backup, delivered);
    }
    failed.map_or(Ok(()), Err)
}

/// Says on each storage what the names of this attempt's archives contain: what gobackup stored there,
/// and nobody vouched for because the pod was killed, is found by it.
fn claim(context: &Context, targets: &[Target]) -> Result<Vec<Claim>, Failure> {
    let token = token(context);
    let claim = |target: &Target| {
        let note = Note {
            object: context.settings.identity.object.clone(),
            run: context.settings.identity.run.clone(),
            key: record::join(&target.path, &token),
            manifest: record::directory(context, &target.path),
            split: false,
            token: token.clone(),
        };
        Claim::take(&target.store, &context.attempt(), &target.path, note, true)
    };
    targets.iter().map(claim).collect()
}

fn stores(targets: &[Target]) -> Vec<Arc<dyn Store>> {
    targets.iter().map(|t| Arc::clone(&t.store)).collect()
}

fn find(context: &Context) -> Result<PathBuf, Failure> {
    let mut path = context.settings.path.iter().map(|d| d.join("gobackup"));
    path.find(|p| p.is_file()).ok_or_else(|| {
        Failure::settings(
            "this image has no gobackup: set spec.job.image, or BACKUP_JOB_IMAGE of the operator, to an image of gobackup, or spec.job.engine: native",
        )
    })
}

/// A gobackup that can't be told how to name its archive would write over another one of the same
/// second. One that does not say its version is taken as a new one: the name is looked for afterwards.
///
/// # Errors
/// It is older.
fn refuse_old(context: &Context, program: &Path) -> Result<(), Failure> {
    let (printed, _) = process::Program::new(program.to_owned(), ["--version"]).run(context, "")?;
    let printed = String::from_utf8_lossy(&printed);
    match version(&printed) {
        Some(found) if found < NAMES_BY_FORMAT => Err(Failure::settings(format!(
            "gobackup {}.{} of this image names archives by the second alone and has no filename_format, so that one could write over another: set spec.job.image to gobackup 2.17 or newer, or spec.job.engine: native",
            found.0, found.1
        ))),
        _ => Ok(()),
    }
}

/// Major and minor of `gobackup version 3.1.1`.
fn version(printed: &str) -> Option<(u32, u32)> {
    let number = printed.split_whitespace().last()?.trim_start_matches('v');
    let mut parts = number.split('.').map(str::parse);
    Some((parts.next()?.ok()?, parts.next()?.ok()?))
}

/// What gobackup is given: its settings on memory, directories to write to, and the programs that
/// keep its clients' passwords off their command lines.
struct Home {
    /// Directory on memory.
    private: Private,
    /// Directory for archives on their way.
    work: PathBuf,
    /// Variables.
    env: Vec<(String, String)>,
    /// Databases, and where the status of their script is if it failed.
    after_scripts: Vec<(String, PathBuf)>,
}

/// A directory on memory; gone with the run.
struct Private(PathBuf);

impl Drop for Private {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Home {
    fn new(context: &Context, backup: &BackupSettings, work: &Path) -> Result<Self, Failure> {
        let failed = |e: std::io::Error| {
            Failure::new(
                Reason::WorkdirFailed,
                format!("what gobackup needs can't be written: {e}; it needs writable volumes"),
            )
        };
        let memory = crate::memory::directory(&context.settings.memory)?;
        let private = Private(memory.join(format!("gobackup-{}", context.nonce)));
        let (state, home, tmp) = (work.join("state"), work.join("home"), work.join("tmp"));
        for directory in [&private.0, &state, &home, &tmp] {
            std::fs::create_dir_all(directory).map_err(failed)?;
        }
        let clients = Clients {
            path: context.settings.path.clone(),
            cipher: cipher(backup),
        };
        let runner = std::env::current_exe().map_err(failed)?;
        let programs = shims::install(&private.0, &runner, &clients).map_err(failed)?;
        let (workdir, scripts) = (tmp.display().to_string(), private.0.display().to_string());
        let config = Config {
            plan: &backup.plan,
            files: &backup.files,
            workdir: &workdir,
            scripts: &scripts,
            token: &token(context),
        };
        let text = config.render()?;
        for (path, text) in config.scripts() {
            std::fs::write(path, text).map_err(failed)?;
        }
        let after_scripts = config
            .failed_scripts()
            .into_iter()
            .map(|(name, file)| (name.to_owned(), PathBuf::from(file)))
            .collect();
        std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(private.0.join("gobackup.yml"))
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(failed)?;
        let real = context
            .settings
            .path
            .iter()
            .map(|d| d.display().to_string());
        let path: Vec<String> = std::iter::once(programs.display().to_string())
            .chain(real)
            .collect();
        let mut env: Vec<(String, String)> = [
            ("PATH", path.join(":")),
            ("HOME", home.display().to_string()),
            ("TMPDIR", tmp.display().to_string()),
            ("GOBACKUP_DIR", state.display().to_string()),
            ("TZ", backup.zone.name().to_owned()),
            ("ETCDCTL_API", "3".to_owned()),
            (shims::DIRECTORY, private.0.display().to_string()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into();
        let level = config::level(&backup.plan);
        env.extend(level.into_iter().map(|(k, v)| (k.to_owned(), v)));
        Ok(Self {
            private,
            work: work.to_owned(),
            env,
            after_scripts,
        })
    }

    fn made(&self) -> Option<Made> {
        shims::made(&self.private.0)
    }
}

fn cipher(backup: &BackupSettings) -> Option<Cipher> {
    match backup.plan.encrypt.as_ref()? {
        Encrypt::Openssl {
            bits,
            iterations,
            digest,
            base64,
            ..
        } => Some(Cipher {
            bits: *bits,
            iterations: *iterations,
            digest: digest.clone(),
            base64: *base64,
        }),
        Encrypt::Age { .. } => None,
    }
}

/// What tells this attempt's archive from every other one: gobackup writes over what has its name.
fn token(context: &Context) -> String {
    let o = &context.settings.identity.object;
    let hash = crds::names::short_hash(
        &[&o.uid, &context.settings.identity.run, &context.nonce],
        16,
    );
    letters(&hash)
}

/// Hex digits as letters.
fn letters(hex: &str) -> String {
    let digits = hex.chars().filter_map(|c| c.to_digit(16));
    digits
        .filter_map(|d| LETTERS.get(d as usize))
        .map(|b| char::from(*b))
        .collect()
}

/// Runs gobackup to its end; its words go to the log.
fn perform(context: &Context, program: &Path, home: &Home) -> Result<Said, Failure> {
    let mut command = Command::new(program);
    command
        .args(["perform", "-c"])
        .arg(home.private.0.join("gobackup.yml"))
        .current_dir(&home.work)
        .envs(home.env.iter().map(|(k, v)| (k, v)));
    for name in FORGOTTEN {
        command.env_remove(name);
    }
    let mut running = process::Running::spawn(command, ("gobackup", false), false, context)?;
    let mut listener = log::Listener::default();
    if let Some(stdout) = running.stdout.take() {
        let mut lines = BufReader::new(stdout);
        let mut line = vec![];
        // What gobackup says need not be text, and is read to its end, else it would wait.
        while lines.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
            let text = context.scrub.clean(String::from_utf8_lossy(&line).trim());
            line.clear();
            let before = listener.stage();
            if listener.hear(&text) {
                tracing::info!(client = "gobackup", "{text}");
            }
            if listener.stage() != before && listener.stage() == Stage::Storing {
                context.reporter.phase("Storing");
            }
        }
    }
    Ok(listener.end(running.wait()?))
}

/// Says of the Databases what is known: one that could not be reached, or all that were dumped.
fn note_databases(
    context: &Context,
    backup: &BackupSettings,
    said: &Said,
    failed: Option<&Failure>,
) {
    let note = |name: &str, outcome| {
        context
            .reporter
            .endpoint(EndpointKind::Database, name, outcome);
    };
    match (failed, said.stage, &said.database) {
        (Some(failure), Stage::Dumping, Some(name)) if failure.reason.is_unreachable() => {
            note(name, Err(failure));
        }
        (Some(_), Stage::Dumping, _) => {}
        _ => {
            for database in &backup.plan.databases {
                note(&database.name, Ok(()));
            }
        }
    }
}

/// Checks every storage; what is good there is recorded, also where the run fails for another's sake.
fn check_all(
    context: &Context,
    backup: &BackupSettings,
    targets: Vec<Target>,
    made: Option<Made>,
    (failed, lost): (Option<Failure>, Vec<Failure>),
    claims: &[Claim],
) -> Result<(Vec<Delivered>, Option<Failure>), Failure> {
    let Some(made) = made else {
        return Err(failed.unwrap_or_else(|| {
            Failure::new(
                Reason::NothingPacked,
                "gobackup ended with status 0 but packed no archive: nothing is stored; look at its log above, and set spec.job.image to an image of gobackup (it packs with tar)",
            )
        }));
    };
    // What gobackup itself says comes first.
    let failed_already = failed.is_some();
    let mut failures: Vec<Failure> = failed.into_iter().chain(lost).collect();
    let mut delivered: Vec<Delivered> = vec![];
    for target in targets {
        let name = target.name.clone();
        let outcome = context
            .check()
            .and_then(|()| check_one(context, backup, target, &made, claims));
        match outcome {
            Ok(Some(one)) => delivered.push(one),
            Ok(None) if failed_already => {}
            Ok(None) => failures.push(Failure::new(
                Reason::NotStored,
                format!(
                    "Storage {name}: gobackup ended with status 0 and {} is not there: nothing is stored; look at its log above",
                    made.name
                ),
            )),
            Err(e) => failures.push(Failure {
                message: format!("Storage {name}: {}", e.message),
                ..e
            }),
        }
    }
    report(context, &delivered, &made);
    let failed = (!failures.is_empty()).then(|| Failure::all(failures));
    Ok((delivered, failed))
}

/// The archive on one storage, recorded; `None` if it is not there.
fn check_one(
    context: &Context,
    backup: &BackupSettings,
    target: Target,
    made: &Made,
    claims: &[Claim],
) -> Result<Option<Delivered>, Failure> {
    let key = record::join(&target.path, &made.name);
    let bad = |e: &Failure| matches!(e.exit_code, exit::VERIFICATION | exit::SOURCE);
    let found = check::read_back(backup, &target, made).inspect_err(|e| {
        if bad(e) {
            // It would look like a backup.
            let _ = target.store.remove(&key);
        }
    })?;
    let Some((key, content)) = found else {
        return Ok(None);
    };
    let stored = Stored {
        bytes: made.bytes,
        sha256: made.sha256.clone(),
    };
    let archive = Archive {
        key: &key,
        parts: &[],
        members: &content.members,
        stored: &stored,
        read_back: true,
    };
    for claim in claims {
        claim.check()?;
    }
    record::record(context, &target, &archive)?;
    let count = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    let raw: u64 = content.members.iter().map(Member::bytes).sum();
    let sql = backup.plan.databases.iter().any(|d| {
        config::type_of(d.database_type) == config::type_of(crds::plan::DatabaseType::Mysql)
    });
    context.reporter.update(|r| {
        r.raw_bytes = Some(count(raw));
        r.tables = sql.then(|| count(content.tables));
        r.rows = sql.then(|| count(content.rows));
    });
    Ok(Some(Delivered {
        target,
        key,
        read_back: true,
    }))
}

fn report(context: &Context, delivered: &[Delivered], made: &Made) {
    let size = i64::try_from(made.bytes).unwrap_or(i64::MAX);
    let artefacts: Vec<Artefact> = delivered
        .iter()
        .map(|d| Artefact {
            key: d.key.clone(),
            size,
            sha256: made.sha256.clone(),
            read_back: true,
            storage: Some(d.target.name.clone()),
        })
        .collect();
    context.reporter.update(|r| {
        let copies = i64::try_from(artefacts.len()).unwrap_or(i64::MAX);
        r.stored_bytes = Some(size.saturating_mul(copies));
        r.artefacts = artefacts;
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Go's layout words (package time, constants of format.go) of which none may be in a token.
    #[test]
    fn a_token_means_nothing_in_a_layout() {
        let all = letters("0123456789abcdef");
        assert_eq!(all.len(), 16);
        for one in LETTERS {
            for other in LETTERS {
                let pair = [char::from(*one), char::from(*other)]
                    .iter()
                    .collect::<String>();
                assert!(!["pm", "PM", "Z0"].contains(&pair.as_str()), "{pair}");
            }
        }
        assert!(all.chars().all(|c| c.is_ascii_lowercase()));
    }

    #[test]
    fn g2_versions_are_read_as_gobackup_prints_them() {
        for (printed, expected) in [
            ("gobackup version 3.1.1\n", Some((3, 1))),
            ("gobackup version 2.14.0\n", Some((2, 14))),
            ("gobackup version v2.17.0\n", Some((2, 17))),
            ("gobackup version master\n", None),
            ("", None),
        ] {
            assert_eq!(version(printed), expected, "{printed}");
        }
        assert!(version("2.9.0").is_some_and(|v| v < NAMES_BY_FORMAT));
        assert!(version("3.0.0").is_some_and(|v| v > NAMES_BY_FORMAT));
    }
}
