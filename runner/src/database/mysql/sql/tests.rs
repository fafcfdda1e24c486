#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;

use crate::database::mysql::sql::*;

/// A dump by MySQL's client of a server with GTIDs, and one by MariaDB's.
const MYSQL: &str = include_str!("fixtures/mysql.sql");
const MARIADB: &str = include_str!("fixtures/mariadb.sql");

fn renamed(from: &str, to: &str) -> Rewrite {
    Rewrite {
        rename: Some((from.to_owned(), to.to_owned())),
        ..Rewrite::default()
    }
}

/// What is sent, and what is found.
fn read(text: &str, wish: &Rewrite, size: usize) -> (String, Found) {
    let first = {
        let mut script = Script::new(wish.clone());
        script.feed(text.as_bytes(), &mut vec![]);
        script.finish(&mut vec![]);
        script.found().unwrap()
    };
    let mut script = Script::knowing(wish.clone(), &first);
    let mut out = vec![];
    for chunk in text.as_bytes().chunks(size) {
        script.feed(chunk, &mut out);
    }
    script.finish(&mut out);
    (String::from_utf8(out).unwrap(), first)
}

fn sent(text: &str, wish: &Rewrite) -> String {
    read(text, wish, usize::MAX >> 1).0
}

/// Lines that differ.
fn changes(before: &str, after: &str) -> Vec<String> {
    let (before, after): (Vec<&str>, Vec<&str>) =
        (before.lines().collect(), after.lines().collect());
    let gone = before
        .iter()
        .filter(|l| !after.contains(l))
        .map(|l| format!("- {l}"));
    let come = after
        .iter()
        .filter(|l| !before.contains(l))
        .map(|l| format!("+ {l}"));
    gone.chain(come).collect()
}

#[test]
fn l3_gtids_and_locks_are_left_out_and_nothing_else() {
    assert_eq!(
        changes(MYSQL, &sent(MYSQL, &Rewrite::default())),
        [
            "- /*!40101 SET @OLD_SQL_MODE=@@SQL_MODE, SQL_MODE='NO_AUTO_VALUE_ON_ZERO' */;",
            "- SET @MYSQLDUMP_TEMP_LOG_BIN = @@SESSION.SQL_LOG_BIN;",
            "- SET @@SESSION.SQL_LOG_BIN= 0;",
            "- SET @@GLOBAL.GTID_PURGED=/*!80000 '+'*/ 'eadd7f17-eb73-11f1-8bb6-02fc00000001:1-22';",
            "- LOCK TABLES `a b` WRITE;",
            "- UNLOCK TABLES;",
            "- LOCK TABLES `ref2` WRITE;",
            "- UNLOCK TABLES;",
            "- SET @@SESSION.SQL_LOG_BIN = @MYSQLDUMP_TEMP_LOG_BIN;",
            "+ /*!40101 SET @OLD_SQL_MODE=@@SQL_MODE, SQL_MODE='NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES' */;",
        ]
    );
    for said in [
        "CHANGE MASTER TO MASTER_LOG_FILE='b.1', MASTER_LOG_POS=4;",
        "CHANGE REPLICATION SOURCE TO SOURCE_LOG_FILE='b.1', SOURCE_LOG_POS=4;",
        "SET GLOBAL gtid_slave_pos='0-1-2';",
        "STOP ALL SLAVES;",
        "START SLAVE;",
        "/*!80000 SET SESSION sql_log_bin=0 */;",
    ] {
        let (text, found) = read(&format!("{said}\nSELECT 1;\n"), &Rewrite::default(), 7);
        assert_eq!(text.trim(), "SELECT 1;", "{said}");
        assert_eq!(found.left_out.len(), 1, "{said}");
    }
}

