//! What a runner writes to `/dev/termination-log`, and how the operator reads it.
//!
//! Only parsed, length-limited, escaped fields of a report reach status.

use serde::{Deserialize, Serialize};

use crate::run::{Artefact, MAX_ARTEFACTS, MAX_MESSAGE, Verification};

/// Schema of the report; a message without it is no report.
pub const SCHEMA: &str = "batch.isekiro.com/report/v1";
/// Longest termination message the kubelet keeps, in bytes.
pub const MAX_BYTES: usize = 4096;

/// Exit codes of `backup-runner`.
pub mod exit {
    /// Good.
    pub const OK: i32 = 0;
    /// Failed for a reason without a code of its own.
    pub const FAILED: i32 = 1;
    /// Settings are wrong; a retry can't help.
    pub const SETTINGS: i32 = 2;
    /// The database refused, vanished or sent an incomplete dump.
    pub const SOURCE: i32 = 3;
    /// The store refused or is full.
    pub const STORE: i32 = 4;
    /// What was read back differs from what was sent.
    pub const VERIFICATION: i32 = 5;
    /// The time limit ran out.
    pub const TIMEOUT: i32 = 6;
}

/// Most [`Endpoint`]s of a report.
const MAX_ENDPOINTS: usize = 64;

/// What a Backup refers to and a run connects to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EndpointKind {
    /// A Database, by its own or an older kind.
    Database,
    /// A Storage, by its own or an older kind.
    Storage,
}

/// Whether a run or Probe could use a Database or Storage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Endpoint {
    /// Which of the two.
    pub kind: EndpointKind,
    /// Its name in the plan.
    pub name: String,
    /// It was connected to and took the login.
    pub reached: bool,
    /// CamelCase; empty if it was reached.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Cause and remedy; empty if it was reached.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// The report, rewritten at each phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: String,
    /// Version of the runner.
    pub version: String,
    /// Name of the run (its Job), as far as the runner knows it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub run: String,
    /// Starting, Connecting, Dumping, Storing, ReadingBack, Pruning, Notifying, Done.
    pub phase: String,
    /// None while running; then whether the run was good.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub good: Option<bool>,
    /// CamelCase, machine-read.
    pub reason: String,
    /// Cause and remedy.
    pub message: String,
    /// One of [`exit`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// RFC 3339.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub started_at: String,
    /// RFC 3339.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ended_at: String,
    /// Bytes of the dump.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw_bytes: Option<i64>,
    /// SHA-256 of the dump, hex.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub raw_sha256: String,
    /// Bytes stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stored_bytes: Option<i64>,
    /// Tables in the dump.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tables: Option<i64>,
    /// Rows in the dump.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<i64>,
    /// Stored objects.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub artefacts: Vec<Artefact>,
    /// Artefacts that did not fit.
    #[serde(skip_serializing_if = "is_zero")]
    pub artefacts_omitted: i64,
    /// Version of server and client.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub server: String,
    /// Binlog position or GTID set of the dump.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub position: String,
    /// What to look at although the run was good.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Artefacts retention removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pruned: Option<i64>,
    /// The runner has told the user of the outcome.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub notified: bool,
    /// Databases and storages that were used, or could not be. One of which nothing was learned is not among them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub endpoints: Vec<Endpoint>,
    /// Outcome of a Verify action.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verification: Option<Verification>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_zero(n: &i64) -> bool {
    *n == 0
}

