//! A client as a child process: no shell, an empty environment, a process group of its own.

use crds::report::{Reason, exit};
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;

use rustix::process::{Pid, Signal, kill_process_group};

use crate::cancel::Cancel;
use crate::database::mysql::source::client::Client;
use crate::failure::Failure;
use crate::process::Ended;
use crate::scrub::{Scrub, each_line};
use crate::stall::{Stalled, Watched};

/// So many of the client's last messages are kept for the report.
const KEPT: usize = 20;

/// Bytes between the client and the runner: the most that a process without privileges may ask
/// for. The client writes in small pieces, and a small pipe makes it wait for each of ours.
const PIPE: usize = 1 << 20;

/// A running dump.
pub struct Dump {
    child: Child,
    group: Option<Pid>,
    cancel: Cancel,
    messages: Option<JoinHandle<Vec<String>>>,
    stalled: Stalled,
    name: String,
}

impl Dump {
    /// Starts the client.
    ///
    /// # Errors
    /// It can't be started.
    pub fn start(
        client: &Client,
        args: &[String],
        cancel: &Cancel,
        scrub: &Arc<Scrub>,
    ) -> Result<(Self, Watched<ChildStdout>), Failure> {
        let mut dump = spawn(client, args, Stdio::null(), cancel, scrub)?;
        let Some(output) = dump.child.stdout.take() else {
            return Err(Failure::new(
                Reason::ClientNotStarted,
                "the client has no output",
            ));
        };
        // Where the system refuses, the usual 64 KiB must do.
        let _ = rustix::pipe::fcntl_setpipe_size(&output, PIPE);
        let output = Watched::new(output, cancel.idle(), dump.group);
        dump.stalled = output.stalled();
        Ok((dump, output))
    }

    /// Starts a client that reads SQL from its standard input; what it prints has to be read.
    ///
    /// # Errors
    /// It can't be started.
    pub fn start_load(
        client: &Client,
        args: &[String],
        cancel: &Cancel,
        scrub: &Arc<Scrub>,
    ) -> Result<(Self, ChildStdin, ChildStdout), Failure> {
        let mut load = spawn(client, args, Stdio::piped(), cancel, scrub)?;
        let (Some(input), Some(output)) = (load.child.stdin.take(), load.child.stdout.take())
        else {
            return Err(Failure::new(
                Reason::ClientNotStarted,
                "the client has no input or output",
            ));
        };
        Ok((load, input, output))
    }

    /// Runs the client with `input` and gives all it says.
    ///
    /// # Errors
    /// It can't be started or spoken to.
    pub fn run(
        client: &Client,
        args: &[String],
        input: &str,
        cancel: &Cancel,
        scrub: &Arc<Scrub>,
    ) -> Result<(String, Ended), Failure> {
        let mut dump = spawn(client, args, Stdio::piped(), cancel, scrub)?;
        let name = dump.name.clone();
        let failed = |e: std::io::Error| {
            Failure::new(
                Reason::ClientFailed,
                format!("speaking to {name} failed: {e}"),
            )
        };
        let stdin = dump.child.stdin.take();
        let text = input.to_owned();
        // A client that refuses to connect closes its input; its own message tells more.
        let writer = std::thread::spawn(move || {
            if let Some(mut stdin) = stdin {
                let _ = stdin.write_all(text.as_bytes());
            }
        });
        let mut output = Vec::new();
        if let Some(stdout) = dump.child.stdout.take() {
            let mut stdout = Watched::new(stdout, cancel.idle(), dump.group);
            dump.stalled = stdout.stalled();
            stdout.read_to_end(&mut output).map_err(failed)?;
        }
        let _ = writer.join();
        let ended = dump.wait()?;
        Ok((String::from_utf8_lossy(&output).into_owned(), ended))
    }

    /// Sends SIGTERM to the client's group.
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
        let status = self.child.wait().map_err(|e| {
            Failure::at(
                exit::FAILED,
                Reason::ClientFailed,
                format!("waiting for {} failed: {e}", self.name),
            )
        })?;
        self.release();
        let messages = self
            .messages
            .take()
            .and_then(|m| m.join().ok())
            .unwrap_or_default();
        Ok(Ended {
            status,
            messages,
            stalled: self.stalled.limit(),
        })
    }

    fn release(&mut self) {
        if let Some(group) = self.group.take() {
            self.cancel.forget(group);
        }
    }
}

impl Drop for Dump {
    fn drop(&mut self) {
        if let Some(group) = self.group {
            let _ = kill_process_group(group, Signal::KILL);
            self.release();
            let _ = self.child.wait();
        }
    }
}

fn spawn(
    client: &Client,
    args: &[String],
    stdin: Stdio,
    cancel: &Cancel,
    scrub: &Arc<Scrub>,
) -> Result<Dump, Failure> {
    let mut child = Command::new(&client.path)
        .env_clear()
        .args(args)
        .stdin(stdin)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .current_dir("/")
        .process_group(0)
        .spawn()
        .map_err(|e| {
            Failure::settings(format!(
                "{} can't be started ({e}): use an image whose client runs on this machine",
                client.path.display()
            ))
        })?;
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    if let Some(group) = group {
        cancel.register(group);
    }
    let name = client.name();
    let messages = child.stderr.take().map(|stderr| {
        let scrub = Arc::clone(scrub);
        let name = name.clone();
        std::thread::spawn(move || gather(stderr, &name, &scrub))
    });
    Ok(Dump {
        child,
        group,
        cancel: cancel.clone(),
        messages,
        stalled: Stalled::default(),
        name,
    })
}

/// The line around a statement that MariaDB's client repeats before its error.
const ECHO: &str = "--------------";

/// Logs what the client says, and keeps the end of it. Repeated statements are neither: they may hold rows, and they
/// would crowd out the errors.
fn gather(stderr: impl Read, name: &str, scrub: &Scrub) -> Vec<String> {
    let mut kept: Vec<String> = vec![];
    let mut inside = false;
    each_line(stderr, scrub, |text| {
        if text == ECHO {
            inside = !inside;
            return;
        }
        // A statement whose echo has no end must not hide the error after it.
        inside &= !text.starts_with("ERROR ");
        if inside {
            return;
        }
        tracing::warn!(client = name, "{text}");
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
        let said = gather(text.as_bytes(), "mariadb", &Scrub::default());
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
