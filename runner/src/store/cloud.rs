//! Google Cloud Storage and Azure Blob Storage.

use crds::report::Reason;
use std::io::Read;
use std::ops::Range;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use opendal::{ErrorKind, HttpTransporter, Operator};
use opendal_http_transport_reqwest::ReqwestTransport;
use reqsign_azure_storage::{ClientSecretCredentialProvider, DefaultCredentialProvider};
use reqsign_core::ProvideCredentialChain;
use secrecy::{ExposeSecret, SecretString};
use tokio::runtime::Handle;

use crate::failure::Failure;
use crate::store::{Attempt, Condition, Entry, ObjectStore, Own, Store, Upload, temporary};

/// A bucket of Google Cloud Storage.
#[derive(Debug)]
pub struct Gcs {
    /// Bucket.
    pub bucket: String,
    /// Service account key, JSON; `None` means the pod's own identity.
    pub credentials: Option<SecretString>,
    /// File with it.
    pub credentials_file: Option<String>,
    /// URL of another service with the same protocol; without credentials it is asked without any.
    pub endpoint: Option<String>,
}

/// A container of Azure Blob Storage.
#[derive(Debug)]
pub struct Azure {
    /// Storage account.
    pub account: String,
    /// Container.
    pub container: String,
    /// Tenant of the application; without one the pod's own identity is used.
    pub tenant_id: Option<String>,
    /// Application.
    pub client_id: Option<String>,
    /// Its secret.
    pub client_secret: Option<SecretString>,
    /// URL of the account's blobs; `None` means Azure's public cloud.
    pub endpoint: Option<String>,
}

/// Opens the bucket. Must be called within the runtime.
///
/// # Errors
/// The settings make no client.
pub fn gcs(gcs: &Gcs, attempt: Attempt) -> Result<Arc<dyn Store>, Failure> {
    use base64::Engine as _;
    let mut builder = opendal::services::Gcs::default().bucket(&gcs.bucket);
    if let Some(endpoint) = &gcs.endpoint {
        builder = builder.endpoint(endpoint);
    }
    if let Some(json) = &gcs.credentials {
        let json = json.expose_secret().trim();
        if serde_json::from_str::<serde_json::Value>(json).is_err() {
            return Err(Failure::settings(
                "config.credentials is no JSON: give the whole key file of the service account",
            ));
        }
        builder = builder.credential(&base64::engine::general_purpose::STANDARD.encode(json));
    } else if let Some(path) = &gcs.credentials_file {
        if let Err(e) = std::fs::metadata(path) {
            return Err(Failure::settings(format!(
                "config.credentials_file {path} can't be read: {e}; mount it, or use credentials_ref"
            )));
        }
        builder = builder.credential_path(path);
    } else if gcs.endpoint.is_some() {
        builder = builder.skip_signature();
    }
    let operator = Operator::new(builder)
        .map_err(|e| Failure::settings(format!("the Storage makes no client: {e}")))?;
    let operator = over_http(operator)?;
    let place = match &gcs.endpoint {
        Some(endpoint) => format!("bucket {} at {endpoint}", gcs.bucket),
        None => format!("bucket {} of Google Cloud Storage", gcs.bucket),
    };
    Ok(Arc::new(Staged {
        inner: ObjectStore::new(operator.clone(), place.clone(), attempt.clone()),
        operator,
        place,
        attempt,
        handle: Handle::current(),
    }))
}

/// Opens the container. Must be called within the runtime.
///
/// # Errors
/// The settings make no client.
pub fn azure(azure: &Azure, attempt: Attempt) -> Result<Arc<dyn Store>, Failure> {
    let endpoint = azure
        .endpoint
        .clone()
        .unwrap_or_else(|| format!("https://{}.blob.core.windows.net", azure.account));
    let mut chain = ProvideCredentialChain::new();
    match (&azure.tenant_id, &azure.client_id, &azure.client_secret) {
        (Some(tenant), Some(client), Some(secret)) => {
            chain = chain.push(
                ClientSecretCredentialProvider::new()
                    .with_tenant_id(tenant)
                    .with_client_id(client)
                    .with_client_secret(secret.expose_secret()),
            );
        }
        (None, None, None) => chain = chain.push(DefaultCredentialProvider::new()),
        _ => {
            return Err(Failure::settings(
                "config needs all of tenant_id, client_id and client_secret, or none for the pod's own identity",
            ));
        }
    }
    let builder = opendal::services::Azblob::default()
        .container(&azure.container)
        .account_name(&azure.account)
        .endpoint(&endpoint)
        .credential_provider_chain(chain);
    let operator = Operator::new(builder)
        .map_err(|e| Failure::settings(format!("the Storage makes no client: {e}")))?;
    let place = format!("container {} at {endpoint}", azure.container);
    Ok(Arc::new(ObjectStore::new(
        over_http(operator)?,
        place,
        attempt,
    )))
}

