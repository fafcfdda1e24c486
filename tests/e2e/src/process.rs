//! Commands with their whole output.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// What a command left behind.
#[derive(Debug)]
pub struct Output {
    /// The command line, for messages.
    pub command: String,
    /// Exit code; -1 if a signal ended it.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Output {
    /// Fails the test unless the exit code is 0.
    pub fn ok(self) -> Self {
        self.code(0)
    }

    /// Fails the test unless the exit code is `code`.
    pub fn code(self, code: i32) -> Self {
        assert_eq!(
            self.code, code,
            "exit code of {}\nstdout:\n{}\nstderr:\n{}",
            self.command, self.stdout, self.stderr
        );
        self
    }

    /// Standard output and error together.
    pub fn all(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }
}

pub(crate) fn run(program: &Path, kubeconfig: &Path, args: &[&str], input: Option<&str>) -> Output {
    let mut child = Command::new(program)
        .args(args)
        .env("KUBECONFIG", kubeconfig)
        .env("NO_COLOR", "1")
        .stdin(if input.is_some() {
            Stdio::piped()
        } else {
            Stdio::null()
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|e| panic!("{}: {e}", program.display()));
    let stdin = child.stdin.take();
    let output = std::thread::scope(|scope| {
        // Beside the reading: a command may print before it has read everything.
        scope.spawn(|| {
            if let (Some(text), Some(mut stdin)) = (input, stdin) {
                stdin
                    .write_all(text.as_bytes())
                    .expect("the command reads its input");
            }
        });
        child
            .wait_with_output()
            .expect("the command can be waited for")
    });
    Output {
        command: format!("{} {}", program.display(), args.join(" ")),
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

pub(crate) fn spawn(program: &Path, kubeconfig: &Path, args: &[&str]) -> std::process::Child {
    Command::new(program)
        .args(args)
        .env("KUBECONFIG", kubeconfig)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap_or_else(|e| panic!("{}: {e}", program.display()))
}
