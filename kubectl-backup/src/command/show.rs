//! `show`: what is in a stored artefact, by its manifest alone, read through a short-lived pod with the caller's rights.

use crds::contents::{CONTENTS, Contents};

use crate::cli::Show;
use crate::cluster::duration;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::kind::MYSQL;
use crate::select;
use crate::store_pod::{self, Asked, Source, start};
use crate::view::contents::{summary, table};
use crate::view::output::structured;

/// Shows it.
///
/// # Errors
/// No such artefact; a pod that may not be made or does not start.
pub(crate) async fn run(context: &Context, args: &Show) -> Result<()> {
    let limit = duration("--timeout", &args.timeout)?;
    let cluster = context.cluster().await?;
    let (object, run) = select::object_or_run(&cluster, &args.name).await?;
    if *object.kind == MYSQL && args.storage.is_some() {
        return Err(Error::usage(
            "--storage goes with a Backup or CronBackup of gobackup.io",
        ));
    }
    let run = run.map(|run| run.name);
    let asked = Asked {
        object: &object,
        run: run.as_deref(),
        storage: args.storage.as_deref(),
        image: args.image.as_deref(),
        identity: None,
        // A manifest is not encrypted.
        opens: false,
        clients: false,
        words: words(args.key.as_deref(), run.as_deref()),
        measured: false,
    };
    let contents = store_pod::within(context, &cluster, asked, limit, read).await?;
    for warning in &contents.warnings {
        context.ui.warn(&crds::secret::mask(warning));
    }
    if let Some(format) = args.output {
        let value = serde_json::to_value(&contents).unwrap_or_default();
        return context.ui.out(&structured(&value, format));
    }
    context.ui.table(&table(&contents), false)?;
    context.ui.note(&summary(&contents));
    Ok(())
}

fn words(key: Option<&str>, run: Option<&str>) -> Vec<String> {
    let mut words: Vec<String> = CONTENTS.map(str::to_owned).into();
    match (key, run) {
        (Some(key), _) => words.extend(["--key".to_owned(), key.to_owned()]),
        (None, Some(run)) => words.extend(["--run".to_owned(), run.to_owned()]),
        (None, None) => {}
    }
    words
}

async fn read(source: &Source<'_>) -> Result<Contents> {
    let mut process = start(source, &source.words).await?;
    let line = process.first_line().await?;
    match serde_json::from_str(&line) {
        Ok(contents) => Ok(contents),
        Err(_) => Err(process.failure(source).await),
    }
}
