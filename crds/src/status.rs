//! The status every scheduled kind has: what the engine observed, slot by slot.

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::binlogs::BinlogStatus;
use crate::parts::NotificationEvent;
use crate::request::Action;
use crate::run::Run;

/// Most runs in [`ScheduleStatus::runs`].
pub const MAX_RUNS: usize = 20;
/// Most runs of one object at a time: each open run stands in status, which has an end.
pub const MAX_OPEN_RUNS: usize = 10;
/// Runs that keep full detail.
pub const MAX_DETAILED_RUNS: usize = 3;
/// Most entries in [`ScheduleStatus::requests`].
pub const MAX_REQUESTS: usize = 10;
/// Most entries in [`ScheduleStatus::missed`].
pub const MAX_MISSED: usize = 10;
/// Most entries in [`ScheduleStatus::notices`].
pub const MAX_NOTICES: usize = 4;
/// Most entries in [`ScheduleStatus::other_controllers`].
pub const MAX_OTHER_CONTROLLERS: usize = 3;

/// Observed state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ScheduleStatus {
    /// Generation of the spec that this status refers to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Jobs that exist and have not finished.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub active: Vec<ObjectReference>,
    /// Number of active Jobs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_count: Option<i32>,
    /// Most recent scheduled time for which a run was started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_schedule_time: Option<Time>,
    /// Next scheduled time. Unset while suspended, or if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_schedule_time: Option<Time>,
    /// When the newest successful run ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_successful_time: Option<Time>,
    /// When an artefact last passed verification by restore.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_verified_time: Option<Time>,
    /// Number of successful runs since the last one that was chosen for verification by restore, if not every run is verified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unverified_runs: Option<i32>,
    /// Result of the last finished run. Cancelled or Replaced if its end was asked for, which is no failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_result: Option<String>,
    /// Stored size of the last successful run, such as 1.8GiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_size: Option<String>,
    /// Number of failed runs since the last successful one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consecutive_failures: Option<i32>,
    /// Schedule that the numbers in totals refer to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<ObservedSchedule>,
    /// Every scheduled time up to this moment is counted in totals exactly once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accounted_until: Option<Time>,
    /// Finished manual runs whose Jobs were created up to this moment are counted in totals, whether they are still listed or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manual_accounted_until: Option<Time>,
    /// Number of scheduled times by outcome.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub totals: Option<Totals>,
    /// The most recent runs, newest first, at most 20.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<Run>,
    /// Scheduled times at which no run was started, newest first, at most 10 entries.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missed: Vec<MissedSlots>,
    /// The most recent requests, newest first, at most 10.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<RequestStatus>,
    /// Notifications to be sent by a Job of their own, oldest first, at most 4. An entry is removed when its Job has ended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<PendingNotice>,
    /// Books of the intervals of spec.binlogs, and what is recoverable. Unset unless binary logs are stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub binlogs: Option<BinlogStatus>,
    /// When receivers were last notified that the backup is overdue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overdue_notified_time: Option<Time>,
    /// When the current suspension began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspended_since: Option<Time>,
    /// When the last suspension ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resumed_at: Option<Time>,
    /// Installation of the operator that acts on this object, as namespace/name of its Lease. Others leave the object alone while that Lease is renewed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller: Option<String>,
    /// Other installations of the operator that watch this object too, at most 3. Each adds itself.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub other_controllers: Vec<String>,
    /// Conditions Accepted, Scheduled, LastRunSucceeded, Verified and Ready; also Exclusive if another installation of the operator watches the object.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// A schedule and the instant it became the object's schedule.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ObservedSchedule {
    /// Text of spec.schedule.
    pub text: String,
    /// Time zone in effect. UTC if the spec names none.
    pub time_zone: String,
    /// Scheduled times up to this moment belong to the schedule before the last edit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
    /// Start of the intervals of @every.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub anchor: Option<Time>,
}

/// Slots by outcome: `due = succeeded + failed + skipped + missed + running + waiting`, where
/// running and waiting are the open runs of the schedule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Totals {
    /// Scheduled times that came due.
    pub due: i64,
    /// Scheduled times whose run was successful.
    pub succeeded: i64,
    /// Scheduled times whose run failed.
    pub failed: i64,
    /// Scheduled times at which no run was started on purpose (Forbid, skip-slots-until).
    pub skipped: i64,
    /// Scheduled times at which no run could be started: outage, suspension, deadline.
    pub missed: i64,
    /// Manual runs, which have no scheduled time.
    pub manual: i64,
}

/// Scheduled times at which no run was started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MissedSlots {
    /// First of these scheduled times.
    pub from: Time,
    /// Last of these scheduled times.
    pub to: Time,
    /// Number of these scheduled times.
    pub count: i64,
    /// Reason: Outage, Suspended, DeadlineExceeded, ConcurrencyForbid, SkippedByUser and others.
    pub reason: String,
}

/// A notice of what no run's pod can tell. Its Job is named by object, event and subject, so that
/// it is sent once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PendingNotice {
    /// Event: Failure, Missed, Overdue, Gap or Recovered.
    pub event: NotificationEvent,
    /// The run that failed, the first scheduled time that was missed, the one that is overdue, or the beginning of a gap.
    pub subject: String,
}

/// State of a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RequestStatus {
    /// ID of the request, chosen by the caller.
    pub id: String,
    /// Action that was requested.
    pub action: Action,
    /// Who made the request.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub by: String,
    /// When the request was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Time>,
    /// Why, as given by the caller.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// State.
    pub state: RequestState,
    /// Name of the Job, once it exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// Why the request was refused or failed, or its result.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// State of the request. Queued: waiting for a running run or a limit. Running: its Job exists. Succeeded: done. Failed: not done. Refused: not acted on. The message says why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RequestState {
    /// Seen, held back by a running run (`--queue`) or a limit.
    Queued,
    /// Its Job exists.
    Running,
    /// Done.
    Succeeded,
    /// Ended badly.
    Failed,
    /// Not acted on; the message says why.
    Refused,
}
