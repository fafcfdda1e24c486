//! The table of exit codes in docs/runner.md names every reason there is, at its codes.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "tests"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crds::report::Reason;

/// Reasons of the table by exit code.
fn table() -> BTreeMap<i32, BTreeSet<Reason>> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/runner.md");
    let page = std::fs::read_to_string(page).unwrap();
    let section = page.split("## Exit codes").nth(1).unwrap();
    let rows = section.lines().filter_map(|line| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let code = cells.get(1)?.parse().ok()?;
        let word = |c: char| !c.is_ascii_alphanumeric();
        let humps = |word: &&str| word.chars().filter(char::is_ascii_uppercase).count() > 1;
        let reasons = cells.get(3)?.split(word).filter_map(|word| {
            let found = Reason::parse(word);
            assert!(found.is_some() || !humps(&word), "{word} is no reason");
            found
        });
        Some((code, reasons.collect()))
    });
    rows.take(7).collect()
}

#[test]
fn the_table_names_every_reason_at_its_code() {
    let table = table();
    assert_eq!(table.len(), 7);
    for (code, listed) in &table {
        let all = Reason::ALL.iter().copied();
        let wanted: BTreeSet<Reason> = all.filter(|r| r.exit_codes().contains(code)).collect();
        assert_eq!(listed, &wanted, "exit code {code} of docs/runner.md");
    }
}

/// A reason that no failure has is a row that misleads.
#[test]
fn the_runner_has_every_reason() {
    fn source(directory: &Path, into: &mut String) {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                source(&path, into);
            } else {
                into.push_str(&std::fs::read_to_string(&path).unwrap());
            }
        }
    }
    let mut text = String::new();
    source(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
        &mut text,
    );
    for reason in Reason::ALL {
        let named = |end: char| text.contains(&format!("Reason::{reason}{end}"));
        assert!(
            [',', '.', ' ', ')', '\n', ';', ']'].into_iter().any(named),
            "nothing ends with {reason}"
        );
    }
}
