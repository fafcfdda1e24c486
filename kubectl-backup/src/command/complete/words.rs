//! Completion (PURE): what may come next, by the same description of the command line that parses
//! it. The protocol is cobra's: one candidate a line, a tab and its description, then `:N`.

use clap::{Arg, ArgAction, Command};

/// What completes a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// These words, with what they mean.
    Words(Vec<(String, String)>),
    /// Names of objects.
    Objects,
    /// Names of objects of every kind.
    EveryObject,
    /// Names of objects and runs.
    Runs,
    /// Names of objects and runs, and of Restores.
    RunsAndRestores,
    /// Namespaces.
    Namespaces,
    /// Contexts of the kubeconfig.
    Contexts,
    /// Time zones.
    Zones,
    /// Files, which is the shell's own business.
    Files,
    /// Nothing is known.
    Nothing,
}

/// No files.
pub(crate) const NO_FILES: &str = ":4";
/// The shell may offer files.
pub(crate) const FILES: &str = ":0";

/// What completes the last of `words`, which may be empty.
pub(crate) fn wanted(root: &Command, words: &[String]) -> Wanted {
    let Some((word, before)) = words.split_last() else {
        return Wanted::Nothing;
    };
    let (mut command, mut path) = (root, vec![]);
    let mut waits: Option<&Arg> = None;
    for token in before {
        if waits.take().is_some() {
            continue;
        }
        if let Some(arg) = flag(root, command, token) {
            waits = takes_value(arg)
                .then_some(arg)
                .filter(|_| !token.contains('='));
        } else if let Some(next) = command.find_subcommand(token) {
            command = next;
            path.push(next.get_name());
        }
    }
    if let Some(arg) = waits {
        return value(arg);
    }
    if let Some((name, _)) = word.split_once('=').filter(|_| word.starts_with("--")) {
        return match flag(root, command, name).map(value) {
            Some(Wanted::Words(words)) => Wanted::Words(
                words
                    .into_iter()
                    .map(|(w, d)| (format!("{name}={w}"), d))
                    .collect(),
            ),
            _ => Wanted::Nothing,
        };
    }
    if word.starts_with('-') {
        return Wanted::Words(flags(root, command));
    }
    let verbs: Vec<_> = command
        .get_subcommands()
        .filter(|c| !c.is_hide_set())
        .map(|c| (c.get_name().to_owned(), about(c)))
        .collect();
    if !verbs.is_empty() {
        return Wanted::Words(verbs);
    }
    match path.first() {
        Some(&"logs" | &"wait" | &"cancel") => Wanted::RunsAndRestores,
        Some(&"verify" | &"show" | &"binlog" | &"download" | &"restore") => Wanted::Runs,
        Some(&"describe" | &"delete" | &"export" | &"list") => Wanted::EveryObject,
        Some(
            &"runs" | &"run-now" | &"suspend" | &"resume" | &"set" | &"health" | &"report"
            | &"doctor",
        ) => Wanted::Objects,
        Some(&"import") => Wanted::Files,
        Some(&"schedule") if path.get(1) == Some(&"next") => Wanted::Objects,
        _ => Wanted::Nothing,
    }
}

fn about(command: &Command) -> String {
    command
        .get_about()
        .map(ToString::to_string)
        .unwrap_or_default()
}

/// The flag a word names, of the command or of all commands.
fn flag<'a>(root: &'a Command, command: &'a Command, word: &str) -> Option<&'a Arg> {
    let all = command.get_arguments().chain(root.get_arguments());
    if let Some(long) = word.strip_prefix("--") {
        let long = long.split('=').next().unwrap_or_default();
        return all.into_iter().find(|a| {
            a.get_long_and_visible_aliases()
                .is_some_and(|l| l.contains(&long))
        });
    }
    let short = word.strip_prefix('-')?;
    let mut letters = short.chars();
    let (letter, rest) = (letters.next()?, letters.next());
    let found = all.into_iter().find(|a| a.get_short() == Some(letter))?;
    // `-nprod` brings its value along.
    (rest.is_none() || !takes_value(found)).then_some(found)
}

fn takes_value(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::Set | ArgAction::Append) && !arg.is_require_equals_set()
}

