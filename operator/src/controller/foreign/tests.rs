#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use super::*;

const S: Duration = Duration::from_secs(1);

fn lease(renewed: &str) -> Option<String> {
    Some(renewed.to_owned())
}

#[test]
fn an_installation_is_gone_when_its_lease_is_or_stands_still_for_a_minute() {
    let t = Instant::now();
    let first = judge(None, Ok(&lease("1")), t);
    let renewed = judge(Some(&first), Ok(&lease("2")), t + 59 * S);
    let lost = judge(Some(&first), Err(false), t + 90 * S);
    let rows = [
        (
            "just seen",
            judge(None, Ok(&lease("1")), t),
            Standing::Alive,
        ),
        (
            "renewed",
            judge(Some(&first), Ok(&lease("2")), t + 70 * S),
            Standing::Alive,
        ),
        (
            "still for 59 s",
            judge(Some(&first), Ok(&lease("1")), t + 59 * S),
            Standing::Alive,
        ),
        (
            "still for 60 s",
            judge(Some(&first), Ok(&lease("1")), t + 60 * S),
            Standing::Gone,
        ),
        (
            "renewed at 59 s, looked at after 118 s",
            judge(Some(&renewed), Ok(&lease("2")), t + 118 * S),
            Standing::Alive,
        ),
        (
            "renewed at 59 s, looked at after 119 s",
            judge(Some(&renewed), Ok(&lease("2")), t + 119 * S),
            Standing::Gone,
        ),
        (
            "not there",
            judge(Some(&first), Ok(&None), t + S),
            Standing::Gone,
        ),
        (
            "may not be read",
            judge(None, Err(true), t),
            Standing::Unknown,
        ),
        (
            "no answer at first",
            judge(None, Err(false), t),
            Standing::Unknown,
        ),
        ("no answer later", lost, Standing::Alive),
        (
            "no answer, then unchanged for a minute in all",
            judge(
                Some(&judge(Some(&first), Err(false), t + 30 * S)),
                Ok(&lease("1")),
                t + 60 * S,
            ),
            Standing::Gone,
        ),
    ];
    for (what, seen, standing) in rows {
        assert_eq!(seen.standing, standing, "{what}");
    }
}
