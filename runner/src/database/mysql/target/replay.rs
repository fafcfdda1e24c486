//! Binary logs replayed into a server: decoded by the family's own program, sent by its SQL client. Each file is fed to the
//! program as the caller reads it; what the program says of positions is heard, and the client has to say that it came to the end.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use crds::report::Reason;

use super::{Target, failures};
use crate::database::mysql::source::{Client, Flavour};
use crate::database::mysql::{decoder, load};
use crate::failure::Failure;
use crate::process::Program;
use crate::report::Ticker;

/// What the client prints once the server has taken all.
const MARK: &str = "backup-runner: all is replayed";
/// Bytes of a line that are looked at.
const LINE: usize = 256;
const BUFFER: usize = 64 * 1024;

/// Reads a file of a log from where it is to be replayed, as the server would give it, and writes it there.
pub(crate) type Feed<'a> = dyn Fn(&mut dyn Write) -> Result<(), Failure> + Sync + 'a;

/// A file of a log, as far as it is replayed.
pub(crate) struct LogFile<'a> {
    /// As the server called it.
    pub(crate) name: String,
    /// Where the last transaction ends.
    pub(crate) ends: u64,
    /// Where the last event ends.
    pub(crate) stop: u64,
    /// What gives its bytes.
    pub(crate) feed: Box<Feed<'a>>,
    /// Of a file of which events are left out, what was given of it.
    pub(crate) given: Option<Arc<ReplayedEnd>>,
}

/// Where the last transaction ends that was given, and the last event, once all is; their low 32 bits.
pub(crate) type ReplayedEnd = Mutex<Option<(u32, u32)>>;

