//! Questions about the cluster itself: rights, operator, clock, webhook.

use chrono::{DateTime, Utc};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec, SubjectAccessReview,
    SubjectAccessReviewSpec,
};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Namespace, PersistentVolumeClaim, Secret, Service};
use kube::api::{ListParams, PostParams};
use kube::{Api, ResourceExt};

use super::Cluster;
use super::fail::Call;
use crate::error::Result;
use crate::kind::{Kind, STORAGE};

/// Label of the operator's Deployment.
const OPERATOR: &str = "app.kubernetes.io/name=backup-operator";

/// What a wizard offers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Offers {
    /// Services that look like MySQL: host and port.
    pub(crate) services: Vec<(String, i32)>,
    /// Names of Secrets.
    pub(crate) secrets: Vec<String>,
    /// Names of volume claims.
    pub(crate) claims: Vec<String>,
    /// Names of Storages of gobackup.io.
    pub(crate) storages: Vec<String>,
}

impl Cluster {
    pub(super) fn ask<'a>(
        verb: &'a str,
        resource: &'a str,
        namespace: Option<&'a str>,
    ) -> Call<'a> {
        Call {
            verb,
            resource,
            kind: None,
            namespace,
        }
    }

    /// True if the caller may do this in the namespace.
    ///
    /// # Errors
    /// The review itself was refused.
    pub(crate) async fn may(&self, verb: &str, group: &str, resource: &str) -> Result<bool> {
        let review = SelfSubjectAccessReview {
            spec: SelfSubjectAccessReviewSpec {
                resource_attributes: Some(self.attributes(verb, group, resource)),
                ..SelfSubjectAccessReviewSpec::default()
            },
            ..SelfSubjectAccessReview::default()
        };
        let api: Api<SelfSubjectAccessReview> = Api::all(self.client.clone());
        let answer = api
            .create(&PostParams::default(), &review)
            .await
            .map_err(|e| self.explain(&e, Self::ask("create", "selfsubjectaccessreviews", None)))?;
        Ok(answer.status.is_some_and(|status| status.allowed))
    }

    /// True if another user may do this in the namespace.
    ///
    /// # Errors
    /// The review itself was refused.
    pub(crate) async fn may_user(
        &self,
        user: &str,
        verb: &str,
        group: &str,
        resource: &str,
    ) -> Result<bool> {
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: Some(user.to_owned()),
                resource_attributes: Some(self.attributes(verb, group, resource)),
                ..SubjectAccessReviewSpec::default()
            },
            ..SubjectAccessReview::default()
        };
        let api: Api<SubjectAccessReview> = Api::all(self.client.clone());
        let answer = api
            .create(&PostParams::default(), &review)
            .await
            .map_err(|e| self.explain(&e, Self::ask("create", "subjectaccessreviews", None)))?;
        Ok(answer.status.is_some_and(|status| status.allowed))
    }

    /// A resource in the namespace, with its subresource, and what is to be done to it.
    fn attributes(&self, verb: &str, group: &str, resource: &str) -> ResourceAttributes {
        let (resource, subresource) = match resource.split_once('/') {
            Some((resource, sub)) => (resource, Some(sub.to_owned())),
            None => (resource, None),
        };
        ResourceAttributes {
            verb: Some(verb.to_owned()),
            group: Some(group.to_owned()),
            resource: Some(resource.to_owned()),
            subresource,
            namespace: Some(self.namespace.clone()),
            ..ResourceAttributes::default()
        }
    }

    /// A Lease, if it is there.
    ///
    /// # Errors
    /// What the server refused.
    pub(crate) async fn lease(&self, namespace: &str, name: &str) -> Result<Option<Lease>> {
        let api: Api<Lease> = Api::namespaced(self.client.clone(), namespace);
        let found = api.get_opt(name).await;
        found.map_err(|e| self.explain(&e, Self::ask("get", "leases", Some(namespace))))
    }

    /// The operator's Deployments in all namespaces.
    ///
    /// # Errors
    /// What the server refused.
    pub(crate) async fn operators(&self) -> Result<Vec<Deployment>> {
        let api: Api<Deployment> = Api::all(self.client.clone());
        let list = api
            .list(&ListParams::default().labels(OPERATOR))
            .await
            .map_err(|e| self.explain(&e, Self::ask("list", "deployments", None)))?;
        Ok(list.items)
    }

    /// Names of the operator's pods in a namespace; none where that is not allowed.
    pub(crate) async fn operator_pods(&self, namespace: &str) -> Vec<String> {
        let api: Api<k8s_openapi::api::core::v1::Pod> =
            Api::namespaced(self.client.clone(), namespace);
        let list = api
            .list_metadata(&ListParams::default().labels(OPERATOR))
            .await;
        list.map(|l| l.items.iter().map(ResourceExt::name_any).collect())
            .unwrap_or_default()
    }

    /// The server's clock, as its answers say.
    ///
    /// # Errors
    /// What the server refused.
    pub(crate) async fn clock(&self) -> Result<Option<DateTime<Utc>>> {
        let call = Self::ask("get", "version", None);
        let request = http::Request::get("/version")
            .body(kube::client::Body::empty())
            .map_err(|e| crate::error::Error::new(crate::error::Kind::Other, e))?;
        let answer = self
            .client
            .send(request)
            .await
            .map_err(|e| self.explain(&e, call))?;
        let date = answer
            .headers()
            .get(http::header::DATE)
            .and_then(|d| d.to_str().ok());
        Ok(date
            .and_then(|d| DateTime::parse_from_rfc2822(d).ok())
            .map(|d| d.to_utc()))
    }

    /// True if the kind is installed; asks for one object.
    ///
    /// # Errors
    /// What the server refused.
    pub(crate) async fn installed(&self, kind: &'static Kind) -> Result<bool> {
        let query = super::Query {
            namespace: Some(self.namespace.clone()),
            fields: Some("metadata.name=kubectl-backup-probe".to_owned()),
            ..super::Query::default()
        };
        Ok(self.table(kind, &query).await?.is_some())
    }

    /// True if a namespace of this name exists.
    ///
    /// # Errors
    /// What the server refused, such as the right to read it.
    pub(crate) async fn has_namespace(&self, name: &str) -> Result<bool> {
        let api: Api<Namespace> = Api::all(self.client.clone());
        match api.get_metadata_opt(name).await {
            Ok(found) => Ok(found.is_some()),
            Err(e) => Err(self.explain(&e, Self::ask("get", "namespaces", None))),
        }
    }

    /// Names of all namespaces; none where that is not allowed.
    pub(crate) async fn namespaces(&self) -> Vec<String> {
        let api: Api<Namespace> = Api::all(self.client.clone());
        let list = api.list_metadata(&ListParams::default()).await;
        list.map(|l| l.items.iter().map(ResourceExt::name_any).collect())
            .unwrap_or_default()
    }

    /// True if a Secret of this name exists; its content is not read.
    ///
    /// # Errors
    /// What the server refused.
    pub(crate) async fn has_secret(&self, namespace: &str, name: &str) -> Result<bool> {
        let api: Api<Secret> = Api::namespaced(self.client.clone(), namespace);
        match api.get_metadata_opt(name).await {
            Ok(found) => Ok(found.is_some()),
            Err(e) => Err(self.explain(&e, Self::ask("get", "secrets", Some(namespace)))),
        }
    }

    /// What the namespace has to choose from; what may not be listed is left out.
    pub(crate) async fn offers(&self) -> Offers {
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &self.namespace);
        let services: Api<Service> = Api::namespaced(self.client.clone(), &self.namespace);
        let claims: Api<PersistentVolumeClaim> =
            Api::namespaced(self.client.clone(), &self.namespace);
        let all = ListParams::default();
        let query = super::Query {
            namespace: Some(self.namespace.clone()),
            chunk: 500,
            ..super::Query::default()
        };
        let kinds = [&STORAGE];
        let (secrets, services, claims, storages) = tokio::join!(
            secrets.list_metadata(&all),
            services.list(&all),
            claims.list_metadata(&all),
            self.all_objects(&kinds, &query)
        );
        let services = services.map(|l| l.items).unwrap_or_default();
        Offers {
            services: services.iter().filter_map(database_of).collect(),
            secrets: secrets
                .map(|l| l.items.iter().map(ResourceExt::name_any).collect())
                .unwrap_or_default(),
            storages: storages
                .map(|found| found.iter().map(super::Object::name).collect())
                .unwrap_or_default(),
            claims: claims
                .map(|l| l.items.iter().map(ResourceExt::name_any).collect())
                .unwrap_or_default(),
        }
    }
}

/// Host and port of a Service that looks like a MySQL server.
fn database_of(service: &Service) -> Option<(String, i32)> {
    let name = service.metadata.name.clone()?;
    let namespace = service.metadata.namespace.clone()?;
    let ports = service.spec.as_ref()?.ports.as_ref()?;
    let port = ports.iter().find(|p| {
        p.port == 3306
            || p.name
                .as_deref()
                .is_some_and(|n| n.contains("mysql") || n.contains("mariadb"))
    })?;
    Some((format!("{name}.{namespace}"), port.port))
}
