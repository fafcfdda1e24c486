//! A dump and what came after it: which segments lead from it to a moment or a transaction, proven before the target is touched,
//! and replayed once the dump is restored.

mod filter;
mod part;
mod target;

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use binlog::chain::{self, Refusal, Target as Until};
use binlog::reread::{self, Astray, Found, Reading, Reread};
use crds::report::Reason;

use self::filter::{Counts, Filter, Stop};
pub(super) use self::part::Part;
use self::target::{target, words};
use crate::context::Context;
use crate::database::mysql::source::Flavour;
use crate::database::mysql::target::replay::LogFile;
use crate::failure::Failure;
use crate::mysql_backup::base::base;
use crate::mysql_backup::binlogs::place::SegmentPlace;
use crate::mysql_backup::binlogs::reading::{next, open};
use crate::mysql_backup::binlogs::stored::StoredSegment;
use crate::mysql_backup::binlogs::time;
use crate::mysql_backup::manifest::Manifest;
use crate::mysql_backup::stored::StoredDumps;
use crate::settings::options::{Choice, Restore};
use crate::stream::checksum::BUFFER;

/// So many older backups are tried.
const BACKUPS: usize = 50;
/// Manifests are read back to so many seconds before a backup: a clock may have been set back.
const BEFORE: u32 = 86_400;

/// What is replayed, proven.
pub(super) struct Replay {
    /// The backup it begins with.
    pub(super) manifest: Manifest,
    /// Whose logs they are.
    pub(super) logs: Flavour,
    steps: Vec<Step>,
    found: Found,
    asked: String,
    /// What of it is replayed, where that is not all.
    part: Option<Part>,
}

/// A segment, or a part of it.
struct Step {
    stored: StoredSegment,
    start: u64,
    stop: u64,
    /// Where the last transaction ends.
    ends: Option<u64>,
}

/// Chooses the backup, the segments and where in the last one to end. All of it is read and compared.
///
/// # Errors
/// The target can't be reached from what is stored, or that is not what was stored.
pub(super) fn prove(
    context: &Context,
    place: &StoredDumps<'_>,
    options: &Restore,
) -> Result<Option<Replay>, Failure> {
    let Some(asked) = &options.replay else {
        return Ok(None);
    };
    let until = target(asked)?;
    if options.database.is_some() {
        return Err(Failure::settings(
            "binary logs name their databases: what is restored under another name can't be replayed; restore into another server under its own name",
        ));
    }
    let mut choice = options.choice.clone();
    let named = choice.key.is_some() || choice.run.is_some();
    if let (false, Until::Moment(moment)) = (named, &until)
        && choice.at.is_none()
    {
        choice.at = Some(time(*moment));
    }
    let mut first = None;
    for _ in 0..BACKUPS {
        context.check()?;
        let manifest = match (place.choose(&choice), first) {
            (Ok(manifest), refused) => {
                first = refused;
                manifest
            }
            (Err(_), Some(refused)) => return Err(refused),
            (Err(e), None) => return Err(e),
        };
        let started = manifest.started_at.clone();
        match from(context, place, manifest, &until)? {
            Ok(replay) => return Ok(Some(replay)),
            Err(refused) if named => return Err(refused.failure),
            Err(refused) => {
                let older = refused.older;
                first.get_or_insert(refused.failure);
                let Some(before) = older.then(|| earlier(&started)).flatten() else {
                    break;
                };
                choice = Choice {
                    at: Some(before),
                    ..Choice::default()
                };
            }
        }
    }
    Err(first.unwrap_or_else(|| Failure::settings("no backup leads there")))
}

/// The second before, RFC 3339.
fn earlier(started: &str) -> Option<String> {
    let at = crds::time::parse_rfc3339(started)?;
    Some(crds::time::rfc3339(crds::time::plus_seconds(at, -1)))
}

/// Why one backup does not lead there.
struct Refused {
    failure: Failure,
    /// An older one may.
    older: bool,
}

/// What leads from one backup to a later one. All of it is read and compared.
///
/// # Errors
/// What is stored is not what was stored; or the inner one: why nothing leads there, and whether an older backup may.
pub(super) fn between(
    context: &Context,
    place: &StoredDumps<'_>,
    earlier: Manifest,
    later: &Manifest,
) -> Result<Result<Replay, (String, bool)>, Failure> {
    let until = match base(later) {
        Ok(base) => Until::Backup(Box::new(base)),
        Err(why) => return Ok(Err((why, false))),
    };
    Ok(match from(context, place, earlier, &until)? {
        Ok(replay) => Ok(replay),
        Err(refused) if refused.failure.reason == Reason::Damaged => return Err(refused.failure),
        Err(refused) => Err((refused.failure.message, refused.older)),
    })
}

