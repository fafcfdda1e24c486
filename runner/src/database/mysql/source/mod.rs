//! The MySQL or MariaDB server: which client fits, what the server and the grants allow, and the
//! dump as a child process.

mod client;
mod complete;
mod engine;
mod errors;
mod option_file;
mod plan;
mod server;
mod session;

pub use client::{Client, Clients, Flavour, missing};
pub use complete::{Asked, check};
pub use engine::{Chosen, choose};
pub use errors::explain;
pub(crate) use errors::{number, of_session as failure_of, place};
pub use option_file::OptionFile;
pub use plan::{DumpPlan, plan, plan_native};
pub use server::{Server, literals, observe, still_there};
pub(crate) use session::{scrubbed, settings as session_settings};
