//! `health`: one answer for a monitoring system: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN.

use std::collections::BTreeMap;
use std::fmt::Write;

use chrono::{DateTime, Utc};
use crds::verdict::{Reason, State, Verdict};
use serde_json::json;

use crate::cli::{Health, HealthOutput};
use crate::cluster::{Object, duration};
use crate::context::Context;
use crate::error::{Error, Kind as Exit, Result};
use crate::select;
use crate::view::output::structured;
use crate::view::verdict::{self, words};

/// Status for what could not be found out.
pub(crate) const UNKNOWN: u8 = 3;

/// Checks.
///
/// # Errors
/// The status of the worst object, or UNKNOWN.
pub(crate) async fn run(context: &Context, args: &Health) -> Result<()> {
    match check(context, args).await {
        Ok(State::Good) => Ok(()),
        Ok(state) => Err(Error::silent(Exit::Status(state.number()))),
        Err(error) if error.kind == Exit::BrokenPipe => Err(error),
        Err(error) => {
            unknown(context, args.output, &error)?;
            Err(Error::silent(Exit::Status(UNKNOWN)))
        }
    }
}

/// Says why nothing is known, in the format asked for.
fn unknown(context: &Context, output: HealthOutput, error: &Error) -> Result<()> {
    match output {
        HealthOutput::Nagios => {
            let message = error.message.replace('\n', " ");
            context.ui.line(&format!("UNKNOWN {message}"))
        }
        HealthOutput::Json => {
            let value = json!({ "state": "UNKNOWN", "message": error.message, "items": [] });
            context
                .ui
                .out(&structured(&value, crate::cli::StructuredOutput::Json))
        }
        // A file of gauges has no place for words.
        HealthOutput::Prom => {
            context.ui.error(error);
            Ok(())
        }
    }
}

async fn check(context: &Context, args: &Health) -> Result<State> {
    let max_age = match &args.max_age {
        Some(text) => Some(
            chrono::Duration::from_std(duration("--max-age", text)?)
                .map_err(|_| Error::usage("--max-age is too long"))?,
        ),
        None => None,
    };
    let cluster = context.cluster().await?;
    let objects = select::objects(
        context,
        &cluster,
        &args.scope.names,
        args.scope.all_namespaces,
        args.scope.selector.as_deref(),
    )
    .await?;
    if objects.is_empty() {
        // A typing error in a namespace or selector must not look healthy.
        return Err(Error::new(
            Exit::NotFound,
            match args.scope.all_namespaces {
                true => "no backup objects fit".to_owned(),
                false => format!("no backup objects fit in namespace {}", cluster.namespace),
            },
        ));
    }
    let judged: Vec<(&Object, Verdict)> = objects
        .iter()
        .map(|o| (o, verdict::of(o, max_age, &[], context.now())))
        .collect();
    let state = judged
        .iter()
        .map(|(_, f)| f.state)
        .max()
        .unwrap_or(State::Good);
    let text = match args.output {
        HealthOutput::Nagios => nagios(state, &judged, args.scope.all_namespaces, context.now()),
        HealthOutput::Prom => prometheus(&judged),
        HealthOutput::Json => json(state, &judged, context.now()),
    };
    context.ui.out(&text)?;
    Ok(state)
}

fn label(object: &Object, namespaced: bool) -> String {
    if namespaced {
        format!("{}/{}", object.namespace(), object.name())
    } else {
        object.name()
    }
}

/// The label of an object's performance data, with its kind where another kind has the same name.
fn data_label(object: &Object, judged: &[(&Object, Verdict)], namespaced: bool) -> String {
    let own = label(object, namespaced);
    let same = judged.iter().filter(|(o, _)| label(o, namespaced) == own);
    if same.count() > 1 {
        object.kind.short_name(&own)
    } else {
        own
    }
}

/// The plugin format of Nagios: a summary with performance data, then a line an object.
fn nagios(
    state: State,
    judged: &[(&Object, Verdict)],
    namespaced: bool,
    now: DateTime<Utc>,
) -> String {
    let mut counts: BTreeMap<Reason, usize> = BTreeMap::new();
    for (_, f) in judged {
        *counts.entry(f.reason).or_default() += 1;
    }
    let counts: Vec<String> = counts
        .iter()
        .map(|(reason, count)| format!("{count} {}", reason.as_str()))
        .collect();
    let counts = counts.join(", ");
    let data: Vec<String> = judged
        .iter()
        .filter_map(|(object, f)| {
            let (warning, critical) = f.limits?;
            Some(format!(
                "'{}_age'={}s;{warning};{critical}",
                data_label(object, judged, namespaced),
                f.age?
            ))
        })
        .collect();
    let mut text = format!("{} {counts}", state.as_str());
    if !data.is_empty() {
        let _ = write!(text, " | {}", data.join(" "));
    }
    text.push('\n');
    for (object, f) in judged {
        let name = object.kind.short_name(&label(object, namespaced));
        let _ = writeln!(text, "{} {name}: {}", f.state.as_str(), words(f, now));
    }
    text
}

/// Gauges in the text format of Prometheus, for a textfile collector.
fn prometheus(judged: &[(&Object, Verdict)]) -> String {
    let labels = |object: &Object| {
        format!(
            "{{kind=\"{}\",namespace=\"{}\",name=\"{}\"}}",
            object.kind.kind,
            object.namespace(),
            object.name()
        )
    };
    let mut text = String::from(
        "# HELP kubectl_backup_health 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN.\n# TYPE kubectl_backup_health gauge\n",
    );
    for (object, f) in judged {
        let _ = writeln!(
            text,
            "kubectl_backup_health{} {}",
            labels(object),
            f.state.number()
        );
    }
    text.push_str(
        "# HELP kubectl_backup_last_success_age_seconds Seconds since the newest good run.\n# TYPE kubectl_backup_last_success_age_seconds gauge\n",
    );
    for (object, f) in judged {
        if let Some(age) = f.age {
            let _ = writeln!(
                text,
                "kubectl_backup_last_success_age_seconds{} {age}",
                labels(object)
            );
        }
    }
    text
}

fn json(state: State, judged: &[(&Object, Verdict)], now: DateTime<Utc>) -> String {
    let items: Vec<_> = judged
        .iter()
        .map(|(object, f)| {
            json!({
                "kind": object.kind.kind,
                "namespace": object.namespace(),
                "name": object.name(),
                "state": f.state.as_str(),
                "reason": f.reason.as_str(),
                "message": words(f, now),
                "since": f.since.map(crds::time::rfc3339),
                "next": f.next_step(&object.kind.short_name(&object.name())),
                "ageSeconds": f.age,
                "warningSeconds": f.limits.map(|l| l.0),
                "criticalSeconds": f.limits.map(|l| l.1),
            })
        })
        .collect();
    let value = json!({ "state": state.as_str(), "items": items });
    structured(&value, crate::cli::StructuredOutput::Json)
}
