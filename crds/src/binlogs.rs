//! Binary logs of a MysqlBackup: how often they are pulled, the books of those slots, and what is
//! recoverable by what was stored.

use chrono::{DateTime, Utc};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bounds::MAX_DURATION_TEXT;
use crate::report;
use crate::run::RunResult;
use crate::schedule::parse_go_duration;
use crate::text::clean;
use crate::time::{from_k8s, parse_rfc3339, rfc3339, to_k8s};

/// Most entries in [`BinlogStatus::windows`].
pub const MAX_WINDOWS: usize = 3;
/// Most entries in [`BinlogStatus::gaps`].
pub const MAX_GAPS: usize = 3;

/// Longest message of a gap, in characters.
const MAX_GAP_MESSAGE: usize = 256;
/// Seconds between two pulls, where the object is silent.
const INTERVAL: i64 = 300;
/// Fewest seconds between two pulls: each is a Job.
const LEAST_INTERVAL: i64 = 30;
/// Most seconds between two pulls: a day.
const MOST_INTERVAL: i64 = 86_400;

/// How binary logs are stored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Binlogs {
    /// Time between two pulls, from 30s to 24h: what was committed since the last one is lost with the server. Unset means 5m. With
    /// continuous it is how long each Job stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_DURATION_TEXT))]
    pub interval: Option<String>,
    /// True: a Job stays for each interval and pulls every 5 seconds, so that what is stored is at most 10 seconds behind, where
    /// server and store answer within 5. Status grows at the end of each interval, when the next Job takes over.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub continuous: bool,
}

impl Binlogs {
    /// Seconds between two pulls.
    ///
    /// # Errors
    /// What is wrong with the interval, and what to write.
    pub fn seconds(&self) -> Result<i64, String> {
        let Some(text) = &self.interval else {
            return Ok(INTERVAL);
        };
        let nanos = parse_go_duration(text)
            .map_err(|_| format!("{text:?} is not a duration; write it like 5m"))?;
        let seconds = nanos.div_euclid(1_000_000_000);
        if !(LEAST_INTERVAL..=MOST_INTERVAL).contains(&seconds) || nanos % 1_000_000_000 != 0 {
            return Err(format!(
                "{text:?} can't be: it has to be whole seconds, from 30s to 24h"
            ));
        }
        Ok(seconds)
    }
}

/// Books of the binary log's slots, and what is recoverable.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BinlogStatus {
    /// Interval that the numbers in totals refer to, in seconds.
    pub interval_seconds: i64,
    /// Each pull stays for an interval, and pulls what comes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub continuous: bool,
    /// Start of the intervals.
    pub anchor: Time,
    /// Every interval that ended up to this moment is counted in totals exactly once.
    pub accounted_until: Time,
    /// Number of intervals by outcome.
    #[serde(default)]
    pub totals: BinlogTotals,
    /// The pull that has not ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open: Option<OpenPull>,
    /// Result of the last pull that ended: Succeeded or Failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_result: Option<RunResult>,
    /// Why the last pull failed, in one word.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Why the last pull failed, and what to do.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// When the last pull ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_time: Option<Time>,
    /// Number of failed pulls since the last successful one.
    #[serde(default)]
    pub consecutive_failures: i64,
    /// Bytes that pulls have stored since the books began; retention removes what no backup needs.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub stored_bytes: i64,
    /// Gaps that were found since the books began.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub gaps_found: i64,
    /// Seconds by which the moment up to which all is stored was past when the last good pull ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lag_seconds: Option<i64>,
    /// When a gap was found that no backup has ended yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incomplete_since: Option<Time>,
    /// Spans of time within which every event is stored, newest first, at most 3.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<Window>,
    /// Spans of time of which events are not stored, newest first, at most 3.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<Gap>,
}

/// Intervals by outcome: `due = succeeded + failed + skipped + missed`, and one more while a pull is
/// open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct BinlogTotals {
    /// Intervals that ended.
    pub due: i64,
    /// Intervals whose pull was successful.
    pub succeeded: i64,
    /// Intervals whose pull failed. What it would have stored, the next one stores.
    pub failed: i64,
    /// Intervals that ended while an earlier pull was running.
    pub skipped: i64,
    /// Intervals at whose end no pull could be started: outage, suspension.
    pub missed: i64,
}

/// A pull that has not ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OpenPull {
    /// End of its interval; with continuous, when the one begins for which it stays.
    pub slot: Time,
    /// Name of its Job.
    pub job: String,
}

