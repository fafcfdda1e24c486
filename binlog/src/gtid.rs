//! Which transactions a log holds: sets of MySQL, with tags, and states of MariaDB, by domain.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::fault::Fault;
use crate::fields::{Fields, put_small};

/// Who gave a transaction of MySQL its number: a server, and the tag that was asked for (MySQL 8.3).
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    /// The server's UUID.
    pub uuid: [u8; 16],
    /// The tag; empty for none.
    pub tag: String,
}

/// A transaction's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gtid {
    /// Of MySQL.
    Mysql(Origin, u64),
    /// Of MariaDB: domain, server, number.
    Mariadb(u32, u32, u64),
}

impl fmt::Display for Gtid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mysql(origin, number) => {
                put_uuid(f, &origin.uuid)?;
                if !origin.tag.is_empty() {
                    write!(f, ":{}", origin.tag)?;
                }
                write!(f, ":{number}")
            }
            Self::Mariadb(domain, server, number) => write!(f, "{domain}-{server}-{number}"),
        }
    }
}

impl FromStr for Gtid {
    type Err = String;

    /// Reads one GTID as either family writes it.
    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.contains(':') {
            let set: Set = text.parse()?;
            let mut all = set.0.iter();
            if let (Some((origin, ranges)), None) = (all.next(), all.next())
                && let [(first, last)] = ranges.as_slice()
                && first == last
            {
                return Ok(Self::Mysql(origin.clone(), *first));
            }
        } else {
            let state: State = text.parse()?;
            if let [gtid] = state.position().as_slice() {
                return Ok(Self::Mariadb(gtid.0, gtid.1, gtid.2));
            }
        }
        Err(format!("{text:?} is not one GTID"))
    }
}

fn put_uuid(f: &mut fmt::Formatter<'_>, uuid: &[u8; 16]) -> fmt::Result {
    for (index, byte) in uuid.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            f.write_str("-")?;
        }
        write!(f, "{byte:02x}")?;
    }
    Ok(())
}

fn uuid(text: &str) -> Option<[u8; 16]> {
    let digits: Vec<u8> = text.bytes().filter(|b| *b != b'-').collect();
    if digits.len() != 32 || !text.is_ascii() {
        return None;
    }
    let mut uuid = [0; 16];
    for (byte, pair) in uuid.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(uuid)
}

/// A tag is a letter or underscore and up to 31 more, digits among them (MySQL's manual, "GTID Format").
fn tag(text: &str) -> Option<String> {
    let tag = text.to_ascii_lowercase();
    let mut letters = tag.bytes();
    let begins = letters
        .next()
        .is_some_and(|b| b.is_ascii_lowercase() || b == b'_');
    let goes_on = letters.all(|b| b.is_ascii_alphanumeric() || b == b'_');
    (begins && goes_on && tag.len() <= 32).then_some(tag)
}

/// A set of MySQL's GTIDs. Text and bytes are those of the server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Set(BTreeMap<Origin, Vec<(u64, u64)>>);

impl Set {
    /// Puts one in; false if it was there.
    pub fn add(&mut self, origin: &Origin, number: u64) -> bool {
        let Some(ranges) = self.0.get_mut(origin) else {
            self.0.insert(origin.clone(), vec![(number, number)]);
            return true;
        };
        // Most often the one that follows the last.
        if let Some(last) = ranges.last_mut()
            && last.1.checked_add(1) == Some(number)
        {
            last.1 = number;
            return true;
        }
        if contains(ranges, number) {
            return false;
        }
        add(ranges, number, number);
        true
    }

    /// True if it is in.
    #[must_use]
    pub fn contains(&self, origin: &Origin, number: u64) -> bool {
        self.0.get(origin).is_some_and(|r| contains(r, number))
    }

