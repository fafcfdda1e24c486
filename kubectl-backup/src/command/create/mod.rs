//! `create`: makes objects from flags or from files, and says what is risky about them.

mod wizard;

use std::path::Path;
use std::time::Duration;

use crds::gobackup::alone;
use kube::api::DynamicObject;

use crate::build;
use crate::change::Tally;
use crate::cli::{
    Change, Create, CreateKind, CreateMysql, DryRun, NameFlag, OutcomeFlag, StructuredOutput,
};
use crate::cluster::{Cluster, Object, fresh_id};
use crate::context::Context;
use crate::error::{Error, Kind as Exit, Result};
use crate::kind::{DATABASE, GOBACKUP, Kind, MYSQL, RESTORE, STORAGE};
use crate::presence;
use crate::ui::Mark;
use crate::view::output::structured;
use crate::view::preview;
use crate::waiting::request::{ask, wait_for_answer};

/// How long the try of database and store may take.
const PROBE_LIMIT: Duration = Duration::from_secs(180);

/// Creates.
///
/// # Errors
/// A value that is not valid, before anything is sent; what the server refused.
pub(crate) async fn run(context: &Context, args: Create) -> Result<()> {
    match (args.kind, args.filename) {
        (Some(CreateKind::Mysql(args)), _) => mysql(context, &args).await,
        (Some(CreateKind::Backup(args)), _) => {
            let built = build::gobackup::backup(&GOBACKUP, &args)?;
            plain(context, &GOBACKUP, built, &args.change, &args.writer).await
        }
        (Some(CreateKind::Database(args)), _) => {
            let built = build::gobackup::database(&DATABASE, &args)?;
            plain(context, &DATABASE, built, &args.change, &args.writer).await
        }
        (Some(CreateKind::Storage(args)), _) => {
            let built = build::gobackup::storage(&STORAGE, &args)?;
            plain(context, &STORAGE, built, &args.change, &args.writer).await
        }
        (None, Some(path)) => file(context, &path, &args.change, &args.writer).await,
        (None, None) => Err(Error::usage("create needs a kind, or -f FILE")
            .hint("kubectl backup create mysql --help")),
    }
}

/// Creates what was put together.
async fn plain(
    context: &Context,
    kind: &'static Kind,
    (value, warnings): (serde_json::Value, Vec<String>),
    change: &Change,
    writer: &NameFlag,
) -> Result<()> {
    for warning in warnings {
        context.ui.warn(&warning);
    }
    let object = serde_json::from_value(value).map_err(|e| Error::new(Exit::Other, e))?;
    let object = Object { kind, object };
    demand(context, &object, change).await?;
    let created = send(context, object, change, writer).await?;
    context.changed(&created, "created", change)
}

/// Refuses an object that names what is not there. A dry run of the client looks at nothing.
async fn demand(context: &Context, object: &Object, change: &Change) -> Result<()> {
    if change.dry_run == DryRun::Client {
        return Ok(());
    }
    let cluster = context.cluster().await?;
    presence::demand(context, &cluster, object).await
}

/// Asks, shows what came out of it, and creates it if that is right.
async fn interactive(context: &Context, args: &CreateMysql) -> Result<()> {
    let line = wizard::arguments(context, args.name.as_deref()).await?;
    let words = std::iter::once("kubectl-backup".to_owned()).chain(line.iter().cloned());
    let cli = crate::cli::parse(words).map_err(Error::usage)?;
    let Some(crate::cli::Verb::Create(Create {
        kind: Some(CreateKind::Mysql(mut typed)),
        ..
    })) = cli.verb
    else {
        return Err(wizard::cancelled());
    };
    let built = build::mysql::mysql(&typed)?;
    let value = serde_json::to_value(&built).map_err(|e| Error::new(Exit::Other, e))?;
    context.ui.note("");
    context
        .ui
        .note(structured(&value, StructuredOutput::Yaml).trim_end());
    context.ui.note("");
    context.ui.note("The same without questions:");
    context.ui.note(&wizard::typed(&line));
    if !context.ui.agree("Create it?")? {
        return Err(wizard::cancelled());
    }
    typed.change = args.change.clone();
    typed.writer = args.writer.clone();
    let created = Box::pin(flags(context, &typed)).await?;
    if args.change.dry_run != DryRun::None || args.change.output.is_some() {
        return Ok(());
    }
    if context.ui.agree("Try database and store now?")? {
        return tried(context, &created).await;
    }
    let name = created.kind.short_name(&created.name());
    context
        .ui
        .hint(&format!("kubectl backup doctor --probe {name}"));
    Ok(())
}

/// Has the operator log in to database and store, and says what came of it.
async fn tried(context: &Context, created: &Object) -> Result<()> {
    let cluster = context.cluster().await?;
    let options = crds::request::Options::default();
    let action = crds::request::Action::Probe;
    let id = ask(context, &cluster, created, action, options).await?;
    let name = created.kind.short_name(&created.name());
    let answer = wait_for_answer(context, &cluster, created, &id, PROBE_LIMIT).await;
    // The object is there whatever came out, so the way on is to try it again.
    let answer = answer.map_err(|e| e.hint(format!("kubectl backup doctor --probe {name}")))?;
    context.ui.progress(Mark::Good, &answer.message);
    Ok(())
}

