//! The file as a tree in which each line ends as taken over or as named: what neither happened to is
//! named at the end, so that nothing is lost without a word.

use std::cell::RefCell;
use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::expand::{Seen, expand};
use crate::error::{Error, Result};

/// Merge keys that merge again: more are a circle or a joke.
const MERGES: usize = 32;
/// Key under which YAML merges.
const MERGE: &str = "<<";

/// The file and what became of its lines.
pub(crate) struct Source<'a> {
    variables: &'a dyn Fn(&str) -> Option<String>,
    seen: RefCell<Seen>,
    taken: RefCell<BTreeSet<String>>,
    named: RefCell<BTreeSet<String>>,
    notes: RefCell<Vec<String>>,
}

/// One place of the file.
#[derive(Clone)]
pub(crate) struct Entry<'a> {
    source: &'a Source<'a>,
    value: &'a Value,
    path: String,
}

/// The text as a tree with every anchor merged, and the parts outside of `models` that are merged
/// into them.
///
/// # Errors
/// It is no YAML.
pub(crate) fn parse(text: &str) -> Result<(Value, BTreeSet<String>)> {
    let bad = |e: serde_yaml::Error| Error::usage(format!("not YAML: {e}"));
    let mut tree: serde_yaml::Value = serde_yaml::from_str(text).map_err(bad)?;
    let mut used = vec![];
    parts(&tree["models"], &mut used);
    let merged = outside(&tree, &used);
    for _ in 0..MERGES {
        if !merges(&tree) {
            break;
        }
        tree.apply_merge().map_err(bad)?;
    }
    Ok((json(&tree), merged))
}

fn merges(value: &serde_yaml::Value) -> bool {
    match value {
        serde_yaml::Value::Mapping(map) => {
            map.contains_key(MERGE) || map.iter().any(|(_, inner)| merges(inner))
        }
        serde_yaml::Value::Sequence(items) => items.iter().any(merges),
        _ => false,
    }
}

/// Every mapping and list within.
fn parts<'a>(value: &'a serde_yaml::Value, found: &mut Vec<&'a serde_yaml::Value>) {
    match value {
        serde_yaml::Value::Mapping(map) => {
            found.push(value);
            map.iter().for_each(|(_, inner)| parts(inner, found));
        }
        serde_yaml::Value::Sequence(items) => {
            found.push(value);
            items.iter().for_each(|inner| parts(inner, found));
        }
        _ => {}
    }
}

/// Lines outside of `models` that stand in them too, because they are merged there.
fn outside(tree: &serde_yaml::Value, used: &[&serde_yaml::Value]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open: Vec<(String, &serde_yaml::Value)> = vec![];
    let entries = |path: &str, value: &serde_yaml::Value| {
        let map = value.as_mapping().cloned().unwrap_or_default();
        let keys: Vec<String> = map.iter().map(|(key, _)| scalar(key)).collect();
        keys.into_iter()
            .map(|key| (join(path, &key), key))
            .collect::<Vec<_>>()
    };
    for (path, key) in entries("", tree) {
        if path != "models" {
            open.push((path, &tree[key.as_str()]));
        }
    }
    while let Some((path, value)) = open.pop() {
        if used.contains(&value) {
            found.extend(leaves(&path, &json(value)));
            // What is merged into it stands in it under its own name.
            continue;
        }
        for (path, key) in entries(&path, value) {
            open.push((path, &value[key.as_str()]));
        }
    }
    found
}

fn json(value: &serde_yaml::Value) -> Value {
    match value {
        serde_yaml::Value::Mapping(map) => {
            let entries = map.iter().map(|(key, inner)| (scalar(key), json(inner)));
            Value::Object(entries.collect())
        }
        serde_yaml::Value::Sequence(items) => items.iter().map(json).collect(),
        serde_yaml::Value::Tagged(tagged) => json(&tagged.value),
        other => serde_json::to_value(other).unwrap_or_default(),
    }
}

fn scalar(key: &serde_yaml::Value) -> String {
    match key {
        serde_yaml::Value::String(text) => text.clone(),
        other => text(&json(other)).unwrap_or_default(),
    }
}

/// A scalar as gobackup reads one; `None` for nothing.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

/// Paths of all lines that hold something, below and including `path`.
pub(crate) fn leaves(path: &str, value: &Value) -> Vec<String> {
    match value {
        Value::Object(map) if !map.is_empty() => map
            .iter()
            .flat_map(|(key, inner)| leaves(&join(path, key), inner))
            .collect(),
        Value::Array(items) if !items.is_empty() => items
            .iter()
            .enumerate()
            .flat_map(|(n, inner)| leaves(&format!("{path}[{n}]"), inner))
            .collect(),
        _ => vec![path.to_owned()],
    }
}

impl<'a> Source<'a> {
    pub(crate) fn new(variables: &'a dyn Fn(&str) -> Option<String>) -> Self {
        Self {
            variables,
            seen: RefCell::default(),
            taken: RefCell::default(),
            named: RefCell::default(),
            notes: RefCell::default(),
        }
    }

