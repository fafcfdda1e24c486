//! Typed fields as the runner gets them: parts of its [`RunSpec`](crate::run_spec::RunSpec), and the
//! volumes and mounts of its pod that they name. Secrets are files of one projected volume, so that
//! whoever builds the pod reads no Secret.
//!
//! Operator and plugin share this: the pod of a run, a restore and a download see the same files.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    DownwardAPIProjection, DownwardAPIVolumeFile, EmptyDirVolumeSource, KeyToPath,
    ObjectFieldSelector, ProjectedVolumeSource, SecretProjection, Volume, VolumeMount,
    VolumeProjection,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use crate::labels::PREFIX;
use crate::mysql_backup::MysqlSource;
use crate::parts::{
    CredentialsRef, Decryption, Destination, Encryption, Notification, S3Destination, SecretKeyRef,
    Tls, VolumeDestination,
};
use crate::plan::{Credential, Place, Storage, VOLUMES_DIR};
use crate::run_spec::{RunDestination, RunNotification, RunS3, RunSource};

/// Where the files of Secrets are.
const SECRETS_MOUNT: &str = "/run/secrets/backup";
/// Name of their volume.
const SECRETS_VOLUME: &str = "backup-secrets";
/// Where a volume destination is mounted.
pub const DESTINATION_MOUNT: &str = "/backup";
/// Name of a volume destination's volume.
const DESTINATION_VOLUME: &str = "backup-destination";
/// Where the volume of a restore is mounted.
const TARGET_MOUNT: &str = "/restore";
/// Name of that volume.
const TARGET_VOLUME: &str = "restore-target";
/// Memory for option files of the database client.
const SCRATCH_MOUNT: &str = "/run/backup";
/// Name of that volume.
const SCRATCH_VOLUME: &str = "backup-scratch";
/// Owner may read; with fsGroup the kubelet adds the group.
const MODE: i32 = 0o400;

/// Collects volumes and mounts while typed fields are translated.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mounts {
    volumes: Vec<Volume>,
    mounts: Vec<VolumeMount>,
    secrets: Vec<VolumeProjection>,
    inline: BTreeMap<String, String>,
    scratch: bool,
}

impl Mounts {
    /// Adds a key of a Secret; returns the path of its file.
    fn add(&mut self, secret: &str, key: &str, path: &str) -> String {
        self.project(secret, key, path, None)
    }

    /// As [`Mounts::add`]; the pod starts without a key that is `optional`.
    fn project(&mut self, secret: &str, key: &str, path: &str, optional: Option<bool>) -> String {
        self.secrets.push(VolumeProjection {
            secret: Some(SecretProjection {
                name: secret.to_owned(),
                items: Some(vec![KeyToPath {
                    key: key.to_owned(),
                    path: path.to_owned(),
                    mode: None,
                }]),
                optional,
            }),
            ..VolumeProjection::default()
        });
        format!("{SECRETS_MOUNT}/{path}")
    }

    /// Adds a value that the user wrote in plain text: it goes through an annotation of the pod, where it
    /// is as visible as it was, and neither environment nor arguments hold it.
    fn literal(&mut self, text: String, path: &str) -> String {
        let annotation = format!("{PREFIX}inline-{}", self.inline.len());
        self.secrets.push(VolumeProjection {
            downward_api: Some(DownwardAPIProjection {
                items: Some(vec![DownwardAPIVolumeFile {
                    path: path.to_owned(),
                    field_ref: Some(ObjectFieldSelector {
                        field_path: format!("metadata.annotations['{annotation}']"),
                        api_version: None,
                    }),
                    ..DownwardAPIVolumeFile::default()
                }]),
            }),
            ..VolumeProjection::default()
        });
        self.inline.insert(annotation, text);
        format!("{SECRETS_MOUNT}/{path}")
    }

    fn add_ref(&mut self, key: &SecretKeyRef, path: &str) -> String {
        self.add(&key.name, &key.key, path)
    }

    /// User name and password of a server.
    fn credentials(&mut self, run: &mut RunSource, credentials: &CredentialsRef) {
        let mut file = |key: &Option<String>, default: &str| {
            let key = key.as_deref().unwrap_or(default);
            Some(self.add(&credentials.name, key, &format!("source/{default}")))
        };
        run.username_file = file(&credentials.username_key, "username");
        run.password_file = file(&credentials.password_key, "password");
    }

