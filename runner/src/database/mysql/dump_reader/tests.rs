#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
use crate::database::mysql::dump_reader::*;
use proptest::prelude::*;

const DUMP: &str = "/*M!999999\\- enable the sandbox mode */ \n\
-- MariaDB dump 10.19\n\
-- Server version\t10.11.19-MariaDB\n\
\n\
-- CHANGE MASTER TO MASTER_LOG_FILE='b.000001', MASTER_LOG_POS=330;\n\
CREATE DATABASE /*!32312 IF NOT EXISTS*/ `shop`;\n\
USE `shop`;\n\
DROP TABLE IF EXISTS `t`;\n\
CREATE TABLE `t` (\n  `id` int(11) NOT NULL COMMENT 'INSERT INTO `x` VALUES (1);'\n) ENGINE=InnoDB;\n\
LOCK TABLES `t` WRITE;\n\
INSERT INTO `t` VALUES\n(1,'it\\'s (a) \"q\"; \\\\'),\n(2,NULL),\n(3,'a''b');\n\
INSERT INTO `t` VALUES (4,_binary '\\0)'),(5,0x00FF);\n\
CREATE TABLE `od``d` (\n  `VALUES (` int\n);\n\
INSERT INTO `od``d` (`VALUES (`) VALUES (1);\n\
CREATE TABLE `empty` (\n  `id` int\n);\n\
DELIMITER ;;\n\
CREATE DEFINER=`root`@`%` PROCEDURE `p`()\n\
INSERT INTO `t` VALUES (9,'x') ;;\n\
/*!50003 CREATE*/ /*!50017 DEFINER=`root`@`%`*/ /*!50003 trigger trg BEFORE INSERT ON t FOR EACH ROW set @x=1 */;;\n\
/*!50106 CREATE*/ /*!50117 DEFINER=`root`@`%`*/ /*!50106 EVENT `e` ON SCHEDULE EVERY 1 DAY DO select 1 */ ;;\n\
DELIMITER ;\n\
USE `shop`;\n\
/*!50001 VIEW `v` AS select 1 */;\n\
-- Dump completed on 2025-01-15 10:30:00\n";

fn read(text: &[u8], size: usize) -> Summary {
    let mut reader = DumpReader::default();
    text.chunks(size.max(1)).for_each(|c| reader.feed(c));
    reader.finish()
}

fn counts(summary: &Summary) -> Vec<(&str, &str, u64)> {
    summary
        .tables
        .iter()
        .map(|t| (t.database.as_str(), t.name.as_str(), t.rows))
        .collect()
}

#[test]
fn a_dump_is_read_whole() {
    let summary = read(DUMP.as_bytes(), 1 << 20);
    assert_eq!(
        counts(&summary),
        [("shop", "t", 5), ("shop", "od`d", 1), ("shop", "empty", 0)]
    );
    assert_eq!(summary.databases, ["shop"]);
    assert_eq!(
        (
            summary.views,
            summary.triggers,
            summary.routines,
            summary.events
        ),
        (1, 1, 1, 1)
    );
    assert_eq!(summary.server_version, "10.11.19-MariaDB");
    assert_eq!(
        summary.position,
        "CHANGE MASTER TO MASTER_LOG_FILE='b.000001', MASTER_LOG_POS=330;"
    );
    assert!(summary.whole, "{}", summary.flaw);
}

#[test]
fn the_hash_is_the_sum_of_the_rows_hashes() {
    let summary = read(DUMP.as_bytes(), 7);
    let rows: [&[u8]; 5] = [
        br#"(1,'it\'s (a) "q"; \\')"#,
        b"(2,NULL)",
        b"(3,'a''b')",
        br"(4,_binary '\0)')",
        b"(5,0x00FF)",
    ];
    let sum = rows.iter().fold(0u128, |s, r| s.wrapping_add(xxh3_128(r)));
    assert_eq!(summary.tables[0].hash, format!("{sum:032x}"));
    assert_eq!(summary.tables[2].hash, "0".repeat(32));
}

/// As MySQL 9.7's client writes it with --set-gtid-purged=COMMENTED and --source-data=2; a set of
/// several servers has a line for each (MySQL manual, "GTID Sets").
#[test]
fn gtids_and_position_of_mysql_are_recorded() {
    let dump = "--
-- GTID state at the beginning of the backup 
--

/* SET @@GLOBAL.GTID_PURGED='+1b3561b6-eae9-11f1-b8df-02fc00000001:1-5,
f00561b6-eae9-11f1-b8df-02fc00000001:1-3:7-9';*/

-- CHANGE REPLICATION SOURCE TO SOURCE_LOG_FILE='binlog.000001', SOURCE_LOG_POS=1488;
USE `d`;
INSERT INTO `t` VALUES (1);
-- Dump completed
";
    let expected = "GTID_PURGED='+1b3561b6-eae9-11f1-b8df-02fc00000001:1-5,f00561b6-eae9-11f1-b8df-02fc00000001:1-3:7-9'; CHANGE REPLICATION SOURCE TO SOURCE_LOG_FILE='binlog.000001', SOURCE_LOG_POS=1488;";
    for size in [1, 7, 4096] {
        let summary = read(dump.as_bytes(), size);
        assert_eq!(summary.position, expected);
        assert_eq!(counts(&summary), [("d", "t", 1)]);
        assert!(summary.whole, "{}", summary.flaw);
    }
    let plain = dump.replace("/* SET", "SET").replace("';*/", "';");
    assert_eq!(read(plain.as_bytes(), 64).position, expected);
}

