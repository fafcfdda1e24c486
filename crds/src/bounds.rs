//! The most that a number in a spec may be, in the schema and where an object with more is stored
//! already: what is read of it is cut to the bound, so that no sum of it and a time leaves the
//! calendar. The kinds of gobackup.io take negative numbers, as the original did: what is wrong
//! about one is told by a condition.

/// Most seconds of a deadline, time limit or grace period: a century.
pub const MAX_SECONDS: i64 = 3_155_760_000;
/// Most seconds that a run may take until its container runs: a year.
pub const MAX_STARTUP_SECONDS: i64 = 31_536_000;
/// Seconds that a run may take until its container runs, where the object is silent.
pub const STARTUP_SECONDS: i64 = 600;
/// Most seconds over which starts are spread: a day.
pub const MAX_JITTER_SECONDS: i64 = 86_400;
/// Most finished Jobs that an object keeps.
pub const MAX_KEPT_JOBS: i32 = 10_000;
/// Most artefacts that a rule of retention keeps, and most good runs between verifications.
pub const MAX_COUNT: i32 = 1_000_000;
/// Most connections that a native dump reads with.
pub const MAX_SESSIONS: i32 = 16;
/// Most retries of a request to a store.
pub const MAX_RETRIES: i64 = 1_000;
/// Seconds after which a suspension, or slots that are skipped, are likely forgotten: a week.
pub const LONG_SECONDS: i64 = 604_800;
/// Seconds by which a clock may be ahead of another without a word: an hour.
pub const LEAP_SECONDS: i64 = 3_600;
/// Longest text of a duration.
pub const MAX_DURATION_TEXT: usize = 64;

/// Seconds of a deadline as the engine takes them.
#[must_use]
pub fn seconds(value: i64) -> i64 {
    value.clamp(0, MAX_SECONDS)
}

/// Seconds until a container runs, as the engine takes them.
#[must_use]
pub fn startup_seconds(value: i64) -> i64 {
    value.clamp(1, MAX_STARTUP_SECONDS)
}

/// Seconds of spread as the engine takes them.
#[must_use]
pub fn jitter_seconds(value: i64) -> i64 {
    value.clamp(0, MAX_JITTER_SECONDS)
}

/// Finished Jobs to keep as the engine takes them.
#[must_use]
pub fn kept_jobs(value: i64) -> i32 {
    i32::try_from(value.clamp(0, MAX_KEPT_JOBS.into())).unwrap_or(MAX_KEPT_JOBS)
}
