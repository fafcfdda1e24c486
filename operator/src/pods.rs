//! What the pods of runs and restores are made with. PURE.

use crds::mysql_backup::ImagePullPolicy;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// `base` with every field `over` sets.
pub(crate) fn overlay<T: Serialize + DeserializeOwned>(
    base: &T,
    over: Option<&T>,
) -> Result<T, String> {
    let to_value = |v: &T| serde_json::to_value(v).map_err(|e| e.to_string());
    let mut merged = to_value(base)?;
    if let (Some(map), Some(Value::Object(over))) =
        (merged.as_object_mut(), over.map(to_value).transpose()?)
    {
        map.extend(over);
    }
    serde_json::from_value(merged).map_err(|e| e.to_string())
}

/// `None` for an empty list.
pub(crate) fn some<T>(items: Vec<T>) -> Option<Vec<T>> {
    (!items.is_empty()).then_some(items)
}

/// The text of the API.
pub(crate) fn pull_policy(policy: ImagePullPolicy) -> &'static str {
    match policy {
        ImagePullPolicy::Always => "Always",
        ImagePullPolicy::IfNotPresent => "IfNotPresent",
        ImagePullPolicy::Never => "Never",
    }
}
