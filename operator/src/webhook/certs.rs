//! The certificate the webhooks are served with: reading, making, renewing, and changing it while
//! connections go on. Pure but for the random keys; the drivers are [`secret`] and [`directory`].

mod callers;
pub mod directory;
pub mod secret;
#[cfg(test)]
mod tests;

pub use callers::Callers;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, date_time_ymd,
};
use rustls::RootCertStore;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, NoServerSessionStorage, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use thiserror::Error;
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

/// Lifetime of a certificate made here; the CA that signed it lives as long and its key is thrown
/// away at once.
pub const LIFETIME: TimeDelta = TimeDelta::days(90);
/// Before this the certificate is valid already, for clocks that are behind.
const BACKDATED: TimeDelta = TimeDelta::hours(1);
/// Most CAs in a bundle: the newest and those it replaced.
const MAX_BUNDLE: usize = 3;

/// Why a certificate is no use.
#[derive(Debug, Error)]
pub enum CertError {
    /// No certificate there.
    #[error("tls.crt holds no certificate in PEM")]
    NoCertificate,
    /// The key is missing or of no known kind.
    #[error("tls.key holds no private key in PEM that fits: {0}")]
    Key(String),
    /// The certificate is no X.509.
    #[error("tls.crt does not parse as X.509: {0}")]
    X509(String),
    /// The two do not belong together.
    #[error("tls.key is not the key of tls.crt")]
    Mismatch,
    /// A new one could not be made.
    #[error("making a certificate failed: {0}")]
    Make(#[from] rcgen::Error),
}

/// Why TLS can't be set up.
#[derive(Debug, Error)]
pub enum ServeError {
    /// The provider lacks something.
    #[error(transparent)]
    Tls(#[from] rustls::Error),
}

/// The CAs in `pem`, of which one has to have signed a caller's certificate.
///
/// # Errors
/// There is none, or one does not parse.
pub fn callers(pem: &[u8]) -> Result<RootCertStore, CertError> {
    let mut roots = RootCertStore::empty();
    for ca in CertificateDer::pem_slice_iter(pem) {
        let ca = ca.map_err(|e| CertError::X509(e.to_string()))?;
        roots.add(ca).map_err(|e| CertError::X509(e.to_string()))?;
    }
    if roots.is_empty() {
        return Err(CertError::NoCertificate);
    }
    Ok(roots)
}

/// A certificate with its key, ready to be served.
#[derive(Clone)]
pub struct Pair {
    key: Arc<CertifiedKey>,
    /// First instant it is valid.
    pub not_before: DateTime<Utc>,
    /// Last instant it is valid.
    pub not_after: DateTime<Utc>,
    /// DNS names it is for.
    pub names: Vec<String>,
}

impl fmt::Debug for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "certificate of {:?} until {}",
            self.names, self.not_after
        )
    }
}

impl PartialEq for Pair {
    fn eq(&self, other: &Self) -> bool {
        self.key.cert == other.key.cert
    }
}

impl Pair {
    /// Reads `tls.crt` (leaf first) and `tls.key`.
    ///
    /// # Errors
    /// If they are not PEM, do not parse, or do not belong together.
    pub fn parse(crt: &[u8], key: &[u8]) -> Result<Self, CertError> {
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(crt)
            .collect::<Result<_, _>>()
            .map_err(|e| CertError::X509(e.to_string()))?;
        let leaf = chain.first().ok_or(CertError::NoCertificate)?.clone();
        let facts = Facts::read(&leaf)?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|e| CertError::Key(e.to_string()))?;
        let key = rustls::crypto::ring::sign::any_supported_type(&key)
            .map_err(|e| CertError::Key(e.to_string()))?;
        let certified = CertifiedKey::new(chain, key);
        certified.keys_match().map_err(|_| CertError::Mismatch)?;
        Ok(Self {
            key: Arc::new(certified),
            not_before: facts.not_before,
            not_after: facts.not_after,
            names: facts.names,
        })
    }

    /// True from two thirds of its life on, or if it lacks one of `names`.
    pub fn is_due(&self, names: &[String], now: DateTime<Utc>) -> bool {
        let life = self.not_after - self.not_before;
        now >= self.not_before + life * 2 / 3 || !names.iter().all(|n| self.names.contains(n))
    }
}

/// What is read out of a certificate.
struct Facts {
    not_before: DateTime<Utc>,
    not_after: DateTime<Utc>,
    names: Vec<String>,
}

impl Facts {
    fn read(der: &[u8]) -> Result<Self, CertError> {
        let (_, x509) =
            X509Certificate::from_der(der).map_err(|e| CertError::X509(e.to_string()))?;
        let at = |time: x509_parser::time::ASN1Time| {
            DateTime::from_timestamp(time.timestamp(), 0)
                .ok_or_else(|| CertError::X509("a date is out of range".to_owned()))
        };
        let names = match x509.subject_alternative_name() {
            Ok(Some(names)) => names.value.general_names.iter().filter_map(dns).collect(),
            _ => vec![],
        };
        Ok(Self {
            not_before: at(x509.validity().not_before)?,
            not_after: at(x509.validity().not_after)?,
            names,
        })
    }
}

fn dns(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        _ => None,
    }
}

/// A certificate and key as text, with the CA bundle that trusts it.
#[derive(Clone, PartialEq, Eq)]
pub struct Material {
    /// CAs in PEM, newest first.
    pub ca: String,
    /// Certificate in PEM.
    pub crt: String,
    /// Its key in PEM.
    pub key: String,
}

