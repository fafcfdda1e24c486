//! Properties of schedules over random fields, zones and times, against a minute-by-minute look
//! at the wall clock that shares no code with the product.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::collections::BTreeSet;
use std::sync::LazyLock;

use chrono::{DateTime, Datelike, LocalResult, NaiveDateTime, TimeDelta, TimeZone, Timelike, Utc};
use chrono_tz::{GapInfo, TZ_VARIANTS, Tz};
use crds::schedule::{DstPolicy, Schedule, parse_go_duration, parse_zone};
use proptest::collection::btree_set;
use proptest::prelude::*;

/// One field: its values, whether it holds a star, and how it is written.
#[derive(Clone, Debug)]
struct FieldCase {
    values: BTreeSet<u32>,
    star: bool,
    text: String,
}

fn list(low: u32, high: u32) -> impl Strategy<Value = FieldCase> {
    btree_set(low..=high, 1..5).prop_map(|values| {
        let text: Vec<String> = values.iter().map(ToString::to_string).collect();
        FieldCase {
            values,
            star: false,
            text: text.join(","),
        }
    })
}

fn field(low: u32, high: u32) -> impl Strategy<Value = FieldCase> {
    let all: BTreeSet<u32> = (low..=high).collect();
    let star = FieldCase {
        values: all,
        star: true,
        text: "*".to_owned(),
    };
    let range = (low..=high, low..=high).prop_map(|(a, b)| {
        let (from, to) = (a.min(b), a.max(b));
        FieldCase {
            values: (from..=to).collect(),
            star: false,
            text: format!("{from}-{to}"),
        }
    });
    let step = (2..=high).prop_map(move |step| FieldCase {
        values: (low..=high).step_by(step as usize).collect(),
        star: false,
        text: format!("*/{step}"),
    });
    prop_oneof![2 => Just(star), 2 => list(low, high), 1 => range, 1 => step]
}

/// Five fields.
#[derive(Clone)]
struct Case([FieldCase; 5]);

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.text())
    }
}

impl Case {
    fn text(&self) -> String {
        self.0.each_ref().map(|field| field.text.as_str()).join(" ")
    }

    /// CronJob rule 10 on a civil time.
    fn matches(&self, civil: NaiveDateTime) -> bool {
        let [minute, hour, dom, month, dow] = &self.0;
        let by_month = dom.values.contains(&civil.day());
        let by_week = dow.values.contains(&civil.weekday().num_days_from_sunday());
        let day = if dom.star || dow.star {
            by_month && by_week
        } else {
            by_month || by_week
        };
        let (h, m) = (civil.hour(), civil.minute());
        day && civil.second() == 0
            && month.values.contains(&civil.month())
            && hour.values.contains(&h)
            && minute.values.contains(&m)
    }
}

fn case() -> impl Strategy<Value = Case> {
    // Most changes fall into the first hours of the day.
    let hour = prop_oneof![field(0, 23), list(0, 3)];
    let month = prop_oneof![
        4 => Just(FieldCase { values: (1..=12).collect(), star: true, text: "*".to_owned() }),
        1 => field(1, 12),
    ];
    (field(0, 59), hour, field(1, 31), month, field(0, 6))
        .prop_map(|(minute, hour, dom, month, dow)| Case([minute, hour, dom, month, dow]))
}

/// Every change of every zone from 2000 to 2050, as an instant up to two days before it.
static CHANGES: LazyLock<Vec<(Tz, i64)>> = LazyLock::new(|| {
    let offset = |zone: Tz, at: i64| {
        let at = DateTime::from_timestamp(at, 0).unwrap();
        at.with_timezone(&zone).naive_local() - at.naive_utc()
    };
    let days = || (START..END).step_by(2 * DAY as usize);
    let changes = |zone| days().filter(move |at| offset(zone, *at) != offset(zone, at + 2 * DAY));
    TZ_VARIANTS
        .into_iter()
        .flat_map(|zone| changes(zone).map(move |at| (zone, at)))
        .collect()
});

const DAY: i64 = 86_400;
const START: i64 = 946_684_800; // 2000
const END: i64 = 2_524_608_000; // 2050

/// A zone and a start, most of them shortly before or after a change of that zone.
fn place() -> impl Strategy<Value = (Tz, DateTime<Utc>)> {
    let near = (any::<prop::sample::Index>(), -DAY..3 * DAY).prop_map(|(index, shift)| {
        let (zone, change) = CHANGES[index.index(CHANGES.len())];
        (zone, change + shift)
    });
    let anywhere =
        (0..TZ_VARIANTS.len(), START..END).prop_map(|(zone, at)| (TZ_VARIANTS[zone], at));
    prop_oneof![4 => near, 1 => anywhere]
        .prop_map(|(zone, at)| (zone, DateTime::from_timestamp(at, 0).unwrap()))
}

