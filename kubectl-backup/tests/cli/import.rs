//! `import`: what is printed, and what is sent.

use super::Config;
use super::fake::Fake;

const FILE: &str = "\
models:
  shop:
    databases: { main: { type: mysql, host: db, password: $IMPORT_PW } }
    storages: { far: { type: s3, bucket: b, secret_access_key: k3y } }
";

fn files(env: bool) -> (Fake, Config, String) {
    let fake = Fake::start();
    let config = Config::new(&fake);
    let path = config.directory.path().join("gobackup.yml");
    std::fs::write(&path, FILE).unwrap();
    if env {
        let beside = config.directory.path().join(".env");
        std::fs::write(beside, "IMPORT_PW='hunter2'\n").unwrap();
    }
    (fake, config, path.to_str().unwrap().to_owned())
}

#[test]
fn secrets_are_printed_only_when_asked_for() {
    let (_fake, config, path) = files(true);
    let ran = config.run(&["import", &path]).ok();
    let all = format!("{}{}", ran.out, ran.err);
    assert!(!all.contains("hunter2") && !all.contains("k3y"), "{all}");
    assert_eq!(
        ran.err,
        "secret shop-main-database (password) is not printed: --apply creates it, --show-secrets prints it\n\
         secret shop-far-storage (secret_access_key) is not printed: --apply creates it, --show-secrets prints it\n"
    );
    assert_eq!(ran.out.matches("\n---\n").count(), 2, "{}", ran.out);
    let shown = config.run(&["import", &path, "--show-secrets"]).ok();
    assert!(shown.out.contains("password: hunter2"), "{}", shown.out);
    let list = config.run(&["import", &path, "-o", "json"]).ok().json();
    let kinds: Vec<&str> = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|o| o["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["Database", "Storage", "Backup"]);
}

#[test]
fn a_variable_without_a_value_is_named() {
    let (_fake, config, path) = files(false);
    config.run(&["import", &path]).fails(
        2,
        "error: the file uses variables without a value: IMPORT_PW",
    );
    config.run(&["import", "/nowhere/gobackup.yml"]).fails(
        2,
        "error: /nowhere/gobackup.yml: No such file or directory (os error 2)",
    );
}
