#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use chrono::{DateTime, Duration, Utc};
use crds::report::Report;
use crds::request::{Action, Request};
use crds::restore::{RestorePhase, RestoreSpec, RestoreStatus};
use crds::run::{Run, RunResult, Trigger};
use crds::time::{parse_rfc3339, rfc3339, to_k8s};
use serde_json::{Value, json};

use super::archive::Archived;
use super::job::Stored;
use super::observe::{Backup, Named, Observed};
use super::plan::{Plan, Step, plan};
use super::{Restores, job};
use crate::context::{ApiClient, Clock, Config, Context, Leadership};
use crate::engine::{Ended, JobDigest, JobOutcome, Object, PodDigest};
use crate::fake_api::{Fault, Server, State};
use crate::metrics::Metrics;

fn now() -> DateTime<Utc> {
    parse_rfc3339("2025-01-15T10:30:00Z").unwrap()
}

fn spec(text: &str) -> RestoreSpec {
    serde_yaml::from_str(text).unwrap()
}

const FROM_RUN: &str = "
from: {name: shop, run: shop-1}
to: {host: db2, credentialsSecretRef: {name: db2}, database: copy}
";

fn backup(spec: &str) -> Backup {
    let mut failed = Run::new("shop-2", Trigger::Schedule, RunResult::Failed);
    failed.reason = "AccessDenied".into();
    Backup {
        uid: "b1".into(),
        spec: serde_yaml::from_str(&format!("schedule: '@daily'\n{spec}")).unwrap(),
        runs: vec![
            Run::new("shop-3", Trigger::Schedule, RunResult::Running),
            failed,
            Run::new("shop-1", Trigger::Schedule, RunResult::Succeeded),
        ],
    }
}

const ON_STORAGE: &str = "destination: {storageRef: {name: s}}";

fn storage(text: &str) -> crds::storage::StorageSpec {
    serde_yaml::from_str(text).unwrap()
}

const ON_CLAIM: &str =
    "destination: {volume: {path: /a, persistentVolumeClaim: {claimName: store}}}";

fn seen(text: &str) -> Observed {
    Observed {
        object: Object {
            kind: "Restore".into(),
            namespace: "ns".into(),
            name: "copy".into(),
            uid: "r1".into(),
            generation: Some(1),
            created: now(),
            ..Object::default()
        },
        resource_version: "1".into(),
        spec: Ok(spec(text)),
        status: RestoreStatus::default(),
        job: Named::Free,
        pods: vec![],
        backup: Some(backup(ON_CLAIM)),
        archived: None,
        storage: None,
        failure: None,
        obstacle: None,
        runner_image: "runner:v1".into(),
        policy: crate::policy::Policy::default(),
    }
}

fn a_job(outcome: JobOutcome) -> Named {
    Named::Ours(Box::new(JobDigest {
        name: "copy-r1".into(),
        uid: "j1".into(),
        slot: None,
        trigger: Trigger::Manual,
        request_id: None,
        action: crds::request::Action::Restore,
        created: now(),
        started: Some(now()),
        suspended: false,
        ran: false,
        deleting: false,
        failed: 0,
        attempts: 1,
        outcome,
    }))
}

fn a_pod(message: &str, exit_code: i32) -> PodDigest {
    PodDigest {
        name: "p".into(),
        uid: "p1".into(),
        job_uid: "j1".into(),
        created: now(),
        started: true,
        trouble: None,
        ended: Some(Ended {
            exit_code,
            reason: "Completed".into(),
            message: message.into(),
            at: Some(now()),
        }),
        failures: i32::from(exit_code != 0),
        held: None,
        gone: false,
    }
}

/// Steps in words, phase and reason.
fn told(plan: &Plan) -> (Vec<String>, Option<RestorePhase>, String) {
    let steps = plan.steps.iter().map(|s| match s {
        Step::Create(_) => "create".to_owned(),
        Step::Delete { foreground, .. } => format!("delete {foreground}"),
        Step::Event(e) => e.reason.clone(),
    });
    (
        steps.collect(),
        plan.status.phase,
        plan.status.reason.clone(),
    )
}

fn condition(plan: &Plan, type_: &str) -> String {
    let found = crds::condition::get(&plan.status.conditions, type_);
    found.map_or("none".to_owned(), |c| format!("{} {}", c.status, c.reason))
}

