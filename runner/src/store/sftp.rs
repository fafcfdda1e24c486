//! An SSH server by its SFTP subsystem, which OpenSSH's scp speaks too. What is written is synced;
//! the rename of the protocol replaces nothing.

use crds::report::{Reason, exit};
use std::borrow::Cow;
use std::io::{self, Read};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};
use russh::client::{self, AuthResult, Handle as Session};
use russh::keys::{HashAlg, PrivateKeyWithHashAlg, PublicKey, PublicKeyOrCertificate};
use russh_sftp::client::SftpSession;
use russh_sftp::client::error::Error as SftpError;
use russh_sftp::client::fs::File;
use russh_sftp::protocol::{OpenFlags, StatusCode};
use secrecy::{ExposeSecret, SecretString};
use tokio::io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt};
use tokio::runtime::Handle;

use crate::failure::Failure;
use crate::store::files::FileServer;
use crate::store::{Attempt, Dated, Entry, key_in, temporary};

/// Connecting and logging in take no longer.
const CONNECT: Duration = Duration::from_secs(20);
/// Between signs of life to the server.
const KEEP_ALIVE: Duration = Duration::from_secs(20);

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
    pub password: Option<SecretString>,
    /// Private key: OpenSSH, PEM or PuTTY.
    pub private_key: Option<SecretString>,
    /// Passphrase of the private key.
    pub passphrase: Option<SecretString>,
    /// Host key the server must show: a line of known_hosts, `TYPE BASE64`, or `SHA256:…`.
    pub host_key: Option<String>,
    /// Keys are below `/` rather than the directory of the login.
    pub absolute: bool,
    /// A request that gets no answer for so long has failed.
    pub stalled: Duration,
}

/// An SSH server. Cheap to clone.
#[derive(Clone)]
pub struct SftpServer {
    inner: Arc<Inner>,
}

struct Inner {
    settings: Settings,
    attempt: Attempt,
    handle: Handle,
    connection: Mutex<Option<Arc<Connection>>>,
    shown: Arc<Mutex<Option<PublicKey>>>,
}

struct Connection {
    session: Session<HostKey>,
    sftp: SftpSession,
}

/// What the server must show, and what it shows.
struct HostKey {
    expected: Option<Expected>,
    shown: Arc<Mutex<Option<PublicKey>>>,
}

#[derive(Clone, Debug)]
enum Expected {
    Key(Box<PublicKey>),
    Fingerprint(String),
}

impl client::Handler for HostKey {
    type Error = russh::Error;

    async fn check_server_key(
        &mut self,
        shown: &PublicKeyOrCertificate,
    ) -> Result<bool, Self::Error> {
        let key = match shown {
            PublicKeyOrCertificate::PublicKey { key, .. } => key,
            // What is trusted is the host's own key, whoever vouches for it.
            PublicKeyOrCertificate::Certificate(certificate) => {
                &PublicKey::from(certificate.public_key().clone())
            }
        };
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = Some(key.clone());
        Ok(match &self.expected {
            None => true,
            Some(Expected::Key(expected)) => expected.key_data() == key.key_data(),
            Some(Expected::Fingerprint(expected)) => *expected == fingerprint(key),
        })
    }
}

fn fingerprint(key: &PublicKey) -> String {
    key.fingerprint(HashAlg::Sha256).to_string()
}

