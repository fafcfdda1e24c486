//! Which arguments the dump client gets: the defaults of a whole, consistent dump, minus what
//! client, server or grants refuse, each with a warning.

use super::client::{Client, Flavour};
use super::server::Server;
use crate::failure::Failure;
use crate::settings::{Databases, Source};

/// Arguments of the dump client after the option file, and what to warn about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DumpPlan {
    /// Arguments.
    pub args: Vec<String>,
    /// Warnings.
    pub warnings: Vec<String>,
}

/// Plans the dump. `server` is `None` where there is no SQL client to ask it.
///
/// # Errors
/// There is nothing to dump.
pub fn plan(
    client: &Client,
    server: Option<&Server>,
    source: &Source,
) -> Result<DumpPlan, Failure> {
    let mut plan = DumpPlan::default();
    basics(client, source, &mut plan);
    programs(server, source, &mut plan);
    family(client, server, source, &mut plan);
    position(client, server, source, &mut plan);
    if let Some(server) = server {
        restorable(client, server, source)?;
        cautions(client, server, &mut plan);
    }
    for (database, table) in &source.exclude_tables {
        plan.args.push(format!("--ignore-table={database}.{table}"));
    }
    plan.args.extend(source.extra_args.iter().cloned());
    databases(server, source, &mut plan)?;
    Ok(plan)
}

/// True if the user's own arguments name this option.
fn user_says(source: &Source, name: &str) -> bool {
    source.extra_args.iter().any(|arg| {
        let Some(long) = arg.strip_prefix("--") else {
            return false;
        };
        let given = long.split('=').next().unwrap_or_default().replace('_', "-");
        let plain = ["skip-", "disable-", "enable-"]
            .iter()
            .find_map(|p| given.strip_prefix(p))
            .unwrap_or(&given);
        plain == name
    })
}

fn basics(client: &Client, source: &Source, plan: &mut DumpPlan) {
    let locks = user_says(source, "lock-all-tables") || user_says(source, "lock-tables");
    if !locks && !user_says(source, "single-transaction") {
        plan.args.push("--single-transaction".to_owned());
    }
    for flag in ["quick", "triggers", "hex-blob"] {
        if !user_says(source, flag) {
            plan.args.push(format!("--{flag}"));
        }
    }
    character_set(source, plan);
    if !user_says(source, "max-allowed-packet") {
        plan.args.push("--max-allowed-packet=1G".to_owned());
    }
    if client.knows("no-tablespaces") && !user_says(source, "no-tablespaces") {
        plan.args.push("--no-tablespaces".to_owned());
    }
}

/// utf8mb4 holds every character of every column; with others the client writes `?` and says nothing.
fn character_set(source: &Source, plan: &mut DumpPlan) {
    if !user_says(source, "default-character-set") {
        plan.args.push("--default-character-set=utf8mb4".to_owned());
        return;
    }
    let given = source.extra_args.iter().rev().find_map(|a| {
        let (name, value) = a.split_once('=')?;
        (name.replace('_', "-") == "--default-character-set").then_some(value)
    });
    if let Some(other) = given.filter(|set| !["utf8mb4", "binary"].contains(set)) {
        plan.warnings.push(format!(
            "--default-character-set={other}: characters that {other} lacks are written as ? in the dump; leave the argument out for utf8mb4"
        ));
    }
}

/// Routines and events, unless the user may not read them: then the dump would fail.
fn programs(server: Option<&Server>, source: &Source, plan: &mut DumpPlan) {
    let none = vec![];
    let hidden_routines = server.map_or(&none, |s| &s.hidden_routines);
    let hidden_events = server.map_or(&none, |s| &s.hidden_events);
    let user = &source.username;
    if !user_says(source, "routines") {
        if hidden_routines.is_empty() {
            plan.args.push("--routines".to_owned());
        } else {
            plan.warnings.push(format!(
                "procedures and functions are not in the dump: user {user:?} may not read the body of {}; grant SELECT on mysql.proc (MariaDB, MySQL 5.7) or SHOW_ROUTINE (MySQL 8)",
                some(hidden_routines)
            ));
        }
    }
    if !user_says(source, "events") {
        if hidden_events.is_empty() {
            plan.args.push("--events".to_owned());
        } else {
            plan.warnings.push(format!(
                "events are not in the dump: user {user:?} lacks EVENT on {}",
                some(hidden_events)
            ));
        }
    }
}

/// Options only one family or version knows.
fn family(client: &Client, server: Option<&Server>, source: &Source, plan: &mut DumpPlan) {
    let old = server.is_some_and(|s| s.flavour() == Flavour::MariaDb || s.version().0 < 8);
    if client.knows("column-statistics") && old && !user_says(source, "column-statistics") {
        plan.args.push("--column-statistics=0".to_owned());
    }
    // Recorded, but as a comment: loading it needs no rights and changes no server's history.
    let gtid = client.knows("set-gtid-purged") && client.mentions("COMMENTED");
    if gtid && !user_says(source, "set-gtid-purged") {
        plan.args.push("--set-gtid-purged=COMMENTED".to_owned());
    }
}

