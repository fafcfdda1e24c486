//! Tables, sequences and views, their columns and keys.

use std::collections::{BTreeMap, BTreeSet};

use wire::Connection;

use crate::ask::{each, show};
use crate::error::Error;
use crate::grants::Grants;
use crate::parts::{
    Column, Database, Flavour, Key, Object, Options, Schema, Server, Table, TableKind,
};
use crate::schema::{equals, order, same};
use crate::sql::name;

/// Engines whose rows are elsewhere or of other tables; the clients dump their definition alone.
const ELSEWHERE: [&str; 9] = [
    "MRG_MYISAM",
    "MRG_ISAM",
    "CONNECT",
    "OQGRAPH",
    "SPIDER",
    "VP",
    "FEDERATED",
    "S3",
    "BLACKHOLE",
];
/// Engines of which a snapshot holds the rows.
const TRANSACTIONAL: [&str; 5] = ["INNODB", "ROCKSDB", "TOKUDB", "NDBCLUSTER", "NDB"];

/// A name of SHOW TABLES, and what it is.
#[derive(Clone, Debug, Default)]
pub(super) struct Listed {
    pub(super) name: String,
    kind: String,
    engine: String,
    bytes: u64,
    rows: u64,
}

impl Listed {
    /// A table whose rows are dumped.
    pub(super) fn has_rows(&self) -> bool {
        matches!(
            self.kind(),
            Some(TableKind::Transactional | TableKind::NotTransactional)
        )
    }

    /// `None` for a view.
    fn kind(&self) -> Option<TableKind> {
        let engine = self.engine.to_uppercase();
        match self.kind.as_str() {
            "VIEW" | "SYSTEM VIEW" => None,
            "SEQUENCE" => Some(TableKind::Sequence),
            _ if ELSEWHERE.contains(&engine.as_str()) => Some(TableKind::NoRows),
            _ if TRANSACTIONAL.contains(&engine.as_str()) => Some(TableKind::Transactional),
            _ => Some(TableKind::NotTransactional),
        }
    }
}

/// Tables, sequences and views of a database that are to be dumped, by their names.
pub(super) fn listed(
    control: &mut Connection,
    _server: &Server,
    database: &str,
    options: &Options,
) -> Result<Vec<Listed>, Error> {
    let sql = format!(
        "SELECT TABLE_NAME, TABLE_TYPE, ENGINE, DATA_LENGTH, TABLE_ROWS FROM information_schema.TABLES WHERE {} AND TABLE_TYPE NOT LIKE '%TEMPORARY%'",
        equals("TABLE_SCHEMA", database)
    );
    let mut all = each(control, &sql, |row| {
        Ok(Listed {
            name: row.text()?,
            kind: row.text()?,
            engine: row.text()?,
            bytes: row.number()?,
            rows: row.number()?,
        })
    })
    .map_err(|e| Error::wire(format!("listing the tables of database {database}"), e))?;
    all.sort_by(|a, b| a.name.cmp(&b.name));
    let names: Vec<String> = all.iter().map(|t| t.name.clone()).collect();
    let found = |wanted: &str| same(names.iter().map(String::as_str), wanted);
    if !options.tables.is_empty() {
        let mut chosen = BTreeSet::new();
        for wanted in &options.tables {
            chosen.insert(found(wanted).ok_or_else(|| {
                Error::Missing(format!(
                    "table {wanted:?} of database {database:?} is not there, or the user may not see it: correct the name, or grant SELECT on it"
                ))
            })?);
        }
        all.retain(|t| chosen.contains(t.name.as_str()));
    }
    let excluded: BTreeSet<&str> = options
        .exclude
        .iter()
        .filter(|(d, _)| d.to_lowercase() == database.to_lowercase())
        .filter_map(|(_, t)| found(t))
        .collect();
    all.retain(|t| !excluded.contains(t.name.as_str()));
    Ok(all)
}

