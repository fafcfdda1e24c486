//! Dumps of MySQL and MariaDB, in a scratch MariaDB.

use crate::database::contents::Contents;
use crate::database::mysql::dump_reader::{DumpReader, Summary};
use crate::database::mysql::load;
use crate::database::mysql::scratch::{self, Scratch};
use crate::database::mysql::scratch_sessions::Dumped;
use crate::database::mysql::source::{Clients, Flavour};
use crate::database::restore_check::{RestoreCheck, VOLUME, find};
use crate::failure::Failure;
use crds::report::Reason;

/// Of one transaction, and with what gobackup leaves out. What the Database's `args` say comes
/// after it and counts.
pub(crate) const MYSQLDUMP: [&str; 8] = [
    "--single-transaction",
    "--quick",
    "--routines",
    "--events",
    "--triggers",
    "--hex-blob",
    "--no-tablespaces",
    "--skip-add-locks",
];
/// Database of a dump that names none.
const NAME: &str = "restored";

pub(crate) fn run(check: &RestoreCheck<'_>) -> Result<String, Failure> {
    let context = check.context;
    for program in ["mariadbd", "mariadb-install-db"] {
        if find(context, &[program]).is_none() {
            return Err(check.lacks(program, "MariaDB"));
        }
    }
    let clients = Clients::find(&context.settings)?;
    let flavour = Some(Flavour::MariaDb);
    let sql = clients
        .sql(flavour)
        .ok_or_else(|| check.lacks("SQL client (mariadb, mysql)", "MariaDB"))?;
    let mut summary = DumpReader::default();
    check.dump.read(context, |chunk| summary.feed(chunk))?;
    let summary = summary.finish();
    if !summary.whole {
        return Err(check.bad(&format!("it {}", summary.flaw)));
    }
    let mut scratch = Scratch::start(context, check.area)?;
    scratch.wait(context, sql)?;
    let mut args = scratch.arguments();
    args.extend(load::arguments(sql));
    let bare = summary.databases.is_empty();
    let name = check.dump.base.strip_suffix(".sql").unwrap_or(NAME);
    if bare {
        let create = format!("CREATE DATABASE `{}`;\n", name.replace('`', "``"));
        let (_, ended) = sql.run(context, &args, &create)?;
        if !ended.good() {
            return Err(Failure::new(
                Reason::ScratchFailed,
                format!("no database can be made: {}", ended.messages.join(" / ")),
            ));
        }
        args.push(format!("--database={name}"));
    }
    let here = scratch.version(context, sql)?;
    let source = &summary.server_version;
    let databases = &summary.databases;
    let options = check
        .dump
        .holds
        .as_ref()
        .map(|h| h.options.clone())
        .filter(|o| !o.is_empty())
        .unwrap_or_else(|| by_gobackup(check, name, bare));
    let native = check.dump.holds.as_ref().is_some_and(|h| h.native);
    let counted = |summary: &Summary, periods: &[(String, String)]| Contents {
        tables: scratch::counted(&summary.tables, periods),
        ..summary.contents(vec![])
    };
    let compared = || -> Result<String, Failure> {
        let (periods, restored) = if native {
            (vec![], scratch.sums(context, bare.then_some(name))?)
        } else {
            let periods = scratch.periods(context, sql, &options)?;
            let client = clients.dump(flavour)?;
            (periods, scratch.dump(context, client, &options)?)
        };
        let text = check.equal(&counted(&summary, &periods), &counted(&restored, &periods))?;
        Ok(format!("{text}{}", scratch::by_number(&periods)))
    };
    let open = || check.dump.open();
    let dump = Dumped::Text(bare.then_some(name), &open);
    let by_sessions = scratch.load_by_sessions(context, sql, &dump);
    context.check()?;
    match by_sessions.and_then(|()| compared().map_err(|e| e.message)) {
        Ok(text) => return Ok(text),
        Err(why) => {
            context.check()?;
            tracing::info!(event = "load", by = "client", why);
        }
    }
    let own = if bare {
        vec![name.to_owned()]
    } else {
        databases.clone()
    };
    scratch.forget(context, sql, &own)?;
    if bare {
        let create = format!("CREATE DATABASE {};\n", dump::sql::name(name));
        scratch.ask(context, sql, &create)?;
    }
    let loaded = scratch.load(context, sql, &args, &[], || check.dump.open())?;
    if !loaded.ended.good() {
        let said = scratch::said(&loaded.ended);
        return Err(match scratch::unable(source, &here, &said, &own) {
            Some(why) => check.unproven(&format!("{why}: the client said: {said}"), &remedy()),
            None => check.bad(&format!("the client said: {said}")),
        });
    }
    match (compared(), scratch::unable(source, &here, "", databases)) {
        (Ok(text), _) => Ok(text),
        (Err(e), Some(why)) => Err(check.unproven(&format!("{why}, and {}", e.message), &remedy())),
        (Err(e), None) => Err(e),
    }
}

/// What helps where this server can't show it.
fn remedy() -> String {
    format!(
        "set spec.job.clientImage to an image with the server of that MariaDB version or a later one, give {VOLUME} and spec.job.verify.resources more, or set spec.job.verify.mode Checksum"
    )
}

/// Arguments with which gobackup had it dumped: its record has none.
fn by_gobackup(check: &RestoreCheck<'_>, name: &str, bare: bool) -> Vec<String> {
    let mut all: Vec<String> = MYSQLDUMP.iter().map(|s| (*s).to_owned()).collect();
    let args = check.database().map(|d| d.args.as_slice());
    let of_rows = |word: &&String| word.starts_with("--") && !word.contains("ssl");
    all.extend(args.unwrap_or_default().iter().filter(of_rows).cloned());
    if bare {
        all.extend(["--".to_owned(), name.to_owned()]);
    } else {
        all.push("--all-databases".to_owned());
    }
    all
}
