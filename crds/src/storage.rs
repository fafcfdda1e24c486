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
    /// Which service it is.
    #[serde(rename = "type")]
    #[schemars(required, extend("enum" = ["local", "ftp", "sftp", "scp", "webdav", "s3", "oss", "gcs", "azure", "r2", "spaces", "b2", "cos", "us3", "kodo", "bos", "minio", "obs", "tos", "upyun"]))]
    pub type_: String,
    /// How to reach it.
    #[schemars(required)]
    pub config: StorageConfig,
    /// Volume of type local: without one the archive would die with the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume: Option<VolumeDestination>,
}

/// Settings, named as in a gobackup.yml. Which of them count depends on the type.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct StorageConfig {
    /// Directory or key prefix.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Seconds a transfer may take. Unset or 0 means 300.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -MAX_SECONDS, max = MAX_SECONDS))]
    pub timeout: Option<i64>,
    /// Archives to keep. Unset or 0 means all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -MAX_COUNT, max = MAX_COUNT))]
    pub keep: Option<i64>,
    /// User name. ftp, sftp, scp, webdav.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    /// Secret key that holds the user name; wins over username.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub username_ref: Option<SecretKeySelector>,
    /// Password in plain text: anyone who can read this object sees it. Use password_ref.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    /// Secret key that holds the password; wins over password.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password_ref: Option<SecretKeySelector>,
    /// SSH private key: its text, or the path of a mounted file. sftp, scp.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub private_key: Option<String>,
    /// Secret key that holds the SSH private key. sftp, scp.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub private_key_ref: Option<SecretKeySelector>,
    /// Passphrase of the private key in plain text. Use passphrase_ref. sftp, scp.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passphrase: Option<String>,
    /// Secret key that holds the passphrase. sftp, scp.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passphrase_ref: Option<SecretKeySelector>,
    /// Host key the server must show, as `ssh-keyscan` prints it. Unset means any. sftp, scp.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_key: Option<String>,
    /// Bucket. S3 family, gcs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bucket: Option<String>,
    /// Region. S3 family.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// URL of the service. Unset means the type's own. S3 family.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// Access key id. S3 family.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access_key_id: Option<String>,
    /// Secret key that holds the access key id. S3 family.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access_key_id_ref: Option<SecretKeySelector>,
    /// Secret access key in plain text. Use secret_access_key_ref. S3 family.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_access_key: Option<String>,
    /// Secret key that holds the secret access key. S3 family.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_access_key_ref: Option<SecretKeySelector>,
    /// Session token in plain text. Use token_ref. S3 family.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// Secret key that holds a session token. S3 family.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_ref: Option<SecretKeySelector>,
    /// Storage class. Unset means the type's usual one, empty the bucket's. S3 family.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_class: Option<String>,
    /// Retries of a request. Unset means 3. S3 family.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -MAX_RETRIES, max = MAX_RETRIES))]
    pub max_retries: Option<i64>,
    /// Bucket in the path instead of the host name. S3 family.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub force_path_style: Option<bool>,
    /// Account of the service. r2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account_id: Option<String>,
    /// Service account key in plain text, JSON. Use credentials_ref. gcs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credentials: Option<String>,
    /// Secret key that holds the service account key. gcs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credentials_ref: Option<SecretKeySelector>,
    /// Path of a mounted file with the service account key. gcs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credentials_file: Option<String>,
    /// Storage account. azure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// Container. Unset means gobackup. azure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// Tenant. azure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant_id: Option<String>,
    /// Application. azure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// Secret of the application in plain text. Use client_secret_ref. azure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<String>,
    /// Secret key that holds the application's secret. azure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret_ref: Option<SecretKeySelector>,
    /// Host name or address. ftp, sftp, scp.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// TCP port. Unset means the protocol's. ftp, sftp, scp.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 65535))]
    pub port: Option<i64>,
    /// URL of the server. webdav.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// TLS from the first byte. ftp.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<bool>,
    /// TLS after AUTH TLS. ftp.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explicit_tls: Option<bool>,
    /// Accept any server certificate. ftp.
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
    /// Key in it.
    #[schemars(required)]
    pub key: String,
    /// True: a missing Secret or key counts as unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optional: Option<bool>,
}

/// Status of Database and Storage.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct EndpointStatus {
    /// Generation of the spec this status speaks of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Reachable, from the newest run or Probe that used it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}
