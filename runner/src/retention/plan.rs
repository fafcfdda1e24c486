//! What goes and what stays, and why. Pure: `now` is a parameter, and the result is comparable.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Duration, Utc};
use crds::parts::Retention;

use crate::retention::rules::{self, Moment};

/// Clocks of machines may differ by so much.
const SKEW: Duration = Duration::minutes(5);
/// A file without a manifest that is younger may belong to a run that is not done yet.
pub(super) const UNDER_WAY: Duration = Duration::hours(24);

/// So many artefacts before one say what is usual: the middle one of them by size.
const USUAL: usize = 5;

/// True if `time` is later than any clock that is right can say at `now`.
pub(super) fn is_ahead(time: DateTime<Utc>, now: DateTime<Utc>) -> bool {
    time.signed_duration_since(now) > SKEW
}

/// What vouches for an artefact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Its manifest or record: it was read back.
    Good,
    /// Its manifest says that its bytes were not read back.
    NotReadBack,
    /// The list of another program, which the user handed over.
    Listed,
    /// Nothing but a name that the user's pattern matches.
    Adopted,
    /// Its manifest or record, which something else is there for than what was stored.
    Damaged,
}

/// How much an artefact holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Bytes stored.
    pub stored: u64,
    /// Bytes of its dumps, where they are known.
    pub raw: Option<u64>,
    /// Bytes of the dumps of each database of an archive.
    pub dumps: BTreeMap<String, u64>,
}

/// An artefact of the object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its key.
    pub key: String,
    /// When it was made.
    pub moment: Moment,
    /// How much it holds.
    pub size: Size,
    /// What vouches for it.
    pub standing: Standing,
    /// It was verified by restore.
    pub verified: bool,
    /// A verification of it failed.
    pub failed: bool,
}

impl Candidate {
    /// True if it may be why others go.
    fn counts(&self) -> bool {
        self.standing == Standing::Good && !self.failed
    }
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

/// All decisions, newest first, and what people have to know of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// One for each candidate.
    pub decisions: Vec<Decision>,
    /// Sentences for the report.
    pub warnings: Vec<String>,
}

/// What time it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// By this pod's clock.
    pub here: DateTime<Utc>,
    /// By the earliest clock that was asked: ages are counted by it.
    pub earliest: DateTime<Utc>,
}

impl From<DateTime<Utc>> for Now {
    fn from(here: DateTime<Utc>) -> Self {
        Self {
            here,
            earliest: here,
        }
    }
}

/// What retention is applied for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum For<'a> {
    /// A run that has just stored the artefact of this key.
    Run(&'a str),
    /// Somebody who asked for the rules to be applied now.
    Rules,
    /// Somebody who asked for all to go.
    Everything,
}

/// Decides over all artefacts of an object, in any order.
///
/// - Those that are good (read back, no failed verification) are kept by the rules among themselves:
///   nothing else ever takes a place from them. The newest of them stays, and the newest that was
///   verified by restore.
/// - One whose verification failed stays as long as a good one of its age would, and takes no place.
/// - One that was not read back stays as long as a good one of its age would, were it the only such.
/// - What only a pattern or another program's list names goes when the rules let it go beside the
///   good ones, never while there is no good one, and by a pattern never while it is young.
/// - What is not there as it was stored stays, and takes no place; it goes with everything.
/// - What is dated in the future stays, and takes no place.
/// - Nothing goes if the newest holds less than half of the one before it, or of the usual one of the
///   five before it; nothing that was read back goes after
///   a run that was not; the run's own artefact stays.
pub fn decide(rules: &Retention, artefacts: &[Candidate], now: Now, asked: For<'_>) -> Plan {
    let mut sorted: Vec<&Candidate> = artefacts.iter().collect();
    sorted.sort_by(|a, b| (b.moment, &b.key).cmp(&(a.moment, &a.key)));
    let mut plan = Draft {
        rules,
        now,
        sorted: &sorted,
        kept: vec![BTreeSet::new(); sorted.len()],
        warnings: vec![],
    };
    if asked == For::Everything {
        plan.keep_each("no manifest", |a| a.standing == Standing::Adopted);
    } else {
        plan.by_rules();
        plan.by_guards(asked);
    }
    Plan {
        decisions: sorted
            .iter()
            .zip(plan.kept)
            .map(|(artefact, by)| Decision {
                key: artefact.key.clone(),
                kept_by: by.into_iter().collect(),
            })
            .collect(),
        warnings: plan.warnings,
    }
}

