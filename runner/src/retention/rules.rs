//! The rules of `spec.retention` over artefacts in their order, and nothing else: what counts at all
//! is decided by [`crate::retention::decide`].

use std::collections::BTreeSet;

use chrono::{DateTime, Datelike, Timelike, Utc};
use crds::parts::Retention;
use crds::schedule::parse_go_duration;

/// When an artefact was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    /// Its place in the order and its period: the slot of its run, else the start.
    pub at: DateTime<Utc>,
    /// What its age is counted from: the start of its run, and never before the slot.
    pub since: DateTime<Utc>,
}

/// The rules that keep each artefact of `times`, which are newest first. The union of all rules
/// stays, and the newest always does; with no rule at all everything stays. Hours, days, ISO weeks
/// and months are those of UTC; only periods that hold an artefact count.
pub(super) fn kept(
    rules: &Retention,
    times: &[Moment],
    now: DateTime<Utc>,
) -> Vec<BTreeSet<&'static str>> {
    let mut kept: Vec<BTreeSet<&'static str>> = vec![BTreeSet::new(); times.len()];
    if no_rule(rules) {
        kept.iter_mut().for_each(|by| {
            by.insert("no rule");
        });
    }
    if let Some(first) = kept.first_mut() {
        first.insert("newest");
    }
    for by in kept.iter_mut().take(count(rules.keep_last)) {
        by.insert("keepLast");
    }
    type Period = fn(DateTime<Utc>) -> (i32, u32, u32);
    let periods: [(&'static str, Option<i32>, Period); 4] = [
        ("keepHourly", rules.keep_hourly, |t| {
            (t.year(), t.ordinal(), t.hour())
        }),
        ("keepDaily", rules.keep_daily, |t| {
            (t.year(), t.ordinal(), 0)
        }),
        ("keepWeekly", rules.keep_weekly, |t| {
            (t.iso_week().year(), t.iso_week().week(), 0)
        }),
        ("keepMonthly", rules.keep_monthly, |t| {
            (t.year(), t.month(), 0)
        }),
    ];
    for (rule, limit, period) in periods {
        let mut seen = BTreeSet::new();
        for (by, time) in kept.iter_mut().zip(times) {
            if seen.len() >= count(limit) {
                break;
            }
            if seen.insert(period(time.at)) {
                by.insert(rule);
            }
        }
    }
    if let Some(age) = max_age(rules) {
        for (by, time) in kept.iter_mut().zip(times) {
            if now.signed_duration_since(time.since) <= age {
                by.insert("maxAge");
            }
        }
    }
    kept
}

/// True if nothing is ever removed by them.
pub fn no_rule(rules: &Retention) -> bool {
    rules.max_age.is_none()
        && [
            rules.keep_last,
            rules.keep_hourly,
            rules.keep_daily,
            rules.keep_weekly,
            rules.keep_monthly,
        ]
        .iter()
        .all(Option::is_none)
}

fn count(limit: Option<i32>) -> usize {
    limit.and_then(|n| usize::try_from(n).ok()).unwrap_or(0)
}