impl fmt::Debug for Material {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("certificate, key and CA bundle")
    }
}

/// Makes a CA, and a certificate for `names` signed by it; the CA's key is dropped. CAs of
/// `old_bundle` that still live stay trusted, so that whoever serves the old certificate is.
///
/// # Errors
/// If `names` are no DNS names or there is no randomness.
pub fn make(names: &[String], old_bundle: &str, now: DateTime<Utc>) -> Result<Material, CertError> {
    made(names, old_bundle, now, ExtendedKeyUsagePurpose::ServerAuth)
}

fn made(
    names: &[String],
    old_bundle: &str,
    now: DateTime<Utc>,
    usage: ExtendedKeyUsagePurpose,
) -> Result<Material, CertError> {
    let mut ca = CertificateParams::new(vec![])?;
    ca.distinguished_name = common_name("backup-operator webhook CA");
    ca.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    ca.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::DigitalSignature,
    ];
    valid(&mut ca, now);
    let ca_key = KeyPair::generate()?;
    let ca_certificate = ca.self_signed(&ca_key)?;

    let mut leaf = CertificateParams::new(names.to_vec())?;
    leaf.distinguished_name = common_name("backup-operator webhook");
    leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    leaf.extended_key_usages = vec![usage];
    leaf.use_authority_key_identifier_extension = true;
    valid(&mut leaf, now);
    let leaf_key = KeyPair::generate()?;
    let leaf_certificate = leaf.signed_by(&leaf_key, &Issuer::new(ca, ca_key))?;
    Ok(Material {
        ca: bundle(&ca_certificate.pem(), old_bundle, now),
        crt: leaf_certificate.pem(),
        key: leaf_key.serialize_pem(),
    })
}

/// A client's certificate for `names`, signed by a CA of its own.
#[cfg(test)]
pub(super) fn tests_client(names: &[String], now: DateTime<Utc>) -> Material {
    made(names, "", now, ExtendedKeyUsagePurpose::ClientAuth).unwrap_or_else(|e| panic!("{e}"))
}

fn common_name(name: &str) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::CommonName, name);
    distinguished
}

fn valid(params: &mut CertificateParams, now: DateTime<Utc>) {
    let at = |time: DateTime<Utc>| {
        let seconds = u64::try_from(time.timestamp()).unwrap_or_default();
        date_time_ymd(1970, 1, 1) + Duration::from_secs(seconds)
    };
    params.not_before = at(now - BACKDATED);
    params.not_after = at(now + LIFETIME);
}

/// `newest` followed by the CAs of `old` that have not expired.
fn bundle(newest: &str, old: &str, now: DateTime<Utc>) -> String {
    let mut all = newest.trim_end().to_owned() + "\n";
    let lives =
        |der: &CertificateDer<'_>| Facts::read(der).is_ok_and(|facts| facts.not_after > now);
    let blocks = old
        .split_inclusive("-----END CERTIFICATE-----")
        .filter_map(|text| text.find("-----BEGIN").map(|at| text[at..].trim()))
        .filter(|text| CertificateDer::from_pem_slice(text.as_bytes()).is_ok_and(|der| lives(&der)))
        .filter(|text| *text != newest.trim());
    for block in blocks.take(MAX_BUNDLE - 1) {
        all.push_str(block);
        all.push('\n');
    }
    all
}

/// The certificate in use; TLS asks for it at each handshake, so a new one needs no restart.
#[derive(Clone, Default)]
pub struct Served(Arc<RwLock<Option<Pair>>>, Arc<AtomicBool>);

impl fmt::Debug for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.current())
    }
}

impl Served {
    /// The certificate in use.
    pub fn current(&self) -> Option<Pair> {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Notes whether the last look at where the certificate comes from went well. What is served
    /// goes on being served meanwhile, and is gone with the next restart.
    pub fn looked(&self, well: bool) {
        self.1.store(!well, Ordering::Relaxed);
    }

    /// True if a certificate is served that has not expired, and the last look went well.
    pub fn is_good(&self, now: DateTime<Utc>) -> bool {
        let lives = self.current().is_some_and(|pair| pair.not_after > now);
        lives && !self.1.load(Ordering::Relaxed)
    }

    /// Serves `pair` from the next handshake on.
    pub fn replace(&self, pair: Pair) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(pair);
    }

    /// The settings of a TLS server that presents it. With `callers` a client has to present a
    /// certificate that comes from one of them.
    ///
    /// # Errors
    /// If the provider lacks a protocol version.
    pub fn server_config(
        &self,
        callers: Option<Callers>,
    ) -> Result<rustls::ServerConfig, ServeError> {
        let provider: Arc<CryptoProvider> = rustls::crypto::ring::default_provider().into();
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?;
        let demanded = callers.is_some();
        let config = match callers {
            None => config.with_no_client_auth(),
            Some(callers) => config.with_client_cert_verifier(Arc::new(callers)),
        };
        let mut config = config.with_cert_resolver(Arc::new(self.clone()));
        if demanded {
            // A session that goes on would not show its certificate again.
            config.session_storage = Arc::new(NoServerSessionStorage {});
        }
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(config)
    }
}

impl ResolvesServerCert for Served {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.current().map(|pair| pair.key)
    }
}
