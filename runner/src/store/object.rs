//! An object store behind OpenDAL: streamed in parts, completed only if nothing is there yet, and
//! read back by a GET.

use std::io::{self, Read};
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures::TryStreamExt;
use opendal::layers::{RetryLayer, TimeoutLayer};
use opendal::{BufferStream, ErrorKind, Operator, Writer};
use tokio::runtime::Handle;

use super::{Attempt, Entry, Store, Upload, key_in};
use crate::failure::Failure;

/// Bytes of a part where nothing is known of the whole.
const PART: u64 = 8 << 20;
/// Stores take 10,000 parts; the estimate may be short by a tenth.
const PARTS: u64 = 9_000;
/// Larger parts go one at a time, so that memory stays bounded.
const PARALLEL_UP_TO: u64 = 12 << 20;
/// A request that moves no byte for so long is tried again.
const STALLED: Duration = Duration::from_secs(60);
/// Marks of the runner begin so; listings leave them out.
const OWN: &str = ".backup-runner.";

/// An object store. Keys are below the operator's root.
pub struct ObjectStore {
    operator: Operator,
    place: String,
    attempt: Attempt,
    handle: Handle,
}

impl ObjectStore {
    /// A store over `operator`, which `place` names in messages. Requests that fail for a passing
    /// reason are tried again. Must be called within the runtime.
    pub fn new(operator: Operator, place: String, attempt: Attempt) -> Self {
        let operator = operator
            .layer(
                TimeoutLayer::new()
                    .with_timeout(STALLED)
                    .with_io_timeout(STALLED),
            )
            .layer(
                RetryLayer::new()
                    .with_max_times(4)
                    .with_max_delay(Duration::from_secs(10)),
            );
        Self {
            operator,
            place,
            attempt,
            handle: Handle::current(),
        }
    }

    fn failed(&self, doing: &str, key: &str, error: &opendal::Error) -> Failure {
        failure(&self.place, doing, key, error)
    }
}

impl Store for ObjectStore {
    fn describe(&self) -> String {
        self.place.clone()
    }

    fn begin(&self, key: &str) -> Result<Box<dyn Upload>, Failure> {
        // Whoever may not write, or names a bucket that does not exist, learns it before the dump.
        self.handle
            .block_on(self.operator.exists(key))
            .map_err(|e| self.failed("opening", key, &e))?;
        Ok(Box::new(ObjectUpload {
            operator: self.operator.clone(),
            handle: self.handle.clone(),
            place: self.place.clone(),
            key: key.to_owned(),
            part: PART,
            writer: None,
            state: State::Open,
        }))
    }

    fn list(&self, directory: &str) -> Result<Vec<Entry>, Failure> {
        let path = format!("{directory}/");
        let listed = self
            .handle
            .block_on(self.operator.list(&path))
            .map_err(|e| self.failed("listing", &path, &e))?;
        let mut found: Vec<Entry> = listed
            .into_iter()
            .filter(|e| e.metadata().is_file() && !e.name().starts_with('.'))
            .map(|e| Entry {
                key: key_in(directory, e.name()),
                size: e.metadata().content_length(),
            })
            .collect();
        found.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(found)
    }

    fn modified(&self, key: &str) -> Result<Option<DateTime<Utc>>, Failure> {
        let stat = self.handle.block_on(self.operator.stat(key));
        let metadata = stat.map_err(|e| self.failed("opening", key, &e))?;
        let seconds = metadata.last_modified().map(|t| t.into_inner().as_second());
        Ok(seconds.and_then(|s| DateTime::from_timestamp(s, 0)))
    }

    fn open(&self, key: &str) -> Result<Option<Box<dyn Read + Send>>, Failure> {
        match self.handle.block_on(self.operator.stat(key)) {
            Ok(_) => {}
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(self.failed("opening", key, &e)),
        }
        self.handle
            .block_on(stream(&self.operator, key))
            .map(|stream| {
                let reader: Box<dyn Read + Send> = Box::new(Reader {
                    stream,
                    handle: self.handle.clone(),
                    place: self.place.clone(),
                    key: key.to_owned(),
                    buffer: opendal::Buffer::new(),
                });
                Some(reader)
            })
            .map_err(|e| self.failed("reading", key, &e))
    }

    fn put(&self, key: &str, content: &[u8]) -> Result<(), Failure> {
        self.handle
            .block_on(self.operator.write(key, content.to_vec()))
            .map(|_| ())
            .map_err(|e| self.failed("writing", key, &e))
    }

    fn mark(&self, directory: &str, name: &str) -> Result<bool, Failure> {
        let key = format!("{directory}/{OWN}{}~{name}", self.attempt.run);
        let write = self
            .operator
            .write_with(&key, opendal::Buffer::new())
            .if_not_exists(true);
        match self.handle.block_on(write.into_future()) {
            Ok(_) => Ok(true),
            Err(e) if e.kind() == ErrorKind::ConditionNotMatch => Ok(false),
            Err(e) => Err(self.failed("writing", &key, &e)),
        }
    }

    fn remove(&self, key: &str) -> Result<(), Failure> {
        self.handle
            .block_on(self.operator.delete(key))
            .map_err(|e| self.failed("removing", key, &e))
    }

    /// An upload that was not completed is no object; the store's own rule for incomplete
    /// multipart uploads removes what a killed attempt left.
    fn clean(&self, _directory: &str) -> Result<u64, Failure> {
        Ok(0)
    }

    fn keep_alive(&self) {}
}

async fn stream(operator: &Operator, key: &str) -> opendal::Result<BufferStream> {
    operator.reader(key).await?.into_stream(..).await
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    Closed,
    Published,
}

