//! The verbs in the root's help, grouped by what one is about to do, as kubectl groups its own.

use clap::Command;

/// Groups and their verbs.
const GROUPS: [(&str, &[&str]); 5] = [
    (
        "Looking",
        &[
            "list", "describe", "runs", "logs", "top", "health", "report", "doctor",
        ],
    ),
    ("Running", &["run-now", "wait", "cancel", "verify"]),
    ("Restoring", &["restore", "show", "binlog", "download"]),
    (
        "Settings",
        &[
            "create", "set", "suspend", "resume", "schedule", "diff", "export", "import", "delete",
        ],
    ),
    ("Other", &["bundle", "completion", "man", "version", "help"]),
];

/// The heading that clap gives verbs.
const HEADING: &str = "Commands:";

/// The root's help with its verbs in groups; any other text as it is.
pub(crate) fn grouped(root: &Command, help: &str) -> String {
    let lines: Vec<&str> = help.lines().collect();
    let about = root
        .get_about()
        .map(ToString::to_string)
        .unwrap_or_default();
    let of_root = lines.first().is_some_and(|line| line.contains(&about));
    let heading = lines.iter().position(|line| line.contains(HEADING));
    let (Some(heading), true) = (heading, of_root) else {
        return help.to_owned();
    };
    let length = lines[heading + 1..]
        .iter()
        .take_while(|line| !line.trim().is_empty())
        .count();
    let verbs = &lines[heading + 1..heading + 1 + length];
    let verb_of = |line: &str| -> String {
        let plain = console::strip_ansi_codes(line).into_owned();
        plain
            .split_whitespace()
            .next()
            .unwrap_or_default()
            .to_owned()
    };
    let mut all: Vec<String> = lines[..heading].iter().map(|l| (*l).to_owned()).collect();
    for (index, (title, names)) in GROUPS.iter().enumerate() {
        if index > 0 {
            all.push(String::new());
        }
        all.push(lines[heading].replace(HEADING, &format!("{title}:")));
        for name in *names {
            let found = verbs.iter().filter(|line| verb_of(line) == *name);
            all.extend(found.map(|line| (*line).to_owned()));
        }
    }
    all.extend(
        lines[heading + 1 + length..]
            .iter()
            .map(|l| (*l).to_owned()),
    );
    all.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn u16_each_verb_stands_in_one_group() {
        let mut root = super::super::command();
        root.build();
        let shown = root.get_subcommands().filter(|c| !c.is_hide_set());
        let mut verbs: Vec<&str> = shown.map(Command::get_name).collect();
        let mut grouped: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, names)| *names)
            .copied()
            .collect();
        verbs.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(verbs, grouped);
    }
}
