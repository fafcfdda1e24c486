//! The action Backup: connect, dump, store, read back, publish, prune.

use std::sync::Arc;

use crds::mysql_backup::CompressionType;
use crds::run::Artefact;

use crate::connect;
use crate::failure::Failure;
use crate::manifest::{self, Manifest, ServerIdentity};
use crate::pipeline::{self, Raw, Stored};
use crate::report::Ticker;
use crate::retention;
use crate::run::Context;
use crate::settings::{Databases, Source};
use crate::source::{self, Client, Dump, OptionFile, Server};
use crate::store::{Store, Upload};
use crate::verify;

/// Runs it. What was learned on the way stands in the report.
///
/// # Errors
/// The first thing that went wrong.
pub fn run(context: &Context) -> Result<(), Failure> {
    let settings = &context.settings;
    settings.check()?;
    let source = settings.source()?;
    let store = context.open_store()?;
    let directory = settings.identity.directory();
    store.clean(&directory)?;
    if let Some(done) = stored_before(context, store.as_ref(), &directory)? {
        adopt(context, &done);
        return prune(context, store.as_ref(), &done);
    }
    let connected = connect(context, source)?;
    context.check()?;
    let key = settings.identity.key(
        context.clock.started,
        settings.compression.type_,
        !settings.recipients.is_empty(),
    );
    clear(store.as_ref(), &directory, &key)?;
    let mut upload = store.begin(&key)?;
    if let Some(estimate) = connected.server.as_ref().and_then(|s| s.estimate) {
        upload.expect(expected(estimate, settings.compression.type_));
    }
    let (raw, stored) = dump(context, source, &connected, &store, upload.as_mut())?;
    context.check()?;
    let manifest = match deliver(
        context,
        &connected,
        store.as_ref(),
        upload.as_mut(),
        &key,
        (raw, stored),
    ) {
        Ok(manifest) => manifest,
        Err(e) => twin(context, store.as_ref(), &key, e)?,
    };
    adopt(context, &manifest);
    prune(context, store.as_ref(), &manifest)
}

/// Bytes to expect of an artefact by the server's estimate of its data: uncompressed, text is
/// longer than what it says, binary columns twice as long.
fn expected(estimate: u64, compression: CompressionType) -> u64 {
    match compression {
        CompressionType::None => estimate.saturating_mul(2),
        CompressionType::Zstd | CompressionType::Gzip => estimate,
    }
}

/// Closes the upload, reads it back, and gives it its name and manifest.
fn deliver(
    context: &Context,
    connected: &Connected,
    store: &dyn Store,
    upload: &mut dyn Upload,
    key: &str,
    (raw, stored): (Raw, Stored),
) -> Result<Manifest, Failure> {
    context.reporter.phase("Storing");
    upload.close()?;
    context.check()?;
    context.reporter.phase("ReadingBack");
    let read_back = read_back(context, upload, key, &stored)?;
    context.check()?;
    let manifest = Manifest {
        read_back,
        ..describe(context, connected, key, raw, &stored)
    };
    publish(store, upload, &manifest)?;
    Ok(manifest)
}

/// Removes an artefact of this run's key that has no manifest: its attempt died before it vouched for it.
fn clear(store: &dyn Store, directory: &str, key: &str) -> Result<(), Failure> {
    let entries = store.list(directory)?;
    let has = |key: &str| entries.iter().any(|e| e.key == key);
    if has(key) && !has(&Manifest::key_of(key)) {
        store.remove(key)?;
    }
    Ok(())
}

/// The artefact that another pod of this run completed first, if that is why storing failed: the
/// name was taken, or this attempt's temporary was removed as a dead one's.
fn twin(
    context: &Context,
    store: &dyn Store,
    key: &str,
    failed: Failure,
) -> Result<Manifest, Failure> {
    if failed.exit_code != crds::report::exit::STORE {
        return Err(failed);
    }
    match manifest::read(store, &Manifest::key_of(key)) {
        Ok(Some(other)) if other.is_of_run(&context.settings.identity) => {
            reread(store, &other)?;
            Ok(other)
        }
        _ => Err(failed),
    }
}

/// Reads what was stored back. Where the store has it but gives it to nobody yet (an archive
/// class), its length must do, and the run is never called read back.
fn read_back(
    context: &Context,
    upload: &mut dyn Upload,
    key: &str,
    stored: &Stored,
) -> Result<bool, Failure> {
    match verify::equal(key, upload.measure(), stored) {
        Err(e) if e.reason == "PermissionDenied" && upload.stored_size() == Some(stored.bytes) => {
            context.reporter.warn(&format!(
                "{key} was stored with its full length but could not be read back: {e}"
            ));
            context
                .reporter
                .update(|r| "NotReadBack".clone_into(&mut r.reason));
            Ok(false)
        }
        other => other.map(|()| true),
    }
}

