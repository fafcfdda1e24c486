//! The kinds the verbs act on, and how people name their objects.

use kube::core::{ApiResource, GroupVersionKind};

use crate::error::{Error, Result};

/// A kind with a schedule, at its fixed group and version: no discovery is needed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    /// CamelCase name.
    pub(crate) kind: &'static str,
    /// API group.
    pub(crate) group: &'static str,
    /// API version.
    pub(crate) version: &'static str,
    /// Plural, as in URLs.
    pub(crate) plural: &'static str,
    /// Singular, as in `singular/name`.
    pub(crate) singular: &'static str,
    /// Short names.
    pub(crate) short: &'static [&'static str],
}

/// MysqlBackup of batch.isekiro.com.
pub(crate) static MYSQL: Kind = Kind {
    kind: "MysqlBackup",
    group: crds::GROUP,
    version: "v1",
    plural: "mysqlbackups",
    singular: "mysqlbackup",
    short: &["mbk", "mysql"],
};

/// Backup of gobackup.io.
pub(crate) static GOBACKUP: Kind = Kind {
    kind: "Backup",
    group: "gobackup.io",
    version: "v1",
    plural: "backups",
    singular: "backup",
    short: &[],
};

/// CronBackup of gobackup.io: a Backup of 2024 with a schedule.
pub(crate) static CRON: Kind = Kind {
    kind: "CronBackup",
    group: "gobackup.io",
    version: "v1",
    plural: "cronbackups",
    singular: "cronbackup",
    short: &[],
};

/// Database of gobackup.io: what a Backup dumps. It has no schedule.
pub(crate) static DATABASE: Kind = Kind {
    kind: "Database",
    group: "gobackup.io",
    version: "v1",
    plural: "databases",
    singular: "database",
    short: &["db"],
};

/// Storage of gobackup.io: where a Backup keeps archives. It has no schedule.
pub(crate) static STORAGE: Kind = Kind {
    kind: "Storage",
    group: "gobackup.io",
    version: "v1",
    plural: "storages",
    singular: "storage",
    short: &[],
};

/// Restore of batch.isekiro.com: made by `restore`, no object of the verbs about schedules.
pub(crate) static RESTORE: Kind = Kind {
    kind: "Restore",
    group: crds::GROUP,
    version: "v1",
    plural: "restores",
    singular: "restore",
    short: &["rst"],
};

/// Kinds that `create` makes; the last three have no schedule.
pub(crate) static CREATABLE: [&Kind; 6] = [&MYSQL, &GOBACKUP, &CRON, &DATABASE, &STORAGE, &RESTORE];

/// All kinds, in the order in which lists show them.
pub(crate) static KINDS: [&Kind; 3] = [&MYSQL, &GOBACKUP, &CRON];

/// Kinds without a schedule.
pub(crate) static UNSCHEDULED: [&Kind; 3] = [&RESTORE, &DATABASE, &STORAGE];

/// Those with a schedule, then the others.
pub(crate) static ALL: [&Kind; 6] = [&MYSQL, &GOBACKUP, &CRON, &RESTORE, &DATABASE, &STORAGE];

