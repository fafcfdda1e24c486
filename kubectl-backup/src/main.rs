//! `kubectl backup`: create, list, trigger, suspend and inspect database backups.

mod build;
mod change;
mod cli;
mod cluster;
mod command;
mod context;
mod description;
mod env;
mod error;
mod kind;
mod migration;
mod presence;
mod rbac;
mod references;
mod select;
mod startup;
mod store_pod;
mod stored;
mod template;
mod text;
mod ui;
mod view;
mod waiting;

use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = match cli::parse(arguments()) {
        Ok(cli) => cli,
        Err(error) => return ExitCode::from(refuse(&error)),
    };
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place where the clock is read"
    )]
    let now = chrono::Utc::now();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    match runtime {
        Ok(runtime) => {
            let code = runtime.block_on(command::main(cli, env::Env::read(), now));
            // A prompt's thread may still wait for a key; nobody waits for it.
            runtime.shutdown_background();
            ExitCode::from(code)
        }
        Err(error) => {
            ui::stderr(&format!("error: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// The arguments. What a shell asks about is words, not flags of ours.
fn arguments() -> Vec<std::ffi::OsString> {
    let mut arguments: Vec<_> = std::env::args_os().collect();
    if arguments.get(1).is_some_and(|verb| verb == "__complete") {
        arguments.insert(2, "--".into());
    }
    arguments
}

/// Usage is status 2; to a monitoring system that would be CRITICAL, so `health` says UNKNOWN.
fn refuse(error: &clap::Error) -> u8 {
    let code = ui::usage(error);
    let health = std::env::args().skip(1).find(|word| !word.starts_with('-'));
    if code == 2 && health.as_deref() == Some("health") {
        return 3;
    }
    code
}
