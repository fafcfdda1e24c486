//! The check of one dump by restoring it into a scratch server: what all types of databases need for
//! it. A dump that can't be restored here proves nothing, and is named with what would have it
//! restored.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::PathBuf;

use crds::plan::{Database, DatabaseType};
use crds::report::Reason;
use secrecy::SecretString;

use crate::context::Context;
use crate::database::contents::{Contents, Table, differs};
use crate::database::scratch::{Area, no_room};
use crate::failure::Failure;

/// Field of a Backup's spec that gives scratch servers room.
pub(crate) const VOLUME: &str = "spec.job.verify.volume";

pub(crate) fn not_verified(message: String) -> Failure {
    Failure::new(Reason::NotVerifiable, message)
}

/// A dump that was taken out of the archive.
pub(crate) struct Kept {
    pub(crate) database_type: DatabaseType,
    /// Name of the Database in the archive.
    pub(crate) database: String,
    /// Name of its file.
    pub(crate) base: String,
    /// Where it is.
    pub(crate) file: PathBuf,
    /// It is compressed by zstd there.
    pub(crate) compressed: bool,
    /// What its record says it held when it was made.
    pub(crate) holds: Option<Box<Contents>>,
}

impl Kept {
    /// `postgresql/maindb`.
    pub(crate) fn name(&self) -> String {
        format!("{}/{}", self.database_type.as_str(), self.database)
    }

    /// Its bytes.
    pub(crate) fn open(&self) -> Result<Box<dyn Read + Send>, Failure> {
        let opened = File::open(&self.file).and_then(|file| {
            if self.compressed {
                Ok(Box::new(zstd::Decoder::new(file)?) as Box<dyn Read + Send>)
            } else {
                Ok(Box::new(BufReader::with_capacity(256 * 1024, file)) as Box<dyn Read + Send>)
            }
        });
        opened.map_err(|e| no_room(VOLUME, &self.file, &e))
    }

    /// Reads all of it.
    pub(crate) fn read(
        &self,
        context: &Context,
        mut each: impl FnMut(&[u8]),
    ) -> Result<(), Failure> {
        drain(context, &mut self.open()?, &mut each)
            .map_err(|e| no_room(VOLUME, &self.file, &e))?;
        context.check()
    }
}

/// Reads to the end, or until the run is cancelled.
pub(crate) fn drain(
    context: &Context,
    from: &mut dyn Read,
    each: &mut dyn FnMut(&[u8]),
) -> io::Result<()> {
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

/// One dump that is checked by a restore into a scratch server.
pub(crate) struct RestoreCheck<'a> {
    pub(crate) context: &'a Context,
    pub(crate) databases: &'a [Database<SecretString>],
    /// Where its server may put files.
    pub(crate) area: &'a Area,
    pub(crate) dump: &'a Kept,
    pub(crate) key: &'a str,
}

impl RestoreCheck<'_> {
    /// `postgresql/maindb of KEY`.
    pub(crate) fn what(&self) -> String {
        format!("{} of {}", self.dump.name(), self.key)
    }

    /// The Database of the plan that made it, if it is still there.
    pub(crate) fn database(&self) -> Option<&Database<SecretString>> {
        let mut all = self.databases.iter();
        all.find(|d| d.directory() == self.dump.database)
    }

    /// The dump itself is at fault.
    pub(crate) fn bad(&self, said: &str) -> Failure {
        Failure::new(
            Reason::NotRestorable,
            format!(
                "{} does not load into a scratch server: {said}",
                self.what()
            ),
        )
    }

    /// What is here can't restore it; `remedy` is what can.
    pub(crate) fn unproven(&self, why: &str, remedy: &str) -> Failure {
        not_verified(format!("not verified by restore: {why}; {remedy}"))
    }

    /// There is no such program here.
    pub(crate) fn lacks(&self, program: &str, of: &str) -> Failure {
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
    pub(crate) fn equal(&self, dump: &Contents, restored: &Contents) -> Result<String, Failure> {
        let mut differences = self
            .dump
            .holds
            .as_deref()
            .map(|recorded| {
                // Of tables that the dump's own text is only counted of, so is the record.
                let mut recorded = Contents::clone(recorded);
                for table in &mut recorded.tables {
                    let of = |t: &&Table| {
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
        Err(differs(&self.what(), &differences))
    }
}

/// A program in the search path.
pub(crate) fn find(context: &Context, names: &[&str]) -> Option<PathBuf> {
    let mut names = names.iter();
    names.find_map(|name| context.settings.program(name).ok())
}
