//! The protocol, spoken with real servers: logins, values, large packets, loads, events, and every end of a wait.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    missing_docs,
    unreachable_pub,
    reason = "tests"
)]

mod common;

use std::sync::Arc;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use common::databases::{self, Certificates};
use common::{MariaDb, fixture};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use wire::{Address, Connection, Error, From, Kind, Settings, Tls};

fn certificates() -> &'static Certificates {
    static MADE: OnceLock<Certificates> = OnceLock::new();
    MADE.get_or_init(|| {
        let made = Certificates::make();
        common::remove_with_this_process(made.dir.path());
        made
    })
}

/// TLS that believes the test's CA.
fn tls(required: bool, ca: &str) -> Tls {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(certificates().path(ca)).unwrap() {
        roots.add(certificate.unwrap()).unwrap();
    }
    let config = ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth();
    Tls {
        config: Arc::new(config),
        name: ServerName::try_from("127.0.0.1").unwrap(),
        required,
    }
}

fn tcp(db: &MariaDb, user: &str, password: &str) -> Settings {
    let address = Address::Tcp("127.0.0.1".into(), db.port);
    let mut settings = Settings::new(address, user, password.to_owned().into());
    settings.limits.idle = Some(Duration::from_secs(60));
    settings
}

fn socket(db: &MariaDb, user: &str, password: &str) -> Settings {
    let mut settings = tcp(db, user, password);
    settings.address = Address::Socket(db.dir.path().join("s"));
    settings
}

fn encrypted(db: &MariaDb, user: &str, password: &str) -> Settings {
    let mut settings = tcp(db, user, password);
    settings.tls = Some(tls(true, "ca.pem"));
    settings
}

/// The one value of a statement.
fn one(connection: &mut Connection, statement: &str) -> String {
    let mut rows = connection.query(statement).unwrap();
    let value = rows.read().unwrap().unwrap().text().unwrap().to_owned();
    assert!(rows.read().unwrap().is_none());
    value
}

fn options(certificate: &str) -> Vec<String> {
    let mut options = certificates().options(certificate).to_vec();
    options.push("--log-bin=bin".into());
    options.push("--server-id=1".into());
    options
}

fn started(start: fn(&[&str]) -> MariaDb, more: &[&str], users: &str) -> MariaDb {
    let options = options("server");
    let options: Vec<&str> = options
        .iter()
        .map(String::as_str)
        .chain(more.iter().copied())
        .collect();
    let db = start(&options);
    db.sql(users);
    db.end_with_process();
    db
}

fn mariadb() -> &'static MariaDb {
    static SHARED: OnceLock<MariaDb> = OnceLock::new();
    SHARED.get_or_init(|| {
        started(
            MariaDb::start_with,
            &[
                "--plugin-load-add=auth_ed25519",
                "--plugin-load-add=auth_pam_v1",
            ],
            "create user native@'%' identified by 'p€ss'; create user nobody@'%';
             create user ed@'%' identified via ed25519 using password('p€ss');
             create user other@'%' identified via pam;
             grant all on *.* to native@'%'; grant all on *.* to ed@'%'; create database w",
        )
    })
}

fn mariadb_11() -> &'static MariaDb {
    static SHARED: OnceLock<MariaDb> = OnceLock::new();
    SHARED.get_or_init(|| {
        started(
            databases::mariadb_11,
            &["--plugin-load-add=auth_parsec"],
            "create user native@'%' identified by 'p€ss';
             create user parsec@'%' identified via parsec using password('p€ss'); create database w",
        )
    })
}

fn mysql() -> &'static MariaDb {
    static SHARED: OnceLock<MariaDb> = OnceLock::new();
    SHARED.get_or_init(|| {
        started(
            databases::mysql,
            &[],
            "create user sha@'%' identified by 'p€ss'; create user plain@'%' identified by 'p€ss';
             create user warm@'%' identified by 'p€ss'; create user local@'%' identified by 'p€ss';
             create user sha256@'%' identified with sha256_password by 'p€ss';
             create user nobody@'%'; grant all on *.* to sha@'%'; create database w",
        )
    })
}

