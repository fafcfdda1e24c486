//! Labels and annotations on Jobs, pods and the users' objects.
//!
//! All of ours carry [`PREFIX`]; a user's `podMetadata` may not set them.

/// Prefix of every label and annotation this product sets.
pub const PREFIX: &str = "batch.isekiro.com/";
/// Label of a Restore that only checks, made by the plugin and removed by it.
pub const CHECK: &str = "batch.isekiro.com/check";

/// Label: who manages the Job or pod. Value: [`MANAGER`].
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// Value of [`MANAGED_BY`], field manager and event reporter of the operator.
pub const MANAGER: &str = "backup-operator";
/// Field manager of the plugin.
pub const PLUGIN_MANAGER: &str = "kubectl-backup";

/// Label on Jobs and pods: UID of the owning object. Grouping is by UID, never by name.
pub const OWNER_UID: &str = "batch.isekiro.com/owner-uid";
/// Label on the Job and pod of a Restore: its UID.
pub const RESTORE_UID: &str = "batch.isekiro.com/restore-uid";
/// Annotation on Jobs and pods: kind of the owning object (a name may be longer than a label).
pub const OWNER_KIND: &str = "batch.isekiro.com/owner-kind";
/// Annotation on Jobs and pods: name of the owning object.
pub const OWNER_NAME: &str = "batch.isekiro.com/owner-name";
/// Annotation on Jobs: the slot, RFC 3339 in the schedule's zone.
pub const SCHEDULED_AT: &str = "batch.isekiro.com/scheduled-at";
/// Annotation on Jobs: [`crate::run::Trigger`] as text.
pub const TRIGGER: &str = "batch.isekiro.com/trigger";
/// Annotation on Jobs: id of the request that asked for the run.
pub const REQUEST_ID: &str = "batch.isekiro.com/request-id";
/// Annotation on Jobs that are not backups: [`crate::request::Action`] as text.
pub const ACTION: &str = "batch.isekiro.com/action";

/// Annotation prefix on the user's object: one request, `request-<10 hex of the id>`.
pub const REQUEST_PREFIX: &str = "batch.isekiro.com/request-";
/// Annotation that stands in the operator's memory alone, on what is kept of an object that is too
/// large to be read: its bytes.
pub const TOO_LARGE: &str = "batch.isekiro.com/too-large";
/// Annotation: suspends kinds that have no suspend field ("true").
pub const SUSPENDED: &str = "batch.isekiro.com/suspended";
/// Annotation: why the object is suspended.
pub const SUSPEND_REASON: &str = "batch.isekiro.com/suspend-reason";
/// Annotation: who suspended it.
pub const SUSPENDED_BY: &str = "batch.isekiro.com/suspended-by";
/// Annotation: RFC 3339 instant at which the operator ends the suspension.
pub const RESUME_AT: &str = "batch.isekiro.com/resume-at";
/// Annotation: slots up to this RFC 3339 instant are recorded as skipped, not made up.
pub const SKIP_SLOTS_UNTIL: &str = "batch.isekiro.com/skip-slots-until";
/// Annotation: RFC 3339 instant of the last edit of schedule or zone, stamped by webhook or plugin.
pub const SCHEDULE_SINCE: &str = "batch.isekiro.com/schedule-since";
/// Annotation: RFC 3339 instant at which suspend was set, stamped by webhook or plugin.
pub const SUSPENDED_SINCE: &str = "batch.isekiro.com/suspended-since";

/// Container name of the backup program in every pod of ours.
pub const CONTAINER: &str = "backup";
/// Name of the init container that copies the runner, in pods of a client's image.
pub const COPY_CONTAINER: &str = "copy-runner";
