//! What came from a Secret leaves the runner nowhere: not in its log, its report, its notices, or the
//! arguments of a process, in no form, whichever step fails.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "tests"
)]

mod common;

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use common::{Runner, fixture};
use serde_json::{Value, json};

/// The forms in which programs repeat a value, made by base64, od and sed of coreutils.
fn forms(secret: &str) -> Vec<String> {
    let script = r#"
printf '%s\n' "$1"
for before in '' a ab; do printf '%s%s' "$before" "$1" | base64 -w0 | tr -d '=' ; echo; done
printf %s "$1" | od -An -v -tx1 | tr -d ' \n'; echo
printf %s "$1" | od -An -v -tx1 | tr -d ' \n' | tr a-f A-F; echo
printf %s "$1" | od -An -v -tx1 | tr -d ' \n' | sed 's/../%&/g'; echo
printf %s "$1" | od -An -v -tx1 | tr -d ' \n' | tr a-f A-F | sed 's/../%&/g'; echo
"#;
    let output = Command::new("sh")
        .args(["-c", script, "sh", secret])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut forms: Vec<String> = text.lines().map(str::to_owned).collect();
    // What stands before and after changes the ends of base64.
    for form in &mut forms[1..4] {
        let inner: String = form.chars().skip(4).collect();
        *form = inner
            .chars()
            .take(inner.chars().count().saturating_sub(2))
            .collect();
    }
    forms.retain(|f| f.len() > 3);
    let json = serde_json::to_string(secret).unwrap();
    forms.push(json[1..json.len() - 1].to_owned());
    forms
}

fn assert_silent(text: &str, secrets: &[&str], what: &str) {
    for secret in secrets {
        for form in forms(secret) {
            assert!(
                !text.contains(&form),
                "{what}: {form:?} of {secret:?} shows in: {text}"
            );
        }
    }
}

/// Runs to the end; all that was said, and the arguments of every process meanwhile.
fn everything(runner: &Runner) -> (Option<i32>, String) {
    let done = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&done);
    let me = std::process::id().to_string();
    let watcher = std::thread::spawn(move || {
        let mut all = BTreeMap::new();
        while !seen.load(Ordering::Acquire) {
            for entry in std::fs::read_dir("/proc").unwrap().flatten() {
                let name = entry.file_name().to_string_lossy().into_owned();
                if name == me || !name.chars().all(|c| c.is_ascii_digit()) {
                    continue;
                }
                let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
                let line = String::from_utf8_lossy(&line).replace('\0', " ");
                if line.contains("defaults-file") || line.contains("mariadb") {
                    all.insert(line, ());
                }
            }
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        all.into_keys().collect::<Vec<_>>().join("\n")
    });
    let output = runner.command().stdin(Stdio::null()).output().unwrap();
    done.store(true, Ordering::Release);
    let mut text = watcher.join().unwrap();
    text.push_str(&String::from_utf8_lossy(&output.stdout));
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    let report = std::fs::read_to_string(runner.out.path().join("termination")).unwrap();
    // As the operator reads it, and as it stands there.
    text.push_str(&report);
    text.push_str(&crds::report::Report::parse(&report).unwrap().message);
    (output.status.code(), text)
}

/// Another start with the same environment.
fn again(before: &Runner) -> Runner {
    let mut runner = Runner::new(fixture());
    let log = runner.env["BACKUP_TERMINATION_LOG"].clone();
    runner.env = before.env.clone();
    runner.set("BACKUP_TERMINATION_LOG", log)
}

