//! Restores a part of an artefact of the native engine: of the stored bytes only the ranges are read that hold it. What is read is
//! compared by what stands in it: the chunks of age, the checksums of its frames, and rows and sum of each table. Where a store
//! gives no parts, or nothing in the stored bytes tells that they are unaltered, all is read and compared first.

mod names;
mod others;
mod ranges;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crds::parts::{CompressionType, Engine};
use crds::report::Reason;
use dump::{Frame, Frames, Section};
use load::{Sequential, Source};

use crate::context::Context;
use crate::database::contents::Table;
use crate::database::mysql::sql::{Definers, Found, Rewrite, Script, Selection};
use crate::database::mysql::target::frames::Framed;
use crate::database::mysql::target::{Plan, Target};
use crate::failure::Failure;
use crate::mysql_backup::artefacts;
use crate::mysql_backup::manifest::Manifest;
use crate::mysql_backup::replay::{Part, Replay};
use crate::mysql_backup::restore::look::Measured;
use crate::mysql_backup::restore::{go_on, names_of, whose};
use crate::mysql_backup::stored::StoredDumps;
use crate::settings::Source as Settings;
use crate::settings::options::Restore;

pub(super) use names::Chosen;
use names::shown;
use ranges::{KeptSource, Ranges, Seeking};

/// What was asked for of an artefact; `None` if that is all of it.
///
/// # Errors
/// The artefact does not have it.
pub(super) fn chosen(asked: &Restore, manifest: &Manifest) -> Result<Option<Chosen>, Failure> {
    names::choose(asked, manifest)
}

/// An artefact that is open, of which a part is read.
struct Opened<'a> {
    context: &'a Context,
    place: &'a StoredDumps<'a>,
    manifest: &'a Manifest,
    frames: &'a Frames,
    source: KeptSource<Box<dyn Source>>,
    /// Bytes of the stored object that were read.
    read: Arc<AtomicU64>,
    /// Bytes of it that are read in all.
    planned: u64,
    /// Why it is read whole.
    whole: Option<String>,
}

/// Restores what was chosen.
///
/// # Errors
/// The artefact can't be read in parts, is altered, or does not have it; what was chosen needs what is not there; the target is not
/// free, or the server refuses.
pub(super) fn run(
    context: &Context,
    place: &StoredDumps<'_>,
    manifest: &Manifest,
    (options, definers): (&Restore, Definers),
    (chosen, to): (&Chosen, &Settings),
    replay: Option<&mut Replay>,
) -> Result<(), Failure> {
    let frames = framed(manifest)?;
    let databases = chosen.databases(manifest);
    let names = names_of(manifest, &databases, options.database.as_deref())?;
    let rename = match (&databases[..], &options.database) {
        ([from], Some(to)) if from != to => Some((from.clone(), to.clone())),
        _ => None,
    };
    let mut selection = chosen.selection.clone();
    let mut opened = Opened::new(context, place, manifest, &frames, &selection)?;
    let mut wish = Rewrite {
        rename,
        definers,
        only: Some(Arc::new(selection.clone())),
    };
    let first = opened.look(&wish, None)?;
    chosen.resolve(manifest, &first)?;
    let target = Target::connect(context, to)?;
    let mut plan = Plan {
        what: manifest.key.clone(),
        found: first,
        wish: wish.clone(),
        names,
        bare: false,
        server: &manifest.server_identity,
        arguments: manifest.arguments.clone(),
        native: true,
        without: vec![],
        sha256: &manifest.raw_sha256,
        shape: Err("a part is loaded by its frames"),
        verify: options.verify,
    };
    if replay.is_some() {
        others::of_replay(&plan, manifest)?;
    }
    let needs = others::check(&target, &plan, manifest, options.without_foreign_keys)?;
    for warning in &needs.warnings {
        context.reporter.warn(warning);
    }
    selection.foreign_keys.extend(needs.left_out);
    wish.only = Some(Arc::new(selection.clone()));
    // Once it is known which table a trigger is of, nothing of the others is counted.
    plan.found = opened.look(&wish, Some(&plan.found))?;
    plan.wish = wish;
    if !options.overwrite && options.dry_run {
        target.free(&plan)?;
    }
    target.ready(&plan)?;
    target.ready_for_part(&plan)?;
    let part = Part {
        selection: selection.clone(),
        rest: options.tables.is_empty() && options.databases.is_empty(),
        known: manifest.databases.clone(),
    };
    let replay = match replay {
        Some(replay) => {
            let decoder = target.ready_to_replay(replay.logs)?;
            let left = replay.of_part(context, place, part)?;
            context.reporter.warn(&left);
            Some((&*replay, decoder))
        }
        None => None,
    };
    let then = replay
        .as_ref()
        .map(|(r, _)| format!("; then {}", r.words()));
    let then = then.unwrap_or_default();
    let tables: Vec<Table> = manifest
        .tables
        .iter()
        .filter(|t| selection.takes(&(t.database.clone(), t.name.clone())))
        .cloned()
        .collect();
    let what = opened.what(&plan, &tables, chosen.leaves(manifest), &target);
    let number = |n: u64| Some(i64::try_from(n).unwrap_or(i64::MAX));
    context.reporter.update(|r| {
        r.tables = number(tables.len() as u64);
        r.rows = number(tables.iter().map(|t| t.rows).sum());
        r.raw_bytes = number(opened.raw(&selection));
        r.read_bytes = number(opened.planned);
    });
    if options.dry_run {
        context.reporter.update(|r| {
            Reason::WouldRestore.as_str().clone_into(&mut r.reason);
            r.message = format!("would restore {what}{then}");
        });
        return Ok(());
    }
    context.reporter.phase("Restoring");
    context.reporter.expect(opened.raw(&selection));
    let loaded = opened.load(&target, &plan, &selection, &tables, options.overwrite);
    let read = opened.read.load(Ordering::Relaxed);
    context.reporter.update(|r| r.read_bytes = number(read));
    let how = loaded?;
    if let Some((replay, decoder)) = &replay {
        let filled: Vec<String> = tables
            .iter()
            .map(|t| shown(&(t.database.clone(), t.name.clone())))
            .collect();
        let names = match filled.len() {
            0..=20 => filled,
            _ => plan.names.clone(),
        };
        go_on(context, place, (&target, decoder), replay, &names)?;
    }
    let what = what.replacen(
        &format!(" {} of", opened.planned),
        &format!(" {read} of"),
        1,
    );
    context.reporter.update(|r| {
        Reason::Restored.as_str().clone_into(&mut r.reason);
        r.message = format!("restored {what}{how}{then}");
    });
    Ok(())
}

