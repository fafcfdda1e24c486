//! What is said of each object.

use crate::cli::Doctor;
use crate::cluster::{Cluster, Object, Query};
use crate::context::Context;
use crate::error::Result;
use crate::kind::{KINDS, Target};
use crate::text::sanitise;
use crate::view::freshness::{self, State};
use crate::view::report::{Report, Verdict};
use crate::waiting::request::{ask, wait_for_answer};

/// Examines each object: its Secrets, how fresh its backups are, with `--probe` its database and
/// store, and what other operators have beside it.
///
/// # Errors
/// The question about consent could not be asked.
pub(crate) async fn examine(
    context: &Context,
    cluster: &Cluster,
    args: &Doctor,
    report: &mut Report,
) -> Result<()> {
    let found = match &args.name {
        Some(name) => match Target::parse(name) {
            Ok(target) => cluster
                .find(&target)
                .await
                .map(|object| (vec![object], vec![])),
            Err(error) => Err(error),
        },
        None => {
            let query = Query {
                namespace: Some(cluster.namespace.clone()),
                chunk: 500,
                ..Query::default()
            };
            cluster.readable_objects(&KINDS, &query).await
        }
    };
    let (found, hidden) = match found {
        Ok(found) => found,
        Err(error) => {
            report.failed(Verdict::Bad, "objects", &error);
            return Ok(());
        }
    };
    for error in &hidden {
        report.failed(Verdict::Open, "objects", error);
    }
    for object in &found {
        secrets(cluster, object, report).await;
        let fresh = freshness::of(object, None, context.now());
        let verdict = match fresh.state {
            State::Ok => Verdict::Good,
            State::Warning => Verdict::Attention,
            State::Critical => Verdict::Bad,
        };
        let short = object.kind.short_name(&object.name());
        let remedy = format!("kubectl backup describe {short}");
        let remedy = (verdict != Verdict::Good).then_some(remedy.as_str());
        report.add(
            verdict,
            format!("{short}: {}", sanitise(&fresh.why)),
            remedy,
        );
    }
    if args.probe {
        for object in &found {
            probe(context, cluster, object, report).await;
        }
    }
    crate::migration::foreign::examine(context, cluster, &found, args.fix, report).await
}

/// Secrets the object names exist. Their content is not read.
async fn secrets(cluster: &Cluster, object: &Object, report: &mut Report) {
    let mut names = vec![];
    secret_names(object.spec(), &mut names);
    names.sort();
    names.dedup();
    for name in names {
        let short = object.kind.short_name(&object.name());
        match cluster.has_secret(&object.namespace(), &name).await {
            Ok(true) => {}
            Ok(false) => {
                let remedy = format!(
                    "kubectl -n {} create secret generic {name} …",
                    object.namespace()
                );
                report.add(
                    Verdict::Bad,
                    format!("{short}: secret {name} does not exist"),
                    Some(&remedy),
                );
            }
            Err(_) => report.add(
                Verdict::Open,
                format!("{short}: secret {name} can't be looked up (no permission to get secrets)"),
                None,
            ),
        }
    }
}

/// Names in every `…SecretRef`, `…SecretKeyRef` and `secretKeyRef` below a value.
fn secret_names(value: &serde_json::Value, names: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(fields) => {
            for (key, inner) in fields {
                let lower = key.to_ascii_lowercase();
                let optional = inner["optional"] == true;
                if (lower.ends_with("secretref") || lower.ends_with("secretkeyref")) && !optional {
                    names.extend(inner["name"].as_str().map(str::to_owned));
                }
                secret_names(inner, names);
            }
        }
        serde_json::Value::Array(items) => {
            for item in items {
                secret_names(item, names);
            }
        }
        _ => {}
    }
}

/// Logs in to database and store from a pod, by the operator.
async fn probe(context: &Context, cluster: &Cluster, object: &Object, report: &mut Report) {
    let short = object.kind.short_name(&object.name());
    let answer = match ask(
        context,
        cluster,
        object,
        crds::request::Action::Probe,
        crds::request::Options::default(),
    )
    .await
    {
        Ok(id) => {
            wait_for_answer(
                context,
                cluster,
                object,
                &id,
                std::time::Duration::from_secs(180),
            )
            .await
        }
        Err(error) => Err(error),
    };
    match answer {
        Ok(answer) => report.add(Verdict::Good, format!("{short}: {}", answer.message), None),
        Err(error) => report.failed(
            Verdict::Bad,
            &format!("{short}: database and store"),
            &error,
        ),
    }
}
