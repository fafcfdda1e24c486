//! A scratch server as a child: its words go into a file, and it ends with the value.

use crds::report::Reason;
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::context::Context;
use crate::failure::Failure;

/// Where the operator mounts the volume for them.
const MOUNT: &str = "/run/backup-verify";
/// A server that has not answered by then has failed.
const START: Duration = Duration::from_secs(120);
/// Time between two questions.
const PAUSE: Duration = Duration::from_millis(100);
/// Time a server gets to end before it is killed.
const END: Duration = Duration::from_secs(20);
/// So many of a server's last lines are told.
const LINES: usize = 4;

/// A directory of this verification alone; gone with it.
pub(crate) struct Area {
    /// Where it is.
    pub(crate) path: PathBuf,
    /// Field of the spec that gives it room: each kind has its own.
    pub(crate) volume: &'static str,
}

impl Area {
    /// Makes it; `volume` is the field of the spec that gives it room.
    ///
    /// # Errors
    /// There is no room.
    pub(crate) fn new(context: &Context, volume: &'static str) -> Result<Self, Failure> {
        let path = root().join(format!("scratch-{}", context.nonce));
        std::fs::create_dir(&path).map_err(|e| no_room(volume, &path, &e))?;
        Ok(Self { path, volume })
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// A file of a verification can't be written; `volume` is the field of the spec that gives it room.
pub(crate) fn no_room(volume: &str, path: &Path, error: &io::Error) -> Failure {
    Failure::new(
        Reason::ScratchFailed,
        format!(
            "{} can't be written: {error}; give {volume} more space",
            path.display()
        ),
    )
}

/// A directory of a server's own; gone with it.
pub(crate) struct Home {
    /// Where it is.
    pub(crate) path: PathBuf,
    /// Another user than root, for a server that refuses root.
    pub(crate) user: Option<u32>,
    /// As [`Area::volume`].
    pub(crate) volume: &'static str,
}

impl Home {
    /// Makes it; with `never_root` it belongs to another user where this process is root's.
    pub(crate) fn new(area: &Area, name: &str, never_root: bool) -> Result<Self, Failure> {
        let (path, volume) = (area.path.join(name), area.volume);
        std::fs::create_dir(&path).map_err(|e| no_room(volume, &path, &e))?;
        let root = rustix::process::geteuid().is_root();
        // Any other does: it is that of the runner's image.
        let user = (root && never_root).then_some(65532);
        let home = Self { path, user, volume };
        if user.is_some() {
            std::os::unix::fs::chown(&home.path, user, user)
                .map_err(|e| no_room(volume, &home.path, &e))?;
        }
        Ok(home)
    }

    /// A command in it, with an environment of its own.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env(
                "PATH",
                "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            )
            .env("LC_ALL", "C")
            .current_dir("/")
            .stdin(Stdio::null());
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        command
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// A running server.
pub(crate) struct Server {
    child: Child,
    log: PathBuf,
    stop: Signal,
}

impl Server {
    /// Starts it; `stop` has it end at once.
    pub(crate) fn start(mut command: Command, home: &Home, stop: Signal) -> Result<Self, Failure> {
        let log = home.path.join("log");
        let file = File::create(&log).map_err(|e| no_room(home.volume, &log, &e))?;
        let second = file
            .try_clone()
            .map_err(|e| no_room(home.volume, &log, &e))?;
        let child = command
            .stdout(file)
            .stderr(second)
            .process_group(0)
            .spawn()
            .map_err(|e| {
                Failure::new(
                    Reason::ScratchFailed,
                    format!("the scratch server can't be started: {e}"),
                )
            })?;
        Ok(Self { child, log, stop })
    }

    /// Waits until it answers at its socket. That it ends is no fault of what is restored: nothing was
    /// given to it yet.
    pub(crate) fn wait_until(
        &mut self,
        context: &Context,
        socket: &Path,
        mut ask: impl FnMut() -> Result<bool, Failure>,
    ) -> Result<(), Failure> {
        let ask = || Ok(if ask()? { Answer::Yes } else { Answer::No });
        match self.wait(context, socket, ask)? {
            Started::Yes => Ok(()),
            Started::Ended => Err(Failure::new(
                Reason::ScratchFailed,
                format!("the scratch server ended: {}", self.said(context)),
            )),
        }
    }

    /// Asks, once its socket is there, until the answer is there, the server has ended, or its time is
    /// up; an answer that says "busy" gives it more time.
    pub(crate) fn wait(
        &mut self,
        context: &Context,
        socket: &Path,
        mut ask: impl FnMut() -> Result<Answer, Failure>,
    ) -> Result<Started, Failure> {
        let mut deadline = Instant::now() + START;
        loop {
            context.check()?;
            // What a client says of a server that is not there yet would fill the log.
            match if socket.exists() { ask()? } else { Answer::No } {
                Answer::Yes => return Ok(Started::Yes),
                Answer::Busy => deadline = Instant::now() + START,
                Answer::No => {}
            }
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return Ok(Started::Ended);
            }
            if Instant::now() > deadline {
                return Err(Failure::new(
                    Reason::ScratchFailed,
                    format!("the scratch server does not answer: {}", self.said(context)),
                ));
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// It runs.
    pub(crate) fn runs(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Its last words of a kind: lines that hold `mark`.
    pub(crate) fn said_of(&self, context: &Context, mark: &str) -> String {
        let text = std::fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().filter(|l| l.contains(mark)).collect();
        last(context, lines.join("\n").as_bytes())
    }

    /// Its last words.
    pub(crate) fn said(&self, context: &Context) -> String {
        last(context, &std::fs::read(&self.log).unwrap_or_default())
    }
}

/// The last lines of a program's words, without secrets.
pub(crate) fn last(context: &Context, text: &[u8]) -> String {
    let tail = &text[text.len().saturating_sub(4096)..];
    let text = String::from_utf8_lossy(tail);
    let mut lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|l| !l.is_empty())
        .collect();
    let over = lines.len().saturating_sub(LINES);
    let text = lines.split_off(over).join(" / ");
    if text.is_empty() {
        return "it said nothing".to_owned();
    }
    context.scrub.clean(&text)
}

/// What a server says to whether it is ready.
pub(crate) enum Answer {
    /// It is.
    Yes,
    /// It is at work on it.
    Busy,
    /// Nothing.
    No,
}

/// What became of a server that was waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Started {
    /// It answers.
    Yes,
    /// It has ended.
    Ended,
}

impl Drop for Server {
    fn drop(&mut self) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let signal = |signal| pid.map(|pid| kill_process(pid, signal));
        if self.child.try_wait().is_ok_and(|ended| ended.is_some()) {
            return;
        }
        signal(self.stop);
        let deadline = Instant::now() + END;
        while self.child.try_wait().is_ok_and(|ended| ended.is_none()) && Instant::now() < deadline
        {
            std::thread::sleep(PAUSE);
        }
        if self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            signal(Signal::KILL);
            let _ = self.child.wait();
        }
    }
}

/// Where scratch servers keep their data: the volume that is mounted for them, or where it is not,
/// the system's directory for temporary files.
fn root() -> PathBuf {
    let root = Path::new(MOUNT);
    if root.is_dir() {
        root.to_owned()
    } else {
        std::env::temp_dir()
    }
}
