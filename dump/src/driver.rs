//! Joins the rooms: a snapshot and its definitions, rows by several sessions, one file in order.

use std::io::Write;
use std::time::Duration;

use wire::{Connection, Stop};

use crate::encode::Encoder;
use crate::error::Error;
use crate::file::File;
use crate::frames::{Frames, Meta};
use crate::parts::{Options, Piece, Position, Rung, Schema, Section, Server, Sum, Table};
use crate::snapshot::{self, Snapshot};
use crate::work::{Part, Work};
use crate::{schema, sql, text};

/// Opens a connection of the dump.
pub type Open<'a> = &'a (dyn Fn() -> Result<Connection, wire::Error> + Sync);

/// A dump that has begun: its snapshot stands, and what is in it is known.
pub struct Dump {
    options: Options,
    server: Server,
    schema: Schema,
    snapshot: Snapshot,
}

/// A table of the dump.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summed {
    /// Its database; empty in a dump without USE.
    pub database: String,
    /// Its name.
    pub name: String,
    /// Its rows.
    pub sum: Sum,
}

/// What was written.
#[derive(Debug)]
pub struct Made {
    /// Tables and sequences, in their order.
    pub tables: Vec<Summed>,
    /// What stands where in the file.
    pub frames: Frames,
}

/// Who looks at the text, in its order, before it is compressed. What is text of rows is said.
pub type Look<'a> = &'a mut dyn FnMut(Section, &[u8]);

impl Dump {
    /// Begins: asks what is there, makes the snapshot, reads the definitions.
    ///
    /// # Errors
    /// The server refuses, a connection is lost, or a database is not there.
    pub fn begin(open: Open<'_>, options: Options, stop: &Stop) -> Result<Self, Error> {
        let mut control = open().map_err(|e| Error::wire("connecting", e))?;
        let server = schema::server(&mut control)?;
        schema::prepare(&mut control, &server)?;
        let tables = schema::names(&mut control, &server, &options)?;
        let prepare = |session: &mut Connection| schema::prepare(session, &server);
        let mut snapshot = snapshot::begin(open, &prepare, &server, &options, &tables, stop)?;
        drop(control);
        if let ([database], true) = (&options.databases[..], options.bare) {
            let into = format!("USE {}", sql::name(database));
            for session in &mut snapshot.sessions {
                let doing = || format!("using database {database}");
                session
                    .execute(&into)
                    .map_err(|e| Error::wire(doing(), e))?;
            }
        }
        let Some(first) = snapshot.sessions.first_mut() else {
            return Err(Error::Missing("the snapshot has no session".to_owned()));
        };
        let schema = schema::schema(first, &server, &options)?;
        Ok(Self {
            options,
            server,
            schema,
            snapshot,
        })
    }

    /// What is in it.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Why it is not certain that this comes back as it is; nothing if it is.
    #[must_use]
    pub fn unproven(&self) -> Vec<String> {
        schema::unproven(&self.schema)
    }

    /// What made the sessions see the same, and how long that took.
    #[must_use]
    pub fn rung(&self) -> (Rung, Duration) {
        (self.snapshot.rung, self.snapshot.took)
    }

    /// Better rungs, and why they did not hold.
    #[must_use]
    pub fn passed(&self) -> &[(Rung, String)] {
        &self.snapshot.passed
    }

    /// The binlog position of the snapshot, where it is known.
    #[must_use]
    pub fn position(&self) -> Option<&Position> {
        self.snapshot.position.as_ref()
    }

    /// What is worth knowing of the snapshot beside that, in words.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.snapshot.notes
    }

    /// Sessions that read.
    #[must_use]
    pub fn sessions(&self) -> usize {
        self.snapshot.sessions.len()
    }

    /// Writes it to `sink`, and gives it back. `stop` ends the sessions' waits when the sink fails.
    ///
    /// # Errors
    /// A session fails, or the sink does: its error is in [`Error::Output`].
    pub fn write<W: Write>(self, sink: W, look: Look<'_>, stop: &Stop) -> Result<(W, Made), Error> {
        let Self {
            options,
            server,
            schema,
            snapshot,
        } = self;
        let position = snapshot.position;
        let tables: Vec<&Table> = schema.databases.iter().flat_map(|d| &d.tables).collect();
        let mut file = Writer {
            file: File::new(sink, options.compress),
            encoder: Encoder::new(options.compress).map_err(output)?,
            stored: vec![],
            look,
            used: String::new(),
        };
        for piece in text::head(&server, &options, &schema, position.as_ref()) {
            file.text(&piece)?;
        }
        for piece in text::accounts(&schema) {
            file.text(&piece)?;
        }
        for piece in text::schema(&server, &options, &schema) {
            file.text(&piece)?;
        }
        let work = Work::new(&options, &server, &tables, snapshot.sessions.len());
        let sums = work.all(snapshot.sessions, &mut |part| file.part(part), stop)?;
        for piece in text::programs(&server, &options, &schema) {
            file.text(&piece)?;
        }
        for piece in text::foot(&server, &options) {
            file.text(&piece)?;
        }
        let summed = tables
            .iter()
            .enumerate()
            .map(|(i, table)| Summed {
                database: table.database.clone(),
                name: table.name.clone(),
                sum: sums.get(i).copied().unwrap_or_default(),
            })
            .collect();
        let (sink, frames) = file.file.finish().map_err(output)?;
        Ok((
            sink,
            Made {
                tables: summed,
                frames,
            },
        ))
    }
}

fn output(cause: std::io::Error) -> Error {
    Error::Output {
        doing: "writing the dump",
        cause,
    }
}

/// The file, and who looks at its text.
struct Writer<'a, W: Write> {
    file: File<W>,
    encoder: Encoder,
    stored: Vec<u8>,
    look: Look<'a>,
    /// The database that is in use where the file ends.
    used: String,
}

impl<W: Write> Writer<'_, W> {
    /// Text that is not compressed yet.
    fn text(&mut self, piece: &Piece) -> Result<(), Error> {
        if piece.text.is_empty() {
            return Ok(());
        }
        (self.look)(piece.section, &piece.text);
        self.encoder
            .encode(&piece.text, &mut self.stored)
            .and_then(|()| {
                let raw = piece.text.len() as u64;
                self.file.write(Meta::from(piece), raw, &self.stored)
            })
            .map_err(output)
    }

    /// A part of a table, of whose database it is in use from here on.
    fn part(&mut self, part: &Part) -> Result<(), Error> {
        if part.meta.database != self.used {
            self.used.clone_from(&part.meta.database);
            self.text(&Piece {
                section: Section::Data,
                database: part.meta.database.clone(),
                text: text::use_database(&part.meta.database),
                ..Piece::default()
            })?;
        }
        (self.look)(Section::Data, &part.text);
        let stored = part.stored.as_ref().unwrap_or(&part.text);
        self.file
            .write(part.meta.clone(), part.text.len() as u64, stored)
            .map_err(output)
    }
}
