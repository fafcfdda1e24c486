//! Which arguments users may add to the dump client. Clients accept every unambiguous prefix of an
//! option, so a name is judged by all options it could mean.

/// Where arguments come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// `spec.source.extraArgs`: only [`ALLOWED`].
    Typed,
    /// MYSQLDUMP_ARGS: all but [`REFUSED`].
    Environment,
}

/// Options that would break a promise: they redirect or hide the dump, drop its footer, carry
/// secrets, choose another server, or turn errors into success.
const REFUSED: &[(&str, &str)] = &[
    ("result-file", "the dump must come through standard output"),
    ("tab", "the dump must come through standard output"),
    ("dir", "the dump must come through standard output"),
    ("xml", "the dump would have no footer to check"),
    ("compact", "the dump would have no footer to check"),
    ("skip-comments", "the dump would have no footer to check"),
    ("comments", "the dump would have no footer to check"),
    ("force", "errors would look like success"),
    ("ignore-error", "errors would look like success"),
    (
        "password",
        "set PASSWORD or spec.source.credentialsSecretRef",
    ),
    ("user", "set USERNAME or spec.source.credentialsSecretRef"),
    ("host", "set HOST or spec.source.host"),
    ("port", "set PORT or spec.source.port"),
    ("socket", "set spec.source.socket"),
    ("protocol", "it follows from host or socket"),
    ("pipe", "it follows from host or socket"),
    ("defaults-file", "the runner writes its own option file"),
    (
        "defaults-extra-file",
        "the runner writes its own option file",
    ),
    (
        "defaults-group-suffix",
        "the runner writes its own option file",
    ),
    ("no-defaults", "the runner writes its own option file"),
    ("print-defaults", "it prints the password"),
    ("login-path", "the runner writes its own option file"),
    ("all-databases", "set DATABASES or spec.source.databases"),
    ("databases", "set DATABASES or spec.source.databases"),
    ("log-error", "the client's messages must reach the log"),
    ("debug", "it writes files beside the dump"),
    ("plugin-dir", "it loads code"),
    ("help", "it makes no dump"),
    ("version", "it makes no dump"),
    ("parallel", "the dump must come through standard output"),
];

/// What `spec.source.extraArgs` may hold.
const ALLOWED: &[&str] = &[
    "add-drop-database",
    "add-drop-table",
    "add-drop-trigger",
    "add-locks",
    "allow-keywords",
    "apply-slave-statements",
    "column-statistics",
    "complete-insert",
    "compress",
    "compression-algorithms",
    "default-auth",
    "default-character-set",
    "delayed-insert",
    "disable-keys",
    "dump-date",
    "dump-history",
    "enable-cleartext-plugin",
    "events",
    "extended-insert",
    "flush-privileges",
    "get-server-public-key",
    "gtid",
    "header",
    "hex-blob",
    "ignore-table",
    "ignore-table-data",
    "include-master-host-port",
    "init-command",
    "insert-ignore",
    "lock-all-tables",
    "lock-tables",
    "max-allowed-packet",
    "max-statement-time",
    "net-buffer-length",
    "network-timeout",
    "no-autocommit",
    "no-create-db",
    "no-create-info",
    "no-data",
    "no-data-med",
    "no-tablespaces",
    "opt",
    "order-by-primary",
    "order-by-size",
    "quick",
    "quote-names",
    "replace",
    "routines",
    "set-charset",
    "set-gtid-purged",
    "show-create-skip-secondary-engine",
    "single-transaction",
    "skip-definer",
    "skip-generated-invisible-primary-key",
    "ssl",
    "ssl-cipher",
    "tables",
    "tls-version",
    "tls-ciphersuites",
    "triggers",
    "tz-utc",
    "where",
];

/// Short options without a value that change nothing the runner promises.
const SHORT: &str = "aceEFKlnNdQqRtvxC";

