//! Parts of a spec that several kinds share: where to store, how to compress and encrypt, what to
//! keep, how to verify, whom to notify.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    CSIVolumeSource, EmptyDirVolumeSource, EphemeralVolumeSource, HostPathVolumeSource,
    LocalObjectReference, NFSVolumeSource, PersistentVolumeClaimVolumeSource, ResourceRequirements,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bounds::{MAX_COUNT, MAX_DURATION_TEXT};

/// What to do when a slot comes due while a run is active.
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

/// When an image is pulled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ImagePullPolicy {
    /// Each time.
    Always,
    /// If the node has none.
    IfNotPresent,
    /// Never.
    Never,
}

/// Labels and annotations for Job and pod; the prefix batch.isekiro.com/ is refused.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodMetadata {
    /// Labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

/// A key of a Secret in the object's namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretKeyRef {
    /// Name of the Secret.
    pub name: String,
    /// Key in it.
    pub key: String,
}

/// A Secret with user name and password.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CredentialsRef {
    /// Name of the Secret.
    pub name: String,
    /// Key of the user name. Unset means username.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub username_key: Option<String>,
    /// Key of the password. Unset means password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_key: Option<String>,
}

/// Transport security to the server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Tls {
    /// How much is demanded.
    #[serde(default)]
    pub mode: TlsMode,
    /// CA certificate, PEM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_secret_key_ref: Option<SecretKeyRef>,
}

/// How much transport security is demanded.
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

/// Where to store: exactly one of volume, s3, storageRef.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Destination {
    /// A volume of the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume: Option<VolumeDestination>,
    /// An S3 bucket, or a compatible one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub s3: Option<S3Destination>,
    /// A gobackup.io Storage in the same namespace, of any type. What is kept there is up to retention.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_ref: Option<LocalObjectReference>,
}

/// A volume to store on: exactly one source.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VolumeDestination {
    /// Directory on the volume. Unset means its root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// A claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persistent_volume_claim: Option<PersistentVolumeClaimVolumeSource>,
    /// An NFS export.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nfs: Option<NFSVolumeSource>,
    /// A directory of the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_path: Option<HostPathVolumeSource>,
    /// A CSI volume. To store on: of a driver that mounts a share which is there before the pod and after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub csi: Option<CSIVolumeSource>,
    /// A claim made for the pod, and gone with it: for spec.verify.volume alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ephemeral: Option<EphemeralVolumeSource>,
    /// A directory that is gone with the pod: for spec.verify.volume alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub empty_dir: Option<EmptyDirVolumeSource>,
}

/// An S3 bucket, or a compatible one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct S3Destination {
    /// Bucket.
    pub bucket: String,
    /// Key prefix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// URL of the service. Unset means AWS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// Region. Unset means us-east-1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// Bucket in the path instead of the host name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub force_path_style: Option<bool>,
    /// Secret with the keys. Unset means the pod's own identity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials_secret_ref: Option<S3CredentialsRef>,
    /// CA certificate of the endpoint, PEM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_secret_key_ref: Option<SecretKeyRef>,
}

/// A Secret with S3 keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct S3CredentialsRef {
    /// Name of the Secret.
    pub name: String,
    /// Key of the access key id. Unset means accessKeyId.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access_key_id_key: Option<String>,
    /// Key of the secret access key. Unset means secretAccessKey.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_access_key_key: Option<String>,
    /// Key of a session token. Unset means none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_token_key: Option<String>,
}

/// How to compress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Compression {
    /// Codec.
    #[serde(default, rename = "type")]
    pub type_: CompressionType,
    /// Level: zstd 1 to 19 (3), gzip 1 to 9 (6).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 19))]
    pub level: Option<i32>,
}

/// Codecs.
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

/// How to encrypt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Encryption {
    /// age, to public keys: the cluster can't open what it stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age: Option<AgeEncryption>,
}

/// Recipients of age encryption.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgeEncryption {
    /// Public keys, age1….
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recipients: Vec<String>,
    /// Secret key that holds public keys, one a line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recipients_secret_key_ref: Option<SecretKeyRef>,
}

/// The key that opens what was encrypted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Decryption {
    /// age identity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age: Option<AgeDecryption>,
}

/// Identity of age decryption.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgeDecryption {
    /// Secret key that holds the identity, AGE-SECRET-KEY-1….
    pub identity_secret_key_ref: SecretKeyRef,
}

/// Which artefacts to keep: the union of all rules. The newest good one always stays.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Retention {
    /// The newest so many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = MAX_COUNT))]
    pub keep_last: Option<i32>,
    /// The newest of each of so many hours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = MAX_COUNT))]
    pub keep_hourly: Option<i32>,
    /// The newest of each of so many days.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = MAX_COUNT))]
    pub keep_daily: Option<i32>,
    /// The newest of each of so many ISO weeks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = MAX_COUNT))]
    pub keep_weekly: Option<i32>,
    /// The newest of each of so many months.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = MAX_COUNT))]
    pub keep_monthly: Option<i32>,
    /// All younger than this, a Go duration such as 720h.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_DURATION_TEXT))]
    pub max_age: Option<String>,
    /// File name pattern (`*` and `?`) of older artefacts without a manifest that retention may also remove.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adopt_pattern: Option<String>,
}

/// How artefacts are verified beyond the read back of each run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Verify {
    /// Checksum: re-read what is stored. Restore: load it into a scratch server and compare.
    #[serde(default)]
    pub mode: VerifyMode,
    /// Every so many good runs. Unset means each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = MAX_COUNT))]
    pub every: Option<i32>,
    /// Volume of the scratch server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume: Option<VolumeDestination>,
    /// Resources of the scratch server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceRequirements>,
}

/// Ways to verify.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum VerifyMode {
    /// Re-read what is stored.
    #[default]
    Checksum,
    /// Load it into a scratch server and compare.
    Restore,
}

/// Whom to tell of what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Notification {
    /// Protocol of the receiver.
    #[serde(rename = "type")]
    pub type_: NotificationType,
    /// Secret key that holds the URL.
    pub url_secret_key_ref: SecretKeyRef,
    /// What to tell of. Empty means Failure and Recovery.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_EVENTS))]
    pub events: Vec<NotificationEvent>,
    /// The former name of events, which YAML reads as a boolean unless it is quoted. Set one of the two.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_EVENTS))]
    pub on: Vec<NotificationEvent>,
}

/// Most entries of a list of events.
const MAX_EVENTS: usize = 16;

/// Protocols of receivers.
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

/// What to tell of.
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
}
