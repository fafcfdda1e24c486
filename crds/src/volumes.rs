//! Which volumes outlive their pod. What is stored on one that does not is lost with it: one rule for
//! every kind and every place that names a volume to store on.

use std::path::{Component, Path, PathBuf};

use k8s_openapi::api::core::v1::{CSIVolumeSource, Volume, VolumeMount};

use crate::mounts::volume_of;
use crate::parts::VolumeDestination;

/// What to use in place of a volume that goes with the pod.
pub const REMEDY: &str = "use a persistentVolumeClaim that was made beforehand, nfs, or a bucket";

/// CSI drivers whose inline volumes are mounts of a share or bucket that was there before the pod and
/// stays after it, by their own documents. Of any other driver an inline volume is the pod's alone.
const SHARES: [&str; 5] = [
    "blob.csi.azure.com",
    "file.csi.azure.com",
    "gcsfuse.csi.storage.gke.io",
    "nfs.csi.k8s.io",
    "smb.csi.k8s.io",
];

/// What a volume is, if it goes with the pod: `an emptyDir`, `an ephemeral claim`, …
#[must_use]
pub fn goes_with_pod(volume: &Volume) -> Option<&'static str> {
    // A new kind of volume is judged here or this does not compile.
    let Volume {
        name: _,
        aws_elastic_block_store,
        azure_disk,
        azure_file,
        cephfs,
        cinder,
        config_map,
        csi,
        downward_api,
        empty_dir,
        ephemeral,
        fc,
        flex_volume,
        flocker,
        gce_persistent_disk,
        git_repo,
        glusterfs,
        host_path,
        image,
        iscsi,
        nfs,
        persistent_volume_claim,
        photon_persistent_disk,
        portworx_volume,
        projected,
        quobyte,
        rbd,
        scale_io,
        secret,
        storageos,
        vsphere_volume,
    } = volume;
    let gone = [
        (empty_dir.is_some(), "an emptyDir"),
        (ephemeral.is_some(), "a claim made for the pod (ephemeral)"),
        (config_map.is_some(), "a ConfigMap"),
        (secret.is_some(), "a Secret"),
        (downward_api.is_some(), "the downward API"),
        (projected.is_some(), "a projected volume"),
        (image.is_some(), "an image"),
        (git_repo.is_some(), "a clone of a git repository (gitRepo)"),
        (
            csi.as_ref().is_some_and(is_own_volume),
            "a CSI volume made for the pod",
        ),
    ];
    if let Some((_, what)) = gone.into_iter().find(|(is, _)| *is) {
        return Some(what);
    }
    let stays = [
        csi.is_some(),
        aws_elastic_block_store.is_some(),
        azure_disk.is_some(),
        azure_file.is_some(),
        cephfs.is_some(),
        cinder.is_some(),
        fc.is_some(),
        flex_volume.is_some(),
        flocker.is_some(),
        gce_persistent_disk.is_some(),
        glusterfs.is_some(),
        host_path.is_some(),
        iscsi.is_some(),
        nfs.is_some(),
        persistent_volume_claim.is_some(),
        photon_persistent_disk.is_some(),
        portworx_volume.is_some(),
        quobyte.is_some(),
        rbd.is_some(),
        scale_io.is_some(),
        storageos.is_some(),
        vsphere_volume.is_some(),
    ];
    // The API server takes a volume without a source for an emptyDir.
    (!stays.contains(&true)).then_some("an emptyDir")
}

fn is_own_volume(csi: &CSIVolumeSource) -> bool {
    !SHARES.contains(&csi.driver.as_str())
}

/// Why nothing can be stored on this volume, in words with the remedy. One that names no source at all
/// is another mistake.
#[must_use]
pub fn refusal(volume: &VolumeDestination) -> Option<String> {
    let VolumeDestination {
        path: _,
        persistent_volume_claim,
        nfs,
        host_path,
        csi,
        ephemeral,
        empty_dir,
    } = volume;
    let set = [
        persistent_volume_claim.is_some(),
        nfs.is_some(),
        host_path.is_some(),
        csi.is_some(),
        ephemeral.is_some(),
        empty_dir.is_some(),
    ];
    let what = goes_with_pod(&volume_of("", volume)).filter(|_| set.contains(&true))?;
    Some(lost(what))
}

/// Where `path` of a container lies, as far as that can be told from its mounts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ground {
    /// On a volume that stays.
    Volume,
    /// On the container's own disk, which goes with the pod.
    Container,
    /// On a volume of this name that goes with the pod, and why nothing can be stored on it.
    Gone {
        /// Its name.
        volume: String,
        /// Cause and remedy.
        why: String,
    },
}

