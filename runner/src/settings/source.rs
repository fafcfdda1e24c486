//! The server to dump from: `source` of the spec, or HOST, PORT, USERNAME, PASSWORD, DATABASES,
//! EXCLUDE_TABLES and MYSQLDUMP_ARGS.

use crds::bounds::MAX_SESSIONS;
use crds::parts::{Engine, TlsMode};
use crds::request::Action;
use crds::run_spec::RunSource;
use secrecy::{ExposeSecret, SecretString};

use crate::settings::args::{self, Origin};
use crate::settings::value::Input;

/// Which databases to dump.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Databases {
    /// All but the server's own.
    All,
    /// These.
    Listed(Vec<String>),
}

/// A server and what to dump of it.
#[derive(Debug)]
pub struct Source {
    /// Bare host name or address, without brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Unix socket, instead of host and port.
    pub socket: Option<String>,
    /// User name.
    pub username: String,
    /// Password, may be empty.
    pub password: SecretString,
    /// Which databases.
    pub databases: Databases,
    /// Tables left out: database, table.
    pub exclude_tables: Vec<(String, String)>,
    /// How much transport security is demanded.
    pub tls: TlsMode,
    /// CA certificate.
    pub ca_file: Option<String>,
    /// More arguments for the dump client.
    pub extra_args: Vec<String>,
    /// What makes the dump; `None` leaves it to server and tables.
    pub engine: Option<Engine>,
    /// Users, roles and grants are dumped too.
    pub accounts: bool,
    /// Connections that the native engine reads with; `None` leaves it to [`Source::sessions`].
    pub asked_sessions: Option<usize>,
}

/// Most connections that are opened unless asked for.
const SESSIONS: usize = 4;

impl Source {
    /// Connections that the native engine reads with, where `cpus` are the container's.
    pub fn sessions(&self, cpus: usize) -> usize {
        self.asked_sessions.unwrap_or(cpus.clamp(1, SESSIONS))
    }
}

/// Reads the source; all problems at once.
pub(super) fn parse(
    input: &mut Input<'_>,
    typed: Option<&RunSource>,
    action: Action,
) -> Result<Source, Vec<String>> {
    let empty = RunSource::default();
    let typed = typed.unwrap_or(&empty);
    let mut problems = vec![];
    let socket = typed.socket.clone().filter(|s| !s.is_empty());
    let host = collect(&mut problems, host(input, typed, socket.is_some()));
    let port = collect(&mut problems, port(input, typed));
    let username = collect(&mut problems, username(input, typed));
    let password = collect(&mut problems, password(input, typed, action));
    let databases = collect(&mut problems, databases(input, typed));
    let exclude_tables = collect(&mut problems, exclude_tables(input, typed));
    let extra_args = collect(&mut problems, extra_args(input, typed));
    let tls = collect(&mut problems, tls(typed));
    let asked_sessions = collect(&mut problems, sessions(typed));
    if let (Some(args), Some(mode)) = (&extra_args, tls) {
        let origin = if typed.extra_args.is_empty() {
            Origin::Environment
        } else {
            Origin::Typed
        };
        collect(&mut problems, args::check_tls(origin, mode, args));
    }
    match (
        host,
        port,
        username,
        password,
        databases,
        exclude_tables,
        extra_args,
        tls,
        asked_sessions,
    ) {
        (
            Some(host),
            Some(port),
            Some(username),
            Some(password),
            Some(databases),
            Some(exclude_tables),
            Some(extra_args),
            Some(tls),
            Some(asked_sessions),
        ) if problems.is_empty() => Ok(Source {
            host,
            port,
            socket,
            username,
            password,
            databases,
            exclude_tables,
            tls,
            ca_file: typed.ca_file.clone(),
            extra_args,
            engine: typed.engine,
            accounts: typed.accounts,
            asked_sessions,
        }),
        _ => Err(problems),
    }
}

fn collect<T>(problems: &mut Vec<String>, result: Result<T, String>) -> Option<T> {
    result.map_err(|e| problems.push(e)).ok()
}

