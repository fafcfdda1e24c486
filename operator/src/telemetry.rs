//! JSON lines on standard error.

use tracing_subscriber::EnvFilter;

/// Begins logging.
///
/// # Errors
/// If `level` is not a valid filter.
pub fn init(level: &str) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(level)?;
    tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_current_span(true)
        .with_span_list(false)
        .with_writer(std::io::stderr)
        .with_env_filter(filter)
        .init();
    // A panic is told where everything else is, in one line, with the span it happened in.
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string);
        tracing::error!(place, "{panic}");
    }));
    Ok(())
}
