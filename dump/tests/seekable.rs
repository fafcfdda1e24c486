//! The file is what others read: zstd, gunzip, and a reader of zstd's seekable format that is not ours.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "tests"
)]

use std::io::Read;
use std::path::Path;
use std::process::Command;

use dump::{Compress, Encoder, File, Frames, Meta, Section, ranges};

/// A dump of two tables in frames, and its text.
fn written(compress: Compress, path: &Path) -> (Frames, Vec<u8>) {
    let mut encoder = Encoder::new(compress).unwrap();
    let mut file = File::new(std::fs::File::create(path).unwrap(), compress);
    let (mut whole, mut stored) = (vec![], vec![]);
    let mut piece = |section, table: &str, rows: u64, text: &str| {
        encoder.encode(text.as_bytes(), &mut stored).unwrap();
        let meta = Meta {
            section,
            database: "shop".into(),
            table: table.into(),
            rows,
            first_key: String::new(),
        };
        file.write(meta, text.len() as u64, &stored).unwrap();
        whole.extend_from_slice(text.as_bytes());
    };
    piece(Section::Head, "", 0, "-- head\n");
    piece(Section::Schema, "", 0, "");
    for table in ["orders", "items"] {
        for part in 0..5u64 {
            let rows: Vec<String> = (0..9_000)
                .map(|n| format!("({},'{table}')", part * 9_000 + n))
                .collect();
            let text = format!("INSERT INTO `{table}` VALUES {};\n", rows.join(","));
            piece(Section::Data, table, 9_000, &text);
        }
    }
    piece(Section::Foot, "", 0, "-- Dump completed\n");
    let (_, frames) = file.finish().unwrap();
    (frames, whole)
}

/// What a program makes of a file; `None` if it is not here.
fn output(program: &str, arguments: &[&str], file: &Path) -> Option<Vec<u8>> {
    let run = Command::new(program).args(arguments).arg(file).output();
    match run {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            eprintln!("{program} is not here: not compared");
            None
        }
        run => {
            let run = run.unwrap();
            let words = String::from_utf8_lossy(&run.stderr);
            assert!(run.status.success(), "{program}: {words}");
            Some(run.stdout)
        }
    }
}

#[test]
fn zstd_itself_takes_the_whole() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("a.sql.zst");
    let (frames, text) = written(Compress::Zstd(3), &path);
    assert!(output("zstd", &["-dc"], &path).is_none_or(|plain| plain == text));
    output("zstd", &["-tq"], &path);
    if let Some(listed) = output("zstd", &["-lv"], &path) {
        let listed = String::from_utf8(listed).unwrap();
        let number = |word: &str| {
            let line = listed.lines().find(|l| l.contains(word)).expect(word);
            line.split_whitespace().last().unwrap().to_owned()
        };
        assert_eq!(number("# Zstandard Frames"), frames.len().to_string());
        assert_eq!(number("# Skippable Frames"), "1");
    }
    // As a pipe, and as our own reader of artefacts does.
    let own = zstd::stream::decode_all(std::fs::File::open(&path).unwrap()).unwrap();
    assert!(own == text);
}

#[test]
fn gunzip_takes_the_whole() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("a.sql.gz");
    let (frames, text) = written(Compress::Gzip(6), &path);
    assert!(output("gunzip", &["-c"], &path).is_none_or(|plain| plain == text));
    output("gunzip", &["-t"], &path);
    let size = std::fs::metadata(&path).unwrap().len();
    assert_eq!(size, frames.stored(), "nothing follows the members");
}

#[test]
fn what_is_not_compressed_is_the_text_itself() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("a.sql");
    let (frames, text) = written(Compress::None, &path);
    assert!(std::fs::read(&path).unwrap() == text);
    let foot = frames.of_section(Section::Foot).next().unwrap();
    assert_eq!((foot.at, foot.stored), (text.len() as u64 - 18, 18));
}

#[test]
fn a_reader_that_is_not_ours_seeks_by_the_table() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("a.sql.zst");
    let (frames, text) = written(Compress::Zstd(3), &path);
    let file = std::fs::File::open(&path).unwrap();
    let mut decoder = zeekstd::Decoder::new(file).unwrap();
    let table = decoder.seek_table();
    assert_eq!(table.num_frames() as usize, frames.len());
    for (n, frame) in (0..).zip(frames.iter()) {
        assert_eq!(table.frame_start_comp(n).unwrap(), frame.at);
        assert_eq!(table.frame_size_comp(n).unwrap(), frame.stored);
        assert_eq!(table.frame_start_decomp(n).unwrap(), frame.raw_at);
        assert_eq!(table.frame_size_decomp(n).unwrap(), frame.raw);
    }
    // One table alone, by its numbers in the text.
    let items: Vec<_> = frames.of_table("shop", "items").collect();
    let (first, last) = (items.first().unwrap(), items.last().unwrap());
    let wanted = &text[first.raw_at as usize..(last.raw_at + last.raw) as usize];
    decoder.set_offset(first.raw_at).unwrap();
    decoder.set_offset_limit(last.raw_at + last.raw).unwrap();
    let mut back = vec![];
    decoder.read_to_end(&mut back).unwrap();
    assert!(back == wanted);
    assert!(wanted.starts_with(b"INSERT INTO `items` VALUES (0,"));
    // The same by our own ranges, out of a piece of the file.
    let whole = std::fs::read(&path).unwrap();
    let places = ranges(items.iter().copied());
    assert_eq!(places.len(), 1);
    let piece = &whole[places[0].start as usize..places[0].end as usize];
    assert!(zstd::stream::decode_all(piece).unwrap() == wanted);
}
