//! Dumps databases to nothing, for benchmarks: what reading and writing the text costs, without compression and store.
//!
//! usage: nothing SOCKET USER PASSWORD SESSIONS DATABASE...
#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "prints its figures, and takes a password that is of no value"
)]

use std::path::PathBuf;

use dump::{Compress, Dump, Options};
use wire::{Address, Connection, Settings};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let mut next = || {
        args.next()
            .ok_or("usage: nothing SOCKET USER PASSWORD SESSIONS DATABASE...")
    };
    let socket = Address::Socket(PathBuf::from(next()?));
    let user = next()?;
    let settings = Settings::new(socket, &user, next()?.into());
    let mut options = Options::default();
    options.sessions = next()?.parse()?;
    options.databases = args.collect();
    options.compress = Compress::None;
    let open = || Connection::open(&settings);
    let dump = Dump::begin(&open, options, &settings.stop)?;
    let (rung, took) = dump.rung();
    let mut bytes = 0;
    let (_, made) = dump.write(
        std::io::sink(),
        &mut |_, text| bytes += text.len(),
        &settings.stop,
    )?;
    let rows: u64 = made.tables.iter().map(|t| t.sum.rows).sum();
    println!("{rows} rows, {bytes} bytes, {rung:?} after {took:?}");
    Ok(())
}
