//! What `report` tells of a period: of each object what was due and made, how it is now, and of what status
//! does not tell that it is unknown (PURE).

mod csv;
mod days;
mod html;
mod slots;
#[cfg(test)]
mod tests;
mod text;

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use crds::ScheduleStatus;
use crds::binlogs;
use crds::labels;
use crds::parts::VerifyMode;
use crds::restore::{RestorePhase, RestoreSpec, kind_of};
use crds::run::{Run, RunResult, Trigger};
use crds::schedule::Schedule;
use crds::secret::mask;
use crds::status::Totals;
use crds::time::{from_k8s, parse_rfc3339, rfc3339};
use crds::verdict::{self, State, Verdict, good_runs, of_restore, of_run};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, Time};
use serde::ser::{Serialize, Serializer};
use serde_json::Value;

use super::describe_restore::{source, target};
use super::settings;
use super::time::Zone;
use super::verdict::words;
use crate::cluster::Object;

use days::{CalendarEntry, days};
use slots::{Books, Known, Slots};

pub(crate) use csv::csv;
pub(crate) use html::html;
pub(crate) use text::{Shape, text};

/// A span of time: its first second is in it, `until` is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Period {
    /// Its first second.
    pub(crate) from: DateTime<Utc>,
    /// The second behind it.
    pub(crate) until: DateTime<Utc>,
}

impl Period {
    fn holds(&self, at: DateTime<Utc>) -> bool {
        self.from <= at && at < self.until
    }
}

/// What a report is made from.
pub(crate) struct Inputs<'a> {
    /// Objects with a schedule.
    pub(crate) objects: &'a [Object],
    /// Restores of the same namespaces.
    pub(crate) restores: &'a [Object],
    /// Restores that come of none of the objects are told too.
    pub(crate) whole: bool,
    /// The namespace; none for all.
    pub(crate) namespace: Option<&'a str>,
    /// What the caller may not read.
    pub(crate) left_out: Vec<String>,
    /// What is asked for.
    pub(crate) period: Period,
    /// The zone to show times in, and that days are of.
    pub(crate) zone: Zone,
    /// Now.
    pub(crate) now: DateTime<Utc>,
}

/// An instant, in JSON as RFC 3339 in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(pub(crate) DateTime<Utc>);

impl From<&Time> for Moment {
    fn from(at: &Time) -> Self {
        Self(from_k8s(at))
    }
}

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&rfc3339(self.0))
    }
}

/// A report. As JSON it is documented in docs/report.md.
#[derive(Clone, Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Audit {
    made_at: Moment,
    from: Moment,
    until: Moment,
    namespace: Option<String>,
    left_out: Vec<String>,
    summary: Summary,
    items: Vec<Item>,
    restores: Vec<RestoreLine>,
}

impl Audit {
    /// True if there is nothing to tell of.
    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty() && self.restores.is_empty()
    }
}

/// All objects together.
#[derive(Clone, Debug, Default, serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct Summary {
    objects: usize,
    good: usize,
    warning: usize,
    critical: usize,
    unknown: usize,
    incomplete: usize,
    slots: Slots,
}

/// An object.
#[derive(Clone, Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct Item {
    kind: &'static str,
    namespace: String,
    name: String,
    #[serde(skip)]
    short: String,
    #[serde(skip)]
    zone: Tz,
    created: Option<Moment>,
    state: &'static str,
    #[serde(skip)]
    verdict: State,
    reason: &'static str,
    message: String,
    since: Option<Moment>,
    schedule: Option<ScheduleLine>,
    suspension: Suspended,
    slots_since: Option<Moment>,
    slots: Option<Slots>,
    complete: bool,
    known_since: Option<Moment>,
    not_started: Vec<NotStarted>,
    runs: Vec<RunLine>,
    totals: Option<Totals>,
    newest_good: Option<GoodRun>,
    newest_verified: Option<VerifiedRun>,
    last_restore: Option<LastRestore>,
    encryption: String,
    retention: Option<String>,
    binlogs: Option<BinlogsLine>,
    days: Vec<CalendarEntry>,
}

#[derive(Clone, Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct ScheduleLine {
    expression: String,
    words: String,
    time_zone: String,
    since: Option<Moment>,
}

