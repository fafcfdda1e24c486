//! A schedule in words: when in the day, then on which days.

use super::Kind;
use super::fields::Fields;

/// More times of day than this are told as a rule instead of one by one.
const LISTED_TIMES: usize = 6;

const WEEKDAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// All days of a month, of a week, and all months, as the bits of [`Fields`].
const ALL_DAYS: u64 = (1 << 32) - 2;
const ALL_WEEK: u64 = (1 << 7) - 1;
const ALL_MONTHS: u64 = (1 << 13) - 2;

/// Describes a schedule without its zone.
pub(super) fn describe(kind: &Kind) -> String {
    let fields = match kind {
        Kind::Every(seconds) => return format!("every {}", interval(*seconds)),
        Kind::Fields(fields) => fields,
    };
    if fields.never_match() {
        return "never (no such date comes)".to_owned();
    }
    let (times, days) = (times(fields), days(fields));
    match (fields.every_hour(), days.as_str()) {
        (true, "every day") => times,
        _ if times.starts_with("every") => format!("{times}, {days}"),
        _ => format!("{times} {days}"),
    }
}

/// `6 hours`, `1 hour 30 minutes`.
fn interval(seconds: i64) -> String {
    let parts = [
        (seconds / 3_600, "hour"),
        (seconds / 60 % 60, "minute"),
        (seconds % 60, "second"),
    ];
    let words: Vec<String> = parts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, unit)| plural(*count, unit))
        .collect();
    match words.as_slice() {
        // "every hour" rather than "every 1 hour"
        [only] => only.strip_prefix("1 ").unwrap_or(only).to_owned(),
        words => words.join(" "),
    }
}

fn plural(count: i64, unit: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {unit}{ending}")
}

/// When in the day.
fn times(fields: &Fields) -> String {
    let (minutes, hours) = (values(fields.minute), values(fields.hour));
    if !fields.every_hour() && minutes.len() * hours.len() <= LISTED_TIMES {
        let at = hours
            .iter()
            .flat_map(|hour| minutes.iter().map(|minute| clock(*hour, *minute)));
        return format!("at {}", and(at.collect()));
    }
    let (minute_step, hour_step) = (even_step(&minutes, 60), even_step(&hours, 24));
    match (minutes.as_slice(), minute_step, hour_step) {
        ([0], _, Some(1)) if fields.every_hour() => "every hour".to_owned(),
        (_, Some(step), _) if fields.every_hour() => format!("every {}", minute_unit(step)),
        ([minute], _, Some(step)) => {
            let (from, to) = (hours[0], hours[hours.len() - 1]);
            let unit = plural(i64::from(step), "hour");
            let unit = unit.strip_prefix("1 ").unwrap_or(&unit);
            if fields.every_hour() {
                return format!("at minute {minute} of every hour");
            }
            format!(
                "every {unit} from {} to {}",
                clock(from, *minute),
                clock(to, *minute)
            )
        }
        (_, Some(step), Some(1)) => {
            let (from, to) = (hours[0], hours[hours.len() - 1]);
            let last = minutes[minutes.len() - 1];
            format!(
                "every {} from {} to {}",
                minute_unit(step),
                clock(from, minutes[0]),
                clock(to, last)
            )
        }
        _ if fields.every_hour() => {
            format!("at {} of every hour", numbers("minute", fields.minute))
        }
        _ => format!(
            "at {} of {}",
            numbers("minute", fields.minute),
            numbers("hour", fields.hour)
        ),
    }
}

/// `minute`, `5 minutes`.
fn minute_unit(step: u32) -> String {
    if step == 1 {
        "minute".to_owned()
    } else {
        format!("{step} minutes")
    }
}

/// The distance of values that are evenly spaced; for values that go all the way round `cycle`
/// the distance over its end too.
fn even_step(values: &[u32], cycle: u32) -> Option<u32> {
    let [first, second, ..] = values else {
        return None;
    };
    let step = second - first;
    let even = values.windows(2).all(|pair| pair[1] - pair[0] == step);
    let last = values[values.len() - 1];
    let open = cycle == 24 || first + cycle - last == step;
    (even && open).then_some(step)
}

/// On which days.
fn days(fields: &Fields) -> String {
    let in_months = match fields.month {
        ALL_MONTHS => String::new(),
        months => format!(" in {}", month_names(months)),
    };
    let all = fields.dom == ALL_DAYS || fields.dow == ALL_WEEK;
    let (by_month, by_week) = (month_days(fields), week_days(fields.dow));
    match (fields.day_star, fields.dom, fields.dow) {
        (true, ALL_DAYS, ALL_WEEK) => format!("every day{in_months}"),
        (true, ALL_DAYS, _) | (false, 0, _) => format!("every {by_week}{in_months}"),
        (true, ..) | (false, _, 0) => by_month,
        (false, ..) if all => format!("every day{in_months}"),
        (false, ..) => format!("{by_month} and every {by_week}{in_months}"),
    }
}

/// `on day 1 of every month`, `on 1 January`.
fn month_days(fields: &Fields) -> String {
    let (days, months) = (values(fields.dom), values(fields.month));
    if let ([day], [month]) = (days.as_slice(), months.as_slice()) {
        return format!("on {day} {}", MONTHS[*month as usize - 1]);
    }
    let of = if fields.month == ALL_MONTHS {
        "every month".to_owned()
    } else {
        month_names(fields.month)
    };
    format!("on {} of {of}", numbers("day", fields.dom))
}

/// `Monday`, `Monday to Friday`.
fn week_days(bits: u64) -> String {
    spans(bits, |day| WEEKDAYS[day as usize].to_owned())
}

fn month_names(bits: u64) -> String {
    spans(bits, |month| MONTHS[month as usize - 1].to_owned())
}

/// `day 1`, `days 1 to 7 and 15`.
fn numbers(unit: &str, bits: u64) -> String {
    let ending = if bits.count_ones() == 1 { "" } else { "s" };
    format!("{unit}{ending} {}", spans(bits, |value| value.to_string()))
}

/// A list in which three or more values in a row are written as a range.
fn spans(bits: u64, name: impl Fn(u32) -> String) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for value in values(bits) {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == value => *last = value,
            _ => runs.push((value, value)),
        }
    }
    let words = runs.into_iter().flat_map(|(from, to)| match to - from {
        0 => vec![name(from)],
        1 => vec![name(from), name(to)],
        _ => vec![format!("{} to {}", name(from), name(to))],
    });
    and(words.collect())
}

/// `a`, `a and b`, `a, b and c`.
fn and(mut words: Vec<String>) -> String {
    match words.pop() {
        Some(last) if !words.is_empty() => format!("{} and {last}", words.join(", ")),
        last => last.unwrap_or_default(),
    }
}

fn clock(hour: u32, minute: u32) -> String {
    format!("{hour:02}:{minute:02}")
}

/// The values whose bits are set, in order.
fn values(bits: u64) -> Vec<u32> {
    (0..64).filter(|value| bits >> value & 1 == 1).collect()
}
