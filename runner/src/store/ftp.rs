//! An FTP server, plain or under TLS. The protocol has no rename that refuses to replace; the names of
//! archives differ by run, and the question is asked right before.

use crds::report::{Reason, exit};
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};
use secrecy::{ExposeSecret, SecretString};
use suppaftp::list::ListParser;
use suppaftp::types::FileType;
use suppaftp::{
    FtpError, FtpResult, RustlsConnector, RustlsFtpStream, Status, TlsStream, TransferStream,
};

use crate::failure::Failure;
use crate::store::files::FileServer;
use crate::store::{Attempt, Dated, Entry, key_in, temporary};
use crate::trust::{Verify, client_config};

/// Connecting takes no longer.
const CONNECT: Duration = Duration::from_secs(20);

/// Where a server is and who logs in.
#[derive(Debug)]
pub struct Settings {
    /// Host name or address.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// User name.
    pub username: String,
    /// Password.
    pub password: SecretString,
    /// TLS from the first byte.
    pub tls: bool,
    /// TLS after AUTH TLS.
    pub explicit_tls: bool,
    /// Accept any server certificate.
    pub no_check_certificate: bool,
    /// Keys are below `/` rather than the directory of the login.
    pub absolute: bool,
    /// A connection that moves no byte for so long has failed.
    pub stalled: Duration,
}

/// An FTP server. Cheap to clone.
#[derive(Clone)]
pub struct FtpServer {
    inner: Arc<Inner>,
}

struct Inner {
    settings: Settings,
    attempt: Attempt,
    tls: Option<Arc<rustls::ClientConfig>>,
    /// A connection between two uses.
    idle: Mutex<Option<RustlsFtpStream>>,
}

impl FtpServer {
    /// A store.
    ///
    /// # Errors
    /// The server can't be reached, its certificate is not trusted, or it refuses the login.
    pub fn open(settings: Settings, attempt: Attempt) -> Result<Self, Failure> {
        let tls = (settings.tls || settings.explicit_tls)
            .then(|| tls(settings.no_check_certificate))
            .transpose()?;
        let store = Self {
            inner: Arc::new(Inner {
                settings,
                attempt,
                tls,
                idle: Mutex::default(),
            }),
        };
        let connection = store.connect()?;
        store.give_back(connection);
        Ok(store)
    }

    fn place(&self) -> String {
        format!("{}:{}", self.inner.settings.host, self.inner.settings.port)
    }

    fn path(&self, key: &str) -> String {
        if self.inner.settings.absolute {
            format!("/{key}")
        } else if key.is_empty() {
            ".".to_owned()
        } else {
            key.to_owned()
        }
    }

    fn connect(&self) -> Result<RustlsFtpStream, Failure> {
        let s = &self.inner.settings;
        let stalled = s.stalled;
        let mut stream = self.control()?.passive_stream_builder(move |address| {
            let stream =
                TcpStream::connect_timeout(&address, CONNECT).map_err(FtpError::ConnectionError)?;
            limit(&stream, stalled).map_err(FtpError::ConnectionError)?;
            Ok(stream)
        });
        // The address that the server gives may be one it has only on its own side.
        stream.set_passive_nat_workaround(true);
        if s.explicit_tls && !s.tls {
            stream = stream
                .into_secure(self.connector()?, &s.host)
                .map_err(|e| self.failed("starting TLS with", "the server", &e))?;
        }
        let refused = |e: FtpError| match &e {
            FtpError::UnexpectedResponse(r) if r.status == Status::NotLoggedIn => Failure::new(
                Reason::PermissionDenied,
                format!(
                    "{} refuses the login of user {:?}: check username and password of the Storage",
                    self.place(),
                    s.username
                ),
            ),
            _ => self.failed("logging in to", "the server", &e),
        };
        stream
            .login(s.username.as_str(), s.password.expose_secret())
            .map_err(refused)?;
        stream
            .transfer_type(FileType::Binary)
            .map_err(|e| self.failed("choosing binary mode of", "the server", &e))?;
        Ok(stream)
    }

