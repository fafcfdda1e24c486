//! Failures of a restore into MySQL or MariaDB in the words of its own settings.

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

/// The failure of a client that did not end well.
pub(crate) fn explain(client: &str, ended: &Ended, target: &Source) -> Failure {
    let said = ended.messages.iter().rev();
    let number = said.filter_map(|m| source::number(m)).next();
    let user = &target.username;
    let (reason, remedy) = match number {
        Some(1227) => (
            Reason::MissingPrivilege,
            format!(
                "user {user:?} may not do what the message says: objects defined by others need SET USER (MariaDB) or SET_ANY_DEFINER (MySQL), or spec.definers Drop (--definers Drop)"
            ),
        ),
        Some(1044 | 1142 | 1143 | 1370) => (
            Reason::MissingPrivilege,
            format!("user {user:?} lacks a privilege: {RIGHTS}"),
        ),
        Some(1418 | 1419) => (
            Reason::MissingPrivilege,
            format!(
                "the server keeps a binary log and lets user {user:?} make no functions or triggers: set its log_bin_trust_function_creators, or restore as a user with SUPER"
            ),
        ),
        Some(1007 | 1050 | 1304 | 1359 | 1537) => (
            Reason::TargetNotEmpty,
            "something of this name is there already: restore under another name (spec.to.database, --database), or drop it".to_owned(),
        ),
        Some(1062 | 1451 | 1452) => (
            Reason::RestoreFailed,
            "a row was refused: another program may write to the target".to_owned(),
        ),
        Some(1115 | 1273 | 1193 | 1286 | 1064 | 1231 | 4161) => (
            Reason::ServerRefused,
            "the server does not take what the dump's server wrote: restore into a server of the same maker and of its version or a newer one".to_owned(),
        ),
        _ => return of_target(source::explain(client, ended, target)),
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
