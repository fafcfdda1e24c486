//! Where to store.

use crate::parts::{Destination, VolumeDestination};
use crate::volumes;

use super::Problem;

pub(super) fn destination(path: &str, destination: &Destination, found: &mut Vec<Problem>) {
    let set = [
        destination.volume.is_some(),
        destination.s3.is_some(),
        destination.storage_ref.is_some(),
    ];
    if set.iter().filter(|s| **s).count() != 1 {
        found.push(Problem::new(
            path,
            "needs exactly one of volume, s3, storageRef",
        ));
    }
    if let Some(volume) = &destination.volume {
        volume_destination(&format!("{path}.volume"), volume, found);
    }
    if let Some(s3) = &destination.s3
        && s3.bucket.trim().is_empty()
    {
        found.push(Problem::new(
            format!("{path}.s3.bucket"),
            "is empty; name the bucket",
        ));
    }
}

/// A volume to store on: it outlives the pod.
pub(super) fn volume_destination(path: &str, volume: &VolumeDestination, found: &mut Vec<Problem>) {
    one_source(
        path,
        volume,
        "persistentVolumeClaim, nfs, hostPath, csi",
        found,
    );
    if let Some(why) = volumes::refusal(volume) {
        found.push(Problem::new(path, why));
    }
}

/// A volume of exactly one source, in words one of `wanted`.
pub(super) fn one_source(
    path: &str,
    volume: &VolumeDestination,
    wanted: &str,
    found: &mut Vec<Problem>,
) {
    let set = [
        volume.persistent_volume_claim.is_some(),
        volume.nfs.is_some(),
        volume.host_path.is_some(),
        volume.csi.is_some(),
        volume.ephemeral.is_some(),
        volume.empty_dir.is_some(),
    ];
    if set.iter().filter(|s| **s).count() != 1 {
        found.push(Problem::new(path, format!("needs exactly one of {wanted}")));
    }
    if volume
        .path
        .as_deref()
        .is_some_and(|p| p.split('/').any(|part| part == ".."))
    {
        found.push(Problem::new(
            format!("{path}.path"),
            "must not contain `..`",
        ));
    }
}
