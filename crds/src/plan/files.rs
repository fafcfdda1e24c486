//! Where the pod of a Backup has what its plan names: secrets are files, and only files.

use super::{Credential, Plan};

/// Directory of the pod where every secret of the plan is mounted; another one than that of
/// [`crate::mounts`], as a pod may have both.
pub const SECRETS_DIR: &str = "/run/secrets/gobackup";
/// Directory of the pod below which each local Storage's volume is mounted under its name.
pub const VOLUMES_DIR: &str = "/storage";
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
