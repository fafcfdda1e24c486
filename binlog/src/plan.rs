//! Where to read next: from what was stored last and what the server has now. Pure.

use crate::chain::Base;
use crate::check::{Start, Stored};
use crate::event::Family;
use crate::fault::{Break, Fault};
use crate::gtid::{Gtids, Set};
use crate::segment::{Cause, Identity, Segment, is_successor, number};

/// A file of a server's log, as SHOW BINARY LOGS lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its name.
    pub name: String,
    /// Its bytes.
    pub size: u64,
    /// It is encrypted on the server's disk (MySQL says so).
    pub encrypted: bool,
}

/// What a server has now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// What it calls itself.
    pub identity: Identity,
    /// MySQL or MariaDB.
    pub family: Family,
    /// Its files, the oldest first; empty where it writes no log.
    pub files: Vec<File>,
    /// The transactions that it holds.
    pub executed: Gtids,
    /// Those of MySQL that are in no file of its log any more.
    pub purged: Set,
}

/// What reading as planned has met in this run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Met {
    /// The log is not the one that was stored.
    Replaced,
    /// The server does not come to the point to join at.
    NotJoined,
    /// The log is not whole there, read twice.
    Broken(Break),
}

/// Where to read next.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Plan {
    /// Nowhere: the server writes no log.
    Off,
    /// Nowhere: the file is encrypted.
    Encrypted(String),
    /// Nowhere yet: nothing can follow what was stored until the server begins its next file.
    Wait,
    /// From the beginning of this file, for nothing was stored.
    Begin(String),
    /// Behind what was stored: in the same file, or at the beginning of the next, whose list of GTIDs is compared.
    Continue(Start),
    /// In another log, where it holds just what the stored one ended with. The files in which that may be, the newest first.
    Join(Vec<String>),
    /// From the beginning of this file; between it and what was stored events may be missing.
    Gap {
        /// Why.
        cause: Cause,
        /// The file.
        file: String,
    },
}

/// Where reading begins as long as nothing is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum First<'a> {
    /// With the oldest file that the server has.
    Oldest,
    /// With the file in which this backup lies, so that it can be gone on from; with the newest where the server does not have
    /// it any more, or is another one.
    Base(&'a Base),
    /// With the newest file.
    Newest,
}

/// Where to read next. `last` is the segment that was stored last, `first` where to begin if none was.
#[must_use]
pub fn plan(last: Option<&Segment>, first: First<'_>, met: Option<&Met>, server: &Server) -> Plan {
    let (Some(first_file), Some(newest)) = (server.files.first(), server.files.last()) else {
        return Plan::Off;
    };
    let plan = match last {
        None => Plan::Begin(match first {
            First::Oldest => first_file.name.clone(),
            // What is not whole there is not met twice.
            First::Base(base) if met.is_none() => {
                holder(base, server).unwrap_or(newest).name.clone()
            }
            First::Base(_) | First::Newest => newest.name.clone(),
        }),
        Some(last) => behind(last, met, server, first_file),
    };
    let file = match &plan {
        Plan::Begin(file) | Plan::Gap { file, .. } => Some(file),
        Plan::Continue(start) => Some(&start.file),
        _ => None,
    };
    let from = file.and_then(|name| server.files.iter().position(|f| f.name == *name));
    let read = server.files.get(from.unwrap_or(0)..).unwrap_or_default();
    match read.iter().find(|file| file.encrypted) {
        Some(file) => Plan::Encrypted(file.name.clone()),
        None => plan,
    }
}

/// The file in which a backup lies, if all from there on can be read. That it is the very file shows when the log is replayed.
fn holder<'a>(base: &Base, server: &'a Server) -> Option<&'a File> {
    let mut same = server
        .files
        .iter()
        .skip_while(|file| file.name != base.file);
    let file = same.clone().next()?;
    let readable = !same.any(|file| file.encrypted);
    let known = base.gtids.as_ref();
    let fits = server.identity.is(&base.server)
        && file.size >= base.position
        && known.is_none_or(|gtids| server.executed.covers(gtids));
    (readable && fits).then_some(file)
}

