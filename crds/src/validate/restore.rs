//! A Restore.

use crate::bounds::MAX_SESSIONS;
use crate::restore::{Definers, MAX_NAMES, RestoreSpec, account, from_archive, is_part, kind_of};

use super::destination::{destination, volume_destination};
use super::pod::{metadata, pod};
use super::{Problem, host};

/// Every mistake of a Restore's spec that would keep it from running. The schema says most of them
/// already; whoever builds a Restore learns of all of them here.
pub fn restore(spec: &RestoreSpec) -> Vec<Problem> {
    let mut found = vec![];
    let from = &spec.from;
    let one_of = |some: &[bool]| some.iter().filter(|set| **set).count() == 1;
    match (&from.name, &from.location) {
        (Some(_), None) => {
            let latest = from.latest == Some(true);
            let which = [
                from.run.is_some(),
                latest,
                from.at.is_some(),
                from.key.is_some(),
            ];
            if !one_of(&which) {
                found.push(Problem::new(
                    "spec.from",
                    "needs exactly one of run, latest: true, at, key beside name",
                ));
            }
            if !matches!(kind_of(from), "MysqlBackup" | "Backup" | "CronBackup") {
                found.push(Problem::new(
                    "spec.from.kind",
                    "must be MysqlBackup, Backup or CronBackup",
                ));
            }
        }
        (None, Some(location)) => {
            let latest = location.latest == Some(true);
            if !one_of(&[location.key.is_some(), latest, location.at.is_some()]) {
                found.push(Problem::new(
                    "spec.from.location",
                    "needs exactly one of key, latest: true, at",
                ));
            }
            let whose = match (location.key.is_some(), location.object.is_some()) {
                (true, true) => Some("is not needed beside a key, which names its artefact alone"),
                (false, false) => Some(
                    "is needed to choose by time: it says whose artefacts are meant; or name one by its key",
                ),
                _ => None,
            };
            if let Some(text) = whose {
                found.push(Problem::new("spec.from.location.object", text));
            }
            let path = "spec.from.location.destination";
            destination(path, &location.destination, &mut found);
        }
        _ => found.push(Problem::new(
            "spec.from",
            "needs name, for a backup object of this namespace, or location; exactly one of them",
        )),
    }
    for (path, set) in [
        ("spec.from.database", from.database.is_some()),
        ("spec.from.storage", from.storage.is_some()),
    ] {
        if set && !from_archive(from) {
            found.push(Problem::new(
                path,
                "goes with the name of a Backup or CronBackup; spec.to.database names the database to restore into",
            ));
        }
    }
    let times = [
        ("spec.from.at", from.at.as_ref()),
        (
            "spec.from.location.at",
            from.location.as_ref().and_then(|l| l.at.as_ref()),
        ),
    ];
    for (path, text) in times {
        if let Some(text) = text.filter(|t| crate::time::parse_rfc3339(t).is_none()) {
            found.push(Problem::new(
                path,
                format!("{text:?} is not an RFC 3339 time; write it like 2025-01-15T10:30:00Z"),
            ));
        }
    }
    definers(spec, &mut found);
    replay(spec, &mut found);
    loading(spec, &mut found);
    part(spec, &mut found);
    restore_target(spec, &mut found);
    pod(&spec.volumes, &spec.volume_mounts, &mut found);
    metadata(spec.pod_metadata.as_ref(), &mut found);
    found
}

fn replay(spec: &RestoreSpec, found: &mut Vec<Problem>) {
    let Some(replay) = &spec.replay else { return };
    let which = [
        replay.at.is_some(),
        replay.gtid.is_some(),
        replay.before_gtid.is_some(),
        replay.latest == Some(true),
    ];
    if which.iter().filter(|set| **set).count() != 1 {
        found.push(Problem::new(
            "spec.replay",
            "needs exactly one of at, gtid, beforeGtid, latest: true",
        ));
    }
    let whole = |text: &str| {
        crate::time::parse_rfc3339(text).is_some_and(|at| at.timestamp_subsec_nanos() == 0)
    };
    if let Some(text) = replay.at.as_deref().filter(|text| !whole(text)) {
        found.push(Problem::new(
            "spec.replay.at",
            format!("{text:?} is not an RFC 3339 time in whole seconds; write it like 2025-01-15T10:30:00Z"),
        ));
    }
    for (what, set) in [
        (
            "a MysqlBackup, whose binary logs alone are kept",
            from_archive(&spec.from),
        ),
        (
            "the dump's own databases, not with spec.to.database: the logs name them",
            spec.to.database.is_some(),
        ),
    ] {
        if set {
            found.push(Problem::new("spec.replay", format!("goes with {what}")));
        }
    }
}

