//! The webhooks' HTTPS server.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use futures::StreamExt as _;
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tracing::info;

use super::Metrics;
use super::admit::{self, Endpoint};
use super::certs::{Callers, Served};
use super::rights::Rights;
use crate::context::Clock;
use crate::serving::{self, Limits};

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
/// A body beyond this is large: few of them are in memory at a time.
const LARGE: usize = 64 * 1024;
/// How many.
const LARGE_AT_ONCE: usize = 4;
/// Time for a whole request; the API server waits no longer (`timeoutSeconds`).
const REQUEST: Duration = Duration::from_secs(5);
/// What the port puts up with. An API server keeps a connection a call under way.
const LIMITS: Limits = Limits {
    connections: 256,
    of_a_peer: 128,
    handshake: Duration::from_secs(3),
    // An API server goes on using a connection that was idle for less.
    head: Duration::from_secs(30),
    request: REQUEST,
    answer: Duration::from_secs(45),
};

#[derive(Clone)]
struct App {
    clock: Clock,
    metrics: Metrics,
    rights: Rights,
    large: Arc<Semaphore>,
}

/// The routes, without TLS. `rights` answers what a caller may do.
pub fn router(clock: Clock, metrics: Metrics, rights: Rights) -> Router {
    let app = App {
        clock,
        metrics,
        rights,
        large: Arc::new(Semaphore::new(LARGE_AT_ONCE)),
    };
    Router::new()
        .route(MUTATE, post(mutate))
        .route(MUTATE_GOBACKUP, post(mutate))
        .route(VALIDATE, post(validate))
        .route(VALIDATE_RESTORE, post(validate))
        .route(VALIDATE_GOBACKUP, post(validate))
        .with_state(app)
}

async fn mutate(State(app): State<App>, request: Request) -> Response {
    app.answer(Endpoint::Mutate, request).await
}

async fn validate(State(app): State<App>, request: Request) -> Response {
    app.answer(Endpoint::Validate, request).await
}

/// Reads a body of at most [`MAX_BODY`]. A large one holds a place until it is answered, taken before
/// more of it than [`LARGE`] is read.
///
/// # Errors
/// The answer to one that is too large or breaks off.
async fn body(
    request: Request,
    large: &Arc<Semaphore>,
) -> Result<(Vec<u8>, Option<OwnedSemaphorePermit>), StatusCode> {
    let length = request.headers().get(header::CONTENT_LENGTH);
    let length = length.and_then(|l| l.to_str().ok()?.parse::<usize>().ok());
    if length.is_some_and(|l| l > MAX_BODY) {
        return Err(StatusCode::PAYLOAD_TOO_LARGE);
    }
    let mut held = None;
    let mut text = Vec::with_capacity(length.unwrap_or_default().min(LARGE));
    let body: Body = request.into_body();
    let mut stream = body.into_data_stream();
    loop {
        if text.len() >= LARGE && held.is_none() {
            // It is never closed.
            held = large.clone().acquire_owned().await.ok();
        }
        let Some(part) = stream.next().await else {
            return Ok((text, held));
        };
        let part: Bytes = part.map_err(|_| StatusCode::BAD_REQUEST)?;
        if text.len() + part.len() > MAX_BODY {
            return Err(StatusCode::PAYLOAD_TOO_LARGE);
        }
        text.extend_from_slice(&part);
    }
}

impl App {
    async fn answer(&self, endpoint: Endpoint, request: Request) -> Response {
        let (body, _held) = match body(request, &self.large).await {
            Ok(read) => read,
            Err(status) => {
                self.metrics.count(endpoint, "unreadable");
                return status.into_response();
            }
        };
        let asked = match admit::Asked::read(&body) {
            Ok(asked) => asked,
            Err(fault) => {
                self.metrics.count(endpoint, "unreadable");
                return (StatusCode::BAD_REQUEST, fault.to_string()).into_response();
            }
        };
        drop(body);
        let mut denied = None;
        if endpoint == Endpoint::Validate
            && let Some(removal) = asked.removal()
        {
            denied = self.rights.refusal(&removal).await;
        }
        let review = asked.answer(endpoint, self.clock.now(), denied);
        let response = review.response.as_ref();
        let allowed = response.is_some_and(|r| r.allowed);
        self.metrics
            .count(endpoint, if allowed { "allowed" } else { "denied" });
        if let Some(response) = response.filter(|r| !r.allowed) {
            info!(message = %response.result.message, "an object was refused");
        }
        Json(review).into_response()
    }
}

/// Accepts connections until `stop`, then ends those there are. With `callers` a caller has to show a
/// certificate that comes from one of them.
///
/// # Errors
/// If TLS can't be set up.
pub async fn serve(
    listener: TcpListener,
    served: &Served,
    callers: Option<Callers>,
    routes: Router,
    stop: CancellationToken,
) -> Result<(), super::certs::ServeError> {
    let tls = TlsAcceptor::from(Arc::new(served.server_config(callers)?));
    serving::serve(listener, Some(tls), routes, LIMITS, stop).await;
    Ok(())
}

#[cfg(test)]
mod tests;
