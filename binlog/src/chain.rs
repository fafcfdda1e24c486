//! What stored segments give together: windows in which any moment can be restored, and the gaps between. Pure.

use std::collections::HashMap;

use crate::gtid::{Gtid, Gtids};
use crate::segment::{Cause, Identity, Link, Segment, is_successor};

/// Segments that follow each other without a gap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// Their places in what was given, in order.
    pub segments: Vec<usize>,
    /// The moment from which on they hold all, in seconds since 1970 by the server's clock.
    pub first: u32,
    /// The moment of the last event; until the next segment nothing more is known.
    pub last: u32,
}

/// Events may be missing here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Why.
    pub cause: Cause,
    /// The last moment before it that is covered.
    pub from: u32,
    /// The first moment behind it that is.
    pub to: u32,
}

/// Windows and the gaps between them, the oldest first: between two windows is a gap; the last gap may stand behind the last
/// window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chain {
    /// Windows.
    pub windows: Vec<Window>,
    /// Gaps.
    pub gaps: Vec<Gap>,
    /// Segments that others replace: written by two runs at once, or given twice.
    pub spare: Vec<usize>,
}

/// Puts segments in order, in whatever order they are given. A segment is believed only as far as it fits the one it names.
#[must_use]
pub fn chain(segments: &[Segment]) -> Chain {
    let mut chain = Chain::default();
    let digests: Vec<String> = segments.iter().map(Segment::digest).collect();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for (place, digest) in digests.iter().enumerate() {
        if places.insert(digest, place).is_some() {
            // Given twice: the later one stays.
            chain
                .spare
                .extend((0..place).rev().find(|p| digests[*p] == *digest));
        }
    }
    let twice = chain.spare.clone();
    let mut roots = Vec::new();
    let mut children: HashMap<&str, Vec<usize>> = HashMap::new();
    for (place, segment) in segments.iter().enumerate() {
        if twice.contains(&place) {
            continue;
        }
        match segment.link.previous() {
            // A lost one may have had two.
            Some(previous) => children.entry(previous).or_default().push(place),
            None => roots.push(place),
        }
    }
    let lost = children
        .iter()
        .filter(|(previous, _)| !places.contains_key(*previous));
    let mut begins: Vec<Vec<usize>> = lost.map(|(_, places)| places.clone()).collect();
    begins.extend(roots.into_iter().map(|root| vec![root]));
    let weight = weights(segments, &digests, &children);
    let mut lines = Vec::new();
    for mut next in begins {
        let mut line = Vec::new();
        loop {
            let before = line.last().map(|place: &usize| &segments[*place]);
            let worth = |place: &usize| {
                let fits = before.is_some_and(|before| fits(before, &segments[*place]));
                (fits, weight[*place], *place)
            };
            let Some(best) = next.iter().copied().max_by_key(worth) else {
                break;
            };
            line.push(best);
            let others: Vec<usize> = next.into_iter().filter(|place| *place != best).collect();
            spare(&others, &digests, &children, &mut chain.spare);
            next = children
                .get(digests[best].as_str())
                .cloned()
                .unwrap_or_default();
        }
        lines.push(line);
    }
    lines.sort_by_key(|line| {
        let first = line.first().map(|place| &segments[*place]);
        first.map(|s| (begin(s), s.last, s.file.clone(), s.from))
    });
    for line in lines {
        for (index, place) in line.iter().enumerate() {
            let segment = &segments[*place];
            let before = index
                .checked_sub(1)
                .and_then(|i| line.get(i))
                .map(|p| &segments[*p]);
            let cause = match (before, &segment.link) {
                (None, _) => Some(Cause::Lost),
                (Some(_), Link::Gap { cause, .. }) => Some(*cause),
                (Some(before), _) if fits(before, segment) => None,
                (Some(_), _) => Some(Cause::Mismatch),
            };
            chain.put(*place, segments, cause);
        }
    }
    chain.spare.sort_unstable();
    chain
}

/// From when on a segment holds all.
fn begin(segment: &Segment) -> u32 {
    if segment.from == 0 {
        segment.created
    } else {
        segment.first
    }
}

