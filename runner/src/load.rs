//! Loads the text of a dump into a server through the SQL client, as one stream, hashed and
//! counted on its way like the dump was.

use std::io::{ErrorKind, Read, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use sha2::{Digest, Sha256};

use crate::dump_reader::{DumpReader, Summary};
use crate::failure::Failure;
use crate::pipeline::hex;
use crate::report::Ticker;
use crate::run::Context;
use crate::source::{Client, Dump, Ended};

const BUFFER: usize = 256 * 1024;

/// What was loaded.
pub struct Loaded {
    /// SHA-256 of the dump's own text.
    pub sha256: String,
    /// What it held.
    pub summary: Summary,
    /// How the client ended.
    pub ended: Ended,
}

/// Feeds `dump` to the client. A client that stops reading ends the stream; its own status and
/// messages tell why.
///
/// # Errors
/// The dump can't be read, or the client can't be started.
pub fn load(
    context: &Context,
    client: &Client,
    args: &[String],
    mut dump: impl Read,
    rename: Option<&str>,
) -> Result<Loaded, Failure> {
    let (child, mut input) = Dump::start_load(client, args, &context.cancel, &context.scrub)?;
    let _ticker = Ticker::start(Arc::clone(&context.reporter), || {});
    let mut hash = Sha256::new();
    let mut reader = DumpReader::default();
    let mut rename = rename.map(Rename::new);
    let mut buffer = vec![0; BUFFER];
    let mut open = true;
    let mut bytes = 0;
    loop {
        let n = match dump.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => n,
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            Err(e) => {
                child.terminate();
                return Err(e.downcast::<Failure>().unwrap_or_else(|e| {
                    Failure::verification(
                        "Damaged",
                        format!("the artefact can't be read to its end: {e}"),
                    )
                }));
            }
        };
        let chunk = &buffer[..n];
        hash.update(chunk);
        reader.feed(chunk);
        bytes += n as u64;
        context
            .reporter
            .counters
            .raw
            .store(bytes, Ordering::Relaxed);
        if open {
            let written = match &mut rename {
                Some(rename) => input.write_all(&rename.feed(chunk)),
                None => input.write_all(chunk),
            };
            open = written.is_ok();
        }
        if !open {
            break;
        }
    }
    if let (Some(rename), true) = (&mut rename, open) {
        let _ = input.write_all(&rename.rest());
    }
    drop(input);
    Ok(Loaded {
        sha256: hex(&hash.finalize()),
        summary: reader.finish(),
        ended: child.wait()?,
    })
}

/// Gives the dump's one database another name, in `CREATE DATABASE` and `USE`. No row begins a
/// line so: line ends in data are written as `\n`.
struct Rename {
    to: String,
    pending: Vec<u8>,
    at_start: bool,
}

const STATEMENTS: [&[u8]; 2] = [b"CREATE DATABASE ", b"USE `"];

impl Rename {
    fn new(to: &str) -> Self {
        Self {
            to: format!("`{}`", to.replace('`', "``")),
            pending: vec![],
            at_start: true,
        }
    }

    fn feed(&mut self, chunk: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(chunk.len() + 64);
        for line in chunk.split_inclusive(|b| *b == b'\n') {
            if !self.at_start {
                out.extend_from_slice(line);
                self.at_start = line.ends_with(b"\n");
                continue;
            }
            self.pending.extend_from_slice(line);
            let whole = self.pending.ends_with(b"\n");
            let undecided = STATEMENTS
                .iter()
                .any(|s| s.starts_with(&self.pending) || self.pending.starts_with(s));
            if whole || !undecided {
                out.extend_from_slice(&self.rewritten());
                self.at_start = whole;
            }
        }
        out
    }

    fn rest(&mut self) -> Vec<u8> {
        self.rewritten()
    }

    fn rewritten(&mut self) -> Vec<u8> {
        let line = std::mem::take(&mut self.pending);
        if !STATEMENTS.iter().any(|s| line.starts_with(s)) {
            return line;
        }
        let text = String::from_utf8_lossy(&line).into_owned();
        let Some(from) = text.find('`') else {
            return line;
        };
        let mut end = from + 1;
        let bytes = text.as_bytes();
        while end < bytes.len() {
            if bytes[end] == b'`' {
                if bytes.get(end + 1) != Some(&b'`') {
                    break;
                }
                end += 1;
            }
            end += 1;
        }
        format!(
            "{}{}{}",
            &text[..from],
            self.to,
            text.get(end + 1..).unwrap_or_default()
        )
        .into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DUMP: &str = "-- Current Database: `a``b`\n\nCREATE DATABASE /*!32312 IF NOT EXISTS*/ `a``b` /*!40100 DEFAULT CHARACTER SET utf8mb4 */;\n\nUSE `a``b`;\nCREATE TABLE `t` (\n  `USE ` int\n);\nINSERT INTO `t` VALUES\n(1,'USE `a``b`;');\nUSE `a``b`;\nU";

    proptest! {
        #[test]
        fn only_the_statements_get_the_new_name(size in 1usize..120) {
            let mut rename = Rename::new("new");
            let mut out: Vec<u8> = DUMP.as_bytes().chunks(size).flat_map(|c| rename.feed(c)).collect();
            out.extend(rename.rest());
            let expected = DUMP
                .replace("EXISTS*/ `a``b`", "EXISTS*/ `new`")
                .replace("\nUSE `a``b`;", "\nUSE `new`;");
            prop_assert_eq!(String::from_utf8(out).ok(), Some(expected));
        }
    }
}
