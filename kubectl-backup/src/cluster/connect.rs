//! From flags, environment and kubeconfig to a client, by kubectl's rules of precedence.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use kube::config::{
    AuthInfo, Config, Context, KubeConfigOptions, Kubeconfig, NamedAuthInfo, NamedCluster,
    NamedContext,
};
use secrecy::ExposeSecret;

use super::helper::chain;
use crate::cli::Connection;
use crate::env::Env;
use crate::error::{Error, Kind, Result};

/// Name of cluster, user and context made from flags alone.
const FLAGS: &str = "flags";

/// Where a request goes and as whom.
pub(crate) struct Endpoint {
    /// The client's configuration.
    pub(crate) config: Config,
    /// Namespace to act in.
    pub(crate) namespace: String,
    /// Name of the context, for messages.
    pub(crate) context: String,
    /// Name of the kubeconfig's user, or whom it impersonates.
    pub(crate) user: String,
}

/// Reads what there is to read; sends nothing.
///
/// # Errors
/// Unreadable files, unknown names and bad values, each with its name.
pub(crate) async fn endpoint(flags: &Connection, env: &Env) -> Result<Endpoint> {
    let kubeconfig = match load(flags, env)? {
        Some(kubeconfig) => kubeconfig,
        None if flags.server.is_none() && env.in_cluster => return in_cluster(flags),
        None if flags.server.is_some() => Kubeconfig::default(),
        None => {
            return Err(Error::new(
                Kind::Unreachable,
                "no cluster: there is no kubeconfig and this is not a pod",
            )
            .hint("set KUBECONFIG, or use --kubeconfig FILE"));
        }
    };
    let context = flags
        .context
        .clone()
        .or_else(|| kubeconfig.current_context.clone());
    let (kubeconfig, options, namespace) = overridden(kubeconfig, flags, context.clone())?;
    let mut kubeconfig = kubeconfig;
    read_token(&mut kubeconfig, &options)?;
    let user = user_of(&kubeconfig, &options);
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .map_err(|e| {
            Error::new(
                Kind::Other,
                format!("error in configuration: {}", chain(&e)),
            )
        })?;
    finish(&mut config, flags)?;
    Ok(Endpoint {
        config,
        namespace,
        context: context.unwrap_or_else(|| FLAGS.to_owned()),
        user,
    })
}

/// The names of all contexts.
///
/// # Errors
/// Unreadable files.
pub(crate) fn contexts(flags: &Connection, env: &Env) -> Result<Vec<String>> {
    let kubeconfig = load(flags, env)?.unwrap_or_default();
    Ok(kubeconfig.contexts.into_iter().map(|c| c.name).collect())
}

/// The kubeconfig: `--kubeconfig` alone, else the files of `KUBECONFIG` that exist, else
/// `~/.kube/config`.
fn load(flags: &Connection, env: &Env) -> Result<Option<Kubeconfig>> {
    let paths: Vec<PathBuf> = match (&flags.kubeconfig, &env.kubeconfig, &env.home) {
        (Some(path), ..) => return read(path).map(Some),
        (None, Some(list), _) => std::env::split_paths(list).collect(),
        (None, None, Some(home)) => vec![home.join(".kube").join("config")],
        (None, None, None) => vec![],
    };
    let mut merged: Option<Kubeconfig> = None;
    for path in paths.iter().filter(|path| path.exists()) {
        let next = read(path)?;
        merged = Some(match merged {
            // The first file that sets a value wins.
            Some(first) => first.merge(next).map_err(|e| {
                Error::new(Kind::Other, format!("{}: {}", path.display(), chain(&e)))
            })?,
            None => next,
        });
    }
    Ok(merged)
}

fn read(path: &Path) -> Result<Kubeconfig> {
    Kubeconfig::read_from(path).map_err(|e| {
        let kind = if path.exists() {
            Kind::Other
        } else {
            Kind::Usage
        };
        Error::new(
            kind,
            format!(
                "kubeconfig {}: {}",
                path.display(),
                without_values(&chain(&e))
            ),
        )
    })
}

/// What a reader of YAML says, without the lines and values it quotes: they may be a token.
fn without_values(text: &str) -> String {
    let mut line = text.lines().next().unwrap_or_default().to_owned();
    for quote in ['"', '`'] {
        let mut from = 0;
        while let Some(open) = line[from..].find(quote).map(|i| from + i) {
            let close = line[open + 1..]
                .rfind(quote)
                .map_or(line.len(), |i| open + 1 + i);
            line.replace_range(open + 1..close, "…");
            from = (open + 1 + "…".len() + 1).min(line.len());
        }
    }
    line
}

