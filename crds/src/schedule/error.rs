//! What can be wrong with a schedule or a zone, said so that a user can mend it.

use std::fmt;

use thiserror::Error;

/// One of the five fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// Field 1, 0 to 59.
    Minute,
    /// Field 2, 0 to 23.
    Hour,
    /// Field 3, 1 to 31.
    DayOfMonth,
    /// Field 4, 1 to 12 or JAN to DEC.
    Month,
    /// Field 5, 0 (Sunday) to 6 or SUN to SAT.
    DayOfWeek,
}

impl Field {
    /// All fields in the order they are written.
    pub const ALL: [Self; 5] = [
        Self::Minute,
        Self::Hour,
        Self::DayOfMonth,
        Self::Month,
        Self::DayOfWeek,
    ];

    /// Its place in the expression, from 1.
    #[must_use]
    pub const fn position(self) -> usize {
        self as usize + 1
    }

    /// Smallest and largest value (CronJob rule 4).
    #[must_use]
    pub const fn bounds(self) -> (u32, u32) {
        match self {
            Self::Minute => (0, 59),
            Self::Hour => (0, 23),
            Self::DayOfMonth => (1, 31),
            Self::Month => (1, 12),
            Self::DayOfWeek => (0, 6),
        }
    }

    /// Three-letter names in order of their values, from the smallest value.
    #[must_use]
    pub const fn names(self) -> &'static [&'static str] {
        match self {
            Self::Month => &[
                "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
            ],
            Self::DayOfWeek => &["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
            _ => &[],
        }
    }

    /// The values it takes, for messages.
    const fn values(self) -> &'static str {
        match self {
            Self::Minute => "numbers 0-59",
            Self::Hour => "numbers 0-23",
            Self::DayOfMonth => "numbers 1-31",
            Self::Month => "1-12 or JAN-DEC (three letters)",
            Self::DayOfWeek => "0-6 or SUN-SAT (three letters)",
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::DayOfMonth => "day of month",
            Self::Month => "month",
            Self::DayOfWeek => "day of week",
        })
    }
}

/// Why one item of a field was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// A value outside the bounds.
    Outside(i64),
    /// Not a whole number and not a name of this field.
    NotAValue(String),
    /// More digits than any number here can have.
    TooLarge(String),
    /// A range whose start is beyond its end.
    Backwards(i64, i64),
    /// A step of zero, or below.
    Step(String),
    /// More than one `-`.
    Hyphens,
    /// More than one `/`.
    Slashes,
}

/// Why a schedule or a time zone was refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ScheduleError {
    /// No text at all.
    #[error("the schedule is empty; write five fields such as \"0 3 * * *\", or @daily")]
    Empty,
    /// Not five fields (CronJob rule 1).
    #[error("expected exactly 5 fields, found {found}; {}", count_hint(*found))]
    FieldCount {
        /// Number of fields found.
        found: usize,
    },
    /// `TZ=` or `CRON_TZ=` inside the schedule (CronJob rule 13).
    #[error(
        "TZ or CRON_TZ inside the schedule is not allowed; put the zone's name in timeZone, \
         such as timeZone: Europe/Berlin"
    )]
    ZoneInSchedule,
    /// An unknown `@word` (CronJob rule 2).
    #[error(
        "unrecognized descriptor {}; use @yearly, @annually, @monthly, @weekly, @daily, \
         @midnight, @hourly (lower case, nothing after it) or @every with a duration, \
         such as @every 6h",
        short(text)
    )]
    Descriptor {
        /// The descriptor as written.
        text: String,
    },
    /// A malformed Go duration after `@every`.
    #[error(
        "invalid duration {}: {reason}; write numbers with units h, m or s and no blanks, \
         such as 1h30m",
        short(text)
    )]
    Duration {
        /// The duration as written.
        text: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A field that does not parse.
    #[error("{}", field_message(*field, item, problem))]
    Field {
        /// The field.
        field: Field,
        /// The item of its list that was refused.
        item: String,
        /// What is wrong with it.
        problem: Problem,
    },
    /// `timeZone: ""`.
    #[error("timeZone must not be empty; remove it for UTC, or name a zone such as Europe/Berlin")]
    ZoneEmpty,
    /// `timeZone: Local`.
    #[error(
        "timeZone must be an explicit zone, not {}; name one such as Etc/UTC or Europe/Berlin",
        short(name)
    )]
    ZoneLocal {
        /// The name as written.
        name: String,
    },
    /// A name that is not in the zone data (CronJob rule 15).
    #[error("unknown time zone {}; {hint}", short(name))]
    ZoneUnknown {
        /// The name as written.
        name: String,
        /// Nearest names, or where to look.
        hint: String,
    },
}

impl ScheduleError {
    /// True if the time zone is at fault, not the expression.
    pub fn is_time_zone(&self) -> bool {
        matches!(
            self,
            Self::ZoneEmpty | Self::ZoneLocal { .. } | Self::ZoneUnknown { .. }
        )
    }
}

/// Quotes what the user wrote, cut to a length that fits a message.
fn short(text: &str) -> String {
    const LIMIT: usize = 64;
    if text.chars().count() <= LIMIT {
        return format!("{text:?}");
    }
    let cut: String = text.chars().take(LIMIT).collect();
    format!("{:?}", cut + "…")
}

fn count_hint(found: usize) -> &'static str {
    match found {
        6 | 7 => {
            "write minute, hour, day of month, month, day of week: \
             there is no field for seconds or years, and no comment"
        }
        _ => "write minute, hour, day of month, month, day of week, such as \"0 3 * * *\"",
    }
}

fn field_message(field: Field, item: &str, problem: &Problem) -> String {
    let (at, (low, high)) = (field.position(), field.bounds());
    let values = field.values();
    let of_item = |bare: String| {
        if bare == item {
            String::new()
        } else {
            format!(" in {}", short(item))
        }
    };
    match problem {
        Problem::Outside(7) if field == Field::DayOfWeek => {
            let of = of_item("7".to_owned());
            format!("day of week 7{of} is outside 0-6 (field {at}); Sunday is 0 or SUN")
        }
        Problem::Outside(value) => {
            let of = of_item(value.to_string());
            format!("{field} {value}{of} is outside {low}-{high} (field {at}); use {values}")
        }
        Problem::NotAValue(text) => {
            let of = of_item(text.clone());
            format!(
                "{field} {}{of} is not a value (field {at}); use {values}",
                short(text)
            )
        }
        Problem::TooLarge(text) => {
            format!(
                "{field} {} is too large a number (field {at}); use {values}",
                short(text)
            )
        }
        Problem::Backwards(from, to) => format!(
            "{field} range {} starts beyond its end, {from} > {to} (field {at}); \
             ranges do not wrap around: write two, joined by a comma",
            short(item)
        ),
        Problem::Step(step) => format!(
            "{field} step {} in {} is not a positive whole number (field {at}); \
             write a step such as */5",
            short(step),
            short(item)
        ),
        Problem::Hyphens => format!(
            "{field} {} has more than one hyphen (field {at}); write a range such as {low}-{high}",
            short(item)
        ),
        Problem::Slashes => format!(
            "{field} {} has more than one slash (field {at}); write a step such as */5",
            short(item)
        ),
    }
}
