//! The pod of a run or restore. PURE.

use std::collections::BTreeMap;

use crds::backup::JobOptions;
use crds::bounds;
use crds::labels;
use crds::mysql_backup::{MysqlBackupSpec, RestartPolicy};
use crds::parts::{ImagePullPolicy, PodMetadata};
use crds::pod::overlay;
use crds::restore::RestoreSpec;
use crds::run_spec::WORK_DIR;
use crds::schedule::parse_go_duration;
use k8s_openapi::api::core::v1::{
    Affinity, Container, EmptyDirVolumeSource, EnvFromSource, EnvVar, LocalObjectReference,
    PodSecurityContext, PodSpec, ResourceRequirements, SecurityContext, Toleration, Volume,
    VolumeMount,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

/// Variable with the address of the original's chat bot.
pub(super) const BOT: &str = "APIURL";
/// Seconds to a running container where the object is silent.
pub(crate) use crds::bounds::STARTUP_SECONDS as STARTUP;
/// Seconds to SIGKILL where the object is silent.
const GRACE: i64 = 60;
/// Seconds a notice may take from the start of its pod.
pub(super) const NOTICE_SECONDS: i64 = 120;
/// Seconds to SIGKILL of its pod.
const NOTICE_GRACE: i64 = 30;

/// Name of the work directory's volume.
const WORK: &str = "gobackup-work";

/// The work directory, for copies of what an archive holds: its volume, which may have so many bytes, and where it is mounted.
pub(crate) fn work_directory(limit: Option<String>) -> (Volume, VolumeMount) {
    let volume = Volume {
        name: WORK.to_owned(),
        empty_dir: Some(EmptyDirVolumeSource {
            medium: None,
            size_limit: limit.map(Quantity),
        }),
        ..Volume::default()
    };
    let mount = VolumeMount {
        name: WORK.to_owned(),
        mount_path: WORK_DIR.to_owned(),
        ..VolumeMount::default()
    };
    (volume, mount)
}

/// What an object says of the pods it is given, whatever its kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct PodOptions {
    /// Image of the container; `None` is the runner's.
    pub(crate) image: Option<String>,
    pub(crate) image_pull_policy: Option<ImagePullPolicy>,
    pub(crate) image_pull_secrets: Vec<LocalObjectReference>,
    pub(crate) args: Vec<String>,
    pub(crate) env: Vec<EnvVar>,
    pub(crate) env_from: Vec<EnvFromSource>,
    pub(crate) volumes: Vec<Volume>,
    pub(crate) volume_mounts: Vec<VolumeMount>,
    pub(crate) resources: Option<ResourceRequirements>,
    pub(crate) node_selector: BTreeMap<String, String>,
    pub(crate) tolerations: Vec<Toleration>,
    pub(crate) affinity: Option<Affinity>,
    pub(crate) priority_class_name: Option<String>,
    pub(crate) service_account_name: Option<String>,
    pub(crate) pod_security_context: Option<PodSecurityContext>,
    pub(crate) security_context: Option<SecurityContext>,
    pub(crate) pod_metadata: Option<PodMetadata>,
    pub(crate) restart_policy: RestartPolicy,
    pub(crate) backoff_limit: Option<i32>,
    pub(crate) active_deadline_seconds: Option<i64>,
    pub(crate) startup_deadline_seconds: Option<i64>,
    pub(crate) termination_grace_period_seconds: Option<i64>,
}

