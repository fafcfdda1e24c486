//! Failures of the clients of a Backup's databases, by what they said.

use crds::report::{Reason, exit};

use crate::failure::Failure;
use crate::process::Ended;
use crate::stall;

/// The failure of a client that ended badly, by what it said.
pub(crate) fn explain(name: &str, ended: &Ended) -> Failure {
    if let Some(limit) = ended.stalled {
        return stall::explain(name, "config.host", limit);
    }
    let said = ended.messages.join(" / ");
    let lower = said.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|w| lower.contains(w));
    let (reason, remedy) = if says(&[
        "password authentication failed",
        "wrongpass",
        "noauth",
        "access denied",
        "authentication failed",
        "invalid username-password",
        "unauthorized",
    ]) {
        (
            Reason::AccessDenied,
            "check the user name and the password of the Database",
        )
    } else if says(&[
        "could not translate host name",
        "name or service not known",
        "could not resolve",
        "no such host",
        "temporary failure in name resolution",
    ]) {
        (Reason::HostNotFound, "check config.host of the Database")
    } else if says(&["row-level security policy"]) {
        (
            Reason::RowsHidden,
            "policies would hide rows from the user, so nothing is dumped: ALTER ROLE ... BYPASSRLS, or dump as a superuser or the tables' owner",
        )
    } else if says(&["does not exist", "unknown database"]) {
        (
            Reason::NotFound,
            "check config.database and config.tables of the Database",
        )
    } else if says(&[
        "connection refused",
        "could not connect",
        "timeout",
        "timed out",
        "no route to host",
        "deadline exceeded",
        "connection to server",
    ]) {
        (
            Reason::ConnectionFailed,
            "check config.host and config.port, that the server runs, and network policies",
        )
    } else if says(&["permission denied"]) {
        (
            Reason::PermissionDenied,
            "grant the user what the message names",
        )
    } else if says(&[
        "server version mismatch",
        "aborting because of server version",
    ]) {
        (
            Reason::ClientTooOld,
            "set spec.job.clientImage to an image with a client as new as the server",
        )
    } else if says(&["no space left"]) {
        (
            Reason::NoSpace,
            "raise spec.job.workdirSizeLimit or free space on the node",
        )
    } else {
        (Reason::DumpFailed, "see its message")
    };
    let said = if said.is_empty() {
        "it said nothing".to_owned()
    } else {
        said
    };
    Failure::at(
        exit::SOURCE,
        reason,
        format!(
            "{name} ended with {}: {said}: {remedy}",
            ended.status_text()
        ),
    )
}
