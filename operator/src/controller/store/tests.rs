#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use chrono::DateTime;
use kube::core::DynamicObject;
use serde_json::json;

use super::*;
use crate::digest;
use crate::engine::Ended;
use crate::mysql_backup::MysqlBackups;

fn object(uid: &str) -> Kept {
    let found = json!({
        "apiVersion": "batch.isekiro.com/v1", "kind": "MysqlBackup",
        "metadata": {"name": uid, "namespace": "ns", "uid": uid, "resourceVersion": "5"},
        "spec": {},
    });
    let found: DynamicObject = serde_json::from_value(found).unwrap();
    digest::object(found, &MysqlBackups::new("runner")).unwrap()
}

fn pod(uid: &str) -> PodDigest {
    PodDigest {
        name: uid.into(),
        uid: uid.into(),
        job_uid: format!("job-{uid}").into(),
        created: DateTime::UNIX_EPOCH,
        started: true,
        held: None,
        trouble: None,
        ended: Some(Ended {
            exit_code: 0,
            reason: "Completed".into(),
            message: "x".repeat(4096).into(),
            at: None,
        }),
        failures: 0,
        gone: false,
    }
}

impl Store {
    fn words(&self) -> usize {
        let entries = self.lock();
        entries.values().map(|e| e.pods.len()).sum()
    }
}

/// 8,000 objects come, run and go: nothing of them stays, in whatever order their ends are heard.
#[test]
fn o8_what_pods_of_objects_say_that_are_gone_is_not_kept() {
    let store = Store::default();
    store.completed();
    for n in 0..8_000 {
        let uid = format!("uid-{n}");
        store.set_object(&uid, 0, &object(&uid));
        store.set_pod(&uid, pod(&uid));
        assert_eq!(store.words(), 1, "an object's own pod is heard");
        if n % 2 == 0 {
            store.pod_gone(&uid, pod(&uid));
            store.remove_object(&uid);
        } else {
            store.remove_object(&uid);
            store.set_pod(&uid, pod(&uid));
            store.pod_gone(&uid, pod(&uid));
        }
        assert_eq!(store.words(), 0, "{n}");
    }
    assert!(store.lock().is_empty());
}

/// Lists come in any order: a pod may be known before its object, until all were read.
#[test]
fn o8_pods_wait_for_their_objects_only_while_the_lists_are_read() {
    let store = Store::default();
    store.set_pod("uid-1", pod("uid-1"));
    store.set_pod("uid-2", pod("uid-2"));
    store.set_object("uid-1", 0, &object("uid-1"));
    assert_eq!(store.words(), 2);
    store.completed();
    assert_eq!(store.words(), 1);
    assert_eq!(store.view(&"uid-1".into()).unwrap().pods.len(), 1);
    store.set_pod("uid-2", pod("uid-2"));
    assert_eq!(store.words(), 1);
}
