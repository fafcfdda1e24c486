//! A dump on its way into the archive: kept compressed in the work directory until its size is
//! known.

use crds::report::{Reason, exit};
use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use sha2::{Digest, Sha256};

use crate::context::Context;
use crate::database::contents::Contents;
use crate::database::server_identity::ServerIdentity;
use crate::failure::Failure;
use crate::stream::checksum::hex;
use crate::stream::measured::keep_tail;

/// Fast and small enough: the archive compresses as the user asked.
const SPOOL_LEVEL: i32 = 1;

/// Bytes looked at from the beginning of a dump.
const HEAD: usize = 512;

/// One entry of the archive.
#[derive(Debug)]
pub(crate) enum Member {
    /// A directory.
    Directory {
        /// Path in the archive.
        path: String,
    },
    /// A file.
    File {
        /// Path in the archive.
        path: String,
        /// Where its bytes are.
        spool: PathBuf,
        /// They are compressed by zstd.
        compressed: bool,
        /// Bytes once decompressed.
        bytes: u64,
        /// SHA-256 of them, hex.
        sha256: String,
        /// Mode in the archive.
        mode: u32,
        /// What the server calls itself, where it tells.
        server: Option<Box<ServerIdentity>>,
        /// What an SQL dump holds.
        holds: Option<Box<Contents>>,
    },
}

impl Member {
    /// Path in the archive.
    pub(crate) fn path(&self) -> &str {
        match self {
            Self::Directory { path } | Self::File { path, .. } => path,
        }
    }

    /// Bytes of a file.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Directory { .. } => 0,
            Self::File { bytes, .. } => *bytes,
        }
    }

    /// The same with what its server calls itself.
    pub(crate) fn with_server(mut self, identity: Option<ServerIdentity>) -> Self {
        if let Self::File { server, .. } = &mut self {
            *server = identity.map(Box::new);
        }
        self
    }

    /// The same with what it holds.
    pub(crate) fn with_holds(mut self, found: Option<Box<Contents>>) -> Self {
        if let Self::File { holds, .. } = &mut self {
            *holds = found;
        }
        self
    }

    /// Opens a file's bytes.
    ///
    /// # Errors
    /// It is gone.
    pub(crate) fn open(&self) -> io::Result<Box<dyn Read>> {
        match self {
            Self::Directory { .. } => Ok(Box::new(io::empty())),
            Self::File {
                spool, compressed, ..
            } => {
                let file = File::open(spool)?;
                if *compressed {
                    Ok(Box::new(zstd::Decoder::new(file)?))
                } else {
                    Ok(Box::new(BufReader::with_capacity(256 * 1024, file)))
                }
            }
        }
    }
}

/// What a spooled stream was.
#[derive(Debug, Default)]
pub(crate) struct Spooled {
    /// Where it is, compressed by zstd.
    pub(crate) path: PathBuf,
    /// Bytes before compression.
    pub(crate) bytes: u64,
    /// SHA-256 of them, hex.
    pub(crate) sha256: String,
    /// The first bytes.
    pub(crate) head: Vec<u8>,
    /// The last bytes.
    pub(crate) tail: Vec<u8>,
}

impl Spooled {
    /// Its entry in the archive.
    pub(crate) fn into_member(self, path: String) -> Member {
        Member::File {
            path,
            spool: self.path,
            compressed: true,
            bytes: self.bytes,
            sha256: self.sha256,
            mode: 0o644,
            server: None,
            holds: None,
        }
    }
}

/// Spools a client's output; `each` sees every chunk.
///
/// # Errors
/// Reading the client or writing the spool failed.
pub(crate) fn spool(
    context: &Context,
    work: &Path,
    name: &str,
    mut input: impl Read,
    mut each: impl FnMut(&[u8]),
) -> Result<Spooled, Failure> {
    let path = work.join(name.replace('/', "_"));
    let written = |e: io::Error| {
        let reason = if e.kind() == io::ErrorKind::StorageFull {
            Reason::NoSpace
        } else {
            Reason::WorkdirFailed
        };
        let remedy = if crate::failure::no_inodes(&path) {
            "the file system has no inode left: remove files on the node"
        } else {
            "raise spec.job.workdirSizeLimit or free space on the node"
        };
        Failure::at(
            exit::FAILED,
            reason,
            format!("spooling to {} failed: {e}; {remedy}", path.display()),
        )
    };
    let file = File::create(&path).map_err(written)?;
    let mut encoder = zstd::Encoder::new(file, SPOOL_LEVEL).map_err(written)?;
    let mut hash = Sha256::new();
    let mut found = Spooled::default();
    let mut buffer = vec![0; 256 * 1024];
    loop {
        let n = match input.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => {
                return Err(Failure::new(
                    Reason::ConnectionLost,
                    format!("reading the client's output failed: {e}"),
                ));
            }
        };
        let chunk = &buffer[..n];
        encoder.write_all(chunk).map_err(written)?;
        hash.update(chunk);
        each(chunk);
        keep_head(&mut found.head, chunk);
        keep_tail(&mut found.tail, chunk);
        found.bytes += n as u64;
        context
            .reporter
            .counters
            .raw
            .fetch_add(n as u64, Ordering::Relaxed);
    }
    encoder.finish().map_err(written)?;
    found.sha256 = hex(&hash.finalize());
    found.path = path;
    Ok(found)
}

/// Keeps the first bytes of all chunks.
pub(crate) fn keep_head(head: &mut Vec<u8>, chunk: &[u8]) {
    let room = HEAD.saturating_sub(head.len());
    head.extend_from_slice(&chunk[..room.min(chunk.len())]);
}
