//! The webhooks' HTTPS server.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{debug, info};

use super::Metrics;
use super::admit::{self, Endpoint};
use super::certs::Served;
use crate::context::Clock;

/// Path of the defaulting webhook.
pub const MUTATE: &str = "/mutate-batch-isekiro-com-v1-mysqlbackup";
/// Path of the webhook that signs requests on the kinds of gobackup.io.
pub const MUTATE_GOBACKUP: &str = "/mutate-gobackup-io-v1";
/// Path of the validating webhook.
pub const VALIDATE: &str = "/validate-batch-isekiro-com-v1-mysqlbackup";
/// Path of the validating webhook of Restores.
pub const VALIDATE_RESTORE: &str = "/validate-batch-isekiro-com-v1-restore";
/// Path of the validating webhook of all kinds of gobackup.io.
pub const VALIDATE_GOBACKUP: &str = "/validate-gobackup-io-v1";

/// An AdmissionReview holds the object twice, each of at most 3 MiB.
const MAX_BODY: usize = 7 << 20;
/// Connections beyond this many wait.
const MAX_CONNECTIONS: usize = 128;
/// Time for a TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// Time for the head of a request; an idle connection is closed after it.
const HEAD: Duration = Duration::from_secs(30);
/// Time for a whole request; the API server waits no longer (`timeoutSeconds`).
const REQUEST: Duration = Duration::from_secs(5);
/// Time for requests under way when the process stops.
const DRAIN: Duration = Duration::from_secs(5);

#[derive(Clone)]
struct App {
    clock: Clock,
    metrics: Metrics,
}

/// The routes, without TLS.
pub fn router(clock: Clock, metrics: Metrics) -> Router {
    let app = App { clock, metrics };
    Router::new()
        .route(MUTATE, post(mutate))
        .route(MUTATE_GOBACKUP, post(mutate))
        .route(VALIDATE, post(validate))
        .route(VALIDATE_RESTORE, post(validate))
        .route(VALIDATE_GOBACKUP, post(validate))
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .with_state(app)
}

async fn mutate(State(app): State<App>, body: Bytes) -> Response {
    app.answer(Endpoint::Mutate, &body)
}

async fn validate(State(app): State<App>, body: Bytes) -> Response {
    app.answer(Endpoint::Validate, &body)
}

impl App {
    fn answer(&self, endpoint: Endpoint, body: &[u8]) -> Response {
        match admit::review(endpoint, body, self.clock.now()) {
            Ok(review) => {
                let allowed = review.response.as_ref().is_some_and(|r| r.allowed);
                self.metrics
                    .count(endpoint, if allowed { "allowed" } else { "denied" });
                if let Some(response) = review.response.as_ref().filter(|r| !r.allowed) {
                    info!(message = %response.result.message, "an object was refused");
                }
                Json(review).into_response()
            }
            Err(fault) => {
                self.metrics.count(endpoint, "unreadable");
                (StatusCode::BAD_REQUEST, fault.to_string()).into_response()
            }
        }
    }
}

/// Accepts connections until `stop`, then ends those there are.
///
/// # Errors
/// If TLS can't be set up.
pub async fn serve(
    listener: TcpListener,
    served: &Served,
    routes: Router,
    stop: CancellationToken,
) -> Result<(), rustls::Error> {
    let tls = TlsAcceptor::from(Arc::new(served.server_config()?));
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let tasks = TaskTracker::new();
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = accept(&listener, &room) => accepted,
        };
        let Some((stream, peer, permit)) = accepted else {
            continue;
        };
        let (tls, routes, stop) = (tls.clone(), routes.clone(), stop.clone());
        tasks.spawn(async move {
            connection(stream, peer, tls, routes, stop).await;
            drop(permit);
        });
    }
    tasks.close();
    // What is not done by then is cut off with the process.
    let _ = timeout(DRAIN, tasks.wait()).await;
    Ok(())
}

async fn accept(
    listener: &TcpListener,
    room: &Arc<Semaphore>,
) -> Option<(TcpStream, SocketAddr, tokio::sync::OwnedSemaphorePermit)> {
    let permit = room.clone().acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, peer)) => Some((stream, peer, permit)),
        Err(error) => {
            // Out of files, or a peer that went away: neither may spin nor end the server.
            debug!(%error, "accept failed");
            tokio::time::sleep(Duration::from_millis(100)).await;
            None
        }
    }
}

async fn connection(
    stream: TcpStream,
    peer: SocketAddr,
    tls: TlsAcceptor,
    routes: Router,
    stop: CancellationToken,
) {
    let stream = match timeout(HANDSHAKE, tls.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return refused(peer, &error),
        Err(_) => return refused(peer, &io::Error::from(io::ErrorKind::TimedOut)),
    };
    let routes = routes.layer(axum::middleware::from_fn(within));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(routes));
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        debug!(%peer, %error, "webhook connection ended");
    }
}

/// Gives up on a request whose body does not arrive.
async fn within(request: axum::extract::Request, next: axum::middleware::Next) -> Response {
    match timeout(REQUEST, next.run(request)).await {
        Ok(response) => response,
        Err(_) => StatusCode::REQUEST_TIMEOUT.into_response(),
    }
}

fn refused(peer: SocketAddr, error: &io::Error) {
    debug!(%peer, %error, "TLS handshake failed");
}

#[cfg(test)]
mod tests;
