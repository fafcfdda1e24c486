//! A WebDAV server: streamed by PUT, read by GET, published by MOVE that overwrites nothing.

use crds::report::{Reason, exit};
use std::io::{self, Read};
use std::ops::Range;
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures::TryStreamExt;
use reqwest::header::{CONTENT_LENGTH, IF_NONE_MATCH, RANGE};
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode, Url};
use secrecy::{ExposeSecret, SecretString};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::failure::Failure;
use crate::store::files::FileServer;
use crate::store::{Attempt, Dated, Entry, key_in};

/// Chunks between the archive and the connection.
const CHUNKS: usize = 8;
/// A request that gets no answer for so long has failed.
const STALLED: Duration = Duration::from_secs(120);

/// Where a server is and who logs in.
#[derive(Debug)]
pub struct Settings {
    /// URL of the collection that keys are below.
    pub root: String,
    /// User name and password.
    pub login: Option<(String, SecretString)>,
}

/// A WebDAV server. Keys are below its root.
#[derive(Clone)]
pub struct WebdavServer {
    client: Client,
    root: Url,
    login: Option<(String, SecretString)>,
    attempt: Attempt,
    handle: Handle,
}

impl WebdavServer {
    /// A store. Must be called within the runtime.
    ///
    /// # Errors
    /// The URL is none.
    pub fn new(settings: Settings, attempt: Attempt) -> Result<Self, Failure> {
        let text = if settings.root.contains("://") {
            settings.root.clone()
        } else {
            format!("http://{}", settings.root)
        };
        let mut root = Url::parse(&text)
            .map_err(|e| Failure::settings(format!("config.root {text:?} is no URL: {e}")))?;
        if !root.path().ends_with('/') {
            let path = format!("{}/", root.path());
            root.set_path(&path);
        }
        let client = Client::builder()
            .connect_timeout(Duration::from_secs(10))
            .read_timeout(STALLED)
            .user_agent(concat!("backup-runner/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|e| crate::store::no_client(&e))?;
        Ok(Self {
            client,
            root,
            login: settings.login,
            attempt,
            handle: Handle::current(),
        })
    }

    /// URL of a key; each part is escaped.
    fn url(&self, key: &str) -> Result<Url, Failure> {
        let mut url = self.root.clone();
        if let Ok(mut parts) = url.path_segments_mut() {
            parts
                .pop_if_empty()
                .extend(key.split('/').filter(|p| !p.is_empty()));
        }
        Ok(url)
    }

    fn request(&self, method: &str, key: &str) -> Result<RequestBuilder, Failure> {
        let method = Method::from_bytes(method.as_bytes())
            .map_err(|e| Failure::new(Reason::HttpFailed, e.to_string()))?;
        let request = self.client.request(method, self.url(key)?);
        Ok(match &self.login {
            Some((user, password)) => request.basic_auth(user, Some(password.expose_secret())),
            None => request,
        })
    }

    fn send(&self, doing: &str, key: &str, request: RequestBuilder) -> Result<Response, Failure> {
        self.handle
            .block_on(request.send())
            .map_err(|e| self.unreachable(doing, key, &e))
    }

    fn unreachable(&self, doing: &str, key: &str, error: &reqwest::Error) -> Failure {
        let mut cause: &dyn std::error::Error = error;
        while let Some(inner) = cause.source() {
            cause = inner;
        }
        Failure::new(
            Reason::StoreUnreachable,
            format!(
                "{doing} {key} on {} failed: {cause}; check config.root, NetworkPolicy and certificates",
                self.place()
            ),
        )
    }

    fn refused(&self, doing: &str, key: &str, status: StatusCode) -> Failure {
        let (reason, remedy) = match status.as_u16() {
            401 => (
                Reason::PermissionDenied,
                "check username and password of the Storage",
            ),
            403 => (Reason::PermissionDenied, "the user may not do this there"),
            404 | 409 => (
                Reason::DestinationNotFound,
                "config.root does not exist: create it, or correct it",
            ),
            405 => (
                Reason::StoreFailed,
                "the server speaks no WebDAV at this URL",
            ),
            413 | 507 => (Reason::NoSpace, "free space, or raise the server's limit"),
            _ => (Reason::StoreFailed, "look at the server's health"),
        };
        Failure::at(
            exit::STORE,
            reason,
            format!(
                "{doing} {key} on {} failed: it answered {status}: {remedy}",
                self.place()
            ),
        )
    }

    fn expect_good(&self, doing: &str, key: &str, response: &Response) -> Result<(), Failure> {
        if response.status().is_success() {
            return Ok(());
        }
        Err(self.refused(doing, key, response.status()))
    }

    fn place(&self) -> String {
        let port = self
            .root
            .port()
            .map(|p| format!(":{p}"))
            .unwrap_or_default();
        format!("{}{port}", self.root.host_str().unwrap_or_default())
    }

    /// Makes the collections above a key.
    fn make_collections(&self, key: &str) -> Result<(), Failure> {
        let mut path = String::new();
        let parts: Vec<&str> = key.split('/').collect();
        for part in &parts[..parts.len().saturating_sub(1)] {
            path = if path.is_empty() {
                (*part).to_owned()
            } else {
                format!("{path}/{part}")
            };
            let answer = self.send("making", &path, self.request("MKCOL", &path)?)?;
            // 405 says that it exists.
            if !answer.status().is_success() && answer.status() != StatusCode::METHOD_NOT_ALLOWED {
                return Err(self.refused("making", &path, answer.status()));
            }
        }
        Ok(())
    }

    /// The answer to a PUT.
    fn answer(&self, file: &mut Uploading, key: &str) -> Result<(), Failure> {
        file.sender = None;
        let Some(put) = file.put.take() else {
            return Err(Failure::new(Reason::StoreFailed, "the upload is closed"));
        };
        let answer = self
            .handle
            .block_on(put)
            .map_err(|e| Failure::new(Reason::HttpFailed, e.to_string()))?
            .map_err(|e| self.unreachable("writing", key, &e))?;
        self.expect_good("writing", key, &answer)
    }
}

impl WebdavServer {
    fn body(&self, answer: reqwest::Response) -> Body {
        Body {
            stream: Box::pin(answer.bytes_stream().map_err(io::Error::other)),
            handle: self.handle.clone(),
            chunk: bytes::Bytes::new(),
        }
    }
}

impl FileServer for WebdavServer {
    type File = Uploading;

    const SERVER: &'static str = "WebDAV server";

    fn place(&self) -> String {
        WebdavServer::place(self)
    }

    fn attempt(&self) -> &Attempt {
        &self.attempt
    }

    fn entries(&self, directory: &str) -> Result<Vec<Dated>, Failure> {
        let request = self
            .request("PROPFIND", &format!("{directory}/"))?
            .header("Depth", "1");
        let answer = self.send("listing", directory, request)?;
        if answer.status() == StatusCode::NOT_FOUND {
            return Ok(vec![]);
        }
        self.expect_good("listing", directory, &answer)?;
        let text = self
            .handle
            .block_on(answer.text())
            .map_err(|e| self.unreachable("listing", directory, &e))?;
        let found = parse(&text).map_err(|e| {
            Failure::new(
                Reason::StoreFailed,
                format!(
                    "listing {directory} on {} failed: its answer is no WebDAV: {e}",
                    self.place()
                ),
            )
        })?;
        // The collection itself is among them.
        let itself = directory.rsplit('/').next().unwrap_or_default();
        let below = found.into_iter().filter(|e| e.name != format!("{itself}/"));
        let dated = below.map(|e| {
            let entry = Entry {
                key: key_in(directory, &e.name),
                size: e.size,
            };
            (entry, e.modified)
        });
        Ok(dated.collect())
    }

    fn modified(&self, key: &str) -> Result<Option<DateTime<Utc>>, Failure> {
        let directory = key.rsplit_once('/').map_or("", |(directory, _)| directory);
        let mut found = self.entries(directory)?.into_iter();
        Ok(found.find(|(e, _)| e.key == key).and_then(|(_, at)| at))
    }

    fn read(&self, doing: &str, key: &str) -> Result<Option<Box<dyn Read + Send>>, Failure> {
        let answer = self.send(doing, key, self.request("GET", key)?)?;
        if answer.status() == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        self.expect_good(doing, key, &answer)?;
        Ok(Some(Box::new(self.body(answer))))
    }

    fn read_part(
        &self,
        key: &str,
        part: Range<u64>,
    ) -> Result<Option<Box<dyn Read + Send>>, Failure> {
        let (first, last) = (part.start, part.end.saturating_sub(1));
        let range = format!("bytes={first}-{last}");
        let request = self.request("GET", key)?.header(RANGE, range);
        let answer = self.send("reading", key, request)?;
        // Who sends the whole knows no parts.
        if matches!(answer.status(), StatusCode::NOT_FOUND | StatusCode::OK) {
            return Ok(None);
        }
        self.expect_good("reading", key, &answer)?;
        Ok(Some(Box::new(self.body(answer))))
    }

    fn start(&self, key: &str) -> Result<Uploading, Failure> {
        self.make_collections(key)?;
        let (sender, receiver) = mpsc::channel::<io::Result<bytes::Bytes>>(CHUNKS);
        let stream = futures::stream::unfold(receiver, |mut receiver| async {
            receiver.recv().await.map(|chunk| (chunk, receiver))
        });
        let request = self
            .request("PUT", key)?
            .body(reqwest::Body::wrap_stream(stream));
        Ok(Uploading {
            sender: Some(sender),
            put: Some(self.handle.spawn(request.send())),
        })
    }

    fn write(&self, file: &mut Uploading, key: &str, data: &[u8]) -> Result<(), Failure> {
        let chunk = Ok(bytes::Bytes::copy_from_slice(data));
        let sent = file.sender.as_ref().map(|s| s.blocking_send(chunk));
        match sent {
            Some(Ok(())) => Ok(()),
            // The server has answered before the end: its answer says why.
            _ => Err(self.answer(file, key).err().unwrap_or_else(|| {
                Failure::new(
                    Reason::StoreFailed,
                    format!(
                        "writing {key} on {}: the server took less than was sent",
                        WebdavServer::place(self)
                    ),
                )
            })),
        }
    }

    fn close(&self, mut file: Uploading, key: &str) -> Result<(), Failure> {
        self.answer(&mut file, key)
    }

    fn publish(&self, from: &str, key: &str) -> Result<bool, Failure> {
        let target = self.url(key)?;
        let request = self
            .request("MOVE", from)?
            .header("Destination", target.as_str())
            .header("Overwrite", "F");
        let answer = self.send("publishing", key, request)?;
        if answer.status() == StatusCode::PRECONDITION_FAILED {
            return Ok(false);
        }
        self.expect_good("publishing", key, &answer).map(|()| true)
    }

    fn put(&self, key: &str, content: &[u8]) -> Result<(), Failure> {
        self.make_collections(key)?;
        let request = self
            .request("PUT", key)?
            .header(CONTENT_LENGTH, content.len())
            .body(content.to_vec());
        let answer = self.send("writing", key, request)?;
        self.expect_good("writing", key, &answer)
    }

    fn create(&self, key: &str, content: &[u8]) -> Result<bool, Failure> {
        let answer = self.send("reading", key, self.request("HEAD", key)?)?;
        if answer.status().is_success() {
            return Ok(false);
        }
        self.make_collections(key)?;
        // Most servers pass over the condition; where one knows it, it closes the gap.
        let request = self
            .request("PUT", key)?
            .header(IF_NONE_MATCH, "*")
            .header(CONTENT_LENGTH, content.len())
            .body(content.to_vec());
        let answer = self.send("writing", key, request)?;
        if answer.status() == StatusCode::PRECONDITION_FAILED {
            return Ok(false);
        }
        self.expect_good("writing", key, &answer).map(|()| true)
    }

    fn remove(&self, key: &str) -> Result<(), Failure> {
        let answer = self.send("removing", key, self.request("DELETE", key)?)?;
        if answer.status() == StatusCode::NOT_FOUND {
            return Ok(());
        }
        self.expect_good("removing", key, &answer)
    }
}

/// A PUT under way.
pub(super) struct Uploading {
    sender: Option<mpsc::Sender<io::Result<bytes::Bytes>>>,
    put: Option<JoinHandle<reqwest::Result<Response>>>,
}

impl Drop for Uploading {
    fn drop(&mut self) {
        if let Some(sender) = self.sender.take() {
            // A body that ends in an error is no file.
            let _ = sender.try_send(Err(io::Error::other("the run was ended")));
        }
        if let Some(put) = self.put.take() {
            put.abort();
        }
    }
}

type ByteStream = std::pin::Pin<Box<dyn futures::Stream<Item = io::Result<bytes::Bytes>> + Send>>;

/// A GET as a blocking reader.
struct Body {
    stream: ByteStream,
    handle: Handle,
    chunk: bytes::Bytes,
}

impl Read for Body {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        while self.chunk.is_empty() {
            match self.handle.block_on(self.stream.try_next())? {
                Some(chunk) => self.chunk = chunk,
                None => return Ok(0),
            }
        }
        let n = self.chunk.len().min(target.len());
        let taken = self.chunk.split_to(n);
        target[..n].copy_from_slice(&taken);
        Ok(n)
    }
}

/// A file of a multistatus, or a collection, whose name ends with a slash.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Listed {
    name: String,
    size: u64,
    modified: Option<DateTime<Utc>>,
}

