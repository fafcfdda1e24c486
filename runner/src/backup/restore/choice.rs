//! Which dumps of an archive are restored, by its record. PURE.

use crds::plan::DatabaseType;
use crds::report::Reason;

use crate::backup::record::{FileRecord, Record};
use crate::database::restore::StoredDump;
use crate::failure::Failure;

/// What can be loaded over the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Server {
    /// MySQL and MariaDB.
    Mysql,
    /// PostgreSQL.
    Postgresql,
    /// Redis and Valkey.
    Redis,
}

/// What is restored, and what stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chosen {
    pub(crate) server: Server,
    pub(crate) dumps: Vec<StoredDump>,
    /// A sentence for each dump that is not restored though no name was asked for.
    pub(crate) left: Vec<String>,
}

/// A file of the archive, by gobackup's tree `<model>/<type>/<database>/<file>`; etcd has
/// `<model>/etcd/<database>-<endpoint>`.
struct Item<'a> {
    database_type: &'a str,
    database: &'a str,
    record: &'a FileRecord,
}

impl<'a> Item<'a> {
    fn of(record: &'a FileRecord) -> Option<Self> {
        let mut parts = record.path.split('/').skip(1);
        Some(Self {
            database_type: parts.next()?,
            database: parts.next()?,
            record,
        })
    }

    fn name(&self) -> String {
        format!("{}/{}", self.database_type, self.database)
    }

    /// The dump and what takes it, or how it is restored by hand.
    fn fits(&self) -> Result<(Server, StoredDump), &'static str> {
        let file = self.record.path.rsplit('/').next().unwrap_or_default();
        let database_type =
            DatabaseType::parse(self.database_type).ok_or("by the tool of its type")?;
        let server = match database_type {
            DatabaseType::Mysql | DatabaseType::Mariadb => Server::Mysql,
            DatabaseType::Postgresql if file == "all_databases.sql" => {
                return Err(
                    "with `psql --dbname=postgres --file=all_databases.sql`, as it makes roles and changes between databases",
                );
            }
            DatabaseType::Postgresql => Server::Postgresql,
            DatabaseType::Redis => Server::Redis,
            DatabaseType::Etcd => {
                return Err(
                    "with `etcdutl snapshot restore`, which makes the data directory of a new member as spec.to.volume does",
                );
            }
            DatabaseType::Mongodb => return Err("with `mongorestore`"),
            DatabaseType::Influxdb2 => return Err("with `influx restore`"),
            DatabaseType::Mssql => return Err("with `sqlpackage /Action:Import`"),
        };
        let schema = file.strip_suffix(".sql").unwrap_or(file);
        Ok((server, self.dump(schema.to_owned())))
    }

    fn dump(&self, schema: String) -> StoredDump {
        StoredDump {
            path: self.record.path.clone(),
            database_type: self.database_type.to_owned(),
            database: self.database.to_owned(),
            schema,
            bytes: self.record.bytes,
            sha256: self.record.sha256.clone(),
            server: self.record.server.as_deref().cloned().unwrap_or_default(),
            arguments: self
                .record
                .holds
                .as_ref()
                .map(|holds| holds.options.clone())
                .unwrap_or_default(),
            native: self.record.holds.as_ref().is_some_and(|h| h.native),
        }
    }

    /// Path of the file within the dump of its database.
    fn inner(&self) -> String {
        let inner = self.record.path.splitn(4, '/').nth(3);
        inner.unwrap_or(self.database).to_owned()
    }

    /// Its Database is of this name. A file of etcd has its member's name with it.
    fn is_of(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        let rest = self.database.strip_prefix(&name);
        self.database == name
            || self.database_type == "etcd" && rest.is_some_and(|rest| rest.starts_with('-'))
    }
}

/// Chooses the files of one Database, whatever its engine is.
///
/// # Errors
/// There is none of that name, or several.
pub(crate) fn files(record: &Record, wanted: Option<&str>) -> Result<Vec<StoredDump>, Failure> {
    let items = items(record);
    let named: Vec<&Item<'_>> = items
        .iter()
        .filter(|item| wanted.is_none_or(|w| item.is_of(w)))
        .collect();
    let mut names: Vec<String> = named.iter().map(|item| item.name()).collect();
    names.sort();
    names.dedup();
    match &names[..] {
        [] => Err(none(record, &items, wanted, &[])),
        [_] => Ok(named.iter().map(|item| item.dump(item.inner())).collect()),
        _ => Err(choice(format!(
            "{} holds {}, and a directory takes the files of one Database: name it with spec.from.database (--from-database)",
            record.key,
            names.join(", ")
        ))),
    }
}

