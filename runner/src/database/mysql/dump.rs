//! MySQL and MariaDB over the network, by the runner's own choice of client and options.

use crds::parts::TlsMode;

use crate::database::contents::Contents;
use crate::database::dump::DumpJob;
use crate::database::mysql::connect;
use crate::database::mysql::dump_reader::DumpReader;
use crate::database::mysql::source::{self, Asked};
use crate::database::remarks::remarks;
use crate::database::spool::{Member, spool};
use crate::failure::Failure;
use crate::settings::plan::expose;
use crate::settings::{Databases, Source};

pub(crate) fn dump(job: &DumpJob<'_>) -> Result<Vec<Member>, Failure> {
    let (source, context) = (source(job)?, job.context);
    let connection = connect::connect(context, &source)?;
    context.reporter.phase("Dumping");
    let server = &connection.server;
    let client = connection.dump()?.clone();
    let plan = source::plan(&client, server, &source)?;
    let warn = |text: &str| {
        let name = &job.database.name;
        context.reporter.warn(&format!("Database {name}: {text}"));
    };
    plan.warnings.iter().for_each(|text| warn(text));
    let options = connection.options(context, &source, client.flavour)?;
    let planned = names_as_gobackup(plan.args.clone(), job);
    let mut args = vec![options.argument()];
    args.extend(planned.clone());
    let mut dump = client.program(&args).start(context, false)?;
    let output = dump.source()?;
    let mut reader = DumpReader::default();
    let name = job.database.database.as_deref().unwrap_or("all-databases");
    let spooled = spool(context, job.work, &job.work_name(name), output, |chunk| {
        reader.feed(chunk)
    });
    let spooled = spooled.inspect_err(|_| dump.terminate())?;
    let ended = dump.wait()?;
    if !ended.good() {
        return Err(source::explain(&client.name(), &ended, &source));
    }
    let summary = reader.finish();
    let asked = Asked {
        source: &source,
        plan: &plan,
        server,
        bare: job.database.database.as_deref(),
        tables: &job.database.tables,
    };
    source::check(&client.name(), spooled.bytes, &summary, &asked, |tables| {
        source::still_there(&source, tables, context)
    })?;
    for remark in remarks(&client.name(), &ended) {
        warn(&remark);
    }
    let count = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    context.reporter.update(|r| {
        r.tables = Some(r.tables.unwrap_or(0) + count(summary.tables.len() as u64));
        r.rows = Some(r.rows.unwrap_or(0) + count(summary.rows()));
    });
    let file = name.replace('/', "_");
    let member = spooled.into_member(format!("{}/{file}.sql", job.at));
    let holds = Contents {
        partial: plan.partial,
        ..summary.contents(planned)
    };
    Ok(vec![
        member
            .with_server(Some(server.identity()))
            .with_holds(holds.recorded()),
    ])
}

/// Logs in.
pub(crate) fn probe(job: &DumpJob<'_>) -> Result<(), Failure> {
    connect::connect(job.context, &source(job)?).map(drop)
}

fn source(job: &DumpJob<'_>) -> Result<Source, Failure> {
    let d = job.database;
    let skip = |word: &&String| {
        matches!(
            word.as_str(),
            "--skip-ssl" | "--ssl=0" | "--ssl-mode=DISABLED" | "--ssl=OFF"
        )
    };
    let tables = d.exclude_tables.iter().map(|table| {
        let (database, name) = match table.split_once('.') {
            Some((database, name)) => (database.to_owned(), name.to_owned()),
            None => (d.database.clone().unwrap_or_default(), table.clone()),
        };
        if database.is_empty() {
            return Err(Failure::settings(format!(
                "exclude_tables: with all_databases write {table:?} as database.table"
            )));
        }
        Ok((database, name))
    });
    let demanded = crate::settings::asks_for_tls(&d.args);
    let lowers = |arg: &String| {
        let own = std::slice::from_ref(arg);
        !crate::settings::asks_for_tls(own)
            && !arg.starts_with("--ssl-c")
            && !arg.starts_with("--ssl-key")
            && crate::settings::check_tls(
                crate::settings::Origin::Environment,
                TlsMode::Required,
                own,
            )
            .is_err()
    };
    if let Some(arg) = d.args.iter().find(|a| demanded && lowers(a)) {
        return Err(Failure::settings(format!(
            "config.args demands TLS and holds {} too, which may take it back: remove one of them",
            arg.split('=').next().unwrap_or_default()
        )));
    }
    let extra_args: Vec<String> = d.args.iter().filter(|w| !skip(w)).cloned().collect();
    crate::settings::check_args(crate::settings::Origin::Environment, &extra_args)
        .map_err(|e| Failure::settings(e.replace("MYSQLDUMP_ARGS", "config.args")))?;
    Ok(Source {
        host: d.host.clone().unwrap_or_else(|| "127.0.0.1".to_owned()),
        port: d.port.unwrap_or(3306),
        socket: d.socket.clone(),
        username: expose(d.username.as_ref()).unwrap_or("root").to_owned(),
        password: d.password.clone().unwrap_or_default(),
        databases: match &d.database {
            Some(name) => Databases::Listed(vec![name.clone()]),
            None => Databases::All,
        },
        exclude_tables: tables.collect::<Result<_, _>>()?,
        tls: if d.args.iter().any(|w| skip(&w)) {
            TlsMode::Disabled
        } else if demanded {
            TlsMode::Required
        } else {
            TlsMode::Preferred
        },
        ca_file: None,
        extra_args,
    })
}

/// gobackup dumps one database without CREATE DATABASE and USE, so that it loads into any.
fn names_as_gobackup(mut args: Vec<String>, job: &DumpJob<'_>) -> Vec<String> {
    let Some(database) = &job.database.database else {
        return args;
    };
    if let Some(at) = args.iter().position(|a| a == "--databases") {
        args.truncate(at);
    }
    args.push("--".to_owned());
    args.push(database.clone());
    args.extend(job.database.tables.iter().cloned());
    args
}
