//! Dumps of PostgreSQL by psql, each in one transaction that is closed only when all of the dump went through with the SHA-256
//! of its record: a restore that fails changes nothing. Of the custom format several tables are loaded at once where that is
//! asked for, into a database that is made for it and dropped again if it fails.

use crds::report::{Reason, exit};
use std::io::{Read, Write};
use std::sync::Arc;

use crds::parts::TlsMode;
use secrecy::ExposeSecret;

use crate::database::postgresql::dump::{directory_of, environment, passfile, quoted};
use crate::database::postgresql::plain_dump::PlainDump;
use crate::database::restore::{Hashed, Job, StoredDump};
use crate::failure::Failure;
use crate::memory::PrivateFile;
use crate::process::Ended;
use crate::process::Program;
use crate::report::Ticker;
use crate::settings::Source;

mod converted;
mod script;

use converted::{Format, Spooled};

/// Port where none is given.
const PORT: u16 = 5432;

/// What a database holds of its users' own; both statements below ask for it.
const OWN: &str = include_str!("own.sql");
/// Empties the database.
const EMPTY: &str = include_str!("empty.sql");

/// Objects of the users' own: how many, and one of them. A schema that holds nothing is free.
fn filled() -> String {
    format!(
        "SELECT count(*), coalesce(min(kind || ' ' || identity), '') FROM ({OWN}) AS own WHERE kind <> 'schema';\n"
    )
}

/// Notes the transaction.
const BEGUN: &str = "SELECT pg_catalog.set_config('kubectl_backup.transaction', pg_catalog.txid_current()::text, false);\n";
/// It is still the same.
const SAME: &str = "\n;DO $restore$ BEGIN
  IF pg_catalog.current_setting('kubectl_backup.transaction', true) IS DISTINCT FROM pg_catalog.txid_current()::text THEN
    RAISE EXCEPTION 'the dump left the transaction of its restore';
  END IF;
END $restore$;
";

/// What a database holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Held {
    missing: bool,
    objects: u64,
    one: String,
}

/// Restores.
///
/// # Errors
/// As the module above.
pub(crate) fn restore(job: &Job<'_>, target: &Source) -> Result<(), Failure> {
    if job.options.definers.is_some() || job.options.definer.is_some() {
        return Err(Failure::settings(
            "spec.definers (--definers) goes with dumps of MySQL and MariaDB: in PostgreSQL the roles that own things are part of the dump",
        ));
    }
    let mut scripts: Vec<PlainDump> = job.dumps.iter().map(|_| PlainDump::default()).collect();
    let to = |dump: &StoredDump| {
        job.options
            .database
            .clone()
            .unwrap_or_else(|| dump.schema.clone())
    };
    let mut sent: Vec<script::Script> = job
        .dumps
        .iter()
        .map(|dump| script::Script::new(&dump.schema, &to(dump)))
        .collect();
    let mut forms = vec![Format::Text; job.dumps.len()];
    let mut out = vec![];
    job.compared(&mut |i, dump, entry| {
        let (Some(script), Some(sent)) = (scripts.get_mut(i), sent.get_mut(i)) else {
            return Ok(());
        };
        let (format, _) = converted::sql(job, dump, entry, &mut |chunk| {
            script.feed(chunk);
            out.clear();
            sent.feed(chunk, &mut out);
            true
        })?;
        if let Some(found) = forms.get_mut(i) {
            *found = format;
        }
        Ok(())
    })?;
    for ((dump, script), sent) in job.dumps.iter().zip(&scripts).zip(&mut sent) {
        out.clear();
        sent.finish(&mut out);
        readable(job, dump, script)?;
        whole(dump, sent)?;
    }
    job.context.reporter.phase("Connecting");
    let server = Server::new(job, target)?;
    let mut held = vec![];
    for dump in job.dumps {
        let found = server.held(server.database(dump))?;
        if found.objects > 0 && !job.options.overwrite {
            return Err(Failure::occupied(
                Reason::TargetNotEmpty,
                &format!(
                    "{} objects (tables, views, functions, types and others) are in database {} already, {} for one",
                    found.objects,
                    server.database(dump),
                    found.one
                ),
            ));
        }
        held.push(found);
    }
    let (tables, rows) = scripts.iter().fold((0, 0), |(tables, rows), script| {
        (tables + script.tables, rows + script.rows)
    });
    job.show(tables, rows);
    let names: Vec<&str> = job.dumps.iter().map(|d| server.database(d)).collect();
    let mut what = format!(
        "{tables} tables with {rows} rows of {} into {} at {}:{}",
        job.what(),
        names.join(", "),
        target.host,
        server.port
    );
    let replaced: u64 = held.iter().map(|h| h.objects).sum();
    if replaced > 0 {
        what.push_str(&format!(", in place of all it holds ({replaced} objects)"));
    }
    if job.options.dry_run {
        job.would(&what);
        return Ok(());
    }
    job.context.reporter.phase("Restoring");
    job.walk(&mut |i, dump, entry| {
        let held = held.get(i).cloned().unwrap_or_default();
        // Sequences that it does not make keep what they were set to.
        let sets = sent.get(i).is_some_and(script::Script::sets_sequences);
        let alone = sets && scripts.get(i).is_some_and(PlainDump::is_data_alone);
        let asked = target.asked_sessions.filter(|n| *n > 1);
        let loaded = match asked {
            Some(n) if held.missing && forms.get(i) == Some(&Format::Custom) => {
                server.load_by_sessions(dump, &held, entry, n)
            }
            _ => {
                if asked.is_some() {
                    job.context.reporter.warn(&one_session(dump, held.missing));
                }
                server.load(dump, &held, (entry, alone))
            }
        };
        loaded.map_err(|e| job.failed(i, e))
    })?;
    job.done(&what);
    Ok(())
}

