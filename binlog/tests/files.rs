//! Files that real servers wrote (MariaDB 10.11 and 11.8, MySQL 9.7), and what their own programs say is in them:
//! `NAME.txt` has the lines of mariadb-binlog and mysqlbinlog that tell where events begin and end, and GTIDs.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "tests"
)]

mod common;

use std::collections::BTreeSet;
use std::time::Duration;

use binlog::event::Header;
use binlog::gtid::Gtids;
use binlog::reread::Reading;
use binlog::span::{Mark, Marker};
use binlog::{Cut, Fault, Identity, Limits, Link, Segment, Start, Stop, Stored};
use common::*;
use proptest::prelude::*;

#[test]
fn segments_are_whole_transactions_and_joined_the_file() {
    for (index, (name, file, text)) in FILES.iter().enumerate() {
        for part in [1, 7, 1 << 20] {
            let (mut cut, mut kept) = (cut(1), Kept::default());
            feed(&mut cut, &mut kept, &sequence(index), part).unwrap();
            assert!(!cut.finish(&mut kept).unwrap());
            let of = |file: &str| {
                let own = kept.segments.iter().filter(|(s, _)| s.file == file);
                own.flat_map(|(_, bytes)| bytes.clone()).collect::<Vec<_>>()
            };
            assert_eq!(of("bin.000002"), *file, "{name} in parts of {part}");
            assert_eq!(of("bin.000003"), NEXT[index].0, "{name}");
            // One transaction each.
            for (text, file) in [(*text, "bin.000002"), (NEXT[index].1, "bin.000003")] {
                let own = || kept.segments.iter().filter(|(s, _)| s.file == file);
                let found: BTreeSet<u64> = own()
                    .filter(|(s, _)| s.transactions > 0)
                    .map(|(s, _)| s.from)
                    .collect();
                assert_eq!(found, begins(text), "{name}");
                let count: u64 = own().map(|(s, _)| s.transactions).sum();
                assert_eq!(count, gtids(text).len() as u64);
                // Each puts its GTID in.
                let transactions = own().filter(|(s, _)| s.transactions > 0);
                for ((segment, _), gtid) in transactions.zip(gtids(text)) {
                    let gtid = gtid.parse().unwrap();
                    assert!(
                        segment.after.contains(&gtid) && !segment.before.contains(&gtid),
                        "{gtid}"
                    );
                }
            }
            // What the second file says was before it.
            let (begins, _) = kept
                .segments
                .iter()
                .find(|(s, _)| s.file == "bin.000003")
                .unwrap();
            let said = match name {
                &"mysql" => "89a48659-ebf9-11f1-91f9-02fc00000001:1-11:tag_a:1".to_owned(),
                _ => NEXT[index]
                    .1
                    .lines()
                    .skip_while(|line| !line.contains("Gtid list ["))
                    .take_while(|line| !line.starts_with("# at"))
                    .filter_map(|line| line.rsplit(['[', ' ']).next())
                    .map(|gtid| gtid.trim_end_matches(']'))
                    .collect(),
            };
            let wanted = match begins.before {
                Gtids::Mysql(_) => Gtids::Mysql(said.parse().unwrap()),
                Gtids::Mariadb(_) => Gtids::Mariadb(said.parse().unwrap()),
            };
            assert_eq!(begins.before, wanted);
            // Each names the one before it.
            for pair in kept.segments.windows(2) {
                let previous = pair[0].0.digest();
                assert_eq!(pair[1].0.link, Link::Follows { previous });
            }
        }
    }
}

/// Where transactions begin and end in a file that is read again, with their GTIDs.
#[test]
fn transactions_of_a_stored_file_are_told_apart() {
    for (index, (name, _, text)) in FILES.iter().enumerate() {
        let (mut cut, mut kept) = (cut(u64::MAX), Kept::default());
        feed(&mut cut, &mut kept, &sequence(index), 1 << 20).unwrap();
        cut.finish(&mut kept).unwrap();
        let (segment, bytes) = &kept.segments[0];
        assert_eq!(segment.file, "bin.000002");
        for part in [1, 9, 1 << 20] {
            let mut reading = Reading::new(segment).unwrap();
            let mut marker = Marker::default();
            let (mut found, mut names, mut whole) = (BTreeSet::new(), vec![], vec![]);
            for piece in bytes.chunks(part) {
                reading
                    .feed(piece, &mut |check, ended| {
                        marker.mark(check, ended, &mut |mark| match mark {
                            Mark::Begins { position, gtid } => {
                                found.insert(position);
                                names.extend(gtid.map(ToString::to_string));
                            }
                            Mark::Ends(transaction) => whole.push(transaction),
                            Mark::Outside { .. } => {}
                        });
                    })
                    .unwrap();
            }
            reading.end().unwrap();
            assert_eq!(found, begins(text), "{name}");
            let wanted: Vec<String> = gtids(text).iter().map(ToString::to_string).collect();
            assert_eq!(names, wanted, "{name}");
            // Each ends before the next begins, and its times are those of the segment.
            assert!(whole.windows(2).all(|pair| pair[0].to <= pair[1].from));
            let starts: BTreeSet<u64> = whole.iter().map(|t| t.from).collect();
            assert_eq!(starts, found);
            assert_eq!(whole.iter().map(|t| t.last).max(), Some(segment.last));
        }
    }
}

