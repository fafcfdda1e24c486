//! `export`: objects as one would write them, ready for a repository.

use crate::cli::{Export, StructuredOutput};
use crate::context::Context;
use crate::error::Result;
use crate::kind::ALL;
use crate::select;
use crate::view::output::structured;
use crate::view::written::as_written;

/// Exports.
///
/// # Errors
/// The first object that can't be read.
pub(crate) async fn run(context: &Context, args: &Export) -> Result<()> {
    let cluster = context.cluster().await?;
    let mut first = true;
    for object in select::many_in(context, &cluster, &args.targets, "export", None, &ALL).await? {
        let value = as_written(&object?);
        match args.output {
            StructuredOutput::Yaml if !first => context.ui.out("---\n")?,
            _ => {}
        }
        context.ui.out(&structured(&value, args.output))?;
        first = false;
    }
    Ok(())
}
