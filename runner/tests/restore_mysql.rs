//! Restores into MySQL and MariaDB: another name, another owner, another server, odd names; what is
//! there afterwards is asked of the servers by their own clients.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod common;

use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use common::backup::Backup;
use common::databases::{mariadb_11, mariadb_11_directory, mysql, mysql_directory};
use common::{Finished, MariaDb, Runner, fixture};
use serde_json::{Value, json};

const USERS: &str = "create user full@'%' identified by 'S3cr3t-marker'; grant all on *.* to full@'%' with grant option;";

/// A MariaDB 10.11 with a binary log, for tests that make databases of their own.
fn maria() -> &'static MariaDb {
    static DB: OnceLock<MariaDb> = OnceLock::new();
    DB.get_or_init(|| {
        let db = MariaDb::start_with(&["--log-bin=b", "--event-scheduler=OFF"]);
        db.sql(USERS);
        db.end_with_process();
        db
    })
}

/// A MySQL 9 with GTIDs.
fn mysql_9() -> &'static MariaDb {
    static DB: OnceLock<MariaDb> = OnceLock::new();
    DB.get_or_init(|| {
        let db = mysql(&[
            "--gtid-mode=ON",
            "--enforce-gtid-consistency=ON",
            "--event-scheduler=OFF",
        ]);
        db.sql(USERS);
        db.end_with_process();
        db
    })
}

/// Backs up these databases.
fn dumped(db: &MariaDb, databases: &str) -> Runner {
    let runner = Runner::new(db).set("DATABASES", databases);
    let runner = if std::ptr::eq(db, mysql_9_if_started(db)) {
        runner.programs_of(mysql_directory())
    } else {
        runner
    };
    let runner = runner.spec("shop-00000000", None, json!({}));
    runner.run().assert_good();
    runner
}

fn mysql_9_if_started(db: &MariaDb) -> &MariaDb {
    let version = db.sql("select version()");
    if version.contains("MariaDB") {
        fixture()
    } else {
        db
    }
}

/// Restores what was backed up last into this server.
fn restore(runner: Runner, target: &MariaDb, options: Value) -> (Runner, Finished) {
    let runner = runner
        .unset("DATABASES")
        .set("PORT", target.port.to_string())
        .spec(
            "restore-1",
            None,
            json!({"action": "Restore", "options": {"restore": options}}),
        );
    let done = runner.run();
    (runner, done)
}

/// An archive of gobackup.io of one database.
fn archived(db: &MariaDb, database: &str) -> Backup {
    let mut backup = Backup::new().with_disk(3);
    backup.plan["databases"] = json!([]);
    let item = json!({
        "name": "main", "engine": "mariadb", "host": "127.0.0.1", "port": db.port, "database": database,
        "username": backup.secret("my-user", "full"), "password": backup.secret("my", "S3cr3t-marker"),
    });
    backup.add("databases", item);
    backup.run("n-1").assert_good();
    backup
}

fn into(backup: &mut Backup, target: &MariaDb, options: Value) -> Finished {
    let source = json!({
        "host": "127.0.0.1", "port": target.port,
        "usernameFile": backup.secret("to-user", "full"), "passwordFile": backup.secret("to", "S3cr3t-marker"),
    });
    backup.restore(source, options)
}

/// Everything a database says of itself, with its name taken out.
fn described(db: &MariaDb, name: &str) -> String {
    let text = db.sql(&format!(
        "select default_character_set_name, default_collation_name from information_schema.schemata where schema_name='{name}';
         select table_name, table_type, engine, if(table_type='SEQUENCE', '', table_collation) from information_schema.tables where table_schema='{name}' order by 1;
         select table_name, column_name, column_default, column_type, is_nullable, extra from information_schema.columns where table_schema='{name}' order by 1, 2;
         select table_name, view_definition, definer, security_type from information_schema.views where table_schema='{name}' order by 1;
         select trigger_name, event_manipulation, event_object_table, action_statement, definer, sql_mode, database_collation from information_schema.triggers where trigger_schema='{name}' order by 1;
         select routine_name, routine_type, routine_definition, definer, sql_mode, database_collation from information_schema.routines where routine_schema='{name}' order by 1;
         select event_name, event_definition, definer, interval_value, starts, status from information_schema.events where event_schema='{name}' order by 1;"
    ));
    text.replace(&format!("`{name}`."), "DB.")
        .replace(&format!("{name}."), "DB.")
}

