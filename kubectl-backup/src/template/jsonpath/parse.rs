//! From text to steps.

use serde_json::Value;

use super::{Comparison, Filter, Node, Slice, Step};

/// Reads a template.
pub(super) fn template(text: &str) -> Result<Vec<Node>, String> {
    // Ranges that are open: what they go over, and the nodes before them.
    let mut open: Vec<(Vec<Step>, Vec<Node>)> = vec![];
    let mut nodes = vec![];
    let mut rest = text;
    while !rest.is_empty() {
        let Some(at) = rest.find('{') else {
            nodes.push(Node::Text(rest.to_owned()));
            break;
        };
        if at > 0 {
            nodes.push(Node::Text(rest[..at].to_owned()));
        }
        let mut cursor = Cursor::new(&rest[at + 1..]);
        let end = cursor.action_end()?;
        let inner = rest[at + 1..at + 1 + end].trim();
        rest = &rest[at + 2 + end..];
        match inner.strip_prefix("range") {
            Some(over) if over.starts_with(|c: char| !c.is_alphanumeric()) => {
                open.push((expression(over)?, std::mem::take(&mut nodes)));
            }
            _ if inner == "end" => {
                let (over, before) = open.pop().ok_or("not in range, nothing to end")?;
                let body = std::mem::replace(&mut nodes, before);
                nodes.push(Node::Range(over, body));
            }
            _ => nodes.push(Node::Print(expression(inner)?)),
        }
    }
    // A range that is not closed goes on to the end.
    while let Some((over, before)) = open.pop() {
        let body = std::mem::replace(&mut nodes, before);
        nodes.push(Node::Range(over, body));
    }
    Ok(nodes)
}

/// Reads the inside of an action.
pub(super) fn expression(text: &str) -> Result<Vec<Step>, String> {
    let mut cursor = Cursor::new(text);
    let mut steps = vec![];
    while let Some(c) = cursor.peek() {
        match c {
            '$' | '@' => {
                cursor.next();
            }
            c if c.is_whitespace() => {
                cursor.next();
            }
            '.' => {
                cursor.next();
                if cursor.peek() == Some('.') {
                    cursor.next();
                    steps.push(Step::Recursive);
                    if !cursor.peek().is_some_and(is_word) {
                        continue;
                    }
                }
                steps.extend(cursor.field());
            }
            '[' => {
                cursor.next();
                steps.push(cursor.array()?);
            }
            '"' | '\'' => steps.push(Step::Literal(cursor.quoted()?.into())),
            '+' | '-' | '0'..='9' => steps.push(Step::Literal(cursor.number()?)),
            c if is_word(c) => {
                let word = cursor.word();
                steps.push(Step::Literal(match word.as_str() {
                    "true" => true.into(),
                    "false" => false.into(),
                    _ => return Err(format!("unrecognized identifier {word}")),
                }));
            }
            c => return Err(format!("unrecognized character in action: {c:?}")),
        }
    }
    Ok(steps)
}