    /// True if all of the other are in.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        other.0.iter().all(|(origin, ranges)| {
            let own = self.0.get(origin).map(Vec::as_slice).unwrap_or_default();
            ranges
                .iter()
                .all(|(first, last)| own.iter().any(|(f, l)| f <= first && last <= l))
        })
    }

    /// Both together.
    #[must_use]
    pub fn with(&self, other: &Self) -> Self {
        let mut both = self.clone();
        for (origin, ranges) in &other.0 {
            let own = both.0.entry(origin.clone()).or_default();
            for (first, last) in ranges {
                add(own, *first, *last);
            }
        }
        both
    }

    /// True if nothing is in.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads the encoding of PREVIOUS_GTIDS_LOG_EVENT and COM_BINLOG_DUMP_GTID (MySQL's sql/rpl_gtid_set.cc).
    ///
    /// # Errors
    /// It is none.
    pub fn decode(bytes: &[u8]) -> Result<Self, Fault> {
        let mut fields = Fields(bytes);
        let head = fields.u64()?;
        let (tagged, count) = match head >> 56 {
            0 => (false, head),
            1 if head & 0xff == 1 => (true, head << 8 >> 16),
            _ => return Err(Fault::Format("a GTID set of another format")),
        };
        let mut set = Self::default();
        for _ in 0..count {
            let uuid = fields.array()?;
            let mut origin = Origin {
                uuid,
                tag: String::new(),
            };
            if tagged {
                let length = usize::try_from(fields.integer()?).unwrap_or(usize::MAX);
                let text = std::str::from_utf8(fields.take(length)?).unwrap_or("?");
                if !text.is_empty() {
                    origin.tag = tag(text).ok_or(Fault::Format("a GTID's tag is none"))?;
                }
            }
            let mut ranges = Vec::new();
            for _ in 0..fields.u64()? {
                // The end is the first that is not in.
                let (first, end) = (fields.u64()?, fields.u64()?);
                let behind = ranges.last().is_none_or(|(_, last)| *last < first);
                if first == 0 || end <= first || !behind {
                    return Err(Fault::Format("a GTID set is not in order"));
                }
                ranges.push((first, end - 1));
            }
            if ranges.is_empty() || set.0.insert(origin, ranges).is_some() {
                return Err(Fault::Format("a GTID set is not in order"));
            }
        }
        if fields.0.is_empty() {
            Ok(set)
        } else {
            Err(Fault::Format("a GTID set has more bytes than it says"))
        }
    }

    /// The same encoding.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let count = self.0.len() as u64;
        let tagged = self.0.keys().any(|origin| !origin.tag.is_empty());
        let head = if tagged {
            1 << 56 | count << 8 | 1
        } else {
            count
        };
        let mut out = head.to_le_bytes().to_vec();
        for (origin, ranges) in &self.0 {
            out.extend_from_slice(&origin.uuid);
            if tagged {
                put_small(&mut out, u8::try_from(origin.tag.len()).unwrap_or_default());
                out.extend_from_slice(origin.tag.as_bytes());
            }
            out.extend_from_slice(&(ranges.len() as u64).to_le_bytes());
            for (first, last) in ranges {
                out.extend_from_slice(&first.to_le_bytes());
                out.extend_from_slice(&last.saturating_add(1).to_le_bytes());
            }
        }
        out
    }
}

fn contains(ranges: &[(u64, u64)], number: u64) -> bool {
    let behind = ranges.partition_point(|(first, _)| *first <= number);
    behind > 0 && number <= ranges[behind - 1].1
}

/// Puts a range in; what meets becomes one.
fn add(ranges: &mut Vec<(u64, u64)>, first: u64, last: u64) {
    let from = ranges.partition_point(|(_, l)| l.saturating_add(1) < first);
    let to = ranges.partition_point(|(f, _)| *f <= last.saturating_add(1));
    let meets = ranges.get(from..to).unwrap_or_default();
    let joined = (
        meets.first().map_or(first, |(f, _)| (*f).min(first)),
        meets.last().map_or(last, |(_, l)| (*l).max(last)),
    );
    ranges.splice(from..to.max(from), [joined]);
}

impl fmt::Display for Set {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut before: Option<&[u8; 16]> = None;
        for (origin, ranges) in &self.0 {
            if before != Some(&origin.uuid) {
                if before.is_some() {
                    f.write_str(",")?;
                }
                put_uuid(f, &origin.uuid)?;
            }
            before = Some(&origin.uuid);
            if !origin.tag.is_empty() {
                write!(f, ":{}", origin.tag)?;
            }
            for (first, last) in ranges {
                write!(f, ":{first}")?;
                if last > first {
                    write!(f, "-{last}")?;
                }
            }
        }
        Ok(())
    }
}

impl FromStr for Set {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut set = Self::default();
        let bad = |part: &str| format!("{part:?} is no part of a set of GTIDs");
        for part in text.split(',').map(str::trim).filter(|p| !p.is_empty()) {
            let mut fields = part.split(':').map(str::trim);
            let mut origin = Origin {
                uuid: fields.next().and_then(uuid).ok_or_else(|| bad(part))?,
                tag: String::new(),
            };
            for field in fields {
                if !field.starts_with(|c: char| c.is_ascii_digit()) {
                    origin.tag = tag(field).ok_or_else(|| bad(field))?;
                    continue;
                }
                let (first, last) = field.split_once('-').unwrap_or((field, field));
                match (first.parse(), last.parse()) {
                    // MySQL's largest number is 2^63 - 2.
                    (Ok(first), Ok(last)) if 0 < first && first <= last && last < 1 << 63 => {
                        add(set.0.entry(origin.clone()).or_default(), first, last);
                    }
                    _ => return Err(bad(field)),
                }
            }
        }
        Ok(set)
    }
}

