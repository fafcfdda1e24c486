//! A scratch MariaDB without network, to restore dumps of MySQL and MariaDB into; of MySQL's a MySQL, where the image has one.
//! What it refuses or has otherwise proves nothing where it is older than the source or of another flavour.

use crds::parts::TlsMode;
use crds::report::Reason;
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;

use crate::context::Context;
use crate::database::contents::Table;
use crate::database::mysql::dump_reader::Summary;
use crate::database::mysql::load::{self, Loaded};
use crate::database::mysql::native;
use crate::database::mysql::source::{self, Client};
use crate::database::mysql::sql::{Rewrite, Script};
use crate::database::scratch::{Area, Home, Server, last};
use crate::failure::Failure;
use crate::process::Ended;
use crate::settings::{Databases, Source};

/// The last error of a client that did not end well.
pub(crate) fn said(ended: &Ended) -> String {
    let errors = |m: &&String| m.starts_with("ERROR");
    let last = ended.messages.iter().rev().find(errors);
    let last = last.or_else(|| ended.messages.last());
    last.map_or("nothing", String::as_str).to_owned()
}

/// Errors by which a server says that it lacks something, or room, and not that the dump is wrong.
const OF_THE_SERVER: [u32; 25] = [
    3, 28, 1021, 1030, 1037, 1038, 1041, 1053, 1114, 1115, 1118, 1126, 1127, 1128, 1193, 1235,
    1273, 1286, 1289, 1478, 1524, 1911, 2006, 2013, 4161,
];
/// The same without a number.
const IN_WORDS: [&str; 4] = [
    "is not loaded",
    "is full",
    "Lost connection",
    "server has gone away",
];
/// Errors about a database, table or function that is not there.
const NOT_THERE: [u32; 4] = [1049, 1146, 1305, 1630];

/// Why what a scratch server says, or has otherwise, proves nothing: it is of another flavour than the
/// source, or older; it lacks what the dump uses; or that is in a database of which no dump is here.
/// `None` if it is able: then the dump is at fault. `databases` are those of the dump.
pub(crate) fn unable(source: &str, here: &str, said: &str, databases: &[String]) -> Option<String> {
    if source.is_empty() {
        return Some("of what version its server was is not known".to_owned());
    }
    if is_mariadb(source) != is_mariadb(here) {
        return Some(format!(
            "it is of a server {source}, and the scratch server is {here}"
        ));
    }
    if release(here) < release(source) {
        return Some(format!(
            "it is of a server {source}, and the scratch server is older ({here})"
        ));
    }
    let number = source::number(said);
    if number.is_some_and(|n| OF_THE_SERVER.contains(&n))
        || IN_WORDS.iter().any(|w| said.contains(w))
    {
        return Some(format!(
            "the scratch server ({here}) lacks what the dump needs"
        ));
    }
    let elsewhere = number
        .filter(|n| NOT_THERE.contains(n))
        .and_then(|_| foreign(said, databases));
    elsewhere.map(|name| format!("it needs {name}, which is in no database of this dump"))
}

/// The name in an error that is of none of these databases. A dump that names no database names
/// none here, so that all names are its own.
fn foreign<'a>(said: &'a str, databases: &[String]) -> Option<&'a str> {
    let quoted = said.split('\'').nth(1);
    let word = said
        .split(' ')
        .find(|w| w.contains('.') && !w.ends_with('.'));
    let name = quoted.or(word)?;
    let database = name.split('.').next()?.trim_matches('`');
    let own = databases.iter().any(|d| d.eq_ignore_ascii_case(database));
    (!own && !databases.is_empty()).then_some(name)
}

/// MySQL has no version 10.
fn is_mariadb(version: &str) -> bool {
    version.to_lowercase().contains("mariadb") || release(version).0 >= 10
}

