//! The schedule of a model: a cron expression, or gobackup's `every` and `at`.

use crds::schedule::Schedule;
use serde_json::Value;

/// The cron expression.
///
/// # Errors
/// Why there is none.
pub(crate) fn cron(schedule: &Value) -> Result<String, String> {
    let text = match (schedule["cron"].as_str(), schedule["every"].as_str()) {
        (Some(cron), _) => cron.to_owned(),
        (None, Some(every)) => repeated(every, schedule["at"].as_str())?,
        (None, None) => return Err("it has neither cron nor every".to_owned()),
    };
    Schedule::parse(&text, None).map_err(|e| format!("{text:?}: {e}"))?;
    Ok(text)
}

fn repeated(every: &str, at: Option<&str>) -> Result<String, String> {
    let split = every
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(every.len());
    let (count, unit) = every.split_at(split);
    let count: u32 = if count.is_empty() {
        1
    } else {
        count.parse().map_err(|e| format!("every {every:?}: {e}"))?
    };
    let (hour, minute) = match at {
        Some(at) => time(at).ok_or_else(|| format!("at {at:?} is not a time of day"))?,
        None => (0, 0),
    };
    let unit = unit.trim().trim_end_matches('s');
    match (unit, count) {
        ("day" | "d", 1) => Ok(format!("{minute} {hour} * * *")),
        ("week" | "w", 1) => Ok(format!("{minute} {hour} * * 0")),
        ("hour" | "h", n) if n > 0 && 24 % n == 0 && at.is_none() => Ok(match n {
            1 => "0 * * * *".to_owned(),
            24 => "0 0 * * *".to_owned(),
            n => format!("0 */{n} * * *"),
        }),
        ("minute" | "min" | "m", n) if n > 0 && 60 % n == 0 && at.is_none() => Ok(match n {
            1 => "* * * * *".to_owned(),
            60 => "0 * * * *".to_owned(),
            n => format!("*/{n} * * * *"),
        }),
        _ => Err(format!(
            "every {every:?} can't be said as a cron expression"
        )),
    }
}

/// `04:05`.
fn time(text: &str) -> Option<(u32, u32)> {
    let (hour, minute) = text.split_once(':')?;
    let (hour, minute) = (hour.parse().ok()?, minute.get(..2)?.parse().ok()?);
    (hour < 24 && minute < 60).then_some((hour, minute))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use super::*;
    use serde_json::json;

    #[test]
    fn forms_of_a_schedule() {
        for (schedule, expected) in [
            (json!({ "cron": "5 4 * * sun" }), Some("5 4 * * sun")),
            (json!({ "every": "1day", "at": "04:05" }), Some("5 4 * * *")),
            (
                json!({ "every": "1week", "at": "04:05" }),
                Some("5 4 * * 0"),
            ),
            (json!({ "every": "6h" }), Some("0 */6 * * *")),
            (json!({ "every": "30m" }), Some("*/30 * * * *")),
            (json!({ "every": "7h" }), None),
            (json!({ "every": "3days" }), None),
            (json!({ "cron": "61 * * * *" }), None),
            (json!({}), None),
        ] {
            assert_eq!(cron(&schedule).ok().as_deref(), expected, "{schedule}");
        }
    }
}
