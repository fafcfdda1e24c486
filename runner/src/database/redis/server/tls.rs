//! TLS to a server whose authority may be given as a file, with less than full verification where
//! that is asked for.

use crds::report::Reason;
use std::sync::Arc;

use crds::parts::TlsMode;
use rustls::ClientConnection;
use rustls::pki_types::ServerName;

use crate::failure::Failure;
use crate::trust::{Verify, client_config};

/// A client's part of a connection; `None` where the mode asks for none.
///
/// # Errors
/// The authority's file can't be used, or the host is no name.
pub(crate) fn client(
    mode: TlsMode,
    authority: Option<&str>,
    host: &str,
) -> Result<Option<ClientConnection>, Failure> {
    let verify = match mode {
        // A port of Redis speaks TLS or does not: nothing is negotiated.
        TlsMode::Disabled | TlsMode::Preferred => return Ok(None),
        TlsMode::Required => Verify::Nothing,
        TlsMode::VerifyCA => Verify::Issuer,
        TlsMode::VerifyIdentity => Verify::Host,
    };
    let config = client_config(verify, authority).map_err(|e| failed(&e))?;
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
