//! Why a file of a dump is not whole, and how files are read to find it.

use std::io::{self, Read};

/// Bytes of a read.
pub(crate) const BUFFER: usize = 64 * 1024;

/// Why a file is not what it has to be.
#[derive(Debug)]
pub(crate) enum Flaw {
    /// It is not whole: what follows "the dump".
    Broken(String),
    /// It can't be read.
    Io(io::Error),
}

impl From<io::Error> for Flaw {
    fn from(e: io::Error) -> Self {
        match e.kind() {
            io::ErrorKind::UnexpectedEof => Self::Broken("ends too early".to_owned()),
            _ => Self::Io(e),
        }
    }
}

/// It is not whole: what follows "the dump".
pub(crate) fn broken(what: impl Into<String>) -> Flaw {
    Flaw::Broken(what.into())
}

/// Reads to the end.
pub(crate) fn each(from: &mut dyn Read, mut f: impl FnMut(&[u8])) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(n) => f(&buffer[..n]),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

/// Reads exactly so many bytes.
pub(crate) fn array<const N: usize>(from: &mut dyn Read) -> Result<[u8; N], Flaw> {
    let mut bytes = [0; N];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Passes over exactly so many bytes.
pub(crate) fn pass(from: &mut dyn Read, bytes: u64) -> Result<(), Flaw> {
    let passed = io::copy(&mut from.take(bytes), &mut io::sink())?;
    if passed == bytes {
        Ok(())
    } else {
        Err(broken("ends too early"))
    }
}

/// Nothing follows.
pub(crate) fn end(from: &mut dyn Read) -> Result<(), Flaw> {
    let mut more = [0];
    match from.read(&mut more)? {
        0 => Ok(()),
        _ => Err(broken("goes on after its end")),
    }
}
