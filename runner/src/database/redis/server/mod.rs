//! A running Redis or Valkey: what it is, what it holds, and snapshots loaded into it.

mod load;
mod resp;
mod tls;

use crds::report::{Reason, exit};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crds::parts::TlsMode;

use crate::context::Context;
use crate::failure::Failure;

use resp::{Duplex, Wire};

pub(crate) use load::{Loaded, Stop, Survey, load, survey};
pub(crate) use resp::Reply;

/// Port where none is given.
const PORT: u16 = 6379;
/// Longest wait for a connection.
const CONNECT: Duration = Duration::from_secs(10);
/// A connection wakes up so often to see whether the run is to end.
const WAKE: Duration = Duration::from_secs(1);

/// Where a server is, and who logs in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Address<'a> {
    /// Host name or address.
    pub(crate) host: &'a str,
    /// TCP port; 6379 if unset.
    pub(crate) port: Option<u16>,
    /// Unix socket, instead of host and port.
    pub(crate) socket: Option<&'a str>,
    /// User name; `default` is who logs in by password alone.
    pub(crate) username: &'a str,
    /// Password; nobody logs in if it is empty and the user is `default`.
    pub(crate) password: &'a str,
    /// Transport security. Preferred is none, as nothing is negotiated.
    pub(crate) tls: TlsMode,
    /// File with the authority's certificate.
    pub(crate) authority: Option<&'a str>,
}

impl Address<'_> {
    /// `cache:6379`, or the socket.
    pub(crate) fn text(&self) -> String {
        match self.socket {
            Some(socket) => socket.to_owned(),
            None => format!("{}:{}", self.host, self.port.unwrap_or(PORT)),
        }
    }
}

/// A connection to a server, logged in.
pub(crate) struct Server<'a> {
    wire: Wire<'a>,
    context: &'a Context,
    /// `INFO`, by its names.
    info: Vec<(String, String)>,
}

impl<'a> Server<'a> {
    /// Connects, logs in and looks at the server.
    ///
    /// # Errors
    /// It can't be reached, refuses the login, or is none that snapshots can be loaded into.
    pub(crate) fn connect(context: &'a Context, address: &Address<'_>) -> Result<Self, Failure> {
        let wire = Wire::new(context, stream(address)?);
        let mut server = Self {
            wire,
            context,
            info: vec![],
        };
        server.log_in(address)?;
        let text = server.ask(&[b"INFO"], "INFO")?;
        if let Reply::Bytes(text) = text {
            let text = String::from_utf8_lossy(&text).into_owned();
            let pairs = text.lines().filter_map(|l| l.split_once(':'));
            server.info = pairs
                .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
                .collect();
        }
        server.fits(address)?;
        Ok(server)
    }

    fn log_in(&mut self, address: &Address<'_>) -> Result<(), Failure> {
        let (user, password) = (address.username, address.password);
        let named = !matches!(user, "" | "default");
        if !named && password.is_empty() {
            return Ok(());
        }
        let mut words: Vec<&[u8]> = vec![b"AUTH"];
        if named {
            words.push(user.as_bytes());
        }
        words.push(password.as_bytes());
        self.ask(&words, "AUTH").map(drop)
    }

    /// It takes keys of all databases, itself.
    fn fits(&self, address: &Address<'_>) -> Result<(), Failure> {
        let unfit = |what: &str| Err(Failure::settings(format!("{} {what}", address.text())));
        if self.fact("cluster_enabled") == Some("1") {
            return unfit(
                "is a node of a cluster, where keys go to many nodes: restore into a server without cluster mode, or put dump.rdb on a node's volume with spec.to.volume (--to-volume)",
            );
        }
        if self.fact("role").is_some_and(|role| role != "master") {
            return unfit(
                "is a replica, which takes no keys: name the primary with spec.to (--to)",
            );
        }
        Ok(())
    }

