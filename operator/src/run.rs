//! Wiring: from flags to a running operator.

use std::sync::Arc;

use anyhow::Context as _;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::args::{Args, limit};
use crate::backup::{Backups, Which};
use crate::context::{ApiClient, Clock, Config, Context, Leadership};
use crate::controller::Controller;
use crate::kind::References;
use crate::metrics::Metrics;
use crate::mysql_backup::MysqlBackups;
use crate::{admin, answers, lease, restore, telemetry, webhook};

/// Runs until SIGTERM or SIGINT.
///
/// # Errors
/// If the cluster can't be reached as configured, or an address is taken.
pub async fn run(args: Args) -> anyhow::Result<()> {
    telemetry::init(&args.log_level).context("--log-level is not a valid filter")?;
    // A second provider would make this fail; there is none.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let stop = CancellationToken::new();
    stop_on_signals(&stop)?;
    let client = kube::Client::try_default()
        .await
        .context("failed to configure the client; set KUBECONFIG or run in a pod")?;
    let client = answers::bounded(client);
    let clock = Clock::system();
    let webhook_metrics = webhook::Metrics::default();
    let metrics = Metrics::new(|registry| {
        if args.enable_webhooks {
            webhook_metrics.register(registry);
        }
    });
    let leadership = if args.leader_elect {
        Leadership::none()
    } else {
        Leadership::always(clock.now())
    };
    let ctx = Context {
        client: ApiClient(client.clone()),
        leadership: leadership.clone(),
        clock: clock.clone(),
        config: Arc::new(Config {
            namespaces: args.namespaces(),
            instance: args.pod_name.clone(),
            installation: format!("{}/{}", args.operator_namespace, lease_name(&args)),
            cluster: Arc::default(),
            max_active_runs: limit(args.max_active_runs),
            max_active_runs_per_namespace: limit(args.max_active_runs_per_namespace),
            workers: args.workers,
            policy: args.policy(),
            runner_image: args.runner_image.clone(),
        }),
        metrics: metrics.clone(),
    };
    let kind =
        MysqlBackups::new(args.runner_image.clone()).with_slim_runner(args.slim_runner_image());
    let backups = |which| Backups {
        which,
        runner_image: args.runner_image.clone(),
        gobackup_image: args.backup_job_image.clone(),
        engine: args.backup_engine,
        references: Arc::new(References::default()),
    };
    let restores = restore::run(ctx.clone(), stop.clone());
    let controller = Controller::new(
        ctx,
        vec![
            Box::new(kind),
            Box::new(backups(Which::Backup)),
            Box::new(backups(Which::CronBackup)),
        ],
    );
    let ready = controller.clone();
    let health = admin::serve_health(
        args.health_probe_bind_address,
        Arc::new(move || ready.is_ready()),
        stop.clone(),
    );
    let series = admin::serve_metrics(args.metrics_bind_address, metrics.clone(), stop.clone());
    // The lease is handed over only when nothing is written any more.
    let idle = CancellationToken::new();
    let candidate = controller.clone();
    let eligible = Arc::new(move || candidate.is_ready());
    let election = elect(
        &args,
        client.clone(),
        &clock,
        &leadership,
        eligible,
        idle.clone(),
    );
    let callers = webhook_callers(&args)?;
    let webhooks = serve_webhooks(
        &args,
        client,
        callers,
        &clock,
        webhook_metrics,
        stop.clone(),
    );
    tracing::info!(version = crds::VERSION, runner_image = %args.runner_image, "starting");
    let work = async {
        tokio::try_join!(controller.run(stop.clone()), restores)?;
        idle.cancel();
        Ok(())
    };
    let background = async {
        let shown = async {
            tokio::select! {
                () = stop.cancelled() => {}
                () = show_leadership(&leadership, &metrics) => {}
            }
        };
        tokio::join!(election, webhooks, shown);
        Ok(())
    };
    tokio::try_join!(health, series, work, background)?;
    tracing::info!("stopped");
    Ok(())
}

fn lease_name(args: &Args) -> &'static str {
    if args.leader_elect {
        lease::LEASE_NAME
    } else {
        lease::PRESENCE_NAME
    }
}

/// Takes part in the election until `idle`. Without one, keeps a Lease all the same, on which
/// nothing of this process depends: by it other installations see that this one works.
async fn elect(
    args: &Args,
    client: kube::Client,
    clock: &Clock,
    leadership: &Leadership,
    eligible: Arc<dyn Fn() -> bool + Send + Sync>,
    idle: CancellationToken,
) {
    let leadership = if args.leader_elect {
        leadership.clone()
    } else {
        Leadership::none()
    };
    let settings = lease::Settings {
        identity: lease::identity(args.pod()),
        namespace: args.operator_namespace.clone(),
        name: lease_name(args).to_owned(),
        timing: lease::election::Timing::default(),
        eligible,
        clock: clock.clone(),
    };
    let elector = lease::Elector::new(client, settings, leadership);
    elector.run(idle.cancelled()).await;
}

/// The CAs of whoever may call the webhooks, if a file of them is named.
fn webhook_callers(args: &Args) -> anyhow::Result<Option<webhook::certs::Callers>> {
    let Some(path) = args
        .webhook_client_ca
        .as_ref()
        .filter(|_| args.enable_webhooks)
    else {
        return Ok(None);
    };
    let opened = webhook::certs::Callers::open(path);
    let callers = opened.map_err(|fault| anyhow::anyhow!("--webhook-client-ca: {fault}"))?;
    Ok(Some(callers))
}

/// Serves the webhooks until `stop`, if they are wanted.
async fn serve_webhooks(
    args: &Args,
    client: kube::Client,
    callers: Option<webhook::certs::Callers>,
    clock: &Clock,
    metrics: webhook::Metrics,
    stop: CancellationToken,
) {
    if !args.enable_webhooks {
        return;
    }
    let directory = args.webhook_cert_dir.clone();
    let settings = webhook::Settings {
        address: args.webhook_bind_address,
        source: webhook::Source::choose(directory, &args.operator_namespace),
        callers,
    };
    webhook::run(settings, client, clock.clone(), metrics, stop).await;
}

/// Keeps the metric of leadership true. Never returns.
async fn show_leadership(leadership: &Leadership, metrics: &Metrics) {
    loop {
        metrics.leader.set(0);
        leadership.gained().await;
        metrics.leader.set(1);
        leadership.lost().await;
    }
}

fn stop_on_signals(stop: &CancellationToken) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let stop = stop.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        stop.cancel();
    });
    Ok(())
}
