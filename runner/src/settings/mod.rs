//! What a run is to do, read once from the environment of `backupEnvs` and from `BACKUP_SPEC`.
//! Parsing is pure: environment and mounted files come in as parameters.

mod args;
mod destination;
mod identity;
pub mod options;
pub mod plan;
mod receiver;
mod secrets;
mod source;
mod value;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use chrono_tz::Tz;
use crds::parts::{Compression, NotificationEvent, NotificationType, Retention, WebhookMethod};
use crds::request::Action;
use crds::run_spec::{RunBinlogs, RunNotice, RunNotification, RunSpec, SPEC_ENV, SPEC_VERSION};
use secrecy::ExposeSecret;

use crate::failure::Failure;
use crate::scrub::Scrub;
use crate::stall;
use crate::stream::codec;

use options::{Options, Restore};
use plan::BackupSettings;

pub use args::{Origin, asks_for_tls, check as check_args, check_tls};
pub use destination::{Destination, S3};
pub use identity::{Identity, apart, is_artefact, run_suffix};
pub use receiver::Receiver;
pub use source::{Databases, Source};

/// Where the report goes if `BACKUP_TERMINATION_LOG` does not say otherwise.
const TERMINATION_LOG: &str = "/dev/termination-log";

/// The environment as read at the edge.
pub type Environment = BTreeMap<String, String>;

/// Reads a mounted file; the error says why not.
pub type ReadFile<'a> = &'a dyn Fn(&str) -> Result<String, String>;

/// Everything a run needs to know.
#[derive(Debug)]
pub struct Settings {
    /// What to do.
    pub action: Action,
    /// Whose run this is.
    pub identity: Identity,
    /// Where to dump from, or what is wrong with it.
    pub source: Result<Source, Vec<String>>,
    /// Where to store, or what is wrong with it.
    pub destination: Result<Destination, Vec<String>>,
    /// How to compress.
    pub compression: Compression,
    /// age recipients; empty means no encryption.
    pub recipients: Vec<String>,
    /// File with the age identity.
    pub identity_file: Option<PathBuf>,
    /// What to keep. `None` means all.
    pub retention: Option<Retention>,
    /// The run's time limit.
    pub timeout: Option<Duration>,
    /// So long may a client be silent; `None` means without end.
    pub idle: Option<Duration>,
    /// Zone of times people read.
    pub zone: Tz,
    /// Whom to tell: the Feishu bot of APIURL, and `spec.notifications`.
    pub receivers: Vec<Receiver>,
    /// Receivers whose address can't be read: which, and why.
    pub lost_receivers: Vec<String>,
    /// What to tell, for Notify.
    pub notice: Option<RunNotice>,
    /// The run before this one failed, as the operator knows it.
    pub after_failure: bool,
    /// Not a backup: binary logs are pulled.
    pub binlogs: Option<RunBinlogs>,
    /// Options of the action.
    pub options: serde_json::Value,
    /// Directories that may hold the option file, best first.
    pub memory: Vec<PathBuf>,
    /// Directories in which programs are looked for.
    pub path: Vec<PathBuf>,
    /// Image with the clients, into which this program was copied.
    pub client_image: Option<String>,
    /// Worth saying although the run goes on.
    pub warnings: Vec<String>,
    /// Wrong settings of no section of their own.
    pub problems: Vec<String>,
    /// The plan of a gobackup.io Backup, if the run is one of its.
    pub backup: Option<BackupSettings>,
    /// What must never be shown: whatever came from a Secret, known before anything was judged.
    secrets: secrets::Secrets,
}

