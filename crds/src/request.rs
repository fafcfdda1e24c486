//! What people ask of the operator: one annotation each, `batch.isekiro.com/request-<10 hex>`,
//! echoed in `status.requests` and then removed.

use chrono::{DateTime, Duration, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::labels::REQUEST_PREFIX;
use crate::names::short_hash;
use crate::time::{parse_rfc3339, plus_seconds, rfc3339};

/// Longest value of a request's annotation, in bytes: a longer one is not read.
pub const MAX_VALUE: usize = 8 * 1024;
/// Stands, in the operator's memory alone, for the value of an annotation beyond [`MAX_VALUE`].
pub const TOO_LONG: &str = "\0too long";

/// What is said of a request of so many bytes.
pub fn too_long(bytes: usize) -> String {
    format!(
        "the annotation has {bytes} bytes, a request has at most {MAX_VALUE}; send it again with a shorter reason"
    )
}

/// A request is acted on for this long after it was made.
pub const LIFETIME: Duration = Duration::minutes(10);

/// Action that was requested. Actions other than Backup are not counted in totals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Action {
    /// A backup now.
    Backup,
    /// Re-read an artefact, or restore it into a scratch server.
    Verify,
    /// Apply retention now.
    Prune,
    /// Log in to source and destination, write nothing.
    Probe,
    /// List what is in the store.
    List,
    /// End a run.
    Cancel,
    /// Answer, and do nothing else: is the operator there?
    Echo,
    /// Load an artefact into a server: the Job of a Restore, never of a request.
    Restore,
    /// Tell receivers what the operator saw: the operator's own, never of a request.
    Notify,
    /// Store what the server's binary log has since the last time: the operator's own, never of a request.
    Binlogs,
}

impl Action {
    /// The text used in annotations, events and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Backup => "Backup",
            Self::Verify => "Verify",
            Self::Prune => "Prune",
            Self::Probe => "Probe",
            Self::List => "List",
            Self::Cancel => "Cancel",
            Self::Echo => "Echo",
            Self::Restore => "Restore",
            Self::Notify => "Notify",
            Self::Binlogs => "Binlogs",
        }
    }
}

/// The value of a request annotation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Request {
    /// What is asked for.
    pub action: Action,
    /// Chosen by the caller; the same id gives the same run.
    pub id: String,
    /// Who asks. The webhook sets it from the caller.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub by: String,
    /// RFC 3339 instant of the request.
    pub at: String,
    /// RFC 3339 instant after which the request is refused.
    pub expires_at: String,
    /// Why, as given by the caller.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Options of the action.
    #[serde(default, skip_serializing_if = "Options::is_default")]
    pub options: Options,
}

/// Options of a request; each action reads its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Options {
    /// Cancel, Verify: name of the run (its Job).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Verify: key of the artefact; the newest one if neither this nor `run` is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Verify: Checksum (unset), Restore or Replay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// Backup: wait for the active run instead of being refused under Forbid or Replace.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub queue: bool,
    /// Prune: remove every artefact of the object, before it is deleted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
    /// Prune: say what would go and why, remove nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}

impl Options {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// True for what may tell a request apart: it stands in status, and in tables, as it is.
pub fn is_id(text: &str) -> bool {
    !text.is_empty() && text.len() <= 128 && !text.chars().any(crate::text::is_unseen)
}

impl Request {
    /// A request made at `now`, valid for [`LIFETIME`].
    pub fn new(action: Action, id: &str, by: &str, now: DateTime<Utc>) -> Self {
        Self {
            action,
            id: id.to_owned(),
            by: by.to_owned(),
            at: rfc3339(now),
            expires_at: rfc3339(now + LIFETIME),
            reason: String::new(),
            options: Options::default(),
        }
    }

    /// Key of the annotation of the request with this id.
    pub fn annotation_key(id: &str) -> String {
        format!("{REQUEST_PREFIX}{}", short_hash(&[id], 10))
    }

    /// Value of the annotation.
    pub fn annotation_value(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads an annotation.
    ///
    /// # Errors
    /// A sentence that says what is wrong, to be echoed as a refused request.
    pub fn parse(value: &str) -> Result<Self, String> {
        if value == TOO_LONG {
            return Err(format!(
                "the annotation has more than {MAX_VALUE} bytes; send the request again with a shorter reason"
            ));
        }
        if value.len() > MAX_VALUE {
            return Err(too_long(value.len()));
        }
        let request: Self =
            serde_json::from_str(value).map_err(|e| format!("not a request: {e}"))?;
        if !is_id(&request.id) {
            return Err("id must have 1 to 128 bytes, and no invisible characters".into());
        }
        match request.action {
            Action::Restore => {
                return Err("a restore is requested by an object of kind Restore".into());
            }
            Action::Notify | Action::Binlogs => {
                return Err(format!(
                    "{} is reserved for the operator",
                    request.action.as_str()
                ));
            }
            _ => {}
        }
        for (field, text) in [("at", &request.at), ("expiresAt", &request.expires_at)] {
            if parse_rfc3339(text).is_none() {
                return Err(format!("{field} is not an RFC 3339 time"));
            }
        }
        Ok(request)
    }

    /// True if the request is older than its expiry.
    pub fn is_expired(&self, now: DateTime<Utc>) -> bool {
        parse_rfc3339(&self.expires_at).is_none_or(|at| at < now)
    }

    /// True if the request was made before `created`: it belongs to an earlier object of the name.
    pub fn predates(&self, created: DateTime<Utc>) -> bool {
        // Both are cut to whole seconds by different clocks; two seconds are no evidence.
        parse_rfc3339(&self.at).is_none_or(|at| plus_seconds(at, 2) < created)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let now = parse_rfc3339("2025-01-15T10:30:00Z").unwrap();
        let mut request = Request::new(Action::Cancel, "7f3a", "alice", now);
        request.options.run = Some("shop-1".into());
        assert_eq!(
            Request::parse(&request.annotation_value()),
            Ok(request.clone())
        );
        assert!(!request.is_expired(now + LIFETIME));
        assert!(request.is_expired(now + LIFETIME + Duration::seconds(1)));
        assert!(request.predates(now + Duration::seconds(3)));
        assert!(!request.predates(now));
        let key = Request::annotation_key("7f3a");
        assert_eq!(key.len(), REQUEST_PREFIX.len() + 10);
    }

    #[test]
    fn nonsense_is_refused_with_a_sentence() {
        for bad in [
            "",
            "{}",
            "[1]",
            r#"{"action":"Backup","id":"","at":"x","expiresAt":"y"}"#,
            "{\"action\":\"Backup\",\"id\":\"7\\u202e\",\"at\":\"2025-01-15T10:30:00Z\",\"expiresAt\":\"2025-01-15T10:30:00Z\"}",
            TOO_LONG,
            &format!(
                r#"{{"action":"Backup","id":"7","reason":"{}"}}"#,
                "x".repeat(MAX_VALUE)
            ),
            r#"{"action":"Restore","id":"1","at":"2025-01-15T10:30:00Z","expiresAt":"2025-01-15T10:30:00Z"}"#,
            r#"{"action":"Notify","id":"1","at":"2025-01-15T10:30:00Z","expiresAt":"2025-01-15T10:30:00Z"}"#,
            r#"{"action":"Boom","id":"1","at":"2025-01-15T10:30:00Z","expiresAt":"2025-01-15T10:30:00Z"}"#,
        ] {
            assert!(Request::parse(bad).is_err(), "{bad}");
        }
    }
}