/// Why several sessions were asked for in vain.
fn one_session(dump: &StoredDump, missing: bool) -> String {
    let why = if missing {
        "several load the custom format of pg_dump alone (args: -Fc)"
    } else {
        "several load into a database that the restore makes, for they can't undo what they did; this one was there"
    };
    format!(
        "{} was restored by one session, in one transaction: {why}",
        dump.name()
    )
}

fn readable(job: &Job<'_>, dump: &StoredDump, script: &PlainDump) -> Result<(), Failure> {
    if script.is_whole() {
        return Ok(());
    }
    Err(Failure::at(
        exit::VERIFICATION,
        Reason::IncompleteDump,
        format!("{} in {} has no closing line", dump.path, job.key()),
    ))
}

/// It can be loaded in one transaction.
fn whole(dump: &StoredDump, script: &script::Script) -> Result<(), Failure> {
    if script.refusals().is_empty() {
        return Ok(());
    }
    Err(Failure::new(
        Reason::NotOneTransaction,
        format!(
            "{} can't be restored in one transaction and into one database: it holds {}; nothing was changed. `kubectl backup download` brings it, for psql by hand",
            dump.name(),
            script.refusals().join(", ")
        ),
    ))
}

/// The server to restore into.
struct Server<'a> {
    job: &'a Job<'a>,
    target: &'a Source,
    port: u16,
    passfile: PrivateFile,
}

impl<'a> Server<'a> {
    fn new(job: &'a Job<'a>, target: &'a Source) -> Result<Self, Failure> {
        let content = passfile(target.password.expose_secret())?;
        Ok(Self {
            job,
            target,
            port: job.port.unwrap_or(PORT),
            passfile: job.context.private_file("restore-pgpass", &content)?,
        })
    }

    /// Name of the database a dump goes into.
    fn database<'b>(&'b self, dump: &'b StoredDump) -> &'b str {
        let to = self.job.options.database.as_deref();
        to.filter(|to| !to.is_empty()).unwrap_or(&dump.schema)
    }

    fn program(&self, database: &str) -> Result<Program, Failure> {
        let mut program = Program::new(
            self.job.context.settings.program("psql")?,
            ["--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1"],
        );
        self.connects(&mut program, database);
        Ok(program)
    }

    /// Tells a client of PostgreSQL where it connects to.
    fn connects(&self, program: &mut Program, database: &str) {
        let target = self.target;
        let socket = target.socket.as_deref().map(directory_of);
        program.args.extend([
            "--no-password".to_owned(),
            format!("--host={}", socket.unwrap_or(&target.host)),
            format!("--port={}", self.port),
            format!("--username={}", target.username),
            format!("--dbname={}", quoted(database)),
        ]);
        program.env = environment(&self.passfile.text());
        let mode = match target.tls {
            TlsMode::Disabled => "disable",
            TlsMode::Preferred => "prefer",
            TlsMode::Required => "require",
            TlsMode::VerifyCA => "verify-ca",
            TlsMode::VerifyIdentity => "verify-full",
        };
        program.env.push(("PGSSLMODE".to_owned(), mode.to_owned()));
        if let Some(ca) = &target.ca_file {
            program.env.push(("PGSSLROOTCERT".to_owned(), ca.clone()));
        }
    }

    fn ask(&self, database: &str, sql: &str) -> Result<(String, Ended), Failure> {
        let mut program = self.program(database)?;
        program
            .args
            .extend(["--tuples-only", "--no-align", "--field-separator=|"].map(str::to_owned));
        let (text, ended) = program.run(self.job.context, sql)?;
        Ok((String::from_utf8_lossy(&text).into_owned(), ended))
    }

