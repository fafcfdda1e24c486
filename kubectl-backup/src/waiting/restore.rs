//! Staying with a Restore until it has ended: its phase, its pod, its progress, and how it ended.

use std::time::Duration;

use crds::restore::{RestorePhase, RestoreStatus};
use crds::secret;
use crds::time::from_k8s;

use super::tail::Tail;
use super::{ANSWER_LIMIT, Waiter, unless_zero, wait};
use crate::cluster::{Cluster, Object};
use crate::context::Context;
use crate::error::{Error, Kind as Exit, Result};
use crate::ui::Mark;

/// Waits until the Restore is final and gives its status. `follow` shows the log; a `timeout` of
/// zero waits for ever.
///
/// # Errors
/// Deleted, no operator, time is up, interrupted. A restore that failed is no error here.
pub(crate) async fn wait_for_restore(
    context: &Context,
    cluster: &Cluster,
    object: &Object,
    follow: bool,
    timeout: Duration,
) -> Result<RestoreStatus> {
    let mut waiter = RestoreWaiter {
        object,
        answered: false,
        job: None,
        state: String::new(),
    };
    let limit = unless_zero(timeout);
    wait(context, cluster, object, &mut waiter, follow, limit).await
}

/// As [`wait_for_restore`], then tells how it ended; on stdout too, unless `silent`.
///
/// # Errors
/// As [`wait_for_restore`] and [`report_result`].
pub(crate) async fn wait_and_report(
    context: &Context,
    cluster: &Cluster,
    object: &Object,
    follow: bool,
    timeout: Duration,
    silent: bool,
) -> Result<RestoreStatus> {
    let status = wait_for_restore(context, cluster, object, follow, timeout).await?;
    report_result(context, object, &status, silent)?;
    Ok(status)
}

/// Tells how it ended, as an exit status.
///
/// # Errors
/// The restore failed.
fn report_result(
    context: &Context,
    object: &Object,
    status: &RestoreStatus,
    silent: bool,
) -> Result<()> {
    let name = object.full_name();
    let line = |text: &str| match silent {
        true => Ok(()),
        false => context.ui.line(text),
    };
    if status.phase != Some(RestorePhase::Succeeded) {
        line(&format!("{name} failed"))?;
        return Err(failure(context, object, status));
    }
    context.ui.progress(
        Mark::Good,
        &format!("{}{}", secret::mask(&status.message), took(status)),
    );
    for warning in &status.warnings {
        context.ui.warn(&secret::mask(warning));
    }
    line(&format!("{name} succeeded"))
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

/// What is known while waiting.
struct RestoreWaiter<'a> {
    object: &'a Object,
    answered: bool,
    job: Option<String>,
    /// What keeps it, in words.
    state: String,
}

impl Waiter for RestoreWaiter<'_> {
    type Outcome = RestoreStatus;

    fn read(&mut self, object: &Object, tail: &mut Tail<'_>) -> Result<Option<RestoreStatus>> {
        let status = object.restore_status();
        self.answered |= status.phase.is_some();
        self.job.clone_from(&status.job);
        self.state.clear();
        if status.phase == Some(RestorePhase::Pending) && !status.message.is_empty() {
            self.state = format!("pending: {}", secret::mask(&status.message));
            tail.say(self.state.clone());
        }
        let ended = status.phase.is_some_and(RestorePhase::is_final);
        Ok(ended.then_some(status))
    }

    fn answered(&self) -> bool {
        self.answered
    }

    fn job(&self) -> Option<&str> {
        self.job.as_deref()
    }

    fn running(&self) -> bool {
        self.job.is_some()
    }

    fn stopped(&self) -> Option<String> {
        Some(format!(
            "Stopped waiting; the restore continues. Re-attach: kubectl backup wait restore/{name}   Cancel: kubectl delete restores.batch.isekiro.com {name}",
            name = self.object.name()
        ))
    }

    fn deleted(&self) -> Error {
        Error::new(
            Exit::NotFound,
            format!(
                "{} was deleted while it was waited for",
                self.object.full_name()
            ),
        )
    }

    fn no_operator(&self) -> Error {
        Error::new(
            Exit::NotInstalled,
            format!(
                "nothing has handled restore/{} for {}s: no backup-operator is ready, or it does not watch namespace {:?}",
                self.object.name(),
                ANSWER_LIMIT.as_secs(),
                self.object.namespace(),
            ),
        )
        .hint("kubectl backup doctor")
    }

    fn timed_out(&self, limit: Duration) -> Error {
        Error::new(
            Exit::Timeout,
            format!(
                "timed out after {}s waiting for restore/{name}{state}; it continues. Re-attach: kubectl backup wait restore/{name}",
                limit.as_secs(),
                state = if self.state.is_empty() {
                    String::new()
                } else {
                    format!(", which is {}", self.state)
                },
                name = self.object.name()
            ),
        )
    }
}
