//! What must be in the namespace before a pod can start (PURE): Secrets with their keys, ConfigMaps and
//! volume claims. What is optional is not among it.

use std::collections::BTreeSet;

use crds::MysqlBackupSpec;
use crds::backup::JobOptions;
use crds::gobackup::Files;
use crds::mounts::Mounts;
use crds::plan::{Credential, Storage};
use crds::restore::RestoreSpec;
use k8s_openapi::api::core::v1::{EnvFromSource, EnvVar, KeyToPath, PodSpec, Volume};
use serde_json::Value;

/// One thing that is needed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Need {
    /// A volume claim of this name.
    Claim(String),
    /// A ConfigMap of this name, and a key in it.
    ConfigMap(String, Option<String>),
    /// A Secret of this name, and a key in it.
    Secret(String, Option<String>),
}

/// All that is needed, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Needs(pub(crate) BTreeSet<Need>);

impl Needs {
    /// Of a run of a MysqlBackup; `storage` is what its destination names.
    pub(crate) fn of_run(spec: &MysqlBackupSpec, storage: Option<Storage<Credential>>) -> Self {
        let mut mounts = Mounts::default();
        if let Some(source) = &spec.source {
            mounts.source(source);
        }
        if let Some(encryption) = &spec.encryption {
            mounts.recipients(encryption);
        }
        let mut needs = Self::of_stored(spec, storage);
        needs.mounts(mounts);
        needs.environment(&spec.backup_envs, &spec.env_from);
        needs.volumes(&spec.volumes);
        needs
    }

    /// Of what reads the artefacts of a MysqlBackup.
    pub(crate) fn of_stored(spec: &MysqlBackupSpec, storage: Option<Storage<Credential>>) -> Self {
        let mut mounts = Mounts::default();
        match (storage, &spec.destination) {
            (Some(storage), _) => drop(mounts.storage(storage)),
            (None, Some(destination)) => drop(mounts.destination(destination)),
            (None, None) => {}
        }
        let mut needs = Self::default();
        needs.mounts(mounts);
        if spec.destination.is_none() {
            needs.volumes(&spec.volumes);
        }
        needs
    }

    /// Of what works with the archives of a Backup.
    pub(crate) fn of_archives(files: &Files, job: &JobOptions) -> Self {
        let mut needs = Self::of_job(job);
        needs.volumes(&files.volumes);
        needs
    }

    /// Of the pod that a Backup's own settings make, but for what it refers to.
    pub(crate) fn of_job(job: &JobOptions) -> Self {
        let mut needs = Self::default();
        needs.volumes(&job.volumes);
        needs.environment(&job.env, &[]);
        needs
    }

    /// Of a Restore, but for where it restores from, if that is an object's own.
    pub(crate) fn of_restore(spec: &RestoreSpec) -> Self {
        let mut mounts = Mounts::default();
        mounts.target(&spec.to);
        if let Some(volume) = &spec.to.volume {
            mounts.target_volume(volume);
        }
        if let Some(location) = &spec.from.location {
            mounts.destination(&location.destination);
        }
        if let Some(decryption) = &spec.decryption {
            mounts.identity(decryption);
        }
        let mut needs = Self::default();
        needs.mounts(mounts);
        needs.volumes(&spec.volumes);
        needs
    }

    /// Of what runs with this Database or Storage.
    pub(crate) fn of_endpoint(spec: &Value) -> Self {
        let mut needs = Self::default();
        for reference in spec["config"].as_object().into_iter().flatten() {
            let value = reference.1;
            if let (Some(name), Some(key)) = (value["name"].as_str(), value["key"].as_str())
                && value["optional"] != true
            {
                needs.secret(name, Some(key));
            }
        }
        if let Some(claim) = spec["volume"]["persistentVolumeClaim"]["claimName"].as_str() {
            needs.0.insert(Need::Claim(claim.to_owned()));
        }
        needs
    }

    /// Of a pod as it is sent.
    pub(crate) fn of_pod(pod: &PodSpec) -> Self {
        let mut needs = Self::default();
        needs.volumes(pod.volumes.as_deref().unwrap_or_default());
        for container in pod.init_containers.iter().flatten().chain(&pod.containers) {
            let env = container.env.as_deref().unwrap_or_default();
            needs.environment(env, container.env_from.as_deref().unwrap_or_default());
        }
        needs
    }

    /// Adds those of another.
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    fn mounts(&mut self, mounts: Mounts) {
        self.volumes(&mounts.finish().0);
    }

    fn secret(&mut self, name: &str, key: Option<&str>) {
        if !name.is_empty() {
            self.0
                .insert(Need::Secret(name.to_owned(), key.map(str::to_owned)));
        }
    }

    fn config_map(&mut self, name: &str, key: Option<&str>) {
        if !name.is_empty() {
            self.0
                .insert(Need::ConfigMap(name.to_owned(), key.map(str::to_owned)));
        }
    }

