//! The definitions in deploy/crds are what the types say. Refresh: `make manifests`.

use std::path::Path;

#[test]
fn deploy_crds_are_current() {
    for (file, crd) in crds::generate::all() {
        let yaml = serde_yaml::to_string(&crd).unwrap();
        let text = format!("# Generated from crds/src by `make manifests`; do not edit.\n{yaml}");
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../deploy/crds")
            .join(&file);
        snapbox::assert_data_eq!(
            text.clone(),
            snapbox::Data::read_from(&path, Some(snapbox::data::DataFormat::Text)).raw()
        );
        assert!(
            text.len() < 256 * 1024 / 3,
            "{file} has {} bytes",
            text.len()
        );
    }
}