/// Whether it is suspended, and what is known of that.
#[derive(Clone, Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct Suspended {
    suspended: bool,
    since: Option<Moment>,
    by: Option<String>,
    manager: Option<String>,
    reason: Option<String>,
    resume_at: Option<Moment>,
    last_ended: Option<Moment>,
}

/// Slots without a run, as status lists them.
#[derive(Clone, Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct NotStarted {
    from: Moment,
    to: Moment,
    count: i64,
    reason: String,
}

#[derive(Clone, Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct RunLine {
    name: String,
    trigger: &'static str,
    by: Option<String>,
    slot: Option<Moment>,
    result: &'static str,
    #[serde(skip)]
    good: bool,
    #[serde(skip)]
    failed: bool,
    reason: String,
    message: String,
    started: Option<Moment>,
    ended: Option<Moment>,
    seconds: Option<i64>,
    stored_bytes: Option<i64>,
    verification: Option<VerificationLine>,
}

#[derive(Clone, Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct VerificationLine {
    mode: String,
    passed: bool,
    at: Moment,
    message: String,
}

#[derive(Clone, Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct GoodRun {
    run: Option<String>,
    ended: Option<Moment>,
    seconds: Option<i64>,
    stored_bytes: Option<i64>,
    verified: Option<&'static str>,
}

#[derive(Clone, Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct VerifiedRun {
    run: Option<String>,
    mode: Option<String>,
    at: Moment,
}

#[derive(Clone, Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct LastRestore {
    name: String,
    ended: Option<Moment>,
    seconds: Option<i64>,
}

#[derive(Clone, Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct BinlogsLine {
    interval_seconds: Option<i64>,
    continuous: bool,
    recoverable_from: Option<Moment>,
    recoverable_until: Option<Moment>,
    incomplete_since: Option<Moment>,
    gaps: Vec<GapLine>,
}

#[derive(Clone, Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct GapLine {
    from: Option<Moment>,
    to: Option<Moment>,
    reason: String,
    message: String,
}

#[derive(Clone, Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct RestoreLine {
    namespace: String,
    name: String,
    object: Option<String>,
    artefact: String,
    target: String,
    dry_run: bool,
    phase: &'static str,
    state: &'static str,
    #[serde(skip)]
    verdict: State,
    #[serde(skip)]
    succeeded: bool,
    reason: String,
    message: String,
    created: Option<Moment>,
    started: Option<Moment>,
    ended: Option<Moment>,
    seconds: Option<i64>,
    rows: Option<i64>,
}

/// The report.
pub(crate) fn audit(inputs: Inputs<'_>) -> Audit {
    let mut restores: Vec<RestoreLine> = inputs
        .restores
        .iter()
        .map(|object| restore(object, inputs.now))
        .collect();
    restores.sort_by_key(|line| std::cmp::Reverse(line.started.or(line.created)));
    let items: Vec<Item> = inputs
        .objects
        .iter()
        .map(|object| item(object, &restores, &inputs))
        .collect();
    restores.retain(|line| {
        let of_one = |item: &Item| is_of(line, item);
        let at = line.started.or(line.created);
        at.is_some_and(|at| inputs.period.holds(at.0)) && (inputs.whole || items.iter().any(of_one))
    });
    let mut summary = Summary {
        objects: items.len(),
        ..Summary::default()
    };
    for item in &items {
        let count = match item.verdict {
            State::Good => &mut summary.good,
            State::Warning => &mut summary.warning,
            State::Critical => &mut summary.critical,
            State::Unknown => &mut summary.unknown,
        };
        *count += 1;
        summary.incomplete += usize::from(!item.complete);
        summary.slots.add(&item.slots.unwrap_or_default());
    }
    Audit {
        made_at: Moment(inputs.now),
        from: Moment(inputs.period.from),
        until: Moment(inputs.period.until),
        namespace: inputs.namespace.map(str::to_owned),
        left_out: inputs.left_out,
        summary,
        items,
        restores,
    }
}

fn moment(at: &Option<Time>) -> Option<Moment> {
    at.as_ref().map(Moment::from)
}

/// Whole seconds between two instants.
fn seconds(from: &Option<Time>, to: &Option<Time>) -> Option<i64> {
    let (from, to) = (from.as_ref()?, to.as_ref()?);
    Some((from_k8s(to) - from_k8s(from)).num_seconds().max(0))
}

