//! `S3` (gobackup.io/v1 and storage.gobackup.io/v1): a Storage of type s3.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bounds::{MAX_COUNT, MAX_RETRIES, MAX_SECONDS};
use crate::storage::{EndpointStatus, StorageConfig, StorageSpec};

/// An S3 bucket.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "gobackup.io",
    version = "v1",
    kind = "S3",
    plural = "s3s",
    singular = "s3",
    shortname = "s3",
    namespaced,
    status = "EndpointStatus",
    derive = "PartialEq",
    doc = "S3 is a Storage of type s3, as it was written before 2026.",
    printcolumn = r#"{"name":"Bucket","type":"string","jsonPath":".spec.bucket"}"#,
    printcolumn = r#"{"name":"Endpoint","type":"string","jsonPath":".spec.endpoint"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase", default)]
pub struct S3Spec {
    /// S3 or a type that speaks its protocol. Unset means s3.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<String>,
    /// Name of the bucket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bucket: Option<String>,
    /// Region.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// URL of the service. Unset means the default of the type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// Prefix of the keys in the bucket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Access key ID.
    #[serde(rename = "accessKeyID", skip_serializing_if = "Option::is_none")]
    pub access_key_id: Option<String>,
    /// Secret access key in plain text: anyone who can read this object sees it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_access_key: Option<String>,
    /// If true, the bucket is part of the URL's path instead of its host name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub force_path_style: Option<bool>,
    /// Storage class. Unset means the default of the type, an empty text that of the bucket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_class: Option<String>,
    /// Number of retries of a request. Unset means 3.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -MAX_RETRIES, max = MAX_RETRIES))]
    pub max_retries: Option<i64>,
    /// Number of archives to keep. Unset or 0 means all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -MAX_COUNT, max = MAX_COUNT))]
    pub keep: Option<i64>,
    /// Seconds that a transfer may take. Unset or 0 means 300.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -MAX_SECONDS, max = MAX_SECONDS))]
    pub timeout: Option<i64>,
}

impl S3Spec {
    /// The same as a Storage.
    pub fn to_storage(&self) -> StorageSpec {
        let type_ = self.type_.as_deref().unwrap_or_default().trim();
        StorageSpec {
            type_: if type_.is_empty() { "s3" } else { type_ }.to_lowercase(),
            config: StorageConfig {
                bucket: self.bucket.clone(),
                region: self.region.clone(),
                endpoint: self.endpoint.clone().filter(|e| !e.is_empty()),
                path: self.path.clone(),
                access_key_id: self.access_key_id.clone(),
                secret_access_key: self.secret_access_key.clone(),
                force_path_style: self.force_path_style,
                storage_class: self.storage_class.clone(),
                max_retries: self.max_retries,
                keep: self.keep,
                timeout: self.timeout,
                ..StorageConfig::default()
            },
            volume: None,
            gobackup_name: None,
        }
    }
}