    /// The control connection, before anyone has logged in.
    fn control(&self) -> Result<RustlsFtpStream, Failure> {
        let s = &self.inner.settings;
        let unreachable = |e: &dyn std::fmt::Display| {
            Failure::new(
                Reason::StoreUnreachable,
                format!(
                    "connecting to {} failed: {e}; check config.host, config.port, config.tls and NetworkPolicy",
                    self.place()
                ),
            )
        };
        let addresses = (s.host.as_str(), s.port)
            .to_socket_addrs()
            .map_err(|e| unreachable(&e))?;
        let mut last = io::Error::other("the name has no address");
        for address in addresses {
            match TcpStream::connect_timeout(&address, CONNECT) {
                Ok(stream) => {
                    limit(&stream, s.stalled).map_err(|e| unreachable(&e))?;
                    if !s.tls {
                        return RustlsFtpStream::connect_with_stream(stream)
                            .map_err(|e| unreachable(&e));
                    }
                    drop(stream);
                    return RustlsFtpStream::connect_secure_implicit(
                        address,
                        self.connector()?,
                        &s.host,
                    )
                    .map_err(|e| unreachable(&e));
                }
                Err(e) => last = e,
            }
        }
        Err(unreachable(&last))
    }

    fn connector(&self) -> Result<RustlsConnector, Failure> {
        let config = self.inner.tls.as_ref();
        config
            .map(|c| RustlsConnector::from(Arc::clone(c)))
            .ok_or_else(|| Failure::settings("TLS is not set up"))
    }

    /// A connection that answers.
    fn take(&self) -> Result<RustlsFtpStream, Failure> {
        let idle = self
            .inner
            .idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(mut connection) = idle
            && connection.noop().is_ok()
        {
            return Ok(connection);
        }
        self.connect()
    }

    fn give_back(&self, connection: RustlsFtpStream) {
        *self
            .inner
            .idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(connection);
    }

    /// Does something over a connection and keeps the connection.
    fn with<T>(
        &self,
        doing: &str,
        key: &str,
        act: impl FnOnce(&mut RustlsFtpStream) -> Result<T, FtpError>,
    ) -> Result<T, Failure> {
        let mut connection = self.take()?;
        let done = act(&mut connection).map_err(|e| self.failed(doing, key, &e))?;
        self.give_back(connection);
        Ok(done)
    }

    fn failed(&self, doing: &str, key: &str, error: &FtpError) -> Failure {
        let said = match error {
            FtpError::UnexpectedResponse(r) => {
                crds::report::clean(&String::from_utf8_lossy(&r.body), 200)
            }
            e => e.to_string(),
        };
        let (reason, remedy) = match error {
            FtpError::UnexpectedResponse(r) => match r.status {
                Status::NotLoggedIn => (
                    Reason::PermissionDenied,
                    "check username and password of the Storage",
                ),
                Status::ExceededStorage => {
                    (Reason::NoSpace, "free space, or raise the user's quota")
                }
                Status::FileUnavailable | Status::BadFilename => (
                    Reason::PermissionDenied,
                    "check config.path and that the user may list, read, write, rename and delete there",
                ),
                _ => (Reason::StoreFailed, "look at the server's log"),
            },
            e if matches!(e, FtpError::SecureError(_)) || said.contains("certificate") => (
                Reason::StoreUnreachable,
                "check the server's certificate, or set config.no_check_certificate",
            ),
            _ => (
                Reason::StoreUnreachable,
                "check the network, the server's passive ports, or raise config.timeout",
            ),
        };
        Failure::at(
            exit::STORE,
            reason,
            format!("{doing} {key} on {} failed: {said}; {remedy}", self.place()),
        )
    }

    fn make_directories(&self, connection: &mut RustlsFtpStream, key: &str) {
        let Some((directory, _)) = key.rsplit_once('/') else {
            return;
        };
        let mut made = String::new();
        for part in directory.split('/') {
            made = key_in(&made, part);
            // What is there already is refused; what can't be made shows when it is written to.
            let _ = connection.mkdir(self.path(&made));
        }
    }
}

/// By MLSD where the server has it, else by the lines of LIST, whose times are in a zone that is not
/// told and are left out. A missing directory is empty.
fn listing(connection: &mut RustlsFtpStream, path: &str) -> Result<Vec<Dated>, FtpError> {
    let (lines, machine) = match connection.mlsd(Some(path)) {
        Ok(lines) => (lines, true),
        Err(e) if gone(&e) => return Ok(vec![]),
        Err(FtpError::UnexpectedResponse(_)) => match connection.list(Some(path)) {
            Ok(lines) => (lines, false),
            Err(e) if gone(&e) => return Ok(vec![]),
            Err(e) => return Err(e),
        },
        Err(e) => return Err(e),
    };
    let mut found = vec![];
    for line in lines.iter().filter(|l| !l.trim().is_empty()) {
        let parsed = if machine {
            ListParser::parse_mlsd(line)
        } else {
            ListParser::parse_posix(line).or_else(|_| ListParser::parse_dos(line))
        };
        match parsed {
            Ok(file) if matches!(file.name(), "." | "..") => {}
            Ok(file) => {
                let name = file.name().trim_end_matches('/').rsplit('/').next();
                let slash = if file.is_directory() { "/" } else { "" };
                let entry = Entry {
                    key: format!("{}{slash}", name.unwrap_or_default()),
                    size: file.size() as u64,
                };
                let modified = machine.then(|| file.modified().into());
                found.push((entry, modified));
            }
            // Some servers open the lines of LIST with a total.
            Err(_) if !machine && line.starts_with("total") => {}
            // A file that is not understood could be an archive.
            Err(_) => return Err(FtpError::BadResponse),
        }
    }
    Ok(found)
}

