//! The dump as one bounded stream on two threads: one reads, counts, hashes and looks at the
//! text; the other compresses, encrypts, hashes and stores. Chunks go round between them, so
//! that memory is the chunks' and a slow store holds the client back.

use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use crds::mysql_backup::Compression;
use sha2::{Digest, Sha256};

use crate::codec::Encoder;
use crate::dump_reader::{DumpReader, Summary};
use crate::failure::Failure;
use crate::stall::Longest;
use crate::store::Upload;

/// Bytes of a chunk.
const CHUNK: usize = 256 * 1024;
/// Chunks in all while the store keeps up.
const CHUNKS: usize = 16;
/// A server ends a dump whose client takes nothing for a minute (net_write_timeout), and MariaDB's
/// client can't ask it for more. So while a store pauses, some chunks more are read every so often.
const PATIENCE: Duration = Duration::from_secs(20);
/// Chunks that are read then: as much as makes room in the buffers of server and network.
const MORE: usize = 8;
/// Most of them in all; by then a store that pauses has been given up.
const MOST: usize = 20 * MORE;

/// A read of fewer bytes found the pipe nearly empty.
const SHORT: usize = 64 * 1024;
/// A client that writes 150 MB a second fills 64 KiB in it, the smallest of pipes.
const NAP: Duration = Duration::from_micros(300);

/// Bytes that went by, for progress.
#[derive(Debug, Default)]
pub struct Counters {
    /// Bytes of the dump.
    pub raw: AtomicU64,
    /// Bytes stored.
    pub stored: AtomicU64,
    /// The longest that the store took for what it was given at once.
    pub store_wait: Longest,
}

/// What came in.
#[derive(Debug)]
pub struct Raw {
    /// Bytes.
    pub bytes: u64,
    /// SHA-256, hex.
    pub sha256: String,
    /// What the dump's text says.
    pub summary: Summary,
}

/// What went out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Bytes.
    pub bytes: u64,
    /// SHA-256, hex.
    pub sha256: String,
}

/// Streams `input` into `upload`. `abort` is called when the store fails, so that a silent client
/// does not hold the reading thread.
///
/// # Errors
/// The store's failure, or else that of reading the client.
pub fn run(
    input: impl Read + Send,
    compression: Compression,
    recipients: &[String],
    upload: &mut dyn Upload,
    counters: &Counters,
    abort: &dyn Fn(),
) -> Result<(Raw, Stored), Failure> {
    run_with(
        input,
        compression,
        recipients,
        upload,
        counters,
        abort,
        PATIENCE,
    )
}

fn run_with(
    input: impl Read + Send,
    compression: Compression,
    recipients: &[String],
    upload: &mut dyn Upload,
    counters: &Counters,
    abort: &dyn Fn(),
    patience: Duration,
) -> Result<(Raw, Stored), Failure> {
    let (full, chunks) = sync_channel(CHUNKS + MOST);
    let (empty, spare) = sync_channel(CHUNKS);
    for _ in 0..CHUNKS {
        let _ = empty.send(Vec::with_capacity(CHUNK));
    }
    std::thread::scope(|scope| {
        let reader = scope.spawn(move || read(input, &full, &spare, counters, patience));
        let stored = store(chunks, empty, compression, recipients, upload, counters);
        if stored.is_err() {
            abort();
        }
        let raw = reader
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the reading thread panicked")));
        let stored = stored?;
        let raw = raw.map_err(|e| {
            Failure::source(
                "ConnectionLost",
                format!("reading the client's output failed: {e}"),
            )
        })?;
        Ok((raw, stored))
    })
}

fn read(
    mut input: impl Read,
    full: &SyncSender<Vec<u8>>,
    spare: &Receiver<Vec<u8>>,
    counters: &Counters,
    patience: Duration,
) -> io::Result<Raw> {
    let mut hash = Sha256::new();
    let mut reader = DumpReader::default();
    let mut bytes = 0;
    let (mut more, mut made) = (0, 0);
    loop {
        let wait = if more > 0 { Duration::ZERO } else { patience };
        let mut chunk = match spare.recv_timeout(wait) {
            Ok(chunk) => chunk,
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) if made < MOST => {
                if more == 0 {
                    more = MORE;
                }
                more -= 1;
                made += 1;
                Vec::with_capacity(CHUNK)
            }
            Err(RecvTimeoutError::Timeout) => continue,
        };
        let n = fill(&mut input, &mut chunk)?;
        if n == 0 {
            break;
        }
        hash.update(&chunk);
        reader.feed(&chunk);
        bytes += n as u64;
        counters.raw.store(bytes, Ordering::Relaxed);
        if full.send(chunk).is_err() {
            break;
        }
    }
    Ok(Raw {
        bytes,
        sha256: hex(&hash.finalize()),
        summary: reader.finish(),
    })
}

