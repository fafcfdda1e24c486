//! `bundle`: what is needed to find a problem, in one text file, without secrets.

use std::fmt::Write;

use crds::secret;
use futures::StreamExt;
use serde_json::Value;

use crate::cli::{Bundle, StructuredOutput};
use crate::cluster::{Cluster, LogOptions};
use crate::context::Context;
use crate::error::{Error, Kind as Exit, Result};
use crate::view::output;
use crate::{description, select};

/// Gathers. What can't be read is a line that says so.
///
/// # Errors
/// The objects can't be listed; the file can't be written.
pub(crate) async fn run(context: &Context, args: &Bundle) -> Result<()> {
    let cluster = context.cluster().await?;
    let mut text = format!("# kubectl backup bundle\nplugin: v{}\n", crds::VERSION);
    let server = cluster.server_version().await.unwrap_or_else(|e| e.message);
    let _ = writeln!(text, "server: {server}\nnamespace: {}", cluster.namespace);
    operators(&cluster, &mut text).await;
    let objects = select::objects(
        context,
        &cluster,
        &args.scope.names,
        args.scope.all_namespaces,
        args.scope.selector.as_deref(),
    )
    .await?;
    for object in &objects {
        let _ = writeln!(text, "\n# {} in {}", object.full_name(), object.namespace());
        text.push_str(&description::of_object(context, &cluster, object).await);
        let mut value = object.to_value(false);
        redact(&mut value);
        let _ = writeln!(
            text,
            "---\n{}",
            output::structured(&value, StructuredOutput::Yaml)
        );
    }
    match &args.output_file {
        Some(path) => {
            std::fs::write(path, text)
                .map_err(|e| Error::new(Exit::Other, format!("{}: {e}", path.display())))?;
            context.ui.line(&path.display().to_string())
        }
        None => context.ui.out(&text),
    }
}

/// The operator's state and the end of its log.
async fn operators(cluster: &Cluster, text: &mut String) {
    let found = match cluster.operators().await {
        Ok(found) => found,
        Err(error) => {
            let _ = writeln!(text, "operator: {}", error.message);
            return;
        }
    };
    for deployment in found {
        let namespace = deployment.metadata.namespace.clone().unwrap_or_default();
        let ready = deployment
            .status
            .as_ref()
            .and_then(|s| s.ready_replicas)
            .unwrap_or(0);
        let _ = writeln!(text, "operator: {namespace}, {ready} ready");
        for pod in cluster.operator_pods(&namespace).await {
            let options = LogOptions {
                tail: Some(200),
                ..LogOptions::default()
            };
            let _ = writeln!(text, "\n# log of {namespace}/{pod}");
            if let Ok(log) = cluster.log(&namespace, &pod, &options).await {
                let lines: Vec<_> = log
                    .filter_map(|l| std::future::ready(l.ok()))
                    .collect()
                    .await;
                for line in lines {
                    let _ = writeln!(text, "{}", secret::mask(&line));
                }
            }
        }
    }
}

/// Masks variables whose names sound secret and passwords in URLs, and drops the copy kubectl keeps.
fn redact(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.remove("kubectl.kubernetes.io/last-applied-configuration");
            let name = fields
                .get("name")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned();
            for (key, inner) in fields.iter_mut() {
                if let (Value::String(text), true) =
                    (&*inner, key == "value" || secret::is_secret_field(key))
                {
                    let name = if key == "value" {
                        name.as_str()
                    } else {
                        key.as_str()
                    };
                    *inner = secret::value(name, text).into();
                } else {
                    redact(inner);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(redact),
        Value::String(text) => *text = secret::mask(text),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn nothing_secret_is_left() {
        let mut value = json!({
            "metadata": { "annotations": { "kubectl.kubernetes.io/last-applied-configuration": "S3cr3t" } },
            "spec": {
                "backupEnvs": [{ "name": "PASSWORD", "value": "S3cr3t" }, { "name": "HOST", "value": "db" }],
                "args": ["mysql://u:S3cr3t@db/x"], "password": "S3cr3t",
                "source": { "credentialsSecretRef": { "name": "shop-db", "passwordKey": "password" } },
            },
        });
        redact(&mut value);
        let text = value.to_string();
        assert!(!text.contains("S3cr3t"), "{text}");
        assert!(
            text.contains("shop-db") && text.contains("\"db\""),
            "{text}"
        );
    }
}
