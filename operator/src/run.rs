//! Wiring: from flags to a running operator.

use std::sync::Arc;

use anyhow::Context as _;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::args::{Args, limit};
use crate::context::{ApiClient, Clock, Config, Context, Leadership};
use crate::controller::Controller;
use crate::metrics::Metrics;
use crate::mysql_backup::MysqlBackups;
use crate::{admin, telemetry};

/// Runs until SIGTERM or SIGINT.
///
/// # Errors
/// If the cluster can't be reached as configured, or an address is taken.
pub async fn run(args: Args) -> anyhow::Result<()> {
    telemetry::init(&args.log_level).context("--log-level is no filter")?;
    // A second provider would make this fail; there is none.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let stop = CancellationToken::new();
    stop_on_signals(&stop)?;
    let client = kube::Client::try_default()
        .await
        .context("failed to configure the client; set KUBECONFIG or run in a pod")?;
    let clock = Clock::system();
    let metrics = Metrics::default();
    let ctx = Context {
        client: ApiClient(client),
        leadership: Leadership::always(clock.now()),
        clock,
        config: Arc::new(Config {
            namespaces: args.namespaces(),
            instance: args.pod_name.clone(),
            max_active_runs: limit(args.max_active_runs),
            max_active_runs_per_namespace: limit(args.max_active_runs_per_namespace),
            workers: args.workers,
        }),
        metrics: metrics.clone(),
    };
    metrics.leader.set(1);
    let kind = MysqlBackups {
        runner_image: args.runner_image.clone(),
    };
    let controller = Controller::new(ctx, vec![Box::new(kind)]);
    let ready = controller.clone();
    let health = admin::serve_health(
        args.health_probe_bind_address,
        Arc::new(move || ready.is_ready()),
        stop.clone(),
    );
    let series = admin::serve_metrics(args.metrics_bind_address, metrics, stop.clone());
    tracing::info!(version = crds::VERSION, runner_image = %args.runner_image, "starting");
    let work = async {
        controller.run(stop.clone()).await;
        Ok(())
    };
    tokio::try_join!(health, series, work)?;
    tracing::info!("stopped");
    Ok(())
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
