//! Loads the text of a dump into a server through the SQL client, as one stream, hashed and
//! counted on its way like the dump was. What belongs to the server it came from is left out, and
//! what the server says of the rows is heard.

use crds::report::Reason;
use std::io::{ErrorKind, Read, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use sha2::{Digest, Sha256};

use crate::context::Context;
use crate::database::mysql::dump_reader::{DumpReader, Summary};
use crate::database::mysql::source::Client;
use crate::database::mysql::sql::{Rewrite, Script};
use crate::failure::Failure;
use crate::process::Ended;
use crate::report::Ticker;
use crate::stream::checksum::hex;

mod output;

pub use output::{KindOutput, LoadOutput, TableOutput};

const BUFFER: usize = 256 * 1024;

/// What was loaded.
pub struct Loaded {
    /// SHA-256 of the dump's own text.
    pub sha256: String,
    /// What it held.
    pub summary: Summary,
    /// How the client ended.
    pub ended: Ended,
    /// What the server said of it.
    pub heard: LoadOutput,
}

/// Feeds `dump` to the client, changed as `script` says; without one nothing is renamed. A client
/// that stops reading ends the stream; its own status and messages tell why.
///
/// # Errors
/// The dump can't be read, or the client can't be started.
pub fn load(
    context: &Context,
    client: &Client,
    args: &[String],
    mut dump: impl Read,
    script: Option<Script>,
) -> Result<Loaded, Failure> {
    let mut child = client.program(args).start(context, true)?;
    let (Some(mut input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(Failure::new(
            Reason::ClientNotStarted,
            "the client has no input or output",
        ));
    };
    let listener = std::thread::spawn(move || LoadOutput::listen(output));
    let _ticker = Ticker::start(Arc::clone(&context.reporter), || {});
    let mut hash = Sha256::new();
    let mut reader = DumpReader::default();
    let script = script.unwrap_or_else(|| Script::new(Rewrite::default()));
    let mut script = script.with_marks();
    let (mut buffer, mut out) = (vec![0; BUFFER], Vec::with_capacity(2 * BUFFER));
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
                    Failure::new(
                        Reason::Damaged,
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
        out.clear();
        script.feed(chunk, &mut out);
        open = input.write_all(&out).is_ok();
        if !open {
            break;
        }
    }
    if open {
        out.clear();
        script.finish(&mut out);
        let _ = input.write_all(&out);
    }
    drop(input);
    let ended = child.wait()?;
    Ok(Loaded {
        sha256: hex(&hash.finalize()),
        summary: reader.finish(),
        ended,
        heard: listener.join().unwrap_or_default(),
    })
}

/// Arguments of the SQL client that loads a dump byte for byte.
pub(crate) fn arguments(client: &Client) -> Vec<String> {
    let mut args = vec![
        "--batch".to_owned(),
        "--default-character-set=utf8mb4".to_owned(),
        "--max-allowed-packet=1G".to_owned(),
        "--skip-column-names".to_owned(),
        "--show-warnings".to_owned(),
    ];
    if client.knows("binary-mode") {
        args.push("--binary-mode".to_owned());
    }
    args
}
