//! Plain dumps loaded by several sessions: what is there afterwards is what the client makes of the same text, above all where the
//! order of statements matters. Both are asked of a server.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod common;

use std::fmt::Write as _;
use std::time::Duration;

use common::{MariaDb, Runner};
use load::{Loaded, Plain, Survey};
use serde_json::json;
use wire::{Address, Connection, Settings, Stop};

const USERS: &str = "create user full@'%' identified by 'S3cr3t-marker'; grant all on *.* to full@'%' with grant option;";

/// As clients begin and end a dump.
const HEAD: &str = "/*!40101 SET @OLD_CHARACTER_SET_CLIENT=@@CHARACTER_SET_CLIENT */;\n/*!40101 SET NAMES utf8mb4 */;\n/*!40103 SET @OLD_TIME_ZONE=@@TIME_ZONE */;\n/*!40103 SET TIME_ZONE='+00:00' */;\n/*!40014 SET @OLD_UNIQUE_CHECKS=@@UNIQUE_CHECKS, UNIQUE_CHECKS=0 */;\n/*!40014 SET @OLD_FOREIGN_KEY_CHECKS=@@FOREIGN_KEY_CHECKS, FOREIGN_KEY_CHECKS=0 */;\n/*!40101 SET @OLD_SQL_MODE=@@SQL_MODE, SQL_MODE='NO_AUTO_VALUE_ON_ZERO' */;\n/*!40111 SET @OLD_SQL_NOTES=@@SQL_NOTES, SQL_NOTES=0 */;\nCREATE DATABASE /*!32312 IF NOT EXISTS*/ `one`;\nUSE `one`;\n";
const FOOT: &str = "/*!40103 SET TIME_ZONE=@OLD_TIME_ZONE */;\n/*!40101 SET SQL_MODE=@OLD_SQL_MODE */;\n/*!40014 SET FOREIGN_KEY_CHECKS=@OLD_FOREIGN_KEY_CHECKS */;\n";

/// Tables of the form of SHOW CREATE: `t` has keys, `u` counts, `h` has no key, `m` takes nothing back, `s` counts in an audit.
const TABLES: &str = "CREATE TABLE `t` (\n  `id` int(11) NOT NULL,\n  `v` varchar(30) DEFAULT NULL,\n  PRIMARY KEY (`id`),\n  UNIQUE KEY `v` (`v`)\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;\nCREATE TABLE `u` (\n  `n` int(11) NOT NULL AUTO_INCREMENT,\n  `v` varchar(30) DEFAULT NULL,\n  PRIMARY KEY (`n`),\n  KEY `v` (`v`)\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;\nCREATE TABLE `h` (\n  `v` varchar(2000) DEFAULT NULL,\n  KEY `v` (`v`(20))\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;\nCREATE TABLE `m` (\n  `v` varchar(30) DEFAULT NULL,\n  KEY `v` (`v`)\n) ENGINE=MyISAM DEFAULT CHARSET=utf8mb4;\nCREATE TABLE `c` (\n  `id` int(11) NOT NULL,\n  `t` int(11) DEFAULT NULL,\n  PRIMARY KEY (`id`),\n  KEY `t` (`t`),\n  CONSTRAINT `of_t` FOREIGN KEY (`t`) REFERENCES `t` (`id`) ON DELETE CASCADE\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;\n";