fn is_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    /// Where the action's brace is, past quotes.
    fn action_end(&mut self) -> Result<usize, String> {
        let mut quote = None;
        while let Some(c) = self.next() {
            match (quote, c) {
                (_, '\\') => {
                    self.next();
                }
                (None, '}') => return Ok(self.at - 1),
                (None, '"' | '\'') => quote = Some(c),
                (Some(q), c) if q == c => quote = None,
                _ => {}
            }
        }
        Err(match quote {
            Some(_) => "unterminated quoted string".to_owned(),
            None => "unclosed action".to_owned(),
        })
    }

    fn word(&mut self) -> String {
        let mut word = String::new();
        while let Some(c) = self.peek().filter(|c| is_word(*c)) {
            word.push(c);
            self.next();
        }
        word
    }

    /// A field's name; `*` is every field, an empty one is the value itself.
    fn field(&mut self) -> Option<Step> {
        let mut name = String::new();
        while let Some(c) = self.peek() {
            match c {
                '\\' => {
                    self.next();
                    name.extend(self.next());
                    continue;
                }
                '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}' => break,
                c if c.is_whitespace() => break,
                c => name.push(c),
            }
            self.next();
        }
        match name.as_str() {
            "" => None,
            "*" => Some(Step::Wildcard),
            _ => Some(Step::Field(name)),
        }
    }

    fn number(&mut self) -> Result<Value, String> {
        let start = self.at;
        while self
            .peek()
            .is_some_and(|c| c.is_alphanumeric() || matches!(c, '+' | '-' | '.'))
        {
            self.next();
        }
        let text = self.text.get(start..self.at).unwrap_or_default();
        if let Ok(whole) = text.parse::<i64>() {
            return Ok(whole.into());
        }
        text.parse::<f64>()
            .map(Value::from)
            .map_err(|_| format!("cannot parse number {text}"))
    }

    /// A string in quotes, with Go's escapes.
    fn quoted(&mut self) -> Result<String, String> {
        let quote = self.next();
        let mut text = String::new();
        loop {
            let c = self.next().ok_or("unterminated quoted string")?;
            match c {
                c if Some(c) == quote => return Ok(text),
                '\\' => match self.next().ok_or("unterminated quoted string")? {
                    'n' => text.push('\n'),
                    't' => text.push('\t'),
                    'r' => text.push('\r'),
                    c @ ('\\' | '"' | '\'' | '/') => text.push(c),
                    c => return Err(format!("invalid escape \\{c}")),
                },
                c => text.push(c),
            }
        }
    }

    /// A key in quotes: a path of its own, in which a dot that belongs to a name is `\.`.
    fn key(&mut self) -> Result<&'a str, String> {
        let quote = self.next();
        let start = self.at;
        loop {
            let c = self.next().ok_or("unterminated array")?;
            if Some(c) == quote {
                return Ok(self.text.get(start..self.at - 1).unwrap_or_default());
            }
        }
    }

    /// The inside of `[…]`.
    fn array(&mut self) -> Result<Step, String> {
        if self.rest().starts_with("?(") {
            return self.filter();
        }
        let (mut parts, mut part) = (vec![], String::new());
        loop {
            match self.peek().ok_or("unterminated array")? {
                ']' => {
                    self.next();
                    break;
                }
                '"' | '\'' => {
                    parts.push(expression(&format!(".{}", self.key()?))?);
                    while self.peek().is_some_and(char::is_whitespace) {
                        self.next();
                    }
                    match self.next() {
                        Some(']') => return Ok(union(parts)),
                        Some(',') => {}
                        _ => return Err("unterminated array".to_owned()),
                    }
                }
                ',' => {
                    self.next();
                    parts.push(vec![index(&std::mem::take(&mut part))?]);
                }
                c => {
                    part.push(c);
                    self.next();
                }
            }
        }
        parts.push(vec![index(&part)?]);
        Ok(union(parts))
    }

    fn filter(&mut self) -> Result<Step, String> {
        self.at += 2;
        let start = self.at;
        let (mut depth, mut quote) = (1, None);
        while depth > 0 {
            let c = self.next().ok_or("unterminated filter")?;
            match (quote, c) {
                (_, '\\') => {
                    self.next();
                }
                (None, '(') => depth += 1,
                (None, ')') => depth -= 1,
                (None, '"' | '\'') => quote = Some(c),
                (Some(q), c) if q == c => quote = None,
                _ => {}
            }
        }
        let text = self.text.get(start..self.at - 1).unwrap_or_default();
        if self.next() != Some(']') {
            return Err("unterminated filter".to_owned());
        }
        let Some(at) = text.find(['!', '<', '>', '=']) else {
            return Ok(Step::Filter(Filter {
                left: expression(text)?,
                comparison: None,
            }));
        };
        let (left, right) = text.split_at(at);
        let end = right
            .find(|c| !matches!(c, '!' | '<' | '>' | '='))
            .unwrap_or(right.len());
        let (sign, right) = right.split_at(end);
        if left.trim().is_empty() || right.trim().is_empty() {
            return Err(format!("invalid filter {}", text.trim()));
        }
        let comparison = match sign {
            "<" => Comparison::Less,
            "<=" => Comparison::LessEqual,
            ">" => Comparison::Greater,
            ">=" => Comparison::GreaterEqual,
            "==" => Comparison::Equal,
            "!=" => Comparison::NotEqual,
            _ => return Err(format!("unrecognized filter operator {sign}")),
        };
        Ok(Step::Filter(Filter {
            left: expression(left)?,
            comparison: Some((comparison, expression(right)?)),
        }))
    }
}

/// One part alone is itself.
fn union(mut parts: Vec<Vec<Step>>) -> Step {
    match (parts.len(), parts.pop()) {
        (1, Some(mut only)) if only.len() == 1 => only.remove(0),
        (_, last) => {
            parts.extend(last);
            Step::Union(parts)
        }
    }
}

/// `*`, `3`, `-1`, `1:3`, `::2`.
fn index(text: &str) -> Result<Step, String> {
    let text = text.trim();
    if text == "*" {
        return Ok(Step::Wildcard);
    }
    let bad = || format!("invalid array index {text}");
    let parts: Vec<Option<i64>> = text
        .split(':')
        .map(|part| match part {
            "" => Ok(None),
            part => part.parse().map(Some).map_err(|_| bad()),
        })
        .collect::<Result<_, _>>()?;
    match parts.as_slice() {
        [Some(at)] => Ok(Step::Slice(Slice {
            start: *at,
            end: Some(at.saturating_add(1)),
            step: None,
            single: true,
        })),
        [start, end] => Ok(Step::Slice(Slice {
            start: start.unwrap_or(0),
            end: *end,
            ..Slice::default()
        })),
        [start, end, step] => Ok(Step::Slice(Slice {
            start: start.unwrap_or(0),
            end: *end,
            step: *step,
            single: false,
        })),
        _ => Err(bad()),
    }
}
