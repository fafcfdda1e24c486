//! Time zones: names, and where their offsets change.

use chrono::{DateTime, Offset, TimeZone};
use chrono_tz::{TZ_VARIANTS, Tz};

use super::error::ScheduleError;

/// Version of the IANA time zone data compiled in, such as `2025b`.
pub const ZONE_DATA_VERSION: &str = chrono_tz::IANA_TZDB_VERSION;

/// How far apart offsets are probed when a change is looked for: four days, in seconds. No zone
/// of the compiled data keeps an offset for less than six days (held by a test over all zones).
const PROBE: i64 = 4 * 86_400;

/// Outside these instants no zone of the compiled data changes: the years 1844 to 2099.
const DATA_START: i64 = -3_976_214_400;
const DATA_END: i64 = 4_102_444_800;

/// All zone names that `timeZone` takes, in the order of the data.
pub fn zone_names() -> impl Iterator<Item = &'static str> {
    TZ_VARIANTS.iter().map(|zone| zone.name())
}

/// The zone of a name, as the API server takes it for `timeZone` (CronJob rule 15).
///
/// # Errors
/// An empty, local or unknown name; an unknown one comes with the nearest names.
pub fn parse_zone(name: &str) -> Result<Tz, ScheduleError> {
    if name.is_empty() {
        return Err(ScheduleError::ZoneEmpty);
    }
    if name.eq_ignore_ascii_case("local") {
        return Err(ScheduleError::ZoneLocal {
            name: name.to_owned(),
        });
    }
    name.parse().map_err(|_| ScheduleError::ZoneUnknown {
        name: name.to_owned(),
        hint: hint(name),
    })
}

/// What to say of an unknown name: names that may have been meant.
fn hint(name: &str) -> String {
    let wanted = name
        .trim()
        .trim_matches('/')
        .to_ascii_lowercase()
        .replace(' ', "_");
    if let Some(zone) = zone_names().find(|zone| zone.eq_ignore_ascii_case(&wanted)) {
        return format!("did you mean {zone:?}?");
    }
    if let Some(zone) = fixed_offset(&wanted) {
        return format!("did you mean {zone:?}? (its sign is the other way round)");
    }
    let mut near: Vec<(usize, &str)> = zone_names()
        .filter_map(|zone| distance(&wanted, zone).map(|distance| (distance, zone)))
        .collect();
    near.sort_unstable();
    near.truncate(3);
    let names: Vec<String> = near.iter().map(|(_, zone)| format!("{zone:?}")).collect();
    match names.as_slice() {
        [] => "use a name of the IANA time zone list, such as Europe/Berlin".to_owned(),
        names => format!("did you mean {}?", names.join(" or ")),
    }
}

/// `utc+2` and `+02:00` as the zone of that fixed offset, whose name has the sign reversed.
fn fixed_offset(text: &str) -> Option<&'static str> {
    let text = text
        .strip_prefix("utc")
        .or_else(|| text.strip_prefix("gmt"))
        .unwrap_or(text);
    let (sign, digits) = match text.split_at_checked(1)? {
        ("+", digits) => ('-', digits),
        ("-", digits) => ('+', digits),
        _ => return None,
    };
    let hours = digits.strip_suffix(":00").unwrap_or(digits);
    let hours: u8 = if hours.len() <= 2 {
        hours.parse().ok()?
    } else {
        return None;
    };
    let name = if hours == 0 {
        "Etc/UTC".to_owned()
    } else {
        format!("Etc/GMT{sign}{hours}")
    };
    zone_names().find(|zone| *zone == name)
}

/// How far `wanted` (lower case) is from a zone's name or its last part; `None` if too far.
fn distance(wanted: &str, zone: &str) -> Option<usize> {
    let zone = zone.to_ascii_lowercase();
    let city = zone.rsplit('/').next().unwrap_or(&zone);
    if wanted.len() > 40 {
        return None;
    }
    if city.len() > 3 && (wanted == city || wanted.rsplit('/').next() == Some(city)) {
        return Some(1);
    }
    let far = edits(wanted, &zone).min(edits(wanted, city) + 1);
    (far <= wanted.len().div_ceil(5)).then_some(far)
}

/// Edit distance: characters to insert, delete or replace.
fn edits(from: &str, to: &str) -> usize {
    let mut row: Vec<usize> = (0..=to.chars().count()).collect();
    for (line, a) in from.chars().enumerate() {
        let mut diagonal = line;
        let mut left = line + 1;
        for (cell, b) in row
            .iter_mut()
            .zip(std::iter::once(None).chain(to.chars().map(Some)))
        {
            let Some(b) = b else {
                *cell = line + 1;
                continue;
            };
            let best = (diagonal + usize::from(a != b))
                .min(*cell + 1)
                .min(left + 1);
            diagonal = std::mem::replace(cell, best);
            left = best;
        }
    }
    row.last().copied().unwrap_or_default()
}

