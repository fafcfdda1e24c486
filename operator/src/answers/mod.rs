//! The API server's answers in bounded memory, whatever the objects hold: the one way in for lists,
//! watches, reads and answers to writes.
//!
//! A list is asked for in pages of as many objects as fit into [`PAGE`]; one that turns out larger is
//! dropped and asked for again, smaller. Objects are cut ([`cut`]) before anything is made of them, and
//! only a few large texts are held at a time.

mod cut;
mod lines;
mod pages;
pub(crate) mod span;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use axum::body::Body as Answer;
use bytes::Bytes;
use futures::StreamExt as _;
use http::request::Parts;
use http::{Method, Request, Response, Uri, header};
use kube::Client;
use kube::client::Body;
use thiserror::Error;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use self::cut::{Kinds, List};
pub(crate) use self::cut::{MOST, review};
use self::pages::{PAGE, Pages};
use self::span::Malformed;

/// Most bytes of a list that is asked for as a whole, after it was cut.
const WHOLE: usize = 8 << 20;
/// Most bytes of one object, or of an event of a watch. An API server stores no larger ones.
const OBJECT: usize = 16 << 20;
/// A text beyond this is large: few of them are held at a time.
const LARGE: usize = 256 * 1024;
/// Large texts that are held at a time.
const AT_ONCE: usize = 4;