    /// The file itself.
    pub(crate) fn root(&'a self, value: &'a Value) -> Entry<'a> {
        Entry {
            source: self,
            value,
            path: String::new(),
        }
    }

    /// Says something of a place.
    pub(crate) fn note(&self, place: &str, what: &str) {
        self.notes.borrow_mut().push(format!("{place}: {what}"));
    }

    /// Lines that stand elsewhere too.
    pub(crate) fn stand_elsewhere(&self, paths: BTreeSet<String>) {
        self.taken.borrow_mut().extend(paths);
    }

    fn expanded(&self, text: &str) -> String {
        expand(text, self.variables, &mut self.seen.borrow_mut())
    }

    /// Names what nobody took and nobody named, and gives all that was said.
    ///
    /// # Errors
    /// A variable of what was taken has no value.
    pub(crate) fn finish(&self, left: &[(String, &Value)]) -> Result<Vec<String>> {
        let seen = self.seen.take();
        if !seen.unset.is_empty() {
            let names: Vec<String> = seen.unset.into_iter().collect();
            return Err(Error::usage(format!(
                "the file uses variables without a value: {}",
                names.join(", ")
            ))
            .hint("export them, or name a file with them: --env-file FILE"));
        }
        if seen.special {
            self.note(
                "file",
                "$$, $1 and the like are empty to gobackup and here; a `$` in a password has no escape there",
            );
        }
        for (path, value) in left {
            self.name_rest(path, value);
        }
        Ok(self.notes.take())
    }

    fn is_known(&self, path: &str) -> bool {
        self.taken.borrow().contains(path) || self.named.borrow().contains(path)
    }

    /// The largest part of which no line is known is named as one.
    fn name_rest(&self, path: &str, value: &Value) {
        let all = leaves(path, value);
        if all.iter().all(|leaf| self.is_known(leaf)) {
            return;
        }
        if !all.iter().any(|leaf| self.is_known(leaf)) {
            self.note(
                path,
                "is nothing that gobackup reads there, and is not taken over: check its spelling and its place",
            );
            self.named.borrow_mut().extend(all);
            return;
        }
        match value {
            Value::Object(map) => map
                .iter()
                .for_each(|(key, inner)| self.name_rest(&join(path, key), inner)),
            Value::Array(items) => items
                .iter()
                .enumerate()
                .for_each(|(n, inner)| self.name_rest(&format!("{path}[{n}]"), inner)),
            _ => {}
        }
    }
}

impl<'a> Entry<'a> {
    /// What is below this key, in any case as gobackup reads keys; `None` where nothing is.
    pub(crate) fn get(&self, key: &str) -> Option<Entry<'a>> {
        let map = self.value.as_object()?;
        let mut all = map.iter();
        let (own, value) = all.find(|(own, _)| own.eq_ignore_ascii_case(key))?;
        let node = Entry {
            source: self.source,
            value,
            path: join(&self.path, own),
        };
        if value.is_null() {
            node.mark(&self.source.taken);
            return None;
        }
        Some(node)
    }

    /// Its entries, with their names.
    pub(crate) fn entries(&self) -> Vec<(String, Entry<'a>)> {
        let map = self.value.as_object().into_iter().flatten();
        map.map(|(key, value)| {
            let node = Entry {
                source: self.source,
                value,
                path: join(&self.path, key),
            };
            (self.source.expanded(key), node)
        })
        .collect()
    }

    /// Where it stands.
    pub(crate) fn place(&self) -> &str {
        &self.path
    }

    /// The value there, as it stands in the file.
    pub(crate) fn value(&self) -> &'a Value {
        self.value
    }

    /// True if it holds entries.
    pub(crate) fn is_map(&self) -> bool {
        self.value.is_object()
    }

    fn mark(&self, set: &RefCell<BTreeSet<String>>) {
        set.borrow_mut().extend(leaves(&self.path, self.value));
    }

    /// The scalar as text; taken over.
    pub(crate) fn text(&self) -> Option<String> {
        let text = match self.value {
            Value::Object(_) | Value::Array(_) => return None,
            value => text(value)?,
        };
        self.mark(&self.source.taken);
        Some(self.source.expanded(&text))
    }

    /// The scalar below a key; taken over.
    pub(crate) fn text_of(&self, key: &str) -> Option<String> {
        self.get(key)?.text().filter(|text| !text.is_empty())
    }

    /// What is below a key as gobackup reads a boolean; taken over.
    pub(crate) fn flag_of(&self, key: &str) -> Option<bool> {
        let text = self.text_of(key)?;
        Some(matches!(
            text.as_str(),
            "1" | "t" | "T" | "true" | "TRUE" | "True"
        ))
    }

    /// All of it; taken over.
    pub(crate) fn whole(&self) -> Value {
        self.mark(&self.source.taken);
        self.copy(self.value)
    }

    fn copy(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.source.expanded(text).into(),
            Value::Array(items) => items.iter().map(|item| self.copy(item)).collect(),
            Value::Object(map) => {
                let entries = map
                    .iter()
                    .map(|(key, inner)| (self.source.expanded(key), self.copy(inner)));
                Value::Object(entries.collect::<Map<_, _>>())
            }
            other => other.clone(),
        }
    }

    /// Says something of what is taken over.
    pub(crate) fn remark(&self, what: &str) {
        self.source.note(&self.path, what);
    }

    /// Says that it is not taken over, and what to do.
    pub(crate) fn lost(&self, what: &str) {
        self.mark(&self.source.named);
        self.source.note(&self.path, what);
    }
}
