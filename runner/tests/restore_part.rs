//! Restores of parts of artefacts of the native engine: what is read of them, and that what comes of it is what was asked for. What
//! is there afterwards is asked of the servers.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod common;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use age::secrecy::ExposeSecret;
use common::versitygw::Versitygw;
use common::{Finished, MariaDb, Runner};
use serde_json::{Value, json};

const USERS: &str = "create user full@'%' identified by 'S3cr3t-marker'; grant all on *.* to full@'%' with grant option;";

/// Some 8 MB that nothing compresses, of which `items` is a hundredth; and all that a part may need or leave.
const SHOP: &str = "
    create database shop character set utf8mb4; use shop;
    create table customers (id int auto_increment primary key, name varchar(40)) engine=innodb;
    insert into customers select seq, concat('n', seq) from seq_1_to_100;
    create table items (id int auto_increment primary key, customer int, body blob, key c (customer), constraint of_customer foreign key (customer) references customers (id)) engine=innodb;
    insert into items select seq, 1 + seq % 100, random_bytes(1000) from seq_1_to_80;
    create table big (id int auto_increment primary key, body longblob) engine=innodb;
    insert into big select seq, random_bytes(1000) from seq_1_to_8000;
    create table log (at int, what varchar(120)) engine=myisam;
    insert into log select seq, md5(seq) from seq_1_to_2000;
    create sequence s start with 7; select nextval(s);
    create table drawn (id bigint not null default nextval(s), x int) engine=innodb;
    insert into drawn (x) values (1),(2);
    create view latest as select * from items where id > 70;
    create view small as select id, (select max(id) from big) as most from customers;
    create trigger t before insert on items for each row set new.body = concat(new.body, '!');
    create trigger u after update on customers for each row set @x = 1;
    create procedure p() select count(*) from items;
    create database crm; use crm;
    create table people (id int primary key, name varchar(9)) engine=innodb;
    insert into people select seq, seq from seq_1_to_10;
    create view of_shop as select id from shop.customers;";

fn source() -> &'static MariaDb {
    static DB: OnceLock<MariaDb> = OnceLock::new();
    DB.get_or_init(|| {
        let db = MariaDb::start();
        db.sql(USERS);
        db.sql(SHOP);
        db.end_with_process();
        db
    })
}

fn target() -> MariaDb {
    let db = MariaDb::start();
    db.sql(USERS);
    db
}

/// An artefact of [`source`], and what opens it.
struct Stored {
    runner: Runner,
    more: Value,
}

impl Stored {
    /// On a volume, or where `destination` says; encrypted or not.
    fn new(destination: Option<(&str, &str)>, encrypted: bool, more: Value) -> Self {
        let runner = Runner::new(source()).set("DATABASES", "shop,crm");
        Self::of(runner, destination, encrypted, more)
    }

    fn of(
        mut runner: Runner,
        destination: Option<(&str, &str)>,
        encrypted: bool,
        mut backup: Value,
    ) -> Self {
        let mut restore = json!({});
        if encrypted {
            let key = age::x25519::Identity::generate();
            let path = runner.out.path().join("identity");
            std::fs::write(&path, key.to_string().expose_secret()).unwrap();
            let public = key.to_public().to_string();
            backup["encryption"] = json!({"age": {"recipients": [public]}});
            restore["identityFile"] = json!(path);
        }
        if let Some((url, bucket)) = destination {
            let bucket = common::s3::destination(&runner, url, bucket);
            backup["destination"] = bucket.clone();
            restore["destination"] = bucket;
            runner = runner.unset("SQLPATH");
        }
        let runner = runner.spec("shop-00000000", None, backup);
        runner.run().assert_good();
        Self {
            runner: runner.unset("DATABASES"),
            more: restore,
        }
    }

    fn volume() -> Self {
        Self::new(None, false, json!({}))
    }

