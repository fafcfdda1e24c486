//! Keeps secrets out of everything that leaves the program.

/// Shorter values are not searched for: they would match ordinary words.
const SHORTEST: usize = 4;

/// Replaces each known secret by `***`.
#[derive(Clone, Default)]
pub struct Scrub {
    secrets: Vec<String>,
}

impl std::fmt::Debug for Scrub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Scrub({} secrets)", self.secrets.len())
    }
}

impl Scrub {
    /// A scrubber of these secrets; those of fewer than four bytes are left out.
    pub fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        let mut secrets: Vec<String> = secrets
            .into_iter()
            .filter(|s| s.len() >= SHORTEST)
            .collect();
        // The longest first, so that a secret that contains another vanishes whole.
        secrets.sort_by_key(|s| std::cmp::Reverse(s.len()));
        secrets.dedup();
        Self { secrets }
    }

    /// `text` without secrets.
    pub fn clean(&self, text: &str) -> String {
        self.secrets
            .iter()
            .fold(text.to_owned(), |text, secret| text.replace(secret, "***"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_vanish_the_longest_first() {
        let scrub = Scrub::new(["S3cr3t".into(), "S3cr3t-marker".into(), "ab".into()]);
        assert_eq!(scrub.clean("x S3cr3t-marker y S3cr3t ab"), "x *** y *** ab");
    }

    #[test]
    fn debug_shows_no_secret() {
        assert_eq!(
            format!("{:?}", Scrub::new(["S3cr3t-marker".into()])),
            "Scrub(1 secrets)"
        );
    }
}
