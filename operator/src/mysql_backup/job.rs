//! The Job of a run. PURE.

use std::collections::BTreeMap;

use crds::bounds;
use crds::labels;
use crds::mounts::Mounts;
use crds::mysql_backup::{MysqlBackupSpec, RestartPolicy};
use crds::parts::VolumeDestination;
use crds::plan::{Credential, Storage};
use crds::pod::overlay;
use crds::request::Action;
use crds::run_spec::{ObjectId, OperatorTells, RunId, RunSpec, SPEC_VERSION};
use crds::schedule::parse_go_duration;
use k8s_openapi::api::batch::v1::{
    Job, JobSpec, PodFailurePolicy, PodFailurePolicyOnExitCodesRequirement,
    PodFailurePolicyOnPodConditionsPattern, PodFailurePolicyRule,
};
use k8s_openapi::api::core::v1::{
    Container, EmptyDirVolumeSource, EnvVar, PodSecurityContext, PodSpec, PodTemplateSpec,
    ResourceRequirements, SecurityContext,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use serde_json::Value;

use super::observe::{self, STARTUP};
use crate::engine::{Object, Seed};
use crate::job::pod::{in_client_image, pull_policy, some};

/// Where the runner keeps a scratch server.
const VERIFY_MOUNT: &str = "/run/backup-verify";
/// Name of its volume.
const VERIFY_VOLUME: &str = "backup-verify";
/// Seconds to SIGKILL where the spec is silent.
const GRACE: i64 = 60;
/// Seconds a notice may take from the start of its pod.
const NOTICE_SECONDS: i64 = 120;
/// Seconds to SIGKILL of its pod.
const NOTICE_GRACE: i64 = 30;
/// Retries where the spec is silent.
const BACKOFF_LIMIT: i32 = 2;

/// Builds the Job of a run.
///
/// # Errors
/// A sentence, where the spec can't be said as a Job.
pub(crate) fn build(
    object: &Object,
    api_version: &str,
    spec: &MysqlBackupSpec,
    seed: &Seed,
    runner_image: &str,
) -> Result<Job, String> {
    build_stored(object, api_version, spec, seed, runner_image, None)
}

/// As [`build`], for an object that stores on this Storage.
///
/// # Errors
/// A sentence, where the spec can't be said as a Job.
pub(super) fn build_stored(
    object: &Object,
    api_version: &str,
    spec: &MysqlBackupSpec,
    seed: &Seed,
    runner_image: &str,
    storage: Option<Storage<Credential>>,
) -> Result<Job, String> {
    if seed.action == Action::Notify {
        let spec = notifier(spec, runner_image);
        return assemble(object, api_version, &spec, seed, runner_image, None);
    }
    assemble(object, api_version, spec, seed, runner_image, storage)
}

/// The spec of the pod that passes a notice on: what it needs to speak to receivers, and nothing of
/// what may have kept the run from its end: its image, volumes, nodes, account and limits.
fn notifier(spec: &MysqlBackupSpec, runner_image: &str) -> MysqlBackupSpec {
    let own = observe::is_own(spec, runner_image);
    let kept = |name: &str| name == "TZ" || own && name == observe::BOT;
    let quantity = |text: &str| Quantity(text.to_owned());
    MysqlBackupSpec {
        schedule: spec.schedule.clone(),
        backup_envs: spec
            .backup_envs
            .iter()
            .filter(|e| kept(&e.name))
            .cloned()
            .collect(),
        image_pull_policy: spec.image_pull_policy.filter(|_| own),
        image_pull_secrets: spec.image_pull_secrets.clone(),
        tolerations: spec.tolerations.clone(),
        pod_metadata: spec.pod_metadata.clone(),
        pod_security_context: spec.pod_security_context.clone().filter(|_| own),
        security_context: spec.security_context.clone().filter(|_| own),
        notifications: spec.notifications.clone(),
        // Whether somebody was told is not known of one that was killed: none is told twice.
        backoff_limit: Some(0),
        active_deadline_seconds: Some(NOTICE_SECONDS + STARTUP + NOTICE_GRACE),
        termination_grace_period_seconds: Some(NOTICE_GRACE),
        // Namespaces with a quota want all four.
        resources: Some(ResourceRequirements {
            requests: Some(BTreeMap::from([
                ("cpu".to_owned(), quantity("10m")),
                ("memory".to_owned(), quantity("32Mi")),
            ])),
            limits: Some(BTreeMap::from([
                ("cpu".to_owned(), quantity("500m")),
                ("memory".to_owned(), quantity("128Mi")),
            ])),
            ..ResourceRequirements::default()
        }),
        ..MysqlBackupSpec::default()
    }
}

fn assemble(
    object: &Object,
    api_version: &str,
    spec: &MysqlBackupSpec,
    seed: &Seed,
    runner_image: &str,
    storage: Option<Storage<Credential>>,
) -> Result<Job, String> {
    let own = observe::is_own(spec, runner_image);
    let (labels, annotations) = metadata(object, spec, seed);
    let mut ours = Mounts::default();
    let run = run_spec(object, spec, seed, own, storage, &mut ours);
    let inline = ours.annotations();
    let mut pod = pod(spec, seed, runner_image, &run, ours)?;
    if let Some(image) = client_image(spec, seed, own) {
        in_client_image(&mut pod, image);
    }
    Ok(Job {
        metadata: ObjectMeta {
            name: Some(seed.name.clone()),
            namespace: Some(object.namespace.clone()),
            labels: Some(labels.clone()),
            annotations: Some(annotations.clone()),
            owner_references: Some(vec![OwnerReference {
                api_version: api_version.to_owned(),
                kind: object.kind.clone(),
                name: object.name.clone(),
                uid: object.uid.clone(),
                controller: Some(true),
                block_owner_deletion: Some(true),
            }]),
            ..ObjectMeta::default()
        },
        spec: Some(JobSpec {
            backoff_limit: Some(if scratch_server(seed) {
                // What differs once differs again.
                0
            } else {
                spec.backoff_limit.unwrap_or(BACKOFF_LIMIT)
            }),
            active_deadline_seconds: active_deadline(spec, own),
            pod_failure_policy: failure_policy(spec, own),
            pod_replacement_policy: Some("Failed".to_owned()),
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta {
                    labels: Some(labels),
                    annotations: Some(annotations.into_iter().chain(inline).collect()),
                    ..ObjectMeta::default()
                }),
                spec: Some(pod),
            },
            ..JobSpec::default()
        }),
        ..Job::default()
    })
}

