//! What admission answers: pure functions of the request and the time.
//!
//! Every rule is checked again in reconcile and ends there as a condition, so admission may be
//! off or out of reach without harm. Nothing here blocks a delete, a status write or an edit that
//! leaves an old mistake as it was.

mod defaults;
mod rules;
#[cfg(test)]
mod tests;

use chrono::{DateTime, Utc};
use kube::core::DynamicObject;
use kube::core::admission::{AdmissionRequest, AdmissionResponse, AdmissionReview, Operation};
use serde_json::Value;
use thiserror::Error;

/// Which of the two webhooks is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// Defaulting and stamping.
    Mutate,
    /// Checking.
    Validate,
}

impl Endpoint {
    /// The text used in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Mutate => "mutate",
            Self::Validate => "validate",
        }
    }
}

/// A body that can't be answered, because it does not say which request it is.
#[derive(Debug, Error)]
#[error("not an AdmissionReview of admission.k8s.io/v1: {0}")]
pub struct NotAReview(String);

/// Kind of the objects these webhooks know.
const KIND: &str = "MysqlBackup";

/// Answers the body of one call.
///
/// # Errors
/// If the body is no AdmissionReview with a uid; any other fault is a denial that says what to do.
pub fn review(
    endpoint: Endpoint,
    body: &[u8],
    now: DateTime<Utc>,
) -> Result<AdmissionReview<DynamicObject>, NotAReview> {
    let body: Value = serde_json::from_slice(body).map_err(|e| NotAReview(e.to_string()))?;
    let uid = body
        .pointer("/request/uid")
        .and_then(Value::as_str)
        .filter(|uid| !uid.is_empty())
        .ok_or_else(|| NotAReview("request.uid is missing".to_owned()))?
        .to_owned();
    let request = serde_path_to_error::deserialize::<_, AdmissionReview<DynamicObject>>(&body)
        .map_err(|e| e.to_string())
        .and_then(|review| review.try_into().map_err(|e| format!("{e}")));
    let response = match request {
        Ok(request) => answer(endpoint, &request, now),
        Err(fault) => {
            let mut denied = AdmissionResponse::invalid(format!(
                "the object can't be read: {fault}; correct that field and apply again"
            ));
            denied.uid = uid;
            denied.result.code = 400;
            denied
        }
    };
    Ok(response.into_review())
}

/// Answers one request.
pub fn answer(
    endpoint: Endpoint,
    request: &AdmissionRequest<DynamicObject>,
    now: DateTime<Utc>,
) -> AdmissionResponse {
    let response = AdmissionResponse::from(request);
    let written = matches!(request.operation, Operation::Create | Operation::Update);
    let sub_resource = request.sub_resource.as_deref().unwrap_or_default();
    if !written || !sub_resource.is_empty() || request.kind.kind != KIND {
        return response;
    }
    let Some(object) = &request.object else {
        return response.deny("the request holds no object; send the whole MysqlBackup");
    };
    let old = match request.operation {
        Operation::Update => request.old_object.as_ref(),
        _ => None,
    };
    match endpoint {
        Endpoint::Mutate => {
            let by = request.user_info.username.as_deref().unwrap_or_default();
            let patch = Value::Array(defaults::patch(object, old, by, now));
            // What defaults::patch builds is a JSON patch; if it were not, the object passes as
            // it is, and reconcile fills in the same defaults.
            match serde_json::from_value(patch) {
                Ok(patch) => response.clone().with_patch(patch).unwrap_or(response),
                Err(_) => response,
            }
        }
        Endpoint::Validate => rules::check(response, object, old),
    }
}
