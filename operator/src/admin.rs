//! /healthz, /readyz and /metrics.

use std::convert::Infallible;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use axum::Router;
use axum::body::Body;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use crate::metrics::Metrics;
use crate::serving::{self, Limits};

/// Serves the probes; `ready` answers /readyz.
///
/// # Errors
/// If the address can't be bound.
pub async fn serve_health(
    address: SocketAddr,
    ready: Arc<dyn Fn() -> bool + Send + Sync>,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let probe = move || async move {
        if ready() {
            (StatusCode::OK, "ok")
        } else {
            (
                StatusCode::SERVICE_UNAVAILABLE,
                "reading the cluster's state",
            )
        }
    };
    let routes = Router::new()
        .route("/healthz", get(|| async { "ok" }))
        .route("/readyz", get(probe));
    serve(address, routes, stop).await
}

/// Serves the metrics.
///
/// # Errors
/// If the address can't be bound.
pub async fn serve_metrics(
    address: SocketAddr,
    metrics: Metrics,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let places = Arc::new(Semaphore::new(SCRAPES));
    let text = move || async move {
        let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
        match places.try_acquire_owned() {
            Ok(place) => ([(header::CONTENT_TYPE, kind)], stream(metrics, place)).into_response(),
            Err(_) => StatusCode::TOO_MANY_REQUESTS.into_response(),
        }
    };
    serve(address, Router::new().route("/metrics", get(text)), stop).await
}

/// Bytes sent at a time.
const CHUNK: usize = 32 * 1024;
/// Chunks made ahead of the network.
const AHEAD: usize = 2;

/// Scrapes at a time: each has a thread until its answer is taken.
const SCRAPES: usize = 4;

/// The text of /metrics in chunks, so that many objects do not make it a burden on memory; `place` is
/// free when it is done.
fn stream(metrics: Metrics, place: OwnedSemaphorePermit) -> Body {
    let (sender, receiver) = mpsc::channel(AHEAD);
    tokio::task::spawn_blocking(move || {
        let _place = place;
        let mut sink = Sink {
            sender,
            chunk: String::new(),
        };
        // A scraper that went away ends it; one that is cut off misses the end mark.
        let _ = metrics.write(&mut sink).and_then(|()| sink.flush());
    });
    let chunks = futures::stream::unfold(receiver, |mut receiver| async {
        let chunk = receiver.recv().await?;
        Some((Ok::<String, Infallible>(chunk), receiver))
    });
    Body::from_stream(chunks)
}

/// Collects text to chunks and sends them, waiting for the network.
struct Sink {
    sender: mpsc::Sender<String>,
    chunk: String,
}

impl Sink {
    fn flush(&mut self) -> fmt::Result {
        let chunk = std::mem::take(&mut self.chunk);
        self.sender.blocking_send(chunk).map_err(|_| fmt::Error)
    }
}

impl fmt::Write for Sink {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.chunk.push_str(text);
        if self.chunk.len() < CHUNK {
            return Ok(());
        }
        self.flush()
    }
}

/// What these ports put up with: a kubelet and a few scrapers call.
const LIMITS: Limits = Limits {
    connections: 64,
    of_a_peer: 32,
    // There is none.
    handshake: Duration::from_secs(1),
    head: Duration::from_secs(10),
    request: Duration::from_secs(10),
    answer: Duration::from_secs(60),
};

async fn serve(address: SocketAddr, routes: Router, stop: CancellationToken) -> anyhow::Result<()> {
    let listener = TcpListener::bind(address)
        .await
        .with_context(|| format!("failed to listen on {address}"))?;
    serving::serve(listener, None, routes, LIMITS, stop).await;
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

    use futures::StreamExt as _;
    use prometheus_client::metrics::family::Family;
    use prometheus_client::metrics::gauge::Gauge;

    use super::*;

    fn many() -> Metrics {
        let many = Family::<Vec<(String, String)>, Gauge>::default();
        for n in 0..5000 {
            many.get_or_create(&vec![("name".to_owned(), format!("object-{n}"))])
                .set(n);
        }
        Metrics::new(|registry| registry.register("many", "Many", many))
    }

    #[tokio::test]
    async fn a_large_text_comes_whole_and_in_pieces() {
        let metrics = many();
        let place = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
        let mut chunks = stream(metrics.clone(), place).into_data_stream();
        let (mut whole, mut pieces) = (Vec::new(), 0);
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.unwrap();
            assert!(chunk.len() < 2 * CHUNK, "{}", chunk.len());
            whole.extend_from_slice(&chunk);
            pieces += 1;
        }
        assert!(pieces > 3, "{pieces}");
        assert_eq!(String::from_utf8(whole).unwrap(), metrics.text());
    }

    #[tokio::test]
    async fn a_scraper_that_goes_away_leaves_nobody_waiting() {
        let metrics = many();
        let (sender, mut receiver) = mpsc::channel(AHEAD);
        let writer = tokio::task::spawn_blocking(move || {
            let mut sink = Sink {
                sender,
                chunk: String::new(),
            };
            metrics.write(&mut sink)
        });
        receiver.recv().await.unwrap();
        drop(receiver);
        assert!(writer.await.unwrap().is_err());
    }
}
