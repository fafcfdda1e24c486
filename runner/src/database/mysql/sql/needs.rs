//! What a definition needs that another one makes.

use std::ops::Range;

use crate::database::mysql::sql::tokens::{Kind, Token, qualified};

/// A name, with its database where that is said.
pub(super) type Name = (Option<String>, String);

/// A foreign key of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ForeignKey {
    /// Its name; empty where it has none.
    pub(super) constraint: String,
    /// What it refers to.
    pub(super) to: Name,
    /// Its bytes, with the comma before it.
    pub(super) at: Range<usize>,
}

/// The name at token `at`.
fn named(text: &[u8], all: &[Token], at: usize) -> Option<Name> {
    let (database, name) = qualified(all, text, at);
    let name_of = |i: usize| all.get(i).and_then(|t| t.name(text));
    Some((database.and_then(name_of), name_of(name?)?))
}

/// The table that a trigger is of; its own name is at token `name`.
pub(super) fn table_of_trigger(text: &[u8], all: &[Token], name: usize) -> Option<Name> {
    let rest = all.get(name + 1..)?;
    let on = rest.iter().position(|t| t.is(text, "ON"))?;
    named(text, all, name + 1 + on + 1)
}

/// The foreign keys of a table whose name is at token `name`.
pub(super) fn foreign_keys(text: &[u8], all: &[Token], name: usize) -> Vec<ForeignKey> {
    let Some(open) = all.iter().skip(name).position(|t| t.sign(b'(')) else {
        return vec![];
    };
    let open = name + open;
    let (mut depth, mut begin) = (0usize, open + 1);
    let mut found = vec![];
    for (i, token) in all.iter().enumerate().skip(open) {
        match token.kind {
            Kind::Sign(b'(') => depth += 1,
            Kind::Sign(b')') => depth = depth.saturating_sub(1),
            _ => {}
        }
        let ends = depth == 0 || (depth == 1 && token.sign(b','));
        if ends && i > open {
            found.extend(foreign_key(text, all, begin..i));
            begin = i + 1;
        }
        if depth == 0 {
            break;
        }
    }
    found
}

/// The foreign key that these tokens are.
fn foreign_key(text: &[u8], all: &[Token], item: Range<usize>) -> Option<ForeignKey> {
    let is = |i: usize, word: &str| all.get(i).is_some_and(|t| t.is(text, word));
    let (mut at, mut constraint) = (item.start, String::new());
    if is(at, "CONSTRAINT") {
        constraint = all.get(at + 1)?.name(text)?;
        at += 2;
    }
    if !(is(at, "FOREIGN") && is(at + 1, "KEY")) {
        return None;
    }
    let refers = item.clone().find(|i| is(*i, "REFERENCES"))?;
    let before = all.get(item.start.checked_sub(1)?)?;
    let last = all.get(item.end.checked_sub(1)?)?;
    Some(ForeignKey {
        constraint,
        to: named(text, all, refers + 1)?,
        at: before.at.start..last.at.end,
    })
}

/// The sequences that a statement draws from or sets.
pub(super) fn sequences(text: &[u8], all: &[Token]) -> Vec<Name> {
    let words = ["NEXTVAL", "LASTVAL", "SETVAL"];
    let calls = (0..all.len()).filter(|i| {
        words.iter().any(|word| all[*i].is(text, word))
            && all.get(i + 1).is_some_and(|t| t.sign(b'('))
    });
    calls.filter_map(|i| named(text, all, i + 2)).collect()
}

/// The tables and views that a view reads, as the server writes it: every name in quotes after FROM or JOIN.
pub(super) fn reads(text: &[u8], all: &[Token]) -> Vec<Name> {
    let words = ["FROM", "JOIN", "STRAIGHT_JOIN"];
    let mut found = vec![];
    for i in 0..all.len() {
        if !words.iter().any(|word| all[i].is(text, word)) {
            continue;
        }
        let open = all.iter().skip(i + 1).take_while(|t| t.sign(b'('));
        let at = i + 1 + open.count();
        if all.get(at).is_some_and(|t| t.kind == Kind::Quoted) {
            found.extend(named(text, all, at));
        }
    }
    found
}
