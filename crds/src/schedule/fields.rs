//! The five fields as bit sets, and walks over civil time.
//!
//! *Civil time* is what a wall clock shows, written as seconds since 1970-01-01T00:00 of the same
//! clock. It knows nothing of zones; `next` maps it to instants.

use chrono::{DateTime, Datelike, NaiveDate};

/// Seconds in a minute.
const MINUTE: i64 = 60;
/// Minutes in a day.
const DAY_MINUTES: i64 = 24 * 60;
/// Days after which the calendar repeats, weekdays included: 400 years.
const CALENDAR_CYCLE: i64 = 146_097;

/// What a five-field expression matches. Bit `n` stands for the value `n`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fields {
    pub(super) minute: u64,
    pub(super) hour: u64,
    pub(super) dom: u64,
    pub(super) month: u64,
    /// Bit 0 is Sunday.
    pub(super) dow: u64,
    /// One of the day fields holds a plain star, so both must match; else either is enough
    /// (CronJob rule 10).
    pub(super) day_star: bool,
}

/// A day of the calendar.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Day {
    year: i32,
    month: u32,
    day: u32,
}

impl Day {
    fn of(number: i64) -> Option<Self> {
        let date = NaiveDate::from_epoch_days(i32::try_from(number).ok()?)?;
        Some(Self {
            year: date.year(),
            month: date.month(),
            day: date.day(),
        })
    }

    /// Days since 1970-01-01.
    fn number(self) -> Option<i64> {
        let date = NaiveDate::from_ymd_opt(self.year, self.month, self.day)?;
        Some(i64::from(date.to_epoch_days()))
    }
}

/// The civil year of a civil time; `None` outside chrono's years.
pub(super) fn year_of(civil: i64) -> Option<i32> {
    Day::of(civil.div_euclid(86_400)).map(|day| day.year)
}

/// The first civil second of a year; `None` outside chrono's years.
pub(super) fn start_of_year(year: i32) -> Option<i64> {
    Day {
        year,
        month: 1,
        day: 1,
    }
    .number()
    .map(|day| day * 86_400)
}

impl Fields {
    /// The first match at or after `from`, in a year up to `last_year`.
    pub(super) fn next_civil(&self, from: i64, last_year: i32) -> Option<i64> {
        let from = ceil_minute(from);
        let today = from.div_euclid(DAY_MINUTES);
        let at = Day::of(today)?;
        if at.year > last_year {
            return None;
        }
        if self.days_of_month(at.year, at.month) >> at.day & 1 == 1
            && let Some(time) = self.next_time(from.rem_euclid(DAY_MINUTES))
        {
            return Some((today * DAY_MINUTES + time) * MINUTE);
        }
        let first = self.next_time(0)?;
        let day = self.next_day(at, last_year)?.number()?;
        Some((day * DAY_MINUTES + first) * MINUTE)
    }

    /// The last match at or before `until`, in a year from `first_year`.
    pub(super) fn prev_civil(&self, until: i64, first_year: i32) -> Option<i64> {
        let until = until.div_euclid(MINUTE);
        let today = until.div_euclid(DAY_MINUTES);
        let at = Day::of(today)?;
        if at.year < first_year {
            return None;
        }
        if self.days_of_month(at.year, at.month) >> at.day & 1 == 1
            && let Some(time) = self.prev_time(until.rem_euclid(DAY_MINUTES))
        {
            return Some((today * DAY_MINUTES + time) * MINUTE);
        }
        let last = self.prev_time(DAY_MINUTES - 1)?;
        let day = self.prev_day(at, first_year)?.number()?;
        Some((day * DAY_MINUTES + last) * MINUTE)
    }

    /// The number of matches in `from..to`.
    pub(super) fn count_civil(&self, from: i64, to: i64) -> i64 {
        let (from, to) = (ceil_minute(from), ceil_minute(to));
        if from >= to {
            return 0;
        }
        let (first, last) = (from.div_euclid(DAY_MINUTES), to.div_euclid(DAY_MINUTES));
        let head = self.times_before(from.rem_euclid(DAY_MINUTES));
        let tail = self.times_before(to.rem_euclid(DAY_MINUTES));
        let whole = self.count_days(first, last) * self.times_before(DAY_MINUTES);
        whole - self.count_days(first, first + 1) * head + self.count_days(last, last + 1) * tail
    }

    /// True if no date ever matches.
    ///
    /// The one question put to the `cron` crate. It walks fields of civil time well, in another
    /// dialect: seconds first, Sunday is 1, no empty sets, both day fields must match, and the
    /// years end with 2100. None of that matters here: every calendar of the fields comes round
    /// within 28 years. Slots themselves come from the walks in this file, which know no last
    /// year, count, and take a hundredth of the memory.
    pub(super) fn never_match(&self) -> bool {
        let start = DateTime::UNIX_EPOCH;
        !self
            .in_cron_dialect()
            .iter()
            .any(|cron| cron.after(&start).next().is_some())
    }

