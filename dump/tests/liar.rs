//! A server that lies: a stand-in that speaks the protocol until the rows of a table are asked for, and then does not keep
//! to it. Each lie ends with an error that names the table; none with a panic, with rows that were not there, or with more
//! memory than a frame and a packet of text.
//!
//! What no reader of rows can know: rows left out before a proper end, rows sent twice, other values of the same type, and
//! NULL where none can be. The table's definition and the next verification by restoring may show them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "tests"
)]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use dump::{Chunk, Column, Error, Flavour, Key, Reader, Server, Table};
use wire::{Address, Connection, Settings};

/// Bytes of a packet that is taken.
const LIMIT: usize = 1 << 20;

/// What is sent: packets by their payload, or bytes as they are.
#[derive(Clone)]
enum Part {
    Packet(Vec<u8>),
    /// The same again and again, until the reader goes.
    Endless(Vec<u8>),
    Raw(Vec<u8>),
    /// A byte now and then.
    Trickle,
    Silence,
    Close,
}

use Part::{Close, Endless, Packet, Raw, Silence, Trickle};

fn text(text: &[u8]) -> Vec<u8> {
    let mut out = vec![u8::try_from(text.len()).unwrap()];
    out.extend_from_slice(text);
    out
}

fn column(name: &str, collation: u16, code: u8) -> Vec<u8> {
    let mut out = vec![];
    for part in ["def", "shop", "t", "t", name, name] {
        out.extend(text(part.as_bytes()));
    }
    out.push(0x0c);
    out.extend(collation.to_le_bytes());
    out.extend(100_u32.to_le_bytes());
    out.extend([code, 0, 0, 0, 0, 0]);
    out
}

const EOF: [u8; 5] = [0xfe, 0, 0, 2, 0];
const OK: [u8; 7] = [0, 0, 0, 2, 0, 0, 0];

fn head() -> Vec<Part> {
    let columns = [
        column("id", 63, 3),
        column("name", 45, 253),
        column("raw", 63, 252),
    ];
    let mut all = vec![Packet(vec![3])];
    all.extend(columns.map(Packet));
    all.push(Packet(EOF.to_vec()));
    all
}

fn row(id: &[u8], name: &[u8], raw: &[u8]) -> Part {
    Packet([text(id), text(name), text(raw)].concat())
}

fn refusal(number: u16, words: &str) -> Part {
    let mut out = vec![0xff];
    out.extend(number.to_le_bytes());
    out.extend(b"#HY000");
    out.extend(words.as_bytes());
    Packet(out)
}

fn answer(parts: &[Part]) -> Vec<Part> {
    let mut all = head();
    all.push(row(b"1", b"a", b"\0"));
    all.extend_from_slice(parts);
    all
}

struct Lie {
    what: &'static str,
    /// To the rows.
    rows: Vec<Part>,
    /// To the question for columns alone.
    columns: Option<Vec<Part>>,
    /// To the question for a character set; nothing for `utf8mb4`.
    set: Option<Vec<Part>>,
    /// Of the error.
    words: &'static str,
}

fn lie(what: &'static str, rows: Vec<Part>, words: &'static str) -> Lie {
    Lie {
        what,
        rows,
        columns: None,
        set: None,
        words,
    }
}

/// A packet with another number than its turn.
fn numbered(sequence: u8, payload: &[u8]) -> Part {
    let [a, b, c, ..] = payload.len().to_le_bytes();
    Raw([&[a, b, c, sequence], payload].concat())
}

fn of_columns(columns: Vec<Vec<u8>>) -> Vec<Part> {
    let mut all = vec![Packet(vec![u8::try_from(columns.len()).unwrap()])];
    all.extend(columns.into_iter().map(Packet));
    all.push(Packet(EOF.to_vec()));
    all
}

