//! `download`: brings a stored artefact here, through a short-lived pod with the caller's rights.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crds::backup::BackupBody;
use crds::download::{Header, PROGRAM, SEND, Trailer};
use crds::gobackup::plan::{Credential, Storage};
use crds::gobackup::{References, destination, wanted_to_read};
use crds::mysql_backup::Decryption;
use crds::storage::StorageSpec;
use kube::api::AttachedProcess;
use kube::core::DynamicObject;
use sha2::{Digest, Sha256};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};

use super::Context;
use super::run_now::fresh_id;
use super::wait::find_run;
use crate::cli::Download;
use crate::cluster::{Cluster, Object, duration};
use crate::download_pod;
use crate::error::{Error, Kind as Exit, Result};
use crate::kind::{MYSQL, STORAGE, Target};
use crate::ui::Mark;
use crate::view::duration::bytes;
use crate::view::pod::{Stage, stage};

/// How often a broken stream is taken up again without having brought anything.
const TRIES: u32 = 5;

/// Downloads.
///
/// # Errors
/// No such artefact, a pod that may not be made or does not start, bytes that are not those that
/// were stored. Under the final name there is the whole file or nothing.
pub(crate) async fn run(context: &Context, args: &Download) -> Result<()> {
    let limit = duration("--timeout", &args.timeout)?;
    let cluster = context.cluster().await?;
    let (object, run) = artefact(&cluster, args).await?;
    let image = image(&cluster, args, &object, run.as_deref()).await?;
    let id = fresh_id(&object.uid());
    let short: String = object.name().chars().take(40).collect();
    let name = format!(
        "{}-download-{}",
        short.trim_end_matches(['-', '.']),
        id.chars().take(8).collect::<String>()
    );
    let archive = *object.kind != MYSQL;
    let pod = if archive {
        let parts = stored(&cluster, &object, args).await?;
        download_pod::archive(&object, &name, &image, parts)?
    } else {
        let identity = identity(args)?;
        let storage = storage(&cluster, &object).await?;
        download_pod::dump(
            &object,
            &name,
            &image,
            !args.raw,
            identity.as_ref(),
            storage,
        )?
    };
    let source = Source {
        cluster: &cluster,
        namespace: object.namespace(),
        pod: name.clone(),
        words: words(args, run.as_deref()),
        measured: archive && !args.raw,
    };
    let mut interrupt = Box::pin(super::interrupted());
    // Created or not, from here on the pod is removed whatever happens.
    let ended = tokio::select! {
        ended = async {
            cluster.create_pod(&source.namespace, &pod).await?;
            context.ui.progress(Mark::Action, &format!("pod {name} (image {image})"));
            started(context, &source, limit).await?;
            fetch(context, args, &object, &source).await
        } => ended,
        kind = &mut interrupt => Err(Error::silent(kind)),
    };
    if let Err(error) = cluster.delete_pod(&source.namespace, &name).await {
        context.ui.error(&error);
        context.ui.warn(&format!(
            "pod {name} is still there: kubectl -n {} delete pod {name}",
            source.namespace
        ));
    }
    ended
}

/// The object, and the run if one was named.
async fn artefact(cluster: &Cluster, args: &Download) -> Result<(Object, Option<String>)> {
    let found = match cluster.find(&Target::parse(&args.name)?).await {
        Ok(object) => (object, None),
        Err(error) if error.kind == Exit::NotFound => {
            let (object, run) = find_run(cluster, &args.name).await?;
            (object, Some(run.name))
        }
        Err(error) => return Err(error),
    };
    if *found.0.kind == MYSQL && args.storage.is_some() {
        return Err(Error::usage(
            "--storage goes with a Backup or CronBackup of gobackup.io",
        ));
    }
    Ok(found)
}

