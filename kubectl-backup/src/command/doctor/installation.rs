//! What must be in place whatever the objects are: namespace, clocks, kinds, operator, rights.

use std::collections::BTreeMap;

use crds::verdict::State;

use crate::cluster::Cluster;
use crate::context::Context;
use crate::kind::KINDS;
use crate::rbac::{BACKUPS, NEEDS, Need};
use crate::view::report::Report;

/// A namespace that is not there makes every list below it empty, which would look well.
pub(crate) async fn namespace(cluster: &Cluster, report: &mut Report) {
    let name = &cluster.namespace;
    match cluster.has_namespace(name).await {
        Ok(true) => {}
        Ok(false) => report.add(
            State::Critical,
            format!("namespace {name:?}: not found"),
            Some("name one that is there: kubectl get namespaces"),
        ),
        Err(error) => report.failed(State::Unknown, &format!("namespace {name:?}"), &error),
    }
}

/// Both clocks should agree: requests expire by the caller's.
pub(crate) async fn clock(context: &Context, cluster: &Cluster, report: &mut Report) {
    let Ok(Some(server)) = cluster.clock().await else {
        report.add(
            State::Unknown,
            "clock: the server does not say its time",
            None,
        );
        return;
    };
    let skew = (context.now() - server).num_seconds();
    if skew.abs() > 5 {
        let remedy = "set both clocks by NTP; requests expire by the caller's clock";
        report.add(
            State::Warning,
            format!("clock: this machine is {skew}s ahead of the server"),
            Some(remedy),
        );
    } else {
        report.add(State::Good, "clock: agrees with the server's", None);
    }
}

/// The kinds that the server knows.
pub(crate) async fn kinds(cluster: &Cluster, report: &mut Report) {
    for (index, kind) in KINDS.iter().enumerate() {
        let name = format!("{} ({})", kind.kind, kind.group);
        match cluster.installed(kind).await {
            Ok(true) => report.add(State::Good, format!("kind {name}: installed"), None),
            // The others are for those who come from gobackup.
            Ok(false) if index > 0 => {
                report.add(
                    State::Unknown,
                    format!("kind {name}: not installed, not needed for MySQL"),
                    None,
                );
            }
            Ok(false) => {
                let remedy = "install the operator's resource definitions: make install";
                report.add(
                    State::Critical,
                    format!("kind {name}: not installed"),
                    Some(remedy),
                );
            }
            Err(error) => report.failed(State::Unknown, &format!("kind {name}"), &error),
        }
    }
}

/// Each Deployment of the operator: ready, of our version, watching this namespace. Gives the namespace
/// and service account of each.
pub(crate) async fn operator(cluster: &Cluster, report: &mut Report) -> Vec<(String, String)> {
    let mut accounts = vec![];
    let found = match cluster.operators().await {
        Ok(found) => found,
        Err(error) => {
            report.failed(State::Unknown, "operator", &error);
            return accounts;
        }
    };
    if found.is_empty() {
        let remedy = "deploy it: make deploy; or it runs without the label app.kubernetes.io/name=backup-operator";
        report.add(
            State::Critical,
            "operator: no Deployment in any namespace",
            Some(remedy),
        );
        return accounts;
    }
    for deployment in found {
        let namespace = deployment.metadata.namespace.clone().unwrap_or_default();
        let ready = deployment
            .status
            .as_ref()
            .and_then(|s| s.ready_replicas)
            .unwrap_or(0);
        let pod = deployment
            .spec
            .as_ref()
            .and_then(|s| s.template.spec.as_ref());
        let account = pod.and_then(|s| s.service_account_name.clone());
        accounts.push((
            namespace.clone(),
            account.unwrap_or_else(|| "default".to_owned()),
        ));
        let container = pod.and_then(|s| s.containers.first());
        let image = container.and_then(|c| c.image.clone()).unwrap_or_default();
        let watches = container
            .and_then(|c| c.env.as_ref())
            .and_then(|env| env.iter().find(|e| e.name == "WATCH_NAMESPACES"))
            .and_then(|e| e.value.clone())
            .filter(|v| !v.is_empty());
        let what = format!("operator: {namespace}, {ready} ready, image {image}");
        if ready == 0 {
            let remedy = format!("kubectl -n {namespace} describe deployment backup-operator");
            report.add(State::Critical, what, Some(&remedy));
        } else {
            report.add(State::Good, what, None);
        }
        let set = |name: &str| {
            let env = container.and_then(|c| c.env.as_ref())?;
            env.iter().find(|e| e.name == name)?.value.clone()
        };
        let own = set("WEBHOOK_CERT_DIR").is_none_or(|dir| dir.is_empty());
        if set("ENABLE_WEBHOOKS").is_some_and(|on| on != "false") && own {
            certificate(cluster, &namespace, report).await;
        }
        if let Some(list) = watches
            && !list.split(',').any(|n| n.trim() == cluster.namespace)
        {
            let remedy = "add the namespace to WATCH_NAMESPACES of the operator";
            report.add(
                State::Critical,
                format!("operator: watches {list}, not {}", cluster.namespace),
                Some(remedy),
            );
        }
        if !image.ends_with(&format!("v{}", crds::VERSION)) && image.contains("backup-operator:v") {
            report.add(
                State::Warning,
                format!("versions: plugin v{}, operator {image}", crds::VERSION),
                Some("use the same version on both sides"),
            );
        }
    }
    accounts
}

