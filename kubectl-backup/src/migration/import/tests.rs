#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
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
