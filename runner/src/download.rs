//! Sends an artefact to whoever asks through `kubectl exec`: `download hold` keeps the pod there,
//! `download send [--run NAME | --key KEY | --at TIME] [--offset N] [--raw] [--head]` writes header,
//! bytes and trailer of [`crds::download`] to stdout. Without `--raw` the dump itself is sent,
//! decrypted and decompressed; of a Backup's archive the tar in it, which is read once before for
//! its length and sum, unless `--expect LENGTH:SHA256` says what came of that. `download contents
//! [--run NAME | --key KEY | --at TIME]` writes what is in an artefact, by its manifest or record alone
//! ([`crds::contents`]). `download binlog --from TIME [--to TIME] [--database NAME | --table DATABASE.TABLE]` writes the
//! transactions of a span of time from stored binary logs ([`crds::download::BINLOG`]). `download binlogs --from TIME [--to TIME] [--file NAME --expect LENGTH:SHA256
//! [--offset N] [--head]]` lists the server's own files, or sends one. Whatever is wrong is one line on stderr,
//! and the exit code.

use std::io::{self, Read, Write};
use std::sync::Arc;

use binlog::span::Span;
use crds::contents::CONTENTS;
use crds::download::{BINLOG, BINLOG_FILES, HOLD, Header, SEND, Trailer};
use crds::parts::CompressionType;
use crds::report::{Reason, exit};
use crds::time::parse_rfc3339;
use sha2::{Digest, Sha256};

use crate::backup;
use crate::context::Context;
use crate::database::mysql::decoder::Named;
use crate::failure::Failure;
use crate::mysql_backup::artefacts;
use crate::mysql_backup::binlogs::{files, shown};
use crate::mysql_backup::manifest::Manifest;
use crate::mysql_backup::stored::StoredDumps;
use crate::settings::options::{Choice, Wanted};
use crate::stream::checksum::{Open, Stored, hex};

const BUFFER: usize = 256 * 1024;

/// What the command line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Stay until a signal comes.
    Hold,
    /// Send an artefact.
    Send(Wanted),
    /// Tell what is in an artefact.
    Contents(Choice),
    /// Show transactions of stored binary logs.
    Binlog(BinlogWords),
    /// List or send the server's own files of stored binary logs.
    BinlogFiles(BinlogWords),
}

/// What of stored binary logs is asked for, as it was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BinlogWords {
    from: String,
    to: Option<String>,
    database: Option<String>,
    table: Option<String>,
    file: Option<String>,
    expect: Option<Stored>,
    offset: u64,
    head: bool,
}

/// Reads the command line; `None` if it is not about downloads.
///
/// # Errors
/// A word it does not know.
pub fn asked(words: &[String]) -> Option<Result<Asked, Failure>> {
    let (two, rest) = words.split_at_checked(2)?;
    if two == HOLD {
        return Some(Ok(Asked::Hold));
    }
    if two == CONTENTS {
        return Some(contents(rest));
    }
    if two == BINLOG {
        return Some(binlog(rest, false).map(Asked::Binlog));
    }
    if two == BINLOG_FILES {
        return Some(binlog(rest, true).map(Asked::BinlogFiles));
    }
    (two == SEND).then(|| send(rest).map(Asked::Send))
}

fn binlog(words: &[String], files: bool) -> Result<BinlogWords, Failure> {
    let mut asked = BinlogWords::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if files && word == "--head" {
            asked.head = true;
            continue;
        }
        let value = words
            .next()
            .cloned()
            .ok_or_else(|| Failure::settings(format!("download: {word} needs a value")))?;
        match word.as_str() {
            "--from" => asked.from = value,
            "--to" => asked.to = Some(value),
            "--database" if !files => asked.database = Some(value),
            "--table" if !files => asked.table = Some(value),
            "--file" if files => asked.file = Some(value),
            "--expect" if files => asked.expect = Some(expected(&value)?),
            "--offset" if files => {
                asked.offset = value
                    .parse()
                    .map_err(|e| Failure::settings(format!("download: --offset: {e}")))?;
            }
            other => return Err(Failure::settings(format!("download: unknown {other:?}"))),
        }
    }
    Ok(asked)
}

