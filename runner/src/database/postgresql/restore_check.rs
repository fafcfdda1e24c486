//! Dumps of PostgreSQL, in a scratch cluster that listens on a socket alone.

use crds::report::Reason;
use std::io::{ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;

use crate::database::contents::Contents;
use crate::database::postgresql::dump::rendering;
use crate::database::postgresql::plain_dump::{Needs, PlainDump};
use crate::database::restore_check::{Kept, RestoreCheck, VOLUME, drain};
use crate::database::scratch::{Home, Server, last, no_room};
use crate::failure::Failure;
use crate::process::Ended;
use crate::process::Program;

/// Name of the database.
const NAME: &str = "restored";
/// Its superuser: what a dump owns is no other's.
const USER: &str = "postgres";
/// So many roles that a dump needs are found one by one, by what the server says.
const ROLES: usize = 50;
/// Where Debian's packages keep servers, by version.
const DEBIAN: &str = "/usr/lib/postgresql";
/// Nothing of it is kept, and it needs no helper.
const SETTINGS: [&str; 12] = [
    "listen_addresses=",
    "fsync=off",
    "full_page_writes=off",
    "synchronous_commit=off",
    "wal_level=minimal",
    "max_wal_senders=0",
    "jit=off",
    "autovacuum=off",
    "dynamic_shared_memory_type=mmap",
    "shared_buffers=32MB",
    "max_parallel_maintenance_workers=0",
    "max_parallel_workers_per_gather=0",
];

pub(crate) fn run(check: &RestoreCheck<'_>) -> Result<String, Failure> {
    let bin = programs(check)?;
    let converted = convert(check, &bin)?;
    let dump = converted.as_ref().unwrap_or(check.dump);
    let script = read(check, dump)?;
    if let Some(flaw) = script.flaw() {
        return Err(check.bad(&format!("it {flaw}")));
    }
    let needs = script.needs.clone();
    let alone = script.is_data_alone();
    let options = match &check.dump.holds {
        Some(holds) => holds.options.clone(),
        None => rendering(check.database().map_or(&[], |d| d.args.as_slice())),
    };
    let expected = script.holds(vec![]);
    let here = able(check, &bin, &needs, alone)?;
    // Another version may refuse what it no longer knows, and words the same otherwise.
    let same = here == needs.version;
    let cluster = Cluster::start(check, bin)?;
    cluster.load(dump, &needs, same)?;
    let restored = cluster.dump(&options)?;
    check.equal(&expected, &restored).map_err(|e| match same {
        true => e,
        false => another(check, &e.message),
    })
}

/// What the server of another version than the dump's says or has.
fn another(check: &RestoreCheck<'_>, what: &str) -> Failure {
    check.unproven(
        &format!("the scratch server is of another version than the dump: {what}"),
        "set spec.job.clientImage to an image with the server of the dump's version, or spec.job.verify.mode Checksum",
    )
}

fn read(check: &RestoreCheck<'_>, dump: &Kept) -> Result<PlainDump, Failure> {
    let mut script = PlainDump::default();
    dump.read(check.context, |chunk| script.feed(chunk))?;
    Ok(script)
}

/// The directory with the server's programs.
fn programs(check: &RestoreCheck<'_>) -> Result<PathBuf, Failure> {
    let whole = |d: &PathBuf| {
        ["initdb", "postgres", "psql", "pg_dump", "pg_restore"]
            .iter()
            .all(|p| d.join(p).is_file())
    };
    let path = check.context.settings.path.iter().find(|d| whole(d));
    let number = |d: &PathBuf| {
        let version = d.parent().and_then(Path::file_name);
        version.and_then(|v| v.to_str()?.parse::<u32>().ok())
    };
    let debian = std::fs::read_dir(DEBIAN).into_iter().flatten().flatten();
    let newest = debian
        .map(|e| e.path().join("bin"))
        .filter(whole)
        .max_by_key(number);
    path.cloned()
        .or(newest)
        .ok_or_else(|| check.lacks("initdb and postgres", "PostgreSQL"))
}

/// A dump in one of pg_dump's own formats as SQL.
fn convert(check: &RestoreCheck<'_>, bin: &Path) -> Result<Option<Kept>, Failure> {
    let mut head = [0; 512];
    let mut opened = check.dump.open()?;
    let mut n = 0;
    while n < head.len() {
        match opened.read(&mut head[n..]) {
            Ok(0) => break,
            Ok(more) => n += more,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(no_room(VOLUME, &check.dump.file, &e)),
        }
    }
    if crate::database::postgresql::plain_dump::syntax::is_text(&head[..n]) {
        return Ok(None);
    }
    let own = check.area.path.join("own-format");
    let text = check.area.path.join("own-format.sql");
    let mut file = std::fs::File::create(&own).map_err(|e| no_room(VOLUME, &own, &e))?;
    std::io::copy(&mut check.dump.open()?, &mut file).map_err(|e| no_room(VOLUME, &own, &e))?;
    let args = [
        format!("--file={}", text.display()),
        own.display().to_string(),
    ];
    let (_, ended) = Program::new(bin.join("pg_restore"), args).run(check.context, "")?;
    let _ = std::fs::remove_file(&own);
    if !ended.good() {
        let said = ended.messages.join(" / ");
        return Err(if said.contains("unsupported version") {
            too_old(check, bin, &said)
        } else {
            check.bad(&format!("pg_restore said: {said}"))
        });
    }
    Ok(Some(Kept {
        database_type: check.dump.database_type,
        database: check.dump.database.clone(),
        base: check.dump.base.clone(),
        file: text,
        compressed: false,
        holds: None,
    }))
}

fn too_old(check: &RestoreCheck<'_>, bin: &Path, what: &str) -> Failure {
    check.unproven(
        &format!("{what}, and the server in {} is older", bin.display()),
        "set spec.job.clientImage to an image with the server of that version (it then has the clients, too)",
    )
}

/// The server that is here can load such a dump; gives its version.
fn able(
    check: &RestoreCheck<'_>,
    bin: &Path,
    needs: &Needs,
    alone: bool,
) -> Result<Option<u32>, Failure> {
    let by_hand = |why: &str, remedy: &str| Err(check.unproven(why, remedy));
    if needs.connects {
        return by_hand(
            "the dump makes its database and changes to it (--create)",
            "leave --create out of args, or set spec.job.verify.mode Checksum",
        );
    }
    if alone {
        return by_hand(
            "the dump holds rows alone, and no table to load them into",
            "leave --data-only out of args, or set spec.job.verify.mode Checksum",
        );
    }
    let version = Program::new(bin.join("postgres"), ["--version"]).run(check.context, "")?;
    let version = major(&String::from_utf8_lossy(&version.0));
    match (version, needs.version) {
        (Some(here), Some(made)) if here < made => Err(too_old(
            check,
            bin,
            &format!("the dump is of pg_dump {made}"),
        )),
        _ => Ok(version),
    }
}

/// `postgres (PostgreSQL) 15.18 (Debian …)`.
fn major(text: &str) -> Option<u32> {
    let (_, rest) = text.split_once("(PostgreSQL) ")?;
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}

/// A cluster of its own.
struct Cluster<'a> {
    check: &'a RestoreCheck<'a>,
    bin: PathBuf,
    // Before its home: it ends first.
    server: std::cell::RefCell<Server>,
    home: Home,
}

