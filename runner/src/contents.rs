//! What is in an artefact, told from its manifest or record alone.

use std::collections::{BTreeMap, HashMap};

use crds::contents::{Contents, Database, File, Table};
use crds::parts::Engine;

use crate::backup;
use crate::backup::record::{FileRecord, Record};
use crate::context::Context;
use crate::database::contents::Table as Summed;
use crate::failure::Failure;
use crate::mysql_backup::manifest::Manifest;
use crate::mysql_backup::stored::StoredDumps;
use crate::settings::options::Choice;

/// What is in the artefact that is meant.
///
/// # Errors
/// There is none, or the store refuses.
pub(crate) fn of(context: &Context, choice: &Choice) -> Result<Contents, Failure> {
    context.settings.check()?;
    let mut contents = match &context.settings.backup {
        Some(backup) => of_archive(&backup::fetch::choose(context, backup, choice)?.record),
        None => of_dump(&StoredDumps::open(context)?.choose(choice)?)?,
    };
    let told = context.reporter.snapshot().warnings;
    contents.warnings.extend(told);
    Ok(contents)
}

/// Adds a table to its database, which comes where it is first named.
fn add(databases: &mut Vec<Database>, file: &str, of: &str, table: Table) {
    let last = databases.iter_mut().rev();
    let mut known = last.filter(|d| d.name == of && d.file == file);
    match known.next() {
        Some(database) => database.tables.push(table),
        None => databases.push(Database {
            file: file.to_owned(),
            name: of.to_owned(),
            tables: vec![table],
        }),
    }
}

fn of_dump(manifest: &Manifest) -> Result<Contents, Failure> {
    let frames = manifest.frames()?;
    let mut bytes: HashMap<(&str, &str), (u64, u64)> = HashMap::new();
    for frame in frames.iter().flat_map(dump::Frames::iter) {
        if frame.section == dump::Section::Data {
            let of_table = bytes.entry((frame.database, frame.table)).or_default();
            of_table.0 += frame.raw;
            of_table.1 += frame.stored;
        }
    }
    let mut databases: Vec<Database> = manifest
        .databases
        .iter()
        .map(|name| Database {
            name: name.clone(),
            ..Database::default()
        })
        .collect();
    for table in &manifest.tables {
        let found = bytes.get(&(table.database.as_str(), table.name.as_str()));
        // A table without rows has no frame.
        let of = frames.as_ref().map(|_| found.copied().unwrap_or_default());
        let shown = Table {
            name: table.name.clone(),
            rows: table.rows,
            raw_bytes: of.map(|(raw, _)| raw),
            stored_bytes: of.map(|(_, stored)| stored),
        };
        add(&mut databases, "", &table.database, shown);
    }
    let others = [
        ("views", manifest.views),
        ("triggers", manifest.triggers),
        ("routines", manifest.routines),
        ("events", manifest.events),
        ("sequences", manifest.sequences),
    ];
    let others = others.into_iter().filter(|(_, count)| *count > 0);
    Ok(Contents {
        key: manifest.key.clone(),
        run: manifest.run.clone(),
        started_at: manifest.started_at.clone(),
        server: manifest.server.clone(),
        engine: match manifest.engine {
            Some(Engine::Native) => "Native".to_owned(),
            Some(Engine::Client) => "Client".to_owned(),
            None => String::new(),
        },
        encryption: manifest.encryption.clone(),
        in_parts: manifest.engine == Some(Engine::Native) && frames.is_some(),
        raw_bytes: manifest.raw_bytes,
        stored_bytes: manifest.stored_bytes,
        databases,
        others: others.map(|(what, n)| (what.to_owned(), n)).collect(),
        partial: manifest.partial.clone(),
        ..Contents::default()
    })
}

