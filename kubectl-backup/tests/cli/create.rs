//! `create`: from flags and from files.

use serde_json::{Value, json};

use super::Config;
use super::fake::Fake;

const EVERYTHING: &[&str] = &[
    "create",
    "mysql",
    "shop",
    "--schedule",
    "0 2 * * *",
    "--time-zone",
    "Europe/Berlin",
    "--host",
    "db.prod",
    "--port",
    "3307",
    "--secret",
    "shop-db",
    "--databases",
    "shop,audit",
    "--exclude-tables",
    "shop.cache",
    "--tls",
    "Required",
    "--engine",
    "native",
    "--accounts",
    "--sessions",
    "8",
    "--pvc",
    "claim",
    "--path",
    "/b",
    "--retention",
    "keep-last=7,keep-daily=14,max-age=720h",
    "--compression",
    "zstd:9",
    "--encrypt-to",
    "age1t7rxyev2z3rw82stdlrrepyc39nvn86l5078zqkf5uasdy86jp6svpy7pa",
    "--image",
    "i:1",
    "--suspend",
    "--concurrency-policy",
    "Forbid",
    "--node-selector",
    "disk=fast",
    "--labels",
    "team=shop",
];

/// What our own runner can't be without.
const PLACES: &[&str] = &["--host", "db", "--secret", "shop-db", "--pvc", "claim"];

#[test]
fn every_flag_reaches_its_field() {
    let fake = Fake::start();
    let config = Config::new(&fake);
    let ran = config.run(EVERYTHING).ok();
    assert_eq!(ran.out, "mysqlbackup.batch.isekiro.com/shop created\n");
    let post = fake
        .seen()
        .into_iter()
        .find(|s| s.method == "POST")
        .unwrap();
    assert_eq!(post.query["fieldManager"], "kubectl-backup");
    assert_eq!(post.query["fieldValidation"], "Strict");
    assert_eq!(post.body["metadata"]["labels"], json!({ "team": "shop" }));
    assert_eq!(
        post.body["spec"],
        json!({
            "schedule": "0 2 * * *", "timeZone": "Europe/Berlin", "suspend": true, "image": "i:1",
            "concurrencyPolicy": "Forbid", "restartPolicy": "Never", "nodeSelector": { "disk": "fast" },
            "source": {
                "host": "db.prod", "port": 3307, "credentialsSecretRef": { "name": "shop-db" },
                "databases": ["shop", "audit"], "excludeTables": ["shop.cache"], "tls": { "mode": "Required" },
                "engine": "Native", "accounts": true, "sessions": 8,
            },
            "destination": { "volume": { "path": "/b", "persistentVolumeClaim": { "claimName": "claim" } } },
            "retention": { "keepLast": 7, "keepDaily": 14, "maxAge": "720h" },
            "compression": { "type": "zstd", "level": 9 },
            "encryption": { "age": { "recipients": ["age1t7rxyev2z3rw82stdlrrepyc39nvn86l5078zqkf5uasdy86jp6svpy7pa"] } },
        })
    );
}

#[test]
fn an_image_with_the_client_reaches_its_field() {
    let fake = Fake::start();
    let config = Config::new(&fake);
    let line = "create mysql x --schedule @daily --host db --secret db --pvc c --client-image mysql:9 --dry-run -o json";
    let words: Vec<&str> = line.split(' ').collect();
    let object = config.run(&words).ok().json();
    let source =
        json!({ "host": "db", "clientImage": "mysql:9", "credentialsSecretRef": { "name": "db" } });
    assert_eq!(object["spec"]["source"], source);
    let both = config.run(&[&words[..], &["--image", "mine"]].concat());
    assert_eq!(both.code, Some(2));
    let line = "create backup x --database a --storage b --client-image mongo:8 --dry-run -o json";
    let words: Vec<&str> = line.split(' ').collect();
    let object = config.run(&words).ok().json();
    assert_eq!(object["spec"]["job"], json!({ "clientImage": "mongo:8" }));
}