impl Target<'_> {
    /// The program that decodes logs of this family, if the target is of it and lets the user replay.
    ///
    /// # Errors
    /// The target is of the other family, the user lacks a right, or the program is not there.
    pub(crate) fn ready_to_replay(&self, logs: Flavour) -> Result<Client, Failure> {
        if self.flavour() != logs {
            let family = |flavour| match flavour {
                Flavour::MariaDb => "MariaDB",
                Flavour::MySql => "MySQL",
            };
            return Err(Failure::settings(format!(
                "binary logs of {} can't be replayed into {} at {}: restore into a server of the same maker; nothing was changed",
                family(logs),
                family(self.flavour()),
                self.place()
            )));
        }
        let (may, grant) = match logs {
            Flavour::MariaDb => (self.may(&["SUPER", "BINLOG REPLAY"]), "BINLOG REPLAY"),
            Flavour::MySql => (
                self.may(&["SUPER", "REPLICATION_APPLIER"])
                    || self.may(&["BINLOG_ADMIN"]) && self.may(&["SYSTEM_VARIABLES_ADMIN"]),
                "REPLICATION_APPLIER, SESSION_VARIABLES_ADMIN",
            ),
        };
        if !may {
            return Err(Failure::new(
                Reason::MissingPrivilege,
                format!(
                    "user {} may not replay binary logs at {}: GRANT {grant} ON *.* TO that user; nothing was changed",
                    self.account,
                    self.place()
                ),
            ));
        }
        self.connection.sql(self.context)?;
        decoder::find(&self.context.settings, logs)
    }

    /// Replays files in their order, behind a dump that filled the databases of these names.
    ///
    /// # Errors
    /// As [`Self::replayed`]; it says what is left.
    pub(crate) fn replay(
        &self,
        decoder: &Client,
        files: &[LogFile<'_>],
        names: &[String],
    ) -> Result<(), Failure> {
        self.replayed(decoder, files).map_err(|e| Failure {
            message: format!("{}; {}", e.message, half_replayed(names, &self.place())),
            ..e
        })
    }

    /// Replays files in their order.
    ///
    /// # Errors
    /// A file can't be read, the program can't decode it, the server refuses, or not all of it was replayed.
    pub(crate) fn replayed(&self, decoder: &Client, files: &[LogFile<'_>]) -> Result<(), Failure> {
        let context = self.context;
        let client = self.connection.sql(context)?.clone();
        let options = self
            .connection
            .options(context, self.source, client.flavour)?;
        let mut args = vec![options.argument()];
        let quiet = load::arguments(&client).into_iter();
        args.extend(quiet.filter(|arg| arg != "--show-warnings"));
        let mut running = client.program(&args).start(context, true)?;
        let (Some(mut input), Some(output)) = (running.stdin.take(), running.stdout.take()) else {
            return Err(Failure::new(
                Reason::ClientNotStarted,
                "the client has no input or output",
            ));
        };
        let listener = std::thread::spawn(move || marked(output));
        let _ticker = Ticker::start(Arc::clone(&context.reporter), || {});
        let mut outcome = Ok(());
        for file in files {
            outcome = self.file(decoder, file, &mut input);
            if outcome.is_err() {
                break;
            }
        }
        match &outcome {
            Ok(()) => {
                let _ = writeln!(input, "SELECT '{MARK}';");
            }
            // The client must not take the beginning of a transaction for all of it.
            Err(_) => running.terminate(),
        }
        drop(input);
        let ended = running.wait()?;
        let marked = listener.join().unwrap_or_default();
        context.check()?;
        match outcome {
            Ok(()) if ended.good() && marked => Ok(()),
            // A client that ended closed the pipe: its words say why.
            Err(stop) if !stop.pipe => Err(stop.failure),
            Ok(()) | Err(_) => Err(failures::explain(&client.name(), &ended, self.source)),
        }
    }

    /// Replays one file.
    fn file(
        &self,
        decoder: &Client,
        file: &LogFile<'_>,
        input: &mut dyn Write,
    ) -> Result<(), Halt> {
        let context = self.context;
        let mut args = vec!["--no-defaults", "--verify-binlog-checksum"];
        if decoder.knows("skip-gtids") {
            // The target gives its own: one that it has already would be passed over in silence.
            args.push("--skip-gtids");
        }
        args.push("-");
        let mut program = Program::new(decoder.path.clone(), args).start(context, true)?;
        let (Some(mut bytes), Some(mut text)) = (program.stdin.take(), program.stdout.take())
        else {
            return Err(Failure::new(
                Reason::ClientNotStarted,
                "the program has no input or output",
            )
            .into());
        };
        let fed = Mutex::new(Ok(()));
        let mut heard = Heard::default();
        let mut pipe = false;
        let read = std::thread::scope(|scope| {
            scope.spawn(|| {
                let outcome = (file.feed)(&mut bytes);
                *fed.lock().unwrap_or_else(PoisonError::into_inner) = outcome;
                drop(bytes);
            });
            let mut buffer = vec![0; BUFFER];
            loop {
                let n = match text.read(&mut buffer) {
                    Ok(0) => return Ok(()),
                    Ok(n) => n,
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                    Err(e) => return Err(e),
                };
                heard.feed(&buffer[..n]);
                let raw = &context.reporter.counters.raw;
                raw.fetch_add(n as u64, Ordering::Relaxed);
                if input.write_all(&buffer[..n]).is_err() {
                    pipe = true;
                    program.terminate();
                    return Ok(());
                }
            }
        });
        let ended = program.wait()?;
        context.check()?;
        let place = || format!("{} near {}", file.name, heard.ends);
        if pipe {
            let failure = Failure::new(Reason::RestoreFailed, format!("stopped in {}", place()));
            return Err(Halt { failure, pipe });
        }
        // What could not be read is why the program had no more.
        fed.into_inner().unwrap_or_else(PoisonError::into_inner)?;
        let said = ended.messages.join("; ");
        let failed = |why: String| Failure::new(Reason::RestoreIncomplete, why);
        if read.is_err() || !ended.good() {
            return Err(failed(format!(
                "{} ended with {} in {}: {said}",
                decoder.name(),
                ended.status_text(),
                place()
            ))
            .into());
        }
        let (ends, stop) = match &file.given {
            None => (file.ends, file.stop),
            Some(given) => match *given.lock().unwrap_or_else(PoisonError::into_inner) {
                Some((ends, last)) => {
                    let ends = u64::from(ends);
                    let behind = u64::from(last).wrapping_sub(ends) & u64::from(u32::MAX);
                    (ends, ends + behind)
                }
                // No transaction was given.
                None => return Ok(()),
            },
        };
        if !heard.is_within(ends, stop) {
            return Err(failed(format!(
                "{} read {} up to {} instead of {ends}: not all of it was replayed",
                decoder.name(),
                file.name,
                heard.ends,
            ))
            .into());
        }
        Ok(())
    }
}

/// What a replay that was cut leaves, in words: what it made can't be made twice.
pub(crate) fn half_replayed(names: &[String], place: &str) -> String {
    format!(
        "the backup is restored at {place} and its binary logs are replayed in part: do not use it; drop {}, and what else was made there, then restore again",
        names.join(", ")
    )
}

/// Why a file was not replayed to its end.
struct Halt {
    failure: Failure,
    /// The client took no more.
    pipe: bool,
}

impl From<Failure> for Halt {
    fn from(failure: Failure) -> Self {
        Self {
            failure,
            pipe: false,
        }
    }
}

/// True if the client has printed the mark.
fn marked(output: impl Read) -> bool {
    let mut output = BufReader::new(output);
    let (mut found, mut line) = (false, vec![]);
    loop {
        line.clear();
        match output.read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return found,
            Ok(_) => found |= line.trim_ascii_end() == MARK.as_bytes(),
        }
    }
}