impl Report {
    /// A report in phase Starting.
    pub fn new(run: &str) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            version: crate::VERSION.to_owned(),
            run: run.to_owned(),
            phase: "Starting".to_owned(),
            ..Self::default()
        }
    }

    /// JSON of at most [`MAX_BYTES`]: warnings, then endpoints, then artefacts beyond the first, then
    /// the message are cut until it fits.
    pub fn to_termination_message(&self) -> String {
        let mut report = self.clone();
        report.message = said(&report.message, MAX_MESSAGE * 2);
        for endpoint in &mut report.endpoints {
            endpoint.message = said(&endpoint.message, MAX_MESSAGE);
        }
        report.warnings = report
            .warnings
            .iter()
            .map(|w| said(w, MAX_MESSAGE))
            .collect();
        loop {
            let text = serde_json::to_string(&report).unwrap_or_default();
            if text.len() <= MAX_BYTES {
                return text;
            }
            if report.warnings.len() > 1 {
                report.warnings.truncate(report.warnings.len() / 2);
            } else if !report.endpoints.is_empty() {
                report.endpoints.truncate(report.endpoints.len() / 2);
            } else if report.artefacts.len() > 1 {
                report.artefacts.pop();
                report.artefacts_omitted += 1;
            } else if !report.warnings.is_empty() {
                report.warnings.clear();
            } else if report.message.len() > 64 {
                report.message = clean(&report.message, report.message.chars().count() / 2);
            } else {
                report.artefacts.clear();
                report.position.clear();
                report.verification = None;
            }
        }
    }

    /// Reads a termination message; `None` if it is not a report of ours. Fields are cut to what
    /// status may hold.
    pub fn parse(message: &str) -> Option<Self> {
        if message.len() > MAX_BYTES * 4 {
            return None;
        }
        let mut report: Self = serde_json::from_str(message.trim()).ok()?;
        if report.schema != SCHEMA {
            return None;
        }
        report.reason = report
            .reason
            .chars()
            .filter(char::is_ascii_alphanumeric)
            .take(64)
            .collect();
        report.phase = report
            .phase
            .chars()
            .filter(char::is_ascii_alphanumeric)
            .take(32)
            .collect();
        report.message = said(&report.message, MAX_MESSAGE);
        report.warnings = report
            .warnings
            .iter()
            .take(5)
            .map(|w| said(w, 256))
            .collect();
        let extra = report.artefacts.len().saturating_sub(MAX_ARTEFACTS);
        report.artefacts.truncate(MAX_ARTEFACTS);
        report.artefacts_omitted += i64::try_from(extra).unwrap_or(i64::MAX);
        for artefact in &mut report.artefacts {
            artefact.key = clean(&artefact.key, 512);
            artefact.sha256 = artefact
                .sha256
                .chars()
                .filter(char::is_ascii_hexdigit)
                .take(64)
                .collect();
        }
        report.endpoints.truncate(MAX_ENDPOINTS);
        for endpoint in &mut report.endpoints {
            endpoint.reason = endpoint
                .reason
                .chars()
                .filter(char::is_ascii_alphanumeric)
                .take(64)
                .collect();
            endpoint.message = said(&endpoint.message, MAX_MESSAGE);
        }
        if let Some(verification) = &mut report.verification {
            verification.message = said(&verification.message, MAX_MESSAGE);
        }
        Some(report)
    }
}

/// What a program said of itself: [`clean`], without what looks like a secret. It is cut last, so that
/// no part of one is left.
pub fn said(text: &str, max: usize) -> String {
    clean(&crate::secret::mask(text), max)
}

/// `text` without control characters and at most `max` characters, cut with `…`.
pub fn clean(text: &str, max: usize) -> String {
    let plain: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    let plain = plain.trim();
    if plain.chars().count() <= max {
        return plain.to_owned();
    }
    plain
        .chars()
        .take(max.saturating_sub(1))
        .chain(['…'])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_report_survives_the_round_trip() {
        let mut report = Report::new("shop-1");
        report.good = Some(false);
        report.reason = "AccessDenied".into();
        report.message = "access denied for user 'bk'".into();
        report.exit_code = Some(exit::SOURCE);
        report.endpoints = vec![Endpoint {
            kind: EndpointKind::Database,
            name: "maindb".into(),
            reached: false,
            reason: "AccessDenied".into(),
            message: "access denied".into(),
        }];
        assert_eq!(
            Report::parse(&report.to_termination_message()),
            Some(report)
        );
    }

    #[test]
    fn other_messages_are_no_reports() {
        for text in [
            "",
            "error: boom",
            "{}",
            r#"{"schema":"x"}"#,
            "[1,2]",
            r#"{"schema":5}"#,
        ] {
            assert_eq!(Report::parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_report_fits_and_is_read(message in ".{0,6000}", warnings in prop::collection::vec(".{0,900}", 0..12), keys in prop::collection::vec("[a-z/]{0,700}", 0..20), endpoints in prop::collection::vec("[a-z ]{0,700}", 0..8)) {
            let mut report = Report::new("r");
            report.message = message;
            report.warnings = warnings;
            report.artefacts = keys.into_iter().map(|key| Artefact { key, ..Artefact::default() }).collect();
            report.endpoints = endpoints.into_iter().map(|message| Endpoint { kind: EndpointKind::Storage, name: "s".into(), reached: false, reason: "R".into(), message }).collect();
            let text = report.to_termination_message();
            prop_assert!(text.len() <= MAX_BYTES);
            let read = Report::parse(&text).unwrap();
            prop_assert!(read.message.chars().count() <= MAX_MESSAGE);
            let escape = char::from(27);
            prop_assert!(!read.message.contains(escape), "an escape reached status");
        }
    }
}
