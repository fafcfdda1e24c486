//! Triggers, libraries, routines, events.

use wire::Connection;

use crate::ask::{Shown, each, show};
use crate::error::Error;
use crate::parts::{Database, Flavour, Object, Options, Schema};
use crate::schema::equals;
use crate::sql::name;

/// Kinds of routines, in the order in which they are made.
const ROUTINES: [&str; 4] = ["FUNCTION", "PROCEDURE", "PACKAGE", "PACKAGE BODY"];

/// Reads them into `database`, without the triggers of tables that are not dumped.
pub(super) fn read(
    control: &mut Connection,
    database: &mut Database,
    options: &Options,
    schema: &mut Schema,
) -> Result<(), Error> {
    triggers(control, database, schema)?;
    // Single tables are asked for.
    if options.tables.is_empty() {
        libraries(control, database, schema)?;
        routines(control, database, schema)?;
        events(control, database, schema)?;
    }
    Ok(())
}

fn triggers(
    control: &mut Connection,
    database: &mut Database,
    schema: &mut Schema,
) -> Result<(), Error> {
    let doing = format!("listing the triggers of database {}", database.name);
    let sql = format!(
        "SELECT EVENT_OBJECT_TABLE, ACTION_TIMING, EVENT_MANIPULATION, ACTION_ORDER, TRIGGER_NAME FROM information_schema.TRIGGERS WHERE {}",
        equals("TRIGGER_SCHEMA", &database.name)
    );
    let mut all = each(control, &sql, |row| {
        let (table, timing, event) = (row.text()?, row.text()?, row.text()?);
        Ok((table, timing, event, row.number()?, row.text()?))
    })
    .map_err(|e| Error::wire(doing, e))?;
    // Those of one event run in the order in which they were made.
    all.sort();
    for (table, _, _, _, trigger) in all {
        if !database.tables.iter().any(|t| t.name == table) {
            continue;
        }
        let read = object(control, "TRIGGER", &database.name, &trigger, schema)?;
        database.triggers.extend(read);
    }
    Ok(())
}

/// MySQL has them since 9.2.
fn libraries(
    control: &mut Connection,
    database: &mut Database,
    schema: &mut Schema,
) -> Result<(), Error> {
    let server = &schema.server;
    if server.flavour != Flavour::MySql || server.numbers < (9, 2, 0) {
        return Ok(());
    }
    let doing = format!("listing the libraries of database {}", database.name);
    let sql = format!(
        "SELECT LIBRARY_NAME FROM information_schema.LIBRARIES WHERE {}",
        equals("LIBRARY_SCHEMA", &database.name)
    );
    let mut all = each(control, &sql, |row| row.text()).map_err(|e| Error::wire(doing, e))?;
    all.sort();
    for library in all {
        let read = object(control, "LIBRARY", &database.name, &library, schema)?;
        database.libraries.extend(read);
    }
    Ok(())
}

fn routines(
    control: &mut Connection,
    database: &mut Database,
    schema: &mut Schema,
) -> Result<(), Error> {
    let doing = format!("listing the routines of database {}", database.name);
    let sql = format!(
        "SELECT ROUTINE_TYPE, ROUTINE_NAME FROM information_schema.ROUTINES WHERE {}",
        equals("ROUTINE_SCHEMA", &database.name)
    );
    let found = each(control, &sql, |row| Ok((row.text()?, row.text()?)))
        .map_err(|e| Error::wire(doing, e))?;
    let mut all = vec![];
    for (kind, routine) in found {
        match ROUTINES.iter().position(|k| *k == kind) {
            Some(at) => all.push((at, routine)),
            None => schema.unreadable.push(format!(
                "{} {}.{routine}: it is not known how to dump it",
                kind.to_lowercase(),
                database.name
            )),
        }
    }
    all.sort();
    for (kind, routine) in all {
        let read = object(control, ROUTINES[kind], &database.name, &routine, schema)?;
        database.routines.extend(read);
    }
    Ok(())
}

fn events(
    control: &mut Connection,
    database: &mut Database,
    schema: &mut Schema,
) -> Result<(), Error> {
    let doing = format!("listing the events of database {}", database.name);
    let sql = format!(
        "SELECT EVENT_NAME FROM information_schema.EVENTS WHERE {}",
        equals("EVENT_SCHEMA", &database.name)
    );
    let mut all = each(control, &sql, |row| row.text()).map_err(|e| Error::wire(doing, e))?;
    all.sort();
    for event in all {
        let read = object(control, "EVENT", &database.name, &event, schema)?;
        database.events.extend(read);
    }
    Ok(())
}

/// Reads one of them. What the user may not read is `None`, and a line in `schema.hidden`.
fn object(
    control: &mut Connection,
    what: &'static str,
    database: &str,
    object: &str,
    schema: &mut Schema,
) -> Result<Option<Object>, Error> {
    let label = format!("{} {database}.{object}", what.to_lowercase());
    let shown = match show(control, &format!("SHOW CREATE {what} {}", name(object))) {
        Ok(shown) => shown,
        Err(e) if matches!(e.number(), Some(1044 | 1142 | 1227 | 1305 | 1370 | 1419)) => {
            // 1305, "does not exist", is also what is said to whom it is hidden from.
            schema
                .hidden
                .push(format!("{label} is not in the dump: {e}"));
            return Ok(None);
        }
        Err(e) => return Err(Error::wire(format!("reading the definition of {label}"), e)),
    };
    let read = taken(shown, what, object);
    if read.is_none() {
        schema.hidden.push(format!(
            "{label} is not in the dump: the user may not read its body; grant SELECT on mysql.proc (MariaDB) or SHOW_ROUTINE (MySQL 8)"
        ));
    }
    Ok(read)
}

fn taken(mut shown: Shown, what: &'static str, name: &str) -> Option<Object> {
    let column = match what {
        "TRIGGER" => "SQL Original Statement",
        "EVENT" => "Create Event",
        "FUNCTION" => "Create Function",
        "PROCEDURE" => "Create Procedure",
        "LIBRARY" => "Create Library",
        "PACKAGE" => "Create Package",
        _ => "Create Package Body",
    };
    Some(Object {
        name: name.to_owned(),
        what,
        create: shown.bytes(column)?,
        columns: vec![],
        sql_mode: shown.text("sql_mode"),
        client: shown.text("character_set_client"),
        connection: shown.text("collation_connection"),
        database: shown.text("Database Collation"),
        time_zone: shown.text("time_zone"),
    })
}
