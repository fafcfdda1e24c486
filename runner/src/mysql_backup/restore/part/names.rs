//! The names that were asked for, as those of an artefact. PURE.

use std::collections::BTreeSet;

use crds::near::nearest;
use crds::report::Reason;

use crate::database::mysql::sql::{Found, Named, Selection};
use crate::failure::Failure;
use crate::mysql_backup::manifest::Manifest;
use crate::settings::options::Restore;

/// What was chosen, as far as a manifest tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::mysql_backup::restore) struct Chosen {
    pub(super) selection: Selection,
    /// Names that no table of the manifest has: a sequence's or a view's, if the definitions have it.
    unknown: Vec<Unknown>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Unknown {
    named: Named,
    /// As it was written.
    text: String,
    /// It is to be left out.
    without: bool,
}

/// NeedKind messages call it.
pub(super) fn shown(named: &Named) -> String {
    format!("{}.{}", named.0, named.1)
}

/// What was chosen of an artefact; `None` if that is all of it.
///
/// # Errors
/// The artefact does not have it, or the names contradict each other.
pub(super) fn choose(asked: &Restore, manifest: &Manifest) -> Result<Option<Chosen>, Failure> {
    let lists = [&asked.tables, &asked.databases, &asked.exclude_tables];
    if lists.iter().all(|list| list.is_empty()) {
        if asked.without_foreign_keys {
            return Err(Failure::settings(
                "withoutForeignKeys goes with tables, databases or excludeTables: a whole artefact has all that its foreign keys refer to",
            ));
        }
        return Ok(None);
    }
    if asked.accounts {
        return Err(Failure::settings(
            "accounts goes with a whole artefact: leave tables, databases and excludeTables out, or accounts",
        ));
    }
    if asked.replay.is_some() && asked.without_foreign_keys {
        return Err(Failure::settings(
            "withoutForeignKeys does not go with replay: what a foreign key deletes or sets is not in the binary log; choose the tables that the keys refer to, too",
        ));
    }
    let mut chosen = Chosen::default();
    for name in &asked.databases {
        if !manifest.databases.contains(name) {
            return Err(absent(manifest, "database", name, &manifest.databases));
        }
        chosen.selection.databases.insert(name.clone());
    }
    if asked.databases.is_empty() && asked.tables.is_empty() {
        chosen
            .selection
            .databases
            .extend(manifest.databases.iter().cloned());
    }
    for (text, without) in [(&asked.tables, false), (&asked.exclude_tables, true)]
        .into_iter()
        .flat_map(|(list, without)| list.iter().map(move |text| (text, without)))
    {
        let (named, known) = named(manifest, text)?;
        if !known {
            chosen.unknown.push(Unknown {
                named: named.clone(),
                text: text.clone(),
                without,
            });
        }
        if without {
            chosen.selection.without.insert(named);
        } else {
            chosen.selection.tables.insert(named);
        }
    }
    let selection = &chosen.selection;
    if let Some(both) = selection.tables.intersection(&selection.without).next() {
        return Err(Failure::settings(format!(
            "{} is chosen by tables and left out by excludeTables: correct one of the lists",
            shown(both)
        )));
    }
    if let Some(idle) = selection.without.iter().find(|t| !selection.is_whole(&t.0)) {
        return Err(Failure::settings(format!(
            "excludeTables leaves out {}, and database {} is not taken as a whole: name it in databases, or leave the table out of excludeTables",
            shown(idle),
            idle.0
        )));
    }
    Ok(Some(chosen))
}

/// `database.table`, and whether the manifest has it as a table. Either name may hold a dot.
fn named(manifest: &Manifest, text: &str) -> Result<(Named, bool), Failure> {
    let splits: Vec<Named> = text
        .match_indices('.')
        .filter_map(|(at, _)| Some((text.get(..at)?.to_owned(), text.get(at + 1..)?.to_owned())))
        .filter(|(database, table)| !database.is_empty() && !table.is_empty())
        .collect();
    let Some(first) = splits.first() else {
        return Err(Failure::settings(format!("{text:?} is not database.table")));
    };
    let is_table = |(d, t): &Named| {
        manifest
            .tables
            .iter()
            .any(|table| table.database == *d && table.name == *t)
    };
    if let Some(found) = splits.iter().find(|named| is_table(named)) {
        return Ok((found.clone(), true));
    }
    let known = splits.iter().find(|(d, _)| manifest.databases.contains(d));
    match known {
        Some(named) => Ok((named.clone(), false)),
        None => {
            let all = &manifest.databases;
            Err(absent(manifest, "database", &first.0, all))
        }
    }
}

