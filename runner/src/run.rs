//! One run from settings to exit code: the work on a blocking thread, the time limit and signals
//! beside it, then the notice and the report.

use std::sync::Arc;
use std::time::Duration;

use crds::report::{Reason, exit};
use crds::request::Action;
use tokio::signal::unix::{SignalKind, signal};

use crate::artefact;
use crate::backup;
use crate::cancel::Cause;
use crate::context::Context;
use crate::failure::Failure;
use crate::gobackup;
use crate::mysql_backup;
use crate::mysql_backup::stored::StoredDumps;
use crate::notify::outcome;

/// A client has so long between SIGTERM and SIGKILL.
const TERM_TO_KILL: Duration = Duration::from_secs(5);
/// After SIGKILL the run has so long to clean up before it is left behind.
const KILL_TO_LEAVE: Duration = Duration::from_secs(10);

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
            reason = failure.reason.as_str(),
            exitCode = failure.exit_code,
            "{}",
            context.reporter.words(&failure.message)
        ),
    }
    outcome::tell(&context).await;
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
            return Err(Failure::new(
                Reason::SignalsFailed,
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
        Err(Failure::new(
            Reason::InternalError,
            "the runner failed unexpectedly: report it with this log",
        ))
    })
}

fn act(context: &Context) -> Result<(), Failure> {
    let action = context.settings.action;
    if let (Action::Notify, Some(notice)) = (action, &context.settings.notice) {
        return outcome::pass_on(context, notice);
    }
    if let Some(backup) = &context.settings.backup {
        if backup.gobackup && action == Action::Backup && !context.settings.asks_for_restore() {
            return gobackup::run(context, backup);
        }
        return backup::act(context, backup);
    }
    match action {
        Action::Binlogs => mysql_backup::binlogs::run(context),
        Action::Backup if !context.settings.asks_for_restore() => {
            mysql_backup::backup::run(context)
        }
        action => {
            context.settings.check()?;
            if context.settings.asks_for_restore() {
                return mysql_backup::restore::run(context);
            }
            match action {
                Action::Probe => mysql_backup::actions::probe(context),
                Action::Verify | Action::Prune | Action::List => {
                    let place = StoredDumps::open(context)?;
                    artefact::on_places(context, "artefacts", &[place], vec![])
                }
                Action::Backup => mysql_backup::backup::run(context),
                Action::Restore | Action::Notify | Action::Binlogs => Err(Failure::settings(
                    "the options of the action are missing: use runner and operator of the same version",
                )),
                Action::Cancel | Action::Echo => Err(Failure::settings(
                    "actions Cancel and Echo are the operator's own: they make no Job",
                )),
            }
        }
    }
}
