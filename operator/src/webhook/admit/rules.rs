//! The check of a written object: the rules of `crds::validate`, and what only admission can know,
//! which is the object as it was.

use crds::MysqlBackupSpec;
use crds::validate::{self, Problem};
use kube::core::admission::AdmissionResponse;
use kube::core::response::{StatusCause, StatusDetails};
use kube::core::{DynamicObject, Status};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::requests;
use super::warnings::fitted;

/// Denies `object` for every mistake that `old` did not have already; those it had are warnings.
pub(super) fn check(
    response: AdmissionResponse,
    object: &DynamicObject,
    old: Option<&DynamicObject>,
) -> AdmissionResponse {
    if old.is_some() && object.metadata.deletion_timestamp.is_some() {
        return response;
    }
    let (spec, mut found) = read(object);
    if old.is_none() {
        let name = object.metadata.name.as_deref().unwrap_or_default();
        found.extend(validate::name(name));
    }
    found.extend(spec.as_ref().and_then(|new| two_zones(new, old)));
    found.extend(requests::too_long(object, old));
    let known = old.map(|old| read(old).1).unwrap_or_default();
    let (kept, new): (Vec<Problem>, Vec<Problem>) = found
        .into_iter()
        .partition(|problem| known.contains(problem));
    let response = with_warnings(response, spec.as_ref(), &kept);
    deny(response, object, "MysqlBackup", &new)
}

/// Denies `object` if there are problems.
pub(super) fn deny(
    mut response: AdmissionResponse,
    object: &DynamicObject,
    kind: &str,
    problems: &[Problem],
) -> AdmissionResponse {
    if !problems.is_empty() {
        response.allowed = false;
        response.result = denial(object, kind, problems);
    }
    response
}

/// The spec, and what is wrong with it.
fn read(object: &DynamicObject) -> (Option<MysqlBackupSpec>, Vec<Problem>) {
    match spec::<MysqlBackupSpec>(object, "MysqlBackup", "spec.schedule") {
        Ok(spec) => {
            let problems = validate::mysql_backup(&spec);
            (Some(spec), problems)
        }
        Err(problem) => (None, vec![problem]),
    }
}

/// The spec of a `kind`, which needs at least `least`.
///
/// # Errors
/// Where it does not fit its type.
pub(super) fn spec<T: DeserializeOwned>(
    object: &DynamicObject,
    kind: &str,
    least: &str,
) -> Result<T, Problem> {
    let spec = object.data.get("spec").unwrap_or(&Value::Null);
    serde_path_to_error::deserialize(spec).map_err(|fault| {
        let path = match fault.path().to_string().as_str() {
            "." => "spec".to_owned(),
            path => format!("spec.{path}"),
        };
        let message = match spec {
            Value::Null => format!("is missing; a {kind} needs at least {least}"),
            _ => format!(
                "{}; `kubectl explain {}.{path}` shows what it takes",
                fault.inner(),
                kind.to_lowercase()
            ),
        };
        Problem { path, message }
    })
}

/// An old schedule may keep its `TZ=`, but not beside timeZone (CronJob rule 13).
fn two_zones(new: &MysqlBackupSpec, old: Option<&DynamicObject>) -> Option<Problem> {
    let old = old?.data.pointer("/spec/timeZone").and_then(Value::as_str);
    let added = new.time_zone.is_some() && old != new.time_zone.as_deref();
    (added && new.schedule.contains("TZ")).then(|| Problem {
        path: "spec.timeZone".to_owned(),
        message: "can't stand beside TZ or CRON_TZ in spec.schedule; remove that from the schedule"
            .to_owned(),
    })
}

fn with_warnings(
    mut response: AdmissionResponse,
    spec: Option<&MysqlBackupSpec>,
    kept: &[Problem],
) -> AdmissionResponse {
    let still = kept
        .iter()
        .map(|problem| format!("still wrong, so that no backup runs: {problem}"));
    let risky = spec
        .map(validate::mysql_backup_warnings)
        .unwrap_or_default();
    let warnings: Vec<String> = still.chain(risky).collect();
    response.warnings = fitted(&warnings);
    response
}

/// In the form of the API server's own refusals, so that clients list the fields alike.
fn denial(object: &DynamicObject, kind: &str, problems: &[Problem]) -> Status {
    let mut status = Status::failure(&validate::join(problems), "Invalid");
    status.code = 422;
    status.details = Some(StatusDetails {
        name: object.metadata.name.clone().unwrap_or_default(),
        group: crds::GROUP.to_owned(),
        kind: kind.to_owned(),
        uid: String::new(),
        causes: problems
            .iter()
            .map(|problem| StatusCause {
                reason: "FieldValueInvalid".to_owned(),
                message: problem.message.clone(),
                field: problem.path.clone(),
            })
            .collect(),
        retry_after_seconds: 0,
    });
    status
}
