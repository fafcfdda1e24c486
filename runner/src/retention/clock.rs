//! What time it is, by two clocks: an age is counted by the earlier one.

use crate::context::Context;
use crate::retention::plan::{Now, is_ahead};
use crate::store::Store;

/// Now, by this pod's clock or the store's, whichever is earlier: a pod whose clock is ahead would
/// find everything too old. The store is asked by a small object, and need not answer.
pub(super) fn now(context: &Context, store: &dyn Store, directory: &str) -> (Now, Option<String>) {
    let here = context.clock.now();
    let name = format!(".clock-{}", context.nonce);
    let key = match directory {
        "" => name,
        directory => format!("{directory}/{name}"),
    };
    let asked = store
        .put(&key, b"now")
        .and_then(|()| store.modified(&key))
        .ok()
        .flatten();
    let _ = store.remove(&key);
    match asked {
        Some(earliest) if is_ahead(here, earliest) => {
            let warning = format!(
                "the clock of this pod's node is ahead: it says {}, the store {}: ages are counted by the store's; set the node's clock",
                crds::time::rfc3339(here),
                crds::time::rfc3339(earliest)
            );
            (Now { here, earliest }, Some(warning))
        }
        _ => (here.into(), None),
    }
}
