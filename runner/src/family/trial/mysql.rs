//! Dumps of MySQL and MariaDB, in a scratch MariaDB.

use super::super::gobackup::config::MYSQLDUMP;
use super::super::holds::Holds;
use super::{Trial, VOLUME, find};
use crate::failure::Failure;
use crate::load;
use crate::restore;
use crate::scratch::Scratch;
use crate::source::{self, Clients, Flavour};

/// Database of a dump that names none.
const NAME: &str = "restored";

pub(super) fn run(trial: &Trial<'_>) -> Result<String, Failure> {
    let context = trial.context;
    for program in ["mariadbd", "mariadb-install-db"] {
        if find(context, &[program]).is_none() {
            return Err(trial.lacks(program, "MariaDB"));
        }
    }
    let clients = Clients::find(&context.settings)?;
    let flavour = Some(Flavour::MariaDb);
    let sql = clients
        .sql(flavour)
        .ok_or_else(|| trial.lacks("SQL client (mariadb, mysql)", "MariaDB"))?;
    let mut summary = crate::dump_reader::DumpReader::default();
    trial.dump.read(context, |chunk| summary.feed(chunk))?;
    let summary = summary.finish();
    if !summary.footer {
        return Err(trial.bad("it has no closing line"));
    }
    let scratch = Scratch::start(context, VOLUME)?;
    scratch.wait(context, sql)?;
    let mut args = scratch.arguments();
    args.extend(restore::arguments(sql));
    let bare = summary.databases.is_empty();
    let name = trial.dump.base.strip_suffix(".sql").unwrap_or(NAME);
    if bare {
        let create = format!("CREATE DATABASE `{}`;\n", name.replace('`', "``"));
        let (_, ended) = source::Dump::run(sql, &args, &create, &context.cancel, &context.scrub)?;
        if !ended.good() {
            return Err(Failure::other(
                "ScratchFailed",
                format!("no database can be made: {}", ended.messages.join(" / ")),
            ));
        }
        args.push(format!("--database={name}"));
    }
    let loaded = load::load(context, sql, &args, trial.dump.open()?, None)?;
    context.check()?;
    if !loaded.ended.good() {
        let mut messages = loaded.ended.messages.iter().rev();
        let said = messages.find(|m| m.starts_with("ERROR"));
        let said = said.map_or("nothing", String::as_str);
        return Err(refused(trial, &summary.server_version, said));
    }
    let options = trial
        .dump
        .holds
        .as_ref()
        .map(|h| h.options.clone())
        .filter(|o| !o.is_empty())
        .unwrap_or_else(|| by_gobackup(trial, name, bare));
    let restored = scratch.dump(context, clients.dump(flavour)?, &options)?;
    trial.equal(&Holds::of(&summary, vec![]), &Holds::of(&restored, vec![]))
}

/// Why the dump did not load: by what it is, or by what this server is.
fn refused(trial: &Trial<'_>, version: &str, said: &str) -> Failure {
    const OF_THE_SERVER: [&str; 8] = [
        "Unknown collation",
        "Unknown character set",
        "Unknown system variable",
        "Unknown storage engine",
        "is not loaded",
        "is full",
        "Lost connection",
        "server has gone away",
    ];
    if OF_THE_SERVER.iter().any(|text| said.contains(text)) || !version.contains("MariaDB") {
        return trial.unproven(
            &format!("the scratch MariaDB does not take this dump of a server {version}: {said}"),
            &format!(
                "a spec.job.clientImage with the server of a newer MariaDB, or more room in {VOLUME} and spec.job.verify.resources, may help; else set spec.job.verify.mode Checksum"
            ),
        );
    }
    trial.bad(&format!("the client said: {said}"))
}

/// Arguments with which gobackup had it dumped: its record has none.
fn by_gobackup(trial: &Trial<'_>, name: &str, bare: bool) -> Vec<String> {
    let mut all: Vec<String> = MYSQLDUMP.iter().map(|s| (*s).to_owned()).collect();
    let args = trial.database().map(|d| d.args.as_slice());
    let of_rows = |word: &&String| word.starts_with("--") && !word.contains("ssl");
    all.extend(args.unwrap_or_default().iter().filter(of_rows).cloned());
    if bare {
        all.extend(["--".to_owned(), name.to_owned()]);
    } else {
        all.push("--all-databases".to_owned());
    }
    all
}
