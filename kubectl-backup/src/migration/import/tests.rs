#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
use super::expand::Seen;
use super::*;

const FILE: &str = r#"
web: { host: 0.0.0.0 }
models:
  My_Shop:
    description: the shop
    schedule: { every: 1day, at: "04:05" }
    compress_with: { type: tgz, filename_format: "2006" }
    encrypt_with: { type: openssl, password: $ENC, chiper: aes-256-cbc, salt: true }
    split_with: { chunk_size: 1G }
    databases:
      main: { type: mysql, host: db, port: $PORT, database: shop, username: root, password: "${DB_PASSWORD}", exclude_tables: [a, b] }
      docs: { type: mongodb, uri: "mongodb://u:p@m/x", authdb: admin }
      lite: { type: sqlite, path: /x.db }
    storages:
      far: { type: s3, keep: 7, bucket: b, region: eu, path: p, access_key_id: AK, secret_access_key: $DB_PASSWORD, typo: 1 }
      near: { type: local, path: /backups }
    notifiers:
      chat: { type: slack, url: https://hooks.example/T/secret, on_success: false }
      post: { type: mail, host: x }
"#;

fn variables(name: &str) -> Option<String> {
    match name {
        "DB_PASSWORD" => Some("s3cr:et".to_owned()),
        "ENC" => Some("enc-pass".to_owned()),
        "PORT" => Some("3307".to_owned()),
        _ => None,
    }
}

fn wishes<'a>(models: &'a [String]) -> ImportOptions<'a> {
    ImportOptions {
        models,
        claim: None,
        adopt_state: false,
        variables: &variables,
    }
}

#[test]
fn a_file_of_everything() {
    let imported = import(FILE, &wishes(&[])).unwrap();
    let yaml = |values: &[Value]| {
        let texts: Vec<String> = values
            .iter()
            .map(|v| serde_yaml::to_string(v).unwrap())
            .collect();
        texts.join("---\n")
    };
    let shown = yaml(&imported.objects);
    for secret in [
        "s3cr:et",
        "enc-pass",
        "mongodb://u:p",
        "hooks.example",
        "AK",
    ] {
        assert!(!shown.contains(secret), "{secret} in {shown}");
        assert!(yaml(&imported.secrets).contains(secret), "{secret}");
        assert!(!imported.notes.join("\n").contains(secret), "{secret}");
    }
    insta::assert_snapshot!("objects", shown);
    insta::assert_snapshot!("secrets", yaml(&imported.secrets));
    insta::assert_snapshot!("notes", imported.notes.join("\n"));
    // What came out is what the kinds take.
    for object in &imported.objects {
        let spec = object["spec"].clone();
        match object["kind"].as_str().unwrap() {
            "Database" => {
                drop(serde_json::from_value::<crds::database::DatabaseSpec>(spec).unwrap())
            }
            "Storage" => drop(serde_json::from_value::<crds::storage::StorageSpec>(spec).unwrap()),
            _ => drop(serde_json::from_value::<crds::backup::BackupSpec>(spec).unwrap()),
        }
    }
}

/// The files of users, as they were found in public, with neutral names and secrets.
fn files() -> Vec<(String, String)> {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/src/migration/import/fixtures");
    let mut all: Vec<(String, String)> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            (name, std::fs::read_to_string(path).unwrap())
        })
        .collect();
    all.sort();
    all
}

/// What their variables would be.
fn theirs(name: &str) -> Option<String> {
    let value = match name {
        "BACKUP_SCHEDULE" => "0 5 * * *",
        "SCHEDULE" => "6h",
        "BACKUP_COMPRESS" => "zst",
        name if name.ends_with("ON_SUCCESS") => "false",
        name if name.ends_with("PORT") => "5433",
        name if name.ends_with("KEEP") => "7",
        name => return Some(format!("value-of-{}", name.to_lowercase())),
    };
    Some(value.to_owned())
}

fn of(text: &str, adopt_state: bool) -> Imported {
    import(
        text,
        &ImportOptions {
            models: &[],
            claim: None,
            adopt_state,
            variables: &theirs,
        },
    )
    .unwrap()
}

#[test]
fn real_files_as_objects() {
    let yaml = |values: &[Value]| {
        let texts = values.iter().map(|v| serde_yaml::to_string(v).unwrap());
        texts.collect::<Vec<_>>().join("---\n")
    };
    for (name, text) in files() {
        let found = of(&text, false);
        let shown = format!(
            "{}---\n{}\nnotes:\n{}\n\ncan't run: {:?}\n",
            yaml(&found.objects),
            yaml(&found.secrets),
            found.notes.join("\n"),
            found.stuck
        );
        insta::assert_snapshot!(format!("real-{name}"), shown);
    }
}

