//! The MySQL or MariaDB server: which client fits, what the server and the grants allow, and the
//! dump as a child process.

mod client;
mod complete;
mod errors;
mod given;
mod grants;
mod option_file;
mod plan;
mod server;
mod session;

pub use client::{Client, Clients, Flavour, missing};
pub use complete::{Asked, check};
pub use errors::explain;
pub(crate) use errors::number;
pub(crate) use given::partial;
pub use option_file::OptionFile;
pub use plan::{DumpPlan, plan};
pub use server::{Server, literals, observe, still_there};
