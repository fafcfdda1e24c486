//! The sending program in the pod.

use kube::api::AttachedProcess;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};

use crate::cluster::Cluster;
use crate::error::{Error, Kind as Exit, Result};

/// Where the bytes come from.
pub(crate) struct Source<'a> {
    pub(crate) cluster: &'a Cluster,
    pub(crate) namespace: String,
    pub(crate) pod: String,
    pub(crate) words: Vec<String>,
    /// Length and sum are found by reading all of it; they are told again, to be found once.
    pub(crate) measured: bool,
}

/// A program at work in the pod.
pub(crate) struct Process {
    pub(crate) out: BufReader<Box<dyn tokio::io::AsyncRead + Send + Unpin>>,
    errors: tokio::task::JoinHandle<String>,
    process: AttachedProcess,
}

pub(crate) async fn start(source: &Source<'_>, words: &[String]) -> Result<Process> {
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
    pub(crate) async fn first_line(&mut self) -> Result<String> {
        loop {
            let mut line = String::new();
            if self.out.read_line(&mut line).await? == 0 || !line.trim().is_empty() {
                return Ok(line);
            }
        }
    }

    /// A program that failed is an error; a stream that broke is `false`.
    pub(crate) async fn broken(self, source: &Source<'_>) -> Result<bool> {
        match self.code().await {
            (Some(code), text) if code != 0 => Err(refused(code, &text, source)),
            _ => Ok(false),
        }
    }

    /// Why the program gave no header.
    pub(crate) async fn failure(self, source: &Source<'_>) -> Error {
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
    let message = crds::secret::mask(message);
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