impl From<MysqlBackupSpec> for PodOptions {
    fn from(spec: MysqlBackupSpec) -> Self {
        // Every field is named, so that a new one is sorted by whoever adds it.
        let MysqlBackupSpec {
            startup_deadline_seconds,
            backoff_limit,
            active_deadline_seconds,
            termination_grace_period_seconds,
            restart_policy,
            image,
            args,
            image_pull_policy,
            backup_envs,
            env_from,
            volumes,
            volume_mounts,
            node_selector,
            resources,
            service_account_name,
            image_pull_secrets,
            tolerations,
            affinity,
            priority_class_name,
            pod_security_context,
            security_context,
            pod_metadata,
            // When it runs.
            schedule: _,
            time_zone: _,
            dst_policy: _,
            jitter_seconds: _,
            starting_deadline_seconds: _,
            concurrency_policy: _,
            suspend: _,
            successful_jobs_history_limit: _,
            failed_jobs_history_limit: _,
            // What the runner is told.
            source: _,
            destination: _,
            compression: _,
            encryption: _,
            decryption: _,
            retention: _,
            verify: _,
            notifications: _,
            binlogs: _,
        } = spec;
        Self {
            image,
            image_pull_policy,
            image_pull_secrets,
            args,
            env: backup_envs,
            env_from,
            volumes,
            volume_mounts,
            resources,
            node_selector,
            tolerations,
            affinity,
            priority_class_name,
            service_account_name,
            pod_security_context,
            security_context,
            pod_metadata,
            restart_policy,
            backoff_limit,
            active_deadline_seconds,
            startup_deadline_seconds,
            termination_grace_period_seconds,
        }
    }
}

impl From<JobOptions> for PodOptions {
    fn from(options: JobOptions) -> Self {
        let JobOptions {
            image,
            image_pull_policy,
            image_pull_secrets,
            env,
            volumes,
            volume_mounts,
            node_selector,
            resources,
            service_account_name,
            tolerations,
            affinity,
            priority_class_name,
            pod_security_context,
            security_context,
            pod_metadata,
            backoff_limit,
            active_deadline_seconds,
            startup_deadline_seconds,
            termination_grace_period_seconds,
            // What the runner is told, and in which image it runs.
            client_image: _,
            workdir_size_limit: _,
            engine: _,
            decryption: _,
            verify: _,
            adopt_state: _,
            gobackup_name: _,
        } = options;
        Self {
            image,
            image_pull_policy,
            image_pull_secrets,
            args: vec![],
            env,
            env_from: vec![],
            volumes,
            volume_mounts,
            resources,
            node_selector,
            tolerations,
            affinity,
            priority_class_name,
            service_account_name,
            pod_security_context,
            security_context,
            pod_metadata,
            restart_policy: RestartPolicy::Never,
            backoff_limit,
            active_deadline_seconds,
            startup_deadline_seconds,
            termination_grace_period_seconds,
        }
    }
}

impl From<RestoreSpec> for PodOptions {
    fn from(spec: RestoreSpec) -> Self {
        let RestoreSpec {
            image,
            image_pull_policy,
            image_pull_secrets,
            startup_deadline_seconds,
            active_deadline_seconds,
            termination_grace_period_seconds,
            resources,
            volumes,
            volume_mounts,
            node_selector,
            service_account_name,
            tolerations,
            affinity,
            priority_class_name,
            pod_security_context,
            security_context,
            pod_metadata,
            // What the runner is told.
            from: _,
            decryption: _,
            to: _,
            dry_run: _,
            overwrite: _,
            accounts: _,
            verify: _,
            definers: _,
            definer: _,
            replay: _,
            tables: _,
            databases: _,
            exclude_tables: _,
            without_foreign_keys: _,
        } = spec;
        Self {
            image,
            image_pull_policy,
            image_pull_secrets,
            args: vec![],
            env: vec![],
            env_from: vec![],
            volumes,
            volume_mounts,
            resources,
            node_selector,
            tolerations,
            affinity,
            priority_class_name,
            service_account_name,
            pod_security_context,
            security_context,
            pod_metadata,
            restart_policy: RestartPolicy::Never,
            // Whether half a restore may be repeated is the user's decision.
            backoff_limit: Some(0),
            active_deadline_seconds,
            startup_deadline_seconds,
            termination_grace_period_seconds,
        }
    }
}

impl PodOptions {
    /// Of the pod that passes a notice on: what it needs to speak to receivers, and nothing of what may
    /// have kept the run from its end: its image, volumes, nodes, account and limits. `own` is true if
    /// the run's pod runs our runner.
    pub(super) fn for_notice(self, own: bool) -> Self {
        let kept = |name: &str| name == "TZ" || own && name == BOT;
        let quantity = |text: &str| Quantity(text.to_owned());
        Self {
            env: self.env.into_iter().filter(|e| kept(&e.name)).collect(),
            image_pull_policy: self.image_pull_policy.filter(|_| own),
            image_pull_secrets: self.image_pull_secrets,
            tolerations: self.tolerations,
            pod_metadata: self.pod_metadata,
            pod_security_context: self.pod_security_context.filter(|_| own),
            security_context: self.security_context.filter(|_| own),
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
            ..Self::default()
        }
    }