/// A request to end it ends it once, whether its Job is there or not; what is final stays.
#[test]
fn u12_a_cancelled_restore_fails_and_its_job_goes_after_that_is_known() {
    use RestorePhase::{Failed, Succeeded};
    let ask = |seen: &mut Observed, at: DateTime<Utc>| {
        let mut request = Request::new(Action::Cancel, "7f3a", "alice", at);
        request.reason = "wrong database".into();
        let key = Request::annotation_key(&request.id);
        seen.object
            .annotations
            .insert(key, request.annotation_value());
    };
    let mut waiting = seen(FROM_RUN);
    ask(&mut waiting, now());
    let found = plan(&waiting, now());
    assert_eq!(
        told(&found),
        (
            vec!["RestoreFailed".to_owned()],
            Some(Failed),
            "Cancelled".to_owned()
        )
    );
    assert_eq!(
        found.status.message,
        "cancelled by alice (wrong database); it had not started, and nothing was changed"
    );
    let mut running = seen(FROM_RUN);
    running.job = a_job(JobOutcome::Active);
    ask(&mut running, now());
    let found = plan(&running, now());
    assert_eq!(found.status.phase, Some(Failed));
    assert!(
        found.status.message.contains("look at the target"),
        "{}",
        found.status.message
    );
    assert!(!told(&found).0.contains(&"delete true".to_owned()));
    // Then the Job goes, and nothing is written twice.
    running.status = found.status.clone();
    let after = plan(&running, now());
    assert_eq!(told(&after).0, ["delete true"]);
    assert_eq!(after.status, running.status);
    // One that is too old is not heard.
    let mut late = seen(FROM_RUN);
    ask(&mut late, now() - Duration::hours(1));
    assert_eq!(told(&plan(&late, now())).0, ["create"]);
    let mut done = seen(FROM_RUN);
    done.status.phase = Some(Succeeded);
    ask(&mut done, now());
    assert_eq!(plan(&done, now()).status.phase, Some(Succeeded));
}

#[test]
fn what_starts_and_what_does_not() {
    use RestorePhase::{Failed, Pending};
    type Row = (
        &'static str,
        fn(&mut Observed),
        &'static [&'static str],
        Option<RestorePhase>,
        &'static str,
    );
    let rows: [Row; 13] = [
        ("a good run", |_| {}, &["create"], None, ""),
        (
            "a run that left the list may still be stored",
            |s| s.spec.as_mut().unwrap().from.run = Some("shop-0".into()),
            &["create"],
            None,
            "",
        ),
        (
            "no such backup",
            |s| s.backup = None,
            &["BackupNotFound"],
            Some(Pending),
            "BackupNotFound",
        ),
        (
            "a run that goes on",
            |s| s.spec.as_mut().unwrap().from.run = Some("shop-3".into()),
            &["RunNotFinished"],
            Some(Pending),
            "RunNotFinished",
        ),
        (
            "a failed run",
            |s| s.spec.as_mut().unwrap().from.run = Some("shop-2".into()),
            &["RunNotGood", "RestoreFailed"],
            Some(Failed),
            "RunNotGood",
        ),
        (
            "a Storage that is not there yet",
            |s| s.backup = Some(backup(ON_STORAGE)),
            &["NotFound"],
            Some(Pending),
            "NotFound",
        ),
        (
            "a Storage that has to be corrected",
            |s| {
                s.backup = Some(backup(ON_STORAGE));
                s.storage = Some(storage("{type: s3, config: {}}"));
            },
            &["InvalidReference"],
            Some(Pending),
            "InvalidReference",
        ),
        (
            "a Storage that is there",
            |s| {
                s.backup = Some(backup(ON_STORAGE));
                s.storage = Some(storage("{type: s3, config: {bucket: b}}"));
            },
            &["create"],
            None,
            "",
        ),
        (
            "a spec without a choice",
            |s| s.spec.as_mut().unwrap().from.run = None,
            &["InvalidSpec", "RestoreFailed"],
            Some(Failed),
            "InvalidSpec",
        ),
        (
            "a foreign_job's Job",
            |s| s.job = Named::Taken,
            &["NameTaken"],
            Some(Pending),
            "NameTaken",
        ),
        (
            "a policy",
            |s| s.policy.images = vec!["other:*".into()],
            &["create"],
            None,
            "",
        ),
        (
            "a Job that was deleted",
            |s| s.status.job_uid = Some("j1".into()),
            &["RestoreFailed"],
            Some(Failed),
            "JobDeleted",
        ),
        ("being deleted", |s| s.object.deleting = true, &[], None, ""),
    ];
    for (what, change, steps, phase, reason) in rows {
        let mut observed = seen(FROM_RUN);
        change(&mut observed);
        let plan = plan(&observed, now());
        let expected: Vec<String> = steps.iter().map(|s| (*s).to_owned()).collect();
        assert_eq!(told(&plan), (expected, phase, reason.to_owned()), "{what}");
    }
    let mut denied = seen(&format!("{FROM_RUN}\nimage: evil:v1"));
    denied.policy.images = vec!["other:*".into()];
    let plan = plan(&denied, now());
    assert_eq!(condition(&plan, "Accepted"), "False PolicyDenied");
    assert_eq!(told(&plan).1, Some(RestorePhase::Pending));
}

