#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Duration, Utc};
use crds::parts::Retention;
use proptest::prelude::*;

use crate::retention::plan::UNDER_WAY;
use crate::retention::*;

fn at(text: &str) -> DateTime<Utc> {
    crds::time::parse_rfc3339(text).unwrap()
}

fn now() -> DateTime<Utc> {
    at("2025-03-01T12:00:00Z")
}

/// A good artefact of so many hours ago.
fn good(key: &str, hours: i64) -> Candidate {
    let at = now() - Duration::hours(hours);
    Candidate {
        key: key.into(),
        moment: Moment { at, since: at },
        size: size(1000),
        standing: Standing::Good,
        verified: false,
        failed: false,
    }
}

fn size(raw: u64) -> Size {
    Size {
        stored: raw,
        raw: Some(raw),
        dumps: BTreeMap::new(),
    }
}

fn last(n: i32) -> Retention {
    Retention {
        keep_last: Some(n),
        ..Retention::default()
    }
}

/// Keys that go, in their order.
fn goes(plan: &Plan) -> Vec<&str> {
    let mut goes: Vec<&str> = plan
        .decisions
        .iter()
        .filter(|d| d.goes())
        .map(|d| d.key.as_str())
        .collect();
    goes.sort_unstable();
    goes
}

fn by_rules(rules: &Retention, all: &[Candidate]) -> Plan {
    decide(rules, all, now().into(), For::Rules)
}

#[test]
fn h1_a_newest_of_less_than_half_removes_nothing_whatever_is_asked() {
    let all = |sizes: [u64; 3]| {
        let mut all = vec![good("a", 72), good("b", 48), good("c", 24)];
        for (one, raw) in all.iter_mut().zip(sizes) {
            one.size = size(raw);
        }
        all
    };
    for asked in [For::Rules, For::Run("c")] {
        let plan = decide(&last(1), &all([1000, 1000, 10]), now().into(), asked);
        assert_eq!(goes(&plan), [""; 0]);
        assert!(
            plan.warnings[0]
                .contains("nothing was removed: c has 10 bytes, b before it had 1000 bytes"),
            "{:?}",
            plan.warnings
        );
        let plan = decide(&last(1), &all([1000, 1000, 500]), now().into(), asked);
        assert_eq!(goes(&plan), ["a", "b"]);
        assert_eq!(plan.warnings, [""; 0]);
    }
    // The run's own may be of an older slot than the newest.
    let plan = decide(
        &last(1),
        &all([1000, 10, 1000]),
        now().into(),
        For::Run("b"),
    );
    assert_eq!(goes(&plan), [""; 0]);
    // A second small one is no reason to let the last large one go; where small is usual it is.
    let row = |sizes: &[u64]| {
        let each = sizes.iter().enumerate();
        let all: Vec<Candidate> = each
            .map(|(n, raw)| {
                let n = i64::try_from(n).unwrap();
                let mut one = good(&format!("k{n}"), 24 * (9 - n));
                one.size = size(*raw);
                one
            })
            .collect();
        goes(&by_rules(&last(1), &all)).len()
    };
    assert_eq!(row(&[1000, 1000, 10, 10]), 0);
    assert_eq!(row(&[1000, 10, 10]), 0);
    assert_eq!(row(&[1000, 1000, 10, 10, 10]), 0);
    assert_eq!(row(&[1000, 1000, 10, 10, 10, 10]), 5);
    assert_eq!(row(&[10, 10, 10, 1000]), 3);
    // Who asks for all to go gets it.
    let plan = decide(
        &last(1),
        &all([1000, 1000, 10]),
        now().into(),
        For::Everything,
    );
    assert_eq!(goes(&plan), ["a", "b", "c"]);
}

#[test]
fn h1_one_database_of_an_archive_that_shrank_is_seen_beside_a_large_one() {
    let archive = |key: &str, hours, dumps: &[(&str, u64)]| {
        let mut one = good(key, hours);
        one.size.dumps = dumps.iter().map(|(n, b)| ((*n).to_owned(), *b)).collect();
        one.size.raw = Some(dumps.iter().map(|(_, b)| b).sum());
        one
    };
    let before = archive(
        "b",
        48,
        &[("mysql/shop", 9_000_000), ("postgresql/crm", 90_000)],
    );
    let others = [good("a", 72), before];
    for dumps in [
        &[("mysql/shop", 9_000_000), ("postgresql/crm", 900)][..],
        &[("mysql/shop", 9_000_000)],
    ] {
        let mut all = others.to_vec();
        all.push(archive("c", 24, dumps));
        let plan = by_rules(&last(1), &all);
        assert_eq!(goes(&plan), [""; 0]);
        assert!(
            plan.warnings[0].contains("90000 bytes of postgresql/crm"),
            "{:?}",
            plan.warnings
        );
    }
    // Where the dumps are not known, what is stored is compared.
    let mut all = others.to_vec();
    let mut small = good("c", 24);
    small.size = Size {
        stored: 10,
        ..Size::default()
    };
    all.push(small);
    assert_eq!(goes(&by_rules(&last(1), &all)), [""; 0]);
}

