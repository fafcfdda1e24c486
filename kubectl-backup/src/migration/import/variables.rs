//! The variables that the file's text names.

/// `NAME=VALUE` lines, with `export` and quotes as in a .env file.
pub(crate) fn pairs(text: &str) -> Vec<(String, String)> {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| {
            let line = line.strip_prefix("export ").unwrap_or(line);
            let (name, value) = line.split_once('=')?;
            let value = value.trim();
            let bare = ['"', '\'']
                .iter()
                .find_map(|q| value.strip_prefix(*q)?.strip_suffix(*q));
            Some((name.trim().to_owned(), bare.unwrap_or(value).to_owned()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_dot_env() {
        let pairs = pairs("# x=y\nA=1\nexport B=\"two words\"\nC='$x'\n\nbare\n");
        let names: Vec<_> = pairs
            .iter()
            .map(|(k, v)| (k.as_str(), v.as_str()))
            .collect();
        assert_eq!(names, [("A", "1"), ("B", "two words"), ("C", "$x")]);
    }
}
