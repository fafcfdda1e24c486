//! What names a server: a host name or an address, and nothing beside it.

use std::fmt;
use std::net::Ipv6Addr;

/// Why a text is not a host. Programs word it behind the text, if that may be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostFault {
    /// A URL, or something with a path.
    Url,
    /// A host and a port.
    Port,
    /// Neither a name nor an address.
    NotAHost,
}

impl fmt::Display for HostFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Url => "is a URL or path; write the bare host name, and the port apart (PORT)",
            Self::Port => {
                "holds a colon but is not an IPv6 address; write the bare host name, and the port apart (PORT)"
            }
            Self::NotAHost => "is not a host name or address",
        })
    }
}

/// The host without the brackets of an IPv6 address.
///
/// # Errors
/// What stands there instead.
pub fn bare(text: &str) -> Result<&str, HostFault> {
    let bare = text
        .strip_prefix('[')
        .and_then(|t| t.strip_suffix(']'))
        .unwrap_or(text);
    if bare.contains('/') {
        return Err(HostFault::Url);
    }
    if bare.contains(':') && bare.parse::<Ipv6Addr>().is_err() {
        return Err(HostFault::Port);
    }
    let odd = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '@' | '=' | '?');
    if bare.is_empty() || bare.starts_with('-') || bare.chars().any(odd) {
        return Err(HostFault::NotAHost);
    }
    Ok(bare)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn u10_a_host_is_a_name_or_an_address_alone() {
        for (text, host) in [
            ("db", "db"),
            ("db.prod.svc", "db.prod.svc"),
            ("10.0.0.1", "10.0.0.1"),
            ("fd00::1", "fd00::1"),
            ("[fd00::1]", "fd00::1"),
        ] {
            assert_eq!(bare(text), Ok(host), "{text}");
        }
        for (text, fault) in [
            ("http://db", HostFault::Url),
            ("mysql://u:p@db/x", HostFault::Url),
            ("db/x", HostFault::Url),
            ("db:3306", HostFault::Port),
            ("[fd00::1]:3306", HostFault::Port),
            ("", HostFault::NotAHost),
            ("-x", HostFault::NotAHost),
            ("a b", HostFault::NotAHost),
            ("user@db", HostFault::NotAHost),
        ] {
            assert_eq!(bare(text), Err(fault), "{text}");
        }
    }
}
