//! The condition Reachable of Databases and Storages, as a run or request found them.

use chrono::{DateTime, Utc};
use crds::condition::{self, REACHABLE};
use crds::report::Endpoint;
use crds::text::chain;
use kube::api::{Api, Patch};
use kube::core::DynamicObject;
use serde_json::json;

use super::{ApplyError, Changes, Target, patch_params, write};
use crate::context::Context;
use crate::engine::named;
use crate::engine::reason;

/// Writes what is new. One that is gone or may not be written holds nothing up.
pub(super) async fn reach(
    ctx: &Context,
    target: &Target<'_>,
    endpoints: &[Endpoint],
    now: DateTime<Utc>,
    changes: &mut Changes,
) -> Result<(), ApplyError> {
    for endpoint in endpoints {
        let Some(found) =
            target
                .kind
                .endpoint(target.object, target.spec, endpoint.kind, &endpoint.name)
        else {
            continue;
        };
        let mut conditions = found.conditions.clone();
        let reason = match endpoint.reached {
            true => reason::REACHED.to_owned(),
            false => named(&endpoint.reason, reason::FAILED),
        };
        // Without a generation: the run may have begun before the newest edit.
        condition::set(
            &mut conditions,
            REACHABLE,
            endpoint.reached,
            &reason,
            endpoint.message.clone(),
            None,
            now,
        );
        if conditions == found.conditions {
            continue;
        }
        let api: Api<DynamicObject> = Api::namespaced_with(
            ctx.client.0.clone(),
            &target.object.namespace,
            &found.resource,
        );
        let patch = Patch::Merge(json!({"status": {"conditions": conditions}}));
        let params = patch_params();
        let call = api.patch_status(&found.name, &params, &patch);
        match write(ctx, "patch", "status", call).await {
            Ok(object) => changes.references.push(object),
            Err(error) if matches!(error.code(), Some(400..=428 | 430..=499)) => {
                tracing::warn!(error = %chain(&error), kind = %found.resource.kind, namespace = %target.object.namespace, name = %found.name, "the condition Reachable was not written");
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