/// The Secret in which the operator keeps the webhooks' certificate. It may fill one that is there,
/// and may not make one.
async fn certificate(cluster: &Cluster, namespace: &str, report: &mut Report) {
    const SECRET: &str = "backup-operator-webhook-cert";
    match cluster.has_secret(namespace, SECRET).await {
        Ok(true) => report.add(
            State::Good,
            format!("webhooks: secret {namespace}/{SECRET} is there"),
            None,
        ),
        Ok(false) => {
            let remedy = format!(
                "kubectl -n {namespace} create secret generic {SECRET}; the operator fills it within a minute"
            );
            report.add(
                State::Critical,
                format!("webhooks: secret {namespace}/{SECRET} does not exist: no defaults, no early checks, no signed requests"),
                Some(&remedy),
            );
        }
        Err(_) => report.add(
            State::Unknown,
            format!("webhooks: secret {namespace}/{SECRET} can't be looked up (no permission to get secrets)"),
            None,
        ),
    }
}

/// Group, resource with subresource, and both as a Role is told them; of the backup kinds MysqlBackup
/// stands for all.
fn full_resource(need: &Need) -> (&'static str, &'static str, String) {
    match (need.group, need.resource) {
        (BACKUPS, _) => {
            let plural = KINDS[0].plural;
            (crds::GROUP, plural, format!("{plural}.{}", crds::GROUP))
        }
        ("", resource) => ("", resource, resource.to_owned()),
        (group, resource) => (group, resource, format!("{resource}.{group}")),
    }
}

/// Rights on one resource that are missing.
struct Lacking {
    resource: String,
    rights: Vec<&'static str>,
    /// Verbs of ours that don't work.
    verbs: Vec<&'static str>,
    /// Verbs of ours that do or show less.
    less: Vec<&'static str>,
}

impl Lacking {
    fn text(&self) -> String {
        let mut parts = vec![];
        if !self.verbs.is_empty() {
            parts.push(format!("needed by {}", self.verbs.join(", ")));
        }
        if !self.less.is_empty() {
            let verb = if self.less.len() == 1 { "does" } else { "do" };
            parts.push(format!("{} {verb} less without", self.less.join(", ")));
        }
        format!(
            "rights: you may not {} {}: {}",
            self.rights.join(", "),
            self.resource,
            parts.join("; ")
        )
    }

    /// The commands that grant it, for whoever may.
    fn remedy(&self, namespace: &str) -> String {
        let name = format!("kubectl-backup-{}", self.resource.replace(['.', '/'], "-"));
        format!(
            "kubectl -n {namespace} create role {name} --verb={} --resource={}; kubectl -n {namespace} create rolebinding {name} --role={name} --user=USER",
            self.rights.join(","),
            self.resource
        )
    }
}

/// One line a resource: which rights on it are missing, which verbs of ours need them, and what grants
/// them.
pub(crate) async fn rights(cluster: &Cluster, report: &mut Report) {
    let mut lacking: Vec<Lacking> = vec![];
    let mut asked: BTreeMap<(String, &str), bool> = BTreeMap::new();
    for need in NEEDS {
        let (group, resource, full) = full_resource(need);
        for right in need.rights.iter().copied() {
            // What many may not do for good reasons is no finding.
            if need.resource == "secrets" && right == "get" {
                continue;
            }
            let key = (full.clone(), right);
            let allowed = match asked.get(&key) {
                Some(allowed) => *allowed,
                None => match cluster.may(right, group, resource).await {
                    Ok(allowed) => allowed,
                    Err(error) => return report.failed(State::Unknown, "rights", &error),
                },
            };
            asked.insert(key, allowed);
            if allowed {
                continue;
            }
            let at = lacking.iter().position(|l| l.resource == full);
            let at = at.unwrap_or_else(|| {
                lacking.push(Lacking {
                    resource: full.clone(),
                    rights: vec![],
                    verbs: vec![],
                    less: vec![],
                });
                lacking.len() - 1
            });
            let of = &mut lacking[at];
            let who = if need.optional {
                &mut of.less
            } else {
                &mut of.verbs
            };
            for (list, word) in [(who, need.verb), (&mut of.rights, right)] {
                if !list.contains(&word) {
                    list.push(word);
                }
            }
        }
    }
    if lacking.is_empty() {
        report.add(
            State::Good,
            format!("rights: every verb is allowed in {}", cluster.namespace),
            None,
        );
    }
    for lack in lacking {
        let remedy = lack.remedy(&cluster.namespace);
        report.add(State::Warning, lack.text(), Some(&remedy));
    }
}
