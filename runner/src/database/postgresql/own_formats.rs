//! pg_dump's own formats: custom (`-Fc`), tar (`-Ft`), and the table of contents of both. A file of
//! the custom format has no end of its own: it is whole if every entry that has data is there.
//!
//! Source of the formats: `pg_backup_archiver.c`, `pg_backup_custom.c`, `pg_backup_tar.c` of
//! PostgreSQL 9.0 to 18.

use std::collections::BTreeSet;
use std::io::{self, Read};

use crate::database::flaw::{Flaw, array, broken, each, end, pass};
use crate::database::postgresql::plain_dump::PlainDump;
use crate::database::postgresql::plain_dump::syntax::is_text;

/// So much of a dump of PostgreSQL tells its format.
pub(crate) const HEAD: usize = 512;

/// Versions of the archive's head that are known, as major and minor.
const OLDEST: (u8, u8) = (1, 12);
/// Longest text of an entry.
const LONGEST: u64 = 256 << 20;
/// Entries at most.
const ENTRIES: u64 = 50_000_000;
/// Bytes of a block of a tar.
const BLOCK: u64 = 512;
/// An entry without data says so in the place of an offset.
const NO_DATA: u8 = 3;

/// Stands for the lists of large objects: `blobs.toc`, since PostgreSQL 17 one for some of them.
const LISTS: &str = "blobs*.toc";

/// What a table of contents says.
struct Contents {
    ints: u8,
    /// Entries with data: of custom by number, of tar by file.
    numbers: BTreeSet<u64>,
    files: BTreeSet<String>,
}

struct Input<'a> {
    from: &'a mut dyn Read,
    ints: u8,
    offsets: u8,
}

impl Input<'_> {
    fn byte(&mut self) -> Result<u8, Flaw> {
        array(self.from).map(|[byte]| byte)
    }

    /// A sign and so many bytes, the lowest first.
    fn int(&mut self) -> Result<i64, Flaw> {
        let negative = self.byte()? != 0;
        let value = self.number(self.ints)?;
        let value = i64::try_from(value).map_err(|_| broken("holds a number that can't be"))?;
        Ok(if negative { -value } else { value })
    }

    fn number(&mut self, bytes: u8) -> Result<u64, Flaw> {
        let mut value = 0u64;
        for i in 0..bytes {
            let byte = u64::from(self.byte()?);
            match byte.checked_shl(u32::from(i) * 8) {
                Some(part) => value |= part,
                None if byte == 0 => {}
                None => return Err(broken("holds a number that can't be")),
            }
        }
        Ok(value)
    }

    /// A length and a text; none if the length is negative.
    fn text(&mut self) -> Result<Option<String>, Flaw> {
        let length = self.int()?;
        let Ok(length) = u64::try_from(length) else {
            return Ok(None);
        };
        if length > LONGEST {
            return Err(broken(format!("holds a text of {length} bytes")));
        }
        let mut bytes = vec![];
        self.from.take(length).read_to_end(&mut bytes)?;
        if (bytes.len() as u64) < length {
            return Err(broken("ends too early"));
        }
        Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
    }
}

/// Reads the head and the table of contents.
fn contents(from: &mut dyn Read) -> Result<Contents, Flaw> {
    if &array::<5>(from)? != b"PGDMP" {
        return Err(broken("has no head of pg_dump's"));
    }
    let [major, minor, _, ints, offsets, format] = array(from)?;
    let version = (major, minor);
    if version < OLDEST || !(1..=16).contains(&ints) || !(1..=16).contains(&offsets) {
        return Err(broken(format!(
            "is of format {major}.{minor}, which can't be looked into"
        )));
    }
    let custom = format == 1;
    let mut input = Input {
        from,
        ints,
        offsets,
    };
    if version >= (1, 15) {
        input.byte()?;
    } else {
        input.int()?;
    }
    for _ in 0..7 {
        input.int()?;
    }
    for _ in 0..3 {
        input.text()?;
    }
    let count = u64::try_from(input.int()?).unwrap_or(u64::MAX);
    if count > ENTRIES {
        return Err(broken("has a table of contents that can't be"));
    }
    let mut found = Contents {
        ints,
        numbers: BTreeSet::new(),
        files: BTreeSet::new(),
    };
    for _ in 0..count {
        entry(&mut input, version, custom, &mut found)?;
    }
    Ok(found)
}