fn item(object: &Object, restores: &[RestoreLine], inputs: &Inputs<'_>) -> Item {
    let (status, now) = (object.status(), inputs.now);
    let created = object.created();
    let born = created.unwrap_or(now);
    let found: Verdict = super::verdict::of(object, None, &[], now);
    let schedule = schedule(object, &status);
    let zone = schedule.as_ref().map_or(Tz::UTC, Schedule::zone);
    let books = schedule.clone().map(|s| Books::of(s, &status, born));
    let period = inputs.period;
    // What came before the object was made is not missing.
    let begin = period.from.max(born);
    let second = chrono::TimeDelta::seconds(1);
    let tally = |books: &Books<'_>| books.tally(period.from - second, period.until - second);
    let slots = books.as_ref().map(tally);
    let complete = match (&books, slots) {
        (Some(books), Some(slots)) => books.after <= begin && slots.unknown == 0,
        _ => unlisted_manual(&status) == 0,
    };
    let known_since = match books.as_ref().map(|books| (books.known(), books.after)) {
        _ if complete => Some(begin),
        Some((Known::All, after)) => Some(after.max(begin)),
        Some((Known::Since(slot), _)) => Some(slot.max(begin)),
        Some((Known::None, _)) | None => None,
    };
    let mut line = Item {
        kind: object.kind.kind,
        namespace: object.namespace(),
        name: object.name(),
        short: object.kind.short_name(&object.name()),
        zone,
        created: created.map(Moment),
        state: found.state.as_str(),
        verdict: found.state,
        reason: found.reason.as_str(),
        message: words(&found, now),
        since: found.since.map(Moment),
        schedule: schedule_line(object, &status, schedule.as_ref()),
        suspension: suspension(object, &status),
        slots_since: books.as_ref().map(|b| Moment(b.after.max(begin))),
        slots,
        complete,
        known_since: known_since.map(Moment),
        not_started: not_started(&status, period),
        runs: runs(&status, period),
        totals: status.totals,
        newest_good: newest_good(&status),
        newest_verified: newest_verified(&status),
        last_restore: None,
        encryption: settings::encryption(object),
        retention: settings::retention(object),
        binlogs: binlogs(object, &status),
        days: days(
            books.as_ref(),
            &status.runs,
            born,
            period,
            match inputs.zone {
                Zone::Schedule => Zone::Named(zone),
                other => other,
            },
        ),
    };
    let done = |r: &&RestoreLine| is_of(r, &line) && r.succeeded && !r.dry_run;
    let last = restores.iter().filter(done).max_by_key(|r| r.ended);
    line.last_restore = last.map(|restore| LastRestore {
        name: restore.name.clone(),
        ended: restore.ended,
        seconds: restore.seconds,
    });
    line
}

/// The schedule that the operator's books are of; of an object that it has not seen, the one in its spec.
fn schedule(object: &Object, status: &ScheduleStatus) -> Option<Schedule> {
    let observed = status.schedule.as_ref().filter(|s| !s.text.is_empty());
    let Some(observed) = observed else {
        return object.schedule().ok();
    };
    let zone = Some(observed.time_zone.as_str()).filter(|zone| !zone.is_empty());
    let schedule = Schedule::parse(&observed.text, zone).ok()?;
    Some(schedule.with_dst_policy(object.dst_policy()))
}

/// The schedule in words. One that is not valid is shown as it is written.
fn schedule_line(
    object: &Object,
    status: &ScheduleStatus,
    schedule: Option<&Schedule>,
) -> Option<ScheduleLine> {
    if let Some(schedule) = schedule {
        return Some(ScheduleLine {
            expression: schedule.text().to_owned(),
            words: schedule.describe(),
            time_zone: schedule.zone_name().to_owned(),
            since: status.schedule.as_ref().and_then(|s| moment(&s.since)),
        });
    }
    let spec = object.spec();
    let text = spec["schedule"]
        .as_str()
        .or(spec["schedule"]["cron"].as_str());
    let zone = spec["timeZone"]
        .as_str()
        .or(spec["schedule"]["timeZone"].as_str());
    Some(ScheduleLine {
        expression: text.filter(|text| !text.is_empty())?.to_owned(),
        words: "not valid".to_owned(),
        time_zone: zone.unwrap_or("UTC").to_owned(),
        since: None,
    })
}

