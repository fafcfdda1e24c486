//! What `doctor` says about other operators at the same objects, and what `--fix` takes away.

use super::Context;
use crate::cluster::{Cluster, Leftover, Object, What};
use crate::error::{Error, Result};
use crate::view::report::{Report, Verdict};
use crate::view::table::sanitise;

/// Looks for what others left, and with `fix` removes what belongs to the objects.
///
/// # Errors
/// The question about consent could not be asked.
pub(crate) async fn examine(
    context: &Context,
    cluster: &Cluster,
    objects: &[Object],
    fix: bool,
    report: &mut Report,
) -> Result<()> {
    strangers(cluster, report).await;
    for object in objects {
        foreign(object, report);
    }
    let found = found(cluster, objects, report).await;
    for leftover in &found {
        let owner = objects.iter().find(|o| o.uid() == leftover.owner);
        let owner = owner.map_or_else(String::new, |o| o.kind.short_name(&o.name()));
        let (verdict, why) = match leftover.what {
            What::LiveCronJob => (Verdict::Bad, "still starts backups beside this operator"),
            What::CronJob => (Verdict::Attention, "is left over, suspended"),
            What::LiveJob => (Verdict::Attention, "of another operator has not finished"),
            What::Job => (Verdict::Attention, "of another operator is left over"),
            What::Secret => (
                Verdict::Attention,
                "is left over and holds credentials in plain text",
            ),
        };
        let remedy = if removable(leftover) {
            "kubectl backup doctor --fix"
        } else {
            "let it end; it is not touched"
        };
        report.add(
            verdict,
            format!(
                "{owner}: {}/{} {why}",
                leftover.what.resource(),
                leftover.name
            ),
            Some(remedy),
        );
    }
    if fix {
        remove(context, cluster, &found, report).await?;
    }
    Ok(())
}

/// What is at work is left to end.
fn removable(leftover: &Leftover) -> bool {
    leftover.what != What::LiveJob
}

/// Operators and webhooks that speak for the same kinds: of the cluster, so only told.
async fn strangers(cluster: &Cluster, report: &mut Report) {
    for stranger in cluster.strangers().await {
        let at = stranger
            .namespace
            .as_ref()
            .map(|n| format!(" -n {n}"))
            .unwrap_or_default();
        let name = format!("{}/{}", stranger.resource, stranger.name);
        if stranger.resource == "deployment" {
            let remedy = format!("kubectl{at} scale {name} --replicas=0");
            report.add(
                Verdict::Bad,
                format!("another operator: {name}{at} acts on the same kinds"),
                Some(&remedy),
            );
        } else {
            let remedy = format!("kubectl delete {} {}", stranger.resource, stranger.name);
            report.add(
                Verdict::Attention,
                format!("webhook: {name} of another operator judges the same kinds"),
                Some(&remedy),
            );
        }
    }
}

/// What the operator itself has noticed.
fn foreign(object: &Object, report: &mut Report) {
    let status = object.status();
    let noticed = status
        .conditions
        .iter()
        .find(|c| c.reason == crds::condition::reason::FOREIGN_CONTROLLER && c.status == "False");
    if let Some(condition) = noticed {
        report.add(
            Verdict::Bad,
            format!(
                "{}: nothing is scheduled, another controller is at work: {}",
                object.kind.short_name(&object.name()),
                sanitise(&condition.message)
            ),
            Some("stop the other operator, then: kubectl backup doctor --fix"),
        );
    }
}

async fn found(cluster: &Cluster, objects: &[Object], report: &mut Report) -> Vec<Leftover> {
    let mut namespaces: Vec<String> = objects.iter().map(Object::namespace).collect();
    namespaces.sort();
    namespaces.dedup();
    let owners: Vec<String> = objects.iter().map(Object::uid).collect();
    let mut all = vec![];
    for namespace in namespaces {
        match cluster.foreign_jobs(&namespace, &owners).await {
            Ok(found) => all.extend(found),
            Err(error) => report.failed(Verdict::Open, "other operators' jobs", &error),
        }
        match cluster.owned_secrets(&namespace, &owners).await {
            Ok(found) => all.extend(found),
            Err(_) => report.add(
                Verdict::Open,
                "other operators' secrets can't be looked up (no permission to list secrets)",
                None,
            ),
        }
    }
    all
}

/// Removes what belongs to the objects, under the caller's rights and with consent.
async fn remove(
    context: &Context,
    cluster: &Cluster,
    found: &[Leftover],
    report: &mut Report,
) -> Result<()> {
    let goes: Vec<&Leftover> = found.iter().filter(|l| removable(l)).collect();
    if goes.is_empty() {
        report.add(Verdict::Good, "fix: nothing to remove", None);
        return Ok(());
    }
    let names: Vec<String> = goes
        .iter()
        .map(|l| format!("{}/{}", l.what.resource(), l.name))
        .collect();
    let text = format!("This would delete {}.", names.join(", "));
    if !context.ui.confirm(&text)? {
        return Err(Error::usage("cancelled; nothing was changed"));
    }
    for leftover in goes {
        let name = format!("{}/{}", leftover.what.resource(), leftover.name);
        match cluster.remove(leftover).await {
            Ok(()) => report.add(Verdict::Good, format!("fix: {name} removed"), None),
            Err(error) => report.failed(Verdict::Bad, &format!("fix: {name}"), &error),
        }
    }
    Ok(())
}
