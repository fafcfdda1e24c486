//! Restores into PostgreSQL: one transaction or nothing, in place of whatever is there; compared by
//! pg_dump of what was restored.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod common;

use std::process::Command;

use common::Finished;
use common::backup::Backup;
use common::servers::{POSTGRES_PASSWORD, postgres, psql, try_psql};
use serde_json::{Value, json};

/// A database of its own, and an archive of it.
fn archived(database: &str, sql: &str, args: &[&str]) -> Backup {
    psql(
        postgres(),
        "postgres",
        &format!("create database {database}"),
    );
    psql(postgres(), database, sql);
    let mut backup = Backup::new().with_disk(3);
    backup.plan["databases"] = json!([]);
    let item = json!({
        "name": "main", "engine": "postgresql", "host": "127.0.0.1", "port": postgres(), "database": database,
        "username": backup.secret("pg-user", "postgres"), "password": backup.secret("pg", POSTGRES_PASSWORD), "args": args,
    });
    backup.add("databases", item);
    backup.run("n-1").assert_good();
    backup
}

fn restore(backup: &mut Backup, user: &str, options: Value) -> Finished {
    let source = json!({
        "host": "127.0.0.1", "port": postgres(),
        "usernameFile": backup.secret("to-user", user), "passwordFile": backup.secret("to", POSTGRES_PASSWORD),
    });
    backup.restore(source, options)
}

/// The whole database as pg_dump writes it.
fn dumped(database: &str) -> String {
    let output = Command::new("pg_dump")
        .env("PGPASSWORD", POSTGRES_PASSWORD)
        .args([
            "-h",
            "127.0.0.1",
            "-p",
            &postgres().to_string(),
            "-U",
            "postgres",
            "-d",
            database,
        ])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = text
        .lines()
        .filter(|l| !l.starts_with("\\restrict") && !l.starts_with("\\unrestrict"));
    lines.collect::<Vec<_>>().join("\n")
}

/// One of nearly everything that a database can hold of its users' own.
const EVERYTHING: &str = r#"
create table t (a int primary key, b int); insert into t values (1,1),(2,2);
do $$ begin perform lo_from_bytea(0, '\x00ff'::bytea); end $$;
create publication pub for table t;
create extension file_fdw; create server fs foreign data wrapper file_fdw; create user mapping for postgres server fs;
create foreign table ft (x text) server fs options (filename '/dev/null');
create foreign data wrapper nothing;
create collation nat (provider=icu, locale='en-u-kn-true');
create text search configuration ts (copy = simple);
create text search dictionary dict (template = simple);
create text search template tmpl (lexize = dsimple_lexize);
create text search parser prs (start = prsd_start, gettoken = prsd_nexttoken, end = prsd_end, lextypes = prsd_lextype);
create domain posint as int check (value > 0);
create type mood as enum ('a','b'); create type comp as (a int, b text); create type rng as range (subtype = float8);
create function ident(int) returns int language sql immutable as 'select $1';
create procedure pr(a int, out b int) language plpgsql as $$ begin b := a; commit; end $$;
create function batom(a int) returns int language sql begin atomic select a; select a+1; end;
create aggregate agg(int) (sfunc = int4pl, stype = int, initcond = '0');
create aggregate agg0(*) (sfunc = int8inc, stype = int8, initcond = '0');
create aggregate perc(float8 ORDER BY anyelement) (sfunc = ordered_set_transition, stype = internal, finalfunc = percentile_disc_final, finalfunc_extra);
create function eqq(int, int) returns bool language sql immutable as 'select $1=$2';
create operator === (leftarg = int, rightarg = int, procedure = eqq);
create operator !!! (rightarg = int, procedure = ident);
create operator family of_x using btree;
create operator class oc_x for type int using btree as operator 1 <, operator 2 <=, operator 3 =, operator 4 >=, operator 5 >, function 1 btint4cmp(int,int);
create function c_in(text) returns comp language sql as $$ select row(1,$1)::comp $$;
create cast (text as comp) with function c_in(text);
create default conversion conv for 'LATIN1' to 'UTF8' from iso8859_1_to_utf8;
create access method am type table handler heap_tableam_handler;
create function etf() returns event_trigger language plpgsql as $$ begin raise exception 'no such thing may be dropped'; end $$;
create event trigger et on sql_drop execute function etf(); alter event trigger et disable;
create schema s1 authorization postgres; create table s1.u (id serial primary key, t_a int references t(a), e mood);
create statistics st on a, b from t;
create index ix on t(b); create view v as select * from t; create materialized view mv as select * from v;
create policy pol on t using (a > 0); alter table t enable row level security;
create rule ru as on insert to v do instead (insert into t values (new.a); insert into s1.u(t_a) values (new.a));
create trigger tr before update on t for each row execute function suppress_redundant_updates_trigger();
create table part (a int) partition by range(a); create table part1 partition of part for values from (0) to (10);
create extension hstore; create extension pg_trgm schema s1; create table h (x hstore, y text); create index htr on h using gin (y s1.gin_trgm_ops);
create transform for hstore language sql (to sql with function hstore_recv(internal));
alter default privileges in schema public grant select on tables to public;
alter default privileges for role postgres revoke execute on functions from public;
create sequence sq start 50; select nextval('sq');
comment on schema public is 'hello';
create table "a
b" ("x
y" int); insert into "a
b" values (1);
create table "q""uo;te" (x text); insert into "q""uo;te" values (E'BEGIN;\nCOMMIT;\n\\.'), ('\connect x');
create subscription sub connection 'host=127.0.0.1 port=1 dbname=x' publication p with (connect=false);
alter event trigger et enable;
"#;

