//! What is done with each statement.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;

use crate::database::mysql::sql::finds::{Found, Need, NeedKind, Right};
use crate::database::mysql::sql::needs::{self, Name};
use crate::database::mysql::sql::tokens::{Kind, Modes, Token, qualified, tokens, unquoted};
use crate::database::mysql::sql::{Named, OTHER, Selection};

/// What becomes of the definers of views, triggers, routines and events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Definers {
    /// They stay.
    #[default]
    Keep,
    /// They are left out: whoever restores becomes the definer.
    Drop,
    /// All become this one, `` `user`@`host` ``.
    To(String),
}

/// What is changed in a dump on its way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rewrite {
    /// The one database's name in the dump, and the one it gets.
    pub rename: Option<(String, String)>,
    /// The definers.
    pub definers: Definers,
    /// What alone of it is taken; of a dump of the native engine.
    pub only: Option<Arc<Selection>>,
}

/// Statements of the server the dump came from.
const REPLICATION: &str = "replication (CHANGE MASTER, START and STOP SLAVE, RESET)";
/// Those that set its GTIDs.
const GTIDS: &str = "SET of GTIDs";

/// Kinds of programs: what they say may name the database.
const PROGRAMS: [&str; 7] = [
    "VIEW",
    "LIBRARY",
    "TRIGGER",
    "PROCEDURE",
    "FUNCTION",
    "EVENT",
    "PACKAGE",
];
/// Kinds that stand in a dump of one database.
const OBJECTS: [&str; 13] = [
    "DATABASE",
    "SCHEMA",
    "TABLE",
    "VIEW",
    "LIBRARY",
    "TRIGGER",
    "PROCEDURE",
    "FUNCTION",
    "EVENT",
    "PACKAGE",
    "SEQUENCE",
    "INDEX",
    "KEY",
];
/// Kinds of a server's own things.
const OF_SERVERS: [&str; 9] = [
    "USER",
    "ROLE",
    "SERVER",
    "TABLESPACE",
    "LOGFILE",
    "UNDO",
    "RESOURCE",
    "INSTANCE",
    "SPATIAL_REFERENCE",
];

type Edit = (Range<usize>, Vec<u8>);

/// The rules, and what they have seen.
#[derive(Default)]
pub(super) struct Rules {
    wish: Rewrite,
    modes: Modes,
    saved: HashMap<String, Modes>,
    /// The database at hand, as the dump names it.
    database: String,
    found: Found,
    index: HashMap<(String, String), usize>,
    table: usize,
    known: Option<BTreeSet<String>>,
    /// Which table each trigger is of, by a first reading.
    triggers: BTreeMap<Named, Named>,
    /// A statement gave the database at hand another collation, for a program.
    elsewhere: bool,
}

/// What a CREATE, ALTER or DROP is of.
struct Head<'a> {
    kind: &'a str,
    /// Tokens of its name, and of the database before it.
    database: Option<usize>,
    name: Option<usize>,
    /// Bytes of the definer's clause, and the definer.
    definer: Option<(Range<usize>, String)>,
}

impl Rules {
    pub(super) fn new(wish: Rewrite) -> Self {
        Self {
            wish,
            ..Self::default()
        }
    }

    /// What a first reading found helps to tell names apart.
    pub(super) fn know(&mut self, found: &Found) {
        self.known = Some(found.objects.clone());
        self.triggers.clone_from(&found.triggers);
    }

    pub(super) fn escapes(&self) -> bool {
        !self.modes.plain
    }

    pub(super) fn table(&self) -> usize {
        self.table
    }

    pub(super) fn found(mut self) -> Found {
        for (what, second) in std::mem::take(&mut self.found.either) {
            if self.found.objects.contains(&second.to_lowercase()) {
                self.found.refusals.push(format!(
                    "{what} (it has a table or an alias of the database's name)"
                ));
            }
        }
        self.found.refusals.dedup();
        self.found.doubts.dedup();
        self.found
    }

