//! What `doctor` found, line by line with a remedy each.

use crds::verdict::State;
use serde_json::json;

use super::output::structured;
use super::table::Tone;
use crate::cli::StructuredOutput;
use crate::error::Error;

/// One line of the report.
pub(crate) struct Finding {
    /// What came out; unknown is what could not be found out.
    pub(crate) verdict: State,
    what: String,
    remedy: Option<String>,
}

/// Findings as they come.
#[derive(Default)]
pub(crate) struct Report {
    /// In the order they came.
    pub(crate) findings: Vec<Finding>,
}

impl Report {
    /// Adds a finding.
    pub(crate) fn add(&mut self, verdict: State, what: impl Into<String>, remedy: Option<&str>) {
        self.findings.push(Finding {
            verdict,
            what: what.into(),
            remedy: remedy.map(str::to_owned),
        });
    }

    /// Adds a check that ended in an error.
    pub(crate) fn failed(&mut self, verdict: State, what: &str, error: &Error) {
        let message = error.message.lines().next().unwrap_or_default();
        self.findings.push(Finding {
            verdict,
            what: format!("{what}: {message}"),
            remedy: error.hint.clone(),
        });
    }
}

/// The report as people read it, or as JSON and YAML.
pub(crate) fn render(
    report: &Report,
    output: Option<StructuredOutput>,
    ascii: bool,
    color: bool,
) -> String {
    if let Some(format) = output {
        let items: Vec<_> = report
            .findings
            .iter()
            .map(|f| json!({ "verdict": word(f.verdict), "message": f.what, "remedy": f.remedy }))
            .collect();
        return structured(&json!({ "findings": items }), format);
    }
    let mut text = String::new();
    for finding in &report.findings {
        let mark = match (finding.verdict, ascii) {
            (State::Good, false) => "✔",
            (State::Warning, false) => "⚠",
            (State::Critical, false) => "✖",
            (State::Unknown, false) => "-",
            (verdict, true) => word(verdict),
        };
        let tone = match finding.verdict {
            State::Good => Tone::Good,
            State::Warning => Tone::Attention,
            State::Critical => Tone::Bad,
            State::Unknown => Tone::Plain,
        };
        let mark = if color {
            tone.paint(mark)
        } else {
            mark.to_owned()
        };
        text.push_str(&format!("{mark} {}\n", finding.what));
        if let Some(remedy) = finding
            .remedy
            .as_ref()
            .filter(|_| finding.verdict != State::Good)
        {
            text.push_str(&format!("    fix: {remedy}\n"));
        }
    }
    text
}

fn word(verdict: State) -> &'static str {
    match verdict {
        State::Good => "ok",
        State::Warning => "warning",
        State::Critical => "failed",
        State::Unknown => "unknown",
    }
}
