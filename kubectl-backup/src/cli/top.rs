//! Arguments of `top`.

use clap::Args;

/// `top`.
#[derive(Args, Debug)]
pub(crate) struct Top {
    /// In all namespaces
    #[arg(short = 'A', long)]
    pub(crate) all_namespaces: bool,
    /// Only objects with these labels
    #[arg(short = 'l', long, value_name = "LABELS")]
    pub(crate) selector: Option<String>,
}