impl TryFrom<String> for Set {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Set> for String {
    fn from(set: Set) -> Self {
        set.to_string()
    }
}

/// What a MariaDB's log has seen: of each domain the last number of each server, and whose was last. Text as in
/// gtid_binlog_state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct State(BTreeMap<u32, Domain>);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Domain {
    last: u32,
    servers: BTreeMap<u32, u64>,
}

impl State {
    /// This transaction is the last of its domain now.
    pub fn add(&mut self, domain: u32, server: u32, number: u64) {
        let domain = self.0.entry(domain).or_default();
        domain.last = server;
        domain.servers.insert(server, number);
    }

    /// The last transaction of each domain: domain, server, number; what gtid_binlog_pos says.
    #[must_use]
    pub fn position(&self) -> Vec<(u32, u32, u64)> {
        let last = |(domain, seen): (&u32, &Domain)| {
            let number = *seen.servers.get(&seen.last)?;
            Some((*domain, seen.last, number))
        };
        self.0.iter().filter_map(last).collect()
    }

    /// True if each domain of the other has come at least as far here.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        let own: BTreeMap<u32, u64> = self.numbers();
        other
            .numbers()
            .iter()
            .all(|(domain, number)| own.get(domain).is_some_and(|n| n >= number))
    }

    fn numbers(&self) -> BTreeMap<u32, u64> {
        let numbers = self.position().into_iter().map(|(d, _, n)| (d, n));
        numbers.collect()
    }

    /// True if this is what the other has become, but for domains that were taken out of it
    /// (`FLUSH BINARY LOGS DELETE_DOMAIN_ID`).
    #[must_use]
    pub fn follows(&self, other: &Self) -> bool {
        self.0
            .iter()
            .all(|(domain, seen)| other.0.get(domain) == Some(seen))
    }

    /// Reads the list of GTID_LIST_EVENT, the last of a domain behind its others.
    ///
    /// # Errors
    /// It is none.
    pub fn decode(bytes: &[u8]) -> Result<Self, Fault> {
        let mut fields = Fields(bytes);
        // The upper four bits are flags.
        let count = fields.u32()? & 0x0fff_ffff;
        let mut state = Self::default();
        for _ in 0..count {
            let (domain, server) = (fields.u32()?, fields.u32()?);
            state.add(domain, server, fields.u64()?);
        }
        Ok(state)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut comma = "";
        for (domain, seen) in &self.0 {
            let others = seen.servers.iter().filter(|(s, _)| **s != seen.last);
            let last = seen.servers.get_key_value(&seen.last);
            for (server, number) in others.chain(last) {
                write!(f, "{comma}{domain}-{server}-{number}")?;
                comma = ",";
            }
        }
        Ok(())
    }
}

impl FromStr for State {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut state = Self::default();
        for part in text.split(',').map(str::trim).filter(|p| !p.is_empty()) {
            let mut fields = part.split('-');
            let gtid = (|| {
                let domain = fields.next()?.parse().ok()?;
                let server = fields.next()?.parse().ok()?;
                let number = fields.next()?.parse().ok()?;
                fields.next().is_none().then_some((domain, server, number))
            })();
            let (domain, server, number) =
                gtid.ok_or_else(|| format!("{part:?} is no GTID of MariaDB"))?;
            state.add(domain, server, number);
        }
        Ok(state)
    }
}

impl TryFrom<String> for State {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<State> for String {
    fn from(state: State) -> Self {
        state.to_string()
    }
}

/// Which transactions a log holds up to a point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Gtids {
    /// Of MySQL; empty where gtid_mode is off.
    Mysql(Set),
    /// Of MariaDB.
    Mariadb(State),
}

