//! `suspend`: no more slots are started, with who, why and until when written on the object.

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use crds::labels;
use crds::time::rfc3339;
use serde_json::{Map, Value};

use crate::build::moment::moment;
use crate::change::{Tally, apply, warn_owner};
use crate::cli::{DryRun, Suspend};
use crate::cluster::{Cluster, Object, duration};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::select;
use crate::text::counted;
use crate::view::time::{Zone, zone_or_utc};
use crate::waiting::request::ask_to_cancel;

/// Suspends.
///
/// # Errors
/// The first failure; the others are suspended all the same.
pub(crate) async fn run(context: &Context, args: &Suspend) -> Result<()> {
    let cluster = context.cluster().await?;
    let mut tally = Tally::default();
    let objects = select::many(
        context,
        &cluster,
        &args.targets,
        "suspend",
        Some(&args.change),
    )
    .await?;
    // A time that can't be read for one is refused before any is suspended.
    let mut found = vec![];
    for object in objects {
        found.push(match object {
            Ok(object) => {
                let until = until(context, args, &object)?;
                Ok((object, until))
            }
            Err(error) => Err(error),
        });
    }
    for object in found {
        let outcome = match object {
            Ok((object, until)) => one(context, &cluster, args, &object, until).await,
            Err(error) => Err(error),
        };
        tally.add(context, outcome)?;
    }
    tally.end(args.unchanged)
}

/// The zone of the object's schedule.
fn zone_of(object: &Object) -> Tz {
    let schedule = object.status().schedule;
    schedule
        .map(|s| zone_or_utc(&s.time_zone))
        .unwrap_or_default()
}

/// When the suspension ends by itself. A time without an offset is one of the zone in which it is shown.
fn until(context: &Context, args: &Suspend, object: &Object) -> Result<Option<DateTime<Utc>>> {
    let now = context.now();
    let until = match (&args.for_, &args.until) {
        (Some(text), _) => {
            let length = chrono::Duration::from_std(duration("--for", text)?)
                .map_err(|_| Error::usage(format!("--for {text:?} is too long")))?;
            Some(now + length)
        }
        (None, Some(text)) => {
            let read = match context.zone {
                Zone::Schedule => moment(text, &zone_of(object), now),
                Zone::Utc => moment(text, &Utc, now),
                Zone::Local => moment(text, &chrono::Local, now),
                Zone::Named(zone) => moment(text, &zone, now),
            };
            Some(read.map_err(|why| Error::usage(format!("--until {text:?} {why}")))?)
        }
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
    let changed = apply(cluster, object, &patch, &args.change, &args.writer).await?;
    let zone = zone_of(object);
    let mut what = "suspended".to_owned();
    if let Some(until) = until {
        let missed = slots(object, context.now(), until);
        what.push_str(&format!(" until {}", context.zone.show(until, zone)));
        if let Some(missed) = missed {
            what.push_str(&format!(" (skips {})", counted(missed, "run")));
        }
    }
    context.changed(&changed, &what, &args.change)?;
    warn_owner(context, object, "suspend");
    if args.cancel_running && args.change.dry_run == DryRun::None {
        for run in object.status().runs.iter().filter(|r| !r.result.is_final()) {
            ask_to_cancel(context, cluster, object, run, args.reason.as_deref()).await?;
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

/// Slots of the object in an interval.
fn slots(object: &Object, from: DateTime<Utc>, to: DateTime<Utc>) -> Option<i64> {
    let schedule = object.schedule().ok()?;
    let anchor = object.created().unwrap_or(from);
    Some(schedule.count_in(from, to, anchor).count)
}
