//! The action Backup: connect, dump, store, read back, publish, prune.
//!
//! Two pods may be at one run, each of them frozen at any moment for as long as it likes. What keeps
//! them apart: an attempt writes and removes keys alone that are its own ([`Claim`]); a manifest,
//! written where none is, makes an artefact count, and from then on no attempt removes either; who
//! finds the run's artefact vouched for by another takes that one, once it has read it back.

use crds::report::Reason;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crds::parts::{CompressionType, Engine};
use crds::run::Artefact;

use crate::artefact;
use crate::clock::duration;
use crate::context::Context;
use crate::database::mysql::connect::{self, Connection};
use crate::database::mysql::dump_reader::{DumpReader, Summary};
use crate::database::mysql::native::{self, Choice, NativeDump};
use crate::database::mysql::source::{self, Asked, Client, DumpPlan, OptionFile, Server};
use crate::database::remarks::remarks;
use crate::failure::Failure;
use crate::mysql_backup::binlogs;
use crate::mysql_backup::manifest::{self, Manifest};
use crate::mysql_backup::stored::StoredDumps;
use crate::report::Ticker;
use crate::settings::{self, Identity, Source};
use crate::store::leftovers::{self, Place};
use crate::store::{ARCHIVED, Attempt, Claim, Note, Store, Upload, read_back, warn_of_condition};
use crate::stream::checksum::{self, Meter, Stored};
use crate::stream::pipeline::{self, Output, Raw};

/// A pause of the store from which on it is to blame that the server hung up.
const STORE_PAUSED: Duration = Duration::from_secs(30);

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
    clean(context, store.as_ref(), false)?;
    if let Some(done) = stored_before(context, store.as_ref(), &directory)? {
        adopt(context, &done);
        prune(context, store, &done);
        return Ok(());
    }
    let (connected, dumper) = connect(context, source, false)?;
    context.check()?;
    let (key, claim) = claim_key(context, &store, &directory)?;
    let claim = Arc::new(claim);
    let ticker = {
        let (store, claim) = (Arc::clone(&store), Arc::clone(&claim));
        Ticker::start(Arc::clone(&context.reporter), move || {
            store.keep_alive();
            claim.renew();
        })
    };
    let mut upload = store.begin(&key)?;
    if let Some(estimate) = connected.server().estimate {
        upload.expect(expected(estimate, settings.compression.type_));
    }
    let dumped = dump(context, source, &connected, dumper, upload.as_mut())?;
    context.check()?;
    let delivered = deliver(
        context,
        &connected,
        store.as_ref(),
        (upload.as_mut(), &claim),
        &key,
        dumped,
    );
    let manifest = match delivered {
        Ok(manifest) => manifest,
        Err(e) => other_attempt(context, store.as_ref(), e)?,
    };
    adopt(context, &manifest);
    // In this order: what was not published goes before the claim on it.
    drop(upload);
    drop(ticker);
    drop(claim);
    prune(context, store, &manifest);
    Ok(())
}

/// Removes what dead attempts left in the object's directory; with `all` whatever was left there.
/// Gives the number.
///
/// # Errors
/// The store refuses.
pub fn clean(context: &Context, store: &dyn Store, all: bool) -> Result<u64, Failure> {
    let identity = &context.settings.identity;
    let place = Directory {
        context,
        identity,
        path: identity.directory(),
        all,
    };
    let removed = leftovers::clean(
        store,
        (&context.attempt(), context.clock.elapsed()),
        &place,
        all,
    )?;
    if !all && !removed.manifests.is_empty() {
        context.reporter.warn(&format!(
            "{} without their artefacts were removed, as a prune that was ended half-way leaves them: {}",
            removed.manifests.len(),
            removed.manifests.join(", ")
        ));
    }
    Ok(removed.count())
}

/// An object's directory: all in it is the object's own.
struct Directory<'a> {
    context: &'a Context,
    identity: &'a Identity,
    path: String,
    all: bool,
}

