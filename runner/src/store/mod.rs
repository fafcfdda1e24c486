//! Where artefacts live. A store writes under a temporary name, makes it durable, reads it back,
//! and publishes it only if nothing is there yet.

mod below;
mod claim;
pub mod cloud;
mod digest;
mod files;
mod flusher;
pub mod ftp;
mod ground;
pub mod leftovers;
mod object;
pub mod open;
mod read_back;
mod s3;
pub mod sftp;
mod temporary;
mod uploads;
mod volume;
pub mod webdav;

use crds::report::Reason;
use std::io::{self, Read};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::failure::Failure;
use crate::settings::S3;
use crate::stream::checksum::{self, Stored};

pub use below::Below;
pub use claim::{Claim, Note, Stamp, read as read_claim, warn_of_condition};
pub use object::ObjectStore;
pub use read_back::read_back;
pub use temporary::{Kind, Name};
pub use volume::VolumeStore;

/// Reason of a failure that says that the store has the object in an archive class: it is there, and
/// is given to nobody until it is brought back.
pub const ARCHIVED: Reason = Reason::ArchiveClass;
/// Where a store has no better sign of life, what was not touched for so long belongs to an attempt
/// that is dead. A live one renews its claim every few minutes.
pub const DEAD_AFTER: Duration = Duration::from_secs(24 * 3600);

/// Whose temporaries these are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Name of the run.
    pub run: String,
    /// UID or name of the pod.
    pub pod: String,
    /// Another one for each start of the program.
    pub nonce: String,
}

/// One object of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Key below the destination's root.
    pub key: String,
    /// Bytes.
    pub size: u64,
}

/// One object of a listing, and when it was last written, where the store tells.
type Dated = (Entry, Option<DateTime<Utc>>);

/// A file the runner keeps for itself beside artefacts: a temporary, a claim or a mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Own {
    /// Key below the destination's root.
    pub key: String,
    /// When it was last written, by the store's clock, where the store tells.
    pub modified: Option<DateTime<Utc>>,
    /// Whether the process that made it lives, where that can be known.
    pub alive: Option<bool>,
}

/// An upload in parts that was begun and not completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenUpload {
    /// Key below the destination's root.
    pub key: String,
    /// When it was begun, by the store's clock.
    pub begun: Option<DateTime<Utc>>,
    /// When it, or the last of its parts, was written.
    pub touched: Option<DateTime<Utc>>,
    /// The store's time when it was asked.
    pub now: Option<DateTime<Utc>>,
}

/// What a store makes of «only if nothing is there».
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Condition {
    /// It keeps to it, as far as is known.
    #[default]
    Kept,
    /// It takes the words and writes over what is there.
    Ignored,
    /// It refuses requests that have it.
    Refused,
}

/// Where artefacts live. All calls block.
pub trait Store: Send + Sync {
    /// The place, for messages.
    fn describe(&self) -> String;

    /// Begins an artefact of this key.
    ///
    /// # Errors
    /// The store refuses.
    fn begin(&self, key: &str) -> Result<Box<dyn Upload>, Failure>;

    /// Objects directly in `directory` ("" is the root), temporaries left out. A missing directory
    /// is empty.
    ///
    /// # Errors
    /// The store refuses.
    fn list(&self, directory: &str) -> Result<Vec<Entry>, Failure>;

    /// Directories directly in `directory`, by their keys. A missing directory is empty.
    ///
    /// # Errors
    /// The store refuses.
    fn directories(&self, directory: &str) -> Result<Vec<String>, Failure>;

    /// When the object was last written, where the store tells.
    ///
    /// # Errors
    /// The store refuses.
    fn modified(&self, _key: &str) -> Result<Option<DateTime<Utc>>, Failure> {
        Ok(None)
    }

    /// Opens an object, past caches where there are some. `None` if it does not exist.
    ///
    /// # Errors
    /// The store refuses.
    fn open(&self, key: &str) -> Result<Option<Box<dyn Read + Send>>, Failure>;

