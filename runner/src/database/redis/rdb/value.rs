//! Where a value of each type ends.

use std::io::Read;

use crate::database::redis::rdb::Error;
use crate::database::redis::rdb::input::Input;

/// A value of this type can be passed over.
pub(crate) fn known(kind: u8) -> bool {
    matches!(kind, 0..=5 | 7 | 9..=25)
}

/// Passes over a value. Types above 21 differ between the two makers.
pub(crate) fn pass<R: Read>(input: &mut Input<R>, kind: u8, valkey: bool) -> Result<(), Error> {
    let at = input.at();
    match kind {
        // A string; and what is written as one: zipmap, ziplist, intset, listpack.
        0 | 9..=13 | 16 | 17 | 20 => input.pass_string(),
        // Lists, sets, and lists of ziplists.
        1 | 2 | 14 => each(input, Input::pass_string),
        // A sorted set with its scores as text.
        3 => each(input, |input| {
            input.pass_string()?;
            match input.byte()? {
                // Not a number and the infinities have no text.
                253..=255 => Ok(()),
                length => input.pass(length.into()),
            }
        }),
        4 => each(input, pair),
        5 => each(input, |input| {
            input.pass_string()?;
            input.pass(8)
        }),
        7 => {
            input.number()?;
            pass_module(input)
        }
        15 => stream(input, 1),
        19 => stream(input, 2),
        21 => stream(input, 3),
        // Lists of listpacks and of single large elements.
        18 => each(input, |input| {
            input.number()?;
            input.pass_string()
        }),
        // A hash whose fields expire.
        22 if valkey => each(input, |input| {
            pair(input)?;
            input.pass(8)
        }),
        22 if !valkey => each(input, expiring),
        23 if !valkey => input.pass_string(),
        24 if !valkey => {
            input.pass(8)?;
            each(input, expiring)
        }
        25 if !valkey => {
            input.pass(8)?;
            input.pass_string()
        }
        kind => Err(Error::Unknown(
            at,
            format!("a value of type {kind}, which is not known here"),
        )),
    }
}

/// So many elements as are written before them.
fn each<R: Read>(
    input: &mut Input<R>,
    mut one: impl FnMut(&mut Input<R>) -> Result<(), Error>,
) -> Result<(), Error> {
    for _ in 0..input.number()? {
        one(input)?;
    }
    Ok(())
}

fn pair<R: Read>(input: &mut Input<R>) -> Result<(), Error> {
    input.pass_string()?;
    input.pass_string()
}

fn expiring<R: Read>(input: &mut Input<R>) -> Result<(), Error> {
    input.number()?;
    pair(input)
}

fn numbers<R: Read>(input: &mut Input<R>, count: usize) -> Result<(), Error> {
    (0..count).try_for_each(|_| input.number().map(drop))
}

/// Entries, then what is known of them, then groups with their consumers.
fn stream<R: Read>(input: &mut Input<R>, version: u8) -> Result<(), Error> {
    each(input, pair)?;
    // Length and last id; then first id, the greatest deleted, and how many were added.
    numbers(input, if version >= 2 { 8 } else { 3 })?;
    each(input, |input| {
        input.pass_string()?;
        numbers(input, if version >= 2 { 3 } else { 2 })?;
        // Pending entries: id, time of delivery, number of deliveries.
        each(input, |input| {
            input.pass(24)?;
            input.number().map(drop)
        })?;
        each(input, |input| {
            input.pass_string()?;
            input.pass(if version >= 3 { 16 } else { 8 })?;
            each(input, |input| input.pass(16))
        })
    })
}

/// What a module wrote, up to its end mark.
pub(crate) fn pass_module<R: Read>(input: &mut Input<R>) -> Result<(), Error> {
    loop {
        let at = input.at();
        match input.number()? {
            0 => return Ok(()),
            1 | 2 => input.number().map(drop)?,
            3 => input.pass(4)?,
            4 => input.pass(8)?,
            5 => input.pass_string()?,
            _ => return Err(Error::Bad(at, "no mark of a module's data".to_owned())),
        }
    }
}

/// Nine characters of six bits each; the lowest ten bits are a version.
pub(crate) fn module_name(id: u64) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    (0..9)
        .rev()
        .filter_map(|i| usize::try_from(id >> (10 + 6 * i) & 63).ok())
        .filter_map(|i| LETTERS.get(i))
        .map(|letter| char::from(*letter))
        .collect()
}