    /// A restore of it into this server.
    fn restore(self, target: &MariaDb, run: &str, options: Value) -> (Self, Finished) {
        let mut more = self.more.clone();
        more["action"] = json!("Restore");
        more["options"] = json!({"restore": options});
        let runner = self.runner.set("PORT", target.port.to_string());
        let runner = runner.spec(run, None, more);
        let finished = runner.run();
        let this = Self {
            runner,
            more: self.more,
        };
        (this, finished)
    }

    /// The file of the artefact on the volume.
    fn file(&self) -> PathBuf {
        let [key] = &self.runner.artefacts()[..] else {
            panic!("one artefact");
        };
        self.runner.sql_path().join(key)
    }

    fn manifest(&self) -> Value {
        let [key] = &self.runner.artefacts()[..] else {
            panic!("one artefact");
        };
        self.runner.manifest(key)
    }
}

/// Passes bytes on to a server, and counts those that come back.
struct Proxy {
    url: String,
    back: Arc<AtomicU64>,
}

impl Proxy {
    fn start(url: &str) -> Self {
        let to = url.strip_prefix("http://").unwrap().to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let back = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&back);
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let (client, server) = (client.unwrap(), TcpStream::connect(&to).unwrap());
                let pass = |mut from: TcpStream, mut to: TcpStream, count: Arc<AtomicU64>| {
                    let mut buffer = [0; 16384];
                    while let Ok(n) = from.read(&mut buffer) {
                        count.fetch_add(n as u64, Ordering::Relaxed);
                        if n == 0 || to.write_all(&buffer[..n]).is_err() {
                            break;
                        }
                    }
                    let _ = to.shutdown(std::net::Shutdown::Both);
                };
                let (a, b) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                std::thread::spawn(move || pass(a, b, Arc::default()));
                let count = Arc::clone(&count);
                std::thread::spawn(move || pass(server, client, count));
            }
        });
        Self {
            url: format!("http://127.0.0.1:{port}"),
            back,
        }
    }
}

/// Names and checksums of the tables of a database, and names of all else.
fn holds(db: &MariaDb, database: &str) -> Vec<String> {
    let text = db.sql(&format!(
        "select concat(table_type, ' ', table_name) from information_schema.tables where table_schema='{database}' union select concat('TRIGGER ', trigger_name) from information_schema.triggers where trigger_schema='{database}' union select concat(routine_type, ' ', routine_name) from information_schema.routines where routine_schema='{database}' order by 1"
    ));
    text.lines().map(str::to_owned).collect()
}

fn checksum(db: &MariaDb, table: &str) -> String {
    let all = db.sql(&format!(
        "checksum table {table}; show create table {table}"
    ));
    all.split_once('\t').unwrap().1.to_owned()
}

/// Share of the artefact that was read, in bytes: of how many.
fn read(finished: &Finished) -> (u64, u64) {
    let read = finished.report.read_bytes.unwrap();
    let size = finished.report.artefacts[0].size;
    (read.try_into().unwrap(), size.try_into().unwrap())
}

#[test]
fn of_one_table_its_ranges_are_read_on_volume_and_s3_with_age_and_without() {
    let server = Versitygw::start();
    server.make_bucket("parts");
    let proxy = Proxy::start(&server.url);
    for encrypted in [false, true] {
        for place in [None, Some((proxy.url.as_str(), "parts"))] {
            // Both artefacts would have one key.
            if place.is_some() && encrypted {
                server.make_bucket("parts-age");
            }
            let place = place.map(|(url, b)| (url, if encrypted { "parts-age" } else { b }));
            let stored = Stored::new(place, encrypted, json!({}));
            let target = target();
            let before = proxy.back.load(Ordering::Relaxed);
            let options = json!({"tables": ["shop.items"], "withoutForeignKeys": true});
            let (_, finished) = stored.restore(&target, "restore-1", options);
            finished.assert_good();
            let (read, size) = read(&finished);
            let wire = proxy.back.load(Ordering::Relaxed) - before;
            println!(
                "{} {}: {read} of {size} bytes read ({:.2} %), {wire} on the wire",
                if place.is_some() { "S3" } else { "volume" },
                if encrypted { "age" } else { "plain" },
                read as f64 * 100.0 / size as f64,
            );
            // A hundredth of the rows' bytes; age is read by chunks of 64 KiB, which are much of an artefact so small.
            let share = size / 100;
            let most = share * 12 / 10 + if encrypted { 5 * (64 << 10) } else { 8 << 10 };
            assert!(read <= most, "{read} of {size}, at most {most}");
            if place.is_some() {
                // With the manifest, the list, and the headers of all answers.
                assert!(wire <= read + (128 << 10), "{wire} for {read}");
            }
            let message = &finished.report.message;
            assert!(
                message.contains("(shop.items) with 80 rows of")
                    && message.contains(&format!("reading {read} of {size} bytes")),
                "{message}"
            );
            assert_eq!(holds(&target, "shop"), ["BASE TABLE items", "TRIGGER t"]);
            let sum = "checksum table shop.items";
            assert_eq!(target.sql(sum), source().sql(sum));
            assert_eq!(holds(&target, "crm"), [""; 0]);
        }
    }
}

