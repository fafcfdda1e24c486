//! A plan in a pod: every secret as a file of one projected volume, and the volumes of local
//! storages. Operator and plugin share this: a run, a restore and a download see the same files.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    DownwardAPIProjection, DownwardAPIVolumeFile, KeyToPath, ObjectFieldSelector,
    ProjectedVolumeSource, SecretProjection, Volume, VolumeMount, VolumeProjection,
};

use crate::labels::PREFIX;
use crate::mounts::{mount, volume_of};

use crate::plan::{Credential, Place, Plan, SECRETS_DIR, SecretFile, VOLUMES_DIR, with_files};

/// Name of the volume of secrets.
const SECRETS: &str = "gobackup-secrets";
/// Owner may read; with fsGroup the kubelet adds the group.
const MODE: i32 = 0o400;

/// A plan as the runner gets it, and what its pod has to hold for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Files {
    /// The plan with paths for secrets. The runner needs to know that a storage has a volume, not which.
    pub plan: Plan<String>,
    /// Volumes of the pod.
    pub volumes: Vec<Volume>,
    /// Mounts of the container.
    pub mounts: Vec<VolumeMount>,
    /// Annotations of the pod: what the user wrote in plain text is as visible as it was; neither
    /// environment nor arguments hold it, and nobody needs a right to write Secrets.
    pub annotations: BTreeMap<String, String>,
}

/// Mounts what a plan needs.
pub fn files(plan: Plan<Credential>) -> Files {
    let (plan, secrets) = with_files(plan);
    let mut files = Files {
        plan,
        volumes: vec![],
        mounts: vec![],
        annotations: BTreeMap::new(),
    };
    files.secrets(&secrets);
    files.storages();
    files
}

impl Files {
    fn secrets(&mut self, files: &[SecretFile]) {
        if files.is_empty() {
            return;
        }
        let sources = files.iter().map(|file| self.source(file)).collect();
        self.volumes.push(Volume {
            name: SECRETS.to_owned(),
            projected: Some(ProjectedVolumeSource {
                default_mode: Some(MODE),
                sources: Some(sources),
            }),
            ..Volume::default()
        });
        self.mounts.push(VolumeMount {
            read_only: Some(true),
            ..mount(SECRETS, SECRETS_DIR)
        });
    }

    fn source(&mut self, file: &SecretFile) -> VolumeProjection {
        match &file.from {
            Credential::Secret {
                name,
                key,
                optional,
            } => VolumeProjection {
                secret: Some(SecretProjection {
                    name: name.clone(),
                    items: Some(vec![KeyToPath {
                        key: key.clone(),
                        path: file.path.clone(),
                        mode: None,
                    }]),
                    optional: optional.then_some(true),
                }),
                ..VolumeProjection::default()
            },
            Credential::Literal(text) => {
                let annotation = format!("{PREFIX}inline-{}", self.annotations.len());
                let path = format!("metadata.annotations['{annotation}']");
                self.annotations.insert(annotation, text.clone());
                VolumeProjection {
                    downward_api: Some(DownwardAPIProjection {
                        items: Some(vec![DownwardAPIVolumeFile {
                            path: file.path.clone(),
                            field_ref: Some(ObjectFieldSelector {
                                field_path: path,
                                api_version: None,
                            }),
                            ..DownwardAPIVolumeFile::default()
                        }]),
                    }),
                    ..VolumeProjection::default()
                }
            }
        }
    }

    fn storages(&mut self) {
        for storage in &mut self.plan.storages {
            let Place::Local {
                volume: Some(volume),
            } = &mut storage.place
            else {
                continue;
            };
            let volume = std::mem::take(&mut **volume);
            let id = format!("storage-{}", crate::names::short_hash(&[&storage.name], 10));
            self.volumes.push(volume_of(&id, &volume));
            let below = volume.path.as_deref().map(|p| p.trim_matches('/'));
            self.mounts.push(VolumeMount {
                sub_path: below.filter(|p| !p.is_empty()).map(str::to_owned),
                ..mount(&id, &format!("{VOLUMES_DIR}/{}", storage.name))
            });
        }
    }
}