/// A client that fits, and what the server said.
struct Connected {
    client: Client,
    /// Held until the client has read it.
    _options: OptionFile,
    server: Option<Server>,
    args: Vec<String>,
    planned: Vec<String>,
}

fn connect(context: &Context, source: &Source) -> Result<Connected, Failure> {
    let connection = connect::connect(context, source)?;
    let client = connection.dump()?.clone();
    let plan = source::plan(&client, connection.server.as_ref(), source)?;
    for warning in &plan.warnings {
        context.reporter.warn(warning);
    }
    if let Some(server) = &connection.server {
        context.reporter.expect(server.estimate.unwrap_or(0));
    }
    let options = connection.options(context, source, client.flavour)?;
    let mut args = vec![options.argument()];
    args.extend(plan.args.iter().cloned());
    Ok(Connected {
        client,
        _options: options,
        server: connection.server,
        args,
        planned: plan.args,
    })
}

/// Logs in and plans a dump without making it; gives the number of databases.
///
/// # Errors
/// The server refuses, or there is nothing to dump.
pub fn probe(context: &Context, source: &Source) -> Result<usize, Failure> {
    let connected = connect(context, source)?;
    Ok(connected.server.map_or(0, |s| s.databases.len()))
}

fn dump(
    context: &Context,
    source: &Source,
    connected: &Connected,
    store: &Arc<dyn Store>,
    upload: &mut dyn Upload,
) -> Result<(Raw, Stored), Failure> {
    let settings = &context.settings;
    context.reporter.phase("Dumping");
    let beat = Arc::clone(store);
    let _ticker = Ticker::start(Arc::clone(&context.reporter), move || beat.keep_alive());
    let (dump, output) = Dump::start(
        &connected.client,
        &connected.args,
        &context.cancel,
        &context.scrub,
    )?;
    let streamed = pipeline::run(
        output,
        settings.compression,
        &settings.recipients,
        upload,
        &context.reporter.counters,
        &|| dump.terminate(),
    );
    let ended = dump.wait();
    // The store's failure came first: the client only met a closed pipe.
    let (raw, stored) = streamed?;
    let ended = ended?;
    let name = connected.client.name();
    if !ended.good() {
        return Err(source::explain(&name, &ended, source));
    }
    if !raw.summary.footer {
        return Err(Failure::source(
            "IncompleteDump",
            format!(
                "{name} ended with status 0 but the dump of {} bytes does not end with its line \"-- Dump completed\": it is not kept; run again",
                raw.bytes
            ),
        ));
    }
    if raw.summary.databases.is_empty() {
        return Err(Failure::source(
            "NoDatabases",
            "the dump holds no database: check what the user may see",
        ));
    }
    if let Databases::Listed(names) = &source.databases
        && let Some(missing) = names.iter().find(|n| !has(&raw.summary.databases, n))
    {
        return Err(Failure::source(
            "IncompleteDump",
            format!("the dump does not hold database {missing:?}: it is not kept"),
        ));
    }
    for message in ended
        .messages
        .iter()
        .filter(|m| m.to_lowercase().contains("error"))
    {
        context
            .reporter
            .warn(&format!("{name} ended well but said: {message}"));
    }
    Ok((raw, stored))
}

/// Servers may fold the case of names.
fn has(databases: &[String], name: &str) -> bool {
    databases.iter().any(|d| d.eq_ignore_ascii_case(name))
}

fn describe(
    context: &Context,
    connected: &Connected,
    key: &str,
    raw: Raw,
    stored: &Stored,
) -> Manifest {
    let settings = &context.settings;
    let identity = &settings.identity;
    let server = connected.server.as_ref();
    let version = server.map_or("", |s| s.variable("version")).to_owned();
    Manifest {
        schema: manifest::SCHEMA.to_owned(),
        runner_version: crds::VERSION.to_owned(),
        cluster_id: identity.cluster_id.clone(),
        object: identity.object.clone(),
        run: identity.run.clone(),
        slot: identity.slot.map(crds::time::rfc3339),
        trigger: identity.trigger.as_str().to_owned(),
        started_at: crds::time::rfc3339(context.clock.started),
        ended_at: crds::time::rfc3339(context.clock.now()),
        key: key.to_owned(),
        compression: settings.compression.type_,
        encryption: if settings.recipients.is_empty() {
            ""
        } else {
            "age"
        }
        .to_owned(),
        recipients: settings.recipients.clone(),
        raw_bytes: raw.bytes,
        raw_sha256: raw.sha256,
        stored_bytes: stored.bytes,
        stored_sha256: stored.sha256.clone(),
        read_back: true,
        server: if version.is_empty() {
            raw.summary.server_version
        } else {
            version
        },
        server_identity: connected
            .server
            .as_ref()
            .map(ServerIdentity::of)
            .unwrap_or_default(),
        client: connected.client.version.clone(),
        arguments: connected.planned.clone(),
        position: raw.summary.position,
        databases: raw.summary.databases,
        tables: raw.summary.tables,
        views: raw.summary.views,
        triggers: raw.summary.triggers,
        routines: raw.summary.routines,
        events: raw.summary.events,
        warnings: context.reporter.snapshot().warnings,
    }
}

