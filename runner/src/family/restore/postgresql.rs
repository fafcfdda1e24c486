//! Plain dumps of PostgreSQL by psql, each in one transaction that is closed only when all of the
//! dump went through with the SHA-256 of its record: a restore that fails changes nothing.

use std::io::{ErrorKind, Read, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crds::mysql_backup::TlsMode;
use secrecy::ExposeSecret;
use sha2::{Digest, Sha256};

use crate::failure::Failure;
use crate::pipeline::hex;
use crate::report::Ticker;
use crate::restore::occupied;
use crate::settings::Source;
use crate::source::Ended;

use super::super::dump::postgresql::{directory_of, environment, passfile, quoted};
use super::super::dump::{PrivateFile, private_file};
use super::super::fetch;
use super::super::process::Program;
use super::super::script::Script;
use super::Job;
use super::choice::Dump;

/// Port where none is given.
const PORT: u16 = 5432;

/// Relations of the user's own: how many, and one of them.
const FILLED: &str = "SELECT count(*), coalesce(min(format('%I.%I', n.nspname, c.relname)), '')
  FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'
   AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d WHERE d.classid = 'pg_catalog.pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e');
";

/// Empties the database, but for the schema public itself and what extensions made: a plain dump
/// drops nothing before it makes it anew.
const EMPTY: &str = "SET LOCAL client_min_messages = warning;
DO $restore$
DECLARE commands text[]; command text;
BEGIN
  SELECT array_agg(c ORDER BY place) INTO commands FROM (
    SELECT 1 AS place, format('DROP SCHEMA IF EXISTS %I CASCADE', n.nspname) AS c
      FROM pg_catalog.pg_namespace n
     WHERE n.nspname NOT IN ('information_schema', 'public') AND n.nspname !~ '^pg_'
       AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d WHERE d.classid = 'pg_catalog.pg_namespace'::regclass AND d.objid = n.oid AND d.deptype = 'e')
    UNION ALL
    SELECT 2, format('DROP %s IF EXISTS public.%I CASCADE', CASE k.relkind WHEN 'v' THEN 'VIEW' WHEN 'm' THEN 'MATERIALIZED VIEW' WHEN 'f' THEN 'FOREIGN TABLE' WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END, k.relname)
      FROM pg_catalog.pg_class k JOIN pg_catalog.pg_namespace n ON n.oid = k.relnamespace
     WHERE n.nspname = 'public' AND k.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
       AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d WHERE d.classid = 'pg_catalog.pg_class'::regclass AND d.objid = k.oid AND d.deptype = 'e')
    UNION ALL
    SELECT 3, format('DROP ROUTINE IF EXISTS public.%I(%s) CASCADE', p.proname, pg_catalog.pg_get_function_identity_arguments(p.oid))
      FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
     WHERE n.nspname = 'public'
       AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d WHERE d.classid = 'pg_catalog.pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e')
    UNION ALL
    SELECT 4, format('DROP TYPE IF EXISTS public.%I CASCADE', t.typname)
      FROM pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace LEFT JOIN pg_catalog.pg_class k ON k.oid = t.typrelid
     WHERE n.nspname = 'public' AND (t.typtype IN ('d', 'e', 'r') OR t.typtype = 'c' AND k.relkind = 'c')
       AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d WHERE d.classid = 'pg_catalog.pg_type'::regclass AND d.objid = t.oid AND d.deptype = 'e')
  ) AS all_commands;
  FOREACH command IN ARRAY coalesce(commands, '{}') LOOP EXECUTE command; END LOOP;
END
$restore$;
";

/// What a database holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Held {
    missing: bool,
    relations: u64,
    one: String,
}