    /// What the database holds; one that is not there will be made.
    fn held(&self, database: &str) -> Result<Held, Failure> {
        let (text, ended) = self.ask(database, &filled())?;
        if ended.good() {
            return held(&text).ok_or_else(|| {
                Failure::new(
                    Reason::ClientFailed,
                    format!("psql gave no numbers but {text:?}"),
                )
            });
        }
        let missing = format!("database \"{database}\" does not exist");
        if ended.messages.iter().any(|m| m.contains(&missing)) {
            return Ok(Held {
                missing: true,
                ..Held::default()
            });
        }
        Err(explain("psql", &ended, ""))
    }

    fn create(&self, database: &str) -> Result<(), Failure> {
        // template0 has nothing a dump could meet; template1 may.
        let sql = format!(
            "CREATE DATABASE \"{}\" TEMPLATE template0;\n",
            database.replace('"', "\"\"")
        );
        let (_, ended) = self.ask("postgres", &sql)?;
        if ended.good() {
            return Ok(());
        }
        Err(explain(
            "psql",
            &ended,
            &format!(", when database {database} was to be made"),
        ))
    }

    /// Loads one dump, in one transaction. `alone`: it sets sequences it does not make.
    fn load(
        &self,
        dump: &StoredDump,
        held: &Held,
        (entry, alone): (&mut dyn Read, bool),
    ) -> Result<(), Failure> {
        let (context, database) = (self.job.context, self.database(dump));
        if held.missing {
            self.create(database)?;
        }
        context.reporter.leaves(&if held.missing {
            format!("database {database} was made and is empty")
        } else {
            format!("database {database} is as it was: the restore is one transaction, which is rolled back")
        });
        let mut program = self.program(database)?;
        program
            .args
            .extend(["--single-transaction", "--output=/dev/null", "--file=-"].map(str::to_owned));
        let mut running = program.start(context, true)?;
        let Some(mut input) = running.stdin.take() else {
            return Err(Failure::new(Reason::ClientNotStarted, "psql has no input"));
        };
        let _ticker = Ticker::start(Arc::clone(&context.reporter), || {});
        let sent = match self.send(dump, entry, &mut input) {
            Ok(sent) => sent,
            Err(e) => {
                // Before its input ends: that would close the transaction as a good one.
                drop(running);
                drop(input);
                return Err(self.undone(held, database, e));
            }
        };
        drop(input);
        let ended = running.wait()?;
        if ended.good() {
            context
                .reporter
                .leaves(&format!("database {database} is restored"));
            return Ok(());
        }
        if sent && lost(&ended) {
            context.reporter.leaves(&format!(
                "database {database} is restored as a whole, or is as it was"
            ));
            context.check()?;
            return Err(explain(
                "psql",
                &ended,
                &format!(
                    "; all had been sent, so that database {database} is restored as a whole or as it was: look before restoring again"
                ),
            ));
        }
        context.check()?;
        let sequences = if alone {
            ", but for the values of sequences, which no transaction takes back"
        } else {
            ""
        };
        let context = if held.missing {
            String::new()
        } else {
            let replaced = if self.job.options.overwrite {
                REPLACED
            } else {
                ""
            };
            format!(
                "{replaced}; database {database} is as it was, all of it is one transaction: nothing was changed{sequences}"
            )
        };
        Err(self.undone(held, database, explain("psql", &ended, &context)))
    }

    /// What was made for a restore that failed goes.
    fn undone(&self, held: &Held, database: &str, e: Failure) -> Failure {
        if !held.missing {
            return e;
        }
        let sql = format!("DROP DATABASE \"{}\";\n", database.replace('"', "\"\""));
        let dropped = self
            .ask("postgres", &sql)
            .is_ok_and(|(_, ended)| ended.good());
        let end = if dropped {
            "was dropped again"
        } else {
            "is there and empty"
        };
        Failure {
            message: format!(
                "{}; database {database}, which was made for it, {end}",
                e.message
            ),
            ..e
        }
    }

    /// Loads a dump of the custom format, several tables at once, into a database that is made for it.
    fn load_by_sessions(
        &self,
        dump: &StoredDump,
        held: &Held,
        entry: &mut dyn Read,
        sessions: usize,
    ) -> Result<(), Failure> {
        let (context, database) = (self.job.context, self.database(dump));
        let spooled = Spooled::new(self.job, dump, entry)?;
        self.create(database)?;
        context.reporter.leaves(&format!(
            "database {database} was made and holds a part of the dump: drop it before restoring again"
        ));
        let args = vec!["--exit-on-error".to_owned(), format!("--jobs={sessions}")];
        let mut program = converted::program(self.job, args)?;
        self.connects(&mut program, database);
        program.args.push(spooled.path.display().to_string());
        let _ticker = Ticker::start(Arc::clone(&context.reporter), || {});
        let (_, ended) = program.run(context, "")?;
        if ended.good() {
            context
                .reporter
                .leaves(&format!("database {database} is restored"));
            return Ok(());
        }
        context.check()?;
        Err(self.undone(held, database, explain("pg_restore", &ended, "")))
    }

