//! The stand-in for gobackup held to gobackup 3.1.1 itself: both get the same settings, clients, storages and receivers, and
//! what they did is compared word by word. `--nocapture` prints the table.
//!
//! Clients only note how they were called and write a file, so that nothing but gobackup is compared.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "tests"
)]

mod common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::backup::{Backup, STAND_IN, archives, sh};
use common::peers::peer;
use common::recorder::Recorder;
use common::s3::{get, list, moto, python};
use common::servers::{DAV_PASSWORD, directory, start_redis, webdav};
use common::stores::{FTP_PASSWORD, ftp};

/// What both are given; `@…@` stands for what is known only then.
struct Case {
    name: &'static str,
    /// Below `models:`.
    models: &'static str,
    env: &'static [(&'static str, &'static str)],
    /// Shell text that gives the tar in the archive `$1`.
    open: &'static str,
    runs: usize,
}

const CASE: Case = Case {
    name: "",
    models: "",
    env: &[],
    open: "cat $1",
    runs: 1,
};

/// A client: notes its words, writes what it is told to write, or fails.
const CLIENT: &str = r#"#!/bin/bash
name=${0##*/}
{ printf '%s' "$name"; printf ' %q' "$@"; [ -z "$PGPASSWORD" ] || printf ' PGPASSWORD=%q' "$PGPASSWORD"; echo; } >>"$RECORD"
if [ "$name" = "$FAILS" ]; then echo "$name: error: it says no" >&2; exit 3; fi
before=
for word; do
  case $word in
    --result-file=*) echo dump >"${word#*=}" ;;
    --out=*) mkdir -p "${word#*=}/app" && echo dump >"${word#*=}/app/t.bson" ;;
  esac
  case $before in --rdb | -f | save) echo dump >"$word" ;; esac
  before=$word
done
case $name in
  pg_dumpall) echo dump ;;
  influx) mkdir -p "$before" && echo dump >"$before/20260101T000000Z.manifest" ;;
esac
"#;

const CLIENTS: [&str; 7] = [
    "redis-cli",
    "mysqldump",
    "pg_dump",
    "pg_dumpall",
    "mongodump",
    "influx",
    "etcdctl",
];

#[path = "gobackup_peer/cases.rs"]
mod cases;

/// What one of them did.
type Seen = BTreeMap<&'static str, Vec<String>>;