    /// The same fields as one or two schedules of the `cron` crate whose union is meant; none if
    /// a field is empty.
    pub(super) fn in_cron_dialect(&self) -> Vec<cron::Schedule> {
        let list = |bits: u64, shift: u32| {
            let values: Vec<String> = (0..64)
                .filter(|bit| bits >> bit & 1 == 1)
                .map(|bit| (bit + shift).to_string())
                .collect();
            (!values.is_empty()).then(|| values.join(","))
        };
        let any = || Some("*".to_owned());
        let (dom, dow) = (list(self.dom, 0), list(self.dow, 1));
        let days = if self.day_star {
            vec![(dom, dow)]
        } else {
            vec![(dom, any()), (any(), dow)]
        };
        days.into_iter()
            .filter_map(|(dom, dow)| {
                let (minute, hour) = (list(self.minute, 0)?, list(self.hour, 0)?);
                let (month, dom, dow) = (list(self.month, 0)?, dom?, dow?);
                format!("0 {minute} {hour} {dom} {month} {dow}")
                    .parse()
                    .ok()
            })
            .collect()
    }

    /// True if all 24 hours match.
    pub(super) const fn every_hour(&self) -> bool {
        self.hour == (1 << 24) - 1
    }

    /// The days of one month that match, as bits 1 to 31 (CronJob rule 10).
    fn days_of_month(&self, year: i32, month: u32) -> u64 {
        if self.month >> month & 1 == 0 {
            return 0;
        }
        let Some(first) = NaiveDate::from_ymd_opt(year, month, 1) else {
            return 0;
        };
        let length = u32::from(first.num_days_in_month());
        // The week's pattern, repeated, shifted so that bit 1 is the first of the month.
        let weeks = (0..6).fold(0_u64, |bits, week| bits | self.dow << (7 * week));
        let by_week = weeks >> first.weekday().num_days_from_sunday() << 1;
        let days = if self.day_star {
            self.dom & by_week
        } else {
            self.dom | by_week
        };
        days & ((1 << (length + 1)) - 2)
    }

    /// The first matching day after `at`, in a year up to `last_year`.
    fn next_day(&self, at: Day, last_year: i32) -> Option<Day> {
        let Day {
            mut year,
            mut month,
            day,
        } = at;
        let mut left = self.days_of_month(year, month) >> (day + 1) << (day + 1);
        while left == 0 {
            (year, month) = if month == 12 {
                (year + 1, 1)
            } else {
                (year, month + 1)
            };
            if year > last_year {
                return None;
            }
            left = self.days_of_month(year, month);
        }
        Some(Day {
            year,
            month,
            day: left.trailing_zeros(),
        })
    }

    /// The last matching day before `at`, in a year from `first_year`.
    fn prev_day(&self, at: Day, first_year: i32) -> Option<Day> {
        let Day {
            mut year,
            mut month,
            day,
        } = at;
        let mut left = self.days_of_month(year, month) & ((1 << day) - 1);
        while left == 0 {
            (year, month) = if month == 1 {
                (year - 1, 12)
            } else {
                (year, month - 1)
            };
            if year < first_year {
                return None;
            }
            left = self.days_of_month(year, month);
        }
        Some(Day {
            year,
            month,
            day: left.ilog2(),
        })
    }

    /// Matching days in `from..to`, both as days since 1970.
    fn count_days(&self, from: i64, to: i64) -> i64 {
        let cycles = (to - from) / CALENDAR_CYCLE;
        if cycles < 1 {
            return self.count_days_by_month(from, to);
        }
        cycles * self.count_days_by_month(from, from + CALENDAR_CYCLE)
            + self.count_days_by_month(from + cycles * CALENDAR_CYCLE, to)
    }

    fn count_days_by_month(&self, from: i64, to: i64) -> i64 {
        if from >= to {
            return 0;
        }
        let (Some(first), Some(last)) = (Day::of(from), Day::of(to - 1)) else {
            return 0;
        };
        let mut total = 0;
        let (mut year, mut month) = (first.year, first.month);
        loop {
            let mut days = self.days_of_month(year, month);
            if (year, month) == (first.year, first.month) {
                days &= u64::MAX << first.day;
            }
            if (year, month) == (last.year, last.month) {
                days &= (1 << (last.day + 1)) - 1;
                return total + i64::from(days.count_ones());
            }
            total += i64::from(days.count_ones());
            (year, month) = if month == 12 {
                (year + 1, 1)
            } else {
                (year, month + 1)
            };
        }
    }

