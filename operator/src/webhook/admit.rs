//! What admission answers: pure functions of the request and the time. A MysqlBackup or Restore with
//! a mistake is refused; the kinds of gobackup.io are only warned of.
//!
//! Every rule is checked again in reconcile and ends there as a condition, so admission may be
//! off or out of reach without harm. Nothing here blocks a delete, a status write or an edit that
//! leaves an old mistake as it was.

mod backup;
mod defaults;
mod requests;
mod restore;
mod rules;
#[cfg(test)]
mod tests;
mod warnings;

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use crds::group::{DATABASE_GROUP, GROUP, STORAGE_GROUP};
use crds::labels::TOO_LARGE;
use crds::request::{Action, Request};
use kube::core::admission::{AdmissionRequest, AdmissionResponse, AdmissionReview, Operation};
use kube::core::{DynamicObject, GroupVersionKind, Status};
use serde_json::Value;
use thiserror::Error;

use crate::answers;

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
    Backup,
}

impl Rules {
    /// `None`: a kind these webhooks do not know.
    fn of(kind: &GroupVersionKind) -> Option<Self> {
        Some(match (kind.group.as_str(), kind.kind.as_str()) {
            (crds::GROUP, "MysqlBackup") => Self::MysqlBackup,
            (crds::GROUP, "Restore") => Self::Restore,
            (GROUP | DATABASE_GROUP | STORAGE_GROUP, _) => Self::Backup,
            _ => return None,
        })
    }
}

/// A call as it was read: the request, or what can't be read of it.
#[derive(Debug)]
pub struct Asked {
    uid: String,
    /// The object is one of those that are never refused.
    of_backup: bool,
    request: Result<AdmissionRequest<DynamicObject>, String>,
}

/// Somebody asks that all an object stored be removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removal {
    /// API group of the object.
    pub group: String,
    /// Its plural.
    pub resource: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name; empty where the API server makes one.
    pub name: String,
    /// Who asks.
    pub user: String,
    /// UID of the user.
    pub uid: Option<String>,
    /// Groups of the user.
    pub groups: Vec<String>,
    /// What else the API server knows of the user.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl Asked {
    /// Reads the body of one call. Its objects are cut before anything is made of them, as the
    /// operator's own answers are, so that memory is bounded by the text.
    ///
    /// # Errors
    /// It is no AdmissionReview with a uid; any other fault is a denial that says what to do.
    pub fn read(body: &[u8]) -> Result<Self, NotAReview> {
        let cut = answers::review(body).map_err(|e| NotAReview(e.to_string()))?;
        if cut.uid.is_empty() {
            return Err(NotAReview("request.uid is missing".to_owned()));
        }
        let kind = GroupVersionKind::gvk(&cut.kind[0], &cut.kind[1], &cut.kind[2]);
        let mut text = serde_json::Deserializer::from_slice(&cut.text);
        let request =
            serde_path_to_error::deserialize::<_, AdmissionReview<DynamicObject>>(&mut text)
                .map_err(|e| e.to_string())
                .and_then(|review| review.try_into().map_err(|e| format!("{e}")));
        Ok(Self {
            uid: cut.uid,
            of_backup: Rules::of(&kind) == Some(Rules::Backup),
            request,
        })
    }

    /// The removal that is newly asked for.
    pub fn removal(&self) -> Option<Removal> {
        let request = self.request.as_ref().ok()?;
        let object = request.object.as_ref()?;
        let old = request.old_object.as_ref();
        let sub_resource = request.sub_resource.as_deref().unwrap_or_default();
        Rules::of(&request.kind).filter(|_| sub_resource.is_empty())?;
        let asks = requests::fresh(object, old).any(|(_, value)| {
            Request::parse(value)
                .is_ok_and(|r| r.action == Action::Prune && r.options.all && !r.options.dry_run)
        });
        let user = &request.user_info;
        asks.then(|| Removal {
            group: request.resource.group.clone(),
            resource: request.resource.resource.clone(),
            namespace: request.namespace.clone().unwrap_or_default(),
            name: request.name.clone(),
            user: user.username.clone().unwrap_or_default(),
            uid: user.uid.clone(),
            groups: user.groups.clone().unwrap_or_default(),
            extra: user.extra.clone().unwrap_or_default(),
        })
    }

    /// The answer; `forbidden` says why the caller may not ask for what is asked.
    pub fn answer(
        self,
        endpoint: Endpoint,
        now: DateTime<Utc>,
        forbidden: Option<String>,
    ) -> AdmissionReview<DynamicObject> {
        let response = match (self.request, forbidden) {
            (Ok(request), Some(why)) => {
                let mut response = AdmissionResponse::from(&request).deny(why);
                response.result.code = 403;
                response.result.reason = "Forbidden".to_owned();
                response
            }
            (Ok(request), None) => answer(endpoint, &request, now),
            (Err(fault), _) => {
                let text = format!(
                    "the object can't be read: {fault}; correct that field and apply again"
                );
                let mut answer = AdmissionResponse::invalid(&text);
                answer.uid = self.uid;
                answer.result.code = 400;
                if self.of_backup {
                    answer.allowed = true;
                    answer.result = Status::default();
                    answer.warnings = warnings::fitted(&[text]);
                }
                answer
            }
        };
        response.into_review()
    }
}

/// Answers the body of one call by somebody who may ask for anything.
///
/// # Errors
/// As [`Asked::read`].
#[cfg(test)]
fn review(
    endpoint: Endpoint,
    body: &[u8],
    now: DateTime<Utc>,
) -> Result<AdmissionReview<DynamicObject>, NotAReview> {
    Ok(Asked::read(body)?.answer(endpoint, now, None))
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
    if let Some(large) = too_large(object) {
        // It is not read, so nothing is filled in; one that was too large before may stay.
        let refused = endpoint == Endpoint::Validate
            && rules != Rules::Backup
            && old.is_none_or(|old| too_large(old).is_none());
        let mut response = response;
        if refused {
            return response.deny(large);
        }
        response.warnings = warnings::fitted(&[large]);
        return response;
    }
    match (endpoint, rules) {
        (Endpoint::Mutate, rules) => {
            let by = request.user_info.username.as_deref().unwrap_or_default();
            let patch = match rules {
                Rules::MysqlBackup => defaults::patch(object, old, by, now),
                Rules::Backup | Rules::Restore => defaults::signed(object, old, by),
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
        (Endpoint::Validate, Rules::Backup) => backup::check(response, kind, object, old),
    }
}

/// Why an object is not read.
fn too_large(object: &DynamicObject) -> Option<String> {
    let bytes = object.metadata.annotations.as_ref()?.get(TOO_LARGE)?;
    Some(crate::digest::too_large(bytes))
}
