//! The plan of `BACKUP_SPEC` with its secrets read from their files.

use std::collections::BTreeMap;
use std::path::PathBuf;

use chrono_tz::Tz;
use crds::plan::{Encrypt, Plan, Storage};
use crds::request::Action;
use crds::run_spec::BackupRunSpec;
use secrecy::{ExposeSecret, SecretString};

use crate::settings::ReadFile;
use crate::stream::codec;

/// What a run of a Backup needs to know beside the common settings.
#[derive(Debug)]
pub struct BackupSettings {
    /// What to do. A secret that is optional and missing is empty.
    pub plan: Plan<SecretString>,
    /// Where dumps are spooled.
    pub workdir: PathBuf,
    /// Zone of the timestamp in names.
    pub zone: Tz,
    /// TCP port of the server to restore into, where one is given: each engine has its own default.
    pub target_port: Option<u16>,
    /// gobackup dumps, packs and stores; the runner checks.
    pub gobackup: bool,
    /// Whether archives that gobackup's own list names are this Backup's.
    pub adopt_state: Option<bool>,
    /// The files the plan's secrets are in, by their names in it.
    pub files: BTreeMap<String, String>,
}

impl BackupSettings {
    /// Reads the plan; `None` if the spec is of another kind.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str, read: ReadFile<'_>) -> Result<Option<Self>, String> {
        let value: serde_json::Value =
            serde_json::from_str(text).map_err(|e| format!("BACKUP_SPEC can't be read: {e}"))?;
        if value.get("plan").is_none() {
            return Ok(None);
        }
        let spec: BackupRunSpec = serde_json::from_value(value).map_err(|e| {
            format!("BACKUP_SPEC can't be read ({e}): use runner and operator of the same version")
        })?;
        let mut problems = vec![];
        let mut files = BTreeMap::new();
        let plan = spec.plan.map(&mut |name, path: String| {
            if std::path::Path::new(&path).exists() {
                files.insert(name.to_owned(), path.clone());
            }
            load(name, &path, read, &mut problems)
        });
        if spec.run.action == Action::Backup {
            problems.extend(no_key(plan.encrypt.as_ref()));
        }
        if !problems.is_empty() {
            return Err(problems.join("; "));
        }
        let zone = match &spec.time_zone {
            None => Tz::UTC,
            Some(name) => crds::schedule::parse_zone(name).map_err(|e| e.to_string())?,
        };
        let port = spec.run.source.as_ref().and_then(|s| s.port);
        Ok(Some(Self {
            plan,
            target_port: port.and_then(|p| u16::try_from(p).ok()),
            workdir: spec.workdir.into(),
            zone,
            gobackup: spec.gobackup,
            adopt_state: spec.adopt_state,
            files,
        }))
    }

    /// Every secret of the plan, for the scrubber. User names are none.
    pub fn secrets(&self) -> Vec<String> {
        let mut found = vec![];
        let _ = self
            .plan
            .clone()
            .map(&mut |name, secret| note(&mut found, name, &secret));
        found.iter().flat_map(|s| crds::secret::parts(s)).collect()
    }
}

/// An archive is to be encrypted, and there is nothing to do so with: it would open with an empty
/// password, or not be made at all.
fn no_key(encrypt: Option<&Encrypt<SecretString>>) -> Option<String> {
    match encrypt? {
        Encrypt::Openssl { password, .. } if password.expose_secret().trim().is_empty() => Some(
            "encodeWith: the password is empty or its Secret's key is not there: fill it, or remove encodeWith".to_owned(),
        ),
        Encrypt::Openssl { .. } => None,
        Encrypt::Age {
            recipients,
            recipients_file,
        } => {
            let file = recipients_file.as_ref().map_or("", |f| f.expose_secret());
            let mut all = codec::recipients(recipients, file).peekable();
            if all.peek().is_none() {
                return Some("encodeWith: there is no age recipient: the Secret's key of recipientsSecretKeyRef is empty or not there".to_owned());
            }
            all.find_map(|text| codec::parse_recipient(text).err())
                .map(|e| format!("encodeWith: {e} (recipients, or the Secret's key of recipientsSecretKeyRef)"))
        }
    }
}

/// A Storage with its secrets read from their files.
///
/// # Errors
/// Which can't be read, and why.
pub(crate) fn read_storage(
    storage: Storage<String>,
    read: ReadFile<'_>,
) -> Result<Storage<SecretString>, Vec<String>> {
    let mut problems = vec![];
    let storage = storage.map(&mut |name, path| load(name, &path, read, &mut problems));
    if problems.is_empty() {
        Ok(storage)
    } else {
        Err(problems)
    }
}

/// Every secret of a Storage, for the scrubber.
pub(crate) fn storage_secrets(storage: &Storage<SecretString>) -> Vec<String> {
    let mut found = vec![];
    let _ = storage
        .clone()
        .map(&mut |name, secret| note(&mut found, name, &secret));
    found
}

fn note(found: &mut Vec<String>, name: &str, secret: &SecretString) {
    let open = ["/username", "/access-key-id", "/recipients"];
    if !open.iter().any(|end| name.ends_with(end)) {
        found.push(secret.expose_secret().to_owned());
    }
}

/// A Secret that is not optional holds the pod back; a missing file is an optional one.
fn load(name: &str, path: &str, read: ReadFile<'_>, problems: &mut Vec<String>) -> SecretString {
    if !std::path::Path::new(path).exists() {
        tracing::info!(secret = name, "is optional and not there");
        return SecretString::default();
    }
    match read(path) {
        Ok(text) => text.strip_suffix('\n').unwrap_or(&text).to_owned().into(),
        Err(e) => {
            problems.push(format!("{name}: {path} can't be read: {e}"));
            SecretString::default()
        }
    }
}

/// The text of a secret; `None` if it is unset or empty.
pub(crate) fn expose(secret: Option<&SecretString>) -> Option<&str> {
    secret.map(|s| s.expose_secret()).filter(|s| !s.is_empty())
}
