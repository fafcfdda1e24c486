#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use crds::labels::{RESUME_AT, SCHEDULE_SINCE, SUSPEND_REASON, SUSPENDED_BY, SUSPENDED_SINCE};
use crds::request::{Action, Request};
use crds::time::parse_rfc3339;
use proptest::prelude::*;
use serde_json::json;

use super::*;

mod backup;

const ORIGINAL: &str = include_str!("../../../../deploy/samples/mysqlbackup-original.yaml");
const NOW: &str = "2025-01-15T10:30:00Z";

fn now() -> DateTime<Utc> {
    parse_rfc3339(NOW).unwrap()
}

fn original() -> Value {
    serde_yaml::from_str(ORIGINAL).unwrap()
}

/// A good object with `change` made to its spec.
fn object(change: Value) -> Value {
    let mut object = json!({
        "apiVersion": "batch.isekiro.com/v1", "kind": "MysqlBackup",
        "metadata": {"name": "shop", "namespace": "db"},
        "spec": {"schedule": "0 3 * * *", "image": "mine:v1"},
    });
    for (field, value) in change.as_object().unwrap() {
        object["spec"][field] = value.clone();
    }
    object
}

fn annotated(mut object: Value, annotations: Value) -> Value {
    object["metadata"]["annotations"] = annotations;
    object
}

/// The body of a call, by alice; an update if there is an old object.
fn body(new: &Value, old: &Value) -> Value {
    body_of("batch.isekiro.com", "MysqlBackup", new, old)
}

/// As [`body`], of another kind.
fn body_of(group: &str, kind: &str, new: &Value, old: &Value) -> Value {
    let plural = format!("{}s", kind.to_lowercase());
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "0c9a8d74",
            "kind": {"group": group, "version": "v1", "kind": kind},
            "resource": {"group": group, "version": "v1", "resource": plural},
            "name": "shop", "namespace": "db",
            "operation": if old.is_null() { "CREATE" } else { "UPDATE" },
            "userInfo": {"username": "alice", "groups": ["system:authenticated"]},
            "object": new, "oldObject": old, "dryRun": false,
        },
    })
}

fn ask(endpoint: Endpoint, body: &Value) -> Value {
    let review = review(endpoint, body.to_string().as_bytes(), now()).unwrap();
    let review = serde_json::to_value(review).unwrap();
    assert_eq!(review["apiVersion"], "admission.k8s.io/v1");
    assert_eq!(review["kind"], "AdmissionReview");
    assert_eq!(review["response"]["uid"], body["request"]["uid"]);
    review["response"].clone()
}

fn validate(new: &Value, old: &Value) -> Value {
    ask(Endpoint::Validate, &body(new, old))
}

/// The object as the API server has it after the patch of the mutating webhook.
fn mutated(new: &Value, old: &Value) -> Value {
    patched(new, &ask(Endpoint::Mutate, &body(new, old)))
}

fn patched(new: &Value, response: &Value) -> Value {
    assert_eq!(response["allowed"], true);
    let patch: Vec<u8> = serde_json::from_value(response["patch"].clone()).unwrap();
    let mut object = new.clone();
    for operation in serde_json::from_slice::<Vec<Value>>(&patch).unwrap() {
        apply(&mut object, &operation);
    }
    object
}

/// RFC 6902 add and remove of members, strictly: a missing parent or member is a failure.
fn apply(object: &mut Value, operation: &Value) {
    let (parent, key) = operation["path"]
        .as_str()
        .unwrap()
        .rsplit_once('/')
        .unwrap();
    let key = key.replace("~1", "/").replace("~0", "~");
    let parent = object.pointer_mut(parent).unwrap().as_object_mut().unwrap();
    match operation["op"].as_str().unwrap() {
        "add" => parent.insert(key, operation["value"].clone()),
        "remove" => Some(parent.remove(&key).unwrap()),
        other => panic!("{other}"),
    };
}

