//! What the native dump reads of a server, and the text that comes of it.

use std::collections::BTreeMap;
use std::time::Duration;

use dump::{Chunk, Options, Reader, Schema, Server, Sum, Table, TableKind};
use wire::{Address, Connection, Settings};

use super::MariaDb;

/// The server's socket, as root.
pub fn settings(db: &MariaDb) -> Settings {
    let address = Address::Socket(db.dir.path().join("s"));
    let mut settings = Settings::new(address, "root", String::new().into());
    settings.limits.idle = Some(Duration::from_secs(120));
    settings
}

/// A session as a dump has it, and what its server is.
pub fn session(db: &MariaDb) -> (Connection, Server) {
    let mut session = Connection::open(&settings(db)).unwrap();
    let server = dump::schema::server(&mut session).unwrap();
    dump::schema::prepare(&mut session, &server).unwrap();
    (session, server)
}

/// What a dump of one database is asked for.
pub fn options(database: &str) -> Options {
    let mut options = Options::default();
    options.databases = vec![database.to_owned()];
    options.bare = true;
    options
}

/// A database as it was read.
pub struct Native {
    pub schema: Schema,
    pub text: Vec<u8>,
    pub sums: BTreeMap<String, Sum>,
    /// Chunks that were read of each table.
    pub chunks: BTreeMap<String, usize>,
}

/// The tables of it that have rows.
pub fn with_rows(schema: &Schema) -> Vec<&Table> {
    let tables = schema.databases.iter().flat_map(|d| &d.tables);
    tables
        .filter(|t| {
            matches!(
                t.kind,
                TableKind::Transactional | TableKind::NotTransactional
            )
        })
        .collect()
}

/// Adds what one chunk held to the whole of a table.
pub fn add(whole: &mut Sum, part: Sum) {
    whole.rows += part.rows;
    whole.hash = whole.hash.wrapping_add(part.hash);
}

/// Reads a database by one session, in chunks of so many bytes.
pub fn read(db: &MariaDb, database: &str, size: u64) -> Native {
    let (mut session, server) = session(db);
    let options = options(database);
    let schema = dump::schema::schema(&mut session, &server, &options).unwrap();
    session.execute(&format!("USE `{database}`")).unwrap();
    let mut text = vec![];
    let mut put =
        |pieces: Vec<dump::Piece>| pieces.iter().for_each(|p| text.extend_from_slice(&p.text));
    put(dump::text::head(&server, &options, &schema, None));
    put(dump::text::schema(&server, &options, &schema));
    let (mut sums, mut counts) = (BTreeMap::new(), BTreeMap::new());
    let mut reader = Reader::default();
    for (index, table) in with_rows(&schema).into_iter().enumerate() {
        let chunks = chunks(&mut session, table, index, size).unwrap();
        counts.insert(table.name.clone(), chunks.len());
        let mut whole = Sum::default();
        text.extend_from_slice(&dump::text::data_head(table));
        for chunk in &chunks {
            let sum = of_chunk(&mut reader, &mut session, &server, table, chunk, &mut text);
            add(&mut whole, sum.unwrap());
        }
        text.extend_from_slice(&dump::text::data_foot(table));
        sums.insert(table.name.clone(), whole);
    }
    let mut put =
        |pieces: Vec<dump::Piece>| pieces.iter().for_each(|p| text.extend_from_slice(&p.text));
    put(dump::text::programs(&server, &options, &schema));
    put(dump::text::foot(&server, &options));
    Native {
        schema,
        text,
        sums,
        chunks: counts,
    }
}

/// All chunks of a table.
pub fn chunks(
    session: &mut Connection,
    table: &Table,
    index: usize,
    size: u64,
) -> Result<Vec<Chunk>, dump::Error> {
    let mut all = vec![];
    let last = dump::chunks(session, table, index, size, &mut |chunk| all.push(chunk))?;
    all.push(last);
    Ok(all)
}

/// Reads a chunk; each piece is checked to be what it says.
pub fn of_chunk(
    reader: &mut Reader,
    session: &mut Connection,
    server: &Server,
    table: &Table,
    chunk: &Chunk,
    text: &mut Vec<u8>,
) -> Result<Sum, dump::Error> {
    let mut rows = 0;
    let mut ended = false;
    let sum = reader.read(session, server, table, chunk, &mut |piece, last| {
        assert!(!std::mem::replace(&mut ended, last));
        assert_eq!(
            (&piece.table, &piece.database),
            (&table.name, &table.database)
        );
        assert!(piece.text.starts_with(b"INSERT INTO `") && piece.text.ends_with(b");\n"));
        assert!(piece.text.len() <= dump::FRAME || piece.rows == 1);
        rows += piece.rows;
        text.extend_from_slice(&piece.text);
        Ok(piece.text)
    })?;
    assert_eq!((rows, ended), (sum.rows, rows > 0));
    Ok(sum)
}
