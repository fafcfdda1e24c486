//! Binary logs as text: decoded by the family's own program, transaction by transaction, with rows as pseudo-SQL.

mod filter;
mod text;

use std::io::{self, Read, Write};
use std::sync::mpsc;
use std::sync::{Mutex, PoisonError};

use crds::report::Reason;

pub(crate) use self::filter::Named;
pub(crate) use self::text::{Start, Text};
use super::source::{Client, Flavour, missing};
use crate::context::Context;
use crate::failure::Failure;
use crate::process::Program;
use crate::settings::Settings;

const BUFFER: usize = 64 * 1024;

/// The program that decodes logs of this family.
///
/// # Errors
/// There is none.
pub(crate) fn find(settings: &Settings, logs: Flavour) -> Result<Client, Failure> {
    let names: &[&str] = match logs {
        Flavour::MariaDb => &["mariadb-binlog", "mysqlbinlog"],
        Flavour::MySql => &["mysqlbinlog"],
    };
    let found = Client::ask_all(&settings.path, names);
    // Its version names no maker, its help does.
    let of_mariadb = logs == Flavour::MariaDb;
    let fits = |client: &Client| client.mentions("MariaDB") == of_mariadb;
    found.into_iter().find(fits).ok_or_else(|| {
        missing(
            settings,
            "program that reads binary logs",
            &names.join(" or "),
        )
    })
}

/// Gives bytes of a log to the program, and says before each transaction that it begins.
pub(crate) type Feed<'a> =
    dyn Fn(&mut dyn Write, &mut dyn FnMut(Start)) -> Result<(), Failure> + Sync + 'a;

/// Decodes what `feed` gives into `text`.
///
/// # Errors
/// The bytes can't be read, the program can't decode them to their end, or nobody reads the text any more.
pub(crate) fn decode(
    context: &Context,
    decoder: &Client,
    feed: &Feed<'_>,
    text: &mut Text<'_>,
) -> Result<(), Failure> {
    let args = [
        "--no-defaults",
        "--verify-binlog-checksum",
        "--base64-output=DECODE-ROWS",
        "-v",
        "-",
    ];
    let mut program = Program::new(decoder.path.clone(), args);
    // The program writes times of its zone.
    program.env.push(("TZ".to_owned(), "UTC".to_owned()));
    let mut running = program.start(context, true)?;
    let (Some(mut bytes), Some(mut output)) = (running.stdin.take(), running.stdout.take()) else {
        return Err(Failure::new(
            Reason::ClientNotStarted,
            "the program has no input or output",
        ));
    };
    let (begins, begun) = mpsc::channel();
    let fed = Mutex::new(Ok(()));
    let read = std::thread::scope(|scope| {
        scope.spawn(|| {
            let outcome = feed(&mut bytes, &mut |begun| drop(begins.send(begun)));
            *fed.lock().unwrap_or_else(PoisonError::into_inner) = outcome;
            drop(bytes);
        });
        let mut buffer = vec![0; BUFFER];
        let outcome = loop {
            let n = match output.read(&mut buffer) {
                Ok(0) => break Ok(()),
                Ok(n) => n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => break Err(gone(&e)),
            };
            if let Err(e) = text.feed(&buffer[..n], &begun) {
                break Err(gone(&e));
            }
        };
        if outcome.is_err() {
            running.terminate();
        }
        drop(output);
        outcome
    });
    let ended = running.wait()?;
    context.check()?;
    read?;
    // What could not be read is why the program had no more.
    fed.into_inner().unwrap_or_else(PoisonError::into_inner)?;
    let whole = text.finish(&begun).map_err(|e| gone(&e))?;
    if ended.good() && whole {
        return Ok(());
    }
    Err(Failure::new(
        Reason::ClientFailed,
        format!(
            "{} ended with {} before the end of what it was given: {}",
            decoder.name(),
            ended.status_text(),
            ended.messages.join("; ")
        ),
    ))
}

fn gone(error: &io::Error) -> Failure {
    Failure::new(Reason::ReaderGone, format!("the reader went away: {error}"))
}