/// The artefact does not have it.
fn absent(manifest: &Manifest, what: &str, name: &str, there: &[String]) -> Failure {
    let lower = name.to_lowercase();
    let case = there.iter().find(|other| other.to_lowercase() == lower);
    let near = case.map(String::as_str).or_else(|| nearest(name, there));
    let hint = match near {
        Some(near) => format!("did you mean {near:?}? "),
        None => String::new(),
    };
    Failure::new(
        Reason::NotInArtefact,
        format!(
            "{} holds no {what} {name:?}: {hint}kubectl backup show {} lists what it holds; nothing was changed",
            manifest.key, manifest.run
        ),
    )
}

impl Chosen {
    /// The definitions have what the manifest did not name.
    ///
    /// # Errors
    /// They do not.
    pub(super) fn resolve(&self, manifest: &Manifest, found: &Found) -> Result<(), Failure> {
        for unknown in &self.unknown {
            let named = &unknown.named;
            let view = found.views.contains(named);
            if found.sequences.contains(named) || (view && unknown.without) {
                continue;
            }
            if view {
                return Err(Failure::new(
                    Reason::NotInArtefact,
                    format!(
                        "{} is a view of {}, and views come with whole databases: choose databases: [{}] (--databases), or make the view by hand; nothing was changed",
                        shown(named),
                        manifest.key,
                        named.0
                    ),
                ));
            }
            let mut there: BTreeSet<String> = manifest
                .tables
                .iter()
                .map(|t| format!("{}.{}", t.database, t.name))
                .collect();
            there.extend(found.sequences.iter().map(shown));
            if unknown.without {
                there.extend(found.views.iter().map(shown));
            }
            let there: Vec<String> = there.into_iter().collect();
            return Err(absent(manifest, "table", &unknown.text, &there));
        }
        Ok(())
    }

    /// The databases of which something is taken, in the order of the dump.
    pub(super) fn databases(&self, manifest: &Manifest) -> Vec<String> {
        let all = manifest.databases.iter();
        all.filter(|d| self.selection.enters(d)).cloned().collect()
    }

