//! What makes a dump complete: that it holds all that is there, that it loads into its own version,
//! that what is not in it is said, and that a verification blames no dump for the server it has.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "tests"
)]

mod common;

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use common::backup::Backup;
use common::databases::{mariadb_11, mariadb_11_directory, mysql, mysql_directory};
use common::servers::{directory, postgres, psql, start_redis_with};
use common::{Finished, MariaDb, Runner};
use serde_json::{Value, json};

const FULL: &str = "create user full@'%' identified by 'S3cr3t-marker'; grant all on *.* to full@'%' with grant option;";

fn manifest(runner: &Runner, key: &str) -> Value {
    let path = runner.sql_path().join(format!("{key}.json"));
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn warned(done: &Finished, word: &str) -> bool {
    done.report.warnings.iter().any(|w| w.contains(word))
}

#[track_caller]
fn assert_warned(done: &Finished, words: &[&str]) {
    let fits = |w: &String| words.iter().all(|word| w.contains(word));
    assert!(
        done.report.warnings.iter().any(fits),
        "{words:?}: {:?}",
        done.report.warnings
    );
}

/// Every table by the server's own checksum, and all that is no table.
fn content(db: &MariaDb) -> String {
    let tables = db.sql("select concat('`', replace(table_name, '`', '``'), '`') from information_schema.tables where table_schema='feat' and table_type in ('BASE TABLE','SYSTEM VERSIONED') order by table_name");
    let mut found = String::new();
    for table in tables.lines() {
        let table = table.replace("\\\\", "\\");
        // The server's checksum of a table with an index on an array is another after each load.
        let sum = match table.as_str() {
            "`mv`" => format!("select * from {table}"),
            _ => format!("checksum table {table}"),
        };
        found += &db.sql(&format!("use feat; {sum}; show create table {table}"));
    }
    found
        + &db.sql("select table_name, table_type from information_schema.tables where table_schema='feat' order by 1; select routine_name, routine_definition from information_schema.routines where routine_schema='feat' order by 1; select trigger_name, action_statement from information_schema.triggers where trigger_schema='feat'; select event_name, status from information_schema.events where event_schema='feat'; select * from feat.v2; select * from feat.vf")
}

/// Backs `feat` up with the product's own arguments, drops it, loads the dump as a user would by hand.
fn there_and_back(db: &MariaDb, runner: Runner) -> (String, String) {
    let runner = runner.set("DATABASES", "feat");
    let done = runner.run();
    done.assert_good();
    let before = content(db);
    db.sql("drop database feat");
    db.load(&runner.dump(&runner.artefacts()[0]));
    (before, content(db))
}

#[test]
fn t6_what_mariadb_can_hold_loads_into_its_own_version() {
    let of_host = |db: &MariaDb| Runner::new(db);
    let of_11 = |db: &MariaDb| Runner::new(db).programs_of(mariadb_11_directory());
    type Make<'a> = &'a dyn Fn(&MariaDb) -> Runner;
    let both: [(MariaDb, Make<'_>); 2] = [(MariaDb::start(), &of_host), (mariadb_11(&[]), &of_11)];
    for (db, runner) in both {
        db.sql(FULL);
        db.sql(include_str!("fixtures/everything.sql"));
        db.sql(include_str!("fixtures/everything-mariadb.sql"));
        let history = "select count(*) from feat.sv for system_time all; select id, v, rs, re from feat.svp for system_time all order by rs";
        let was = db.sql(history);
        let (before, after) = there_and_back(&db, runner(&db));
        assert_eq!(after, before);
        assert_eq!(db.sql(history), was);
        // The sequences go on where they were, or beyond.
        assert_eq!(
            db.sql("insert into feat.sq(v) values (9); select count(*) from feat.sq"),
            "3\n"
        );
    }
}

#[test]
fn t6_what_mysql_can_hold_loads_into_its_own_version() {
    let db = mysql(&[]);
    db.sql(FULL);
    db.sql(include_str!("fixtures/everything.sql"));
    db.sql(include_str!("fixtures/everything-mysql.sql"));
    let runner = Runner::new(&db).programs_of(mysql_directory());
    let (before, after) = there_and_back(&db, runner);
    assert_eq!(after, before);
}

#[test]
fn t5_what_a_user_may_not_see_is_said() {
    let db = MariaDb::start();
    db.sql("create database shop; use shop; create table t (id int primary key, v int); insert into t values (1,1),(2,2),(3,3); create table hidden (id int);
        create trigger g before insert on t for each row set new.v = 1; create procedure p() select 1; create event e on schedule every 1 day do select 1;
        create view v as select * from t; create role reader; grant trigger, event on shop.* to reader;
        create user full@'%' identified by 'S3cr3t-marker'; grant select, lock tables on shop.* to full@'%'; grant show view on shop.* to full@'%';");
    let runner = Runner::new(&db).set("DATABASES", "shop");
    let done = runner.run();
    done.assert_good();
    assert_warned(&done, &["triggers of shop", "grant TRIGGER"]);
    assert_warned(&done, &["procedures and functions of shop", "mysql.proc"]);
    assert_warned(&done, &["events are not in the dump", "grant EVENT"]);
    // What a role gives counts.
    db.sql("grant reader to full@'%'; set default role reader for full@'%'; grant select on mysql.proc to full@'%'");
    let done = runner.set("HOSTNAME", "m-28308961-abcde").run();
    done.assert_good();
    for gone in ["triggers of", "procedures and", "events are"] {
        assert!(!warned(&done, gone), "{:?}", done.report.warnings);
    }
    // All databases, of which this user sees one.
    let all = Runner::new(&db).run();
    all.assert_good();
    assert_warned(&all, &["all databases are asked for", "shop"]);
    // Single tables of a database.
    db.sql("drop user full@'%'; create user full@'%' identified by 'S3cr3t-marker'; grant select, trigger on shop.t to full@'%'; grant event on shop.* to full@'%'");
    let few = Runner::new(&db).set("DATABASES", "shop").run();
    few.assert_good();
    assert_warned(&few, &["tables of shop", "single tables"]);
}

#[test]
fn t5_rows_that_a_limit_or_an_argument_leaves_out_are_not_passed_over() {
    let db = MariaDb::start();
    db.sql(FULL);
    db.sql("create database shop; use shop; create table t (id int primary key); insert into t values (1),(2),(3); create table m (id int) engine=merge union=()");
    let partial = Runner::new(&db).set("MYSQLDUMP_ARGS", "--where=id<2 --skip-triggers");
    let done = partial.run();
    done.assert_good();
    assert_warned(&done, &["partial", "--where=id<2"]);
    assert_warned(&done, &["partial", "--skip-triggers"]);
    assert_warned(
        &done,
        &["rows of these tables are not in the dump", "shop.m"],
    );
    let known = manifest(&partial, &partial.artefacts()[0]);
    assert_eq!(known["partial"].as_array().unwrap().len(), 2, "{known}");
    db.sql("set global sql_select_limit=2");
    // The native engine lifts the limit; this client can't.
    let native = Runner::new(&db).set("DATABASES", "shop");
    native.run().assert_good();
    let held = manifest(&native, &native.artefacts()[0]);
    let rows = |m: &Value| {
        m["tables"]
            .as_array()
            .unwrap()
            .iter()
            .find(|t| t["name"] == "t")
            .unwrap()["rows"]
            .clone()
    };
    assert_eq!(rows(&held), 3);
    let limited = Runner::new(&db).by_client();
    limited
        .run()
        .assert_failed(3, "RowsLimited", &["2 rows", "sql_select_limit"]);
    limited.assert_nothing_left();
}

/// A client that does something else with the output of the host's own.
fn wrapped(at: &Path, name: &str, real: &str, filter: &str) -> String {
    let bin = at.join("wrapped");
    std::fs::create_dir_all(&bin).unwrap();
    let script = format!(
        "#!/bin/bash\ncase \"$*\" in *--version*|*--help*) exec {real} \"$@\";; esac\n{filter}\n"
    );
    std::fs::write(bin.join(name), script.replace("REAL", real)).unwrap();
    std::fs::set_permissions(bin.join(name), std::fs::Permissions::from_mode(0o755)).unwrap();
    format!("{}:/usr/sbin:/usr/bin:/sbin:/bin", bin.display())
}

#[test]
fn t4_a_dump_of_mariadb_is_judged_by_its_structure() {
    let db = MariaDb::start();
    db.sql(FULL);
    db.sql("create database shop; use shop; create table t (id int primary key, v text); insert into t values (1,'x\\n-- Dump completed on 2025-01-15\\n'),(2,'y'); create table u (id int); insert into u values (1)");
    for (filter, word) in [
        // To the end of the words in the row, with a line end after them.
        (
            "REAL \"$@\" | sed '/Dump completed on 2025/{s/2025-01-15.*/2025-01-15/;q}'",
            "in the middle",
        ),
        ("REAL \"$@\"; REAL \"$@\" | head -c 1500", "in the middle"),
        ("REAL \"$@\"; REAL \"$@\"", "more than one dump"),
        ("REAL \"$@\" | head -c 1500; REAL \"$@\"", "dump"),
        (
            "REAL \"$@\" | sed '/^CREATE TABLE `u`/,/^) ENGINE/d; /^INSERT INTO `u`/,/;$/d'",
            "shop.u, which is there",
        ),
    ] {
        let runner = Runner::new(&db).set("DATABASES", "shop").by_client();
        let path = wrapped(
            runner.out.path(),
            "mariadb-dump",
            "/usr/bin/mariadb-dump",
            filter,
        );
        let runner = runner.set("PATH", path);
        runner.run().assert_failed(3, "IncompleteDump", &[word]);
        runner.assert_nothing_left();
    }
    let runner = Runner::new(&db).set("DATABASES", "shop").by_client();
    let path = wrapped(
        runner.out.path(),
        "mariadb-dump",
        "/usr/bin/mariadb-dump",
        "echo 'something odd' >&2; REAL \"$@\"",
    );
    let done = runner.set("PATH", path).run();
    done.assert_good();
    assert_warned(&done, &["something odd"]);
}

/// A Backup of PostgreSQL alone.
fn of_postgres(database: &str) -> Backup {
    let mut backup = Backup::new().with_postgres().with_disk(0);
    let mut one = backup.plan["databases"][1].clone();
    one["database"] = json!(database);
    one["args"] = json!([]);
    one.as_object_mut().unwrap().remove("excludeTables");
    backup.plan["databases"] = json!([one]);
    backup
}

#[test]
fn t4_a_dump_of_postgresql_is_judged_by_its_structure() {
    psql(postgres(), "postgres", "create database closing");
    psql(
        postgres(),
        "closing",
        "create table kept (id int, v text); insert into kept select g, E'x\\n-- PostgreSQL database dump complete\\n--\\n\\n' from generate_series(1,50) g; create table log (id int)",
    );
    for (args, filter) in [
        (
            json!([]),
            "REAL \"$@\" | sed '/^7\\t/{s/complete.*/complete/;q}'",
        ),
        (json!([]), "REAL \"$@\"; REAL \"$@\" | head -c 2000"),
        (
            json!(["--inserts"]),
            "REAL \"$@\" | sed '/dump complete$/q'; printf -- '--\\n\\n'",
        ),
        (json!(["-Fc"]), "REAL \"$@\" | head -c -3"),
        (json!(["-Fc"]), "REAL \"$@\"; REAL \"$@\" | head -c 500"),
        (json!(["-Ft"]), "REAL \"$@\" | head -c 9000"),
        (json!(["-Ft"]), "REAL \"$@\" | head -c -512"),
    ] {
        let mut backup = of_postgres("closing");
        backup.plan["databases"][0]["args"] = args;
        let path = wrapped(&backup.dir(), "pg_dump", "/usr/bin/pg_dump", filter);
        backup.runner.env.insert("PATH".into(), path);
        backup
            .run("n-1")
            .assert_failed(3, "IncompleteDump", &["Database maindb", "not kept"]);
    }
    for args in [
        json!([]),
        json!(["--inserts"]),
        json!(["-Fc"]),
        json!(["-Ft"]),
    ] {
        let mut backup = of_postgres("closing");
        backup.plan["databases"][0]["args"] = args;
        backup.run("n-1").assert_good();
    }
    let mut backup = of_postgres("closing");
    backup.plan["databases"][0]["tables"] = json!(["kept", "typo"]);
    backup.run("n-1").assert_failed(3, "DumpFailed", &["typo"]);
    backup.plan["databases"][0]["tables"] = json!(["kept"]);
    backup.run("n-2").assert_good();
    let mut backup = of_postgres("closing");
    backup.plan["databases"][0]["excludeTables"] = json!(["log", "tpyo"]);
    let done = backup.run("n-1");
    done.assert_good();
    assert_warned(&done, &["excludeTables", "\"tpyo\""]);
    assert!(!warned(&done, "\"log\""), "{:?}", done.report.warnings);
}

#[test]
fn t5_rows_that_policies_hide_are_never_left_out_without_a_word() {
    psql(postgres(), "postgres", "create database policies");
    for sql in [
        "create table doc (id int, owner text); insert into doc values (1,'a'),(2,'b'),(3,'bk'); alter table doc enable row level security",
        "create policy p on doc using (owner = current_user); create role bk login password 'S3cr3t-marker-bk'; grant select on doc to bk",
    ] {
        psql(postgres(), "policies", sql);
    }
    let mut backup = of_postgres("policies");
    backup.plan["databases"][0]["username"] = json!(backup.secret("bk-user", "bk"));
    backup.plan["databases"][0]["password"] = json!(backup.secret("bk", "S3cr3t-marker-bk"));
    backup
        .run("n-1")
        .assert_failed(3, "RowsHidden", &["BYPASSRLS"]);
    backup.plan["databases"][0]["args"] = json!(["--enable-row-security"]);
    let done = backup.run("n-2");
    done.assert_good();
    assert_warned(&done, &["partial", "--enable-row-security", "BYPASSRLS"]);
}

#[test]
fn t4_a_snapshot_of_redis_without_checksum_is_read_through() {
    let dir = directory("no-checksum");
    let port = start_redis_with(&dir, None, &["--rdbchecksum", "no"]);
    for n in 0..200 {
        common::servers::redis_cli(
            port,
            None,
            &["set", &format!("k{n}"), "some value of some length"],
        );
    }
    common::servers::redis_cli(port, None, &["save"]);
    let whole = std::fs::read(dir.join("dump.rdb")).unwrap();
    assert!(whole.ends_with(&[0; 8]));
    let mut backup = Backup::new().with_disk(0);
    let file = backup.dir().join("mounted.rdb");
    backup.plan["databases"] = json!([{"name": "r", "engine": "redis", "copyFrom": file}]);
    std::fs::write(&file, &whole).unwrap();
    backup.run("n-1").assert_good();
    // Half of it, closed as a whole one is.
    let cut = [&whole[..whole.len() / 2], &[0xff, 0, 0, 0, 0, 0, 0, 0, 0]].concat();
    std::fs::write(&file, cut).unwrap();
    backup
        .run("n-2")
        .assert_failed(3, "IncompleteDump", &["read through"]);
}

/// Clients that this machine has not, as scripts that write what those wrote.
#[test]
fn t4_what_mongodump_and_influx_wrote_is_looked_into() {
    let program = |backup: &Backup, name: &str, text: &str| -> PathBuf {
        let bin = backup.dir().join("bin");
        std::fs::create_dir_all(&bin).unwrap();
        std::fs::write(bin.join(name), format!("#!/bin/bash\n{text}\n")).unwrap();
        std::fs::set_permissions(bin.join(name), std::fs::Permissions::from_mode(0o755)).unwrap();
        bin
    };
    let out = "for a in \"$@\"; do case $a in --out=*) o=${a#--out=};; esac; done; mkdir -p $o/app; cd $o/app";
    let good = r#"printf '\x05\0\0\0\0' > t.bson; echo '{}' > t.metadata.json; echo '{"options":{"viewOn":"t"}}' > v.metadata.json"#;
    for (text, word) in [
        (good.to_owned(), ""),
        (
            format!(r"{good}; printf '\x0c\0\0\0\x10a\0' > u.bson"),
            "u.bson",
        ),
        (
            format!("{good}; printf '{{' > t.metadata.json"),
            "t.metadata.json",
        ),
        (format!("{good}; rm t.bson"), "lacks its documents"),
    ] {
        let mut backup = Backup::new().with_disk(0);
        backup.plan["databases"] =
            json!([{"name": "m", "engine": "mongodb", "host": "h", "database": "app"}]);
        let bin = program(&backup, "mongodump", &format!("{out}\n{text}"));
        let path = format!("{}:/usr/bin:/bin", bin.display());
        backup.runner.env.insert("PATH".into(), path);
        let done = backup.run("n-1");
        if word.is_empty() {
            done.assert_good();
        } else {
            done.assert_failed(3, "IncompleteDump", &[word, "not kept"]);
        }
    }
    let whole = r#"printf abcd > "$o/x.1.tar.gz"; echo '{"kv":{},"buckets":[{"bucketName":"metrics","shards":[{"fileName":"x.1.tar.gz","size":4}]}]}' > "$o/x.manifest""#;
    let none = r#"echo '{"kv":{},"buckets":[]}' > "$o/x.manifest""#;
    let cut = format!("{whole}; printf abc > \"$o/x.1.tar.gz\"");
    for (bucket, text, word) in [
        ("metrics", whole, ""),
        ("typo", none, "no bucket"),
        ("typo", whole, "\"typo\""),
        ("metrics", cut.as_str(), "x.1.tar.gz"),
    ] {
        let mut backup = Backup::new().with_disk(0);
        let token = backup.secret("token", "S3cr3t-marker-of-influx");
        backup.plan["databases"] = json!([{"name": "i", "engine": "influxdb2", "host": "http://h:8086", "database": bucket, "org": "o", "password": token}]);
        let bin = program(
            &backup,
            "influx",
            &format!("for o in \"$@\"; do :; done; mkdir -p \"$o\"\n{text}"),
        );
        let path = format!("{}:/usr/bin:/bin", bin.display());
        backup.runner.env.insert("PATH".into(), path);
        let done = backup.run("n-1");
        if word.is_empty() {
            done.assert_good();
        } else {
            done.assert_failed(3, "IncompleteDump", &[word, "not kept"]);
        }
    }
}

/// Verifies the newest artefact by restore, with the host's server.
fn verify(runner: Runner) -> Finished {
    let runner = runner.set("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    let more = json!({"action": "Verify", "options": {"mode": "Restore"}});
    runner.spec("verify-1", None, more).run()
}

fn back_up(runner: Runner) -> Runner {
    let runner = runner.spec("shop-1", None, json!({}));
    runner.run().assert_good();
    runner
}

#[test]
fn t8_a_dump_of_a_newer_server_or_another_flavour_is_not_called_bad() {
    let newer = mariadb_11(&[]);
    newer.sql(FULL);
    let vectors = "create database n; use n; create table vec (id int primary key, v vector(3) not null, vector index (v)); insert into vec values (1, vec_fromtext('[1,0.1,1e-20]'))";
    let late = "create database l; use l; create table ts (id int primary key, expires timestamp null); insert into ts values (1,'2100-01-01'),(2,'2024-01-01')";
    newer.sql(vectors);
    newer.sql(late);
    for database in ["n", "l"] {
        let runner = Runner::new(&newer).programs_of(mariadb_11_directory());
        let done = verify(back_up(runner.set("DATABASES", database)));
        done.assert_failed(2, "NotVerifiable", &["11.8", "older", "Checksum"]);
        assert_eq!(done.report.verification, None);
    }
    let other = mysql(&[]);
    other.sql(FULL);
    other.sql("create database n; use n; create table j (id int primary key, d json, key ((cast(d->'$.a' as unsigned array)))); insert into j values (1,'{}')");
    let runner = Runner::new(&other).programs_of(mysql_directory());
    let done = verify(back_up(runner));
    done.assert_failed(2, "NotVerifiable", &["9.7", "MariaDB"]);
    assert_eq!(done.report.verification, None);
}

#[test]
fn t8_what_a_scratch_server_can_not_show_is_told_apart_from_what_differs() {
    let db = MariaDb::start();
    db.sql(FULL);
    // A view that needs a database of which there is no dump.
    db.sql("create database other; create table other.t (id int); create database shop; create view shop.v as select * from other.t; create table shop.a (id int)");
    let done = verify(back_up(Runner::new(&db).set("DATABASES", "shop")));
    done.assert_failed(2, "NotVerifiable", &["other.t"]);
    // Views on views of a user that no other server knows.
    db.sql("create user app@'%'; grant all on *.* to app@'%'; create database views; use views; create table t (id int); create definer=app@'%' view v1 as select * from t; create definer=app@'%' view v2 as select * from v1");
    verify(back_up(Runner::new(&db).set("DATABASES", "views"))).assert_good();
    // Periods that can be seen: with history their values are in the dump, without they are made anew.
    db.sql("create database f3; use f3; create table sv (id int primary key, v int, rs timestamp(6) generated always as row start, re timestamp(6) generated always as row end, period for system_time(rs,re)) with system versioning; insert into sv(id,v) values (1,1),(2,2); update sv set v=5 where id=1");
    let done = verify(back_up(Runner::new(&db).set("DATABASES", "f3")));
    done.assert_good();
    assert!(
        done.report
            .verification
            .unwrap()
            .message
            .contains("3 rows, all equal")
    );
    let runner = Runner::new(&db)
        .set("DATABASES", "f3")
        .set("MYSQLDUMP_ARGS", "--skip-dump-history");
    let done = verify(back_up(runner));
    done.assert_good();
    let said = done.report.verification.unwrap().message;
    assert!(said.contains("2 rows") && said.contains("f3.sv"), "{said}");
    // By transactions: no client dumps that history.
    db.sql("create table f3.byid (id int primary key, v int, rs bigint unsigned generated always as row start, re bigint unsigned generated always as row end, period for system_time(rs,re)) with system versioning engine=innodb; insert into f3.byid(id,v) values (1,1)");
    let runner = back_up(Runner::new(&db).set("DATABASES", "f3"));
    let known = manifest(&runner, &runner.artefacts()[0]);
    assert!(
        known["partial"][0].as_str().unwrap().contains("f3.byid"),
        "{known}"
    );
    verify(runner).assert_good();
}
