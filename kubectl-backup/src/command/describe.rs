//! `describe`: shows an object, a run or a Restore, with all that stands behind it.

use crate::cli::Describe;
use crate::context::Context;
use crate::error::Result;
use crate::{description, select};

/// Describes.
///
/// # Errors
/// The object itself can't be read; of the run nothing is known any more.
pub(crate) async fn run(context: &Context, args: &Describe) -> Result<()> {
    let cluster = context.cluster().await?;
    if let Some(name) = args.name.as_deref().and_then(select::restore_name) {
        let object = select::restore(&cluster, name).await?;
        let text = description::of_restore(context, &cluster, &object).await;
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