/// The image that has the clients, for what speaks to the server.
fn client_image<'a>(spec: &'a MysqlBackupSpec, seed: &Seed, own: bool) -> Option<&'a str> {
    let speaks = matches!(seed.action, Action::Backup | Action::Probe);
    let image = spec.source.as_ref()?.client_image.as_deref()?;
    (own && speaks && !image.is_empty()).then_some(image)
}

/// True for a verification by restore.
pub(crate) fn scratch_server(seed: &Seed) -> bool {
    seed.action == Action::Verify && seed.options.mode.as_deref() == Some("Restore")
}

type Pairs = BTreeMap<String, String>;

/// Labels and annotations of Job and pod: the user's, then ours.
fn metadata(object: &Object, spec: &MysqlBackupSpec, seed: &Seed) -> (Pairs, Pairs) {
    let user = spec.pod_metadata.clone().unwrap_or_default();
    let (mut labels, mut annotations) = (user.labels, user.annotations);
    let mut label = |key: &str, value: &str| labels.insert(key.to_owned(), value.to_owned());
    label(labels::MANAGED_BY, labels::MANAGER);
    label(labels::OWNER_UID, &object.uid);
    let mut note = |key: &str, value: &str| annotations.insert(key.to_owned(), value.to_owned());
    note(labels::OWNER_KIND, &object.kind);
    note(labels::OWNER_NAME, &object.name);
    note(labels::TRIGGER, seed.trigger.as_str());
    if let Some(at) = &seed.scheduled_at {
        note(labels::SCHEDULED_AT, at);
    }
    if let Some(id) = &seed.request_id {
        note(labels::REQUEST_ID, id);
    }
    if seed.action != Action::Backup {
        note(labels::ACTION, seed.action.as_str());
    }
    (labels, annotations)
}

