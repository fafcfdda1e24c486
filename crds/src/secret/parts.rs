//! What of a value that came from a Secret has to be kept back, too: programs repeat parts of it.

/// Shorter lines and members of JSON may be ordinary words.
const SHORTEST_LINE: usize = 8;
/// Shorter parts of a URL may be ordinary words.
const SHORTEST_PART: usize = 4;

/// The value itself and its parts that are secrets by themselves: each line of one that has several,
/// the texts of a JSON document, user part, path and query of a URL, the password of a DSN.
pub fn parts(value: &str) -> Vec<String> {
    let trimmed = value.trim();
    if trimmed.is_empty() {
        return vec![];
    }
    let mut found = vec![trimmed.to_owned()];
    if value.trim_end_matches(['\r', '\n']) != trimmed {
        found.push(value.trim_end_matches(['\r', '\n']).to_owned());
    }
    if let Ok(json) = serde_json::from_str::<serde_json::Value>(trimmed) {
        members(&json, &mut found);
    }
    let lines = trimmed.lines().map(str::trim).filter(|l| *l != trimmed);
    for line in lines.clone() {
        if line.len() >= SHORTEST_LINE && !line.starts_with("-----") {
            found.push(line.to_owned());
        }
    }
    for line in lines.chain([trimmed]) {
        url(line, &mut found);
        pairs(line, &mut found);
    }
    found
}

fn members(value: &serde_json::Value, found: &mut Vec<String>) {
    match value {
        serde_json::Value::String(text) if text.len() >= SHORTEST_LINE => {
            found.push(text.clone());
            found.extend(
                text.lines()
                    .filter(|l| l.len() >= SHORTEST_LINE && !l.starts_with("-----") && *l != text)
                    .map(str::to_owned),
            );
        }
        serde_json::Value::Array(all) => all.iter().for_each(|v| members(v, found)),
        serde_json::Value::Object(all) => all.values().for_each(|v| members(v, found)),
        _ => {}
    }
}

/// `scheme://user:password@host/path?name=value`, and `user:password@tcp(host)/db` of Go's DSN.
fn url(text: &str, found: &mut Vec<String>) {
    let (has_scheme, rest) = match text.split_once("://") {
        Some((_, rest)) => (true, rest),
        None => (false, text),
    };
    let mut add = |part: &str| {
        if part.len() >= SHORTEST_PART {
            found.push(part.to_owned());
            let plain = decode(part);
            if plain != part {
                found.push(plain);
            }
        }
    };
    if let Some((user, _)) = rest.rsplit_once('@')
        && let Some((_, password)) = user.split_once(':')
    {
        found_short(password, &mut add);
    }
    if !has_scheme {
        return;
    }
    let host_end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let below = rest[host_end..].trim_start_matches('/');
    let (path, query) = below.split_once('?').unwrap_or((below, ""));
    add(path.trim_end_matches('/'));
    if let Some(last) = path.trim_end_matches('/').rsplit('/').next() {
        add(last);
    }
    for pair in query.split(['&', ';']) {
        if let Some((_, value)) = pair.split_once('=') {
            add(value);
        }
    }
}

fn found_short(password: &str, add: &mut impl FnMut(&str)) {
    if !password.is_empty() {
        add(password);
    }
}

/// `password=…` and its kin in `name=value` pairs apart by blanks, `;` or `,`.
fn pairs(text: &str, found: &mut Vec<String>) {
    for pair in text.split(|c: char| c.is_whitespace() || matches!(c, ';' | ',' | '&')) {
        let Some((name, value)) = pair.split_once('=') else {
            continue;
        };
        let value = value.trim_matches(['\'', '"']);
        if super::is_secret_name(name) && value.len() >= SHORTEST_PART {
            found.push(value.to_owned());
        }
    }
}

/// Undoes percent-encoding.
fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut i = 0;
    while i < bytes.len() {
        let code = (bytes[i] == b'%')
            .then(|| {
                text.get(i + 1..i + 3)
                    .and_then(|h| u8::from_str_radix(h, 16).ok())
            })
            .flatten();
        plain.push(code.unwrap_or(bytes[i]));
        i += if code.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&plain).into_owned()
}
