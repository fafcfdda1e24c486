//! The plan of a Backup's run, the same for every generation. `C` is where a secret comes from: a
//! [`Credential`] while the operator resolves, the path of a mounted file for the runner.

mod archive;
mod database;
mod files;
mod storage;

use serde::{Deserialize, Serialize};

pub use archive::{Codec, Compress, Encrypt, Split};
pub use database::{Database, DatabaseType};
pub use files::{SECRETS_DIR, SecretFile, VOLUMES_DIR, with_files};
pub use storage::{Place, S3, Storage};

/// Where a secret value comes from.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Credential {
    /// Written in the user's object in plain text.
    Literal(String),
    /// A key of a Secret in the same namespace.
    Secret {
        /// Name of the Secret.
        name: String,
        /// Key in it.
        key: String,
        /// A missing Secret or key counts as unset.
        optional: bool,
    },
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Literal(_) => f.write_str("Literal(…)"),
            Self::Secret { name, key, .. } => write!(f, "Secret({name}/{key})"),
        }
    }
}

/// What one run does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan<C> {
    /// Name of the model: the topmost directory in the archive.
    pub model: String,
    /// What to dump, in order.
    pub databases: Vec<Database<C>>,
    /// Where to keep the archive.
    pub storages: Vec<Storage<C>>,
    /// Compression of the archive.
    pub compress: Compress,
    /// Encryption of the archive.
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    pub encrypt: Option<Encrypt<C>>,
    /// Parts of the archive; none means one file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<Split>,
    /// Shell text before the dumps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_script: Option<String>,
    /// Shell text at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_script: Option<String>,
}

fn none<T>() -> Option<T> {
    None
}

impl<C> Plan<C> {
    /// The same plan with every secret replaced; `f` gets a name for it, unique in the plan.
    pub fn map<D>(self, f: &mut impl FnMut(&str, C) -> D) -> Plan<D> {
        Plan {
            model: self.model,
            databases: self.databases.into_iter().map(|d| d.map(f)).collect(),
            storages: self.storages.into_iter().map(|s| s.map(f)).collect(),
            compress: self.compress,
            encrypt: self.encrypt.map(|e| e.map(f)),
            split: self.split,
            before_script: self.before_script,
            after_script: self.after_script,
        }
    }
}
