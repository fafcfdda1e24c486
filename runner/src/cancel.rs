//! One way to end a run early: the time limit or a signal, forwarded to every child's group.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::process::{Pid, Signal, kill_process_group};

/// Why the run is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The time limit ran out.
    Timeout,
    /// SIGTERM or SIGINT.
    Terminated,
}

/// Shared by all parts of a run.
#[derive(Clone, Debug, Default)]
pub struct Cancel {
    state: Arc<AtomicU8>,
    groups: Arc<Mutex<Vec<Pid>>>,
}

impl Cancel {
    /// The cause, once there is one. The first stays.
    pub fn cause(&self) -> Option<Cause> {
        match self.state.load(Ordering::Acquire) {
            1 => Some(Cause::Timeout),
            2 => Some(Cause::Terminated),
            _ => None,
        }
    }

    /// Asks the run to end and sends SIGTERM to the groups of its children.
    pub fn cancel(&self, cause: Cause) {
        let value = match cause {
            Cause::Timeout => 1,
            Cause::Terminated => 2,
        };
        let _ = self
            .state
            .compare_exchange(0, value, Ordering::AcqRel, Ordering::Acquire);
        self.signal(Signal::TERM);
    }

    /// Ends what ignored SIGTERM.
    pub fn kill(&self) {
        self.signal(Signal::KILL);
    }

    /// Adds a child's process group; a run already cancelled signals it at once.
    pub fn register(&self, group: Pid) {
        self.lock().push(group);
        if self.cause().is_some() {
            let _ = kill_process_group(group, Signal::TERM);
        }
    }

    /// Removes a group before its leader is reaped, so that its number is never signalled again.
    pub fn forget(&self, group: Pid) {
        self.lock().retain(|g| *g != group);
    }

    fn signal(&self, signal: Signal) {
        for group in self.lock().iter() {
            let _ = kill_process_group(*group, signal);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Pid>> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
