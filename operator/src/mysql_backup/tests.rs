//! What a `storageRef` comes to.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use crds::run::Trigger;
use crds::run_spec::SPEC_ENV;
use k8s_openapi::api::core::v1::PodSpec;

use kube::core::DynamicObject;
use serde_json::json;

use super::*;

/// A Storage of gobackup.io.
fn storage(name: &str, spec: Value) -> DynamicObject {
    serde_json::from_value(json!({
        "apiVersion": "gobackup.io/v1", "kind": "Storage",
        "metadata": {"name": name, "namespace": "shop"}, "spec": spec,
    }))
    .unwrap()
}

fn bucket() -> DynamicObject {
    storage(
        "bucket",
        json!({"type": "minio", "config": {
            "bucket": "b", "path": "/mysql/", "endpoint": "https://minio:9000", "keep": 7,
            "access_key_id": "AKIDEXAMPLE",
            "secret_access_key_ref": {"name": "s3", "key": "secret"},
            "token_ref": {"name": "s3", "key": "token", "optional": true},
        }}),
    )
}

/// What the controller keeps of a MysqlBackup that stores on this Storage.
fn kept(kind: &MysqlBackups, name: &str) -> Value {
    let mut object: DynamicObject = serde_json::from_value(json!({
        "apiVersion": "batch.isekiro.com/v1", "kind": "MysqlBackup",
        "metadata": {"name": "orders", "namespace": "shop"},
        "spec": {
            "schedule": "@daily", "source": {"host": "db", "credentialsSecretRef": {"name": "db"}},
            "destination": {"storageRef": {"name": name}},
            "retention": {"keepLast": 3}, "verify": {"mode": "Restore"},
        },
    }))
    .unwrap();
    kind.take_spec(&mut object)
}

fn orders() -> Object {
    Object {
        kind: "MysqlBackup".into(),
        namespace: "shop".into(),
        name: "orders".into(),
        uid: "3f2c".into(),
        ..Object::default()
    }
}

fn job(kind: &MysqlBackups, spec: &Value, change: impl FnOnce(&mut Seed)) -> Result<Job, String> {
    let mut seed = Seed::new("orders-28942560", Trigger::Schedule);
    change(&mut seed);
    kind.job(&orders(), spec, &seed)
}

fn pod(job: Job) -> PodSpec {
    job.spec.unwrap().template.spec.unwrap()
}

fn told(pod: &PodSpec) -> Value {
    let env = pod.containers[0].env.as_ref().unwrap();
    let spec = env.iter().find(|e| e.name == SPEC_ENV).unwrap();
    serde_json::from_str(&spec.value.as_ref().unwrap().replace("$$", "$")).unwrap()
}

fn read(kind: &MysqlBackups, spec: &Value) -> Vec<String> {
    let (_, problems) = kind.read(&orders(), spec).unwrap();
    problems.iter().map(ToString::to_string).collect()
}

#[test]
fn a_missing_storage_is_named_and_heals_when_it_appears() {
    let kind = MysqlBackups::new("runner:v1");
    let spec = kept(&kind, "bucket");
    let missing = "spec.destination.storageRef: there is no Storage \"bucket\" in namespace shop; create it, or correct the name: kubectl -n shop get storages.gobackup.io";
    assert_eq!(read(&kind, &spec), [missing]);
    let found = kind.conditions(&orders(), &spec);
    assert_eq!(
        (found[0].type_, found[0].status, found[0].reason),
        ("ReferencesResolved", false, "NotFound")
    );
    assert_eq!(found[0].message, missing);
    assert_eq!(job(&kind, &spec, |_| {}).unwrap_err(), missing);

    assert!(kind.set_reference(&bucket(), false), "that is news");
    assert_eq!(read(&kind, &spec), [""; 0]);
    let found = &kind.conditions(&orders(), &spec)[0];
    assert!(found.status && found.message.contains("spec.retention"));
    assert!(kind.set_reference(&bucket(), true));
    assert_eq!(read(&kind, &spec), [missing]);
}

