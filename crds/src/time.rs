//! The one place where Kubernetes times (jiff) and ours (chrono) meet.

use chrono::{DateTime, SecondsFormat, Utc};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, Time};

/// `Time` of an instant, cut to whole seconds as the API server stores it.
/// Instants outside the years -9999 to 9999 are clamped to the epoch.
pub fn to_k8s(at: DateTime<Utc>) -> Time {
    Time(jiff::Timestamp::from_second(at.timestamp()).unwrap_or_default())
}

/// `MicroTime` of an instant, for Leases and events.
pub fn to_micro(at: DateTime<Utc>) -> MicroTime {
    MicroTime(jiff::Timestamp::from_microsecond(at.timestamp_micros()).unwrap_or_default())
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
