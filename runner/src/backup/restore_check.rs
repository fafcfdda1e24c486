//! Verification by restore of an archive: every dump in it is loaded into a scratch server of its
//! type, which has no network and is gone before the next one starts, and what is there then is
//! compared with what the record or the dump says. It passes if every dump was restored and is equal;
//! one that can't be restored here proves nothing, and is named with what would have it restored.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use crds::gobackup::verify::unproven;
use crds::plan::DatabaseType;
use crds::report::{Reason, exit};
use sha2::{Digest, Sha256};

use crate::backup::found::Found;
use crate::backup::record::FileRecord;
use crate::backup::{fetch, open};
use crate::context::Context;
use crate::database;
use crate::database::restore::damaged;
use crate::database::restore_check::{Kept, RestoreCheck, VOLUME, drain, not_verified};
use crate::database::scratch::{Area, no_room};
use crate::failure::Failure;
use crate::report::Ticker;
use crate::settings::plan::BackupSettings;
use crate::stream::checksum::hex;

/// Restores every dump of an archive, and compares; gives what was compared.
///
/// # Errors
/// A dump does not load or differs; or one could not be restored here, so that nothing is proven.
pub(crate) fn verify(
    context: &Context,
    backup: &BackupSettings,
    found: &Found,
) -> Result<String, Failure> {
    context.reporter.phase("Verifying");
    let key = &found.record.key;
    if context.settings.identity_file.is_none()
        && open::codec_of(key).is_some_and(|(_, _, age)| age)
    {
        return Err(not_verified(format!(
            "{key} is encrypted to age recipients: name the Secret with their identity in spec.job.decryption"
        )));
    }
    let area = Area::new(context, VOLUME)?;
    let (dumps, mut left) = fetch_all(context, backup, found, &area).map_err(|e| locked(key, e))?;
    let _ticker = Ticker::start(std::sync::Arc::clone(&context.reporter), || {});
    let (mut good, mut wrong) = (vec![], vec![]);
    for dump in dumps {
        context.check()?;
        let name = dump.name();
        tracing::info!(event = "restoreCheck", dump = name);
        let check = RestoreCheck {
            context,
            databases: &backup.plan.databases,
            area: &area,
            dump: &dump,
            key,
        };
        match database::check(&check) {
            Ok(text) => good.push(format!("{name}: {text}")),
            // What a cancelled run breaks is no fault of the archive.
            Err(e) if e.exit_code == exit::VERIFICATION => {
                context.check()?;
                wrong.push(e);
            }
            Err(e) => {
                context.check()?;
                left.push(format!("{name}: {}", e.message));
            }
        }
        let _ = std::fs::remove_file(&dump.file);
    }
    if !wrong.is_empty() {
        return Err(Failure::all(wrong));
    }
    if left.is_empty() {
        return Ok(format!(
            "every dump of {key} was restored and compared, all equal: {}",
            good.join(", ")
        ));
    }
    let before = match good.len() {
        0 => String::new(),
        _ => format!("; restored and equal: {}", good.join(", ")),
    };
    Err(not_verified(format!("{}{before}", left.join("; "))))
}

/// A key that no longer fits proves nothing of an archive whose stored bytes are those of its record;
/// where they are not, that is told before this.
fn locked(key: &str, failure: Failure) -> Failure {
    let sealed = open::codec_of(key).is_some_and(|(_, openssl, age)| openssl || age);
    let unopened = failure.reason == Reason::NotDecryptable
        || failure.reason == Reason::ArchiveDamaged
            && failure.message.contains("can't be unpacked");
    if sealed && unopened {
        return not_verified(format!(
            "{}: its stored bytes are those of its record, so check the key: encodeWith and spec.job.decryption as they were when it was made",
            failure.message
        ));
    }
    failure
}

/// Takes the dumps out of the archive, in one pass, so that no storage waits for a server; and says
/// which can't be restored here.
fn fetch_all(
    context: &Context,
    backup: &BackupSettings,
    found: &Found,
    area: &Area,
) -> Result<(Vec<Kept>, Vec<String>), Failure> {
    let record = &found.record;
    let broken = |e| damaged(&record.key, e);
    let tar = fetch::open(context, backup, found)?;
    let mut archive = tar::Archive::new(tar);
    let (mut dumps, mut left) = (vec![], vec![]);
    for entry in archive.entries().map_err(broken)? {
        context.check()?;
        let mut entry = entry.map_err(broken)?;
        if !entry.header().entry_type().is_file() {
            continue;
        }
        let path = entry.path().map_err(broken)?.display().to_string();
        let Some(file) = record.files.iter().find(|f| f.path == path) else {
            continue;
        };
        let (type_, database, base) = parts(&path);
        let all = base == "all_databases.sql";
        let why = match DatabaseType::parse(type_) {
            None => Some(format!("no verification restores a dump of {type_}")),
            Some(database_type) => unproven(database_type, all).map(str::to_owned),
        };
        if let Some(why) = why {
            let text = format!(
                "{type_}/{database} is not verified by restore: {why}; verify it with mode Checksum, or back it up by a Backup of its own"
            );
            if !left.contains(&text) {
                left.push(text);
            }
            continue;
        }
        if let Some(database_type) = DatabaseType::parse(type_) {
            let at = area.path.join(format!("dump-{}", dumps.len()));
            dumps.push(keep(
                context,
                (database_type, database, base),
                file,
                &mut entry,
                at,
            )?);
        }
    }
    // At its end the stored bytes are known to be those of the record.
    io::copy(&mut archive.into_inner(), &mut io::sink()).map_err(broken)?;
    if dumps.is_empty() && left.is_empty() {
        left.push(format!("{} holds no dump", record.key));
    }
    Ok((dumps, left))
}