/// Dumps in which order or settings matter: their name, their text between head and foot, and whether rows are changed by other
/// statements than their own INSERT.
fn dumps() -> Vec<(&'static str, String, bool)> {
    let many = |table: &str, from: u32, to: u32| {
        let mut text = String::new();
        for n in from..to {
            writeln!(text, "INSERT INTO `{table}` VALUES ('{n:0>1500}');").unwrap();
        }
        text
    };
    let rows = "INSERT INTO `t` VALUES (1,'a'),(2,'b'),(3,NULL),(4,'it\\'s \\\\ \\n\\0');\nINSERT INTO `c` VALUES (1,1),(2,2),(3,NULL);\n";
    let plain = |text: &str| format!("{TABLES}{text}");
    vec![
        ("rows", plain(rows), false),
        ("one row each", plain(&(1..500).map(|n| format!("INSERT INTO `t` VALUES ({n},'{n}');\n")).collect::<String>()), false),
        ("rows of a table without a key keep their order", plain(&many("h", 0, 6000)), false),
        ("rows selected from rows", plain(&format!("{}{rows}INSERT INTO `u` (`v`) SELECT `v` FROM `h`;\nINSERT INTO `u` (`v`) SELECT `v` FROM `t`;\n", many("h", 0, 3000))), true),
        ("changes between rows", plain(&format!("{rows}UPDATE `t` SET `v`='x' WHERE `id`>2 ORDER BY `id` LIMIT 1;\nINSERT INTO `t` VALUES (5,'e');\nDELETE FROM `t` WHERE `v`='a';\nINSERT INTO `t` VALUES (6,'a');\n")), true),
        ("a trigger before rows", plain("DELIMITER ;;\n/*!50003 CREATE*/ /*!50017 DEFINER=`root`@`localhost`*/ /*!50003 TRIGGER `g` AFTER INSERT ON `t` FOR EACH ROW INSERT INTO u (v) VALUES (concat('of ', new.id)) */;;\nDELIMITER ;\nINSERT INTO `h` VALUES ('before');\nINSERT INTO `t` VALUES (7,'g'),(3,'c');\nINSERT INTO `t` VALUES (1,'a');\n"), true),
        ("a trigger after rows", plain(&format!("{rows}DELIMITER ;;\n/*!50003 CREATE*/ /*!50003 TRIGGER `g` AFTER INSERT ON `t` FOR EACH ROW INSERT INTO u (v) VALUES (concat('of; ', new.id)) */;;\nDELIMITER ;\nCREATE TABLE `later` (\n  `id` int(11) NOT NULL,\n  PRIMARY KEY (`id`)\n) ENGINE=InnoDB;\nINSERT INTO `later` VALUES (1),(2);\n")), false),
        ("locks and keys at rest", plain(&format!("LOCK TABLES `m` WRITE;\n/*!40000 ALTER TABLE `m` DISABLE KEYS */;\nINSERT INTO `m` VALUES ('z'),('y');\nINSERT INTO `m` VALUES ('x');\n/*!40000 ALTER TABLE `m` ENABLE KEYS */;\nUNLOCK TABLES;\nLOCK TABLES `t` WRITE, `c` WRITE;\n/*!40000 ALTER TABLE `t` DISABLE KEYS */;\n{rows}/*!40000 ALTER TABLE `t` ENABLE KEYS */;\nUNLOCK TABLES;\n")), false),
        ("rows that count by themselves", plain("INSERT INTO `u` VALUES (7,'a');\nINSERT INTO `u` VALUES (NULL,'b');\nINSERT INTO `u` (`v`) VALUES ('c'),('d');\nINSERT INTO `u` VALUES (100,'e'),(0,'zero');\n"), true),
        ("rows that give way", plain("INSERT INTO `t` VALUES (1,'a'),(2,'b');\nINSERT IGNORE INTO `t` VALUES (2,'c'),(3,'b'),(4,'d');\nREPLACE INTO `t` VALUES (9,'a');\nINSERT INTO `t` VALUES (4,'x') ON DUPLICATE KEY UPDATE `v`='y';\nINSERT INTO `t` VALUES (5,'z');\n"), true),
        ("a table that is made again", plain(&format!("{rows}DROP TABLE IF EXISTS `h`;\nCREATE TABLE `h` (\n  `v` varchar(10) DEFAULT NULL\n) ENGINE=InnoDB;\nINSERT INTO `h` VALUES ('new');\nDROP TABLE IF EXISTS `c`;\n")), false),
        ("values of a sequence and of a variable", plain("CREATE SEQUENCE `q` START WITH 5;\nDO SETVAL(`q`, 9, 0);\nSET @a = 3;\nINSERT INTO `t` VALUES (NEXTVAL(`q`),'a');\nINSERT INTO `t` VALUES (@a,'b');\nINSERT INTO `t` VALUES (1+1,'c');\n"), true),
        ("other settings between rows", "CREATE TABLE `w` (\n  `id` int(11) NOT NULL AUTO_INCREMENT,\n  `at` timestamp NULL DEFAULT NULL,\n  `v` varchar(9) DEFAULT NULL,\n  PRIMARY KEY (`id`)\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;\nINSERT INTO `w` VALUES (1,'2026-01-01 00:00:00','a');\nSET TIME_ZONE='+05:00';\nINSERT INTO `w` VALUES (2,'2026-01-01 00:00:00','b');\nSET TIME_ZONE='+00:00', @x=1;\nINSERT INTO `w` VALUES (3,'2026-01-01 00:00:00','c');\nSET sql_mode='';\nINSERT INTO `w` VALUES (0,'2026-01-01 00:00:00','d');\nSET sql_mode='NO_AUTO_VALUE_ON_ZERO', character_set_client=latin1;\nINSERT INTO `w` VALUES (9,NULL,'é');\nSET character_set_client=utf8mb4, insert_id=77;\nINSERT INTO `w` VALUES (10,NULL,'é');\nINSERT INTO `w` VALUES (NULL,NULL,'f');\n".to_owned(), true),
        ("transactions", plain("SET @OLD_AUTOCOMMIT=@@AUTOCOMMIT, @@AUTOCOMMIT=0;\nINSERT INTO `t` VALUES (1,'a');\nCOMMIT;\nSET AUTOCOMMIT=@OLD_AUTOCOMMIT;\nset autocommit=0;\nINSERT INTO `m` VALUES ('a');\ncommit;\n"), false),
        ("a cascade, a call, an event, views", plain(&format!("{rows}DELIMITER ;;\nCREATE PROCEDURE `p`()\nBEGIN\n  -- it's; so\n  DELETE FROM t WHERE id = 1; /* not; now */\nEND ;;\nCREATE EVENT `e` ON SCHEDULE EVERY 1 DAY STARTS '2031-01-01 00:00:00' DO DELETE FROM t;;\nDELIMITER ;\nCALL p();\n/*!50001 CREATE VIEW `x` AS SELECT\n 1 AS `id` */;\nINSERT INTO `t` VALUES (8,'h');\n/*!50001 DROP VIEW IF EXISTS `x`*/;\n/*!50001 CREATE VIEW `x` AS select `id` from `t` FORCE INDEX (`v`) */;\n")), true),
        ("two databases of the same tables", plain(&format!("{rows}CREATE DATABASE `two`;\nUSE `two`;\n{TABLES}INSERT INTO `t` VALUES (1,'of two');\nINSERT INTO `one`.`t` VALUES (100,'abroad');\nINSERT INTO `c` VALUES (1,1);\nUSE `one`;\nINSERT INTO `u` VALUES (1,'back');\n")), true),
        ("tables of no known form", "CREATE TABLE `odd` (`id` int auto_increment primary key, `t` int, KEY (`t`)) ENGINE=InnoDB;\nCREATE TABLE IF NOT EXISTS `there` (\n  `id` int(11) NOT NULL,\n  PRIMARY KEY (`id`)\n) ENGINE=InnoDB;\nINSERT INTO `odd` VALUES (NULL,5),(7,5);\nINSERT INTO `odd` VALUES (NULL,6);\nCREATE TABLE `copy` AS SELECT * FROM `odd`;\n".to_owned(), false),
        ("computed and hidden columns", "CREATE TABLE `g` (\n  `id` int(11) NOT NULL,\n  `d` int(11) GENERATED ALWAYS AS (`id` * 2) STORED,\n  `hid` int(11) INVISIBLE DEFAULT 4,\n  PRIMARY KEY (`id`),\n  KEY `d` (`d`)\n) ENGINE=InnoDB;\nINSERT INTO `g` (`id`, `hid`) VALUES (1,1),(2,2);\nINSERT INTO `g` (`id`) VALUES (3);\n".to_owned(), true),
    ]
}

