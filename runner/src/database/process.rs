//! Child processes of a Backup's run: clients, filters and scripts, each in a process group that
//! a cancelled run ends. Clients get an environment of their own that holds no secret.

use crds::report::{Reason, exit};
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use crate::cancel::Cancel;
use crate::context::Context;
use crate::failure::Failure;
use crate::process::Ended;
use crate::scrub::{Scrub, each_line};
use crate::stall::{self, Guard, Stalled, Watched};

/// So many of the last messages are kept.
const KEPT: usize = 20;

/// A program to run.
pub(crate) struct Program {
    /// Where it is.
    pub(crate) path: PathBuf,
    /// Its arguments.
    pub(crate) args: Vec<String>,
    /// Its environment.
    pub(crate) env: Vec<(String, String)>,
}

impl Program {
    /// Looks for `name` in the search path.
    ///
    /// # Errors
    /// It is not there.
    pub(crate) fn find(context: &Context, name: &str) -> Result<PathBuf, Failure> {
        let settings = &context.settings;
        let mut places = settings.path.iter().map(|d| d.join(name));
        places.find(|p| p.is_file()).ok_or_else(|| {
            Failure::settings(match &settings.client_image {
                Some(image) => format!(
                    "image {image} (spec.job.clientImage) has no {name} on its PATH; name one that has it"
                ),
                None => format!(
                    "the runner's image has no {name}: set spec.job.clientImage to an image that has it"
                ),
            })
        })
    }

    /// A program with arguments.
    pub(crate) fn new(path: PathBuf, args: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            path,
            args: args.into_iter().map(Into::into).collect(),
            env: vec![],
        }
    }

    /// File name, for messages.
    pub(crate) fn name(&self) -> String {
        name_of(&self.path)
    }

    /// Starts it with `stdin` piped if asked, standard output piped.
    ///
    /// # Errors
    /// It can't be started.
    pub(crate) fn start(&self, context: &Context, stdin: bool) -> Result<Running, Failure> {
        let mut command = Command::new(&self.path);
        command.env_clear().args(&self.args).current_dir("/");
        command.envs(self.env.iter().map(|(k, v)| (k, v)));
        Running::spawn(
            command,
            &self.name(),
            stdin,
            &context.cancel,
            &context.scrub,
        )
    }

    /// Runs it to its end, gives what it printed.
    ///
    /// # Errors
    /// It can't be started or spoken to.
    pub(crate) fn run(&self, context: &Context, input: &str) -> Result<(Vec<u8>, Ended), Failure> {
        self.run_within(context, input, None, None)
    }

    /// As [`Program::run`], for a client of a database: one that neither prints nor makes the file or
    /// the directory `made` grow for too long is ended.
    ///
    /// # Errors
    /// It can't be started or spoken to.
    pub(crate) fn ask(
        &self,
        context: &Context,
        input: &str,
        made: Option<&Path>,
    ) -> Result<(Vec<u8>, Ended), Failure> {
        self.run_within(context, input, context.cancel.idle(), made)
    }

    /// As [`Program::ask`], with a limit of its own.
    ///
    /// # Errors
    /// It can't be started or spoken to.
    pub(crate) fn run_within(
        &self,
        context: &Context,
        input: &str,
        idle: Option<Duration>,
        made: Option<&Path>,
    ) -> Result<(Vec<u8>, Ended), Failure> {
        let mut running = self.start(context, true)?;
        let printed = Arc::new(AtomicU64::new(0));
        let (seen, made) = (Arc::clone(&printed), made.map(Path::to_owned));
        let guard = Guard::start(idle, running.group, move || {
            Some(seen.load(Ordering::Acquire) + made.as_deref().map_or(0, stall::size))
        });
        running.stalled = guard.stalled();
        let mut stdin = running.stdin.take();
        let text = input.to_owned();
        let writer = std::thread::spawn(move || {
            if let Some(mut stdin) = stdin.take() {
                let _ = stdin.write_all(text.as_bytes());
            }
        });
        let mut output = vec![];
        if let Some(mut stdout) = running.stdout.take() {
            let mut chunk = vec![0; 64 * 1024];
            loop {
                match stdout.read(&mut chunk) {
                    Ok(0) => break,
                    Ok(n) => {
                        output.extend_from_slice(&chunk[..n]);
                        printed.fetch_add(n as u64, Ordering::AcqRel);
                    }
                    Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                    Err(e) => {
                        return Err(Failure::new(
                            Reason::ClientFailed,
                            format!("reading {} failed: {e}", self.name()),
                        ));
                    }
                }
            }
        }
        drop(guard);
        let _ = writer.join();
        Ok((output, running.wait()?))
    }
}

fn name_of(path: &Path) -> String {
    path.file_name()
        .map(|n| n.to_string_lossy().into_owned())
        .unwrap_or_default()
}

/// A running child.
pub(crate) struct Running {
    child: Child,
    group: Option<Pid>,
    cancel: Cancel,
    messages: Option<JoinHandle<Vec<String>>>,
    stalled: Stalled,
    name: String,
    /// Its input, if piped.
    pub(crate) stdin: Option<ChildStdin>,
    /// Its output.
    pub(crate) stdout: Option<ChildStdout>,
}

