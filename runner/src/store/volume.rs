//! A directory on a mounted volume.

use crds::mounts::DESTINATION_MOUNT;
use crds::report::Reason;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::fs::{CWD, FlockOperation, RenameFlags, Timespec, Timestamps, UTIME_NOW};

use chrono::{DateTime, Utc};

use crate::failure::Failure;
use crate::store::flusher::{Flusher, ReadBack, past_cache};
use crate::store::temporary::OWN;
use crate::store::{Attempt, Entry, Own, Store, Upload, ground, key_in};
use crate::stream::checksum::{self, Stored};

/// A live attempt touches its files every few seconds; one untouched for so long is dead.
const DEAD_AFTER: Duration = Duration::from_secs(15 * 60);
/// Magic numbers of file systems that one machine alone mounts: there a lock tells for certain
/// whether its holder lives. Network file systems may keep locks to one machine.
const LOCAL: [i64; 7] = [
    0xef53,      // ext2, ext3, ext4
    0x5846_5342, // xfs
    0x9123_683e, // btrfs
    0x0102_1994, // tmpfs
    0xf2f5_2010, // f2fs
    0x2fc1_2fc1, // zfs
    OVERLAYFS,
];
/// Magic number of overlayfs: the root of a container, which dies with it.
const OVERLAYFS: i64 = 0x794c_7630;

/// A directory on a mounted volume.
pub struct VolumeStore {
    root: PathBuf,
    attempt: Attempt,
    /// Every temporary of this attempt: a split archive has several.
    temporaries: Mutex<Vec<PathBuf>>,
    /// This attempt's claims, locked as long as it lives.
    claims: Mutex<Vec<(PathBuf, File)>>,
    /// The file system is of one machine alone.
    local: bool,
}

impl VolumeStore {
    /// Opens the directory, which must exist.
    ///
    /// # Errors
    /// It does not exist, is no directory, or is not on a volume.
    pub fn open(root: &Path, attempt: Attempt) -> Result<Self, Failure> {
        let metadata = std::fs::metadata(root).map_err(|e| {
            if e.kind() == io::ErrorKind::NotFound {
                return Failure::new(Reason::DestinationNotFound, absent(root));
            }
            failure("opening", root, &e)
        })?;
        if !metadata.is_dir() {
            let field = match below_mount(root) {
                Some(_) => "spec.destination.volume.path (--path)",
                None => "SQLPATH or the mount",
            };
            return Err(Failure::new(
                Reason::DestinationNotFound,
                format!("{} is not a directory: correct {field}", root.display()),
            ));
        }
        #[allow(clippy::unnecessary_cast, reason = "the type differs by architecture")]
        let kind = rustix::fs::statfs(root).map_or(0, |fs| fs.f_type as i64);
        let real = std::fs::canonicalize(root).map_err(|e| failure("opening", root, &e))?;
        // Where it can't be read nothing is known, and nothing refused.
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        if let Some(what) = ground::goes_with_pod(&real, &mounts) {
            return Err(Failure::new(
                Reason::NotOnVolume,
                format!(
                    "{} is on {what}, which is gone with the pod and all that was stored there: mount a volume there (spec.volumes, spec.volumeMounts); {}",
                    root.display(),
                    crds::volumes::REMEDY
                ),
            ));
        }
        Ok(Self {
            root: root.to_owned(),
            attempt,
            temporaries: Mutex::default(),
            claims: Mutex::default(),
            local: LOCAL.contains(&kind),
        })
    }

    /// Makes the directory that `spec.destination` names on its volume, where a run is to store and none
    /// has stored before. What is outside of that volume is left alone.
    ///
    /// # Errors
    /// It can't be made, or a link on the volume leads out of it.
    pub fn make(root: &Path) -> Result<(), Failure> {
        match below_mount(root) {
            Some(below) if !root.exists() => make_below(Path::new(DESTINATION_MOUNT), below),
            _ => Ok(()),
        }
    }

    fn path(&self, key: &str) -> PathBuf {
        self.root.join(key)
    }

    fn temporary_name(&self) -> String {
        let a = &self.attempt;
        format!("{OWN}{}~{}~{}.tmp", a.run, a.pod, a.nonce)
    }

