//! S3 and compatible services.

use opendal::{HttpTransporter, Operator};
use opendal_http_transport_reqwest::ReqwestTransport;
use reqsign_aws_v4::{
    Credential, DefaultCredentialProvider, RequestSigner, StaticCredentialProvider,
};
use reqsign_core::{Context, ProvideCredentialChain, Signer};
use secrecy::ExposeSecret;

use crate::failure::Failure;
use crate::settings::S3;
use crate::store::digest::Digesting;
use crate::store::uploads::Uploads;
use crate::store::{Attempt, ObjectStore};

/// Where AWS is meant but no region given.
const REGION: &str = "us-east-1";

/// Opens the bucket. Without keys the pod's own identity is used: AWS_* variables, web identity,
/// instance metadata.
///
/// # Errors
/// The settings make no client.
pub(super) fn open(s3: &S3, attempt: Attempt) -> Result<ObjectStore, Failure> {
    let region = s3.region.as_deref().unwrap_or(REGION);
    // What is small has to be readable at once: it has the bucket's own class.
    let small = operator(builder(s3, region))?;
    let operator = operator(match &s3.storage_class {
        Some(class) => builder(s3, region).default_storage_class(class),
        None => builder(s3, region),
    })?;
    let transport = transport(s3.ca.as_deref())?;
    let uploads = Uploads::new(
        signer(s3, region),
        transport.clone(),
        bucket_url(s3, region),
        &s3.prefix,
    );
    let digesting = HttpTransporter::new(Digesting(transport));
    let context = operator
        .base_context()
        .with_http_transport(digesting.clone());
    let small_context = small.base_context().with_http_transport(digesting);
    let place = match &s3.endpoint {
        Some(endpoint) => format!("bucket {} at {endpoint}", s3.bucket),
        None => format!("bucket {} ({region})", s3.bucket),
    };
    Ok(
        ObjectStore::new(operator.with_context(context), place, attempt)
            .with_small(small.with_context(small_context))
            .with_uploads(uploads),
    )
}

fn builder(s3: &S3, region: &str) -> opendal::services::S3 {
    let mut builder = opendal::services::S3::default()
        .bucket(&s3.bucket)
        .root(&format!("/{}", s3.prefix))
        .region(region);
    if let Some(endpoint) = &s3.endpoint {
        builder = builder.endpoint(endpoint);
    }
    if !s3.force_path_style && by_host_name(s3.endpoint.as_deref()) {
        builder = builder.enable_virtual_host_style();
    }
    if let Some((id, secret)) = &s3.keys {
        builder = builder
            .access_key_id(id.expose_secret())
            .secret_access_key(secret.expose_secret())
            .disable_config_load()
            .disable_ec2_metadata();
        if let Some(token) = &s3.session_token {
            builder = builder.session_token(token.expose_secret());
        }
    }
    builder
}

fn operator(builder: opendal::services::S3) -> Result<Operator, Failure> {
    Operator::new(builder).map_err(|e| Failure::settings(format!("spec.destination.s3: {e}")))
}

/// Signs with the same credentials as the operator.
fn signer(s3: &S3, region: &str) -> Signer<Credential> {
    let provider = match &s3.keys {
        Some((id, secret)) => {
            let keys = StaticCredentialProvider::new(id.expose_secret(), secret.expose_secret());
            ProvideCredentialChain::new().push(match &s3.session_token {
                Some(token) => keys.with_session_token(token.expose_secret()),
                None => keys,
            })
        }
        None => ProvideCredentialChain::new().push(DefaultCredentialProvider::new()),
    };
    Signer::new(Context::new(), provider, RequestSigner::new("s3", region))
}

/// The bucket's URL, as the operator makes it.
fn bucket_url(s3: &S3, region: &str) -> String {
    let endpoint = match &s3.endpoint {
        Some(endpoint) if endpoint.contains("://") => endpoint.trim_end_matches('/').to_owned(),
        Some(endpoint) => format!("https://{}", endpoint.trim_end_matches('/')),
        None => format!("https://s3.{region}.amazonaws.com"),
    };
    let bucket = &s3.bucket;
    match endpoint.split_once("://") {
        Some((scheme, host)) if !s3.force_path_style && by_host_name(s3.endpoint.as_deref()) => {
            format!("{scheme}://{bucket}.{host}")
        }
        _ => format!("{endpoint}/{bucket}"),
    }
}

/// The bucket's name goes before the host's, unless the endpoint is an address or a bare name:
/// those have no names below them.
fn by_host_name(endpoint: Option<&str>) -> bool {
    let Some(endpoint) = endpoint else {
        return true;
    };
    let url = if endpoint.contains("://") {
        endpoint.to_owned()
    } else {
        format!("https://{endpoint}")
    };
    reqwest::Url::parse(&url)
        .ok()
        .and_then(|u| {
            u.domain().map(|d| {
                d.contains('.') && !d.ends_with(".svc") && !d.ends_with(".svc.cluster.local")
            })
        })
        .unwrap_or(false)
}

/// The HTTP client of object stores, trusting `ca` beside the system's certificates.
///
/// # Errors
/// The certificate can't be read.
fn transport(ca: Option<&str>) -> Result<HttpTransporter, Failure> {
    let mut builder = reqwest::Client::builder()
        .connect_timeout(std::time::Duration::from_secs(10))
        .user_agent(concat!("backup-runner/", env!("CARGO_PKG_VERSION")));
    if let Some(pem) = ca {
        let certificates = reqwest::Certificate::from_pem_bundle(pem.as_bytes()).map_err(|e| {
            Failure::settings(format!(
                "spec.destination.s3.caSecretKeyRef is no PEM certificate: {e}"
            ))
        })?;
        builder = builder.tls_certs_merge(certificates);
    }
    let client = builder.build().map_err(|e| crate::store::no_client(&e))?;
    Ok(HttpTransporter::new(ReqwestTransport::new(client)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_the_buckets_name_goes() {
        for (endpoint, expected) in [
            (None, true),
            (Some("https://s3.eu-central-1.amazonaws.com"), true),
            (Some("nyc3.digitaloceanspaces.com"), true),
            (Some("http://127.0.0.1:9000"), false),
            (Some("http://[::1]:9000"), false),
            (Some("http://minio:9000"), false),
            (Some("http://minio.storage.svc:9000"), false),
            (Some("http://minio.storage.svc.cluster.local"), false),
        ] {
            assert_eq!(by_host_name(endpoint), expected, "{endpoint:?}");
        }
    }
}
