//! Conditions with a deadline.

use std::time::{Duration, Instant};

/// Asks `probe` until it gives a value; fails the test after `seconds`.
pub fn wait_for<T>(what: &str, seconds: u64, mut probe: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(seconds);
    loop {
        if let Some(value) = probe() {
            return value;
        }
        assert!(Instant::now() < deadline, "not within {seconds} s: {what}");
        pause(Duration::from_millis(150));
    }
}

/// Asks `probe` until it is true; fails the test after `seconds`.
pub fn eventually(what: &str, seconds: u64, mut probe: impl FnMut() -> bool) {
    wait_for(what, seconds, || probe().then_some(()));
}

/// The wall clock, in seconds since the epoch.
pub fn unix_seconds() -> i64 {
    chrono::Utc::now().timestamp()
}

/// The second of the current minute on the wall clock.
pub fn second_of_minute() -> u64 {
    unix_seconds().rem_euclid(60).unsigned_abs()
}

/// Waits for second `second` of a minute, less than a minute away; on a busy machine it may be
/// seen late.
pub fn until_second(second: u64) {
    let away = (60 + second - second_of_minute()) % 60;
    let then = unix_seconds().saturating_add_unsigned(away);
    eventually("the second of the minute", 120, || unix_seconds() >= then);
}

fn pause(duration: Duration) {
    std::thread::park_timeout(duration);
}
