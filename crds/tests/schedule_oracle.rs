//! Random schedules against an independent reading of the same rules in Python, which searches
//! the wall clock minute by minute (`oracle/robfig_ref.py`): 20,000 cases, and a million with
//! `KUBECTL_BACKUP_LONG=1`. Both sides have tz data of their own; a case where they differ in the
//! searched time is left out, counted, and may not become frequent.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use chrono::{DateTime, Offset, TimeZone};
use chrono_tz::{TZ_VARIANTS, Tz};
use crds::schedule::Schedule;

const DAY: i64 = 86_400;
/// Python processes at work side by side.
const ORACLES: usize = 2;

/// SplitMix64: the same cases in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`.
    fn below(&mut self, end: i64) -> i64 {
        i64::try_from(self.next() % u64::try_from(end).unwrap()).unwrap()
    }

    /// True in `percent` of all calls.
    fn in_percent(&mut self, percent: i64) -> bool {
        self.below(100) < percent
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        let index = self.below(i64::try_from(from.len()).unwrap());
        &from[usize::try_from(index).unwrap()]
    }
}

struct Question {
    expression: String,
    zone: &'static str,
    start: i64,
    limit: i64,
}

fn offset(zone: Tz, at: i64) -> i64 {
    let at = DateTime::from_timestamp(at, 0).unwrap().naive_utc();
    i64::from(zone.offset_from_utc_datetime(&at).fix().local_minus_utc())
}

/// The zone's offsets in the form of `batch.py`, with code apart from the product's.
fn offsets(zone: Tz, start: i64, limit: i64) -> String {
    let (mut at, mut now) = (start, offset(zone, start));
    let mut found = now.to_string();
    while at < limit {
        let mut high = (at + DAY).min(limit);
        if offset(zone, high) != now {
            let mut low = at;
            while high - low > 1 {
                let middle = i64::midpoint(low, high);
                if offset(zone, middle) == now {
                    low = middle
                } else {
                    high = middle
                }
            }
            now = offset(zone, high);
            write!(found, ";{high}:{now}").unwrap();
        }
        at = high;
    }
    found
}

fn item(random: &mut Random, low: i64, high: i64, names: &[&str]) -> String {
    let value = |random: &mut Random| low + random.below(high - low + 1);
    let text = |random: &mut Random, value: i64| match usize::try_from(value - low) {
        Ok(index) if index < names.len() && random.in_percent(30) => names[index].to_owned(),
        _ => value.to_string(),
    };
    let first = value(random);
    let mut item = match random.below(10) {
        0..4 => text(random, first),
        4..7 => {
            let second = first + random.below(high - first + 1);
            format!("{}-{}", text(random, first), text(random, second))
        }
        7 => "?".to_owned(),
        _ => "*".to_owned(),
    };
    if random.in_percent(40) {
        write!(item, "/{}", 1 + random.below(high.min(20))).unwrap();
    }
    item
}

fn field(random: &mut Random, stars: i64, bounds: (i64, i64), names: &[&str]) -> String {
    if random.in_percent(stars) {
        return "*".to_owned();
    }
    let count = 1 + random.below(3);
    let items: Vec<String> = (0..count)
        .map(|_| item(random, bounds.0, bounds.1, names))
        .collect();
    items.join(",")
}

fn expression(random: &mut Random) -> String {
    const MONTHS: [&str; 12] = [
        "Jan", "feb", "MAR", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ];
    const DAYS: [&str; 7] = ["sun", "Mon", "TUE", "wed", "thu", "fri", "sat"];
    let mut text = [
        field(random, 20, (0, 59), &[]),
        field(random, 30, (0, 23), &[]),
        field(random, 50, (1, 31), &[]),
        field(random, 80, (1, 12), &MONTHS),
        field(random, 50, (0, 6), &DAYS),
    ]
    .join(" ");
    // Some that may be refused, and some oddities that are not.
    if random.in_percent(8) {
        let letters: Vec<char> = "*?/-,+ 0179@Ll#W.sunTZ\u{b5}".chars().collect();
        let places: Vec<usize> = text.char_indices().map(|(place, _)| place).collect();
        let (place, letter) = (*random.pick(&places), *random.pick(&letters));
        text.insert(place, letter);
    }
    text
}

/// Changes of each zone in the years that are asked about.
fn changes() -> Vec<(Tz, Vec<i64>)> {
    let (start, end) = (1_104_537_600, 2_871_763_200); // 2005 to 2060
    let changes_of = |zone: Tz| {
        let days = (start..end).step_by(2 * 86_400);
        days.filter(|at| offset(zone, *at) != offset(zone, at + 2 * DAY))
            .collect()
    };
    TZ_VARIANTS
        .into_iter()
        .map(|zone| (zone, changes_of(zone)))
        .collect()
}

