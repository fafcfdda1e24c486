//! The first reading of an artefact: what was stored is compared, and what the dump would do is seen.

use crds::parts::Engine;
use crds::report::Reason;
use dump::{Frames, Section};
use load::{Sequential, Shape, Source, Survey};
use std::io::{self, Read};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::context::Context;
use crate::database::mysql::sql::{Found, Rewrite, Right, Script};
use crate::failure::Failure;
use crate::mysql_backup::artefacts;
use crate::mysql_backup::manifest::Manifest;
use crate::store::Store;
use crate::stream::checksum::{self, BUFFER, Meter, Stored};

/// The stored bytes on their way, measured.
#[derive(Clone)]
pub(super) struct Measured(Arc<Mutex<State>>);

struct State {
    inner: Box<dyn Read + Send>,
    meter: Meter,
    /// The store could not be read on.
    broken: Option<io::Error>,
    /// Counts what comes, for more than one reading.
    count: Arc<AtomicU64>,
}

impl Measured {
    pub(super) fn new(inner: Box<dyn Read + Send>) -> Self {
        Self::counted(inner, Arc::default())
    }

    /// The same, which counts what comes.
    pub(super) fn counted(inner: Box<dyn Read + Send>, count: Arc<AtomicU64>) -> Self {
        Self(Arc::new(Mutex::new(State {
            inner,
            meter: Meter::default(),
            broken: None,
            count,
        })))
    }

    /// Reads to the end and compares.
    ///
    /// # Errors
    /// They are not the bytes that were stored, or can't be read.
    pub(super) fn compare(&self, manifest: &Manifest) -> Result<(), Failure> {
        let rest = io::copy(&mut self.clone(), &mut io::sink());
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let meter = std::mem::take(&mut state.meter);
        let read = match (state.broken.take(), rest) {
            (Some(e), _) | (None, Err(e)) => Err(e),
            (None, Ok(_)) => Ok(meter.finish()),
        };
        let sent = Stored {
            bytes: manifest.stored_bytes,
            sha256: manifest.stored_sha256.clone(),
        };
        checksum::equal(&manifest.key, read, &sent)
    }
}

impl Read for Measured {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let n = match state.inner.read(buffer) {
            Ok(n) => n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => return Err(e),
            Err(e) => {
                state.broken = Some(e);
                return Err(io::Error::other("the store could not be read on"));
            }
        };
        state.count.fetch_add(n as u64, Ordering::Relaxed);
        state.meter.read(&buffer[..n])?;
        Ok(n)
    }
}

/// What a dump holds, and how several sessions can load it, or why the client has to.
type Seen = (Found, Result<Shape, &'static str>);

/// Reads the artefact once: its stored bytes are those of the manifest, and its dump holds this.
///
/// # Errors
/// They differ or can't be read, the key is missing or wrong, or what is in them is no dump.
pub(super) fn look(
    context: &Context,
    store: &dyn Store,
    manifest: &Manifest,
    (wish, without): (&Rewrite, &[Range<u64>]),
) -> Result<Seen, Failure> {
    compared(context, store, manifest, |stored| {
        read(context, manifest, stored, (wish, without))
    })
}

/// The same of what is loaded by its frames: of those that hold rows the stored bytes alone are read, as each of their statements
/// is looked at when it is loaded.
///
/// # Errors
/// As [`look`].
pub(super) fn look_at_frames(
    context: &Context,
    store: &dyn Store,
    manifest: &Manifest,
    (frames, wish, accounts): (&Frames, &Rewrite, bool),
) -> Result<Found, Failure> {
    compared(context, store, manifest, |stored| {
        read_frames(context, manifest, stored, (frames, wish, accounts))
    })
}

/// Reads the artefact, and compares the stored bytes.
fn compared<T>(
    context: &Context,
    store: &dyn Store,
    manifest: &Manifest,
    read: impl FnOnce(Box<dyn Read + Send>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let measured = Measured::new(artefacts::stored(store, manifest)?);
    let read = read(Box::new(measured.clone()));
    if let Err(e) = &read
        && context.check().is_err()
    {
        return Err(e.clone());
    }
    // Where they are not what was stored, that is why they can't be opened.
    measured.compare(manifest)?;
    read
}

fn read(
    context: &Context,
    manifest: &Manifest,
    stored: Box<dyn Read + Send>,
    (wish, without): (&Rewrite, &[Range<u64>]),
) -> Result<Seen, Failure> {
    // What is loaded by its frames is not loaded by its text.
    let plain = manifest.engine != Some(Engine::Native);
    let mut dump = artefacts::opened(context, manifest, stored)?;
    let mut script = Script::new(wish.clone()).without(without);
    let mut survey = Survey::default();
    let (mut buffer, mut out) = (vec![0; BUFFER], vec![]);
    loop {
        context.check()?;
        let n = match dump.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(not_read(manifest, e)),
        };
        out.clear();
        script.feed(&buffer[..n], &mut out);
        if plain {
            survey.feed(&out);
        }
    }
    out.clear();
    script.finish(&mut out);
    survey.feed(&out);
    let shape = survey.finish().and_then(|shape| match plain {
        true => Ok(shape),
        false => Err("is to be loaded by its frames, which this server or user does not allow"),
    });
    found(manifest, script).map(|found| (found, shape))
}

fn read_frames(
    context: &Context,
    manifest: &Manifest,
    stored: Box<dyn Read + Send>,
    (frames, wish, accounts): (&Frames, &Rewrite, bool),
) -> Result<Found, Failure> {
    let mut source = Sequential::new(artefacts::decrypted(context, manifest, stored)?);
    let compress = manifest.compress();
    let mut script = Script::new(wish.clone());
    let (mut rows, mut skipped, mut out) = (false, vec![], vec![]);
    for frame in frames.iter() {
        context.check()?;
        let wanted = match frame.section {
            Section::Data => frame.table.is_empty(),
            Section::Accounts | Section::Grants => accounts,
            _ => true,
        };
        rows |= frame.rows > 0;
        if wanted {
            let text = load::text_of_frame(&mut source, &frame, compress)
                .map_err(|e| not_read(manifest, e))?;
            out.clear();
            script.feed(&text, &mut out);
        } else {
            // Up to here, so that an end is asked for at each frame.
            source
                .read(frame.at, 0, &mut skipped)
                .map_err(|e| not_read(manifest, e))?;
        }
    }
    out.clear();
    script.finish(&mut out);
    let mut found = found(manifest, script)?;
    if rows {
        found.rights.insert(Right::Insert);
    }
    Ok(found)
}

fn found(manifest: &Manifest, script: Script) -> Result<Found, Failure> {
    let key = &manifest.key;
    script
        .found()
        .map_err(|what| Failure::new(Reason::Damaged, format!("{key} holds {what}")))
}

fn not_read(manifest: &Manifest, e: io::Error) -> Failure {
    e.downcast::<Failure>().unwrap_or_else(|e| {
        let key = &manifest.key;
        Failure::new(
            Reason::Damaged,
            format!("{key} can't be read to its end: {e}"),
        )
    })
}