    /// The head of an INSERT, up to its columns or rows.
    pub(super) fn insert(&mut self, text: Vec<u8>) -> Vec<u8> {
        let all = tokens(&text, self.modes);
        let words = ["INTO", "IGNORE", "DELAYED", "LOW_PRIORITY", "HIGH_PRIORITY"];
        let said = |t: &Token| words.iter().any(|word| t.is(&text, word));
        let first = 1 + all.iter().skip(1).take_while(|t| said(t)).count();
        let (database, name) = qualified(&all, &text, first);
        self.found.rights.insert(Right::Insert);
        if let Some(name) = name.and_then(|i| all.get(i)?.name(&text)) {
            let of = database.and_then(|i| all.get(i)?.name(&text));
            self.abroad(of.as_deref(), &format!("the rows of {name}"));
            self.enter(of, name);
        }
        let mut edits = vec![];
        self.rename(&text, &all, ("the rows of a table", false), &mut edits);
        edited(text, edits)
    }

    /// A statement without rows; `None` if it is not sent.
    pub(super) fn statement(&mut self, text: Vec<u8>) -> Option<Vec<u8>> {
        let all = tokens(&text, self.modes);
        let word = |at: usize| {
            let token = all.get(at).filter(|t| t.kind == Kind::Word);
            token
                .and_then(|t| t.name(&text))
                .unwrap_or_default()
                .to_ascii_uppercase()
        };
        let mut edits: Vec<Edit> = vec![];
        let (verb, second) = (word(0), word(1));
        match (verb.as_str(), second.as_str()) {
            ("LOCK" | "UNLOCK", "TABLES" | "TABLE" | "INSTANCE") => return None,
            ("CHANGE", _)
            | ("START" | "STOP", "SLAVE" | "REPLICA" | "ALL" | "GROUP_REPLICATION")
            | ("RESET", _) => {
                self.found.left_out.insert(REPLICATION);
                return None;
            }
            ("SET", _) => {
                if self.set(&text, &all, &mut edits) {
                    return None;
                }
            }
            ("USE", _) => {
                if let Some(name) = all.get(1).and_then(|t| t.name(&text)) {
                    self.enters(&name);
                    self.new_name(&all, &text, 1, &mut edits);
                }
            }
            ("CREATE" | "ALTER" | "DROP", _) => {
                if !self.definition(&verb, &text, &all, &mut edits) {
                    return None;
                }
            }
            ("DO" | "SELECT", _) if !self.takes_sequences(&text, &all) => return None,
            (
                "INSERT" | "REPLACE" | "DO" | "SELECT" | "CALL" | "UPDATE" | "DELETE" | "TRUNCATE"
                | "RENAME" | "ANALYZE",
                _,
            ) => {
                self.pairs(&text, &all, &verb);
                self.rename(
                    &text,
                    &all,
                    (&format!("a statement {verb}"), false),
                    &mut edits,
                );
            }
            ("BEGIN" | "COMMIT" | "START" | "XA" | "", _) => {}
            ("FLUSH", _) if self.wish.rename.is_some() => {
                self.found.left_out.insert("FLUSH");
                return None;
            }
            _ => self.refuse(|| format!("a statement {verb} {second}")),
        }
        Some(edited(text, edits))
    }

