//! `schedule` through the real binary: both files of vectors, one process each.

use super::{Ran, bare};

const VECTORS: &str = include_str!("../../../crds/tests/data/cron_vectors.tsv");
const QUIRKS: &str = include_str!("../../../crds/tests/data/cron_vectors_quirks.tsv");

fn next(expression: &str, zone: &str, start: &str) -> String {
    let expression = expression.replace("\\t", "\t");
    let ran = Ran::of(
        bare()
            .args([
                "schedule",
                "next",
                "--schedule",
                &expression,
                "--time-zone",
                zone,
            ])
            .args(["--from", start, "-c", "3", "-o", "json"])
            .output()
            .unwrap(),
    );
    let value: serde_json::Value = serde_json::from_str(&ran.out).unwrap_or_default();
    match ran.code {
        Some(0) => {
            let next = value["next"].as_array().unwrap();
            let texts: Vec<&str> = next.iter().map(|v| v.as_str().unwrap()).collect();
            if texts.is_empty() {
                "never".into()
            } else {
                texts.join(",")
            }
        }
        Some(2) if value["error"].is_string() => "error".into(),
        code => format!("exit {code:?}: {}", ran.err),
    }
}

fn check(file: &str, column: usize, count: usize) {
    let rows: Vec<Vec<&str>> = file
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| line.split('\t').collect())
        .collect();
    assert_eq!(rows.len(), count);
    let wrong: Vec<String> = rows
        .iter()
        .filter_map(|row| {
            let got = next(row[0], row[1], row[2]);
            let want = if row[column].starts_with("error") {
                "error"
            } else {
                row[column]
            };
            (got != want).then(|| format!("{:?}: want {want}, got {got}", &row[..3]))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_vector() {
    check(VECTORS, 3, 344);
}

#[test]
fn every_quirk_by_the_wall_clock() {
    check(QUIRKS, 4, 41);
}

#[test]
fn an_invalid_expression_is_plain_text_on_stderr() {
    let ran = Ran::of(
        bare()
            .args(["schedule", "next", "--schedule", "0 0 * * 7"])
            .output()
            .unwrap(),
    );
    let ran = ran.fails(2, "error: invalid schedule \"0 0 * * 7\": day of week 7 is outside 0-6 (field 5); Sunday is 0 or SUN");
    assert_eq!(ran.out, "");
    let ran = Ran::of(
        bare()
            .args([
                "schedule",
                "next",
                "--schedule",
                "@daily",
                "--time-zone",
                "Mars/X",
            ])
            .output()
            .unwrap(),
    );
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.err
            .starts_with("error: invalid --time-zone \"Mars/X\": unknown time zone"),
        "{}",
        ran.err
    );
}

#[test]
fn explained_in_words_with_what_daylight_saving_does() {
    let ran = Ran::of(
        bare()
            .args([
                "schedule",
                "explain",
                "30 2 * * *",
                "--time-zone",
                "Europe/Berlin",
                "-c",
                "2",
            ])
            .args(["--from", "2027-01-01T00:00:00Z"])
            .output()
            .unwrap(),
    )
    .ok();
    let lines: Vec<&str> = ran.out.lines().collect();
    assert_eq!(lines[0], "At 02:30 every day (Europe/Berlin)");
    assert!(
        lines[1].starts_with("2027-01-01T02:30:00+01:00   in "),
        "{}",
        lines[1]
    );
    assert_eq!(
        lines[3..],
        [
            "note: 2027-03-28 02:30 does not exist in Europe/Berlin (clocks go forward): skipped",
            "note: 2027-10-31 02:30 comes twice in Europe/Berlin (clocks go back): runs twice",
        ]
    );
}
