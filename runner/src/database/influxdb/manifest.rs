//! A backup of InfluxDB 2: its manifest names buckets and files, each with its size.
//!
//! Source of the format: `backup_restore` of influxdata/influx-cli.

use std::collections::BTreeMap;

use serde_json::Value;

/// What a backup is not, or lacks: of its files by name with their bytes, and the text of its
/// manifest. `bucket` is the one that was asked for; `None` if all were.
pub(crate) fn flaw(
    manifest: &[u8],
    files: &BTreeMap<String, u64>,
    bucket: Option<&str>,
) -> Option<String> {
    let manifest: Value = match serde_json::from_slice(manifest) {
        Ok(manifest) => manifest,
        Err(e) => return Some(format!("has a manifest that is no JSON ({e})")),
    };
    let none = vec![];
    let buckets = manifest["buckets"].as_array().unwrap_or(&none);
    let names = || buckets.iter().filter_map(|b| b["bucketName"].as_str());
    if buckets.is_empty() {
        return Some(match bucket {
            Some(name) => format!(
                "holds no bucket: there is none of the name {name:?}, or the token may not read it; check config.bucket and the token"
            ),
            None => {
                "holds no bucket: check the organisation, and what the token may read".to_owned()
            }
        });
    }
    if let Some(name) = bucket
        && !names().any(|n| n == name)
    {
        return Some(format!("does not hold the bucket {name:?}"));
    }
    let mut named = vec![];
    collect(&manifest, &mut named);
    named
        .into_iter()
        .find_map(|(name, size)| match (files.get(&name), size) {
            (None, _) => Some(format!("lacks its file {name}")),
            (Some(there), Some(size)) if *there != size => {
                Some(format!("holds {there} bytes of {name} instead of {size}"))
            }
            _ => None,
        })
}

/// Every `fileName` with the `size` beside it.
fn collect(value: &Value, found: &mut Vec<(String, Option<u64>)>) {
    match value {
        Value::Object(map) => {
            if let Some(name) = map.get("fileName").and_then(Value::as_str)
                && !name.is_empty()
            {
                found.push((name.to_owned(), map.get("size").and_then(Value::as_u64)));
            }
            map.values().for_each(|v| collect(v, found));
        }
        Value::Array(all) => all.iter().for_each(|v| collect(v, found)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t4_a_backup_of_influxdb_holds_its_buckets_and_their_files() {
        let manifest = br#"{"kv":{"fileName":"x.bolt.gz","size":10,"compression":1},"sql":{"fileName":"","size":0},
            "buckets":[{"bucketName":"metrics","retentionPolicies":[{"shardGroups":[{"shards":[{"id":1,"fileName":"x.1.tar.gz","size":20}]}]}]}]}"#;
        let files =
            |list: &[(&str, u64)]| list.iter().map(|(n, s)| ((*n).to_owned(), *s)).collect();
        let whole: BTreeMap<String, u64> =
            files(&[("x.bolt.gz", 10), ("x.1.tar.gz", 20), ("x.manifest", 9)]);
        assert_eq!(flaw(manifest, &whole, None), None);
        assert_eq!(flaw(manifest, &whole, Some("metrics")), None);
        let says = |found: Option<String>, word: &str| found.is_some_and(|f| f.contains(word));
        assert!(says(flaw(manifest, &whole, Some("typo")), "\"typo\""));
        assert!(says(
            flaw(br#"{"kv":{},"buckets":[]}"#, &whole, Some("typo")),
            "no bucket"
        ));
        assert!(says(flaw(br#"{"buckets":[]}"#, &whole, None), "no bucket"));
        assert!(says(flaw(&manifest[..90], &whole, None), "no JSON"));
        assert!(says(
            flaw(manifest, &files(&[("x.bolt.gz", 10)]), None),
            "lacks its file x.1.tar.gz"
        ));
        assert!(says(
            flaw(
                manifest,
                &files(&[("x.bolt.gz", 10), ("x.1.tar.gz", 19)]),
                None
            ),
            "19 bytes"
        ));
    }
}
