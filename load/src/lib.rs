//! Loads a dump of the crate `dump`, or a plain one of a client, into MySQL or MariaDB: tables without the keys that are better
//! made of all rows at once, rows by several sessions, then keys, foreign keys and programs. What is done of the former is kept
//! in the target, so that a load that was cut goes on. Knows nothing of stores and of Kubernetes.

mod comments;
mod definition;
mod driver;
mod error;
mod journal;
mod kind;
mod plain;
mod queue;
mod refusal;
mod rows;
mod session;
mod settings;
mod source;
mod split;
mod statements;
mod survey;
mod values;
mod work;

pub use driver::{Begun, Change, Complete, Load, Loaded, LoadedTable, Phase};
pub use error::Error;
pub use plain::Plain;
pub use refusal::{is_full, is_held, is_too_large};
pub use session::{Open, Warning};
pub use source::{Sequential, Source, text_of_frame};
pub use survey::{Shape, Survey};
pub use work::Progress;
