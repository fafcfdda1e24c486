//! The runner in the place of programs that gobackup starts, found first on its search path.
//!
//! gobackup puts passwords on the command lines of its clients, where every process of the node
//! reads them, and in its messages when one fails. It is told the file of a secret instead; the
//! runner, called by the client's name, reads the file and hands the secret on in the client's
//! environment or on memory. `openssl` it is itself: that program takes a password from gobackup
//! by no other way. Called as `tar` it lets the real one pack and notes what was made.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::gobackup::config::FILE;
use crate::stream::checksum;
use crate::stream::openssl::{Encryptor, Options};

/// Variable with the directory of [`SETTINGS`] and [`MADE`].
pub const DIRECTORY: &str = "BACKUP_CLIENTS";
/// File with [`Clients`].
const SETTINGS: &str = "clients.json";
/// Files with [`Made`], one for each program that makes an archive.
const MADE: [&str; 2] = ["made-openssl.json", "made-tar.json"];
/// The programs.
const NAMES: [&str; 7] = [
    "tar",
    "openssl",
    "mysqldump",
    "mariadb-dump",
    "redis-cli",
    "mongodump",
    "influx",
];
/// Exit code of a shell whose program is not there.
const NOT_FOUND: i32 = 127;

/// What the programs need to know; no secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Clients {
    /// Where the real programs are.
    pub(crate) path: Vec<PathBuf>,
    /// How to encrypt.
    pub(crate) cipher: Option<Cipher>,
}

/// Encryption as the Backup asks for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Cipher {
    /// 128, 192 or 256.
    pub(crate) bits: u16,
    /// PBKDF2 iterations.
    pub(crate) iterations: u32,
    /// sha1, sha256 or sha512.
    pub(crate) digest: String,
    /// Lines of base64 instead of bytes.
    pub(crate) base64: bool,
}

/// The archive as it was before it was stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Made {
    /// File name.
    pub(crate) name: String,
    /// Bytes.
    pub(crate) bytes: u64,
    /// SHA-256 of them, hex.
    pub(crate) sha256: String,
}

/// Puts the programs into `directory`; gives the directory for the search path.
///
/// # Errors
/// It can't be written.
pub(crate) fn install(directory: &Path, runner: &Path, clients: &Clients) -> io::Result<PathBuf> {
    let programs = directory.join("bin");
    std::fs::create_dir_all(&programs)?;
    for name in NAMES {
        std::os::unix::fs::symlink(runner, programs.join(name))?;
    }
    let text = serde_json::to_vec(clients)?;
    std::fs::write(directory.join(SETTINGS), text)?;
    Ok(programs)
}

/// What was made last: encrypted if there was encryption.
pub(crate) fn made(directory: &Path) -> Option<Made> {
    let read = |name: &&str| {
        let text = std::fs::read(directory.join(name)).ok()?;
        serde_json::from_slice(&text).ok()
    };
    MADE.iter().find_map(read)
}

/// The name this program was called by, if it stands for a client.
pub fn called(program: &str) -> Option<&'static str> {
    let name = program.rsplit('/').next().unwrap_or_default();
    NAMES.into_iter().find(|n| *n == name)
}

/// Does what the client of this name is to do; gives its exit code. `directory` is the value of
/// `BACKUP_CLIENTS`.
pub fn act(name: &str, args: Vec<OsString>, directory: Option<OsString>) -> i32 {
    let outcome = (|| {
        let directory = PathBuf::from(directory.ok_or_else(|| {
            io::Error::other("it was not started by gobackup: call the program by its path")
        })?);
        let settings = std::fs::read(directory.join(SETTINGS))?;
        let clients: Clients = serde_json::from_slice(&settings)?;
        match name {
            "openssl" => encrypt(&clients, &args, &directory),
            "tar" => pack(&clients, args, &directory),
            _ => hand_on(&clients, name, args, &directory),
        }
    })();
    outcome.unwrap_or_else(|e| {
        // Where gobackup looks for its client's words.
        let _ = writeln!(io::stderr(), "{name}: {e}");
        NOT_FOUND
    })
}

fn real(clients: &Clients, name: &str) -> io::Result<PathBuf> {
    let mut found = clients.path.iter().map(|d| d.join(name));
    found
        .find(|p| p.is_file())
        .ok_or_else(|| io::Error::other("this image does not have it"))
}