/// Runs a case in a home of its own.
fn perform(program: &Path, case: &Case) -> Seen {
    let home = tempfile::Builder::new().prefix("peer").tempdir().unwrap();
    let home = home.path();
    for directory in ["bin", "tmp", "disk", "work", "state"] {
        std::fs::create_dir(home.join(directory)).unwrap();
    }
    for client in CLIENTS {
        std::fs::write(home.join("bin").join(client), CLIENT).unwrap();
    }
    sh("chmod +x $1/*", &home.join("bin"));
    let place = home.file_name().unwrap().to_string_lossy().into_owned();
    std::fs::create_dir(ftp().root.join(&place)).unwrap();
    let receiver = Recorder::empty();
    let models = case
        .models
        .replace("@HOME@", &home.display().to_string())
        .replace("@PLACE@", &place)
        .replace("@RECEIVER@", &receiver.url)
        .replace("@DAV@", &webdav().0)
        .replace("@DAV_PASSWORD@", &DAV_PASSWORD.replace('$', "\\x24"))
        .replace("@S3@", moto())
        .replace("@FTP@", &ftp().port.to_string())
        .replace(
            "@FTP_PASSWORD@",
            &FTP_PASSWORD.replace('\\', "\\\\").replace('$', "\\x24"),
        );
    let config = home.join("gobackup.yml");
    let text = format!(
        "workdir: {}/work\nweb: {{enabled: false}}\nmodels:\n{models}",
        home.display()
    );
    std::fs::write(&config, text).unwrap();
    sh("chmod 600 $1", &config);
    let (mut codes, mut said) = (vec![], vec![]);
    for _ in 0..case.runs {
        let output = Command::new(program)
            .args(["perform", "-c"])
            .arg(&config)
            .current_dir(home)
            .env_clear()
            .envs([("TZ", "UTC"), ("LANG", "C")])
            .env(
                "PATH",
                format!(
                    "{}:/usr/sbin:/usr/bin:/sbin:/bin",
                    home.join("bin").display()
                ),
            )
            .env("HOME", home)
            .env("TMPDIR", home.join("tmp"))
            .env("GOBACKUP_DIR", home.join("state"))
            .env("RECORD", home.join("called"))
            .envs(case.env.iter().copied())
            .output()
            .unwrap();
        codes.push(
            output
                .status
                .code()
                .map_or("killed".to_owned(), |c| c.to_string()),
        );
        said.extend(
            String::from_utf8_lossy(&output.stdout)
                .lines()
                .map(str::to_owned),
        );
        // A client that fails says why in a message; nothing else comes here but bars of progress.
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        said.extend(
            text.lines()
                .filter(|l| l.contains("panic"))
                .map(str::to_owned),
        );
    }
    let plain = |lines: Vec<String>| normal(home, &place, &lines.join("\n"));
    let called = std::fs::read_to_string(home.join("called")).unwrap_or_default();
    let requests = receiver
        .seen
        .lock()
        .unwrap()
        .iter()
        .map(|r| request(r))
        .collect();
    let mut seen = Seen::from([
        ("1 exit code", codes),
        (
            "2 called",
            plain(called.lines().map(str::to_owned).collect()),
        ),
        ("3 said", plain(said)),
        ("4 stored", plain(stored(home, &place, case.open))),
        ("5 told", plain(requests)),
        (
            "6 left",
            plain(lines(&sh("find $1/work $1/tmp -mindepth 1", home))),
        ),
        (
            "7 own list",
            plain(lines(&sh(
                "cd $1/state; grep -r . . | sed 's/\\.json:/.json: /' || true",
                home,
            ))),
        ),
    ]);
    // A map of Go's has no order.
    for key in ["2 called", "3 said", "4 stored", "5 told"] {
        let lines = seen.get_mut(key).unwrap();
        lines.sort();
    }
    seen.retain(|_, lines| !lines.is_empty());
    seen
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

/// Files of every storage, and what the archives among them hold.
fn stored(home: &Path, place: &str, open: &str) -> Vec<String> {
    let root = home.join("fetched");
    std::fs::create_dir(&root).unwrap();
    let mut files: Vec<(String, PathBuf)> = vec![];
    for (storage, at) in [
        ("disk", home.join("disk")),
        ("dav", webdav().1.join(place)),
        ("ftp", ftp().root.join(place)),
    ] {
        if at.exists() {
            for path in lines(&sh(
                "cd $1; find . -mindepth 1 ! -type d -o -mindepth 1 -type d -empty",
                &at,
            )) {
                files.push((format!("{storage} {path}"), at.join(path)));
            }
        }
    }
    for key in list(moto(), &format!("{place}/")) {
        let path = root.join(key.replace('/', "+"));
        std::fs::write(&path, get(moto(), &key)).unwrap();
        files.push((format!("s3 {key}"), path));
    }
    let mut all = vec![];
    for (name, path) in files {
        if path.is_dir() {
            all.push(format!("{name}/ (empty)"));
        } else if name.contains(".json") {
            let text = std::fs::read_to_string(&path).unwrap();
            all.push(format!("{name}: {text}"));
        } else if name.contains(".tar") && !name.rsplit('.').next().unwrap().contains('-') {
            let tar = root.join("tar");
            sh(&format!("({open}) >{}", tar.display()), &path);
            let held = lines(&sh("tar --force-local -tf $1", &tar)).join(" ");
            all.push(format!("{name}: {held}"));
        } else {
            all.push(name);
        }
    }
    all
}

/// Method, headers and body without what is another one's each time.
fn request(text: &str) -> String {
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let mut head: Vec<String> = head.lines().map(str::to_owned).collect();
    head[1..].iter_mut().for_each(|l| *l = l.to_lowercase());
    let own = [
        "host:",
        "user-agent:",
        "accept-encoding:",
        "connection:",
        "accept:",
        "content-length:",
    ];
    head.retain(|l| !own.iter().any(|o| l.starts_with(o)));
    head[1..].sort();
    format!("{} {body}", head.join(" | "))
}

/// Without paths, times, sizes and numbers of this run, and the tag of the part that says it: which one it is hangs on the order of maps.
fn normal(home: &Path, place: &str, text: &str) -> Vec<String> {
    let script = format!(
        r##"s#{home}#@#g; s#{place}#PLACE#g
        s/^[0-9]{{4}}(.[0-9]{{2}}){{5}} //
        s/^(\[[^]]*\] +)+//
        s/[0-9]{{4}}(\.[0-9]{{2}}){{5}}/TIME/g
        s/[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}[T ][0-9:]{{8}}(\.[0-9]+)?( ?(Z|[+]0000|[+-][0-9:]{{5}}|UTC))*/TIME/g
        s#work/[0-9]+#work/N#g; s#cycler-state-[0-9a-z_]+#cycler-state-N#g
        s#@/tmp/[^ /:]+#@/tmp/SCRIPT#g
        s/\(Duration .*\)/(Duration)/; s/Uploading \(.*\)/Uploading (SIZE)/
        s/^(.*[0-9]{{3}}) "(.*)"$/\1 \2/
        s/127\.0\.0\.1:[0-9]+/SERVER/g
        s/[0-9A-Fa-f]{{8}}-[0-9a-f-]{{27}}/ID/g
        s/request id: [^,]*, host id: .*/request id/
        s/request id: [A-Za-z0-9]+/request id/"##,
        home = home.display()
    );
    let file = home.join("text");
    std::fs::write(&file, text).unwrap();
    std::fs::write(home.join("script"), script).unwrap();
    lines(&sh("sed -E -f $(dirname $1)/script $1", &file))
}