/// How many segments follow each at most, itself among them.
fn weights(
    segments: &[Segment],
    digests: &[String],
    children: &HashMap<&str, Vec<usize>>,
) -> Vec<u64> {
    let mut weight = vec![0; segments.len()];
    for start in 0..segments.len() {
        // Children before parents; a hash can't be in a circle.
        let mut stack = vec![(start, false)];
        while let Some((place, done)) = stack.pop() {
            if weight[place] > 0 {
                continue;
            }
            let own = children
                .get(digests[place].as_str())
                .map(Vec::as_slice)
                .unwrap_or_default();
            if done {
                weight[place] = 1 + own.iter().map(|c| weight[*c]).max().unwrap_or_default();
            } else {
                stack.push((place, true));
                stack.extend(own.iter().map(|c| (*c, false)));
            }
        }
    }
    weight
}

/// These and all that follows them.
fn spare(
    places: &[usize],
    digests: &[String],
    children: &HashMap<&str, Vec<usize>>,
    out: &mut Vec<usize>,
) {
    let mut stack = places.to_vec();
    while let Some(place) = stack.pop() {
        out.push(place);
        stack.extend(children.get(digests[place].as_str()).into_iter().flatten());
    }
}

/// True if a segment goes on where the other ended.
fn fits(before: &Segment, segment: &Segment) -> bool {
    match segment.link {
        Link::Follows { .. } => {
            let same = before.file == segment.file
                && before.created == segment.created
                && before.to == segment.from
                && before.next.is_none()
                && before.after == segment.before;
            let next = segment.from == 0
                && match &before.next {
                    Some(next) => *next == segment.file,
                    None => is_successor(&before.file, &segment.file),
                }
                && segment.before.follows(&before.after);
            before.server.is(&segment.server) && (same || next)
        }
        // What MySQL's server held without having it in its log is not in its list.
        Link::Joins { .. } => match (&before.after, &segment.before) {
            (Gtids::Mysql(stored), Gtids::Mysql(list)) => stored.covers(list),
            (stored, list) => list.is_at(stored),
        },
        Link::First | Link::Gap { .. } => false,
    }
}

impl Chain {
    fn put(&mut self, place: usize, segments: &[Segment], cause: Option<Cause>) {
        let segment = &segments[place];
        let begins = begin(segment);
        if let Some(cause) = cause {
            self.end(segments, cause, (begins, segment.last));
        }
        if segment.incident {
            // Nobody knows at which moment of it events are missing.
            self.end(segments, Cause::Incident, (segment.last, segment.last));
            return;
        }
        if self.is_open()
            && let Some(window) = self.windows.last_mut()
        {
            window.segments.push(place);
            window.last = window.last.max(segment.last);
        } else {
            self.windows.push(Window {
                segments: vec![place],
                first: begins,
                last: segment.last.max(begins),
            });
        }
    }

    /// True if the last window may go on.
    fn is_open(&self) -> bool {
        self.windows.len() > self.gaps.len()
    }

    /// Ends the last window by a gap, or makes the gap behind it longer: `behind` are the first moment and the last of what
    /// comes then. Before the first window nothing is covered anyway.
    fn end(&mut self, segments: &[Segment], cause: Cause, behind: (u32, u32)) {
        let (to, last) = behind;
        if self.is_open() {
            let window = self.windows.last();
            let from = window.map_or(to, |window| window.last);
            // 0: nothing in it has a time.
            let to = if to == 0 { from } else { to };
            let gap = if from <= to {
                Gap { cause, from, to }
            } else {
                // The server's clock was set back, and which of its moments are missing only it knew: all that could be.
                let before = window.and_then(|window| window.segments.last());
                let first = before.map(|place| begin(&segments[*place]));
                let first = first.filter(|first| *first != 0).unwrap_or(to);
                let (from, to) = (first.min(to), from.max(last));
                Gap { cause, from, to }
            };
            self.gaps.push(gap);
        } else if let Some(gap) = self.gaps.last_mut() {
            if to != 0 {
                gap.from = gap.from.min(to);
            }
            gap.to = gap.to.max(to);
        }
    }
}

