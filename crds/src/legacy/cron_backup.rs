//! `CronBackup` (gobackup.io/v1): a Backup of 2024 with a schedule.

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};

use crate::backup::BackupBody;
use crate::group::{API_VERSION, GROUP, VERSION};

/// A Backup under its older name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CronBackup {
    /// gobackup.io/v1.
    #[serde(default = "api_version")]
    pub api_version: String,
    /// CronBackup.
    #[serde(default = "kind")]
    pub kind: String,
    /// Name, namespace and the rest.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// The fields of a Backup.
    #[serde(flatten)]
    pub body: BackupBody,
}

fn api_version() -> String {
    API_VERSION.to_owned()
}

fn kind() -> String {
    "CronBackup".to_owned()
}

impl kube::Resource for CronBackup {
    type DynamicType = ();
    type Scope = kube::core::NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "CronBackup".into()
    }
    fn group((): &()) -> Cow<'_, str> {
        GROUP.into()
    }
    fn version((): &()) -> Cow<'_, str> {
        VERSION.into()
    }
    fn plural((): &()) -> Cow<'_, str> {
        "cronbackups".into()
    }
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }
    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
