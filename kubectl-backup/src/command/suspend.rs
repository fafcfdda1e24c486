//! `suspend`: no more slots are started, with who, why and until when written on the object.

use chrono::{DateTime, Utc};
use crds::labels;
use crds::time::{parse_rfc3339, rfc3339};
use serde_json::{Map, Value};

use super::cancel;
use crate::cli::{Change, DryRun, Suspend};
use crate::cluster::{Cluster, Object, duration};
use crate::context::{Context, Tally};
use crate::error::{Error, Kind as Exit, Result};
use crate::select;
use crate::view::{preview, time::zone_or_utc};

/// Suspends.
///
/// # Errors
/// The first failure; the others are suspended all the same.
pub(crate) async fn run(context: &Context, args: &Suspend) -> Result<()> {
    let until = until(context, args)?;
    let cluster = context.cluster().await?;
    let mut tally = Tally::default();
    for object in select::many(context, &cluster, &args.targets, "suspend").await? {
        let outcome = match object {
            Ok(object) => one(context, &cluster, args, &object, until).await,
            Err(error) => Err(error),
        };
        tally.add(context, outcome)?;
    }
    tally.end(&args.change)
}

/// When the suspension ends by itself.
fn until(context: &Context, args: &Suspend) -> Result<Option<DateTime<Utc>>> {
    let now = context.now();
    let until = match (&args.for_, &args.until) {
        (Some(text), _) => {
            let length = chrono::Duration::from_std(duration("--for", text)?)
                .map_err(|_| Error::usage(format!("--for {text:?} is too long")))?;
            Some(now + length)
        }
        (None, Some(text)) => Some(parse_rfc3339(text).ok_or_else(|| {
            Error::usage(format!(
                "--until {text:?} is not an RFC 3339 time; write it like 2026-09-04T13:20:00+02:00"
            ))
        })?),
        (None, None) => None,
    };
    if until.is_some_and(|until| until <= now) {
        return Err(Error::usage("the end of the suspension lies in the past"));
    }
    Ok(until)
}

async fn one(
    context: &Context,
    cluster: &Cluster,
    args: &Suspend,
    object: &Object,
    until: Option<DateTime<Utc>>,
) -> Result<bool> {
    if object.suspended() && until.is_none() && args.reason.is_none() {
        context.changed(
            object,
            &format!("unchanged ({})", already(object)),
            &args.change,
        )?;
        return Ok(false);
    }
    let patch = patch(object, cluster, args, until, context.now());
    let changed = apply(cluster, object, &patch, &args.change).await?;
    let zone = object
        .status()
        .schedule
        .map(|s| zone_or_utc(&s.time_zone))
        .unwrap_or_default();
    let mut what = "suspended".to_owned();
    if let Some(until) = until {
        let missed = slots(object, context.now(), until);
        what.push_str(&format!(" until {}", context.zone.show(until, zone)));
        if let Some(missed) = missed {
            what.push_str(&format!(" (skips {missed} runs)"));
        }
    }
    context.changed(&changed, &what, &args.change)?;
    warn_owner(context, object, "suspend");
    if args.cancel_running && args.change.dry_run == DryRun::None {
        for run in object.status().runs.iter().filter(|r| !r.result.is_final()) {
            cancel::request(context, cluster, object, run, args.reason.as_deref()).await?;
            context.ui.line(&format!(
                "{} run/{} cancel requested",
                object.full_name(),
                run.name
            ))?;
        }
    }
    Ok(true)
}

/// How it came to be suspended.
fn already(object: &Object) -> String {
    let mut text = "already suspended".to_owned();
    if let Some(by) = object.annotation(labels::SUSPENDED_BY) {
        text.push_str(&format!(" by {by}"));
    }
    if let Some(why) = object.annotation(labels::SUSPEND_REASON) {
        text.push_str(&format!(": {why:?}"));
    }
    text
}

/// The patch that suspends, without reason or end.
pub(crate) fn plain_patch(object: &Object, cluster: &Cluster, now: DateTime<Utc>) -> Value {
    let mut notes = Map::new();
    notes.insert(labels::SUSPENDED_BY.to_owned(), cluster.user.clone().into());
    notes.insert(labels::SUSPENDED_SINCE.to_owned(), rfc3339(now).into());
    object.suspend_patch(true, notes)
}

