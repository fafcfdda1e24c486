//! Compression that no library writes, by its own program.

use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::ChildStdin;
use std::thread::JoinHandle;

use crds::plan::Codec;
use crds::report::Reason;

use crate::failure::Failure;
use crate::process::{Parent, Program, Running};

/// The program of a codec that no library of ours writes.
pub fn program(codec: Codec) -> Option<&'static str> {
    match codec {
        Codec::Compress => Some("compress"),
        Codec::Lzip => Some("lzip"),
        Codec::Lzop => Some("lzop"),
        _ => None,
    }
}

/// A filter program: what is written to it comes out compressed at `sink`'s side.
pub struct Filter<S: Send + 'static> {
    stdin: Option<ChildStdin>,
    running: Running,
    pump: JoinHandle<io::Result<S>>,
    name: &'static str,
}

impl<S: Write + Send + 'static> Filter<S> {
    /// Starts the program of a codec, which is there.
    ///
    /// # Errors
    /// It can't be started.
    pub fn start(
        of: &impl Parent,
        (name, path): (&'static str, PathBuf),
        level: Option<i32>,
        mut sink: S,
    ) -> Result<Self, Failure> {
        let level = level.map(|l| format!("-{l}"));
        let args = ["-c".to_owned()]
            .into_iter()
            .chain(level.filter(|_| name != "compress"));
        let mut running = Program::new(path, args).start(of, true)?;
        let stdin = running.stdin.take();
        let Some(mut stdout) = running.stdout.take() else {
            return Err(Failure::new(
                Reason::ClientNotStarted,
                format!("{name} has no output"),
            ));
        };
        let pump = std::thread::spawn(move || {
            let mut buffer = vec![0; 64 * 1024];
            loop {
                match stdout.read(&mut buffer)? {
                    0 => return Ok(sink),
                    n => sink.write_all(&buffer[..n])?,
                }
            }
        });
        Ok(Self {
            stdin,
            running,
            pump,
            name,
        })
    }

    /// Closes its input, waits for its end and gives the sink back.
    ///
    /// # Errors
    /// The program failed, or the sink did.
    pub fn finish(mut self) -> io::Result<S> {
        drop(self.stdin.take());
        let sink = self
            .pump
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the filter's thread panicked")));
        let ended = self.running.wait().map_err(io::Error::other)?;
        if !ended.good() {
            let said = ended.messages.join(" / ");
            return Err(io::Error::other(Failure::new(
                Reason::DumpFailed,
                format!("{} ended with {}: {said}", self.name, ended.status_text()),
            )));
        }
        sink
    }
}

impl<S: Write + Send + 'static> Write for Filter<S> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        match &mut self.stdin {
            Some(stdin) => stdin.write(data),
            None => Err(io::Error::other("closed")),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
