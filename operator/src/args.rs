//! Flags and environment.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::builder::BoolishValueParser;
use clap::{ArgAction, Parser};
use crds::backup::RunEngine;

use crate::policy::Policy;

/// Name in events of an operator that runs outside a pod.
const OUTSIDE: &str = "backup-operator";

/// Turns every due moment of a backup schedule into a Kubernetes Job.
#[derive(Clone, Debug, Parser)]
#[command(name = "backup-operator", version, about)]
pub struct Args {
    /// Image of backup-runner, used where spec.image is absent.
    #[arg(long, env = "RUNNER_IMAGE", value_name = "IMAGE")]
    pub runner_image: String,
    /// Image of backup-runner without clients and servers of databases, used by runs that need none where spec.image is
    /// absent. Empty means that all use --runner-image.
    #[arg(
        long,
        env = "SLIM_RUNNER_IMAGE",
        default_value = "",
        value_name = "IMAGE"
    )]
    pub slim_runner_image: String,
    /// What dumps, packs and stores for Backups whose spec.job.engine is unset: native, the runner,
    /// or gobackup.
    #[arg(
        long,
        env = "BACKUP_ENGINE",
        default_value = "native",
        value_name = "ENGINE",
        value_parser = engine
    )]
    pub backup_engine: RunEngine,
    /// Image of gobackup, used by its engine where spec.job.image is absent.
    #[arg(
        long,
        env = "BACKUP_JOB_IMAGE",
        default_value = "huacnlee/gobackup:v3.1.1",
        value_name = "IMAGE"
    )]
    pub backup_job_image: String,
    /// Address of /metrics.
    #[arg(
        long,
        env = "METRICS_BIND_ADDRESS",
        default_value = "0.0.0.0:8080",
        value_name = "ADDRESS"
    )]
    pub metrics_bind_address: SocketAddr,
    /// Address of /healthz and /readyz.
    #[arg(
        long,
        env = "HEALTH_PROBE_BIND_ADDRESS",
        default_value = "0.0.0.0:8081",
        value_name = "ADDRESS"
    )]
    pub health_probe_bind_address: SocketAddr,
    /// Namespaces to watch, separated by commas. Empty means all.
    #[arg(
        long,
        env = "WATCH_NAMESPACES",
        value_delimiter = ',',
        value_name = "NAMESPACES"
    )]
    pub watch_namespaces: Vec<String>,
    /// Most runs at a time, in all. 0 means no limit.
    #[arg(long, env = "MAX_ACTIVE_RUNS", default_value_t = 0, value_name = "N")]
    pub max_active_runs: usize,
    /// Most runs at a time in one namespace. 0 means no limit.
    #[arg(
        long,
        env = "MAX_ACTIVE_RUNS_PER_NAMESPACE",
        default_value_t = 0,
        value_name = "N"
    )]
    pub max_active_runs_per_namespace: usize,
    /// Images that pods of backups may run beside the runner's, separated by commas; * stands for
    /// any text. Empty allows all.
    #[arg(
        long,
        env = "ALLOWED_IMAGES",
        value_delimiter = ',',
        value_name = "IMAGES"
    )]
    pub allowed_images: Vec<String>,
    /// Start no pod with a hostPath volume.
    #[arg(
        long,
        env = "FORBID_HOST_PATH",
        default_value = "false",
        default_missing_value = "true",
        num_args = 0..=1,
        require_equals = true,
        action = ArgAction::Set,
        value_parser = BoolishValueParser::new(),
        value_name = "BOOL"
    )]
    pub forbid_host_path: bool,
    /// Start no pod with a service account other than default.
    #[arg(
        long,
        env = "FORBID_SERVICE_ACCOUNTS",
        default_value = "false",
        default_missing_value = "true",
        num_args = 0..=1,
        require_equals = true,
        action = ArgAction::Set,
        value_parser = BoolishValueParser::new(),
        value_name = "BOOL"
    )]
    pub forbid_service_accounts: bool,
    /// Start no pod that asks for more than the Pod Security Standard "restricted" lets it ask for.
    #[arg(
        long,
        env = "FORBID_PRIVILEGED",
        default_value = "false",
        default_missing_value = "true",
        num_args = 0..=1,
        require_equals = true,
        action = ArgAction::Set,
        value_parser = BoolishValueParser::new(),
        value_name = "BOOL"
    )]
    pub forbid_privileged: bool,
    /// What pods may ask for under --forbid-privileged all the same, separated by commas: Privileged,
    /// PrivilegeEscalation, RunAsRoot, Capability:NAME, HostNetwork, HostPID, HostIPC, HostPath,
    /// HostPorts, HostProcess, ProcMount, SELinux, Sysctl:NAME, Unconfined.
    #[arg(
        long,
        env = "ALLOWED_PRIVILEGES",
        value_delimiter = ',',
        value_name = "PRIVILEGES"
    )]
    pub allowed_privileges: Vec<String>,
    /// Objects worked on at a time.
    #[arg(long, env = "WORKERS", default_value_t = 64, value_name = "N")]
    pub workers: usize,
    /// Name of this pod, shown in events.
    #[arg(
        long,
        env = "POD_NAME",
        default_value = OUTSIDE,
        value_name = "NAME"
    )]
    pub pod_name: String,
    /// Namespace of this operator: of its Lease and its webhook certificate.
    #[arg(
        long,
        env = "POD_NAMESPACE",
        default_value = "backup-system",
        value_name = "NAMESPACE"
    )]
    pub operator_namespace: String,
    /// Of several replicas let one start runs, chosen by a Lease.
    #[arg(
        long,
        env = "LEADER_ELECT",
        default_value = "false",
        default_missing_value = "true",
        num_args = 0..=1,
        require_equals = true,
        action = ArgAction::Set,
        value_parser = BoolishValueParser::new(),
        value_name = "BOOL"
    )]
    pub leader_elect: bool,
    /// Serve the defaulting and validating webhooks.
    #[arg(
        long,
        env = "ENABLE_WEBHOOKS",
        default_value = "true",
        default_missing_value = "true",
        num_args = 0..=1,
        require_equals = true,
        action = ArgAction::Set,
        value_parser = BoolishValueParser::new(),
        value_name = "BOOL"
    )]
    pub enable_webhooks: bool,
    /// Address of the webhooks.
    #[arg(
        long,
        env = "WEBHOOK_BIND_ADDRESS",
        default_value = "0.0.0.0:9443",
        value_name = "ADDRESS"
    )]
    pub webhook_bind_address: SocketAddr,
    /// Directory of the webhooks' tls.crt and tls.key. Unset means
    /// /tmp/k8s-webhook-server/serving-certs if tls.crt is there, else a certificate the operator
    /// makes itself, kept in the Secret backup-operator-webhook-cert.
    #[arg(long, env = "WEBHOOK_CERT_DIR", value_name = "DIRECTORY")]
    pub webhook_cert_dir: Option<PathBuf>,
    /// File of CAs, PEM: whoever calls the webhooks has to show a certificate that one of them signed.
    /// The API server shows one only where its --admission-control-config-file names it.
    #[arg(long, env = "WEBHOOK_CLIENT_CA", value_name = "FILE")]
    pub webhook_client_ca: Option<PathBuf>,
    /// Least severe log line: error, warn, info, debug, trace, or a tracing filter.
    #[arg(long, env = "LOG_LEVEL", default_value = "info", value_name = "LEVEL")]
    pub log_level: String,
}

