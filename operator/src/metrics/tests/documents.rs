//! docs/metrics.md, alerts, dashboard and runbook speak of the series that are there.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use super::*;

fn read(path: &str) -> String {
    let full = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .join(path);
    fs::read_to_string(full).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// Names and types of all series of an operator that has seen an object and written something.
fn exported() -> BTreeMap<String, String> {
    let object = series(settings("0 2 * * *"), &json!({}), json!({}));
    let source = Arc::new(Fake(Mutex::new(vec![(object, Live::default())])));
    let metrics = metrics(&source);
    let write = Write {
        verb: "create",
        resource: "jobs",
        code: 201,
    };
    metrics.writes.get_or_create(&write).inc();
    let text = metrics.text();
    let types = text.lines().filter_map(|l| l.strip_prefix("# TYPE "));
    types
        .map(|line| {
            let (name, kind) = line.split_once(' ').unwrap();
            let total = if kind == "counter" { "_total" } else { "" };
            (format!("{name}{total}"), kind.to_owned())
        })
        .collect()
}

/// Names of series in a PromQL expression: ours begin in two ways only.
fn named(expression: &str) -> BTreeSet<String> {
    let word = |c: char| !(c.is_ascii_alphanumeric() || c == '_');
    let ours = |w: &&str| w.starts_with("mysqlbackup_") || w.starts_with("backup_operator_");
    expression
        .split(word)
        .filter(ours)
        .map(str::to_owned)
        .collect()
}

fn assert_exported(place: &str, expression: &str) {
    let exported = exported();
    let known = |name: &str| {
        let histogram = ["_bucket", "_sum", "_count"];
        let base = histogram.iter().find_map(|s| name.strip_suffix(s));
        exported.contains_key(name)
            || base.is_some_and(|b| exported.get(b).is_some_and(|k| k == "histogram"))
    };
    for name in named(expression) {
        assert!(
            known(&name),
            "{place} asks for {name}, which nobody exports"
        );
    }
}

fn alerts() -> Vec<Value> {
    let rules: Value = serde_yaml::from_str(&read("deploy/alerts/rules.yaml")).unwrap();
    let groups = rules["groups"].as_array().unwrap();
    groups
        .iter()
        .flat_map(|g| g["rules"].as_array().unwrap().clone())
        .collect()
}

#[test]
fn the_page_lists_every_series_with_its_type_and_no_other() {
    let page = read("docs/metrics.md");
    let rows = page.lines().filter_map(|l| l.strip_prefix("| `"));
    let listed: BTreeMap<String, String> = rows
        .map(|row| {
            let mut cells = row.split('|').map(|c| c.trim().trim_matches('`'));
            let (name, kind) = (cells.next().unwrap(), cells.next().unwrap());
            (name.to_owned(), kind.to_owned())
        })
        .collect();
    assert_eq!(listed, exported());
}

#[test]
fn alerts_ask_only_for_what_is_exported() {
    let alerts = alerts();
    assert!(alerts.len() >= 10);
    for rule in &alerts {
        let expression = rule["expr"].as_str().unwrap();
        assert!(!named(expression).is_empty(), "{expression}");
        assert_exported(rule["alert"].as_str().unwrap(), expression);
    }
}

#[test]
fn the_prometheus_rule_object_holds_the_same_rules_as_the_plain_file() {
    let object: Value = serde_yaml::from_str(&read("deploy/alerts/prometheus_rule.yaml")).unwrap();
    assert_eq!(object["kind"], "PrometheusRule");
    let plain: Value = serde_yaml::from_str(&read("deploy/alerts/rules.yaml")).unwrap();
    assert_eq!(object["spec"]["groups"], plain["groups"]);
}

#[test]
fn each_alert_has_a_section_in_the_runbook_and_a_test() {
    let runbook = read("docs/runbook.md");
    let sections: BTreeSet<&str> = runbook
        .lines()
        .filter_map(|l| l.strip_prefix("## "))
        .collect();
    let mut tested = BTreeSet::new();
    for file in ["rules_test.yaml", "rules_long_test.yaml"] {
        let cases: Value = serde_yaml::from_str(&read(&format!("deploy/alerts/{file}"))).unwrap();
        let checks = cases["tests"].as_array().unwrap().iter();
        let checks = checks.flat_map(|t| t["alert_rule_test"].as_array().unwrap());
        let fires = |c: &&Value| c["exp_alerts"].as_array().is_some_and(|a| !a.is_empty());
        tested.extend(
            checks
                .filter(fires)
                .map(|c| c["alertname"].as_str().unwrap().to_owned()),
        );
    }
    let mut alerted = BTreeSet::new();
    for rule in &alerts() {
        let name = rule["alert"].as_str().unwrap().to_owned();
        assert!(
            sections.contains(name.as_str()),
            "docs/runbook.md has no section {name}"
        );
        assert!(tested.contains(&name), "no test sees {name} fire");
        let url = rule["annotations"]["runbook_url"].as_str().unwrap();
        // GitHub's anchor of a one-word heading is the word in lower case.
        let anchor = format!("/docs/runbook.md#{}", name.to_lowercase());
        assert!(url.ends_with(&anchor), "{url} does not end in {anchor}");
        for key in ["summary", "description"] {
            assert!(rule["annotations"][key].is_string(), "{name} lacks {key}");
        }
        assert!(
            rule["labels"]["severity"].is_string(),
            "{name} lacks a severity"
        );
        alerted.insert(name);
    }
    let stale: Vec<_> = sections
        .iter()
        .filter(|s| s.starts_with("Backup") && !alerted.contains(**s))
        .collect();
    assert!(stale.is_empty(), "sections of no alert: {stale:?}");
}

#[test]
fn the_dashboard_asks_only_for_what_is_exported() {
    let dashboard: Value = serde_json::from_str(&read("deploy/dashboards/backup.json")).unwrap();
    let mut queries = 0;
    let panels = dashboard["panels"].as_array().unwrap();
    for panel in panels.iter().filter(|p| p["type"] != "row") {
        let title = panel["title"].as_str().unwrap();
        for target in panel["targets"].as_array().unwrap() {
            let expression = target["expr"].as_str().unwrap();
            assert!(!named(expression).is_empty(), "{title}: {expression}");
            assert_exported(title, expression);
            queries += 1;
        }
    }
    assert!(queries >= 10);
    for variable in dashboard["templating"]["list"].as_array().unwrap() {
        if let Some(query) = variable["query"]["query"].as_str() {
            assert_exported("a variable", query);
        }
    }
}