/// All slots in `(after, until]` as a CronJob has them: instants whose local reading matches.
fn wall_clock(
    case: &Case,
    zone: Tz,
    after: DateTime<Utc>,
    until: DateTime<Utc>,
) -> Vec<DateTime<Utc>> {
    let first = after.timestamp().div_euclid(60) + 1;
    (first..=until.timestamp().div_euclid(60))
        .map(|minute| DateTime::from_timestamp(minute * 60, 0).unwrap())
        .filter(|at| case.matches(at.with_timezone(&zone).naive_local()))
        .collect()
}

/// All slots in `(after, until]` under [`DstPolicy::Once`]: every matching civil minute, resolved
/// to its first instant, or to the end of its gap.
fn civil_clock(
    case: &Case,
    zone: Tz,
    after: DateTime<Utc>,
    until: DateTime<Utc>,
) -> Vec<DateTime<Utc>> {
    let margin = TimeDelta::days(2);
    let first = (after - margin).naive_utc().with_second(0).unwrap();
    let minutes = (until + margin - after + margin).num_minutes();
    let slots: BTreeSet<DateTime<Utc>> = (0..minutes)
        .map(|minute| first + TimeDelta::minutes(minute))
        .filter(|civil| case.matches(*civil))
        .map(|civil| match zone.from_local_datetime(&civil) {
            LocalResult::Single(at) | LocalResult::Ambiguous(at, _) => at.to_utc(),
            LocalResult::None => GapInfo::new(&civil, &zone).unwrap().end.unwrap().to_utc(),
        })
        .filter(|slot| *slot > after && *slot <= until)
        .collect();
    slots.into_iter().collect()
}

