//! `version`: plugin, server.

use serde_json::json;

use super::Context;
use crate::cli::Version;
use crate::error::Result;
use crate::view::output::structured;

/// Prints versions. A server that does not answer is said, and sets the exit status.
///
/// # Errors
/// The server can't be asked.
pub(crate) async fn run(context: &Context, args: &Version) -> Result<()> {
    let zone_data = crds::schedule::ZONE_DATA_VERSION;
    let mut value = json!({
        "clientVersion": crds::VERSION,
        "timeZoneData": zone_data,
    });
    let mut text = format!(
        "Plugin:          v{}\nTime zone data:  {zone_data}\n",
        crds::VERSION
    );
    let mut failed = None;
    if !args.client {
        let server = match context.cluster().await {
            Ok(cluster) => cluster.server_version().await,
            Err(error) => Err(error),
        };
        match server {
            Ok(server) => {
                text.push_str(&format!("Kubernetes:      {server}\n"));
                value["serverVersion"] = json!(server);
            }
            Err(error) => failed = Some(error),
        }
    }
    match args.output {
        Some(format) => context.ui.out(&structured(&value, format))?,
        None => context.ui.out(&text)?,
    }
    failed.map_or(Ok(()), Err)
}
