//! The status fields that Backup has beside the engine's. PURE.

use crds::ScheduleStatus;
use crds::backup::{MAX_RECENT_RUNS, RecentRun};
use crds::run::{Run, RunResult};
use serde_json::{Value, json};

/// Adds the original's fields, all of them derived from the engine's.
pub(super) fn decorate(status: &mut Value, engine: &ScheduleStatus) {
    let Some(fields) = status.as_object_mut() else {
        return;
    };
    let shown = |r: &&Run| !matches!(r.result, RunResult::Waiting | RunResult::Skipped);
    let recent: Vec<RecentRun> = engine
        .runs
        .iter()
        .filter(shown)
        .take(MAX_RECENT_RUNS)
        .map(recent)
        .collect();
    let newest = recent.first().cloned();
    let phase = newest
        .as_ref()
        .and_then(|r| r.phase.clone())
        .unwrap_or_else(|| "Idle".to_owned());
    fields.insert("phase".into(), json!(phase));
    if let Some(newest) = newest {
        let at = newest.completion_time.clone().or(newest.start_time.clone());
        if let Some(at) = at {
            fields.insert("lastBackupTime".into(), json!(at));
        }
        fields.insert("lastRun".into(), json!(newest));
        fields.insert("recentRuns".into(), json!(recent));
    }
    if let Some(at) = &engine.last_successful_time {
        fields.insert("lastSuccessfulBackupTime".into(), json!(at));
    }
    let totals = engine.totals.unwrap_or_default();
    let manual = engine
        .runs
        .iter()
        .filter(|r| r.slot.is_none() && r.result == RunResult::Succeeded)
        .count();
    let good = totals
        .succeeded
        .saturating_add(i64::try_from(manual).unwrap_or(0));
    fields.insert(
        "successCount".into(),
        json!(i32::try_from(good).unwrap_or(i32::MAX)),
    );
    fields.insert(
        "failureCount".into(),
        json!(engine.consecutive_failures.unwrap_or(0)),
    );
}

fn recent(run: &Run) -> RecentRun {
    let phase = match run.result {
        RunResult::Succeeded => "Succeeded",
        RunResult::Failed => "Failed",
        RunResult::Running if run.phase.is_none() => "Pending",
        _ => "Running",
    };
    RecentRun {
        job_name: Some(run.name.clone()),
        start_time: run.start_time.clone(),
        completion_time: run.completion_time.clone(),
        phase: Some(phase.to_owned()),
        message: Some(run.message.clone()).filter(|m| !m.is_empty()),
        logs: None,
    }
}