fn behind(last: &Segment, met: Option<&Met>, server: &Server, oldest: &File) -> Plan {
    let same = server.identity.is(&last.server);
    let gap = |cause| Plan::Gap {
        cause,
        file: oldest.name.clone(),
    };
    let another = || {
        if same {
            Cause::Reset
        } else {
            Cause::OtherServer
        }
    };
    match met {
        Some(Met::Broken(at)) => return around(at, server),
        Some(Met::NotJoined) => return gap(another()),
        Some(Met::Replaced) => return gap(another()),
        None => {}
    }
    if !same {
        return join(last, server).unwrap_or_else(|| gap(Cause::OtherServer));
    }
    let begins = |file: &str| {
        Plan::Continue(Start {
            file: file.to_owned(),
            stored: None,
            gtids: Some(last.after.clone()),
            ended: last.ended,
        })
    };
    let at = server.files.iter().position(|file| file.name == last.file);
    let Some(at) = at else {
        // Whether the file is gone because it is old, or because the log was begun anew.
        let numbers = (number(&last.file), number(&oldest.name));
        let (Some((base, stored)), Some((oldest_base, first))) = numbers else {
            return gap(Cause::Reset);
        };
        if base != oldest_base || first < stored {
            return gap(Cause::Reset);
        }
        // All of the file was stored: the server said that this one follows, or this one says that nothing is missing.
        let told = last.next.as_deref() == Some(&oldest.name);
        if told || (is_successor(&last.file, &oldest.name) && !last.after.is_empty()) {
            return begins(&oldest.name);
        }
        return gap(Cause::Purged);
    };
    if server.files[at].size < last.to {
        return gap(Cause::Reset);
    }
    if u32::try_from(last.last_event.position).is_ok() {
        return Plan::Continue(Start {
            file: last.file.clone(),
            stored: Some(Stored {
                created: last.created,
                last: last.last_event,
            }),
            gtids: Some(last.after.clone()),
            ended: last.ended,
        });
    }
    // No server is asked for a place beyond 4 GiB: the protocol has no room for it.
    match server.files.get(at + 1) {
        None => Plan::Wait,
        Some(next) if last.after.is_empty() && last.next.is_none() => Plan::Gap {
            cause: Cause::Broken,
            file: next.name.clone(),
        },
        Some(next) => begins(&next.name),
    }
}

/// Another server's log may go on where the stored one ended: it holds all of it, and has not removed more than that. One and
/// the same server counts from the beginning again where its log is begun anew, so that its own GTIDs vouch for nothing.
fn join(last: &Segment, server: &Server) -> Option<Plan> {
    let known = !last.after.is_empty() && server.executed.covers(&last.after);
    let kept = match &last.after {
        Gtids::Mysql(set) => set.covers(&server.purged),
        Gtids::Mariadb(_) => true,
    };
    let files = server.files.iter().rev().map(|file| file.name.clone());
    (known && kept).then(|| Plan::Join(files.collect()))
}

