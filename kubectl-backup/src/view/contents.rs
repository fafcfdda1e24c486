//! `show` (PURE): what is in an artefact.

use crds::contents::Contents;

use super::duration::bytes;
use super::table::Table;

fn size(count: u64) -> String {
    bytes(i64::try_from(count).unwrap_or(i64::MAX))
}

/// A line for each table; of an archive the file too, and a line for each file that says no tables.
pub(crate) fn table(contents: &Contents) -> Table {
    let archive = !contents.files.is_empty();
    let mut header = vec!["DATABASE", "TABLE", "ROWS", "SIZE", "STORED"];
    if archive {
        header.insert(0, "FILE");
    }
    let mut rows = vec![];
    let mut add = |file: &str, cells: [String; 5]| {
        let file = archive.then(|| file.to_owned());
        rows.push(file.into_iter().chain(cells).collect());
    };
    let none = || "<none>".to_owned();
    for database in &contents.databases {
        if database.tables.is_empty() {
            let name = database.name.clone();
            add(&database.file, [name, none(), none(), none(), none()]);
        }
        for table in &database.tables {
            let cells = [
                database.name.clone(),
                table.name.clone(),
                table.rows.to_string(),
                table.raw_bytes.map_or_else(none, size),
                table.stored_bytes.map_or_else(none, size),
            ];
            add(&database.file, cells);
        }
    }
    for file in &contents.files {
        if !contents.databases.iter().any(|d| d.file == file.path) {
            add(
                &file.path,
                [none(), none(), none(), size(file.bytes), none()],
            );
        }
    }
    Table {
        header: header.into_iter().map(str::to_owned).collect(),
        rows,
        whole: false,
    }
}

/// What the table does not say.
pub(crate) fn summary(contents: &Contents) -> String {
    let tables = contents.tables().count();
    let rows: u64 = contents.tables().map(|t| t.rows).sum();
    let plural = if tables == 1 { "" } else { "s" };
    let mut parts = vec![format!("{tables} table{plural}, {rows} rows")];
    for (what, count) in &contents.others {
        // One of them is one.
        let what = match count {
            1 => what.strip_suffix('s').unwrap_or(what),
            _ => what,
        };
        parts.push(format!("{count} {what}"));
    }
    let mut text = format!(
        "{}: {}; {} of dumps, {} stored",
        contents.key,
        parts.join(", "),
        size(contents.raw_bytes),
        size(contents.stored_bytes)
    );
    if !contents.encryption.is_empty() {
        text.push_str(&format!(" ({})", contents.encryption));
    }
    for partial in &contents.partial {
        text.push_str(&format!("; {partial}"));
    }
    if contents.in_parts {
        text.push_str("; a restore with --tables reads single tables of it");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crds::contents::{Database, File, Table as Shown};

    fn lines(contents: &Contents) -> String {
        let table = table(contents);
        let all = [table.header].into_iter().chain(table.rows);
        let lines: Vec<String> = all.map(|cells| cells.join(" | ")).collect();
        format!("{}\n{}", lines.join("\n"), summary(contents))
    }

    #[test]
    fn a_dump() {
        let table = |name: &str, rows, bytes: u64| Shown {
            name: name.into(),
            rows,
            raw_bytes: Some(bytes * 4),
            stored_bytes: Some(bytes),
        };
        let contents = Contents {
            key: "ns/shop.sql.zst.age".into(),
            run: "shop-1".into(),
            encryption: "age".into(),
            in_parts: true,
            raw_bytes: 5 << 20,
            stored_bytes: 2 << 20,
            databases: vec![
                Database {
                    name: "shop".into(),
                    tables: vec![table("orders", 90_000, 1_000_000), table("empty", 0, 0)],
                    ..Database::default()
                },
                Database {
                    name: "bare".into(),
                    ..Database::default()
                },
            ],
            others: [("views".into(), 1), ("triggers".into(), 2)].into(),
            partial: vec!["table shop.log is left out".into()],
            ..Contents::default()
        };
        insta::assert_snapshot!("contents_dump", lines(&contents));
    }

    #[test]
    fn an_archive() {
        let contents = Contents {
            key: "2026.tar.gz".into(),
            raw_bytes: 3000,
            stored_bytes: 900,
            databases: vec![Database {
                file: "nightly/mysql/main/shop.sql".into(),
                name: "shop".into(),
                tables: vec![Shown {
                    name: "orders".into(),
                    rows: 7,
                    ..Shown::default()
                }],
            }],
            files: vec![
                File {
                    path: "nightly/mysql/main/shop.sql".into(),
                    bytes: 2000,
                },
                File {
                    path: "nightly/redis/cache/dump.rdb".into(),
                    bytes: 1000,
                },
            ],
            ..Contents::default()
        };
        insta::assert_snapshot!("contents_archive", lines(&contents));
    }
}
