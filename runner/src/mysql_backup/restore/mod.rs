//! Restores an artefact into a server. `BACKUP_SPEC` says it so:
//!
//! - `object`: whose artefact it is; `destination`: where it is; `identityFile`: what opens it.
//! - `source`: the server to restore into, with `usernameFile` and `passwordFile`.
//! - `options.restore`: `{key | run | at, database, definers, definer, overwrite, accounts, tables, databases,
//!   excludeTables, withoutForeignKeys, replay, verify, dryRun}`. Without
//!   key, run or at the newest artefact is meant; `database` is another name for the dump's one
//!   database; `definers` says what becomes of the definers of views, triggers, routines and events; users,
//!   roles and grants of the dump are made with `accounts` alone; `tables` (`database.table`), `databases` and
//!   `excludeTables` choose a part, of which alone the ranges are read ([`part`]); `replay: {at | gtid | beforeGtid | latest}`
//!   replays what the binary logs hold behind the dump, and takes the newest dump that leads there.
//!
//! The artefact is read twice. First its stored bytes are compared with the manifest, and what the
//! dump would do is seen: what it may not do is told before the first statement is sent. Of frames with rows that is nothing but
//! rows, or it is not loaded. Then it is loaded. A database that holds tables, and the server the dump came from, need `overwrite`.

mod look;
mod part;

use crds::parts::Engine;
use crds::report::Reason;
use crds::run::Artefact;
use load::Sequential;

use crate::context::Context;
use crate::database::mysql::source::Client;
use crate::database::mysql::sql::Rewrite;
use crate::database::mysql::target::frames::Framed;
use crate::database::mysql::target::replay::half_replayed;
use crate::database::mysql::target::{DefinersChoice, Plan, Target};
use crate::failure::Failure;
use crate::mysql_backup::artefacts;
use crate::mysql_backup::manifest::Manifest;
use crate::mysql_backup::replay::{self, Replay};
use crate::mysql_backup::stored::StoredDumps;

use look::Measured;