#[test]
fn only_what_is_read_matters_and_what_is_read_must_be_true() {
    let stored = Stored::volume();
    let file = stored.file();
    let whole = std::fs::read(&file).unwrap();
    let manifest = stored.manifest();
    let frames = dump::Frames::from_text(manifest["frames"].as_str().unwrap()).unwrap();
    let place = |table: &str| {
        let all = dump::ranges(frames.of_table("shop", table));
        all.iter()
            .map(|r| r.start as usize..r.end as usize)
            .collect::<Vec<_>>()
    };
    // All rows of another table are gone: who does not ask for them does not see it.
    let mut other = whole.clone();
    for range in place("big") {
        other[range].fill(0);
    }
    std::fs::write(&file, &other).unwrap();
    let target = target();
    let options = json!({"tables": ["shop.items", "shop.customers"]});
    let (stored, finished) = stored.restore(&target, "restore-1", options);
    finished.assert_good();
    assert!(
        finished.report.warnings.is_empty(),
        "{:?}",
        finished.report.warnings
    );
    for table in ["shop.items", "shop.customers"] {
        assert_eq!(checksum(&target, table), checksum(source(), table));
    }
    assert_eq!(
        holds(&target, "shop"),
        [
            "BASE TABLE customers",
            "BASE TABLE items",
            "TRIGGER t",
            "TRIGGER u"
        ]
    );
    // One bit in what is read: in rows, in definitions.
    let head = frames
        .iter()
        .find(|f| f.section == dump::Section::Schema)
        .unwrap();
    let rows = place("items")[0].clone();
    let mut stored = stored;
    for (n, at) in [rows.start + rows.len() / 2, head.at as usize + 200]
        .into_iter()
        .enumerate()
    {
        let mut altered = whole.clone();
        altered[at] ^= 1;
        std::fs::write(&file, &altered).unwrap();
        target.sql("drop database if exists shop");
        let finished;
        let options = json!({"tables": ["shop.items", "shop.customers"]});
        (stored, finished) = stored.restore(&target, &format!("restore-{}", n + 2), options);
        assert_eq!(finished.report.reason, "Damaged", "{}", finished.stdout);
        assert_eq!(finished.report.good, Some(false));
        let there = target.sql("select count(*) from information_schema.tables where table_schema='shop' and table_name='items'");
        assert_eq!(there.trim(), if n == 0 { "1" } else { "0" });
        if n == 0 {
            let message = &finished.report.message;
            assert!(message.contains("the target is incomplete"), "{message}");
        }
    }
    // Whole frames of other rows, with checksums of their own: the sum of the manifest tells.
    let mut swapped = manifest.clone();
    let tables = swapped["tables"].as_array_mut().unwrap();
    let table = tables
        .iter_mut()
        .find(|t| t["name"] == "customers")
        .unwrap();
    table["hash"] = json!("0".repeat(32));
    std::fs::write(&file, &whole).unwrap();
    std::fs::write(format!("{}.json", file.display()), swapped.to_string()).unwrap();
    let options = json!({"tables": ["shop.customers"], "overwrite": true});
    let (_, finished) = stored.restore(&target, "restore-9", options);
    finished.assert_failed(
        finished.code.unwrap(),
        "RestoreIncomplete",
        &["table shop.customers got 100 rows that are not those that were dumped"],
    );
}

