//! `BackupModel` (gobackup.io/v1): compression, encryption and scripts, shared by Backups.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::backup::{CompressWith, EncodeWith};
use crate::storage::EndpointStatus;

/// How archives are made. Early versions spelled the fields with underscores; both spellings are read.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "gobackup.io",
    version = "v1",
    kind = "BackupModel",
    plural = "backupmodels",
    singular = "backupmodel",
    shortname = "backupmodel",
    namespaced,
    status = "EndpointStatus",
    derive = "PartialEq",
    doc = "BackupModel holds compression, encryption and scripts for Backups of 2024.",
    printcolumn = r#"{"name":"Compression","type":"string","jsonPath":".spec.compressWith.type"}"#,
    printcolumn = r#"{"name":"Encryption","type":"string","jsonPath":".spec.encodeWith.type"}"#
)]
#[serde(rename_all = "camelCase", default)]
pub struct BackupModelSpec {
    /// Description for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// How to compress archives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compress_with: Option<CompressWith>,
    /// Same as compressWith.
    #[serde(rename = "compress_with", skip_serializing_if = "Option::is_none")]
    pub compress_with_old: Option<CompressWith>,
    /// How to encrypt archives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encode_with: Option<EncodeWith>,
    /// Same as encodeWith.
    #[serde(rename = "encode_with", skip_serializing_if = "Option::is_none")]
    pub encode_with_old: Option<EncodeWith>,
    /// Shell script to run before the dumps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before_script: Option<String>,
    /// Same as beforeScript.
    #[serde(rename = "before_script", skip_serializing_if = "Option::is_none")]
    pub before_script_old: Option<String>,
    /// Shell script to run at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_script: Option<String>,
    /// Same as afterScript.
    #[serde(rename = "after_script", skip_serializing_if = "Option::is_none")]
    pub after_script_old: Option<String>,
}
