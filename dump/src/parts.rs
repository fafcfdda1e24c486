//! What the rooms of a dump say to each other: what is asked for, what is there, and the pieces of text it becomes.

/// Whose server it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flavour {
    /// MariaDB.
    #[default]
    MariaDb,
    /// MySQL and what is made of it (Percona Server, Aurora).
    MySql,
}

/// What the server says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Server {
    /// Whose it is.
    pub flavour: Flavour,
    /// `@@version`, such as `10.11.14-MariaDB-log`.
    pub version: String,
    /// Its first three numbers.
    pub numbers: (u32, u32, u32),
}

/// How the text is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compress {
    /// zstd at this level; each frame with its checksum.
    Zstd(i32),
    /// gzip at this level, a member for each frame.
    Gzip(u32),
    /// Not at all: frames are ranges of the text.
    None,
}

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Databases; empty for all that are not the server's own.
    pub databases: Vec<String>,
    /// Tables and views to leave out, as (database, name).
    pub exclude: Vec<(String, String)>,
    /// Only these tables of the one database; empty for all.
    pub tables: Vec<String>,
    /// Without CREATE DATABASE and USE, so that it loads into any database. One database alone.
    pub bare: bool,
    /// Sessions that read, 1 to 16.
    pub sessions: usize,
    /// Users, roles and grants too, in a section of their own.
    pub accounts: bool,
    /// Compression.
    pub compress: Compress,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            databases: vec![],
            exclude: vec![],
            tables: vec![],
            bare: false,
            sessions: 1,
            accounts: false,
            compress: Compress::Zstd(3),
        }
    }
}

/// What makes the sessions see the same, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rung {
    /// They began until all saw the same binlog position: no lock, no privilege.
    Agreed,
    /// The tables were locked for reading while they began.
    LockTables,
    /// There is one session.
    Single,
}

/// What a dump holds, by its definitions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schema {
    /// The server.
    pub server: Server,
    /// Databases, in the order of the dump.
    pub databases: Vec<Database>,
    /// Statements that make users and roles and their grants on servers and databases; none if they were not asked for.
    pub accounts: Vec<String>,
    /// Grants on single tables and routines, which have to be there first.
    pub grants: Vec<String>,
    /// Tables and views that are there and can't be read, as the server says it. They are not in the dump.
    pub unreadable: Vec<String>,
    /// What the user of the dump may not see of what is there, in words.
    pub hidden: Vec<String>,
    /// What is worth a warning, in words.
    pub warnings: Vec<String>,
}

/// A database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Database {
    /// Its name.
    pub name: String,
    /// `CREATE DATABASE`, as the server shows it.
    pub create: String,
    /// Its default collation.
    pub collation: String,
    /// Tables and sequences, in the order of the dump.
    pub tables: Vec<Table>,
    /// Views, those that others read first.
    pub views: Vec<Object>,
    /// Libraries of MySQL, which routines may use.
    pub libraries: Vec<Object>,
    /// Triggers.
    pub triggers: Vec<Object>,
    /// Procedures, functions and packages.
    pub routines: Vec<Object>,
    /// Events.
    pub events: Vec<Object>,
}

/// A view, a library, a trigger, a routine or an event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Object {
    /// Its name.
    pub name: String,
    /// What it is, as SQL says: VIEW, LIBRARY, TRIGGER, PROCEDURE, FUNCTION, PACKAGE, PACKAGE BODY, EVENT.
    pub what: &'static str,
    /// Its statement, as the server shows it: bytes of the character set `client`.
    pub create: Vec<u8>,
    /// Columns of a view.
    pub columns: Vec<String>,
    /// The session in which it was made: sql_mode.
    pub sql_mode: String,
    /// character_set_client.
    pub client: String,
    /// collation_connection.
    pub connection: String,
    /// Collation of its database.
    pub database: String,
    /// time_zone, of an event.
    pub time_zone: String,
}

/// What a table is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TableKind {
    /// Rows, of one snapshot.
    #[default]
    Transactional,
    /// Rows that no snapshot holds (MyISAM, Aria, MEMORY).
    NotTransactional,
    /// Its definition alone: its rows are elsewhere or of other tables (MERGE, FEDERATED, BLACKHOLE).
    NoRows,
    /// A sequence of MariaDB.
    Sequence,
}

/// A table or a sequence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// Its database; empty in a dump without USE.
    pub database: String,
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: TableKind,
    /// `CREATE TABLE` or `CREATE SEQUENCE`, as the server shows it. Defaults of columns of bytes need not be UTF-8.
    pub create: Vec<u8>,
    /// The statement that gives a sequence its next value; empty of a table.
    pub next: String,
    /// Storage engine.
    pub engine: String,
    /// All its columns, in their order; where its history is kept also those that say since when and until when a row stands.
    pub columns: Vec<Column>,
    /// Columns by which its rows can be read in ranges.
    pub key: Option<Key>,
    /// Bytes and rows, by the server's estimate.
    pub bytes: u64,
    /// See `bytes`.
    pub rows: u64,
    /// Its rows have a history that is dumped (system versioning).
    pub versioned: bool,
}

/// A column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// `DATA_TYPE` of information_schema, in lower case.
    pub data_type: String,
    /// `COLUMN_TYPE`.
    pub column_type: String,
    /// Computed by the server: it is not written.
    pub generated: bool,
    /// Left out by `SELECT *`.
    pub invisible: bool,
}

/// The primary key, or a unique one without NULL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Key {
    /// Its name; PRIMARY.
    pub name: String,
    /// Its columns, whole ones only.
    pub columns: Vec<String>,
}

/// Where in the binlog of the server a snapshot is; each empty where it is not known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// File of the binlog.
    pub file: String,
    /// Bytes of it that come before.
    pub offset: u64,
    /// GTIDs: of MariaDB the position, of MySQL the set of those executed.
    pub gtid: String,
}

/// A part of a table that one session reads with one SELECT.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chunk {
    /// Which of the tables that have rows, counted through the databases in their order.
    pub table: usize,
    /// Which part of it.
    pub part: usize,
    /// `WHERE` and `ORDER BY`, or empty for the whole table.
    pub condition: String,
}

/// Where in the file a frame belongs; the file is in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Section {
    /// Words about the dump, settings of the session.
    #[default]
    Head,
    /// Users, roles, grants.
    Accounts,
    /// Databases, tables, sequences, and what stands for a view until it is made.
    Schema,
    /// Rows.
    Data,
    /// Triggers, routines, events, views.
    Programs,
    /// Grants on single tables and routines.
    Grants,
    /// Settings put back, the closing line.
    Foot,
}

/// Text that becomes a frame. Whole statements only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    /// Where it belongs.
    pub section: Section,
    /// Database that must be in use for it; empty in a dump without USE.
    pub database: String,
    /// Table, for [`Section::Data`].
    pub table: String,
    /// Rows in it.
    pub rows: u64,
    /// The text of the key of its first row, as in the row; empty where there is none.
    pub first_key: String,
    /// The text.
    pub text: Vec<u8>,
}

/// What was read of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// Rows.
    pub rows: u64,
    /// Sum modulo 2^128 of the XXH3-128 of each row's text `(…)`.
    pub hash: u128,
}