    fn make_directory(&self, path: &Path) -> Result<(), Failure> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o750)
            .create(path)
            .map_err(|e| failure("creating directory", path, &e))
    }

    /// Whether the process that made this file lives: it holds a lock on it.
    fn alive(&self, path: &Path) -> Option<bool> {
        if !self.local {
            return None;
        }
        let file = File::open(path).ok()?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Some(false),
            Err(rustix::io::Errno::WOULDBLOCK) => Some(true),
            Err(_) => None,
        }
    }

    /// Writes a file under a temporary name and gives it its own by `name`.
    fn write_whole(
        &self,
        key: &str,
        content: &[u8],
        name: fn(&Path, &Path) -> io::Result<bool>,
    ) -> Result<bool, Failure> {
        let target = self.path(key);
        let directory = target.parent().unwrap_or(&self.root).to_owned();
        self.make_directory(&directory)?;
        let temporary = directory.join(format!("{}.json.tmp", self.temporary_name()));
        let write = || -> io::Result<(File, bool)> {
            let mut file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o640)
                .open(&temporary)?;
            lock(&file);
            file.write_all(content)?;
            file.sync_all()?;
            let named = name(&temporary, &target)?;
            sync_directory(&directory)?;
            Ok((file, named))
        };
        let written = write();
        if !matches!(written, Ok((_, true))) {
            let _ = std::fs::remove_file(&temporary);
        }
        let (file, named) = written.map_err(|e| failure("writing", &target, &e))?;
        if named && key.ends_with(".claim") {
            self.claims
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push((target, file));
        }
        Ok(named)
    }
}

/// Held as long as the file is open: who can't take it knows that its holder lives.
fn lock(file: &File) {
    // Where there are no locks the time of the last change has to do.
    let _ = rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive);
}

fn rename(from: &Path, to: &Path) -> io::Result<bool> {
    std::fs::rename(from, to).map(|()| true)
}

impl Store for VolumeStore {
    fn describe(&self) -> String {
        format!("volume at {}", self.root.display())
    }

