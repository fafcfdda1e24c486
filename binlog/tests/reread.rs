//! Segments of files that real servers wrote, read again: what was altered is named, and where backups and targets lie is what the
//! family's own program says.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "tests"
)]

mod common;

use binlog::Segment;
use binlog::chain::{Base, Target};
use binlog::reread::{Astray, Found, Reread};
use common::*;

/// Segments of both files of a family, of so many bytes.
fn segments(index: usize, bytes: u64) -> Vec<(Segment, Vec<u8>)> {
    let (mut cut, mut kept) = (cut(bytes), Kept::default());
    feed(&mut cut, &mut kept, &sequence(index), 1 << 20).unwrap();
    cut.finish(&mut kept).unwrap();
    kept.segments
}

fn reread(
    segments: &[(Segment, Vec<u8>)],
    from: u64,
    target: Option<Target>,
    part: usize,
) -> Result<Option<Found>, Astray> {
    let mut reread = Reread::new(from, None, target);
    // Of segments before it a plan knows that they are not needed.
    let needed = segments
        .iter()
        .skip_while(|(s, _)| s.to <= from && s.file == "bin.000002");
    for (segment, bytes) in needed {
        let mut reading = reread.begin(segment)?;
        for part in bytes.chunks(part) {
            reread.feed(&mut reading, part)?;
        }
        reread.end(reading)?;
    }
    Ok(reread.finish())
}

/// Where transactions end by the server's program: where the next event begins that is in none.
fn ends(text: &str) -> Vec<u64> {
    let ats = text.lines().filter_map(|line| line.strip_prefix("# at "));
    let ats: Vec<u64> = ats.map(|at| at.parse().unwrap()).collect();
    let begins = begins(text);
    let mut ends = vec![];
    for begin in &begins {
        // The first begin behind it, or what stands behind the last transaction.
        let next = begins.range(begin + 1..).next().copied();
        ends.push(next.unwrap_or_else(|| *ats.last().unwrap()));
    }
    ends
}

#[test]
fn a_target_is_found_where_the_servers_program_has_it() {
    for (index, (name, _, text)) in FILES.iter().enumerate() {
        let names = gtids(text);
        for bytes in [1, 700, 1 << 20] {
            let all = segments(index, bytes);
            for part in [3, 1 << 20] {
                let whole = reread(&all, all[0].0.to.min(4), None, part);
                // No transaction ends at 4.
                assert!(
                    matches!(whole, Err(Astray::NoPoint { position: 4, .. })),
                    "{whole:?}"
                );
            }
            let first = *begins(text).iter().next().unwrap();
            let found = reread(&all, first, Some(Target::Latest), 7)
                .unwrap()
                .unwrap();
            let count = names.len() + gtids(NEXT[index].1).len();
            assert_eq!(found.transactions, count as u64, "{name}");
            assert!(!found.met && found.end.gtids == all.last().unwrap().0.after);
            assert_eq!(found.end.position, all.last().unwrap().0.to);
            for (at, (gtid, begin)) in names.iter().zip(begins(text)).enumerate() {
                let gtid: binlog::gtid::Gtid = gtid.parse().unwrap();
                let found = reread(&all, first, Some(Target::BeforeGtid(gtid.clone())), 1 << 20);
                let found = found.unwrap().unwrap();
                // Events that are of no transaction may stand between.
                assert!(found.met && found.end.position <= begin, "{name} {gtid}");
                assert_eq!(
                    (found.transactions, found.end.gtids.contains(&gtid)),
                    (at as u64, false)
                );
                let with = reread(&all, first, Some(Target::Gtid(gtid.clone())), 1 << 20);
                let with = with.unwrap().unwrap();
                assert!(with.met && with.end.gtids.contains(&gtid), "{name} {gtid}");
                assert_eq!(with.transactions, at as u64 + 1);
                assert!(with.end.position > begin && with.end.position <= ends(text)[at]);
                // From behind it, it is in the backup; one segment holds all.
                if bytes == 1 << 20 {
                    let late = reread(&all, with.end.position, Some(Target::Gtid(gtid)), 1 << 20);
                    assert_eq!(late, Err(Astray::BeforeBase), "{name}");
                }
            }
        }
    }
}