/// Reads what was listed into `database`.
pub(super) fn read(
    control: &mut Connection,
    listed: Vec<Listed>,
    database: &mut Database,
    grants: &Grants,
    options: &Options,
    schema: &mut Schema,
) -> Result<(), Error> {
    let mut columns = columns(control, &database.name)?;
    let mut keys = keys(control, &schema.server, &database.name)?;
    let (mut sequences, mut tables) = (vec![], vec![]);
    for one in listed {
        let label = format!("{}.{}", database.name, one.name);
        let Some(kind) = one.kind() else {
            let view = view(
                control,
                &one.name,
                columns.remove(&one.name).unwrap_or_default(),
            );
            match view {
                Ok(view) => database.views.push(view),
                Err(e) => unreadable(schema, "view", &label, e)?,
            }
            continue;
        };
        if kind == TableKind::Sequence {
            match sequence(control, &one) {
                Ok(table) => sequences.push(Table {
                    database: of(database, options),
                    ..table
                }),
                Err(e) => unreadable(schema, "sequence", &label, e)?,
            }
            continue;
        }
        let what = |control: &mut Connection| -> Result<Vec<u8>, wire::Error> {
            if !grants.on_table(&database.name, &one.name, &["SELECT"]) {
                let sql = format!("SELECT * FROM {} LIMIT 0", name(&one.name));
                control.execute(&sql)?;
            }
            let sql = format!("SHOW CREATE TABLE {}", name(&one.name));
            let mut shown = show(control, &sql)?;
            shown
                .bytes("Create Table")
                .ok_or(wire::Error::Malformed("SHOW CREATE TABLE gives nothing"))
        };
        let create = match what(control) {
            Ok(create) => create,
            Err(e) => {
                unreadable(schema, "table", &label, e)?;
                continue;
            }
        };
        let mut table = Table {
            database: of(database, options),
            name: one.name.clone(),
            kind,
            create,
            engine: one.engine.clone(),
            columns: columns.remove(&one.name).unwrap_or_default(),
            key: keys.remove(&one.name),
            bytes: one.bytes,
            rows: one.rows,
            ..Table::default()
        };
        if one.kind == "SYSTEM VERSIONED" {
            history(&mut table, &label, schema);
        }
        tables.push(table);
    }
    database.views = order::by_need(std::mem::take(&mut database.views));
    sequences.append(&mut tables);
    database.tables = sequences;
    Ok(())
}

/// Takes note of what the user may not read; any other end is a failure.
fn unreadable(schema: &mut Schema, what: &str, label: &str, e: wire::Error) -> Result<(), Error> {
    match e.number() {
        // Commands and columns denied; of a view also what it is made of.
        Some(1142 | 1143 | 1345 | 1356 | 1370 | 1449) => {
            schema.unreadable.push(format!("{what} {label}: {e}"));
            Ok(())
        }
        Some(1146 | 1051) => Err(Error::Changed(format!(
            "{what} {label} was dropped while the dump was read"
        ))),
        _ => Err(Error::wire(
            format!("reading the definition of {what} {label}"),
            e,
        )),
    }
}

/// What a piece says of its database.
fn of(database: &Database, options: &Options) -> String {
    if options.bare {
        String::new()
    } else {
        database.name.clone()
    }
}

fn sequence(control: &mut Connection, one: &Listed) -> Result<Table, wire::Error> {
    let quoted = name(&one.name);
    let mut shown = show(control, &format!("SHOW CREATE SEQUENCE {quoted}"))?;
    let create = shown.bytes("Create Table").unwrap_or_default();
    let sql = format!(
        "SELECT next_not_cached_value, cycle_count, cycle_count = 0 AND next_not_cached_value BETWEEN minimum_value AND maximum_value AND IF(increment < 0, next_not_cached_value > start_value, next_not_cached_value < start_value) FROM {quoted}"
    );
    let mut next = each(control, &sql, |row| {
        let (next, round) = (row.text()?, row.text()?);
        // SETVAL takes no value back to before the start, unless in a later round.
        Ok(match row.number()? {
            1 => format!("ALTER SEQUENCE {quoted} RESTART {next}"),
            _ => format!("DO SETVAL({quoted}, {next}, 0, {round})"),
        })
    })?;
    Ok(Table {
        name: one.name.clone(),
        kind: TableKind::Sequence,
        create,
        next: next.pop().unwrap_or_default(),
        engine: one.engine.clone(),
        ..Table::default()
    })
}

fn view(control: &mut Connection, view: &str, columns: Vec<Column>) -> Result<Object, wire::Error> {
    let mut shown = show(control, &format!("SHOW CREATE VIEW {}", name(view)))?;
    Ok(Object {
        name: view.to_owned(),
        what: "VIEW",
        create: shown.bytes("Create View").unwrap_or_default(),
        client: shown.text("character_set_client"),
        connection: shown.text("collation_connection"),
        columns: columns.into_iter().map(|c| c.name).collect(),
        ..Object::default()
    })
}

/// The first version of MariaDB that takes back the history of rows.
const HISTORY: (u32, u32, u32) = (10, 11, 0);

