//! Loads the text of a dump by several sessions of our own, as the client would have loaded it.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crds::report::Reason;
use load::{Plain, Shape};
use sha2::{Digest, Sha256};
use wire::Connection;

use crate::context::Context;
use crate::database::mysql::dump_reader::{DumpReader, Summary};
use crate::database::mysql::source;
use crate::database::mysql::sql::Script;
use crate::database::mysql::target::frames::{self, cpus};
use crate::database::mysql::target::{Plan, Target, failures};
use crate::failure::Failure;
use crate::report::Ticker;
use crate::stream::checksum::hex;

/// Bytes that are read at once.
const CHUNK: usize = 256 << 10;

impl Target<'_> {
    /// Loads a dump, and compares. Gives what is to be said of how it was loaded.
    ///
    /// # Errors
    /// As [`Target::load`].
    pub(super) fn load_plain(
        &self,
        plan: &Plan<'_>,
        shape: Shape,
        dump: &mut dyn Read,
    ) -> Result<String, Failure> {
        let (context, target) = (self.context, self.source);
        let settings = source::session_settings(target, context)?;
        let stop = settings.stop.clone();
        let mut patient = settings.clone();
        patient.limits.idle = None;
        let open = || Connection::open(&settings);
        let patient = || Connection::open(&patient);
        let database = plan.names.first().filter(|_| plan.bare);
        if let Some(name) = database {
            let name = dump::sql::name(name);
            self.ask(&format!("CREATE DATABASE IF NOT EXISTS {name};\n"))?;
        }
        context.reporter.leaves(&format!(
            "{} may be in part in {} at {}: restore again with overwrite",
            plan.what,
            plan.names.join(", "),
            self.place()
        ));
        let script = Script::knowing(plan.wish.clone(), &plan.found).without(&plan.without);
        let mut text = Text::new(context, dump, script);
        let load = Plain {
            patient: &patient,
            text: &mut text,
            shape,
            database: database.cloned(),
            sessions: target.sessions(cpus()),
            phase: &|phase| context.reporter.step(&format!("{phase:?}")),
            progress: &|now| frames::told(context, now),
            patience: frames::patience(context),
            waiting: &|what| tracing::warn!(event = "load", "the target is waited for: {what}"),
        };
        let ticker = Ticker::start(Arc::clone(&context.reporter), || {});
        let loaded = load.run(&open, &stop);
        drop(ticker);
        let loaded = loaded.map_err(|e| {
            let e = match context.check() {
                Err(cause) => cause,
                Ok(()) => failures::of_load(e, target, context),
            };
            self.incomplete(plan, e, "")
        })?;
        if let Some(why) = &loaded.by_insert {
            tracing::info!(event = "load", by = "INSERT", why);
        }
        let (sha256, summary) = text.finish();
        if sha256 != plan.sha256 || !summary.whole {
            let e = Failure::new(
                Reason::RestoreIncomplete,
                format!(
                    "what was loaded of {} is not the dump that was stored",
                    plan.what
                ),
            );
            return Err(self.incomplete(plan, e, ""));
        }
        if loaded.by_statements.is_none() {
            let all = frames::complete(plan, &loaded, &summary.tables);
            all.map_err(|e| self.incomplete(plan, e, ""))?;
        }
        self.arrived(plan)?;
        let warned = self.unchanged(plan, &frames::heard(plan, &loaded), &summary.tables)?;
        let said = self.verified(plan, &summary.tables, loaded.by_statements.as_deref())?;
        Ok(said + &warned)
    }
}

/// The text of a dump as it is sent: changed as is wished, hashed and counted on its way as the dump was.
struct Text<'a> {
    context: &'a Context,
    dump: &'a mut dyn Read,
    script: Script,
    hash: Sha256,
    reader: DumpReader,
    bytes: u64,
    chunk: Vec<u8>,
    /// What is sent next, and how much of it was.
    out: Vec<u8>,
    sent: usize,
    ended: bool,
}

impl<'a> Text<'a> {
    fn new(context: &'a Context, dump: &'a mut dyn Read, script: Script) -> Self {
        Self {
            context,
            dump,
            script,
            hash: Sha256::new(),
            reader: DumpReader::default(),
            bytes: 0,
            chunk: vec![0; CHUNK],
            out: Vec::with_capacity(2 * CHUNK),
            sent: 0,
            ended: false,
        }
    }

    /// SHA-256 of what was read, and what it holds.
    fn finish(self) -> (String, Summary) {
        (hex(&self.hash.finalize()), self.reader.finish())
    }

    /// Reads on.
    fn fill(&mut self) -> io::Result<()> {
        self.context.check().map_err(io::Error::other)?;
        self.sent = 0;
        self.out.clear();
        let n = self.dump.read(&mut self.chunk)?;
        let chunk = &self.chunk[..n];
        self.hash.update(chunk);
        self.reader.feed(chunk);
        self.bytes += n as u64;
        let raw = &self.context.reporter.counters.raw;
        raw.store(self.bytes, Ordering::Relaxed);
        if n > 0 {
            self.script.feed(chunk, &mut self.out);
        } else {
            self.ended = true;
            self.script.finish(&mut self.out);
        }
        Ok(())
    }
}

impl Read for Text<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.sent == self.out.len() && !self.ended {
            self.fill()?;
        }
        let rest = &self.out[self.sent..];
        let n = rest.len().min(buffer.len());
        buffer[..n].copy_from_slice(&rest[..n]);
        self.sent += n;
        Ok(n)
    }
}
