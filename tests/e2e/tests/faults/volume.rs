//! The destination's volume is full when a slot comes due.

use std::path::PathBuf;

use e2e::database::{BACKUP_PASSWORD, BACKUP_USER, HOST, database};
use e2e::{Namespace, cluster, wait_for};
use serde_json::Value;

use crate::books::{Herd, Line, MYSQL, now};
use crate::testbed;

const NAME: &str = "shop";

/// Half a megabyte that no codec makes smaller.
pub(crate) const DATA: &str = "create database if not exists wide;
use wide;
create or replace table t (bytes blob);
insert into t select random_bytes(1024) from seq_1_to_512;";

/// A file system of 8 MiB on the claim's directory, seen by the node alone.
struct Small(PathBuf);

impl Small {
    fn on(directory: PathBuf) -> Self {
        let small = Self(directory);
        let options = "size=8m,mode=700,uid=65532,gid=65532";
        let path = small.path();
        testbed(&[
            "enter", "mount", "-t", "tmpfs", "-o", options, "tmpfs", path,
        ]);
        small
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }

    fn shell(&self, script: &str) -> String {
        testbed(&["enter", "bash", "-c", script, "volume", self.path()])
    }

    /// Leaves room for the beginning of an artefact.
    fn fill(&self) {
        self.shell("cd \"$1\" && ! cat /dev/zero >filler 2>/dev/null && truncate -s -65536 filler");
    }

    fn free(&self) {
        self.shell("rm \"$1\"/filler");
    }

    /// Paths of what backups left there.
    fn files(&self) -> Vec<String> {
        let list = self.shell("cd \"$1\" && find . -type f ! -name filler | sort");
        list.lines().map(str::to_owned).collect()
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = cluster().testbed(&["enter", "umount", "--lazy", self.path()]);
    }
}

/// The newest run that ended like this.
fn run(ns: &Namespace, result: &str) -> Option<Value> {
    let object = ns.mysql_backup(NAME)?;
    let runs = object["status"]["runs"].as_array()?.clone();
    runs.into_iter()
        .filter(|r| r["result"] == result)
        .max_by_key(|r| r["slot"].as_str().map(str::to_owned))
}

/// Artefacts, each with its manifest, and nothing else.
fn only_whole_artefacts(files: &[String]) {
    let is_manifest = |f: &&String| f.ends_with(".json");
    let (manifests, others): (Vec<&String>, Vec<&String>) = files.iter().partition(is_manifest);
    let whole = |artefact: &&String| {
        let stem = artefact.strip_suffix(".sql.zst");
        stem.is_some_and(|stem| manifests.iter().any(|m| m.starts_with(stem)))
    };
    assert!(
        others.len() == manifests.len() && others.iter().all(whole),
        "half an artefact: {files:#?}"
    );
}

pub(crate) fn full() -> Line {
    database().sql(DATA);
    let ns = cluster().namespace("e2e-full");
    let volume = Small::on(ns.volume("data"));
    let login = [("username", BACKUP_USER), ("password", BACKUP_PASSWORD)];
    ns.secret("db", &login);
    ns.apply(&format!(
        "apiVersion: batch.isekiro.com/v1
kind: MysqlBackup
metadata: {{name: {NAME}}}
spec:
  schedule: '* * * * *'
  backoffLimit: 0
  source: {{host: {HOST}, credentialsSecretRef: {{name: db}}}}
  destination: {{volume: {{persistentVolumeClaim: {{claimName: data}}}}}}
  successfulJobsHistoryLimit: 100
  failedJobsHistoryLimit: 100
"
    ));
    let good = wait_for("a good run", 300, || run(&ns, "Succeeded"));
    let herd = Herd {
        ns: &ns,
        kind: MYSQL,
        names: vec![NAME.into()],
    };
    let (mut mended, mut failure) = (now(), Value::Null);
    let mut line = herd.fault(
        "destination's volume full at the slot",
        (40, 5),
        || volume.fill(),
        || {
            failure = wait_for("the run fails", 300, || run(&ns, "Failed"));
            fails_loudly(&ns, &failure);
            let stored = ns.backup(&["runs", NAME, "--stored"]).ok().stdout;
            let name = |run: &Value| run["name"].as_str().unwrap().to_owned();
            assert!(stored.contains(&name(&good)), "{stored}");
            assert!(
                !stored.contains(&name(&failure)),
                "counts as stored: {stored}"
            );
            only_whole_artefacts(&volume.files());
            volume.free();
            mended = now();
        },
    );
    wait_for("a run after it is good", 300, || {
        let good = run(&ns, "Succeeded")?;
        (good["slot"].as_str() > failure["slot"].as_str()).then_some(())
    });
    line.recovered = (now() - mended).num_seconds();
    only_whole_artefacts(&volume.files());
    line.show();
    line
}

/// The store's exit code, its reason, the remedy; in status, to the user, to whoever waits.
fn fails_loudly(ns: &Namespace, failed: &Value) {
    assert_eq!(failed["exitCode"], 4, "{failed}");
    assert_eq!(failed["reason"], "NoSpace", "{failed}");
    let said = failed["message"].as_str().unwrap();
    assert!(
        said.contains("no space left") && said.contains("enlarge the volume"),
        "{said}"
    );
    assert!(failed["artefacts"].is_null(), "{failed}");
    let described = ns.backup(&["describe", NAME]).ok().stdout;
    assert!(described.contains("NoSpace"), "{described}");
    assert!(described.contains("make room in the store"), "{described}");
}