/// The frames of an artefact that can be read in parts.
fn framed(manifest: &Manifest) -> Result<Frames, Failure> {
    match manifest.frames()? {
        Some(frames) if manifest.engine == Some(Engine::Native) => Ok(frames),
        _ => Err(Failure::new(
            Reason::NotInParts,
            format!(
                "{} can't be restored in parts: it was made by the dump client, whose text can only be read whole. Restore it whole into another server, or as another database (--database) if it holds one, and copy the table from there; dumps of the native engine (spec.source.engine) have their parts; nothing was changed",
                manifest.key
            ),
        )),
    }
}

impl<'a> Opened<'a> {
    /// Opens it by ranges, or reads and compares all of it where that can't be.
    fn new(
        context: &'a Context,
        place: &'a StoredDumps<'a>,
        manifest: &'a Manifest,
        frames: &'a Frames,
        selection: &Selection,
    ) -> Result<Self, Failure> {
        let read = Arc::new(AtomicU64::new(0));
        let wanted: Vec<Range<u64>> =
            dump::ranges(frames.iter().filter(|frame| selection.wants(frame)));
        let mut opened = Self {
            context,
            place,
            manifest,
            frames,
            source: KeptSource::new(Box::new(Sequential::new(std::io::empty()))),
            read,
            planned: 0,
            whole: None,
        };
        let why = if manifest.compression == CompressionType::None && manifest.encryption.is_empty()
        {
            "is neither compressed nor encrypted, so that no part of it tells whether it is unaltered"
        } else {
            let part = 0..manifest.stored_bytes.min(1);
            let there = place.store.open_part(&manifest.key, part)?;
            if there.is_some() {
                opened.by_ranges(wanted)?;
                return Ok(opened);
            }
            "is in a store that gives no parts"
        };
        opened.whole = Some(format!("{} {why}", manifest.key));
        // Each of two readings.
        opened.planned = manifest.stored_bytes.saturating_mul(2);
        let stored = opened.counted()?;
        let dump = artefacts::decrypted(context, manifest, Box::new(stored.clone()))?;
        opened.source = KeptSource::new(Box::new(Sequential::new(dump)));
        let kept = opened.keep(selection);
        stored.compare(manifest)?;
        kept?;
        Ok(opened)
    }

    fn by_ranges(&mut self, wanted: Vec<Range<u64>>) -> Result<(), Failure> {
        let (manifest, length) = (self.manifest, self.manifest.stored_bytes);
        let store = Arc::clone(&self.place.store);
        let stored = Ranges::new(store, &manifest.key, length, Arc::clone(&self.read));
        let Some(mut plain) = artefacts::seekable(self.context, manifest, stored.clone())? else {
            self.planned = ranges::bytes(&wanted);
            stored.plan(wanted);
            self.source = KeptSource::new(Box::new(Seeking(stored)));
            return Ok(());
        };
        let header = stored.at();
        let planned = ranges::encrypted(&wanted, header, length);
        self.planned = ranges::bytes(&planned).saturating_add(header);
        stored.plan(planned);
        // The last chunk tells that nothing is missing.
        let end = std::io::Seek::seek(&mut plain, std::io::SeekFrom::End(0));
        if end.map_err(|e| self.damaged(e))? < self.frames.stored() {
            return Err(Failure::new(
                Reason::Damaged,
                format!("{} is shorter than its manifest says", manifest.key),
            ));
        }
        self.source = KeptSource::new(Box::new(Seeking(plain)));
        Ok(())
    }

