//! What the program writes, line by line: before each transaction a line of ours with its GTID and place, positions as they are
//! in the server's file, no password, no sign that a terminal obeys. A transaction that is not asked for is left out. Memory is
//! bounded whatever the lines and transactions are.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::sync::mpsc::Receiver;

use super::filter::{Named, quoted};
use crate::database::mysql::sql::masked;
use crate::scrub::Scrub;

/// Bytes of a line or a statement that are shown.
const SHOWN: usize = 64 * 1024;
/// Bytes of a transaction that are kept while it is not known whether it is asked for.
const HELD: usize = 256 * 1024;
/// Ends each statement.
const END: &[u8] = b"/*!*/;";

/// A transaction begins, or an event that is of none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Start {
    /// Where in the server's file.
    pub(crate) position: u64,
    /// What stands before it; `None` for what is of no transaction.
    pub(crate) title: Option<String>,
}

/// Text on its way from the program to who reads it.
pub(crate) struct Text<'a> {
    scrub: &'a Scrub,
    named: &'a Named,
    out: &'a mut dyn Write,
    /// Transactions that were shown.
    pub(crate) shown: u64,
    /// Bytes before the first of the file's that the program is given, and that one's position in the file.
    offset: (u64, u64),
    line: Line,
    waiting: VecDeque<Start>,
    open: Option<Open>,
    /// `# at …`, until it is known what follows.
    at: Option<u64>,
    statement: Option<Line>,
    /// The statement that rows came of, as MariaDB repeats it.
    annotation: Vec<u8>,
    /// The database of the statements, and the one that was last shown.
    database: (Vec<u8>, Vec<u8>),
    sql_mode: u64,
    /// Events of a compressed transaction come, at the positions of its end.
    packed: bool,
    ended: bool,
}

/// A line, or several, of which the first bytes are kept.
#[derive(Debug, Default)]
struct Line {
    text: Vec<u8>,
    cut: u64,
    /// The last bytes of what was cut.
    tail: Vec<u8>,
}

/// A transaction that is being read.
#[derive(Debug, Default)]
struct Open {
    title: String,
    /// The database of the statements before it.
    database: Vec<u8>,
    /// It is asked for.
    shown: bool,
    held: Vec<u8>,
    left_out: u64,
}

impl Line {
    fn push(&mut self, bytes: &[u8]) {
        let room = SHOWN.saturating_sub(self.text.len()).min(bytes.len());
        let (now, rest) = bytes.split_at(room);
        self.text.extend_from_slice(now);
        self.cut += rest.len() as u64;
        self.tail
            .extend_from_slice(&rest[rest.len().saturating_sub(END.len())..]);
        let over = self.tail.len().saturating_sub(END.len());
        self.tail.drain(..over);
    }

    /// True if a statement ends with it.
    fn ends(&self) -> bool {
        let mut last = self.text[self.text.len().saturating_sub(END.len())..].to_vec();
        last.extend_from_slice(&self.tail);
        last.ends_with(END)
    }
}

impl<'a> Text<'a> {
    /// Text of what is asked for.
    pub(crate) fn new(scrub: &'a Scrub, named: &'a Named, out: &'a mut dyn Write) -> Self {
        Self {
            scrub,
            named,
            out,
            shown: 0,
            offset: (0, 0),
            line: Line::default(),
            waiting: VecDeque::new(),
            open: None,
            at: None,
            statement: None,
            annotation: vec![],
            database: (vec![], vec![]),
            sql_mode: 0,
            packed: false,
            ended: false,
        }
    }

    /// What comes is of another program, which is given `head` bytes before those of the file from `start` on.
    pub(crate) fn begin(&mut self, head: u64, start: u64) {
        self.offset = (head, start);
        self.line = Line::default();
        self.waiting.clear();
        self.at = None;
        self.statement = None;
        self.annotation.clear();
        self.database = (vec![], vec![]);
        self.sql_mode = 0;
        self.packed = false;
        self.ended = false;
    }

