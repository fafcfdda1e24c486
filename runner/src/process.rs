//! Child processes: clients, filters and scripts, each in a process group that a cancelled run ends.
//! Clients get an environment of their own that holds no secret.

use crds::report::{Reason, exit};
use std::io::{Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use crate::cancel::Cancel;
use crate::failure::Failure;
use crate::scrub::{Scrub, each_line};
use crate::stall::{self, Guard, Stalled, Watched};

/// So many of the last messages are kept.
const KEPT: usize = 20;
/// Bytes between a client and the runner: the most that a process without privileges may ask for.
/// Clients write in small pieces, and a small pipe makes them wait for each of ours.
const PIPE: usize = 1 << 20;
/// The line around a statement that MariaDB's client repeats before its error.
const ECHO: &str = "--------------";

/// The run whose children they are: it may end them, and its secrets are kept out of what they say.
pub trait Parent {
    /// What ends them.
    fn cancel(&self) -> &Cancel;

    /// What keeps secrets in.
    fn scrub(&self) -> &Arc<Scrub>;
}

/// How a client ended.
#[derive(Clone, Debug)]
pub struct Ended {
    /// Its status.
    pub status: ExitStatus,
    /// Its last messages, scrubbed.
    pub messages: Vec<String>,
    /// It was silent for so long and was ended for it.
    pub stalled: Option<Duration>,
}

impl Ended {
    /// True if it ended with status 0.
    pub fn good(&self) -> bool {
        self.status.success()
    }

    /// "exit status 2", or the signal that ended it.
    pub fn status_text(&self) -> String {
        match (self.status.code(), self.status.signal()) {
            (Some(code), _) => format!("exit status {code}"),
            (None, Some(signal)) => format!("signal {signal}"),
            (None, None) => "an unknown status".to_owned(),
        }
    }
}

/// A program to run.
pub struct Program {
    /// Where it is.
    pub path: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its environment.
    pub env: Vec<(String, String)>,
    /// It repeats statements that failed, between two lines of dashes. They may hold rows, and would
    /// crowd out the errors: they are not told.
    pub repeats: bool,
}

impl Program {
    /// A program with arguments.
    pub fn new(path: PathBuf, args: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            path,
            args: args.into_iter().map(Into::into).collect(),
            env: vec![],
            repeats: false,
        }
    }

    /// File name, for messages.
    pub fn name(&self) -> String {
        name_of(&self.path)
    }

    /// Starts it with `stdin` piped if asked, standard output piped.
    ///
    /// # Errors
    /// It can't be started.
    pub fn start(&self, of: &impl Parent, stdin: bool) -> Result<Running, Failure> {
        let mut command = Command::new(&self.path);
        command.env_clear().args(&self.args).current_dir("/");
        command.envs(self.env.iter().map(|(k, v)| (k, v)));
        Running::spawn(command, (&self.name(), self.repeats), stdin, of)
    }

    /// Runs it to its end, gives what it printed.
    ///
    /// # Errors
    /// It can't be started or spoken to.
    pub fn run(&self, of: &impl Parent, input: &str) -> Result<(Vec<u8>, Ended), Failure> {
        self.run_within(of, input, None, None)
    }

    /// As [`Program::run`], for a client of a database: one that neither prints nor makes the file or
    /// the directory `made` grow for too long is ended.
    ///
    /// # Errors
    /// It can't be started or spoken to.
    pub fn ask(
        &self,
        of: &impl Parent,
        input: &str,
        made: Option<&Path>,
    ) -> Result<(Vec<u8>, Ended), Failure> {
        self.run_within(of, input, of.cancel().idle(), made)
    }

    /// As [`Program::ask`], with a limit of its own.
    ///
    /// # Errors
    /// It can't be started or spoken to.
    pub fn run_within(
        &self,
        of: &impl Parent,
        input: &str,
        idle: Option<Duration>,
        made: Option<&Path>,
    ) -> Result<(Vec<u8>, Ended), Failure> {
        let mut running = self.start(of, true)?;
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
pub struct Running {
    child: Child,
    group: Option<Pid>,
    cancel: Cancel,
    messages: Option<JoinHandle<Vec<String>>>,
    stalled: Stalled,
    name: String,
    /// Its input, if piped.
    pub stdin: Option<ChildStdin>,
    /// Its output.
    pub stdout: Option<ChildStdout>,
}

impl Running {
    /// Starts a prepared command in a group of its own; it may repeat statements, as [`Program`] says.
    ///
    /// # Errors
    /// It can't be started.
    pub fn spawn(
        mut command: Command,
        (name, repeats): (&str, bool),
        stdin: bool,
        of: &impl Parent,
    ) -> Result<Self, Failure> {
        let input = if stdin { Stdio::piped() } else { Stdio::null() };
        let mut child = command
            .stdin(input)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(|e| {
                Failure::settings(format!(
                    "{name} can't be started ({e}): use an image whose client runs on this machine"
                ))
            })?;
        let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        if let Some(group) = group {
            of.cancel().register(group);
        }
        let messages = child.stderr.take().map(|stderr| {
            let (scrub, name) = (Arc::clone(of.scrub()), name.to_owned());
            std::thread::spawn(move || gather(stderr, (&name, repeats), &scrub))
        });
        Ok(Self {
            stdin: child.stdin.take(),
            stdout: child.stdout.take(),
            child,
            group,
            cancel: of.cancel().clone(),
            messages,
            stalled: Stalled::default(),
            name: name.to_owned(),
        })
    }

    /// Its output, if it is of a database: one that is silent for too long is ended.
    ///
    /// # Errors
    /// It was taken already.
    pub fn source(&mut self) -> Result<Watched<ChildStdout>, Failure> {
        let Some(output) = self.stdout.take() else {
            return Err(Failure::new(
                Reason::ClientNotStarted,
                format!("{} has no output", self.name),
            ));
        };
        // Where the system refuses, the usual 64 KiB must do.
        let _ = rustix::pipe::fcntl_setpipe_size(&output, PIPE);
        let output = Watched::new(output, self.cancel.idle(), self.group);
        self.stalled = output.stalled();
        Ok(output)
    }

    /// Sends SIGTERM to its group.
    pub fn terminate(&self) {
        if let Some(group) = self.group {
            let _ = kill_process_group(group, Signal::TERM);
        }
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// The system can't tell.
    pub fn wait(mut self) -> Result<Ended, Failure> {
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
fn gather(stderr: impl Read, (name, repeats): (&str, bool), scrub: &Scrub) -> Vec<String> {
    let mut kept: Vec<String> = vec![];
    let mut inside = false;
    each_line(stderr, scrub, |text| {
        if repeats && text == ECHO {
            inside = !inside;
            return;
        }
        // A statement whose echo has no end must not hide the error after it.
        inside &= !text.starts_with("ERROR ");
        if inside {
            return;
        }
        tracing::info!(client = name, "{text}");
        if kept.len() == KEPT {
            kept.remove(0);
        }
        kept.push(text);
    });
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_that_the_client_repeats_is_not_told() {
        let text = "--------------\nINSERT INTO t VALUES ('a row',\n'more')\n--------------\n\nERROR 1044 (42000) at line 2: denied\n--------------\nnever ended\nERROR 2013 (HY000) at line 3: lost\n";
        let said = gather(text.as_bytes(), ("mariadb", true), &Scrub::default());
        let said: Vec<&str> = said
            .iter()
            .map(String::as_str)
            .filter(|l| !l.is_empty())
            .collect();
        assert_eq!(
            said,
            [
                "ERROR 1044 (42000) at line 2: denied",
                "ERROR 2013 (HY000) at line 3: lost"
            ]
        );
    }
}
