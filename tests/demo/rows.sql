-- Some megabytes of rows beside the awkward ones of db_fixture.sql: text in many scripts, binary data, nulls, exact and
-- floating numbers, times on both sides of the epoch.
create database orders character set utf8mb4;
use orders;
create table customer (
  id int primary key,
  name varchar(80) not null,
  note text null,
  avatar varbinary(64) null,
  balance decimal(18, 4) not null,
  ratio double not null,
  born date null,
  changed timestamp(6) not null
) engine = innodb;
insert into customer
select seq,
       concat(elt(1 + seq % 5, 'Müller', '李雷', 'Иванов', 'O''Brien', 'a\\b;"c"'), ' ', seq),
       if(seq % 7 = 0, null, concat_ws(' ', sha2(seq, 512), '😀', sha2(seq * 3, 512))),
       if(seq % 3 = 0, null, unhex(sha2(seq, 256))),
       (seq * 104729 % 1000000007) / 10000 - 5000,
       seq / 7,
       if(seq % 11 = 0, null, date_add('1935-02-28', interval seq day)),
       timestampadd(microsecond, seq * 999983, '2020-01-01 00:00:00')
from seq_1_to_12000;
create table item (
  id bigint primary key auto_increment,
  customer int not null references customer (id),
  label varchar(200) not null,
  price decimal(10, 2) not null,
  key (customer)
) engine = innodb;
insert into item (customer, label, price)
select 1 + seq % 12000, concat('item ', sha1(seq), ' ', sha1(seq * 5)), seq % 99991 / 100
from seq_1_to_40000;
create table empty_table (id int primary key) engine = innodb;
insert into shop.big (body) values (repeat('x', 1000000)), (repeat('y', 200000));
