//! One run from settings to exit code: the work on a blocking thread, the time limit and signals
//! beside it, then the notice and the report.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crds::report::exit;
use crds::request::Action;
use tokio::signal::unix::{SignalKind, signal};

use crate::backup;
use crate::cancel::{self, Cancel, Cause};
use crate::clock::Clock;
use crate::failure::Failure;
use crate::family;
use crate::inspect;
use crate::report::Reporter;
use crate::restore;
use crate::scrub::Scrub;
use crate::settings::{Destination, Settings};
use crate::store::{self, Attempt, Store, VolumeStore};
use crate::tell;

/// A client has so long between SIGTERM and SIGKILL.
const TERM_TO_KILL: Duration = Duration::from_secs(5);
/// After SIGKILL the run has so long to clean up before it is left behind.
const KILL_TO_LEAVE: Duration = Duration::from_secs(10);

/// What all parts of a run share.
pub struct Context {
    /// What to do.
    pub settings: Settings,
    /// Ends the run early.
    pub cancel: Cancel,
    /// What the run says of itself.
    pub reporter: Arc<Reporter>,
    /// Keeps secrets in.
    pub scrub: Arc<Scrub>,
    /// Now.
    pub clock: Clock,
    /// Another one for each start of the program.
    pub nonce: String,
    /// The destination, once it is open.
    pub store: OnceLock<Arc<dyn Store>>,
}

impl Context {
    /// The run may go on.
    ///
    /// # Errors
    /// The time limit ran out or a signal came.
    pub fn check(&self) -> Result<(), Failure> {
        match self.cancel.cause() {
            None => Ok(()),
            Some(cause) => Err(self.cancelled(cause)),
        }
    }

    /// Opens the destination and remembers it.
    ///
    /// # Errors
    /// It can't be used.
    pub fn open_store(&self) -> Result<Arc<dyn Store>, Failure> {
        let store: Arc<dyn Store> = match self.settings.destination()? {
            Destination::Volume(path) => Arc::new(VolumeStore::open(path, self.attempt())?),
            Destination::S3(s3) => store::bucket(s3, self.attempt())?,
            Destination::Storage(storage) => family::destination(self, storage)?,
        };
        Ok(Arc::clone(self.store.get_or_init(|| store)))
    }

    /// Whose temporaries are those of this start of the program.
    pub fn attempt(&self) -> Attempt {
        Attempt {
            run: self.settings.identity.run.clone(),
            pod: self.settings.identity.pod.clone(),
            nonce: self.nonce.clone(),
        }
    }

    fn cancelled(&self, cause: Cause) -> Failure {
        let report = self.reporter.snapshot();
        let phase = &report.phase;
        let restore = restore::asked(self);
        let stored: Vec<&str> = report.artefacts.iter().map(|a| a.key.as_str()).collect();
        let left = self
            .reporter
            .left()
            .unwrap_or_else(|| cancel::left_behind(self.settings.action, restore, phase, &stored));
        match cause {
            Cause::Timeout => Failure::new(
                exit::TIMEOUT,
                "Timeout",
                format!(
                    "timeout: not finished within {} (phase {phase}); {left}; look for locks and a slow network or volume, or raise TIMEOUT (activeDeadlineSeconds)",
                    duration(self.settings.timeout.unwrap_or_default())
                ),
            ),
            Cause::Terminated => Failure::other(
                "Terminated",
                format!(
                    "the pod was asked to end (SIGTERM) in phase {phase}: it was deleted, evicted or preempted; {left}"
                ),
            ),
        }
    }
}

/// Runs to the end and gives the exit code.
pub async fn supervise(context: Arc<Context>) -> i32 {
    for warning in &context.settings.warnings {
        context.reporter.warn(warning);
    }
    let outcome = work(&context).await;
    context.reporter.outcome(&outcome);
    match &outcome {
        Ok(()) => tracing::info!("the run is good"),
        Err(failure) => tracing::error!(
            reason = failure.reason,
            exitCode = failure.exit_code,
            "{}",
            context.reporter.words(&failure.message)
        ),
    }
    tell::tell(&context).await;
    context.reporter.close();
    outcome.map_or_else(|failure| failure.exit_code, |()| exit::OK)
}

