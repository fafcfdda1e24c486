//! Bytes to and from a server: TCP or a socket, plain or TLS, with an end to every wait.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

use crate::error::Error;
use crate::limits::{Limits, Pulse, Stop};

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// Host, without brackets, and port.
    Tcp(String, u16),
    /// The path of a unix socket.
    Socket(PathBuf),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(host, port) if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp(host, port) => write!(f, "{host}:{port}"),
            Self::Socket(path) => write!(f, "{}", path.display()),
        }
    }
}

/// TLS as it is wanted. Which certificates are believed, the configuration says.
#[derive(Clone, Debug)]
pub struct Tls {
    /// Versions and certificates.
    pub config: Arc<ClientConfig>,
    /// The name of which the certificate has to be.
    pub name: ServerName<'static>,
    /// A server without TLS is refused; else it is spoken to in plain text.
    pub required: bool,
}

/// A wait is looked at so often.
const TICK: Duration = Duration::from_millis(500);

/// A name is looked up so often, with pauses of so long.
const LOOKUPS: u32 = 3;
const LOOKUP_PAUSE: Duration = Duration::from_secs(1);

/// A way to the server whose reads and writes return at each tick.
pub(crate) trait Duplex: Read + Write + Send {}
impl<T: Read + Write + Send> Duplex for T {}

/// A way to the server.
pub(crate) struct Stream {
    /// `None` while TLS is being put on.
    inner: Option<Box<dyn Duplex>>,
    /// What is sent can't be read on the way.
    pub(crate) secure: bool,
    /// `None` waits without end.
    idle: Option<Duration>,
    /// All has to be done by then: who sends a byte a second is not idle, and never logs anybody in.
    until: Option<Instant>,
    stop: Stop,
    pulse: Pulse,
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stream {{ secure: {} }}", self.secure)
    }
}

impl Stream {
    /// Reaches the address; the first of a name's addresses that answers.
    pub(crate) fn open(
        address: &Address,
        limits: &Limits,
        stop: Stop,
        pulse: Pulse,
    ) -> Result<Self, Error> {
        let unreachable = |cause| Error::Unreachable {
            address: address.to_string(),
            cause,
        };
        let (inner, secure): (Box<dyn Duplex>, bool) = match address {
            Address::Tcp(host, port) => {
                let addresses = lookup(host, *port, &stop)?;
                let stream = tcp(addresses, limits.connect).map_err(unreachable)?;
                (Box::new(stream), false)
            }
            Address::Socket(path) => {
                let stream = UnixStream::connect(path).map_err(unreachable)?;
                stream.set_read_timeout(Some(TICK)).map_err(unreachable)?;
                stream.set_write_timeout(Some(TICK)).map_err(unreachable)?;
                (Box::new(stream), true)
            }
        };
        let mut stream = Self::over(inner, Some(limits.connect));
        (stream.secure, stream.stop, stream.pulse) = (secure, stop, pulse);
        stream.until = Instant::now().checked_add(limits.connect.saturating_mul(2));
        Ok(stream)
    }

    /// Over anything that is read and written.
    pub(crate) fn over(inner: Box<dyn Duplex>, idle: Option<Duration>) -> Self {
        Self {
            inner: Some(inner),
            secure: false,
            idle,
            until: None,
            stop: Stop::default(),
            pulse: Pulse::default(),
        }
    }

    /// From now on, a silence of so long is the end, and nothing else.
    pub(crate) fn idle(&mut self, limit: Option<Duration>) {
        (self.idle, self.until) = (limit, None);
    }

    /// Puts TLS on.
    pub(crate) fn encrypt(&mut self, tls: &Tls) -> Result<(), Error> {
        let failed = |e: rustls::Error| Error::Tls(e.to_string());
        let client =
            ClientConnection::new(Arc::clone(&tls.config), tls.name.clone()).map_err(failed)?;
        let Some(plain) = self.inner.take() else {
            return Err(Error::Malformed("TLS twice"));
        };
        let mut stream = StreamOwned::new(client, plain);
        let begun = Instant::now();
        while stream.conn.is_handshaking() {
            match stream.conn.complete_io(&mut stream.sock) {
                Ok(_) => {}
                Err(e) if is_tick(&e) => waited(begun, self.idle, &self.stop)?,
                Err(e) if e.get_ref().is_some_and(|e| e.is::<rustls::Error>()) => {
                    return Err(Error::Tls(e.to_string()));
                }
                Err(e) => return Err(Error::Tls(format!("the connection ended: {e}"))),
            }
        }
        self.inner = Some(Box::new(stream));
        self.secure = true;
        Ok(())
    }