impl Kind {
    /// The kind among `kinds` that a word means: singular, plural or short name, with or without the
    /// group.
    pub(crate) fn find(word: &str, kinds: &[&'static Self]) -> Option<&'static Self> {
        let word = word.to_ascii_lowercase();
        kinds.iter().copied().find(|kind| {
            let names = [kind.singular, kind.plural];
            let mut all = names.iter().chain(kind.short);
            all.any(|name| match word.strip_prefix(name) {
                Some("") => true,
                Some(rest) => {
                    let group = rest.trim_start_matches('.');
                    rest.starts_with('.')
                        && (group == kind.group
                            || group == format!("{}.{}", kind.version, kind.group))
                }
                None => false,
            })
        })
    }

    /// `plural.group`, as the server names the resource in its messages.
    pub(crate) fn resource(&self) -> String {
        format!("{}.{}", self.plural, self.group)
    }

    /// `singular.group/name`, as kubectl prints what it changed and takes it again.
    pub(crate) fn full_name(&self, name: &str) -> String {
        format!("{}.{}/{name}", self.singular, self.group)
    }

    /// `singular/name`, as tables show it.
    pub(crate) fn short_name(&self, name: &str) -> String {
        format!("{}/{name}", self.singular)
    }

    /// `/apis/group/version/namespaces/ns/plural`, or over all namespaces.
    pub(crate) fn path(&self, namespace: Option<&str>) -> String {
        let (group, version, plural) = (self.group, self.version, self.plural);
        match namespace {
            Some(namespace) => {
                format!("/apis/{group}/{version}/namespaces/{namespace}/{plural}")
            }
            None => format!("/apis/{group}/{version}/{plural}"),
        }
    }

    /// What the dynamic client needs to know.
    pub(crate) fn api_resource(&self) -> ApiResource {
        let gvk = GroupVersionKind::gvk(self.group, self.version, self.kind);
        ApiResource::from_gvk_with_plural(&gvk, self.plural)
    }
}

/// An object as the user named it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// The kind, if it was named.
    pub(crate) kind: Option<&'static Kind>,
    /// The name.
    pub(crate) name: String,
}

impl Target {
    /// Reads `TYPE/NAME`, or `NAME`, of an object with a schedule.
    ///
    /// # Errors
    /// An unknown type, with the types there are.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        Self::parse_in(text, &KINDS)
    }

    /// As [`Self::parse`], of one of these kinds.
    ///
    /// # Errors
    /// An unknown type, with these types.
    pub(crate) fn parse_in(text: &str, kinds: &[&'static Kind]) -> Result<Self> {
        let (kind, name) = match text.split_once('/') {
            Some((word, name)) => (Some(Self::kind_in(word, kinds)?), name),
            None => (None, text),
        };
        if name.is_empty() || name.contains('/') {
            return Err(Error::usage(format!(
                "{text:?} does not name an object; write TYPE/NAME, such as mysqlbackup/shop"
            )));
        }
        Ok(Self {
            kind,
            name: name.to_owned(),
        })
    }

    /// The kind of a word.
    ///
    /// # Errors
    /// An unknown word, with the types there are.
    pub(crate) fn kind_in(word: &str, kinds: &[&'static Kind]) -> Result<&'static Kind> {
        Kind::find(word, kinds).ok_or_else(|| {
            let types: Vec<&str> = kinds.iter().map(|kind| kind.singular).collect();
            Error::usage(format!(
                "no type {word:?}; the types are {}",
                types.join(", ")
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use super::*;

    #[test]
    fn words_for_a_kind() {
        for word in [
            "mysqlbackup",
            "mysqlbackups",
            "mbk",
            "MysqlBackup",
            "mysql",
            "mysqlbackups.batch.isekiro.com",
            "mysqlbackup.v1.batch.isekiro.com",
        ] {
            assert_eq!(Kind::find(word, &KINDS), Some(&MYSQL), "{word}");
        }
        assert_eq!(
            Kind::find("backup", &KINDS).map(|k| k.group),
            Some("gobackup.io")
        );
        // Five other operators define a kind Backup.
        for (word, kind) in [
            ("rst", &RESTORE),
            ("storages.gobackup.io", &STORAGE),
            ("db", &DATABASE),
        ] {
            assert_eq!(Kind::find(word, &ALL), Some(kind), "{word}");
            assert_eq!(Kind::find(word, &KINDS), None, "{word}");
        }
        for word in ["backups.velero.io", "mysqlbackupx", "pod", ""] {
            assert_eq!(Kind::find(word, &ALL), None, "{word}");
        }
    }

    #[test]
    fn targets() {
        let target = Target::parse("mbk/shop").unwrap();
        assert_eq!((target.kind, target.name.as_str()), (Some(&MYSQL), "shop"));
        assert_eq!(Target::parse("shop").unwrap().kind, None);
        for bad in ["pod/shop", "mbk/", "mbk/a/b", ""] {
            assert_eq!(Target::parse(bad).unwrap_err().kind.code(), 2, "{bad}");
        }
    }
}
