//! From steps and a value to what they find.

use std::cmp::Ordering;

use serde_json::Value;

use super::{Comparison, Filter, Node, Slice, Step};

/// Appends what the nodes print.
pub(super) fn print(nodes: &[Node], value: &Value, text: &mut String) -> Result<(), String> {
    for node in nodes {
        match node {
            Node::Text(plain) => text.push_str(plain),
            Node::Print(steps) if steps.is_empty() => {}
            Node::Print(steps) => {
                let found: Vec<String> = find(steps, value)?.into_iter().map(one).collect();
                text.push_str(&found.join(" "));
            }
            Node::Range(over, body) => {
                for item in find(over, value)? {
                    print(body, item, text)?;
                }
            }
        }
    }
    Ok(())
}

/// A found value: text as it is, everything with parts as Go writes JSON.
fn one(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "<nil>".to_owned(),
        Value::Array(_) | Value::Object(_) => value
            .to_string()
            .replace('<', "\\u003c")
            .replace('>', "\\u003e")
            .replace('&', "\\u0026"),
        other => other.to_string(),
    }
}

/// What the steps find, one after the other.
pub(super) fn find<'a>(steps: &'a [Step], value: &'a Value) -> Result<Vec<&'a Value>, String> {
    let mut found = vec![value];
    for step in steps {
        found = match step {
            Step::Literal(literal) => vec![literal],
            Step::Field(name) => found.into_iter().filter_map(|v| v.get(name)).collect(),
            Step::Wildcard => found.into_iter().flat_map(children).collect(),
            Step::Recursive => {
                let mut all = vec![];
                for value in found {
                    descend(value, &mut all);
                }
                all
            }
            Step::Slice(slice) => each(&found, |value| sliced(slice, value))?,
            Step::Filter(filter) => each(&found, |value| filtered(filter, value))?,
            Step::Union(parts) => {
                let mut all = vec![];
                for part in parts {
                    for value in &found {
                        all.extend(find(part, value)?);
                    }
                }
                all
            }
        };
    }
    Ok(found)
}

fn each<'a>(
    values: &[&'a Value],
    step: impl Fn(&'a Value) -> Result<Vec<&'a Value>, String>,
) -> Result<Vec<&'a Value>, String> {
    let mut all = vec![];
    for value in values {
        all.extend(step(value)?);
    }
    Ok(all)
}

fn children(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(fields) => fields.values().collect(),
        _ => vec![],
    }
}

/// The value and all within it that have parts.
fn descend<'a>(value: &'a Value, all: &mut Vec<&'a Value>) {
    let inner = children(value);
    if !inner.is_empty() {
        all.push(value);
        for child in inner {
            descend(child, all);
        }
    }
}

fn sliced<'a>(slice: &Slice, value: &'a Value) -> Result<Vec<&'a Value>, String> {
    let items = match value {
        Value::Array(items) => items,
        Value::Null => return Ok(vec![]),
        other => return Err(format!("{other} is not an array")),
    };
    let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
    let start = if slice.start < 0 {
        slice.start + length
    } else {
        slice.start
    };
    let end = match slice.end {
        None => length,
        Some(end) if end < 0 || (end == 0 && slice.single) => end + length,
        Some(end) => end,
    };
    if start == end {
        return Ok(vec![]);
    }
    let outside = |index: i64| {
        Err(format!(
            "array index out of bounds: index {index}, length {length}"
        ))
    };
    if start >= length || start < 0 {
        return outside(start);
    }
    if end > length || end < 0 {
        return outside(end - 1);
    }
    if start > end {
        return Err(format!(
            "starting index {start} is greater than ending index {end}"
        ));
    }
    let step = match slice.step {
        None => 1,
        Some(step) => usize::try_from(step)
            .ok()
            .filter(|step| *step > 0)
            .ok_or("step must be greater than 0")?,
    };
    let (from, to) = (
        usize::try_from(start).unwrap_or_default(),
        usize::try_from(end).unwrap_or_default(),
    );
    Ok(items
        .get(from..to)
        .unwrap_or_default()
        .iter()
        .step_by(step)
        .collect())
}

fn filtered<'a>(filter: &Filter, value: &'a Value) -> Result<Vec<&'a Value>, String> {
    let items = match value {
        Value::Array(items) => items,
        Value::Null => return Ok(vec![]),
        other => return Err(format!("{other} is not an array and can't be filtered")),
    };
    let mut kept = vec![];
    for item in items {
        let left = find(&filter.left, item)?;
        let keep = match &filter.comparison {
            None => !left.is_empty(),
            Some((comparison, right)) => {
                let right = find(right, item)?;
                match (left.as_slice(), right.as_slice()) {
                    ([], _) | (_, []) => false,
                    ([left], [right]) => compares(left, *comparison, right)?,
                    _ => return Err("can only compare one element at a time".to_owned()),
                }
            }
        };
        if keep {
            kept.push(item);
        }
    }
    Ok(kept)
}

fn compares(left: &Value, comparison: Comparison, right: &Value) -> Result<bool, String> {
    let order = match (left, right) {
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        (Value::Number(a), Value::Number(b)) => match (a.as_i64(), b.as_i64()) {
            (Some(a), Some(b)) => Some(a.cmp(&b)),
            _ => a
                .as_f64()
                .zip(b.as_f64())
                .and_then(|(a, b)| a.partial_cmp(&b)),
        },
        (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
        _ => None,
    };
    let Some(order) = order else {
        return Err(format!("{left} and {right} can't be compared"));
    };
    Ok(match comparison {
        Comparison::Less => order == Ordering::Less,
        Comparison::LessEqual => order != Ordering::Greater,
        Comparison::Greater => order == Ordering::Greater,
        Comparison::GreaterEqual => order != Ordering::Less,
        Comparison::Equal => order == Ordering::Equal,
        Comparison::NotEqual => order != Ordering::Equal,
    })
}
