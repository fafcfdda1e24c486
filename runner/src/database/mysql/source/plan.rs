//! Which arguments the dump client gets: the defaults of a whole, consistent dump, minus what
//! client, server or grants refuse, each with a warning.

use crate::database::mysql::source::client::{Client, Flavour};
use crate::database::mysql::source::server::{Names, Server};
use crate::failure::Failure;
use crate::settings::{Databases, Source};
use crds::dump_arguments::Arguments;
use crds::report::Reason;

/// Arguments of the dump client after the option file, and what to warn about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DumpPlan {
    /// Arguments.
    pub args: Vec<String>,
    /// Warnings.
    pub warnings: Vec<String>,
    /// What the user's arguments leave out of the dump, or change on its way back.
    pub partial: Vec<String>,
    /// Databases that the dump has to hold; empty if that is not known.
    pub databases: Vec<String>,
}

/// Plans the dump.
///
/// # Errors
/// There is nothing to dump.
pub fn plan(client: &Client, server: &Server, source: &Source) -> Result<DumpPlan, Failure> {
    let mut plan = DumpPlan::default();
    let given = Arguments::new(&source.extra_args);
    if given.says("quote-names") == Some(false) {
        return Err(Failure::settings(
            "--skip-quote-names is not accepted: without quotes tables can't be told apart in the dump; leave the argument out",
        ));
    }
    // The user's come first: some of them are short for many, and turn off what is wanted below.
    plan.args.extend(source.extra_args.iter().cloned());
    partial(source, &given, &mut plan);
    basics(client, &given, &mut plan);
    programs(server, source, &given, &mut plan);
    flavour(client, server, &given, &mut plan);
    position(client, server, source, &given, &mut plan);
    restorable(client, server)?;
    limit(client, server, source, &given, &mut plan)?;
    cautions(Some(client), server, source, &mut plan);
    history(client, server, &given, &mut plan);
    unmatched(server, source, &mut plan);
    for (database, table) in &source.exclude_tables {
        plan.args.push(format!("--ignore-table={database}.{table}"));
    }
    databases(server, source, &mut plan)?;
    Ok(plan)
}

/// What is to be said of a dump by the native engine, which takes no arguments.
///
/// # Errors
/// There is nothing to dump.
pub fn plan_native(server: &Server, source: &Source) -> Result<DumpPlan, Failure> {
    let mut plan = DumpPlan::default();
    let given = Arguments::new(&source.extra_args);
    partial(source, &given, &mut plan);
    programs(server, source, &given, &mut plan);
    cautions(None, server, source, &mut plan);
    unmatched(server, source, &mut plan);
    databases(server, source, &mut plan)?;
    plan.args.clear();
    Ok(plan)
}

/// What the user's own wishes leave out.
fn partial(source: &Source, given: &Arguments, plan: &mut DumpPlan) {
    for partial in given.partial() {
        plan.warnings.push(format!(
            "the dump is partial: by {} {}; leave the argument out for a whole backup",
            partial.argument, partial.lacks
        ));
        plan.partial.push(partial.to_string());
    }
    for (database, table) in &source.exclude_tables {
        plan.partial
            .push(format!("table {database}.{table} is left out"));
    }
}

fn basics(client: &Client, given: &Arguments, plan: &mut DumpPlan) {
    // Said to be off, locks are no reason to do without a snapshot.
    let locks =
        given.says("lock-all-tables") == Some(true) || given.says("lock-tables") == Some(true);
    if !locks && given.says("single-transaction").is_none() {
        plan.args.push("--single-transaction".to_owned());
    }
    for flag in ["quick", "triggers", "hex-blob"] {
        if given.says(flag).is_none() {
            plan.args.push(format!("--{flag}"));
        }
    }
    character_set(given, plan);
    if given.says("max-allowed-packet").is_none() {
        plan.args.push("--max-allowed-packet=1G".to_owned());
    }
    if client.knows("no-tablespaces") && given.says("no-tablespaces").is_none() {
        plan.args.push("--no-tablespaces".to_owned());
    }
    // Under LOCK TABLES a server reads no other table than those that are locked, a sequence that
    // gives a column its default among them; and Galera has no use for these locks.
    if given.says("add-locks").is_none() {
        plan.args.push("--skip-add-locks".to_owned());
    }
}

