//! Answers of the API server cut to what the operator needs, before they are read. PURE.
//!
//! What is dropped: lists of managers but those of the fields that matter, copies of the object in
//! annotations, and of an object that is too large all but what tells it apart. Such an object is
//! marked with [`TOO_LARGE`], which nobody else can set: it becomes a condition, and is not
//! scheduled.

use crds::labels::{PREFIX, TOO_LARGE};
use serde_json::Value;

use super::span::{Malformed, Member, elements, members};

/// Most bytes of metadata and fields of an object that is kept whole, as JSON, without what is
/// dropped in any case; and of its status.
pub(crate) const MOST: usize = 256 * 1024;
/// Most bytes of conditions that an object keeps which is too large.
const CONDITIONS: usize = 32 * 1024;
/// Most bytes of a field of a large Job, pod or CronJob that is kept.
const SMALL: usize = 1024;
/// Most bytes of an annotation of another program that is kept.
const ANNOTATION: usize = 4096;
/// The copy that `kubectl apply` keeps.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Whose objects an answer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kinds {
    /// The users' objects and what they refer to.
    Ours,
    /// Objects of ours of which it is enough to know that they changed.
    Names,
    /// Jobs, pods and CronJobs.
    Core,
}

/// One object.
///
/// # Errors
/// It is no JSON object.
pub(super) fn object(text: &[u8], kinds: Kinds) -> Result<Vec<u8>, Malformed> {
    let all = members(text)?;
    let mut slim = Writer::default();
    let metadata = all.iter().find(|(key, _)| key == "metadata");
    // One that is no object is told as such when it is read.
    let metadata = metadata.filter(|(_, m)| m.starts_with(b"{"));
    let metadata = metadata
        .map(|(_, m)| self::metadata(m, kinds))
        .transpose()?;
    let of = |name: &str| all.iter().find(|(key, _)| key == name).map(|(_, v)| *v);
    let status = of("status").map_or(0, <[u8]>::len);
    let other = |key: &str| !matches!(key, "metadata" | "status");
    let fields: usize = all
        .iter()
        .filter(|(k, _)| other(k))
        .map(|(_, v)| v.len())
        .sum();
    let size = fields + metadata.as_ref().map_or(0, Vec::len);
    let large = size > MOST || status > MOST;
    match kinds {
        Kinds::Ours if large => return stub(&all, Some(size.max(status))),
        Kinds::Names => return stub(&all, None),
        Kinds::Ours | Kinds::Core => {}
    }
    for (key, value) in &all {
        match &**key {
            "metadata" => match &metadata {
                Some(metadata) if large => slim.member(key, &large_metadata(metadata)?),
                Some(metadata) => slim.member(key, metadata),
                None => slim.member(key, value),
            },
            "status" if status > MOST => {}
            "spec" if large && value.starts_with(b"{") => {
                slim.member(key, &small_fields(value)?);
            }
            _ if large && value.len() > SMALL && other(key) => {}
            _ => slim.member(key, value),
        }
    }
    Ok(slim.finish())
}

/// A list: its items cut, one by one.
///
/// # Errors
/// It is no list.
pub(super) fn list(text: &[u8], kinds: Kinds) -> Result<List, Malformed> {
    let mut head = Writer::default();
    let (mut items, mut next) = (vec![], None);
    for (key, value) in members(text)? {
        if key == "metadata" {
            let token = members(value)?.into_iter().find(|(k, _)| k == "continue");
            let token = token.and_then(|(_, t)| serde_json::from_slice::<String>(t).ok());
            next = token.filter(|t| !t.is_empty());
        }
        if key == "items" {
            // Some servers write an empty list so.
            if value != b"null" {
                for item in elements(value)? {
                    items.push(object(item, kinds)?);
                }
            }
        } else {
            head.member(&key, value);
        }
    }
    Ok(List { head, items, next })
}

/// A list of which the items stand apart.
pub(super) struct List {
    head: Writer,
    /// Its items.
    pub(super) items: Vec<Vec<u8>>,
    /// Where the next page begins; `None` at the last one.
    pub(super) next: Option<String>,
}

impl List {
    /// The list as one text.
    pub(super) fn text(mut self) -> Vec<u8> {
        let mut all = vec![b'['];
        for (i, item) in self.items.iter().enumerate() {
            if i > 0 {
                all.push(b',');
            }
            all.extend_from_slice(item);
        }
        all.push(b']');
        self.head.member("items", &all);
        self.head.finish()
    }
}

/// An AdmissionReview with its objects cut.
#[derive(Debug)]
pub(crate) struct Review {
    /// `request.uid`; empty if there is none.
    pub(crate) uid: String,
    /// Group, version and kind of the object.
    pub(crate) kind: [String; 3],
    /// The review.
    pub(crate) text: Vec<u8>,
}

