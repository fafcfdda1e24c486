//! What other operators run or left beside ours: what `doctor` says of it, and what `--fix`
//! removes.

use crds::verdict::State;

use crate::context::Context;
mod objects;
mod webhook_report;
mod webhooks;

use self::objects::{ForeignObject, ForeignOperator, What};
use self::webhooks::{Asks, Webhook};
use crate::cluster::{Cluster, Object};
use crate::error::{Error, Result};
use crate::text::sanitise;
use crate::view::report::Report;

/// Looks for what other operators run or left, and with `fix` removes what belongs to the objects.
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
    let mut hidden = foreign_operators(cluster, report).await;
    let hooks = webhook_report::examine(cluster, report, &mut hidden).await;
    not_looked_at(&hidden, report);
    for object in objects {
        foreign_controller(object, report);
    }
    let found = foreign_objects(cluster, objects, report).await;
    for object in &found {
        let owner = objects.iter().find(|o| o.uid() == object.owner);
        let owner = owner.map_or_else(String::new, |o| o.kind.short_name(&o.name()));
        let (verdict, why) = match object.what {
            What::LiveCronJob => (State::Critical, "still starts backups beside this operator"),
            What::CronJob => (State::Warning, "is left over, suspended"),
            What::LiveJob => (State::Warning, "of another operator has not finished"),
            What::Job => (State::Warning, "of another operator is left over"),
            What::Secret => (
                State::Warning,
                "is left over and holds credentials in plain text",
            ),
        };
        let remedy = if removable(object) {
            "kubectl backup doctor --fix"
        } else {
            "let it finish; --fix does not remove it"
        };
        report.add(
            verdict,
            format!("{owner}: {}/{} {why}", object.what.resource(), object.name),
            Some(remedy),
        );
    }
    if fix {
        remove(context, cluster, &found, &hooks, report).await?;
    }
    Ok(())
}

/// What is at work is left to end.
fn removable(object: &ForeignObject) -> bool {
    object.what != What::LiveJob
}

/// Operators that act on the same kinds: of the cluster, so only told. Returns what could not be
/// listed, with the reason.
async fn foreign_operators(cluster: &Cluster, report: &mut Report) -> Vec<(&'static str, String)> {
    let found = match objects::foreign_operators(cluster).await {
        Ok(found) => found,
        Err(why) => return vec![("deployments", why)],
    };
    for ForeignOperator { namespace, name } in found {
        let remedy = format!("kubectl -n {namespace} scale deployment/{name} --replicas=0");
        report.add(
            State::Critical,
            format!("another operator: deployment/{name} -n {namespace} acts on the same kinds"),
            Some(&remedy),
        );
    }
    vec![]
}

/// A line a reason.
fn not_looked_at(hidden: &[(&'static str, String)], report: &mut Report) {
    let mut reasons: Vec<&String> = hidden.iter().map(|(_, why)| why).collect();
    reasons.dedup();
    for reason in reasons {
        let of = hidden.iter().filter(|(_, why)| why == reason);
        let resources: Vec<&str> = of.map(|(resource, _)| *resource).collect();
        let (resources, why) = (resources.join(", "), sanitise(reason));
        report.add(
            State::Unknown,
            format!("other operators: not looked at: {resources} ({why})"),
            Some("have someone run it who may list them in all namespaces"),
        );
    }
}

/// What the operator itself has noticed.
fn foreign_controller(object: &Object, report: &mut Report) {
    let status = object.status();
    let noticed = status
        .conditions
        .iter()
        .find(|c| c.reason == crds::condition::reason::FOREIGN_CONTROLLER && c.status == "False");
    if let Some(condition) = noticed {
        report.add(
            State::Critical,
            format!(
                "{}: nothing is scheduled, another controller acts on it: {}",
                object.kind.short_name(&object.name()),
                sanitise(&condition.message)
            ),
            Some("stop the other operator, then: kubectl backup doctor --fix"),
        );
    }
}

async fn foreign_objects(
    cluster: &Cluster,
    of: &[Object],
    report: &mut Report,
) -> Vec<ForeignObject> {
    let mut namespaces: Vec<String> = of.iter().map(Object::namespace).collect();
    namespaces.sort();
    namespaces.dedup();
    let mut all = vec![];
    for namespace in namespaces {
        // What names an object of another namespace as its owner is not that object's.
        let here = of.iter().filter(|o| o.namespace() == namespace);
        let owners: Vec<String> = here.map(Object::uid).collect();
        match objects::foreign_jobs(cluster, &namespace, &owners).await {
            Ok(found) => all.extend(found),
            Err(error) => report.failed(State::Unknown, "other operators' jobs", &error),
        }
        match objects::owned_secrets(cluster, &namespace, &owners).await {
            Ok(found) => all.extend(found),
            Err(_) => report.add(
                State::Unknown,
                "other operators' secrets can't be looked up (no permission to list secrets)",
                None,
            ),
        }
    }
    all
}

/// Removes what belongs to the objects and the webhooks of the old installation, under the caller's
/// rights and with consent; says of each webhook that stays why.
async fn remove(
    context: &Context,
    cluster: &Cluster,
    found: &[ForeignObject],
    hooks: &[Webhook],
    report: &mut Report,
) -> Result<()> {
    let goes: Vec<&ForeignObject> = found.iter().filter(|l| removable(l)).collect();
    let mut silenced = vec![];
    for hook in hooks {
        match webhook_report::kept(hook) {
            None => silenced.push(hook),
            Some(why) => report.add(
                State::Unknown,
                format!("fix: {} left: {why}", webhook_report::name(hook)),
                None,
            ),
        }
    }
    if goes.is_empty() && silenced.is_empty() {
        report.add(State::Good, "fix: nothing to remove", None);
        return Ok(());
    }
    let mut acts: Vec<String> = vec![];
    let (conversions, configurations): (Vec<&Webhook>, Vec<&Webhook>) =
        silenced.iter().partition(|h| h.asks == Asks::Conversion);
    let owned = goes
        .iter()
        .map(|l| format!("{}/{}", l.what.resource(), l.name));
    let deleted: Vec<String> = owned
        .chain(configurations.into_iter().map(webhook_report::name))
        .collect();
    if !deleted.is_empty() {
        acts.push(format!("delete {}", deleted.join(", ")));
    }
    if !conversions.is_empty() {
        let names: Vec<String> = conversions.into_iter().map(webhook_report::name).collect();
        acts.push(format!("end the conversion of {}", names.join(", ")));
    }
    let text = format!("This would {}.", acts.join(" and "));
    if !context.ui.confirm(&text)? {
        return Err(Error::usage("cancelled; nothing was changed"));
    }
    for object in goes {
        let name = format!("{}/{}", object.what.resource(), object.name);
        let done = objects::remove(cluster, object).await;
        record(report, &name, "removed", done);
    }
    for hook in silenced {
        let done = webhooks::silence(cluster, hook).await;
        let what = if hook.asks == Asks::Conversion {
            "converts no more"
        } else {
            "removed"
        };
        record(report, &webhook_report::name(hook), what, done);
    }
    Ok(())
}

fn record(report: &mut Report, name: &str, what: &str, done: Result<()>) {
    match done {
        Ok(()) => report.add(State::Good, format!("fix: {name} {what}"), None),
        Err(error) => report.failed(State::Critical, &format!("fix: {name}"), &error),
    }
}
