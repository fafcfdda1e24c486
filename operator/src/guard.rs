//! A panic costs the piece of work it happened in and nothing else: it is caught, counted by task
//! and told. What the work held stays usable, because no lock is trusted for having been let go
//! in order (every one is taken with its poison ignored) and what a plan decides is read anew.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use futures::FutureExt as _;

use crate::metrics::{Metrics, Task};

/// Awaits `work`.
///
/// # Errors
/// What a panic in it said.
pub(crate) async fn caught<T>(
    metrics: &Metrics,
    task: Task,
    work: impl Future<Output = T>,
) -> Result<T, String> {
    let result = AssertUnwindSafe(work).catch_unwind().await;
    result.map_err(|payload| counted(metrics, task, &*payload))
}

/// Does `work`.
///
/// # Errors
/// What a panic in it said.
pub(crate) fn caught_now<T>(
    metrics: &Metrics,
    task: Task,
    work: impl FnOnce() -> T,
) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| counted(metrics, task, &*payload))
}

fn counted(metrics: &Metrics, task: Task, payload: &(dyn Any + Send)) -> String {
    metrics.panicked(task.as_str());
    said(payload)
}

/// What a panic said, in one line.
fn said(payload: &(dyn Any + Send)) -> String {
    let text = payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned());
    let text = text.unwrap_or_else(|| "a panic without words".to_owned());
    crds::report::clean(&text, 256)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::panic, reason = "tests")]
    use super::*;

    #[tokio::test]
    async fn o1_a_panic_is_caught_counted_and_quoted() {
        let metrics = Metrics::default();
        let late = caught(&metrics, Task::Reconcile, async {
            tokio::task::yield_now().await;
            panic!("at {}", 7)
        });
        assert_eq!(late.await, Err::<(), _>("at 7".to_owned()));
        let now = caught_now(&metrics, Task::Watch, || panic!("now"));
        assert_eq!(now, Err::<(), _>("now".to_owned()));
        assert_eq!(caught(&metrics, Task::Restore, async { 3 }).await, Ok(3));
        let text = metrics.text();
        for (task, count) in [
            ("reconcile", 1),
            ("watch", 1),
            ("restore", 0),
            ("scrape", 0),
        ] {
            let line = format!("backup_operator_panics_total{{task=\"{task}\"}} {count}");
            assert!(text.contains(&line), "{line} in {text}");
        }
    }

    /// With `panic = "abort"` nothing could be caught.
    #[test]
    fn o1_programs_are_built_to_unwind() {
        let workspace = include_str!("../../Cargo.toml");
        let aborts = workspace.lines().any(|line| {
            let line = line.replace(' ', "");
            line.starts_with("panic=") && line.contains("abort")
        });
        assert!(
            !aborts,
            "a panic in one object's work would end the operator"
        );
    }
}
