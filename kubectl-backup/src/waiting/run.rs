//! Staying with a run until it has ended: what `run-now --wait`, `wait` and `cancel --wait` do.

use std::time::Duration;

use crds::run::{Run, RunResult, Trigger};
use crds::status::{RequestState, RequestStatus};

use super::tail::Tail;
use super::{ANSWER_LIMIT, Waiter, unless_zero, wait};
use crate::cli::ChangeOutput;
use crate::cluster::{Cluster, Object};
use crate::context::Context;
use crate::error::{Error, Kind, Result};
use crate::ui::Mark;
use crate::view::output::formatted;
use crate::view::runs;

/// The run that is waited for.
pub(crate) struct AwaitedRun<'a> {
    /// The object.
    pub(crate) object: &'a Object,
    /// Name of the run.
    pub(crate) run: String,
    /// Id of the request, if one was made.
    pub(crate) request: Option<String>,
    /// Show the log.
    pub(crate) follow: bool,
    /// Longest time; zero for ever.
    pub(crate) timeout: Duration,
}

/// Waits until the run has ended and gives it.
///
/// # Errors
/// Refused, object deleted, no operator, time is up, interrupted. A run that failed is no error
/// here: the caller decides.
pub(crate) async fn wait_for_run(
    context: &Context,
    cluster: &Cluster,
    awaited: AwaitedRun<'_>,
) -> Result<Run> {
    let mut waiter = RunWaiter {
        context,
        awaited: &awaited,
        answered: awaited.request.is_none(),
        running: false,
        state: String::new(),
    };
    let limit = unless_zero(awaited.timeout);
    wait(
        context,
        cluster,
        awaited.object,
        &mut waiter,
        awaited.follow,
        limit,
    )
    .await
}

/// The exit status of a run that has ended, with its last words; stdout has the run in the format asked
/// for, and nothing else.
///
/// # Errors
/// The run was not good.
pub(crate) fn report_result(
    context: &Context,
    object: &Object,
    run: &Run,
    output: Option<&ChangeOutput>,
) -> Result<()> {
    let text = runs::outcome(run, context.now());
    let line = match output {
        None => format!(
            "{} run/{} {}{}\n",
            object.full_name(),
            run.name,
            run.result.as_str().to_lowercase(),
            context.elsewhere(object)
        ),
        Some(ChangeOutput::Name) => format!("run/{}\n", run.name),
        Some(ChangeOutput::Print(format)) => {
            let owner = object.kind.short_name(&object.name());
            formatted(
                &runs::value(run, &owner, &object.namespace()),
                format,
                false,
            )?
        }
    };
    if run.result == RunResult::Succeeded {
        context.ui.progress(Mark::Good, &text);
        for warning in &run.warnings {
            context.ui.warn(&crds::secret::mask(warning));
        }
        return context.ui.out(&line);
    }
    let symbol = Mark::Bad.symbol(context.ui.ascii());
    context.ui.out(&line)?;
    Err(
        Error::verbatim(Kind::RunFailed, format!("{symbol} {} {text}", run.name))
            .hint(format!("kubectl backup logs {}", run.name)),
    )
}

/// What is known while waiting.
struct RunWaiter<'a> {
    context: &'a Context,
    awaited: &'a AwaitedRun<'a>,
    answered: bool,
    running: bool,
    /// How it is, in words.
    state: String,
}

impl RunWaiter<'_> {
    /// Reads the answer to a request whose run is not listed.
    fn answer(&mut self, request: &RequestStatus, tail: &mut Tail<'_>) -> Result<Option<Run>> {
        let message = crds::secret::mask(&request.message);
        let name = request
            .job
            .clone()
            .unwrap_or_else(|| self.awaited.run.clone());
        match request.state {
            RequestState::Refused => Err(Error::new(
                Kind::Other,
                format!(
                    "{}: the request was refused: {message}",
                    self.awaited.object.full_name()
                ),
            )),
            RequestState::Succeeded | RequestState::Failed => {
                let result = if request.state == RequestState::Succeeded {
                    RunResult::Succeeded
                } else {
                    RunResult::Failed
                };
                let mut run = Run::new(name, Trigger::Manual, result);
                run.message = message;
                Ok(Some(run))
            }
            RequestState::Queued => {
                tail.say(format!("queued: {message}"));
                Ok(None)
            }
            RequestState::Running => {
                self.running = true;
                if !message.is_empty() {
                    tail.say(format!("{name}: {message}"));
                }
                Ok(None)
            }
        }
    }
}

impl Waiter for RunWaiter<'_> {
    type Outcome = Run;

    fn read(&mut self, object: &Object, tail: &mut Tail<'_>) -> Result<Option<Run>> {
        let (awaited, status) = (self.awaited, object.status());
        let request = awaited
            .request
            .as_ref()
            .and_then(|id| status.requests.iter().find(|r| &r.id == id));
        self.answered |= request.is_some();
        let run = status.runs.iter().find(|run| {
            run.name == awaited.run
                || (run.request_id.is_some() && run.request_id == awaited.request)
        });
        let Some(run) = run else {
            return request.map_or(Ok(None), |request| self.answer(request, tail));
        };
        self.answered = true;
        self.running = run.result == RunResult::Running;
        if run.result.is_final() {
            return Ok(Some(run.clone()));
        }
        self.state = runs::outcome(run, self.context.now());
        // That it runs is no news by itself.
        if run.result == RunResult::Waiting || run.phase.is_some() || !run.message.is_empty() {
            tail.say(format!("{} {}", run.name, self.state));
        }
        Ok(None)
    }

    fn answered(&self) -> bool {
        self.answered
    }

    fn job(&self) -> Option<&str> {
        Some(&self.awaited.run)
    }

    fn running(&self) -> bool {
        self.running
    }

    fn stopped(&self) -> Option<String> {
        Some(format!(
            "Stopped waiting; the run continues. Re-attach: kubectl backup wait {run}   Cancel: kubectl backup cancel {run}",
            run = self.awaited.run
        ))
    }

    fn deleted(&self) -> Error {
        Error::new(
            Kind::NotFound,
            format!(
                "{} was deleted while {} was waited for",
                self.awaited.object.full_name(),
                self.awaited.run
            ),
        )
    }

    fn no_operator(&self) -> Error {
        let object = self.awaited.object;
        Error::new(
            Kind::NotInstalled,
            format!(
                "nothing has handled {} for {}s: no backup-operator is ready, or it does not watch namespace {:?}. The request stands for {} minutes",
                object.kind.short_name(&object.name()),
                ANSWER_LIMIT.as_secs(),
                object.namespace(),
                crds::request::LIFETIME.num_minutes()
            ),
        )
        .hint("kubectl get pods -A -l app.kubernetes.io/name=backup-operator")
    }

    fn timed_out(&self, limit: Duration) -> Error {
        let run = &self.awaited.run;
        let state = if self.state.is_empty() {
            String::new()
        } else {
            format!(", which {}", self.state)
        };
        let limit = crate::view::duration::human_millis(
            i64::try_from(limit.as_millis()).unwrap_or(i64::MAX),
        );
        Error::new(
            Kind::Timeout,
            format!(
                "timed out after {limit} waiting for {run}{state}; it continues. Re-attach: kubectl backup wait {run}"
            ),
        )
    }
}