/// From where a restore goes on: what a backup says of its moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Base {
    /// The server that was backed up.
    pub server: Identity,
    /// The file of its log; empty where only GTIDs are known.
    pub file: String,
    /// The position in it.
    pub position: u64,
    /// The transactions that are in the backup, where they are known.
    pub gtids: Option<Gtids>,
    /// When it was made, in seconds since 1970: not before this.
    pub moment: u32,
    /// Nor behind this.
    pub until: u32,
}

/// Until where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// All before this second, by the server's clock.
    Moment(u32),
    /// All up to this transaction, with it.
    Gtid(Gtid),
    /// All up to this transaction, without it.
    BeforeGtid(Gtid),
    /// All that a later backup holds, and nothing more.
    Backup(Box<Base>),
    /// All that is stored.
    Latest,
}

/// What is to be replayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replay {
    /// Places of the segments, in order; none where nothing has changed.
    pub segments: Vec<usize>,
    /// Where in the first one's file to begin.
    pub from: u64,
    /// Where in the last one to end; `None` at its end.
    pub until: Option<Target>,
    /// Behind the end stand events of an earlier time: a clock was set back, or a statement took long.
    pub disorder: bool,
}

/// Why a target can't be reached.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// What follows the backup is not stored.
    #[error("no stored segment goes on from the backup")]
    NoBase,
    /// Several logs have such a file and position.
    #[error(
        "several stored logs have the backup's file and position: which one it is of can't be told"
    )]
    Ambiguous,
    /// The target is not behind the backup.
    #[error("the target is not behind the backup: take an older one")]
    BeforeBase,
    /// Events may be missing on the way.
    #[error("between {} and {} (seconds since 1970) events may be missing: {}", .0.from, .0.to, .0.cause.words())]
    Gap(Gap),
    /// The target is behind all that is stored.
    #[error("the target is behind what is stored, which ends at {0} (seconds since 1970)")]
    Beyond(u32),
    /// No stored segment has the transaction.
    #[error("GTID {0} is not stored")]
    Unknown(Gtid),
    /// No stored segment reaches to where the later backup was made.
    #[error("what is stored does not reach to the later backup")]
    NoEnd,
}

/// Which segments lead from a backup to a target. `seen` is the moment, by the server's clock, up to which the log was read to
/// its end: until then nothing came behind the last segment.
///
/// # Errors
/// It can't be reached without a gap; what is stored is never taken for more than it is.
pub fn replay(
    segments: &[Segment],
    chain: &Chain,
    base: &Base,
    target: &Target,
    seen: Option<u32>,
) -> Result<Replay, Refusal> {
    let (at, begins, from) = locate(segments, chain, base)?;
    let window = &chain.windows[at];
    let ahead = window.segments.get(begins..).unwrap_or_default();
    let gap = chain.gaps.get(at).copied();
    let end = |until: usize, target: Option<Target>, disorder| {
        Ok(Replay {
            segments: ahead.get(..until).unwrap_or_default().to_vec(),
            from,
            until: target,
            disorder,
        })
    };
    match target {
        Target::Backup(later) => {
            let (other, last, position) =
                locate(segments, chain, later).map_err(|refusal| match refusal {
                    Refusal::NoBase => Refusal::NoEnd,
                    other => other,
                })?;
            if (other, last, position) < (at, begins, from) {
                return Err(Refusal::BeforeBase);
            }
            match gap.filter(|_| other > at) {
                Some(gap) => Err(Refusal::Gap(gap)),
                None => end(last + 1 - begins, Some(target.clone()), false),
            }
        }
        Target::Latest => match gap {
            Some(gap) => Err(Refusal::Gap(gap)),
            None => end(ahead.len(), None, false),
        },
        Target::Moment(moment) => {
            if *moment < base.moment {
                return Err(Refusal::BeforeBase);
            }
            let reaches = |place: &usize| segments[*place].last >= *moment;
            if let Some(last) = ahead.iter().position(reaches) {
                let mut behind = ahead[last + 1..].iter().map(|p| segments[*p].first);
                let disorder = behind.any(|first| first != 0 && first < *moment);
                return end(last + 1, Some(target.clone()), disorder);
            }
            match gap {
                Some(gap) => Err(Refusal::Gap(gap)),
                None if seen.is_some_and(|seen| seen >= *moment) => end(ahead.len(), None, false),
                None => Err(Refusal::Beyond(
                    seen.unwrap_or(window.last).max(window.last),
                )),
            }
        }
        Target::Gtid(gtid) | Target::BeforeGtid(gtid) => {
            let already = match &base.gtids {
                Some(gtids) => gtids.contains(gtid),
                None => ahead
                    .first()
                    .is_some_and(|p| segments[*p].before.contains(gtid)),
            };
            if already {
                return Err(Refusal::BeforeBase);
            }
            let has = |place: &usize| segments[*place].after.contains(gtid);
            match (ahead.iter().position(has), gap) {
                (Some(last), _) => end(last + 1, Some(target.clone()), false),
                (None, Some(gap)) => Err(Refusal::Gap(gap)),
                (None, None) => Err(Refusal::Unknown(gtid.clone())),
            }
        }
    }
}

