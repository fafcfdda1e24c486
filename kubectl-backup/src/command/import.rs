//! `import`: a gobackup.yml as objects of gobackup.io, printed or applied.

use std::collections::BTreeMap;
use std::path::Path;

use crate::build::file;
use crate::cli::{Import, StructuredOutput};
use crate::context::Context;
use crate::error::{Error, Kind, Result};
use crate::migration::import::apply::{apply, name};
use crate::migration::import::variables::pairs;
use crate::migration::import::{ImportOptions, Imported, import};
use crate::text::counted;
use crate::view::output::{list, structured};

/// Imports.
///
/// # Errors
/// A file that can't be read or translated; what the server refused; Backups that can't run.
pub(crate) async fn run(context: &Context, args: &Import) -> Result<()> {
    let text = file::text(&args.file)?;
    let mut files = BTreeMap::new();
    // As gobackup does: a .env beside the file counts, the environment counts more.
    let beside = args.file.with_file_name(".env");
    if args.file != Path::new("-") && beside.is_file() {
        files.extend(pairs(&file::text(&beside)?));
    }
    for file in &args.env_file {
        files.extend(pairs(&file::text(file)?));
    }
    let imported = import(
        &text,
        &ImportOptions {
            models: &args.model,
            claim: args.pvc.as_deref(),
            adopt_state: args.adopt_state,
            variables: &|name| crate::env::variable(name).or_else(|| files.get(name).cloned()),
        },
    )?;
    for note in &imported.notes {
        context.ui.warn(note);
    }
    if args.apply {
        apply(context, args, &imported).await?;
    } else {
        print(context, args, &imported)?;
    }
    if imported.stuck.is_empty() {
        return Ok(());
    }
    let names = Vec::from_iter(imported.stuck);
    Err(Error::new(
        Kind::Other,
        format!(
            "{} can't run as {}: {}",
            counted(names.len(), "backup"),
            if names.len() == 1 {
                "it is"
            } else {
                "they are"
            },
            names.join(", ")
        ),
    )
    .hint("correct what the warnings above name, in the file or in the objects"))
}

fn print(context: &Context, args: &Import, imported: &Imported) -> Result<()> {
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
    shown.extend(imported.objects.iter().cloned());
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
