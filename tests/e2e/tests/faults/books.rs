//! What objects' books and Jobs say before and after a fault.

use std::collections::BTreeMap;

use chrono::{DateTime, Duration, DurationRound as _, Utc};
use crds::labels::SCHEDULED_AT;
use crds::time::parse_rfc3339;
use e2e::objects::owned_by;
use e2e::wait::until_second;
use e2e::{Namespace, wait_for};
use serde_json::Value;

pub(crate) fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(e2e::wait::unix_seconds(), 0).unwrap()
}

/// The kind of most herds.
pub(crate) const MYSQL: (&str, &str) = ("MysqlBackup", "mysqlbackups.batch.isekiro.com");

/// Objects that come due each minute.
pub(crate) struct Herd<'a> {
    pub(crate) ns: &'a Namespace,
    /// Their kind, and its resource.
    pub(crate) kind: (&'static str, &'static str),
    pub(crate) names: Vec<String>,
}

/// What an object's books and Jobs say.
pub(crate) struct Books {
    passed: i64,
    newest: Option<DateTime<Utc>>,
    jobs: BTreeMap<DateTime<Utc>, usize>,
}

/// A row of the table.
pub(crate) struct Line {
    pub(crate) fault: &'static str,
    pub(crate) due: i64,
    pub(crate) missed: i64,
    pub(crate) lost: i64,
    pub(crate) doubled: i64,
    /// Seconds from the mend until everything is on time again.
    pub(crate) recovered: i64,
}

impl Line {
    pub(crate) fn heading() {
        println!(
            "{:44} {:>8} {:>6} {:>4} {:>7} {:>15}",
            "fault", "runs due", "missed", "lost", "doubled", "time to recover"
        );
    }

    pub(crate) fn show(&self) {
        println!(
            "{:44} {:>8} {:>6} {:>4} {:>7} {:>15}",
            self.fault,
            self.due,
            self.missed,
            self.lost,
            self.doubled,
            format!("{} s", self.recovered)
        );
    }
}

impl Herd<'_> {
    /// `None` while the API server does not answer.
    fn books(&self) -> Option<Vec<Books>> {
        let items = |what: &str| -> Option<Vec<Value>> {
            let get = ["get", what, "-o", "json", "--request-timeout=20s"];
            let output = self.ns.kubectl(&get);
            let list: Value = serde_json::from_str(&output.stdout)
                .ok()
                .filter(|_| output.code == 0)?;
            Some(list["items"].as_array()?.clone())
        };
        // Jobs last: what the books name as started is among them.
        let (objects, jobs) = (items(self.kind.1)?, items("jobs")?);
        let of = |name: &String| {
            let object = objects.iter().find(|o| o["metadata"]["name"] == **name)?;
            let status = &object["status"];
            let total = |field: &str| status["totals"][field].as_i64().unwrap_or(0);
            let mut counted = BTreeMap::new();
            for job in owned_by(&jobs, self.kind.0, name) {
                // A Job that lists the store, or was asked for, has none.
                let slot = job["metadata"]["annotations"][SCHEDULED_AT].as_str();
                if let Some(slot) = slot.and_then(parse_rfc3339) {
                    *counted.entry(slot).or_default() += 1;
                }
            }
            Some(Books {
                passed: total("missed") + total("skipped"),
                newest: status["lastScheduleTime"].as_str().and_then(parse_rfc3339),
                jobs: counted,
            })
        };
        self.names.iter().map(of).collect()
    }

    /// Breaks something before a slot comes due and mends it after, then waits until the newest
    /// due slot of every object has started.
    pub(crate) fn fault(
        &self,
        fault: &'static str,
        seconds: (u64, u64),
        breaks: impl FnOnce(),
        mends: impl FnOnce(),
    ) -> Line {
        wait_for("all objects are on time", 600, || {
            let newest = started(&self.books()?)?;
            (now() - newest < Duration::seconds(60)).then_some(())
        });
        until_second(seconds.0);
        let before = wait_for("the books before", 60, || self.books());
        let from = started(&before).unwrap();
        breaks();
        until_second(seconds.1);
        let mended = now();
        mends();
        let after = wait_for("every object is on time again", 600, || {
            let books = self.books()?;
            let due = now().duration_trunc(Duration::minutes(1)).unwrap();
            (started(&books)? >= due).then_some(books)
        });
        let recovered = (now() - mended).num_seconds();
        let to = started(&after).unwrap();
        let due = (to - from).num_minutes() * i64::try_from(self.names.len()).unwrap();
        let in_time = |b: &Books| b.jobs.range(from + Duration::seconds(1)..=to).count();
        let ran: usize = after.iter().map(in_time).sum();
        let passed = |books: &[Books]| books.iter().map(|b| b.passed).sum::<i64>();
        let missed = passed(&after) - passed(&before);
        let twice = |b: &Books| b.jobs.values().map(|n| n - 1).sum::<usize>();
        Line {
            fault,
            due,
            missed,
            lost: due - i64::try_from(ran).unwrap() - missed,
            doubled: i64::try_from(after.iter().map(twice).sum::<usize>()).unwrap(),
            recovered,
        }
    }
}

/// The newest slot every object has started.
fn started(books: &[Books]) -> Option<DateTime<Utc>> {
    books.iter().map(|b| b.newest).min().flatten()
}
