//! `download`: brings a stored artefact here, through a short-lived pod with the caller's rights.

mod bar;
mod binlogs;
mod transfer;

use crds::download::SEND;
use crds::parts::Decryption;

use self::transfer::{fetch, vacant};
use crate::cli::Download;
use crate::cluster::{Cluster, Object, duration};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::kind::MYSQL;
use crate::select;
use crate::store_pod::{self, Asked};

/// Downloads.
///
/// # Errors
/// No such artefact, a pod that may not be made or does not start, bytes that are not those that
/// were stored. Under the final name there is the whole file or nothing.
pub(crate) async fn run(context: &Context, args: &Download) -> Result<()> {
    let limit = duration("--timeout", &args.timeout)?;
    // A name that is known beforehand needs no pod to be refused.
    if let Some(path) = args.output_file.as_ref().filter(|path| path.is_file()) {
        vacant(args, path)?;
    }
    let cluster = context.cluster().await?;
    let (object, run) = artefact(&cluster, args).await?;
    if args.binlogs {
        let identity = identity(args)?;
        return binlogs::run(context, &cluster, args, &object, identity, limit).await;
    }
    let asked = Asked {
        object: &object,
        run: run.as_deref(),
        storage: args.storage.as_deref(),
        image: args.image.as_deref(),
        identity: identity(args)?,
        opens: !args.raw,
        clients: false,
        words: words(args, run.as_deref()),
        measured: *object.kind != MYSQL && !args.raw,
    };
    store_pod::within(context, &cluster, asked, limit, async |source| {
        fetch(context, args, &object, source).await
    })
    .await
}

/// The object, and the run if one was named.
async fn artefact(cluster: &Cluster, args: &Download) -> Result<(Object, Option<String>)> {
    let (object, run) = select::object_or_run(cluster, &args.name).await?;
    if *object.kind == MYSQL && args.storage.is_some() {
        return Err(Error::usage(
            "--storage goes with a Backup or CronBackup of gobackup.io",
        ));
    }
    Ok((object, run.map(|run| run.name)))
}

fn identity(args: &Download) -> Result<Option<Decryption>> {
    let secret = args.decrypt_secret.as_deref();
    secret.map(crate::build::restore::decryption).transpose()
}

fn words(args: &Download, run: Option<&str>) -> Vec<String> {
    let mut words: Vec<String> = SEND.map(str::to_owned).into();
    let mut pair = |flag: &str, value: &str| words.extend([flag.to_owned(), value.to_owned()]);
    match (&args.key, run) {
        (Some(key), _) => pair("--key", key),
        (None, Some(run)) => pair("--run", run),
        (None, None) => {}
    }
    if args.raw {
        words.push("--raw".to_owned());
    }
    words
}
