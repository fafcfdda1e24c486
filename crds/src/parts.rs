//! Parts of a spec that several kinds share: where to store, how to compress and encrypt, what to
//! keep, how to verify, whom to notify.

use std::collections::BTreeMap;

use bech32::FromBase32;
use k8s_openapi::api::core::v1::{
    CSIVolumeSource, EmptyDirVolumeSource, EphemeralVolumeSource, HostPathVolumeSource,
    LocalObjectReference, NFSVolumeSource, PersistentVolumeClaimVolumeSource, ResourceRequirements,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bounds::{MAX_COUNT, MAX_DURATION_TEXT};

/// What to do when a run is due while another one is active. Allow: start it as well. Forbid: wait until the active run has ended, and start if still within the starting deadline. Replace: stop the active run, then start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ConcurrencyPolicy {
    /// Start beside the others.
    #[default]
    Allow,
    /// Wait; start when the active run has ended, if still within the deadline.
    Forbid,
    /// End the active run, then start.
    Replace,
}

/// When to pull the image: Always, IfNotPresent or Never.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ImagePullPolicy {
    /// Each time.
    Always,
    /// If the node has none.
    IfNotPresent,
    /// Never.
    Never,
}

/// Labels and annotations to add to Job and pod. The prefix batch.isekiro.com/ is not allowed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodMetadata {
    /// Labels to add.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations to add.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

/// A key of a Secret in the object's namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretKeyRef {
    /// Name of the Secret.
    pub name: String,
    /// Key in the Secret.
    pub key: String,
}

/// A Secret with user name and password.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CredentialsRef {
    /// Name of the Secret.
    pub name: String,
    /// Key of the user name in the Secret. Unset means username.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub username_key: Option<String>,
    /// Key of the password in the Secret. Unset means password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_key: Option<String>,
}

/// TLS settings of the connection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Tls {
    /// What is required of the connection.
    #[serde(default)]
    pub mode: TlsMode,
    /// Secret key with the CA certificate, in PEM format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_secret_key_ref: Option<SecretKeyRef>,
}

/// What is required of the connection. Disabled: no TLS. Preferred: TLS if the server offers it. Required: TLS, the certificate is not checked. VerifyCA: TLS, and the certificate must be signed by the CA. VerifyIdentity: also for this host name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum TlsMode {
    /// None is used.
    Disabled,
    /// Used if the server offers it.
    #[default]
    Preferred,
    /// Demanded; the certificate is not checked.
    Required,
    /// Demanded; the certificate must come from the CA.
    VerifyCA,
    /// Demanded; from the CA and for this host name.
    VerifyIdentity,
}

/// Where to store the artefacts. Set exactly one of volume, s3 and storageRef.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Destination {
    /// A volume that is mounted into the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume: Option<VolumeDestination>,
    /// A bucket of S3 or of a compatible service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub s3: Option<S3Destination>,
    /// A gobackup.io Storage in the same namespace, of any type. What is kept there is decided by retention here, not by the Storage's keep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_ref: Option<LocalObjectReference>,
}

/// A volume and where on it to store. Set exactly one source.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VolumeDestination {
    /// Directory on the volume. Unset means the root of the volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// A PersistentVolumeClaim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persistent_volume_claim: Option<PersistentVolumeClaimVolumeSource>,
    /// An NFS export.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nfs: Option<NFSVolumeSource>,
    /// A directory on the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_path: Option<HostPathVolumeSource>,
    /// An inline CSI volume. As a destination, its driver must mount a share that exists independently of the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub csi: Option<CSIVolumeSource>,
    /// A PersistentVolumeClaim that is created for the pod and deleted with it. Allowed in spec.verify.volume only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ephemeral: Option<EphemeralVolumeSource>,
    /// A directory that is deleted with the pod. Allowed in spec.verify.volume only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub empty_dir: Option<EmptyDirVolumeSource>,
}

