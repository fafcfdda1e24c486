//! TLS to a server whose authority may be given as a file, with less than full verification where
//! that is asked for.

use std::sync::Arc;

use crds::mysql_backup::TlsMode;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, ClientConnection, RootCertStore};

use crate::failure::Failure;

/// A client's part of a connection; `None` where the mode asks for none.
///
/// # Errors
/// The authority's file can't be used, or the host is no name.
pub(super) fn client(
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
    Failure::source(
        "TlsFailed",
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

/// Verifies what the mode asks for; signatures are checked in any.
#[derive(Debug)]
struct Lenient {
    /// Verifies the chain; `None` believes whoever answers.
    inner: Option<Arc<dyn ServerCertVerifier>>,
    /// The certificate must be of the host's name.
    names: bool,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Lenient {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(inner) = &self.inner else {
            return Ok(ServerCertVerified::assertion());
        };
        match inner.verify_server_cert(end_entity, intermediates, name, ocsp, now) {
            // The chain was found good before the name is looked at.
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.names => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &rustls::DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &rustls::DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        let algorithms = &self.provider.signature_verification_algorithms;
        algorithms.supported_schemes()
    }
}