/// Twelve manifests that a schema lets pass and that can't work, with path and remedy.
fn twelve() -> Vec<(Value, &'static str, &'static str)> {
    let claim = |name: &str| json!({"name": name, "persistentVolumeClaim": {"claimName": "c"}});
    vec![
        (
            json!({"schedule": "61 * * * *"}),
            "spec.schedule",
            "use numbers 0-59",
        ),
        (
            json!({"schedule": "0 0 * * 7"}),
            "spec.schedule",
            "Sunday is 0 or SUN",
        ),
        (
            json!({"schedule": "0 0 3 * * *"}),
            "spec.schedule",
            "there is no field for seconds",
        ),
        (
            json!({"schedule": "TZ=Asia/Shanghai 0 3 * * *"}),
            "spec.schedule",
            "put the zone's name in timeZone",
        ),
        (
            json!({"schedule": "@Daily"}),
            "spec.schedule",
            "use @yearly",
        ),
        (
            json!({"timeZone": "Europe/Berln"}),
            "spec.timeZone",
            "did you mean \"Europe/Berlin\"?",
        ),
        (
            json!({"volumes": [claim("data"), claim("data")]}),
            "spec.volumes[1].name",
            "give each volume its own name",
        ),
        (
            json!({"volumeMounts": [{"name": "data", "mountPath": "/mnt"}]}),
            "spec.volumeMounts[0].name",
            "add it to spec.volumes",
        ),
        (
            json!({"podMetadata": {"labels": {"batch.isekiro.com/owner-uid": "x"}}}),
            "spec.podMetadata",
            "use another key",
        ),
        (
            json!({"source": {"host": "db", "socket": "/run/mysqld.sock"}}),
            "spec.source",
            "keep one",
        ),
        (
            json!({"destination": {"s3": {"bucket": "b"}, "volume": {"nfs": {"server": "s", "path": "/"}}}}),
            "spec.destination",
            "exactly one of volume, s3, storageRef",
        ),
        (
            json!({"encryption": {"age": {"recipients": []}}}),
            "spec.encryption.age",
            "set recipients or recipientsSecretKeyRef",
        ),
    ]
}

#[test]
fn twelve_wrong_manifests_get_twelve_messages() {
    for (change, path, remedy) in twelve() {
        let response = validate(&object(change.clone()), &Value::Null);
        assert_eq!(response["allowed"], false, "{change}");
        let status = &response["status"];
        assert_eq!(
            (&status["code"], &status["reason"]),
            (&json!(422), &json!("Invalid"))
        );
        assert_eq!(status["status"], "Failure");
        let message = status["message"].as_str().unwrap();
        assert!(message.starts_with(&format!("{path}: ")), "{message}");
        assert!(message.contains(remedy), "{message} lacks {remedy:?}");
        let causes = status["details"]["causes"].as_array().unwrap();
        assert_eq!(causes.len(), 1, "{causes:?}");
        assert_eq!(causes[0]["field"], path);
    }
}

#[test]
fn u10_what_our_runner_can_never_do_is_refused_and_an_old_one_may_stay() {
    let mut lacks = object(json!({}));
    lacks["spec"].as_object_mut().unwrap().remove("image");
    let response = validate(&lacks, &Value::Null);
    assert_eq!(response["allowed"], false);
    let causes = response["status"]["details"]["causes"].as_array().unwrap();
    let fields: Vec<&str> = causes
        .iter()
        .map(|c| c["field"].as_str().unwrap())
        .collect();
    let wanted = [
        "spec.source.host",
        "spec.source.credentialsSecretRef",
        "spec.destination",
    ];
    assert_eq!(fields, wanted);
    assert_eq!(validate(&lacks, &lacks)["allowed"], true);
    for (change, field) in [
        (json!({"source": {"host": "db:3306"}}), "spec.source.host"),
        (
            json!({"encryption": {"age": {"recipients": ["age1foo"]}}}),
            "spec.encryption.age.recipients[0]",
        ),
        (
            json!({"compression": {"type": "gzip", "level": 12}}),
            "spec.compression.level",
        ),
    ] {
        let response = validate(&object(change), &Value::Null);
        assert_eq!(response["status"]["details"]["causes"][0]["field"], field);
    }
}

#[test]
fn what_a_schema_would_refuse_is_refused_without_one() {
    let rows = [
        (
            json!({"concurrencyPolicy": "Sometimes"}),
            "spec.concurrencyPolicy",
            "`Forbid`",
        ),
        (json!({"suspend": "yes"}), "spec.suspend", "a boolean"),
        (
            json!({"backupEnvs": [{"value": "x"}, 3]}),
            "spec.backupEnvs[",
            "kubectl explain",
        ),
        (json!({"schedule": 5}), "spec.schedule", "a string"),
        (json!({"schedule": null}), "spec.schedule", "a string"),
    ];
    for (change, path, text) in rows {
        let response = validate(&object(change.clone()), &Value::Null);
        assert_eq!(response["allowed"], false, "{change}");
        let message = response["status"]["message"].as_str().unwrap();
        assert!(
            message.starts_with(path) && message.contains(text),
            "{message}"
        );
    }
    let mut bare = object(json!({}));
    bare.as_object_mut().unwrap().remove("spec");
    let response = validate(&bare, &Value::Null);
    let message = response["status"]["message"].as_str().unwrap();
    assert!(message.starts_with("spec: is missing"), "{message}");
}

