//! A dump of the native engine: the runner reads the server itself, by several sessions of one snapshot.

use std::collections::HashMap;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use crds::dump_arguments::ignored_tables;
use crds::parts::{Compression, CompressionType};
use crds::report::{Reason, exit};
use dump::{Compress, Dump, Made, Options, Rung, Section, Sum};
use wire::{Connection, Stop};

use crate::clock::duration;
use crate::context::Context;
use crate::database::mysql::dump_reader::{DumpReader, Summary};
use crate::database::mysql::source::{self, Chosen, failure_of, scrubbed, session_settings};
use crate::failure::Failure;
use crate::settings::{Databases, Source};
use crate::stall::Silence;
use crate::stream::pipeline::encoding;

/// What the native engine is called where a client's version stands.
pub(crate) fn version() -> String {
    format!("backup-runner {}", crds::VERSION)
}

/// Who dumps.
pub(crate) enum Choice<'a> {
    /// The runner itself.
    Native(Box<NativeDump<'a>>),
    /// The client, for this reason.
    Client(String),
}

/// Chooses, and begins what the native engine can dump.
///
/// # Errors
/// What was asked for can't be had, or the server can't be asked.
pub(crate) fn choose<'a>(
    context: &'a Context,
    source: &'a Source,
    options: Options,
) -> Result<Choice<'a>, Failure> {
    let image = context.settings.client_image.as_deref();
    if let Chosen::Client(why) = source::choose(source, image, None)? {
        return Ok(Choice::Client(why));
    }
    context.reporter.phase("Dumping");
    let unproven = match NativeDump::begin(context, source, options) {
        Ok(native) => match native.unproven() {
            None => return Ok(Choice::Native(Box::new(native))),
            Some(why) => why,
        },
        // What the server refuses us it may allow the client.
        Err(e) if source.engine.is_none() && is_refusal(e.reason) => e.message,
        Err(e) => return Err(e),
    };
    Ok(match source::choose(source, image, Some(&unproven))? {
        Chosen::Client(why) => Choice::Client(why),
        // It does not go on with what is not proven.
        Chosen::Native => Choice::Client(unproven),
    })
}

fn is_refusal(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::MissingPrivilege
            | Reason::ServerRefused
            | Reason::InvalidView
            | Reason::TooManyConnections
            | Reason::LockWait
    )
}

/// What is asked of the native engine for a source; its text is not compressed.
pub(crate) fn options(source: &Source) -> Options {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let mut options = Options::default();
    options.databases = match &source.databases {
        Databases::All => vec![],
        Databases::Listed(names) => names.clone(),
    };
    options.exclude.clone_from(&source.exclude_tables);
    options.exclude.extend(ignored_tables(&source.extra_args));
    options.sessions = source.sessions(cpus);
    options.accounts = source.accounts;
    options.compress = Compress::None;
    options
}

/// A compression as the native engine has it.
pub(crate) fn compress(compression: Compression) -> Compress {
    match (compression.type_, compression.level) {
        (CompressionType::Zstd, level) => Compress::Zstd(level.unwrap_or(3)),
        (CompressionType::Gzip, level) => {
            Compress::Gzip(level.and_then(|l| u32::try_from(l).ok()).unwrap_or(6))
        }
        (CompressionType::None, _) => Compress::None,
    }
}

/// So many of what is not proven are named.
const NAMED: usize = 3;

/// A dump that has begun.
pub(crate) struct NativeDump<'a> {
    dump: Dump,
    /// Its snapshot holds all that was committed by then.
    since: DateTime<Utc>,
    stop: Stop,
    context: &'a Context,
    source: &'a Source,
    silence: Silence,
}

impl<'a> NativeDump<'a> {
    /// Begins: makes the snapshot and reads the definitions.
    ///
    /// # Errors
    /// The server can't be reached or refuses.
    pub(crate) fn begin(
        context: &'a Context,
        source: &'a Source,
        options: Options,
    ) -> Result<Self, Failure> {
        let settings = session_settings(source, context)?;
        let stop = settings.stop.clone();
        let silence = silence(context, source, &settings);
        let open = || Connection::open(&settings);
        let since = context.clock.now();
        let dump = Dump::begin(&open, options, &stop).map_err(|e| failure(e, source, context))?;
        Ok(Self {
            dump,
            since,
            stop,
            context,
            source,
            silence,
        })
    }

    /// Why it is not certain that what is there comes back as it is; `None` if it is.
    pub(crate) fn unproven(&self) -> Option<String> {
        let all = self.dump.unproven();
        let more = match all.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        let first: Vec<&str> = all.iter().take(NAMED).map(String::as_str).collect();
        (!first.is_empty()).then(|| format!("{}{more}", first.join("; ")))
    }