/// The files and collections of a multistatus.
fn parse(text: &str) -> Result<Vec<Listed>, String> {
    use quick_xml::events::Event;
    let mut reader = quick_xml::Reader::from_str(text);
    let mut found = vec![];
    let (mut href, mut collection) = (String::new(), false);
    let mut file = Listed::default();
    let mut element = String::new();
    let mut seen = false;
    loop {
        match reader.read_event().map_err(|e| e.to_string())? {
            Event::Eof => break,
            Event::Start(e) => {
                element = e.local_name().into_inner().to_owned();
                match element.as_str() {
                    "multistatus" => seen = true,
                    "response" => {
                        (href, collection) = (String::new(), false);
                        file = Listed::default();
                    }
                    "collection" => collection = true,
                    _ => {}
                }
            }
            Event::Empty(e) if e.local_name().into_inner() == "collection" => collection = true,
            Event::Text(t) => {
                let value = t.trim().to_owned();
                match element.as_str() {
                    "href" => href.push_str(&value),
                    "getcontentlength" if !value.is_empty() => {
                        file.size = value.parse().unwrap_or(0);
                    }
                    "getlastmodified" => {
                        let time = DateTime::parse_from_rfc2822(&value);
                        file.modified = time.ok().map(|t| t.to_utc());
                    }
                    _ => {}
                }
            }
            Event::End(e) => {
                element.clear();
                if e.local_name().into_inner() == "response" {
                    let name = href.trim_end_matches('/').rsplit('/').next();
                    let slash = if collection { "/" } else { "" };
                    found.push(Listed {
                        name: format!("{}{slash}", unescape(name.unwrap_or_default())),
                        ..std::mem::take(&mut file)
                    });
                }
            }
            _ => {}
        }
    }
    if seen {
        Ok(found)
    } else {
        Err("there is no multistatus".to_owned())
    }
}