/// Whether the history of a table can be had, and by which columns.
fn history(table: &mut Table, label: &str, schema: &mut Schema) {
    let by_transaction = table
        .columns
        .iter()
        .any(|c| c.data_type == "bigint" && is_period(&table.create, &c.name));
    if schema.server.numbers < HISTORY || by_transaction {
        let why = if by_transaction {
            "it is kept by transactions"
        } else {
            "MariaDB 10.11 and later can take it back"
        };
        schema.hidden.push(format!(
            "the history of table {label} is not in the dump: {why}"
        ));
        return;
    }
    table.versioned = true;
    let mut visible = false;
    for column in &mut table.columns {
        if is_period(&table.create, &column.name) {
            (column.generated, visible) = (false, true);
        }
    }
    if !visible {
        for name in ["row_start", "row_end"] {
            table.columns.push(Column {
                name: name.to_owned(),
                data_type: "timestamp".to_owned(),
                column_type: "timestamp(6)".to_owned(),
                generated: false,
                invisible: true,
            });
        }
    }
}

/// A column that the table's definition makes the start or the end of a row.
fn is_period(create: &[u8], column: &str) -> bool {
    let create = String::from_utf8_lossy(create);
    let begin = format!("\n  {} ", name(column));
    let line = create
        .split_once(&begin)
        .and_then(|(_, rest)| rest.lines().next());
    line.is_some_and(|l| l.contains("GENERATED ALWAYS AS ROW "))
}

/// Columns of the tables and views of a database, in their order.
fn columns(
    control: &mut Connection,
    database: &str,
) -> Result<BTreeMap<String, Vec<Column>>, Error> {
    let sql = format!(
        "SELECT TABLE_NAME, ORDINAL_POSITION, COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, GENERATION_EXPRESSION, EXTRA FROM information_schema.COLUMNS WHERE {}",
        equals("TABLE_SCHEMA", database)
    );
    let rows = each(control, &sql, |row| {
        let (table, at, name) = (row.text()?, row.number()?, row.text()?);
        let (data_type, column_type) = (row.text()?.to_lowercase(), row.text()?);
        let generated = row.bytes()?.is_some_and(|e| !e.is_empty());
        let invisible = row.text()?.contains("INVISIBLE");
        let column = Column {
            name,
            data_type,
            column_type,
            generated,
            invisible,
        };
        Ok((table, at, column))
    })
    .map_err(|e| Error::wire(format!("reading the columns of database {database}"), e))?;
    let mut all: BTreeMap<String, BTreeMap<u64, Column>> = BTreeMap::new();
    for (table, at, column) in rows {
        all.entry(table).or_default().insert(at, column);
    }
    let in_order = |(table, columns): (String, BTreeMap<u64, Column>)| {
        (table, columns.into_values().collect())
    };
    Ok(all.into_iter().map(in_order).collect())
}

/// A part of a unique key.
#[derive(Default)]
struct Part {
    at: u64,
    column: String,
    /// Whole, not NULL, in order, and used by the server.
    fits: bool,
}

/// The key of each table by whose columns its rows can be read in ranges.
fn keys(
    control: &mut Connection,
    server: &Server,
    database: &str,
) -> Result<BTreeMap<String, Key>, Error> {
    let seen = match server.flavour {
        Flavour::MySql => "IS_VISIBLE = 'YES'",
        Flavour::MariaDb if server.numbers >= (10, 6, 0) => "IGNORED = 'NO'",
        Flavour::MariaDb => "TRUE",
    };
    let sql = format!(
        "SELECT TABLE_NAME, INDEX_NAME, SEQ_IN_INDEX, COLUMN_NAME, SUB_PART IS NULL AND NULLABLE <> 'YES' AND INDEX_TYPE = 'BTREE' AND {seen} FROM information_schema.STATISTICS WHERE {} AND NON_UNIQUE = 0",
        equals("TABLE_SCHEMA", database)
    );
    let rows = each(control, &sql, |row| {
        let (table, key) = (row.text()?, row.text()?);
        let part = Part {
            at: row.number()?,
            column: row.text()?,
            fits: row.number()? == 1,
        };
        Ok((table, key, part))
    })
    .map_err(|e| Error::wire(format!("reading the keys of database {database}"), e))?;
    let mut all: BTreeMap<String, BTreeMap<String, Vec<Part>>> = BTreeMap::new();
    for (table, key, part) in rows {
        let parts = all.entry(table).or_default().entry(key).or_default();
        parts.push(part);
    }
    let best = |keys: BTreeMap<String, Vec<Part>>| {
        let mut fitting: Vec<(String, Vec<Part>)> = keys
            .into_iter()
            .filter(|(_, parts)| parts.iter().all(|p| p.fits && !p.column.is_empty()))
            .collect();
        fitting.sort_by_key(|(key, parts)| (key != "PRIMARY", parts.len()));
        let (name, mut parts) = fitting.into_iter().next()?;
        parts.sort_by_key(|p| p.at);
        Some(Key {
            name,
            columns: parts.into_iter().map(|p| p.column).collect(),
        })
    };
    Ok(all
        .into_iter()
        .filter_map(|(table, keys)| Some((table, best(keys)?)))
        .collect())
}
