//! Leader election on a `coordination.k8s.io` Lease: of several replicas one reconciles.
//!
//! The decisions are in [`election`]; this file sends them to the API server and tells the rest of
//! the program. Losing the lease is no reason to exit: the process follows again.

pub mod election;

use std::fmt;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::time::Duration;

use crds::labels::MANAGER;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::PostParams;
use kube::{Api, Client};
use tokio::time::{Instant, sleep_until, timeout_at};
use tracing::{debug, info, warn};

use crate::context::{Clock, Leadership};
use election::{Action, Election, Loss, Record, Timing};

/// Name of the Lease unless another is asked for.
pub const LEASE_NAME: &str = "backup-operator";

/// Name of the Lease by which an operator without leader election shows that it works.
pub const PRESENCE_NAME: &str = "backup-operator-unelected";

/// What an election needs to know.
#[derive(Clone)]
pub struct Settings {
    /// Name of this candidate, unique among the living; see [`identity`].
    pub identity: String,
    /// Namespace of the Lease.
    pub namespace: String,
    /// Name of the Lease.
    pub name: String,
    /// Durations.
    pub timing: Timing,
    /// Whether this process could do the leader's work. One that still reads the cluster's state
    /// looks on, so that it does not hold up another that could.
    pub eligible: Arc<dyn Fn() -> bool + Send + Sync>,
    /// The wall clock, for the times written into the Lease. Nothing is decided by them.
    pub clock: Clock,
}

/// A candidate's name. In a pod it is the pod's: the kubelet starts a container again only after
/// the old one is gone, so that a crashed operator goes on at once instead of waiting for its own
/// lease. Elsewhere it is random.
pub fn identity(pod: Option<&str>) -> String {
    match pod.filter(|pod| !pod.is_empty()) {
        Some(pod) => pod.to_owned(),
        None => {
            let random = std::collections::hash_map::RandomState::new();
            format!("{MANAGER}_{:016x}", random.build_hasher().finish())
        }
    }
}

/// The task that takes, keeps and releases the lease.
pub struct Elector {
    api: Api<Lease>,
    settings: Settings,
    election: Election,
    leadership: Leadership,
    /// The Lease as last read or written; its resourceVersion makes the next write a
    /// compare-and-swap.
    last: Option<Lease>,
    complained: bool,
}

impl Elector {
    /// A candidate that says through `leadership` whether it leads.
    pub fn new(client: Client, settings: Settings, leadership: Leadership) -> Self {
        Self {
            api: Api::namespaced(client, &settings.namespace),
            election: Election::new(settings.identity.clone(), settings.timing),
            settings,
            leadership,
            last: None,
            complained: false,
        }
    }

    /// Takes part until `stop` resolves, then releases the lease. Let `stop` resolve only when all
    /// work has ended, because the next leader may begin at once.
    pub async fn run(mut self, stop: impl Future<Output = ()>) {
        tokio::pin!(stop);
        loop {
            tokio::select! {
                () = &mut stop => break,
                () = self.step() => {}
            }
        }
        self.release().await;
    }

    /// One decision and its effect.
    async fn step(&mut self) {
        let now = Instant::now();
        let action = self.election.decide(now);
        let takes = matches!(action, Action::Create | Action::Take { .. } | Action::Renew);
        if takes && self.election.leads_until().is_none() && !(self.settings.eligible)() {
            sleep_until(now + self.settings.timing.look / 2).await;
            return self.look().await;
        }
        match action {
            Action::Wait(until) => sleep_until(until).await,
            Action::Look => self.look().await,
            Action::Create => self.write(Some(0), true).await,
            Action::Take { transitions } => self.write(Some(transitions), false).await,
            Action::Renew => self.write(None, false).await,
            Action::StepDown(loss) => self.step_down(&loss),
        }
    }

    /// No request may outlast what is left of leadership, nor a look the end of another's lease.
    fn patience(&self, now: Instant) -> Instant {
        let usual = now + self.settings.timing.deadline / 2;
        let end = self.election.leads_until().or(self.election.free_from());
        end.filter(|end| *end > now)
            .map_or(usual, |end| end.min(usual))
    }

    async fn look(&mut self) {
        let read = self.api.get_opt(&self.settings.name);
        match timeout_at(self.patience(Instant::now()), read).await {
            Ok(Ok(lease)) => {
                let record = lease
                    .as_ref()
                    .map(|lease| record(lease, self.settings.timing.lease));
                self.last = lease;
                self.complained = false;
                self.election.looked(record, Instant::now());
            }
            Ok(Err(error)) => {
                self.complain("read", &error);
                self.election.look_failed(Instant::now());
            }
            Err(_) => {
                self.complain("read", &"no answer in time");
                self.election.look_failed(Instant::now());
            }
        }
    }

