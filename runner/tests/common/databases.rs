//! Servers that the host's Debian does not have, brought once by tests/testbed into the user's cache, and certificates.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use tempfile::TempDir;

use super::{MariaDb, Server, run, testbed};

/// MySQL 9.
pub fn mysql_directory() -> &'static Path {
    static DIR: OnceLock<PathBuf> = OnceLock::new();
    DIR.get_or_init(|| testbed(&["database", "mysql"]))
}

/// MariaDB 11.
pub fn mariadb_11_directory() -> &'static Path {
    static DIR: OnceLock<PathBuf> = OnceLock::new();
    DIR.get_or_init(|| testbed(&["database", "mariadb-11"]))
}

/// A new directory of a server.
pub(super) fn empty() -> TempDir {
    tempfile::Builder::new()
        .prefix("runner-db")
        .tempdir()
        .unwrap()
}

/// The cache is root's own where root runs the tests, so the servers are root too.
fn user() -> Option<&'static str> {
    rustix::process::getuid().is_root().then_some("--user=root")
}

/// A server that finds its own files where they lie, under `usr`.
fn server(usr: &Path, program: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .arg("--no-defaults")
        .arg(format!("--basedir={}", usr.display()))
        .arg(format!(
            "--lc-messages-dir={}",
            usr.join("share/mysql").display()
        ))
        .arg(format!(
            "--character-sets-dir={}",
            usr.join("share/mysql/charsets").display()
        ))
        .arg(format!(
            "--plugin-dir={}",
            usr.join("lib/mysql/plugin").display()
        ))
        .args(user());
    command
}

/// A MySQL 9 of its own.
pub fn mysql(options: &[&str]) -> MariaDb {
    let usr = mysql_directory().join("usr");
    let program = usr.join("sbin/mysqld");
    let server = || server(&usr, &program);
    let kind = Server {
        name: "mysql-9",
        program: &program,
        directory: &empty,
        install: &|dir| {
            run(server()
                .arg("--initialize-insecure")
                .arg(format!("--tmpdir={}", dir.display()))
                .arg(format!("--datadir={}", dir.join("data").display())));
        },
        command: &|dir| {
            let mut command = server();
            command
                .args([
                    "--mysqlx=OFF",
                    "--secure-file-priv=NULL",
                    "--innodb-redo-log-capacity=64M",
                ])
                .arg(format!("--pid-file={}", dir.join("pid").display()));
            command
        },
        client: usr.join("bin/mysql"),
    };
    kind.start(&[], options)
}

/// A MariaDB 11 of its own.
pub fn mariadb_11(options: &[&str]) -> MariaDb {
    let usr = mariadb_11_directory().join("usr");
    let program = usr.join("sbin/mariadbd");
    let kind = Server {
        name: "mariadb-11",
        program: &program,
        directory: &empty,
        install: &|dir| {
            run(Command::new(usr.join("bin/mariadb-install-db"))
                .arg("--no-defaults")
                .arg(format!("--basedir={}", usr.display()))
                .arg(format!("--datadir={}", dir.join("data").display()))
                .arg(format!("--tmpdir={}", dir.display()))
                .args([
                    "--skip-test-db",
                    "--auth-root-authentication-method=normal",
                    "--force",
                ])
                .args(user()));
        },
        command: &|_| {
            let mut command = server(&usr, &program);
            command.arg("--innodb-log-file-size=64M");
            command
        },
        client: usr.join("bin/mariadb"),
    };
    kind.start(&[], options)
}

/// A CA, a certificate of its for 127.0.0.1 and localhost, one for another host, and a CA that signed neither.
pub struct Certificates {
    pub dir: TempDir,
}

impl Certificates {
    pub fn make() -> Self {
        let dir = empty();
        let openssl = |args: &str| {
            run(Command::new("openssl")
                .args(args.split(' '))
                .current_dir(dir.path()));
        };
        for ca in ["ca", "other-ca"] {
            openssl(&format!(
                "req -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN={ca} -keyout {ca}.key -out {ca}.pem"
            ));
        }
        for (name, san) in [
            ("server", "IP:127.0.0.1,DNS:localhost"),
            ("elsewhere", "DNS:elsewhere.invalid"),
        ] {
            openssl(&format!(
                "req -newkey rsa:2048 -nodes -subj /CN={name} -keyout {name}.key -out {name}.csr"
            ));
            std::fs::write(dir.path().join("san"), format!("subjectAltName={san}")).unwrap();
            openssl(&format!(
                "x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 30 -extfile san -out {name}.pem"
            ));
        }
        // As in the manuals of MySQL and MariaDB: of version 1, named by its subject alone.
        openssl("req -newkey rsa:2048 -nodes -subj /CN=localhost -keyout plain.key -out plain.csr");
        openssl(
            "x509 -req -in plain.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 30 -out plain.pem",
        );
        // Of version 3, and named by its subject alone all the same.
        std::fs::write(dir.path().join("basic"), "basicConstraints=CA:FALSE").unwrap();
        openssl(
            "req -newkey rsa:2048 -nodes -subj /CN=localhost -keyout subject.key -out subject.csr",
        );
        openssl(
            "x509 -req -in subject.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 30 -extfile basic -out subject.pem",
        );
        // The server reads its key as a user of its own.
        run(Command::new("chmod").args(["-R", "a+rX"]).arg(dir.path()));
        Self { dir }
    }

    pub fn path(&self, name: &str) -> String {
        self.dir.path().join(name).display().to_string()
    }

    /// What makes a server offer the certificate `name`.
    pub fn options(&self, name: &str) -> [String; 3] {
        [
            format!("--ssl-ca={}", self.path("ca.pem")),
            format!("--ssl-cert={}", self.path(&format!("{name}.pem"))),
            format!("--ssl-key={}", self.path(&format!("{name}.key"))),
        ]
    }
}