impl Args {
    /// The namespaces without blanks and empty parts.
    #[must_use]
    pub fn namespaces(&self) -> Vec<String> {
        let parts = self.watch_namespaces.iter().map(|n| n.trim());
        parts.filter(|n| !n.is_empty()).map(str::to_owned).collect()
    }
}

impl Args {
    /// What pods of backups may not have.
    #[must_use]
    pub fn policy(&self) -> Policy {
        let images = self.allowed_images.iter().map(|i| i.trim());
        let mut images: Vec<String> = images
            .filter(|i| !i.is_empty())
            .map(str::to_owned)
            .collect();
        if !images.is_empty() {
            images.extend(self.slim_runner_image().map(str::to_owned));
        }
        Policy {
            images,
            forbid_host_path: self.forbid_host_path,
            forbid_service_account: self.forbid_service_accounts,
            forbid_privileged: self.forbid_privileged,
            privileges: self
                .allowed_privileges
                .iter()
                .map(|p| p.trim().to_owned())
                .filter(|p| !p.is_empty())
                .collect(),
        }
    }

    /// The runner's image without clients, if there is one.
    #[must_use]
    pub fn slim_runner_image(&self) -> Option<&str> {
        Some(self.slim_runner_image.trim()).filter(|image| !image.is_empty())
    }

    /// Name of the pod, unless this runs outside one.
    #[must_use]
    pub fn pod(&self) -> Option<&str> {
        (self.pod_name != OUTSIDE).then_some(&self.pod_name)
    }
}

fn engine(text: &str) -> Result<RunEngine, &'static str> {
    match text {
        "native" => Ok(RunEngine::Native),
        "gobackup" => Ok(RunEngine::Gobackup),
        _ => Err("use native or gobackup"),
    }
}

/// 0 means no limit.
#[must_use]
pub fn limit(most: usize) -> Option<usize> {
    (most > 0).then_some(most)
}