/// A duration that can't be read, or is negative, keeps everything.
fn max_age(rules: &Retention) -> Option<chrono::Duration> {
    let text = rules.max_age.as_deref()?;
    let nanos = parse_go_duration(text).ok().filter(|n| *n >= 0);
    Some(nanos.map_or(chrono::Duration::MAX, chrono::Duration::nanoseconds))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use super::*;
    use chrono::{Duration, TimeZone};
    use proptest::prelude::*;

    fn at(text: &str) -> DateTime<Utc> {
        crds::time::parse_rfc3339(text).unwrap()
    }

    fn kept(rules: &Retention, times: &[DateTime<Utc>], now: DateTime<Utc>) -> Vec<DateTime<Utc>> {
        let mut sorted = times.to_vec();
        sorted.sort();
        sorted.reverse();
        let moments: Vec<Moment> = sorted
            .iter()
            .map(|t| Moment { at: *t, since: *t })
            .collect();
        let by = super::kept(rules, &moments, now);
        let mut kept: Vec<_> = sorted
            .into_iter()
            .zip(by)
            .filter(|(_, by)| !by.is_empty())
            .map(|(at, _)| at)
            .collect();
        kept.sort();
        kept
    }

    fn daily(days: i64) -> Vec<DateTime<Utc>> {
        let last = at("2025-01-15T03:00:00Z");
        (0..days).map(|d| last - Duration::days(d)).collect()
    }

    #[test]
    fn expire_at_keeps_the_young_and_the_newest() {
        let rules = Retention {
            max_age: Some("24h".into()),
            ..Default::default()
        };
        let now = at("2025-01-15T03:00:10Z");
        assert_eq!(kept(&rules, &daily(5), now), [at("2025-01-15T03:00:00Z")]);
        let late = at("2025-03-01T00:00:00Z");
        assert_eq!(kept(&rules, &daily(5), late), [at("2025-01-15T03:00:00Z")]);
        let exact = at("2025-01-15T03:00:00Z");
        assert_eq!(kept(&rules, &daily(5), exact).len(), 2);
    }

    #[test]
    fn no_rule_keeps_all_and_zero_keeps_the_newest() {
        let now = at("2025-01-15T04:00:00Z");
        assert_eq!(kept(&Retention::default(), &daily(9), now).len(), 9);
        let rules = Retention {
            keep_last: Some(0),
            ..Default::default()
        };
        assert_eq!(kept(&rules, &daily(9), now).len(), 1);
        let rules = Retention {
            max_age: Some("nonsense".into()),
            ..Default::default()
        };
        assert_eq!(kept(&rules, &daily(9), now).len(), 9);
    }

    #[test]
    fn weeks_are_iso_weeks_and_months_are_calendar_months() {
        // 2024-12-30 and 2025-01-01 are both in ISO week 1 of 2025, but in different months.
        let times = [
            at("2024-12-29T03:00:00Z"),
            at("2024-12-30T03:00:00Z"),
            at("2025-01-01T03:00:00Z"),
        ];
        let now = at("2025-01-02T00:00:00Z");
        let weekly = Retention {
            keep_weekly: Some(2),
            ..Default::default()
        };
        assert_eq!(kept(&weekly, &times, now), [times[0], times[2]]);
        let monthly = Retention {
            keep_monthly: Some(2),
            ..Default::default()
        };
        assert_eq!(kept(&monthly, &times, now), [times[1], times[2]]);
    }

    /// The rules in other words: an artefact stays if it is the newest of its period and fewer than
    /// the limit of younger periods hold one.
    fn independent(
        rules: &Retention,
        times: &[DateTime<Utc>],
        now: DateTime<Utc>,
    ) -> Vec<DateTime<Utc>> {
        let label = |rule: usize, t: DateTime<Utc>| -> String {
            let form = ["%Y-%m-%dT%H", "%Y-%m-%d", "%G-W%V", "%Y-%m"][rule];
            t.format(form).to_string()
        };
        let limits = [
            rules.keep_hourly,
            rules.keep_daily,
            rules.keep_weekly,
            rules.keep_monthly,
        ];
        let newest = times.iter().max().copied();
        let mut kept: Vec<_> = times
            .iter()
            .copied()
            .filter(|t| {
                let younger = times.iter().filter(|o| *o > t).count();
                let last = rules
                    .keep_last
                    .is_some_and(|n| younger < usize::try_from(n).unwrap());
                let age = rules.max_age.as_ref().is_some_and(|a| {
                    let hours: i64 = a.trim_end_matches('h').parse().unwrap();
                    now - *t <= Duration::hours(hours)
                });
                let period = (0..4).any(|rule| {
                    let own = label(rule, *t);
                    let first = !times.iter().any(|o| o > t && label(rule, *o) == own);
                    let periods: BTreeSet<String> = times
                        .iter()
                        .filter(|o| *o > t)
                        .map(|o| label(rule, *o))
                        .filter(|l| *l != own)
                        .collect();
                    first
                        && limits[rule].is_some_and(|n| periods.len() < usize::try_from(n).unwrap())
                });
                newest == Some(*t) || last || age || period
            })
            .collect();
        kept.sort();
        kept
    }

    #[test]
    fn two_years_of_runs() {
        let mut stored: Vec<DateTime<Utc>> = vec![];
        let rules = Retention {
            keep_last: Some(3),
            keep_hourly: Some(12),
            keep_daily: Some(7),
            keep_weekly: Some(5),
            keep_monthly: Some(12),
            max_age: Some("30h".into()),
            ..Default::default()
        };
        let first = Utc.with_ymd_and_hms(2023, 1, 1, 0, 17, 0).unwrap();
        for run in 0..(2 * 365 * 4) {
            let now = first + Duration::hours(6 * run);
            stored.push(now);
            let expected = independent(&rules, &stored, now);
            stored = kept(&rules, &stored, now);
            assert_eq!(stored, expected, "at {now}");
            assert!(stored.contains(&now));
        }
        assert!(stored.len() <= 3 + 12 + 7 + 5 + 12 + 6, "{}", stored.len());
        assert!(
            stored[0] < first + Duration::days(400),
            "the months are not kept: {}",
            stored[0]
        );
    }

    proptest! {
        #[test]
        fn the_plan_is_the_rules_in_other_words(
            hours in prop::collection::btree_set(0i64..5000, 1..60),
            last in prop::option::of(0i32..5), hourly in prop::option::of(0i32..5), daily in prop::option::of(0i32..5),
            weekly in prop::option::of(0i32..5), monthly in prop::option::of(0i32..5), age in prop::option::of(1i64..2000), late in 0i64..2000,
        ) {
            let first = Utc.with_ymd_and_hms(2024, 11, 20, 0, 30, 0).unwrap();
            let times: Vec<_> = hours.iter().map(|h| first + Duration::hours(*h)).collect();
            let now = *times.last().unwrap() + Duration::hours(late);
            let rules = Retention {
                keep_last: last, keep_hourly: hourly, keep_daily: daily, keep_weekly: weekly, keep_monthly: monthly,
                max_age: age.map(|a| format!("{a}h")), adopt_pattern: None,
            };
            let kept = kept(&rules, &times, now);
            prop_assert!(kept.contains(times.last().unwrap()), "the newest went");
            if no_rule(&rules) {
                prop_assert_eq!(kept, times);
            } else {
                prop_assert_eq!(kept, independent(&rules, &times, now));
            }
        }
    }
}