impl Gtids {
    /// True if nothing is known to be in.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Mysql(set) => set.is_empty(),
            Self::Mariadb(state) => state.0.is_empty(),
        }
    }

    /// True if all transactions of the other are in.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Mysql(own), Self::Mysql(other)) => own.covers(other),
            (Self::Mariadb(own), Self::Mariadb(other)) => own.covers(other),
            _ => false,
        }
    }

    /// True if both end with the same transactions; servers that were the last of a domain once do not count.
    #[must_use]
    pub fn is_at(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Mysql(own), Self::Mysql(other)) => own == other,
            (Self::Mariadb(own), Self::Mariadb(other)) => own.position() == other.position(),
            _ => false,
        }
    }

    /// With what MySQL holds beside its log.
    #[must_use]
    pub(crate) fn beside(&self, more: &Set) -> std::borrow::Cow<'_, Self> {
        match self {
            Self::Mysql(set) if !more.is_empty() => {
                std::borrow::Cow::Owned(Self::Mysql(set.with(more)))
            }
            _ => std::borrow::Cow::Borrowed(self),
        }
    }

    /// True if a log that ended with the other may go on with this.
    #[must_use]
    pub(crate) fn follows(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Mysql(own), Self::Mysql(other)) => own == other,
            (Self::Mariadb(own), Self::Mariadb(other)) => own.follows(other),
            _ => false,
        }
    }

    /// True if this transaction is in. Of MariaDB: if its domain has come that far.
    #[must_use]
    pub fn contains(&self, gtid: &Gtid) -> bool {
        match (self, gtid) {
            (Self::Mysql(set), Gtid::Mysql(origin, number)) => set.contains(origin, *number),
            (Self::Mariadb(state), Gtid::Mariadb(domain, _, number)) => {
                state.numbers().get(domain).is_some_and(|n| n >= number)
            }
            _ => false,
        }
    }

    /// Puts a transaction in.
    pub(crate) fn add(&mut self, gtid: &Gtid) -> Result<(), Fault> {
        match (self, gtid) {
            (Self::Mysql(set), Gtid::Mysql(origin, number)) => {
                if !set.add(origin, *number) {
                    return Err(Fault::Twice(gtid.to_string()));
                }
            }
            (Self::Mariadb(state), Gtid::Mariadb(domain, server, number)) => {
                state.add(*domain, *server, *number);
            }
            _ => return Err(Fault::Format("a GTID of the other family")),
        }
        Ok(())
    }
}

impl fmt::Display for Gtids {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mysql(set) => set.fmt(f),
            Self::Mariadb(state) => state.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";

    #[test]
    fn sets_are_read_and_written_as_the_manual_has_them() {
        // MySQL's manual, "GTID Sets".
        for (text, written) in [
            (format!("{A}:1-5"), format!("{A}:1-5")),
            (format!("{A}:1-3:11:47-49"), format!("{A}:1-3:11:47-49")),
            (format!("{A}:11, {A}:1-3:12"), format!("{A}:1-3:11-12")),
            (
                format!("{}:1-3:Domain_1:1-3:15-21", A.to_uppercase()),
                format!("{A}:1-3:domain_1:1-3:15-21"),
            ),
            (String::new(), String::new()),
        ] {
            let set: Set = text.parse().unwrap();
            assert_eq!(set.to_string(), written);
            assert_eq!(Set::decode(&set.encode()).unwrap(), set, "{text}");
        }
        for bad in [
            "x:1",
            &format!("{A}:0"),
            &format!("{A}:5-1"),
            &format!("{A}:1a-tag"),
        ] {
            assert!(bad.parse::<Set>().is_err(), "{bad}");
        }
    }

    #[test]
    fn states_are_read_and_written_as_the_server_has_them() {
        let state: State = "0-1-5,0-2-7,3-1-1".parse().unwrap();
        assert_eq!(state.position(), [(0, 2, 7), (3, 1, 1)]);
        assert_eq!(state.to_string(), "0-1-5,0-2-7,3-1-1");
        // The last of a domain stands behind its others.
        let state: State = "0-2-7,0-1-8".parse().unwrap();
        assert_eq!(state.position(), [(0, 1, 8)]);
        assert_eq!(state.to_string(), "0-2-7,0-1-8");
        assert!("0-1".parse::<State>().is_err() && "0-1-2-3".parse::<State>().is_err());
    }

    proptest::proptest! {
        /// A set by ranges is the set of its numbers.
        #[test]
        fn a_set_holds_what_was_put_in(numbers in proptest::collection::vec(1_u64..40, 0..60), others in proptest::collection::vec(1_u64..40, 0..9)) {
            let origin = Origin::default();
            let collect = |numbers: &[u64]| {
                let mut set = Set::default();
                let mut plain = std::collections::BTreeSet::new();
                for n in numbers {
                    assert_eq!(set.add(&origin, *n), plain.insert(*n));
                }
                (set, plain)
            };
            let ((set, plain), (other, other_plain)) = (collect(&numbers), collect(&others));
            for n in 0..42 {
                assert_eq!(set.contains(&origin, n), plain.contains(&n));
                assert_eq!(set.with(&other).contains(&origin, n), plain.contains(&n) || other_plain.contains(&n));
            }
            assert_eq!(set.covers(&other), other_plain.is_subset(&plain));
            assert_eq!(set.to_string().parse::<Set>().unwrap(), set);
            assert_eq!(Set::decode(&set.encode()).unwrap(), set);
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
            let _ = (Set::decode(&bytes), State::decode(&bytes));
        }
    }
}