#[test]
fn without_a_reference_there_is_nothing_to_resolve() {
    let kind = MysqlBackups::new("runner:v1");
    let spec = json!({"schedule": "@daily", "destination": {"s3": {"bucket": "b"}}, "source": {"host": "db", "credentialsSecretRef": {"name": "db"}}});
    assert_eq!(kind.conditions(&orders(), &spec), []);
    assert_eq!(read(&kind, &spec), [""; 0]);
    assert_eq!(
        kind.endpoint(&orders(), &spec, EndpointKind::Storage, "b"),
        None
    );
}

#[test]
fn a_bucket_becomes_files_and_a_destination() {
    let kind = MysqlBackups::new("runner:v1");
    kind.set_reference(&bucket(), false);
    let job = job(&kind, &kept(&kind, "bucket"), |_| {}).unwrap();
    insta::assert_snapshot!("storage_ref", serde_yaml::to_string(&job).unwrap());
}

/// Type, settings, and what the runner is told of them.
#[test]
fn every_type_of_storage_is_told_as_a_backup_is_told() {
    let login = json!({"name": "login", "key": "password"});
    let rows = [
        (
            json!({"type": "webdav", "config": {"root": "http://dav", "path": "/a/", "username": "u", "password_ref": login}}),
            json!({"service": "webdav", "root": "http://dav", "path": "a"}),
        ),
        (
            json!({"type": "ftp", "config": {"host": "h", "path": "/a", "password_ref": login, "explicit_tls": true}}),
            json!({"service": "ftp", "host": "h", "port": 21, "path": "/a", "explicitTls": true}),
        ),
        (
            json!({"type": "scp", "config": {"host": "h", "path": "a", "password_ref": login}}),
            json!({"service": "sftp", "host": "h", "port": 22, "path": "a"}),
        ),
        (
            json!({"type": "gcs", "config": {"bucket": "b", "credentials_ref": login}}),
            json!({"service": "gcs", "bucket": "b"}),
        ),
        (
            json!({"type": "azure", "config": {"account": "a", "tenant_id": "t", "client_id": "c", "client_secret_ref": login}}),
            json!({"service": "azure", "account": "a", "container": "gobackup"}),
        ),
        (
            json!({"type": "s3", "config": {"bucket": "b"}}),
            json!({"service": "s3", "provider": "s3", "bucket": "b"}),
        ),
    ];
    for (spec, expected) in rows {
        let kind = MysqlBackups::new("runner:v1");
        kind.set_reference(&storage("far", spec.clone()), false);
        let pod = pod(job(&kind, &kept(&kind, "far"), |_| {}).unwrap());
        let told = told(&pod)["destination"]["storage"].clone();
        for (field, value) in expected.as_object().unwrap() {
            assert_eq!(told[field], *value, "{field} of {spec}");
        }
        let secrets = spec.to_string().matches("\"login\"").count();
        let text = serde_json::to_string(&pod.volumes).unwrap();
        assert_eq!(
            text.matches("\"name\":\"login\"").count(),
            secrets,
            "{spec}"
        );
    }
}

#[test]
fn a_local_storage_is_its_volume() {
    let kind = MysqlBackups::new("runner:v1");
    let claim = json!({"path": "/dumps/", "persistentVolumeClaim": {"claimName": "disk"}});
    let disk = json!({"type": "local", "config": {"path": "x"}, "volume": claim});
    kind.set_reference(&storage("disk", disk), false);
    let pod = pod(job(&kind, &kept(&kind, "disk"), |_| {}).unwrap());
    let volumes = pod.volumes.as_ref().unwrap();
    let volume = volumes
        .iter()
        .find(|v| v.persistent_volume_claim.is_some())
        .unwrap();
    let mounts = pod.containers[0].volume_mounts.as_ref().unwrap();
    let mount = mounts.iter().find(|m| m.name == volume.name).unwrap();
    assert_eq!(
        (mount.mount_path.as_str(), mount.sub_path.as_deref()),
        ("/storage/disk", Some("dumps"))
    );
    let told = told(&pod)["destination"]["storage"].clone();
    assert_eq!(
        told,
        json!({"name": "disk", "keep": 0, "timeout": 300, "path": "x", "service": "local", "volume": {}})
    );
}