    /// The first matching minute of the day at or after `from`.
    fn next_time(&self, from: i64) -> Option<i64> {
        let (hour, minute) = (from / 60, from % 60);
        let left = self.minute >> minute << minute;
        if self.hour >> hour & 1 == 1 && left != 0 {
            return Some(hour * 60 + i64::from(left.trailing_zeros()));
        }
        let hours = self.hour >> (hour + 1) << (hour + 1);
        (hours != 0 && self.minute != 0)
            .then(|| i64::from(hours.trailing_zeros() * 60 + self.minute.trailing_zeros()))
    }

    /// The last matching minute of the day at or before `until`.
    fn prev_time(&self, until: i64) -> Option<i64> {
        let (hour, minute) = (until / 60, until % 60);
        let left = self.minute & ((2 << minute) - 1);
        if self.hour >> hour & 1 == 1 && left != 0 {
            return Some(hour * 60 + i64::from(left.ilog2()));
        }
        let hours = self.hour & ((1 << hour) - 1);
        (hours != 0 && self.minute != 0)
            .then(|| i64::from(hours.ilog2() * 60 + self.minute.ilog2()))
    }

    /// Matching minutes of a day before `end`, which may be the whole day.
    fn times_before(&self, end: i64) -> i64 {
        let (hour, minute) = (end / 60, end % 60);
        let whole = (self.hour & ((1 << hour) - 1)).count_ones() * self.minute.count_ones();
        let part = (self.minute & ((1 << minute) - 1)).count_ones();
        i64::from(whole) + i64::from(part) * i64::from(self.hour >> hour & 1 == 1)
    }
}

/// The minute that starts at or after a second.
fn ceil_minute(second: i64) -> i64 {
    second.div_euclid(MINUTE) + i64::from(second.rem_euclid(MINUTE) != 0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use proptest::prelude::*;

    use super::*;

    /// Sets of values up to `high` that are often full and never empty.
    fn bits(low: u32, high: u32) -> impl Strategy<Value = u64> {
        let all = ((2_u64 << high) - 1) >> low << low;
        let some = any::<u64>().prop_map(move |bits| bits & all);
        let few =
            (any::<u64>(), any::<u64>(), any::<u64>()).prop_map(move |(a, b, c)| a & b & c & all);
        let one = (low..=high).prop_map(|value| 1 << value);
        prop_oneof![Just(all), some, few, one].prop_filter("not empty", |bits| *bits != 0)
    }

    fn fields() -> impl Strategy<Value = Fields> {
        let days = (bits(1, 31), bits(0, 6), 0..3);
        (bits(0, 59), bits(0, 23), bits(1, 12), days).prop_map(|(minute, hour, month, days)| {
            let (dom, dow, star) = days;
            let dom = if star == 1 { (1 << 32) - 2 } else { dom };
            let dow = if star == 2 { (1 << 7) - 1 } else { dow };
            Fields {
                minute,
                hour,
                dom,
                month,
                dow,
                day_star: star != 0,
            }
        })
    }

    proptest! {
        /// The `cron` crate as a second opinion, up to its last year.
        #[test]
        fn civil_walks_agree_with_the_cron_crate(fields in fields(), start in 0_i64..3_500_000_000) {
            let dialect = fields.in_cron_dialect();
            let instant = |at: i64| DateTime::from_timestamp(at, 0).unwrap();
            let mut at = start;
            for _ in 0..20 {
                let theirs = dialect.iter().filter_map(|cron| cron.after(&instant(at)).next()).min();
                let ours = fields.next_civil(at + 1, 2_100);
                prop_assert_eq!(ours.map(instant), theirs);
                let Some(ours) = ours else { break };
                prop_assert_eq!(fields.prev_civil(ours, 1_900), Some(ours));
                prop_assert_eq!(fields.prev_civil(ours + 59, 1_900), Some(ours));
                prop_assert_eq!(fields.count_civil(at + 1, ours), 0);
                prop_assert_eq!(fields.count_civil(at + 1, ours + 1), 1);
                at = ours;
            }
            prop_assert_eq!(fields.never_match(), fields.next_civil(0, 2_000).is_none());
        }
    }

    /// 400 years of every 29 February: 97 of them.
    #[test]
    fn long_counts_go_by_the_calendar_cycle() {
        let fields = Fields {
            minute: 1,
            hour: 1,
            dom: 1 << 29,
            month: 1 << 2,
            dow: (1 << 7) - 1,
            day_star: true,
        };
        let (from, to) = (start_of_year(1970).unwrap(), start_of_year(2370).unwrap());
        assert_eq!(fields.count_civil(from, to), 97);
        let to = start_of_year(2370 + 4_000).unwrap();
        assert_eq!(fields.count_civil(from, to), 97 * 11);
    }
}
