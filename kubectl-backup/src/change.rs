//! Carrying out a change: with or without dry run, several objects one after the other, and who
//! else writes what was changed.

use serde_json::Value;

use crate::cli::{Change, DryRun, NameFlag, OutcomeFlag};
use crate::cluster::{Cluster, Object};
use crate::context::Context;
use crate::error::{Error, Kind, Result};

/// Sends a patch, unless only the client is to act.
///
/// # Errors
/// What the server refused.
pub(crate) async fn apply(
    cluster: &Cluster,
    object: &Object,
    patch: &Value,
    change: &Change,
    writer: &NameFlag,
) -> Result<Object> {
    match change.dry_run {
        DryRun::Client => Ok(object.clone()),
        mode => {
            let server = mode == DryRun::Server;
            cluster
                .merge_patch(object, patch, &writer.name, server)
                .await
        }
    }
}

/// Tells each failure as it comes and keeps the first one's exit status: the others still get
/// done what was asked of them.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    first: Option<Kind>,
    changed: usize,
    unchanged: usize,
}

impl Tally {
    /// Counts an outcome; a failure is told at once.
    pub(crate) fn add(&mut self, context: &Context, outcome: Result<bool>) -> Result<()> {
        match outcome {
            Ok(true) => self.changed += 1,
            Ok(false) => self.unchanged += 1,
            // Nobody reads on: no use in going on.
            Err(error) if matches!(error.kind, Kind::BrokenPipe | Kind::Interrupted) => {
                return Err(error);
            }
            Err(error) => {
                context.ui.error(&error);
                self.first.get_or_insert(error.kind);
            }
        }
        Ok(())
    }

    /// The exit status of all together.
    pub(crate) fn end(self, unchanged: OutcomeFlag) -> Result<()> {
        match self.first {
            Some(kind) => Err(Error::silent(kind)),
            None if unchanged.is_error && self.changed == 0 && self.unchanged > 0 => {
                Err(Error::silent(Kind::Unchanged))
            }
            None => Ok(()),
        }
    }
}

/// Says who else writes `spec.suspend`: a GitOps tool takes a change back.
pub(crate) fn warn_owner(context: &Context, object: &Object, verb: &str) {
    if let Some(manager) = owner(object) {
        context.ui.warn(&format!(
            "spec.suspend of {} is owned by {manager}; it will be reverted at its next sync. To {verb} it for good, change it there",
            object.name()
        ));
    }
}

/// The field manager of `spec.suspend` that is no person's tool.
fn owner(object: &Object) -> Option<String> {
    const TOOLS: [&str; 4] = ["argocd", "flux", "kustomize-controller", "helm"];
    let managers = object.object.metadata.managed_fields.as_ref()?;
    let owned = managers.iter().find(|entry| {
        let manager = entry
            .manager
            .as_deref()
            .unwrap_or_default()
            .to_ascii_lowercase();
        let field = entry
            .fields_v1
            .as_ref()
            .map(|f| &f.0["f:spec"]["f:suspend"]);
        TOOLS.iter().any(|tool| manager.contains(tool)) && field.is_some_and(Value::is_object)
    });
    owned.and_then(|entry| entry.manager.clone())
}