/// Major, minor and patch.
fn release(version: &str) -> (u32, u32, u32) {
    // What MariaDB puts before its own version for old clients.
    let text = version.strip_prefix("5.5.5-").unwrap_or(version);
    let mut parts = text
        .split(|c: char| !c.is_ascii_digit())
        .map(|p| p.parse().unwrap_or(0));
    let mut next = || parts.next().unwrap_or(0);
    (next(), next(), next())
}

/// Tables without the hashes of those that can only be counted.
pub(crate) fn counted(tables: &[Table], periods: &[(String, String)]) -> Vec<Table> {
    let mut all = tables.to_vec();
    for table in &mut all {
        let is = |(d, t): &&(String, String)| {
            *t == table.name && (*d == table.database || table.database.is_empty())
        };
        if periods.iter().any(|p| is(&p)) {
            table.hash.clear();
        }
    }
    all
}

/// What a verdict says of tables that were only counted.
pub(crate) fn by_number(periods: &[(String, String)]) -> String {
    match periods {
        [] => String::new(),
        [(database, table), more @ ..] => format!(
            "; of {database}.{table}{} the rows were counted alone: the dump is without their history, and a load makes their periods anew",
            match more.len() {
                0 => String::new(),
                n => format!(" and {n} more"),
            }
        ),
    }
}

/// So many users are made one after the other, by what the server says.
pub(super) const DEFINERS: usize = 50;

/// The user of [`definer_in`], where the client did not end well.
fn missing_definer(ended: &Ended) -> Option<String> {
    let said = said(ended);
    source::number(&said).filter(|n| *n == 1449)?;
    definer_in(&said)
}

/// `The user specified as a definer ('app'@'%') does not exist`: the user, as SQL.
pub(super) fn definer_in(said: &str) -> Option<String> {
    let (_, rest) = said.split_once("definer (")?;
    let (user, _) = rest.rsplit_once(") does not exist")?;
    let (name, host) = user
        .strip_prefix('\'')?
        .strip_suffix('\'')?
        .rsplit_once("'@'")?;
    let literals = |text: &str| source::literals(&[text.to_owned()]);
    Some(format!("{}@{}", literals(name), literals(host)))
}

/// The server program of MySQL, if this machine has it: what bears its name may be a link to MariaDB's.
pub(crate) fn mysqld(context: &Context) -> Option<PathBuf> {
    let path = &context.settings.path;
    // It stands beside the clients, or where a system keeps its daemons.
    let beside = path.iter().flat_map(|directory| {
        let daemons = directory.parent().map(|usr| usr.join("sbin"));
        std::iter::once(directory.clone()).chain(daemons)
    });
    let programs = beside.map(|directory| directory.join("mysqld"));
    let own = |program: &PathBuf| {
        let version = Command::new(program)
            .env_clear()
            .args(["--no-defaults", "--version"])
            .output();
        version.is_ok_and(|said| {
            said.status.success() && !String::from_utf8_lossy(&said.stdout).contains("MariaDB")
        })
    };
    programs.filter(|program| program.is_file()).find(own)
}

/// A server of its own in a directory of its own; both are gone when it is dropped.
pub(crate) struct Scratch {
    // Ends before its directory goes.
    server: Server,
    home: Home,
}

impl Scratch {
    /// Makes its data in `area` and starts it.
    ///
    /// # Errors
    /// The image has no such server, or there is no room.
    pub(crate) fn start(context: &Context, area: &Area) -> Result<Self, Failure> {
        let find = |name: &str| {
            let path = &context.settings.path;
            path.iter().map(|d| d.join(name)).find(|p| p.is_file()).ok_or_else(|| {
                Failure::settings(format!(
                    "verification by restore needs {name}, which this image lacks: use an image with mariadb-server"
                ))
            })
        };
        let (install, server) = (find("mariadb-install-db")?, find("mariadbd")?);
        let home = Home::new(area, "mariadb", false)?;
        make_data(context, &home, &install)?;
        // Nothing of it is kept, so it need not be shut down in order.
        let server = Server::start(serve(&home, &server), &home, Signal::KILL)?;
        Ok(Self { server, home })
    }

