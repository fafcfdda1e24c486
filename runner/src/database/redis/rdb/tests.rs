#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use crate::database::redis::rdb::*;

/// Written by redis-server 7.0.15 after tests/fixtures/redis.lua, with `quicklist-packed-threshold`
/// 1000b, `maxmemory-policy` allkeys-lfu, two keys that had expired, and a library of functions.
const REAL: &[u8] = include_bytes!("../../../../tests/fixtures/redis-7.rdb");

fn read(bytes: &[u8]) -> Result<Vec<Item>, Error> {
    let mut reader = Reader::new(bytes, true)?;
    std::iter::from_fn(|| reader.next().transpose()).collect()
}

fn keys(items: &[Item]) -> Vec<&Key> {
    let keys = items.iter().filter_map(|item| match item {
        Item::Key(key) => Some(key),
        _ => None,
    });
    keys.collect()
}

#[test]
fn a_real_snapshot_is_read_to_its_end() {
    let items = read(REAL).unwrap();
    let keys = keys(&items);
    let mut names: Vec<String> = keys
        .iter()
        .map(|k| {
            let name = String::from_utf8_lossy(&k.name);
            format!("{} {} {}", k.database, k.value[0], name.escape_debug())
        })
        .collect();
    names.sort();
    // Types by rdb.h: 0 string, 2 set, 4 hash, 5 sorted set, 11 intset, 16 hash and 17 sorted set in
    // a listpack, 18 list, 19 stream.
    let packed = format!("0 0 {}", "packed key ".repeat(20));
    let mut expected = vec![
        "0 0 12345",
        "0 0 bits",
        "0 0 bytes\\0\\u{1}\u{fffd}\\r\\n",
        "0 0 empty",
        "0 0 expired",
        "0 0 gone",
        "0 0 int16",
        "0 0 int32",
        "0 0 int64",
        "0 0 int8",
        "0 0 lasting",
        "0 0 loglog",
        "0 0 packed",
        packed.as_str(),
        "0 0 text",
        "0 11 numbers",
        "0 16 hash",
        "0 16 lasting hash",
        "0 17 geo",
        "0 17 scores",
        "0 18 list",
        "0 18 long list",
        "0 18 plain list",
        "0 19 stream",
        "0 2 words",
        "0 4 large hash",
        "0 5 many scores",
        "15 2 in fifteen",
        "3 0 in three",
    ];
    expected.push("0 2 many numbers");
    expected.sort_unstable();
    assert_eq!(names, expected);
    let expires = |name: &str| {
        keys.iter()
            .find(|k| k.name == name.as_bytes())
            .unwrap()
            .expires
    };
    assert_eq!(expires("lasting"), Some(4_102_444_800_123));
    assert_eq!(expires("expired"), Some(1_000_000_000_000));
    assert_eq!(expires("text"), None);
    assert!(
        keys.iter()
            .all(|k| k.frequency.is_some() && k.idle.is_none())
    );
    assert!(
        items
            .iter()
            .any(|i| matches!(i, Item::Functions(code) if code.starts_with(b"#!lua name=lib\n")))
    );

    let mut passing = Reader::new(REAL, false).unwrap();
    let mut count = 0;
    while let Some(item) = passing.next().unwrap() {
        if let Item::Key(key) = item {
            assert!(key.value.is_empty());
            count += 1;
        }
    }
    assert_eq!((count, passing.version()), (30, 10));
    assert_eq!(passing.note("redis-ver"), Some("7.0.15"));
    assert_eq!(passing.note("repl-id").map(str::len), Some(40));
}

/// `DUMP` of redis-server 7.0.15 for the string `hello`.
#[test]
fn a_payload_is_what_dump_gives() {
    let key = Key {
        value: b"\x00\x05hello".to_vec(),
        ..Key::default()
    };
    assert_eq!(key.payload(10), b"\x00\x05hello\n\x00cr\xdfve4 \n");
}

/// A snapshot of one value of this type and a string after it.
fn with(head: &[u8], kind: u8, value: &[u8]) -> Vec<u8> {
    [
        head,
        &[kind, 1, b'k'],
        value,
        b"\x00\x01z\x01v\xff",
        &[0; 8],
    ]
    .concat()
}