    /// Takes what the program wrote.
    ///
    /// # Errors
    /// The text can't be written.
    pub(super) fn feed(&mut self, mut bytes: &[u8], begun: &Receiver<Start>) -> io::Result<()> {
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            self.line.push(&bytes[..end]);
            bytes = &bytes[end + 1..];
            let line = std::mem::take(&mut self.line);
            self.waiting.extend(begun.try_iter());
            self.take(line)?;
        }
        self.line.push(bytes);
        Ok(())
    }

    /// The program has ended; true if it came to the last transaction.
    ///
    /// # Errors
    /// The text can't be written.
    pub(super) fn finish(&mut self, begun: &Receiver<Start>) -> io::Result<bool> {
        self.waiting.extend(begun.try_iter());
        self.annotated()?;
        self.close()?;
        Ok(self.waiting.is_empty() && self.statement.is_none())
    }

    fn take(&mut self, line: Line) -> io::Result<()> {
        if self.ended {
            return Ok(());
        }
        if let Some(mut statement) = self.statement.take() {
            statement.push(b"\n");
            statement.push(&line.text);
            if line.cut > 0 {
                statement.cut += line.cut;
                statement.tail = line.tail;
            }
            return self.statement(statement);
        }
        let text = line.text.as_slice();
        if let Some(at) = position(text) {
            self.annotated()?;
            return self.at(at);
        }
        if let Some(annotation) = text.strip_prefix(b"#Q> ") {
            let room = SHOWN
                .saturating_sub(self.annotation.len())
                .min(annotation.len());
            self.annotation.extend_from_slice(&annotation[..room]);
            self.annotation.push(b'\n');
            return Ok(());
        }
        self.annotated()?;
        match text.first() {
            Some(b'#') | None => {
                self.packed = match text {
                    b"# Start of compressed events!" => true,
                    b"# End of compressed events!" => false,
                    _ => self.packed,
                };
                if self.named.rows(text) {
                    self.show()?;
                }
                let shown = printable(text) + &more(line.cut);
                self.emit(&shown)
            }
            _ if text.starts_with(b"DELIMITER ;") => {
                self.ended = true;
                self.close()
            }
            _ => self.statement(line),
        }
    }

    /// An event begins there, counted as the program does.
    fn at(&mut self, at: u64) -> io::Result<()> {
        let (head, start) = self.offset;
        let Some(position) = at.checked_sub(head).map(|at| at + start) else {
            return Ok(());
        };
        let next = self.waiting.front().filter(|_| !self.packed);
        if next.is_some_and(|begun| begun.position == position) {
            self.close()?;
            if let Some(title) = self.waiting.pop_front().and_then(|begun| begun.title) {
                self.open = Some(Open {
                    title,
                    database: self.database.0.clone(),
                    ..Open::default()
                });
                if self.named.all() {
                    self.show()?;
                }
            }
        }
        self.emit(&format!("# at {position}"))
    }

    /// A statement, or the beginning of one.
    fn statement(&mut self, line: Line) -> io::Result<()> {
        if !line.ends() {
            self.statement = Some(line);
            return Ok(());
        }
        let whole = line.cut == 0;
        let text = line.text.strip_suffix(END).filter(|_| whole);
        let text = text.unwrap_or(&line.text);
        if let Some((name, _)) = text.strip_prefix(b"use ").and_then(quoted) {
            self.database.0 = name;
            if self.open.as_ref().is_some_and(|open| open.shown) {
                self.database.1.clone_from(&self.database.0);
            }
        }
        if let Some(mode) = sql_mode(text) {
            self.sql_mode = mode;
        }
        if !is_frame(text) && self.named.statement(text, &self.database.0) {
            self.show()?;
        }
        let clean = self.scrub.clean(&printable(&masked(text, self.sql_mode)));
        let shown = clean + &more(line.cut) + "/*!*/;";
        self.emit(&shown)
    }

    /// Writes the statement that rows came of.
    fn annotated(&mut self) -> io::Result<()> {
        if self.annotation.is_empty() {
            return Ok(());
        }
        let text = std::mem::take(&mut self.annotation);
        let clean = self.scrub.clean(&printable(&masked(&text, self.sql_mode)));
        for line in clean.lines() {
            self.emit(&format!("#Q> {line}"))?;
        }
        Ok(())
    }

    /// The open transaction is asked for.
    fn show(&mut self) -> io::Result<()> {
        let Some(open) = self.open.as_mut().filter(|open| !open.shown) else {
            return Ok(());
        };
        open.shown = true;
        self.shown += 1;
        writeln!(self.out, "{}", open.title)?;
        let (current, last) = &mut self.database;
        if open.database != *last {
            let name = printable(&open.database).replace('`', "``");
            writeln!(self.out, "use `{name}`/*!*/;")?;
        }
        last.clone_from(current);
        self.out.write_all(&std::mem::take(&mut open.held))?;
        if open.left_out > 0 {
            writeln!(
                self.out,
                "# {} bytes of this transaction are left out here: they name nothing that was asked for",
                open.left_out
            )?;
        }
        Ok(())
    }

    fn emit(&mut self, line: &str) -> io::Result<()> {
        let Some(open) = &mut self.open else {
            return Ok(());
        };
        if open.shown {
            return writeln!(self.out, "{line}");
        }
        if open.held.len() + line.len() < HELD {
            open.held.extend_from_slice(line.as_bytes());
            open.held.push(b'\n');
        } else {
            open.left_out += line.len() as u64 + 1;
        }
        Ok(())
    }

    /// The open transaction has ended.
    fn close(&mut self) -> io::Result<()> {
        if self.open.take().is_some_and(|open| open.shown) {
            writeln!(self.out)?;
        }
        Ok(())
    }
}

