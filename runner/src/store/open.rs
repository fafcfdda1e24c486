//! Opens what the settings name: a destination, or a Storage.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crds::plan::{Place, S3, Storage, VOLUMES_DIR};
use crds::report::EndpointKind;
use crds::request::Action;
use secrecy::SecretString;

use crate::failure::Failure;
use crate::report::Reporter;
use crate::settings::plan::expose;
use crate::settings::{self, Destination, Settings};
use crate::store::files::FileStore;
use crate::store::{Attempt, Below, Store, VolumeStore, cloud, ftp, sftp, webdav};

/// Opens the destination of a run.
///
/// # Errors
/// It can't be used.
pub fn destination(
    settings: &Settings,
    attempt: Attempt,
    reporter: &Reporter,
) -> Result<Arc<dyn Store>, Failure> {
    match settings.destination()? {
        Destination::Volume(path) => {
            if writes(settings.action) {
                VolumeStore::make(path)?;
            }
            Ok(Arc::new(VolumeStore::open(path, attempt)?))
        }
        Destination::S3(s3) => crate::store::bucket(s3, attempt),
        Destination::Storage(one) => storage(one, settings.action, attempt, reporter),
    }
}

/// True for what stores, and for what looks whether it could.
fn writes(action: Action) -> bool {
    matches!(action, Action::Backup | Action::Binlogs | Action::Probe)
}

/// A Storage as the destination of a MysqlBackup: keys are below its path.
///
/// # Errors
/// It can't be used.
fn storage(
    storage: &Storage<SecretString>,
    action: Action,
    attempt: Attempt,
    reporter: &Reporter,
) -> Result<Arc<dyn Store>, Failure> {
    let name = format!("Storage {}", storage.name);
    // Not every client speaks to its server before it has to. What only reads may have the right to
    // one object and to no listing: it proves nothing.
    let proves = writes(action);
    let opened = connect(storage, attempt, reporter).and_then(|(store, path)| {
        let store = Below::new(store, path, name.clone());
        if proves {
            store.list(".reach")?;
        }
        Ok(store)
    });
    if proves || opened.is_err() {
        reporter.endpoint(
            EndpointKind::Storage,
            &storage.name,
            opened.as_ref().map(|_| ()),
        );
    }
    let store = opened.map_err(|e| Failure {
        message: format!("{name}: {}", e.message),
        ..e
    })?;
    Ok(Arc::new(store))
}

/// Opens a Storage; gives the store and the path in it.
///
/// # Errors
/// It can't be used.
pub fn connect(
    storage: &Storage<SecretString>,
    attempt: Attempt,
    reporter: &Reporter,
) -> Result<(Arc<dyn Store>, String), Failure> {
    let path = storage.path.clone();
    match &storage.place {
        Place::Local { volume } => {
            let (root, path) = match volume {
                Some(_) => (
                    PathBuf::from(format!("{VOLUMES_DIR}/{}", storage.name)),
                    path,
                ),
                None => (PathBuf::from(&path), String::new()),
            };
            Ok((Arc::new(VolumeStore::open(&root, attempt)?), path))
        }
        Place::S3(s3) => {
            let store = crate::store::bucket(&bucket(s3), attempt)?;
            Ok((store, path))
        }
        Place::Webdav {
            root,
            username,
            password,
        } => {
            let password = expose(password.as_ref()).unwrap_or_default();
            let user = expose(username.as_ref());
            let settings = webdav::Settings {
                root: root.clone(),
                login: user.map(|u| (u.to_owned(), password.to_owned().into())),
            };
            let store = webdav::WebdavServer::new(settings, attempt)?;
            Ok((Arc::new(FileStore(store)), path))
        }
        Place::Gcs { .. } | Place::Azure { .. } => {
            cloud(&storage.place, attempt).map(|store| (store, path))
        }
        Place::Ftp { .. } => {
            // Where no path is given gobackup's is `/`.
            let absolute = path.is_empty() || path.starts_with('/');
            let store = ftp_server(storage, absolute, attempt)?;
            Ok((store, path.trim_matches('/').to_owned()))
        }
        Place::Sftp { .. } => {
            let absolute = path.starts_with('/');
            let store = ssh_server(storage, absolute, attempt, reporter)?;
            Ok((store, path.trim_matches('/').to_owned()))
        }
    }
}

