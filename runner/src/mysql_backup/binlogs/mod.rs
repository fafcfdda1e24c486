//! Binary logs of a MysqlBackup's server: pulled from where the last stored segment ends, stored segment by segment. A run that
//! is ended at any moment leaves whole segments, and the next one goes on behind them. A run that stays pulls again and again.

pub(crate) mod files;
pub mod place;
pub(crate) mod reading;
pub(crate) mod shown;
mod sink;
pub(crate) mod span;
pub mod stored;

use std::sync::Arc;
use std::time::{Duration, Instant};

use binlog::chain::Base;
use binlog::plan::First;
use binlog::{Break, Error, Limits, Link, Pulled, Request, Segment};
use chrono::{DateTime, Utc};
use crds::report::{Binlogs, Gap, LogPlace, Reason, exit};
use crds::time::{parse_rfc3339, plus_seconds};
use wire::Connection;

use self::place::{KnownSegment, LastKnown, SegmentPlace};
use self::sink::SegmentStore;
use self::stored::Seen;
use crate::artefact::{Artefacts, Origin, known};
use crate::context::Context;
use crate::database::mysql::source::{failure_of, place as address, scrubbed, session_settings};
use crate::failure::Failure;
use crate::mysql_backup::base;
use crate::mysql_backup::stored::StoredDumps;
use crate::report::Ticker;
use crate::settings::Source;
use crate::settings::options::Choice;
use crate::stream::pipeline;

/// Bytes of a segment at which it is closed: small enough that the store has it in one part.
const SEGMENT: u64 = 16 << 20;
/// So often a run goes on behind what another one stored meanwhile.
const ROUNDS: usize = 3;
/// Time between the beginnings of two pulls of a run that stays. With what a pull takes, it is how far behind it is; each that
/// finds something stores a segment, so that a day has 17,280 at most.
const PACE: Duration = Duration::from_secs(5);
/// So often a run that waits looks whether it is to end.
const NAP: Duration = Duration::from_millis(100);
/// Gaps of a report.
const GAPS: usize = crds::report::MAX_GAPS;
/// Gaps that the next run tells once more: as many as status keeps.
const TOLD: usize = crds::binlogs::MAX_GAPS;
/// So many segments of a run that ended without a word are looked at.
const UNTOLD: usize = 1000;
/// Characters by which a gap names the segment behind it.
const NAMED: usize = 16;
/// Clocks of server and pod differ by no more seconds.
const CLOCKS: i64 = 3600;
/// Characters of a set of GTIDs in a report.
const GTIDS: usize = 240;

/// Pulls, once or until the moment that is asked for. What was stored stands in the report.
///
/// # Errors
/// The server can't be reached or refuses, its log is off or can't be kept, the store refuses.
pub fn run(context: &Context) -> Result<(), Failure> {
    let settings = &context.settings;
    settings.check()?;
    let source = settings.source()?;
    let asked = settings.binlogs.clone().unwrap_or_default();
    let until = asked.until.as_deref().map(|text| {
        parse_rfc3339(text)
            .ok_or_else(|| Failure::settings(format!("binlogs.until: {text:?} is no moment")))
    });
    let until = until.transpose()?;
    let store = context.open_store()?;
    let place = SegmentPlace::own(context, Arc::clone(&store));
    context
        .reporter
        .leaves("segments that were stored are whole, and the next run goes on behind them");
    let _ticker = Ticker::start(Arc::clone(&context.reporter), move || store.keep_alive());
    let interval = Duration::from_secs(asked.interval_seconds.into());
    let mut run = Run::new(context, source, &place, interval)?;
    let outcome = match until {
        None => run.catch_up(),
        Some(until) => run.stay(until),
    };
    if outcome.is_ok() {
        run.told()?;
    }
    outcome
}

/// What a run has stored and found.
struct Run<'a> {
    context: &'a Context,
    source: &'a Source,
    place: &'a SegmentPlace,
    interval: Duration,
    connection: wire::Settings,
    sink: SegmentStore<'a>,
    /// The sink knows what is stored last.
    goes_on: bool,
    /// What the first pull of an object goes on from.
    base: Option<Base>,
    /// Something of the object is stored.
    begun: bool,
    seen: Option<Seen>,
    /// Gaps that a run before this one may not have told.
    before: Vec<Gap>,
    /// Gaps that this one found.
    gaps: Vec<Gap>,
    /// Those behind which nothing has come yet.
    open: Vec<Gap>,
    joins: u64,
    /// What the server lacks was said.
    looked: bool,
    broken: Option<Break>,
}

