//! Loads into the scratch server by several sessions, as a Restore does. What they can't load, or load otherwise, says nothing yet:
//! the client is asked then, and its word counts.

use std::io::Read;

use ::load::{Begun, Load, Plain, Sequential, Shape};
use dump::{Compress, Frames};
use wire::Connection;

use crate::context::Context;
use crate::database::mysql::scratch::{DEFINERS, Scratch, definer_in};
use crate::database::mysql::source::{self, Client};
use crate::database::mysql::sql::{Rewrite, Script};
use crate::failure::Failure;
use crate::settings::Databases;

/// Opens the bytes of a dump, anew each time.
pub(crate) type OpenDump<'a> = &'a dyn Fn() -> Result<Box<dyn Read + Send>, Failure>;

/// A dump, and how its bytes are read.
pub(crate) enum Dumped<'a> {
    /// Frames of the native engine, without users and grants, and how they are compressed.
    Frames(&'a Frames, Compress, OpenDump<'a>),
    /// Text, and the database that it is for where it names none.
    Text(Option<&'a str>, OpenDump<'a>),
}

impl Scratch {
    /// Loads a dump.
    ///
    /// # Errors
    /// Why it is not there, in words for the log.
    pub(crate) fn load_by_sessions(
        &self,
        context: &Context,
        client: &Client,
        dump: &Dumped<'_>,
    ) -> Result<(), String> {
        let mut why = String::new();
        for _ in 0..DEFINERS {
            match self.attempt(context, dump) {
                Ok(()) => return Ok(()),
                Err(said) => why = said,
            }
            // Users that it names as definers are made: views on views need them.
            let Some(user) = definer_in(&why) else {
                break;
            };
            let make = format!("CREATE USER {user}; GRANT ALL ON *.* TO {user};\n");
            match self.ask(context, client, &make) {
                Ok((_, ended)) if ended.good() => {}
                _ => break,
            }
        }
        Err(why)
    }

    fn attempt(&self, context: &Context, dump: &Dumped<'_>) -> Result<(), String> {
        let source = self.source(Databases::All);
        let settings = source::session_settings(&source, context).map_err(|e| e.message)?;
        let stop = settings.stop.clone();
        let mut patient = settings.clone();
        patient.limits.idle = None;
        let open = || Connection::open(&settings);
        let patient = || Connection::open(&patient);
        let sessions = std::thread::available_parallelism().map_or(1, |n| n.get().min(4));
        let loaded = match dump {
            Dumped::Frames(frames, compress, read) => {
                let mut change = |text: &[u8]| {
                    let mut script = Script::new(Rewrite::default());
                    let mut out = Vec::with_capacity(text.len());
                    script.feed(text, &mut out);
                    script.finish(&mut out);
                    script.found().map(|_| out)
                };
                let load = Load {
                    wanted: &|_| true,
                    patient: &patient,
                    frames,
                    compress: *compress,
                    source: &mut Sequential::new(read().map_err(|e| e.message)?),
                    change: &mut change,
                    rename: &str::to_owned,
                    accounts: false,
                    sessions,
                    whose: "verification".to_owned(),
                    anew: true,
                    phase: &|_| {},
                    progress: &|_| {},
                    patience: std::time::Duration::ZERO,
                    waiting: &|_| {},
                };
                Begun::new(&open, load).and_then(|begun| begun.run(&stop))
            }
            Dumped::Text(database, read) => {
                let mut text = Sent {
                    dump: read().map_err(|e| e.message)?,
                    script: Script::new(Rewrite::default()),
                    chunk: vec![0; 256 << 10],
                    out: vec![],
                    sent: 0,
                    ended: false,
                };
                let load = Plain {
                    patient: &patient,
                    text: &mut text,
                    // What it does not say, the comparison does.
                    shape: Shape::default(),
                    database: database.map(str::to_owned),
                    sessions,
                    phase: &|_| {},
                    progress: &|_| {},
                    patience: std::time::Duration::ZERO,
                    waiting: &|_| {},
                };
                load.run(&open, &stop)
            }
        };
        loaded.map(|_| ()).map_err(|e| e.to_string())
    }

    /// Drops these databases: what comes next begins anew.
    pub(crate) fn forget(
        &self,
        context: &Context,
        client: &Client,
        databases: &[String],
    ) -> Result<(), Failure> {
        let drops: String = databases
            .iter()
            .map(|name| format!("DROP DATABASE IF EXISTS {};\n", dump::sql::name(name)))
            .collect();
        self.ask(context, client, &drops).map(|_| ())
    }
}

/// The text of a dump as it is sent.
struct Sent {
    dump: Box<dyn Read + Send>,
    script: Script,
    chunk: Vec<u8>,
    out: Vec<u8>,
    sent: usize,
    ended: bool,
}

impl Read for Sent {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        while self.sent == self.out.len() && !self.ended {
            (self.sent, self.ended) = (0, false);
            self.out.clear();
            let n = self.dump.read(&mut self.chunk)?;
            if n == 0 {
                self.ended = true;
                self.script.finish(&mut self.out);
            } else {
                self.script.feed(&self.chunk[..n], &mut self.out);
            }
        }
        let rest = &self.out[self.sent..];
        let n = rest.len().min(buffer.len());
        buffer[..n].copy_from_slice(&rest[..n]);
        self.sent += n;
        Ok(n)
    }
}
