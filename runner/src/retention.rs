//! Which artefacts stay. The plan is pure; only a run that has just stored a good artefact applies it.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Datelike, Utc};
use crds::mysql_backup::Retention;
use crds::schedule::parse_go_duration;

use crate::failure::Failure;
use crate::manifest::{self, Manifest};
use crate::run::Context;
use crate::store::Store;

/// A good artefact of the object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its key.
    pub key: String,
    /// Start of its run.
    pub at: DateTime<Utc>,
}

/// Whether an artefact stays, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Its key.
    pub key: String,
    /// The rules that keep it; empty: it goes.
    pub kept_by: Vec<&'static str>,
}

impl Decision {
    /// True if it goes.
    pub fn goes(&self) -> bool {
        self.kept_by.is_empty()
    }
}

/// Decides over all artefacts, newest first. The union of all rules stays, and the newest always
/// does; with no rule at all everything stays. Hours, days, ISO weeks and months are those of UTC;
/// only periods that hold an artefact count.
pub fn plan(rules: &Retention, artefacts: &[Candidate], now: DateTime<Utc>) -> Vec<Decision> {
    let mut sorted: Vec<&Candidate> = artefacts.iter().collect();
    sorted.sort_by(|a, b| (b.at, &b.key).cmp(&(a.at, &a.key)));
    let mut kept: BTreeMap<usize, BTreeSet<&'static str>> = BTreeMap::new();
    let mut keep = |index: usize, rule: &'static str| {
        kept.entry(index).or_default().insert(rule);
    };
    if no_rule(rules) {
        (0..sorted.len()).for_each(|i| keep(i, "no rule"));
    }
    if !sorted.is_empty() {
        keep(0, "newest");
    }
    (0..count(rules.keep_last).min(sorted.len())).for_each(|i| keep(i, "keepLast"));
    type Period = fn(DateTime<Utc>) -> (i32, u32, u32);
    let periods: [(&'static str, Option<i32>, Period); 4] = [
        ("keepHourly", rules.keep_hourly, |t| {
            (t.year(), t.ordinal(), chrono::Timelike::hour(&t))
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
        for (i, artefact) in sorted.iter().enumerate() {
            if seen.len() >= count(limit) {
                break;
            }
            if seen.insert(period(artefact.at)) {
                keep(i, rule);
            }
        }
    }
    if let Some(age) = max_age(rules) {
        for (i, artefact) in sorted.iter().enumerate() {
            if now.signed_duration_since(artefact.at) <= age {
                keep(i, "maxAge");
            }
        }
    }
    sorted
        .iter()
        .enumerate()
        .map(|(i, artefact)| Decision {
            key: artefact.key.clone(),
            kept_by: kept.get(&i).into_iter().flatten().copied().collect(),
        })
        .collect()
}

fn no_rule(rules: &Retention) -> bool {
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

/// A duration that can't be read keeps everything.
fn max_age(rules: &Retention) -> Option<chrono::Duration> {
    let text = rules.max_age.as_deref()?;
    Some(parse_go_duration(text).map_or(chrono::Duration::MAX, chrono::Duration::nanoseconds))
}

/// What [`plan`] needs of manifests; one without a time is left alone.
pub fn candidates(manifests: &[Manifest]) -> Vec<Candidate> {
    manifests
        .iter()
        .filter_map(|m| {
            Some(Candidate {
                key: m.key.clone(),
                at: m.started()?,
            })
        })
        .collect()
}

/// True if a new dump of `new` bytes is so much smaller than the one before, of `old` bytes, that
/// nothing may be removed because of it.
pub fn shrank(old: u64, new: u64) -> bool {
    new < old.div_ceil(2)
}

/// Removes what the rules let go, oldest first, each artefact before its manifest; gives their
/// number. Nothing goes when the newest dump shrank by more than half.
///
/// # Errors
/// The store refuses.
pub fn apply(
    context: &Context,
    store: &dyn Store,
    rules: &Retention,
    newest: &Manifest,
) -> Result<i64, Failure> {
    let identity = &context.settings.identity;
    let own: Vec<Manifest> = manifest::list(store, &identity.directory())?
        .into_iter()
        .filter(|m| m.belongs_to(identity))
        .collect();
    let before = own.iter().rev().find(|m| m.key != newest.key);
    if let Some(before) = before.filter(|b| shrank(b.raw_bytes, newest.raw_bytes)) {
        context.reporter.warn(&format!(
            "nothing was removed: this dump has {} bytes, the one before had {}; check that it is whole, later runs remove again",
            newest.raw_bytes, before.raw_bytes
        ));
        return Ok(0);
    }
    let mut all = candidates(&own);
    all.extend(adopted(context, store, rules, &own)?);
    let mut pruned = 0;
    for decision in plan(rules, &all, context.clock.now()).iter().rev() {
        // Whatever the clock says, the artefact of this run stays.
        if !decision.goes() || decision.key == newest.key {
            continue;
        }
        store.remove(&decision.key)?;
        store.remove(&Manifest::key_of(&decision.key))?;
        tracing::info!(event = "pruned", key = decision.key);
        pruned += 1;
    }
    Ok(pruned)
}

/// Older artefacts without a manifest, in the destination's root and the object's directory, that
/// the user lets retention remove too. Their time is that of their last change.
fn adopted(
    context: &Context,
    store: &dyn Store,
    rules: &Retention,
    own: &[Manifest],
) -> Result<Vec<Candidate>, Failure> {
    let Some(pattern) = rules.adopt_pattern.as_deref().filter(|p| !p.is_empty()) else {
        return Ok(vec![]);
    };
    let mut found = vec![];
    for directory in [String::new(), context.settings.identity.directory()] {
        let entries = store.list(&directory)?;
        for entry in &entries {
            let name = entry.key.rsplit('/').next().unwrap_or_default();
            let manifest = Manifest::key_of(&entry.key);
            let known = own.iter().any(|m| m.key == entry.key)
                || entries.iter().any(|e| e.key == manifest)
                || name.ends_with(".json");
            if known || !matches(pattern.as_bytes(), name.as_bytes()) {
                continue;
            }
            if let Some(at) = store.modified(&entry.key)? {
                found.push(Candidate {
                    key: entry.key.clone(),
                    at,
                });
            }
        }
    }
    Ok(found)
}

/// `*` stands for any characters, `?` for one.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern.split_first(), name.split_first()) {
        (None, None) => true,
        (Some((b'*', rest)), _) => (0..=name.len()).any(|skip| matches(rest, &name[skip..])),
        (Some((b'?', rest)), Some((_, name))) => matches(rest, name),
        (Some((p, rest)), Some((n, name))) if p == n => matches(rest, name),
        _ => false,
    }
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

    fn artefacts(times: &[DateTime<Utc>]) -> Vec<Candidate> {
        let each = times.iter().enumerate();
        each.map(|(i, at)| Candidate {
            key: format!("k{i:05}"),
            at: *at,
        })
        .collect()
    }

    fn kept(rules: &Retention, times: &[DateTime<Utc>], now: DateTime<Utc>) -> Vec<DateTime<Utc>> {
        let all = artefacts(times);
        let keys: BTreeSet<String> = plan(rules, &all, now)
            .into_iter()
            .filter(|d| !d.goes())
            .map(|d| d.key)
            .collect();
        let mut kept: Vec<_> = all
            .iter()
            .filter(|a| keys.contains(&a.key))
            .map(|a| a.at)
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

    #[test]
    fn patterns() {
        for (pattern, name, expected) in [
            ("*.sql.gz", "a.sql.gz", true),
            ("*.sql.gz", "a.sql", false),
            ("dump-????.sql", "dump-2024.sql", true),
            ("dump-????.sql", "dump-24.sql", false),
            ("*", "", true),
            ("a*b*c", "axxbyyc", true),
            ("a*b*c", "axxbyy", false),
        ] {
            assert_eq!(
                matches(pattern.as_bytes(), name.as_bytes()),
                expected,
                "{pattern} {name}"
            );
        }
    }

    #[test]
    fn shrinking_by_more_than_half() {
        assert!(shrank(100, 49) && shrank(101, 50) && shrank(1, 0));
        assert!(!shrank(100, 50) && !shrank(100, 200) && !shrank(0, 0));
    }
}
