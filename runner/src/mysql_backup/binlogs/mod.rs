//! Binary logs of a MysqlBackup's server: pulled from where the last stored segment ends, stored segment by segment. A run that
//! is ended at any moment leaves whole segments, and the next one goes on behind them.

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
use binlog::{Error, Limits, Pulled, Request, Segment};
use chrono::DateTime;
use crds::report::{Binlogs, Gap, LogPlace, Reason, exit};
use crds::run_spec::RunBinlogs;
use crds::time::{parse_rfc3339, plus_seconds};
use wire::Connection;

use self::place::{LastKnown, SegmentPlace};
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
/// Clocks of server and pod differ by no more seconds.
const CLOCKS: i64 = 3600;
/// Characters of a set of GTIDs in a report.
const GTIDS: usize = 240;

/// Pulls. What was stored stands in the report.
///
/// # Errors
/// The server can't be reached or refuses, its log is off or can't be kept, the store refuses.
pub fn run(context: &Context) -> Result<(), Failure> {
    let settings = &context.settings;
    settings.check()?;
    let source = settings.source()?;
    let interval = settings
        .binlogs
        .map_or(0, |RunBinlogs { interval_seconds }| interval_seconds);
    let interval = Duration::from_secs(interval.into());
    let store = context.open_store()?;
    let place = SegmentPlace::own(context, Arc::clone(&store));
    context
        .reporter
        .leaves("segments that were stored are whole, and the next run goes on behind them");
    let _ticker = Ticker::start(Arc::clone(&context.reporter), move || store.keep_alive());
    for round in 1.. {
        match pull(context, source, &place, interval) {
            Err(e) if e.reason == Reason::AlreadyExists && round < ROUNDS => {
                tracing::info!("{e}");
            }
            other => return other,
        }
    }
    Ok(())
}

fn pull(
    context: &Context,
    source: &Source,
    place: &SegmentPlace,
    interval: Duration,
) -> Result<(), Failure> {
    context.reporter.phase("Connecting");
    let LastKnown {
        last,
        next,
        unreadable,
    } = place.newest(context)?;
    for what in &unreadable {
        context.reporter.warn(&format!(
            "{what} is no manifest of a segment: what it stood for is pulled again as far as the server has it"
        ));
    }
    let before = place.first_seen()?;
    let connection = session_settings(source, context)?;
    let mut open = || Connection::open(&connection);
    context.reporter.phase("Storing");
    let begun = Instant::now();
    let mut sink = SegmentStore::new(context, place, next, last.clone());
    let last = last.map(|last| last.stored.segment);
    let base = match last {
        None => newest_base(context, place),
        Some(_) => None,
    };
    let identity = &context.settings.identity;
    let request = Request {
        last: last.as_ref(),
        first: base.as_ref().map_or(First::Newest, First::Base),
        server_id: binlog::replica(
            format!("{}/{}", identity.cluster_id, identity.object.uid).as_bytes(),
        ),
        limits: Limits {
            bytes: SEGMENT,
            ..Limits::default()
        },
    };
    let pulled = binlog::pull(
        &mut open,
        &request,
        &mut || context.clock.elapsed(),
        &mut sink,
    );
    let lag = begun.elapsed();
    sink.stands()?;
    report(
        context,
        &sink,
        pulled.as_ref().ok(),
        last.as_ref(),
        before.as_ref(),
        lag,
    );
    context.check()?;
    let lacks = binlog::lacks(&mut open, interval);
    let pulled = match pulled {
        Ok(pulled) => pulled,
        Err(e) => return Err(failure(e, source, context, &lacks.unwrap_or_default())),
    };
    for need in lacks.iter().flatten().filter(|need| !need.is_right) {
        context
            .reporter
            .warn(&format!("{}: {}", need.what, need.statement));
    }
    if let Some(broken) = &pulled.broken {
        context
            .reporter
            .warn(&format!("the server's binary log is not whole: {broken}"));
    }
    let newest = pulled.last.as_ref().or(last.as_ref());
    if let (Some(newest), Some(moment)) = (newest, pulled.seen) {
        place.see(&Seen {
            last: newest.digest(),
            moment,
        })?;
    }
    let message = format!(
        "{} segments with {} transactions, {} bytes of the server's binary log, stored in {}",
        pulled.count.segments,
        pulled.count.transactions,
        pulled.count.bytes,
        place.store.describe()
    );
    context.reporter.update(|r| r.message = message);
    Ok(())
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

/// Says what was stored.
fn report(
    context: &Context,
    sink: &SegmentStore<'_>,
    pulled: Option<&Pulled>,
    last: Option<&Segment>,
    before: Option<&Seen>,
    lag: Duration,
) {
    let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    let (newest, count) = (sink.newest(), sink.count);
    let mut gaps: Vec<Gap> = sink
        .gaps
        .iter()
        .map(|(behind, before_it)| gap(behind, before_it.as_ref(), before))
        .collect();
    // One behind which nothing has come yet.
    let known = gaps.len();
    for cause in pulled.iter().flat_map(|p| p.gaps.iter().skip(known)) {
        gaps.push(Gap {
            cause: format!("{cause:?}"),
            from: last
                .map(|last| time(covered(last, before)))
                .unwrap_or_default(),
            to: String::new(),
            message: cause.words().to_owned(),
        });
    }
    for gap in &gaps {
        let to = if gap.to.is_empty() { "now" } else { &gap.to };
        context.reporter.warn(&format!(
            "between {} and {to} events may be missing: {}",
            gap.from, gap.message
        ));
    }
    let seen = pulled.and_then(|p| p.seen);
    let binlogs = Binlogs {
        segments: number(count.segments),
        bytes: number(count.bytes),
        stored_bytes: number(sink.stored_bytes),
        transactions: number(count.transactions),
        from: sink
            .first
            .as_ref()
            .map(|s| at(s, s.from, &s.before.to_string())),
        to: newest.map(|s| at(s, s.to, &s.after.to_string())),
        first: sink
            .first
            .as_ref()
            .map(|s| time(begins(s)))
            .unwrap_or_default(),
        last: newest
            .filter(|s| s.last > 0)
            .map(|s| time(s.last))
            .unwrap_or_default(),
        seen: seen.map(time).unwrap_or_default(),
        lag_seconds: seen.map(|_| number(lag.as_secs())),
        joins: number(pulled.map_or(0, |p| p.joins)),
        gaps,
    };
    context.reporter.update(|r| {
        r.raw_bytes = Some(binlogs.bytes);
        r.stored_bytes = Some(binlogs.stored_bytes);
        r.binlogs = Some(binlogs);
    });
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
    Gap {
        cause: format!("{cause:?}"),
        from: before.map(|b| time(covered(b, seen))).unwrap_or_default(),
        to: time(begins(behind)),
        message: cause.words().to_owned(),
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
