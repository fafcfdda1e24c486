//! Webhooks that other operators left in front of our kinds. No object owns them: what they are is
//! read off their names, paths and services.

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, RuleWithOperations, ValidatingWebhookConfiguration,
    WebhookClientConfig,
};
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, Preconditions};
use serde_json::json;

use super::objects::reason;
use crate::cluster::{Call, Cluster};
use crate::error::Result;

/// Groups of the kinds that this product serves.
const GROUPS: [&str; 4] = [
    crds::GROUP,
    "gobackup.io",
    "database.gobackup.io",
    "storage.gobackup.io",
];

/// Definitions that an older installation may have sent to a conversion webhook.
const DEFINITIONS: [&str; 5] = [
    "mysqlbackups.batch.isekiro.com",
    "backups.gobackup.io",
    "cronbackups.gobackup.io",
    "databases.gobackup.io",
    "storages.gobackup.io",
];

/// What asks the webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asks {
    /// A ValidatingWebhookConfiguration.
    Validating,
    /// A MutatingWebhookConfiguration.
    Mutating,
    /// The conversion of a CustomResourceDefinition.
    Conversion,
}

impl Asks {
    /// The resource, as kubectl names it.
    pub(crate) fn resource(self) -> &'static str {
        match self {
            Self::Validating => "validatingwebhookconfiguration",
            Self::Mutating => "mutatingwebhookconfiguration",
            Self::Conversion => "customresourcedefinition",
        }
    }
}

/// Whether somebody is there to answer a webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Its Service has a pod that is ready.
    Ready(String),
    /// Its Service has no pod that is ready.
    NoPod(String),
    /// Its Service does not exist.
    NoService(String),
    /// Not known: an address outside the cluster, or no permission to look.
    Unknown(String),
}

/// A webhook configuration, or definition with conversion, of another installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Webhook {
    /// What asks.
    pub(crate) asks: Asks,
    /// Name of the configuration or definition.
    pub(crate) name: String,
    /// What of ours it is asked about, such as `mysqlbackups.batch.isekiro.com`.
    pub(crate) about: Vec<String>,
    /// Without an answer the request is refused: failurePolicy Fail, which is the default; for a
    /// conversion, that more than one version is served.
    pub(crate) fails: bool,
    /// Who answers.
    pub(crate) answer: Answer,
    /// Why it may belong to something else than the original MysqlBackup operator.
    pub(crate) doubt: Option<&'static str>,
    /// It is about other kinds too.
    pub(crate) mixed: bool,
    /// Positions and names of the webhooks in it that are about our kinds alone.
    pub(crate) among: Vec<(usize, String)>,
    uid: Option<String>,
    version: Option<String>,
}

/// What could be found, and what could not be looked at.
#[derive(Debug, Default)]
pub(crate) struct Webhooks {
    /// In the order validating, mutating, conversion.
    pub(crate) found: Vec<Webhook>,
    /// Resources that could not be listed, with the reason.
    pub(crate) hidden: Vec<(&'static str, String)>,
}

/// One webhook of a configuration, whichever of the two kinds.
struct Hook {
    name: String,
    rules: Vec<RuleWithOperations>,
    client: WebhookClientConfig,
    fails: bool,
}

impl Hook {
    fn of(
        name: String,
        rules: Option<Vec<RuleWithOperations>>,
        client: WebhookClientConfig,
        policy: Option<String>,
    ) -> Self {
        Self {
            name,
            rules: rules.unwrap_or_default(),
            client,
            fails: policy.as_deref() != Some("Ignore"),
        }
    }

    fn is_ours(rule: &RuleWithOperations) -> bool {
        let groups = rule.api_groups.as_deref().unwrap_or_default();
        groups.iter().any(|g| GROUPS.contains(&g.as_str()))
    }

    fn names_ours(&self) -> bool {
        self.rules.iter().any(Self::is_ours)
    }

    fn is_ours_alone(&self) -> bool {
        let groups = |r: &RuleWithOperations| r.api_groups.clone().unwrap_or_default();
        let mut all = self.rules.iter().flat_map(groups);
        self.names_ours() && all.all(|g| GROUPS.contains(&g.as_str()))
    }

    fn about(&self) -> Vec<String> {
        let ours = self.rules.iter().filter(|r| Self::is_ours(r));
        let mut about = vec![];
        for rule in ours {
            for group in rule.api_groups.iter().flatten() {
                let resources = rule.resources.iter().flatten();
                about.extend(resources.map(|r| format!("{r}.{group}")));
            }
        }
        about
    }