    /// Reads at least one byte.
    pub(crate) fn read(&mut self, into: &mut [u8]) -> Result<usize, Error> {
        match self.patiently(|inner| inner.read(into))? {
            0 => Err(Error::Lost(io::ErrorKind::UnexpectedEof.into())),
            n => Ok(n),
        }
    }

    /// Sends all.
    pub(crate) fn write(&mut self, mut bytes: &[u8]) -> Result<(), Error> {
        while !bytes.is_empty() {
            match self.patiently(|inner| inner.write(bytes))? {
                0 => return Err(Error::Lost(io::ErrorKind::WriteZero.into())),
                n => bytes = &bytes[n..],
            }
        }
        self.patiently(|inner| inner.flush())
    }

    /// Does one thing until it is done, the wait is too long, or somebody stops it.
    fn patiently<T>(
        &mut self,
        mut what: impl FnMut(&mut dyn Duplex) -> io::Result<T>,
    ) -> Result<T, Error> {
        let Some(inner) = self.inner.as_deref_mut() else {
            return Err(Error::Lost(io::ErrorKind::NotConnected.into()));
        };
        if self.stop.is_stopped() {
            return Err(Error::Stopped);
        }
        if self.until.is_some_and(|end| Instant::now() >= end) {
            return Err(Error::Stalled(self.idle.unwrap_or_default()));
        }
        self.pulse.begin();
        let begun = Instant::now();
        let done = loop {
            match what(inner) {
                Ok(done) => break Ok(done),
                Err(e) if is_tick(&e) => {
                    if let Err(e) = waited(begun, self.idle, &self.stop) {
                        break Err(e);
                    }
                }
                Err(e) => break Err(Error::Lost(e)),
            }
        };
        self.pulse.end();
        done
    }
}

fn is_tick(e: &io::Error) -> bool {
    matches!(
        e.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}

fn waited(begun: Instant, idle: Option<Duration>, stop: &Stop) -> Result<(), Error> {
    if stop.is_stopped() {
        return Err(Error::Stopped);
    }
    match idle {
        Some(limit) if begun.elapsed() >= limit => Err(Error::Stalled(limit)),
        _ => Ok(()),
    }
}

/// Addresses of a name.
fn lookup(host: &str, port: u16, stop: &Stop) -> Result<std::vec::IntoIter<SocketAddr>, Error> {
    asked(host, stop, LOOKUP_PAUSE, || (host, port).to_socket_addrs())
}

/// A cluster's DNS is away for a moment now and then: it is asked three times, with a pause.
fn asked<T>(
    host: &str,
    stop: &Stop,
    pause: Duration,
    mut ask: impl FnMut() -> io::Result<T>,
) -> Result<T, Error> {
    let mut tries = 1;
    loop {
        match ask() {
            Ok(addresses) => return Ok(addresses),
            Err(_) if stop.is_stopped() => return Err(Error::Stopped),
            Err(_) if tries < LOOKUPS => {
                tries += 1;
                std::thread::sleep(pause);
            }
            Err(cause) => {
                return Err(Error::UnknownHost {
                    host: host.to_owned(),
                    cause,
                });
            }
        }
    }
}

/// The first that answers.
fn tcp(addresses: impl Iterator<Item = SocketAddr>, limit: Duration) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in addresses {
        match TcpStream::connect_timeout(&address, limit) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(TICK))?;
                stream.set_write_timeout(Some(TICK))?;
                return Ok(stream);
            }
            Err(e) => last = e,
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_name_is_asked_for_three_times() {
        // Which answer is good, what comes of it, how often was asked.
        for (good, found, times) in [(1, true, 1), (3, true, 3), (4, false, 3)] {
            let mut asked = 0;
            let answer = super::asked("db", &Stop::default(), Duration::ZERO, || {
                asked += 1;
                if asked == good {
                    Ok(asked)
                } else {
                    Err(io::Error::other("no such host"))
                }
            });
            assert_eq!((answer.is_ok(), asked), (found, times));
            if let Err(e) = answer {
                assert!(matches!(e, Error::UnknownHost { host, .. } if host == "db"));
            }
        }
    }

    #[test]
    fn who_is_told_to_stop_asks_no_more() {
        let (stop, mut asked) = (Stop::default(), 0);
        stop.stop();
        let answer = super::asked("db", &stop, Duration::ZERO, || {
            asked += 1;
            Err::<(), _>(io::Error::other("no such host"))
        });
        assert!(matches!(answer, Err(Error::Stopped)));
        assert_eq!(asked, 1);
    }
}