    /// CREATE, ALTER, DROP; false if it is not sent.
    fn definition(
        &mut self,
        verb: &str,
        text: &[u8],
        all: &[Token],
        edits: &mut Vec<Edit>,
    ) -> bool {
        let Some(head) = head(text, all) else {
            self.refuse(|| format!("a statement {verb} of an unknown kind"));
            return true;
        };
        let name_at = |i: Option<usize>| i.and_then(|i| all.get(i)?.name(text));
        let (of, name) = (
            name_at(head.database),
            name_at(head.name).unwrap_or_default(),
        );
        let label = format!("{} {name}", head.kind.to_lowercase());
        if OF_SERVERS.contains(&head.kind) {
            self.refuse(|| format!("a statement {verb} {}", head.kind));
            return true;
        }
        let named = (
            of.clone().unwrap_or_else(|| self.database.clone()),
            name.clone(),
        );
        if !self.takes(verb, &head, &named, (text, all)) {
            return false;
        }
        self.rights(verb, head.kind);
        if matches!(head.kind, "DATABASE" | "SCHEMA") {
            // ALTER DATABASE without a name is of the database at hand.
            let said = head.name.filter(|_| !name.is_empty() && !options(&name));
            if let Some(at) = said {
                if verb == "CREATE" {
                    self.lists(&name);
                }
                self.abroad(Some(&name), &format!("{verb} DATABASE"));
                self.new_name(all, text, at, edits);
            }
            return true;
        }
        if verb == "CREATE" {
            self.needed(&head, &named, (text, all), edits);
        }
        self.abroad(of.as_deref(), &label);
        if verb == "CREATE" {
            self.found.objects.insert(name.to_lowercase());
            match head.kind {
                "TABLE" | "SEQUENCE" => self.enter(of, name.clone()),
                "TRIGGER" | "FUNCTION" => self.found.logged.push(label.clone()),
                _ => {}
            }
            if head.kind == "FUNCTION" && !safe(text, all) {
                self.found.unsafe_functions.push(label.clone());
            }
        } else if !PROGRAMS.contains(&head.kind) {
            self.pairs(text, all, &label);
        }
        if let Some((range, who)) = head.definer {
            self.found
                .definers
                .entry(who)
                .or_default()
                .push(label.clone());
            match &self.wish.definers {
                Definers::Keep => {}
                Definers::Drop => edits.push((range, vec![])),
                Definers::To(who) => edits.push((range, format!("DEFINER={who}").into_bytes())),
            }
        }
        let program = verb == "CREATE" && PROGRAMS.contains(&head.kind);
        if program {
            self.table = OTHER;
        }
        self.rename(text, all, (&label, program), edits);
        true
    }

    /// A name, of the database at hand where it says none.
    fn named(&self, (database, name): Name) -> Named {
        (database.unwrap_or_else(|| self.database.clone()), name)
    }

    /// Notes what there is, taken or not; true if this is taken.
    fn takes(
        &mut self,
        verb: &str,
        head: &Head<'_>,
        named: &Named,
        (text, all): (&[u8], &[Token]),
    ) -> bool {
        let mut of = self.triggers.get(named).cloned();
        if verb == "CREATE" {
            match head.kind {
                "VIEW" => {
                    self.found.views.insert(named.clone());
                }
                "SEQUENCE" => {
                    self.found.sequences.insert(named.clone());
                }
                "TRIGGER" => {
                    let table = head
                        .name
                        .and_then(|n| needs::table_of_trigger(text, all, n));
                    of = table.map(|table| self.named(table));
                    if let Some(of) = &of {
                        self.found.triggers.insert(named.clone(), of.clone());
                    }
                }
                _ => {}
            }
        }
        let Some(only) = self.wish.only.clone() else {
            return true;
        };
        match head.kind {
            "DATABASE" | "SCHEMA" if verb == "CREATE" => only.enters(&named.1),
            "DATABASE" | "SCHEMA" => {
                let whole = only.is_whole(&self.database);
                // A pair of these stands around a program.
                self.elsewhere = !whole && !self.elsewhere;
                whole
            }
            "TABLE" | "SEQUENCE" => only.takes(named),
            "VIEW" => only.is_whole(&named.0) && only.takes(named),
            "TRIGGER" => {
                // One that a first reading comes to is not known yet.
                let taken = of.map_or(verb == "DROP", |of| only.takes(&of));
                if taken && verb == "CREATE" && self.elsewhere {
                    self.found.collations.push(named.clone());
                }
                taken
            }
            _ => only.is_whole(&named.0),
        }
    }

