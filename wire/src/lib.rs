//! The protocol that MySQL and MariaDB speak, for programs that read much: rows and binlog events are borrowed from the
//! read buffer, and what a server sends is bounded before memory is taken for it. Knows nothing of backups.
//!
//! ```no_run
//! # fn main() -> Result<(), wire::Error> {
//! let settings = wire::Settings::new(wire::Address::Tcp("db".into(), 3306), "reader", "secret".into());
//! let mut connection = wire::Connection::open(&settings)?;
//! let mut rows = connection.query("SELECT id, name FROM shop.customers")?;
//! while let Some(mut row) = rows.read()? {
//!     let (id, name) = (row.value()?, row.value()?);
//! }
//! # Ok(())
//! # }
//! ```

mod answer;
mod auth;
mod binlog;
mod connection;
mod error;
mod greeting;
mod infile;
mod limits;
mod login;
mod packet;
mod parse;
mod rows;
mod session;
mod settings;
mod stream;
#[cfg(test)]
mod tests;

pub use answer::Done;
pub use binlog::{Binlog, From, Part};
pub use connection::Connection;
pub use error::{Error, ServerError};
pub use greeting::{Capabilities, Greeting};
pub use limits::{Limits, Pulse, Stop};
pub use rows::{Column, Kind, Row, Rows};
pub use settings::Settings;
pub use stream::{Address, Tls};