#[test]
fn a_job_is_followed_to_its_end() {
    let mut observed = seen(FROM_RUN);
    observed.job = a_job(JobOutcome::Active);
    let started = plan(&observed, now());
    assert_eq!(
        told(&started),
        (
            vec!["RestoreStarted".into()],
            Some(RestorePhase::Running),
            String::new()
        )
    );
    assert_eq!(condition(&started, "Restored"), "Unknown Running");
    assert_eq!(started.status.job_uid.as_deref(), Some("j1"));

    let mut report = Report::new("copy-r1");
    report.good = Some(true);
    report.reason = "Restored".into();
    report.rows = Some(7);
    observed.status = started.status;
    observed.job = a_job(JobOutcome::Complete { at: now() });
    observed.pods = vec![a_pod(&report.to_termination_message(), 0)];
    let ended = plan(&observed, now());
    assert_eq!(
        told(&ended),
        (
            vec!["Restored".into()],
            Some(RestorePhase::Succeeded),
            "Restored".into()
        )
    );
    assert_eq!(ended.status.rows, Some(7));
    assert_eq!(condition(&ended, "Ready"), "True Restored");

    // Nothing more is said; a day later the Job goes.
    observed.status = ended.status;
    let calm = plan(&observed, now());
    assert_eq!(calm.steps, vec![]);
    assert_eq!(calm.wake, Some(now() + Duration::hours(24)));
    let late = plan(&observed, now() + Duration::hours(25));
    assert_eq!(told(&late).0, ["delete false"]);
    observed.job = Named::Free;
    assert_eq!(plan(&observed, now() + Duration::hours(26)).steps, vec![]);
}

#[test]
fn what_never_starts_is_failed_with_the_pods_reason_and_then_ended() {
    let mut observed = seen(FROM_RUN);
    observed.job = a_job(JobOutcome::Active);
    observed.pods = vec![PodDigest {
        started: false,
        ended: None,
        trouble: Some(("ImagePullBackOff".into(), "no such image".into())),
        ..a_pod("", 0)
    }];
    let waits = plan(&observed, now() + Duration::seconds(599));
    assert_eq!(
        told(&waits),
        (
            vec!["RestorePending".into()],
            Some(RestorePhase::Pending),
            "ImagePullBackOff".into()
        )
    );
    assert_eq!(waits.status.message, "not started: no such image");
    let failed = plan(&observed, now() + Duration::seconds(600));
    assert_eq!(
        told(&failed),
        (
            vec!["RestoreFailed".into()],
            Some(RestorePhase::Failed),
            "ImagePullBackOff".into()
        )
    );
    observed.status = failed.status;
    let then = plan(&observed, now() + Duration::seconds(601));
    assert_eq!(told(&then).0, ["delete true"]);
}

#[test]
fn the_job_of_a_backup_on_a_claim() {
    let text = format!(
        "{FROM_RUN}\noverwrite: true\ntables: [shop.orders]\nwithoutForeignKeys: true\ndecryption: {{age: {{identitySecretKeyRef: {{name: keys, key: id}}}}}}"
    );
    let observed = seen(&text);
    let job = job::build(
        &observed.object,
        observed.spec.as_ref().unwrap(),
        &Stored::Backup(observed.backup.as_ref().unwrap()),
        None,
        "runner:v1",
    );
    insta::assert_snapshot!("on_claim", serde_yaml::to_string(&job.unwrap()).unwrap());
}

