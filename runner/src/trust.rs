//! Which certificate of a server is believed, where less than all is to be verified, or where it is as
//! the servers' own tools and manuals make it.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
};
use webpki::RawPublicKeyEntity;
use x509_parser::prelude::{FromDer, X509Certificate, X509Version};

/// How much of a server's certificate is verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verify {
    /// Nothing: whoever answers is believed.
    Nothing,
    /// Who issued it.
    Issuer,
    /// Who issued it, and that it is of the host.
    Host,
}

/// What a client of TLS is made with. `authority` is a file of certificates in place of the machine's.
///
/// # Errors
/// The file can't be read, or holds no certificate.
pub(crate) fn client_config(
    verify: Verify,
    authority: Option<&str>,
) -> Result<ClientConfig, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut authorities = vec![];
    let inner: Option<Arc<dyn ServerCertVerifier>> = match (verify, authority) {
        (Verify::Nothing, _) => None,
        (_, None) => {
            let verifier = rustls_platform_verifier::Verifier::new(Arc::clone(&provider));
            Some(Arc::new(verifier.map_err(|e| e.to_string())?))
        }
        (_, Some(path)) => {
            let mut roots = RootCertStore::empty();
            for certificate in CertificateDer::pem_file_iter(path).map_err(|e| e.to_string())? {
                let certificate = certificate.map_err(|e| e.to_string())?;
                authorities.push(certificate.clone());
                roots.add(certificate).map_err(|e| e.to_string())?;
            }
            let provider = Arc::clone(&provider);
            let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
            let verifier: Arc<dyn ServerCertVerifier> =
                verifier.build().map_err(|e| e.to_string())?;
            Some(verifier)
        }
    };
    let lenient = Lenient {
        inner,
        authorities,
        names: verify == Verify::Host,
        provider: Arc::clone(&provider),
    };
    Ok(ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| e.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(lenient))
        .with_no_client_auth())
}

/// Verifies as much as is asked for.
#[derive(Debug)]
struct Lenient {
    /// Verifies the chain; `None` believes whoever answers.
    inner: Option<Arc<dyn ServerCertVerifier>>,
    /// The certificates that `inner` starts from, where a file gave them.
    authorities: Vec<CertificateDer<'static>>,
    /// The certificate must be of the host's name.
    names: bool,
    /// Checks the signatures.
    provider: Arc<CryptoProvider>,
}

impl Lenient {
    /// A certificate of version 1, as `openssl x509 -req` makes them in the manuals of MySQL and MariaDB: rustls reads none.
    /// Issued by an authority of the file itself, and of this time.
    fn is_issued(&self, certificate: &X509Certificate<'_>, now: UnixTime) -> bool {
        let issued = |authority: &CertificateDer<'_>| {
            X509Certificate::from_der(authority).is_ok_and(|(_, authority)| {
                authority.subject() == certificate.issuer()
                    && self.is_signed(
                        authority.public_key().raw,
                        certificate.tbs_certificate.as_ref(),
                        &certificate.signature_value.data,
                    )
            })
        };
        let at = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        let validity = certificate.validity();
        certificate.version() == X509Version::V1
            && (validity.not_before.timestamp()..=validity.not_after.timestamp()).contains(&at)
            && self.authorities.iter().any(issued)
    }

    /// True if the holder of this key signed the message, by any algorithm that is safe.
    fn is_signed(&self, key: &[u8], message: &[u8], signature: &[u8]) -> bool {
        let key = SubjectPublicKeyInfoDer::from(key);
        let Ok(key) = RawPublicKeyEntity::try_from(&key) else {
            return false;
        };
        let algorithms = self.provider.signature_verification_algorithms.all;
        algorithms
            .iter()
            .any(|a| key.verify_signature(*a, message, signature).is_ok())
    }

    /// A signature of the handshake by a certificate that only this file reads.
    fn handshake(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
        checked: Result<HandshakeSignatureValid, rustls::Error>,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let assert = HandshakeSignatureValid::assertion;
        // Where nobody vouches for the certificate, its key says nothing of who answers.
        if self.inner.is_none() {
            return Ok(assert());
        }
        checked.or_else(|e| match X509Certificate::from_der(certificate) {
            Ok((_, c))
                if c.version() == X509Version::V1
                    && self.is_signed(c.public_key().raw, message, signature.signature()) =>
            {
                Ok(assert())
            }
            _ => Err(e),
        })
    }
}

/// A certificate without names of hosts is of the host that its subject names, for the clients of MySQL and MariaDB.
fn is_of(certificate: &X509Certificate<'_>, name: &ServerName<'_>) -> bool {
    let named = certificate
        .subject_alternative_name()
        .ok()
        .flatten()
        .is_some();
    let mut subject = certificate.subject().iter_common_name();
    let name = name.to_str();
    !named && subject.any(|n| n.as_str().is_ok_and(|n| n.eq_ignore_ascii_case(&name)))
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
        let verified = inner.verify_server_cert(end_entity, intermediates, name, ocsp, now);
        verified.or_else(|e| {
            // The chain was found good before the name is looked at.
            let of_chain = matches!(
                e,
                rustls::Error::InvalidCertificate(
                    CertificateError::NotValidForName
                        | CertificateError::NotValidForNameContext { .. }
                )
            );
            let by_subject = match X509Certificate::from_der(end_entity) {
                Ok((_, c)) => {
                    // Of all the machine's authorities none issues certificates without names of hosts.
                    let by_name = !self.names || !self.authorities.is_empty() && is_of(&c, name);
                    by_name && (of_chain || self.is_issued(&c, now))
                }
                Err(_) => of_chain && !self.names,
            };
            by_subject.then(ServerCertVerified::assertion).ok_or(e)
        })
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        let checked =
            rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms);
        self.handshake(message, certificate, signature, checked)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        let checked =
            rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms);
        self.handshake(message, certificate, signature, checked)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let algorithms = &self.provider.signature_verification_algorithms;
        algorithms.supported_schemes()
    }
}
