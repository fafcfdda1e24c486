//! Names of what the runner keeps for itself beside artefacts: what is not published yet, claims on
//! keys, and marks of runs.

use crate::store::Attempt;

/// Temporaries, claims and marks of the runner begin so; listings leave them out.
pub(super) const OWN: &str = ".backup-runner.";

/// What such a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An artefact, or something small, on its way.
    Temporary,
    /// Says that an attempt is at a key.
    Claim,
    /// Says something of a run that has ended.
    Mark,
}

/// What the name of such a file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name<'a> {
    /// What it is.
    pub kind: Kind,
    /// Name of the run.
    pub run: &'a str,
    /// The pod.
    pub pod: &'a str,
    /// The attempt.
    pub nonce: &'a str,
    /// Which key a claim is on.
    pub tag: &'a str,
}

impl<'a> Name<'a> {
    /// Reads a key's last part; `None` if it is no such file.
    pub fn parse(key: &'a str) -> Option<Self> {
        let name = key.rsplit('/').next().unwrap_or(key).strip_prefix(OWN)?;
        let (kind, name) = match (name.strip_suffix(".tmp"), name.strip_suffix(".claim")) {
            (Some(name), _) => (Kind::Temporary, name),
            (None, Some(name)) => (Kind::Claim, name),
            (None, None) => (Kind::Mark, name),
        };
        let mut parts = name.split('~');
        let run = parts.next().unwrap_or_default();
        if kind == Kind::Mark {
            return Some(Self {
                kind,
                run,
                pod: "",
                nonce: "",
                tag: "",
            });
        }
        let pod = parts.next().unwrap_or_default();
        let nonce = parts.next().unwrap_or_default();
        Some(Self {
            kind,
            run,
            pod,
            nonce: nonce.split('.').next().unwrap_or(nonce),
            tag: parts.next().unwrap_or_default(),
        })
    }

    /// True if it is of this start of the program.
    pub fn is_of(&self, attempt: &Attempt) -> bool {
        self.kind != Kind::Mark && self.nonce == attempt.nonce
    }

    /// True if it is of an attempt of the same run that began before this one, which replaces it.
    pub fn is_replaced_by(&self, attempt: &Attempt) -> bool {
        self.kind != Kind::Mark
            && self.run == attempt.run
            && began(self.nonce)
                .zip(began(&attempt.nonce))
                .is_some_and(|(theirs, ours)| theirs < ours)
    }
}

/// When the attempt of a nonce began, in microseconds.
fn began(nonce: &str) -> Option<u64> {
    let hex = nonce.split('-').next()?;
    u64::from_str_radix(hex, 16).ok()
}

/// Tells keys apart in the names of temporaries and claims.
pub(super) fn tag(key: &str) -> String {
    crds::names::short_hash(&[key.rsplit('/').next().unwrap_or(key)], 10)
}

/// The temporary beside `key` of this attempt.
pub(super) fn name(attempt: &Attempt, key: &str) -> String {
    let a = attempt;
    let tag = tag(key);
    beside(
        key,
        &format!("{OWN}{}~{}~{}~{tag}.tmp", a.run, a.pod, a.nonce),
    )
}

/// Name of this attempt's claim on `key`.
pub(super) fn claim(attempt: &Attempt, key: &str) -> String {
    let a = attempt;
    format!("{OWN}{}~{}~{}~{}.claim", a.run, a.pod, a.nonce, tag(key))
}

/// `name` in the directory of `key`.
pub(super) fn beside(key: &str, name: &str) -> String {
    match key.rsplit_once('/') {
        Some((directory, _)) => format!("{directory}/{name}"),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn attempt(run: &str, nonce: &str) -> Attempt {
        Attempt {
            run: run.into(),
            pod: "p".into(),
            nonce: nonce.into(),
        }
    }

    #[test]
    fn names_are_read_as_they_are_made() {
        let first = attempt("nightly-1", "64f0-7");
        let name = name(&first, "a/b/x.tar.gz");
        assert!(
            name.starts_with("a/b/.backup-runner.nightly-1~p~64f0-7~"),
            "{name}"
        );
        let read = Name::parse(&name).unwrap();
        assert_eq!(
            (read.kind, read.run, read.pod, read.nonce),
            (Kind::Temporary, "nightly-1", "p", "64f0-7")
        );
        let claim = claim(&first, "a/b/x.tar.gz");
        let read = Name::parse(&claim).unwrap();
        assert_eq!(
            (read.kind, read.tag),
            (Kind::Claim, tag("x.tar.gz").as_str())
        );
        for name in [
            ".backup-runner.nightly-1~p~64f0-7.tmp",
            ".backup-runner.nightly-1~p~64f0-7~3.tmp",
            ".backup-runner.nightly-1~p~64f0-7.tmp.json.tmp",
        ] {
            assert!(Name::parse(name).unwrap().is_of(&first), "{name}");
        }
        let mark = Name::parse(".backup-runner.nightly-1~told-failure").unwrap();
        assert_eq!((mark.kind, mark.run), (Kind::Mark, "nightly-1"));
        assert_eq!(Name::parse("x.tar.gz"), None);
    }

    #[test]
    fn t1_only_an_earlier_attempt_of_the_same_run_is_replaced() {
        let ours = attempt("r-1", "200-1");
        for (run, nonce, expected) in [
            ("r-1", "1ff-9", true),
            ("r-1", "200-1", false),
            ("r-1", "201-1", false),
            ("r-2", "1ff-9", false),
            ("r-1", "odd", false),
        ] {
            let name = name(&attempt(run, nonce), "x.sql");
            let read = Name::parse(&name).unwrap();
            assert_eq!(read.is_replaced_by(&ours), expected, "{run} {nonce}");
        }
    }
}
