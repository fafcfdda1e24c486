//! Restores an artefact into a server. `BACKUP_SPEC` says it so:
//!
//! - `object`: whose artefact it is; `destination`: where it is; `identityFile`: what opens it.
//! - `source`: the server to restore into, with `usernameFile` and `passwordFile`.
//! - `options.restore`: `{key | run | at, database, overwrite, dryRun}`. Without key, run or at the
//!   newest artefact is meant; `database` is another name for the dump's one database.
//!
//! The stored bytes are compared with the manifest before the first statement is sent. A database
//! that holds tables, and the server the dump came from, need `overwrite`.

use crds::report::exit;
use crds::run::Artefact;
use serde::Deserialize;

use crate::artefacts::{self, Choice};
use crate::connect::{self, Connection};
use crate::failure::Failure;
use crate::load;
use crate::manifest::{Manifest, ServerIdentity};
use crate::run::Context;
use crate::settings::Source;
use crate::source::{self, Dump};

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Options {
    #[serde(flatten)]
    choice: Choice,
    database: Option<String>,
    overwrite: bool,
    dry_run: bool,
}

/// True if the options ask for a restore.
pub fn asked(context: &Context) -> bool {
    context.settings.options.get("restore").is_some()
}

/// Restores.
///
/// # Errors
/// The artefact differs from its manifest, the target is not free, or the server refuses.
pub fn run(context: &Context) -> Result<(), Failure> {
    let options = context
        .settings
        .options
        .get("restore")
        .cloned()
        .unwrap_or_default();
    let options = Options::deserialize(options)
        .map_err(|e| Failure::settings(format!("options.restore: {e}")))?;
    let target = context.settings.source()?;
    let store = context.open_store()?;
    context.reporter.phase("ReadingBack");
    let manifest = artefacts::choose(context, store.as_ref(), &options.choice)?;
    show(context, &manifest);
    artefacts::check(store.as_ref(), &manifest)?;
    context.check()?;
    let connection = connect::connect(context, target)?;
    let names = names(&manifest, options.database.as_deref())?;
    if !options.overwrite {
        let renamed = names != manifest.databases;
        let identity = &manifest.server_identity;
        free(
            context,
            &connection,
            target,
            identity,
            (names.as_slice(), renamed),
        )?;
    }
    let rows: u64 = manifest.tables.iter().map(|t| t.rows).sum();
    let what = format!(
        "{} tables with {rows} rows of {} into {} at {}:{}",
        manifest.tables.len(),
        manifest.key,
        names.join(", "),
        target.host,
        target.port
    );
    // Before the dry run ends: a wrong key is found here.
    let dump = artefacts::open(context, store.as_ref(), &manifest)?;
    if options.dry_run {
        context.reporter.update(|r| {
            "WouldRestore".clone_into(&mut r.reason);
            r.message = format!("would restore {what}");
        });
        return Ok(());
    }
    context.reporter.phase("Restoring");
    context.reporter.expect(manifest.raw_bytes);
    let client = connection.sql()?.clone();
    let file = connection.options(context, target, client.flavour)?;
    let mut args = vec![file.argument()];
    args.extend(arguments(&client));
    let loaded = load::load(context, &client, &args, dump, options.database.as_deref())?;
    context.check()?;
    if !loaded.ended.good() {
        return Err(source::explain(&client.name(), &loaded.ended, target));
    }
    if loaded.sha256 != manifest.raw_sha256 || !loaded.summary.whole {
        return Err(Failure::verification(
            "RestoreIncomplete",
            format!(
                "what was loaded from {} is not the dump its manifest describes: the target is not to be trusted",
                manifest.key
            ),
        ));
    }
    arrived(context, &connection, target, &manifest, &names)?;
    context.reporter.update(|r| {
        "Restored".clone_into(&mut r.reason);
        r.message = format!("restored {what}");
    });
    Ok(())
}

/// Arguments of the SQL client that loads a dump byte for byte.
pub(crate) fn arguments(client: &source::Client) -> Vec<String> {
    let mut args = vec![
        "--batch".to_owned(),
        "--default-character-set=utf8mb4".to_owned(),
        "--max-allowed-packet=1G".to_owned(),
    ];
    if client.knows("binary-mode") {
        args.push("--binary-mode".to_owned());
    }
    args
}

