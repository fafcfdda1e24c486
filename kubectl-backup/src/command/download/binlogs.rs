//! The server's own binary logs from what is stored: plain files, each compared before it gets its name.

use std::path::Path;
use std::time::Duration;

use crds::download::{BINLOG_FILES, BinlogFiles};
use crds::parts::Decryption;

use super::transfer::fetch;
use crate::cli::Download;
use crate::cluster::{Cluster, Object};
use crate::command::span;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::kind::MYSQL;
use crate::store_pod::{self, Asked, Source, start};

/// From when on, if nothing is said: all that is stored.
const ALL: &str = "1970-01-01T00:00:01Z";

/// Downloads them.
///
/// # Errors
/// Nothing is stored, or not what was stored; a pod that may not be made or does not start.
pub(super) async fn run(
    context: &Context,
    cluster: &Cluster,
    args: &Download,
    object: &Object,
    identity: Option<Decryption>,
    limit: Duration,
) -> Result<()> {
    if *object.kind != MYSQL {
        return Err(Error::usage(format!(
            "binary logs are kept of MysqlBackups; {} is none",
            object.full_name()
        )));
    }
    span::check(args.from.as_deref(), args.to.as_deref())?;
    let place = args.output_file.as_deref();
    if place.is_some_and(|path| path == Path::new("-") || !path.is_dir()) {
        return Err(Error::usage(
            "-O has to be a directory with --binlogs: they are several files",
        ));
    }
    let mut words: Vec<String> = BINLOG_FILES.map(str::to_owned).into();
    let from = args.from.as_deref().unwrap_or(ALL);
    words.extend(["--from".to_owned(), from.to_owned()]);
    if let Some(to) = &args.to {
        words.extend(["--to".to_owned(), to.clone()]);
    }
    let asked = Asked {
        object,
        run: None,
        storage: None,
        image: args.image.as_deref(),
        identity,
        opens: true,
        clients: false,
        words,
        measured: false,
    };
    let fetched = store_pod::within(context, cluster, asked, limit, async |source| {
        files(context, args, object, source).await
    })
    .await;
    fetched.map_err(|error| span::hinted(error, object))
}

async fn files(
    context: &Context,
    args: &Download,
    object: &Object,
    source: &Source<'_>,
) -> Result<()> {
    let mut process = start(source, &source.words).await?;
    let line = process.first_line().await?;
    let Ok(BinlogFiles { files, warnings }) = serde_json::from_str(&line) else {
        return Err(process.failure(source).await);
    };
    for warning in &warnings {
        context.ui.warn(&crds::secret::mask(warning));
    }
    if files.is_empty() {
        context
            .ui
            .note("No binary log that was asked for is stored.");
    }
    for file in files {
        // The name goes into a path here: it is a server's, and stored where others may write.
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
        if file.name.starts_with('.') || !file.name.chars().all(plain) {
            return Err(Error::usage(format!(
                "{:?} is no name for a file here",
                file.name
            )));
        }
        let expected = format!("{}:{}", file.length, file.sha256);
        let more = [
            "--file".to_owned(),
            file.name,
            "--expect".to_owned(),
            expected,
        ];
        let one = Source {
            cluster: source.cluster,
            namespace: source.namespace.clone(),
            pod: source.pod.clone(),
            words: [source.words.clone(), more.to_vec()].concat(),
            measured: false,
        };
        fetch(context, args, object, &one).await?;
    }
    Ok(())
}
