//! The condition of what an object refers to. PURE.

use crds::condition::REFERENCES_RESOLVED;
use crds::gobackup::resolve::Unresolved;
use crds::report::clean;
use crds::run::MAX_MESSAGE;

use crate::engine::KindCondition;
use crate::engine::reason;

/// ReferencesResolved: what is missing or wrong, and the remedy; or what does not do what it says.
pub(crate) fn resolution(resolved: Result<Vec<String>, Unresolved>) -> KindCondition {
    let (status, reason, message) = match resolved {
        Ok(warnings) => (true, reason::RESOLVED, warnings.join("; ")),
        Err(bad) => (false, bad.reason(), bad.message()),
    };
    KindCondition {
        type_: REFERENCES_RESOLVED,
        status,
        reason,
        message: clean(&message, MAX_MESSAGE * 2),
    }
}
