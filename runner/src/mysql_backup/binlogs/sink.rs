//! Segments on their way to the store, one at a time: compressed, encrypted, hashed, stored, read back, and given their number by
//! a manifest that is created where none is. That decides between two runs at once: one of them is refused, and nothing that
//! it stored counts.

use std::io::{self, Write};
use std::sync::atomic::Ordering;

use binlog::{Count, Link, Segment, Sink};
use crds::parts::CompressionType;
use crds::report::Reason;

use super::place::{KnownSegment, SegmentPlace};
use super::stored::{SCHEMA, StoredSegment};
use crate::context::Context;
use crate::failure::Failure;
use crate::store::{self, Upload, read_back};
use crate::stream::checksum::Meter;
use crate::stream::codec::{Encoder, Encryption, codec_of};

/// Stores segments.
pub(super) struct SegmentStore<'a> {
    context: &'a Context,
    place: &'a SegmentPlace,
    /// In the keys of bytes: no other attempt has it.
    tag: String,
    /// How often it was said where to go on.
    times: u32,
    /// The number of the next.
    next: u64,
    /// What is to stand before the next.
    before: Option<KnownSegment>,
    open: Option<Open<'a>>,
    /// What was stored.
    pub(super) count: Count,
    /// Its bytes in the store.
    pub(super) stored_bytes: u64,
    /// The first that was stored.
    pub(super) first: Option<Segment>,
    /// Gaps: the segment behind each, and the last before it.
    pub(super) gaps: Vec<(Segment, Option<Segment>)>,
}

struct Open<'a> {
    key: String,
    encoder: Encoder<Uploading<'a>>,
}

struct Uploading<'a> {
    context: &'a Context,
    upload: Box<dyn Upload>,
    meter: Meter,
}

