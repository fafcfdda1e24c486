//! Admission: defaults, checks, warnings, and the certificate it is served with.
//!
//! failurePolicy is Ignore: a replica without a certificate, or none at all, stops nobody.

pub mod admit;
pub mod certs;
pub mod rights;
pub mod server;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kube::Client;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::context::Clock;
use admit::Endpoint;
use certs::secret::Keeper;
use certs::{Callers, Served, directory};
use rights::Rights;

/// How often the certificate's expiry is copied to the metric, and a taken address tried again.
const PERIOD: Duration = Duration::from_secs(5);

/// What the webhooks need.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Address to listen on.
    pub address: SocketAddr,
    /// Where the certificate comes from.
    pub source: Source,
    /// CAs of which one has to have signed the certificate of whoever calls; `None` lets anybody call.
    pub callers: Option<Callers>,
}

/// Where the certificate comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Files somebody else keeps.
    Directory(PathBuf),
    /// The operator's own Secret in this namespace.
    Secret(String),
}

impl Source {
    /// `directory` if one is named, else the original's default if a certificate is there, else
    /// the operator's own Secret.
    pub fn choose(directory: Option<PathBuf>, namespace: &str) -> Self {
        let usual = || Path::new(directory::DEFAULT);
        match directory {
            Some(directory) => Self::Directory(directory),
            None if usual().join("tls.crt").exists() => Self::Directory(usual().to_owned()),
            None => Self::Secret(namespace.to_owned()),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answer {
    webhook: &'static str,
    result: &'static str,
}

/// The webhooks' series.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    answers: Family<Answer, Counter>,
    expiry: Gauge,
    good: Gauge,
}

impl Metrics {
    /// Adds the series to a registry.
    pub fn register(&self, registry: &mut Registry) {
        for endpoint in [Endpoint::Mutate, Endpoint::Validate] {
            for result in ["allowed", "denied", "unreadable"] {
                let webhook = endpoint.as_str();
                // A counter that begins with its first event hides that event from rate().
                drop(self.answers.get_or_create(&Answer { webhook, result }));
            }
        }
        registry.register(
            "backup_operator_admissions",
            "Answers of the webhooks by result",
            self.answers.clone(),
        );
        registry.register(
            "backup_operator_webhook_certificate_expiry_timestamp_seconds",
            "When the certificate in use expires, as unix time; 0 while there is none",
            self.expiry.clone(),
        );
        registry.register(
            "backup_operator_webhook_certificate_good",
            "1 while the webhook certificate is there, is readable and has not expired",
            self.good.clone(),
        );
    }

    fn count(&self, endpoint: Endpoint, result: &'static str) {
        let webhook = endpoint.as_str();
        self.answers
            .get_or_create(&Answer { webhook, result })
            .inc();
    }
}

/// Serves the webhooks until `stop`. Trouble is logged and tried again: it never stops the
/// operator, which checks every object by itself.
pub async fn run(
    settings: Settings,
    client: Client,
    clock: Clock,
    metrics: Metrics,
    stop: CancellationToken,
) {
    let served = Served::default();
    let keep = async {
        match settings.source.clone() {
            Source::Directory(path) => directory::follow(path, served.clone()).await,
            Source::Secret(namespace) => {
                let keeper = Keeper::new(client.clone(), namespace, clock.clone(), served.clone());
                keeper.keep().await;
            }
        }
    };
    let watch = async {
        loop {
            let expiry = served.current().map_or(0, |c| c.not_after.timestamp());
            metrics.expiry.set(expiry);
            metrics.good.set(served.is_good(clock.now()).into());
            tokio::time::sleep(PERIOD).await;
        }
    };
    let serve = async {
        let rights = Rights::of_cluster(client.clone());
        let routes = server::router(clock.clone(), metrics.clone(), rights);
        let listener = listen(settings.address).await;
        info!(address = %settings.address, source = ?settings.source, "webhooks listen");
        let callers = settings.callers.clone();
        if let Err(error) = server::serve(listener, &served, callers, routes, stop.clone()).await {
            warn!(%error, "webhooks are off: TLS can't be set up");
            stop.cancelled().await;
        }
    };
    let follow = async {
        match &settings.callers {
            Some(callers) => callers.follow().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = keep => {}
        () = follow => {}
        () = watch => {}
        () = serve => {}
    }
}

/// Listens on `address`, as soon as it is free.
async fn listen(address: SocketAddr) -> TcpListener {
    let mut complained = false;
    loop {
        match TcpListener::bind(address).await {
            Ok(listener) => return listener,
            Err(error) if !complained => {
                warn!(%address, %error, "webhooks can't listen; set --webhook-bind-address to a free address");
                complained = true;
            }
            Err(_) => {}
        }
        tokio::time::sleep(PERIOD).await;
    }
}
