//! `diff`: what applying a file would change, by a dry run of the server. Status 0 same, 1 differs.

use crate::build::file;
use crate::cli::Diff;
use crate::cluster::{Cluster, Object};
use crate::context::Context;
use crate::error::{Error, Kind as Exit, Result};
use crate::view::written::difference;

/// Compares.
///
/// # Errors
/// Status 1 if something differs, more if it could not be found out.
pub(crate) async fn run(context: &Context, args: &Diff) -> Result<()> {
    let cluster = context.cluster().await.map_err(beyond_one)?;
    let mut differs = false;
    for mut object in file::objects(&args.filename)? {
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
    Ok(difference(&object.full_name(), before.as_ref(), &after))
}