fn file(runner: &Runner, name: &str, text: &str) -> String {
    let path = runner.out.path().join(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

const DSN: &str = "mysql://root:S3cr3t-Canary-1@db.example:3306/shop?token=Qu3ry-Canary-2";

/// A value where another belongs, in each setting that a Secret may fill, with the operator's list of
/// literal variables, without it, and with the source wrong so that no password is known.
#[test]
fn s1_what_can_not_be_used_is_not_quoted() {
    let values = [
        DSN,
        "S3cr3t-Canary-3 with blank",
        "-S3cr3t-Canary-4",
        "@S3cr3t-Canary-5=",
        "a,,S3cr3t-Canary-6",
    ];
    for variable in [
        "HOST",
        "PORT",
        "USERNAME",
        "DATABASES",
        "EXCLUDE_TABLES",
        "MYSQLDUMP_ARGS",
        "SQLPATH",
        "EXPIREAT",
        "TIMEOUT",
        "TZ",
        "APIURL",
    ] {
        for (n, value) in values.into_iter().enumerate() {
            // The operator's list, and an operator that sends none.
            {
                let literal = [json!(["PATH"]), Value::Null][n % 2].clone();
                let runner = Runner::new(fixture())
                    .set("PASSWORD", "P4ssw0rd-Canary-0")
                    .set("PORT", common::free_port().to_string())
                    .set(variable, value)
                    .spec("m-1", None, json!({"literalVariables": literal}));
                let (code, text) = everything(&runner);
                assert_ne!(code, Some(0), "{variable}={value}");
                assert_silent(
                    &text,
                    &[
                        "P4ssw0rd-Canary-0",
                        "S3cr3t-Canary-1",
                        "Qu3ry-Canary-2",
                        "S3cr3t-Canary-3",
                        "S3cr3t-Canary-4",
                        "S3cr3t-Canary-5",
                        "S3cr3t-Canary-6",
                    ],
                    &format!("{variable}={value}"),
                );
            }
        }
    }
}

/// What stands in the object may be named: that helps.
#[test]
fn s1_a_literal_is_named() {
    let runner = Runner::new(fixture()).set("HOST", "db:3306").spec(
        "m-1",
        None,
        json!({"literalVariables": ["HOST", "PORT", "USERNAME", "SQLPATH"]}),
    );
    runner
        .run()
        .assert_failed(2, "InvalidSettings", &["\"db:3306\"", "PORT"]);
}

/// Each reference to a Secret names a key that holds something else.
#[test]
fn s1_a_reference_to_the_wrong_key_shows_nothing() {
    let keys = Command::new("age-keygen").output().unwrap();
    let keys = String::from_utf8(keys.stdout).unwrap();
    let private = keys
        .lines()
        .find(|l| l.starts_with("AGE-SECRET-KEY-"))
        .unwrap()
        .to_owned();
    let pem = "-----BEGIN PRIVATE KEY-----\nS3cr3tLineCanary7S3cr3tLineCanary7\n-----END PRIVATE KEY-----\n";
    for (i, (value, canary)) in [
        (keys.as_str(), private.as_str()),
        (pem, "S3cr3tLineCanary7S3cr3tLineCanary7"),
        (DSN, "S3cr3t-Canary-1"),
        ("S3cr3t-Canary-8", "S3cr3t-Canary-8"),
        (
            "{\"private_key\": \"S3cr3t-Canary-9\\nx\"}",
            "S3cr3t-Canary-9",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let runner = Runner::new(fixture())
            .unset("SQLPATH")
            .unset("USERNAME")
            .unset("PASSWORD");
        let path = file(&runner, "key", value);
        let good = file(&runner, "good", "full");
        let right = file(&runner, "right", "S3cr3t-marker");
        let sql = runner.sql_path();
        let source = json!({"usernameFile": good, "passwordFile": right});
        let with = |field: &str| {
            let mut source = source.clone();
            source[field] = json!(path);
            source
        };
        let volume = json!({"path": sql});
        let s3 = |field: &str| {
            let mut s3 = json!({"bucket": "b", "endpoint": format!("http://127.0.0.1:{}", common::free_port()), "region": "us-east-1", "accessKeyIdFile": good, "secretAccessKeyFile": right});
            s3[field] = json!(path);
            json!({"s3": s3})
        };
        let hook = json!([{"type": "Slack", "urlSecretKeyRef": {"name": "s", "key": "k"}, "urlFile": path, "on": ["Failure", "Success"]}]);
        let mail = json!([{"type": "Mail", "urlSecretKeyRef": {"name": "s", "key": "k"}, "urlFile": path, "on": ["Failure", "Success"]}]);
        for (n, spec) in [
            json!({"source": with("usernameFile"), "destination": volume}),
            json!({"source": with("passwordFile"), "destination": volume}),
            json!({"source": with("caFile"), "destination": volume}),
            json!({"source": source, "destination": volume, "encryption": {"age": {"recipients": []}}, "recipientsFile": path}),
            json!({"source": source, "destination": s3("accessKeyIdFile")}),
            json!({"source": source, "destination": s3("secretAccessKeyFile")}),
            json!({"source": source, "destination": s3("sessionTokenFile")}),
            json!({"source": source, "destination": s3("caFile")}),
            json!({"source": {"usernameFile": path, "passwordFile": path, "tlsMode": "Nonsense"}, "destination": volume, "notifications": hook}),
            json!({"source": {"usernameFile": path, "passwordFile": path, "tlsMode": "Nonsense"}, "destination": volume, "notifications": mail}),
        ]
        .into_iter()
        .enumerate()
        {
            if (4..8).contains(&n) && i % 3 != 0 {
                continue;
            }
            let mut spec = spec;
            // A store that can't be reached is tried for longer.
            spec["timeoutSeconds"] = json!(4);
            let runner = again(&runner);
            let runner = runner.spec("m-1", None, spec);
            let (_, text) = everything(&runner);
            assert_silent(&text, &[canary], &format!("value {i}, place {n}"));
            if i == 0 && n == 3 {
                assert!(text.contains("private key stands where public recipients"), "{text}");
            }
        }
    }
}

fn script(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// A client that tells its password in every form, at every place of a line, and fails.
#[test]
fn s2_a_client_that_tells_its_password_is_not_repeated() {
    let client = r#"#!/bin/sh
case "$*" in *--version*) echo "mariadb from 11.4.2-MariaDB"; exit;; *--help*) echo " --all-databases"; exit;; esac
pw=$(sed -n 's/^password="\(.*\)"$/\1/p' "${1#--defaults-file=}")
{
echo "ERROR 1045 (28000): using '$pw'"
printf 'root:%s' "$pw" | base64 -w0; echo
printf '%s' "$pw" | base64 -w0; echo
printf 'basic x%s' "$pw" | base64 -w0 | tr '+/' '-_'; echo
hex=$(printf %s "$pw" | od -An -v -tx1 | tr -d ' \n')
echo "$hex" "0x$hex"; echo "$hex" | tr a-f A-F
echo "$hex" | sed 's/../%&/g'; echo "$hex" | tr a-f A-F | sed 's/../%&/g'
echo "{\"password\":\"$pw\"}"; echo "'$pw'"; echo "--password=$pw"
for n in 8180 8186 8190 8192 16380; do head -c $n /dev/zero | tr '\0' x; printf ' %s\n' "$pw"; done
} >&2
exit 2
"#;
    for password in ["S3cr3t-Canary+/10", "p7", "xyz"] {
        fixture().sql(&format!(
            "create or replace user canary@'%' identified by '{password}'; grant all on *.* to canary@'%'"
        ));
        let runner = Runner::new(fixture())
            .set("USERNAME", "canary")
            .set("PASSWORD", password)
            .by_client();
        let bin = runner.out.path().join("bin");
        std::fs::create_dir(&bin).unwrap();
        script(&bin.join("mariadb-dump"), client);
        let runner = runner.set("PATH", format!("{}:/usr/bin:/bin", bin.display()));
        let (code, text) = everything(&runner);
        assert_eq!(code, Some(3), "{text}");
        assert!(text.contains("mariadb-dump ended with"), "{text}");
        if password.len() < 4 {
            for word in [
                format!("'{password}'"),
                format!("\"{password}\""),
                format!("={password}\""),
                format!(" {password}\""),
            ] {
                assert!(!text.contains(&word), "{password} shows: {text}");
            }
        } else {
            assert_silent(&text, &[password], "mariadb-dump");
            for n in 6..password.len() {
                assert!(
                    !text.contains(&password[..n]),
                    "{n} characters show: {text}"
                );
            }
        }
    }
}

/// A receiver that repeats its own token, cut in the middle of it.
#[test]
fn s1_an_answer_that_repeats_the_token_is_not_shown() {
    let runner = Runner::new(fixture());
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let token = "T0ken-Canary-11";
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            use std::io::{Read, Write};
            let mut stream = stream;
            let _ = stream.read(&mut [0; 4096]);
            let body = format!("{} {token} {token}", "no ".repeat(30));
            let _ = stream.write_all(
                format!(
                    "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                    body.len()
                )
                .as_bytes(),
            );
        }
    });
    let url = file(
        &runner,
        "url",
        &format!("http://127.0.0.1:{port}/services/{token}?access_token={token}\n"),
    );
    let hook = json!([{"type": "Slack", "urlSecretKeyRef": {"name": "s", "key": "k"}, "urlFile": url, "on": ["Failure", "Success"]}]);
    let runner = runner.spec("m-1", None, json!({"notifications": hook}));
    let (code, text) = everything(&runner);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("Slack did not answer"), "{text}");
    assert_silent(&text, &[token], "notice");
    for n in 7..token.len() {
        assert!(!text.contains(&token[..n]), "{text}");
    }
}

