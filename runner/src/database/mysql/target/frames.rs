//! Loads an artefact of the native engine by its frames: several sessions of our own, keys afterwards, and on from where an
//! earlier attempt of the same restore was cut.

use std::collections::HashMap;
use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crds::report::{Reason, exit};
use dump::{Compress, Frame, Frames};
use load::{Begun, Load, Loaded};
use wire::Connection;

use crate::context::Context;
use crate::database::contents::Table;
use crate::database::mysql::load::LoadOutput;
use crate::database::mysql::source;
use crate::database::mysql::sql::Script;
use crate::database::mysql::target::{Plan, Target, failures};
use crate::failure::Failure;
use crate::report::Ticker;

/// What loading needs on each database, whatever the dump holds.
pub(super) const RIGHTS: [&str; 5] = ["CREATE", "DROP", "ALTER", "INSERT", "SELECT"];

/// An artefact of frames.
pub(crate) struct Framed<'a> {
    /// What stands where.
    pub(crate) frames: &'a Frames,
    /// How they are compressed.
    pub(crate) compress: Compress,
    /// Which of them are loaded.
    pub(crate) wanted: &'a dyn Fn(&Frame<'_>) -> bool,
    /// Its bytes, decrypted.
    pub(crate) source: &'a mut dyn load::Source,
    /// Users, roles and grants too.
    pub(crate) accounts: bool,
    /// What of it is loaded, by its manifest.
    pub(crate) tables: &'a [Table],
    /// What tells this restore of this artefact from every other.
    pub(crate) whose: String,
    /// What the target holds may be replaced.
    pub(crate) overwrite: bool,
}

impl Target<'_> {
    /// True if the user may do what loading by sessions of our own needs.
    pub(crate) fn takes_sessions(&self, plan: &Plan<'_>) -> bool {
        let server = &self.connection.server;
        let lower = server.variable("lower_case_table_names") != "0";
        plan.names.iter().all(|name| {
            let name = if lower {
                name.to_lowercase()
            } else {
                name.clone()
            };
            let has = |right: &&str| server.grants.on_all_of(&name, &[right]);
            RIGHTS.iter().all(has)
        })
    }

    /// Loads a dump by its frames, and compares. Gives what is to be said of how it was loaded.
    ///
    /// # Errors
    /// The target is not free, the server refuses, or what is there then is not what the dump holds.
    pub(crate) fn load_frames(
        &self,
        plan: &Plan<'_>,
        framed: Framed<'_>,
    ) -> Result<String, Failure> {
        let (context, target) = (self.context, self.source);
        let settings = source::session_settings(target, context)?;
        let stop = settings.stop.clone();
        let mut patient = settings.clone();
        patient.limits.idle = None;
        let open = || Connection::open(&settings);
        let patient = || Connection::open(&patient);
        let mut change = |text: &[u8]| {
            let mut script = Script::knowing(plan.wish.clone(), &plan.found);
            let mut out = Vec::with_capacity(text.len());
            script.feed(text, &mut out);
            script.finish(&mut out);
            script.found().map(|_| out)
        };
        let rename = |name: &str| plan.name_of(name).to_owned();
        let progress = |now: &load::Progress<'_>| {
            let counters = &context.reporter.counters;
            counters.raw.store(now.raw, Ordering::Relaxed);
            told(context, now);
        };
        let (tables, overwrite) = (framed.tables, framed.overwrite);
        let load = Load {
            patient: &patient,
            frames: framed.frames,
            compress: framed.compress,
            wanted: framed.wanted,
            source: framed.source,
            change: &mut change,
            rename: &rename,
            accounts: framed.accounts,
            sessions: target.sessions(cpus()),
            whose: framed.whose,
            anew: overwrite,
            phase: &|phase| context.reporter.step(&format!("{phase:?}")),
            progress: &progress,
            patience: patience(context),
            waiting: &|what| tracing::warn!(event = "load", "the target is waited for: {what}"),
        };
        let failed = |e| match context.check() {
            Err(cause) => cause,
            Ok(()) => failures::of_load(e, target, context),
        };
        let begun = Begun::new(&open, load).map_err(failed)?;
        let goes_on = begun.goes_on();
        if !overwrite && !goes_on {
            self.free(plan)?;
        }
        context.reporter.leaves(&format!(
            "{} may be in part in {} at {}: restore again with overwrite",
            plan.what,
            plan.names.join(", "),
            self.place()
        ));
        let ticker = Ticker::start(Arc::clone(&context.reporter), || {});
        let complete = begun.load(&stop);
        drop(ticker);
        let mut complete = complete.map_err(|e| self.cut(plan, failed(e)))?;
        if let Some(why) = &complete.loaded.by_insert {
            tracing::info!(event = "load", by = "INSERT", why);
        }
        let said = match self.compared(plan, &complete.loaded, tables, &open) {
            Err(e) if goes_on_after(&e) => return Err(self.cut(plan, e)),
            said => said,
        };
        // What was compared is final, whatever came of it.
        complete.end().map_err(|e| self.cut(plan, failed(e)))?;
        let how = match goes_on {
            true => ", going on where an earlier attempt was cut",
            false => "",
        };
        Ok(format!("{how}{}", said?))
    }

    /// Compares; a server that is started again meanwhile is waited for.
    fn compared(
        &self,
        plan: &Plan<'_>,
        loaded: &Loaded,
        tables: &[Table],
        open: load::Open<'_>,
    ) -> Result<String, Failure> {
        complete(plan, loaded, tables).map_err(|e| self.incomplete(plan, e, ""))?;
        let mut tries = 0;
        loop {
            let heard = heard(plan, loaded);
            let compared = self
                .arrived(plan)
                .and_then(|()| self.unchanged(plan, &heard, tables))
                .and_then(|said| Ok(self.verified(plan, tables, None)? + &said));
            tries += 1;
            match compared {
                Err(e) if is_away(&e) && tries < TRIES && self.context.check().is_ok() => {
                    let end = Instant::now() + patience(self.context);
                    while open().is_err() {
                        self.context.check()?;
                        if Instant::now() >= end {
                            return Err(e);
                        }
                        std::thread::sleep(PAUSE);
                    }
                }
                compared => return compared,
            }
        }
    }

    /// The failure of a load that is gone on with by the pod that follows, where the target is what failed.
    fn cut(&self, plan: &Plan<'_>, e: Failure) -> Failure {
        if !goes_on_after(&e) {
            return self.incomplete(plan, e, "");
        }
        let message = format!(
            "{}; what {} holds of {} is not the whole dump: the pod that follows goes on where this one stopped; after the last, restore again with overwrite",
            e.message,
            self.place(),
            plan.names.join(", ")
        );
        Failure::at(exit::FAILED, e.reason, message)
    }
}