#[test]
fn h2_the_newest_that_was_verified_by_restore_stays() {
    let mut all = vec![good("a", 96), good("b", 72), good("c", 48), good("d", 24)];
    all[0].verified = true;
    all[1].verified = true;
    for rules in [
        last(1),
        last(0),
        Retention {
            max_age: Some("1h".into()),
            ..Retention::default()
        },
    ] {
        assert_eq!(goes(&by_rules(&rules, &all)), ["a", "c"], "{rules:?}");
    }
    // One that was verified and then found damaged is not the proof that stays alone.
    all[1].failed = true;
    let plan = by_rules(&last(1), &all);
    assert!(!goes(&plan).contains(&"a"), "{plan:?}");
}

#[test]
fn h2_what_is_known_not_to_restore_takes_nobodys_place() {
    let mut all = vec![good("a", 96), good("b", 72), good("c", 48), good("d", 24)];
    all[2].failed = true;
    all[3].failed = true;
    // b and a are the two that count; d and c are kept beside them, as two of any kind would be.
    assert_eq!(goes(&by_rules(&last(2), &all)), [""; 0]);
    let plan = by_rules(&last(1), &all);
    assert_eq!(goes(&plan), ["a", "c"]);
    let b = plan.decisions.iter().find(|d| d.key == "b").unwrap();
    assert!(b.kept_by.contains(&"newest"), "{b:?}");
    // It is not compared either: what failed is small for a reason.
    all[3].size = size(1);
    assert_eq!(goes(&by_rules(&last(1), &all)), ["a", "c"]);
}

#[test]
fn r1_what_is_dated_in_the_future_stays_and_is_not_counted() {
    let mut all = vec![
        good("a", 96),
        good("b", 72),
        good("c", 48),
        good("d", 24),
        good("f", -24 * 365),
    ];
    let plan = by_rules(&last(3), &all);
    assert_eq!(goes(&plan), ["a"]);
    assert!(
        plan.warnings[0].contains("f (2026-03-01T12:00:00Z)"),
        "{plan:?}"
    );
    assert_eq!(goes(&by_rules(&last(1), &all)), ["a", "b", "c"]);
    // Every rule: none of its places is taken.
    let daily = Retention {
        keep_daily: Some(2),
        ..Retention::default()
    };
    assert_eq!(goes(&by_rules(&daily, &all)), ["a", "b"]);
    // Nor is it the one that was verified, nor what a dump is compared with.
    all[4].verified = true;
    all[0].verified = true;
    all[4].size = size(1_000_000);
    assert_eq!(goes(&by_rules(&last(1), &all)), ["b", "c"]);
    // A clock that is a little ahead is no wrong one.
    let mut all = vec![good("a", 24), good("b", 0)];
    all[1].moment.at += Duration::minutes(4);
    assert_eq!(goes(&by_rules(&last(1), &all)), ["a"]);
}

#[test]
fn r1_the_slot_decides_and_not_the_clock_of_a_pod() {
    let due = "2025-02-28T03:00:00Z";
    let slot = Some(due);
    let row = |slot: Option<&str>, started: &str| moment(slot, started, now()).unwrap();
    let usual = row(slot, "2025-02-28T03:00:07Z");
    assert_eq!(usual.at, at("2025-02-28T03:00:00Z"));
    assert_eq!(usual.since, at("2025-02-28T03:00:07Z"));
    // A clock that is a year ahead, or behind: the slot is what is right of it.
    for wrong in ["2026-02-28T03:00:07Z", "2024-02-28T03:00:07Z"] {
        let odd = row(slot, wrong);
        assert_eq!((odd.at, odd.since), (at(due), at(due)), "{wrong}");
    }
    // A slot that was caught up late is as young as its dump.
    assert_eq!(
        row(slot, "2025-03-01T11:00:00Z").since,
        at("2025-03-01T11:00:00Z")
    );
    assert_eq!(
        row(None, "2025-03-01T11:00:00Z").at,
        at("2025-03-01T11:00:00Z")
    );
    assert_eq!(moment(None, "yesterday", now()), None);
}

