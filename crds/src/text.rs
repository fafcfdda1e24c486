//! Text of others made fit to be shown: one rule for status, events, tables, logs and warnings.

/// True if `c` moves a cursor, changes the direction or order of what is read, or cannot be seen:
/// control characters, line and paragraph separators, marks and overrides of direction, characters
/// of no width, fillers, tags and variation selectors (Unicode's Cc, and what of Cf, Zl, Zp and
/// Default_Ignorable_Code_Point nobody sees).
#[must_use]
pub fn is_unseen(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}'
                | '\u{34f}'
                | '\u{61c}'
                | '\u{115f}'..='\u{1160}'
                | '\u{17b4}'..='\u{17b5}'
                | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{3164}'
                | '\u{fe00}'..='\u{fe0f}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff0}'..='\u{fffb}'
                | '\u{1bca0}'..='\u{1bca3}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

/// An error with its causes, in one line, as they say it. A cause whose words were said already is
/// not repeated.
#[must_use]
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

/// What stands in the place of an unseen character: a blank for control characters and line ends,
/// else a mark, so that two texts that differ look different. [`is_unseen`] decides.
#[must_use]
pub fn seen(c: char) -> char {
    match c {
        c if c.is_control() => ' ',
        '\u{2028}' | '\u{2029}' => ' ',
        c if is_unseen(c) => char::REPLACEMENT_CHARACTER,
        c => c,
    }
}

/// `text` in one line without unseen characters and of at most `max` characters, cut with `…`.
#[must_use]
pub fn clean(text: &str, max: usize) -> String {
    let plain: String = text.chars().map(seen).collect();
    let plain = plain.trim();
    if plain.chars().count() <= max {
        return plain.to_owned();
    }
    plain
        .chars()
        .take(max.saturating_sub(1))
        .chain(['…'])
        .collect()
}

/// `text` of several lines without unseen characters but line ends.
#[must_use]
pub fn clean_lines(text: &str) -> String {
    let kept = |c: char| if c == '\n' { c } else { seen(c) };
    text.chars().map(kept).collect()
}

/// A word for machines: the first `max` ASCII letters and digits.
#[must_use]
pub fn word(text: &str, max: usize) -> String {
    text.chars()
        .filter(char::is_ascii_alphanumeric)
        .take(max)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Unicode's own lists: Bidi_Control, the characters of no width, the separators, and tags.
    #[test]
    fn o11_nothing_that_turns_or_hides_text_is_let_through() {
        let bidi = [
            '\u{61c}', '\u{200e}', '\u{200f}', '\u{202a}', '\u{202b}', '\u{202c}', '\u{202d}',
            '\u{202e}', '\u{2066}', '\u{2067}', '\u{2068}', '\u{2069}',
        ];
        let no_width = [
            '\u{ad}',
            '\u{200b}',
            '\u{200c}',
            '\u{200d}',
            '\u{2060}',
            '\u{2063}',
            '\u{feff}',
            '\u{180e}',
            '\u{fe0f}',
            '\u{e0001}',
            '\u{e0041}',
            '\u{e0100}',
            '\u{3164}',
        ];
        for c in bidi.into_iter().chain(no_width) {
            assert!(is_unseen(c), "{:x}", u32::from(c));
            assert_eq!(clean(&format!("a{c}b"), 9), "a\u{fffd}b");
        }
        for c in [
            '\0', '\u{1b}', '\r', '\n', '\t', '\u{7f}', '\u{85}', '\u{9b}', '\u{2028}', '\u{2029}',
        ] {
            assert_eq!(clean(&format!("a{c}b"), 9), "a b", "{:x}", u32::from(c));
        }
        for text in ["größe", "备份", "резерв", "🎉", "גיבוי", "نسخة", "…"] {
            assert_eq!(clean(text, 99), text);
        }
    }

    #[test]
    fn lines_stay_lines() {
        assert_eq!(clean_lines("a\nb\u{202e}c\u{1b}[31m"), "a\nb\u{fffd}c [31m");
        assert_eq!(word("No Space\u{202e}!", 6), "NoSpac");
    }

    proptest! {
        #[test]
        fn a_clean_text_is_short_and_stays_as_it_is(text in "\\PC{0,40}|.{0,40}", max in 0_usize..50) {
            let once = clean(&text, max);
            prop_assert!(once.chars().count() <= max.max(1));
            prop_assert!(!once.chars().any(is_unseen));
            prop_assert_eq!(clean(&once, max), once.clone());
        }
    }
}