/// Chooses by the name of a Database, or all that one server takes; `to` is the new name of the one
/// database.
///
/// # Errors
/// There is none of that name, it is restored by hand, or one server can't take all.
pub(crate) fn choose(
    record: &Record,
    wanted: Option<&str>,
    to: Option<&str>,
) -> Result<Chosen, Failure> {
    let items = items(record);
    let named = |item: &&Item<'_>| wanted.is_none_or(|w| item.is_of(w));
    let (mut dumps, mut by_hand) = (vec![], vec![]);
    for item in items.iter().filter(named) {
        match item.fits() {
            Ok(fits) => dumps.push(fits),
            Err(how) => by_hand.push(sentence(&item.name(), how)),
        }
    }
    // mongodb and influxdb have many files each.
    by_hand.dedup();
    let Some(server) = dumps.first().map(|(server, _)| *server) else {
        return Err(none(record, &items, wanted, &by_hand));
    };
    // The databases of SQL servers came first: to who names none, Redis is another server.
    let redis = |(server, _): &(Server, StoredDump)| *server == Server::Redis;
    let mixed = dumps.iter().any(redis) && !dumps.iter().all(redis);
    let (others, dumps): (Vec<_>, Vec<_>) = dumps.into_iter().partition(|d| mixed && redis(d));
    by_hand.extend(others.iter().map(|(_, dump)| {
        format!(
            "{} is not restored: a Redis or Valkey server takes it; name it with spec.from.database (--from-database)",
            dump.name()
        )
    }));
    let server = dumps.first().map_or(server, |(server, _)| *server);
    let names: Vec<String> = dumps.iter().map(|(_, d)| d.name()).collect();
    if server == Server::Redis && names.len() > 1 {
        return Err(choice(format!(
            "{} holds {}, whose keys would mix: name one with spec.from.database (--from-database)",
            record.key,
            names.join(", ")
        )));
    }
    if dumps.iter().any(|(other, _)| *other != server) {
        return Err(choice(format!(
            "{} holds {}, which no one server takes: name one with spec.from.database (--from-database)",
            record.key,
            names.join(", ")
        )));
    }
    let dumps: Vec<StoredDump> = dumps.into_iter().map(|(_, dump)| dump).collect();
    if let (Some(to), [_, _, ..]) = (to, &dumps[..]) {
        return Err(choice(format!(
            "{} holds {}: only one of them can be restored as {to}; name it with spec.from.database (--from-database)",
            record.key,
            names.join(", ")
        )));
    }
    for (i, dump) in dumps.iter().enumerate() {
        let same = dumps.iter().take(i).find(|d| d.schema == dump.schema);
        if let Some(same) = same {
            return Err(choice(format!(
                "{} and {} are both of a database {}: name one with spec.from.database (--from-database)",
                same.name(),
                dump.name(),
                dump.schema
            )));
        }
    }
    Ok(Chosen {
        server,
        dumps,
        left: by_hand,
    })
}

fn items(record: &Record) -> Vec<Item<'_>> {
    record.files.iter().filter_map(Item::of).collect()
}

fn sentence(name: &str, how: &str) -> String {
    format!(
        "{name} is not restored: no running server takes it over the network. spec.to.volume (--to-volume) puts it on a volume, or restore it by hand, {how}; `kubectl backup download` brings the tar that holds it"
    )
}

fn choice(text: String) -> Failure {
    Failure::settings(text)
}