/// A span of time within which every event is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Window {
    /// Its first moment.
    pub from: Time,
    /// Its last moment.
    pub until: Time,
}

/// A span of time of which events may be missing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Gap {
    /// Its first moment. Unset if nothing was stored before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Time>,
    /// Its last moment. Unset until something is stored after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Time>,
    /// Cause, in one word.
    pub reason: String,
    /// Cause, and what helps.
    pub message: String,
    /// The stored segment after it, by which a gap that is told twice is known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub segment: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_zero(count: &i64) -> bool {
    *count == 0
}

impl Gap {
    /// What tells it from others, as text.
    #[must_use]
    pub fn subject(&self) -> String {
        let at = self.from.as_ref().or(self.to.as_ref());
        at.map_or_else(|| "the beginning".to_owned(), |at| rfc3339(from_k8s(at)))
    }

    /// `between … and …`.
    #[must_use]
    pub fn span(&self) -> String {
        let moment = |at: &Option<Time>, unset: &str| {
            at.as_ref()
                .map_or_else(|| unset.to_owned(), |t| rfc3339(from_k8s(t)))
        };
        let (from, to) = (moment(&self.from, "the beginning"), moment(&self.to, "now"));
        format!("between {from} and {to}")
    }
}

impl BinlogStatus {
    /// Books that begin at `now`.
    #[must_use]
    pub fn beginning(interval_seconds: i64, now: DateTime<Utc>) -> Self {
        Self {
            interval_seconds,
            continuous: false,
            anchor: to_k8s(now),
            accounted_until: to_k8s(now),
            totals: BinlogTotals::default(),
            open: None,
            last_result: None,
            reason: String::new(),
            message: String::new(),
            last_time: None,
            consecutive_failures: 0,
            stored_bytes: 0,
            gaps_found: 0,
            lag_seconds: None,
            incomplete_since: None,
            windows: vec![],
            gaps: vec![],
        }
    }

    /// Enters intervals that were not pulled.
    pub fn pass(&mut self, count: i64, skipped: bool) {
        let totals = &mut self.totals;
        let column = if skipped {
            &mut totals.skipped
        } else {
            &mut totals.missed
        };
        *column = column.saturating_add(count);
        totals.due = totals.due.saturating_add(count);
    }

    /// Opens a pull; its interval is accounted for from here on.
    pub fn start(&mut self, open: OpenPull) {
        self.accounted_until = open.slot.clone();
        self.totals.due = self.totals.due.saturating_add(1);
        self.open = Some(open);
    }

    /// Closes the open pull: with `Err` of reason and message if it failed.
    pub fn close(&mut self, outcome: Result<(), (&str, &str)>, at: DateTime<Utc>) {
        if self.open.take().is_none() {
            return;
        }
        self.last_time = Some(to_k8s(at));
        let totals = &mut self.totals;
        let (column, result, (reason, message)) = match outcome {
            Ok(()) => (&mut totals.succeeded, RunResult::Succeeded, ("", "")),
            Err(why) => (&mut totals.failed, RunResult::Failed, why),
        };
        *column = column.saturating_add(1);
        self.last_result = Some(result);
        reason.clone_into(&mut self.reason);
        message.clone_into(&mut self.message);
        self.consecutive_failures = match result {
            RunResult::Succeeded => 0,
            _ => self.consecutive_failures.saturating_add(1),
        };
    }

    /// Takes the open pull off, as nobody wants it any more.
    pub fn withdraw(&mut self) {
        if self.open.take().is_some() {
            self.totals.skipped = self.totals.skipped.saturating_add(1);
        }
    }

    /// True if the last pull failed.
    #[must_use]
    pub fn failing(&self) -> bool {
        self.last_result == Some(RunResult::Failed)
    }

