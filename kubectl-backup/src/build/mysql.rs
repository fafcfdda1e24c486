//! Objects from flags (PURE): what `create` sends, checked by the rules operator and webhook use.

use std::collections::BTreeMap;

use crds::binlogs::Binlogs;
use crds::mysql_backup::MysqlSource;
use crds::parts::{
    AgeEncryption, Compression, CompressionType, ConcurrencyPolicy, CredentialsRef, Destination,
    Encryption, Engine, Retention, S3CredentialsRef, S3Destination, SecretKeyRef, Tls, TlsMode,
    Verify, VerifyMode, VolumeDestination,
};
use crds::validate::Problem;
use crds::{MysqlBackup, MysqlBackupSpec};
use k8s_openapi::api::core::v1::{EnvVar, LocalObjectReference, PersistentVolumeClaimVolumeSource};

use super::bad_name;
use crate::cli::{
    Concurrency, CreateMysql, DestinationFlags, EngineFlag, S3Flags, SourceFlags, StoreFlags,
    TlsFlag, VerifyFlags, VerifyModeFlag,
};
use crate::error::{Error, Result};

/// A MysqlBackup.
///
/// # Errors
/// The first flag that is not valid, in the words of the server's own checks.
pub(crate) fn mysql(args: &CreateMysql) -> Result<MysqlBackup> {
    let spec = MysqlBackupSpec {
        schedule: args.schedule.clone().unwrap_or_default(),
        time_zone: args.time_zone.clone(),
        suspend: args.suspend.then_some(true),
        concurrency_policy: match args.concurrency_policy {
            None | Some(Concurrency::Allow) => ConcurrencyPolicy::Allow,
            Some(Concurrency::Forbid) => ConcurrencyPolicy::Forbid,
            Some(Concurrency::Replace) => ConcurrencyPolicy::Replace,
        },
        image: args.pod.image.clone(),
        node_selector: pairs("--node-selector", &args.pod.node_selector)?,
        service_account_name: args.pod.service_account.clone(),
        backup_envs: envs(&args.source.env)?,
        source: source(&args.source, args.pod.client_image.as_deref())?,
        destination: destination(&args.store.destination),
        compression: args
            .store
            .compression
            .as_deref()
            .map(compression)
            .transpose()?,
        encryption: encryption(&args.store)?,
        retention: retention(&args.store.retention)?,
        binlogs: args.source.binlogs.as_deref().map(binlogs),
        verify: verify(&args.store.verify),
        ..MysqlBackupSpec::default()
    };
    let name = args.name.as_deref().unwrap_or_default();
    let mut found: Vec<Problem> = crds::validate::name(name).into_iter().collect();
    found.extend(crds::validate::mysql_backup(&spec));
    let needs = crds::validate::needs(&spec);
    let (missing, wrong): (Vec<Problem>, Vec<Problem>) = found
        .into_iter()
        .partition(|problem| needs.contains(problem));
    let mut problems: Vec<String> = bad_name(name).into_iter().collect();
    problems.extend(wrong.iter().map(flag_words));
    if !missing.is_empty() {
        let flags: Vec<&str> = missing.iter().map(|p| flag_of(&p.path)).collect();
        problems.push(format!(
            "create mysql needs {} (or variables of the runner as --env, or --image with a program of your own)",
            flags.join(", and ")
        ));
    }
    if !problems.is_empty() {
        return Err(Error::usage(problems.join("; "))
            .hint("kubectl backup create mysql --interactive asks for everything"));
    }
    let mut object = MysqlBackup::new(name, spec);
    let labels = pairs("--labels", &args.labels)?;
    object.metadata.labels = (!labels.is_empty()).then_some(labels);
    Ok(object)
}

/// What `--binlogs` takes instead of an interval.
pub(crate) const CONTINUOUS: &str = "continuous";

fn binlogs(text: &str) -> Binlogs {
    let continuous = text == CONTINUOUS;
    Binlogs {
        interval: (!continuous).then(|| text.to_owned()),
        continuous,
    }
}

/// A problem in terms of the flag that set the field.
fn flag_words(problem: &Problem) -> String {
    format!("invalid {}: {}", flag_of(&problem.path), problem.message)
}

