//! What the run says of itself: the termination message, rewritten at each phase; progress lines;
//! the full report as the last line of the log.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crds::report::{Endpoint, EndpointKind, MAX_PHASES, Reason, Report};
use crds::run::TimedPhase;

use crate::clock::Clock;
use crate::failure::Failure;
use crate::scrub::Scrub;
use crate::stall::Longest;

/// A progress line at least every so often.
const EVERY: Duration = Duration::from_secs(10);

/// Of parts of a phase, a progress line at most every so often.
const OFTEN: Duration = Duration::from_secs(1);

/// Bytes that went by, for progress.
#[derive(Debug, Default)]
pub struct Counters {
    /// Bytes of the dump.
    pub raw: AtomicU64,
    /// Rows that are loaded.
    pub rows: AtomicU64,
    /// Bytes stored.
    pub stored: AtomicU64,
    /// The longest that the store took for what it was given at once.
    pub store_wait: Longest,
}

/// Contents the report and writes it where it belongs.
pub struct Reporter {
    report: Mutex<Report>,
    path: PathBuf,
    scrub: Scrub,
    /// Kind of the object.
    kind: String,
    clock: Clock,
    /// Bytes that went by.
    pub counters: Counters,
    estimate: AtomicU64,
    complete: AtomicBool,
    /// What a run that ends now leaves behind.
    left: Mutex<Option<String>>,
    measured: Mutex<Measured>,
}

/// The phases of a restore.
#[derive(Debug, Default)]
struct Measured {
    /// They are measured.
    on: bool,
    /// What is done now, within the phase that the report has; and since when, at how many bytes.
    now: Option<(String, Instant, u64)>,
    /// The table that is worked on.
    table: String,
    /// When it was last said how far all is.
    told: Option<Instant>,
}

impl Reporter {
    /// A report in phase Starting, written at once.
    pub fn new(run: &str, path: PathBuf, scrub: Scrub, clock: Clock) -> Self {
        let mut report = Report::new(run);
        report.started_at = crds::time::rfc3339(clock.started);
        let reporter = Self {
            report: Mutex::new(report),
            path,
            scrub,
            kind: String::new(),
            clock,
            counters: Counters::default(),
            estimate: AtomicU64::new(0),
            complete: AtomicBool::new(false),
            left: Mutex::new(None),
            measured: Mutex::default(),
        };
        reporter.update(|_| {});
        reporter
    }

    /// Names the fields of this kind in all it says.
    #[must_use]
    pub fn for_kind(mut self, kind: &str) -> Self {
        kind.clone_into(&mut self.kind);
        self
    }

    /// Words as they may leave: without secrets, with the fields of the object's kind.
    pub fn words(&self, text: &str) -> String {
        crate::fields::named(&self.kind, &self.scrub.clean(text))
    }

    /// Enters a phase.
    pub fn phase(&self, phase: &str) {
        tracing::info!(event = "phase", phase);
        let over = self.begins(Some(phase));
        self.update(|r| {
            phase.clone_into(&mut r.phase);
            add(&mut r.phases, over);
        });
    }

    /// From now on the report has how long each phase took.
    pub fn measure(&self) {
        self.measured().on = true;
    }

    /// Enters a part of a phase, and says in the log how far all is.
    pub fn step(&self, step: &str) {
        let over = self.begins(Some(step));
        self.update(|r| add(&mut r.phases, over));
        let told = self.measured().told;
        if told.is_none_or(|at| at.elapsed() >= OFTEN) {
            self.progress(0.0, 0);
        }
    }

    /// Work on this table has begun.
    pub fn table(&self, table: &str) {
        let mut measured = self.measured();
        if measured.table != table {
            table.clone_into(&mut measured.table);
        }
    }