#[test]
fn what_a_part_needs_is_told_before_anything_is_changed() {
    let mut stored = Stored::volume();
    let target = target();
    let mut finished;
    for (options, reason, words) in [
        (
            json!({"tables": ["shop.items"]}),
            "NeedsOthers",
            &[
                "foreign key of_customer of shop.items refers to shop.customers",
                "--without-foreign-keys",
            ][..],
        ),
        (
            json!({"tables": ["shop.drawn"]}),
            "NeedsOthers",
            &["shop.drawn draws its values from shop.s"],
        ),
        (
            json!({"databases": ["shop"], "excludeTables": ["shop.big"]}),
            "NeedsOthers",
            &["view shop.small reads shop.big"],
        ),
        (
            json!({"databases": ["crm"]}),
            "NeedsOthers",
            &["view crm.of_shop reads shop.customers"],
        ),
        (
            json!({"tables": ["shop.itmes"]}),
            "NotInArtefact",
            &["no table \"shop.itmes\"", "did you mean \"shop.items\"?"],
        ),
        (
            json!({"databases": ["shpo"]}),
            "NotInArtefact",
            &["did you mean \"shop\"?"],
        ),
        (
            json!({"tables": ["shop.latest"]}),
            "NotInArtefact",
            &["shop.latest is a view", "views come with whole databases"],
        ),
    ] {
        (stored, finished) = stored.restore(&target, "restore-1", options);
        finished.assert_failed(2, reason, words);
        assert_eq!(target.sql("show databases like 'shop'"), "");
        assert_eq!(target.sql("show databases like 'crm'"), "");
    }
    // A dry run says what would be read, and reads little more than the definitions.
    let options = json!({"tables": ["shop.items", "shop.customers"], "dryRun": true});
    (stored, finished) = stored.restore(&target, "restore-2", options);
    finished.assert_good();
    let message = &finished.report.message;
    let (read, size) = read(&finished);
    assert!(
        message
            .starts_with("would restore 2 of 6 tables (shop.customers, shop.items) with 180 rows")
            && message.contains(&format!(
                "reading {read} of {size} bytes; views, routines and events are left out"
            )),
        "{message}"
    );
    assert_eq!(target.sql("show databases like 'shop'"), "");
    // Into a database that is there, beside its tables.
    target.sql("create database other; use other; create table mine (id int); insert into mine values (1); create trigger t before insert on mine for each row set @x = 1");
    let options = |more: Value| {
        let mut all = json!({"tables": ["shop.items", "shop.customers"], "database": "other"});
        for (name, value) in more.as_object().unwrap() {
            all[name] = value.clone();
        }
        all
    };
    (stored, finished) = stored.restore(&target, "restore-3", options(json!({})));
    finished.assert_failed(2, "TargetNotEmpty", &["trigger other.t", "of table mine"]);
    target.sql("drop trigger other.t");
    (stored, finished) = stored.restore(&target, "restore-4", options(json!({})));
    finished.assert_good();
    assert_eq!(
        holds(&target, "other"),
        [
            "BASE TABLE customers",
            "BASE TABLE items",
            "BASE TABLE mine",
            "TRIGGER t",
            "TRIGGER u"
        ]
    );
    assert_eq!(target.sql("select count(*) from other.mine").trim(), "1");
    let refers = target.sql("select unique_constraint_schema from information_schema.referential_constraints where constraint_schema='other'");
    assert_eq!(refers.trim(), "other");
    (stored, finished) = stored.restore(&target, "restore-5", options(json!({})));
    finished.assert_failed(
        2,
        "TargetNotEmpty",
        &["other.customers, other.items are", "set overwrite"],
    );
    // What the target has itself is referred to, and said.
    let more = json!({"tables": ["shop.items"], "overwrite": true});
    (stored, finished) = stored.restore(&target, "restore-6", options(more));
    finished.assert_good();
    let warnings = finished.report.warnings.join("\n");
    assert!(warnings.contains("foreign key of_customer of shop.items refers to shop.customers, which is the target's own"), "{warnings}");
    // A database without one of its tables and what reads that: all else is there.
    let options = json!({"databases": ["shop"], "excludeTables": ["shop.big", "shop.small"]});
    (_, finished) = stored.restore(&target, "restore-7", options);
    finished.assert_good();
    assert_eq!(
        holds(&target, "shop"),
        [
            "BASE TABLE customers",
            "BASE TABLE drawn",
            "BASE TABLE items",
            "BASE TABLE log",
            "PROCEDURE p",
            "SEQUENCE s",
            "TRIGGER t",
            "TRIGGER u",
            "VIEW latest"
        ]
    );
    for table in ["shop.drawn", "shop.items", "shop.log"] {
        assert_eq!(checksum(&target, table), checksum(source(), table));
    }
    // What a server had in its cache is passed over.
    let next: u64 = target.sql("select nextval(shop.s)").trim().parse().unwrap();
    assert!(next >= 10, "{next}");
}

