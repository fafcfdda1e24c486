//! `-o custom-columns` (PURE), as kubectl prints it.

use serde_json::Value;

use super::jsonpath::Expression;

/// Columns as asked for: a title and where its cells come from.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Columns(Vec<(String, Expression)>);

/// Narrowest column.
const MIN: usize = 6;
/// Blanks after the widest cell.
const PADDING: usize = 3;

impl Columns {
    /// Reads `NAME:.metadata.name,NEXT:.status.nextScheduleTime`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn parse(spec: &str) -> Result<Self, String> {
        let mut columns = vec![];
        for part in split(spec) {
            let (title, path) = part.split_once(':').ok_or_else(|| {
                format!(
                    "unexpected custom-columns spec: {part}, expected <header>:<json-path-expr>"
                )
            })?;
            columns.push((title.to_owned(), Expression::relaxed(path)?));
        }
        Ok(Self(columns))
    }

    /// A line an item, below the titles.
    ///
    /// # Errors
    /// An index out of bounds.
    pub(crate) fn print(&self, items: &[&Value], no_headers: bool) -> Result<String, String> {
        if items.is_empty() {
            return Ok(String::new());
        }
        let mut lines: Vec<Vec<String>> = vec![];
        if !no_headers {
            lines.push(self.0.iter().map(|(title, _)| title.clone()).collect());
        }
        for item in items {
            let mut line = vec![];
            for (_, expression) in &self.0 {
                let found = expression.find(item)?;
                let texts: Vec<String> = found.into_iter().map(plain).collect();
                let cell = if texts.is_empty() {
                    "<none>".to_owned()
                } else {
                    texts.join(",")
                };
                line.push(crate::text::sanitise(&cell));
            }
            lines.push(line);
        }
        Ok(aligned(&lines))
    }
}

/// At the commas that are in no brackets.
fn split(spec: &str) -> Vec<String> {
    let (mut parts, mut depth) = (vec![String::new()], 0i32);
    for c in spec.chars() {
        match c {
            '[' | '(' | '{' => depth += 1,
            ']' | ')' | '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(part) = parts.last_mut() {
            part.push(c);
        }
    }
    parts
}

fn aligned(lines: &[Vec<String>]) -> String {
    let count = lines.first().map_or(0, Vec::len);
    let widths: Vec<usize> = (0..count)
        .map(|column| {
            let cells = lines.iter().filter_map(|line| line.get(column));
            let widest = cells.map(|cell| cell.chars().count()).max().unwrap_or(0);
            (widest + PADDING).max(MIN)
        })
        .collect();
    let mut text = String::new();
    for line in lines {
        for (index, (cell, width)) in line.iter().zip(&widths).enumerate() {
            if index + 1 == count {
                text.push_str(cell);
            } else {
                text.push_str(&format!("{cell:width$}"));
            }
        }
        text.push('\n');
    }
    text
}

/// A value as Go's `fmt.Sprint` writes it.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(plain).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(fields) => {
            let fields: Vec<String> = fields
                .iter()
                .map(|(key, value)| format!("{key}:{}", plain(value)))
                .collect();
            format!("map[{}]", fields.join(" "))
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use super::*;
    use serde_json::json;

    #[test]
    fn as_kubectl_aligns_them() {
        let items = [
            json!({ "metadata": { "name": "shop", "labels": { "b": "2", "a": "1" } }, "spec": { "args": ["x", "y"] } }),
            json!({ "metadata": { "name": "a-longer-name" } }),
        ];
        let columns = Columns::parse(
            "N:.metadata.name,LABELS:metadata.labels,ARGS:{.spec.args[*]},LAST:.spec.args",
        )
        .unwrap();
        let items: Vec<&Value> = items.iter().collect();
        assert_eq!(
            columns.print(&items, false).unwrap(),
            "N               LABELS         ARGS     LAST\n\
             shop            map[a:1 b:2]   x,y      [x y]\n\
             a-longer-name   <none>         <none>   <none>\n"
        );
        assert_eq!(columns.print(&[], false).unwrap(), "");
        let narrow = Columns::parse("A:.x,B:.y").unwrap();
        assert_eq!(
            narrow
                .print(&[&json!({ "x": 1, "y": true })], true)
                .unwrap(),
            "1     true\n"
        );
    }

    #[test]
    fn a_part_without_a_path() {
        assert_eq!(
            Columns::parse("NAME").unwrap_err(),
            "unexpected custom-columns spec: NAME, expected <header>:<json-path-expr>"
        );
        assert!(Columns::parse("A:.items[0,1].x").is_ok());
    }
}
