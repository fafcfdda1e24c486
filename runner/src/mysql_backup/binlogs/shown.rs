//! The transactions of a span of time as text, from what is stored: proven first, then decoded by the family's own program.

use std::io::{self, Write};

use binlog::reread::{self, Reading};
use binlog::span::{Mark, Marker, Span};
use crds::download::{BinlogHeader, TextPart};
use crds::report::Reason;

use super::reading::{next, open};
use super::span::{Part, StoredSpan, prove};
use super::time;
use crate::context::Context;
use crate::database::mysql::decoder::{self, Named, Start, Text};
use crate::database::mysql::source::Flavour;
use crate::failure::Failure;
use crate::stream::checksum::BUFFER;

/// Bytes of text that are sent at once.
const CHUNK: usize = 64 * 1024;

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// From when to when.
    pub(crate) span: Span,
    /// The end is that of what is stored.
    pub(crate) open_ended: bool,
    /// Of what.
    pub(crate) named: Named,
}

/// Writes a header, the text in pieces, and the piece without length that ends it.
///
/// # Errors
/// Nothing is stored, something is not what was stored, there is no program that decodes it, or nobody reads on.
pub(crate) fn show(context: &Context, wanted: &Wanted, out: &mut dyn Write) -> Result<(), Failure> {
    context.settings.check()?;
    let found = prove(context, wanted.span, wanted.open_ended)?;
    let header = BinlogHeader {
        transactions: found.transactions,
        segments: found.parts.len() as u64,
        bytes: found.parts.iter().map(|p| p.stop - p.start).sum(),
        warnings: found.warnings.clone(),
    };
    line(out, &header)?;
    let mut chunks = Chunks {
        out,
        text: Vec::with_capacity(CHUNK),
    };
    let mut text = Text::new(&context.scrub, &wanted.named, &mut chunks);
    let mut decoders = [None, None];
    for part in &found.parts {
        let logs = flavour(part);
        let known = &mut decoders[usize::from(logs == Flavour::MySql)];
        let decoder = match known {
            Some(decoder) => decoder,
            None => known.insert(decoder::find(&context.settings, logs)?),
        };
        let head = reread::head(&part.stored.segment).ok_or_else(|| {
            Failure::new(
                Reason::Damaged,
                format!(
                    "segment {} does not say how its file begins",
                    part.stored.key
                ),
            )
        })?;
        text.begin(head.len() as u64, part.start);
        let feed = |out: &mut dyn Write, begun: &mut dyn FnMut(Start)| {
            feed(context, &found, part, &head, out, begun)
        };
        decoder::decode(context, decoder, &feed, &mut text)?;
    }
    let shown = text.shown;
    chunks.flush().map_err(gone)?;
    line(
        chunks.out,
        &TextPart {
            length: 0,
            transactions: Some(shown),
        },
    )
}

/// The family of a segment's server: MySQL's have a UUID.
fn flavour(part: &Part) -> Flavour {
    match part.stored.segment.server.server_uuid.is_empty() {
        true => Flavour::MariaDb,
        false => Flavour::MySql,
    }
}

/// Gives the bytes of a part, each event checked again before it goes, and says where transactions begin.
fn feed(
    context: &Context,
    found: &StoredSpan,
    part: &Part,
    head: &[u8],
    out: &mut dyn Write,
    begun: &mut dyn FnMut(Start),
) -> Result<(), Failure> {
    let (segment, key) = (&part.stored.segment, &part.stored.key);
    let altered = |astray| {
        Failure::new(
            Reason::Damaged,
            format!("segment {key}: {astray}, though it was whole when it was read first"),
        )
    };
    let mut bytes = open(context, found.store.as_ref(), &part.stored)?;
    let mut reading = Reading::new(segment).map_err(altered)?;
    let mut marker = Marker::default();
    let (mut buffer, mut at) = (vec![0; BUFFER], segment.from);
    if out.write_all(head).is_err() {
        return Ok(());
    }
    loop {
        context.check()?;
        let n = next(&mut bytes, &mut buffer, key)?;
        if n == 0 {
            return reading.end().map_err(altered);
        }
        let mut told = vec![];
        reading
            .feed(&buffer[..n], &mut |check, ended| {
                let moment = check.time();
                marker.mark(check, ended, &mut |mark| {
                    let (position, title) = match mark {
                        Mark::Begins { position, gtid } => {
                            let name =
                                gtid.map_or("without GTID".to_owned(), |g| format!("GTID {g}"));
                            let place = format!("{}:{position}", segment.file);
                            let title =
                                format!("# transaction {name} at {place} of {}", time(moment));
                            (position, Some(title))
                        }
                        Mark::Outside { position } => (position, None),
                        Mark::Ends(_) => return,
                    };
                    if (part.start..part.stop).contains(&position) {
                        told.push(Start { position, title });
                    }
                });
            })
            .map_err(altered)?;
        // Said before the program has the last byte of it.
        told.into_iter().for_each(&mut *begun);
        let (from, to) = (at, at + n as u64);
        at = to;
        let (start, stop) = (from.max(part.start), to.min(part.stop));
        let place_of = |position: u64| usize::try_from(position - from).unwrap_or(n);
        if start < stop
            && out
                .write_all(&buffer[place_of(start)..place_of(stop)])
                .is_err()
        {
            // The program ended: its own words say why.
            return Ok(());
        }
    }
}

/// Text in pieces, each behind a line with its length.
struct Chunks<'a> {
    out: &'a mut dyn Write,
    text: Vec<u8>,
}

impl Write for Chunks<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.text.extend_from_slice(bytes);
        if self.text.len() >= CHUNK {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.text.is_empty() {
            return Ok(());
        }
        let chunk = TextPart {
            length: self.text.len() as u64,
            transactions: None,
        };
        serde_json::to_writer(&mut *self.out, &chunk)?;
        self.out.write_all(b"\n")?;
        self.out.write_all(&self.text)?;
        self.text.clear();
        self.out.flush()
    }
}

fn line(out: &mut dyn Write, value: &impl serde::Serialize) -> Result<(), Failure> {
    serde_json::to_writer(&mut *out, value)
        .map_err(io::Error::from)
        .and_then(|()| out.write_all(b"\n"))
        .and_then(|()| out.flush())
        .map_err(gone)
}

fn gone(error: io::Error) -> Failure {
    Failure::new(Reason::ReaderGone, format!("the reader went away: {error}"))
}
