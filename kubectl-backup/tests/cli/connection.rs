//! kubectl's flags, files and environment.

use serde_json::{Value, json};

use super::fake::{Fake, backup};
use super::{Config, Ran, bare, eventually};

#[test]
fn flags_stand_before_or_after_the_verb_in_both_spellings() {
    let fake = Fake::start();
    fake.put(backup(
        "ns2",
        "shop",
        json!({ "schedule": "@daily" }),
        Value::Null,
    ));
    let config = Config::new(&fake);
    let file = config.write("other", &fake, "x", None);
    let file = file.to_str().unwrap();
    let with_equals = format!("--kubeconfig={file}");
    for args in [
        vec!["list", "--context", "x", "-n", "ns2", "--kubeconfig", file],
        vec!["list", "--context=x", "--namespace=ns2", &with_equals],
        vec!["--context", "x", "-n", "ns2", "--kubeconfig", file, "list"],
        vec!["-n", "ns2", "list", &with_equals],
    ] {
        let ran = Ran::of(bare().args(&args).args(["-o", "name"]).output().unwrap()).ok();
        assert_eq!(ran.out, "mysqlbackup.batch.isekiro.com/shop\n", "{args:?}");
    }
    let ran = config.run(&["list", "--context", "nowhere"]);
    let ran = ran.fails(2, "error: context \"nowhere\" does not exist");
    assert!(ran.err.contains("the contexts are: prod-eu"), "{}", ran.err);
}

#[test]
fn the_namespace_is_that_of_the_context() {
    let fake = Fake::start();
    let config = Config::new(&fake);
    let path = |seen: &[super::fake::Seen]| seen.last().unwrap().path.clone();
    config.run(&["list", "mbk"]).ok();
    assert!(path(&fake.seen()).contains("/namespaces/prod/"));
    config.run(&["list", "mbk", "-n", "ns3"]).ok();
    assert!(path(&fake.seen()).contains("/namespaces/ns3/"));
    config.run(&["list", "mbk", "-A"]).ok();
    assert_eq!(
        path(&fake.seen()),
        "/apis/batch.isekiro.com/v1/mysqlbackups"
    );
    config
        .run(&[
            "create",
            "mysql",
            "shop",
            "--schedule",
            "@daily",
            "--image",
            "i",
        ])
        .ok();
    assert!(fake.get("prod", "shop").is_some());
    config.run(&["run-now", "shop"]).ok();
    config.run(&["suspend", "shop"]).ok();
    assert!(fake.get("prod", "shop").unwrap()["spec"]["suspend"] == true);
}

#[test]
fn files_in_kubeconfig_are_merged_and_the_first_wins() {
    let fake = Fake::start();
    let config = Config::new(&fake);
    let first = config.write("first", &fake, "one", Some("ns-one"));
    let second = config.write("second", &fake, "two", Some("ns-two"));
    let missing = config.directory.path().join("missing");
    let list = std::env::join_paths([&missing, &first, &second]).unwrap();
    for (args, namespace) in [
        (vec!["list"], "ns-one"),
        (vec!["list", "--context", "two"], "ns-two"),
    ] {
        Ran::of(bare().env("KUBECONFIG", &list).args(args).output().unwrap()).ok();
        let seen = fake.seen();
        assert!(
            seen.iter()
                .rev()
                .take(3)
                .any(|s| s.path.contains(namespace)),
            "{seen:#?}"
        );
    }
}

#[test]
fn no_server_no_file_no_answer() {
    let ran = Ran::of(bare().args(["list"]).output().unwrap());
    ran.fails(
        8,
        "error: no cluster: there is no kubeconfig and this is not a pod",
    );
    let ran = Ran::of(
        bare()
            .args(["list", "--server", "http://127.0.0.1:1"])
            .output()
            .unwrap(),
    );
    ran.fails(8, "The connection to the server 127.0.0.1:1 was refused - did you specify the right host or port? (context \"flags\")");
    let ran = Ran::of(
        bare()
            .args(["list", "--kubeconfig", "/nowhere"])
            .output()
            .unwrap(),
    );
    assert_eq!(ran.code, Some(2), "{ran:?}");
}

