//! Each flag of each verb, given alone: what is sent, said or answered is another with it than without
//! it, or it is refused with words. `table.rs` says of each how that is seen.

mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::documented::{cli_md, words};
use super::fake::{Fake, backup};
use super::rights::cluster;
use super::{Config, bare};

/// How it is seen that a flag does something.
#[derive(Clone, Copy, Debug)]
enum Shown {
    /// Requests, output or status hold this with the flag, and not without it.
    New(&'static str),
    /// They hold it without the flag, and not with it.
    Gone(&'static str),
    /// It is refused with these words, and nothing is sent.
    Refused(&'static str),
    /// The command fails with these words, where it waits on without the flag.
    InTime(&'static str),
    /// The command goes on, and has sent this, where it ends without the flag and has not.
    GoesOn(&'static str),
}

/// Where a command runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum World {
    /// MysqlBackups, and an operator that ends all it is asked for at once.
    Usual,
    /// The newest run is running and no operator answers.
    Still,
    /// The kinds of gobackup.io.
    Gobackup,
    /// A server that takes a connection and says nothing.
    Mute,
    /// A server with a certificate of its own.
    Tls,
}

/// A flag and how it is seen.
#[derive(Clone, Copy, Debug)]
struct Row {
    /// Its long name, without dashes.
    flag: &'static str,
    /// The words after the verb, without the flag.
    without: &'static str,
    /// And with it; `+` and more words are put behind those without.
    with: &'static str,
    shown: Shown,
    world: World,
}

/// What a command left behind: requests, output, errors, status.
fn outcome(verb: &str, line: &str, world: World, until: Option<&str>) -> String {
    let place = Place::of(world);
    let mut child = place.start(verb, line);
    if let Some(text) = until {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !place.requests().contains(text) && Instant::now() < deadline {
            assert!(
                child.try_wait().unwrap().is_none(),
                "{verb} {line} has ended"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        child.kill().unwrap();
    }
    ended(&place, child)
}

fn ended(place: &Place, child: Child) -> String {
    let output = child.wait_with_output().unwrap();
    let mut text = place.requests();
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    let _ = write!(
        text,
        "OUT {out}\nERR {err}\nEXIT {:?}",
        output.status.code()
    );
    for (name, content) in place.files() {
        let _ = write!(text, "\nFILE {name}: {content}");
    }
    text
}

/// A server, what it has, and a directory that is at home there.
struct Place {
    fake: Fake,
    config: Config,
    _tls: Option<super::connection::Tls>,
    _mute: Option<std::net::TcpListener>,
}

impl Place {
    fn of(world: World) -> Self {
        let (fake, config) = cluster();
        if world == World::Still {
            fake.operate(|_| None);
            fake.no_node();
        }
        let now = chrono::Utc::now();
        let ago = |hours: i64| crds::time::rfc3339(now - chrono::Duration::hours(hours));
        let run = |name: &str, result: &str, hours: i64| {
            json!({
                "name": name, "trigger": "Schedule", "result": result, "startTime": ago(hours),
                "completionTime": ago(hours), "storedBytes": 2048,
                "artefacts": [{ "key": format!("prod/{name}.sql.zst"), "size": 2048, "readBack": true }],
            })
        };
        let newest = if world == World::Still {
            "Running"
        } else {
            "Succeeded"
        };
        let mut shop = backup(
            "prod",
            "shop",
            json!({
                "schedule": "@daily", "timeZone": "Europe/Berlin", "image": "mine",
                "source": { "host": "db", "credentialsSecretRef": { "name": "db" } },
                "destination": { "volume": { "persistentVolumeClaim": { "claimName": "c" } } },
            }),
            json!({
                "observedGeneration": 1, "lastResult": newest, "lastSize": "2KiB",
                "lastScheduleTime": ago(2), "lastSuccessfulTime": ago(2),
                "nextScheduleTime": crds::time::rfc3339(now + chrono::Duration::hours(22)),
                "schedule": { "expression": "@daily", "timeZone": "Europe/Berlin" },
                "requests": [{ "id": "old", "action": "Backup", "state": "Succeeded" }],
                "runs": [run("shop-2", newest, 2), run("shop-1", "Failed", 26)],
            }),
        );
        shop["metadata"]["labels"] = json!({ "team": "shop" });
        shop["metadata"]["managedFields"] = json!([{ "manager": "somebody" }]);
        let mut long = run("till-1", "Failed", 48);
        long["completionTime"] = ago(47).into();
        let mut till = backup(
            "prod",
            "till",
            json!({ "schedule": "@hourly", "suspend": true, "image": "mine" }),
            json!({ "observedGeneration": 1, "lastResult": "Failed", "suspendedSince": ago(30), "runs": [long] }),
        );
        till["metadata"]["annotations"] = json!({
            "batch.isekiro.com/suspended-by": "bob", "batch.isekiro.com/suspended-since": ago(30),
        });
        let far = backup("dev", "far", json!({ "schedule": "@weekly" }), Value::Null);
        let objects = match world {
            World::Gobackup => {
                for kind in ["backups", "databases", "storages"] {
                    fake.install(kind);
                }
                vec![gobackup("Storage", "bucket"), gobackup("Database", "pg")]
            }
            _ => {
                fake.install("storages");
                vec![shop, till, far, gobackup("Storage", "bucket")]
            }
        };
        for object in objects {
            fake.put(object);
        }
        fake.ended_pod("shop-2-a");
        fake.log(
            "shop-2-a",
            "{\"timestamp\":\"2026-01-02T00:00:00Z\",\"level\":\"INFO\",\"message\":\"a line\"}\n",
        );
        // What another operator left.
        fake.items(
            "/apis/batch/v1/namespaces/prod/cronjobs",
            json!([{
                "metadata": { "name": "shop", "namespace": "prod", "uid": "old", "resourceVersion": "7", "ownerReferences": [{
                    "apiVersion": "batch.isekiro.com/v1", "kind": "MysqlBackup", "name": "shop", "uid": "uid-shop", "controller": true,
                }] },
                "spec": { "schedule": "@daily", "jobTemplate": {} },
            }]),
        );
        fake.items("/apis/batch/v1/namespaces/prod/jobs", json!([]));
        fake.items("/api/v1/namespaces/prod/secrets", json!([]));
        fake.path(
            "/apis/batch/v1/namespaces/prod/cronjobs/shop",
            json!({ "kind": "Status", "apiVersion": "v1", "status": "Success" }),
        );
        let mut place = Self {
            fake,
            config,
            _tls: None,
            _mute: None,
        };
        place.write(world);
        place
    }

    /// Files that the commands name.
    fn write(&mut self, world: World) {
        let home = self.config.directory.path().to_owned();
        let server = self.fake.address;
        let mut cluster = format!("server: 'http://{server}'");
        if world == World::Mute {
            let mute = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            cluster = format!("server: 'http://{}'", mute.local_addr().unwrap());
            self._mute = Some(mute);
        }
        if world == World::Tls {
            super::connection::certificate(&home, "own", "IP:127.0.0.1,DNS:own.example", "30");
            let tls = super::connection::tls(&home, "own");
            cluster = format!(
                "server: 'https://127.0.0.1:{}', certificate-authority: own.pem",
                tls.port
            );
            self._tls = Some(tls);
        }
        let text = |current: &str| {
            format!(
                "apiVersion: v1\nkind: Config\ncurrent-context: {current}\n\
                 clusters: [{{name: c1, cluster: {{{cluster}}}}}, {{name: c2, cluster: {{server: 'http://{server}/two'}}}}]\n\
                 users: [{{name: alice, user: {{token: alice-token}}}}, {{name: bob, user: {{token: bob-token}}}}]\n\
                 contexts: [{{name: one, context: {{cluster: c1, user: alice, namespace: prod}}}}, {{name: two, context: {{cluster: c1, user: bob, namespace: dev}}}}]\n"
            )
        };
        let model = "models: {m: {databases: {d: {type: mysql, host: h, database: x, password: $PW}}, storages: {s: {type: local, path: /b}}}, \
                     n: {databases: {e: {type: mysql, host: h, database: y}}, storages: {t: {type: s3, bucket: b}}}}\n";
        let new = "apiVersion: batch.isekiro.com/v1\nkind: MysqlBackup\nmetadata: {name: new}\nspec: {schedule: '@daily', image: mine}\n";
        for (name, content) in [
            ("config", text("one")),
            ("other", text("two")),
            ("gobackup.yml", model.to_owned()),
            ("new.yaml", new.to_owned()),
            ("env", "PW=from-the-file\n".to_owned()),
        ] {
            std::fs::write(home.join(name), content).unwrap();
        }
    }

    fn start(&self, verb: &str, line: &str) -> Child {
        let home = self.config.directory.path();
        let mut command: Command = bare();
        command
            .env("KUBECONFIG", home.join("config"))
            .env("TZ", "Asia/Tokyo")
            .env("PATH", home)
            .current_dir(home)
            .args(verb.split(' ').filter(|v| !v.is_empty()))
            .args(words(line))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.spawn().unwrap()
    }

    fn requests(&self) -> String {
        let mut text = String::new();
        for seen in self.fake.seen() {
            let _ = write!(text, "{} {}?{}", seen.method, seen.path, seen.line);
            let headers: BTreeMap<_, _> = seen.headers.iter().collect();
            for (name, value) in headers {
                if name == "authorization" || name.starts_with("impersonate") {
                    let _ = write!(text, " {name}: {value}");
                }
            }
            let _ = writeln!(text, " {}", seen.body);
        }
        text
    }

    /// What a command wrote into the directory.
    fn files(&self) -> Vec<(String, String)> {
        let ours = ["config", "other", "gobackup.yml", "new.yaml", "env"];
        let mut all = vec![];
        for entry in std::fs::read_dir(self.config.directory.path()).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            if !ours.contains(&name.as_str()) && !name.starts_with("own.") {
                let content = std::fs::read_to_string(entry.path()).unwrap_or_default();
                all.push((name, content));
            }
        }
        all
    }
}

fn gobackup(kind: &str, name: &str) -> Value {
    json!({
        "apiVersion": "gobackup.io/v1", "kind": kind,
        "metadata": { "name": name, "namespace": "prod", "uid": name }, "spec": {},
    })
}

/// What is wrong with a row; none if its flag does what it says.
fn fault(row: &Row, verb: &str) -> Option<String> {
    let with = match row.with.strip_prefix('+') {
        Some(more) => format!("{} {more}", row.without),
        None => row.with.to_owned(),
    };
    let until = match row.shown {
        Shown::GoesOn(text) => Some(text),
        _ => None,
    };
    if let Shown::InTime(text) = row.shown {
        let place = Place::of(row.world);
        let mut other = place.start(verb, row.without);
        let seen = outcome(verb, &with, row.world, None);
        let waits = other.try_wait().unwrap().is_none();
        let _ = other.kill();
        let without = ended(&place, other);
        let good = waits && !seen.ends_with("EXIT Some(0)") && seen.contains(text);
        return (!good).then(|| format!("waits: {waits}\n{seen}\n--- without\n{without}"));
    }
    let seen = outcome(verb, &with, row.world, until);
    if let Shown::Refused(text) = row.shown {
        let sent = seen.lines().any(|l| l.starts_with("P"));
        let good = seen.ends_with("EXIT Some(2)") && seen.contains(text) && !sent;
        return (!good).then_some(seen);
    }
    let without = outcome(verb, row.without, row.world, None);
    let good = match row.shown {
        Shown::New(text) | Shown::GoesOn(text) => seen.contains(text) && !without.contains(text),
        Shown::Gone(text) => !seen.contains(text) && without.contains(text),
        Shown::Refused(_) | Shown::InTime(_) => false,
    };
    (!good).then(|| format!("{seen}\n--- without\n{without}"))
}

/// Verb and flag of docs/cli.md, which is made from the command line's own description.
fn described() -> BTreeSet<(String, String)> {
    let (mut all, mut verb) = (BTreeSet::new(), None);
    for line in cli_md().lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            verb = heading
                .strip_prefix("kubectl backup ")
                .or((heading == "Flags of every verb").then_some(""))
                .map(str::to_owned);
        }
        let names = line.strip_prefix("| `").and_then(|l| l.split('`').next());
        let long = names.and_then(|names| {
            let mut names = names.split([' ', ',']);
            names.find_map(|name| name.strip_prefix("--"))
        });
        if let (Some(verb), Some(long)) = (&verb, long) {
            all.insert((verb.clone(), long.to_owned()));
        }
    }
    assert!(all.len() > 200, "{}", all.len());
    all
}

#[test]
fn u16_each_flag_of_each_verb_changes_the_outcome_or_is_refused() {
    let rows = table::rows();
    let tabled: BTreeSet<(String, String)> = rows
        .iter()
        .map(|(verb, row)| ((*verb).to_owned(), row.flag.to_owned()))
        .collect();
    let described = described();
    let missing: Vec<_> = described.difference(&tabled).collect();
    let gone: Vec<_> = tabled.difference(&described).collect();
    assert!(
        missing.is_empty() && gone.is_empty(),
        "flags without a row: {missing:#?}; rows without a flag: {gone:#?}"
    );
    let only = std::env::var("FLAG").unwrap_or_default();
    let (next, faults) = (AtomicUsize::new(0), Mutex::new(vec![]));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some((verb, row)) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if !format!("{verb} --{}", row.flag).contains(&only) {
                        continue;
                    }
                    if let Some(text) = fault(row, verb) {
                        let text = format!("=== {verb} --{}: {:?}\n{text}", row.flag, row.shown);
                        faults.lock().unwrap().push(text);
                    }
                }
            });
        }
    });
    let faults = faults.into_inner().unwrap();
    assert!(
        faults.is_empty(),
        "{} flags are not what their rows say:\n{}",
        faults.len(),
        faults.join("\n")
    );
}
