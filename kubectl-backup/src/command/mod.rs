//! The verbs, one file each.

mod binlog;
mod bundle;
mod cancel;
mod complete;
mod completion;
mod create;
mod delete;
mod describe;
mod diff;
mod doctor;
mod download;
mod export;
mod health;
mod import;
mod list;
mod logs;
mod man;
mod overview;
mod report;
mod restore;
mod resume;
mod run_now;
mod runs;
mod schedule;
mod set;
mod show;
mod span;
mod suspend;
mod top;
mod verify;
mod version;
mod wait;

use crate::cli::{Cli, Verb};
use crate::context::{Context, interrupted};
use crate::env::Env;
use crate::error::{Error, Result};
use chrono::{DateTime, Utc};

/// Does what the command line says.
///
/// # Errors
/// What failed, with its exit status.
pub(crate) async fn run(verb: Verb, context: &Context) -> Result<()> {
    match verb {
        Verb::Create(args) => create::run(context, args).await,
        Verb::List(args) => list::run(context, &args).await,
        Verb::Runs(args) => runs::run(context, &args).await,
        Verb::Describe(args) => describe::run(context, &args).await,
        Verb::RunNow(args) => run_now::run(context, &args).await,
        Verb::Wait(args) => wait::run(context, &args).await,
        Verb::Cancel(args) => cancel::run(context, &args).await,
        Verb::Suspend(args) => suspend::run(context, &args).await,
        Verb::Resume(args) => resume::run(context, &args).await,
        Verb::Logs(args) => logs::run(context, &args).await,
        Verb::Verify(args) => verify::run(context, &args).await,
        Verb::Restore(args) => restore::run(context, &args).await,
        Verb::Show(args) => show::run(context, &args).await,
        Verb::Binlog(args) => binlog::run(context, &args).await,
        Verb::Download(args) => download::run(context, &args).await,
        Verb::Set(args) => set::run(context, &args).await,
        Verb::Import(args) => import::run(context, &args).await,
        Verb::Diff(args) => diff::run(context, &args).await,
        Verb::Export(args) => export::run(context, &args).await,
        Verb::Health(args) => health::run(context, &args).await,
        Verb::Report(args) => report::run(context, &args).await,
        Verb::Doctor(args) => doctor::run(context, &args).await,
        Verb::Bundle(args) => bundle::run(context, &args).await,
        Verb::Completion(args) => completion::run(context, &args),
        Verb::Man(args) => man::run(context, &args),
        Verb::Complete(args) => complete::run(context, &args).await,
        Verb::Top(args) => top::run(context, &args).await,
        Verb::Delete(args) => delete::run(context, &args).await,
        Verb::Schedule(args) => schedule::run(context, &args.verb).await,
        Verb::Version(args) => version::run(context, &args).await,
    }
}

/// Runs the command line to its end and gives the exit status.
pub(crate) async fn main(cli: Cli, env: Env, now: DateTime<Utc>) -> u8 {
    let Cli {
        verb,
        global,
        connection,
    } = cli;
    let context = match Context::new(global, connection, env, now) {
        Ok(context) => context,
        Err(error) => {
            crate::ui::stderr(&error.message);
            return error.kind.code();
        }
    };
    for text in context.connection.idle() {
        context.ui.warn(text);
    }
    let Some(verb) = verb else {
        return finish(&context, overview::run(&context).await);
    };
    // A run that is waited for says how to come back to it, a download takes its pod away;
    // everything else just ends.
    let detaches = matches!(
        verb,
        Verb::RunNow(_)
            | Verb::Wait(_)
            | Verb::Cancel(_)
            | Verb::Show(_)
            | Verb::Binlog(_)
            | Verb::Download(_)
            | Verb::Restore(_)
    );
    let result = tokio::select! {
        result = run(verb, &context) => result,
        kind = interrupted(), if !detaches => {
            for line in context.open_requests.withdraw_all().await {
                context.ui.note(&line);
            }
            Err(Error::silent(kind))
        }
    };
    finish(&context, result)
}

fn finish(context: &Context, result: Result<()>) -> u8 {
    match result {
        Ok(()) => 0,
        Err(error) => {
            context.ui.error(&error);
            error.kind.code()
        }
    }
}