#[test]
fn impersonation_and_agent_are_sent() {
    let fake = Fake::start();
    let config = Config::new(&fake);
    config
        .run(&[
            "list",
            "mbk",
            "--as",
            "bob",
            "--as-group",
            "ops",
            "--token",
            "t",
        ])
        .ok();
    let seen = fake.seen();
    let headers = &seen.last().unwrap().headers;
    assert_eq!(headers["impersonate-user"], "bob");
    assert_eq!(headers["impersonate-group"], "ops");
    assert_eq!(headers["authorization"], "Bearer t");
    assert!(headers["user-agent"].starts_with("kubectl-backup/v"));
}

#[test]
fn color_is_decided_by_flag_environment_and_terminal() {
    let fake = Fake::start();
    fake.put(backup(
        "prod",
        "shop",
        json!({ "schedule": "@daily", "suspend": true }),
        Value::Null,
    ));
    let config = Config::new(&fake);
    let escape = '\u{1b}';
    assert!(!config.run(&["list"]).ok().out.contains(escape));
    assert!(
        config
            .run(&["list", "--color", "always"])
            .ok()
            .out
            .contains("\u{1b}[33mSuspended\u{1b}[0m")
    );
    let forced = Ran::of(
        config
            .command(&["list"])
            .env("CLICOLOR_FORCE", "1")
            .output()
            .unwrap(),
    );
    assert!(forced.out.contains(escape));
    // Presence counts, as with kubectl; an empty value too.
    let refused = config
        .command(&["list"])
        .env("CLICOLOR_FORCE", "1")
        .env("NO_COLOR", "")
        .output();
    assert!(!Ran::of(refused.unwrap()).out.contains(escape));
}

/// The names of ConfigFlags in k8s.io/cli-runtime.
const KUBECTLS: [&str; 22] = [
    "as",
    "as-group",
    "as-uid",
    "as-user-extra",
    "cache-dir",
    "certificate-authority",
    "client-certificate",
    "client-key",
    "cluster",
    "context",
    "disable-compression",
    "insecure-skip-tls-verify",
    "kubeconfig",
    "namespace",
    "password",
    "request-timeout",
    "server",
    "tls-server-name",
    "token",
    "user",
    "username",
    "n",
];

#[test]
fn each_of_kubectls_flags_is_taken_on_both_sides_of_the_verb() {
    for name in KUBECTLS {
        let flag = match name {
            "n" => "-nx".to_owned(),
            "disable-compression" | "insecure-skip-tls-verify" => format!("--{name}=true"),
            "as-user-extra" => format!("--{name}=k=x"),
            "request-timeout" => format!("--{name}=5s"),
            _ => format!("--{name}=x"),
        };
        for args in [
            vec![flag.as_str(), "schedule", "explain", "@daily"],
            vec!["schedule", "explain", "@daily", flag.as_str()],
        ] {
            let ran = Ran::of(bare().args(&args).output().unwrap());
            assert_eq!(ran.code, Some(0), "{args:?} {ran:?}");
        }
    }
}

/// A kubeconfig beside its files, as in a home directory; `user` is YAML.
fn kubeconfig(directory: &std::path::Path, server: &str, user: &str) -> std::path::PathBuf {
    let path = directory.join("config");
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: x\n\
         clusters: [{{name: c, cluster: {{server: '{server}'}}}}]\n\
         contexts: [{{name: x, context: {{cluster: c, user: u, namespace: team-a}}}}]\n\
         users:\n- name: u\n  user: {user}\n"
    );
    std::fs::write(&path, text).unwrap();
    path
}

