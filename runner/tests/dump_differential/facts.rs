//! All that a server holds, as lines that can be compared, asked by its own client.

use std::collections::BTreeSet;

use super::common::MariaDb;
use super::random::{Kind, quoted};

const OWN: &str = "('information_schema','performance_schema','mysql','sys')";

fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

/// Rows of a statement: fields between tabs, each in hexadecimal.
fn ask(db: &MariaDb, sql: &str) -> Vec<Vec<String>> {
    let text = |hex: &str| {
        let bytes: Vec<u8> = (0..hex.len() / 2)
            .map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap())
            .collect();
        String::from_utf8(bytes).unwrap()
    };
    db.sql(sql)
        .lines()
        .map(|line| line.split('\t').map(text).collect())
        .collect()
}

/// Databases that are not the server's own.
pub fn databases(db: &MariaDb) -> Vec<String> {
    let sql = format!(
        "SELECT HEX(SCHEMA_NAME) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME NOT IN {OWN} ORDER BY 1"
    );
    ask(db, &sql).into_iter().flatten().collect()
}

/// Users and roles that the tests made.
pub fn accounts(db: &MariaDb, kind: Kind) -> Vec<String> {
    let role = if kind.is_mariadb() { "is_role" } else { "'N'" };
    let sql = format!(
        "SELECT HEX(User), HEX(Host), HEX({role}) FROM mysql.user WHERE User NOT IN ('root','','mysql','mariadb.sys','mysql.sys','mysql.session','mysql.infoschema','PUBLIC') ORDER BY 1, 2"
    );
    ask(db, &sql)
        .into_iter()
        .map(|row| {
            if row[2] == "Y" {
                quoted(&row[0])
            } else {
                format!("{}@{}", quoted(&row[0]), quoted(&row[1]))
            }
        })
        .collect()
}

/// How closely it is looked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// Everything.
    Close,
    /// As far as the clients bring it back: FLOAT to six digits, no rounds of a sequence, no accounts.
    Client,
}

/// How a column's value is shown without loss.
fn shown(name: &str, data_type: &str, look: Look) -> String {
    let column = quoted(name);
    match data_type {
        // Its own text has six digits.
        "float" if look == Look::Close => format!("CAST({column} AS DOUBLE)"),
        "float" => column,
        "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "decimal" | "double" | "year"
        | "date" | "time" | "datetime" | "timestamp" => column,
        "json" | "uuid" | "inet4" | "inet6" => format!("HEX(CAST({column} AS CHAR))"),
        "bit" => format!("HEX({column})"),
        _ => format!("HEX({column})"),
    }
}

