//! `completion`: scripts for shells, and the shim kubectl calls.

use std::path::{Path, PathBuf};

use crate::cli::{Completion, Shell};
use crate::context::Context;
use crate::error::{Error, Kind as Exit, Result};

/// Name kubectl looks for on PATH.
const SHIM: &str = "kubectl_complete-backup";
/// What it runs.
const SHIM_TEXT: &str = "#!/bin/sh\n# Called by kubectl's completion for `kubectl backup`.\nexec kubectl-backup __complete \"$@\"\n";

/// Prints a script, or puts the shim in place.
///
/// # Errors
/// No directory to write to.
pub(crate) fn run(context: &Context, args: &Completion) -> Result<()> {
    if args.install && args.shell != Shell::Kubectl {
        return Err(Error::usage("--install is for `completion kubectl`"));
    }
    let shell = match args.shell {
        Shell::Bash => clap_complete::Shell::Bash,
        Shell::Zsh => clap_complete::Shell::Zsh,
        Shell::Fish => clap_complete::Shell::Fish,
        Shell::Powershell => clap_complete::Shell::PowerShell,
        Shell::Kubectl if args.install => return install(context),
        Shell::Kubectl => return context.ui.out(SHIM_TEXT),
    };
    let mut text = vec![];
    clap_complete::generate(
        shell,
        &mut crate::cli::command(),
        "kubectl-backup",
        &mut text,
    );
    context.ui.out(&String::from_utf8_lossy(&text))
}

/// Writes the shim beside the plugin, else into the first directory of PATH that takes it.
fn install(context: &Context) -> Result<()> {
    let path = context.env.path.clone().unwrap_or_default();
    let directories: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let beside = directories
        .iter()
        .filter(|d| d.join("kubectl-backup").exists() || d.join("kubectl-backup.exe").exists());
    for directory in beside.chain(&directories) {
        let target = directory.join(SHIM);
        if directory.is_dir() && write(&target).is_ok() {
            context.ui.note(
                "Names complete once kubectl's own completion is on: kubectl completion --help",
            );
            return context.ui.line(&format!("{}", target.display()));
        }
    }
    Err(
        Error::new(Exit::Other, "no directory of PATH can be written to").hint(format!(
            "kubectl backup completion kubectl > {SHIM}, make it executable and put it on PATH"
        )),
    )
}

fn write(target: &Path) -> std::io::Result<()> {
    std::fs::write(target, SHIM_TEXT)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(target, std::fs::Permissions::from_mode(0o755))?;
    }
    Ok(())
}
