//! A server whose own certificate stands in the kubeconfig as its CA: kubectl believes it, while
//! the verifier of rustls takes no CA for a server. Everything else is that verifier's to judge.

use std::sync::Arc;

use kube::client::{Body, ClientBuilder, ConfigExt};
use kube::{Client, Config};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, RootCertStore};

use super::log::{Log, RequestLog};

/// The client of this configuration, whose requests are told to `log`.
///
/// # Errors
/// What is wrong with it.
pub(super) fn client(config: Config, log: Option<Log>) -> kube::Result<Client> {
    let own = own(&config);
    let log = RequestLog::new(log, &config.cluster_url);
    let plain = |config| Ok(ClientBuilder::try_from(config)?.with_layer(&log).build());
    if own.is_empty() || config.proxy_url.is_some() || config.accept_invalid_certs {
        return plain(config);
    }
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(
        config
            .root_cert
            .iter()
            .flatten()
            .map(|c| CertificateDer::from(c.clone())),
    );
    let Ok(inner) = WebPkiServerVerifier::builder(Arc::new(roots)).build() else {
        return plain(config);
    };
    let mut tls = config.rustls_client_config()?;
    let provider = Arc::clone(tls.crypto_provider());
    tls.dangerous().set_certificate_verifier(Arc::new(OwnCa {
        inner,
        own,
        provider,
    }));
    let mut http = hyper_util::client::legacy::connect::HttpConnector::new();
    http.enforce_http(false);
    let name = config.tls_server_name.clone();
    let mut https = hyper_rustls::HttpsConnectorBuilder::new()
        .with_tls_config(tls)
        .https_or_http();
    if let Some(name) = name.and_then(|n| ServerName::try_from(n).ok()) {
        https = https.with_server_name_resolver(hyper_rustls::FixedServerNameResolver::new(name));
    }
    let mut connector =
        hyper_timeout::TimeoutConnector::new(https.enable_http1().wrap_connector(http));
    connector.set_connect_timeout(config.connect_timeout);
    connector.set_read_timeout(config.read_timeout);
    connector.set_write_timeout(config.write_timeout);
    let executor = hyper_util::rt::TokioExecutor::new();
    let client: hyper_util::client::legacy::Client<_, Body> =
        hyper_util::client::legacy::Client::builder(executor).build(connector);
    let service = tower::ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(tower::BoxError::from)
        .service(client);
    let builder = ClientBuilder::new(service, config.default_namespace.clone());
    Ok(builder.with_layer(&log).build())
}

/// The kubeconfig's CAs that are certificates of the server's own name.
fn own(config: &Config) -> Vec<CertificateDer<'static>> {
    let host = config
        .tls_server_name
        .as_deref()
        .or(config.cluster_url.host());
    let host = host.unwrap_or_default().trim_matches(['[', ']']).to_owned();
    let Ok(name) = ServerName::try_from(host) else {
        return vec![];
    };
    let all = config.root_cert.iter().flatten();
    all.map(|der| CertificateDer::from(der.clone()))
        .filter(|der| is_of(der, &name))
        .collect()
}

fn is_of(der: &CertificateDer<'_>, name: &ServerName<'_>) -> bool {
    ParsedCertificate::try_from(der).is_ok_and(|c| verify_server_name(&c, name).is_ok())
}

#[derive(Debug)]
struct OwnCa {
    inner: Arc<WebPkiServerVerifier>,
    own: Vec<CertificateDer<'static>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for OwnCa {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if !self.own.iter().any(|own| own == end_entity) {
            return self
                .inner
                .verify_server_cert(end_entity, intermediates, name, ocsp, now);
        }
        if !is_of(end_entity, name) {
            return Err(CertificateError::NotValidForName.into());
        }
        let (_, parsed) = x509_parser::parse_x509_certificate(end_entity)
            .map_err(|_| CertificateError::BadEncoding)?;
        let at = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        let validity = parsed.validity();
        if at < validity.not_before.timestamp() {
            return Err(CertificateError::NotValidYet.into());
        }
        if at > validity.not_after.timestamp() {
            return Err(CertificateError::Expired.into());
        }
        Ok(ServerCertVerified::assertion())
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
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