#[test]
fn the_original_manifest_passes_and_is_warned_of_its_password() {
    let response = validate(&mutated(&original(), &Value::Null), &Value::Null);
    assert_eq!(response["allowed"], true, "{response}");
    let warnings = response["warnings"].as_array().unwrap();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    let warning = warnings[0].as_str().unwrap();
    assert!(warning.contains("PASSWORD") && warning.contains("secretKeyRef"));
    assert!(!warning.contains("xxxxx"));
}

#[test]
fn the_original_gets_only_what_it_lacks() {
    let before = original();
    let after = mutated(&before, &Value::Null);
    let mut wanted = before.clone();
    wanted["spec"]["suspend"] = json!(false);
    wanted["spec"]["failedJobsHistoryLimit"] = json!(1);
    assert_eq!(after, wanted);
}

#[test]
fn absent_and_null_fields_are_filled_in_and_set_ones_stay() {
    let defaults = json!({
        "schedule": "0 3 * * *", "image": "mine:v1", "concurrencyPolicy": "Allow", "suspend": false,
        "successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 1, "restartPolicy": "Never",
    });
    let nulls = json!({
        "concurrencyPolicy": null, "suspend": null, "successfulJobsHistoryLimit": null,
        "failedJobsHistoryLimit": null, "restartPolicy": null,
    });
    assert_eq!(mutated(&object(json!({})), &Value::Null)["spec"], defaults);
    assert_eq!(mutated(&object(nulls), &Value::Null)["spec"], defaults);
    let set = json!({
        "schedule": "0 3 * * *", "image": "mine:v1", "concurrencyPolicy": "Forbid", "suspend": false,
        "successfulJobsHistoryLimit": 0, "failedJobsHistoryLimit": 0, "restartPolicy": "OnFailure",
    });
    assert_eq!(mutated(&object(set.clone()), &Value::Null)["spec"], set);
    // Nothing to do is no patch operation at all.
    let response = ask(Endpoint::Mutate, &body(&object(set.clone()), &object(set)));
    assert_eq!(response["patch"], json!(b"[]"));
}

#[test]
fn an_edit_of_schedule_or_zone_is_stamped_once() {
    let old = object(json!({}));
    let stamp = |new: &Value| mutated(new, &old)["metadata"]["annotations"][SCHEDULE_SINCE].clone();
    assert_eq!(stamp(&object(json!({"schedule": "5 3 * * *"}))), NOW);
    assert_eq!(stamp(&object(json!({"timeZone": "Asia/Shanghai"}))), NOW);
    for same in [json!({}), json!({"timeZone": "UTC"}), json!({"image": "x"})] {
        assert_eq!(stamp(&object(same)), Value::Null);
    }
    // An older stamp is replaced by an edit, whatever the writer says, and left alone otherwise.
    let forged = json!({SCHEDULE_SINCE: "2001-01-01T00:00:00Z"});
    assert_eq!(
        stamp(&annotated(
            object(json!({"schedule": "5 3 * * *"})),
            forged.clone()
        )),
        NOW
    );
    let kept = annotated(object(json!({})), forged.clone());
    assert_eq!(mutated(&kept, &kept)["metadata"], kept["metadata"]);
    // A copy of an object does not inherit the stamp.
    let copy = mutated(&annotated(object(json!({})), forged), &Value::Null);
    assert_eq!(copy["metadata"]["annotations"], json!({}));
}

