//! The reference in docs/cli.md, made from the same description that parses the command line.

use std::fmt::Write;

use clap::{Arg, Command};

use crate::rbac;

/// The reference as markdown.
fn markdown() -> String {
    let mut root = super::command();
    root.build();
    let mut text = String::from(
        "# kubectl backup\n\nGenerated from the program by its tests (`SNAPSHOTS=overwrite cargo test -p kubectl-backup docs`); do not edit.\n\n",
    );
    text.push_str("A verb acts in the namespace of the context unless `-n` or `-A` says otherwise. NAME alone is enough where it is unique over all kinds; else TYPE/NAME. Results go to stdout, everything else to stderr; with `-o json|yaml|name` stdout holds nothing but that.\n\n");
    text.push_str("Flags stand before or after the verb, but after the word `backup`: kubectl itself refuses flags in front of a plugin's name (`kubectl --context x backup` is kubectl's own error).\n\n");
    text.push_str(CODES);
    text.push_str("\n## Flags of every verb\n\n");
    flags(&mut text, root.get_arguments());
    for command in root.get_subcommands().filter(|c| !c.is_hide_set()) {
        section(&mut text, &root, command, "kubectl backup");
    }
    text.push_str("\n## Rights\n\nWhat each verb needs in RBAC; `kubectl backup doctor` asks for each. No verb has to read a Secret: those that start pods look whether what the pod needs is there, and which keys it has, where they may; they keep and show no value. A name that is not found in an empty namespace makes any verb ask whether the namespace is there (get namespaces); without that right the name alone is said.\n\n");
    text.push_str(&rbac::markdown());
    text
}

const CODES: &str = "## Exit status

| status | meaning |
|---|---|
| 0 | done |
| 1 | error without a status of its own; `diff`: something differs |
| 2 | usage: a flag, argument or value must be changed |
| 3 | nothing had to change, with `--error-unchanged` |
| 4 | the run or verification ended badly |
| 5 | not found |
| 6 | denied, or not logged in |
| 7 | the kind is not installed, or no operator acts on it |
| 8 | the API server does not answer |
| 124 | time is up; what was waited for goes on |
| 130, 143 | SIGINT, SIGTERM |
| 141 | the reader of the output went away |

`health` has those of monitoring systems: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN.
";

fn section(text: &mut String, root: &Command, command: &Command, path: &str) {
    if command.get_name() == "help" {
        return;
    }
    let path = format!("{path} {}", command.get_name());
    let _ = writeln!(text, "\n## {path}\n");
    let aliases: Vec<&str> = command.get_visible_aliases().collect();
    let about = command
        .get_about()
        .map(ToString::to_string)
        .unwrap_or_default();
    let _ = writeln!(text, "{about}.\n");
    if !aliases.is_empty() {
        let _ = writeln!(text, "Also: {}.\n", aliases.join(", "));
    }
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ");
    let _ = writeln!(text, "```\n{usage}\n```\n");
    let own = command
        .get_arguments()
        .filter(|a| !root.get_arguments().any(|r| r.get_id() == a.get_id()));
    flags(text, own);
    if let Some(examples) = command.get_after_help() {
        let lines = examples.to_string();
        let lines: Vec<&str> = lines.lines().skip(1).map(str::trim).collect();
        let _ = writeln!(text, "\nFor example:\n```\n{}\n```", lines.join("\n"));
    }
    for inner in command.get_subcommands().filter(|c| !c.is_hide_set()) {
        section(text, root, inner, &path);
    }
}

/// A table of arguments and flags.
fn flags<'a>(text: &mut String, all: impl Iterator<Item = &'a Arg>) {
    let all: Vec<&Arg> = all
        .filter(|a| !a.is_hide_set() && a.get_id() != "help")
        .collect();
    if all.is_empty() {
        return;
    }
    text.push_str("| flag | meaning |\n|---|---|\n");
    for arg in all {
        let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
        let values: Vec<String> = arg
            .get_possible_values()
            .iter()
            .filter(|_| arg.get_action().takes_values())
            .map(|v| v.get_name().to_owned())
            .collect();
        let default: Vec<String> = arg
            .get_default_values()
            .iter()
            .map(|v| v.to_string_lossy().into_owned())
            .collect();
        let _ = write!(
            text,
            "| {} | {}",
            name(arg).replace('|', "\\|"),
            help.replace('|', "\\|")
        );
        if !values.is_empty() && values != ["true", "false"] {
            let _ = write!(text, ": {}", values.join(", "));
        }
        if !default.concat().is_empty()
            && arg.get_action().takes_values()
            && !arg.is_hide_default_value_set()
        {
            let _ = write!(text, " (default {})", default.join(","));
        }
        text.push_str(" |\n");
    }
}

fn name(arg: &Arg) -> String {
    let value = arg.get_value_names().unwrap_or_default().join(" ");
    if arg.is_positional() {
        return format!(
            "`{}`",
            if value.is_empty() {
                arg.get_id().to_string()
            } else {
                value
            }
        );
    }
    let mut names: Vec<String> = arg
        .get_short()
        .map(|c| format!("-{c}"))
        .into_iter()
        .collect();
    let longs = arg.get_long_and_visible_aliases().unwrap_or_default();
    names.extend(longs.iter().map(|l| format!("--{l}")));
    let takes = arg.get_action().takes_values();
    let value = if takes && !value.is_empty() {
        format!(" {value}")
    } else {
        String::new()
    };
    format!("`{}{value}`", names.join(", "))
}

#[test]
fn docs_cli_md_is_current() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/cli.md");
    snapbox::assert_data_eq!(
        markdown(),
        snapbox::Data::read_from(&path, Some(snapbox::data::DataFormat::Text)).raw()
    );
}

#[test]
fn every_verb_of_the_rights_exists() {
    let mut root = super::command();
    root.build();
    for need in rbac::NEEDS {
        assert!(root.find_subcommand(need.verb).is_some(), "{}", need.verb);
    }
}

#[test]
fn the_command_line_is_consistent() {
    super::command().debug_assert();
}

/// Each row of docs/features.md names a test that is there.
#[test]
fn features_are_proven() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let text = std::fs::read_to_string(root.join("features.md")).unwrap_or_default();
    let rows: Vec<&str> = text
        .lines()
        .filter(|l| l.starts_with("| ") && l.contains(" | y | "))
        .collect();
    assert!(rows.len() > 40, "{}", rows.len());
    for row in rows.iter().filter(|r| !r.starts_with("| feature")) {
        let link = row.rsplit(" | ").next().unwrap_or_default();
        let proofs: Vec<(&str, &str)> = link
            .split("](")
            .zip(link.split("](").skip(1))
            .filter_map(|(before, after)| {
                Some((before.rsplit_once('[')?.1, after.split(')').next()?))
            })
            .collect();
        assert!(!proofs.is_empty(), "no proof: {row}");
        for (test, file) in proofs {
            let source = std::fs::read_to_string(root.join(file)).unwrap_or_default();
            // Of Rust, or of a Python script of tests/manifests.
            let there = ["fn", "def"].map(|word| format!("{word} {test}("));
            assert!(
                there.iter().any(|text| source.contains(text)),
                "{test} is not in {file}"
            );
        }
    }
}
