//! The segments that are stored of a span of time, proven: the chain from their manifests, then every byte of each. What of the
//! span may be missing is said.

use std::sync::Arc;

use binlog::chain::{self, Gap};
use binlog::reread::Reading;
use binlog::span::{Kept, Mark, Marker, Span, kept};
use crds::report::Reason;

use super::place::SegmentPlace;
use super::reading::{next, open};
use super::stored::StoredSegment;
use super::time;
use crate::context::Context;
use crate::failure::Failure;
use crate::store::Store;
use crate::stream::checksum::BUFFER;

/// Manifests are read back to so many seconds before a span: a clock may have been set back.
const BEFORE: u32 = 86_400;
/// So many of what may be missing are told each by itself.
const TOLD: usize = 20;

/// A segment, and where in its file the transactions of the span lie.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    /// The segment.
    pub(crate) stored: StoredSegment,
    /// Where the first begins.
    pub(crate) start: u64,
    /// Where the last ends.
    pub(crate) stop: u64,
}

/// What is stored of a span.
pub(crate) struct StoredSpan {
    /// Where it is stored.
    pub(crate) store: Arc<dyn Store>,
    /// Segments that hold transactions of it, in order.
    pub(crate) parts: Vec<Part>,
    /// How many transactions.
    pub(crate) transactions: u64,
    /// What whoever reads them has to know.
    pub(crate) warnings: Vec<String>,
}

/// Segments that may hold transactions of a span, by their manifests.
pub(crate) struct Found {
    /// Where they are stored.
    pub(crate) store: Arc<dyn Store>,
    /// They, in order.
    pub(crate) segments: Vec<StoredSegment>,
    /// What whoever reads them has to know.
    pub(crate) warnings: Vec<String>,
}

/// How much is asked for beside a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Nothing.
    Span,
    /// All of the files that hold something of it.
    Files,
}

/// Finds what is stored of a span of the run's object; `open_ended` where its end is that of what is stored.
///
/// # Errors
/// Nothing is stored of the object's binary logs, or the store refuses.
pub(crate) fn find(
    context: &Context,
    span: Span,
    open_ended: bool,
    scope: Scope,
) -> Result<Found, Failure> {
    let store = context.open_store()?;
    let mut warnings = vec![];
    let from = match scope {
        Scope::Span => span.from,
        // A file may have been begun long before.
        Scope::Files => 0,
    };
    let (all, seen) = manifests(context, &store, from, &mut warnings)?;
    let segments: Vec<binlog::Segment> = all.iter().map(|s| s.segment.clone()).collect();
    let chain = chain::chain(&segments);
    let known = |digest: &str| segments.iter().any(|s| s.digest() == digest);
    let lost = seen.iter().any(|seen| !known(&seen.last));
    if lost {
        warnings.push(
            "the segment that was stored last is not there any more, or its manifest was altered: what is stored ends earlier than it did"
                .to_owned(),
        );
    }
    let seen = seen.iter().filter(|seen| known(&seen.last));
    let kept = kept(&segments, &chain, span, seen.map(|s| s.moment).max());
    tell(&kept, open_ended, &mut warnings);
    let of_one = |a: &usize, b: &usize| {
        let (a, b) = (&segments[*a], &segments[*b]);
        (&a.file, a.created, &a.server) == (&b.file, b.created, &b.server)
    };
    let places: Vec<usize> = match scope {
        Scope::Span => kept.segments,
        Scope::Files => {
            let all = chain.windows.iter().flat_map(|w| w.segments.iter());
            let wanted = |place: &&usize| kept.segments.iter().any(|kept| of_one(kept, place));
            all.filter(wanted).copied().collect()
        }
    };
    Ok(Found {
        store,
        segments: places.iter().map(|place| all[*place].clone()).collect(),
        warnings,
    })
}

/// Finds what is stored of a span and compares all of it.
///
/// # Errors
/// As [`find`]; something is not what was stored.
pub(crate) fn prove(
    context: &Context,
    span: Span,
    open_ended: bool,
) -> Result<StoredSpan, Failure> {
    let Found {
        store,
        segments,
        warnings,
    } = find(context, span, open_ended, Scope::Span)?;
    context.reporter.phase("ReadingBack");
    let (mut parts, mut transactions) = (vec![], 0);
    for stored in segments {
        let (range, count) = read_again(context, store.as_ref(), &stored, span)?;
        transactions += count;
        if let Some((start, stop)) = range {
            parts.push(Part {
                stored,
                start,
                stop,
            });
        }
    }
    Ok(StoredSpan {
        store,
        parts,
        transactions,
        warnings,
    })
}

