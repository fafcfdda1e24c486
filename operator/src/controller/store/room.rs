//! What is kept of a namespace has an end.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
use serde_json::json;

use super::*;

/// CompressedObject that no codec makes smaller.
fn noise(seed: u64, bytes: usize) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let letters = std::iter::from_fn(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        Some(char::from(b'!' + u8::try_from(state % 90).unwrap()))
    });
    letters
        .filter(|c| !matches!(c, '"' | '\\'))
        .take(bytes)
        .collect()
}

fn kept(namespace: &str, name: usize, version: usize, bytes: usize) -> Kept {
    serde_json::from_value(json!({
        "o": {"s": namespace, "n": format!("o-{name}"), "u": format!("{namespace}-{name}"), "c": "2025-03-30T01:59:59Z"},
        "v": version.to_string(), "s": {"schedule": "@daily", "args": [noise(name as u64 + 1, bytes)]}, "t": {"conditions": []},
    }))
    .unwrap()
}

fn at(namespace: &str, name: usize) -> Key {
    ownership::key(
        "MysqlBackup",
        namespace,
        &format!("o-{name}"),
        &format!("{namespace}-{name}"),
    )
}

fn put(store: &Store, namespace: &str, name: usize, version: usize, bytes: usize) {
    let kept = kept(namespace, name, version, bytes);
    store.set_object(&kept.object.key("MysqlBackup"), 0, &kept);
}

fn is_stub(store: &Store, namespace: &str, name: usize) -> bool {
    let view = store.view(&at(namespace, name)).unwrap();
    view.kept.spec.is_null()
}

/// Whoever fills his namespace fills no other, and gets room again for what he removes.
#[test]
fn o4_a_namespace_has_so_much_room_and_no_more() {
    let store = Store::default();
    let each = 250_000;
    let fit = NAMESPACE / each;
    for n in 0..fit + 30 {
        put(&store, "mallory", n, 1, each);
    }
    let used: usize = store.bytes.lock().unwrap()["mallory"];
    assert!(used <= NAMESPACE + 40 * STUB, "{used}");
    assert!(!is_stub(&store, "mallory", 3));
    let last = fit + 29;
    assert!(is_stub(&store, "mallory", last));
    put(&store, "alice", 1, 1, each);
    assert!(!is_stub(&store, "alice", 1));
    // What there is stays what it is, also when it changes without growing.
    put(&store, "mallory", 3, 2, each);
    assert!(!is_stub(&store, "mallory", 3));
    for n in 0..40 {
        store.remove_object(&at("mallory", n));
    }
    put(&store, "mallory", fit + 29, 2, each);
    assert!(!is_stub(&store, "mallory", last));
    for n in 40..fit + 30 {
        store.remove_object(&at("mallory", n));
    }
    assert!(!store.bytes.lock().unwrap().contains_key("mallory"));
}
