//! What is stored of a span of time: which segments hold it, where in each, and what of it may be missing. Pure.

use crate::chain::{Chain, Gap};
use crate::check::{Check, Ended};
use crate::gtid::Gtid;
use crate::segment::Segment;

/// From one second to another, in seconds since 1970 by the server's clock. The first is in it, the last is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first.
    pub from: u32,
    /// The one behind the last.
    pub to: u32,
}

/// What is stored of a span.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Places of the segments that may hold events of it, in order.
    pub segments: Vec<usize>,
    /// Where events of it may be missing.
    pub gaps: Vec<Gap>,
    /// The moment at which what is stored begins, where that is within the span or behind it.
    pub begins: Option<u32>,
    /// The moment up to which all is stored, where that is within the span or before it.
    pub ends: Option<u32>,
}

/// What is stored of a span. `seen` is the moment up to which the log was read to its end.
#[must_use]
pub fn kept(segments: &[Segment], chain: &Chain, span: Span, seen: Option<u32>) -> Kept {
    let holds = |place: &usize| {
        let Segment { first, last, .. } = segments[*place];
        last >= span.from && first < span.to
    };
    let places = chain.windows.iter().flat_map(|w| w.segments.iter());
    let first = chain.windows.first().map(|w| w.first);
    let last = chain.windows.iter().map(|w| w.last).chain(seen).max();
    Kept {
        segments: places.filter(|place| holds(place)).copied().collect(),
        gaps: chain
            .gaps
            .iter()
            .filter(|gap| gap.from < span.to && gap.to >= span.from)
            .copied()
            .collect(),
        begins: first.filter(|first| *first > span.from),
        ends: last.filter(|last| *last < span.to),
    }
}

/// What an event is to the transactions of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark<'a> {
    /// A transaction begins with it.
    Begins {
        /// Where.
        position: u64,
        /// Its name, where it has one.
        gtid: Option<&'a Gtid>,
    },
    /// A transaction ends with it.
    Ends(Transaction),
    /// It is of none.
    Outside {
        /// Where it begins.
        position: u64,
    },
}

/// A transaction in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// Where its first event begins.
    pub from: u64,
    /// Where its last event ends.
    pub to: u64,
    /// The earliest time of an event of it, in seconds since 1970 by the server's clock.
    pub first: u32,
    /// The latest.
    pub last: u32,
}

impl Transaction {
    /// True if an event of it is of the span.
    #[must_use]
    pub fn is_in(&self, span: Span) -> bool {
        self.last >= span.from && self.first < span.to
    }

    fn see(&mut self, time: u32) {
        if time > 0 {
            self.first = self.first.min(time);
            self.last = self.last.max(time);
        }
    }
}

/// Tells transactions apart in the events of one segment, as [`crate::reread::Reading::feed`] gives them.
#[derive(Debug, Default)]
pub struct Marker {
    open: Option<Transaction>,
}

impl Marker {
    /// Takes the next event; a transaction of one event gives two marks.
    pub fn mark(&mut self, check: &Check, ended: Ended, each: &mut dyn FnMut(Mark<'_>)) {
        let position = check.last().position;
        let within = match ended {
            Ended::Within => check.gtids().is_some(),
            Ended::Between { transaction, .. } => transaction,
            Ended::File => false,
            Ended::Nowhere => return,
        };
        if !within && self.open.is_none() {
            return each(Mark::Outside { position });
        }
        if self.open.is_none() {
            let gtid = check.begun();
            each(Mark::Begins { position, gtid });
        }
        let open = self.open.get_or_insert(Transaction {
            from: position,
            to: position,
            first: u32::MAX,
            last: 0,
        });
        open.see(check.time());
        open.to = check.position();
        if !matches!(ended, Ended::Within)
            && let Some(whole) = self.open.take()
        {
            each(Mark::Ends(whole));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::Window;
    use crate::gtid::{Gtids, State};
    use crate::segment::{Anchor, Cause, Identity, Link};

    fn segment(first: u32, last: u32) -> Segment {
        Segment {
            server: Identity::default(),
            file: String::new(),
            from: 4,
            to: 5,
            created: first,
            next: None,
            description: String::new(),
            last_event: Anchor {
                position: 4,
                sum: 0,
            },
            before: Gtids::Mariadb(State::default()),
            after: Gtids::Mariadb(State::default()),
            transactions: 1,
            first,
            last,
            ended: None,
            incident: false,
            sha256: String::new(),
            link: Link::First,
        }
    }

    /// Of 100 to 299 all is stored, of 300 to 399 nothing, of 400 to 449 all; read to its end up to 480.
    #[test]
    fn what_is_stored_of_a_span_and_what_is_not() {
        let segments: Vec<Segment> = [(100, 199), (200, 299), (400, 449)]
            .map(|(first, last)| segment(first, last))
            .into();
        let window = |segments: &[usize], first, last| Window {
            segments: segments.to_vec(),
            first,
            last,
        };
        let gap = Gap {
            cause: Cause::Purged,
            from: 299,
            to: 400,
        };
        let chain = Chain {
            windows: vec![window(&[0, 1], 100, 299), window(&[2], 400, 449)],
            gaps: vec![gap],
            spare: vec![],
        };
        for (from, to, places, gaps, begins, ends) in [
            (100, 200, &[0][..], 0, None, None),
            (150, 201, &[0, 1], 0, None, None),
            (299, 300, &[1], 1, None, None),
            (310, 350, &[], 1, None, None),
            (400, 450, &[2], 1, None, None),
            (401, 480, &[2], 0, None, None),
            (401, 481, &[2], 0, None, Some(480)),
            (50, 500, &[0, 1, 2], 1, Some(100), Some(480)),
        ] {
            let found = kept(&segments, &chain, Span { from, to }, Some(480));
            assert_eq!(
                (
                    &found.segments[..],
                    found.gaps.len(),
                    found.begins,
                    found.ends
                ),
                (places, gaps, begins, ends),
                "{from} {to}"
            );
        }
        assert_eq!(
            kept(&[], &Chain::default(), Span { from: 1, to: 2 }, None),
            Kept::default()
        );
    }
}