impl<'a> Run<'a> {
    fn new(
        context: &'a Context,
        source: &'a Source,
        place: &'a SegmentPlace,
        interval: Duration,
    ) -> Result<Self, Failure> {
        Ok(Self {
            context,
            source,
            place,
            interval,
            connection: session_settings(source, context)?,
            sink: SegmentStore::new(context, place),
            goes_on: false,
            base: None,
            begun: false,
            seen: None,
            before: vec![],
            gaps: vec![],
            open: vec![],
            joins: 0,
            looked: false,
            broken: None,
        })
    }

    /// Pulls to the end of the log; behind what another run stored meanwhile, it goes on.
    fn catch_up(&mut self) -> Result<(), Failure> {
        for _ in 1..ROUNDS {
            match self.once() {
                Err(e) if e.reason == Reason::AlreadyExists => tracing::info!("{e}"),
                other => return other,
            }
        }
        self.once()
    }

    /// Pulls again and again until that moment. What fails is tried again, so that a server or a store that was away costs no
    /// more than the time it was; how the last pull ended decides. As long as nothing of the object is stored, it ends at once:
    /// who set it up is to hear what is wrong.
    fn stay(&mut self, until: DateTime<Utc>) -> Result<(), Failure> {
        let context = self.context;
        let clock = &context.clock;
        let mut failing = false;
        loop {
            let (begun, last) = (clock.elapsed(), clock.now() >= until);
            let outcome = self.catch_up();
            context.check()?;
            if last || (outcome.is_err() && !self.begun) {
                return outcome;
            }
            match &outcome {
                Err(e) if !failing => tracing::warn!("tried again until {until}: {e}"),
                Ok(()) if failing => tracing::info!("binary logs are pulled again"),
                _ => {}
            }
            failing = outcome.is_err();
            while clock.elapsed() < begun + PACE && clock.now() < until {
                context.check()?;
                std::thread::sleep(NAP);
            }
        }
    }

    fn once(&mut self) -> Result<(), Failure> {
        if !self.goes_on {
            self.place()?;
        }
        let outcome = self.pull();
        // What is stored now is looked at.
        self.goes_on = outcome.is_ok();
        outcome
    }

    /// Looks where what is stored ends.
    fn place(&mut self) -> Result<(), Failure> {
        let context = self.context;
        context.reporter.phase("Connecting");
        let LastKnown {
            last,
            next,
            unreadable,
        } = self.place.newest(context)?;
        for what in &unreadable {
            context.reporter.warn(&format!(
                "{what} is no manifest of a segment: what it stood for is pulled again as far as the server has it"
            ));
        }
        self.seen = self.place.first_seen()?;
        match &last {
            Some(last) if !self.begun => {
                let untold = self.untold(last)?;
                self.before = self.seen.clone().unwrap_or_default().gaps;
                self.before.extend(untold);
                self.begun = true;
            }
            Some(_) => {}
            None => self.base = newest_base(context, self.place),
        }
        self.sink.go_on(next, last);
        context.reporter.phase("Storing");
        Ok(())
    }

    /// Gaps before segments that were stored by a run which ended without a word: those behind the one that was seen last.
    fn untold(&self, last: &KnownSegment) -> Result<Vec<Gap>, Failure> {
        let mut found = vec![];
        let mut behind = last.clone();
        for _ in 0..UNTOLD {
            let segment = &behind.stored.segment;
            let known = self.seen.as_ref();
            let before = behind.number.checked_sub(1);
            let (Some(before), false) = (
                before,
                known.is_some_and(|seen| seen.last == segment.digest()),
            ) else {
                break;
            };
            let Some(Ok(before)) = self.place.read(before)? else {
                break;
            };
            if let Link::Gap { .. } = segment.link {
                found.push(gap(segment, Some(&before.stored.segment), known));
            }
            behind = before;
        }
        found.reverse();
        Ok(found)
    }

