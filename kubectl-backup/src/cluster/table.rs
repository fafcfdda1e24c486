//! Lists as the server draws them: the cells of the printer columns, in chunks.

use std::collections::BTreeMap;

use futures::StreamExt;
use futures::stream::BoxStream;
use kube::api::DynamicObject;
use kube::core::{Status, WatchEvent};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Cluster;
use super::fail::{Call, is_missing_resource};
use crate::error::{Error, Kind as Exit, Result};
use crate::kind::Kind;

/// Asks for a Table; a server that has none answers with an error of its own.
const ACCEPT: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

/// Which objects.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query {
    /// Namespace; none for all.
    pub(crate) namespace: Option<String>,
    /// Label selector.
    pub(crate) labels: Option<String>,
    /// Field selector.
    pub(crate) fields: Option<String>,
    /// Objects a chunk; 0 for all at once.
    pub(crate) chunk: u32,
    /// Rows carry the labels of their objects.
    pub(crate) with_labels: bool,
}

/// A Table of meta.k8s.io/v1.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ServerTable {
    /// Continue token and version.
    pub(crate) metadata: TableMeta,
    /// Columns; only in the first event of a watch.
    pub(crate) column_definitions: Vec<ColumnDefinition>,
    /// Rows.
    pub(crate) rows: Vec<ServerRow>,
}

/// Metadata of a list.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct TableMeta {
    /// Token of the next chunk.
    #[serde(rename = "continue")]
    pub(crate) continue_: String,
    /// Version to watch from.
    pub(crate) resource_version: String,
}

/// A column.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct ColumnDefinition {
    /// Its title.
    pub(crate) name: String,
}

/// A row.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ServerRow {
    /// Scalars, one a column.
    pub(crate) cells: Vec<Value>,
    /// Metadata, if asked for.
    pub(crate) object: Option<RowObject>,
}

/// The object of a row.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct RowObject {
    /// Its metadata.
    pub(crate) metadata: RowMeta,
}

/// What is read of a row's metadata.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct RowMeta {
    /// Namespace.
    pub(crate) namespace: String,
    /// Labels.
    pub(crate) labels: BTreeMap<String, String>,
    /// Version.
    pub(crate) resource_version: String,
}

/// What became of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// It is new, or was there when the watch began.
    Added,
    /// It changed.
    Modified,
    /// It is gone.
    Deleted,
}

impl Change {
    /// The word kubectl has for it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

/// A change seen by a watch.
#[derive(Clone, Debug)]
pub(crate) enum Event<T> {
    /// Rows or an object, and what became of them.
    Seen(Change, T),
    /// The version is too old: list again.
    Expired,
}

impl Query {
    /// Path and query of one chunk.
    fn uri(&self, kind: &Kind, object: &str, more: &[(&str, &str)]) -> String {
        let chunk = self.chunk.to_string();
        let mut pairs = vec![("includeObject", object)];
        pairs.extend(self.labels.as_deref().map(|l| ("labelSelector", l)));
        pairs.extend(self.fields.as_deref().map(|f| ("fieldSelector", f)));
        if self.chunk > 0 && !more.iter().any(|(key, _)| *key == "watch") {
            pairs.push(("limit", &chunk));
        }
        pairs.extend(more);
        let query: Vec<String> = pairs
            .iter()
            .map(|(key, value)| format!("{key}={}", encode(value)))
            .collect();
        format!(
            "{}?{}",
            kind.path(self.namespace.as_deref()),
            query.join("&")
        )
    }

    /// Rows carry no namespace unless their metadata is asked for.
    fn include(&self) -> &'static str {
        if self.namespace.is_some() && !self.with_labels {
            "None"
        } else {
            "Metadata"
        }
    }
}

/// Percent-encodes a query value.
fn encode(value: &str) -> String {
    value
        .bytes()
        .map(|b| match b {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                char::from(b).to_string()
            }
            b => format!("%{b:02X}"),
        })
        .collect()
}