/// A comparison is begun so often.
const TRIES: usize = 5;
/// Between two attempts to reach the server.
const PAUSE: Duration = Duration::from_millis(500);

/// A target that is started again, or has no space, is waited for as long as it may be silent.
pub(super) fn patience(context: &Context) -> Duration {
    context.cancel.idle().unwrap_or(crate::stall::IDLE)
}

/// The server was there before, and is not now.
fn is_away(e: &Failure) -> bool {
    matches!(
        e.reason,
        Reason::ConnectionLost | Reason::ConnectionRefused | Reason::ConnectionFailed
    )
}

/// Another attempt may find what this one did not.
fn goes_on_after(e: &Failure) -> bool {
    is_away(e) || e.reason == Reason::NoSpace
}

/// Keeps how far a load is, for who asks.
pub(super) fn told(context: &Context, now: &load::Progress<'_>) {
    let rows = &context.reporter.counters.rows;
    rows.store(now.rows, Ordering::Relaxed);
    let (database, table) = now.table;
    context.reporter.table(&format!("{database}.{table}"));
}

pub(super) fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}

/// The server took as many rows of each table as the manifest has, and those rows.
pub(super) fn complete(plan: &Plan<'_>, loaded: &Loaded, tables: &[Table]) -> Result<(), Failure> {
    let mut taken: HashMap<(&str, &str), (u64, Option<u128>)> = HashMap::new();
    for table in &loaded.tables {
        let name = (table.database.as_str(), table.name.as_str());
        let of = taken.entry(name).or_insert((0, Some(0)));
        let hash = of.1.zip(table.hash).map(|(a, b)| a.wrapping_add(b));
        *of = (of.0.saturating_add(table.rows), hash);
    }
    for table in tables {
        let name = (plan.name_of(&table.database), table.name.as_str());
        let (rows, hash) = taken.get(&name).copied().unwrap_or((0, Some(0)));
        // The sums are of the form of a native dump.
        let hash = hash.filter(|_| plan.native);
        // Of a part nothing else tells.
        let other = match hash {
            Some(hash) => format!("{hash:032x}") != table.hash,
            None => plan.wish.only.is_some(),
        };
        let what = match rows == table.rows {
            false => format!("got {rows} rows, and its dump has {}", table.rows),
            true if other => format!("got {rows} rows that are not those that were dumped"),
            true => continue,
        };
        return Err(Failure::new(
            Reason::RestoreIncomplete,
            format!("table {}.{} {what}", name.0, name.1),
        ));
    }
    Ok(())
}

/// What the server said, by the number of the table in the plan.
pub(super) fn heard(plan: &Plan<'_>, loaded: &Loaded) -> LoadOutput {
    let numbers: HashMap<(&str, &str), usize> = (1..=plan.found.tables.len())
        .filter_map(|n| Some((plan.table(n)?, n)))
        .collect();
    let mut heard = LoadOutput::default();
    let tables = loaded.tables.iter().map(|table| {
        let name = (table.database.as_str(), table.name.as_str());
        (numbers.get(&name).copied(), &table.warnings)
    });
    for (number, warnings) in tables.chain([(None, &loaded.warnings)]) {
        for warning in warnings {
            let number = number.unwrap_or_default();
            let said = (warning.text.as_str(), warning.count);
            heard.warned(number, &warning.level, warning.number, said);
        }
    }
    heard
}
