//! A `Storage` as destination of a `MysqlBackup`: every type, reached as a Backup's run
//! reaches it. Artefacts have MysqlBackup's own form and names, below the Storage's path.

use crate::backup::StorageRef;
use crate::parts::Destination;
use crate::storage::StorageSpec;
use crate::volumes::Ground;

use super::resolve::{Unresolved, missing};
use super::storages;
use super::words::{problem, text};
use crate::plan::{Credential, Place, Storage};

/// A Storage as a run uses it.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    /// Where artefacts are, and how to reach it.
    pub storage: Storage<Credential>,
    /// What does not do what it seems to say.
    pub warnings: Vec<String>,
}

/// The Storage that a destination names; `None` if it names none.
pub fn storage_ref(destination: Option<&Destination>) -> Option<&str> {
    let reference = destination?.storage_ref.as_ref()?;
    Some(reference.name.as_str())
}

/// The Storage `name` of `namespace`, which was looked for and is `found`, as destination of what
/// stands at `path`.
///
/// # Errors
/// It is not there, or what keeps it from being used.
pub fn storage(
    path: &str,
    namespace: &str,
    name: &str,
    found: Option<&StorageSpec>,
) -> Result<Stored, Unresolved> {
    let bad = |missing, problems| Err(Unresolved { missing, problems });
    if text(Some(name)).is_none() {
        let unset = problem(format!("{path}.name"), "is not set; name a Storage");
        return bad(vec![], vec![unset]);
    }
    let Some(spec) = found else {
        return bad(vec![missing(path, "Storage", name, namespace)], vec![]);
    };
    // A volume that is mounted over its path would be one of this object alone: said below.
    let (storage, out) = storages::plan(name, spec, &StorageRef::default(), &|_| Ground::Volume);
    let (mut problems, mut warnings) = (out.problems, out.warnings);
    match storage {
        Some(storage) if matches!(storage.place, Place::Local { volume: None }) => {
            problems.push(problem(
                format!("Storage {name}: spec.volume"),
                "is not set, and the path alone is a directory of the pod, which is deleted with the pod; set a volume on the Storage, or use spec.destination.volume",
            ));
        }
        Some(storage) if problems.is_empty() => {
            if storage.keep > 0 {
                warnings.push(format!(
                    "Storage {name}: keep counts archives of Backups only; what a MysqlBackup keeps there is decided by its spec.retention"
                ));
            }
            return Ok(Stored { storage, warnings });
        }
        _ => {}
    }
    bad(vec![], problems)
}
