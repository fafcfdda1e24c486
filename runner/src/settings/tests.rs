#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
use crate::settings::*;
use crds::parts::CompressionType;

const BASE: [(&str, &str); 5] = [
    ("HOST", "db"),
    ("PORT", "3306"),
    ("USERNAME", "bk"),
    ("PASSWORD", "plain"),
    ("SQLPATH", "/mnt"),
];

fn parse(change: &[(&str, &str)], files: &[(&str, &str)]) -> Settings {
    let mut env: Environment = BASE.map(|(k, v)| (k.to_owned(), v.to_owned())).into();
    for (name, value) in change {
        if *value == "-" {
            env.remove(*name);
        } else {
            env.insert((*name).to_owned(), (*value).to_owned());
        }
    }
    let read = |path: &str| {
        files
            .iter()
            .find(|(p, _)| *p == path)
            .map(|(_, text)| (*text).to_owned())
            .ok_or_else(|| "no such file".to_owned())
    };
    Settings::parse(&env, &read)
}

fn spec(more: serde_json::Value) -> String {
    let mut spec = serde_json::json!({
        "version": 1, "action": "Backup",
        "object": {"kind": "MysqlBackup", "namespace": "ns1", "name": "shop", "uid": "u"},
        "run": {"name": "shop-28950870", "slot": "2025-01-15T10:30:00Z", "trigger": "Schedule"},
    });
    for (key, value) in more.as_object().unwrap() {
        spec[key] = value.clone();
    }
    spec.to_string()
}

#[track_caller]
fn source_error(change: &[(&str, &str)], word: &str) {
    let failure = parse(change, &[]).source().err().unwrap();
    assert_eq!(failure.exit_code, 2);
    assert!(
        failure.message.contains(word),
        "{word:?} is not in {:?}",
        failure.message
    );
}

#[test]
fn the_originals_environment_is_read() {
    let settings = parse(
        &[
            ("TZ", "Asia/Shanghai"),
            ("EXPIREAT", "24h"),
            ("APIURL", "https://open.feishu.cn/open-apis/bot/v2/hook/xxx"),
            ("TIMEOUT", "9"),
        ],
        &[],
    );
    settings.check().unwrap();
    let source = settings.source().unwrap();
    assert_eq!(
        (source.host.as_str(), source.port, source.username.as_str()),
        ("db", 3306, "bk")
    );
    assert_eq!(source.password.expose_secret(), "plain");
    assert_eq!(source.databases, Databases::All);
    assert!(
        matches!(settings.destination().unwrap(), Destination::Volume(p) if p == std::path::Path::new("/mnt"))
    );
    assert_eq!(settings.timeout, Some(Duration::from_secs(9 * 3600)));
    assert_eq!(settings.zone, chrono_tz::Asia::Shanghai);
    assert_eq!(
        settings.retention.as_ref().unwrap().max_age.as_deref(),
        Some("24h")
    );
    assert_eq!(settings.action, Action::Backup);
    assert_eq!(settings.identity.directory(), "db-3306");
    assert!(settings.warnings.is_empty(), "{:?}", settings.warnings);
}

#[test]
fn time_limits() {
    for (text, seconds) in [("5s", 5), ("1h30m", 5400), ("3", 10_800), (" 9 ", 32_400)] {
        assert_eq!(
            parse(&[("TIMEOUT", text)], &[]).timeout,
            Some(Duration::from_secs(seconds)),
            "{text}"
        );
    }
    for text in [
        "0",
        "-1",
        "0s",
        "-5s",
        "1.5",
        "nine",
        "99999999999999999999",
        "5 s",
    ] {
        let failure = parse(&[("TIMEOUT", text)], &[]).check().unwrap_err();
        assert!(failure.message.contains("TIMEOUT"), "{text}: {failure}");
    }
    assert_eq!(parse(&[("TIMEOUT", "")], &[]).timeout, None);
    for text in ["24", "0", "-1h", "tomorrow"] {
        assert!(parse(&[("EXPIREAT", text)], &[]).check().is_err(), "{text}");
    }
}

#[test]
fn hosts_c89() {
    for (text, host) in [
        ("::1", "::1"),
        ("[::1]", "::1"),
        ("fd00::10", "fd00::10"),
        ("localhost", "localhost"),
        (" db ", "db"),
    ] {
        assert_eq!(parse(&[("HOST", text)], &[]).source().unwrap().host, host);
    }
    source_error(&[("HOST", "db:3306")], "PORT");
    source_error(&[("HOST", "mysql://db")], "URL");
    source_error(&[("HOST", "-x")], "host name");
    source_error(&[("HOST", "-"), ("PORT", "99999")], "HOST is not set");
    source_error(&[("PORT", "99999")], "1 to 65535");
    source_error(&[("PORT", "0")], "1 to 65535");
    source_error(&[("USERNAME", "-")], "USERNAME is not set");
}

