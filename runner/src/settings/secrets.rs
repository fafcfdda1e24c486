//! What came from a Secret, and therefore leaves the program nowhere: known before anything is judged.

use std::collections::BTreeSet;

use crds::run_spec::{BackupRunSpec, RunSpec};
use crds::secret::{is_secret_name, parts};

use crate::settings::Environment;

/// Variables of `backupEnvs` that name something, and are secret only if they hold something else.
const NAMES: [&str; 11] = [
    "HOST",
    "PORT",
    "USERNAME",
    "DATABASES",
    "EXCLUDE_TABLES",
    "MYSQLDUMP_ARGS",
    "SQLPATH",
    "EXPIREAT",
    "TIMEOUT",
    "IDLE_TIMEOUT",
    "TZ",
];
/// Always secret, whoever may read them in the object.
const ALWAYS: [&str; 2] = ["PASSWORD", "APIURL"];
/// Ends of a plan's names for files that name something.
const NAME_FILES: [&str; 2] = ["/username", "/access-key-id"];

/// All that must not be shown.
#[derive(Clone, Default)]
pub(super) struct Secrets {
    found: BTreeSet<String>,
    /// Files that hold the name of a user or of a key.
    name_files: BTreeSet<String>,
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Secrets({})", self.found.len())
    }
}

/// Tells of a variable whether its value stands in the object, or in an environment that no operator
/// made.
pub(super) fn literal(env: &Environment, spec: Option<&RunSpec>) -> impl Fn(&str) -> bool + use<> {
    let operator = spec.is_some() || env.contains_key(crds::run_spec::SPEC_ENV);
    let named = spec.and_then(|s| s.literal_variables.clone());
    move |variable| match &named {
        Some(named) => named.iter().any(|n| n == variable),
        None => !operator,
    }
}

impl Secrets {
    /// What variables hold that are, or may be, from a Secret.
    pub(super) fn of_variables(env: &Environment, literal: &dyn Fn(&str) -> bool) -> Self {
        let mut secrets = Self::default();
        for (name, value) in env {
            if ALWAYS.contains(&name.as_str()) {
                secrets.found.extend(parts(value));
                // Byte for byte, as it is sent.
                secrets.found.insert(value.clone());
            } else if NAMES.contains(&name.as_str()) {
                // What a URL or a list of arguments holds beside names is secret, whoever wrote it.
                secrets.found.extend(parts(value).into_iter().skip(1));
                if name == "MYSQLDUMP_ARGS" {
                    continue;
                }
                if !literal(name) {
                    let each = value.split([',', ' ']).chain([value.trim()]);
                    secrets
                        .found
                        .extend(each.filter(|v| !is_plain(v)).map(str::to_owned));
                }
            } else if is_secret_name(name) && !value.starts_with('/') {
                secrets.found.extend(parts(value));
            }
        }
        secrets
    }

    /// The files that name somebody, before any is read.
    pub(super) fn know_names(&mut self, env: &Environment, spec: Option<&RunSpec>) {
        let source = spec.and_then(|s| s.source.as_ref()?.username_file.clone());
        let destination = spec.and_then(|s| s.destination.as_ref());
        let key = destination.and_then(|d| d.s3.as_ref()?.access_key_id_file.clone());
        self.name_files.extend(source.into_iter().chain(key));
        let mut note = |name: &str, path: String| {
            if NAME_FILES.iter().any(|end| name.ends_with(end)) {
                self.name_files.insert(path);
            }
        };
        if let Some(storage) = destination.and_then(|d| d.storage.as_ref()) {
            let _ = (**storage).clone().map(&mut note);
        }
        let backup = env.get(crds::run_spec::SPEC_ENV);
        let backup = backup.and_then(|t| serde_json::from_str::<BackupRunSpec>(t).ok());
        if let Some(backup) = backup {
            let _ = backup.plan.map(&mut note);
        }
    }

    /// What a mounted file holds.
    pub(super) fn add_file(&mut self, path: &str, text: &str) {
        if self.name_files.contains(path) && is_plain(text.trim()) {
            return;
        }
        self.found.extend(parts(text));
    }

    /// All of it.
    pub(super) fn all(&self) -> Vec<String> {
        self.found
            .iter()
            .filter(|s| !s.is_empty())
            .cloned()
            .collect()
    }

    /// True if this came from a Secret.
    pub(super) fn hides(&self, value: &str) -> bool {
        self.found.contains(value)
    }
}

/// A word of small letters, a number, a path or a duration: the name of a user, a host or a database
/// that tells nobody anything, and that sentences may hold anyway.
fn is_plain(value: &str) -> bool {
    let all = |fits: fn(char) -> bool| value.chars().all(fits);
    all(|c| c.is_ascii_lowercase())
        || all(|c| c.is_ascii_digit() || matches!(c, '.' | ':'))
        || value.starts_with('/')
        || value.len() < 8
            && all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || ".-_".contains(c))
        || crds::schedule::parse_zone(value).is_ok()
}
