//! PostgreSQL by pg_dump or pg_dumpall. The password is in a passfile on memory.

use crate::database::contents::Contents;
use crate::database::dump::{DumpJob, incomplete};
use crate::database::failures::explain;
use crate::database::flaw::Flaw;
use crate::database::partial;
use crate::database::postgresql::plain_dump::PlainDump;
use crate::database::spool::{Member, spool};
use crate::failure::Failure;
use crate::process::Program;
use crate::settings::plan::expose;

pub(crate) fn dump(job: &DumpJob<'_>) -> Result<Vec<Member>, Failure> {
    let database = job.database;
    let program = if database.database.is_some() {
        "pg_dump"
    } else {
        "pg_dumpall"
    };
    let mut program = Program::new(job.context.settings.program(program)?, arguments(job));
    let passfile = job.private_file(
        "pgpass",
        &passfile(expose(database.password.as_ref()).unwrap_or_default())?,
    )?;
    program.env = environment(&passfile.text());
    let name = database.database.as_deref().unwrap_or("all_databases");
    let mut running = program.start(job.context, false)?;
    let output = running.source()?;
    let partial = partial::warn(job.context, job.database);
    let mut script = PlainDump::default();
    let spooled = spool(
        job.context,
        job.work,
        &job.work_name(name),
        output,
        |chunk| script.feed(chunk),
    )?;
    let ended = running.wait()?;
    let client = program.name();
    job.ended(&client, &ended)?;
    unmatched(job, &program.env);
    let file = name.replace('/', "_");
    let (bytes, text) = (spooled.bytes, script.is_text());
    let member = spooled.into_member(format!("{}/{file}.sql", job.at));
    let broken = |flaw| incomplete(&client, &format!("its dump of {bytes} bytes"), flaw);
    if !text {
        let mut from = member.open().map_err(|e| broken(Flaw::Io(e)))?;
        crate::database::postgresql::own_formats::check(&mut from).map_err(broken)?;
        return Ok(vec![member]);
    }
    if let Some(flaw) = script.flaw() {
        return Err(broken(Flaw::Broken(flaw.to_owned())));
    }
    let holds = Contents {
        partial,
        ..script.holds(rendering(&database.args))
    };
    Ok(vec![member.with_holds(holds.recorded())])
}

/// Tables to leave out that are not there: the client is silent about them. Where it can't be asked,
/// nothing is said.
fn unmatched(job: &DumpJob<'_>, env: &[(String, String)]) {
    let d = job.database;
    let plain = |c: char| c.is_alphanumeric() || "_.*?\"$ -".contains(c);
    let patterns = d.exclude_tables.iter().filter(|t| t.chars().all(plain));
    let (Some(name), Ok(psql)) = (&d.database, job.context.settings.program("psql")) else {
        return;
    };
    let mut args = server(job);
    args.push(format!("--dbname={}", quoted(name)));
    args.push("--no-psqlrc".to_owned());
    let before = args.len();
    args.extend(patterns.map(|p| format!("--command=\\dtvmsE {p}")));
    if args.len() == before {
        return;
    }
    let mut program = Program::new(psql, args);
    program.env = env.to_vec();
    let Ok((output, ended)) = program.run(job.context, "") else {
        return;
    };
    let said = String::from_utf8_lossy(&output).into_owned();
    let lines = said
        .lines()
        .chain(ended.messages.iter().map(String::as_str));
    for line in lines.filter(|l| l.starts_with("Did not find any ")) {
        let pattern = line.split('"').nth(1).unwrap_or_default();
        job.warn(&format!(
            "excludeTables: no table matches {pattern:?}, so nothing was left out for it: correct the name"
        ));
    }
}

/// Logs in.
pub(crate) fn probe(job: &DumpJob<'_>) -> Result<(), Failure> {
    let d = job.database;
    let mut args = server(job);
    let name = d.database.as_deref().unwrap_or("postgres");
    args.push(format!("--dbname={}", quoted(name)));
    args.extend(["--no-psqlrc", "--command=select 1"].map(str::to_owned));
    let mut program = Program::new(job.context.settings.program("psql")?, args);
    let passfile = job.private_file(
        "pgpass",
        &passfile(expose(d.password.as_ref()).unwrap_or_default())?,
    )?;
    program.env = environment(&passfile.text());
    let (_, ended) = program.ask(job.context, "", None)?;
    if ended.good() {
        return Ok(());
    }
    Err(explain("psql", &ended))
}