/// Why there is nothing to restore.
fn none(record: &Record, items: &[Item<'_>], wanted: Option<&str>, by_hand: &[String]) -> Failure {
    if !by_hand.is_empty() {
        return Failure::new(Reason::RestoredByHand, by_hand.join("; "));
    }
    let mut there: Vec<String> = items.iter().map(Item::name).collect();
    there.dedup();
    let there = if there.is_empty() {
        "no database".to_owned()
    } else {
        there.join(", ")
    };
    let text = match wanted {
        Some(name) => format!(
            "{} holds no dump of a Database {name}; it holds {there}",
            record.key
        ),
        None => format!("{} holds {there}", record.key),
    };
    Failure::new(Reason::NotInArchive, text)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use super::*;

    fn record(paths: &[&str]) -> Record {
        Record {
            key: "a.tar.gz".to_owned(),
            files: paths
                .iter()
                .map(|path| FileRecord {
                    path: format!("nightly/{path}"),
                    bytes: 7,
                    sha256: "ab".to_owned(),
                    ..FileRecord::default()
                })
                .collect(),
            ..Record::default()
        }
    }

    const PG: &str = "postgresql/maindb/app.sql";
    const SHOP: &str = "mariadb/shop/shop.sql";
    const MORE: &str = "mysql/more/all-databases.sql";
    const CACHE: &str = "redis/cache/dump.rdb";

    fn told(paths: &[&str], wanted: Option<&str>, to: Option<&str>) -> String {
        match choose(&record(paths), wanted, to) {
            Ok(chosen) => {
                let dumps: Vec<String> = chosen
                    .dumps
                    .iter()
                    .map(|d| format!("{} as {}", d.name(), d.schema))
                    .collect();
                format!(
                    "{:?}: {} | {}",
                    chosen.server,
                    dumps.join(", "),
                    chosen.left.len()
                )
            }
            Err(e) => format!("{}: {}", e.reason, e.message),
        }
    }

    #[test]
    fn one_by_name_or_all_that_one_server_takes() {
        for (paths, wanted, to, expected) in [
            (
                &[PG][..],
                None,
                None,
                "Postgresql: postgresql/maindb as app | 0",
            ),
            (
                &[PG, SHOP],
                Some("MainDB"),
                Some("copy"),
                "Postgresql: postgresql/maindb as app | 0",
            ),
            (
                &[PG, CACHE],
                None,
                Some("copy"),
                "Postgresql: postgresql/maindb as app | 1",
            ),
            (
                &[SHOP, MORE],
                None,
                None,
                "Mysql: mariadb/shop as shop, mysql/more as all-databases | 0",
            ),
            (
                &[PG, SHOP],
                None,
                None,
                "InvalidSettings: a.tar.gz holds postgresql/maindb, mariadb/shop, which no one server takes: name one with spec.from.database (--from-database)",
            ),
            (
                &[SHOP, MORE],
                None,
                Some("x"),
                "InvalidSettings: a.tar.gz holds mariadb/shop, mysql/more: only one of them can be restored as x; name it with spec.from.database (--from-database)",
            ),
            (
                &[SHOP, "mysql/b/shop.sql"],
                None,
                None,
                "InvalidSettings: mariadb/shop and mysql/b are both of a database shop: name one with spec.from.database (--from-database)",
            ),
            (
                &[PG, CACHE],
                Some("gone"),
                None,
                "NotInArchive: a.tar.gz holds no dump of a Database gone; it holds postgresql/maindb, redis/cache",
            ),
            (&[], None, None, "NotInArchive: a.tar.gz holds no database"),
            (&[CACHE], None, None, "Redis: redis/cache as dump.rdb | 0"),
            (
                &[CACHE, PG],
                None,
                None,
                "Postgresql: postgresql/maindb as app | 1",
            ),
            (
                &[PG, CACHE],
                Some("cache"),
                None,
                "Redis: redis/cache as dump.rdb | 0",
            ),
            (
                &[CACHE, "redis/queue/dump.rdb"],
                None,
                None,
                "InvalidSettings: a.tar.gz holds redis/cache, redis/queue, whose keys would mix: name one with spec.from.database (--from-database)",
            ),
        ] {
            assert_eq!(told(paths, wanted, to), expected);
        }
    }

    #[test]
    fn the_files_of_one_database_whatever_it_is() {
        const TREE: [&str; 5] = [
            "mongodb/m/app/t.bson",
            "mongodb/m/app/t.metadata.json",
            "etcd/kv-127.0.0.1:2379",
            CACHE,
            "newer/n/x",
        ];
        let told = |wanted: Option<&str>| match files(&record(&TREE), wanted) {
            Ok(dumps) => {
                let each = dumps.iter().map(|d| format!("{} {}", d.name(), d.schema));
                each.collect::<Vec<_>>().join(", ")
            }
            Err(e) => format!("{}: {}", e.reason, e.message),
        };
        for (wanted, expected) in [
            (
                Some("M"),
                "mongodb/m app/t.bson, mongodb/m app/t.metadata.json",
            ),
            (Some("kv"), "etcd/kv-127.0.0.1:2379 kv-127.0.0.1:2379"),
            (
                Some("kv-127.0.0.1:2379"),
                "etcd/kv-127.0.0.1:2379 kv-127.0.0.1:2379",
            ),
            (Some("cache"), "redis/cache dump.rdb"),
            (Some("n"), "newer/n x"),
            (
                Some("k"),
                "NotInArchive: a.tar.gz holds no dump of a Database k; it holds mongodb/m, etcd/kv-127.0.0.1:2379, redis/cache, newer/n",
            ),
            (
                None,
                "InvalidSettings: a.tar.gz holds etcd/kv-127.0.0.1:2379, mongodb/m, newer/n, redis/cache, and a directory takes the files of one Database: name it with spec.from.database (--from-database)",
            ),
        ] {
            assert_eq!(told(wanted), expected);
        }
    }

    #[test]
    fn what_no_server_takes_is_refused_with_the_remedy() {
        for (path, remedy) in [
            ("etcd/kv-127.0.0.1:2379", "`etcdutl snapshot restore`"),
            ("mongodb/m/app/t.bson", "`mongorestore`"),
            ("influxdb2/i/x.tar", "`influx restore`"),
            ("postgresql/p/all_databases.sql", "`psql --dbname=postgres"),
        ] {
            let text = told(&[path], None, None);
            assert!(text.starts_with("RestoredByHand: "), "{text}");
            assert!(text.contains(remedy), "{text}");
            assert!(text.contains("kubectl backup download"), "{text}");
            assert!(text.contains("spec.to.volume"), "{text}");
        }
    }
}