/// Up to the moment of a later backup, wherever a transaction ends; a position within one, or other GTIDs, is none of its.
#[test]
fn what_a_later_backup_holds_ends_where_it_was_made() {
    for (index, (name, _, text)) in FILES.iter().enumerate() {
        for bytes in [1, 700, 1 << 20] {
            let mut all = segments(index, bytes);
            for (segment, _) in &mut all {
                segment.server.hostname = "db".into();
            }
            let first = *begins(text).iter().next().unwrap();
            let later = |position: u64, gtids| Base {
                server: all[0].0.server.clone(),
                file: "bin.000002".into(),
                position,
                gtids,
                moment: 0,
                until: u32::MAX,
            };
            let to = |base: Base| {
                // A plan ends with the segment that has it: where one ends and the next begins, it is the next.
                let in_file = |s: &Segment| s.file == base.file && base.position <= s.to;
                let within = |s: &Segment| in_file(s) && base.position < s.to;
                let last = all.iter().position(|(s, _)| within(s));
                let last = last.or_else(|| all.iter().position(|(s, _)| in_file(s)));
                let last = last.unwrap();
                reread(
                    &all[..=last],
                    first,
                    Some(Target::Backup(Box::new(base))),
                    64,
                )
            };
            for (at, end) in ends(text).into_iter().enumerate() {
                let found = to(later(end, None)).unwrap().unwrap();
                assert!(found.met, "{name} {end}");
                assert_eq!(
                    (found.end.position, found.transactions),
                    (end, at as u64 + 1),
                    "{name}"
                );
                let own = Some(found.end.gtids.clone());
                assert_eq!(to(later(end, own)).unwrap().unwrap(), found);
                assert!(matches!(
                    to(later(end - 1, None)),
                    Err(Astray::NoPoint { position, .. }) if position == end - 1
                ));
                let other = Some(all[0].0.before.clone()).filter(|g| !g.is_empty());
                if other.is_some() {
                    let astray = to(later(end, other));
                    assert!(
                        matches!(astray, Err(Astray::OtherGtids { .. })),
                        "{name} {astray:?}"
                    );
                }
            }
            let none = to(later(first, None)).unwrap().unwrap();
            assert_eq!((none.met, none.transactions), (true, 0));
        }
    }
}

#[test]
fn a_moment_ends_before_the_first_transaction_at_or_behind_it() {
    for (index, (name, _, text)) in FILES.iter().enumerate() {
        let all = segments(index, 700);
        let first = *begins(text).iter().next().unwrap();
        let last = all.iter().map(|(s, _)| s.last).max().unwrap();
        let behind = reread(&all, first, Some(Target::Moment(last + 1)), 1 << 20)
            .unwrap()
            .unwrap();
        assert!(!behind.met && behind.last <= last);
        let early = reread(&all, first, Some(Target::Moment(1)), 1 << 20)
            .unwrap()
            .unwrap();
        assert_eq!(
            (early.met, early.transactions, early.end.position),
            (true, 0, first),
            "{name}"
        );
        let mut before = 0;
        for moment in all[0].0.created..=last + 1 {
            let found = reread(&all, first, Some(Target::Moment(moment)), 1 << 20)
                .unwrap()
                .unwrap();
            assert!(
                found.last < moment && found.transactions >= before,
                "{name}"
            );
            before = found.transactions;
        }
        assert_eq!(before, behind.transactions);
    }
}

#[test]
fn what_was_altered_or_exchanged_is_named() {
    for (index, (name, _, text)) in FILES.iter().enumerate() {
        let all = segments(index, 700);
        let first = *begins(text).iter().next().unwrap();
        assert!(all.len() > 4);
        for (at, (segment, bytes)) in all.iter().enumerate() {
            // Each 13th byte.
            for byte in (0..bytes.len()).step_by(13) {
                let mut altered = all.clone();
                altered[at].1[byte] ^= 1 << (byte % 8);
                assert!(
                    reread(&altered, first, None, 64).is_err(),
                    "{name}: {byte} of {segment:?}"
                );
            }
            let mut short = all.clone();
            short[at].1.pop();
            assert!(matches!(
                reread(&short, first, None, 64),
                Err(Astray::Altered(..))
            ));
            let mut long = all.clone();
            long[at].1.push(0);
            assert!(matches!(
                reread(&long, first, None, 64),
                Err(Astray::Altered(..))
            ));
            let mut other = all.clone();
            other[at].1 = all[(at + 1) % all.len()].1.clone();
            assert!(matches!(
                reread(&other, first, None, 64),
                Err(Astray::Altered(..))
            ));
        }
    }
}
