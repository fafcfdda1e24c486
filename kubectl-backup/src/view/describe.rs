//! `describe`: the whole chain of one object, from schedule to the last log lines. A link that
//! can't be read is a line that says so.

use chrono_tz::Tz;
use crds::ScheduleStatus;
use crds::run::{Run, RunResult};
use crds::schedule::Schedule;
use crds::secret;
use crds::time::from_k8s;
use crds::verdict::{Reason, State, Verdict};

use super::advice::advice;
use super::page::{Inputs, Page, or};
use super::table::Table;
use super::time::zone_or_utc;
use super::verdict::{found, mark, word};
use super::{duration, preview, runs};
use crate::cluster::Object;

/// The description.
pub(crate) fn describe(inputs: &Inputs<'_>) -> String {
    let status = inputs.object.status();
    let text = status
        .schedule
        .as_ref()
        .map_or("UTC", |s| s.time_zone.as_str());
    let zone = spec_zone(inputs.object).unwrap_or_else(|| zone_or_utc(text));
    let verdict = super::verdict::of(inputs.object, None, &inputs.missing, inputs.now);
    let mut page = Page::new(inputs.color);
    head(&mut page, inputs, &status, zone, &verdict);
    super::settings::settings(&mut page, inputs.object);
    history(&mut page, inputs, &status, zone);
    super::binlogs::binlogs(&mut page, inputs, &status, zone);
    super::chain::chain(&mut page, inputs, &status);
    tables(&mut page, inputs, &status);
    let name = inputs.object.kind.short_name(&inputs.object.name());
    let generation = inputs.object.object.metadata.generation;
    let once = status.schedule.is_none() && written(inputs.object).is_none();
    if let Some(advice) = advice(&name, once, generation, &status, &verdict) {
        page.field("Hint", &advice);
    }
    page.finish()
}

fn spec_zone(object: &Object) -> Option<Tz> {
    object.spec()["timeZone"]
        .as_str()
        .and_then(|name| name.parse().ok())
}

fn head(
    page: &mut Page,
    inputs: &Inputs<'_>,
    status: &ScheduleStatus,
    zone: Tz,
    verdict: &Verdict,
) {
    let object = inputs.object;
    page.field("Name", &object.name());
    let kind = object.kind;
    page.field(
        "Kind",
        &format!("{} ({}/{})", kind.kind, kind.group, kind.version),
    );
    page.field("Namespace", &object.namespace());
    if let Some(labels) = object
        .object
        .metadata
        .labels
        .as_ref()
        .filter(|l| !l.is_empty())
    {
        let labels: Vec<String> = labels.iter().map(|(k, v)| format!("{k}={v}")).collect();
        page.field("Labels", &labels.join(", "));
    }
    page.field("Status", &summary(inputs, status, verdict));
    for missing in &inputs.missing {
        page.field("Missing", missing);
    }
    schedule(page, inputs, status, zone, verdict);
    let suspended = if object.suspended() {
        suspension(inputs, status, zone)
    } else {
        "no".to_owned()
    };
    page.field("Suspended", &suspended);
}

/// `✔ Active, last run succeeded 7h12m ago`.
fn summary(inputs: &Inputs<'_>, status: &ScheduleStatus, verdict: &Verdict) -> String {
    let mark = mark(verdict.state, inputs.ascii);
    let word = word(verdict.reason, &verdict.cause, verdict.suspended);
    let said = found(verdict).join("; ");
    let open = status.runs.iter().find(|r| !r.result.is_final());
    let open = open.map(|run| format!("{} {}", run.name, runs::outcome(run, inputs.now)));
    match (verdict.reason, open) {
        (Reason::Refused, _) => format!("{mark}{said}"),
        (Reason::Ok | Reason::Suspended, Some(open)) => format!("{mark}{word}, {open}"),
        (Reason::Ok | Reason::Suspended, None) => {
            let ended = status.runs.iter().find(|r| r.result.is_final());
            let Some(run) = ended else {
                return format!("{word}, nothing ran yet");
            };
            let at = run.completion_time.as_ref().or(run.start_time.as_ref());
            let ago = at.map(|at| format!(" {} ago", duration::age(from_k8s(at), inputs.now)));
            let result = run.result.as_str().to_lowercase();
            format!("{mark}{word}, last run {result}{}", ago.unwrap_or_default())
        }
        (Reason::Pending | Reason::Unseen, _) | (_, None) => format!("{mark}{word}, {said}"),
        (_, Some(open)) => format!("{mark}{word}, {said}; {open}"),
    }
}

/// The schedule as it is written.
fn written(object: &Object) -> Option<String> {
    let spec = &object.spec()["schedule"];
    let text = spec.as_str().or(spec["cron"].as_str())?;
    (!text.is_empty()).then(|| text.to_owned())
}

