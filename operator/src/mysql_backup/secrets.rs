//! Secrets of typed fields as files of one projected volume. PURE: the operator reads no Secret.

use crds::MysqlBackupSpec;
use crds::mysql_backup::{S3Destination, SecretKeyRef};
use crds::request::Action;
use crds::run::{RunNotification, RunS3, RunSource};
use k8s_openapi::api::core::v1::{
    KeyToPath, ProjectedVolumeSource, SecretProjection, Volume, VolumeMount, VolumeProjection,
};

/// Where the files are.
const MOUNT: &str = "/run/secrets/backup";
/// Name of the volume.
const VOLUME: &str = "backup-secrets";
/// Owner may read; with fsGroup the kubelet adds the group.
const MODE: i32 = 0o400;

/// Collects keys of Secrets and where their files are.
#[derive(Default)]
pub(super) struct Files {
    sources: Vec<VolumeProjection>,
}

impl Files {
    /// Adds a key; returns the path of its file.
    fn add(&mut self, secret: &str, key: &str, path: &str) -> String {
        self.sources.push(VolumeProjection {
            secret: Some(SecretProjection {
                name: secret.to_owned(),
                items: Some(vec![KeyToPath {
                    key: key.to_owned(),
                    path: path.to_owned(),
                    mode: None,
                }]),
                optional: None,
            }),
            ..VolumeProjection::default()
        });
        format!("{MOUNT}/{path}")
    }

    fn add_ref(&mut self, key: &SecretKeyRef, path: &str) -> String {
        self.add(&key.name, &key.key, path)
    }

    /// The volume and its mount, if anything was added.
    pub(super) fn volume(self) -> Option<(Volume, VolumeMount)> {
        if self.sources.is_empty() {
            return None;
        }
        let volume = Volume {
            name: VOLUME.to_owned(),
            projected: Some(ProjectedVolumeSource {
                default_mode: Some(MODE),
                sources: Some(self.sources),
            }),
            ..Volume::default()
        };
        let mount = VolumeMount {
            name: VOLUME.to_owned(),
            mount_path: MOUNT.to_owned(),
            read_only: Some(true),
            ..VolumeMount::default()
        };
        Some((volume, mount))
    }
}

/// `spec.source` with its secrets as files.
pub(super) fn source(spec: &MysqlBackupSpec, files: &mut Files) -> Option<RunSource> {
    let source = spec.source.as_ref()?;
    let credentials = source.credentials_secret_ref.as_ref();
    let mut credential = |key: Option<&String>, default: &str| {
        credentials.map(|c| {
            files.add(
                &c.name,
                key.map_or(default, String::as_str),
                &format!("source/{default}"),
            )
        })
    };
    let username_file = credential(
        credentials.and_then(|c| c.username_key.as_ref()),
        "username",
    );
    let password_file = credential(
        credentials.and_then(|c| c.password_key.as_ref()),
        "password",
    );
    let tls = source.tls.as_ref();
    Some(RunSource {
        host: source.host.clone(),
        port: source.port,
        socket: source.socket.clone(),
        username_file,
        password_file,
        databases: source.databases.clone(),
        exclude_tables: source.exclude_tables.clone(),
        tls_mode: tls.map(|t| format!("{:?}", t.mode)),
        ca_file: tls
            .and_then(|t| t.ca_secret_key_ref.as_ref())
            .map(|key| files.add_ref(key, "source/ca.crt")),
        extra_args: source.extra_args.clone(),
    })
}

/// `spec.destination.s3` with its secrets as files.
pub(super) fn s3(s3: &S3Destination, files: &mut Files) -> RunS3 {
    let mut run = RunS3 {
        bucket: s3.bucket.clone(),
        prefix: s3.prefix.clone(),
        endpoint: s3.endpoint.clone(),
        region: s3.region.clone(),
        force_path_style: s3.force_path_style.unwrap_or(false),
        ..RunS3::default()
    };
    if let Some(keys) = &s3.credentials_secret_ref {
        let id = keys.access_key_id_key.as_deref().unwrap_or("accessKeyId");
        let secret = keys
            .secret_access_key_key
            .as_deref()
            .unwrap_or("secretAccessKey");
        run.access_key_id_file = Some(files.add(&keys.name, id, "s3/access-key-id"));
        run.secret_access_key_file = Some(files.add(&keys.name, secret, "s3/secret-access-key"));
        run.session_token_file = keys
            .session_token_key
            .as_deref()
            .map(|key| files.add(&keys.name, key, "s3/session-token"));
    }
    run.ca_file = s3
        .ca_secret_key_ref
        .as_ref()
        .map(|key| files.add_ref(key, "s3/ca.crt"));
    run
}

/// The file with age recipients, where they come from a Secret.
pub(super) fn recipients(spec: &MysqlBackupSpec, files: &mut Files) -> Option<String> {
    let age = spec.encryption.as_ref()?.age.as_ref()?;
    let key = age.recipients_secret_key_ref.as_ref()?;
    Some(files.add_ref(key, "encryption/recipients"))
}

/// The file with the age identity; only a verification gets it.
pub(super) fn identity(
    spec: &MysqlBackupSpec,
    action: Action,
    files: &mut Files,
) -> Option<String> {
    let age = spec.decryption.as_ref()?.age.as_ref()?;
    (action == Action::Verify)
        .then(|| files.add_ref(&age.identity_secret_key_ref, "decryption/identity"))
}

/// `spec.notifications` with their URLs as files.
pub(super) fn notifications(spec: &MysqlBackupSpec, files: &mut Files) -> Vec<RunNotification> {
    let each = spec.notifications.iter().enumerate();
    each.map(|(i, entry)| RunNotification {
        url_file: files.add_ref(&entry.url_secret_key_ref, &format!("notify/{i}/url")),
        entry: entry.clone(),
    })
    .collect()
}
