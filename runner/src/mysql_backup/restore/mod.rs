//! Restores an artefact into a server. `BACKUP_SPEC` says it so:
//!
//! - `object`: whose artefact it is; `destination`: where it is; `identityFile`: what opens it.
//! - `source`: the server to restore into, with `usernameFile` and `passwordFile`.
//! - `options.restore`: `{key | run | at, database, definers, definer, overwrite, dryRun}`. Without
//!   key, run or at the newest artefact is meant; `database` is another name for the dump's one
//!   database; `definers` says what becomes of the definers of views, triggers, routines and events.
//!
//! The artefact is read twice. First its stored bytes are compared with the manifest, and what the
//! dump would do is seen: what it may not do is told before the first statement is sent. Then it is
//! loaded. A database that holds tables, and the server the dump came from, need `overwrite`.

mod look;

use crds::report::Reason;
use crds::run::Artefact;

use crate::context::Context;
use crate::database::mysql::sql::Rewrite;
use crate::database::mysql::target::{DefinersChoice, Plan, Target};
use crate::failure::Failure;
use crate::mysql_backup::artefacts;
use crate::mysql_backup::manifest::Manifest;
use crate::mysql_backup::stored::StoredDumps;

/// Restores.
///
/// # Errors
/// The artefact differs from its manifest, the target is not free, or the server refuses.
pub fn run(context: &Context) -> Result<(), Failure> {
    let options = context.settings.restore()?;
    let source = context.settings.source()?;
    let definers = DefinersChoice {
        choice: options.definers,
        definer: options.definer,
    };
    let definers = definers.parse()?;
    let place = StoredDumps::open(context)?;
    let store = &place.store;
    context.reporter.phase("ReadingBack");
    let manifest = place.choose(&options.choice)?;
    show(context, &manifest);
    let names = names(&manifest, options.database.as_deref())?;
    let rename = match (&manifest.databases[..], &options.database) {
        ([from], Some(to)) if from != to => Some((from.clone(), to.clone())),
        _ => None,
    };
    let wish = Rewrite { rename, definers };
    let found = look::look(context, store.as_ref(), &manifest, &wish)?;
    let target = Target::connect(context, source)?;
    let plan = Plan {
        what: manifest.key.clone(),
        found,
        wish,
        names,
        bare: false,
        server: &manifest.server_identity,
        arguments: manifest.arguments.clone(),
        sha256: &manifest.raw_sha256,
    };
    if !options.overwrite {
        target.free(&plan)?;
    }
    target.ready(&plan)?;
    let rows: u64 = manifest.tables.iter().map(|t| t.rows).sum();
    let what = format!(
        "{} tables with {rows} rows of {} into {} at {}",
        manifest.tables.len(),
        manifest.key,
        plan.names.join(", "),
        target.place()
    );
    if options.dry_run {
        context.reporter.update(|r| {
            Reason::WouldRestore.as_str().clone_into(&mut r.reason);
            r.message = format!("would restore {what}");
        });
        return Ok(());
    }
    context.reporter.phase("Restoring");
    context.reporter.expect(manifest.raw_bytes);
    let mut dump = artefacts::open(context, store.as_ref(), &manifest)?;
    target.load(&plan, &mut dump)?;
    context.reporter.update(|r| {
        Reason::Restored.as_str().clone_into(&mut r.reason);
        r.message = format!("restored {what}");
    });
    Ok(())
}

fn show(context: &Context, manifest: &Manifest) {
    let number = |n: u64| Some(i64::try_from(n).unwrap_or(i64::MAX));
    context.reporter.update(|r| {
        r.raw_bytes = number(manifest.raw_bytes);
        r.tables = number(manifest.tables.len() as u64);
        r.rows = number(manifest.tables.iter().map(|t| t.rows).sum());
        r.artefacts = vec![Artefact {
            key: manifest.key.clone(),
            size: i64::try_from(manifest.stored_bytes).unwrap_or(i64::MAX),
            sha256: manifest.stored_sha256.clone(),
            read_back: true,
            storage: None,
        }];
    });
}

/// The databases the dump will make.
fn names(manifest: &Manifest, database: Option<&str>) -> Result<Vec<String>, Failure> {
    match database {
        None => Ok(manifest.databases.clone()),
        Some("") => Err(Failure::settings("options.restore.database is empty")),
        Some(name) if manifest.databases.len() == 1 => Ok(vec![name.to_owned()]),
        Some(_) => Err(Failure::settings(format!(
            "{} holds {} databases ({}): only a dump of one database can be restored under another name",
            manifest.key,
            manifest.databases.len(),
            manifest.databases.join(", ")
        ))),
    }
}
