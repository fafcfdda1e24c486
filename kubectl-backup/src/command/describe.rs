//! `describe`: shows an object of any kind or a run, with all that stands behind it.

use crate::cli::Describe;
use crate::context::Context;
use crate::error::Result;
use crate::kind::RESTORE;
use crate::{description, select};

/// Describes.
///
/// # Errors
/// The object itself can't be read; of the run nothing is known any more.
pub(crate) async fn run(context: &Context, args: &Describe) -> Result<()> {
    let cluster = context.cluster().await?;
    if let Some(target) = args.name.as_deref().and_then(select::unscheduled) {
        let object = cluster.find(&target).await?;
        let text = if *object.kind == RESTORE {
            description::of_restore(context, &cluster, &object).await
        } else {
            description::of_endpoint(context, &cluster, &object).await
        };
        return context.ui.out(&text);
    }
    let (object, run) = match &args.name {
        Some(name) => select::object_or_run(&cluster, name).await?,
        None => (
            select::one(context, &cluster, None, "describe").await?,
            None,
        ),
    };
    let text = match run {
        Some(run) => description::of_run(context, &cluster, run).await?,
        None => description::of_object(context, &cluster, &object).await,
    };
    context.ui.out(&text)
}