/// All manifests of the object's segments back to the span, in order, and what was seen last.
fn manifests(
    context: &Context,
    store: &Arc<dyn Store>,
    from: u32,
    warnings: &mut Vec<String>,
) -> Result<(Vec<StoredSegment>, Vec<super::stored::Seen>), Failure> {
    let oldest = from.saturating_sub(BEFORE);
    let enough = &mut |found: &[StoredSegment]| {
        found
            .last()
            .is_some_and(|s| s.segment.last != 0 && s.segment.last < oldest)
    };
    let (mut all, mut seen, mut unreadable) = (vec![], vec![], vec![]);
    for place in SegmentPlace::of_object(context, store)? {
        let (mut found, damaged) = place.backwards(context, enough)?;
        found.reverse();
        all.extend(found);
        unreadable.extend(damaged);
        seen.extend(place.seen()?);
    }
    if all.is_empty() && unreadable.is_empty() {
        let object = &context.settings.identity.object;
        return Err(Failure::new(
            Reason::ArtefactNotFound,
            format!(
                "no binary logs of {} {} are stored in {}: set spec.binlogs and wait for the first pull",
                object.kind,
                object.name,
                store.describe()
            ),
        ));
    }
    several(&unreadable, warnings, |what| {
        format!("{what}: it counts as lost")
    });
    Ok((all, seen))
}

/// Says each of the first, and how many more there are.
fn several<T>(all: &[T], warnings: &mut Vec<String>, words: impl Fn(&T) -> String) {
    warnings.extend(all.iter().take(TOLD).map(words));
    if let Some(more) = all.len().checked_sub(TOLD).filter(|more| *more > 0) {
        warnings.push(format!("and {more} more of these"));
    }
}

/// What of the span may be missing.
fn tell(kept: &Kept, open_ended: bool, warnings: &mut Vec<String>) {
    if let Some(begins) = kept.begins {
        warnings.push(format!(
            "what is stored begins at {}: what was committed before is not here",
            time(begins)
        ));
    }
    several(&kept.gaps, warnings, |gap: &Gap| {
        format!(
            "between {} and {} events may be missing: {}",
            time(gap.from),
            time(gap.to),
            gap.cause.words()
        )
    });
    if let Some(ends) = kept.ends.filter(|_| !open_ended) {
        warnings.push(format!(
            "what is stored ends at {}: what was committed behind it is not here yet",
            time(ends)
        ));
    }
}

/// Reads a segment to its end; gives where in it the span's transactions lie, and their number.
fn read_again(
    context: &Context,
    store: &dyn Store,
    stored: &StoredSegment,
    span: Span,
) -> Result<(Option<(u64, u64)>, u64), Failure> {
    let (segment, key) = (&stored.segment, &stored.key);
    let altered = |astray| {
        Failure::new(
            Reason::Damaged,
            format!(
                "segment {key}: {astray}; ask for what lies before {} or behind {}",
                time(segment.first),
                time(segment.last)
            ),
        )
    };
    let mut bytes = open(context, store, stored)?;
    let mut reading = Reading::new(segment).map_err(altered)?;
    let (mut marker, mut range, mut count) = (Marker::default(), None::<(u64, u64)>, 0);
    let mut buffer = vec![0; BUFFER];
    loop {
        context.check()?;
        let n = next(&mut bytes, &mut buffer, key)?;
        if n == 0 {
            reading.end().map_err(altered)?;
            return Ok((range, count));
        }
        let each = &mut |mark: Mark<'_>| {
            if let Mark::Ends(transaction) = mark
                && transaction.is_in(span)
            {
                let start = range.map_or(transaction.from, |(start, _)| start);
                range = Some((start, transaction.to));
                count += 1;
            }
        };
        reading
            .feed(&buffer[..n], &mut |check, ended| {
                marker.mark(check, ended, each);
            })
            .map_err(altered)?;
    }
}