/// Type, Database and file of a path in an archive: `<model>/<type>/<database>/<file>`, of etcd
/// `<model>/etcd/<database>-<endpoint>`.
fn parts(path: &str) -> (&str, &str, &str) {
    let mut parts = path.split('/').skip(1);
    let type_ = parts.next().unwrap_or_default();
    let database = parts.next().unwrap_or_default();
    let base = path.rsplit('/').next().unwrap_or_default();
    (type_, database, base)
}

fn keep(
    context: &Context,
    (database_type, database, base): (DatabaseType, &str, &str),
    record: &FileRecord,
    from: &mut dyn Read,
    at: PathBuf,
) -> Result<Kept, Failure> {
    // Servers read these files themselves.
    let compressed = !matches!(database_type, DatabaseType::Redis | DatabaseType::Etcd);
    let full = |e: io::Error| no_room(VOLUME, &at, &e);
    let file = File::create_new(&at).map_err(full)?;
    let mut into: Into = if compressed {
        Into::Zstd(zstd::Encoder::new(file, 1).map_err(full)?)
    } else {
        Into::Plain(file)
    };
    let (mut hash, mut written) = (Sha256::new(), Ok(()));
    let raw = &context.reporter.counters.raw;
    drain(context, from, &mut |chunk| {
        hash.update(chunk);
        raw.fetch_add(chunk.len() as u64, Ordering::Relaxed);
        if written.is_ok() {
            written = into.write(chunk);
        }
    })
    .map_err(|e| damaged(base, e))?;
    context.check()?;
    written.and_then(|()| into.finish()).map_err(full)?;
    if hex(&hash.finalize()) != record.sha256 {
        return Err(Failure::new(
            Reason::ArchiveDamaged,
            format!("{} is not the file that was dumped", record.path),
        ));
    }
    Ok(Kept {
        database_type,
        database: database.to_owned(),
        base: base.to_owned(),
        file: at,
        compressed,
        holds: record.holds.clone(),
    })
}

enum Into {
    Zstd(zstd::Encoder<'static, File>),
    Plain(File),
}

impl Into {
    fn write(&mut self, chunk: &[u8]) -> io::Result<()> {
        match self {
            Self::Zstd(into) => into.write_all(chunk),
            Self::Plain(into) => into.write_all(chunk),
        }
    }

    fn finish(self) -> io::Result<()> {
        match self {
            Self::Zstd(into) => into.finish().map(drop),
            Self::Plain(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t8_a_key_that_does_not_fit_is_no_damage() {
        let broken = |reason, text: &str| Failure::at(exit::VERIFICATION, reason, text);
        for (key, reason, text, expected) in [
            (
                "a.tar.gz.enc",
                "ArchiveDamaged",
                "a can't be unpacked: x",
                "NotVerifiable",
            ),
            (
                "a.tar.gz.age",
                "NotDecryptable",
                "a can't be opened",
                "NotVerifiable",
            ),
            (
                "a.tar.gz",
                "ArchiveDamaged",
                "a can't be unpacked: x",
                "ArchiveDamaged",
            ),
            (
                "a.tar.gz.enc",
                "ArchiveDamaged",
                "f is not the file that was dumped",
                "ArchiveDamaged",
            ),
            ("a.tar.gz.enc", "ReadBackDiffers", "a", "ReadBackDiffers"),
        ] {
            let found = locked(key, broken(Reason::parse(reason).unwrap(), text));
            assert_eq!(found.reason, expected, "{key} {reason}");
        }
    }

    #[test]
    fn paths_tell_what_a_dump_is_of() {
        for (path, expected) in [
            (
                "m/postgresql/main/app.sql",
                ("postgresql", "main", "app.sql"),
            ),
            ("m/mongodb/m/app/t.bson", ("mongodb", "m", "t.bson")),
            ("m/etcd/kv-h:2379", ("etcd", "kv-h:2379", "kv-h:2379")),
            ("odd", ("", "", "odd")),
        ] {
            assert_eq!(parts(path), expected);
        }
    }
}
