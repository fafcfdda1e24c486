//! Asking the operator for something other than a backup, and waiting for its answer. A request
//! that nobody waits for any more is withdrawn: else an operator that comes back would act on it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crds::request::{Action, Options, Request};
use crds::status::RequestState;
use futures::StreamExt;
use serde_json::json;

use crate::cluster::{Cluster, Object};
use crate::command::run_now::{annotation, fresh_id};
use crate::context::Context;
use crate::error::{Error, Kind, Result};
use crate::ui::Mark;

/// How long a request may stay without an answer before the operator counts as absent.
pub(crate) const ECHO_LIMIT: Duration = Duration::from_secs(30);
/// How long withdrawing a request may take.
const WITHDRAW_LIMIT: Duration = Duration::from_secs(10);

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
    // Noted before it is sent: an interrupt meanwhile withdraws it too.
    context.open_requests.add(cluster, object, &id);
    let sent = cluster
        .merge_patch(object, &patch, crds::labels::PLUGIN_MANAGER, false)
        .await;
    if let Err(error) = sent {
        context.open_requests.remove(&id);
        return Err(error);
    }
    Ok(id)
}

/// Requests of this command that have no answer yet.
#[derive(Debug, Default)]
pub(crate) struct OpenRequests(Mutex<Vec<OpenRequest>>);

struct OpenRequest {
    cluster: Cluster,
    object: Object,
    id: String,
}

impl std::fmt::Debug for OpenRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {}", self.id, self.object.full_name())
    }
}

impl OpenRequests {
    fn add(&self, cluster: &Cluster, object: &Object, id: &str) {
        self.lock().push(OpenRequest {
            cluster: cluster.clone(),
            object: object.clone(),
            id: id.to_owned(),
        });
    }

    fn remove(&self, id: &str) {
        self.lock().retain(|request| request.id != id);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<OpenRequest>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Withdraws all of them and says what became of each: the last act of an interrupted command.
    pub(crate) async fn withdraw_all(&self, context: &Context) {
        let open: Vec<OpenRequest> = std::mem::take(&mut *self.lock());
        for request in open {
            let said = withdraw(&request.cluster, &request.object, &request.id).await;
            if !said.is_empty() {
                context
                    .ui
                    .note(&format!("{}: {said}", request.object.full_name()));
            }
        }
    }
}

/// Takes a request back that nobody waits for any more, and says what became of it; empty if
/// nothing of it is left.
async fn withdraw(cluster: &Cluster, object: &Object, id: &str) -> String {
    let attempt = async {
        let Some(now) = cluster.live(object).await? else {
            return Ok(String::new());
        };
        if let Some(said) = taken_up(&now, id) {
            return Ok(said);
        }
        let key = Request::annotation_key(id);
        let patch = json!({ "metadata": { "annotations": { key: null } } });
        let after = cluster
            .merge_patch(&now, &patch, crds::labels::PLUGIN_MANAGER, false)
            .await?;
        // The operator may have taken it up between the look and the patch.
        Ok(taken_up(&after, id).unwrap_or_else(|| "the request was withdrawn".to_owned()))
    };
    match tokio::time::timeout(WITHDRAW_LIMIT, attempt).await {
        Ok(Ok::<String, Error>(said)) => said,
        Ok(Err(_)) | Err(_) => format!(
            "the request could not be withdrawn and stands for up to {} minutes; withdraw it: kubectl -n {} annotate {} {}-",
            crds::request::LIFETIME.num_minutes(),
            object.namespace(),
            object.full_name(),
            Request::annotation_key(id)
        ),
    }
}

/// What the operator has made of a request so far, if it has seen it.
fn taken_up(object: &Object, id: &str) -> Option<String> {
    let status = object.status();
    let request = status.requests.iter().find(|r| r.id == id)?;
    let message = crds::secret::mask(&request.message);
    Some(match (request.state, &request.job) {
        (RequestState::Succeeded, _) => format!("the request was answered: {message}"),
        (RequestState::Failed | RequestState::Refused, _) => String::new(),
        (RequestState::Queued | RequestState::Running, Some(job)) => format!(
            "job {job} goes on; to stop it: kubectl -n {} delete job {job}",
            object.namespace()
        ),
        (RequestState::Queued | RequestState::Running, None) => {
            "the operator acts on the request; look at it: kubectl backup describe".to_owned()
        }
    })
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

/// Waits until a request is done and gives what came out. A request that is left without an answer
/// is withdrawn.
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
    let ended = answer(context, cluster, object, id, limit).await;
    context.open_requests.remove(id);
    match ended {
        Ok(answered) => answered,
        Err(mut error) => {
            let said = withdraw(cluster, object, id).await;
            if !said.is_empty() {
                error.message = format!("{}; {said}", error.message);
            }
            Err(error)
        }
    }
}

/// The operator's answer; the outer error is that none came.
async fn answer(
    context: &Context,
    cluster: &Cluster,
    object: &Object,
    id: &str,
    limit: Duration,
) -> Result<Result<Answer>> {
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
        let message = crds::secret::mask(&request.message);
        match request.state {
            RequestState::Succeeded => {
                return Ok(Ok(Answer {
                    message,
                    job: request.job.clone(),
                }));
            }
            RequestState::Failed => return Ok(Err(Error::new(Kind::RunFailed, message))),
            RequestState::Refused => return Ok(Err(Error::new(Kind::Other, message))),
            RequestState::Queued | RequestState::Running => {
                if let Some(job) = request.job.as_ref().filter(|_| !said) {
                    context
                        .ui
                        .progress(Mark::Wait, &format!("job {job} is running"));
                    said = true;
                }
            }
        }
    }
}
