//! Which arguments users may add to the dump client. Clients accept every unambiguous prefix of an
//! option, so a name is judged by all options it could mean.

use crds::parts::TlsMode;

/// What may stand before every option's name.
const PREFIXES: [&str; 5] = ["skip-", "disable-", "enable-", "loose-", "maximum-"];

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
    (
        "tables",
        "names of databases would be read as tables; exclude those that are not wanted",
    ),
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
    let field = field(origin);
    args.iter()
        .try_for_each(|arg| one(origin, arg).map_err(|why| format!("{field}: {why}")))
}

/// Where TLS is demanded, no argument lowers it: what this says is `spec.source.tls`'s to say.
///
/// # Errors
/// The first argument that may, and what to do instead.
pub fn check_tls(origin: Origin, mode: TlsMode, args: &[String]) -> Result<(), String> {
    if matches!(mode, TlsMode::Disabled | TlsMode::Preferred) {
        return Ok(());
    }
    let field = field(origin);
    for arg in args.iter().filter_map(|a| a.strip_prefix("--")) {
        let (name, value) = arg
            .split_once('=')
            .map_or((arg, None), |(n, v)| (n, Some(v)));
        let name = plain(&name.to_ascii_lowercase().replace('_', "-")).to_owned();
        let about_tls = name.starts_with("ssl")
            || name.starts_with("tls")
            || ["ssl", "tls"].iter().any(|t| t.starts_with(&name));
        if about_tls && !keeps_tls(arg, &name, value) {
            return Err(format!(
                "{field}: --{} does not go with spec.source.tls.mode {mode:?}: remove the argument, or say it in spec.source.tls",
                arg.split('=').next().unwrap_or_default()
            ));
        }
    }
    Ok(())
}

/// True if an argument demands TLS, as users say it who have no field for it.
pub fn asks_for_tls(args: &[String]) -> bool {
    args.iter().filter_map(|a| a.strip_prefix("--")).any(|arg| {
        let arg = arg.to_ascii_lowercase().replace('_', "-");
        let (name, value) = arg.split_once('=').map_or((&*arg, ""), |(n, v)| (n, v));
        let demanded = ["required", "verify-ca", "verify-identity"].contains(&value);
        name == "ssl-mode" && demanded
            || name == "ssl-verify-server-cert" && ["", "1", "on", "true"].contains(&value)
    })
}

/// True for what asks for TLS once more, or for versions and ciphers that protect.
fn keeps_tls(arg: &str, name: &str, value: Option<&str>) -> bool {
    let value = value.map(|v| v.trim().to_ascii_uppercase());
    let list = || value.as_deref().unwrap_or_default().split([',', ':', ' ']);
    match name {
        "ssl" => {
            arg.to_ascii_lowercase().starts_with("ssl")
                && value
                    .as_deref()
                    .is_none_or(|v| ["1", "ON", "TRUE"].contains(&v))
        }
        "tls-version" => list().all(|v| matches!(v, "TLSV1.2" | "TLSV1.3")),
        "ssl-cipher" | "tls-ciphersuites" => list().all(|v| {
            let weak = ["NULL", "EXP", "ADH", "ANON", "LOW", "RC4", "DES", "MD5"];
            v.len() > 3
                && !v.starts_with(['@', '+', '-', '!'])
                && !weak.iter().any(|w| v.contains(w))
                && v != "COMPLEMENTOFALL"
        }),
        _ => false,
    }
}

/// A name without the prefixes that clients accept before every option, as often as they stand there.
fn plain(name: &str) -> &str {
    let mut name = name;
    while let Some(rest) = PREFIXES.iter().find_map(|p| name.strip_prefix(p)) {
        name = rest;
    }
    name
}

fn field(origin: Origin) -> &'static str {
    match origin {
        Origin::Typed => "spec.source.extraArgs",
        Origin::Environment => "MYSQLDUMP_ARGS",
    }
}

fn one(origin: Origin, arg: &str) -> Result<(), String> {
    if let Some(long) = arg.strip_prefix("--") {
        let (name, value) = long.split_once('=').unwrap_or((long, ""));
        let name = name.to_ascii_lowercase().replace('_', "-");
        let off = ["0", "off", "false"].contains(&value.to_ascii_lowercase().as_str());
        if name == "quote-names" && off {
            return self::long(origin, "skip-quote-names");
        }
        return self::long(origin, &name);
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
    let plain = plain(name);
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
            "--tables",
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

    /// Spellings as MySQL 9.7's and MariaDB 10.11's and 11.8's clients take them.
    #[test]
    fn s3_tls_that_is_demanded_is_not_taken_back_by_an_argument() {
        for mode in [
            TlsMode::Required,
            TlsMode::VerifyCA,
            TlsMode::VerifyIdentity,
        ] {
            for arg in [
                "--skip-ssl",
                "--skip_ssl",
                "--SKIP-SSL",
                "--ssl=0",
                "--ssl=OFF",
                "--ssl=false",
                "--disable-ssl",
                "--loose-skip-ssl",
                "--loose-ssl=0",
                "--skip-loose-ssl",
                "--ss=0",
                "--s=0",
                "--ssl-mode=DISABLED",
                "--ssl_mode=PREFERRED",
                "--ssl-mode=REQUIRED",
                "--ssl-m=DISABLED",
                "--loose-ssl-mode=DISABLED",
                "--ssl-verify-server-cert=0",
                "--skip-ssl-verify-server-cert",
                "--disable-ssl-verify-server-cert",
                "--ssl-ver=0",
                "--ssl-ca=/x",
                "--ssl-capath=/x",
                "--ssl-cert=/x",
                "--ssl-key=/x",
                "--ssl-crl=/x",
                "--ssl-fp=x",
                "--ssl-fips-mode=OFF",
                "--tls-version=",
                "--tls-version=TLSv1",
                "--tls-version=TLSv1.1,TLSv1.2",
                "--tls-sni-servername=x",
                "--tls-v=TLSv1",
                "--ssl-cipher=NULL",
                "--ssl-cipher=eNULL:AES128-SHA",
                "--ssl-cipher=ALL",
                "--ssl-cipher=",
                "--tls-ciphersuites=",
                "--loose-disable-ssl",
            ] {
                for origin in [Origin::Typed, Origin::Environment] {
                    let said = check_tls(origin, mode, &[arg.to_owned()]);
                    assert!(
                        said.is_err_and(|e| e.contains("spec.source.tls")),
                        "{mode:?} {arg}"
                    );
                }
            }
            for arg in [
                "--ssl",
                "--ssl=1",
                "--ssl=ON",
                "--tls-version=TLSv1.2",
                "--tls-version=TLSv1.2,TLSv1.3",
                "--ssl-cipher=ECDHE-RSA-AES128-GCM-SHA256",
                "--tls-ciphersuites=TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384",
                "--skip-triggers",
                "--set-gtid-purged=OFF",
                "--skip-tz-utc",
                "--tables",
                "--tz-utc",
                "-q",
            ] {
                assert_eq!(
                    check_tls(Origin::Environment, mode, &[arg.to_owned()]),
                    Ok(()),
                    "{mode:?} {arg}"
                );
            }
        }
        for mode in [TlsMode::Disabled, TlsMode::Preferred] {
            assert_eq!(
                check_tls(Origin::Environment, mode, &["--skip-ssl".to_owned()]),
                Ok(())
            );
        }
    }
}