    /// Takes in what a pull stored that ended at `at`; gives the gaps that were not known.
    pub fn take(&mut self, pulled: &report::Binlogs, at: DateTime<Utc>) -> Vec<Gap> {
        self.stored_bytes = self.stored_bytes.saturating_add(pulled.stored_bytes.max(0));
        self.lag_seconds = pulled.lag_seconds.or(self.lag_seconds);
        let moment = |text: &str| parse_rfc3339(text).map(to_k8s);
        let mut fresh = vec![];
        for told in &pulled.gaps {
            let gap = Gap {
                from: moment(&told.from),
                to: moment(&told.to),
                reason: told.cause.clone(),
                message: clean(&told.message, MAX_GAP_MESSAGE),
                segment: told.segment.clone(),
            };
            let same = |known: &Gap| known.segment == gap.segment;
            if !gap.segment.is_empty() && self.gaps.iter().any(same) {
                continue;
            }
            match self.gaps.first_mut() {
                // Told again, once it is known where it ends.
                Some(known) if known.from == gap.from && known.reason == gap.reason => {
                    if known.to == gap.to {
                        continue;
                    }
                    *known = gap.clone();
                }
                _ => {
                    self.gaps.insert(0, gap.clone());
                    fresh.push(gap.clone());
                }
            }
            if let Some(to) = gap.to {
                let (from, until) = (to.clone(), to);
                self.windows.insert(0, Window { from, until });
            }
        }
        self.gaps.truncate(MAX_GAPS);
        if !fresh.is_empty() {
            let count = i64::try_from(fresh.len()).unwrap_or(i64::MAX);
            self.gaps_found = self.gaps_found.saturating_add(count);
            self.incomplete_since.get_or_insert(to_k8s(at));
        }
        let pending = self.gaps.first().is_some_and(|gap| gap.to.is_none());
        if !pending {
            self.grow(
                moment(&pulled.first),
                moment(&pulled.seen).or(moment(&pulled.last)),
            );
        }
        self.windows.truncate(MAX_WINDOWS);
        fresh
    }

    /// The newest window reaches to `until`; the first one begins at `from`.
    fn grow(&mut self, from: Option<Time>, until: Option<Time>) {
        if self.windows.is_empty()
            && let Some(from) = from
        {
            let until = from.clone();
            self.windows.push(Window { from, until });
        }
        if let (Some(window), Some(until)) = (self.windows.first_mut(), until)
            && from_k8s(&until) > from_k8s(&window.until)
        {
            window.until = until;
        }
    }