fn from(
    context: &Context,
    place: &StoredDumps<'_>,
    manifest: Manifest,
    until: &Until,
) -> Result<Result<Replay, Refused>, Failure> {
    let base = match base(&manifest) {
        Ok(base) => base,
        Err(why) => {
            let failure = Failure::settings(format!(
                "binary logs can't be replayed behind this backup: {why}"
            ));
            return Ok(Err(Refused {
                failure,
                older: true,
            }));
        }
    };
    let segments = SegmentPlace::of(
        place.store.clone(),
        &manifest.key,
        &manifest.cluster_id,
        &manifest.object,
    );
    let oldest = base.moment.saturating_sub(BEFORE);
    let enough = &mut |found: &[StoredSegment]| {
        found
            .last()
            .is_some_and(|s| s.segment.last != 0 && s.segment.last < oldest)
    };
    let (mut stored, unreadable) = segments.backwards(context, enough)?;
    stored.reverse();
    for what in &unreadable {
        context.reporter.warn(&format!("{what}: it counts as lost"));
    }
    let all: Vec<binlog::Segment> = stored.iter().map(|s| s.segment.clone()).collect();
    let chain = chain::chain(&all);
    let seen = segments.seen()?;
    let known = |digest: &str| all.iter().any(|s| s.digest() == digest);
    let lost = seen.as_ref().is_some_and(|seen| !known(&seen.last)) && !all.is_empty();
    let seen = seen.filter(|_| !lost).map(|seen| seen.moment);
    if lost {
        let text = "the segment that was stored last is not there any more, or its manifest was altered: what is stored ends earlier than it did";
        if *until == Until::Latest {
            return Err(Failure::new(
                Reason::Damaged,
                format!("{text}; ask for a moment or a transaction that is stored"),
            ));
        }
        context.reporter.warn(text);
    }
    let plan = match chain::replay(&all, &chain, &base, until, seen) {
        Ok(plan) => plan,
        Err(refusal) => {
            let older = matches!(
                refusal,
                Refusal::BeforeBase | Refusal::NoBase | Refusal::Ambiguous
            );
            let failure = refused(&refusal, &manifest, until);
            return Ok(Err(Refused { failure, older }));
        }
    };
    if plan.disorder {
        context.reporter.warn("events of an earlier time stand behind the end in the log, for a clock was set back or a statement took long: they are not replayed; a GTID says the place exactly");
    }
    let mut steps: Vec<Step> = plan
        .segments
        .iter()
        .map(|at| Step {
            start: all[*at].from,
            stop: all[*at].to,
            ends: None,
            stored: stored[*at].clone(),
        })
        .collect();
    if let Some(step) = steps.first_mut() {
        step.start = plan.from;
    }
    context.reporter.phase("ReadingBack");
    let mut reread = Reread::new(plan.from, base.gtids.clone(), plan.until.clone());
    for step in &steps {
        if let Err(astray) = read_again(context, place, step, &mut reread)? {
            let older = astray == Astray::BeforeBase;
            let failure = strayed(astray, step, &manifest);
            return Ok(Err(Refused { failure, older }));
        }
    }
    let Some(found) = reread.finish() else {
        return Err(Failure::settings("no segment leads there"));
    };
    if !found.met && matches!(plan.until, Some(Until::Backup(_))) {
        let failure = Failure::settings(format!(
            "no transaction ends where {} was made",
            words(until)
        ));
        return Ok(Err(Refused {
            failure,
            older: false,
        }));
    }
    if !found.met && matches!(plan.until, Some(Until::Gtid(_) | Until::BeforeGtid(_))) {
        return Err(Failure::settings(format!(
            "{}: that transaction is in none of the segments in which its number would be; list what the log has, and name one of them",
            words(until)
        )));
    }
    // What stands behind the end is not replayed.
    steps.truncate(found.end.segment + 1);
    for (step, ends) in steps.iter_mut().zip(&found.ends) {
        step.ends = *ends;
    }
    if let Some(step) = steps.last_mut() {
        step.stop = found.end.position;
    }
    steps.retain(|step| step.start < step.stop);
    Ok(Ok(Replay {
        logs: manifest.flavour(),
        manifest,
        steps,
        found,
        asked: words(until),
        part: None,
    }))
}

