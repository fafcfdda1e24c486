//! Messages name the fields of a MysqlBackup; objects of other kinds have others for the same. This is
//! the one place that knows which.

/// What a MysqlBackup calls it, and what a Backup does. Longer words stand before those they begin with.
const BACKUP: &[(&str, &str)] = &[
    (
        "PASSWORD or spec.source.credentialsSecretRef",
        "config.password or password_ref of the Database",
    ),
    (
        "USERNAME or in spec.source.credentialsSecretRef",
        "config.username or username_ref of the Database",
    ),
    (
        "DATABASES or spec.source.databases",
        "config.database of the Database",
    ),
    ("HOST or spec.source.host", "config.host of the Database"),
    ("HOST or in spec.source.host", "config.host of the Database"),
    ("PORT or spec.source.port", "config.port of the Database"),
    (
        "check HOST and PORT",
        "check config.host and config.port of the Database",
    ),
    (
        "MYSQLDUMP_ARGS or spec.source.extraArgs",
        "config.args of the Database",
    ),
    (
        "spec.source.tls.caSecretKeyRef",
        "config.args (--ssl-ca) of the Database",
    ),
    (
        "spec.source.tls.mode",
        "config.args (--ssl-mode) of the Database",
    ),
    ("spec.source.tls", "config.args of the Database"),
    (
        "spec.source.credentialsSecretRef",
        "username_ref and password_ref of the Database",
    ),
    ("spec.source.clientImage", "spec.job.clientImage"),
    ("spec.source.databases", "config.database of the Database"),
    (
        "spec.source.excludeTables",
        "config.exclude_tables of the Database",
    ),
    ("spec.source.extraArgs", "config.args of the Database"),
    ("spec.source.socket", "config.socket of the Database"),
    ("spec.source.host", "config.host of the Database"),
    ("spec.source.port", "config.port of the Database"),
    ("spec.source", "the Database's config"),
    (
        "spec.destination.s3.credentialsSecretRef",
        "access_key_id and secret_access_key of the Storage, or their _ref",
    ),
    ("spec.destination.s3.bucket", "config.bucket of the Storage"),
    (
        "spec.destination.s3.endpoint",
        "config.endpoint of the Storage",
    ),
    (
        "spec.destination.s3.caSecretKeyRef",
        "the CA of the Storage",
    ),
    ("spec.destination.s3", "the Storage's config"),
    ("spec.destination.volume.path", "config.path of the Storage"),
    ("spec.destination", "the Storage's config"),
    ("correct SQLPATH", "correct config.path of the Storage"),
    ("SQLPATH", "config.path of the Storage"),
    ("(EXPIREAT, spec.retention)", "(keep of the storageRef)"),
    ("spec.retention", "keep of the storageRef"),
    ("spec.volumeMounts", "spec.job.volumeMounts"),
    ("spec.volumes", "spec.job.volumes"),
    ("spec.resources", "spec.job.resources"),
    ("spec.podSecurityContext", "spec.job.podSecurityContext"),
    ("spec.compression", "spec.compressWith"),
    ("spec.encryption.age", "spec.encodeWith"),
    ("encryption.age.recipients", "encodeWith.recipients"),
    ("spec.decryption", "spec.job.decryption"),
    ("spec.verify.", "spec.job.verify."),
    (
        "raise TIMEOUT (activeDeadlineSeconds)",
        "raise spec.job.activeDeadlineSeconds",
    ),
    ("set IDLE_TIMEOUT", "set IDLE_TIMEOUT in spec.job.env"),
];

