//! What is due, day by day in one zone (PURE).

use chrono::{DateTime, Days, Local, NaiveDate, NaiveTime, TimeZone, Utc};
use chrono_tz::Tz;
use crds::schedule::Schedule;

use super::duration::until;
use super::preview;
use super::table::Table;
use super::time::Zone;

/// Runs a day beyond which an object gets one line for the day.
const OFTEN: i64 = 12;

/// An object with a schedule.
pub(crate) struct ScheduledObject {
    /// Its namespace.
    pub(crate) namespace: String,
    /// `singular/name`.
    pub(crate) name: String,
    /// Start of the intervals of @every.
    pub(crate) anchor: DateTime<Utc>,
    /// Its schedule.
    pub(crate) schedule: Schedule,
}

/// The zone that all lines are in: the one asked for; else that of all schedules, if they have one in
/// common, else UTC.
fn one_zone(zone: Zone, due: &[ScheduledObject]) -> Zone {
    if zone != Zone::Schedule {
        return zone;
    }
    let mut zones = due.iter().map(|d| d.schedule.zone());
    match zones.next() {
        Some(first) if zones.all(|zone| zone == first) => Zone::Named(first),
        _ => Zone::Utc,
    }
}

/// The day of an instant in the zone.
pub(crate) fn day(zone: Zone, at: DateTime<Utc>) -> NaiveDate {
    match zone {
        Zone::Named(zone) => at.with_timezone(&zone).date_naive(),
        Zone::Local => at.with_timezone(&Local).date_naive(),
        Zone::Utc | Zone::Schedule => at.date_naive(),
    }
}

/// When the day begins in the zone: at midnight, or as soon as it has begun where daylight saving skips
/// that.
pub(crate) fn begins(zone: Zone, day: NaiveDate) -> DateTime<Utc> {
    fn first<Z: TimeZone>(zone: &Z, day: NaiveDate) -> Option<DateTime<Utc>> {
        let hours = (0..24).filter_map(|hour| NaiveTime::from_hms_opt(hour, 0, 0));
        let mut instants = hours.map(|time| zone.from_local_datetime(&day.and_time(time)));
        let found = instants.find_map(|local| local.earliest())?;
        Some(found.with_timezone(&Utc))
    }
    let found = match zone {
        Zone::Named(zone) => first(&zone, day),
        Zone::Local => first(&Local, day),
        Zone::Utc | Zone::Schedule => None,
    };
    found.unwrap_or_else(|| day.and_time(NaiveTime::MIN).and_utc())
}

/// The table: what is due from now on, through so many days.
pub(crate) fn table(
    due: &[ScheduledObject],
    days: u16,
    namespace: bool,
    zone: Zone,
    now: DateTime<Utc>,
) -> Table {
    let zone = one_zone(zone, due);
    let mut lines = vec![];
    let end = now + chrono::Duration::days(i64::from(days));
    let second = chrono::Duration::seconds(1);
    let (mut from, mut after) = (now, now);
    while from < end {
        let next = day(zone, from).checked_add_days(Days::new(1));
        let until = next.map_or(end, |next| begins(zone, next)).min(end);
        for object in due {
            lines.extend(of_day(object, after, until - second));
        }
        if until <= from {
            break;
        }
        // What is due at midnight belongs to the day that begins.
        (from, after) = (until, until - second);
    }
    lines.sort_by(|(a, one, _), (b, other, _)| (a, &one.name).cmp(&(b, &other.name)));
    let mut header = vec!["DAY", "TIME", "IN", "NAME", "NOTE"];
    if namespace {
        header.insert(3, "NAMESPACE");
    }
    let mut table = Table::new(&header);
    for (at, object, note) in lines {
        let shown = zone.show(at, Tz::UTC);
        let (_, time) = shown.split_once('T').unwrap_or(("", &shown));
        let day = day(zone, at).format("%Y-%m-%d %a").to_string();
        let mut cells = vec![day, time.to_owned(), until(at, now)];
        if namespace {
            cells.push(object.namespace.clone());
        }
        cells.extend([object.name.clone(), note]);
        table.push(cells);
    }
    table
}

