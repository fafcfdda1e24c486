//! Where the archive is kept.

use serde::{Deserialize, Serialize};

use super::none;
use crate::parts::VolumeDestination;

/// One place for the archive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Storage<C> {
    /// Name of the Storage.
    pub name: String,
    /// Name in gobackup's own list, where it is not its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gobackup_name: Option<String>,
    /// Archives to keep; 0 means all.
    pub keep: u32,
    /// Seconds a transfer may take.
    pub timeout: u32,
    /// Directory or key prefix, without a closing slash.
    pub path: String,
    /// What it is and how to reach it.
    #[serde(flatten)]
    pub place: Place<C>,
}

/// What a storage is and how to reach it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "service")]
pub enum Place<C> {
    /// A directory of a mounted volume.
    #[serde(rename_all = "camelCase")]
    Local {
        /// The volume; none if `path` is below a mount of the pod.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        volume: Option<Box<VolumeDestination>>,
    },
    /// A bucket of S3 or of a service that speaks it.
    S3(S3<C>),
    /// A bucket of Google Cloud Storage.
    #[serde(rename_all = "camelCase")]
    Gcs {
        /// Bucket.
        bucket: String,
        /// Service account key, JSON; none means the pod's own identity.
        #[serde(default = "none", skip_serializing_if = "Option::is_none")]
        credentials: Option<C>,
        /// Path of a mounted file with it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        credentials_file: Option<String>,
        /// URL of another service with the same protocol.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        endpoint: Option<String>,
    },
    /// A container of Azure Blob Storage.
    #[serde(rename_all = "camelCase")]
    Azure {
        /// Storage account.
        account: String,
        /// Container.
        container: String,
        /// Tenant; none means the pod's own identity.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tenant_id: Option<String>,
        /// Application.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        client_id: Option<String>,
        /// The application's secret.
        #[serde(default = "none", skip_serializing_if = "Option::is_none")]
        client_secret: Option<C>,
        /// URL of the account's blobs; none means Azure's public cloud.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        endpoint: Option<String>,
    },
    /// A WebDAV server.
    #[serde(rename_all = "camelCase")]
    Webdav {
        /// URL.
        root: String,
        /// User name.
        #[serde(default = "none", skip_serializing_if = "Option::is_none")]
        username: Option<C>,
        /// Password.
        #[serde(default = "none", skip_serializing_if = "Option::is_none")]
        password: Option<C>,
    },
    /// An FTP server.
    #[serde(rename_all = "camelCase")]
    Ftp {
        /// Host name or address.
        host: String,
        /// TCP port.
        port: u16,
        /// User name.
        #[serde(default = "none", skip_serializing_if = "Option::is_none")]
        username: Option<C>,
        /// Password.
        #[serde(default = "none", skip_serializing_if = "Option::is_none")]
        password: Option<C>,
        /// TLS from the first byte.
        #[serde(default)]
        tls: bool,
        /// TLS after AUTH TLS.
        #[serde(default)]
        explicit_tls: bool,
        /// Accept any server certificate.
        #[serde(default)]
        no_check_certificate: bool,
    },
    /// An SSH server: sftp, and scp through the same protocol.
    #[serde(rename_all = "camelCase")]
    Sftp {
        /// Host name or address.
        host: String,
        /// TCP port.
        port: u16,
        /// User name.
        #[serde(default = "none", skip_serializing_if = "Option::is_none")]
        username: Option<C>,
        /// Password.
        #[serde(default = "none", skip_serializing_if = "Option::is_none")]
        password: Option<C>,
        /// Private key.
        #[serde(default = "none", skip_serializing_if = "Option::is_none")]
        private_key: Option<C>,
        /// Path of a mounted file with the private key.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        private_key_file: Option<String>,
        /// Passphrase of the private key.
        #[serde(default = "none", skip_serializing_if = "Option::is_none")]
        passphrase: Option<C>,
        /// Host key the server must show.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        host_key: Option<String>,
    },
}

/// A bucket of S3 or of a service that speaks it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct S3<C> {
    /// The type as the Storage names it: s3, minio, oss, ….
    pub provider: String,
    /// Bucket.
    pub bucket: String,
    /// Region.
    pub region: String,
    /// URL of the service; none means AWS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// Bucket in the path instead of the host name.
    pub force_path_style: bool,
    /// Storage class; none means the bucket's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_class: Option<String>,
    /// Retries of a request.
    pub max_retries: u32,
    /// Access key id; none means the pod's own identity.
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    pub access_key_id: Option<C>,
    /// Secret access key.
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    pub secret_access_key: Option<C>,
    /// Session token.
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    pub session_token: Option<C>,
}

impl<C> Storage<C> {
    /// The same storage with every secret replaced.
    pub fn map<D>(self, f: &mut impl FnMut(&str, C) -> D) -> Storage<D> {
        let mut at = |field: &str, value: Option<C>| {
            value.map(|v| f(&format!("storages/{}/{field}", self.name), v))
        };
        let place = match self.place {
            Place::Local { volume } => Place::Local { volume },
            Place::S3(s3) => Place::S3(S3 {
                access_key_id: at("access-key-id", s3.access_key_id),
                secret_access_key: at("secret-access-key", s3.secret_access_key),
                session_token: at("session-token", s3.session_token),
                provider: s3.provider,
                bucket: s3.bucket,
                region: s3.region,
                endpoint: s3.endpoint,
                force_path_style: s3.force_path_style,
                storage_class: s3.storage_class,
                max_retries: s3.max_retries,
            }),
            Place::Gcs {
                bucket,
                credentials,
                credentials_file,
                endpoint,
            } => Place::Gcs {
                bucket,
                credentials: at("credentials", credentials),
                credentials_file,
                endpoint,
            },
            Place::Azure {
                account,
                container,
                tenant_id,
                client_id,
                client_secret,
                endpoint,
            } => Place::Azure {
                account,
                container,
                tenant_id,
                client_id,
                client_secret: at("client-secret", client_secret),
                endpoint,
            },
            Place::Webdav {
                root,
                username,
                password,
            } => Place::Webdav {
                root,
                username: at("username", username),
                password: at("password", password),
            },
            Place::Ftp {
                host,
                port,
                username,
                password,
                tls,
                explicit_tls,
                no_check_certificate,
            } => Place::Ftp {
                host,
                port,
                username: at("username", username),
                password: at("password", password),
                tls,
                explicit_tls,
                no_check_certificate,
            },
            Place::Sftp {
                host,
                port,
                username,
                password,
                private_key,
                private_key_file,
                passphrase,
                host_key,
            } => Place::Sftp {
                host,
                port,
                username: at("username", username),
                password: at("password", password),
                private_key: at("private-key", private_key),
                private_key_file,
                passphrase: at("passphrase", passphrase),
                host_key,
            },
        };
        Storage {
            name: self.name,
            gobackup_name: self.gobackup_name,
            keep: self.keep,
            timeout: self.timeout,
            path: self.path,
            place,
        }
    }
}
