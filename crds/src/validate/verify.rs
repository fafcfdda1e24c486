//! Verification.

use crate::parts::{Verify, VerifyMode};

use super::Problem;
use super::destination::one_source;

/// Why [`VerifyMode::Replay`] is nothing for an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replays {
    /// It stores binary logs.
    Can,
    /// It stores none, and could.
    WithoutBinlogs,
    /// Its kind has none.
    Never,
}

/// Every mistake of a verification at `path` that would keep it from running.
pub fn verify(path: &str, verify: &Verify, replays: Replays) -> Vec<Problem> {
    let mut found = vec![];
    let why = match replays {
        _ if verify.mode != VerifyMode::Replay => None,
        Replays::Can => None,
        Replays::WithoutBinlogs => Some(
            "Replay replays stored binary logs from one backup to the next, and spec.binlogs is not set; set it (--binlogs 5m), or mode Restore",
        ),
        Replays::Never => {
            Some("Replay is of a MysqlBackup with spec.binlogs alone; set mode Restore")
        }
    };
    found.extend(why.map(|why| Problem::new(format!("{path}.mode"), why)));
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