fn over_http(operator: Operator) -> Result<Operator, Failure> {
    let client = reqwest::Client::builder()
        .connect_timeout(std::time::Duration::from_secs(10))
        .user_agent(concat!("backup-runner/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|e| crate::store::no_client(&e))?;
    let transport = HttpTransporter::new(ReqwestTransport::new(client));
    let context = operator.base_context().with_http_transport(transport);
    Ok(operator.with_context(context))
}

/// A store whose uploads in parts can't be told to overwrite nothing: an artefact is written
/// under a temporary name, read back there, and composed into its key by the store itself, on the
/// condition that nothing is there.
struct Staged {
    inner: ObjectStore,
    operator: Operator,
    place: String,
    attempt: Attempt,
    handle: Handle,
}

fn failed(place: &str, doing: &str, key: &str, error: &opendal::Error) -> Failure {
    Failure::new(
        Reason::StoreFailed,
        format!(
            "{doing} {key} in {place} failed: {}; look at the store's health",
            crds::report::clean(&error.to_string(), 300)
        ),
    )
}

impl Store for Staged {
    fn describe(&self) -> String {
        self.inner.describe()
    }

    fn begin(&self, key: &str) -> Result<Box<dyn Upload>, Failure> {
        let temporary = temporary::name(&self.attempt, key);
        Ok(Box::new(StagedUpload {
            inner: Some(self.inner.begin(&temporary)?),
            operator: self.operator.clone(),
            place: self.place.clone(),
            handle: self.handle.clone(),
            key: key.to_owned(),
            temporary,
        }))
    }

    fn list(&self, directory: &str) -> Result<Vec<Entry>, Failure> {
        self.inner.list(directory)
    }

    fn directories(&self, directory: &str) -> Result<Vec<String>, Failure> {
        self.inner.directories(directory)
    }

    fn modified(&self, key: &str) -> Result<Option<DateTime<Utc>>, Failure> {
        self.inner.modified(key)
    }

    fn open(&self, key: &str) -> Result<Option<Box<dyn Read + Send>>, Failure> {
        self.inner.open(key)
    }

    fn open_part(
        &self,
        key: &str,
        part: Range<u64>,
    ) -> Result<Option<Box<dyn Read + Send>>, Failure> {
        self.inner.open_part(key, part)
    }

    fn put(&self, key: &str, content: &[u8]) -> Result<(), Failure> {
        self.inner.put(key, content)
    }

    fn create(&self, key: &str, content: &[u8]) -> Result<bool, Failure> {
        self.inner.create(key, content)
    }

    fn try_condition(&self, key: &str, content: &[u8]) -> Result<Condition, Failure> {
        self.inner.try_condition(key, content)
    }

    fn mark(&self, directory: &str, name: &str) -> Result<bool, Failure> {
        self.inner.mark(directory, name)
    }

    fn remove(&self, key: &str) -> Result<(), Failure> {
        self.inner.remove(key)
    }

    fn own(&self, directory: &str) -> Result<Vec<Own>, Failure> {
        self.inner.own(directory)
    }

    fn keep_alive(&self) {
        self.inner.keep_alive();
    }
}

struct StagedUpload {
    /// Until it is dropped, what was closed is removed with it.
    inner: Option<Box<dyn Upload>>,
    operator: Operator,
    place: String,
    handle: Handle,
    key: String,
    temporary: String,
}

impl StagedUpload {
    fn inner(&mut self) -> Result<&mut Box<dyn Upload>, Failure> {
        self.inner
            .as_mut()
            .ok_or_else(|| Failure::new(Reason::StoreFailed, "the upload is closed"))
    }
}

impl Upload for StagedUpload {
    fn expect(&mut self, bytes: u64) {
        if let Some(inner) = &mut self.inner {
            inner.expect(bytes);
        }
    }

    fn write(&mut self, data: &[u8]) -> Result<(), Failure> {
        self.inner()?.write(data)
    }

    fn close(&mut self) -> Result<(), Failure> {
        self.inner()?.close()
    }

    fn read_back(&self) -> Result<Box<dyn Read + Send>, Failure> {
        match &self.inner {
            Some(inner) => inner.read_back(),
            None => Err(Failure::new(Reason::StoreFailed, "the upload is closed")),
        }
    }

    fn stored_size(&self) -> Option<u64> {
        self.inner.as_ref().and_then(|i| i.stored_size())
    }

    fn publish(&mut self) -> Result<bool, Failure> {
        let fail = |e: opendal::Error| failed(&self.place, "publishing", &self.key, &e);
        if self
            .handle
            .block_on(self.operator.exists(&self.key))
            .map_err(fail)?
        {
            return Ok(false);
        }
        let compose = self
            .operator
            .compose_with([self.temporary.as_str()], &self.key)
            .if_not_exists(true);
        match self.handle.block_on(compose.into_future()) {
            Ok(_) => {}
            Err(e) if e.kind() == ErrorKind::ConditionNotMatch => return Ok(false),
            Err(e) => return Err(fail(e)),
        }
        // Not published, it removes the temporary.
        self.inner = None;
        Ok(true)
    }
}