/// Reads a segment to its end.
fn read_again(
    context: &Context,
    place: &StoredDumps<'_>,
    step: &Step,
    reread: &mut Reread,
) -> Result<Result<(), Astray>, Failure> {
    let segment = &step.stored.segment;
    let mut bytes = open(context, place.store.as_ref(), &step.stored)?;
    let mut reading = match reread.begin(segment) {
        Ok(reading) => reading,
        Err(astray) => return Ok(Err(astray)),
    };
    let mut buffer = vec![0; BUFFER];
    loop {
        context.check()?;
        let n = next(&mut bytes, &mut buffer, &step.stored.key)?;
        if n == 0 {
            return Ok(reread.end(reading));
        }
        if let Err(astray) = reread.feed(&mut reading, &buffer[..n]) {
            return Ok(Err(astray));
        }
    }
}

fn strayed(astray: Astray, step: &Step, manifest: &Manifest) -> Failure {
    let key = &step.stored.key;
    match astray {
        Astray::Altered(..) => Failure::new(
            Reason::Damaged,
            format!(
                "segment {key}: {astray}; ask for what lies before it: restore up to {}",
                time(step.stored.segment.first)
            ),
        ),
        Astray::BeforeBase => Failure::settings(format!("{}: {astray}", manifest.key)),
        other => Failure::settings(format!(
            "binary logs can't be replayed behind {}: {other}; take another backup",
            manifest.key
        )),
    }
}

/// Why a target can't be reached, and what can.
fn refused(refusal: &Refusal, manifest: &Manifest, until: &Until) -> Failure {
    let key = &manifest.key;
    let text = match refusal {
        Refusal::NoBase => format!(
            "no stored segment of binary logs goes on from {key} ({}): they were not kept at its time; restore it as it is, or name a later backup",
            manifest.position
        ),
        Refusal::Ambiguous => format!(
            "several stored logs have the position of {key}: which one it is of can't be told; name a later backup"
        ),
        Refusal::BeforeBase => {
            format!("{} is not behind {key}: take an older backup", words(until))
        }
        Refusal::Gap(gap) => format!(
            "{} can't be restored: between {} and {} events may be missing, for {}; what can be restored from {key} is all before {}",
            words(until),
            time(gap.from),
            time(gap.to),
            gap.cause.words(),
            time(gap.from)
        ),
        Refusal::Beyond(last) => format!(
            "{} lies beyond what is stored, which ends at {}: wait for the next run, or ask for the latest",
            words(until),
            time(*last)
        ),
        Refusal::Unknown(gtid) => {
            format!("GTID {gtid} is not stored: wait for the next run, or name one that is")
        }
        Refusal::NoEnd => format!(
            "the binary logs that are stored do not reach from {key} to {}",
            words(until)
        ),
    };
    Failure::settings(text)
}

impl Replay {
    /// What is replayed, in words.
    pub(super) fn words(&self) -> String {
        let end = &self.found.end;
        let gtids = end.gtids.to_string();
        let gtids = match gtids.char_indices().nth(120) {
            Some((at, _)) => format!("{}…", &gtids[..at]),
            None => gtids,
        };
        let last = match self.found.last {
            0 => String::new(),
            last => format!(", the last of {}", time(last)),
        };
        let bytes: u64 = self.steps.iter().map(|step| step.stop - step.start).sum();
        format!(
            "{} transactions ({bytes} bytes of {} segments, without a gap) of its binary logs{last}: {}, up to {}:{}{}{gtids}",
            self.found.transactions,
            self.steps.len(),
            self.asked,
            end.file,
            end.position,
            if gtids.is_empty() { "" } else { ", GTID " }
        )
    }

    /// How many transactions are replayed.
    pub(super) fn transactions(&self) -> u64 {
        self.found.transactions
    }

    /// Where it ends, as a report has it.
    pub(super) fn position(&self) -> String {
        format!(
            "{}:{} {}",
            self.found.end.file, self.found.end.position, self.found.end.gtids
        )
    }