impl Settings {
    /// Reads environment and spec.
    pub fn parse(env: &Environment, read: ReadFile<'_>) -> Self {
        let mut warnings = vec![];
        let mut problems = vec![];
        let spec = spec(env, &mut problems);
        let literal = secrets::literal(env, spec.as_ref());
        let mut seen = secrets::Secrets::of_variables(env, &literal);
        seen.know_names(env, spec.as_ref());
        let seen = std::cell::RefCell::new(seen);
        let read: ReadFile<'_> = &|path| {
            let text = read(path)?;
            seen.borrow_mut().add_file(path, &text);
            Ok(text)
        };
        let mut input = value::Input {
            env,
            read,
            warnings: &mut warnings,
            literal: &literal,
        };
        let source = source::parse(
            &mut input,
            spec.as_ref().and_then(|s| s.source.as_ref()),
            spec.as_ref().map_or(Action::Backup, |s| s.action),
        );
        let destination = destination::parse(
            &mut input,
            spec.as_ref().and_then(|s| s.destination.as_ref()),
        );
        let timeout = problem(&mut problems, timeout(&mut input, spec.as_ref())).flatten();
        let idle = problem(&mut problems, idle(&input)).unwrap_or(Some(stall::IDLE));
        let retention = problem(&mut problems, retention(&mut input, spec.as_ref())).flatten();
        let compression = problem(&mut problems, compression(spec.as_ref())).unwrap_or_default();
        let recipients =
            problem(&mut problems, recipients(&mut input, spec.as_ref())).unwrap_or_default();
        let zone = zone(&mut input);
        let tells = spec.as_ref().map(|s| s.operator_tells).unwrap_or_default();
        let mut receivers: Vec<Receiver> = problem(&mut problems, api_url(&input))
            .flatten()
            .into_iter()
            .collect();
        for bot in &mut receivers {
            bot.operator_tells = tells.api_url;
        }
        let typed = spec.as_ref().map_or(&[][..], |s| &s.notifications);
        let mut lost_receivers = vec![];
        for (i, typed) in typed.iter().enumerate() {
            match typed_receiver(&input, i, typed) {
                Ok(receiver) => receivers.push(Receiver {
                    operator_tells: tells.notifications,
                    ..receiver
                }),
                Err(e) => {
                    input.warnings.push(e.clone());
                    lost_receivers.push(e);
                }
            }
        }
        let backup = env
            .get(SPEC_ENV)
            .map(|text| BackupSettings::parse(text, read));
        let backup = problem(&mut problems, backup.transpose())
            .flatten()
            .flatten();
        let identity = Identity::new(env, spec.as_ref(), source.as_ref().ok());
        // Those that are read when they are needed are known from now on.
        for path in spec.iter().filter_map(|s| s.identity_file.as_deref()) {
            let _ = read(path);
        }
        Self {
            action: spec.as_ref().map_or(Action::Backup, |s| s.action),
            identity,
            source,
            destination,
            compression,
            recipients,
            identity_file: spec
                .as_ref()
                .and_then(|s| s.identity_file.as_ref())
                .map(PathBuf::from),
            retention,
            timeout,
            idle,
            zone,
            receivers,
            lost_receivers,
            notice: spec.as_ref().and_then(|s| s.notice.clone()),
            after_failure: spec.as_ref().is_some_and(|s| s.after_failure),
            client_image: spec.as_ref().and_then(|s| s.client_image.clone()),
            binlogs: spec.as_ref().and_then(|s| s.binlogs.clone()),
            options: spec.map(|s| s.options).unwrap_or_default(),
            memory: memory(env),
            path: search_path(env),
            warnings,
            problems,
            backup,
            secrets: seen.into_inner(),
        }
    }

    /// The source, for actions that need it.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn source(&self) -> Result<&Source, Failure> {
        self.source
            .as_ref()
            .map_err(|problems| Failure::settings(problems.join("; ")))
    }

    /// The destination, for actions that need it.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn destination(&self) -> Result<&Destination, Failure> {
        self.destination
            .as_ref()
            .map_err(|problems| Failure::settings(problems.join("; ")))
    }

    /// Where a program of this name is, in the search path.
    ///
    /// # Errors
    /// It is not there.
    pub fn program(&self, name: &str) -> Result<PathBuf, Failure> {
        let mut places = self.path.iter().map(|d| d.join(name));
        places.find(|p| p.is_file()).ok_or_else(|| {
            Failure::settings(match &self.client_image {
                Some(image) => format!(
                    "image {image} (spec.job.clientImage) has no {name} on its PATH; name one that has it"
                ),
                None => format!(
                    "the runner's image has no {name}: set spec.job.clientImage to an image that has it"
                ),
            })
        })
    }

    /// Settings outside source and destination are right.
    ///
    /// # Errors
    /// All that is wrong, in one message.
    pub fn check(&self) -> Result<(), Failure> {
        if self.problems.is_empty() {
            return Ok(());
        }
        Err(Failure::settings(self.problems.join("; ")))
    }

    /// True if the options ask for a restore.
    pub fn asks_for_restore(&self) -> bool {
        self.options.get("restore").is_some()
    }

    /// What is asked of an action other than a restore.
    ///
    /// # Errors
    /// It is not of this form.
    pub fn options(&self) -> Result<Options, Failure> {
        Options::parse(&self.options)
    }

    /// What is asked of a restore.
    ///
    /// # Errors
    /// It is not of this form.
    pub fn restore(&self) -> Result<Restore, Failure> {
        Restore::parse(self.options.get("restore"))
    }

    /// A scrubber of every secret the settings hold.
    pub fn scrub(&self) -> Scrub {
        let mut secrets = self.secrets.all();
        if let Ok(source) = &self.source {
            let password = source.password.expose_secret();
            secrets.push(password.to_owned());
            // A password that equals a user name all may read keeps nobody out, and messages name the user.
            if *password == source.username && !self.secrets.hides(password) {
                secrets.retain(|s| s != password);
            }
        }
        let urls = self.receivers.iter().map(|r| r.url.expose_secret());
        secrets.extend(urls.flat_map(crds::secret::parts));
        if let Ok(destination) = &self.destination {
            secrets.extend(destination.secrets());
        }
        secrets.extend(self.backup.iter().flat_map(BackupSettings::secrets));
        Scrub::new(secrets)
    }
}