fn script(path: &std::path::Path, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn s4_what_a_helper_prints_is_never_shown() {
    let fake = Fake::start();
    let server = format!("http://{}", fake.address);
    let directory = tempfile::tempdir().unwrap();
    let helper = directory.path().join("helper");
    for mode in ["Never", "IfAvailable"] {
        let exec = format!(
            "{{exec: {{apiVersion: client.authentication.k8s.io/v1, command: ./helper, args: [--secret, S3cr3t-argument], interactiveMode: {mode}}}}}"
        );
        let path = kubeconfig(directory.path(), &server, &exec);
        for (text, said) in [
            (
                "echo '{\"status\":{\"token\":\"S3cr3t-token\"}}'; echo 'refresh failed' >&2; exit 1",
                "refresh failed",
            ),
            (
                "echo S3cr3t-token; echo 'token S3cr3t-token has expired' >&2; exit 1",
                "has expired",
            ),
            (
                "echo S3cr3t-token; echo 'Basic UzNjcjN0LXRva2Vu' >&2; exit 3",
                "",
            ),
            (
                "echo '{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\",\"status\":\"S3cr3t-token\"}'",
                "",
            ),
            ("echo S3cr3t-token", ""),
            ("kill -9 $$", ""),
        ] {
            script(&helper, text);
            let ran = Ran::of(
                bare()
                    .env("KUBECONFIG", &path)
                    .args(["list", "mbk"])
                    .output()
                    .unwrap(),
            );
            assert_eq!(ran.code, Some(6), "{text}: {ran:?}");
            let all = format!("{}{}", ran.out, ran.err);
            // In the other mode the helper speaks to the terminal itself.
            if mode == "Never" {
                assert!(
                    !all.contains("S3cr3t") && !all.contains("UzNjc"),
                    "{text}: {all}"
                );
            } else {
                let ours: String = all.lines().filter(|l| l.contains("error:")).collect();
                assert!(!ours.contains("S3cr3t"), "{text}: {all}");
            }
            assert!(
                all.contains("helper") && all.contains(said),
                "{text}: {all}"
            );
        }
    }
}

#[test]
fn p5_a_helper_that_is_missing_is_named_with_its_hint() {
    let fake = Fake::start();
    let server = format!("http://{}", fake.address);
    let directory = tempfile::tempdir().unwrap();
    let exec = "{exec: {apiVersion: client.authentication.k8s.io/v1, command: no-such-helper-x, interactiveMode: Never, installHint: get it from the wiki}}";
    let path = kubeconfig(directory.path(), &server, exec);
    let ran = Ran::of(
        bare()
            .env("KUBECONFIG", &path)
            .args(["list", "mbk"])
            .output()
            .unwrap(),
    );
    assert_eq!(ran.code, Some(6), "{ran:?}");
    assert!(
        ran.err.contains("no-such-helper-x") && ran.err.contains("get it from the wiki"),
        "{ran:?}"
    );
}

#[test]
fn p5_a_token_file_is_read_as_kubectl_reads_it() {
    let fake = Fake::start();
    let server = format!("http://{}", fake.address);
    let directory = tempfile::tempdir().unwrap();
    let path = kubeconfig(directory.path(), &server, "{tokenFile: tf}");
    for text in ["tok-1\n", "tok-1", "tok-1\r\n", "\n tok-1 \n"] {
        std::fs::write(directory.path().join("tf"), text).unwrap();
        Ran::of(
            bare()
                .env("KUBECONFIG", &path)
                .args(["list", "mbk"])
                .output()
                .unwrap(),
        )
        .ok();
    }
    std::fs::write(directory.path().join("tf"), "\n").unwrap();
    let ran = Ran::of(
        bare()
            .env("KUBECONFIG", &path)
            .args(["list", "mbk"])
            .output()
            .unwrap(),
    );
    assert!(
        ran.code == Some(1) && ran.err.contains("is empty"),
        "{ran:?}"
    );
    std::fs::remove_file(directory.path().join("tf")).unwrap();
    let ran = Ran::of(
        bare()
            .env("KUBECONFIG", &path)
            .args(["list", "mbk"])
            .output()
            .unwrap(),
    );
    assert!(
        ran.code == Some(1) && ran.err.contains("tf can't be read"),
        "{ran:?}"
    );
}

#[test]
fn s1_a_kubeconfig_that_can_not_be_read_is_not_quoted() {
    let fake = Fake::start();
    let server = format!("http://{}", fake.address);
    let directory = tempfile::tempdir().unwrap();
    for user in [
        "{token: [S3cr3t-token]}",
        "S3cr3t-token",
        "{token: S3cr3t-token",
        "{exec: S3cr3t-token}",
        "{client-key-data: 'S3cr3t-token !'}",
        "{token: \"S3cr3t-token\\nx\"}",
    ] {
        let path = kubeconfig(directory.path(), &server, user);
        let ran = Ran::of(
            bare()
                .env("KUBECONFIG", &path)
                .args(["list", "mbk"])
                .output()
                .unwrap(),
        );
        assert_ne!(ran.code, Some(0), "{user}: {ran:?}");
        assert!(!ran.err.contains("S3cr3t"), "{user}: {ran:?}");
    }
}

/// A TLS server of openssl's with a certificate of these extensions; ended when dropped.
pub struct Tls {
    child: std::process::Child,
    pub port: u16,
}

impl Drop for Tls {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn certificate(directory: &std::path::Path, name: &str, subject: &str, days: &str) {
    let done = std::process::Command::new("openssl")
        .current_dir(directory)
        .args([
            "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", days, "-subj", "/CN=own",
        ])
        .args([
            "-keyout",
            &format!("{name}.key"),
            "-out",
            &format!("{name}.pem"),
        ])
        .args([
            "-addext",
            "basicConstraints=critical,CA:TRUE",
            "-addext",
            &format!("subjectAltName={subject}"),
        ])
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
}

pub fn tls(directory: &std::path::Path, name: &str) -> Tls {
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let child = std::process::Command::new("openssl")
        .current_dir(directory)
        .args([
            "s_server",
            "-quiet",
            "-www",
            "-accept",
            &format!("127.0.0.1:{port}"),
        ])
        .args([
            "-cert",
            &format!("{name}.pem"),
            "-key",
            &format!("{name}.key"),
        ])
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    eventually("the server listens", || {
        std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
    });
    Tls { child, port }
}

/// kubectl believes the server's own certificate where the kubeconfig names it, for its name and its days
/// alone.
#[test]
fn p5_a_server_that_is_its_own_ca_is_believed_for_its_name() {
    let directory = tempfile::tempdir().unwrap();
    let d = directory.path();
    certificate(d, "own", "IP:127.0.0.1,DNS:own.example", "30");
    certificate(d, "other", "IP:127.0.0.1", "30");
    certificate(d, "elsewhere", "IP:127.0.0.2", "30");
    let believed = |server: &Tls, ca: &str, more: &str| {
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: x\n\
             clusters: [{{name: c, cluster: {{server: 'https://127.0.0.1:{}', certificate-authority: {ca}.pem{more}}}}}]\n\
             contexts: [{{name: x, context: {{cluster: c, user: u, namespace: team-a}}}}]\nusers: [{{name: u, user: {{token: t}}}}]\n",
            server.port
        );
        std::fs::write(d.join("config"), text).unwrap();
        let ran = Ran::of(
            bare()
                .env("KUBECONFIG", d.join("config"))
                .args(["list", "mbk"])
                .output()
                .unwrap(),
        );
        // What answers is no API server: only the way to it matters.
        assert_ne!(ran.code, Some(0), "{ran:?}");
        let lower = ran.err.to_lowercase();
        !["certificate", "issuer", "tls", "handshake"]
            .iter()
            .any(|w| lower.contains(w))
    };
    let server = tls(d, "own");
    assert!(believed(&server, "own", ""));
    assert!(believed(&server, "own", ", tls-server-name: own.example"));
    assert!(!believed(
        &server,
        "own",
        ", tls-server-name: other.example"
    ));
    assert!(!believed(&server, "other", ""));
    let server = tls(d, "elsewhere");
    assert!(!believed(&server, "elsewhere", ""));
}
