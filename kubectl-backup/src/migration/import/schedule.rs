//! The schedule of a model: a cron expression, or gobackup's `every` and `at`.

use crds::schedule::Schedule;

use super::source::Entry;

/// The cron expression.
///
/// # Errors
/// Why there is none.
pub(crate) fn cron(schedule: &Entry<'_>) -> Result<String, String> {
    let at = schedule.text_of("at");
    said(
        schedule.text_of("cron").as_deref(),
        schedule.text_of("every").as_deref(),
        at.as_deref(),
    )
}

fn said(cron: Option<&str>, every: Option<&str>, at: Option<&str>) -> Result<String, String> {
    let text = match (cron, every) {
        (Some(cron), _) => cron.to_owned(),
        (None, Some(every)) => repeated(every, at)?,
        (None, None) => return Err("it has neither cron nor every".to_owned()),
    };
    Schedule::parse(&text, None).map_err(|e| format!("{text:?}: {e}"))?;
    Ok(text)
}

/// `every` and `at`, by a cron expression where one says the same, else by `@every`.
fn repeated(every: &str, at: Option<&str>) -> Result<String, String> {
    let unclear = || format!("every {every:?} is no duration");
    let seconds = match at {
        None => seconds(every).ok_or_else(unclear)?,
        Some(at) => {
            let (hours, minute) =
                times(at).ok_or_else(|| format!("at {at:?} is no time of day"))?;
            return match seconds(every).ok_or_else(unclear)? {
                DAY => Ok(format!("{minute} {hours} * * *")),
                WEEK => Ok(format!("{minute} {hours} * * 0")),
                _ => Err(format!(
                    "every {every:?} at {at:?} can't be said as a cron expression"
                )),
            };
        }
    };
    Ok(match seconds {
        MINUTE => "* * * * *".to_owned(),
        HOUR => "0 * * * *".to_owned(),
        DAY => "0 0 * * *".to_owned(),
        WEEK => "0 0 * * 0".to_owned(),
        n if n % HOUR == 0 && DAY % n == 0 => format!("0 */{} * * *", n / HOUR),
        n if n % MINUTE == 0 && HOUR % n == 0 => format!("*/{} * * * *", n / MINUTE),
        n => format!("@every {n}s"),
    })
}

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const WEEK: i64 = 7 * DAY;

/// Seconds of one number and unit, in Go's words and gobackup's.
fn seconds(every: &str) -> Option<i64> {
    let digits = every
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(every.len());
    let (count, unit) = every.split_at(digits);
    let count: i64 = if count.is_empty() {
        1
    } else {
        count.parse().ok()?
    };
    let unit = match unit.trim().to_lowercase().as_str() {
        "s" | "second" | "seconds" => 1,
        "m" | "min" | "minute" | "minutes" => MINUTE,
        "h" | "hour" | "hours" => HOUR,
        "d" | "day" | "days" => DAY,
        "w" | "week" | "weeks" => WEEK,
        // As gobackup counts it.
        "month" | "months" => 30 * DAY,
        _ => return None,
    };
    count.checked_mul(unit).filter(|n| *n > 0)
}

/// Hours and the minute that `04:05` or `04:05;16:05` name.
fn times(at: &str) -> Option<(String, u32)> {
    let all: Vec<(u32, u32)> = at.split(';').map(time).collect::<Option<_>>()?;
    let (_, minute) = *all.first()?;
    if all.iter().any(|(_, m)| *m != minute) {
        return None;
    }
    let hours: Vec<String> = all.iter().map(|(hour, _)| hour.to_string()).collect();
    Some((hours.join(","), minute))
}

/// `04:05`.
fn time(text: &str) -> Option<(u32, u32)> {
    let (hour, minute) = text.trim().split_once(':')?;
    let (hour, minute) = (hour.parse().ok()?, minute.get(..2)?.parse().ok()?);
    (hour < 24 && minute < 60).then_some((hour, minute))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use super::*;

    #[test]
    fn forms_of_a_schedule() {
        for (cron, every, at, expected) in [
            (Some("5 4 * * sun"), None, None, Some("5 4 * * sun")),
            (None, Some("1day"), Some("04:05"), Some("5 4 * * *")),
            (
                None,
                Some("1day"),
                Some("04:05;16:05"),
                Some("5 4,16 * * *"),
            ),
            (None, Some("1day"), Some("04:05;16:00"), None),
            (None, Some("1week"), Some("04:05"), Some("5 4 * * 0")),
            (None, Some("6h"), None, Some("0 */6 * * *")),
            (None, Some("30m"), None, Some("*/30 * * * *")),
            (None, Some("30s"), None, Some("@every 30s")),
            (None, Some("7h"), None, Some("@every 25200s")),
            (None, Some("3days"), None, Some("@every 259200s")),
            (None, Some("1month"), None, Some("@every 2592000s")),
            (None, Some("3days"), Some("04:05"), None),
            (None, Some("99999999999999999999d"), None, None),
            (Some("61 * * * *"), None, None, None),
            (None, None, None, None),
        ] {
            let found = said(cron, every, at);
            assert_eq!(found.ok().as_deref(), expected, "{cron:?} {every:?} {at:?}");
        }
    }
}