#[test]
fn a_user_of_every_plugin_logs_in() {
    type Way = fn(&MariaDb, &str, &str) -> Settings;
    let table: [(&MariaDb, &str, &str, Way); 15] = [
        (mariadb(), "native", "p€ss", tcp),
        (mariadb(), "native", "p€ss", encrypted),
        (mariadb(), "native", "p€ss", socket),
        (mariadb(), "nobody", "", tcp),
        (mariadb(), "ed", "p€ss", tcp),
        (mariadb(), "ed", "p€ss", encrypted),
        (mariadb_11(), "native", "p€ss", encrypted),
        (mariadb_11(), "parsec", "p€ss", tcp),
        (mariadb_11(), "parsec", "p€ss", encrypted),
        // The server does not know these by heart: the password goes through TLS, under its RSA key, through the socket.
        (mysql(), "sha", "p€ss", encrypted),
        (mysql(), "plain", "p€ss", tcp),
        (mysql(), "local", "p€ss", socket),
        (mysql(), "sha256", "p€ss", encrypted),
        (mysql(), "sha256", "p€ss", tcp),
        (mysql(), "nobody", "", tcp),
    ];
    for (db, user, password, way) in table {
        let settings = way(db, user, password);
        let mut connection = Connection::open(&settings).unwrap_or_else(|e| panic!("{user}: {e}"));
        assert_eq!(
            one(&mut connection, "select current_user()"),
            format!("{user}@%")
        );
        assert_eq!(
            connection.is_secure(),
            settings.tls.is_some()
                || user == "local"
                || matches!(settings.address, Address::Socket(_))
        );
        if settings.tls.is_some() {
            let mut rows = connection.query("show status like 'Ssl_version'").unwrap();
            let mut row = rows.read().unwrap().unwrap();
            row.value().unwrap();
            assert!(row.text().unwrap().starts_with("TLSv1."));
        }
        // What is not the password does not open.
        let wrong = way(db, user, "p€s");
        match Connection::open(&wrong) {
            Err(Error::Server(e)) => {
                assert_eq!((e.number, &e.state[..]), (1045, "28000"), "{user}: {e}")
            }
            other => panic!("{user}: {other:?}"),
        }
    }
    // By heart now: no key and no TLS is needed.
    for _ in 0..2 {
        Connection::open(&tcp(mysql(), "warm", "p€ss")).unwrap();
    }
}

/// PAM's wrapper copies its services to a directory beside this one, and leaves it there when its process is killed.
struct Copies(tempfile::TempDir);

impl Drop for Copies {
    fn drop(&mut self) {
        let own = self.0.path().to_str().unwrap();
        let beside = std::fs::read_dir(std::env::temp_dir()).unwrap();
        for copy in beside.flatten().map(|entry| entry.path()) {
            let service = std::fs::read_to_string(copy.join("wire")).unwrap_or_default();
            if service.contains(own) {
                let _ = std::fs::remove_dir_all(copy);
            }
        }
    }
}

