//! Durations as Go's `time.ParseDuration` reads them.

/// Units with their length in nanoseconds. Both micro signs are known to Go.
const UNITS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

const TOO_LONG: &str = "longer than 292 years";

/// Parses a Go duration such as `1h30m`, `-1.5s` or `0` to nanoseconds.
///
/// # Errors
/// The reason, as a clause for a message.
pub fn parse_go_duration(text: &str) -> Result<i64, &'static str> {
    let (negative, mut rest) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    match rest {
        "0" => return Ok(0),
        "" => return Err("there is no number"),
        _ => {}
    }
    let mut total = 0_u64;
    while !rest.is_empty() {
        let (part, tail) = component(rest)?;
        total = total
            .checked_add(part)
            .filter(|sum| *sum <= 1 << 63)
            .ok_or(TOO_LONG)?;
        rest = tail;
    }
    match (negative, i64::try_from(total)) {
        (true, Ok(nanos)) => Ok(-nanos),
        (true, Err(_)) => Ok(i64::MIN),
        (false, nanos) => nanos.map_err(|_| TOO_LONG),
    }
}

/// One number with its unit at the head of `text`: its nanoseconds and what follows.
fn component(text: &str) -> Result<(u64, &str), &'static str> {
    let (whole, mut rest) = digits(text);
    let mut fraction = "";
    if let Some(tail) = rest.strip_prefix('.') {
        (fraction, rest) = digits(tail);
    }
    if whole.is_empty() && fraction.is_empty() {
        return Err("a number is expected");
    }
    let end = rest
        .find(|c: char| c == '.' || c.is_ascii_digit())
        .unwrap_or(rest.len());
    let (unit, tail) = rest.split_at(end);
    if unit.is_empty() {
        return Err("a unit is missing");
    }
    let (_, nanos) = UNITS
        .iter()
        .find(|(name, _)| *name == unit)
        .ok_or("a unit is unknown")?;
    let whole = if whole.is_empty() {
        Ok(0)
    } else {
        whole.parse::<u64>()
    };
    let whole = whole
        .ok()
        .and_then(|count| count.checked_mul(*nanos))
        .ok_or(TOO_LONG)?;
    Ok((
        whole
            .checked_add(part_of(fraction, *nanos))
            .ok_or(TOO_LONG)?,
        tail,
    ))
}

/// Leading ASCII digits and the rest.
fn digits(text: &str) -> (&str, &str) {
    text.split_at(
        text.find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len()),
    )
}

/// The decimal `fraction` of a unit in nanoseconds, cut. Digits past the 18th are below a
/// nanosecond for every unit.
fn part_of(fraction: &str, unit: u64) -> u64 {
    let mut scale = 1_u128;
    let mut value = 0_u128;
    for digit in fraction.bytes().take(18) {
        value = value * 10 + u128::from(digit - b'0');
        scale *= 10;
    }
    u64::try_from(value * u128::from(unit) / scale).unwrap_or(0)
}
