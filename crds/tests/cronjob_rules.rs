//! "CronJob rule N" in code and documents names a line of docs/cronjob.md.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    missing_docs,
    reason = "tests"
)]

use std::path::{Path, PathBuf};

fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs" || e == "md") {
            found.push(path);
        }
    }
}

#[test]
fn h7_each_rule_that_is_named_is_written_down() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let page = std::fs::read_to_string(root.join("docs/cronjob.md")).unwrap();
    let listed: Vec<usize> = page
        .lines()
        .filter_map(|line| line.split_once(". ")?.0.parse().ok())
        .collect();
    assert_eq!(listed, (1..=49).collect::<Vec<_>>());
    let mut files = vec![];
    for part in ["crds", "operator", "runner", "kubectl-backup", "docs"] {
        sources(&root.join(part), &mut files);
    }
    let mut named = 0;
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        for after in text.split("CronJob rule ").skip(1) {
            let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
            let Ok(number) = digits.parse::<usize>() else {
                continue;
            };
            named += 1;
            assert!(
                listed.contains(&number),
                "{}: rule {number}",
                file.display()
            );
        }
        assert!(
            !text.contains(concat!("(points ", "C")),
            "{}: names a list that is not in the repository",
            file.display()
        );
    }
    assert!(named > 20, "only {named} rules are named");
}
