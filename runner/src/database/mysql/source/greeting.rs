//! The first packet of a server, read without logging in: its flavour, and whether it offers TLS.
//! Layout: MySQL's Protocol::HandshakeV10.

use std::io::{self, Read};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::database::mysql::source::client::Flavour;
use crate::settings::Source;

/// A server that says nothing for so long does not greet.
const PATIENCE: Duration = Duration::from_secs(5);
/// The capability flag CLIENT_SSL.
const SSL: u16 = 0x0800;

/// What a server says before anybody logs in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Greeting {
    /// Its flavour.
    pub flavour: Flavour,
    /// It offers TLS.
    pub tls: bool,
}

/// Asks the server of `source`; `None` where none greets. The server counts an aborted connection
/// for it, so it is asked only when a login failed.
pub fn greet(source: &Source) -> Option<Greeting> {
    let packet = match &source.socket {
        Some(socket) => {
            let stream = UnixStream::connect(socket).ok()?;
            stream.set_read_timeout(Some(PATIENCE)).ok()?;
            packet(stream)
        }
        None => {
            let mut addresses = (source.host.as_str(), source.port).to_socket_addrs().ok()?;
            let stream = addresses.find_map(|a| TcpStream::connect_timeout(&a, PATIENCE).ok())?;
            stream.set_read_timeout(Some(PATIENCE)).ok()?;
            packet(stream)
        }
    };
    parse(&packet.ok()?)
}

fn packet(mut stream: impl Read) -> io::Result<Vec<u8>> {
    let mut header = [0; 4];
    stream.read_exact(&mut header)?;
    let length = u32::from_le_bytes([header[0], header[1], header[2], 0]);
    let mut body = Vec::new();
    stream
        .take(length.min(1024).into())
        .read_to_end(&mut body)?;
    Ok(body)
}

fn parse(body: &[u8]) -> Option<Greeting> {
    let (10, rest) = body.split_first().map(|(v, rest)| (*v, rest))? else {
        return None;
    };
    let end = rest.iter().position(|b| *b == 0)?;
    let version = String::from_utf8_lossy(&rest[..end]);
    // The connection's number, eight bytes of salt and a zero byte come before the flags.
    let flags = rest.get(end + 1 + 4 + 8 + 1..)?;
    let flags = u16::from_le_bytes([*flags.first()?, *flags.get(1)?]);
    Some(Greeting {
        flavour: if version.contains("MariaDB") {
            Flavour::MariaDb
        } else {
            Flavour::MySql
        },
        tls: flags & SSL != 0,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn greeting(version: &str, flags: u16) -> Vec<u8> {
        let mut body = vec![10];
        body.extend_from_slice(version.as_bytes());
        body.push(0);
        body.extend_from_slice(&[
            1, 0, 0, 0, b'a', b'b', b'c', b'd', b'e', b'f', b'g', b'h', 0,
        ]);
        body.extend_from_slice(&flags.to_le_bytes());
        body
    }

    #[test]
    fn flavour_and_tls_are_read_and_a_cut_packet_is_no_greeting() {
        let mariadb = greeting("5.5.5-10.11.19-MariaDB", 0xf7fe);
        let expected = Greeting {
            flavour: Flavour::MariaDb,
            tls: false,
        };
        assert_eq!(parse(&mariadb), Some(expected));
        let mysql = Greeting {
            flavour: Flavour::MySql,
            tls: true,
        };
        assert_eq!(parse(&greeting("9.7.4-2", 0xffff)), Some(mysql));
        for cut in 0..mariadb.len() {
            assert_eq!(parse(&mariadb[..cut]), None);
        }
        // "Host is blocked" comes as an error packet instead.
        assert_eq!(parse(b"\xff\x69\x04Host"), None);
    }
}