/// A bucket of S3 or of a compatible service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct S3Destination {
    /// Name of the bucket.
    pub bucket: String,
    /// Prefix of the keys in the bucket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// URL of the S3 service. Unset means AWS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// Region. Unset means us-east-1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// If true, the bucket is part of the URL's path instead of its host name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub force_path_style: Option<bool>,
    /// Secret with the access keys. Unset means the identity of the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials_secret_ref: Option<S3CredentialsRef>,
    /// Secret key with the CA certificate of the endpoint, in PEM format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_secret_key_ref: Option<SecretKeyRef>,
}

/// A Secret with S3 keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct S3CredentialsRef {
    /// Name of the Secret.
    pub name: String,
    /// Key of the access key ID in the Secret. Unset means accessKeyId.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access_key_id_key: Option<String>,
    /// Key of the secret access key in the Secret. Unset means secretAccessKey.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_access_key_key: Option<String>,
    /// Key of a session token in the Secret. Unset means no session token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_token_key: Option<String>,
}

/// How to compress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Compression {
    /// Compression method: zstd, gzip or none.
    #[serde(default, rename = "type")]
    pub type_: CompressionType,
    /// Compression level: 1 to 19 for zstd (unset means 3), 1 to 9 for gzip (unset means 6).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 19))]
    pub level: Option<i32>,
}

/// What makes the dump of a MySQL or MariaDB server. Native: the runner itself, by several connections at once. Client: mysqldump or mariadb-dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Engine {
    /// The runner, by the server's protocol.
    Native,
    /// The server's own dump client.
    Client,
}

impl Engine {
    /// As a spec says it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Native => "Native",
            Self::Client => "Client",
        }
    }
}

/// Compression method: zstd, gzip or none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CompressionType {
    /// Zstandard.
    #[default]
    Zstd,
    /// gzip.
    Gzip,
    /// None.
    None,
}

impl CompressionType {
    /// Name and highest level; the lowest is 1. None of what has no levels.
    pub fn levels(self) -> Option<(&'static str, i32)> {
        match self {
            Self::Zstd => Some(("zstd", 19)),
            Self::Gzip => Some(("gzip", 9)),
            Self::None => None,
        }
    }
}

impl Compression {
    /// What is wrong with the level.
    pub fn fault(&self) -> Option<String> {
        let (name, most) = self.type_.levels()?;
        let level = self.level.filter(|l| !(1..=most).contains(l))?;
        Some(format!("of {name} goes from 1 to {most}, is {level}"))
    }
}

/// How to encrypt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Encryption {
    /// Encrypt with age to public keys. The cluster itself cannot decrypt what it stored unless it is given a private key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age: Option<AgeEncryption>,
}

/// Recipients of age encryption.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgeEncryption {
    /// Public keys, which begin with age1.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recipients: Vec<String>,
    /// Secret key with public keys, one per line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recipients_secret_key_ref: Option<SecretKeyRef>,
}

/// Why a text is not a public key that age encrypts to. The text is not quoted: what it is instead may
/// be a secret.
pub fn recipient_fault(text: &str) -> Option<&'static str> {
    if text.to_ascii_uppercase().starts_with("AGE-SECRET-KEY-") {
        return Some(
            "is a private key; name the public key, which starts with age1 (age-keygen -y prints it)",
        );
    }
    let key = bech32::decode(text)
        .ok()
        .filter(|(prefix, _, variant)| prefix == "age" && *variant == bech32::Variant::Bech32);
    let bytes = key.and_then(|(_, data, _)| Vec::<u8>::from_base32(&data).ok());
    bytes.is_none_or(|bytes| bytes.len() != 32).then_some(
        "is not an age public key, or not a whole one; it starts with age1 and has 62 characters",
    )
}

/// The key that opens what was encrypted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Decryption {
    /// Private key of age.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age: Option<AgeDecryption>,
}

/// Private key of age.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgeDecryption {
    /// Secret key with the private key, which begins with AGE-SECRET-KEY-1.
    pub identity_secret_key_ref: SecretKeyRef,
}

