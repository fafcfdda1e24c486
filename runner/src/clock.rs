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

/// `1h2m3s`, parts that are zero left out.
pub fn duration(duration: Duration) -> String {
    let total = duration.as_secs();
    let (h, m, s) = (total / 3600, total / 60 % 60, total % 60);
    let mut text = String::new();
    for (n, unit) in [(h, "h"), (m, "m")] {
        if n > 0 {
            text.push_str(&format!("{n}{unit}"));
        }
    }
    if s > 0 || text.is_empty() {
        text.push_str(&format!("{s}s"));
    }
    text
}