/// The fields to change, and nothing else.
fn patch(
    object: &Object,
    cluster: &Cluster,
    args: &Suspend,
    until: Option<DateTime<Utc>>,
    now: DateTime<Utc>,
) -> Value {
    let mut notes = Map::new();
    let mut note = |key: &str, value: Value| {
        notes.insert(key.to_owned(), value);
    };
    // What is not given stays as it was said when the suspension began.
    let begins = !object.suspended();
    if begins || args.reason.is_some() {
        note(
            labels::SUSPEND_REASON,
            args.reason.clone().map_or(Value::Null, Value::from),
        );
    }
    if begins || until.is_some() {
        note(
            labels::RESUME_AT,
            until.map_or(Value::Null, |at| rfc3339(at).into()),
        );
    }
    if begins {
        note(labels::SUSPENDED_BY, cluster.user.clone().into());
        note(labels::SUSPENDED_SINCE, rfc3339(now).into());
    }
    object.suspend_patch(true, notes)
}

/// Sends a patch, unless only the client is to act.
///
/// # Errors
/// What the server refused.
pub(crate) async fn apply(
    cluster: &Cluster,
    object: &Object,
    patch: &Value,
    change: &Change,
) -> Result<Object> {
    match change.dry_run {
        DryRun::Client => Ok(object.clone()),
        mode => {
            let server = mode == DryRun::Server;
            cluster
                .merge_patch(object, patch, &change.field_manager, server)
                .await
        }
    }
}

/// Slots of the object in an interval.
fn slots(object: &Object, from: DateTime<Utc>, to: DateTime<Utc>) -> Option<i64> {
    let schedule = schedule_of(object).ok()?;
    let anchor = object.created().unwrap_or(from);
    Some(schedule.count_in(from, to, anchor).count)
}

/// The object's schedule.
///
/// # Errors
/// It has none, or one that does not parse.
pub(crate) fn schedule_of(object: &Object) -> Result<crds::schedule::Schedule> {
    let status = object.status().schedule.unwrap_or_default();
    let spec = object.spec();
    let written = spec["schedule"]
        .as_str()
        .or(spec["schedule"]["cron"].as_str());
    let text = written.unwrap_or(&status.text);
    if text.is_empty() {
        return Err(Error::new(
            Exit::Other,
            format!("{} has no schedule", object.full_name()),
        ));
    }
    let named = spec["timeZone"].as_str();
    let observed = (!status.time_zone.is_empty()).then_some(status.time_zone.as_str());
    crds::schedule::Schedule::parse(text, named.or(observed))
        .map_err(|e| Error::new(Exit::Other, format!("{}: {e}", object.full_name())))
}

/// The next slot in words, for the line that says what resuming brings.
pub(crate) fn next_run(context: &Context, object: &Object) -> String {
    let now = context.now();
    let Ok(schedule) = schedule_of(object) else {
        return "no next run".to_owned();
    };
    match preview::next(&schedule, now, object.created().unwrap_or(now), 1).first() {
        Some(at) => format!(
            "next run {} ({})",
            context.zone.show(*at, schedule.zone()),
            crate::view::duration::until(*at, now)
        ),
        None => "no run comes".to_owned(),
    }
}

/// Says who else writes `spec.suspend`: a GitOps tool takes a change back.
pub(crate) fn warn_owner(context: &Context, object: &Object, verb: &str) {
    if let Some(manager) = owner(object) {
        context.ui.warn(&format!(
            "spec.suspend of {} is owned by {manager}; it will be reverted at its next sync. To {verb} it for good, change it there",
            object.name()
        ));
    }
}

/// The field manager of `spec.suspend` that is no person's tool.
fn owner(object: &Object) -> Option<String> {
    const TOOLS: [&str; 4] = ["argocd", "flux", "kustomize-controller", "helm"];
    let managers = object.object.metadata.managed_fields.as_ref()?;
    let owned = managers.iter().find(|entry| {
        let manager = entry
            .manager
            .as_deref()
            .unwrap_or_default()
            .to_ascii_lowercase();
        let field = entry
            .fields_v1
            .as_ref()
            .map(|f| &f.0["f:spec"]["f:suspend"]);
        TOOLS.iter().any(|tool| manager.contains(tool)) && field.is_some_and(Value::is_object)
    });
    owned.and_then(|entry| entry.manager.clone())
}
