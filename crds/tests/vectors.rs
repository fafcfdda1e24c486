//! Every row of the vector files: expressions, zones and instants that were checked with the real
//! Go code of robfig/cron v3.0.1, and rows where the wall clock is right and that code is not.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use chrono::{DateTime, Utc};
use crds::schedule::Schedule;

const VECTORS: &str = include_str!("data/cron_vectors.tsv");
const QUIRKS: &str = include_str!("data/cron_vectors_quirks.tsv");

/// The rows of a file as columns, without comments.
fn rows(file: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    let lines = file
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| line.split('\t').collect())
}

/// What a vector's last column says of an expression: instants, `never` or `error`.
fn answer(expression: &str, zone: &str, start: &str) -> String {
    let expression = expression.replace("\\t", "\t");
    let Ok(schedule) = Schedule::parse(&expression, Some(zone)) else {
        return "error".to_owned();
    };
    let start: DateTime<Utc> = start.parse().unwrap();
    let mut found: Vec<String> = Vec::new();
    let mut at = start;
    while let Some(next) = schedule.next_after(at, start) {
        found.push(next.format("%Y-%m-%dT%H:%M:%SZ").to_string());
        if found.len() == 3 {
            break;
        }
        at = next;
    }
    if found.is_empty() {
        "never".to_owned()
    } else {
        found.join(",")
    }
}

fn failures(file: &'static str, column: usize) -> (usize, Vec<String>) {
    let mut count = 0;
    let mut failed = Vec::new();
    for row in rows(file) {
        count += 1;
        let (want, got) = (row[column], answer(row[0], row[1], row[2]));
        let same = if want.starts_with("error") {
            got == "error"
        } else {
            got == want
        };
        if !same {
            failed.push(format!("{:?}\n  want {want}\n  got  {got}", &row[..3]));
        }
    }
    (count, failed)
}

#[test]
fn all_vectors() {
    let (count, failed) = failures(VECTORS, 3);
    assert_eq!(count, 344);
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn all_quirks_by_the_wall_clock() {
    let (count, failed) = failures(QUIRKS, 4);
    assert_eq!(count, 41);
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// The quirk rows do tell the two readings apart: none may pass with the other column.
#[test]
fn quirk_rows_differ_between_the_columns() {
    let same = rows(QUIRKS).filter(|row| row[3] == row[4]).count();
    assert_eq!(same, 0);
    assert_eq!(failures(QUIRKS, 3).1.len(), 41);
}
