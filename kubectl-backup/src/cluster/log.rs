//! A line for each request, as kubectl writes it from `-v=6` on: method, URL, status, milliseconds.
//! Headers and bodies are never shown: they hold tokens and Secrets.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::{Request, Response, Uri};
use kube::client::Body;
use tokio::time::Instant;
use tower::{Layer, Service};

/// Where lines go.
pub(crate) type Log = fn(&str);

/// Logs the requests to one server.
#[derive(Clone, Debug)]
pub(super) struct RequestLog {
    /// Nothing is told without it.
    pub(super) log: Option<Log>,
    /// The server's URL: requests know their path alone.
    pub(super) server: String,
}

impl RequestLog {
    /// A layer for the server at this URL.
    pub(super) fn new(log: Option<Log>, server: &Uri) -> Self {
        Self {
            log,
            server: crds::secret::mask(server.to_string().trim_end_matches('/')),
        }
    }
}

impl<S> Layer<S> for RequestLog {
    type Service = ClientLog<S>;

    fn layer(&self, inner: S) -> ClientLog<S> {
        ClientLog {
            layer: self.clone(),
            inner,
        }
    }
}

/// The service whose requests are logged.
#[derive(Clone, Debug)]
pub(super) struct ClientLog<S> {
    layer: RequestLog,
    inner: S,
}

impl<S, B> Service<Request<Body>> for ClientLog<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let Some(log) = self.layer.log else {
            return Box::pin(self.inner.call(request));
        };
        let path = request.uri().path_and_query().map(ToString::to_string);
        let begun = format!(
            "{} {}{}",
            request.method(),
            self.layer.server,
            path.unwrap_or_default()
        );
        let started = Instant::now();
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await;
            let status = match &answer {
                Ok(response) => response.status().to_string(),
                Err(_) => "no answer".to_owned(),
            };
            let took = started.elapsed().as_millis();
            log(&format!("{begun} {status} in {took} milliseconds"));
            answer
        })
    }
}