fn connect(db: &MariaDb) -> Connection {
    let address = Address::Socket(db.dir.path().join("s"));
    let mut settings = Settings::new(address, "root", String::new().into());
    settings.limits.idle = Some(Duration::from_secs(120));
    Connection::open(&settings).unwrap()
}

fn by_sessions(db: &MariaDb, text: &str, sessions: usize) -> Result<Loaded, String> {
    let mut survey = Survey::default();
    survey.feed(text.as_bytes());
    let load = Plain {
        patient: &|| Ok(connect(db)),
        text: &mut text.as_bytes(),
        shape: survey.finish()?,
        database: None,
        sessions,
        phase: &|_| {},
        progress: &|_| {},
        patience: Duration::from_secs(60),
        waiting: &|_| {},
    };
    let open = || Ok(connect(db));
    load.run(&open, &Stop::default()).map_err(|e| e.to_string())
}

/// All that is there, rows in the order in which the server has them; then nothing is.
fn taken(db: &MariaDb) -> String {
    let mut all = String::new();
    for database in ["one", "two"] {
        let tables = db.sql(&format!("select table_name, table_type from information_schema.tables where table_schema='{database}' order by 1"));
        for line in tables.lines() {
            let (table, kind) = line.split_once('\t').unwrap();
            let what = if kind == "VIEW" { "view" } else { "table" };
            let rows = db.sql(&format!(
                "use {database}; show create {what} `{table}`; select * from `{table}`"
            ));
            writeln!(all, "{database}.{table}:\n{rows}").unwrap();
            if table == "g" {
                all.push_str(&db.sql("select id, d, hid from one.g"));
            }
        }
    }
    all.push_str(&db.sql("select routine_name, routine_definition from information_schema.routines where routine_schema='one'; select event_name, event_definition from information_schema.events; select trigger_name, action_statement from information_schema.triggers where trigger_schema='one'"));
    db.sql("drop database one; drop database if exists two");
    all
}