    /// Sends it all; true if all was taken. A client that stops reading tells why itself.
    fn send(
        &self,
        dump: &StoredDump,
        entry: &mut dyn Read,
        input: &mut (impl Write + Send),
    ) -> Result<bool, Failure> {
        let mut out = BEGUN.as_bytes().to_vec();
        if self.job.options.overwrite {
            out.extend_from_slice(EMPTY.replace("@OWN@", OWN).as_bytes());
        }
        if input.write_all(&out).is_err() {
            return Ok(false);
        }
        let mut script = script::Script::new(&dump.schema, self.database(dump));
        let mut hashed = Hashed::new(self.job.context, entry);
        let (_, taken) = converted::sql(self.job, dump, &mut hashed, &mut |chunk| {
            out.clear();
            script.feed(chunk, &mut out);
            input.write_all(&out).is_ok()
        })?;
        if !taken {
            return Ok(false);
        }
        if !hashed.is(dump) {
            return Err(converted::not_what_was_checked());
        }
        out.clear();
        script.finish(&mut out);
        out.extend_from_slice(SAME.as_bytes());
        Ok(input.write_all(&out).is_ok())
    }
}

/// Said of a failure after the target was emptied.
const REPLACED: &str = ", in place of what was there";

/// The server went away.
fn lost(ended: &Ended) -> bool {
    let words = [
        "server closed the connection",
        "connection to server was lost",
        "could not receive data",
        "terminating connection",
        "SSL connection has been closed",
    ];
    ended
        .messages
        .iter()
        .any(|m| words.iter().any(|w| m.contains(w)))
        || ended.messages.is_empty()
}

/// `4|public.t`.
fn held(text: &str) -> Option<Held> {
    let mut parts = text.trim().splitn(2, '|');
    Some(Held {
        missing: false,
        objects: parts.next()?.parse().ok()?,
        one: parts.next()?.to_owned(),
    })
}

/// The failure of a client that ended badly, by what it said.
fn explain(client: &str, ended: &Ended, context: &str) -> Failure {
    let said = ended.messages.join(" / ");
    let lower = said.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|w| lower.contains(w));
    let (reason, remedy) = if says(&[
        "password authentication failed",
        "no password supplied",
        "pg_hba.conf",
        "fatal:  role",
        "fatal: role",
    ]) {
        (
            Reason::AccessDenied,
            "check user name and password in the Secret of spec.to.credentialsSecretRef (--secret)",
        )
    } else if says(&["could not translate host name"]) {
        (Reason::HostNotFound, "check spec.to.host (--to)")
    } else if says(&["certificate", "ssl error", "does not support ssl"]) {
        (Reason::TlsFailed, "check spec.to.tls (--tls)")
    } else if says(&["connection to server", "could not connect"]) {
        (
            Reason::ConnectionFailed,
            "check spec.to.host and port (--to), that the server runs, and network policies",
        )
    } else if lower.contains("role \"") && lower.contains("does not exist") {
        (
            Reason::RoleMissing,
            "make the role on the target first, or dump as SQL (no --format in args) with args --no-owner --no-privileges",
        )
    } else if says(&["permission denied", "must be owner", "must be member"]) {
        (
            Reason::PermissionDenied,
            "restore as a user who owns the database and may make what the dump makes",
        )
    } else if says(&["already exists"]) && context.contains(REPLACED) {
        (
            Reason::RestoreFailed,
            "the dump makes it twice, or an extension of the target holds it: restore into a new database (spec.to.database, --database)",
        )
    } else if says(&["already exists"]) {
        (
            Reason::TargetNotEmpty,
            "restore into a database of another name (spec.to.database, --database), or set overwrite",
        )
    } else {
        (Reason::RestoreFailed, "see its message")
    };
    let said = if said.is_empty() {
        "it said nothing"
    } else {
        &said
    };
    Failure::at(
        exit::SOURCE,
        reason,
        format!(
            "{client} ended with {}: {said}: {remedy}{context}",
            ended.status_text()
        ),
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_name_may_hold_the_separator() {
        let found = held("4|public.\"a|b\"\n").unwrap();
        assert_eq!((found.objects, found.one.as_str()), (4, "public.\"a|b\""));
        assert_eq!(held(""), None);
    }
}
