//! What a client's error number means, and what helps.

use crate::failure::Failure;
use crate::process::Ended;
use crate::settings::Source;
use crate::stall;
use crds::report::{Reason, exit};

/// Where the server of `source` is.
pub(crate) fn place(source: &Source) -> String {
    match &source.socket {
        Some(socket) => format!("socket {socket}"),
        None => format!("{}:{}", source.host, source.port),
    }
}

/// The failure of a client that did not end well.
pub fn explain(client: &str, ended: &Ended, source: &Source) -> Failure {
    let place = place(source);
    if let Some(limit) = ended.stalled {
        return stall::explain(client, &place, limit);
    }
    let said = ended
        .messages
        .iter()
        .rev()
        .find(|m| number(m).is_some())
        .or_else(|| ended.messages.last());
    let Some(said) = said else {
        return silent(client, ended);
    };
    let (reason, remedy) = match meaning(number(said), said, &place, source) {
        Some(known) => known,
        None if said.contains("unknown option") || said.contains("unknown variable") => (
            Reason::UnknownOption,
            format!(
                "{client} does not know an argument: correct MYSQLDUMP_ARGS or spec.source.extraArgs"
            ),
        ),
        None => (Reason::ClientFailed, "the client failed".to_owned()),
    };
    Failure::at(
        exit::SOURCE,
        reason,
        format!(
            "{remedy}; {client} ended with {} and said: {said}",
            ended.status_text()
        ),
    )
}

/// The failure of a connection of our own. What the server said is scrubbed by who shows it.
pub(crate) fn of_session(e: &wire::Error, source: &Source) -> Failure {
    let place = place(source);
    // The numbers of clients for what they meet themselves.
    let number = match e {
        wire::Error::Server(said) => Some(said.number.into()),
        wire::Error::UnknownHost { .. } => Some(2005),
        wire::Error::Unreachable { .. } => Some(2003),
        wire::Error::Lost(_) | wire::Error::Stopped => Some(2013),
        wire::Error::TooLarge { .. } => Some(2020),
        wire::Error::Tls(_) => Some(2026),
        wire::Error::Plugin(_) | wire::Error::PasswordKept(_) => Some(2059),
        _ => None,
    };
    let said = e.to_string();
    let (reason, remedy) = match (e, meaning(number, &said, &place, source)) {
        (wire::Error::Stalled(limit), _) => {
            return stall::explain("the connection", &place, *limit);
        }
        (wire::Error::NoTls, _) => (
            Reason::TlsFailed,
            format!(
                "spec.source.tls.mode is {:?}: set TLS up on the server, or lower the mode",
                source.tls
            ),
        ),
        (_, Some(known)) => known,
        (wire::Error::Malformed(_), _) => (
            Reason::ConnectionRefused,
            format!("what answers at {place} is no MySQL or MariaDB server: check HOST and PORT"),
        ),
        _ => (
            Reason::ServerRefused,
            format!("the server at {place} refuses what it is asked before a dump"),
        ),
    };
    Failure::at(exit::SOURCE, reason, format!("{remedy}; {said}"))
}