#[test]
fn the_runner_is_told_how_to_load_and_what_to_compare() {
    let mut observed = seen(&format!("{FROM_RUN}\nverify: Whole"));
    observed.spec.as_mut().unwrap().to.sessions = Some(3);
    let job = job::build(
        &observed.object,
        observed.spec.as_ref().unwrap(),
        &Stored::Backup(observed.backup.as_ref().unwrap()),
        None,
        "runner:v1",
    );
    let text = serde_json::to_string(&job.unwrap()).unwrap();
    for told in [r#"\"verify\":\"Whole\""#, r#"\"sessions\":3"#] {
        assert!(text.contains(told), "{told}: {text}");
    }
}

/// The Storage's settings and secrets as a backup's run has them, and the image that has the client.
#[test]
fn the_job_of_a_backup_on_a_storage_with_a_client_image() {
    let mut observed = seen(FROM_RUN);
    observed.backup = Some(backup(&format!(
        "{ON_STORAGE}\nsource: {{clientImage: mysql:9.4}}"
    )));
    observed.storage = Some(storage(
        "{type: webdav, config: {root: 'http://dav', username: u, password_ref: {name: dav, key: pw}}}",
    ));
    let plan = plan(&observed, now());
    let Some(Step::Create(job)) = plan.steps.first() else {
        panic!("{plan:?}");
    };
    insta::assert_snapshot!("on_storage", serde_yaml::to_string(&job).unwrap());
    observed.spec.as_mut().unwrap().image = Some("mine:v1".into());
    let job = job::build(
        &observed.object,
        observed.spec.as_ref().unwrap(),
        &Stored::Backup(observed.backup.as_ref().unwrap()),
        None,
        "runner:v1",
    );
    let pod = job.unwrap().spec.unwrap().template.spec.unwrap();
    assert_eq!(pod.containers[0].image.as_deref(), Some("mine:v1"));
    assert_eq!(pod.init_containers, None);
}

#[test]
fn a_location_may_be_a_storage() {
    let mut observed = seen(
        "from: {location: {destination: {storageRef: {name: s}}, latest: true, object: {name: shop}}}
to: {host: db2, credentialsSecretRef: {name: db2}}",
    );
    observed.backup = None;
    let waits = plan(&observed, now());
    assert_eq!(waits.status.reason, "NotFound");
    assert!(
        waits.status.message.starts_with(
            "spec.from.location.destination.storageRef: there is no Storage \"s\" in namespace ns"
        ),
        "{}",
        waits.status.message
    );
    observed.storage = Some(storage("{type: s3, config: {bucket: b}}"));
    assert_eq!(told(&plan(&observed, now())).0, ["create"]);
}

