//! Verification by restore: a scratch server without network is filled from the artefact, dumped
//! through the same reader, and compared with the manifest that was made from the dump itself. A
//! live database that changed during the dump never makes a good backup look bad, and neither does a
//! scratch server that is older than the source or of another flavour: what it refuses or has
//! otherwise proves nothing, and is told with what would.

use crds::parts::Engine;
use crds::report::Reason;

use crate::context::Context;
use crate::database::contents::{differences, differs};
use crate::database::mysql::dump_reader::Summary;
use crate::database::mysql::load;
use crate::database::mysql::scratch::{Scratch, by_number, counted, mysqld, said, unable};
use crate::database::mysql::scratch_sessions::Dumped;
use crate::database::mysql::source::{Client, Clients, Flavour};
use crate::database::scratch::Area;
use crate::failure::Failure;
use crate::mysql_backup::artefacts;
use crate::mysql_backup::manifest::Manifest;
use crate::settings::{Databases, Source};
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
    restored(context, store, manifest, &area).map(|restored| restored.compared)
}

/// A scratch server that holds what one artefact does.
pub(super) struct Restored {
    scratch: Scratch,
    clients: Clients,
    flavour: Flavour,
    /// The server's version.
    pub(super) here: String,
    /// What was compared.
    compared: String,
}

impl Restored {
    /// How it is reached.
    pub(super) fn source(&self) -> Source {
        self.scratch.source(Databases::All)
    }

    /// What it holds now, read as the dump of `manifest` was; and the tables of which a server makes some values anew at each
    /// load: their rows are counted.
    ///
    /// # Errors
    /// It can't be read.
    pub(super) fn holds(
        &self,
        context: &Context,
        manifest: &Manifest,
    ) -> Result<(Summary, Vec<(String, String)>), Failure> {
        if manifest.engine == Some(Engine::Native) {
            return Ok((self.scratch.sums(context, None)?, vec![]));
        }
        let periods = match self.flavour {
            Flavour::MariaDb => {
                let sql = sql(&self.clients, self.flavour)?;
                self.scratch.periods(context, sql, &manifest.arguments)?
            }
            Flavour::MySql => vec![],
        };
        let client = self.clients.dump(Some(self.flavour))?;
        let summary = self.scratch.dump(context, client, &manifest.arguments)?;
        Ok((summary, periods))
    }
}

fn sql(clients: &Clients, flavour: Flavour) -> Result<&Client, Failure> {
    clients.sql(Some(flavour)).ok_or_else(|| {
        Failure::settings("no SQL client (mariadb, mysql) to load the artefact with")
    })
}

/// Restores `manifest` into a scratch server in `area` and compares.
///
/// # Errors
/// As [`verify`].
pub(super) fn restored(
    context: &Context,
    store: &dyn Store,
    manifest: &Manifest,
    area: &Area,
) -> Result<Restored, Failure> {
    let mysqld = match manifest.flavour() {
        Flavour::MySql => mysqld(context),
        Flavour::MariaDb => None,
    };
    let (scratch, flavour) = match mysqld {
        Some(program) => (
            Scratch::start_mysql(context, area, &program)?,
            Flavour::MySql,
        ),
        None => (Scratch::start(context, area)?, Flavour::MariaDb),
    };
    let mut restored = Restored {
        scratch,
        clients: Clients::find(&context.settings)?,
        flavour,
        here: String::new(),
        compared: String::new(),
    };
    let sql = sql(&restored.clients, flavour)?.clone();
    let sql = &sql;
    restored.scratch.wait(context, sql)?;
    context.reporter.expect(manifest.raw_bytes);
    restored.here = restored.scratch.version(context, sql)?;
    let here = restored.here.clone();
    let unproven = |why: String| {
        Failure::new(
            Reason::NotVerifiable,
            format!(
                "{} is not verified by restore: {why}; {REMEDY}",
                manifest.key
            ),
        )
    };
    let compared = |restored: &Restored| -> Result<String, Failure> {
        let (holds, periods) = restored.holds(context, manifest)?;
        compare(manifest, &holds, &periods)
    };
    let by_sessions = by_sessions(context, store, manifest, (&restored.scratch, sql));
    context.check()?;
    match by_sessions.and_then(|()| compared(&restored).map_err(|e| e.message)) {
        Ok(text) => {
            restored.compared = text;
            return Ok(restored);
        }
        Err(why) => {
            context.check()?;
            tracing::info!(event = "load", by = "client", why);
        }
    }
    let scratch = &restored.scratch;
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
    restored.compared = compared(&restored).map_err(|e| {
        match unable(&manifest.server, &here, "", &manifest.databases) {
            Some(why) => unproven(format!("{why}, and {}", e.message)),
            None => e,
        }
    })?;
    Ok(restored)
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
    let compress = manifest.compress();
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
    let differences = differing(manifest, restored, periods);
    if differences.is_empty() {
        return Ok(format!(
            "restored and compared: {}",
            equal(manifest, periods)
        ));
    }
    Err(differs(&manifest.key, &differences))
}

/// What was compared, where all is equal.
pub(super) fn equal(manifest: &Manifest, periods: &[(String, String)]) -> String {
    let rows: u64 = manifest.tables.iter().map(|t| t.rows).sum();
    format!(
        "{} tables, {rows} rows, all equal{}",
        manifest.tables.len(),
        by_number(periods)
    )
}

/// What a server lacks of a manifest, or has otherwise.
pub(super) fn differing(
    manifest: &Manifest,
    found: &Summary,
    periods: &[(String, String)],
) -> Vec<String> {
    let expected = counted(&manifest.tables, periods);
    let mut differences = differences(&expected, &counted(&found.tables, periods));
    for (what, expected, found) in [
        ("views", manifest.views, found.views),
        ("triggers", manifest.triggers, found.triggers),
        ("routines", manifest.routines, found.routines),
        ("events", manifest.events, found.events),
    ] {
        if expected != found {
            differences.push(format!("{found} {what} instead of {expected}"));
        }
    }
    // Runners before did not count them.
    if found.sequences < manifest.sequences {
        differences.push(format!(
            "{} sequences instead of {}",
            found.sequences, manifest.sequences
        ));
    }
    differences
}
