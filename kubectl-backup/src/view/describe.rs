//! `describe`: the whole chain of one object, from schedule to the last log lines. A link that
//! can't be read is a line that says so.

use chrono_tz::Tz;
use crds::ScheduleStatus;
use crds::run::{Run, RunResult};
use crds::schedule::Schedule;
use crds::secret;
use crds::time::from_k8s;

use super::advice::{Facts, advice};
use super::page::{Inputs, Page, or};
use super::table::Table;
use super::time::zone_or_utc;
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
    let mut page = Page::new(inputs.color);
    head(&mut page, inputs, &status, zone);
    super::settings::settings(&mut page, inputs.object.spec());
    history(&mut page, inputs, &status, zone);
    super::chain::chain(&mut page, inputs, &status);
    tables(&mut page, inputs, &status);
    let facts = Facts {
        object: &inputs.object.kind.short_name(&inputs.object.name()),
        suspended: inputs.object.suspended(),
        generation: inputs.object.object.metadata.generation,
    };
    if let Some(advice) = advice(facts, &status) {
        page.field("Hint", &advice);
    }
    page.finish()
}

fn spec_zone(object: &Object) -> Option<Tz> {
    object.spec()["timeZone"]
        .as_str()
        .and_then(|name| name.parse().ok())
}

fn head(page: &mut Page, inputs: &Inputs<'_>, status: &ScheduleStatus, zone: Tz) {
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
    page.field("Status", &summary(inputs, status));
    schedule(page, inputs, status, zone);
    let suspended = if object.suspended() {
        suspension(inputs, status, zone)
    } else {
        "no".to_owned()
    };
    page.field("Suspended", &suspended);
}

/// `✔ Active, last run succeeded 7h12m ago`.
fn summary(inputs: &Inputs<'_>, status: &ScheduleStatus) -> String {
    let accepted = crds::condition::get(&status.conditions, crds::condition::ACCEPTED);
    let (good, bad) = if inputs.ascii {
        ("OK", "FAILED")
    } else {
        ("✔", "✖")
    };
    if let Some(refused) = accepted.filter(|c| c.status == "False") {
        return format!(
            "{bad} {}: {}",
            refused.reason,
            secret::mask(&refused.message)
        );
    }
    if status.observed_generation.is_none() {
        return "Pending: no operator has seen it yet".to_owned();
    }
    let word = if inputs.object.suspended() {
        "Suspended"
    } else {
        "Active"
    };
    if let Some(run) = status.runs.iter().find(|r| !r.result.is_final()) {
        return format!("{word}, {} {}", run.name, runs::outcome(run, inputs.now));
    }
    let Some(run) = status.runs.iter().find(|r| r.result.is_final()) else {
        return format!("{word}, nothing ran yet");
    };
    let ago = run.completion_time.as_ref().or(run.start_time.as_ref());
    let ago = ago.map(|at| format!(" {} ago", duration::age(from_k8s(at), inputs.now)));
    let unverified = status.unverified();
    if let Some((run, verification)) = unverified.filter(|_| run.result != RunResult::Failed) {
        let why = secret::mask(&verification.message);
        return format!("{bad} {word}, {} failed its verification: {why}", run.name);
    }
    let mark = if run.result == RunResult::Succeeded {
        good
    } else {
        bad
    };
    let result = run.result.as_str().to_lowercase();
    format!(
        "{mark} {word}, last run {result}{}",
        ago.unwrap_or_default()
    )
}

fn schedule(page: &mut Page, inputs: &Inputs<'_>, status: &ScheduleStatus, zone: Tz) {
    let observed = status.schedule.as_ref().map(|s| s.text.clone());
    let spec = &inputs.object.spec()["schedule"];
    let written = spec.as_str().or(spec["cron"].as_str()).map(str::to_owned);
    let text = written.or(observed);
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
    match (run.result, ascii) {
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