/// Restores.
///
/// # Errors
/// The artefact differs from its manifest, the target is not free, or the server refuses.
pub fn run(context: &Context) -> Result<(), Failure> {
    let options = context.settings.restore()?;
    let source = context.settings.source()?;
    let definers = DefinersChoice {
        choice: options.definers,
        definer: options.definer.clone(),
    };
    let definers = definers.parse()?;
    let place = StoredDumps::open(context)?;
    let store = &place.store;
    context.reporter.measure();
    context.reporter.phase("ReadingBack");
    let mut replay = replay::prove(context, &place, &options)?;
    let manifest = match &replay {
        Some(replay) => replay.manifest.clone(),
        None => place.choose(&options.choice)?,
    };
    show(context, &manifest);
    if let Some(chosen) = part::chosen(&options, &manifest)? {
        return part::run(
            context,
            &place,
            &manifest,
            (&options, definers),
            (&chosen, source),
            replay.as_mut(),
        );
    }
    let names = names_of(&manifest, &manifest.databases, options.database.as_deref())?;
    let rename = match (&manifest.databases[..], &options.database) {
        ([from], Some(to)) if from != to => Some((from.clone(), to.clone())),
        _ => None,
    };
    let wish = Rewrite {
        rename,
        definers,
        only: None,
    };
    let without = if options.accounts {
        vec![]
    } else {
        manifest.accounts()?
    };
    let all = || look::look(context, store.as_ref(), &manifest, (&wish, &without));
    let native = manifest.engine == Some(Engine::Native);
    let frames = manifest.frames()?.filter(|_| native);
    let (found, shape) = match &frames {
        Some(frames) => {
            let how = (frames, &wish, options.accounts);
            let found = look::look_at_frames(context, store.as_ref(), &manifest, how)?;
            (found, Err("is loaded by its frames"))
        }
        None => all()?,
    };
    let target = Target::connect(context, source)?;
    let mut plan = Plan {
        what: manifest.key.clone(),
        found,
        wish: wish.clone(),
        names,
        bare: false,
        server: &manifest.server_identity,
        arguments: manifest.arguments.clone(),
        native,
        without: without.clone(),
        sha256: &manifest.raw_sha256,
        shape,
        verify: options.verify,
    };
    let whole = frames.is_some();
    let frames = frames.filter(|_| target.takes_sessions(&plan));
    if whole && frames.is_none() {
        // What is loaded by its text is looked at as a text.
        (plan.found, plan.shape) = all()?;
    }
    // A restore that goes on finds its own tables.
    if !options.overwrite && (frames.is_none() || options.dry_run) {
        target.free(&plan).map_err(|e| match e.reason {
            Reason::TargetNotEmpty if !options.dry_run => Failure {
                message: format!(
                    "{}; where a pod of this Restore was cut before, that is what it left, and this dump can't be gone on with",
                    e.message
                ),
                ..e
            },
            _ => e,
        })?;
    }
    target.ready(&plan)?;
    let decoder = replay.as_ref().map(|r| target.ready_to_replay(r.logs));
    let decoder = decoder.transpose()?;
    let then = replay.as_ref().map(|r| format!("; then {}", r.words()));
    let then = then.unwrap_or_default();
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
            r.message = format!("would restore {what}{then}");
        });
        return Ok(());
    }
    context.reporter.phase("Restoring");
    context.reporter.expect(manifest.raw_bytes);
    let how;
    if let Some(frames) = frames {
        let stored = Measured::new(artefacts::stored(store.as_ref(), &manifest)?);
        let dump = artefacts::decrypted(context, &manifest, Box::new(stored.clone()))?;
        let framed = Framed {
            frames: &frames,
            compress: manifest.compress(),
            wanted: &|_| true,
            source: &mut Sequential::new(dump),
            accounts: options.accounts,
            tables: &manifest.tables,
            whose: whose(context, &manifest),
            overwrite: options.overwrite,
        };
        how = target.load_frames(&plan, framed)?;
        stored.compare(&manifest)?;
    } else {
        let mut dump = artefacts::open(context, store.as_ref(), &manifest)?;
        how = target.load(&plan, &mut dump)?;
    }
    if let (Some(replay), Some(decoder)) = (&replay, &decoder) {
        go_on(context, &place, (&target, decoder), replay, &plan.names)?;
    }
    context.reporter.update(|r| {
        Reason::Restored.as_str().clone_into(&mut r.reason);
        r.message = format!("restored {what}{how}{then}");
    });
    Ok(())
}

/// Replays binary logs behind a dump that was loaded; `names` are of what it filled.
fn go_on(
    context: &Context,
    place: &StoredDumps<'_>,
    (target, decoder): (&Target<'_>, &Client),
    replay: &Replay,
    names: &[String],
) -> Result<(), Failure> {
    context.reporter.phase("Replaying");
    context
        .reporter
        .leaves(&half_replayed(names, &target.place()));
    target.replay(decoder, &replay.files(context, place), names)?;
    context.reporter.update(|r| r.position = replay.position());
    Ok(())
}

/// What tells this restore from every other: who finds it in the target goes on with it. A database keeps 255 characters of it.
fn whose(context: &Context, manifest: &Manifest) -> String {
    let run = &context.settings.identity.run;
    let (sha256, key) = (&manifest.stored_sha256, &manifest.key);
    format!("{run} of the artefact with SHA-256 {sha256}: {key}")
        .chars()
        .take(255)
        .collect()
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

/// The names that the databases will get, of those of which something is restored.
fn names_of(
    manifest: &Manifest,
    databases: &[String],
    database: Option<&str>,
) -> Result<Vec<String>, Failure> {
    match database {
        None => Ok(databases.to_vec()),
        Some("") => Err(Failure::settings("options.restore.database is empty")),
        Some(name) if databases.len() == 1 => Ok(vec![name.to_owned()]),
        Some(_) => Err(Failure::settings(format!(
            "what is to be restored of {} is of {} databases ({}): only one database can be restored under another name",
            manifest.key,
            databases.len(),
            databases.join(", ")
        ))),
    }
}
