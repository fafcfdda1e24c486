//! Completion as kubectl asks for it, the man page, the scripts.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::fake::{Fake, backup};
use super::{Config, Ran, bare};

/// As the shell asks, with patience for a busy machine.
pub fn asked(config: &Config, args: &[&str]) -> Ran {
    let mut command = config.command(args);
    command.env("KUBECTL_BACKUP_COMPLETION_TIMEOUT", "60s");
    Ran::of(command.output().unwrap())
}

#[test]
fn live_names_with_descriptions() {
    let fake = Fake::start();
    fake.put(backup(
        "prod",
        "shop",
        json!({ "schedule": "0 2 * * *" }),
        Value::Null,
    ));
    fake.put(backup(
        "other",
        "crm",
        json!({ "schedule": "@daily" }),
        Value::Null,
    ));
    let config = Config::new(&fake);
    let ran = asked(&config, &["__complete", "suspend", ""]).ok();
    assert_eq!(
        ran.out,
        "mysqlbackup/shop\t0 2 * * *\nshop\t0 2 * * * Pending\n:4\n"
    );
    assert_eq!(
        asked(&config, &["__complete", "suspend", "x"]).ok().out,
        ":4\n"
    );
    assert_eq!(
        asked(&config, &["__complete", "-n", "other", "suspend", "c"])
            .ok()
            .out,
        "crm\t@daily Pending\n:4\n"
    );
    fake.items(
        "/api/v1/namespaces",
        json!([{ "metadata": { "name": "prod" } }, { "metadata": { "name": "other" } }]),
    );
    assert_eq!(
        asked(&config, &["__complete", "list", "-n", "p"]).ok().out,
        "prod\n:4\n"
    );
    assert_eq!(
        asked(&config, &["__complete", "list", "--context", ""])
            .ok()
            .out,
        "prod-eu\n:4\n"
    );
    let zones = asked(
        &config,
        &[
            "__complete",
            "create",
            "mysql",
            "x",
            "--time-zone",
            "Europe/Be",
        ],
    )
    .ok()
    .out;
    assert!(zones.contains("Europe/Berlin\n"), "{zones}");
    assert_eq!(
        asked(&config, &["__complete", "diff", "-f", ""]).ok().out,
        ":0\n"
    );
}

#[test]
fn silent_and_quick_when_the_cluster_is_away() {
    let ran = Ran::of(
        bare()
            .args([
                "__complete",
                "suspend",
                "",
                "--server",
                "http://127.0.0.1:1",
                "",
            ])
            .output()
            .unwrap(),
    )
    .ok();
    assert_eq!((ran.out.as_str(), ran.err.as_str()), (":4\n", ""));
    let ran = Ran::of(bare().args(["__complete", "suspend", ""]).output().unwrap()).ok();
    assert_eq!((ran.out.as_str(), ran.err.as_str()), (":4\n", ""));
    // A server that takes the connection and says nothing.
    let mute = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("http://{}", mute.local_addr().unwrap());
    let start = Instant::now();
    let ran = Ran::of(
        bare()
            .args(["__complete", "--server", &server, "suspend", ""])
            .output()
            .unwrap(),
    )
    .ok();
    assert_eq!((ran.out.as_str(), ran.err.as_str()), (":4\n", ""));
    // The budget is 0.9s; the rest is a busy machine.
    assert!(start.elapsed() < Duration::from_secs(30));
}

#[test]
fn scripts_for_every_shell() {
    for (shell, mark) in [
        ("bash", "complete -F"),
        ("zsh", "#compdef kubectl-backup"),
        ("fish", "complete -c kubectl-backup"),
        ("powershell", "Register-ArgumentCompleter"),
    ] {
        let ran = Ran::of(bare().args(["completion", shell]).output().unwrap()).ok();
        assert!(ran.out.contains(mark), "{shell}");
    }
}

#[cfg(unix)]
#[test]
fn kubectls_own_completion_finds_the_shim() {
    let fake = Fake::start();
    fake.put(backup(
        "prod",
        "shop",
        json!({ "schedule": "0 2 * * *" }),
        Value::Null,
    ));
    let config = Config::new(&fake);
    let bin = config.directory.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(
        env!("CARGO_BIN_EXE_kubectl-backup"),
        bin.join("kubectl-backup"),
    )
    .unwrap();
    let path = std::env::join_paths([bin.as_path(), "/usr/bin".as_ref(), "/bin".as_ref()]).unwrap();
    let ran = Ran::of(
        config
            .command(&["completion", "kubectl", "--install"])
            .env("PATH", &path)
            .output()
            .unwrap(),
    )
    .ok();
    let shim = bin.join("kubectl_complete-backup");
    assert_eq!(ran.out, format!("{}\n", shim.display()));
    // As kubectl calls it.
    let output = std::process::Command::new(&shim)
        .args(["suspend", "sh"])
        .env_clear()
        .env("PATH", &path)
        .env("KUBECTL_BACKUP_COMPLETION_TIMEOUT", "60s")
        .env("KUBECONFIG", config.directory.path().join("config"))
        .output()
        .unwrap();
    assert_eq!(Ran::of(output).ok().out, "shop\t0 2 * * * Pending\n:4\n");
}

#[test]
fn manual_pages() {
    let ran = Ran::of(bare().arg("man").output().unwrap()).ok();
    assert!(
        ran.out.contains(".TH kubectl-backup 1"),
        "{}",
        &ran.out[..200]
    );
    let ran = Ran::of(bare().args(["man", "schedule", "next"]).output().unwrap()).ok();
    assert!(ran.out.contains("time\\-zone"), "{}", ran.out);
    Ran::of(bare().args(["man", "nonsense"]).output().unwrap())
        .fails(2, "error: no verb \"nonsense\"");
}
