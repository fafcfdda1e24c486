//! The pod: its volumes, their places, its labels.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Volume, VolumeMount};

use crate::labels::PREFIX;
use crate::parts::PodMetadata;

use super::Problem;

pub(super) fn pod(all: &[Volume], mounts: &[VolumeMount], found: &mut Vec<Problem>) {
    let mut volumes = BTreeSet::new();
    for (i, volume) in all.iter().enumerate() {
        if !volumes.insert(volume.name.as_str()) {
            found.push(Problem::new(
                format!("spec.volumes[{i}].name"),
                format!(
                    "{:?} is defined twice; give each volume its own name",
                    volume.name
                ),
            ));
        }
    }
    for (i, mount) in mounts.iter().enumerate() {
        if !volumes.contains(mount.name.as_str()) {
            found.push(Problem::new(
                format!("spec.volumeMounts[{i}].name"),
                format!(
                    "no volume is named {:?}; add it to spec.volumes or correct the name",
                    mount.name
                ),
            ));
        }
    }
}

pub(super) fn metadata(metadata: Option<&PodMetadata>, found: &mut Vec<Problem>) {
    if let Some(metadata) = metadata {
        for key in metadata.labels.keys().chain(metadata.annotations.keys()) {
            if key.starts_with(PREFIX) {
                found.push(Problem::new(
                    "spec.podMetadata",
                    format!(
                        "{key:?} has the prefix {PREFIX}, which is the operator's; use another key"
                    ),
                ));
            }
        }
    }
}