/// What the clients of MariaDB 10.11 and 11.8 and of MySQL 9.7 wrote of databases whose rows, names,
/// programs and expressions hold the closing line and all that comes before it.
const REAL: [&[u8]; 3] = [
    include_bytes!("../../../../tests/fixtures/closing-mariadb-10.11.sql"),
    include_bytes!("../../../../tests/fixtures/closing-mariadb-11.8.sql"),
    include_bytes!("../../../../tests/fixtures/closing-mysql-9.7.sql"),
];

#[test]
fn t4_of_every_beginning_of_a_dump_none_but_the_whole_is_whole() {
    for (i, dump) in REAL.iter().copied().chain([DUMP.as_bytes()]).enumerate() {
        let mut reader = DumpReader::default();
        let mut seen = 0;
        for (at, byte) in dump.iter().enumerate() {
            reader.feed(&[*byte]);
            let flaw = reader.flaw();
            assert_eq!(flaw.is_empty(), at + 1 == dump.len(), "{i}: {at}: {flaw}");
            seen += 1;
        }
        assert_eq!(seen, dump.len());
        assert!(read(dump, 4096).whole);
    }
}

#[test]
fn t4_one_dump_after_another_is_no_dump() {
    for dump in REAL {
        let half = dump.len() / 2;
        let step = (dump.len() / 200).max(1);
        for cut in (0..dump.len()).step_by(step).chain([half, dump.len()]) {
            let more = [dump, &dump[..cut]].concat();
            let summary = read(&more, 977);
            assert_eq!(summary.whole, cut == 0, "whole and {cut}");
            let halves = [&dump[..cut], dump].concat();
            // Before the head has put its first setting away, nothing of a dump has begun.
            let begun = String::from_utf8_lossy(&dump[..cut]).contains("@@CHARACTER_SET_RESULTS");
            assert!(!begun || !read(&halves, 977).whole, "{cut} and whole");
        }
    }
    assert!(!read(b"", 64).whole);
    let more = format!("{DUMP}more\n");
    assert_eq!(
        read(more.as_bytes(), 64).flaw,
        "ends in the middle of a statement"
    );
    let more = format!("{DUMP}SELECT 1;\n");
    assert_eq!(
        read(more.as_bytes(), 64).flaw,
        "goes on after its closing line"
    );
    let blank = format!("{DUMP}\n\n");
    assert!(read(blank.as_bytes(), 64).whole);
}

#[test]
fn a_line_end_in_a_name_is_part_of_it() {
    let dump = "CREATE DATABASE `d`;\nUSE `d\ne`;\nDROP TABLE IF EXISTS `a\nb`;\nCREATE TABLE `a\nb` (\n  `x\ny` int\n);\nINSERT INTO `a\nb` VALUES (1);\n-- Dump completed\n";
    for size in [1, 7, 4096] {
        let summary = read(dump.as_bytes(), size);
        assert_eq!(counts(&summary), [("d\ne", "a\nb", 1)]);
        assert_eq!(summary.databases, ["d\ne"]);
        assert!(summary.whole, "{}", summary.flaw);
    }
}

proptest! {
    #[test]
    fn chunks_do_not_matter(size in 1usize..200) {
        prop_assert_eq!(read(DUMP.as_bytes(), size), read(DUMP.as_bytes(), 1 << 20));
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..3000), size in 1usize..64) {
        let _ = read(&bytes, size);
    }

    #[test]
    fn order_of_rows_does_not_matter(mut values in prop::collection::vec(any::<u32>(), 1..40), turn in 0usize..40) {
        let dump = |values: &[u32]| {
            let rows: Vec<String> = values.iter().map(|v| format!("({v})")).collect();
            format!("USE `d`;\nINSERT INTO `t` VALUES {};\n", rows.join(","))
        };
        let before = read(dump(&values).as_bytes(), 9);
        let turn = turn % values.len();
        values.rotate_left(turn);
        prop_assert_eq!(&before, &read(dump(&values).as_bytes(), 31));
        values[0] = values[0].wrapping_add(1);
        prop_assert_ne!(&before.tables[0].hash, &read(dump(&values).as_bytes(), 31).tables[0].hash);
    }
}
