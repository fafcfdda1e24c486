//! An object store behind OpenDAL: streamed in parts, completed only if nothing is there yet, and
//! read back by a GET.

use crds::report::{Reason, exit};
use std::io::{self, Read};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures::TryStreamExt;
use opendal::layers::{RetryLayer, TimeoutLayer};
use opendal::{BufferStream, ErrorKind, Operator, Writer};
use tokio::runtime::Handle;

use crate::failure::Failure;
use crate::store::temporary::OWN;
use crate::store::uploads::Uploads;
use crate::store::{ARCHIVED, Attempt, Condition, Entry, OpenUpload, Own, Store, Upload, key_in};

/// How an upload is cut into parts. All parts of one upload have the same size, as some stores
/// demand, so it is chosen before the first byte.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// Bytes of the smallest part.
    smallest: u64,
    /// Bytes of the largest: more would not fit the runner's 64 MiB.
    largest: u64,
    /// Larger parts go one at a time, so that memory stays bounded.
    parallel_up_to: u64,
    /// So many parts a store takes.
    parts: u64,
}

const LIMITS: Limits = Limits {
    smallest: 8 << 20,
    largest: 26 << 20,
    parallel_up_to: 12 << 20,
    parts: 10_000,
};

impl Limits {
    /// Bytes of a part, in whole MiB, for an artefact of `expected` bytes; a tenth is left for an
    /// estimate that is short. Without an estimate there is room for the largest artefact.
    fn part(&self, expected: Option<u64>) -> u64 {
        const MIB: u64 = 1 << 20;
        let Some(expected) = expected else {
            return self.largest;
        };
        let part = expected.div_ceil(self.parts * 9 / 10).div_ceil(MIB) * MIB;
        part.clamp(self.smallest, self.largest)
    }
}

/// A request that moves no byte for so long is tried again.
const STALLED: Duration = Duration::from_secs(60);

/// What is known of how a store takes «only if nothing is there»; shared with its uploads.
#[derive(Clone, Default)]
struct Known(Arc<AtomicU8>);

impl Known {
    fn get(&self) -> Condition {
        match self.0.load(Ordering::Acquire) {
            1 => Condition::Ignored,
            2 => Condition::Refused,
            _ => Condition::Kept,
        }
    }

    fn set(&self, condition: Condition) {
        let value = match condition {
            Condition::Kept => 0,
            Condition::Ignored => 1,
            Condition::Refused => 2,
        };
        self.0.store(value, Ordering::Release);
    }
}

/// An object store. Keys are below the operator's root.
pub struct ObjectStore {
    operator: Operator,
    /// For what is small: never in an archive class, where it could not be read.
    small: Operator,
    condition: Known,
    place: String,
    attempt: Attempt,
    handle: Handle,
    uploads: Option<Uploads>,
    limits: Limits,
}

impl ObjectStore {
    /// A store over `operator`, which `place` names in messages. Requests that fail for a passing
    /// reason are tried again. Must be called within the runtime.
    pub fn new(operator: Operator, place: String, attempt: Attempt) -> Self {
        let operator = patient(operator);
        Self {
            small: operator.clone(),
            operator,
            condition: Known::default(),
            place,
            attempt,
            handle: Handle::current(),
            uploads: None,
            limits: LIMITS,
        }
    }

    /// With a way to find uploads that were never completed.
    pub(super) fn with_uploads(mut self, uploads: Uploads) -> Self {
        self.uploads = Some(uploads);
        self
    }

    /// With another way for small objects.
    pub(super) fn with_small(mut self, small: Operator) -> Self {
        self.small = patient(small);
        self
    }

    fn reader(&self, key: &str, stream: BufferStream) -> Reader {
        Reader {
            stream,
            handle: self.handle.clone(),
            place: self.place.clone(),
            key: key.to_owned(),
            buffer: opendal::Buffer::new(),
        }
    }

    fn failed(&self, doing: &str, key: &str, error: &opendal::Error) -> Failure {
        failure(&self.place, doing, key, error)
    }

    fn write(&self, key: &str, content: &[u8], only_new: bool) -> opendal::Result<()> {
        let write = self
            .small
            .write_with(key, content.to_vec())
            .if_not_exists(only_new);
        self.handle.block_on(write.into_future()).map(|_| ())
    }

    /// [`Store::create`], with the store's own error.
    fn write_new(&self, key: &str, content: &[u8]) -> opendal::Result<bool> {
        if self.condition.get() == Condition::Kept {
            match self.write(key, content, true) {
                Ok(()) => return Ok(true),
                Err(e) if e.kind() == ErrorKind::ConditionNotMatch => return Ok(false),
                Err(e) if refuses_conditions(&e) => self.condition.set(Condition::Refused),
                Err(e) => return Err(e),
            }
        }
        if self.handle.block_on(self.operator.exists(key))? {
            return Ok(false);
        }
        self.write(key, content, false).map(|()| true)
    }