    /// What is left behind of the databases that are not taken as a whole.
    pub(super) fn leaves(&self, manifest: &Manifest) -> bool {
        let databases = self.databases(manifest);
        databases.iter().any(|d| !self.selection.is_whole(d))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::database::contents::Table;

    fn manifest() -> Manifest {
        let table = |database: &str, name: &str| Table {
            database: database.into(),
            name: name.into(),
            ..Table::default()
        };
        Manifest {
            key: "shop.sql.zst".into(),
            run: "shop-1".into(),
            databases: ["shop", "crm", "a.b"].map(String::from).to_vec(),
            tables: vec![
                table("shop", "orders"),
                table("shop", "customers"),
                table("crm", "log"),
                table("a.b", "c.d"),
            ],
            ..Manifest::default()
        }
    }

    fn asked(tables: &[&str], databases: &[&str], exclude: &[&str]) -> Restore {
        let list = |all: &[&str]| all.iter().map(|s| (*s).to_owned()).collect();
        Restore {
            tables: list(tables),
            databases: list(databases),
            exclude_tables: list(exclude),
            ..Restore::default()
        }
    }

    #[test]
    fn names_become_a_selection() {
        let manifest = manifest();
        assert_eq!(choose(&asked(&[], &[], &[]), &manifest).unwrap(), None);
        for (asked, whole, tables, without) in [
            (
                asked(&["shop.orders"], &[], &[]),
                &[][..],
                &["shop.orders"][..],
                &[][..],
            ),
            (asked(&["a.b.c.d"], &[], &[]), &[], &["a.b.c.d"], &[]),
            (asked(&[], &["crm"], &[]), &["crm"], &[], &[]),
            (
                asked(&["shop.orders"], &["crm"], &["crm.log"]),
                &["crm"],
                &["shop.orders"],
                &["crm.log"],
            ),
            (
                asked(&[], &[], &["crm.log"]),
                &["a.b", "crm", "shop"],
                &[],
                &["crm.log"],
            ),
        ] {
            let chosen = choose(&asked, &manifest).unwrap().unwrap();
            let selection = &chosen.selection;
            assert!(selection.databases.iter().eq(whole), "{asked:?}");
            let names = |set: &BTreeSet<Named>| set.iter().map(shown).collect::<Vec<_>>();
            assert_eq!(names(&selection.tables), tables, "{asked:?}");
            assert_eq!(names(&selection.without), without, "{asked:?}");
            assert_eq!(chosen.unknown, [], "{asked:?}");
        }
        let chosen = choose(&asked(&["a.b.c.d"], &["crm"], &[]), &manifest).unwrap();
        let chosen = chosen.unwrap();
        assert_eq!(chosen.databases(&manifest), ["crm", "a.b"]);
        assert!(chosen.leaves(&manifest));
    }

    #[test]
    fn what_is_not_there_is_refused_with_what_is_near() {
        let manifest = manifest();
        for (asked, reason, words) in [
            (
                asked(&[], &["shp"], &[]),
                Reason::NotInArtefact,
                "did you mean \"shop\"?",
            ),
            (
                asked(&["Shop.orders"], &[], &[]),
                Reason::NotInArtefact,
                "did you mean \"shop\"?",
            ),
            (
                asked(&["zzzzzz.x"], &[], &[]),
                Reason::NotInArtefact,
                "no database \"zzzzzz\": kubectl backup show shop-1",
            ),
            (
                asked(&["orders"], &[], &[]),
                Reason::InvalidSettings,
                "is not database.table",
            ),
            (
                asked(&["shop."], &[], &[]),
                Reason::InvalidSettings,
                "is not database.table",
            ),
            (
                asked(&["crm.log"], &["crm"], &["crm.log"]),
                Reason::InvalidSettings,
                "chosen by tables and left out",
            ),
            (
                asked(&["shop.orders"], &[], &["crm.log"]),
                Reason::InvalidSettings,
                "is not taken as a whole",
            ),
        ] {
            let failure = choose(&asked, &manifest).unwrap_err();
            assert_eq!(failure.reason, reason, "{asked:?}");
            assert!(failure.message.contains(words), "{}", failure.message);
        }
        let mut wrong = asked(&[], &[], &[]);
        wrong.without_foreign_keys = true;
        assert!(choose(&wrong, &manifest).is_err());
        let mut wrong = asked(&["shop.orders"], &[], &[]);
        wrong.accounts = true;
        assert!(choose(&wrong, &manifest).is_err());
    }

    #[test]
    fn what_is_no_table_is_a_sequence_or_a_view_that_is_left_out() {
        let manifest = manifest();
        let named = |name: &str| ("shop".to_owned(), name.to_owned());
        let mut found = Found::default();
        found.views.insert(named("v"));
        found.sequences.insert(named("s"));
        for (asked, wrong) in [
            (asked(&["shop.s"], &[], &[]), None),
            (asked(&[], &["shop"], &["shop.v", "shop.s"]), None),
            (
                asked(&["shop.v"], &[], &[]),
                Some("views come with whole databases"),
            ),
            (
                asked(&["shop.ordes"], &[], &[]),
                Some("did you mean \"shop.orders\"?"),
            ),
            (asked(&[], &["shop"], &["shop.w"]), Some("did you mean")),
        ] {
            let chosen = choose(&asked, &manifest).unwrap().unwrap();
            let resolved = chosen.resolve(&manifest, &found);
            match wrong {
                None => resolved.unwrap(),
                Some(words) => {
                    let failure = resolved.unwrap_err();
                    assert!(failure.message.contains(words), "{}", failure.message);
                }
            }
        }
    }
}
