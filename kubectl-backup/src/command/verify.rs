//! `verify`: has a stored artefact read again and compared with its manifest, or restored into a
//! scratch server, by a Job.

use crds::parts::VerifyMode;
use crds::request::{Action, Options};

use crate::cli::Verify;
use crate::cluster::duration;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::ui::Mark;
use crate::waiting::request::{ask, wait_for_answer};
use crate::{presence, select};

/// Verifies.
///
/// # Errors
/// Status 4 if it did not compare equal.
pub(crate) async fn run(context: &Context, args: &Verify) -> Result<()> {
    let timeout = duration("--timeout", &args.timeout)?;
    if timeout.is_zero() {
        return Err(Error::usage("--timeout must be longer than 0"));
    }
    let cluster = context.cluster().await?;
    // An object means its newest artefact, a run means its own. The store is asked, not status.
    let (object, run) = select::object_or_run(&cluster, &args.name).await?;
    let run = run.map(|run| run.name);
    if let (Some(run), Some(_)) = (&run, &args.key) {
        return Err(Error::usage(format!(
            "{run} is a run, and --key names an artefact; give one of them: --key goes with the object"
        )));
    }
    let needs = presence::needs_to_read(&cluster, &object, None).await?;
    presence::check(context, &cluster, &object, &needs).await?;
    let mode = match (args.restore, args.replay) {
        (_, true) => Some(VerifyMode::Replay),
        (true, false) => Some(VerifyMode::Restore),
        (false, false) => None,
    };
    let options = Options {
        run: run.clone(),
        key: args.key.clone(),
        mode: mode.map(|mode| mode.as_str().to_owned()),
        ..Options::default()
    };
    let id = ask(context, &cluster, &object, Action::Verify, options).await?;
    let what = run.as_deref().or(args.key.as_deref());
    let what = what.unwrap_or("its newest artefact");
    context.ui.progress(
        Mark::Action,
        &format!(
            "{}: verification of {what} requested (id {id})",
            object.full_name()
        ),
    );
    let answer = wait_for_answer(context, &cluster, &object, &id, timeout).await?;
    context.ui.progress(Mark::Good, &answer.message);
    context.ui.line(&format!("{} verified", object.full_name()))
}
