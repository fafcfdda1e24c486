//! `import`: a gobackup.yml as objects of gobackup.io, printed or applied.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use serde_json::Value;

use super::Context;
use crate::cli::{DryRun, Import, StructuredOutput};
use crate::error::{Error, Result};
use crate::import::{Imported, Wishes, import};
use crate::ui::Mark;
use crate::view::output::{list, structured};

/// Imports.
///
/// # Errors
/// A file that can't be read or translated; what the server refused.
pub(crate) async fn run(context: &Context, args: &Import) -> Result<()> {
    let text = read(&args.file)?;
    let mut files = BTreeMap::new();
    // As gobackup does: a .env beside the file counts, the environment counts more.
    let beside = args.file.with_file_name(".env");
    if args.file != Path::new("-") && beside.is_file() {
        files.extend(pairs(&read(&beside)?));
    }
    for file in &args.env_file {
        files.extend(pairs(&read(file)?));
    }
    let imported = import(
        &text,
        &Wishes {
            models: &args.model,
            claim: args.pvc.as_deref(),
            variables: &|name| crate::env::variable(name).or_else(|| files.get(name).cloned()),
        },
    )?;
    for note in &imported.notes {
        context.ui.warn(note);
    }
    if args.apply {
        return apply(context, args, &imported).await;
    }
    let mut shown = vec![];
    if args.show_secrets {
        shown.extend(imported.secrets.iter().cloned());
    } else {
        for secret in &imported.secrets {
            let keys: Vec<&str> = secret["stringData"]
                .as_object()
                .into_iter()
                .flat_map(serde_json::Map::keys)
                .map(String::as_str)
                .collect();
            context.ui.note(&format!(
                "secret {} ({}) is not printed: --apply creates it, --show-secrets prints it",
                name(secret),
                keys.join(", ")
            ));
        }
    }
    shown.extend(imported.objects);
    match args.output {
        StructuredOutput::Json => context
            .ui
            .out(&structured(&list(shown), StructuredOutput::Json)),
        StructuredOutput::Yaml => {
            let texts: Vec<String> = shown
                .iter()
                .map(|value| structured(value, StructuredOutput::Yaml))
                .collect();
            context.ui.out(&texts.join("---\n"))
        }
    }
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

fn read(path: &Path) -> Result<String> {
    let mut text = String::new();
    let named = |e: std::io::Error| Error::usage(format!("{}: {e}", path.display()));
    if path == Path::new("-") {
        std::io::stdin().read_to_string(&mut text).map_err(named)?;
        return Ok(text);
    }
    std::fs::read_to_string(path).map_err(named)
}

/// `NAME=VALUE` lines, with `export` and quotes as in a .env file.
fn pairs(text: &str) -> Vec<(String, String)> {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| {
            let line = line.strip_prefix("export ").unwrap_or(line);
            let (name, value) = line.split_once('=')?;
            let value = value.trim();
            let bare = ['"', '\'']
                .iter()
                .find_map(|q| value.strip_prefix(*q)?.strip_suffix(*q));
            Some((name.trim().to_owned(), bare.unwrap_or(value).to_owned()))
        })
        .collect()
}

async fn apply(context: &Context, args: &Import, imported: &Imported) -> Result<()> {
    let cluster = context.cluster().await?;
    let (client, server) = (
        args.dry_run == DryRun::Client,
        args.dry_run == DryRun::Server,
    );
    let suffix = match args.dry_run {
        DryRun::None => "",
        DryRun::Client => " (dry run)",
        DryRun::Server => " (server dry run)",
    };
    // What is referred to goes first.
    for object in imported.secrets.iter().chain(&imported.objects) {
        if !client {
            cluster.apply_value(object, server).await?;
        }
        let kind = object["kind"].as_str().unwrap_or_default().to_lowercase();
        let group = if kind == "secret" { "" } else { ".gobackup.io" };
        context
            .ui
            .line(&format!("{kind}{group}/{} applied{suffix}", name(object)))?;
    }
    context.ui.progress(
        Mark::Good,
        &format!(
            "{} secrets and {} objects in namespace {}",
            imported.secrets.len(),
            imported.objects.len(),
            cluster.namespace
        ),
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_dot_env() {
        let pairs = pairs("# x=y\nA=1\nexport B=\"two words\"\nC='$x'\n\nbare\n");
        let names: Vec<_> = pairs
            .iter()
            .map(|(k, v)| (k.as_str(), v.as_str()))
            .collect();
        assert_eq!(names, [("A", "1"), ("B", "two words"), ("C", "$x")]);
    }
}