fn expected(text: &str) -> Result<Expected, Failure> {
    let text = text.trim();
    if text.starts_with("SHA256:") {
        return Ok(Expected::Fingerprint(text.trim_end_matches('=').to_owned()));
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    let found = words
        .windows(2)
        .find_map(|w| PublicKey::from_openssh(&format!("{} {}", w[0], w[1])).ok());
    found.map(|key| Expected::Key(Box::new(key))).ok_or_else(|| {
        Failure::settings(
            "config.host_key is no host key: give a line of `ssh-keyscan HOST`, or its SHA256:… fingerprint",
        )
    })
}

impl SftpServer {
    /// A store. Must be called within the runtime.
    ///
    /// # Errors
    /// The server can't be reached, shows another key, or refuses the login.
    pub fn open(settings: Settings, attempt: Attempt) -> Result<Self, Failure> {
        let store = Self {
            inner: Arc::new(Inner {
                settings,
                attempt,
                handle: Handle::current(),
                connection: Mutex::default(),
                shown: Arc::default(),
            }),
        };
        store.connection()?;
        Ok(store)
    }

    /// The fingerprint of the key the server showed, if nothing was said about which it must be.
    pub fn unchecked_host_key(&self) -> Option<String> {
        if self.inner.settings.host_key.is_some() {
            return None;
        }
        let shown = self.inner.shown.lock();
        shown
            .unwrap_or_else(PoisonError::into_inner)
            .as_ref()
            .map(fingerprint)
    }

    fn place(&self) -> String {
        format!("{}:{}", self.inner.settings.host, self.inner.settings.port)
    }

    fn path<'a>(&self, key: &'a str) -> Cow<'a, str> {
        match (self.inner.settings.absolute, key) {
            (true, key) => Cow::Owned(format!("/{key}")),
            (false, "") => Cow::Borrowed("."),
            (false, key) => Cow::Borrowed(key),
        }
    }

    /// The open connection, or another one.
    fn connection(&self) -> Result<Arc<Connection>, Failure> {
        let mut held = self
            .inner
            .connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(connection) = held.as_ref().filter(|c| !c.session.is_closed()) {
            return Ok(Arc::clone(connection));
        }
        let connected = self
            .inner
            .handle
            .block_on(async { tokio::time::timeout(CONNECT, self.connect()).await });
        let connection = Arc::new(connected.unwrap_or_else(|_| {
            Err(self.unreachable(&format!("no answer within {} seconds", CONNECT.as_secs())))
        })?);
        *held = Some(Arc::clone(&connection));
        Ok(connection)
    }

    fn unreachable(&self, why: &str) -> Failure {
        Failure::new(
            Reason::StoreUnreachable,
            format!(
                "connecting to {} failed: {why}; check config.host, config.port and NetworkPolicy",
                self.place()
            ),
        )
    }

    fn refused(&self, what: &str) -> Failure {
        Failure::new(
            Reason::PermissionDenied,
            format!(
                "{} refuses {what} of user {:?}: check username, password and private_key of the Storage",
                self.place(),
                self.inner.settings.username
            ),
        )
    }

    async fn connect(&self) -> Result<Connection, Failure> {
        let s = &self.inner.settings;
        let expected = s.host_key.as_deref().map(expected).transpose()?;
        let mut config = client::Config {
            keepalive_interval: Some(KEEP_ALIVE),
            nodelay: true,
            ..client::Config::default()
        };
        // Of several host keys the server is to show the one that is known.
        if let Some(Expected::Key(key)) = &expected {
            let algorithms = config.preferred.key.iter().filter(|a| {
                **a == key.algorithm() || ((*a).clone().is_rsa() && key.algorithm().is_rsa())
            });
            config.preferred.key = Cow::Owned(algorithms.cloned().collect());
        }
        let handler = HostKey {
            expected: expected.clone(),
            shown: Arc::clone(&self.inner.shown),
        };
        let mut session = client::connect(Arc::new(config), (s.host.as_str(), s.port), handler)
            .await
            .map_err(|e| self.not_connected(expected.is_some(), &e))?;
        self.log_in(&mut session).await?;
        let failed = |e: &dyn std::fmt::Display| {
            Failure::new(
                Reason::StoreFailed,
                format!(
                    "{} gives no SFTP: {e}; enable its sftp subsystem, which sftp and scp storages need",
                    self.place()
                ),
            )
        };
        let channel = session
            .channel_open_session()
            .await
            .map_err(|e| failed(&e))?;
        channel
            .request_subsystem(true, "sftp")
            .await
            .map_err(|e| failed(&e))?;
        let sftp = SftpSession::new(channel.into_stream())
            .await
            .map_err(|e| failed(&e))?;
        sftp.set_timeout(s.stalled.as_secs().max(1));
        Ok(Connection { session, sftp })
    }

    fn not_connected(&self, pinned: bool, error: &russh::Error) -> Failure {
        let shown = self.inner.shown.lock();
        let shown = shown.unwrap_or_else(PoisonError::into_inner);
        match (error, shown.as_ref()) {
            (russh::Error::UnknownKey, Some(key)) if pinned => Failure::new(
                Reason::HostKeyChanged,
                format!(
                    "{} shows the host key {} and not config.host_key: someone may be in between; if the server's key was changed, correct config.host_key",
                    self.place(),
                    fingerprint(key)
                ),
            ),
            (russh::Error::NoCommonAlgo { .. }, _) if pinned => Failure::new(
                Reason::HostKeyChanged,
                format!(
                    "{} has no host key of the type of config.host_key ({error}): correct config.host_key",
                    self.place()
                ),
            ),
            _ => self.unreachable(&error.to_string()),
        }
    }

    async fn log_in(&self, session: &mut Session<HostKey>) -> Result<(), Failure> {
        let s = &self.inner.settings;
        let unreachable = |e: russh::Error| self.unreachable(&e.to_string());
        let mut tried = vec![];
        if let Some(key) = &s.private_key {
            let passphrase = s.passphrase.as_ref().map(ExposeSecret::expose_secret);
            let key =
                russh::keys::decode_secret_key(key.expose_secret(), passphrase).map_err(|e| {
                    let why = match (&e, passphrase) {
                        (russh::keys::Error::KeyIsEncrypted, None) => {
                            "it is protected by a passphrase and none is given; set passphrase_ref"
                                .to_owned()
                        }
                        (_, Some(_)) => format!("{e}; check that passphrase is the key's"),
                        (_, None) => {
                            format!("{e}; give a private key, and its passphrase if it has one")
                        }
                    };
                    Failure::settings(format!("config.private_key can't be read: {why}"))
                })?;
            let hash = session
                .best_supported_rsa_hash()
                .await
                .map_err(unreachable)?
                .flatten();
            let key = PrivateKeyWithHashAlg::new(Arc::new(key), hash);
            let answer = session
                .authenticate_publickey(&s.username, key)
                .await
                .map_err(unreachable)?;
            if answer.success() {
                return Ok(());
            }
            tried.push("the private key");
        }
        if let Some(password) = &s.password {
            let answer = session
                .authenticate_password(&s.username, password.expose_secret())
                .await
                .map_err(unreachable)?;
            if matches!(answer, AuthResult::Success) || self.by_question(session, password).await? {
                return Ok(());
            }
            tried.push("the password");
        }
        if tried.is_empty() {
            return Err(Failure::settings(
                "the Storage has neither password nor private_key: set password_ref or private_key_ref",
            ));
        }
        Err(self.refused(&tried.join(" and ")))
    }

    /// Servers that ask for the password instead of taking it.
    async fn by_question(
        &self,
        session: &mut Session<HostKey>,
        password: &SecretString,
    ) -> Result<bool, Failure> {
        use client::KeyboardInteractiveAuthResponse as Answer;
        let failed = |e: russh::Error| self.unreachable(&e.to_string());
        let user = self.inner.settings.username.clone();
        let mut answer = session
            .authenticate_keyboard_interactive_start(user, None::<String>)
            .await
            .map_err(failed)?;
        for _ in 0..3 {
            match answer {
                Answer::Success => return Ok(true),
                Answer::Failure { .. } => return Ok(false),
                Answer::InfoRequest { prompts, .. } => {
                    let words = prompts
                        .iter()
                        .map(|_| password.expose_secret().to_owned())
                        .collect();
                    answer = session
                        .authenticate_keyboard_interactive_respond(words)
                        .await
                        .map_err(failed)?;
                }
            }
        }
        Ok(false)
    }

    fn failed(&self, doing: &str, key: &str, error: &SftpError) -> Failure {
        let (reason, remedy) = match error {
            SftpError::Status(s) if s.status_code == StatusCode::PermissionDenied => (
                Reason::PermissionDenied,
                "give the user the right to list, read, write and delete there",
            ),
            SftpError::Status(s) if s.status_code == StatusCode::NoSuchFile => (
                Reason::DestinationNotFound,
                "create the directory, or correct config.path",
            ),
            SftpError::Timeout => (
                Reason::StoreUnreachable,
                "look at the network and the server's health, or raise config.timeout",
            ),
            SftpError::Status(_) => (
                Reason::StoreFailed,
                "look at the server's free space and its log",
            ),
            _ => (
                Reason::StoreUnreachable,
                "look at the network and the server",
            ),
        };
        Failure::at(
            exit::STORE,
            reason,
            format!(
                "{doing} {key} on {} failed: {error}; {remedy}",
                self.place()
            ),
        )
    }

    fn make_directories(&self, key: &str) -> Result<(), Failure> {
        let connection = self.connection()?;
        let Some((directory, _)) = key.rsplit_once('/') else {
            return Ok(());
        };
        self.inner.handle.block_on(async {
            let there = exists(&connection.sftp, &self.path(directory)).await;
            if there.is_ok_and(|there| there) {
                return;
            }
            let mut made = String::new();
            for part in directory.split('/') {
                made = key_in(&made, part);
                // What is there already is refused; what can't be made shows when it is written to.
                let _ = connection.sftp.create_dir(self.path(&made)).await;
            }
        });
        Ok(())
    }

    /// Writes under a temporary name and renames; with `only_new` not over what is there, and then
    /// it is false.
    fn write_whole(&self, key: &str, content: &[u8], only_new: bool) -> Result<bool, Failure> {
        self.make_directories(key)?;
        let connection = self.connection()?;
        let sftp = &connection.sftp;
        let temporary = temporary::name(&self.inner.attempt, key);
        let written = self.inner.handle.block_on(async {
            let path = self.path(key);
            if only_new && exists(sftp, &path).await? {
                return Ok(false);
            }
            let mut file = create(sftp, &self.path(&temporary)).await?;
            file.write_all(content).await?;
            file.flush().await?;
            file.sync_all().await?;
            file.close().await?;
            if !only_new && exists(sftp, &path).await? {
                sftp.remove_file(path.clone()).await?;
            }
            match sftp.rename(self.path(&temporary), path.clone()).await {
                Ok(()) => Ok(true),
                Err(_) if only_new && exists(sftp, &path).await? => {
                    sftp.remove_file(self.path(&temporary)).await?;
                    Ok(false)
                }
                Err(e) => Err(e),
            }
        });
        written.map_err(|e| {
            let _ = self
                .inner
                .handle
                .block_on(sftp.remove_file(self.path(&temporary)));
            self.failed("writing", key, &e)
        })
    }
}