#[test]
fn reading_goes_on_behind_what_was_stored() {
    for index in 0..FILES.len() {
        let all = sequence(index);
        let (mut whole, mut kept) = (cut(1), Kept::default());
        feed(&mut whole, &mut kept, &all, 1 << 20).unwrap();
        whole.finish(&mut kept).unwrap();
        for (at, (last, _)) in kept.segments.iter().enumerate() {
            let file = if last.file == "bin.000002" {
                FILES[index].1
            } else {
                NEXT[index].0
            };
            // The server sends the file's description first, changed to be of no place, then the event asked for.
            let mut sent = vec![rotation(&last.file)];
            let own = events(file);
            let mut first = own[0].clone();
            first[13..17].fill(0);
            let end = first.len() - 4;
            let sum = crc(&first[..end]);
            first[end..].copy_from_slice(&sum.to_le_bytes());
            sent.push(first);
            let mut position = 4;
            for event in own {
                if position >= last.last_event.position {
                    sent.push(event.clone());
                }
                position += event.len() as u64;
            }
            if last.file == "bin.000002" {
                sent.push(rotation("bin.000003"));
                sent.extend(events(NEXT[index].0));
            }
            let start = || Start {
                file: last.file.clone(),
                stored: Some(Stored {
                    created: last.created,
                    last: last.last_event,
                }),
                gtids: Some(last.after.clone()),
                ended: None,
            };
            let link = Link::Follows {
                previous: last.digest(),
            };
            let limits = Limits {
                bytes: 1,
                ..Limits::default()
            };
            let mut cut = Cut::new(start(), None, Identity::default(), link.clone(), limits);
            let mut rest = Kept::default();
            feed(&mut cut, &mut rest, &sent, 1 << 20).unwrap();
            cut.finish(&mut rest).unwrap();
            assert!(cut.is_joined());
            // The file that follows is not known yet where a file's last event was stored alone.
            let segments = |kept: &[(Segment, Vec<u8>)]| {
                kept.iter()
                    .map(|(s, b)| (s.from, s.to, b.clone(), s.after.clone()))
                    .collect::<Vec<_>>()
            };
            assert_eq!(segments(&rest.segments), segments(&kept.segments[at + 1..]));
            // Another file of the same name, begun at another moment or with another event there, is not taken for it.
            for other in [
                Stored {
                    created: last.created + 1,
                    last: last.last_event,
                },
                Stored {
                    created: last.created,
                    last: binlog::Anchor {
                        sum: last.last_event.sum ^ 1,
                        ..last.last_event
                    },
                },
            ] {
                let start = Start {
                    stored: Some(other),
                    ..start()
                };
                let mut cut = Cut::new(start, None, Identity::default(), link.clone(), limits);
                let mut none = Kept::default();
                match feed(&mut cut, &mut none, &sent, 1 << 20) {
                    Err(Stop::Broken(e)) => assert_eq!(e.fault, Fault::Replaced),
                    other => panic!("{other:?}"),
                }
                cut.finish(&mut none).unwrap();
                assert!(none.segments.is_empty() && !cut.is_joined());
            }
        }
    }
}

#[test]
fn no_altered_bit_passes() {
    for index in 0..FILES.len() {
        let good = sequence(index);
        for event in 1..good.len() {
            for byte in 0..good[event].len() {
                let mut bad = good.clone();
                bad[event][byte] ^= 1 << (byte % 8);
                let (mut cut, mut kept) = (cut(u64::MAX), Kept::default());
                assert!(
                    feed(&mut cut, &mut kept, &bad, 1 << 20).is_err(),
                    "{} {event} {byte}: {:?}",
                    FILES[index].0,
                    Header::parse(&good[event]),
                );
                // What was whole before it is kept, and is what the files hold.
                cut.finish(&mut kept).unwrap();
                for (segment, bytes) in &kept.segments {
                    let file = if segment.file == "bin.000002" {
                        FILES[index].1
                    } else {
                        NEXT[index].0
                    };
                    let (from, to) = (segment.from as usize, segment.to as usize);
                    assert_eq!(bytes, &file[from..to]);
                }
            }
        }
    }
}

#[test]
fn no_missing_event_passes() {
    for (index, (name, ..)) in FILES.iter().enumerate() {
        let good = sequence(index);
        // Without the last event the log is only shorter; the first is said again.
        for event in 1..good.len() - 1 {
            let mut bad = good.clone();
            let gone = bad.remove(event);
            let (mut cut, mut kept) = (cut(u64::MAX), Kept::default());
            let outcome = feed(&mut cut, &mut kept, &bad, 1 << 20);
            // The last event of a file only says that the next one follows: a server that was killed did not write it.
            let last = gone[4] == 4 && gone[17] & 0x20 == 0;
            assert_eq!(outcome.is_ok(), last, "{name} {event}: {outcome:?}");
        }
    }
}