/// Checks every answer about `(after, until]` against the list of its slots.
fn check(
    schedule: &Schedule,
    slots: &[DateTime<Utc>],
    after: DateTime<Utc>,
    until: DateTime<Utc>,
) -> Result<(), TestCaseError> {
    let mut from = after;
    let mut stepped = Vec::new();
    while let Some(slot) = schedule
        .next_after(from, after)
        .filter(|slot| *slot <= until)
    {
        prop_assert!(slot > from);
        stepped.push(slot);
        from = slot;
        if stepped.len() > slots.len() {
            break;
        }
    }
    prop_assert_eq!(&stepped, slots);
    prop_assert_eq!(
        schedule.newest_in(after, until, after),
        slots.last().copied()
    );
    let count = schedule.count_in(after, until, after);
    prop_assert_eq!(count.count, i64::try_from(slots.len()).unwrap());
    prop_assert_eq!(
        (count.first, count.last),
        (slots.first().copied(), slots.last().copied())
    );
    // From within, and up to an instant within.
    if let Some(middle) = slots.get(slots.len() / 2) {
        let rest = i64::try_from(slots.iter().filter(|slot| *slot > middle).count()).unwrap();
        prop_assert_eq!(schedule.count_in(*middle, until, after).count, rest);
        prop_assert_eq!(schedule.newest_in(after, *middle, after), Some(*middle));
        let before = *middle - TimeDelta::seconds(1);
        prop_assert_eq!(schedule.next_after(before, after), Some(*middle));
        let older = slots.iter().rfind(|slot| *slot < middle).copied();
        prop_assert_eq!(schedule.newest_in(after, before, after), older);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn slots_are_those_of_the_wall_clock(
        case in case(), (zone, after) in place(), hours in 1_i64..96,
    ) {
        let until = after + TimeDelta::hours(hours);
        let schedule = Schedule::parse(&case.text(), Some(zone.name())).unwrap();
        check(&schedule, &wall_clock(&case, zone, after, until), after, until)?;
    }

    #[test]
    fn slots_under_once_are_those_of_the_calendar(
        case in case(), (zone, after) in place(), hours in 1_i64..96,
    ) {
        let until = after + TimeDelta::hours(hours);
        let schedule = Schedule::parse(&case.text(), Some(zone.name())).unwrap();
        let schedule = schedule.with_dst_policy(DstPolicy::Once);
        let slots = if case.0[1].values.len() == 24 {
            wall_clock(&case, zone, after, until)
        } else {
            civil_clock(&case, zone, after, until)
        };
        check(&schedule, &slots, after, until)?;
    }

    /// Over years, stepping with `next_after` (proven above) is the measure.
    #[test]
    fn counting_agrees_with_stepping_over_years(
        case in case(), (zone, after) in place(), days in 1_i64..4_000, once in any::<bool>(),
    ) {
        let policy = if once { DstPolicy::Once } else { DstPolicy::Kubernetes };
        let schedule = Schedule::parse(&case.text(), Some(zone.name())).unwrap().with_dst_policy(policy);
        let until = after + TimeDelta::days(days);
        let count = schedule.count_in(after, until, after);
        // Walk only what can be walked in reasonable time.
        if count.count <= 20_000 {
            let (mut walked, mut from) = (0, after);
            while let Some(slot) = schedule.next_after(from, after).filter(|slot| *slot <= until) {
                walked += 1;
                from = slot;
            }
            prop_assert_eq!(count.count, walked);
            prop_assert_eq!(count.last, (walked > 0).then_some(from));
        }
        // Any cut of the interval adds up.
        let middle = after + TimeDelta::seconds(days * 86_400 / 3);
        let (head, tail) = (schedule.count_in(after, middle, after), schedule.count_in(middle, until, after));
        prop_assert_eq!(count.count, head.count + tail.count);
        prop_assert_eq!(count.first, head.first.or(tail.first));
        prop_assert_eq!(count.last, tail.last.or(head.last));
    }

    #[test]
    fn intervals_count_from_their_anchor(
        width in 1_i64..1_000_000, anchor in 0_i64..4_000_000_000, at in 0_i64..4_000_000_000,
        length in 0_i64..100_000_000,
    ) {
        let schedule = Schedule::parse(&format!("@every {width}s"), None).unwrap();
        let instant = |at: i64| DateTime::from_timestamp(at, 999_999_999).unwrap();
        let next = schedule.next_after(instant(at), instant(anchor)).unwrap().timestamp();
        prop_assert!(next > at && next > anchor && (next - anchor) % width == 0);
        prop_assert!(next - width <= at.max(anchor));
        let until = at + length;
        let numbers = |at: i64| ((at - anchor) / width).max(0);
        let count = schedule.count_in(instant(at), instant(until), instant(anchor));
        prop_assert_eq!(count.count, numbers(until) - numbers(at));
        let newest = schedule.newest_in(instant(at), instant(until), instant(anchor));
        prop_assert_eq!(newest, count.last);
        if count.count > 0 {
            prop_assert_eq!(count.first.unwrap().timestamp(), next);
            prop_assert_eq!(newest.unwrap().timestamp(), anchor + numbers(until) * width);
        }
    }

    #[test]
    fn no_text_panics(text in any::<String>(), zone in any::<String>()) {
        exercise(&text, None);
        exercise("0 3 * * *", Some(&zone));
        let _ = parse_go_duration(&text);
    }

    #[test]
    fn no_cron_like_text_panics(
        text in "[-*?/,+ 0-9@a-zA-Z#.=\t\u{a0}\u{b5}]{0,40}", zone in "[-+A-Za-z0-9_/. ]{0,30}",
    ) {
        exercise(&text, None);
        exercise(&format!("@every {text}"), None);
        exercise("0 3 * * *", Some(&zone));
        let _ = parse_go_duration(&text);
    }

    #[test]
    fn no_five_words_panic(text in "[-*?/,0-9a-z]{1,8}( [-*?/,0-9a-z]{1,8}){4}") {
        exercise(&text, Some("America/New_York"));
    }
}

/// Asks everything of whatever `text` and `zone` are.
fn exercise(text: &str, zone: Option<&str>) {
    let now = Utc.with_ymd_and_hms(2025, 3, 9, 5, 59, 0).unwrap();
    let until = now + TimeDelta::days(400);
    match Schedule::parse(text, zone) {
        Ok(schedule) => {
            assert!(!schedule.describe().is_empty());
            let next = schedule.next_after(now, now);
            assert!(next.is_none_or(|next| next > now));
            assert!(!schedule.never_fires() || next.is_none());
            assert!(schedule.count_in(now, until, now).count >= 0);
            let _ = schedule.newest_in(now, until, now);
            let _ = schedule.dst_notes(now, until);
        }
        Err(error) => assert!(error.to_string().len() < 1_000),
    }
}

/// Every name the product offers is one it takes.
#[test]
fn all_zone_names_parse() {
    for name in crds::schedule::zone_names() {
        assert_eq!(parse_zone(name).unwrap().name(), name);
    }
}