fn question(random: &mut Random, zones: &[(Tz, Vec<i64>)]) -> Question {
    let (mut zone, mut changes) = random.pick(zones).clone();
    // Half of all zones do not change any more; they are asked about less often.
    while changes.is_empty() && random.in_percent(80) {
        (zone, changes) = random.pick(zones).clone();
    }
    let start = match changes.as_slice() {
        [] => 1_104_537_600 + random.below(1_767_225_600),
        _ if random.in_percent(10) => 1_104_537_600 + random.below(1_767_225_600),
        changes => random.pick(changes) - 2 * DAY + random.below(4 * DAY),
    };
    let days = match random.below(1000) {
        0..3 => 400,
        3..150 => 35,
        _ => 4,
    };
    Question {
        expression: expression(random),
        zone: zone.name(),
        start,
        limit: start + days * DAY,
    }
}

/// Both columns of the oracle's answer for each question, in order.
fn ask(questions: &[Question]) -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle");
    let mut oracle = Command::new("python3")
        .arg("-B")
        .arg(folder.join("batch.py"))
        .env("PYTHONUTF8", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 with zoneinfo (3.9 or later) and the package tzdata are needed");
    let mut stdin = oracle.stdin.take().unwrap();
    let answers = std::thread::scope(|scope| {
        scope.spawn(move || {
            for Question {
                expression,
                zone,
                start,
                limit,
            } in questions
            {
                writeln!(stdin, "{expression}\t{zone}\t{start}\t{limit}").unwrap();
            }
        });
        let lines = BufReader::new(oracle.stdout.take().unwrap()).lines();
        lines
            .map(|line| {
                let line = line.unwrap();
                let (answer, offsets) = line.split_once('\t').unwrap();
                (answer.to_owned(), offsets.to_owned())
            })
            .collect::<Vec<_>>()
    });
    assert!(
        oracle.wait().unwrap().success(),
        "the oracle failed; its message is above"
    );
    assert_eq!(answers.len(), questions.len());
    answers
}

/// Our answer in the oracle's form.
fn ours(question: &Question) -> String {
    let Ok(schedule) = Schedule::parse(&question.expression, Some(question.zone)) else {
        return "error".to_owned();
    };
    let start = DateTime::from_timestamp(question.start, 0).unwrap();
    match schedule
        .next_after(start, start)
        .map(|next| next.timestamp())
    {
        None => "never".to_owned(),
        Some(next) if next > question.limit => "later".to_owned(),
        Some(next) => next.to_string(),
    }
}

#[test]
fn random_schedules_agree_with_the_oracle() {
    #[expect(
        clippy::disallowed_methods,
        reason = "the switch between normal and long runs"
    )]
    let long = std::env::var("KUBECTL_BACKUP_LONG").is_ok_and(|value| value == "1");
    let total: usize = if long { 1_000_000 } else { 20_000 };
    let zones = changes();
    let mut random = Random(20_250_115);
    let questions: Vec<Question> = (0..total).map(|_| question(&mut random, &zones)).collect();
    let answers: Vec<(String, String)> = std::thread::scope(|scope| {
        let parts: Vec<_> = questions
            .chunks(total.div_ceil(ORACLES))
            .map(|part| scope.spawn(|| ask(part)))
            .collect();
        parts
            .into_iter()
            .flat_map(|part| part.join().unwrap())
            .collect()
    });
    let (mut different_data, mut refused, mut later, mut near_a_change) = (0, 0, 0, 0);
    let mut differences = Vec::new();
    for (question, (answer, their_offsets)) in questions.iter().zip(&answers) {
        let zone: Tz = question.zone.parse().unwrap();
        let our_offsets = offsets(zone, question.start, question.limit);
        if our_offsets != *their_offsets {
            different_data += 1;
            continue;
        }
        refused += usize::from(answer == "error");
        later += usize::from(answer == "later");
        near_a_change += usize::from(our_offsets.contains(';'));
        let got = ours(question);
        // Beyond the limit the oracle does not look, so it cannot tell never from later.
        let same = got == *answer || (got == "never" && answer == "later");
        if !same {
            let Question {
                expression,
                zone,
                start,
                ..
            } = question;
            differences.push(format!(
                "{expression:?} {zone} {start}: oracle {answer}, ours {got}"
            ));
        }
    }
    println!(
        "{total} cases: {near_a_change} with a zone change, {refused} refused, {later} later than \
         the limit, {different_data} left out because the tz data differ"
    );
    assert!(
        differences.is_empty(),
        "{} of {total}:\n{}",
        differences.len(),
        differences.join("\n")
    );
    assert!(
        different_data * 100 <= total,
        "the system's tz data differ from the compiled ({}) in {different_data} of {total} cases; \
         update the package tzdata",
        crds::schedule::ZONE_DATA_VERSION
    );
    // The cases must be worth asking.
    assert!(near_a_change * 2 > total && refused * 100 > total && later * 2 < total);
}