/// Everything, a line for each fact; definitions over several lines as one.
pub fn all(db: &MariaDb, kind: Kind, look: Look) -> Vec<String> {
    let mut script = String::from("SET time_zone='+00:00'; SET sql_mode='';\n");
    if !kind.is_mariadb() {
        script.push_str("SET print_identified_with_as_hex=1;\n");
    }
    let mut say = |what: &str, sql: String| {
        script.push_str(&format!(
            "SELECT {};\n{sql};\n",
            literal(&format!("== {what}"))
        ));
    };
    let sequence = match look {
        Look::Close => "*",
        Look::Client => {
            "next_not_cached_value, minimum_value, maximum_value, start_value, increment, cache_size, cycle_option"
        }
    };
    for database in databases(db) {
        let of = quoted(&database);
        say(
            &format!("database {database}"),
            format!("SHOW CREATE DATABASE {of}; USE {of}"),
        );
        let is = literal(&database);
        let tables = ask(
            db,
            &format!(
                "SELECT HEX(TABLE_NAME), HEX(TABLE_TYPE), HEX(COALESCE(ENGINE,'')) FROM information_schema.TABLES WHERE TABLE_SCHEMA={is} ORDER BY 1"
            ),
        );
        let columns = ask(
            db,
            &format!(
                "SELECT HEX(TABLE_NAME), HEX(COLUMN_NAME), HEX(DATA_TYPE), HEX(COALESCE(GENERATION_EXPRESSION,'')) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA={is} ORDER BY TABLE_NAME, ORDINAL_POSITION"
            ),
        );
        for table in &tables {
            let (name, what) = (&table[0], table[1].as_str());
            let label = format!("{database}.{name}");
            let name = quoted(name);
            if what == "SEQUENCE" {
                say(
                    &format!("sequence {label}"),
                    format!("SHOW CREATE SEQUENCE {name}; SELECT {sequence} FROM {name}"),
                );
                continue;
            }
            say(
                &format!("definition {label}"),
                format!("SHOW CREATE TABLE {name}"),
            );
            let mut values: Vec<String> = columns
                .iter()
                .filter(|c| c[0] == table[0])
                .map(|c| shown(&c[1], &c[2].to_lowercase(), look))
                .collect();
            let mut from = name.clone();
            if what == "SYSTEM VERSIONED" {
                from.push_str(" FOR SYSTEM_TIME ALL");
                if !columns
                    .iter()
                    .any(|c| c[0] == table[0] && c[3] == "ROW START")
                {
                    values.extend(["row_start".to_owned(), "row_end".to_owned()]);
                }
            }
            // A view's rows are its tables'.
            if what != "VIEW" {
                let order: Vec<String> = (1..=values.len()).map(|n| n.to_string()).collect();
                say(
                    &format!("rows {label}"),
                    format!(
                        "SELECT {} FROM {from} ORDER BY {}",
                        values.join(","),
                        order.join(",")
                    ),
                );
            }
        }
        for (what, table, of, columns) in [
            (
                "triggers",
                "TRIGGERS",
                "TRIGGER_SCHEMA",
                "TRIGGER_NAME, EVENT_MANIPULATION, EVENT_OBJECT_TABLE, ACTION_ORDER, ACTION_STATEMENT, ACTION_TIMING, SQL_MODE, DEFINER, CHARACTER_SET_CLIENT, COLLATION_CONNECTION, DATABASE_COLLATION",
            ),
            (
                "routines",
                "ROUTINES",
                "ROUTINE_SCHEMA",
                "ROUTINE_NAME, ROUTINE_TYPE, DTD_IDENTIFIER, ROUTINE_DEFINITION, IS_DETERMINISTIC, SQL_DATA_ACCESS, SECURITY_TYPE, SQL_MODE, ROUTINE_COMMENT, DEFINER, CHARACTER_SET_CLIENT, COLLATION_CONNECTION, DATABASE_COLLATION",
            ),
            (
                "parameters",
                "PARAMETERS",
                "SPECIFIC_SCHEMA",
                "SPECIFIC_NAME, ORDINAL_POSITION, PARAMETER_MODE, PARAMETER_NAME, DTD_IDENTIFIER, CHARACTER_SET_NAME, COLLATION_NAME",
            ),
            (
                "events",
                "EVENTS",
                "EVENT_SCHEMA",
                "EVENT_NAME, DEFINER, TIME_ZONE, EVENT_DEFINITION, EVENT_TYPE, EXECUTE_AT, INTERVAL_VALUE, INTERVAL_FIELD, SQL_MODE, STARTS, ENDS, STATUS, ON_COMPLETION, EVENT_COMMENT, CHARACTER_SET_CLIENT, COLLATION_CONNECTION, DATABASE_COLLATION",
            ),
            (
                "views",
                "VIEWS",
                "TABLE_SCHEMA",
                "TABLE_NAME, VIEW_DEFINITION, CHECK_OPTION, IS_UPDATABLE, DEFINER, SECURITY_TYPE, CHARACTER_SET_CLIENT, COLLATION_CONNECTION",
            ),
            (
                "columns",
                "COLUMNS",
                "TABLE_SCHEMA",
                "TABLE_NAME, ORDINAL_POSITION, COLUMN_NAME, COLUMN_DEFAULT, IS_NULLABLE, COLUMN_TYPE, CHARACTER_SET_NAME, COLLATION_NAME, EXTRA, COLUMN_COMMENT",
            ),
        ] {
            say(
                &format!("{what} {database}"),
                format!(
                    "SELECT {columns} FROM information_schema.{table} WHERE {of}={is} ORDER BY 1, 2, 3"
                ),
            );
        }
        for (what, table, of, name) in [
            ("TRIGGER", "TRIGGERS", "TRIGGER_SCHEMA", "TRIGGER_NAME"),
            ("EVENT", "EVENTS", "EVENT_SCHEMA", "EVENT_NAME"),
        ] {
            for row in ask(
                db,
                &format!(
                    "SELECT HEX({name}) FROM information_schema.{table} WHERE {of}={is} ORDER BY 1"
                ),
            ) {
                // The last column of a trigger is when it was made.
                say(
                    &format!("{} {database}.{}", what.to_lowercase(), row[0]),
                    format!("SHOW CREATE {what} {}", quoted(&row[0])),
                );
            }
        }
        if !kind.is_mariadb() {
            say(
                &format!("libraries {database}"),
                format!(
                    "SELECT LIBRARY_NAME, HEX(LIBRARY_DEFINITION), LANGUAGE, SQL_MODE, LIBRARY_COMMENT FROM information_schema.LIBRARIES WHERE LIBRARY_SCHEMA={is} ORDER BY 1"
                ),
            );
            say(
                &format!("libraries of routines {database}"),
                format!(
                    "SELECT ROUTINE_NAME, ROUTINE_TYPE, LIBRARY_SCHEMA, LIBRARY_NAME FROM information_schema.ROUTINE_LIBRARIES WHERE ROUTINE_SCHEMA={is} ORDER BY 1, 2, 3, 4"
                ),
            );
        }
        for row in ask(
            db,
            &format!(
                "SELECT HEX(ROUTINE_NAME), HEX(ROUTINE_TYPE) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA={is} ORDER BY 1, 2"
            ),
        ) {
            say(
                &format!("{} {database}.{}", row[1].to_lowercase(), row[0]),
                format!("SHOW CREATE {} {}", row[1], quoted(&row[0])),
            );
        }
    }
    if look == Look::Close {
        for account in accounts(db, kind) {
            if account.contains("`@`") {
                say(
                    &format!("account {account}"),
                    format!("SHOW CREATE USER {account}"),
                );
            }
            say(
                &format!("grants {account}"),
                format!("SHOW GRANTS FOR {account}"),
            );
        }
        say(
            "grants of root",
            "SHOW GRANTS FOR root@localhost".to_owned(),
        );
    }
    lines(&db.sql(&script))
}

