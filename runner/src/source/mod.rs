//! The MySQL or MariaDB server: which client fits, what the server and the grants allow, and the
//! dump as a child process.

mod child;
mod client;
mod errors;
mod greeting;
mod option_file;
mod plan;
mod server;

pub use child::{Dump, Ended};
pub use client::{Client, Clients, Flavour, missing};
pub use errors::explain;
pub use greeting::greet;
pub use option_file::{OptionFile, scratch_directory};
pub use plan::{DumpPlan, plan};
pub use server::{Server, literals, observe};
