//! A span of stored binary logs, as verbs take it.

use crds::time::parse_rfc3339;

use crate::cluster::Object;
use crate::error::{Error, Kind as Exit, Result};

/// Moments are written as `restore --replay-to` takes them.
///
/// # Errors
/// One is not, or the span is empty.
pub(super) fn check(from: Option<&str>, to: Option<&str>) -> Result<()> {
    let whole = |text: &str| {
        let at = parse_rfc3339(text)?;
        (at.timestamp_subsec_nanos() == 0).then_some(at)
    };
    let mut moments = vec![];
    for (flag, text) in [("--from", from), ("--to", to)] {
        let Some(text) = text else { continue };
        moments.push(whole(text).ok_or_else(|| {
            Error::usage(format!(
                "invalid {flag} {text:?}: write an RFC 3339 time in whole seconds, such as 2026-01-31T02:00:00Z"
            ))
        })?);
    }
    if let [from, to] = moments[..]
        && from >= to
    {
        return Err(Error::usage("--from has to be before --to"));
    }
    Ok(())
}

/// Where nothing is stored, the error says how that begins.
pub(super) fn hinted(error: Error, object: &Object) -> Error {
    match error.kind {
        Exit::NotFound => error.hint(format!("kubectl backup set {} --binlogs=5m", object.name())),
        _ => error,
    }
}
