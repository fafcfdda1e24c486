//! Being there while a Restore runs: its phase, its pod, its progress, and how it ended.

use std::collections::HashSet;
use std::time::Duration;

use crds::restore::{RestorePhase, RestoreStatus};
use crds::time::from_k8s;
use futures::StreamExt;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::Context;
use super::restore::status;
use super::stream::stream;
use crate::cluster::{Cluster, Object};
use crate::error::{Error, Kind as Exit, Result};
use crate::ui::Mark;
use crate::view::mask;
use crate::view::pod::{Stage, container, stage};

/// How long the object may stay without a word of the operator before it counts as absent.
const ECHO_LIMIT: Duration = Duration::from_secs(30);
/// How long the end of a log is waited for once the restore has ended.
const LOG_GRACE: Duration = Duration::from_secs(3);
/// How often progress is told where there is no terminal.
const TELL_EVERY: Duration = Duration::from_secs(30);

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
    let mut interrupt = Box::pin(super::interrupted());
    let mut ticks = tokio::time::interval(Duration::from_secs(1));
    let mut vigil = Vigil::new(context, cluster, &goal);
    loop {
        tokio::select! {
            seen = watch.next() => match seen {
                Some(Ok(Some(object))) => {
                    let now = status(&object);
                    vigil.look(&now);
                    if now.phase.is_some_and(RestorePhase::is_final) {
                        vigil.drain().await;
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
            Some(line) = vigil.lines.recv() => vigil.line(&line),
            _ = ticks.tick() => vigil.tick().await?,
            kind = &mut interrupt => {
                vigil.clear();
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
        &format!("{}{}", mask::text(&status.message), took(status)),
    );
    for warning in &status.warnings {
        context.ui.warn(&mask::text(warning));
    }
    context.ui.line(&format!("{name} succeeded"))
}

/// The error of a restore that failed.
pub(crate) fn failure(context: &Context, object: &Object, status: &RestoreStatus) -> Error {
    let symbol = Mark::Bad.symbol(context.ui.ascii());
    let message = mask::text(&crate::view::table::sanitise(&status.message));
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
    context: &'a Context,
    cluster: &'a Cluster,
    goal: &'a Goal<'a>,
    started: Instant,
    echoed: bool,
    job: Option<String>,
    said: String,
    told: Option<Instant>,
    followed: HashSet<String>,
    sender: mpsc::Sender<String>,
    lines: mpsc::Receiver<String>,
    logs: JoinSet<()>,
    bar: Option<indicatif::ProgressBar>,
}

impl<'a> Vigil<'a> {
    fn new(context: &'a Context, cluster: &'a Cluster, goal: &'a Goal<'a>) -> Self {
        let (sender, lines) = mpsc::channel(256);
        Self {
            context,
            cluster,
            goal,
            started: Instant::now(),
            echoed: false,
            job: None,
            said: String::new(),
            told: None,
            followed: HashSet::new(),
            sender,
            lines,
            logs: JoinSet::new(),
            bar: None,
        }
    }

    /// Reads a status.
    fn look(&mut self, status: &RestoreStatus) {
        self.echoed |= status.phase.is_some();
        self.job.clone_from(&status.job);
        if status.phase == Some(RestorePhase::Pending) && !status.message.is_empty() {
            self.say(format!("pending: {}", mask::text(&status.message)));
        }
    }

    /// A line of the log: progress becomes a bar, or now and then a line.
    fn line(&mut self, line: &str) {
        let Some(progress) = crate::view::progress::parse(line) else {
            if self.goal.follow {
                match &self.bar {
                    Some(bar) => bar.suspend(|| self.context.ui.note(line)),
                    None => self.context.ui.note(line),
                }
            }
            return;
        };
        if self.bar.is_none() {
            self.bar = self.context.ui.bar();
        }
        if let Some(bar) = &self.bar {
            bar.set_position(progress.percent.unwrap_or(0));
            bar.set_message(progress.text());
        } else if self.told.is_none_or(|at| at.elapsed() >= TELL_EVERY) {
            self.told = Some(Instant::now());
            self.say(progress.text());
        }
    }

    fn say(&mut self, text: String) {
        if text != self.said {
            match &self.bar {
                Some(bar) => bar.suspend(|| self.context.ui.progress(Mark::Wait, &text)),
                None => self.context.ui.progress(Mark::Wait, &text),
            }
            self.said = text;
        }
    }

    fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
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
            self.clear();
            return Err(Error::new(
                Exit::Timeout,
                format!(
                    "timed out after {}s waiting for restore/{name}; it continues. Re-attach: kubectl backup wait restore/{name}",
                    timeout.as_secs(),
                    name = object.name()
                ),
            ));
        }
        self.pods().await;
        Ok(())
    }

    /// Begins to read the logs of pods that have started; without the right to there are fewer words.
    async fn pods(&mut self) {
        let Some(job) = self.job.clone() else { return };
        let namespace = self.goal.object.namespace();
        let Ok(pods) = self.cluster.pods(&namespace, &job).await else {
            return;
        };
        for pod in &pods {
            let (Some(name), Some(container)) = (pod.metadata.name.clone(), container(pod)) else {
                continue;
            };
            match stage(pod, &container) {
                Stage::Waiting(why) => self.say(format!("pod {name}: {why}")),
                Stage::Running(_) | Stage::Ended(_) => {
                    if self.followed.insert(name.clone()) {
                        self.logs.spawn(stream(
                            self.cluster.clone(),
                            namespace.clone(),
                            name,
                            container,
                            self.sender.clone(),
                        ));
                    }
                }
            }
        }
    }

    /// Prints what is left of the logs.
    async fn drain(&mut self) {
        if self.goal.follow {
            self.pods().await;
        } else {
            self.logs.abort_all();
        }
        let limit = Instant::now() + LOG_GRACE;
        while !self.logs.is_empty() {
            tokio::select! {
                _ = self.logs.join_next() => {}
                Some(line) = self.lines.recv() => self.line(&line),
                () = tokio::time::sleep_until(limit) => break,
            }
        }
        while let Ok(line) = self.lines.try_recv() {
            self.line(&line);
        }
        self.clear();
    }
}
