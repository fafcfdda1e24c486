//! Arguments of `man`.

use clap::Args;

/// `man`.
#[derive(Args, Debug)]
pub(crate) struct Man {
    /// Verb, such as `schedule next`
    pub(crate) verb: Vec<String>,
}
