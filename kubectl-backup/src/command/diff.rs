//! `diff`: what applying a file would change, by a dry run of the server. Status 0 same, 1 differs.

use super::create;
use super::export::plain;
use crate::cli::Diff;
use crate::cluster::{Cluster, Object};
use crate::context::Context;
use crate::error::{Error, Kind as Exit, Result};
use crate::view::output::structured;

/// Compares.
///
/// # Errors
/// Status 1 if something differs, more if it could not be found out.
pub(crate) async fn run(context: &Context, args: &Diff) -> Result<()> {
    let cluster = context.cluster().await.map_err(beyond_one)?;
    let mut differs = false;
    for mut object in create::read(&args.filename)? {
        if object.object.metadata.namespace.is_none() {
            object.object.metadata.namespace = Some(cluster.namespace.clone());
        }
        let text = one(&cluster, &object).await.map_err(beyond_one)?;
        differs |= !text.is_empty();
        context.ui.out(&text)?;
    }
    if differs {
        Err(Error::silent(Exit::Status(1)))
    } else {
        Ok(())
    }
}

/// Status 1 means a difference here.
fn beyond_one(mut error: Error) -> Error {
    if error.kind == Exit::Other {
        error.kind = Exit::Usage;
    }
    error
}

async fn one(cluster: &Cluster, object: &Object) -> Result<String> {
    let before = cluster.live(object).await?;
    let after = cluster.apply_dry_run(object).await?;
    Ok(unified(&object.full_name(), before.as_ref(), &after))
}

/// A unified diff of two objects as people write them; empty if they are equal.
pub(crate) fn unified(name: &str, before: Option<&Object>, after: &Object) -> String {
    let yaml = |object: &Object| structured(&plain(object), crate::cli::StructuredOutput::Yaml);
    let (old, new) = (before.map(yaml).unwrap_or_default(), yaml(after));
    if old == new {
        return String::new();
    }
    similar::TextDiff::from_lines(&old, &new)
        .unified_diff()
        .context_radius(3)
        .header(&format!("live/{name}"), &format!("merged/{name}"))
        .to_string()
}