#[test]
fn what_a_dump_holds_is_found() {
    for (text, version) in [(MYSQL, "mysql"), (MARIADB, "mariadb")] {
        let found = read(text, &Rewrite::default(), 999).1;
        assert_eq!(found.databases, ["shop2"], "{version}");
        let tables: Vec<&str> = found.tables.iter().map(|(_, t)| t.as_str()).collect();
        assert_eq!(tables, ["a b", "ref2"], "{version}");
        let of_root: Vec<&str> = found.definers["root@localhost"]
            .iter()
            .map(String::as_str)
            .collect();
        assert_eq!(
            of_root,
            [
                "trigger t_bi",
                "event e",
                "function f",
                "procedure p",
                "view v",
                "view w"
            ],
            "{version}"
        );
        assert_eq!(found.logged, ["trigger t_bi", "function f"]);
        assert_eq!(found.unsafe_functions, [""; 0]);
        let rights: Vec<&str> = found.rights.iter().map(|r| r.as_str()).collect();
        assert_eq!(
            rights,
            [
                "CREATE",
                "DROP",
                "ALTER",
                "INSERT",
                "SELECT",
                "CREATE VIEW",
                "TRIGGER",
                "CREATE ROUTINE",
                "ALTER ROUTINE",
                "EVENT"
            ]
        );
    }
}

#[test]
fn l4_every_name_of_the_database_is_renamed_and_no_other() {
    for text in [MYSQL, MARIADB] {
        let (sent, found) = read(text, &renamed("shop2", "new`one"), 1 << 20);
        assert_eq!(found.refusals, [""; 0]);
        let rest: Vec<&str> = sent
            .lines()
            .filter(|l| l.contains("shop2") && !l.contains("-- "))
            .collect();
        assert_eq!(rest, [""; 0]);
        assert!(sent.contains("CREATE DATABASE IF NOT EXISTS `tmp_x`;"));
        let alters = text.matches("ALTER DATABASE `shop2`").count();
        assert!(alters > 5);
        assert_eq!(sent.matches("ALTER DATABASE `new``one`").count(), alters);
    }
    for (text, expected) in [
        (
            "CREATE TABLE `t` (`id` bigint DEFAULT nextval(`shop`.`s`), `shop` int, `x` varchar(9) DEFAULT 'shop.t', FOREIGN KEY (`id`) REFERENCES `shop`.`u` (`id`), KEY (`other`.`k`));",
            None,
        ),
        (
            "CREATE TABLE `t` (`id` bigint DEFAULT nextval(`shop`.`s`), `x` varchar(9) DEFAULT 'shop.t', FOREIGN KEY (`id`) REFERENCES `other`.`u` (`id`));",
            Some(
                "CREATE TABLE `t` (`id` bigint DEFAULT nextval(`new`.`s`), `x` varchar(9) DEFAULT 'shop.t', FOREIGN KEY (`id`) REFERENCES `other`.`u` (`id`));",
            ),
        ),
        (
            "CREATE VIEW v AS select `shop`.`id` AS `id`,`x`.`shop`.`y` from `shop`;",
            Some("CREATE VIEW v AS select `shop`.`id` AS `id`,`x`.`shop`.`y` from `shop`;"),
        ),
        (
            "CREATE VIEW v AS select `shop`.`shop`.`id` AS `id` from `shop`.`shop`;",
            Some("CREATE VIEW v AS select `new`.`shop`.`id` AS `id` from `new`.`shop`;"),
        ),
        ("DO SETVAL(shop.s, 5);", Some("DO SETVAL(`new`.s, 5);")),
        (
            "INSERT INTO `shop`.`t` VALUES ('shop.t',`shop`);",
            Some("INSERT INTO `new`.`t` VALUES ('shop.t',`shop`);"),
        ),
        (
            "/*!40000 DROP DATABASE IF EXISTS `shop`*/;",
            Some("/*!40000 DROP DATABASE IF EXISTS `new`*/;"),
        ),
        (
            "SET sql_mode='ANSI_QUOTES'; CREATE TRIGGER \"shop\".tr BEFORE INSERT ON \"shop\".t FOR EACH ROW SET NEW.a = 1.5;",
            Some(
                "SET sql_mode='ANSI_QUOTES'; CREATE TRIGGER `new`.tr BEFORE INSERT ON `new`.t FOR EACH ROW SET NEW.a = 1.5;",
            ),
        ),
    ] {
        let (after, found) = read(text, &renamed("shop", "new"), 3);
        match expected {
            Some(expected) => {
                assert_eq!(after, expected);
                assert_eq!(found.refusals, [""; 0], "{text}");
            }
            None => assert!(!after.contains("`new`"), "{after}"),
        }
    }
}

