//! What the kinds tell the controller, from the manifests people have.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::collections::HashSet;

use crds::request::Action;
use crds::run::{Run, RunResult, Trigger};
use crds::run_spec::SPEC_ENV;
use crds::time::{parse_rfc3339, to_k8s};
use k8s_openapi::api::core::v1::PodSpec;

use serde_json::json;

use super::*;

const SECRETS: [&str; 2] = ["marker-secret", "mysecretpassword"];

fn kind(which: Which) -> Backups {
    Backups {
        which,
        runner_image: "runner:v1".into(),
        gobackup_image: "gobackup:v3".into(),
        engine: RunEngine::Native,
        references: Arc::new(References::default()),
    }
}

/// Every document of the test data of crds.
fn documents() -> Vec<DynamicObject> {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../crds/tests/data/gobackup");
    let mut found = vec![];
    for entry in std::fs::read_dir(directory).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        for document in serde_yaml::Deserializer::from_str(&text) {
            let mut object = DynamicObject::deserialize(document).unwrap();
            object.metadata.namespace = Some("app".into());
            found.push(object);
        }
    }
    found
}

/// A Backup as the controller keeps it.
#[derive(Clone)]
struct Kept {
    object: Object,
    spec: Value,
}

impl std::ops::Deref for Kept {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.spec
    }
}

impl std::ops::DerefMut for Kept {
    fn deref_mut(&mut self) -> &mut Value {
        &mut self.spec
    }
}

/// What the controller keeps of a Backup of this name, once all references were seen.
fn world(name: &str, skip: &str) -> (Backups, Kept) {
    let documents = documents();
    let mine = documents.iter().find(|o| {
        let kind = o.types.as_ref().unwrap().kind.as_str();
        o.metadata.name.as_deref() == Some(name) && matches!(kind, "Backup" | "CronBackup")
    });
    let mut object = mine.unwrap().clone();
    let which = match object.types.as_ref().unwrap().kind.as_str() {
        "CronBackup" => Which::CronBackup,
        _ => Which::Backup,
    };
    let kind = kind(which);
    for document in documents
        .iter()
        .filter(|d| d.metadata.name.as_deref() != Some(skip))
    {
        kind.set_reference(document, false);
    }
    let spec = kind.take_spec(&mut object);
    let object = Object {
        kind: "Backup".into(),
        namespace: "app".into(),
        name: name.into(),
        uid: "u-1".into(),
        ..Object::default()
    };
    (kind, Kept { object, spec })
}

fn job(kind: &Backups, spec: &Kept) -> Job {
    let seed = Seed {
        slot: parse_rfc3339("2025-01-11T00:00:00Z"),
        scheduled_at: Some("2025-01-11T00:00:00Z".into()),
        ..Seed::new("nightly-28942560", Trigger::Schedule)
    };
    kind.job(&spec.object, spec, &seed).unwrap()
}

fn pod(job: &Job) -> &PodSpec {
    job.spec.as_ref().unwrap().template.spec.as_ref().unwrap()
}

/// What the runner is told.
fn told(job: &Job) -> Value {
    let env = pod(job).containers[0].env.as_ref().unwrap();
    let text = env
        .iter()
        .find(|e| e.name == SPEC_ENV)
        .unwrap()
        .value
        .clone()
        .unwrap();
    serde_json::from_str(&text.replace("$$", "$")).unwrap()
}

#[test]
fn settings_come_from_wherever_a_generation_had_them() {
    let rows: &[(&str, Option<&str>, bool)] = &[
        ("cron-g0", Some("0 0 * * *"), true),
        ("example-cronbackup", Some("* * * * *"), true),
        ("example-backup", None, true),
        ("cron-g2", Some("0 0 * * *"), true),
        ("once-g2", None, true),
        ("root-g3a", Some("0 1 * * *"), true),
        ("spec-g3", None, true),
        ("nightly", Some("15 2 * * *"), true),
        ("once", None, true),
        ("empty", None, false),
        ("odd-values", Some("not a schedule"), false),
    ];
    for (name, cron, good) in rows {
        let (kind, spec) = world(name, "");
        let (settings, problems) = kind.read(&spec.object, &spec).unwrap();
        assert_eq!(settings.schedule.as_deref(), *cron, "{name}");
        assert_eq!(problems.is_empty(), *good, "{name}: {problems:?}");
        assert_eq!(
            (settings.keep_good, settings.keep_failed),
            if *name == "odd-values" {
                (Some(0), Some(1))
            } else {
                (Some(3), Some(1))
            },
            "{name}"
        );
        assert_eq!(
            settings.concurrency,
            crds::parts::ConcurrencyPolicy::Forbid,
            "{name}"
        );
    }
}

