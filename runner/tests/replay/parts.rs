//! Replays of a part: the tables or databases that were chosen become what they were, others are not touched, and what can't be
//! decided is refused before anything is.

use serde_json::{Value, json};

use super::*;

/// Rows of each table of these databases, as the server sums them.
fn sums(db: &MariaDb, databases: &[&str], without: &[&str]) -> String {
    let list: Vec<String> = databases.iter().map(|d| format!("'{d}'")).collect();
    let tables = db.sql(&format!(
        "select concat(table_schema, '.', table_name) from information_schema.tables where table_type = 'BASE TABLE' and table_schema in ({}) order by 1",
        list.join(",")
    ));
    let wanted = tables.lines().filter(|table| !without.contains(table));
    wanted
        .map(|table| db.sql(&format!("checksum table {table}")))
        .collect()
}

/// Transactions over both databases, many of them of tables of both.
fn work(random: &mut Random, round: u64, compresses: bool) -> String {
    let mut sql = String::new();
    for step in 0..12 {
        let (id, other) = (random.below(40), random.below(1000));
        if compresses {
            let on = if random.below(2) == 0 { "on" } else { "off" };
            sql += &format!("set session binlog_transaction_compression={on};\n");
        }
        sql += &match random.below(9) {
            0 => format!("insert w.n (v) values ({other});\n"),
            1 => format!("replace w.t values ({id}, repeat('ä{other}', {other}));\n"),
            2 => format!("insert w2.a (v) values ({other}), ({id});\n"),
            // One statement, rows of two tables, in both orders.
            3 => format!(
                "update w.n join w2.a on w.n.id = w2.a.id set w.n.v = w.n.v + 1, w2.a.v = w2.a.v + {other};\n"
            ),
            4 => format!(
                "update w2.a join w.n on w.n.id = w2.a.id set w2.a.v = w2.a.v + {other}, w.n.v = {other} where w.n.id % 3 = 0;\n"
            ),
            5 => format!(
                "begin; insert w.n (v) values ({other}); savepoint s; replace w.t values ({id}, 'gone'); rollback to s; replace w.t values ({id}, 'x{other}'); insert w2.a (v) values ({id}); commit;\n"
            ),
            6 => format!("delete from w.t where id = {id}; delete from w2.a where id = {id};\n"),
            7 => format!(
                "create table w2.d{round}_{step} as select * from w2.a; create index i on w2.d{round}_{step} (v);\n"
            ),
            _ => format!(
                "alter table w2.log add column c{round}_{step} int default {other}; analyze table w.n;\n"
            ),
        };
    }
    if random.below(2) == 0 {
        sql += "flush binary logs;\n";
    }
    sql
}

impl Pair<'_> {
    /// Restores what is chosen.
    fn part(&mut self, port: u16, mut chosen: Value, until: &Value) -> Finished {
        chosen["replay"] = until.clone();
        let spec = json!({"action": "Restore", "options": {"restore": chosen}});
        self.run(port, spec)
    }

    #[track_caller]
    fn part_is_good(&mut self, port: u16, chosen: Value, until: &Value) -> Finished {
        let done = self.part(port, chosen.clone(), until);
        let text = &done.report.message;
        assert_eq!(done.code, Some(0), "{} {chosen}: {text}", self.family.name);
        assert!(text.contains("then "), "{text}");
        let warned = done
            .report
            .warnings
            .iter()
            .any(|w| w.contains("are left out"));
        assert!(warned, "{:?}", done.report.warnings);
        done
    }
}