    fn begin(&self, key: &str) -> Result<Box<dyn Upload>, Failure> {
        let target = self.path(key);
        let directory = target.parent().unwrap_or(&self.root).to_owned();
        self.make_directory(&directory)?;
        let mut temporaries = self
            .temporaries
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let name = match temporaries.len() {
            0 => self.temporary_name(),
            n => format!("{}~{n}.tmp", self.temporary_name().trim_end_matches(".tmp")),
        };
        let temporary = directory.join(name);
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o640)
            .open(&temporary)
            .map_err(|e| failure("creating", &temporary, &e))?;
        lock(&file);
        temporaries.push(temporary.clone());
        let flusher =
            Flusher::start(&file, &temporary).map_err(|e| failure("opening", &temporary, &e))?;
        Ok(Box::new(VolumeUpload {
            file,
            bytes: 0,
            flusher: Some(flusher),
            back: None,
            temporary,
            target,
            directory,
            published: false,
        }))
    }

    fn list(&self, directory: &str) -> Result<Vec<Entry>, Failure> {
        let path = self.path(directory);
        let mut found = vec![];
        for (name, metadata) in files(&path)? {
            if metadata.is_file() && !name.starts_with('.') {
                found.push(Entry {
                    key: key_in(directory, &name),
                    size: metadata.len(),
                });
            }
        }
        found.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(found)
    }

    fn directories(&self, directory: &str) -> Result<Vec<String>, Failure> {
        let found = files(&self.path(directory))?.into_iter();
        let found = found.filter(|(_, metadata)| metadata.is_dir());
        Ok(found.map(|(name, _)| key_in(directory, &name)).collect())
    }

    fn modified(&self, key: &str) -> Result<Option<DateTime<Utc>>, Failure> {
        let path = self.path(key);
        let metadata = std::fs::metadata(&path).map_err(|e| failure("opening", &path, &e))?;
        Ok(DateTime::from_timestamp(metadata.mtime(), 0))
    }

    fn open(&self, key: &str) -> Result<Option<Box<dyn Read + Send>>, Failure> {
        let path = self.path(key);
        match open(&path) {
            Ok(file) => Ok(Some(Box::new(Checked { file, path }))),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(failure("opening", &path, &e)),
        }
    }

    fn open_part(
        &self,
        key: &str,
        part: Range<u64>,
    ) -> Result<Option<Box<dyn Read + Send>>, Failure> {
        let path = self.path(key);
        let opened = File::open(&path).and_then(|mut file| {
            past_cache(&file, 0);
            file.seek(SeekFrom::Start(part.start))?;
            Ok(file)
        });
        match opened {
            Ok(file) => {
                let whole = Checked { file, path };
                let length = part.end.saturating_sub(part.start);
                Ok(Some(Box::new(whole.take(length))))
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(failure("opening", &path, &e)),
        }
    }

    fn put(&self, key: &str, content: &[u8]) -> Result<(), Failure> {
        self.write_whole(key, content, rename).map(|_| ())
    }

    fn create(&self, key: &str, content: &[u8]) -> Result<bool, Failure> {
        self.write_whole(key, content, rename_if_absent)
    }

    fn publishes_alone(&self) -> bool {
        let path = self.root.join(format!("{}.now.tmp", self.temporary_name()));
        let known = || -> io::Result<bool> {
            File::create(&path)?;
            // Over itself: who knows the flag says that it is there.
            if let Err(rustix::io::Errno::EXIST) =
                rustix::fs::renameat_with(CWD, &path, CWD, &path, RenameFlags::NOREPLACE)
            {
                return Ok(true);
            }
            let other = path.with_extension("link.tmp");
            let linked = std::fs::hard_link(&path, &other).is_ok();
            let _ = std::fs::remove_file(&other);
            Ok(linked)
        };
        let known = known().unwrap_or(false);
        let _ = std::fs::remove_file(&path);
        known
    }

    fn mark(&self, directory: &str, name: &str) -> Result<bool, Failure> {
        let directory = self.path(directory);
        self.make_directory(&directory)?;
        let path = directory.join(format!("{OWN}{}~{name}", self.attempt.run));
        match OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o640)
            .open(&path)
        {
            Ok(_) => Ok(true),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(e) => Err(failure("creating", &path, &e)),
        }
    }

    fn remove(&self, key: &str) -> Result<(), Failure> {
        let path = self.path(key);
        match std::fs::remove_file(&path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(failure("removing", &path, &e)),
            _ => Ok(()),
        }
    }

    fn own(&self, directory: &str) -> Result<Vec<Own>, Failure> {
        let path = self.path(directory);
        Ok(files(&path)?
            .into_iter()
            .filter(|(name, metadata)| metadata.is_file() && name.starts_with(OWN))
            .map(|(name, metadata)| Own {
                alive: self.alive(&path.join(&name)),
                key: key_in(directory, &name),
                modified: DateTime::from_timestamp(metadata.mtime(), 0),
            })
            .collect())
    }

    fn dead_after(&self) -> Duration {
        DEAD_AFTER
    }

    fn keep_alive(&self) {
        let temporaries = self
            .temporaries
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let claims: Vec<PathBuf> = self
            .claims
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
            .map(|(path, _)| path.clone())
            .collect();
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: UTIME_NOW,
        };
        let times = Timestamps {
            last_access: now,
            last_modification: now,
        };
        for path in temporaries.iter().chain(&claims) {
            // A temporary that was just published is gone; that is no matter.
            let _ = rustix::fs::utimensat(CWD, path, &times, rustix::fs::AtFlags::empty());
        }
    }
}

/// The part of a path below where `spec.destination` mounts its volume.
fn below_mount(root: &Path) -> Option<&Path> {
    let below = root.strip_prefix(DESTINATION_MOUNT).ok()?;
    (!below.as_os_str().is_empty()).then_some(below)
}

/// What is said of a directory that does not exist.
fn absent(root: &Path) -> String {
    match below_mount(root) {
        Some(below) => format!(
            "directory {} does not exist on the volume of spec.destination: no run has stored there yet, or spec.destination.volume.path (--path) names another",
            below.display()
        ),
        None => format!(
            "{} does not exist: mount a volume there (spec.volumes, spec.volumeMounts) or correct SQLPATH",
            root.display()
        ),
    }
}

