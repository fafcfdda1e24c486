//! What verifications found, kept beside the artefact: `….verified` after it was restored, or replayed up to, and compared
//! equal, `….verify-failed` after it was not what it should be. The name says the outcome, so that a
//! listing shows it; the content says of which bytes, when and by which run.

use std::collections::BTreeSet;

use crds::report::{Reason, exit};
use serde::{Deserialize, Serialize};

use crate::context::Context;
use crate::failure::Failure;
use crate::store::{self, Store};

/// Ends the name of what a restore proved.
pub const VERIFIED: &str = ".verified";
/// Ends the name of what a verification refuted.
pub const FAILED: &str = ".verify-failed";
/// Schema of the content.
const SCHEMA: &str = "batch.isekiro.com/verification/v1";
/// Most bytes of one that are read.
const LARGEST: u64 = 64 * 1024;

/// The content.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Verdict {
    /// [`SCHEMA`].
    pub schema: String,
    /// Key of the artefact.
    pub key: String,
    /// SHA-256 of its stored bytes.
    pub sha256: String,
    /// Checksum, Restore or Replay.
    pub mode: String,
    /// Whether it passed.
    pub passed: bool,
    /// When, RFC 3339.
    pub time: String,
    /// Run that verified it.
    pub run: String,
}

/// The key before the ending; `None` for other keys.
pub fn beside_of(key: &str) -> Option<&str> {
    [VERIFIED, FAILED]
        .iter()
        .find_map(|end| key.strip_suffix(end))
}

/// Those of `keys` that say something of what is not there any more; `of` gives the keys that may be of
/// that.
pub fn strays(keys: &BTreeSet<String>, of: impl Fn(&str) -> [String; 2]) -> Vec<String> {
    let none = |beside: &str| !of(beside).iter().any(|key| keys.contains(key));
    let stray = |key: &&String| beside_of(key).is_some_and(none);
    keys.iter().filter(stray).cloned().collect()
}

/// Reads one. `None` if it is not there or not one of ours.
///
/// # Errors
/// The store refuses.
pub(super) fn read(store: &dyn Store, key: &str) -> Result<Option<Verdict>, Failure> {
    let text = store::read(store, key, LARGEST)?.unwrap_or_default();
    let verdict = serde_json::from_slice::<Verdict>(&text).ok();
    Ok(verdict.filter(|v| v.schema == SCHEMA && v.passed == key.ends_with(VERIFIED)))
}

/// True if this end of a verification says something of the artefact: what is gone, or can't be opened
/// with the key that is here, may be good all the same.
pub fn refutes(failure: &Failure) -> bool {
    failure.exit_code == exit::VERIFICATION
        && !matches!(
            failure.reason,
            Reason::ArtefactGone | Reason::NotDecryptable
        )
}

/// Keeps the outcome of a verification of the artefact `key` with these bytes, under names that begin
/// with `beside`. Where it can't be written retention does not know of it: that is warned of.
pub fn note(
    context: &Context,
    store: &dyn Store,
    beside: &str,
    (key, sha256): (&str, &str),
    mode: &str,
    passed: bool,
) {
    let verdict = Verdict {
        schema: SCHEMA.to_owned(),
        key: key.to_owned(),
        sha256: sha256.to_owned(),
        mode: mode.to_owned(),
        passed,
        time: crds::time::rfc3339(context.clock.now()),
        run: context.settings.identity.run.clone(),
    };
    if let Err(e) = keep(store, beside, &verdict) {
        context.reporter.warn(&format!(
            "the outcome of this verification could not be kept beside {key}, so that retention does not know it: {e}"
        ));
    }
}

/// A restore that passes takes back every earlier failure; bytes that are whole again take back that
/// they were not, and prove no more.
fn keep(store: &dyn Store, beside: &str, verdict: &Verdict) -> Result<(), Failure> {
    let (verified, failed) = (format!("{beside}{VERIFIED}"), format!("{beside}{FAILED}"));
    let text = serde_json::to_vec(verdict).unwrap_or_default();
    let restored = verdict.mode == "Restore";
    if !verdict.passed {
        return store.put(&failed, &text);
    }
    // A replay gave the rows that the dump had when it was made.
    if restored || verdict.mode == "Replay" {
        store.put(&verified, &text)?;
    }
    match read(store, &failed)? {
        Some(before) if restored || before.mode == verdict.mode => store.remove(&failed),
        _ => Ok(()),
    }
}
