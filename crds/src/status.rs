//! The status every scheduled kind has: what the engine observed, slot by slot.

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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

/// Status of a scheduled kind. Times are instants; what a printer column shows is scalar.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ScheduleStatus {
    /// Generation of the spec this status speaks of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Jobs that exist and are not finished.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub active: Vec<ObjectReference>,
    /// Number of [`Self::active`], for the table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_count: Option<i32>,
    /// Newest slot that was started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_schedule_time: Option<Time>,
    /// Next slot; unset while suspended or if none comes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_schedule_time: Option<Time>,
    /// Completion of the newest good run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_successful_time: Option<Time>,
    /// Newest passed verification by restore.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_verified_time: Option<Time>,
    /// Good runs since the newest one that was chosen for verification by restore, where not each is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unverified_runs: Option<i32>,
    /// Result of the newest finished run, for the table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_result: Option<String>,
    /// Stored size of the newest good run, for the table (`1.8GiB`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_size: Option<String>,
    /// Failed runs since the newest good one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consecutive_failures: Option<i32>,
    /// The schedule the accounting below speaks of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<ObservedSchedule>,
    /// Every slot up to this instant is in [`Self::totals`] exactly once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accounted_until: Option<Time>,
    /// Finished runs without a slot whose Jobs were created up to this instant are in [`Self::totals`], listed or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manual_accounted_until: Option<Time>,
    /// Slots by outcome.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub totals: Option<Totals>,
    /// Newest runs, newest first, at most [`MAX_RUNS`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<Run>,
    /// Slots that were not started, newest first, at most [`MAX_MISSED`] entries.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missed: Vec<MissedSlots>,
    /// Newest requests, newest first, at most [`MAX_REQUESTS`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<RequestStatus>,
    /// Notices that a Job of their own is to send, oldest first, at most [`MAX_NOTICES`]. One leaves
    /// the list when its Job has ended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<PendingNotice>,
    /// When receivers were last told that the object is overdue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overdue_notified_time: Option<Time>,
    /// When the current suspension began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspended_since: Option<Time>,
    /// When the newest suspension ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resumed_at: Option<Time>,
    /// Operator installation that acts on this object, as namespace/name of its Lease. Others leave
    /// the object alone while that Lease is renewed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller: Option<String>,
    /// Other installations that watch this object too, at most [`MAX_OTHER_CONTROLLERS`]; each
    /// enters itself.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub other_controllers: Vec<String>,
    /// Accepted, Scheduled, LastRunSucceeded, Verified, Ready; Exclusive if another installation
    /// of the operator watches the object too.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// A schedule and the instant it became the object's schedule.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ObservedSchedule {
    /// `spec.schedule`.
    pub text: String,
    /// Effective zone; UTC if the spec names none.
    pub time_zone: String,
    /// Slots up to this instant belong to the schedule before the edit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
    /// What `@every` counts from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub anchor: Option<Time>,
}

/// Slots by outcome: `due = succeeded + failed + skipped + missed + running + waiting`, where
/// running and waiting are the open runs of the schedule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Totals {
    /// Slots that came due.
    pub due: i64,
    /// Slots whose run was good.
    pub succeeded: i64,
    /// Slots whose run was not.
    pub failed: i64,
    /// Slots not started on purpose (Forbid, skip-slots-until).
    pub skipped: i64,
    /// Slots not started because nobody could: outage, suspension, deadline.
    pub missed: i64,
    /// Runs somebody asked for; not slots.
    pub manual: i64,
}

/// Slots that were not started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MissedSlots {
    /// First of them.
    pub from: Time,
    /// Last of them.
    pub to: Time,
    /// How many.
    pub count: i64,
    /// Outage, Suspended, DeadlineExceeded, ConcurrencyForbid, SkippedByUser, …
    pub reason: String,
}

/// A notice of what no run's pod can tell. Its Job is named by object, event and subject, so that
/// it is sent once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PendingNotice {
    /// Failure, Missed or Overdue.
    pub event: NotificationEvent,
    /// The run that failed, the first slot that was missed, or the slot that is overdue.
    pub subject: String,
}

/// What became of a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RequestStatus {
    /// The caller's id.
    pub id: String,
    /// What was asked for.
    pub action: Action,
    /// Who asked.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub by: String,
    /// When it was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Time>,
    /// Why, in the caller's words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Where it stands.
    pub state: RequestState,
    /// The Job, once there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// Why it was refused or failed, or what came out.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// States of a request.
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
