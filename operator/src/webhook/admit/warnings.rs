//! What of all warnings reaches the user. The API server passes on 4096 characters of them all;
//! beyond that it cuts each to 256 and drops what comes then, and one with a control character is
//! dropped at once.

use crds::report::clean;

/// Characters of all warnings together, which leaves room for a last one that counts the rest.
const ALL: usize = 4000;
/// Characters of each where all are too many.
const EACH: usize = 250;

/// The warnings as they are if there is room, else each cut and the last ones counted.
pub(super) fn fitted(all: &[String]) -> Option<Vec<String>> {
    let length = |text: &str| text.chars().count();
    let all: Vec<String> = all.iter().map(|text| clean(text, ALL)).collect();
    let room = all.iter().map(|text| length(text)).sum::<usize>() <= ALL;
    let mut left = ALL;
    let mut kept = vec![];
    for (i, text) in all.iter().enumerate() {
        let text = if room {
            text.clone()
        } else {
            clean(text, EACH)
        };
        let Some(rest) = left.checked_sub(length(&text)) else {
            kept.push(format!("and {} more", all.len() - i));
            break;
        };
        left = rest;
        kept.push(text);
    }
    (!kept.is_empty()).then_some(kept)
}