#[test]
fn passwords_are_kept_byte_for_byte_but_for_one_newline_c75_c76() {
    for text in ["pa$word", " lead ", "a$$b$(HOST)c", "-dash", "=eq="] {
        let settings = parse(&[("PASSWORD", text)], &[]);
        assert_eq!(settings.source().unwrap().password.expose_secret(), text);
        assert!(settings.warnings.is_empty());
    }
    for (text, password) in [
        ("plain\n", "plain"),
        ("plain\n\n", "plain\n"),
        ("plain\r\n", "plain"),
    ] {
        let settings = parse(&[("PASSWORD", text)], &[]);
        assert_eq!(
            settings.source().unwrap().password.expose_secret(),
            password
        );
        assert!(settings.warnings[0].contains("ends in a newline"));
        assert!(!settings.warnings[0].contains("plain"));
    }
}

#[test]
fn nothing_debugged_shows_a_secret() {
    let settings = parse(
        &[
            ("PASSWORD", "S3cr3t-marker"),
            ("APIURL", "https://x.example/hook/S3cr3t-token"),
        ],
        &[],
    );
    let text = format!("{settings:?}");
    assert!(!text.contains("S3cr3t"), "{text}");
    assert_eq!(
        settings.scrub().clean("S3cr3t-marker S3cr3t-token"),
        "*** ***"
    );
}

#[test]
fn lists_c93() {
    let list = |text: &str| {
        parse(&[("DATABASES", text)], &[])
            .source()
            .map(|s| s.databases.clone())
    };
    let names = |n: &[&str]| Databases::Listed(n.iter().map(|s| (*s).to_owned()).collect());
    assert_eq!(list("a,b").unwrap(), names(&["a", "b"]));
    assert_eq!(list("a b").unwrap(), names(&["a", "b"]));
    assert_eq!(list("a b, c").unwrap(), names(&["a b", "c"]));
    source_error(&[("DATABASES", "")], "set but empty");
    source_error(&[("DATABASES", "a,,b")], "empty name");
    source_error(&[("EXCLUDE_TABLES", "big")], "database.table");
    source_error(
        &[("MYSQLDUMP_ARGS", "--result-file=/x")],
        "--result-file is not accepted",
    );
    source_error(&[("MYSQLDUMP_ARGS", "--where='id<5")], "quote");
    let settings = parse(&[("MYSQLDUMP_ARGS", "--where='id < 5' --no-data")], &[]);
    assert_eq!(
        settings.source().unwrap().extra_args,
        ["--where=id < 5", "--no-data"]
    );
}

#[test]
fn typed_fields_win_with_a_warning() {
    let text = spec(serde_json::json!({
        "source": {"host": "other", "usernameFile": "/u", "passwordFile": "/p", "databases": ["x"], "tlsMode": "Required"},
        "destination": {"path": "/vol/sub"},
        "retention": {"keepLast": 3},
        "timeoutSeconds": 60,
    }));
    let settings = parse(
        &[
            ("BACKUP_SPEC", &text),
            ("EXPIREAT", "24h"),
            ("TIMEOUT", "9"),
            ("DATABASES", "y"),
        ],
        &[("/u", "typed\n"), ("/p", "secret")],
    );
    settings.check().unwrap();
    let source = settings.source().unwrap();
    assert_eq!((source.host.as_str(), source.port), ("other", 3306));
    assert_eq!(
        (source.username.as_str(), source.password.expose_secret()),
        ("typed", "secret")
    );
    assert_eq!(source.databases, Databases::Listed(vec!["x".into()]));
    assert_eq!(settings.timeout, Some(Duration::from_secs(60)));
    assert_eq!(settings.retention.as_ref().unwrap().keep_last, Some(3));
    for variable in [
        "HOST",
        "USERNAME",
        "PASSWORD",
        "SQLPATH",
        "EXPIREAT",
        "DATABASES",
    ] {
        assert!(
            settings.warnings.iter().any(|w| w.starts_with(variable)),
            "{variable}: {:?}",
            settings.warnings
        );
    }
    assert_eq!(settings.identity.directory(), "ns1/MysqlBackup/shop");
}

#[test]
fn keys() {
    let text = spec(serde_json::json!({}));
    let identity = parse(&[("BACKUP_SPEC", &text)], &[]).identity;
    let at = crds::time::parse_rfc3339("2025-01-15T10:30:07Z").unwrap();
    assert_eq!(
        identity.key(at, CompressionType::Zstd, true),
        "ns1/MysqlBackup/shop/20250115T103000Z-28950870.sql.zst.age"
    );
    assert_eq!(
        identity.key(at, CompressionType::None, false),
        "ns1/MysqlBackup/shop/20250115T103000Z-28950870.sql"
    );
    let bare = parse(&[("HOST", "::1"), ("HOSTNAME", "pod-1")], &[]).identity;
    let key = bare.key(at, CompressionType::Gzip, false);
    assert!(
        key.starts_with("__1-3306/20250115T103007Z-") && key.ends_with(".sql.gz"),
        "{key}"
    );
    assert_eq!(key, bare.key(at, CompressionType::Gzip, false));
}