/// Records the position as a comment where the server keeps a binlog and client and grants allow.
fn position(client: &Client, server: Option<&Server>, source: &Source, plan: &mut DumpPlan) {
    let Some(server) = server.filter(|s| s.variable("log_bin").eq_ignore_ascii_case("ON")) else {
        return;
    };
    if user_says(source, "master-data") || user_says(source, "source-data") {
        return;
    }
    let option = if client.knows("source-data") {
        "--source-data=2"
    } else {
        "--master-data=2"
    };
    let mysql = server.flavour() == Flavour::MySql;
    let missing = if client.flavour == Flavour::MariaDb && mysql && server.version() >= (8, 4) {
        Some("MariaDB's client can't ask this MySQL version for it; use an image with MySQL's client".to_owned())
    } else if client.flavour == Flavour::MariaDb && !mysql && server.snapshot_position {
        // MariaDB gives the position of the snapshot without locks or privileges.
        None
    } else if !server.may(&["RELOAD", "FLUSH_TABLES"])
        || !server.may(&["REPLICATION CLIENT", "BINLOG MONITOR", "SUPER"])
    {
        Some(format!(
            "user {:?} lacks RELOAD and REPLICATION CLIENT (BINLOG MONITOR)",
            source.username
        ))
    } else {
        None
    };
    match missing {
        None => plan.args.push(option.to_owned()),
        Some(why) => plan
            .warnings
            .push(format!("the binlog position is not recorded: {why}")),
    }
}

/// MariaDB's client writes values for generated columns too, and MySQL refuses to load those
/// (error 3105): such a dump is no backup. MySQL's client leaves them out.
fn restorable(client: &Client, server: &Server, source: &Source) -> Result<(), Failure> {
    let left_out = |table: &&String| {
        !source
            .exclude_tables
            .iter()
            .any(|(d, t)| **table == format!("{d}.{t}"))
    };
    let generated: Vec<String> = server.generated.iter().filter(left_out).cloned().collect();
    let foreign = client.flavour == Flavour::MariaDb && server.flavour() == Flavour::MySql;
    if !foreign || generated.is_empty() {
        return Ok(());
    }
    Err(Failure::source(
        "ClientDoesNotFit",
        format!(
            "MySQL would refuse to load what MariaDB's client ({}) writes of tables with generated columns ({}): use an image with MySQL's own mysqldump, or exclude these tables",
            client.name(),
            some(&generated)
        ),
    ))
}

fn cautions(client: &Client, server: &Server, plan: &mut DumpPlan) {
    if !server.not_transactional.is_empty() {
        plan.warnings.push(format!(
            "not consistent with the rest, their engine knows no transactions: {}",
            some(&server.not_transactional)
        ));
    }
    if !server.floats.is_empty() {
        plan.warnings.push(format!(
            "the client writes FLOAT with 6 significant digits, so these columns may restore rounded: {}; DOUBLE restores exactly",
            some(&server.floats)
        ));
    }
    if client.flavour != server.flavour() {
        plan.warnings.push(format!(
            "client ({:?}) and server ({:?}) are of different families: use an image with the server's own client",
            client.flavour,
            server.flavour()
        ));
    }
}

fn databases(server: Option<&Server>, source: &Source, plan: &mut DumpPlan) -> Result<(), Failure> {
    let names = match (&source.databases, server) {
        (Databases::Listed(names), _) => names.clone(),
        (Databases::All, Some(server)) => server.databases.clone(),
        (Databases::All, None) => {
            plan.warnings.push(
                "no SQL client (mariadb, mysql) to ask the server: all databases are dumped, the server's own included".to_owned(),
            );
            plan.args.push("--all-databases".to_owned());
            return Ok(());
        }
    };
    if names.is_empty() {
        return Err(Failure::source(
            "NoDatabases",
            format!(
                "0 databases to dump: user {:?} sees none but the server's own; create one, or grant SELECT on it",
                source.username
            ),
        ));
    }
    plan.args.push("--databases".to_owned());
    plan.args.push("--".to_owned());
    plan.args.extend(names);
    Ok(())
}