/// The typed value, or the variable; both set is worth a warning.
fn either(
    input: &mut Input<'_>,
    typed: Option<String>,
    field: &str,
    variable: &str,
) -> Option<String> {
    let env = input.get(variable);
    match (typed.filter(|t| !t.is_empty()), env) {
        (Some(typed), Some(env)) => {
            if typed != env {
                input.typed_wins(variable, field);
            }
            Some(typed)
        }
        (Some(typed), None) => Some(typed),
        (None, env) => env,
    }
}

fn host(input: &mut Input<'_>, typed: &RunSource, socket: bool) -> Result<String, String> {
    let Some(text) = either(input, typed.host.clone(), "spec.source.host", "HOST") else {
        return if socket {
            Ok("localhost".to_owned())
        } else {
            Err("HOST is not set: name the server in HOST or in spec.source.host".to_owned())
        };
    };
    let named = match &typed.host {
        Some(typed) if *typed == text => format!("{text:?}"),
        _ => input.named("HOST", &text),
    };
    crds::host::bare(&text)
        .map(str::to_owned)
        .map_err(|fault| format!("HOST: {named} {fault}"))
}

fn port(input: &mut Input<'_>, typed: &RunSource) -> Result<u16, String> {
    let text = either(
        input,
        typed.port.map(|p| p.to_string()),
        "spec.source.port",
        "PORT",
    );
    match text.as_deref().map(str::parse::<u16>) {
        None => Ok(3306),
        Some(Ok(port)) if port > 0 => Ok(port),
        _ => {
            let text = text.unwrap_or_default();
            let named = match typed.port {
                Some(_) => format!("{text:?}"),
                None => input.named("PORT", &text),
            };
            Err(format!("PORT: {named} is not a port from 1 to 65535"))
        }
    }
}

fn username(input: &mut Input<'_>, typed: &RunSource) -> Result<String, String> {
    let env = input
        .raw("USERNAME")
        .filter(|v| !v.is_empty())
        .map(str::to_owned);
    let text = match &typed.username_file {
        Some(file) => {
            if env.is_some() {
                input.typed_wins("USERNAME", "spec.source.credentialsSecretRef");
            }
            input.file("spec.source.credentialsSecretRef", file)?
        }
        None => env.ok_or(
            "USERNAME is not set: name the user in USERNAME or in spec.source.credentialsSecretRef",
        )?,
    };
    let text = text
        .strip_suffix("\r\n")
        .or_else(|| text.strip_suffix('\n'))
        .unwrap_or(&text);
    if text.is_empty() || text.contains('\0') {
        return Err("the user name is empty: check the Secret's key".to_owned());
    }
    Ok(text.to_owned())
}

/// The password. A backup without one is a Secret that was never filled; a server that is restored
/// into may ask for none, as a Redis in the namespace does.
fn password(
    input: &mut Input<'_>,
    typed: &RunSource,
    action: Action,
) -> Result<SecretString, String> {
    let env = input.raw("PASSWORD").map(str::to_owned);
    if let Some(file) = &typed.password_file {
        if env.is_some_and(|p| !p.is_empty()) {
            input.typed_wins("PASSWORD", "spec.source.credentialsSecretRef");
        }
        let text = input.file("spec.source.credentialsSecretRef", file)?;
        let password = input.secret("the Secret of spec.source.credentialsSecretRef", &text);
        if action != Action::Restore && password.expose_secret().is_empty() {
            return Err(
                "the password is empty: fill its key in the Secret of spec.source.credentialsSecretRef"
                    .to_owned(),
            );
        }
        return Ok(password);
    }
    Ok(input.secret("PASSWORD", &env.unwrap_or_default()))
}

fn databases(input: &mut Input<'_>, typed: &RunSource) -> Result<Databases, String> {
    let env = input.raw("DATABASES").map(str::to_owned);
    if !typed.databases.is_empty() {
        if env.is_some() {
            input.typed_wins("DATABASES", "spec.source.databases");
        }
        return listed("spec.source.databases", typed.databases.clone(), |name| {
            format!("{name:?}")
        });
    }
    match env {
        None => Ok(Databases::All),
        Some(text) if text.trim().is_empty() => Err(
            "DATABASES is set but empty: name databases, or leave it out to dump all".to_owned(),
        ),
        Some(text) => listed("DATABASES", names(&text), |name| {
            input.named("DATABASES", name)
        }),
    }
}

