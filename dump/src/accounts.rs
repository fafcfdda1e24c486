//! Users, roles and grants, as statements that load into the same flavour and version or later. Accounts that are there already
//! keep their passwords; the server's own are left alone.

use std::collections::BTreeSet;

use wire::Connection;

use crate::ask::{each, texts};
use crate::error::Error;
use crate::grants::object;
use crate::parts::{Flavour, Schema};
use crate::sql::name;

/// Accounts that every server makes by itself.
const OWN: [&str; 4] = [
    "mysql.sys",
    "mysql.session",
    "mysql.infoschema",
    "mariadb.sys",
];
/// Databases whose tables are there on every server.
const SYSTEM: [&str; 3] = ["mysql", "sys", "performance_schema"];
/// The role by which the roles of a dump are made, so that none is granted to who loads it.
const MAKER: &str = "`backup_import_role`";

/// An account, as statements name it.
struct Account {
    quoted: String,
    role: bool,
}

/// Reads the accounts into `schema`.
///
/// # Errors
/// The user may not read them, or the connection is lost.
pub(crate) fn read(control: &mut Connection, schema: &mut Schema) -> Result<(), Error> {
    let mariadb = schema.server.flavour == Flavour::MariaDb;
    if !mariadb {
        // The hash of caching_sha2_password holds bytes that are no text.
        control
            .execute("SET SESSION print_identified_with_as_hex = 1")
            .map_err(|e| Error::wire("setting up a session", e))?;
    }
    let accounts = accounts(control, mariadb)?;
    let mut lines = Lines::default();
    for account in &accounts {
        let of = &account.quoted;
        if !account.role {
            let sql = format!("SHOW CREATE USER {of}");
            match each(control, &sql, |row| row.text()) {
                Ok(all) => all.iter().for_each(|create| lines.create(create, of)),
                // With skip_name_resolve a server knows no account of a host's name.
                Err(e) if matches!(e.number(), Some(1133 | 1141)) => {
                    let warning = format!("account {of} is not in the dump: {e}");
                    schema.warnings.push(warning);
                    continue;
                }
                Err(e) => return Err(Error::wire(format!("reading account {of}"), e)),
            }
        } else if of != "PUBLIC" {
            let create = format!("CREATE ROLE IF NOT EXISTS {of} WITH ADMIN {MAKER}");
            lines.roles.push(create);
        }
        let doing = format!("reading the grants of {of}");
        for grant in texts(control, &doing, &format!("SHOW GRANTS FOR {of}"))? {
            lines.grant(&grant, schema);
        }
    }
    lines.done(schema);
    Ok(())
}

fn accounts(control: &mut Connection, mariadb: bool) -> Result<Vec<Account>, Error> {
    let role = if mariadb { "is_role" } else { "'N'" };
    let doing = "reading users and roles, for which SELECT on the database mysql is needed";
    let sql = format!("SELECT User, Host, {role} FROM mysql.user");
    let mut all = each(control, &sql, |row| {
        Ok((row.text()?, row.text()?, row.text()? == "Y"))
    })
    .map_err(|e| Error::wire(doing, e))?;
    all.sort();
    let wanted = all
        .into_iter()
        .filter(|(user, ..)| !OWN.contains(&user.as_str()));
    Ok(wanted
        .map(|(user, host, role)| Account {
            quoted: match (role, user.as_str()) {
                (true, "PUBLIC") => user,
                (true, _) => name(&user),
                (false, _) => format!("{}@{}", name(&user), name(&host)),
            },
            role,
        })
        .collect())
}

/// Statements by their order.
#[derive(Default)]
struct Lines {
    users: Vec<String>,
    roles: Vec<String>,
    /// Roles granted to others.
    given: Vec<String>,
    grants: Vec<String>,
    defaults: Vec<String>,
    seen: BTreeSet<String>,
}