impl<'a> Cluster<'a> {
    fn start(check: &'a RestoreCheck<'a>, bin: PathBuf) -> Result<Self, Failure> {
        let home = Home::new(check.area, "postgresql", true)?;
        let data = home.path.join("data");
        let mut init = home.command(&bin.join("initdb"));
        init.args([
            "--auth=trust",
            "--encoding=UTF8",
            "--no-locale",
            "--no-sync",
        ])
        .arg(format!("--username={USER}"))
        .arg(format!("--pgdata={}", data.display()));
        named(&mut init, &home)?;
        let made = init.output().map_err(|e| {
            Failure::new(
                Reason::ScratchFailed,
                format!("initdb can't be started: {e}"),
            )
        })?;
        if !made.status.success() {
            let said = last(check.context, &made.stderr);
            return Err(if said.contains("could not look up effective user") {
                check.unproven(
                    "initdb does not run as a user without a name, and the image has no libnss_wrapper.so",
                    "set spec.job.podSecurityContext.runAsUser to a user of the image",
                )
            } else {
                Failure::new(
                    Reason::ScratchFailed,
                    format!(
                        "initdb ended with {}: {said}; give {VOLUME} more space",
                        made.status
                    ),
                )
            });
        }
        let mut command = home.command(&bin.join("postgres"));
        command.arg("-D").arg(&data).arg("-k").arg(&home.path);
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        let server = Server::start(command, &home, Signal::QUIT)?;
        let cluster = Self {
            check,
            bin,
            server: server.into(),
            home,
        };
        let socket = cluster.home.path.join(".s.PGSQL.5432");
        let mut server = cluster.server.borrow_mut();
        server.wait_until(check.context, &socket, || {
            Ok(cluster.ask(USER, "SELECT 1;\n")?.1.good())
        })?;
        drop(server);
        Ok(cluster)
    }