fn lies() -> Vec<Lie> {
    let good = || row(b"2", b"b", b"x");
    let end = || Packet(EOF.to_vec());
    let named = |columns: Vec<Vec<u8>>| [of_columns(columns), vec![end()]].concat();
    let (id, name, raw) = (
        column("id", 63, 3),
        column("name", 45, 253),
        column("raw", 63, 252),
    );
    let set_row = |set: &[u8]| {
        [
            of_columns(vec![column("s", 45, 253)]),
            vec![Packet(text(set)), end()],
        ]
        .concat()
    };
    let mut all = vec![
        lie(
            "a row has too few values",
            answer(&[Packet(text(b"2")), end()]),
            "too short",
        ),
        lie(
            "a row has too many values",
            answer(&[
                Packet([text(b"2"), text(b"b"), text(b"x"), text(b"y")].concat()),
                end(),
            ]),
            "goes on after its last column",
        ),
        lie(
            "a row is empty",
            answer(&[Packet(vec![]), end()]),
            "too short",
        ),
        lie(
            "a value is longer than its row",
            answer(&[Packet(b"\x012\x20b\x01x".to_vec()), end()]),
            "too short",
        ),
        lie(
            "a value is of 2^64 bytes",
            answer(&[
                Packet([&b"\x012\xfe"[..], &[0xff; 8], b"b"].concat()),
                end(),
            ]),
            "too short",
        ),
        lie(
            "a length is cut",
            answer(&[Packet(b"\x012\xfd\x01".to_vec()), end()]),
            "too short",
        ),
        lie(
            "a length begins with 0xff",
            answer(&[Packet(b"\x012\xff".to_vec()), end()]),
            "0xff",
        ),
        lie(
            "an error among the rows",
            answer(&[refusal(1317, "interrupted, it says")]),
            "ERROR 1317 (HY000): interrupted, it says",
        ),
        lie(
            "an error of another definition among the rows",
            answer(&[refusal(1412, "definition changed")]),
            "was changed, emptied or dropped",
        ),
        lie(
            "an error in place of rows",
            vec![refusal(1146, "no such table")],
            "was changed, emptied or dropped",
        ),
        lie(
            "an error without a number",
            answer(&[Packet(vec![0xff])]),
            "a refusal without a number",
        ),
        lie(
            "a packet is left out",
            answer(&[numbered(9, b"\x012\x01b\x01x"), end()]),
            "out of sequence",
        ),
        lie(
            "a packet comes twice",
            answer(&[numbered(6, b"\x011\x01a\x01\0"), end()]),
            "out of sequence",
        ),
        lie(
            "silence after the columns",
            [head(), vec![Silence]].concat(),
            "silent",
        ),
        lie(
            "silence in a packet",
            answer(&[Raw(vec![200, 0, 0, 7, 1]), Silence]),
            "silent",
        ),
        lie("no answer", vec![Silence], "silent"),
        lie("OK in place of rows", vec![Packet(OK.to_vec())], "no rows"),
        lie(
            "half a packet and the end",
            answer(&[Raw(vec![200, 0, 0, 7, 1, b'2', 1]), Close]),
            "the connection was lost",
        ),
        lie(
            "half a header and the end",
            answer(&[Raw(vec![200, 0]), Close]),
            "the connection was lost",
        ),
        lie(
            "the end after a row",
            answer(&[good(), Close]),
            "the connection was lost",
        ),
        lie(
            "2^32 columns",
            vec![Packet(
                [&[0xfe_u8][..], &(1_u64 << 32).to_le_bytes()].concat(),
            )],
            "too many columns",
        ),
        lie(
            "columns without end",
            vec![Packet(vec![0xfc, 0xff, 0x0f]), Endless(id.clone())],
            "the columns have no end",
        ),
        lie(
            "fewer columns than before",
            named(vec![id.clone(), name.clone()]),
            "other",
        ),
        lie(
            "more columns than before",
            named(vec![id.clone(), name.clone(), raw.clone(), raw.clone()]),
            "other",
        ),
        lie(
            "another type than before",
            named(vec![column("id", 45, 253), name.clone(), raw.clone()]),
            "other",
        ),
        lie(
            "another character set than before",
            named(vec![id.clone(), column("name", 8, 253), raw.clone()]),
            "other",
        ),
        lie(
            "a column's description is cut",
            vec![Packet(vec![3]), Packet(id[..20].to_vec())],
            "too short",
        ),
        lie(
            "rows before the columns end",
            vec![
                Packet(vec![3]),
                Packet(id.clone()),
                Packet(name.clone()),
                Packet(raw.clone()),
                good(),
            ],
            "the columns have no end",
        ),
        lie(
            "a file is asked for",
            vec![Packet(b"\xfb/etc/passwd".to_vec())],
            "asks for a file",
        ),
        lie(
            "a number is SQL",
            answer(&[row(b"2),(3", b"b", b"x"), end()]),
            "a number is none",
        ),
        lie(
            "a number is nothing",
            answer(&[row(b"", b"b", b"x"), end()]),
            "a number is none",
        ),
        lie(
            "a number is a word",
            answer(&[row(b"nan", b"b", b"x"), end()]),
            "a number is none",
        ),
        lie(
            "a packet without end",
            answer(&[Endless(vec![b'a'; 0xff_ffff])]),
            "above the limit",
        ),
        lie(
            "a packet above the limit",
            answer(&[
                Raw([&[0xff, 0xff, 0x7f, 7][..], &[b'a'; 100]].concat()),
                Silence,
            ]),
            "above the limit",
        ),
        lie(
            "another answer follows",
            answer(&[Packet(vec![0xfe, 0, 0, 0x0a, 0])]),
            "unread",
        ),
        lie(
            "the rows end in the middle of an end",
            answer(&[Packet(vec![0xfe, 0xfd, 1])]),
            "too short",
        ),
    ];
    let of_head = |what, columns, words| Lie {
        columns: Some(columns),
        ..lie(what, answer(&[end()]), words)
    };
    all.push(of_head(
        "not as many columns as were asked for",
        named(vec![id.clone(), name.clone()]),
        "not as many columns",
    ));
    all.push(of_head(
        "a column is of another type than its definition says",
        named(vec![name.clone(), name.clone(), raw.clone()]),
        "is not of type int",
    ));
    all.push(of_head(
        "text is announced as a number",
        named(vec![id.clone(), id.clone(), raw.clone()]),
        "is not of type varchar",
    ));
    let of_set = |what, set, words| Lie {
        set: Some(set),
        ..lie(what, answer(&[end()]), words)
    };
    all.push(of_set(
        "nobody knows the collation",
        vec![Packet(vec![1]), Packet(column("s", 45, 253)), end(), end()],
        "which character set",
    ));
    all.push(of_set(
        "a character set's name is SQL",
        set_row(b"x'; DROP"),
        "which character set",
    ));
    all.push(of_set(
        "names of character sets without end",
        [
            of_columns(vec![column("s", 45, 253)]),
            vec![Endless(text(&[b'a'; 200]))],
        ]
        .concat(),
        "above the limit",
    ));
    all
}