    fn volumes(&mut self, volumes: &[Volume]) {
        for volume in volumes {
            if let Some(claim) = &volume.persistent_volume_claim {
                self.0.insert(Need::Claim(claim.claim_name.clone()));
            }
            if let Some(secret) = volume.secret.as_ref().filter(|s| s.optional != Some(true)) {
                let name = secret.secret_name.as_deref().unwrap_or_default();
                each(secret.items.as_deref(), |key| self.secret(name, key));
            }
            if let Some(map) = volume
                .config_map
                .as_ref()
                .filter(|s| s.optional != Some(true))
            {
                each(map.items.as_deref(), |key| self.config_map(&map.name, key));
            }
            let projected = volume.projected.as_ref().and_then(|p| p.sources.as_deref());
            for source in projected.unwrap_or_default() {
                if let Some(secret) = source.secret.as_ref().filter(|s| s.optional != Some(true)) {
                    each(secret.items.as_deref(), |key| {
                        self.secret(&secret.name, key)
                    });
                }
                if let Some(map) = source
                    .config_map
                    .as_ref()
                    .filter(|s| s.optional != Some(true))
                {
                    each(map.items.as_deref(), |key| self.config_map(&map.name, key));
                }
            }
        }
    }

    fn environment(&mut self, variables: &[EnvVar], all_of: &[EnvFromSource]) {
        for from in variables.iter().filter_map(|v| v.value_from.as_ref()) {
            if let Some(key) = from
                .secret_key_ref
                .as_ref()
                .filter(|k| k.optional != Some(true))
            {
                self.secret(&key.name, Some(&key.key));
            }
            if let Some(key) = from
                .config_map_key_ref
                .as_ref()
                .filter(|k| k.optional != Some(true))
            {
                self.config_map(&key.name, Some(&key.key));
            }
        }
        for from in all_of {
            if let Some(secret) = from
                .secret_ref
                .as_ref()
                .filter(|s| s.optional != Some(true))
            {
                self.secret(&secret.name, None);
            }
            if let Some(map) = from
                .config_map_ref
                .as_ref()
                .filter(|s| s.optional != Some(true))
            {
                self.config_map(&map.name, None);
            }
        }
    }
}

/// Each key of the items, or none once where there are no items.
fn each(items: Option<&[KeyToPath]>, mut add: impl FnMut(Option<&str>)) {
    match items.unwrap_or_default() {
        [] => add(None),
        items => items.iter().for_each(|item| add(Some(&item.key))),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use serde_json::json;

    use super::*;

    fn said(needs: &Needs) -> Vec<String> {
        let each = needs.0.iter().map(|need| match need {
            Need::Claim(name) => format!("claim {name}"),
            Need::ConfigMap(name, key) => {
                format!("config {name} {}", key.as_deref().unwrap_or("*"))
            }
            Need::Secret(name, key) => format!("secret {name} {}", key.as_deref().unwrap_or("*")),
        });
        each.collect()
    }

    #[test]
    fn u9_of_a_run() {
        let spec = serde_json::from_value(json!({
            "schedule": "@daily",
            "source": { "credentialsSecretRef": { "name": "db", "passwordKey": "pw" }, "tls": { "mode": "Required", "caSecretKeyRef": { "name": "ca", "key": "ca.crt" } } },
            "destination": { "volume": { "persistentVolumeClaim": { "claimName": "backups" } } },
            "encryption": { "age": { "recipientsSecretKeyRef": { "name": "age", "key": "pub" } } },
            "notifications": [{ "type": "Slack", "urlSecretKeyRef": { "name": "hook", "key": "url" }, "events": ["Failure"] }],
            "backupEnvs": [
                { "name": "A", "valueFrom": { "secretKeyRef": { "name": "env", "key": "a" } } },
                { "name": "B", "valueFrom": { "secretKeyRef": { "name": "env", "key": "b", "optional": true } } },
                { "name": "C", "valueFrom": { "configMapKeyRef": { "name": "map", "key": "c" } } },
            ],
            "envFrom": [{ "secretRef": { "name": "all" } }, { "configMapRef": { "name": "maybe", "optional": true } }],
            "volumes": [{ "name": "v", "persistentVolumeClaim": { "claimName": "more" } }, { "name": "s", "secret": { "secretName": "files" } }],
        }))
        .unwrap();
        assert_eq!(
            said(&Needs::of_run(&spec, None)),
            [
                "claim backups",
                "claim more",
                "config map c",
                "secret age pub",
                "secret all *",
                "secret ca ca.crt",
                "secret db pw",
                "secret db username",
                "secret env a",
                "secret files *",
            ]
        );
        assert_eq!(said(&Needs::of_stored(&spec, None)), ["claim backups"]);
    }

    #[test]
    fn u9_of_a_restore() {
        let spec = serde_json::from_value(json!({
            "from": { "location": { "destination": { "s3": { "bucket": "b", "credentialsSecretRef": { "name": "keys" } } } } },
            "to": { "host": "db", "credentialsSecretRef": { "name": "target" } },
            "decryption": { "age": { "identitySecretKeyRef": { "name": "age", "key": "identity" } } },
        }))
        .unwrap();
        assert_eq!(
            said(&Needs::of_restore(&spec)),
            [
                "secret age identity",
                "secret keys accessKeyId",
                "secret keys secretAccessKey",
                "secret target password",
                "secret target username",
            ]
        );
    }
}