/// Where the report goes.
pub fn termination_log(env: &Environment) -> PathBuf {
    env.get("BACKUP_TERMINATION_LOG")
        .map_or_else(|| PathBuf::from(TERMINATION_LOG), PathBuf::from)
}

fn problem<T>(problems: &mut Vec<String>, result: Result<T, String>) -> Option<T> {
    result.map_err(|e| problems.push(e)).ok()
}

fn spec(env: &Environment, problems: &mut Vec<String>) -> Option<RunSpec> {
    let text = env.get(SPEC_ENV).filter(|t| !t.trim().is_empty())?;
    match serde_json::from_str::<RunSpec>(text) {
        Ok(spec) if spec.version > SPEC_VERSION => {
            problems.push(format!(
                "{SPEC_ENV} has version {}, this runner knows {SPEC_VERSION}: use a runner image as new as the operator",
                spec.version
            ));
            Some(spec)
        }
        Ok(spec) => Some(spec),
        Err(e) => {
            problems.push(format!(
                "{SPEC_ENV} can't be read ({e}): use runner and operator of the same version"
            ));
            None
        }
    }
}

fn timeout(
    input: &mut value::Input<'_>,
    spec: Option<&RunSpec>,
) -> Result<Option<Duration>, String> {
    let binlogs = spec.and_then(|s| s.binlogs.as_ref());
    if binlogs.is_some_and(|b| b.until.is_some()) {
        // It speaks of runs that end by themselves.
        return Ok(None);
    }
    let typed = spec.and_then(|s| s.timeout_seconds);
    let env = input.get("TIMEOUT");
    if let Some(seconds) = typed {
        // The operator derives it from TIMEOUT where that is set; only a real difference is worth a word.
        return match u64::try_from(seconds) {
            Ok(seconds) if seconds > 0 => Ok(Some(Duration::from_secs(seconds))),
            _ => Err(format!("timeoutSeconds must be 1 or more, is {seconds}")),
        };
    }
    env.map(|text| value::timeout(&text, &input.named("TIMEOUT", &text)))
        .transpose()
}

/// IDLE_TIMEOUT: a Go duration; 0 means no limit.
fn idle(input: &value::Input<'_>) -> Result<Option<Duration>, String> {
    match input.get("IDLE_TIMEOUT") {
        None => Ok(Some(stall::IDLE)),
        Some(text) if matches!(text.as_str(), "0" | "0s" | "0m" | "0h") => Ok(None),
        Some(text) => {
            value::duration("IDLE_TIMEOUT", &text, &input.named("IDLE_TIMEOUT", &text)).map(Some)
        }
    }
}

fn retention(
    input: &mut value::Input<'_>,
    spec: Option<&RunSpec>,
) -> Result<Option<Retention>, String> {
    let env = input.get("EXPIREAT");
    if let Some(typed) = spec.and_then(|s| s.retention.clone()) {
        if env.is_some() {
            input.typed_wins("EXPIREAT", "spec.retention");
        }
        if let Some(age) = &typed.max_age {
            value::duration("retention.maxAge", age, &format!("{age:?}"))?;
        }
        return Ok(Some(typed));
    }
    let Some(text) = env else { return Ok(None) };
    value::duration("EXPIREAT", &text, &input.named("EXPIREAT", &text))?;
    Ok(Some(Retention {
        max_age: Some(text),
        ..Retention::default()
    }))
}