struct Peer {
    stream: TcpStream,
    sequence: u8,
}

impl Peer {
    /// Nothing if the reader went.
    fn command(&mut self) -> Option<Vec<u8>> {
        let mut head = [0; 4];
        self.stream.read_exact(&mut head).ok()?;
        let mut body =
            vec![0; usize::from(head[0]) | usize::from(head[1]) << 8 | usize::from(head[2]) << 16];
        self.stream.read_exact(&mut body).ok()?;
        self.sequence = head[3].wrapping_add(1);
        Some(body)
    }

    fn packet(&mut self, payload: &[u8]) -> std::io::Result<()> {
        let [a, b, c, ..] = payload.len().to_le_bytes();
        self.stream
            .write_all(&[&[a, b, c, self.sequence], payload].concat())?;
        self.sequence = self.sequence.wrapping_add(1);
        Ok(())
    }

    /// False if it is over.
    fn say(&mut self, parts: &[Part]) -> bool {
        for part in parts {
            let said = match part {
                Packet(payload) => self.packet(payload),
                Raw(bytes) => self.stream.write_all(bytes),
                Endless(payload) => loop {
                    if let Err(e) = self.packet(payload) {
                        break Err(e);
                    }
                },
                Trickle => loop {
                    if let Err(e) = self.stream.write_all(&[200]) {
                        break Err(e);
                    }
                    thread::park_timeout(Duration::from_millis(20));
                },
                // Until the reader goes.
                Silence => {
                    self.command();
                    return false;
                }
                Close => return false,
            };
            if said.is_err() {
                return false;
            }
        }
        true
    }
}

/// Serves one connection.
fn serve(listener: &TcpListener, lie: &Lie) {
    let (stream, _) = listener.accept().unwrap();
    stream.set_nodelay(true).unwrap();
    let mut peer = Peer {
        stream,
        sequence: 0,
    };
    let capabilities: u32 = 0xa201 | 0x8 << 16;
    let [c0, c1, c2, c3] = capabilities.to_le_bytes();
    let mut greeting = b"\x0a10.11.99-MariaDB\0\x01\0\0\0saltsalt\0".to_vec();
    greeting.extend([c0, c1, 45, 2, 0, c2, c3, 21]);
    greeting.extend([0; 10]);
    greeting.extend(b"saltsaltsalt\0mysql_native_password\0");
    peer.packet(&greeting).unwrap();
    peer.command().unwrap();
    peer.packet(&OK).unwrap();
    while let Some(command) = peer.command() {
        let query = String::from_utf8_lossy(&command).into_owned();
        let end = Packet(EOF.to_vec());
        let goes_on = if query.contains("information_schema") {
            let set = [
                of_columns(vec![column("s", 45, 253)]),
                vec![Packet(text(b"utf8mb4")), end],
            ]
            .concat();
            peer.say(lie.set.as_deref().unwrap_or(&set))
        } else if query.contains("LIMIT 0") {
            peer.say(
                lie.columns
                    .as_deref()
                    .unwrap_or(&[head(), vec![end]].concat()),
            )
        } else if query.contains("SELECT") {
            peer.say(&lie.rows)
        } else if command.first() == Some(&3) {
            peer.say(&[Packet(OK.to_vec())])
        } else {
            false
        };
        if !goes_on {
            break;
        }
    }
}