/// Runs that somebody asked for and that status no longer lists.
fn unlisted_manual(status: &ScheduleStatus) -> i64 {
    let manual = |run: &&Run| run.trigger != Trigger::Schedule;
    let listed = status.runs.iter().filter(manual).count();
    let total = status.totals.map_or(0, |totals| totals.manual);
    (total - i64::try_from(listed).unwrap_or(i64::MAX)).max(0)
}

/// What object and managed fields tell of a suspension.
fn suspension(object: &Object, status: &ScheduleStatus) -> Suspended {
    let suspended = object.suspended();
    let note = |key: &str| {
        let text = object.annotation(key).filter(|_| suspended)?;
        Some(mask(text))
    };
    Suspended {
        suspended,
        since: moment(&status.suspended_since).filter(|_| suspended),
        by: note(labels::SUSPENDED_BY),
        manager: manager(object).filter(|_| suspended),
        reason: note(labels::SUSPEND_REASON),
        resume_at: note(labels::RESUME_AT)
            .and_then(|text| parse_rfc3339(&text))
            .map(Moment),
        last_ended: moment(&status.resumed_at),
    }
}

/// The manager that wrote last what suspends the object.
fn manager(object: &Object) -> Option<String> {
    let annotated = object.annotation(labels::SUSPENDED) == Some("true");
    let note = format!("f:{}", labels::SUSPENDED);
    let owns = |entry: &&ManagedFieldsEntry| {
        let Some(fields) = entry.fields_v1.as_ref().map(|fields| &fields.0) else {
            return false;
        };
        let spec = &fields["f:spec"];
        let field = match object.suspend_path() {
            Some(["spec", "schedule", "suspend"]) => &spec["f:schedule"]["f:suspend"],
            Some(_) => &spec["f:suspend"],
            None => &Value::Null,
        };
        let noted = &fields["f:metadata"]["f:annotations"][note.as_str()];
        field.is_object() || annotated && noted.is_object()
    };
    let managers = object.object.metadata.managed_fields.as_ref()?;
    let newest = managers
        .iter()
        .filter(owns)
        .max_by_key(|entry| entry.time.as_ref().map(from_k8s));
    newest?.manager.clone()
}

/// Entries that reach into the period.
fn not_started(status: &ScheduleStatus, period: Period) -> Vec<NotStarted> {
    let within = status.missed.iter().filter(|missed| {
        from_k8s(&missed.from) < period.until && from_k8s(&missed.to) >= period.from
    });
    within
        .map(|missed| NotStarted {
            from: Moment::from(&missed.from),
            to: Moment::from(&missed.to),
            count: missed.count,
            reason: missed.reason.clone(),
        })
        .collect()
}

/// Listed runs of the period, newest first.
fn runs(status: &ScheduleStatus, period: Period) -> Vec<RunLine> {
    let within = |run: &&Run| match run.slot.as_ref().or(run.start_time.as_ref()) {
        Some(at) => period.holds(from_k8s(at)),
        // It waits.
        None => !run.result.is_final(),
    };
    let by = |run: &Run| {
        let asked = status.requests.iter();
        let found = asked.filter(|r| Some(&r.id) == run.request_id.as_ref());
        let mut known = found.filter(|r| !r.by.is_empty());
        known.next().map(|request| request.by.clone())
    };
    let line = |run: &Run| RunLine {
        name: run.name.clone(),
        trigger: run.trigger.as_str(),
        by: by(run),
        slot: moment(&run.slot),
        result: run.result.as_str(),
        good: run.result == RunResult::Succeeded && of_run(run).state == State::Good,
        failed: run.result == RunResult::Failed && !run.ended_on_purpose(),
        reason: run.reason.clone(),
        message: mask(&run.message),
        started: moment(&run.start_time),
        ended: moment(&run.completion_time),
        seconds: seconds(&run.start_time, &run.completion_time),
        stored_bytes: run.stored_bytes,
        verification: run.verification.as_ref().map(|done| VerificationLine {
            mode: done.mode.clone(),
            passed: done.passed,
            at: Moment::from(&done.time),
            message: mask(&done.message),
        }),
    };
    status.runs.iter().filter(within).map(line).collect()
}