/// Values by rdb.c of Redis 2.6 to 7.4 and Valkey 9, of types that today's server here does not
/// write.
#[test]
fn values_of_every_type_end_where_they_end() {
    const R: &[u8] = b"REDIS0012";
    const V: &[u8] = b"VALKEY080";
    let time = &[9u8; 8][..];
    let id = &[7u8; 16][..];
    let stream = |version: u8| {
        let mut value = [&[1, 16][..], id, b"\x03lpk\x05\x06\x07"].concat();
        if version >= 2 {
            value.extend([1, 2, 3, 4, 0x42, 0x01]);
        }
        value.extend(b"\x01\x02gr\x01\x02");
        value.extend(if version >= 2 { &[8][..] } else { &[] });
        value.extend([&[1][..], id, time, &[3, 1, 3, b'o', b'n', b'e'], time].concat());
        value.extend(if version >= 3 { time } else { &[] });
        value.extend([&[1][..], id].concat());
        value
    };
    let table: Vec<(&[u8], u8, Vec<u8>)> = vec![
        (R, 0, b"\xc0\x07".to_vec()),
        (R, 0, b"\xc2\x01\x02\x03\x04".to_vec()),
        (R, 0, b"\xc3\x02\x03\x00a".to_vec()),
        (R, 0, [&b"\x80\x00\x00\x00\x02"[..], b"ab"].concat()),
        (
            R,
            0,
            [&b"\x81\x00\x00\x00\x00\x00\x00\x00\x02"[..], b"ab"].concat(),
        ),
        (R, 1, b"\x02\x01a\xc1\x01\x02".to_vec()),
        (R, 3, b"\x03\x01a\x031.5\x01b\xff\x01c\xfd".to_vec()),
        (
            R,
            7,
            [
                &[0x81][..],
                &[1; 8],
                &[1, 5, 2, 6, 3, 1, 2, 3, 4, 4],
                time,
                &[5, 1, b'x', 0],
            ]
            .concat(),
        ),
        (R, 9, b"\x03zip".to_vec()),
        (R, 10, b"\x03zip".to_vec()),
        (R, 12, b"\x03zip".to_vec()),
        (R, 13, b"\x03zip".to_vec()),
        (R, 14, b"\x02\x03zip\x03zap".to_vec()),
        (R, 15, stream(1)),
        (R, 19, stream(2)),
        (R, 20, b"\x03lpk".to_vec()),
        (R, 21, stream(3)),
        (R, 22, b"\x01\x05\x01f\x01v".to_vec()),
        (R, 23, b"\x03lpk".to_vec()),
        (
            R,
            24,
            [time, b"\x02\x00\x01f\x01v\x41\x00\x01g\x01w"].concat(),
        ),
        (R, 25, [time, b"\x03lpk"].concat()),
        (V, 22, [&b"\x01\x01f\x01v"[..], time].concat()),
    ];
    for (head, kind, value) in table {
        let items = read(&with(head, kind, &value)).unwrap_or_else(|e| panic!("{kind}: {e}"));
        let [Item::Key(first), Item::Key(last)] = &items[..] else {
            panic!("{kind}: {items:?}");
        };
        assert_eq!(first.value, [&[kind][..], &value].concat(), "{kind}");
        assert_eq!(
            (&last.name[..], &last.value[..]),
            (&b"z"[..], &b"\x00\x01v"[..]),
            "{kind}"
        );
    }
    for (head, kind) in [(R, 6), (R, 8), (R, 26), (V, 23), (V, 24), (R, 243)] {
        let error = read(&with(head, kind, b"\x01x")).unwrap_err();
        assert!(
            matches!(error, Error::Unknown(9 | 12, _)),
            "{kind}: {error}"
        );
    }
}

#[test]
fn what_stands_beside_keys_is_passed_over_or_told() {
    let text = [
        &b"REDIS0012\xfa\x03abc\xc0\x01\xfe\x02\xfb\x05\x00\xf4\x01\x02\x03"[..],
        b"\xfd\x10\x00\x00\x00\xf8\x07\x00\x01a\x01b\xf7\x81\x00\x00\x00\x00\x00\x00\x04\x00\x02\x02\x02\x01\x00",
        b"\xff\0\0\0\0\0\0\0\0",
    ]
    .concat();
    let items = read(&text).unwrap();
    let [Item::Key(key), Item::ModuleData(module)] = &items[..] else {
        panic!("{items:?}");
    };
    assert_eq!(
        (key.database, key.expires, key.idle),
        (2, Some(16_000), Some(7))
    );
    assert!(key.expired(16_000) && !key.expired(15_999));
    assert_eq!(module, "AAAAAAAAB");
    for (wrong, words) in [
        (&b"REDIS"[..], "it ends at byte 5"),
        (b"MYSQL0012", "no head"),
        (b"REDIS00xx", "no number"),
        (b"REDIS0012\xff\0\0\0\0\0\0\0\x01", "another checksum"),
        (b"REDIS0012\xff\0\0\0\0\0\0\0\0x", "after its end mark"),
        (b"REDIS0012\xfe\xc0", "no length"),
        (b"REDIS0012\x00\x01a\x83", "can't be"),
        (b"REDIS0012\x00\x01a\xc9", "packed in no known way"),
        (
            b"REDIS0012\x00\x81\xff\xff\xff\xff\xff\xff\xff\xffa",
            "longer than",
        ),
        (
            b"REDIS0012\x00\xc3\x01\x81\xff\xff\xff\xff\xff\xff\xff\xff\x00",
            "longer than",
        ),
    ] {
        let error = read(wrong).unwrap_err().to_string();
        assert!(error.contains(words), "{words}: {error}");
    }
}

/// Cut and changed all over: an error, never a panic, never a value beyond the end.
#[test]
fn what_is_cut_or_changed_is_an_error() {
    for end in (0..REAL.len()).step_by(41) {
        assert!(read(&REAL[..end]).is_err(), "{end}");
    }
    let mut bytes = REAL.to_vec();
    for at in (0..REAL.len()).step_by(13) {
        let bit = 1 << (at % 8);
        bytes[at] ^= bit;
        assert!(read(&bytes).is_err(), "{at}");
        bytes[at] ^= bit;
    }
    // Without a checksum whatever stands there is met.
    let sum = bytes.len() - 8;
    bytes[sum..].fill(0);
    assert!(read(&bytes).is_ok());
    for at in (0..sum).step_by(11) {
        for change in [0x80, 0xff] {
            bytes[at] ^= change;
            if let Ok(items) = read(&bytes) {
                let total: usize = keys(&items).iter().map(|k| k.value.len()).sum();
                assert!(total <= bytes.len(), "{at}");
            }
            bytes[at] ^= change;
        }
    }
}