/// Where `path` lies: on the innermost mount that holds it. A mount of a volume that is not among
/// `volumes` counts as one that stays: that it is missing is told elsewhere.
#[must_use]
pub fn ground(path: &str, volumes: &[Volume], mounts: &[VolumeMount]) -> Ground {
    let path = plain(path);
    let holds = |m: &&VolumeMount| path.starts_with(plain(&m.mount_path));
    let depth = |m: &&VolumeMount| plain(&m.mount_path).components().count();
    let Some(mount) = mounts.iter().filter(holds).max_by_key(depth) else {
        return Ground::Container;
    };
    let volume = volumes.iter().find(|v| v.name == mount.name);
    match volume.and_then(goes_with_pod) {
        Some(what) => Ground::Gone {
            volume: mount.name.clone(),
            why: lost(what),
        },
        None => Ground::Volume,
    }
}

fn lost(what: &str) -> String {
    format!("is {what}, which is gone with the pod and all that was stored there; {REMEDY}")
}

/// `path` without `.`, `..` and doubled slashes.
fn plain(path: &str) -> PathBuf {
    let mut plain = PathBuf::from("/");
    for part in Path::new(path).components() {
        match part {
            Component::Normal(name) => plain.push(name),
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn volume(source: Value) -> Volume {
        let mut all = json!({"name": "data"});
        all.as_object_mut()
            .unwrap()
            .extend(source.as_object().unwrap().clone());
        serde_json::from_value(all).unwrap()
    }

    /// The lifetimes are those of https://kubernetes.io/docs/concepts/storage/ephemeral-volumes/ and
    /// …/volumes/.
    #[test]
    fn t7_volumes_that_go_with_the_pod_are_known() {
        for gone in [
            json!({}),
            json!({"emptyDir": {}}),
            json!({"emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}),
            json!({"emptyDir": {"medium": "HugePages"}}),
            json!({"ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"]}}}}),
            json!({"configMap": {"name": "c"}}),
            json!({"secret": {"secretName": "s"}}),
            json!({"downwardAPI": {"items": []}}),
            json!({"projected": {"sources": []}}),
            json!({"image": {"reference": "x"}}),
            json!({"gitRepo": {"repository": "x"}}),
            json!({"csi": {"driver": "inline.storage.kubernetes.io"}}),
            json!({"csi": {"driver": "secrets-store.csi.k8s.io"}}),
        ] {
            assert!(goes_with_pod(&volume(gone.clone())).is_some(), "{gone}");
        }
        for stays in [
            json!({"persistentVolumeClaim": {"claimName": "c"}}),
            json!({"nfs": {"server": "s", "path": "/"}}),
            json!({"hostPath": {"path": "/srv"}}),
            json!({"csi": {"driver": "nfs.csi.k8s.io"}}),
            json!({"csi": {"driver": "file.csi.azure.com"}}),
            json!({"azureFile": {"secretName": "s", "shareName": "x"}}),
            json!({"cephfs": {"monitors": []}}),
            json!({"iscsi": {"iqn": "i", "lun": 0, "targetPortal": "p"}}),
        ] {
            assert_eq!(goes_with_pod(&volume(stays.clone())), None, "{stays}");
        }
    }

    #[test]
    fn t7_a_path_lies_on_its_innermost_mount() {
        let volumes: Vec<Volume> = [
            json!({"name": "claim", "persistentVolumeClaim": {"claimName": "c"}}),
            json!({"name": "tmp", "emptyDir": {}}),
        ]
        .into_iter()
        .map(|v| serde_json::from_value(v).unwrap())
        .collect();
        let mounts: Vec<VolumeMount> = [
            json!({"name": "claim", "mountPath": "/data"}),
            json!({"name": "tmp", "mountPath": "/data/scratch/"}),
            json!({"name": "claim", "mountPath": "/data/scratch/kept", "subPath": "x"}),
            json!({"name": "typo", "mountPath": "/typo"}),
        ]
        .into_iter()
        .map(|m| serde_json::from_value(m).unwrap())
        .collect();
        let on = |path: &str| ground(path, &volumes, &mounts);
        for path in [
            "/data",
            "/data/",
            "//data/./sql",
            "/data/scratch/kept/a",
            "/typo/x",
            "/data/scratch/..",
        ] {
            assert_eq!(on(path), Ground::Volume, "{path}");
        }
        for path in ["/data/scratch", "/data//scratch/a", "/data/x/../scratch"] {
            let Ground::Gone { volume, why } = on(path) else {
                panic!("{path}")
            };
            assert_eq!(volume, "tmp");
            assert!(
                why.contains("emptyDir") && why.contains("persistentVolumeClaim"),
                "{why}"
            );
        }
        for path in ["/", "/database", "/mnt"] {
            assert_eq!(on(path), Ground::Container, "{path}");
        }
    }
}
