//! Being there while a Restore runs: its phase, its pod, its progress, and how it ended.

use std::time::Duration;

use crds::restore::{RestorePhase, RestoreStatus};
use crds::secret;
use crds::time::from_k8s;
use futures::StreamExt;
use tokio::time::Instant;

use super::request::ECHO_LIMIT;
use super::tail::Tail;
use crate::cluster::{Cluster, Object};
use crate::command::restore::status;
use crate::context::Context;
use crate::error::{Error, Kind as Exit, Result};
use crate::ui::Mark;

/// What is waited for.
pub(crate) struct Goal<'a> {
    /// The Restore.
    pub(crate) object: &'a Object,
    /// Show the log.
    pub(crate) follow: bool,
    /// Longest time; zero for ever.
    pub(crate) timeout: Duration,
}

/// Waits until the Restore is final and gives its status.
///
/// # Errors
/// Deleted, no operator, time is up, interrupted. A restore that failed is no error here.
pub(crate) async fn attend(
    context: &Context,
    cluster: &Cluster,
    goal: Goal<'_>,
) -> Result<RestoreStatus> {
    let name = goal.object.name();
    let mut watch = Box::pin(cluster.follow(goal.object));
    let mut interrupt = Box::pin(crate::context::interrupted());
    let mut ticks = tokio::time::interval(Duration::from_secs(1));
    let mut vigil = Vigil::new(context, cluster, &goal);
    loop {
        tokio::select! {
            seen = watch.next() => match seen {
                Some(Ok(Some(object))) => {
                    let now = status(&object);
                    vigil.look(&now);
                    if now.phase.is_some_and(RestorePhase::is_final) {
                        vigil.tail.drain(vigil.job.as_deref()).await;
                        return Ok(now);
                    }
                }
                Some(Ok(None)) => {
                    return Err(Error::new(
                        Exit::NotFound,
                        format!("{} was deleted while it was waited for", goal.object.full_name()),
                    ));
                }
                Some(Err(error)) => return Err(error),
                None => return Err(Error::new(Exit::Unreachable, "the watch ended")),
            },
            Some(line) = vigil.tail.next() => vigil.tail.line(&line),
            _ = ticks.tick() => vigil.tick().await?,
            kind = &mut interrupt => {
                vigil.tail.clear();
                context.ui.note(&format!(
                    "Stopped waiting; the restore continues. Re-attach: kubectl backup wait restore/{name}   Cancel: kubectl delete restores.batch.isekiro.com {name}"
                ));
                return Err(Error::silent(kind));
            }
        }
    }
}

/// Tells how it ended, as an exit status.
///
/// # Errors
/// The restore failed.
pub(crate) fn conclude(context: &Context, object: &Object, status: &RestoreStatus) -> Result<()> {
    let name = object.full_name();
    if status.phase != Some(RestorePhase::Succeeded) {
        context.ui.line(&format!("{name} failed"))?;
        return Err(failure(context, object, status));
    }
    context.ui.progress(
        Mark::Good,
        &format!("{}{}", secret::mask(&status.message), took(status)),
    );
    for warning in &status.warnings {
        context.ui.warn(&secret::mask(warning));
    }
    context.ui.line(&format!("{name} succeeded"))
}

/// The error of a restore that failed.
pub(crate) fn failure(context: &Context, object: &Object, status: &RestoreStatus) -> Error {
    let symbol = Mark::Bad.symbol(context.ui.ascii());
    let message = secret::mask(&crate::text::sanitise(&status.message));
    let why = match (message.is_empty(), status.reason.is_empty()) {
        (true, _) => status.reason.clone(),
        (false, true) => message,
        (false, false) => format!("{message} ({})", status.reason),
    };
    Error::verbatim(
        Exit::RunFailed,
        format!("{symbol} {} failed{}: {why}", object.name(), took(status)),
    )
    .hint(format!("kubectl backup logs restore/{}", object.name()))
}

fn took(status: &RestoreStatus) -> String {
    let times = status
        .start_time
        .as_ref()
        .zip(status.completion_time.as_ref());
    times.map_or_else(String::new, |(from, to)| {
        let millis = (from_k8s(to) - from_k8s(from)).num_milliseconds();
        format!(" after {}", crate::view::duration::human_millis(millis))
    })
}

struct Vigil<'a> {
    goal: &'a Goal<'a>,
    tail: Tail<'a>,
    started: Instant,
    echoed: bool,
    job: Option<String>,
}

impl<'a> Vigil<'a> {
    fn new(context: &'a Context, cluster: &'a Cluster, goal: &'a Goal<'a>) -> Self {
        Self {
            goal,
            tail: Tail::new(context, cluster, goal.object.namespace(), goal.follow),
            started: Instant::now(),
            echoed: false,
            job: None,
        }
    }

    /// Reads a status.
    fn look(&mut self, status: &RestoreStatus) {
        self.echoed |= status.phase.is_some();
        self.job.clone_from(&status.job);
        if status.phase == Some(RestorePhase::Pending) && !status.message.is_empty() {
            self.tail
                .say(format!("pending: {}", secret::mask(&status.message)));
        }
    }

    /// Once a second: limits, and what the pods do.
    async fn tick(&mut self) -> Result<()> {
        let (elapsed, timeout) = (self.started.elapsed(), self.goal.timeout);
        let object = self.goal.object;
        if !self.echoed && elapsed >= ECHO_LIMIT {
            return Err(Error::new(
                Exit::NotInstalled,
                format!(
                    "nothing has handled restore/{} for {}s: no backup-operator is ready, or it does not watch namespace {:?}",
                    object.name(),
                    ECHO_LIMIT.as_secs(),
                    object.namespace(),
                ),
            )
            .hint("kubectl backup doctor"));
        }
        if timeout > Duration::ZERO && elapsed >= timeout {
            self.tail.clear();
            return Err(Error::new(
                Exit::Timeout,
                format!(
                    "timed out after {}s waiting for restore/{name}; it continues. Re-attach: kubectl backup wait restore/{name}",
                    timeout.as_secs(),
                    name = object.name()
                ),
            ));
        }
        if let Some(job) = &self.job {
            self.tail.pods(job).await;
        }
        Ok(())
    }
}