impl Place for Directory<'_> {
    fn directory(&self) -> &str {
        &self.path
    }

    fn is_artefact(&self, key: &str) -> bool {
        // What has no manifest is the user's where retention is told to take such over.
        let rules = self.context.settings.retention.as_ref();
        let adopts = rules.is_some_and(|r| r.adopt_pattern.is_some());
        (self.all || !adopts) && self.is_upload(key)
    }

    fn is_upload(&self, key: &str) -> bool {
        self.directory_of(key) && settings::is_artefact(key.rsplit('/').next().unwrap_or(key))
    }

    fn is_of_run(&self, key: &str) -> bool {
        self.directory_of(key) && self.identity.is_of_run(key, self.context.clock.started)
    }

    fn is_own(&self, _note: &Note) -> bool {
        true
    }

    fn prunes(&self) -> bool {
        self.context.settings.retention.is_some()
    }

    fn is_alone(&self) -> bool {
        true
    }

    fn manifest_of(&self, key: &str) -> String {
        Manifest::key_of(key)
    }

    fn lone_manifests(&self, store: &dyn Store) -> Result<Vec<String>, Failure> {
        let entries = store.list(&self.path)?;
        let mut lone = vec![];
        for entry in &entries {
            let Some(artefact) = Manifest::artefact_of(&entry.key) else {
                continue;
            };
            if entries.iter().any(|e| e.key == artefact) {
                continue;
            }
            let own = manifest::read(store, &entry.key)?
                .is_some_and(|m| m.key == artefact && m.belongs_to(self.identity));
            if own && store.open(artefact)?.is_none() {
                lone.push(entry.key.clone());
            }
        }
        Ok(lone)
    }
}

impl Directory<'_> {
    fn directory_of(&self, key: &str) -> bool {
        key.strip_prefix(&self.path)
            .and_then(|rest| rest.strip_prefix('/'))
            .is_some_and(|name| !name.contains('/'))
    }
}

/// The key this attempt writes to, and its claim on it: the usual one, where no other attempt may be
/// at it, or else one that no other can have.
fn claim_key(
    context: &Context,
    store: &Arc<dyn Store>,
    directory: &str,
) -> Result<(String, Claim), Failure> {
    let settings = &context.settings;
    let identity = &settings.identity;
    let usual = identity.key(
        context.clock.started,
        settings.compression.type_,
        !settings.recipients.is_empty(),
    );
    let note = Note {
        object: identity.object.clone(),
        run: identity.run.clone(),
        key: usual.clone(),
        manifest: Manifest::key_of(&usual),
        split: false,
        token: String::new(),
    };
    let claim = Claim::take(store, &context.attempt(), directory, note, false)?;
    warn_of_condition(&context.reporter, store.as_ref(), claim.condition());
    let manifest = Manifest::key_of(&usual);
    let taken = store
        .list(directory)?
        .iter()
        .any(|e| e.key == usual || e.key == manifest);
    if !taken && !claim.contended() {
        return Ok((usual, claim));
    }
    let key = own_key(&usual, &context.attempt());
    claim.turn_to(&key, &Manifest::key_of(&key))?;
    Ok((key, claim))
}

/// A key that no other attempt has.
fn own_key(usual: &str, attempt: &Attempt) -> String {
    let tag = crds::names::short_hash(&[&attempt.pod, &attempt.nonce], 8);
    settings::apart(usual, &tag)
}

/// Bytes to expect of an artefact by the server's estimate of its data: uncompressed, text is
/// longer than what it says, binary columns twice as long.
fn expected(estimate: u64, compression: CompressionType) -> u64 {
    match compression {
        CompressionType::None => estimate.saturating_mul(2),
        CompressionType::Zstd | CompressionType::Gzip => estimate,
    }
}

/// Closes the upload, reads it back, and gives it its name and manifest; or gives what another
/// attempt of the run has vouched for meanwhile.
fn deliver(
    context: &Context,
    connected: &Connected,
    store: &dyn Store,
    (upload, claim): (&mut dyn Upload, &Claim),
    key: &str,
    dumped: Dumped,
) -> Result<Manifest, Failure> {
    context.reporter.phase("Storing");
    upload.close()?;
    context.check()?;
    context.reporter.phase("ReadingBack");
    let read_back = read_back(&context.reporter, upload, key, &dumped.stored)?;
    context.check()?;
    let directory = context.settings.identity.directory();
    if let Some(other) = stored_before(context, store, &directory)? {
        return Ok(other);
    }
    let mut manifest = Manifest {
        read_back,
        ..describe(context, connected, key, dumped)
    };
    claim.check()?;
    publish(context, upload, &mut manifest)?;
    vouch(store, claim, &directory, &manifest)?;
    Ok(manifest)
}