#[test]
fn what_can_not_be_stored_on_is_said_with_a_remedy() {
    let rows = [
        (
            json!({"type": "local", "config": {"path": "/backups"}}),
            "Storage bad: spec.volume: is not set",
        ),
        (
            json!({"type": "tape", "config": {}}),
            "Storage bad: spec.type: unknown storage type \"tape\"",
        ),
        (
            json!({"type": "s3", "config": {}}),
            "Storage bad: spec.config.bucket: is not set",
        ),
        (
            json!({"type": "s3", "config": {"bucket": "b", "path": "../x"}}),
            "Storage bad: spec.config.path: must not contain `..`",
        ),
    ];
    for (spec, said) in rows {
        let kind = MysqlBackups::new("runner:v1");
        kind.set_reference(&storage("bad", spec), false);
        let spec = kept(&kind, "bad");
        let problems = read(&kind, &spec);
        assert!(problems[0].starts_with(said), "{problems:?}");
        assert_eq!(
            kind.conditions(&orders(), &spec)[0].reason,
            "InvalidReference"
        );
    }
}

/// What opens artefacts reaches them; a notice needs nothing of the Storage, not even that it is there.
#[test]
fn every_action_but_a_notice_gets_the_storage() {
    let kind = MysqlBackups::new("runner:v1");
    let spec = kept(&kind, "bucket");
    let notice = |seed: &mut Seed| seed.action = Action::Notify;
    assert!(job(&kind, &spec, notice).is_ok());
    kind.set_reference(&bucket(), false);
    let notice = pod(job(&kind, &spec, notice).unwrap());
    assert_eq!(told(&notice)["destination"], Value::Null);
    for action in [Action::Verify, Action::Prune, Action::List, Action::Probe] {
        let pod = pod(job(&kind, &spec, |seed| seed.action = action).unwrap());
        let told = told(&pod);
        assert_eq!(told["destination"]["storage"]["bucket"], "b", "{action:?}");
    }
}

/// What moves no data ends, if only by its Job's limit; what moves data takes the time it takes.
#[test]
fn a_probe_and_a_list_do_not_stand_for_ever() {
    let kind = MysqlBackups::new("runner:v1");
    kind.set_reference(&bucket(), false);
    let spec = kept(&kind, "bucket");
    for (action, limit) in [
        (Action::Backup, None),
        (Action::Verify, None),
        (Action::Prune, None),
        (Action::Probe, Some(3600)),
        (Action::List, Some(3600)),
    ] {
        let job = job(&kind, &spec, |seed| seed.action = action).unwrap();
        let found = job.spec.unwrap().active_deadline_seconds;
        assert_eq!(found, limit, "{action:?}");
    }
}

/// What a report calls by its name is the Storage that was used.
#[test]
fn the_storage_of_a_report_is_the_one_that_is_named() {
    let kind = MysqlBackups::new("runner:v1");
    let mut bucket = bucket();
    bucket.metadata.name = Some("Bucket".into());
    kind.set_reference(&bucket, false);
    let spec = kept(&kind, "Bucket");
    let found = kind
        .endpoint(&orders(), &spec, EndpointKind::Storage, "bucket")
        .unwrap();
    assert_eq!(
        (found.name.as_str(), found.resource.kind.as_str()),
        ("Bucket", "Storage")
    );
    assert_eq!(
        kind.endpoint(&orders(), &spec, EndpointKind::Database, "bucket"),
        None
    );
    assert_eq!(
        kind.endpoint(&orders(), &spec, EndpointKind::Storage, "other"),
        None
    );
}
