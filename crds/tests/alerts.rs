//! An alert rings as loud as the verdict that it is for: the table of docs/metrics.md, and the rules that
//! promtool tests.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "tests"
)]

use std::collections::BTreeMap;

fn read(path: &str) -> String {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Alert and severity of a rule file.
fn severities(path: &str) -> BTreeMap<String, String> {
    let (mut all, mut alert) = (BTreeMap::new(), String::new());
    for line in read(path).lines().map(str::trim) {
        if let Some(name) = line.strip_prefix("- alert: ") {
            name.clone_into(&mut alert);
        }
        if let Some(severity) = line.strip_prefix("severity: ") {
            all.insert(alert.clone(), severity.to_owned());
        }
    }
    assert!(all.len() > 10, "{path}: {all:?}");
    all
}

#[test]
fn an_alert_is_as_severe_as_its_verdict() {
    let rules = severities("deploy/alerts/rules.yaml");
    assert_eq!(rules, severities("deploy/alerts/prometheus_rule.yaml"));
    let text = read("docs/metrics.md");
    let (_, table) = text
        .split_once("| reason | state | meaning | alert |\n")
        .unwrap();
    let mut seen = 0;
    for row in table
        .lines()
        .skip(1)
        .take_while(|line| line.starts_with('|'))
    {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        // Of a state that grows worse with time the alert is the worst.
        let severity = ["critical", "warning"]
            .into_iter()
            .find(|word| cells[1].contains(word));
        for alert in cells[3].split(", ").filter(|alert| !alert.is_empty()) {
            seen += 1;
            assert_eq!(rules.get(alert).map(String::as_str), severity, "{row}");
        }
    }
    assert!(seen > 8, "{seen}");
}
