//! What was stored is loaded again: by Restores, and by verifications, in a namespace that admits
//! restricted pods alone.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::path::Path;
use std::process::{Command, Stdio};

use e2e::database::{BACKUP_PASSWORD, BACKUP_USER, HOST, ROOT_PASSWORD, database};
use e2e::{Namespace, cluster, files, wait_for};
use serde_json::{Value, json};

/// Keys of these tests alone.
const RECIPIENT: &str = "age1vvs3xq7avwe737scqw8s345xqev2kc2l4lmx38zrnsjz24hc6eaq9sg43r";
const IDENTITY: &str = "AGE-SECRET-KEY-1TTS5GCDE5LLR82C025759CHWY2GHXYYTG4PCKKL9AATH6VEM3VMQEKRXJL";
const ANOTHER: &str = "AGE-SECRET-KEY-1UEQA4TYPGZVVAWPC3JNPKT7NZ2WCG65JA35WQUSH06WS802M4JHQGYE660";

const ROWS: &str = "select id, txt, hex(b), total, ts from shop.t order by id";

fn prepare(name: &str) -> (Namespace, std::path::PathBuf) {
    database();
    let ns = cluster().restricted_namespace(name);
    let volume = ns.volume("data");
    ns.secret(
        "db",
        &[("username", BACKUP_USER), ("password", BACKUP_PASSWORD)],
    );
    ns.secret("root", &[("username", "root"), ("password", ROOT_PASSWORD)]);
    ns.secret("keys", &[("right", IDENTITY), ("wrong", ANOTHER)]);
    (ns, volume)
}

fn backup(ns: &Namespace, name: &str, extra: &str) -> Value {
    backup_of(ns, name, "shop", extra)
}

fn backup_of(ns: &Namespace, name: &str, database: &str, extra: &str) -> Value {
    ns.apply(&format!(
        "apiVersion: batch.isekiro.com/v1
kind: MysqlBackup
metadata: {{name: {name}}}
spec:
  schedule: '@yearly'
  source: {{host: {HOST}, credentialsSecretRef: {{name: db}}, databases: [{database}]}}
  destination: {{volume: {{persistentVolumeClaim: {{claimName: data}}}}}}
{extra}
"
    ));
    ns.backup(&["run-now", name, "--wait", "--timeout", "5m"])
        .ok();
    let object = ns.mysql_backup(name).unwrap();
    object["status"]["runs"][0].clone()
}

/// Creates a Restore and gives its status at its end.
fn restore(ns: &Namespace, name: &str, from: &str, database: &str, extra: &str) -> Value {
    begin_restore(ns, name, from, database, extra);
    ended(ns, name)
}

fn begin_restore(ns: &Namespace, name: &str, from: &str, database: &str, extra: &str) {
    let to = if database.is_empty() {
        String::new()
    } else {
        format!(", database: {database}")
    };
    ns.apply(&format!(
        "apiVersion: batch.isekiro.com/v1
kind: Restore
metadata: {{name: {name}}}
spec:
  from: {from}
  to: {{host: {HOST}, credentialsSecretRef: {{name: root}}{to}}}
{extra}
"
    ));
}

fn ended(ns: &Namespace, name: &str) -> Value {
    wait_for(&format!("Restore {name} ends"), 240, || {
        let object = ns.get(&["restores.batch.isekiro.com", name])?;
        let phase = object["status"]["phase"].as_str()?;
        ["Succeeded", "Failed"]
            .contains(&phase)
            .then(|| object["status"].clone())
    })
}