impl Lines {
    /// Takes what SHOW CREATE USER gives. The role that MySQL names in it is not there yet.
    fn create(&mut self, line: &str, account: &str) {
        let Some(rest) = line.strip_prefix("CREATE USER ") else {
            return;
        };
        let mut rest = rest.to_owned();
        if let Some(from) = outside(&rest, " DEFAULT ROLE ") {
            let to = outside(&rest[from..], " REQUIRE ").map_or(rest.len(), |at| from + at);
            let roles = rest[from + " DEFAULT ROLE ".len()..to].to_owned();
            self.defaults
                .push(format!("SET DEFAULT ROLE {roles} TO {account}"));
            rest.replace_range(from..to, "");
        }
        self.users.push(format!("CREATE USER IF NOT EXISTS {rest}"));
    }

    /// Takes a line of SHOW GRANTS.
    fn grant(&mut self, line: &str, schema: &mut Schema) {
        if line.starts_with("SET DEFAULT ROLE ") {
            self.defaults.push(line.to_owned());
            return;
        }
        let line = without_password(line);
        // A role shows the grants of the roles that it holds, too.
        if !self.seen.insert(line.clone()) {
            return;
        }
        let Some(on) = outside(&line, " ON ").map(|at| &line[at + " ON ".len()..]) else {
            self.given.push(line);
            return;
        };
        let routine = ["PROCEDURE ", "FUNCTION ", "PACKAGE BODY ", "PACKAGE "]
            .iter()
            .find_map(|kind| on.strip_prefix(kind));
        let Some((database, thing)) = object(routine.unwrap_or(on)) else {
            // PROXY, and what later versions may add.
            self.grants.push(line);
            return;
        };
        let single = thing != "*";
        if !single || SYSTEM.contains(&database.as_str()) {
            self.grants.push(line);
        } else if holds(schema, &database, &thing, routine.is_some()) {
            schema.grants.push(line);
        } else {
            schema.warnings.push(format!(
                "a grant on {database}.{thing} is not in the dump, as that is not in it either"
            ));
        }
    }

    fn done(mut self, schema: &mut Schema) {
        let all = &mut schema.accounts;
        all.append(&mut self.users);
        let by_role = !self.roles.is_empty();
        if by_role {
            all.push("SELECT COALESCE(CURRENT_ROLE(),'NONE') INTO @current_role".to_owned());
            all.push(format!("CREATE ROLE IF NOT EXISTS {MAKER}"));
            all.push(format!("GRANT {MAKER} TO CURRENT_USER()"));
            all.push(format!("SET ROLE {MAKER}"));
            all.append(&mut self.roles);
        }
        all.append(&mut self.given);
        all.append(&mut self.grants);
        all.append(&mut self.defaults);
        if by_role {
            all.push("SET ROLE NONE".to_owned());
            all.push(format!("DROP ROLE {MAKER}"));
            all.push("EXECUTE IMMEDIATE CONCAT('SET ROLE ', @current_role)".to_owned());
        }
    }
}

/// The dump holds this table, view or routine.
fn holds(schema: &Schema, database: &str, thing: &str, routine: bool) -> bool {
    schema
        .databases
        .iter()
        .filter(|d| d.name == database)
        .any(|d| {
            let routines = d
                .routines
                .iter()
                .any(|r| r.name.to_lowercase() == thing.to_lowercase());
            if routine {
                return routines;
            }
            d.tables.iter().any(|t| t.name == thing) || d.views.iter().any(|v| v.name == thing)
        })
}

/// A grant without what CREATE USER has said already: on an account that is there it would change the password.
fn without_password(line: &str) -> String {
    let ends = [" IDENTIFIED ", " REQUIRE ", " WITH "];
    let end = ends.iter().filter_map(|word| outside(line, word)).min();
    let Some(end) = end.filter(|_| line.starts_with("GRANT ")) else {
        return line.to_owned();
    };
    let mut kept = line[..end].to_owned();
    for option in [" GRANT OPTION", " ADMIN OPTION"] {
        if outside(&line[end..], option).is_some() {
            kept.push_str(" WITH");
            kept.push_str(option);
        }
    }
    kept
}