#[test]
fn l4_what_can_not_be_renamed_is_named() {
    for (text, name) in [
        (
            "DELIMITER ;;\nCREATE PROCEDURE p() BEGIN\nCREATE DATABASE IF NOT EXISTS shop;\nEND;;\n",
            "procedure p (it makes or drops a database shop)",
        ),
        (
            "DELIMITER ;;\nCREATE PROCEDURE p() BEGIN PREPARE s FROM 'delete from shop.audit'; EXECUTE s; END;;\n",
            "procedure p (in a string it executes)",
        ),
        (
            "CREATE VIEW v AS select a from SHOP.t;",
            "view v (it writes SHOP)",
        ),
        (
            "CREATE TABLE t (id int); CREATE VIEW v AS select `shop`.`t` from `shop`;",
            "view v (it has a table or an alias of the database's name)",
        ),
        (
            "CREATE TABLE `live`.`t` (id int);",
            "table t (of database live)",
        ),
        (
            "INSERT INTO `live`.`t` VALUES (1);",
            "the rows of t (of database live)",
        ),
        (
            "DROP TABLE IF EXISTS t, `live`.`u`;",
            "table t (of database live)",
        ),
        ("USE `shop`; USE `live`;", "USE (of database live)"),
        (
            "ALTER DATABASE `live` COLLATE x;",
            "ALTER DATABASE (of database live)",
        ),
        ("DROP DATABASE `live`;", "DROP DATABASE (of database live)"),
        ("GRANT ALL ON shop.* TO x;", "a statement GRANT ALL"),
        ("CREATE USER x;", "a statement CREATE USER"),
        ("DELETE FROM live.t;", "DELETE (of database live)"),
        (
            "CREATE TRIGGER live.t BEFORE INSERT ON live.u FOR EACH ROW SET NEW.a = 1;",
            "trigger t (of database live)",
        ),
    ] {
        let found = read(text, &renamed("shop", "new"), 5).1;
        assert_eq!(found.refusals, [name], "{text}");
        // Under its own name it is loaded as it is.
        assert_eq!(read(text, &Rewrite::default(), 5).1.refusals, [""; 0]);
    }
    let found = read("CREATE FUNCTION f() RETURNS int RETURN (select count(*) from information_schema.tables where table_schema = 'shop');", &renamed("shop", "new"), 9).1;
    assert_eq!(
        (found.refusals.len(), found.doubts),
        (0, vec!["function f".to_owned()])
    );
}

#[test]
fn l6_definers_are_left_out_or_replaced() {
    let wish = Rewrite {
        definers: Definers::Drop,
        ..Rewrite::default()
    };
    for text in [MYSQL, MARIADB] {
        let after = sent(text, &wish);
        assert!(!after.contains("DEFINER=") && after.contains("SQL SECURITY DEFINER"));
    }
    let wish = Rewrite {
        definers: Definers::To("`app`@`10.%`".to_owned()),
        ..Rewrite::default()
    };
    for text in [MYSQL, MARIADB] {
        let after = sent(text, &wish);
        assert_eq!(after.matches("DEFINER=").count(), 6);
        assert_eq!(after.matches("DEFINER=`app`@`10.%`").count(), 6);
    }
    for (text, who) in [
        (
            "CREATE DEFINER=root@localhost VIEW v AS select 1;",
            "root@localhost",
        ),
        ("CREATE DEFINER='a''b'@'%' VIEW v AS select 1;", "a'b@%"),
        ("CREATE DEFINER=`role` PROCEDURE p() select 1;", "role"),
        (
            "CREATE DEFINER=CURRENT_USER() PROCEDURE p() select 1;",
            "CURRENT_USER",
        ),
        (
            "CREATE DEFINER = `view`@`table` SQL SECURITY INVOKER VIEW v AS select 'DEFINER=x';",
            "view@table",
        ),
    ] {
        let (after, found) = read(text, &wish, 4);
        assert_eq!(found.definers.keys().collect::<Vec<_>>(), [who], "{text}");
        assert!(after.contains("DEFINER=`app`@`10.%` "), "{after}");
    }
}