    /// Of a part of a dump: true unless it sets a sequence that is not taken.
    fn takes_sequences(&self, text: &[u8], all: &[Token]) -> bool {
        let Some(only) = &self.wish.only else {
            return true;
        };
        let set = needs::sequences(text, all);
        set.into_iter().all(|name| only.takes(&self.named(name)))
    }

    /// Of a part of a dump: what this needs that may be elsewhere. Foreign keys that are not wanted go.
    fn needed(
        &mut self,
        head: &Head<'_>,
        by: &Named,
        (text, all): (&[u8], &[Token]),
        edits: &mut Vec<Edit>,
    ) {
        let Some(only) = self.wish.only.clone() else {
            return;
        };
        let mut needs = vec![];
        match head.kind {
            "TABLE" => {
                for key in needs::foreign_keys(text, all, head.name.unwrap_or_default()) {
                    let unwanted = (by.clone(), key.constraint.clone());
                    if only.foreign_keys.contains(&unwanted) {
                        edits.push((key.at, vec![]));
                    } else {
                        needs.push((NeedKind::ForeignKey(key.constraint), key.to));
                    }
                }
                let drawn = needs::sequences(text, all).into_iter();
                needs.extend(drawn.map(|to| (NeedKind::Sequence, to)));
            }
            "VIEW" => {
                let read = needs::reads(text, all).into_iter();
                needs.extend(read.map(|to| (NeedKind::View, to)));
            }
            _ => {}
        }
        for (how, to) in needs {
            let to = self.named(to);
            if only.takes(&to) {
                continue;
            }
            let by = by.clone();
            self.found.needs.push(Need { by, how, to });
        }
    }

    fn rights(&mut self, verb: &str, kind: &str) {
        let more: &[Right] = match (verb, kind) {
            ("CREATE", "TABLE" | "SEQUENCE" | "DATABASE" | "SCHEMA") => &[Right::Create],
            ("DROP", "TABLE" | "VIEW" | "SEQUENCE" | "DATABASE" | "SCHEMA") => &[Right::Drop],
            ("ALTER", "TABLE" | "DATABASE" | "SCHEMA" | "SEQUENCE") => &[Right::Alter],
            ("CREATE", "VIEW") => &[Right::CreateView, Right::Select],
            (_, "TRIGGER") => &[Right::Trigger],
            ("CREATE", "LIBRARY" | "PROCEDURE" | "FUNCTION" | "PACKAGE") => &[Right::CreateRoutine],
            (_, "LIBRARY" | "PROCEDURE" | "FUNCTION" | "PACKAGE") => &[Right::AlterRoutine],
            (_, "EVENT") => &[Right::Event],
            _ => &[],
        };
        self.found.rights.extend(more);
    }

