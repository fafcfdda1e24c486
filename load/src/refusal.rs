//! What a target's refusals mean to a load: what passes by itself, and what a smaller transaction helps against. PURE.

use wire::{Error, ServerError};

/// ER_LOCK_WAIT_TIMEOUT, ER_LOCK_DEADLOCK.
const LOCKED: [u16; 2] = [1205, 1213];
/// A server that shuts down, or ends a connection: ER_SERVER_SHUTDOWN, ER_CONNECTION_KILLED, ER_SESSION_WAS_KILLED,
/// ER_CLIENT_INTERACTION_TIMEOUT.
const ENDING: [u16; 4] = [1053, 1927, 3169, 4031];
/// ER_DISK_FULL, ER_RECORD_FILE_FULL, ER_TEMP_FILE_WRITE_FAILURE.
const FULL: [u16; 3] = [1021, 1114, 1878];
/// What other errors say of a full disk: the number is the operating system's.
const NO_SPACE: [&str; 4] = ["errno: 28", "Errcode: 28", "error 28", "No space left"];
/// ER_TRANS_CACHE_FULL, and ER_RUN_HOOK_ERROR of a group whose transactions have a limit.
const TOO_LARGE: [u16; 2] = [1197, 3100];
/// What Galera says of a transaction above wsrep_max_ws_size.
const WRITE_SET: [&str; 3] = ["writeset size", "Message too long", "error 90"];

fn of_server(e: &Error) -> Option<&ServerError> {
    match e {
        Error::Server(e) => Some(e),
        _ => None,
    }
}

/// Others hold a lock: the transaction may be tried again.
pub(crate) fn is_locked(e: &Error) -> bool {
    e.number().is_some_and(|n| LOCKED.contains(&n))
}

/// Another session uses a table that was to be made, changed or dropped, or a row of it, and did not let it go in time.
#[must_use]
pub fn is_held(e: &Error) -> bool {
    e.number() == Some(LOCKED[0])
}

/// The connection is gone, and may be opened again.
pub(crate) fn is_lost(e: &Error) -> bool {
    let ending = e.number().is_some_and(|n| ENDING.contains(&n));
    (e.is_final() || ending) && !matches!(e, Error::Stopped)
}

/// True if the server has no space for what it was sent.
#[must_use]
pub fn is_full(e: &Error) -> bool {
    let says = |e: &ServerError| NO_SPACE.iter().any(|words| e.text.contains(words));
    of_server(e).is_some_and(|e| FULL.contains(&e.number) || says(e))
}

/// True if the server, or the cluster that it belongs to, allows no transaction of this size.
#[must_use]
pub fn is_too_large(e: &Error) -> bool {
    let says = |e: &ServerError| {
        matches!(e.number, 1105 | 1180) && WRITE_SET.iter().any(|words| e.text.contains(words))
    };
    of_server(e).is_some_and(|e| TOO_LARGE.contains(&e.number) || says(e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_told_apart_as_servers_word_them() {
        let error = |number, text: &str| {
            Error::Server(Box::new(ServerError {
                number,
                state: "HY000".to_owned(),
                text: text.to_owned(),
            }))
        };
        for (number, text, of) in [
            (
                1205,
                "Lock wait timeout exceeded; try restarting transaction",
                "locked",
            ),
            (1053, "Server shutdown in progress", "lost"),
            (1927, "Connection was killed", "lost"),
            (1114, "The table 'orders' is full", "full"),
            (
                1030,
                "Got error 28 \"No space left on device\" from storage engine InnoDB",
                "full",
            ),
            (
                1005,
                "Can't create table `shop`.`t` (errno: 28 \"No space left on device\")",
                "full",
            ),
            (
                3,
                "Error writing file './shop/t.MYD' (Errcode: 28 \"No space left on device\")",
                "full",
            ),
            (
                1197,
                "Multi-statement transaction required more than 'max_binlog_cache_size' bytes of storage; increase this mysqld variable and try again",
                "large",
            ),
            (
                1180,
                "Got error 90 \"Message too long\" during COMMIT",
                "large",
            ),
            (1105, "Maximum writeset size exceeded by 18", "large"),
            (
                3100,
                "Error on observer while running replication hook 'before_commit'.",
                "large",
            ),
            (1180, "Got error 149 during COMMIT", ""),
            (1062, "Duplicate entry '28' for key 'PRIMARY'", ""),
        ] {
            let e = error(number, text);
            let found = [
                (is_locked(&e), "locked"),
                (is_lost(&e), "lost"),
                (is_full(&e), "full"),
                (is_too_large(&e), "large"),
            ];
            let found: Vec<&str> = found.iter().filter(|f| f.0).map(|f| f.1).collect();
            assert_eq!(found.concat(), of, "{text}");
        }
        assert!(is_lost(&Error::Lost(std::io::ErrorKind::BrokenPipe.into())));
        assert!(!is_lost(&Error::Stopped) && !is_full(&Error::Stopped));
    }
}
