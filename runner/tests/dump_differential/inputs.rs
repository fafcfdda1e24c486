//! Cases that went wrong in some program once.

use super::random::Kind;

/// Name and statements of each, for the client.
pub fn of(kind: Kind) -> Vec<(&'static str, Vec<u8>)> {
    let mut all: Vec<(&'static str, &[u8])> = EVERYWHERE.to_vec();
    if kind.is_mariadb() {
        all.extend(MARIADB);
    } else {
        all.extend(MYSQL);
    }
    if kind == Kind::MariaDb11 {
        all.extend(MARIADB_11);
    }
    let engines = if kind.is_mariadb() {
        [PLUGGED, ENGINES].concat()
    } else {
        ENGINES.to_vec()
    };
    all.into_iter()
        .map(|(name, sql)| (name, sql.to_vec()))
        .chain([(ARCHIVE, engines)])
        .collect()
}

/// The client does not bring it back.
pub fn changed_by_client(kind: Kind, name: &str) -> bool {
    // Makes views by their names, where one with a check option does not find the one it reads.
    if name == "views on views, and a circle of keys" {
        return true;
    }
    // Gives an ARCHIVE table its next value before its rows, which it does not take then.
    if name == ARCHIVE {
        return true;
    }
    // Makes a routine before the library of another database that it uses.
    if name == "libraries, of another database too" {
        return true;
    }
    match kind {
        // Goes round for ever where an event holds `;;`.
        Kind::MariaDb10 => name == "an event with its delimiter",
        Kind::MariaDb11 => false,
        // The same, and writes -0 as 0.
        Kind::MySql => {
            ["an event with its delimiter", "numbers at zero, and signs"].contains(&name)
        }
    }
}

/// Why the client's dump of a random schema does not bring all of it back; `None` for what no reason is known for. `source`
/// is what was there.
pub fn reason(found: &[String], source: &[String]) -> Option<&'static str> {
    if let [only] = found {
        if only == "the client does not dump: " {
            let holds = source
                .iter()
                .any(|l| l.starts_with("event ") && l.contains(";;"));
            return holds.then_some("goes round for ever where an event holds `;;`");
        }
        if only.starts_with("the client does not dump: ") {
            let named = source
                .iter()
                .any(|l| l.starts_with("database ") && l.contains(['\'', '"', '\\']));
            return (named && only.contains("Unknown database")).then_some(
                "escapes quotes and backslashes in the name of a database that it selects",
            );
        }
        if only.starts_with("the client's dump does not load: ") {
            let ended =
                |l: &String| l.contains("*/") || l.split(": ").next().unwrap().contains("\\n");
            return (only.contains("ERROR 1064 ") && source.iter().any(ended)).then_some(
                "wraps programs in comments, or names in comments of one line, which some of them end",
            );
        }
    }
    let pairs = pairs(found)?;
    if pairs
        .iter()
        .all(|(of, was, is)| of.starts_with("sequence ") && is_before_start(was, is))
    {
        return Some("takes no sequence back to before its start");
    }
    pairs
        .iter()
        .all(|(of, was, is)| of.starts_with("rows ") && is_reworded(was, is))
        .then_some(
            "writes -0 as 0, characters that Unicode lacks as ?, or a FLOAT on which a column is computed in six digits",
        )
}

/// The head of a fact, and its fields as they were and as they are.
type Pair<'a> = (&'a str, Vec<&'a str>, Vec<&'a str>);

/// What is said of each fact that was there and is there. `None` where one of them is missing.
fn pairs(found: &[String]) -> Option<Vec<Pair<'_>>> {
    let of = |sign: &str| -> Vec<(&str, Vec<&str>)> {
        let own = found.iter().filter_map(|l| l.strip_prefix(sign));
        own.filter_map(|l| l.split_once(": "))
            .map(|(head, fields)| (head, fields.split('\t').collect()))
            .collect()
    };
    let (was, mut is) = (of("- "), of("+ "));
    let mut all = vec![];
    for (head, fields) in was {
        let same = |(other, _): &(&str, Vec<&str>)| *other == head;
        let fits =
            |(other, found): &(&str, Vec<&str>)| *other == head && is_reworded(&fields, found);
        let at = is
            .iter()
            .position(fits)
            .or_else(|| is.iter().position(same))?;
        all.push((head, fields, is.remove(at).1));
    }
    (is.is_empty() && !all.is_empty()).then_some(all)
}

/// Next value, least, greatest, start, increment: the next one came before the start, and is the start now.
fn is_before_start(was: &[&str], is: &[&str]) -> bool {
    let number = |fields: &[&str], at: usize| fields.get(at).and_then(|f| f.parse::<i128>().ok());
    let (Some(next), Some(start), Some(step)) = (number(was, 0), number(was, 3), number(was, 4))
    else {
        return false;
    };
    let before = if step < 0 { next > start } else { next < start };
    before && number(is, 0) == Some(start) && was[1..] == is[1..]
}

