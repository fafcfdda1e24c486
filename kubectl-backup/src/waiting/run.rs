//! Staying with a run until it has ended: what `run-now --wait`, `wait` and `cancel --wait` do.

use std::time::Duration;

use crds::ScheduleStatus;
use crds::run::{Run, RunResult, Trigger};
use crds::status::{RequestState, RequestStatus};
use futures::StreamExt;
use tokio::time::Instant;

use super::request::ECHO_LIMIT;
use super::tail::Tail;
use crate::cluster::{Cluster, Object};
use crate::context::Context;
use crate::error::{Error, Kind, Result};
use crate::ui::Mark;
use crate::view::runs;

/// What is waited for.
pub(crate) struct Goal<'a> {
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
pub(crate) async fn attend(context: &Context, cluster: &Cluster, goal: Goal<'_>) -> Result<Run> {
    let mut watch = Box::pin(cluster.follow(goal.object));
    let mut ticks = tokio::time::interval(Duration::from_secs(1));
    let mut vigil = Vigil::new(context, cluster, &goal);
    let mut interrupt = Box::pin(crate::context::interrupted());
    loop {
        tokio::select! {
            seen = watch.next() => match seen {
                Some(Ok(Some(object))) => {
                    if let Some(run) = vigil.look(&object.status())? {
                        vigil.tail.drain(Some(&goal.run)).await;
                        return Ok(run);
                    }
                }
                Some(Ok(None)) => return Err(vigil.gone()),
                Some(Err(error)) => return Err(error),
                None => return Err(Error::new(Kind::Unreachable, "the watch ended")),
            },
            Some(line) = vigil.tail.next() => vigil.tail.line(&line),
            _ = ticks.tick() => vigil.tick().await?,
            kind = &mut interrupt => {
                vigil.tail.clear();
                context.ui.note(&format!(
                    "Stopped waiting; the run continues. Re-attach: kubectl backup wait {run}   Cancel: kubectl backup cancel {run}",
                    run = goal.run
                ));
                return Err(Error::silent(kind));
            }
        }
    }
}

/// The exit status of a run that has ended, with its last words.
///
/// # Errors
/// The run was not good.
pub(crate) fn conclude(context: &Context, object: &Object, run: &Run) -> Result<()> {
    let text = runs::outcome(run, context.now());
    let line = format!(
        "{} run/{} {}",
        object.full_name(),
        run.name,
        run.result.as_str().to_lowercase()
    );
    if run.result == RunResult::Succeeded {
        context.ui.progress(Mark::Good, &text);
        for warning in &run.warnings {
            context.ui.warn(&crds::secret::mask(warning));
        }
        return context.ui.line(&line);
    }
    let symbol = Mark::Bad.symbol(context.ui.ascii());
    context.ui.line(&line)?;
    Err(
        Error::verbatim(Kind::RunFailed, format!("{symbol} {} {text}", run.name))
            .hint(format!("kubectl backup logs {}", run.name)),
    )
}

/// What is known while waiting.
struct Vigil<'a> {
    context: &'a Context,
    goal: &'a Goal<'a>,
    tail: Tail<'a>,
    started: Instant,
    echoed: bool,
    running: bool,
    phase: String,
    ticks: u32,
}

impl<'a> Vigil<'a> {
    fn new(context: &'a Context, cluster: &'a Cluster, goal: &'a Goal<'a>) -> Self {
        Self {
            context,
            goal,
            tail: Tail::new(context, cluster, goal.object.namespace(), goal.follow),
            started: Instant::now(),
            echoed: goal.request.is_none(),
            running: false,
            phase: String::new(),
            ticks: 0,
        }
    }

    /// Reads a status: the run, if it has ended.
    fn look(&mut self, status: &ScheduleStatus) -> Result<Option<Run>> {
        let goal = self.goal;
        let request = goal
            .request
            .as_ref()
            .and_then(|id| status.requests.iter().find(|r| &r.id == id));
        self.echoed |= request.is_some();
        let run = status.runs.iter().find(|run| {
            run.name == goal.run || (run.request_id.is_some() && run.request_id == goal.request)
        });
        if let Some(run) = run {
            self.echoed = true;
            self.running = run.result == RunResult::Running;
            if run.result.is_final() {
                return Ok(Some(run.clone()));
            }
            self.phase = run.phase.clone().unwrap_or_default();
            if run.result == RunResult::Waiting {
                self.tail.say(format!(
                    "{} {}",
                    run.name,
                    runs::outcome(run, self.context.now())
                ));
            } else if !self.phase.is_empty() {
                self.tail.say(format!("{}: {}", run.name, self.phase));
            }
            return Ok(None);
        }
        match request {
            Some(request) => self.answered(request),
            None => Ok(None),
        }
    }

    /// Reads the answer to a request whose run is not listed.
    fn answered(&mut self, request: &RequestStatus) -> Result<Option<Run>> {
        let message = crds::secret::mask(&request.message);
        let name = request.job.clone().unwrap_or_else(|| self.goal.run.clone());
        match request.state {
            RequestState::Refused => Err(Error::new(
                Kind::Other,
                format!(
                    "{}: the request was refused: {message}",
                    self.goal.object.full_name()
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
                self.tail.say(format!("queued: {message}"));
                Ok(None)
            }
            RequestState::Running => {
                self.running = true;
                Ok(None)
            }
        }
    }

    /// Once a second: limits, and what the pods do.
    async fn tick(&mut self) -> Result<()> {
        self.ticks += 1;
        let (elapsed, timeout) = (self.started.elapsed(), self.goal.timeout);
        if !self.echoed && elapsed >= ECHO_LIMIT {
            return Err(self.unheard());
        }
        if timeout > Duration::ZERO && elapsed >= timeout {
            return Err(self.late());
        }
        if self.running && (self.ticks.is_multiple_of(2) || !self.tail.reads()) {
            self.tail.pods(&self.goal.run).await;
        }
        Ok(())
    }

    fn gone(&self) -> Error {
        Error::new(
            Kind::NotFound,
            format!(
                "{} was deleted while {} was waited for",
                self.goal.object.full_name(),
                self.goal.run
            ),
        )
    }

    fn unheard(&self) -> Error {
        let object = self.goal.object;
        Error::new(
            Kind::NotInstalled,
            format!(
                "nothing has handled {} for {}s: no backup-operator is ready, or it does not watch namespace {:?}. The request stands for {} minutes",
                object.kind.short_name(&object.name()),
                ECHO_LIMIT.as_secs(),
                object.namespace(),
                crds::request::LIFETIME.num_minutes()
            ),
        )
        .hint("kubectl get pods -A -l app.kubernetes.io/name=backup-operator")
    }

    fn late(&self) -> Error {
        let run = &self.goal.run;
        let phase = if self.phase.is_empty() {
            String::new()
        } else {
            format!(" (phase {:?})", self.phase)
        };
        let limit = crate::view::duration::human_millis(
            i64::try_from(self.goal.timeout.as_millis()).unwrap_or(i64::MAX),
        );
        Error::new(
            Kind::Timeout,
            format!(
                "timed out after {limit} waiting for {run}{phase}; it continues. Re-attach: kubectl backup wait {run}"
            ),
        )
    }
}
