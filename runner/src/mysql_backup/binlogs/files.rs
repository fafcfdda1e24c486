//! The server's own files of a span of time, joined from what is stored: byte for byte, but for the bit in a file's first event
//! that says it is in use.

use std::collections::HashSet;
use std::io::{self, Read};
use std::sync::Arc;

use binlog::reread;
use binlog::span::Span;
use chrono::DateTime;
use crds::download::{BinlogFile, BinlogFiles, Header};
use crds::report::Reason;
use sha2::{Digest as _, Sha256};

use super::reading::{next, open};
use super::span::{Found, Scope, find};
use super::stored::StoredSegment;
use crate::context::Context;
use crate::failure::Failure;
use crate::store::Store;
use crate::stream::checksum::{BUFFER, Stored, hex};

/// A file, as far as it is stored.
struct File {
    name: String,
    /// What stands before its bytes, where they do not begin with the file's own beginning.
    head: Vec<u8>,
    /// Its segments, each where the one before it ends.
    segments: Vec<StoredSegment>,
}

/// Which files there are, each read and compared.
///
/// # Errors
/// Nothing is stored, or something is not what was stored.
pub(crate) fn list(
    context: &Context,
    span: Span,
    open_ended: bool,
) -> Result<BinlogFiles, Failure> {
    context.settings.check()?;
    let mut found = find(context, span, open_ended, Scope::Files)?;
    let mut files = vec![];
    for file in of(&found)? {
        if !file.head.is_empty() {
            found.warnings.push(format!(
                "{}: what the server's file begins with is not stored any more; its description is put in front, so that programs read it",
                file.name
            ));
        }
        let mut bytes = Bytes::new(context, &found.store, &file);
        let (mut hash, mut length) = (Sha256::new(), 0);
        let mut buffer = vec![0; BUFFER];
        loop {
            let n = next(&mut bytes, &mut buffer, &file.name)?;
            if n == 0 {
                break;
            }
            hash.update(&buffer[..n]);
            length += n as u64;
        }
        files.push(BinlogFile {
            name: file.name,
            length,
            sha256: hex(&hash.finalize()),
        });
    }
    Ok(BinlogFiles {
        files,
        warnings: found.warnings,
    })
}

/// One of them, as [`list`] gave its length and sum.
///
/// # Errors
/// It is not there any more, or the store refuses.
pub(crate) fn one<'a>(
    context: &'a Context,
    span: Span,
    (name, expected): (&str, &Stored),
    offset: u64,
) -> Result<(Header, Box<dyn Read + 'a>), Failure> {
    context.settings.check()?;
    let found = find(context, span, true, Scope::Files)?;
    let file = of(&found)?.into_iter().find(|file| file.name == name);
    let file = file.ok_or_else(|| {
        Failure::new(
            Reason::ArtefactGone,
            format!("{name} is not stored any more: list what is"),
        )
    })?;
    let header = Header {
        key: format!("binary log {name}"),
        name: name.to_owned(),
        length: expected.bytes,
        offset,
        sha256: expected.sha256.clone(),
        warnings: vec![],
    };
    Ok((header, Box::new(Bytes::new(context, &found.store, &file))))
}

/// The files of segments in order. One that was begun at another moment under the same name bears that moment in its own.
fn of(found: &Found) -> Result<Vec<File>, Failure> {
    let follows = |a: &StoredSegment, b: &StoredSegment| {
        let (a, b) = (&a.segment, &b.segment);
        (&a.file, a.created, &a.server, a.to) == (&b.file, b.created, &b.server, b.from)
    };
    let (mut files, mut names) = (vec![], HashSet::new());
    for segments in found.segments.chunk_by(follows) {
        let Some(first) = segments.first().map(|s| &s.segment) else {
            continue;
        };
        let mut name = first.file.clone();
        let mut head = vec![];
        if first.from > 0 {
            name = format!("{name}.from-{}", first.from);
            head = reread::head(first).ok_or_else(|| {
                Failure::new(
                    Reason::Damaged,
                    format!(
                        "segment {} does not say how its file begins",
                        segments[0].key
                    ),
                )
            })?;
        }
        if names.contains(&name) {
            let begun = DateTime::from_timestamp(first.created.into(), 0).unwrap_or_default();
            name = format!("{name}.{}", begun.format("%Y%m%dT%H%M%SZ"));
        }
        while !names.insert(name.clone()) {
            name.push_str(".other");
        }
        files.push(File {
            name,
            head,
            segments: segments.to_vec(),
        });
    }
    Ok(files)
}

/// The bytes of a file, each segment compared as it is read.
struct Bytes<'a> {
    context: &'a Context,
    store: Arc<dyn Store>,
    /// What is given next.
    ready: Vec<u8>,
    given: usize,
    /// Segments that come, the next one last.
    ahead: Vec<StoredSegment>,
    current: Option<(Box<dyn Read + Send>, StoredSegment, Progress)>,
}

/// How far a segment is.
struct Progress {
    hash: Sha256,
    length: u64,
}

impl<'a> Bytes<'a> {
    fn new(context: &'a Context, store: &Arc<dyn Store>, file: &File) -> Self {
        Self {
            context,
            store: Arc::clone(store),
            ready: file.head.clone(),
            given: 0,
            ahead: file.segments.iter().rev().cloned().collect(),
            current: None,
        }
    }

    /// Reads on; false at the end.
    fn fill(&mut self) -> Result<bool, Failure> {
        loop {
            self.context.check()?;
            let Some((bytes, stored, so_far)) = &mut self.current else {
                let Some(stored) = self.ahead.pop() else {
                    return Ok(false);
                };
                let bytes = open(self.context, self.store.as_ref(), &stored)?;
                let so_far = Progress {
                    hash: Sha256::new(),
                    length: 0,
                };
                self.current = Some((bytes, stored, so_far));
                continue;
            };
            self.ready.resize(BUFFER, 0);
            let n = next(bytes, &mut self.ready, &stored.key)?;
            self.ready.truncate(n);
            self.given = 0;
            if n > 0 {
                so_far.hash.update(&self.ready);
                so_far.length += n as u64;
                return Ok(true);
            }
            let segment = &stored.segment;
            let sum = hex(&so_far.hash.clone().finalize());
            if so_far.length != segment.to - segment.from || sum != segment.sha256 {
                return Err(Failure::new(
                    Reason::Damaged,
                    format!(
                        "segment {} has {} bytes with SHA-256 {sum} instead of {} with {}",
                        stored.key,
                        so_far.length,
                        segment.to - segment.from,
                        segment.sha256
                    ),
                ));
            }
            self.current = None;
        }
    }
}

impl Read for Bytes<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.given == self.ready.len() && !self.fill().map_err(io::Error::other)? {
            return Ok(0);
        }
        let rest = &self.ready[self.given..];
        let n = rest.len().min(buffer.len());
        buffer[..n].copy_from_slice(&rest[..n]);
        self.given += n;
        Ok(n)
    }
}