    fn listing(&self, directory: &str) -> Result<Vec<opendal::Entry>, Failure> {
        let path = format!("{directory}/");
        self.handle
            .block_on(self.operator.list(&path))
            .map_err(|e| self.failed("listing", &path, &e))
    }
}

/// Requests that fail for a passing reason are tried again.
fn patient(operator: Operator) -> Operator {
    operator
        .layer(
            TimeoutLayer::new()
                .with_timeout(STALLED)
                .with_io_timeout(STALLED),
        )
        .layer(
            RetryLayer::new()
                .with_max_times(4)
                .with_max_delay(Duration::from_secs(10)),
        )
}

/// The store has no conditional writes and says so: 501, or the name of the header in its words.
fn refuses_conditions(error: &opendal::Error) -> bool {
    let text = error.to_string().to_lowercase();
    error.kind() == ErrorKind::Unsupported
        || text.contains("notimplemented")
        || text.contains("501 not implemented")
        || text.contains("status: 501")
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
            condition: self.condition.clone(),
            limits: self.limits,
            part: self.limits.part(None),
            sparing: false,
            sent: 0,
            writer: None,
            state: State::Open,
        }))
    }

    fn list(&self, directory: &str) -> Result<Vec<Entry>, Failure> {
        let listed = self.listing(directory)?;
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

    fn directories(&self, directory: &str) -> Result<Vec<String>, Failure> {
        let found = self.listing(directory)?.into_iter();
        // Some services give the directory itself, too.
        let itself = directory.rsplit('/').next();
        let below = found.filter(|e| e.metadata().is_dir());
        let names = below.map(|e| e.name().trim_end_matches('/').to_owned());
        let names = names.filter(|name| Some(name.as_str()) != itself && !name.is_empty());
        Ok(names.map(|name| key_in(directory, &name)).collect())
    }

    fn modified(&self, key: &str) -> Result<Option<DateTime<Utc>>, Failure> {
        let stat = self.handle.block_on(self.operator.stat(key));
        let metadata = stat.map_err(|e| self.failed("opening", key, &e))?;
        Ok(time(&metadata))
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
                let reader: Box<dyn Read + Send> = Box::new(self.reader(key, stream));
                Some(reader)
            })
            .map_err(|e| self.failed("reading", key, &e))
    }

    fn open_part(
        &self,
        key: &str,
        part: Range<u64>,
    ) -> Result<Option<Box<dyn Read + Send>>, Failure> {
        let opened = async {
            let reader = self.operator.reader(key).await?;
            reader.into_stream(part).await
        };
        match self.handle.block_on(opened) {
            Ok(stream) => Ok(Some(Box::new(self.reader(key, stream)))),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            Err(e) => Err(self.failed("reading", key, &e)),
        }
    }

    fn put(&self, key: &str, content: &[u8]) -> Result<(), Failure> {
        self.write(key, content, false)
            .map_err(|e| self.failed("writing", key, &e))
    }

    fn create(&self, key: &str, content: &[u8]) -> Result<bool, Failure> {
        self.write_new(key, content)
            .map_err(|e| self.failed("writing", key, &e))
    }

    fn try_condition(&self, key: &str, content: &[u8]) -> Result<Condition, Failure> {
        if self.condition.get() == Condition::Kept {
            match self.write(key, content, true) {
                Ok(()) => self.condition.set(Condition::Ignored),
                Err(e) if e.kind() == ErrorKind::ConditionNotMatch => {}
                Err(e) if refuses_conditions(&e) => self.condition.set(Condition::Refused),
                Err(e) => return Err(self.failed("writing", key, &e)),
            }
        }
        Ok(self.condition.get())
    }

    fn mark(&self, directory: &str, name: &str) -> Result<bool, Failure> {
        let key = key_in(directory, &format!("{OWN}{}~{name}", self.attempt.run));
        self.create(&key, b"")
    }

    fn remove(&self, key: &str) -> Result<(), Failure> {
        self.handle
            .block_on(self.operator.delete(key))
            .map_err(|e| self.failed("removing", key, &e))
    }

    fn own(&self, directory: &str) -> Result<Vec<Own>, Failure> {
        let prefix = key_in(directory, OWN);
        let listed = self
            .handle
            .block_on(self.operator.list(&prefix))
            .map_err(|e| self.failed("listing", &prefix, &e))?;
        Ok(listed
            .into_iter()
            .filter(|e| e.metadata().is_file())
            .map(|e| Own {
                key: key_in(directory, e.name()),
                modified: time(e.metadata()),
                alive: None,
            })
            .collect())
    }

    /// An upload that was not completed is no object, but its parts are kept. Where the store does
    /// not let them be listed, its own rule for incomplete uploads must remove them.
    fn abort_uploads(
        &self,
        directory: &str,
        dead: &(dyn Fn(&OpenUpload) -> bool + Sync),
    ) -> Result<u64, Failure> {
        let Some(uploads) = &self.uploads else {
            return Ok(0);
        };
        let aborted = self.handle.block_on(uploads.abort_dead(directory, dead));
        Ok(aborted.unwrap_or_else(|said| {
            tracing::warn!(
                "uploads that were never completed can't be looked for in {}: allow s3:ListBucketMultipartUploads, s3:ListMultipartUploadParts and s3:AbortMultipartUpload, or set a lifecycle rule for them; it said: {said}",
                self.place
            );
            0
        }))
    }

    fn keep_alive(&self) {}
}

