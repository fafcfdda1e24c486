//! Files that real servers wrote, and how they are cut.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    unreachable_pub,
    reason = "tests"
)]

use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

use binlog::event::{HEADER, Header, MAGIC};
use binlog::{Cut, Identity, Limits, Link, Segment, Sink, Start, Stop};

pub const FILES: [(&str, &[u8], &str); 3] = [
    (
        "mariadb",
        include_bytes!("../fixtures/mariadb.000002"),
        include_str!("../fixtures/mariadb.000002.txt"),
    ),
    (
        "mariadb-11",
        include_bytes!("../fixtures/mariadb-11.000002"),
        include_str!("../fixtures/mariadb-11.000002.txt"),
    ),
    (
        "mysql",
        include_bytes!("../fixtures/mysql.000002"),
        include_str!("../fixtures/mysql.000002.txt"),
    ),
];
pub const NEXT: [(&[u8], &str); 3] = [
    (
        include_bytes!("../fixtures/mariadb.000003"),
        include_str!("../fixtures/mariadb.000003.txt"),
    ),
    (
        include_bytes!("../fixtures/mariadb-11.000003"),
        include_str!("../fixtures/mariadb-11.000003.txt"),
    ),
    (
        include_bytes!("../fixtures/mysql.000003"),
        include_str!("../fixtures/mysql.000003.txt"),
    ),
];

/// The events of a file.
pub fn events(mut file: &[u8]) -> Vec<Vec<u8>> {
    assert_eq!(file[..4], MAGIC);
    file = &file[4..];
    let mut events = Vec::new();
    while !file.is_empty() {
        let size = Header::parse(file).unwrap().size as usize;
        events.push(file[..size].to_vec());
        file = &file[size..];
    }
    events
}

/// What a server sends when it goes over to a file.
pub fn rotation(file: &str) -> Vec<u8> {
    let size = HEADER + 8 + file.len() + 4;
    let mut event = vec![0, 0, 0, 0, 4, 1, 0, 0, 0];
    event.extend_from_slice(&u32::try_from(size).unwrap().to_le_bytes());
    event.extend_from_slice(&[0, 0, 0, 0, 0x20, 0, 4, 0, 0, 0, 0, 0, 0, 0]);
    event.extend_from_slice(file.as_bytes());
    let sum = crc(&event);
    event.extend_from_slice(&sum.to_le_bytes());
    event
}

/// CRC-32 bit by bit, as IEEE 802.3 has it.
pub fn crc(bytes: &[u8]) -> u32 {
    let mut sum = u32::MAX;
    for byte in bytes {
        sum ^= u32::from(*byte);
        for _ in 0..8 {
            sum = (sum >> 1) ^ (0xedb8_8320 & (sum & 1).wrapping_neg());
        }
    }
    !sum
}

#[derive(Default)]
pub struct Kept {
    pub segments: Vec<(Segment, Vec<u8>)>,
    pub open: Option<(String, u64, Vec<u8>)>,
    pub abandoned: usize,
    pub largest: usize,
}

impl Sink for Kept {
    fn begin(&mut self, file: &str, from: u64) -> io::Result<()> {
        assert!(self.open.is_none());
        self.open = Some((file.to_owned(), from, Vec::new()));
        Ok(())
    }
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.largest = self.largest.max(bytes.len());
        self.open.as_mut().unwrap().2.extend_from_slice(bytes);
        Ok(())
    }
    fn end(&mut self, segment: &Segment) -> io::Result<()> {
        let (file, from, bytes) = self.open.take().unwrap();
        assert_eq!((&file, from), (&segment.file, segment.from));
        assert_eq!(segment.to - segment.from, bytes.len() as u64);
        assert_eq!(Segment::read(&segment.manifest()).unwrap(), *segment);
        self.segments.push((segment.clone(), bytes));
        Ok(())
    }
    fn abandon(&mut self) {
        self.open.take().unwrap();
        self.abandoned += 1;
    }
}

pub fn cut(bytes: u64) -> Cut {
    let start = Start {
        file: "bin.000002".into(),
        stored: None,
        gtids: None,
        ended: None,
    };
    let limits = Limits {
        bytes,
        ..Limits::default()
    };
    Cut::new(start, None, Identity::default(), Link::First, limits)
}

/// Gives events in parts of this size.
pub fn feed(cut: &mut Cut, sink: &mut Kept, events: &[Vec<u8>], part: usize) -> Result<(), Stop> {
    for event in events {
        let mut rest = event.as_slice();
        while !rest.is_empty() {
            // The first has the header.
            let first = rest.len() == event.len();
            let n = part.max(if first { HEADER } else { 1 }).min(rest.len());
            cut.part(&rest[..n], n == rest.len(), Duration::ZERO, sink)?;
            rest = &rest[n..];
        }
    }
    Ok(())
}

pub fn sequence(index: usize) -> Vec<Vec<u8>> {
    let mut all = vec![rotation("bin.000002")];
    all.extend(events(FILES[index].1));
    all.push(rotation("bin.000003"));
    all.extend(events(NEXT[index].0));
    all
}

/// Where transactions begin, by the server's own program: where an event begins whose line says GTID.
pub fn begins(text: &str) -> BTreeSet<u64> {
    let mut found = BTreeSet::new();
    let mut at = 0;
    for line in text.lines() {
        if let Some(position) = line.strip_prefix("# at ") {
            at = position.parse().unwrap();
        } else if line.contains("\tGTID") {
            found.insert(at);
        }
    }
    found
}

/// The GTIDs in order, by the same.
pub fn gtids(text: &str) -> Vec<String> {
    let of_line = |line: &str| {
        if let Some((_, gtid)) = line.split_once("\tGTID ") {
            return gtid.split(' ').next().map(str::to_owned);
        }
        let gtid = line.strip_prefix("SET @@SESSION.GTID_NEXT= '")?;
        let gtid = gtid.split('\'').next()?;
        (gtid != "AUTOMATIC").then(|| gtid.to_owned())
    };
    text.lines().filter_map(of_line).collect()
}
