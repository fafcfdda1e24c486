//! The notifiers of a model as `spec.notifications`: what each is reached by goes into a Secret.

use crds::parts::{SecretKeyRef, WebhookHeader, WebhookMethod};
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
            let mut content = Map::from_iter([("url".to_owned(), url.into())]);
            let http = if ours == "Webhook" {
                http(&notifier, &mut content)
            } else {
                Http::default()
            };
            if let Some(secret) = self.secret(&format!("{name}-{key}-notifier"), content) {
                let of = |key: &str| json!({ "name": secret, "key": key });
                let mut receiver =
                    json!({ "type": ours, "urlSecretKeyRef": of("url"), "events": events });
                if let Some(method) = http.method {
                    receiver["method"] = method.as_str().into();
                }
                if !http.headers.is_empty() {
                    let each = http.headers.iter();
                    receiver["headers"] = each
                        .map(|(name, key)| json!({ "name": name, "valueSecretKeyRef": of(key) }))
                        .collect();
                }
                all.push(receiver);
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

/// The URL of a webhook.
fn webhook(notifier: &Entry<'_>) -> Option<String> {
    notifier.remark("gets JSON with other fields than title and message of gobackup: let the receiver read docs/runner.md");
    notifier.text_of("url")
}

/// How a webhook is asked, where it is not by POST without a header.
#[derive(Default)]
struct Http {
    method: Option<WebhookMethod>,
    /// Names, and the keys of their values in the receiver's Secret.
    headers: Vec<(String, String)>,
}

/// Method and headers of a webhook. Whether a value is a secret is not known, so all go into the Secret.
fn http(notifier: &Entry<'_>, content: &mut Map<String, Value>) -> Http {
    let mut http = Http::default();
    if let Some(method) = notifier.get("method") {
        let text = method.text().unwrap_or_default();
        let known = WebhookMethod::ALL;
        match known.into_iter().find(|m| m.as_str().eq_ignore_ascii_case(&text)) {
            Some(WebhookMethod::Post) => {}
            Some(other) => http.method = Some(other),
            None => method.lost("is not taken over: let the receiver take POST, PUT, PATCH, GET or DELETE, or put a relay before it"),
        }
    }
    let headers = notifier.get("headers");
    for (name, header) in headers.iter().flat_map(Entry::entries) {
        let (value, key) = (header.text(), format!("header-{}", http.headers.len()));
        let reference = Some(SecretKeyRef::default());
        let fault = WebhookHeader {
            name: name.clone(),
            value: None,
            value_secret_key_ref: reference,
        }
        .fault();
        match (value, fault) {
            (Some(value), None) => {
                content.insert(key.clone(), value.into());
                http.headers.push((name, key));
            }
            (_, Some(fault)) => header.lost(&format!("is not taken over: {fault}")),
            (None, None) => header.lost("is not taken over: it is no text"),
        }
    }
    http
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