/// The flag that sets a field, with what it takes where that helps.
pub(crate) fn flag_of(path: &str) -> &str {
    match path {
        "spec.schedule" => "--schedule",
        "spec.timeZone" => "--time-zone",
        "spec.source.host" => "--host HOST",
        "spec.source.credentialsSecretRef" => "--secret SECRET",
        "spec.destination" => "--pvc CLAIM, --s3-bucket BUCKET or --storage NAME",
        "spec.destination.s3.bucket" => "--s3-bucket",
        "spec.destination.volume.path" => "--path",
        "spec.compression.level" => "--compression",
        "spec.retention.maxAge" => "--retention max-age",
        "metadata.name" => "name",
        path if path.starts_with("spec.encryption.age") => "--encrypt-to",
        path if path.starts_with("spec.source.excludeTables") => "--exclude-tables",
        path if path.starts_with("spec.source.databases") => "--databases",
        "spec.binlogs.interval" => "--binlogs",
        "spec.verify.mode" => "--verify",
        "spec.source.accounts" => "--accounts",
        "spec.source.sessions" => "--sessions",
        path => path,
    }
}

/// `KEY=VALUE` flags.
fn pairs(flag: &str, texts: &[String]) -> Result<BTreeMap<String, String>> {
    let pair = |text: &String| {
        let (key, value) = text
            .split_once('=')
            .filter(|(key, _)| !key.is_empty())
            .ok_or_else(|| Error::usage(format!("invalid {flag} {text:?}: write KEY=VALUE")))?;
        Ok((key.to_owned(), value.to_owned()))
    };
    texts.iter().map(pair).collect()
}

/// Variables, each value text whatever it looks like. The value is never quoted in an error.
fn envs(texts: &[String]) -> Result<Vec<EnvVar>> {
    let variable = |text: &String| {
        let (name, value) = text
            .split_once('=')
            .ok_or_else(|| Error::usage("invalid --env: one has no `=`; write NAME=VALUE"))?;
        if name.is_empty() || name.contains(char::is_whitespace) {
            return Err(Error::usage(format!("invalid --env name {name:?}")));
        }
        Ok(EnvVar {
            name: name.to_owned(),
            value: Some(value.to_owned()),
            value_from: None,
        })
    };
    texts.iter().map(variable).collect()
}

fn source(flags: &SourceFlags, client_image: Option<&str>) -> Result<Option<MysqlSource>> {
    let secret = flags.secret.as_deref().map(credentials).transpose()?;
    let source = MysqlSource {
        host: flags.host.clone(),
        port: flags.port.map(i32::from),
        credentials_secret_ref: secret,
        databases: flags.databases.clone(),
        exclude_tables: flags.exclude_tables.clone(),
        tls: flags.tls.map(tls),
        engine: flags.engine.engine.map(engine),
        accounts: flags.engine.accounts,
        sessions: flags.engine.sessions,
        client_image: client_image.map(str::to_owned),
        ..MysqlSource::default()
    };
    Ok((source != MysqlSource::default()).then_some(source))
}

/// `--verify` and `--verify-every`; `None` where neither is given.
pub(crate) fn verify(flags: &VerifyFlags) -> Option<Verify> {
    let verify = Verify {
        mode: match flags.verify {
            None | Some(VerifyModeFlag::Checksum) => VerifyMode::Checksum,
            Some(VerifyModeFlag::Restore) => VerifyMode::Restore,
            Some(VerifyModeFlag::Replay) => VerifyMode::Replay,
        },
        every: flags.verify_every,
        ..Verify::default()
    };
    (flags.verify.is_some() || flags.verify_every.is_some()).then_some(verify)
}

/// `--engine`.
pub(crate) fn engine(flag: EngineFlag) -> Engine {
    match flag {
        EngineFlag::Native => Engine::Native,
        EngineFlag::Client => Engine::Client,
    }
}

/// `--tls`.
pub(crate) fn tls(mode: TlsFlag) -> Tls {
    Tls {
        mode: match mode {
            TlsFlag::Disabled => TlsMode::Disabled,
            TlsFlag::Preferred => TlsMode::Preferred,
            TlsFlag::Required => TlsMode::Required,
            TlsFlag::VerifyCa => TlsMode::VerifyCA,
            TlsFlag::VerifyIdentity => TlsMode::VerifyIdentity,
        },
        ca_secret_key_ref: None,
    }
}

/// `NAME` or `NAME:USERNAME-KEY:PASSWORD-KEY`.
///
/// # Errors
/// Another form.
pub(crate) fn credentials(text: &str) -> Result<CredentialsRef> {
    let parts: Vec<&str> = text.split(':').collect();
    let key = |index: usize| {
        parts
            .get(index)
            .filter(|k| !k.is_empty())
            .map(ToString::to_string)
    };
    if parts[0].is_empty() || parts.len() > 3 {
        return Err(Error::usage(format!(
            "invalid --secret {text:?}: write NAME, or NAME:USERNAME-KEY:PASSWORD-KEY"
        )));
    }
    Ok(CredentialsRef {
        name: parts[0].to_owned(),
        username_key: key(1),
        password_key: key(2),
    })
}