/// What a pod needs to read the archives of a Backup, by what it refers to now.
async fn stored(
    cluster: &Cluster,
    object: &Object,
    args: &Download,
) -> Result<download_pod::Archive> {
    let unreadable = |e| {
        let name = object.full_name();
        Error::new(Exit::Other, format!("{name} can't be read: {e}"))
    };
    let body: BackupBody =
        serde_json::from_value(object.object.data.clone()).map_err(unreadable)?;
    let namespace = object.namespace();
    let mut references = References::default();
    for key in wanted_to_read(&body) {
        if let Some(spec) = cluster.referred(&namespace, &key).await? {
            references.insert(key, &spec);
        }
    }
    let name = object.name();
    let storage = args.storage.as_deref();
    let mut plan = crds::gobackup::stored(&name, &namespace, &body, &references, storage).map_err(
        |unresolved| {
            Error::new(
                Exit::NotFound,
                format!("{}: {}", object.full_name(), unresolved.message()),
            )
        },
    )?;
    if args.raw {
        // Stored bytes need no key.
        plan.encrypt = None;
    }
    Ok(download_pod::Archive {
        files: crds::gobackup::files(plan),
        job: body.spec.and_then(|s| s.job).unwrap_or_default(),
        identity: identity(args)?,
    })
}

fn identity(args: &Download) -> Result<Option<Decryption>> {
    let secret = args.decrypt_secret.as_deref();
    secret.map(crate::build_restore::decryption).transpose()
}

/// The Storage that the object stores on, if it names one: read with the caller's rights, its
/// Secrets are mounted.
async fn storage(cluster: &Cluster, object: &Object) -> Result<Option<Storage<Credential>>> {
    let Some(name) = object.spec()["destination"]["storageRef"]["name"].as_str() else {
        return Ok(None);
    };
    let namespace = object.namespace();
    let wanted = Object {
        kind: &STORAGE,
        object: DynamicObject::new(name, &STORAGE.api_resource()).within(&namespace),
    };
    let found = cluster.live(&wanted).await?;
    let spec: Option<StorageSpec> =
        found.map(|f| serde_json::from_value(f.spec().clone()).unwrap_or_default());
    destination::storage(
        "spec.destination.storageRef",
        &namespace,
        name,
        spec.as_ref(),
    )
    .map(|stored| Some(stored.storage))
    .map_err(|unresolved| {
        let kind = if unresolved.missing.is_empty() {
            Exit::Other
        } else {
            Exit::NotFound
        };
        Error::new(
            kind,
            format!("{}: {}", object.full_name(), unresolved.message()),
        )
    })
}

/// The image of the run's own Job if it is still there, else what the operator gives its runs.
async fn image(
    cluster: &Cluster,
    args: &Download,
    object: &Object,
    run: Option<&str>,
) -> Result<String> {
    if let Some(image) = &args.image {
        return Ok(image.clone());
    }
    let newest = super::wait::newest(object).map(|run| run.name);
    if let Some(run) = run.map(str::to_owned).or(newest)
        && let Ok(Some(job)) = cluster.job(&object.namespace(), &run).await
    {
        let pod = job.spec.and_then(|s| s.template.spec);
        // In a pod of a client's image it is the init container's.
        let containers = pod.map(|p| [p.containers, p.init_containers.unwrap_or_default()]);
        let containers = containers.into_iter().flatten().flatten();
        let mut images = containers.filter_map(|c| c.image);
        // A user's own image need not hold our program.
        if let Some(image) = images.find(|i| i.contains("backup-runner")) {
            return Ok(image);
        }
    }
    cluster.runner_image().await.ok_or_else(|| {
        Error::new(
            Exit::NotInstalled,
            "the runner's image is not known: the run's job is gone, and the operator's deployment can't be read",
        )
        .hint("name it: --image IMAGE")
    })
}

fn words(args: &Download, run: Option<&str>) -> Vec<String> {
    let mut words = vec![PROGRAM.to_owned()];
    words.extend(SEND.map(str::to_owned));
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

/// Where the bytes come from.
struct Source<'a> {
    cluster: &'a Cluster,
    namespace: String,
    pod: String,
    words: Vec<String>,
    /// Length and sum are found by reading all of it; they are told again, to be found once.
    measured: bool,
}

