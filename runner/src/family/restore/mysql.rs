//! Dumps of MySQL and MariaDB. One of a single database loads into a database of any name.

use crate::connect::{self, Connection};
use crate::dump_reader::{DumpReader, Summary};
use crate::failure::Failure;
use crate::load;
use crate::restore;
use crate::settings::Source;
use crate::source;

use super::Job;
use super::choice::Dump;

/// A dump and the databases it fills.
struct Plan<'a> {
    dump: &'a Dump,
    summary: Summary,
    names: Vec<String>,
    /// The dump names no database: the client is told one.
    bare: bool,
}

impl Plan<'_> {
    /// Its databases have other names than they had.
    fn renamed(&self) -> bool {
        if self.bare {
            self.names != [self.dump.schema.clone()]
        } else {
            self.names != self.summary.databases
        }
    }
}

/// Restores.
///
/// # Errors
/// As the module above.
pub(super) fn restore(job: &Job<'_>, target: &Source) -> Result<(), Failure> {
    let mut readers: Vec<DumpReader> = job.dumps.iter().map(|_| DumpReader::default()).collect();
    job.check(&mut |i, chunk| {
        if let Some(reader) = readers.get_mut(i) {
            reader.feed(chunk);
        }
    })?;
    let summaries = readers.into_iter().map(DumpReader::finish);
    let plans: Vec<Plan<'_>> = job
        .dumps
        .iter()
        .zip(summaries)
        .map(|(dump, summary)| plan(job, dump, summary))
        .collect::<Result<_, _>>()?;
    let connection = connect::connect(job.context, target)?;
    if !job.options.overwrite {
        for plan in &plans {
            let names = (plan.names.as_slice(), plan.renamed());
            restore::free(job.context, &connection, target, &plan.dump.server, names)?;
        }
    }
    let tables: usize = plans.iter().map(|p| p.summary.tables.len()).sum();
    let rows: u64 = plans.iter().map(|p| p.summary.rows()).sum();
    job.show(tables as u64, rows);
    let names: Vec<&str> = plans
        .iter()
        .flat_map(|p| &p.names)
        .map(String::as_str)
        .collect();
    let what = format!(
        "{tables} tables with {rows} rows of {} into {} at {}:{}",
        job.what(),
        names.join(", "),
        target.host,
        target.port
    );
    if job.options.dry_run {
        job.would(&what);
        return Ok(());
    }
    job.context.reporter.phase("Restoring");
    job.walk(&mut |i, _, dump| match plans.get(i) {
        Some(plan) => one(job, (target, &connection), plan, dump).map_err(|e| job.failed(i, e)),
        None => Ok(()),
    })?;
    job.done(&what);
    Ok(())
}

fn plan<'a>(job: &Job<'_>, dump: &'a Dump, summary: Summary) -> Result<Plan<'a>, Failure> {
    if !summary.whole {
        return Err(Failure::verification(
            "IncompleteDump",
            format!("{} in {} has no closing line", dump.path, job.key()),
        ));
    }
    let bare = summary.databases.is_empty();
    let names = match &job.options.database {
        Some(to) if to.is_empty() => {
            return Err(Failure::settings("options.restore.database is empty"));
        }
        Some(to) if bare || summary.databases.len() == 1 => vec![to.clone()],
        Some(to) => {
            return Err(Failure::settings(format!(
                "{} holds {} databases ({}), which can't be restored as {to}: leave spec.to.database (--database) out",
                dump.name(),
                summary.databases.len(),
                summary.databases.join(", ")
            )));
        }
        None if bare => vec![dump.schema.clone()],
        None => summary.databases.clone(),
    };
    Ok(Plan {
        dump,
        summary,
        names,
        bare,
    })
}

/// Loads one dump.
fn one(
    job: &Job<'_>,
    (target, connection): (&Source, &Connection),
    plan: &Plan<'_>,
    dump: &mut dyn std::io::Read,
) -> Result<(), Failure> {
    let context = job.context;
    let client = connection.sql()?.clone();
    let file = connection.options(context, target, client.flavour)?;
    let mut args = vec![file.argument()];
    args.extend(restore::arguments(&client));
    let name = plan.names.first().map(String::as_str);
    if let (Some(name), true) = (name, plan.bare) {
        let sql = format!(
            "CREATE DATABASE IF NOT EXISTS `{}`;\n",
            name.replace('`', "``")
        );
        let (_, ended) = source::Dump::run(&client, &args, &sql, &context.cancel, &context.scrub)?;
        if !ended.good() {
            return Err(source::explain(&client.name(), &ended, target));
        }
        args.push(format!("--database={name}"));
    }
    let rename = name.filter(|_| !plan.bare && plan.renamed());
    let loaded = load::load(context, &client, &args, dump, rename)?;
    context.check()?;
    if !loaded.ended.good() {
        return Err(source::explain(&client.name(), &loaded.ended, target));
    }
    if loaded.sha256 != plan.dump.sha256 {
        return Err(incomplete(
            "what was loaded is not the dump that was checked before: the target is not to be trusted",
        ));
    }
    let there = restore::tables(context, connection, target, &plan.names)?;
    let gone = plan.summary.tables.iter().find(|t| {
        !there.iter().any(|(database, name)| {
            let same = plan.names.len() == 1 || database.eq_ignore_ascii_case(&t.database);
            same && name.eq_ignore_ascii_case(&t.name)
        })
    });
    match gone {
        None => Ok(()),
        Some(t) => Err(incomplete(&format!(
            "table {} is not there after the restore",
            t.name
        ))),
    }
}

fn incomplete(text: &str) -> Failure {
    Failure::verification("RestoreIncomplete", text)
}