#[test]
fn a_kind_without_the_field_is_suspended_by_annotation_and_resumed_where_it_was() {
    let (kind, spec) = world("example-cronbackup", "");
    let mut suspended = spec.object.clone();
    suspended.annotations = [(crds::labels::SUSPENDED.to_owned(), "true".to_owned())].into();
    assert!(kind.read(&suspended, &spec).unwrap().0.suspend);
    assert!(!kind.read(&spec.object, &spec).unwrap().0.suspend);
    assert_eq!(
        kind.resume(&spec)[1],
        json!({"op": "remove", "path": "/metadata/annotations/batch.isekiro.com~1suspended"})
    );
    let spec = json!({"spec": {"schedule": {"suspend": true}}});
    assert_eq!(
        kind.resume(&spec)[1],
        json!({"op": "replace", "path": "/spec/schedule/suspend", "value": false})
    );
}

#[test]
fn what_is_missing_is_named_and_heals_when_it_appears() {
    let (kind, spec) = world("nightly", "maindb");
    let found = kind.conditions(&spec.object, &spec);
    assert_eq!(
        (found[0].type_, found[0].status, found[0].reason),
        ("ReferencesResolved", false, "NotFound")
    );
    assert!(
        found[0]
            .message
            .contains("no Database \"maindb\" in namespace app"),
        "{}",
        found[0].message
    );
    assert!(!kind.read(&spec.object, &spec).unwrap().1.is_empty());
    let maindb = documents()
        .into_iter()
        .find(|d| d.metadata.name.as_deref() == Some("maindb"))
        .unwrap();
    assert!(kind.set_reference(&maindb, false));
    assert!(
        !kind.set_reference(&maindb, false),
        "the same again is no news"
    );
    assert!(kind.conditions(&spec.object, &spec)[0].status);
    assert!(kind.read(&spec.object, &spec).unwrap().1.is_empty());
    assert!(kind.set_reference(&maindb, true));
    assert!(!kind.conditions(&spec.object, &spec)[0].status);
}

#[test]
fn a_list_without_an_object_means_that_it_is_gone() {
    let (kind, spec) = world("nightly", "");
    let database = resources().remove(0);
    let seen = HashSet::from(["app/other".into()]);
    assert!(
        kind.retain_references(&database, Some("else"), &seen)
            .is_empty()
    );
    assert_eq!(
        kind.retain_references(&database, None, &seen),
        HashSet::from(["app".to_owned()])
    );
    assert!(!kind.conditions(&spec.object, &spec)[0].status);
}

#[test]
fn the_job_holds_the_plan_and_no_secret() {
    for name in ["nightly", "example-cronbackup", "root-g3a"] {
        let (kind, spec) = world(name, "");
        let job = job(&kind, &spec);
        let container = &pod(&job).containers[0];
        let text = serde_json::to_string(container).unwrap();
        assert!(SECRETS.iter().all(|s| !text.contains(s)), "{name}: {text}");
        assert_eq!(container.image.as_deref(), Some("runner:v1"));
        let told = told(&job);
        assert_eq!(told["plan"]["model"], name);
        assert_eq!(told["run"]["name"], "nightly-28942560");
        assert_eq!(told["workdir"], "/work");
        let mounts: Vec<&str> = container
            .volume_mounts
            .iter()
            .flatten()
            .map(|m| m.mount_path.as_str())
            .collect();
        assert!(
            mounts.contains(&"/work") && mounts.contains(&"/run/secrets/gobackup"),
            "{mounts:?}"
        );
    }
}

#[test]
fn receivers_and_keys_of_storages_are_mounted_at_paths_of_their_own() {
    let (kind, mut spec) = world("nightly", "");
    spec["spec"]["notifications"] =
        json!([{"type": "Webhook", "urlSecretKeyRef": {"name": "hooks", "key": "url"}}]);
    let job = job(&kind, &spec);
    let mounts = pod(&job).containers[0].volume_mounts.iter().flatten();
    let mut paths: Vec<&str> = mounts.map(|m| m.mount_path.as_str()).collect();
    paths.sort_unstable();
    let all = paths.len();
    paths.dedup();
    assert!(
        paths.len() == all && all > 2,
        "a pod with one path twice is refused: {paths:?}"
    );
}

/// The clients of a Backup come from the user's image, into which the runner is copied.
#[test]
fn a_client_image_gets_a_copy_of_the_runner() {
    let (kind, mut spec) = world("once", "");
    spec["spec"]["job"] = json!({"clientImage": "mongo:8", "imagePullPolicy": "Always"});
    insta::assert_snapshot!(
        "client_image",
        serde_yaml::to_string(&job(&kind, &spec)).unwrap()
    );
}

