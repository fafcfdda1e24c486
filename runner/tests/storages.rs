//! Every storage protocol of a gobackup.io Backup against a real server: what is stored is read
//! back, nothing is overwritten, `keep` removes the oldest, and a mistake is named.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "tests"
)]

mod common;

use std::path::Path;

use common::backup::{Backup, archives, azure_backup, ftp_backup, sh, ssh_backup, storage};
use common::stores::{azure, ftp, ftp_server, gcs, ssh};
use serde_json::{Value, json};

/// A Backup of a Redis to this storage alone.
fn backup_to(storage: Value) -> Backup {
    let mut backup = Backup::new();
    backup.add("storages", storage);
    backup
}

/// Four runs leave two archives, the last of them whole, and no temporary. `names` lists what is
/// stored, hidden files and all, below the storage's path.
fn kept_and_whole(
    backup: &mut Backup,
    names: &dyn Fn() -> Vec<String>,
    read: &dyn Fn(&str) -> Vec<u8>,
) {
    for n in 0..3 {
        backup.run(&format!("nightly-2895087{n}")).assert_good();
    }
    let last = backup.run("nightly-28950879");
    last.assert_good();
    let artefact = &last.report.artefacts[0];
    assert!(artefact.read_back, "{artefact:?}");
    let all = names();
    assert!(!all.iter().any(|n| n.contains(".tmp")), "{all:?}");
    let stored: Vec<&String> = all.iter().filter(|n| n.ends_with(".tar.gz")).collect();
    assert_eq!(stored.len(), 2, "{all:?}");
    let name = artefact.key.rsplit('/').next().unwrap();
    assert!(
        stored.iter().any(|n| n.ends_with(name)),
        "{name} of {all:?}"
    );
    let file = backup.dir().join("fetched");
    std::fs::write(&file, read(&artefact.key)).unwrap();
    assert_eq!(
        file.metadata().unwrap().len(),
        u64::try_from(artefact.size).unwrap()
    );
    assert!(sh("sha256sum < $1", &file).starts_with(&artefact.sha256));
    assert!(sh("tar tzf $1", &file).contains("nightly/redis/cache/dump.rdb"));
}

/// Names below a directory, as in a listing of objects.
fn files(root: &Path) -> Vec<String> {
    let mut found = vec![];
    for entry in std::fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path.display().to_string());
        }
    }
    found
}

/// Whatever name the run could choose first is taken: it is left alone.
fn taken(directory: &Path) -> Vec<std::path::PathBuf> {
    std::fs::create_dir_all(directory).unwrap();
    let now = chrono::Utc::now();
    let mut made = vec![];
    for second in 0..120 {
        let at = now + chrono::Duration::seconds(second);
        let path = directory.join(format!("{}.tar.gz", at.format("%Y.%m.%d.%H.%M.%S")));
        std::fs::write(&path, "another's").unwrap();
        made.push(path);
    }
    made
}

fn left_alone(backup: &mut Backup, directory: &Path) {
    let others = taken(directory);
    let done = backup.run("nightly-28950880");
    done.assert_good();
    assert!(
        done.report.artefacts[0]
            .key
            .ends_with(".ns1.nightly.tar.gz")
    );
    for other in others {
        assert_eq!(std::fs::read_to_string(other).unwrap(), "another's");
    }
}

#[test]
fn ftp_keeps_two_and_overwrites_nothing() {
    let mut backup = ftp_backup(ftp().port, "/a/b", json!({}));
    let root = ftp().root.join("a/b");
    kept_and_whole(&mut backup, &|| files(&root), &|key| {
        std::fs::read(ftp().root.join(key)).unwrap()
    });
    let mut backup = ftp_backup(ftp().port, "taken", json!({}));
    left_alone(&mut backup, &ftp().root.join("taken"));
}

#[test]
fn ftp_under_tls_and_without_machine_listings() {
    let server = ftp_server(true, false);
    let mut backup = ftp_backup(server.port, "", json!({"explicitTls": true}));
    let refused = backup.run("nightly-28950860");
    refused.assert_failed(
        4,
        "StoreUnreachable",
        &["Storage site", "certificate", "no_check_certificate"],
    );
    let certificate = server.root.parent().unwrap().join("cert.pem");
    backup
        .runner
        .env
        .insert("SSL_CERT_FILE".into(), certificate.display().to_string());
    kept_and_whole(&mut backup, &|| files(&server.root), &|key| {
        std::fs::read(server.root.join(key)).unwrap()
    });
    let mut backup = ftp_backup(
        server.port,
        "x",
        json!({"explicitTls": true, "noCheckCertificate": true}),
    );
    backup.run("nightly-28950861").assert_good();
    let mut plain = ftp_backup(server.port, "x", json!({}));
    let refused = plain.run("nightly-28950862");
    assert_eq!(refused.code, Some(4), "{:?}", refused.report);
}

