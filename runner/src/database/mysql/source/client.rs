//! The client programs, chosen by asking them.

use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::database::mysql::dump_reader::{DumpReader, Summary};
use crate::failure::Failure;
use crate::process::{Ended, Parent, Program};
use crate::settings::Settings;

/// Flavour of a client or server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// MariaDB.
    MariaDb,
    /// MySQL.
    MySql,
}

/// One client program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Client {
    /// Where it is.
    pub path: PathBuf,
    /// Its flavour.
    pub flavour: Flavour,
    /// Its `--version` line.
    pub version: String,
    help: String,
}

impl Client {
    /// A client of which only the texts are known.
    pub fn new(path: PathBuf, version: &str, help: &str) -> Self {
        let flavour = if version.contains("MariaDB") {
            Flavour::MariaDb
        } else {
            Flavour::MySql
        };
        Self {
            path,
            flavour,
            version: version.trim().to_owned(),
            help: help.to_owned(),
        }
    }

    /// The programs of these names that run, each once.
    pub fn ask_all(path: &[PathBuf], names: &[&str]) -> Vec<Self> {
        ask_all(path, names)
    }

    /// True if its help lists the long option `name`.
    pub fn knows(&self, name: &str) -> bool {
        let option = format!("--{name}");
        self.help.match_indices(&option).any(|(at, _)| {
            self.help[at + option.len()..]
                .chars()
                .next()
                .is_none_or(|c| !c.is_ascii_alphanumeric() && c != '-')
        })
    }

    /// True if its help holds this text.
    pub fn mentions(&self, text: &str) -> bool {
        self.help.contains(text)
    }

    /// The program with these arguments.
    pub fn program(&self, args: &[String]) -> Program {
        let mut program = Program::new(self.path.clone(), args);
        program.repeats = true;
        program
    }

    /// Runs it with `input` on its standard input and gives all it prints.
    ///
    /// # Errors
    /// It can't be started or spoken to.
    pub fn run(
        &self,
        of: &impl Parent,
        args: &[String],
        input: &str,
    ) -> Result<(String, Ended), Failure> {
        let (output, ended) = self.program(args).ask(of, input, None)?;
        Ok((String::from_utf8_lossy(&output).into_owned(), ended))
    }

    /// Runs it as a dump client and reads the dump; `None` if not all of it could be read.
    ///
    /// # Errors
    /// It can't be started or waited for.
    pub fn dump(
        &self,
        of: &impl Parent,
        args: &[String],
    ) -> Result<(Option<Summary>, Ended), Failure> {
        let mut child = self.program(args).start(of, false)?;
        let mut output = child.source()?;
        let mut reader = DumpReader::default();
        let mut buffer = vec![0; 256 * 1024];
        let whole = loop {
            match output.read(&mut buffer) {
                Ok(0) => break true,
                Ok(n) => reader.feed(&buffer[..n]),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(_) => break false,
            }
        };
        let ended = child.wait()?;
        Ok((whole.then(|| reader.finish()), ended))
    }

    /// File name, as messages name it.
    pub fn name(&self) -> String {
        self.path
            .file_name()
            .map(|n| n.to_string_lossy().into_owned())
            .unwrap_or_default()
    }
}

/// The clients of this machine.
#[derive(Clone, Debug, Default)]
pub struct Clients {
    dump: Vec<Client>,
    sql: Vec<Client>,
}

impl Clients {
    /// Looks for mariadb-dump, mysqldump, mariadb and mysql.
    ///
    /// # Errors
    /// There is no dump client, or none that runs.
    pub fn find(settings: &Settings) -> Result<Self, Failure> {
        let found = Self {
            dump: ask_all(&settings.path, &["mariadb-dump", "mysqldump"]),
            sql: ask_all(&settings.path, &["mariadb", "mysql"]),
        };
        if found.dump.is_empty() {
            return Err(missing(
                settings,
                "dump client",
                "mariadb-dump or mysqldump",
            ));
        }
        Ok(found)
    }

    /// The dump client of the server's flavour, else the first.
    ///
    /// # Errors
    /// There is none.
    pub fn dump(&self, server: Option<Flavour>) -> Result<&Client, Failure> {
        fitting(&self.dump, server).ok_or_else(|| Failure::settings("no dump client"))
    }