/// The next Job has what the reference says now (a changed spec that does not reach the next Job
/// is one of the field's faults).
#[test]
fn fault_13_a_changed_storage_reaches_the_next_job() {
    let (kind, spec) = world("nightly", "");
    assert_eq!(
        told(&job(&kind, &spec))["plan"]["storages"][0]["bucket"],
        "b"
    );
    let mut bucket = documents()
        .into_iter()
        .find(|d| d.metadata.name.as_deref() == Some("bucket"))
        .unwrap();
    bucket.data["spec"]["config"]["bucket"] = json!("other");
    assert!(kind.set_reference(&bucket, false));
    assert_eq!(
        told(&job(&kind, &spec))["plan"]["storages"][0]["bucket"],
        "other"
    );
}

#[test]
fn values_in_plain_text_come_as_files_too() {
    let (kind, spec) = world("example-cronbackup", "");
    let job = job(&kind, &spec);
    let annotations = job
        .spec
        .as_ref()
        .unwrap()
        .template
        .metadata
        .as_ref()
        .unwrap()
        .annotations
        .clone()
        .unwrap();
    let inline: Vec<&String> = annotations
        .iter()
        .filter(|(k, _)| k.contains("inline-"))
        .map(|(_, v)| v)
        .collect();
    assert!(
        inline.iter().any(|v| *v == "mysecretpassword")
            && inline.iter().any(|v| *v == "marker-secret")
    );
    let volume = pod(&job)
        .volumes
        .iter()
        .flatten()
        .find(|v| v.name == "gobackup-secrets")
        .unwrap();
    let sources = volume.projected.as_ref().unwrap().sources.as_ref().unwrap();
    assert_eq!(
        sources.iter().filter(|s| s.downward_api.is_some()).count(),
        inline.len()
    );
}

#[test]
fn the_originals_status_fields_keep_their_meaning() {
    let at = to_k8s(parse_rfc3339("2025-01-11T00:00:09Z").unwrap());
    let mut bad = Run::new("nightly-2", Trigger::Schedule, RunResult::Failed);
    bad.completion_time = Some(at.clone());
    bad.message = "why".into();
    let mut engine = ScheduleStatus {
        runs: vec![bad],
        consecutive_failures: Some(1),
        last_successful_time: Some(at.clone()),
        totals: Some(crds::status::Totals {
            due: 8,
            succeeded: 7,
            failed: 1,
            ..Default::default()
        }),
        ..ScheduleStatus::default()
    };
    for n in 0..9 {
        let name = format!("old-{n}");
        let mut run = Run::new(name, Trigger::Schedule, RunResult::Succeeded);
        run.slot = Some(at.clone());
        engine.runs.push(run);
    }
    let mut status = json!({});
    status::decorate(&mut status, &engine);
    assert_eq!(status["phase"], "Failed");
    assert_eq!(status["lastRun"]["jobName"], "nightly-2");
    assert_eq!(status["lastRun"]["message"], "why");
    assert_eq!(status["recentRuns"].as_array().unwrap().len(), 5);
    assert_eq!(
        (
            status["failureCount"].clone(),
            status["successCount"].clone()
        ),
        (json!(1), json!(7))
    );
    assert_eq!(status["lastBackupTime"], json!(at));
    assert_eq!(status["lastSuccessfulBackupTime"], json!(at));
}

/// What an older operator wrote of runs of years before does not stand beside a good run's.
#[test]
fn g5_an_old_status_is_replaced_whole() {
    let (kind, _) = world("nightly", "");
    let at = to_k8s(parse_rfc3339("2026-01-11T00:00:09Z").unwrap());
    let mut good = Run::new("nightly-29400000", Trigger::Schedule, RunResult::Succeeded);
    good.completion_time = Some(at);
    let engine = ScheduleStatus {
        runs: vec![good],
        ..ScheduleStatus::default()
    };
    let old = json!({
        "phase": "Failed", "failureCount": 12, "successCount": 900, "lastBackupTime": "2024-05-01T02:15:09Z",
        "lastRun": {"jobName": "nightly-1", "phase": "Failed", "message": "exit 1", "logs": "dial tcp: refused"},
        "recentRuns": [{"jobName": "nightly-1", "logs": "dial tcp: refused"}],
        "message": "exit 1", "logs": "dial tcp: refused",
        "conditions": [{"type": "Ready", "status": "False", "reason": "Old", "message": "m", "lastTransitionTime": "2024-05-01T02:15:09Z"}],
    });
    let patch = crate::apply::status_diff(&kind, &old, &engine)
        .unwrap()
        .unwrap();
    let mut stored = old;
    crate::fake_api::merge(&mut stored, &patch);
    let mut whole = serde_json::to_value(&engine).unwrap();
    status::decorate(&mut whole, &engine);
    assert_eq!(stored, whole);
    let text = stored.to_string();
    for gone in ["refused", "exit 1", "12", "900", "2024"] {
        assert!(!text.contains(gone), "{gone} in {text}");
    }
    // The same again writes nothing.
    assert!(
        crate::apply::status_diff(&kind, &stored, &engine)
            .unwrap()
            .is_none()
    );
}

