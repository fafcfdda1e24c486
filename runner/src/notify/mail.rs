//! Mail by SMTP. The URL says everything:
//! `smtps://user:password@host:465?from=a@example.com&to=b@example.com,c@example.com`;
//! `smtp://` uses STARTTLS where the server offers it, and demands it for `?tls=required`.

use std::time::Duration;

use lettre::message::Mailbox;
use lettre::message::header::ContentType;
use lettre::transport::smtp::AsyncSmtpTransport;
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Tls, TlsParameters};
use lettre::{AsyncTransport, Message, Tokio1Executor};
use reqwest::Url;

use crate::notify::Notice;

/// Mail servers may take longer than bots: greylisting and checks come before their answer.
const LIMIT: Duration = Duration::from_secs(15);

pub(super) async fn send(url: &str, notice: &Notice) -> Result<(), String> {
    let url = Url::parse(url.trim()).map_err(|e| format!("its URL can't be read: {e}"))?;
    let message = message(&url, notice)?;
    let transport = transport(&url)?;
    match tokio::time::timeout(LIMIT, transport.send(message)).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(e)) => Err(format!("the mail server refused or failed: {e}")),
        Err(_) => Err(format!("no answer within {} s", LIMIT.as_secs())),
    }
}

fn parameter(url: &Url, name: &str) -> Option<String> {
    url.query_pairs()
        .find(|(n, _)| n == name)
        .map(|(_, v)| v.into_owned())
}

fn mailbox(text: &str) -> Result<Mailbox, String> {
    // A bare `+` in a query means a blank; in an address it can only have meant itself.
    text.trim()
        .replace(' ', "+")
        .parse()
        .map_err(|e| format!("an address of its from= or to= is none: {e}"))
}

fn message(url: &Url, notice: &Notice) -> Result<Message, String> {
    let from = parameter(url, "from").ok_or("its URL has no from=")?;
    let to = parameter(url, "to").ok_or("its URL has no to=")?;
    let mut builder = Message::builder()
        .from(mailbox(&from)?)
        .subject(&notice.title)
        .header(ContentType::TEXT_PLAIN);
    for address in to.split(',') {
        builder = builder.to(mailbox(address)?);
    }
    builder
        .body(notice.text())
        .map_err(|e| format!("the mail can't be written: {e}"))
}

fn transport(url: &Url) -> Result<AsyncSmtpTransport<Tokio1Executor>, String> {
    let host = url.host_str().ok_or("its URL has no host")?;
    let parameters =
        || TlsParameters::new(host.to_owned()).map_err(|e| format!("TLS can't be set up: {e}"));
    let required = parameter(url, "tls").as_deref() == Some("required");
    let (tls, port) = match url.scheme() {
        "smtps" => (Tls::Wrapper(parameters()?), 465),
        "smtp" if required => (Tls::Required(parameters()?), 587),
        "smtp" => (Tls::Opportunistic(parameters()?), 25),
        other => {
            return Err(format!(
                "its URL begins with {other}://, not smtp:// or smtps://"
            ));
        }
    };
    let mut builder = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(host)
        .port(url.port().unwrap_or(port))
        .tls(tls)
        .timeout(Some(LIMIT));
    if !url.username().is_empty() {
        builder = builder.credentials(Credentials::new(
            decode(url.username()),
            decode(url.password().unwrap_or_default()),
        ));
    }
    Ok(builder.build())
}

/// Undoes percent-encoding of the URL's user part.
fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut i = 0;
    while i < bytes.len() {
        let code = (bytes[i] == b'%')
            .then(|| {
                text.get(i + 1..i + 3)
                    .and_then(|h| u8::from_str_radix(h, 16).ok())
            })
            .flatten();
        plain.push(code.unwrap_or(bytes[i]));
        i += if code.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&plain).into_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use super::*;
    use crds::parts::NotificationEvent;

    #[test]
    fn a_mail_is_addressed() {
        let url = Url::parse("smtp://u%40x:p%25w@mail.example:2525?from=a@example.com&to=b@example.com,c+d@example.com").unwrap();
        let notice = Notice {
            event: NotificationEvent::Failure,
            title: "Backup FAILED: shop".into(),
            lines: vec!["reason: X".into()],
            body: serde_json::Value::Null,
        };
        let text = String::from_utf8(message(&url, &notice).unwrap().formatted()).unwrap();
        for part in [
            "From: a@example.com",
            "To: b@example.com, c+d@example.com",
            "Subject: Backup FAILED: shop",
            "reason: X",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert_eq!(decode(url.username()), "u@x");
        assert_eq!(decode(url.password().unwrap()), "p%w");
        assert!(message(&Url::parse("smtp://h?to=a@b.c").unwrap(), &notice).is_err());
    }
}
