//! What is said of each object.

use crds::verdict::State;

use crate::cli::Doctor;
use crate::cluster::{Cluster, Object, Query};
use crate::context::Context;
use crate::error::Result;
use crate::kind::{KINDS, Target};
use crate::presence::{self, Reference};
use crate::view::report::Report;
use crate::view::verdict::{self, words};
use crate::waiting::request::{ask, wait_for_answer};

/// The objects to look at; a line says what may not be read.
pub(crate) async fn find(cluster: &Cluster, args: &Doctor, report: &mut Report) -> Vec<Object> {
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
            report.failed(State::Critical, "objects", &error);
            return vec![];
        }
    };
    for error in &hidden {
        report.failed(State::Unknown, "objects", error);
    }
    found
}

/// Examines each object: what it refers to, how fresh its backups are, with `--probe` its database and
/// store, and what other operators have beside it.
///
/// # Errors
/// The question about consent could not be asked.
pub(crate) async fn examine(
    context: &Context,
    cluster: &Cluster,
    args: &Doctor,
    found: &[Object],
    report: &mut Report,
) -> Result<()> {
    for object in found {
        let short = object.kind.short_name(&object.name());
        let needed = presence::references(cluster, object, true).await;
        references(&short, &needed, report);
        // What is missing has its own line.
        let verdict = verdict::of(object, None, &[], context.now());
        let remedy = format!("kubectl backup describe {short}");
        let remedy = (verdict.state != State::Good).then_some(remedy.as_str());
        let said = words(&verdict, context.now());
        report.add(verdict.state, format!("{short}: {said}"), remedy);
    }
    if args.probe {
        for object in found {
            probe(context, cluster, object, report).await;
        }
    }
    crate::migration::foreign::examine(context, cluster, found, args.fix, report).await
}

/// What a run of the object needs is there. No value of a Secret is kept.
fn references(short: &str, all: &[Reference], report: &mut Report) {
    for reference in all {
        let what = &reference.what;
        if let Some(fault) = &reference.fault {
            report.add(
                State::Critical,
                format!("{short}: {what} {fault}"),
                Some(&reference.remedy),
            );
        }
        if let Some(right) = reference.hidden {
            report.add(
                State::Unknown,
                format!("{short}: {what} can't be looked up (no permission to {right})"),
                None,
            );
        }
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
        Ok(answer) => report.add(State::Good, format!("{short}: {}", answer.message), None),
        Err(error) => report.failed(
            State::Critical,
            &format!("{short}: database and store"),
            &error,
        ),
    }
}
