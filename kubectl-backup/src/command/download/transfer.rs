//! The bytes of an artefact, by as many streams as it takes, compared at their end.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crds::download::{Header, Trailer};
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _};

use super::bar::{Bar, signed};
use crate::cli::Download;
use crate::cluster::Object;
use crate::context::Context;
use crate::error::{Error, Kind as Exit, Result};
use crate::store_pod::{Source, start};
use crate::ui::Mark;
use crate::view::duration::bytes;

/// How often a broken stream is taken up again without having brought anything.
const TRIES: u32 = 5;

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

pub(crate) async fn fetch(
    context: &Context,
    args: &Download,
    object: &Object,
    source: &Source<'_>,
) -> Result<()> {
    let header = head(source).await?;
    for warning in &header.warnings {
        context.ui.warn(&crds::secret::mask(warning));
    }
    let stdout = args.output_file.as_deref() == Some(Path::new("-"));
    let path = target(args, &header);
    let part = partial(&path, &header);
    let (mut sink, mut got) = if stdout {
        (Sink::Stdout(&context.ui), Got::default())
    } else {
        vacant(args, &path)?;
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

/// Refuses to write over a file without being told to.
///
/// # Errors
/// The file exists.
pub(super) fn vacant(args: &Download, path: &Path) -> Result<()> {
    if path.exists() && !args.overwrite {
        return Err(Error::usage(format!("{} exists already", path.display()))
            .hint("choose another name with -O, or add --overwrite"));
    }
    Ok(())
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
