//! A MysqlBackup.

use crate::bounds::MAX_SESSIONS;
use crate::dump_arguments::Arguments;
use crate::mysql_backup::MysqlBackupSpec;
use crate::parts::{Compression, Engine, recipient_fault};
use crate::schedule::{Schedule, parse_go_duration};
use crate::volumes::{self, Ground};

use super::pod::{metadata, pod};
use super::verify::Replays;
use super::{Problem, destination, host, notifications, verify};

/// Every mistake of a MysqlBackup's spec that would keep it from running.
pub fn mysql_backup(spec: &MysqlBackupSpec) -> Vec<Problem> {
    let mut found = vec![];
    if let Err(e) = Schedule::parse(&spec.schedule, spec.time_zone.as_deref()) {
        let path = if e.is_time_zone() {
            "spec.timeZone"
        } else {
            "spec.schedule"
        };
        found.push(Problem::new(path, e.to_string()));
    }
    bounds(spec, &mut found);
    if spec.image.is_none() {
        found.extend(arguments(spec));
        found.extend(needs(spec));
    }
    pod(&spec.volumes, &spec.volume_mounts, &mut found);
    metadata(spec.pod_metadata.as_ref(), &mut found);
    source(spec, &mut found);
    match &spec.destination {
        Some(destination) => self::destination("spec.destination", destination, &mut found),
        None if spec.image.is_none() => found.extend(sqlpath(spec)),
        None => {}
    }
    if let Some(verify) = &spec.verify {
        let replays = match &spec.binlogs {
            Some(_) => Replays::Can,
            None => Replays::WithoutBinlogs,
        };
        found.extend(self::verify("spec.verify", verify, replays));
    }
    found.extend(notifications(&spec.notifications));
    if let Some(fault) = spec.compression.as_ref().and_then(Compression::fault) {
        found.push(Problem::new("spec.compression.level", fault));
    }
    if let Some(age) = spec.encryption.as_ref().map(|e| e.age.as_ref()) {
        for (i, text) in age.iter().flat_map(|a| a.recipients.iter().enumerate()) {
            if let Some(fault) = recipient_fault(text) {
                let path = format!("spec.encryption.age.recipients[{i}]");
                found.push(Problem::new(path, fault));
            }
        }
        let empty =
            age.is_none_or(|a| a.recipients.is_empty() && a.recipients_secret_key_ref.is_none());
        if empty {
            found.push(Problem::new(
                "spec.encryption.age",
                "names no recipient; set recipients or recipientsSecretKeyRef, or remove encryption",
            ));
        }
    }
    if let Some(binlogs) = &spec.binlogs {
        let fault = binlogs.seconds().err();
        found.extend(fault.map(|fault| Problem::new("spec.binlogs.interval", fault)));
        found.extend(part_of_a_server(spec));
    }
    if let Some(text) = spec.retention.as_ref().and_then(|r| r.max_age.as_deref())
        && parse_go_duration(text).is_err()
    {
        found.push(Problem::new(
            "spec.retention.maxAge",
            format!("{text:?} is not a duration; write it like 720h"),
        ));
    }
    found
}

/// Arguments beside our own runner, which is told everything by its spec: with others it does something
/// else than a backup. For a spec that names no image; what image is the runner's, the operator knows.
pub fn arguments(spec: &MysqlBackupSpec) -> Option<Problem> {
    (!spec.args.is_empty()).then(|| {
        Problem::new(
            "spec.args",
            "are arguments for an image of your own, and the operator's runner makes no backup with them; remove spec.args (arguments of the dump client go into spec.source.extraArgs), or name your image in spec.image",
        )
    })
}

/// True if a variable of `backupEnvs` has a value. What it holds that comes from elsewhere, the runner judges.
fn is_given(spec: &MysqlBackupSpec, name: &str) -> bool {
    let mut named = spec.backup_envs.iter().filter(|e| e.name == name);
    named.any(|e| e.value_from.is_some() || e.value.as_deref().is_some_and(|v| !v.is_empty()))
}

/// What our own runner can't start without and nobody gives it. For a spec that names no image, or
/// the runner's; another program has needs of its own.
pub fn needs(spec: &MysqlBackupSpec) -> Vec<Problem> {
    let given = |name: &str| is_given(spec, name);
    let source = spec.source.clone().unwrap_or_default();
    let filled = |text: &Option<String>| text.as_deref().is_some_and(|t| !t.is_empty());
    let rows = [
        (
            filled(&source.host) || filled(&source.socket) || given("HOST"),
            "spec.source.host",
            "names no server; set it, or HOST in spec.backupEnvs",
        ),
        (
            source.credentials_secret_ref.is_some() || given("USERNAME"),
            "spec.source.credentialsSecretRef",
            "names no Secret with user name and password; set it, or USERNAME and PASSWORD in spec.backupEnvs",
        ),
        (
            spec.destination.is_some() || given("SQLPATH"),
            "spec.destination",
            "names no place to store in; set volume, s3 or storageRef, or SQLPATH in spec.backupEnvs",
        ),
    ];
    let missing = rows.into_iter().filter(|(given, ..)| !given);
    missing
        .map(|(_, path, message)| Problem::new(path, message))
        .collect()
}