    /// What made its sessions see the same, in words.
    pub(crate) fn snapshot(&self) -> String {
        let (rung, took) = self.dump.rung();
        let sessions = self.dump.sessions();
        let took = format!("{:.3} s", took.as_secs_f64());
        match rung {
            Rung::Agreed => format!("{sessions} sessions agreed without a lock in {took}"),
            Rung::LockTables => format!("{sessions} sessions under LOCK TABLES for {took}"),
            Rung::Single => "one session".to_owned(),
        }
    }

    /// The moment it shows, RFC 3339: its snapshot holds all that was committed by then.
    pub(crate) fn moment(&self) -> String {
        crds::time::rfc3339(self.since)
    }

    /// What is worth a warning: of the definitions, and why there is one session where several were to read.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let schema = self.dump.schema();
        let mut all = schema.warnings.clone();
        all.extend(schema.hidden.iter().cloned());
        all.extend(self.dump.notes().iter().cloned());
        let one = self.dump.rung().0 == Rung::Single;
        if one && !self.dump.passed().is_empty() {
            let why: Vec<&str> = self
                .dump
                .passed()
                .iter()
                .map(|(_, why)| why.as_str())
                .collect();
            all.push(format!(
                "one session reads, where several could: {}",
                why.join("; ")
            ));
        }
        all
    }

    /// Writes it. `look` sees the text in its order.
    ///
    /// What it holds but for its rows is read from its text, as of a dump by any client; the rows are those that were read.
    ///
    /// # Errors
    /// The server's failure, or that of `sink`.
    pub(crate) fn write<W: Write>(
        self,
        sink: W,
        look: &mut dyn FnMut(&[u8]),
    ) -> Result<(W, Made, Summary), Failure> {
        let (context, source) = (self.context, self.source);
        let mut reader = DumpReader::default();
        let written = self.dump.write(
            sink,
            &mut |section, text| {
                look(text);
                if section != Section::Data {
                    reader.feed(text);
                }
            },
            &self.stop,
        );
        drop(self.silence);
        let (sink, made) = written.map_err(|e| failure(e, source, context))?;
        let mut summary = reader.finish();
        count(&mut summary, &made);
        Ok((sink, made, summary))
    }
}

/// Warns of a server that is silent, before it is given up.
fn silence(context: &Context, source: &Source, settings: &wire::Settings) -> Silence {
    let (reporter, place) = (Arc::clone(&context.reporter), source::place(source));
    Silence::watch(settings.pulse.clone(), settings.limits.idle, move |long| {
        let long = Duration::from_secs(long.as_secs());
        reporter.warn(&format!(
            "the database at {place} has sent nothing for {}: look there for locks and a server that hangs",
            duration(long)
        ));
    })
}

/// Takes the rows that were read into what the text says of tables.
fn count(summary: &mut Summary, made: &Made) {
    let mut read: HashMap<(&str, &str), Sum> = made
        .tables
        .iter()
        .map(|t| ((t.database.as_str(), t.name.as_str()), t.sum))
        .collect();
    for table in &mut summary.tables {
        let sum = read.remove(&(table.database.as_str(), table.name.as_str()));
        let sum = sum.unwrap_or_default();
        table.rows = sum.rows;
        table.hash = format!("{:032x}", sum.hash);
    }
    if read.values().any(|sum| sum.rows > 0) {
        summary.whole = false;
        summary.flaw = "has rows of a table without its definition";
    }
}

/// Reads what `options` ask for and keeps nothing of it but its sums.
///
/// # Errors
/// The server can't be reached or refuses.
pub(crate) fn sums(
    context: &Context,
    source: &Source,
    options: Options,
) -> Result<Summary, Failure> {
    let native = NativeDump::begin(context, source, options)?;
    let (_, _, summary) = native.write(std::io::sink(), &mut |_| {})?;
    Ok(summary)
}

/// The failure of a dump.
fn failure(e: dump::Error, source: &Source, context: &Context) -> Failure {
    let at = |reason, text: String| scrubbed(Failure::at(exit::SOURCE, reason, text), context);
    match e {
        dump::Error::Wire { doing, cause } => {
            let failure = failure_of(&cause, source);
            at(failure.reason, format!("{doing}: {}", failure.message))
        }
        dump::Error::Output { cause, .. } => encoding(cause),
        dump::Error::Changed(text) => at(Reason::TableAltered, text),
        dump::Error::Missing(text) => at(
            Reason::UnknownDatabase,
            format!("{text}; correct DATABASES or spec.source.databases"),
        ),
        other => at(Reason::ServerRefused, other.to_string()),
    }
}
