//! The dump as one bounded stream on two threads: one reads, counts, hashes and looks at the
//! text; the other compresses, encrypts, hashes and stores. Chunks go round between them, so
//! that memory is the chunks' and a slow store holds the client back.

use crds::report::Reason;
use std::io::{self, Read, Write};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use crds::parts::Compression;
use crds::plan::{Codec, Compress};
use sha2::{Digest, Sha256};

use crate::failure::Failure;
use crate::report::Counters;
use crate::stream::checksum::{Stored, hex};
use crate::stream::codec::{Encoder, Encryption, codec_of};

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

/// Stores the next bytes.
pub type Storing<'a> = &'a mut dyn FnMut(&[u8]) -> Result<(), Failure>;

/// Looks at the bytes as they come in.
pub trait Observer: Send {
    /// What it saw.
    type Seen: Send;

    /// The next bytes.
    fn feed(&mut self, chunk: &[u8]);

    /// The end.
    fn finish(self) -> Self::Seen;
}

/// What came in.
#[derive(Debug)]
pub struct Raw<S> {
    /// Bytes.
    pub bytes: u64,
    /// SHA-256, hex.
    pub sha256: String,
    /// What its observer saw.
    pub seen: S,
}

/// Streams `input` past `observer` to `write`, which stores the next bytes. `abort` is called when
/// that fails, so that a silent client does not hold the reading thread.
///
/// # Errors
/// The store's failure, or else that of reading the client.
pub fn run<O: Observer>(
    input: impl Read + Send,
    observer: O,
    compression: Compression,
    recipients: &[String],
    write: Storing<'_>,
    counters: &Counters,
    abort: &dyn Fn(),
) -> Result<(Raw<O::Seen>, Stored), Failure> {
    run_with(
        (input, observer),
        compression,
        recipients,
        write,
        counters,
        abort,
        PATIENCE,
    )
}

fn run_with<O: Observer>(
    (input, observer): (impl Read + Send, O),
    compression: Compression,
    recipients: &[String],
    write: Storing<'_>,
    counters: &Counters,
    abort: &dyn Fn(),
    patience: Duration,
) -> Result<(Raw<O::Seen>, Stored), Failure> {
    let (full, chunks) = sync_channel(CHUNKS + MOST);
    let (empty, spare) = sync_channel(CHUNKS);
    for _ in 0..CHUNKS {
        let _ = empty.send(Vec::with_capacity(CHUNK));
    }
    std::thread::scope(|scope| {
        let reader =
            scope.spawn(move || read((input, observer), &full, &spare, counters, patience));
        let stored = store(chunks, empty, compression, recipients, write, counters);
        if stored.is_err() {
            abort();
        }
        let raw = reader
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the reading thread panicked")));
        let stored = stored?;
        let raw = raw.map_err(|e| {
            Failure::new(
                Reason::ConnectionLost,
                format!("reading the client's output failed: {e}"),
            )
        })?;
        Ok((raw, stored))
    })
}

fn read<O: Observer>(
    (mut input, mut observer): (impl Read, O),
    full: &SyncSender<Vec<u8>>,
    spare: &Receiver<Vec<u8>>,
    counters: &Counters,
    patience: Duration,
) -> io::Result<Raw<O::Seen>> {
    let mut hash = Sha256::new();
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
        observer.feed(&chunk);
        bytes += n as u64;
        counters.raw.store(bytes, Ordering::Relaxed);
        if full.send(chunk).is_err() {
            break;
        }
    }
    Ok(Raw {
        bytes,
        sha256: hex(&hash.finalize()),
        seen: observer.finish(),
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
    write: Storing<'_>,
    counters: &Counters,
) -> Result<Stored, Failure> {
    let sink = Sink::new(write, counters);
    let encode = || -> io::Result<Stored> {
        let mut encoder = Encoder::new(sink, codec_of(compression), &Encryption::to(recipients))?;
        for chunk in chunks {
            encoder.write_all(&chunk)?;
            // Those made while it paused are too many: they go.
            let _ = empty.try_send(chunk);
        }
        Ok(encoder.finish()?.stored())
    };
    encode().map_err(encoding)
}

/// The store's own failure, or that of compressing and encrypting.
pub fn encoding(e: io::Error) -> Failure {
    e.downcast::<Failure>().unwrap_or_else(|e| {
        Failure::new(
            Reason::EncodingFailed,
            format!("compressing or encrypting failed: {e}"),
        )
    })
}

/// The way to the store of what is compressed already: it is encrypted, hashed and counted.
pub struct Output<'a>(Encoder<Sink<'a>>);

impl<'a> Output<'a> {
    /// To these age recipients, if there are any.
    ///
    /// # Errors
    /// A recipient is none, or the store fails: see [`encoding`].
    pub fn new(
        recipients: &[String],
        write: Storing<'a>,
        counters: &'a Counters,
    ) -> io::Result<Self> {
        let none = Compress {
            codec: Codec::Tar,
            level: None,
        };
        let sink = Sink::new(write, counters);
        Encoder::new(sink, none, &Encryption::to(recipients)).map(Self)
    }

    /// Writes what is left.
    ///
    /// # Errors
    /// As [`Output::new`].
    pub fn finish(self) -> io::Result<Stored> {
        Ok(self.0.finish()?.stored())
    }
}

impl Write for Output<'_> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.0.write(data)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

struct Sink<'a> {
    write: Storing<'a>,
    hash: Sha256,
    bytes: u64,
    counters: &'a Counters,
}

impl<'a> Sink<'a> {
    fn new(write: Storing<'a>, counters: &'a Counters) -> Self {
        Self {
            write,
            hash: Sha256::new(),
            bytes: 0,
            counters,
        }
    }

    fn stored(self) -> Stored {
        Stored {
            bytes: self.bytes,
            sha256: hex(&self.hash.finalize()),
        }
    }
}

impl Write for Sink<'_> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let begun = Instant::now();
        let written = (self.write)(data);
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use super::*;
    use std::os::unix::net::UnixStream;

    /// Counts nothing.
    struct Blind;

    impl Observer for Blind {
        type Seen = ();

        fn feed(&mut self, _chunk: &[u8]) {}

        fn finish(self) {}
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
        // It takes its first bytes late.
        let mut taken = 0;
        let mut pausing = |data: &[u8]| {
            if taken == 0 {
                std::thread::park_timeout(Duration::from_secs(5));
            }
            taken += data.len() as u64;
            Ok(())
        };
        let counters = Counters::default();
        let none = Compression {
            type_: crds::parts::CompressionType::None,
            ..Compression::default()
        };
        let patience = Duration::from_millis(500);
        let (input, write) = ((client, Blind), &mut pausing);
        let streamed = run_with(input, none, &[], write, &counters, &|| {}, patience);
        let sent: u64 = sent.join().unwrap().expect("the server gave up");
        let (raw, stored) = streamed.unwrap();
        assert_eq!((raw.bytes, stored.bytes, taken), (sent, sent, sent));
        assert!(counters.store_wait.get() >= Duration::from_secs(5));
    }
}
