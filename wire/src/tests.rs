//! A server that says anything: no input panics, takes more memory than it sent, or goes on for ever.

use std::io::{self, Read, Write};

use proptest::prelude::*;

use crate::auth;
use crate::binlog::From;
use crate::connection::Connection;
use crate::error::Error;
use crate::greeting::Greeting;
use crate::parse::put_bytes;
use crate::settings::Settings;
use crate::stream::{Address, Stream};

/// Says what it was given, in pieces of a size, and hears nothing.
struct Script {
    says: Vec<u8>,
    at: usize,
    piece: usize,
}

impl Read for Script {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let n = self.piece.min(into.len()).min(self.says.len() - self.at);
        into[..n].copy_from_slice(&self.says[self.at..self.at + n]);
        self.at += n;
        Ok(n)
    }
}

impl Write for Script {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn settings() -> Settings {
    let mut settings = Settings::new(
        Address::Tcp("server".into(), 3306),
        "user",
        "password".to_owned().into(),
    );
    settings.limits.packet = 1 << 20;
    settings
}

fn stream(says: Vec<u8>, piece: usize) -> Stream {
    Stream::over(Box::new(Script { says, at: 0, piece }), None)
}

/// Packets of these bodies; each may begin a new sequence.
fn packets(bodies: &[(u8, Vec<u8>)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (sequence, body) in bodies {
        out.extend_from_slice(&u32::try_from(body.len()).unwrap().to_le_bytes()[..3]);
        out.push(*sequence);
        out.extend_from_slice(body);
    }
    out
}

/// The greeting of a MySQL 8, as its manual prints one, with the plugin.
fn greeting() -> Vec<u8> {
    let mut body = b"\x0a8.0.36\0".to_vec();
    body.extend_from_slice(&[8, 0, 0, 0]);
    body.extend_from_slice(b"abcdefgh\0");
    body.extend_from_slice(&[0xff, 0xf7, 0xff, 2, 0, 0xff, 0xdf, 21]);
    body.extend_from_slice(&[0; 10]);
    body.extend_from_slice(b"ijklmnopqrst\0");
    body.extend_from_slice(b"caching_sha2_password\0");
    body
}

fn column(name: &str, code: u8) -> Vec<u8> {
    let mut body = Vec::new();
    for text in ["def", "shop", "t", "t", name, name] {
        put_bytes(&mut body, text.as_bytes());
    }
    body.extend_from_slice(&[12, 45, 0, 0, 1, 0, 0, code, 0, 0, 0, 0, 0]);
    body
}

const OK: [u8; 7] = [0, 0, 0, 2, 0, 0, 0];

/// A login by the fast way, two rows of two columns, their end.
fn session() -> Vec<u8> {
    let mut end = OK.to_vec();
    end[0] = 0xfe;
    packets(&[
        (0, greeting()),
        (2, vec![1, 3]),
        (3, OK.to_vec()),
        (1, vec![2]),
        (2, column("id", 3)),
        (3, column("name", 253)),
        (4, b"\x017\x03Eva".to_vec()),
        (5, b"\x018\xfb".to_vec()),
        (6, end),
    ])
}

type Value = Option<Vec<u8>>;

/// Speaks to the script until it ends.
fn speak(says: Vec<u8>, piece: usize) -> Result<Vec<(Value, Value)>, Error> {
    let (sent, mut found) = (says.len(), Vec::new());
    let mut connection = Connection::over(stream(says, piece), &settings())?;
    let mut rows = connection.query("SELECT id, name FROM t")?;
    while let Some(mut row) = rows.read()? {
        let id = row.value()?.map(<[u8]>::to_vec);
        found.push((id, row.value()?.map(<[u8]>::to_vec)));
    }
    // Each row is of a packet, each packet of four bytes at least.
    assert!(found.len() <= sent / 4);
    Ok(found)
}

#[test]
fn a_session_is_read_in_any_pieces() {
    for piece in [1, 2, 3, 7, 4096] {
        assert_eq!(
            speak(session(), piece).unwrap(),
            [
                (Some(b"7".to_vec()), Some(b"Eva".to_vec())),
                (Some(b"8".to_vec()), None)
            ]
        );
    }
}

#[test]
fn a_session_that_is_cut_anywhere_is_an_error() {
    let whole = session();
    for end in 0..whole.len() {
        let error = speak(whole[..end].to_vec(), 4096).unwrap_err();
        assert!(matches!(error, Error::Lost(_)), "{end}: {error}");
    }
}

#[test]
fn what_is_announced_takes_no_memory() {
    // A login may say 1 MiB, an answer what the limits allow.
    let announced = [&packets(&[])[..], &[0xfe, 0xff, 0xff, 0, 10]].concat();
    let error = speak(announced, 4096).unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }), "{error}");
    let mut login = session();
    login.truncate(packets(&[(0, greeting()), (2, vec![1, 3]), (3, OK.to_vec())]).len());
    let error = speak([&login[..], &[0xff, 0xff, 0xff, 1]].concat(), 4096).unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }), "{error}");
    // Far more columns than there can be.
    let many = packets(&[(1, vec![0xfd, 0xff, 0xff, 0xff])]);
    let error = speak([&login[..], &many].concat(), 4096).unwrap_err();
    assert!(matches!(error, Error::Malformed(_)), "{error}");
}