    /// The files that are replayed.
    pub(super) fn files<'a>(
        &'a self,
        context: &'a Context,
        place: &'a StoredDumps<'a>,
    ) -> Vec<LogFile<'a>> {
        let files = self.steps.chunk_by(of_one_file);
        files
            .filter_map(|steps| {
                let last = steps.last()?;
                // Where there is no transaction there is nothing to replay.
                let ends = steps.iter().rev().find_map(|step| step.ends)?;
                let part = self.part.as_ref();
                let given = part.map(|_| Arc::new(Mutex::new(None)));
                let told = given.clone();
                Some(LogFile {
                    name: last.stored.segment.file.clone(),
                    ends,
                    stop: last.stop,
                    feed: Box::new(move |out| {
                        let fed = feed(context, place, steps, part, out)?;
                        if let Some(told) = &told {
                            *told.lock().unwrap_or_else(PoisonError::into_inner) = fed.ends;
                        }
                        Ok(())
                    }),
                    given,
                })
            })
            .collect()
    }

    /// From here on nothing is replayed but what is of this part. All of it is read, so that what can't be decided is told
    /// before anything is touched; gives what is left out.
    ///
    /// # Errors
    /// An event can't be decided on, or what is stored is not what was.
    pub(super) fn of_part(
        &mut self,
        context: &Context,
        place: &StoredDumps<'_>,
        part: Part,
    ) -> Result<String, Failure> {
        context.reporter.phase("ReadingBack");
        let mut all = Counts::default();
        for steps in self.steps.chunk_by(of_one_file) {
            let fed = feed(context, place, steps, Some(&part), &mut std::io::sink())?;
            let Counts {
                kept,
                rows,
                statements,
            } = fed.counts;
            all.kept += kept;
            all.rows += rows;
            all.statements += statements;
        }
        self.part = Some(part);
        Ok(format!(
            "of the binary logs what is of the chosen databases and tables is replayed alone: {} transactions of {}; {} events of rows of other tables and {} statements (of other databases and tables, accounts) are left out, and what programs or foreign keys of other tables would have made of them is not there",
            all.kept, self.found.transactions, all.rows, all.statements
        ))
    }
}

fn of_one_file(a: &Step, b: &Step) -> bool {
    let (a, b) = (&a.stored.segment, &b.stored.segment);
    (&a.file, a.created, &a.server) == (&b.file, b.created, &b.server)
}

/// What was given of a file of which events are left out.
#[derive(Default)]
struct Fed {
    ends: Option<(u32, u32)>,
    counts: Counts,
}

/// What can't be decided, and what to do.
fn undecided(why: &str) -> Failure {
    Failure::new(
        Reason::NotInParts,
        format!(
            "binary logs can't be replayed for what was chosen: {why}; end before it (beforeGtid, --before-gtid), choose what it changes too, or restore into another server without choosing and take the part from there"
        ),
    )
}

/// Gives the bytes of a file; each event is checked before it goes. With a part, what is of it alone.
fn feed(
    context: &Context,
    place: &StoredDumps<'_>,
    steps: &[Step],
    part: Option<&Part>,
    out: &mut dyn Write,
) -> Result<Fed, Failure> {
    let name = steps.first().map_or("", |s| s.stored.segment.file.as_str());
    let mut filter = part.map(|part| Filter::new(part, name));
    let mut give = |bytes: &[u8]| -> Result<bool, Failure> {
        let Some(filter) = &mut filter else {
            return Ok(out.write_all(bytes).is_ok());
        };
        match filter.feed(bytes, out) {
            Ok(()) => Ok(true),
            Err(Stop::Output(_)) => Ok(false),
            Err(Stop::Refused(why)) => Err(undecided(&why)),
        }
    };
    let mut begun = false;
    for step in steps {
        let (segment, key) = (&step.stored.segment, &step.stored.key);
        let altered = |astray: Astray| {
            Failure::new(
                Reason::Damaged,
                format!("segment {key}: {astray}, though it was whole when it was read first"),
            )
        };
        if !begun && step.start > 0 {
            let head = reread::head(segment).unwrap_or_default();
            if !give(&head)? {
                return Ok(Fed::default());
            }
        }
        begun = true;
        let mut bytes = open(context, place.store.as_ref(), &step.stored)?;
        let mut reading = Reading::new(segment).map_err(altered)?;
        let (mut buffer, mut at) = (vec![0; BUFFER], segment.from);
        loop {
            context.check()?;
            let n = next(&mut bytes, &mut buffer, key)?;
            if n == 0 {
                break;
            }
            reading
                .feed(&buffer[..n], &mut |_, _| {})
                .map_err(altered)?;
            let (from, to) = (at, at + n as u64);
            at = to;
            let (start, stop) = (from.max(step.start), to.min(step.stop));
            let place_of = |position: u64| usize::try_from(position - from).unwrap_or(n);
            if start < stop && !give(&buffer[place_of(start)..place_of(stop)])? {
                // The program ended: its own words say why.
                return Ok(Fed::default());
            }
        }
        reading.end().map_err(altered)?;
    }
    Ok(filter.map_or_else(Fed::default, |filter| Fed {
        ends: filter.ends(),
        counts: filter.counts(),
    }))
}
