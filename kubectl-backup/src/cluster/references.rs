//! What a run of an object needs beside it: Secrets, volume claims, Databases and Storages, and what
//! those need in turn. Only whether it is there is asked, with the caller's rights.

use std::collections::{BTreeMap, BTreeSet};

use crds::backup::BackupBody;
use crds::gobackup::ObjectKey;
use crds::gobackup::resolve::wanted;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::Api;
use serde_json::Value;

use super::{Cluster, Object};
use crate::error::Result;
use crate::kind::MYSQL;

/// Something a run needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reference {
    /// `secret shop-db`, `claim backups`, `storage nightly`.
    pub(crate) what: String,
    /// Whether it is there; `None` if the caller may not know.
    pub(crate) there: Option<bool>,
    /// The right the caller lacks.
    pub(crate) right: &'static str,
    /// How to make it.
    pub(crate) remedy: String,
}

/// Secrets and claims below a value, by name.
#[derive(Debug, Default, PartialEq, Eq)]
struct Named {
    secrets: BTreeSet<String>,
    claims: BTreeSet<String>,
}

impl Cluster {
    /// What a run of the object needs, each once; Secrets only if wanted, as few may look for them.
    pub(crate) async fn references(&self, object: &Object, secrets: bool) -> Vec<Reference> {
        let namespace = object.namespace();
        let mut named = Named::default();
        named.add(object.spec());
        let mut found = vec![];
        for (role, name, keys) in roles(object) {
            let what = format!("{role} {name}");
            let mut there = Some(false);
            for key in keys {
                match self.referred(&namespace, &key).await {
                    Ok(Some(spec)) => {
                        named.add(&spec);
                        there = Some(true);
                        break;
                    }
                    Ok(None) => {}
                    Err(_) => there = None,
                }
            }
            found.push(Reference {
                remedy: format!("make it, or correct the name: kubectl -n {namespace} get {role}s"),
                what,
                there,
                right: "get databases and storages",
            });
        }
        for name in named.secrets.iter().filter(|_| secrets) {
            found.push(Reference {
                what: format!("secret {name}"),
                there: self.has_secret(&namespace, name).await.ok(),
                right: "get secrets",
                remedy: format!("kubectl -n {namespace} create secret generic {name} …"),
            });
        }
        for name in &named.claims {
            found.push(Reference {
                what: format!("claim {name}"),
                there: self.has_claim(&namespace, name).await.ok(),
                right: "get persistentvolumeclaims",
                remedy: format!("make it, or name another one: kubectl -n {namespace} get persistentvolumeclaims"),
            });
        }
        found
    }

    /// What a run of the object needs beside Secrets and is not there, in words.
    pub(crate) async fn missing(&self, object: &Object) -> Vec<String> {
        let all = self.references(object, false).await;
        let gone = all.into_iter().filter(|r| r.there == Some(false));
        gone.map(|r| format!("{} does not exist", r.what)).collect()
    }

    /// True if a volume claim of this name exists.
    async fn has_claim(&self, namespace: &str, name: &str) -> Result<bool> {
        let api: Api<PersistentVolumeClaim> = Api::namespaced(self.client.clone(), namespace);
        match api.get_metadata_opt(name).await {
            Ok(found) => Ok(found.is_some()),
            Err(e) => {
                let claims = "persistentvolumeclaims";
                Err(self.explain(&e, Self::ask("get", claims, Some(namespace))))
            }
        }
    }
}

/// The objects of gobackup.io that it refers to: what they are, their name, and every kind that may
/// bear it.
fn roles(object: &Object) -> Vec<(&'static str, String, Vec<ObjectKey>)> {
    let storage = |name: &str| ObjectKey {
        group: crds::group::GROUP,
        kind: "Storage",
        name: name.to_owned(),
    };
    if *object.kind == MYSQL {
        let name = object.spec()["destination"]["storageRef"]["name"].as_str();
        let named = name.map(|name| ("storage", name.to_owned(), vec![storage(name)]));
        return named.into_iter().collect();
    }
    let body: BackupBody = serde_json::from_value(object.object.data.clone()).unwrap_or_default();
    let mut roles: BTreeMap<(&'static str, String), Vec<ObjectKey>> = BTreeMap::new();
    for key in wanted(&body) {
        let role = match key.kind {
            "Database" | "PostgreSQL" => "database",
            "BackupModel" => "backupmodel",
            _ => "storage",
        };
        roles.entry((role, key.name.clone())).or_default().push(key);
    }
    let parts = roles.into_iter();
    parts
        .map(|((role, name), keys)| (role, name, keys))
        .collect()
}

impl Named {
    /// Adds what a spec names: in every `…SecretRef`, `…SecretKeyRef`, `secretName` and `claimName`
    /// below it that is not optional.
    fn add(&mut self, value: &Value) {
        match value {
            Value::Object(fields) => {
                let optional = value["optional"] == true;
                for (key, inner) in fields {
                    let lower = key.to_ascii_lowercase();
                    if lower.ends_with("secretref") || lower.ends_with("secretkeyref") {
                        let needed = inner["optional"] != true;
                        let name = inner["name"].as_str().filter(|_| needed);
                        self.secrets.extend(name.map(str::to_owned));
                    }
                    match (key.as_str(), inner) {
                        ("secretName", Value::String(name)) if !optional => {
                            self.secrets.insert(name.clone());
                        }
                        ("claimName", Value::String(name)) => {
                            self.claims.insert(name.clone());
                        }
                        _ => self.add(inner),
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.add(item)),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use super::*;
    use serde_json::json;

    #[test]
    fn what_a_spec_names() {
        let mut named = Named::default();
        named.add(&json!({
            "source": { "credentialsSecretRef": { "name": "db" } },
            "backupEnvs": [
                { "name": "A", "valueFrom": { "secretKeyRef": { "name": "env", "key": "k" } } },
                { "name": "B", "valueFrom": { "secretKeyRef": { "name": "maybe", "key": "k", "optional": true } } },
            ],
            "volumes": [
                { "name": "a", "secret": { "secretName": "files" } },
                { "name": "b", "secret": { "secretName": "perhaps", "optional": true } },
                { "name": "c", "persistentVolumeClaim": { "claimName": "data" } },
            ],
            "destination": { "volume": { "persistentVolumeClaim": { "claimName": "backups" } } },
        }));
        let names = |set: &BTreeSet<String>| set.iter().cloned().collect::<Vec<_>>();
        assert_eq!(names(&named.secrets), ["db", "env", "files"]);
        assert_eq!(names(&named.claims), ["backups", "data"]);
    }
}
