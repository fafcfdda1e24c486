//! Binary logs of MySQL and MariaDB: pulled by `wire`, checked event by event, cut into segments of whole transactions that
//! joined are the server's files byte for byte, and chained, so that what is missing is named. Knows nothing of stores.

pub mod chain;
mod check;
mod cut;
mod error;
pub mod event;
mod fault;
mod fields;
pub mod gtid;
pub mod needs;
mod observe;
pub mod plan;
mod pull;
pub mod reread;
mod segment;
pub mod span;

pub use check::{Check, Ended, Start, Step, Stored};
pub use cut::{Count, Cut, Join, Limits, Sink, Stop};
pub use error::Error;
pub use fault::{Break, Fault};
pub use observe::{lacks, observe};
pub use pull::{Pulled, Request, pull, replica};
pub use segment::{Anchor, Cause, Identity, Link, MANIFEST, Segment};