fn entry(
    input: &mut Input<'_>,
    version: (u8, u8),
    custom: bool,
    found: &mut Contents,
) -> Result<(), Flaw> {
    let number = u64::try_from(input.int()?).unwrap_or_default();
    input.int()?;
    // Two oids and the tag, then the kind.
    for _ in 0..3 {
        input.text()?;
    }
    let large_objects = input.text()?.is_some_and(|kind| kind == "BLOBS");
    input.int()?;
    // Three statements, schema and tablespace.
    for _ in 0..5 {
        input.text()?;
    }
    if version >= (1, 14) {
        input.text()?;
    }
    if version >= (1, 16) {
        input.int()?;
    }
    // Owner, and whether there are oids.
    for _ in 0..2 {
        input.text()?;
    }
    while input.text()?.is_some() {}
    if custom {
        let state = input.byte()?;
        input.number(input.offsets)?;
        if state != NO_DATA {
            found.numbers.insert(number);
        }
    } else if let Some(file) = input.text()?.filter(|f| !f.is_empty()) {
        // Large objects have a list of their own in the place of a file.
        found.files.insert(if large_objects {
            LISTS.to_owned()
        } else {
            file
        });
    }
    Ok(())
}

/// A file of the custom format: after the contents a block for each entry with data.
pub(crate) fn custom(from: &mut dyn Read) -> Result<(), Flaw> {
    let mut from = io::BufReader::with_capacity(crate::database::flaw::BUFFER, from);
    let mut contents = contents(&mut from)?;
    let mut input = Input {
        from: &mut from,
        ints: contents.ints,
        offsets: 0,
    };
    let mut kind = [0];
    while input.from.read(&mut kind)? > 0 {
        let number = u64::try_from(input.int()?).unwrap_or_default();
        match kind[0] {
            1 => chunks(&mut input)?,
            // Large objects, each with its number; none has the number 0.
            3 => {
                while input.int()? != 0 {
                    chunks(&mut input)?;
                }
            }
            other => return Err(broken(format!("holds a block of kind {other}"))),
        }
        if !contents.numbers.remove(&number) {
            return Err(broken("goes on after its end"));
        }
    }
    match contents.numbers.len() {
        0 => Ok(()),
        n => Err(broken(format!("lacks the data of {n} entries"))),
    }
}

/// Chunks, each with its length before it; one of length 0 ends them.
fn chunks(input: &mut Input<'_>) -> Result<(), Flaw> {
    loop {
        match u64::try_from(input.int()?) {
            Ok(0) => return Ok(()),
            Ok(length) => pass(input.from, length)?,
            Err(_) => return Err(broken("holds a block of a length that can't be")),
        }
    }
}

/// A file of the tar format: every file of the contents, and two empty blocks at its end.
pub(crate) fn tar(from: &mut dyn Read) -> Result<(), Flaw> {
    let mut wanted: Option<BTreeSet<String>> = None;
    let mut there = BTreeSet::new();
    loop {
        let block: [u8; 512] = array(from)?;
        if block.iter().all(|b| *b == 0) {
            break;
        }
        let header = ::tar::Header::from_byte_slice(&block);
        let name = String::from_utf8_lossy(&header.path_bytes()).into_owned();
        let size = header
            .entry_size()
            .map_err(|e| broken(format!("has a head that can't be read ({e})")))?;
        let padding = (BLOCK - size % BLOCK) % BLOCK;
        if name == "toc.dat" {
            let mut inside = from.take(size);
            wanted = Some(contents(&mut inside)?.files);
            let left = inside.limit();
            pass(from, left)?;
        } else {
            pass(from, size)?;
        }
        pass(from, padding)?;
        let list = name.starts_with("blobs") && name.ends_with(".toc");
        there.insert(if list { LISTS.to_owned() } else { name });
    }
    if array::<512>(from)?.iter().any(|b| *b != 0) {
        return Err(broken("has no end"));
    }
    end(from)?;
    let wanted = wanted.ok_or_else(|| broken("has no table of contents"))?;
    match wanted.difference(&there).next() {
        None => Ok(()),
        Some(file) => Err(broken(format!("lacks its file {file}"))),
    }
}

/// A dump, in SQL or in one of pg_dump's own formats, is whole.
///
/// # Errors
/// It is not, or can't be read.
pub(crate) fn check(from: &mut dyn Read) -> Result<(), Flaw> {
    let mut head = vec![];
    from.take(HEAD as u64).read_to_end(&mut head)?;
    let mut all = head.as_slice().chain(from);
    if head.starts_with(b"PGDMP") {
        return custom(&mut all);
    }
    if !is_text(&head) {
        return tar(&mut all);
    }
    let mut script = PlainDump::default();
    each(&mut all, |chunk| script.feed(chunk))?;
    script.flaw().map_or(Ok(()), |flaw| Err(broken(flaw)))
}