    fn tls(&mut self, run: &mut RunSource, tls: &Tls) {
        run.tls_mode = Some(format!("{:?}", tls.mode));
        let key = tls.ca_secret_key_ref.as_ref();
        run.ca_file = key.map(|key| self.add_ref(key, "source/ca.crt"));
    }

    /// `spec.source` of a backup.
    pub fn source(&mut self, source: &MysqlSource) -> RunSource {
        let mut run = RunSource {
            host: source.host.clone(),
            port: source.port,
            socket: source.socket.clone(),
            databases: source.databases.clone(),
            exclude_tables: source.exclude_tables.clone(),
            extra_args: source.extra_args.clone(),
            engine: source.engine,
            accounts: source.accounts == Some(true),
            sessions: source.sessions,
            ..RunSource::default()
        };
        if let Some(credentials) = &source.credentials_secret_ref {
            self.credentials(&mut run, credentials);
        }
        if let Some(tls) = &source.tls {
            self.tls(&mut run, tls);
        }
        run
    }

    /// `spec.to` of a restore: the runner's source is the server it speaks to; `None` where the dump goes
    /// onto a volume.
    pub fn target(&mut self, target: &crate::restore::RestoreTarget) -> Option<RunSource> {
        let credentials = target.credentials_secret_ref.as_ref()?;
        let mut run = RunSource {
            host: target.host.clone(),
            port: target.port,
            socket: target.socket.clone(),
            sessions: target.sessions,
            ..RunSource::default()
        };
        self.credentials(&mut run, credentials);
        if let Some(tls) = &target.tls {
            self.tls(&mut run, tls);
        }
        Some(run)
    }

    /// The volume of `spec.to`, mounted; the path of the directory on it that is meant.
    pub fn target_volume(&mut self, volume: &VolumeDestination) -> String {
        self.volume(TARGET_VOLUME, TARGET_MOUNT, volume);
        let below = volume.path.as_deref().unwrap_or("").trim_matches('/');
        format!("{TARGET_MOUNT}/{below}")
            .trim_end_matches('/')
            .to_owned()
    }

    /// A destination: its volume is mounted, its keys are files. What a `storageRef` names goes through
    /// [`Mounts::storage`].
    pub fn destination(&mut self, destination: &Destination) -> RunDestination {
        let path = destination.volume.as_ref().map(|volume| {
            self.volumes.push(volume_of(DESTINATION_VOLUME, volume));
            self.mounts
                .push(mount(DESTINATION_VOLUME, DESTINATION_MOUNT));
            let below = volume.path.as_deref().unwrap_or("").trim_matches('/');
            format!("{DESTINATION_MOUNT}/{below}")
                .trim_end_matches('/')
                .to_owned()
        });
        let s3 = destination.s3.as_ref().map(|s3| self.s3(s3));
        RunDestination {
            path,
            s3,
            storage: None,
        }
    }

    /// A Storage as destination: its volume is mounted where a Backup's run has it, its secrets are
    /// files.
    pub fn storage(&mut self, storage: Storage<Credential>) -> RunDestination {
        let mut storage = storage.map(&mut |path, from| match from {
            Credential::Secret {
                name,
                key,
                optional,
            } => self.project(&name, &key, path, optional.then_some(true)),
            Credential::Literal(text) => self.literal(text, path),
        });
        if let Place::Local {
            volume: Some(volume),
        } = &mut storage.place
        {
            let below = volume.path.as_deref().unwrap_or("").trim_matches('/');
            self.volumes.push(volume_of(DESTINATION_VOLUME, volume));
            self.mounts.push(VolumeMount {
                sub_path: Some(below.to_owned()).filter(|p| !p.is_empty()),
                ..mount(
                    DESTINATION_VOLUME,
                    &format!("{VOLUMES_DIR}/{}", storage.name),
                )
            });
            // The runner needs to know that there is a volume, not which.
            **volume = VolumeDestination::default();
        }
        RunDestination {
            storage: Some(Box::new(storage)),
            ..RunDestination::default()
        }
    }