/// One Job is all that is made: no CronJob or Secret of the Backup's name is looked at or replaced.
#[test]
fn fault_09_a_run_is_one_job_and_nothing_of_that_name_is_taken_over() {
    let (kind, spec) = world("nightly", "");
    let job = job(&kind, &spec);
    let owner = &job.metadata.owner_references.as_ref().unwrap()[0];
    assert_eq!((owner.uid.as_str(), owner.controller), ("u-1", Some(true)));
    let role = include_str!("../../../deploy/operator/role.yaml");
    let cron_jobs = role.split("- apiGroups").filter(|r| r.contains("cronjobs"));
    for rule in cron_jobs {
        let writes = ["create", "update", "patch", "delete"];
        assert!(writes.iter().all(|verb| !rule.contains(verb)), "{rule}");
    }
}

#[test]
fn fault_10_secrets_are_mounted_and_never_copied() {
    let (kind, spec) = world("nightly", "");
    let text = serde_json::to_string(&job(&kind, &spec)).unwrap();
    assert!(SECRETS.iter().all(|s| !text.contains(s)), "{text}");
    let role = include_str!("../../../deploy/operator/role.yaml");
    assert!(
        !role.contains("secrets"),
        "the operator has no right to Secrets"
    );
}

#[test]
fn fault_17_history_is_kept_by_count_and_not_by_a_minute() {
    let (kind, spec) = world("nightly", "");
    let job = job(&kind, &spec);
    assert_eq!(job.spec.as_ref().unwrap().ttl_seconds_after_finished, None);
    let (settings, _) = kind.read(&spec.object, &spec).unwrap();
    assert_eq!(
        (settings.keep_good, settings.keep_failed),
        (Some(3), Some(1))
    );
}

/// Fault 14: without a schedule nothing recurs; suspending starts nothing.
#[test]
fn fault_14_a_removed_schedule_is_gone_and_suspension_holds() {
    let (kind, mut spec) = world("nightly", "");
    spec["spec"]["schedule"] = json!({"suspend": true, "cron": "15 2 * * *"});
    assert!(kind.read(&spec.object, &spec).unwrap().0.suspend);
    spec["spec"].as_object_mut().unwrap().remove("schedule");
    assert_eq!(kind.read(&spec.object, &spec).unwrap().0.schedule, None);
}

fn built(_: &Seed) -> Result<Job, crate::engine::Unbuilt> {
    Ok(Job::default())
}

fn observed(name: &str, uid: &str) -> crate::engine::Observed {
    let created = parse_rfc3339("2025-01-11T00:00:30Z").unwrap();
    let (kind, spec) = world("nightly", "");
    let (mut settings, problems) = kind.read(&spec.object, &spec).unwrap();
    settings.schedule = Some("* * * * *".into());
    crate::engine::Observed {
        object: Object {
            kind: "Backup".into(),
            namespace: "app".into(),
            name: name.into(),
            uid: uid.into(),
            generation: Some(1),
            created,
            ..Object::default()
        },
        settings,
        problems,
        status: ScheduleStatus {
            controller: Some("backup-system/backup-operator".into()),
            ..ScheduleStatus::default()
        },
        kind_conditions: vec![],
        jobs: vec![],
        pods: vec![],
        failures: vec![],
        obstacles: vec![],
        foreign: None,
        foreign_jobs: vec![],
        installation: "backup-system/backup-operator".into(),
        foreign_installations: Default::default(),
        room: crate::engine::Room::default(),
        live: true,
        pods_live: true,
        leading_since: created,
    }
}

fn creations(seen: &crate::engine::Observed, at: &str) -> Vec<String> {
    crate::engine::plan(seen, parse_rfc3339(at).unwrap(), &built)
        .steps
        .into_iter()
        .filter_map(|step| match step {
            crate::engine::Step::CreateJob { seed, .. } => Some(seed.name),
            _ => None,
        })
        .collect()
}

