//! YAML of which nothing is expanded. PURE.

use serde_json::Value;

/// A value as YAML in block style, its strings so that nothing of them is expanded.
pub(crate) fn write(out: &mut String, value: &Value, depth: usize) {
    let indent = "  ".repeat(depth);
    match value {
        Value::Object(map) if map.is_empty() => out.push_str(" {}\n"),
        Value::Object(map) => {
            if depth > 0 {
                out.push('\n');
            }
            for (key, value) in map {
                out.push_str(&indent);
                quote(out, key);
                out.push(':');
                write(out, value, depth + 1);
            }
        }
        Value::Array(items) => {
            out.push('\n');
            for item in items {
                out.push_str(&indent);
                out.push('-');
                write(out, item, depth + 1);
            }
        }
        Value::String(text) => {
            out.push(' ');
            quote(out, text);
            out.push('\n');
        }
        other => {
            out.push_str(&format!(" {other}\n"));
        }
    }
}

fn quote(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '$' | '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{a0}' => {
                out.push_str(&format!("\\x{:02x}", u32::from(c)));
            }
            '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => {
                out.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}
