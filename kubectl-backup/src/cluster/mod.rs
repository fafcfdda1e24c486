//! The only client of the API server.

mod connect;
mod exec;
mod fail;
mod helper;
mod object;
mod objects;
mod pods;
mod request;
mod review;
mod table;
mod trust;

use std::time::Duration;

use kube::Client;

use crate::cli::Connection;
use crate::env::Env;
use crate::error::{Error, Result};

pub(crate) use connect::contexts;
pub(crate) use fail::{Call, Place, is_missing_object, no_namespace};
pub(crate) use object::{Object, current_run};
pub(crate) use pods::{LogOptions, last_seen};
pub(crate) use request::{OpenRequests, fresh_id, withdraw};
pub(crate) use review::Offers;
pub(crate) use table::{Change, Event, Query, ServerTable};

/// A connection to one cluster, as one user, in one namespace.
#[derive(Clone)]
pub(crate) struct Cluster {
    client: Client,
    /// Namespace to act in.
    pub(crate) namespace: String,
    /// Who we are, for the record.
    pub(crate) user: String,
    /// Where we are, for messages.
    pub(crate) place: Place,
}

impl Cluster {
    /// Reads the configuration and makes a client; sends nothing.
    ///
    /// # Errors
    /// What is wrong with the configuration.
    pub(crate) async fn connect(flags: &Connection, env: &Env) -> Result<Self> {
        // Fails only if a provider is installed already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let endpoint = connect::endpoint(flags, env).await?;
        let place = Place {
            server: endpoint
                .config
                .cluster_url
                .authority()
                .map(ToString::to_string)
                .unwrap_or_default(),
            context: endpoint.context,
            helper: helper::Helper::of(endpoint.config.auth_info.exec.as_ref()),
        };
        let client = trust::client(endpoint.config).map_err(|e| {
            fail::explain(
                &e,
                Call {
                    verb: "get",
                    resource: "",
                    kind: None,
                    namespace: None,
                },
                &place,
            )
        })?;
        Ok(Self {
            client,
            namespace: endpoint.namespace,
            user: endpoint.user,
            place,
        })
    }

    /// The client, for kinds that only one caller reads.
    pub(crate) fn client(&self) -> Client {
        self.client.clone()
    }

    /// What a failed request means, with its exit status.
    pub(crate) fn explain(&self, error: &kube::Error, call: Call<'_>) -> Error {
        fail::explain(error, call, &self.place)
    }
}

/// A duration flag: `90s`, `1h30m`, bare `0`; not negative.
///
/// # Errors
/// A usage error that names the flag.
pub(crate) fn duration(flag: &str, text: &str) -> Result<Duration> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let parsed = match text.parse::<u64>() {
        // kubectl takes bare seconds here.
        Ok(seconds) => Ok(Duration::from_secs(seconds)),
        Err(_) => crds::schedule::parse_go_duration(text)
            .and_then(|nanos| u64::try_from(nanos).map_err(|_| "it is negative"))
            .map(Duration::from_nanos),
    };
    parsed.map_err(|why| {
        Error::usage(format!(
            "{flag} {text:?} is not a duration: {why}; write it like 90s, 10m or 2h"
        ))
    })
}
