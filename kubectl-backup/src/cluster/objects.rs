//! Reading and changing the users' objects. They stay dynamic, so that fields this program does
//! not know survive.

use crds::gobackup::ObjectKey;
use crds::near::nearest;
use futures::future::join_all;
use futures::{Stream, StreamExt};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, ResourceExt};
use serde_json::Value;

use super::fail::{self, Call, is_missing_object, is_missing_resource};
use super::table::{Query, ServerTable};
use super::{Cluster, Object};
use crate::error::{Error, Kind as Exit, Result};
use crate::kind::{KINDS, Kind, Target};

impl Cluster {
    /// The interface for a kind in a namespace, or in all.
    fn api(&self, kind: &Kind, namespace: Option<&str>) -> Api<DynamicObject> {
        let resource = kind.api_resource();
        match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        }
    }

    fn call<'a>(verb: &'a str, kind: &'static Kind, namespace: Option<&'a str>) -> Call<'a> {
        Call {
            verb,
            resource: kind.plural,
            kind: Some(kind),
            namespace,
        }
    }

    /// The object a target means.
    ///
    /// # Errors
    /// Not found, with the nearest name; ambiguous, with the candidates; not installed.
    pub(crate) async fn find(&self, target: &Target) -> Result<Object> {
        let kinds: Vec<&'static Kind> = match target.kind {
            Some(kind) => vec![kind],
            None => KINDS.to_vec(),
        };
        let answers = join_all(kinds.iter().map(|kind| async move {
            let api = self.api(kind, Some(&self.namespace));
            (*kind, api.get(&target.name).await)
        }))
        .await;
        let (mut found, mut absent, mut denied) = (vec![], vec![], None);
        for (kind, answer) in answers {
            match answer {
                Ok(object) => found.push(Object { kind, object }),
                Err(e) if is_missing_object(&e) => absent.push(kind),
                Err(e) if is_missing_resource(&e) => {}
                Err(e) => {
                    denied = Some(self.explain(&e, Self::call("get", kind, Some(&self.namespace))));
                }
            }
        }
        match (found.pop(), denied) {
            (Some(object), _) if found.is_empty() => Ok(object),
            (Some(last), _) => Err(ambiguous(&target.name, &found, &last)),
            (None, Some(denied)) => Err(denied),
            (None, None) => Err(match absent.first() {
                Some(kind) => self.absent(kind, &absent, &target.name).await,
                None => fail::not_installed(kinds[0], &self.place),
            }),
        }
    }

    /// Not found, with what may have been meant.
    async fn absent(&self, kind: &'static Kind, kinds: &[&'static Kind], name: &str) -> Error {
        let mut text = format!(
            "Error from server (NotFound): {} {name:?} not found in namespace {:?}.",
            kind.resource(),
            self.namespace
        );
        let (mut names, mut elsewhere) = (vec![], vec![]);
        for kind in kinds {
            let here = ListParams::default().limit(500);
            if let Ok(list) = self
                .api(kind, Some(&self.namespace))
                .list_metadata(&here)
                .await
            {
                names.extend(list.items.iter().map(ResourceExt::name_any));
            }
            let fields = ListParams::default().fields(&format!("metadata.name={name}"));
            if let Ok(list) = self.api(kind, None).list_metadata(&fields).await {
                elsewhere.extend(list.items.iter().filter_map(ResourceExt::namespace));
            }
        }
        if names.is_empty() && self.lacks_namespace(&self.namespace).await {
            return fail::no_namespace(&self.namespace);
        }
        if let Some(near) = nearest(name, &names) {
            text.push_str(&format!(" Did you mean {near:?}?"));
        }
        if !elsewhere.is_empty() {
            elsewhere.sort();
            elsewhere.dedup();
            text.push_str(&format!(" It also exists in: {}.", elsewhere.join(", ")));
        }
        Error::verbatim(Exit::NotFound, text)
    }

    /// Whether the namespace is known not to be there. The server says so of writes alone.
    pub(crate) async fn lacks_namespace(&self, name: &str) -> bool {
        let api: Api<Namespace> = Api::all(self.client.clone());
        let found = api.get_metadata(name).await;
        found.is_err_and(|e| is_missing_object(&e))
    }

    /// Full objects of a kind, in chunks; `None` if the kind is not installed.
    ///
    /// # Errors
    /// What the server refused.
    pub(crate) async fn objects(
        &self,
        kind: &'static Kind,
        query: &Query,
    ) -> Result<Option<Vec<Object>>> {
        let api = self.api(kind, query.namespace.as_deref());
        let mut restarts = 0;
        'list: loop {
            let mut params = ListParams {
                label_selector: query.labels.clone(),
                field_selector: query.fields.clone(),
                limit: (query.chunk > 0).then_some(query.chunk),
                ..ListParams::default()
            };
            let mut all = vec![];
            loop {
                let part = match api.list(&params).await {
                    Ok(part) => part,
                    Err(e) if is_missing_resource(&e) => return Ok(None),
                    Err(kube::Error::Api(status)) if status.code == 410 && restarts < 5 => {
                        restarts += 1;
                        continue 'list;
                    }
                    Err(e) => {
                        let call = Self::call("list", kind, query.namespace.as_deref());
                        return Err(self.explain(&e, call));
                    }
                };
                all.extend(part.items.into_iter().map(|object| Object { kind, object }));
                params.continue_token = part.metadata.continue_.filter(|t| !t.is_empty());
                if params.continue_token.is_none() {
                    return Ok(Some(all));
                }
            }
        }
    }

    /// Objects of all kinds, or of some; kinds that are not installed are left out.
    ///
    /// # Errors
    /// None of the kinds is installed, or what the server refused.
    pub(crate) async fn all_objects(
        &self,
        kinds: &[&'static Kind],
        query: &Query,
    ) -> Result<Vec<Object>> {
        let (objects, hidden) = self.readable_objects(kinds, query).await?;
        hidden.into_iter().next().map_or(Ok(objects), Err)
    }

    /// As [`Self::all_objects`], of the kinds that the caller may read; beside them the refusals of
    /// the others.
    ///
    /// # Errors
    /// None of the kinds is installed, or none may be read; what else the server refused.
    pub(crate) async fn readable_objects(
        &self,
        kinds: &[&'static Kind],
        query: &Query,
    ) -> Result<(Vec<Object>, Vec<Error>)> {
        let lists = join_all(kinds.iter().map(|kind| self.objects(kind, query))).await;
        let (lists, hidden) = readable(lists)?;
        if lists.is_empty() {
            return Err(self.none_installed(kinds));
        }
        Ok((lists.into_iter().flatten().collect(), hidden))
    }

    /// The server's tables of the kinds that are installed and that the caller may read; beside them
    /// the refusals of the others.
    ///
    /// # Errors
    /// As [`Self::readable_objects`].
    pub(crate) async fn readable_tables(
        &self,
        kinds: &[&'static Kind],
        query: &Query,
    ) -> Result<(Vec<(&'static Kind, ServerTable)>, Vec<Error>)> {
        let tables = kinds.iter().map(|kind| async move {
            let table = self.table(kind, query).await?;
            Ok(table.map(|table| (*kind, table)))
        });
        let (tables, hidden) = readable(join_all(tables).await)?;
        if tables.is_empty() {
            return Err(self.none_installed(kinds));
        }
        Ok((tables, hidden))
    }

    /// The error for kinds none of which is installed.
    pub(crate) fn none_installed(&self, kinds: &[&'static Kind]) -> Error {
        fail::not_installed(kinds.first().copied().unwrap_or(KINDS[0]), &self.place)
    }

    /// Changes some fields of an object.
    ///
    /// # Errors
    /// What the server refused.
    pub(crate) async fn merge_patch(
        &self,
        object: &Object,
        patch: &Value,
        manager: &str,
        dry_run: bool,
    ) -> Result<Object> {
        let namespace = object.namespace();
        let params = PatchParams {
            dry_run,
            field_manager: Some(manager.to_owned()),
            ..PatchParams::default()
        };
        self.api(object.kind, Some(&namespace))
            .patch(&object.name(), &params, &Patch::Merge(patch))
            .await
            .map(|changed| Object {
                kind: object.kind,
                object: changed,
            })
            .map_err(|e| self.explain(&e, Self::call("patch", object.kind, Some(&namespace))))
    }

    /// Stores a new object, refusing fields its kind does not have.
    ///
    /// # Errors
    /// What the server refused.
    pub(crate) async fn create(
        &self,
        object: &Object,
        manager: &str,
        dry_run: bool,
    ) -> Result<Object> {
        let namespace = object.namespace();
        let namespace = if namespace.is_empty() {
            self.namespace.clone()
        } else {
            namespace
        };
        let mut path = kind_path(object.kind, &namespace, manager);
        if dry_run {
            path.push_str("&dryRun=All");
        }
        let call = Self::call("create", object.kind, Some(&namespace));
        let request = http::Request::post(path)
            .header(http::header::CONTENT_TYPE, "application/json")
            .body(serde_json::to_vec(&object.to_value(true)).unwrap_or_default())
            .map_err(|e| Error::new(Exit::Other, e))?;
        self.client
            .request::<DynamicObject>(request)
            .await
            .map(|created| Object {
                kind: object.kind,
                object: created,
            })
            .map_err(|e| self.explain(&e, call))
    }

    /// The object of this kind, namespace and name as it stands, if there is one.
    ///
    /// # Errors
    /// What the server refused.
    pub(crate) async fn live(&self, object: &Object) -> Result<Option<Object>> {
        let namespace = object.namespace();
        let kind = object.kind;
        let found = self
            .api(kind, Some(&namespace))
            .get_opt(&object.name())
            .await;
        match found {
            Ok(found) => Ok(found.map(|object| Object { kind, object })),
            Err(e) => Err(self.explain(&e, Self::call("get", kind, Some(&namespace)))),
        }
    }

    /// The spec of what a Backup refers to, if it is there.
    ///
    /// # Errors
    /// What the server refused.
    pub(crate) async fn referred(&self, namespace: &str, key: &ObjectKey) -> Result<Option<Value>> {
        let kind = GroupVersionKind::gvk(key.group, "v1", key.kind);
        let plural = format!("{}s", key.kind.to_lowercase());
        let resource = ApiResource::from_gvk_with_plural(&kind, &plural);
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), namespace, &resource);
        match api.get_opt(&key.name).await {
            Ok(found) => Ok(found.map(|object| object.data["spec"].clone())),
            Err(e) if is_missing_resource(&e) => Ok(None),
            Err(e) => {
                let call = Call {
                    verb: "get",
                    resource: &plural,
                    kind: None,
                    namespace: Some(namespace),
                };
                Err(self.explain(&e, call))
            }
        }
    }

    /// The object as it would be after this one was applied.
    ///
    /// # Errors
    /// What the server refused.
    pub(crate) async fn apply_dry_run(&self, object: &Object) -> Result<Object> {
        let namespace = object.namespace();
        let kind = object.kind;
        let params = PatchParams::apply("kubectl-client-side-apply")
            .force()
            .dry_run();
        let value = object.to_value(false);
        self.api(kind, Some(&namespace))
            .patch(&object.name(), &params, &Patch::Apply(&value))
            .await
            .map(|object| Object { kind, object })
            .map_err(|e| self.explain(&e, Self::call("patch", kind, Some(&namespace))))
    }

    /// Applies an object of any kind, by its own apiVersion and kind.
    ///
    /// # Errors
    /// What the server refused; another manager owns a field, unless `force` takes it over.
    pub(crate) async fn apply_value(
        &self,
        value: &Value,
        dry_run: bool,
        force: bool,
    ) -> Result<()> {
        let object: DynamicObject =
            serde_json::from_value(value.clone()).map_err(|e| Error::new(Exit::Other, e))?;
        let kind = value["kind"].as_str().unwrap_or_default();
        let known = crate::kind::CREATABLE.iter().find(|k| k.kind == kind);
        let resource = match known {
            Some(kind) => kind.api_resource(),
            None => kube::core::ApiResource::erase::<k8s_openapi::api::core::v1::Secret>(&()),
        };
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), &self.namespace, &resource);
        let params = PatchParams {
            dry_run,
            force,
            ..PatchParams::apply(crds::labels::PLUGIN_MANAGER)
        };
        let call = Call {
            verb: "patch",
            resource: &resource.plural,
            kind: known.copied(),
            namespace: Some(&self.namespace),
        };
        api.patch(&object.name_any(), &params, &Patch::Apply(&object))
            .await
            .map(|_| ())
            .map_err(|e| match &e {
                kube::Error::Api(status) if status.code == 409 => self.explain(&e, call).hint(
                    "others have set these fields: leave them, or take them over with --force-conflicts",
                ),
                _ => self.explain(&e, call),
            })
    }

    /// Deletes an object; its Jobs go with it, what they stored stays.
    ///
    /// # Errors
    /// What the server refused.
    pub(crate) async fn delete(&self, object: &Object, dry_run: bool) -> Result<()> {
        let namespace = object.namespace();
        let mut params = DeleteParams::background();
        params.dry_run = dry_run;
        self.api(object.kind, Some(&namespace))
            .delete(&object.name(), &params)
            .await
            .map(|_| ())
            .map_err(|e| self.explain(&e, Self::call("delete", object.kind, Some(&namespace))))
    }

    /// The object now and after each change; `None` once it is gone. Broken connections are
    /// taken up again; only a refusal ends the stream.
    pub(crate) fn follow(
        &self,
        object: &Object,
    ) -> impl Stream<Item = Result<Option<Object>>> + Send + use<> {
        let namespace = object.namespace();
        let (kind, place) = (object.kind, self.place.clone());
        let resource = kind.api_resource();
        let api = Api::namespaced_with(self.patient.clone(), &namespace, &resource);
        watcher::watch_object(api, &object.name())
            .default_backoff()
            .filter_map(move |event| {
                let refusal = event.as_ref().err().and_then(refusal);
                std::future::ready(match (event, refusal) {
                    (Ok(seen), _) => Some(Ok(seen.map(|object| Object { kind, object }))),
                    (Err(_), Some(status)) => Some(Err(fail::explain(
                        &kube::Error::Api(status),
                        Self::call("watch", kind, None),
                        &place,
                    ))),
                    // The watcher tries again.
                    (Err(_), None) => None,
                })
            })
    }
}

