//! kubectl's connection flags, all of them, under the names kubectl gives them.

use std::path::PathBuf;

use clap::Args;

/// How to reach the cluster, and as whom.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Connection flags, as kubectl's")]
pub(crate) struct Connection {
    /// Path to the kubeconfig file to use
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The name of the kubeconfig context to use
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// The name of the kubeconfig cluster to use
    #[arg(long, global = true, value_name = "NAME", hide_short_help = true)]
    pub(crate) cluster: Option<String>,
    /// The name of the kubeconfig user to use
    #[arg(long, global = true, value_name = "NAME", hide_short_help = true)]
    pub(crate) user: Option<String>,
    /// The namespace to act in; the context's if unset
    #[arg(short, long, global = true, value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,
    /// The address and port of the Kubernetes API server
    #[arg(short, long, global = true, value_name = "URL", hide_short_help = true)]
    pub(crate) server: Option<String>,
    /// Bearer token for authentication to the API server
    #[arg(long, global = true, value_name = "TOKEN", hide_short_help = true)]
    pub(crate) token: Option<String>,
    /// Username for basic authentication to the API server
    #[arg(long, global = true, value_name = "NAME", hide_short_help = true)]
    pub(crate) username: Option<String>,
    /// Password for basic authentication to the API server
    #[arg(long, global = true, value_name = "PASSWORD", hide_short_help = true)]
    pub(crate) password: Option<String>,
    /// Path to a client certificate file for TLS
    #[arg(long, global = true, value_name = "FILE", hide_short_help = true)]
    pub(crate) client_certificate: Option<PathBuf>,
    /// Path to a client key file for TLS
    #[arg(long, global = true, value_name = "FILE", hide_short_help = true)]
    pub(crate) client_key: Option<PathBuf>,
    /// Path to a certificate file for the certificate authority
    #[arg(long, global = true, value_name = "FILE", hide_short_help = true)]
    pub(crate) certificate_authority: Option<PathBuf>,
    /// Do not check the server's certificate: the connection becomes insecure
    #[arg(long, global = true, hide_short_help = true, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub(crate) insecure_skip_tls_verify: Option<bool>,
    /// Server name to check the server's certificate against
    #[arg(long, global = true, value_name = "NAME", hide_short_help = true)]
    pub(crate) tls_server_name: Option<String>,
    /// Username to impersonate for the operation
    #[arg(
        long = "as",
        global = true,
        value_name = "NAME",
        hide_short_help = true
    )]
    pub(crate) as_user: Option<String>,
    /// Group to impersonate for the operation; can be repeated
    #[arg(long, global = true, value_name = "GROUP", hide_short_help = true)]
    pub(crate) as_group: Vec<String>,
    /// UID to impersonate for the operation
    #[arg(long, global = true, value_name = "UID", hide_short_help = true)]
    pub(crate) as_uid: Option<String>,
    /// Extra attribute to impersonate, as KEY=VALUE; can be repeated
    #[arg(long, global = true, value_name = "KEY=VALUE", hide_short_help = true)]
    pub(crate) as_user_extra: Vec<String>,
    /// How long to wait for one answer of the server, such as 30s; 0, the default, waits for ever
    #[arg(long, global = true, value_name = "DURATION", hide_short_help = true)]
    pub(crate) request_timeout: Option<String>,
    /// Level of the log on stderr: from 6 on a line for each request, with method, URL, status and milliseconds; headers and bodies are never shown
    #[arg(
        short = 'v',
        long = "v",
        alias = "verbose",
        global = true,
        value_name = "LEVEL",
        default_value_t,
        hide_short_help = true
    )]
    pub(crate) v: u8,
    /// Accepted because kubectl has it; has no effect, as nothing is cached
    #[arg(long, global = true, value_name = "DIR", hide_short_help = true)]
    pub(crate) cache_dir: Option<PathBuf>,
    /// Accepted because kubectl has it; has no effect, as answers are never compressed
    #[arg(long, global = true, hide_short_help = true, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub(crate) disable_compression: Option<bool>,
}

impl Connection {
    /// What is said of flags that are kubectl's and do nothing here.
    pub(crate) fn idle(&self) -> Vec<&'static str> {
        let rows = [
            (
                self.cache_dir.is_some(),
                "--cache-dir does nothing here: nothing is cached",
            ),
            (
                self.disable_compression.is_some(),
                "--disable-compression does nothing here: answers are never compressed",
            ),
        ];
        let given = rows.into_iter().filter(|(given, _)| *given);
        given.map(|(_, text)| text).collect()
    }
}
