//! Verification by replay: the backup before is restored into a scratch server without network and compared, the stored binary
//! logs are replayed onto it up to the very transaction behind which the backup in question was made, and what is there then is
//! compared with that one's manifest, table by table. The database itself is not asked: both sides are what was stored.

use crds::report::{Reason, exit};

use crate::artefact::{self, Artefacts, Origin, Replayed};
use crate::context::Context;
use crate::database::mysql::decoder;
use crate::database::mysql::scratch::{mysqld, unable};
use crate::database::mysql::source::{self, Flavour};
use crate::database::mysql::target::Target;
use crate::database::scratch::Area;
use crate::failure::Failure;
use crate::mysql_backup::manifest::Manifest;
use crate::mysql_backup::replay::{Replay, between};
use crate::mysql_backup::restore_check::{Restored, differing, equal, restored};
use crate::mysql_backup::stored::StoredDumps;

/// So many backups before are tried.
const BACKUPS: usize = 3;
/// Errors about accounts: a log changes those of its server, and a backup need not have them (MySQL and MariaDB: cannot user,
/// no such grant, no such user, no such role).
const OF_ACCOUNTS: [u32; 9] = [1133, 1141, 1147, 1269, 1396, 1403, 1959, 3523, 3530];

/// Replays up to `manifest` and compares.
///
/// # Errors
/// What is stored is altered, the backup before does not restore, or what the replay gives differs from the manifest.
pub(super) fn verify(place: &StoredDumps<'_>, manifest: &Manifest) -> Result<Replayed, Failure> {
    let context = place.context;
    context.reporter.phase("Verifying");
    let replay = match before(place, manifest)? {
        Ok(replay) => replay,
        Err(why) => return Ok(Replayed::No(why)),
    };
    if let Some(why) = lacking(context, manifest.flavour()) {
        return Ok(Replayed::No(why));
    }
    let area = Area::new(context, "spec.verify.volume")?;
    let earlier = &replay.manifest;
    let server = match restored(context, place.store.as_ref(), earlier, &area) {
        Ok(server) => server,
        Err(e) if e.reason == Reason::NotVerifiable => return Ok(Replayed::No(e.message)),
        Err(e) => {
            return Err(Failure {
                message: format!("{}, and binary logs are replayed onto it", e.message),
                ..e
            });
        }
    };
    context.reporter.phase("Replaying");
    if let Err(e) = onto(place, &server, &replay) {
        context.check()?;
        return refused(e, &server, manifest, earlier);
    }
    context.reporter.phase("Comparing");
    let (holds, periods) = server.holds(context, manifest)?;
    let mut all = differing(manifest, &holds, &periods);
    // What the log drops must be gone.
    let known = |d: &str, t: &str| {
        let mut tables = manifest.tables.iter();
        tables.any(|table| table.database == d && table.name == t)
    };
    let beyond = holds.tables.iter().filter(|t| !known(&t.database, &t.name));
    all.extend(beyond.map(|t| format!("table {}.{} is there", t.database, t.name)));
    if all.is_empty() {
        return Ok(Replayed::Equal(format!(
            "{} and {} transactions of its binary logs give {}: {}",
            earlier.key,
            replay.transactions(),
            manifest.key,
            equal(manifest, &periods)
        )));
    }
    if let Some(why) = unable(&manifest.server, &server.here, "", &manifest.databases) {
        return Ok(Replayed::No(format!("{why}, and {}", some(&all))));
    }
    Err(Failure::new(
        Reason::ReplayDiffers,
        format!(
            "{} and the {} transactions of its binary logs up to {} do not give what the latter holds: {}",
            earlier.key,
            replay.transactions(),
            manifest.key,
            some(&all)
        ),
    ))
}

/// What leads from the newest sound backup before it; or why nothing does.
fn before(place: &StoredDumps<'_>, manifest: &Manifest) -> Result<Result<Replay, String>, Failure> {
    let context = place.context;
    let store = place.store.as_ref();
    let (all, _) = artefact::known(context, store, place.records(), Origin::Own)?;
    let earlier = all.iter().rev().filter(|known| {
        known.is_sound()
            && known.facts.key != manifest.key
            && known.facts.started_at < manifest.started_at
    });
    let mut first = None;
    for known in earlier.take(BACKUPS) {
        context.check()?;
        let Some(read) = place.read(known)? else {
            continue;
        };
        // What may be another cluster's is none of its history.
        let of = |m: &Manifest| (m.cluster_id.clone(), m.object.uid.clone(), m.flavour());
        if of(&read) != of(manifest) {
            continue;
        }
        match between(context, place, read, manifest)? {
            Ok(replay) => return Ok(Ok(replay)),
            Err((why, older)) => {
                first.get_or_insert(why);
                if !older {
                    break;
                }
            }
        }
    }
    Ok(Err(first.unwrap_or_else(|| {
        "no sound backup is stored before it, to replay binary logs onto".to_owned()
    })))
}

/// What this image lacks to replay logs of this family.
fn lacking(context: &Context, logs: Flavour) -> Option<String> {
    if logs == Flavour::MySql && mysqld(context).is_none() {
        return Some("binary logs of MySQL are replayed into a MySQL, and this image has no mysqld: set spec.source.clientImage to an image of MySQL with mysqld, mysql, mysqldump and mysqlbinlog".to_owned());
    }
    decoder::find(&context.settings, logs)
        .err()
        .map(|e| e.message)
}

fn onto(place: &StoredDumps<'_>, server: &Restored, replay: &Replay) -> Result<(), Failure> {
    let context = place.context;
    let source = server.source();
    let target = Target::connect(context, &source)?;
    let decoder = target.ready_to_replay(replay.logs)?;
    target.replayed(&decoder, &replay.files(context, place))
}

/// A replay that stopped: what the scratch server can't do proves nothing.
fn refused(
    e: Failure,
    server: &Restored,
    manifest: &Manifest,
    earlier: &Manifest,
) -> Result<Replayed, Failure> {
    if e.reason == Reason::Damaged {
        return Err(e);
    }
    // The store or the pod, not what is in the log.
    if ![exit::SOURCE, exit::VERIFICATION].contains(&e.exit_code) {
        return Err(e);
    }
    if source::number(&e.message).is_some_and(|n| OF_ACCOUNTS.contains(&n)) {
        return Ok(Replayed::No(format!(
            "the log changes accounts that are not in the backup: {}",
            e.message
        )));
    }
    if let Some(why) = unable(
        &manifest.server,
        &server.here,
        &e.message,
        &manifest.databases,
    ) {
        return Ok(Replayed::No(format!("{why}: {}", e.message)));
    }
    Err(Failure::new(
        Reason::ReplayDiffers,
        format!(
            "the binary logs between {} and {} can't be replayed onto the former: {}",
            earlier.key, manifest.key, e.message
        ),
    ))
}

/// The first of them, and how many there are more.
fn some(all: &[String]) -> String {
    const SHOWN: usize = 5;
    let shown = all.iter().take(SHOWN).cloned().collect::<Vec<_>>();
    match all.len().saturating_sub(SHOWN) {
        0 => shown.join("; "),
        more => format!("{}; and {more} more", shown.join("; ")),
    }
}