/// Makes the directories of `below` in `mount`.
fn make_below(mount: &Path, below: &Path) -> Result<(), Failure> {
    let root = mount.join(below);
    let inside = || -> io::Result<bool> {
        let there = root.ancestors().find(|path| path.exists());
        let there = there.unwrap_or(mount).canonicalize()?;
        let plain = below
            .components()
            .all(|c| matches!(c, Component::Normal(_)));
        Ok(plain && there.starts_with(mount.canonicalize()?))
    };
    if !inside().map_err(|e| failure("opening", &root, &e))? {
        return Err(Failure::new(
            Reason::DestinationNotFound,
            format!(
                "directory {} of spec.destination leads out of its volume: correct spec.destination.volume.path (--path)",
                below.display()
            ),
        ));
    }
    DirBuilder::new()
        .recursive(true)
        .mode(0o750)
        .create(&root)
        .map_err(|e| failure("creating directory", &root, &e))
}

/// Files of a directory; none if it does not exist, and none that vanish while it is read.
fn files(path: &Path) -> Result<Vec<(String, std::fs::Metadata)>, Failure> {
    let entries = match std::fs::read_dir(path) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(vec![]),
        Err(e) => return Err(failure("listing", path, &e)),
    };
    let mut found = vec![];
    for entry in entries {
        let entry = entry.map_err(|e| failure("listing", path, &e))?;
        if let (Ok(name), Ok(metadata)) = (entry.file_name().into_string(), entry.metadata()) {
            found.push((name, metadata));
        }
    }
    Ok(found)
}

struct VolumeUpload {
    file: File,
    /// Bytes written.
    bytes: u64,
    /// Until it is closed.
    flusher: Option<Flusher>,
    /// From then on.
    back: Option<ReadBack>,
    temporary: PathBuf,
    target: PathBuf,
    directory: PathBuf,
    published: bool,
}

impl Upload for VolumeUpload {
    fn write(&mut self, data: &[u8]) -> Result<(), Failure> {
        self.file
            .write_all(data)
            .map_err(|e| failure("writing", &self.target, &e))?;
        self.bytes += data.len() as u64;
        if let Some(flusher) = &mut self.flusher {
            flusher.wrote(self.bytes);
        }
        Ok(())
    }

    fn close(&mut self) -> Result<(), Failure> {
        let failed = |e| failure("writing", &self.target, &e);
        if let Some(flusher) = self.flusher.take() {
            self.back = Some(flusher.end().map_err(failed)?);
        }
        self.file.sync_all().map_err(failed)
    }

    fn read_back(&self) -> Result<Box<dyn Read + Send>, Failure> {
        let file = open(&self.temporary).map_err(|e| failure("reading back", &self.target, &e))?;
        Ok(Box::new(Checked {
            file,
            path: self.target.clone(),
        }))
    }

    fn measure(&mut self) -> io::Result<Stored> {
        match self.back.take() {
            Some(back) => back
                .finish()
                .map_err(|e| io::Error::other(failure("reading back", &self.target, &e))),
            None => checksum::measure(self.read_back().map_err(io::Error::other)?),
        }
    }

    fn rename(&mut self, name: &str) -> bool {
        self.target = self.directory.join(name);
        true
    }

    fn publish(&mut self) -> Result<bool, Failure> {
        let published = rename_if_absent(&self.temporary, &self.target)
            .map_err(|e| failure("renaming to", &self.target, &e))?;
        if published {
            self.published = true;
            sync_directory(&self.directory).map_err(|e| failure("writing", &self.directory, &e))?;
        }
        Ok(published)
    }
}

impl Drop for VolumeUpload {
    fn drop(&mut self) {
        if !self.published {
            let _ = std::fs::remove_file(&self.temporary);
        }
    }
}

/// A file whose read errors name it.
struct Checked {
    file: File,
    path: PathBuf,
}

impl Read for Checked {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.file
            .read(buffer)
            .map_err(|e| io::Error::other(failure("reading back", &self.path, &e)))
    }
}

/// Opens a file to read it from the volume.
fn open(path: &Path) -> io::Result<File> {
    let file = File::open(path)?;
    past_cache(&file, 0);
    Ok(file)
}

