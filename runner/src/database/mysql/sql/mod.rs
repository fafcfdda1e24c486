//! The text of a dump of MySQL or MariaDB, read statement by statement as the SQL client reads it:
//! what it would do is known before its first statement is sent, and what belongs to another place
//! or another name is left out or renamed on its way. Rows go by as they are.

mod finds;
mod needs;
mod rules;
mod script;
mod secrets;
mod selection;
#[cfg(test)]
mod tests;
mod tokens;
mod touches;

pub use finds::{Found, Need, NeedKind, Right};
pub use rules::{Definers, Rewrite};
pub use script::Script;
pub(crate) use secrets::masked;
pub use selection::{Named, Selection};
pub use touches::{StatementChange, touched};

/// What the client prints where a table begins, before its number.
pub const MARK: &str = "@@table ";
/// The number of what is no table.
pub const OTHER: usize = 0;