/// A database whose definitions name it in every way its author may have written.
const RENAME: &str = "
    create database shop character set utf8mb4 collate utf8mb4_general_ci; use shop;
    create table t (id int primary key, v varchar(20)); create table audit (id int auto_increment primary key, what varchar(40));
    create table `shop` (id int primary key); insert into `shop` values (7);
    insert into t values (1, 'one');
    create trigger shop.t_ai after insert on shop.t for each row insert into shop.audit(what) values (concat('shop: inserted ', new.id));
    create procedure empty_audit() delete from shop.audit;
    create procedure makes() create database if not exists `tmp_x`;
    create view w as select t.id, shop.t.v from shop.t where 'shop: ' <> '';
    alter database shop collate utf8mb4_unicode_ci;
    create event nightly on schedule every 1 day starts '2031-01-01 00:00:00' do delete from shop.audit;";

const SEQUENCE: &str = "
    use shop; create sequence s start with 500; create table n (id bigint primary key default nextval(s), v int);
    insert into n(v) values (1);";

/// The copy says what the original does and acts on itself alone.
#[track_caller]
fn assert_copied(db: &MariaDb, before: &str, sequences: bool) {
    assert_eq!(described(db, "shop"), before, "the original changed");
    assert_eq!(described(db, "copy"), before, "the copy differs");
    db.sql("use copy; insert into t values (2, 'two')");
    assert_eq!(
        db.sql("select group_concat(what) from copy.audit"),
        "shop: inserted 2\n"
    );
    assert_eq!(db.sql("select count(*) from shop.audit"), "0\n");
    db.sql("insert into shop.audit(what) values ('kept'); call copy.empty_audit()");
    assert_eq!(
        db.sql("select count(*) from copy.audit; select count(*) from shop.audit"),
        "0\n1\n"
    );
    db.sql("delete from shop.audit");
    assert_eq!(
        db.sql(
            "select count(*) from copy.w; select count(*) from shop.w; select id from copy.shop"
        ),
        "2\n1\n7\n"
    );
    if sequences {
        db.sql("insert into copy.n(v) values (2), (3)");
        assert_eq!(db.sql("select count(*) from copy.n"), "3\n");
        assert_eq!(
            db.sql("select next_not_cached_value from shop.s"),
            "1500\n",
            "the copy drew from the original"
        );
    }
    db.sql("drop database copy");
}

#[test]
fn l4_a_copy_under_another_name_leaves_the_original_alone_whatever_names_it() {
    let db = maria();
    db.sql(RENAME);
    db.sql(SEQUENCE);
    let before = described(db, "shop");
    let runner = dumped(db, "shop");
    let (runner, done) = restore(runner, db, json!({"database": "copy"}));
    done.assert_good();
    assert_copied(db, &before, true);
    // An archive's dump has no USE; what it says of its database is of the original all the same.
    let mut backup = archived(db, "shop");
    into(&mut backup, db, json!({"database": "copy"})).assert_good();
    assert_copied(db, &before, true);

    // What can't be renamed for sure is told before anything is done.
    db.sql("use shop;\ndelimiter //\ncreate procedure p() begin prepare x from 'delete from shop.audit'; execute x; end//\ncreate procedure q() begin\nCREATE DATABASE IF NOT EXISTS `shop`;\nend//\n");
    drop(runner);
    let runner = dumped(db, "shop");
    let words = [
        "procedure p (in a string it executes)",
        "procedure q (it makes or drops a database shop)",
        "nothing was changed",
    ];
    let (_, done) = restore(runner, db, json!({"database": "copy"}));
    done.assert_failed(2, "NotRenamable", &words);
    let mut backup = archived(db, "shop");
    into(&mut backup, db, json!({"database": "copy"})).assert_failed(2, "NotRenamable", &words);
    assert_eq!(db.sql("show databases like 'copy'"), "");
    // Into an empty server nothing of it is missing.
    let empty = MariaDb::start();
    empty.sql(USERS);
    into(&mut backup, &empty, json!({})).assert_good();
    assert_eq!(described(&empty, "shop"), described(db, "shop"));
    db.sql("drop database shop");
}

