//! What the server, or the way to it, answered instead of doing as asked.

use kube::core::Status;

use super::helper::{self, Helper, chain};
use crate::error::{Error, Kind as Exit};
use crate::kind::Kind;

/// What was asked, for the message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call<'a> {
    /// The API verb, such as `patch`.
    pub(crate) verb: &'a str,
    /// Name of the resource, such as `pods`.
    pub(crate) resource: &'a str,
    /// The kind, if it is one of ours.
    pub(crate) kind: Option<&'static Kind>,
    /// The namespace, or none for all.
    pub(crate) namespace: Option<&'a str>,
}

impl Call<'_> {
    /// The resource, with its group where another group has one of the same name.
    fn named(&self) -> String {
        self.kind
            .map_or_else(|| self.resource.to_owned(), Kind::resource)
    }
}

/// Where the request went, for the message.
#[derive(Clone, Debug, Default)]
pub(crate) struct Place {
    /// Host and port of the API server.
    pub(crate) server: String,
    /// Name of the context.
    pub(crate) context: String,
    /// The program that gets credentials.
    pub(crate) helper: Helper,
}

/// The error of a failed request, with its exit status.
pub(crate) fn explain(error: &kube::Error, call: Call<'_>, place: &Place) -> Error {
    if let Some(login) = helper::login(error) {
        let (why, hint) = helper::words(login, &place.helper);
        return Error::new(
            Exit::Denied,
            format!(
                "You must be logged in to the server ({why}; context {:?})",
                place.context
            ),
        )
        .hint(hint);
    }
    match error {
        kube::Error::Api(status) => refused(status, call, place),
        kube::Error::SerdeError(e) => Error::new(
            Exit::Other,
            format!(
                "the server's answer can't be read: {e} (context {:?})",
                place.context
            ),
        ),
        other => unreachable(&chain(other), place),
    }
}

/// True if the server has no such resource, as opposed to no such object.
pub(crate) fn is_missing_resource(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404 && !names_object(status))
}

/// True if the server has no such object.
pub(crate) fn is_missing_object(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404 && names_object(status))
}

fn names_object(status: &Status) -> bool {
    status.details.as_ref().is_some_and(|d| !d.name.is_empty())
}

/// The namespace that a request into it found missing.
fn absent_namespace(status: &Status) -> Option<&str> {
    let details = status.details.as_ref()?;
    (details.kind == "namespaces").then_some(details.name.as_str())
}

/// The namespace is not there.
pub(crate) fn no_namespace(name: &str) -> Error {
    Error::verbatim(
        Exit::NotFound,
        format!("Error from server (NotFound): namespace {name:?} not found"),
    )
    .hint(format!(
        "kubectl create namespace {name}, or correct -n: kubectl get namespaces"
    ))
}

fn refused(status: &Status, call: Call<'_>, place: &Place) -> Error {
    match (status.code, call.kind) {
        (404, _) if absent_namespace(status).is_some() => {
            no_namespace(absent_namespace(status).unwrap_or_default())
        }
        (404, Some(kind)) if !names_object(status) => not_installed(kind, place),
        (404, _) => {
            let at = call
                .namespace
                .map(|n| format!(" in namespace {n:?}"))
                .unwrap_or_default();
            Error::verbatim(
                Exit::NotFound,
                format!("Error from server (NotFound): {}{at}", status.message),
            )
        }
        (401, _) => Error::new(
            Exit::Denied,
            format!(
                "You must be logged in to the server (Unauthorized; context {:?})",
                place.context
            ),
        ),
        (403, _) => {
            let at = call
                .namespace
                .map_or("-A".to_owned(), |n| format!("-n {n}"));
            Error::verbatim(
                Exit::Denied,
                format!("Error from server (Forbidden): {}", status.message),
            )
            .hint(format!(
                "kubectl auth can-i {} {} {at}",
                call.verb,
                call.named()
            ))
        }
        (409, _) if status.reason == "Conflict" => Error::verbatim(
            Exit::Other,
            format!("Error from server (Conflict): {}", status.message),
        )
        .hint("nothing was written; run the command again"),
        _ => Error::verbatim(Exit::Other, denial(status)),
    }
}

/// The server's own words, several causes one a line.
fn denial(status: &Status) -> String {
    let reason = if status.reason.is_empty() || status.reason.contains(' ') {
        format!("HTTP {}", status.code)
    } else {
        status.reason.clone()
    };
    let causes = status
        .details
        .as_ref()
        .map(|d| d.causes.as_slice())
        .unwrap_or_default();
    let mut text = format!("Error from server ({reason}): {}", status.message.trim());
    if causes.len() > 1 {
        for cause in causes {
            text.push_str(&format!("\n* {}: {}", cause.field, cause.message));
        }
    }
    text
}

/// The kind is not there.
pub(crate) fn not_installed(kind: &Kind, place: &Place) -> Error {
    Error::new(
        Exit::NotInstalled,
        format!(
            "{} is not installed in this cluster (no resource {:?} in group {:?}). Install the operator, or check the context: current {:?}",
            kind.kind, kind.plural, kind.group, place.context
        ),
    )
    .hint("kubectl config get-contexts")
}

fn unreachable(cause: &str, place: &Place) -> Error {
    let refused = cause.to_ascii_lowercase().contains("connection refused");
    let text = if refused {
        format!(
            "The connection to the server {} was refused - did you specify the right host or port? (context {:?})",
            place.server, place.context
        )
    } else {
        format!(
            "Unable to connect to the server {}: {cause} (context {:?})",
            place.server, place.context
        )
    };
    Error::verbatim(Exit::Unreachable, text)
}
