//! A dump of MySQL or MariaDB by their protocol: several sessions read one snapshot, and what they read becomes one text
//! that any client loads, in frames that can be read alone. Knows nothing of stores and of Kubernetes.

mod accounts;
mod ask;
mod chunk;
mod column;
mod driver;
mod encode;
mod error;
mod file;
mod frames;
mod grants;
mod order;
mod parts;
mod read;
mod row;
pub mod schema;
mod seek;
mod snapshot;
pub mod sql;
pub mod text;
mod work;

pub use chunk::chunks;
pub use driver::{Dump, Look, Made, Open, Summed};
pub use encode::Encoder;
pub use error::Error;
pub use file::File;
pub use frames::{Frame, Frames, KEY, Meta, ranges};
pub use grants::Grants;
pub use order::{Order, Stopped};
pub use parts::{
    Chunk, Column, Compress, Database, Flavour, Key, Object, Options, Piece, Position, Rung,
    Schema, Section, Server, Sum, Table, TableKind,
};
pub use read::{Emit, Reader};
pub use snapshot::{Snapshot, begin};

/// Bytes of text after which a frame is closed.
pub const FRAME: usize = 2 << 20;
/// Bytes of a table that one chunk holds, by the server's estimate.
pub const CHUNK: u64 = 16 << 20;
