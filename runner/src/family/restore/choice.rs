//! Which dumps of an archive are restored, by its record. PURE.

use crds::gobackup::plan::Engine;

use super::super::state::{FileRecord, Record};
use crate::failure::Failure;
use crate::manifest::ServerIdentity;

/// What can be loaded over the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Server {
    /// MySQL and MariaDB.
    Mysql,
    /// PostgreSQL.
    Postgresql,
}

/// A dump that is restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Dump {
    /// Path in the archive.
    pub(super) path: String,
    /// Its server.
    pub(super) engine: Engine,
    /// Name of the Database.
    pub(super) database: String,
    /// Name of the database on the server, by the file's name.
    pub(super) schema: String,
    /// Bytes.
    pub(super) bytes: u64,
    /// SHA-256.
    pub(super) sha256: String,
    /// What its server calls itself.
    pub(super) server: ServerIdentity,
}

impl Dump {
    /// `postgresql/maindb`.
    pub(super) fn name(&self) -> String {
        format!("{}/{}", self.engine.as_str(), self.database)
    }
}

/// What is restored, and what stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chosen {
    pub(super) server: Server,
    pub(super) dumps: Vec<Dump>,
    /// A sentence for each dump that is not restored though no name was asked for.
    pub(super) left: Vec<String>,
}

/// A file of the archive, by gobackup's tree `<model>/<type>/<database>/<file>`; etcd has
/// `<model>/etcd/<database>-<endpoint>`.
struct Item<'a> {
    engine: &'a str,
    database: &'a str,
    record: &'a FileRecord,
}

impl<'a> Item<'a> {
    fn of(record: &'a FileRecord) -> Option<Self> {
        let mut parts = record.path.split('/').skip(1);
        Some(Self {
            engine: parts.next()?,
            database: parts.next()?,
            record,
        })
    }

    fn name(&self) -> String {
        format!("{}/{}", self.engine, self.database)
    }

    /// The dump and what takes it, or how it is restored by hand.
    fn fits(&self) -> Result<(Server, Dump), &'static str> {
        let file = self.record.path.rsplit('/').next().unwrap_or_default();
        let engine = Engine::parse(self.engine).ok_or("by the tool of its type")?;
        let server = match engine {
            Engine::Mysql | Engine::Mariadb => Server::Mysql,
            Engine::Postgresql if file == "all_databases.sql" => {
                return Err(
                    "with `psql --dbname=postgres --file=all_databases.sql`, as it makes roles and changes between databases",
                );
            }
            Engine::Postgresql => Server::Postgresql,
            Engine::Redis => {
                return Err(
                    "by stopping the server, putting dump.rdb into its data directory and starting it: no running server takes a dump.rdb",
                );
            }
            Engine::Etcd => {
                return Err(
                    "with `etcdutl snapshot restore`, which makes the data directory of a new member",
                );
            }
            Engine::Mongodb => return Err("with `mongorestore`"),
            Engine::Influxdb2 => return Err("with `influx restore`"),
            Engine::Mssql => return Err("with `sqlpackage /Action:Import`"),
        };
        Ok((
            server,
            Dump {
                path: self.record.path.clone(),
                engine,
                database: self.database.to_owned(),
                schema: file.strip_suffix(".sql").unwrap_or(file).to_owned(),
                bytes: self.record.bytes,
                sha256: self.record.sha256.clone(),
                server: self.record.server.as_deref().cloned().unwrap_or_default(),
            },
        ))
    }
}

/// Chooses by the name of a Database, or all that one server takes; `to` is the new name of the one
/// database.
///
/// # Errors
/// There is none of that name, it is restored by hand, or one server can't take all.
pub(super) fn choose(
    record: &Record,
    wanted: Option<&str>,
    to: Option<&str>,
) -> Result<Chosen, Failure> {
    let items = items(record);
    let named = |item: &&Item<'_>| wanted.is_none_or(|w| item.database == w.to_lowercase());
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
    let names: Vec<String> = dumps.iter().map(|(_, d)| d.name()).collect();
    if dumps.iter().any(|(other, _)| *other != server) {
        return Err(choice(format!(
            "{} holds {}, which no one server takes: name one with spec.from.database (--from-database)",
            record.key,
            names.join(", ")
        )));
    }
    let dumps: Vec<Dump> = dumps.into_iter().map(|(_, dump)| dump).collect();
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
        "{name} is not restored: it is restored by hand, {how}; `kubectl backup download` brings the tar that holds it"
    )
}

fn choice(text: String) -> Failure {
    Failure::settings(text)
}

/// Why there is nothing to restore.
fn none(record: &Record, items: &[Item<'_>], wanted: Option<&str>, by_hand: &[String]) -> Failure {
    let code = crds::report::exit::SETTINGS;
    if !by_hand.is_empty() {
        return Failure::new(code, "RestoredByHand", by_hand.join("; "));
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
    Failure::new(code, "NotInArchive", text)
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
        ] {
            assert_eq!(told(paths, wanted, to), expected);
        }
    }

    #[test]
    fn what_no_server_takes_is_refused_with_the_remedy() {
        for (path, remedy) in [
            (CACHE, "putting dump.rdb into its data directory"),
            ("etcd/kv-127.0.0.1:2379", "`etcdutl snapshot restore`"),
            ("mongodb/m/app/t.bson", "`mongorestore`"),
            ("influxdb2/i/x.tar", "`influx restore`"),
            ("postgresql/p/all_databases.sql", "`psql --dbname=postgres"),
        ] {
            let text = told(&[path], None, None);
            assert!(text.starts_with("RestoredByHand: "), "{text}");
            assert!(text.contains(remedy), "{text}");
            assert!(text.contains("kubectl backup download"), "{text}");
        }
    }
}