    fn psql(&self, database: &str) -> Program {
        let mut program = Program::new(
            self.bin.join("psql"),
            [
                "--no-psqlrc".to_owned(),
                "--no-password".to_owned(),
                "--quiet".to_owned(),
                "--set=ON_ERROR_STOP=1".to_owned(),
                format!("--host={}", self.home.path.display()),
                format!("--username={USER}"),
                format!("--dbname={database}"),
            ],
        );
        program.env = vec![("LC_ALL".to_owned(), "C".to_owned())];
        program
    }

    fn ask(&self, database: &str, sql: &str) -> Result<(Vec<u8>, Ended), Failure> {
        self.psql(database).run(self.check.context, sql)
    }

    fn must(&self, sql: &str) -> Result<(), Failure> {
        let (_, ended) = self.ask(USER, sql)?;
        if ended.good() {
            return Ok(());
        }
        Err(Failure::new(
            Reason::ScratchFailed,
            format!(
                "the scratch server refuses {}: {}",
                sql.trim(),
                ended.messages.join(" / ")
            ),
        ))
    }

    /// Makes the database anew, in the encoding of the dump if a database can have it.
    fn fresh(&self, needs: &Needs) -> Result<(), Failure> {
        self.must(&format!(
            "SET client_min_messages = warning;\nDROP DATABASE IF EXISTS {NAME};\n"
        ))?;
        let create = format!("CREATE DATABASE {NAME} TEMPLATE template0");
        let encoding = needs.encoding.as_deref().unwrap_or("UTF8");
        let encoding: String = encoding.chars().filter(|c| *c != '\'').collect();
        let (_, ended) = self.ask(USER, &format!("{create} ENCODING '{encoding}';\n"))?;
        if ended.good() {
            return Ok(());
        }
        self.must(&format!("{create} ENCODING 'UTF8';\n"))
    }

    fn role(&self, name: &str) -> Result<(), Failure> {
        // Whatever a dump gives a role, the role may have.
        self.must(&format!(
            "CREATE ROLE \"{}\" SUPERUSER;\n",
            name.replace('"', "\"\"")
        ))
    }

    /// Loads it as a restore does: in one transaction that ends at the first error.
    fn load(&self, dump: &Kept, needs: &Needs, same: bool) -> Result<(), Failure> {
        for role in &needs.roles {
            self.role(role)?;
        }
        for _ in 0..ROLES {
            self.fresh(needs)?;
            let ended = self.feed(dump)?;
            self.check.context.check()?;
            if ended.good() {
                return Ok(());
            }
            let said = errors(&ended);
            match missing_role(&said) {
                Some(role) => self.role(&role)?,
                None => return Err(self.refused((needs, same), &ended, &said)),
            }
        }
        Err(self.check.unproven(
            &format!("the dump names more than {ROLES} roles that were not seen in it"),
            "dump with args --no-owner --no-privileges, or set spec.job.verify.mode Checksum",
        ))
    }

    fn feed(&self, dump: &Kept) -> Result<Ended, Failure> {
        let mut program = self.psql(NAME);
        program
            .args
            .extend(["--single-transaction", "--output=/dev/null", "--file=-"].map(str::to_owned));
        let mut running = program.start(self.check.context, true)?;
        let Some(mut input) = running.stdin.take() else {
            return Err(Failure::new(Reason::ClientNotStarted, "psql has no input"));
        };
        // A client that stops reading tells why itself.
        let mut open = true;
        let read = dump.read(self.check.context, |chunk| {
            open = open && input.write_all(chunk).is_ok();
        });
        if let Err(e) = read {
            drop(running);
            return Err(e);
        }
        drop(input);
        running.wait()
    }

    /// Why the dump did not load: by what it is, or by what this server is.
    fn refused(&self, (needs, same): (&Needs, bool), ended: &Ended, said: &str) -> Failure {
        const OF_THE_SERVER: [&str; 12] = [
            "is not available",
            "extension control file",
            "could not access file",
            "shared_preload_libraries",
            "unrecognized configuration parameter",
            "for encoding",
            "could not find the",
            "invalid locale",
            "tablespace",
            "could not extend file",
            "No space left",
            "out of memory",
        ];
        let text = format!("psql ended with {} and said: {said}", ended.status_text());
        if !self.server.borrow_mut().runs() || said.contains("connection to server") {
            let words = self.server.borrow().said(self.check.context);
            return self.check.unproven(
                &format!("the scratch server ended ({words})"),
                &format!("give {VOLUME} and spec.job.verify.resources more"),
            );
        }
        if needs.drops && said.contains("does not exist") {
            return self.check.unproven(
                &format!("the dump drops what an empty database does not have (--clean): {text}"),
                "add --if-exists to args",
            );
        }
        if OF_THE_SERVER.iter().any(|words| said.contains(words)) {
            return self.check.unproven(
                &format!("the scratch server does not take the dump: {text}"),
                "set spec.job.clientImage to an image whose PostgreSQL has what is missing, or spec.job.verify.mode Checksum",
            );
        }
        if !same {
            return another(self.check, &text);
        }
        self.check.bad(&text)
    }

