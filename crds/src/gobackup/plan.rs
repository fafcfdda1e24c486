//! The plan of a run, the same for every generation. `C` is where a secret comes from: a
//! [`Credential`] while the operator resolves, the path of a mounted file for the runner.

use serde::{Deserialize, Serialize};

use crate::mysql_backup::VolumeDestination;

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

/// Database servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// PostgreSQL.
    Postgresql,
    /// MySQL.
    Mysql,
    /// MariaDB.
    Mariadb,
    /// MongoDB.
    Mongodb,
    /// Redis or Valkey.
    Redis,
    /// Microsoft SQL Server.
    Mssql,
    /// InfluxDB 2.
    Influxdb2,
    /// etcd.
    Etcd,
}

impl Engine {
    /// The name gobackup gives it: the directory in the archive.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Postgresql => "postgresql",
            Self::Mysql => "mysql",
            Self::Mariadb => "mariadb",
            Self::Mongodb => "mongodb",
            Self::Redis => "redis",
            Self::Mssql => "mssql",
            Self::Influxdb2 => "influxdb2",
            Self::Etcd => "etcd",
        }
    }

    /// Reads a type in any case; `influxdb` is the operator's word for gobackup's influxdb2.
    pub fn parse(text: &str) -> Option<Self> {
        Some(match text.trim().to_lowercase().as_str() {
            "postgresql" | "postgres" => Self::Postgresql,
            "mysql" => Self::Mysql,
            "mariadb" => Self::Mariadb,
            "mongodb" => Self::Mongodb,
            "redis" => Self::Redis,
            "mssql" => Self::Mssql,
            "influxdb" | "influxdb2" => Self::Influxdb2,
            "etcd" => Self::Etcd,
            _ => return None,
        })
    }
}

/// One dump.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Database<C> {
    /// Name of the Database: the directory in the archive.
    pub name: String,
    /// Which server.
    pub engine: Engine,
    /// Host name or address; influxdb: URL; etcd: endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// TCP port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Unix socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket: Option<String>,
    /// User name.
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    pub username: Option<C>,
    /// Password; influxdb: API token; mongodb with `uri`: unused.
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    pub password: Option<C>,
    /// Connection string of mongodb.
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    pub uri: Option<C>,
    /// Name of the database, bucket or, if unset, all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<String>,
    /// Organisation of influxdb.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub org: Option<String>,
    /// Database that knows the user, of mongodb.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth_db: Option<String>,
    /// Tables to dump; empty means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<String>,
    /// Tables left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude_tables: Vec<String>,
    /// Prefixes of collections left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude_prefixes: Vec<String>,
    /// More arguments for the client.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Include the oplog, of mongodb.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub oplog: bool,
    /// Accept any server certificate: mssql, influxdb.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub skip_verify: bool,
    /// File to copy instead of a dump over the network, of redis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy_from: Option<String>,
    /// Shell text before this dump.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_script: Option<String>,
    /// Shell text after this dump.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_script: Option<String>,
}

/// One place for the archive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Storage<C> {
    /// Name of the Storage.
    pub name: String,
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
    /// A bucket of the S3 family.
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

/// A bucket of the S3 family.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct S3<C> {
    /// The type as the Storage names it: s3, minio, oss, ….
    pub family: String,
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

/// Compression of the archive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Compress {
    /// Codec.
    pub codec: Codec,
    /// Level; none means the codec's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<i32>,
}

/// Codecs of the archive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Codec {
    /// None.
    #[default]
    Tar,
    /// gzip.
    Gzip,
    /// compress, the .Z of old.
    Compress,
    /// bzip2.
    Bzip2,
    /// lzip.
    Lzip,
    /// LZMA alone.
    Lzma,
    /// lzop.
    Lzop,
    /// xz.
    Xz,
    /// Zstandard.
    Zstd,
}

impl Codec {
    /// End of the archive's name.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Tar => ".tar",
            Self::Gzip => ".tar.gz",
            Self::Compress => ".tar.Z",
            Self::Bzip2 => ".tar.bz2",
            Self::Lzip => ".tar.lz",
            Self::Lzma => ".tar.lzma",
            Self::Lzop => ".tar.lzo",
            Self::Xz => ".tar.xz",
            Self::Zstd => ".tar.zst",
        }
    }
}

/// Encryption of the archive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "type")]
pub enum Encrypt<C> {
    /// What `openssl enc -d -CIPHER -pbkdf2 -iter N -md MD` opens.
    #[serde(rename_all = "camelCase")]
    Openssl {
        /// Password.
        password: C,
        /// Key size in bits: 128, 192 or 256, CBC.
        bits: u16,
        /// PBKDF2 iterations.
        iterations: u32,
        /// Digest of PBKDF2: sha256, sha512 or sha1.
        digest: String,
        /// base64 lines instead of bytes.
        base64: bool,
    },
    /// What `age -d` opens.
    #[serde(rename_all = "camelCase")]
    Age {
        /// Public keys.
        recipients: Vec<String>,
        /// Public keys, one a line.
        #[serde(default = "none", skip_serializing_if = "Option::is_none")]
        recipients_file: Option<C>,
    },
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
            before_script: self.before_script,
            after_script: self.after_script,
        }
    }
}

impl<C> Database<C> {
    fn map<D>(self, f: &mut impl FnMut(&str, C) -> D) -> Database<D> {
        let mut at = |field: &str, value: Option<C>| {
            value.map(|v| f(&format!("databases/{}/{field}", self.name), v))
        };
        Database {
            username: at("username", self.username),
            password: at("password", self.password),
            uri: at("uri", self.uri),
            name: self.name,
            engine: self.engine,
            host: self.host,
            port: self.port,
            socket: self.socket,
            database: self.database,
            org: self.org,
            auth_db: self.auth_db,
            tables: self.tables,
            exclude_tables: self.exclude_tables,
            exclude_prefixes: self.exclude_prefixes,
            args: self.args,
            oplog: self.oplog,
            skip_verify: self.skip_verify,
            copy_from: self.copy_from,
            before_script: self.before_script,
            after_script: self.after_script,
        }
    }
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
                family: s3.family,
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
            } => Place::Azure {
                account,
                container,
                tenant_id,
                client_id,
                client_secret: at("client-secret", client_secret),
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
            keep: self.keep,
            timeout: self.timeout,
            path: self.path,
            place,
        }
    }
}

impl<C> Encrypt<C> {
    fn map<D>(self, f: &mut impl FnMut(&str, C) -> D) -> Encrypt<D> {
        match self {
            Self::Openssl {
                password,
                bits,
                iterations,
                digest,
                base64,
            } => Encrypt::Openssl {
                password: f("encrypt/password", password),
                bits,
                iterations,
                digest,
                base64,
            },
            Self::Age {
                recipients,
                recipients_file,
            } => Encrypt::Age {
                recipients,
                recipients_file: recipients_file.map(|r| f("encrypt/recipients", r)),
            },
        }
    }
}