/// What a MysqlBackup calls it, and what a Restore does.
const RESTORE: &[(&str, &str)] = &[
    (
        "PASSWORD or spec.source.credentialsSecretRef",
        "spec.to.credentialsSecretRef",
    ),
    (
        "USERNAME or in spec.source.credentialsSecretRef",
        "spec.to.credentialsSecretRef",
    ),
    ("DATABASES or spec.source.databases", "spec.to.database"),
    ("HOST or spec.source.host", "spec.to.host"),
    ("HOST or in spec.source.host", "spec.to.host"),
    ("PORT or spec.source.port", "spec.to.port"),
    ("check HOST and PORT", "check spec.to.host and spec.to.port"),
    (
        "MYSQLDUMP_ARGS or spec.source.extraArgs (--max-allowed-packet=1G)",
        "the server's own settings",
    ),
    ("spec.source.tls", "spec.to.tls"),
    (
        "spec.source.credentialsSecretRef",
        "spec.to.credentialsSecretRef",
    ),
    ("spec.source.clientImage", "spec.image"),
    ("spec.source.host", "spec.to.host"),
    ("spec.source.port", "spec.to.port"),
    ("spec.source.socket", "spec.to"),
    ("spec.source", "spec.to"),
    ("spec.destination", "spec.from.location.destination"),
    ("correct SQLPATH", "correct spec.from.location.destination"),
];

/// `message` with the fields of this kind of object.
pub fn named(kind: &str, message: &str) -> String {
    let table = match kind {
        "Backup" | "CronBackup" => BACKUP,
        "Restore" => RESTORE,
        _ => return message.to_owned(),
    };
    let mut named = String::with_capacity(message.len());
    let mut rest = message;
    'next: while let Some(c) = rest.chars().next() {
        let begins = !named.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '.' | '_'));
        if begins {
            for (ours, theirs) in table {
                if let Some(after) = rest.strip_prefix(ours) {
                    named.push_str(theirs);
                    rest = after;
                    continue 'next;
                }
            }
        }
        named.push(c);
        rest = &rest[c.len_utf8()..];
    }
    named
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::disallowed_methods,
        reason = "tests"
    )]
    use super::*;
    use std::path::Path;

    fn literals(directory: &Path, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                literals(&path, found);
            } else if !["fields.rs", "tests.rs"].iter().any(|n| path.ends_with(n)) {
                let text = std::fs::read_to_string(&path).unwrap();
                let code = text.split("#[cfg(test)]\nmod tests").next().unwrap();
                found.extend(code.split('"').skip(1).step_by(2).map(str::to_owned));
            }
        }
    }

    /// Every message of the source, as an object of another kind says it.
    #[test]
    fn p6_a_backup_is_not_told_of_a_mysqlbackups_fields() {
        let mut all = vec![];
        literals(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut all);
        let fields = [
            "spec.source",
            "spec.destination",
            "spec.resources",
            "spec.volumes",
            "spec.volumeMounts",
            "spec.decryption",
            "spec.compression",
            "spec.retention",
            "SQLPATH",
            "EXPIREAT",
        ];
        let mut met = 0;
        for text in all.iter().filter(|t| t.contains(' ')) {
            met += usize::from(fields.iter().any(|f| text.contains(f)));
            let said = named("Backup", text);
            for field in fields {
                let left = said
                    .match_indices(field)
                    .any(|(at, _)| !said[..at].ends_with(['.', '_']));
                // What speaks to a Restore or of the environment alone names it.
                let meant = said.contains("of a Restore")
                    || said.contains(" is set in backupEnvs")
                    || text.contains("EXPIREAT");
                assert!(!left || meant, "{said}");
            }
        }
        assert!(met > 20, "{met}");
        assert_eq!(
            named(
                "Backup",
                "check the password's Secret and key (PASSWORD or spec.source.credentialsSecretRef)"
            ),
            "check the password's Secret and key (config.password or password_ref of the Database)"
        );
        assert_eq!(
            named("Restore", "correct HOST or spec.source.host (x)"),
            "correct spec.to.host (x)"
        );
        assert_eq!(
            named("MysqlBackup", "correct HOST or spec.source.host"),
            "correct HOST or spec.source.host"
        );
    }
}
