//! A client whose server sends nothing any more: it is ended after a while, so that the run fails with
//! words in place of waiting without end.

use crds::report::Reason;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::clock::duration;
use crate::failure::Failure;

/// A client may be silent for so long where the user does not say otherwise (IDLE_TIMEOUT).
pub const IDLE: Duration = Duration::from_secs(5 * 60);
/// It has so long between SIGTERM and SIGKILL.
const TERM_TO_KILL: Duration = Duration::from_secs(5);
/// The guard looks so often, at least four times within the limit.
const LOOK: Duration = Duration::from_millis(500);

/// Looks every so often, until it is dropped, how long a mark has stood still.
struct Watch {
    done: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// `mark` changes with each progress; `None` while nothing is waited for. `look` gets how long it has stood still, and ends
    /// the watch with false.
    fn start(
        every: Duration,
        mark: impl Fn() -> Option<u64> + Send + 'static,
        mut look: impl FnMut(Duration) -> bool + Send + 'static,
    ) -> Self {
        let done = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&done);
        let thread = std::thread::spawn(move || {
            let (mut last, mut since) = (None, Instant::now());
            loop {
                std::thread::park_timeout(every);
                if ended.load(Ordering::Acquire) {
                    return;
                }
                let now = mark();
                if now.is_none() || now != last {
                    (last, since) = (now, Instant::now());
                }
                if !look(since.elapsed()) {
                    return;
                }
            }
        });
        Self {
            done,
            thread: Some(thread),
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

/// Ends a process group that makes no progress.
pub struct Guard {
    limit: Option<Duration>,
    stalled: Arc<AtomicBool>,
    _watch: Option<Watch>,
}

impl Guard {
    /// Watches until it is dropped. `mark` changes with each progress; `None` while nothing is waited
    /// for.
    pub fn start(
        limit: Option<Duration>,
        group: Option<Pid>,
        mark: impl Fn() -> Option<u64> + Send + 'static,
    ) -> Self {
        let stalled = Arc::new(AtomicBool::new(false));
        let watch = limit.zip(group).map(|(limit, group)| {
            let stalled = Arc::clone(&stalled);
            let mut ended: Option<Instant> = None;
            Watch::start(LOOK.min(limit / 4), mark, move |still| {
                match ended {
                    Some(at) if at.elapsed() >= TERM_TO_KILL => {
                        let _ = kill_process_group(group, Signal::KILL);
                        return false;
                    }
                    None if still >= limit => {
                        stalled.store(true, Ordering::Release);
                        let _ = kill_process_group(group, Signal::TERM);
                        ended = Some(Instant::now());
                    }
                    _ => {}
                }
                true
            })
        });
        Self {
            limit,
            stalled,
            _watch: watch,
        }
    }

    /// The limit, if it ended the group.
    pub fn stalled(&self) -> Stalled {
        Stalled {
            flag: Arc::clone(&self.stalled),
            limit: self.limit,
        }
    }
}

/// Whether a guard ended its group, to be asked when the group is gone.
#[derive(Clone, Debug, Default)]
pub struct Stalled {
    flag: Arc<AtomicBool>,
    limit: Option<Duration>,
}

impl Stalled {
    /// The limit that ran out, if one did.
    pub fn limit(&self) -> Option<Duration> {
        self.limit.filter(|_| self.flag.load(Ordering::Acquire))
    }
}

/// Reads what a client sends; while a read waits, its guard counts.
pub struct Watched<R> {
    inner: R,
    reading: Arc<AtomicBool>,
    reads: Arc<AtomicU64>,
    guard: Guard,
}

impl<R: Read> Watched<R> {
    /// Watches the reads of `inner`, the output of this group.
    pub fn new(inner: R, limit: Option<Duration>, group: Option<Pid>) -> Self {
        let (reading, reads) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicU64::new(0)),
        );
        let (now, count) = (Arc::clone(&reading), Arc::clone(&reads));
        let guard = Guard::start(limit, group, move || {
            now.load(Ordering::Acquire)
                .then(|| count.load(Ordering::Acquire))
        });
        Self {
            inner,
            reading,
            reads,
            guard,
        }
    }

    /// Whether it waited too long.
    pub fn stalled(&self) -> Stalled {
        self.guard.stalled()
    }
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.reading.store(true, Ordering::Release);
        let read = self.inner.read(buffer);
        self.reading.store(false, Ordering::Release);
        self.reads.fetch_add(1, Ordering::AcqRel);
        read
    }
}