    fn measured(&self) -> std::sync::MutexGuard<'_, Measured> {
        self.measured.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends what is measured and begins the next; gives what is over.
    fn begins(&self, next: Option<&str>) -> Option<TimedPhase> {
        let mut measured = self.measured();
        if !measured.on {
            return None;
        }
        let raw = self.counters.raw.load(Ordering::Relaxed);
        let next = next.map(|name| (name.to_owned(), Instant::now(), raw));
        measured.table.clear();
        let (phase, since, _) = std::mem::replace(&mut measured.now, next)?;
        let milliseconds = i64::try_from(since.elapsed().as_millis()).unwrap_or(i64::MAX);
        Some(TimedPhase {
            phase,
            milliseconds,
        })
    }

    /// Changes the report and writes it.
    pub fn update(&self, change: impl FnOnce(&mut Report)) {
        let text = {
            let mut report = self.lock();
            change(&mut report);
            self.scrubbed(&mut report);
            report.to_termination_message()
        };
        // Not every place has one; the log holds the same.
        let _ = write(&self.path, &text);
    }

    /// Adds a warning, to the log too.
    pub fn warn(&self, warning: &str) {
        let text = self.words(warning);
        tracing::warn!("{text}");
        self.update(|r| {
            if !r.warnings.contains(&text) {
                r.warnings.push(text);
            }
        });
    }

    /// Notes that a Database or Storage was used, or why it could not be. The last word on it counts.
    pub fn endpoint(&self, kind: EndpointKind, name: &str, outcome: Result<(), &Failure>) {
        let (reason, message) = match outcome {
            Ok(()) => (String::new(), String::new()),
            Err(e) => (e.reason.as_str().to_owned(), self.scrub.clean(&e.message)),
        };
        let endpoint = Endpoint {
            kind,
            name: name.to_owned(),
            reached: outcome.is_ok(),
            reason,
            message,
        };
        self.update(|r| {
            r.endpoints.retain(|e| e.kind != kind || e.name != name);
            r.endpoints.push(endpoint);
        });
    }

    /// All that the run is to store is stored and vouched for: whatever comes, the run is good.
    pub fn complete(&self) {
        self.complete.store(true, Ordering::Release);
    }

    /// True once [`Reporter::complete`] was called.
    pub fn is_complete(&self) -> bool {
        self.complete.load(Ordering::Acquire)
    }

    /// From now on a run that is ended early leaves this behind, in words.
    pub fn leaves(&self, what: &str) {
        *self.left.lock().unwrap_or_else(PoisonError::into_inner) = Some(what.to_owned());
    }

