//! What is told while a Job is waited for: what its pods do, their logs, and progress as a bar or
//! as a line now and then.

use std::collections::HashSet;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::log_stream::stream;
use crate::cluster::Cluster;
use crate::context::Context;
use crate::startup;
use crate::ui::Mark;
use crate::view::log::readable;
use crate::view::pod::{Stage, container, needs_events};

/// How long the end of a log is waited for once the Job has ended.
const LOG_GRACE: Duration = Duration::from_secs(3);
/// How often progress is told where there is no terminal.
const TELL_EVERY: Duration = Duration::from_secs(30);
/// How often events are read of what does not start.
const LOOK_EVERY: Duration = Duration::from_secs(3);

/// The logs of a Job's pods, and what has been said of them.
pub(crate) struct Tail<'a> {
    context: &'a Context,
    cluster: &'a Cluster,
    namespace: String,
    /// Show every line, not progress alone.
    follow: bool,
    said: String,
    said_of_pods: String,
    looked: Option<Instant>,
    told: Option<Instant>,
    followed: HashSet<String>,
    sender: mpsc::Sender<String>,
    lines: mpsc::Receiver<String>,
    logs: JoinSet<()>,
    bar: Option<indicatif::ProgressBar>,
}

impl<'a> Tail<'a> {
    /// Nothing is read yet. `follow` shows every line of the logs.
    pub(crate) fn new(
        context: &'a Context,
        cluster: &'a Cluster,
        namespace: String,
        follow: bool,
    ) -> Self {
        let (sender, lines) = mpsc::channel(256);
        Self {
            context,
            cluster,
            namespace,
            follow,
            said: String::new(),
            said_of_pods: String::new(),
            looked: None,
            told: None,
            followed: HashSet::new(),
            sender,
            lines,
            logs: JoinSet::new(),
            bar: None,
        }
    }

    /// The next line of a log, for [`Self::line`].
    pub(crate) async fn next(&mut self) -> Option<String> {
        self.lines.recv().await
    }

    /// True once a log is read.
    pub(crate) fn reads(&self) -> bool {
        !self.followed.is_empty()
    }

    /// Tells a line of a log: progress becomes a bar, or now and then a line.
    pub(crate) fn line(&mut self, line: &str) {
        let Some(progress) = crate::view::progress::parse(line) else {
            if self.follow {
                let line = match self.context.ui.is_read_beside() {
                    true => readable(line, self.context.zone),
                    false => line.into(),
                };
                match &self.bar {
                    Some(bar) => bar.suspend(|| self.context.ui.note(&line)),
                    None => self.context.ui.note(&line),
                }
            }
            return;
        };
        if self.bar.is_none() {
            self.bar = self.context.ui.bar();
        }
        if let Some(bar) = &self.bar {
            bar.set_position(progress.percent.unwrap_or(0));
            bar.set_message(crate::text::sanitise(&progress.text()));
        } else if self.told.is_none_or(|at| at.elapsed() >= TELL_EVERY) {
            self.told = Some(Instant::now());
            self.say(progress.text());
        }
    }

    /// Says something once, above the bar.
    pub(crate) fn say(&mut self, text: String) {
        if text != self.said {
            self.tell(&text);
            self.said = text;
        }
    }

    /// As [`Self::say`], of what the pods do: it and what the status says do not repeat each other.
    fn say_of_pods(&mut self, text: String) {
        if text != self.said_of_pods {
            self.tell(&text);
            self.said_of_pods = text;
        }
    }

    fn tell(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| self.context.ui.progress(Mark::Wait, text)),
            None => self.context.ui.progress(Mark::Wait, text),
        }
    }

    /// Takes the bar away.
    pub(crate) fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }

    /// Says what the Job's pods wait for, and begins to read the logs of those that have started.
    /// Without the right to list pods there are just fewer words.
    pub(crate) async fn pods(&mut self, job: &str) {
        let Ok(pods) = self.cluster.pods(&self.namespace, job).await else {
            return;
        };
        let looks = self.looked.is_none_or(|at| at.elapsed() >= LOOK_EVERY);
        if pods.is_empty() && looks {
            self.looked = Some(Instant::now());
            if let Some(why) = startup::of_job(self.cluster, &self.namespace, job).await {
                self.say_of_pods(format!("job {job} has no pod yet: {why}"));
            }
        }
        for pod in &pods {
            let (Some(name), Some(container)) = (pod.metadata.name.clone(), container(pod)) else {
                continue;
            };
            let asks = needs_events(pod, &container);
            if asks && !looks {
                continue;
            }
            if asks {
                self.looked = Some(Instant::now());
            }
            match startup::of_pod(self.cluster, &self.namespace, pod, &container).await {
                Stage::Waiting(why) => self.say_of_pods(format!("pod {name}: {why}")),
                Stage::Running(_) | Stage::Ended(_) => {
                    if self.followed.insert(name.clone()) {
                        self.logs.spawn(stream(
                            self.cluster.clone(),
                            self.namespace.clone(),
                            name,
                            container,
                            self.sender.clone(),
                        ));
                    }
                }
            }
        }
    }

    /// Tells what is left of the logs once the Job has ended, and takes the bar away.
    pub(crate) async fn drain(&mut self, job: Option<&str>) {
        match job {
            // A Job may end before its pod was ever seen.
            Some(job) if self.follow => self.pods(job).await,
            _ if self.follow => {}
            _ => self.logs.abort_all(),
        }
        let limit = Instant::now() + LOG_GRACE;
        while !self.logs.is_empty() {
            tokio::select! {
                _ = self.logs.join_next() => {}
                Some(line) = self.lines.recv() => self.line(&line),
                () = tokio::time::sleep_until(limit) => break,
            }
        }
        while let Ok(line) = self.lines.try_recv() {
            self.line(&line);
        }
        self.clear();
    }
}