    /// A line of `INFO`.
    pub(crate) fn fact(&self, name: &str) -> Option<&str> {
        let found = self.info.iter().find(|(n, _)| n == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Sends one command and gives its reply.
    ///
    /// # Errors
    /// The server refuses it, or is lost.
    pub(crate) fn ask(&mut self, words: &[&[u8]], what: &str) -> Result<Reply, Failure> {
        self.wire.send(words)?;
        match self.wire.reply()? {
            Reply::Error(said) => Err(refused(&self.context.scrub.clean(&said), what)),
            reply => Ok(reply),
        }
    }

    /// Makes `database` the one that commands speak of, and gives the number of its keys.
    ///
    /// # Errors
    /// There is none of that number.
    pub(crate) fn keys(&mut self, database: u64) -> Result<u64, Failure> {
        let number = database.to_string();
        let what = format!("database {database}");
        self.ask(&[b"SELECT", number.as_bytes()], &what)?;
        match self.ask(&[b"DBSIZE"], &what)? {
            Reply::Number(keys) => Ok(u64::try_from(keys).unwrap_or(0)),
            other => Err(Failure::new(
                Reason::ClientDoesNotFit,
                format!("DBSIZE gave no number but {other:?}"),
            )),
        }
    }

    /// True if there are libraries of functions.
    ///
    /// # Errors
    /// The server knows none.
    pub(crate) fn has_functions(&mut self) -> Result<bool, Failure> {
        let list = self.ask(&[b"FUNCTION", b"LIST"], "FUNCTION LIST")?;
        Ok(!matches!(list, Reply::List(found) if found.is_empty()))
    }
}

fn stream(address: &Address<'_>) -> Result<Box<dyn Duplex>, Failure> {
    let failed = |e: &std::io::Error| {
        Failure::new(
            Reason::ConnectionFailed,
            format!(
                "{} can't be connected to ({e}): check spec.to.host and port (--to), that the server runs, and network policies",
                address.text()
            ),
        )
    };
    if let Some(path) = address.socket {
        let stream = UnixStream::connect(path).map_err(|e| failed(&e))?;
        stream
            .set_read_timeout(Some(WAKE))
            .map_err(|e| failed(&e))?;
        stream
            .set_write_timeout(Some(WAKE))
            .map_err(|e| failed(&e))?;
        return Ok(Box::new(stream));
    }
    let port = address.port.unwrap_or(PORT);
    let addresses = (address.host, port).to_socket_addrs().map_err(|e| {
        Failure::new(
            Reason::HostNotFound,
            format!(
                "{} can't be resolved ({e}): check spec.to.host (--to)",
                address.host
            ),
        )
    })?;
    let mut last = std::io::Error::other("the name has no address");
    for each in addresses {
        match TcpStream::connect_timeout(&each, CONNECT) {
            Ok(stream) => {
                stream
                    .set_read_timeout(Some(WAKE))
                    .map_err(|e| failed(&e))?;
                stream
                    .set_write_timeout(Some(WAKE))
                    .map_err(|e| failed(&e))?;
                stream.set_nodelay(true).map_err(|e| failed(&e))?;
                return secured(address, stream);
            }
            Err(e) => last = e,
        }
    }
    Err(failed(&last))
}

fn secured(address: &Address<'_>, mut stream: TcpStream) -> Result<Box<dyn Duplex>, Failure> {
    let client = tls::client(address.tls, address.authority, address.host)?;
    let Some(mut client) = client else {
        return Ok(Box::new(stream));
    };
    let failed = |e: std::io::Error| {
        Failure::new(
            Reason::TlsFailed,
            format!(
                "TLS with {} failed ({e}): check spec.to.tls (--tls), the CA in its caSecretKeyRef, and that the port speaks TLS",
                address.text()
            ),
        )
    };
    let handshake = stream.set_read_timeout(Some(CONNECT));
    handshake.map_err(failed)?;
    while client.is_handshaking() {
        client.complete_io(&mut stream).map_err(failed)?;
    }
    stream.set_read_timeout(Some(WAKE)).map_err(failed)?;
    Ok(Box::new(rustls::StreamOwned::new(client, stream)))
}

/// The failure behind a refusal, by its first word and what else it says.
fn refused(said: &str, what: &str) -> Failure {
    let word = said.split(' ').next().unwrap_or_default();
    let says = |words: &[&str]| words.iter().any(|w| said.contains(w));
    let (reason, remedy) = if matches!(word, "NOAUTH" | "WRONGPASS")
        || says(&["invalid password", "without any password"])
    {
        (
            Reason::AccessDenied,
            "check user name (default, where there is only a password) and password in the Secret of spec.to.credentialsSecretRef (--secret)",
        )
    } else if word == "NOPERM" {
        (
            Reason::PermissionDenied,
            "grant the user ~* +@connection +restore +select +dbsize +info +function (ACL SETUSER)",
        )
    } else if matches!(word, "MOVED" | "ASK" | "CROSSSLOT" | "CLUSTERDOWN") {
        (
            Reason::RestoreFailed,
            "a cluster is not restored into: name a server without cluster mode",
        )
    } else if word == "READONLY" {
        (
            Reason::RestoreFailed,
            "it is a replica: name the primary with spec.to (--to)",
        )
    } else if matches!(
        word,
        "MISCONF" | "LOADING" | "NOREPLICAS" | "MASTERDOWN" | "BUSY"
    ) {
        (
            Reason::RestoreFailed,
            "mend what it says on the target, then restore again",
        )
    } else if word == "OOM" {
        (Reason::NoSpace, "raise maxmemory of the target")
    } else if word == "BUSYKEY" || says(&["already exists"]) {
        return Failure::occupied(
            Reason::TargetNotEmpty,
            &format!("{what}: the server says: {said}"),
        );
    } else if says(&[
        "Bad data format",
        "payload version",
        "unknown command",
        "Unknown subcommand",
        "unknown subcommand",
        "syntax error",
    ]) {
        (
            Reason::TargetTooOld,
            "the target is older than the server the dump came from, of another maker, or lacks a module it had: restore into one as new, or put dump.rdb on a volume with spec.to.volume (--to-volume)",
        )
    } else if says(&["DB index is out of range", "invalid DB index"]) {
        (
            Reason::NotFound,
            "raise `databases` in the target's configuration",
        )
    } else {
        (Reason::RestoreFailed, "see its message")
    };
    Failure::at(
        exit::SOURCE,
        reason,
        format!("{what}: the server says: {said}: {remedy}"),
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use super::*;

    /// Words of redis-server 7.0 (`shared` in `server.c`, `restoreCommand`).
    #[test]
    fn refusals_have_their_remedy() {
        for (said, reason, remedy) in [
            (
                "NOAUTH Authentication required.",
                "AccessDenied",
                "password in the Secret",
            ),
            (
                "WRONGPASS invalid username-password pair or user is disabled.",
                "AccessDenied",
                "password in the Secret",
            ),
            (
                "ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?",
                "AccessDenied",
                "password",
            ),
            (
                "NOPERM this user has no permissions to run the 'restore' command",
                "PermissionDenied",
                "+restore",
            ),
            ("MOVED 3999 127.0.0.1:6381", "RestoreFailed", "cluster"),
            (
                "READONLY You can't write against a read only replica.",
                "RestoreFailed",
                "primary",
            ),
            (
                "MISCONF Redis is configured to save RDB snapshots",
                "RestoreFailed",
                "mend",
            ),
            (
                "OOM command not allowed when used memory > 'maxmemory'.",
                "NoSpace",
                "maxmemory",
            ),
            (
                "BUSYKEY Target key name already exists.",
                "TargetNotEmpty",
                "set overwrite",
            ),
            (
                "ERR Library 'l' already exists",
                "TargetNotEmpty",
                "set overwrite",
            ),
            ("ERR Bad data format", "TargetTooOld", "older"),
            (
                "ERR DUMP payload version or checksum are wrong",
                "TargetTooOld",
                "older",
            ),
            (
                "ERR unknown command 'FUNCTION', with args beginning with: 'LIST' ",
                "TargetTooOld",
                "older",
            ),
            ("ERR DB index is out of range", "NotFound", "`databases`"),
            ("ERR something", "RestoreFailed", "see its message"),
        ] {
            let failure = refused(said, "database 3");
            assert_eq!(failure.reason, reason, "{said}");
            assert!(
                failure.message.contains(remedy) && failure.message.contains(said),
                "{failure}"
            );
            assert!(failure.message.starts_with("database 3: "), "{failure}");
        }
    }
}