#[test]
fn l2_everything_is_replaced_in_place_twice_and_equal() {
    let mut backup = archived("l2_all", EVERYTHING, &[]);
    let before = dumped("l2_all");
    restore(&mut backup, "postgres", json!({})).assert_failed(
        2,
        "TargetNotEmpty",
        &["objects", "overwrite"],
    );
    for _ in 0..2 {
        psql(
            postgres(),
            "l2_all",
            "alter event trigger et disable; insert into t values (30,3); create type later as enum ('x'); create function later() returns int language sql as 'select 1';
             do $$ begin perform lo_from_bytea(0, '\\x01'::bytea); end $$; alter default privileges grant select on tables to public; alter event trigger et enable",
        );
        let done = restore(&mut backup, "postgres", json!({"overwrite": true}));
        done.assert_good();
        assert_eq!(dumped("l2_all"), before);
    }
    restore(&mut backup, "postgres", json!({"database": "l2_copy"})).assert_good();
    assert_eq!(dumped("l2_copy"), before);
    for name in ["l2_all", "l2_copy"] {
        psql(
            postgres(),
            name,
            "drop event trigger et; alter subscription sub disable; alter subscription sub set (slot_name = none); drop subscription sub",
        );
        psql(postgres(), "postgres", &format!("drop database {name}"));
    }
}

/// As [`restore`], by so many sessions.
fn restore_by(backup: &mut Backup, sessions: u32, options: Value) -> Finished {
    let source = json!({
        "host": "127.0.0.1", "port": postgres(), "sessions": sessions,
        "usernameFile": backup.secret("to-user", "postgres"), "passwordFile": backup.secret("to", POSTGRES_PASSWORD),
    });
    backup.restore(source, options)
}

/// It said that several sessions were asked for in vain.
fn by_one(done: &Finished) -> bool {
    let mut warnings = done.report.warnings.iter();
    warnings.any(|w| w.contains("by one session"))
}

#[test]
fn l5_the_formats_of_pg_dumps_own_are_restored_as_sql_is() {
    for (n, format) in ["-Fc", "-Ft"].into_iter().enumerate() {
        let (source, copy, several) = (
            format!("l5_{n}"),
            format!("l5_copy{n}"),
            format!("l5_several{n}"),
        );
        let mut backup = archived(&source, EVERYTHING, &[format]);
        let before = dumped(&source);
        // In place, in one transaction, of what is there.
        restore(&mut backup, "postgres", json!({})).assert_failed(
            2,
            "TargetNotEmpty",
            &["objects", "overwrite"],
        );
        psql(
            postgres(),
            &source,
            "alter event trigger et disable; insert into t values (30,3); create type later as enum ('x'); alter event trigger et enable",
        );
        let done = restore_by(&mut backup, 3, json!({"overwrite": true}));
        done.assert_good();
        assert!(by_one(&done), "{:?}", done.report.warnings);
        assert_eq!(dumped(&source), before);
        let done = restore(&mut backup, "postgres", json!({"database": copy}));
        done.assert_good();
        assert_eq!(dumped(&copy), before);
        let done = restore_by(&mut backup, 3, json!({"database": several}));
        done.assert_good();
        let alone = by_one(&done);
        assert_eq!(alone, format == "-Ft", "{:?}", done.report.warnings);
        assert_eq!(dumped(&several), before);
        assert_eq!(
            std::fs::read_dir(backup.dir().join("work")).map_or(0, Iterator::count),
            0
        );
        for name in [&source, &copy, &several] {
            psql(
                postgres(),
                name,
                "drop event trigger et; alter subscription sub disable; alter subscription sub set (slot_name = none); drop subscription sub",
            );
            psql(postgres(), "postgres", &format!("drop database {name}"));
        }
    }
}

#[test]
fn l5_several_sessions_that_fail_leave_no_database() {
    psql(postgres(), "postgres", "create role l5_gone");
    let source = "create table t (id int primary key); insert into t select generate_series(1, 1000); alter table t owner to l5_gone";
    let mut backup = archived("l5_source", source, &["-Fc"]);
    psql(postgres(), "postgres", "drop database l5_source");
    psql(postgres(), "postgres", "drop role l5_gone");
    for sessions in [1, 2] {
        restore_by(&mut backup, sessions, json!({"database": "l5_new"})).assert_failed(
            3,
            "RoleMissing",
            &[
                "role \"l5_gone\" does not exist",
                "database l5_new, which was made for it, was dropped again",
            ],
        );
        assert!(try_psql(postgres(), "l5_new", "select 1").is_err());
    }
}

