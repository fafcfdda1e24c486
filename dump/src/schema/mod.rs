//! Asks a server for all that a dump defines: databases, tables, sequences, views, triggers, routines, events.

mod hidden;
mod order;
mod programs;
mod proven;
mod server;
mod tables;

use wire::Connection;

use crate::accounts;
use crate::ask::{show, texts};
use crate::error::Error;
use crate::grants::Grants;
use crate::parts::{Database, Options, Schema, Server};
use crate::sql::{literal, name};

pub use proven::unproven;
pub use server::{prepare, server};

/// Databases of the server itself: they do not load into another one.
const SYSTEM: [&str; 4] = ["information_schema", "performance_schema", "mysql", "sys"];

/// The tables that have rows of their own, as (database, name), for LOCK TABLES.
///
/// # Errors
/// A database is not there, the server refuses, or the connection is lost.
pub fn names(
    control: &mut Connection,
    server: &Server,
    options: &Options,
) -> Result<Vec<(String, String)>, Error> {
    let mut all = vec![];
    for database in databases(control, options)? {
        let found = tables::listed(control, server, &database, options)?;
        let tables = found.into_iter().filter(tables::Listed::has_rows);
        all.extend(tables.map(|t| (database.clone(), t.name)));
    }
    Ok(all)
}

/// Reads all definitions, in the session of a snapshot or without one. The session is in another database afterwards.
///
/// # Errors
/// A database or a table that was asked for is not there, the server refuses, or the connection is lost.
pub fn schema(
    control: &mut Connection,
    server: &Server,
    options: &Options,
) -> Result<Schema, Error> {
    let wanted = databases(control, options)?;
    let mut schema = Schema {
        server: server.clone(),
        ..Schema::default()
    };
    // What a client of another character set wrote is to be had as it was written.
    set_results(control, "binary")?;
    let grants = hidden::grants(control)?;
    for database in &wanted {
        let read = read(control, options, database, &grants, &mut schema)?;
        schema.databases.push(read);
    }
    if options.accounts {
        accounts::read(control, &mut schema)?;
    }
    set_results(control, "utf8mb4")?;
    hidden::of_all(options, &grants, &mut schema);
    Ok(schema)
}

fn set_results(control: &mut Connection, set: &str) -> Result<(), Error> {
    control
        .execute(&format!("SET SESSION character_set_results = {set}"))
        .map_err(|e| Error::wire("setting up a session", e))?;
    Ok(())
}

fn read(
    control: &mut Connection,
    options: &Options,
    database: &str,
    grants: &Grants,
    schema: &mut Schema,
) -> Result<Database, Error> {
    let doing = format!("reading the definition of database {database}");
    let failed = |e| Error::wire(&doing, e);
    let quoted = name(database);
    control.execute(&format!("USE {quoted}")).map_err(failed)?;
    let sql = format!("SHOW CREATE DATABASE IF NOT EXISTS {quoted}");
    let create = show(control, &sql).map_err(failed)?.text("Create Database");
    let collation = texts(control, &doing, "SELECT @@collation_database")?;
    let mut read = Database {
        name: database.to_owned(),
        create,
        collation: collation.into_iter().next().unwrap_or_default(),
        ..Database::default()
    };
    let server = schema.server.clone();
    let listed = tables::listed(control, &server, database, options)?;
    tables::read(control, listed, &mut read, grants, options, schema)?;
    programs::read(control, &mut read, options, schema)?;
    Ok(read)
}

/// The databases to dump, in the order in which they were asked for.
fn databases(control: &mut Connection, options: &Options) -> Result<Vec<String>, Error> {
    let there = texts(control, "listing databases", "SHOW DATABASES")?;
    if options.databases.is_empty() {
        let own = |d: &String| SYSTEM.contains(&d.to_lowercase().as_str());
        return Ok(there.into_iter().filter(|d| !own(d)).collect());
    }
    let mut all: Vec<String> = vec![];
    for wanted in &options.databases {
        let Some(found) = same(there.iter().map(String::as_str), wanted) else {
            return Err(Error::Missing(format!(
                "database {wanted:?} is not there, or the user may not see it: correct the name, or grant SELECT on it"
            )));
        };
        if !all.iter().any(|d| d == found) {
            all.push(found.to_owned());
        }
    }
    if options.bare && all.len() != 1 {
        return Err(Error::Unsupported(format!(
            "a dump without CREATE DATABASE and USE is of one database, not of {}",
            all.len()
        )));
    }
    Ok(all)
}

/// The one of these names that is meant: the same, else the same in another case.
fn same<'a>(names: impl Iterator<Item = &'a str> + Clone, wanted: &str) -> Option<&'a str> {
    let lower = wanted.to_lowercase();
    names
        .clone()
        .find(|n| *n == wanted)
        .or_else(|| names.clone().find(|n| n.to_lowercase() == lower))
}

/// `= 'name'` of a column of information_schema.
fn equals(column: &str, value: &str) -> String {
    format!("{column} = {}", literal(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_in_its_own_case_comes_first() {
        let names = ["Shop", "shop", "Übung"];
        for (wanted, found) in [
            ("shop", Some("shop")),
            ("Shop", Some("Shop")),
            ("SHOP", Some("Shop")),
            ("ÜBUNG", Some("Übung")),
            ("other", None),
        ] {
            assert_eq!(same(names.into_iter(), wanted), found, "{wanted}");
        }
    }
}