/// A failed pod of a Job that tries again is no failed run, and no second run starts beside it.
#[test]
fn fault_07_a_job_that_tries_again_has_not_failed() {
    let (kind, spec) = world("nightly", "");
    let mut retrying = job(&kind, &spec);
    retrying.metadata.uid = Some("j-1".into());
    retrying.metadata.creation_timestamp =
        Some(to_k8s(parse_rfc3339("2025-01-11T00:01:00Z").unwrap()));
    retrying.status = serde_json::from_value(json!({
        "failed": 1, "active": 1, "startTime": "2025-01-11T00:01:00Z",
    }))
    .unwrap();
    let digest = crate::digest::job(&retrying).unwrap();
    assert_eq!(digest.outcome, crate::engine::JobOutcome::Active);

    let mut seen = observed("nightly", "u-1");
    let due = "2025-01-11T00:02:01Z";
    assert_eq!(creations(&seen, due).len(), 1, "it would start without");
    seen.jobs.push(digest);
    assert_eq!(creations(&seen, due), Vec::<String>::new());
}

/// What keeps an object from running must not keep its receivers from hearing of it.
#[test]
fn a_notice_needs_nothing_the_object_refers_to() {
    let (kind, mut spec) = world("empty", "");
    let secret = json!({"name": "hooks", "key": "url"});
    let receiver = json!({"type": "Webhook", "urlSecretKeyRef": secret, "events": ["Overdue"]});
    spec["spec"]["notifications"] = json!([receiver]);
    spec["spec"]["job"] = json!({"image": "mine:v1", "serviceAccountName": "mine"});
    let (settings, problems) = kind.read(&spec.object, &spec).unwrap();
    assert!(settings.notices.overdue && !settings.notices.failure);
    assert!(!problems.is_empty(), "it can't run");
    let object = Object {
        kind: "Backup".into(),
        namespace: "app".into(),
        name: "empty".into(),
        uid: "u-1".into(),
        ..Object::default()
    };
    let mut seed = Seed::new("probe", Trigger::Manual);
    seed.action = Action::Notify;
    seed.notice = Some(crds::run_spec::RunNotice {
        event: crds::parts::NotificationEvent::Overdue,
        run: String::new(),
        slot: Some("2025-01-11T00:00:00Z".into()),
        reason: "Overdue".into(),
        message: "no run was ever good".into(),
    });
    let job = kind.job(&object, &spec, &seed).unwrap();
    assert_eq!(pod(&job).containers[0].image.as_deref(), Some("runner:v1"));
    assert_eq!(pod(&job).service_account_name, None);
    let told = told(&job);
    assert_eq!(told["notice"]["event"], "Overdue");
    assert_eq!(
        told["notifications"][0]["urlFile"],
        "/run/secrets/backup/notify/0/url"
    );
    assert_eq!(told["plan"], Value::Null);
}

/// Whatever is edited, a run starts at its slot or by request, and never by the edit.
#[test]
fn fault_15_an_edit_starts_no_run() {
    let mut seen = observed("nightly", "u-1");
    seen.settings.schedule = Some("0 3 * * *".into());
    for generation in 1..4 {
        seen.object.generation = Some(generation);
        seen.object.schedule_edited = parse_rfc3339("2025-01-11T00:05:00Z");
        let at = "2025-01-11T00:05:01Z";
        assert_eq!(creations(&seen, at), Vec::<String>::new());
        seen.status = crate::engine::plan(&seen, parse_rfc3339(at).unwrap(), &built).status;
    }
}

/// Jobs are known by the UID they carry, whatever their names begin with.
#[test]
fn fault_16_a_backup_never_claims_the_jobs_of_one_whose_name_begins_alike() {
    let (kind, spec) = world("nightly", "");
    let made = |name: &str, uid: &str| {
        let object = Object {
            kind: "Backup".into(),
            namespace: "app".into(),
            name: name.into(),
            uid: uid.into(),
            ..Object::default()
        };
        let seed = Seed {
            slot: parse_rfc3339("2025-01-11T00:00:00Z"),
            ..Seed::new(format!("{name}-28942560"), Trigger::Schedule)
        };
        kind.job(&object, &spec, &seed).unwrap()
    };
    let of = |job: &Job| {
        let labels = job.metadata.labels.clone().unwrap();
        let owner = job.metadata.owner_references.clone().unwrap();
        (
            labels[crds::labels::OWNER_UID].clone(),
            owner[0].uid.clone(),
        )
    };
    assert_eq!(of(&made("db", "u-1")), ("u-1".into(), "u-1".into()));
    assert_eq!(of(&made("db-prod", "u-2")), ("u-2".into(), "u-2".into()));
}