/// By PAM, with a table of passwords: the server reads the password itself, so it goes under TLS or not at all.
#[test]
fn a_password_goes_as_it_is_under_tls_alone() {
    // Goes after the server.
    let copies = Copies(tempfile::Builder::new().prefix("pam").tempdir().unwrap());
    let home = copies.0.path();
    let (services, passwords) = (home.join("services"), home.join("passwords"));
    std::fs::create_dir(&services).unwrap();
    std::fs::write(&passwords, "pam:p\u{20ac}ss:wire\n").unwrap();
    let module = format!(
        "/usr/lib/{}-linux-gnu/pam_wrapper/pam_matrix.so",
        std::env::consts::ARCH
    );
    assert!(
        std::path::Path::new(&module).exists(),
        "apt-get install libpam-wrapper"
    );
    let line = |what: &str| format!("{what} required {module} passdb={}\n", passwords.display());
    std::fs::write(services.join("wire"), line("auth") + &line("account")).unwrap();
    common::run(
        std::process::Command::new("chmod")
            .args(["-R", "a+rX"])
            .arg(home),
    );
    let environment = [
        ("LD_PRELOAD", "libpam_wrapper.so"),
        ("PAM_WRAPPER", "1"),
        ("PAM_WRAPPER_SERVICE_DIR", services.to_str().unwrap()),
    ];
    let options = options("server");
    let mut options: Vec<&str> = options.iter().map(String::as_str).collect();
    options.extend([
        "--plugin-load-add=auth_pam_v1",
        "--pam-use-cleartext-plugin=1",
    ]);
    let db = MariaDb::start_in(&environment, &options);
    db.sql("create user pam@'%' identified via pam using 'wire'");

    let mut connection = Connection::open(&encrypted(&db, "pam", "p€ss")).unwrap();
    assert_eq!(one(&mut connection, "select current_user()"), "pam@%");
    match Connection::open(&encrypted(&db, "pam", "p€s")) {
        Err(Error::Server(e)) => assert_eq!(e.number, 1045, "{e}"),
        other => panic!("{other:?}"),
    }
    match Connection::open(&tcp(&db, "pam", "p€ss")) {
        Err(Error::PasswordKept(_)) => {}
        other => panic!("{other:?}"),
    }
}