impl BinlogWords {
    fn read(&self) -> Result<shown::Wanted, Failure> {
        let bad = |text: String| Failure::settings(format!("download binlog: {text}"));
        let moment = |text: &str| {
            let at = parse_rfc3339(text).filter(|at| at.timestamp_subsec_nanos() == 0);
            at.and_then(|at| u32::try_from(at.timestamp()).ok())
                .ok_or_else(|| {
                    bad(format!(
                        "{text:?} is no time in whole seconds since 1970 with a zone, such as 2025-01-15T10:30:00Z"
                    ))
                })
        };
        let span = Span {
            from: moment(&self.from)?,
            to: self.to.as_deref().map_or(Ok(u32::MAX), moment)?,
        };
        if span.from >= span.to {
            return Err(bad("--from is not before --to".to_owned()));
        }
        Ok(shown::Wanted {
            span,
            open_ended: self.to.is_none(),
            named: Named::new(self.database.clone(), self.table.as_deref()).map_err(bad)?,
        })
    }
}

fn contents(words: &[String]) -> Result<Asked, Failure> {
    let wanted = send(words)?;
    let choice = wanted.choice.clone();
    let chosen = Wanted {
        choice: wanted.choice.clone(),
        ..Wanted::default()
    };
    if wanted != chosen {
        return Err(Failure::settings(
            "download contents takes --run, --key and --at alone",
        ));
    }
    Ok(Asked::Contents(choice))
}

fn send(words: &[String]) -> Result<Wanted, Failure> {
    let mut send = Wanted::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut value = || {
            words
                .next()
                .cloned()
                .ok_or_else(|| Failure::settings(format!("download: {word} needs a value")))
        };
        match word.as_str() {
            "--run" => send.choice.run = Some(value()?),
            "--key" => send.choice.key = Some(value()?),
            "--at" => send.choice.at = Some(value()?),
            "--offset" => {
                send.offset = value()?
                    .parse()
                    .map_err(|e| Failure::settings(format!("download: --offset: {e}")))?;
            }
            "--expect" => send.expect = Some(expected(&value()?)?),
            "--raw" => send.raw = true,
            "--head" => send.head = true,
            other => {
                return Err(Failure::settings(format!("download: unknown {other:?}")));
            }
        }
    }
    Ok(send)
}

fn expected(text: &str) -> Result<Stored, Failure> {
    let parts = text.split_once(':');
    let parts = parts.and_then(|(length, sha256)| Some((length.parse().ok()?, sha256)));
    let (bytes, sha256) = parts.ok_or_else(|| {
        Failure::settings(format!("download: --expect {text:?} is no LENGTH:SHA256"))
    })?;
    Ok(Stored {
        bytes,
        sha256: sha256.to_owned(),
    })
}

/// Does it, and gives the exit code.
pub async fn serve(context: Arc<Context>, asked: Result<Asked, Failure>) -> i32 {
    let outcome = match asked {
        Ok(Asked::Hold) => hold().await,
        Ok(asked) => {
            let inner = Arc::clone(&context);
            // Not locked: the lock can't go to another thread, and nobody else writes.
            let task = tokio::task::spawn_blocking(move || match asked {
                Asked::Hold => Ok(()),
                Asked::Send(send) => artefact(&inner, &send, &mut io::stdout()),
                Asked::Binlog(words) => shown::show(&inner, &words.read()?, &mut io::stdout()),
                Asked::BinlogFiles(words) => binlog_files(&inner, &words, &mut io::stdout()),
                Asked::Contents(choice) => {
                    line(&mut io::stdout(), &crate::contents::of(&inner, &choice)?)
                }
            });
            task.await.unwrap_or_else(|_| {
                Err(Failure::new(
                    Reason::InternalError,
                    "the runner failed unexpectedly: report it",
                ))
            })
        }
        Err(failure) => Err(failure),
    };
    match outcome {
        Ok(()) => exit::OK,
        Err(failure) => {
            let message = context.scrub.clean(&failure.message);
            // Nobody reads on: there is nobody to tell.
            let _ = writeln!(io::stderr(), "{}: {message}", failure.reason);
            failure.exit_code
        }
    }
}

async fn hold() -> Result<(), Failure> {
    use tokio::signal::unix::{SignalKind, signal};
    let none = |e| {
        Failure::new(
            Reason::SignalsFailed,
            format!("signals can't be received: {e}"),
        )
    };
    let mut term = signal(SignalKind::terminate()).map_err(none)?;
    term.recv().await;
    Ok(())
}

