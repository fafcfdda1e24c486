//! The table of exit codes in docs/runner.md names every reason there is, at its code.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "tests"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// CamelCase words of the source that are no reasons.
const OTHER_WORDS: [&str; 15] = [
    "CronBackup",
    "IsTruncated",
    "LastModified",
    "MariaDB",
    "MysqlBackup",
    "NextKeyMarker",
    "NextPartNumberMarker",
    "NextUploadIdMarker",
    "PostgreSQL",
    "ReadingBack",
    "StatusCode",
    "StatusMessage",
    "UploadId",
    "VerifyCA",
    "VerifyIdentity",
];

/// The source, without unit tests and without blanks after an opening parenthesis.
fn source(directory: &Path, into: &mut String) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            source(&path, into);
        } else if path.file_name().is_some_and(|n| n != "tests.rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]\nmod tests").next().unwrap();
            let mut after_parenthesis = false;
            into.extend(code.chars().filter(|c| {
                let kept = !(after_parenthesis && c.is_whitespace());
                after_parenthesis = *c == '(' || after_parenthesis && c.is_whitespace();
                kept
            }));
        }
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split('"').filter(|word| {
        let humps = word.chars().filter(char::is_ascii_uppercase).count();
        humps > 1
            && word.len() > humps
            && word.starts_with(|c: char| c.is_ascii_uppercase())
            && word.chars().all(|c| c.is_ascii_alphabetic())
            && word.chars().nth(1).is_some_and(|c| c.is_ascii_lowercase())
    })
}

/// Reasons of the table by exit code.
fn table() -> BTreeMap<u8, BTreeSet<String>> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/runner.md");
    let page = std::fs::read_to_string(page).unwrap();
    let section = page.split("## Exit codes").nth(1).unwrap();
    let rows = section.lines().filter_map(|line| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let code = cells.get(1)?.parse().ok()?;
        let word = |c: char| !c.is_ascii_alphanumeric();
        let reasons = cells
            .get(3)?
            .split(word)
            .filter(|w| w.starts_with(|c: char| c.is_ascii_uppercase()));
        Some((code, reasons.map(str::to_owned).collect()))
    });
    rows.take(7).collect()
}

#[test]
fn the_table_names_every_reason_at_its_code() {
    let mut text = String::new();
    source(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
        &mut text,
    );
    let table = table();
    assert_eq!(table.len(), 7);
    for (constructor, code) in [
        ("other", 1),
        ("source", 3),
        ("store", 4),
        ("verification", 5),
    ] {
        let call = format!("Failure::{constructor}(\"");
        let mut found = 0;
        for rest in text.split(&call).skip(1) {
            let reason = rest.split('"').next().unwrap();
            assert!(
                table[&code].contains(reason),
                "{reason} is not at exit code {code} of docs/runner.md"
            );
            found += 1;
        }
        assert!(found > 3, "{constructor}: {found}");
    }
    let listed: BTreeSet<&str> = table.values().flatten().map(String::as_str).collect();
    for word in words(&text) {
        assert!(
            listed.contains(word) || OTHER_WORDS.contains(&word),
            "{word} is in no row of docs/runner.md"
        );
    }
    for reason in listed {
        let literal = format!("\"{reason}\"");
        assert!(
            text.contains(&literal),
            "docs/runner.md: nothing has the reason {reason}"
        );
    }
}
