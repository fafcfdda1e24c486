//! `backup-operator`.

use clap::Parser as _;
use operator::args::Args;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    operator::run::run(Args::parse()).await
}