/// What an error number means, and what helps. `said` are the words around it.
fn meaning(
    number: Option<u32>,
    said: &str,
    place: &str,
    source: &Source,
) -> Option<(Reason, String)> {
    let user = &source.username;
    Some(match number {
        Some(1045 | 1698) => (
            Reason::AccessDenied,
            format!(
                "access denied for user {user:?} at {place}: check the password's Secret and key (PASSWORD or spec.source.credentialsSecretRef) and that the user may log in from this pod's address"
            ),
        ),
        Some(1044 | 1142 | 1143 | 1227 | 1370) => (
            Reason::MissingPrivilege,
            format!("user {user:?} lacks a privilege: grant what the message names (SELECT, SHOW VIEW, TRIGGER, EVENT; RELOAD and PROCESS for some clients)"),
        ),
        Some(1049) => (
            Reason::UnknownDatabase,
            "a database does not exist: correct DATABASES or spec.source.databases".to_owned(),
        ),
        Some(1146 | 1051) => (
            Reason::TableVanished,
            "a table was dropped or renamed during the dump: run again, away from migrations".to_owned(),
        ),
        Some(1412) => (
            Reason::TableAltered,
            "a table was altered during the dump, so no consistent copy exists: run again, away from migrations".to_owned(),
        ),
        Some(1449 | 1356) => (
            Reason::InvalidView,
            "a view or program refers to a definer, table or function that does not exist: repair or drop it".to_owned(),
        ),
        Some(2005) => (
            Reason::UnknownHost,
            format!("host {:?} can't be resolved: correct HOST or spec.source.host (name.namespace.svc for a Service)", source.host),
        ),
        Some(2002 | 2003) => refused(said, place),
        Some(2006 | 2012 | 2013 | 2055 | 1158..=1161) if is_handshake(said) => (
            Reason::ConnectionLost,
            format!("the connection to {place} was cut before the login: look whether a proxy, a NetworkPolicy or a mesh closes it, and whether the server starts, refuses this host or has reached max_connections"),
        ),
        Some(number) if is_lost(number) => (
            Reason::ConnectionLost,
            format!("the connection to {place} was lost: look at the server's log (restart, KILL, timeouts, memory); if it always breaks at the same row, raise max-allowed-packet"),
        ),
        Some(2020 | 1153) => (
            Reason::PacketTooLarge,
            "a row is larger than max-allowed-packet: raise it on the server and in MYSQLDUMP_ARGS or spec.source.extraArgs (--max-allowed-packet=1G)".to_owned(),
        ),
        Some(2026) => (
            Reason::TlsFailed,
            "the TLS connection failed: the server must offer TLS with a certificate of the CA in spec.source.tls.caSecretKeyRef that names the host (MariaDB's client asks for the name with VerifyCA too); or lower spec.source.tls.mode".to_owned(),
        ),
        Some(3159 | 1130) => (
            Reason::AccessDenied,
            format!("the server at {place} does not admit this host or a connection without TLS: adapt the user's host part or spec.source.tls.mode"),
        ),
        Some(2059 | 2061 | 1251 | 1524) => (
            Reason::AuthPluginMissing,
            "the user's authentication plugin is not known here: use an image whose client has it, or another plugin for the user".to_owned(),
        ),
        Some(1205 | 1213) => (
            Reason::LockWait,
            "a lock was not granted in time: run away from long transactions and migrations".to_owned(),
        ),
        Some(3024 | 1969) => (
            Reason::QueryTimeout,
            "the server ended a query by its own limit (max_statement_time, max_execution_time): raise it for this user".to_owned(),
        ),
        Some(1040 | 1203 | 1226) => (
            Reason::TooManyConnections,
            "the server or user has no connection free: raise max_connections or run at another time".to_owned(),
        ),
        // MariaDB's and MySQL's number.
        Some(4151 | 3118 | 3955) => (
            Reason::AccountLocked,
            format!("the account of user {user:?} is locked: ALTER USER … ACCOUNT UNLOCK, or name another user"),
        ),
        Some(1129) => (
            Reason::AccessDenied,
            format!("the server at {place} has blocked this host after too many failed connections: FLUSH HOSTS there"),
        ),
        Some(1820 | 1862) => (
            Reason::PasswordExpired,
            format!("the password of user {user:?} has expired: set a new one"),
        ),
        Some(1290 | 1792) => (
            Reason::ServerRefused,
            "the server refuses the statement in its present mode (read-only options)".to_owned(),
        ),
        Some(28) => (
            Reason::NoSpace,
            "the server or client has no disk space left (errno 28): free some".to_owned(),
        ),
        _ if said.contains("insufficient privileges") => (
            Reason::MissingPrivilege,
            format!("user {user:?} may not read the body of a routine: grant SELECT on mysql.proc (MariaDB, MySQL 5.7) or SHOW_ROUTINE (MySQL 8)"),
        ),
        _ => return None,
    })
}

/// The connection is gone or never was, by the client's error number: what was asked has no answer.
pub(super) fn is_lost(number: u32) -> bool {
    matches!(
        number,
        2002 | 2003 | 2006 | 2012 | 2013 | 2055 | 1927 | 1053
    )
}

/// What a client says of a connection that ends before the server's greeting or its answer to the login.
fn is_handshake(said: &str) -> bool {
    let lower = said.to_lowercase();
    [
        "handshake",
        "initial communication packet",
        "authorization packet",
        "final connect information",
        "connection settings to server",
    ]
    .iter()
    .any(|w| lower.contains(w))
}

fn refused(said: &str, place: &str) -> (Reason, String) {
    let lower = said.to_lowercase();
    // The number in parentheses is errno: 111 refused, 110 timed out, 113 no route.
    if lower.contains("unknown") && lower.contains("host")
        || said.contains("(-2)")
        || said.contains("(-3)")
        || said.contains("(-5)")
    {
        return (
            Reason::UnknownHost,
            format!(
                "the host of {place} can't be resolved: correct HOST or spec.source.host (name.namespace.svc for a Service)"
            ),
        );
    }
    if said.contains("(110)") || lower.contains("timed out") {
        return (
            Reason::ConnectTimeout,
            format!("no answer from {place}: check address, NetworkPolicy and firewall"),
        );
    }
    (
        Reason::ConnectionRefused,
        format!(
            "no connection to {place}: check HOST and PORT, and that the server runs and listens there"
        ),
    )
}

fn silent(client: &str, ended: &Ended) -> Failure {
    let status = ended.status_text();
    if ended.status.code().is_some() {
        return Failure::new(
            Reason::ClientFailed,
            format!("{client} ended with {status} and said nothing"),
        );
    }
    Failure::new(
        Reason::ClientKilled,
        format!(
            "{client} was ended by {status}: if that is 9, raise the container's memory limit (spec.resources)"
        ),
    )
}

