//! `describe restore/NAME`: what goes where, how far it is, and what stands behind it.

use chrono::{DateTime, Utc};
use crds::parts::VolumeDestination;
use crds::report::Reason;
use crds::restore::{Replay, RestorePhase, RestoreSpec, RestoreStatus};
use crds::run::TimedPhase;
use crds::secret;
use crds::verdict::{State, Verdict, of_restore};
use k8s_openapi::api::core::v1::{Event, Pod};

use super::page::{Page, Probe, or};
use super::time::Zone;
use super::verdict::mark;
use super::{chain, duration, progress};

/// What was read.
pub(crate) struct Inputs {
    /// Its name and namespace.
    pub(crate) name: (String, String),
    /// When it was created.
    pub(crate) created: Option<DateTime<Utc>>,
    /// What is to be restored.
    pub(crate) spec: RestoreSpec,
    /// What the operator says.
    pub(crate) status: RestoreStatus,
    /// Pods of its Job.
    pub(crate) pods: Probe<Vec<Pod>>,
    /// The end of the newest pod's log.
    pub(crate) log: Probe<Vec<String>>,
    /// Events of object and Job.
    pub(crate) events: Probe<Vec<Event>>,
    /// Now.
    pub(crate) now: DateTime<Utc>,
    /// Symbols must be ASCII.
    pub(crate) ascii: bool,
    /// Words may be coloured.
    pub(crate) color: bool,
    /// The zone to show times in.
    pub(crate) zone: Zone,
}

/// Up to where binary logs are replayed.
fn up_to(replay: &Replay) -> String {
    let Replay {
        at,
        gtid,
        before_gtid,
        latest,
    } = replay;
    match (at, gtid, before_gtid) {
        (Some(at), ..) => format!("all before {at}"),
        (_, Some(gtid), _) => format!("up to GTID {gtid}, with it"),
        (.., Some(gtid)) => format!("up to GTID {gtid}, without it"),
        _ if *latest == Some(true) => "all that is stored".to_owned(),
        _ => "<none>".to_owned(),
    }
}

/// The description.
pub(crate) fn describe(inputs: &Inputs) -> String {
    let mut page = Page::new(inputs.color);
    let (spec, status) = (&inputs.spec, &inputs.status);
    page.field("Name", &inputs.name.0);
    page.field("Kind", "Restore (batch.isekiro.com/v1)");
    page.field("Namespace", &inputs.name.1);
    let verdict = of_restore(status, inputs.created.unwrap_or(inputs.now), inputs.now);
    page.field("Status", &summary(inputs, &verdict));
    page.field("From", &from(spec));
    page.field("To", &target(spec));
    page.field("Dry run", if spec.dry_run { "yes" } else { "no" });
    page.field("Overwrite", if spec.overwrite { "yes" } else { "no" });
    if spec.accounts {
        page.field("Accounts", "yes");
    }
    if let Some(replay) = &spec.replay {
        page.field("Replay", &up_to(replay));
    }
    if let Some(verify) = spec.verify {
        page.field("Verify", verify.as_str());
    }
    for (what, names) in [
        ("Tables", &spec.tables),
        ("Databases", &spec.databases),
        ("Left out", &spec.exclude_tables),
    ] {
        if !names.is_empty() {
            page.field(what, &names.join(", "));
        }
    }
    if spec.without_foreign_keys {
        page.field(
            "Foreign keys",
            "left out where they refer to what is not there",
        );
    }
    if let Some(artefact) = &status.artefact {
        let size = duration::bytes(artefact.size);
        let read = status.read_bytes.map(duration::bytes);
        let read = read.map(|read| format!(", {read} of it read"));
        let read = read.unwrap_or_default();
        page.field("Artefact", &format!("{}  {size}{read}", artefact.key));
    }
    if let (Some(tables), Some(rows)) = (status.tables, status.rows) {
        page.field("Restored", &format!("{tables} tables, {rows} rows"));
    }
    if let Some(now) = now(inputs) {
        page.field("Progress", &now);
    }
    if !status.phases.is_empty() {
        page.field("Took", &took(&status.phases));
    }
    for warning in &status.warnings {
        page.field("Warning", &secret::mask(warning));
    }
    let job = status.job.as_deref();
    page.field(
        "Job",
        &job.map_or_else(|| "<none>".to_owned(), |job| format!("job/{job}")),
    );
    let uid = status.job_uid.as_deref();
    chain::pods(
        &mut page,
        uid,
        &inputs.pods,
        &inputs.log,
        &inputs.events,
        inputs.zone,
    );
    page.conditions(&status.conditions, inputs.now);
    page.events(&inputs.events, inputs.now);
    if let Some(hint) = hint(inputs) {
        page.field("Hint", &hint);
    }
    page.finish()
}