#[test]
fn fault_18_every_name_fits_whatever_the_length_of_the_backups() {
    use crds::names::{immediate_name, manual_name, slot_name};
    let slot = parse_rfc3339("2025-01-11T00:00:00Z").unwrap();
    let mut seen = HashSet::new();
    for length in 1..=253 {
        let name = "b".repeat(length);
        let uid = format!("u-{length}");
        for made in [
            slot_name(&name, &uid, slot),
            manual_name(&name, &uid, "7f3a9c"),
            immediate_name(&name, &uid),
        ] {
            // The Job's name becomes a label of its pods: at most 63 characters.
            assert!(made.len() <= 63, "{made}");
            assert!(seen.insert(made.clone()), "{made} is made twice");
        }
    }
}

/// References stay in the Backup's namespace: who may read one may not reach into another. What is
/// missing says which namespace was looked in.
#[test]
fn fault_20_another_namespace_is_never_read_and_the_message_says_where_was_looked() {
    let (kind, spec) = world("nightly", "maindb");
    let mut elsewhere = documents()
        .into_iter()
        .find(|d| d.metadata.name.as_deref() == Some("maindb"))
        .unwrap();
    elsewhere.metadata.namespace = Some("other".into());
    assert!(kind.set_reference(&elsewhere, false));
    let found = &kind.conditions(&spec.object, &spec)[0];
    assert!(!found.status);
    assert!(
        found.message.contains("in namespace app"),
        "{}",
        found.message
    );
}

/// The image that a default install pulls is the one that is built: one version, one spelling.
#[test]
fn fault_21_the_chart_pulls_the_tag_that_is_built() {
    let chart = include_str!("../../../deploy/helm/backup-operator/Chart.yaml");
    let values = include_str!("../../../deploy/helm/backup-operator/values.yaml");
    let version = crds::VERSION;
    assert!(chart.contains(&format!("version: {version}\n")), "{chart}");
    let app = chart
        .lines()
        .find(|l| l.starts_with("appVersion:"))
        .unwrap();
    assert_eq!(app, format!("appVersion: {version}"));
    let helpers = include_str!("../../../deploy/helm/backup-operator/templates/_helpers.tpl");
    assert_eq!(
        helpers
            .matches("(printf \"v%s\" .Chart.AppVersion)")
            .count(),
        2
    );
    for repository in ["backup-operator", "backup-runner"] {
        assert!(
            values.contains(&format!("repository: {repository}\n")),
            "{values}"
        );
    }
    let deployed = include_str!("../../../deploy/install.yaml");
    assert!(deployed.contains(&format!("backup-operator:v{version}")));
    assert!(deployed.contains(&format!("backup-runner:v{version}")));
}

/// What a report calls by its name in the plan is the object that the plan was made from.
#[test]
fn an_endpoint_of_a_report_is_the_object_that_was_used() {
    use crds::report::EndpointKind::{Database, Storage};
    let rows = [
        ("nightly", Database, "maindb", "gobackup.io", "Database"),
        ("nightly", Storage, "bucket", "gobackup.io", "Storage"),
        (
            "example-cronbackup",
            Database,
            "example-postgresql",
            "database.gobackup.io",
            "PostgreSQL",
        ),
        (
            "example-cronbackup",
            Storage,
            "example-s3",
            "storage.gobackup.io",
            "S3",
        ),
    ];
    for (name, kind, endpoint, group, expected) in rows {
        let (backups, spec) = world(name, "");
        let found = backups
            .endpoint(&spec.object, &spec, kind, endpoint)
            .unwrap();
        assert_eq!(
            (found.name.as_str(), found.resource.group.as_str()),
            (endpoint, group)
        );
        assert_eq!(found.resource.kind, expected);
        assert_eq!(found.conditions, []);
    }
    let (backups, spec) = world("nightly", "");
    assert_eq!(
        backups.endpoint(&spec.object, &spec, Storage, "maindb"),
        None
    );
    assert_eq!(
        backups.endpoint(&spec.object, &spec, Database, "elsewhere"),
        None
    );
}

