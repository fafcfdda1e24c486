//! JSON lines on standard error.

use tracing_subscriber::EnvFilter;

/// Begins logging.
///
/// # Errors
/// If `level` is no filter.
pub fn init(level: &str) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(level)?;
    tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_current_span(false)
        .with_span_list(false)
        .with_writer(std::io::stderr)
        .with_env_filter(filter)
        .init();
    Ok(())
}
