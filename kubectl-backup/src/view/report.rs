//! What `doctor` found, line by line with a remedy each.

use serde_json::json;

use super::output::structured;
use super::table::Tone;
use crate::cli::StructuredOutput;
use crate::error::Error;

/// What a check found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// In order.
    Good,
    /// Worth a look.
    Attention,
    /// Wrong.
    Bad,
    /// Could not be found out.
    Open,
}

/// One line of the report.
pub(crate) struct Finding {
    /// What came out.
    pub(crate) verdict: Verdict,
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
    pub(crate) fn add(&mut self, verdict: Verdict, what: impl Into<String>, remedy: Option<&str>) {
        self.findings.push(Finding {
            verdict,
            what: what.into(),
            remedy: remedy.map(str::to_owned),
        });
    }

    /// Adds a check that ended in an error.
    pub(crate) fn failed(&mut self, verdict: Verdict, what: &str, error: &Error) {
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
            (Verdict::Good, false) => "✔",
            (Verdict::Attention, false) => "⚠",
            (Verdict::Bad, false) => "✖",
            (Verdict::Open, false) => "-",
            (verdict, true) => word(verdict),
        };
        let tone = match finding.verdict {
            Verdict::Good => Tone::Good,
            Verdict::Attention => Tone::Attention,
            Verdict::Bad => Tone::Bad,
            Verdict::Open => Tone::Plain,
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
            .filter(|_| finding.verdict != Verdict::Good)
        {
            text.push_str(&format!("    fix: {remedy}\n"));
        }
    }
    text
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Good => "ok",
        Verdict::Attention => "warning",
        Verdict::Bad => "failed",
        Verdict::Open => "unknown",
    }
}