/// Conditions are remembered as last seen, and are no reason to look at the Backups again.
#[test]
fn conditions_of_an_endpoint_are_remembered_and_wake_nobody() {
    use crds::report::EndpointKind::Storage;
    let (backups, spec) = world("nightly", "");
    let mut bucket = documents()
        .into_iter()
        .find(|d| d.metadata.name.as_deref() == Some("bucket"))
        .unwrap();
    let condition = json!({
        "type": "Reachable", "status": "False", "reason": "AccessDenied", "message": "m",
        "lastTransitionTime": "2025-01-11T00:00:00Z",
    });
    bucket.data["status"] = json!({"conditions": [condition]});
    assert!(!backups.set_reference(&bucket, false));
    let seen = |backups: &Backups| {
        let found = backups
            .endpoint(&spec.object, &spec, Storage, "bucket")
            .unwrap();
        serde_json::to_value(found.conditions).unwrap()
    };
    assert_eq!(seen(&backups), json!([condition]));
    assert!(backups.set_reference(&bucket, true));
    bucket.data["status"] = Value::Null;
    assert!(backups.set_reference(&bucket, false));
    assert_eq!(seen(&backups), json!([]));
}

/// The spec of the Backup `nightly` with these options of its pod.
fn with_job(job: Value) -> (Backups, Kept) {
    let (kind, mut spec) = world("nightly", "");
    spec["spec"]["job"] = job;
    (kind, spec)
}

/// gobackup's image runs what was copied from ours, restricted, with its settings and state on volumes.
#[test]
fn by_gobackup_its_image_gets_the_runner() {
    let (kind, spec) = with_job(json!({"engine": "gobackup", "image": "mine/gobackup:v3"}));
    let job = job(&kind, &spec);
    insta::assert_snapshot!("gobackup", serde_yaml::to_string(&job).unwrap());
    assert_eq!(told(&job)["gobackup"], true);
}

#[test]
fn the_engine_and_its_image_come_from_the_operator_where_the_object_is_silent() {
    let images = |engine: RunEngine, options: Value| {
        let (mut kind, spec) = with_job(options);
        kind.engine = engine;
        let job = job(&kind, &spec);
        let pod = pod(&job).clone();
        let init = pod.init_containers.iter().flatten().next().cloned();
        (
            init.and_then(|c| c.image),
            pod.containers[0].image.clone().unwrap(),
            told(&job)["gobackup"] == true,
        )
    };
    let runner = || Some("runner:v1".to_owned());
    let rows = [
        (RunEngine::Native, json!({}), (None, "runner:v1", false)),
        (
            RunEngine::Gobackup,
            json!({}),
            (runner(), "gobackup:v3", true),
        ),
        (
            RunEngine::Gobackup,
            json!({"image": "g"}),
            (runner(), "g", true),
        ),
        (
            RunEngine::Gobackup,
            json!({"engine": "native"}),
            (None, "runner:v1", false),
        ),
        (
            RunEngine::Native,
            json!({"engine": "gobackup"}),
            (runner(), "gobackup:v3", true),
        ),
        // With the native engine it is an image of the runner.
        (
            RunEngine::Native,
            json!({"image": "mine"}),
            (None, "mine", false),
        ),
    ];
    for (engine, options, (init, image, gobackup)) in rows {
        let found = images(engine, options.clone());
        assert_eq!(
            found,
            (init, image.to_owned(), gobackup),
            "{engine:?} {options}"
        );
    }
}

/// Only the run itself needs gobackup.
#[test]
fn what_is_asked_of_the_archives_runs_in_the_runners_image() {
    let (kind, spec) = with_job(json!({"engine": "gobackup", "image": "mine/gobackup:v3"}));
    let object = Object {
        kind: "Backup".into(),
        namespace: "app".into(),
        name: "nightly".into(),
        uid: "u-1".into(),
        ..Object::default()
    };
    for action in [
        Action::Verify,
        Action::Prune,
        Action::Probe,
        Action::List,
        Action::Notify,
    ] {
        let mut seed = Seed::new("nightly-x", Trigger::Manual);
        seed.action = action;
        let job = kind.job(&object, &spec, &seed).unwrap();
        assert_eq!(pod(&job).init_containers, None, "{action:?}");
        assert_eq!(
            pod(&job).containers[0].image.as_deref(),
            Some("runner:v1"),
            "{action:?}"
        );
        assert_ne!(told(&job)["gobackup"], true, "{action:?}");
    }
}

/// What nobody could check is no reason for a failed run, but for none.
#[test]
fn what_gobackup_can_not_do_is_a_condition_before_the_first_run() {
    let (kind, mut spec) = with_job(json!({"engine": "gobackup"}));
    assert!(kind.read(&spec.object, &spec).unwrap().1.is_empty());
    spec["spec"]["compressWith"] = json!({"type": "lzop"});
    let problems = kind.read(&spec.object, &spec).unwrap().1;
    assert_eq!(problems[0].path, "spec.compressWith.type");
    let condition = &kind.conditions(&spec.object, &spec)[0];
    assert_eq!(
        (condition.status, condition.reason),
        (false, "InvalidReference")
    );
    assert!(
        condition.message.contains("engine: native"),
        "{}",
        condition.message
    );
}