#[test]
fn r1_a_pod_whose_clock_is_ahead_finds_nothing_too_old() {
    let all = [good("a", 72), good("b", 48), good("c", 24)];
    let rules = Retention {
        max_age: Some("60h".into()),
        ..Retention::default()
    };
    let ahead = Now {
        here: now() + Duration::days(365),
        earliest: now(),
    };
    assert_eq!(goes(&decide(&rules, &all, ahead, For::Rules)), ["a"]);
}

fn orphan(key: &str, hours: i64, stored: u64) -> Candidate {
    Candidate {
        standing: Standing::Adopted,
        size: Size {
            stored,
            ..Size::default()
        },
        ..good(key, hours)
    }
}

#[test]
fn r2_files_without_manifest_take_no_place_of_what_is_vouched_for() {
    let mut all = vec![good("a", 96), good("b", 72), good("c", 48)];
    for n in 0..9 {
        all.push(orphan(&format!("o{n}"), 24 + n, 4));
        all.push(orphan(&format!("p{n}"), 30 + n, 5000));
    }
    let plan = by_rules(&last(3), &all);
    assert!(
        !goes(&plan).iter().any(|k| ["a", "b", "c"].contains(k)),
        "{plan:?}"
    );
    // Older than all that is good, they go.
    let all = [
        good("a", 30),
        good("b", 29),
        orphan("x", 99, 5000),
        orphan("y", 98, 3),
    ];
    assert_eq!(goes(&by_rules(&last(2), &all)), ["x", "y"]);
    // As long as there are too few good ones the whole of them is what the rules count.
    let all = [
        good("a", 30),
        orphan("x", 99, 5000),
        orphan("y", 98, 5000),
        orphan("z", 97, 0),
    ];
    assert_eq!(goes(&by_rules(&last(2), &all)), ["x"]);
    // Nothing good: nothing goes. Young: it may be a run's that goes on.
    let all = [orphan("x", 99, 5000), orphan("y", 98, 5000)];
    assert_eq!(goes(&by_rules(&last(0), &all)), [""; 0]);
    let all = [good("a", 1), orphan("x", 2, 5000)];
    assert_eq!(goes(&by_rules(&last(1), &all)), [""; 0]);
    // By their age they go as before.
    let age = Retention {
        max_age: Some("25h".into()),
        ..Retention::default()
    };
    let all = [good("a", 1), orphan("x", 99, 0), orphan("y", 24, 0)];
    assert_eq!(goes(&by_rules(&age, &all)), ["x"]);
    // And never because the object goes.
    let plan = decide(&age, &all, now().into(), For::Everything);
    assert_eq!(goes(&plan), ["a"]);
}

#[test]
fn r2_what_was_not_read_back_takes_no_place_and_is_no_reason() {
    let unread = |key: &str, hours| Candidate {
        standing: Standing::NotReadBack,
        ..good(key, hours)
    };
    let all = [
        good("a", 96),
        good("b", 72),
        unread("u", 48),
        unread("v", 24),
    ];
    assert_eq!(goes(&by_rules(&last(2), &all)), [""; 0]);
    assert_eq!(goes(&by_rules(&last(1), &all)), ["a"]);
    // After a run that was not read back nothing goes that was.
    assert_eq!(
        goes(&decide(&last(1), &all, now().into(), For::Run("v"))),
        [""; 0]
    );
    let age = Retention {
        max_age: Some("50h".into()),
        ..Retention::default()
    };
    let all = [
        good("a", 96),
        unread("t", 80),
        unread("u", 48),
        unread("v", 24),
    ];
    assert_eq!(
        goes(&decide(&age, &all, now().into(), For::Run("v"))),
        ["t"]
    );
    // A store that never gives anything back: by age, but never the newest.
    let late = [unread("t", 96), unread("u", 80), unread("v", 70)];
    assert_eq!(goes(&by_rules(&age, &late)), ["t", "u"]);
    assert_eq!(goes(&by_rules(&last(1), &late)), [""; 0]);
}

fn candidate() -> impl Strategy<Value = Candidate> {
    (
        -30i64..2000,
        prop_oneof![Just(0u64), Just(10), Just(400), Just(1000), Just(1200)],
        prop_oneof![
            6 => Just(Standing::Good),
            1 => Just(Standing::NotReadBack),
            1 => Just(Standing::Listed),
            2 => Just(Standing::Adopted),
            1 => Just(Standing::Damaged),
        ],
        prop::bool::weighted(0.2),
        prop::bool::weighted(0.2),
    )
        .prop_map(|(hours, bytes, standing, verified, failed)| {
            let vouched = matches!(standing, Standing::Good | Standing::NotReadBack);
            let mut one = good("", hours);
            one.standing = standing;
            one.size.stored = bytes;
            one.size.raw = vouched.then_some(bytes);
            one.verified = vouched && verified;
            one.failed = vouched && failed;
            one
        })
}

