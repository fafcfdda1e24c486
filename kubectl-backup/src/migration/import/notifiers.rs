//! The notifiers of a model as `spec.notifications`: what each is reached by goes into a Secret.

use serde_json::{Map, Value, json};

use super::Run;
use super::source::Entry;

/// Keys of all notifiers, read before their own.
const ON: [(&str, &[&str]); 2] = [
    ("on_success", &["Success"]),
    ("on_failure", &["Failure", "Recovery", "Missed"]),
];

impl Run<'_> {
    /// Receivers and the Secrets with their URLs.
    pub(super) fn notifiers(&mut self, name: &str, model: &Entry<'_>, spec: &mut Value) {
        let Some(notifiers) = model.get("notifiers") else {
            return;
        };
        let mut all = vec![];
        for (key, notifier) in notifiers.entries() {
            let type_ = notifier.text_of("type").unwrap_or_default();
            let receiver = match type_.as_str() {
                "feishu" => ("Feishu", notifier.text_of("url")),
                "slack" => ("Slack", notifier.text_of("url")),
                "dingtalk" => ("DingTalk", notifier.text_of("url")),
                "discord" => ("Discord", notifier.text_of("url")),
                "healthchecks" => ("Ping", notifier.text_of("url")),
                "webhook" => ("Webhook", webhook(&notifier)),
                "mail" => ("Mail", mail(&notifier)),
                other => {
                    notifier.lost(&remedy(other));
                    continue;
                }
            };
            let (ours, Some(url)) = receiver else {
                notifier.lost(
                    "can't be reached by what stands there: add a receiver to spec.notifications",
                );
                continue;
            };
            let events: Vec<&str> = ON
                .iter()
                .filter(|(key, _)| notifier.flag_of(key) != Some(false))
                .flat_map(|(_, events)| events.iter().copied())
                .collect();
            if events.is_empty() {
                notifier.lost("is told of nothing, as on_success and on_failure are false");
                continue;
            }
            let content = Map::from_iter([("url".to_owned(), url.into())]);
            if let Some(secret) = self.secret(&format!("{name}-{key}-notifier"), content) {
                all.push(json!({ "type": ours, "urlSecretKeyRef": { "name": secret, "key": "url" }, "events": events }));
            }
        }
        if !all.is_empty() {
            spec["notifications"] = all.into();
        }
    }
}

fn remedy(type_: &str) -> String {
    let what = match type_ {
        "postmark" | "sendgrid" | "resend" | "ses" => {
            "add a receiver of type Mail to spec.notifications, with the SMTP server of this service"
        }
        "telegram" | "github" | "googlechat" | "wxwork" => {
            "add a receiver of type Webhook to spec.notifications, with a relay that speaks to this service"
        }
        _ => "add a receiver to spec.notifications",
    };
    format!("notifiers of type {type_:?} have no counterpart: {what}")
}

/// The URL of a webhook, and what of it is sent otherwise.
fn webhook(notifier: &Entry<'_>) -> Option<String> {
    if let Some(method) = notifier.get("method")
        && method
            .text()
            .is_none_or(|text| !text.eq_ignore_ascii_case("POST"))
    {
        method.lost("is not taken over: a Webhook is sent by POST, so let the receiver take that, or put a relay before it");
    }
    if let Some(headers) = notifier.get("headers") {
        headers
            .lost("can't be sent: put what the receiver wants into the URL, or a relay before it");
    }
    notifier.remark("gets JSON with other fields than title and message of gobackup: let the receiver read docs/runner.md");
    notifier.text_of("url")
}

/// The URL that says all of a mail.
fn mail(notifier: &Entry<'_>) -> Option<String> {
    let tls = notifier.flag_of("tls") == Some(true);
    let port = notifier.text_of("port").unwrap_or_else(|| "25".to_owned());
    let (user, password) = (notifier.text_of("username"), notifier.text_of("password"));
    let from = notifier.text_of("from").or_else(|| user.clone())?;
    let login = match (&user, &password) {
        (Some(user), Some(password)) => format!("{}:{}@", encoded(user), encoded(password)),
        // Without a password gobackup does not log in.
        _ => String::new(),
    };
    Some(format!(
        "{}://{login}{}:{port}?from={}&to={}",
        if tls { "smtps" } else { "smtp" },
        notifier.text_of("host")?,
        encoded(&from),
        encoded(&notifier.text_of("to")?),
    ))
}

/// Percent-encoded, as one part of a URL.
fn encoded(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b',' => {
                out.push(char::from(byte));
            }
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
    out
}