    /// SET; true if it is not sent.
    fn set(&mut self, text: &[u8], all: &[Token], edits: &mut Vec<Edit>) -> bool {
        const OF_REPLICATION: [&str; 8] = [
            "sql_log_bin",
            "mysqldump_temp_log_bin",
            "gtid_purged",
            "gtid_next",
            "gtid_slave_pos",
            "gtid_binlog_state",
            "gtid_executed",
            "wsrep_on",
        ];
        let plain = |token: &Token| {
            let bytes = text.get(token.at.clone()).unwrap_or_default();
            let text = String::from_utf8_lossy(bytes).to_lowercase();
            let name = text.trim_start_matches('@').trim_matches('`');
            name.rsplit('.').next().unwrap_or_default().to_owned()
        };
        let mut assigned = vec![];
        for (i, token) in all.iter().enumerate() {
            let value = match all.get(i + 1) {
                Some(sign) if sign.sign(b'=') => i + 2,
                Some(sign) if sign.sign(b':') => i + 3,
                _ => continue,
            };
            if !matches!(token.kind, Kind::Word | Kind::Variable | Kind::Quoted) {
                continue;
            }
            let (name, value) = (plain(token), all.get(value));
            let user = text.get(token.at.start) == Some(&b'@')
                && text.get(token.at.start + 1) != Some(&b'@');
            match value.map(|v| (v.kind, v)) {
                Some((Kind::Variable, v)) if user && plain(v) == "sql_mode" => {
                    self.saved.insert(name.clone(), self.modes);
                }
                Some((Kind::Variable, v)) if !user && name == "sql_mode" => {
                    self.modes = self.saved.get(&plain(v)).copied().unwrap_or_default();
                }
                Some((Kind::Text, v)) if name == "sql_mode" => {
                    let value = unquoted(&text[v.at.clone()]);
                    self.modes = Modes::of(&value);
                    // Of the rows, not of a routine: those have their own.
                    let of_rows = all.iter().any(|t| plain(t) == "old_sql_mode");
                    if of_rows && !value.contains("ALLOW_INVALID_DATES") {
                        let comma = if value.is_empty() { "" } else { "," };
                        let text = format!("'{value}{comma}ALLOW_INVALID_DATES'");
                        edits.push((v.at.clone(), text.into_bytes()));
                    }
                }
                _ => {}
            }
            assigned.push(name);
        }
        let leave = assigned
            .iter()
            .any(|name| OF_REPLICATION.contains(&name.as_str()));
        if leave {
            self.found.left_out.insert(GTIDS);
        }
        leave
    }

    /// Enters a database.
    fn enters(&mut self, name: &str) {
        self.lists(name);
        self.abroad(Some(name), "USE");
        name.clone_into(&mut self.database);
    }

    fn lists(&mut self, name: &str) {
        // What a dump calls its first database is its name; who reads it may only have guessed.
        if let (true, Some((from, _))) = (self.found.databases.is_empty(), &mut self.wish.rename) {
            name.clone_into(from);
        }
        if !self.found.databases.iter().any(|d| d == name) {
            self.found.databases.push(name.to_owned());
        }
    }

    /// The table at hand.
    fn enter(&mut self, database: Option<String>, name: String) {
        let key = (database.unwrap_or_else(|| self.database.clone()), name);
        self.found.objects.insert(key.1.to_lowercase());
        let next = self.found.tables.len() + 1;
        self.table = *self.index.entry(key).or_insert_with_key(|key| {
            self.found.tables.push(key.clone());
            next
        });
    }

    fn refuse(&mut self, what: impl FnOnce() -> String) {
        if self.wish.rename.is_some() {
            self.found.refusals.push(what());
        }
    }

    /// A statement for another database than the one that gets another name.
    fn abroad(&mut self, database: Option<&str>, what: &str) {
        let (Some((from, _)), Some(database)) = (&self.wish.rename, database) else {
            return;
        };
        if database != from {
            self.found
                .refusals
                .push(format!("{what} (of database {database})"));
        }
    }

    /// Every name with a database before it is of the database at hand.
    fn pairs(&mut self, text: &[u8], all: &[Token], what: &str) {
        for i in 0..all.len() {
            if let (true, Some(name)) = (is_first(all, i), all[i].name(text)) {
                self.abroad(Some(&name), what);
            }
        }
    }

    /// This token is the database's name.
    fn new_name(&self, all: &[Token], text: &[u8], at: usize, edits: &mut Vec<Edit>) {
        if let (Some((from, to)), Some(token)) = (&self.wish.rename, all.get(at))
            && token.name(text).as_ref() == Some(from)
        {
            edits.push((token.at.clone(), dump::sql::name(to).into_bytes()));
        }
    }