#[test]
fn l7_names_may_hold_anything() {
    let text = "CREATE TABLE `a\nb` (x int);\nINSERT INTO `a\nb` VALUES\n(1,'a\n;'),(2,'\\';');\nCREATE TABLE `;--``'/*` (x int);\nINSERT INTO `;--``'/*` VALUES (1);\nUNLOCK TABLES;\n";
    for size in 1..40 {
        let (after, found) = read(text, &Rewrite::default(), size);
        assert_eq!(after.trim_end(), text.replace("\nUNLOCK TABLES;\n", ""));
        let tables: Vec<&str> = found.tables.iter().map(|(_, t)| t.as_str()).collect();
        assert_eq!(tables, ["a\nb", ";--`'/*"]);
    }
}

#[test]
fn rows_may_hold_anything() {
    let rows = "INSERT INTO `t` VALUES\n(1,'LOCK TABLES `x` WRITE;\n\\';\nUNLOCK TABLES;\n'),(-2,--3,_binary 'x\\\\'),\n(0x27,\"a;b\",/* ; */ 4);\n";
    let text = format!("{rows}UNLOCK TABLES;\n{rows}");
    for size in 1..60 {
        let (after, _) = read(&text, &Rewrite::default(), size);
        assert_eq!(after, format!("{rows}\n{rows}"), "{size}");
    }
    // Without backslash escapes a backslash closes nothing.
    let text =
        "SET sql_mode='NO_BACKSLASH_ESCAPES';\nINSERT INTO t VALUES ('\\');\nUNLOCK TABLES;\n";
    assert_eq!(
        sent(text, &Rewrite::default()).trim_end(),
        text.replace("\nUNLOCK TABLES;\n", "")
    );
}

#[test]
fn a_statement_without_end_is_no_dump() {
    let mut script = Script::new(Rewrite::default());
    script.feed(
        "CREATE TABLE t (a int".repeat(1 << 20).as_bytes(),
        &mut vec![],
    );
    script.finish(&mut vec![]);
    assert!(script.found().unwrap_err().contains("16 MiB"));
}

proptest! {
    #[test]
    fn pieces_make_no_difference(size in 1usize..300, which in 0usize..2) {
        let text = [MYSQL, MARIADB][which];
        for wish in [Rewrite::default(), renamed("shop2", "x")] {
            prop_assert_eq!(read(text, &wish, size).0, sent(text, &wish));
        }
    }

    #[test]
    fn any_text_is_read(text in "[a-zA-Z`'\"/*!#;\\-\\\\ @.=()\n0-9]{0,200}", size in 1usize..50) {
        let _ = read(&text, &renamed("a", "b"), size);
    }
}

#[test]
fn what_is_passed_over_is_neither_sent_nor_found_however_the_dump_is_cut() {
    let (head, users, tail) = (
        "CREATE TABLE `t` (`a` int);\n",
        "CREATE USER `u`@`%`;\nGRANT ALL ON *.* TO `u`@`%`;\n",
        "INSERT INTO `t` VALUES (1);\n",
    );
    let dump = format!("{head}{users}{tail}{users}");
    let (first, last) = (head.len() as u64, (dump.len() - users.len()) as u64);
    let without = [first..first + users.len() as u64, last..dump.len() as u64];
    for size in [1, 7, 1000] {
        let mut script = Script::new(Rewrite::default()).without(&without);
        let mut out = vec![];
        for chunk in dump.as_bytes().chunks(size) {
            script.feed(chunk, &mut out);
        }
        script.finish(&mut out);
        assert_eq!(String::from_utf8(out).unwrap(), format!("{head}{tail}"));
    }
}

