//! `schedule`: words and previews, by the parser the operator uses.

use chrono::{DateTime, Utc};
use crds::schedule::Schedule;
use serde_json::json;

use crate::cli::{Calendar, Explain, Next, Preview, ScheduleVerb, StructuredOutput};
use crate::context::Context;
use crate::error::{Error, Kind as Exit, Result};
use crate::select;
use crate::text::counted;
use crate::view::calendar::{self, ScheduledObject};
use crate::view::output::structured;
use crate::view::preview;

/// Runs the verb.
///
/// # Errors
/// An expression or zone that is not valid.
pub(crate) async fn run(context: &Context, verb: &ScheduleVerb) -> Result<()> {
    match verb {
        ScheduleVerb::Explain(args) => explain(context, args),
        ScheduleVerb::Next(args) => next(context, args).await,
        ScheduleVerb::Calendar(args) => calendar(context, args).await,
    }
}

fn explain(context: &Context, args: &Explain) -> Result<()> {
    let text = args.expression.as_ref().or(args.schedule.as_ref());
    let schedule = parse(context, text.map_or("", String::as_str), &args.preview)?;
    let from = from(context, &args.preview)?;
    let slots = preview::next(&schedule, from, from, args.preview.count);
    let notes = preview::notes(&schedule, from);
    if let Some(format) = args.preview.output {
        let value = preview::explain_json(&schedule, &slots, &notes);
        return context.ui.out(&structured(&value, format));
    }
    let mut text = preview::words(&schedule) + "\n";
    text.push_str(&preview::next_text(
        &schedule,
        &slots,
        context.zone,
        context.now(),
    ));
    for note in notes {
        text.push_str(&format!("note: {note}\n"));
    }
    context.ui.out(&text)
}

async fn next(context: &Context, args: &Next) -> Result<()> {
    let from = from(context, &args.preview)?;
    let (schedule, anchor) = match &args.schedule {
        Some(text) => (parse(context, text, &args.preview)?, from),
        None if args.preview.time_zone.is_some() => {
            return Err(Error::usage(
                "--time-zone goes with --schedule: an object has its own zone; --tz says in which one times are shown",
            ));
        }
        None => {
            let cluster = context.cluster().await?;
            let object =
                select::one(context, &cluster, args.name.as_deref(), "schedule next").await?;
            if object.suspended() {
                context.ui.warn(&format!(
                    "{} is suspended; none of these runs",
                    object.full_name()
                ));
            }
            let anchor = object.status().schedule.and_then(|s| s.anchor);
            let anchor = anchor
                .as_ref()
                .map(crds::time::from_k8s)
                .or(object.created());
            (object.schedule()?, anchor.unwrap_or(from))
        }
    };
    let slots = preview::next(&schedule, from, anchor, args.preview.count);
    if slots.is_empty() {
        context
            .ui
            .note(&format!("{:?} never comes due.", schedule.text()));
    }
    match args.preview.output {
        Some(format) => context
            .ui
            .out(&structured(&preview::next_json(&slots), format)),
        None => {
            let text = preview::next_text(&schedule, &slots, context.zone, context.now());
            context.ui.out(&text)
        }
    }
}

/// What is due in the days to come, over all objects that are not suspended, day by day in one zone.
async fn calendar(context: &Context, args: &Calendar) -> Result<()> {
    let cluster = context.cluster().await?;
    let found = select::objects(
        context,
        &cluster,
        &[],
        args.all_namespaces,
        args.selector.as_deref(),
    )
    .await?;
    let due: Vec<ScheduledObject> = found
        .iter()
        .filter(|object| !object.suspended())
        .filter_map(|object| {
            Some(ScheduledObject {
                namespace: object.namespace(),
                name: object.kind.short_name(&object.name()),
                anchor: object.created().unwrap_or(context.now()),
                schedule: object.schedule().ok()?,
            })
        })
        .collect();
    let table = calendar::table(
        &due,
        args.days,
        args.all_namespaces,
        context.zone,
        context.now(),
    );
    if table.rows.is_empty() {
        context.ui.note(&format!(
            "Nothing is due in the next {}.",
            counted(args.days, "day")
        ));
    }
    context.ui.table(&table, false)
}

fn from(context: &Context, args: &Preview) -> Result<DateTime<Utc>> {
    match &args.from {
        None => Ok(context.now()),
        Some(text) => crds::time::parse_rfc3339(text).ok_or_else(|| {
            Error::usage(format!(
                "--from {text:?} is not an RFC 3339 time; write it like 2026-09-04T13:20:00+02:00"
            ))
        }),
    }
}

/// The schedule; under `-o json` a refusal is JSON on stdout.
fn parse(context: &Context, text: &str, args: &Preview) -> Result<Schedule> {
    let refusal = match Schedule::parse(text, args.time_zone.as_deref()) {
        Ok(schedule) => return Ok(schedule),
        Err(refusal) => refusal,
    };
    if let Some(format) = args.output {
        let value = json!({ "error": refusal.to_string() });
        context.ui.out(&structured(&value, format))?;
        return Err(Error::silent(Exit::Usage));
    }
    let flag = if refusal.is_time_zone() {
        format!(
            "--time-zone {:?}",
            args.time_zone.as_deref().unwrap_or_default()
        )
    } else {
        format!("schedule {text:?}")
    };
    debug_assert!(args.output != Some(StructuredOutput::Json));
    Err(Error::usage(format!("invalid {flag}: {refusal}")))
}