fn listed(
    field: &str,
    names: Vec<String>,
    named: impl Fn(&str) -> String,
) -> Result<Databases, String> {
    if names.iter().any(|n| n.trim().is_empty()) {
        return Err(format!("{field} holds an empty name: remove it"));
    }
    if let Some(name) = names
        .iter()
        .find(|n| n.contains('\0') || n.chars().count() > 64)
    {
        return Err(format!(
            "{field}: {} can't be the name of a database",
            named(name)
        ));
    }
    Ok(Databases::Listed(names))
}

/// Names apart by commas, or by blanks where there is no comma.
fn names(text: &str) -> Vec<String> {
    if text.contains(',') {
        text.split(',').map(|n| n.trim().to_owned()).collect()
    } else {
        text.split_whitespace().map(str::to_owned).collect()
    }
}

fn exclude_tables(
    input: &mut Input<'_>,
    typed: &RunSource,
) -> Result<Vec<(String, String)>, String> {
    let env = input.get("EXCLUDE_TABLES");
    let (field, list) = if typed.exclude_tables.is_empty() {
        ("EXCLUDE_TABLES", env.map(|t| names(&t)).unwrap_or_default())
    } else {
        if env.is_some() {
            input.typed_wins("EXCLUDE_TABLES", "spec.source.excludeTables");
        }
        ("spec.source.excludeTables", typed.exclude_tables.clone())
    };
    list.iter()
        .map(|entry| match entry.split_once('.') {
            Some((database, table)) if !database.is_empty() && !table.is_empty() => {
                Ok((database.to_owned(), table.to_owned()))
            }
            _ => {
                let named = if field == "EXCLUDE_TABLES" {
                    input.named(field, entry)
                } else {
                    format!("{entry:?}")
                };
                Err(format!("{field}: {named} is not database.table"))
            }
        })
        .collect()
}

fn extra_args(input: &mut Input<'_>, typed: &RunSource) -> Result<Vec<String>, String> {
    let env = input.get("MYSQLDUMP_ARGS");
    if !typed.extra_args.is_empty() {
        if env.is_some() {
            input.typed_wins("MYSQLDUMP_ARGS", "spec.source.extraArgs");
        }
        args::check(Origin::Typed, &typed.extra_args)?;
        return Ok(typed.extra_args.clone());
    }
    let Some(text) = env else { return Ok(vec![]) };
    let split = shlex::split(&text).ok_or_else(|| {
        "MYSQLDUMP_ARGS can't be split into arguments: a quote is not closed".to_owned()
    })?;
    args::check(Origin::Environment, &split)?;
    Ok(split)
}

fn sessions(typed: &RunSource) -> Result<Option<usize>, String> {
    let Some(asked) = typed.sessions else {
        return Ok(None);
    };
    usize::try_from(asked)
        .ok()
        .filter(|_| (1..=MAX_SESSIONS).contains(&asked))
        .map(Some)
        .ok_or_else(|| format!("spec.source.sessions: {asked} is not 1 to {MAX_SESSIONS}"))
}

fn tls(typed: &RunSource) -> Result<TlsMode, String> {
    Ok(match typed.tls_mode.as_deref() {
        None | Some("" | "Preferred") => TlsMode::Preferred,
        Some("Disabled") => TlsMode::Disabled,
        Some("Required") => TlsMode::Required,
        Some("VerifyCA") => TlsMode::VerifyCA,
        Some("VerifyIdentity") => TlsMode::VerifyIdentity,
        Some(other) => {
            return Err(format!(
                "spec.source.tls.mode: {other:?} is none of Disabled, Preferred, Required, VerifyCA, VerifyIdentity"
            ));
        }
    })
}
