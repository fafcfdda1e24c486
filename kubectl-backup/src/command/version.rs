//! `version`: plugin, operator, server.

use serde_json::json;

use crate::cli::Version;
use crate::cluster::Cluster;
use crate::context::Context;
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
            Ok(cluster) => {
                operators(&cluster, &mut text, &mut value).await;
                cluster.server_version().await
            }
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

/// The operators' images, where they may be seen.
async fn operators(cluster: &Cluster, text: &mut String, value: &mut serde_json::Value) {
    let mut images = vec![];
    for deployment in cluster.operators().await.unwrap_or_default() {
        let namespace = deployment.metadata.namespace.unwrap_or_default();
        let pod = deployment.spec.and_then(|s| s.template.spec);
        let image = pod
            .and_then(|p| p.containers.into_iter().next())
            .and_then(|c| c.image);
        images.push(format!(
            "{} (namespace {namespace})",
            image.unwrap_or_default()
        ));
    }
    if !images.is_empty() {
        text.push_str(&format!("Operator:        {}\n", images.join(", ")));
        value["operators"] = json!(images);
    }
}