/// Header, bytes, trailer.
fn artefact(context: &Context, send: &Wanted, out: &mut impl Write) -> Result<(), Failure> {
    context.settings.check()?;
    let (mut header, open) = match &context.settings.backup {
        // An empty line is no header, but shows that one is to come.
        Some(backup) => backup::fetch::download(context, backup, send, &mut || {
            out.write_all(b"\n")
                .and_then(|()| out.flush())
                .map_err(gone)
        })?,
        None => dump(context, send)?,
    };
    if send.offset > header.length {
        return Err(Failure::settings(format!(
            "--offset {} is beyond the {} bytes of {}",
            send.offset, header.length, header.key
        )));
    }
    header.warnings = context.reporter.snapshot().warnings;
    // Opened before the header is sent: a key that is wrong is told in its place.
    let reader = if send.head { None } else { Some(open()?) };
    line(out, &header)?;
    match reader {
        Some(mut reader) => bytes(&mut reader, &header, out),
        None => Ok(()),
    }
}

/// The list of files, or one of them.
fn binlog_files(
    context: &Context,
    words: &BinlogWords,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let wanted = words.read()?;
    let (Some(name), Some(expected)) = (&words.file, &words.expect) else {
        return line(out, &files::list(context, wanted.span, wanted.open_ended)?);
    };
    let named = (name.as_str(), expected);
    let (header, mut reader) = files::one(context, wanted.span, named, words.offset)?;
    line(out, &header)?;
    match words.head {
        true => Ok(()),
        false => bytes(&mut reader, &header, out),
    }
}

/// The dump of a MysqlBackup.
fn dump<'a>(context: &'a Context, send: &Wanted) -> Result<(Header, Open<'a>), Failure> {
    let place = StoredDumps::open(context)?;
    let manifest = place.choose(&send.choice)?;
    let (header, raw) = (header(&manifest, send), send.raw);
    let open: Open<'a> = Box::new(move || {
        if !raw {
            return artefacts::open(context, place.store.as_ref(), &manifest);
        }
        artefacts::stored(place.store.as_ref(), &manifest)
    });
    Ok((header, open))
}

fn header(manifest: &Manifest, send: &Wanted) -> Header {
    let name = manifest.key.rsplit('/').next().unwrap_or_default();
    let mut plain = name.strip_suffix(".age").unwrap_or(name);
    plain = match manifest.compression {
        CompressionType::Zstd => plain.strip_suffix(".zst").unwrap_or(plain),
        CompressionType::Gzip => plain.strip_suffix(".gz").unwrap_or(plain),
        CompressionType::None => plain,
    };
    let (name, length, sha256) = if send.raw {
        (name, manifest.stored_bytes, &manifest.stored_sha256)
    } else {
        (plain, manifest.raw_bytes, &manifest.raw_sha256)
    };
    Header {
        key: manifest.key.clone(),
        name: name.to_owned(),
        length,
        offset: send.offset,
        sha256: sha256.clone(),
        warnings: vec![],
    }
}

/// Sends what lies behind the offset; all of it is hashed.
fn bytes(reader: &mut dyn Read, header: &Header, out: &mut impl Write) -> Result<(), Failure> {
    let (mut hash, mut length) = (Sha256::new(), 0u64);
    let mut buffer = vec![0; BUFFER];
    loop {
        let n = match reader.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => {
                return Err(e.downcast::<Failure>().unwrap_or_else(|e| {
                    Failure::new(
                        Reason::NotReadable,
                        format!("{} can't be read: {e}", header.key),
                    )
                }));
            }
        };
        let part = buffer.get(..n).unwrap_or_default();
        hash.update(part);
        let skip = header.offset.saturating_sub(length).min(n as u64);
        length += n as u64;
        if length > header.length {
            return Err(differs(header, &format!("more than {}", header.length)));
        }
        let rest = usize::try_from(skip).ok().and_then(|skip| part.get(skip..));
        out.write_all(rest.unwrap_or_default()).map_err(gone)?;
    }
    let sha256 = hex(&hash.finalize());
    if length != header.length || sha256 != header.sha256 {
        return Err(differs(header, &format!("{length}, SHA-256 {sha256}")));
    }
    line(out, &Trailer { length, sha256 })
}

fn differs(header: &Header, read: &str) -> Failure {
    Failure::new(
        Reason::ReadBackDiffers,
        format!(
            "{} is not what its manifest says: {} bytes with SHA-256 {} are expected, {read} were read; use another artefact, and check the store's health",
            header.key, header.length, header.sha256
        ),
    )
}

