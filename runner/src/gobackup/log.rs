//! What gobackup says while it works: how far it is, with which Database, and why it failed. PURE.

use crate::database::failures::explain;
use crate::failure::Failure;
use crate::process::Ended;
use crds::report::Reason;

/// So many of its last lines are kept.
const KEPT: usize = 20;
/// So many lines of a failure are told.
const TOLD: usize = 3;
/// What a line of a failure holds.
const SIGNS: [&str; 14] = [
    "error",
    "fail",
    "denied",
    "refused",
    "cannot",
    "can't",
    "could not",
    "no such",
    "not found",
    "timeout",
    "timed out",
    "invalid",
    "required",
    "unable",
];

/// Lines with such signs that tell nothing: before it says why, and of its own list of archives, which most storages do not
/// give back and none of which is used.
const NOISE: [&str; 2] = ["Dump failed", "cycler state"];

/// How far it came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Stage {
    /// It dumps, or has not begun.
    #[default]
    Dumping,
    /// It compresses and encrypts.
    Packing,
    /// It stores.
    Storing,
}

/// Listens to its lines.
#[derive(Debug, Default)]
pub(crate) struct Listener {
    stage: Stage,
    database: Option<String>,
    lines: Vec<String>,
}

/// How it ended.
#[derive(Debug)]
pub(crate) struct Said {
    /// Status and what it said to standard error.
    pub(crate) ended: Ended,
    /// How far it came.
    pub(crate) stage: Stage,
    /// The Database it dumped last.
    pub(crate) database: Option<String>,
    lines: Vec<String>,
}

impl Listener {
    /// How far it is.
    pub(crate) fn stage(&self) -> Stage {
        self.stage
    }

    /// Takes a line; false if it is empty.
    pub(crate) fn hear(&mut self, line: &str) -> bool {
        let text = plain(line);
        if let Some((_, rest)) = text.split_once("=> database |") {
            self.stage = Stage::Dumping;
            self.database = rest.split_once(':').map(|(_, name)| name.trim().to_owned());
        } else if text.contains("=> Compress |") {
            self.stage = Stage::Packing;
        } else if text.contains("=> Storage |") {
            self.stage = Stage::Storing;
        }
        if text.is_empty() {
            return false;
        }
        if self.lines.len() == KEPT {
            self.lines.remove(0);
        }
        self.lines.push(text);
        true
    }

    /// The end.
    pub(crate) fn end(self, ended: Ended) -> Said {
        Said {
            ended,
            stage: self.stage,
            database: self.database,
            lines: self.lines,
        }
    }
}

impl Said {
    /// Why it failed, in its words and ours.
    pub(crate) fn failure(&self) -> Failure {
        let mut words: Vec<String> = vec![];
        let all = self.lines.iter().chain(&self.ended.messages);
        let telling = all.clone().filter(|line| {
            let lower = line.to_lowercase();
            !NOISE.iter().any(|noise| line.contains(noise))
                && SIGNS.iter().any(|sign| lower.contains(sign))
        });
        for line in telling {
            if !words.iter().any(|w| w.contains(line.as_str())) {
                words.retain(|w| !line.contains(w.as_str()));
                words.push(line.clone());
            }
        }
        if words.is_empty() {
            words.extend(all.last().cloned());
        }
        let from = words.len().saturating_sub(TOLD);
        let ended = Ended {
            status: self.ended.status,
            messages: words.split_off(from),
            stalled: None,
        };
        match (self.stage, &self.database) {
            (Stage::Storing, _) => Failure::new(
                Reason::StoreFailed,
                format!(
                    "gobackup ended with {} while it stored: {}: check the settings of the Storage and its rights, then run again",
                    ended.status_text(),
                    ended.messages.join(" / ")
                ),
            ),
            (Stage::Dumping, Some(name)) => {
                let failure = explain("gobackup", &ended);
                Failure {
                    message: format!("Database {name}: {}", failure.message),
                    ..failure
                }
            }
            _ => explain("gobackup", &ended),
        }
    }
}