#[test]
fn l3_a_restore_into_mysql_is_in_the_binary_log_and_needs_no_right_of_the_server() {
    let db = mysql_9();
    db.sql(RENAME);
    db.sql("create user tenant@'%' identified by 'S3cr3t-marker'; create database own; grant all on `own`.* to tenant@'%'; create database plain; use plain; create table t (id int primary key, d date); insert into t values (1,'2024-02-29'),(2,'2024-04-30')");
    let before = described(db, "shop");
    let (runner, done) = restore(dumped(db, "shop"), db, json!({"database": "copy"}));
    done.assert_good();
    assert_copied(db, &before, false);
    drop(runner);

    let runner = Runner::new(db)
        .set("DATABASES", "plain")
        .programs_of(mysql_directory())
        .by_client()
        .spec("shop-00000000", None, json!({}));
    runner.run().assert_good();
    let dump = String::from_utf8(runner.dump(&runner.artefacts()[0])).unwrap();
    assert!(
        dump.contains("SQL_LOG_BIN= 0") && dump.contains("GTID_PURGED"),
        "the case is gone: {dump}"
    );
    let log = db.sql("show binary log status");
    let (file, position) = log
        .split_once('\t')
        .map(|(f, rest)| (f, rest.split('\t').next().unwrap()))
        .unwrap();
    let gtids = db.sql("select @@gtid_executed");
    let (_, done) = restore(
        runner.set("USERNAME", "tenant"),
        db,
        json!({"database": "own"}),
    );
    done.assert_good();
    assert_eq!(
        db.sql("checksum table own.t").split('\t').nth(1),
        db.sql("checksum table plain.t").split('\t').nth(1)
    );
    // What a replica would read, by the vendor's own program.
    let events = common::run(
        Command::new(mysql_directory().join("usr/bin/mysqlbinlog"))
            .args([
                "--no-defaults",
                "--verbose",
                "--verbose",
                &format!("--start-position={position}"),
            ])
            .arg(db.dir.path().join("data").join(file)),
    );
    let events = String::from_utf8_lossy(&events.stdout).into_owned();
    assert!(events.contains("### INSERT INTO `own`.`t`"), "{events}");
    assert_ne!(db.sql("select @@gtid_executed"), gtids);
    db.sql("drop database shop; drop database own; drop database plain; drop user tenant@'%'");
}

#[test]
fn l5_values_that_a_server_keeps_are_kept_and_those_it_changes_are_named() {
    for db in [maria(), mysql_9()] {
        let enumerated = "create table e (id int primary key, v enum('a','b')); insert ignore into e values (1,'x'),(2,'a'),(3,'y');";
        db.sql(&format!("create database inv; use inv; set sql_mode='ALLOW_INVALID_DATES'; create table t (id int primary key, d date); insert into t values (1,'2024-02-30'),(2,'2024-04-31'),(3,'0000-00-00'); {enumerated}"));
        let (_, done) = restore(dumped(db, "inv"), db, json!({"database": "inv2"}));
        done.assert_good();
        let rows = "set sql_mode='ALLOW_INVALID_DATES'; select d from {}.t order by id";
        assert_eq!(
            db.sql(&rows.replace("{}", "inv2")),
            "2024-02-30\n2024-04-31\n0000-00-00\n"
        );
        // The error value of an enumeration warns and is what it was.
        assert_eq!(
            db.sql("select group_concat(hex(v) order by id) from inv2.e"),
            ",61,\n"
        );
        let [warning] = &done.report.warnings[..] else {
            panic!("{}", done.stdout)
        };
        let words = "the server warned twice of rows of inv2.e, for one: Data truncated for column 'v' at row 1 (1265)";
        assert_eq!(warning, words);
        let words =
            "the server warned twice of rows that it took, and their tables were read back equal";
        assert!(done.report.message.contains(words), "{}", done.stdout);
        db.sql("drop database inv; drop database inv2");
    }
}

