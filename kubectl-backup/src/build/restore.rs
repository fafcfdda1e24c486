//! A Restore from flags (PURE).

use crds::parts::{AgeDecryption, Decryption, SecretKeyRef};
use crds::restore::{
    Definers, Replay, RestoreFrom, RestoreLocation, RestoreSpec, RestoreTarget, StoredObject,
};

use super::mysql::{credentials, place, tls};
use crate::cli::{DefinersFlag, LocationFlags, ReplayFlags, Restore, S3Flags, TargetFlags};
use crate::error::{Error, Result};

/// The object that is restored from, and the run if one was named.
pub(crate) struct From {
    /// Kind of the object.
    pub(crate) kind: &'static str,
    /// Its name.
    pub(crate) name: String,
    /// Name of the run.
    pub(crate) run: Option<String>,
}

/// The spec.
///
/// # Errors
/// The first flag that is not valid.
pub(crate) fn spec(args: &Restore, from: Option<&From>) -> Result<RestoreSpec> {
    if let Some(at) = &args.at
        && crds::time::parse_rfc3339(at).is_none()
    {
        return Err(Error::usage(format!(
            "invalid --at {at:?}: write an RFC 3339 time such as 2026-01-31T02:00:00Z"
        )));
    }
    let source = match from {
        Some(from) => of_object(args, from)?,
        None => {
            archives_only(args)?;
            RestoreFrom {
                location: Some(location(&args.location, args.at.as_deref())),
                ..RestoreFrom::default()
            }
        }
    };
    let to = target(&args.target, from)?;
    let spec = RestoreSpec {
        from: source,
        decryption: args.decrypt_secret.as_deref().map(decryption).transpose()?,
        to,
        dry_run: args.check,
        overwrite: args.overwrite,
        accounts: args.accounts,
        replay: replay(&args.replay),
        verify: args.verify.map(Into::into),
        tables: args.tables.clone(),
        databases: args.databases.clone(),
        exclude_tables: args.exclude_tables.clone(),
        without_foreign_keys: args.without_foreign_keys,
        definers: definers(args)?,
        definer: args.definer.clone(),
        image: args.image.clone(),
        ..RestoreSpec::default()
    };
    let problems: Vec<String> = crds::validate::restore(&spec)
        .iter()
        .map(|problem| format!("invalid {}: {}", flag_of(&problem.path), problem.message))
        .collect();
    match problems.is_empty() {
        true => Ok(spec),
        false => Err(Error::usage(problems.join("; "))),
    }
}

/// The flag that sets a field.
fn flag_of(path: &str) -> &str {
    match path {
        "spec.to.host" => "--to",
        "spec.replay.at" => "--replay-to",
        "spec.replay" => "--replay-to, --gtid, --before-gtid, --latest",
        "spec.to.volume" | "spec.to.volume.path" => "--to-volume",
        "spec.to.credentialsSecretRef" => "--secret",
        "spec.to.sessions" => "--sessions",
        "spec.verify" => "--verify",
        "spec.from.location.destination.s3.bucket" => "--s3-bucket",
        "spec.from.location.destination.volume.path" => "--path",
        "spec.from.location.object" => "--of",
        "spec.accounts" => "--accounts",
        "spec.withoutForeignKeys" => "--without-foreign-keys",
        path if path.starts_with("spec.tables") => "--tables",
        path if path.starts_with("spec.databases") => "--databases",
        path if path.starts_with("spec.excludeTables") => "--exclude-tables",
        path => path,
    }
}

/// An artefact of an object: of one of its runs, by its key, of a moment, or the newest.
fn of_object(args: &Restore, from: &From) -> Result<RestoreFrom> {
    let key = args.location.key.clone();
    if from.run.is_some() {
        for (flag, set) in [("--at", args.at.is_some()), ("--key", key.is_some())] {
            if set {
                return Err(Error::usage(format!(
                    "{flag} goes with an object; a run is an artefact of its own"
                )));
            }
        }
    }
    let (place, s3) = (&args.location, &args.location.s3);
    for (flag, set) in [
        ("--of", place.of.is_some()),
        ("--path", place.path.is_some()),
        ("--s3-prefix", s3.s3_prefix.is_some()),
        ("--s3-endpoint", s3.s3_endpoint.is_some()),
        ("--s3-region", s3.s3_region.is_some()),
        ("--s3-secret", s3.s3_secret.is_some()),
        ("--s3-path-style", s3.s3_path_style),
    ] {
        if set {
            return Err(Error::usage(format!(
                "{flag} goes with --pvc or --s3-bucket, a place without its object; {} says itself where its artefacts are",
                from.name
            )));
        }
    }
    if from.kind == "MysqlBackup" {
        archives_only(args)?;
    }
    let latest = from.run.is_none() && args.at.is_none() && key.is_none();
    Ok(RestoreFrom {
        kind: Some(from.kind.to_owned()),
        name: Some(from.name.clone()),
        run: from.run.clone(),
        latest: latest.then_some(true),
        at: args.at.clone(),
        key,
        database: args.from_database.clone(),
        storage: args.storage.clone(),
        location: None,
    })
}

/// Up to where binary logs are replayed, where a flag says so.
fn replay(flags: &ReplayFlags) -> Option<Replay> {
    let replay = Replay {
        at: flags.replay_to.clone(),
        gtid: flags.gtid.clone(),
        before_gtid: flags.before_gtid.clone(),
        latest: flags.latest.then_some(true),
    };
    (replay != Replay::default()).then_some(replay)
}