struct ObjectUpload {
    operator: Operator,
    handle: Handle,
    place: String,
    key: String,
    part: u64,
    writer: Option<Writer>,
    state: State,
}

impl ObjectUpload {
    fn failed(&self, doing: &str, error: &opendal::Error) -> Failure {
        failure(&self.place, doing, &self.key, error)
    }

    fn writer(&mut self) -> Result<&mut Writer, Failure> {
        if self.writer.is_none() {
            let parallel = if self.part <= PARALLEL_UP_TO { 2 } else { 1 };
            let open = self
                .operator
                .writer_with(&self.key)
                .if_not_exists(true)
                .chunk(usize::try_from(self.part).unwrap_or(usize::MAX))
                .concurrent(parallel);
            let writer = self
                .handle
                .block_on(open.into_future())
                .map_err(|e| self.failed("writing", &e))?;
            self.writer = Some(writer);
        }
        self.writer
            .as_mut()
            .ok_or_else(|| Failure::store("StoreFailed", "the upload is closed"))
    }
}

impl Upload for ObjectUpload {
    fn expect(&mut self, bytes: u64) {
        const MIB: u64 = 1 << 20;
        self.part = PART.max(bytes.div_ceil(PARTS).div_ceil(MIB) * MIB);
    }

    fn write(&mut self, data: &[u8]) -> Result<(), Failure> {
        let handle = self.handle.clone();
        let data = data.to_vec();
        let written = handle.block_on(self.writer()?.write(data));
        written.map_err(|e| self.failed("writing", &e))
    }

    fn close(&mut self) -> Result<(), Failure> {
        let handle = self.handle.clone();
        let closed = handle.block_on(self.writer()?.close());
        match closed {
            Ok(_) => {
                self.state = State::Closed;
                Ok(())
            }
            Err(e) => Err(self.failed("completing", &e)),
        }
    }

    fn read_back(&self) -> Result<Box<dyn Read + Send>, Failure> {
        let stream = self
            .handle
            .block_on(stream(&self.operator, &self.key))
            .map_err(|e| self.failed("reading back", &e))?;
        Ok(Box::new(Reader {
            stream,
            handle: self.handle.clone(),
            place: self.place.clone(),
            key: self.key.clone(),
            buffer: opendal::Buffer::new(),
        }))
    }

    fn stored_size(&self) -> Option<u64> {
        let stat = self.handle.block_on(self.operator.stat(&self.key));
        stat.ok().map(|m| m.content_length())
    }

    fn publish(&mut self) -> Result<bool, Failure> {
        self.state = State::Published;
        Ok(true)
    }
}

impl Drop for ObjectUpload {
    fn drop(&mut self) {
        let handle = self.handle.clone();
        match self.state {
            State::Open => {
                if let Some(mut writer) = self.writer.take() {
                    let _ = handle.block_on(writer.abort());
                }
            }
            State::Closed => {
                let _ = handle.block_on(self.operator.delete(&self.key));
            }
            State::Published => {}
        }
    }
}

/// A GET as a blocking reader whose errors name the object.
struct Reader {
    stream: BufferStream,
    handle: Handle,
    place: String,
    key: String,
    buffer: opendal::Buffer,
}

impl Read for Reader {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        while self.buffer.is_empty() {
            let next = self.handle.block_on(self.stream.try_next());
            match next {
                Ok(Some(buffer)) => self.buffer = buffer,
                Ok(None) => return Ok(0),
                Err(e) => {
                    return Err(io::Error::other(failure(
                        &self.place,
                        "reading back",
                        &self.key,
                        &e,
                    )));
                }
            }
        }
        self.buffer.read(target)
    }
}

/// Names what failed, why, and what to do. The store's own words are kept, its requests are not.
fn failure(place: &str, doing: &str, key: &str, error: &opendal::Error) -> Failure {
    let text = error.to_string();
    let said = text.rsplit("=> ").next().unwrap_or_default();
    let said = crds::report::clean(said, 300);
    let lower = text.to_lowercase();
    let (reason, remedy) = match error.kind() {
        ErrorKind::ConditionNotMatch => ("AlreadyExists", "the object exists already".to_owned()),
        ErrorKind::PermissionDenied => (
            "PermissionDenied",
            "the store refuses: check keys (spec.destination.s3.credentialsSecretRef) and that they may list, read, write and delete there".to_owned(),
        ),
        _ if lower.contains("nosuchbucket") => (
            "DestinationNotFound",
            "the bucket does not exist: create it, or correct spec.destination.s3.bucket".to_owned(),
        ),
        ErrorKind::NotFound => ("NotFound", "the object does not exist".to_owned()),
        ErrorKind::RateLimited => ("RateLimited", "the store asks for fewer requests: run at another time".to_owned()),
        ErrorKind::ConfigInvalid => ("InvalidSettings", "correct spec.destination".to_owned()),
        _ if ["signaturedoesnotmatch", "invalidaccesskeyid", "accessdenied"].iter().any(|w| lower.contains(w)) => (
            "PermissionDenied",
            "the store refuses the keys: check spec.destination.s3.credentialsSecretRef".to_owned(),
        ),
        _ if ["error sending request", "dns", "connect", "timeout", "timed out"].iter().any(|w| lower.contains(w)) => (
            "StoreUnreachable",
            "the store does not answer: check spec.destination.s3.endpoint, NetworkPolicy and certificates".to_owned(),
        ),
        _ => ("StoreFailed", "look at the store's health".to_owned()),
    };
    let message = format!("{doing} {key} in {place} failed: {remedy}; it said: {said}");
    if reason == "InvalidSettings" {
        return Failure::settings(message);
    }
    Failure::store(reason, message)
}
