//! LOAD DATA LOCAL INFILE from memory. No file of this machine is ever opened.

use std::io::Read;

use crate::answer::{self, Done};
use crate::error::Error;
use crate::session::{QUERY, Session};

/// Bytes sent in one packet: what both sides copy stays in a core's own cache.
const CHUNK: usize = 128 << 10;

/// The name that a statement has to give.
pub(crate) const NAME: &str = "stream";

/// Runs `statement`, which names the file 'stream', and sends `source` for it.
pub(crate) fn load(
    session: &mut Session,
    statement: &str,
    mut source: impl Read,
) -> Result<Done, Error> {
    let first = session.command(QUERY, statement.as_bytes())?;
    let head = session.packets.get(first.clone());
    match head {
        [0xff, ..] => return Err(answer::refusal(head)),
        [0xfb, name @ ..] if name == NAME.as_bytes() => {}
        [0xfb, ..] => return Err(session.refuse_file()),
        _ => {
            session.unread = true;
            return Err(Error::Malformed("the statement loads nothing"));
        }
    }
    let mut chunk = vec![0; CHUNK];
    let failed = loop {
        let mut filled = 0;
        let read = loop {
            match source.read(&mut chunk[filled..]) {
                Ok(0) => break Ok(()),
                Ok(n) => filled += n,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => break Err(e),
            }
            if filled == chunk.len() {
                break Ok(());
            }
        };
        if let Err(e) = read {
            break Some(e);
        }
        if filled > 0 {
            session.packets.write(&chunk[..filled])?;
        }
        if filled < chunk.len() {
            break None;
        }
    };
    if let Some(e) = failed {
        // An end here would make half of it look whole: the connection ends instead.
        session.unread = true;
        return Err(Error::Source(e));
    }
    session.packets.write(&[])?;
    let packet = session.packets.read()?;
    let end = session.packets.get(packet);
    match end.first() {
        Some(0x00) => {
            let done = answer::done(end)?;
            session.ended(&done);
            Ok(done)
        }
        Some(0xff) => Err(answer::refusal(end)),
        _ => Err(Error::Malformed("a load ends in another way")),
    }
}
