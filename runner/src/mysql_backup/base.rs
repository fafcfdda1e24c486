//! What a dump says of its moment in the server's binary log.

use binlog::Identity;
use binlog::chain::Base;
use binlog::gtid::Gtids;
use crds::time::parse_rfc3339;

use crate::database::mysql::source::Flavour;
use crate::mysql_backup::manifest::Manifest;

/// From where binary logs go on behind a dump.
///
/// # Errors
/// It does not say, and what would make the next one say it.
pub(crate) fn base(manifest: &Manifest) -> Result<Base, String> {
    let key = &manifest.key;
    let text = manifest.position.as_str();
    let place = quoted(text, "_LOG_FILE='").zip(number(text, "_LOG_POS="));
    let Some((file, position)) = place else {
        return Err(match (manifest.flavour(), text.contains("GTID_PURGED='")) {
            (Flavour::MySql, true) => format!(
                "{key} names GTIDs and no position, and they are not of the very moment of the dump: grant its user RELOAD or LOCK TABLES, and REPLICATION CLIENT, and make a new backup"
            ),
            (Flavour::MySql, false) => format!(
                "{key} does not say at which position of the binary log it was made: switch log_bin on, grant its user RELOAD or LOCK TABLES, and REPLICATION CLIENT, and make a new backup"
            ),
            (Flavour::MariaDb, _) => format!(
                "{key} does not say at which position of the binary log it was made: switch log_bin on, grant its user BINLOG MONITOR, and make a new backup"
            ),
        });
    };
    let seconds = |text: &str| {
        let at = parse_rfc3339(text).map_or(0, |at| at.timestamp());
        u32::try_from(at).unwrap_or_default()
    };
    let of = &manifest.server_identity;
    Ok(Base {
        server: Identity {
            server_uuid: of.server_uuid.clone(),
            hostname: of.hostname.clone(),
            port: of.port.clone(),
            datadir: of.datadir.clone(),
        },
        file: file.to_owned(),
        position,
        gtids: gtids(manifest),
        moment: seconds(&manifest.started_at),
        until: seconds(&manifest.ended_at).saturating_add(1),
    })
}

/// The transactions that are in it, where they are known: a set that is too long is left out of a manifest.
fn gtids(manifest: &Manifest) -> Option<Gtids> {
    let text = manifest.position.as_str();
    let gtids = match manifest.flavour() {
        Flavour::MariaDb => Gtids::Mariadb(quoted(text, "gtid_slave_pos='")?.parse().ok()?),
        Flavour::MySql => {
            let set = quoted(text, "GTID_PURGED='")?;
            let set = set
                .trim_start_matches("/*!80000 ")
                .trim_start_matches("'")
                .trim_start_matches("*/");
            Gtids::Mysql(set.trim_start_matches('+').trim().parse().ok()?)
        }
    };
    (!gtids.is_empty()).then_some(gtids)
}

fn quoted<'a>(text: &'a str, before: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(before)?;
    let (value, _) = rest.split_once('\'')?;
    (!value.is_empty()).then_some(value)
}

fn number(text: &str, before: &str) -> Option<u64> {
    let (_, rest) = text.split_once(before)?;
    let end = rest
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len());
    rest[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn manifest(server: &str, position: &str) -> Manifest {
        Manifest {
            server: server.into(),
            position: position.into(),
            started_at: "2025-01-15T02:00:00Z".into(),
            ended_at: "2025-01-15T02:00:09Z".into(),
            ..Manifest::default()
        }
    }

    /// As the clients of both families write it, and the native engine.
    #[test]
    fn a_position_is_read_in_each_form() {
        const UUID: &str = "1b3561b6-eae9-11f1-b8df-02fc00000001";
        let set = format!("GTID_PURGED='+{UUID}:1-5:tag_a:1';");
        let place =
            "CHANGE REPLICATION SOURCE TO SOURCE_LOG_FILE='binlog.000001', SOURCE_LOG_POS=1488;";
        let maria = "CHANGE MASTER TO MASTER_LOG_FILE='bin.000002', MASTER_LOG_POS=330;";
        let slave = "SET GLOBAL gtid_slave_pos='0-1-7,5-1-2';";
        for (server, text, file, position, gtids) in [
            (
                "9.7.0",
                format!("{set} {place}"),
                "binlog.000001",
                1488,
                Some(format!("{UUID}:1-5:tag_a:1")),
            ),
            (
                "9.7.0",
                format!("{place} {set}"),
                "binlog.000001",
                1488,
                Some(format!("{UUID}:1-5:tag_a:1")),
            ),
            (
                "9.7.0",
                format!("GTID_PURGED= {place}"),
                "binlog.000001",
                1488,
                None,
            ),
            ("10.11.2-MariaDB", maria.to_owned(), "bin.000002", 330, None),
            (
                "10.11.2-MariaDB",
                format!("{maria} {slave}"),
                "bin.000002",
                330,
                Some("0-1-7,5-1-2".into()),
            ),
        ] {
            let base = base(&manifest(server, &text)).unwrap();
            assert_eq!(
                (base.file.as_str(), base.position),
                (file, position),
                "{text}"
            );
            assert_eq!(base.gtids.map(|g| g.to_string()), gtids, "{text}");
            assert_eq!(base.until - base.moment, 10);
        }
    }

    #[test]
    fn without_a_position_it_says_what_to_grant() {
        for (server, text, words) in [
            ("10.11.2-MariaDB", "", "BINLOG MONITOR"),
            ("9.7.0", "", "REPLICATION CLIENT"),
            (
                "9.7.0",
                "GTID_PURGED='+1b3561b6-eae9-11f1-b8df-02fc00000001:1-5';",
                "not of the very moment",
            ),
            (
                "9.7.0",
                "CHANGE REPLICATION SOURCE TO SOURCE_LOG_FILE='', SOURCE_LOG_POS=1488;",
                "log_bin",
            ),
        ] {
            let why = base(&manifest(server, text)).unwrap_err();
            assert!(why.contains(words), "{why}");
        }
    }
}
