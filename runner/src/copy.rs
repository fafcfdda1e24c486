//! `copy DIRECTORY`: puts this program, and the CA certificates of its image, into a volume. From
//! there it runs in another image, which has the clients of a database and need not have anything
//! else: it is linked statically.

use crds::report::Reason;
use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use crds::pod::{CERTIFICATES, COPIED_RUNNER, COPY};

use crate::failure::Failure;

/// This program.
const PROGRAM: &str = "/proc/self/exe";
/// CA certificates of Debian's images.
const AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// The directory that the command line asks to copy to.
pub fn asked(words: &[String]) -> Option<&str> {
    match words {
        [word, directory] if word == COPY => Some(directory),
        _ => None,
    }
}

/// Copies.
///
/// # Errors
/// The directory can't be written to.
pub fn run(directory: &Path) -> Result<(), Failure> {
    place(Path::new(PROGRAM), &directory.join(COPIED_RUNNER), 0o555)?;
    if Path::new(AUTHORITIES).exists() {
        place(Path::new(AUTHORITIES), &directory.join(CERTIFICATES), 0o444)?;
    }
    Ok(())
}

/// Copies a file under another name first: a start that was killed leaves nothing half.
fn place(from: &Path, to: &Path, mode: u32) -> Result<(), Failure> {
    let failed = |e: io::Error| {
        Failure::new(
            Reason::CopyFailed,
            format!(
                "the runner can't be copied to {}: {e}; look at the space of the node's disk, and at podSecurityContext",
                to.display()
            ),
        )
    };
    let temporary = to.with_extension("new");
    match std::fs::remove_file(&temporary) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(failed(e)),
        _ => {}
    }
    let mut source = File::open(from).map_err(failed)?;
    let mut target = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&temporary)
        .map_err(failed)?;
    io::copy(&mut source, &mut target).map_err(failed)?;
    // Whatever the umask and the user of the next container are.
    target
        .set_permissions(Permissions::from_mode(mode))
        .map_err(failed)?;
    drop(target);
    std::fs::rename(&temporary, to).map_err(failed)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use super::*;

    #[test]
    fn only_these_two_words_ask_for_it() {
        let words = |text: &str| -> Vec<String> { text.split(' ').map(str::to_owned).collect() };
        assert_eq!(asked(&words("copy /run/x")), Some("/run/x"));
        for other in ["copy", "copy a b", "download hold"] {
            assert_eq!(asked(&words(other)), None, "{other}");
        }
    }

    #[test]
    fn the_program_is_there_whole_for_everybody_and_again_after_a_killed_start() {
        let directory = tempfile::tempdir().unwrap();
        let half = directory.path().join("backup-runner.new");
        std::fs::write(&half, "half").unwrap();
        std::fs::set_permissions(&half, Permissions::from_mode(0o444)).unwrap();
        for _ in 0..2 {
            run(directory.path()).unwrap();
        }
        let copy = directory.path().join(COPIED_RUNNER);
        let this = std::env::current_exe().unwrap();
        assert!(std::fs::read(&copy).unwrap() == std::fs::read(this).unwrap());
        assert_eq!(copy.metadata().unwrap().permissions().mode() & 0o777, 0o555);
        assert!(!half.exists());
    }

    #[test]
    fn what_can_not_be_written_is_named_with_a_remedy() {
        let failure = run(Path::new("/nonexistent")).unwrap_err();
        assert_eq!(
            (failure.exit_code, failure.reason.as_str()),
            (1, "CopyFailed")
        );
        assert!(
            failure.message.contains("/nonexistent/backup-runner")
                && failure.message.contains("space"),
            "{}",
            failure.message
        );
    }
}