/// Scalars of a tree, as text.
fn scalars(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => map.values().for_each(|v| scalars(v, found)),
        Value::Array(items) => items.iter().for_each(|v| scalars(v, found)),
        Value::String(text) => {
            found.insert(text.clone());
        }
        other => {
            found.insert(other.to_string());
        }
    }
}

/// Lines of a file by a walk of its own: anchors where they are merged to, what is overridden left out.
fn lines(value: &serde_yaml::Value, path: &str, found: &mut Vec<(String, String)>) {
    match value {
        serde_yaml::Value::Mapping(map) => {
            for (key, inner) in map {
                let key = key.as_str().unwrap();
                if key == "<<" {
                    let mut merged = inner.clone();
                    let into = merged.as_mapping_mut().unwrap();
                    into.retain(|key, _| !map.contains_key(key));
                    lines(&merged, path, found);
                } else {
                    let dot = if path.is_empty() { "" } else { "." };
                    lines(inner, &format!("{path}{dot}{key}"), found);
                }
            }
        }
        serde_yaml::Value::Sequence(items) => {
            for (n, inner) in items.iter().enumerate() {
                lines(inner, &format!("{path}[{n}]"), found);
            }
        }
        serde_yaml::Value::Null => {}
        serde_yaml::Value::String(text) => found.push((path.to_owned(), text.clone())),
        other => {
            let text = serde_yaml::to_string(other).unwrap();
            found.push((path.to_owned(), text.trim().to_owned()));
        }
    }
}

/// Every line of each file has its value in what is applied, or a warning names it or what it is in.
#[test]
#[allow(clippy::print_stdout, reason = "a line a file, by --nocapture")]
fn g6_every_line_of_real_files_is_taken_over_or_named() {
    let files = files();
    assert!(files.len() >= 18, "{}", files.len());
    let (mut sum, mut silent) = ([0, 0, 0], vec![]);
    println!(
        "{:24} {:>5} {:>10} {:>14} {:>6}",
        "FILE", "LINES", "TAKEN OVER", "LOST AND NAMED", "SILENT"
    );
    let row = |name: &str, [taken, named, silent]: [usize; 3]| {
        let all = taken + named + silent;
        println!("{name:24} {all:>5} {taken:>10} {named:>14} {silent:>6}");
    };
    for (name, text) in &files {
        let found = of(text, false);
        let mut values = BTreeSet::new();
        for object in found.objects.iter().chain(&found.secrets) {
            scalars(object, &mut values);
        }
        let events = ["on_success", "on_failure"];
        let carried = |path: &str, value: &str| {
            let key = path.rsplit('.').next().unwrap();
            let is_in_url = || {
                let url = values.iter().find(|v| v.starts_with("smtp"));
                let plain = url.map(|u| {
                    u.replace("%40", "@")
                        .replace("%2F", "/")
                        .replace("%3A", ":")
                        .replace("%2B", "+")
                });
                path.contains(".mail.")
                    && (plain.is_some_and(|u| u.contains(value)) || key == "tls")
            };
            values.contains(value)
                || values.iter().any(|v| v.eq_ignore_ascii_case(value))
                || value.strip_prefix("~/").is_some_and(|v| values.contains(v))
                || value == "healthchecks" && values.contains("Ping")
                || events.contains(&key)
                || path.contains(".schedule.")
                || is_in_url()
        };
        // What an anchor stands for is counted where it is merged to.
        let anchored = |path: &str| {
            let key = path.split('.').next().unwrap();
            text.lines().any(|l| l.starts_with(&format!("{key}: &")))
        };
        let mut all = vec![];
        lines(&serde_yaml::from_str(text).unwrap(), "", &mut all);
        let seen = &mut Seen::default();
        let mut counts = [0, 0, 0];
        for (path, value) in all.into_iter().filter(|(path, _)| !anchored(path)) {
            let (path, value) = (
                expand::expand(&path, &theirs, seen),
                expand::expand(&value, &theirs, seen),
            );
            let named = found.notes.iter().any(|note| {
                let place = note.split_once(": ").unwrap().0;
                let place = expand::expand(place, &theirs, &mut Seen::default());
                path.strip_prefix(&place)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
                    // A model is spoken of as a whole; that takes no line over.
                    && place.split('.').count() != 2
            });
            if carried(&path, &value) {
                counts[0] += 1;
            } else if named {
                counts[1] += 1;
            } else {
                counts[2] += 1;
                silent.push(format!("{name}: {path}: {value}"));
            }
        }
        row(name, counts);
        for (sum, count) in sum.iter_mut().zip(counts) {
            *sum += count;
        }
    }
    row(&format!("{} files", files.len()), sum);
    assert!(
        silent.is_empty(),
        "neither in the objects nor named: {silent:#?}"
    );
    assert!(sum[0] + sum[1] > 400, "{sum:?}");
}