/// Where the flags of a volume claim or a bucket point.
pub(crate) fn place(
    pvc: Option<&str>,
    path: Option<&str>,
    bucket: Option<&str>,
    s3: &S3Flags,
) -> Destination {
    let volume = pvc.map(|claim| VolumeDestination {
        path: path.map(str::to_owned),
        persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
            claim_name: claim.to_owned(),
            read_only: None,
        }),
        ..VolumeDestination::default()
    });
    let s3 = bucket.map(|bucket| S3Destination {
        bucket: bucket.to_owned(),
        prefix: s3.s3_prefix.clone(),
        endpoint: s3.s3_endpoint.clone(),
        region: s3.s3_region.clone(),
        force_path_style: s3.s3_path_style.then_some(true),
        credentials_secret_ref: s3.s3_secret.as_ref().map(|name| S3CredentialsRef {
            name: name.clone(),
            ..S3CredentialsRef::default()
        }),
        ca_secret_key_ref: None,
    });
    Destination {
        volume,
        s3,
        storage_ref: None,
    }
}

/// What the flags say of it; `None` if nothing.
pub(crate) fn destination(flags: &DestinationFlags) -> Option<Destination> {
    let (pvc, path) = (flags.pvc.as_deref(), flags.path.as_deref());
    let mut destination = place(pvc, path, flags.s3_bucket.as_deref(), &flags.s3);
    destination.storage_ref = flags
        .storage
        .as_ref()
        .map(|name| LocalObjectReference { name: name.clone() });
    (destination != Destination::default()).then_some(destination)
}

/// `zstd`, `zstd:9`, `gzip:6`, `none`.
pub(crate) fn compression(text: &str) -> Result<Compression> {
    let (name, level) = match text.split_once(':') {
        Some((name, level)) => (name, Some(level)),
        None => (text, None),
    };
    let type_ = match name {
        "zstd" => CompressionType::Zstd,
        "gzip" => CompressionType::Gzip,
        "none" => CompressionType::None,
        _ => {
            return Err(Error::usage(format!(
                "invalid --compression {text:?}: use zstd, gzip or none"
            )));
        }
    };
    let wrong = |why: &str| Error::usage(format!("invalid --compression {text:?}: {why}"));
    let level = match level.map(str::parse::<i32>) {
        None => None,
        Some(_) if type_ == CompressionType::None => return Err(wrong("none has no level")),
        Some(Ok(level)) => Some(level),
        Some(Err(_)) => return Err(wrong("the level is a number")),
    };
    let compression = Compression { type_, level };
    match compression.fault() {
        Some(fault) => Err(wrong(&format!("the level {fault}"))),
        None => Ok(compression),
    }
}

fn encryption(flags: &StoreFlags) -> Result<Option<Encryption>> {
    let secret = match &flags.encrypt_secret {
        None => None,
        Some(text) => match text.split_once(':') {
            Some((name, key)) if !name.is_empty() && !key.is_empty() => Some(SecretKeyRef {
                name: name.to_owned(),
                key: key.to_owned(),
            }),
            _ => {
                return Err(Error::usage(format!(
                    "invalid --encrypt-secret {text:?}: write SECRET:KEY"
                )));
            }
        },
    };
    let age = AgeEncryption {
        recipients: flags.encrypt_to.clone(),
        recipients_secret_key_ref: secret,
    };
    Ok((age != AgeEncryption::default()).then_some(Encryption { age: Some(age) }))
}

/// `keep-last=7,keep-daily=14,max-age=720h`.
pub(crate) fn retention(rules: &[String]) -> Result<Option<Retention>> {
    let mut retention = Retention::default();
    for rule in rules {
        let wrong = |why: &str| Error::usage(format!("invalid --retention {rule:?}: {why}"));
        let (name, value) = rule
            .split_once('=')
            .ok_or_else(|| wrong("write RULE=VALUE"))?;
        if name == "max-age" {
            retention.max_age = Some(value.to_owned());
            continue;
        }
        let count = value.parse::<i32>().ok().filter(|n| *n >= 0);
        let count = Some(count.ok_or_else(|| wrong("the value is a number of artefacts"))?);
        match name {
            "keep-last" => retention.keep_last = count,
            "keep-hourly" => retention.keep_hourly = count,
            "keep-daily" => retention.keep_daily = count,
            "keep-weekly" => retention.keep_weekly = count,
            "keep-monthly" => retention.keep_monthly = count,
            _ => {
                return Err(wrong(
                    "the rules are keep-last, keep-hourly, keep-daily, keep-weekly, keep-monthly, max-age",
                ));
            }
        }
    }
    Ok((retention != Retention::default()).then_some(retention))
}