fn time(seconds: Option<u32>) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp(i64::from(seconds?), 0)
}

async fn create(sftp: &SftpSession, path: &str) -> Result<File, SftpError> {
    sftp.open_with_flags(
        path,
        OpenFlags::CREATE | OpenFlags::TRUNCATE | OpenFlags::WRITE,
    )
    .await
}

async fn exists(sftp: &SftpSession, path: &str) -> Result<bool, SftpError> {
    match sftp.metadata(path).await {
        Ok(_) => Ok(true),
        Err(e) if gone(&e) => Ok(false),
        Err(e) => Err(e),
    }
}

fn gone(error: &SftpError) -> bool {
    matches!(error, SftpError::Status(s) if s.status_code == StatusCode::NoSuchFile)
}

impl SftpServer {
    /// A file that is read; `None` if it does not exist.
    fn opened(&self, doing: &str, key: &str) -> Result<Option<Reader>, Failure> {
        let connection = self.connection()?;
        let opened = self
            .inner
            .handle
            .block_on(connection.sftp.open(self.path(key)));
        match opened {
            Ok(file) => Ok(Some(Reader {
                file,
                _connection: connection,
                handle: self.inner.handle.clone(),
            })),
            Err(e) if gone(&e) => Ok(None),
            Err(e) => Err(self.failed(doing, key, &e)),
        }
    }
}

