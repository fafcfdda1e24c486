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

/// All needs, by verb in the order of the help. Reading Secrets is never among them.
pub(crate) static NEEDS: &[Need] = &[
    need("create", &["create"], BACKUPS, BACKUPS),
    need("list", &["list"], BACKUPS, BACKUPS),
    better("list", &["watch"], BACKUPS, BACKUPS),
    need("runs", &["get", "list"], BACKUPS, BACKUPS),
    better("runs", &["patch", "watch"], BACKUPS, BACKUPS),
    better("runs", &["list"], "", "pods"),
    better("runs", &["get"], "", "pods/log"),
    need("describe", &["get"], BACKUPS, BACKUPS),
    better("describe", &["get"], "batch", "jobs"),
    better("describe", &["list"], "", "pods"),
    better("describe", &["get"], "", "pods/log"),
    better("describe", &["list"], "", "events"),
    need("run-now", &["get", "patch"], BACKUPS, BACKUPS),
    better("run-now", &["list", "watch"], BACKUPS, BACKUPS),
    better("run-now", &["get", "list"], "", "pods"),
    better("run-now", &["get"], "", "pods/log"),
    need("wait", &["get", "list", "watch"], BACKUPS, BACKUPS),
    better("wait", &["list"], "", "pods"),
    need("cancel", &["get", "list", "patch"], BACKUPS, BACKUPS),
    need(
        "verify",
        &["get", "list", "watch", "patch"],
        BACKUPS,
        BACKUPS,
    ),
    need("restore", &["get", "list"], BACKUPS, BACKUPS),
    need(
        "restore",
        &["create", "get", "list", "watch", "delete"],
        crds::GROUP,
        "restores",
    ),
    better("restore", &["list"], "", "pods"),
    better("restore", &["get"], "", "pods/log"),
    need("download", &["get", "list"], BACKUPS, BACKUPS),
    need("download", &["get", "create", "delete"], "", "pods"),
    need("download", &["get", "create"], "", "pods/exec"),
    better("download", &["get"], "batch", "jobs"),
    better("download", &["list"], "apps", "deployments"),
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
    need("set", &["get", "patch"], BACKUPS, BACKUPS),
    better("set", &["list"], BACKUPS, BACKUPS),
    need("diff", &["get", "patch"], BACKUPS, BACKUPS),
    need("import", &["create", "patch"], BACKUPS, BACKUPS),
    better("import", &["create", "patch"], "", "secrets"),
    need("export", &["get"], BACKUPS, BACKUPS),
    better("export", &["list"], BACKUPS, BACKUPS),
    need("delete", &["get", "delete"], BACKUPS, BACKUPS),
    better("delete", &["list", "watch", "patch"], BACKUPS, BACKUPS),
    better("schedule", &["get", "list"], BACKUPS, BACKUPS),
    need("health", &["list"], BACKUPS, BACKUPS),
    need("top", &["list"], BACKUPS, BACKUPS),
    better("top", &["get", "watch", "patch"], BACKUPS, BACKUPS),
    need("bundle", &["list"], BACKUPS, BACKUPS),
    better("bundle", &["list"], "apps", "deployments"),
    better("bundle", &["get"], "batch", "jobs"),
    better("bundle", &["list"], "", "pods"),
    better("bundle", &["get"], "", "pods/log"),
    better("bundle", &["list"], "", "events"),
    better("version", &["list"], "apps", "deployments"),
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
