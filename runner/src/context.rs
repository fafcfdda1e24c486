//! What all parts of a run share.

use std::sync::{Arc, OnceLock};

use crds::report::Reason;

use crate::cancel::{self, Cancel, Cause};
use crate::clock::{Clock, duration};
use crate::failure::Failure;
use crate::memory::{self, PrivateFile};
use crate::process::Parent;
use crate::report::Reporter;
use crate::scrub::Scrub;
use crate::settings::Settings;
use crate::store::{Attempt, Store, open};

/// What all parts of a run share.
pub struct Context {
    /// What to do.
    pub settings: Settings,
    /// Ends the run early.
    pub cancel: Cancel,
    /// What the run says of itself.
    pub reporter: Arc<Reporter>,
    /// Keeps secrets in.
    pub scrub: Arc<Scrub>,
    /// Now.
    pub clock: Clock,
    /// Another one for each start of the program.
    pub nonce: String,
    /// The destination, once it is open.
    pub store: OnceLock<Arc<dyn Store>>,
}

impl Context {
    /// The run may go on.
    ///
    /// # Errors
    /// The time limit ran out or a signal came.
    pub fn check(&self) -> Result<(), Failure> {
        match self.cancel.cause() {
            None => Ok(()),
            Some(cause) => Err(self.cancelled(cause)),
        }
    }

    /// Opens the destination and remembers it.
    ///
    /// # Errors
    /// It can't be used.
    pub fn open_store(&self) -> Result<Arc<dyn Store>, Failure> {
        let store = open::destination(&self.settings, self.attempt(), &self.reporter)?;
        Ok(Arc::clone(self.store.get_or_init(|| store)))
    }

    /// Writes a file that only this user may read, on memory, with a name of this start of the program.
    ///
    /// # Errors
    /// There is no directory on memory, or it is full.
    pub fn private_file(&self, name: &str, content: &str) -> Result<PrivateFile, Failure> {
        let directory = memory::directory(&self.settings.memory)?;
        memory::private_file(directory, &format!("{}-{name}", self.nonce), content)
    }

    /// Whose temporaries are those of this start of the program.
    pub fn attempt(&self) -> Attempt {
        Attempt {
            run: self.settings.identity.run.clone(),
            pod: self.settings.identity.pod.clone(),
            nonce: self.nonce.clone(),
        }
    }

    /// Why a run that was ended early is not good, and what it leaves.
    pub fn cancelled(&self, cause: Cause) -> Failure {
        let report = self.reporter.snapshot();
        let phase = &report.phase;
        let restore = self.settings.asks_for_restore();
        let stored: Vec<&str> = report.artefacts.iter().map(|a| a.key.as_str()).collect();
        let left = self
            .reporter
            .left()
            .unwrap_or_else(|| cancel::left_behind(self.settings.action, restore, phase, &stored));
        match cause {
            Cause::Timeout => Failure::new(
                Reason::Timeout,
                format!(
                    "timeout: not finished within {} (phase {phase}); {left}; look for locks and a slow network or volume, or raise TIMEOUT (activeDeadlineSeconds)",
                    duration(self.settings.timeout.unwrap_or_default())
                ),
            ),
            Cause::Terminated => Failure::new(
                Reason::Terminated,
                format!(
                    "the pod was asked to end (SIGTERM) in phase {phase}: it was deleted, evicted or preempted; {left}"
                ),
            ),
        }
    }
}

impl Parent for Context {
    fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    fn scrub(&self) -> &Arc<Scrub> {
        &self.scrub
    }
}