/// The artefact that another attempt of this run completed, if that is why storing failed.
fn other_attempt(
    context: &Context,
    store: &dyn Store,
    failed: Failure,
) -> Result<Manifest, Failure> {
    if failed.exit_code != crds::report::exit::STORE {
        return Err(failed);
    }
    match stored_before(context, store, &context.settings.identity.directory()) {
        Ok(Some(other)) => Ok(other),
        _ => Err(failed),
    }
}

/// What the server said, and what is to be dumped.
struct Connected {
    connection: Connection,
    plan: DumpPlan,
    /// Why it is the client that dumps; empty if it is not.
    why: String,
}

impl Connected {
    fn server(&self) -> &Server {
        &self.connection.server
    }
}

/// Who dumps.
enum Dumper<'a> {
    /// A client of the server's makers.
    Client {
        client: Client,
        /// Held until the client has read it.
        options: OptionFile,
    },
    /// The runner itself.
    Native(Box<NativeDump<'a>>),
}

/// What a dump became.
struct Dumped {
    raw: Raw<Summary>,
    stored: Stored,
    /// What made it: a client's version, or the native engine's.
    client: String,
    /// Of the native engine.
    native: Option<NativePart>,
}

/// What the manifest says of a dump of the native engine alone.
struct NativePart {
    snapshot: String,
    frames: String,
}

fn connect<'a>(
    context: &'a Context,
    source: &'a Source,
    probe: bool,
) -> Result<(Connected, Dumper<'a>), Failure> {
    let connection = connect::connect(context, source)?;
    let estimate = connection.server.estimate;
    context.reporter.expect(estimate.unwrap_or(0));
    let mut options = native::options(source);
    options.compress = native::compress(context.settings.compression);
    if probe {
        // Nothing is read: no table need be locked for several to see the same.
        options.sessions = 1;
    }
    let why = match native::choose(context, source, options)? {
        Choice::Native(native) => {
            let plan = source::plan_native(&connection.server, source)?;
            for warning in plan.warnings.iter().chain(&native.warnings()) {
                context.reporter.warn(warning);
            }
            context.reporter.update(|r| {
                Engine::Native.as_str().clone_into(&mut r.engine);
                r.snapshot = native.snapshot();
                r.snapshot_at = native.moment();
                let version = connection.server.variable("version");
                r.server = format!("{version}, {}", native::version());
            });
            let connected = Connected {
                connection,
                plan,
                why: String::new(),
            };
            return Ok((connected, Dumper::Native(native)));
        }
        Choice::Client(why) => why,
    };
    context.reporter.update(|r| {
        Engine::Client.as_str().clone_into(&mut r.engine);
        r.engine_reason.clone_from(&why);
    });
    let client = connection.dump()?.clone();
    context
        .reporter
        .update(|r| r.server = format!("{}, client {}", r.server, client.version));
    let plan = source::plan(&client, &connection.server, source)?;
    for warning in &plan.warnings {
        context.reporter.warn(warning);
    }
    let options = connection.options(context, source, client.flavour)?;
    let connected = Connected {
        connection,
        plan,
        why,
    };
    Ok((connected, Dumper::Client { client, options }))
}

/// Logs in and plans a dump without making it; gives the number of databases.
///
/// # Errors
/// The server refuses, or there is nothing to dump.
pub fn probe(context: &Context, source: &Source) -> Result<usize, Failure> {
    let (connected, _) = connect(context, source, true)?;
    Ok(connected.server().databases.len())
}

fn dump(
    context: &Context,
    source: &Source,
    connected: &Connected,
    dumper: Dumper<'_>,
    upload: &mut dyn Upload,
) -> Result<Dumped, Failure> {
    context.reporter.phase("Dumping");
    let dumped = match dumper {
        Dumper::Client { client, options } => {
            by_client(context, source, connected, (client, options), upload)?
        }
        Dumper::Native(native) => by_us(context, *native, upload)?,
    };
    let asked = Asked {
        source,
        plan: &connected.plan,
        server: connected.server(),
        bare: None,
        tables: &[],
    };
    source::check(
        &dumped.client,
        dumped.raw.bytes,
        &dumped.raw.seen,
        &asked,
        |tables| source::still_there(source, tables, context),
    )?;
    Ok(dumped)
}