#[test]
fn no_file_is_given_to_who_asks_for_one() {
    let mut login = session();
    login.truncate(packets(&[(0, greeting()), (2, vec![1, 3]), (3, OK.to_vec())]).len());
    let asks = packets(&[(1, b"\xfb/etc/passwd".to_vec())]);
    let says = [&login[..], &asks].concat();
    let error = speak(says.clone(), 4096).unwrap_err();
    assert!(matches!(error, Error::Malformed(_)), "{error}");
    let mut connection = Connection::over(stream(says, 4096), &settings()).unwrap();
    let error = connection
        .load(
            "LOAD DATA LOCAL INFILE 'stream' INTO TABLE t",
            io::repeat(7),
        )
        .unwrap_err();
    assert!(matches!(error, Error::Malformed(_)), "{error}");
    assert!(matches!(connection.execute("SELECT 1"), Err(Error::Unread)));
}

#[test]
fn a_password_is_not_sent_as_it_is_without_tls() {
    // Asked for the password (4), the key is asked for; what comes is none.
    let says = packets(&[
        (0, greeting()),
        (2, vec![1, 4]),
        (4, b"\x01no key".to_vec()),
    ]);
    let error = speak(says, 4096).unwrap_err();
    assert!(matches!(error, Error::Malformed(_)), "{error}");
}

#[test]
fn an_unknown_plugin_is_named() {
    let says = packets(&[(0, greeting()), (2, b"\xfeauth_gssapi_client\0x".to_vec())]);
    match speak(says, 4096) {
        Err(Error::Plugin(name)) => assert_eq!(name, "auth_gssapi_client"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_greeting_says_who_it_is() {
    let mut body = greeting();
    assert!(!Greeting::parse(&body).unwrap().is_mariadb());
    body.splice(1..7, b"5.5.5-10.11.6-MariaDB-log".iter().copied());
    let greeting = Greeting::parse(&body).unwrap();
    assert_eq!(greeting.version, "10.11.6-MariaDB-log");
    assert!(greeting.is_mariadb());
    assert_eq!(greeting.scramble, b"abcdefghijklmnopqrst");
}

#[test]
fn what_lies_in_a_salt_is_bounded() {
    for salt in [
        &b"P\x0b0123456789abcdef01"[..],
        b"P\x00",
        b"Q\x000123456789abcdef01",
        b"",
    ] {
        assert!(auth::parsec(b"password", &[7; 32], salt).is_err());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_read(says in prop::collection::vec(any::<u8>(), 0..600), piece in 1usize..64) {
        let _ = speak(says, piece);
    }

    /// A session with some of its bytes changed, some left out, some put in.
    #[test]
    fn a_session_that_is_spoilt_is_read(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3u8), 1..6),
        piece in 1usize..64,
    ) {
        let mut says = session();
        for (at, byte, how) in changes {
            let at = at.index(says.len());
            match how {
                0 => says[at] = byte,
                1 => { says.remove(at); }
                _ => says.insert(at, byte),
            }
        }
        let _ = speak(says, piece);
    }

    /// Any packets behind a login, read as rows, as the end of a load and as events.
    #[test]
    fn any_packets_are_read(
        bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..8),
        first in prop::sample::select(vec![0u8, 1, 2, 0xfb, 0xfe, 0xff]),
    ) {
        let login = packets(&[(0, greeting()), (2, vec![1, 3]), (3, OK.to_vec())]);
        let mut all: Vec<_> = (1u8..).zip(bodies).collect();
        if let Some((_, body)) = all.first_mut() {
            body.insert(0, first);
        }
        let says = [login, packets(&all)].concat();
        let _ = speak(says.clone(), 4096);
        let mut connection = Connection::over(stream(says.clone(), 4096), &settings()).unwrap();
        let _ = connection.load("LOAD DATA LOCAL INFILE 'stream' INTO TABLE t", &b"1\n"[..]);
        let mut connection = Connection::over(stream(says, 4096), &settings()).unwrap();
        if let Ok(mut events) = connection.binlog(&From::Position("bin.1".into(), 4), 7, false) {
            while let Ok(Some(_)) = events.read() {}
        }
        prop_assert!(true);
    }
}