#[test]
fn l2_a_database_without_tables_is_not_free_and_its_owner_may_replace_it() {
    psql(
        postgres(),
        "postgres",
        &format!("create role tenant login password '{POSTGRES_PASSWORD}'"),
    );
    let mut backup = archived(
        "l2_own",
        "create function f() returns int language sql as 'select 1'; create type mood as enum ('a'); do $$ begin perform lo_from_bytea(7, '\\x00ff'::bytea); end $$",
        &["--no-owner"],
    );
    psql(
        postgres(),
        "postgres",
        "create database l2_mine owner tenant",
    );
    let mine = json!({"database": "l2_mine"});
    restore(&mut backup, "tenant", mine.clone()).assert_good();
    let before = dumped("l2_mine");
    assert!(before.contains("CREATE TYPE public.mood") && before.contains("lo_create('7')"));
    restore(&mut backup, "tenant", mine).assert_failed(2, "TargetNotEmpty", &["overwrite"]);
    restore(
        &mut backup,
        "tenant",
        json!({"database": "l2_mine", "overwrite": true}),
    )
    .assert_good();
    assert_eq!(dumped("l2_mine"), before);
    // What is another's stays, and with it everything.
    psql(
        postgres(),
        "l2_mine",
        "create schema other; create table other.precious (id int)",
    );
    let before = dumped("l2_mine");
    restore(
        &mut backup,
        "tenant",
        json!({"database": "l2_mine", "overwrite": true}),
    )
    .assert_failed(3, "PermissionDenied", &["database l2_mine is as it was"]);
    assert_eq!(dumped("l2_mine"), before);
    psql(postgres(), "postgres", "drop database l2_own");
    psql(postgres(), "postgres", "drop database l2_mine");
    psql(postgres(), "postgres", "drop role tenant");
}

#[test]
fn l1_a_restore_that_fails_after_large_objects_has_changed_nothing() {
    let source = "
        create function fold(t text) returns text language sql immutable as $$ select lower(t) $$;
        create function key(t text) returns text language plpgsql immutable as $$ begin return fold(t); end $$;
        create table t (id int primary key, v text); insert into t values (1, 'A'); create index t_key on t (key(v));
        do $$ begin perform lo_from_bytea(0, '\\x00ff00aa'::bytea); end $$";
    let mut backup = archived("l1_source", source, &[]);
    psql(postgres(), "postgres", "create database victim");
    psql(
        postgres(),
        "victim",
        "create table precious (id int); insert into precious values (1), (2), (3); create sequence s; select nextval('s')",
    );
    let before = dumped("victim");
    let done = restore(
        &mut backup,
        "postgres",
        json!({"database": "victim", "overwrite": true}),
    );
    done.assert_failed(
        3,
        "RestoreFailed",
        &[
            "function fold(text) does not exist",
            "database victim is as it was",
            "nothing was changed",
        ],
    );
    assert_eq!(dumped("victim"), before);
    // What was made for it is not left behind.
    let done = restore(&mut backup, "postgres", json!({"database": "l1_new"}));
    done.assert_failed(
        3,
        "RestoreFailed",
        &["database l1_new, which was made for it, was dropped again"],
    );
    assert!(try_psql(postgres(), "l1_new", "select 1").is_err());
    psql(postgres(), "postgres", "drop database victim");
    psql(postgres(), "postgres", "drop database l1_source");
}

#[test]
fn l4_a_dump_that_makes_its_database_goes_into_the_one_that_is_named() {
    let mut backup = archived("l4_db", "create table t (id int)", &["--create"]);
    psql(postgres(), "l4_db", "insert into t values (1)");
    psql(
        postgres(),
        "postgres",
        "alter database l4_db set work_mem = '5MB'",
    );
    // The newest is told by the second.
    common::next_second();
    backup.run("n-2").assert_good();
    restore(&mut backup, "postgres", json!({"database": "l4_copy"})).assert_good();
    assert_eq!(psql(postgres(), "l4_copy", "select count(*) from t"), "1");
    assert_eq!(psql(postgres(), "l4_copy", "show work_mem"), "5MB");
    assert_eq!(psql(postgres(), "l4_db", "select count(*) from t"), "1");
    restore(
        &mut backup,
        "postgres",
        json!({"database": "l4_copy", "overwrite": true}),
    )
    .assert_good();
    assert_eq!(psql(postgres(), "l4_copy", "select count(*) from t"), "1");
    restore(
        &mut backup,
        "postgres",
        json!({"database": "l4_copy", "overwrite": true, "definers": "Drop"}),
    )
    .assert_failed(2, "InvalidSettings", &["--definers"]);
    psql(postgres(), "postgres", "drop database l4_db");
    psql(postgres(), "postgres", "drop database l4_copy");
}
