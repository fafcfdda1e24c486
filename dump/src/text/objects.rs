//! Views, libraries, triggers, routines, events.

use crate::parts::{Database, Flavour, Object, Options, Server};
use crate::sql::{literal, name};
use crate::text::tables::title;

/// What stands for a view until what it reads is there. Nothing, where its columns are not known.
pub(super) fn placeholder(server: &Server, view: &Object) -> Vec<u8> {
    let quoted = name(&view.name);
    let mut text = vec![];
    title(&mut text, "Temporary view structure for view", &view.name);
    let mut add = |line: &str| text.extend_from_slice(line.as_bytes());
    add(&format!("DROP TABLE IF EXISTS {quoted};\n"));
    add(&format!("/*!50001 DROP VIEW IF EXISTS {quoted}*/;\n"));
    if !view.columns.is_empty() {
        let value = match server.flavour {
            Flavour::MariaDb => "NULL",
            Flavour::MySql => "1",
        };
        let columns: Vec<String> = view
            .columns
            .iter()
            .map(|c| format!("\n {value} AS {}", name(c)))
            .collect();
        let columns = columns.join(",");
        add(&format!(
            "/*!50001 CREATE VIEW {quoted} AS SELECT{columns}*/;\n"
        ));
    }
    add("\n");
    text
}

/// The view itself.
pub(super) fn view(view: &Object) -> Vec<u8> {
    let quoted = name(&view.name);
    let mut text = vec![];
    title(&mut text, "Final view structure for view", &view.name);
    text.extend_from_slice(format!("/*!50001 DROP VIEW IF EXISTS {quoted}*/;\n").as_bytes());
    session(&mut text, view);
    match parts(&view.create) {
        Some([algorithm, definer, rest]) => {
            for (version, part) in [("50001", algorithm), ("50013", definer), ("50001", rest)] {
                text.extend_from_slice(format!("/*!{version} ").as_bytes());
                text.extend_from_slice(part);
                text.extend_from_slice(b" */\n");
            }
            text.pop();
            text.extend_from_slice(b";\n");
        }
        None => {
            text.extend_from_slice(&view.create);
            text.extend_from_slice(b";\n");
        }
    }
    back(&mut text, view);
    text
}

/// `CREATE ALGORITHM=…`, `DEFINER=… SQL SECURITY …`, `VIEW …`; `None` for another form.
fn parts(create: &[u8]) -> Option<[&[u8]; 3]> {
    let definer = memchr::memmem::find(create, b" DEFINER=")?;
    let mut at = definer + b" DEFINER=".len();
    at += quoted(&create[at..])?;
    if create.get(at) == Some(&b'@') {
        at += 1 + quoted(&create[at + 1..])?;
    }
    let security = memchr::memmem::find(&create[at..], b" VIEW `")?;
    if !create[at..].starts_with(b" SQL SECURITY ") || security > b" SQL SECURITY DEFINER".len() {
        return None;
    }
    let view = at + security;
    Some([
        &create[..definer],
        &create[definer + 1..view],
        &create[view + 1..],
    ])
}

/// Bytes of the name between backquotes at the beginning.
fn quoted(text: &[u8]) -> Option<usize> {
    if text.first() != Some(&b'`') {
        return None;
    }
    let mut at = 1;
    loop {
        at += memchr::memchr(b'`', text.get(at..)?)? + 1;
        if text.get(at) != Some(&b'`') {
            return Some(at);
        }
        at += 1;
    }
}

/// A library, a trigger, a routine or an event.
pub(super) fn program(database: &Database, options: &Options, object: &Object) -> Vec<u8> {
    let quoted = name(&object.name);
    let what = object.what;
    let mut text = vec![];
    title(&mut text, &capital(what), &object.name);
    let elsewhere = !object.database.is_empty() && object.database != database.collation;
    if elsewhere {
        text.extend_from_slice(&collate(database, options, &object.database));
    }
    session(&mut text, object);
    // A package is known in its own mode alone.
    text.extend_from_slice(format!("/*!50003 DROP {what} IF EXISTS {quoted} */;\n").as_bytes());
    let by = delimiter(&object.create);
    text.extend_from_slice(format!("DELIMITER {by}\n").as_bytes());
    text.extend_from_slice(&object.create);
    // Whatever ends its last line, it ends there.
    text.extend_from_slice(format!("\n{by}\nDELIMITER ;\n").as_bytes());
    back(&mut text, object);
    if elsewhere {
        text.extend_from_slice(&collate(database, options, &database.collation));
    }
    text.push(b'\n');
    text
}

fn capital(what: &str) -> String {
    let mut text = what.to_lowercase();
    if let Some(first) = text.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    text
}

/// What does not stand in a program.
fn delimiter(create: &[u8]) -> &'static str {
    let all = [";;", "$$", "%%", ";;;;", "$;$;", "%;%;"];
    all.into_iter()
        .find(|d| memchr::memmem::find(create, d.as_bytes()).is_none())
        .unwrap_or(";;")
}

/// Gives the database a collation, as a program made under another one than it has now remembers that.
fn collate(database: &Database, options: &Options, collation: &str) -> Vec<u8> {
    let of = if options.bare {
        String::new()
    } else {
        format!("{} ", name(&database.name))
    };
    let set = collation.split('_').next().unwrap_or_default();
    format!("ALTER DATABASE {of}CHARACTER SET {set} COLLATE {collation} ;\n").into_bytes()
}

/// The session in which it was made: of a view character set and collation, of programs the mode too, of events the time zone;
/// of a library the mode alone.
fn settings(object: &Object) -> Vec<(&'static str, &'static str, String)> {
    let mode = ("@saved_sql_mode", "sql_mode", literal(&object.sql_mode));
    if object.what == "LIBRARY" {
        return vec![mode];
    }
    let mut all = vec![
        (
            "@saved_cs_client",
            "character_set_client",
            object.client.clone(),
        ),
        (
            "@saved_cs_results",
            "character_set_results",
            object.client.clone(),
        ),
        (
            "@saved_col_connection",
            "collation_connection",
            object.connection.clone(),
        ),
    ];
    if object.what != "VIEW" {
        all.push(mode);
    }
    if object.what == "EVENT" {
        all.push(("@saved_time_zone", "time_zone", literal(&object.time_zone)));
    }
    all
}

fn session(text: &mut Vec<u8>, object: &Object) {
    let all = settings(object);
    for (saved, setting, _) in &all {
        text.extend_from_slice(format!("/*!50003 SET {saved} = @@{setting} */ ;\n").as_bytes());
    }
    for (_, setting, value) in &all {
        text.extend_from_slice(format!("/*!50003 SET {setting} = {value} */ ;\n").as_bytes());
    }
}

fn back(text: &mut Vec<u8>, object: &Object) {
    for (saved, setting, _) in settings(object) {
        text.extend_from_slice(format!("/*!50003 SET {setting} = {saved} */ ;\n").as_bytes());
    }
    text.push(b'\n');
}
