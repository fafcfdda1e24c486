//! What a part of a dump needs that is neither of it nor in the target.

use std::collections::BTreeSet;

use crds::report::Reason;

use super::names::shown;
use crate::database::mysql::sql::{Named, Need, NeedKind};
use crate::database::mysql::target::{Plan, Target};
use crate::failure::Failure;
use crate::mysql_backup::manifest::Manifest;

/// What comes of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct NeedResult {
    /// Foreign keys that are left out: the table, and the constraint.
    pub(super) left_out: Vec<(Named, String)>,
    /// What is to be said.
    pub(super) warnings: Vec<String>,
}

/// Asks the target for what the part needs of others.
///
/// # Errors
/// It is not there, and is no foreign key that may be left out.
pub(super) fn check(
    target: &Target<'_>,
    plan: &Plan<'_>,
    manifest: &Manifest,
    without: bool,
) -> Result<NeedResult, Failure> {
    let needs = relevant(&plan.found.needs, manifest, &plan.found.views);
    let renamed = |named: &Named| (plan.name_of(&named.0).to_owned(), named.1.clone());
    let wanted: BTreeSet<Named> = needs.iter().map(|need| renamed(&need.to)).collect();
    let there = target.has(&wanted)?;
    let there = |named: &Named| there.contains(&renamed(named));
    let mut others = decide(&needs, there, &manifest.key, without)?;
    let collations: Vec<String> = plan.found.collations.iter().map(shown).collect();
    if !collations.is_empty() {
        others.warnings.push(format!(
            "{} were made under another collation of their database than it has: text of theirs without a character set of its own has that of the database now",
            collations.join(", ")
        ));
    }
    Ok(others)
}

/// A replay changes the chosen tables alone: what others of the source's did to them by foreign keys is not in its log.
///
/// # Errors
/// One of them has a foreign key to a table that was not chosen.
pub(super) fn of_replay(plan: &Plan<'_>, manifest: &Manifest) -> Result<(), Failure> {
    let needs = relevant(&plan.found.needs, manifest, &plan.found.views);
    let mut keys = needs.iter().filter_map(|need| match &need.how {
        NeedKind::ForeignKey(name) => Some((name, need)),
        NeedKind::Sequence | NeedKind::View => None,
    });
    let Some((name, need)) = keys.next() else {
        return Ok(());
    };
    Err(Failure::new(
        Reason::NeedsOthers,
        format!(
            "foreign key {name} of {} refers to {}, which is not chosen: the binary logs can't be replayed for the one alone, as they do not hold what the key deletes or sets; choose {} too; nothing was changed",
            shown(&need.by),
            shown(&need.to),
            shown(&need.to)
        ),
    ))
}

/// Those that are of tables and views: what a view is said to read is one only where the dump has it.
fn relevant(needs: &[Need], manifest: &Manifest, views: &BTreeSet<Named>) -> Vec<Need> {
    let tables: BTreeSet<(&str, &str)> = manifest
        .tables
        .iter()
        .map(|t| (t.database.as_str(), t.name.as_str()))
        .collect();
    let known = |named: &Named| {
        tables.contains(&(named.0.as_str(), named.1.as_str())) || views.contains(named)
    };
    needs
        .iter()
        .filter(|need| need.how != NeedKind::View || known(&need.to))
        .cloned()
        .collect()
}

fn decide(
    needs: &[Need],
    there: impl Fn(&Named) -> bool,
    key: &str,
    without: bool,
) -> Result<NeedResult, Failure> {
    let mut others = NeedResult::default();
    let (mut lacking, mut keys) = (vec![], vec![]);
    for need in needs {
        let (by, to) = (shown(&need.by), shown(&need.to));
        match &need.how {
            NeedKind::ForeignKey(name) if there(&need.to) => others.warnings.push(format!(
                "foreign key {name} of {by} refers to {to}, which is the target's own: whether its rows are there was not compared"
            )),
            _ if there(&need.to) => {}
            NeedKind::ForeignKey(name) if without && !name.is_empty() => {
                others.left_out.push((need.by.clone(), name.clone()));
                others
                    .warnings
                    .push(format!("foreign key {name} of {by} to {to} was left out"));
            }
            NeedKind::ForeignKey(name) => keys.push(format!("foreign key {name} of {by} refers to {to}")),
            NeedKind::Sequence => lacking.push(format!("{by} draws its values from {to}")),
            NeedKind::View => lacking.push(format!("view {by} reads {to}")),
        }
    }
    // A view that is read in two places is one.
    lacking.dedup();
    let remedy = match (keys.is_empty(), lacking.is_empty()) {
        (true, true) => return Ok(others),
        (false, true) => {
            "choose these tables too, or set withoutForeignKeys (--without-foreign-keys)"
        }
        (true, false) => {
            "choose these too (tables, --tables), or leave out what needs them (excludeTables, --exclude-tables)"
        }
        (false, false) => {
            "choose these too (tables, --tables); withoutForeignKeys (--without-foreign-keys) leaves foreign keys out"
        }
    };
    keys.append(&mut lacking);
    let shown = keys.iter().take(5).cloned().collect::<Vec<_>>().join(", ");
    let more = match keys.len().saturating_sub(5) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Err(Failure::new(
        Reason::NeedsOthers,
        format!(
            "what was chosen of {key} needs what is neither chosen nor in the target: {shown}{more}: {remedy}; nothing was changed"
        ),
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn named(name: &str) -> Named {
        ("shop".to_owned(), name.to_owned())
    }

    fn need(by: &str, how: NeedKind, to: &str) -> Need {
        Need {
            by: named(by),
            how,
            to: named(to),
        }
    }

    fn key(name: &str) -> NeedKind {
        NeedKind::ForeignKey(name.to_owned())
    }

    #[test]
    fn what_is_needed_is_there_or_refused_or_left_out() {
        let there = |named: &Named| named.1 == "there";
        let orders = [
            need("orders", key("a"), "there"),
            need("orders", key("b"), "customers"),
        ];
        let failure = decide(&orders, there, "k", false).unwrap_err();
        assert_eq!(failure.reason, Reason::NeedsOthers);
        for words in [
            "foreign key b of shop.orders refers to shop.customers",
            "--without-foreign-keys",
        ] {
            assert!(failure.message.contains(words), "{}", failure.message);
        }
        assert!(!failure.message.contains("key a"), "{}", failure.message);
        let others = decide(&orders, there, "k", true).unwrap();
        assert_eq!(others.left_out, [(named("orders"), "b".to_owned())]);
        assert_eq!(others.warnings.len(), 2);
        // What can't be left out is refused in any case.
        for (how, words) in [
            (NeedKind::Sequence, "draws its values from shop.x"),
            (NeedKind::View, "view shop.orders reads shop.x"),
            (key(""), "foreign key  of"),
        ] {
            let needs = [need("orders", how, "x")];
            let failure = decide(&needs, there, "k", true).unwrap_err();
            assert!(failure.message.contains(words), "{}", failure.message);
        }
        let needs = [need("orders", NeedKind::Sequence, "there")];
        assert_eq!(
            decide(&needs, there, "k", false).unwrap(),
            NeedResult::default()
        );
    }
}
