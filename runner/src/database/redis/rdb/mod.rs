//! A snapshot of Redis or Valkey (RDB) as it goes by: where each key and its value stand. PURE.
//!
//! Values are not looked into: what `RESTORE` takes is a value's bytes as they stand in the file,
//! between its type and a footer of version and CRC-64. So all that is known here is where a value
//! of each type ends.
//!
//! Source of the format: `rdb.h` and `rdb.c` of Redis 7.4 and of Valkey 9.

mod input;
mod lzf;
mod value;

use std::collections::BTreeMap;
use std::io::{self, Read};

use crate::database::flaw::{Flaw, broken};
use crate::database::redis::crc64::crc64;

use input::Input;

/// Bytes a server takes as one argument where `proto-max-bulk-len` is not set.
const LARGEST: u64 = 512 << 20;
/// Longest name or note that is kept.
const NOTE: u64 = 1 << 16;

/// Why a snapshot can't be read on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The bytes did not come.
    #[error("{0}")]
    Io(io::Error),
    /// It ends too early.
    #[error("it ends at byte {0}, where more must come")]
    Cut(u64),
    /// What stands there can't be.
    #[error("at byte {0} stands {1}")]
    Bad(u64, String),
    /// What stands there is of a version that is not known here.
    #[error("at byte {0} stands {1}")]
    Unknown(u64, String),
    /// Larger than a server takes.
    #[error("a value of database {0} is larger than the 512 MiB a server takes as one argument")]
    TooLarge(u64),
}

impl From<io::Error> for Error {
    fn from(e: io::Error) -> Self {
        Self::Io(e)
    }
}

/// What a snapshot holds, one after the other.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Item {
    /// A key with its value.
    Key(Key),
    /// The code of a library of functions.
    Functions(Vec<u8>),
    /// Data of a module that belongs to no key; the module's name.
    ModuleData(String),
}

/// A key with its value.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Key {
    /// Number of its database.
    pub(crate) database: u64,
    /// Its name.
    pub(crate) name: Vec<u8>,
    /// When it expires, in milliseconds since 1970.
    pub(crate) expires: Option<u64>,
    /// Seconds since it was used, where the server evicts by that.
    pub(crate) idle: Option<u64>,
    /// How often it was used (logarithm), where the server evicts by that.
    pub(crate) frequency: Option<u8>,
    /// Its type and its value as they stand in the file; empty if values are only passed over.
    pub(crate) value: Vec<u8>,
}

impl Key {
    /// What `RESTORE` takes.
    pub(crate) fn payload(mut self, version: u16) -> Vec<u8> {
        self.value.extend(version.to_le_bytes());
        let sum = crc64(0, &self.value);
        self.value.extend(sum.to_le_bytes());
        self.value
    }

    /// It is no more at this moment, in milliseconds since 1970.
    pub(crate) fn expired(&self, now: u64) -> bool {
        self.expires.is_some_and(|at| at <= now)
    }
}

/// Which server wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Maker {
    Redis,
    Valkey,
}

/// What stands before a key and belongs to it.
#[derive(Default)]
struct Before {
    expires: Option<u64>,
    idle: Option<u64>,
    frequency: Option<u8>,
}

/// Reads a snapshot item by item.
pub(crate) struct Reader<R> {
    input: Input<R>,
    maker: Maker,
    version: u16,
    keep: bool,
    database: u64,
    notes: BTreeMap<String, String>,
    ended: bool,
}

impl<R: Read> Reader<R> {
    /// Reads the head. With `keep` keys have their values.
    ///
    /// # Errors
    /// It is no snapshot.
    pub(crate) fn new(inner: R, keep: bool) -> Result<Self, Error> {
        let mut input = Input::new(inner);
        let head = input.array::<9>()?;
        let text = String::from_utf8_lossy(&head).into_owned();
        let (maker, digits) = if let Some(digits) = text.strip_prefix("REDIS") {
            (Maker::Redis, digits)
        } else if let Some(digits) = text.strip_prefix("VALKEY") {
            (Maker::Valkey, digits)
        } else {
            return Err(Error::Bad(0, "no head of a snapshot".to_owned()));
        };
        let version = digits
            .parse()
            .map_err(|_| Error::Bad(0, "a version that is no number".to_owned()))?;
        Ok(Self {
            input,
            maker,
            version,
            keep,
            database: 0,
            notes: BTreeMap::new(),
            ended: false,
        })
    }

    /// Version of the format.
    pub(crate) fn version(&self) -> u16 {
        self.version
    }