    fn pull(&mut self) -> Result<(), Failure> {
        let (context, place) = (self.context, self.place);
        let begun = Instant::now();
        let last = self.sink.newest().cloned();
        let identity = &context.settings.identity;
        let request = Request {
            last: last.as_ref(),
            first: self.base.as_ref().map_or(First::Newest, First::Base),
            server_id: binlog::replica(
                format!("{}/{}", identity.cluster_id, identity.object.uid).as_bytes(),
            ),
            limits: Limits {
                bytes: SEGMENT,
                ..Limits::default()
            },
        };
        let pulled = binlog::pull(
            &mut || Connection::open(&self.connection),
            &request,
            &mut || context.clock.elapsed(),
            &mut self.sink,
        );
        let lag = begun.elapsed();
        self.sink.stands()?;
        self.found(pulled.as_ref().ok(), last.as_ref());
        self.report(pulled.as_ref().ok(), lag);
        context.check()?;
        let look = pulled.is_err() || !std::mem::replace(&mut self.looked, true);
        let lacks = match look {
            true => {
                let open = &mut || Connection::open(&self.connection);
                binlog::lacks(open, self.interval).unwrap_or_default()
            }
            false => vec![],
        };
        let pulled = match pulled {
            Ok(pulled) => pulled,
            Err(e) => return Err(failure(e, self.source, context, &lacks)),
        };
        for need in lacks.iter().filter(|need| !need.is_right) {
            context
                .reporter
                .warn(&format!("{}: {}", need.what, need.statement));
        }
        if let Some(broken) = &pulled.broken
            && self.broken.as_ref() != Some(broken)
        {
            context
                .reporter
                .warn(&format!("the server's binary log is not whole: {broken}"));
            self.broken = Some(broken.clone());
        }
        if let (Some(newest), Some(moment)) = (self.sink.newest(), pulled.seen) {
            let seen = Seen {
                last: newest.digest(),
                moment,
                gaps: newest_of(&[&self.before, &self.gaps], TOLD),
            };
            place.see(&seen)?;
            self.seen = Some(seen);
        }
        Ok(())
    }

    /// Takes down the gaps of a pull.
    fn found(&mut self, pulled: Option<&Pulled>, last: Option<&Segment>) {
        let seen = self.seen.as_ref();
        let stored = std::mem::take(&mut self.sink.gaps);
        let stored: Vec<Gap> = stored
            .iter()
            .map(|(behind, before)| gap(behind, before.as_ref(), seen))
            .collect();
        let open: Vec<Gap> = pulled
            .iter()
            .flat_map(|p| p.gaps.iter().skip(stored.len()))
            .map(|cause| Gap {
                cause: format!("{cause:?}"),
                from: last
                    .map(|last| time(covered(last, seen)))
                    .unwrap_or_default(),
                message: cause.words().to_owned(),
                ..Gap::default()
            })
            .collect();
        for gap in stored.iter().chain(&open) {
            if self.open.contains(gap) {
                continue;
            }
            let to = if gap.to.is_empty() { "now" } else { &gap.to };
            self.context.reporter.warn(&format!(
                "between {} and {to} events may be missing: {}",
                gap.from, gap.message
            ));
        }
        self.gaps.extend(stored);
        self.open = open;
        self.joins += pulled.map_or(0, |p| p.joins);
        self.begun |= self.sink.newest().is_some();
    }

    /// Says what was stored so far.
    fn report(&self, pulled: Option<&Pulled>, lag: Duration) {
        let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let (sink, count) = (&self.sink, self.sink.count);
        let (first, newest) = (sink.first.as_ref(), sink.newest());
        let seen = pulled.and_then(|p| p.seen);
        let binlogs = Binlogs {
            segments: number(count.segments),
            bytes: number(count.bytes),
            stored_bytes: number(sink.stored_bytes),
            transactions: number(count.transactions),
            from: first.map(|s| at(s, s.from, &s.before.to_string())),
            to: newest.map(|s| at(s, s.to, &s.after.to_string())),
            first: first.map(|s| time(begins(s))).unwrap_or_default(),
            last: newest
                .filter(|s| s.last > 0)
                .map(|s| time(s.last))
                .unwrap_or_default(),
            seen: seen.map(time).unwrap_or_default(),
            lag_seconds: seen.map(|_| number(lag.as_secs())),
            joins: number(self.joins),
            gaps: newest_of(&[&self.before, &self.gaps, &self.open], GAPS),
        };
        let message = format!(
            "{} segments with {} transactions, {} bytes of the server's binary log, stored in {}",
            count.segments,
            count.transactions,
            count.bytes,
            self.place.store.describe()
        );
        self.context.reporter.update(|r| {
            r.raw_bytes = Some(binlogs.bytes);
            r.stored_bytes = Some(binlogs.stored_bytes);
            r.binlogs = Some(binlogs);
            r.message = message;
        });
    }

    /// What the runs before had to tell is told; what this one has is told once more by the next, should its report be lost.
    fn told(&self) -> Result<(), Failure> {
        let Some(seen) = self.seen.as_ref().filter(|_| !self.before.is_empty()) else {
            return Ok(());
        };
        self.place.see(&Seen {
            gaps: newest_of(&[&self.gaps], TOLD),
            ..seen.clone()
        })
    }
}

