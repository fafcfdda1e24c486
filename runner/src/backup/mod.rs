//! A run of a gobackup.io Backup: several databases into one tar with gobackup's inner tree,
//! compressed and encrypted as asked, to one or more storages, each read back; then retention.
//!
//! Dumps are spooled compressed in the work directory, because a tar header needs the size
//! first. Nothing is stored unless every dump is complete.

pub(crate) mod actions;
pub(crate) mod archive;
pub(crate) mod fetch;
pub(crate) mod found;
pub mod hooks;
pub(crate) mod open;
pub(crate) mod others;
pub mod record;
pub(crate) mod restore;
pub mod restore_check;
pub(crate) mod retention;
pub(crate) mod retry;
pub(crate) mod storages;
pub(crate) mod target;
pub(crate) mod tee;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use crds::plan::Database;
use crds::report::{EndpointKind, Reason};
use crds::request::Action;
use crds::run::Artefact;
use secrecy::SecretString;

use crate::artefact;
use crate::context::Context;
use crate::database::{self, spool::Member};
use crate::failure::Failure;
use crate::report::Ticker;
use crate::settings::plan::BackupSettings;
use crate::stream::filter;

use target::{Delivered, StoredArchives, Target};

/// Does what is asked of the Backup. What was learned on the way stands in the report.
///
/// # Errors
/// The first thing that went wrong; with several storages, what went wrong at each.
pub fn act(context: &Context, backup: &BackupSettings) -> Result<(), Failure> {
    if context.settings.asks_for_restore() {
        return restore::run(context, backup);
    }
    match context.settings.action {
        Action::Backup => in_work_directory(context, backup, |work| run(context, backup, work)),
        Action::Probe => actions::probe(context, backup),
        Action::Verify | Action::Prune | Action::List => {
            context.settings.check()?;
            let (targets, lost) = storages::open(context, backup)?;
            let places = StoredArchives::on(context, backup, targets);
            artefact::on_places(context, "archives", &places, lost)
        }
        Action::Cancel | Action::Echo | Action::Restore | Action::Notify | Action::Binlogs => {
            Err(Failure::settings(
                "this action is none of a Backup's runs: use runner and operator of the same version",
            ))
        }
    }
}

/// Checks the settings and does `work` in a directory of its own.
///
/// # Errors
/// Wrong settings, no such directory, and what `work` says.
pub(crate) fn in_work_directory(
    context: &Context,
    backup: &BackupSettings,
    work: impl FnOnce(&Path) -> Result<(), Failure>,
) -> Result<(), Failure> {
    context.settings.check()?;
    let directory = WorkDir::new(&backup.workdir, &context.nonce)?;
    let outcome = work(&directory.path);
    // As in gobackup, the closing script runs whatever happened before.
    hooks::run_or_warn(context, "afterScript", backup.plan.after_script.as_deref());
    outcome
}

fn run(context: &Context, backup: &BackupSettings, work: &Path) -> Result<(), Failure> {
    context.reporter.phase("Connecting");
    // Told before anything is dumped.
    if let Some(name) = filter::program(backup.plan.compress.codec) {
        context.settings.program(name)?;
    }
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
    context.reporter.phase("Dumping");
    let mut members = vec![];
    {
        let _ticker = Ticker::start(Arc::clone(&context.reporter), || {});
        for database in &backup.plan.databases {
            members.extend(dump_one(context, backup, database, work)?);
            context.check()?;
        }
    }
    let raw: u64 = members.iter().map(Member::bytes).sum();
    context
        .reporter
        .update(|r| r.raw_bytes = i64::try_from(raw).ok());
    context.reporter.phase("Storing");
    let (delivered, failed) = store(context, backup, &members, targets, lost)?;
    retention::after_run(context, backup, delivered);
    failed.map_or(Ok(()), Err)
}

/// One dump with the scripts of its Database. A failing script before it fails the run.
fn dump_one(
    context: &Context,
    backup: &BackupSettings,
    database: &Database<SecretString>,
    work: &Path,
) -> Result<Vec<Member>, Failure> {
    tracing::info!(
        event = "dump",
        database = database.name,
        database_type = database.database_type.as_str()
    );
    if let Some(text) = &database.before_script {
        hooks::run(context, text).map_err(|e| {
            Failure::new(
                Reason::ScriptFailed,
                format!("before_script of Database {}: {e}", database.name),
            )
        })?;
    }
    let members = database::dump(context, &backup.plan.model, database, work);
    let reached = members.as_ref().map(|_| ());
    if reached.is_ok() || reached.is_err_and(|e| e.reason.is_unreachable()) {
        context
            .reporter
            .endpoint(EndpointKind::Database, &database.name, reached);
    }
    if let Some(text) = &database.after_script
        && let Err(e) = hooks::run(context, text)
    {
        context
            .reporter
            .warn(&format!("after_script of Database {}: {e}", database.name));
    }
    members.map_err(|e| Failure {
        message: format!("Database {}: {}", database.name, e.message),
        ..e
    })
}

/// One pass over the spools feeds every storage; each is read back on its own. Gives the storages that
/// have the archive, and what went wrong at the others.
fn store(
    context: &Context,
    backup: &BackupSettings,
    members: &[Member],
    targets: Vec<Target>,
    lost: Vec<Failure>,
) -> Result<(Vec<Delivered>, Option<Failure>), Failure> {
    let stores: Vec<_> = targets.iter().map(|t| Arc::clone(&t.store)).collect();
    let tee = tee::Tee::begin(context, backup, targets, lost)?;
    let claims = tee.claims();
    let _ticker = Ticker::start(Arc::clone(&context.reporter), move || {
        stores.iter().for_each(|s| s.keep_alive());
        claims
            .iter()
            .filter_map(Weak::upgrade)
            .for_each(|c| c.renew());
    });
    let (tee, stored) = archive::write(context, backup, members, tee)?;
    context.check()?;
    context.reporter.phase("ReadingBack");
    let (delivered, failures) = tee.finish(context, members, &stored);
    let artefacts: Vec<Artefact> = delivered
        .iter()
        .map(|(d, stored)| Artefact {
            key: d.key.clone(),
            size: i64::try_from(stored.bytes).unwrap_or(i64::MAX),
            sha256: stored.sha256.clone(),
            read_back: d.read_back,
            storage: Some(d.target.name.clone()),
        })
        .collect();
    let total = artefacts
        .iter()
        .map(|a| a.size)
        .fold(0, i64::saturating_add);
    context.reporter.update(|r| {
        r.stored_bytes = Some(total);
        r.artefacts = artefacts;
    });
    let delivered = delivered.into_iter().map(|(d, _)| d).collect();
    let failed = (!failures.is_empty()).then(|| Failure::all(failures));
    Ok((delivered, failed))
}

/// A directory of this run alone; gone with it.
struct WorkDir {
    path: PathBuf,
}

impl WorkDir {
    fn new(root: &Path, nonce: &str) -> Result<Self, Failure> {
        let path = root.join(format!("run-{nonce}"));
        std::fs::create_dir_all(&path).map_err(|e| {
            Failure::new(
                Reason::WorkdirFailed,
                format!(
                    "the work directory {} can't be made: {e}; it needs a writable volume",
                    path.display()
                ),
            )
        })?;
        Ok(Self { path })
    }
}

impl Drop for WorkDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}