fn settings(listener: &TcpListener) -> Settings {
    let port = listener.local_addr().unwrap().port();
    let mut settings = Settings::new(
        Address::Tcp("127.0.0.1".into(), port),
        "r",
        String::new().into(),
    );
    (settings.limits.packet, settings.limits.idle) = (LIMIT, Some(Duration::from_millis(900)));
    settings
}

fn table() -> (Server, Table) {
    let column = |name: &str, data_type: &str| Column {
        name: name.into(),
        data_type: data_type.into(),
        column_type: data_type.into(),
        ..Column::default()
    };
    let server = Server {
        flavour: Flavour::MariaDb,
        version: "10.11.99-MariaDB".into(),
        numbers: (10, 11, 99),
    };
    let table = Table {
        database: "shop".into(),
        name: "t".into(),
        columns: vec![
            column("id", "int"),
            column("name", "varchar"),
            column("raw", "blob"),
        ],
        key: Some(Key {
            name: "PRIMARY".into(),
            columns: vec!["id".into()],
        }),
        ..Table::default()
    };
    (server, table)
}

/// Reads the table of a server that answers so, and gives what came of it with the rows that were given on.
fn read(
    lie: &Lie,
    settle: impl FnOnce(&mut Settings),
    most: usize,
) -> (Result<dump::Sum, Error>, Vec<u8>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut settings = settings(&listener);
    settle(&mut settings);
    thread::scope(|scope| {
        scope.spawn(|| serve(&listener, lie));
        let mut session = Connection::open(&settings).unwrap();
        let (server, table) = table();
        let (mut text, mut pieces) = (vec![], 0);
        let result = Reader::default().read(
            &mut session,
            &server,
            &table,
            &Chunk::default(),
            &mut |piece, _| {
                assert!(
                    piece.text.len() <= dump::FRAME && piece.text.capacity() <= 2 * dump::FRAME
                );
                pieces += 1;
                if pieces > most {
                    return Err(Error::Changed("no room is left".into()));
                }
                text = piece.text;
                Ok(vec![])
            },
        );
        drop(session);
        (result, text)
    })
}

#[test]
fn every_lie_is_an_error_that_names_the_table() {
    let all = lies();
    assert!(all.len() >= 32);
    for lie in &all {
        let begun = Instant::now();
        let (result, text) = read(lie, |_| (), usize::MAX);
        let error = match result {
            Err(error) => error.to_string(),
            Ok(sum) => panic!("{}: {sum:?}", lie.what),
        };
        assert!(error.contains(lie.words), "{}: {error}", lie.what);
        assert!(
            error.contains("shop.t") || error.contains("character set"),
            "{}: {error}",
            lie.what
        );
        assert!(
            text.is_empty() || lie.what == "another answer follows",
            "{}: {}",
            lie.what,
            String::from_utf8_lossy(&text)
        );
        assert!(
            begun.elapsed() < Duration::from_secs(10),
            "{}: {:?}",
            lie.what,
            begun.elapsed()
        );
    }
}

/// So that the lies above are lies: the same stand-in, truthful.
#[test]
fn the_truth_is_read() {
    let truth = lie(
        "truth",
        answer(&[row(b"2", b"it's", b"\xff"), Packet(EOF.to_vec())]),
        "",
    );
    let (result, text) = read(&truth, |_| (), usize::MAX);
    assert_eq!(result.unwrap().rows, 2);
    assert_eq!(
        String::from_utf8(text).unwrap(),
        "INSERT INTO `t` VALUES\n(1,'a',0x00),\n(2,'it\\'s',0xFF);\n"
    );
}

#[test]
fn rows_without_end_stop_when_nobody_takes_them() {
    let endless = lie(
        "rows without end",
        [
            head(),
            vec![Endless(
                [text(b"1"), text(&[b'a'; 200]), text(b"")].concat(),
            )],
        ]
        .concat(),
        "",
    );
    let (result, _) = read(&endless, |_| (), 3);
    assert_eq!(result.unwrap_err().to_string(), "no room is left");
}

#[test]
fn bytes_that_trickle_stop_when_the_run_does() {
    let trickle = lie(
        "a byte now and then",
        answer(&[Raw(vec![0xff, 0xff, 0, 7]), Trickle]),
        "",
    );
    let begun = Instant::now();
    let (result, _) = read(
        &trickle,
        |settings| {
            let stop = settings.stop.clone();
            thread::spawn(move || {
                thread::park_timeout(Duration::from_millis(1500));
                stop.stop();
            });
        },
        usize::MAX,
    );
    assert_eq!(
        result.unwrap_err().to_string(),
        "reading table shop.t: stopped"
    );
    assert!(begun.elapsed() < Duration::from_secs(6));
}