struct Draft<'a> {
    rules: &'a Retention,
    now: Now,
    /// Newest first.
    sorted: &'a [&'a Candidate],
    kept: Vec<BTreeSet<&'static str>>,
    warnings: Vec<String>,
}

impl<'a> Draft<'a> {
    fn keep_each(&mut self, why: &'static str, fits: impl Fn(&Candidate) -> bool) {
        for (artefact, by) in self.sorted.iter().zip(&mut self.kept) {
            if fits(artefact) {
                by.insert(why);
            }
        }
    }

    /// Indices of those that fit, newest first; none that is dated in the future.
    fn those(&self, fits: impl Fn(&Candidate) -> bool) -> Vec<usize> {
        let each = self.sorted.iter().enumerate();
        each.filter(|(_, a)| !is_ahead(a.moment.at, self.now.here) && fits(a))
            .map(|(i, _)| i)
            .collect()
    }

    /// What the rules say of these, and nothing of others.
    fn judge(&self, those: &[usize]) -> Vec<BTreeSet<&'static str>> {
        let times: Vec<Moment> = those.iter().map(|i| self.sorted[*i].moment).collect();
        rules::kept(self.rules, &times, self.now.earliest)
    }

    fn take(&mut self, index: usize, by: &BTreeSet<&'static str>) {
        self.kept[index].extend(by);
    }

    fn by_rules(&mut self) {
        let now = self.now;
        let good = self.those(Candidate::counts);
        for (i, by) in good.iter().zip(self.judge(&good)) {
            self.take(*i, &by);
        }
        // What failed is judged beside the good ones, and takes no place from them.
        let failed = |a: &Candidate| a.standing == Standing::Good && a.failed;
        self.judge_beside(&good, failed, true);
        let unread = |a: &Candidate| a.standing == Standing::NotReadBack;
        self.judge_beside(&good, unread, false);
        for i in self.those(unread) {
            // Each is the newest where there is no other: that is decided for all of them together.
            self.kept[i].remove("newest");
        }
        if good.is_empty() {
            let unvouched =
                |a: &Candidate| matches!(a.standing, Standing::Listed | Standing::Adopted);
            self.keep_each("no good artefact yet", unvouched);
        } else {
            let full = good.first().map_or(0, |i| self.sorted[*i].size.stored);
            // What has next to nothing in it is no backup that another could make superfluous.
            let weighty = move |a: &Candidate| match a.standing {
                Standing::Listed => a.size.stored > 0,
                Standing::Adopted => a.size.stored > 0 && !shrank(full, a.size.stored),
                Standing::Good | Standing::NotReadBack | Standing::Damaged => false,
            };
            self.judge_beside(&good, weighty, true);
            let mut heavier = self.those(|a| weighty(a));
            heavier.extend(&good);
            heavier.sort_unstable();
            let unvouched =
                |a: &Candidate| matches!(a.standing, Standing::Listed | Standing::Adopted);
            self.judge_beside(&heavier, move |a| unvouched(a) && !weighty(a), false);
            self.keep_each("may be of a run under way", |a| {
                a.standing == Standing::Adopted
                    && now.earliest.signed_duration_since(a.moment.since) < UNDER_WAY
            });
        }
        self.keep_each("not what was stored", |a| a.standing == Standing::Damaged);
        let mut ahead = vec![];
        for (artefact, by) in self.sorted.iter().zip(&mut self.kept) {
            if is_ahead(artefact.moment.at, now.here) {
                by.insert("dated in the future");
                ahead.push(format!(
                    "{} ({})",
                    artefact.key,
                    crds::time::rfc3339(artefact.moment.at)
                ));
            }
        }
        if let Some(first) = ahead.first() {
            self.warnings.push(format!(
                "{} artefacts are dated in the future, such as {first}: a clock was ahead when they were made; they stay and are not counted, remove them by hand once you have others",
                ahead.len()
            ));
        }
    }

    /// Judges those that fit beside `others`: all of them at once if they take places from each
    /// other, else each alone.
    fn judge_beside(
        &mut self,
        others: &[usize],
        fits: impl Fn(&Candidate) -> bool,
        together: bool,
    ) {
        let own = self.those(fits);
        let groups: Vec<Vec<usize>> = if together {
            vec![own]
        } else {
            own.into_iter().map(|i| vec![i]).collect()
        };
        for group in groups {
            let mut all: Vec<usize> = others.iter().chain(&group).copied().collect();
            all.sort_unstable();
            let judged = self.judge(&all);
            for (i, by) in all.iter().zip(judged) {
                if group.contains(i) {
                    self.take(*i, &by);
                }
            }
        }
    }

    fn by_guards(&mut self, asked: For<'_>) {
        let own = match asked {
            For::Run(key) => Some(key),
            For::Rules | For::Everything => None,
        };
        for standing in [Standing::Good, Standing::NotReadBack] {
            let proven = |failed: bool| {
                self.those(|a| a.verified && a.failed == failed && a.standing == standing)
                    .first()
                    .copied()
            };
            if let Some(i) = proven(false).or_else(|| proven(true)) {
                self.take(i, &BTreeSet::from(["newest verified by restore"]));
            }
        }
        let vouched = |a: &Candidate| matches!(a.standing, Standing::Good | Standing::NotReadBack);
        if let Some(i) = self.those(vouched).first() {
            self.take(*i, &BTreeSet::from(["newest"]));
        }
        if let Some(key) = own {
            self.keep_each("this run", |a| a.key == key);
        }
        let unread = |a: &&&Candidate| Some(a.key.as_str()) == own;
        if self
            .sorted
            .iter()
            .find(unread)
            .is_some_and(|a| a.standing == Standing::NotReadBack)
        {
            self.keep_each("this run was not read back", |a| {
                a.standing != Standing::NotReadBack
            });
        }
        if let Some(text) = self.shrunk(own) {
            self.warnings.push(text);
            for by in self.kept.iter_mut().filter(|by| by.is_empty()) {
                by.insert("the newest shrank");
            }
        }
    }

    /// That the newest that counts, or the run's own, holds less than half of the one before it, or of
    /// what was usual before it.
    fn shrunk(&self, own: Option<&str>) -> Option<String> {
        let counted: Vec<&'a Candidate> = self
            .those(|a| a.standing == Standing::Good)
            .into_iter()
            .map(|i| self.sorted[i])
            .collect();
        let of_run = own.and_then(|key| counted.iter().position(|a| a.key == key));
        let good: Vec<usize> = (0..counted.len())
            .filter(|i| counted[*i].counts())
            .collect();
        let newest = good.first().copied();
        [of_run, newest].into_iter().flatten().find_map(|i| {
            let small = counted[i];
            let older = good.iter().filter(|j| **j > i).take(USUAL);
            let mut before: Vec<&Candidate> = older.map(|j| counted[*j]).collect();
            if before.is_empty() {
                // Of the oldest the next younger.
                let younger = good.iter().rev().find(|j| **j < i);
                before.extend(younger.map(|j| counted[*j]));
            }
            let last = before.first().copied()?;
            before.sort_by_key(|a| a.size.raw.unwrap_or(a.size.stored));
            let usual = before.get(before.len() / 2).copied()?;
            [last, usual].into_iter().find_map(|before| {
                let (had, has) = shrunk_by(&before.size, &small.size)?;
                Some(format!(
                    "nothing was removed: {} has {has}, {} before it had {had}; check that it is whole; once so little is usual, runs remove again",
                    small.key, before.key
                ))
            })
        })
    }
}

/// True if `new` bytes are less than half of `old`.
pub(super) fn shrank(old: u64, new: u64) -> bool {
    new < old.div_ceil(2)
}

/// In what `new` holds less than half of what `old` held, as (`old`, `new`) in words. Dumps are compared
/// with dumps, database by database, where both are known; else what is stored.
fn shrunk_by(old: &Size, new: &Size) -> Option<(String, String)> {
    let bytes = |n: u64| format!("{n} bytes");
    let whole = match (old.raw, new.raw) {
        (Some(old), Some(new)) => (old, new),
        _ => (old.stored, new.stored),
    };
    if shrank(whole.0, whole.1) {
        return Some((bytes(whole.0), bytes(whole.1)));
    }
    if new.dumps.is_empty() {
        return None;
    }
    let of_new = |name: &str| new.dumps.get(name).copied().unwrap_or(0);
    let (name, old) = old
        .dumps
        .iter()
        .find(|(name, old)| shrank(**old, of_new(name)))?;
    Some((format!("{old} bytes of {name}"), bytes(of_new(name))))
}