/// Where a word first stands outside of quotes.
fn outside(text: &str, word: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut quote = None;
    let mut at = 0;
    while at < bytes.len() {
        match (quote, bytes[at]) {
            (None, b) if [b'\'', b'"', b'`'].contains(&b) => quote = Some(b),
            (None, _) if bytes[at..].starts_with(word.as_bytes()) => return Some(at),
            (Some(b'\''), b'\\') => at += 1,
            (Some(q), b) if q == b => quote = None,
            _ => {}
        }
        at += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::{Database, Table};

    #[test]
    fn a_grant_changes_no_password() {
        for (line, kept) in [
            (
                "GRANT ALL PRIVILEGES ON *.* TO `r`@`h` IDENTIFIED BY PASSWORD '*A WITH b' REQUIRE SSL WITH GRANT OPTION MAX_QUERIES_PER_HOUR 5",
                "GRANT ALL PRIVILEGES ON *.* TO `r`@`h` WITH GRANT OPTION",
            ),
            (
                "GRANT USAGE ON *.* TO `a WITH b`@`%` WITH MAX_QUERIES_PER_HOUR 5",
                "GRANT USAGE ON *.* TO `a WITH b`@`%`",
            ),
            (
                "GRANT `r2` TO `u`@`%` WITH ADMIN OPTION",
                "GRANT `r2` TO `u`@`%` WITH ADMIN OPTION",
            ),
            (
                "REVOKE SELECT ON `d`.* FROM `u`@`%`",
                "REVOKE SELECT ON `d`.* FROM `u`@`%`",
            ),
        ] {
            assert_eq!(without_password(line), kept);
        }
    }

    #[test]
    fn grants_stand_where_what_they_need_is_there() {
        let mut schema = Schema {
            databases: vec![Database {
                name: "shop".into(),
                tables: vec![Table {
                    name: "t".into(),
                    ..Table::default()
                }],
                ..Database::default()
            }],
            ..Schema::default()
        };
        let mut lines = Lines::default();
        lines.create(
            "CREATE USER `u`@`%` IDENTIFIED WITH 'x' AS 0x41 DEFAULT ROLE `a`@`%`,`b`@`%` REQUIRE NONE ACCOUNT UNLOCK",
            "`u`@`%`",
        );
        for line in [
            "GRANT SELECT (`a ON b`) ON `shop`.`t` TO `u`@`%`",
            "GRANT SELECT ON `shop`.`gone` TO `u`@`%`",
            "GRANT SELECT ON `mysql`.`proc` TO `u`@`%`",
            "GRANT EXECUTE ON PROCEDURE `shop`.`p` TO `u`@`%`",
            "GRANT USAGE ON *.* TO `u`@`%`",
            "GRANT `a`@`%` TO `u`@`%`",
            "GRANT USAGE ON *.* TO `u`@`%`",
        ] {
            lines.grant(line, &mut schema);
        }
        lines.done(&mut schema);
        assert_eq!(
            schema.accounts,
            [
                "CREATE USER IF NOT EXISTS `u`@`%` IDENTIFIED WITH 'x' AS 0x41 REQUIRE NONE ACCOUNT UNLOCK",
                "GRANT `a`@`%` TO `u`@`%`",
                "GRANT SELECT ON `mysql`.`proc` TO `u`@`%`",
                "GRANT USAGE ON *.* TO `u`@`%`",
                "SET DEFAULT ROLE `a`@`%`,`b`@`%` TO `u`@`%`",
            ]
        );
        assert_eq!(
            schema.grants,
            ["GRANT SELECT (`a ON b`) ON `shop`.`t` TO `u`@`%`"]
        );
        assert_eq!(schema.warnings.len(), 2);
    }
}
