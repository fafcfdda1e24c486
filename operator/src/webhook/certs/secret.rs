//! A certificate of the operator's own making, kept in a Secret of its namespace and put into the
//! two webhook configurations. All three exist already (deploy/webhook): the operator may get and
//! change them by name and nothing else of their kinds.

use std::fmt;
use std::time::Duration;

use chrono::{DateTime, Utc};
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use thiserror::Error;
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use super::{CertError, Material, Pair, Served, make};

/// Name of the Secret.
pub const SECRET: &str = "backup-operator-webhook-cert";
/// Name of the Service the API server calls.
pub const SERVICE: &str = "backup-operator-webhook";
/// Name of both webhook configurations.
pub const CONFIGURATION: &str = "backup-operator";

/// How often Secret and configurations are looked at.
const PERIOD: Duration = Duration::from_secs(60);
/// Pause after a failure or a conflict.
const RETRY: Duration = Duration::from_secs(5);
/// How long a CA stands in the configurations before what it signed is served in place of an older
/// certificate: every API server has heard of it by then.
const SPREAD: Duration = Duration::from_secs(30);

/// Names the API server may use for the Service.
pub fn service_names(namespace: &str) -> Vec<String> {
    let name = format!("{SERVICE}.{namespace}.svc");
    vec![format!("{name}.cluster.local"), name]
}

/// A failure of one round.
#[derive(Debug, Error)]
pub enum RoundError {
    /// The API server refused or did not answer.
    #[error("{verb} {what} failed: {source}{}", remedy(source))]
    Api {
        /// What was tried.
        verb: &'static str,
        /// On which object.
        what: String,
        /// The answer.
        #[source]
        source: kube::Error,
    },
    /// Another replica wrote first.
    #[error("another replica wrote the Secret first")]
    Conflict,
    /// No certificate could be made or read.
    #[error(transparent)]
    Cert(#[from] CertError),
}

fn remedy(error: &kube::Error) -> &'static str {
    match error {
        kube::Error::Api(status) if matches!(status.code, 403 | 404) => {
            "; apply deploy/webhook, or set ENABLE_WEBHOOKS=false"
        }
        _ => "",
    }
}

/// Keeps the certificate good and served.
pub struct Keeper {
    client: Client,
    namespace: String,
    clock: crate::context::Clock,
    served: Served,
    /// The bundle that stands in both configurations, and since when as seen from here.
    injected: Option<(String, Instant)>,
}

impl Keeper {
    /// A keeper for the Secret of `namespace`.
    pub fn new(
        client: Client,
        namespace: impl Into<String>,
        clock: crate::context::Clock,
        served: Served,
    ) -> Self {
        Self {
            client,
            namespace: namespace.into(),
            clock,
            served,
            injected: None,
        }
    }

    /// Looks after it for ever.
    pub async fn keep(mut self) {
        let mut last_fault = String::new();
        loop {
            let round = self.round().await;
            self.served
                .looked(matches!(round, Ok(_) | Err(RoundError::Conflict)));
            let pause = match round {
                Ok(pause) => {
                    last_fault.clear();
                    pause
                }
                Err(RoundError::Conflict) => RETRY,
                Err(error) => {
                    let fault = error.to_string();
                    if fault != last_fault {
                        warn!(%fault, "the webhook's certificate can't be kept");
                        last_fault = fault;
                    }
                    RETRY
                }
            };
            sleep(pause).await;
        }
    }

    /// Renews if due, injects, serves. Returns when to look again.
    ///
    /// # Errors
    /// The first step that failed; all of them may be repeated.
    pub async fn round(&mut self) -> Result<Duration, RoundError> {
        let now = self.clock.now();
        let material = self.material(now).await?;
        let pair = Pair::parse(material.crt.as_bytes(), material.key.as_bytes())?;
        let patched = self
            .inject::<MutatingWebhookConfiguration>(&material.ca)
            .await?
            | self
                .inject::<ValidatingWebhookConfiguration>(&material.ca)
                .await?;
        let since = match &self.injected {
            Some((bundle, since)) if *bundle == material.ca && !patched => *since,
            _ => Instant::now(),
        };
        self.injected = Some((material.ca, since));
        let current = self.served.current();
        if current.as_ref() == Some(&pair) {
            return Ok(PERIOD);
        }
        let wait = SPREAD.saturating_sub(since.elapsed());
        if current.is_some_and(|old| old.not_after > now) && !wait.is_zero() {
            return Ok(wait);
        }
        info!(not_after = %pair.not_after, "webhook certificate in use");
        self.served.replace(pair);
        Ok(PERIOD)
    }

