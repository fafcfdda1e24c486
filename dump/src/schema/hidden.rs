//! What the user of a dump is not shown, by its grants: the server is silent about it.

use wire::Connection;

use crate::ask::texts;
use crate::error::Error;
use crate::grants::Grants;
use crate::parts::{Options, Schema};

/// Reads what the user may.
pub(super) fn grants(control: &mut Connection) -> Result<Grants, Error> {
    let mut grants = Grants::default();
    for line in texts(control, "asking for the user's grants", "SHOW GRANTS")? {
        grants.take(&line);
    }
    Ok(grants)
}

/// Adds to `schema.hidden` what the grants say of things that a server lists only for who may see them.
pub(super) fn of_all(options: &Options, grants: &Grants, schema: &mut Schema) {
    let mut hidden = vec![];
    let may = |any: &[&str]| {
        let global = grants.global();
        global.contains("ALL PRIVILEGES") || any.iter().any(|p| global.contains(*p))
    };
    if options.databases.is_empty() && !grants.on_all_of("", &["SELECT", "SHOW DATABASES"]) {
        hidden.push(
            "databases on which the user has no grant are not in the dump: the server does not show them; grant SELECT on *.*, or name the databases"
                .to_owned(),
        );
    }
    let bodies = may(&["SELECT", "SHOW_ROUTINE", "SHOW CREATE ROUTINE"])
        || grants.on_table("mysql", "proc", &["SELECT"]);
    for database in &schema.databases {
        let of = &database.name;
        let mut lacks = |what: &str, remedy: &str| {
            hidden.push(format!(
                "{what} of database {of} may be missing from the dump: the server does not show them to this user; {remedy}"
            ));
        };
        if options.tables.is_empty() && !grants.on_all_of(of, &["SELECT"]) {
            lacks("tables", "grant SELECT on the whole database");
        }
        let triggers = !database.tables.is_empty()
            && database
                .tables
                .iter()
                .all(|t| grants.on_table(of, &t.name, &["TRIGGER"]));
        if !triggers && !grants.on_all_of(of, &["TRIGGER"]) {
            lacks("triggers", "grant TRIGGER");
        }
        if !options.tables.is_empty() {
            continue;
        }
        let listed = [
            "EXECUTE",
            "ALTER ROUTINE",
            "CREATE ROUTINE",
            "SHOW CREATE ROUTINE",
        ];
        if !bodies && !grants.on_all_of(of, &listed) {
            lacks(
                "procedures and functions",
                "grant SELECT on mysql.proc (MariaDB) or SHOW_ROUTINE (MySQL 8)",
            );
        }
        if !grants.on_all_of(of, &["EVENT"]) {
            lacks("events", "grant EVENT");
        }
    }
    let unreadable = schema.unreadable.iter();
    hidden.extend(unreadable.map(|what| format!("not in the dump: {what}")));
    schema.hidden.append(&mut hidden);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::{Database, Table};

    fn hidden(grant: &[&str], options: &Options) -> Vec<String> {
        let mut grants = Grants::default();
        grant.iter().for_each(|line| grants.take(line));
        let table = |name: &str| Table {
            name: name.into(),
            ..Table::default()
        };
        let mut schema = Schema {
            databases: vec![Database {
                name: "shop".into(),
                tables: vec![table("a"), table("b")],
                ..Database::default()
            }],
            ..Schema::default()
        };
        of_all(options, &grants, &mut schema);
        schema.hidden
    }

    #[test]
    fn what_a_user_is_not_shown_follows_from_its_grants() {
        let named = Options {
            databases: vec!["shop".into()],
            ..Options::default()
        };
        let all = "GRANT SELECT, SHOW VIEW, TRIGGER, EVENT ON *.* TO `u`@`%`";
        assert!(hidden(&[all], &Options::default()).is_empty());
        let on_shop = "GRANT SELECT, TRIGGER, EVENT, EXECUTE ON `shop`.* TO `u`@`%`";
        assert!(hidden(&[on_shop], &named).is_empty());
        assert_eq!(hidden(&[on_shop], &Options::default()).len(), 1);
        let bare = hidden(&["GRANT SELECT ON `shop`.* TO `u`@`%`"], &named);
        for (line, what) in bare.iter().zip(["triggers", "procedures", "events"]) {
            assert!(line.starts_with(what) && line.contains("shop"), "{line}");
        }
        assert_eq!(bare.len(), 3);
        let single = [
            "GRANT SELECT, TRIGGER ON `shop`.`a` TO `u`@`%`",
            "GRANT TRIGGER ON `shop`.`b` TO `u`@`%`",
            "GRANT EVENT, EXECUTE ON `shop`.* TO `u`@`%`",
        ];
        let lines = hidden(&single, &named);
        assert!(
            lines.len() == 1 && lines[0].starts_with("tables"),
            "{lines:?}"
        );
    }
}
