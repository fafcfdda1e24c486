//! Files with secrets in them, which lie on memory alone.

use crds::report::Reason;
use std::path::PathBuf;

use crate::failure::Failure;

const TMPFS: i64 = 0x0102_1994;
const RAMFS: i64 = 0x8584_58f6;

/// The first directory that is on memory and writable.
///
/// # Errors
/// There is none.
pub fn directory(candidates: &[PathBuf]) -> Result<PathBuf, Failure> {
    #[allow(clippy::unnecessary_cast, reason = "the type differs by architecture")]
    let on_memory = |path: &&PathBuf| {
        rustix::fs::statfs(path.as_path())
            .is_ok_and(|fs| [TMPFS, RAMFS].contains(&(fs.f_type as i64)))
            && rustix::fs::access(path.as_path(), rustix::fs::Access::WRITE_OK).is_ok()
    };
    candidates.iter().find(on_memory).cloned().ok_or_else(|| {
        let names: Vec<String> = candidates.iter().map(|c| c.display().to_string()).collect();
        Failure::settings(format!(
            "no writable directory on memory for the client's password file (tried {}): mount an emptyDir with medium Memory at /run/backup",
            names.join(", ")
        ))
    })
}

/// Writes a file of this name into a directory on memory that only this user may read.
///
/// # Errors
/// The directory is full, or the file is there.
pub fn private_file(directory: PathBuf, name: &str, content: &str) -> Result<PrivateFile, Failure> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let path = directory.join(name);
    let guard = PrivateFile { path };
    std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&guard.path)
        .and_then(|mut file| file.write_all(content.as_bytes()))
        .map_err(|e| {
            Failure::new(
                Reason::ScratchFailed,
                format!(
                    "writing the client's password file in {} failed: {e}",
                    directory.display()
                ),
            )
        })?;
    Ok(guard)
}

/// A private file; removed when dropped.
pub struct PrivateFile {
    path: PathBuf,
}

impl PrivateFile {
    /// Its path.
    pub fn text(&self) -> String {
        self.path.display().to_string()
    }
}

impl Drop for PrivateFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_disk_is_no_memory() {
        let failure = directory(&["/nonexistent".into(), "/proc".into()]).unwrap_err();
        assert!(failure.message.contains("/run/backup"));
        assert_eq!(
            directory(&["/proc".into(), "/dev/shm".into()]).unwrap(),
            PathBuf::from("/dev/shm")
        );
    }
}
