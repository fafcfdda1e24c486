//! A `Storage`, normalised: defaults of its type filled in, the reference's keep and timeout
//! applied.

use crate::backup::StorageRef;
use crate::storage::{StorageConfig, StorageSpec};
use crate::volumes::{self, Ground};

use super::databases::{Outcome, own_pod};
use super::s3_providers::{self, Provider};
use super::words::{credential, gobackup_name, problem, text};
use crate::plan::{Credential, Place, S3, Storage};

/// Seconds a transfer may take where nobody says.
pub const DEFAULT_TIMEOUT: u32 = 300;

/// The plan of one Storage; `None` if problems keep it from being used. `ground` tells where a
/// path of the pod lies.
pub fn plan(
    name: &str,
    spec: &StorageSpec,
    reference: &StorageRef,
    ground: &dyn Fn(&str) -> Ground,
) -> (Option<Storage<Credential>>, Outcome) {
    let mut out = Outcome::default();
    let at = format!("Storage {name}: spec");
    let own = spec.type_.trim().to_lowercase();
    let asked = text(reference.type_.as_deref()).map(|t| t.to_lowercase());
    // The original went by the reference's type alone; it differs where people wrote s3 for all.
    let type_ = match asked {
        Some(asked) if !own.is_empty() && asked != own => {
            out.warnings.push(format!(
                "the reference says type {asked}, the Storage {name} is {own}; it is used as {asked}, as before"
            ));
            asked
        }
        Some(asked) => asked,
        None => own,
    };
    let config = &spec.config;
    let place = place(&type_, spec, &at, ground, &mut out);
    secrets_in_plain_text(config, &at, &mut out);
    for (field, address) in [
        ("host", &config.host),
        ("endpoint", &config.endpoint),
        ("root", &config.root),
    ] {
        out.warnings
            .extend(own_pod(&format!("{at}.config.{field}"), address.as_deref()));
    }
    let keep = number(reference.keep, config.keep);
    let timeout = number(reference.timeout, config.timeout);
    let absolute = matches!(
        place,
        Some(Place::Local { volume: None } | Place::Sftp { .. } | Place::Ftp { .. })
    );
    let path = config.path.as_deref().unwrap_or_default().trim();
    if path.split('/').any(|part| part == "..") {
        out.problems.push(problem(
            format!("{at}.config.path"),
            "must not contain `..`",
        ));
    }
    let gobackup_name = gobackup_name(
        &format!("{at}.gobackupName"),
        spec.gobackup_name.as_deref(),
        &mut out.problems,
    );
    let storage = place.map(|place| Storage {
        name: name.to_lowercase(),
        gobackup_name,
        keep: keep.unwrap_or(0),
        timeout: timeout.unwrap_or(DEFAULT_TIMEOUT),
        path: if absolute {
            path.trim_end_matches('/').to_owned()
        } else {
            path.trim_matches('/').to_owned()
        },
        place,
    });
    (storage.filter(|_| out.problems.is_empty()), out)
}

/// Above 0 the reference wins; 0 and below mean unset.
fn number(reference: Option<i64>, own: Option<i64>) -> Option<u32> {
    reference
        .filter(|n| *n > 0)
        .or(own.filter(|n| *n > 0))
        .map(|n| u32::try_from(n).unwrap_or(u32::MAX))
}

fn place(
    type_: &str,
    spec: &StorageSpec,
    at: &str,
    ground: &dyn Fn(&str) -> Ground,
    out: &mut Outcome,
) -> Option<Place<Credential>> {
    let config = &spec.config;
    if let Some(provider) = s3_providers::find(type_) {
        return s3(provider, config, at, out).map(Place::S3);
    }
    match type_ {
        "local" => local(spec, at, ground, out),
        "gcs" => Some(Place::Gcs {
            bucket: need("bucket", config.bucket.as_deref(), at, out)?,
            credentials: credential(
                config.credentials_ref.as_ref(),
                config.credentials.as_deref(),
            ),
            credentials_file: text(config.credentials_file.as_deref()),
            endpoint: text(config.endpoint.as_deref()),
        }),
        "azure" => Some(Place::Azure {
            account: need(
                "account",
                config.account.as_deref().or(config.bucket.as_deref()),
                at,
                out,
            )?,
            container: text(config.container.as_deref()).unwrap_or("gobackup".to_owned()),
            tenant_id: text(config.tenant_id.as_deref()),
            client_id: text(config.client_id.as_deref()),
            client_secret: credential(
                config.client_secret_ref.as_ref(),
                config.client_secret.as_deref(),
            ),
            endpoint: text(config.endpoint.as_deref()),
        }),
        "webdav" => Some(Place::Webdav {
            root: need("root", config.root.as_deref(), at, out)?,
            username: username(config),
            password: password(config),
        }),
        "ftp" => Some(Place::Ftp {
            host: host(config, at, out)?,
            port: port(config, 21, at, out),
            username: username(config),
            password: password(config),
            tls: config.tls.unwrap_or(false),
            explicit_tls: config.explicit_tls.unwrap_or(false),
            no_check_certificate: config.no_check_certificate.unwrap_or(false),
        }),
        "sftp" | "scp" => sftp(config, at, out),
        _ => {
            out.problems.push(problem(
                format!("{at}.type"),
                format!("unknown storage type {type_:?}; use s3, local, sftp, webdav or another of gobackup's types"),
            ));
            None
        }
    }
}

fn need(field: &str, value: Option<&str>, at: &str, out: &mut Outcome) -> Option<String> {
    let value = text(value);
    if value.is_none() {
        out.problems.push(problem(
            format!("{at}.config.{field}"),
            "is not set, and this type needs it",
        ));
    }
    value
}

