//! /healthz, /readyz and /metrics.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context as _;
use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::metrics::Metrics;

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
    let text = move || async move {
        let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
        ([(header::CONTENT_TYPE, kind)], metrics.text()).into_response()
    };
    serve(address, Router::new().route("/metrics", get(text)), stop).await
}

async fn serve(address: SocketAddr, routes: Router, stop: CancellationToken) -> anyhow::Result<()> {
    let listener = TcpListener::bind(address)
        .await
        .with_context(|| format!("failed to listen on {address}"))?;
    let ended = stop.clone().cancelled_owned();
    axum::serve(listener, routes)
        .with_graceful_shutdown(ended)
        .await?;
    Ok(())
}