/// The secret that a value stands for.
fn secret(value: &str) -> io::Result<Option<String>> {
    let Some(path) = value.strip_prefix(FILE) else {
        return Ok(None);
    };
    let text = std::fs::read_to_string(path)
        .map_err(|e| io::Error::other(format!("{path} can't be read: {e}")))?;
    Ok(Some(text.strip_suffix('\n').unwrap_or(&text).to_owned()))
}

/// What a command line becomes: arguments, variables, and the content of a private file named by
/// the last argument.
#[derive(Debug, Default, PartialEq)]
struct Call {
    args: Vec<String>,
    env: Vec<(&'static str, String)>,
    file: Option<String>,
}

/// Takes the secret out of a client's arguments. `inherited` is the password gobackup put into the
/// environment, where it does.
fn call(name: &str, args: Vec<String>, inherited: Option<String>) -> io::Result<Call> {
    let mut call = Call::default();
    let mut args = args.into_iter();
    let yaml = |key: &str, text: String| format!("{key}: {}\n", serde_json::Value::from(text));
    while let Some(arg) = args.next() {
        let taken = match name {
            "mysqldump" | "mariadb-dump" => match arg.strip_prefix("-p").map(secret).transpose()? {
                Some(Some(password)) => {
                    call.env.push(("MYSQL_PWD", password));
                    true
                }
                _ => false,
            },
            "redis-cli" if arg == "-a" => {
                let value = args.next().unwrap_or_default();
                match secret(&value)? {
                    Some(password) => call.env.push(("REDISCLI_AUTH", password)),
                    None => call.args.extend([arg.clone(), value]),
                }
                true
            }
            "mongodump" => {
                let option = ["password", "uri"].into_iter().find_map(|key| {
                    let value = arg
                        .strip_prefix("--")?
                        .strip_prefix(key)?
                        .strip_prefix('=')?;
                    Some((key, value))
                });
                match option.map(|(key, value)| (key, secret(value))) {
                    Some((key, secret)) => match secret? {
                        Some(text) => {
                            call.file = Some(yaml(key, text));
                            true
                        }
                        None => false,
                    },
                    None => false,
                }
            }
            "influx" => match arg.strip_prefix("--token=").map(secret).transpose()? {
                Some(Some(token)) => {
                    call.env.push(("INFLUX_TOKEN", token));
                    true
                }
                _ => false,
            },
            _ => false,
        };
        if !taken {
            call.args.push(arg);
        }
    }
    if name == "mysqldump" || name == "mariadb-dump" {
        let inherited = inherited.map(|value| secret(&value)).transpose()?.flatten();
        call.env.extend(inherited.map(|p| ("MYSQL_PWD", p)));
    }
    Ok(call)
}

/// Becomes the real client.
fn hand_on(
    clients: &Clients,
    name: &str,
    args: Vec<OsString>,
    directory: &Path,
) -> io::Result<i32> {
    let program = real(clients, name)?;
    let args: Vec<String> = args
        .into_iter()
        .map(|a| a.to_string_lossy().into_owned())
        .collect();
    #[expect(
        clippy::disallowed_methods,
        reason = "gobackup hands this client its password so"
    )]
    let inherited = std::env::var("MYSQL_PWD").ok();
    let call = call(name, args, inherited)?;
    let mut command = Command::new(&program);
    command.args(&call.args).env_remove(DIRECTORY);
    if let Some(content) = call.file {
        let path = directory.join(format!("{name}-{}", std::process::id()));
        File::options()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?
            .write_all(content.as_bytes())?;
        command.arg(format!("--config={}", path.display()));
    }
    command.envs(call.env);
    Err(command.exec())
}

/// The value after an option.
fn after<'a>(args: &'a [OsString], option: &str) -> io::Result<&'a OsString> {
    let at = args.iter().position(|a| a == option);
    at.and_then(|at| args.get(at + 1))
        .ok_or_else(|| io::Error::other(format!("{option} is missing")))
}