fn pod(
    spec: &MysqlBackupSpec,
    seed: &Seed,
    runner_image: &str,
    run: &RunSpec,
    mut ours: Mounts,
) -> Result<PodSpec, String> {
    let own = observe::is_own(spec, runner_image);
    let mut volumes = spec.volumes.clone();
    let mut mounts = spec.volume_mounts.clone();
    if own && seed.action != Action::Notify {
        ours.scratch();
    }
    if scratch_server(seed) {
        let verify = spec.verify.as_ref();
        let volume = verify.and_then(|v| v.volume.clone());
        let volume = volume.unwrap_or_else(|| VolumeDestination {
            empty_dir: Some(EmptyDirVolumeSource::default()),
            ..VolumeDestination::default()
        });
        ours.volume(VERIFY_VOLUME, VERIFY_MOUNT, &volume);
    }
    let ours = ours.finish();
    volumes.extend(ours.0);
    mounts.extend(ours.1);
    let container = Container {
        name: labels::CONTAINER.to_owned(),
        image: Some(
            spec.image
                .clone()
                .unwrap_or_else(|| runner_image.to_owned()),
        ),
        image_pull_policy: spec.image_pull_policy.map(pull_policy).map(str::to_owned),
        args: some(spec.args.clone()),
        env: Some(env(spec, run)?),
        env_from: some(spec.env_from.clone()),
        volume_mounts: some(mounts),
        resources: spec
            .verify
            .as_ref()
            .filter(|_| scratch_server(seed))
            .and_then(|v| v.resources.clone())
            .or_else(|| spec.resources.clone()),
        security_context: container_security(spec, own)?,
        termination_message_policy: Some("File".to_owned()),
        ..Container::default()
    };
    Ok(PodSpec {
        containers: vec![container],
        restart_policy: Some(restart_policy(spec).to_owned()),
        volumes: some(volumes),
        node_selector: (!spec.node_selector.is_empty()).then(|| spec.node_selector.clone()),
        tolerations: some(spec.tolerations.clone()),
        affinity: spec.affinity.clone(),
        priority_class_name: spec.priority_class_name.clone(),
        service_account_name: spec.service_account_name.clone(),
        image_pull_secrets: some(spec.image_pull_secrets.clone()),
        automount_service_account_token: own.then_some(false),
        enable_service_links: own.then_some(false),
        security_context: pod_security(spec, own)?,
        termination_grace_period_seconds: Some(grace(spec)),
        ..PodSpec::default()
    })
}

/// What the runner is told; it holds no secret.
fn run_spec(
    object: &Object,
    spec: &MysqlBackupSpec,
    seed: &Seed,
    own: bool,
    storage: Option<Storage<Credential>>,
    mounts: &mut Mounts,
) -> RunSpec {
    let options = serde_json::to_value(&seed.options).unwrap_or_default();
    RunSpec {
        version: SPEC_VERSION,
        action: seed.action,
        object: ObjectId {
            kind: object.kind.clone(),
            namespace: object.namespace.clone(),
            name: object.name.clone(),
            uid: object.uid.clone(),
        },
        run: RunId {
            name: seed.name.clone(),
            slot: seed.slot.map(crds::time::rfc3339),
            trigger: seed.trigger,
        },
        cluster_id: object.cluster.clone(),
        // A verification speaks to its own server alone.
        source: spec
            .source
            .as_ref()
            .filter(|_| !scratch_server(seed))
            .map(|s| mounts.source(s)),
        destination: match storage {
            Some(storage) => Some(mounts.storage(storage)),
            None => spec.destination.as_ref().map(|d| mounts.destination(d)),
        },
        client_image: client_image(spec, seed, own).map(str::to_owned),
        compression: spec.compression,
        encryption: spec.encryption.clone(),
        recipients_file: spec.encryption.as_ref().and_then(|e| mounts.recipients(e)),
        // Only what opens artefacts gets the key.
        identity_file: spec
            .decryption
            .as_ref()
            .filter(|_| seed.action == Action::Verify)
            .and_then(|d| mounts.identity(d)),
        retention: spec.retention.clone(),
        notifications: if scratch_server(seed) {
            vec![]
        } else {
            mounts.notifications(&spec.notifications)
        },
        notice: seed.notice.clone(),
        operator_tells: operator_tells(spec, seed, own),
        after_failure: seed.after_failure,
        timeout_seconds: if seed.action == Action::Notify {
            Some(NOTICE_SECONDS)
        } else {
            own.then(|| timeout(spec)).flatten()
        },
        literal_variables: Some(literal_variables(&spec.backup_envs)),
        options: if options == serde_json::json!({}) {
            Value::Null
        } else {
            options
        },
    }
}