/// TLS 1.2 and 1.3 are spoken; 1.1 is not, though the server would.
#[test]
fn tls_of_before_1_2_is_refused() {
    let start = |version: &str| {
        let version = format!("--tls-version={version}");
        started(
            MariaDb::start_with,
            &[&version, "--ssl-cipher=DEFAULT@SECLEVEL=0"],
            "create user native@'%' identified by 'p€ss'",
        )
    };
    for version in ["TLSv1.2", "TLSv1.3"] {
        let db = start(version);
        let mut connection = Connection::open(&encrypted(&db, "native", "p€ss")).unwrap();
        let mut rows = connection.query("show status like 'Ssl_version'").unwrap();
        let mut row = rows.read().unwrap().unwrap();
        row.value().unwrap();
        assert_eq!(row.text().unwrap(), version);
    }
    let db = start("TLSv1.1");
    let spoken = std::process::Command::new("openssl")
        .args([
            "s_client",
            "-starttls",
            "mysql",
            "-tls1_1",
            "-cipher",
            "DEFAULT@SECLEVEL=0",
            "-connect",
        ])
        .arg(format!("127.0.0.1:{}", db.port))
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    let spoken = String::from_utf8_lossy(&spoken.stdout).into_owned();
    assert!(
        spoken.contains("Protocol  : TLSv1.1") && spoken.contains("Cipher is ECDHE"),
        "{spoken}"
    );
    match Connection::open(&encrypted(&db, "native", "p€ss")) {
        Err(Error::Tls(_)) => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_not_supported_or_believed_is_said() {
    // PAM asks people; nobody is there to answer.
    match Connection::open(&encrypted(mariadb(), "other", "x")) {
        Err(Error::Plugin(name)) => assert_eq!(name, "dialog"),
        other => panic!("{other:?}"),
    }
    // A certificate of nobody's, and one of another host.
    let mut settings = tcp(mariadb(), "native", "p€ss");
    settings.tls = Some(tls(true, "other-ca.pem"));
    assert!(matches!(Connection::open(&settings), Err(Error::Tls(_))));
    settings.tls = Some(Tls {
        name: ServerName::try_from("elsewhere.invalid").unwrap(),
        ..tls(true, "ca.pem")
    });
    assert!(matches!(Connection::open(&settings), Err(Error::Tls(_))));
    // A server without TLS: refused where it is demanded, spoken to where it is not.
    let mut settings = tcp(fixture(), "full", "S3cr3t-marker");
    settings.tls = Some(tls(true, "ca.pem"));
    assert!(matches!(Connection::open(&settings), Err(Error::NoTls)));
    settings.tls = Some(tls(false, "ca.pem"));
    assert!(!Connection::open(&settings).unwrap().is_secure());
    // Nobody listens.
    settings.address = Address::Tcp("127.0.0.1".into(), common::free_port());
    assert!(matches!(
        Connection::open(&settings),
        Err(Error::Unreachable { .. })
    ));
}

/// One column of each type: its name, its type, and values as SQL writes them.
const TYPES: &[(&str, &str, &[&str])] = &[
    ("i", "bigint unsigned", &["0", "1", "18446744073709551615"]),
    ("t", "tinyint", &["-128", "127"]),
    (
        "d",
        "decimal(40,10)",
        &["-123456789012345678901234567890.0123456789", "0"],
    ),
    ("f", "float", &["1.5", "-3.4e38", "0.1"]),
    ("e", "double", &["1e300", "-0.1", "1234567.25"]),
    ("b", "bit(10)", &["b'1111111111'", "b'0'", "b'101'"]),
    ("da", "date", &["'2024-02-29'", "'9999-12-31'"]),
    (
        "dt",
        "datetime(6)",
        &["'2024-02-29 23:59:59.999999'", "'1000-01-01'"],
    ),
    ("ti", "time(3)", &["'-838:59:59'", "'00:00:00.125'"]),
    ("y", "year", &["1901", "2155"]),
    ("c", "char(9) character set latin1", &["'ä'", "''"]),
    (
        "v",
        "varchar(40) character set utf8mb4",
        &["'\u{1f600}'", "'a\\0b''c'", "''"],
    ),
    ("bi", "binary(4)", &["x'00ff'", "x''"]),
    ("bl", "longblob", &["x'00'", "x''", "repeat(x'ff', 70000)"]),
    ("en", "enum('a','ö')", &["'a'", "'ö'"]),
    ("se", "set('a','b')", &["'a,b'", "''"]),
    ("j", "json", &["'{\"a\": [1, null]}'", "'1'"]),
    ("g", "point", &["point(1, 2)", "point(-1.5, 0)"]),
];

/// Each value is what the server's own client reads.
#[test]
fn every_value_is_what_the_client_reads() {
    for (db, user) in [(mariadb(), "native"), (mysql(), "sha")] {
        let mut connection = Connection::open(&encrypted(db, user, "p€ss")).unwrap();
        connection.execute("set names utf8mb4").unwrap();
        for (name, kind, values) in TYPES {
            let table = format!("w.type_{name}");
            connection
                .execute(&format!(
                    "create table {table} (id int primary key auto_increment, {name} {kind})"
                ))
                .unwrap();
            for row in values.iter().chain(&["NULL"]) {
                connection
                    .execute(&format!("insert into {table} ({name}) values ({row})"))
                    .unwrap();
            }
            // The connection's character set is that of no column.
            let read = match *name {
                "c" | "v" | "en" | "se" | "j" => format!("convert({name} using utf8mb4)"),
                _ => (*name).to_owned(),
            };
            let expected = db.sql(&format!(
                "select ifnull(hex(cast({read} as binary)), 'NULL') from {table} order by id"
            ));
            let mut found = Vec::new();
            let mut rows = connection
                .query(&format!("select {name}, id from {table} order by id"))
                .unwrap();
            let column = rows.columns()[0].clone();
            while let Some(mut row) = rows.read().unwrap() {
                let value = row.value().unwrap().map_or("NULL".to_owned(), |v| {
                    v.iter().map(|b| format!("{b:02X}")).collect()
                });
                row.text().unwrap();
                assert!(row.is_empty());
                found.push(value);
            }
            assert_eq!(found, expected.lines().collect::<Vec<_>>(), "{kind}");
            assert_eq!(found.len(), values.len() + 1);
            let wanted = match *name {
                "i" | "t" | "d" | "f" | "e" | "y" => Kind::Number,
                "b" => Kind::Bit,
                "bi" | "bl" | "g" => Kind::Binary,
                _ => Kind::Text,
            };
            assert_eq!(column.kind, wanted, "{kind}: {column:?}");
        }
    }
}

#[test]
fn packets_of_every_size_are_whole() {
    for (db, user) in [(mariadb(), "native"), (mysql(), "sha")] {
        let mut connection = Connection::open(&encrypted(db, user, "p€ss")).unwrap();
        connection.execute("set names utf8mb4").unwrap();
        connection
            .execute("create table if not exists w.big (id int primary key, b longblob)")
            .unwrap();
        // Around the ends of one and two packets of 16 MiB; the row has a few bytes more.
        for size in [
            0xff_ffff_usize - 5,
            0xff_ffff - 4,
            0xff_ffff - 3,
            0xff_ffff,
            2 * 0xff_ffff - 5,
            40 << 20,
        ] {
            let mut rows = connection
                .query(&format!("select repeat('x', {size}), 'end'"))
                .unwrap();
            let mut row = rows.read().unwrap().unwrap();
            let value = row.value().unwrap().unwrap();
            assert!(value.len() == size && value.iter().all(|b| *b == b'x'));
            assert_eq!(row.text().unwrap(), "end");
            assert!(rows.read().unwrap().is_none());
        }
        // The same sent: a statement of exactly 16 MiB less one is ended by an empty packet.
        let statement = "replace w.big values (1, '')";
        for size in [0xff_ffff - 1, 0xff_ffff, 0xff_ffff + 1] {
            let text = "y".repeat(size - statement.len());
            connection
                .execute(&format!("replace w.big values (1, '{text}')"))
                .unwrap();
            assert_eq!(
                one(&mut connection, "select length(b) from w.big"),
                text.len().to_string()
            );
        }
        assert_eq!(one(&mut connection, "select 7"), "7");
    }
    // A row above the limit is refused, not taken.
    let mut settings = tcp(mariadb(), "native", "p€ss");
    settings.limits.packet = 1 << 20;
    let mut connection = Connection::open(&settings).unwrap();
    let mut rows = connection.query("select repeat('x', 2000000)").unwrap();
    assert!(matches!(rows.read(), Err(Error::TooLarge { .. })));
}

#[test]
fn a_load_from_memory_is_whole_or_refused() {
    for (db, user) in [(mariadb(), "native"), (mysql(), "sha")] {
        db.sql("set global local_infile=1");
        let mut connection = Connection::open(&encrypted(db, user, "p€ss")).unwrap();
        connection
            .execute("create or replace table w.l (id int primary key, t text)")
            .or_else(|_| {
                connection
                    .execute("drop table if exists w.l")
                    .and_then(|_| {
                        connection.execute("create table w.l (id int primary key, t text)")
                    })
            })
            .unwrap();
        let lines: String = (0..300_000).map(|i| format!("{i}\tvalue {i}\n")).collect();
        let statement = "load data local infile 'stream' into table w.l character set binary";
        let done = connection.load(statement, lines.as_bytes()).unwrap();
        assert_eq!((done.affected, done.warnings), (300_000, 0));
        assert_eq!(
            one(
                &mut connection,
                "select concat(count(*),' ',sum(id),' ',max(length(t))) from w.l"
            ),
            "300000 44999850000 12"
        );
        // Any other file is not read, whatever is on this machine.
        assert!(matches!(
            connection.load(
                "load data local infile '/etc/passwd' into table w.l",
                &b""[..]
            ),
            Err(Error::Malformed(_))
        ));
        // A source that breaks leaves nothing behind.
        let mut connection = Connection::open(&encrypted(db, user, "p€ss")).unwrap();
        struct Broken;
        impl std::io::Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
                Err(std::io::ErrorKind::BrokenPipe.into())
            }
        }
        let half: String = (1_000_000..1_200_000)
            .map(|i| format!("{i}\tx\n"))
            .collect();
        let source = std::io::Read::chain(half.as_bytes(), Broken);
        assert!(matches!(
            connection.load(statement, source),
            Err(Error::Source(_))
        ));
        drop(connection);
        let mut connection = Connection::open(&encrypted(db, user, "p€ss")).unwrap();
        let end = Instant::now() + Duration::from_secs(30);
        // MySQL's own list fails while any session runs a statement with a character that utf8mb3 lacks (error 3854).
        let running = match user {
            "sha" => {
                "select count(*) from performance_schema.threads where processlist_info like 'load data%'"
            }
            _ => "select count(*) from information_schema.processlist where info like 'load data%'",
        };
        while one(&mut connection, running) != "0" {
            assert!(Instant::now() < end, "the load goes on");
        }
        assert_eq!(one(&mut connection, "select count(*) from w.l"), "300000");
        db.sql("set global local_infile=0");
        match connection.load(statement, &b"1\tx\n"[..]) {
            Err(Error::Server(e)) => assert!([1148, 3948, 4166].contains(&e.number), "{e}"),
            other => panic!("{other:?}"),
        }
    }
}

