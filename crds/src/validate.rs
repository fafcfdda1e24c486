//! Checks of a spec that a schema can't say. Webhook, reconcile and plugin share them, so that a
//! rule has one wording wherever it is met.

use std::collections::BTreeSet;
use std::fmt;

use crate::labels::PREFIX;
use k8s_openapi::api::core::v1::{Volume, VolumeMount};

use crate::mysql_backup::MysqlBackupSpec;
use crate::names::MAX_NAME;
use crate::parts::{
    Compression, Destination, Notification, PodMetadata, Verify, VolumeDestination, recipient_fault,
};
use crate::restore::{Definers, RestoreSpec, account, from_archive, kind_of};
use crate::schedule::{Schedule, parse_go_duration};
use crate::volumes::{self, Ground};

/// One mistake: where, what, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Field path, such as `spec.schedule`.
    pub path: String,
    /// What is wrong, and the remedy.
    pub message: String,
}

impl Problem {
    fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            message: message.into(),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

/// All problems in one line, for a condition or a denial.
pub fn join(problems: &[Problem]) -> String {
    problems
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("; ")
}

/// The name limit, checked on create only (CronJob rule 35).
pub fn name(name: &str) -> Option<Problem> {
    (name.len() > MAX_NAME).then(|| {
        Problem::new(
            "metadata.name",
            format!(
                "must be no more than {MAX_NAME} characters, is {}; the names of its Jobs add up to 11 to it",
                name.len()
            ),
        )
    })
}

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
        found.extend(self::verify("spec.verify", verify));
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

/// What our own runner can't start without and nobody gives it. For a spec that names no image, or
/// the runner's; another program has needs of its own.
pub fn needs(spec: &MysqlBackupSpec) -> Vec<Problem> {
    // What a variable holds that comes from elsewhere, the runner judges.
    let given = |name: &str| {
        let mut named = spec.backup_envs.iter().filter(|e| e.name == name);
        named.any(|e| e.value_from.is_some() || e.value.as_deref().is_some_and(|v| !v.is_empty()))
    };
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
            if location.key.is_some() == location.object.is_some() {
                found.push(Problem::new(
                    "spec.from.location.object",
                    "goes with latest and at, which need it; a key names its artefact alone",
                ));
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
    restore_target(spec, &mut found);
    pod(&spec.volumes, &spec.volume_mounts, &mut found);
    metadata(spec.pod_metadata.as_ref(), &mut found);
    found
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

fn pod(all: &[Volume], mounts: &[VolumeMount], found: &mut Vec<Problem>) {
    let mut volumes = BTreeSet::new();
    for (i, volume) in all.iter().enumerate() {
        if !volumes.insert(volume.name.as_str()) {
            found.push(Problem::new(
                format!("spec.volumes[{i}].name"),
                format!(
                    "{:?} is defined twice; give each volume its own name",
                    volume.name
                ),
            ));
        }
    }
    for (i, mount) in mounts.iter().enumerate() {
        if !volumes.contains(mount.name.as_str()) {
            found.push(Problem::new(
                format!("spec.volumeMounts[{i}].name"),
                format!(
                    "no volume is named {:?}; add it to spec.volumes or correct the name",
                    mount.name
                ),
            ));
        }
    }
}

fn metadata(metadata: Option<&PodMetadata>, found: &mut Vec<Problem>) {
    if let Some(metadata) = metadata {
        for key in metadata.labels.keys().chain(metadata.annotations.keys()) {
            if key.starts_with(PREFIX) {
                found.push(Problem::new(
                    "spec.podMetadata",
                    format!(
                        "{key:?} has the prefix {PREFIX}, which is the operator's; use another key"
                    ),
                ));
            }
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

/// What is wrong with the host at `path`; one that is not set is another's matter.
pub(crate) fn host(path: impl Into<String>, host: Option<&str>) -> Option<Problem> {
    let host = host.filter(|h| !h.is_empty())?;
    let fault = crate::host::bare(host).err()?;
    // Somebody may have put a whole address with a password there.
    let shown = crate::secret::mask(host);
    Some(Problem::new(path, format!("{shown:?} {fault}")))
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

fn destination(path: &str, destination: &Destination, found: &mut Vec<Problem>) {
    let set = [
        destination.volume.is_some(),
        destination.s3.is_some(),
        destination.storage_ref.is_some(),
    ];
    if set.iter().filter(|s| **s).count() != 1 {
        found.push(Problem::new(
            path,
            "needs exactly one of volume, s3, storageRef",
        ));
    }
    if let Some(volume) = &destination.volume {
        volume_destination(&format!("{path}.volume"), volume, found);
    }
    if let Some(s3) = &destination.s3
        && s3.bucket.trim().is_empty()
    {
        found.push(Problem::new(
            format!("{path}.s3.bucket"),
            "is empty; name the bucket",
        ));
    }
}

/// A volume to store on: it outlives the pod.
fn volume_destination(path: &str, volume: &VolumeDestination, found: &mut Vec<Problem>) {
    one_source(
        path,
        volume,
        "persistentVolumeClaim, nfs, hostPath, csi",
        found,
    );
    if let Some(why) = volumes::refusal(volume) {
        found.push(Problem::new(path, why));
    }
}

/// A volume of exactly one source, in words one of `wanted`.
fn one_source(path: &str, volume: &VolumeDestination, wanted: &str, found: &mut Vec<Problem>) {
    let set = [
        volume.persistent_volume_claim.is_some(),
        volume.nfs.is_some(),
        volume.host_path.is_some(),
        volume.csi.is_some(),
        volume.ephemeral.is_some(),
        volume.empty_dir.is_some(),
    ];
    if set.iter().filter(|s| **s).count() != 1 {
        found.push(Problem::new(path, format!("needs exactly one of {wanted}")));
    }
    if volume
        .path
        .as_deref()
        .is_some_and(|p| p.split('/').any(|part| part == ".."))
    {
        found.push(Problem::new(
            format!("{path}.path"),
            "must not contain `..`",
        ));
    }
}

/// Every mistake of a verification at `path` that would keep it from running.
pub fn verify(path: &str, verify: &Verify) -> Vec<Problem> {
    let mut found = vec![];
    if let Some(every) = verify.every.filter(|e| *e < 1) {
        found.push(Problem::new(
            format!("{path}.every"),
            format!("must be 1 or more, is {every}"),
        ));
    }
    if let Some(volume) = &verify.volume {
        let any = "persistentVolumeClaim, nfs, hostPath, csi, ephemeral, emptyDir";
        one_source(&format!("{path}.volume"), volume, any, &mut found);
    }
    found
}

/// Every mistake in `spec.notifications`, which two kinds have.
pub fn notifications(all: &[Notification]) -> Vec<Problem> {
    let wrong = all
        .iter()
        .enumerate()
        .filter(|(_, n)| n.contradicts_itself());
    wrong
        .map(|(i, _)| {
            Problem::new(
                format!("spec.notifications[{i}]"),
                "events and on say different things; on is the former name of events: keep events and remove on",
            )
        })
        .collect()
}

/// What is allowed but risky: shown at admission and by the plugin.
pub fn mysql_backup_warnings(spec: &MysqlBackupSpec) -> Vec<String> {
    let mut found = vec![];
    for env in &spec.backup_envs {
        let upper = env.name.to_uppercase();
        let secret = ["PASSWORD", "SECRET", "TOKEN", "KEY"]
            .iter()
            .any(|w| upper.contains(w));
        if secret && env.value.as_deref().is_some_and(|v| !v.is_empty()) {
            found.push(format!(
                "spec.backupEnvs: {} is a literal value that anyone who can read this object sees; use valueFrom.secretKeyRef",
                env.name
            ));
        }
    }
    for arg in &spec.args {
        if arg.starts_with("--password=")
            || (arg.starts_with("-p") && arg.len() > 2 && !arg.starts_with("--"))
            || has_url_password(arg)
        {
            found.push("spec.args: holds a password, which shows in the process list; use a Secret in backupEnvs".to_owned());
        }
    }
    for volume in spec.volumes.iter().filter(|v| v.host_path.is_some()) {
        found.push(format!(
            "spec.volumes: {} is a hostPath; it ties backups to one node and needs a privileged namespace",
            volume.name
        ));
    }
    if let Ok(schedule) = Schedule::parse(&spec.schedule, spec.time_zone.as_deref())
        && schedule.never_fires()
    {
        found.push(format!(
            "spec.schedule: {:?} never comes due; no backup will run",
            spec.schedule
        ));
    }
    found
}

fn has_url_password(text: &str) -> bool {
    text.split_once("://")
        .and_then(|(_, rest)| rest.split('/').next())
        .and_then(|authority| authority.rsplit_once('@'))
        .is_some_and(|(user, _)| user.contains(':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn o9_arguments_go_with_an_image_of_the_users() {
        let paths = |spec: &str| -> Vec<String> {
            let spec = serde_json::from_str(spec).expect(spec);
            let all = mysql_backup(&spec).into_iter().map(|p| p.path);
            all.filter(|path| path == "spec.args").collect()
        };
        let with = |more: &str| format!(r#"{{"schedule":"@daily"{more}}}"#);
        assert_eq!(paths(&with(r#","args":["copy","/x"]"#)), ["spec.args"]);
        assert_eq!(paths(&with(r#","args":[""]"#)), ["spec.args"]);
        assert_eq!(paths(&with(r#","args":[]"#)), [""; 0]);
        assert_eq!(paths(&with(r#","args":["x"],"image":"mine""#)), [""; 0]);
    }

    #[test]
    fn a_restore_says_what_and_where_once() {
        const TO: &str = r#""to":{"host":"db","credentialsSecretRef":{"name":"db"}}"#;
        const S3: &str = r#""destination":{"s3":{"bucket":"b"}}"#;
        let rows = [
            (r#"{"name":"shop","latest":true}"#.to_owned(), vec![]),
            (
                r#"{"name":"shop","at":"2025-01-15T10:30:00Z"}"#.into(),
                vec![],
            ),
            (format!(r#"{{"location":{{{S3},"key":"k"}}}}"#), vec![]),
            (r#"{"name":"shop","key":"k"}"#.into(), vec![]),
            (
                r#"{"name":"shop","key":"k","latest":true}"#.into(),
                vec!["spec.from"],
            ),
            (r#"{"name":"shop"}"#.into(), vec!["spec.from"]),
            (
                r#"{"name":"shop","latest":false}"#.into(),
                vec!["spec.from"],
            ),
            (
                r#"{"name":"shop","run":"r","latest":true}"#.into(),
                vec!["spec.from"],
            ),
            (r#"{"latest":true}"#.into(), vec!["spec.from"]),
            (
                r#"{"name":"shop","at":"yesterday"}"#.into(),
                vec!["spec.from.at"],
            ),
            (
                r#"{"kind":"Storage","name":"shop","latest":true}"#.into(),
                vec!["spec.from.kind"],
            ),
            (
                r#"{"kind":"CronBackup","name":"shop","latest":true,"database":"d","storage":"s"}"#
                    .into(),
                vec![],
            ),
            (
                r#"{"name":"shop","latest":true,"database":"d","storage":"s"}"#.into(),
                vec!["spec.from.database", "spec.from.storage"],
            ),
            (
                format!(r#"{{"location":{{{S3}}}}}"#),
                vec!["spec.from.location", "spec.from.location.object"],
            ),
            (
                r#"{"location":{"destination":{},"latest":true,"object":{"name":"shop"}}}"#.into(),
                vec!["spec.from.location.destination"],
            ),
        ];
        for (from, paths) in rows {
            let text = format!(r#"{{"from":{from},{TO}}}"#);
            let found = restore(&serde_json::from_str(&text).unwrap());
            let found: Vec<&str> = found.iter().map(|p| p.path.as_str()).collect();
            assert_eq!(found, paths, "{from}");
        }
        let neither =
            r#"{"from":{"name":"a","latest":true},"to":{"credentialsSecretRef":{"name":"db"}}}"#;
        assert_eq!(
            restore(&serde_json::from_str(neither).unwrap())[0].path,
            "spec.to"
        );
    }

    use crate::mysql_backup::MysqlSource;
    use crate::parts::{Encryption, PodMetadata, Retention};
    use k8s_openapi::api::core::v1::{EnvVar, Volume, VolumeMount};

    fn spec(change: impl FnOnce(&mut MysqlBackupSpec)) -> MysqlBackupSpec {
        let mut spec = MysqlBackupSpec {
            schedule: "0 3 * * *".into(),
            image: Some("mine".into()),
            ..Default::default()
        };
        change(&mut spec);
        spec
    }

    #[test]
    fn o12_events_and_on_that_differ_are_refused() {
        for fields in [
            "events: [Failure]\n'on': [Missed]",
            "events: [Failure]\n'on': [Failure, Missed]",
        ] {
            let text = format!("type: Slack\nurlSecretKeyRef: {{name: a, key: b}}\n{fields}");
            let found = mysql_backup(&spec(|s| {
                s.notifications = vec![serde_yaml::from_str(&text).unwrap()];
            }));
            assert_eq!(found[0].path, "spec.notifications[0]", "{found:?}");
            assert!(found[0].message.contains("keep events and remove on"));
        }
    }

    #[test]
    fn each_mistake_names_its_path() {
        let volume = |name: &str| Volume {
            name: name.into(),
            ..Default::default()
        };
        let rows: Vec<(&str, MysqlBackupSpec)> = vec![
            ("spec.schedule", spec(|s| s.schedule = "61 * * * *".into())),
            ("spec.schedule", spec(|s| s.schedule = "0 0 * * 7".into())),
            (
                "spec.schedule",
                spec(|s| s.schedule = "TZ=UTC 0 0 * * *".into()),
            ),
            (
                "spec.timeZone",
                spec(|s| s.time_zone = Some("Mars/X".into())),
            ),
            ("spec.timeZone", spec(|s| s.time_zone = Some(String::new()))),
            (
                "spec.failedJobsHistoryLimit",
                spec(|s| s.failed_jobs_history_limit = Some(-1)),
            ),
            (
                "spec.startingDeadlineSeconds",
                spec(|s| s.starting_deadline_seconds = Some(-1)),
            ),
            (
                "spec.volumes[1].name",
                spec(|s| s.volumes = vec![volume("a"), volume("a")]),
            ),
            (
                "spec.volumeMounts[0].name",
                spec(|s| {
                    s.volume_mounts = vec![VolumeMount {
                        name: "x".into(),
                        ..Default::default()
                    }]
                }),
            ),
            (
                "spec.podMetadata",
                spec(|s| {
                    s.pod_metadata = Some(PodMetadata {
                        labels: [("batch.isekiro.com/owner-uid".into(), "x".into())].into(),
                        ..Default::default()
                    })
                }),
            ),
            (
                "spec.source",
                spec(|s| {
                    s.source = Some(MysqlSource {
                        host: Some("h".into()),
                        socket: Some("/s".into()),
                        ..Default::default()
                    })
                }),
            ),
            (
                "spec.source.databases[0]",
                spec(|s| {
                    s.source = Some(MysqlSource {
                        databases: vec![String::new()],
                        ..Default::default()
                    })
                }),
            ),
            (
                "spec.source.excludeTables[0]",
                spec(|s| {
                    s.source = Some(MysqlSource {
                        exclude_tables: vec!["t".into()],
                        ..Default::default()
                    })
                }),
            ),
            (
                "spec.destination",
                spec(|s| s.destination = Some(Destination::default())),
            ),
            (
                "spec.encryption.age",
                spec(|s| s.encryption = Some(Encryption::default())),
            ),
            (
                "spec.verify.volume",
                spec(|s| {
                    s.verify = Some(Verify {
                        volume: Some(VolumeDestination::default()),
                        ..Default::default()
                    })
                }),
            ),
            (
                "spec.retention.maxAge",
                spec(|s| {
                    s.retention = Some(Retention {
                        max_age: Some("a week".into()),
                        ..Default::default()
                    })
                }),
            ),
        ];
        assert_eq!(mysql_backup(&spec(|_| {})), vec![]);
        for (path, bad) in rows {
            let found = mysql_backup(&bad);
            assert_eq!(
                found.iter().map(|p| p.path.as_str()).collect::<Vec<_>>(),
                [path],
                "{found:?}"
            );
        }
    }

    const SERVER: &str = r#""source":{"host":"db","credentialsSecretRef":{"name":"db"}}"#;

    /// A server, a login and a store, by field or by the variables that the original read.
    #[test]
    fn u10_our_runner_gets_what_it_can_t_do_without() {
        const STORE: &str = r#""destination":{"s3":{"bucket":"b"}}"#;
        let envs = |names: &[&str]| {
            let each = names
                .iter()
                .map(|n| format!(r#"{{"name":"{n}","value":"/v"}}"#));
            format!(r#""backupEnvs":[{}]"#, each.collect::<Vec<_>>().join(","))
        };
        let (server, login, store) = (
            "spec.source.host",
            "spec.source.credentialsSecretRef",
            "spec.destination",
        );
        let rows = [
            (r#""suspend":false"#.to_owned(), vec![server, login, store]),
            (SERVER.to_owned(), vec![store]),
            (format!("{SERVER},{STORE}"), vec![]),
            (format!("{STORE},{}", envs(&["HOST"])), vec![login]),
            (format!("{STORE},{}", envs(&["HOST", "USERNAME"])), vec![]),
            (r#""image":"mine""#.to_owned(), vec![]),
            (
                format!(
                    r#"{STORE},"source":{{"socket":"/run/m.sock"}},{}"#,
                    envs(&["USERNAME"])
                ),
                vec![],
            ),
            (
                format!(
                    r#"{STORE},"backupEnvs":[{{"name":"HOST","value":""}},{{"name":"USERNAME","valueFrom":{{"secretKeyRef":{{"name":"a","key":"b"}}}}}}]"#
                ),
                vec![server],
            ),
        ];
        for (fields, wanted) in rows {
            let text = format!(r#"{{"schedule":"@daily",{fields}}}"#);
            let found = mysql_backup(&serde_json::from_str(&text).unwrap());
            let paths: Vec<&str> = found.iter().map(|p| p.path.as_str()).collect();
            assert_eq!(paths, wanted, "{fields}");
        }
    }

    #[test]
    fn u10_keys_levels_and_hosts_are_checked_without_quoting_secrets() {
        // `age-keygen` printed it; one letter changed breaks its checksum.
        const KEY: &str = "age1t7rxyev2z3rw82stdlrrepyc39nvn86l5078zqkf5uasdy86jp6svpy7pa";
        let with = |fields: &str| {
            let text = format!(r#"{{"schedule":"@daily","image":"mine",{fields}}}"#);
            let found = mysql_backup(&serde_json::from_str(&text).unwrap());
            found.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let to = |key: &str| {
            with(&format!(
                r#""encryption":{{"age":{{"recipients":["{key}"]}}}}"#
            ))
        };
        assert_eq!(to(KEY), [""; 0]);
        for bad in [
            "age1foo",
            &KEY[..60],
            &KEY.replace('q', "p"),
            "ssh-ed25519 AAAA",
            "",
        ] {
            let found = to(bad);
            assert_eq!(found.len(), 1, "{bad}");
            assert!(found[0].starts_with("spec.encryption.age.recipients[0]: is not an age"));
        }
        let secret = to("AGE-SECRET-KEY-1MARKER");
        assert!(secret[0].contains("private key") && !secret[0].contains("MARKER"));
        let level = |type_: &str, level: i32| {
            with(&format!(
                r#""compression":{{"type":"{type_}","level":{level}}}"#
            ))
        };
        for (type_, good, bad) in [("zstd", 19, 20), ("gzip", 9, 10), ("gzip", 1, 0)] {
            assert_eq!(level(type_, good), [""; 0]);
            assert_eq!(level(type_, bad).len(), 1, "{type_} {bad}");
        }
        let host = with(r#""source":{"host":"mysql://u:S3cr3t@db/x"}"#);
        assert!(
            host[0].starts_with("spec.source.host: ") && !host[0].contains("S3cr3t"),
            "{host:?}"
        );
        let restored = r#"{"from":{"name":"a","latest":true},"to":{"host":"db:3306","credentialsSecretRef":{"name":"s"}}}"#;
        assert_eq!(
            restore(&serde_json::from_str(restored).unwrap())[0].path,
            "spec.to.host"
        );
    }

    /// Every field that names a place to store on, with every volume that is gone with the pod; the
    /// scratch server of a verification may have any.
    #[test]
    fn t7_nothing_is_stored_on_what_goes_with_the_pod() {
        let gone = [
            r#"{"emptyDir":{}}"#,
            r#"{"emptyDir":{"medium":"Memory"},"path":"a"}"#,
            r#"{"ephemeral":{"volumeClaimTemplate":{"spec":{}}}}"#,
            r#"{"csi":{"driver":"inline.storage.kubernetes.io"}}"#,
        ];
        let stays = [
            r#"{"persistentVolumeClaim":{"claimName":"c"}}"#,
            r#"{"nfs":{"server":"s","path":"/"}}"#,
            r#"{"hostPath":{"path":"/srv"}}"#,
            r#"{"csi":{"driver":"smb.csi.k8s.io"}}"#,
        ];
        let paths = |found: Vec<Problem>| -> Vec<String> {
            for problem in &found {
                let words = ["gone with the pod", "persistentVolumeClaim"];
                assert!(
                    words.iter().all(|w| problem.message.contains(w)),
                    "{problem}"
                );
            }
            found.into_iter().map(|p| p.path).collect()
        };
        let typed = |volume: &str| {
            let text =
                format!(r#"{{"schedule":"@daily","destination":{{"volume":{volume}}},{SERVER}}}"#);
            mysql_backup(&serde_json::from_str(&text).unwrap())
        };
        let restored = |volume: &str| {
            let text = format!(
                r#"{{"from":{{"kind":"Backup","name":"b","latest":true}},"to":{{"volume":{volume}}}}}"#
            );
            restore(&serde_json::from_str(&text).unwrap())
        };
        let scratch = |volume: &str| {
            let text = format!(
                r#"{{"schedule":"@daily","image":"mine","verify":{{"mode":"Restore","volume":{volume}}}}}"#
            );
            mysql_backup(&serde_json::from_str(&text).unwrap())
        };
        for volume in gone {
            assert_eq!(
                paths(typed(volume)),
                ["spec.destination.volume"],
                "{volume}"
            );
            assert_eq!(paths(restored(volume)), ["spec.to.volume"], "{volume}");
            assert_eq!(scratch(volume), vec![], "{volume}");
        }
        for volume in stays {
            assert_eq!(typed(volume), vec![], "{volume}");
            assert_eq!(restored(volume), vec![], "{volume}");
            assert_eq!(scratch(volume), vec![], "{volume}");
        }
    }

    /// The original's form: a path in the environment, a mount over it.
    #[test]
    fn t7_sqlpath_is_held_to_the_same() {
        let judge = |path: &str, more: &str| {
            let text = format!(
                r#"{{"schedule":"@daily",{SERVER},"backupEnvs":[{{"name":"SQLPATH",{path}}}],
                "volumes":[{{"name":"kept","persistentVolumeClaim":{{"claimName":"c"}}}},{{"name":"tmp","emptyDir":{{}}}}],
                "volumeMounts":[{{"name":"kept","mountPath":"/mnt"}},{{"name":"tmp","mountPath":"/mnt/tmp"}}]{more}}}"#
            );
            let found = mysql_backup(&serde_json::from_str(&text).unwrap());
            found.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        for good in [r#""value":"/mnt""#, r#""value":"/mnt/a/""#] {
            assert_eq!(judge(good, ""), [""; 0], "{good}");
        }
        let one = |path: &str| {
            let found = judge(path, "");
            assert_eq!(found.len(), 1, "{path} {found:?}");
            found[0].clone()
        };
        assert!(one(r#""value":"/mnt/tmp/x""#).contains("volume \"tmp\", which is an emptyDir"));
        assert!(one(r#""value":"/data""#).contains("container's own disk"));
        // Not known here, another program's own matter, or without effect.
        let tmp = r#""value":"/mnt/tmp""#;
        assert_eq!(
            judge(
                r#""valueFrom":{"configMapKeyRef":{"name":"c","key":"k"}}"#,
                ""
            ),
            [""; 0]
        );
        assert_eq!(judge(r#""value":"$(ROOT)/x""#, ""), [""; 0]);
        assert_eq!(judge(tmp, r#","image":"mine""#), [""; 0]);
        assert_eq!(
            judge(tmp, r#","destination":{"s3":{"bucket":"b"}}"#),
            [""; 0]
        );
    }

    #[test]
    fn the_name_limit_is_52() {
        assert_eq!(name(&"x".repeat(52)), None);
        assert!(name(&"x".repeat(53)).unwrap().message.contains("52"));
    }

    #[test]
    fn warnings_never_quote_the_value() {
        let risky = spec(|s| {
            s.backup_envs = vec![EnvVar {
                name: "PASSWORD".into(),
                value: Some("S3cr3t-marker".into()),
                value_from: None,
            }];
            s.args = vec!["mysql://u:S3cr3t-marker@db/x".into()];
            s.schedule = "0 0 30 2 *".into();
        });
        let warnings = mysql_backup_warnings(&risky);
        assert_eq!(warnings.len(), 3, "{warnings:?}");
        assert!(!warnings.concat().contains("S3cr3t"));
    }
}
