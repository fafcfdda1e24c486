//! Chat bots and webhooks: what each takes, and how it says that it took it. Feishu and DingTalk
//! answer errors with HTTP status 200 and a code.

use crds::parts::NotificationType;
use serde_json::{Value, json};

use crate::notify::Notice;
use crate::scrub::Scrub;

/// Discord refuses longer texts.
const DISCORD: usize = 2000;

pub(super) fn body(type_: NotificationType, notice: &Notice) -> Value {
    let text = notice.text();
    match type_ {
        NotificationType::Feishu => json!({"msg_type": "text", "content": {"text": text}}),
        NotificationType::DingTalk => json!({"msgtype": "text", "text": {"content": text}}),
        NotificationType::Discord => {
            let text: String = text.chars().take(DISCORD).collect();
            json!({"content": text, "allowed_mentions": {"parse": []}})
        }
        NotificationType::Slack => {
            let text = text
                .replace('&', "&amp;")
                .replace('<', "&lt;")
                .replace('>', "&gt;");
            json!({"text": text})
        }
        NotificationType::Webhook | NotificationType::Mail | NotificationType::Ping => {
            notice.body.clone()
        }
    }
}

pub(super) fn judge(
    type_: NotificationType,
    status: u16,
    answer: &str,
    scrub: &Scrub,
) -> Result<(), String> {
    self::status(status)?;
    match type_ {
        NotificationType::Feishu => code(
            answer,
            &["code", "StatusCode"],
            &["msg", "StatusMessage"],
            scrub,
        ),
        NotificationType::DingTalk => code(answer, &["errcode"], &["errmsg"], scrub),
        NotificationType::Slack if answer.trim() != "ok" => Err(format!(
            "Slack did not answer \"ok\" but {:?}",
            crds::report::clean(&scrub.clean(answer), 100)
        )),
        _ => Ok(()),
    }
}

/// Any status of the 200s is good.
pub(super) fn status(status: u16) -> Result<(), String> {
    if (200..300).contains(&status) {
        return Ok(());
    }
    Err(format!("it answered with HTTP status {status}"))
}

/// The answer's code is 0.
fn code(answer: &str, codes: &[&str], messages: &[&str], scrub: &Scrub) -> Result<(), String> {
    let value: Value = serde_json::from_str(answer)
        .map_err(|_| "its answer is not JSON: check that the URL is a bot's webhook".to_owned())?;
    let get = |names: &[&str]| names.iter().find_map(|n| value.get(*n)).cloned();
    match get(codes).and_then(|c| c.as_i64()) {
        Some(0) => Ok(()),
        Some(code) => {
            let why = get(messages).unwrap_or_default();
            let why = crds::report::clean(&scrub.clean(why.as_str().unwrap_or_default()), 200);
            Err(format!("it refused with code {code} {why}"))
        }
        None => Err("its answer has no code: check that the URL is a bot's webhook".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use super::*;
    use crds::parts::NotificationEvent;

    #[test]
    fn only_code_zero_is_good() {
        use NotificationType::{DingTalk, Discord, Feishu, Slack, Webhook};
        for (type_, status, answer) in [
            (Feishu, 200, r#"{"code":0,"msg":"success"}"#),
            (Feishu, 200, r#"{"StatusCode":0,"StatusMessage":"success"}"#),
            (DingTalk, 200, r#"{"errcode":0,"errmsg":"ok"}"#),
            (Slack, 200, "ok"),
            (Discord, 204, ""),
            (Webhook, 202, "whatever"),
        ] {
            assert_eq!(
                judge(type_, status, answer, &Scrub::default()),
                Ok(()),
                "{type_:?} {answer}"
            );
        }
        for (type_, status, answer) in [
            (
                Feishu,
                200,
                r#"{"code":19001,"msg":"param invalid: incoming webhook access token invalid"}"#,
            ),
            (Feishu, 200, "ok"),
            (Feishu, 200, "{}"),
            (Feishu, 302, r#"{"code":0}"#),
            (Feishu, 500, r#"{"code":0}"#),
            (
                DingTalk,
                200,
                r#"{"errcode":310000,"errmsg":"keywords not in content"}"#,
            ),
            (Slack, 200, "invalid_token"),
            (Slack, 404, "no_service"),
            (Discord, 429, "{}"),
            (Webhook, 301, ""),
        ] {
            assert!(
                judge(type_, status, answer, &Scrub::default()).is_err(),
                "{type_:?} {status} {answer}"
            );
        }
    }

    #[test]
    fn each_bot_gets_its_form() {
        let notice = Notice {
            event: NotificationEvent::Failure,
            title: "Backup FAILED: a<b".into(),
            lines: vec!["x".repeat(3000)],
            body: json!({"event": "Failure"}),
        };
        let get = |t| body(t, &notice);
        assert_eq!(
            get(NotificationType::Feishu)["content"]["text"],
            notice.text()
        );
        assert_eq!(
            get(NotificationType::DingTalk)["text"]["content"],
            notice.text()
        );
        assert!(
            get(NotificationType::Slack)["text"]
                .as_str()
                .unwrap()
                .starts_with("Backup FAILED: a&lt;b\n")
        );
        assert_eq!(
            get(NotificationType::Discord)["content"]
                .as_str()
                .unwrap()
                .chars()
                .count(),
            2000
        );
        assert_eq!(get(NotificationType::Webhook), json!({"event": "Failure"}));
    }
}
