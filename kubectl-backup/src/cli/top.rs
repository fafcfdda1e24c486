//! Arguments of `top`.

use clap::Args;

/// `top`.
#[derive(Args, Debug)]
pub(crate) struct Top {
    /// Objects with these labels
    #[arg(short = 'l', long, value_name = "LABELS")]
    pub(crate) selector: Option<String>,
}