    /// Gives the database its new name wherever a name says that it is of it. `what` is what the
    /// statement makes, and whether that holds statements or a query of somebody's own.
    fn rename(
        &mut self,
        text: &[u8],
        all: &[Token],
        (what, program): (&str, bool),
        edits: &mut Vec<Edit>,
    ) {
        let Some((from, to)) = self.wish.rename.clone() else {
            return;
        };
        let lower = from.to_lowercase();
        let same = |t: &Token| t.name(text).filter(|name| name.to_lowercase() == lower);
        let of_user = |i: usize| {
            let next = all.get(i + 1).filter(|t| t.kind == Kind::Variable);
            next.is_some_and(|next| next.at.start == all[i].at.end)
        };
        // A table or an alias of the database's name.
        let plain = (0..all.len()).any(|i| {
            let after_dot = i > 0 && all[i - 1].sign(b'.');
            same(&all[i]).is_some() && !after_dot && !is_first(all, i) && !of_user(i)
        });
        for (i, token) in all.iter().enumerate() {
            if token.kind == Kind::Text && program {
                self.string(
                    &unquoted(&text[token.at.clone()]),
                    &lower,
                    what,
                    (text, all),
                );
            }
            let Some(name) = same(token) else {
                continue;
            };
            if program && after_database(all, text, i) {
                self.found
                    .refusals
                    .push(format!("{what} (it makes or drops a database {name})"));
            }
            if !is_first(all, i) {
                continue;
            }
            if name != from {
                self.found
                    .refusals
                    .push(format!("{what} (it writes {name})"));
                continue;
            }
            if program && ["new", "old"].contains(&lower.as_str()) {
                self.found.refusals.push(format!(
                    "{what} (it says {name}, which is a row in a trigger)"
                ));
                continue;
            }
            let three = all.get(i + 3).is_some_and(|t| t.sign(b'.'));
            let second = all
                .get(i + 2)
                .and_then(|t| t.name(text))
                .unwrap_or_default();
            let known = |known: &BTreeSet<String>| known.contains(&second.to_lowercase());
            if plain && !three && !self.known.as_ref().is_some_and(known) {
                // Then this is its column, unless the dump has such a table: that is seen in the end.
                self.found.either.push((what.to_owned(), second));
                continue;
            }
            edits.push((token.at.clone(), dump::sql::name(&to).into_bytes()));
        }
    }

    /// A string in a program: it may become a statement.
    fn string(&mut self, value: &str, lower: &str, program: &str, (text, all): (&[u8], &[Token])) {
        let value = value.to_lowercase();
        let names = value.match_indices(lower).any(|(at, _)| {
            let before = value[..at].chars().next_back();
            let after = value[at + lower.len()..]
                .trim_start_matches('`')
                .chars()
                .next();
            !before.is_some_and(|c| c.is_alphanumeric() || c == '_') && after == Some('.')
        });
        let made = |word: &str| all.iter().any(|t| t.is(text, word));
        if names && (made("PREPARE") || made("EXECUTE")) {
            self.found
                .refusals
                .push(format!("{program} (in a string it executes)"));
        } else if names || value == lower {
            self.found.doubts.push(program.to_owned());
        }
    }
}

/// Token `i` is a name before a dot, and none is before it.
fn is_first(all: &[Token], i: usize) -> bool {
    let name = |t: &Token| matches!(t.kind, Kind::Word | Kind::Quoted);
    name(&all[i])
        && all.get(i + 1).is_some_and(|t| t.sign(b'.'))
        && !(i > 0 && all[i - 1].sign(b'.'))
        // A number's fraction.
        && all.get(i + 2).is_some_and(|t| name(t) || t.sign(b'*'))
}

/// Token `i` is what DATABASE or SCHEMA is said of.
fn after_database(all: &[Token], text: &[u8], i: usize) -> bool {
    let before = all.iter().take(i).rev();
    let mut before =
        before.skip_while(|t| ["IF", "NOT", "EXISTS"].iter().any(|word| t.is(text, word)));
    before
        .next()
        .is_some_and(|t| t.is(text, "DATABASE") || t.is(text, "SCHEMA"))
}

