//! How much and how long a server is listened to.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// What is taken from a server at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a row, an event or an answer. The protocol's own end is 1 GiB. Memory for it is taken as it comes.
    pub packet: usize,
    /// For the name, each address and the login.
    pub connect: Duration,
    /// A server that sends or takes nothing for so long is given up; `None` waits without end.
    pub idle: Option<Duration>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            packet: 1 << 30,
            connect: Duration::from_secs(10),
            idle: Some(Duration::from_secs(5 * 60)),
        }
    }
}

/// Ends whatever a connection waits for, within half a second, from another thread.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Ends it: [`crate::Error::Stopped`].
    pub fn stop(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// True if it was ended.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// Whether connections move, for who watches them.
#[derive(Clone, Debug, Default)]
pub struct Pulse(Arc<Beats>);

#[derive(Debug, Default)]
struct Beats {
    waiting: AtomicBool,
    moved: AtomicU64,
}

impl Pulse {
    /// A number that changes with all that moves; `None` while the server is not waited for.
    #[must_use]
    pub fn waiting(&self) -> Option<u64> {
        self.0
            .waiting
            .load(Ordering::Acquire)
            .then(|| self.0.moved.load(Ordering::Acquire))
    }

    pub(crate) fn begin(&self) {
        self.0.waiting.store(true, Ordering::Release);
    }

    pub(crate) fn end(&self) {
        self.0.moved.fetch_add(1, Ordering::AcqRel);
        self.0.waiting.store(false, Ordering::Release);
    }
}