#[test]
#[ignore = "skipped: gobackup 3.1.1 is built from sources that lie beside the checkout"]
fn the_stand_in_does_what_gobackup_does() {
    let real = peer("gobackup").join("gobackup");
    let stand_in = tempfile::tempdir().unwrap();
    let stand_in = stand_in.path().join("gobackup");
    moto();
    std::fs::write(
        &stand_in,
        format!("#!/bin/sh\nexec {} {STAND_IN} \"$@\"\n", python().display()),
    )
    .unwrap();
    sh("chmod +x $1", &stand_in);
    let only = std::env::var("CASES").unwrap_or_default();
    let mut cases = cases::all();
    cases.retain(|c| c.name.contains(&only));
    // Most of the time they wait for programs to start.
    let size = cases.len().div_ceil(4).max(1);
    let each = |part: &[Case]| -> Vec<(Seen, Seen)> {
        let both = |case| (perform(&real, case), perform(&stand_in, case));
        part.iter().map(both).collect()
    };
    let results: Vec<(Seen, Seen)> = std::thread::scope(|scope| {
        let parts = cases.chunks(size);
        let started: Vec<_> = parts.map(|part| scope.spawn(|| each(part))).collect();
        let ended = started.into_iter().map(|t| t.join().unwrap());
        ended.flatten().collect()
    });
    let mut different = vec![];
    for (case, (theirs, ours)) in cases.iter().zip(results) {
        println!(
            "\n== {}{}",
            case.name,
            if theirs == ours { "" } else { ": DIFFERENT" }
        );
        let keys: std::collections::BTreeSet<_> = theirs.keys().chain(ours.keys()).collect();
        let none = vec![];
        for key in keys {
            let (theirs, ours) = (
                theirs.get(key).unwrap_or(&none),
                ours.get(key).unwrap_or(&none),
            );
            for line in theirs {
                let both = if ours.contains(line) {
                    "both"
                } else {
                    "gobackup"
                };
                println!("{key:12} {both:9} {line}");
            }
            for line in ours.iter().filter(|l| !theirs.contains(l)) {
                println!("{key:12} stand-in  {line}");
            }
        }
        if theirs != ours {
            different.push(case.name);
        }
    }
    assert!(different.is_empty(), "they differ in: {different:?}");
}

