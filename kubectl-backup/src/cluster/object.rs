//! An object as the server has it, and what is read off it.

use chrono::{DateTime, Utc};
use crds::ScheduleStatus;
use crds::gobackup::ObjectKey;
use crds::restore::RestoreStatus;
use crds::run::{Run, RunResult};
use crds::schedule::{DstPolicy, Schedule};
use kube::ResourceExt;
use kube::api::DynamicObject;
use serde::Deserialize;
use serde_json::Value;

use crate::error::{Error, Kind as Exit, Result};
use crate::kind::Kind;
use crate::references::references;

/// An object of one of our kinds.
#[derive(Clone, Debug)]
pub(crate) struct Object {
    /// Its kind.
    pub(crate) kind: &'static Kind,
    /// The object as the server has it.
    pub(crate) object: DynamicObject,
}

impl Object {
    /// Its name.
    pub(crate) fn name(&self) -> String {
        self.object.name_any()
    }

    /// Its namespace.
    pub(crate) fn namespace(&self) -> String {
        self.object.namespace().unwrap_or_default()
    }

    /// Its UID.
    pub(crate) fn uid(&self) -> String {
        self.object.uid().unwrap_or_default()
    }

    /// `singular.group/name`.
    pub(crate) fn full_name(&self) -> String {
        self.kind.full_name(&self.name())
    }

    /// When it was created.
    pub(crate) fn created(&self) -> Option<DateTime<Utc>> {
        self.object
            .metadata
            .creation_timestamp
            .as_ref()
            .map(crds::time::from_k8s)
    }

    /// Its status, as far as it can be read.
    pub(crate) fn status(&self) -> ScheduleStatus {
        self.object
            .data
            .get("status")
            .and_then(|status| serde_json::from_value(status.clone()).ok())
            .unwrap_or_default()
    }

    /// The status of a Restore, as far as it can be read.
    pub(crate) fn restore_status(&self) -> RestoreStatus {
        let status = self.object.data.get("status").cloned();
        status
            .and_then(|status| serde_json::from_value(status).ok())
            .unwrap_or_default()
    }

    /// Its active run, else its newest.
    pub(crate) fn current_run(&self) -> Option<Run> {
        current_run(&self.status()).cloned()
    }

    /// Its schedule.
    ///
    /// # Errors
    /// It has none, or one that does not parse.
    pub(crate) fn schedule(&self) -> Result<Schedule> {
        let status = self.status().schedule.unwrap_or_default();
        let written = self.spec()["schedule"].as_str();
        let written = written.or(self.spec()["schedule"]["cron"].as_str());
        let text = written.unwrap_or(&status.text);
        if text.is_empty() {
            return Err(Error::new(
                Exit::Other,
                format!("{} has no schedule", self.full_name()),
            ));
        }
        let named = self.beside_schedule("timeZone").as_str();
        let observed = (!status.time_zone.is_empty()).then_some(status.time_zone.as_str());
        let schedule = Schedule::parse(text, named.or(observed))
            .map_err(|e| Error::new(Exit::Other, format!("{}: {e}", self.full_name())))?;
        Ok(schedule.with_dst_policy(self.dst_policy()))
    }

    /// What it wants of local times that daylight saving skips or repeats.
    pub(crate) fn dst_policy(&self) -> DstPolicy {
        let policy = self.beside_schedule("dstPolicy");
        DstPolicy::deserialize(policy).unwrap_or_default()
    }

    /// A field that a MysqlBackup has beside its schedule, and a Backup in it.
    fn beside_schedule(&self, field: &str) -> &Value {
        let spec = self.spec();
        match spec["schedule"].is_object() {
            true => &spec["schedule"][field],
            false => &spec[field],
        }
    }

    /// Which objects of gobackup.io it names, each with those that would do.
    pub(crate) fn references(&self) -> Vec<Vec<ObjectKey>> {
        references(&self.object.data)
    }

    /// Its spec.
    pub(crate) fn spec(&self) -> &Value {
        self.object.data.get("spec").unwrap_or(&Value::Null)
    }

    /// An annotation.
    pub(crate) fn annotation(&self, key: &str) -> Option<&str> {
        self.object.annotations().get(key).map(String::as_str)
    }

    /// Where the field that suspends it stands in its spec; an object without such a place is
    /// suspended by annotation.
    pub(crate) fn suspend_path(&self) -> Option<&'static [&'static str]> {
        if *self.kind == crate::kind::MYSQL {
            Some(&["spec", "suspend"])
        } else if self.spec()["schedule"].is_object() {
            Some(&["spec", "schedule", "suspend"])
        } else {
            None
        }
    }

    /// True if no slot is started.
    pub(crate) fn suspended(&self) -> bool {
        let field = self.suspend_path().and_then(|path| {
            let mut inner = path.iter().skip(1);
            inner.try_fold(self.spec(), |value, key| value.get(key))
        });
        field == Some(&Value::Bool(true))
            || self.annotation(crds::labels::SUSPENDED) == Some("true")
    }

    /// The patch that writes annotations and suspends or resumes: one field and nothing else.
    pub(crate) fn suspend_patch(
        &self,
        suspend: bool,
        mut notes: serde_json::Map<String, Value>,
    ) -> Value {
        let mut patch = serde_json::json!({});
        match self.suspend_path() {
            Some(path) => {
                patch = path.iter().rev().fold(
                    Value::Bool(suspend),
                    |inner, key| serde_json::json!({ *key: inner }),
                );
                notes.insert(crds::labels::SUSPENDED.to_owned(), Value::Null);
            }
            None => {
                let mark = if suspend { "true".into() } else { Value::Null };
                notes.insert(crds::labels::SUSPENDED.to_owned(), mark);
            }
        }
        patch["metadata"] = serde_json::json!({ "annotations": notes });
        patch
    }

    /// The object as JSON, without managed fields unless asked for.
    pub(crate) fn to_value(&self, managed_fields: bool) -> Value {
        let mut object = self.object.clone();
        object.types = Some(kube::core::TypeMeta {
            api_version: format!("{}/{}", self.kind.group, self.kind.version),
            kind: self.kind.kind.to_owned(),
        });
        if !managed_fields {
            object.metadata.managed_fields = None;
        }
        serde_json::to_value(&object).unwrap_or_default()
    }
}

/// The run that matters most of an object: the active one, else the newest.
pub(crate) fn current_run(status: &ScheduleStatus) -> Option<&Run> {
    let active = status.runs.iter().find(|r| r.result == RunResult::Running);
    active.or(status.runs.first())
}