/// A pod's own service account.
fn in_cluster(flags: &Connection) -> Result<Endpoint> {
    let mut config = Config::incluster()
        .map_err(|e| Error::new(Kind::Other, format!("service account: {}", chain(&e))))?;
    let namespace = flags
        .namespace
        .clone()
        .unwrap_or_else(|| config.default_namespace.clone());
    authentication(&mut config.auth_info, flags)?;
    finish(&mut config, flags)?;
    Ok(Endpoint {
        config,
        namespace,
        context: "in-cluster".to_owned(),
        user: flags
            .as_user
            .clone()
            .unwrap_or_else(|| "service account".to_owned()),
    })
}

/// The kubeconfig with the flags written into the chosen cluster and user.
fn overridden(
    mut kubeconfig: Kubeconfig,
    flags: &Connection,
    context: Option<String>,
) -> Result<(Kubeconfig, KubeConfigOptions, String)> {
    let chosen = match &context {
        Some(name) => {
            let found = kubeconfig.contexts.iter().find(|c| &c.name == name);
            let Some(found) = found else {
                let names: Vec<&str> = kubeconfig
                    .contexts
                    .iter()
                    .map(|c| c.name.as_str())
                    .collect();
                return Err(Error::usage(format!("context {name:?} does not exist"))
                    .hint(format!("the contexts are: {}", names.join(", "))));
            };
            found.context.clone().unwrap_or_default()
        }
        None => Context::default(),
    };
    let cluster = flags
        .cluster
        .clone()
        .unwrap_or_else(|| chosen.cluster.clone());
    let user = flags.user.clone().or_else(|| chosen.user.clone());
    let cluster = put_cluster(&mut kubeconfig, flags, &cluster)?;
    let user = put_user(&mut kubeconfig, flags, user.as_deref().unwrap_or_default())?;
    let namespace = flags
        .namespace
        .clone()
        .or_else(|| chosen.namespace.clone().filter(|n| !n.is_empty()))
        .unwrap_or_else(|| "default".to_owned());
    let name = context.unwrap_or_else(|| FLAGS.to_owned());
    kubeconfig.contexts.retain(|c| c.name != name);
    kubeconfig.contexts.push(NamedContext {
        name: name.clone(),
        context: Some(Context {
            cluster,
            user: Some(user),
            namespace: Some(namespace.clone()),
            ..Context::default()
        }),
        ..NamedContext::default()
    });
    let options = KubeConfigOptions {
        context: Some(name),
        ..KubeConfigOptions::default()
    };
    Ok((kubeconfig, options, namespace))
}

fn put_cluster(kubeconfig: &mut Kubeconfig, flags: &Connection, name: &str) -> Result<String> {
    let position = kubeconfig.clusters.iter().position(|c| c.name == name);
    if position.is_none() && flags.server.is_none() {
        return Err(Error::usage(format!("cluster {name:?} does not exist"))
            .hint("check --cluster and the context in the kubeconfig, or use --server URL"));
    }
    let index = position.unwrap_or_else(|| {
        kubeconfig.clusters.push(NamedCluster {
            name: FLAGS.to_owned(),
            ..NamedCluster::default()
        });
        kubeconfig.clusters.len() - 1
    });
    let entry = &mut kubeconfig.clusters[index];
    let cluster = entry.cluster.get_or_insert_default();
    if let Some(server) = &flags.server {
        let plain = server.contains("://");
        cluster.server = Some(if plain {
            server.clone()
        } else {
            format!("http://{server}")
        });
    }
    if let Some(path) = &flags.certificate_authority {
        cluster.certificate_authority = Some(path.display().to_string());
        cluster.certificate_authority_data = None;
    }
    if let Some(insecure) = flags.insecure_skip_tls_verify {
        cluster.insecure_skip_tls_verify = Some(insecure);
        if insecure {
            cluster.certificate_authority = None;
            cluster.certificate_authority_data = None;
        }
    }
    if let Some(name) = &flags.tls_server_name {
        cluster.tls_server_name = Some(name.clone());
    }
    Ok(entry.name.clone())
}

fn put_user(kubeconfig: &mut Kubeconfig, flags: &Connection, name: &str) -> Result<String> {
    let position = kubeconfig.auth_infos.iter().position(|u| u.name == name);
    if position.is_none() && flags.user.is_some() {
        return Err(Error::usage(format!("user {name:?} does not exist"))
            .hint("check --user: kubectl config get-users"));
    }
    let index = position.unwrap_or_else(|| {
        kubeconfig.auth_infos.push(NamedAuthInfo {
            name: FLAGS.to_owned(),
            ..NamedAuthInfo::default()
        });
        kubeconfig.auth_infos.len() - 1
    });
    let entry = &mut kubeconfig.auth_infos[index];
    authentication(entry.auth_info.get_or_insert_default(), flags)?;
    Ok(entry.name.clone())
}

