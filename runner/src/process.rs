//! Child processes: clients, filters and scripts.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

/// How a client ended.
#[derive(Clone, Debug)]
pub struct Ended {
    /// Its status.
    pub status: ExitStatus,
    /// Its last messages, scrubbed.
    pub messages: Vec<String>,
    /// It was silent for so long and was ended for it.
    pub stalled: Option<Duration>,
}

impl Ended {
    /// True if it ended with status 0.
    pub fn good(&self) -> bool {
        self.status.success()
    }

    /// "exit status 2", or the signal that ended it.
    pub fn status_text(&self) -> String {
        match (self.status.code(), self.status.signal()) {
            (Some(code), _) => format!("exit status {code}"),
            (None, Some(signal)) => format!("signal {signal}"),
            (None, None) => "an unknown status".to_owned(),
        }
    }
}
