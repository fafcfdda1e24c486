//! Verification by restore: a scratch server without network is filled from the artefact, dumped
//! through the same reader, and compared with the manifest that was made from the dump itself. A
//! live database that changed during the dump never makes a good backup look bad, and neither does a
//! scratch server that is older than the source or of another flavour: what it refuses or has
//! otherwise proves nothing, and is told with what would.

use crds::parts::{Compression, Engine};
use crds::report::Reason;

use crate::context::Context;
use crate::database::contents::{differences, differs};
use crate::database::mysql::dump_reader::Summary;
use crate::database::mysql::load;
use crate::database::mysql::native;
use crate::database::mysql::scratch::{Scratch, by_number, counted, said, unable};
use crate::database::mysql::scratch_sessions::Dumped;
use crate::database::mysql::source::{Client, Clients, Flavour};
use crate::database::scratch::Area;
use crate::failure::Failure;
use crate::mysql_backup::artefacts;
use crate::mysql_backup::manifest::Manifest;
use crate::store::Store;

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
    let area = Area::new(context, "spec.verify.volume")?;
    let mut scratch = Scratch::start(context, &area)?;
    let clients = Clients::find(&context.settings)?;
    let flavour = Some(Flavour::MariaDb);
    let sql = clients.sql(flavour).ok_or_else(|| {
        Failure::settings("no SQL client (mariadb, mysql) to load the artefact with")
    })?;
    scratch.wait(context, sql)?;
    context.reporter.expect(manifest.raw_bytes);
    let here = scratch.version(context, sql)?;
    let unproven = |why: String| {
        Failure::new(
            Reason::NotVerifiable,
            format!(
                "{} is not verified by restore: {why}; {REMEDY}",
                manifest.key
            ),
        )
    };
    let native = manifest.engine == Some(Engine::Native);
    let compared = || -> Result<String, Failure> {
        let (periods, restored) = if native {
            (vec![], scratch.sums(context, None)?)
        } else {
            let periods = scratch.periods(context, sql, &manifest.arguments)?;
            let client = clients.dump(flavour)?;
            (periods, scratch.dump(context, client, &manifest.arguments)?)
        };
        compare(manifest, &restored, &periods)
    };
    let by_sessions = by_sessions(context, store, manifest, (&scratch, sql));
    context.check()?;
    match by_sessions.and_then(|()| compared().map_err(|e| e.message)) {
        Ok(text) => return Ok(text),
        Err(why) => {
            context.check()?;
            tracing::info!(event = "load", by = "client", why);
        }
    }
    scratch.forget(context, sql, &manifest.databases)?;
    let mut args = scratch.arguments();
    args.extend(load::arguments(sql));
    let loaded = scratch.load(context, sql, &args, &manifest.accounts()?, || {
        artefacts::open(context, store, manifest).map_err(|e| match e.reason {
            // The stored bytes were compared just now: it is the key that does not fit them.
            Reason::NotDecryptable => unproven(e.message),
            _ => e,
        })
    })?;
    if !loaded.ended.good() {
        let said = said(&loaded.ended);
        return Err(
            match unable(&manifest.server, &here, &said, &manifest.databases) {
                Some(why) => unproven(format!("{why}: {} said: {said}", sql.name())),
                None => Failure::new(
                    Reason::NotRestorable,
                    format!(
                        "{} does not load into a scratch server: {} ended with {} and said: {said}",
                        manifest.key,
                        sql.name(),
                        loaded.ended.status_text(),
                    ),
                ),
            },
        );
    }
    if loaded.sha256 != manifest.raw_sha256 {
        return Err(Failure::new(
            Reason::Damaged,
            format!(
                "the dump in {} has another SHA-256 than its manifest says",
                manifest.key
            ),
        ));
    }
    compared().map_err(
        |e| match unable(&manifest.server, &here, "", &manifest.databases) {
            Some(why) => unproven(format!("{why}, and {}", e.message)),
            None => e,
        },
    )
}

/// Loads it as a Restore does.
///
/// # Errors
/// Why it is not there: then the client says what it is.
fn by_sessions(
    context: &Context,
    store: &dyn Store,
    manifest: &Manifest,
    (scratch, sql): (&Scratch, &Client),
) -> Result<(), String> {
    let frames = manifest.frames().map_err(|e| e.message)?;
    let stored = || artefacts::stored(store, manifest);
    let bytes = || artefacts::decrypted(context, manifest, stored()?);
    let text = || artefacts::open(context, store, manifest);
    let compress = native::compress(Compression {
        type_: manifest.compression,
        level: None,
    });
    let dump = match &frames {
        Some(frames) => Dumped::Frames(frames, compress, &bytes),
        None if manifest.engine == Some(Engine::Native) => {
            return Err("it has no frames".to_owned());
        }
        None => Dumped::Text(None, &text),
    };
    scratch.load_by_sessions(context, sql, &dump)
}

/// What helps where this scratch server can't show it.
const REMEDY: &str = "use a runner's image with the server of that MariaDB version or a later one (BACKUP_RUNNER_IMAGE of the operator), or set spec.verify.mode Checksum";

/// Compares what was restored with the manifest; names the first tables that differ. Of the tables in
/// `periods` a server makes some values anew at each load: their rows are counted.
fn compare(
    manifest: &Manifest,
    restored: &Summary,
    periods: &[(String, String)],
) -> Result<String, Failure> {
    let expected = counted(&manifest.tables, periods);
    let mut differences = differences(&expected, &counted(&restored.tables, periods));
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
    // Runners before did not count them.
    if restored.sequences < manifest.sequences {
        differences.push(format!(
            "{} sequences instead of {}",
            restored.sequences, manifest.sequences
        ));
    }
    if differences.is_empty() {
        let rows: u64 = manifest.tables.iter().map(|t| t.rows).sum();
        return Ok(format!(
            "restored and compared: {} tables, {rows} rows, all equal{}",
            manifest.tables.len(),
            by_number(periods)
        ));
    }
    Err(differs(&manifest.key, &differences))
}