fn all() -> impl Strategy<Value = Vec<Candidate>> {
    prop::collection::vec(candidate(), 0..40).prop_map(|mut all| {
        for (n, one) in all.iter_mut().enumerate() {
            one.key = format!("k{n:02}");
        }
        all
    })
}

fn rules_of() -> impl Strategy<Value = Retention> {
    let count = || prop::option::weighted(0.4, 0i32..5);
    let age = prop::option::weighted(0.4, 1i64..2000);
    (count(), count(), count(), count(), count(), age).prop_map(|(last, h, d, w, m, age)| {
        Retention {
            keep_last: last,
            keep_hourly: h,
            keep_daily: d,
            keep_weekly: w,
            keep_monthly: m,
            max_age: age.map(|a| format!("{a}h")),
            adopt_pattern: None,
        }
    })
}

/// What may never go by rules, said without the plan: the newest good one, the newest verified, all
/// that a clock set into the future or that is not there as it was stored, all unvouched ones while
/// nothing is good or they are young.
fn untouchable(all: &[Candidate]) -> BTreeSet<&str> {
    let real = || {
        all.iter()
            .filter(|a| a.moment.at <= now() + Duration::minutes(5))
    };
    let newest = |fits: &dyn Fn(&&Candidate) -> bool| {
        real()
            .filter(fits)
            .max_by_key(|a| (a.moment.at, a.key.as_str()))
            .map(|a| a.key.as_str())
    };
    let counts = |a: &&Candidate| a.standing == Standing::Good && !a.failed;
    let mut found: BTreeSet<&str> = [newest(&counts), newest(&|a| a.verified && !a.failed)]
        .into_iter()
        .flatten()
        .collect();
    found.extend(
        all.iter()
            .filter(|a| a.moment.at > now() + Duration::minutes(5))
            .map(|a| a.key.as_str()),
    );
    let nothing_good = !real().any(|a| counts(&a));
    found.extend(
        all.iter()
            .filter(|a| match a.standing {
                Standing::Listed => nothing_good,
                Standing::Adopted => nothing_good || now() - a.moment.since < UNDER_WAY,
                Standing::Damaged => true,
                Standing::Good | Standing::NotReadBack => false,
            })
            .map(|a| a.key.as_str()),
    );
    found
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn what_may_never_go_never_goes(all in all(), rules in rules_of(), own in prop::option::of(0usize..40)) {
        let own = own.and_then(|n| all.get(n)).filter(|a| a.standing == Standing::Good).map(|a| a.key.clone());
        let asked = own.as_deref().map_or(For::Rules, For::Run);
        let plan = decide(&rules, &all, now().into(), asked);
        let gone: BTreeSet<&str> = goes(&plan).into_iter().collect();
        let mut never = untouchable(&all);
        never.extend(own.as_deref());
        prop_assert!(gone.is_disjoint(&never), "{gone:?} {never:?}");
        // What is good is judged as if there were nothing else.
        let alone: Vec<Candidate> = all.iter().filter(|a| a.standing == Standing::Good && !a.failed).cloned().collect();
        let beside: BTreeSet<String> = goes(&decide(&rules, &alone, now().into(), asked)).into_iter().map(str::to_owned).collect();
        for one in &alone {
            prop_assert!(!gone.contains(one.key.as_str()) || beside.contains(&one.key), "{} went because of another", one.key);
        }
    }

    #[test]
    fn the_order_of_a_listing_changes_nothing(all in all(), rules in rules_of(), seed in 0usize..1000) {
        let plan = by_rules(&rules, &all);
        let mut other = all.clone();
        other.reverse();
        let n = other.len().max(1);
        other.rotate_left(seed % n);
        prop_assert_eq!(plan, by_rules(&rules, &other));
    }

    #[test]
    fn a_second_time_nothing_more_goes(all in all(), rules in rules_of()) {
        let plan = by_rules(&rules, &all);
        prop_assert_eq!(&plan, &by_rules(&rules, &all));
        let gone: BTreeSet<&str> = goes(&plan).into_iter().collect();
        let left: Vec<Candidate> = all.iter().filter(|a| !gone.contains(a.key.as_str())).cloned().collect();
        let again = by_rules(&rules, &left);
        prop_assert_eq!(goes(&again), vec![""; 0], "{:?}", plan);
    }
}
