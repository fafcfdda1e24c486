//! The definitions in deploy/crds, docs/fields.md and docs/reasons.md are what the types say. Refresh: `make manifests`.

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

#[test]
fn pages_made_from_the_types_are_current() {
    use crds::{run, status};
    let fields = crds::generate::fields();
    for (page, text) in [
        ("fields.md", &fields),
        ("reasons.md", &crds::generate::reasons()),
    ] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../docs")
            .join(page);
        snapbox::assert_data_eq!(
            text.clone(),
            snapbox::Data::read_from(&path, Some(snapbox::data::DataFormat::Text)).raw()
        );
    }
    // Limits that the texts name.
    for (text, most) in [
        ("most recent runs, newest first, at most", status::MAX_RUNS),
        (
            "most recent requests, newest first, at most",
            status::MAX_REQUESTS,
        ),
        (
            "at which no run was started, newest first, at most",
            status::MAX_MISSED,
        ),
        (
            "sent by a Job of their own, oldest first, at most",
            status::MAX_NOTICES,
        ),
        (
            "watch this object too, at most",
            status::MAX_OTHER_CONTROLLERS,
        ),
        ("Artefacts that were stored, at most", run::MAX_ARTEFACTS),
        (
            "Cause of a failure and what helps, at most",
            run::MAX_MESSAGE,
        ),
    ] {
        let text = format!("{text} {most}");
        assert!(fields.contains(&text), "{text}");
    }
    assert!(
        !fields.contains("[`"),
        "a link of rustdoc is no text for users"
    );
}

/// Fields whose types are Kubernetes' own: the API server checks the pods they end in.
const FOREIGN: [&str; 12] = [
    "affinity",
    "backupEnvs",
    "containers",
    "env",
    "envFrom",
    "podSecurityContext",
    "resources",
    "securityContext",
    "tolerations",
    "volume",
    "volumeMounts",
    "volumes",
];

/// Every integer of a schema below `path`, with its bounds.
fn integers(
    path: &str,
    schema: &serde_json::Value,
    found: &mut Vec<(String, Option<f64>, Option<f64>)>,
) {
    if schema["type"] == "integer" {
        let bound = |name: &str| schema[name].as_f64();
        found.push((path.to_owned(), bound("minimum"), bound("maximum")));
    }
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        if !FOREIGN.contains(&name.as_str()) {
            integers(&format!("{path}.{name}"), inner, found);
        }
    }
    integers_of_items(path, &schema["items"], found);
}

fn integers_of_items(
    path: &str,
    items: &serde_json::Value,
    found: &mut Vec<(String, Option<f64>, Option<f64>)>,
) {
    if items.is_object() {
        integers(&format!("{path}[]"), items, found);
    }
}

#[test]
fn o1_every_integer_of_every_kind_has_a_least_and_a_most() {
    let mut found = vec![];
    for (file, crd) in crds::generate::all() {
        let crd = serde_json::to_value(&crd).unwrap();
        for version in crd["spec"]["versions"].as_array().unwrap() {
            let mut schema = version["schema"]["openAPIV3Schema"].clone();
            // The operator's own words; it counts without overflow whatever stands there.
            schema["properties"]
                .as_object_mut()
                .unwrap()
                .remove("status");
            integers(&file, &schema, &mut found);
        }
    }
    assert!(found.len() > 60, "{}", found.len());
    // No bound lets a sum of a few of them and a time leave the calendar.
    let century = crds::bounds::MAX_SECONDS as f64;
    for (path, least, most) in found {
        let (least, most) = (least.expect(&path), most.expect(&path));
        assert!(
            -century <= least && least < most && most <= century,
            "{path}: {least} to {most}"
        );
    }
}

#[test]
fn o1_what_is_read_of_a_stored_number_is_within_its_bounds() {
    use crds::bounds;
    for number in [i64::MIN, -1, 0, 1, 8_208_468_115_199, i64::MAX] {
        assert!((0..=bounds::MAX_SECONDS).contains(&bounds::seconds(number)));
        assert!((1..=bounds::MAX_STARTUP_SECONDS).contains(&bounds::startup_seconds(number)));
        assert!((0..=bounds::MAX_JITTER_SECONDS).contains(&bounds::jitter_seconds(number)));
        assert!((0..=bounds::MAX_KEPT_JOBS).contains(&bounds::kept_jobs(number)));
    }
    assert_eq!(bounds::kept_jobs(3), 3);
    assert_eq!(bounds::seconds(600), 600);
}
