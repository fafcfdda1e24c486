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
    let candidates: Vec<Candidate> = own
        .iter()
        .filter_map(|m| {
            Some(Candidate {
                key: m.key.clone(),
                at: m.started()?,
            })
        })
        .collect();
    let mut pruned = 0;
    for decision in plan(rules, &candidates, context.clock.now()).iter().rev() {
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