#[test]
fn a_lost_table_comes_back_into_its_own_server() {
    let db = target();
    db.sql("create database d; use d; create table lost (id int primary key, x text); insert into lost select seq, md5(seq) from seq_1_to_1000; create table kept (id int primary key); insert into kept values (1); create procedure p() select 1");
    let runner = Runner::new(&db).set("DATABASES", "d");
    let runner = runner.spec(
        "shop-00000000",
        None,
        json!({"compression": {"type": "none"}}),
    );
    runner.run().assert_good();
    let before = checksum(&db, "d.lost");
    db.sql("drop table d.lost; insert into d.kept values (2); drop procedure d.p");
    let stored = Stored {
        runner: runner.unset("DATABASES"),
        more: json!({}),
    };
    let (stored, finished) = stored.restore(&db, "restore-1", json!({"tables": ["d.lost"]}));
    finished.assert_good();
    assert_eq!(checksum(&db, "d.lost"), before);
    assert_eq!(db.sql("select count(*) from d.kept").trim(), "2");
    assert_eq!(holds(&db, "d"), ["BASE TABLE kept", "BASE TABLE lost"]);
    // What tells nothing of itself is read whole, and that is said.
    let (read, size) = read(&finished);
    assert_eq!(read, 2 * size);
    let message = &finished.report.message;
    assert!(
        message.contains("is neither compressed nor encrypted"),
        "{message}"
    );
    let file = stored.file();
    let mut altered = std::fs::read(&file).unwrap();
    let at = altered.len() / 2;
    altered[at] ^= 1;
    std::fs::write(&file, &altered).unwrap();
    db.sql("drop table d.lost");
    let (stored, finished) = stored.restore(&db, "restore-2", json!({"tables": ["d.lost"]}));
    assert_eq!(finished.report.good, Some(false), "{}", finished.stdout);
    assert_eq!(holds(&db, "d"), ["BASE TABLE kept"]);
    // A dump of the client has no parts.
    let runner = stored.runner.set("DATABASES", "d").by_client();
    let runner = runner.set("PORT", db.port.to_string());
    let runner = runner.spec("shop-00000001", None, json!({}));
    runner.run().assert_good();
    let stored = Stored {
        runner: runner.unset("DATABASES").unset("MYSQLDUMP_ARGS"),
        more: json!({}),
    };
    let options = json!({"run": "shop-00000001", "tables": ["d.kept"], "overwrite": true});
    let (_, finished) = stored.restore(&db, "restore-3", options);
    finished.assert_failed(
        2,
        "NotInParts",
        &["was made by the dump client", "Restore it whole"],
    );
}

