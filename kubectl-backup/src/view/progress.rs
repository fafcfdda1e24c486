//! The runner's progress lines, read and told.

use serde_json::Value;

use super::duration::{bytes, human};

/// How far a dump is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Progress {
    /// Phase, such as `Dumping`.
    pub(crate) phase: String,
    /// Bytes of the dump so far.
    pub(crate) raw: i64,
    /// Bytes a second.
    pub(crate) rate: i64,
    /// Percent, at most 99 while it runs.
    pub(crate) percent: Option<u64>,
}

/// Reads a line of the runner's log; `None` if it is another kind of line.
pub(crate) fn parse(line: &str) -> Option<Progress> {
    if !line.contains("progress") {
        return None;
    }
    let value: Value = serde_json::from_str(line).ok()?;
    // The log's format may keep fields in an object of their own.
    let fields = if value["fields"].is_object() {
        &value["fields"]
    } else {
        &value
    };
    if fields["event"] != "progress" {
        return None;
    }
    let number = |name: &str| fields[name].as_i64();
    Some(Progress {
        phase: fields["phase"].as_str().unwrap_or_default().to_owned(),
        raw: number("rawBytes")?,
        rate: number("bytesPerSecond").unwrap_or(0),
        percent: fields["percent"].as_u64(),
    })
}

impl Progress {
    /// `Dumping  612MiB  34%  42MiB/s  eta 29s`.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("{}  {}", self.phase, bytes(self.raw));
        if let Some(percent) = self.percent {
            text.push_str(&format!("  {percent}%"));
        }
        text.push_str(&format!("  {}/s", bytes(self.rate)));
        if let Some(percent) = self
            .percent
            .and_then(|p| i64::try_from(p).ok())
            .filter(|p| *p > 0)
            && self.rate > 0
        {
            let left = self.raw / percent * (100 - percent) / self.rate;
            text.push_str(&format!("  eta {}", human(left)));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_shapes_of_a_line() {
        let flat = r#"{"event":"progress","phase":"Dumping","rawBytes":641728512,"storedBytes":1,"bytesPerSecond":44040192,"percent":34}"#;
        let nested = format!(r#"{{"level":"INFO","fields":{flat}}}"#);
        for line in [flat, &nested] {
            let progress = parse(line).map(|p| p.text());
            assert_eq!(
                progress.as_deref(),
                Some("Dumping  612MiB  34%  42MiB/s  eta 28s")
            );
        }
    }

    #[test]
    fn other_lines() {
        for line in [
            "",
            "progress",
            "{}",
            r#"{"event":"done","note":"progress"}"#,
        ] {
            assert_eq!(parse(line), None, "{line}");
        }
    }
}