#[test]
fn ftp_names_a_wrong_password_and_a_server_that_is_away() {
    let mut backup = ftp_backup(ftp().port, "", json!({}));
    backup.secret("ftp", "wrong");
    backup.run("nightly-28950870").assert_failed(
        4,
        "PermissionDenied",
        &["Storage site", "check username and password"],
    );
    let mut backup = ftp_backup(common::free_port(), "", json!({}));
    backup.run("nightly-28950870").assert_failed(
        4,
        "StoreUnreachable",
        &["config.host", "NetworkPolicy"],
    );
}

#[test]
fn sftp_keeps_two_and_overwrites_nothing() {
    let root = ssh().root.join("a/b");
    let mut backup = ssh_backup(root.to_str().unwrap(), json!({}));
    kept_and_whole(&mut backup, &|| files(&root), &|key| {
        std::fs::read(Path::new("/").join(key)).unwrap()
    });
    let root = ssh().root.join("taken");
    let mut backup = ssh_backup(root.to_str().unwrap(), json!({}));
    left_alone(&mut backup, &root);
}

#[test]
fn sftp_takes_an_rsa_key_and_checks_the_host_key() {
    let root = ssh().root.join("keys");
    let at = root.to_str().unwrap();
    let mut backup = ssh_backup(at, json!({"hostKey": ssh().fingerprint}));
    backup.secret("ssh-key", &ssh().rsa);
    backup.secret("ssh-pass", "");
    let done = backup.run("nightly-28950870");
    done.assert_good();
    assert!(
        done.report.warnings.is_empty(),
        "{:?}",
        done.report.warnings
    );

    let mut backup = ssh_backup(at, json!({"hostKey": null}));
    let done = backup.run("nightly-28950871");
    done.assert_good();
    let told = done.report.warnings.join("; ");
    assert!(
        told.contains("not checked") && told.contains(&ssh().fingerprint),
        "{told}"
    );

    let mut backup = ssh_backup(
        at,
        json!({"hostKey": "SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}),
    );
    backup.run("nightly-28950872").assert_failed(
        4,
        "HostKeyChanged",
        &["config.host_key", &ssh().fingerprint],
    );
    let mut backup = ssh_backup(at, json!({}));
    backup.secret("ssh-key", &ssh().rsa.replace("RSA", "XYZ"));
    backup
        .run("nightly-28950873")
        .assert_failed(2, "InvalidSettings", &["config.private_key"]);
}

#[test]
fn gcs_keeps_two_and_overwrites_nothing() {
    let root = gcs().root.join("backups/a/b");
    let fields = json!({"bucket": "backups", "endpoint": gcs().url});
    let mut backup = backup_to(storage("cloud", "gcs", "a/b", fields.clone()));
    let read = |key: &str| std::fs::read(gcs().root.join("backups").join(key)).unwrap();
    let names = || {
        files(&root)
            .into_iter()
            .filter(|n| !n.ends_with(".metadata"))
            .collect()
    };
    kept_and_whole(&mut backup, &names, &read);
    let mut backup = backup_to(storage(
        "cloud",
        "gcs",
        "nowhere",
        json!({"bucket": "absent", "endpoint": gcs().url}),
    ));
    let done = backup.run("nightly-28950870");
    assert_eq!(done.code, Some(4), "{:?}", done.report);
}

#[test]
fn gcs_takes_an_archive_in_parts() {
    let fields = json!({"bucket": "backups", "endpoint": gcs().url});
    let mut backup = backup_to(storage("cloud", "gcs", "parts", fields));
    backup.plan["compress"] = json!({"codec": "tar"});
    let big = common::servers::start_redis(&backup.dir(), None);
    for n in 0..20 {
        let value = sh("head -c 750000 /dev/urandom | base64 -w0", Path::new("/"));
        let file = backup.dir().join("value");
        std::fs::write(&file, value).unwrap();
        sh(&format!("redis-cli -p {big} -x set k{n} < $1"), &file);
    }
    backup.plan["databases"][0]["port"] = json!(big);
    backup.plan["databases"][0]
        .as_object_mut()
        .unwrap()
        .remove("password");
    let done = backup.run("nightly-28950870");
    done.assert_good();
    let artefact = &done.report.artefacts[0];
    assert!(artefact.size > 15_000_000, "{artefact:?}");
    let stored = gcs().root.join("backups").join(&artefact.key);
    assert!(sh("sha256sum < $1", &stored).starts_with(&artefact.sha256));
}

#[test]
fn azure_keeps_two_and_names_what_is_wrong() {
    let mut backup = azure_backup("a/b", json!({}));
    kept_and_whole(&mut backup, &|| azure().list("a/b"), &|key| {
        azure().request("GET", &format!("backups/{key}"))
    });
    let mut backup = azure_backup("a/b", json!({}));
    backup.secret("azure", "wrong");
    let done = backup.run("nightly-28950870");
    assert_eq!(done.code, Some(4), "{:?}", done.report);
    let mut backup = azure_backup("a/b", json!({"tenantId": null}));
    backup
        .run("nightly-28950870")
        .assert_failed(2, "InvalidSettings", &["tenant_id"]);
}

#[test]
fn all_at_once_hold_the_same_bytes() {
    let mut backup = ftp_backup(ftp().port, "all", json!({}));
    let at = ssh().root.join("all");
    let more = ssh_backup(at.to_str().unwrap(), json!({}));
    backup.add("storages", more.plan["storages"][0].clone());
    let fields = json!({"bucket": "backups", "endpoint": gcs().url});
    backup.add("storages", storage("cloud", "gcs", "all", fields));
    let done = backup.run("nightly-28950870");
    done.assert_good();
    assert_eq!(done.report.artefacts.len(), 3);
    assert_eq!(archives(&ftp().root.join("all")).len(), 1);
    assert_eq!(archives(&at).len(), 1);
    let hashes: Vec<_> = done.report.artefacts.iter().map(|a| &a.sha256).collect();
    assert!(hashes.iter().all(|h| *h == hashes[0]));
}

#[test]
fn an_image_without_ca_certificates_is_said_with_what_helps() {
    let mut backup = Backup::new().with_dav("x", 2);
    let nothing = backup.dir().join("no-certificates").display().to_string();
    backup.runner.env.insert("SSL_CERT_FILE".into(), nothing);
    backup.run("nightly-28950870").assert_failed(
        1,
        "HttpFailed",
        &["CA certificates", "ca-certificates", "SSL_CERT_FILE"],
    );
}

/// Files of attempts that were killed days ago, on servers that keep files: a temporary, a claim, and the
/// archive and parts it names. What is young, or nobody's of the runner, stays.
fn leftovers_go(backup: &mut Backup, root: &Path, path: &str) {
    std::fs::create_dir_all(root.join("2025.01.02.00.00.00")).unwrap();
    let key = |name: &str| {
        let path = path.trim_matches('/');
        if path.is_empty() {
            name.to_owned()
        } else {
            format!("{path}/{name}")
        }
    };
    let claim = |name: &str, split: bool| {
        json!({"object": {"kind": "Backup", "namespace": "ns1", "name": "nightly", "uid": "uid-1"}, "run": "nightly-1",
            "key": key(name), "manifest": key(".gobackup-state/x/none.json"), "split": split})
        .to_string()
    };
    let old = [
        (".backup-runner.r-9~p~1-1~a.tmp", "x".to_owned()),
        (
            ".backup-runner.r-1~p~2-1~a.claim",
            claim("2025.01.01.00.00.00.tar.gz", false),
        ),
        ("2025.01.01.00.00.00.tar.gz", "x".to_owned()),
        (
            ".backup-runner.r-2~p~3-1~a.claim",
            claim("2025.01.02.00.00.00/2025.01.02.00.00.00.tar", true),
        ),
        (
            "2025.01.02.00.00.00/2025.01.02.00.00.00.tar-000",
            "x".to_owned(),
        ),
        (
            "2025.01.02.00.00.00/.backup-runner.r-2~p~3-1~a.tmp",
            "x".to_owned(),
        ),
    ];
    for (name, text) in &old {
        std::fs::write(root.join(name), text).unwrap();
        sh("touch -d '3 days ago' $1", &root.join(name));
    }
    let stay = [
        ".backup-runner.r-8~p~4-1~a.tmp",
        "2024.01.01.00.00.00.tar.gz",
        "photos.tar",
        ".hidden",
    ];
    for name in stay {
        std::fs::write(root.join(name), "x").unwrap();
    }
    sh("touch -d '3 days ago' $1", &root.join("photos.tar"));
    sh("chmod -R a+rwX $1", root);
    backup.run("nightly-28950870").assert_good();
    for (name, _) in &old {
        assert!(!root.join(name).exists(), "{name} is left");
    }
    for name in stay {
        assert!(root.join(name).exists(), "{name} is gone");
    }
}

#[test]
fn r5_leftovers_on_ftp_sftp_webdav_and_disk_go() {
    let mut backup = ftp_backup(ftp().port, "left", json!({}));
    leftovers_go(&mut backup, &ftp().root.join("left"), "left");
    let root = ssh().root.join("left");
    let mut backup = ssh_backup(root.to_str().unwrap(), json!({}));
    leftovers_go(&mut backup, &root, root.to_str().unwrap());
    let root = common::servers::webdav().1.join("left");
    let mut backup = Backup::new().with_dav("left", 2);
    leftovers_go(&mut backup, &root, "left");
    let mut backup = Backup::new().with_disk(2);
    let root = backup.disk();
    leftovers_go(&mut backup, &root, "");
}
