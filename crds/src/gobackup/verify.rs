//! Verification by restore of a Backup's archives: what of a plan can never pass it. PURE.

use crate::backup::BackupBody;
use crate::parts::VerifyMode;

use crate::plan::{Codec, Credential, DatabaseType, Encrypt, Plan};

/// What remains for what can't be restored here.
const REMEDY: &str = "the verification never passes: set spec.job.verify.mode Checksum, or back it up with a Backup of its own";

/// A sentence for each part of the plan that `spec.job.verify` with mode Restore can't prove.
pub(super) fn warnings(body: &BackupBody, plan: &Plan<Credential>) -> Vec<String> {
    let job = body.spec.as_ref().and_then(|s| s.job.as_ref());
    let verify = job.and_then(|j| j.verify.as_ref());
    if verify.is_none_or(|v| v.mode != VerifyMode::Restore) {
        return vec![];
    }
    let mut found: Vec<String> = plan
        .databases
        .iter()
        .filter_map(|d| {
            let why = unproven(d.database_type, d.database.is_none())?;
            Some(format!("Database {}: {why}, so {REMEDY}", d.name))
        })
        .collect();
    if matches!(
        plan.compress.codec,
        Codec::Compress | Codec::Lzip | Codec::Lzop
    ) {
        found.push(format!(
            "compressWith: the runner does not read the codec {}, so {REMEDY}",
            plan.compress.codec.extension()
        ));
    }
    let key = job
        .and_then(|j| j.decryption.as_ref())
        .and_then(|d| d.age.as_ref());
    if matches!(plan.encrypt, Some(Encrypt::Age { .. })) && key.is_none() {
        found.push(
            "encodeWith: a verification by restore needs the age identity; name its Secret in spec.job.decryption, or set spec.job.verify.mode Checksum"
                .to_owned(),
        );
    }
    found
}

/// Why a dump of this engine can't be restored by the runner; `all` if it is of all databases of a server.
pub fn unproven(database_type: DatabaseType, all: bool) -> Option<&'static str> {
    match database_type {
        DatabaseType::Postgresql if all => Some(
            "a dump of all databases (pg_dumpall) changes roles and databases and is restored by hand",
        ),
        DatabaseType::Mongodb => Some("a dump of mongodb can't be verified by restore"),
        DatabaseType::Influxdb2 => Some("a dump of influxdb can't be verified by restore"),
        DatabaseType::Mssql => Some("a dump of mssql can't be verified by restore"),
        DatabaseType::Postgresql
        | DatabaseType::Mysql
        | DatabaseType::Mariadb
        | DatabaseType::Redis
        | DatabaseType::Etcd => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use serde_json::{Value, json};

    use super::*;

    fn told(job: Value, databases: Value, more: Value) -> Vec<String> {
        let body: BackupBody = serde_json::from_value(json!({"spec": {"job": job}})).unwrap();
        let mut plan = json!({"model": "m", "databases": databases, "storages": [], "compress": {"codec": "gzip"}});
        plan.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let plan: Plan<Credential> = serde_json::from_value(plan).unwrap();
        warnings(&body, &plan)
    }

    #[test]
    fn what_can_never_pass_is_told_at_once() {
        let restore = json!({"verify": {"mode": "Restore"}});
        let all = json!([
            {"name": "a", "engine": "mongodb"}, {"name": "b", "engine": "influxdb2"}, {"name": "c", "engine": "postgresql"},
            {"name": "d", "engine": "postgresql", "database": "app"}, {"name": "e", "engine": "mysql"},
            {"name": "f", "engine": "redis"}, {"name": "g", "engine": "etcd"},
        ]);
        let found = told(restore.clone(), all.clone(), json!({}));
        let names: Vec<&str> = found.iter().map(|w| w.split(':').next().unwrap()).collect();
        assert_eq!(
            names,
            ["Database a", "Database b", "Database c"],
            "{found:?}"
        );
        assert!(
            found
                .iter()
                .all(|w| w.contains("spec.job.verify.mode Checksum"))
        );
        for mode in [
            json!({"verify": {}}),
            json!({"verify": {"mode": "Checksum"}}),
            json!({}),
        ] {
            assert_eq!(told(mode, all.clone(), json!({})), [""; 0]);
        }
        let age = json!({"compress": {"codec": "lzip"}, "encrypt": {"type": "age", "recipients": ["age1x"]}});
        let found = told(restore, json!([]), age.clone());
        assert!(
            found[0].starts_with("compressWith: ") && found[1].starts_with("encodeWith: "),
            "{found:?}"
        );
        let key = json!({"verify": {"mode": "Restore"}, "decryption": {"age": {"identitySecretKeyRef": {"name": "k", "key": "k"}}}});
        assert_eq!(told(key, json!([]), age).len(), 1);
    }
}