/// The first three of a list, and how many more there are.
fn some(names: &[String]) -> String {
    let shown = names.iter().take(3).cloned().collect::<Vec<_>>().join(", ");
    match names.len() {
        0..=3 => shown,
        n => format!("{shown} and {} more", n - 3),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use super::*;
    use crate::settings::Settings;

    const MARIADB: &str = "--no-tablespaces \n--master-data[=#]\n--gtid \n";
    const MYSQL: &str = "--no-tablespaces \n--source-data[=#]\n--column-statistics \n--set-gtid-purged[=name] ON, COMMENTED, OFF, AUTO\n";

    fn mariadb() -> Client {
        Client::new(
            "/usr/bin/mariadb-dump".into(),
            "Ver 10.19 Distrib 10.11.19-MariaDB",
            MARIADB,
        )
    }

    fn mysql() -> Client {
        Client::new(
            "/usr/bin/mysqldump".into(),
            "mysqldump  Ver 8.0.36 for Linux",
            MYSQL,
        )
    }

    fn server(version: &str) -> Server {
        Server {
            variables: [("version", version), ("log_bin", "ON")]
                .map(|(k, v)| (k.to_owned(), v.to_owned()))
                .into(),
            databases: vec!["shop".into(), "-odd".into()],
            global_privileges: ["RELOAD".to_owned(), "REPLICATION CLIENT".to_owned()].into(),
            ..Server::default()
        }
    }

    fn source(args: &str) -> Source {
        let env = [("HOST", "h"), ("USERNAME", "bk"), ("MYSQLDUMP_ARGS", args)];
        Settings::parse(
            &env.map(|(k, v)| (k.to_owned(), v.to_owned())).into(),
            &|_| Err("none".into()),
        )
        .source
        .unwrap()
    }

    fn args(client: &Client, server: &Server, extra: &str) -> String {
        plan(client, Some(server), &source(extra))
            .unwrap()
            .args
            .join(" ")
    }

    #[test]
    fn each_client_gets_what_it_knows() {
        assert_eq!(
            args(&mariadb(), &server("10.11.19-MariaDB"), ""),
            "--single-transaction --quick --triggers --hex-blob --default-character-set=utf8mb4 --max-allowed-packet=1G --no-tablespaces --routines --events --master-data=2 --databases -- shop -odd"
        );
        assert_eq!(
            args(&mysql(), &server("8.0.36"), ""),
            "--single-transaction --quick --triggers --hex-blob --default-character-set=utf8mb4 --max-allowed-packet=1G --no-tablespaces --routines --events --set-gtid-purged=COMMENTED --source-data=2 --databases -- shop -odd"
        );
        assert!(args(&mysql(), &server("10.11.1-MariaDB"), "").contains("--column-statistics=0"));
    }

    #[test]
    fn the_users_arguments_win() {
        let text = args(
            &mariadb(),
            &server("10.11.19-MariaDB"),
            "--skip-routines --lock-all-tables --default_character_set=latin1",
        );
        assert!(!text.contains("--single-transaction") && !text.contains("--routines "));
        assert!(!text.contains("utf8mb4") && text.contains("--default_character_set=latin1"));
    }

    #[test]
    fn refusals_become_warnings() {
        let mut poor = server("10.11.19-MariaDB");
        poor.global_privileges.clear();
        poor.hidden_events = vec!["shop".into()];
        poor.hidden_routines = vec!["shop.p".into()];
        let plan = plan(&mariadb(), Some(&poor), &source("")).unwrap();
        let text = plan.args.join(" ");
        assert!(
            !text.contains("--events")
                && !text.contains("--routines")
                && !text.contains("master-data")
        );
        assert_eq!(plan.warnings.len(), 3);
        poor.snapshot_position = true;
        assert!(args(&mariadb(), &poor, "").contains("--master-data=2"));
        assert!(!args(&mariadb(), &server("8.4.2"), "").contains("-data=2"));
    }

    #[test]
    fn a_dump_that_mysql_would_not_load_is_not_made() {
        let mut mysql_server = server("9.7.4");
        mysql_server.generated = vec!["shop.t".into()];
        let failure = plan(&mariadb(), Some(&mysql_server), &source("")).unwrap_err();
        assert_eq!((failure.exit_code, failure.reason), (3, "ClientDoesNotFit"));
        assert!(failure.message.contains("shop.t") && failure.message.contains("mysqldump"));
        assert!(plan(&mysql(), Some(&mysql_server), &source("")).is_ok());
        let mut without = source("");
        without.exclude_tables = vec![("shop".into(), "t".into())];
        assert!(plan(&mariadb(), Some(&mysql_server), &without).is_ok());
        let mut mariadb_server = server("11.8.9-MariaDB");
        mariadb_server.generated = vec!["shop.t".into()];
        assert!(plan(&mariadb(), Some(&mariadb_server), &source("")).is_ok());
    }

    #[test]
    fn nothing_to_dump_is_a_failure() {
        let mut empty = server("10.11.19-MariaDB");
        empty.databases.clear();
        let failure = plan(&mariadb(), Some(&empty), &source("")).unwrap_err();
        assert_eq!((failure.exit_code, failure.reason), (3, "NoDatabases"));
    }
}
