//! Requests in annotations, as admission sees them: which are new, and which nobody will read.

use crds::labels::REQUEST_PREFIX;
use crds::request::MAX_VALUE;
use crds::validate::Problem;
use kube::core::DynamicObject;

/// Requests of `object` that `old` did not hold: key and value.
pub(super) fn fresh<'a>(
    object: &'a DynamicObject,
    old: Option<&'a DynamicObject>,
) -> impl Iterator<Item = (&'a str, &'a str)> {
    let before = old.and_then(|o| o.metadata.annotations.as_ref());
    let all = object.metadata.annotations.iter().flatten();
    all.filter(|(key, _)| key.starts_with(REQUEST_PREFIX))
        .filter(move |(key, value)| before.and_then(|b| b.get(*key)) != Some(*value))
        .map(|(key, value)| (key.as_str(), value.as_str()))
}

/// New requests that are too long to be read.
pub(super) fn too_long(object: &DynamicObject, old: Option<&DynamicObject>) -> Vec<Problem> {
    fresh(object, old)
        .filter(|(_, value)| value.len() > MAX_VALUE)
        .map(|(key, value)| Problem {
            path: format!("metadata.annotations[{key}]"),
            message: crds::request::too_long(value.len()),
        })
        .collect()
}