impl Write for Uploading<'_> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.upload.write(data).map_err(io::Error::other)?;
        self.meter.add(data);
        let stored = &self.context.reporter.counters.stored;
        stored.fetch_add(data.len() as u64, Ordering::Relaxed);
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> SegmentStore<'a> {
    /// Stores nothing yet.
    pub(super) fn new(context: &'a Context, place: &'a SegmentPlace) -> Self {
        Self {
            context,
            place,
            tag: String::new(),
            times: 0,
            next: 0,
            before: None,
            open: None,
            count: Count::default(),
            stored_bytes: 0,
            first: None,
            gaps: vec![],
        }
    }

    /// Goes on behind this one, with this number.
    pub(super) fn go_on(&mut self, next: u64, before: Option<KnownSegment>) {
        self.next = next;
        self.before = before;
        self.open = None;
        // What this run stored under a number without knowing what became of it is not in the way.
        self.times += 1;
        let (pod, times) = (self.context.attempt().pod, self.times.to_string());
        self.tag = crds::names::short_hash(&[&pod, &self.context.nonce, &times], 8);
    }

    fn start(&mut self) -> Result<(), Failure> {
        self.context.check()?;
        let settings = &self.context.settings;
        let codec = match settings.compression.type_ {
            CompressionType::Zstd => ".zst",
            CompressionType::Gzip => ".gz",
            CompressionType::None => "",
        };
        let age = if settings.recipients.is_empty() {
            ""
        } else {
            ".age"
        };
        let key = self
            .place
            .bytes(self.next, &self.tag, &format!("{codec}{age}"));
        let mut upload = self.place.store.begin(&key)?;
        // Few segments have more than one part.
        upload.spare_memory();
        let uploading = Uploading {
            context: self.context,
            upload,
            meter: Meter::default(),
        };
        let encryption = Encryption::to(&settings.recipients);
        let encoder = Encoder::new(uploading, codec_of(settings.compression), &encryption)
            .map_err(crate::stream::pipeline::encoding)?;
        self.open = Some(Open { key, encoder });
        Ok(())
    }

    /// Stores what has come as this segment.
    fn store(&mut self, segment: &Segment) -> Result<(), Failure> {
        let Some(Open { key, encoder }) = self.open.take() else {
            return Ok(());
        };
        let uploading = encoder
            .finish()
            .map_err(crate::stream::pipeline::encoding)?;
        let (mut upload, sent) = (uploading.upload, uploading.meter.finish());
        upload.close()?;
        let reporter = &self.context.reporter;
        let read_back = read_back(reporter, upload.as_mut(), &key, &sent)?;
        self.context.check()?;
        self.stands()?;
        let settings = &self.context.settings;
        let stored = StoredSegment {
            schema: SCHEMA.to_owned(),
            runner_version: crds::VERSION.to_owned(),
            cluster_id: settings.identity.cluster_id.clone(),
            object: settings.identity.object.clone(),
            run: settings.identity.run.clone(),
            stored_at: crds::time::rfc3339(self.context.clock.now()),
            key,
            compression: settings.compression.type_,
            encryption: match settings.recipients.is_empty() {
                true => String::new(),
                false => "age".to_owned(),
            },
            stored_bytes: sent.bytes,
            stored_sha256: sent.sha256,
            read_back,
            segment: segment.clone(),
        };
        let text = stored.text()?;
        if !upload.publish()? {
            return Err(self.taken());
        }
        let manifest = self.place.manifest(self.next);
        match store::create_checked(self.place.store.as_ref(), &manifest, &text) {
            Ok(true) => {}
            // The bytes are nobody's: what names them is another's, or was never written whole.
            Ok(false) => {
                let _ = self.place.store.remove(&stored.key);
                return Err(self.taken());
            }
            // Whether the manifest was written is not known: what it names stays.
            Err(e) => return Err(e),
        }
        self.note(&stored);
        self.before = Some(KnownSegment {
            number: self.next,
            text,
            stored,
        });
        self.next += 1;
        Ok(())
    }

    /// The segment that the next one goes on from is still there as this run knows it: where a store does not keep to «only if
    /// nothing is there», another run may have written over it.
    ///
    /// # Errors
    /// It is not.
    pub(super) fn stands(&self) -> Result<(), Failure> {
        let Some(before) = &self.before else {
            return Ok(());
        };
        let key = self.place.manifest(before.number);
        if store::holds(self.place.store.as_ref(), &key, &before.text)? {
            return Ok(());
        }
        Err(self.taken())
    }

    /// The last segment that is stored.
    pub(super) fn newest(&self) -> Option<&Segment> {
        self.before.as_ref().map(|before| &before.stored.segment)
    }

    fn taken(&self) -> Failure {
        Failure::new(
            Reason::AlreadyExists,
            format!(
                "another run stores segments of this object, number {} among them: what this one has beyond that does not count; the next run goes on behind what is stored",
                self.next
            ),
        )
    }

    fn note(&mut self, stored: &StoredSegment) {
        let segment = &stored.segment;
        self.count.segments += 1;
        self.count.bytes += segment.to - segment.from;
        self.count.transactions += segment.transactions;
        self.stored_bytes += stored.stored_bytes;
        if let Link::Gap { .. } = segment.link {
            let before = self.before.as_ref().map(|b| b.stored.segment.clone());
            self.gaps.push((segment.clone(), before));
        }
        self.first.get_or_insert_with(|| segment.clone());
    }
}

impl Sink for SegmentStore<'_> {
    fn begin(&mut self, _file: &str, _from: u64) -> io::Result<()> {
        self.start().map_err(io::Error::other)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.context.check().map_err(io::Error::other)?;
        let counters = &self.context.reporter.counters;
        counters
            .raw
            .fetch_add(bytes.len() as u64, Ordering::Relaxed);
        match &mut self.open {
            Some(open) => open.encoder.write_all(bytes),
            None => Err(io::Error::other("no segment was begun")),
        }
    }

    fn end(&mut self, segment: &Segment) -> io::Result<()> {
        self.store(segment).map_err(io::Error::other)
    }

    fn abandon(&mut self) {
        // Dropped before it was published, an upload leaves nothing.
        self.open = None;
    }
}