/// All that differs is the sign of a zero, a question mark, or no more than six digits leave open.
fn is_reworded(was: &[&str], is: &[&str]) -> bool {
    let question = |text: &str| text.matches("3F").count();
    let six = |was: &str, is: &str| match (was.parse::<f64>(), is.parse::<f64>()) {
        (Ok(was), Ok(is)) => (was - is).abs() <= 5e-6 * was.abs().max(is.abs()),
        _ => false,
    };
    let same = |(was, is): (&&str, &&str)| {
        was == is || (*was == "-0" && *is == "0") || question(is) > question(was) || six(was, is)
    };
    was.len() == is.len() && was.iter().zip(is).all(same)
}

const EVERYWHERE: [(&str, &[u8]); 11] = [
    ("tables of other engines", b"create database eng; use eng;
create table cs (id int not null, v varchar(40) not null, d decimal(9,3) not null) engine=csv; insert into cs values (1, 'a\"b\\\\c,\\n', 1.5), (2, '', -0.001);
create table me (id int primary key, v varchar(300), key (v) using btree) engine=memory; insert into me values (1, 'a'), (2, null);
create table fi (id int, v char(10)) engine=myisam row_format=fixed; insert into fi values (1, 'a');
create table m1 (id int, v varchar(10), key (id)) engine=myisam; create table m2 like m1; insert into m1 values (1, 'a'); insert into m2 values (2, 'b'), (2, 'b');
create table mg (id int, v varchar(10), key (id)) engine=merge union=(m1,m2) insert_method=last;"),
    ("a view of a definer", b"create database own; use own; create table t (id int primary key, v int); insert into t values (1,1);
create definer=root@localhost view v as select * from t; create user tenant@'%' identified by 'x'; grant all on own.* to tenant@'%';"),
    ("days that no calendar knows", b"create database inv; use inv; set sql_mode='ALLOW_INVALID_DATES';
create table t (id int primary key, d date, e datetime default '2024-02-31 00:00:00'); insert into t values (1,'2024-02-30',default),(2,'2024-04-31',default),(3,'0000-00-00','0000-00-00');"),
    ("a line end in a name", b"create database nl; use nl; create table `a\nb` (x int); insert into `a\nb` values (1);"),
    ("a name in its own definitions", b"create database shop character set utf8mb4 collate utf8mb4_general_ci; use shop;
create table t (id int primary key, v varchar(20)); create table audit (id int auto_increment primary key, what varchar(40));
insert into t values (1, 'one');
create trigger shop.t_ai after insert on shop.t for each row insert into shop.audit(what) values (concat('inserted ', new.id));
create procedure empty_audit() delete from shop.audit;
alter database shop collate utf8mb4_unicode_ci;
create event nightly on schedule every 1 day starts '2037-01-01 00:00:00' do delete from shop.audit;"),
    ("programs of another character set", b"create database lat; use lat; set names latin1; create table t (a int);
create procedure p() select 'caf\xe9'; create function f() returns varchar(10) charset latin1 deterministic return '\xfc';
create trigger tr before insert on t for each row set @x = '\xe9\\'';
create view v as select 'caf\xe9' as a; create event e on schedule every 1 day starts '2037-01-01 00:00:00' do set @a = '\xe4';"),
    ("triggers in an order that is not their names'", b"create database tr; use tr; create table t (a int);
create trigger b before insert on t for each row set @x = 1; create trigger c before insert on t for each row precedes b set @x = 2;
create trigger a before insert on t for each row follows c set @x = 3;"),
    ("views on views, and a circle of keys", b"create database vv; use vv; create table x (id int primary key, y int); create table y (id int primary key, x int, foreign key (x) references x (id));
insert into x values (1, null); insert into y values (1, 1); update x set y = 1; alter table x add foreign key (y) references y (id);
create view z as select * from x; create view m as select * from z; create view a as select * from m union select * from z;
create view b as select * from m with local check option;"),
    ("numbers at zero, and signs", b"create database zz; use zz; set sql_mode='NO_AUTO_VALUE_ON_ZERO'; create table t (id int auto_increment primary key, d double); insert into t values (0, -0e0), (7, 1e308), (8, 5e-324), (9, 0.1);"),
    ("programs before the first table, each in its own mode", b"create database af; use af; set sql_mode='ANSI_QUOTES,NO_BACKSLASH_ESCAPES';
create procedure p() select '\\', \"a\" from x; create function f() returns int deterministic return 1; set sql_mode='PIPES_AS_CONCAT';
create event e on schedule every 1 day starts '2037-01-01 00:00:00' do set @a = 'x' || '\\\\';
create database ag; use ag; set sql_mode='NO_AUTO_VALUE_ON_ZERO'; create table t (id int auto_increment primary key, v varchar(20)); insert into t values (0, 'a\\'b'), (7, '\\\\');"),
    ("an event with its delimiter", b"create database ev; use ev;
delimiter //
create event e on schedule every 1 day starts '2037-01-01 00:00:00' do begin set @a = 'x;;'; end //
delimiter ;"),
];

const ARCHIVE: &str = "an archive, and a table that keeps nothing";
/// MariaDB has these as plugins.
const PLUGGED: &[u8] =
    b"install plugin if not exists archive soname 'ha_archive'; install plugin if not exists blackhole soname 'ha_blackhole';";
const ENGINES: &[u8] = b"create database arc; use arc;
create table ar (id int auto_increment primary key, v text, b blob) engine=archive; insert into ar values (1, 'a\\'b', X'00ff'), (7, null, '');
create table bl (id int primary key, v int) engine=blackhole; insert into bl values (1, 1);";

const MARIADB: [(&str, &[u8]); 6] = [
    ("tables of Aria", b"create database ari; use ari;
create table t (id int primary key, v varchar(20), fulltext key (v)) engine=aria transactional=1 row_format=page; insert into t values (1, 'one'), (2, null);
create table u (id int, v int) engine=aria transactional=0 row_format=fixed page_checksum=0; insert into u values (1, 2), (1, 2);"),
    ("a default from a sequence", b"create database sq; use sq; create sequence s; create table t (id int primary key default nextval(s), v int); insert into t(v) values (1);"),
    ("a view on another database's sequence", b"create database shopseq; use shopseq; create sequence s start with 500; create table t (id bigint primary key default nextval(s), v int); insert into t(v) values (1);
create view v as select t.id, t.v from shopseq.t;"),
    ("rows with a history", b"create database f3; use f3;
create table sv (id int primary key, price decimal(9,2)) with system versioning;
insert into sv values (1,10),(2,20); update sv set price=11 where id=1; delete from sv where id=2;
create table sv2 (id int primary key, v int, rs timestamp(6) generated always as row start, re timestamp(6) generated always as row end, period for system_time(rs,re)) with system versioning;
insert into sv2(id,v) values (1,1),(2,2); update sv2 set v=5 where id=1;"),
    ("a package", b"create database pk; use pk; set sql_mode=oracle;
delimiter //
create package p as function f return int; end //
create package body p as function f return int as begin return 1; end; end //
delimiter ;"),
    ("periods of an application", b"create database pe; use pe; create table t (id int, a date, b date, period for p(a, b), unique (id, p without overlaps)); insert into t values (1, '2024-01-01', '2024-02-01'), (1, '2024-02-01', '2024-03-01');"),
];

const MARIADB_11: [(&str, &[u8]); 1] = [(
    "times after 2038, and vectors",
    b"create database n; use n; create table ts (id int primary key, expires timestamp null); insert into ts values (1,'2100-01-01'),(2,'2024-01-01');
create table vec (id int primary key, v vector(3) not null, vector index (v)); insert into vec values (1, vec_fromtext('[1,0.1,1e-20]'));",
)];

const MYSQL: [(&str, &[u8]); 3] = [
    ("libraries, of another database too", b"create database la; create database lb; use lb;
set sql_mode='ANSI_QUOTES,NO_BACKSLASH_ESCAPES';
delimiter //
create library x comment 'it''s \xc3\xa9' language javascript as $$ export function f(a) { return '\\n;;' + \"\xc3\xa9\"; } $$ //
delimiter ;
set sql_mode=default;
create library `b``in` language wasm as X'0061736D01000000';
create function la.g(a int) returns int deterministic language javascript using (lb.x) as $$ return 1; $$;
create procedure lb.p() language javascript using (x as y, `b``in`) as $$ let a = 1; $$;"),
    ("keys that are not to be seen", b"create database ik; use ik; set sql_generate_invisible_primary_key=1; create table g (a int); insert into g values (1),(2); set sql_generate_invisible_primary_key=0;
create table t (a varchar(20), b json, c int invisible default 7, key f ((lower(a))), key m ((cast(b->'$.x' as unsigned array))), key i (a) invisible); insert into t values ('A', '{\"x\": [1,2]}');"),
    ("defaults that are expressions", b"create database dx; use dx; create table t (a int default (1+2), b varchar(36) default (uuid()), c json default (json_array('a\\'b')), d point srid 4326 not null, spatial key (d), e enum('a','\xc3\xa9') charset latin1);
insert into t (d) values (st_geomfromtext('POINT(1 2)', 4326)); create table p (a int) partition by list (a) (partition x values in (1, null), partition y values in (2)); insert into p values (null),(2);"),
];
