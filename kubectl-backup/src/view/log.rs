//! A line of the runner's log as people read it.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::duration::bytes;
use super::progress;
use super::time::Zone;

/// Fields that stand elsewhere in the line, or tell nobody anything.
const ELSEWHERE: [&str; 7] = [
    "timestamp",
    "level",
    "message",
    "event",
    "client",
    "target",
    "span",
];

/// `12:00:03Z stored  key=prod/shop.sql.zst  1.2GiB`: time of day, level where it is no INFO, what
/// happened, then the other fields. A line of another program stays as it is.
pub(crate) fn readable(line: &str, zone: Zone) -> Cow<'_, str> {
    let Ok(Value::Object(found)) = serde_json::from_str(line) else {
        return Cow::Borrowed(line);
    };
    let mut fields = found.clone();
    // The log's format may keep fields in an object of their own.
    if let Some(Value::Object(inner)) = fields.remove("fields") {
        fields.extend(inner);
    }
    let text = |name: &str| fields.get(name).and_then(Value::as_str);
    if text("level").is_none() && text("event").is_none() {
        return Cow::Borrowed(line);
    }
    let at = text("timestamp").and_then(crds::time::parse_rfc3339);
    let mut words: Vec<String> = at.map(|at| zone.time_of_day(at)).into_iter().collect();
    match text("level") {
        Some("WARN") => words.push("warning:".to_owned()),
        Some("ERROR") => words.push("error:".to_owned()),
        _ => {}
    }
    if let Some(progress) = progress::parse(line) {
        words.push(progress.text());
        return Cow::Owned(words.join(" "));
    }
    match (text("event"), text("phase"), text("client")) {
        (Some("phase"), Some(phase), _) => words.push(phase.to_owned()),
        (Some(event), ..) => words.push(spaced(event)),
        (None, _, Some(client)) => words.push(format!("{client}:")),
        _ => {}
    }
    words.extend(text("message").map(str::to_owned));
    let phase = text("event") == Some("phase");
    let rest = others(&fields, |name| phase && name == "phase");
    let mut line = words.join(" ");
    if !rest.is_empty() {
        line.push_str("  ");
        line.push_str(&rest.join("  "));
    }
    Cow::Owned(line)
}

/// `restoreCheck` as `restore check`.
fn spaced(event: &str) -> String {
    let mut text = String::new();
    for c in event.chars() {
        if c.is_ascii_uppercase() {
            text.push(' ');
        }
        text.push(c.to_ascii_lowercase());
    }
    text
}

/// Fields as `name=value`; bytes in units.
fn others(fields: &Map<String, Value>, leaves_out: impl Fn(&str) -> bool) -> Vec<String> {
    let shown = fields.iter().filter(|(name, value)| {
        !ELSEWHERE.contains(&name.as_str()) && !leaves_out(name) && !value.is_null()
    });
    let one = |(name, value): (&String, &Value)| match (value, value.as_i64()) {
        (_, Some(number)) if name.ends_with("Bytes") => format!("{name}={}", bytes(number)),
        (Value::String(text), _) => format!("{name}={text}"),
        (value, _) => format!("{name}={value}"),
    };
    shown.map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn u17_lines_of_the_runner_are_read_by_people() {
        for (line, expected) in [
            (
                r#"{"timestamp":"2026-01-02T12:00:03.123456Z","level":"INFO","event":"phase","phase":"Dumping"}"#,
                "12:00:03Z Dumping",
            ),
            (
                r#"{"timestamp":"2026-01-02T12:00:03Z","level":"INFO","event":"progress","phase":"Dumping","rawBytes":641728512,"storedBytes":1,"bytesPerSecond":44040192,"percent":34}"#,
                "12:00:03Z Dumping  612MiB  34%  42MiB/s  eta 28s",
            ),
            (
                r#"{"timestamp":"2026-01-02T12:00:03Z","level":"WARN","message":"the store has no conditional writes"}"#,
                "12:00:03Z warning: the store has no conditional writes",
            ),
            (
                r#"{"timestamp":"2026-01-02T12:00:03Z","level":"INFO","client":"mariadb-dump","message":"-- Connecting to db"}"#,
                "12:00:03Z mariadb-dump: -- Connecting to db",
            ),
            (
                r#"{"timestamp":"2026-01-02T12:00:03Z","level":"INFO","event":"artefact","key":"p/1.sql.zst","storedBytes":1932735283,"rows":12}"#,
                "12:00:03Z artefact  key=p/1.sql.zst  rows=12  storedBytes=1.8GiB",
            ),
            (
                r#"{"timestamp":"2026-01-02T12:00:03Z","level":"ERROR","fields":{"message":"no space left","reason":"NoSpace"}}"#,
                "12:00:03Z error: no space left  reason=NoSpace",
            ),
            (
                r#"{"timestamp":"2026-01-02T12:00:03Z","level":"INFO","event":"restoreCheck","dump":"shop"}"#,
                "12:00:03Z restore check  dump=shop",
            ),
        ] {
            assert_eq!(readable(line, Zone::Utc), expected);
        }
    }

    #[test]
    fn lines_of_others_stay() {
        for line in [
            "",
            "dumping shop",
            "{}",
            r#"{"a":1}"#,
            "[1]",
            r#"{"level":"#,
        ] {
            assert_eq!(readable(line, Zone::Utc), line);
        }
    }
}
