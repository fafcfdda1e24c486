//! A schedule in words.
use super::Kind;

pub(super) fn describe(_kind: &Kind) -> String {
    String::new()
}
