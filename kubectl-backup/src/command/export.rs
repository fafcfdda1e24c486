//! `export`: objects as one would write them, ready for a repository.

use serde_json::Value;

use crate::cli::{Export, StructuredOutput};
use crate::cluster::Object;
use crate::context::Context;
use crate::error::Result;
use crate::select;
use crate::view::output::structured;

/// Exports.
///
/// # Errors
/// The first object that can't be read.
pub(crate) async fn run(context: &Context, args: &Export) -> Result<()> {
    let cluster = context.cluster().await?;
    let mut first = true;
    for object in select::many(context, &cluster, &args.targets, "export").await? {
        let value = plain(&object?);
        match args.output {
            StructuredOutput::Yaml if !first => context.ui.out("---\n")?,
            _ => {}
        }
        context.ui.out(&structured(&value, args.output))?;
        first = false;
    }
    Ok(())
}

/// The object without what the server and the operator wrote.
pub(crate) fn plain(object: &Object) -> Value {
    let mut value = object.to_value(false);
    if let Some(root) = value.as_object_mut() {
        root.remove("status");
    }
    if let Some(metadata) = value["metadata"].as_object_mut() {
        for key in [
            "uid",
            "resourceVersion",
            "generation",
            "creationTimestamp",
            "selfLink",
            "managedFields",
        ] {
            metadata.remove(key);
        }
        let notes = metadata
            .get_mut("annotations")
            .and_then(Value::as_object_mut);
        if let Some(notes) = notes {
            notes.retain(|key, _| {
                !key.starts_with(crds::labels::PREFIX)
                    && key != "kubectl.kubernetes.io/last-applied-configuration"
            });
            if notes.is_empty() {
                metadata.remove("annotations");
            }
        }
    }
    value
}
