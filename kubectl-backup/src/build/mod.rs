//! What is sent, made from what was typed (PURE): objects, and the pod of a download.

pub(crate) mod download_pod;
pub(crate) mod file;
pub(crate) mod gobackup;
pub(crate) mod moment;
pub(crate) mod mysql;
pub(crate) mod needs;
pub(crate) mod restore;
pub(crate) mod suspension;

/// Names the server would refuse.
pub(crate) fn bad_name(name: &str) -> Option<String> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
    let edge = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let good = name.chars().all(allowed) && name.starts_with(edge) && name.ends_with(edge);
    (!good).then(|| {
        format!("invalid name {name:?}: use lower case letters, digits, - and ., with a letter or digit at both ends")
    })
}
