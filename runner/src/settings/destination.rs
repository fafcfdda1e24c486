//! Where artefacts go: `destination` of the spec, or SQLPATH.

use std::path::PathBuf;

use crds::plan::Storage;
use crds::run_spec::{RunDestination, RunS3};
use secrecy::{ExposeSecret, SecretString};

use crate::settings::plan;
use crate::settings::value::Input;

/// Where artefacts go.
#[derive(Debug)]
pub enum Destination {
    /// A directory on a mounted volume.
    Volume(PathBuf),
    /// An S3 bucket, or a compatible one.
    S3(Box<S3>),
    /// A Storage of gobackup.io.
    Storage(Box<Storage<SecretString>>),
}

impl Destination {
    /// What must never be shown.
    pub(super) fn secrets(&self) -> Vec<String> {
        match self {
            Self::Volume(_) => vec![],
            Self::S3(s3) => s3.secrets(),
            Self::Storage(storage) => plan::storage_secrets(storage),
        }
    }
}

/// An S3 bucket with its credentials read.
#[derive(Debug)]
pub struct S3 {
    /// Bucket.
    pub bucket: String,
    /// Key prefix without slashes at its ends; may be empty.
    pub prefix: String,
    /// URL of the service; `None` means AWS.
    pub endpoint: Option<String>,
    /// Region.
    pub region: Option<String>,
    /// Bucket in the path instead of the host name.
    pub force_path_style: bool,
    /// Access key id and secret; `None` means the pod's own identity.
    pub keys: Option<(SecretString, SecretString)>,
    /// Session token.
    pub session_token: Option<SecretString>,
    /// CA certificate of the endpoint, PEM.
    pub ca: Option<String>,
    /// Storage class; `None` means the bucket's.
    pub storage_class: Option<String>,
}

impl S3 {
    fn secrets(&self) -> Vec<String> {
        let keys = self.keys.iter().map(|(_, secret)| secret);
        keys.chain(&self.session_token)
            .map(|s| s.expose_secret().to_owned())
            .collect()
    }
}

/// Reads the destination.
pub(super) fn parse(
    input: &mut Input<'_>,
    typed: Option<&RunDestination>,
) -> Result<Destination, Vec<String>> {
    let env = input.get("SQLPATH");
    let typed = typed.filter(|t| t.path.is_some() || t.s3.is_some() || t.storage.is_some());
    if let Some(typed) = typed {
        if env.is_some() {
            input.typed_wins("SQLPATH", "spec.destination");
        }
        return match (&typed.path, &typed.s3, &typed.storage) {
            (Some(path), None, None) => {
                volume("spec.destination.volume.path", path, &format!("{path:?}"))
                    .map_err(|e| vec![e])
            }
            (None, Some(s3), None) => self::s3(input, s3)
                .map(|s3| Destination::S3(Box::new(s3)))
                .map_err(|e| vec![e]),
            (None, None, Some(storage)) => plan::read_storage((**storage).clone(), input.read)
                .map(|storage| Destination::Storage(Box::new(storage))),
            _ => Err(vec![
                "spec.destination names two destinations: keep one".to_owned(),
            ]),
        };
    }
    match env {
        Some(path) => {
            let named = input.named("SQLPATH", &path);
            volume("SQLPATH", &path, &named).map_err(|e| vec![e])
        }
        None => Err(vec![
            "SQLPATH is not set: name a directory on a mounted volume, or set spec.destination"
                .to_owned(),
        ]),
    }
}

fn volume(field: &str, path: &str, named: &str) -> Result<Destination, String> {
    if !path.starts_with('/') {
        return Err(format!("{field}: {named} is not an absolute path"));
    }
    Ok(Destination::Volume(PathBuf::from(path)))
}

fn s3(input: &mut Input<'_>, typed: &RunS3) -> Result<S3, String> {
    if typed.bucket.is_empty() {
        return Err("spec.destination.s3.bucket is empty".to_owned());
    }
    let mut secret = |field: &str, file: &Option<String>| -> Result<Option<SecretString>, String> {
        let Some(file) = file else { return Ok(None) };
        let text = input.file(field, file)?;
        let secret = input.secret(field, &text);
        if secret.expose_secret().trim().is_empty() {
            return Err(format!("{field} names a key that is empty: fill it"));
        }
        Ok(Some(secret))
    };
    let field = "spec.destination.s3.credentialsSecretRef";
    let id = secret(field, &typed.access_key_id_file)?;
    let key = secret(field, &typed.secret_access_key_file)?;
    let session_token = secret(field, &typed.session_token_file)?;
    let keys = match (id, key) {
        (Some(id), Some(key)) => Some((id, key)),
        (None, None) => None,
        _ => {
            return Err(format!(
                "{field} needs both an access key id and a secret access key"
            ));
        }
    };
    let ca = match &typed.ca_file {
        Some(file) => Some(input.file("spec.destination.s3.caSecretKeyRef", file)?),
        None => None,
    };
    Ok(S3 {
        bucket: typed.bucket.clone(),
        prefix: typed
            .prefix
            .as_deref()
            .unwrap_or_default()
            .trim_matches('/')
            .to_owned(),
        endpoint: typed.endpoint.clone().filter(|e| !e.is_empty()),
        region: typed.region.clone().filter(|r| !r.is_empty()),
        force_path_style: typed.force_path_style,
        keys,
        session_token,
        ca,
        storage_class: None,
    })
}
