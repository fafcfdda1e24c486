//! Does the operator work: its Lease, what it may do, and whether it answers.

use std::time::Duration;

use chrono::{DateTime, Utc};
use crds::request::{Action, Options};
use crds::time::from_micro;
use crds::verdict::State;
use futures::future::join_all;
use k8s_openapi::api::coordination::v1::Lease;

use crate::cluster::{Cluster, Object};
use crate::context::Context;
use crate::error::Kind as Exit;
use crate::rbac::OPERATOR_NEEDS;
use crate::view::duration::human;
use crate::view::report::Report;
use crate::waiting::request::{ask, wait_for_answer};

/// How long the operator may take to answer: it looks at an object within a second.
const ANSWER: Duration = Duration::from_secs(10);
/// Name of the Lease unless an object names another.
const LEASE: &str = "backup-operator";
/// Seconds after which a Lease is free, where it does not say so.
const LEASE_SECONDS: i64 = 15;
/// How often the Lease is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// Asks the operator of the objects, and looks at it from outside meanwhile.
pub(super) async fn examine(
    context: &Context,
    cluster: &Cluster,
    objects: &[Object],
    namespaces: &[(String, String)],
    report: &mut Report,
) {
    let leases = leases(objects, namespaces);
    let looks = join_all(leases.iter().map(|(namespace, name)| {
        let what = format!("operator: lease {namespace}/{name}");
        async move { (lease(context, cluster, namespace, name).await, what) }
    }));
    let (answer, looks) = tokio::join!(echo(context, cluster, objects, namespaces), looks);
    for ((state, said, remedy), what) in looks {
        report.add(state, format!("{what}{said}"), remedy.as_deref());
    }
    for (namespace, account) in namespaces {
        rights(cluster, namespace, account, report).await;
    }
    let (state, said, remedy) = answer;
    report.add(state, format!("operator: {said}"), remedy.as_deref());
}

/// A state, its words and a remedy.
type Found = (State, String, Option<String>);

/// The Leases of the installations that act on the objects; without any, the usual one beside each
/// Deployment.
fn leases(objects: &[Object], namespaces: &[(String, String)]) -> Vec<(String, String)> {
    let claims = objects.iter().filter_map(|o| o.status().controller);
    let mut leases: Vec<(String, String)> = claims
        .filter_map(|claim| {
            let (namespace, name) = claim.split_once('/')?;
            Some((namespace.to_owned(), name.to_owned()))
        })
        .collect();
    if leases.is_empty() {
        leases.extend(
            namespaces
                .iter()
                .map(|(ns, _)| (ns.clone(), LEASE.to_owned())),
        );
    }
    leases.sort();
    leases.dedup();
    leases
}

/// Who holds it, and whether it is renewed while it is watched.
async fn lease(context: &Context, cluster: &Cluster, namespace: &str, name: &str) -> Found {
    let log = format!("kubectl -n {namespace} logs deployment/backup-operator");
    let first = match cluster.lease(namespace, name).await {
        Ok(Some(lease)) => lease,
        Ok(None) => {
            let said = " does not exist: no operator leads".to_owned();
            return (State::Critical, said, Some(log));
        }
        Err(error) if error.kind == Exit::Denied => {
            let said = " can't be looked at (no permission to get leases)".to_owned();
            return (State::Unknown, said, None);
        }
        Err(error) => {
            let said = format!(": {}", error.message.lines().next().unwrap_or_default());
            return (State::Unknown, said, error.hint);
        }
    };
    let Some(holder) = holder(&first) else {
        let said = " is held by nobody: no operator leads".to_owned();
        return (State::Critical, said, Some(log));
    };
    let seconds = spec(&first).and_then(|s| s.lease_duration_seconds);
    let lasts = seconds.map_or(LEASE_SECONDS, i64::from).max(1);
    let age = renewed(&first).map(|at| (context.now() - at).num_seconds());
    let since = age.map(|age| format!(" for {}", human(age)));
    let dead = format!(
        " is held by {holder} and was not renewed{}: no operator leads",
        since.unwrap_or_default()
    );
    // One that stands still for so long is not worth the wait.
    if age.is_none_or(|age| age > 4 * lasts) {
        return (State::Critical, dead, Some(log));
    }
    let end = tokio::time::Instant::now() + Duration::from_secs(lasts.unsigned_abs());
    while tokio::time::Instant::now() < end {
        tokio::time::sleep(LOOK).await;
        match cluster.lease(namespace, name).await {
            Ok(Some(now)) if renewed(&now) != renewed(&first) => {
                let said = format!(" is held by {holder}, and is renewed");
                return (State::Good, said, None);
            }
            // One look that fails is no evidence.
            Ok(_) | Err(_) => {}
        }
    }
    (State::Critical, dead, Some(log))
}