#[test]
fn a_bad_spec_is_told() {
    for (text, word) in [
        ("{", "can't be read"),
        (&*spec(serde_json::json!({"version": 9})), "version 9"),
    ] {
        let failure = parse(&[("BACKUP_SPEC", text)], &[]).check().unwrap_err();
        assert!(failure.message.contains(word), "{failure}");
    }
    let text = spec(serde_json::json!({"source": {"passwordFile": "/gone"}}));
    let failure = parse(&[("BACKUP_SPEC", &text)], &[])
        .source()
        .err()
        .unwrap();
    assert!(
        failure.message.contains("/gone") && failure.message.contains("Secret"),
        "{failure}"
    );
    let text = spec(serde_json::json!({"encryption": {"age": {"recipients": []}}}));
    assert!(parse(&[("BACKUP_SPEC", &text)], &[]).check().is_err());
    assert!(
        parse(&[("SQLPATH", "-")], &[])
            .destination()
            .err()
            .unwrap()
            .message
            .contains("SQLPATH")
    );
    assert!(parse(&[("SQLPATH", "mnt")], &[]).destination().is_err());
    assert!(parse(&[("APIURL", "ftp://x")], &[]).check().is_err());
    assert!(parse(&[("TZ", "Mars/X")], &[]).warnings[0].contains("Mars/X"));
}

#[test]
fn s3_tls_that_is_demanded_and_an_argument_that_takes_it_back_do_not_go_together() {
    for (mode, arg) in [
        ("Required", "--skip-ssl"),
        ("VerifyCA", "--ssl-mode=DISABLED"),
        ("VerifyIdentity", "--loose-skip_ssl"),
    ] {
        for by_field in [true, false] {
            let mut source = serde_json::json!({"tlsMode": mode});
            let mut env = vec![];
            if by_field && arg == "--skip-ssl" {
                source["extraArgs"] = serde_json::json!([arg]);
            } else {
                env.push(("MYSQLDUMP_ARGS", arg));
            }
            let text = spec(serde_json::json!({"source": source}));
            env.push(("BACKUP_SPEC", &text));
            let problems = parse(&env, &[]).source.err().unwrap().join("; ");
            assert!(
                problems.contains(arg.split('=').next().unwrap())
                    && problems.contains("spec.source.tls.mode"),
                "{problems}"
            );
        }
    }
    let text = spec(serde_json::json!({"source": {"tlsMode": "Preferred"}}));
    let settings = parse(
        &[("BACKUP_SPEC", &text), ("MYSQLDUMP_ARGS", "--skip-ssl")],
        &[],
    );
    assert_eq!(settings.source().unwrap().extra_args, ["--skip-ssl"]);
}

#[test]
fn the_engine_and_its_connections_are_those_of_the_spec() {
    let with = |source: serde_json::Value| {
        let text = spec(serde_json::json!({ "source": source }));
        parse(
            &[("BACKUP_SPEC", &text), ("HOST", "h"), ("USERNAME", "u")],
            &[],
        )
    };
    let settings = with(serde_json::json!({"engine": "Native", "accounts": true, "sessions": 7}));
    let source = settings.source().unwrap();
    assert_eq!(source.engine, Some(crds::parts::Engine::Native));
    assert!(source.accounts);
    assert_eq!(source.sessions(2), 7);
    let settings = with(serde_json::json!({}));
    let source = settings.source().unwrap();
    assert_eq!((source.engine, source.accounts), (None, false));
    let unset: Vec<usize> = [0, 1, 3, 64].map(|cpus| source.sessions(cpus)).into();
    assert_eq!(unset, [1, 1, 3, 4]);
    for sessions in [0, 17, -1] {
        let settings = with(serde_json::json!({ "sessions": sessions }));
        let problems = settings.source.err().unwrap().join("; ");
        assert!(problems.contains("spec.source.sessions"), "{problems}");
    }
}

/// Arguments that name a password are refused, and not repeated.
#[test]
fn s1_an_argument_that_holds_a_secret_is_not_repeated() {
    for args in [
        "--password=S3cr3t-Canary",
        "-pS3cr3t-Canary",
        "--pass=S3cr3t-Canary",
        "--defaults-file=/S3cr3t-Canary",
        "S3cr3t-Canary",
        "'S3cr3t-Canary",
    ] {
        let problems = parse(&[("MYSQLDUMP_ARGS", args)], &[])
            .source
            .err()
            .unwrap();
        assert!(!problems.join("; ").contains("S3cr3t"), "{problems:?}");
    }
}