/// The window, the place in it and the position where a backup's log goes on.
fn locate(
    segments: &[Segment],
    chain: &Chain,
    base: &Base,
) -> Result<(usize, usize, u64), Refusal> {
    let mut found: Vec<(usize, usize, u64, u32)> = Vec::new();
    for (at, window) in chain.windows.iter().enumerate() {
        for (index, place) in window.segments.iter().enumerate() {
            let segment = &segments[*place];
            let known = base.gtids.as_ref().filter(|gtids| !gtids.is_empty());
            let here = if base.file.is_empty() {
                known.is_some_and(|gtids| segment.before.is_at(gtids))
            } else {
                segment.server.is(&base.server)
                    && segment.file == base.file
                    && segment.from <= base.position
                    && (base.position < segment.to
                        || (base.position == segment.to && segment.next.is_none()))
                    && segment.created <= base.until
                    && known.is_none_or(|gtids| {
                        // MySQL's server may hold more than its log ever had.
                        let more = matches!(gtids, Gtids::Mysql(_)) || segment.after.covers(gtids);
                        gtids.covers(&segment.before) && more
                    })
            };
            if here {
                let position = if base.file.is_empty() {
                    segment.from
                } else {
                    base.position
                };
                found.push((at, index, position, segment.created));
            }
        }
    }
    // Where one ends and the next begins, it is the next.
    if let [
        ..,
        (at, index, position, created),
        (at_2, index_2, position_2, created_2),
    ] = found.as_slice()
        && (at, index + 1, position, created) == (at_2, *index_2, position_2, created_2)
        && found.len() == 2
    {
        found.remove(0);
    }
    match found.as_slice() {
        [] => Err(Refusal::NoBase),
        [(at, index, position, _)] => Ok((*at, *index, *position)),
        _ => Err(Refusal::Ambiguous),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::Anchor;
    use proptest::prelude::*;

    /// A log of which each transaction is a byte, given a number and a second: what a segment holds is `from..to`.
    fn segment(
        server: &str,
        file: u32,
        range: std::ops::Range<u64>,
        after: (u64, u64),
        times: (u32, u32),
        link: Link,
    ) -> Segment {
        let state = |n: u64| {
            Gtids::Mariadb(
                if n == 0 {
                    String::new()
                } else {
                    format!("0-1-{n}")
                }
                .parse()
                .unwrap(),
            )
        };
        Segment {
            server: Identity {
                hostname: server.into(),
                ..Identity::default()
            },
            file: format!("bin.{file:06}"),
            from: range.start,
            to: range.end,
            created: file * 1000,
            next: None,
            description: String::new(),
            last_event: Anchor {
                position: range.end - 1,
                sum: 0,
            },
            before: state(after.0),
            after: state(after.1),
            transactions: after.1 - after.0,
            first: times.0,
            last: times.1,
            ended: None,
            incident: false,
            sha256: String::new(),
            link,
        }
    }

    fn follows(segment: &Segment) -> Link {
        Link::Follows {
            previous: segment.digest(),
        }
    }

    fn gap(segment: &Segment, cause: Cause) -> Link {
        Link::Gap {
            previous: segment.digest(),
            cause,
        }
    }

    /// A day of pulls each 5 seconds, and more: the time grows with the number alone.
    #[test]
    fn the_plan_of_20_000_segments_is_made_in_a_moment() {
        let count = 20_000_u32;
        let mut all = vec![segment("one", 1, 0..100, (0, 1), (1000, 1000), Link::First)];
        for n in 1..count {
            let (at, time) = (u64::from(n), 1000 + n * 5);
            let link = follows(&all[n as usize - 1]);
            let range = at * 100..at * 100 + 100;
            all.push(segment("one", 1, range, (at, at + 1), (time, time), link));
        }
        all.reverse();
        let begun = std::time::Instant::now();
        let chain = chain(&all);
        let base = Base {
            moment: 1000,
            until: 1000,
            ..base(1, 4, None)
        };
        let target = Target::Moment(1000 + 19_000 * 5);
        let replay = replay(&all, &chain, &base, &target, None).unwrap();
        let took = begun.elapsed();
        println!("chain and plan of {count} segments: {took:?}");
        assert_eq!((chain.windows.len(), chain.gaps.len()), (1, 0));
        assert_eq!(replay.segments.len(), 19_001);
        assert!(took < std::time::Duration::from_secs(30), "{took:?}");
    }

    /// Two files of two segments: transactions 1 to 40, one each second from 1001 on; the second file was begun at 2000.
    fn four() -> Vec<Segment> {
        let a = segment("one", 1, 0..100, (0, 10), (1000, 1010), Link::First);
        let mut b = segment("one", 1, 100..200, (10, 20), (1011, 1020), follows(&a));
        b.next = Some("bin.000002".into());
        let c = segment("one", 2, 0..100, (20, 30), (2000, 2010), follows(&b));
        let d = segment("one", 2, 100..200, (30, 40), (2011, 2020), follows(&c));
        vec![a, b, c, d]
    }

    fn base(file: u32, position: u64, gtid: Option<u64>) -> Base {
        Base {
            server: Identity {
                hostname: "one".into(),
                ..Identity::default()
            },
            file: format!("bin.{file:06}"),
            position,
            gtids: gtid.map(|n| Gtids::Mariadb(format!("0-1-{n}").parse().unwrap())),
            moment: file * 1000 + 5,
            until: file * 1000 + 5,
        }
    }

    fn windows(chain: &Chain) -> Vec<(Vec<usize>, u32, u32)> {
        chain
            .windows
            .iter()
            .map(|w| (w.segments.clone(), w.first, w.last))
            .collect()
    }

    #[test]
    fn windows_and_the_gaps_between() {
        let all = four();
        assert_eq!(windows(&chain(&all)), [(vec![0, 1, 2, 3], 1000, 2020)]);
        // The oldest went with retention: no gap, a later beginning.
        let kept = chain(&all[1..]);
        assert_eq!(
            (windows(&kept), kept.gaps),
            (vec![(vec![0, 1, 2], 1011, 2020)], vec![])
        );
        // One in the middle is lost.
        let lost = chain(&[all[0].clone(), all[2].clone(), all[3].clone()]);
        assert_eq!(
            windows(&lost),
            [(vec![0], 1000, 1010), (vec![1, 2], 2000, 2020)]
        );
        assert_eq!(
            lost.gaps,
            [Gap {
                cause: Cause::Lost,
                from: 1010,
                to: 2000
            }]
        );
        // One is altered: it does not fit, and the next does not name it.
        let mut altered = all.clone();
        altered[1].after = altered[0].after.clone();
        let altered = chain(&altered);
        assert_eq!(
            altered.gaps,
            [Gap {
                cause: Cause::Lost,
                from: 1020,
                to: 2000
            }]
        );
        // Named by the next, and yet not where it ended.
        let mut jump = all[..2].to_vec();
        jump[1].from = 101;
        assert_eq!(
            chain(&jump).gaps,
            [Gap {
                cause: Cause::Mismatch,
                from: 1010,
                to: 1011
            }]
        );
        // A gap that was known when it came about, then all is well again.
        let mut purged = all[..2].to_vec();
        let after = segment(
            "one",
            9,
            0..50,
            (90, 95),
            (9001, 9005),
            gap(&purged[1], Cause::Purged),
        );
        let more = segment("one", 9, 50..60, (95, 96), (9007, 9007), follows(&after));
        purged.extend([after, more]);
        let purged = chain(&purged);
        assert_eq!(
            purged.gaps,
            [Gap {
                cause: Cause::Purged,
                from: 1020,
                to: 9000
            }]
        );
        assert_eq!(windows(&purged)[1], (vec![2, 3], 9000, 9007));
        // Another server that goes on where the first ended, and one that says so and does not.
        let joins = |from: u64| {
            let mut all = all[..2].to_vec();
            let link = Link::Joins {
                previous: all[1].digest(),
            };
            all.push(segment("two", 7, 44..80, (from, 30), (1021, 1030), link));
            chain(&all).gaps
        };
        assert_eq!(joins(20), []);
        assert_eq!(joins(21)[0].cause, Cause::Mismatch);
        // The server itself lacks events.
        let mut incident = all[..3].to_vec();
        incident[1].incident = true;
        incident[2].link = follows(&incident[1]);
        let incident = chain(&incident);
        assert_eq!(
            windows(&incident),
            [(vec![0], 1000, 1010), (vec![2], 2000, 2010)]
        );
        assert_eq!(
            incident.gaps,
            [Gap {
                cause: Cause::Incident,
                from: 1010,
                to: 1020
            }]
        );
        // The server's clock was set back by an hour meanwhile: a moment may be missing that lies in neither of what it said
        // before and after, but in no case before the last segment or behind the next.
        let mut back = all[..2].to_vec();
        back[1].first = 1011;
        back[1].last = 5000;
        back.push(segment(
            "one",
            9,
            50..60,
            (90, 95),
            (1300, 1350),
            gap(&back[1], Cause::Purged),
        ));
        assert_eq!(
            chain(&back).gaps,
            [Gap {
                cause: Cause::Purged,
                from: 1011,
                to: 5000
            }]
        );
        // What comes behind has no times: nothing is known but where the gap begins.
        let mut timeless = back.clone();
        (timeless[2].first, timeless[2].last) = (0, 0);
        let known = chain(&timeless).gaps[0];
        assert_eq!((known.from, known.to), (5000, 5000));
        // A gap that goes on with another server's incident, whose clock is behind, reaches back to that.
        let mut behind = back.clone();
        behind[2].incident = true;
        (behind[2].first, behind[2].last) = (900, 950);
        let known = chain(&behind).gaps[0];
        assert_eq!((known.from, known.to), (900, 5000));
        // Two runs at once: the line that leads further is taken.
        let mut two = all.clone();
        two.push(segment(
            "one",
            1,
            100..150,
            (10, 15),
            (1011, 1015),
            follows(&all[0]),
        ));
        let two = chain(&two);
        assert_eq!(
            (windows(&two), two.spare),
            (vec![(vec![0, 1, 2, 3], 1000, 2020)], vec![4])
        );
    }

    #[test]
    fn which_segments_lead_to_a_target() {
        let all = four();
        let whole = chain(&all);
        let to = |base: &Base, target| replay(&all, &whole, base, &target, Some(2100));
        let found = |segments: &[usize], from, until| {
            Ok(Replay {
                segments: segments.to_vec(),
                from,
                until,
                disorder: false,
            })
        };
        let gtid = |n: u64| Gtid::Mariadb(0, 1, n);
        let early = base(1, 50, None);
        for (base, target, wanted) in [
            (
                &early,
                Target::Moment(1015),
                found(&[0, 1], 50, Some(Target::Moment(1015))),
            ),
            (
                &early,
                Target::Moment(1010),
                found(&[0], 50, Some(Target::Moment(1010))),
            ),
            // Nothing came between the files, nor behind the last event as far as the log was read.
            (
                &early,
                Target::Moment(1500),
                found(&[0, 1, 2], 50, Some(Target::Moment(1500))),
            ),
            (&early, Target::Moment(2050), found(&[0, 1, 2, 3], 50, None)),
            (&early, Target::Moment(2101), Err(Refusal::Beyond(2100))),
            (&early, Target::Moment(1004), Err(Refusal::BeforeBase)),
            (&early, Target::Latest, found(&[0, 1, 2, 3], 50, None)),
            (
                &early,
                Target::Gtid(gtid(20)),
                found(&[0, 1], 50, Some(Target::Gtid(gtid(20)))),
            ),
            (
                &early,
                Target::BeforeGtid(gtid(21)),
                found(&[0, 1, 2], 50, Some(Target::BeforeGtid(gtid(21)))),
            ),
            (
                &early,
                Target::Gtid(gtid(41)),
                Err(Refusal::Unknown(gtid(41))),
            ),
            // At the end of a segment the next one goes on.
            (
                &base(1, 100, None),
                Target::Moment(1015),
                found(&[1], 100, Some(Target::Moment(1015))),
            ),
            (&base(2, 200, None), Target::Latest, found(&[3], 200, None)),
            (
                &base(2, 150, Some(35)),
                Target::Gtid(gtid(34)),
                Err(Refusal::BeforeBase),
            ),
            (
                &base(2, 150, Some(20)),
                Target::Latest,
                Err(Refusal::NoBase),
            ),
            (&base(3, 4, None), Target::Latest, Err(Refusal::NoBase)),
            (
                &Base {
                    server: Identity::default(),
                    ..early.clone()
                },
                Target::Latest,
                Err(Refusal::NoBase),
            ),
            (
                &Base {
                    file: String::new(),
                    ..base(2, 0, Some(30))
                },
                Target::Latest,
                found(&[3], 100, None),
            ),
        ] {
            assert_eq!(to(base, target.clone()), wanted, "{base:?} {target:?}");
        }
        // A gap on the way is not passed over.
        let some = [all[0].clone(), all[2].clone(), all[3].clone()];
        let lost = chain(&some);
        let refused = Refusal::Gap(Gap {
            cause: Cause::Lost,
            from: 1010,
            to: 2000,
        });
        for target in [
            Target::Moment(1500),
            Target::Moment(2015),
            Target::Latest,
            Target::Gtid(gtid(25)),
        ] {
            assert_eq!(
                replay(&some, &lost, &early, &target, Some(2100)),
                Err(refused.clone())
            );
        }
        assert!(replay(&some, &lost, &early, &Target::Moment(1009), None).is_ok());
        assert!(replay(&some, &lost, &base(2, 4, None), &Target::Latest, None).is_ok());
        // A log that was begun anew has the same file and position.
        let mut twice = all.clone();
        let mut again = segment(
            "one",
            1,
            0..100,
            (0, 9),
            (3000, 3010),
            gap(&all[3], Cause::Reset),
        );
        again.created = 3000;
        twice.push(again);
        let twice_chain = chain(&twice);
        let late = Base {
            moment: 3005,
            until: 3005,
            ..base(1, 50, None)
        };
        assert_eq!(
            replay(&twice, &twice_chain, &late, &Target::Latest, None),
            Err(Refusal::Ambiguous)
        );
        // One made before the second log was begun is not of it.
        assert!(
            matches!(replay(&twice, &twice_chain, &early, &Target::Moment(1008), None), Ok(r) if r.segments == [0])
        );
    }

    /// The transactions that a replay gives: what the bytes of its segments hold, which no manifest changes.
    /// What leads from one backup to a later one ends in the segment that holds the later one's moment.
    #[test]
    fn which_segments_lead_from_one_backup_to_the_next() {
        let all = four();
        let whole = chain(&all);
        let to = |from: &Base, to: Base| {
            replay(&all, &whole, from, &Target::Backup(Box::new(to)), None)
                .map(|r| (r.segments, r.from))
        };
        for (from, until, wanted) in [
            (base(1, 50, None), base(1, 50, None), Ok((vec![0], 50))),
            (base(1, 50, None), base(1, 99, None), Ok((vec![0], 50))),
            // Where one segment ends and the next begins, it is the next.
            (base(1, 50, None), base(1, 100, None), Ok((vec![0, 1], 50))),
            (
                base(1, 150, None),
                base(2, 200, None),
                Ok((vec![1, 2, 3], 150)),
            ),
            (
                base(2, 20, None),
                base(2, 10, None),
                Err(Refusal::BeforeBase),
            ),
            (
                base(2, 20, None),
                base(1, 10, None),
                Err(Refusal::BeforeBase),
            ),
            (base(1, 50, None), base(2, 201, None), Err(Refusal::NoEnd)),
            (base(1, 50, None), base(3, 4, None), Err(Refusal::NoEnd)),
            (base(1, 500, None), base(2, 4, None), Err(Refusal::NoBase)),
        ] {
            assert_eq!(to(&from, until.clone()), wanted, "{from:?} {until:?}");
        }
        // Events are missing between both.
        let some = [all[0].clone(), all[2].clone(), all[3].clone()];
        let lost = chain(&some);
        let until = Target::Backup(Box::new(base(2, 50, None)));
        assert_eq!(
            replay(&some, &lost, &base(1, 50, None), &until, None),
            Err(Refusal::Gap(lost.gaps[0]))
        );
    }

    fn given(all: &[Segment], replay: &Replay) -> Vec<(String, u64)> {
        let mut found = Vec::new();
        for place in &replay.segments {
            let held: Vec<&str> = all[*place].sha256.split(' ').collect();
            let (first, last): (u64, u64) = (held[1].parse().unwrap(), held[2].parse().unwrap());
            found.extend((first..=last).map(|n| (held[0].to_owned(), n)));
        }
        found
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        /// Whatever is lost, altered, doubled, mixed in or out of order: what a replay gives is what the log had, or it is
        /// refused.
        #[test]
        fn no_fault_is_silent(
            count in 1_usize..12,
            sizes in proptest::collection::vec(1_u64..9, 12),
            rotations in proptest::collection::vec(any::<bool>(), 12),
            faults in proptest::collection::vec((0_u8..6, any::<prop::sample::Index>(), 1_u64..5), 0..4),
            order in any::<prop::sample::Index>(),
            target in 0_u32..80,
        ) {
            // Each transaction is one byte behind the four of the magic, and takes a second.
            let mut all: Vec<Segment> = Vec::new();
            let (mut n, mut file, mut at) = (0, 1, 0);
            for i in 0..count {
                let link = all.last().map_or(Link::First, follows);
                let first = u32::try_from(n).unwrap() + 1000;
                let size = sizes[i];
                let to = at + size + if at == 0 { 4 } else { 0 };
                let mut s = segment("one", file, at..to, (n, n + size), (first + 1, first + u32::try_from(size).unwrap()), link);
                s.created = 1000;
                s.sha256 = format!("one {} {}", n + 1, n + size);
                n += size;
                at = to;
                if rotations[i] {
                    file += 1;
                    at = 0;
                    s.next = Some(format!("bin.{file:06}"));
                }
                all.push(s);
            }
            let truth = n;
            let mut moved = all.clone();
            for (kind, index, by) in faults {
                if moved.is_empty() {
                    break;
                }
                let at = index.index(moved.len());
                match kind {
                    0 => drop(moved.remove(at)),
                    1 => moved[at].to += by,
                    2 => moved[at].before = Gtids::Mariadb(format!("0-1-{by}").parse().unwrap()),
                    3 => { let again = moved[at].clone(); moved.push(again); }
                    // A segment of another log that names one of this, and one that another run of the same wrote.
                    4 => {
                        let link = follows(&moved[at]);
                        let s = moved[at].clone();
                        let sha256 = s.sha256.replace("one", "two");
                        moved.push(Segment {
                            sha256, server: Identity { hostname: "two".into(), ..Identity::default() }, link, ..s });
                    }
                    _ => moved[at].link = Link::Follows { previous: "00".into() },
                }
            }
            let turn = order.index(moved.len().max(1));
            moved.rotate_left(turn);
            let chain = chain(&moved);
            // Each is in one window, spare, or refused for a gap.
            let mut seen: Vec<usize> = chain.windows.iter().flat_map(|w| w.segments.clone()).chain(chain.spare.clone()).collect();
            seen.sort_unstable();
            seen.dedup();
            prop_assert_eq!(seen.len(), moved.len());
            prop_assert!(chain.gaps.len() + 1 == chain.windows.len() || moved.is_empty());
            let base = Base { position: 4, moment: 1000, until: 1000, ..base(1, 4, None) };
            let moment = 1000 + target;
            if let Ok(replay) = replay(&moved, &chain, &base, &Target::Moment(moment), None) {
                let found = given(&moved, &replay);
                let wanted: Vec<_> = (1..=found.len() as u64).map(|n| ("one".to_owned(), n)).collect();
                prop_assert_eq!(&found, &wanted);
                prop_assert!(found.len() as u64 <= truth && found.len() as u64 >= u64::from(target.saturating_sub(1)));
            }
        }
    }
}
