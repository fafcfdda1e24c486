//! A run of a scheduled object: what every run is told, whatever its kind, and its Job. PURE.

use std::collections::BTreeMap;

use crds::mounts::Mounts;
use crds::mysql_backup::RestartPolicy;
use crds::parts::{Decryption, Engine, Notification, Verify, VerifyMode, VolumeDestination};
use crds::report::exit;
use crds::request::Action;
use crds::run_spec::{ObjectId, OperatorTells, RunId, RunSpec};
use crds::{labels, time};
use k8s_openapi::api::batch::v1::{
    Job, PodFailurePolicy, PodFailurePolicyOnExitCodesRequirement,
    PodFailurePolicyOnPodConditionsPattern, PodFailurePolicyRule,
};
use k8s_openapi::api::core::v1::{EmptyDirVolumeSource, EnvVar};
use serde::Serialize;
use serde_json::{Value, json};

use super::parts::{Pairs, Parts};
use super::pod::{BOT, NOTICE_SECONDS, PodOptions};
use crate::engine::{Object, Seed};

/// Where the runner keeps a scratch server.
const VERIFY_MOUNT: &str = "/run/backup-verify";
/// Name of its volume.
const VERIFY_VOLUME: &str = "backup-verify";
/// Retries where the object is silent.
const BACKOFF_LIMIT: i32 = 2;
/// Retries of a pull that stays: after 10, 20 and 40 seconds, so that one whose server is lacking something is told within minutes.
const STAYING_RETRIES: i32 = 3;

/// A run, and what its object says of it.
pub(crate) struct Run<'a> {
    pub(crate) object: &'a Object,
    /// API version of the object's kind.
    pub(crate) api_version: &'a str,
    pub(crate) seed: &'a Seed,
    pub(crate) runner_image: &'a str,
    /// The pod runs our runner.
    pub(crate) own: bool,
    pub(crate) pod: PodOptions,
    /// The image that has the clients, if the pod runs in it; the runner is copied there.
    pub(crate) client_image: Option<String>,
    pub(crate) notifications: &'a [Notification],
    pub(crate) decryption: Option<&'a Decryption>,
    pub(crate) verify: Option<&'a Verify>,
}

