//! What a reading of a dump found.

use std::collections::{BTreeMap, BTreeSet};

use crate::database::mysql::sql::Named;

/// What its statements need to be allowed on a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Right {
    /// CREATE.
    Create,
    /// DROP.
    Drop,
    /// ALTER.
    Alter,
    /// INSERT.
    Insert,
    /// SELECT.
    Select,
    /// CREATE VIEW.
    CreateView,
    /// TRIGGER.
    Trigger,
    /// CREATE ROUTINE.
    CreateRoutine,
    /// ALTER ROUTINE.
    AlterRoutine,
    /// EVENT.
    Event,
}

impl Right {
    /// As GRANT writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Drop => "DROP",
            Self::Alter => "ALTER",
            Self::Insert => "INSERT",
            Self::Select => "SELECT",
            Self::CreateView => "CREATE VIEW",
            Self::Trigger => "TRIGGER",
            Self::CreateRoutine => "CREATE ROUTINE",
            Self::AlterRoutine => "ALTER ROUTINE",
            Self::Event => "EVENT",
        }
    }
}

/// Something without which a table or view of a part of a dump can't be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// What needs it.
    pub by: Named,
    /// NeedKind it does.
    pub how: NeedKind,
    /// What it needs. What a view is said to read may be no table but a column: `extract(year from a.b)`.
    pub to: Named,
}

/// NeedKind something is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NeedKind {
    /// A foreign key of this name refers to it.
    ForeignKey(String),
    /// A column draws its values from this sequence.
    Sequence,
    /// A view reads it.
    View,
}

/// What a dump holds and wants, by its statements.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Databases it makes or uses, in its order.
    pub databases: Vec<String>,
    /// Tables it makes or fills, with their databases, in its order.
    pub tables: Vec<(String, String)>,
    /// Who defined its views, triggers, routines and events, as `user@host`, and which.
    pub definers: BTreeMap<String, Vec<String>>,
    /// What it needs on its databases.
    pub rights: BTreeSet<Right>,
    /// Its functions and triggers: where a binary log is kept, not everybody may make them.
    pub logged: Vec<String>,
    /// Functions that say nothing of what they do: a server with a binary log may refuse them.
    pub unsafe_functions: Vec<String>,
    /// Statements that are not sent, since they belong to the server it was dumped from.
    pub left_out: BTreeSet<&'static str>,
    /// Why it can't get another name, with the names of what stands in the way.
    pub refusals: Vec<String>,
    /// What names the database in a string: it may mean something else.
    pub doubts: Vec<String>,
    /// Which table each of its triggers is of, whether that is taken or not.
    pub triggers: BTreeMap<Named, Named>,
    /// Its views, taken or not.
    pub views: BTreeSet<Named>,
    /// Its sequences, taken or not.
    pub sequences: BTreeSet<Named>,
    /// Of a part of it, what it needs.
    pub needs: Vec<Need>,
    /// Of a part of it, triggers that were made under another collation of their database than that has.
    pub collations: Vec<Named>,
    /// Names of what it makes, in lower case.
    pub(super) objects: BTreeSet<String>,
    /// A name that may be that of the database or of a table, what it names, and where.
    pub(super) either: Vec<(String, String)>,
}