/// What a CREATE, ALTER or DROP is of.
fn head<'a>(text: &[u8], all: &[Token]) -> Option<Head<'a>> {
    let (mut at, mut definer) = (1, None);
    let kind = loop {
        let token = all.get(at)?;
        if token.is(text, "DEFINER") && all.get(at + 1).is_some_and(|t| t.sign(b'=')) {
            let (end, who) = user(text, all, at + 2)?;
            definer = Some((token.at.start..end.0, who));
            at = end.1;
            continue;
        }
        let kinds = OBJECTS.iter().chain(&OF_SERVERS);
        if let Some(kind) = kinds.copied().find(|kind| token.is(text, kind)) {
            break kind;
        }
        if token.sign(b'(') {
            return None;
        }
        at += 1;
    };
    at += 1;
    while let Some(token) = all.get(at) {
        let skipped = ["IF", "NOT", "EXISTS", "BODY"]
            .iter()
            .any(|word| token.is(text, word));
        if !skipped {
            break;
        }
        at += 1;
    }
    let (database, name) = qualified(all, text, at);
    Some(Head {
        kind,
        database,
        name,
        definer,
    })
}

/// A user from token `at`: where it ends, in bytes and tokens, and `name@host`.
fn user(text: &[u8], all: &[Token], at: usize) -> Option<((usize, usize), String)> {
    let token = all.get(at)?;
    let bytes = text.get(token.at.clone())?;
    let name = match token.kind {
        Kind::Quoted | Kind::Text => unquoted(bytes),
        Kind::Word => String::from_utf8_lossy(bytes).into_owned(),
        Kind::Variable | Kind::Sign(_) => return None,
    };
    let host = all
        .get(at + 1)
        .filter(|t| t.kind == Kind::Variable && t.at.start == token.at.end);
    if let Some(host) = host {
        let bytes = text.get(host.at.start + 1..host.at.end)?;
        let quoted = matches!(bytes.first(), Some(b'`' | b'\'' | b'"'));
        let host_name = if quoted {
            unquoted(bytes)
        } else {
            String::from_utf8_lossy(bytes).into_owned()
        };
        return Some(((host.at.end, at + 2), format!("{name}@{host_name}")));
    }
    let parentheses = all.get(at + 1).is_some_and(|t| t.sign(b'('))
        && all.get(at + 2).is_some_and(|t| t.sign(b')'));
    if parentheses {
        return Some(((all.get(at + 2)?.at.end, at + 3), name));
    }
    Some(((token.at.end, at + 1), name))
}

/// A word after ALTER DATABASE that is none of its name.
fn options(name: &str) -> bool {
    [
        "CHARACTER",
        "CHARSET",
        "COLLATE",
        "DEFAULT",
        "READ",
        "COMMENT",
        "ENCRYPTION",
    ]
    .iter()
    .any(|word| name.eq_ignore_ascii_case(word))
}

/// A function says that it is deterministic, or writes nothing.
fn safe(text: &[u8], all: &[Token]) -> bool {
    let pair = |i: usize, a: &str, b: &str| {
        all[i].is(text, a) && all.get(i + 1).is_some_and(|t| t.is(text, b))
    };
    (0..all.len()).any(|i| {
        all[i].is(text, "DETERMINISTIC") && !(i > 0 && all[i - 1].is(text, "NOT"))
            || pair(i, "NO", "SQL")
            || pair(i, "READS", "SQL")
    })
}

fn edited(mut text: Vec<u8>, mut edits: Vec<Edit>) -> Vec<u8> {
    edits.sort_by_key(|(range, _)| range.start);
    // What is within something that goes needs no change of its own.
    let mut end = 0;
    edits.retain(|(range, _)| {
        let kept = range.start >= end;
        end = end.max(range.end);
        kept
    });
    for (range, with) in edits.into_iter().rev() {
        if range.end <= text.len() && range.start <= range.end {
            text.splice(range, with);
        }
    }
    text
}
