//! Schedules in words, with the runs to come.

use chrono::{DateTime, Duration, Utc};
use crds::schedule::Schedule;
use serde_json::{Value, json};

use super::duration::until;
use super::time::Zone;
use crate::cluster::Object;

/// How far ahead zone changes are told.
const DST_HORIZON: Duration = Duration::days(400);

/// The next `count` slots after `from`.
pub(crate) fn next(
    schedule: &Schedule,
    from: DateTime<Utc>,
    anchor: DateTime<Utc>,
    count: u16,
) -> Vec<DateTime<Utc>> {
    let mut at = from;
    let mut found = vec![];
    while found.len() < usize::from(count) {
        match schedule.next_after(at, anchor) {
            Some(next) => {
                found.push(next);
                at = next;
            }
            None => break,
        }
    }
    found
}

/// `{"next": […]}`, instants in UTC.
pub(crate) fn next_json(slots: &[DateTime<Utc>]) -> Value {
    let slots: Vec<String> = slots.iter().map(|at| crds::time::rfc3339(*at)).collect();
    json!({ "next": slots })
}

/// One line a slot: the instant, and how long from now.
pub(crate) fn next_text(
    schedule: &Schedule,
    slots: &[DateTime<Utc>],
    zone: Zone,
    now: DateTime<Utc>,
) -> String {
    let lines = slots.iter().map(|at| {
        format!(
            "{}   {}\n",
            zone.show(*at, schedule.zone()),
            until(*at, now)
        )
    });
    lines.collect()
}

/// What daylight saving does to a schedule in the year to come.
pub(crate) fn notes(schedule: &Schedule, from: DateTime<Utc>) -> Vec<String> {
    let notes = schedule.dst_notes(from, from + DST_HORIZON);
    notes.iter().map(ToString::to_string).collect()
}

/// The schedule in words, with its zone: `At 02:00 every day (Europe/Berlin)`.
pub(crate) fn words(schedule: &Schedule) -> String {
    let text = schedule.describe();
    let mut letters = text.chars();
    let first = letters.next().map(|c| c.to_ascii_uppercase());
    let text: String = first.into_iter().chain(letters).collect();
    format!("{text} ({})", schedule.zone_name())
}

/// All of it as JSON.
pub(crate) fn explain_json(
    schedule: &Schedule,
    slots: &[DateTime<Utc>],
    notes: &[String],
) -> Value {
    let mut value = next_json(slots);
    value["schedule"] = json!(schedule.text());
    value["timeZone"] = json!(schedule.zone_name());
    value["words"] = json!(schedule.describe());
    value["notes"] = json!(notes);
    value
}

/// The next slot in words, for the line that says what resuming brings.
pub(crate) fn next_run(object: &Object, zone: Zone, now: DateTime<Utc>) -> String {
    let Ok(schedule) = object.schedule() else {
        return "no next run".to_owned();
    };
    match next(&schedule, now, object.created().unwrap_or(now), 1).first() {
        Some(at) => format!(
            "next run {} ({})",
            zone.show(*at, schedule.zone()),
            until(*at, now)
        ),
        None => "no run comes".to_owned(),
    }
}
