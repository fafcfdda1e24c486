//! Feishu and Lark group bots: errors come with HTTP status 200 and a code.

use serde_json::{Value, json};

use super::Notice;

pub(super) fn body(notice: &Notice) -> Value {
    json!({"msg_type": "text", "content": {"text": notice.text()}})
}

/// A good answer has `code` 0, or `StatusCode` 0 from older bots.
pub(super) fn judge(status: u16, answer: &str) -> Result<(), String> {
    if !(200..300).contains(&status) {
        return Err(format!("the bot answered with HTTP status {status}"));
    }
    let value: Value = serde_json::from_str(answer).map_err(|_| {
        "the bot's answer is not JSON: check that APIURL is a bot's webhook".to_owned()
    })?;
    let code = value.get("code").or_else(|| value.get("StatusCode"));
    match code.and_then(Value::as_i64) {
        Some(0) => Ok(()),
        Some(code) => {
            let why = value.get("msg").or_else(|| value.get("StatusMessage"));
            let why = why.and_then(Value::as_str).unwrap_or_default();
            Err(format!(
                "the bot refused with code {code} {}",
                crds::report::clean(why, 200)
            ))
        }
        None => {
            Err("the bot's answer has no code: check that APIURL is a bot's webhook".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_code_zero_is_good() {
        for good in [
            r#"{"code":0,"msg":"success"}"#,
            r#"{"StatusCode":0,"StatusMessage":"success"}"#,
        ] {
            assert_eq!(judge(200, good), Ok(()), "{good}");
        }
        for (status, bad) in [
            (
                200,
                r#"{"code":19001,"msg":"param invalid: incoming webhook access token invalid"}"#,
            ),
            (200, "ok"),
            (200, "{}"),
            (302, r#"{"code":0}"#),
            (500, r#"{"code":0}"#),
        ] {
            assert!(judge(status, bad).is_err(), "{status} {bad}");
        }
    }
}
