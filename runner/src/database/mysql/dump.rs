//! MySQL and MariaDB over the network, by the runner's own choice of client and options.

use crds::parts::{Engine, TlsMode};
use crds::report::{Reason, Report};

use crate::database::contents::Contents;
use crate::database::dump::DumpJob;
use crate::database::mysql::connect;
use crate::database::mysql::dump_reader::{DumpReader, Summary};
use crate::database::mysql::native::{self, Choice, NativeDump};
use crate::database::mysql::source::{self, Asked, DumpPlan};
use crate::database::remarks::remarks;
use crate::database::spool::{Member, Spooled, spool};
use crate::failure::Failure;
use crate::settings::plan::expose;
use crate::settings::{Databases, Source};

pub(crate) fn dump(job: &DumpJob<'_>) -> Result<Vec<Member>, Failure> {
    let (source, context) = (source(job)?, job.context);
    let connection = connect::connect(context, &source)?;
    context.reporter.phase("Dumping");
    let warn = |text: &str| {
        let name = &job.database.name;
        context.reporter.warn(&format!("Database {name}: {text}"));
    };
    let mut options = native::options(&source);
    options.bare = job.database.database.is_some();
    options.tables.clone_from(&job.database.tables);
    let dumped = match native::choose(context, &source, options)? {
        Choice::Native(native) => {
            let of = (native.snapshot(), native.moment());
            let dumped =
                |r: &mut Report| r.dumped(&job.database.name, Engine::Native.as_str(), Ok(of));
            context.reporter.update(dumped);
            by_us(job, &source, &connection, *native, &warn)?
        }
        Choice::Client(why) => {
            tracing::info!(event = "engine", engine = "Client", reason = why);
            let dumped =
                |r: &mut Report| r.dumped(&job.database.name, Engine::Client.as_str(), Err(&why));
            context.reporter.update(dumped);
            by_client(job, &source, &connection, &warn)?
        }
    };
    let Dumped {
        spooled,
        summary,
        client,
        plan,
        holds,
    } = dumped;
    let asked = Asked {
        source: &source,
        plan: &plan,
        server: &connection.server,
        bare: job.database.database.as_deref(),
        tables: &job.database.tables,
    };
    source::check(&client, spooled.bytes, &summary, &asked, |tables| {
        source::still_there(&source, tables, context)
    })?;
    let count = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    context.reporter.update(|r| {
        r.tables = Some(r.tables.unwrap_or(0) + count(summary.tables.len() as u64));
        r.rows = Some(r.rows.unwrap_or(0) + count(summary.rows()));
    });
    let file = whole(job).replace('/', "_");
    let member = spooled.into_member(format!("{}/{file}.sql", job.at));
    Ok(vec![
        member
            .with_server(Some(connection.server.identity()))
            .with_holds(holds.recorded()),
    ])
}

/// What a dump became.
struct Dumped {
    spooled: Spooled,
    summary: Summary,
    /// What made it.
    client: String,
    plan: DumpPlan,
    holds: Contents,
}

/// The database, or what all of them are called.
fn whole<'a>(job: &'a DumpJob<'_>) -> &'a str {
    job.database.database.as_deref().unwrap_or("all-databases")
}

fn by_client(
    job: &DumpJob<'_>,
    source: &Source,
    connection: &connect::Connection,
    warn: &dyn Fn(&str),
) -> Result<Dumped, Failure> {
    let context = job.context;
    let client = connection.dump()?.clone();
    let plan = source::plan(&client, &connection.server, source)?;
    plan.warnings.iter().for_each(|text| warn(text));
    let options = connection.options(context, source, client.flavour)?;
    let planned = names_as_gobackup(plan.args.clone(), job);
    let mut args = vec![options.argument()];
    args.extend(planned.clone());
    let mut dump = client.program(&args).start(context, false)?;
    let output = dump.source()?;
    let mut reader = DumpReader::default();
    let name = job.work_name(whole(job));
    let spooled = spool(context, job.work, &name, output, |chunk| reader.feed(chunk));
    let spooled = spooled.inspect_err(|_| dump.terminate())?;
    let ended = dump.wait()?;
    if !ended.good() {
        return Err(source::explain(&client.name(), &ended, source));
    }
    for remark in remarks(&client.name(), &ended) {
        warn(&remark);
    }
    let summary = reader.finish();
    let holds = Contents {
        partial: plan.partial.clone(),
        ..summary.contents(planned)
    };
    Ok(Dumped {
        spooled,
        client: client.name(),
        plan,
        holds,
        summary,
    })
}

/// By the native engine: its text goes through a pipe, as a client's does.
fn by_us(
    job: &DumpJob<'_>,
    source: &Source,
    connection: &connect::Connection,
    native: NativeDump<'_>,
    warn: &dyn Fn(&str),
) -> Result<Dumped, Failure> {
    let context = job.context;
    let plan = source::plan_native(&connection.server, source)?;
    for warning in plan.warnings.iter().chain(&native.warnings()) {
        warn(warning);
    }
    let name = job.work_name(whole(job));
    let (output, input) = std::io::pipe().map_err(|e| {
        Failure::new(
            Reason::InternalError,
            format!("no pipe can be made for the dump: {e}"),
        )
    })?;
    let (spooled, written) = std::thread::scope(|scope| {
        let writer = scope.spawn(move || native.write(input, &mut |_| {}).map(|(.., s)| s));
        let spooled = spool(context, job.work, &name, output, |_| {});
        let written = writer.join().unwrap_or_else(|_| {
            Err(Failure::new(
                Reason::InternalError,
                "the dumping thread panicked: report it",
            ))
        });
        (spooled, written)
    });
    // Where the disk is full the dump met a closed pipe.
    let spooled = spooled?;
    let summary = written?;
    let holds = Contents {
        partial: plan.partial.clone(),
        native: true,
        ..summary.contents(vec![])
    };
    Ok(Dumped {
        spooled,
        client: native::version(),
        plan,
        holds,
        summary,
    })
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
        engine: None,
        accounts: false,
        asked_sessions: None,
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
