//! The name that was meant where another was written.

/// The candidate nearest to a name that was not found, if it is near enough to be meant.
#[must_use]
pub fn nearest<'a>(name: &str, candidates: &'a [String]) -> Option<&'a str> {
    let limit = name.len().div_ceil(3).max(1);
    candidates
        .iter()
        .map(|candidate| (edits(name, candidate), candidate.as_str()))
        .filter(|(distance, _)| *distance <= limit)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Edit distance: characters to insert, delete or replace.
fn edits(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (line, a) in from.chars().enumerate() {
        let mut diagonal = line;
        row[0] = line + 1;
        for (column, b) in to.iter().enumerate() {
            let best = (diagonal + usize::from(a != *b))
                .min(row[column] + 1)
                .min(row[column + 1] + 1);
            diagonal = row[column + 1];
            row[column + 1] = best;
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_is_recognised() {
        let names = ["shop", "billing", "crm"].map(String::from);
        assert_eq!(nearest("shp", &names), Some("shop"));
        assert_eq!(nearest("bilings", &names), Some("billing"));
        assert_eq!(nearest("warehouse", &names), None);
    }
}