/// Bytes of all files below `path`, or of the file.
pub fn size(path: &Path) -> u64 {
    let mut bytes = 0;
    let mut todo: Vec<PathBuf> = vec![path.to_owned()];
    // Clients write beside the file first.
    todo.extend(
        path.extension()
            .is_none()
            .then(|| path.with_extension("part")),
    );
    while let Some(path) = todo.pop() {
        match std::fs::symlink_metadata(&path) {
            Ok(metadata) if metadata.is_dir() => {
                let entries = std::fs::read_dir(&path).into_iter().flatten().flatten();
                todo.extend(entries.map(|e| e.path()));
            }
            Ok(metadata) => bytes += metadata.len(),
            Err(_) => {}
        }
    }
    bytes
}

/// What is said of a client that a guard ended.
pub fn explain(client: &str, place: &str, limit: Duration) -> Failure {
    Failure::new(
        Reason::SourceStalled,
        format!(
            "the database at {place} sent nothing for {}: look there for locks, a full disk and a server that hangs, and at the network in between; if it needs longer, set IDLE_TIMEOUT (a Go duration, 0 for no limit); {client} was ended",
            duration(limit)
        ),
    )
}

/// Says of a database that is silent, before it is given up, once of each silence.
pub struct Silence {
    _watch: Watch,
}

/// A silence of so long is said, or of half the time after which it ends.
const SAID: Duration = Duration::from_secs(60);

impl Silence {
    /// Watches until it is dropped. `limit` is the time after which a silence ends; `say` gets how long one has lasted.
    pub fn watch(
        pulse: wire::Pulse,
        limit: Option<Duration>,
        say: impl Fn(Duration) + Send + 'static,
    ) -> Self {
        let after = limit.map_or(SAID, |limit| SAID.min(limit / 2));
        let mut said = false;
        let look = move |still: Duration| {
            if still >= after && !said {
                say(still);
            }
            said = still >= after;
            true
        };
        Self {
            _watch: Watch::start(LOOK.min(after / 4), move || pulse.waiting(), look),
        }
    }
}

/// The longest time one thing took, in milliseconds.
#[derive(Debug, Default)]
pub struct Longest(Mutex<Duration>);

impl Longest {
    /// Adds one.
    pub fn note(&self, took: Duration) {
        let mut longest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *longest = took.max(*longest);
    }

    /// The longest so far.
    pub fn get(&self) -> Duration {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use super::*;
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command, Stdio};

    fn child(script: &str) -> (Child, Pid) {
        let child = Command::new("sh")
            .args(["-c", script])
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let group = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        (child, group)
    }

    #[test]
    fn p4_a_client_that_says_nothing_is_ended_and_one_that_does_is_not() {
        let limit = Some(Duration::from_millis(400));
        for (script, silent) in [
            ("echo a; exec sleep 60", true),
            ("trap '' TERM; echo a; while :; do sleep 0.1; done", true),
            (
                "for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.1; done",
                false,
            ),
        ] {
            let (mut child, group) = child(script);
            let mut output = Watched::new(child.stdout.take().unwrap(), limit, Some(group));
            let stalled = output.stalled();
            let mut text = vec![];
            output.read_to_end(&mut text).unwrap();
            drop(output);
            let status = child.wait().unwrap();
            assert_eq!(stalled.limit(), limit.filter(|_| silent), "{script}");
            assert_eq!(status.success(), !silent, "{script}");
        }
    }

    /// A store that takes its time is no fault of the database.
    #[test]
    fn p4_what_is_not_waited_for_does_not_stall() {
        let (mut child, group) = child("echo a; sleep 0.2; echo b");
        let limit = Some(Duration::from_millis(400));
        let mut output = Watched::new(child.stdout.take().unwrap(), limit, Some(group));
        let mut byte = [0];
        output.read_exact(&mut byte).unwrap();
        // The pipe holds the rest; nobody reads it.
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(1) {
            std::thread::park_timeout(Duration::from_millis(100));
        }
        let mut rest = vec![];
        output.read_to_end(&mut rest).unwrap();
        assert_eq!(
            (rest.as_slice(), output.stalled().limit()),
            (&b"\nb\n"[..], None)
        );
        drop(output);
        child.wait().unwrap();
    }
}