/// A line without colours, without the time before it, without tags of the parts it comes from.
fn plain(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        text.push_str(before);
        rest = after.split_once('m').map_or("", |(_, rest)| rest);
    }
    text.push_str(rest);
    let mut text = text.trim();
    let time = |word: &str| {
        word.len() >= 8
            && word
                .chars()
                .all(|c| c.is_ascii_digit() || "/:.".contains(c))
    };
    for _ in 0..2 {
        if let Some((word, rest)) = text.split_once(' ')
            && time(word)
        {
            text = rest.trim_start();
        }
    }
    while let Some((_, rest)) = text.strip_prefix('[').and_then(|t| t.split_once("] ")) {
        text = rest.trim_start();
    }
    text.to_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::ExitStatus;

    use super::*;

    fn said(lines: &[&str]) -> Said {
        let mut listener = Listener::default();
        for line in lines {
            listener.hear(line);
        }
        listener.end(Ended {
            status: ExitStatus::from_raw(1 << 8),
            messages: vec![],
            stalled: None,
        })
    }

    /// Lines as gobackup's loggers write them.
    #[test]
    fn a_failing_dump_names_the_database_and_says_why_once() {
        let said = said(&[
            "2026/11/28 10:00:00 [Config] Load config: /run/backup/gobackup.yml",
            "2026/11/28 10:00:00 [Database] => database | redis: cache",
            "2026/11/28 10:00:01 [Database] => database | mysql: shop",
            "2026/11/28 10:00:01 [MySQL] -> Dumping MySQL...",
            "2026/11/28 10:00:01 [Database] Dump failed",
            "2026/11/28 10:00:01 [Model: nightly] \u{1b}[31m-> Dump error: mysqldump: Got error: 1045: \"Access denied for user 'x'\"\u{1b}[0m",
            "2026/11/28 10:00:01 [Model] Cleanup temp: /work/tmp/1/",
            "2026/11/28 10:00:01 [Model nightly] -> Dump error: mysqldump: Got error: 1045: \"Access denied for user 'x'\"",
            "2026/11/28 10:00:01 -> Dump error: mysqldump: Got error: 1045: \"Access denied for user 'x'\"",
        ]);
        let failure = said.failure();
        assert_eq!(
            (failure.exit_code, failure.reason.as_str()),
            (3, "AccessDenied")
        );
        assert_eq!(
            failure.message,
            "Database shop: gobackup ended with exit status 1: -> Dump error: mysqldump: Got error: 1045: \"Access denied for user 'x'\": check the user name and the password of the Database"
        );
    }

    #[test]
    fn a_failing_storage_is_a_failure_of_the_store() {
        let said = said(&[
            "2026/11/28 10:00:01 [Database] => database | mysql: shop",
            "2026/11/28 10:00:01 [Compressor] => Compress | tgz",
            "2026/11/28 10:00:01 [Storage] => Storage | s3",
            "2026/11/28 10:00:02 [Model: nightly] failed to upload file, NoSuchBucket",
        ]);
        let failure = said.failure();
        assert_eq!(
            (failure.exit_code, failure.reason.as_str()),
            (4, "StoreFailed")
        );
        assert!(
            failure.message.contains("NoSuchBucket"),
            "{}",
            failure.message
        );
    }

    /// As gobackup 3.1.1 said it of a good storage and one without its bucket.
    #[test]
    fn its_own_list_of_archives_is_no_failure() {
        let failure = said(&[
            "2026/11/29 08:56:18 [Storage] => Storage | local",
            "2026/11/29 08:56:18 [Cycler] Remote cycler state not found or unavailable: Local is not support download, falling back to local",
            "2026/11/29 08:56:18 [Local] Failed to save cycler state to remote storage: /usr/bin/cp: cannot stat '/work/state/cycler/cycler-state-48/dummy': No such file or directory",
            "2026/11/29 08:56:18 [Storage] => Storage | s3",
            "2026/11/29 08:56:18 [Model: m] Storage errors: [NoSuchBucket: The specified bucket does not exist]",
        ])
        .failure();
        assert_eq!(
            failure.message,
            "gobackup ended with exit status 1 while it stored: Storage errors: [NoSuchBucket: The specified bucket does not exist]: check the settings of the Storage and its rights, then run again"
        );
    }

    #[test]
    fn without_a_word_it_is_said_so() {
        let failure = said(&[]).failure();
        assert!(
            failure.message.contains("it said nothing"),
            "{}",
            failure.message
        );
    }
}