    /// Takes over what is not said here: a backup's store may be on one node, or be reached by one
    /// service account, alone.
    pub(crate) fn inherit(&mut self, from: Self) {
        let own: Vec<String> = self.volumes.iter().map(|v| v.name.clone()).collect();
        let fresh = |name: &str| !own.iter().any(|own| own == name);
        self.env.extend(from.env);
        let volumes = from.volumes.into_iter().filter(|v| fresh(&v.name));
        self.volumes.extend(volumes);
        let mounts = from.volume_mounts.into_iter().filter(|m| fresh(&m.name));
        self.volume_mounts.extend(mounts);
        if self.node_selector.is_empty() {
            self.node_selector = from.node_selector;
        }
        if self.tolerations.is_empty() {
            self.tolerations = from.tolerations;
        }
        if self.image_pull_secrets.is_empty() {
            self.image_pull_secrets = from.image_pull_secrets;
        }
        let account = self.service_account_name.take();
        self.service_account_name = account.or(from.service_account_name);
        let context = self.pod_security_context.take();
        self.pod_security_context = context.or(from.pod_security_context);
    }

    /// Seconds to SIGKILL.
    pub(crate) fn grace(&self) -> i64 {
        self.termination_grace_period_seconds.unwrap_or(GRACE)
    }

    /// Seconds after which our runner stops itself, ahead of the Job, so that it can say why.
    pub(crate) fn before_deadline(&self) -> Option<i64> {
        let limit = self.active_deadline_seconds?;
        Some(limit.saturating_sub(self.grace()).max(1))
    }

