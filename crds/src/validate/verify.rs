//! Verification.

use crate::parts::Verify;

use super::Problem;
use super::destination::one_source;

/// Every mistake of a verification at `path` that would keep it from running.
pub fn verify(path: &str, verify: &Verify) -> Vec<Problem> {
    let mut found = vec![];
    if let Some(every) = verify.every.filter(|e| *e < 1) {
        found.push(Problem::new(
            format!("{path}.every"),
            format!("must be 1 or more, is {every}"),
        ));
    }
    if let Some(volume) = &verify.volume {
        let any = "persistentVolumeClaim, nfs, hostPath, csi, ephemeral, emptyDir";
        one_source(&format!("{path}.volume"), volume, any, &mut found);
    }
    found
}