    /// What the server noted of itself under this name, as far as it has been read: `redis-ver`,
    /// `repl-id`.
    pub(crate) fn note(&self, name: &str) -> Option<&str> {
        self.notes.get(name).map(String::as_str)
    }

    /// The next item; `None` after the last, when the checksum has been compared.
    ///
    /// # Errors
    /// It can't be read on.
    pub(crate) fn next(&mut self) -> Result<Option<Item>, Error> {
        let mut before = Before::default();
        while !self.ended {
            let at = self.input.at();
            let code = self.input.byte()?;
            match code {
                255 => self.end()?,
                254 => self.database = self.input.number()?,
                253 => {
                    let seconds = u32::from_le_bytes(self.input.array()?);
                    before.expires = Some(u64::from(seconds) * 1000);
                }
                252 => before.expires = Some(u64::from_le_bytes(self.input.array()?)),
                251 => {
                    self.input.number()?;
                    self.input.number()?;
                }
                250 => self.take_note()?,
                249 => before.frequency = Some(self.input.byte()?),
                248 => before.idle = Some(self.input.number()?),
                247 => return Ok(Some(Item::ModuleData(self.module_data()?))),
                246 => {
                    return Err(Error::Unknown(
                        at,
                        "a library of functions as only release candidates of Redis 7.0 wrote it"
                            .to_owned(),
                    ));
                }
                245 => return Ok(Some(Item::Functions(self.input.string(LARGEST)?))),
                244 => {
                    // A slot of a cluster: its number and how many keys are in it.
                    for _ in 0..3 {
                        self.input.number()?;
                    }
                }
                kind => return self.key(at, kind, before).map(|key| Some(Item::Key(key))),
            }
        }
        Ok(None)
    }

    fn key(&mut self, at: u64, kind: u8, before: Before) -> Result<Key, Error> {
        if !value::known(kind) {
            return Err(Error::Unknown(
                at,
                format!(
                    "a value of type {kind}, which is not known here (RDB version {})",
                    self.version
                ),
            ));
        }
        let name = self.input.string(LARGEST)?;
        self.input.begin(self.keep);
        let valkey = self.maker == Maker::Valkey;
        let passed = value::pass(&mut self.input, kind, valkey);
        let mut value = self.input.taken();
        passed?;
        if self.input.passed() > LARGEST {
            return Err(Error::TooLarge(self.database));
        }
        if self.keep {
            value.insert(0, kind);
        }
        Ok(Key {
            database: self.database,
            name,
            expires: before.expires,
            idle: before.idle,
            frequency: before.frequency,
            value,
        })
    }

    fn take_note(&mut self) -> Result<(), Error> {
        let name = self.input.string(LARGEST)?;
        let wanted = ["redis-ver", "valkey-ver", "repl-id"];
        let name = String::from_utf8_lossy(&name);
        if !wanted.contains(&&*name) {
            return self.input.pass_string();
        }
        let text = self.input.string(NOTE)?;
        let text = String::from_utf8_lossy(&text).into_owned();
        self.notes.insert(name.into_owned(), text);
        Ok(())
    }

    fn module_data(&mut self) -> Result<String, Error> {
        let id = self.input.number()?;
        // When it is to be loaded, before or after the keys, written as a module would.
        self.input.number()?;
        self.input.number()?;
        value::pass_module(&mut self.input)?;
        Ok(value::module_name(id))
    }

    fn end(&mut self) -> Result<(), Error> {
        self.ended = true;
        if self.version >= 5 {
            let sum = self.input.sum();
            let at = self.input.at();
            let written = u64::from_le_bytes(self.input.array()?);
            if written != 0 && written != sum {
                return Err(Error::Bad(
                    at,
                    "another checksum than its bytes have".to_owned(),
                ));
            }
        }
        if self.input.is_at_end()? {
            return Ok(());
        }
        Err(Error::Bad(
            self.input.at(),
            "more, after its end mark".to_owned(),
        ))
    }
}

#[cfg(test)]
mod tests;

/// A snapshot is whole: it is read through to its end mark and checksum.
///
/// # Errors
/// It is not, or can't be read.
pub(crate) fn check(from: &mut dyn Read) -> Result<(), Flaw> {
    let of = |e: Error| match e {
        Error::Io(e) => Flaw::from(e),
        other => broken(format!("can't be read through: {other}")),
    };
    let mut reader = Reader::new(from, false).map_err(of)?;
    loop {
        match reader.next() {
            Ok(Some(_)) | Err(Error::TooLarge(_)) => {}
            Ok(None) => return Ok(()),
            Err(e) => return Err(of(e)),
        }
    }
}
