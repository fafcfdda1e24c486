//! One store over every protocol that has files. An artefact is written under a temporary name in its
//! directory, closed, read back there, and gets its key if nothing is there; what is dropped before
//! leaves nothing. What each protocol does for that, and how it says that it can't, is its own.

use std::io::Read;
use std::ops::Range;

use chrono::{DateTime, Utc};
use crds::report::Reason;

use crate::failure::Failure;
use crate::store::temporary::{self, OWN};
use crate::store::{Attempt, Dated, Entry, Own, Store, Upload, key_in};

/// What a server does by its protocol. Keys are below its root; directories are made where they are needed.
pub(super) trait FileServer: Clone + Send + Sync + 'static {
    /// A file on its way. Dropped unclosed it is given up, and may be there in part.
    type File: Send;

    /// The kind of server, for messages.
    const SERVER: &'static str;

    /// Host and port, for messages.
    fn place(&self) -> String;

    /// Whose temporaries these are.
    fn attempt(&self) -> &Attempt;

    /// Files directly in `directory`, the runner's own and others with a dot too, and directories, whose
    /// keys end with a slash. A missing directory is empty.
    fn entries(&self, directory: &str) -> Result<Vec<Dated>, Failure>;

    /// As [`Store::modified`].
    fn modified(&self, key: &str) -> Result<Option<DateTime<Utc>>, Failure>;

    /// Opens a file; `None` if it does not exist.
    fn read(&self, doing: &str, key: &str) -> Result<Option<Box<dyn Read + Send>>, Failure>;

    /// As [`Store::open_part`].
    fn read_part(
        &self,
        key: &str,
        part: Range<u64>,
    ) -> Result<Option<Box<dyn Read + Send>>, Failure>;

    /// Begins a file of this key.
    fn start(&self, key: &str) -> Result<Self::File, Failure>;

    /// Writes the next bytes of an artefact `key`.
    fn write(&self, file: &mut Self::File, key: &str, data: &[u8]) -> Result<(), Failure>;

    /// Completes it: all bytes are durable.
    fn close(&self, file: Self::File, key: &str) -> Result<(), Failure>;

    /// Moves a file to another key; false if a file is there.
    fn publish(&self, from: &str, key: &str) -> Result<bool, Failure>;

    /// As [`Store::put`].
    fn put(&self, key: &str, content: &[u8]) -> Result<(), Failure>;

    /// As [`Store::create`].
    fn create(&self, key: &str, content: &[u8]) -> Result<bool, Failure>;

    /// As [`Store::remove`].
    fn remove(&self, key: &str) -> Result<(), Failure>;
}

/// The store of a server.
pub(super) struct FileStore<S>(pub(super) S);

impl<S: FileServer> Store for FileStore<S> {
    fn describe(&self) -> String {
        format!("{} {}", S::SERVER, self.0.place())
    }

    fn begin(&self, key: &str) -> Result<Box<dyn Upload>, Failure> {
        let temporary = temporary::name(self.0.attempt(), key);
        Ok(Box::new(FileUpload {
            file: Some(self.0.start(&temporary)?),
            server: self.0.clone(),
            key: key.to_owned(),
            temporary,
            published: false,
        }))
    }

    fn list(&self, directory: &str) -> Result<Vec<Entry>, Failure> {
        let found = self
            .0
            .entries(directory)?
            .into_iter()
            .map(|(entry, _)| entry);
        let file = |e: &Entry| !e.key.ends_with('/') && !name(&e.key).starts_with('.');
        let mut found: Vec<Entry> = found.filter(file).collect();
        found.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(found)
    }

    fn directories(&self, directory: &str) -> Result<Vec<String>, Failure> {
        let found = self.0.entries(directory)?.into_iter();
        let keys = found.filter_map(|(e, _)| e.key.strip_suffix('/').map(str::to_owned));
        Ok(keys.collect())
    }

    fn modified(&self, key: &str) -> Result<Option<DateTime<Utc>>, Failure> {
        self.0.modified(key)
    }

    fn open(&self, key: &str) -> Result<Option<Box<dyn Read + Send>>, Failure> {
        self.0.read("reading", key)
    }

    fn open_part(
        &self,
        key: &str,
        part: Range<u64>,
    ) -> Result<Option<Box<dyn Read + Send>>, Failure> {
        self.0.read_part(key, part)
    }

    fn put(&self, key: &str, content: &[u8]) -> Result<(), Failure> {
        self.0.put(key, content)
    }

    fn create(&self, key: &str, content: &[u8]) -> Result<bool, Failure> {
        self.0.create(key, content)
    }

    fn mark(&self, directory: &str, name: &str) -> Result<bool, Failure> {
        let name = format!("{OWN}{}~{name}", self.0.attempt().run);
        self.0.create(&key_in(directory, &name), b"")
    }

    fn remove(&self, key: &str) -> Result<(), Failure> {
        self.0.remove(key)
    }

    fn own(&self, directory: &str) -> Result<Vec<Own>, Failure> {
        let mut found = self.0.entries(directory)?;
        found.sort_by(|a, b| a.0.key.cmp(&b.0.key));
        let own = found
            .into_iter()
            .filter(|(e, _)| name(&e.key).starts_with(OWN));
        Ok(own
            .map(|(e, modified)| Own {
                key: e.key,
                modified,
                alive: None,
            })
            .collect())
    }

    fn keep_alive(&self) {}
}

fn name(key: &str) -> &str {
    key.rsplit('/').next().unwrap_or(key)
}

struct FileUpload<S: FileServer> {
    server: S,
    key: String,
    temporary: String,
    file: Option<S::File>,
    published: bool,
}

fn closed() -> Failure {
    Failure::new(Reason::StoreFailed, "the upload is closed")
}

impl<S: FileServer> Upload for FileUpload<S> {
    fn write(&mut self, data: &[u8]) -> Result<(), Failure> {
        let file = self.file.as_mut().ok_or_else(closed)?;
        self.server.write(file, &self.key, data)
    }

    fn close(&mut self) -> Result<(), Failure> {
        let file = self.file.take().ok_or_else(closed)?;
        self.server.close(file, &self.key)
    }

    fn read_back(&self) -> Result<Box<dyn Read + Send>, Failure> {
        let found = self.server.read("reading back", &self.temporary)?;
        found.ok_or_else(|| {
            Failure::new(
                Reason::NotReadBack,
                format!("{} is gone from {}", self.key, self.server.place()),
            )
        })
    }

    fn publish(&mut self) -> Result<bool, Failure> {
        self.published = self.server.publish(&self.temporary, &self.key)?;
        Ok(self.published)
    }
}

impl<S: FileServer> Drop for FileUpload<S> {
    fn drop(&mut self) {
        drop(self.file.take());
        if !self.published {
            let _ = self.server.remove(&self.temporary);
        }
    }
}
