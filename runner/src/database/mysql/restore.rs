//! Dumps of MySQL and MariaDB. One of a single database loads into a database of any name.

use crate::database::mysql::dump_reader::{DumpReader, Summary};
use crate::database::mysql::sql::{Found, Rewrite, Script};
use crate::database::mysql::target::{DefinersChoice, Plan, Target};
use crate::database::restore::{Job, StoredDump};
use crate::failure::Failure;
use crate::settings::Source;
use crds::report::{Reason, exit};
use load::{Shape, Survey};

/// A dump on its first way through.
struct Seen<'a> {
    dump: &'a StoredDump,
    wish: Rewrite,
    script: Script,
    reader: DumpReader,
    survey: Survey,
}

/// Restores.
///
/// # Errors
/// As the module above.
pub(crate) fn restore(job: &Job<'_>, target: &Source) -> Result<(), Failure> {
    let definers = DefinersChoice {
        choice: job.options.definers,
        definer: job.options.definer.clone(),
    };
    let definers = definers.parse()?;
    let to = job.options.database.as_deref();
    if to == Some("") {
        return Err(Failure::settings("options.restore.database is empty"));
    }
    let mut seen: Vec<Seen<'_>> = vec![];
    for dump in job.dumps {
        let wish = Rewrite {
            rename: to.map(|to| (dump.schema.clone(), to.to_owned())),
            definers: definers.clone(),
            only: None,
        };
        seen.push(Seen {
            dump,
            script: Script::new(wish.clone()),
            wish,
            reader: DumpReader::default(),
            survey: Survey::default(),
        });
    }
    let mut out = vec![];
    job.check(&mut |i, chunk| {
        if let Some(seen) = seen.get_mut(i) {
            seen.reader.feed(chunk);
            out.clear();
            seen.script.feed(chunk, &mut out);
            seen.survey.feed(&out);
        }
    })?;
    let mut plans: Vec<(Plan<'_>, Summary)> = vec![];
    for mut seen in seen {
        out.clear();
        seen.script.finish(&mut out);
        seen.survey.feed(&out);
        let summary = seen.reader.finish();
        let found = seen.script.found();
        let (mut plan, summary) = plan(job, seen.dump, seen.wish, (summary, found))?;
        plan.shape = seen.survey.finish();
        plans.push((plan, summary));
    }
    let target = Target::connect(job.context, target)?;
    for (plan, _) in &plans {
        if !job.options.overwrite {
            target.free(plan)?;
        }
        target.ready(plan)?;
    }
    let tables: usize = plans.iter().map(|(_, s)| s.tables.len()).sum();
    let rows: u64 = plans.iter().map(|(_, s)| s.rows()).sum();
    job.show(tables as u64, rows);
    let names: Vec<&str> = plans
        .iter()
        .flat_map(|(p, _)| &p.names)
        .map(String::as_str)
        .collect();
    let what = format!(
        "{tables} tables with {rows} rows of {} into {} at {}",
        job.what(),
        names.join(", "),
        target.place()
    );
    if job.options.dry_run {
        job.would(&what);
        return Ok(());
    }
    job.context.reporter.phase("Restoring");
    let mut how = String::new();
    job.walk(&mut |i, dump, read| {
        if let Some((plan, _)) = plans.get(i) {
            let said = target.load(plan, read).map_err(|e| job.failed(i, e))?;
            if !said.is_empty() && plans.len() > 1 {
                how.push_str(&format!("; {}", dump.name()));
            }
            how.push_str(&said);
        }
        Ok(())
    })?;
    job.done(&format!("{what}{how}"));
    Ok(())
}

fn plan<'a>(
    job: &Job<'_>,
    dump: &'a StoredDump,
    mut wish: Rewrite,
    (summary, found): (Summary, Result<Found, String>),
) -> Result<(Plan<'a>, Summary), Failure> {
    if !summary.whole {
        return Err(Failure::at(
            exit::VERIFICATION,
            Reason::IncompleteDump,
            format!("{} in {} {}", dump.path, job.key(), summary.flaw),
        ));
    }
    let found = found.map_err(|what| {
        Failure::at(
            exit::VERIFICATION,
            Reason::IncompleteDump,
            format!("{} in {} holds {what}", dump.path, job.key()),
        )
    })?;
    let bare = found.databases.is_empty();
    let names = match &job.options.database {
        Some(to) if bare || found.databases.len() == 1 => vec![to.clone()],
        Some(to) => {
            return Err(Failure::settings(format!(
                "{} holds {} databases ({}), which can't be restored as {to}: leave spec.to.database (--database) out",
                dump.name(),
                found.databases.len(),
                found.databases.join(", ")
            )));
        }
        None if bare => vec![dump.schema.clone()],
        None => found.databases.clone(),
    };
    // The name it says itself is its name, whatever its file is called.
    let from = found.databases.first().unwrap_or(&dump.schema);
    let to = job.options.database.as_ref().filter(|to| *to != from);
    wish.rename = to.map(|to| (from.clone(), to.clone()));
    let plan = Plan {
        what: dump.name(),
        found,
        wish,
        names,
        bare,
        server: &dump.server,
        arguments: dump.arguments.clone(),
        native: dump.native,
        without: vec![],
        sha256: &dump.sha256,
        shape: Ok(Shape::default()),
        verify: job.options.verify,
    };
    Ok((plan, summary))
}
