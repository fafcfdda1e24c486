//! Pulls a server's log to nothing: `nothing PORT USER PASSWORD`, for benches. Prints bytes, processor seconds and the
//! largest resident memory.
#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a program for benches"
)]

use std::io;
use std::time::{Duration, Instant};

use binlog::{Limits, Request, Segment, Sink};
use wire::{Address, Connection, Settings};

struct Nothing;

impl Sink for Nothing {
    fn begin(&mut self, _: &str, _: u64) -> io::Result<()> {
        Ok(())
    }
    fn write(&mut self, _: &[u8]) -> io::Result<()> {
        Ok(())
    }
    fn end(&mut self, _: &Segment) -> io::Result<()> {
        Ok(())
    }
    fn abandon(&mut self) {}
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let [_, port, user, password] = args.as_slice() else {
        panic!("usage: nothing PORT USER PASSWORD");
    };
    let address = Address::Tcp("127.0.0.1".into(), port.parse().expect("a port"));
    let settings = Settings::new(address, user, password.clone().into());
    let request = Request {
        last: None,
        first: binlog::plan::First::Oldest,
        server_id: binlog::replica(b"nothing"),
        limits: Limits::default(),
    };
    let begun = Instant::now();
    let mut open = || Connection::open(&settings);
    let pulled = binlog::pull(&mut open, &request, &mut || Duration::ZERO, &mut Nothing).unwrap();
    let wall = begun.elapsed().as_secs_f64();
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    // utime and stime, in hundredths of a second, behind the program's name.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split(' ').collect();
    let ticks: f64 = fields[12].parse::<f64>().unwrap() + fields[13].parse::<f64>().unwrap();
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find(|l| l.starts_with("VmHWM")).unwrap();
    println!(
        "{} bytes, {} transactions, {} segments, {:.2} s of processor, {wall:.2} s, {peak}",
        pulled.count.bytes,
        pulled.count.transactions,
        pulled.count.segments,
        ticks / 100.0
    );
}