/// Undoes percent encoding.
fn unescape(name: &str) -> String {
    let mut bytes = vec![];
    let mut rest = name.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let code = (*first == b'%')
            .then(|| after.get(..2).and_then(|h| std::str::from_utf8(h).ok()))
            .flatten()
            .and_then(|h| u8::from_str_radix(h, 16).ok());
        match code {
            Some(code) => {
                bytes.push(code);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_multistatus_gives_files_and_collections() {
        let text = r#"<?xml version="1.0"?><D:multistatus xmlns:D="DAV:">
<D:response><D:href>/b/</D:href><D:propstat><D:prop><D:resourcetype><D:collection xmlns:D="DAV:"/></D:resourcetype></D:prop></D:propstat></D:response>
<D:response><D:href>/b/a%20b.tar</D:href><D:propstat><D:prop><D:getcontentlength>12</D:getcontentlength><D:getlastmodified>Wed, 15 Jan 2025 10:30:00 GMT</D:getlastmodified><D:resourcetype></D:resourcetype></D:prop></D:propstat></D:response>
</D:multistatus>"#;
        let collection = Listed {
            name: "b/".into(),
            ..Listed::default()
        };
        let file = Listed {
            name: "a b.tar".into(),
            size: 12,
            modified: crds::time::parse_rfc3339("2025-01-15T10:30:00Z"),
        };
        assert_eq!(parse(text).unwrap(), [collection, file]);
        assert!(parse("<html>no</html>").is_err());
    }
}