#[test]
fn a_suspension_says_since_when_and_by_whom_until_it_ends() {
    let (on, off) = (
        object(json!({"suspend": true})),
        object(json!({"suspend": false})),
    );
    let stamps = json!({SUSPENDED_SINCE: NOW, SUSPENDED_BY: "alice"});
    assert_eq!(mutated(&on, &off)["metadata"]["annotations"], stamps);
    assert_eq!(
        mutated(&on, &object(json!({})))["metadata"]["annotations"],
        stamps
    );
    assert_eq!(
        mutated(&on, &Value::Null)["metadata"]["annotations"],
        stamps
    );
    // The plugin's own stamps give way to what the server knows; its reason stays.
    let signed = annotated(
        on.clone(),
        json!({SUSPENDED_SINCE: "2001-01-01T00:00:00Z", SUSPENDED_BY: "the boss", SUSPEND_REASON: "upgrade", "x": "y"}),
    );
    let after = mutated(&signed, &off);
    assert_eq!(
        after["metadata"]["annotations"],
        json!({SUSPENDED_SINCE: NOW, SUSPENDED_BY: "alice", SUSPEND_REASON: "upgrade", "x": "y"})
    );
    // Staying suspended changes nothing; signing with another's name later does not work either.
    let old = annotated(
        on,
        json!({SUSPENDED_SINCE: "2025-01-01T00:00:00Z", SUSPENDED_BY: "bob", RESUME_AT: "2025-02-01T00:00:00Z"}),
    );
    assert_eq!(mutated(&old, &old)["metadata"], old["metadata"]);
    let mut posing = old.clone();
    posing["metadata"]["annotations"][SUSPENDED_BY] = json!("carol");
    assert_eq!(
        mutated(&posing, &old)["metadata"]["annotations"][SUSPENDED_BY],
        "alice"
    );
    // The end of the suspension removes what was said of it.
    let mut resumed = old.clone();
    resumed["spec"]["suspend"] = json!(false);
    resumed["metadata"]["annotations"]["x"] = json!("y");
    assert_eq!(
        mutated(&resumed, &old)["metadata"]["annotations"],
        json!({"x": "y"})
    );
}

#[test]
fn a_request_is_signed_with_the_callers_name() {
    let key = Request::annotation_key("7f3a");
    let request = |by: &str| Request::new(Action::Backup, "7f3a", by, now()).annotation_value();
    let with = |value: &str| annotated(object(json!({})), json!({&key: value}));
    let old = object(json!({}));
    for by in ["", "the boss", "alice"] {
        for old in [&old, &Value::Null, &with("something else")] {
            let after = mutated(&with(&request(by)), old);
            let value = after["metadata"]["annotations"][&key].as_str().unwrap();
            let read = Request::parse(value).unwrap();
            assert_eq!((read.by.as_str(), read.id.as_str()), ("alice", "7f3a"));
        }
    }
    // A member that this version does not know stays; two members of a name are one.
    let odd = r#"{"by":"x","action":"Backup","future":{"a":1},"by":"y"}"#;
    let after = mutated(&with(odd), &old);
    let value = after["metadata"]["annotations"][&key].as_str().unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(value).unwrap(),
        json!({"by": "alice", "action": "Backup", "future": {"a": 1}})
    );
    assert_eq!(value.matches("\"by\"").count(), 1);
    // Somebody else's earlier request keeps its name when alice edits the object.
    let bobs = with(&request("bob"));
    assert_eq!(mutated(&bobs, &bobs)["metadata"], bobs["metadata"]);
    // Nonsense is left for the operator to refuse.
    for nonsense in ["", "7", "[", "null"] {
        let sent = with(nonsense);
        assert_eq!(mutated(&sent, &old)["metadata"], sent["metadata"]);
    }
}

#[test]
fn rule_13_an_old_schedule_with_tz_stays_editable_with_a_warning() {
    let old = object(json!({"schedule": "TZ=Asia/Shanghai 0 3 * * *"}));
    let edit = |change: Value| {
        let mut new = old.clone();
        for (field, value) in change.as_object().unwrap() {
            new["spec"][field] = value.clone();
        }
        validate(&new, &old)
    };
    let kept = edit(json!({"image": "x"}));
    assert_eq!(kept["allowed"], true);
    let warnings = kept["warnings"].to_string();
    assert!(
        warnings.contains("still wrong") && warnings.contains("spec.schedule"),
        "{warnings}"
    );
    assert_eq!(
        edit(json!({"schedule": "CRON_TZ=UTC 0 4 * * *"}))["allowed"],
        true
    );
    assert_eq!(
        edit(json!({"schedule": "0 3 * * *", "timeZone": "Asia/Shanghai"}))["allowed"],
        true
    );
    let both = edit(json!({"timeZone": "Asia/Shanghai"}));
    let message = both["status"]["message"].as_str().unwrap();
    assert_eq!(both["allowed"], false);
    assert!(
        message.starts_with("spec.timeZone: ") && message.contains("remove"),
        "{message}"
    );
    // A schedule without it can't get it.
    let response = validate(&old, &object(json!({})));
    assert_eq!(response["allowed"], false);
}