fn flags(root: &Command, command: &Command) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = command
        .get_arguments()
        .chain(root.get_arguments())
        .filter(|a| !a.is_hide_set())
        .filter_map(|a| {
            let help = a.get_help().map(ToString::to_string).unwrap_or_default();
            Some((format!("--{}", a.get_long()?), help))
        })
        .collect();
    all.push(("--help".to_owned(), "Print help".to_owned()));
    all.sort();
    all.dedup();
    all
}

/// What completes the value of a flag.
fn value(arg: &Arg) -> Wanted {
    let possible: Vec<_> = arg
        .get_possible_values()
        .iter()
        .filter(|v| !v.is_hide_set())
        .map(|v| {
            let help = v.get_help().map(ToString::to_string).unwrap_or_default();
            (v.get_name().to_owned(), help)
        })
        .collect();
    if !possible.is_empty() {
        return Wanted::Words(possible);
    }
    match arg.get_id().as_str() {
        "namespace" => Wanted::Namespaces,
        "context" | "contexts" => Wanted::Contexts,
        "tz" | "time_zone" => Wanted::Zones,
        "filename"
        | "kubeconfig"
        | "client_certificate"
        | "client_key"
        | "certificate_authority"
        | "cache_dir"
        | "env_file"
        | "output_file" => Wanted::Files,
        _ => Wanted::Nothing,
    }
}

/// The answer: candidates that begin with `word`, then the directive.
pub(crate) fn answer(word: &str, candidates: &[(String, String)], directive: &str) -> String {
    let mut text: String = candidates
        .iter()
        .filter(|(candidate, _)| candidate.starts_with(word))
        .map(|(candidate, about)| {
            let about = crate::text::sanitise(about);
            if about.is_empty() {
                format!("{candidate}\n")
            } else {
                format!("{candidate}\t{about}\n")
            }
        })
        .collect();
    text.push_str(directive);
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use super::*;
    fn of(words: &[&str]) -> Wanted {
        let mut root = crate::cli::command();
        root.build();
        wanted(
            &root,
            &words.iter().map(ToString::to_string).collect::<Vec<_>>(),
        )
    }

    fn words(words: &[&str]) -> Vec<String> {
        match of(words) {
            Wanted::Words(found) => found.into_iter().map(|(word, _)| word).collect(),
            other => vec![format!("{other:?}")],
        }
    }

    #[test]
    fn every_place_on_the_line() {
        assert!(words(&[""]).contains(&"suspend".to_owned()));
        assert!(!words(&[""]).contains(&"__complete".to_owned()));
        assert_eq!(of(&["suspend", ""]), Wanted::Objects);
        assert_eq!(of(&["suspend", "--reason", ""]), Wanted::Nothing);
        assert_eq!(of(&["-n", "prod", "run", "--wait", ""]), Wanted::Objects);
        assert_eq!(of(&["logs", ""]), Wanted::RunsAndRestores);
        assert_eq!(of(&["cancel", ""]), Wanted::RunsAndRestores);
        assert_eq!(of(&["verify", ""]), Wanted::Runs);
        assert_eq!(of(&["delete", ""]), Wanted::EveryObject);
        assert_eq!(of(&["describe", ""]), Wanted::EveryObject);
        assert_eq!(of(&["list", "-n", ""]), Wanted::Namespaces);
        assert_eq!(of(&["list", "--context", ""]), Wanted::Contexts);
        assert_eq!(
            of(&["create", "mysql", "x", "--time-zone", ""]),
            Wanted::Zones
        );
        assert_eq!(of(&["diff", "-f", ""]), Wanted::Files);
        assert!(words(&["list", "-o", ""]).contains(&"wide".to_owned()));
        assert!(words(&["list", "--output="]).contains(&"--output=wide".to_owned()));
        assert!(words(&["list", "--"]).contains(&"--kubeconfig".to_owned()));
        assert_eq!(
            words(&["schedule", ""]),
            ["explain", "next", "calendar", "help"]
        );
    }

    #[test]
    fn the_answer_ends_with_the_directive() {
        let all = [
            ("shop".to_owned(), "0 2 * * *\n".to_owned()),
            ("crm".to_owned(), String::new()),
        ];
        assert_eq!(answer("s", &all, NO_FILES), "shop\t0 2 * * *...\n:4\n");
        assert_eq!(answer("", &all, NO_FILES), "shop\t0 2 * * *...\ncrm\n:4\n");
    }
}