#[test]
fn a_storage_reaches_its_field_and_is_the_only_store() {
    let fake = Fake::start();
    let config = Config::new(&fake);
    let line =
        "create mysql x --schedule @daily --host db --secret db --storage bucket --dry-run -o json";
    let words: Vec<&str> = line.split(' ').collect();
    let object = config.run(&words).ok().json();
    let destination = json!({ "storageRef": { "name": "bucket" } });
    assert_eq!(object["spec"]["destination"], destination);
    let both = config.run(&[&words[..], &["--pvc", "claim"]].concat());
    assert_eq!(both.code, Some(2));
}

#[test]
fn variables_are_text_after_a_round_trip_through_yaml_1_1() {
    let fake = Fake::start();
    let config = Config::new(&fake);
    let ran = config
        .run(&[
            "create",
            "mysql",
            "x",
            "--schedule",
            "0 3 * * *",
            "--image",
            "mine",
            "--env",
            "PORT=3306",
            "--env",
            "PASSWORD=0123",
            "--env",
            "FLAG=yes",
            "--env",
            "E=1e3",
            "--env",
            "N=n",
            "--dry-run",
            "-o",
            "yaml",
        ])
        .ok();
    snapbox::assert_data_eq!(
        ran.out,
        snapbox::str![[r#"
apiVersion: batch.isekiro.com/v1
kind: MysqlBackup
metadata:
  name: x
  namespace: prod
spec:
  backupEnvs:
  - name: PORT
    value: '3306'
  - name: PASSWORD
    value: '0123'
  - name: FLAG
    value: 'yes'
  - name: E
    value: '1e3'
  - name: 'N'
    value: 'n'
  concurrencyPolicy: Allow
  image: mine
  restartPolicy: Never
  schedule: 0 3 * * *

"#]]
    );
    assert!(fake.seen().is_empty(), "a client dry run sends nothing");
    assert!(!ran.err.contains("0123"), "{}", ran.err);
}

#[test]
fn mistakes_are_refused_before_anything_is_sent() {
    let fake = Fake::start();
    let config = Config::new(&fake);
    let long = "x".repeat(53);
    let rows: &[(&[&str], &str)] = &[
        (
            &["x", "--schedule", "0 0 * * 7"],
            "error: invalid --schedule: day of week 7 is outside 0-6 (field 5); Sunday is 0 or SUN",
        ),
        (
            &["x", "--schedule", "0 0 0 * * *"],
            "error: invalid --schedule: expected exactly 5 fields, found 6; write minute, hour, day of month, month, day of week: there is no field for seconds or years, and no comment",
        ),
        (
            &["x", "--schedule", "@daily", "--time-zone", "europe/berlin"],
            "error: invalid --time-zone: unknown time zone \"europe/berlin\"; did you mean \"Europe/Berlin\"?",
        ),
        (
            &[&long, "--schedule", "@daily"],
            "error: invalid name: must be no more than 52 characters, is 53; the names of its Jobs add up to 11 to it",
        ),
        (
            &["Shop", "--schedule", "@daily"],
            "error: invalid name \"Shop\": use lower case letters, digits, - and ., with a letter or digit at both ends",
        ),
        (
            &["x", "--schedule", "@daily", "--retention", "keep-last=a"],
            "error: invalid --retention \"keep-last=a\": the value is a number of artefacts",
        ),
        (
            &["x", "--schedule", "@daily", "--compression", "gzip:12"],
            "error: invalid --compression \"gzip:12\": the level of gzip goes from 1 to 9, is 12",
        ),
        (
            &["x", "--schedule", "@daily", "--env", "S3cr3t-marker"],
            "error: invalid --env: one has no `=`; write NAME=VALUE",
        ),
        (
            &[
                "x",
                "--schedule",
                "@daily",
                "--encrypt-to",
                "AGE-SECRET-KEY-1XYZ",
            ],
            "error: invalid --encrypt-to: is a private key; name the public key, which starts with age1 (age-keygen -y prints it)",
        ),
    ];
    for (args, first) in rows {
        let args = [&["create", "mysql"], *args, PLACES].concat();
        let ran = config.run(&args).fails(2, first);
        assert_eq!(ran.out, "");
    }
    assert!(fake.seen().is_empty());
    // Valid, and never due: taken, with a warning.
    let ran = config
        .run(
            &[
                &["create", "mysql", "x", "--schedule", "0 0 31 2 *"],
                PLACES,
            ]
            .concat(),
        )
        .ok();
    assert!(
        ran.err
            .contains("warning: spec.schedule: \"0 0 31 2 *\" never comes due; no backup will run"),
        "{}",
        ran.err
    );
}

#[test]
fn from_a_file_with_several_documents() {
    let fake = Fake::start();
    let config = Config::new(&fake);
    let path = config.directory.path().join("objects.yaml");
    std::fs::write(&path, "apiVersion: batch.isekiro.com/v1\nkind: MysqlBackup\nmetadata: {name: a}\nspec: {schedule: '@daily', image: i, unknown: 1}\n---\napiVersion: v1\nkind: List\nitems:\n- apiVersion: batch.isekiro.com/v1\n  kind: MysqlBackup\n  metadata: {name: b, namespace: other}\n  spec: {schedule: '@hourly', image: i}\n").unwrap();
    let path = path.to_str().unwrap();
    let ran = config.run(&["create", "-f", path]).ok();
    assert_eq!(
        ran.out,
        "mysqlbackup.batch.isekiro.com/a created\nmysqlbackup.batch.isekiro.com/b created (namespace other)\n"
    );
    assert_eq!(fake.get("prod", "a").unwrap()["spec"]["unknown"], 1);
    assert!(fake.get("other", "b").is_some());
    let ran = config.run(&["create", "-f", path, "-n", "third"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
}

#[test]
fn a_namespace_that_is_not_there_is_named_with_what_to_type() {
    let rows: [(&str, &[&str]); 6] = [
        (
            "POST",
            &[
                "create",
                "mysql",
                "x",
                "--schedule",
                "@daily",
                "--image",
                "i",
            ],
        ),
        ("POST", &["create", "-f", "FILE"]),
        (
            "POST",
            &[
                "create",
                "mysql",
                "x",
                "--schedule",
                "@daily",
                "--image",
                "i",
                "--dry-run=server",
            ],
        ),
        (
            "POST",
            &["restore", "shop", "--to", "db", "--secret", "db", "--yes"],
        ),
        ("PATCH", &["suspend", "shop"]),
        ("PATCH", &["run-now", "shop"]),
    ];
    for (method, args) in rows {
        let fake = Fake::start();
        fake.install("restores");
        let spec = json!({ "schedule": "@daily" });
        fake.put(super::fake::backup("nowhere", "shop", spec, Value::Null));
        let mut gone = super::fake::status(
            404,
            "NotFound",
            "namespaces \"nowhere\" not found",
            "nowhere",
        );
        gone["details"]["kind"] = json!("namespaces");
        fake.deny(method.parse().unwrap(), 404, gone);
        let config = Config::new(&fake);
        let file = config.directory.path().join("x.yaml");
        std::fs::write(&file, "apiVersion: batch.isekiro.com/v1\nkind: MysqlBackup\nmetadata: {name: a}\nspec: {schedule: '@daily', image: i}\n").unwrap();
        let file = file.to_str().unwrap();
        let args = args.iter().map(|a| if *a == "FILE" { file } else { *a });
        let args: Vec<&str> = args.chain(["-n", "nowhere"]).collect();
        let ran = config.run(&args);
        assert_eq!(ran.code, Some(5), "{args:?}: {ran:?}");
        let said: Vec<&str> = ran.err.lines().filter(|l| !l.starts_with('►')).collect();
        assert_eq!(
            said,
            [
                "Error from server (NotFound): namespace \"nowhere\" not found",
                "Hint: kubectl create namespace nowhere, or correct -n: kubectl get namespaces",
            ],
            "{args:?}"
        );
    }
}

#[test]
fn a_name_in_a_namespace_that_is_not_there_says_that_the_namespace_is_missing() {
    for args in [
        &["describe", "shop"][..],
        &["run-now", "shop"],
        &["runs", "shop"],
        &["suspend", "shop"],
        &["export", "shop"],
    ] {
        let fake = Fake::start();
        let text = "namespaces \"nowhere\" not found";
        let gone = super::fake::status(404, "NotFound", text, "nowhere");
        fake.deny_path("/api/v1/namespaces/nowhere", 404, gone);
        let ran = Config::new(&fake).run(&[args, &["-n", "nowhere"]].concat());
        assert_eq!(ran.code, Some(5), "{args:?}: {ran:?}");
        assert_eq!(
            ran.err.lines().collect::<Vec<_>>(),
            [
                "Error from server (NotFound): namespace \"nowhere\" not found",
                "Hint: kubectl create namespace nowhere, or correct -n: kubectl get namespaces",
            ],
            "{args:?}"
        );
    }
}

#[test]
fn a_server_dry_run_stores_nothing() {
    let fake = Fake::start();
    let config = Config::new(&fake);
    let ran = config
        .run(&[
            "create",
            "mysql",
            "x",
            "--schedule",
            "@daily",
            "--image",
            "i",
            "--dry-run=server",
            "-o",
            "json",
        ])
        .ok();
    let value: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(value["metadata"]["namespace"], "prod");
    assert_eq!(fake.get("prod", "x"), None);
    let ran = config
        .run(&[
            "create",
            "mysql",
            "x",
            "--schedule",
            "@daily",
            "--image",
            "i",
            "--dry-run=server",
        ])
        .ok();
    assert_eq!(
        ran.out,
        "mysqlbackup.batch.isekiro.com/x created (server dry run)\n"
    );
}

#[test]
fn the_kinds_of_gobackup() {
    let fake = Fake::start();
    let config = Config::new(&fake);
    let spec = |args: &[&str]| {
        let args: Vec<&str> = ["create"]
            .iter()
            .chain(args)
            .chain(&["--dry-run", "-o", "json"])
            .copied()
            .collect();
        config.run(&args).ok().json()
    };
    let backup = spec(&[
        "backup",
        "nightly",
        "--database",
        "maindb,cache",
        "--storage",
        "bucket",
        "--keep",
        "7",
        "--schedule",
        "15 2 * * *",
        "--time-zone",
        "Europe/Berlin",
        "--compression",
        "tgz",
    ]);
    assert_eq!(
        (&backup["apiVersion"], &backup["kind"]),
        (&json!("gobackup.io/v1"), &json!("Backup"))
    );
    assert_eq!(
        backup["spec"],
        json!({
            "databaseRefs": [{ "name": "maindb" }, { "name": "cache" }],
            "storageRefs": [{ "name": "bucket", "keep": 7 }],
            "compressWith": { "type": "tgz" },
            "schedule": { "cron": "15 2 * * *", "timeZone": "Europe/Berlin" },
        })
    );
    let database = spec(&[
        "database",
        "maindb",
        "--type",
        "postgresql",
        "--host",
        "pg",
        "--port",
        "5432",
        "--database",
        "app",
        "--secret",
        "creds",
        "--set",
        "args=--no-owner",
    ]);
    assert_eq!(
        database["spec"],
        json!({ "type": "postgresql", "config": {
        "host": "pg", "port": 5432, "database": "app", "args": "--no-owner",
        "username_ref": { "name": "creds", "key": "username" }, "password_ref": { "name": "creds", "key": "password" },
    } })
    );
    let storage = spec(&[
        "storage",
        "bucket",
        "--type",
        "s3",
        "--bucket",
        "b",
        "--path",
        "pre/fix",
        "--keep",
        "7",
        "--secret",
        "creds:id:secret",
        "--set",
        "force_path_style=true",
    ]);
    assert_eq!(
        storage["spec"],
        json!({ "type": "s3", "config": {
        "bucket": "b", "path": "pre/fix", "keep": 7, "force_path_style": true,
        "access_key_id_ref": { "name": "creds", "key": "id" }, "secret_access_key_ref": { "name": "creds", "key": "secret" },
    } })
    );
    let local = spec(&["storage", "disk", "--type", "local", "--pvc", "claim"]);
    assert_eq!(
        local["spec"]["volume"],
        json!({ "persistentVolumeClaim": { "claimName": "claim" } })
    );
    config
        .run(&["create", "storage", "disk", "--type", "local"])
        .fails(
            2,
            "error: --type local needs --pvc: without a volume the archive dies with the pod",
        );
    config
        .run(&[
            "create",
            "backup",
            "x",
            "--database",
            "a",
            "--storage",
            "b",
            "--schedule",
            "0 0 * * 7",
        ])
        .fails(
            2,
            "error: invalid --schedule: day of week 7 is outside 0-6 (field 5); Sunday is 0 or SUN",
        );
    assert_eq!(
        config
            .run(&["create", "database", "x", "--type", "oracle"])
            .code,
        Some(2)
    );
}

#[test]
fn words_of_flags_are_read_in_any_case() {
    let fake = Fake::start();
    let config = Config::new(&fake);
    let ran = config
        .run(&[
            "create",
            "mysql",
            "shop",
            "--schedule",
            "@daily",
            "--host",
            "db",
            "--secret",
            "db",
            "--pvc",
            "c",
            "--tls",
            "required",
            "--concurrency-policy",
            "FORBID",
            "--dry-run=CLIENT",
            "-o",
            "json",
        ])
        .ok()
        .json();
    assert_eq!(ran["spec"]["source"]["tls"]["mode"], "Required");
    assert_eq!(ran["spec"]["concurrencyPolicy"], "Forbid");
}

#[test]
fn u10_a_host_with_more_than_its_name_is_refused_of_every_kind() {
    let fake = Fake::start();
    let config = Config::new(&fake);
    for (line, flag) in [
        (
            "create mysql x --schedule @daily --secret s --pvc c --host",
            "--host HOST",
        ),
        (
            "create database x --type postgresql --database d --host",
            "--host",
        ),
        ("create storage x --type sftp --path /b --set", "--host"),
    ] {
        for (host, why) in [
            (
                "http://db/x",
                "is a URL or path; write the bare host name, and the port apart (PORT)",
            ),
            (
                "db:3307",
                "holds a colon but is not an IPv6 address; write the bare host name, and the port apart (PORT)",
            ),
        ] {
            let mut words: Vec<&str> = line.split(' ').collect();
            let set = format!("host={host}");
            words.push(if words.last() == Some(&"--set") {
                &set
            } else {
                host
            });
            config
                .run(&words)
                .fails(2, &format!("error: invalid {flag}: {host:?} {why}"));
        }
    }
    let line = "create mysql x --schedule @daily --secret s --pvc c --dry-run --host fd00::1";
    config.run(&line.split(' ').collect::<Vec<_>>()).ok();
    assert!(fake.seen().is_empty());
}

#[test]
fn u10_what_a_run_can_t_be_without_is_asked_for_by_its_flag() {
    let fake = Fake::start();
    let config = Config::new(&fake);
    let run = |line: &str| config.run(&line.split(' ').collect::<Vec<_>>());
    run("create mysql x --schedule @daily").fails(
        2,
        "error: create mysql needs --host HOST, and --secret SECRET, and --pvc CLAIM, --s3-bucket BUCKET or --storage NAME (or variables of the runner as --env, or --image with a program of your own)",
    );
    run("create mysql x --schedule @daily --host db --pvc c").fails(
        2,
        "error: create mysql needs --secret SECRET (or variables of the runner as --env, or --image with a program of your own)",
    );
    for (line, first) in [
        (
            "create database x --type mysql --database d",
            "error: invalid --host: is not set; name the server's host (localhost is the backup's own pod)",
        ),
        (
            "create database x --type mysql --host h",
            "error: invalid --database: is not set; name a database, or set all_databases: true",
        ),
        (
            "create storage x --type s3",
            "error: invalid --bucket: is not set, and this type needs it",
        ),
        (
            "create backup x --database a --storage b --compression rar",
            "error: invalid --compression: unknown compression \"rar\"; use tgz, zst, xz, bz2 or another of gobackup's types, or tar for none",
        ),
        (
            "create mysql x --schedule @daily --image i --encrypt-to age1foo",
            "error: invalid --encrypt-to: is not an age public key, or not a whole one; it starts with age1 and has 62 characters",
        ),
    ] {
        run(line).fails(2, first);
    }
    assert!(fake.seen().is_empty());
    // The original's way, and a program of the user's own.
    for line in [
        "create mysql x --schedule @daily --env HOST=db --env USERNAME=u --env PASSWORD=p --env SQLPATH=$(DIR)",
        "create mysql y --schedule @daily --image mine",
    ] {
        run(line).ok();
    }
}

#[test]
fn u10_what_is_named_has_to_be_there() {
    let fake = Fake::start();
    fake.install("storages");
    fake.install("databases");
    fake.install("restores");
    let config = Config::new(&fake);
    let run = |line: &str| config.run(&line.split(' ').collect::<Vec<_>>());
    let create = "create mysql x --schedule @daily --host db --secret";
    for (line, text) in [
        (
            format!("{create} nope --pvc nope-claim"),
            "volume claim nope-claim is not there; Secret nope is not there",
        ),
        (
            format!("{create} db:user:password --pvc c"),
            "Secret db has no key \"user\", it has accessKeyId, id, password, secret, secretAccessKey, username",
        ),
        (
            format!("{create} db --storage nope"),
            "Storage nope is not there",
        ),
        (
            "create backup x --database nope --storage nope".to_owned(),
            "Database nope is not there; Storage nope is not there",
        ),
        (
            "create database x --type redis --host r --secret nope".to_owned(),
            "Secret nope is not there",
        ),
        (
            "create storage x --type local --pvc nope".to_owned(),
            "volume claim nope is not there",
        ),
    ] {
        let ran = run(&line);
        assert_eq!(ran.code, Some(5), "{ran:?}");
        let wanted = format!(" needs what is not in namespace prod: {text}; nothing was created\n");
        assert!(ran.err.contains(&wanted), "{wanted}{}", ran.err);
        assert!(!ran.err.contains("S3cr3t"), "{}", ran.err);
        // A dry run of the client looks at nothing.
        run(&format!("{line} --dry-run")).ok();
    }
    assert!(fake.seen().iter().all(|s| s.method == "GET"));
    // Who may not read Secrets may create.
    let why = super::fake::status(403, "Forbidden", "secrets \"nope\" is forbidden", "nope");
    fake.deny_path("/secrets/nope", 403, why);
    run("create mysql x --schedule @daily --host db --secret nope --pvc c").ok();
}

#[test]
fn u10_a_file_is_created_with_a_word_on_what_is_missing() {
    let fake = Fake::start();
    fake.install("storages");
    let config = Config::new(&fake);
    let path = config.directory.path().join("objects.yaml");
    std::fs::write(&path, "apiVersion: gobackup.io/v1\nkind: Storage\nmetadata: {name: s}\nspec: {type: sftp, config: {host: 'a:22', password_ref: {name: nope, key: p}}}\n").unwrap();
    let ran = config.run(&["create", "-f", path.to_str().unwrap()]).ok();
    assert!(ran.err.contains("spec.config.host"), "{}", ran.err);
    assert!(
        ran.err.contains("Secret nope is not there yet"),
        "{}",
        ran.err
    );
    assert!(fake.get("prod", "s").is_some());
    std::fs::write(&path, "apiVersion: batch.isekiro.com/v1\nkind: Restore\nmetadata: {name: r}\nspec: {from: {name: a, latest: true}, to: {host: 'a:22', credentialsSecretRef: {name: s}}}\n").unwrap();
    config.run(&["create", "-f", path.to_str().unwrap()]).fails(
        2,
        "error: restore.batch.isekiro.com/r: spec.to.host: \"a:22\" holds a colon but is not an IPv6 address; write the bare host name, and the port apart (PORT)",
    );
}
