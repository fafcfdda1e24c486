//! A moment as people type it (PURE): RFC 3339, or a day and a time of day in a zone. What can be read in
//! two ways is refused with both.

use std::fmt::Display;

use chrono::{
    DateTime, Datelike, Days, LocalResult, NaiveDate, NaiveTime, SecondsFormat, TimeZone, Utc,
    Weekday,
};

/// How a moment may be written, for messages.
const FORMS: &str = "write it like 18:00, tomorrow 06:00, monday 06:00, 2026-09-04 18:00 or 2026-09-04T18:00:00+02:00";

/// The moment that a text means in a zone; a time of day without a day is the next one.
///
/// # Errors
/// What is wrong with it, in words that follow the text.
pub(crate) fn moment<Z: TimeZone>(
    text: &str,
    zone: &Z,
    now: DateTime<Utc>,
) -> Result<DateTime<Utc>, String>
where
    Z::Offset: Display,
{
    if let Some(at) = crds::time::parse_rfc3339(text) {
        return Ok(at);
    }
    let here = now.with_timezone(zone);
    let today = here.date_naive();
    let lower = text.trim().to_ascii_lowercase();
    let (day, time) = match lower.split_once(char::is_whitespace) {
        Some((day, time)) => (Some(day), Some(time.trim())),
        None if lower.contains(':') => (None, Some(lower.as_str())),
        None => (Some(lower.as_str()), None),
    };
    let day = day.map(|word| days(word, today)).transpose()?;
    let Some(time) = time else {
        // A day alone: when it begins, or this time of that day?
        let days = day.unwrap_or_default();
        let day = days.first().copied().unwrap_or(today);
        let both = [at(day, NaiveTime::MIN, zone)?, at(day, here.time(), zone)?];
        return Err(two(&both, zone));
    };
    let time = ["%H:%M", "%H:%M:%S"]
        .iter()
        .find_map(|form| NaiveTime::parse_from_str(time, form).ok())
        .ok_or_else(|| format!("is no time; {FORMS}"))?;
    match day.as_deref() {
        None => {
            let first = at(today, time, zone)?;
            match first > now {
                true => Ok(first),
                false => at(following(today, 1)?, time, zone),
            }
        }
        Some([day]) => at(*day, time, zone),
        // A weekday that is today's: today, or in a week?
        Some(days) => {
            let readings: Result<Vec<_>, _> = days.iter().map(|d| at(*d, time, zone)).collect();
            let mut readings = readings?;
            readings.retain(|reading| *reading > now);
            match readings.as_slice() {
                [one] => Ok(*one),
                both => Err(two(both, zone)),
            }
        }
    }
}

/// The days that a word may mean.
fn days(word: &str, today: NaiveDate) -> Result<Vec<NaiveDate>, String> {
    if let Ok(date) = NaiveDate::parse_from_str(word, "%Y-%m-%d") {
        return Ok(vec![date]);
    }
    match word {
        "today" => return Ok(vec![today]),
        "tomorrow" => return Ok(vec![following(today, 1)?]),
        _ => {}
    }
    let weekday: Weekday = word.parse().map_err(|_| format!("is no time; {FORMS}"))?;
    let ahead = (7 + weekday.num_days_from_monday() - today.weekday().num_days_from_monday()) % 7;
    match ahead {
        0 => Ok(vec![today, following(today, 7)?]),
        ahead => Ok(vec![following(today, ahead)?]),
    }
}

fn following(day: NaiveDate, days: u32) -> Result<NaiveDate, String> {
    day.checked_add_days(Days::new(days.into()))
        .ok_or_else(|| "is too far ahead".to_owned())
}

/// A local time as an instant; one that the clocks pass twice or never is refused.
fn at<Z: TimeZone>(day: NaiveDate, time: NaiveTime, zone: &Z) -> Result<DateTime<Utc>, String>
where
    Z::Offset: Display,
{
    let local = day.and_time(time);
    match zone.from_local_datetime(&local) {
        LocalResult::Single(at) => Ok(at.to_utc()),
        LocalResult::Ambiguous(first, second) => Err(two(&[first.to_utc(), second.to_utc()], zone)),
        LocalResult::None => Err(format!(
            "names {}, which the clocks pass over as they go forward",
            local.format("%Y-%m-%d %H:%M")
        )),
    }
}

/// The refusal of what can be read in two ways.
fn two<Z: TimeZone>(readings: &[DateTime<Utc>], zone: &Z) -> String
where
    Z::Offset: Display,
{
    let shown: Vec<String> = readings
        .iter()
        .map(|at| {
            at.with_timezone(zone)
                .to_rfc3339_opts(SecondsFormat::Secs, true)
        })
        .collect();
    format!("can be read as {}; write one of them", shown.join(" or "))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use chrono_tz::Europe::Berlin;
    use crds::time::{parse_rfc3339, rfc3339};

    use super::*;

    /// On Friday 2026-09-04, 13:20 in Berlin.
    fn read(text: &str) -> Result<String, String> {
        let now = parse_rfc3339("2026-09-04T11:20:00Z").unwrap();
        moment(text, &Berlin, now).map(rfc3339)
    }

    #[test]
    fn u17_moments_as_people_type_them() {
        for (text, meant) in [
            ("2026-09-05T06:00:00+02:00", "2026-09-05T04:00:00Z"),
            ("18:00", "2026-09-04T16:00:00Z"),
            // Past for today.
            ("06:00", "2026-09-05T04:00:00Z"),
            ("13:20", "2026-09-05T11:20:00Z"),
            ("today 18:00", "2026-09-04T16:00:00Z"),
            ("Tomorrow  06:00", "2026-09-05T04:00:00Z"),
            ("monday 06:00", "2026-09-07T04:00:00Z"),
            ("Mon 6:30", "2026-09-07T04:30:00Z"),
            // Today is Friday, and this time is past.
            ("friday 06:00", "2026-09-11T04:00:00Z"),
            ("2026-12-01 18:00", "2026-12-01T17:00:00Z"),
            ("2026-10-25 04:00:30", "2026-10-25T03:00:30Z"),
        ] {
            assert_eq!(read(text).as_deref(), Ok(meant), "{text}");
        }
    }

    #[test]
    fn u17_what_has_two_readings_is_refused_with_both() {
        for (text, why) in [
            (
                "tomorrow",
                "can be read as 2026-09-05T00:00:00+02:00 or 2026-09-05T13:20:00+02:00; write one of them",
            ),
            (
                "friday 18:00",
                "can be read as 2026-09-04T18:00:00+02:00 or 2026-09-11T18:00:00+02:00; write one of them",
            ),
            (
                "2026-12-01",
                "can be read as 2026-12-01T00:00:00+01:00 or 2026-12-01T13:20:00+01:00; write one of them",
            ),
            // The clocks go back at 03:00.
            (
                "2026-10-25 02:30",
                "can be read as 2026-10-25T02:30:00+02:00 or 2026-10-25T02:30:00+01:00; write one of them",
            ),
            (
                "2027-03-28 02:30",
                "names 2027-03-28 02:30, which the clocks pass over as they go forward",
            ),
        ] {
            assert_eq!(read(text).unwrap_err(), why, "{text}");
        }
        for text in [
            "",
            "soon",
            "6pm",
            "25:00",
            "tomorrow noon",
            "18",
            "2026-13-01 10:00",
        ] {
            let why = read(text).unwrap_err();
            assert!(
                why.starts_with("is no time; write it like"),
                "{text}: {why}"
            );
        }
    }
}
