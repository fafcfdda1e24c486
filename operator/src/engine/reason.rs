//! Every reason that the operator gives by itself, of conditions, runs, slots and events. Users and
//! alerts match them: a text stands once, here or, where the other programs read it too, in
//! [`crds::condition::reason`].

pub(crate) use crds::condition::reason::*;
use crds::report::Reason;

// Of conditions.

/// The object is not accepted, which says why.
pub(crate) const NOT_ACCEPTED: &str = "NotAccepted";
/// The object runs once.
pub(crate) const NO_SCHEDULE: &str = "NoSchedule";
/// All that the object refers to is there and fits.
pub(crate) const RESOLVED: &str = "Resolved";
/// A run or request spoke to the database or storage.
pub(crate) const REACHED: &str = "Reached";
/// Nothing was compared.
pub(crate) const NOT_VERIFIED: &str = "NotVerified";
/// Everything compared equal.
pub(crate) const PASSED: &str = "Passed";
/// The Job of a Restore runs.
pub(crate) const RUNNING: &str = "Running";

// Of binary logs: of condition BinlogsComplete, then events.

/// Every event since the newest backup is stored.
pub(crate) const COMPLETE: &str = "Complete";
/// Nothing was pulled yet.
pub(crate) const NOT_PULLED_YET: &str = "NotPulledYet";
/// There is no backup that what was pulled follows.
pub(crate) const NO_BACKUP_YET: &str = "NoBackupYet";

/// Events are not stored.
pub(crate) const BINLOG_GAP: &str = "BinlogGap";
/// A pull failed, and the one before it did not.
pub(crate) const BINLOGS_FAILED: &str = "BinlogsFailed";
/// A pull was good, and the one before it was not.
pub(crate) const BINLOGS_PULLED: &str = "BinlogsPulled";

// Of runs that wait.

/// A run is active, and the policy lets none start beside it.
pub(crate) const CONCURRENCY_FORBID: &str = "ConcurrencyForbid";
/// The active run is being replaced.
pub(crate) const REPLACING: &str = "Replacing";
/// `--max-active-runs` is reached.
pub(crate) const MAX_ACTIVE_RUNS: &str = "MaxActiveRuns";
/// [`crds::status::MAX_OPEN_RUNS`] is reached.
pub(crate) const MAX_OPEN_RUNS: &str = "MaxOpenRuns";
/// Somebody suspended the Job.
pub(crate) const JOB_SUSPENDED: &str = "JobSuspended";
/// The container does not run, for a reason that is no CamelCase word.
pub(crate) const NOT_STARTED: &str = "NotStarted";

// Of runs that ended, where the runner said nothing. Where the runner has a word for it, it is that one.

/// The run is good.
pub(crate) const COMPLETED: &str = Reason::Completed.as_str();
/// The container was not running in time. Also an intent.
pub(crate) const NEVER_STARTED: &str = "NeverStarted";
/// No pod was made in time, and nobody said why.
pub(crate) const NO_POD: &str = "NoPod";
/// The Job vanished before its end was seen.
pub(crate) const JOB_DELETED: &str = "JobDeleted";
/// Our runner's container ended with status 0 and left no report.
pub(crate) const NO_REPORT: &str = "NoReport";
/// The Job's activeDeadlineSeconds ran out.
pub(crate) const TIMEOUT: &str = Reason::Timeout.as_str();
/// The container used more memory than its limit.
pub(crate) const OOM_KILLED: &str = "OOMKilled";
/// The container was killed.
pub(crate) const KILLED: &str = "Killed";
/// The container was asked to stop.
pub(crate) const TERMINATED: &str = Reason::Terminated.as_str();
/// The container found its settings wrong.
pub(crate) const INVALID_SETTINGS: &str = Reason::InvalidSettings.as_str();
/// The container ended with another status.
pub(crate) const EXIT_CODE: &str = "ExitCode";
/// The API server refused the Job without a reason.
pub(crate) const REFUSED: &str = "Refused";

// Of slots that were not started.

/// The operator was not there, or was kept from starting.
pub(crate) const OUTAGE: &str = "Outage";
/// startingDeadlineSeconds had passed. A Job's own end by its deadline bears the same word.
pub(crate) const DEADLINE_EXCEEDED: &str = "DeadlineExceeded";
/// The schedule changed before the slot could start.
pub(crate) const SCHEDULE_CHANGED: &str = "ScheduleChanged";
/// Of a notice whose stretch has left the list.
pub(crate) const MISSED: &str = "Missed";

// Of Restores that wait or were refused.

/// There is no object of the name.
pub(crate) const BACKUP_NOT_FOUND: &str = "BackupNotFound";
/// What the backup refers to is missing or wrong.
pub(crate) const REFERENCES_NOT_RESOLVED: &str = "ReferencesNotResolved";
/// The run has not ended.
pub(crate) const RUN_NOT_FINISHED: &str = "RunNotFinished";
/// The run stored nothing.
pub(crate) const RUN_NOT_GOOD: &str = "RunNotGood";

// Of events alone.

/// A run ended well.
pub(crate) const BACKUP_SUCCEEDED: &str = "BackupSucceeded";
/// A run failed, or could never start.
pub(crate) const BACKUP_FAILED: &str = "BackupFailed";
/// A slot that waited gave way.
pub(crate) const SLOT_SKIPPED: &str = "SlotSkipped";
/// Slots were skipped by annotation.
pub(crate) const SLOTS_SKIPPED: &str = "SlotsSkipped";
/// Slots were not started.
pub(crate) const SLOTS_MISSED: &str = "SlotsMissed";
/// A slot waits for a limit.
pub(crate) const START_LIMITED: &str = "StartLimited";
/// A slot waits for a run.
pub(crate) const JOB_ALREADY_ACTIVE: &str = "JobAlreadyActive";
/// Another container kept the pod from its end.
pub(crate) const CONTAINER_DID_NOT_END: &str = "ContainerDidNotEnd";
/// A request was not acted on.
pub(crate) const REQUEST_REFUSED: &str = "RequestRefused";
/// The annotation holds no time.
pub(crate) const RESUME_AT_INVALID: &str = "ResumeAtInvalid";
/// Something suspended the object after its suspension had ended.
pub(crate) const SUSPENDED_AGAIN: &str = "SuspendedAgain";
/// A verification passed.
pub(crate) const BACKUP_VERIFIED: &str = "BackupVerified";
/// Receivers were not told.
pub(crate) const NOTIFICATION_FAILED: &str = "NotificationFailed";
/// Books that were ahead of the clock were set back.
pub(crate) const ACCOUNTING_MENDED: &str = "AccountingMended";
/// The Job of a Restore runs.
pub(crate) const RESTORE_STARTED: &str = "RestoreStarted";
/// Something keeps the Job of a Restore from running.
pub(crate) const RESTORE_PENDING: &str = "RestorePending";
/// A Restore succeeded. Also of its conditions.
pub(crate) const RESTORED: &str = Reason::Restored.as_str();
/// A Restore failed.
pub(crate) const RESTORE_FAILED: &str = Reason::RestoreFailed.as_str();
