//! How long a restore may take, by one that was measured. PURE.

use crds::restore::{RestorePhase, RestoreSpec, RestoreStatus};
use crds::time::from_k8s;

use super::duration::{bytes, human};

/// What is said before a restore of so many bytes of dump begins. `others` are the Restores of the namespace.
pub(crate) fn estimate(
    spec: &RestoreSpec,
    checked: &RestoreStatus,
    others: &[(String, RestoreSpec, RestoreStatus)],
) -> Option<String> {
    let wanted = checked.raw_bytes.filter(|bytes| *bytes > 0)?;
    let measured = others.iter().filter_map(|(name, of, status)| {
        let same = (&of.from.kind, &of.from.name, &of.from.location)
            == (&spec.from.kind, &spec.from.name, &spec.from.location);
        let good = status.phase == Some(RestorePhase::Succeeded) && !of.dry_run;
        if !same || !good || of.replay.is_some() || of.to.volume.is_some() {
            return None;
        }
        let (from, to) = status
            .start_time
            .as_ref()
            .zip(status.completion_time.as_ref())?;
        let (from, to) = (from_k8s(from), from_k8s(to));
        let raw = status.raw_bytes.filter(|bytes| *bytes > 0)?;
        Some((to, name, raw, (to - from).num_seconds().max(1)))
    });
    let Some((_, name, raw, seconds)) = measured.max_by_key(|(ended, ..)| *ended) else {
        return Some(format!(
            "{} to load; how long that takes is not known: no restore of it has ended here yet",
            bytes(wanted)
        ));
    };
    let left = i128::from(wanted) * i128::from(seconds) / i128::from(raw);
    let left = i64::try_from(left).unwrap_or(i64::MAX).max(1);
    Some(format!(
        "{} to load, some {} by restore/{name}, which took {} for {}",
        bytes(wanted),
        human(left),
        human(seconds),
        bytes(raw)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crds::restore::Replay;
    use crds::time::to_k8s;

    fn restore(
        name: &str,
        backup: &str,
        raw: i64,
        seconds: i64,
    ) -> (String, RestoreSpec, RestoreStatus) {
        let mut spec = RestoreSpec::default();
        spec.from.name = Some(backup.to_owned());
        let start = chrono::DateTime::UNIX_EPOCH;
        let status = RestoreStatus {
            phase: Some(RestorePhase::Succeeded),
            raw_bytes: Some(raw),
            start_time: Some(to_k8s(start)),
            completion_time: Some(to_k8s(start + chrono::Duration::seconds(seconds))),
            ..RestoreStatus::default()
        };
        (name.to_owned(), spec, status)
    }

    #[test]
    fn the_newest_good_restore_of_the_same_object_counts() {
        let (_, wanted, checked) = restore("", "shop", 3 << 30, 1);
        let mut dry = restore("dry", "shop", 1 << 20, 5000);
        dry.1.dry_run = true;
        let mut failed = restore("failed", "shop", 1 << 20, 5000);
        failed.2.phase = Some(RestorePhase::Failed);
        let mut replayed = restore("replayed", "shop", 1 << 20, 5000);
        replayed.1.replay = Some(Replay::default());
        let all = [
            restore("old", "shop", 1 << 30, 300),
            restore("new", "shop", 1 << 30, 600),
            restore("other", "crm", 1 << 20, 5000),
            dry,
            failed,
            replayed,
        ];
        assert_eq!(
            estimate(&wanted, &checked, &all).as_deref(),
            Some("3.0GiB to load, some 30m by restore/new, which took 10m for 1.0GiB")
        );
        assert_eq!(
            estimate(&wanted, &checked, &all[2..]).as_deref(),
            Some(
                "3.0GiB to load; how long that takes is not known: no restore of it has ended here yet"
            )
        );
        assert_eq!(estimate(&wanted, &RestoreStatus::default(), &all), None);
    }
}
