//! A certificate from a directory: a mounted Secret of cert-manager, or files of a local run.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tracing::{info, warn};

use super::{CertError, Pair, Served};

/// Where the original looked, and where a mounted Secret is looked for if no directory is named.
pub const DEFAULT: &str = "/tmp/k8s-webhook-server/serving-certs";
/// How often the files are read again; a mounted Secret changes by a swapped link.
const PERIOD: Duration = Duration::from_secs(10);

/// Reads `tls.crt` and `tls.key`.
///
/// # Errors
/// A message with the file, the fault and the remedy.
pub async fn load(directory: &Path) -> Result<Pair, String> {
    let read = async |name: &str| {
        let path = directory.join(name);
        tokio::fs::read(&path).await.map_err(|e| {
            format!(
                "{} can't be read: {e}; put the webhook's certificate there, or set ENABLE_WEBHOOKS=false",
                path.display()
            )
        })
    };
    let (crt, key) = (read("tls.crt").await?, read("tls.key").await?);
    Pair::parse(&crt, &key).map_err(|e: CertError| format!("{}: {e}", directory.display()))
}

/// Serves what is in `directory`, and what comes there later. Never returns.
pub async fn follow(directory: PathBuf, served: Served) {
    let mut last_fault = String::new();
    loop {
        let loaded = load(&directory).await;
        served.looked(loaded.is_ok());
        match loaded {
            Ok(pair) => {
                last_fault.clear();
                if served.current().as_ref() != Some(&pair) {
                    info!(directory = %directory.display(), not_after = %pair.not_after, "webhook certificate loaded");
                    served.replace(pair);
                }
            }
            // What is served goes on being served: half-written files are no reason to stop.
            Err(fault) if fault != last_fault => {
                warn!(%fault, "the webhook's certificate can't be loaded");
                last_fault = fault;
            }
            Err(_) => {}
        }
        tokio::time::sleep(PERIOD).await;
    }
}
