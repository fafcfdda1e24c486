//! Whether other installations of this operator work, by their Leases.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use crds::ScheduleStatus;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::context::Context;
use crate::engine::Standing;
use crate::observe::{self, ObserveError};

/// A Lease is read again after this time, whoever asks.
const LOOK: Duration = Duration::from_secs(10);
/// An installation whose Lease was not renewed for this time is gone: longer than a rolling update
/// or a restart takes.
const GONE: Duration = Duration::from_secs(60);

/// A Lease that nobody asked for is forgotten after this time.
const FORGOTTEN: Duration = Duration::from_secs(600);

/// What was seen of one Lease. The times inside it were written by another machine's clock and
/// decide nothing.
#[derive(Debug)]
struct Seen {
    lease: Option<String>,
    since: Instant,
    looked: Instant,
    standing: Standing,
}

/// What is known of the other installations.
#[derive(Debug, Default)]
pub(super) struct ForeignInstallations {
    seen: Mutex<HashMap<String, Seen>>,
}

impl ForeignInstallations {
    /// How each installation that a status names stands, this one apart.
    pub(super) async fn of(
        &self,
        ctx: &Context,
        status: &ScheduleStatus,
    ) -> BTreeMap<String, Standing> {
        let mut found = BTreeMap::new();
        let names = status.controller.iter().chain(&status.other_controllers);
        for name in names.filter(|name| **name != ctx.config.installation) {
            found.insert(name.clone(), self.standing(ctx, name).await);
        }
        found
    }

    async fn standing(&self, ctx: &Context, name: &str) -> Standing {
        // No installation is called so.
        let Some((namespace, lease)) = name.split_once('/') else {
            return Standing::Gone;
        };
        let mut all = self.seen.lock().await;
        let now = Instant::now();
        if let Some(seen) = all.get(name).filter(|s| now - s.looked < LOOK) {
            return seen.standing;
        }
        let looked = observe::lease(ctx, namespace, lease).await;
        let old = all.get(name);
        let seen = judge(old, looked.as_ref().map_err(is_refusal), now);
        if old.map(|o| o.standing) != Some(seen.standing) {
            tell(name, seen.standing);
        }
        let standing = seen.standing;
        // Names that no status holds any more are forgotten.
        all.retain(|_, seen| now - seen.looked < FORGOTTEN);
        all.insert(name.to_owned(), seen);
        standing
    }
}

/// What a look makes of what was seen before. An error says whether the server refused.
fn judge(old: Option<&Seen>, looked: Result<&Option<String>, bool>, now: Instant) -> Seen {
    let (lease, standing) = match looked {
        Ok(None) => (None, Standing::Gone),
        Ok(lease) => {
            let since = old.filter(|o| o.lease == *lease).map_or(now, |o| o.since);
            let gone = now - since >= GONE;
            let standing = if gone {
                Standing::Gone
            } else {
                Standing::Alive
            };
            return Seen {
                lease: lease.clone(),
                since,
                looked: now,
                standing,
            };
        }
        Err(true) => (None, Standing::Unknown),
        Err(false) => (
            old.and_then(|o| o.lease.clone()),
            old.map_or(Standing::Unknown, |o| o.standing),
        ),
    };
    Seen {
        lease,
        since: old.map_or(now, |o| o.since),
        looked: now,
        standing,
    }
}

fn is_refusal(error: &ObserveError) -> bool {
    matches!(error, ObserveError::Api(kube::Error::Api(status)) if status.code == 403)
}

fn tell(name: &str, standing: Standing) {
    match standing {
        Standing::Alive => tracing::warn!(
            installation = name,
            "another installation of this operator watches the same objects; each object is left to the one that status.controller names"
        ),
        Standing::Gone => tracing::info!(
            installation = name,
            "another installation of this operator is gone; its objects are taken over"
        ),
        Standing::Unknown => tracing::warn!(
            installation = name,
            "the Lease of another installation of this operator can't be read; its objects are left alone. If it is gone, remove status.controller from them"
        ),
    }
}

#[cfg(test)]
mod tests;