    fn s3(&mut self, s3: &S3Destination) -> RunS3 {
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
            run.access_key_id_file = Some(self.add(&keys.name, id, "s3/access-key-id"));
            run.secret_access_key_file = Some(self.add(&keys.name, secret, "s3/secret-access-key"));
            run.session_token_file = keys
                .session_token_key
                .as_deref()
                .map(|key| self.add(&keys.name, key, "s3/session-token"));
        }
        run.ca_file = s3
            .ca_secret_key_ref
            .as_ref()
            .map(|key| self.add_ref(key, "s3/ca.crt"));
        run
    }

    /// The file with age recipients, where they come from a Secret.
    pub fn recipients(&mut self, encryption: &Encryption) -> Option<String> {
        let key = encryption
            .age
            .as_ref()?
            .recipients_secret_key_ref
            .as_ref()?;
        Some(self.add_ref(key, "encryption/recipients"))
    }

    /// The file with the age identity: for what opens artefacts, never for a backup.
    pub fn identity(&mut self, decryption: &Decryption) -> Option<String> {
        let age = decryption.age.as_ref()?;
        Some(self.add_ref(&age.identity_secret_key_ref, "decryption/identity"))
    }

    /// `spec.notifications` with their URLs as files. One that is missing must not keep the pod from
    /// starting: the runner says so.
    pub fn notifications(&mut self, notifications: &[Notification]) -> Vec<RunNotification> {
        let each = notifications.iter().enumerate();
        each.map(|(i, entry)| {
            let (key, path) = (&entry.url_secret_key_ref, format!("notify/{i}/url"));
            let headers = entry.headers.iter().enumerate();
            RunNotification {
                header_files: headers
                    .map(|(n, header)| match &header.value_secret_key_ref {
                        Some(key) => {
                            let path = format!("notify/{i}/header-{n}");
                            self.project(&key.name, &key.key, &path, Some(true))
                        }
                        None => String::new(),
                    })
                    .collect(),
                url_file: self.project(&key.name, &key.key, &path, Some(true)),
                entry: entry.clone(),
            }
        })
        .collect()
    }

    /// A volume of the user's choice at `path`.
    pub fn volume(&mut self, name: &str, path: &str, volume: &VolumeDestination) {
        self.volumes.push(volume_of(name, volume));
        self.mounts.push(mount(name, path));
    }

    /// Memory for the option files of the database client.
    pub fn scratch(&mut self) {
        self.scratch = true;
    }

    /// Volumes and mounts that were made elsewhere.
    pub fn extend(&mut self, volumes: Vec<Volume>, mounts: Vec<VolumeMount>) {
        self.volumes.extend(volumes);
        self.mounts.extend(mounts);
    }

    /// Annotations that the pod must have: files of it are made from them.
    pub fn annotations(&self) -> BTreeMap<String, String> {
        self.inline.clone()
    }

    /// All volumes and mounts.
    pub fn finish(mut self) -> (Vec<Volume>, Vec<VolumeMount>) {
        if !self.secrets.is_empty() {
            self.volumes.push(Volume {
                name: SECRETS_VOLUME.to_owned(),
                projected: Some(ProjectedVolumeSource {
                    default_mode: Some(MODE),
                    sources: Some(self.secrets),
                }),
                ..Volume::default()
            });
            self.mounts.push(VolumeMount {
                read_only: Some(true),
                ..mount(SECRETS_VOLUME, SECRETS_MOUNT)
            });
        }
        if self.scratch {
            self.volumes.push(memory());
            self.mounts.push(mount(SCRATCH_VOLUME, SCRATCH_MOUNT));
        }
        (self.volumes, self.mounts)
    }
}

pub(crate) fn volume_of(name: &str, volume: &VolumeDestination) -> Volume {
    Volume {
        name: name.to_owned(),
        persistent_volume_claim: volume.persistent_volume_claim.clone(),
        nfs: volume.nfs.clone(),
        host_path: volume.host_path.clone(),
        csi: volume.csi.clone(),
        ephemeral: volume.ephemeral.clone(),
        empty_dir: volume.empty_dir.clone(),
        ..Volume::default()
    }
}

fn memory() -> Volume {
    Volume {
        name: SCRATCH_VOLUME.to_owned(),
        empty_dir: Some(EmptyDirVolumeSource {
            medium: Some("Memory".to_owned()),
            size_limit: Some(Quantity("64Mi".to_owned())),
        }),
        ..Volume::default()
    }
}

pub(crate) fn mount(name: &str, path: &str) -> VolumeMount {
    VolumeMount {
        name: name.to_owned(),
        mount_path: path.to_owned(),
        ..VolumeMount::default()
    }
}