fn of_archive(record: &Record) -> Contents {
    let mut contents = Contents {
        key: record.key.clone(),
        run: record.run.clone(),
        started_at: record.started_at.clone(),
        stored_bytes: record.stored_bytes,
        raw_bytes: record.files.iter().map(|f| f.bytes).sum(),
        ..Contents::default()
    };
    let mut others: BTreeMap<String, u64> = BTreeMap::new();
    for FileRecord {
        path, bytes, holds, ..
    } in &record.files
    {
        contents.files.push(File {
            path: path.clone(),
            bytes: *bytes,
        });
        let Some(holds) = holds else { continue };
        for Summed {
            database,
            name,
            rows,
            ..
        } in &holds.tables
        {
            let table = Table {
                name: name.clone(),
                rows: *rows,
                ..Table::default()
            };
            add(&mut contents.databases, path, database, table);
        }
        for (what, count) in &holds.others {
            *others.entry(what.clone()).or_default() += count;
        }
        let partial = holds.partial.iter().map(|what| format!("{path}: {what}"));
        contents.partial.extend(partial);
    }
    contents.others = others;
    if record.is_measured() {
        contents.warnings.push(format!(
            "no record says what is in {}: download it to see",
            record.key
        ));
    }
    contents
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use dump::{Frames, Meta, Section};

    #[test]
    fn tables_have_the_bytes_of_their_frames() {
        let mut frames = Frames::default();
        for (section, table, raw, stored) in [
            (Section::Head, "", 10, 5),
            (Section::Schema, "", 10, 5),
            (Section::Data, "t", 1000, 100),
            (Section::Data, "t", 500, 60),
            (Section::Data, "u", 10, 9),
            (Section::Foot, "", 10, 5),
        ] {
            let meta = Meta {
                section,
                database: "shop".into(),
                table: table.into(),
                ..Meta::default()
            };
            frames.add(meta, raw, stored).unwrap();
        }
        let table = |name: &str, rows| Summed {
            database: "shop".into(),
            name: name.into(),
            rows,
            ..Summed::default()
        };
        let mut manifest = Manifest {
            databases: vec!["empty".into(), "shop".into()],
            tables: vec![table("t", 7), table("none", 0), table("u", 1)],
            engine: Some(Engine::Native),
            frames: frames.to_text().unwrap(),
            views: 2,
            ..Manifest::default()
        };
        let contents = of_dump(&manifest).unwrap();
        let shown = |contents: &Contents| {
            let tables = contents.tables();
            let parts = tables.map(|t| (t.name.clone(), t.rows, t.raw_bytes, t.stored_bytes));
            parts.collect::<Vec<_>>()
        };
        assert_eq!(
            shown(&contents),
            [
                ("t".to_owned(), 7, Some(1500), Some(160)),
                ("none".to_owned(), 0, Some(0), Some(0)),
                ("u".to_owned(), 1, Some(10), Some(9)),
            ]
        );
        let names: Vec<&str> = contents.databases.iter().map(|d| d.name.as_str()).collect();
        assert_eq!(names, ["empty", "shop"]);
        assert!(contents.in_parts && contents.others == [("views".to_owned(), 2)].into());
        manifest.frames.clear();
        let contents = of_dump(&manifest).unwrap();
        assert!(!contents.in_parts);
        assert_eq!(shown(&contents)[0], ("t".to_owned(), 7, None, None));
    }

    #[test]
    fn an_archive_has_files_and_what_its_sql_dumps_hold() {
        let record: Record = serde_json::from_value(serde_json::json!({
            "key": "a/x.tar.gz", "run": "r", "storedBytes": 9,
            "files": [
                {"path": "x/redis/r/dump.rdb", "bytes": 5},
                {"path": "x/mysql/m/a.sql", "bytes": 7, "holds": {"tables": [
                    {"database": "a", "name": "t", "rows": 3, "hash": ""},
                    {"database": "b", "name": "t", "rows": 4, "hash": ""}
                ], "others": {"views": 1}, "partial": ["without rows"]}},
            ],
        }))
        .unwrap();
        let contents = of_archive(&record);
        assert_eq!((contents.raw_bytes, contents.files.len()), (12, 2));
        let names: Vec<&str> = contents.databases.iter().map(|d| d.name.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(contents.databases[1].file, "x/mysql/m/a.sql");
        assert_eq!(contents.partial, ["x/mysql/m/a.sql: without rows"]);
        assert_eq!(contents.others["views"], 1);
    }
}