/// The last of each name counts, as in [`env`].
fn literal_variables(variables: &[EnvVar]) -> Vec<String> {
    let last = |i: usize, name: &str| !variables[i + 1..].iter().any(|later| later.name == name);
    let open = variables.iter().enumerate().filter(|(i, e)| {
        let secret = e
            .value_from
            .as_ref()
            .is_some_and(|from| from.secret_key_ref.is_some());
        !secret && last(*i, &e.name)
    });
    let mut names: Vec<String> = open.map(|(_, e)| e.name.clone()).collect();
    names.sort();
    names
}

/// Whom the pods of a run leave to the operator when it fails.
fn operator_tells(spec: &MysqlBackupSpec, seed: &Seed, own: bool) -> OperatorTells {
    if seed.action != Action::Backup {
        return OperatorTells::default();
    }
    OperatorTells {
        notifications: !spec.notifications.is_empty(),
        api_url: own && observe::has_bot(&spec.backup_envs),
    }
}

/// The environment: the user's with the last of each name (as an apply would keep it), then ours.
fn env(spec: &MysqlBackupSpec, run: &RunSpec) -> Result<Vec<EnvVar>, String> {
    let mut all = spec.backup_envs.clone();
    all.extend(crds::pod::env(run)?);
    let last = |i: usize, name: &str| !all[i + 1..].iter().any(|later| later.name == name);
    let kept: Vec<bool> = all
        .iter()
        .enumerate()
        .map(|(i, e)| last(i, &e.name))
        .collect();
    let mut keep = kept.into_iter();
    all.retain(|_| keep.next().unwrap_or(true));
    Ok(all)
}

/// The user's pod security context over ours; a user's own image gets the user's alone.
fn pod_security(spec: &MysqlBackupSpec, own: bool) -> Result<Option<PodSecurityContext>, String> {
    if !own {
        return Ok(spec.pod_security_context.clone());
    }
    let ours = crds::pod::pod_security();
    overlay(&ours, spec.pod_security_context.as_ref()).map(Some)
}

fn container_security(
    spec: &MysqlBackupSpec,
    own: bool,
) -> Result<Option<SecurityContext>, String> {
    if !own {
        return Ok(spec.security_context.clone());
    }
    let ours = crds::pod::container_security();
    overlay(&ours, spec.security_context.as_ref()).map(Some)
}

/// Exit 2 of our runner means wrong settings, which no retry mends; an evicted pod burns no retry.
fn failure_policy(spec: &MysqlBackupSpec, own: bool) -> Option<PodFailurePolicy> {
    if spec.restart_policy != RestartPolicy::Never {
        return None;
    }
    let settings = PodFailurePolicyRule {
        action: "FailJob".to_owned(),
        on_exit_codes: Some(PodFailurePolicyOnExitCodesRequirement {
            container_name: Some(labels::CONTAINER.to_owned()),
            operator: "In".to_owned(),
            values: vec![crds::report::exit::SETTINGS],
        }),
        on_pod_conditions: None,
    };
    let disruption = PodFailurePolicyRule {
        action: "Ignore".to_owned(),
        on_exit_codes: None,
        on_pod_conditions: Some(vec![PodFailurePolicyOnPodConditionsPattern {
            type_: "DisruptionTarget".to_owned(),
            status: "True".to_owned(),
        }]),
    };
    let rules = if own {
        vec![settings, disruption]
    } else {
        vec![disruption]
    };
    Some(PodFailurePolicy { rules })
}

/// Seconds the Job may take: as written, else TIMEOUT with time to start and to stop.
fn active_deadline(spec: &MysqlBackupSpec, own: bool) -> Option<i64> {
    let startup = bounds::startup_seconds(spec.startup_deadline_seconds.unwrap_or(STARTUP));
    let known = own.then(|| env_timeout(spec)).flatten();
    spec.active_deadline_seconds
        .or_else(|| known.map(|t| t.saturating_add(startup).saturating_add(grace(spec))))
}