/// Gives the artefact its name, then writes its manifest: only both together count.
fn publish(store: &dyn Store, upload: &mut dyn Upload, manifest: &Manifest) -> Result<(), Failure> {
    let key = &manifest.key;
    if !upload.publish()? {
        if let Some(other) = manifest::read(store, &Manifest::key_of(key))? {
            return Err(Failure::store(
                "AlreadyExists",
                format!(
                    "{key} exists and belongs to run {:?}: it is left alone; run again",
                    other.run
                ),
            ));
        }
        // Its run died between name and manifest: nothing vouches for it.
        store.remove(key)?;
        if !upload.publish()? {
            return Err(Failure::store(
                "AlreadyExists",
                format!("{key} was made by another run meanwhile: run again"),
            ));
        }
    }
    let text = serde_json::to_vec(manifest).map_err(|e| {
        Failure::other(
            "ManifestFailed",
            format!("the manifest can't be written: {e}"),
        )
    })?;
    store.put(&Manifest::key_of(key), &text).inspect_err(|_| {
        let _ = store.remove(key);
    })
}

fn reread(store: &dyn Store, manifest: &Manifest) -> Result<(), Failure> {
    let stored = Stored {
        bytes: manifest.stored_bytes,
        sha256: manifest.stored_sha256.clone(),
    };
    let reader = store.open(&manifest.key)?.ok_or_else(|| {
        Failure::store(
            "NotReadBack",
            format!("{} is gone from the store", manifest.key),
        )
    })?;
    verify::compare(&manifest.key, reader, &stored)
}

/// The artefact an earlier attempt of this run stored, if it reads back.
fn stored_before(
    context: &Context,
    store: &dyn Store,
    directory: &str,
) -> Result<Option<Manifest>, Failure> {
    let identity = &context.settings.identity;
    if identity.object.uid.is_empty() {
        return Ok(None);
    }
    let suffix = format!("-{}.sql", identity.suffix(context.clock.started));
    for entry in store.list(directory)? {
        if !entry.key.contains(&suffix) || Manifest::artefact_of(&entry.key).is_none() {
            continue;
        }
        let Some(found) = manifest::read(store, &entry.key)? else {
            continue;
        };
        if found.is_of_run(identity) && reread(store, &found).is_ok() {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Takes what the manifest says into the report.
fn adopt(context: &Context, manifest: &Manifest) {
    let number = |n: u64| Some(i64::try_from(n).unwrap_or(i64::MAX));
    context.reporter.update(|r| {
        r.raw_bytes = number(manifest.raw_bytes);
        r.raw_sha256.clone_from(&manifest.raw_sha256);
        r.stored_bytes = number(manifest.stored_bytes);
        r.tables = number(manifest.tables.len() as u64);
        r.rows = number(manifest.tables.iter().map(|t| t.rows).sum());
        r.position.clone_from(&manifest.position);
        r.artefacts = vec![Artefact {
            key: manifest.key.clone(),
            size: i64::try_from(manifest.stored_bytes).unwrap_or(i64::MAX),
            sha256: manifest.stored_sha256.clone(),
            read_back: manifest.read_back,
            storage: None,
        }];
    });
}

/// Applies retention. The new artefact is good whatever happens here: trouble is a warning.
fn prune(context: &Context, store: &dyn Store, newest: &Manifest) -> Result<(), Failure> {
    let Some(rules) = &context.settings.retention else {
        return Ok(());
    };
    context.reporter.phase("Pruning");
    match retention::apply(context, store, rules, newest) {
        Ok(pruned) => context.reporter.update(|r| r.pruned = Some(pruned)),
        Err(e) => context
            .reporter
            .warn(&format!("retention was not applied: {e}")),
    }
    Ok(())
}
