//! What the verdict on an object is made from, as the operator reads it. The rule is in
//! [`crds::verdict`]; conditions, metrics and notices share it.

use crds::ScheduleStatus;
use crds::labels::SKIP_SLOTS_UNTIL;
use crds::time::parse_rfc3339;
use crds::verdict::{Facts, Subject, Timing};

use super::observed::{Object, Settings};

/// What a verdict on the object is made from.
pub(crate) fn facts(object: &Object, settings: &Settings, status: &ScheduleStatus) -> Facts {
    let skip = object.annotations.get(SKIP_SLOTS_UNTIL);
    Facts::of(&Subject {
        status,
        created: object.created,
        suspended: settings.suspend,
        skip_until: skip.and_then(|text| parse_rfc3339(text)),
        timing: Timing {
            jitter: settings.jitter_seconds,
            starting_deadline: settings.starting_deadline,
            startup_deadline: settings.startup_deadline,
        },
        missing: &[],
    })
}
