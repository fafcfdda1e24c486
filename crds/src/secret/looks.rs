//! What looks like a secret, whoever says it and whether it is known or not.

/// What stands for a value that is not shown.
pub const MASK: &str = "******";

/// Parts of names whose values are secret.
const SECRET_WORDS: [&str; 12] = [
    "PASS",
    "PWD",
    "SECRET",
    "TOKEN",
    "KEY",
    "CREDENTIAL",
    "AUTH",
    "PRIVATE",
    "APIURL",
    "WEBHOOK",
    "DSN",
    "COOKIE",
];

/// True if a variable of this name may hold a secret. `APIURL` is one: the bot's token is its path.
pub fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    SECRET_WORDS.iter().any(|word| name.contains(word))
}

/// True if a field of this name holds a secret itself; references to one do not.
pub fn is_secret_field(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    [
        "password",
        "passwd",
        "token",
        "secret",
        "secretaccesskey",
        "access_token",
    ]
    .contains(&name.as_str())
}

/// The value of a variable as it may be shown.
pub fn value(name: &str, value: &str) -> String {
    if value.is_empty() {
        return "\"\"".to_owned();
    }
    if is_secret_name(name) {
        return MASK.to_owned();
    }
    mask(value)
}

/// Text without private keys, tokens, passwords in URLs, in `--password=…` and in `IDENTIFIED BY '…'`.
pub fn mask(text: &str) -> String {
    let text = keys(text);
    let mut masked = String::with_capacity(text.len());
    let mut before = String::new();
    for part in text.split_inclusive(char::is_whitespace) {
        let word_end = part.trim_end().len();
        let (own, blank) = part.split_at(word_end);
        // `Authorization: Bearer TOKEN`, `Basic BASE64`.
        let announced = matches!(before.as_str(), "bearer" | "basic") && own.len() >= 8;
        if announced || is_token(own) {
            masked.push_str(MASK);
            masked.push_str(blank);
        } else {
            masked.push_str(&word(part));
        }
        if !own.is_empty() {
            before = own.trim_matches(['"', '\'', ':']).to_ascii_lowercase();
        }
    }
    identified_by(&masked)
}

/// Text without age's private keys and PEM's.
fn keys(text: &str) -> String {
    let mut text = text.to_owned();
    let mut from = 0;
    while let Some(at) = text[from..]
        .to_ascii_uppercase()
        .find("AGE-SECRET-KEY-")
        .map(|i| from + i)
    {
        let end = text[at..]
            .find(|c: char| !(c.is_ascii_alphanumeric() || c == '-'))
            .map_or(text.len(), |i| at + i);
        text.replace_range(at..end, MASK);
        from = at + MASK.len();
    }
    let mut from = 0;
    while let Some(at) = text[from..].find("-----BEGIN ").map(|i| from + i) {
        let head = text[at + 11..]
            .find("-----")
            .map_or(text.len(), |i| at + 11 + i + 5);
        if !text[at..head].contains("PRIVATE KEY") {
            from = head;
            continue;
        }
        // A key that was cut has no end.
        let end = text[head..]
            .find("-----END ")
            .and_then(|i| Some(head + i + 9 + text[head + i + 9..].find("-----")? + 5))
            .unwrap_or(text.len());
        text.replace_range(at..end, MASK);
        from = at + MASK.len();
    }
    text
}

/// A JSON Web Token: three parts of base64, the first of which begins a JSON object.
fn is_token(word: &str) -> bool {
    let word = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    let parts: Vec<&str> = word.split('.').collect();
    parts.len() == 3 && parts[0].starts_with("eyJ") && parts.iter().all(|p| p.len() >= 4)
}

/// SQL that sets a password.
fn identified_by(text: &str) -> String {
    let mut text = text.to_owned();
    let mut from = 0;
    while let Some(at) = text[from..]
        .to_ascii_uppercase()
        .find("IDENTIFIED ")
        .map(|i| from + i)
    {
        from = at + 11;
        let Some(open) = text[from..].find(['\'', '"']).map(|i| from + i) else {
            break;
        };
        let between = text[from..open].to_ascii_uppercase();
        if !between.trim_end().ends_with("BY")
            && !between.trim_end().ends_with("AS")
            && !between.trim_end().ends_with("PASSWORD")
        {
            continue;
        }
        let quote = &text[open..=open];
        let end = text[open + 1..]
            .find(quote)
            .map_or(text.len(), |i| open + 1 + i);
        text.replace_range(open + 1..end, MASK);
        from = open + 1 + MASK.len();
    }
    text
}

fn word(word: &str) -> String {
    let lower = word.to_ascii_lowercase();
    for flag in [
        "--password=",
        "password=",
        "passwd=",
        "pwd=",
        "token=",
        "secret=",
    ] {
        if let Some(at) = lower.find(flag) {
            let start = at + flag.len();
            let end = word[start..]
                .find(|c: char| c.is_whitespace() || c == '&' || c == ';')
                .map_or(word.len(), |end| start + end);
            if end > start {
                return format!("{}{MASK}{}", &word[..start], self::word(&word[end..]));
            }
        }
    }
    let Some((scheme, rest)) = word.split_once("://") else {
        return word.to_owned();
    };
    let end = rest.find('/').unwrap_or(rest.len());
    match rest[..end].rsplit_once('@') {
        Some((user, host)) => {
            let name = user.split(':').next().unwrap_or_default();
            let masked = if user.contains(':') {
                format!("{name}:{MASK}")
            } else {
                name.to_owned()
            };
            format!("{scheme}://{masked}@{host}{}", &rest[end..])
        }
        None => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_marker_is_nowhere() {
        let marker = "S3cr3t-marker";
        let shown = [
            value("PASSWORD", marker),
            value("mysql_pwd", marker),
            value("AWS_SECRET_ACCESS_KEY", marker),
            value("APIURL", &format!("https://bot.example/hook/{marker}")),
            value("SOURCE", &format!("mysql://root:{marker}@db:3306/shop")),
            value(
                "ARGS",
                &format!("--single-transaction --password={marker} shop"),
            ),
            value("ARGS", &format!("user=root;password={marker};x=1")),
        ];
        assert!(!shown.concat().contains(marker), "{shown:?}");
        assert_eq!(shown[4], format!("mysql://root:{MASK}@db:3306/shop"));
        assert_eq!(
            shown[5],
            format!("--single-transaction --password={MASK} shop")
        );
    }

    #[test]
    fn plain_values_stay() {
        assert_eq!(value("HOST", "db.example"), "db.example");
        assert_eq!(value("SQLPATH", "/mnt"), "/mnt");
        assert_eq!(
            value("X", "https://db.example/a@b"),
            "https://db.example/a@b"
        );
        assert_eq!(value("PASSWORD", ""), "\"\"");
    }
}
