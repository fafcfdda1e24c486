//! Objects that several tests need.

use serde_json::Value;

use crate::cluster;

/// An image whose container ends at once and well with the argument `--help`: this product's
/// operator.
pub fn quick_image() -> &'static str {
    &cluster().operator_image
}

/// An object whose runs end at once: what is tried here is which of them start.
pub fn quick(name: &str, schedule: &str, extra: &str) -> String {
    format!(
        "apiVersion: batch.isekiro.com/v1
kind: MysqlBackup
metadata: {{name: {name}}}
spec:
  schedule: '{schedule}'
  image: {}
  imagePullPolicy: IfNotPresent
  args: [--help]
  successfulJobsHistoryLimit: 100
{extra}
",
        quick_image()
    )
}

/// The Jobs whose owner has this kind and name.
pub fn owned_by<'a>(jobs: &'a [Value], kind: &str, name: &str) -> Vec<&'a Value> {
    jobs.iter()
        .filter(|j| {
            let owner = &j["metadata"]["ownerReferences"][0];
            owner["kind"] == kind && owner["name"] == name
        })
        .collect()
}

/// Everything in `part` is in `whole`.
///
/// # Errors
/// What of it is not, and where.
pub fn contains(whole: &Value, part: &Value, path: &str) -> Result<(), String> {
    match (whole, part) {
        (Value::Object(w), Value::Object(p)) => p.iter().try_for_each(|(key, value)| {
            let path = format!("{path}.{key}");
            contains(w.get(key).ok_or(format!("{path} is lost"))?, value, &path)
        }),
        (Value::Array(w), Value::Array(p)) if w.len() == p.len() => w
            .iter()
            .zip(p)
            .try_for_each(|(w, p)| contains(w, p, &format!("{path}[]"))),
        _ if whole == part => Ok(()),
        _ => Err(format!("{path}: {part} became {whole}")),
    }
}