/// A dump as the native engine writes its definitions and programs, without rows.
const PARTS: &str = "/*!40101 SET SQL_MODE='' */;
CREATE DATABASE /*!32312 IF NOT EXISTS*/ `shop` /*!40100 DEFAULT CHARACTER SET utf8mb4 */;

USE `shop`;

DROP TABLE IF EXISTS `orders`;
CREATE TABLE `orders` (
  `id` int(11) NOT NULL DEFAULT nextval(`shop`.`s`),
  `note` varchar(9) DEFAULT 'x),(' COMMENT 'FOREIGN KEY REFERENCES',
  `customer` int(11),
  PRIMARY KEY (`id`),
  CONSTRAINT `of,customer` FOREIGN KEY (`customer`) REFERENCES `customers` (`id`) ON DELETE CASCADE,
  CONSTRAINT `of_area` FOREIGN KEY (`customer`, `id`) REFERENCES `shop`.`areas` (`id`, `b`),
  CONSTRAINT `c` CHECK (`id` > 0)
) ENGINE=InnoDB;

DROP TABLE IF EXISTS `customers`;
CREATE TABLE `customers` (
  `id` int(11) NOT NULL
) ENGINE=InnoDB;

DROP SEQUENCE IF EXISTS `s`;
CREATE SEQUENCE `s` start with 1;
DO SETVAL(`s`, 7, 0);

DROP TABLE IF EXISTS `v`;
/*!50001 DROP VIEW IF EXISTS `v`*/;
/*!50001 CREATE VIEW `v` AS SELECT
 1 AS `id`*/;

USE `shop`;

ALTER DATABASE `shop` CHARACTER SET latin1 COLLATE latin1_swedish_ci ;
/*!50003 DROP TRIGGER IF EXISTS `t` */;
DELIMITER ;;
CREATE DEFINER=`a`@`%` trigger t before insert
 on shop.orders for each row begin set new.note = 'on customers'; end
;;
DELIMITER ;
ALTER DATABASE `shop` CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci ;
/*!50003 DROP TRIGGER IF EXISTS `u` */;
DELIMITER ;;
CREATE DEFINER=`b`@`%` TRIGGER `u` AFTER UPDATE ON `customers` FOR EACH ROW set @x = 1
;;
DELIMITER ;
/*!50003 DROP PROCEDURE IF EXISTS `p` */;
DELIMITER ;;
CREATE DEFINER=`c`@`%` PROCEDURE `p`() select 1
;;
DELIMITER ;

/*!50001 DROP VIEW IF EXISTS `v`*/;
/*!50001 CREATE ALGORITHM=UNDEFINED */
/*!50013 DEFINER=`d`@`%` SQL SECURITY DEFINER */
/*!50001 VIEW `v` AS select `orders`.`id` AS `id`,extract(year from `c`.`x`) AS `y` from (`orders` join `shop`.`customers` `c` on(`c`.`id` = `orders`.`id`)) */;
/*!40101 SET SQL_MODE=@OLD_SQL_MODE */;
";

fn selected(databases: &[&str], tables: &[&str], without: &[&str]) -> Selection {
    let named = |name: &&str| ("shop".to_owned(), (*name).to_owned());
    Selection {
        databases: databases.iter().map(|d| (*d).to_owned()).collect(),
        tables: tables.iter().map(named).collect(),
        without: without.iter().map(named).collect(),
        foreign_keys: BTreeSet::new(),
    }
}

/// What of [`PARTS`] is sent, and what is found on the way to it.
fn part(only: Selection) -> (String, Found) {
    let wish = Rewrite {
        only: Some(Arc::new(only)),
        ..Rewrite::default()
    };
    let (sent, found) = read(PARTS, &wish, 7);
    // Nothing of a statement that goes is left open.
    let whole = Rewrite::default();
    assert_eq!(read(&sent, &whole, 1000).0, sent);
    (sent, found)
}

