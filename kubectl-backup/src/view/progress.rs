//! The runner's progress lines, read and told.

use serde_json::Value;

use super::duration::{bytes, human};

/// How far a dump or a restore is.
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
    /// The table that is restored, as database.table, and rows that are.
    pub(crate) table: Option<String>,
    pub(crate) rows: Option<i64>,
    /// Seconds that are left, as far as the runner can tell.
    pub(crate) left: Option<i64>,
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
    let phase = fields["step"].as_str().or(fields["phase"].as_str());
    Some(Progress {
        phase: phase.unwrap_or_default().to_owned(),
        table: fields["table"].as_str().map(str::to_owned),
        rows: number("rows"),
        left: number("secondsLeft"),
        raw: number("rawBytes")?,
        rate: number("bytesPerSecond").unwrap_or(0),
        percent: fields["percent"].as_u64(),
    })
}

impl Progress {
    /// `Dumping  612MiB  34%  42MiB/s  eta 29s`, of a restore with table and rows.
    pub(crate) fn text(&self) -> String {
        let mut text = self.phase.clone();
        if let Some(table) = &self.table {
            text.push_str(&format!("  {table}"));
        }
        if let Some(rows) = self.rows {
            text.push_str(&format!("  {rows} rows"));
        }
        text.push_str(&format!("  {}", bytes(self.raw)));
        if let Some(percent) = self.percent {
            text.push_str(&format!("  {percent}%"));
        }
        text.push_str(&format!("  {}/s", bytes(self.rate)));
        if let Some(left) = self.left.or_else(|| self.by_rate()) {
            text.push_str(&format!("  eta {}", human(left)));
        }
        text
    }

    /// Seconds that are left by the rate of the moment.
    fn by_rate(&self) -> Option<i64> {
        // A runner of this version tells of a restore whether it knows.
        let percent = self.percent.filter(|p| *p > 0 && self.rows.is_none())?;
        let percent = i64::try_from(percent).ok()?;
        (self.rate > 0).then(|| self.raw / percent * (100 - percent) / self.rate)
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
    fn of_a_restore_table_rows_and_what_the_runner_says_is_left() {
        let line = r#"{"event":"progress","phase":"Restoring","step":"Rows","table":"shop.orders","rows":1200000,"rawBytes":641728512,"storedBytes":0,"bytesPerSecond":44040192,"percent":34,"secondsLeft":150}"#;
        let text = parse(line).map(|p| p.text());
        assert_eq!(
            text.as_deref(),
            Some("Rows  shop.orders  1200000 rows  612MiB  34%  42MiB/s  eta 2m30s")
        );
        let line = line.replace(",\"secondsLeft\":150", "");
        let text = parse(&line).map(|p| p.text());
        assert_eq!(
            text.as_deref(),
            Some("Rows  shop.orders  1200000 rows  612MiB  34%  42MiB/s")
        );
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
