//! The patches that suspend and resume.

use chrono::{DateTime, Utc};
use crds::labels;
use crds::time::rfc3339;
use serde_json::{Map, Value};

use crate::cluster::Object;

/// The patch that suspends, without reason or end.
pub(crate) fn suspend(object: &Object, user: &str, now: DateTime<Utc>) -> Value {
    let mut notes = Map::new();
    notes.insert(labels::SUSPENDED_BY.to_owned(), user.into());
    notes.insert(labels::SUSPENDED_SINCE.to_owned(), rfc3339(now).into());
    object.suspend_patch(true, notes)
}

/// The patch that resumes and takes back what suspending wrote; missed slots are not made up.
pub(crate) fn resume(object: &Object, now: DateTime<Utc>) -> Value {
    let mut notes = Map::new();
    for key in [
        labels::SUSPEND_REASON,
        labels::SUSPENDED_BY,
        labels::SUSPENDED_SINCE,
        labels::RESUME_AT,
    ] {
        notes.insert(key.to_owned(), Value::Null);
    }
    notes.insert(labels::SKIP_SLOTS_UNTIL.to_owned(), rfc3339(now).into());
    object.suspend_patch(false, notes)
}