    /// As `controller-gen` and the configuration of kubebuilder name it for MysqlBackup.
    fn is_generated(&self, asks: Asks) -> bool {
        let letter = if asks == Asks::Validating { 'v' } else { 'm' };
        let names = [
            format!("{letter}mysqlbackup.kb.io"),
            format!("{letter}mysqlbackup-v1.kb.io"),
        ];
        let verb = if asks == Asks::Validating {
            "validate"
        } else {
            "mutate"
        };
        let path = format!("/{verb}-batch-isekiro-com-v1-mysqlbackup");
        let service = self.client.service.as_ref();
        names.contains(&self.name)
            && service.is_some_and(|s| s.path.as_deref() == Some(&path) && is_generated(&s.name))
    }
}

/// `webhook-service`, with the prefix that kustomize puts before it.
fn is_generated(service: &str) -> bool {
    service == "webhook-service" || service.ends_with("-webhook-service")
}

/// Ours carries its label in each way of installing it, and its name.
fn is_our_own(metadata: &ObjectMeta) -> bool {
    let labels = metadata.labels.as_ref();
    let part = labels.and_then(|l| l.get("app.kubernetes.io/part-of"));
    part.is_some_and(|p| p == crds::labels::PLUGIN_MANAGER)
        || metadata.name.as_deref() == Some(crds::labels::MANAGER)
}

/// A configuration with webhooks for our kinds; who answers is looked up later.
fn configuration(asks: Asks, metadata: &ObjectMeta, hooks: &[Hook]) -> Option<(Webhook, Client)> {
    let ours: Vec<&Hook> = hooks.iter().filter(|h| h.names_ours()).collect();
    let first = ours.first()?;
    if is_our_own(metadata) {
        return None;
    }
    let name = metadata.name.clone()?;
    let alone = hooks.iter().all(Hook::is_ours_alone);
    let kind = if asks == Asks::Validating {
        "validating"
    } else {
        "mutating"
    };
    let doubt = if !alone {
        Some("it is asked about other kinds too")
    } else if !name.ends_with(&format!("{kind}-webhook-configuration"))
        || !hooks.iter().all(|h| h.is_generated(asks))
    {
        Some("its names are not those of the original MysqlBackup operator")
    } else {
        None
    };
    let mut about: Vec<String> = ours.iter().flat_map(|h| h.about()).collect();
    about.sort();
    about.dedup();
    let among = hooks.iter().enumerate().filter(|(_, h)| h.is_ours_alone());
    let among = among.map(|(i, h)| (i, h.name.clone())).collect();
    let webhook = Webhook {
        asks,
        name,
        about,
        fails: ours.iter().any(|h| h.fails),
        answer: Answer::Unknown(String::new()),
        doubt,
        mixed: !alone,
        among,
        uid: metadata.uid.clone(),
        version: metadata.resource_version.clone(),
    };
    // The one whose silence is felt decides.
    let felt = ours.iter().find(|h| h.fails).unwrap_or(first);
    Some((webhook, Client::of(&felt.client)))
}

/// Where a webhook is asked.
enum Client {
    Service(String, String),
    Url(String),
}

impl Client {
    fn of(client: &WebhookClientConfig) -> Self {
        Self::at(
            client.service.as_ref().map(|s| (&s.namespace, &s.name)),
            client.url.as_deref(),
        )
    }

