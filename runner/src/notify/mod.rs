//! Tells people of the outcome. Bounded, at most twice, and never the reason that a good run fails.

mod chat;
mod mail;
pub mod outcome;
mod ping;

use std::time::Duration;

use crds::parts::{NotificationEvent, NotificationType};
use reqwest::Method;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use secrecy::ExposeSecret;
use serde_json::Value;

use crate::scrub::Scrub;
use crate::settings::Receiver;

/// Time a receiver has for everything: name, connection, answer.
pub const LIMIT: Duration = Duration::from_secs(3);
/// A second try is made only where nothing was sent.
pub const TRIES: u32 = 2;
/// Bytes of an answer that are looked at.
const ANSWER: usize = 64 * 1024;

/// What happened, in the words people get.
#[derive(Clone, Debug, PartialEq)]
pub struct Notice {
    /// What it tells of.
    pub event: NotificationEvent,
    /// One line: object and outcome.
    pub title: String,
    /// More lines.
    pub lines: Vec<String>,
    /// The same for programs.
    pub body: Value,
}

impl Notice {
    /// Title and lines as plain text.
    pub fn text(&self) -> String {
        let mut text = self.title.clone();
        for line in &self.lines {
            text.push('\n');
            text.push_str(line);
        }
        text
    }

    /// True if it is good news.
    pub fn good(&self) -> bool {
        use NotificationEvent::{Recovered, Recovery, Success};
        matches!(self.event, Success | Recovery | Recovered)
    }
}

/// A receiver was not told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undelivered {
    /// What to warn about, free of secrets.
    pub message: String,
    /// Nothing was sent: trying again can't tell twice.
    pub unsent: bool,
}

impl From<String> for Undelivered {
    fn from(message: String) -> Self {
        Self {
            message,
            unsent: false,
        }
    }
}

/// Tells one receiver.
///
/// # Errors
/// It was not told, as far as is known.
pub async fn send(receiver: &Receiver, notice: &Notice, scrub: &Scrub) -> Result<(), Undelivered> {
    let url = receiver.url.expose_secret();
    let sent = match receiver.type_ {
        NotificationType::Mail => mail::send(url, notice).await.map_err(Undelivered::from),
        NotificationType::Ping => get(&ping::url(url, notice))
            .await
            .and_then(|(s, _)| Ok(chat::status(s)?)),
        type_ => post(receiver, &chat::body(type_, notice))
            .await
            .and_then(|(status, text)| Ok(chat::judge(type_, status, &text, scrub)?)),
    };
    sent.map_err(|e| Undelivered {
        message: format!(
            "the notice to {} failed: {}",
            receiver.name,
            scrub.clean(&e.message)
        ),
        ..e
    })
}

/// Sends JSON; gives status and answer.
async fn post(receiver: &Receiver, body: &Value) -> Result<(u16, String), Undelivered> {
    let method = Method::from_bytes(receiver.method.as_str().as_bytes()).unwrap_or(Method::POST);
    let headers = headers(receiver)?;
    let ask = |client: &reqwest::Client| {
        // In front of the body, which has a Content-Type only where none is there.
        let request = client.request(method.clone(), receiver.url.expose_secret());
        request.headers(headers.clone()).json(body)
    };
    request(ask).await
}

/// What the user adds to a request, marked as secret.
fn headers(receiver: &Receiver) -> Result<HeaderMap, String> {
    let mut all = HeaderMap::new();
    for (name, value) in &receiver.headers {
        let bad = || {
            format!(
                "header {name} can't be sent: a name has letters, digits and dashes, a value no line ends"
            )
        };
        let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad())?;
        let mut value = HeaderValue::from_str(value.expose_secret()).map_err(|_| bad())?;
        value.set_sensitive(true);
        all.insert(key, value);
    }
    Ok(all)
}

async fn get(url: &str) -> Result<(u16, String), Undelivered> {
    request(|client| client.get(url)).await
}

async fn request(
    make: impl Fn(&reqwest::Client) -> reqwest::RequestBuilder,
) -> Result<(u16, String), Undelivered> {
    let client = reqwest::Client::builder()
        .connect_timeout(LIMIT)
        .timeout(LIMIT)
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("backup-runner/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|e| describe(&e))?;
    let mut last = String::new();
    for _ in 0..TRIES {
        match make(&client).send().await {
            Ok(mut response) => {
                let status = response.status().as_u16();
                let mut text = Vec::new();
                while let Some(chunk) = response.chunk().await.map_err(|e| describe(&e))? {
                    text.extend_from_slice(&chunk);
                    if text.len() > ANSWER {
                        break;
                    }
                }
                return Ok((status, String::from_utf8_lossy(&text).into_owned()));
            }
            Err(e) if e.is_connect() => last = describe(&e),
            Err(e) => return Err(describe(&e).into()),
        }
    }
    Err(Undelivered {
        message: last,
        unsent: true,
    })
}

/// The error and its causes, without the URL.
fn describe(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return format!("no answer within {} s", LIMIT.as_secs());
    }
    let mut text = String::new();
    let mut cause: Option<&dyn std::error::Error> = std::error::Error::source(error);
    while let Some(e) = cause {
        text = e.to_string();
        cause = e.source();
    }
    if text.is_empty() {
        "the request failed".to_owned()
    } else {
        text
    }
}