    /// What the Secret holds, renewed first if that is due.
    async fn material(&self, now: DateTime<Utc>) -> Result<Material, RoundError> {
        let api: Api<Secret> = Api::namespaced(self.client.clone(), &self.namespace);
        let what = || format!("Secret {}/{SECRET}", self.namespace);
        let mut secret = api
            .get(SECRET)
            .await
            .map_err(|source| api_error("get", what(), source))?;
        let names = service_names(&self.namespace);
        let stored = stored(&secret);
        if let Some(material) = stored.as_ref().filter(|m| good(m, &names, now)) {
            return Ok(material.clone());
        }
        let old = stored.map(|m| m.ca).unwrap_or_default();
        let made = make(&names, &old, now)?;
        let bytes = |text: &str| ByteString(text.as_bytes().to_vec());
        let data = secret.data.get_or_insert_default();
        data.insert("ca.crt".to_owned(), bytes(&made.ca));
        data.insert("tls.crt".to_owned(), bytes(&made.crt));
        data.insert("tls.key".to_owned(), bytes(&made.key));
        match api.replace(SECRET, &PostParams::default(), &secret).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.code == 409 => {
                return Err(RoundError::Conflict);
            }
            Err(source) => return Err(api_error("update", what(), source)),
        }
        info!(secret = SECRET, "webhook certificate made");
        Ok(made)
    }

    /// Puts `bundle` into every webhook of the configuration. True if it was not there.
    async fn inject<K>(&self, bundle: &str) -> Result<bool, RoundError>
    where
        K: kube::Resource<DynamicType = (), Scope = kube::core::ClusterResourceScope>
            + Clone
            + fmt::Debug
            + Serialize
            + DeserializeOwned,
    {
        let api: Api<K> = Api::all(self.client.clone());
        let what = || format!("{} {CONFIGURATION}", K::kind(&()));
        let configuration = api
            .get(CONFIGURATION)
            .await
            .map_err(|source| api_error("get", what(), source))?;
        let seen = serde_json::to_value(&configuration).unwrap_or_default();
        let operations = injection(&seen, bundle);
        if operations.is_empty() {
            return Ok(false);
        }
        let Ok(patch) = serde_json::from_value(Value::Array(operations)) else {
            return Ok(false);
        };
        api.patch(
            CONFIGURATION,
            &PatchParams::default(),
            &Patch::<K>::Json(patch),
        )
        .await
        .map_err(|source| api_error("patch", what(), source))?;
        Ok(true)
    }
}

fn api_error(verb: &'static str, what: String, source: kube::Error) -> RoundError {
    RoundError::Api { verb, what, source }
}

fn stored(secret: &Secret) -> Option<Material> {
    let text = |key: &str| {
        let bytes = &secret.data.as_ref()?.get(key)?.0;
        String::from_utf8(bytes.clone()).ok()
    };
    Some(Material {
        ca: text("ca.crt")?,
        crt: text("tls.crt")?,
        key: text("tls.key")?,
    })
}

fn good(material: &Material, names: &[String], now: DateTime<Utc>) -> bool {
    !material.ca.trim().is_empty()
        && Pair::parse(material.crt.as_bytes(), material.key.as_bytes())
            .is_ok_and(|pair| !pair.is_due(names, now))
}

/// JSON patch that gives each webhook of `configuration` this bundle; empty if all have it. It
/// fails as a whole if someone changed the configuration meanwhile.
fn injection(configuration: &Value, bundle: &str) -> Vec<Value> {
    let encoded = serde_json::to_value(ByteString(bundle.as_bytes().to_vec())).unwrap_or_default();
    let webhooks = configuration["webhooks"].as_array();
    let mut operations: Vec<Value> = webhooks
        .into_iter()
        .flatten()
        .enumerate()
        .filter(|(_, webhook)| webhook["clientConfig"]["caBundle"] != encoded)
        .map(|(i, _)| {
            let path = format!("/webhooks/{i}/clientConfig/caBundle");
            json!({"op": "add", "path": path, "value": encoded})
        })
        .collect();
    if !operations.is_empty() {
        let version = &configuration["metadata"]["resourceVersion"];
        let path = "/metadata/resourceVersion";
        operations.insert(0, json!({"op": "test", "path": path, "value": version}));
    }
    operations
}