/// Waits until the pod runs.
async fn started(context: &Context, source: &Source<'_>, limit: Duration) -> Result<()> {
    let deadline = tokio::time::Instant::now() + limit;
    let mut said = String::new();
    loop {
        let Some(pod) = source.cluster.pod(&source.namespace, &source.pod).await? else {
            return Err(Error::new(
                Exit::NotFound,
                format!("pod {} was deleted", source.pod),
            ));
        };
        match stage(&pod, crds::labels::CONTAINER) {
            Stage::Running(_) => return Ok(()),
            Stage::Ended(code) => {
                return Err(Error::new(
                    Exit::Other,
                    format!("pod {} ended at once with status {code}: its image is not a backup-runner that can send downloads", source.pod),
                )
                .hint("use the operator's: --image IMAGE"));
            }
            Stage::Waiting(why) => {
                if tokio::time::Instant::now() >= deadline {
                    return Err(Error::new(
                        Exit::Timeout,
                        format!("pod {} has not started: {why}", source.pod),
                    ));
                }
                if why != said {
                    context
                        .ui
                        .progress(Mark::Wait, &format!("pod {}: {why}", source.pod));
                    said = why;
                }
            }
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
}

/// Where the bytes go.
enum Sink<'a> {
    Stdout(&'a crate::ui::Ui),
    File(std::fs::File),
}

impl Sink<'_> {
    fn write(&mut self, part: &[u8]) -> Result<()> {
        match self {
            Self::Stdout(ui) => ui.bytes(part),
            Self::File(file) => Ok(file.write_all(part)?),
        }
    }
}

async fn fetch(
    context: &Context,
    args: &Download,
    object: &Object,
    source: &Source<'_>,
) -> Result<()> {
    let header = head(source).await?;
    let stdout = args.output_file.as_deref() == Some(Path::new("-"));
    let path = target(args, &header);
    let part = partial(&path, &header);
    let (mut sink, mut got) = if stdout {
        (Sink::Stdout(&context.ui), Got::default())
    } else {
        if path.exists() && !args.overwrite {
            return Err(Error::usage(format!("{} exists already", path.display()))
                .hint("choose another name with -O, or add --overwrite"));
        }
        let (file, got) = resume(&part, &header)?;
        if got.length > 0 {
            context.ui.progress(
                Mark::Action,
                &format!("going on at {} of {}", got.length, header.length),
            );
        }
        (Sink::File(file), got)
    };
    let outcome = whole(context, source, &header, &mut sink, &mut got).await;
    if let Err(error) = outcome {
        if error.kind == Exit::RunFailed {
            // Bytes that are not those that were stored are nothing to go on from.
            let _ = std::fs::remove_file(&part);
        }
        return Err(error);
    }
    let text = format!(
        "{}, SHA-256 {}",
        bytes(signed(header.length)),
        header.sha256
    );
    match sink {
        Sink::Stdout(_) => {
            context
                .ui
                .progress(Mark::Good, &format!("{} sent: {text}", header.key));
            Ok(())
        }
        Sink::File(file) => {
            file.sync_all()?;
            std::fs::rename(&part, &path)?;
            context.ui.line(&format!(
                "{} downloaded to {} ({text})",
                object.full_name(),
                path.display()
            ))
        }
    }
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// The file asked for; a directory gets the artefact's own name.
fn target(args: &Download, header: &Header) -> PathBuf {
    match &args.output_file {
        Some(path) if path.is_dir() => path.join(&header.name),
        Some(path) => path.clone(),
        None => PathBuf::from(&header.name),
    }
}

/// The name beside it until it is whole: by its sum, so that another artefact never goes on there.
fn partial(path: &Path, header: &Header) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let sum: String = header.sha256.chars().take(12).collect();
    path.with_file_name(format!(".{name}.{sum}.part"))
}

/// What has come so far.
#[derive(Default)]
struct Got {
    length: u64,
    hash: Sha256,
}

/// Opens the partial file and reads what it holds already.
fn resume(part: &Path, header: &Header) -> Result<(std::fs::File, Got)> {
    use std::io::{Read, Seek, SeekFrom};
    let named = |e: std::io::Error| Error::new(Exit::Other, format!("{}: {e}", part.display()));
    let mut file = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(part)
        .map_err(named)?;
    let mut got = Got::default();
    let mut buffer = vec![0; 1 << 18];
    loop {
        let n = file.read(&mut buffer).map_err(named)?;
        if n == 0 {
            break;
        }
        got.hash.update(buffer.get(..n).unwrap_or_default());
        got.length += n as u64;
    }
    if got.length > header.length {
        file.set_len(0).map_err(named)?;
        file.seek(SeekFrom::Start(0)).map_err(named)?;
        got = Got::default();
    }
    Ok((file, got))
}

/// Asks what would come.
async fn head(source: &Source<'_>) -> Result<Header> {
    let mut words = source.words.clone();
    words.push("--head".to_owned());
    let mut failures = 0;
    loop {
        let mut process = match start(source, &words).await {
            Ok(process) => process,
            // The kubelet may know of the container a moment later than the API server.
            Err(error) if failures < TRIES && error.kind == Exit::Unreachable => {
                failures += 1;
                tokio::time::sleep(Duration::from_millis(500)).await;
                continue;
            }
            Err(error) => return Err(error),
        };
        let line = process.first_line().await?;
        if let Ok(header) = serde_json::from_str(&line) {
            return Ok(header);
        }
        return Err(process.failure(source).await);
    }
}

/// All bytes, by as many streams as it takes.
async fn whole(
    context: &Context,
    source: &Source<'_>,
    header: &Header,
    sink: &mut Sink<'_>,
    got: &mut Got,
) -> Result<()> {
    let mut bar = Bar::new(context, header, got.length);
    let mut fruitless = 0;
    loop {
        let before = got.length;
        match stream(source, header, sink, got, &mut bar).await {
            Ok(true) => break,
            Ok(false) => {}
            Err(error) if error.kind == Exit::Unreachable => {}
            Err(error) => {
                bar.clear();
                return Err(error);
            }
        }
        fruitless = if got.length > before {
            0
        } else {
            fruitless + 1
        };
        if fruitless >= TRIES {
            bar.clear();
            return Err(Error::new(
                Exit::Unreachable,
                format!(
                    "the stream from pod {} broke at {} of {} bytes and can't be taken up again",
                    source.pod, got.length, header.length
                ),
            )
            .hint("run the same command again: it goes on where it broke"));
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    bar.clear();
    let sum: String = got
        .hash
        .clone()
        .finalize()
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect();
    if sum == header.sha256 {
        return Ok(());
    }
    Err(Error::new(
        Exit::RunFailed,
        format!(
            "what arrived of {} has SHA-256 {sum} instead of {}; nothing is kept",
            header.key, header.sha256
        ),
    )
    .hint("run the same command again"))
}

/// One stream, from where the last one ended; true once the trailer has come.
async fn stream(
    source: &Source<'_>,
    header: &Header,
    sink: &mut Sink<'_>,
    got: &mut Got,
    bar: &mut Bar,
) -> Result<bool> {
    let mut words = source.words.clone();
    words.extend(["--offset".to_owned(), got.length.to_string()]);
    if source.measured {
        let expected = format!("{}:{}", header.length, header.sha256);
        words.extend(["--expect".to_owned(), expected]);
    }
    let mut process = start(source, &words).await?;
    let line = process.first_line().await?;
    let Ok(now) = serde_json::from_str::<Header>(&line) else {
        return process.broken(source).await;
    };
    if (now.length, &now.sha256) != (header.length, &header.sha256) {
        return Err(Error::new(
            Exit::Other,
            format!("another artefact came up meanwhile: {}", now.key),
        )
        .hint("run the same command again"));
    }
    let mut buffer = vec![0; 1 << 18];
    while got.length < header.length {
        let left = usize::try_from(header.length - got.length).unwrap_or(usize::MAX);
        let room = buffer.len().min(left);
        let n = process
            .out
            .read(buffer.get_mut(..room).unwrap_or_default())
            .await?;
        if n == 0 {
            return process.broken(source).await;
        }
        let part = buffer.get(..n).unwrap_or_default();
        sink.write(part)?;
        got.hash.update(part);
        got.length += n as u64;
        bar.at(got.length);
    }
    let mut line = String::new();
    process.out.read_line(&mut line).await?;
    match serde_json::from_str::<Trailer>(&line) {
        Ok(_) => Ok(true),
        Err(_) => process.broken(source).await,
    }
}

/// A program at work in the pod.
struct Process {
    out: BufReader<Box<dyn tokio::io::AsyncRead + Send + Unpin>>,
    errors: tokio::task::JoinHandle<String>,
    process: AttachedProcess,
}

async fn start(source: &Source<'_>, words: &[String]) -> Result<Process> {
    let mut process = source
        .cluster
        .execute(
            &source.namespace,
            &source.pod,
            crds::labels::CONTAINER,
            words,
        )
        .await?;
    let out: Box<dyn tokio::io::AsyncRead + Send + Unpin> = match process.stdout() {
        Some(out) => Box::new(out),
        None => Box::new(tokio::io::empty()),
    };
    let stderr = process.stderr();
    // Read beside stdout, so that neither holds up the other.
    let errors = tokio::spawn(async move {
        let mut text = String::new();
        if let Some(stderr) = stderr {
            let _ = stderr.take(1 << 16).read_to_string(&mut text).await;
        }
        text
    });
    Ok(Process {
        out: BufReader::with_capacity(1 << 18, out),
        errors,
        process,
    })
}

impl Process {
    /// The first line that is not empty: an empty one says that a header is still to come.
    async fn first_line(&mut self) -> Result<String> {
        loop {
            let mut line = String::new();
            if self.out.read_line(&mut line).await? == 0 || !line.trim().is_empty() {
                return Ok(line);
            }
        }
    }

    /// A program that failed is an error; a stream that broke is `false`.
    async fn broken(self, source: &Source<'_>) -> Result<bool> {
        match self.code().await {
            (Some(code), text) if code != 0 => Err(refused(code, &text, source)),
            _ => Ok(false),
        }
    }

    /// Why the program gave no header.
    async fn failure(self, source: &Source<'_>) -> Error {
        let (code, text) = self.code().await;
        refused(code.unwrap_or(1), &text, source)
    }

    /// The exit code if the program ended, and what it said.
    async fn code(mut self) -> (Option<i32>, String) {
        let status = match self.process.take_status() {
            Some(status) => status.await,
            None => None,
        };
        let text = self.errors.await.unwrap_or_default();
        let code = status.map(|status| {
            let causes = status.details.and_then(|d| d.causes).unwrap_or_default();
            let code = causes
                .iter()
                .find(|c| c.reason.as_deref() == Some("ExitCode"))
                .and_then(|c| c.message.as_deref()?.parse().ok());
            match status.status.as_deref() {
                Some("Success") => 0,
                _ => code.unwrap_or(1),
            }
        });
        (code, text)
    }
}

/// The runner's words.
fn refused(code: i32, text: &str, source: &Source<'_>) -> Error {
    // Log lines are JSON; the last other one is the failure.
    let line = text.lines().rev().find(|l| !l.starts_with('{'));
    let (reason, message) = line
        .and_then(|l| l.split_once(": "))
        .unwrap_or(("Unknown", "the program in the pod gave no reason"));
    let message = crate::view::mask::text(message);
    let kind = match (code, reason) {
        (_, "ArtefactNotFound") => Exit::NotFound,
        (crds::report::exit::VERIFICATION, _) => Exit::RunFailed,
        _ => Exit::Other,
    };
    let error = Error::new(
        kind,
        format!("pod {}: {message} ({reason}, status {code})", source.pod),
    );
    match reason {
        "ArtefactNotFound" => error.hint("kubectl backup runs --stored"),
        _ if message.contains("is encrypted") => {
            error.hint("take the stored bytes as they are: --raw")
        }
        _ => error,
    }
}

/// How far it is, on a terminal.
struct Bar {
    bar: Option<indicatif::ProgressBar>,
    total: u64,
    from: u64,
    since: tokio::time::Instant,
}

impl Bar {
    fn new(context: &Context, header: &Header, from: u64) -> Self {
        Self {
            bar: context.ui.bar(),
            total: header.length,
            from,
            since: tokio::time::Instant::now(),
        }
    }

    fn at(&self, length: u64) {
        let Some(bar) = &self.bar else { return };
        let percent = length.saturating_mul(100) / self.total.max(1);
        let millis = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        let rate = length.saturating_sub(self.from).saturating_mul(1000) / millis.max(1);
        bar.set_position(percent);
        bar.set_message(format!(
            "{} / {}  {percent}%  {}/s",
            bytes(signed(length)),
            bytes(signed(self.total)),
            bytes(signed(rate))
        ));
    }

    fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}