/// utf8mb4 holds every character of every column; with others the client writes `?` and says nothing.
fn character_set(given: &Arguments, plan: &mut DumpPlan) {
    let Some(set) = given.values("default-character-set").last() else {
        plan.args.push("--default-character-set=utf8mb4".to_owned());
        return;
    };
    if !["utf8mb4", "binary"].contains(&set) {
        plan.warnings.push(format!(
            "--default-character-set={set}: characters that {set} lacks are written as ? in the dump; leave the argument out for utf8mb4"
        ));
    }
}

/// Routines and events, unless the user may not read them: then the dump would fail. What is not
/// even listed for the user is missing without a word of the client's.
fn programs(server: &Server, source: &Source, given: &Arguments, plan: &mut DumpPlan) {
    let user = &source.username;
    if given.says("routines").is_none() {
        if server.hidden_routines.is_empty() {
            plan.args.push("--routines".to_owned());
        } else {
            plan.warnings.push(format!(
                "procedures and functions are not in the dump: user {user:?} may not read the body of {}; grant SELECT on mysql.proc (MariaDB, MySQL 5.7) or SHOW_ROUTINE (MySQL 8)",
                server.hidden_routines
            ));
        }
        if !server.unlisted_routines.is_empty() {
            plan.warnings.push(format!(
                "procedures and functions of {} may be missing from the dump: the server does not show them to user {user:?}; grant SELECT on mysql.proc (MariaDB, MySQL 5.7) or SHOW_ROUTINE (MySQL 8)",
                server.unlisted_routines
            ));
        }
    }
    if given.says("events").is_none() {
        if server.hidden_events.is_empty() {
            plan.args.push("--events".to_owned());
        } else {
            plan.warnings.push(format!(
                "events are not in the dump: user {user:?} lacks EVENT on {}; grant EVENT",
                server.hidden_events
            ));
        }
    }
    if given.says("triggers") != Some(false) && !server.unlisted_triggers.is_empty() {
        plan.warnings.push(format!(
            "triggers of {} may be missing from the dump: user {user:?} lacks TRIGGER, without which the server does not show them; grant TRIGGER",
            server.unlisted_triggers
        ));
    }
}

/// Options only one flavour or version knows.
fn flavour(client: &Client, server: &Server, given: &Arguments, plan: &mut DumpPlan) {
    let old = server.flavour() == Flavour::MariaDb || server.version().0 < 8;
    if client.knows("column-statistics") && old && given.says("column-statistics").is_none() {
        plan.args.push("--column-statistics=0".to_owned());
    }
    // Recorded, but as a comment: loading it needs no rights and changes no server's history.
    let gtid = client.knows("set-gtid-purged") && client.mentions("COMMENTED");
    if gtid && given.says("set-gtid-purged").is_none() {
        plan.args.push("--set-gtid-purged=COMMENTED".to_owned());
    }
}