/// Renames, never over an existing file; false if there is one. Some network and FUSE file
/// systems know neither of the atomic ways; there a look must do.
fn rename_if_absent(from: &Path, to: &Path) -> io::Result<bool> {
    match rustix::fs::renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Ok(()) => return Ok(true),
        Err(rustix::io::Errno::EXIST) => return Ok(false),
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS | rustix::io::Errno::OPNOTSUPP) => {
        }
        Err(e) => return Err(e.into()),
    }
    match std::fs::hard_link(from, to) {
        Ok(()) => {
            std::fs::remove_file(from)?;
            return Ok(true);
        }
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
        Err(_) => {}
    }
    if to.try_exists()? {
        return Ok(false);
    }
    std::fs::rename(from, to).map(|()| true)
}

fn sync_directory(path: &Path) -> io::Result<()> {
    match File::open(path)?.sync_all() {
        // Some network file systems refuse to sync a directory.
        Err(e) if e.kind() == io::ErrorKind::InvalidInput => Ok(()),
        other => other,
    }
}

/// Names what failed, why, and what to do.
fn failure(doing: &str, path: &Path, error: &io::Error) -> Failure {
    let path_of = path;
    let path = path.display();
    let errno = error
        .raw_os_error()
        .map(rustix::io::Errno::from_raw_os_error);
    use rustix::io::Errno;
    match errno {
        Some(Errno::NOSPC) if crate::failure::no_inodes(path_of) => Failure::new(
            Reason::NoSpace,
            format!(
                "no inode left on the volume while {doing} {path}: it has bytes left but takes no more files; remove small files there, or take a file system with more inodes"
            ),
        ),
        Some(Errno::DQUOT) => Failure::new(
            Reason::NoSpace,
            format!(
                "the quota of the volume is used up while {doing} {path}: raise it, or keep less (EXPIREAT, spec.retention)"
            ),
        ),
        Some(Errno::NOSPC) => Failure::new(
            Reason::NoSpace,
            format!(
                "no space left on the volume while {doing} {path}: enlarge the volume, or keep less (EXPIREAT, spec.retention)"
            ),
        ),
        Some(Errno::ACCESS | Errno::PERM) => Failure::new(
            Reason::PermissionDenied,
            format!(
                "permission denied while {doing} {path} as uid {}: make it writable for that user (podSecurityContext.runAsUser or fsGroup; hostPath and NFS ignore fsGroup)",
                rustix::process::geteuid().as_raw()
            ),
        ),
        Some(Errno::ROFS) => Failure::new(
            Reason::ReadOnly,
            format!(
                "the volume is read-only ({doing} {path}): mount it writable (readOnly: false)"
            ),
        ),
        Some(Errno::FBIG) => Failure::new(
            Reason::FileTooLarge,
            format!(
                "the volume takes no file of this size ({doing} {path}): use another file system"
            ),
        ),
        _ => Failure::new(
            Reason::StoreFailed,
            format!("{doing} {path} failed: {error}; check the volume and its node"),
        ),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use super::*;

    fn store(root: &Path, run: &str, pod: &str, nonce: &str) -> VolumeStore {
        let attempt = Attempt {
            run: run.into(),
            pod: pod.into(),
            nonce: nonce.into(),
        };
        VolumeStore::open(root, attempt).unwrap()
    }

    fn names(path: &Path) -> Vec<String> {
        let mut names: Vec<String> = files(path).unwrap().into_iter().map(|(n, _)| n).collect();
        names.sort();
        names
    }

    #[test]
    fn only_a_published_artefact_has_its_name() {
        let root = tempfile::tempdir().unwrap();
        let store = store(root.path(), "r-1", "p", "a");
        let mut upload = store.begin("d/x.sql").unwrap();
        upload.write(b"abc").unwrap();
        upload.close().unwrap();
        let mut back = String::new();
        upload
            .read_back()
            .unwrap()
            .read_to_string(&mut back)
            .unwrap();
        assert_eq!(back, "abc");
        assert_eq!(store.list("d").unwrap(), []);
        assert!(upload.publish().unwrap());
        drop(upload);
        assert_eq!(names(&root.path().join("d")), ["x.sql"]);
        assert_eq!(
            store.list("d").unwrap(),
            [Entry {
                key: "d/x.sql".into(),
                size: 3
            }]
        );
    }

    #[test]
    fn a_dropped_upload_leaves_nothing_and_an_existing_artefact_stays() {
        let root = tempfile::tempdir().unwrap();
        let store = store(root.path(), "r-1", "p", "a");
        store.put("d/x.sql", b"old").unwrap();
        let mut upload = store.begin("d/x.sql").unwrap();
        upload.write(b"new").unwrap();
        upload.close().unwrap();
        assert!(!upload.publish().unwrap());
        drop(upload);
        assert_eq!(names(&root.path().join("d")), ["x.sql"]);
        assert_eq!(std::fs::read(root.path().join("d/x.sql")).unwrap(), b"old");
    }

    #[test]
    fn t1_a_lock_tells_who_lives() {
        let root = tempfile::tempdir().unwrap();
        let d = root.path().join("d");
        std::fs::create_dir(&d).unwrap();
        let write = |run: &str, pod: &str, nonce: &str, age: u64| {
            let name = store(root.path(), run, pod, nonce).temporary_name();
            let file = File::create(d.join(&name)).unwrap();
            let made = file.metadata().unwrap().modified().unwrap();
            file.set_modified(made - std::time::Duration::from_secs(age))
                .unwrap();
            name
        };
        write("r-1", "p1", "old", 0);
        write("r-0", "p2", "restarted", 0);
        write("r-9", "p9", "dead", 3600);
        let live = write("r-8", "p8", "live", 60);
        std::fs::write(d.join("user.tmp"), "x").unwrap();
        // Its lock went with its process, as that of all the others, which hold none here.
        let held = File::open(d.join(&live)).unwrap();
        lock(&held);
        let found = store(root.path(), "r-1", "p2", "new").own("d").unwrap();
        let alive: Vec<_> = found.iter().filter(|o| o.alive == Some(true)).collect();
        assert_eq!(alive.len(), 1, "{found:?}");
        assert_eq!(alive[0].key, format!("d/{live}"));
        assert_eq!(found.len(), 4);
    }

    #[test]
    fn a_mark_is_left_once() {
        let root = tempfile::tempdir().unwrap();
        let store = store(root.path(), "r-1", "p", "a");
        assert!(store.mark("d", "failure").unwrap());
        assert!(!store.mark("d", "failure").unwrap());
        assert!(store.mark("d", "success").unwrap());
        assert_eq!(store.list("d").unwrap(), []);
    }

    #[test]
    fn a_missing_directory_is_told_with_its_remedy() {
        let attempt = Attempt {
            run: "r".into(),
            pod: "p".into(),
            nonce: "n".into(),
        };
        let failure = VolumeStore::open(Path::new("/nonexistent/x"), attempt)
            .err()
            .unwrap();
        assert_eq!(
            (failure.exit_code, failure.reason.as_str()),
            (4, "DestinationNotFound")
        );
        assert!(
            failure.message.contains("/nonexistent/x") && failure.message.contains("volumeMounts")
        );
    }

    #[test]
    fn u11_the_directory_of_a_destination_is_made_on_its_volume_and_nowhere_else() {
        let (volume, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let made = |below: &str| make_below(volume.path(), Path::new(below));
        for below in ["dir", "a/b/c", "dir"] {
            made(below).unwrap();
            assert!(volume.path().join(below).is_dir(), "{below}");
        }
        std::os::unix::fs::symlink(outside.path(), volume.path().join("out")).unwrap();
        std::os::unix::fs::symlink("a", volume.path().join("in")).unwrap();
        for below in ["../x", "out/x", "a/../../x", "out"] {
            assert_eq!(
                made(below).unwrap_err().reason,
                "DestinationNotFound",
                "{below}"
            );
        }
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
        made("in/d").unwrap();
        assert!(volume.path().join("a/d").is_dir());
        // Where a path of the user's own is meant nothing is made.
        let own = outside.path().join("own");
        VolumeStore::make(&own).unwrap();
        assert!(!own.exists());
        let said = absent(Path::new("/backup/dir"));
        assert!(
            said.contains("--path") && !said.contains("SQLPATH"),
            "{said}"
        );
    }

    #[test]
    fn the_renames_fallback_never_overwrites() {
        let root = tempfile::tempdir().unwrap();
        let (a, b) = (root.path().join("a"), root.path().join("b"));
        std::fs::write(&a, "a").unwrap();
        std::fs::write(&b, "b").unwrap();
        assert!(!rename_if_absent(&a, &b).unwrap());
        assert_eq!(std::fs::read(&b).unwrap(), b"b");
    }
}