/// What was read of several kinds, without those that are not installed; and the refusals of those
/// that may not be read. If none may be, that is the error.
fn readable<T>(answers: Vec<Result<Option<T>>>) -> Result<(Vec<T>, Vec<Error>)> {
    let (mut read, mut denied) = (vec![], vec![]);
    for answer in answers {
        match answer {
            Ok(part) => read.extend(part),
            Err(error) if error.kind == Exit::Denied => denied.push(error),
            Err(error) => return Err(error),
        }
    }
    if read.is_empty() && !denied.is_empty() {
        return Err(denied.swap_remove(0));
    }
    Ok((read, denied))
}

/// Where a new object goes. The typed interface can't say that unknown fields are refused.
fn kind_path(kind: &Kind, namespace: &str, manager: &str) -> String {
    format!(
        "{}?fieldValidation=Strict&fieldManager={manager}",
        kind.path(Some(namespace))
    )
}

/// An answer that another try would not change.
fn refusal(error: &watcher::Error) -> Option<Box<kube::core::Status>> {
    let status = match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => status,
        _ => return None,
    };
    matches!(status.code, 401 | 403 | 404).then(|| status.clone())
}

fn ambiguous(name: &str, found: &[Object], last: &Object) -> Error {
    let all: Vec<String> = found
        .iter()
        .chain([last])
        .map(|o| o.kind.short_name(name))
        .collect();
    Error::usage(format!(
        "{name:?} exists as {}; say which, such as {}",
        all.join(" and "),
        all[0]
    ))
}