fn by_client(
    context: &Context,
    source: &Source,
    connected: &Connected,
    (client, options): (Client, OptionFile),
    upload: &mut dyn Upload,
) -> Result<Dumped, Failure> {
    let settings = &context.settings;
    let mut args = vec![options.argument()];
    args.extend(connected.plan.args.iter().cloned());
    let program = client.program(&args);
    let mut dump = program.start(context, false)?;
    let output = dump.source()?;
    let streamed = pipeline::run(
        output,
        DumpReader::default(),
        settings.compression,
        &settings.recipients,
        &mut |bytes| upload.write(bytes),
        &context.reporter.counters,
        &|| dump.terminate(),
    );
    let ended = dump.wait();
    // The store's failure came first: the client only met a closed pipe.
    let (raw, stored) = streamed?;
    let ended = ended?;
    let name = client.name();
    if !ended.good() {
        let failure = source::explain(&name, &ended, source);
        let place = context.store.get().map(|s| s.describe());
        let waited = context.reporter.counters.store_wait.get();
        return Err(blame(failure, waited, &place.unwrap_or_default()));
    }
    for remark in remarks(&name, &ended) {
        context.reporter.warn(&remark);
    }
    Ok(Dumped {
        raw,
        stored,
        client: client.version,
        native: None,
    })
}

/// By the native engine.
fn by_us(
    context: &Context,
    native: NativeDump<'_>,
    upload: &mut dyn Upload,
) -> Result<Dumped, Failure> {
    let counters = &context.reporter.counters;
    let snapshot = native.snapshot();
    let mut write = |bytes: &[u8]| upload.write(bytes);
    let output = Output::new(&context.settings.recipients, &mut write, counters)
        .map_err(pipeline::encoding)?;
    let mut meter = Meter::default();
    let written = native.write(output, &mut |text| {
        meter.add(text);
        counters.raw.store(meter.bytes(), Ordering::Relaxed);
    });
    let (output, made, seen) = written.map_err(|failure| {
        let place = context.store.get().map(|s| s.describe());
        blame(
            failure,
            counters.store_wait.get(),
            &place.unwrap_or_default(),
        )
    })?;
    let stored = output.finish().map_err(pipeline::encoding)?;
    let text = meter.finish();
    Ok(Dumped {
        raw: Raw {
            bytes: text.bytes,
            sha256: text.sha256,
            seen,
        },
        stored,
        client: native::version(),
        native: Some(NativePart {
            snapshot,
            frames: made.frames.to_text().map_err(pipeline::encoding)?,
        }),
    })
}

/// A server hangs up on a client that takes nothing for a while; where the store made it wait, the store
/// is named.
fn blame(failure: Failure, waited: Duration, place: &str) -> Failure {
    if failure.reason != Reason::ConnectionLost || waited < STORE_PAUSED {
        return failure;
    }
    Failure::new(
        Reason::StoreStalled,
        format!(
            "{place} took nothing for {}, and the database server hung up meanwhile: look at the store's health and the way to it; net_write_timeout of the server says how long it waits; {}",
            duration(waited),
            failure.message
        ),
    )
}

fn describe(context: &Context, connected: &Connected, key: &str, dumped: Dumped) -> Manifest {
    let Dumped {
        raw,
        stored,
        client,
        native,
    } = dumped;
    let (engine, snapshot, frames) = match native {
        Some(part) => (Engine::Native, part.snapshot, part.frames),
        None => (Engine::Client, String::new(), String::new()),
    };
    let settings = &context.settings;
    let identity = &settings.identity;
    let server = connected.server();
    let version = server.variable("version").to_owned();
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
        stored_sha256: stored.sha256,
        read_back: true,
        server: if version.is_empty() {
            raw.seen.server_version
        } else {
            version
        },
        server_identity: server.identity(),
        client,
        engine: Some(engine),
        engine_reason: connected.why.clone(),
        snapshot,
        frames,
        arguments: connected.plan.args.clone(),
        partial: connected.plan.partial.clone(),
        position: raw.seen.position,
        databases: raw.seen.databases,
        tables: raw.seen.tables,
        views: raw.seen.views,
        triggers: raw.seen.triggers,
        routines: raw.seen.routines,
        events: raw.seen.events,
        sequences: raw.seen.sequences,
        warnings: context.reporter.snapshot().warnings,
    }
}