fn host(config: &StorageConfig, at: &str, out: &mut Outcome) -> Option<String> {
    let host = need("host", config.host.as_deref(), at, out)?;
    out.problems.extend(crate::validate::host(
        format!("{at}.config.host"),
        Some(&host),
    ));
    Some(host)
}

fn username(config: &StorageConfig) -> Option<Credential> {
    credential(config.username_ref.as_ref(), config.username.as_deref())
}

fn password(config: &StorageConfig) -> Option<Credential> {
    credential(config.password_ref.as_ref(), config.password.as_deref())
}

fn port(config: &StorageConfig, default: u16, at: &str, out: &mut Outcome) -> u16 {
    let Some(port) = config.port.filter(|p| *p != 0) else {
        return default;
    };
    u16::try_from(port).unwrap_or_else(|_| {
        out.problems.push(problem(
            format!("{at}.config.port"),
            format!("must be 1 to 65535, is {port}"),
        ));
        default
    })
}

fn local(
    spec: &StorageSpec,
    at: &str,
    ground: &dyn Fn(&str) -> Ground,
    out: &mut Outcome,
) -> Option<Place<Credential>> {
    if let Some(volume) = &spec.volume {
        if let Some(why) = volumes::refusal(volume) {
            out.problems.push(problem(format!("{at}.volume"), why));
            return None;
        }
        return Some(Place::Local {
            volume: Some(Box::new(volume.clone())),
        });
    }
    let path = text(spec.config.path.as_deref()).unwrap_or_default();
    let (field, why) = match ground(&path) {
        Ground::Volume => return Some(Place::Local { volume: None }),
        Ground::Container => (
            "volume",
            "is not set: the archive would be written into the pod and deleted with it; set a volume on the Storage, or mount one over its path in the Backup's spec.job".to_owned(),
        ),
        Ground::Gone { volume, why } => (
            "config.path",
            format!("{path:?} is on volume {volume:?} of the Backup's spec.job, which {why}"),
        ),
    };
    out.problems.push(problem(format!("{at}.{field}"), why));
    None
}

fn s3(
    provider: Provider,
    config: &StorageConfig,
    at: &str,
    out: &mut Outcome,
) -> Option<S3<Credential>> {
    let bucket = need("bucket", config.bucket.as_deref(), at, out)?;
    let region = text(config.region.as_deref()).unwrap_or(provider.region().to_owned());
    let account = text(config.account_id.as_deref());
    let endpoint = match text(config.endpoint.as_deref()) {
        Some(endpoint) if endpoint.contains("://") => Some(endpoint),
        Some(host) => Some(format!("https://{host}")),
        None => {
            if provider.name == "r2" && account.is_none() {
                need("account_id", None, at, out);
            }
            if provider.name == "minio" {
                need("endpoint", None, at, out);
            }
            provider.endpoint(&region, account.as_deref().unwrap_or_default())
        }
    };
    let key = credential(
        config.access_key_id_ref.as_ref(),
        config.access_key_id.as_deref(),
    );
    let secret = credential(
        config.secret_access_key_ref.as_ref(),
        config.secret_access_key.as_deref(),
    );
    if key.is_some() != secret.is_some() {
        out.problems.push(problem(
            format!("{at}.config"),
            "has one of access_key_id and secret_access_key; set both, or neither to use the pod's own identity",
        ));
    }
    Some(S3 {
        provider: provider.name.to_owned(),
        bucket,
        region,
        endpoint,
        force_path_style: config.force_path_style.unwrap_or(provider.path_style()),
        storage_class: match &config.storage_class {
            // Set to "" it means the bucket's own class.
            Some(class) => text(Some(class)),
            None => provider.storage_class(),
        },
        max_retries: number(None, config.max_retries).unwrap_or(3),
        access_key_id: key,
        secret_access_key: secret,
        session_token: credential(config.token_ref.as_ref(), config.token.as_deref()),
    })
}

fn sftp(config: &StorageConfig, at: &str, out: &mut Outcome) -> Option<Place<Credential>> {
    let literal = text(config.private_key.as_deref());
    // gobackup takes a path here and the operator put the key's text; both are read.
    let is_text = literal.as_deref().is_some_and(|k| k.contains("-----BEGIN"));
    Some(Place::Sftp {
        host: host(config, at, out)?,
        port: port(config, 22, at, out),
        username: username(config),
        password: password(config),
        private_key: credential(
            config.private_key_ref.as_ref(),
            config.private_key.as_deref().filter(|_| is_text),
        ),
        private_key_file: literal.filter(|_| !is_text && config.private_key_ref.is_none()),
        passphrase: credential(config.passphrase_ref.as_ref(), config.passphrase.as_deref()),
        host_key: text(config.host_key.as_deref()),
    })
}

fn secrets_in_plain_text(config: &StorageConfig, at: &str, out: &mut Outcome) {
    for (field, literal, reference) in [
        ("password", &config.password, &config.password_ref),
        ("passphrase", &config.passphrase, &config.passphrase_ref),
        (
            "secret_access_key",
            &config.secret_access_key,
            &config.secret_access_key_ref,
        ),
        ("token", &config.token, &config.token_ref),
        ("credentials", &config.credentials, &config.credentials_ref),
        (
            "client_secret",
            &config.client_secret,
            &config.client_secret_ref,
        ),
    ] {
        if text(literal.as_deref()).is_some() && reference.is_none() {
            out.warnings.push(format!(
                "{at}.config.{field} is plain text that anyone who can read this object sees; use {field}_ref"
            ));
        }
    }
}
