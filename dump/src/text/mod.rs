//! The text of a dump but for its rows. It is the text of the flavour's own client as far as that says all, so that whatever
//! reads such dumps reads this one. PURE.

mod objects;
mod tables;

use crate::FRAME;
use crate::parts::{Database, Flavour, Object, Options, Piece, Position, Schema, Section, Server};
use crate::sql::name;

pub use tables::{data_foot, data_head};

/// Settings that are put away at the beginning: name, what is set, the version that knows it, and whether it is put back.
const SETTINGS: [(&str, &str, &str); 8] = [
    ("CHARACTER_SET_CLIENT", "", "40101"),
    ("CHARACTER_SET_RESULTS", "", "40101"),
    ("COLLATION_CONNECTION", "", "40101"),
    ("TIME_ZONE", "'+00:00'", "40103"),
    ("UNIQUE_CHECKS", "0", "40014"),
    ("FOREIGN_KEY_CHECKS", "0", "40014"),
    // A day that the calendar does not know came in under this mode alone.
    (
        "SQL_MODE",
        "'NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES'",
        "40101",
    ),
    ("SQL_NOTES", "0", "40111"),
];

/// Words about the dump, and the settings of the session that loads it.
#[must_use]
pub fn head(
    server: &Server,
    options: &Options,
    schema: &Schema,
    position: Option<&Position>,
) -> Vec<Piece> {
    let mut text = String::new();
    let mariadb = server.flavour == Flavour::MariaDb;
    if mariadb && has_sandbox(server.numbers) {
        text.push_str("/*M!999999\\- enable the sandbox mode */ \n");
    }
    let maker = if mariadb { "MariaDB" } else { "MySQL" };
    let names: Vec<String> = schema.databases.iter().map(|d| in_line(&d.name)).collect();
    let names = names.join(" ");
    let program = env!("CARGO_PKG_VERSION");
    text.push_str(&format!(
        "-- {maker} dump of backup-runner {program}\n--\n-- Database: {names}\n"
    ));
    text.push_str("-- ------------------------------------------------------\n");
    text.push_str(&format!(
        "-- Server version\t{}\n\n",
        in_line(&server.version)
    ));
    for (setting, value, version) in SETTINGS {
        // What SET NAMES changes is put away before it.
        let set = match setting {
            "TIME_ZONE" => {
                text.push_str("/*!50503 SET NAMES utf8mb4 */;\n");
                format!(" */;\n/*!{version} SET {setting}={value}")
            }
            _ if value.is_empty() => String::new(),
            _ => format!(", {setting}={value}"),
        };
        text.push_str(&format!(
            "/*!{version} SET @OLD_{setting}=@@{setting}{set} */;\n"
        ));
    }
    text.push('\n');
    if let Some(position) = position {
        text.push_str(&of_position(server, position));
    }
    let _ = options;
    vec![piece(Section::Head, "", text.into_bytes())]
}

/// Settings put back, and the closing line.
#[must_use]
pub fn foot(_server: &Server, _options: &Options) -> Vec<Piece> {
    let mut text = String::new();
    let mut order = SETTINGS.to_vec();
    // As both clients do: the time zone first, the notes last.
    order.sort_by_key(|(setting, ..)| match *setting {
        "TIME_ZONE" => 0,
        "SQL_MODE" => 1,
        "FOREIGN_KEY_CHECKS" => 2,
        "UNIQUE_CHECKS" => 3,
        "SQL_NOTES" => 9,
        _ => 4,
    });
    for (setting, _, version) in order {
        text.push_str(&format!("/*!{version} SET {setting}=@OLD_{setting} */;\n"));
    }
    text.push_str("\n-- Dump completed\n");
    vec![piece(Section::Foot, "", text.into_bytes())]
}

/// Users, roles and grants; nothing where they were not asked for.
#[must_use]
pub fn accounts(schema: &Schema) -> Vec<Piece> {
    let mut pieces = Pieces::new(Section::Accounts);
    if !schema.accounts.is_empty() {
        pieces.add("", b"--\n-- Users, roles and grants\n--\n\n");
    }
    for statement in &schema.accounts {
        pieces.add("", format!("{statement};\n").as_bytes());
    }
    pieces.done()
}

/// Databases, tables, sequences, and what stands for a view until it is made.
#[must_use]
pub fn schema(server: &Server, options: &Options, schema: &Schema) -> Vec<Piece> {
    let mut pieces = Pieces::new(Section::Schema);
    for database in &schema.databases {
        let of = of(&database.name, options);
        if !options.bare {
            pieces.add(
                of,
                format!(
                    "--\n-- Current Database: `{}`\n--\n\n{};\n\n",
                    in_line(&database.name),
                    database.create
                )
                .as_bytes(),
            );
            pieces.add(of, &use_database(&database.name));
        }
        for table in &database.tables {
            pieces.add(of, &tables::definition(server, options, database, table));
        }
        for view in &database.views {
            pieces.add(of, &objects::placeholder(server, view));
        }
    }
    pieces.done()
}