/// A transaction that is larger than what is held in memory is alone in its segment, and goes out as it comes.
#[test]
fn a_large_transaction_is_whole_or_not_there() {
    let file = FILES[0].1;
    let own = events(file);
    // A transaction of rows is made longer: [`HELD`](binlog) is 1 MiB.
    let rows = own.iter().position(|e| e[4] == 23).unwrap();
    let mut events = own.clone();
    events[rows].truncate(own[rows].len() - 4);
    events[rows].extend(std::iter::repeat_n(b'x', 9 << 20));
    events[rows].extend([0; 4]);
    let mut position = 4_u32;
    for event in &mut events {
        let size = u32::try_from(event.len()).unwrap();
        position += size;
        event[9..13].copy_from_slice(&size.to_le_bytes());
        event[13..17].copy_from_slice(&position.to_le_bytes());
        let end = event.len() - 4;
        let sum = crc(&event[..end]);
        event[end..].copy_from_slice(&sum.to_le_bytes());
    }
    let mut sent = vec![rotation("bin.000002")];
    sent.extend(events.clone());
    let (mut cut1, mut kept) = (cut(u64::MAX), Kept::default());
    feed(&mut cut1, &mut kept, &sent, 1 << 18).unwrap();
    cut1.finish(&mut kept).unwrap();
    // What is before it, and the rest, which it begins.
    assert_eq!(kept.segments.len(), 2);
    assert!(kept.largest < 2 << 20);
    let joined: Vec<u8> = kept.segments.iter().flat_map(|(_, b)| b.clone()).collect();
    assert_eq!(joined[4..], events.concat());
    // Cut off or altered within it, all before it is there and nothing of it.
    for alter in [false, true] {
        let mut bad = sent[..=rows + 1].to_vec();
        if alter {
            bad[rows + 1][5 << 20] ^= 1;
        }
        let (mut cut2, mut part) = (cut(u64::MAX), Kept::default());
        assert_eq!(feed(&mut cut2, &mut part, &bad, 1 << 18).is_err(), alter);
        assert!(cut2.finish(&mut part).unwrap());
        assert_eq!(part.abandoned, 1);
        assert_eq!(part.segments.len(), 1);
        assert_eq!(part.segments[0].1, kept.segments[0].1);
    }
}

#[test]
fn a_segment_is_closed_by_its_age() {
    let limits = Limits {
        bytes: u64::MAX,
        age: Duration::from_secs(10),
    };
    let start = Start {
        file: "bin.000002".into(),
        stored: None,
        gtids: None,
        ended: None,
    };
    let mut cut = Cut::new(start, None, Identity::default(), Link::First, limits);
    let mut kept = Kept::default();
    // An event a second.
    let mut ended = Vec::new();
    for (second, event) in (0..).zip(sequence(2)) {
        let now = Duration::from_secs(second);
        cut.part(&event, true, now, &mut kept).unwrap();
        if kept.segments.len() > ended.len() {
            ended.push(second);
        }
    }
    assert!(ended.len() > 3);
    // The first byte of one comes with the event behind the last of the one before; the end of a file closes too.
    let begins = std::iter::once(1).chain(ended.iter().map(|e| e + 1));
    for ((begin, end), (segment, _)) in begins.zip(&ended).zip(&kept.segments) {
        assert!(end - begin >= 10 || segment.next.is_some(), "{begin} {end}");
        assert!(begins_at_a_transaction(segment));
    }
}

fn begins_at_a_transaction(segment: &Segment) -> bool {
    let text = if segment.file == "bin.000002" {
        FILES[2].2
    } else {
        NEXT[2].1
    };
    segment.from == 0 || segment.transactions == 0 || begins(text).contains(&segment.from)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    /// Whatever comes is refused or taken, in bounded memory; nothing panics.
    #[test]
    fn nothing_that_comes_panics(index in 0..3_usize, flips in proptest::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<u8>()), 1..5), part in 1..300_usize) {
        let mut events = sequence(index);
        for (event, byte, value) in flips {
            let event = event.get(&events).clone();
            let at = byte.index(event.len());
            let place = events.iter().position(|e| *e == event).unwrap();
            let changed = &mut events[place];
            changed[at] = value;
            // With a checksum that fits, so that what it says is read.
            let end = changed.len() - 4;
            let sum = crc(&changed[..end]);
            changed[end..].copy_from_slice(&sum.to_le_bytes());
        }
        let (mut cut, mut kept) = (cut(100), Kept::default());
        let _ = feed(&mut cut, &mut kept, &events, part);
        cut.finish(&mut kept).unwrap();
    }
}