/// Restores.
///
/// # Errors
/// As the module above.
pub(super) fn restore(job: &Job<'_>, target: &Source) -> Result<(), Failure> {
    let mut scripts: Vec<Script> = job.dumps.iter().map(|_| Script::default()).collect();
    job.check(&mut |i, chunk| {
        if let Some(script) = scripts.get_mut(i) {
            script.feed(chunk);
        }
    })?;
    for (dump, script) in job.dumps.iter().zip(&scripts) {
        readable(job, dump, script)?;
    }
    job.context.reporter.phase("Connecting");
    let server = Server::new(job, target)?;
    let mut held = vec![];
    for dump in job.dumps {
        let found = server.held(server.database(dump))?;
        if found.relations > 0 && !job.options.overwrite {
            return Err(occupied(
                "TargetNotEmpty",
                &format!(
                    "{} tables, views and sequences are in database {} already, {} for one",
                    found.relations,
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
    let replaced: u64 = held.iter().map(|h| h.relations).sum();
    if replaced > 0 {
        what.push_str(&format!(
            ", in place of all it holds ({replaced} tables, views and sequences)"
        ));
    }
    if job.options.dry_run {
        job.would(&what);
        return Ok(());
    }
    job.context.reporter.phase("Restoring");
    job.walk(&mut |i, dump, entry| {
        let held = held.get(i).cloned().unwrap_or_default();
        server
            .load(dump, &held, entry)
            .map_err(|e| job.failed(i, e))
    })?;
    job.done(&what);
    Ok(())
}

fn readable(job: &Job<'_>, dump: &Dump, script: &Script) -> Result<(), Failure> {
    if !script.is_text() {
        return Err(Failure::settings(format!(
            "{} was dumped in a format of pg_dump's own (its args say so) and is restored by hand, with pg_restore: spec.to.volume (--to-volume) puts {} on a volume, `kubectl backup download` brings the tar that holds it",
            dump.name(),
            dump.path
        )));
    }
    if script.is_whole() {
        return Ok(());
    }
    Err(Failure::verification(
        "IncompleteDump",
        format!("{} in {} has no closing line", dump.path, job.key()),
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
            port: job.family.target_port.unwrap_or(PORT),
            passfile: private_file(job.context, "restore-pgpass", &content)?,
        })
    }

    /// Name of the database a dump goes into.
    fn database<'b>(&'b self, dump: &'b Dump) -> &'b str {
        let to = self.job.options.database.as_deref();
        to.filter(|to| !to.is_empty()).unwrap_or(&dump.schema)
    }

    fn program(&self, database: &str) -> Result<Program, Failure> {
        let target = self.target;
        let socket = target.socket.as_deref().map(directory_of);
        let mut program = Program::new(
            Program::find(self.job.context, "psql")?,
            [
                "--no-psqlrc".to_owned(),
                "--no-password".to_owned(),
                "--quiet".to_owned(),
                "--set=ON_ERROR_STOP=1".to_owned(),
                format!("--host={}", socket.unwrap_or(&target.host)),
                format!("--port={}", self.port),
                format!("--username={}", target.username),
                format!("--dbname={}", quoted(database)),
            ],
        );
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
        Ok(program)
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
        let (text, ended) = self.ask(database, FILLED)?;
        if ended.good() {
            return held(&text).ok_or_else(|| {
                Failure::source("ClientFailed", format!("psql gave no numbers but {text:?}"))
            });
        }
        let missing = format!("database \"{database}\" does not exist");
        if ended.messages.iter().any(|m| m.contains(&missing)) {
            return Ok(Held {
                missing: true,
                ..Held::default()
            });
        }
        Err(explain(&ended, ""))
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
            &ended,
            &format!(", when database {database} was to be made"),
        ))
    }

    /// Loads one dump, in one transaction.
    fn load(&self, dump: &Dump, held: &Held, entry: &mut dyn Read) -> Result<(), Failure> {
        let (context, database) = (self.job.context, self.database(dump));
        if held.missing {
            self.create(database)?;
        }
        let mut program = self.program(database)?;
        program
            .args
            .extend(["--single-transaction", "--output=/dev/null", "--file=-"].map(str::to_owned));
        let mut running = program.start(context, true)?;
        let Some(mut input) = running.stdin.take() else {
            return Err(Failure::other("ClientNotStarted", "psql has no input"));
        };
        let _ticker = Ticker::start(Arc::clone(&context.reporter), || {});
        let sent = self.send(dump, held, entry, &mut input);
        if let Err(e) = sent {
            // Before its input ends: that would close the transaction as a good one.
            drop(running);
            drop(input);
            return Err(e);
        }
        drop(input);
        let ended = running.wait()?;
        context.check()?;
        if ended.good() {
            return Ok(());
        }
        Err(explain(
            &ended,
            "; nothing was changed, all of it is one transaction",
        ))
    }

    /// Sends it all. A client that stops reading tells why itself.
    fn send(
        &self,
        dump: &Dump,
        held: &Held,
        entry: &mut dyn Read,
        input: &mut impl Write,
    ) -> Result<(), Failure> {
        let context = self.job.context;
        if held.relations > 0 && input.write_all(EMPTY.as_bytes()).is_err() {
            return Ok(());
        }
        let (mut hash, mut bytes) = (Sha256::new(), 0u64);
        let mut buffer = vec![0; 256 * 1024];
        loop {
            let n = match entry.read(&mut buffer) {
                Ok(0) => break,
                Ok(n) => n,
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) => return Err(fetch::damaged(self.job.key(), e)),
            };
            context.check()?;
            hash.update(&buffer[..n]);
            bytes += n as u64;
            let raw = &context.reporter.counters.raw;
            raw.store(bytes, Ordering::Relaxed);
            if input.write_all(&buffer[..n]).is_err() {
                return Ok(());
            }
        }
        if hex(&hash.finalize()) == dump.sha256 {
            return Ok(());
        }
        Err(Failure::verification(
            "RestoreIncomplete",
            "what was read is not the dump that was checked before; nothing was changed",
        ))
    }
}

/// `4|public.t`.
fn held(text: &str) -> Option<Held> {
    let mut parts = text.trim().splitn(2, '|');
    Some(Held {
        missing: false,
        relations: parts.next()?.parse().ok()?,
        one: parts.next()?.to_owned(),
    })
}

/// The failure of a psql that ended badly, by what it said.
fn explain(ended: &Ended, context: &str) -> Failure {
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
            "AccessDenied",
            "check user name and password in the Secret of spec.to.credentialsSecretRef (--secret)",
        )
    } else if says(&["could not translate host name"]) {
        ("HostNotFound", "check spec.to.host (--to)")
    } else if says(&["certificate", "ssl error", "does not support ssl"]) {
        ("TlsFailed", "check spec.to.tls (--tls)")
    } else if says(&["connection to server", "could not connect"]) {
        (
            "ConnectionFailed",
            "check spec.to.host and port (--to), that the server runs, and network policies",
        )
    } else if lower.contains("role \"") && lower.contains("does not exist") {
        (
            "RoleMissing",
            "make the role on the target first, or dump with args --no-owner --no-privileges",
        )
    } else if says(&["permission denied", "must be owner", "must be member"]) {
        (
            "PermissionDenied",
            "restore as a user who owns the database and may make what the dump makes",
        )
    } else if says(&["already exists"]) {
        (
            "TargetNotEmpty",
            "restore into a database of another name (spec.to.database, --database), or set overwrite",
        )
    } else {
        ("RestoreFailed", "see its message")
    };
    let said = if said.is_empty() {
        "it said nothing"
    } else {
        &said
    };
    Failure::source(
        reason,
        format!(
            "psql ended with {}: {said}: {remedy}{context}",
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
        assert_eq!((found.relations, found.one.as_str()), (4, "public.\"a|b\""));
        assert_eq!(held(""), None);
    }
}
