//! Time zones: names, and where their offsets change.

use chrono::{DateTime, Offset, TimeZone};
use chrono_tz::{TZ_VARIANTS, Tz};

use super::error::ScheduleError;

/// Version of the IANA time zone data compiled in, such as `2025b`.
pub const ZONE_DATA_VERSION: &str = chrono_tz::IANA_TZDB_VERSION;

/// How far apart offsets are probed when a change is looked for, in seconds: no zone changes
/// twice within a day (held by a test over all zones).
const PROBE: i64 = 86_400;

/// Outside these years no zone of the compiled data changes: 1800 and 2101.
const DATA_START: i64 = -5_364_662_400;
const DATA_END: i64 = 4_133_980_800;

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
