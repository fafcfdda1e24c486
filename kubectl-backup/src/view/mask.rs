//! Values that may be secret are never shown.

/// What stands for a value that is not shown.
pub(crate) const MASK: &str = "******";

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
pub(crate) fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    SECRET_WORDS.iter().any(|word| name.contains(word))
}

/// True if a field of this name holds a secret itself; references to one do not.
pub(crate) fn is_secret_field(name: &str) -> bool {
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
pub(crate) fn value(name: &str, value: &str) -> String {
    if value.is_empty() {
        return "\"\"".to_owned();
    }
    if is_secret(name) {
        return MASK.to_owned();
    }
    text(value)
}

/// Text without passwords in URLs and in `--password=…` arguments.
pub(crate) fn text(text: &str) -> String {
    text.split_inclusive(char::is_whitespace)
        .map(word)
        .collect()
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
