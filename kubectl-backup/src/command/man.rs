//! `man`: the manual page of the program or of a verb.

use crate::cli::Man;
use crate::context::Context;
use crate::error::{Error, Result};

/// Prints the manual page of the program or of a verb.
///
/// # Errors
/// No such verb.
pub(crate) fn run(context: &Context, args: &Man) -> Result<()> {
    let mut root = crate::cli::command();
    root.build();
    let mut command = &root;
    for verb in &args.verb {
        command = command
            .find_subcommand(verb)
            .ok_or_else(|| Error::usage(format!("no verb {verb:?}")))?;
    }
    let mut page = vec![];
    clap_mangen::Man::new(command.clone()).render(&mut page)?;
    context.ui.out(&String::from_utf8_lossy(&page))
}