fn cloud(place: &Place<SecretString>, attempt: Attempt) -> Result<Arc<dyn Store>, Failure> {
    let secret = |s: &Option<SecretString>| expose(s.as_ref()).map(|t| t.to_owned().into());
    match place {
        Place::Gcs {
            bucket,
            credentials,
            credentials_file,
            endpoint,
        } => {
            let settings = cloud::Gcs {
                bucket: bucket.clone(),
                credentials: secret(credentials),
                credentials_file: credentials_file.clone(),
                endpoint: endpoint.clone(),
            };
            cloud::gcs(&settings, attempt)
        }
        Place::Azure {
            account,
            container,
            tenant_id,
            client_id,
            client_secret,
            endpoint,
        } => {
            let settings = cloud::Azure {
                account: account.clone(),
                container: container.clone(),
                tenant_id: tenant_id.clone(),
                client_id: client_id.clone(),
                client_secret: secret(client_secret),
                endpoint: endpoint.clone(),
            };
            cloud::azure(&settings, attempt)
        }
        _ => Err(Failure::settings("this is no cloud storage")),
    }
}

fn ftp_server(
    storage: &Storage<SecretString>,
    absolute: bool,
    attempt: Attempt,
) -> Result<Arc<dyn Store>, Failure> {
    let Place::Ftp {
        host,
        port,
        username,
        password,
        tls,
        explicit_tls,
        no_check_certificate,
    } = &storage.place
    else {
        return Err(Failure::settings("this is no FTP server"));
    };
    let settings = ftp::Settings {
        host: host.clone(),
        port: *port,
        username: expose(username.as_ref()).unwrap_or("anonymous").to_owned(),
        password: expose(password.as_ref())
            .unwrap_or_default()
            .to_owned()
            .into(),
        tls: *tls,
        explicit_tls: *explicit_tls,
        no_check_certificate: *no_check_certificate,
        absolute,
        stalled: stalled(storage),
    };
    let server = ftp::FtpServer::open(settings, attempt)?;
    Ok(Arc::new(FileStore(server)))
}

fn ssh_server(
    storage: &Storage<SecretString>,
    absolute: bool,
    attempt: Attempt,
    reporter: &Reporter,
) -> Result<Arc<dyn Store>, Failure> {
    let Place::Sftp {
        host,
        port,
        username,
        password,
        private_key,
        private_key_file,
        passphrase,
        host_key,
    } = &storage.place
    else {
        return Err(Failure::settings("this is no SSH server"));
    };
    let secret = |s: &Option<SecretString>| expose(s.as_ref()).map(|t| t.to_owned().into());
    let from_file = private_key_file.as_ref().map(|path| {
        std::fs::read_to_string(path).map_err(|e| {
            Failure::settings(format!(
                "config.private_key {path} can't be read: {e}; mount it, or use private_key_ref"
            ))
        })
    });
    let settings = sftp::Settings {
        host: host.clone(),
        port: *port,
        username: expose(username.as_ref()).unwrap_or("root").to_owned(),
        password: secret(password),
        private_key: match secret(private_key) {
            Some(key) => Some(key),
            None => from_file.transpose()?.map(Into::into),
        },
        passphrase: secret(passphrase),
        host_key: host_key.clone(),
        absolute,
        stalled: stalled(storage),
    };
    let store = sftp::SftpServer::open(settings, attempt)?;
    if let Some(fingerprint) = store.unchecked_host_key() {
        reporter.warn(&format!(
            "Storage {}: the host key of {host} is not checked, anyone in between could take the archive; set config.host_key to \"{fingerprint}\" if that is the server's",
            storage.name
        ));
    }
    Ok(Arc::new(FileStore(store)))
}

/// `timeout` of a Storage: so long a transfer may move nothing, however long it is as a whole.
fn stalled(storage: &Storage<SecretString>) -> Duration {
    Duration::from_secs(storage.timeout.max(1).into())
}

fn bucket(s3: &S3<SecretString>) -> settings::S3 {
    let id = expose(s3.access_key_id.as_ref());
    let secret = expose(s3.secret_access_key.as_ref());
    settings::S3 {
        bucket: s3.bucket.clone(),
        prefix: String::new(),
        endpoint: s3.endpoint.clone(),
        region: Some(s3.region.clone()).filter(|r| !r.is_empty()),
        force_path_style: s3.force_path_style,
        keys: id
            .zip(secret)
            .map(|(id, secret)| (id.to_owned().into(), secret.to_owned().into())),
        session_token: expose(s3.session_token.as_ref()).map(|t| t.to_owned().into()),
        ca: None,
        storage_class: s3.storage_class.clone(),
    }
}
