//! Durations as Kubernetes prints them: the exact rules of apimachinery's `HumanDuration`.

use chrono::{DateTime, Utc};

/// `HumanDuration` of a length in milliseconds: units get coarser as the length grows.
pub(crate) fn human_millis(millis: i64) -> String {
    human(millis / 1000)
}

/// `HumanDuration` of whole seconds. Two seconds in the future count as clock skew.
pub(crate) fn human(seconds: i64) -> String {
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let (days, years) = (hours / 24, hours / 24 / 365);
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        _ if minutes < 10 => two(minutes, "m", seconds % 60, "s"),
        _ if minutes < 180 => format!("{minutes}m"),
        _ if hours < 8 => two(hours, "h", minutes % 60, "m"),
        _ if hours < 48 => format!("{hours}h"),
        _ if hours < 192 => two(days, "d", hours % 24, "h"),
        _ if hours < 17_520 => format!("{days}d"),
        _ if hours < 70_080 => two(years, "y", days % 365, "d"),
        _ => format!("{years}y"),
    }
}

fn two(big: i64, big_unit: &str, small: i64, small_unit: &str) -> String {
    if small == 0 {
        format!("{big}{big_unit}")
    } else {
        format!("{big}{big_unit}{small}{small_unit}")
    }
}

/// Reads what [`human`] wrote, as seconds; what it left out is lost.
pub(crate) fn parse(text: &str) -> Option<i64> {
    let (mut total, mut digits) = (0i64, String::new());
    for c in text.chars() {
        let unit = match c {
            '0'..='9' => {
                digits.push(c);
                continue;
            }
            's' => 1,
            'm' => 60,
            'h' => 3600,
            'd' => 86_400,
            'y' => 365 * 86_400,
            _ => return None,
        };
        total = total.checked_add(digits.parse::<i64>().ok()?.checked_mul(unit)?)?;
        digits.clear();
    }
    (digits.is_empty() && !text.is_empty()).then_some(total)
}

/// Reads what [`bytes`] wrote, as tenths of bytes, for putting in order.
pub(crate) fn parse_bytes(text: &str) -> Option<i128> {
    let at = text.find(|c: char| c.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(at);
    let scale = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]
        .iter()
        .position(|u| *u == unit)?;
    let (whole, tenth) = number.split_once('.').unwrap_or((number, "0"));
    let tenths = whole.parse::<i128>().ok()? * 10 + tenth.get(..1)?.parse::<i128>().ok()?;
    Some(tenths << (10 * scale))
}

/// How long ago `at` was.
pub(crate) fn age(at: DateTime<Utc>, now: DateTime<Utc>) -> String {
    human_millis((now - at).num_milliseconds())
}

/// `in 3h12m` for an instant to come, `now` for one that is due.
pub(crate) fn until(at: DateTime<Utc>, now: DateTime<Utc>) -> String {
    let millis = (at - now).num_milliseconds();
    if millis <= 0 {
        return "now".to_owned();
    }
    format!("in {}", human_millis(millis))
}

/// Bytes in binary units with one decimal below 10: `1.8GiB`, `612MiB`, `17B`.
pub(crate) fn bytes(count: i64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let (mut unit, mut scale) = (0, 1i64);
    while unit + 1 < UNITS.len() && count / scale >= 1024 {
        scale *= 1024;
        unit += 1;
    }
    let tenths = (i128::from(count) * 10 + i128::from(scale / 2)) / i128::from(scale);
    if unit == 0 || tenths >= 100 {
        return format!("{}{}", tenths / 10, UNITS[unit]);
    }
    format!("{}.{}{}", tenths / 10, tenths % 10, UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1000;
    const MINUTE: i64 = 60 * SECOND;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    const YEAR: i64 = 365 * DAY;

    /// The vectors of apimachinery's own test, and both sides of each limit of its rules.
    #[test]
    fn vectors_of_human_duration() {
        let rows = [
            (SECOND, "1s"),
            (70 * SECOND, "70s"),
            (190 * SECOND, "3m10s"),
            (70 * MINUTE, "70m"),
            (47 * HOUR, "47h"),
            (49 * HOUR, "2d1h"),
            (194 * HOUR, "8d"),
            (367 * DAY, "367d"),
            (2 * YEAR + 25 * HOUR, "2y1d"),
            (8 * YEAR + 2 * HOUR, "8y"),
            (2 * MINUTE - 1, "119s"),
            (3 * HOUR - 1, "179m"),
            (8 * HOUR + 59 * MINUTE, "8h"),
            (2 * DAY - 1, "47h"),
            (-2 * SECOND, "<invalid>"),
            (-2 * SECOND + 1, "0s"),
            (-1, "0s"),
            (0, "0s"),
            (2 * MINUTE, "2m"),
            (10 * MINUTE - SECOND, "9m59s"),
            (10 * MINUTE, "10m"),
            (3 * HOUR, "3h"),
            (3 * HOUR + MINUTE, "3h1m"),
            (8 * HOUR - 1, "7h59m"),
            (2 * DAY, "2d"),
            (8 * DAY - 1, "7d23h"),
            (2 * YEAR - 1, "729d"),
            (2 * YEAR, "2y"),
            (8 * YEAR - 1, "7y364d"),
        ];
        for (millis, want) in rows {
            assert_eq!(human_millis(millis), want, "{millis} ms");
        }
    }

    #[test]
    fn sizes_keep_two_digits() {
        let rows = [
            (0, "0B"),
            (1023, "1023B"),
            (1024, "1.0KiB"),
            (10 * 1024, "10KiB"),
            (1_932_735_283, "1.8GiB"),
            (642_000_000, "612MiB"),
            (i64::MAX, "8192PiB"),
        ];
        for (count, want) in rows {
            assert_eq!(bytes(count), want, "{count}");
        }
    }

    #[test]
    fn what_is_written_can_be_read() {
        for seconds in [
            0,
            59,
            119,
            599,
            7200,
            86_400,
            3 * 86_400 + 3600,
            800 * 86_400,
        ] {
            let back = parse(&human(seconds)).map(human);
            assert_eq!(back.as_deref(), Some(human(seconds).as_str()));
        }
        assert_eq!(parse("<unknown>"), None);
        assert!(parse_bytes("1.8GiB") > parse_bytes("612MiB"));
        assert_eq!(parse_bytes("-"), None);
    }

    #[test]
    fn times_to_come_have_a_word() {
        let now = crds::time::parse_rfc3339("2026-09-04T09:20:00Z").unwrap();
        assert_eq!(until(now + chrono::Duration::hours(16), now), "in 16h");
        assert_eq!(until(now, now), "now");
    }
}