    /// All stored bytes, counted.
    fn counted(&self) -> Result<Measured, Failure> {
        let stored = artefacts::stored(self.place.store.as_ref(), self.manifest)?;
        Ok(Measured::counted(stored, Arc::clone(&self.read)))
    }

    /// Reads what is wanted of what is no rows, and keeps it.
    fn keep(&mut self, selection: &Selection) -> Result<(), Failure> {
        let mut stored = vec![];
        for frame in definitions(self.frames, selection) {
            self.context.check()?;
            let kept = self.source.keep(frame.at, frame.stored, &mut stored);
            kept.map_err(|e| self.damaged(e))?;
        }
        Ok(())
    }

    /// Reads what is wanted of what is no rows: what it would do.
    fn look(&mut self, wish: &Rewrite, known: Option<&Found>) -> Result<Found, Failure> {
        let mut script = match known {
            Some(found) => Script::knowing(wish.clone(), found),
            None => Script::new(wish.clone()),
        };
        let all = Selection::default();
        let selection = wish.only.as_deref().unwrap_or(&all);
        self.keep(selection)?;
        let compress = self.manifest.compress();
        let mut out = vec![];
        for frame in definitions(self.frames, selection) {
            self.context.check()?;
            let text = load::text_of_frame(&mut self.source, &frame, compress);
            script.feed(&text.map_err(|e| self.damaged(e))?, &mut out);
            out.clear();
        }
        script.finish(&mut out);
        let key = &self.manifest.key;
        script
            .found()
            .map_err(|what| Failure::new(Reason::Damaged, format!("{key} holds {what}")))
    }

    fn damaged(&self, e: std::io::Error) -> Failure {
        e.downcast::<Failure>().unwrap_or_else(|e| {
            let key = &self.manifest.key;
            Failure::new(
                Reason::Damaged,
                format!("what is read of {key} is not what was stored: {e}; take another artefact, and check the store's health"),
            )
        })
    }

    /// Bytes of text that are loaded.
    fn raw(&self, selection: &Selection) -> u64 {
        let wanted = self.frames.iter().filter(|f| selection.wants(f));
        wanted.map(|f| f.raw).sum()
    }

    /// What is restored, in words.
    fn what(&self, plan: &Plan<'_>, tables: &[Table], leaves: bool, target: &Target<'_>) -> String {
        let manifest = self.manifest;
        let named: Vec<String> = tables
            .iter()
            .take(5)
            .map(|t| shown(&(t.database.clone(), t.name.clone())))
            .collect();
        let more = match tables.len().saturating_sub(named.len()) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let rows: u64 = tables.iter().map(|t| t.rows).sum();
        let left = if leaves {
            "; views, routines and events are left out, as they come with whole databases"
        } else {
            ""
        };
        let whole = self.whole.as_ref().map(|why| format!(" ({why})"));
        format!(
            "{} of {} tables ({}{more}) with {rows} rows of {} into {} at {}, reading {} of {} bytes{}{left}",
            tables.len(),
            manifest.tables.len(),
            named.join(", "),
            manifest.key,
            plan.names.join(", "),
            target.place(),
            self.planned,
            manifest.stored_bytes,
            whole.unwrap_or_default(),
        )
    }

    /// Loads it; gives how, in words.
    fn load(
        &mut self,
        target: &Target<'_>,
        plan: &Plan<'_>,
        selection: &Selection,
        tables: &[Table],
        overwrite: bool,
    ) -> Result<String, Failure> {
        let stored = match self.whole {
            None => None,
            Some(_) => {
                let stored = self.counted()?;
                let dump =
                    artefacts::decrypted(self.context, self.manifest, Box::new(stored.clone()))?;
                let empty = KeptSource::new(Box::new(Sequential::new(std::io::empty())) as Box<_>);
                let kept = std::mem::replace(&mut self.source, empty);
                self.source = kept.over(Box::new(Sequential::new(dump)));
                Some(stored)
            }
        };
        let compress = self.manifest.compress();
        let framed = Framed {
            frames: self.frames,
            compress,
            wanted: &|frame| selection.wants(frame),
            source: &mut self.source,
            accounts: false,
            tables,
            whose: whose(self.context, self.manifest),
            overwrite,
        };
        let went_on = target.load_frames(plan, framed)?;
        if let Some(stored) = stored {
            stored.compare(self.manifest)?;
        }
        Ok(went_on)
    }
}

/// The frames of what is wanted and is no rows, in the order of the file.
fn definitions<'f>(frames: &'f Frames, selection: &Selection) -> impl Iterator<Item = Frame<'f>> {
    frames
        .iter()
        .filter(move |frame| frame.section != Section::Data && selection.wants(frame))
}
