//! Names of what is not published yet, for stores that keep files: a dead attempt's are known by
//! its run and removed.

use super::Attempt;

/// Temporaries and marks of the runner begin so; listings leave them out.
pub(super) const OWN: &str = ".backup-runner.";

/// The temporary beside `key` of this attempt.
pub(super) fn name(attempt: &Attempt, key: &str) -> String {
    let file = key.rsplit('/').next().unwrap_or(key);
    let tag = crds::names::short_hash(&[file], 6);
    let a = attempt;
    beside(
        key,
        &format!("{OWN}{}~{}~{}~{tag}.tmp", a.run, a.pod, a.nonce),
    )
}

/// `name` in the directory of `key`.
pub(super) fn beside(key: &str, name: &str) -> String {
    match key.rsplit_once('/') {
        Some((directory, _)) => format!("{directory}/{name}"),
        None => name.to_owned(),
    }
}

/// A file that an attempt of this run, other than this one, left behind.
pub(super) fn is_dead(attempt: &Attempt, name: &str) -> bool {
    name.starts_with(&format!("{OWN}{}~", attempt.run))
        && name.ends_with(".tmp")
        && !name.contains(&attempt.nonce)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_runs_dead_attempts_are_dead() {
        let mut attempt = Attempt {
            run: "nightly-1".into(),
            pod: "p".into(),
            nonce: "n1".into(),
        };
        let name = name(&attempt, "a/b/x.tar.gz");
        assert!(
            name.starts_with("a/b/.backup-runner.nightly-1~p~n1~"),
            "{name}"
        );
        let file = name.rsplit('/').next().unwrap_or_default();
        assert!(!is_dead(&attempt, file));
        attempt.nonce = "n2".into();
        assert!(is_dead(&attempt, file));
        attempt.run = "nightly-2".into();
        assert!(!is_dead(&attempt, file));
        assert!(!is_dead(&attempt, "x.tar.gz"));
    }
}
