//! What each verb needs to be allowed: one table for `doctor` and for the reference in docs/cli.md.

/// A right on a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Need {
    /// The verb of this program.
    pub(crate) verb: &'static str,
    /// API verbs.
    pub(crate) rights: &'static [&'static str],
    /// API group; `backups` stands for the groups of the backup kinds.
    pub(crate) group: &'static str,
    /// Resource, with subresource.
    pub(crate) resource: &'static str,
    /// Without it the verb still works, and does or shows less.
    pub(crate) optional: bool,
}

/// Stands for every backup kind in [`Need::group`] and [`Need::resource`].
pub(crate) const BACKUPS: &str = "backups";

const fn need(
    verb: &'static str,
    rights: &'static [&'static str],
    group: &'static str,
    resource: &'static str,
) -> Need {
    Need {
        verb,
        rights,
        group,
        resource,
        optional: false,
    }
}

const fn better(
    verb: &'static str,
    rights: &'static [&'static str],
    group: &'static str,
    resource: &'static str,
) -> Need {
    Need {
        verb,
        rights,
        group,
        resource,
        optional: true,
    }
}

/// All needs, by verb in the order of the help. No verb has to read Secrets: those that start pods look
/// whether what the pod needs is there, and which keys it has, where the caller may read it.
pub(crate) static NEEDS: &[Need] = &[
    need("create", &["create"], BACKUPS, BACKUPS),
    better("create", &["get"], "", "secrets"),
    better("create", &["get"], "", "configmaps"),
    better("create", &["get"], "", "persistentvolumeclaims"),
    better("create", &["get"], "gobackup.io", "databases"),
    better("create", &["get"], "gobackup.io", "storages"),
    better("create", &["get"], "gobackup.io", "s3s"),
    better("create", &["get"], "storage.gobackup.io", "s3s"),
    better("create", &["get"], "gobackup.io", "backupmodels"),
    better("create", &["get"], "gobackup.io", "postgresqls"),
    better("create", &["get"], "database.gobackup.io", "postgresqls"),
    need("list", &["list"], BACKUPS, BACKUPS),
    better("list", &["watch"], BACKUPS, BACKUPS),
    better("list", &["get", "list"], crds::GROUP, "restores"),
    better("list", &["get", "list"], "gobackup.io", "databases"),
    better("list", &["get", "list"], "gobackup.io", "storages"),
    need("runs", &["get", "list"], BACKUPS, BACKUPS),
    better("runs", &["patch", "watch"], BACKUPS, BACKUPS),
    better("runs", &["list"], "", "pods"),
    better("runs", &["get"], "", "pods/log"),
    better("runs", &["get"], "batch", "jobs"),
    better("runs", &["list"], "", "events"),
    need("describe", &["get"], BACKUPS, BACKUPS),
    better("describe", &["list"], BACKUPS, BACKUPS),
    better("describe", &["get"], crds::GROUP, "restores"),
    better("describe", &["get"], "gobackup.io", "databases"),
    better("describe", &["get"], "gobackup.io", "storages"),
    better("describe", &["get"], "batch", "jobs"),
    better("describe", &["list"], "", "pods"),
    better("describe", &["get"], "", "pods/log"),
    better("describe", &["list"], "", "events"),
    better("describe", &["get"], "", "configmaps"),
    better("describe", &["get"], "", "persistentvolumeclaims"),
    better("describe", &["get"], "gobackup.io", "s3s"),
    better("describe", &["get"], "storage.gobackup.io", "s3s"),
    better("describe", &["get"], "gobackup.io", "backupmodels"),
    better("describe", &["get"], "gobackup.io", "postgresqls"),
    better("describe", &["get"], "database.gobackup.io", "postgresqls"),
    need("run-now", &["get", "patch"], BACKUPS, BACKUPS),
    better("run-now", &["list", "watch"], BACKUPS, BACKUPS),
    better("run-now", &["get", "list"], "", "pods"),
    better("run-now", &["get"], "", "pods/log"),
    better("run-now", &["get"], "batch", "jobs"),
    better("run-now", &["list"], "", "events"),
    better("run-now", &["get"], "", "secrets"),
    better("run-now", &["get"], "", "configmaps"),
    better("run-now", &["get"], "", "persistentvolumeclaims"),
    better("run-now", &["get"], "gobackup.io", "storages"),
    better("run-now", &["get"], "gobackup.io", "s3s"),
    better("run-now", &["get"], "storage.gobackup.io", "s3s"),
    better("run-now", &["get"], "gobackup.io", "backupmodels"),
    better("run-now", &["get"], "gobackup.io", "databases"),
    better("run-now", &["get"], "gobackup.io", "postgresqls"),
    better("run-now", &["get"], "database.gobackup.io", "postgresqls"),
    need("wait", &["get", "list", "watch"], BACKUPS, BACKUPS),
    better("wait", &["list"], "", "pods"),
    better("wait", &["get"], "batch", "jobs"),
    better("wait", &["list"], "", "events"),
    need("cancel", &["get", "list", "patch"], BACKUPS, BACKUPS),
    better(
        "cancel",
        &["get", "patch", "watch"],
        crds::GROUP,
        "restores",
    ),
    need(
        "verify",
        &["get", "list", "watch", "patch"],
        BACKUPS,
        BACKUPS,
    ),
    better("verify", &["get", "list"], "", "pods"),
    better("verify", &["get"], "", "pods/log"),
    better("verify", &["get"], "batch", "jobs"),
    better("verify", &["list"], "", "events"),
    better("verify", &["get"], "", "secrets"),
    better("verify", &["get"], "", "configmaps"),
    better("verify", &["get"], "", "persistentvolumeclaims"),
    better("verify", &["get"], "gobackup.io", "storages"),
    better("verify", &["get"], "gobackup.io", "s3s"),
    better("verify", &["get"], "storage.gobackup.io", "s3s"),
    better("verify", &["get"], "gobackup.io", "backupmodels"),
    need("restore", &["get", "list"], BACKUPS, BACKUPS),
    need(
        "restore",
        &["create", "get", "list", "watch", "delete"],
        crds::GROUP,
        "restores",
    ),
    better("restore", &["list"], "", "pods"),
    better("restore", &["get"], "", "pods/log"),
    better("restore", &["get"], "batch", "jobs"),
    better("restore", &["list"], "", "events"),
    better("restore", &["get"], "", "secrets"),
    better("restore", &["get"], "", "configmaps"),
    better("restore", &["get"], "", "persistentvolumeclaims"),
    better("restore", &["get"], "gobackup.io", "storages"),
    better("restore", &["get"], "gobackup.io", "s3s"),
    better("restore", &["get"], "storage.gobackup.io", "s3s"),
    better("restore", &["get"], "gobackup.io", "backupmodels"),
    need("show", &["get", "list"], BACKUPS, BACKUPS),
    need("show", &["get", "create", "delete"], "", "pods"),
    need("show", &["get", "create"], "", "pods/exec"),
    better("show", &["get"], "batch", "jobs"),
    better("show", &["list"], "", "events"),
    better("show", &["list"], "apps", "deployments"),
    better("show", &["get"], "", "secrets"),
    better("show", &["get"], "", "configmaps"),
    better("show", &["get"], "", "persistentvolumeclaims"),
    better("show", &["get"], "gobackup.io", "storages"),
    better("show", &["get"], "gobackup.io", "s3s"),
    better("show", &["get"], "storage.gobackup.io", "s3s"),
    better("show", &["get"], "gobackup.io", "backupmodels"),
    need("binlog", &["get", "list"], BACKUPS, BACKUPS),
    need("binlog", &["get", "create", "delete"], "", "pods"),
    need("binlog", &["get", "create"], "", "pods/exec"),
    better("binlog", &["get"], "batch", "jobs"),
    better("binlog", &["list"], "", "events"),
    better("binlog", &["list"], "apps", "deployments"),
    better("binlog", &["get"], "", "secrets"),
    better("binlog", &["get"], "", "configmaps"),
    better("binlog", &["get"], "", "persistentvolumeclaims"),
    better("binlog", &["get"], "gobackup.io", "storages"),
    need("download", &["get", "list"], BACKUPS, BACKUPS),
    need("download", &["get", "create", "delete"], "", "pods"),
    need("download", &["get", "create"], "", "pods/exec"),
    better("download", &["get"], "batch", "jobs"),
    better("download", &["list"], "", "events"),
    better("download", &["list"], "apps", "deployments"),
    better("download", &["get"], "", "secrets"),
    better("download", &["get"], "", "configmaps"),
    better("download", &["get"], "", "persistentvolumeclaims"),
    better("download", &["get"], "gobackup.io", "storages"),
    better("download", &["get"], "gobackup.io", "s3s"),
    better("download", &["get"], "storage.gobackup.io", "s3s"),
    better("download", &["get"], "gobackup.io", "backupmodels"),
    need("suspend", &["get", "patch"], BACKUPS, BACKUPS),
    better("suspend", &["list"], BACKUPS, BACKUPS),
    need("resume", &["get", "patch"], BACKUPS, BACKUPS),
    better("resume", &["list"], BACKUPS, BACKUPS),
    need("logs", &["get", "list"], BACKUPS, BACKUPS),
    need("logs", &["get", "list"], "", "pods"),
    need("logs", &["get"], "", "pods/log"),
    better("logs", &["get"], "batch", "jobs"),
    better("logs", &["list"], "", "events"),
    need("set", &["get", "patch"], BACKUPS, BACKUPS),
    better("set", &["list"], BACKUPS, BACKUPS),
    better("set", &["get"], "", "secrets"),
    better("set", &["get"], "", "configmaps"),
    better("set", &["get"], "", "persistentvolumeclaims"),
    better("set", &["get"], "gobackup.io", "databases"),
    better("set", &["get"], "gobackup.io", "storages"),
    better("set", &["get"], "gobackup.io", "s3s"),
    better("set", &["get"], "storage.gobackup.io", "s3s"),
    better("set", &["get"], "gobackup.io", "backupmodels"),
    better("set", &["get"], "gobackup.io", "postgresqls"),
    better("set", &["get"], "database.gobackup.io", "postgresqls"),
    need("diff", &["get", "patch"], BACKUPS, BACKUPS),
    need("import", &["create", "patch"], BACKUPS, BACKUPS),
    better("import", &["create", "patch"], "", "secrets"),
    need("export", &["get"], BACKUPS, BACKUPS),
    better("export", &["list"], BACKUPS, BACKUPS),
    better("export", &["get"], crds::GROUP, "restores"),
    better("export", &["get"], "gobackup.io", "databases"),
    better("export", &["get"], "gobackup.io", "storages"),
    need("delete", &["get", "delete"], BACKUPS, BACKUPS),
    better("delete", &["list", "watch", "patch"], BACKUPS, BACKUPS),
    better("delete", &["get", "list"], "", "pods"),
    better("delete", &["get"], "", "pods/log"),
    better("delete", &["get"], "batch", "jobs"),
    better("delete", &["list"], "", "events"),
    better(
        "delete",
        &["get", "delete", "watch"],
        crds::GROUP,
        "restores",
    ),
    better(
        "delete",
        &["get", "delete", "watch"],
        "gobackup.io",
        "databases",
    ),
    better(
        "delete",
        &["get", "delete", "watch"],
        "gobackup.io",
        "storages",
    ),
    better("schedule", &["get", "list"], BACKUPS, BACKUPS),
    need("health", &["list"], BACKUPS, BACKUPS),
    need("report", &["list"], BACKUPS, BACKUPS),
    better("report", &["get"], BACKUPS, BACKUPS),
    better("report", &["list"], crds::GROUP, "restores"),
    need("top", &["list"], BACKUPS, BACKUPS),
    better("top", &["get", "watch", "patch"], BACKUPS, BACKUPS),
    need("bundle", &["list"], BACKUPS, BACKUPS),
    better("bundle", &["list"], "apps", "deployments"),
    better("bundle", &["get"], "batch", "jobs"),
    better("bundle", &["list"], "", "pods"),
    better("bundle", &["get"], "", "pods/log"),
    better("bundle", &["list"], "", "events"),
    better("bundle", &["get"], "", "configmaps"),
    better("bundle", &["get"], "", "persistentvolumeclaims"),
    better("bundle", &["get"], "gobackup.io", "databases"),
    better("bundle", &["get"], "gobackup.io", "storages"),
    better("bundle", &["get"], "gobackup.io", "s3s"),
    better("bundle", &["get"], "storage.gobackup.io", "s3s"),
    better("bundle", &["get"], "gobackup.io", "backupmodels"),
    better("bundle", &["get"], "gobackup.io", "postgresqls"),
    better("bundle", &["get"], "database.gobackup.io", "postgresqls"),
    better("version", &["list"], "apps", "deployments"),
];