impl Cluster {
    /// All rows of a kind; `None` if the kind is not installed.
    ///
    /// A chunk whose token has expired makes the list start again: what came before may be
    /// out of date by then.
    ///
    /// # Errors
    /// What the server refused.
    pub(crate) async fn table(
        &self,
        kind: &'static Kind,
        query: &Query,
    ) -> Result<Option<ServerTable>> {
        let mut restarts = 0;
        'list: loop {
            // Chunks are read while the next one is on its way.
            let mut reading = vec![];
            let mut token = String::new();
            loop {
                let more: Vec<(&str, &str)> = if token.is_empty() {
                    vec![]
                } else {
                    vec![("continue", token.as_str())]
                };
                let uri = query.uri(kind, query.include(), &more);
                let text = match self.client.request_text(request(&uri, ACCEPT)?).await {
                    Ok(text) => text,
                    Err(e) if is_missing_resource(&e) => return Ok(None),
                    Err(kube::Error::Api(status)) if status.code == 410 && restarts < 5 => {
                        restarts += 1;
                        continue 'list;
                    }
                    Err(e) => return Err(self.explain(&e, call(kind, query))),
                };
                let early = early_token(&text);
                reading.push(tokio::task::spawn_blocking(move || read(&text)));
                if let Some(early) = early {
                    token = early;
                    continue;
                }
                let mut all: Option<ServerTable> = None;
                for part in std::mem::take(&mut reading) {
                    let part = part.await.map_err(|e| Error::new(Exit::Other, e))??;
                    match &mut all {
                        Some(all) => {
                            all.rows.extend(part.rows);
                            all.metadata = part.metadata;
                        }
                        None => all = Some(part),
                    }
                }
                token = match &all {
                    Some(all) => all.metadata.continue_.clone(),
                    None => String::new(),
                };
                if token.is_empty() {
                    return Ok(all);
                }
                reading.extend(all.map(|all| tokio::task::spawn_blocking(move || Ok(all))));
            }
        }
    }

    /// Changes of a kind's rows after `version`, until the server ends the stream.
    ///
    /// # Errors
    /// What the server refused.
    pub(crate) async fn watch_table(
        &self,
        kind: &'static Kind,
        query: &Query,
        version: &str,
    ) -> Result<BoxStream<'static, Result<Event<ServerTable>>>> {
        self.watch(kind, query, version, ACCEPT).await
    }

    /// Changes of a kind's objects after `version`, until the server ends the stream; version
    /// `0` begins with every object there is.
    ///
    /// # Errors
    /// What the server refused.
    pub(crate) async fn watch_objects(
        &self,
        kind: &'static Kind,
        query: &Query,
        version: &str,
    ) -> Result<BoxStream<'static, Result<Event<DynamicObject>>>> {
        self.watch(kind, query, version, "application/json").await
    }

    async fn watch<T: Clone + DeserializeOwned + Send + 'static>(
        &self,
        kind: &'static Kind,
        query: &Query,
        version: &str,
        accept: &str,
    ) -> Result<BoxStream<'static, Result<Event<T>>>> {
        let uri = query.uri(
            kind,
            "Metadata",
            &[("watch", "true"), ("resourceVersion", version)],
        );
        let opened = self
            .patient
            .request_events::<T>(request(&uri, accept)?)
            .await;
        let events = match opened {
            Ok(events) => events,
            Err(kube::Error::Api(status)) if status.code == 410 => {
                return Ok(futures::stream::iter([Ok(Event::Expired)]).boxed());
            }
            Err(e) => return Err(self.explain(&e, call(kind, query))),
        };
        let events = events.filter_map(|event| {
            std::future::ready(match event {
                Ok(WatchEvent::Added(seen)) => Some(Ok(Event::Seen(Change::Added, seen))),
                Ok(WatchEvent::Modified(seen)) => Some(Ok(Event::Seen(Change::Modified, seen))),
                Ok(WatchEvent::Deleted(seen)) => Some(Ok(Event::Seen(Change::Deleted, seen))),
                Ok(WatchEvent::Error(status)) => Some(ended(&status)),
                Ok(WatchEvent::Bookmark(_)) => None,
                // A cut stream is no failure of the list; the caller opens it again.
                Err(_) => Some(Ok(Event::Expired)),
            })
        });
        Ok(events.boxed())
    }
}

fn ended<T>(status: &Status) -> Result<Event<T>> {
    if status.code == 410 {
        return Ok(Event::Expired);
    }
    Err(Error::verbatim(
        Exit::Other,
        format!("Error from server ({}): {}", status.reason, status.message),
    ))
}

/// The continue token, where it stands before the rows, as the API server writes it.
fn early_token(text: &str) -> Option<String> {
    let head = text.get(..text.find("\"columnDefinitions\"")?)?;
    let (_, rest) = head.split_once("\"continue\":\"")?;
    let token = rest.split('"').next().filter(|t| !t.is_empty())?;
    (!token.contains('\\')).then(|| token.to_owned())
}

fn read(text: &str) -> Result<ServerTable> {
    serde_json::from_str(text).map_err(|e| {
        Error::new(
            Exit::Other,
            format!("the server's answer can't be read: {e}"),
        )
    })
}

fn call<'a>(kind: &'static Kind, query: &'a Query) -> Call<'a> {
    Call {
        verb: "list",
        resource: kind.plural,
        kind: Some(kind),
        namespace: query.namespace.as_deref(),
    }
}

fn request(uri: &str, accept: &str) -> Result<http::Request<Vec<u8>>> {
    http::Request::get(uri)
        .header(http::header::ACCEPT, accept)
        .body(vec![])
        .map_err(|e| Error::new(Exit::Other, format!("{uri}: {e}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_before_the_rows() {
        let text = r#"{"kind":"Table","metadata":{"resourceVersion":"1","continue":"abc","remainingItemCount":5},"columnDefinitions":[],"rows":[]}"#;
        assert_eq!(early_token(text).as_deref(), Some("abc"));
        for none in [
            r#"{"metadata":{"continue":""},"columnDefinitions":[]}"#,
            r#"{"columnDefinitions":[],"metadata":{"continue":"abc"}}"#,
            r#"{"metadata":{"continue":"a\"b"},"columnDefinitions":[]}"#,
            "",
        ] {
            assert_eq!(early_token(none), None, "{none}");
        }
    }
}
