//! The definitions in deploy/crds are what the types say. Refresh: `make manifests`.

use std::path::Path;

#[test]
fn deploy_crds_are_current() {
    for (file, crd) in crds::generate::all() {
        // A bare `on` is a boolean to kubectl and Helm, which read YAML 1.1.
        let yaml = serde_yaml::to_string(&crd).unwrap();
        let yaml = yaml.replace(" on:\n", " \"on\":\n");
        let text = format!("# Generated from crds/src by `make manifests`; do not edit.\n{yaml}");
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../deploy/crds")
            .join(&file);
        snapbox::assert_data_eq!(
            text.clone(),
            snapbox::Data::read_from(&path, Some(snapbox::data::DataFormat::Text)).raw()
        );
        // `kubectl apply` keeps a second copy, as JSON, in annotations of at most 256 KiB in all.
        let json = serde_json::to_string(&crd).unwrap();
        assert!(json.len() < 128 * 1024, "{file} has {} bytes", json.len());
    }
}