#[test]
fn of_a_table_its_definition_and_its_triggers_are_taken() {
    let (sent, found) = part(selected(&[], &["orders"], &[]));
    for there in [
        "CREATE DATABASE",
        "USE `shop`",
        "DROP TABLE IF EXISTS `orders`",
        "CREATE TABLE `orders`",
        "CONSTRAINT `of_area`",
        "DROP TRIGGER IF EXISTS `t`",
        "trigger t before",
        "@OLD_SQL_MODE",
    ] {
        assert!(sent.contains(there), "{there} is not in {sent}");
    }
    for gone in [
        "customers` (\n",
        "SEQUENCE",
        "SETVAL",
        "VIEW",
        "`u`",
        "PROCEDURE",
        "ALTER DATABASE",
    ] {
        assert!(!sent.contains(gone), "{gone} is in {sent}");
    }
    let needs: Vec<(NeedKind, &str)> = found
        .needs
        .iter()
        .map(|need| (need.how.clone(), need.to.1.as_str()))
        .collect();
    let key = |name: &str| NeedKind::ForeignKey(name.to_owned());
    assert_eq!(
        needs,
        [
            (key("of,customer"), "customers"),
            (key("of_area"), "areas"),
            (NeedKind::Sequence, "s")
        ]
    );
    assert!(found.needs.iter().all(|need| need.by.1 == "orders"));
    assert_eq!(found.definers.keys().collect::<Vec<_>>(), ["a@%"]);
    assert_eq!(found.tables, [("shop".to_owned(), "orders".to_owned())]);
    assert_eq!(found.collations, [("shop".to_owned(), "t".to_owned())]);
    assert!(!found.rights.contains(&Right::CreateView) && found.rights.contains(&Right::Trigger));
    assert_eq!(found.triggers.len(), 2);
    assert!(found.views.len() == 1 && found.sequences.len() == 1);
}

#[test]
fn a_sequence_is_taken_as_a_table_is() {
    let (sent, found) = part(selected(&[], &["customers", "s"], &[]));
    assert!(sent.contains("SETVAL") && sent.contains("CREATE SEQUENCE `s`"));
    assert!(!sent.contains("orders") && sent.contains("`u`"), "{sent}");
    assert_eq!(found.needs, []);
}

#[test]
fn foreign_keys_that_are_not_wanted_go_and_nothing_beside_them() {
    let mut only = selected(&["shop"], &[], &[]);
    let whole = part(only.clone()).0;
    assert_eq!(whole, read(PARTS, &Rewrite::default(), 7).0);
    for name in ["of,customer", "of_area"] {
        let table = ("shop".to_owned(), "orders".to_owned());
        only.foreign_keys.insert((table, name.to_owned()));
    }
    let wish = Rewrite {
        only: Some(Arc::new(only)),
        ..renamed("shop", "other")
    };
    let (sent, found) = read(PARTS, &wish, 7);
    assert!(
        sent.contains("PRIMARY KEY (`id`),\n  CONSTRAINT `c` CHECK (`id` > 0)\n) ENGINE"),
        "{sent}"
    );
    assert!(sent.contains("COMMENT 'FOREIGN KEY REFERENCES'"));
    assert!(found.needs.iter().all(|need| need.to.0 != "shop"));
}

#[test]
fn a_database_without_a_table_says_which_views_and_keys_need_it() {
    let (sent, found) = part(selected(&["shop"], &[], &["customers"]));
    assert!(!sent.contains("CREATE TABLE `customers`") && !sent.contains("`u`"));
    assert!(sent.contains("PROCEDURE `p`") && sent.contains("ALTER DATABASE"));
    let needs: Vec<(&NeedKind, &str, &str)> = found
        .needs
        .iter()
        .filter(|need| need.to.0 == "shop")
        .map(|need| (&need.how, need.by.1.as_str(), need.to.1.as_str()))
        .collect();
    let key = NeedKind::ForeignKey("of,customer".to_owned());
    assert_eq!(
        needs,
        [
            (&key, "orders", "customers"),
            (&NeedKind::View, "v", "customers")
        ]
    );
    let (sent, found) = part(selected(&["shop"], &[], &["customers", "orders", "v"]));
    assert!(!sent.contains("VIEW") && found.needs.is_empty(), "{sent}");
}