/// Cuts the objects of an AdmissionReview.
///
/// # Errors
/// It is no JSON object.
pub(crate) fn review(text: &[u8]) -> Result<Review, Malformed> {
    let (mut uid, mut kind) = (String::new(), <[String; 3]>::default());
    let mut slim = Writer::default();
    let said = |value: &[u8]| serde_json::from_slice::<String>(value).unwrap_or_default();
    for (key, value) in members(text)? {
        if key != "request" || !value.starts_with(b"{") {
            slim.member(&key, value);
            continue;
        }
        let mut request = Writer::default();
        for (key, value) in members(value)? {
            match &*key {
                // What is no object is told as such when it is read.
                "object" | "oldObject" if value.starts_with(b"{") => {
                    request.member(&key, &object(value, Kinds::Ours)?);
                    continue;
                }
                "uid" => uid = said(value),
                "kind" if value.starts_with(b"{") => {
                    for (key, value) in members(value)? {
                        match &*key {
                            "group" => kind[0] = said(value),
                            "version" => kind[1] = said(value),
                            "kind" => kind[2] = said(value),
                            _ => {}
                        }
                    }
                }
                _ => {}
            }
            request.member(&key, value);
        }
        slim.member(&key, &request.finish());
    }
    Ok(Review {
        uid,
        kind,
        text: slim.finish(),
    })
}

/// One event of a watch: its object cut.
///
/// # Errors
/// It is no event.
pub(super) fn event(text: &[u8], kinds: Kinds) -> Result<Vec<u8>, Malformed> {
    let all = members(text)?;
    let own = ["\"ADDED\"", "\"MODIFIED\"", "\"DELETED\""];
    let type_ = all.iter().find(|(key, _)| key == "type");
    if !type_.is_some_and(|(_, t)| own.iter().any(|o| o.as_bytes() == *t)) {
        return Ok(text.to_vec());
    }
    let mut slim = Writer::default();
    for (key, value) in all {
        if key == "object" {
            slim.member(&key, &object(value, kinds)?);
        } else {
            slim.member(&key, value);
        }
    }
    Ok(slim.finish())
}