/// The offset from UTC in force at an instant, in seconds, east positive.
pub(super) fn offset_at(zone: Tz, at: i64) -> i64 {
    let at = DateTime::from_timestamp(at.clamp(DATA_START, DATA_END), 0).unwrap_or_default();
    i64::from(
        zone.offset_from_utc_datetime(&at.naive_utc())
            .fix()
            .local_minus_utc(),
    )
}

/// The first second in `(at, limit]` at which another offset comes into force.
pub(super) fn next_change(zone: Tz, at: i64, limit: i64) -> Option<i64> {
    if fixed(zone) {
        return None;
    }
    let limit = limit.min(DATA_END);
    let mut low = at.max(DATA_START);
    let offset = offset_at(zone, low);
    while low < limit {
        let high = low.saturating_add(PROBE).min(limit);
        if offset_at(zone, high) != offset {
            return Some(boundary(zone, low, high));
        }
        low = high;
    }
    None
}

/// The last second in `(floor, at]` at which the offset in force at `at` came into force.
pub(super) fn last_change(zone: Tz, at: i64, floor: i64) -> Option<i64> {
    if fixed(zone) {
        return None;
    }
    let floor = floor.max(DATA_START);
    let mut high = at.min(DATA_END);
    let offset = offset_at(zone, high);
    while high > floor {
        let low = high.saturating_sub(PROBE).max(floor);
        if offset_at(zone, low) != offset {
            return Some(boundary(zone, low, high));
        }
        high = low;
    }
    None
}

/// The second at which the offset of `high` came into force, which was not so at `low`.
fn boundary(zone: Tz, mut low: i64, mut high: i64) -> i64 {
    let offset = offset_at(zone, high);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if offset_at(zone, middle) == offset {
            high = middle;
        } else {
            low = middle;
        }
    }
    high
}

/// Zones that never changed, recognised without probing. Nearly all schedules are in UTC.
const fn fixed(zone: Tz) -> bool {
    matches!(zone, Tz::UTC | Tz::Etc__UTC | Tz::GMT | Tz::Etc__GMT)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use super::*;

    /// What probing four days apart relies on: a look every other day at every zone finds no
    /// other changes.
    #[test]
    fn no_zone_keeps_an_offset_for_less_than_the_probe() {
        let (start, end, step) = (0, DATA_END, 2 * 86_400);
        for zone in TZ_VARIANTS {
            let mut dense = Vec::new();
            let mut low = offset_at(zone, start);
            for day in (start..end).step_by(step) {
                let next = day + 2 * 86_400;
                let high = offset_at(zone, next);
                if low != high {
                    dense.push(boundary(zone, day, next));
                }
                low = high;
            }
            let mut found = Vec::new();
            let mut at = start;
            while let Some(change) = next_change(zone, at, end) {
                found.push(change);
                at = change;
            }
            assert_eq!(found, dense, "{zone}");
            assert!(
                dense
                    .windows(2)
                    .all(|pair| pair[1] - pair[0] > PROBE + 86_400),
                "{zone}"
            );
            let mut back = Vec::new();
            let mut at = end;
            while let Some(change) = last_change(zone, at, start) {
                back.push(change);
                at = change - 1;
            }
            back.reverse();
            assert_eq!(back, dense, "{zone}");
        }
    }

    #[test]
    fn changes_lie_within_their_limits() {
        // 2025-03-30T01:00:00Z, from the zone data.
        let change = 1_743_296_400;
        let zone = Tz::Europe__Berlin;
        assert_eq!(next_change(zone, change - 10, change), Some(change));
        assert_eq!(next_change(zone, change - 10, change - 1), None);
        assert_eq!(next_change(zone, change, change + 10), None);
        assert_eq!(last_change(zone, change, change - 1), Some(change));
        assert_eq!(last_change(zone, change + 10, change), None);
        assert_eq!(last_change(zone, change - 1, change - 10), None);
        // Wherever the probes fall.
        for shift in -2..=2 {
            let (from, to) = (change - PROBE + shift, change + PROBE + shift);
            assert_eq!(next_change(zone, from, to), Some(change));
            assert_eq!(last_change(zone, to, from), Some(change));
        }
    }

    #[test]
    fn zones_that_are_called_fixed_never_change() {
        for zone in TZ_VARIANTS.into_iter().filter(|zone| fixed(*zone)) {
            assert!(
                (DATA_START..DATA_END)
                    .step_by(86_400)
                    .all(|at| offset_at(zone, at) == 0)
            );
        }
    }
}