fn compression(spec: Option<&RunSpec>) -> Result<Compression, String> {
    let compression = spec.and_then(|s| s.compression).unwrap_or_default();
    match compression.fault() {
        Some(fault) => Err(format!("compression.level {fault}")),
        None => Ok(compression),
    }
}

fn recipients(input: &mut value::Input<'_>, spec: Option<&RunSpec>) -> Result<Vec<String>, String> {
    let Some(spec) = spec else { return Ok(vec![]) };
    let age = spec.encryption.as_ref().and_then(|e| e.age.as_ref());
    let listed = age.map_or(&[][..], |a| &a.recipients);
    let file = match &spec.recipients_file {
        Some(file) => input.file("encryption.age.recipientsSecretKeyRef", file)?,
        None => String::new(),
    };
    let found: Vec<String> = codec::recipients(listed, &file)
        .map(str::to_owned)
        .collect();
    if spec.encryption.is_some() && found.is_empty() {
        return Err(
            "encryption is asked for but names no recipient: add a public key (age1…)".to_owned(),
        );
    }
    for recipient in &found {
        codec::parse_recipient(recipient).map_err(|e| match &spec.recipients_file {
            Some(_) => format!(
                "{e} (encryption.age.recipients, or the Secret's key of recipientsSecretKeyRef)"
            ),
            None => e,
        })?;
    }
    Ok(found)
}

fn zone(input: &mut value::Input<'_>) -> Tz {
    let Some(name) = input.get("TZ") else {
        return Tz::UTC;
    };
    crds::schedule::parse_zone(&name).unwrap_or_else(|e| {
        let why = if (input.literal)("TZ") {
            e.to_string()
        } else {
            "its value is no time zone".to_owned()
        };
        input
            .warnings
            .push(format!("TZ: {why}; times are shown in UTC"));
        Tz::UTC
    })
}

/// The bot of APIURL hears of every outcome.
fn api_url(input: &value::Input<'_>) -> Result<Option<Receiver>, String> {
    let Some(text) = input.get("APIURL") else {
        return Ok(None);
    };
    match reqwest::Url::parse(&text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => {
            Ok(Some(Receiver {
                name: "APIURL".to_owned(),
                type_: NotificationType::Feishu,
                url: text.into(),
                method: WebhookMethod::default(),
                headers: vec![],
                on: vec![NotificationEvent::Success, NotificationEvent::Failure],
                operator_tells: false,
            }))
        }
        _ => Err(
            "APIURL is not an http or https URL: give the bot's webhook address, or leave it out"
                .to_owned(),
        ),
    }
}

/// A receiver that can't be read is a warning: it must not cost the backup.
fn typed_receiver(
    input: &value::Input<'_>,
    index: usize,
    typed: &RunNotification,
) -> Result<Receiver, String> {
    let name = format!("spec.notifications[{index}] ({:?})", typed.entry.type_);
    let url = input.file(&name, &typed.url_file)?;
    if url.trim().is_empty() {
        return Err(format!(
            "{name}: the Secret's key is empty: fill it with the receiver's URL"
        ));
    }
    let mut headers = vec![];
    for (i, header) in typed.entry.headers.iter().enumerate() {
        let file = typed.header_files.get(i).filter(|file| !file.is_empty());
        let value = match file {
            Some(file) => input.file(&format!("{name}: header {}", header.name), file)?,
            None => header.value.clone().unwrap_or_default(),
        };
        headers.push((header.name.clone(), value.trim().into()));
    }
    Ok(Receiver {
        name,
        type_: typed.entry.type_,
        url: url.trim().into(),
        method: typed.entry.method.unwrap_or_default(),
        headers,
        on: typed.entry.wanted().to_vec(),
        operator_tells: false,
    })
}

fn memory(env: &Environment) -> Vec<PathBuf> {
    let mut found = vec![PathBuf::from("/run/backup")];
    found.extend(
        env.get("TMPDIR")
            .filter(|d| !d.is_empty())
            .map(PathBuf::from),
    );
    found.push(PathBuf::from("/dev/shm"));
    found
}

fn search_path(env: &Environment) -> Vec<PathBuf> {
    let text = env.get("PATH").map_or(
        "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        String::as_str,
    );
    text.split(':')
        .filter(|d| d.starts_with('/'))
        .map(PathBuf::from)
        .collect()
}

#[cfg(test)]
mod tests;