#[test]
fn an_untyped_backup_lends_its_store_and_not_its_password() {
    let mut observed = seen(FROM_RUN);
    observed.backup = Some(backup(
        "backupEnvs: [{name: SQLPATH, value: /data}, {name: PASSWORD, value: geheim}]
volumes: [{name: data, hostPath: {path: /srv}}]
volumeMounts: [{name: data, mountPath: /data}]
nodeSelector: {disk: big}",
    ));
    let job = job::build(
        &observed.object,
        observed.spec.as_ref().unwrap(),
        &Stored::Backup(observed.backup.as_ref().unwrap()),
        None,
        "runner:v1",
    );
    let text = serde_json::to_string(&job.unwrap()).unwrap();
    assert!(text.contains(r#"{"name":"SQLPATH","value":"/data"}"#) && text.contains("/srv"));
    assert!(text.contains(r#""nodeSelector":{"disk":"big"}"#));
    assert!(!text.contains("geheim"));
}

const OF_ARCHIVE: &str = "
from: {kind: Backup, name: Nightly, run: nightly-1, database: maindb, storage: disk}
to: {host: pg2, credentialsSecretRef: {name: pg2}, database: copy}
";

fn archived(references: bool) -> Archived {
    let mut found = crds::gobackup::References::default();
    let storages = [
        (
            "bucket",
            json!({"type": "s3", "config": {"bucket": "b", "access_key_id": "geheim-id",
            "secret_access_key_ref": {"name": "keys", "key": "secret"}}}),
        ),
        (
            "disk",
            json!({"type": "local", "config": {"path": "/a"},
            "volume": {"persistentVolumeClaim": {"claimName": "store"}, "path": "x"}}),
        ),
    ];
    for (name, spec) in storages.into_iter().filter(|_| references) {
        let key = crds::gobackup::ObjectKey {
            group: "gobackup.io",
            kind: "Storage",
            name: name.to_owned(),
        };
        found.insert(key, &spec);
    }
    let body = json!({"spec": {
        "databaseRefs": [{"name": "gone"}],
        "storageRefs": [{"name": "bucket"}, {"name": "disk"}],
        "encodeWith": {"type": "openssl", "password": "geheim"},
        "job": {"nodeSelector": {"disk": "big"}},
    }});
    Archived {
        uid: "b1".into(),
        body: serde_json::from_value(body).unwrap(),
        references: found,
        runs: vec![
            Run::new("nightly-2", Trigger::Schedule, RunResult::Failed),
            Run::new("nightly-1", Trigger::Schedule, RunResult::Succeeded),
        ],
    }
}

fn seen_archive(change: impl FnOnce(&mut Observed)) -> Observed {
    let mut seen = seen(OF_ARCHIVE);
    seen.backup = None;
    seen.archived = Some(archived(true));
    change(&mut seen);
    seen
}

#[test]
fn what_starts_of_an_archive_and_what_does_not() {
    use RestorePhase::{Failed, Pending};
    type Row = (
        fn(&mut Observed),
        &'static str,
        Option<RestorePhase>,
        &'static str,
    );
    let rows: [Row; 6] = [
        (|_| {}, "", None, ""),
        (
            |s| s.archived = None,
            "BackupNotFound",
            Some(Pending),
            "there is no Backup Nightly in namespace ns",
        ),
        (
            |s| s.archived = Some(archived(false)),
            "ReferencesNotResolved",
            Some(Pending),
            "there is no Storage \"bucket\" in namespace ns",
        ),
        (
            |s| s.spec.as_mut().unwrap().from.storage = Some("tape".into()),
            "ReferencesNotResolved",
            Some(Pending),
            "Nightly names no Storage \"tape\"; it stores on bucket, disk",
        ),
        (
            |s| s.spec.as_mut().unwrap().from.run = Some("nightly-2".into()),
            "RunNotGood",
            Some(Failed),
            "the newest good one is nightly-1",
        ),
        (
            |s| s.spec.as_mut().unwrap().from.kind = Some("Storage".into()),
            "InvalidSpec",
            Some(Failed),
            "must be MysqlBackup, Backup or CronBackup",
        ),
    ];
    for (change, reason, phase, words) in rows {
        let plan = plan(&seen_archive(change), now());
        assert_eq!(plan.status.reason, reason);
        assert_eq!(plan.status.phase, phase, "{reason}");
        let message = &plan.status.message;
        assert!(message.contains(words), "{reason}: {message}");
        let created = plan.steps.iter().any(|s| matches!(s, Step::Create(_)));
        assert_eq!(created, reason.is_empty(), "{reason}");
    }
}

#[test]
fn the_job_of_an_archive_reads_one_storage_and_needs_no_database() {
    let plan = plan(&seen_archive(|_| {}), now());
    let [Step::Create(job)] = &plan.steps[..] else {
        panic!("{:?}", plan.steps)
    };
    insta::assert_snapshot!("of_archive", serde_yaml::to_string(job).unwrap());
    // Several sessions read a copy, which has a place and a limit.
    let several = seen_archive(|s| {
        s.spec.as_mut().unwrap().to.sessions = Some(3);
        let job = &mut s.archived.as_mut().unwrap().body.spec.as_mut().unwrap().job;
        job.as_mut().unwrap().workdir_size_limit = Some("7Gi".into());
    });
    let work = super::plan::plan(&several, now());
    let [Step::Create(several)] = &work.steps[..] else {
        panic!("{:?}", work.steps)
    };
    let text = serde_json::to_string(several).unwrap();
    for words in [
        r#"{"emptyDir":{"sizeLimit":"7Gi"},"name":"gobackup-work"}"#,
        r#"{"mountPath":"/work","name":"gobackup-work"}"#,
    ] {
        assert!(text.contains(words), "{text}");
    }
    let every = seen_archive(|s| s.spec.as_mut().unwrap().from.storage = None);
    let plan = super::plan::plan(&every, now());
    let text = serde_json::to_string(
        &plan
            .steps
            .iter()
            .map(|s| match s {
                Step::Create(job) => {
                    serde_json::to_value(&job.spec.as_ref().unwrap().template.spec).unwrap()
                }
                _ => Value::Null,
            })
            .collect::<Vec<_>>(),
    )
    .unwrap();
    assert!(text.contains("bucket") && text.contains("claimName"));
    assert!(!text.contains("geheim"), "{text}");
}

/// The runner is told up to where binary logs are replayed, and chooses the dump.
#[test]
fn the_job_of_a_restore_to_a_moment() {
    let seen = seen(
        "from: {name: shop, latest: true}\nto: {host: db, credentialsSecretRef: {name: db}}\nreplay: {beforeGtid: 0-1-5}",
    );
    let plan = plan(&seen, now());
    let [Step::Create(job)] = &plan.steps[..] else {
        panic!("{:?}", plan.steps)
    };
    let pod = job.spec.as_ref().unwrap().template.spec.as_ref().unwrap();
    let env = pod.containers[0].env.as_ref().unwrap();
    let spec = env.iter().find(|e| e.name == crds::run_spec::SPEC_ENV);
    let told: Value = serde_json::from_str(spec.unwrap().value.as_ref().unwrap()).unwrap();
    assert_eq!(
        told["options"]["restore"],
        json!({"replay": {"beforeGtid": "0-1-5"}})
    );
}

/// The volume is mounted, no credentials are, and the runner is told the directory.
#[test]
fn the_job_of_a_restore_onto_a_volume() {
    let seen = seen_archive(|s| {
        let to = "volume: {persistentVolumeClaim: {claimName: data}, path: /kv/}\netcd: {name: m1, initialCluster: 'm1=http://m1:2380'}";
        s.spec.as_mut().unwrap().to = serde_yaml::from_str(to).unwrap();
    });
    let plan = plan(&seen, now());
    let [Step::Create(job)] = &plan.steps[..] else {
        panic!("{:?}", plan.steps)
    };
    let text = serde_json::to_string(job).unwrap();
    assert!(
        text.contains(r#"{"mountPath":"/restore","name":"restore-target"}"#)
            && text.contains(
                r#"{"name":"restore-target","persistentVolumeClaim":{"claimName":"data"}}"#
            ),
        "{text}"
    );
    let pod = job.spec.as_ref().unwrap().template.spec.as_ref().unwrap();
    let env = pod.containers[0].env.as_ref().unwrap();
    let told: Value = serde_json::from_str(env[0].value.as_ref().unwrap()).unwrap();
    assert_eq!(
        told["options"]["restore"],
        json!({"dump": "maindb", "run": "nightly-1", "directory": "/restore/kv",
            "etcd": {"name": "m1", "initialCluster": "m1=http://m1:2380"}})
    );
    assert_eq!(told["source"], Value::Null);
    assert!(!text.contains("source/username"), "{text}");
}

// The operator dies before and after each call.

fn a_world() -> State {
    let mut state = State {
        now: now(),
        ..State::default()
    };
    state.put(
        "restores",
        json!({
            "apiVersion": "batch.isekiro.com/v1", "kind": "Restore", "metadata": {"name": "copy"},
            "spec": {"from": {"name": "shop", "latest": true}, "to": {"host": "db", "credentialsSecretRef": {"name": "db"}}},
        }),
    );
    state.put(
        "mysqlbackups",
        json!({
            "apiVersion": "batch.isekiro.com/v1", "kind": "MysqlBackup", "metadata": {"name": "shop"},
            "spec": {"schedule": "@daily", "destination": {"s3": {"bucket": "b"}}},
        }),
    );
    state
}

struct World {
    server: Server,
    clock: Arc<AtomicI64>,
    restores: Restores,
}

impl World {
    fn of(mut server: Server, keep: bool) -> Self {
        if keep {
            server.keep_points();
        }
        let clock = Arc::new(AtomicI64::new(server.state().now.timestamp()));
        let read = clock.clone();
        let clock_of =
            Clock::new(move || DateTime::from_timestamp(read.load(Ordering::SeqCst), 0).unwrap());
        let ctx = Context {
            client: ApiClient(server.client()),
            leadership: Leadership::always(now()),
            clock: clock_of,
            config: Arc::new(Config {
                runner_image: "runner:v1".into(),
                ..Config::default()
            }),
            metrics: Metrics::default(),
        };
        Self {
            server,
            clock,
            restores: Restores::new(ctx),
        }
    }

    /// The cluster's part: a Job runs for a while, its pod ends with a report.
    fn move_on(&self) {
        let mut state = self.server.state();
        state.now += Duration::seconds(5);
        self.clock.store(state.now.timestamp(), Ordering::SeqCst);
        let (time, all) = (state.now, state.objects.clone());
        let Some(((_, name), job)) = all.iter().find(|((r, _), _)| r == "jobs") else {
            return;
        };
        let uid = job["metadata"]["uid"].as_str().unwrap().to_owned();
        let begun = job["status"]["startTime"].as_str().unwrap();
        let done = parse_rfc3339(begun).unwrap() + Duration::seconds(20);
        if time < done || !job["status"]["conditions"].is_null() {
            return;
        }
        let mut report = Report::new(name);
        report.good = Some(true);
        report.reason = "Restored".into();
        let labels = job["metadata"]["labels"].clone();
        state.put(
            "pods",
            json!({
                "metadata": {"name": "p", "labels": labels, "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": uid, "controller": true}]},
                "status": {"containerStatuses": [{"name": "backup", "image": "i", "imageID": "", "ready": false, "restartCount": 0,
                    "state": {"terminated": {"exitCode": 0, "reason": "Completed", "message": report.to_termination_message(), "finishedAt": rfc3339(time)}}}]},
            }),
        );
        state.change("jobs", name, |job| {
            job["status"]["completionTime"] = json!(rfc3339(time));
            job["status"]["conditions"] = json!([{"type": "Complete", "status": "True", "lastTransitionTime": rfc3339(time)}]);
        });
    }

    /// Until nothing happens for a while. Phase, how many Jobs were created, names of events.
    async fn play(&self) -> (Value, usize, Vec<String>) {
        for _ in 0..30 {
            // An error is tried again later.
            let _ = self.restores.reconcile("default", "copy").await;
            self.move_on();
        }
        let state = self.server.state();
        let events = state.objects.keys().filter(|(r, _)| r == "events");
        (
            state.get("restores", "copy").unwrap()["status"]["phase"].clone(),
            state.created.values().sum(),
            events.map(|(_, name)| name.clone()).collect(),
        )
    }
}

#[tokio::test(start_paused = true)]
async fn a_crash_or_a_fault_at_any_call_neither_loses_nor_doubles_the_job() {
    let plain = World::of(Server::of(a_world()), true);
    let ending = plain.play().await;
    assert_eq!(
        (&ending.0, ending.1, ending.2.len()),
        (&json!("Succeeded"), 1, 2)
    );
    let points = plain.server.points();
    let mut tries = 0;
    for (call, sides) in points.iter().enumerate() {
        for state in sides {
            let again = World::of(Server::of(state.clone()), false);
            assert_eq!(again.play().await, ending, "crash around call {call}");
            tries += 1;
        }
        for fault in [
            Fault::Refused(500),
            Fault::Refused(409),
            Fault::Refused(429),
            Fault::AnswerLost,
        ] {
            let mut state = sides[0].clone();
            state.fault = Some((state.calls + 1, fault));
            let again = World::of(Server::of(state), false);
            let (phase, jobs, _) = again.play().await;
            assert_eq!((&phase, jobs), (&ending.0, 1), "{fault:?} at call {call}");
            tries += 1;
        }
    }
    println!("{} calls, {tries} tries", points.len());
    assert!(points.len() > 8);
}

#[test]
fn the_status_is_small() {
    let mut observed = seen(FROM_RUN);
    observed.status.start_time = Some(to_k8s(now()));
    observed.backup = None;
    let plan = plan(&observed, now());
    assert!(serde_json::to_string(&plan.status).unwrap().len() < 4096);
}