/// The newest good run; of one that status no longer lists, when it ended.
fn newest_good(status: &ScheduleStatus) -> Option<GoodRun> {
    let last = moment(&status.last_successful_time);
    let Some(run) = good_runs(status).next() else {
        return Some(GoodRun {
            run: None,
            ended: Some(last?),
            seconds: None,
            stored_bytes: None,
            verified: None,
        });
    };
    Some(GoodRun {
        run: Some(run.name.clone()),
        ended: moment(&run.completion_time).or(last),
        seconds: verdict::duration(run),
        stored_bytes: run.stored_bytes,
        verified: Some(super::runs::verified(run)).filter(|word| *word != "-"),
    })
}

/// The newest verification by a scratch server that passed.
fn newest_verified(status: &ScheduleStatus) -> Option<VerifiedRun> {
    let by_server = |mode: &str| VerifyMode::named(mode).is_some_and(VerifyMode::restores);
    let passed = status.runs.iter().filter_map(|run| {
        let done = run.verification.as_ref()?;
        (done.passed && by_server(&done.mode)).then(|| VerifiedRun {
            run: Some(run.name.clone()),
            mode: Some(done.mode.clone()),
            at: Moment::from(&done.time),
        })
    });
    let unlisted = status.last_verified_time.as_ref().map(|at| VerifiedRun {
        run: None,
        mode: None,
        at: Moment::from(at),
    });
    passed.max_by_key(|verified| verified.at).or(unlisted)
}

/// Where binary logs are stored, or are to be.
fn binlogs(object: &Object, status: &ScheduleStatus) -> Option<BinlogsLine> {
    let asked: Option<binlogs::Binlogs> = object
        .spec()
        .get("binlogs")
        .and_then(|asked| serde_json::from_value(asked.clone()).ok());
    let Some(books) = &status.binlogs else {
        let asked = asked?;
        return Some(BinlogsLine {
            interval_seconds: asked.seconds().ok(),
            continuous: asked.continuous,
            recoverable_from: None,
            recoverable_until: None,
            incomplete_since: None,
            gaps: vec![],
        });
    };
    let newest = books.windows.first();
    Some(BinlogsLine {
        interval_seconds: Some(books.interval_seconds),
        continuous: books.continuous,
        recoverable_from: newest.map(|window| Moment::from(&window.from)),
        recoverable_until: newest.map(|window| Moment::from(&window.until)),
        incomplete_since: moment(&books.incomplete_since),
        gaps: books
            .gaps
            .iter()
            .map(|gap| GapLine {
                from: moment(&gap.from),
                to: moment(&gap.to),
                reason: gap.reason.clone(),
                message: mask(&gap.message),
            })
            .collect(),
    })
}

fn restore(object: &Object, now: DateTime<Utc>) -> RestoreLine {
    let spec: RestoreSpec = serde_json::from_value(object.spec().clone()).unwrap_or_default();
    let status = object.restore_status();
    let created = object.created();
    let found = of_restore(&status, created.unwrap_or(now), now);
    let from = &spec.from;
    let of = from.name.as_ref();
    let (place, artefact) = source(&spec);
    let check = object.object.metadata.labels.as_ref();
    let check = check.is_some_and(|labels| labels.contains_key(labels::CHECK));
    RestoreLine {
        namespace: object.namespace(),
        name: object.name(),
        object: of.map(|name| format!("{}/{name}", kind_of(from).to_lowercase())),
        artefact: match of {
            Some(_) => artefact,
            None => format!("{place}, {artefact}"),
        },
        target: target(&spec),
        dry_run: spec.dry_run || check,
        phase: status.phase.map_or("Pending", RestorePhase::as_str),
        state: found.state.as_str(),
        verdict: found.state,
        succeeded: status.phase == Some(RestorePhase::Succeeded),
        reason: status.reason.clone(),
        message: mask(&status.message),
        created: created.map(Moment),
        started: moment(&status.start_time),
        ended: moment(&status.completion_time),
        seconds: seconds(&status.start_time, &status.completion_time),
        rows: status.rows,
    }
}

/// True if the Restore is of what the object stored.
fn is_of(restore: &RestoreLine, item: &Item) -> bool {
    restore.namespace == item.namespace && restore.object.as_ref() == Some(&item.short)
}
