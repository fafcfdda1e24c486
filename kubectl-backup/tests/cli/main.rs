//! The program as people meet it: the real binary against a server on loopback.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    missing_docs,
    unreachable_pub,
    reason = "tests"
)]

mod complete;
mod connection;
mod create;
mod describe;
mod documented;
mod edit;
mod fake;
mod flags;
mod help;
mod import;
mod judge;
mod list;
mod many;
mod narrow;
mod operator;
mod report;
mod restore;
mod rights;
mod run_now;
mod schedule;
mod startup;
mod suspend;
mod terminal;
mod unscheduled;
mod webhooks;

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use fake::Fake;

/// A command with nothing of this machine in its environment.
fn bare() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-backup"));
    command
        .env_clear()
        .env("LANG", "C.UTF-8")
        .stdin(Stdio::null());
    command
}

/// A kubeconfig for the fake server, with namespace `prod` in its context.
struct Config {
    directory: tempfile::TempDir,
}

impl Config {
    fn new(fake: &Fake) -> Self {
        let config = Self {
            directory: tempfile::tempdir().unwrap(),
        };
        config.write("config", fake, "prod-eu", Some("prod"));
        config
    }

    fn write(&self, file: &str, fake: &Fake, context: &str, namespace: Option<&str>) -> PathBuf {
        let namespace = namespace
            .map(|n| format!(", namespace: {n}"))
            .unwrap_or_default();
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: {context}\n\
             clusters: [{{name: c-{context}, cluster: {{server: 'http://{}'}}}}]\n\
             users: [{{name: alice, user: {{token: secret-token}}}}]\n\
             contexts: [{{name: {context}, context: {{cluster: c-{context}, user: alice{namespace}}}}}]\n",
            fake.address
        );
        let path = self.directory.path().join(file);
        std::fs::write(&path, text).unwrap();
        path
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = bare();
        command
            .env("KUBECONFIG", self.directory.path().join("config"))
            .args(args);
        command
    }

    fn run(&self, args: &[&str]) -> Ran {
        Ran::of(self.command(args).output().unwrap())
    }
}

/// Waits until something holds.
#[track_caller]
fn eventually(what: &str, holds: impl Fn() -> bool) {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while !holds() {
        assert!(std::time::Instant::now() < deadline, "never: {what}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// What a command left behind.
#[derive(Debug)]
struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Ran {
    fn of(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    #[track_caller]
    fn ok(self) -> Self {
        assert_eq!(self.code, Some(0), "{self:#?}");
        self
    }

    /// Standard output as JSON.
    #[track_caller]
    fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap()
    }

    #[track_caller]
    fn fails(self, code: i32, first_line: &str) -> Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        assert_eq!(self.err.lines().next(), Some(first_line), "{self:#?}");
        self
    }
}
