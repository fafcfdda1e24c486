//! What the operator hands to the runner for a Backup: [`crate::run::RunSpec`] with the plan
//! beside it. Secrets are files, and only files.

use serde::{Deserialize, Serialize};

use crate::run::RunSpec;

use super::plan::{Credential, Plan};

/// Directory of the pod where every secret of the plan is mounted; another one than that of
/// [`crate::mounts`], as a pod may have both.
pub const SECRETS_DIR: &str = "/run/secrets/gobackup";
/// Directory of the pod below which each local Storage's volume is mounted under its name.
pub const VOLUMES_DIR: &str = "/storage";
/// Directory of the pod for the compressed dumps while the archive is made.
pub const WORK_DIR: &str = "/work";

/// The environment variable [`crate::run::SPEC_ENV`] of a Backup's pod. A runner knows it by the
/// field `plan`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FamilyRunSpec {
    /// What every run has; source, destination, compression, encryption and retention are unset.
    #[serde(flatten)]
    pub run: RunSpec,
    /// What to do.
    pub plan: Plan<String>,
    /// True: gobackup dumps, packs and stores; the runner writes its settings and checks the outcome.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gobackup: bool,
    /// Whether the archives that gobackup's own list names are this Backup's, so that `keep` counts and
    /// removes them. Unset: they are not, and are told of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adopt_state: Option<bool>,
    /// Directory for the compressed dumps.
    pub workdir: String,
    /// Zone of the timestamp in the archive's name; unset means UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
}

/// A secret of the plan and the file it is mounted as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretFile {
    /// Path below [`SECRETS_DIR`].
    pub path: String,
    /// Where it comes from.
    pub from: Credential,
}

/// The plan with files for secrets, and the files to mount.
pub fn with_files(plan: Plan<Credential>) -> (Plan<String>, Vec<SecretFile>) {
    let mut files = vec![];
    let plan = plan.map(&mut |name, from| {
        files.push(SecretFile {
            path: name.to_owned(),
            from,
        });
        format!("{SECRETS_DIR}/{name}")
    });
    (plan, files)
}