async fn mysql(context: &Context, args: &CreateMysql) -> Result<()> {
    if args.interactive {
        return interactive(context, args).await;
    }
    flags(context, args).await.map(|_| ())
}

/// Creates what the flags say.
async fn flags(context: &Context, args: &CreateMysql) -> Result<Object> {
    let built = build::mysql::mysql(args)?;
    for warning in crds::validate::mysql_backup_warnings(&built.spec) {
        context.ui.warn(&warning);
    }
    let value = serde_json::to_value(&built).map_err(|e| Error::new(Exit::Other, e))?;
    let object: DynamicObject =
        serde_json::from_value(value).map_err(|e| Error::new(Exit::Other, e))?;
    let mut object = Object {
        kind: &MYSQL,
        object,
    };
    if args.run_now && !args.change.dry_run.eq(&DryRun::Client) {
        let id = fresh_id(args.name.as_deref().unwrap_or_default());
        let request =
            crds::request::Request::new(crds::request::Action::Backup, &id, "", context.now());
        let annotations = object.object.metadata.annotations.get_or_insert_default();
        annotations.insert(
            crds::request::Request::annotation_key(&request.id),
            request.annotation_value(),
        );
    }
    demand(context, &object, &args.change).await?;
    let created = send(context, object, &args.change, &args.writer).await?;
    context.changed(&created, "created", &args.change)?;
    if args.change.output.is_none() && !args.suspend {
        context
            .ui
            .note(&preview::next_run(&created, context.zone, context.now()));
    }
    Ok(created)
}

/// Sends an object, or gives it back as it would be sent.
async fn send(
    context: &Context,
    mut object: Object,
    change: &Change,
    writer: &NameFlag,
) -> Result<Object> {
    if change.dry_run == DryRun::Client {
        // The namespace is part of the answer; reading it sends nothing.
        if object.object.metadata.namespace.is_none()
            && let Ok(cluster) = context.cluster().await
        {
            object.object.metadata.namespace = Some(cluster.namespace);
        }
        return Ok(object);
    }
    let cluster = context.cluster().await?;
    place(&cluster, context, &mut object)?;
    cluster
        .create(&object, &writer.name, change.dry_run == DryRun::Server)
        .await
}

/// Puts the object into the namespace of the command line.
fn place(cluster: &Cluster, context: &Context, object: &mut Object) -> Result<()> {
    let own = object.object.metadata.namespace.clone();
    match (own, &context.connection.namespace) {
        (Some(own), Some(flag)) if own != *flag => Err(Error::usage(format!(
            "the namespace of {} ({own}) is not that of --namespace ({flag})",
            object.full_name()
        ))),
        (Some(_), _) => Ok(()),
        (None, _) => {
            object.object.metadata.namespace = Some(cluster.namespace.clone());
            Ok(())
        }
    }
}

async fn file(context: &Context, path: &Path, change: &Change, writer: &NameFlag) -> Result<()> {
    let objects = build::file::objects(path)?;
    let mut tally = Tally::default();
    for object in &objects {
        check(context, object)?;
    }
    for object in objects {
        let outcome = match send(context, object, change, writer).await {
            Ok(created) => {
                missing(context, &created, change).await;
                context.changed(&created, "created", change).map(|()| true)
            }
            Err(error) => Err(error),
        };
        tally.add(context, outcome)?;
    }
    tally.end(OutcomeFlag::default())
}

/// What can be checked before anything is sent. Objects of gobackup.io apply as they did before us:
/// what they lack is said.
fn check(context: &Context, object: &Object) -> Result<()> {
    let refused = |problems: &[crds::validate::Problem]| match problems {
        [] => Ok(()),
        some => Err(Error::usage(format!(
            "{}: {}",
            object.full_name(),
            crds::validate::join(some)
        ))),
    };
    let (name, spec) = (object.name(), object.spec().clone());
    // A spec that does not fit its type is the server's to refuse, with its own words.
    let said = if *object.kind == MYSQL {
        let Ok(spec) = serde_json::from_value(spec) else {
            return Ok(());
        };
        refused(&crds::validate::mysql_backup(&spec))?;
        crds::validate::mysql_backup_warnings(&spec)
    } else if *object.kind == RESTORE {
        let Ok(spec) = serde_json::from_value(spec) else {
            return Ok(());
        };
        refused(&crds::validate::restore(&spec))?;
        vec![]
    } else if *object.kind == DATABASE {
        serde_json::from_value(spec)
            .map_or_else(|_| vec![], |spec| alone::database(&name, &spec).said())
    } else if *object.kind == STORAGE {
        serde_json::from_value(spec)
            .map_or_else(|_| vec![], |spec| alone::storage(&name, &spec).said())
    } else {
        serde_json::from_value(object.to_value(false))
            .map_or_else(|_| vec![], |body| alone::backup(&name, "", &body).said())
    };
    for warning in said {
        context
            .ui
            .warn(&format!("{}: {warning}", object.full_name()));
    }
    Ok(())
}

/// Says what an object of a file names that is not there: it may be made a moment later.
async fn missing(context: &Context, object: &Object, change: &Change) {
    if change.dry_run == DryRun::Client {
        return;
    }
    if let Ok(cluster) = context.cluster().await {
        for text in presence::of_new(context, &cluster, object).await {
            let name = object.full_name();
            context.ui.warn(&format!("{name}: {text} yet"));
        }
    }
}