/// Which artefacts to keep: the union of all rules. The newest good one always stays.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Retention {
    /// Number of most recent artefacts to keep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = MAX_COUNT))]
    pub keep_last: Option<i32>,
    /// Keep the newest artefact of each of the last N hours that have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = MAX_COUNT))]
    pub keep_hourly: Option<i32>,
    /// Keep the newest artefact of each of the last N days that have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = MAX_COUNT))]
    pub keep_daily: Option<i32>,
    /// Keep the newest artefact of each of the last N ISO weeks that have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = MAX_COUNT))]
    pub keep_weekly: Option<i32>,
    /// Keep the newest artefact of each of the last N months that have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = MAX_COUNT))]
    pub keep_monthly: Option<i32>,
    /// Keep all artefacts younger than this, a Go duration such as 720h.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_DURATION_TEXT))]
    pub max_age: Option<String>,
    /// File name pattern (with `*` and `?`) of older files without a manifest that retention may also remove.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adopt_pattern: Option<String>,
}

/// How artefacts are verified. Independent of this, each run reads back what it stored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Verify {
    /// How to verify. Checksum: read the artefact again and compare checksums. Restore: load it into a temporary server and compare. Replay, of a MysqlBackup with spec.binlogs: load the backup before it, replay the stored binary logs up to its moment, and compare; where that can't be, Restore.
    #[serde(default)]
    pub mode: VerifyMode,
    /// Verify every Nth successful run. Unset means every run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = MAX_COUNT))]
    pub every: Option<i32>,
    /// Volume for the data of the temporary server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume: Option<VolumeDestination>,
    /// CPU and memory requests and limits of the container with the temporary server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceRequirements>,
}

/// How to verify. Checksum: read the artefact again and compare checksums. Restore: load it into a temporary server and compare. Replay, of a MysqlBackup with spec.binlogs: load the backup before it, replay the stored binary logs up to its moment, and compare; where that can't be, Restore.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum VerifyMode {
    /// Re-read what is stored.
    #[default]
    Checksum,
    /// Load it into a scratch server and compare.
    Restore,
    /// Load the backup before it into a scratch server, replay the binary logs up to it, and compare.
    Replay,
}

impl VerifyMode {
    /// Its name, as specs, requests and status have it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Checksum => "Checksum",
            Self::Restore => "Restore",
            Self::Replay => "Replay",
        }
    }

    /// The mode of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        [Self::Checksum, Self::Restore, Self::Replay]
            .into_iter()
            .find(|mode| mode.as_str() == name)
    }

    /// True if it takes a scratch server.
    #[must_use]
    pub const fn restores(self) -> bool {
        matches!(self, Self::Restore | Self::Replay)
    }
}

/// Receivers of notifications and the events that each is notified of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Notification {
    /// Kind of receiver.
    #[serde(rename = "type")]
    pub type_: NotificationType,
    /// Secret key with the receiver's URL.
    pub url_secret_key_ref: SecretKeyRef,
    /// Events to notify of. Empty means Failure and Recovery.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_EVENTS))]
    pub events: Vec<NotificationEvent>,
    /// Former name of events. YAML reads it as a boolean unless it is quoted. Set only one of the two.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_EVENTS))]
    pub on: Vec<NotificationEvent>,
    /// HTTP method of a Webhook. POST if unset. For type Webhook alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<WebhookMethod>,
    /// HTTP headers of a Webhook beside its own; one of these names is sent in place of it. For type Webhook alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_HEADERS))]
    pub headers: Vec<WebhookHeader>,
}

/// Most entries of a list of events.
const MAX_EVENTS: usize = 16;
/// Most headers of a webhook.
const MAX_HEADERS: usize = 32;
/// Bytes of a header's name, and of its value where it stands in the object.
const MAX_HEADER_NAME: usize = 128;
const MAX_HEADER_VALUE: usize = 4096;