    /// The same of MySQL, by this program of it ([`mysqld`]).
    ///
    /// # Errors
    /// There is no room, or the program does not run.
    pub(crate) fn start_mysql(
        context: &Context,
        area: &Area,
        program: &Path,
    ) -> Result<Self, Failure> {
        let home = Home::new(area, "mysql", false)?;
        let made = mysql(&home, program).arg("--initialize-insecure").output();
        made_data(context, &home, made)?;
        let mut command = mysql(&home, program);
        command
            .args(serving(&home))
            .args(["--mysqlx=OFF", "--secure-file-priv=NULL"]);
        let server = Server::start(command, &home, Signal::KILL)?;
        Ok(Self { server, home })
    }

    fn socket(&self) -> PathBuf {
        self.home.path.join("s")
    }

    /// Arguments of a client that speaks to it.
    pub(crate) fn arguments(&self) -> Vec<String> {
        vec![
            "--no-defaults".to_owned(),
            format!("--socket={}", self.socket().display()),
            "--user=root".to_owned(),
        ]
    }

    /// Waits until it answers.
    ///
    /// # Errors
    /// It does not.
    pub(crate) fn wait(&mut self, context: &Context, client: &Client) -> Result<(), Failure> {
        let (socket, arguments) = (self.socket(), self.arguments());
        self.server.wait_until(context, &socket, || {
            let (_, ended) = client.run(context, &arguments, "SELECT 1;\n")?;
            Ok(ended.good())
        })
    }

    pub(super) fn ask(
        &self,
        context: &Context,
        client: &Client,
        sql: &str,
    ) -> Result<(String, Ended), Failure> {
        let mut args = self.arguments();
        args.extend(["--batch", "--skip-column-names"].map(str::to_owned));
        client.run(context, &args, sql)
    }

    /// Its version.
    ///
    /// # Errors
    /// It can't be asked.
    pub(crate) fn version(&self, context: &Context, client: &Client) -> Result<String, Failure> {
        let (text, _) = self.ask(context, client, "SELECT VERSION();\n")?;
        Ok(text.trim().to_owned())
    }

    /// Tables with periods that can be seen, where a dump with these arguments is without history:
    /// database, table.
    ///
    /// # Errors
    /// It can't be asked.
    pub(crate) fn periods(
        &self,
        context: &Context,
        client: &Client,
        arguments: &[String],
    ) -> Result<Vec<(String, String)>, Failure> {
        if arguments.iter().any(|a| a == "--dump-history" || a == "-H") {
            return Ok(vec![]);
        }
        let sql = "SELECT DISTINCT TABLE_SCHEMA, TABLE_NAME FROM information_schema.COLUMNS WHERE GENERATION_EXPRESSION='ROW START';\n";
        let (text, _) = self.ask(context, client, sql)?;
        let pairs = text.lines().filter_map(|l| l.split_once('\t'));
        Ok(pairs.map(|(d, t)| (d.to_owned(), t.to_owned())).collect())
    }

    /// Loads a dump but for the ranges `without`. Users that it names as definers and that are not here are made: views on views
    /// need them. Each time one is missing, the dump is opened and loaded anew.
    ///
    /// # Errors
    /// The dump can't be read, or the client can't be started.
    pub(crate) fn load(
        &self,
        context: &Context,
        client: &Client,
        args: &[String],
        without: &[Range<u64>],
        open: impl Fn() -> Result<Box<dyn Read + Send>, Failure>,
    ) -> Result<Loaded, Failure> {
        let script = || Some(Script::new(Rewrite::default()).without(without));
        for _ in 0..DEFINERS {
            let loaded = load::load(context, client, args, open()?, script())?;
            context.check()?;
            let Some(user) = missing_definer(&loaded.ended) else {
                return Ok(loaded);
            };
            let make = format!("CREATE USER {user}; GRANT ALL ON *.* TO {user};\n");
            let (_, ended) = self.ask(context, client, &make)?;
            if !ended.good() {
                return Ok(loaded);
            }
        }
        load::load(context, client, args, open()?, script())
    }

