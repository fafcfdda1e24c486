//! What must never be shown, by one rule for all programs: [`Scrub`] removes secrets that are known,
//! in every form in which programs repeat them; [`mask`] removes what looks like one, known or not.

mod forms;
mod looks;
mod parts;

pub use looks::{MASK, is_secret_field, is_secret_name, mask, value};
pub use parts::parts;

/// Shorter secrets are looked for as whole words only: anywhere else they would match ordinary text.
const SHORTEST: usize = 4;
/// What stands for a secret.
const GONE: &str = "***";

/// Replaces each known secret by `***`.
#[derive(Clone, Default)]
pub struct Scrub {
    secrets: Vec<forms::Needle>,
}

impl std::fmt::Debug for Scrub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Scrub({} secrets)", self.secrets.len())
    }
}

impl Scrub {
    /// A scrubber of these secrets.
    pub fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        let mut secrets: Vec<String> = secrets.into_iter().filter(|s| !s.is_empty()).collect();
        secrets.sort();
        secrets.dedup();
        Self {
            secrets: secrets.into_iter().map(forms::Needle::new).collect(),
        }
    }

    /// `text` without secrets: those that are known, raw, base64, hex, percent-encoded, escaped as in
    /// JSON, C, a shell, SQL or HTML, and what looks like one.
    pub fn clean(&self, text: &str) -> String {
        mask(&self.without_known(text))
    }

    fn without_known(&self, text: &str) -> String {
        let mut ranges: Vec<(usize, usize)> = self
            .secrets
            .iter()
            .flat_map(|needle| needle.ranges(text))
            .collect();
        ranges.sort_unstable();
        let mut cleaned = String::with_capacity(text.len());
        let mut at = 0;
        for (from, to) in ranges {
            if to <= at {
                continue;
            }
            if from >= at {
                cleaned.push_str(&text[at..from]);
                cleaned.push_str(GONE);
            }
            at = to;
        }
        cleaned.push_str(&text[at..]);
        cleaned
    }
}

#[cfg(test)]
mod tests;