/// Behind a place where the log is not whole.
fn around(broken: &Break, server: &Server) -> Plan {
    let at = server.files.iter().position(|f| f.name == broken.file);
    // Where files do not fit together, each by itself may be whole.
    let itself = matches!(broken.fault, Fault::Gtids { .. } | Fault::Twice(_))
        || matches!(broken.fault, Fault::Successor { .. });
    let file = match (at, itself, &broken.fault) {
        (_, _, Fault::Encrypted) => return Plan::Encrypted(broken.file.clone()),
        (Some(at), true, Fault::Gtids { .. }) => server.files.get(at),
        (Some(at), _, _) => server.files.get(at + 1),
        (None, _, _) => server.files.first(),
    };
    match file {
        Some(file) => Plan::Gap {
            cause: Cause::Broken,
            file: file.name.clone(),
        },
        None => Plan::Wait,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::{Anchor, Link};

    const UUID: &str = "89a48659-ebf9-11f1-91f9-02fc00000001";

    fn identity(name: &str) -> Identity {
        Identity {
            hostname: name.into(),
            port: "3306".into(),
            datadir: "/d/".into(),
            ..Identity::default()
        }
    }

    fn last(file: &str, to: u64, after: Gtids) -> Segment {
        Segment {
            server: identity("one"),
            file: file.into(),
            from: 0,
            to,
            created: 7,
            next: None,
            description: String::new(),
            last_event: Anchor {
                position: to - 31,
                sum: 9,
            },
            before: after.clone(),
            after,
            transactions: 1,
            first: 7,
            last: 8,
            ended: None,
            incident: false,
            sha256: String::new(),
            link: Link::First,
        }
    }

    fn server(name: &str, files: &[(&str, u64)], executed: Gtids) -> Server {
        let files = files.iter().map(|(name, size)| File {
            name: (*name).into(),
            size: *size,
            encrypted: false,
        });
        Server {
            identity: identity(name),
            family: Family::Mariadb,
            files: files.collect(),
            executed,
            purged: Set::default(),
        }
    }

    fn state(text: &str) -> Gtids {
        Gtids::Mariadb(text.parse().unwrap())
    }

    fn set(numbers: &str) -> Gtids {
        Gtids::Mysql(format!("{UUID}:{numbers}").parse().unwrap())
    }

    /// A plan in few words.
    fn words(plan: &Plan) -> String {
        match plan {
            Plan::Continue(start) => format!("continue {} {}", start.file, start.position()),
            Plan::Gap { cause, file } => format!("gap {cause:?} {file}"),
            Plan::Join(files) => format!("join {}", files.join(" ")),
            Plan::Begin(file) => format!("begin {file}"),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn where_to_read_next() {
        let s = || state("0-1-50");
        let stored = || last("bin.000005", 500, s());
        let ended = |next: &str, after| Segment {
            next: Some(next.into()),
            ..last("bin.000005", 500, after)
        };
        let far = last("bin.000005", (1 << 32) + 100, s());
        let two = [("bin.000005", 900), ("bin.000006", 300)];
        let none: &[(&str, u64)] = &[];
        let table = [
            // The same log goes on.
            (
                stored(),
                "one",
                &[("bin.000005", 500)][..],
                s(),
                "continue bin.000005 469",
            ),
            (
                stored(),
                "one",
                &two,
                state("0-1-60"),
                "continue bin.000005 469",
            ),
            (
                ended("bin.000006", s()),
                "one",
                &two,
                s(),
                "continue bin.000005 469",
            ),
            // The file is gone, and all of it was stored.
            (
                ended("bin.000006", s()),
                "one",
                &two[1..],
                s(),
                "continue bin.000006 4",
            ),
            (
                ended("bin.000006", set("1-5")),
                "one",
                &two[1..],
                s(),
                "continue bin.000006 4",
            ),
            (stored(), "one", &two[1..], s(), "continue bin.000006 4"),
            // Nothing says that all of it was.
            (
                last("bin.000005", 500, Gtids::Mysql(Set::default())),
                "one",
                &two[1..],
                s(),
                "gap Purged bin.000006",
            ),
            (
                stored(),
                "one",
                &[("bin.000007", 99)],
                s(),
                "gap Purged bin.000007",
            ),
            (
                ended("bin.000006", s()),
                "one",
                &[("bin.000007", 99)],
                s(),
                "gap Purged bin.000007",
            ),
            // Begun anew, shorter, under another name.
            (
                stored(),
                "one",
                &[("bin.000001", 99)],
                state(""),
                "gap Reset bin.000001",
            ),
            (
                stored(),
                "one",
                &[("bin.000001", 99)],
                state("0-1-3"),
                "gap Reset bin.000001",
            ),
            (
                stored(),
                "one",
                &[("bin.000005", 499)],
                state("0-1-3"),
                "gap Reset bin.000005",
            ),
            (
                stored(),
                "one",
                &[("bin.000005", 499), ("bin.000006", 99)],
                s(),
                "gap Reset bin.000005",
            ),
            (
                stored(),
                "one",
                &[("log.000001", 99)],
                s(),
                "gap Reset log.000001",
            ),
            (
                stored(),
                "one",
                &[("log.000001", 99)],
                state("3-1-9"),
                "gap Reset log.000001",
            ),
            (stored(), "one", none, s(), "Off"),
            // Another server.
            (
                stored(),
                "two",
                &two,
                state("0-1-51,4-1-1"),
                "join bin.000006 bin.000005",
            ),
            (
                stored(),
                "two",
                &two,
                state("0-1-49"),
                "gap OtherServer bin.000005",
            ),
            (
                stored(),
                "two",
                &two,
                state("1-1-99"),
                "gap OtherServer bin.000005",
            ),
            (
                last("bin.000005", 500, set("1-5")),
                "two",
                &two,
                set("1-4:6-9"),
                "gap OtherServer bin.000005",
            ),
            (
                last("bin.000005", 500, set("1-5")),
                "two",
                &two,
                set("1-9"),
                "join bin.000006 bin.000005",
            ),
            // Without GTIDs nothing vouches for another server.
            (
                last("bin.000005", 500, Gtids::Mysql(Set::default())),
                "two",
                &two,
                set("1-9"),
                "gap OtherServer bin.000005",
            ),
            // Beyond what the protocol can say.
            (far.clone(), "one", &[("bin.000005", 1 << 33)], s(), "Wait"),
            (
                far,
                "one",
                &[("bin.000005", 1 << 33), ("bin.000006", 9)],
                s(),
                "continue bin.000006 4",
            ),
        ];
        for (stored, name, files, executed, wanted) in table {
            let server = server(name, files, executed);
            let found = plan(Some(&stored), First::Newest, None, &server);
            assert_eq!(words(&found), wanted, "{stored:?} {server:?}");
        }
    }

    #[test]
    fn what_was_met_is_gone_around() {
        let two = [("bin.000005", 900), ("bin.000006", 300)];
        let broken = |file: &str, fault| {
            Met::Broken(Break {
                file: file.into(),
                position: 77,
                fault,
            })
        };
        let gtids = || Fault::Gtids {
            begins: String::new(),
            ended: String::new(),
        };
        let table = [
            (Met::Replaced, "one", state("0-1-3"), "gap Reset bin.000005"),
            (
                Met::Replaced,
                "one",
                state("0-1-70"),
                "gap Reset bin.000005",
            ),
            (
                Met::NotJoined,
                "one",
                state("0-1-70"),
                "gap Reset bin.000005",
            ),
            (
                Met::NotJoined,
                "two",
                state("0-1-70"),
                "gap OtherServer bin.000005",
            ),
            (
                broken("bin.000005", Fault::Checksum),
                "one",
                state("0-1-70"),
                "gap Broken bin.000006",
            ),
            (
                broken("bin.000006", Fault::Checksum),
                "one",
                state("0-1-70"),
                "Wait",
            ),
            (
                broken("bin.000006", gtids()),
                "one",
                state("0-1-70"),
                "gap Broken bin.000006",
            ),
            (
                broken("bin.000006", Fault::Encrypted),
                "one",
                state(""),
                "Encrypted(\"bin.000006\")",
            ),
        ];
        for (met, name, executed, wanted) in table {
            let server = server(name, &two, executed);
            let stored = last("bin.000005", 500, state("0-1-50"));
            let found = plan(Some(&stored), First::Newest, Some(&met), &server);
            assert_eq!(words(&found), wanted, "{met:?}");
        }
    }

    #[test]
    fn the_first_time() {
        let mut server = server("one", &[("b.1", 9), ("b.2", 9)], state(""));
        assert_eq!(
            plan(None, First::Newest, None, &server),
            Plan::Begin("b.2".into())
        );
        assert_eq!(
            plan(None, First::Oldest, None, &server),
            Plan::Begin("b.1".into())
        );
        // MySQL says which files are encrypted; those that are not read do not matter.
        server.files[0].encrypted = true;
        assert_eq!(
            plan(None, First::Newest, None, &server),
            Plan::Begin("b.2".into())
        );
        assert_eq!(
            plan(None, First::Oldest, None, &server),
            Plan::Encrypted("b.1".into())
        );
    }

    /// A backup that was made before the first pull is gone on from, if the server still has what came behind it.
    #[test]
    fn the_first_time_behind_a_backup() {
        type Row<'a> = (&'a str, &'a [(&'a str, u64)], &'a str, &'a str);
        let base = Base {
            server: identity("one"),
            file: "b.2".into(),
            position: 700,
            gtids: Some(state("0-1-50")),
            moment: 1,
            until: 2,
        };
        let all = [("b.1", 900), ("b.2", 900), ("b.3", 9)];
        let table: [Row<'_>; 7] = [
            ("one", &all, "0-1-50", "b.2"),
            ("one", &all, "0-1-90,4-1-1", "b.2"),
            ("one", &all[..2], "0-1-50", "b.2"),
            // Another server, one that lost its end, one that removed or began anew what came behind the backup.
            ("two", &all, "0-1-50", "b.3"),
            ("one", &all, "0-1-49", "b.3"),
            ("one", &all[2..], "0-1-50", "b.3"),
            ("one", &[("b.2", 699), ("b.3", 9)], "0-1-50", "b.3"),
        ];
        for (name, files, executed, begins) in table {
            let server = server(name, files, state(executed));
            let found = plan(None, First::Base(&base), None, &server);
            assert_eq!(words(&found), format!("begin {begins}"), "{server:?}");
        }
        let mut server = server("one", &all, state("0-1-50"));
        let met = Met::Replaced;
        let found = plan(None, First::Base(&base), Some(&met), &server);
        assert_eq!(
            words(&found),
            "begin b.3",
            "what was met there is not met again"
        );
        server.files[1].encrypted = true;
        let found = plan(None, First::Base(&base), None, &server);
        assert_eq!(words(&found), "begin b.3");
        let silent = Base {
            gtids: None,
            ..base
        };
        server.files[1].encrypted = false;
        server.executed = state("");
        let found = plan(None, First::Base(&silent), None, &server);
        assert_eq!(words(&found), "begin b.2");
    }

    #[test]
    fn what_mysql_has_purged_can_not_be_joined() {
        let stored = last("bin.000005", 500, set("1-5"));
        let mut server = server("two", &[("bin.000009", 9)], set("1-9"));
        let Gtids::Mysql(purged) = set("1-6") else {
            panic!()
        };
        server.purged = purged;
        let found = plan(Some(&stored), First::Newest, None, &server);
        assert_eq!(words(&found), "gap OtherServer bin.000009");
    }
}