/// The events that come are the bytes of the server's file.
#[test]
fn a_binlog_is_the_servers_file_byte_for_byte() {
    for (db, user, setup) in [
        (
            mariadb(),
            "native",
            "set @master_binlog_checksum='CRC32', @mariadb_slave_capability=4",
        ),
        (
            mysql(),
            "sha",
            "set @source_binlog_checksum='CRC32', @master_binlog_checksum='CRC32'",
        ),
    ] {
        let rotate = if user == "native" {
            "flush binary logs"
        } else {
            "flush logs"
        };
        db.sql(&format!(
            "{rotate}; set binlog_format=row; create table w.e_{user} (id int primary key, b longblob);
             insert w.e_{user} values (1, repeat('z', 20000000)), (2, NULL); update w.e_{user} set b = 'x'; {rotate}"
        ));
        let list = db.sql("show binary logs");
        let names: Vec<&str> = list.lines().filter_map(|l| l.split('\t').next()).collect();
        let name = names[names.len() - 2];
        let file = std::fs::read(db.dir.path().join("data").join(name)).unwrap();
        let mut connection = Connection::open(&encrypted(db, user, "p€ss")).unwrap();
        connection.execute(setup).unwrap();
        let mut events = connection
            .binlog(&From::Position(name.into(), 4), 4711, false)
            .unwrap();
        let (mut read, mut count) = (vec![0xfe, b'b', b'i', b'n'], 0);
        while let Some(event) = events.read().unwrap() {
            // Events that were made up for this reader have no position (LOG_EVENT_ARTIFICIAL_F); the next file begins with one.
            let artificial = u16::from_le_bytes([event[17], event[18]]) & 0x20 != 0;
            if artificial && count > 0 {
                break;
            }
            if !artificial {
                read.extend_from_slice(event);
                count += 1;
            }
        }
        // The flag "in use" of the first event is set while the file is written.
        let differing = read.iter().zip(&file).filter(|(a, b)| a != b).count();
        assert!(
            read.len() == file.len() && differing == 0,
            "{name}: {} of {} bytes, {differing} differ",
            read.len(),
            file.len()
        );
        assert!(count > 5 && file.len() > 20_000_000);
        // What is not there is refused by the server.
        let mut connection = Connection::open(&encrypted(db, user, "p€ss")).unwrap();
        let mut events = connection
            .binlog(&From::Position("bin.999999".into(), 4), 4712, false)
            .unwrap();
        match events.read() {
            Err(Error::Server(e)) => assert_eq!(e.number, 1236, "{e}"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn every_wait_has_an_end() {
    // Silent for too long.
    let mut settings = tcp(mariadb(), "native", "p€ss");
    settings.limits.idle = Some(Duration::from_secs(1));
    let mut connection = Connection::open(&settings).unwrap();
    let begun = Instant::now();
    let error = connection.execute("select sleep(30)").unwrap_err();
    assert!(
        matches!(error, Error::Stalled(_)) && error.is_final(),
        "{error}"
    );
    assert!((1..10).contains(&begun.elapsed().as_secs()));
    // Told to stop, and seen to wait by who watches.
    let settings = tcp(mariadb(), "native", "p€ss");
    let (stop, pulse) = (settings.stop.clone(), settings.pulse.clone());
    let waits =
        std::thread::spawn(move || Connection::open(&settings)?.execute("select sleep(30)"));
    let end = Instant::now() + Duration::from_secs(20);
    let mut connection = Connection::open(&tcp(mariadb(), "native", "p€ss")).unwrap();
    while one(
        &mut connection,
        "select count(*) from information_schema.processlist where info = 'select sleep(30)'",
    ) == "0"
        || pulse.waiting().is_none()
    {
        assert!(Instant::now() < end);
    }
    stop.stop();
    assert!(matches!(waits.join().unwrap(), Err(Error::Stopped)));
    // Killed, the statement and the connection.
    for (kill, numbers) in [
        ("kill query", &[1317][..]),
        ("kill", &[1317, 1927, 1053, 2013]),
    ] {
        let mut victim = Connection::open(&tcp(mariadb(), "native", "p€ss")).unwrap();
        let id = victim.greeting().id;
        let waits = std::thread::spawn(move || {
            let outcome = victim.query("select * from information_schema.columns a, information_schema.columns b, information_schema.columns c where a.table_name < b.column_name").and_then(wire::Rows::finish);
            (outcome, victim.execute("select 1").is_ok())
        });
        while one(
            &mut connection,
            &format!(
                "select count(*) from information_schema.processlist where id={id} and command='Query'"
            ),
        ) == "0"
        {
            assert!(Instant::now() < end + Duration::from_secs(20));
        }
        connection.execute(&format!("{kill} {id}")).unwrap();
        let (outcome, alive) = waits.join().unwrap();
        match outcome {
            Err(Error::Server(e)) => assert!(numbers.contains(&e.number), "{e}"),
            Err(Error::Lost(_)) => assert_eq!(kill, "kill"),
            other => panic!("{other:?}"),
        }
        assert_eq!(alive, kill == "kill query");
    }
    // A peer that takes the connection and says nothing is given up within the login's limit.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut settings = tcp(mariadb(), "native", "p€ss");
    settings.address = Address::Tcp("127.0.0.1".into(), listener.local_addr().unwrap().port());
    settings.limits.connect = Duration::from_secs(1);
    assert!(matches!(
        Connection::open(&settings),
        Err(Error::Stalled(_))
    ));
}

#[test]
fn rows_that_are_left_are_not_taken_for_others() {
    let mut connection = Connection::open(&tcp(mariadb(), "native", "p€ss")).unwrap();
    let mut rows = connection.query("select 1 union select 2").unwrap();
    rows.read().unwrap().unwrap();
    assert!(matches!(connection.execute("select 3"), Err(Error::Unread)));
    // A refusal leaves the connection as it was.
    let mut connection = Connection::open(&tcp(mariadb(), "native", "p€ss")).unwrap();
    assert_eq!(
        connection.execute("select from").unwrap_err().number(),
        Some(1064)
    );
    // A procedure gives several results; all are read.
    connection
        .execute("create or replace procedure w.p() begin select 1; select 2; end")
        .unwrap();
    connection.execute("call w.p()").unwrap();
    assert_eq!(one(&mut connection, "select 3"), "3");
    // Several begin at once, and are answered one after the other.
    let mut all: Vec<_> = (0..4)
        .map(|_| Connection::open(&tcp(mariadb(), "native", "p€ss")).unwrap())
        .collect();
    for connection in &mut all {
        connection
            .begin("start transaction with consistent snapshot")
            .unwrap();
    }
    for connection in &mut all {
        connection.answer().unwrap().finish().unwrap();
        assert_eq!(one(connection, "select 4"), "4");
    }
}