impl FileServer for SftpServer {
    type File = Uploading;

    const SERVER: &'static str = "SSH server";

    fn place(&self) -> String {
        SftpServer::place(self)
    }

    fn attempt(&self) -> &Attempt {
        &self.inner.attempt
    }

    fn entries(&self, directory: &str) -> Result<Vec<Dated>, Failure> {
        let connection = self.connection()?;
        let listed = self
            .inner
            .handle
            .block_on(connection.sftp.read_dir(self.path(directory)));
        let listed = match listed {
            Ok(listed) => listed,
            Err(e) if gone(&e) => return Ok(vec![]),
            Err(e) => return Err(self.failed("listing", directory, &e)),
        };
        let found = listed.map(|e| {
            let slash = if e.file_type().is_dir() { "/" } else { "" };
            let entry = Entry {
                key: format!("{}{slash}", key_in(directory, &e.file_name())),
                size: e.metadata().size.unwrap_or(0),
            };
            (entry, time(e.metadata().mtime))
        });
        Ok(found.collect())
    }

    fn modified(&self, key: &str) -> Result<Option<DateTime<Utc>>, Failure> {
        let connection = self.connection()?;
        let found = self
            .inner
            .handle
            .block_on(connection.sftp.metadata(self.path(key)));
        let found = found.map_err(|e| self.failed("reading", key, &e))?;
        Ok(time(found.mtime))
    }

