//! What a description is made from, and the page it is written on: a column of keys.

use std::fmt::Write;

use chrono::{DateTime, Utc};
use crds::secret;
use crds::time::from_k8s;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Event, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::duration;
use super::table::{Look, Table, Tone};
use super::time::Zone;
use crate::cluster::Object;
use crate::text::sanitise;

/// Something that was read, or why it was not.
pub(crate) type Probe<T> = Result<T, String>;

/// What `describe` has read.
pub(crate) struct Inputs<'a> {
    /// The object.
    pub(crate) object: &'a Object,
    /// The Job of the run that matters: the active one, else the newest.
    pub(crate) job: Probe<Option<Job>>,
    /// Its pods.
    pub(crate) pods: Probe<Vec<Pod>>,
    /// The end of the newest pod's log.
    pub(crate) log: Probe<Vec<String>>,
    /// Events of object and Job.
    pub(crate) events: Probe<Vec<Event>>,
    /// What keeps a verification by restore from starting: its run, and why.
    pub(crate) unverified: Option<(String, String)>,
    /// What a run needs and is not there, in words.
    pub(crate) missing: Vec<String>,
    /// The zone to show times in.
    pub(crate) zone: Zone,
    /// Now.
    pub(crate) now: DateTime<Utc>,
    /// Symbols must be ASCII.
    pub(crate) ascii: bool,
    /// Words may be coloured.
    pub(crate) color: bool,
}

/// Text with a column of keys.
pub(crate) struct Page {
    text: String,
    color: bool,
}

impl Page {
    /// An empty page; marks and words of state have colours if `color` is true.
    pub(crate) fn new(color: bool) -> Self {
        Self {
            text: String::new(),
            color,
        }
    }

    /// A key and its value.
    pub(crate) fn field(&mut self, key: &str, value: &str) {
        let key = format!("{key}:");
        let mut value = sanitise(value);
        if self.color {
            for (mark, tone) in [("✔", Tone::Good), ("✖", Tone::Bad)] {
                value = value.replace(mark, &tone.paint(mark));
            }
        }
        let _ = writeln!(self.text, "{key:<14} {value}");
    }

    /// A title with a table below it.
    pub(crate) fn table(&mut self, title: &str, table: &Table) {
        let _ = writeln!(self.text, "{title}:");
        let look = Look {
            color: self.color,
            ..Look::default()
        };
        for line in table.render(look).lines() {
            let _ = writeln!(self.text, "  {line}");
        }
    }

    /// The conditions, if there are any.
    pub(crate) fn conditions(&mut self, conditions: &[Condition], now: DateTime<Utc>) {
        if conditions.is_empty() {
            return;
        }
        let mut table = Table::new(&["TYPE", "STATUS", "REASON", "AGE", "MESSAGE"]);
        for condition in conditions {
            table.push(vec![
                condition.type_.clone(),
                condition.status.clone(),
                condition.reason.clone(),
                duration::age(from_k8s(&condition.last_transition_time), now),
                or(&secret::mask(&condition.message), "<none>"),
            ]);
        }
        self.table("Conditions", &table);
    }

    /// The newest events.
    pub(crate) fn events(&mut self, events: &Probe<Vec<Event>>, now: DateTime<Utc>) {
        match events {
            Ok(events) if events.is_empty() => self.field("Events", "<none>"),
            Ok(events) => {
                let newest = events.len().saturating_sub(15);
                self.table("Events", &super::events::table(&events[newest..], now));
            }
            Err(why) => self.field("Events", why),
        }
    }

    /// The whole text.
    pub(crate) fn finish(self) -> String {
        self.text
    }

    /// A title with lines below it.
    pub(crate) fn lines(&mut self, title: &str, lines: &[String]) {
        let _ = writeln!(self.text, "{title}:");
        for line in lines {
            let _ = writeln!(self.text, "  {}", sanitise(line));
        }
    }
}

/// The text, or what stands for none.
pub(crate) fn or(text: &str, missing: &str) -> String {
    if text.is_empty() {
        missing.to_owned()
    } else {
        text.to_owned()
    }
}
