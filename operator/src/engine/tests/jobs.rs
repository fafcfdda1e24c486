//! The Jobs that a plan carries.

use super::*;

/// A slot that is due.
fn due() -> (Observed, DateTime<Utc>) {
    let mut seen = observed("* * * * *", "2025-01-01T00:00:30Z");
    (seen.live, seen.pods_live) = (true, true);
    (seen, t("2025-01-01T00:01:00Z"))
}

#[test]
fn h4_a_plan_holds_each_job_as_it_is_sent() {
    let (seen, now) = due();
    let plan = plan(&seen, now, &built);
    let jobs: Vec<_> = plan
        .steps
        .iter()
        .filter_map(|step| match step {
            Step::CreateJob { seed, job } => Some((seed, job)),
            _ => None,
        })
        .collect();
    assert_eq!(jobs.len(), 1);
    assert_eq!(**jobs[0].1, built(jobs[0].0).unwrap());
    assert_eq!(plan.starts(), 1);
}

/// It takes no place from others, and is told as a start that failed.
#[test]
fn h4_a_job_that_can_not_be_built_is_none() {
    let (seen, now) = due();
    let why = Unbuilt {
        reason: reason::POLICY_DENIED,
        message: "volume".into(),
    };
    let plan = plan(&seen, now, &|_| Err(why.clone()));
    let noted = |step: &Step| matches!(step, Step::CannotBuild { why: said, .. } if *said == why);
    assert_eq!(plan.steps.iter().filter(|s| noted(s)).count(), 1);
    assert_eq!(plan.starts(), 0);
}
