//! What a runner writes to `/dev/termination-log`, and how the operator reads it.
//!
//! Only parsed, length-limited, escaped fields of a report reach status.

mod binlogs;
mod reason;

use serde::{Deserialize, Serialize};

use crate::run::{Artefact, MAX_ARTEFACTS, MAX_MESSAGE, TimedPhase, Verification};
pub use crate::text::clean;
use crate::text::word;
pub use binlogs::{Binlogs, Gap, LogPlace, MAX_GAPS};
pub use reason::Reason;

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
/// Longest name in a report, in characters: that of an object of Kubernetes.
const MAX_NAME: usize = 253;
/// Longest reason, as conditions show it.
const MAX_REASON: usize = 64;
/// Longest RFC 3339 time.
const MAX_TIME: usize = 40;
/// Longest warning, version and position.
const MAX_WARNING: usize = 256;
/// The engine of a Backup some of whose Databases were dumped by the one and some by the other.
const MIXED: &str = "Mixed";
/// Longest name of an engine.
const MAX_ENGINE: usize = 16;
/// Most phases of a report.
pub const MAX_PHASES: usize = 12;
/// Longest words about a snapshot.
const MAX_SNAPSHOT: usize = 64;

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
    /// Of a restore of a part: bytes of the stored artefact that were read, or would be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_bytes: Option<i64>,
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
    /// What made the dump of a MySQL or MariaDB server: Native or Client; Mixed of a Backup with both; empty where there is no
    /// choice.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub engine: String,
    /// Why it was the client.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub engine_reason: String,
    /// What made the connections of a native dump see the same, in words.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub snapshot: String,
    /// The moment they see, RFC 3339.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub snapshot_at: String,
    /// Binlog position or GTID set of the dump.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub position: String,
    /// Of a restore: phases that are over.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<TimedPhase>,
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
    /// What a run that pulls binary logs stored of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub binlogs: Option<Binlogs>,
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

    /// A Database of a Backup was dumped by this engine; by the client for this reason, by the runner itself with this
    /// snapshot and moment. Of more than one Database no snapshot stands here: each has its own.
    pub fn dumped(&mut self, database: &str, engine: &str, by: Result<(String, String), &str>) {
        (self.snapshot, self.snapshot_at) = match &by {
            Ok((snapshot, at)) if self.engine.is_empty() => (snapshot.clone(), at.clone()),
            _ => (String::new(), String::new()),
        };
        if self.engine.is_empty() {
            engine.clone_into(&mut self.engine);
        } else if self.engine != engine {
            MIXED.clone_into(&mut self.engine);
        }
        let Err(why) = by else { return };
        let why = format!("Database {database}: {why}");
        if !self.engine_reason.contains(&why) {
            let between = if self.engine_reason.is_empty() {
                ""
            } else {
                "; "
            };
            self.engine_reason.push_str(&format!("{between}{why}"));
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
                report.engine_reason.clear();
                report.phases.clear();
                report.verification = None;
                if let Some(binlogs) = &mut report.binlogs {
                    binlogs.shorten();
                }
            }
        }
    }

    /// Reads a termination message; `None` if it is not a report of ours. Every field is cut and
    /// cleaned to what status may hold, whoever wrote it.
    pub fn parse(message: &str) -> Option<Self> {
        if message.len() > MAX_BYTES * 4 {
            return None;
        }
        let report: Self = serde_json::from_str(message.trim()).ok()?;
        (report.schema == SCHEMA).then(|| report.cleaned())
    }

    /// The report with every text cut and cleaned, and every list cut. A new field is named here or
    /// this does not compile.
    fn cleaned(self) -> Self {
        let Self {
            schema,
            version,
            run,
            phase,
            good,
            reason,
            message,
            exit_code,
            started_at,
            ended_at,
            raw_bytes,
            raw_sha256,
            stored_bytes,
            read_bytes,
            tables,
            rows,
            mut artefacts,
            artefacts_omitted,
            server,
            engine,
            engine_reason,
            snapshot,
            snapshot_at,
            position,
            phases,
            warnings,
            pruned,
            notified,
            endpoints,
            verification,
            binlogs,
        } = self;
        let extra = artefacts.len().saturating_sub(MAX_ARTEFACTS);
        artefacts.truncate(MAX_ARTEFACTS);
        let extra = i64::try_from(extra).unwrap_or(i64::MAX);
        Self {
            schema,
            version: clean(&version, MAX_NAME),
            run: clean(&run, MAX_NAME),
            phase: word(&phase, 32),
            good,
            reason: word(&reason, MAX_REASON),
            message: said(&message, MAX_MESSAGE),
            exit_code,
            started_at: clean(&started_at, MAX_TIME),
            ended_at: clean(&ended_at, MAX_TIME),
            raw_bytes,
            raw_sha256: hex(&raw_sha256),
            stored_bytes,
            read_bytes,
            tables,
            rows,
            artefacts: artefacts.into_iter().map(artefact).collect(),
            artefacts_omitted: artefacts_omitted.saturating_add(extra),
            server: said(&server, MAX_WARNING),
            engine: word(&engine, MAX_ENGINE),
            engine_reason: said(&engine_reason, MAX_WARNING),
            snapshot: said(&snapshot, MAX_SNAPSHOT),
            snapshot_at: clean(&snapshot_at, MAX_TIME),
            position: said(&position, MAX_WARNING),
            phases: phases
                .into_iter()
                .take(MAX_PHASES)
                .map(|timed| TimedPhase {
                    phase: word(&timed.phase, 32),
                    milliseconds: timed.milliseconds,
                })
                .collect(),
            warnings: warnings
                .iter()
                .take(5)
                .map(|w| said(w, MAX_WARNING))
                .collect(),
            pruned,
            notified,
            endpoints: endpoints
                .into_iter()
                .take(MAX_ENDPOINTS)
                .map(endpoint)
                .collect(),
            verification: verification.map(self::verification),
            binlogs: binlogs.map(Binlogs::cleaned),
        }
    }
}