fn chosen_parts(family: &Family, rounds: u64, seed: u64) {
    let compresses = family.name.starts_with("MySQL");
    let mut pair = Pair::new(family);
    pair.source.sql(
        "create database w2; create table w2.a (id int primary key auto_increment, v int); create table w2.log (id int primary key auto_increment, what int);
         create trigger w2.c after insert on w2.a for each row insert w2.log (what) values (new.v);
         create view w2.b as select id from w2.a; insert w2.a (v) values (1), (2), (3); insert w.n (v) values (1), (2), (3); insert w.t values (1, 'a')",
    );
    pair.pull();
    pair.backup();
    let mut random = Random(seed);
    for round in 0..rounds {
        let sql = work(&mut random, round, compresses);
        pair.source.sql(&sql);
    }
    // A table is dropped, and the others go on.
    let before = sums(&pair.source, &["w"], &["w.n"]);
    assert!(before.starts_with("w.t\t"), "{before}");
    pair.source.sql("drop table w.t");
    let dropped = (family.last_gtid)(&pair.source);
    pair.source.sql("create user somebody identified by 'S3cr3t-marker'; create database w3; create table w3.late (id int primary key); insert w3.late values (1); insert w.n (v) values (4); insert w2.a (v) values (5)");
    pair.pull();
    let source = pair.source.port;
    let others = sums(&pair.source, &["w", "w2", "w3"], &[]);
    pair.part_is_good(
        source,
        json!({"tables": ["w.t"]}),
        &json!({"beforeGtid": dropped}),
    );
    assert_eq!(
        sums(&pair.source, &["w"], &["w.n"]),
        before,
        "{}",
        family.name
    );
    assert_eq!(sums(&pair.source, &["w", "w2", "w3"], &["w.t"]), others);
    pair.source.sql("drop table w.t");

    // A database as a whole, beside another that is the target's own.
    let latest = json!({"latest": true});
    let target = pair.target.port;
    pair.target.sql(
        "create database w; create table w.mine (id int primary key); insert w.mine values (9)",
    );
    pair.part_is_good(target, json!({"databases": ["w2"]}), &latest);
    assert_eq!(
        sums(&pair.target, &["w2"], &[]),
        sums(&pair.source, &["w2"], &[]),
        "{}",
        family.name
    );
    assert_eq!(pair.target.sql("select * from w.mine"), "9\n");
    assert_eq!(pair.target.sql("show databases like 'w3'"), "");
    assert_eq!(
        pair.target.sql("select count(*) from w2.b"),
        pair.source.sql("select count(*) from w2.b")
    );
    // Of each of the two that one statement changes, alone.
    pair.target.sql("drop database w; drop database w2");
    pair.part_is_good(target, json!({"tables": ["w.n", "w2.log"]}), &latest);
    let alone = |db: &MariaDb| db.sql("checksum table w.n, w2.log");
    assert_eq!(alone(&pair.target), alone(&pair.source), "{}", family.name);
    assert_eq!(sums(&pair.target, &["w", "w2"], &[]).lines().count(), 2);
    pair.target.sql("drop database w; drop database w2");
    // All but one, and what was made since.
    pair.part_is_good(target, json!({"excludeTables": ["w.n"]}), &latest);
    assert_eq!(
        sums(&pair.target, &["w", "w2", "w3"], &[]),
        sums(&pair.source, &["w", "w2", "w3"], &["w.n"]),
        "{}",
        family.name
    );
    pair.target
        .sql("drop database w; drop database w2; drop database w3");

    // What can't be decided is refused before anything is touched, and what lies before it is restored.
    pair.source.sql("insert w2.a (v) values (77)");
    let good = (family.last_gtid)(&pair.source);
    let wanted = pair.source.sql("checksum table w2.a");
    let refusals = [
        (
            "rename table w2.log to w.log",
            json!({"databases": ["w2"]}),
            "w2.log, which was chosen, and w.log, which was not",
        ),
        (
            "set session binlog_format=statement; insert w.log (what) values (3)",
            json!({"tables": ["w.n"]}),
            "as a statement",
        ),
    ];
    for (sql, chosen, words) in refusals {
        pair.source.sql(sql);
        let gtid = (family.last_gtid)(&pair.source);
        pair.pull();
        let refused = pair.part(target, chosen, &json!({"gtid": gtid}));
        let place = format!("transaction GTID {gtid} in bin.0");
        refused.assert_failed(2, "NotInParts", &[words, &place, "--before-gtid"]);
        let there = "show databases where `Database` in ('w', 'w2')";
        assert_eq!(pair.target.sql(there), "", "{sql}");
    }
    pair.part_is_good(target, json!({"databases": ["w2"]}), &json!({"gtid": good}));
    assert_eq!(pair.target.sql("checksum table w2.a"), wanted);
    println!("{}: parts of {rounds} rounds, all equal", family.name);
}

#[test]
fn a_table_comes_back_to_just_before_its_drop_while_others_stay() {
    chosen_parts(&FAMILIES[0], 3, 5);
}

#[test]
fn the_same_of_mysql_with_compressed_transactions() {
    chosen_parts(&FAMILIES[2], 3, 6);
}

#[test]
#[ignore = "make test-long: thirty rounds of each family"]
fn parts_of_thirty_rounds_of_each_family_are_equal() {
    for (index, family) in FAMILIES.iter().enumerate() {
        chosen_parts(family, 30, index as u64 + 40);
    }
}

/// What a foreign key does is not in the log, so that the one table can't be told without the other.
#[test]
fn a_foreign_key_to_what_is_not_chosen_is_refused() {
    let mut pair = Pair::new(&FAMILIES[0]);
    pair.source.sql("create table w.child (id int primary key, n int, constraint parent foreign key (n) references w.n (id) on delete cascade); insert w.n (v) values (1), (2); insert w.child values (1, 1), (2, 2)");
    pair.pull();
    pair.backup();
    pair.source.sql("delete from w.n where id = 1");
    pair.pull();
    let (target, latest) = (pair.target.port, json!({"latest": true}));
    let alone = pair.part(target, json!({"tables": ["w.child"]}), &latest);
    alone.assert_failed(2, "NeedsOthers", &["parent", "w.n", "choose w.n too"]);
    let without = json!({"tables": ["w.child"], "withoutForeignKeys": true});
    pair.part(target, without, &latest).assert_failed(
        2,
        "InvalidSettings",
        &["withoutForeignKeys"],
    );
    assert_eq!(pair.target.sql("show databases like 'w'"), "");
    pair.part_is_good(target, json!({"tables": ["w.child", "w.n"]}), &latest);
    assert_eq!(pair.target.sql("select * from w.child"), "2\t2\n");
}