    /// What a run that ends now leaves behind, where it is something.
    pub fn left(&self) -> Option<String> {
        self.left
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Sets how many bytes the dump will have, as far as the server can tell.
    pub fn expect(&self, bytes: u64) {
        self.estimate.store(bytes, Ordering::Relaxed);
    }

    /// The outcome, before anybody is told.
    pub fn outcome(&self, outcome: &Result<(), Failure>) {
        let ended = crds::time::rfc3339(self.clock.now());
        let over = self.begins(None);
        self.update(|r| {
            add(&mut r.phases, over);
            r.ended_at = ended;
            r.good = Some(outcome.is_ok());
            match outcome {
                Ok(()) => {
                    r.exit_code = Some(crds::report::exit::OK);
                    if r.reason.is_empty() {
                        Reason::Completed.as_str().clone_into(&mut r.reason);
                    }
                }
                Err(failure) => {
                    r.exit_code = Some(failure.exit_code);
                    failure.reason.as_str().clone_into(&mut r.reason);
                    r.message = self.scrub.clean(&failure.message);
                }
            }
        });
    }

    /// Whoever wrote them: words leave without secrets.
    fn scrubbed(&self, report: &mut Report) {
        let words = [
            &mut report.message,
            &mut report.server,
            &mut report.position,
            &mut report.engine_reason,
        ];
        let endpoints = report.endpoints.iter_mut().map(|e| &mut e.message);
        let verification = report.verification.iter_mut().map(|v| &mut v.message);
        let all = words.into_iter().chain(&mut report.warnings);
        for text in all.chain(endpoints).chain(verification) {
            *text = self.words(text);
        }
    }

    /// A copy.
    pub fn snapshot(&self) -> Report {
        self.lock().clone()
    }

    /// Phase Done, and the whole report as the last line of the log.
    pub fn close(&self) {
        self.update(|r| "Done".clone_into(&mut r.phase));
        let text = serde_json::to_string(&self.snapshot()).unwrap_or_default();
        let mut out = std::io::stdout().lock();
        let _ = writeln!(out, "{text}");
        let _ = out.flush();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Report> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says in the log how far all is; the rate is that since there were `last_raw` bytes, so many seconds ago, or where that is
    /// none that of the whole step.
    fn progress(&self, seconds: f64, last_raw: u64) -> u64 {
        let raw = self.counters.raw.load(Ordering::Relaxed);
        let stored = self.counters.stored.load(Ordering::Relaxed);
        let rows = self.counters.rows.load(Ordering::Relaxed);
        let phase = self.lock().phase.clone();
        let (step, table, whole) = {
            let mut measured = self.measured();
            measured.told = Some(Instant::now());
            let now = measured.now.as_ref();
            let whole = now.map(|(_, since, from)| rate(since.elapsed().as_secs_f64(), *from, raw));
            let step = now.map(|(step, ..)| step.clone());
            let step = step.filter(|step| *step != phase);
            (step, measured.table.clone(), whole)
        };
        let last = (seconds > 0.0).then(|| rate(seconds, last_raw, raw));
        let estimate = self.estimate.load(Ordering::Relaxed);
        let left = estimate.saturating_sub(raw);
        let left = whole.filter(|rate| *rate > 0 && estimate > 0 && left > 0);
        let seconds_left = left.map(|rate| (estimate - raw).div_ceil(rate));
        tracing::info!(
            event = "progress",
            phase,
            step,
            table = (!table.is_empty()).then_some(table),
            rows = (rows > 0).then_some(rows),
            rawBytes = raw,
            storedBytes = stored,
            bytesPerSecond = last.or(whole).unwrap_or_default(),
            percent = percent(raw, estimate),
            secondsLeft = seconds_left,
        );
        raw
    }
}

/// Bytes a second.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rate for people"
)]
fn rate(seconds: f64, from: u64, to: u64) -> u64 {
    (to.saturating_sub(from) as f64 / seconds.max(0.001)) as u64
}

/// A phase that comes again is one.
fn add(phases: &mut Vec<TimedPhase>, over: Option<TimedPhase>) {
    let Some(over) = over else { return };
    if let Some(known) = phases.iter_mut().find(|p| p.phase == over.phase) {
        known.milliseconds = known.milliseconds.saturating_add(over.milliseconds);
    } else if phases.len() < MAX_PHASES {
        phases.push(over);
    }
}

/// At most 99 until the dump has ended: the server's numbers are estimates.
fn percent(raw: u64, estimate: u64) -> Option<u64> {
    (estimate > 0).then(|| (raw.saturating_mul(100) / estimate).min(99))
}

/// Overwrites in place: the file is a mount and can't be replaced.
fn write(path: &std::path::Path, text: &str) -> std::io::Result<()> {
    let mut file: File = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)?;
    file.write_all(text.as_bytes())?;
    file.set_len(text.len() as u64)
}

/// A thread that logs progress every ten seconds or five percent until it is dropped; `beat` is
/// called each time round.
pub struct Ticker {
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Ticker {
    /// Starts it.
    pub fn start(reporter: Arc<Reporter>, beat: impl Fn() + Send + 'static) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut line = Instant::now();
            let (mut raw, mut step) = (0, 0);
            while !seen.load(Ordering::Acquire) {
                std::thread::park_timeout(Duration::from_millis(250));
                let done = percent(
                    reporter.counters.raw.load(Ordering::Relaxed),
                    reporter.estimate.load(Ordering::Relaxed),
                );
                let now = done.map_or(0, |p| p / 5);
                if line.elapsed() < EVERY && now == step || seen.load(Ordering::Acquire) {
                    continue;
                }
                raw = reporter.progress(line.elapsed().as_secs_f64(), raw);
                (line, step) = (Instant::now(), now);
                beat();
            }
        });
        Self {
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}