/// What a program said of itself: [`clean`], without what looks like a secret. It is cut last, so that
/// no part of one is left.
pub fn said(text: &str, max: usize) -> String {
    clean(&crate::secret::mask(text), max)
}

fn artefact(found: Artefact) -> Artefact {
    let Artefact {
        key,
        size,
        sha256,
        read_back,
        storage,
    } = found;
    Artefact {
        key: clean(&key, 512),
        size,
        sha256: hex(&sha256),
        read_back,
        storage: storage.map(|name| clean(&name, MAX_NAME)),
    }
}

fn endpoint(found: Endpoint) -> Endpoint {
    let Endpoint {
        kind,
        name,
        reached,
        reason,
        message,
    } = found;
    Endpoint {
        kind,
        name: clean(&name, MAX_NAME),
        reached,
        reason: word(&reason, MAX_REASON),
        message: said(&message, MAX_MESSAGE),
    }
}

fn verification(found: Verification) -> Verification {
    let Verification {
        mode,
        passed,
        time,
        message,
    } = found;
    Verification {
        mode: word(&mode, 32),
        passed,
        time,
        message: said(&message, MAX_MESSAGE),
    }
}

/// The first 64 hexadecimal digits.
fn hex(text: &str) -> String {
    text.chars()
        .filter(char::is_ascii_hexdigit)
        .take(64)
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
    fn the_engines_of_several_databases_are_told_with_their_reasons() {
        let native = || {
            Ok((
                "2 sessions agreed".to_owned(),
                "2025-01-15T02:00:00Z".to_owned(),
            ))
        };
        let told = |report: &Report| {
            let Report {
                engine,
                engine_reason,
                snapshot,
                snapshot_at,
                ..
            } = report.clone();
            [engine, engine_reason, snapshot, snapshot_at]
        };
        let mut report = Report::new("r");
        report.dumped("shop", "Native", native());
        assert_eq!(
            told(&report),
            ["Native", "", "2 sessions agreed", "2025-01-15T02:00:00Z"]
        );
        report.dumped("other", "Native", native());
        assert_eq!(told(&report), ["Native", "", "", ""]);
        for _ in 0..2 {
            report.dumped("old", "Client", Err("version 5.7 is old"));
        }
        assert_eq!(
            told(&report),
            ["Mixed", "Database old: version 5.7 is old", "", ""]
        );
        report.dumped("odd", "Client", Err("engine SPIDER"));
        let why = "Database old: version 5.7 is old; Database odd: engine SPIDER";
        assert_eq!(told(&report), ["Mixed", why, "", ""]);
        let mut report = Report::new("r");
        report.dumped("old", "Client", Err("it is old"));
        assert_eq!(told(&report), ["Client", "Database old: it is old", "", ""]);
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

    /// Every text field of a report, found by its JSON, is hostile: nothing of it comes through.
    #[test]
    fn o11_no_field_of_a_report_reaches_status_uncut() {
        let hostile = format!("\u{202e}\u{1b}[31m{}", "x\u{200b}".repeat(700));
        let mut report = Report::new("r");
        report.verification = Some(Verification {
            mode: "Restore".into(),
            passed: true,
            time: crate::time::to_k8s(chrono::DateTime::UNIX_EPOCH),
            message: "m".into(),
        });
        report.artefacts = vec![Artefact {
            key: "k".into(),
            sha256: "a".into(),
            storage: Some("s".into()),
            ..Artefact::default()
        }];
        report.endpoints = vec![Endpoint {
            kind: EndpointKind::Storage,
            name: "n".into(),
            reached: false,
            reason: "R".into(),
            message: "m".into(),
        }];
        report.warnings = vec!["w".into()];
        report.phases = vec![TimedPhase {
            phase: "p".into(),
            milliseconds: 1,
        }];
        for field in [
            &mut report.message,
            &mut report.reason,
            &mut report.started_at,
            &mut report.ended_at,
            &mut report.raw_sha256,
            &mut report.server,
            &mut report.position,
            &mut report.engine,
            &mut report.engine_reason,
            &mut report.snapshot,
            &mut report.snapshot_at,
        ] {
            "t".clone_into(field);
        }
        let keep = ["schema", "kind", "time"];
        let whole = serde_json::to_value(&report).unwrap();
        let mut fields = vec![];
        fn walk(at: &str, value: &serde_json::Value, fields: &mut Vec<String>) {
            match value {
                serde_json::Value::String(_) => fields.push(at.to_owned()),
                serde_json::Value::Array(items) => {
                    for (i, item) in items.iter().enumerate() {
                        walk(&format!("{at}/{i}"), item, fields);
                    }
                }
                serde_json::Value::Object(map) => {
                    for (key, item) in map {
                        walk(&format!("{at}/{key}"), item, fields);
                    }
                }
                _ => {}
            }
        }
        walk("", &whole, &mut fields);
        fields.retain(|f| !keep.iter().any(|k| f.ends_with(k)));
        assert!(fields.len() > 15, "{fields:?}");
        for field in fields {
            let mut forged = whole.clone();
            *forged.pointer_mut(&field).unwrap() = hostile.clone().into();
            let read = Report::parse(&forged.to_string()).unwrap();
            let read = serde_json::to_value(read).unwrap();
            let text = read.pointer(&field).and_then(|v| v.as_str()).unwrap_or("");
            assert!(text.chars().count() <= MAX_MESSAGE, "{field} is not cut");
            assert!(
                !text.chars().any(crate::text::is_unseen),
                "{field}: {text:?}"
            );
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
