//! The one place where Kubernetes times (jiff) and ours (chrono) meet.

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, Time};

/// `Time` of an instant, cut to whole seconds as the API server stores it.
/// Instants outside what Kubernetes can write become the first or the last that it can.
pub fn to_k8s(at: DateTime<Utc>) -> Time {
    Time(jiff::Timestamp::from_second(at.timestamp()).unwrap_or_else(|_| end_of(at)))
}

/// `MicroTime` of an instant, for Leases and events.
pub fn to_micro(at: DateTime<Utc>) -> MicroTime {
    let micros = jiff::Timestamp::from_microsecond(at.timestamp_micros());
    MicroTime(micros.unwrap_or_else(|_| end_of(at)))
}

/// The end of the calendar that an instant lies beyond, in whole seconds.
fn end_of(at: DateTime<Utc>) -> jiff::Timestamp {
    let end = if at.timestamp() < 0 {
        jiff::Timestamp::MIN.as_second().saturating_add(1)
    } else {
        jiff::Timestamp::MAX.as_second()
    };
    jiff::Timestamp::from_second(end).unwrap_or_default()
}

/// The instant `seconds` after `at`, before it where they are negative; the end of the calendar
/// where there is none. Whatever adds a number of a user's to a time does it here.
pub fn plus_seconds(at: DateTime<Utc>, seconds: i64) -> DateTime<Utc> {
    let end = if seconds < 0 {
        DateTime::<Utc>::MIN_UTC
    } else {
        DateTime::<Utc>::MAX_UTC
    };
    TimeDelta::try_seconds(seconds)
        .and_then(|delta| at.checked_add_signed(delta))
        .unwrap_or(end)
}

/// The instant of a `Time`.
pub fn from_k8s(at: &Time) -> DateTime<Utc> {
    from_timestamp(at.0)
}

/// The instant of a `MicroTime`.
pub fn from_micro(at: &MicroTime) -> DateTime<Utc> {
    from_timestamp(at.0)
}

fn from_timestamp(at: jiff::Timestamp) -> DateTime<Utc> {
    DateTime::from_timestamp(at.as_second(), at.subsec_nanosecond().unsigned_abs())
        .unwrap_or_default()
}

/// RFC 3339 in UTC with `Z` and whole seconds.
pub fn rfc3339(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// RFC 3339 in `zone` with its offset and whole seconds.
pub fn rfc3339_in(at: DateTime<Utc>, zone: chrono_tz::Tz) -> String {
    at.with_timezone(&zone)
        .to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// Parses RFC 3339; `None` if it is not.
pub fn parse_rfc3339(text: &str) -> Option<DateTime<Utc>> {
    DateTime::parse_from_rfc3339(text.trim())
        .ok()
        .map(|t| t.to_utc())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_seconds_survive_the_round_trip() {
        for text in [
            "2025-01-15T10:30:00Z",
            "1969-12-31T23:59:59Z",
            "2100-02-28T00:00:01Z",
        ] {
            let at = parse_rfc3339(text).unwrap();
            assert_eq!(from_k8s(&to_k8s(at)), at);
            assert_eq!(rfc3339(at), text);
        }
    }

    #[test]
    fn o1_no_number_of_seconds_leaves_the_calendar() {
        let at = parse_rfc3339("2025-01-15T10:30:00Z").unwrap();
        assert_eq!(rfc3339(plus_seconds(at, 90)), "2025-01-15T10:31:30Z");
        assert_eq!(rfc3339(plus_seconds(at, -90)), "2025-01-15T10:28:30Z");
        assert!(plus_seconds(at, 8_208_468_115_199) > at);
        for seconds in [9_000_000_000_000, i64::MAX, i64::MAX / 1000] {
            assert_eq!(plus_seconds(at, seconds), DateTime::<Utc>::MAX_UTC);
            assert_eq!(plus_seconds(at, -seconds), DateTime::<Utc>::MIN_UTC);
        }
        assert_eq!(plus_seconds(at, i64::MIN), DateTime::<Utc>::MIN_UTC);
        let last = from_k8s(&to_k8s(DateTime::<Utc>::MAX_UTC));
        let first = from_k8s(&to_k8s(DateTime::<Utc>::MIN_UTC));
        assert!(rfc3339(last).starts_with("9999-12-"), "{last}");
        assert!(first < at && last > at);
        assert!(from_micro(&to_micro(DateTime::<Utc>::MAX_UTC)) > at);
    }

    #[test]
    fn an_offset_is_read_and_written() {
        let at = parse_rfc3339("2025-07-01T02:00:00+02:00").unwrap();
        assert_eq!(rfc3339(at), "2025-07-01T00:00:00Z");
        assert_eq!(
            rfc3339_in(at, chrono_tz::Europe::Berlin),
            "2025-07-01T02:00:00+02:00"
        );
        assert_eq!(parse_rfc3339("yesterday"), None);
    }
}