impl Run<'_> {
    /// What every run is told; it holds no secret. A kind adds where from and where to.
    pub(crate) fn spec(&self, mounts: &mut Mounts) -> RunSpec {
        let Self { object, seed, .. } = *self;
        let object = ObjectId {
            kind: object.kind.clone(),
            namespace: object.namespace.clone(),
            name: object.name.clone(),
            uid: object.uid.clone(),
        };
        let run = RunId {
            name: seed.name.clone(),
            slot: seed.slot.map(time::rfc3339),
            trigger: seed.trigger,
        };
        let options = serde_json::to_value(&seed.options).unwrap_or_default();
        RunSpec {
            cluster_id: self.object.cluster.clone(),
            client_image: self.client_image.clone(),
            // Only what opens artefacts gets the key.
            identity_file: self
                .decryption
                .filter(|_| seed.action == Action::Verify)
                .and_then(|d| mounts.identity(d)),
            notifications: if has_scratch_server(seed) || seed.action == Action::Binlogs {
                vec![]
            } else {
                mounts.notifications(self.notifications)
            },
            notice: seed.notice.clone(),
            operator_tells: self.operator_tells(),
            after_failure: seed.after_failure,
            timeout_seconds: match (seed.action, seed.until) {
                (Action::Notify, _) => Some(NOTICE_SECONDS),
                // What the object says of limits is said of runs that end by themselves.
                (_, Some(_)) => None,
                _ => self.own.then(|| self.pod.timeout()).flatten(),
            },
            literal_variables: Some(literal_variables(&self.pod.env)),
            options: if options == json!({}) {
                Value::Null
            } else {
                options
            },
            ..RunSpec::new(seed.action, object, run)
        }
    }

    /// Whom the pods of a run leave to the operator when it fails.
    fn operator_tells(&self) -> OperatorTells {
        if self.seed.action != Action::Backup {
            return OperatorTells::default();
        }
        OperatorTells {
            notifications: !self.notifications.is_empty(),
            api_url: self.own && has_bot(&self.pod.env),
        }
    }

    /// The Job. `told` is what the runner gets, `mounts` the files that it names, `inline` annotations
    /// of the pod that are among them.
    ///
    /// # Errors
    /// A message for the user if the object can't be expressed as a Job.
    pub(crate) fn job(
        mut self,
        told: &impl Serialize,
        mut mounts: Mounts,
        inline: Pairs,
    ) -> Result<Job, String> {
        let seed = self.seed;
        let scratch_server = has_scratch_server(seed);
        if self.own && seed.action != Action::Notify {
            mounts.scratch();
        }
        if scratch_server {
            let volume = self.verify.and_then(|v| v.volume.clone());
            let volume = volume.unwrap_or_else(|| VolumeDestination {
                empty_dir: Some(EmptyDirVolumeSource::default()),
                ..VolumeDestination::default()
            });
            mounts.volume(VERIFY_VOLUME, VERIFY_MOUNT, &volume);
            let resources = self.verify.and_then(|v| v.resources.clone());
            self.pod.resources = resources.or(self.pod.resources);
            // What differs once differs again.
            self.pod.backoff_limit = Some(0);
        }
        if seed.action == Action::Binlogs {
            // The next interval tries again; one that stays would leave most of its own unread.
            self.pod.backoff_limit = Some(seed.until.map_or(0, |_| STAYING_RETRIES));
        }
        let (labels, annotations) = metadata(self.object, seed);
        Parts {
            object: self.object,
            api_version: self.api_version,
            name: seed.name.clone(),
            labels,
            annotations,
            inline,
            backoff_limit: self.pod.backoff_limit.unwrap_or(BACKOFF_LIMIT),
            active_deadline_seconds: self.pod.active_deadline(self.own).or(limit(seed.action)),
            // Wrong settings no retry mends.
            pod_failure_policy: failure_policy(
                &self.pod,
                if self.own { &[exit::SETTINGS] } else { &[] },
            ),
            pod: self.pod,
            own: self.own,
            told: crds::pod::env(told)?,
            mounts,
            runner_image: self.runner_image,
            client_image: self.client_image,
        }
        .assemble()
    }

    /// The Job that passes a notice on. It needs nothing that the object refers to.
    ///
    /// # Errors
    /// A message for the user if the object can't be expressed as a Job.
    pub(crate) fn notice(self) -> Result<Job, String> {
        let notice = Self {
            pod: self.pod.for_notice(self.own),
            own: true,
            client_image: None,
            decryption: None,
            verify: None,
            ..self
        };
        let mut mounts = Mounts::default();
        let told = notice.spec(&mut mounts);
        notice.job(&told, mounts, Pairs::new())
    }
}

/// Seconds that what moves no data may take where the object sets no limit: one that hangs would stand for ever.
const BRIEF: i64 = 3600;

/// Seconds that a pull may take which stays for so many: to start, to come to the end of the log, and to stay.
pub(crate) fn staying(seconds: i64, pod: &PodOptions) -> i64 {
    seconds.saturating_add(pod.startup()).saturating_add(BRIEF)
}

fn limit(action: Action) -> Option<i64> {
    matches!(action, Action::Probe | Action::List | Action::Binlogs).then_some(BRIEF)
}

/// How a verification verifies; `None` for what is none.
fn verify_mode(seed: &Seed) -> Option<VerifyMode> {
    let mode = seed.options.mode.as_deref().unwrap_or_default();
    (seed.action == Action::Verify).then(|| VerifyMode::named(mode).unwrap_or_default())
}

/// True for a verification by restore or replay.
pub(crate) fn has_scratch_server(seed: &Seed) -> bool {
    verify_mode(seed).is_some_and(VerifyMode::restores)
}

/// True for a verification by replay: the family's own programs read and replay its binary logs.
pub(crate) fn replays(seed: &Seed) -> bool {
    verify_mode(seed) == Some(VerifyMode::Replay)
}