#[test]
fn several_sessions_make_what_the_client_makes() {
    let db = MariaDb::start_with(&["--innodb-flush-log-at-trx-commit=0"]);
    for (name, text, changed) in dumps() {
        let text = format!("{HEAD}{text}{FOOT}");
        db.try_load(text.as_bytes())
            .unwrap_or_else(|e| panic!("{name}: {e}"));
        let wanted = taken(&db);
        assert!(wanted.len() > 100, "{name}: {wanted}");
        for (sessions, local) in [(3, true), (2, false)] {
            db.sql(&format!("set global local_infile={}", u8::from(local)));
            let loaded =
                by_sessions(&db, &text, sessions).unwrap_or_else(|e| panic!("{name}: {e}"));
            let found = taken(&db);
            let differs = wanted.lines().zip(found.lines()).find(|(a, b)| a != b);
            assert!(found == wanted, "{name}, local_infile {local}: {differs:?}");
            assert_eq!(
                loaded.by_statements.is_some(),
                changed,
                "{name}: {:?}",
                loaded.by_statements
            );
        }
    }
}

/// What the server refuses half-way ends the load, as it ends the client.
#[test]
fn a_row_that_is_refused_ends_the_load() {
    let db = MariaDb::start();
    let text = format!(
        "{HEAD}{TABLES}INSERT INTO `t` VALUES (1,'a'),(2,'a');\nINSERT INTO `t` VALUES (1,'b');\n{FOOT}"
    );
    assert!(db.try_load(text.as_bytes()).is_err());
    db.sql("drop database one");
    let e = by_sessions(&db, &text, 2).unwrap_err();
    assert!(e.contains("1062") && e.contains("one.t"), "{e}");
    db.sql("drop database one");
    let keys = format!("{HEAD}{TABLES}INSERT INTO `t` VALUES (1,'a'),(2,'a');\n{FOOT}");
    let e = by_sessions(&db, &keys, 2).unwrap_err();
    assert!(
        e.contains("making the keys of table one.t") && e.contains("1062"),
        "{e}"
    );
}

/// A runner that restores what the client dumped into this server.
fn restorer(source: &MariaDb, target: &MariaDb) -> Runner {
    let runner = Runner::new(source).set("DATABASES", "one").by_client();
    let runner = runner.spec("shop-00000000", None, json!({}));
    runner.run().assert_good();
    runner
        .unset("DATABASES")
        .set("PORT", target.port.to_string())
        .spec(
            "restore-1",
            None,
            json!({"action": "Restore", "options": {"restore": {}}}),
        )
}