/// Libraries of all databases, as a routine may use one of another; then triggers, routines, events; after those of all
/// databases the views; and grants on single tables and routines.
#[must_use]
pub fn programs(_server: &Server, options: &Options, schema: &Schema) -> Vec<Piece> {
    let mut pieces = Pieces::new(Section::Programs);
    let mut add = |database: &Database, objects: Vec<&Object>| {
        let of = of(&database.name, options);
        if !options.bare && !objects.is_empty() {
            pieces.add(of, &use_database(&database.name));
        }
        for object in objects {
            pieces.add(of, &objects::program(database, options, object));
        }
    };
    for database in &schema.databases {
        add(database, database.libraries.iter().collect());
    }
    for database in &schema.databases {
        let parts = [&database.triggers, &database.routines, &database.events];
        add(database, parts.into_iter().flatten().collect());
    }
    for database in &schema.databases {
        let of = of(&database.name, options);
        if !options.bare && !database.views.is_empty() {
            pieces.add(of, &use_database(&database.name));
        }
        for view in &database.views {
            pieces.add(of, &objects::view(view));
        }
    }
    let mut all = pieces.done();
    let mut grants = Pieces::new(Section::Grants);
    for statement in &schema.grants {
        grants.add("", format!("{statement};\n").as_bytes());
    }
    all.append(&mut grants.done());
    all
}

/// `USE`.
#[must_use]
pub fn use_database(database: &str) -> Vec<u8> {
    format!("USE {};\n\n", name(database)).into_bytes()
}

fn of<'a>(database: &'a str, options: &Options) -> &'a str {
    if options.bare { "" } else { database }
}

/// A position, as the clients word it, in comments.
fn of_position(server: &Server, position: &Position) -> String {
    let mut text = String::new();
    let (file, gtid) = (in_line(&position.file), in_line(&position.gtid));
    let mariadb = server.flavour == Flavour::MariaDb;
    if !file.is_empty() {
        text.push_str("--\n-- Position of the binary log at the snapshot\n--\n\n");
        let (verb, file_is, offset_is) = if mariadb {
            ("CHANGE MASTER TO", "MASTER_LOG_FILE", "MASTER_LOG_POS")
        } else {
            (
                "CHANGE REPLICATION SOURCE TO",
                "SOURCE_LOG_FILE",
                "SOURCE_LOG_POS",
            )
        };
        text.push_str(&format!(
            "-- {verb} {file_is}='{file}', {offset_is}={};\n\n",
            position.offset
        ));
    }
    if !gtid.is_empty() {
        if mariadb {
            text.push_str(&format!("-- SET GLOBAL gtid_slave_pos='{gtid}';\n\n"));
        } else {
            text.push_str(&format!("/* SET @@GLOBAL.GTID_PURGED='+{gtid}';*/\n\n"));
        }
    }
    text
}

/// Versions of MariaDB whose client writes, and takes, the line that ends its own commands.
fn has_sandbox(version: (u32, u32, u32)) -> bool {
    let since = match (version.0, version.1) {
        (10, 5) => 25,
        (10, 6) => 18,
        (10, 11) => 8,
        (11, 0) => 6,
        (11, 1) => 5,
        (11, 2) => 4,
        (11, 4) => 2,
        (major, minor) => return (major, minor) > (11, 4),
    };
    version.2 >= since
}

/// A name in a comment of one line.
pub(crate) fn in_line(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

/// Text of one section, cut into pieces where a frame is full or another database begins.
struct Pieces {
    section: Section,
    all: Vec<Piece>,
}

impl Pieces {
    fn new(section: Section) -> Self {
        Self {
            section,
            all: vec![],
        }
    }

    /// Adds whole statements.
    fn add(&mut self, database: &str, text: &[u8]) {
        match self.all.last_mut() {
            Some(last) if last.database == database && last.text.len() < FRAME => {
                last.text.extend_from_slice(text);
            }
            _ => self.all.push(piece(self.section, database, text.to_vec())),
        }
    }

    fn done(self) -> Vec<Piece> {
        self.all
    }
}

fn piece(section: Section, database: &str, text: Vec<u8>) -> Piece {
    Piece {
        section,
        database: database.to_owned(),
        text,
        ..Piece::default()
    }
}