fn gone(error: &FtpError) -> bool {
    let FtpError::UnexpectedResponse(response) = error else {
        return false;
    };
    let said = String::from_utf8_lossy(&response.body).to_lowercase();
    response.status == Status::FileUnavailable
        && !said.contains("denied")
        && !said.contains("not enough privileges")
}

fn limit(stream: &TcpStream, stalled: Duration) -> io::Result<()> {
    stream.set_read_timeout(Some(stalled))?;
    stream.set_write_timeout(Some(stalled))
}

impl FileServer for FtpServer {
    type File = Uploading;

    const SERVER: &'static str = "FTP server";

    fn place(&self) -> String {
        FtpServer::place(self)
    }

    fn attempt(&self) -> &Attempt {
        &self.inner.attempt
    }

    fn entries(&self, directory: &str) -> Result<Vec<Dated>, Failure> {
        let path = self.path(directory);
        let mut found = self.with("listing", directory, |c| listing(c, &path))?;
        for (entry, _) in &mut found {
            entry.key = key_in(directory, &entry.key);
        }
        Ok(found)
    }

    fn modified(&self, key: &str) -> Result<Option<DateTime<Utc>>, Failure> {
        let path = self.path(key);
        // A server that can't tell is no failure.
        self.with("reading", key, |c| {
            Ok(c.mdtm(&path).ok().map(|time| time.and_utc()))
        })
    }

    fn read(&self, doing: &str, key: &str) -> Result<Option<Box<dyn Read + Send>>, Failure> {
        let mut connection = self.take()?;
        match connection.retr_as_stream(self.path(key)) {
            Ok(stream) => Ok(Some(Box::new(Reader {
                store: self.clone(),
                connection: Some(connection),
                stream: Some(Box::new(stream)),
                key: key.to_owned(),
            }))),
            Err(e) if gone(&e) => {
                self.give_back(connection);
                Ok(None)
            }
            Err(e) => Err(self.failed(doing, key, &e)),
        }
    }

    fn read_part(
        &self,
        key: &str,
        part: Range<u64>,
    ) -> Result<Option<Box<dyn Read + Send>>, Failure> {
        let mut connection = self.take()?;
        let begin = usize::try_from(part.start).unwrap_or(usize::MAX);
        // A server without REST knows no parts; what else is wrong, reading the whole tells.
        if connection.resume_transfer(begin).is_err() {
            return Ok(None);
        }
        match connection.retr_as_stream(self.path(key)) {
            Ok(stream) => {
                // What is not read to its end leaves a connection that is of no use.
                let reader = Reader {
                    store: self.clone(),
                    connection: Some(connection),
                    stream: Some(Box::new(stream)),
                    key: key.to_owned(),
                };
                Ok(Some(Box::new(
                    reader.take(part.end.saturating_sub(part.start)),
                )))
            }
            Err(e) if gone(&e) => {
                self.give_back(connection);
                Ok(None)
            }
            Err(e) => Err(self.failed("reading", key, &e)),
        }
    }

    fn start(&self, key: &str) -> Result<Uploading, Failure> {
        let mut connection = self.take()?;
        self.make_directories(&mut connection, key);
        let stream = connection
            .put_with_stream(self.path(key))
            .map_err(|e| self.failed("creating", key, &e))?;
        Ok(Uploading {
            stream: Some(Box::new(stream)),
            connection,
            path: self.path(key),
            sent: 0,
        })
    }

    fn write(&self, file: &mut Uploading, key: &str, data: &[u8]) -> Result<(), Failure> {
        let Some(stream) = &mut file.stream else {
            return Err(Failure::new(Reason::StoreFailed, "the upload is closed"));
        };
        if let Err(e) = stream.write_all(data) {
            // The server's answer says why, if there is one.
            let answer = file.stream.take().map(Transfer::finish);
            let error = match answer {
                Some(Err(e @ FtpError::UnexpectedResponse(_))) => e,
                _ => FtpError::ConnectionError(e),
            };
            return Err(self.failed("writing", key, &error));
        }
        file.sent += data.len() as u64;
        Ok(())
    }

