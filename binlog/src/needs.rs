//! What a server must have so that its log can be kept, with the statement that sets it. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::event::Family;

/// Something that a server or its user lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// What is, and why it does not do.
    pub what: String,
    /// What sets or grants it: a statement, or a line of the server's configuration.
    pub statement: String,
    /// Without it nothing is stored; else what is stored is worth less.
    pub must: bool,
    /// It is a right of the user, which a role may give too.
    pub is_right: bool,
}

/// The global variables that [`needs`] reads, in lower case.
pub const VARIABLES: [&str; 9] = [
    "log_bin",
    "binlog_format",
    "binlog_checksum",
    "binlog_encryption",
    "encrypt_binlog",
    "expire_logs_days",
    "binlog_expire_logs_seconds",
    "binlog_do_db",
    "binlog_ignore_db",
];

/// Files are to be kept for so long, that a store may fail meanwhile.
const DAY: u64 = 86_400;

/// What is lacking: `variables` by name, those of [`VARIABLES`] that the server has; `grants` as SHOW GRANTS has them, `user` the
/// account as GRANT names it; the log is read each `interval`.
#[must_use]
pub fn needs(
    family: Family,
    variables: &BTreeMap<String, String>,
    grants: &[String],
    user: &str,
    interval: Duration,
) -> Vec<Need> {
    let mut needs = Vec::new();
    let mut need = |must, what: String, statement: String| {
        needs.push(Need {
            what,
            statement,
            must,
            is_right: false,
        });
    };
    let value = |name: &str| variables.get(name).map(String::as_str).unwrap_or_default();
    let is_on = |name: &str| value(name).eq_ignore_ascii_case("on") || value(name) == "1";
    if !is_on("log_bin") {
        need(
            true,
            "the server writes no binary log".into(),
            "log_bin in section [mysqld] of the server's configuration, and a restart".into(),
        );
    }
    for name in ["encrypt_binlog", "binlog_encryption"] {
        if is_on(name) {
            let statement = match family {
                Family::Mysql => format!("SET PERSIST {name} = OFF"),
                Family::Mariadb => {
                    format!(
                        "{name}=OFF in section [mysqld] of the server's configuration, and a restart"
                    )
                }
            };
            need(
                true,
                "binary logs are encrypted on the server's disk; those are not stored".into(),
                statement,
            );
        }
    }
    let set = |name: &str, value: &str| match family {
        Family::Mysql => format!("SET PERSIST {name} = {value}"),
        Family::Mariadb => format!(
            "SET GLOBAL {name} = {value}, and the same in section [mysqld] of the server's configuration"
        ),
    };
    if !value("binlog_checksum").eq_ignore_ascii_case("crc32") {
        need(
            true,
            "events have no checksum, so that one that is damaged would not be noticed".into(),
            set("binlog_checksum", "'CRC32'"),
        );
    }
    let format = value("binlog_format");
    // From MySQL 9 on there may be no other, and the variable may be gone.
    if !format.is_empty() && !format.eq_ignore_ascii_case("row") {
        need(
            false,
            format!(
                "binlog_format is {format}: statements that are run again may not give the same rows"
            ),
            set("binlog_format", "'ROW'"),
        );
    }
    let number = |name: &str| {
        value(name)
            .split('.')
            .next()
            .and_then(|n| n.parse::<u64>().ok())
    };
    let seconds = number("binlog_expire_logs_seconds")
        .filter(|n| *n > 0)
        .or_else(|| number("expire_logs_days").map(|days| days.saturating_mul(DAY)))
        .filter(|n| *n > 0);
    let interval = interval.as_secs();
    if let Some(kept) = seconds {
        let must = kept < interval.saturating_mul(2);
        let wanted = DAY.max(interval.saturating_mul(10));
        if must || kept < DAY {
            let (name, value) = match variables.contains_key("binlog_expire_logs_seconds") {
                true => ("binlog_expire_logs_seconds", wanted),
                false => ("expire_logs_days", wanted.div_ceil(DAY)),
            };
            need(
                must,
                format!(
                    "the server keeps its binary logs for {kept} seconds and they are read each {interval}: what is removed before it was read is lost"
                ),
                set(name, &value.to_string()),
            );
        }
    }
    for name in ["binlog_do_db", "binlog_ignore_db"] {
        if !value(name).is_empty() {
            need(
                false,
                format!("{name} leaves databases out of the log: their changes can't be restored"),
                format!("remove {name} from the server's configuration, and restart it"),
            );
        }
    }
    let read = match family {
        Family::Mysql => ["REPLICATION CLIENT", "REPLICATION CLIENT"],
        Family::Mariadb => ["BINLOG MONITOR", "REPLICATION CLIENT"],
    };
    let mut rights = 0;
    for names in [["REPLICATION SLAVE", "REPLICATION SLAVE"], read] {
        if !granted(grants, &names) {
            need(
                true,
                format!(
                    "user {user} may not {}",
                    match names[0] {
                        "REPLICATION SLAVE" => "read the binary log",
                        _ => "see which binary logs there are",
                    }
                ),
                format!("GRANT {} ON *.* TO {user}", names[0]),
            );
            rights += 1;
        }
    }
    let settings = needs.len() - rights;
    for need in needs.iter_mut().skip(settings) {
        need.is_right = true;
    }
    needs
}

