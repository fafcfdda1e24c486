//! `binlog`: the transactions of a span of time as text, from the binary logs that are stored, decoded in a short-lived pod with
//! the caller's rights.

use crds::download::{BINLOG, BinlogHeader, TextPart};
use crds::time::{from_k8s, rfc3339};
use tokio::io::AsyncReadExt as _;

use crate::cli::Binlog;
use crate::cluster::duration;
use crate::command::span;
use crate::context::Context;
use crate::error::{Error, Kind as Exit, Result};
use crate::kind::MYSQL;
use crate::select::{self, NamedRun};
use crate::store_pod::{self, Asked, Process, Source, start};
use crate::text::counted;
use crate::ui::Mark;

/// Bytes of a piece of text at most.
const PART: u64 = 1 << 24;

/// Shows them.
///
/// # Errors
/// No binary logs are stored, or not what was stored; a pod that may not be made or does not start.
pub(crate) async fn run(context: &Context, args: &Binlog) -> Result<()> {
    let limit = duration("--timeout", &args.timeout)?;
    check(args)?;
    let cluster = context.cluster().await?;
    let (object, run) = select::object_or_run(&cluster, &args.name).await?;
    if *object.kind != MYSQL {
        return Err(Error::usage(format!(
            "binary logs are kept of MysqlBackups; {} is none",
            object.full_name()
        )));
    }
    let from = from(args, run.as_ref())?;
    let decryption = args.decrypt_secret.as_deref();
    let asked = Asked {
        object: &object,
        run: run.as_ref().map(|run| run.name.as_str()),
        storage: None,
        image: args.image.as_deref(),
        identity: decryption
            .map(crate::build::restore::decryption)
            .transpose()?,
        opens: true,
        clients: true,
        words: words(args, from),
        measured: false,
    };
    let shown = store_pod::within(context, &cluster, asked, limit, async |source| {
        show(context, source).await
    })
    .await;
    shown.map_err(|error| span::hinted(error, &object))
}

fn check(args: &Binlog) -> Result<()> {
    span::check(args.from.as_deref(), args.to.as_deref())?;
    let table = args.table.as_deref();
    let named = |text: &str| {
        let parts = text.split_once('.');
        parts.is_some_and(|(database, table)| !database.is_empty() && !table.is_empty())
    };
    if let Some(text) = table.filter(|text| !named(text)) {
        return Err(Error::usage(format!(
            "invalid --table {text:?}: write it as DATABASE.TABLE"
        )));
    }
    if args.database.as_deref() == Some("") {
        return Err(Error::usage("invalid --database: it is empty"));
    }
    Ok(())
}

/// From when on: as asked for, or from the run's start.
fn from(args: &Binlog, run: Option<&NamedRun>) -> Result<String> {
    let started = run.and_then(|named| {
        let run = named.run.as_ref()?;
        run.snapshot_time.as_ref().or(run.start_time.as_ref())
    });
    match (&args.from, started) {
        (Some(from), _) => Ok(from.clone()),
        (None, Some(at)) => Ok(rfc3339(from_k8s(at))),
        (None, None) => Err(Error::usage(
            "--from is needed: the first second to show, such as 2026-01-31T02:00:00Z",
        )),
    }
}

fn words(args: &Binlog, from: String) -> Vec<String> {
    let mut words: Vec<String> = BINLOG.map(str::to_owned).into();
    words.extend(["--from".to_owned(), from]);
    let more = [
        ("--to", &args.to),
        ("--database", &args.database),
        ("--table", &args.table),
    ];
    for (flag, value) in more {
        if let Some(value) = value {
            words.extend([flag.to_owned(), value.clone()]);
        }
    }
    words
}

async fn show(context: &Context, source: &Source<'_>) -> Result<()> {
    let mut process = start(source, &source.words).await?;
    let line = process.first_line().await?;
    let Ok(header) = serde_json::from_str::<BinlogHeader>(&line) else {
        return Err(process.failure(source).await);
    };
    for warning in &header.warnings {
        context.ui.warn(&crds::secret::mask(warning));
    }
    let count = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    context.ui.progress(
        Mark::Action,
        &format!(
            "{} of {} are compared and decoded",
            counted(count(header.transactions), "transaction"),
            counted(count(header.segments), "segment"),
        ),
    );
    let Some(shown) = text(context, source, &mut process).await? else {
        process.broken(source).await?;
        return Err(Error::new(
            Exit::Unreachable,
            format!(
                "the stream from pod {} broke: what was shown is not all",
                source.pod
            ),
        )
        .hint("run the same command again"));
    };
    match shown {
        0 => context
            .ui
            .note("No transaction that was asked for is stored."),
        shown => context.ui.hint(&format!(
            "{} shown; --before-gtid GTID of restore ends just before one",
            counted(count(shown), "transaction")
        )),
    }
    Ok(())
}

/// The text, part by part; gives the number of transactions, or nothing if the stream broke.
async fn text(
    context: &Context,
    source: &Source<'_>,
    process: &mut Process,
) -> Result<Option<u64>> {
    let mut bytes = vec![];
    loop {
        let line = process.first_line().await?;
        let Ok(part) = serde_json::from_str::<TextPart>(&line) else {
            return Ok(None);
        };
        if part.length == 0 {
            return Ok(Some(part.transactions.unwrap_or_default()));
        }
        if part.length > PART {
            return Err(Error::new(
                Exit::Other,
                format!("pod {} sent a part of {} bytes", source.pod, part.length),
            ));
        }
        bytes.resize(usize::try_from(part.length).unwrap_or_default(), 0);
        if process.out.read_exact(&mut bytes).await.is_err() {
            return Ok(None);
        }
        context.ui.bytes(&bytes)?;
    }
}