    /// The SQL client of the server's flavour, else the first.
    pub fn sql(&self, server: Option<Flavour>) -> Option<&Client> {
        fitting(&self.sql, server)
    }
}

/// There is none of these programs that runs.
pub fn missing(settings: &Settings, what: &str, names: &str) -> Failure {
    let path: Vec<String> = settings
        .path
        .iter()
        .map(|p| p.display().to_string())
        .collect();
    let path = path.join(":");
    Failure::settings(match &settings.client_image {
        Some(image) => format!(
            "image {image} (clientImage) has no {what} that runs: looked for {names} in {path}; name an image that has it on its PATH, or remove clientImage to use the runner's own"
        ),
        None => {
            format!("no {what}: looked for {names} in {path}; use an image that has one of them")
        }
    })
}

fn fitting(clients: &[Client], server: Option<Flavour>) -> Option<&Client> {
    clients
        .iter()
        .find(|c| server.is_some_and(|s| s == c.flavour))
        .or_else(|| clients.first())
}

fn ask_all(path: &[PathBuf], names: &[&str]) -> Vec<Client> {
    let mut found: Vec<Client> = vec![];
    let programs = names
        .iter()
        .flat_map(|name| path.iter().map(move |d| d.join(name)));
    for program in programs.filter(|p| p.is_file()) {
        // Debian's mysqldump is a link to mariadb-dump, and /bin is one to /usr/bin.
        let same = |c: &Client| c.path.canonicalize().ok() == program.canonicalize().ok();
        if found.iter().any(same) {
            continue;
        }
        if let Some(client) = ask(&program) {
            found.push(client);
        }
    }
    found
}

fn ask(program: &Path) -> Option<Client> {
    let output = |arg: &str| {
        Command::new(program)
            .env_clear()
            .arg("--no-defaults")
            .arg(arg)
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .output()
            .ok()
            .map(|o| String::from_utf8_lossy(&o.stdout).into_owned())
    };
    let version = output("--version").filter(|text| !text.trim().is_empty())?;
    Some(Client::new(
        program.to_owned(),
        &version,
        &output("--help")?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_known_by_their_whole_name() {
        let help = "  -A, --all-databases Dump all\n  --master-data[=#]   This\n  --gtid  Used\n";
        let client = Client::new(
            "/x".into(),
            "mariadb-dump Ver 10.19 Distrib 10.11.19-MariaDB",
            help,
        );
        assert!(
            client.knows("all-databases") && client.knows("master-data") && client.knows("gtid")
        );
        assert!(!client.knows("all") && !client.knows("source-data") && !client.knows("gti"));
        assert_eq!(client.flavour, Flavour::MariaDb);
    }

    fn settings(image: Option<&str>) -> Settings {
        let run = serde_json::json!({
            "version": 1, "action": "Backup", "run": {"name": "r", "trigger": "Manual"}, "clientImage": image,
            "object": {"kind": "MysqlBackup", "namespace": "n", "name": "shop", "uid": "u"},
        });
        let env = [
            ("PATH", "/nonexistent".to_owned()),
            ("BACKUP_SPEC", run.to_string()),
        ];
        let env = env.map(|(k, v)| (k.to_owned(), v)).into();
        Settings::parse(&env, &|_| Err("none".to_owned()))
    }

    #[test]
    fn no_client_names_what_was_looked_for_and_the_image() {
        let failure = Clients::find(&settings(None)).unwrap_err();
        assert_eq!(failure.exit_code, 2);
        assert_eq!(
            failure.message,
            "no dump client: looked for mariadb-dump or mysqldump in /nonexistent; use an image that has one of them"
        );
        let failure = Clients::find(&settings(Some("mysql:9"))).unwrap_err();
        assert_eq!(
            (failure.exit_code, failure.reason.as_str()),
            (2, "InvalidSettings")
        );
        assert!(
            failure
                .message
                .starts_with("image mysql:9 (clientImage) has no dump client that runs: looked for mariadb-dump or mysqldump in /nonexistent; "),
            "{}",
            failure.message
        );
    }
}
