//! kubectl's JSONPath templates (PURE), by the rules of client-go's `util/jsonpath`: missing keys
//! are no error, indices out of bounds are.

mod eval;
mod parse;

use serde_json::Value;

/// A parsed template, such as `{range .items[*]}{.metadata.name}{"\n"}{end}`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Template(Vec<Node>);

/// One expression, such as `.metadata.name`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Expression(Vec<Step>);

#[derive(Clone, Debug, PartialEq)]
enum Node {
    Text(String),
    Print(Vec<Step>),
    Range(Vec<Step>, Vec<Node>),
}

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Literal(Value),
    Field(String),
    Slice(Slice),
    Wildcard,
    Recursive,
    Union(Vec<Vec<Step>>),
    Filter(Filter),
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Slice {
    start: i64,
    end: Option<i64>,
    step: Option<i64>,
    single: bool,
}

#[derive(Clone, Debug, PartialEq)]
struct Filter {
    left: Vec<Step>,
    comparison: Option<(Comparison, Vec<Step>)>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Comparison {
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Equal,
    NotEqual,
}

impl Template {
    /// Reads a template.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        parse::template(text).map(Self)
    }

    /// What the template prints for a value.
    ///
    /// # Errors
    /// An index out of bounds; an index or filter on what is no array.
    pub(crate) fn print(&self, value: &Value) -> Result<String, String> {
        let mut text = String::new();
        eval::print(&self.0, value, &mut text)?;
        Ok(text)
    }
}

impl Expression {
    /// Reads an expression in any of kubectl's spellings: `.a.b`, `a.b`, `{.a.b}`, `{a.b}`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn relaxed(text: &str) -> Result<Self, String> {
        let bare = match text.strip_prefix('{') {
            Some(inner) => inner.strip_suffix('}'),
            None => Some(text),
        };
        let bare = bare
            .map(|t| t.strip_prefix('.').unwrap_or(t))
            .filter(|t| !t.is_empty() && !t.contains(['{', '}']))
            .ok_or_else(|| format!("unexpected path {text:?}: write it like .metadata.name"))?;
        parse::expression(&format!(".{bare}")).map(Self)
    }

    /// The values it finds.
    ///
    /// # Errors
    /// As [`Template::print`].
    pub(crate) fn find<'a>(&'a self, value: &'a Value) -> Result<Vec<&'a Value>, String> {
        eval::find(&self.0, value)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use super::*;
    use serde_json::json;

    fn print(template: &str, value: &Value) -> Result<String, String> {
        Template::parse(template)?.print(value)
    }

    /// Templates and outputs after client-go's own tests (util/jsonpath, the store example).
    #[test]
    fn as_kubectl_prints_them() {
        let store = json!({
            "Name": "jsonpath",
            "Book": [
                { "Category": "reference", "Author": "Nigel Rees", "Title": "Sayings of the Centurey", "Price": 8.95 },
                { "Category": "fiction", "Author": "Evelyn Waugh", "Title": "Sword of Honour", "Price": 12.99 },
            ],
            "Bicycle": [
                { "Color": "red", "Price": 19.95, "IsNew": true },
                { "Color": "green", "Price": 20.01, "IsNew": false },
            ],
            "Labels": { "engieer": 10, "web/html": 15, "k8s-app": 20 },
            "Employees": { "jason": "manager", "dan": "clerk" },
        });
        for (template, expected) in [
            ("hello jsonpath", "hello jsonpath"),
            ("{}", ""),
            (r#"{"{"}"#, "{"),
            ("{ 7 } of {8.5}", "7 of 8.5"),
            ("{.Name}", "jsonpath"),
            ("{$.Name}{@.Name}", "jsonpathjsonpath"),
            ("{['Name']}", "jsonpath"),
            ("{.Labels.web/html}", "15"),
            ("{.Labels['web/html']}", "15"),
            ("{['Labels.web/html']}", "15"),
            (r"{.Labels.web/html}{.Labels.k8s\-app}", "1520"),
            ("{.Employees.*}", "clerk manager"),
            ("{.Labels}", r#"{"engieer":10,"k8s-app":20,"web/html":15}"#),
            ("{.Book[0].Author}", "Nigel Rees"),
            ("{.Book[-1].Author}", "Evelyn Waugh"),
            ("{.Book[*].Author}", "Nigel Rees Evelyn Waugh"),
            ("{.Book[0:1].Author}", "Nigel Rees"),
            ("{.Book[:].Author}", "Nigel Rees Evelyn Waugh"),
            ("{.Book[::2].Author}", "Nigel Rees"),
            ("{.Book[0,1].Price}", "8.95 12.99"),
            ("{.Book[0]['Author','Price']}", "Nigel Rees 8.95"),
            ("{.Bicycle[?(@.IsNew==true)].Color}", "red"),
            ("{.Bicycle[?(@.Color==\"green\")].Price}", "20.01"),
            ("{.Bicycle[?(@.Price > 20)].Color}", "green"),
            ("{.Bicycle[?(@.Price != 20.01)].Color}", "red"),
            ("{.Bicycle[?(@.Size)].Color}", ""),
            ("{.Bicycle[?(@.Color)].Color}", "red green"),
            ("{..Color}", "red green"),
            ("{.missing.deeper}", ""),
            (
                r#"{range .Bicycle[*]}{"{"}{@.Color}{"} "}{end}"#,
                "{red} {green} ",
            ),
            (
                "{range .Bicycle[*]}{.Color}{\"\\t\"}{range .Sizes[*]}{@}{end}{.Price}{\"\\n\"}{end}!",
                "red\t19.95\ngreen\t20.01\n!",
            ),
        ] {
            assert_eq!(
                print(template, &store).as_deref(),
                Ok(expected),
                "{template}"
            );
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (template, message) in [
            ("{.a", "unclosed action"),
            ("{\"a}", "unterminated quoted string"),
            ("{.a[0}", "unterminated array"),
            ("{.a[x]}", "invalid array index x"),
            ("{end}", "not in range, nothing to end"),
            ("{foo}", "unrecognized identifier foo"),
            ("{.a[?(@.b == )]}", "invalid filter @.b =="),
            ("{.a[?(@.b)}", "unterminated filter"),
            ("{^}", "unrecognized character in action: '^'"),
        ] {
            assert_eq!(
                print(template, &json!({})).unwrap_err(),
                message,
                "{template}"
            );
        }
        let data = json!({ "a": [1, 2], "b": "text" });
        for (template, message) in [
            ("{.a[2]}", "array index out of bounds: index 2, length 2"),
            ("{.a[-3]}", "array index out of bounds: index -1, length 2"),
            ("{.b[0]}", "\"text\" is not an array"),
            (
                "{.b[?(@.x)]}",
                "\"text\" is not an array and can't be filtered",
            ),
        ] {
            assert_eq!(print(template, &data).unwrap_err(), message, "{template}");
        }
    }

    #[test]
    fn four_spellings_of_an_expression() {
        let value = json!({ "metadata": { "name": "shop" } });
        for text in [
            "metadata.name",
            ".metadata.name",
            "{metadata.name}",
            "{.metadata.name}",
        ] {
            let expression = Expression::relaxed(text).unwrap();
            assert_eq!(expression.find(&value).unwrap(), [&json!("shop")], "{text}");
        }
        for bad in ["", "{", "{}", "{.a}{.b}", "."] {
            assert!(Expression::relaxed(bad).is_err(), "{bad}");
        }
    }
}
