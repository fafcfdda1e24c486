//! Shell text of the user: run by `/bin/sh` with the container's environment, as gobackup does.

use std::io::{BufRead, BufReader};
use std::process::Command;

use crate::context::Context;
use crate::process::Running;
use crds::run_spec::SPEC_ENV;

/// Runs a script of the Backup; a failure is a warning, as in gobackup, but one that shows.
pub(crate) fn run_or_warn(context: &Context, field: &str, text: Option<&str>) {
    let Some(text) = text else { return };
    if let Err(e) = run(context, text) {
        context.reporter.warn(&format!("{field}: {e}"));
    }
}

/// Runs shell text to its end; its output goes to the log.
///
/// # Errors
/// A sentence, if it did not end with status 0.
pub(crate) fn run(context: &Context, text: &str) -> Result<(), String> {
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", text])
        .env_remove(SPEC_ENV)
        .current_dir("/");
    let mut running =
        Running::spawn(command, ("script", false), false, context).map_err(|e| e.message)?;
    if let Some(stdout) = running.stdout.take() {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            tracing::info!(client = "script", "{}", context.scrub.clean(&line));
        }
    }
    let ended = running.wait().map_err(|e| e.message)?;
    if ended.good() {
        return Ok(());
    }
    Err(format!(
        "the script ended with {}: {}",
        ended.status_text(),
        ended
            .messages
            .last()
            .map_or("it said nothing", String::as_str)
    ))
}
