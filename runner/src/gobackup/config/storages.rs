//! Storages in gobackup's keys. PURE.

use crds::plan::{Place, S3, Storage, VOLUMES_DIR};
use secrecy::SecretString;
use serde_json::{Map, Value};

use crate::gobackup::config::Config;
use crate::settings::plan::expose;

impl Config<'_> {
    /// A Storage in gobackup's keys. Without `keep`: gobackup counts in a file that is gone with the pod.
    pub(crate) fn storage(&self, s: &Storage<SecretString>) -> Value {
        let text = |secret: &Option<SecretString>| expose(secret.as_ref()).map(Value::from);
        let mut map = Map::new();
        let mut set = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                map.insert(key.to_owned(), value);
            }
        };
        let path = match &s.place {
            Place::Local { volume: Some(_) } => {
                let path = format!("{VOLUMES_DIR}/{}/{}", s.name, s.path);
                path.trim_end_matches('/').to_owned()
            }
            _ => s.path.clone(),
        };
        set("path", (!path.is_empty()).then(|| path.into()));
        set("timeout", Some(s.timeout.into()));
        match &s.place {
            Place::Local { .. } => set("type", Some("local".into())),
            Place::S3(s3) => bucket(s3, &mut set),
            Place::Gcs {
                bucket,
                credentials,
                credentials_file,
                ..
            } => {
                set("type", Some("gcs".into()));
                set("bucket", Some(bucket.as_str().into()));
                set("credentials", text(credentials));
                set(
                    "credentials_file",
                    credentials_file.as_deref().map(Value::from),
                );
            }
            Place::Azure {
                account,
                container,
                tenant_id,
                client_id,
                client_secret,
                ..
            } => {
                set("type", Some("azure".into()));
                set("account", Some(account.as_str().into()));
                set("container", Some(container.as_str().into()));
                set("tenant_id", tenant_id.as_deref().map(Value::from));
                set("client_id", client_id.as_deref().map(Value::from));
                set("client_secret", text(client_secret));
            }
            Place::Webdav {
                root,
                username,
                password,
            } => {
                set("type", Some("webdav".into()));
                set("root", Some(root.as_str().into()));
                set("username", text(username));
                set("password", text(password));
            }
            Place::Ftp {
                host,
                port,
                username,
                password,
                tls,
                explicit_tls,
                no_check_certificate,
            } => {
                set("type", Some("ftp".into()));
                set("host", Some(host.as_str().into()));
                set("port", Some((*port).into()));
                set("username", text(username));
                set("password", text(password));
                set("tls", tls.then(|| true.into()));
                set("explicit_tls", explicit_tls.then(|| true.into()));
                set(
                    "no_check_certificate",
                    no_check_certificate.then(|| true.into()),
                );
            }
            Place::Sftp {
                host,
                port,
                username,
                password,
                private_key,
                private_key_file,
                passphrase,
                ..
            } => {
                set("type", Some("sftp".into()));
                set("host", Some(host.as_str().into()));
                set("port", Some((*port).into()));
                set(
                    "username",
                    Some(expose(username.as_ref()).unwrap_or("root").into()),
                );
                set("password", text(password));
                // gobackup reads the key from a file.
                let mounted = expose(private_key.as_ref())
                    .and_then(|_| self.files.get(&format!("storages/{}/private-key", s.name)));
                let key = mounted.or(private_key_file.as_ref());
                set("private_key", key.map(|k| k.as_str().into()));
                set("passphrase", text(passphrase));
            }
        }
        Value::Object(map)
    }
}

fn bucket(s3: &S3<SecretString>, set: &mut impl FnMut(&str, Option<Value>)) {
    let text = |secret: &Option<SecretString>| expose(secret.as_ref()).map(Value::from);
    set("type", Some(s3.provider.as_str().into()));
    set("bucket", Some(s3.bucket.as_str().into()));
    set("region", Some(s3.region.as_str().into()));
    set("endpoint", s3.endpoint.as_deref().map(Value::from));
    set("force_path_style", Some(s3.force_path_style.into()));
    // Unset would be gobackup's default of the type.
    let class = s3.storage_class.as_deref().unwrap_or_default();
    set("storage_class", Some(class.into()));
    set("max_retries", Some(s3.max_retries.into()));
    set("access_key_id", text(&s3.access_key_id));
    set("secret_access_key", text(&s3.secret_access_key));
    set("token", text(&s3.session_token));
}