/// One line a fact, under the head of what it is of.
fn lines(text: &str) -> Vec<String> {
    let (mut head, mut all) = ("", vec![]);
    for line in text.lines() {
        if let Some(of) = line.strip_prefix("== ") {
            head = of;
            continue;
        }
        let line = match head.starts_with("trigger ") {
            true => line.rsplit_once('\t').map_or(line, |(kept, _)| kept),
            false => line,
        };
        let mut line = format!("{head}: {line}");
        if head.starts_with("definition ") {
            line = without_implied(&line);
        }
        all.push(line);
    }
    // What grants a role is shown in any order.
    let mut seen = BTreeSet::new();
    all.retain(|line| !line.starts_with("grants ") || seen.insert(line.clone()));
    let from = all
        .iter()
        .position(|l| l.starts_with("account ") || l.starts_with("grants "));
    if let Some(from) = from {
        all[from..].sort();
    }
    all
}

/// MySQL shows a column's character set or not by how it was said once; the collation beside it says the same.
fn without_implied(line: &str) -> String {
    let mut text = String::new();
    let mut rest = line;
    while let Some(at) = rest.find(" CHARACTER SET ") {
        let (before, after) = rest.split_at(at);
        text.push_str(before);
        let word = after[15..].find(' ').map_or(after.len(), |n| n + 15);
        if !after[word..].starts_with(" COLLATE ") {
            text.push_str(&after[..word]);
        }
        rest = &after[word..];
    }
    text + rest
}

/// What is in one of them alone.
pub fn difference(one: &[String], other: &[String]) -> Vec<String> {
    let (a, b): (BTreeSet<&String>, BTreeSet<&String>) =
        (one.iter().collect(), other.iter().collect());
    let mut all: Vec<String> = a.difference(&b).map(|l| format!("- {l}")).collect();
    all.extend(b.difference(&a).map(|l| format!("+ {l}")));
    all.sort_by(|a, b| a[2..].cmp(&b[2..]));
    if all.is_empty() && one.len() != other.len() {
        all.push(format!("{} and {} facts", one.len(), other.len()));
    }
    all
}
