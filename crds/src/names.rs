//! Names of Jobs: fixed by object and instant, so that creating twice is creating once
//! (CronJob rule 35).

use chrono::{DateTime, Utc};
use sha2::{Digest, Sha256};

/// Longest name of an object whose Jobs carry `-<8 digits>` or more (CronJob rule 35).
pub const MAX_NAME: usize = 52;
/// Longest Job name that keeps pod names and labels valid.
const MAX_JOB_NAME: usize = 63;

/// Name of the Job of a slot on the full minute: `<name>-<slot in unix minutes>`.
/// A slot off the full minute, or a name that would grow too long, gets [`hashed_slot_name`].
pub fn slot_name(owner: &str, uid: &str, slot: DateTime<Utc>) -> String {
    if slot.timestamp() % 60 == 0 && slot.timestamp_subsec_nanos() == 0 {
        let name = format!("{owner}-{}", slot.timestamp().div_euclid(60));
        if name.len() <= MAX_JOB_NAME {
            return name;
        }
    }
    hashed_slot_name(owner, uid, slot)
}

/// `<name cut>-<8 hex of hash(uid, slot)>`: for slots off the full minute and for slots that met
/// another controller's Job of the plain name.
pub fn hashed_slot_name(owner: &str, uid: &str, slot: DateTime<Utc>) -> String {
    cut(
        owner,
        &format!("-{}", short_hash(&[uid, &slot.timestamp().to_string()], 8)),
    )
}

/// `<name>-m<8 hex of hash(uid, request id)>`: a run somebody asked for. The same id gives the
/// same run.
pub fn manual_name(owner: &str, uid: &str, request_id: &str) -> String {
    cut(owner, &format!("-m{}", short_hash(&[uid, request_id], 8)))
}

/// `<name>-i<8 hex of hash(uid)>`: the one run of an object without a schedule.
pub fn immediate_name(owner: &str, uid: &str) -> String {
    cut(owner, &format!("-i{}", short_hash(&[uid], 8)))
}

/// True if `run` has the form of the name of a run of `owner`: the only trace of a run that status no
/// longer lists.
pub fn may_be_run_of(owner: &str, run: &str) -> bool {
    let Some((_, tail)) = run.rsplit_once('-') else {
        return false;
    };
    let hash = tail.strip_prefix(['m', 'i']).unwrap_or(tail);
    let is_hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    let hashed = hash.len() == 8 && hash.chars().all(is_hex);
    let minutes = tail.len() >= 6 && tail.chars().all(|c| c.is_ascii_digit());
    (hashed || minutes) && cut(owner, &format!("-{tail}")) == run
}

/// `<name>-r<8 hex of hash(uid)>`: the one Job of a Restore.
pub fn restore_name(owner: &str, uid: &str) -> String {
    cut(owner, &format!("-r{}", short_hash(&[uid], 8)))
}

/// `<name>-v<8 hex of hash(uid, run)>`: the one verification by restore of a run.
pub fn verify_name(owner: &str, uid: &str, run: &str) -> String {
    cut(owner, &format!("-v{}", short_hash(&[uid, run], 8)))
}

/// `<name>-n<8 hex of hash(uid, subject, event)>`: the one notice of a run or slot.
pub fn notify_name(owner: &str, uid: &str, subject: &str, event: &str) -> String {
    cut(
        owner,
        &format!("-n{}", short_hash(&[uid, subject, event], 8)),
    )
}

/// `<name>-b<8 hex of hash(uid, slot)>`: the one pull of binary logs of a slot.
pub fn binlogs_name(owner: &str, uid: &str, slot: DateTime<Utc>) -> String {
    cut(
        owner,
        &format!("-b{}", short_hash(&[uid, &slot.timestamp().to_string()], 8)),
    )
}

/// Name of the one event of (object, slot or run, reason): a crash does not repeat it.
pub fn event_name(owner: &str, uid: &str, subject: &str, reason: &str) -> String {
    cut(
        owner,
        &format!(".{}", short_hash(&[uid, subject, reason], 16)),
    )
}

/// The first `hex` digits of the SHA-256 of the parts, each closed by a zero byte.
pub fn short_hash(parts: &[&str], hex: usize) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.as_bytes());
        hash.update([0]);
    }
    let mut text: String = hash.finalize().iter().map(|b| format!("{b:02x}")).collect();
    text.truncate(hex);
    text
}

/// `owner` + `suffix` within the limit, valid as DNS-1123 subdomain: a cut never ends in `-` or `.`.
fn cut(owner: &str, suffix: &str) -> String {
    let room = MAX_JOB_NAME - suffix.len();
    let mut end = owner.len().min(room);
    while !owner.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{suffix}", owner[..end].trim_end_matches(['-', '.']))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::parse_rfc3339;
    use proptest::prelude::*;

    #[test]
    fn minutes_of_the_field_case_c01() {
        let a = parse_rfc3339("2023-10-29T00:00:00Z").unwrap();
        let b = parse_rfc3339("2023-10-29T01:00:00Z").unwrap();
        assert_eq!(slot_name("m", "u", a), "m-28308960");
        assert_eq!(slot_name("m", "u", b), "m-28309020");
    }

    #[test]
    fn two_long_names_with_one_prefix_stay_apart() {
        let slot = parse_rfc3339("2023-10-29T00:00:30Z").unwrap();
        let (a, b) = ("x".repeat(52) + "aaaaaaaa", "x".repeat(52) + "bbbbbbbb");
        assert_ne!(
            hashed_slot_name(&a, "uid-a", slot),
            hashed_slot_name(&b, "uid-b", slot)
        );
        assert_ne!(manual_name(&a, "uid-a", "1"), manual_name(&b, "uid-b", "1"));
    }

    #[test]
    fn u8_a_run_is_known_by_its_name() {
        let slot = parse_rfc3339("2025-01-15T10:30:00Z").unwrap();
        let long = "x".repeat(70);
        for owner in ["shop", "shop-eu", &long] {
            for run in [
                slot_name(owner, "u", slot),
                hashed_slot_name(owner, "u", slot),
                manual_name(owner, "u", "7f3a"),
                immediate_name(owner, "u"),
            ] {
                assert!(may_be_run_of(owner, &run), "{run}");
                assert!(!may_be_run_of("shop-e", &run), "{run}");
            }
        }
        for other in [
            "shop",
            "shop-eu",
            "shop-1",
            "shop-r0123abcd",
            "shop-v0123abcd",
            "shop-0123abcg",
        ] {
            assert!(!may_be_run_of("shop", other), "{other}");
        }
        assert!(!may_be_run_of("shop", "shop-eu-28950870"));
    }

    proptest! {
        #[test]
        fn every_name_is_a_valid_job_name(owner in r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?){0,8}", secs in 0i64..4_000_000_000, id in ".{0,40}") {
            let slot = DateTime::from_timestamp(secs, 0).unwrap();
            for name in [slot_name(&owner, "u", slot), hashed_slot_name(&owner, "u", slot), manual_name(&owner, "u", &id), immediate_name(&owner, "u"), restore_name(&owner, "u"), verify_name(&owner, "u", &id), notify_name(&owner, "u", &id, "Failure")] {
                prop_assert!(name.len() <= 63, "{name}");
                prop_assert!(name.ends_with(|c: char| c.is_ascii_alphanumeric()));
                prop_assert!(!name.contains(".-") && !name.contains("-.-"), "{name}");
            }
        }
    }
}
