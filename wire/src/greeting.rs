//! The first packet of a server (Protocol::HandshakeV10).

use crate::error::Error;
use crate::parse::Fields;

/// What both sides can (CLIENT_… of the protocol).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities(pub u32);

impl Capabilities {
    pub(crate) const LONG_PASSWORD: Self = Self(1);
    pub(crate) const LONG_FLAG: Self = Self(1 << 2);
    pub(crate) const CONNECT_WITH_DB: Self = Self(1 << 3);
    pub(crate) const LOCAL_FILES: Self = Self(1 << 7);
    pub(crate) const PROTOCOL_41: Self = Self(1 << 9);
    /// The server has TLS.
    pub const SSL: Self = Self(1 << 11);
    pub(crate) const TRANSACTIONS: Self = Self(1 << 13);
    pub(crate) const SECURE_CONNECTION: Self = Self(1 << 15);
    pub(crate) const MULTI_RESULTS: Self = Self(1 << 17);
    pub(crate) const PLUGIN_AUTH: Self = Self(1 << 19);
    pub(crate) const CONNECT_ATTRS: Self = Self(1 << 20);
    pub(crate) const LENGTH_ENCODED_AUTH: Self = Self(1 << 21);
    pub(crate) const DEPRECATE_EOF: Self = Self(1 << 24);

    /// True if all of `other` are among these.
    #[must_use]
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    pub(crate) fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

/// What a server says before anybody logs in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Greeting {
    /// Its version, such as `10.11.6-MariaDB-log`; without the `5.5.5-` that MariaDB puts before it for old replicas.
    pub version: String,
    /// The connection's number, for `KILL`.
    pub id: u32,
    /// What it can.
    pub capabilities: Capabilities,
    /// The plugin of users whose own is not known yet; empty where the server names none.
    pub plugin: String,
    /// What it wants scrambled with the password.
    pub(crate) scramble: Vec<u8>,
}

impl Greeting {
    /// True if it is MariaDB.
    #[must_use]
    pub fn is_mariadb(&self) -> bool {
        self.version.to_ascii_lowercase().contains("mariadb")
    }

    pub(crate) fn parse(packet: &[u8]) -> Result<Self, Error> {
        let mut fields = Fields(packet);
        if fields.u8()? != 10 {
            return Err(Error::Malformed(
                "the server's greeting is not of protocol 10",
            ));
        }
        let version = String::from_utf8_lossy(fields.text()?);
        let version = version
            .strip_prefix("5.5.5-")
            .unwrap_or(&version)
            .to_owned();
        let id = fields.u32()?;
        let mut scramble = fields.take(8)?.to_vec();
        fields.take(1)?;
        let low = fields.u16()?;
        // Character set and status.
        fields.take(3)?;
        let high = fields.u16()?;
        let capabilities = Capabilities(u32::from(high) << 16 | u32::from(low));
        if !capabilities.has(Capabilities::PROTOCOL_41.with(Capabilities::SECURE_CONNECTION)) {
            return Err(Error::Malformed("the server is older than MySQL 4.1"));
        }
        let length = usize::from(fields.u8()?);
        // Reserved; MariaDB says more of itself here.
        fields.take(10)?;
        let rest = fields.take(length.saturating_sub(8).max(13).min(fields.0.len()))?;
        scramble.extend_from_slice(rest.strip_suffix(&[0]).unwrap_or(rest));
        let plugin = if capabilities.has(Capabilities::PLUGIN_AUTH) {
            // Some servers leave the zero byte out.
            let end = memchr::memchr(0, fields.0).unwrap_or(fields.0.len());
            String::from_utf8_lossy(&fields.0[..end]).into_owned()
        } else {
            String::new()
        };
        Ok(Self {
            version,
            id,
            capabilities,
            plugin,
            scramble,
        })
    }
}