#[test]
fn l5_what_an_older_server_makes_zero_is_no_good_restore() {
    let new = mariadb_11(&[]);
    new.sql(USERS);
    new.sql("create database fut; use fut; create table t (id int primary key, ts timestamp null); insert into t values (1,'2100-01-01 00:00:00'),(2,'2030-01-01 00:00:00'); create table ok (id int primary key); insert into ok values (1)");
    let runner = Runner::new(&new)
        .set("DATABASES", "fut")
        .programs_of(mariadb_11_directory())
        .spec("shop-00000000", None, json!({}));
    runner.run().assert_good();
    let (runner, done) = restore(runner, maria(), json!({"database": "fut"}));
    done.assert_failed(
        5,
        "RestoreDiffers",
        &[
            "fut.t",
            "Out of range value for column 'ts'",
            "all else is restored",
        ],
    );
    let warnings = done.report.warnings.join("\n");
    assert!(
        warnings.contains("warned once of rows of fut.t"),
        "{warnings}"
    );
    assert!(
        !done.report.message.contains("fut.ok"),
        "{}",
        done.report.message
    );
    let (_, done) = restore(runner, &new, json!({"database": "fut2"}));
    done.assert_good();
    assert_eq!(
        new.sql("select count(*) from fut2.t where ts > '2099-01-01'"),
        "1\n"
    );
    maria().sql("drop database fut");
}

