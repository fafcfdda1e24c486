//! Which objects of gobackup.io an object names in its own namespace (PURE).

use std::collections::BTreeMap;

use crds::gobackup::ObjectKey;
use crds::group::GROUP;
use serde_json::Value;

/// What an object of any kind refers to: of each reference the objects that would do, the one to make
/// first.
pub(crate) fn references(object: &Value) -> Vec<Vec<ObjectKey>> {
    let spec = &object["spec"];
    let storages = [
        &spec["destination"]["storageRef"]["name"],
        &spec["from"]["location"]["destination"]["storageRef"]["name"],
    ];
    let storages = storages.into_iter().filter_map(Value::as_str);
    let mut found: Vec<Vec<ObjectKey>> = storages
        .map(|name| {
            vec![ObjectKey {
                group: GROUP,
                kind: "Storage",
                name: name.to_owned(),
            }]
        })
        .collect();
    let mut groups: BTreeMap<(&str, String), Vec<ObjectKey>> = BTreeMap::new();
    if let Ok(body) = serde_json::from_value(object.clone()) {
        for key in crds::gobackup::wanted(&body) {
            let today = match key.kind {
                "PostgreSQL" => "Database",
                "S3" => "Storage",
                kind => kind,
            };
            let group = groups.entry((today, key.name.clone())).or_default();
            let at = if key.kind == today { 0 } else { group.len() };
            group.insert(at, key);
        }
    }
    found.extend(groups.into_values());
    found
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use super::*;
    use serde_json::json;

    #[test]
    fn u10_a_backup_names_databases_and_storages_of_any_generation() {
        let backup = json!({ "spec": {
            "databaseRefs": [{ "name": "a" }],
            "storageRefs": [{ "name": "a" }, { "name": "b" }],
        }});
        let kinds = |object: &Value| -> Vec<(&str, String)> {
            let found = references(object);
            found
                .iter()
                .map(|k| (k[0].kind, k[0].name.clone()))
                .collect()
        };
        assert_eq!(
            kinds(&backup),
            [
                ("Database", "a".to_owned()),
                ("Storage", "a".to_owned()),
                ("Storage", "b".to_owned()),
            ]
        );
        assert!(references(&backup).iter().all(|some| some.len() > 1));
        let on_storage = json!({ "spec": { "destination": { "storageRef": { "name": "s" } } } });
        assert_eq!(kinds(&on_storage), [("Storage", "s".to_owned())]);
        assert_eq!(
            references(&json!({ "spec": { "schedule": "@daily" } })).len(),
            0
        );
    }
}
