//! Requests to the operator: an annotation each. One that nobody waits for any more is withdrawn:
//! else an operator that comes back would act on it.

use std::hash::{BuildHasher, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crds::names;
use crds::request::Request;
use crds::status::RequestState;
use serde_json::{Value, json};

use super::{Cluster, Object};
use crate::error::{Error, Result};

/// How long withdrawing a request may take.
const WITHDRAW_LIMIT: Duration = Duration::from_secs(10);

impl Cluster {
    /// Writes a request onto an object.
    ///
    /// # Errors
    /// What the server refused.
    pub(crate) async fn send(
        &self,
        object: &Object,
        request: &Request,
        manager: &str,
        dry_run: bool,
    ) -> Result<()> {
        let patch = annotation(request);
        let sent = self.merge_patch(object, &patch, manager, dry_run).await;
        sent.map(|_| ())
    }
}

/// The patch that carries a request.
fn annotation(request: &Request) -> Value {
    let key = Request::annotation_key(&request.id);
    json!({ "metadata": { "annotations": { key: request.annotation_value() } } })
}

/// An id nobody else has: ten hex digits of the process's random seed.
pub(crate) fn fresh_id(salt: &str) -> String {
    let random = |seed: u64| {
        let mut hasher = std::hash::RandomState::new().build_hasher();
        hasher.write_u64(seed);
        hasher.finish().to_string()
    };
    names::short_hash(&[salt, &random(1), &random(2)], 10)
}

/// Requests of this command that have no answer yet.
#[derive(Debug, Default)]
pub(crate) struct OpenRequests(Mutex<Vec<OpenRequest>>);

struct OpenRequest {
    cluster: Cluster,
    object: Object,
    id: String,
}

impl std::fmt::Debug for OpenRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {}", self.id, self.object.full_name())
    }
}

impl OpenRequests {
    /// Notes a request that is about to be sent.
    pub(crate) fn add(&self, cluster: &Cluster, object: &Object, id: &str) {
        self.lock().push(OpenRequest {
            cluster: cluster.clone(),
            object: object.clone(),
            id: id.to_owned(),
        });
    }

    /// Forgets a request that is answered, or was never sent.
    pub(crate) fn remove(&self, id: &str) {
        self.lock().retain(|request| request.id != id);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<OpenRequest>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Withdraws all of them and gives what became of each: the last act of an interrupted command.
    pub(crate) async fn withdraw_all(&self) -> Vec<String> {
        let open: Vec<OpenRequest> = std::mem::take(&mut *self.lock());
        let mut lines = vec![];
        for request in open {
            let said = withdraw(&request.cluster, &request.object, &request.id).await;
            if !said.is_empty() {
                lines.push(format!("{}: {said}", request.object.full_name()));
            }
        }
        lines
    }
}

/// Takes a request back that nobody waits for any more, and says what became of it; empty if
/// nothing of it is left.
pub(crate) async fn withdraw(cluster: &Cluster, object: &Object, id: &str) -> String {
    let attempt = async {
        let Some(now) = cluster.live(object).await? else {
            return Ok(String::new());
        };
        if let Some(said) = taken_up(&now, id) {
            return Ok(said);
        }
        let key = Request::annotation_key(id);
        let patch = json!({ "metadata": { "annotations": { key: null } } });
        let after = cluster
            .merge_patch(&now, &patch, crds::labels::PLUGIN_MANAGER, false)
            .await?;
        // The operator may have taken it up between the look and the patch.
        Ok(taken_up(&after, id).unwrap_or_else(|| "the request was withdrawn".to_owned()))
    };
    match tokio::time::timeout(WITHDRAW_LIMIT, attempt).await {
        Ok(Ok::<String, Error>(said)) => said,
        Ok(Err(_)) | Err(_) => format!(
            "the request could not be withdrawn and stands for up to {} minutes; withdraw it: kubectl -n {} annotate {} {}-",
            crds::request::LIFETIME.num_minutes(),
            object.namespace(),
            object.full_name(),
            Request::annotation_key(id)
        ),
    }
}

/// What the operator has made of a request so far, if it has seen it.
fn taken_up(object: &Object, id: &str) -> Option<String> {
    let status = object.status();
    let request = status.requests.iter().find(|r| r.id == id)?;
    let message = crds::secret::mask(&request.message);
    Some(match (request.state, &request.job) {
        (RequestState::Succeeded, _) => format!("the request was answered: {message}"),
        (RequestState::Failed | RequestState::Refused, _) => String::new(),
        (RequestState::Queued | RequestState::Running, Some(job)) => format!(
            "job {job} goes on; to stop it: kubectl -n {} delete job {job}",
            object.namespace()
        ),
        (RequestState::Queued | RequestState::Running, None) => {
            "the operator acts on the request; look at it: kubectl backup describe".to_owned()
        }
    })
}