    async fn write(&mut self, take: Option<i32>, create: bool) {
        let started = Instant::now();
        let lease = self.lease(take);
        let params = PostParams::default();
        let sent = async {
            if create {
                self.api.create(&params, &lease).await
            } else {
                self.api.replace(&self.settings.name, &params, &lease).await
            }
        };
        match timeout_at(self.patience(started), sent).await {
            Ok(Ok(lease)) => {
                let led = self.election.leads_until().is_some();
                let record = record(&lease, self.settings.timing.lease);
                self.last = Some(lease);
                self.election.wrote(record, started);
                if let Some(until) = self.election.leads_until() {
                    self.leadership.renew(self.settings.clock.now(), until);
                }
                self.complained = false;
                if !led {
                    info!(identity = %self.settings.identity, lease = %self.settings.name, "this replica leads");
                }
            }
            // 404: the Lease was deleted between look and write.
            Ok(Err(kube::Error::Api(status))) if matches!(status.code, 404 | 409) => {
                debug!(lease = %self.settings.name, "another replica wrote the lease first");
                self.election.conflicted(Instant::now());
            }
            Ok(Err(error)) => {
                self.complain("written", &error);
                self.election.write_failed(Instant::now());
            }
            Err(_) => {
                self.complain("written", &"no answer in time");
                self.election.write_failed(Instant::now());
            }
        }
    }

    fn complain(&mut self, what: &str, error: &dyn fmt::Display) {
        // One line at the start of a trouble; a follower would repeat it for hours.
        if !self.complained {
            warn!(
                %error,
                "lease {}/{} can't be {what}; this replica does not lead until it can. \
                 If access is denied, apply the Role backup-operator-lease of deploy/operator",
                self.settings.namespace, self.settings.name,
            );
        }
        self.complained = true;
    }

    fn step_down(&mut self, loss: &Loss) {
        self.election.stepped_down();
        self.leadership.lose();
        match loss {
            Loss::NotRenewed => {
                warn!("the lease could not be renewed in time: this replica follows until it can");
            }
            Loss::TakenBy(holder) => {
                warn!(%holder, "another replica holds the lease: this replica follows");
            }
        }
    }

    /// Hands the lease over, so that nobody has to wait for it to expire.
    async fn release(mut self) {
        let led = self.election.leads_until().is_some();
        self.leadership.lose();
        if !led {
            return;
        }
        let end = Instant::now() + self.settings.timing.retry;
        match timeout_at(end, self.write_released()).await {
            Ok(Ok(())) => info!(lease = %self.settings.name, "lease released"),
            Ok(Err(error)) => warn!(%error, "the lease was not released; it expires by itself"),
            Err(_) => warn!("the lease was not released in time; it expires by itself"),
        }
    }

    async fn write_released(&mut self) -> kube::Result<()> {
        let params = PostParams::default();
        loop {
            let mut lease = self.lease(None);
            if let Some(spec) = &mut lease.spec {
                if spec.holder_identity.as_deref() != Some(&self.settings.identity) {
                    return Ok(());
                }
                spec.holder_identity = Some(String::new());
                spec.lease_duration_seconds = Some(1);
            }
            match self.api.replace(&self.settings.name, &params, &lease).await {
                // A renewal that was cut off by the stop may have taken effect.
                Err(kube::Error::Api(status)) if status.code == 409 => {
                    self.last = self.api.get_opt(&self.settings.name).await?;
                }
                other => return other.map(drop),
            }
        }
    }

    /// The Lease as last seen with this process as holder; all that others put there stays.
    /// `take` has the transitions of a new holder.
    fn lease(&self, take: Option<i32>) -> Lease {
        let now = crds::time::to_micro(self.settings.clock.now());
        let mut lease = self.last.clone().unwrap_or_default();
        lease.metadata.name = Some(self.settings.name.clone());
        lease.metadata.namespace = Some(self.settings.namespace.clone());
        lease.metadata.managed_fields = None;
        let spec = lease.spec.get_or_insert_default();
        if let Some(transitions) = take {
            spec.holder_identity = Some(self.settings.identity.clone());
            spec.acquire_time = Some(now.clone());
            spec.lease_transitions = Some(transitions);
        }
        spec.lease_duration_seconds = i32::try_from(self.settings.timing.lease.as_secs()).ok();
        spec.renew_time = Some(now);
        lease
    }
}

/// What the election needs to know of a Lease.
fn record(lease: &Lease, default: Duration) -> Record {
    let spec = lease.spec.clone().unwrap_or_default();
    Record {
        holder: spec.holder_identity.unwrap_or_default(),
        lease: spec
            .lease_duration_seconds
            .and_then(|seconds| u64::try_from(seconds).ok())
            .filter(|seconds| *seconds > 0)
            .map_or(default, Duration::from_secs),
        renewed: spec.renew_time.map(|t| t.0.to_string()).unwrap_or_default(),
        transitions: spec.lease_transitions.unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests;
