//! Options of an action, as `crds::request::Options` words them.

use std::path::PathBuf;

use crds::restore::{Definers, RestoreVerify};
use serde::Deserialize;
use serde_json::Value;

use crate::failure::Failure;
use crate::stream::checksum::Stored;

/// Which artefact is meant; nothing set means the newest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Choice {
    /// Its key below the destination's root.
    pub key: Option<String>,
    /// Name of its run.
    pub run: Option<String>,
    /// The newest whose run started at or before this RFC 3339 instant.
    pub at: Option<String>,
}

/// Options of the actions that neither back up nor restore.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Options {
    /// Verify: which artefact.
    #[serde(flatten)]
    pub choice: Choice,
    /// Prune: every artefact of the object.
    pub all: bool,
    /// Prune: remove nothing.
    pub dry_run: bool,
    /// Verify: Checksum or Restore.
    pub mode: Option<String>,
}

impl Options {
    /// Reads them.
    ///
    /// # Errors
    /// They are not of this form.
    pub fn parse(value: &Value) -> Result<Self, Failure> {
        if value.is_null() {
            return Ok(Self::default());
        }
        Self::deserialize(value).map_err(|e| Failure::settings(format!("options: {e}")))
    }
}

/// Options of a restore.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Restore {
    /// Which artefact.
    #[serde(flatten)]
    pub choice: Choice,
    /// Of an archive: name of the one Database that is restored.
    pub dump: Option<String>,
    /// Another name for the one database of the dump.
    pub database: Option<String>,
    /// What becomes of the definers of views, triggers, routines and events.
    pub definers: Option<Definers>,
    /// Who takes their place.
    pub definer: Option<String>,
    /// Of an archive: where the files of one Database are put instead of loading them.
    pub directory: Option<PathBuf>,
    /// Of an archive: who a new member of etcd is to be.
    pub etcd: EtcdMember,
    /// What the target holds may be replaced.
    pub overwrite: bool,
    /// Users, roles and grants of the dump are made too.
    pub accounts: bool,
    /// These tables, as `database.table`.
    pub tables: Vec<String>,
    /// These databases.
    pub databases: Vec<String>,
    /// All but these tables, as `database.table`.
    pub exclude_tables: Vec<String>,
    /// Foreign keys to tables that are neither restored nor in the target are left out.
    pub without_foreign_keys: bool,
    /// What the server's binary logs hold behind the artefact is replayed, up to there.
    pub replay: Option<ReplayTarget>,
    /// Only say what would be done.
    pub dry_run: bool,
    /// What is compared with the dump afterwards.
    pub verify: RestoreVerify,
}

impl Restore {
    /// Reads them.
    ///
    /// # Errors
    /// They are not of this form.
    pub fn parse(value: Option<&Value>) -> Result<Self, Failure> {
        let value = value.cloned().unwrap_or_default();
        Self::deserialize(value).map_err(|e| Failure::settings(format!("options.restore: {e}")))
    }
}

/// Until where binary logs are replayed: exactly one is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ReplayTarget {
    /// All before this second, RFC 3339.
    pub at: Option<String>,
    /// All up to this transaction, with it.
    pub gtid: Option<String>,
    /// All up to this transaction, without it.
    pub before_gtid: Option<String>,
    /// All that is stored.
    pub latest: bool,
}

/// Who an etcd member is to be: what is unset is the tool's own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EtcdMember {
    /// Its name.
    pub name: Option<String>,
    /// `--initial-cluster` of the tool.
    pub initial_cluster: Option<String>,
    /// `--initial-cluster-token` of the tool.
    pub initial_cluster_token: Option<String>,
    /// `--initial-advertise-peer-urls` of the tool.
    pub initial_advertise_peer_urls: Option<String>,
}

/// Which artefact, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Which one.
    pub choice: Choice,
    /// First byte that is sent.
    pub offset: u64,
    /// The stored bytes.
    pub raw: bool,
    /// Length and SHA-256 of what an archive's tar was before.
    pub expect: Option<Stored>,
    /// The header alone.
    pub head: bool,
}
