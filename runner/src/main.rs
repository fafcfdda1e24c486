//! `backup-runner`: reads environment and clock, wires the run, and ends with its exit code.

use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use runner::cancel::Cancel;
use runner::clock::Clock;
use runner::context::Context;
use runner::gobackup::shims;
use runner::report::Reporter;
use runner::run::supervise;
use runner::scrub::Gate;
use runner::settings::{Environment, Settings, termination_log};

fn main() -> ExitCode {
    let program = std::env::args_os().next().unwrap_or_default();
    if let Some(name) = shims::called(&program.to_string_lossy()) {
        #[expect(
            clippy::disallowed_methods,
            reason = "where gobackup's client finds its settings"
        )]
        let directory = std::env::var_os(shims::DIRECTORY);
        let args = std::env::args_os().skip(1).collect();
        return exit_code(shims::act(name, args, directory));
    }
    let words: Vec<String> = std::env::args().skip(1).collect();
    let download = runner::download::asked(&words);
    let log = tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_target(false)
        .with_max_level(tracing::Level::INFO);
    // A download's stdout is the artefact.
    let gate = Gate::default();
    let writer = gate.clone();
    if download.is_some() {
        log.with_writer(move || writer.over(std::io::stderr()))
            .init();
    } else {
        log.with_writer(move || writer.over(std::io::stdout()))
            .init();
    }
    if let Some(directory) = runner::copy::asked(&words) {
        return copy(directory);
    }
    // The one TLS provider of this program; it is the first, so it can't be refused.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let context = Arc::new(context(&gate));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    let Ok(runtime) = runtime else {
        tracing::error!("the runtime can't be started");
        return ExitCode::FAILURE;
    };
    let code = runtime.block_on(async {
        match download {
            Some(asked) => runner::download::serve(context, asked).await,
            None => supervise(context).await,
        }
    });
    // A call that hangs in the store must not hold the exit; ended with the runtime it would say so
    // after the report, which is the last line of the log.
    std::mem::forget(runtime);
    exit_code(code)
}

fn exit_code(code: i32) -> ExitCode {
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}

/// Says in the termination message why it failed: the operator passes it on.
fn copy(directory: &str) -> ExitCode {
    let Err(failure) = runner::copy::run(directory.as_ref()) else {
        return ExitCode::SUCCESS;
    };
    tracing::error!(reason = failure.reason.as_str(), "{}", failure.message);
    let _ = std::fs::write(termination_log(&environment()), &failure.message);
    ExitCode::FAILURE
}

fn environment() -> Environment {
    std::env::vars_os()
        .filter_map(|(k, v)| Some((k.into_string().ok()?, v.to_string_lossy().into_owned())))
        .collect()
}

fn context(gate: &Gate) -> Context {
    #[expect(clippy::disallowed_methods, reason = "the clock is read here, once")]
    let clock = Clock::new(chrono::Utc::now(), Instant::now());
    let env = environment();
    let settings = Settings::parse(&env, &|path| {
        std::fs::read_to_string(path).map_err(|e| e.to_string())
    });
    let scrub = settings.scrub();
    gate.close(scrub.clone());
    let reporter = Reporter::new(
        &settings.identity.run,
        termination_log(&env),
        scrub.clone(),
        clock,
    )
    .for_kind(&settings.identity.object.kind);
    let nonce = format!(
        "{:x}-{}",
        clock.started.timestamp_micros(),
        std::process::id()
    );
    Context {
        cancel: Cancel::with_idle(settings.idle),
        settings,
        reporter: Arc::new(reporter),
        scrub: Arc::new(scrub),
        clock,
        nonce,
        store: OnceLock::new(),
    }
}