/// The error number in a client's message: `Got error: 1045:`, `Error 2013:`, `ERROR 1044 (42000)`,
/// `… (1227)`, `errno 28`.
pub(crate) fn number(message: &str) -> Option<u32> {
    let lower = message.to_lowercase();
    let first = ["error: ", "error ", "errno: ", "errno "]
        .iter()
        .flat_map(|marker| lower.match_indices(marker))
        // `…, system error: 104` is the operating system's, beside the client's own.
        .filter(|(at, _)| !lower[..*at].ends_with("system "))
        .filter_map(|(at, marker)| Some((at, leading(&lower[at + marker.len()..])?)))
        .min();
    if let Some((_, number)) = first {
        return Some(number);
    }
    // `Couldn't execute 'FLUSH TABLES': Access denied; … (1227)`
    lower
        .rsplit_once('(')
        .and_then(|(_, rest)| rest.split_once(')'))
        .and_then(|(inside, _)| inside.parse().ok())
        .filter(|n| *n >= 1000)
}

fn leading(text: &str) -> Option<u32> {
    let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn numbers_are_found_in_the_words_of_both_flavours() {
        for (message, expected) in [
            (
                "mariadb-dump: Got error: 1045: \"Access denied for user 'bk'@'localhost' (using password: YES)\" when trying to connect",
                Some(1045),
            ),
            (
                "mysqldump: Got error: 2003: Can't connect to MySQL server on 'db:3306' (111) when trying to connect",
                Some(2003),
            ),
            (
                "mysqldump: Error 2013: Lost connection to server during query when dumping table `big` at row: 5",
                Some(2013),
            ),
            (
                "ERROR 1044 (42000) at line 1: Access denied for user 'bk'@'%' to database 'shop'",
                Some(1044),
            ),
            (
                "mysqldump: Couldn't execute 'FLUSH TABLES': Access denied; you need (at least one of) the RELOAD privilege(s) for this operation (1227)",
                Some(1227),
            ),
            ("mysqldump: Got errno 28 on write", Some(28)),
            (
                "mysqldump: [Warning] Using a password on the command line interface can be insecure.",
                None,
            ),
            ("mariadb-dump: unknown variable 'set-gtid-purged=OFF'", None),
            (
                "ERROR 2013 (HY000): Lost connection to server at 'handshake: reading initial communication packet', system error: 104",
                Some(2013),
            ),
            (
                "mysqldump: Got error: 2013: Lost connection to MySQL server at 'reading authorization packet', system error: 0 when trying to connect",
                Some(2013),
            ),
        ] {
            assert_eq!(number(message), expected, "{message}");
        }
    }

    /// Messages as MariaDB 10.11 and MySQL 9 give them.
    #[test]
    fn p6_words_name_the_cause() {
        let source = crate::settings::Settings::parse(
            &[("HOST", "db"), ("USERNAME", "bk")]
                .map(|(k, v)| (k.to_owned(), v.to_owned()))
                .into(),
            &|_| Err("no file".into()),
        )
        .source
        .unwrap();
        let status = std::os::unix::process::ExitStatusExt::from_raw(2 << 8);
        for (said, reason, word) in [
            (
                "ERROR 2013 (HY000): Lost connection to server at 'handshake: reading initial communication packet', system error: 104",
                "ConnectionLost",
                "before the login",
            ),
            (
                "ERROR 2013 (HY000): Lost connection to MySQL server at 'reading authorization packet', system error: 104",
                "ConnectionLost",
                "before the login",
            ),
            (
                "mysqldump: Error 2013: Lost connection to server during query when dumping table `big` at row: 5",
                "ConnectionLost",
                "at the same row",
            ),
            (
                "ERROR 4151 (HY000): Access denied, this account is locked",
                "AccountLocked",
                "ACCOUNT UNLOCK",
            ),
            (
                "ERROR 3118 (HY000): Access denied for user 'bk'@'localhost'. Account is locked.",
                "AccountLocked",
                "ACCOUNT UNLOCK",
            ),
            (
                "ERROR 1129 (HY000): Host '10.0.0.1' is blocked because of many connection errors",
                "AccessDenied",
                "FLUSH HOSTS",
            ),
        ] {
            let ended = Ended {
                status,
                messages: vec![said.to_owned()],
                stalled: None,
            };
            let failure = explain("mariadb", &ended, &source);
            assert_eq!(failure.reason, reason, "{said}");
            assert!(failure.message.contains(word), "{failure}");
        }
        let ended = Ended {
            status,
            messages: vec![],
            stalled: Some(std::time::Duration::from_secs(300)),
        };
        let failure = explain("mariadb", &ended, &source);
        assert_eq!(failure.reason, "SourceStalled");
        assert!(
            failure.message.contains("db:3306") && failure.message.contains("5m"),
            "{failure}"
        );
    }
}
