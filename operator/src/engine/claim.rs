//! Which of several installations of this operator acts on an object.
//!
//! `status.controller` names the one that does. The claim is written, on the resourceVersion that
//! was seen, before anything else is decided; the others enter themselves in
//! `status.otherControllers` and touch nothing. Jobs are named by slot and found by the owner's
//! UID, so that a holder that was taken for gone and writes late meets the Job that is there.

use chrono::Duration;
use crds::condition::{self, EXCLUSIVE};
use crds::status::MAX_OTHER_CONTROLLERS;

use super::draft::{Draft, Plan};
use super::observed::{Observed, Standing};
use super::reason;

/// Another installation is looked at again after this time.
const LOOK: Duration = Duration::seconds(30);

/// The plan of an installation that does not hold the claim; `None` for the holder.
pub(super) fn claim(seen: &Observed, now: chrono::DateTime<chrono::Utc>) -> Option<Plan> {
    let me = &seen.installation;
    let mut plan = Plan::nothing(seen);
    let status = &mut plan.status;
    match seen.status.controller.as_ref() {
        Some(holder) if holder == me => return None,
        Some(holder) if seen.standing(holder) != Standing::Gone => {
            let others = &mut status.other_controllers;
            if !others.contains(me) && others.len() < MAX_OTHER_CONTROLLERS {
                others.push(me.clone());
            }
            plan.wake = Some(now + LOOK);
        }
        // What the holder did last is seen before it is followed.
        Some(_) if !seen.live => plan.needs_live = true,
        _ => {
            status.controller = Some(me.clone());
            status.other_controllers.retain(|other| other != me);
        }
    }
    Some(plan)
}

/// The condition Exclusive, told by the holder of the claim.
pub(super) fn exclusive(draft: &mut Draft<'_>) {
    let seen = draft.seen;
    let stays = |name: &String| *name != seen.installation && seen.standing(name) != Standing::Gone;
    draft.status.other_controllers.retain(stays);
    if draft.status.other_controllers.is_empty() {
        draft.status.conditions.retain(|c| c.type_ != EXCLUSIVE);
        return;
    }
    draft.wake_at(draft.now + LOOK);
    let others = draft.status.other_controllers.join(", ");
    let message = format!(
        "the operator of {} starts the runs; the operator of {others} watches this object too and leaves it alone. Remove one of them, or set --watch-namespaces",
        seen.installation
    );
    let old = condition::get(&seen.status.conditions, EXCLUSIVE);
    if old.is_none_or(|o| o.message != message) {
        let (why, note) = (reason::FOREIGN_CONTROLLER, message.clone());
        draft.event(others, why, true, "Claim", note);
    }
    condition::set(
        &mut draft.status.conditions,
        EXCLUSIVE,
        false,
        reason::FOREIGN_CONTROLLER,
        message,
        seen.object.generation,
        draft.now,
    );
}

impl Observed {
    fn standing(&self, name: &str) -> Standing {
        let known = self.foreign_installations.get(name).copied();
        known.unwrap_or(Standing::Unknown)
    }
}