/// HTTP method of a Webhook.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum WebhookMethod {
    /// The usual one.
    #[default]
    Post,
    /// Replaces what is there.
    Put,
    /// Changes a part of what is there.
    Patch,
    /// Reads; the JSON is sent all the same.
    Get,
    /// Removes what is there.
    Delete,
}

impl WebhookMethod {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Post, Self::Put, Self::Patch, Self::Get, Self::Delete];

    /// The method's name in a request.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Get => "GET",
            Self::Delete => "DELETE",
        }
    }
}

/// One HTTP header of a Webhook. Set value or valueSecretKeyRef. What lets somebody in, such as Authorization, belongs in a Secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WebhookHeader {
    /// Name of the header.
    #[schemars(length(min = 1, max = MAX_HEADER_NAME))]
    pub name: String,
    /// Its value, which everybody sees who may read this object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_HEADER_VALUE))]
    pub value: Option<String>,
    /// Secret key with its value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_secret_key_ref: Option<SecretKeyRef>,
}

impl WebhookHeader {
    /// Headers that the request itself decides.
    const OWN: [&'static str; 5] = [
        "host",
        "content-length",
        "transfer-encoding",
        "connection",
        "user-agent",
    ];

    /// What is wrong with it, with what to do.
    pub fn fault(&self) -> Option<String> {
        let name = &self.name;
        let token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
        if name.is_empty() || !name.chars().all(token) {
            return Some(
                "is no name of a header: write letters, digits and dashes, such as X-Team"
                    .to_owned(),
            );
        }
        if Self::OWN.contains(&name.to_ascii_lowercase().as_str()) {
            return Some(format!("{name} is set by the request itself: remove it"));
        }
        match (&self.value, &self.value_secret_key_ref) {
            (Some(_), Some(_)) => Some("has value and valueSecretKeyRef: keep one".to_owned()),
            (None, None) => Some("has no value: set value or valueSecretKeyRef".to_owned()),
            (Some(value), None) if value.chars().any(char::is_control) => Some(
                "has a value with a line end or another control character: remove that".to_owned(),
            ),
            (Some(_), None) if crate::secret::is_secret_name(name) => Some(format!(
                "{name} may let somebody in, and everybody sees value who may read this object: put it into a Secret and name its key in valueSecretKeyRef"
            )),
            _ => None,
        }
    }
}

/// Kind of receiver. Webhook: JSON by POST. Mail: an smtp:// or smtps:// URL with from and to. Ping: a dead man's switch, GET on success and GET …/fail on failure. The others are chat services.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum NotificationType {
    /// Feishu or Lark group bot.
    Feishu,
    /// Slack incoming webhook.
    Slack,
    /// DingTalk group bot.
    DingTalk,
    /// Discord webhook.
    Discord,
    /// JSON by POST.
    Webhook,
    /// Mail, smtp:// or smtps:// URL with from and to.
    Mail,
    /// Dead-man ping: GET on success, GET …/fail on failure.
    Ping,
}

/// Event to notify of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum NotificationEvent {
    /// A good run.
    Success,
    /// A failed run.
    Failure,
    /// A good run after a failed one.
    Recovery,
    /// No good run for longer than the schedule allows.
    Overdue,
    /// Slots that could not be started: outage, deadline, limits. Not those of a suspension, of
    /// `skip-slots-until` or of `concurrencyPolicy`.
    Missed,
    /// Events of the binary log may be missing: no moment of that span can be restored to.
    Gap,
    /// After a gap: every moment since the newest backup can be restored to again.
    Recovered,
}

impl NotificationEvent {
    /// The text used in names and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Success => "Success",
            Self::Failure => "Failure",
            Self::Recovery => "Recovery",
            Self::Overdue => "Overdue",
            Self::Missed => "Missed",
            Self::Gap => "Gap",
            Self::Recovered => "Recovered",
        }
    }
}

impl Notification {
    /// A receiver that does not say what it wants to hear of.
    pub fn new(type_: NotificationType, url_secret_key_ref: SecretKeyRef) -> Self {
        Self {
            type_,
            url_secret_key_ref,
            events: vec![],
            on: vec![],
            method: None,
            headers: vec![],
        }
    }