/// A backup of a part of its server, beside binary logs: what they hold of the other part can't be replayed onto it.
fn part_of_a_server(spec: &MysqlBackupSpec) -> Option<Problem> {
    let source = spec.source.clone().unwrap_or_default();
    let variable = |name: &str| is_given(spec, name);
    let rows = [
        ("spec.source.databases", !source.databases.is_empty()),
        (
            "spec.source.excludeTables",
            !source.exclude_tables.is_empty(),
        ),
        ("DATABASES in spec.backupEnvs", variable("DATABASES")),
        (
            "EXCLUDE_TABLES in spec.backupEnvs",
            variable("EXCLUDE_TABLES"),
        ),
    ];
    let (named, _) = rows.into_iter().find(|(_, set)| *set)?;
    Some(Problem::new(
        "spec.binlogs",
        format!(
            "are the changes of the whole server, and can't be replayed onto a backup of a part of it, but {named} leaves some out; remove one of them, or make a MysqlBackup of its own for the part"
        ),
    ))
}

fn bounds(spec: &MysqlBackupSpec, found: &mut Vec<Problem>) {
    let at_least_zero = [
        ("startingDeadlineSeconds", spec.starting_deadline_seconds),
        (
            "successfulJobsHistoryLimit",
            spec.successful_jobs_history_limit.map(i64::from),
        ),
        (
            "failedJobsHistoryLimit",
            spec.failed_jobs_history_limit.map(i64::from),
        ),
        ("jitterSeconds", spec.jitter_seconds),
        ("backoffLimit", spec.backoff_limit.map(i64::from)),
        (
            "terminationGracePeriodSeconds",
            spec.termination_grace_period_seconds,
        ),
    ];
    for (field, value) in at_least_zero {
        if let Some(value) = value.filter(|v| *v < 0) {
            found.push(Problem::new(
                format!("spec.{field}"),
                format!("must be 0 or more, is {value}"),
            ));
        }
    }
}

fn source(spec: &MysqlBackupSpec, found: &mut Vec<Problem>) {
    let Some(source) = &spec.source else { return };
    if source.host.is_some() && source.socket.is_some() {
        found.push(Problem::new(
            "spec.source",
            "sets host and socket; keep one",
        ));
    }
    found.extend(host("spec.source.host", source.host.as_deref()));
    if let Some(sessions) = source.sessions.filter(|n| !(1..=MAX_SESSIONS).contains(n)) {
        found.push(Problem::new(
            "spec.source.sessions",
            format!("must be 1 to {MAX_SESSIONS}, is {sessions}"),
        ));
    }
    if source.engine == Some(Engine::Native)
        && let Some(why) = Arguments::new(&source.extra_args).against_native()
    {
        found.push(Problem::new(
            "spec.source.extraArgs",
            format!("go with the dump client, and spec.source.engine is Native: {why}; remove the arguments or the engine"),
        ));
    }
    if source.engine == Some(Engine::Client) {
        for (path, set) in [
            ("spec.source.accounts", source.accounts == Some(true)),
            ("spec.source.sessions", source.sessions.is_some()),
        ] {
            if set {
                found.push(Problem::new(
                    path,
                    "goes with engine Native, which alone can do it; remove it, or spec.source.engine",
                ));
            }
        }
    }
    for (i, table) in source.exclude_tables.iter().enumerate() {
        if !table
            .split_once('.')
            .is_some_and(|(db, t)| !db.is_empty() && !t.is_empty())
        {
            found.push(Problem::new(
                format!("spec.source.excludeTables[{i}]"),
                format!("{table:?} is not database.table"),
            ));
        }
    }
    for (i, database) in source.databases.iter().enumerate() {
        if database.trim().is_empty() {
            found.push(Problem::new(
                format!("spec.source.databases[{i}]"),
                "is empty; name a database, or remove the list to dump all",
            ));
        }
    }
}

/// What is wrong with the directory that SQLPATH names, for pods of our runner without a typed
/// destination. What comes from a Secret or ConfigMap is judged by the runner.
pub fn sqlpath(spec: &MysqlBackupSpec) -> Option<Problem> {
    let last = spec.backup_envs.iter().rev().find(|e| e.name == "SQLPATH");
    let path = last?.value.as_deref()?;
    // The kubelet expands what stands between the two.
    if !path.starts_with('/') || path.contains("$(") {
        return None;
    }
    let why = match volumes::ground(path, &spec.volumes, &spec.volume_mounts) {
        Ground::Volume => return None,
        Ground::Container => format!(
            "is on the container's own disk, which is gone with the pod and all that was stored there; mount a volume over it (spec.volumes, spec.volumeMounts): {}",
            volumes::REMEDY
        ),
        Ground::Gone { volume, why } => format!("is on volume {volume:?}, which {why}"),
    };
    Some(Problem::new(
        "spec.backupEnvs",
        format!("SQLPATH {path:?} {why}"),
    ))
}