#[test]
fn rule_15_a_zone_is_checked_again_only_when_it_changes() {
    let old = object(json!({"timeZone": "Gone/Zone"}));
    let mut edited = old.clone();
    edited["spec"]["image"] = json!("x");
    assert_eq!(validate(&edited, &old)["allowed"], true);
    edited["spec"]["timeZone"] = json!("Other/Gone");
    assert_eq!(validate(&edited, &old)["allowed"], false);
    assert_eq!(validate(&old, &object(json!({})))["allowed"], false);
}

#[test]
fn an_edit_that_leaves_an_old_mistake_is_let_through_a_new_one_is_not() {
    for (change, _, _) in twelve() {
        let bad = object(change.clone());
        let labelled = {
            let mut new = bad.clone();
            new["metadata"]["labels"] = json!({"team": "a"});
            new
        };
        assert_eq!(validate(&labelled, &bad)["allowed"], true, "{change}");
        assert_eq!(
            validate(&bad, &object(json!({})))["allowed"],
            false,
            "{change}"
        );
        assert_eq!(
            validate(&object(json!({})), &bad)["allowed"],
            true,
            "{change}"
        );
    }
}

#[test]
fn rule_35_the_name_is_checked_on_create_only() {
    let mut long = object(json!({}));
    long["metadata"]["name"] = json!("x".repeat(53));
    let response = validate(&long, &Value::Null);
    assert_eq!(response["allowed"], false);
    assert!(
        response["status"]["message"]
            .as_str()
            .unwrap()
            .starts_with("metadata.name: ")
    );
    assert_eq!(validate(&long, &long)["allowed"], true);
    long["metadata"]["name"] = json!("x".repeat(52));
    assert_eq!(validate(&long, &Value::Null)["allowed"], true);
}

#[test]
fn nothing_blocks_deletion_status_or_other_kinds() {
    let bad = object(json!({"schedule": "nonsense"}));
    let mut delete = body(&Value::Null, &bad);
    delete["request"]["operation"] = json!("DELETE");
    let mut status = body(&bad, &object(json!({})));
    status["request"]["subResource"] = json!("status");
    let mut other = body(&json!({"metadata": {}, "spec": 7}), &Value::Null);
    other["request"]["kind"]["kind"] = json!("Pod");
    let mut going = bad.clone();
    going["metadata"]["deletionTimestamp"] = json!(NOW);
    let going = body(&going, &object(json!({})));
    for body in [delete, status, other, going] {
        for endpoint in [Endpoint::Mutate, Endpoint::Validate] {
            assert_eq!(ask(endpoint, &body)["allowed"], true, "{body}");
        }
    }
}

#[test]
fn a_dry_run_is_answered_alike() {
    let (bad, good) = (object(json!({"schedule": "x"})), object(json!({})));
    for new in [bad, good] {
        let real = body(&new, &Value::Null);
        let mut dry = real.clone();
        dry["request"]["dryRun"] = json!(true);
        for endpoint in [Endpoint::Mutate, Endpoint::Validate] {
            assert_eq!(ask(endpoint, &real), ask(endpoint, &dry));
        }
    }
}

#[test]
fn an_object_that_does_not_decode_is_denied_with_the_place() {
    let mut odd = object(json!({}));
    odd["metadata"]["labels"] = json!(["a"]);
    let response = validate(&odd, &Value::Null);
    assert_eq!(response["allowed"], false);
    let message = response["status"]["message"].as_str().unwrap();
    assert!(
        message.contains("can't be read") && message.contains("correct that field"),
        "{message}"
    );
    for nonsense in [
        "",
        "{",
        "[]",
        "null",
        r#"{"request":{"uid":7}}"#,
        r#"{"request":{"uid":""}}"#,
    ] {
        let fault = review(Endpoint::Validate, nonsense.as_bytes(), now()).unwrap_err();
        assert!(fault.to_string().contains("AdmissionReview"));
    }
}

#[test]
fn warnings_are_few_and_short() {
    let envs: Vec<Value> = (0..100)
        .map(
            |i| json!({"name": format!("TOKEN_{i}_{}", "X".repeat(300)), "value": "S3cr3t-marker"}),
        )
        .collect();
    let response = validate(&object(json!({"backupEnvs": envs})), &Value::Null);
    let warnings = response["warnings"].as_array().unwrap();
    let length = |w: &Value| w.as_str().unwrap().chars().count();
    assert!(warnings.iter().all(|w| length(w) <= 256));
    // Beyond 4096 in all the API server drops what comes then.
    assert!(warnings.iter().map(length).sum::<usize>() <= 4096);
    assert_eq!(warnings.len(), 17);
    assert_eq!(warnings[16], "and 84 more");
    assert!(!response.to_string().contains("S3cr3t"));
}