/// Seconds after which the runner stops itself: TIMEOUT, else so that it is ahead of the Job.
fn timeout(spec: &MysqlBackupSpec) -> Option<i64> {
    let limit = spec
        .active_deadline_seconds
        .map(|s| s.saturating_sub(grace(spec)).max(1));
    match (env_timeout(spec), limit) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// TIMEOUT of the environment: whole hours, or a Go duration.
fn env_timeout(spec: &MysqlBackupSpec) -> Option<i64> {
    let text = spec
        .backup_envs
        .iter()
        .rev()
        .find(|e| e.name == "TIMEOUT")?
        .value
        .as_deref()?
        .trim();
    let seconds = match text.parse::<i64>() {
        Ok(hours) => hours.checked_mul(3600)?,
        Err(_) => parse_go_duration(text).ok()?.div_euclid(1_000_000_000),
    };
    (seconds > 0).then_some(seconds)
}

fn grace(spec: &MysqlBackupSpec) -> i64 {
    spec.termination_grace_period_seconds.unwrap_or(GRACE)
}

fn restart_policy(spec: &MysqlBackupSpec) -> &'static str {
    match spec.restart_policy {
        RestartPolicy::OnFailure => "OnFailure",
        RestartPolicy::Never => "Never",
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use super::*;
    use crds::MysqlBackup;
    use crds::run::Trigger;
    use crds::time::parse_rfc3339;

    const RUNNER: &str = "backup-runner:v1";

    fn built(yaml: &str, change: impl FnOnce(&mut Seed)) -> Job {
        let backup: MysqlBackup = serde_yaml::from_str(yaml).unwrap();
        let object = Object {
            kind: "MysqlBackup".into(),
            namespace: "shop".into(),
            name: backup.metadata.name.clone().unwrap(),
            uid: "3f2c".into(),
            ..Object::default()
        };
        let mut seed = Seed {
            slot: parse_rfc3339("2025-01-11T00:00:00Z"),
            scheduled_at: Some("2025-01-11T00:00:00Z".into()),
            ..Seed::new("mysqlbackup-sample-28942560", Trigger::Schedule)
        };
        change(&mut seed);
        build(&object, "batch.isekiro.com/v1", &backup.spec, &seed, RUNNER).unwrap()
    }

    fn snapshot(job: &Job) -> String {
        serde_yaml::to_string(job).unwrap()
    }

    #[test]
    fn the_original_manifest_with_an_image_of_its_own() {
        let job = built(
            include_str!("../../tests/fixtures/mysqlbackup-original.yaml"),
            |_| {},
        );
        insta::assert_snapshot!("original", snapshot(&job));
    }

    #[test]
    fn the_original_manifest_with_our_image_is_restricted() {
        let text = include_str!("../../tests/fixtures/mysqlbackup-original.yaml");
        let job = built(&text.replace("mysqlbackup-v2:alpha6", RUNNER), |_| {});
        insta::assert_snapshot!("original_own_image", snapshot(&job));
    }

    #[test]
    fn typed_fields_become_files_and_paths() {
        let job = built(
            include_str!("../../tests/fixtures/mysqlbackup-typed.yaml"),
            |seed| {
                seed.action = Action::Verify;
                seed.request_id = Some("7f".into());
                seed.options.run = Some("shop-1".into());
            },
        );
        insta::assert_snapshot!("typed", snapshot(&job));
    }

    /// The runner is copied into the image that has the client; what needs no client runs in the
    /// runner's own.
    #[test]
    fn a_client_image_gets_a_copy_of_the_runner() {
        let text = include_str!("../../tests/fixtures/mysqlbackup-typed.yaml");
        let text = text.replace(
            "    databases: [shop]",
            "    databases: [shop]\n    clientImage: mysql:9.4",
        );
        insta::assert_snapshot!("client_image", snapshot(&built(&text, |_| {})));
        for (action, mode) in [
            (Action::Verify, Some("Restore")),
            (Action::Verify, None),
            (Action::Prune, None),
            (Action::List, None),
            (Action::Notify, None),
        ] {
            let job = built(&text, |seed| {
                seed.action = action;
                seed.options.mode = mode.map(str::to_owned);
            });
            let pod = job.spec.unwrap().template.spec.unwrap();
            assert_eq!(pod.init_containers, None, "{action:?}");
            assert_eq!(pod.containers[0].image.as_deref(), Some(RUNNER));
        }
        let own = "  backupEnvs: [{name: SSL_CERT_FILE, value: /mine}]\n  source:\n";
        let job = built(&text.replace("  source:\n", own), |_| {});
        let env = job.spec.unwrap().template.spec.unwrap().containers[0]
            .env
            .clone()
            .unwrap();
        let files: Vec<_> = env.iter().filter(|e| e.name == "SSL_CERT_FILE").collect();
        assert_eq!(files.len(), 1);
        assert_eq!(files[0].value.as_deref(), Some("/mine"));
    }

    #[test]
    fn a_notice_needs_nothing_that_may_have_kept_the_run() {
        let text = include_str!("../../tests/fixtures/mysqlbackup-typed.yaml");
        let job = built(text, |seed| {
            seed.action = Action::Notify;
            (seed.slot, seed.scheduled_at) = (None, None);
            seed.notice = Some(crds::run_spec::RunNotice {
                event: crds::parts::NotificationEvent::Failure,
                run: "shop-1".into(),
                slot: None,
                reason: "Unschedulable".into(),
                message: "no node".into(),
            });
        });
        insta::assert_snapshot!("notice", snapshot(&job));
    }

    #[test]
    fn a_verification_by_restore_has_its_own_volume_and_no_source() {
        let text = include_str!("../../tests/fixtures/mysqlbackup-typed.yaml").to_owned()
            + "  verify: {mode: Restore, volume: {emptyDir: {sizeLimit: 5Gi}}, resources: {limits: {memory: 2Gi}}}\n";
        let job = built(&text, |seed| {
            (seed.slot, seed.scheduled_at) = (None, None);
            seed.action = Action::Verify;
            seed.options.run = Some("shop-1".into());
            seed.options.mode = Some("Restore".into());
        });
        insta::assert_snapshot!("verify", snapshot(&job));
    }

    #[test]
    fn a_policy_sees_the_volume_of_a_verification_too() {
        let policy = crate::policy::Policy {
            forbid_host_path: true,
            ..crate::policy::Policy::default()
        };
        let found = |yaml: &str| {
            let backup = spec(yaml);
            Seed::probes().map(|seed| {
                let object = Object::default();
                let job = build(&object, "batch.isekiro.com/v1", &backup, &seed, RUNNER).unwrap();
                policy.check(&job.spec.unwrap().template, RUNNER).len()
            })
        };
        let node = "{hostPath: {path: /etc}}";
        assert_eq!(
            found(&format!("destination: {{volume: {node}}}")),
            [1, 1, 0]
        );
        assert_eq!(
            found(&format!("verify: {{mode: Restore, volume: {node}}}")),
            [0, 1, 0]
        );
        assert_eq!(found("verify: {mode: Restore}"), [0, 0, 0]);
    }

    fn spec(yaml: &str) -> MysqlBackupSpec {
        serde_yaml::from_str(&format!("schedule: '@daily'\n{yaml}")).unwrap()
    }

    #[test]
    fn of_a_variable_that_is_there_twice_the_last_counts() {
        let spec = spec(
            "backupEnvs: [{name: A, value: '1'}, {name: B, value: x}, {name: A, value: '2'}, {name: BACKUP_SPEC, value: forged}]",
        );
        let id = RunId {
            name: "$(HOME)".into(),
            slot: None,
            trigger: Trigger::Manual,
        };
        let run = RunSpec::new(Action::Backup, ObjectId::default(), id);
        let all = env(&spec, &run).unwrap();
        let names: Vec<&str> = all.iter().map(|e| e.name.as_str()).collect();
        assert_eq!(
            names,
            ["B", "A", "BACKUP_SPEC", "BACKUP_POD_NAME", "BACKUP_POD_UID"]
        );
        assert_eq!(all[1].value.as_deref(), Some("2"));
        assert!(all[2].value.as_deref().unwrap().contains("$$(HOME)"));
    }

    #[test]
    fn timeout_is_whole_hours_or_a_duration() {
        for (text, seconds) in [
            ("9", Some(32_400)),
            ("5s", Some(5)),
            ("1h30m", Some(5400)),
            ("0", None),
            ("soon", None),
        ] {
            let spec = spec(&format!("backupEnvs: [{{name: TIMEOUT, value: '{text}'}}]"));
            assert_eq!(env_timeout(&spec), seconds, "{text}");
        }
        let hours = spec("backupEnvs: [{name: TIMEOUT, value: '9'}]");
        assert_eq!(active_deadline(&hours, true), Some(32_400 + 600 + 60));
        assert_eq!(active_deadline(&hours, false), None);
        let both = spec("activeDeadlineSeconds: 100\nbackupEnvs: [{name: TIMEOUT, value: '9'}]");
        assert_eq!(
            (active_deadline(&both, true), timeout(&both)),
            (Some(100), Some(40))
        );
    }
}
