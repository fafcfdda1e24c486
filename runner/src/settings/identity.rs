//! Whose run this is, and where its artefact belongs below the destination's root.

use chrono::{DateTime, Utc};
use crds::names::short_hash;
use crds::parts::CompressionType;
use crds::run::Trigger;
use crds::run_spec::{ObjectId, RunSpec};

use crate::settings::{Environment, Source};

/// Object, run and attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The user's object. Without `BACKUP_SPEC` only its name is set: `<host>-<port>`.
    pub object: ObjectId,
    /// Name of the run: its Job, or the host name of the pod.
    pub run: String,
    /// The slot, for runs of the schedule.
    pub slot: Option<DateTime<Utc>>,
    /// Why the run was started.
    pub trigger: Trigger,
    /// UID of the kube-system namespace, or empty.
    pub cluster_id: String,
    /// UID or name of the pod: the same for restarts in place, another for a new pod.
    pub pod: String,
}

impl Identity {
    pub(super) fn new(env: &Environment, spec: Option<&RunSpec>, source: Option<&Source>) -> Self {
        let host_name = env.get("HOSTNAME").filter(|h| !h.is_empty());
        let pod = ["BACKUP_POD_UID", "POD_UID"]
            .iter()
            .find_map(|name| env.get(*name).filter(|u| !u.is_empty()))
            .or(host_name);
        let pod = pod.map_or_else(|| "local".to_owned(), |p| safe(p));
        if let Some(spec) = spec {
            return Self {
                object: spec.object.clone(),
                run: spec.run.name.clone(),
                slot: spec.run.slot.as_deref().and_then(crds::time::parse_rfc3339),
                trigger: spec.run.trigger,
                cluster_id: spec.cluster_id.clone(),
                pod,
            };
        }
        let name = source.map_or_else(
            || "unknown".to_owned(),
            |s| safe(&format!("{}-{}", s.host, s.port)),
        );
        Self {
            object: ObjectId {
                name,
                ..ObjectId::default()
            },
            run: host_name.cloned().unwrap_or_default(),
            slot: None,
            trigger: Trigger::Schedule,
            cluster_id: String::new(),
            pod,
        }
    }

    /// Directory of the object's artefacts: `<namespace>/<Kind>/<name>`, or `<host>-<port>`.
    pub fn directory(&self) -> String {
        let o = &self.object;
        if o.namespace.is_empty() {
            return safe(&o.name);
        }
        format!("{}/{}/{}", safe(&o.namespace), safe(&o.kind), safe(&o.name))
    }

    /// Tells the artefacts of two runs apart: the end of the Job's name, or a hash of the run.
    pub fn suffix(&self, started: DateTime<Utc>) -> String {
        if self.run.is_empty() {
            return short_hash(&[&self.pod, &started.to_rfc3339()], 8);
        }
        if self.object.namespace.is_empty() {
            return short_hash(&[&self.run], 8);
        }
        run_suffix(&self.run)
    }

    /// Key of the artefact: the slot, else the start of the run, in UTC, basic format.
    pub fn key(
        &self,
        started: DateTime<Utc>,
        compression: CompressionType,
        encrypted: bool,
    ) -> String {
        let time = self.slot.unwrap_or(started).format("%Y%m%dT%H%M%SZ");
        let codec = match compression {
            CompressionType::Zstd => ".zst",
            CompressionType::Gzip => ".gz",
            CompressionType::None => "",
        };
        let age = if encrypted { ".age" } else { "" };
        format!(
            "{}/{time}-{}.sql{codec}{age}",
            self.directory(),
            self.suffix(started)
        )
    }

    /// True if the key is of an artefact of this run.
    pub fn is_of_run(&self, key: &str, started: DateTime<Utc>) -> bool {
        let name = key.rsplit('/').next().unwrap_or(key);
        is_artefact(name) && name.contains(&format!("-{}.", self.suffix(started)))
    }

    /// The object as people name it.
    pub fn title(&self) -> String {
        let o = &self.object;
        if o.namespace.is_empty() {
            return o.name.clone();
        }
        format!("{} {}/{}", o.kind, o.namespace, o.name)
    }
}

/// `key` with what tells it from that of every other attempt: `…-SUFFIX.TAG.sql…`.
pub fn apart(key: &str, tag: &str) -> String {
    match key.rfind(".sql") {
        Some(at) => format!("{}.{tag}{}", &key[..at], &key[at..]),
        None => format!("{key}.{tag}"),
    }
}

/// True if it is the name of an artefact as [`Identity::key`] gives it.
pub fn is_artefact(name: &str) -> bool {
    let name = name.strip_suffix(".age").unwrap_or(name);
    let name = name.strip_suffix(".zst").unwrap_or(name);
    let name = name.strip_suffix(".gz").unwrap_or(name);
    let Some((time, rest)) = name.strip_suffix(".sql").and_then(|n| n.split_once('-')) else {
        return false;
    };
    let form = |(i, c): (usize, char)| match i {
        8 => c == 'T',
        15 => c == 'Z',
        _ => c.is_ascii_digit(),
    };
    time.len() == 16 && time.char_indices().all(form) && !rest.is_empty()
}

/// The end of a Job's name that tells runs apart, or a hash of it.
pub fn run_suffix(run: &str) -> String {
    let tail = run.rsplit('-').next().unwrap_or_default();
    if tail.len() >= 8 && tail.len() <= 12 {
        return safe(tail);
    }
    short_hash(&[run], 8)
}

/// `text` as one component of a key.
fn safe(text: &str) -> String {
    let plain: String = text
        .chars()
        .map(|c| match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '_' | '.' => c,
            _ => '_',
        })
        .collect();
    if plain.trim_matches('.').is_empty() {
        return format!("_{plain}");
    }
    plain
}
