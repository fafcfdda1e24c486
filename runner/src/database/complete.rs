//! Whether a file that a client wrote is whole, by its structure: one rule for each type of
//! database, for dumps that are made here, for those that gobackup made, and for what is verified.
//! Every check reads the file once, from its beginning to its end, in little memory.

use std::io::Read;

use crds::plan::DatabaseType;

use crate::database::etcd::bolt;
use crate::database::flaw::{Flaw, broken, each};
use crate::database::mongodb::bson;
use crate::database::mysql::dump_reader::DumpReader;
use crate::database::postgresql::own_formats;
use crate::database::redis::rdb;

/// Reads a file of a dump of this type. `path` is its path in the dump: of MongoDB its ending says
/// what it is.
///
/// # Errors
/// It is not whole, or can't be read.
pub(crate) fn check(
    database_type: DatabaseType,
    path: &str,
    from: &mut dyn Read,
) -> Result<(), Flaw> {
    match database_type {
        DatabaseType::Mysql | DatabaseType::Mariadb => {
            let mut reader = DumpReader::default();
            each(from, |chunk| reader.feed(chunk))?;
            let summary = reader.finish();
            if summary.whole {
                Ok(())
            } else {
                Err(broken(summary.flaw))
            }
        }
        DatabaseType::Postgresql => own_formats::check(from),
        DatabaseType::Redis => rdb::check(from),
        DatabaseType::Etcd => bolt::check(from),
        DatabaseType::Mongodb => bson::check(path, from),
        // What InfluxDB wrote is judged by its manifest, once all files are known.
        DatabaseType::Influxdb2 | DatabaseType::Mssql => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use super::*;

    fn good(database_type: DatabaseType, path: &str, bytes: &[u8]) -> bool {
        check(database_type, path, &mut &bytes[..]).is_ok()
    }

    /// Every beginning of a real file, and the file with half of itself after it.
    fn only_the_whole_is(database_type: DatabaseType, path: &str, bytes: &[u8]) {
        assert!(
            good(database_type, path, bytes),
            "{path}: {:?}",
            check(database_type, path, &mut &bytes[..])
        );
        // Near both ends at each byte, between them at so many that it stays quick.
        let step = bytes.len() / 500 + 1;
        let near = |at: &usize| *at < 700 || *at + 700 > bytes.len() || at.is_multiple_of(step);
        for cut in (0..bytes.len()).filter(near) {
            assert!(
                !good(database_type, path, &bytes[..cut]),
                "{path} cut at {cut}"
            );
        }
        let twice = [bytes, &bytes[..bytes.len() / 2]].concat();
        assert!(!good(database_type, path, &twice), "{path} and half of it");
        let twice = [bytes, bytes].concat();
        assert!(
            !good(database_type, path, &twice) || database_type == DatabaseType::Mongodb,
            "{path} twice"
        );
    }

    #[test]
    fn t4_formats_of_pg_dump_are_whole_to_their_last_byte_or_not_at_all() {
        let custom = include_bytes!("../../tests/fixtures/closing-postgresql.custom");
        only_the_whole_is(DatabaseType::Postgresql, "a.sql", custom);
        let tar = include_bytes!("../../tests/fixtures/closing-postgresql.tar");
        only_the_whole_is(DatabaseType::Postgresql, "a.sql", tar);
    }

    #[test]
    fn t4_a_snapshot_of_redis_without_checksum_is_read_through() {
        let whole = include_bytes!("../../tests/fixtures/redis-7.rdb");
        only_the_whole_is(DatabaseType::Redis, "dump.rdb", whole);
        let at = whole.len() - 8;
        let mut plain = whole.to_vec();
        plain[at..].fill(0);
        only_the_whole_is(DatabaseType::Redis, "dump.rdb", &plain);
        // The end mark and eight zeros in the middle of a value close nothing.
        let mut cut = whole[..at / 2].to_vec();
        cut.extend([0xff, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert!(!good(DatabaseType::Redis, "dump.rdb", &cut));
    }
}