/// How far it is, by the newest line of the log that says so.
fn now(inputs: &Inputs) -> Option<String> {
    if inputs.status.phase != Some(RestorePhase::Running) {
        return None;
    }
    let lines = inputs.log.as_ref().ok()?.iter().rev();
    let progress = lines.filter_map(|line| progress::parse(line)).next()?;
    Some(crate::text::sanitise(&progress.text()))
}

/// `ReadingBack 2s, Rows 12s`; what took no second is left out, unless it is the longest.
fn took(phases: &[TimedPhase]) -> String {
    let longest = phases.iter().map(|p| p.milliseconds).max();
    let told = phases
        .iter()
        .filter(|p| p.milliseconds >= 1000 || Some(p.milliseconds) == longest);
    let told = told.map(|p| {
        let time = duration::human_millis(p.milliseconds);
        format!("{} {time}", crate::text::sanitise(&p.phase))
    });
    told.collect::<Vec<_>>().join(", ")
}

fn summary(inputs: &Inputs, verdict: &Verdict) -> String {
    let phase = inputs.status.phase.map_or("Pending", RestorePhase::as_str);
    let ago = verdict
        .since
        .map(|at| format!(" {} ago", duration::age(at, inputs.now)))
        .filter(|_| inputs.status.phase.is_some())
        .unwrap_or_default();
    let why = match verdict.why.as_str() {
        "" => String::new(),
        why => format!(": {why}"),
    };
    // What has not come to its end is neither good nor bad.
    let ended = inputs.status.phase.is_none_or(RestorePhase::is_final);
    let mark = if ended || verdict.state != State::Good {
        mark(verdict.state, inputs.ascii)
    } else {
        ""
    };
    format!("{mark}{phase}{ago}{why}")
}

/// Where it comes from, and which artefact of that.
pub(crate) fn source(spec: &RestoreSpec) -> (String, String) {
    let from = &spec.from;
    if let Some(name) = &from.name {
        let which = from.run.as_ref().map(|run| format!("run/{run}"));
        let which = which.or(from.at.as_ref().map(|at| format!("as of {at}")));
        let which = which.or_else(|| from.key.clone());
        let kind = crds::restore::kind_of(from).to_lowercase();
        return (
            format!("{kind}/{name}"),
            or(&which.unwrap_or_default(), "newest"),
        );
    }
    let Some(location) = &from.location else {
        return ("<none>".to_owned(), "<none>".to_owned());
    };
    let which = location.key.clone();
    let which = which.or(location.at.as_ref().map(|at| format!("as of {at}")));
    let to = &location.destination;
    let place = match (&to.s3, &to.volume, &to.storage_ref) {
        (Some(s3), ..) => format!("s3://{}", s3.bucket),
        (_, Some(volume), _) => on_volume(volume),
        (.., Some(storage)) => format!("storage/{}", storage.name),
        _ => "<none>".to_owned(),
    };
    (place, or(&which.unwrap_or_default(), "newest"))
}

fn from(spec: &RestoreSpec) -> String {
    let (place, which) = source(spec);
    let mut text = format!("{place}, {which}");
    let from = &spec.from;
    for (what, name) in [("database", &from.database), ("storage", &from.storage)] {
        if let Some(name) = name {
            text.push_str(&format!(", {what} {name}"));
        }
    }
    text
}

fn on_volume(volume: &VolumeDestination) -> String {
    let claim = volume.persistent_volume_claim.as_ref();
    let place = claim.map_or_else(
        || "a volume".to_owned(),
        |c| format!("pvc/{}", c.claim_name),
    );
    match &volume.path {
        Some(path) => format!("{place}/{}", path.trim_matches('/')),
        None => place,
    }
}

/// What it restores into.
pub(crate) fn target(spec: &RestoreSpec) -> String {
    let to = &spec.to;
    if let Some(volume) = &to.volume {
        return on_volume(volume);
    }
    let port = to.port.map(|port| format!(":{port}")).unwrap_or_default();
    let server = match (&to.host, &to.socket) {
        (Some(host), _) => format!("{host}{port}"),
        (None, Some(socket)) => format!("socket {socket}"),
        (None, None) => "<none>".to_owned(),
    };
    match &to.database {
        Some(database) => format!("{server}/{database}"),
        None => server,
    }
}

/// One piece of advice, if there is something to do.
fn hint(inputs: &Inputs) -> Option<String> {
    let (name, status) = (&inputs.name.0, &inputs.status);
    match (status.phase, Reason::parse(&status.reason)) {
        (None, _) => Some("kubectl backup doctor".to_owned()),
        (Some(RestorePhase::Failed), Some(Reason::TargetNotEmpty | Reason::TargetIsSource)) => {
            Some(
                "restore elsewhere with --to and --database, or --to-volume, or add --overwrite"
                    .to_owned(),
            )
        }
        (Some(RestorePhase::Failed), _) => Some(format!("kubectl backup logs restore/{name}")),
        (Some(RestorePhase::Running), _) => {
            Some(format!("kubectl backup wait restore/{name} --follow"))
        }
        _ => None,
    }
}