/// What becomes of definers: `--definer` alone means To.
fn definers(args: &Restore) -> Result<Option<Definers>> {
    if args.target.to_volume.is_some() && (args.definers.is_some() || args.definer.is_some()) {
        return Err(Error::usage(
            "--definers and --definer go with --to: a volume has no definers",
        ));
    }
    let Some(account) = &args.definer else {
        return match args.definers {
            Some(DefinersFlag::To) => Err(Error::usage(
                "--definers to needs --definer USER@HOST, the account that all get",
            )),
            other => Ok(other.map(Definers::from)),
        };
    };
    if crds::restore::account(account).is_none() {
        return Err(Error::usage(format!(
            "invalid --definer {account:?}: write USER@HOST, such as app@%"
        )));
    }
    match args.definers {
        None | Some(DefinersFlag::To) => Ok(Some(Definers::To)),
        Some(_) => Err(Error::usage("--definer goes with --definers to")),
    }
}

fn target(flags: &TargetFlags, from: Option<&From>) -> Result<RestoreTarget> {
    if let Some(text) = &flags.to_volume {
        if from.is_none_or(|from| from.kind == "MysqlBackup") {
            return Err(Error::usage(
                "--to-volume goes with a Backup or CronBackup of gobackup.io; the dump of a MysqlBackup is brought by kubectl backup download",
            ));
        }
        let (claim, path) = match text.split_once('/') {
            Some((claim, path)) => (claim, Some(path).filter(|path| !path.is_empty())),
            None => (text.as_str(), None),
        };
        if claim.is_empty() {
            return Err(Error::usage(format!(
                "invalid --to-volume {text:?}: write CLAIM or CLAIM/DIRECTORY"
            )));
        }
        return Ok(RestoreTarget {
            volume: place(Some(claim), path, None, &S3Flags::default()).volume,
            ..RestoreTarget::default()
        });
    }
    let (host, port) = address(flags.to.as_deref().unwrap_or_default())?;
    let secret = flags.secret.as_deref();
    Ok(RestoreTarget {
        host: Some(host),
        port,
        credentials_secret_ref: secret.map(credentials).transpose()?,
        database: flags.database.clone(),
        tls: flags.tls.map(tls),
        sessions: flags.sessions,
        ..RestoreTarget::default()
    })
}

/// A dump of a MysqlBackup is one of its own, in one place.
fn archives_only(args: &Restore) -> Result<()> {
    for (flag, set) in [
        ("--from-database", args.from_database.is_some()),
        ("--storage", args.storage.is_some()),
    ] {
        if set {
            return Err(Error::usage(format!(
                "{flag} goes with a Backup or CronBackup of gobackup.io, whose archives it chooses from"
            )));
        }
    }
    Ok(())
}

/// `HOST`, `HOST:PORT`, `[ADDRESS]:PORT`.
fn address(text: &str) -> Result<(String, Option<i32>)> {
    let bad = || Error::usage(format!("invalid --to {text:?}: write HOST or HOST:PORT"));
    let (host, port) = match text.strip_prefix('[').and_then(|t| t.split_once(']')) {
        Some((host, "")) => (host, None),
        Some((host, rest)) => (host, Some(rest.strip_prefix(':').ok_or_else(bad)?)),
        None => match text.split_once(':') {
            Some((_, rest)) if rest.contains(':') => (text, None),
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    if host.is_empty() || host.contains(char::is_whitespace) {
        return Err(bad());
    }
    let port = match port {
        None => None,
        Some(port) => Some(i32::from(
            port.parse::<u16>()
                .ok()
                .filter(|p| *p > 0)
                .ok_or_else(bad)?,
        )),
    };
    Ok((host.to_owned(), port))
}

/// `SECRET:KEY` of an age identity.
///
/// # Errors
/// It is written otherwise.
pub(crate) fn decryption(text: &str) -> Result<Decryption> {
    match text.split_once(':') {
        Some((name, key)) if !name.is_empty() && !key.is_empty() => Ok(Decryption {
            age: Some(AgeDecryption {
                identity_secret_key_ref: SecretKeyRef {
                    name: name.to_owned(),
                    key: key.to_owned(),
                },
            }),
        }),
        _ => Err(Error::usage(format!(
            "invalid --decrypt-secret {text:?}: write SECRET:KEY"
        ))),
    }
}

fn location(flags: &LocationFlags, at: Option<&str>) -> RestoreLocation {
    let object = flags.of.as_ref().map(|of| {
        let (namespace, name) = match of.split_once('/') {
            Some((namespace, name)) => (Some(namespace.to_owned()), name),
            None => (None, of.as_str()),
        };
        StoredObject {
            kind: None,
            namespace,
            name: name.to_owned(),
        }
    });
    RestoreLocation {
        destination: place(
            flags.pvc.as_deref(),
            flags.path.as_deref(),
            flags.s3_bucket.as_deref(),
            &flags.s3,
        ),
        latest: (flags.key.is_none() && at.is_none()).then_some(true),
        key: flags.key.clone(),
        at: at.map(str::to_owned),
        object,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use super::*;

    #[test]
    fn addresses() {
        for (text, host, port) in [
            ("db", "db", None),
            ("db.prod:3307", "db.prod", Some(3307)),
            ("::1", "::1", None),
            ("[::1]:3307", "::1", Some(3307)),
            ("[::1]", "::1", None),
        ] {
            assert_eq!(address(text).unwrap(), (host.to_owned(), port), "{text}");
        }
        for bad in ["", ":3306", "db:0", "db:x", "db:70000", "[::1]x", "a b"] {
            assert!(address(bad).is_err(), "{bad}");
        }
    }
}