/// Where events end, by the lines that the program writes before each.
#[derive(Debug, Default)]
struct Heard {
    /// The beginning of a line that says something.
    line: Vec<u8>,
    /// In the middle of one that does not.
    passing: bool,
    /// Where the last event ended.
    ends: u64,
}

impl Heard {
    /// True if the last event that was heard of ends in that range. Events hold the low 32 bits, and not all are told.
    fn is_within(&self, ends: u64, stop: u64) -> bool {
        let behind = self.ends.wrapping_sub(ends) & u64::from(u32::MAX);
        behind <= stop.saturating_sub(ends)
    }

    fn feed(&mut self, mut text: &[u8]) {
        while !text.is_empty() {
            let end = memchr::memchr(b'\n', text);
            let (now, rest) = match end {
                Some(at) => (&text[..at], &text[at + 1..]),
                None => (text, &[][..]),
            };
            if !self.passing {
                let room = LINE.saturating_sub(self.line.len());
                self.line.extend_from_slice(&now[..now.len().min(room)]);
                self.passing = self.line.first().is_some_and(|first| *first != b'#');
            }
            if end.is_some() {
                self.ends = position(&self.line).unwrap_or(self.ends);
                self.line.clear();
                self.passing = false;
            }
            text = rest;
        }
    }
}

/// `#260115 10:30:00 server id 1  end_log_pos 256 CRC32 0x…`; 0 stands where the server wrote no position.
fn position(line: &[u8]) -> Option<u64> {
    let line = std::str::from_utf8(line.get(..line.len().min(120))?).unwrap_or_default();
    let rest = line.strip_prefix('#')?;
    rest.starts_with(|c: char| c.is_ascii_digit())
        .then_some(())?;
    let (_, rest) = rest.split_once(" server id ")?;
    let (_, rest) = rest.split_once(" end_log_pos ")?;
    let position = rest.split([' ', '\t']).next()?.parse().ok()?;
    (position > 0).then_some(position)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_position_is_heard_in_whatever_pieces_it_comes() {
        let text = b"# at 4\n#260115 10:30:00 server id 1  end_log_pos 256 CRC32 0xd775db06 \tStart: binlog v 4\nBINLOG '\nvik=\n'/*!*/;\n#Q> insert t values (1)\n#260115 10:30:00 server id 1  end_log_pos 0 CRC32 0x1 \tAnnotate_rows:\n#260115 10:30:01 server id 12  end_log_pos 882 CRC32 0x2 \tXid = 9\nCOMMIT/*!*/;\nselect ' server id 1  end_log_pos 9';\n# End of log file\n";
        for size in [1, 2, 7, 4096] {
            let mut heard = Heard::default();
            for piece in text.chunks(size) {
                heard.feed(piece);
            }
            assert_eq!(heard.ends, 882, "{size}");
        }
    }

    #[test]
    fn positions_beyond_four_gib_are_told_by_their_low_bits() {
        for (heard, ends, stop, within) in [
            (882, 882, 882, true),
            (881, 882, 900, false),
            (900, 882, 900, true),
            (901, 882, 900, false),
            (0, 882, 900, false),
            (5, (1 << 32) + 5, (1 << 32) + 9, true),
            (3, (1 << 32) - 5, (1 << 32) + 9, true),
            (4, (1 << 32) + 5, (1 << 32) + 9, false),
        ] {
            let heard = Heard {
                ends: heard,
                ..Heard::default()
            };
            assert_eq!(heard.is_within(ends, stop), within, "{ends} {stop}");
        }
    }

    #[test]
    fn the_mark_is_a_line_of_its_own() {
        let text = format!("1\n{MARK}\n");
        assert!(marked(text.as_bytes()));
        assert!(!marked(format!("x {MARK}\n").as_bytes()) && !marked(&b""[..]));
    }
}
