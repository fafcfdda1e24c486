//! Which of a Database's own arguments leave something out of its dump, by client. PURE.

use crds::plan::{Database, DatabaseType};
use secrecy::SecretString;

use crate::context::Context;

/// A long option, its short form, whether it has a value, and what the dump lacks by it.
type Row = (&'static str, Option<char>, bool, &'static str);

/// Of pg_dump and pg_dumpall. What `tables` and `excludeTables` name is not among them.
const POSTGRESQL: [Row; 38] = [
    ("schema-only", Some('s'), false, "no rows are in it"),
    (
        "data-only",
        Some('a'),
        false,
        "no tables are in it, only rows",
    ),
    ("section", None, true, "other sections are not in it"),
    ("no-data", None, false, "no rows are in it"),
    ("no-schema", None, false, "no tables are in it, only rows"),
    (
        "exclude-table-data",
        None,
        true,
        "the rows of these tables are not in it",
    ),
    (
        "exclude-table-data-and-children",
        None,
        true,
        "the rows of these tables are not in it",
    ),
    (
        "exclude-table",
        Some('T'),
        true,
        "these tables are not in it",
    ),
    (
        "exclude-table-and-children",
        None,
        true,
        "these tables are not in it",
    ),
    (
        "exclude-schema",
        Some('N'),
        true,
        "these schemas are not in it",
    ),
    (
        "exclude-extension",
        None,
        true,
        "these extensions are not in it",
    ),
    (
        "exclude-database",
        None,
        true,
        "these databases are not in it",
    ),
    (
        "table",
        Some('t'),
        true,
        "other tables are not in it, nor what belongs to no table",
    ),
    (
        "table-and-children",
        None,
        true,
        "other tables are not in it, nor what belongs to no table",
    ),
    ("schema", Some('n'), true, "other schemas are not in it"),
    (
        "extension",
        Some('e'),
        true,
        "other extensions are not in it",
    ),
    (
        "filter",
        None,
        true,
        "what its file leaves out is not in it",
    ),
    ("no-blobs", Some('B'), false, "no large objects are in it"),
    (
        "no-large-objects",
        None,
        false,
        "no large objects are in it",
    ),
    (
        "no-policies",
        None,
        false,
        "no row security policies are in it",
    ),
    ("no-publications", None, false, "no publications are in it"),
    (
        "no-subscriptions",
        None,
        false,
        "no subscriptions are in it",
    ),
    (
        "no-security-labels",
        None,
        false,
        "no security labels are in it",
    ),
    ("no-comments", None, false, "no comments are in it"),
    (
        "no-unlogged-table-data",
        None,
        false,
        "the rows of unlogged tables are not in it",
    ),
    (
        "enable-row-security",
        None,
        false,
        "only rows that policies show to this user are in it; give the user BYPASSRLS instead",
    ),
    (
        "on-conflict-do-nothing",
        None,
        false,
        "a load leaves rows that collide out, without an error",
    ),
    (
        "snapshot",
        None,
        true,
        "its rows are those of another moment",
    ),
    (
        "globals-only",
        Some('g'),
        false,
        "no databases are in it, only roles and tablespaces",
    ),
    (
        "roles-only",
        Some('r'),
        false,
        "no databases are in it, only roles",
    ),
    (
        "tablespaces-only",
        None,
        false,
        "no databases are in it, only tablespaces",
    ),
    (
        "no-role-passwords",
        None,
        false,
        "no passwords of roles are in it",
    ),
    (
        "include-foreign-data",
        None,
        true,
        "rows of other servers are in it",
    ),
    (
        "binary-upgrade",
        None,
        false,
        "it is meant for an upgrade in place",
    ),
    (
        "no-toast-compression",
        None,
        false,
        "how columns are compressed is not in it",
    ),
    (
        "no-table-access-method",
        None,
        false,
        "access methods of tables are not in it",
    ),
    (
        "statistics-only",
        None,
        false,
        "no tables and no rows are in it",
    ),
    ("no-sync", None, false, ""),
];

/// Of mongodump.
const MONGODB: [Row; 6] = [
    (
        "collection",
        Some('c'),
        true,
        "other collections are not in it",
    ),
    (
        "query",
        Some('q'),
        true,
        "only documents that match are in it",
    ),
    (
        "queryFile",
        None,
        true,
        "only documents that match are in it",
    ),
    (
        "excludeCollection",
        None,
        true,
        "these collections are not in it",
    ),
    (
        "excludeCollectionsWithPrefix",
        None,
        true,
        "these collections are not in it",
    ),
    (
        "viewsAsCollections",
        None,
        false,
        "views are in it as collections",
    ),
];

/// Of redis-cli.
const REDIS: [Row; 1] = [("functions-rdb", None, true, "only functions are in it")];