/// Any JSON, of the depth and width that matter here.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        prop_oneof![
            Just("TZ="),
            Just("@every -1h"),
            Just("0 3 * * *"),
            Just("CREATE"),
            Just("UPDATE"),
            Just("MysqlBackup"),
            Just("9999999999999h"),
            Just("*/0 * * * *"),
            Just("a/../b"),
        ]
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(key(), inner, 0..6)
                .prop_map(|map| map.into_iter().collect::<Value>()),
        ]
    })
}

fn key() -> impl Strategy<Value = String> {
    let known = [
        "schedule",
        "timeZone",
        "suspend",
        "volumes",
        "volumeMounts",
        "name",
        "value",
        "backupEnvs",
        "args",
        "podMetadata",
        "labels",
        "annotations",
        "source",
        "destination",
        "volume",
        "s3",
        "encryption",
        "age",
        "retention",
        "maxAge",
        "config",
        "type",
        "databaseRefs",
        "storageRefs",
        "model",
        "backupModelRef",
        "compressWith",
        "encodeWith",
        "endpoints",
        "metadata",
        "spec",
        "deletionTimestamp",
        "batch.isekiro.com/request-0123456789",
        "batch.isekiro.com/suspended-by",
        "emptyDir",
        "sizeLimit",
        "podSecurityContext",
        "affinity",
        "resources",
        "limits",
    ];
    prop_oneof![4 => prop::sample::select(known.to_vec()).prop_map(str::to_owned), 1 => ".{0,8}"]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn no_body_panics(bytes in prop::collection::vec(any::<u8>(), 0..200), json in any_json()) {
        for endpoint in [Endpoint::Mutate, Endpoint::Validate] {
            let _ = review(endpoint, &bytes, now());
            let _ = review(endpoint, json.to_string().as_bytes(), now());
        }
    }

    #[test]
    fn no_object_panics_and_each_gets_an_answer(new in any_json(), old in any_json(), spec in any_json(), annotations in any_json()) {
        let mut built = object(json!({}));
        built["spec"] = spec;
        built["metadata"]["annotations"] = annotations;
        for (new, old) in [(&new, &old), (&built, &old), (&new, &built), (&built, &Value::Null), (&built, &object(json!({})))] {
            for endpoint in [Endpoint::Mutate, Endpoint::Validate] {
                let response = ask(endpoint, &body(new, old));
                prop_assert!(response["allowed"].is_boolean());
                if response["allowed"] == false {
                    prop_assert!(!response["status"]["message"].as_str().unwrap_or_default().is_empty());
                }
            }
        }
    }

    #[test]
    fn a_patch_always_applies_and_a_second_one_is_empty(spec in any_json(), annotations in prop::collection::btree_map(key(), ".{0,20}", 0..6), with_old in any::<bool>()) {
        let mut new = object(json!({}));
        new["spec"] = spec;
        new["metadata"]["annotations"] = json!(annotations);
        let old = if with_old { object(json!({"suspend": true})) } else { Value::Null };
        let once = mutated(&new, &old);
        let twice = mutated(&once, &old);
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn whatever_a_backup_of_gobackup_holds_passes(kind in prop::sample::select(backup::KINDS.to_vec()), root in any_json(), spec in any_json(), metadata in any_json()) {
        let (group, kind) = kind;
        let mut new = json!({"apiVersion": format!("{group}/v1"), "kind": kind, "metadata": metadata, "spec": spec});
        if let Some(fields) = root.as_object() {
            for (key, value) in fields.iter().filter(|(k, _)| !matches!(k.as_str(), "metadata" | "spec")) {
                new[key] = value.clone();
            }
        }
        for old in [&Value::Null, &new] {
            for endpoint in [Endpoint::Mutate, Endpoint::Validate] {
                let response = ask(endpoint, &body_of(group, kind, &new, old));
                prop_assert_eq!(&response["allowed"], true);
                let untouched = response["patch"].is_null() || patched(&new, &response) == new;
                prop_assert!(untouched);
                let all: usize = response["warnings"].as_array().into_iter().flatten()
                    .map(|w| w.as_str().unwrap().chars().count()).sum();
                prop_assert!(all <= 4096);
            }
        }
    }
}
