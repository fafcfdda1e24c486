//! Events with fixed names, so that a crash does not repeat them. PURE.

use chrono::{DateTime, Utc};
use crds::labels::MANAGER;
use crds::names::event_name;
use crds::report::clean;
use crds::time::to_micro;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::engine::{EventSpec, Object};

/// Longest note the API takes, in characters of one byte.
const MAX_NOTE: usize = 1000;

/// The one event of (object, subject, reason).
pub(crate) fn build(
    object: &Object,
    api_version: &str,
    spec: &EventSpec,
    instance: &str,
    now: DateTime<Utc>,
) -> Event {
    let mut note = clean(&spec.note, MAX_NOTE);
    while note.len() > MAX_NOTE {
        note.pop();
    }
    Event {
        metadata: ObjectMeta {
            name: Some(event_name(
                &object.name,
                &object.uid,
                &spec.subject,
                &spec.reason,
            )),
            namespace: Some(object.namespace.clone()),
            ..ObjectMeta::default()
        },
        event_time: Some(to_micro(now)),
        action: Some(spec.action.to_owned()),
        reason: Some(spec.reason.clone()),
        type_: Some(if spec.warning { "Warning" } else { "Normal" }.to_owned()),
        note: Some(note),
        regarding: Some(ObjectReference {
            api_version: Some(api_version.to_owned()),
            kind: Some(object.kind.clone()),
            name: Some(object.name.clone()),
            namespace: Some(object.namespace.clone()),
            uid: Some(object.uid.clone()),
            ..ObjectReference::default()
        }),
        reporting_controller: Some(format!("{}/{MANAGER}", crds::GROUP)),
        reporting_instance: Some(instance.to_owned()),
        ..Event::default()
    }
}
