//! The Job of a MysqlBackup's run. PURE.

use crds::binlogs::Binlogs;
use crds::mounts::Mounts;
use crds::mysql_backup::MysqlBackupSpec;
use crds::plan::{Credential, Storage};
use crds::request::Action;
use crds::run_spec::{RunBinlogs, RunSpec};
use crds::time::rfc3339;
use k8s_openapi::api::batch::v1::Job;

use super::observe;
use crate::engine::{Object, Seed};
use crate::job::{
    Pairs, PodOptions, Run, has_scratch_server, is_slim, needs_client, replays, staying,
};

/// Images of the runner.
pub(super) struct Images<'a> {
    /// With clients and servers of databases.
    pub(super) runner: &'a str,
    /// Without, if there is one.
    pub(super) slim: Option<&'a str>,
}

/// Builds the Job of a run; `storage` is the Storage that the object stores on, if it names one.
///
/// # Errors
/// A message for the user if the spec can't be expressed as a Job.
pub(super) fn build(
    object: &Object,
    api_version: &str,
    spec: &MysqlBackupSpec,
    seed: &Seed,
    images: &Images<'_>,
    storage: Option<Storage<Credential>>,
) -> Result<Job, String> {
    let own = observe::is_own(spec, images.runner);
    let source = spec.source.as_ref();
    let engine = source.and_then(|s| s.engine);
    let clients = source.and_then(|s| s.client_image.clone());
    // An image that the object names is taken as it is, the runner's own as well.
    let slim = images.slim.filter(|_| is_slim(engine, seed));
    let mut pod = PodOptions::from(spec.clone());
    if let (Some(_), Some(binlogs)) = (seed.until, &spec.binlogs) {
        pod.active_deadline_seconds = Some(staying(binlogs.seconds()?, &pod));
    }
    let run = Run {
        object,
        api_version,
        seed,
        runner_image: slim.unwrap_or(images.runner),
        own,
        pod,
        // What replays a log needs the programs of its maker.
        client_image: clients.filter(|image| {
            own && (needs_client(engine, seed) || replays(seed)) && !image.is_empty()
        }),
        notifications: &spec.notifications,
        decryption: spec.decryption.as_ref(),
        verify: spec.verify.as_ref(),
    };
    if seed.action == Action::Notify {
        return run.notice();
    }
    let mut mounts = Mounts::default();
    // A verification speaks to its own server alone.
    let source = spec.source.as_ref().filter(|_| !has_scratch_server(seed));
    let source = source.map(|s| mounts.source(s));
    let destination = match storage {
        Some(storage) => Some(mounts.storage(storage)),
        None => spec.destination.as_ref().map(|d| mounts.destination(d)),
    };
    let recipients_file = spec.encryption.as_ref().and_then(|e| mounts.recipients(e));
    let binlogs = spec
        .binlogs
        .as_ref()
        .filter(|_| seed.action == Action::Binlogs);
    let told = RunSpec {
        source,
        binlogs: binlogs
            .map(Binlogs::seconds)
            .transpose()?
            .and_then(|seconds| u32::try_from(seconds).ok())
            .map(|interval_seconds| RunBinlogs {
                interval_seconds,
                until: seed.until.map(rfc3339),
            }),
        destination,
        compression: spec.compression,
        encryption: spec.encryption.clone(),
        recipients_file,
        retention: spec.retention.clone(),
        ..run.spec(&mut mounts)
    };
    run.job(&told, mounts, Pairs::new())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use super::*;
    use crds::MysqlBackup;
    use crds::run::Trigger;
    use crds::time::parse_rfc3339;

    const RUNNER: &str = "backup-runner:v1";
    const SLIM: &str = "backup-runner-slim:v1";

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
        build(
            &object,
            "batch.isekiro.com/v1",
            &backup.spec,
            &seed,
            &Images {
                runner: RUNNER,
                slim: Some(SLIM),
            },
            None,
        )
        .unwrap()
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
        // What replays a log takes the programs, and the server, of its maker.
        let job = built(&text, |seed| {
            seed.action = Action::Verify;
            seed.options.mode = Some("Replay".into());
        });
        let pod = job.spec.unwrap().template.spec.unwrap();
        assert_eq!(pod.containers[0].image.as_deref(), Some("mysql:9.4"));
        assert!(pod.init_containers.is_some());
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

    /// What needs clients or servers of databases has them; what does not runs in the image without, as restricted.
    #[test]
    fn a_native_engine_without_a_client_runs_in_the_slim_image() {
        let text = include_str!("../../tests/fixtures/mysqlbackup-typed.yaml");
        let image = |engine: &str, action, mode: Option<&str>, more: &str| {
            let source = format!("    databases: [shop]{engine}");
            let text = text.replace("    databases: [shop]", &source);
            let text = text.replace("  source:\n", &format!("{more}  source:\n"));
            let job = built(&text, |seed| {
                seed.action = action;
                seed.options.mode = mode.map(str::to_owned);
            });
            let pod = job.spec.unwrap().template.spec.unwrap();
            assert_eq!(pod.init_containers, None, "{engine}");
            assert_eq!(
                pod.containers[0].security_context,
                Some(crds::pod::container_security())
            );
            pod.containers[0].image.clone().unwrap()
        };
        let native = "\n    engine: Native";
        let with_clients = "\n    engine: Native\n    clientImage: mysql:9.4";
        for (engine, action, mode, more, expected) in [
            (native, Action::Backup, None, "", SLIM),
            (with_clients, Action::Backup, None, "", SLIM),
            (native, Action::Verify, None, "", SLIM),
            (native, Action::Verify, Some("Restore"), "", RUNNER),
            (native, Action::Verify, Some("Replay"), "", RUNNER),
            (
                native,
                Action::Backup,
                None,
                "  image: backup-runner:v1\n",
                RUNNER,
            ),
            ("", Action::Backup, None, "", RUNNER),
            ("\n    engine: Client", Action::Backup, None, "", RUNNER),
        ] {
            assert_eq!(
                image(engine, action, mode, more),
                expected,
                "{engine} {action:?} {mode:?} {more}"
            );
        }
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

    /// What the object says of limits is said of runs that end by themselves.
    #[test]
    fn a_pull_that_stays_has_limits_of_its_own() {
        let text = include_str!("../../tests/fixtures/mysqlbackup-typed.yaml").to_owned()
            + "  binlogs: {continuous: true}\n";
        let limits = |until: Option<&str>| {
            let job = built(&text, |seed| {
                (seed.slot, seed.scheduled_at) = (None, None);
                seed.action = Action::Binlogs;
                seed.until = until.and_then(parse_rfc3339);
            });
            let spec = job.spec.unwrap();
            let env = spec.template.spec.unwrap().containers[0].env.clone();
            let told = env.into_iter().flatten().find(|e| e.name == "BACKUP_SPEC");
            let told: RunSpec = serde_json::from_str(&told.unwrap().value.unwrap()).unwrap();
            (
                told.binlogs.unwrap().until,
                told.timeout_seconds.is_some(),
                spec.active_deadline_seconds.unwrap(),
                spec.backoff_limit.unwrap(),
            )
        };
        let until = "2025-01-11T00:05:00Z";
        let stays = (Some(until.to_owned()), false, 300 + 600 + 3600, 3);
        assert_eq!(limits(Some(until)), stays);
        assert_eq!(limits(None), (None, true, 3600, 0));
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
                let job = build(
                    &object,
                    "batch.isekiro.com/v1",
                    &backup,
                    &seed,
                    &Images {
                        runner: RUNNER,
                        slim: None,
                    },
                    None,
                )
                .unwrap();
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
}