/// All arguments may be passed on.
///
/// # Errors
/// The first that may not, why, and what to do instead.
pub fn check(origin: Origin, args: &[String]) -> Result<(), String> {
    let field = match origin {
        Origin::Typed => "spec.source.extraArgs",
        Origin::Environment => "MYSQLDUMP_ARGS",
    };
    args.iter()
        .try_for_each(|arg| one(origin, arg).map_err(|why| format!("{field}: {why}")))
}

fn one(origin: Origin, arg: &str) -> Result<(), String> {
    if let Some(long) = arg.strip_prefix("--") {
        let name = long.split('=').next().unwrap_or_default();
        return self::long(origin, &name.to_ascii_lowercase().replace('_', "-"));
    }
    if let Some(short) = arg.strip_prefix('-') {
        if !short.is_empty() && short.chars().all(|c| SHORT.contains(c)) {
            return Ok(());
        }
        return Err(format!(
            "-{} is not accepted: write long options as --name=value",
            short.chars().next().unwrap_or_default()
        ));
    }
    Err("an argument does not begin with --: write --name=value as one word, and databases in DATABASES or spec.source.databases".to_owned())
}

fn long(origin: Origin, name: &str) -> Result<(), String> {
    if name.is_empty() {
        return Err("-- alone is not accepted".to_owned());
    }
    if let Some((full, why)) = REFUSED.iter().find(|(full, _)| *full == name) {
        return Err(format!("--{full} is not accepted: {why}"));
    }
    let plain = ["skip-", "disable-", "enable-", "loose-", "maximum-"]
        .iter()
        .find_map(|p| name.strip_prefix(p))
        .unwrap_or(name);
    if ALLOWED.contains(&name) || ALLOWED.contains(&plain) {
        return Ok(());
    }
    // `--comments` refused, `--skip-comm` means the same; `--loose-result-f` is `--result-file`.
    let refused = REFUSED
        .iter()
        .find(|(full, _)| full.starts_with(name) || full.starts_with(plain));
    if let Some((full, why)) = refused {
        return Err(format!(
            "--{name} may mean --{full}, which is not accepted: {why}"
        ));
    }
    match origin {
        Origin::Environment => Ok(()),
        Origin::Typed => Err(format!(
            "--{name} is not on the list of accepted arguments; write the option's full name"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ok(origin: Origin, arg: &str) -> bool {
        check(origin, &[arg.to_owned()]).is_ok()
    }

    #[test]
    fn what_breaks_the_promise_is_refused_under_every_spelling() {
        for arg in [
            "--result-file=/x",
            "--result_file=/x",
            "--RESULT-FILE=/x",
            "--result=/x",
            "--res=/x",
            "--loose-result-file=/x",
            "-r/x",
            "-rx",
            "--tab=/x",
            "-T/x",
            "--password=x",
            "--pass=x",
            "-px",
            "-p",
            "--force",
            "-f",
            "-qf",
            "--skip-comments",
            "--comments=0",
            "--skip-comm",
            "--comp",
            "--compact",
            "--xml",
            "-X",
            "--defaults-file=/x",
            "--host=x",
            "-hx",
            "--all-databases",
            "-A",
            "-B",
            "--help",
            "-?",
            "--ignore-error=1",
            "--log-error=/x",
            "--",
            "-",
            "shop",
        ] {
            assert!(!ok(Origin::Environment, arg), "{arg}");
            assert!(!ok(Origin::Typed, arg), "{arg}");
        }
    }

    #[test]
    fn useful_arguments_pass() {
        for arg in [
            "--set-gtid-purged=OFF",
            "--column-statistics=0",
            "--max-allowed-packet=1G",
            "--max_allowed_packet=1G",
            "--skip-triggers",
            "--skip-lock-tables",
            "--where=id<5",
            "--no-data",
            "-q",
            "-eK",
            "--compress",
            "--default-character-set=latin1",
        ] {
            assert!(ok(Origin::Environment, arg), "{arg}");
            assert!(ok(Origin::Typed, arg), "{arg}");
        }
        assert!(ok(Origin::Environment, "--some-new-option=1"));
        assert!(!ok(Origin::Typed, "--some-new-option=1"));
    }
}