fn schedule(
    page: &mut Page,
    inputs: &Inputs<'_>,
    status: &ScheduleStatus,
    zone: Tz,
    verdict: &Verdict,
) {
    let observed = status.schedule.as_ref().map(|s| s.text.clone());
    let text = written(inputs.object).or(observed);
    let Some(text) = text.filter(|t| !t.is_empty()) else {
        page.field("Schedule", "<none>");
        return;
    };
    let named = inputs.object.spec()["timeZone"].as_str();
    match Schedule::parse(&text, named.or(Some(zone.name()))) {
        Ok(schedule) => {
            page.field(
                "Schedule",
                &format!(
                    "{text}  {:?}  ({})",
                    schedule.describe(),
                    schedule.zone_name()
                ),
            );
            if inputs.object.suspended() {
                page.field("Next runs", "none while suspended");
                return;
            }
            if verdict.cause == crds::condition::reason::SLOT_NOT_STARTED {
                let slot = verdict.since.unwrap_or(inputs.now);
                let due = inputs.zone.show(slot, zone);
                let late = duration::age(slot, inputs.now);
                page.field(
                    "Next runs",
                    &format!("{due} is overdue for {late}; none comes while no operator starts it"),
                );
                return;
            }
            let anchor = status
                .schedule
                .as_ref()
                .and_then(|s| s.anchor.as_ref())
                .map(from_k8s);
            let anchor = anchor.or(inputs.object.created()).unwrap_or(inputs.now);
            let next = preview::next(&schedule, inputs.now, anchor, 3);
            let mut shown: Vec<String> =
                next.iter().map(|at| inputs.zone.show(*at, zone)).collect();
            if let (Some(first), Some(at)) = (shown.first_mut(), next.first()) {
                first.push_str(&format!(" ({})", duration::until(*at, inputs.now)));
            }
            page.field("Next runs", &or(&shown.join(", "), "never"));
        }
        Err(problem) => {
            page.field("Schedule", &text);
            page.field("Next runs", &format!("none: {problem}"));
        }
    }
}

fn suspension(inputs: &Inputs<'_>, status: &ScheduleStatus, zone: Tz) -> String {
    let object = inputs.object;
    let mut text = "yes".to_owned();
    if let Some(since) = status.suspended_since.as_ref().map(from_k8s) {
        text.push_str(&format!(" since {}", inputs.zone.show(since, zone)));
    }
    if let Some(by) = object.annotation(crds::labels::SUSPENDED_BY) {
        text.push_str(&format!(" by {by}"));
    }
    if let Some(why) = object.annotation(crds::labels::SUSPEND_REASON) {
        text.push_str(&format!(": {why:?}"));
    }
    if let Some(until) = object.annotation(crds::labels::RESUME_AT) {
        text.push_str(&format!(", resumes at {until}"));
    }
    text
}

fn history(page: &mut Page, inputs: &Inputs<'_>, status: &ScheduleStatus, zone: Tz) {
    let since = |at: &Option<k8s_openapi::apimachinery::pkg::apis::meta::v1::Time>| {
        at.as_ref().map(|at| {
            let at = from_k8s(at);
            format!(
                "{} ({} ago)",
                inputs.zone.show(at, zone),
                duration::age(at, inputs.now)
            )
        })
    };
    let failures = status.consecutive_failures.unwrap_or(0);
    let last = since(&status.last_successful_time).unwrap_or_else(|| "<never>".to_owned());
    page.field(
        "Last success",
        &format!("{last}   consecutive failures: {failures}"),
    );
    if let Some(at) = since(&status.last_verified_time) {
        page.field("Verified", &at);
    }
    if let Some(totals) = status.totals {
        page.field(
            "Slots",
            &format!(
                "{} due, {} succeeded, {} failed, {} skipped, {} missed; {} manual runs",
                totals.due,
                totals.succeeded,
                totals.failed,
                totals.skipped,
                totals.missed,
                totals.manual
            ),
        );
    }
    for missed in status.missed.iter().take(3) {
        page.field(
            "Missed",
            &format!(
                "{} from {} to {}: {}",
                missed.count,
                inputs.zone.show(from_k8s(&missed.from), zone),
                inputs.zone.show(from_k8s(&missed.to), zone),
                missed.reason
            ),
        );
    }
    let glyphs: Vec<&str> = status
        .runs
        .iter()
        .take(10)
        .rev()
        .map(|r| glyph(r, inputs.ascii))
        .collect();
    if !glyphs.is_empty() {
        page.field(
            "Last runs",
            &format!("{}   (oldest to newest)", glyphs.join(" ")),
        );
    }
}

fn glyph(run: &Run, ascii: bool) -> &'static str {
    // A good run whose artefact is none is no good one.
    let result = match crds::verdict::of_run(run).state {
        State::Critical => RunResult::Failed,
        // It stored nothing, as somebody wished.
        _ if run.ended_on_purpose() => RunResult::Skipped,
        _ => run.result,
    };
    match (result, ascii) {
        (RunResult::Succeeded, false) => "✔",
        (RunResult::Failed, false) => "✖",
        (RunResult::Running, false) => "●",
        (RunResult::Skipped, false) => "○",
        (RunResult::Waiting, false) => "◷",
        (RunResult::Succeeded, true) => "ok",
        (RunResult::Failed, true) => "FAILED",
        (RunResult::Running, true) => "running",
        (RunResult::Skipped, true) => "skipped",
        (RunResult::Waiting, true) => "waiting",
    }
}

fn tables(page: &mut Page, inputs: &Inputs<'_>, status: &ScheduleStatus) {
    if !status.requests.is_empty() {
        let mut table = Table::new(&["ID", "ACTION", "STATE", "BY", "RUN", "MESSAGE"]);
        for request in status.requests.iter().take(3) {
            table.push(vec![
                request.id.clone(),
                request.action.as_str().to_owned(),
                format!("{:?}", request.state),
                or(&request.by, "-"),
                request.job.clone().unwrap_or_else(|| "-".to_owned()),
                or(&secret::mask(&request.message), "-"),
            ]);
        }
        page.table("Requests", &table);
    }
    page.conditions(&status.conditions, inputs.now);
    page.events(&inputs.events, inputs.now);
}