    /// Dumps it again, with the options that word rows otherwise.
    fn dump(&self, options: &[String]) -> Result<Contents, Failure> {
        let mut args = vec![
            "--no-password".to_owned(),
            format!("--host={}", self.home.path.display()),
            format!("--username={USER}"),
        ];
        args.extend(options.iter().cloned());
        args.push(format!("--dbname={NAME}"));
        let mut program = Program::new(self.bin.join("pg_dump"), args);
        program.env = vec![("LC_ALL".to_owned(), "C".to_owned())];
        let mut running = program.start(self.check.context, false)?;
        let Some(mut output) = running.stdout.take() else {
            return Err(Failure::new(
                Reason::ClientNotStarted,
                "pg_dump has no output",
            ));
        };
        let mut script = PlainDump::default();
        let read = drain(self.check.context, &mut output, &mut |c| script.feed(c));
        self.check.context.check()?;
        let ended = running.wait()?;
        if read.is_err() || !ended.good() || !script.is_whole() {
            return Err(Failure::new(
                Reason::ScratchFailed,
                format!(
                    "the restored data can't be dumped again: pg_dump ended with {}: {}",
                    ended.status_text(),
                    ended.messages.join(" / ")
                ),
            ));
        }
        Ok(script.holds(vec![]))
    }
}

/// What psql said of errors.
fn errors(ended: &Ended) -> String {
    let of_error =
        |m: &&String| m.contains("ERROR:") || m.contains("CONTEXT:") || m.contains("FATAL:");
    let all: Vec<&str> = ended
        .messages
        .iter()
        .filter(of_error)
        .map(String::as_str)
        .collect();
    if all.is_empty() {
        ended.messages.join(" / ")
    } else {
        all.join(" / ")
    }
}

/// `ERROR:  role "x" does not exist`.
fn missing_role(said: &str) -> Option<String> {
    let (_, rest) = said.split_once("role \"")?;
    let (name, _) = rest.split_once("\" does not exist")?;
    Some(name.to_owned())
}

/// initdb looks its user's name up; a pod's user often has none. Where the library of nss_wrapper is,
/// it gets one by that.
fn named(command: &mut Command, home: &Home) -> Result<(), Failure> {
    let uid = home
        .user
        .unwrap_or_else(|| rustix::process::geteuid().as_raw());
    let gid = home
        .user
        .unwrap_or_else(|| rustix::process::getegid().as_raw());
    let known = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    if has(&known, uid) {
        return Ok(());
    }
    let Some(library) = library() else {
        return Ok(());
    };
    for (file, variable, text) in [
        (
            "passwd",
            "NSS_WRAPPER_PASSWD",
            format!("{USER}:x:{uid}:{gid}::/:/bin/false\n"),
        ),
        ("group", "NSS_WRAPPER_GROUP", format!("{USER}:x:{gid}:\n")),
    ] {
        let path = home.path.join(file);
        std::fs::write(&path, text).map_err(|e| no_room(home.volume, &path, &e))?;
        command.env(variable, path);
    }
    command.env("LD_PRELOAD", library);
    Ok(())
}

fn has(passwd: &str, uid: u32) -> bool {
    let uid = uid.to_string();
    passwd.lines().any(|l| l.split(':').nth(2) == Some(&uid))
}

fn library() -> Option<PathBuf> {
    let below = std::fs::read_dir("/usr/lib")
        .into_iter()
        .flatten()
        .flatten();
    let mut places: Vec<PathBuf> = below.map(|e| e.path()).collect();
    places.extend(["/usr/lib64", "/usr/lib"].map(PathBuf::from));
    places
        .into_iter()
        .map(|d| d.join("libnss_wrapper.so"))
        .find(|p| p.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_programs_are_understood() {
        assert_eq!(
            major("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n"),
            Some(15)
        );
        assert_eq!(major("postgres (PostgreSQL) 18beta1"), Some(18));
        assert_eq!(
            missing_role("psql:<stdin>:31: ERROR:  role \"a \"b\" c\" does not exist").as_deref(),
            Some("a \"b\" c")
        );
        assert_eq!(missing_role("ERROR:  relation \"x\" does not exist"), None);
        let passwd = "root:x:0:0::/root:/bin/sh\npostgres:x:999:999::/:/bin/sh\n";
        assert!(has(passwd, 999) && !has(passwd, 99) && !has(passwd, 65532));
    }
}