/// Who moves over: gobackup itself stored three archives and its list of them. The Backup of the same name counts and removes them,
/// and its own archive is opened by the command that opened theirs.
#[test]
#[ignore = "skipped: gobackup 3.1.1 is built from sources that lie beside the checkout"]
fn a_backup_goes_on_where_gobackup_ended() {
    const OPEN: &str = "openssl enc -d -aes-256-cbc -pbkdf2 -k pw -in $1 | tar tz";
    let mut backup = Backup::new().with_dav("site/moved", 3);
    let home = backup.dir().join("old");
    std::fs::create_dir(&home).unwrap();
    let redis = start_redis(&directory("moved"), None);
    let config = home.join("gobackup.yml");
    let password = DAV_PASSWORD.replace('$', "\\x24");
    let text = format!(
        "workdir: {home}\nmodels:\n  nightly:\n    compress_with: {{type: tgz}}\n    encrypt_with: {{type: openssl, password: pw, args: -pbkdf2}}\n    \
         databases: {{cache: {{type: redis, mode: sync, port: {redis}}}}}\n    \
         storages: {{dav: {{type: webdav, root: \"{root}\", username: dav, password: \"{password}\", path: site/moved, keep: 3}}}}\n",
        home = home.display(),
        root = webdav().0,
    );
    std::fs::write(&config, text).unwrap();
    let at = webdav().1.join("site/moved");
    for _ in 0..3 {
        common::next_second();
        common::run(
            Command::new(peer("gobackup").join("gobackup"))
                .args(["perform", "-c"])
                .arg(&config)
                .env("GOBACKUP_DIR", home.join("state"))
                .env("TZ", "UTC"),
        );
    }
    let old = archives(&at);
    assert_eq!(old.len(), 3, "{old:?}");
    let theirs = sh(OPEN, &old[2]);
    assert!(theirs.contains("nightly/redis/cache/dump.rdb"), "{theirs}");

    common::next_second();
    backup.plan["encrypt"] = serde_json::json!({
        "type": "openssl", "password": backup.secret("enc", "pw"), "bits": 256, "iterations": 10_000, "digest": "sha256", "base64": false,
    });
    backup.plan["databases"][0]["port"] = redis.into();
    backup.plan["databases"][0]["password"] = serde_json::Value::Null;
    let asked = backup.run("nightly-28950870");
    asked.assert_good();
    assert!(
        asked.report.warnings[0].contains("spec.job.adoptState"),
        "{:?}",
        asked.report
    );
    assert_eq!(archives(&at).len(), 4);
    backup.adopt_state = Some(true);
    common::next_second();
    let done = backup.run("nightly-28950871");
    done.assert_good();
    let new = webdav().1.join(&done.report.artefacts[0].key);
    // Three of five stay: the newest one of gobackup's, and both of the Backup.
    let first = webdav().1.join(&asked.report.artefacts[0].key);
    assert_eq!(archives(&at), [old[2].clone(), first, new.clone()]);
    assert_eq!(sh(OPEN, &new).matches("dump.rdb").count(), 1);
    let list = std::fs::read_to_string(at.join(".gobackup-state/nightly_dav.json")).unwrap();
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    assert!(
        list.contains(&name(&old[2])) && !list.contains(&name(&old[1])),
        "{list}"
    );
}
