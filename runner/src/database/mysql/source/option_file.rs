//! The client's option file: the one place where the password is written, on memory, mode 0600,
//! gone when the run ends.

use crds::report::Reason;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crds::parts::TlsMode;
use secrecy::{ExposeSecret, SecretString};

use crate::database::mysql::source::client::Flavour;
use crate::failure::Failure;
use crate::settings::Source;

/// So many were written by this program.
static FILES: AtomicU32 = AtomicU32::new(0);

/// Lines beyond this are cut by the clients' readers of option files.
const LONGEST_LINE: usize = 4000;

/// An option file; removed when dropped.
#[derive(Debug)]
pub struct OptionFile {
    path: PathBuf,
}

impl OptionFile {
    /// Writes the connection of `source` for clients of this flavour. `tls` says whether TLS is
    /// asked for where the mode leaves it open.
    ///
    /// # Errors
    /// The directory refuses, or a value can't be written in an option file.
    pub fn write(
        directory: &Path,
        nonce: &str,
        source: &Source,
        flavour: Flavour,
        tls: bool,
    ) -> Result<Self, Failure> {
        let text = content(source, flavour, tls)?;
        let number = FILES.fetch_add(1, Ordering::Relaxed);
        let path = directory.join(format!("client-{nonce}-{number}.cnf"));
        let guard = Self { path };
        let write = || -> std::io::Result<()> {
            let mut file = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&guard.path)?;
            file.write_all(text.expose_secret().as_bytes())
        };
        write().map_err(|e| {
            Failure::new(
                Reason::ScratchFailed,
                format!(
                    "writing the client's option file in {} failed: {e}",
                    directory.display()
                ),
            )
        })?;
        Ok(guard)
    }

    /// `--defaults-file=…`, which must be the first argument.
    pub fn argument(&self) -> String {
        format!("--defaults-file={}", self.path.display())
    }
}

impl Drop for OptionFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

fn content(source: &Source, flavour: Flavour, tls: bool) -> Result<SecretString, Failure> {
    let mut text = String::from("[client]\n");
    let mut set = |key: &str, value: &str| -> Result<(), Failure> {
        let line = format!("{key}={}\n", quote(value));
        if line.len() > LONGEST_LINE || value.contains('\0') {
            return Err(Failure::settings(format!(
                "the {key} is too long or holds a zero byte, which the client can't take"
            )));
        }
        text.push_str(&line);
        Ok(())
    };
    set("user", &source.username)?;
    set("password", source.password.expose_secret())?;
    match &source.socket {
        Some(socket) => {
            set("protocol", "SOCKET")?;
            set("socket", socket)?;
        }
        None => {
            // "localhost" means the socket to MySQL's clients, whatever the port.
            set("protocol", "TCP")?;
            set("host", &source.host)?;
            set("port", &source.port.to_string())?;
        }
    }
    if let Some(ca) = &source.ca_file {
        set("ssl-ca", ca)?;
    }
    for line in tls_lines(source.tls, flavour, tls) {
        text.push_str(line);
        text.push('\n');
    }
    Ok(text.into())
}

/// TLS as each flavour says it. MariaDB's clients can't check the issuer without the host name:
/// VerifyCA is as strict as VerifyIdentity there.
fn tls_lines(mode: TlsMode, flavour: Flavour, tls: bool) -> &'static [&'static str] {
    match (flavour, mode) {
        // A password of caching_sha2_password goes over a plain connection encrypted by the server's key.
        (Flavour::MySql, TlsMode::Disabled) => {
            &["ssl-mode=DISABLED", "loose-get-server-public-key"]
        }
        (Flavour::MySql, TlsMode::Preferred) => {
            &["ssl-mode=PREFERRED", "loose-get-server-public-key"]
        }
        (Flavour::MySql, TlsMode::Required) => &["ssl-mode=REQUIRED"],
        (Flavour::MySql, TlsMode::VerifyCA) => &["ssl-mode=VERIFY_CA"],
        (Flavour::MySql, TlsMode::VerifyIdentity) => &["ssl-mode=VERIFY_IDENTITY"],
        (Flavour::MariaDb, TlsMode::Disabled) => &["skip-ssl"],
        (Flavour::MariaDb, TlsMode::Preferred) if !tls => &["skip-ssl"],
        (Flavour::MariaDb, TlsMode::Preferred | TlsMode::Required) => {
            &["ssl", "skip-ssl-verify-server-cert"]
        }
        (Flavour::MariaDb, TlsMode::VerifyCA | TlsMode::VerifyIdentity) => {
            &["ssl", "ssl-verify-server-cert"]
        }
    }
}

/// A value in double quotes. Inside them clients read `\\`, `\"` and the escapes of line ends and
/// tabs, and `#` begins no comment.
fn quote(value: &str) -> String {
    let mut quoted = String::with_capacity(value.len() + 2);
    quoted.push('"');
    for c in value.chars() {
        match c {
            '\\' => quoted.push_str("\\\\"),
            '"' => quoted.push_str("\\\""),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{8}' => quoted.push_str("\\b"),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn values_are_quoted() {
        assert_eq!(quote("p@ss w0rd!#;"), "\"p@ss w0rd!#;\"");
        assert_eq!(quote("a\\b\"c'd"), "\"a\\\\b\\\"c'd\"");
        assert_eq!(quote("x\ny"), "\"x\\ny\"");
    }

    #[test]
    fn the_file_is_private_and_goes_with_its_owner() {
        let directory = tempfile::tempdir().unwrap();
        let source = crate::settings::Settings::parse(
            &[
                ("HOST", "h"),
                ("USERNAME", "u"),
                ("PASSWORD", "S3cr3t-marker"),
            ]
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .into(),
            &|_| Err("no file".into()),
        )
        .source
        .unwrap();
        let file =
            OptionFile::write(directory.path(), "n", &source, Flavour::MariaDb, false).unwrap();
        let path = PathBuf::from(file.argument().strip_prefix("--defaults-file=").unwrap());
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(
            std::fs::read_to_string(&path).unwrap(),
            "[client]\nuser=\"u\"\npassword=\"S3cr3t-marker\"\nprotocol=\"TCP\"\nhost=\"h\"\nport=\"3306\"\nskip-ssl\n"
        );
        drop(file);
        assert!(!path.exists());
    }
}
