//! `Storage` (gobackup.io/v1): one place to keep archives.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bounds::{MAX_COUNT, MAX_RETRIES, MAX_SECONDS};
use crate::parts::VolumeDestination;

/// A place to keep archives and how to reach it.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "gobackup.io",
    version = "v1",
    kind = "Storage",
    plural = "storages",
    singular = "storage",
    shortname = "storage",
    namespaced,
    status = "EndpointStatus",
    derive = "PartialEq",
    doc = "Storage is a place where Backups keep their archives.",
    printcolumn = r#"{"name":"Type","type":"string","jsonPath":".spec.type"}"#,
    printcolumn = r#"{"name":"Bucket","type":"string","jsonPath":".spec.config.bucket"}"#,
    printcolumn = r#"{"name":"Path","type":"string","jsonPath":".spec.config.path"}"#,
    printcolumn = r#"{"name":"Reachable","type":"string","jsonPath":".status.conditions[?(@.type=='Reachable')].status"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase", default)]
pub struct StorageSpec {
    /// Type of the storage. The S3 types are s3, oss, r2, spaces, b2, cos, us3, kodo, bos, minio, obs, tos and upyun.
    #[serde(rename = "type")]
    #[schemars(required, extend("enum" = ["local", "ftp", "sftp", "scp", "webdav", "s3", "oss", "gcs", "azure", "r2", "spaces", "b2", "cos", "us3", "kodo", "bos", "minio", "obs", "tos", "upyun"]))]
    pub type_: String,
    /// How to connect, and what to keep.
    #[schemars(required)]
    pub config: StorageConfig,
    /// Volume for type local. Without one, the archive would be deleted with the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume: Option<VolumeDestination>,
    /// Name of this storage in gobackup's own list of archives (.gobackup-state/MODEL_NAME.json), instead of the object's own. For a storage that a gobackup.yml names otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gobackup_name: Option<String>,
}

/// Settings, named as in a gobackup.yml. Which of them count depends on the type.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct StorageConfig {
    /// Directory or key prefix.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Seconds that a transfer may take. Unset or 0 means 300.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -MAX_SECONDS, max = MAX_SECONDS))]
    pub timeout: Option<i64>,
    /// Number of archives to keep. Unset or 0 means all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -MAX_COUNT, max = MAX_COUNT))]
    pub keep: Option<i64>,
    /// User name. For ftp, sftp, scp and webdav.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    /// Secret key with the user name. Takes precedence over username.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub username_ref: Option<SecretKeySelector>,
    /// Password in plain text: anyone who can read this object sees it. Use password_ref instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    /// Secret key with the password. Takes precedence over password.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password_ref: Option<SecretKeySelector>,
    /// SSH private key, or the path of a mounted file with it. For sftp and scp.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub private_key: Option<String>,
    /// Secret key with the SSH private key. For sftp and scp.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub private_key_ref: Option<SecretKeySelector>,
    /// Passphrase of the private key in plain text: anyone who can read this object sees it. Use passphrase_ref instead. For sftp and scp.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passphrase: Option<String>,
    /// Secret key with the passphrase. For sftp and scp.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passphrase_ref: Option<SecretKeySelector>,
    /// Host key that the server must have, as `ssh-keyscan` prints it. Unset means any. For sftp and scp.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_key: Option<String>,
    /// Name of the bucket. For the S3 types and gcs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bucket: Option<String>,
    /// Region. For the S3 types.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// URL of the service. Unset means the default of the type. For the S3 types.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// Access key ID. For the S3 types.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access_key_id: Option<String>,
    /// Secret key with the access key ID. For the S3 types.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access_key_id_ref: Option<SecretKeySelector>,
    /// Secret access key in plain text: anyone who can read this object sees it. Use secret_access_key_ref instead. For the S3 types.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_access_key: Option<String>,
    /// Secret key with the secret access key. For the S3 types.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_access_key_ref: Option<SecretKeySelector>,
    /// Session token in plain text: anyone who can read this object sees it. Use token_ref instead. For the S3 types.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// Secret key with a session token. For the S3 types.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_ref: Option<SecretKeySelector>,
    /// Storage class. Unset means the default of the type, an empty text that of the bucket. For the S3 types.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_class: Option<String>,
    /// Number of retries of a request. Unset means 3. For the S3 types.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -MAX_RETRIES, max = MAX_RETRIES))]
    pub max_retries: Option<i64>,
    /// If true, the bucket is part of the URL's path instead of its host name. For the S3 types.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub force_path_style: Option<bool>,
    /// Account ID. For r2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account_id: Option<String>,
    /// Service account key as JSON in plain text: anyone who can read this object sees it. Use credentials_ref instead. For gcs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credentials: Option<String>,
    /// Secret key with the service account key. For gcs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credentials_ref: Option<SecretKeySelector>,
    /// Path of a mounted file with the service account key. For gcs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credentials_file: Option<String>,
    /// Storage account. For azure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// Name of the container. Unset means gobackup. For azure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// ID of the tenant. For azure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant_id: Option<String>,
    /// ID of the application. For azure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// Secret of the application in plain text: anyone who can read this object sees it. Use client_secret_ref instead. For azure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<String>,
    /// Secret key with the application's secret. For azure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret_ref: Option<SecretKeySelector>,
    /// Host name or address. For ftp, sftp and scp.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// TCP port. Unset means the default of the protocol. For ftp, sftp and scp.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 65535))]
    pub port: Option<i64>,
    /// URL of the server. For webdav.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// If true, TLS from the first byte (implicit TLS). For ftp.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<bool>,
    /// If true, TLS after the command AUTH TLS (explicit TLS). For ftp.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explicit_tls: Option<bool>,
    /// If true, any server certificate is accepted. For ftp.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_check_certificate: Option<bool>,
}

/// A key of a Secret in the object's namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SecretKeySelector {
    /// Name of the Secret.
    #[schemars(extend("default" = ""))]
    pub name: String,
    /// Key in the Secret.
    #[schemars(required)]
    pub key: String,
    /// If true, a missing Secret or key is the same as an unset field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optional: Option<bool>,
}

/// Observed state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct EndpointStatus {
    /// Generation of the spec that this status refers to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Condition Reachable, from the most recent run or probe that used it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}
