//! An example of each verb, for its help and for docs/cli.md. A test runs them all
//! (kubectl-backup/tests/cli/documented.rs), in a namespace with a MysqlBackup `shop`.

use clap::{Command, CommandFactory, FromArgMatches};

use super::Cli;

/// Verb, and what one types.
const EXAMPLES: [(&str, &[&str]); 35] = [
    ("create", &["kubectl backup create -f shop.yaml"]),
    (
        "create mysql",
        &[
            "kubectl backup create mysql shop --schedule '0 2 * * *' --host shop-db --secret shop-db --pvc backups --retention keep-last=7,keep-daily=14",
            "kubectl backup create mysql shop --schedule @daily --host shop-db --secret shop-db --s3-bucket backups --s3-secret s3 --run-now",
        ],
    ),
    (
        "create backup",
        &[
            "kubectl backup create backup nightly --database pg,cache --storage bucket --keep 7 --schedule '0 2 * * *' --dry-run -o yaml",
        ],
    ),
    (
        "create database",
        &[
            "kubectl backup create database pg --type postgresql --host pg --database app --secret pg",
        ],
    ),
    (
        "create storage",
        &[
            "kubectl backup create storage bucket --type s3 --bucket backups --region eu-central-1 --secret s3",
        ],
    ),
    (
        "list",
        &[
            "kubectl backup list -A --failed",
            "kubectl backup list restores",
        ],
    ),
    (
        "runs",
        &[
            "kubectl backup runs shop",
            "kubectl backup runs shop --stored",
            "kubectl backup runs shop --recoverable",
        ],
    ),
    ("describe", &["kubectl backup describe shop"]),
    (
        "run-now",
        &[
            "kubectl backup run-now shop --wait --timeout 30m",
            "kubectl backup run-now -l team=shop",
        ],
    ),
    ("wait", &["kubectl backup wait shop-2 --timeout 30m"]),
    (
        "cancel",
        &["kubectl backup cancel shop --reason 'wrong window'"],
    ),
    ("verify", &["kubectl backup verify shop"]),
    (
        "restore",
        &[
            "kubectl backup restore shop --to copy-db --secret copy-db --wait",
            "kubectl backup restore shop --tables shop.orders --to shop-db --secret shop-db",
        ],
    ),
    ("show", &["kubectl backup show shop -o yaml"]),
    (
        "binlog",
        &[
            "kubectl backup binlog shop --from 2026-09-04T17:00:00Z --to 2026-09-04T18:00:00Z --table shop.orders",
        ],
    ),
    (
        "download",
        &[
            "kubectl backup download shop",
            "kubectl backup download shop --binlogs --from 2026-09-04T17:00:00Z",
        ],
    ),
    (
        "suspend",
        &[
            "kubectl backup suspend shop --for 2h --reason 'upgrade'",
            "kubectl backup suspend shop --until 'tomorrow 06:00'",
        ],
    ),
    ("resume", &["kubectl backup resume shop"]),
    ("logs", &["kubectl backup logs shop"]),
    (
        "set",
        &[
            "kubectl backup set shop --schedule '30 1 * * *' --time-zone Europe/Berlin",
            "kubectl backup set shop --host shop-db-2 --secret shop-db-2 --diff",
        ],
    ),
    ("diff", &["kubectl backup diff -f shop.yaml"]),
    (
        "import",
        &[
            "kubectl backup import gobackup.yml",
            "kubectl backup import gobackup.yml --apply",
        ],
    ),
    ("export", &["kubectl backup export shop"]),
    ("delete", &["kubectl backup delete shop"]),
    (
        "schedule explain",
        &["kubectl backup schedule explain '0 2 * * 1-5'"],
    ),
    ("schedule next", &["kubectl backup schedule next shop"]),
    (
        "schedule calendar",
        &["kubectl backup schedule calendar --days 3"],
    ),
    (
        "health",
        &[
            "kubectl backup health -A",
            "kubectl backup health shop --max-age 26h",
        ],
    ),
    (
        "report",
        &[
            "kubectl backup report --since=7d",
            "kubectl backup report -A --since=90d -o html",
        ],
    ),
    (
        "doctor",
        &[
            "kubectl backup doctor",
            "kubectl backup doctor shop --probe",
        ],
    ),
    ("top", &["kubectl backup top"]),
    ("bundle", &["kubectl backup bundle"]),
    ("completion", &["kubectl backup completion bash"]),
    ("man", &["kubectl backup man run-now"]),
    (
        "version",
        &["kubectl backup version", "kubectl backup version --client"],
    ),
];

/// The description of the command line, examples included.
pub(crate) fn command() -> Command {
    EXAMPLES.iter().fold(Cli::command(), |root, (verb, lines)| {
        let path: Vec<&str> = verb.split(' ').collect();
        let text = format!("Examples:\n  {}", lines.join("\n  "));
        attach(root, &path, text)
    })
}

fn attach(command: Command, path: &[&str], text: String) -> Command {
    match path {
        [] => command.after_help(text),
        [verb, rest @ ..] => command.mut_subcommand(verb, |inner| attach(inner, rest, text)),
    }
}

/// Reads a command line.
///
/// # Errors
/// Help, version, or what is wrong with it.
pub(crate) fn parse<T>(words: impl IntoIterator<Item = T>) -> Result<Cli, clap::Error>
where
    T: Into<std::ffi::OsString> + Clone,
{
    Cli::from_arg_matches(&command().try_get_matches_from(words)?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use super::*;

    /// Verbs without an example: they show something by themselves, or nobody types them.
    const WITHOUT: [&str; 3] = ["help", "schedule", "__complete"];

    fn lacking(command: &Command, path: &str, found: &mut Vec<String>) {
        for inner in command.get_subcommands() {
            let name = inner.get_name();
            let path = format!("{path} {name}").trim().to_owned();
            if inner.get_after_help().is_none() && !WITHOUT.contains(&name) {
                found.push(path.clone());
            }
            lacking(inner, &path, found);
        }
    }

    #[test]
    fn u16_each_verb_has_an_example_that_parses() {
        let mut found = vec![];
        lacking(&command(), "", &mut found);
        assert_eq!(found, [""; 0]);
        for (verb, lines) in EXAMPLES {
            for line in lines {
                let typed = line.strip_prefix("kubectl backup ").unwrap();
                assert!(typed.starts_with(verb), "{line} is no example of {verb}");
            }
        }
    }
}
