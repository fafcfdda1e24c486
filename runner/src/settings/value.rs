//! Reading single values: variables, mounted files, durations.

use std::time::Duration;

use crds::schedule::parse_go_duration;
use secrecy::SecretString;

use crate::settings::{Environment, ReadFile};

/// What values are read from, and where warnings go.
pub(super) struct Input<'a> {
    pub(super) env: &'a Environment,
    pub(super) read: ReadFile<'a>,
    pub(super) warnings: &'a mut Vec<String>,
    /// Tells of a variable whether all may read its value anyway.
    pub(super) literal: &'a dyn Fn(&str) -> bool,
}

impl Input<'_> {
    /// The variable, if it is set and not blank.
    pub(super) fn get(&self, name: &str) -> Option<String> {
        self.env
            .get(name)
            .filter(|v| !v.trim().is_empty())
            .map(|v| v.trim().to_owned())
    }

    /// The variable byte for byte, if it is set.
    pub(super) fn raw(&self, name: &str) -> Option<&str> {
        self.env.get(name).map(String::as_str)
    }

    /// A mounted file of `field`.
    pub(super) fn file(&self, field: &str, path: &str) -> Result<String, String> {
        (self.read)(path).map_err(|e| {
            format!(
                "{field}: {path} can't be read ({e}): check that the Secret exists and has this key"
            )
        })
    }

    /// A secret without the one newline that `echo secret | base64` leaves at its end.
    pub(super) fn secret(&mut self, field: &str, value: &str) -> SecretString {
        let stripped = value
            .strip_suffix("\r\n")
            .or_else(|| value.strip_suffix('\n'));
        if let Some(stripped) = stripped {
            self.warnings.push(format!(
                "{field} ends in a newline, which was removed: store it without one (printf, not echo)"
            ));
            return stripped.into();
        }
        value.into()
    }

    /// A value that is not as it must be, as messages may name it: what may have come from a Secret is
    /// never repeated.
    pub(super) fn named(&self, variable: &str, value: &str) -> String {
        if (self.literal)(variable) {
            format!("{value:?}")
        } else {
            "its value (from a Secret, so it is not shown)".to_owned()
        }
    }

    /// Says that `field` won over the variable.
    pub(super) fn typed_wins(&mut self, variable: &str, field: &str) {
        self.warnings.push(format!(
            "{variable} is set in backupEnvs and {field} too: {field} is used"
        ));
    }
}

/// A Go duration above zero.
pub(super) fn duration(field: &str, text: &str, named: &str) -> Result<Duration, String> {
    let bad = |why: &str| {
        // The reason may quote the text.
        let why = if named.starts_with('"') {
            format!(" ({why})")
        } else {
            String::new()
        };
        format!("{field}: {named} is not a duration above zero{why}: write it like 24h or 90m")
    };
    let nanos = parse_go_duration(text.trim()).map_err(bad)?;
    match u64::try_from(nanos) {
        Ok(nanos) if nanos > 0 => Ok(Duration::from_nanos(nanos)),
        _ => Err(bad("it must be above zero")),
    }
}

/// TIMEOUT: whole hours, or a Go duration.
pub(super) fn timeout(text: &str, named: &str) -> Result<Duration, String> {
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        return match text.parse::<u64>().ok().and_then(|h| h.checked_mul(3600)) {
            Some(seconds) if seconds > 0 => Ok(Duration::from_secs(seconds)),
            Some(_) => Err("TIMEOUT is 0: leave it out for no limit".to_owned()),
            None => Err(format!("TIMEOUT: {named} hours are too many")),
        };
    }
    duration("TIMEOUT", text, named)
        .map_err(|e| e.replace("write it like", "write whole hours (9) or a duration like"))
}
