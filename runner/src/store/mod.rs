//! Where artefacts live. A store writes under a temporary name, makes it durable, reads it back,
//! and publishes it only if nothing is there yet.

mod below;
pub mod cloud;
mod flusher;
pub mod ftp;
mod object;
mod s3;
pub mod sftp;
mod temporary;
mod uploads;
mod volume;
pub mod webdav;

use std::io::{self, Read};
use std::sync::Arc;

use chrono::{DateTime, Utc};

use crate::failure::Failure;
use crate::pipeline::Stored;
use crate::settings::S3;
use crate::verify;

pub use below::Below;
pub use object::ObjectStore;
pub use volume::VolumeStore;

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

    /// Writes a small object whole, over an older one.
    ///
    /// # Errors
    /// The store refuses.
    fn put(&self, key: &str, content: &[u8]) -> Result<(), Failure>;

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

    /// Removes what dead attempts left in `directory`; gives their number.
    ///
    /// # Errors
    /// The store refuses.
    fn clean(&self, directory: &str) -> Result<u64, Failure>;

    /// Shows that this attempt is alive.
    fn keep_alive(&self);
}

/// Key of the mark [`Store::mark`] leaves for a run.
pub fn mark_key(directory: &str, run: &str, name: &str) -> String {
    format!("{directory}/{}{run}~{name}", temporary::OWN)
}

/// An artefact being written. Dropped before it was published, it leaves nothing.
pub trait Upload: Send {
    /// Says how many bytes will come at most, as far as it is known, before the first is written.
    fn expect(&mut self, _bytes: u64) {}

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
        verify::measure(self.read_back().map_err(io::Error::other)?)
    }

    /// Length of what was closed, where the store says it without giving the bytes.
    fn stored_size(&self) -> Option<u64> {
        None
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
    Failure::other(
        "HttpFailed",
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

/// Opens a bucket.
///
/// # Errors
/// It can't be used.
pub fn bucket(s3: &S3, attempt: Attempt) -> Result<Arc<dyn Store>, Failure> {
    Ok(Arc::new(s3::open(s3, attempt)?))
}
