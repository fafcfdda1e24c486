//! The run's clock: read once at the edge, then advanced by the monotonic clock.

use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};

/// Wall-clock start of the run and the monotonic instant that belongs to it.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// When the run started.
    pub started: DateTime<Utc>,
    instant: Instant,
}

impl Clock {
    /// A clock that reads `started` at `instant`.
    pub fn new(started: DateTime<Utc>, instant: Instant) -> Self {
        Self { started, instant }
    }

    /// Time since the start.
    pub fn elapsed(&self) -> Duration {
        self.instant.elapsed()
    }

    /// Now, not moved by steps of the system's clock.
    pub fn now(&self) -> DateTime<Utc> {
        chrono::Duration::from_std(self.elapsed())
            .ok()
            .and_then(|elapsed| self.started.checked_add_signed(elapsed))
            .unwrap_or(self.started)
    }
}