impl Running {
    /// Starts a prepared command in a group of its own.
    ///
    /// # Errors
    /// It can't be started.
    pub(crate) fn spawn(
        mut command: Command,
        name: &str,
        stdin: bool,
        cancel: &Cancel,
        scrub: &Arc<Scrub>,
    ) -> Result<Self, Failure> {
        let input = if stdin { Stdio::piped() } else { Stdio::null() };
        let mut child = command
            .stdin(input)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(|e| Failure::settings(format!("{name} can't be started: {e}")))?;
        let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        if let Some(group) = group {
            cancel.register(group);
        }
        let messages = child.stderr.take().map(|stderr| {
            let (scrub, name) = (Arc::clone(scrub), name.to_owned());
            std::thread::spawn(move || gather(stderr, &name, &scrub))
        });
        Ok(Self {
            stdin: child.stdin.take(),
            stdout: child.stdout.take(),
            child,
            group,
            cancel: cancel.clone(),
            messages,
            stalled: Stalled::default(),
            name: name.to_owned(),
        })
    }

    /// Its output, if it is of a database: one that is silent for too long is ended.
    pub(crate) fn source(&mut self) -> Option<Watched<ChildStdout>> {
        let output = Watched::new(self.stdout.take()?, self.cancel.idle(), self.group);
        self.stalled = output.stalled();
        Some(output)
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// The system can't tell.
    pub(crate) fn wait(mut self) -> Result<Ended, Failure> {
        drop(self.stdin.take());
        let status = self.child.wait().map_err(|e| {
            Failure::at(
                exit::FAILED,
                Reason::ClientFailed,
                format!("waiting for {} failed: {e}", self.name),
            )
        })?;
        self.release();
        let messages = self.messages.take().and_then(|m| m.join().ok());
        Ok(Ended {
            status,
            messages: messages.unwrap_or_default(),
            stalled: self.stalled.limit(),
        })
    }

    fn release(&mut self) {
        if let Some(group) = self.group.take() {
            self.cancel.forget(group);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(group) = self.group {
            let _ = kill_process_group(group, Signal::KILL);
            self.release();
            let _ = self.child.wait();
        }
    }
}

/// Logs what the child says, and keeps the end of it.
fn gather(stderr: impl Read, name: &str, scrub: &Scrub) -> Vec<String> {
    let mut kept: Vec<String> = vec![];
    each_line(stderr, scrub, |text| {
        tracing::info!(client = name, "{text}");
        if kept.len() == KEPT {
            kept.remove(0);
        }
        kept.push(text);
    });
    kept
}

/// The failure of a client that ended badly, by what it said.
pub(crate) fn explain(name: &str, ended: &Ended) -> Failure {
    if let Some(limit) = ended.stalled {
        return stall::explain(name, "config.host", limit);
    }
    let said = ended.messages.join(" / ");
    let lower = said.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|w| lower.contains(w));
    let (reason, remedy) = if says(&[
        "password authentication failed",
        "wrongpass",
        "noauth",
        "access denied",
        "authentication failed",
        "invalid username-password",
        "unauthorized",
    ]) {
        (
            Reason::AccessDenied,
            "check the user name and the password of the Database",
        )
    } else if says(&[
        "could not translate host name",
        "name or service not known",
        "could not resolve",
        "no such host",
        "temporary failure in name resolution",
    ]) {
        (Reason::HostNotFound, "check config.host of the Database")
    } else if says(&["row-level security policy"]) {
        (
            Reason::RowsHidden,
            "policies would hide rows from the user, so nothing is dumped: ALTER ROLE ... BYPASSRLS, or dump as a superuser or the tables' owner",
        )
    } else if says(&["does not exist", "unknown database"]) {
        (
            Reason::NotFound,
            "check config.database and config.tables of the Database",
        )
    } else if says(&[
        "connection refused",
        "could not connect",
        "timeout",
        "timed out",
        "no route to host",
        "deadline exceeded",
        "connection to server",
    ]) {
        (
            Reason::ConnectionFailed,
            "check config.host and config.port, that the server runs, and network policies",
        )
    } else if says(&["permission denied"]) {
        (
            Reason::PermissionDenied,
            "grant the user what the message names",
        )
    } else if says(&[
        "server version mismatch",
        "aborting because of server version",
    ]) {
        (
            Reason::ClientTooOld,
            "set spec.job.clientImage to an image with a client as new as the server",
        )
    } else if says(&["no space left"]) {
        (
            Reason::NoSpace,
            "raise spec.job.workdirSizeLimit or free space on the node",
        )
    } else {
        (Reason::DumpFailed, "see its message")
    };
    let said = if said.is_empty() {
        "it said nothing".to_owned()
    } else {
        said
    };
    Failure::at(
        exit::SOURCE,
        reason,
        format!(
            "{name} ended with {}: {said}: {remedy}",
            ended.status_text()
        ),
    )
}
