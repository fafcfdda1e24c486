//! The only client of the API server.

mod connect;
mod exec;
mod fail;
mod helper;
mod log;
mod object;
mod objects;
mod pods;
mod presence;
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
pub(crate) use log::Log;
pub(crate) use object::{Object, current_run};
pub(crate) use pods::{LogOptions, last_seen};
pub(crate) use presence::Keys;
pub(crate) use request::{OpenRequests, fresh_id, withdraw};
pub(crate) use review::Offers;
pub(crate) use table::{Change, Event, Query, ServerTable};

/// A connection to one cluster, as one user, in one namespace.
#[derive(Clone)]
pub(crate) struct Cluster {
    client: Client,
    /// The same without a time limit: a stream that says nothing for a while is not broken.
    patient: Client,
    /// Namespace to act in.
    pub(crate) namespace: String,
    /// Who we are, for the record.
    pub(crate) user: String,
    /// Where we are, for messages.
    pub(crate) place: Place,
}

impl Cluster {
    /// Reads the configuration and makes a client; sends nothing. Each request is told to `log`.
    ///
    /// # Errors
    /// What is wrong with the configuration.
    pub(crate) async fn connect(flags: &Connection, env: &Env, log: Option<Log>) -> Result<Self> {
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
        let make = |config| {
            trust::client(config, log).map_err(|e| {
                let call = Call {
                    verb: "get",
                    resource: "",
                    kind: None,
                    namespace: None,
                };
                fail::explain(&e, call, &place)
            })
        };
        let limited = endpoint.config.read_timeout.is_some();
        let mut unlimited = endpoint.config.clone();
        unlimited.read_timeout = None;
        let client = make(endpoint.config)?;
        let patient = if limited {
            make(unlimited)?
        } else {
            client.clone()
        };
        Ok(Self {
            client,
            patient,
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

/// A duration flag: `90s`, `1h30m`, `2d`, `1d12h`, bare `0`; not negative. A day has 24 hours.
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
        Err(_) => days(text),
    };
    parsed.map_err(|why| {
        Error::usage(format!(
            "{flag} {text:?} is not a duration: {why}; write it like 90s, 10m, 2h or 3d"
        ))
    })
}

/// Days, as Go's durations do not know them, then a duration as Go reads it.
fn days(text: &str) -> Result<Duration, &'static str> {
    let (days, rest) = match text.split_once('d') {
        Some((days, rest)) => {
            let days: u64 = days.parse().map_err(|_| "its days are not a number")?;
            (days, rest)
        }
        None => (0, text),
    };
    let days = days
        .checked_mul(24 * 3600)
        .map(Duration::from_secs)
        .ok_or("it is too long")?;
    if rest.is_empty() && !text.is_empty() {
        return Ok(days);
    }
    crds::schedule::parse_go_duration(rest)
        .and_then(|nanos| u64::try_from(nanos).map_err(|_| "it is negative"))
        .and_then(|nanos| {
            days.checked_add(Duration::from_nanos(nanos))
                .ok_or("it is too long")
        })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use super::*;

    #[test]
    fn durations_of_flags() {
        let hours = |text: &str| duration("--for", text).unwrap().as_secs_f64() / 3600.0;
        assert_eq!(hours("0"), 0.0);
        assert_eq!(hours("7200"), 2.0);
        assert_eq!(hours("1h30m"), 1.5);
        assert_eq!(hours("2d"), 48.0);
        assert_eq!(hours("1d12h"), 36.0);
        for bad in ["", "d", "-1d", "1d-2h", "2w", "1.5d", "99999999999999999d"] {
            assert_eq!(duration("--for", bad).unwrap_err().kind.code(), 2, "{bad}");
        }
    }
}