    fn read(&self, doing: &str, key: &str) -> Result<Option<Box<dyn Read + Send>>, Failure> {
        let opened = self.opened(doing, key)?;
        Ok(opened.map(|reader| Box::new(reader) as Box<dyn Read + Send>))
    }

    fn read_part(
        &self,
        key: &str,
        part: Range<u64>,
    ) -> Result<Option<Box<dyn Read + Send>>, Failure> {
        let Some(mut reader) = self.opened("reading", key)? else {
            return Ok(None);
        };
        let seek = reader.file.seek(io::SeekFrom::Start(part.start));
        let sought = self.inner.handle.block_on(seek);
        sought.map_err(|e| self.failed("reading", key, &e.into()))?;
        let length = part.end.saturating_sub(part.start);
        Ok(Some(Box::new(reader.take(length))))
    }

    fn start(&self, key: &str) -> Result<Uploading, Failure> {
        self.make_directories(key)?;
        let (connection, handle) = (self.connection()?, self.inner.handle.clone());
        let file = handle
            .block_on(create(&connection.sftp, &self.path(key)))
            .map_err(|e| self.failed("creating", key, &e))?;
        Ok(Uploading {
            file: Some(file),
            _connection: connection,
            handle,
        })
    }

    fn write(&self, sending: &mut Uploading, key: &str, data: &[u8]) -> Result<(), Failure> {
        let Some(file) = &mut sending.file else {
            return Ok(());
        };
        let written = self.inner.handle.block_on(file.write_all(data));
        written.map_err(|e| self.failed("writing", key, &e.into()))
    }

    fn close(&self, mut sending: Uploading, key: &str) -> Result<(), Failure> {
        let Some(mut file) = sending.file.take() else {
            return Ok(());
        };
        let closed = self.inner.handle.block_on(async {
            file.flush().await?;
            file.sync_all().await?;
            file.close().await?;
            Ok::<(), SftpError>(())
        });
        closed.map_err(|e| self.failed("completing", key, &e))
    }

    fn publish(&self, from: &str, key: &str) -> Result<bool, Failure> {
        let connection = self.connection()?;
        let (sftp, to) = (&connection.sftp, self.path(key));
        let published = self.inner.handle.block_on(async {
            if exists(sftp, &to).await? {
                return Ok(false);
            }
            match sftp.rename(self.path(from), to.clone()).await {
                Ok(()) => Ok(true),
                Err(_) if exists(sftp, &to).await? => Ok(false),
                Err(e) => Err(e),
            }
        });
        published.map_err(|e| self.failed("publishing", key, &e))
    }

    fn put(&self, key: &str, content: &[u8]) -> Result<(), Failure> {
        self.write_whole(key, content, false).map(|_| ())
    }

    fn create(&self, key: &str, content: &[u8]) -> Result<bool, Failure> {
        self.write_whole(key, content, true)
    }

    fn remove(&self, key: &str) -> Result<(), Failure> {
        let connection = self.connection()?;
        let removed = self
            .inner
            .handle
            .block_on(connection.sftp.remove_file(self.path(key)));
        match removed {
            Err(e) if !gone(&e) => Err(self.failed("removing", key, &e)),
            _ => Ok(()),
        }
    }
}

/// A file on its way.
pub(super) struct Uploading {
    /// There until it is closed or given up.
    file: Option<File>,
    _connection: Arc<Connection>,
    handle: Handle,
}

impl Drop for Uploading {
    fn drop(&mut self) {
        if let Some(file) = self.file.take() {
            let _ = self.handle.block_on(file.close());
        }
    }
}

/// A file as a blocking reader.
struct Reader {
    file: File,
    _connection: Arc<Connection>,
    handle: Handle,
}

impl Read for Reader {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        self.handle.block_on(self.file.read(target))
    }
}