    /// What the receiver wants to hear of, under either name; Failure and Recovery where it does
    /// not say.
    pub fn wanted(&self) -> &[NotificationEvent] {
        const DEFAULT: [NotificationEvent; 2] =
            [NotificationEvent::Failure, NotificationEvent::Recovery];
        [self.events.as_slice(), self.on.as_slice()]
            .into_iter()
            .find(|events| !events.is_empty())
            .unwrap_or(&DEFAULT)
    }

    /// True if `events` and `on` are both set and do not say the same.
    pub fn contradicts_itself(&self) -> bool {
        let says = |all: &[NotificationEvent], other: &[NotificationEvent]| {
            other.iter().all(|event| all.contains(event))
        };
        let both = !self.events.is_empty() && !self.on.is_empty();
        let alike = says(&self.events, &self.on) && says(&self.on, &self.events);
        both && !alike
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receiver(fields: &str) -> Notification {
        let text = format!("type: Slack\nurlSecretKeyRef: {{name: a, key: b}}\n{fields}");
        serde_yaml::from_str(&text).unwrap()
    }

    #[test]
    fn o12_events_is_the_name_and_on_is_read_too() {
        use NotificationEvent::{Failure, Missed, Overdue, Recovery, Success};
        let rows: [(&str, &[NotificationEvent]); 6] = [
            ("", &[Failure, Recovery]),
            ("events: [Missed, Overdue]", &[Missed, Overdue]),
            ("'on': [Success]", &[Success]),
            ("events: []\n'on': [Success]", &[Success]),
            ("events: [Failure]\n'on': []", &[Failure]),
            (
                "events: [Failure, Missed]\n'on': [Missed, Failure]",
                &[Failure, Missed],
            ),
        ];
        for (fields, wanted) in rows {
            let found = receiver(fields);
            assert_eq!(found.wanted(), wanted, "{fields}");
            assert!(!found.contradicts_itself(), "{fields}");
        }
        for fields in [
            "events: [Failure]\n'on': [Missed]",
            "events: [Failure]\n'on': [Failure, Missed]",
        ] {
            assert!(receiver(fields).contradicts_itself(), "{fields}");
        }
    }

    #[test]
    fn a_header_is_refused_with_what_is_wrong_and_what_to_do() {
        let fault = |text: &str| serde_yaml::from_str::<WebhookHeader>(text).unwrap().fault();
        let key = "valueSecretKeyRef: {name: a, key: b}";
        for good in [
            "{name: X-Team, value: ops}".to_owned(),
            "{name: x-team, value: ''}".to_owned(),
            "{name: Content-Type, value: text/plain}".to_owned(),
            format!("{{name: Authorization, {key}}}"),
            format!("{{name: X-Api-Key, {key}}}"),
        ] {
            assert_eq!(fault(&good), None, "{good}");
        }
        for (bad, words) in [
            (
                "{name: X-Team}".to_owned(),
                "set value or valueSecretKeyRef",
            ),
            (format!("{{name: X-Team, value: a, {key}}}"), "keep one"),
            (
                "{name: 'X Team', value: a}".to_owned(),
                "no name of a header",
            ),
            ("{name: '', value: a}".to_owned(), "no name of a header"),
            (
                "{name: HOST, value: a}".to_owned(),
                "set by the request itself",
            ),
            (
                "{name: X-Team, value: \"a\\r\\nX-B: c\"}".to_owned(),
                "control character",
            ),
            (
                "{name: Authorization, value: Bearer x}".to_owned(),
                "put it into a Secret",
            ),
            (
                "{name: x-api-key, value: x}".to_owned(),
                "put it into a Secret",
            ),
            (
                "{name: Cookie, value: x}".to_owned(),
                "put it into a Secret",
            ),
        ] {
            let found = fault(&bad).unwrap_or_default();
            assert!(found.contains(words), "{bad}: {found}");
            assert!(!found.contains("Bearer"), "{found}");
        }
    }
}
