//! Failures of a restore into MySQL or MariaDB in the words of its own settings.

use crate::context::Context;
use crate::database::mysql::source;
use crate::failure::Failure;
use crate::process::Ended;
use crate::settings::Source;
use crds::report::{Reason, exit};

/// What whoever restores needs, on the databases it fills.
pub(super) const RIGHTS: &str = "a restore needs CREATE, DROP, ALTER, INSERT, SELECT on the databases it fills, and of CREATE VIEW, TRIGGER, CREATE ROUTINE, ALTER ROUTINE and EVENT what the dump makes";

/// Words of a backup, and those of a restore.
const WORDS: [(&str, &str); 9] = [
    (
        "PASSWORD or spec.source.credentialsSecretRef",
        "spec.to.credentialsSecretRef, --secret",
    ),
    ("HOST and PORT", "spec.to.host and spec.to.port (--to)"),
    ("HOST or spec.source.host", "spec.to.host (--to)"),
    (
        "DATABASES or spec.source.databases",
        "spec.to.database (--database)",
    ),
    ("spec.source.tls", "spec.to.tls"),
    (
        " and in MYSQLDUMP_ARGS or spec.source.extraArgs (--max-allowed-packet=1G)",
        "",
    ),
    (
        "during the dump: run again, away from migrations",
        "during the restore: restore again with overwrite, away from migrations",
    ),
    ("run away from", "restore again with overwrite, away from"),
    (
        "MYSQLDUMP_ARGS or spec.source.extraArgs",
        "the image (spec.image)",
    ),
];

/// The same failure, said of the server that is restored into.
pub(crate) fn of_target(e: Failure) -> Failure {
    let mut message = e.message;
    for (from, to) in WORDS {
        message = message.replace(from, to);
    }
    Failure { message, ..e }
}

/// What a number of the server means where its user is to blame, or the dump; `None` for what a backup meets too.
fn remedy(number: Option<u32>, user: &str) -> Option<(Reason, String)> {
    Some(match number? {
        1227 => (
            Reason::MissingPrivilege,
            format!(
                "user {user:?} may not do what the message says: objects defined by others need SET USER (MariaDB) or SET_ANY_DEFINER (MySQL), or spec.definers Drop (--definers Drop)"
            ),
        ),
        1044 | 1142 | 1143 | 1370 => (
            Reason::MissingPrivilege,
            format!("user {user:?} lacks a privilege: {RIGHTS}"),
        ),
        1418 | 1419 => (
            Reason::MissingPrivilege,
            format!(
                "the server keeps a binary log and lets user {user:?} make no functions or triggers: set its log_bin_trust_function_creators, or restore as a user with SUPER"
            ),
        ),
        1007 | 1050 | 1304 | 1359 | 1537 => (
            Reason::TargetNotEmpty,
            "something of this name is there already: restore under another name (spec.to.database, --database), or drop it".to_owned(),
        ),
        1062 | 1451 | 1452 => (
            Reason::RestoreFailed,
            "a row was refused: another program may write to the target".to_owned(),
        ),
        1115 | 1273 | 1193 | 1286 | 1064 | 1231 | 4161 => (
            Reason::ServerRefused,
            "the server does not take what the dump's server wrote: restore into a server of the same maker and of its version or a newer one".to_owned(),
        ),
        _ => return None,
    })
}

/// What a refusal of the server means that passes once somebody makes room for the dump.
fn lacking(cause: &wire::Error) -> Option<(Reason, &'static str)> {
    if load::is_full(cause) {
        return Some((
            Reason::NoSpace,
            "the server has no space left for what is restored: give the volume of its data (or of its tmpdir) more space, or a table that has a limit a larger one",
        ));
    }
    if load::is_held(cause) {
        return Some((
            Reason::LockWait,
            "other sessions use what is replaced, or hold a transaction that did: SHOW FULL PROCESSLIST shows them. Stop what uses the database, or KILL them, and restore again with overwrite",
        ));
    }
    load::is_too_large(cause).then_some((
        Reason::ServerRefused,
        "a row makes a larger transaction than the server allows: raise max_binlog_cache_size, in a Galera cluster wsrep_max_ws_size, in a group group_replication_transaction_size_limit",
    ))
}

/// The failure of a client that did not end well.
pub(crate) fn explain(client: &str, ended: &Ended, target: &Source) -> Failure {
    let said = ended.messages.iter().rev();
    let number = said.filter_map(|m| source::number(m)).next();
    let Some((reason, remedy)) = remedy(number, &target.username) else {
        return of_target(source::explain(client, ended, target));
    };
    let said = ended
        .messages
        .iter()
        .rev()
        .find(|m| source::number(m).is_some());
    Failure::at(
        exit::SOURCE,
        reason,
        format!(
            "{remedy}; {client} ended with {} and said: {}",
            ended.status_text(),
            said.map_or("nothing", String::as_str)
        ),
    )
}

/// The failure of a load by sessions of our own.
pub(crate) fn of_load(e: load::Error, target: &Source, context: &Context) -> Failure {
    let failure = match e {
        load::Error::Wire { doing, cause } => {
            let known = lacking(&cause).map(|(reason, remedy)| (reason, remedy.to_owned()));
            let number = cause.number().map(u32::from);
            match known.or_else(|| remedy(number, &target.username)) {
                Some((reason, remedy)) => {
                    Failure::at(exit::SOURCE, reason, format!("{doing}: {remedy}; {cause}"))
                }
                None => {
                    let failure = of_target(source::failure_of(&cause, target));
                    Failure {
                        message: format!("{doing}: {}", failure.message),
                        ..failure
                    }
                }
            }
        }
        load::Error::Source { doing, cause } => cause
            .downcast::<Failure>()
            .unwrap_or_else(|cause| Failure::new(Reason::Damaged, format!("{doing}: {cause}"))),
        load::Error::Forgotten(text) => Failure::new(Reason::ConnectionLost, text),
        load::Error::Form(text) => Failure::new(Reason::Damaged, text),
        load::Error::Journal(text) => Failure::occupied(Reason::TargetNotEmpty, &text),
        other => Failure::new(Reason::RestoreIncomplete, other.to_string()),
    };
    source::scrubbed(failure, context)
}