    /// Opens a part of an object, past caches where there are some. `None` if it does not exist, or the store gives parts to
    /// nobody: then it is read whole.
    ///
    /// # Errors
    /// The store refuses.
    fn open_part(
        &self,
        _key: &str,
        _part: Range<u64>,
    ) -> Result<Option<Box<dyn Read + Send>>, Failure> {
        Ok(None)
    }

    /// Writes a small object whole, over an older one.
    ///
    /// # Errors
    /// The store refuses.
    fn put(&self, key: &str, content: &[u8]) -> Result<(), Failure>;

    /// Writes a small object whole unless one is there; false if there is. What a store can't be told
    /// it is asked before.
    ///
    /// # Errors
    /// The store refuses.
    fn create(&self, key: &str, content: &[u8]) -> Result<bool, Failure>;

    /// What the store makes of [`Store::create`], tried on `key`, which is there with this content.
    ///
    /// # Errors
    /// The store refuses.
    fn try_condition(&self, _key: &str, _content: &[u8]) -> Result<Condition, Failure> {
        Ok(Condition::Kept)
    }

    /// True if an artefact is published in one step that can't replace another, and the process that
    /// writes one is known to live: then no claim is needed beside it.
    fn publishes_alone(&self) -> bool {
        false
    }

    /// Leaves a mark of this run in `directory`; false if it was there already.
    ///
    /// # Errors
    /// The store refuses.
    fn mark(&self, directory: &str, name: &str) -> Result<bool, Failure>;

    /// Removes an object; a missing one is fine.
    ///
    /// # Errors
    /// The store refuses.
    fn remove(&self, key: &str) -> Result<(), Failure>;

    /// The files the runner keeps for itself directly in `directory`.
    ///
    /// # Errors
    /// The store refuses.
    fn own(&self, directory: &str) -> Result<Vec<Own>, Failure>;

    /// Ends the open uploads at or below `directory` that `dead` picks; gives their number.
    ///
    /// # Errors
    /// The store refuses.
    fn abort_uploads(
        &self,
        _directory: &str,
        _dead: &(dyn Fn(&OpenUpload) -> bool + Sync),
    ) -> Result<u64, Failure> {
        Ok(0)
    }

    /// A file of the runner's own that is not touched for so long belongs to nobody who lives, where
    /// it is not known better.
    fn dead_after(&self) -> Duration {
        DEAD_AFTER
    }

    /// Shows that this attempt is alive.
    fn keep_alive(&self);
}

/// Writes a small object and reads it back, byte by byte; one that came out otherwise is written once
/// more.
///
/// # Errors
/// The store refuses, or what it gives back is not what was sent, twice.
pub fn put_checked(store: &dyn Store, key: &str, content: &[u8]) -> Result<(), Failure> {
    store.put(key, content)?;
    check_written(store, key, content)
}

/// Writes a small object unless one is there, and reads it back as [`put_checked`] does; false if
/// one was there already.
///
/// # Errors
/// As [`put_checked`].
pub fn create_checked(store: &dyn Store, key: &str, content: &[u8]) -> Result<bool, Failure> {
    if !store.create(key, content)? && !holds(store, key, content)? {
        return Ok(false);
    }
    check_written(store, key, content).map(|()| true)
}

fn check_written(store: &dyn Store, key: &str, content: &[u8]) -> Result<(), Failure> {
    if holds(store, key, content)? {
        return Ok(());
    }
    tracing::warn!("{key} is not what was written: it is written once more");
    store.put(key, content)?;
    if holds(store, key, content)? {
        return Ok(());
    }
    Err(Failure::new(
        Reason::ReadBackDiffers,
        format!(
            "{key} in {} is not what was written, twice: what is stored there can't be relied on; check the store's health, then run again",
            store.describe()
        ),
    ))
}