/// Records the position as a comment where the server keeps a binlog and client and grants allow.
fn position(
    client: &Client,
    server: &Server,
    source: &Source,
    given: &Arguments,
    plan: &mut DumpPlan,
) {
    if !server.variable("log_bin").eq_ignore_ascii_case("ON") {
        return;
    }
    if given.says("master-data").is_some() || given.says("source-data").is_some() {
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
fn restorable(client: &Client, server: &Server) -> Result<(), Failure> {
    let foreign = client.flavour == Flavour::MariaDb && server.flavour() == Flavour::MySql;
    if !foreign || server.generated.is_empty() {
        return Ok(());
    }
    Err(Failure::new(
        Reason::ClientDoesNotFit,
        format!(
            "MySQL would refuse to load what MariaDB's client ({}) writes of tables with generated columns ({}): use an image with MySQL's own mysqldump, or exclude these tables",
            client.name(),
            server.generated
        ),
    ))
}

/// A limit of the session cuts every table's rows, and the client takes what it gets for all.
fn limit(
    client: &Client,
    server: &Server,
    source: &Source,
    given: &Arguments,
    plan: &mut DumpPlan,
) -> Result<(), Failure> {
    let Some(rows) = &server.row_limit else {
        return Ok(());
    };
    if client.knows("init-command") && given.says("init-command").is_none() {
        plan.args
            .push("--init-command=SET SESSION sql_select_limit=18446744073709551615".to_owned());
        return Ok(());
    }
    Err(Failure::new(
        Reason::RowsLimited,
        format!(
            "the server gives user {:?} at most {rows} rows of a table (sql_select_limit), so the dump would lack the rest: SET GLOBAL sql_select_limit=DEFAULT, and look into init_connect",
            source.username
        ),
    ))
}

/// The history of tables with system versioning, where the client can dump it.
fn history(client: &Client, server: &Server, given: &Arguments, plan: &mut DumpPlan) {
    if server.versioned.is_empty() || given.says("no-data") == Some(true) {
        return;
    }
    let said = given.says("dump-history");
    let by_transaction = &server.versioned_by_transaction;
    let knows = client.knows("dump-history") && server.version() >= (10, 11);
    // The client refuses the whole dump for one table of that kind.
    let can = knows && by_transaction.is_empty();
    if can && said.is_none() {
        plan.args.push("--dump-history".to_owned());
        return;
    }
    if said == Some(true) {
        return;
    }
    let why = if can {
        "--skip-dump-history leaves it out".to_owned()
    } else if knows {
        format!(
            "the client can't dump that of tables whose history is by transactions ({by_transaction}), nor any beside them: exclude these tables, and back them up apart"
        )
    } else {
        format!(
            "{} of {} can't dump it; MariaDB 10.11 and later with its own client can",
            client.name(),
            client.version
        )
    };
    let text = format!(
        "the history of tables with system versioning ({}) is not in the dump: {why}",
        server.versioned
    );
    plan.partial.push(text.clone());
    plan.warnings.push(text);
}

/// Tables to leave out that are not there: the client is silent about them.
fn unmatched(server: &Server, source: &Source, plan: &mut DumpPlan) {
    let found = &server.left_out;
    if server.tables.is_none() || found.total > found.first.len() {
        return;
    }
    for (database, table) in &source.exclude_tables {
        let name = format!("{database}.{table}");
        if !found.first.iter().any(|f| f.eq_ignore_ascii_case(&name)) {
            plan.warnings.push(format!(
                "the table to leave out {name:?} is not there, so nothing was left out for it: correct the name"
            ));
        }
    }
}

fn cautions(client: Option<&Client>, server: &Server, source: &Source, plan: &mut DumpPlan) {
    if !server.not_transactional.is_empty() {
        plan.warnings.push(format!(
            "not consistent with the rest, their engine knows no transactions: {}",
            server.not_transactional
        ));
    }
    if !server.elsewhere.is_empty() {
        plan.warnings.push(format!(
            "rows of these tables are not in the dump, as their engine keeps them elsewhere (MERGE, CONNECT, SPIDER, FEDERATED, S3 and the like): {}; back them up where they are",
            server.elsewhere
        ));
    }
    if let Some(said) = &server.unanswered {
        plan.warnings.push(format!(
            "whether everything is in the dump is not known, as the server refused to say: {said}"
        ));
    }
    if !server.partly_seen.is_empty() {
        plan.warnings.push(format!(
            "tables of {} may be missing from the dump: user {:?} may read single tables only, and the server does not show it the others; grant SELECT on the whole database",
            server.partly_seen, source.username
        ));
    }
    if source.databases == Databases::All
        && !server.grants.on_all_of("", &["SELECT", "SHOW DATABASES"])
    {
        plan.warnings.push(format!(
            "all databases are asked for, and the server shows user {:?} only those it has a grant on: {}; grant SELECT on *.*, or name the databases",
            source.username,
            Names::of(server.databases.clone())
        ));
    }
    let Some(client) = client else {
        return;
    };
    if !server.floats.is_empty() {
        plan.warnings.push(format!(
            "the client writes FLOAT with 6 significant digits, so these columns may restore rounded: {}; DOUBLE restores exactly",
            server.floats
        ));
    }
    if client.flavour != server.flavour() {
        plan.warnings.push(format!(
            "client ({:?}) and server ({:?}) are of different makers: use an image with the server's own client",
            client.flavour,
            server.flavour()
        ));
    }
}

fn databases(server: &Server, source: &Source, plan: &mut DumpPlan) -> Result<(), Failure> {
    let names = match &source.databases {
        Databases::Listed(names) => names.clone(),
        Databases::All => server.databases.clone(),
    };
    if names.is_empty() {
        return Err(Failure::new(
            Reason::NoDatabases,
            format!(
                "0 databases to dump: user {:?} sees none but the server's own; create one, or grant SELECT on it",
                source.username
            ),
        ));
    }
    plan.args.push("--databases".to_owned());
    plan.args.push("--".to_owned());
    plan.args.extend(names.iter().cloned());
    plan.databases = names;
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use super::*;
    use crate::settings::Settings;
    use dump::Grants;

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
            grants: grants("SELECT, TRIGGER, EVENT, RELOAD, REPLICATION CLIENT"),
            ..Server::default()
        }
    }

    fn grants(on_all: &str) -> Grants {
        let mut grants = Grants::default();
        grants.take(&format!("GRANT {on_all} ON *.* TO `bk`@`%`"));
        grants
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
        plan(client, server, &source(extra)).unwrap().args.join(" ")
    }

    #[test]
    fn each_client_gets_what_it_knows() {
        assert_eq!(
            args(&mariadb(), &server("10.11.19-MariaDB"), ""),
            "--single-transaction --quick --triggers --hex-blob --default-character-set=utf8mb4 --max-allowed-packet=1G --no-tablespaces --skip-add-locks --routines --events --master-data=2 --databases -- shop -odd"
        );
        assert_eq!(
            args(&mysql(), &server("8.0.36"), ""),
            "--single-transaction --quick --triggers --hex-blob --default-character-set=utf8mb4 --max-allowed-packet=1G --no-tablespaces --skip-add-locks --routines --events --set-gtid-purged=COMMENTED --source-data=2 --databases -- shop -odd"
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
        poor.grants = grants("SELECT, TRIGGER");
        poor.hidden_events = Names::of(vec!["shop".into()]);
        poor.hidden_routines = Names::of(vec!["shop.p".into()]);
        let plan = plan(&mariadb(), &poor, &source("")).unwrap();
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
        mysql_server.generated = Names::of(vec!["shop.t".into()]);
        let failure = plan(&mariadb(), &mysql_server, &source("")).unwrap_err();
        assert_eq!(
            (failure.exit_code, failure.reason.as_str()),
            (3, "ClientDoesNotFit")
        );
        assert!(failure.message.contains("shop.t") && failure.message.contains("mysqldump"));
        assert!(plan(&mysql(), &mysql_server, &source("")).is_ok());
        let mut mariadb_server = server("11.8.9-MariaDB");
        mariadb_server.generated = Names::of(vec!["shop.t".into()]);
        assert!(plan(&mariadb(), &mariadb_server, &source("")).is_ok());
    }

    fn warned(server: &Server, extra: &str) -> Vec<String> {
        plan(&mariadb(), server, &source(extra)).unwrap().warnings
    }

    #[test]
    fn t5_what_is_not_in_the_dump_is_said_with_its_remedy() {
        let whole = server("10.11.19-MariaDB");
        assert_eq!(warned(&whole, ""), [""; 0]);
        let named = || Names {
            first: vec!["shop.a".into(), "shop.b".into(), "shop.c".into()],
            total: 4711,
        };
        type Change = fn(&mut Server, Names);
        let change: [(Change, &str, &str); 6] = [
            (
                |s, n| s.unlisted_triggers = n,
                "triggers of",
                "grant TRIGGER",
            ),
            (
                |s, n| s.unlisted_routines = n,
                "procedures and functions of",
                "SHOW_ROUTINE",
            ),
            (|s, n| s.hidden_events = n, "events are not", "grant EVENT"),
            (|s, n| s.partly_seen = n, "tables of", "grant SELECT"),
            (
                |s, n| s.elsewhere = n,
                "rows of these tables",
                "where they are",
            ),
            (|s, n| s.versioned = n, "history of tables", "10.11"),
        ];
        for (change, what, remedy) in change {
            let mut lacking = whole.clone();
            change(&mut lacking, named());
            let said = warned(&lacking, "");
            assert_eq!(said.len(), 1, "{said:?}");
            let fits = said[0].contains(what) && said[0].contains(remedy);
            assert!(fits && said[0].contains("shop.c and 4708 more"), "{said:?}");
        }
        let mut few = whole.clone();
        few.grants = Grants::default();
        few.grants
            .take("GRANT RELOAD, REPLICATION CLIENT ON *.* TO `bk`@`%`");
        assert!(
            warned(&few, "")[0].contains("shop, -odd"),
            "{:?}",
            warned(&few, "")
        );
        // What the user leaves out is not missed.
        let mut lacking = whole.clone();
        lacking.unlisted_triggers = named();
        let said = warned(&lacking, "--skip-triggers");
        assert!(said.len() == 1 && said[0].contains("partial"), "{said:?}");
    }

    #[test]
    fn t5_what_the_server_would_not_say_is_no_good_news() {
        let mut server = server("10.11.19-MariaDB");
        server.unanswered = Some("ERROR 1205 (HY000) at line 4: Lock wait timeout exceeded".into());
        let said = warned(&server, "");
        assert!(
            said.len() == 1 && said[0].contains("not known") && said[0].contains("1205"),
            "{said:?}"
        );
    }

    #[test]
    fn t5_an_argument_that_leaves_something_out_makes_the_dump_partial() {
        let found = plan(
            &mariadb(),
            &server("10.11.19-MariaDB"),
            &source("--no-data -n"),
        )
        .unwrap();
        assert_eq!(found.partial.len(), 2, "{found:?}");
        assert!(
            found
                .warnings
                .iter()
                .all(|w| w.starts_with("the dump is partial: by -")),
            "{found:?}"
        );
        let text = found.args.join(" ");
        assert!(
            text.starts_with("--no-data -n --single-transaction"),
            "{text}"
        );
        // Locks that are switched off are no reason to read without a snapshot.
        let text = args(
            &mariadb(),
            &server("10.11.19-MariaDB"),
            "--skip-lock-tables",
        );
        assert!(text.contains("--single-transaction"), "{text}");
        let text = args(
            &mariadb(),
            &server("10.11.19-MariaDB"),
            "--skip-opt --add-locks",
        );
        assert!(
            text.contains("--skip-opt --add-locks ") && !text.contains("--skip-add-locks"),
            "{text}"
        );
    }

    #[test]
    fn t5_history_and_all_rows_are_dumped_where_the_client_can() {
        let mut versioned = server("10.11.19-MariaDB");
        versioned.versioned = Names::of(vec!["shop.t".into()]);
        let client = Client::new(
            "/usr/bin/mariadb-dump".into(),
            "Distrib 10.11.19-MariaDB",
            "--dump-history\n",
        );
        assert!(args(&client, &versioned, "").contains("--dump-history"));
        let said = plan(&client, &versioned, &source("--skip-dump-history")).unwrap();
        assert!(said.warnings[0].contains("history"), "{said:?}");
        assert!(!args(&client, &server("10.11.19-MariaDB"), "").contains("history"));
        versioned.versioned_by_transaction = Names::of(vec!["shop.by_id".into()]);
        let said = plan(&client, &versioned, &source("")).unwrap();
        assert!(!said.args.join(" ").contains("history"), "{said:?}");
        assert!(said.warnings[0].contains("shop.by_id"), "{said:?}");
        let mut limited = server("9.7.4");
        limited.row_limit = Some("100".into());
        let failure = plan(&mysql(), &limited, &source("")).unwrap_err();
        assert_eq!(
            (failure.exit_code, failure.reason.as_str()),
            (3, "RowsLimited")
        );
        let client = Client::new(
            "/usr/bin/mysqldump".into(),
            "Ver 9.7.4",
            "--init-command=name\n",
        );
        assert!(
            args(&client, &limited, "").contains("--init-command=SET SESSION sql_select_limit=")
        );
    }

    #[test]
    fn t5_names_stay_quoted() {
        for text in [
            "--skip-quote-names",
            "--quote_names=0",
            "--disable-quote-names",
        ] {
            let refused = plan(&mariadb(), &server("10.11.19-MariaDB"), &source(text));
            assert_eq!(refused.unwrap_err().exit_code, 2, "{text}");
        }
    }

    #[test]
    fn t4_a_table_to_leave_out_that_is_not_there_is_said() {
        let mut looked = server("10.11.19-MariaDB");
        looked.tables = Some(vec![]);
        looked.left_out = Names::of(vec!["shop.Log".into()]);
        let mut source = source("");
        source.exclude_tables = vec![("shop".into(), "log".into()), ("shop".into(), "lgo".into())];
        let said = plan(&mariadb(), &looked, &source).unwrap().warnings;
        assert!(said.len() == 1 && said[0].contains("shop.lgo"), "{said:?}");
    }

    #[test]
    fn nothing_to_dump_is_a_failure() {
        let mut empty = server("10.11.19-MariaDB");
        empty.databases.clear();
        let failure = plan(&mariadb(), &empty, &source("")).unwrap_err();
        assert_eq!(
            (failure.exit_code, failure.reason.as_str()),
            (3, "NoDatabases")
        );
    }
}
