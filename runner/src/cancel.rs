//! One way to end a run early: the time limit or a signal, forwarded to every child's group.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crds::request::Action;
use rustix::process::{Pid, Signal, kill_process_group};

/// Why the run is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The time limit ran out.
    Timeout,
    /// SIGTERM or SIGINT.
    Terminated,
}

/// What a run that was ended early leaves, in words: `stored` are the artefacts it has vouched for.
pub fn left_behind(action: Action, restore: bool, phase: &str, stored: &[&str]) -> String {
    if restore {
        return match phase {
            "Restoring" => "the restore is half done: some of the dump may be in the target, do not use it before a restore has run to its end",
            _ => "nothing was restored: the target was not written to",
        }
        .to_owned();
    }
    match action {
        Action::Backup if stored.is_empty() => "nothing was stored".to_owned(),
        Action::Backup => format!(
            "stored and read back so far: {}; the rest was not stored",
            stored.join(", ")
        ),
        Action::Prune => {
            "some of what was to be removed may be gone, the rest is still there: ask again"
                .to_owned()
        }
        Action::Verify => "nothing was proven, and nothing changed in the store".to_owned(),
        Action::Binlogs => {
            "segments that were stored are whole, and the next run goes on behind them".to_owned()
        }
        Action::Notify => "some receivers may not have been told".to_owned(),
        Action::Restore | Action::Probe | Action::List | Action::Cancel | Action::Echo => {
            "nothing was changed".to_owned()
        }
    }
}

/// Shared by all parts of a run.
#[derive(Clone, Debug, Default)]
pub struct Cancel {
    state: Arc<AtomicU8>,
    groups: Arc<Mutex<Vec<Pid>>>,
    stops: Arc<Mutex<Vec<wire::Stop>>>,
    idle: Option<Duration>,
}

impl Cancel {
    /// One by which clients are ended that are silent for so long.
    pub fn with_idle(idle: Option<Duration>) -> Self {
        Self {
            idle,
            ..Self::default()
        }
    }

    /// Ends the waits of some connections to databases, when the run is to end or who has it says so.
    pub fn stop(&self) -> wire::Stop {
        let stop = wire::Stop::default();
        let mut stops = self.stops.lock().unwrap_or_else(PoisonError::into_inner);
        stops.push(stop.clone());
        if self.cause().is_some() {
            stop.stop();
        }
        stop
    }

    /// So long may a client be silent; `None` means without end.
    pub fn idle(&self) -> Option<Duration> {
        self.idle
    }

    /// The cause, once there is one. The first stays.
    pub fn cause(&self) -> Option<Cause> {
        match self.state.load(Ordering::Acquire) {
            1 => Some(Cause::Timeout),
            2 => Some(Cause::Terminated),
            _ => None,
        }
    }

    /// Asks the run to end, sends SIGTERM to the groups of its children, and ends what connections wait for.
    pub fn cancel(&self, cause: Cause) {
        let value = match cause {
            Cause::Timeout => 1,
            Cause::Terminated => 2,
        };
        let _ = self
            .state
            .compare_exchange(0, value, Ordering::AcqRel, Ordering::Acquire);
        let stops = self.stops.lock().unwrap_or_else(PoisonError::into_inner);
        stops.iter().for_each(wire::Stop::stop);
        drop(stops);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r6_only_a_backup_that_stored_nothing_says_that_nothing_was_stored() {
        let said =
            |action, restore, phase, stored: &[&str]| left_behind(action, restore, phase, stored);
        assert_eq!(
            said(Action::Backup, false, "Dumping", &[]),
            "nothing was stored"
        );
        assert!(said(Action::Backup, false, "Storing", &["a/b.tar"]).contains("so far: a/b.tar"));
        let half = said(Action::Restore, true, "Restoring", &["a.sql"]);
        assert!(
            half.contains("half done") && half.contains("do not use it"),
            "{half}"
        );
        let early = said(Action::Restore, true, "ReadingBack", &["a.sql"]);
        assert!(early.contains("nothing was restored"), "{early}");
        for action in [
            Action::Restore,
            Action::Verify,
            Action::Prune,
            Action::Probe,
            Action::List,
            Action::Notify,
        ] {
            for restore in [true, false] {
                for phase in ["Connecting", "ReadingBack", "Restoring", "Pruning"] {
                    let words = said(action, restore, phase, &[]);
                    assert!(!words.contains("nothing was stored"), "{action:?}: {words}");
                }
            }
        }
    }
}