/// `# at 4`.
fn position(line: &[u8]) -> Option<u64> {
    let digits = line.strip_prefix(b"# at ")?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// What sets up a session, or begins and ends a transaction: it is of no table.
fn is_frame(text: &[u8]) -> bool {
    const FRAME: [&[u8]; 12] = [
        b"SET @",
        b"SET TIMESTAMP=",
        b"SET INSERT_ID=",
        b"SET LAST_INSERT_ID=",
        b"/*!",
        b"/*M!",
        b"use `",
        b"BEGIN",
        b"START TRANSACTION",
        b"COMMIT",
        b"ROLLBACK",
        b"SAVEPOINT",
    ];
    FRAME.iter().any(|begin| text.starts_with(begin))
}

/// The number in `SET @@session.sql_mode=…`.
fn sql_mode(text: &[u8]) -> Option<u64> {
    let number = text.strip_prefix(b"SET @@session.sql_mode=")?;
    std::str::from_utf8(number).ok()?.parse().ok()
}

/// How much of a line is not shown.
fn more(cut: u64) -> String {
    match cut {
        0 => String::new(),
        cut => format!(" … ({cut} bytes more)"),
    }
}

/// Bytes as text, without what is none and what a terminal would obey.
fn printable(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\n' | '\t' => text.push(c),
                c if c.is_control() => drop(write!(text, "\\x{:02x}", u32::from(c))),
                c => text.push(c),
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    /// As mariadb-binlog writes it of a log that is given from 1000 on, behind 256 bytes.
    const TEXT: &str = "/*!50530 SET @@SESSION.PSEUDO_SLAVE_MODE=1*/;
DELIMITER /*!*/;
# at 4
#261129 13:33:59 server id 11  end_log_pos 256 CRC32 0xf1d7a63c \tStart: binlog v 4
# at 256
#261129 13:33:59 server id 11  end_log_pos 1042 CRC32 0xfa4523b2 \tGTID 0-11-1 ddl
/*M!100001 SET @@session.gtid_seq_no=1*//*!*/;
# at 298
#261129 13:33:59 server id 11  end_log_pos 1142 CRC32 0x0988a825 \tQuery
use `w`/*!*/;
SET @@session.sql_mode=0/*!*/;
create user u identified by
'S3cr3t
marker'
/*!*/;
# at 398
#261129 13:33:59 server id 11  end_log_pos 1184 CRC32 0x0ddbb6c9 \tGTID 0-11-2 trans
START TRANSACTION
/*!*/;
# at 440
# at 500
#Q> insert t values ('\u{1b}[2J')
#261129 13:33:59 server id 11  end_log_pos 0 CRC32 0x51e508fc \tTable_map: `w`.`t` mapped to number 18
### INSERT INTO `w`.`t`
### SET
###   @1='\u{1b}[2J# at 540'
# at 530
#261129 13:33:59 server id 11  end_log_pos 1284 CRC32 0xbc6569b5 \tXid = 9
COMMIT/*!*/;
# at 540
#261129 13:33:59 server id 11  end_log_pos 1300 CRC32 0xbc6569b5 \tBinlog checkpoint bin.000002
# at 560
#261129 13:33:59 server id 11  end_log_pos 1384 CRC32 0xdfa02001 \tGTID 0-11-3 ddl
# at 600
DROP TABLE `t` /* generated by server */
/*!*/;
DELIMITER ;
# End of log file
ROLLBACK /* added by mysqlbinlog */;
";

    fn shown(named: &Named, pieces: usize) -> (String, u64, bool) {
        let (send, begun) = std::sync::mpsc::channel();
        for (position, title) in [
            (1000, Some("# one")),
            (1142, Some("# two")),
            (1284, None),
            (1304, Some("# three")),
        ] {
            let title = title.map(str::to_owned);
            send.send(Start { position, title }).unwrap();
        }
        let (scrub, mut out) = (Scrub::default(), vec![]);
        let mut text = Text::new(&scrub, named, &mut out);
        text.begin(256, 1000);
        for piece in TEXT.as_bytes().chunks(pieces) {
            text.feed(piece, &begun).unwrap();
        }
        let whole = text.finish(&begun).unwrap();
        let count = text.shown;
        (String::from_utf8(out).unwrap(), count, whole)
    }

    const ONE: &str = "# one
# at 1000
#261129 13:33:59 server id 11  end_log_pos 1042 CRC32 0xfa4523b2 \tGTID 0-11-1 ddl
/*M!100001 SET @@session.gtid_seq_no=1*//*!*/;
# at 1042
#261129 13:33:59 server id 11  end_log_pos 1142 CRC32 0x0988a825 \tQuery
use `w`/*!*/;
SET @@session.sql_mode=0/*!*/;
create user u identified by
'******'
/*!*/;

";
    const TWO: &str = "# two
# at 1142
#261129 13:33:59 server id 11  end_log_pos 1184 CRC32 0x0ddbb6c9 \tGTID 0-11-2 trans
START TRANSACTION
/*!*/;
# at 1184
# at 1244
#Q> insert t values ('\\x1b[2J')
#261129 13:33:59 server id 11  end_log_pos 0 CRC32 0x51e508fc \tTable_map: `w`.`t` mapped to number 18
### INSERT INTO `w`.`t`
### SET
###   @1='\\x1b[2J# at 540'
# at 1274
#261129 13:33:59 server id 11  end_log_pos 1284 CRC32 0xbc6569b5 \tXid = 9
COMMIT/*!*/;

";
    const THREE: &str = "# three
# at 1304
#261129 13:33:59 server id 11  end_log_pos 1384 CRC32 0xdfa02001 \tGTID 0-11-3 ddl
# at 1344
DROP TABLE `t` /* generated by server */
/*!*/;

";

    #[test]
    fn transactions_have_their_titles_and_places_and_no_password() {
        for pieces in [1, 7, 4096] {
            let (text, count, whole) = shown(&Named::default(), pieces);
            assert_eq!(text, format!("{ONE}{TWO}{THREE}"));
            assert_eq!((count, whole), (3, true));
        }
    }

    #[test]
    fn what_is_not_asked_for_is_left_out_and_its_database_said() {
        let of = |table: &str| shown(&Named::new(None, Some(table)).unwrap(), 7);
        let used = "use `w`/*!*/;\n";
        let (title, rest) = TWO.split_once('\n').unwrap();
        let (text, count, _) = of("w.t");
        assert_eq!(text, format!("{title}\n{used}{rest}{THREE}"));
        assert_eq!(count, 2);
        assert_eq!(of("w.x"), (String::new(), 0, true));
        let database = Named::new(Some("W".into()), None).unwrap();
        assert_eq!(shown(&database, 7).0, format!("{ONE}{TWO}{THREE}"));
    }

    #[test]
    fn a_program_that_stopped_early_is_seen() {
        let (send, begun) = std::sync::mpsc::channel();
        let title = Some("# one".to_owned());
        send.send(Start {
            position: 1000,
            title,
        })
        .unwrap();
        let (scrub, named, mut out) = (Scrub::default(), Named::default(), vec![]);
        let mut text = Text::new(&scrub, &named, &mut out);
        text.begin(256, 1000);
        text.feed(b"# at 4\nDELIMITER ;\n", &begun).unwrap();
        assert!(!text.finish(&begun).unwrap());
    }

    #[test]
    fn lines_statements_and_transactions_of_any_length_are_bounded() {
        let (send, begun) = std::sync::mpsc::channel();
        let title = Some("# one".to_owned());
        send.send(Start { position: 4, title }).unwrap();
        let (scrub, mut out) = (Scrub::default(), vec![]);
        let named = Named::new(None, Some("w.t")).unwrap();
        let mut text = Text::new(&scrub, &named, &mut out);
        text.begin(4, 4);
        let long = "x".repeat(SHOWN * 2);
        text.feed(b"# at 4\n", &begun).unwrap();
        text.feed(
            format!("insert a values ('{long}')\n/*!*/;\n").as_bytes(),
            &begun,
        )
        .unwrap();
        for _ in 0..10 {
            text.feed(format!("###   @1='{long}'\n").as_bytes(), &begun)
                .unwrap();
        }
        text.feed(b"### INSERT INTO `w`.`t`\n###   @1=7\n", &begun)
            .unwrap();
        assert!(text.finish(&begun).unwrap());
        let text = String::from_utf8(out).unwrap();
        assert!(text.len() < HELD + 4096, "{}", text.len());
        for words in ["bytes more)", "are left out here", "###   @1=7\n"] {
            assert!(text.contains(words), "{words}");
        }
    }
}