fn verification(kind: &Backups, spec: &Kept) -> Job {
    let mut seed = Seed::new("nightly-v-x", Trigger::Manual);
    seed.action = Action::Verify;
    seed.options.run = Some("nightly-28942560".into());
    seed.options.mode = Some("Restore".into());
    kind.job(&spec.object, spec, &seed).unwrap()
}

/// A verification by restore has room of its own, the age identity, and no key of a database.
#[test]
fn an_archive_is_verified_by_restore_in_a_job_of_its_own() {
    let verify = json!({
        "mode": "Restore", "every": 2, "resources": {"limits": {"memory": "2Gi"}},
        "volume": {"ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "20Gi"}}}}}},
    });
    let (kind, spec) = with_job(json!({
        "verify": verify, "resources": {"limits": {"memory": "1Gi"}},
        "decryption": {"age": {"identitySecretKeyRef": {"name": "age", "key": "identity"}}},
    }));
    let (settings, problems) = kind.read(&spec.object, &spec).unwrap();
    assert_eq!((settings.verify_every, problems), (Some(2), vec![]));
    let made = verification(&kind, &spec);
    insta::assert_snapshot!("verify", serde_yaml::to_string(&made).unwrap());
    let databases = told(&job(&kind, &spec))["plan"]["databases"].to_string();
    assert!(databases.contains("/password"), "{databases}");
    assert!(
        !told(&made)["plan"]["databases"]
            .to_string()
            .contains("/password")
    );
    // Without the field it runs on request, with room on the node.
    let (kind, spec) = with_job(json!({}));
    assert_eq!(kind.read(&spec.object, &spec).unwrap().0.verify_every, None);
    let made = verification(&kind, &spec);
    let volumes = pod(&made).volumes.as_ref().unwrap();
    assert!(
        volumes
            .iter()
            .any(|v| v.name == "backup-verify" && v.empty_dir.is_some())
    );
}

/// The servers are those of the image that has the clients; gobackup's has none.
#[test]
fn a_verification_runs_where_the_servers_are() {
    let (kind, spec) = with_job(json!({"clientImage": "postgres:17"}));
    let made = verification(&kind, &spec);
    assert_eq!(
        pod(&made).containers[0].image.as_deref(),
        Some("postgres:17")
    );
    assert_eq!(told(&made)["clientImage"], "postgres:17");
    assert!(pod(&made).init_containers.is_some());
    let (kind, spec) = with_job(json!({"clientImage": "postgres:17", "engine": "gobackup"}));
    let made = verification(&kind, &spec);
    assert_eq!(pod(&made).containers[0].image.as_deref(), Some("runner:v1"));
    assert_eq!(told(&made)["clientImage"], Value::Null);
}

#[test]
fn a_verification_that_can_not_run_is_told_at_once() {
    let (kind, spec) = with_job(json!({"verify": {"mode": "Restore", "every": 0, "volume": {}}}));
    let problems = kind.read(&spec.object, &spec).unwrap().1;
    let paths: Vec<&str> = problems.iter().map(|p| p.path.as_str()).collect();
    assert_eq!(paths, ["spec.job.verify.every", "spec.job.verify.volume"]);
    let policy = crate::policy::Policy {
        forbid_host_path: true,
        ..crate::policy::Policy::default()
    };
    let node = json!({"verify": {"mode": "Restore", "volume": {"hostPath": {"path": "/etc"}}}});
    let (kind, spec) = with_job(node);
    let found = policy.check(
        &verification(&kind, &spec).spec.unwrap().template,
        "runner:v1",
    );
    assert_eq!(found.len(), 1, "{found:?}");
    // A dump that nobody restores never passes.
    let (kind, mut spec) = with_job(json!({"verify": {"mode": "Restore"}}));
    let all = json!({"type": "postgresql", "config": {"host": "h", "username": "u", "all_databases": true}});
    let documents = documents();
    let mine = documents
        .iter()
        .find(|d| d.types.as_ref().unwrap().kind == "Database")
        .unwrap();
    let mut every = mine.clone();
    every.metadata.name = Some("everything".into());
    every.data["spec"] = all;
    kind.set_reference(&every, false);
    spec["spec"]["databaseRefs"] = json!([{"name": "everything"}]);
    let condition = &kind.conditions(&spec.object, &spec)[0];
    assert!(
        condition.message.contains("the verification never passes"),
        "{}",
        condition.message
    );
}
