//! What is valid, and risky or of no use.

use crate::mysql_backup::MysqlBackupSpec;
use crate::schedule::Schedule;

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
    let zone = spec.time_zone.as_deref();
    found.extend(schedule_warning("spec.schedule", &spec.schedule, zone));
    found
}

/// What is to be said of a schedule that is valid and will not do what is meant.
pub fn schedule_warning(path: &str, text: &str, zone: Option<&str>) -> Option<String> {
    let schedule = Schedule::parse(text, zone).ok()?;
    let said = match schedule.never_fires() {
        true => Some(format!("{text:?} never comes due; no backup will run")),
        false => schedule.too_often(),
    };
    said.map(|said| format!("{path}: {said}"))
}

fn has_url_password(text: &str) -> bool {
    text.split_once("://")
        .and_then(|(_, rest)| rest.split('/').next())
        .and_then(|authority| authority.rsplit_once('@'))
        .is_some_and(|(user, _)| user.contains(':'))
}