/// Gives the artefact its name: the one it was begun with or, where another has that, one that no
/// other can have.
fn publish(
    context: &Context,
    upload: &mut dyn Upload,
    manifest: &mut Manifest,
) -> Result<(), Failure> {
    if upload.publish()? {
        return Ok(());
    }
    let key = own_key(&manifest.key, &context.attempt());
    let name = key.rsplit('/').next().unwrap_or(&key);
    if upload.rename(name) && upload.publish()? {
        manifest.key = key;
        return Ok(());
    }
    Err(Failure::new(
        Reason::AlreadyExists,
        format!(
            "{} was made by another run meanwhile: it is left alone; run again",
            manifest.key
        ),
    ))
}

/// Writes the manifest of what was published, and looks once more: only both together count. What
/// can't be vouched for is removed again.
fn vouch(
    store: &dyn Store,
    claim: &Claim,
    directory: &str,
    manifest: &Manifest,
) -> Result<(), Failure> {
    let key = &manifest.key;
    if let Err(e) = manifest::write(store, manifest) {
        if e.reason != Reason::AlreadyExists {
            let _ = store.remove(&Manifest::key_of(key));
        }
        let _ = store.remove(key);
        return Err(e);
    }
    let stands = store.list(directory).map(|entries| {
        entries
            .iter()
            .any(|e| e.key == *key && e.size == manifest.stored_bytes)
    });
    if let Ok(false) = stands {
        let _ = store.remove(&Manifest::key_of(key));
        return Err(Failure::new(
            Reason::ReadBackDiffers,
            format!(
                "{key} is not there any more as it was read back: something else writes to {}; run again",
                store.describe()
            ),
        ));
    }
    claim.check().inspect_err(|_| {
        let _ = store.remove(&Manifest::key_of(key));
        let _ = store.remove(key);
    })
}

/// The artefact of a manifest is what it says. Of one in an archive class, which nobody can read, its
/// length is all that can be compared; that it was never read back stands in its manifest.
fn reread(store: &dyn Store, manifest: &Manifest, length: u64) -> Result<(), Failure> {
    let stored = Stored {
        bytes: manifest.stored_bytes,
        sha256: manifest.stored_sha256.clone(),
    };
    let gone = || {
        Failure::new(
            Reason::NotReadBack,
            format!("{} is gone from the store", manifest.key),
        )
    };
    let compared = store
        .open(&manifest.key)
        .and_then(|found| found.ok_or_else(gone))
        .and_then(|reader| checksum::compare(&manifest.key, reader, &stored));
    match compared {
        Err(e) if e.reason == ARCHIVED && !manifest.read_back && length == stored.bytes => Ok(()),
        other => other,
    }
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
    let entries = store.list(directory)?;
    for entry in &entries {
        let Some(artefact) = Manifest::artefact_of(&entry.key) else {
            continue;
        };
        let length = entries.iter().find(|e| e.key == artefact).map(|e| e.size);
        let Some(length) = length.filter(|_| identity.is_of_run(artefact, context.clock.started))
        else {
            continue;
        };
        let Some(found) = manifest::read(store, &entry.key)? else {
            continue;
        };
        if found.key == artefact
            && found.is_of_run(identity)
            && reread(store, &found, length).is_ok()
        {
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
        if !manifest.read_back {
            Reason::NotReadBack.as_str().clone_into(&mut r.reason);
        }
    });
}

/// Applies retention.
fn prune(context: &Context, store: Arc<dyn Store>, newest: &Manifest) {
    context.reporter.complete();
    if context.settings.retention.is_some() {
        context.reporter.phase("Pruning");
    }
    let place = StoredDumps { context, store };
    artefact::after_run(&place, &newest.key, newest.read_back);
    if context.settings.retention.is_some() && newest.read_back {
        binlogs::retain(&place);
    }
}