/// Reads until the chunk is full or the input ends. A client writes 4 KiB at a time: who waits for
/// it in `read` is woken for each, at the cost of both; so a short read is followed by a nap, in
/// which the pipe fills.
fn fill(input: &mut impl Read, chunk: &mut Vec<u8>) -> io::Result<usize> {
    chunk.resize(CHUNK, 0);
    let mut filled = 0;
    while filled < CHUNK {
        match input.read(&mut chunk[filled..]) {
            Ok(0) => break,
            Ok(n) => {
                filled += n;
                if n < SHORT && filled < CHUNK {
                    std::thread::sleep(NAP);
                }
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    chunk.truncate(filled);
    Ok(filled)
}

fn store(
    chunks: Receiver<Vec<u8>>,
    empty: SyncSender<Vec<u8>>,
    compression: Compression,
    recipients: &[String],
    upload: &mut dyn Upload,
    counters: &Counters,
) -> Result<Stored, Failure> {
    let sink = Sink {
        upload,
        hash: Sha256::new(),
        bytes: 0,
        counters,
    };
    let encode = || -> io::Result<Stored> {
        let mut encoder = Encoder::new(sink, compression, recipients)?;
        for chunk in chunks {
            encoder.write_all(&chunk)?;
            // Those made while it paused are too many: they go.
            let _ = empty.try_send(chunk);
        }
        let sink = encoder.finish()?;
        Ok(Stored {
            bytes: sink.bytes,
            sha256: hex(&sink.hash.finalize()),
        })
    };
    encode().map_err(|e| {
        e.downcast::<Failure>().unwrap_or_else(|e| {
            Failure::other(
                "EncodingFailed",
                format!("compressing or encrypting failed: {e}"),
            )
        })
    })
}

struct Sink<'a> {
    upload: &'a mut dyn Upload,
    hash: Sha256,
    bytes: u64,
    counters: &'a Counters,
}

impl Write for Sink<'_> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let begun = Instant::now();
        let written = self.upload.write(data);
        self.counters.store_wait.note(begun.elapsed());
        written.map_err(io::Error::other)?;
        self.hash.update(data);
        self.bytes += data.len() as u64;
        self.counters.stored.store(self.bytes, Ordering::Relaxed);
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Lower-case hex.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use super::*;
    use std::os::unix::net::UnixStream;

    /// Takes its first bytes late.
    struct Pausing {
        pause: Duration,
        bytes: u64,
    }

    impl Upload for Pausing {
        fn write(&mut self, data: &[u8]) -> Result<(), Failure> {
            if self.bytes == 0 {
                std::thread::park_timeout(self.pause);
            }
            self.bytes += data.len() as u64;
            Ok(())
        }

        fn close(&mut self) -> Result<(), Failure> {
            Ok(())
        }

        fn read_back(&self) -> Result<Box<dyn Read + Send>, Failure> {
            Err(Failure::store("NotReadBack", "nothing is kept"))
        }

        fn publish(&mut self) -> Result<bool, Failure> {
            Ok(true)
        }
    }

    /// As a server does with net_write_timeout: it gives up when nothing is taken for two seconds.
    #[test]
    fn p3_a_store_that_pauses_costs_no_dump() {
        let (mut server, client) = UnixStream::pair().unwrap();
        server
            .set_write_timeout(Some(Duration::from_secs(2)))
            .unwrap();
        let sent = std::thread::spawn(move || {
            let chunk = vec![b'x'; 64 * 1024];
            for _ in 0..400 {
                server.write_all(&chunk)?;
            }
            io::Result::Ok(400 * 64 * 1024)
        });
        let mut upload = Pausing {
            pause: Duration::from_secs(5),
            bytes: 0,
        };
        let counters = Counters::default();
        let none = Compression {
            type_: crds::mysql_backup::CompressionType::None,
            ..Compression::default()
        };
        let patience = Duration::from_millis(500);
        let streamed = run_with(client, none, &[], &mut upload, &counters, &|| {}, patience);
        let sent: u64 = sent.join().unwrap().expect("the server gave up");
        let (raw, stored) = streamed.unwrap();
        assert_eq!((raw.bytes, stored.bytes, upload.bytes), (sent, sent, sent));
        assert!(counters.store_wait.get() >= Duration::from_secs(5));
    }
}