fn time(metadata: &opendal::Metadata) -> Option<DateTime<Utc>> {
    let seconds = metadata.last_modified()?.into_inner().as_second();
    DateTime::from_timestamp(seconds, 0)
}

async fn stream(operator: &Operator, key: &str) -> opendal::Result<BufferStream> {
    operator.reader(key).await?.into_stream(..).await
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// Stored, and removed unless it is published.
    Closed,
    /// Stored, or there before: only what is read back tells.
    Doubtful,
    Published,
}

struct ObjectUpload {
    operator: Operator,
    handle: Handle,
    place: String,
    key: String,
    condition: Known,
    limits: Limits,
    part: u64,
    /// Parts go one at a time.
    sparing: bool,
    sent: u64,
    writer: Option<Writer>,
    state: State,
}

impl ObjectUpload {
    fn failed(&self, doing: &str, error: &opendal::Error) -> Failure {
        failure(&self.place, doing, &self.key, error)
    }

    fn writer(&mut self) -> Result<&mut Writer, Failure> {
        if self.writer.is_none() {
            let parallel = if !self.sparing && self.part <= self.limits.parallel_up_to {
                2
            } else {
                1
            };
            let open = self
                .operator
                .writer_with(&self.key)
                .if_not_exists(self.condition.get() != Condition::Refused)
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
            .ok_or_else(|| Failure::new(Reason::StoreFailed, "the upload is closed"))
    }
}

impl Upload for ObjectUpload {
    fn expect(&mut self, bytes: u64) {
        self.part = self.limits.part(Some(bytes));
    }

    fn spare_memory(&mut self) {
        self.part = self.limits.smallest;
        self.sparing = true;
    }

    fn write(&mut self, data: &[u8]) -> Result<(), Failure> {
        self.sent += data.len() as u64;
        if self.sent > self.part * self.limits.parts {
            return Err(Failure::new(
                Reason::ArtefactTooLarge,
                format!(
                    "{} in {} is larger than {} parts of {} bytes, which is all that fits one object here: compress it (spec.compression), or back up fewer databases in one object (spec.source.databases)",
                    self.key, self.place, self.limits.parts, self.part
                ),
            ));
        }
        let handle = self.handle.clone();
        let data = data.to_vec();
        let written = handle.block_on(self.writer()?.write(data));
        written.map_err(|e| self.failed("writing", &e))
    }

