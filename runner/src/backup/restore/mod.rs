//! Restores databases out of an archive. `BACKUP_SPEC` says it so:
//!
//! - `object`: whose archive it is; `plan.storages` and `plan.encrypt`: where it is and what opens
//!   it; `identityFile`: the age identity.
//! - `source`: the server to restore into, with `usernameFile` and `passwordFile`.
//! - `options.restore`: `{key | run | at, dump, database, definers, definer, directory,
//!   etcd, overwrite, dryRun}`.
//!   `dump` is the name of one Database in the archive; without it every dump that fits the server is
//!   restored. `database` is another name for the one database of the dump. With `directory` the dump
//!   of one Database is put there instead, on a mounted volume, and `source` is not looked at.
//!
//! The archive is read twice. First all of it: the stored bytes are compared with the record, the
//! dumps with theirs, and what they hold is seen. Then, if the target is free, they are loaded.

mod choice;
mod files;

use std::path::Path;

use crds::report::{Reason, exit};

use crate::backup::fetch;
use crate::backup::found::{self, Found};
use crate::context::Context;
use crate::database::restore::{Dumps, Each, Job, StoredDump, damaged};
use crate::database::{mysql, postgresql, redis};
use crate::failure::Failure;
use crate::settings::Source;
use crate::settings::plan::BackupSettings;

use choice::Server;

/// Restores.
///
/// # Errors
/// The archive differs from its record, holds nothing that can be restored, the target is not free,
/// or the server refuses.
pub(crate) fn run(context: &Context, backup: &BackupSettings) -> Result<(), Failure> {
    let options = context.settings.restore()?;
    // Before anything is read: wrong settings are told at once.
    if options.replay.is_some() {
        return Err(Failure::settings(
            "options.restore.replay: binary logs are kept of a MysqlBackup; an archive is restored as it is",
        ));
    }
    let target = match &options.directory {
        Some(directory) => Target::Directory(directory),
        None => Target::Server(context.settings.source()?),
    };
    context.reporter.measure();
    context.reporter.phase("ReadingBack");
    let mut found = fetch::choose(context, backup, &options.choice)?;
    fetch::measure_files(context, backup, &mut found)?;
    context
        .reporter
        .update(|r| r.artefacts = vec![found::listed(&found)]);
    let (record, dump) = (&found.record, options.dump.as_deref());
    let archive = Archive {
        context,
        backup,
        found: &found,
    };
    let job = |dumps| Job {
        context,
        port: backup.target_port,
        archive: &archive,
        work: &backup.workdir,
        dumps,
        options: &options,
    };
    let target = match target {
        Target::Directory(directory) => {
            return files::restore(&job(&choice::files(record, dump)?), directory);
        }
        Target::Server(target) => target,
    };
    let chosen = choice::choose(record, dump, options.database.as_deref())?;
    for text in &chosen.left {
        context.reporter.warn(text);
    }
    let job = job(&chosen.dumps);
    match chosen.server {
        Server::Mysql => mysql::restore::restore(&job, target),
        Server::Postgresql => postgresql::restore::restore(&job, target),
        Server::Redis => redis::restore::restore(&job, target),
    }
}

/// Where to restore to.
enum Target<'a> {
    Directory(&'a Path),
    Server(&'a Source),
}

/// An archive as dumps are restored from it.
struct Archive<'a> {
    context: &'a Context,
    backup: &'a BackupSettings,
    found: &'a Found,
}

impl Dumps for Archive<'_> {
    fn key(&self) -> &str {
        &self.found.record.key
    }

    fn walk(&self, dumps: &[StoredDump], each: &mut Each<'_>) -> Result<(), Failure> {
        let broken = |e| damaged(self.key(), e);
        let tar = fetch::open(self.context, self.backup, self.found)?;
        let mut archive = tar::Archive::new(tar);
        let mut met = vec![false; dumps.len()];
        let mut outcome = Ok(());
        for entry in archive.entries().map_err(broken)? {
            self.context.check()?;
            let mut entry = entry.map_err(broken)?;
            let path = entry.path().map_err(broken)?.display().to_string();
            let path = path.strip_prefix("./").unwrap_or(&path);
            let Some(i) = dumps.iter().position(|d| d.path == path) else {
                continue;
            };
            if let (Some(dump), Some(met)) = (dumps.get(i), met.get_mut(i)) {
                *met = true;
                outcome = each(i, dump, &mut entry);
            }
            match &outcome {
                Ok(()) => {}
                Err(e) if e.exit_code == exit::VERIFICATION => break,
                Err(_) => return outcome,
            }
        }
        // Only at its end the stored bytes are known to be those of the record; if they are not,
        // that is why something in them differs.
        std::io::copy(&mut archive.into_inner(), &mut std::io::sink()).map_err(broken)?;
        outcome?;
        let lost = met.iter().position(|met| !met);
        match lost.and_then(|i| dumps.get(i)) {
            None => Ok(()),
            Some(dump) => Err(Failure::new(
                Reason::ArchiveDamaged,
                format!("{} does not hold {}", self.key(), dump.path),
            )),
        }
    }
}
