//! Reads a restored table back by the dump client, and compares its rows with those of the dump.

use crate::context::Context;
use crate::database::contents::Table;
use crate::database::mysql::native;
use crate::database::mysql::source::Client;
use crate::database::mysql::target::{Plan, Target};
use crate::failure::Failure;
use crate::settings::Source;

/// Options that say nothing of the text of rows, or of one table alone.
const OTHERS: [&str; 22] = [
    "master-data",
    "source-data",
    "set-gtid-purged",
    "gtid",
    "routines",
    "events",
    "triggers",
    "databases",
    "all-databases",
    "ignore-table",
    "add-drop-database",
    "add-drop-table",
    "flush-logs",
    "flush-privileges",
    "lock-all-tables",
    "lock-tables",
    "single-transaction",
    "column-statistics",
    "no-create-info",
    "no-data",
    "ignore-database",
    "tables",
];

/// The table holds the rows it should; false where it can't be read back.
///
/// # Errors
/// The run is to end.
pub(super) fn equal(
    target: &Target<'_>,
    plan: &Plan<'_>,
    (database, table): (&str, &str),
    expected: &Table,
) -> Result<bool, Failure> {
    let (context, source, connection) = target.parts();
    if plan.native {
        let found = natively(context, source, (database, table))?;
        return Ok(found.is_some_and(|found| same(expected, found.rows, &found.hash)));
    }
    let Ok(client) = connection.dump() else {
        return Ok(false);
    };
    let file = connection.options(context, source, client.flavour)?;
    let mut args = vec![file.argument()];
    args.extend(arguments(client, &plan.arguments));
    args.extend(["--", database, table].map(str::to_owned));
    let (summary, ended) = client.dump(context, &args)?;
    context.check()?;
    let tables = summary.iter().flat_map(|s| &s.tables);
    let found = tables.into_iter().find(|t| t.name == table);
    let (rows, hash) = found.map_or((0, ""), |t| (t.rows, t.hash.as_str()));
    Ok(summary.is_some() && ended.good() && same(expected, rows, hash))
}

fn same(expected: &Table, rows: u64, hash: &str) -> bool {
    expected.rows == rows && (rows == 0 || expected.hash == hash)
}

/// The table as the native engine reads it; `None` where it can't be read back.
///
/// # Errors
/// The run is to end.
fn natively(
    context: &Context,
    source: &Source,
    (database, table): (&str, &str),
) -> Result<Option<Table>, Failure> {
    let mut options = native::options(source);
    options.databases = vec![database.to_owned()];
    options.tables = vec![table.to_owned()];
    options.exclude.clear();
    (options.bare, options.sessions, options.accounts) = (true, 1, false);
    let read = native::sums(context, source, options);
    context.check()?;
    Ok(read
        .ok()
        .and_then(|summary| summary.tables.into_iter().find(|t| t.name == table)))
}

/// Arguments that make the same text of the same rows as those the dump was made with.
fn arguments(client: &Client, made_with: &[String]) -> Vec<String> {
    let mut args: Vec<String> = [
        "--single-transaction",
        "--quick",
        "--no-create-info",
        "--skip-triggers",
    ]
    .map(str::to_owned)
    .into();
    if client.knows("set-gtid-purged") {
        args.push("--set-gtid-purged=OFF".to_owned());
    }
    if client.knows("column-statistics") {
        args.push("--column-statistics=0".to_owned());
    }
    let said = made_with.iter().take_while(|a| a.as_str() != "--");
    let kept = said.filter(|argument| {
        let Some(long) = argument.strip_prefix("--") else {
            return false;
        };
        let name = long.split('=').next().unwrap_or_default().replace('_', "-");
        let name = name.strip_prefix("skip-").unwrap_or(&name);
        client.knows(name) && !OTHERS.contains(&name)
    });
    args.extend(kept.cloned());
    if made_with.is_empty() {
        let usual = [
            "--hex-blob",
            "--default-character-set=utf8mb4",
            "--max-allowed-packet=1G",
        ];
        args.extend(usual.map(str::to_owned));
    }
    args
}
