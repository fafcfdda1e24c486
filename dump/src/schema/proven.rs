//! The list of what is proven to come back as it is. PURE.

use crate::parts::{Database, Flavour, Schema, Table, TableKind};

/// Engines whose tables were dumped and restored beside the clients' own dumps, and compared.
const ENGINES: [&str; 8] = [
    "INNODB",
    "MYISAM",
    "ARIA",
    "MEMORY",
    "MRG_MYISAM",
    "BLACKHOLE",
    "CSV",
    "ARCHIVE",
];

/// Data types of information_schema, the same way.
const TYPES: [&str; 46] = [
    "tinyint",
    "smallint",
    "mediumint",
    "int",
    "bigint",
    "decimal",
    "float",
    "double",
    "bit",
    "char",
    "varchar",
    "binary",
    "varbinary",
    "tinyblob",
    "blob",
    "mediumblob",
    "longblob",
    "tinytext",
    "text",
    "mediumtext",
    "longtext",
    "enum",
    "set",
    "date",
    "time",
    "datetime",
    "timestamp",
    "year",
    "json",
    "geometry",
    "point",
    "linestring",
    "polygon",
    "multipoint",
    "multilinestring",
    "multipolygon",
    "geometrycollection",
    "geomcollection",
    "inet4",
    "inet6",
    "uuid",
    "vector",
    "integer",
    "numeric",
    "real",
    "boolean",
];

/// Character sets in which a byte of a character can be a backslash or a quote.
const AMBIGUOUS: [&str; 5] = ["big5", "cp932", "gbk", "gb18030", "sjis"];

/// Why it is not certain that a dump of this comes back as it is, with names. Nothing: it is on the list.
#[must_use]
pub fn unproven(schema: &Schema) -> Vec<String> {
    let mut found = vec![];
    let server = &schema.server;
    let (first, last, all) = match server.flavour {
        Flavour::MariaDb => ((10, 6), (12, 99), "MariaDB 10.6 to 12"),
        Flavour::MySql => ((8, 0), (9, 99), "MySQL 8.0 to 9"),
    };
    let version = (server.numbers.0, server.numbers.1);
    if version < first || version > last {
        found.push(format!(
            "the server's version {} is not of {all}",
            server.version
        ));
    }
    for database in &schema.databases {
        if crate::schema::SYSTEM.contains(&database.name.to_lowercase().as_str()) {
            found.push(format!("database {} is the server's own", database.name));
        }
        for one in &database.tables {
            table(database, one, &mut found);
        }
        objects(database, &mut found);
    }
    found.extend(schema.unreadable.iter().cloned());
    found
}

fn table(database: &Database, table: &Table, found: &mut Vec<String>) {
    let label = format!("table {}.{}", database.name, table.name);
    let engine = table.engine.to_uppercase();
    if table.kind != TableKind::Sequence && !ENGINES.contains(&engine.as_str()) {
        found.push(format!(
            "{label}: engine {:?} is not on the list",
            table.engine
        ));
    }
    for column in &table.columns {
        if !TYPES.contains(&column.data_type.as_str()) {
            found.push(format!(
                "{label}: data type {:?} of column {} is not on the list",
                column.data_type, column.name
            ));
        }
    }
    if memchr::memmem::find(&table.create, b" TABLESPACE `").is_some() {
        found.push(format!("{label}: its tablespace has to be there first"));
    }
    let by_transaction = !table.versioned && has_period(table);
    if by_transaction {
        found.push(format!("{label}: its history is not in a dump"));
    }
}

fn has_period(table: &Table) -> bool {
    memchr::memmem::rfind(&table.create, b"WITH SYSTEM VERSIONING").is_some()
}

fn objects(database: &Database, found: &mut Vec<String>) {
    let all = [
        &database.views,
        &database.libraries,
        &database.triggers,
        &database.routines,
        &database.events,
    ];
    for object in all.into_iter().flatten() {
        let modes: Vec<&str> = object.sql_mode.split(',').collect();
        let quotes = modes.contains(&"ANSI_QUOTES") && !modes.contains(&"NO_BACKSLASH_ESCAPES");
        if quotes && memchr::memmem::find(&object.create, b"\\\"").is_some() {
            found.push(format!(
                "{} {}.{}: where its mode is ANSI_QUOTES, a client that loads it takes a backslash before a quote otherwise than the server",
                object.what.to_lowercase(),
                database.name,
                object.name
            ));
        }
        if AMBIGUOUS.contains(&object.client.as_str()) {
            found.push(format!(
                "{} {}.{}: it was made in character set {}",
                object.what.to_lowercase(),
                database.name,
                object.name,
                object.client
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::{Column, Object, Server};

    fn server(version: &str, flavour: Flavour, numbers: (u32, u32, u32)) -> Schema {
        Schema {
            server: Server {
                flavour,
                version: version.into(),
                numbers,
            },
            ..Schema::default()
        }
    }

    #[test]
    fn versions_outside_of_the_list_are_named() {
        use Flavour::{MariaDb, MySql};
        for (version, flavour, numbers, proven) in [
            ("10.5.9-MariaDB", MariaDb, (10, 5, 9), false),
            ("10.6.1-MariaDB", MariaDb, (10, 6, 1), true),
            ("12.3.1-MariaDB", MariaDb, (12, 3, 1), true),
            ("13.0.1-MariaDB", MariaDb, (13, 0, 1), false),
            ("5.7.44", MySql, (5, 7, 44), false),
            ("8.0.40", MySql, (8, 0, 40), true),
            ("9.7.4", MySql, (9, 7, 4), true),
            ("10.0.1", MySql, (10, 0, 1), false),
        ] {
            let found = unproven(&server(version, flavour, numbers));
            assert_eq!(found.is_empty(), proven, "{version}");
            assert!(proven || found[0].contains(version));
        }
    }

    #[test]
    fn what_is_not_on_the_list_is_named() {
        let mut schema = server("9.7.4", Flavour::MySql, (9, 7, 4));
        let table = |name: &str, engine: &str, data_type: &str| Table {
            name: name.into(),
            engine: engine.into(),
            columns: vec![Column {
                name: "c".into(),
                data_type: data_type.into(),
                ..Column::default()
            }],
            ..Table::default()
        };
        schema.databases.push(Database {
            name: "shop".into(),
            tables: vec![
                table("good", "InnoDB", "int"),
                table("odd", "SPIDER", "int"),
                table("new", "InnoDB", "hypercube"),
            ],
            routines: vec![Object {
                name: "p".into(),
                what: "PROCEDURE",
                client: "sjis".into(),
                ..Object::default()
            }],
            ..Database::default()
        });
        schema.unreadable.push("view shop.v: denied".into());
        let found = unproven(&schema);
        assert_eq!(found.len(), 4, "{found:?}");
        for (line, part) in found.iter().zip([
            "table shop.odd: engine \"SPIDER\"",
            "table shop.new: data type \"hypercube\" of column c",
            "procedure shop.p: it was made in character set sjis",
            "view shop.v: denied",
        ]) {
            assert!(line.starts_with(part), "{line}");
        }
    }
}