    fn at(service: Option<(&String, &String)>, url: Option<&str>) -> Self {
        match service {
            Some((namespace, name)) => Self::Service(namespace.clone(), name.clone()),
            None => Self::Url(url.unwrap_or_default().to_owned()),
        }
    }
}

fn conversion(definition: &CustomResourceDefinition) -> Option<(Webhook, Client)> {
    let conversion = definition.spec.conversion.as_ref()?;
    if conversion.strategy != "Webhook" {
        return None;
    }
    let name = definition.metadata.name.clone()?;
    let client = conversion.webhook.as_ref()?.client_config.as_ref()?;
    let generated = client
        .service
        .as_ref()
        .is_some_and(|s| is_generated(&s.name) && s.path.as_deref() == Some("/convert"));
    let doubt = "its names are not those of the original MysqlBackup operator";
    let webhook = Webhook {
        asks: Asks::Conversion,
        about: vec![name.clone()],
        name,
        fails: definition.spec.versions.iter().filter(|v| v.served).count() > 1,
        answer: Answer::Unknown(String::new()),
        doubt: (!generated).then_some(doubt),
        mixed: false,
        among: vec![],
        uid: definition.metadata.uid.clone(),
        version: definition.metadata.resource_version.clone(),
    };
    let service = client.service.as_ref().map(|s| (&s.namespace, &s.name));
    Some((webhook, Client::at(service, client.url.as_deref())))
}

fn is_absent(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

/// Webhooks for our groups that are not ours.
pub(crate) async fn webhooks(cluster: &Cluster) -> Webhooks {
    let all = ListParams::default();
    let validating: Api<ValidatingWebhookConfiguration> = Api::all(cluster.client());
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(cluster.client());
    let (validating, mutating) = tokio::join!(validating.list(&all), mutating.list(&all));
    let mut seen = vec![];
    let mut webhooks = Webhooks::default();
    match validating {
        Ok(list) => seen.extend(list.items.into_iter().filter_map(|c| {
            let hooks = c.webhooks.unwrap_or_default().into_iter();
            let hooks: Vec<Hook> = hooks
                .map(|h| Hook::of(h.name, h.rules, h.client_config, h.failure_policy))
                .collect();
            configuration(Asks::Validating, &c.metadata, &hooks)
        })),
        Err(e) => webhooks
            .hidden
            .push(("validatingwebhookconfigurations", reason(&e))),
    }
    match mutating {
        Ok(list) => seen.extend(list.items.into_iter().filter_map(|c| {
            let hooks = c.webhooks.unwrap_or_default().into_iter();
            let hooks: Vec<Hook> = hooks
                .map(|h| Hook::of(h.name, h.rules, h.client_config, h.failure_policy))
                .collect();
            configuration(Asks::Mutating, &c.metadata, &hooks)
        })),
        Err(e) => webhooks
            .hidden
            .push(("mutatingwebhookconfigurations", reason(&e))),
    }
    let definitions: Api<CustomResourceDefinition> = Api::all(cluster.client());
    for name in DEFINITIONS {
        match definitions.get(name).await {
            Ok(definition) => seen.extend(conversion(&definition)),
            Err(e) if is_absent(&e) => {}
            Err(e) => {
                webhooks
                    .hidden
                    .push(("customresourcedefinitions", reason(&e)));
                break;
            }
        }
    }
    for (mut webhook, client) in seen {
        webhook.answer = answer(cluster, client).await;
        webhooks.found.push(webhook);
    }
    webhooks
}

async fn answer(cluster: &Cluster, client: Client) -> Answer {
    let (namespace, name) = match client {
        Client::Service(namespace, name) => (namespace, name),
        Client::Url(url) => return Answer::Unknown(url),
    };
    let at = format!("Service {namespace}/{name}");
    let services: Api<Service> = Api::namespaced(cluster.client(), &namespace);
    match services.get(&name).await {
        Ok(_) => {}
        Err(e) if is_absent(&e) => return Answer::NoService(at),
        Err(_) => return Answer::Unknown(at),
    }
    let slices: Api<EndpointSlice> = Api::namespaced(cluster.client(), &namespace);
    let of = ListParams::default().labels(&format!("kubernetes.io/service-name={name}"));
    let Ok(slices) = slices.list(&of).await else {
        return Answer::Unknown(at);
    };
    // Unset means ready, says the API.
    let mut endpoints = slices.items.iter().flat_map(|s| &s.endpoints);
    let ready = endpoints.any(|e| {
        let ready = e.conditions.as_ref().and_then(|c| c.ready);
        ready.unwrap_or(true)
    });
    if ready {
        Answer::Ready(at)
    } else {
        Answer::NoPod(at)
    }
}

/// Removes a configuration, or ends the conversion of a definition, if it is still what was seen.
///
/// # Errors
/// It changed meanwhile; what the server refused.
pub(crate) async fn silence(cluster: &Cluster, webhook: &Webhook) -> Result<()> {
    let params = DeleteParams {
        preconditions: Some(Preconditions {
            uid: webhook.uid.clone(),
            resource_version: webhook.version.clone(),
        }),
        ..DeleteParams::default()
    };
    let name = webhook.name.as_str();
    let (verb, resource, done) = match webhook.asks {
        Asks::Validating => {
            let api: Api<ValidatingWebhookConfiguration> = Api::all(cluster.client());
            let done = api.delete(name, &params).await.map(|_| ());
            ("delete", "validatingwebhookconfigurations", done)
        }
        Asks::Mutating => {
            let api: Api<MutatingWebhookConfiguration> = Api::all(cluster.client());
            let done = api.delete(name, &params).await.map(|_| ());
            ("delete", "mutatingwebhookconfigurations", done)
        }
        Asks::Conversion => {
            let api: Api<CustomResourceDefinition> = Api::all(cluster.client());
            let patch = json!({
                "metadata": { "resourceVersion": webhook.version },
                "spec": { "conversion": { "strategy": "None", "webhook": null } },
            });
            let params = PatchParams::default();
            let done = api.patch(name, &params, &Patch::Merge(&patch)).await;
            ("patch", "customresourcedefinitions", done.map(|_| ()))
        }
    };
    match done {
        Err(e) if !is_absent(&e) => Err(cluster.explain(
            &e,
            Call {
                verb,
                resource,
                kind: None,
                namespace: None,
            },
        )),
        _ => Ok(()),
    }
}
