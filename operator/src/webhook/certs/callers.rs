//! Who may call: CAs from a file, of which one has to have signed a caller's certificate. The file is read
//! again as it changes, so that a CA is rotated without a restart.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, SignatureScheme};
use tracing::{info, warn};

/// How often the file is read again; a mounted ConfigMap changes by a swapped link.
const PERIOD: Duration = Duration::from_secs(10);

/// What the file held, and the judge made of it.
struct Current {
    pem: Vec<u8>,
    verifier: Arc<dyn ClientCertVerifier>,
}

/// The CAs of callers, as the file has them now.
#[derive(Clone)]
pub struct Callers {
    path: PathBuf,
    current: Arc<RwLock<Current>>,
}

impl fmt::Debug for Callers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "callers of {}", self.path.display())
    }
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|e| format!("{} can't be read: {e}", path.display()))
}

fn verifier(path: &Path, pem: &[u8]) -> Result<Arc<dyn ClientCertVerifier>, String> {
    let said = |e: &dyn fmt::Display| format!("{}: {e}", path.display());
    let roots = super::callers(pem).map_err(|e| said(&e))?;
    let provider: Arc<CryptoProvider> = rustls::crypto::ring::default_provider().into();
    let made = WebPkiClientVerifier::builder_with_provider(roots.into(), provider).build();
    made.map(|verifier| verifier as Arc<dyn ClientCertVerifier>)
        .map_err(|e| said(&e))
}

impl Callers {
    /// The CAs of a file.
    ///
    /// # Errors
    /// It can't be read, or holds no CA.
    pub fn open(path: &Path) -> Result<Self, String> {
        let pem = read(path)?;
        let verifier = verifier(path, &pem)?;
        Ok(Self {
            path: path.to_owned(),
            current: Arc::new(RwLock::new(Current { pem, verifier })),
        })
    }

    /// Reads the file again; true if it holds other CAs, which count from the next handshake on.
    ///
    /// # Errors
    /// As [`Self::open`]; those from before go on counting.
    pub fn look(&self) -> Result<bool, String> {
        let pem = read(&self.path)?;
        let same = |current: &Current| current.pem == pem;
        if same(&self.current.read().unwrap_or_else(PoisonError::into_inner)) {
            return Ok(false);
        }
        let verifier = verifier(&self.path, &pem)?;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Current { pem, verifier };
        Ok(true)
    }

    /// Looks again and again. Never returns.
    pub async fn follow(&self) {
        let mut last_fault = String::new();
        loop {
            tokio::time::sleep(PERIOD).await;
            match self.look() {
                Ok(changed) => {
                    last_fault.clear();
                    if changed {
                        info!(file = %self.path.display(), "CAs of the webhooks' callers loaded");
                    }
                }
                // A half-written file is no reason to let nobody in.
                Err(fault) if fault != last_fault => {
                    warn!(%fault, "the CAs of the webhooks' callers can't be loaded");
                    last_fault = fault;
                }
                Err(_) => {}
            }
        }
    }

    fn verifier(&self) -> Arc<dyn ClientCertVerifier> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&current.verifier)
    }
}

impl ClientCertVerifier for Callers {
    /// None: a caller has one certificate to show.
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        self.verifier()
            .verify_client_cert(end_entity, intermediates, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.verifier().verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.verifier().verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier().supported_verify_schemes()
    }
}
