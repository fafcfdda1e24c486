//! Verification by restore of an archive: every dump in it is loaded into a scratch server of its
//! type, which has no network and is gone before the next one starts, and what is there then is
//! compared with what the record or the dump says. It passes if every dump was restored and is equal;
//! one that can't be restored here proves nothing, and is named with what would have it restored.

mod etcd;
mod mysql;
mod postgresql;
mod redis;
mod server;

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use crds::gobackup::verify::unproven;
use crds::plan::{Database, Engine};
use crds::report::exit;
use secrecy::SecretString;
use sha2::{Digest, Sha256};

use super::actions::Found;
use super::fetch;
use super::holds::Holds;
use super::open;
use super::process::Program;
use super::state::FileRecord;
use crate::context::Context;
use crate::failure::Failure;
use crate::report::Ticker;
use crate::scratch;
use crate::settings::plan::Family;
use crate::verify::hex;

/// Field of the spec that gives scratch servers room.
const VOLUME: &str = "spec.job.verify.volume";

/// Restores every dump of an archive, and compares; gives what was compared.
///
/// # Errors
/// A dump does not load or differs; or one could not be restored here, so that nothing is proven.
pub(super) fn verify(context: &Context, family: &Family, found: &Found) -> Result<String, Failure> {
    context.reporter.phase("Verifying");
    let key = &found.record.key;
    if context.settings.identity_file.is_none()
        && open::codec_of(key).is_some_and(|(_, _, age)| age)
    {
        return Err(not_verified(format!(
            "{key} is encrypted to age recipients: name the Secret with their identity in spec.job.decryption"
        )));
    }
    let area = Area::new(context)?;
    let (dumps, mut left) = fetch_all(context, family, found, &area).map_err(|e| locked(key, e))?;
    let _ticker = Ticker::start(std::sync::Arc::clone(&context.reporter), || {});
    let (mut good, mut wrong) = (vec![], vec![]);
    for dump in dumps {
        context.check()?;
        let name = dump.name();
        tracing::info!(event = "trial", dump = name);
        let trial = Trial {
            context,
            family,
            area: &area,
            dump: &dump,
            key,
        };
        match trial.run() {
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
    let unopened = failure.reason == "NotDecryptable"
        || failure.reason == "ArchiveDamaged" && failure.message.contains("can't be unpacked");
    if sealed && unopened {
        return not_verified(format!(
            "{}: its stored bytes are those of its record, so check the key: encodeWith and spec.job.decryption as they were when it was made",
            failure.message
        ));
    }
    failure
}

fn not_verified(message: String) -> Failure {
    Failure::new(exit::SETTINGS, "NotVerifiable", message)
}

/// A directory of this verification alone; gone with it.
struct Area {
    path: PathBuf,
}

impl Area {
    fn new(context: &Context) -> Result<Self, Failure> {
        let path = scratch::root().join(format!("archive-{}", context.nonce));
        std::fs::create_dir(&path).map_err(|e| no_room(&path, &e))?;
        Ok(Self { path })
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

fn no_room(path: &Path, error: &io::Error) -> Failure {
    Failure::other(
        "ScratchFailed",
        format!(
            "{} can't be written: {error}; give {VOLUME} more space",
            path.display()
        ),
    )
}

/// A dump that was taken out of the archive.
struct Kept {
    engine: Engine,
    /// Name of the Database.
    database: String,
    /// Name of its file.
    base: String,
    /// Where it is.
    file: PathBuf,
    /// It is compressed by zstd there.
    compressed: bool,
    /// What its record says it held when it was made.
    holds: Option<Box<Holds>>,
}

impl Kept {
    /// `postgresql/maindb`.
    fn name(&self) -> String {
        format!("{}/{}", self.engine.as_str(), self.database)
    }

    /// Its bytes.
    fn open(&self) -> Result<Box<dyn Read + Send>, Failure> {
        let opened = File::open(&self.file).and_then(|file| {
            if self.compressed {
                Ok(Box::new(zstd::Decoder::new(file)?) as Box<dyn Read + Send>)
            } else {
                Ok(Box::new(BufReader::with_capacity(256 * 1024, file)) as Box<dyn Read + Send>)
            }
        });
        opened.map_err(|e| no_room(&self.file, &e))
    }

    /// Reads all of it.
    fn read(&self, context: &Context, mut each: impl FnMut(&[u8])) -> Result<(), Failure> {
        drain(context, &mut self.open()?, &mut each).map_err(|e| no_room(&self.file, &e))?;
        context.check()
    }
}

/// Reads to the end, or until the run is cancelled.
fn drain(context: &Context, from: &mut dyn Read, each: &mut dyn FnMut(&[u8])) -> io::Result<()> {
    let mut buffer = vec![0; 256 * 1024];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(n) => each(&buffer[..n]),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
        if context.check().is_err() {
            return Ok(());
        }
    }
}

/// Takes the dumps out of the archive, in one pass, so that no storage waits for a server; and says
/// which can't be restored here.
fn fetch_all(
    context: &Context,
    family: &Family,
    found: &Found,
    area: &Area,
) -> Result<(Vec<Kept>, Vec<String>), Failure> {
    let record = &found.record;
    let broken = |e| fetch::damaged(&record.key, e);
    let tar = fetch::open(context, family, found)?;
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
        let why = match Engine::parse(type_) {
            None => Some(format!("no verification restores a dump of {type_}")),
            Some(engine) => unproven(engine, all).map(str::to_owned),
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
        if let Some(engine) = Engine::parse(type_) {
            let at = area.path.join(format!("dump-{}", dumps.len()));
            dumps.push(keep(
                context,
                (engine, database, base),
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
    (engine, database, base): (Engine, &str, &str),
    record: &FileRecord,
    from: &mut dyn Read,
    at: PathBuf,
) -> Result<Kept, Failure> {
    // Servers read these files themselves.
    let compressed = !matches!(engine, Engine::Redis | Engine::Etcd);
    let full = |e: io::Error| no_room(&at, &e);
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
    .map_err(|e| fetch::damaged(base, e))?;
    context.check()?;
    written.and_then(|()| into.finish()).map_err(full)?;
    if hex(&hash.finalize()) != record.sha256 {
        return Err(Failure::verification(
            "ArchiveDamaged",
            format!("{} is not the file that was dumped", record.path),
        ));
    }
    Ok(Kept {
        engine,
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

/// One dump on trial.
struct Trial<'a> {
    context: &'a Context,
    family: &'a Family,
    area: &'a Area,
    dump: &'a Kept,
    key: &'a str,
}

impl Trial<'_> {
    fn run(&self) -> Result<String, Failure> {
        match self.dump.engine {
            Engine::Mysql | Engine::Mariadb => mysql::run(self),
            Engine::Postgresql => postgresql::run(self),
            Engine::Redis => redis::run(self),
            Engine::Etcd => etcd::run(self),
            Engine::Mongodb | Engine::Influxdb2 | Engine::Mssql => Err(not_verified(
                "no verification restores a dump of this type".to_owned(),
            )),
        }
    }

    /// `postgresql/maindb of KEY`.
    fn what(&self) -> String {
        format!("{} of {}", self.dump.name(), self.key)
    }

    /// The Database of the plan that made it, if it is still there.
    fn database(&self) -> Option<&Database<SecretString>> {
        let all = &self.family.plan.databases;
        all.iter().find(|d| d.name == self.dump.database)
    }

    /// The dump itself is at fault.
    fn bad(&self, said: &str) -> Failure {
        Failure::verification(
            "NotRestorable",
            format!(
                "{} does not load into a scratch server: {said}",
                self.what()
            ),
        )
    }

    /// What is here can't restore it; `remedy` is what can.
    fn unproven(&self, why: &str, remedy: &str) -> Failure {
        not_verified(format!("not verified by restore: {why}; {remedy}"))
    }

    /// There is no such program here.
    fn lacks(&self, program: &str, of: &str) -> Failure {
        let image = match &self.context.settings.client_image {
            Some(image) => format!("image {image} (spec.job.clientImage)"),
            None => "the runner's image".to_owned(),
        };
        self.unproven(
            &format!("{image} has no {program}"),
            &format!(
                "set spec.job.clientImage to an image with the server of {of}, or spec.job.verify.mode Checksum"
            ),
        )
    }

    /// Compares what was dumped with what was restored.
    fn equal(&self, dump: &Holds, restored: &Holds) -> Result<String, Failure> {
        let mut differences = self
            .dump
            .holds
            .as_deref()
            .map(|recorded| {
                // Of tables that the dump's own text is only counted of, so is the record.
                let mut recorded = Holds::clone(recorded);
                for table in &mut recorded.tables {
                    let of = |t: &&crate::dump_reader::Table| {
                        t.name == table.name && t.database == table.database && t.hash.is_empty()
                    };
                    if dump.tables.iter().any(|t| of(&t)) {
                        table.hash.clear();
                    }
                }
                recorded.differences(restored)
            })
            .unwrap_or_default();
        for text in dump.differences(restored) {
            if !differences.contains(&text) {
                differences.push(text);
            }
        }
        if differences.is_empty() {
            return Ok(format!(
                "{} tables, {} rows",
                dump.tables.len(),
                dump.rows()
            ));
        }
        Err(scratch::differs(&self.what(), &differences))
    }
}

/// A program in the search path.
fn find(context: &Context, names: &[&str]) -> Option<PathBuf> {
    let mut names = names.iter();
    names.find_map(|name| Program::find(context, name).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t8_a_key_that_does_not_fit_is_no_damage() {
        let broken = |reason, text: &str| Failure::verification(reason, text);
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
            let found = locked(key, broken(reason, text));
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