/// The newest of several lists, the oldest first.
fn newest_of(lists: &[&Vec<Gap>], most: usize) -> Vec<Gap> {
    let mut all: Vec<Gap> = lists.iter().copied().flatten().cloned().collect();
    all.drain(..all.len().saturating_sub(most));
    all
}

/// Where the newest good backup lies in the log: a first pull begins there. One that can't be told is none.
fn newest_base(context: &Context, place: &SegmentPlace) -> Option<Base> {
    let dumps = StoredDumps {
        context,
        store: Arc::clone(&place.store),
    };
    let manifest = match dumps.choose(&Choice::default()) {
        Ok(manifest) => manifest,
        Err(e) => {
            tracing::info!("the first pull begins with the newest file: {e}");
            return None;
        }
    };
    let base = base::base(&manifest);
    if let Err(why) = &base {
        tracing::info!("the first pull begins with the newest file: {why}");
    }
    base.ok()
}

/// Removes segments from before the oldest backup that is kept: no restore begins with them. Trouble is a warning.
pub(crate) fn retain(place: &StoredDumps<'_>) {
    let context = place.context;
    let segments = SegmentPlace::own(context, Arc::clone(&place.store));
    let oldest = || -> Result<u64, Failure> {
        let (own, _) = known(context, place.store(), place.records(), Origin::Own)?;
        let moments = own
            .iter()
            .filter_map(|o| parse_rfc3339(&o.facts.started_at));
        let Some(oldest) = moments.min() else {
            return Ok(0);
        };
        // The server's clock is another one.
        let since = plus_seconds(oldest, -CLOCKS).timestamp();
        segments.retain(context, u32::try_from(since).unwrap_or(0))
    };
    match oldest() {
        Ok(0) => {}
        Ok(count) => tracing::info!(
            event = "retention",
            count,
            "segments of binary logs were removed"
        ),
        Err(e) => context.reporter.warn(&format!(
            "segments of binary logs from before the oldest backup were not all removed: {e}"
        )),
    }
}

/// The last moment that is covered by what was stored up to a segment.
fn covered(last: &Segment, seen: Option<&Seen>) -> u32 {
    let seen = seen.filter(|seen| seen.last == last.digest());
    seen.map_or(0, |seen| seen.moment).max(last.last)
}

fn gap(behind: &Segment, before: Option<&Segment>, seen: Option<&Seen>) -> Gap {
    let cause = match &behind.link {
        binlog::Link::Gap { cause, .. } => *cause,
        _ => binlog::Cause::Mismatch,
    };
    let mut segment = behind.digest();
    segment.truncate(NAMED);
    Gap {
        cause: format!("{cause:?}"),
        from: before.map(|b| time(covered(b, seen))).unwrap_or_default(),
        to: time(begins(behind)),
        message: cause.words().to_owned(),
        segment,
    }
}

/// The moment from which on a segment and what follows it hold everything.
fn begins(segment: &Segment) -> u32 {
    if segment.from == 0 {
        segment.created
    } else {
        segment.first
    }
}

fn at(segment: &Segment, position: u64, gtids: &str) -> LogPlace {
    let mut gtids = gtids.to_owned();
    if let Some((end, _)) = gtids.char_indices().nth(GTIDS) {
        gtids.truncate(end);
        gtids.push('…');
    }
    LogPlace {
        file: segment.file.clone(),
        position,
        gtids,
    }
}

/// A second of the server's clock, RFC 3339.
pub(crate) fn time(seconds: u32) -> String {
    let at = DateTime::from_timestamp(seconds.into(), 0);
    at.map(crds::time::rfc3339).unwrap_or_default()
}

/// Why nothing more could be pulled, with what the server or its user lacks.
fn failure(e: Error, source: &Source, context: &Context, lacks: &[binlog::needs::Need]) -> Failure {
    let refused = |text: String| Failure::at(exit::SOURCE, Reason::ServerRefused, text);
    let failure = match e {
        Error::Sink(cause) => return pipeline::encoding(cause),
        Error::Wire { doing, cause } => {
            let failure = failure_of(&cause, source);
            Failure {
                message: format!("{doing}: {}", failure.message),
                ..failure
            }
        }
        other => refused(format!("{}: {other}", address(source))),
    };
    let must: Vec<String> = lacks
        .iter()
        .filter(|need| need.must)
        .map(|need| format!("{}: {}", need.what, need.statement))
        .collect();
    let needed = match must.is_empty() {
        true => String::new(),
        false => format!("; what is needed: {}", must.join("; ")),
    };
    scrubbed(
        Failure {
            message: format!("{}{needed}", failure.message),
            ..failure
        },
        context,
    )
}
