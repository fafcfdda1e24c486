//! What admission answers: pure functions of the request and the time. A MysqlBackup or Restore with
//! a mistake is refused; the kinds of gobackup.io are only warned of.
//!
//! Every rule is checked again in reconcile and ends there as a condition, so admission may be
//! off or out of reach without harm. Nothing here blocks a delete, a status write or an edit that
//! leaves an old mistake as it was.

mod defaults;
mod family;
mod restore;
mod rules;
#[cfg(test)]
mod tests;
mod warnings;

use chrono::{DateTime, Utc};
use crds::gobackup::definition::{DATABASE_GROUP, GROUP, STORAGE_GROUP};
use kube::core::admission::{AdmissionRequest, AdmissionResponse, AdmissionReview, Operation};
use kube::core::{DynamicObject, GroupVersionKind, Status};
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

/// Whose rules an object is held to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rules {
    MysqlBackup,
    Restore,
    Family,
}

impl Rules {
    /// `None`: a kind these webhooks do not know.
    fn of(kind: &GroupVersionKind) -> Option<Self> {
        Some(match (kind.group.as_str(), kind.kind.as_str()) {
            (crds::GROUP, "MysqlBackup") => Self::MysqlBackup,
            (crds::GROUP, "Restore") => Self::Restore,
            (GROUP | DATABASE_GROUP | STORAGE_GROUP, _) => Self::Family,
            _ => return None,
        })
    }
}

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
            let text =
                format!("the object can't be read: {fault}; correct that field and apply again");
            let mut answer = AdmissionResponse::invalid(&text);
            answer.uid = uid;
            answer.result.code = 400;
            if family(&body) {
                answer.allowed = true;
                answer.result = Status::default();
                answer.warnings = warnings::fitted(&[text]);
            }
            answer
        }
    };
    Ok(response.into_review())
}

/// True if the object is one of those that are never refused.
fn family(body: &Value) -> bool {
    let text = |path| {
        body.pointer(path)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let kind = GroupVersionKind::gvk(
        text("/request/kind/group"),
        text("/request/kind/version"),
        text("/request/kind/kind"),
    );
    Rules::of(&kind) == Some(Rules::Family)
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
    let Some(rules) = Rules::of(&request.kind).filter(|_| written && sub_resource.is_empty())
    else {
        return response;
    };
    let kind = request.kind.kind.as_str();
    let Some(object) = &request.object else {
        return response.deny(format!(
            "the request holds no object; send the whole {kind}"
        ));
    };
    let old = match request.operation {
        Operation::Update => request.old_object.as_ref(),
        _ => None,
    };
    match (endpoint, rules) {
        (Endpoint::Mutate, rules) => {
            let by = request.user_info.username.as_deref().unwrap_or_default();
            let patch = match rules {
                Rules::MysqlBackup => defaults::patch(object, old, by, now),
                Rules::Family => defaults::signed(object, old, by),
                Rules::Restore => vec![],
            };
            if patch.is_empty() && rules != Rules::MysqlBackup {
                return response;
            }
            // What is built there is a JSON patch; if it were not, the object passes as it is,
            // and reconcile fills in the same defaults.
            match serde_json::from_value(Value::Array(patch)) {
                Ok(patch) => response.clone().with_patch(patch).unwrap_or(response),
                Err(_) => response,
            }
        }
        (Endpoint::Validate, Rules::MysqlBackup) => rules::check(response, object, old),
        (Endpoint::Validate, Rules::Restore) => restore::check(response, object, old),
        (Endpoint::Validate, Rules::Family) => family::check(response, kind, object),
    }
}
