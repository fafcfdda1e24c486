//! Tells people of the outcome. Bounded, at most twice, and never the reason that a good run fails.

mod feishu;

use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};

use crate::scrub::Scrub;

/// Time a receiver has for everything: name, connection, answer.
pub const LIMIT: Duration = Duration::from_secs(3);
/// A second try is made only where nothing was sent.
pub const TRIES: u32 = 2;
/// Bytes of an answer that are looked at.
const ANSWER: usize = 64 * 1024;

/// What happened, in the words people get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// One line: object and outcome.
    pub title: String,
    /// More lines.
    pub lines: Vec<String>,
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
}

/// Tells the Feishu bot of APIURL.
///
/// # Errors
/// What to warn about, free of secrets.
pub async fn feishu(url: &SecretString, notice: &Notice, scrub: &Scrub) -> Result<(), String> {
    let body = feishu::body(notice);
    let answer = post(url.expose_secret(), &body).await;
    answer
        .and_then(|(status, text)| feishu::judge(status, &text))
        .map_err(|e| format!("the notice to APIURL failed: {}", scrub.clean(&e)))
}

/// Posts JSON; gives status and answer.
async fn post(url: &str, body: &serde_json::Value) -> Result<(u16, String), String> {
    let client = reqwest::Client::builder()
        .connect_timeout(LIMIT)
        .timeout(LIMIT)
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("backup-runner/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|e| describe(&e))?;
    let mut last = String::new();
    for _ in 0..TRIES {
        match client.post(url).json(body).send().await {
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
            Err(e) => return Err(describe(&e)),
        }
    }
    Err(last)
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
