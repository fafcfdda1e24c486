//! Redis's protocol (RESP2), as much of it as a restore speaks: commands out, one after the other
//! without waiting, and their replies in.

use crds::report::Reason;
use std::io::{self, ErrorKind, Read, Write};
use std::time::{Duration, Instant};

use crate::context::Context;
use crate::failure::Failure;

/// Commands are sent when so many bytes of them are gathered.
const GATHERED: usize = 256 * 1024;
/// A server that says nothing for so long is lost. It loads a value of 512 MiB in seconds.
const SILENCE: Duration = Duration::from_mins(5);
/// Longest line and longest string of a reply: what is asked for is short.
const LONGEST: usize = 16 << 20;
/// Most elements, and deepest lists, of a reply.
const MOST: usize = 100_000;
const DEEPEST: usize = 8;

/// Both ways of a connection.
pub(crate) trait Duplex: Read + Write + Send {}
impl<T: Read + Write + Send> Duplex for T {}

/// What a server says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// A short text.
    Status(String),
    /// A refusal, in the server's words.
    Error(String),
    /// A number.
    Number(i64),
    /// Bytes; nothing is empty.
    Bytes(Vec<u8>),
    /// Several.
    List(Vec<Reply>),
}

/// A connection.
pub(crate) struct Wire<'a> {
    context: &'a Context,
    stream: Box<dyn Duplex>,
    out: Vec<u8>,
    input: Vec<u8>,
    from: usize,
}

impl<'a> Wire<'a> {
    pub(crate) fn new(context: &'a Context, stream: Box<dyn Duplex>) -> Self {
        Self {
            context,
            stream,
            out: vec![],
            input: vec![],
            from: 0,
        }
    }

    /// Sends a command, now or a little later.
    pub(crate) fn send(&mut self, words: &[&[u8]]) -> Result<(), Failure> {
        self.out
            .extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
        for word in words {
            self.out
                .extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            self.out.extend_from_slice(word);
            self.out.extend_from_slice(b"\r\n");
        }
        if self.out.len() >= GATHERED {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Failure> {
        let mut from = 0;
        let mut last = Instant::now();
        while from < self.out.len() {
            match self.stream.write(&self.out[from..]) {
                Ok(0) => return Err(lost(&ErrorKind::WriteZero.into())),
                Ok(n) => {
                    from += n;
                    last = Instant::now();
                }
                Err(e) => self.patience(&e, last)?,
            }
        }
        self.out.clear();
        loop {
            match self.stream.flush() {
                Ok(()) => return Ok(()),
                Err(e) => self.patience(&e, last)?,
            }
        }
    }

    /// An error that says to try again is none until the run is to end or the server is lost.
    fn patience(&self, e: &io::Error, last: Instant) -> Result<(), Failure> {
        match e.kind() {
            ErrorKind::Interrupted => Ok(()),
            ErrorKind::WouldBlock | ErrorKind::TimedOut => {
                self.context.check()?;
                if last.elapsed() < SILENCE {
                    return Ok(());
                }
                Err(lost(&io::Error::other(format!(
                    "it said nothing for {} s",
                    SILENCE.as_secs()
                ))))
            }
            _ => Err(lost(e)),
        }
    }

    /// The next reply.
    pub(crate) fn reply(&mut self) -> Result<Reply, Failure> {
        self.flush()?;
        self.read_reply(0)
    }

    fn read_reply(&mut self, depth: usize) -> Result<Reply, Failure> {
        // Another protocol's greeting need not have the end of a line.
        while self.input.len() == self.from {
            self.fill()?;
        }
        let there = &self.input[self.from..];
        if !there.first().is_some_and(|b| b"+-:$*".contains(b)) {
            return Err(strange(there));
        }
        let line = self.line()?;
        let (kind, rest) = line.split_at_checked(1).unwrap_or((&[], &[]));
        let text = String::from_utf8_lossy(rest).into_owned();
        let number = || text.parse::<i64>().map_err(|_| strange(&line));
        match kind {
            b"+" => Ok(Reply::Status(text)),
            b"-" => Ok(Reply::Error(text)),
            b":" => number().map(Reply::Number),
            b"$" => match usize::try_from(number()?) {
                Ok(length) if length <= LONGEST => {
                    let mut bytes = self.exactly(length + 2)?;
                    bytes.truncate(length);
                    Ok(Reply::Bytes(bytes))
                }
                Ok(_) => Err(strange(&line)),
                Err(_) => Ok(Reply::Bytes(vec![])),
            },
            b"*" => {
                let length = usize::try_from(number()?).unwrap_or(0);
                if length > MOST || depth == DEEPEST {
                    return Err(strange(&line));
                }
                let each = (0..length).map(|_| self.read_reply(depth + 1));
                each.collect::<Result<_, _>>().map(Reply::List)
            }
            _ => Err(strange(&line)),
        }
    }

    fn line(&mut self) -> Result<Vec<u8>, Failure> {
        loop {
            let there = &self.input[self.from..];
            if let Some(end) = there.windows(2).position(|w| w == b"\r\n") {
                let line = there[..end].to_vec();
                self.from += end + 2;
                return Ok(line);
            }
            if there.len() > LONGEST {
                return Err(strange(&there[..32]));
            }
            self.fill()?;
        }
    }

    fn exactly(&mut self, length: usize) -> Result<Vec<u8>, Failure> {
        while self.input.len() - self.from < length {
            self.fill()?;
        }
        let bytes = self.input[self.from..self.from + length].to_vec();
        self.from += length;
        Ok(bytes)
    }

    fn fill(&mut self) -> Result<(), Failure> {
        self.input.drain(..self.from);
        self.from = 0;
        let mut buffer = [0; 16 * 1024];
        let last = Instant::now();
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err(lost(&io::Error::other("it closed the connection"))),
                Ok(n) => {
                    self.input.extend_from_slice(&buffer[..n]);
                    return Ok(());
                }
                Err(e) => self.patience(&e, last)?,
            }
        }
    }
}

fn lost(e: &io::Error) -> Failure {
    Failure::new(
        Reason::ConnectionLost,
        format!(
            "the connection to the server broke ({e}): see its log; a port that speaks TLS needs spec.to.tls.mode Required, VerifyCA or VerifyIdentity (--tls)"
        ),
    )
}

fn strange(line: &[u8]) -> Failure {
    let begin: Vec<u8> = line.iter().take(32).copied().collect();
    Failure::new(
        Reason::ClientDoesNotFit,
        format!(
            "what answers does not speak Redis's protocol, it says {:?}: check spec.to.host and port (--to)",
            String::from_utf8_lossy(&begin)
        ),
    )
}
