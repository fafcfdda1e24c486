//! Whether a Secret, a ConfigMap or a volume claim is there, and which keys it has. Values are never kept.

use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Secret};
use kube::Api;

use super::Cluster;
use super::fail::is_missing_object;

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Keys {
    /// It is there, with these keys; none where they were not asked for.
    Present(Option<Vec<String>>),
    /// It is not there.
    Absent,
    /// The caller may not read it.
    Denied,
    /// The server did not say.
    Unknown,
}

fn found<T>(answer: Result<T, kube::Error>, keys: impl FnOnce(T) -> Option<Vec<String>>) -> Keys {
    match answer {
        Ok(object) => Keys::Present(keys(object)),
        Err(e) if is_missing_object(&e) => Keys::Absent,
        Err(kube::Error::Api(status)) if status.code == 403 => Keys::Denied,
        Err(_) => Keys::Unknown,
    }
}

impl Cluster {
    /// A Secret; its metadata alone, unless its `keys` matter.
    pub(crate) async fn secret_keys(&self, namespace: &str, name: &str, keys: bool) -> Keys {
        let api: Api<Secret> = Api::namespaced(self.client.clone(), namespace);
        if !keys {
            return found(api.get_metadata(name).await, |_| None);
        }
        found(api.get(name).await, |secret| {
            Some(
                secret
                    .data
                    .into_iter()
                    .flatten()
                    .map(|(key, _)| key)
                    .collect(),
            )
        })
    }

    /// A ConfigMap.
    pub(crate) async fn config_map_keys(&self, namespace: &str, name: &str) -> Keys {
        let api: Api<ConfigMap> = Api::namespaced(self.client.clone(), namespace);
        found(api.get(name).await, |map| {
            let binary = map.binary_data.into_iter().flatten().map(|(key, _)| key);
            let data = map.data.into_iter().flatten().map(|(key, _)| key);
            Some(data.chain(binary).collect())
        })
    }

    /// A volume claim.
    pub(crate) async fn claim(&self, namespace: &str, name: &str) -> Keys {
        let api: Api<PersistentVolumeClaim> = Api::namespaced(self.client.clone(), namespace);
        found(api.get_metadata(name).await, |_| None)
    }
}
