//! A part of a dump in a target that may hold more than that.

use std::collections::BTreeSet;

use crds::report::Reason;

use crate::database::mysql::source;
use crate::database::mysql::sql::Named;
use crate::database::mysql::target::{Plan, Target, some, unescaped};
use crate::failure::Failure;

/// A name as a server knows it that keeps names in lower case.
fn lower((database, name): &Named) -> Named {
    (database.to_lowercase(), name.to_lowercase())
}

impl Target<'_> {
    /// Which of these tables, views and sequences are there.
    ///
    /// # Errors
    /// The server refuses.
    pub(crate) fn has(&self, names: &BTreeSet<Named>) -> Result<BTreeSet<Named>, Failure> {
        let databases: BTreeSet<&String> = names.iter().map(|(database, _)| database).collect();
        let databases: Vec<String> = databases.into_iter().cloned().collect();
        let there = self.tables(&databases)?;
        if self.connection.server.variable("lower_case_table_names") == "0" {
            let there: BTreeSet<Named> = there.into_iter().collect();
            return Ok(names.intersection(&there).cloned().collect());
        }
        let there: BTreeSet<Named> = there.iter().map(lower).collect();
        let found = names.iter().filter(|named| there.contains(&lower(named)));
        Ok(found.cloned().collect())
    }

    /// Nothing of what will be made is there: of a database that is restored as a whole no table, else none of the tables.
    pub(super) fn free_for_part(&self, plan: &Plan<'_>) -> Result<(), Failure> {
        let Some(only) = &plan.wish.only else {
            return Ok(());
        };
        let to = |name: &str| plan.name_of(name).to_owned();
        let tables = plan.found.tables.iter();
        let made: BTreeSet<Named> = tables.map(|(d, t)| (to(d), t.clone())).collect();
        let mut filled: Vec<Named> = self.has(&made)?.into_iter().collect();
        let whole: Vec<String> = only.databases.iter().map(|d| to(d)).collect();
        for named in self.tables(&whole)? {
            if !filled.contains(&named) {
                filled.push(named);
            }
        }
        let names: Vec<String> = filled.iter().map(|(d, t)| format!("{d}.{t}")).collect();
        if names.is_empty() {
            return Ok(());
        }
        Err(Failure::occupied(
            Reason::TargetNotEmpty,
            &format!(
                "{} {} at {} already",
                some(&names),
                if names.len() == 1 { "is" } else { "are" },
                self.place()
            ),
        ))
    }

    /// The user may do what loading by frames needs, and no trigger of another table has the name of one that comes.
    ///
    /// # Errors
    /// One of the two.
    pub(crate) fn ready_for_part(&self, plan: &Plan<'_>) -> Result<(), Failure> {
        if !self.takes_sessions(plan) {
            return Err(Failure::new(
                Reason::MissingPrivilege,
                format!(
                    "user {} needs CREATE, DROP, ALTER, INSERT and SELECT on {} at {} to restore a part: grant them; nothing was changed",
                    self.account,
                    plan.names.join(", "),
                    self.place()
                ),
            ));
        }
        let Some(only) = &plan.wish.only else {
            return Ok(());
        };
        let to = |named: &Named| lower(&(plan.name_of(&named.0).to_owned(), named.1.clone()));
        let coming: BTreeSet<Named> = plan
            .found
            .triggers
            .iter()
            .filter(|(_, table)| only.takes(table))
            .map(|(trigger, _)| to(trigger))
            .collect();
        if coming.is_empty() {
            return Ok(());
        }
        let tables: BTreeSet<Named> = plan.found.tables.iter().map(to).collect();
        let text = self.ask(&format!(
            "SELECT TRIGGER_SCHEMA, TRIGGER_NAME, EVENT_OBJECT_TABLE FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA IN ({});\n",
            source::literals(&plan.names)
        ))?;
        for line in text.lines() {
            let parts: Vec<String> = line.split('\t').map(unescaped).collect();
            let [database, trigger, table] = &parts[..] else {
                continue;
            };
            let of = |name: &String| lower(&(database.clone(), name.clone()));
            if coming.contains(&of(trigger)) && !tables.contains(&of(table)) {
                return Err(Failure::new(
                    Reason::TargetNotEmpty,
                    format!(
                        "trigger {database}.{trigger} is at {} already, of table {table}: a trigger of this name is restored, and a database has one of a name; rename it or restore under another name; nothing was changed",
                        self.place()
                    ),
                ));
            }
        }
        Ok(())
    }
}