/// What nobody thought of is named, whatever it is and wherever it stands.
#[test]
fn g6_a_line_that_nobody_reads_is_named() {
    let places = [
        "other",
        "models.m.unheard",
        "models.m.databases.d.unheard",
        "models.m.storages.s.unheard",
        "models.m.schedule.unheard",
        "models.m.compress_with.unheard",
        "models.m.encrypt_with.unheard",
        "models.m.split_with.unheard",
        "models.m.notifiers.n.unheard",
    ];
    let text = "\
other: { a: 1 }
models:
  m:
    unheard: 1
    schedule: { cron: '@daily', unheard: 1 }
    compress_with: { type: tgz, unheard: 1 }
    encrypt_with: { type: openssl, password: x, unheard: 1 }
    split_with: { chunk_size: 1G, unheard: 1 }
    databases: { d: { type: mysql, host: h, database: d, unheard: 1 } }
    storages: { s: { type: webdav, root: 'http://d', unheard: 1 } }
    notifiers: { n: { type: slack, url: 'http://s', unheard: 1 } }
";
    let notes = of(text, false).notes.join("\n");
    for path in places {
        let line = format!("{path}: is nothing that gobackup reads there");
        assert!(notes.contains(&line), "{path}: {notes}");
    }
}

#[test]
fn g6_names_go_on_in_the_archive_and_in_gobackups_list() {
    let text = "\
models:
  My_App:
    databases: { my_db: { type: mysql, host: h, database: d } }
    storages: { store: { type: webdav, root: 'http://d', keep: 3 } }
";
    let found = of(text, true);
    let [database, storage, backup] = &found.objects[..] else {
        panic!("{:?}", found.objects)
    };
    assert_eq!(database["spec"]["gobackupName"], "my_db");
    assert_eq!(storage["spec"]["gobackupName"], "store");
    assert_eq!(backup["metadata"]["name"], "my-app");
    assert_eq!(
        backup["spec"]["job"],
        json!({ "gobackupName": "my_app", "adoptState": true })
    );
    assert_eq!(
        of(text, false).objects[2]["spec"]["job"]["adoptState"],
        Value::Null
    );
}

#[test]
fn g6_merges_merge_again_and_say_the_nearest() {
    let text = "\
a: &a { type: mysql, host: far, username: u }
b: &b { <<: *a, host: near }
models:
  m:
    databases: { d: { <<: *b, database: x } }
    storages: { s: { type: webdav, root: 'http://d' } }
";
    let found = of(text, false);
    assert_eq!(
        found.objects[0]["spec"]["config"],
        json!({ "host": "near", "username": "u", "database": "x" })
    );
    assert!(!found.notes.join("\n").contains("a:"), "{:?}", found.notes);
}

/// Only the variables of what is taken over are asked for.
#[test]
fn a_variable_of_what_is_lost_needs_no_value() {
    let text = "\
web: { password: $NOBODY }
models:
  m: { archive: { includes: [$NOBODY] }, notifiers: { t: { type: telegram, token: $NOBODY } } }
  n: { description: $NOBODY }
";
    import(text, &wishes(&["m".to_owned()])).unwrap();
}

#[test]
fn what_is_no_gobackup_yml() {
    let error = |text: &str, models: &[String]| import(text, &wishes(models)).unwrap_err().message;
    assert!(error("a: [", &[]).contains("not YAML"));
    assert!(error("a: 1", &[]).contains("no models"));
    assert!(
        error("models: { a: { description: $NOBODY } }", &[]).contains("without a value: NOBODY")
    );
    assert!(error("models: { a: {} }", &["b".to_owned()]).contains("no model \"b\""));
}

#[test]
fn names_that_would_be_the_same() {
    let text = "models: { a_b: {}, a-b: {}, A.B: {} }";
    let imported = import(text, &wishes(&[])).unwrap();
    let mut names: Vec<&str> = imported
        .objects
        .iter()
        .map(|o| o["metadata"]["name"].as_str().unwrap())
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["a-b", "a-b-2", "a-b-3"]);
}