fn assert_ended(status: &Value, phase: &str, reason: &str, words: &[&str]) {
    assert_eq!(
        (&status["phase"], &status["reason"]),
        (&json!(phase), &json!(reason)),
        "{status}"
    );
    let message = status["message"].as_str().unwrap();
    assert!(
        words.iter().all(|w| message.contains(w)),
        "{words:?} in {message}"
    );
    let restored = status["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .find(|c| c["type"] == "Restored")
        .unwrap();
    let expected = if phase == "Succeeded" {
        "True"
    } else {
        "False"
    };
    assert_eq!(
        (&restored["status"], &restored["reason"]),
        (&json!(expected), &json!(reason))
    );
}

#[test]
fn a_dump_is_restored_elsewhere_refused_where_it_must_be_and_survives_its_object() {
    let (ns, _volume) = prepare("e2e-restore");
    let run = backup(
        &ns,
        "shop",
        &format!(
            "  encryption: {{age: {{recipients: [{RECIPIENT}]}}}}\n  decryption: {{age: {{identitySecretKeyRef: {{name: keys, key: right}}}}}}"
        ),
    );
    let name = run["name"].as_str().unwrap();
    let latest = "{name: shop, latest: true}";
    let db = database();
    db.sql("drop database if exists shop_copy; drop database if exists shop_lost");

    let dry = restore(&ns, "dry", latest, "shop_copy", "  dryRun: true");
    assert_ended(&dry, "Succeeded", "WouldRestore", &["would restore"]);
    assert_eq!(db.sql("show databases like 'shop\\_copy'"), "");

    let wrong = "  decryption: {age: {identitySecretKeyRef: {name: keys, key: wrong}}}";
    let wrong = restore(&ns, "wrong-key", latest, "shop_copy", wrong);
    assert_ended(&wrong, "Failed", "NotDecryptable", &["identity"]);
    assert_eq!(db.sql("show databases like 'shop\\_copy'"), "");

    let good = restore(
        &ns,
        "copy",
        &format!("{{name: shop, run: {name}}}"),
        "shop_copy",
        "",
    );
    assert_ended(&good, "Succeeded", "Restored", &["shop_copy"]);
    assert_eq!(good["artefact"]["key"], run["artefacts"][0]["key"]);
    assert_eq!(good["rows"], run["rows"]);
    let copy = ROWS.replace("shop.", "shop_copy.");
    assert_eq!(db.sql(&copy), db.sql(ROWS));
    let counts = |database: &str| {
        db.sql(&format!(
            "select (select count(*) from information_schema.tables where table_schema='{database}'), (select count(*) from information_schema.triggers where trigger_schema='{database}'), (select count(*) from information_schema.routines where routine_schema='{database}'), (select count(*) from information_schema.events where event_schema='{database}')"
        ))
    };
    assert_eq!(counts("shop_copy"), counts("shop"));

    let filled = restore(&ns, "again", latest, "shop_copy", "");
    assert_ended(&filled, "Failed", "TargetNotEmpty", &["overwrite"]);
    let source = restore(&ns, "in-place", latest, "", "");
    assert_ended(&source, "Failed", "TargetIsSource", &["overwrite"]);

    // Object and status are gone; what is stored is not.
    ns.kubectl(&["delete", "mysqlbackups.batch.isekiro.com", "shop"])
        .ok();
    let location = format!(
        "{{location: {{destination: {{volume: {{persistentVolumeClaim: {{claimName: data}}}}}}, latest: true, object: {{namespace: {}, name: shop}}}}}}",
        ns.name
    );
    let key = "  decryption: {age: {identitySecretKeyRef: {name: keys, key: right}}}";
    let lost = restore(&ns, "lost", &location, "shop_lost", key);
    assert_ended(&lost, "Succeeded", "Restored", &["shop_lost"]);
    assert_eq!(db.sql(&ROWS.replace("shop.", "shop_lost.")), db.sql(ROWS));
    db.sql("drop database shop_copy; drop database shop_lost");

    let jobs = ns.jobs();
    for restore in ["dry", "wrong-key", "copy", "again", "in-place", "lost"] {
        let own = e2e::objects::owned_by(&jobs, "Restore", restore);
        assert_eq!(own.len(), 1, "{restore} has one Job");
    }
    let all = ns
        .kubectl(&["get", "restores,events,pods", "-o", "yaml"])
        .ok();
    assert!(!all.stdout.contains(ROOT_PASSWORD) && !all.stdout.contains("AGE-SECRET"));
}

fn output(command: &mut Command, input: &[u8]) -> Vec<u8> {
    use std::io::Write as _;
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program is installed");
    let (mut stdin, text) = (child.stdin.take().unwrap(), input.to_owned());
    let feeder = std::thread::spawn(move || stdin.write_all(&text));
    let output = child.wait_with_output().unwrap();
    feeder.join().unwrap().unwrap();
    assert!(output.status.success());
    output.stdout
}

fn sha256(data: &[u8]) -> String {
    String::from_utf8(output(&mut Command::new("sha256sum"), data)).unwrap()[..64].to_owned()
}

/// Takes one row out of the stored dump; the manifest vouches for the new bytes.
fn remove_a_row(artefact: &Path) {
    let stored = std::fs::read(artefact).unwrap();
    let dump = output(Command::new("zstd").args(["-dcq"]), &stored);
    let lines: Vec<&[u8]> = dump.split_inclusive(|b| *b == b'\n').collect();
    let row = lines
        .iter()
        .position(|l| l.starts_with("(1,'caf".as_bytes()))
        .expect("the row of the fixture");
    let dump = [lines[..row].concat(), lines[row + 1..].concat()].concat();
    let stored = output(Command::new("zstd").args(["-cq"]), &dump);
    std::fs::write(artefact, &stored).unwrap();
    let path = format!("{}.json", artefact.display());
    let mut manifest: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    manifest["rawBytes"] = json!(dump.len());
    manifest["rawSha256"] = json!(sha256(&dump));
    manifest["storedBytes"] = json!(stored.len());
    manifest["storedSha256"] = json!(sha256(&stored));
    std::fs::write(&path, serde_json::to_vec(&manifest).unwrap()).unwrap();
}

fn verified(ns: &Namespace, status: &str) -> Value {
    wait_for(&format!("Verified is {status}"), 240, || {
        let object = ns.mysql_backup("checked")?;
        let conditions = object["status"]["conditions"].as_array()?.clone();
        let found = conditions.iter().find(|c| c["type"] == "Verified")?;
        (found["status"] == status).then(|| object.clone())
    })
}

#[test]
fn a_run_is_verified_by_restore_and_a_row_that_is_missing_is_seen() {
    let (ns, volume) = prepare("e2e-verify");
    backup(&ns, "checked", "  verify: {mode: Restore}");
    let object = verified(&ns, "True");
    let run = &object["status"]["runs"][0];
    let said = run["verification"]["message"].as_str().unwrap();
    assert!(said.contains("all equal"), "{said}");
    assert!(object["status"]["lastVerifiedTime"].is_string());
    let totals = object["status"]["totals"].clone();

    let dump = files(&volume)
        .into_iter()
        .find(|f| f.ends_with(".sql.zst"))
        .unwrap();
    remove_a_row(&volume.join(dump));
    let request = json!({ "action": "Verify", "id": "by-hand", "options": {"mode": "Restore"} });
    ns.ask("mysqlbackups.batch.isekiro.com", "checked", request);
    let object = verified(&ns, "False");
    let run = &object["status"]["runs"][0];
    assert_eq!(run["verification"]["passed"], false);
    assert_eq!(run["result"], "Succeeded", "the run's own result stays");
    assert_eq!(object["status"]["totals"], totals);
    let conditions = object["status"]["conditions"].as_array().unwrap();
    let said = conditions.iter().find(|c| c["type"] == "Verified").unwrap();
    let said = said["message"].as_str().unwrap();
    assert!(
        said.contains("shop.t") && said.contains("rows instead of"),
        "table and counts in {said}"
    );
}

/// Its pod evicted, as a drain does it, and the next one gone with its node: each is replaced, and the last one goes on.
#[test]
fn a_restore_whose_pods_are_gone_goes_on() {
    let (ns, _volume) = prepare("e2e-resume");
    let db = database();
    db.sql("drop database if exists resume_copy; drop database if exists resume; create database resume; use resume; create table resume.big (id int primary key, body varchar(1000), key (body(20))); insert into resume.big select seq, concat(md5(seq), repeat(sha1(seq), 20)) from seq_1_to_100000");
    backup_of(&ns, "shop", "resume", "");

    // Once some rows are there, the table is locked for as long as this session lives.
    let mut session = database().spawn("until [ \"$(mariadb -uroot -N -e 'select count(*) > 1 from resume_copy._backup_restore where step > 1' 2>/dev/null)\" = 1 ]; do sleep 0.05; done; exec mariadb -uroot -e 'lock tables resume_copy.big write; select sleep(700)'");
    begin_restore(&ns, "copy", "{name: shop, latest: true}", "resume_copy", "");
    let held = || {
        let ids = db.sql(
            "select id from information_schema.processlist where info like 'select sleep(700)%'",
        );
        Some(ids.trim().to_owned()).filter(|id| !id.is_empty())
    };
    let lock = wait_for("the table is locked", 120, held);
    let waits = || {
        let waiting = db.sql("select count(*) from information_schema.processlist where db = 'resume_copy' and state like 'Waiting for table%'");
        (waiting.trim() != "0").then_some(())
    };
    let pods = || {
        let pods = ns.get(&["pods", "-l", "batch.isekiro.com/restore-uid"])?;
        let mut names = pods["items"].as_array()?.iter().filter_map(|pod| {
            let alive = pod["metadata"]["deletionTimestamp"].is_null();
            let runs = pod["status"]["phase"] == "Running";
            (alive && runs).then(|| pod["metadata"]["name"].as_str().unwrap().to_owned())
        });
        names.next_back()
    };
    wait_for("the restore waits for the table", 60, waits);
    let first = wait_for("its pod runs", 60, pods);
    let eviction = json!({
        "apiVersion": "policy/v1", "kind": "Eviction",
        "metadata": {"name": first, "namespace": "e2e-resume"},
    });
    let path = format!("/api/v1/namespaces/e2e-resume/pods/{first}/eviction");
    cluster()
        .kubectl_with(
            &["create", "--raw", &path, "-f", "-"],
            &eviction.to_string(),
        )
        .ok();
    let second = wait_for("another pod runs", 120, || {
        pods().filter(|pod| *pod != first)
    });
    wait_for("it waits for the table", 60, waits);
    ns.kubectl(&["delete", "pod", &second, "--force", "--grace-period=0"])
        .ok();
    wait_for("a third pod runs", 120, || {
        pods().filter(|pod| ![&first, &second].contains(&pod))
    });
    wait_for("it waits for the table", 60, waits);
    db.sql(&format!("kill {lock}"));
    session.wait().unwrap();

    let good = ended(&ns, "copy");
    assert_ended(
        &good,
        "Succeeded",
        "Restored",
        &["resume_copy", "going on where an earlier attempt was cut"],
    );
    let sum = |database: &str| db.sql(&format!("checksum table {database}.big"));
    let rest = |text: String| text.split_once('\t').unwrap().1.to_owned();
    assert_eq!(rest(sum("resume_copy")), rest(sum("resume")));
    assert_eq!(db.sql("show tables from resume_copy"), "big\n");
    let key = "select count(*) from information_schema.statistics where table_schema = 'resume_copy' and index_name = 'body'";
    assert_eq!(db.sql(key).trim(), "1");
    db.sql("drop database resume_copy; drop database resume");
}