    /// The window in which every moment since a backup of the moment `base` can be restored to; none if events may be missing
    /// since then.
    #[must_use]
    pub fn window_since(&self, base: DateTime<Utc>) -> Option<&Window> {
        let pending = self.gaps.first().is_some_and(|gap| gap.to.is_none());
        let newest = self.windows.first().filter(|_| !pending)?;
        (base >= from_k8s(&newest.from)).then_some(newest)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use std::slice::from_ref;

    use super::*;

    fn at(minute: u32) -> Time {
        to_k8s(parse_rfc3339(&format!("2025-01-15T10:{minute:02}:00Z")).unwrap())
    }

    fn books() -> BinlogStatus {
        BinlogStatus::beginning(60, from_k8s(&at(0)))
    }

    fn gap(from: u32, to: u32) -> Gap {
        Gap {
            from: Some(at(from)),
            to: Some(at(to)),
            reason: "Purged".into(),
            message: "purged".into(),
            segment: String::new(),
        }
    }

    fn told(gap: &Gap) -> report::Gap {
        let text = |at: &Option<Time>| {
            at.as_ref()
                .map(|t| rfc3339(from_k8s(t)))
                .unwrap_or_default()
        };
        report::Gap {
            cause: gap.reason.clone(),
            from: text(&gap.from),
            to: text(&gap.to),
            message: gap.message.clone(),
            segment: gap.segment.clone(),
        }
    }

    fn stored(from: u32, until: u32, gaps: &[Gap]) -> report::Binlogs {
        report::Binlogs {
            first: rfc3339(from_k8s(&at(from))),
            seen: rfc3339(from_k8s(&at(until))),
            gaps: gaps.iter().map(told).collect(),
            ..report::Binlogs::default()
        }
    }

    fn window(from: u32, until: u32) -> Window {
        Window {
            from: at(from),
            until: at(until),
        }
    }

    /// A run tells what the one before it found once more, for that may have died without a word.
    #[test]
    fn a_gap_that_is_told_again_is_known_by_its_segment() {
        let named = |from, to, segment: &str| Gap {
            segment: segment.into(),
            ..gap(from, to)
        };
        let mut books = books();
        let (one, two) = (named(10, 20, "a1"), named(22, 24, "b2"));
        let both = [one.clone(), two.clone()];
        books.take(&stored(1, 5, &[]), from_k8s(&at(30)));
        assert_eq!(books.take(&stored(20, 25, &both), from_k8s(&at(30))), both);
        let windows = [window(24, 25), window(20, 20), window(1, 5)];
        assert_eq!(books.windows, windows);
        // Both again, and one more, though the server's clock was set back.
        let three = named(15, 16, "c3");
        let all = [one, two, three.clone()];
        let fresh = books.take(&stored(16, 17, &all), from_k8s(&at(30)));
        assert_eq!((fresh, books.gaps_found), (vec![three], 3));
        assert_eq!(books.windows[0], window(16, 17));
    }

    #[test]
    fn a_window_grows_until_a_gap_begins_another() {
        let mut books = books();
        assert_eq!(books.take(&stored(1, 5, &[]), from_k8s(&at(30))), []);
        assert_eq!(books.take(&stored(5, 9, &[]), from_k8s(&at(30))), []);
        assert_eq!(books.windows, [window(1, 9)]);
        // Nothing happened, and the server said so.
        let nothing = report::Binlogs {
            first: String::new(),
            ..stored(0, 10, &[])
        };
        books.take(&nothing, from_k8s(&at(30)));
        assert_eq!(books.windows[0].until, at(10));

        let hole = gap(10, 20);
        assert_eq!(
            books.take(&stored(20, 25, from_ref(&hole)), from_k8s(&at(30))),
            from_ref(&hole)
        );
        assert_eq!(books.windows, [window(20, 25), window(1, 10)]);
        assert_eq!(
            (books.gaps_found, books.incomplete_since.clone()),
            (1, Some(at(30)))
        );
        // Told twice, it is one gap.
        assert_eq!(books.take(&stored(20, 26, &[hole]), from_k8s(&at(30))), []);
        assert_eq!(books.windows.len(), 2);
        // What comes late takes nothing back.
        books.take(&stored(20, 22, &[]), from_k8s(&at(30)));
        assert_eq!(books.windows[0].until, at(26));
    }

    #[test]
    fn a_gap_without_an_end_holds_the_window_until_it_has_one() {
        let mut books = books();
        books.take(&stored(1, 5, &[]), from_k8s(&at(30)));
        let open = Gap {
            to: None,
            ..gap(5, 0)
        };
        assert_eq!(
            books.take(&stored(1, 9, from_ref(&open)), from_k8s(&at(30))),
            [open]
        );
        assert_eq!(books.windows, [window(1, 5)]);
        assert_eq!(books.window_since(from_k8s(&at(30))), None);
        assert_eq!(
            books.take(&stored(12, 14, &[gap(5, 12)]), from_k8s(&at(30))),
            [],
            "it was told"
        );
        assert_eq!(books.windows, [window(12, 14), window(1, 5)]);
        assert_eq!(books.gaps, [gap(5, 12)]);
    }

    #[test]
    fn an_interval_is_whole_seconds_within_bounds() {
        let of = |text: &str| {
            let interval = Some(text.to_owned());
            let binlogs = Binlogs {
                interval,
                ..Binlogs::default()
            };
            binlogs.seconds()
        };
        assert_eq!(Binlogs::default().seconds(), Ok(300));
        for (text, seconds) in [("30s", 30), ("1m30s", 90), ("24h", 86_400), ("60s", 60)] {
            assert_eq!(of(text), Ok(seconds), "{text}");
        }
        for text in [
            "29s",
            "24h1s",
            "-5m",
            "0",
            "90.5s",
            "292h",
            "2562047h",
            "30000001us",
        ] {
            let said = of(text).unwrap_err();
            assert!(said.contains("from 30s to 24h"), "{text}: {said}");
        }
        for text in ["", "5", "5 minutes", "1d", "99999999999999h"] {
            let said = of(text).unwrap_err();
            assert!(said.contains("write it like 5m"), "{text}: {said}");
        }
    }

    #[test]
    fn lists_have_an_end() {
        let mut books = books();
        for minute in 0..20 {
            books.take(
                &stored(minute, minute + 1, &[gap(minute, minute + 1)]),
                from_k8s(&at(30)),
            );
        }
        assert_eq!(
            (books.windows.len(), books.gaps.len()),
            (MAX_WINDOWS, MAX_GAPS)
        );
        assert_eq!(books.gaps[0], gap(19, 20));
    }

    #[test]
    fn a_base_behind_the_gap_ends_it() {
        let mut books = books();
        let since =
            |books: &BinlogStatus, minute| books.window_since(from_k8s(&at(minute))).cloned();
        assert_eq!(since(&books, 30), None, "nothing is stored");
        books.take(&stored(5, 10, &[]), from_k8s(&at(30)));
        assert_eq!(since(&books, 4), None);
        assert_eq!(since(&books, 5), Some(window(5, 10)));
        books.take(&stored(20, 25, &[gap(10, 20)]), from_k8s(&at(30)));
        assert_eq!(since(&books, 19), None);
        assert_eq!(since(&books, 20), Some(window(20, 25)));
    }
}