/// What the operator must be allowed in the namespace of the objects it acts on: verb, API group and
/// resource. deploy/operator/role.yaml grants it.
pub(crate) static OPERATOR_NEEDS: &[(&str, &str, &str)] = &[
    ("list", crds::GROUP, "mysqlbackups"),
    ("watch", crds::GROUP, "mysqlbackups"),
    ("patch", crds::GROUP, "mysqlbackups"),
    ("patch", crds::GROUP, "mysqlbackups/status"),
    ("list", crds::GROUP, "restores"),
    ("patch", crds::GROUP, "restores/status"),
    ("create", "batch", "jobs"),
    ("list", "batch", "jobs"),
    ("watch", "batch", "jobs"),
    ("delete", "batch", "jobs"),
    ("list", "", "pods"),
    ("watch", "", "pods"),
    ("list", "", "events"),
    ("create", "events.k8s.io", "events"),
];

/// The table as markdown.
#[cfg(test)]
pub(crate) fn markdown() -> String {
    let mut text = String::from("| verb | rights | resource |\n|---|---|---|\n");
    for need in NEEDS {
        let what = match (need.group, need.resource) {
            (BACKUPS, _) => "the backup kinds".to_owned(),
            ("", resource) => resource.to_owned(),
            (group, resource) => format!("{resource}.{group}"),
        };
        let optional = if need.optional {
            " (optional: does less without)"
        } else {
            ""
        };
        text.push_str(&format!(
            "| {} | {} | {what}{optional} |\n",
            need.verb,
            need.rights.join(", ")
        ));
    }
    text
}

#[test]
fn each_right_of_a_verb_stands_once() {
    let mut seen = std::collections::BTreeSet::new();
    for need in NEEDS {
        for right in need.rights {
            let new = seen.insert((need.verb, need.group, need.resource, right));
            assert!(new, "{need:?}");
        }
    }
}