/// The environment of a client.
pub(crate) fn environment(passfile: &str) -> Vec<(String, String)> {
    vec![
        ("PGPASSFILE".to_owned(), passfile.to_owned()),
        ("PGCONNECT_TIMEOUT".to_owned(), "30".to_owned()),
        ("LC_ALL".to_owned(), "C".to_owned()),
    ]
}

/// Where the server is and who logs in.
fn server(job: &DumpJob<'_>) -> Vec<String> {
    let d = job.database;
    let mut args = vec!["--no-password".to_owned()];
    match (&d.socket, &d.host) {
        (Some(socket), _) => args.push(format!("--host={}", directory_of(socket))),
        (None, Some(host)) => args.push(format!("--host={host}")),
        (None, None) => {}
    }
    args.extend(d.port.map(|p| format!("--port={p}")));
    args.extend(expose(d.username.as_ref()).map(|u| format!("--username={u}")));
    args
}

/// A socket may be named by its file: the client wants the directory.
pub(crate) fn directory_of(socket: &str) -> &str {
    socket
        .rsplit_once("/.s.PGSQL.")
        .map_or(socket, |(directory, _)| directory)
}

fn arguments(job: &DumpJob<'_>) -> Vec<String> {
    let d = job.database;
    let mut args = server(job);
    if d.database.is_some() {
        args.extend(d.tables.iter().map(|t| format!("--table={t}")));
        // Else the client passes over one that is not there, as long as it finds another.
        if !d.tables.is_empty() {
            args.push("--strict-names".to_owned());
        }
        args.extend(
            d.exclude_tables
                .iter()
                .map(|t| format!("--exclude-table={t}")),
        );
    }
    args.extend(d.args.iter().cloned());
    args.extend(
        d.database
            .iter()
            .map(|name| format!("--dbname={}", quoted(name))),
    );
    args
}

/// Of a Database's `args` those by which pg_dump words the same rows otherwise.
pub(crate) fn rendering(args: &[String]) -> Vec<String> {
    const ALONE: [&str; 10] = [
        "--inserts",
        "--column-inserts",
        "--attribute-inserts",
        "--on-conflict-do-nothing",
        "--load-via-partition-root",
        "--quote-all-identifiers",
        "--disable-dollar-quoting",
        "--disable-triggers",
        "--use-set-session-authorization",
        "--no-comments",
    ];
    const VALUED: [&str; 4] = [
        "--rows-per-insert",
        "--extra-float-digits",
        "--encoding",
        "-E",
    ];
    let mut kept = vec![];
    let mut words = args.iter();
    while let Some(word) = words.next() {
        let name = word.split('=').next().unwrap_or_default();
        let joined = word.len() > 2 && word.starts_with("-E");
        if ALONE.contains(&word.as_str()) || joined {
            kept.push(word.clone());
        } else if VALUED.contains(&name) {
            kept.push(word.clone());
            if !word.contains('=') {
                kept.extend(words.next().cloned());
            }
        }
    }
    kept
}

/// A name that looks like a connection string would be read as one.
pub(crate) fn quoted(name: &str) -> String {
    if name.contains('=') || name.contains("://") {
        let escaped = name.replace('\\', r"\\").replace('\'', r"\'");
        return format!("dbname='{escaped}'");
    }
    name.to_owned()
}

/// Any host, port, database and user: the file serves one client.
///
/// # Errors
/// The password can't stand in it.
pub(crate) fn passfile(password: &str) -> Result<String, Failure> {
    if password.contains(['\n', '\0']) {
        return Err(Failure::settings(
            "the password holds a line end, which the client can't take",
        ));
    }
    let escaped = password.replace('\\', r"\\").replace(':', r"\:");
    Ok(format!("*:*:*:*:{escaped}\n"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use super::*;

    #[test]
    fn passwords_are_escaped_for_the_passfile() {
        assert_eq!(passfile(r"a:b\c $x").unwrap(), "*:*:*:*:a\\:b\\\\c $x\n");
        assert!(passfile("a\nb").is_err());
    }

    #[test]
    fn what_words_rows_otherwise_is_kept() {
        let args = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let given = "--no-owner -E LATIN1 --inserts --rows-per-insert=7 --encoding UTF8 -n s --extra-float-digits 0 -Fc -EUTF8";
        let kept =
            "-E LATIN1 --inserts --rows-per-insert=7 --encoding UTF8 --extra-float-digits 0 -EUTF8";
        assert_eq!(rendering(&args(given)), args(kept));
    }

    #[test]
    fn a_name_is_never_a_connection_string() {
        assert_eq!(quoted("app"), "app");
        assert_eq!(quoted("a=b' x"), r"dbname='a=b\' x'");
    }
}
