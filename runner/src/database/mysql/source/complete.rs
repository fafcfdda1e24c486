//! Whether a dump of MySQL or MariaDB is what was asked for: whole, and nothing of it missing.

use crds::dump_arguments::Arguments;
use crds::report::Reason;
use std::collections::HashSet;

use crate::database::mysql::dump_reader::Summary;
use crate::database::mysql::source::plan::DumpPlan;
use crate::database::mysql::source::server::Server;
use crate::failure::Failure;
use crate::settings::{Databases, Source};

/// What was asked for.
pub struct Asked<'a> {
    /// Where it comes from.
    pub source: &'a Source,
    /// How it was planned.
    pub plan: &'a DumpPlan,
    /// What the server said before.
    pub server: &'a Server,
    /// The one database of a dump that names none.
    pub bare: Option<&'a str>,
    /// Single tables of it, where not all are wanted.
    pub tables: &'a [String],
}

/// The dump is whole, and holds the databases and tables that were there when it was planned;
/// `there` tells which of those that it lacks are there still. `client` ended with status 0.
///
/// # Errors
/// It is not, or lacks some.
pub fn check(
    client: &str,
    bytes: u64,
    summary: &Summary,
    asked: &Asked<'_>,
    there: impl Fn(&[(String, String)]) -> Result<Vec<(String, String)>, Failure>,
) -> Result<(), Failure> {
    let incomplete = |text: String| Failure::new(Reason::IncompleteDump, text);
    if !summary.whole {
        return Err(incomplete(format!(
            "{client} ended with status 0 but the dump of {bytes} bytes {}: it is not kept; run again",
            summary.flaw
        )));
    }
    if asked.bare.is_none() && summary.databases.is_empty() {
        return Err(Failure::new(
            Reason::NoDatabases,
            "the dump holds no database: check what the user may see",
        ));
    }
    let wanted = match &asked.source.databases {
        Databases::Listed(names) => names,
        Databases::All => &asked.plan.databases,
    };
    let lost = |name: &&String| {
        !summary
            .databases
            .iter()
            .any(|d| d.eq_ignore_ascii_case(name))
    };
    if asked.bare.is_none()
        && let Some(missing) = wanted.iter().find(lost)
    {
        return Err(incomplete(format!(
            "the dump does not hold database {missing:?}: it is not kept; run again"
        )));
    }
    let missing = missing(summary, asked);
    if missing.is_empty() {
        return Ok(());
    }
    // One that was dropped before the client came to it is no loss.
    let still = there(&missing)?;
    let Some((database, table)) = missing.iter().find(|m| still.contains(m)) else {
        return Ok(());
    };
    Err(incomplete(format!(
        "the dump does not hold table {database}.{table}, which is there: it is not kept; run again, and exclude the table if the client can't dump it"
    )))
}

/// Tables that were there and are not in the dump.
fn missing(summary: &Summary, asked: &Asked<'_>) -> Vec<(String, String)> {
    let given = Arguments::new(&asked.source.extra_args);
    let Some(tables) = &asked.server.tables else {
        return vec![];
    };
    if given.says("no-create-info") == Some(true) {
        return vec![];
    }
    let fold = |text: &str| text.to_lowercase();
    let held: HashSet<(String, String)> = summary
        .tables
        .iter()
        .map(|t| (fold(&t.database), fold(&t.name)))
        .collect();
    let ignored: Vec<&str> = given.values("ignore-table").collect();
    let unwanted = |database: &str, table: &str| {
        let (database, table) = (fold(database), fold(table));
        let named = |d: &str, t: &str| fold(d) == database && fold(t) == table;
        let among = asked.tables.iter().any(|t| fold(t) == table);
        !asked.tables.is_empty() && !among
            || asked.source.exclude_tables.iter().any(|(d, t)| named(d, t))
            || ignored
                .iter()
                .any(|i| i.split_once('.').is_some_and(|(d, t)| named(d, t)))
    };
    tables
        .iter()
        .filter(|(database, table)| {
            let at = if asked.bare.is_some() { "" } else { database };
            !held.contains(&(fold(at), fold(table))) && !unwanted(database, table)
        })
        .cloned()
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use super::*;
    use crate::database::contents::Table;
    use crate::settings::Settings;

    fn source(databases: &str, args: &str) -> Source {
        let mut env = vec![("HOST", "h"), ("USERNAME", "bk"), ("MYSQLDUMP_ARGS", args)];
        if !databases.is_empty() {
            env.push(("DATABASES", databases));
        }
        let env = env.into_iter().map(|(k, v)| (k.to_owned(), v.to_owned()));
        Settings::parse(&env.collect(), &|_| Err("none".into()))
            .source
            .unwrap()
    }

    fn pair(d: &str, t: &str) -> (String, String) {
        (d.to_owned(), t.to_owned())
    }

    fn judge(source: &Source, there: &[(String, String)]) -> Result<(), Failure> {
        let held = |database: &str, name: &str| Table {
            database: database.to_owned(),
            name: name.to_owned(),
            ..Table::default()
        };
        let summary = Summary {
            databases: vec!["Shop".to_owned()],
            tables: vec![held("Shop", "T")],
            whole: true,
            ..Summary::default()
        };
        let server = Server {
            tables: Some(vec![pair("shop", "t"), pair("shop", "u")]),
            ..Server::default()
        };
        let plan = DumpPlan {
            databases: vec!["shop".to_owned()],
            ..DumpPlan::default()
        };
        let asked = Asked {
            source,
            plan: &plan,
            server: &server,
            bare: None,
            tables: &[],
        };
        check("c", 7, &summary, &asked, |_| Ok(there.to_vec()))
    }

    #[test]
    fn t5_what_was_planned_and_is_not_in_the_dump_is_missed() {
        let failure = judge(&source("", ""), &[pair("shop", "u")]).unwrap_err();
        assert_eq!(
            (failure.exit_code, failure.reason.as_str()),
            (3, "IncompleteDump")
        );
        assert!(failure.message.contains("shop.u"), "{}", failure.message);
        // Dropped meanwhile, or left out by the user.
        assert!(judge(&source("", ""), &[]).is_ok());
        for args in ["--ignore-table=shop.u", "--no-create-info"] {
            assert!(
                judge(&source("", args), &[pair("shop", "u")]).is_ok(),
                "{args}"
            );
        }
        let failure = judge(&source("shop,other", ""), &[]).unwrap_err();
        assert!(failure.message.contains("\"other\""), "{}", failure.message);
    }
}
