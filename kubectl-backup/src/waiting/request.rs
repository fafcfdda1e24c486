//! Asking the operator for something other than a backup, and waiting for its answer.

use std::time::Duration;

use crds::request::{Action, Options, Request};
use crds::run::Run;
use crds::status::RequestState;

use super::tail::Tail;
use super::{ANSWER_LIMIT, Waiter, wait};
use crate::cluster::{Cluster, Object, fresh_id, withdraw};
use crate::context::Context;
use crate::error::{Error, Kind, Result};

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
    // Noted before it is sent: an interrupt meanwhile withdraws it too.
    context.open_requests.add(cluster, object, &id);
    let sent = cluster
        .send(object, &request, crds::labels::PLUGIN_MANAGER, false)
        .await;
    if let Err(error) = sent {
        context.open_requests.remove(&id);
        return Err(error);
    }
    Ok(id)
}

/// Asks for the end of one run.
///
/// # Errors
/// What the server refused.
pub(crate) async fn ask_to_cancel(
    context: &Context,
    cluster: &Cluster,
    object: &Object,
    run: &Run,
    reason: Option<&str>,
) -> Result<()> {
    let id = fresh_id(&run.name);
    let mut request = Request::new(Action::Cancel, &id, &cluster.user, context.now());
    request.options.run = Some(run.name.clone());
    request.reason = reason.unwrap_or_default().to_owned();
    cluster
        .send(object, &request, crds::labels::PLUGIN_MANAGER, false)
        .await
}

/// What came out of a request.
pub(crate) struct Answer {
    /// In the operator's words.
    pub(crate) message: String,
    /// The Job that did it.
    pub(crate) job: Option<String>,
    /// That it was refused or failed.
    pub(crate) failed: Option<Kind>,
}

/// Waits until a request is done well and gives what came out. A request that is left without an answer
/// is withdrawn.
///
/// # Errors
/// Refused or failed, with the operator's words; no operator; time is up.
pub(crate) async fn wait_for_answer(
    context: &Context,
    cluster: &Cluster,
    object: &Object,
    id: &str,
    limit: Duration,
) -> Result<Answer> {
    let answer = wait_for_end(context, cluster, object, id, limit).await?;
    match answer.failed {
        Some(kind) => Err(Error::new(kind, answer.message)),
        None => Ok(answer),
    }
}

/// The same of a request whose Job may have done a part before it failed.
///
/// # Errors
/// No operator; time is up.
pub(crate) async fn wait_for_end(
    context: &Context,
    cluster: &Cluster,
    object: &Object,
    id: &str,
    limit: Duration,
) -> Result<Answer> {
    let mut waiter = RequestWaiter {
        object,
        id,
        limit,
        answered: false,
        job: None,
        state: String::new(),
    };
    // A limit of zero is one: whoever asks waits for the answer alone, and never for ever.
    let ended = wait(context, cluster, object, &mut waiter, false, Some(limit)).await;
    context.open_requests.remove(id);
    match ended {
        Ok(answer) => Ok(answer),
        Err(mut error) => {
            let said = withdraw(cluster, object, id).await;
            if !said.is_empty() {
                error.message = format!("{}; {said}", error.message);
            }
            Err(error)
        }
    }
}

/// What is known while waiting.
struct RequestWaiter<'a> {
    object: &'a Object,
    id: &'a str,
    limit: Duration,
    answered: bool,
    job: Option<String>,
    /// Where it stands, in words.
    state: String,
}

impl Waiter for RequestWaiter<'_> {
    /// The operator's answer, good or bad; an error of the wait itself is that none came.
    type Outcome = Answer;

    fn read(&mut self, object: &Object, tail: &mut Tail<'_>) -> Result<Option<Answer>> {
        let status = object.status();
        let Some(request) = status.requests.iter().find(|r| r.id == self.id) else {
            return Ok(None);
        };
        self.answered = true;
        let message = crds::secret::mask(&request.message);
        let failed = match request.state {
            RequestState::Succeeded => None,
            RequestState::Failed => Some(Kind::RunFailed),
            RequestState::Refused => Some(Kind::Other),
            RequestState::Queued | RequestState::Running => {
                self.job.clone_from(&request.job);
                let job = request.job.as_deref().unwrap_or("request");
                self.state = match request.state {
                    _ if !message.is_empty() => format!("{job}: {message}"),
                    RequestState::Queued => "the request is queued".to_owned(),
                    _ => format!("job {job} is running"),
                };
                if request.job.is_some() || !message.is_empty() {
                    tail.say(self.state.clone());
                }
                return Ok(None);
            }
        };
        Ok(Some(Answer {
            message,
            job: request.job.clone(),
            failed,
        }))
    }

    fn job(&self) -> Option<&str> {
        self.job.as_deref()
    }

    fn running(&self) -> bool {
        self.job.is_some()
    }

    fn answered(&self) -> bool {
        self.answered
    }

    fn deleted(&self) -> Error {
        Error::new(
            Kind::NotFound,
            format!("{} was deleted", self.object.full_name()),
        )
    }

    fn no_operator(&self) -> Error {
        Error::new(
            Kind::NotInstalled,
            format!(
                "no operator has answered for {}s",
                ANSWER_LIMIT.min(self.limit).as_secs()
            ),
        )
        .hint("kubectl backup doctor")
    }

    fn timed_out(&self, limit: Duration) -> Error {
        if !self.answered {
            return self.no_operator();
        }
        Error::new(
            Kind::Timeout,
            format!("timed out after {}s: {}", limit.as_secs(), self.state),
        )
    }
}