fn spec(lease: &Lease) -> Option<&k8s_openapi::api::coordination::v1::LeaseSpec> {
    lease.spec.as_ref()
}

fn holder(lease: &Lease) -> Option<String> {
    let holder = spec(lease)?.holder_identity.clone()?;
    (!holder.is_empty()).then_some(holder)
}

fn renewed(lease: &Lease) -> Option<DateTime<Utc>> {
    spec(lease)?.renew_time.as_ref().map(from_micro)
}

/// Asks the operator for an answer on one object, which changes nothing else.
async fn echo(
    context: &Context,
    cluster: &Cluster,
    objects: &[Object],
    namespaces: &[(String, String)],
) -> Found {
    let Some(object) = objects.first() else {
        let said = "not asked: there is no object here to ask it by".to_owned();
        return (State::Unknown, said, None);
    };
    let name = object.kind.short_name(&object.name());
    let id = match ask(context, cluster, object, Action::Echo, Options::default()).await {
        Ok(id) => id,
        Err(error) if error.kind == Exit::Denied => {
            let plural = object.kind.plural;
            let said = format!("not asked: you may not patch {plural}");
            return (State::Unknown, said, None);
        }
        Err(error) => {
            let said = format!(
                "not asked: {}",
                error.message.lines().next().unwrap_or_default()
            );
            return (State::Unknown, said, error.hint);
        }
    };
    match wait_for_answer(context, cluster, object, &id, ANSWER).await {
        Err(error) if matches!(error.kind, Exit::NotInstalled | Exit::Timeout) => {
            let said = format!(
                "does not answer: nothing came within {}s of what {name} asked it",
                ANSWER.as_secs()
            );
            let remedy = match namespaces.first() {
                Some((ns, _)) => format!("kubectl -n {ns} logs deployment/backup-operator"),
                None => "see whether one runs: kubectl backup version".to_owned(),
            };
            (State::Critical, said, Some(remedy))
        }
        Err(error) if !matches!(error.kind, Exit::RunFailed | Exit::Other) => (
            State::Unknown,
            format!("not heard: {}", error.message),
            error.hint,
        ),
        // A refusal is an answer too.
        Ok(_) | Err(_) => (State::Good, format!("answers what {name} asks it"), None),
    }
}

/// What the operator's service account may not do in this namespace.
async fn rights(cluster: &Cluster, namespace: &str, account: &str, report: &mut Report) {
    let user = format!("system:serviceaccount:{namespace}:{account}");
    let answers = join_all(OPERATOR_NEEDS.iter().map(|(verb, group, resource)| {
        let user = &user;
        async move {
            (
                cluster.may_user(user, verb, group, resource).await,
                verb,
                resource,
            )
        }
    }))
    .await;
    let mut lacks = vec![];
    for (answer, verb, resource) in answers {
        match answer {
            Ok(true) => {}
            Ok(false) => lacks.push(format!("{verb} {resource}")),
            Err(error) => {
                let why = match error.kind {
                    Exit::Denied => "no permission to create subjectaccessreviews".to_owned(),
                    _ => error.message.lines().next().unwrap_or_default().to_owned(),
                };
                let said = format!("operator: what {user} may do can't be looked up ({why})");
                return report.add(State::Unknown, said, None);
            }
        }
    }
    if lacks.is_empty() {
        let said = format!(
            "operator: {user} may do in {} what it needs",
            cluster.namespace
        );
        return report.add(State::Good, said, None);
    }
    let remedy = "apply the operator's ClusterRole and ClusterRoleBinding again: make deploy, or kubectl apply -f deploy/operator/role.yaml";
    report.add(
        State::Critical,
        format!(
            "operator: {user} may not {} in {}",
            lacks.join(", "),
            cluster.namespace
        ),
        Some(remedy),
    );
}