/// Encrypts `-in` to `-out` as the Backup asks for it.
fn encrypt(clients: &Clients, args: &[OsString], directory: &Path) -> io::Result<i32> {
    let password = after(args, "-k").ok();
    let password = password.map(|p| secret(&p.to_string_lossy())).transpose()?;
    let (Some(cipher), Some(Some(password))) = (&clients.cipher, password) else {
        // A script's own call.
        let program = real(clients, "openssl")?;
        return Err(Command::new(program).args(args).exec());
    };
    let (from, to) = (after(args, "-in")?, after(args, "-out")?);
    let mut salt = [0; 8];
    File::open("/dev/urandom")?.read_exact(&mut salt)?;
    let options = Options {
        password: &password,
        bits: cipher.bits,
        iterations: cipher.iterations,
        digest: &cipher.digest,
        base64: cipher.base64,
        salt,
    };
    let mut source = File::open(from)?;
    let target = io::BufWriter::with_capacity(256 * 1024, File::create(to)?);
    let mut encryptor = Encryptor::new(target, &options)?;
    io::copy(&mut source, &mut encryptor)?;
    encryptor.finish()?.into_inner()?.sync_all()?;
    note(Path::new(to), &directory.join(MADE[0]))?;
    Ok(0)
}

/// Has the real tar pack, and notes what it made.
fn pack(clients: &Clients, args: Vec<OsString>, directory: &Path) -> io::Result<i32> {
    let program = real(clients, "tar")?;
    let Ok(archive) = after(&args, "-cf").cloned() else {
        return Err(Command::new(program).args(args).exec());
    };
    let status = Command::new(program).args(&args).status()?;
    if status.success() {
        note(Path::new(&archive), &directory.join(MADE[1]))?;
    }
    Ok(status.code().unwrap_or(1))
}

fn note(archive: &Path, to: &Path) -> io::Result<()> {
    let name = archive.file_name().unwrap_or_default().to_string_lossy();
    let found = checksum::measure(File::open(archive)?)?;
    let made = Made {
        name: name.into_owned(),
        bytes: found.bytes,
        sha256: found.sha256,
    };
    std::fs::write(to, serde_json::to_vec(&made)?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use super::*;

    fn strings(words: &[&str]) -> Vec<String> {
        words.iter().map(|w| (*w).to_owned()).collect()
    }

    #[test]
    fn no_client_gets_its_secret_as_an_argument() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("password");
        std::fs::write(&path, "p $w'\n").unwrap();
        let held = format!("{FILE}{}", path.display());
        type Row<'a> = (
            &'a str,
            &'a [&'a str],
            &'a [&'a str],
            &'a [(&'a str, &'a str)],
            Option<&'a str>,
        );
        let rows: &[Row<'_>] = &[
            (
                "mysqldump",
                &["-u", "root", "-pFILE", "-P1", "app"],
                &["-u", "root", "-P1", "app"],
                &[("MYSQL_PWD", "p $w'")],
                None,
            ),
            (
                "redis-cli",
                &["-h", "r", "-a", "FILE", "--rdb", "f"],
                &["-h", "r", "--rdb", "f"],
                &[("REDISCLI_AUTH", "p $w'")],
                None,
            ),
            (
                "mongodump",
                &["--db=a", "--password=FILE", "--out=o"],
                &["--db=a", "--out=o"],
                &[],
                Some("password: \"p $w'\"\n"),
            ),
            (
                "influx",
                &["backup", "--token=FILE", "d"],
                &["backup", "d"],
                &[("INFLUX_TOKEN", "p $w'")],
                None,
            ),
            // A script's own call is left as it is.
            ("mysqldump", &["-pown", "a"], &["-pown", "a"], &[], None),
            ("redis-cli", &["-a", "own"], &["-a", "own"], &[], None),
        ];
        for (name, args, rest, env, file) in rows {
            let args = args.iter().map(|a| a.replace("FILE", &held)).collect();
            let call = call(name, args, None).unwrap();
            assert_eq!(call.args, strings(rest), "{name}");
            let found: Vec<(&str, &str)> = call.env.iter().map(|(k, v)| (*k, v.as_str())).collect();
            assert_eq!(found, *env, "{name}");
            assert_eq!(call.file.as_deref(), *file, "{name}");
        }
        let inherited = call("mysqldump", strings(&["a"]), Some(held)).unwrap();
        assert_eq!(inherited.env, [("MYSQL_PWD", "p $w'".to_owned())]);
    }

    #[test]
    fn programs_are_known_by_the_name_they_are_called_by() {
        assert_eq!(called("/run/backup/x/bin/mysqldump"), Some("mysqldump"));
        assert_eq!(called("tar"), Some("tar"));
        for other in ["/usr/local/bin/backup-runner", "", "/", "bsdtar"] {
            assert_eq!(called(other), None, "{other}");
        }
    }
}
