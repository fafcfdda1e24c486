//! TLS to a server whose authority may be given as a file, with less than full verification where
//! that is asked for.

use crds::report::Reason;
use std::sync::Arc;

use crds::parts::TlsMode;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};

use crate::failure::Failure;
use crate::trust::Lenient;

/// A client's part of a connection; `None` where the mode asks for none.
///
/// # Errors
/// The authority's file can't be used, or the host is no name.
pub(crate) fn client(
    mode: TlsMode,
    authority: Option<&str>,
    host: &str,
) -> Result<Option<ClientConnection>, Failure> {
    let names = match mode {
        // A port of Redis speaks TLS or does not: nothing is negotiated.
        TlsMode::Disabled | TlsMode::Preferred => return Ok(None),
        TlsMode::Required => None,
        TlsMode::VerifyCA => Some(false),
        TlsMode::VerifyIdentity => Some(true),
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let inner = match names {
        None => None,
        Some(_) => Some(verifier(authority, &provider)?),
    };
    let lenient = Lenient {
        inner,
        names: names.unwrap_or(false),
        provider: Arc::clone(&provider),
    };
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| failed(&e))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(lenient))
        .with_no_client_auth();
    let name = ServerName::try_from(host.to_owned()).map_err(|e| failed(&e))?;
    let connection = ClientConnection::new(Arc::new(config), name).map_err(|e| failed(&e))?;
    Ok(Some(connection))
}

fn failed(e: &dyn std::fmt::Display) -> Failure {
    Failure::new(
        Reason::TlsFailed,
        format!("TLS can't be set up ({e}): check spec.to.tls (--tls)"),
    )
}

fn verifier(
    authority: Option<&str>,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, Failure> {
    let Some(path) = authority else {
        let verifier = rustls_platform_verifier::Verifier::new(Arc::clone(provider));
        return Ok(Arc::new(verifier.map_err(|e| failed(&e))?));
    };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(|e| failed(&e))? {
        let certificate = certificate.map_err(|e| failed(&e))?;
        roots.add(certificate).map_err(|e| failed(&e))?;
    }
    let built = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
    let verifier: Arc<dyn ServerCertVerifier> = built.build().map_err(|e| failed(&e))?;
    Ok(verifier)
}