#[test]
fn an_artefact_of_the_client_is_loaded_by_sessions_and_by_the_client_where_rights_lack() {
    let source = MariaDb::start();
    source.sql(USERS);
    let (_, text, _) = dumps().swap_remove(0);
    source.load(format!("{HEAD}{text}").as_bytes());
    source.sql("use one; insert into h select concat(seq, repeat('x', 1500)) from seq_1_to_6000; create trigger g before insert on t for each row set new.v='no'; create view w as select * from t");
    let target = MariaDb::start();
    target.sql(USERS);
    let runner = restorer(&source, &target);
    let finished = runner.run();
    finished.assert_good();
    let message = &finished.report.message;
    assert!(!message.contains("client"), "{message}");
    let sums = "use one; checksum table t, u, h, m, c; show create table t; show create table c; select action_statement from information_schema.triggers; select * from w";
    assert_eq!(target.sql(sums), source.sql(sums));
    // Without a right that a dump without views does not need.
    target.sql("drop database one; drop user full@'%'; create user full@'%' identified by 'S3cr3t-marker'; grant create, drop, insert, alter, trigger, super on *.* to full@'%'");
    source.sql("use one; drop view w");
    let runner = restorer(&source, &target);
    let finished = runner.run();
    finished.assert_good();
    let message = &finished.report.message;
    for words in [
        "the client loaded it in one session",
        "lacks one of",
        "ALTER",
    ] {
        assert!(message.contains(words), "{message}");
    }
}

/// An artefact of a native dump, or of the client, of three tables.
fn stored(client: bool) -> (MariaDb, Runner) {
    let source = MariaDb::start();
    source.sql(USERS);
    let (_, text, _) = dumps().swap_remove(0);
    source.load(format!("{HEAD}{text}").as_bytes());
    source.sql("use one; insert into m values ('m'); insert into h values ('h')");
    let runner = Runner::new(&source).set("DATABASES", "one");
    let runner = if client { runner.by_client() } else { runner };
    let runner = runner.spec("shop-00000000", None, json!({}));
    runner.run().assert_good();
    (source, runner.unset("DATABASES"))
}

fn restore(runner: Runner, target: &MariaDb, verify: &str) -> (Runner, common::Finished) {
    let restore = json!({"verify": verify, "overwrite": true});
    let runner = runner.set("PORT", target.port.to_string()).spec(
        "restore-1",
        None,
        json!({"action": "Restore", "options": {"restore": restore}}),
    );
    let finished = runner.run();
    (runner, finished)
}

/// The target says that it took rows which it does not keep.
#[test]
fn rows_that_a_server_took_and_does_not_hold_are_counted() {
    let target = MariaDb::start_with(&["--plugin-load-add=ha_blackhole", "--event-scheduler=OFF"]);
    target.sql(USERS);
    for client in [false, true] {
        let (_, runner) = stored(client);
        let (runner, finished) = restore(runner, &target, "Whole");
        finished.assert_good();
        let message = &finished.report.message;
        assert!(message.contains("read back whole and equal"), "{message}");
        if !client {
            // Its journal would not be kept either.
            continue;
        }
        target.sql("drop database one; set global enforce_storage_engine='BLACKHOLE'");
        let (runner, finished) = restore(runner, &target, "Counts");
        finished.assert_failed(
            5,
            "RestoreDiffers",
            &["one.t has 0 rows, and 4 in the dump", "one.c has 0 rows"],
        );
        let (_, finished) = restore(runner, &target, "None");
        finished.assert_good();
        target.sql("drop database one; set global enforce_storage_engine=default");
    }
}

/// The rows of a native dump are others than its manifest says: that is seen while they are loaded, whatever is compared
/// afterwards.
#[test]
fn rows_that_are_others_are_found_as_they_are_loaded() {
    let target = MariaDb::start();
    target.sql(USERS);
    let (_, mut runner) = stored(false);
    let key = runner.artefacts().remove(0);
    let manifest = runner.sql_path().join(format!("{key}.json"));
    let text = std::fs::read_to_string(&manifest).unwrap();
    let mut changed: serde_json::Value = serde_json::from_str(&text).unwrap();
    let tables = changed["tables"].as_array_mut().unwrap();
    let of = tables.iter_mut().find(|t| t["name"] == "t").unwrap();
    of["hash"] = json!("0".repeat(32));
    std::fs::write(&manifest, changed.to_string()).unwrap();
    for verify in ["None", "Counts", "Whole"] {
        let (same, finished) = restore(runner, &target, verify);
        let why = "table one.t got 4 rows that are not those that were dumped";
        finished.assert_failed(5, "RestoreIncomplete", &[why]);
        runner = same;
    }
}
