//! What every verb is given.

use chrono::{DateTime, Utc};

use crate::cli::{Change, ChangeOutput, Connection, Global};
use crate::cluster::{Cluster, Log, Object, OpenRequests};
use crate::env::Env;
use crate::error::{Error, Kind, Result};
use crate::ui::Ui;
use crate::view::output::formatted;
use crate::view::time::Zone;

/// What every verb is given.
pub(crate) struct Context {
    /// The terminal.
    pub(crate) ui: Ui,
    /// Connection flags.
    pub(crate) connection: Connection,
    /// The environment.
    pub(crate) env: Env,
    /// The zone times are shown in.
    pub(crate) zone: Zone,
    /// What was asked of the operator and has no answer yet.
    pub(crate) open_requests: OpenRequests,
    /// The namespace that the flags or the kubeconfig mean, once it is known.
    namespace: std::sync::OnceLock<String>,
    clock: (DateTime<Utc>, tokio::time::Instant),
}

impl Context {
    /// Puts together what `main` read.
    ///
    /// # Errors
    /// An unknown zone.
    pub(crate) fn new(
        global: Global,
        connection: Connection,
        env: Env,
        now: DateTime<Utc>,
    ) -> Result<Self> {
        let zone = match (&global.tz, global.utc, global.local) {
            (Some(name), ..) => Zone::Named(
                crds::schedule::parse_zone(name).map_err(|e| Error::usage(format!("--tz: {e}")))?,
            ),
            (None, true, _) => Zone::Utc,
            (None, _, true) => Zone::Local,
            _ => Zone::Schedule,
        };
        Ok(Self {
            ui: Ui::new(&global, &env),
            connection,
            env,
            zone,
            open_requests: OpenRequests::default(),
            namespace: std::sync::OnceLock::new(),
            clock: (now, tokio::time::Instant::now()),
        })
    }

    /// Now: the instant `main` read, and what has passed since.
    pub(crate) fn now(&self) -> DateTime<Utc> {
        let passed = self.clock.1.elapsed();
        self.clock.0 + chrono::Duration::from_std(passed).unwrap_or_default()
    }

    /// Where requests are told, as kubectl tells them from its level 6 on.
    pub(crate) fn log(&self) -> Option<Log> {
        (self.connection.v >= 6).then_some(crate::ui::stderr)
    }

    /// A connection to the cluster the flags name.
    ///
    /// # Errors
    /// What is wrong with the configuration.
    pub(crate) async fn cluster(&self) -> Result<Cluster> {
        let cluster = Cluster::connect(&self.connection, &self.env, self.log()).await?;
        // The first one is the one of the flags.
        let _ = self.namespace.set(cluster.namespace.clone());
        Ok(cluster)
    }

    /// What stands behind the name of an object of another namespace than the command's.
    pub(crate) fn elsewhere(&self, object: &Object) -> String {
        let namespace = object.namespace();
        match self.namespace.get() {
            Some(own) if !namespace.is_empty() && *own != namespace => {
                format!(" (namespace {namespace})")
            }
            _ => String::new(),
        }
    }

    /// Tells what a list leaves out, since the caller may not read it.
    pub(crate) fn left_out(&self, hidden: &[Error]) {
        for error in hidden {
            self.ui.warn(&format!("left out: {}", error.message));
            if let Some(hint) = &error.hint {
                self.ui.hint(hint);
            }
        }
    }

    /// Tells the outcome of a change: `kind.group/name <what>`, or the object.
    ///
    /// # Errors
    /// A closed pipe.
    pub(crate) fn changed(&self, object: &Object, what: &str, change: &Change) -> Result<()> {
        match &change.output {
            Some(ChangeOutput::Name) => self.ui.line(&object.full_name()),
            Some(ChangeOutput::Print(format)) => {
                let value = object.to_value(false);
                self.ui.out(&formatted(&value, format, false)?)
            }
            None => {
                let suffix = match change.dry_run {
                    crate::cli::DryRun::None => "",
                    crate::cli::DryRun::Client => " (dry run)",
                    crate::cli::DryRun::Server => " (server dry run)",
                };
                let elsewhere = self.elsewhere(object);
                self.ui
                    .line(&format!("{} {what}{suffix}{elsewhere}", object.full_name()))
            }
        }
    }
}

/// Ends when the user or the system asks the program to end.
pub(crate) async fn interrupted() -> Kind {
    let interrupt = tokio::signal::ctrl_c();
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            return tokio::select! {
                _ = interrupt => Kind::Interrupted,
                _ = terminate.recv() => Kind::Terminated,
            };
        }
    }
    let _ = interrupt.await;
    Kind::Interrupted
}