#[test]
fn what_is_in_an_artefact_is_told_without_opening_it() {
    let stored = Stored::new(None, true, json!({}));
    let file = stored.file();
    // Of its bytes nothing is read.
    let size = std::fs::metadata(&file).unwrap().len();
    std::fs::write(&file, vec![0; size.try_into().unwrap()]).unwrap();
    let runner = stored
        .runner
        .spec("shop-show", None, json!({"action": "List"}));
    let mut command = runner.command();
    let said = common::run(command.args(["download", "contents", "--run", "shop-00000000"]));
    let contents: crds::contents::Contents = serde_json::from_slice(&said.stdout).unwrap();
    let mut wanted = vec![];
    for database in ["shop", "crm"] {
        let tables = source().sql(&format!("select table_name from information_schema.tables where table_schema='{database}' and table_type='BASE TABLE' order by 1"));
        for table in tables.lines() {
            let rows = source().sql(&format!("select count(*) from {database}.{table}"));
            wanted.push(format!("{database}.{table} {}", rows.trim()));
        }
    }
    wanted.sort();
    let mut found = vec![];
    for database in &contents.databases {
        for table in &database.tables {
            assert!(
                table.raw_bytes > Some(0) && table.stored_bytes > Some(0),
                "{table:?}"
            );
            found.push(format!("{}.{} {}", database.name, table.name, table.rows));
        }
    }
    found.sort();
    assert_eq!(found, wanted);
    assert!(contents.in_parts && contents.engine == "Native" && contents.encryption == "age");
    assert_eq!(
        (contents.stored_bytes, contents.run.as_str()),
        (size, "shop-00000000")
    );
    let count = |what: &str| contents.others.get(what).copied();
    assert_eq!(
        (count("views"), count("triggers"), count("routines")),
        (Some(3), Some(2), Some(1))
    );
    let mut command = runner.command();
    let said = command
        .args(["download", "contents", "--run", "shop-1"])
        .output()
        .unwrap();
    assert!(!said.status.success() && said.stdout.is_empty());
    let said = String::from_utf8(said.stderr).unwrap();
    assert!(
        said.contains("ArtefactNotFound: no artefact of run shop-1"),
        "{said}"
    );
}

/// 1 GB, of which one table is a hundredth.
#[test]
#[ignore = "make test-long"]
fn one_table_of_a_gigabyte_is_at_most_twelve_thousandths_of_its_bytes() {
    let db = target();
    db.sql("create database d; use d; create table big (id int auto_increment primary key, body longblob) engine=innodb; create table one like big;");
    // No more of them are given at a time.
    let body = format!("concat({})", ["random_bytes(1000)"; 10].join(", "));
    let fill = |table: &str, rows: u32| {
        db.sql(&format!(
            "use d; insert into {table} (body) select {body} from seq_1_to_{rows}"
        ));
    };
    for _ in 0..20 {
        fill("big", 4950);
    }
    fill("one", 1000);
    for n in 0..20 {
        db.sql(&format!(
            "create table d.t{n} (id int primary key, a varchar(30), b datetime, key a (a))"
        ));
    }
    let server = Versitygw::start();
    for encrypted in [false, true] {
        for s3 in [false, true] {
            let bucket = format!("bucket-{}", u8::from(encrypted));
            let place = s3.then(|| {
                server.make_bucket(&bucket);
                (server.url.as_str(), bucket.as_str())
            });
            let runner = Runner::new(&db).set("DATABASES", "d");
            let stored = Stored::of(runner, place, encrypted, json!({}));
            let target = target();
            let (_, finished) = stored.restore(&target, "restore-1", json!({"tables": ["d.one"]}));
            finished.assert_good();
            let (read, size) = read(&finished);
            let share = read as f64 * 100.0 / size as f64;
            println!(
                "{} {}: {read} of {size} bytes read: {share:.3} %",
                if s3 { "S3" } else { "volume" },
                if encrypted { "age" } else { "plain" }
            );
            assert!(size > 1_000_000_000 && share <= 1.2, "{share} % of {size}");
            assert_eq!(checksum(&target, "d.one"), checksum(&db, "d.one"));
        }
    }
}