    /// How it is reached.
    pub(crate) fn source(&self, databases: Databases) -> Source {
        Source {
            host: String::new(),
            port: 0,
            socket: Some(self.socket().display().to_string()),
            username: "root".to_owned(),
            password: String::new().into(),
            databases,
            exclude_tables: vec![],
            tls: TlsMode::Disabled,
            ca_file: None,
            extra_args: vec![],
            engine: None,
            accounts: false,
            asked_sessions: Some(1),
        }
    }

    /// What it holds, read as the native engine reads it. With `bare` one database, named by nothing.
    ///
    /// # Errors
    /// It can't be read.
    pub(crate) fn sums(&self, context: &Context, bare: Option<&str>) -> Result<Summary, Failure> {
        let source = self.source(bare.map_or(Databases::All, |name| {
            Databases::Listed(vec![name.to_owned()])
        }));
        let mut options = native::options(&source);
        options.bare = bare.is_some();
        let summary = native::sums(context, &source, options);
        summary.map_err(|e| Failure {
            reason: Reason::ScratchFailed,
            message: format!("the restored data can't be read again: {}", e.message),
            ..e
        })
    }

    /// Dumps it as the dump with these arguments was made, but for options that need a binlog.
    ///
    /// # Errors
    /// The client fails.
    pub(crate) fn dump(
        &self,
        context: &Context,
        client: &Client,
        arguments: &[String],
    ) -> Result<Summary, Failure> {
        const OF_THE_SOURCE: [&str; 6] = [
            "--init-command",
            "--master-data",
            "--source-data",
            "--set-gtid-purged",
            "--column-statistics",
            "--gtid",
        ];
        let mut args = self.arguments();
        let kept = arguments
            .iter()
            .filter(|a| !OF_THE_SOURCE.iter().any(|o| a.starts_with(o)));
        args.extend(kept.cloned());
        let (summary, ended) = client.dump(context, &args)?;
        summary
            .filter(|summary| ended.good() && summary.whole)
            .ok_or_else(|| {
                Failure::new(
                    Reason::ScratchFailed,
                    format!(
                        "the restored data can't be dumped again: {} ended with {} and said: {}",
                        client.name(),
                        ended.status_text(),
                        ended.messages.last().map_or("nothing", String::as_str)
                    ),
                )
            })
    }
}

fn common(home: &Home, program: &Path) -> Command {
    let mut command = home.command(program);
    command
        .arg("--no-defaults")
        .arg(format!("--datadir={}", home.path.join("data").display()))
        .arg(format!("--tmpdir={}", home.path.display()));
    if rustix::process::geteuid().is_root() {
        command.arg("--user=root");
    }
    command
}

fn make_data(context: &Context, home: &Home, program: &Path) -> Result<(), Failure> {
    let made = common(home, program)
        .args(["--auth-root-authentication-method=normal", "--skip-test-db"])
        .output();
    made_data(context, home, made)
}

/// A server of MySQL: where it was built for is not where it may lie.
fn mysql(home: &Home, program: &Path) -> Command {
    let mut command = common(home, program);
    let real = program.canonicalize();
    let usr = real
        .ok()
        .and_then(|real| Some(real.parent()?.parent()?.to_owned()));
    if let Some(usr) = usr {
        command.arg(format!("--basedir={}", usr.display()));
        let rest = [
            ("lc-messages-dir", "share/mysql"),
            ("character-sets-dir", "share/mysql/charsets"),
            ("plugin-dir", "lib/mysql/plugin"),
        ];
        for (option, place) in rest {
            let place = usr.join(place);
            if place.is_dir() {
                command.arg(format!("--{option}={}", place.display()));
            }
        }
    }
    command
}