/// Of influx.
const INFLUX: [Row; 4] = [
    ("bucket", Some('b'), true, "other buckets are not in it"),
    ("bucket-id", None, true, "other buckets are not in it"),
    ("org", Some('o'), true, "other organisations are not in it"),
    ("org-id", None, true, "other organisations are not in it"),
];

/// Tells of a Database what its own arguments leave out of the dump, and gives it.
pub(crate) fn warn(context: &Context, database: &Database<SecretString>) -> Vec<String> {
    let found = partial(database.database_type, &database.args);
    for text in &found {
        context.reporter.warn(&format!(
            "Database {}: the dump is partial: by {text}; leave the argument out of config.args for a whole backup",
            database.name
        ));
    }
    found
}

/// What these arguments leave out, a sentence each.
pub(crate) fn partial(database_type: DatabaseType, args: &[String]) -> Vec<String> {
    let rows: &[Row] = match database_type {
        DatabaseType::Postgresql => &POSTGRESQL,
        DatabaseType::Mongodb => &MONGODB,
        DatabaseType::Redis => &REDIS,
        DatabaseType::Influxdb2 => &INFLUX,
        DatabaseType::Mysql | DatabaseType::Mariadb => {
            return crds::dump_arguments::partial(args);
        }
        DatabaseType::Etcd | DatabaseType::Mssql => &[],
    };
    let mut found: Vec<String> = vec![];
    let mut words = args.iter();
    while let Some(word) = words.next() {
        let Some(row) = meant(rows, word) else {
            // The value of an option that says nothing here may look like one.
            continue;
        };
        let separate = row.2 && !word.contains('=') && !joined(word, row);
        let value = if separate { words.next() } else { None };
        if !row.3.is_empty() {
            let value = value.map(|v| format!(" {v}")).unwrap_or_default();
            found.push(format!("{word}{value}: {}", row.3));
        }
    }
    found
}

/// The option that a word is: by its name, by a beginning of it that no other has, or by a letter.
fn meant<'a>(rows: &'a [Row], word: &str) -> Option<&'a Row> {
    if let Some(long) = word.strip_prefix("--") {
        let name = long.split('=').next().unwrap_or_default();
        let exact = rows.iter().find(|(full, ..)| *full == name);
        let mut begun = rows
            .iter()
            .filter(|(full, ..)| name.len() > 3 && full.starts_with(name));
        return exact.or_else(|| begun.next().filter(|_| begun.next().is_none()));
    }
    let letters = word.strip_prefix('-')?;
    // Letters without a value may stand together.
    letters
        .chars()
        .find_map(|letter| rows.iter().find(|row| row.1 == Some(letter)))
}

/// `-tname`: the value stands in the same word.
fn joined(word: &str, row: &Row) -> bool {
    !word.starts_with("--") && row.1.is_some_and(|letter| !word.ends_with(letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t5_what_makes_a_dump_of_any_database_partial_is_named() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        for (database_type, text, lacks) in [
            (DatabaseType::Postgresql, "--schema-only", "no rows"),
            (DatabaseType::Postgresql, "-s", "no rows"),
            (DatabaseType::Postgresql, "-Os", "no rows"),
            (DatabaseType::Postgresql, "--data-only", "only rows"),
            (
                DatabaseType::Postgresql,
                "--enable-row-security",
                "BYPASSRLS",
            ),
            (
                DatabaseType::Postgresql,
                "--exclude-table-data=log",
                "rows of these",
            ),
            (
                DatabaseType::Postgresql,
                "--exclude-table-data log",
                "rows of these",
            ),
            (DatabaseType::Postgresql, "-n app", "other schemas"),
            (DatabaseType::Postgresql, "-napp", "other schemas"),
            (DatabaseType::Postgresql, "-B", "large objects"),
            (DatabaseType::Postgresql, "-g", "only roles"),
            (DatabaseType::Mongodb, "--query={}", "match"),
            (DatabaseType::Mongodb, "-c t", "other collections"),
            (DatabaseType::Redis, "--functions-rdb x", "functions"),
            (DatabaseType::Mariadb, "--no-data", "no rows"),
        ] {
            let found = partial(database_type, &words(text));
            assert_eq!(found.len(), 1, "{text}: {found:?}");
            assert!(
                found[0].contains(lacks) && found[0].starts_with(text),
                "{text}: {found:?}"
            );
        }
        for text in [
            "--no-owner",
            "-Fc",
            "-Z 9",
            "--clean --if-exists",
            "-O -x",
            "--inserts",
            "-v",
            "--no-sync",
        ] {
            assert_eq!(
                partial(DatabaseType::Postgresql, &words(text)),
                [""; 0],
                "{text}"
            );
        }
    }
}
