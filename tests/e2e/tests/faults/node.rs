//! The node's disk, on which pods keep what they work with, is full when a slot comes due.

use std::path::PathBuf;

use e2e::database::{BACKUP_PASSWORD, BACKUP_USER, HOST};
use e2e::{Namespace, cluster, wait_for};
use serde_json::Value;

use crate::books::{Herd, Line, now};
use crate::testbed;

const NAME: &str = "shop";
const RESOURCE: &str = "backups.gobackup.io";

/// The kubelet's directory of pods on a file system of 8 MiB. Pods that are there keep theirs.
struct Disk(PathBuf);

impl Disk {
    fn new() -> Self {
        // As the kubelet sees it: the state directory has another path inside.
        let name = cluster().state().file_name().unwrap();
        let root = PathBuf::from("/run/testbed/clusters").join(name);
        let disk = Self(root.join("kubelet/pods"));
        disk.shell(
            "mkdir -p \"$1\".real && mount --rbind \"$1\" \"$1\".real &&
             mount -t tmpfs -o size=8m,mode=750 tmpfs \"$1\" &&
             for pod in \"$1\".real/*; do
               mkdir \"$1/${pod##*/}\" && mount --rbind \"$pod\" \"$1/${pod##*/}\" || exit
             done",
        );
        disk
    }

    fn shell(&self, script: &str) -> String {
        let path = self.0.to_str().unwrap();
        testbed(&["enter", "bash", "-c", script, "disk", path])
    }

    /// Leaves room for what a pod needs to start, and for the beginning of a dump.
    fn fill(&self) {
        self.shell(
            "cd \"$1\" && [ \"$(stat -f -c %T .)\" = tmpfs ] && ! cat /dev/zero >filler 2>/dev/null && truncate -s -262144 filler",
        );
    }

    fn free(&self) {
        self.shell("rm \"$1\"/filler");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let path = self.0.to_str().unwrap();
        let script = "umount --lazy \"$1\"; umount --lazy \"$1\".real && rmdir \"$1\".real";
        let _ = cluster().testbed(&["enter", "bash", "-c", script, "disk", path]);
    }
}

/// A Backup that spools its dump on the node before it stores it on a volume with room.
fn apply(ns: &Namespace) {
    let login = [("username", BACKUP_USER), ("password", BACKUP_PASSWORD)];
    ns.secret("db", &login);
    ns.apply(&format!(
        "apiVersion: gobackup.io/v1
kind: Database
metadata: {{name: db}}
spec:
  type: mariadb
  config: {{host: {HOST}, port: 3306, database: wide, username_ref: {{name: db, key: username}}, password_ref: {{name: db, key: password}}}}
---
apiVersion: gobackup.io/v1
kind: Storage
metadata: {{name: store}}
spec: {{type: local, volume: {{persistentVolumeClaim: {{claimName: data}}}}, config: {{path: /backups}}}}
---
apiVersion: gobackup.io/v1
kind: Backup
metadata: {{name: {NAME}}}
spec:
  databaseRefs: [{{apiGroup: gobackup.io, type: mariadb, name: db}}]
  storageRefs: [{{apiGroup: gobackup.io, type: local, name: store}}]
  schedule: {{cron: '* * * * *', successfulJobsHistoryLimit: 100, failedJobsHistoryLimit: 100}}
  job: {{backoffLimit: 0}}
"
    ));
}

/// The newest run that ended like this.
fn run(ns: &Namespace, result: &str) -> Option<Value> {
    let object = ns.get(&[RESOURCE, NAME])?;
    let runs = object["status"]["runs"].as_array()?.clone();
    runs.into_iter()
        .filter(|r| r["result"] == result)
        .max_by_key(|r| r["slot"].as_str().map(str::to_owned))
}

/// Paths of the archives on the volume.
fn archives(volume: &std::path::Path) -> Vec<String> {
    let all = e2e::files(volume).into_iter();
    all.filter(|f| !f.contains(".gobackup-state")).collect()
}

pub(crate) fn full() -> Line {
    e2e::database::database().sql(crate::volume::DATA);
    let ns = cluster().namespace("e2e-full-node");
    let volume = ns.volume("data");
    let disk = Disk::new();
    apply(&ns);
    wait_for("a good run", 300, || run(&ns, "Succeeded"));
    let herd = Herd {
        ns: &ns,
        kind: ("Backup", RESOURCE),
        names: vec![NAME.into()],
    };
    let (mut mended, mut failure) = (now(), Value::Null);
    let mut line = herd.fault(
        "node's disk full at the slot",
        (40, 5),
        || disk.fill(),
        || {
            let before = archives(&volume);
            failure = wait_for("the run fails", 300, || run(&ns, "Failed"));
            fails_loudly(&ns, &failure);
            assert_eq!(archives(&volume), before, "a part of it was kept");
            disk.free();
            mended = now();
        },
    );
    wait_for("a run after it is good", 300, || {
        let good = run(&ns, "Succeeded")?;
        (good["slot"].as_str() > failure["slot"].as_str()).then_some(())
    });
    line.recovered = (now() - mended).num_seconds();
    line.show();
    line
}

/// What was written where, why it failed and what helps; in status and to the user.
fn fails_loudly(ns: &Namespace, failed: &Value) {
    assert_eq!(failed["exitCode"], 1, "{failed}");
    assert_eq!(failed["reason"], "NoSpace", "{failed}");
    let said = failed["message"].as_str().unwrap();
    assert!(
        said.contains("spooling to /") && said.contains("free space on the node"),
        "{said}"
    );
    assert!(failed["artefacts"].is_null(), "{failed}");
    let described = ns.backup(&["describe", &format!("backup/{NAME}")]).ok();
    assert!(described.stdout.contains("NoSpace"), "{}", described.stdout);
}
