//! Where a generation had a field, and which place counts: `spec`, then the document's root, then
//! `model`, then the BackupModel.

use crate::backup::{
    BackupBody, BackupFields, BackupSchedule, CompressWith, DatabaseRef, EncodeWith, SplitWith,
    StorageRef,
};
use crate::legacy::BackupModelSpec;

use super::words::text;

/// The fields of a Backup, each from the first place that has it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Merged {
    /// References and the path they stand at.
    pub databases: (String, Vec<DatabaseRef>),
    /// References and the path they stand at.
    pub storages: (String, Vec<StorageRef>),
    /// Name of the BackupModel.
    pub model: Option<String>,
    /// Schedule and the path it stands at.
    pub schedule: (String, BackupSchedule),
    /// compressWith and its path.
    pub compress: Option<(String, CompressWith)>,
    /// encodeWith and its path.
    pub encode: Option<(String, EncodeWith)>,
    /// splitWith and its path.
    pub split: Option<(String, SplitWith)>,
    /// Shell text before the dumps.
    pub before_script: Option<String>,
    /// Shell text at the end.
    pub after_script: Option<String>,
    /// A PersistentVolumeClaim was asked for, which nothing needs.
    pub persistence: bool,
}

/// All places of a body, in the order in which they count, with their path prefix.
fn places(body: &BackupBody) -> Vec<(&'static str, &BackupFields)> {
    let spec = body.spec.iter().map(|s| ("spec.", &s.fields));
    let model = body.model.iter().map(|m| ("model.", m));
    spec.chain([("", &body.root)]).chain(model).collect()
}

/// Path of a field where no place has it: where one would add it.
fn default_path(field: &str) -> String {
    format!("spec.{field}")
}

/// The fields of a body, without those of a BackupModel.
pub fn merge(body: &BackupBody) -> Merged {
    let places = places(body);
    let list = |p: &&str, field: &str| format!("{p}{field}");
    let databases = places
        .iter()
        .find_map(|(p, f)| {
            let refs = f.database_refs.clone().filter(|r| !r.is_empty())?;
            Some((list(p, "databaseRefs"), refs))
        })
        .unwrap_or((default_path("databaseRefs"), vec![]));
    let storages = places
        .iter()
        .find_map(|(p, f)| {
            let refs = f.storage_refs.clone().filter(|r| !r.is_empty())?;
            Some((list(p, "storageRefs"), refs))
        })
        .unwrap_or((default_path("storageRefs"), vec![]));
    Merged {
        databases,
        storages,
        model: places
            .iter()
            .find_map(|(_, f)| text(f.backup_model_ref.as_ref().and_then(|m| m.name.as_deref()))),
        schedule: schedule(&places),
        compress: places
            .iter()
            .find_map(|(p, f)| Some((format!("{p}compressWith"), f.compress_with.clone()?))),
        encode: places
            .iter()
            .find_map(|(p, f)| Some((format!("{p}encodeWith"), f.encode_with.clone()?))),
        split: places
            .iter()
            .find_map(|(p, f)| Some((format!("{p}splitWith"), f.split_with.clone()?))),
        before_script: places
            .iter()
            .find_map(|(_, f)| text(f.before_script.as_deref())),
        after_script: places
            .iter()
            .find_map(|(_, f)| text(f.after_script.as_deref())),
        persistence: places
            .iter()
            .filter_map(|(_, f)| f.persistence.as_ref())
            .any(|p| p.enabled.unwrap_or(false)),
    }
}

fn schedule(places: &[(&'static str, &BackupFields)]) -> (String, BackupSchedule) {
    let found = places.iter().find_map(|(p, f)| {
        let own = f.schedule.clone().map(|s| (format!("{p}schedule"), s));
        let of_model = f
            .backup_model_ref
            .as_ref()
            .and_then(|m| m.schedule.clone())
            .map(|s| (format!("{p}backupModelRef.schedule"), s));
        own.or(of_model)
    });
    found.unwrap_or((default_path("schedule"), BackupSchedule::default()))
}

impl Merged {
    /// Adds what only the BackupModel says.
    pub fn with_model(mut self, name: &str, model: &BackupModelSpec) -> Self {
        let path = |field: &str| format!("BackupModel {name}: spec.{field}");
        let compress = model
            .compress_with
            .clone()
            .or(model.compress_with_old.clone());
        let encode = model.encode_with.clone().or(model.encode_with_old.clone());
        self.compress = self
            .compress
            .or(compress.map(|c| (path("compressWith"), c)));
        self.encode = self.encode.or(encode.map(|e| (path("encodeWith"), e)));
        let before = model
            .before_script
            .as_deref()
            .or(model.before_script_old.as_deref());
        let after = model
            .after_script
            .as_deref()
            .or(model.after_script_old.as_deref());
        self.before_script = self.before_script.or(text(before));
        self.after_script = self.after_script.or(text(after));
        self
    }

    /// The cron text, if there is a schedule.
    pub fn cron(&self) -> Option<String> {
        text(self.schedule.1.cron.as_deref())
    }
}
