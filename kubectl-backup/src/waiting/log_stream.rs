//! A container's log as it comes, through broken connections and restarts.

use std::time::Duration;

use futures::StreamExt;
use tokio::sync::mpsc;

use crate::cluster::{Cluster, LogOptions};
use crate::view::pod::{Stage, stage};

/// Sends the lines of a container's log until it has ended. A stream that breaks is opened again
/// where it broke; a container that restarts is followed into its next life.
pub(crate) async fn stream(
    cluster: Cluster,
    namespace: String,
    pod: String,
    container: String,
    lines: mpsc::Sender<String>,
) {
    let options = LogOptions {
        container: Some(container.clone()),
        follow: true,
        ..LogOptions::default()
    };
    let (mut life, mut shown, mut failures, mut ended) = (None, 0usize, 0u32, false);
    loop {
        if let Ok(mut log) = cluster.log(&namespace, &pod, &options).await {
            let mut count = 0usize;
            while let Some(Ok(line)) = log.next().await {
                count += 1;
                if count > shown && lines.send(line).await.is_err() {
                    return;
                }
            }
            shown = shown.max(count);
            failures = 0;
        } else {
            failures += 1;
        }
        if ended {
            return;
        }
        let Ok(Some(now)) = cluster.pod(&namespace, &pod).await else {
            return;
        };
        match stage(&now, &container, &[]) {
            // What it wrote between the end of the stream and its own is still to be read.
            Stage::Ended(_) => {
                ended = true;
                continue;
            }
            Stage::Running(restarts) => {
                if life.is_some_and(|life| life != restarts) {
                    shown = 0;
                }
                life = Some(restarts);
            }
            Stage::Waiting(_) => {}
        }
        if failures > 20 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}