/// The work itself, ended by the time limit or a signal.
async fn work(context: &Arc<Context>) -> Result<(), Failure> {
    let (mut term, mut int) = match (
        signal(SignalKind::terminate()),
        signal(SignalKind::interrupt()),
    ) {
        (Ok(term), Ok(int)) => (term, int),
        (Err(e), _) | (_, Err(e)) => {
            return Err(Failure::other(
                "SignalsFailed",
                format!("signals can't be received: {e}"),
            ));
        }
    };
    let inner = Arc::clone(context);
    let mut task = tokio::task::spawn_blocking(move || act(&inner));
    let limit = context.settings.timeout.unwrap_or(Duration::MAX);
    let cause = tokio::select! {
        ended = &mut task => return flatten(ended),
        () = tokio::time::sleep(limit.min(Duration::from_secs(u32::MAX.into()))) => Cause::Timeout,
        _ = term.recv() => Cause::Terminated,
        _ = int.recv() => Cause::Terminated,
    };
    tracing::warn!(?cause, "ending the run");
    context.cancel.cancel(cause);
    if let Ok(ended) = tokio::time::timeout(TERM_TO_KILL, &mut task).await {
        return overridden(context, cause, flatten(ended));
    }
    context.cancel.kill();
    match tokio::time::timeout(KILL_TO_LEAVE, &mut task).await {
        Ok(ended) => overridden(context, cause, flatten(ended)),
        Err(_) => overridden(context, cause, Err(context.cancelled(cause))),
    }
}

/// A run that was good before the signal stays good, and so does one that has stored all it was to
/// store; else the signal is the cause, not what broke by it.
fn overridden(
    context: &Context,
    cause: Cause,
    outcome: Result<(), Failure>,
) -> Result<(), Failure> {
    if outcome.is_ok() {
        return Ok(());
    }
    if !context.reporter.is_complete() {
        return Err(context.cancelled(cause));
    }
    let why = match cause {
        Cause::Timeout => "the time limit ran out",
        Cause::Terminated => "the pod was asked to end (SIGTERM)",
    };
    context.reporter.warn(&format!(
        "retention was not applied to its end: {why}; what was stored is whole and vouched for, the next run removes what is due"
    ));
    Ok(())
}

fn flatten(ended: Result<Result<(), Failure>, tokio::task::JoinError>) -> Result<(), Failure> {
    ended.unwrap_or_else(|_| {
        Err(Failure::other(
            "InternalError",
            "the runner failed unexpectedly: report it with this log",
        ))
    })
}

fn act(context: &Context) -> Result<(), Failure> {
    if let (Action::Notify, Some(notice)) = (context.settings.action, &context.settings.notice) {
        return tell::pass_on(context, notice);
    }
    if let Some(family) = &context.settings.family {
        return family::act(context, family);
    }
    match context.settings.action {
        Action::Backup if !restore::asked(context) => backup::run(context),
        action => {
            context.settings.check()?;
            if restore::asked(context) {
                return restore::run(context);
            }
            match action {
                Action::Verify => inspect::verify(context),
                Action::Prune => inspect::prune(context),
                Action::Probe => inspect::probe(context),
                Action::List => inspect::list(context),
                Action::Backup => backup::run(context),
                Action::Restore | Action::Notify => Err(Failure::settings(
                    "the options of the action are missing: use runner and operator of the same version",
                )),
                Action::Cancel => Err(Failure::settings(
                    "action Cancel is the operator's: it ends the run's Job",
                )),
            }
        }
    }
}

/// `1h2m3s`, parts that are zero left out.
pub fn duration(duration: Duration) -> String {
    let total = duration.as_secs();
    let (h, m, s) = (total / 3600, total / 60 % 60, total % 60);
    let mut text = String::new();
    for (n, unit) in [(h, "h"), (m, "m")] {
        if n > 0 {
            text.push_str(&format!("{n}{unit}"));
        }
    }
    if s > 0 || text.is_empty() {
        text.push_str(&format!("{s}s"));
    }
    text
}
