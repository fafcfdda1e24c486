//! From text to fields: robfig/cron v3 `ParseStandard` with the API server's check for `TZ`.

use super::Kind;
use super::duration::parse_go_duration;
use super::error::{Field, Problem, ScheduleError};
use super::fields::Fields;

/// Descriptors and what they stand for; letters of lower case only (CronJob rule 2).
const DESCRIPTORS: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// The values of one field as bits, and whether it holds a plain star (CronJob rule 9).
#[derive(Clone, Copy, Default)]
struct Values {
    bits: u64,
    star: bool,
}

/// Parses a schedule.
pub(super) fn parse(text: &str) -> Result<Kind, ScheduleError> {
    if text.is_empty() {
        return Err(ScheduleError::Empty);
    }
    // The API server looks for the letters anywhere, so no other text may hold them either.
    if text.contains("TZ") {
        return Err(ScheduleError::ZoneInSchedule);
    }
    if !text.starts_with('@') {
        return five_fields(text).map(Kind::Fields);
    }
    if let Some((_, fields)) = DESCRIPTORS.iter().find(|(name, _)| *name == text) {
        return five_fields(fields).map(Kind::Fields);
    }
    match text.strip_prefix("@every ") {
        Some(duration) => every(duration).map(Kind::Every),
        None => Err(ScheduleError::Descriptor {
            text: text.to_owned(),
        }),
    }
}

/// The whole seconds of an interval, at least one (CronJob rule 3).
fn every(text: &str) -> Result<i64, ScheduleError> {
    match parse_go_duration(text) {
        Ok(nanos) => Ok((nanos / NANOS_PER_SECOND).max(1)),
        Err(reason) => Err(ScheduleError::Duration {
            text: text.to_owned(),
            reason,
        }),
    }
}

fn five_fields(text: &str) -> Result<Fields, ScheduleError> {
    let words: Vec<&str> = text.split_whitespace().collect();
    if words.len() != Field::ALL.len() {
        return Err(ScheduleError::FieldCount { found: words.len() });
    }
    let mut values = [Values::default(); 5];
    for ((field, word), slot) in Field::ALL.into_iter().zip(words).zip(&mut values) {
        *slot = list(field, word)?;
    }
    let [minute, hour, dom, month, dow] = values;
    Ok(Fields {
        minute: minute.bits,
        hour: hour.bits,
        dom: dom.bits,
        month: month.bits,
        dow: dow.bits,
        day_star: dom.star || dow.star,
    })
}

/// A list of items; empty items are dropped, so that a lone comma matches nothing (rule 11).
fn list(field: Field, text: &str) -> Result<Values, ScheduleError> {
    let mut all = Values::default();
    for item in text.split(',').filter(|item| !item.is_empty()) {
        let one = item_values(field, item).map_err(|problem| ScheduleError::Field {
            field,
            item: item.to_owned(),
            problem,
        })?;
        all.bits |= one.bits;
        all.star |= one.star;
    }
    Ok(all)
}

/// `*`, `?`, `5`, `1-5`, `mon-fri`, each with an optional `/step` (CronJob rules 5 to 8).
fn item_values(field: Field, item: &str) -> Result<Values, Problem> {
    let (low, high) = (i64::from(field.bounds().0), i64::from(field.bounds().1));
    let mut parts = item.split('/');
    let range = parts.next().unwrap_or_default();
    let step = parts.next();
    if parts.next().is_some() {
        return Err(Problem::Slashes);
    }
    let mut ends = range.split('-');
    let first = ends.next().unwrap_or_default();
    let second = ends.next();
    let star = first == "*" || first == "?";
    let (from, mut to) = match second {
        // What follows `*-` is not looked at.
        _ if star => (low, high),
        _ if ends.next().is_some() => return Err(Problem::Hyphens),
        Some(second) => (value(field, first)?, value(field, second)?),
        None => {
            let only = value(field, first)?;
            (only, only)
        }
    };
    let step = step.map_or(Ok(1), step_width)?;
    // `5/10` means from 5 to the end; `5` alone is only itself.
    if second.is_none() && item.contains('/') {
        to = high;
    }
    for end in [from, to] {
        if end < low || end > high {
            return Err(Problem::Outside(end));
        }
    }
    if from > to {
        return Err(Problem::Backwards(from, to));
    }
    let bits = (from..=to)
        .step_by(step)
        .fold(0, |bits, value| bits | 1_u64 << value);
    Ok(Values {
        bits,
        star: star && step == 1,
    })
}

fn value(field: Field, text: &str) -> Result<i64, Problem> {
    let named = field
        .names()
        .iter()
        .position(|name| name.eq_ignore_ascii_case(text));
    match named.and_then(|index| i64::try_from(index).ok()) {
        Some(index) => Ok(index + i64::from(field.bounds().0)),
        None => number(text),
    }
}

/// A number as Go's `Atoi` reads it: ASCII digits with an optional plus sign.
fn number(text: &str) -> Result<i64, Problem> {
    let digits = text.strip_prefix('+').unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Problem::NotAValue(text.to_owned()));
    }
    digits
        .parse()
        .map_err(|_| Problem::TooLarge(text.to_owned()))
}

fn step_width(text: &str) -> Result<usize, Problem> {
    match number(text) {
        Ok(width) if width > 0 => Ok(usize::try_from(width).unwrap_or(usize::MAX)),
        Err(Problem::TooLarge(text)) => Err(Problem::TooLarge(text)),
        _ => Err(Problem::Step(text.to_owned())),
    }
}