fn authentication(auth: &mut AuthInfo, flags: &Connection) -> Result<()> {
    if let Some(token) = &flags.token {
        auth.token = Some(token.clone().into());
        auth.token_file = None;
        auth.exec = None;
        auth.auth_provider = None;
    }
    if let Some(username) = &flags.username {
        auth.username = Some(username.clone());
        auth.exec = None;
        // As kubectl, which takes a name without a password.
        auth.password.get_or_insert_default();
    }
    if let Some(password) = &flags.password {
        if auth.username.is_none() {
            return Err(Error::usage(
                "--password goes with --username: the kubeconfig names no user to log in with a password",
            ));
        }
        auth.password = Some(password.clone().into());
    }
    if let Some(path) = &flags.client_certificate {
        auth.client_certificate = Some(path.display().to_string());
        auth.client_certificate_data = None;
    }
    if let Some(path) = &flags.client_key {
        auth.client_key = Some(path.display().to_string());
        auth.client_key_data = None;
    }
    if let Some(user) = &flags.as_user {
        auth.impersonate = Some(user.clone());
    }
    if let Some(uid) = &flags.as_uid {
        auth.impersonate_uid = Some(uid.clone());
    }
    if !flags.as_group.is_empty() {
        auth.impersonate_groups = Some(flags.as_group.clone());
    }
    if !flags.as_user_extra.is_empty() {
        let mut extra: HashMap<String, Vec<String>> = HashMap::new();
        for pair in &flags.as_user_extra {
            let Some((key, value)) = pair.split_once('=') else {
                return Err(Error::usage(format!(
                    "--as-user-extra {pair:?} is not KEY=VALUE"
                )));
            };
            extra
                .entry(key.to_owned())
                .or_default()
                .push(value.to_owned());
        }
        auth.impersonate_user_extra = Some(extra);
    }
    for (flag, given) in [
        ("--as-group", !flags.as_group.is_empty()),
        ("--as-uid", flags.as_uid.is_some()),
        ("--as-user-extra", !flags.as_user_extra.is_empty()),
    ] {
        if given && auth.impersonate.is_none() {
            return Err(Error::usage(format!(
                "{flag} goes with --as: it says more of the user that is impersonated"
            )));
        }
    }
    Ok(())
}

/// Time limit and who we are.
fn finish(config: &mut Config, flags: &Connection) -> Result<()> {
    let timeout = super::duration(
        "--request-timeout",
        flags.request_timeout.as_deref().unwrap_or("0"),
    )?;
    config.read_timeout = (timeout > Duration::ZERO).then_some(timeout);
    let agent = format!(
        "kubectl-backup/v{} ({}/{})",
        crds::VERSION,
        std::env::consts::OS,
        std::env::consts::ARCH
    );
    if let Ok(value) = HeaderValue::from_str(&agent) {
        config
            .headers
            .push((HeaderName::from_static("user-agent"), value));
    }
    Ok(())
}

/// As kubectl reads a token: without the line end that an editor leaves. A file without one is left to
/// the client, which reads it again as it changes.
fn read_token(kubeconfig: &mut Kubeconfig, options: &KubeConfigOptions) -> Result<()> {
    let name = user_name(kubeconfig, options);
    let entry = kubeconfig.auth_infos.iter_mut().find(|u| u.name == name);
    let Some(auth) = entry.and_then(|u| u.auth_info.as_mut()) else {
        return Ok(());
    };
    if let Some(token) = auth.token.take() {
        auth.token = Some(token.expose_secret().trim().to_owned().into());
        return Ok(());
    }
    let Some(path) = auth.token_file.clone() else {
        return Ok(());
    };
    let text = std::fs::read_to_string(&path).map_err(|e| {
        Error::new(Kind::Other, format!("tokenFile {path} can't be read: {e}"))
            .hint("correct users[].user.tokenFile in the kubeconfig")
    })?;
    let token = text.trim();
    if token.is_empty() {
        return Err(Error::new(
            Kind::Other,
            format!("tokenFile {path} is empty"),
        ));
    }
    if token != text {
        auth.token = Some(token.to_owned().into());
        auth.token_file = None;
    }
    Ok(())
}

/// Name of the entry of users that the context uses.
fn user_name(kubeconfig: &Kubeconfig, options: &KubeConfigOptions) -> String {
    let context = kubeconfig
        .contexts
        .iter()
        .find(|c| Some(&c.name) == options.context.as_ref());
    context
        .and_then(|c| c.context.as_ref())
        .and_then(|c| c.user.clone())
        .unwrap_or_default()
}

/// Whom the requests of this kubeconfig come from, as far as one can tell without asking.
fn user_of(kubeconfig: &Kubeconfig, options: &KubeConfigOptions) -> String {
    let name = user_name(kubeconfig, options);
    let entry = kubeconfig.auth_infos.iter().find(|u| u.name == name);
    entry
        .and_then(|u| u.auth_info.as_ref())
        .and_then(|a| a.impersonate.clone())
        .unwrap_or(name)
}
