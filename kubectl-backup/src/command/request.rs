//! Asking the operator for something other than a backup, and waiting for its answer.

use std::time::Duration;

use crds::request::{Action, Options, Request};
use crds::status::RequestState;
use futures::StreamExt;

use super::Context;
use super::run_now::{annotation, fresh_id};
use crate::cluster::{Cluster, Object};
use crate::error::{Error, Kind, Result};
use crate::ui::Mark;

/// How long a request may stay without an answer before the operator counts as absent.
pub(crate) const ECHO_LIMIT: Duration = Duration::from_secs(30);

/// Asks, and gives the request's id.
///
/// # Errors
/// What the server refused.
pub(crate) async fn ask(
    context: &Context,
    cluster: &Cluster,
    object: &Object,
    action: Action,
    options: Options,
) -> Result<String> {
    let id = fresh_id(&object.uid());
    let mut request = Request::new(action, &id, &cluster.user, context.now());
    request.options = options;
    let patch = annotation(&request);
    cluster
        .merge_patch(object, &patch, crds::labels::PLUGIN_MANAGER, false)
        .await?;
    Ok(id)
}

/// What came out of a request.
pub(crate) struct Answer {
    /// In the operator's words.
    pub(crate) message: String,
    /// The Job that did it.
    pub(crate) job: Option<String>,
}

/// Waits until a request is done and gives what came out, in the operator's words.
///
/// # Errors
/// As [`outcome`].
pub(crate) async fn settled(
    context: &Context,
    cluster: &Cluster,
    object: &Object,
    id: &str,
    limit: Duration,
) -> Result<String> {
    let answer = outcome(context, cluster, object, id, limit).await?;
    Ok(answer.message)
}

/// Waits until a request is done and gives what came out.
///
/// # Errors
/// Refused or failed, with the operator's words; no operator; time is up.
pub(crate) async fn outcome(
    context: &Context,
    cluster: &Cluster,
    object: &Object,
    id: &str,
    limit: Duration,
) -> Result<Answer> {
    let mut watch = Box::pin(cluster.follow(object));
    let start = tokio::time::Instant::now();
    let (mut echoed, mut said) = (false, false);
    loop {
        let deadline = start + if echoed { limit } else { ECHO_LIMIT.min(limit) };
        let seen = match tokio::time::timeout_at(deadline, watch.next()).await {
            Ok(Some(seen)) => seen?,
            Ok(None) => return Err(Error::new(Kind::Unreachable, "the watch ended")),
            Err(_) if !echoed => {
                return Err(Error::new(
                    Kind::NotInstalled,
                    format!(
                        "no operator has answered for {}s",
                        ECHO_LIMIT.min(limit).as_secs()
                    ),
                )
                .hint("kubectl backup doctor"));
            }
            Err(_) => {
                return Err(Error::new(
                    Kind::Timeout,
                    format!("timed out after {}s", limit.as_secs()),
                ));
            }
        };
        let Some(now) = seen else {
            return Err(Error::new(
                Kind::NotFound,
                format!("{} was deleted", object.full_name()),
            ));
        };
        let status = now.status();
        let Some(request) = status.requests.iter().find(|r| r.id == id) else {
            continue;
        };
        echoed = true;
        let message = crate::view::mask::text(&request.message);
        match request.state {
            RequestState::Succeeded => {
                return Ok(Answer {
                    message,
                    job: request.job.clone(),
                });
            }
            RequestState::Failed => return Err(Error::new(Kind::RunFailed, message)),
            RequestState::Refused => return Err(Error::new(Kind::Other, message)),
            RequestState::Queued | RequestState::Running => {
                if let Some(job) = request.job.as_ref().filter(|_| !said) {
                    context
                        .ui
                        .progress(Mark::Wait, &format!("job {job} is at it"));
                    said = true;
                }
            }
        }
    }
}