/// What tells an object apart, and its conditions; `size` where it is too large for more.
fn stub(all: &[Member<'_>], size: Option<usize>) -> Result<Vec<u8>, Malformed> {
    const NEEDED: [&str; 7] = [
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
    ];
    let mut slim = Writer::default();
    for (key, value) in all {
        match &**key {
            "apiVersion" | "kind" => slim.member(key, value),
            "metadata" => {
                let mut metadata = Writer::default();
                for (key, value) in members(value).unwrap_or_default() {
                    if NEEDED.contains(&&*key) {
                        metadata.member(&key, value);
                    }
                }
                if let Some(size) = size {
                    let mut note = Writer::default();
                    note.member(TOO_LARGE, format!("\"{size}\"").as_bytes());
                    metadata.member("annotations", &note.finish());
                }
                slim.member(key, &metadata.finish());
            }
            "status" => {
                let mut status = Writer::default();
                // Whatever it is: one that is no object has no conditions.
                for (key, value) in members(value).unwrap_or_default() {
                    let conditions = key == "conditions" && value.len() <= CONDITIONS;
                    if conditions || key == "observedGeneration" && value.len() < 32 {
                        status.member(&key, value);
                    }
                }
                slim.member(key, &status.finish());
            }
            _ => {}
        }
    }
    Ok(slim.finish())
}

fn metadata(text: &[u8], kinds: Kinds) -> Result<Vec<u8>, Malformed> {
    let mut slim = Writer::default();
    for (key, value) in members(text)? {
        match (&*key, kinds) {
            ("managedFields", Kinds::Core) => {}
            ("managedFields", Kinds::Ours | Kinds::Names) => {
                // What is no list of managers says nothing of edits.
                slim.member(&key, &managers(value).unwrap_or_else(|_| b"[]".to_vec()));
            }
            ("annotations", _) if value.starts_with(b"{") => {
                let mut kept = Writer::default();
                for (key, value) in members(value)? {
                    let ours = key.starts_with(PREFIX) && key != TOO_LARGE;
                    if ours || key != LAST_APPLIED && key != TOO_LARGE && value.len() <= ANNOTATION
                    {
                        kept.member(&key, value);
                    }
                }
                slim.member(&key, &kept.finish());
            }
            _ => slim.member(&key, value),
        }
    }
    Ok(slim.finish())
}

/// Of each manager its name, time and operation, and of its fields those right below the spec.
fn managers(text: &[u8]) -> Result<Vec<u8>, Malformed> {
    /// Fields of one manager: there are fewer in any kind.
    const FIELDS: usize = 128;
    let mut all = vec![b'['];
    for entry in elements(text)? {
        let mut slim = Writer::default();
        for (key, value) in members(entry)? {
            match &*key {
                "manager" | "operation" | "time" | "subresource" | "apiVersion" | "fieldsType" => {
                    slim.member(&key, value);
                }
                "fieldsV1" => {
                    let spec = members(value)?.into_iter().find(|(k, _)| k == "f:spec");
                    let mut fields = Writer::default();
                    if let Some((key, spec)) = spec {
                        let mut below = Writer::default();
                        for (key, _) in members(spec)?.into_iter().take(FIELDS) {
                            below.member(&key, b"{}");
                        }
                        fields.member(&key, &below.finish());
                    }
                    slim.member(&key, &fields.finish());
                }
                _ => {}
            }
        }
        if all.len() > 1 {
            all.push(b',');
        }
        all.extend(slim.finish());
    }
    all.push(b']');
    Ok(all)
}

/// Metadata of a large Job, pod or CronJob: annotations of ours, and small fields.
fn large_metadata(text: &[u8]) -> Result<Vec<u8>, Malformed> {
    let mut slim = Writer::default();
    for (key, value) in members(text)? {
        match &*key {
            "annotations" | "labels" if value.starts_with(b"{") => {
                let mut kept = Writer::default();
                for (key, value) in members(value)? {
                    if key.starts_with(PREFIX) && value.len() <= SMALL {
                        kept.member(&key, value);
                    }
                }
                slim.member(&key, &kept.finish());
            }
            _ if value.len() <= 16 * SMALL => slim.member(&key, value),
            _ => {}
        }
    }
    Ok(slim.finish())
}

fn small_fields(text: &[u8]) -> Result<Vec<u8>, Malformed> {
    let mut slim = Writer::default();
    for (key, value) in members(text)? {
        if value.len() <= SMALL {
            slim.member(&key, value);
        }
    }
    Ok(slim.finish())
}

/// An object being written.
struct Writer(Vec<u8>);

impl Default for Writer {
    fn default() -> Self {
        Self(vec![b'{'])
    }
}

impl Writer {
    fn member(&mut self, key: &str, value: &[u8]) {
        if self.0.len() > 1 {
            self.0.push(b',');
        }
        self.0.extend(Value::from(key).to_string().into_bytes());
        self.0.push(b':');
        self.0.extend_from_slice(value);
    }

    fn finish(mut self) -> Vec<u8> {
        self.0.push(b'}');
        self.0
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use serde_json::json;

    use super::*;

    fn cut(object: &Value, kinds: Kinds) -> Value {
        let text = super::object(object.to_string().as_bytes(), kinds).unwrap();
        serde_json::from_slice(&text).unwrap()
    }

    fn usual() -> Value {
        json!({
            "apiVersion": "batch.isekiro.com/v1", "kind": "MysqlBackup",
            "metadata": {
                "name": "shop", "namespace": "app", "uid": "u-1", "resourceVersion": "7", "generation": 3,
                "annotations": {
                    LAST_APPLIED: "{}", TOO_LARGE: "1", "other.io/x": "y",
                    "batch.isekiro.com/request-0123456789": "{\"a\":1}",
                },
                "managedFields": [{
                    "manager": "kubectl", "operation": "Apply", "time": "2025-01-15T10:30:00Z",
                    "fieldsType": "FieldsV1",
                    "fieldsV1": {"f:metadata": {"f:labels": {"f:x": {}}}, "f:spec": {"f:schedule": {}, "f:source": {"f:host": {}}}},
                }],
            },
            "spec": {"schedule": "@daily"},
            "status": {"conditions": [{"type": "Ready"}], "runs": [1]},
        })
    }

    #[test]
    fn o4_an_object_loses_what_nobody_reads() {
        let mut wanted = usual();
        let notes = wanted["metadata"]["annotations"].as_object_mut().unwrap();
        notes.remove(LAST_APPLIED);
        // Nobody says of an object of his own that it is too large.
        notes.remove(TOO_LARGE);
        wanted["metadata"]["managedFields"][0]["fieldsV1"] =
            json!({"f:spec": {"f:schedule": {}, "f:source": {}}});
        assert_eq!(cut(&usual(), Kinds::Ours), wanted);
        // What was cut once is cut no further.
        assert_eq!(cut(&wanted, Kinds::Ours), wanted);
    }

    /// Wherever the bytes are: in a field, in metadata, in a field that no schema knows, in status.
    #[test]
    fn o4_a_large_object_is_a_stub_that_says_so() {
        let much = "x".repeat(MOST + 1);
        let list: Value = (0..60_000)
            .map(|n| json!(format!("v{n}")))
            .collect::<Vec<_>>()
            .into();
        for (path, value) in [
            ("/spec", json!({"schedule": "@daily", "args": [much]})),
            ("/spec", json!({"schedule": "@daily", "args": list})),
            ("/metadata/labels", json!({"x": much})),
            (
                "/metadata/annotations",
                json!({"batch.isekiro.com/request-0123456789": much}),
            ),
            ("/metadata/finalizers", json!([much])),
            ("/unknown", json!({"x": much})),
            (
                "/status",
                json!({"conditions": [{"type": "Ready"}], "runs": [much]}),
            ),
        ] {
            let mut object = usual();
            let (parent, key) = path.rsplit_once('/').unwrap();
            object.pointer_mut(parent).unwrap()[key] = value;
            let stub = cut(&object, Kinds::Ours);
            assert!(stub.to_string().len() < 1000, "{path}");
            assert_eq!(stub["metadata"]["uid"], "u-1", "{path}");
            assert_eq!(stub["spec"], Value::Null, "{path}");
            assert_eq!(
                stub["status"]["conditions"],
                json!([{"type": "Ready"}]),
                "{path}"
            );
            let bytes: usize = stub["metadata"]["annotations"][TOO_LARGE]
                .as_str()
                .unwrap()
                .parse()
                .unwrap();
            assert!(bytes > MOST && bytes <= object.to_string().len(), "{path}");
        }
        // The copy in the annotation and the managers count for nothing.
        let mut object = usual();
        object["metadata"]["annotations"][LAST_APPLIED] = much.clone().into();
        object["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"]["f:source"] =
            json!({"f:x": much});
        assert_eq!(cut(&object, Kinds::Ours)["spec"], usual()["spec"]);
    }

    #[test]
    fn o4_large_jobs_and_pods_keep_what_a_digest_is_made_of() {
        let much = "x".repeat(MOST + 1);
        let job = json!({
            "metadata": {"name": "j", "uid": "u", "managedFields": [{"manager": "m"}],
                "labels": {"batch.isekiro.com/owner-uid": "o", "big": much},
                "annotations": {"batch.isekiro.com/scheduled-at": "t", "big": much},
                "ownerReferences": [{"uid": "o", "controller": true}]},
            "spec": {"suspend": true, "template": {"spec": {"args": [much]}}},
            "status": {"conditions": [{"type": "Complete", "status": "True"}]},
        });
        let slim = cut(&job, Kinds::Core);
        assert_eq!(
            slim,
            json!({
                "metadata": {"name": "j", "uid": "u",
                    "labels": {"batch.isekiro.com/owner-uid": "o"},
                    "annotations": {"batch.isekiro.com/scheduled-at": "t"},
                    "ownerReferences": [{"uid": "o", "controller": true}]},
                "spec": {"suspend": true},
                "status": {"conditions": [{"type": "Complete", "status": "True"}]},
            })
        );
    }

    #[test]
    fn o4_of_restores_it_is_known_where_they_are() {
        let names = cut(&usual(), Kinds::Names);
        assert_eq!(names["spec"], Value::Null);
        assert_eq!(
            names["metadata"],
            json!({"name": "shop", "namespace": "app", "uid": "u-1", "resourceVersion": "7", "generation": 3})
        );
    }

    #[test]
    fn lists_and_events_keep_their_shape() {
        let text = json!({"kind": "L", "metadata": {"continue": "c"}, "items": [usual(), usual()]});
        let found = list(text.to_string().as_bytes(), Kinds::Ours).unwrap();
        assert_eq!(found.items.len(), 2);
        assert_eq!(found.next.as_deref(), Some("c"));
        let whole: Value = serde_json::from_slice(&found.text()).unwrap();
        assert_eq!(whole["metadata"]["continue"], "c");
        assert_eq!(whole["items"][1], cut(&usual(), Kinds::Ours));
        let none = list(br#"{"items":null}"#, Kinds::Ours).unwrap();
        assert_eq!(
            (none.next.clone(), none.text()),
            (None, br#"{"items":[]}"#.to_vec())
        );
        let seen = |text: Value| -> Value {
            let text = event(text.to_string().as_bytes(), Kinds::Ours).unwrap();
            serde_json::from_slice(&text).unwrap()
        };
        let added = seen(json!({"type": "ADDED", "object": usual()}));
        assert_eq!(
            added,
            json!({"type": "ADDED", "object": cut(&usual(), Kinds::Ours)})
        );
        let gone =
            json!({"type": "ERROR", "object": {"code": 410, "metadata": {"managedFields": []}}});
        assert_eq!(seen(gone.clone()), gone);
    }
}
