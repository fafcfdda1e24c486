//! The storages of a plan as stores of the runner.

use std::path::PathBuf;
use std::sync::Arc;

use crds::gobackup::plan::{Place, S3, Storage};
use crds::gobackup::run::VOLUMES_DIR;
use secrecy::SecretString;

use crate::failure::Failure;
use crate::run::Context;
use crate::settings::{self, Destination};
use crate::store::{self, Attempt, Store, webdav};

use super::settings::{Family, expose};

/// An open storage.
pub(super) struct Target {
    /// Name of the Storage.
    pub(super) name: String,
    /// Archives to keep; 0 means all.
    pub(super) keep: u32,
    /// Directory or key prefix.
    pub(super) path: String,
    /// The store.
    pub(super) store: Arc<dyn Store>,
}

/// A storage that holds the run's archive.
pub(super) struct Delivered {
    /// Name of the Storage.
    pub(super) name: String,
    /// Key of the archive.
    pub(super) key: String,
    /// Archives to keep; 0 means all.
    pub(super) keep: u32,
    /// Directory or key prefix.
    pub(super) path: String,
    /// The store.
    pub(super) store: Arc<dyn Store>,
}

/// Opens every storage before anything is dumped. One that can't be used fails the run in the end,
/// but does not keep the archive from the others.
///
/// # Errors
/// None of them can be used.
pub(super) fn open(
    context: &Context,
    family: &Family,
) -> Result<(Vec<Target>, Vec<Failure>), Failure> {
    let (mut targets, mut lost) = (vec![], vec![]);
    for storage in &family.plan.storages {
        match one(context, storage) {
            Ok(target) => targets.push(target),
            Err(e) => lost.push(e),
        }
    }
    if targets.is_empty() {
        return Err(super::all(lost));
    }
    for failure in &lost {
        tracing::error!(
            reason = failure.reason,
            "{}",
            context.scrub.clean(&failure.message)
        );
    }
    Ok((targets, lost))
}

fn one(context: &Context, storage: &Storage<SecretString>) -> Result<Target, Failure> {
    let named = |e: Failure| Failure {
        message: format!("Storage {}: {}", storage.name, e.message),
        ..e
    };
    let (store, path) = connect(context, storage).map_err(named)?;
    store.clean(&path).map_err(named)?;
    Ok(Target {
        name: storage.name.clone(),
        keep: storage.keep,
        path,
        store,
    })
}

fn connect(
    context: &Context,
    storage: &Storage<SecretString>,
) -> Result<(Arc<dyn Store>, String), Failure> {
    let attempt = Attempt {
        run: context.settings.identity.run.clone(),
        pod: context.settings.identity.pod.clone(),
        nonce: context.nonce.clone(),
    };
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
            let store = store::open(&Destination::Volume(root), attempt)?;
            Ok((store.into(), path))
        }
        Place::S3(s3) => {
            let store = store::open(&Destination::S3(Box::new(bucket(s3))), attempt)?;
            Ok((store.into(), path))
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
            let store = webdav::WebdavStore::new(settings, attempt)?;
            Ok((Arc::new(store), path))
        }
        other => Err(Failure::settings(format!(
            "this runner can't reach {} storages",
            kind(other)
        ))),
    }
}

fn kind<C>(place: &Place<C>) -> &'static str {
    match place {
        Place::Local { .. } => "local",
        Place::S3(_) => "S3",
        Place::Gcs { .. } => "gcs",
        Place::Azure { .. } => "azure",
        Place::Webdav { .. } => "webdav",
        Place::Ftp { .. } => "ftp",
        Place::Sftp { .. } => "sftp and scp",
    }
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