fn definers(spec: &RestoreSpec, found: &mut Vec<Problem>) {
    match (spec.definers, spec.definer.as_deref()) {
        (Some(Definers::To), None) => found.push(Problem::new(
            "spec.definer",
            "is needed with definers To: the account, as user@host",
        )),
        (Some(Definers::To), Some(text)) if account(text).is_none() => found.push(Problem::new(
            "spec.definer",
            format!("{text:?} is not an account; write it like app@%"),
        )),
        (other, Some(_)) if other != Some(Definers::To) => {
            found.push(Problem::new("spec.definer", "goes with definers To"))
        }
        _ => {}
    }
    if spec.definers.is_some() && spec.to.volume.is_some() {
        found.push(Problem::new("spec.definers", "goes with host or socket"));
    }
}

/// How a dump is loaded, which is not put onto a volume.
fn loading(spec: &RestoreSpec, found: &mut Vec<Problem>) {
    let volume = spec.to.volume.is_some();
    for (path, set) in [
        ("spec.verify", spec.verify.is_some()),
        ("spec.to.sessions", spec.to.sessions.is_some()),
    ] {
        if set && volume {
            found.push(Problem::new(path, "goes with host or socket"));
        }
    }
    if let Some(sessions) = spec.to.sessions.filter(|n| !(1..=MAX_SESSIONS).contains(n)) {
        found.push(Problem::new(
            "spec.to.sessions",
            format!("must be 1 to {MAX_SESSIONS}, is {sessions}"),
        ));
    }
}

/// Which tables and databases.
fn part(spec: &RestoreSpec, found: &mut Vec<Problem>) {
    let set = [
        ("spec.tables", !spec.tables.is_empty()),
        ("spec.databases", !spec.databases.is_empty()),
        ("spec.excludeTables", !spec.exclude_tables.is_empty()),
        ("spec.withoutForeignKeys", spec.without_foreign_keys),
    ];
    for (path, _) in set.into_iter().filter(|(_, set)| *set) {
        if kind_of(&spec.from) != "MysqlBackup" {
            found.push(Problem::new(
                path,
                "goes with dumps of a MysqlBackup; the archive of a Backup is restored whole, or one Database of it (spec.from.database)",
            ));
        } else if !is_part(spec) {
            found.push(Problem::new(
                path,
                "goes with tables, databases or excludeTables: a whole dump has all that its foreign keys refer to",
            ));
        }
    }
    if spec.replay.is_some() && spec.without_foreign_keys {
        found.push(Problem::new(
            "spec.withoutForeignKeys",
            "does not go with replay: what a foreign key deletes or sets is not in the binary log; choose the tables that the keys refer to, too",
        ));
    }
    if spec.accounts && is_part(spec) {
        found.push(Problem::new(
            "spec.accounts",
            "goes with a whole dump: leave tables, databases and excludeTables out",
        ));
    }
    for (path, names) in [
        ("spec.tables", &spec.tables),
        ("spec.excludeTables", &spec.exclude_tables),
    ] {
        for (i, name) in names.iter().enumerate() {
            if !name
                .split_once('.')
                .is_some_and(|(database, table)| !database.is_empty() && !table.is_empty())
            {
                found.push(Problem::new(
                    format!("{path}[{i}]"),
                    format!("{name:?} is not database.table"),
                ));
            }
        }
    }
    for (path, names) in [
        ("spec.tables", &spec.tables),
        ("spec.databases", &spec.databases),
        ("spec.excludeTables", &spec.exclude_tables),
    ] {
        if names.len() > MAX_NAMES {
            found.push(Problem::new(
                path,
                format!("has {} names, and {MAX_NAMES} are the most", names.len()),
            ));
        }
        if let Some(i) = names.iter().position(|name| name.trim().is_empty()) {
            found.push(Problem::new(format!("{path}[{i}]"), "is empty"));
        }
    }
}

fn restore_target(spec: &RestoreSpec, found: &mut Vec<Problem>) {
    let to = &spec.to;
    let three = [to.host.is_some(), to.socket.is_some(), to.volume.is_some()];
    if three.iter().filter(|set| **set).count() != 1 {
        found.push(Problem::new(
            "spec.to",
            "needs exactly one of host, socket, volume",
        ));
        return;
    }
    found.extend(host("spec.to.host", to.host.as_deref()));
    let Some(volume) = &to.volume else {
        if to.credentials_secret_ref.is_none() {
            found.push(Problem::new(
                "spec.to.credentialsSecretRef",
                "is needed with host and socket; name the Secret with user name and password",
            ));
        }
        if to.etcd.is_some() {
            found.push(Problem::new("spec.to.etcd", "goes with spec.to.volume"));
        }
        return;
    };
    volume_destination("spec.to.volume", volume, found);
    if !from_archive(&spec.from) {
        found.push(Problem::new(
            "spec.to.volume",
            "goes with the name of a Backup or CronBackup; kubectl backup download brings the dump of a MysqlBackup",
        ));
    }
    for (path, set) in [
        (
            "spec.to.credentialsSecretRef",
            to.credentials_secret_ref.is_some(),
        ),
        ("spec.to.port", to.port.is_some()),
        ("spec.to.database", to.database.is_some()),
        ("spec.to.tls", to.tls.is_some()),
    ] {
        if set {
            found.push(Problem::new(
                path,
                "goes with host and socket, not with volume",
            ));
        }
    }
}