/// A Secret's key that is empty is a mistake, never a weaker backup.
#[test]
fn s2_an_empty_secret_is_no_secret() {
    let runner = Runner::new(fixture())
        .unset("SQLPATH")
        .unset("USERNAME")
        .unset("PASSWORD");
    let empty = file(&runner, "empty", "\n");
    let good = file(&runner, "good", "full");
    let right = file(&runner, "right", "S3cr3t-marker");
    let volume = json!({"path": runner.sql_path()});
    let source = json!({"usernameFile": good, "passwordFile": right});
    for (spec, words) in [
        (
            json!({"source": {"usernameFile": good, "passwordFile": empty}, "destination": volume}),
            "password is empty",
        ),
        (
            json!({"source": {"usernameFile": empty, "passwordFile": right}, "destination": volume}),
            "user name is empty",
        ),
        (
            json!({"source": source, "destination": volume, "encryption": {"age": {"recipients": []}}, "recipientsFile": empty}),
            "no recipient",
        ),
        (
            json!({"source": source, "destination": {"s3": {"bucket": "b", "accessKeyIdFile": good, "secretAccessKeyFile": empty}}}),
            "is empty",
        ),
        (
            json!({"source": source, "destination": {"s3": {"bucket": "b", "accessKeyIdFile": empty, "secretAccessKeyFile": right}}}),
            "is empty",
        ),
    ] {
        let again = again(&runner);
        let again = again.spec("m-1", None, spec);
        let (code, text) = everything(&again);
        assert_eq!(code, Some(2), "{words}: {text}");
        assert!(text.contains(words), "{words}: {text}");
    }
}

