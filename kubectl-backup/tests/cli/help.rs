//! Help, usage and version.

use super::fake::Fake;
use super::{Config, Ran, bare};

#[test]
fn short_help() {
    let ran = Ran::of(bare().arg("-h").output().unwrap()).ok();
    snapbox::assert_data_eq!(
        ran.out,
        snapbox::str![[r#"
Create, list, trigger, suspend and inspect database backups

Usage: kubectl backup [OPTIONS] [COMMAND]

Looking:
  list        List backup objects: schedule, last result, next run [aliases: ls, get]
  describe    Show one object with its runs, pods and events, and what to do next
  runs        List runs, newest first [alias: history]
  logs        Print the log of a run
  top         Show the list live, with keys to run, suspend, describe and read logs
  health      Answer a monitoring system: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN
  report      Tell what was due and made in a period, as text, JSON, CSV or one HTML page
  doctor      Check what must be in place for backups to be made

Running:
  run-now     Start a backup now [aliases: run, trigger]
  wait        Wait for a run and exit with its result
  cancel      End a running backup, or a Restore
  verify      Read a stored backup again and compare it with its checksum

Restoring:
  restore     Restore a stored backup into a server or onto a volume, after a check
  show        Show what is in a stored backup: databases, tables, rows, bytes
  binlog      Show transactions of stored binary logs, such as a DROP with its GTID
  download    Download a stored backup, through a short-lived pod

Settings:
  create      Create a backup object
  set         Change schedule, retention and the like
  suspend     Pause a schedule: no new runs start
  resume      Let a suspended schedule run again
  schedule    Explain schedules, and preview their runs
  diff        Show what applying a file would change; exits with 0 if nothing, with 1 if something
  export      Print objects as manifests, without what the cluster added
  import      Translate a gobackup.yml into objects, print or apply them
  delete      Delete backup objects; what they stored stays unless told otherwise

Other:
  bundle      Collect what is needed to find a problem in one text, without secrets
  completion  Print a completion script, or install the one kubectl calls
  man         Print the manual page of the program or of a verb
  version     Show the versions of plugin, operator and server
  help        Print this message or the help of the given subcommand(s)

Options:
  -h, --help     Print help (see more with '--help')
  -V, --version  Print version

Flags of every verb:
  -y, --yes  Answer every question with yes

Connection flags, as kubectl's:
      --kubeconfig <FILE>      Path to the kubeconfig file to use
      --context <NAME>         The name of the kubeconfig context to use
  -n, --namespace <NAMESPACE>  The namespace to act in; the context's if unset

"#]]
    );
}

#[test]
fn a_usage_error_is_2() {
    for args in [
        &["nonsense"][..],
        &["list", "--nonsense"],
        &["create"],
        &["schedule"],
    ] {
        let ran = Ran::of(bare().args(args).output().unwrap());
        assert_eq!(
            (ran.code, ran.out.as_str()),
            (Some(2), ""),
            "{args:?} {ran:?}"
        );
    }
}

#[test]
fn versions_of_both_sides() {
    let fake = Fake::start();
    let config = Config::new(&fake);
    let ran = config.run(&["version"]).ok();
    assert!(
        ran.out.contains(concat!("v", env!("CARGO_PKG_VERSION"))) && ran.out.contains("v1.35.4"),
        "{}",
        ran.out
    );
    fake.items(
        "/apis/apps/v1/deployments",
        serde_json::json!([{
            "metadata": { "name": "backup-operator", "namespace": "backup-system" },
            "spec": { "selector": {}, "template": { "spec": { "containers": [{ "name": "operator", "image": "backup-operator:v0.0.1" }] } } },
        }]),
    );
    let ran = config.run(&["version"]).ok();
    assert!(
        ran.out
            .contains("Operator:        backup-operator:v0.0.1 (namespace backup-system)\n"),
        "{}",
        ran.out
    );
    let json: serde_json::Value =
        serde_json::from_str(&config.run(&["version", "--client", "-o", "json"]).ok().out).unwrap();
    assert_eq!(json["clientVersion"], env!("CARGO_PKG_VERSION"));
    assert_eq!(json.get("serverVersion"), None);
}

#[test]
fn the_version_as_a_flag() {
    for flag in ["--version", "-V"] {
        let ran = Ran::of(bare().arg(flag).output().unwrap()).ok();
        assert_eq!(ran.out, format!("kubectl-backup {}\n", crds::VERSION));
    }
}