    /// Seconds after which the runner stops itself: TIMEOUT, else so that it is ahead of the Job.
    pub(super) fn timeout(&self) -> Option<i64> {
        match (self.env_timeout(), self.before_deadline()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Seconds until its container has to run.
    pub(super) fn startup(&self) -> i64 {
        bounds::startup_seconds(self.startup_deadline_seconds.unwrap_or(STARTUP))
    }

    /// Seconds the Job may take: as written, else TIMEOUT with time to start and to stop. What an image
    /// of the user's makes of TIMEOUT is not known.
    pub(super) fn active_deadline(&self, own: bool) -> Option<i64> {
        let startup = self.startup();
        let known = own.then(|| self.env_timeout()).flatten();
        let whole = |t: i64| t.saturating_add(startup).saturating_add(self.grace());
        self.active_deadline_seconds.or(known.map(whole))
    }

    /// TIMEOUT of the environment: whole hours, or a Go duration.
    fn env_timeout(&self) -> Option<i64> {
        let mut newest_first = self.env.iter().rev();
        let variable = newest_first.find(|e| e.name == "TIMEOUT")?;
        let text = variable.value.as_deref()?.trim();
        let seconds = match text.parse::<i64>() {
            Ok(hours) => hours.checked_mul(3600)?,
            Err(_) => parse_go_duration(text).ok()?.div_euclid(1_000_000_000),
        };
        (seconds > 0).then_some(seconds)
    }

    /// The pod. `told` is the environment in which the runner finds what it is to do; an image of the
    /// user's (`own` is false) gets the user's security contexts alone.
    ///
    /// # Errors
    /// A message for the user if the options can't be expressed as a pod.
    pub(super) fn into_pod(
        self,
        runner_image: &str,
        own: bool,
        told: Vec<EnvVar>,
    ) -> Result<PodSpec, String> {
        let grace = self.grace();
        let ours = crds::pod::container_security();
        let security_context = match own {
            true => Some(overlay(&ours, self.security_context.as_ref())?),
            false => self.security_context,
        };
        let ours = crds::pod::pod_security();
        let pod_security_context = match own {
            true => Some(overlay(&ours, self.pod_security_context.as_ref())?),
            false => self.pod_security_context,
        };
        let policy = self.image_pull_policy.map(pull_policy);
        let container = Container {
            name: labels::CONTAINER.to_owned(),
            image: Some(self.image.unwrap_or_else(|| runner_image.to_owned())),
            image_pull_policy: policy.map(str::to_owned),
            args: some(self.args),
            env: some(last_of_each(self.env, told)),
            env_from: some(self.env_from),
            volume_mounts: some(self.volume_mounts),
            resources: self.resources,
            security_context,
            termination_message_policy: Some("File".to_owned()),
            ..Container::default()
        };
        Ok(PodSpec {
            containers: vec![container],
            restart_policy: Some(restart_policy(self.restart_policy).to_owned()),
            volumes: some(self.volumes),
            node_selector: Some(self.node_selector).filter(|s| !s.is_empty()),
            tolerations: some(self.tolerations),
            affinity: self.affinity,
            priority_class_name: self.priority_class_name,
            service_account_name: self.service_account_name,
            image_pull_secrets: some(self.image_pull_secrets),
            automount_service_account_token: own.then_some(false),
            enable_service_links: own.then_some(false),
            security_context: pod_security_context,
            termination_grace_period_seconds: Some(grace),
            ..PodSpec::default()
        })
    }
}

/// The user's variables with the last of each name (as an apply would keep it), then ours.
fn last_of_each(user: Vec<EnvVar>, ours: Vec<EnvVar>) -> Vec<EnvVar> {
    let mut kept: Vec<EnvVar> = vec![];
    for variable in user.into_iter().chain(ours) {
        kept.retain(|earlier| earlier.name != variable.name);
        kept.push(variable);
    }
    kept
}

/// `None` for an empty list.
fn some<T>(items: Vec<T>) -> Option<Vec<T>> {
    (!items.is_empty()).then_some(items)
}

/// The text of the API.
fn pull_policy(policy: ImagePullPolicy) -> &'static str {
    match policy {
        ImagePullPolicy::Always => "Always",
        ImagePullPolicy::IfNotPresent => "IfNotPresent",
        ImagePullPolicy::Never => "Never",
    }
}

/// The text of the API.
fn restart_policy(policy: RestartPolicy) -> &'static str {
    match policy {
        RestartPolicy::OnFailure => "OnFailure",
        RestartPolicy::Never => "Never",
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use super::*;

    fn options(yaml: &str) -> PodOptions {
        let text = format!("schedule: '@daily'\n{yaml}");
        let spec: MysqlBackupSpec = serde_yaml::from_str(&text).unwrap();
        spec.into()
    }

    #[test]
    fn of_a_variable_that_is_there_twice_the_last_counts() {
        let variable = |name: &str, value: &str| EnvVar {
            name: name.into(),
            value: Some(value.into()),
            value_from: None,
        };
        let user = vec![
            variable("A", "1"),
            variable("B", "x"),
            variable("A", "2"),
            variable("BACKUP_SPEC", "forged"),
        ];
        let all = last_of_each(user, vec![variable("BACKUP_SPEC", "ours")]);
        let found: Vec<_> = all.iter().map(|e| (&*e.name, e.value.as_deref())).collect();
        assert_eq!(
            found,
            [
                ("B", Some("x")),
                ("A", Some("2")),
                ("BACKUP_SPEC", Some("ours"))
            ]
        );
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
            let pod = options(&format!("backupEnvs: [{{name: TIMEOUT, value: '{text}'}}]"));
            assert_eq!(pod.env_timeout(), seconds, "{text}");
        }
        let hours = options("backupEnvs: [{name: TIMEOUT, value: '9'}]");
        assert_eq!(hours.active_deadline(true), Some(32_400 + 600 + 60));
        assert_eq!(hours.active_deadline(false), None);
        let both = options("activeDeadlineSeconds: 100\nbackupEnvs: [{name: TIMEOUT, value: '9'}]");
        assert_eq!(
            (both.active_deadline(true), both.timeout()),
            (Some(100), Some(40))
        );
    }
}