fn show(context: &Context, manifest: &Manifest) {
    let number = |n: u64| Some(i64::try_from(n).unwrap_or(i64::MAX));
    context.reporter.update(|r| {
        r.raw_bytes = number(manifest.raw_bytes);
        r.tables = number(manifest.tables.len() as u64);
        r.rows = number(manifest.tables.iter().map(|t| t.rows).sum());
        r.artefacts = vec![Artefact {
            key: manifest.key.clone(),
            size: i64::try_from(manifest.stored_bytes).unwrap_or(i64::MAX),
            sha256: manifest.stored_sha256.clone(),
            read_back: true,
            storage: None,
        }];
    });
}

/// The databases the dump will make.
fn names(manifest: &Manifest, database: Option<&str>) -> Result<Vec<String>, Failure> {
    match database {
        None => Ok(manifest.databases.clone()),
        Some("") => Err(Failure::settings("options.restore.database is empty")),
        Some(name) if manifest.databases.len() == 1 => Ok(vec![name.to_owned()]),
        Some(_) => Err(Failure::settings(format!(
            "{} holds {} databases ({}): only a dump of one database can be restored under another name",
            manifest.key,
            manifest.databases.len(),
            manifest.databases.join(", ")
        ))),
    }
}

/// The target is another server and holds no table of these databases.
pub(crate) fn free(
    context: &Context,
    connection: &Connection,
    target: &Source,
    source: &ServerIdentity,
    (names, renamed): (&[String], bool),
) -> Result<(), Failure> {
    let Some(server) = &connection.server else {
        return Err(Failure::settings(
            "the target can't be looked at without an SQL client",
        ));
    };
    if source.is(server) && !renamed {
        return Err(occupied(
            "TargetIsSource",
            &format!(
                "{}:{} is the server this dump came from",
                target.host, target.port
            ),
        ));
    }
    let filled = tables(context, connection, target, names)?;
    if let Some((database, table)) = filled.first() {
        return Err(occupied(
            "TargetNotEmpty",
            &format!(
                "{} tables are there already, {database}.{table} for one",
                filled.len()
            ),
        ));
    }
    Ok(())
}

/// The failure of a restore that needs consent.
pub(crate) fn occupied(reason: &'static str, text: &str) -> Failure {
    Failure::new(
        exit::SETTINGS,
        reason,
        format!("{text}; to go on nevertheless, set overwrite"),
    )
}

/// Tables and views in these databases.
pub(crate) fn tables(
    context: &Context,
    connection: &Connection,
    target: &Source,
    names: &[String],
) -> Result<Vec<(String, String)>, Failure> {
    if names.is_empty() {
        return Ok(vec![]);
    }
    let client = connection.sql()?;
    let file = connection.options(context, target, client.flavour)?;
    let args = [
        file.argument(),
        "--batch".into(),
        "--skip-column-names".into(),
        "--default-character-set=utf8mb4".into(),
    ];
    let sql = format!(
        "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA IN ({});\n",
        source::literals(names)
    );
    let (text, ended) = Dump::run(client, &args, &sql, &context.cancel, &context.scrub)?;
    if !ended.good() {
        return Err(source::explain(&client.name(), &ended, target));
    }
    let pairs = text.lines().filter_map(|l| l.split_once('\t'));
    Ok(pairs.map(|(d, t)| (d.to_owned(), t.to_owned())).collect())
}

/// Every table of the manifest is there now.
fn arrived(
    context: &Context,
    connection: &Connection,
    target: &Source,
    manifest: &Manifest,
    names: &[String],
) -> Result<(), Failure> {
    let there = tables(context, connection, target, names)?;
    let gone = manifest.tables.iter().find(|t| {
        !there.iter().any(|(database, name)| {
            let same = database.eq_ignore_ascii_case(&t.database) || names.len() == 1;
            same && name.eq_ignore_ascii_case(&t.name)
        })
    });
    match gone {
        None => Ok(()),
        Some(t) => Err(Failure::verification(
            "RestoreIncomplete",
            format!(
                "table {}.{} is not there after the restore",
                t.database, t.name
            ),
        )),
    }
}