    fn close(&mut self) -> Result<(), Failure> {
        let handle = self.handle.clone();
        // What the store does not look at itself is looked at before.
        if self.condition.get() != Condition::Kept {
            let taken = handle.block_on(self.operator.exists(&self.key));
            if taken.map_err(|e| self.failed("completing", &e))? {
                return Err(Failure::new(
                    Reason::AlreadyExists,
                    format!(
                        "completing {} in {} failed: the object exists already; it is left alone: run again",
                        self.key, self.place
                    ),
                ));
            }
        }
        let closed = handle.block_on(self.writer()?.close());
        match closed {
            Ok(_) => {
                self.state = State::Closed;
                Ok(())
            }
            // A first answer may have been lost, and the request sent again met what the first one made.
            Err(e)
                if e.kind() == ErrorKind::ConditionNotMatch
                    && self.stored_size() == Some(self.sent) =>
            {
                self.state = State::Doubtful;
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
            State::Doubtful | State::Published => {}
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
    let says = |words: &[&str]| words.iter().any(|w| lower.contains(w));
    let (reason, remedy) = match error.kind() {
        _ if says(&["requesttimetooskewed", "requestexpired"]) => (
            Reason::ClockSkewed,
            "the clocks of this node and of the store differ by more than the store allows: correct the node's (NTP), or the store's".to_owned(),
        ),
        _ if says(&["status: 507", "insufficientstorage", "storagefull", "quotaexceeded", "insufficientcapacity"]) => (
            Reason::NoSpace,
            "the store is full, or its quota is: free space there, or keep less (EXPIREAT, spec.retention)".to_owned(),
        ),
        _ if says(&["expiredtoken", "tokenrefreshrequired"]) => (
            Reason::PermissionDenied,
            "the session token has expired: renew it in the Secret of spec.destination.s3.credentialsSecretRef".to_owned(),
        ),
        ErrorKind::ConditionNotMatch => (Reason::AlreadyExists, "the object exists already".to_owned()),
        // S3's and Azure's words for an object that has to be brought back first.
        _ if ["invalidobjectstate", "blobarchived"].iter().any(|w| lower.contains(w)) => (
            ARCHIVED,
            "the object is in an archive class: bring it back first".to_owned(),
        ),
        ErrorKind::PermissionDenied => (
            Reason::PermissionDenied,
            "the store refuses: check keys (spec.destination.s3.credentialsSecretRef) and that they may list, read, write and delete there".to_owned(),
        ),
        _ if lower.contains("nosuchbucket") => (
            Reason::DestinationNotFound,
            "the bucket does not exist: create it, or correct spec.destination.s3.bucket".to_owned(),
        ),
        ErrorKind::NotFound => (Reason::NotFound, "the object does not exist".to_owned()),
        ErrorKind::RateLimited => (Reason::RateLimited, "the store asks for fewer requests: run at another time".to_owned()),
        ErrorKind::ConfigInvalid => (Reason::InvalidSettings, "correct spec.destination".to_owned()),
        _ if ["signaturedoesnotmatch", "invalidaccesskeyid", "accessdenied"].iter().any(|w| lower.contains(w)) => (
            Reason::PermissionDenied,
            "the store refuses the keys: check spec.destination.s3.credentialsSecretRef".to_owned(),
        ),
        _ if ["error sending request", "dns", "connect", "timeout", "timed out"].iter().any(|w| lower.contains(w)) => (
            Reason::StoreUnreachable,
            "the store does not answer: check spec.destination.s3.endpoint, NetworkPolicy and certificates".to_owned(),
        ),
        _ if lower.contains("notimplemented") => (
            Reason::StoreFailed,
            "the store does not know this request".to_owned(),
        ),
        _ => (Reason::StoreFailed, "look at the store's health".to_owned()),
    };
    let message = format!("{doing} {key} in {place} failed: {remedy}; it said: {said}");
    if reason == Reason::InvalidSettings {
        return Failure::settings(message);
    }
    Failure::at(exit::STORE, reason, message)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn parts_grow_so_that_ten_thousand_suffice() {
        const GB: u64 = 1_000_000_000;
        for expected in [0, GB, 50 * GB, 100 * GB, 200 * GB, 234 * GB] {
            let part = LIMITS.part(Some(expected));
            assert!(
                part * LIMITS.parts >= expected + expected / 10,
                "{expected}"
            );
            // In flight and being filled.
            let parallel = if part <= LIMITS.parallel_up_to { 2 } else { 1 };
            assert!(part * (parallel + 1) <= 52 << 20, "{expected}: {part}");
        }
        assert_eq!(LIMITS.part(Some(GB)), LIMITS.smallest);
        assert!(LIMITS.part(None) * LIMITS.parts > 250 * GB);
    }

    #[test]
    fn an_artefact_beyond_the_limit_is_refused_and_leaves_nothing() {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .unwrap();
        let handle = runtime.handle().clone();
        let attempt = Attempt {
            run: "r-28950870".into(),
            pod: "p".into(),
            nonce: "n".into(),
        };
        let store = {
            let _inside = handle.enter();
            let memory = Operator::new(opendal::services::Memory::default()).unwrap();
            let limits = Limits {
                smallest: 1000,
                largest: 1000,
                parallel_up_to: 0,
                parts: 3,
            };
            ObjectStore {
                limits,
                ..ObjectStore::new(memory, "memory".into(), attempt)
            }
        };
        let mut upload = store.begin("d/x.sql").unwrap();
        for _ in 0..3 {
            upload.write(&[1; 1000]).unwrap();
        }
        let failure = upload.write(&[1]).unwrap_err();
        assert_eq!(
            (failure.exit_code, failure.reason.as_str()),
            (4, "ArtefactTooLarge")
        );
        assert!(failure.message.contains("d/x.sql") && failure.message.contains("3 parts"));
        drop(upload);
        assert_eq!(store.list("d").unwrap(), []);
    }
}