#[test]
fn l6_definers_are_decided_before_the_first_statement() {
    for db in [maria(), mysql_9()] {
        db.sql("create database own; use own; create table t (id int primary key, v int); insert into t values (1,1);
            create definer=root@localhost view v as select * from t; create definer=root@localhost procedure p() select 1;
            create user tenant@'%' identified by 'S3cr3t-marker'; create database mine; grant all on mine.* to tenant@'%'; create user app@'%'");
        let mut runner = dumped(db, "own").set("USERNAME", "tenant");
        for options in [
            json!({}),
            json!({"definers": "Keep"}),
            json!({"definers": "To", "definer": "app@%"}),
            json!({"dryRun": true}),
        ] {
            let mut options = options;
            options["database"] = json!("mine");
            let (back, done) = restore(runner, db, options);
            done.assert_failed(
                2,
                "DefinerNotAllowed",
                &[
                    "view v",
                    "procedure p",
                    "tenant@%",
                    "--definers Drop",
                    "nothing was changed",
                ],
            );
            assert_eq!(
                db.sql("select count(*) from information_schema.tables where table_schema='mine'"),
                "0\n"
            );
            runner = back;
        }
        let definers = "select group_concat(definer) from (select definer from information_schema.views where table_schema='mine' union all select definer from information_schema.routines where routine_schema='mine') x";
        let (back, done) = restore(runner, db, json!({"database": "mine", "definers": "Drop"}));
        done.assert_good();
        assert_eq!(
            db.sql(&format!("{definers}; select v from mine.v")),
            "tenant@%,tenant@%\n1\n"
        );
        // Whoever may, keeps or maps them.
        let (back, done) = restore(
            back.set("USERNAME", "full"),
            db,
            json!({"database": "mine", "overwrite": true}),
        );
        done.assert_good();
        assert_eq!(db.sql(definers), "root@localhost,root@localhost\n");
        let (back, done) = restore(
            back,
            db,
            json!({"database": "mine", "overwrite": true, "definers": "To", "definer": "app@%"}),
        );
        done.assert_good();
        assert_eq!(db.sql(definers), "app@%,app@%\n");
        // A right that is missing is known before, too: with the words of a restore.
        db.sql("revoke create view on mine.* from tenant@'%'; drop view mine.v; drop table mine.t");
        let (_, done) = restore(
            back.set("USERNAME", "tenant"),
            db,
            json!({"database": "mine", "definers": "Drop"}),
        );
        done.assert_failed(
            3,
            "MissingPrivilege",
            &[
                "lacks CREATE VIEW on database mine",
                "CREATE ROUTINE",
                "nothing was changed",
            ],
        );
        assert_eq!(
            db.sql("select count(*) from information_schema.tables where table_schema='mine'"),
            "0\n"
        );
        db.sql("drop database own; drop database mine; drop user tenant@'%'; drop user app@'%'");
    }
}

#[test]
fn l6_what_a_binary_log_forbids_is_known_before_the_first_statement() {
    let db = maria();
    db.sql("create database own3; use own3; create table t (id int); create trigger tr before insert on t for each row set new.id = 1;
        create user tenant3@'%' identified by 'S3cr3t-marker'; create database mine3; grant all on mine3.* to tenant3@'%'");
    let runner = dumped(db, "own3").set("USERNAME", "tenant3");
    let options = json!({"database": "mine3", "definers": "Drop"});
    let (runner, done) = restore(runner, db, options.clone());
    done.assert_failed(
        3,
        "MissingPrivilege",
        &[
            "trigger tr",
            "log_bin_trust_function_creators",
            "nothing was changed",
        ],
    );
    assert_eq!(
        db.sql("select count(*) from information_schema.tables where table_schema='mine3'"),
        "0\n"
    );
    let other = MariaDb::start();
    other.sql("create user tenant3@'%' identified by 'S3cr3t-marker'; create database mine3; grant all on mine3.* to tenant3@'%'");
    let (_, done) = restore(runner, &other, options);
    done.assert_good();
    db.sql("drop database own3; drop database mine3; drop user tenant3@'%'");
}

#[test]
fn l7_odd_names_are_restored_and_found_again() {
    let long = "x".repeat(64);
    let names = [
        "a\nb",
        "a`b",
        "it's \"q\"",
        "back\\slash",
        "per%cent",
        " lead;--",
        "日本",
        "/*x*/",
        "#h",
        &long,
    ];
    let quoted = |name: &str| format!("`{}`", name.replace('`', "``"));
    for db in [maria(), mysql_9()] {
        for (n, name) in ["n\nl", "na`m'e\"%; --", &"y".repeat(64)]
            .into_iter()
            .enumerate()
        {
            let mut sql = format!("create database {d}; use {d};\n", d = quoted(name));
            for (i, table) in names.iter().enumerate() {
                let table = quoted(table.trim_end());
                sql.push_str(&format!(
                    "create table {table} ({c} int); insert into {table} values ({i});\n",
                    c = quoted(names[(i + n) % 6])
                ));
            }
            db.sql(&sql);
            let runner = Runner::new(db);
            let runner = if db.sql("select version()").contains("MariaDB") {
                runner
            } else {
                runner.programs_of(mysql_directory())
            };
            let spec =
                json!({"source": {"host": "127.0.0.1", "port": db.port, "databases": [name]}});
            let runner = runner.spec("shop-00000000", None, spec);
            let done = runner.run();
            done.assert_good();
            let copy = format!("c{n}\n`");
            let (_, done) = restore(runner, db, json!({"database": copy}));
            done.assert_good();
            let sums = |name: &str| {
                let list = db.sql(&format!("select group_concat(concat('`', replace(table_name, '`', '``'), '`') order by table_name) from information_schema.tables where table_schema = '{}'", name.replace('\\', "\\\\").replace('\'', "''")));
                let list = list
                    .trim_end_matches('\n')
                    .replace("\\n", "\n")
                    .replace("\\\\", "\\");
                let sums = db.sql(&format!("use {}; checksum table {list}", quoted(name)));
                sums.lines()
                    .map(|l| l.rsplit('\t').next().unwrap().to_owned())
                    .collect::<Vec<_>>()
            };
            assert_eq!(sums(&copy), sums(name));
            assert_eq!(sums(name).len(), names.len());
            db.sql(&format!(
                "drop database {}; drop database {}",
                quoted(name),
                quoted(&copy)
            ));
        }
    }
}

#[test]
fn r6_a_restore_that_is_ended_says_what_stands_in_the_target() {
    let db = maria();
    db.sql("create database big; use big; create table a (id int); insert into a values (1); create table b (id int primary key, v longtext); insert into b select seq, repeat(md5(seq), 60) from seq_1_to_20000");
    let runner = dumped(db, "big");
    db.sql("create database big2; use big2; create table b (id int)");
    // The load waits here until it is ended.
    let held = db.hold("use big2; begin; select * from b");
    let runner = runner.unset("DATABASES").spec(
        "restore-1",
        None,
        json!({"action": "Restore", "options": {"restore": {"database": "big2", "overwrite": true}}}),
    );
    let started = Instant::now();
    let child = runner.start();
    let deadline = Instant::now() + Duration::from_secs(60);
    let waiting = "select count(*) from information_schema.processlist where db='big2' and state like '%metadata lock%'";
    while db.sql(waiting).trim() == "0" {
        assert!(Instant::now() < deadline, "the load does not wait");
        std::thread::sleep(Duration::from_millis(50));
    }
    common::run(Command::new("kill").arg(child.id().to_string()));
    let done = runner.finish(child, started);
    drop(held);
    done.assert_failed(1, "Terminated", &["may be in part in big2", "overwrite"]);
    assert!(
        !done.report.message.contains("nothing was stored"),
        "{}",
        done.report.message
    );
    assert_eq!(db.sql("select count(*) from information_schema.tables where table_schema='big2' and table_name='a'"), "1\n");
    db.sql("drop database big; drop database big2");
}

/// By what an account logs in, and what it may.
fn account(db: &MariaDb, name: &str) -> String {
    let shown = if db.sql("select version()").contains("MariaDB") {
        db.sql(&format!("show create user {name}"))
    } else {
        db.sql(&format!(
            "set print_identified_with_as_hex=1; show create user {name}"
        ))
    };
    format!("{shown}{}", db.sql(&format!("show grants for {name}")))
}

#[test]
fn accounts_are_dumped_when_asked_for_and_made_again_when_asked_for() {
    for (db, fresh) in [
        (MariaDb::start(), MariaDb::start()),
        (mysql(&[]), mysql(&[])),
    ] {
        db.sql(USERS);
        db.sql("create database acc; use acc; create table t (id int primary key, v int); insert into t values (1,2); create role reader; grant select on acc.* to reader;
            create user clerk@'%' identified by 'clerk-password'; grant reader to clerk@'%'; grant update (v) on acc.t to clerk@'%'");
        let before = account(&db, "clerk@'%'");
        let mut runner = Runner::new(&db).set("DATABASES", "acc");
        if !db.sql("select version()").contains("MariaDB") {
            runner = runner.programs_of(mysql_directory());
        }
        let runner = runner.spec("shop-00000000", None, json!({"source": {"accounts": true}}));
        let done = runner.run();
        done.assert_good();
        assert_eq!(done.report.engine, "Native", "{:?}", done.report);
        // Whoever grants has to have it; root's account holds the right to be anybody.
        fresh.sql(&format!(
            "{USERS} grant proxy on ''@'%' to full@'%' with grant option"
        ));
        let there = "select count(*) from mysql.user where user='clerk'";
        let (runner, done) = restore(runner, &fresh, json!({"overwrite": true}));
        done.assert_good();
        assert_eq!(fresh.sql(there), "0\n");
        let (_, done) = restore(runner, &fresh, json!({"overwrite": true, "accounts": true}));
        done.assert_good();
        assert_eq!(account(&fresh, "clerk@'%'"), before);
    }
}