/// The runs of one object after an instant, up to another; one line where they are many.
fn of_day(
    object: &ScheduledObject,
    after: DateTime<Utc>,
    until: DateTime<Utc>,
) -> Vec<(DateTime<Utc>, &ScheduledObject, String)> {
    let all = object.schedule.count_in(after, until, object.anchor);
    let often = all.count > OFTEN;
    let count = if often {
        1
    } else {
        u16::try_from(all.count).unwrap_or(1)
    };
    let slots = preview::next(&object.schedule, after, object.anchor, count);
    let note = if often {
        format!(
            "then {}, {} runs this day",
            object.schedule.describe(),
            all.count
        )
    } else {
        String::new()
    };
    let slots = slots.into_iter().filter(|_| all.count > 0);
    slots.map(|at| (at, object, note.clone())).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use super::super::table::Look;
    use super::*;

    fn due(name: &str, text: &str, zone: &str) -> ScheduledObject {
        ScheduledObject {
            namespace: "prod".into(),
            name: name.into(),
            anchor: at("2026-01-01T00:00:00Z"),
            schedule: Schedule::parse(text, Some(zone)).unwrap(),
        }
    }

    fn at(text: &str) -> DateTime<Utc> {
        crds::time::parse_rfc3339(text).unwrap()
    }

    fn lines(due: &[ScheduledObject], days: u16, zone: Zone, now: &str) -> Vec<String> {
        let look = Look {
            no_headers: true,
            ..Look::default()
        };
        let text = table(due, days, false, zone, at(now)).render(look);
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        text.lines().map(words).collect()
    }

    #[test]
    fn u17_day_by_day_in_the_one_zone_of_all() {
        let berlin = [
            due("a", "0 2 * * *", "Europe/Berlin"),
            due("b", "30 23 * * *", "Europe/Berlin"),
        ];
        assert_eq!(
            lines(&berlin, 2, Zone::Schedule, "2026-01-02T12:00:00Z"),
            [
                "2026-01-02 Fri 23:30:00+01:00 in 10h b",
                "2026-01-03 Sat 02:00:00+01:00 in 13h a",
                "2026-01-03 Sat 23:30:00+01:00 in 34h b",
                "2026-01-04 Sun 02:00:00+01:00 in 37h a",
            ]
        );
        // Two zones have none in common.
        let both = [
            due("a", "0 2 * * *", "Europe/Berlin"),
            due("b", "0 2 * * *", "Asia/Tokyo"),
        ];
        assert_eq!(
            lines(&both, 1, Zone::Schedule, "2026-01-02T12:00:00Z"),
            [
                "2026-01-02 Fri 17:00:00Z in 5h b",
                "2026-01-03 Sat 01:00:00Z in 13h a"
            ]
        );
    }

    /// Midnight belongs to the day it begins, each run stands once, and what runs often has a line a day.
    #[test]
    fn no_run_twice_and_none_left_out() {
        let midnight = [due("a", "0 0 * * *", "UTC")];
        assert_eq!(
            lines(&midnight, 2, Zone::Utc, "2026-01-02T12:00:00Z"),
            [
                "2026-01-03 Sat 00:00:00Z in 12h a",
                "2026-01-04 Sun 00:00:00Z in 36h a"
            ]
        );
        let often = [due("a", "*/10 * * * *", "UTC")];
        assert_eq!(
            lines(&often, 1, Zone::Utc, "2026-01-02T12:00:00Z"),
            [
                "2026-01-02 Fri 12:10:00Z in 10m a then every 10 minutes, 71 runs this day",
                "2026-01-03 Sat 00:00:00Z in 12h a then every 10 minutes, 72 runs this day",
            ]
        );
    }
}
