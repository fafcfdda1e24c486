//! What is made once in the user's cache, for all test programs.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{FlockOperation, flock};

/// The directory of all of it.
pub fn cache() -> PathBuf {
    let cache = std::env::var("XDG_CACHE_HOME").map_or_else(
        |_| PathBuf::from(std::env::var("HOME").unwrap()).join(".cache"),
        PathBuf::from,
    );
    cache.join("backup-runner-tests")
}

/// The directory of this name: `make` fills it, once, whichever program asks first. What a program began that was ended
/// meanwhile is made anew.
pub fn once(name: &str, make: impl FnOnce(&Path)) -> PathBuf {
    let (directory, whole) = (cache().join(name), cache().join(format!("{name}.whole")));
    std::fs::create_dir_all(cache()).unwrap();
    let lock = File::create(cache().join(format!("{name}.lock"))).unwrap();
    flock(&lock, FlockOperation::LockExclusive).unwrap();
    if !whole.exists() {
        if directory.exists() {
            std::fs::remove_dir_all(&directory).unwrap();
        }
        make(&directory);
        File::create(&whole).unwrap();
    }
    directory
}

/// A Python of its own with these packages.
pub fn virtual_environment(name: &str, packages: &[&str]) -> PathBuf {
    once(name, |venv| {
        let mut pip = Command::new(venv.join("bin/pip"));
        for command in [
            Command::new("python3").args(["-m", "venv"]).arg(venv),
            pip.args(["-q", "install"]).args(packages),
        ] {
            assert!(
                command.status().unwrap().success(),
                "{command:?}; apt-get install python3-venv"
            );
        }
    })
}