/// Why an answer is no use.
#[derive(Debug, Error)]
pub(crate) enum AnswerError {
    /// The request failed.
    #[error(transparent)]
    Client(#[from] kube::Error),
    /// The connection broke.
    #[error("the answer broke off")]
    Broken(#[source] axum::Error),
    /// More than is ever read.
    #[error("the answer has more than {0} bytes")]
    TooLarge(usize),
    /// Not JSON.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// An answer without body could not be made.
    #[error("failed to make an answer")]
    Http(#[from] http::Error),
}

/// A client whose answers are bounded, around one whose answers are not.
#[must_use]
pub fn bounded(client: Client) -> Client {
    let namespace = client.default_namespace().to_owned();
    let reader = Arc::new(Reader {
        client,
        pages: Pages::default(),
        large: Arc::new(Semaphore::new(AT_ONCE)),
    });
    let service = tower::service_fn(move |request: Request<Body>| {
        let reader = reader.clone();
        async move { reader.call(request).await }
    });
    Client::new(service, namespace)
}

struct Reader {
    client: Client,
    pages: Pages,
    large: Arc<Semaphore>,
}

/// What a request asks for.
struct Asked {
    kinds: Kinds,
    /// Group and plural: pages of a kind are of one size.
    resource: String,
    list: bool,
    watch: bool,
}

impl Asked {
    /// `None`: an answer that passes as it is, of kinds that have few and small objects or are
    /// written back whole.
    fn of(parts: &Parts) -> Option<Self> {
        let path: Vec<&str> = parts.uri.path().trim_matches('/').split('/').collect();
        let (group, rest) = match path.as_slice() {
            ["api", _, rest @ ..] => ("", rest),
            ["apis", group, _, rest @ ..] => (*group, rest),
            _ => return None,
        };
        let (resource, named) = match rest {
            ["namespaces", _, resource, name @ ..] => (*resource, !name.is_empty()),
            ["namespaces", ..] => return None,
            [resource, name @ ..] => (*resource, !name.is_empty()),
            [] => return None,
        };
        let kinds = match (group, resource) {
            ("batch", "jobs" | "cronjobs") | ("", "pods") => Kinds::Core,
            // A Restore is read live when its turn comes; what is kept of all is where they are.
            (crds::GROUP, "restores") if !named => Kinds::Names,
            (crds::GROUP, _) => Kinds::Ours,
            (group, _) if group.ends_with(crds::group::GROUP) => Kinds::Ours,
            _ => return None,
        };
        let watch = query(&parts.uri).any(|p| matches!(p, "watch=true" | "watch=1"));
        Some(Self {
            kinds,
            resource: format!("{resource}.{group}"),
            list: parts.method == Method::GET && !named && !watch,
            watch,
        })
    }
}

impl Reader {
    async fn call(&self, request: Request<Body>) -> Result<Response<Answer>, AnswerError> {
        let (parts, body) = request.into_parts();
        let Some(asked) = Asked::of(&parts) else {
            let answer = self.client.send(Request::from_parts(parts, body)).await?;
            return Ok(answer.map(Answer::new));
        };
        if asked.list {
            return self.list(&parts, &asked).await;
        }
        let answer = self.client.send(Request::from_parts(parts, body)).await?;
        if !answer.status().is_success() {
            return Ok(answer.map(Answer::new));
        }
        if asked.watch {
            let kinds = asked.kinds;
            let large = self.large.clone();
            return Ok(answer.map(|body| lines::cut(Answer::new(body), kinds, large)));
        }
        let (head, body) = answer.into_parts();
        let (text, _held) = self.read(Answer::new(body), OBJECT).await?;
        // The answer to a deletion may be a Status, which loses nothing.
        let slim = cut::object(&text, asked.kinds)?;
        Ok(respond(head, slim))
    }

    /// One page, or where no limit is asked for, all.
    async fn list(&self, parts: &Parts, asked: &Asked) -> Result<Response<Answer>, AnswerError> {
        let most = query(&parts.uri)
            .find_map(|p| p.strip_prefix("limit=")?.parse::<u32>().ok())
            .filter(|n| *n > 0);
        let mut from = None;
        let mut items = vec![];
        let mut bytes = 0;
        loop {
            let (head, mut list) = match self.page(parts, asked, most, from.as_deref()).await? {
                Page::Cut(head, list) => (head, list),
                Page::Refused(answer) => return Ok(answer),
            };
            if most.is_some() {
                return Ok(respond(head, list.text()));
            }
            bytes += list.items.iter().map(Vec::len).sum::<usize>();
            if bytes > WHOLE {
                return Err(AnswerError::TooLarge(WHOLE));
            }
            items.append(&mut list.items);
            from = list.next.take();
            if from.is_none() {
                list.items = items;
                return Ok(respond(head, list.text()));
            }
        }
    }

    /// One page of at most `most` objects, of fewer until it fits.
    async fn page(
        &self,
        parts: &Parts,
        asked: &Asked,
        most: Option<u32>,
        from: Option<&str>,
    ) -> Result<Page, AnswerError> {
        loop {
            let limit = self.pages.limit(&asked.resource, most);
            let mut request = Request::builder()
                .method(parts.method.clone())
                .uri(with_limit(&parts.uri, limit, from)?)
                .body(Body::empty())?;
            *request.headers_mut() = parts.headers.clone();
            let answer = self.client.send(request).await?;
            if !answer.status().is_success() {
                return Ok(Page::Refused(answer.map(Answer::new)));
            }
            let (head, body) = answer.into_parts();
            let room = if limit == 1 { OBJECT } else { PAGE };
            match self.read(Answer::new(body), room).await {
                Ok((text, _held)) => {
                    let list = cut::list(&text, asked.kinds)?;
                    self.pages
                        .read(&asked.resource, limit, text.len(), list.items.len());
                    return Ok(Page::Cut(head, list));
                }
                Err(AnswerError::TooLarge(_)) if limit > 1 => {
                    self.pages.too_large(&asked.resource, limit);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The whole text, if it has at most `room` bytes; a large one holds a place while it is in use.
    async fn read(
        &self,
        body: Answer,
        room: usize,
    ) -> Result<(Vec<u8>, Option<OwnedSemaphorePermit>), AnswerError> {
        let mut stream = body.into_data_stream();
        let mut text = Vec::new();
        let mut held = None;
        while let Some(part) = stream.next().await {
            let part: Bytes = part.map_err(AnswerError::Broken)?;
            if text.len() + part.len() > room {
                return Err(AnswerError::TooLarge(room));
            }
            text.extend_from_slice(&part);
            if text.len() > LARGE && held.is_none() {
                // It is never closed.
                held = self.large.clone().acquire_owned().await.ok();
            }
        }
        Ok((text, held))
    }
}

enum Page {
    Cut(http::response::Parts, List),
    Refused(Response<Answer>),
}

fn respond(mut head: http::response::Parts, text: Vec<u8>) -> Response<Answer> {
    head.headers.remove(header::CONTENT_LENGTH);
    head.headers.remove(header::TRANSFER_ENCODING);
    Response::from_parts(head, Answer::from(text))
}

fn query(uri: &Uri) -> impl Iterator<Item = &str> {
    uri.query().unwrap_or_default().split('&')
}

/// The URI with this limit, going on at `from` if it is set.
fn with_limit(uri: &Uri, limit: u32, from: Option<&str>) -> Result<Uri, http::Error> {
    let other = |p: &&str| {
        let ours = p.starts_with("limit=") || from.is_some() && p.starts_with("continue=");
        !p.is_empty() && !ours
    };
    let mut all: Vec<String> = query(uri).filter(other).map(str::to_owned).collect();
    all.push(format!("limit={limit}"));
    if let Some(from) = from {
        all.push(format!("continue={}", encoded(from)));
    }
    let target = format!("{}?{}", uri.path(), all.join("&"));
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(target.parse().map_err(http::Error::from)?);
    Uri::from_parts(parts).map_err(http::Error::from)
}

/// A value of a query (RFC 3986, section 2.3: what is not unreserved is escaped).
fn encoded(text: &str) -> String {
    let mut all = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            all.push(char::from(byte));
        } else {
            all.push_str(&format!("%{byte:02X}"));
        }
    }
    all
}