fn made_data(
    context: &Context,
    home: &Home,
    made: std::io::Result<std::process::Output>,
) -> Result<(), Failure> {
    let said = match made {
        Ok(made) if made.status.success() => return Ok(()),
        Ok(made) => last(context, &made.stderr),
        Err(e) => e.to_string(),
    };
    Err(Failure::new(
        Reason::ScratchFailed,
        format!(
            "the scratch server's data directory can't be made: {said}; give {} more space",
            home.volume
        ),
    ))
}

fn serve(home: &Home, program: &Path) -> Command {
    let mut command = common(home, program);
    command.args(serving(home));
    command
}

/// What both makers' servers are told.
fn serving(home: &Home) -> [String; 8] {
    [
        format!("--socket={}", home.path.join("s").display()),
        format!("--pid-file={}", home.path.join("pid").display()),
        "--skip-networking".to_owned(),
        "--event-scheduler=OFF".to_owned(),
        "--innodb-flush-log-at-trx-commit=0".to_owned(),
        "--innodb-doublewrite=OFF".to_owned(),
        "--skip-log-bin".to_owned(),
        "--max-allowed-packet=1G".to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::contents::differences;

    const HERE: &str = "10.11.19-MariaDB-0+deb12u1";

    #[test]
    fn t8_what_an_older_server_or_another_flavour_says_proves_nothing() {
        let own = ["shop".to_owned()];
        for (source, said, able) in [
            (
                "10.11.19-MariaDB-log",
                "ERROR 1064 (42000) at line 7: You have an error in your SQL syntax",
                true,
            ),
            ("10.6.2-MariaDB", "ERROR 1064 (42000) at line 7", true),
            ("10.6.2-MariaDB", "", true),
            (
                "5.5.5-10.5.1-MariaDB",
                "ERROR 1062 (23000) at line 7: Duplicate entry",
                true,
            ),
            (
                "11.8.9-MariaDB-0+deb13u1",
                "ERROR 4161 (HY000) at line 7: Unknown data type: 'vector'",
                false,
            ),
            ("11.8.9-MariaDB", "", false),
            ("10.11.20-MariaDB", "", false),
            ("9.7.4", "", false),
            ("8.0.36-0ubuntu0.22.04.1", "ERROR 1064", false),
            ("", "", false),
            (
                "10.11.19-MariaDB",
                "ERROR 1286 (42000) at line 7: Unknown storage engine 'ROCKSDB'",
                false,
            ),
            (
                "10.11.19-MariaDB",
                "ERROR 1273 (HY000) at line 7: Unknown collation: 'x'",
                false,
            ),
            (
                "10.11.19-MariaDB",
                "ERROR 1114 (HY000) at line 7: The table 't' is full",
                false,
            ),
            (
                "10.11.19-MariaDB",
                "ERROR 1146 (42S02) at line 7: Table 'shop.t' doesn't exist",
                true,
            ),
            (
                "10.11.19-MariaDB",
                "ERROR 1146 (42S02) at line 7: Table 'other.t' doesn't exist",
                false,
            ),
            (
                "10.11.19-MariaDB",
                "ERROR 1305 (42000) at line 7: FUNCTION other.f does not exist",
                false,
            ),
            (
                "10.11.19-MariaDB",
                "ERROR 1305 (42000) at line 7: FUNCTION shop.f does not exist",
                true,
            ),
        ] {
            let why = unable(source, HERE, said, &own);
            assert_eq!(why.is_none(), able, "{source}: {said}: {why:?}");
        }
    }

    #[test]
    fn tables_that_can_only_be_counted_are_compared_by_number() {
        let table = |rows, hash: &str| Table {
            database: "d".to_owned(),
            name: "t".to_owned(),
            rows,
            hash: hash.to_owned(),
        };
        let periods = [("d".to_owned(), "t".to_owned())];
        let differ = |found| {
            let found = counted(&[found], &periods);
            differences(&counted(&[table(2, "1")], &periods), &found)
        };
        assert_eq!(differ(table(2, "2")), [""; 0]);
        assert_eq!(differ(table(3, "1")).len(), 1);
    }
}