/// True if one of these was granted for all.
fn granted(grants: &[String], names: &[&str]) -> bool {
    grants.iter().any(|grant| {
        let Some((what, on)) = grant
            .strip_prefix("GRANT ")
            .and_then(|g| g.split_once(" ON "))
        else {
            return false;
        };
        let mut what = what.split(',').map(str::trim);
        on.starts_with("*.*")
            && what.any(|w| {
                w == "ALL PRIVILEGES"
                    || w == "ALL"
                    || w == "SUPER" && names[0] != "REPLICATION SLAVE"
                    || names.contains(&w)
            })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(more: &[(&str, &str)]) -> BTreeMap<String, String> {
        let good = [
            ("log_bin", "ON"),
            ("binlog_format", "ROW"),
            ("binlog_checksum", "CRC32"),
            ("binlog_expire_logs_seconds", "864000"),
        ];
        let all = good.iter().chain(more);
        all.map(|(n, v)| ((*n).to_owned(), (*v).to_owned()))
            .collect()
    }

    #[test]
    fn what_is_lacking_is_named_with_what_sets_it() {
        let grants = [
            "GRANT REPLICATION SLAVE, BINLOG MONITOR ON *.* TO `b`@`%` IDENTIFIED BY PASSWORD 'x'"
                .to_owned(),
        ];
        let of = |family, more: &[(&str, &str)], minutes: u64| {
            let interval = Duration::from_secs(minutes * 60);
            let found = needs(family, &variables(more), &grants, "b@'%'", interval);
            found
                .into_iter()
                .map(|n| (n.must, n.statement))
                .collect::<Vec<_>>()
        };
        let (maria, mysql) = (Family::Mariadb, Family::Mysql);
        assert_eq!(of(maria, &[], 5), []);
        // Old logs are kept for ever where the number is 0.
        assert_eq!(
            of(
                maria,
                &[
                    ("binlog_expire_logs_seconds", "0"),
                    ("expire_logs_days", "0.000000")
                ],
                5
            ),
            []
        );
        assert_eq!(
            of(mysql, &[("log_bin", "OFF"), ("binlog_checksum", "NONE")], 5),
            [
                (
                    true,
                    "log_bin in section [mysqld] of the server's configuration, and a restart"
                        .to_owned()
                ),
                (true, "SET PERSIST binlog_checksum = 'CRC32'".to_owned()),
                (true, "GRANT REPLICATION CLIENT ON *.* TO b@'%'".to_owned()),
            ]
        );
        assert_eq!(
            of(maria, &[("binlog_format", "MIXED"), ("binlog_expire_logs_seconds", "3600")], 5),
            [
                (false, "SET GLOBAL binlog_format = 'ROW', and the same in section [mysqld] of the server's configuration".to_owned()),
                (false, "SET GLOBAL binlog_expire_logs_seconds = 86400, and the same in section [mysqld] of the server's configuration".to_owned()),
            ]
        );
        // Shorter than what passes between two readings.
        let found = of(mysql, &[("binlog_expire_logs_seconds", "86400")], 24 * 60);
        assert_eq!(
            found[0],
            (
                true,
                "SET PERSIST binlog_expire_logs_seconds = 864000".to_owned()
            )
        );
        assert!(of(maria, &[("encrypt_binlog", "ON")], 5)[0].0);
        assert!(!of(maria, &[("binlog_ignore_db", "scratch")], 5)[0].0);
    }

    #[test]
    fn rights_for_one_database_are_not_enough() {
        let none = |grant: &str, family| {
            let grants = [grant.to_owned()];
            needs(
                family,
                &variables(&[]),
                &grants,
                "b",
                Duration::from_secs(60),
            )
            .is_empty()
        };
        assert!(none(
            "GRANT ALL PRIVILEGES ON *.* TO `b`@`%` WITH GRANT OPTION",
            Family::Mysql
        ));
        assert!(none(
            "GRANT SELECT, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO `b`@`%`",
            Family::Mysql
        ));
        assert!(!none(
            "GRANT ALL PRIVILEGES ON `w`.* TO `b`@`%`",
            Family::Mysql
        ));
        assert!(!none(
            "GRANT REPLICATION SLAVE ADMIN ON *.* TO `b`@`%`",
            Family::Mariadb
        ));
    }
}
