//! Whether a caller may remove all that an object stored: who asks for it needs the right to delete the
//! object, which the API server is asked for (SubjectAccessReview).

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::Client;
use kube::api::{Api, PostParams};

use super::admit::Removal;

/// Longest wait for the answer: less than the API server waits for ours.
const PATIENCE: Duration = Duration::from_secs(3);

type Ask =
    dyn Fn(SubjectAccessReviewSpec) -> BoxFuture<'static, Result<bool, String>> + Send + Sync;

/// Who answers what a caller may do.
#[derive(Clone)]
pub struct Rights(Arc<Ask>);

impl fmt::Debug for Rights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Rights")
    }
}

impl Rights {
    /// The API server answers.
    #[must_use]
    pub fn of_cluster(client: Client) -> Self {
        Self::new(move |spec| {
            let client = client.clone();
            Box::pin(async move {
                let api: Api<SubjectAccessReview> = Api::all(client);
                let review = SubjectAccessReview {
                    spec,
                    ..SubjectAccessReview::default()
                };
                let params = PostParams::default();
                let asked = tokio::time::timeout(PATIENCE, api.create(&params, &review)).await;
                let answer = asked
                    .map_err(|_| format!("no answer within {PATIENCE:?}"))?
                    .map_err(|error| crds::text::chain(&error))?;
                Ok(answer
                    .status
                    .is_some_and(|s| s.allowed && s.denied != Some(true)))
            })
        })
    }

    /// `ask` answers; its error says why it can't.
    pub fn new(
        ask: impl Fn(SubjectAccessReviewSpec) -> BoxFuture<'static, Result<bool, String>>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self(Arc::new(ask))
    }

    /// Why the caller may not ask for this removal, with the remedy. What can't be found out is
    /// refused too.
    pub async fn refusal(&self, removal: &Removal) -> Option<String> {
        let what = format!("{}.{} {}", removal.resource, removal.group, removal.name);
        let spec = SubjectAccessReviewSpec {
            user: Some(removal.user.clone()),
            uid: removal.uid.clone(),
            groups: Some(removal.groups.clone()),
            extra: Some(removal.extra.clone()),
            resource_attributes: Some(ResourceAttributes {
                group: Some(removal.group.clone()),
                resource: Some(removal.resource.clone()),
                namespace: Some(removal.namespace.clone()),
                name: Some(removal.name.clone()),
                verb: Some("delete".to_owned()),
                ..ResourceAttributes::default()
            }),
            ..SubjectAccessReviewSpec::default()
        };
        match (self.0)(spec).await {
            Ok(true) => None,
            Ok(false) => Some(format!(
                "a request to remove all that was stored needs the right to delete the object, and {} has none on {what} in namespace {}; ask for the verb delete on it",
                removal.user, removal.namespace
            )),
            Err(why) => Some(format!(
                "a request to remove all that was stored needs the right to delete {what}, and whether {} has it could not be found out: {why}; try again",
                removal.user
            )),
        }
    }
}
