//! By what a restore recognises the server a dump came from.

use serde::{Deserialize, Serialize};

/// What a server calls itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServerIdentity {
    /// MySQL's server_uuid.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub server_uuid: String,
    /// Its host name.
    pub hostname: String,
    /// Its port.
    pub port: String,
    /// Its data directory.
    pub datadir: String,
}

impl ServerIdentity {
    /// Recognised by what the server calls itself, not by its address.
    pub fn is(&self, other: &Self) -> bool {
        if !other.server_uuid.is_empty() || !self.server_uuid.is_empty() {
            return other.server_uuid == self.server_uuid;
        }
        !self.hostname.is_empty()
            && self.hostname == other.hostname
            && self.port == other.port
            && self.datadir == other.datadir
    }
}