    fn close(&self, file: Uploading, key: &str) -> Result<(), Failure> {
        let Uploading {
            stream: Some(mut stream),
            mut connection,
            path,
            sent,
        } = file
        else {
            return Err(Failure::new(Reason::StoreFailed, "the upload is closed"));
        };
        stream
            .flush()
            .map_err(|e| self.failed("completing", key, &FtpError::ConnectionError(e)))?;
        stream
            .finish()
            .map_err(|e| self.failed("completing", key, &e))?;
        let size = connection.size(path);
        if let Ok(size) = size
            && size as u64 != sent
        {
            return Err(Failure::new(
                Reason::ShortWrite,
                format!(
                    "{size} of {sent} bytes of {key} arrived at {}: run again",
                    FtpServer::place(self)
                ),
            ));
        }
        self.give_back(connection);
        Ok(())
    }

    fn publish(&self, from: &str, key: &str) -> Result<bool, Failure> {
        let (from, to) = (self.path(from), self.path(key));
        self.with("publishing", key, |c| {
            if there(c, &to)? {
                return Ok(false);
            }
            c.rename(&from, &to).map(|()| true)
        })
    }

    fn put(&self, key: &str, content: &[u8]) -> Result<(), Failure> {
        let (temporary, path) = (
            self.path(&temporary::name(&self.inner.attempt, key)),
            self.path(key),
        );
        self.with("writing", key, |c| {
            self.make_directories(c, key);
            c.put_file(&temporary, &mut &*content)?;
            if c.rename(&temporary, &path).is_err() {
                // Not every server lets a rename replace a file.
                c.rm(&path)?;
                c.rename(&temporary, &path)?;
            }
            Ok(())
        })
    }

    /// The protocol has no word for it: a look must do.
    fn create(&self, key: &str, content: &[u8]) -> Result<bool, Failure> {
        let path = self.path(key);
        if self.with("reading", key, |c| there(c, &path))? {
            return Ok(false);
        }
        self.put(key, content).map(|()| true)
    }

    fn remove(&self, key: &str) -> Result<(), Failure> {
        let path = self.path(key);
        self.with("removing", key, |c| match c.rm(&path) {
            // What can't be removed and what is not there have one answer: ask again.
            Err(e) if gone(&e) && !there(c, &path)? => Ok(()),
            other => other,
        })
    }
}

fn there(connection: &mut RustlsFtpStream, path: &str) -> Result<bool, FtpError> {
    match connection.size(path) {
        Ok(_) => Ok(true),
        Err(e) if gone(&e) => Ok(false),
        Err(e) => Err(e),
    }
}

/// The data connection of a transfer, whatever is below it.
trait Transfer: Read + Write + Send {
    /// Closes it and reads whether the server has, or has sent, all of it.
    fn finish(self: Box<Self>) -> FtpResult<()>;
}

impl<T: TlsStream> Transfer for TransferStream<T>
where
    Self: Read + Write + Send,
{
    fn finish(self: Box<Self>) -> FtpResult<()> {
        TransferStream::finish(*self)
    }
}

/// A file on its way. Dropped unclosed, the transfer ends before its connection.
pub(super) struct Uploading {
    stream: Option<Box<dyn Transfer>>,
    connection: RustlsFtpStream,
    path: String,
    sent: u64,
}

/// A file as a reader; its end is one only if the server says that it sent all of it.
struct Reader {
    store: FtpServer,
    connection: Option<RustlsFtpStream>,
    stream: Option<Box<dyn Transfer>>,
    key: String,
}

impl Read for Reader {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        let Some(stream) = &mut self.stream else {
            return Ok(0);
        };
        let n = stream.read(target)?;
        if n == 0
            && !target.is_empty()
            && let Some(stream) = self.stream.take()
        {
            stream
                .finish()
                .map_err(|e| io::Error::other(self.store.failed("reading", &self.key, &e)))?;
            if let Some(connection) = self.connection.take() {
                self.store.give_back(connection);
            }
        }
        Ok(n)
    }
}

fn tls(no_check: bool) -> Result<Arc<rustls::ClientConfig>, Failure> {
    // `no_check_certificate`: whoever answers is believed.
    let verify = if no_check {
        Verify::Nothing
    } else {
        Verify::Host
    };
    let failed = |e| {
        Failure::at(
            exit::FAILED,
            Reason::TlsFailed,
            format!("TLS can't be set up: {e}"),
        )
    };
    client_config(verify, None).map(Arc::new).map_err(failed)
}