/// True if the object is there and is these bytes.
///
/// # Errors
/// The store refuses.
pub fn holds(store: &dyn Store, key: &str, content: &[u8]) -> Result<bool, Failure> {
    let found = read(store, key, content.len() as u64 + 1)?;
    Ok(found.as_deref() == Some(content))
}

/// The tag in the names of what is written to ask for the store's time.
pub const CLOCK: &str = "now";

/// Key of a small object that says by its time what time the store has.
pub fn clock_key(directory: &str, attempt: &Attempt) -> String {
    let a = attempt;
    let own = temporary::OWN;
    let name = format!("{own}{}~{}~{}~{CLOCK}.tmp", a.run, a.pod, a.nonce);
    key_in(directory, &name)
}

/// Key of the mark [`Store::mark`] leaves for a run.
pub fn mark_key(directory: &str, run: &str, name: &str) -> String {
    format!("{directory}/{}{run}~{name}", temporary::OWN)
}

/// An artefact being written. Dropped before it was published, it leaves nothing.
pub trait Upload: Send {
    /// Says how many bytes will come at most, as far as it is known, before the first is written.
    fn expect(&mut self, _bytes: u64) {}

    /// Asks, before the first byte, for as little memory as can be had, though it takes longer.
    fn spare_memory(&mut self) {}

    /// Writes the next bytes.
    ///
    /// # Errors
    /// The store refuses or is full.
    fn write(&mut self, data: &[u8]) -> Result<(), Failure>;

    /// Closes it: all bytes are durable.
    ///
    /// # Errors
    /// The store refuses.
    fn close(&mut self) -> Result<(), Failure>;

    /// Opens what was closed, past caches.
    ///
    /// # Errors
    /// The store refuses.
    fn read_back(&self) -> Result<Box<dyn Read + Send>, Failure>;

    /// Length and SHA-256 of what was closed, read past caches; a store that can read while more
    /// is written has done most of it by then.
    ///
    /// # Errors
    /// The store refuses.
    fn measure(&mut self) -> io::Result<Stored> {
        checksum::measure(self.read_back().map_err(io::Error::other)?)
    }

    /// Length of what was closed, where the store says it without giving the bytes.
    fn stored_size(&self) -> Option<u64> {
        None
    }

    /// Takes another name in its directory, where that is possible before it is published; false where
    /// it is not.
    fn rename(&mut self, _name: &str) -> bool {
        false
    }

    /// Gives it its key; false if an object is there already, and then nothing is published.
    ///
    /// # Errors
    /// The store refuses.
    fn publish(&mut self) -> Result<bool, Failure>;
}

/// No client of HTTP, with its causes: in an image without CA certificates there is none.
fn no_client(error: &reqwest::Error) -> Failure {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    Failure::new(
        Reason::HttpFailed,
        format!(
            "the HTTP client can't be made: {text}; it needs CA certificates: put the package ca-certificates into the image, or mount a file of them and name it in SSL_CERT_FILE"
        ),
    )
}

/// Key of the object `name` in `directory`.
fn key_in(directory: &str, name: &str) -> String {
    if directory.is_empty() {
        name.to_owned()
    } else {
        format!("{directory}/{name}")
    }
}

/// A small object, up to `most` bytes of it; `None` if there is none.
///
/// # Errors
/// The store refuses.
pub fn read(store: &dyn Store, key: &str, most: u64) -> Result<Option<Vec<u8>>, Failure> {
    let Some(reader) = store.open(key)? else {
        return Ok(None);
    };
    let mut content = vec![];
    reader.take(most).read_to_end(&mut content).map_err(|e| {
        let said = format!("reading {key} failed: {e}");
        e.downcast::<Failure>()
            .unwrap_or_else(|_| Failure::new(Reason::StoreFailed, said))
    })?;
    Ok(Some(content))
}

/// Opens a bucket.
///
/// # Errors
/// It can't be used.
pub fn bucket(s3: &S3, attempt: Attempt) -> Result<Arc<dyn Store>, Failure> {
    Ok(Arc::new(s3::open(s3, attempt)?))
}
