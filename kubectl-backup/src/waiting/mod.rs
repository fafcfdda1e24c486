//! Staying with a run, a restore or a request until it has ended: one loop for the three of them.

pub(crate) mod log_stream;
pub(crate) mod request;
pub(crate) mod restore;
pub(crate) mod run;
mod tail;

use std::time::Duration;

use futures::StreamExt;
use tokio::time::Instant;

use self::tail::Tail;
use crate::cluster::{Cluster, Object};
use crate::context::{Context, interrupted};
use crate::error::{Error, Kind, Result};

/// How long the operator may take to answer before it counts as absent.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);

/// What is waited for: how an object's status is read, and what is said when the wait ends early.
trait Waiter {
    /// What comes out in the end.
    type Outcome;

    /// Reads the object as it is now, and tells what is new: the outcome, once there is one.
    ///
    /// # Errors
    /// The operator refused.
    fn read(&mut self, object: &Object, tail: &mut Tail<'_>) -> Result<Option<Self::Outcome>>;

    /// True once the operator has shown that it acts on the object.
    fn answered(&self) -> bool;

    /// The Job whose pods and logs are shown, as far as its name is known.
    fn job(&self) -> Option<&str> {
        None
    }

    /// True while the pods of the Job are worth a look.
    fn running(&self) -> bool {
        false
    }

    /// What is said to a user who stops waiting; without it an interrupt is not this wait's affair.
    fn stopped(&self) -> Option<String> {
        None
    }

    /// The object was deleted meanwhile.
    fn deleted(&self) -> Error;

    /// No operator has answered within [`ANSWER_LIMIT`].
    fn no_operator(&self) -> Error;

    /// The user's own limit has passed.
    fn timed_out(&self, limit: Duration) -> Error;
}

/// Waits until the outcome is there. `limit` is the longest time; without one it waits for ever.
///
/// # Errors
/// Refused, object deleted, no operator, time is up, interrupted.
async fn wait<W: Waiter>(
    context: &Context,
    cluster: &Cluster,
    object: &Object,
    waiter: &mut W,
    follow: bool,
    limit: Option<Duration>,
) -> Result<W::Outcome> {
    let mut tail = Tail::new(context, cluster, object.namespace(), follow);
    let outcome = outcome(cluster, object, waiter, &mut tail, limit).await;
    match outcome {
        Ok(outcome) => {
            tail.drain(waiter.job()).await;
            Ok(outcome)
        }
        Err(error) => {
            tail.clear();
            if let (Kind::Interrupted | Kind::Terminated, Some(text)) =
                (error.kind, waiter.stopped())
            {
                context.ui.note(&text);
            }
            Err(error)
        }
    }
}

/// The loop: the object's changes, the lines of the logs, a look at the pods each second.
async fn outcome<W: Waiter>(
    cluster: &Cluster,
    object: &Object,
    waiter: &mut W,
    tail: &mut Tail<'_>,
    limit: Option<Duration>,
) -> Result<W::Outcome> {
    let started = Instant::now();
    let mut watch = Box::pin(cluster.follow(object));
    let mut seconds = tokio::time::interval(Duration::from_secs(1));
    let mut interrupt = Box::pin(interrupted());
    let stoppable = waiter.stopped().is_some();
    let mut count = 0u32;
    loop {
        let silent = !waiter.answered();
        let next_limit = match limit {
            Some(limit) if silent => Some(limit.min(ANSWER_LIMIT)),
            None if silent => Some(ANSWER_LIMIT),
            limit => limit,
        };
        let deadline = next_limit.map(|limit| started + limit);
        tokio::select! {
            seen = watch.next() => match seen {
                Some(Ok(Some(now))) => {
                    if let Some(outcome) = waiter.read(&now, tail)? {
                        return Ok(outcome);
                    }
                }
                Some(Ok(None)) => return Err(waiter.deleted()),
                Some(Err(error)) => return Err(error),
                None => return Err(Error::new(Kind::Unreachable, "the watch ended")),
            },
            Some(line) = tail.next() => tail.line(&line),
            () = until(deadline) => return Err(match limit {
                Some(limit) if !silent || limit < ANSWER_LIMIT => waiter.timed_out(limit),
                _ => waiter.no_operator(),
            }),
            _ = seconds.tick() => {
                count += 1;
                // Once a log is read, its pod needs fewer looks.
                if waiter.running() && (count.is_multiple_of(2) || !tail.reads())
                    && let Some(job) = waiter.job()
                {
                    tail.pods(job).await;
                }
            }
            kind = &mut interrupt, if stoppable => return Err(Error::silent(kind)),
        }
    }
}

/// Ends at the deadline; never without one.
async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// The limit that a duration flag means: zero waits for ever.
fn unless_zero(timeout: Duration) -> Option<Duration> {
    (timeout > Duration::ZERO).then_some(timeout)
}