fn line(out: &mut impl Write, value: &impl serde::Serialize) -> Result<(), Failure> {
    let mut text = serde_json::to_vec(value)
        .map_err(|e| Failure::new(Reason::InternalError, format!("download: {e}")))?;
    text.push(b'\n');
    out.write_all(&text)
        .and_then(|()| out.flush())
        .map_err(gone)
}

fn gone(error: io::Error) -> Failure {
    Failure::new(Reason::ReaderGone, format!("the reader went away: {error}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn the_command_line() {
        assert!(asked(&words("--verbose")).is_none());
        assert!(asked(&[]).is_none());
        assert_eq!(
            asked(&words("download hold")).unwrap().unwrap(),
            Asked::Hold
        );
        let Asked::Contents(choice) = asked(&words("download contents --key k")).unwrap().unwrap()
        else {
            panic!("contents");
        };
        assert_eq!(choice.key.as_deref(), Some("k"));
        let Asked::Send(send) = asked(&words("download send --run shop-1 --offset 7 --raw"))
            .unwrap()
            .unwrap()
        else {
            panic!("send");
        };
        assert_eq!(
            (send.choice.run.as_deref(), send.offset, send.raw, send.head),
            (Some("shop-1"), 7, true, false)
        );
        for bad in [
            "download send --offset",
            "download send --offset x",
            "download send --x",
            "download send --expect 7",
            "download send --expect x:00",
            "download contents --raw",
            "download contents --offset 1",
        ] {
            assert!(asked(&words(bad)).unwrap().is_err(), "{bad}");
        }
    }

    #[test]
    fn what_a_tar_was_before() {
        let Asked::Send(send) = asked(&words("download send --expect 7:ab"))
            .unwrap()
            .unwrap()
        else {
            panic!("send");
        };
        let expected = send.expect.unwrap();
        assert_eq!((expected.bytes, expected.sha256.as_str()), (7, "ab"));
    }

    #[test]
    fn a_span_of_binary_logs() {
        let read = |text: &str| match asked(&words(text)).unwrap() {
            Ok(Asked::Binlog(words)) => words.read(),
            Ok(other) => panic!("{other:?}"),
            Err(e) => Err(e),
        };
        let found = read(
            "download binlog --from 1970-01-01T00:00:10Z --to 1970-01-01T01:00:20+01:00 --table a.b",
        );
        let found = found.unwrap();
        assert_eq!(found.span, Span { from: 10, to: 20 });
        assert!(!found.open_ended);
        assert!(
            read("download binlog --from 1970-01-01T00:00:10Z")
                .unwrap()
                .open_ended
        );
        for bad in [
            "download binlog",
            "download binlog --from",
            "download binlog --from yesterday",
            "download binlog --from 2025-01-15T10:30:00.5Z",
            "download binlog --from 2025-01-15T10:30:00Z --to 2025-01-15T10:30:00Z",
            "download binlog --from 2025-01-15T10:30:00Z --table t",
            "download binlog --from 2025-01-15T10:30:00Z --raw x",
            "download binlog --from 2025-01-15T10:30:00Z --file x",
        ] {
            let failure = read(bad).unwrap_err();
            assert_eq!(
                failure.exit_code,
                exit::SETTINGS,
                "{bad}: {}",
                failure.message
            );
        }
    }

    /// SHA-256 of `hello world` by sha256sum.
    const SUM: &str = "b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9";

    fn sent(offset: u64, length: u64, sum: &str) -> (Result<(), Failure>, Vec<u8>) {
        let header = Header {
            offset,
            length,
            sha256: sum.to_owned(),
            ..Header::default()
        };
        let mut out = vec![];
        let ended = bytes(&mut &b"hello world"[..], &header, &mut out);
        (ended, out)
    }

    #[test]
    fn from_an_offset_with_the_sum_of_the_whole() {
        let trailer = format!("{{\"length\":11,\"sha256\":\"{SUM}\"}}\n");
        for (offset, text) in [(0, "hello world"), (6, "world"), (11, "")] {
            let (ended, out) = sent(offset, 11, SUM);
            ended.unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), format!("{text}{trailer}"));
        }
    }

    #[test]
    fn what_differs_from_its_manifest_has_no_trailer() {
        for (length, sum) in [(11, "00"), (10, SUM), (12, SUM)] {
            let (ended, out) = sent(0, length, sum);
            let failure = ended.unwrap_err();
            assert_eq!(failure.exit_code, exit::VERIFICATION, "{}", failure.message);
            assert!(!String::from_utf8(out).unwrap().contains("length"));
        }
    }
}