/// The archive of a Backup is encrypted with what its Secret holds, or not made.
#[test]
fn s2_an_archive_is_never_encrypted_with_nothing() {
    use common::backup::Backup;
    let missing = "/nonexistent/password".to_owned();
    for (encrypt, words) in [
        (
            json!({"type": "openssl", "password": missing, "bits": 256, "iterations": 10000, "digest": "sha256", "base64": false}),
            "the password is empty",
        ),
        (
            json!({"type": "openssl", "password": "EMPTY", "bits": 128, "iterations": 1, "digest": "sha1", "base64": true}),
            "the password is empty",
        ),
        (
            json!({"type": "age", "recipients": [], "recipientsFile": missing}),
            "no age recipient",
        ),
        (
            json!({"type": "age", "recipients": [], "recipientsFile": "EMPTY"}),
            "no age recipient",
        ),
        (
            json!({"type": "age", "recipients": [], "recipientsFile": "KEY"}),
            "private key stands where",
        ),
    ] {
        let mut backup = Backup::new().with_disk(3);
        let mut encrypt = encrypt;
        for field in ["password", "recipientsFile"] {
            match encrypt[field].as_str() {
                Some("EMPTY") => encrypt[field] = json!(backup.secret("empty", "")),
                Some("KEY") => {
                    encrypt[field] = json!(backup.secret("key", "AGE-SECRET-KEY-1S3CR3TCANARY12"))
                }
                _ => {}
            }
        }
        backup.plan["encrypt"] = encrypt;
        let done = backup.run("m-1");
        done.assert_failed(2, "InvalidSettings", &[words]);
        assert!(!done.stdout.contains("S3CR3TCANARY12"), "{}", done.stdout);
        assert!(std::fs::read_dir(backup.disk()).unwrap().next().is_none());
    }
}
