//! What rules of retention keep, in words, and what smaller ones may remove (PURE). What really goes is
//! decided by the runner, which sees the store and has guards of its own.

use chrono::{DateTime, Utc};
use crds::parts::Retention;
use crds::run::{Run, RunResult};
use crds::time::from_k8s;
use serde_json::Value;

use crate::text::counted;

/// Rules as they stand in a spec, in words: `last 7, daily 14, age 720h`; empty if there are none.
pub(crate) fn words(rules: &Value) -> String {
    const NAMES: [(&str, &str); 6] = [
        ("keepLast", "last"),
        ("keepHourly", "hourly"),
        ("keepDaily", "daily"),
        ("keepWeekly", "weekly"),
        ("keepMonthly", "monthly"),
        ("maxAge", "age"),
    ];
    let rule = |(field, name): (&str, &str)| match &rules[field] {
        Value::Null => None,
        Value::String(text) => Some(format!("{name} {text}")),
        number => Some(format!("{name} {number}")),
    };
    let rules: Vec<String> = NAMES.into_iter().filter_map(rule).collect();
    rules.join(", ")
}

/// Most runs that are named.
const NAMED: usize = 5;

/// Good runs that no rule is known to keep: the newest always stays. Rules by hour, day, week and month,
/// and the runner's guards, may keep more of them.
fn at_risk<'a>(rules: &Retention, runs: &'a [Run], now: DateTime<Utc>) -> Vec<&'a Run> {
    let last = rules.keep_last.and_then(|n| usize::try_from(n).ok());
    let age = rules.max_age.as_deref();
    let age = age.and_then(|text| crds::schedule::parse_go_duration(text).ok());
    let young = |run: &Run| {
        let start = run.start_time.as_ref().map(from_k8s);
        let passed = start.and_then(|start| (now - start).num_nanoseconds());
        age.is_some_and(|age| passed.is_none_or(|passed| passed < age))
    };
    let good = runs.iter().filter(|r| r.result == RunResult::Succeeded);
    let beyond = good.skip(last.unwrap_or(0).max(1));
    beyond.filter(|run| !young(run)).collect()
}

/// What other rules may remove that those before left alone, as far as status tells; none if nothing.
/// `before` is none where everything is kept.
pub(crate) fn preview(
    before: Option<&Retention>,
    after: &Retention,
    runs: &[Run],
    object: &str,
    now: DateTime<Utc>,
) -> Option<String> {
    let was = before.map(|rules| at_risk(rules, runs, now));
    let was = was.unwrap_or_default();
    let more: Vec<&str> = at_risk(after, runs, now)
        .into_iter()
        .filter(|run| !was.iter().any(|r| r.name == run.name))
        .map(|run| run.name.as_str())
        .collect();
    if more.is_empty() {
        return None;
    }
    let named = more
        .iter()
        .take(NAMED)
        .copied()
        .collect::<Vec<_>>()
        .join(", ");
    let rest = match more.len().saturating_sub(NAMED) {
        0 => String::new(),
        rest => format!(" and {rest} more"),
    };
    let by_time = [
        after.keep_hourly,
        after.keep_daily,
        after.keep_weekly,
        after.keep_monthly,
    ];
    let others = if by_time.iter().any(Option::is_some) {
        "which of them rules by hour, day, week or month keep, and what else is stored, status does not say"
    } else {
        "what else is stored status does not say"
    };
    Some(format!(
        "the next good run may remove what {} stored: {named}{rest}; {others}: kubectl backup runs {object} --stored",
        counted(more.len(), "listed run")
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use crds::run::Trigger;
    use crds::time::{parse_rfc3339, to_k8s};

    use super::*;

    #[test]
    fn u17_the_whole_rule_in_words() {
        let rules = serde_json::json!({ "maxAge": "720h", "keepDaily": 14, "keepLast": 7 });
        assert_eq!(words(&rules), "last 7, daily 14, age 720h");
        assert_eq!(words(&Value::Null), "");
    }

    #[test]
    fn u17_what_a_smaller_retention_may_remove() {
        let now = parse_rfc3339("2026-01-10T12:00:00Z").unwrap();
        // One a day, the newest first; the third failed.
        let runs: Vec<Run> = (0..8)
            .map(|days| {
                let result = if days == 2 {
                    RunResult::Failed
                } else {
                    RunResult::Succeeded
                };
                let mut run = Run::new(format!("shop-{days}"), Trigger::Schedule, result);
                run.start_time = Some(to_k8s(
                    now - chrono::Duration::days(days) - chrono::Duration::hours(1),
                ));
                run
            })
            .collect();
        let last = |n: i32| Retention {
            keep_last: Some(n),
            ..Retention::default()
        };
        let said = |before: Option<&Retention>, after: &Retention| {
            preview(before, after, &runs, "mysqlbackup/shop", now)
        };
        assert_eq!(said(Some(&last(3)), &last(9)), None);
        assert_eq!(said(Some(&last(3)), &last(3)), None);
        assert_eq!(
            said(Some(&last(5)), &last(3)).unwrap(),
            "the next good run may remove what 2 listed runs stored: shop-4, shop-5; what else is stored status does not say: kubectl backup runs mysqlbackup/shop --stored"
        );
        let aged = Retention {
            max_age: Some("72h".into()),
            keep_daily: Some(2),
            ..last(1)
        };
        assert_eq!(
            said(None, &aged).unwrap(),
            "the next good run may remove what 5 listed runs stored: shop-3, shop-4, shop-5, shop-6, shop-7; which of them rules by hour, day, week or month keep, and what else is stored, status does not say: kubectl backup runs mysqlbackup/shop --stored"
        );
        // However few are to be kept, the newest stays.
        assert!(!said(None, &last(0)).unwrap().contains("shop-0"));
    }
}