/// True for what speaks to the object's own databases.
pub(crate) fn has_client(seed: &Seed) -> bool {
    matches!(seed.action, Action::Backup | Action::Probe)
}

/// True for what speaks to the object's own databases by their clients.
pub(crate) fn needs_client(engine: Option<Engine>, seed: &Seed) -> bool {
    match seed.action {
        // Unset may turn out to be the client.
        Action::Backup => engine != Some(Engine::Native),
        _ => has_client(seed),
    }
}

/// True for what needs neither a client nor a scratch server, of an object that by its spec never takes a client.
pub(crate) fn is_slim(engine: Option<Engine>, seed: &Seed) -> bool {
    match seed.action {
        // No client has part in it, whatever dumps.
        Action::Binlogs => true,
        Action::Restore => false,
        _ => {
            engine == Some(Engine::Native)
                && !needs_client(engine, seed)
                && !has_scratch_server(seed)
        }
    }
}

/// True if the environment sets APIURL.
pub(crate) fn has_bot(env: &[EnvVar]) -> bool {
    let bot = env.iter().rev().find(|e| e.name == BOT);
    bot.is_some_and(|e| e.value_from.is_some() || e.value.as_deref().is_some_and(|v| !v.is_empty()))
}

/// Our labels and annotations of Job and pod.
fn metadata(object: &Object, seed: &Seed) -> (Pairs, Pairs) {
    let owned = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
    let labels = [
        (labels::MANAGED_BY, labels::MANAGER),
        (labels::OWNER_UID, &*object.uid),
    ];
    let mut annotations = vec![
        (labels::OWNER_KIND, &*object.kind),
        (labels::OWNER_NAME, &*object.name),
        (labels::TRIGGER, seed.trigger.as_str()),
    ];
    annotations.extend(
        seed.scheduled_at
            .as_deref()
            .map(|at| (labels::SCHEDULED_AT, at)),
    );
    annotations.extend(
        seed.request_id
            .as_deref()
            .map(|id| (labels::REQUEST_ID, id)),
    );
    if seed.action != Action::Backup {
        annotations.push((labels::ACTION, seed.action.as_str()));
    }
    (
        labels.into_iter().map(owned).collect(),
        annotations
            .into_iter()
            .map(owned)
            .collect::<BTreeMap<_, _>>(),
    )
}

/// Variables whose values the object itself holds. The last of each name counts.
fn literal_variables(variables: &[EnvVar]) -> Vec<String> {
    let last = |i: usize, name: &str| !variables[i + 1..].iter().any(|later| later.name == name);
    let open = variables.iter().enumerate().filter(|(i, e)| {
        let from = e.value_from.as_ref();
        let secret = from.is_some_and(|from| from.secret_key_ref.is_some());
        !secret && last(*i, &e.name)
    });
    let mut names: Vec<String> = open.map(|(_, e)| e.name.clone()).collect();
    names.sort();
    names
}

/// An exit code of our runner that is `told` by it is final; an evicted pod burns no retry.
pub(crate) fn failure_policy(pod: &PodOptions, told: &[i32]) -> Option<PodFailurePolicy> {
    if pod.restart_policy != RestartPolicy::Never {
        return None;
    }
    let told = (!told.is_empty()).then(|| PodFailurePolicyRule {
        action: "FailJob".to_owned(),
        on_exit_codes: Some(PodFailurePolicyOnExitCodesRequirement {
            container_name: Some(labels::CONTAINER.to_owned()),
            operator: "In".to_owned(),
            values: told.to_vec(),
        }),
        on_pod_conditions: None,
    });
    let disruption = PodFailurePolicyRule {
        action: "Ignore".to_owned(),
        on_exit_codes: None,
        on_pod_conditions: Some(vec![PodFailurePolicyOnPodConditionsPattern {
            type_: "DisruptionTarget".to_owned(),
            status: "True".to_owned(),
        }]),
    };
    let rules = told.into_iter().chain([disruption]).collect();
    Some(PodFailurePolicy { rules })
}
