//! Who leads: the pure half of leader election. Every instant is a parameter.
//!
//! A lease is judged by what this process saw change, on its own monotonic clock: the times inside
//! the Lease were written by another machine's wall clock and decide nothing.

use std::time::Duration;

use tokio::time::Instant;

/// How long a lease lasts and how it is kept (client-go's defaults: 15, 10 and 2 s).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// A follower may take a lease that did not change for this long. Whole seconds.
    pub lease: Duration,
    /// A leader that could not renew for this long stops leading. Shorter than `lease`: between
    /// the two nobody leads, and a request already under way can end.
    pub deadline: Duration,
    /// A leader renews this often.
    pub retry: Duration,
    /// A follower looks this often. Shorter than `retry`, because what it sees late it judges late.
    pub look: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(15),
            deadline: Duration::from_secs(10),
            retry: Duration::from_secs(2),
            look: Duration::from_millis(500),
        }
    }
}

/// What a Lease says of its holder. Two equal records are one and the same renewal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Identity of the holder; empty if released.
    pub holder: String,
    /// How long the holder asks others to wait.
    pub lease: Duration,
    /// The holder's own stamp of the renewal, compared but never interpreted.
    pub renewed: String,
    /// Changes of holder so far.
    pub transitions: i32,
}

/// The Lease as last read or written.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    /// What it says; `None` if there is no Lease.
    record: Option<Record>,
    /// When this process first saw this record.
    since: Instant,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Read the Lease.
    Look,
    /// Create the Lease, held by this process.
    Create,
    /// Become the holder in place of another or of nobody, if the Lease is still as seen.
    Take {
        /// Value of `leaseTransitions`.
        transitions: i32,
    },
    /// Stay the holder, if the Lease is still as seen.
    Renew,
    /// Stop leading now.
    StepDown(Loss),
    /// Nothing before this instant.
    Wait(Instant),
}

/// Why leadership ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Loss {
    /// No renewal succeeded within the deadline.
    NotRenewed,
    /// Another process holds the Lease.
    TakenBy(String),
}

/// The state of one candidate.
#[derive(Clone, Debug)]
pub struct Election {
    identity: String,
    timing: Timing,
    seen: Option<Seen>,
    /// When the next request may be sent.
    next: Option<Instant>,
    /// The Lease has to be read before it is written again.
    stale: bool,
    /// Start of the last successful write while leading. The server got it later than this, so a
    /// follower counts from a later instant than the leader does.
    renewed: Option<Instant>,
}

impl Election {
    /// A candidate that has seen nothing yet.
    pub fn new(identity: impl Into<String>, timing: Timing) -> Self {
        Self {
            identity: identity.into(),
            timing,
            seen: None,
            next: None,
            stale: true,
            renewed: None,
        }
    }

    /// Until when this process may act as leader; `None` for a follower.
    pub fn leads_until(&self) -> Option<Instant> {
        self.renewed.map(|at| at + self.timing.deadline)
    }

    /// What to do at `now`.
    pub fn decide(&self, now: Instant) -> Action {
        if let Some(until) = self.leads_until() {
            if now >= until {
                return Action::StepDown(Loss::NotRenewed);
            }
            if let Some(holder) = self.other_holder() {
                return Action::StepDown(Loss::TakenBy(holder.to_owned()));
            }
            return match self.next {
                Some(next) if next > now => Action::Wait(next.min(until)),
                _ if self.stale => Action::Look,
                _ => self.write(),
            };
        }
        let look = self.next.unwrap_or(now);
        let Some(seen) = self.seen.as_ref().filter(|_| !self.stale) else {
            return if look <= now {
                Action::Look
            } else {
                Action::Wait(look)
            };
        };
        match self.free_at(seen) {
            None => self.write(),
            Some(free) if free <= now => self.write(),
            Some(_) if look <= now => Action::Look,
            Some(free) => Action::Wait(free.min(look)),
        }
    }

    /// The Lease was read: `record` is `None` if there is none.
    pub fn looked(&mut self, record: Option<Record>, now: Instant) {
        let since = match &self.seen {
            Some(seen) if seen.record == record => seen.since,
            _ => now,
        };
        self.seen = Some(Seen { record, since });
        self.stale = false;
        let pause = if self.renewed.is_some() {
            Duration::ZERO
        } else {
            self.timing.look
        };
        self.next = Some(now + pause);
    }

    /// A write begun at `started` succeeded.
    pub fn wrote(&mut self, record: Record, started: Instant) {
        self.seen = Some(Seen {
            record: Some(record),
            since: started,
        });
        self.stale = false;
        self.renewed = Some(started);
        self.next = Some(started + self.timing.retry);
    }

    /// A write met a newer version: look before trying again.
    pub fn conflicted(&mut self, now: Instant) {
        self.stale = true;
        self.next = Some(now);
    }

    /// A write failed or was not answered in time. It may have taken effect all the same.
    pub fn write_failed(&mut self, now: Instant) {
        self.stale = true;
        self.next = Some(now + self.timing.retry);
    }

    /// A look failed. What was seen before still counts: a write on it is a compare-and-swap.
    pub fn look_failed(&mut self, now: Instant) {
        self.next = Some(now + self.timing.retry);
    }

    /// When a follower may take the lease if nobody renews it; no look needs to last longer.
    pub fn free_from(&self) -> Option<Instant> {
        let seen = self.seen.as_ref().filter(|_| !self.stale)?;
        self.free_at(seen)
    }

    /// Leadership is given up; what was seen stays.
    pub fn stepped_down(&mut self) {
        self.renewed = None;
        self.stale = true;
    }

    fn other_holder(&self) -> Option<&str> {
        let record = self.seen.as_ref()?.record.as_ref()?;
        (record.holder != self.identity).then_some(record.holder.as_str())
    }

    /// When the lease may be taken; `None` means now, whatever the time.
    fn free_at(&self, seen: &Seen) -> Option<Instant> {
        let record = seen.record.as_ref()?;
        if record.holder.is_empty() || record.holder == self.identity {
            return None;
        }
        Some(seen.since + record.lease)
    }

    fn write(&self) -> Action {
        match self.seen.as_ref().and_then(|seen| seen.record.as_ref()) {
            None => Action::Create,
            Some(record) if record.holder == self.identity => Action::Renew,
            Some(record) => Action::Take {
                transitions: record.transitions.saturating_add(1),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use super::*;

    const S: Duration = Duration::from_secs(1);

    fn record(holder: &str, renewed: &str) -> Record {
        Record {
            holder: holder.into(),
            lease: 15 * S,
            renewed: renewed.into(),
            transitions: 4,
        }
    }

    fn follower(t: Instant, seen: Option<Record>) -> Election {
        let mut election = Election::new("me", Timing::default());
        election.looked(seen, t);
        election
    }

    fn leader(t: Instant) -> Election {
        let mut election = Election::new("me", Timing::default());
        election.wrote(record("me", "1"), t);
        election
    }

    #[test]
    fn a_follower_looks_waits_and_takes() {
        let t = Instant::now();
        let unseen = Election::new("me", Timing::default());
        let held = follower(t, Some(record("other", "1")));
        let mut renewed = held.clone();
        renewed.looked(Some(record("other", "2")), t + 14 * S);
        let mut unchanged = held.clone();
        unchanged.looked(Some(record("other", "1")), t + 14 * S);
        let mut conflicted = held.clone();
        conflicted.conflicted(t + 15 * S);
        let mut failed = held.clone();
        failed.write_failed(t + 15 * S);
        let mut unanswered = held.clone();
        unanswered.look_failed(t + 14 * S);
        let take = Action::Take { transitions: 5 };
        let rows = [
            ("nothing seen", &unseen, 0, Action::Look),
            ("no lease", &follower(t, None), 0, Action::Create),
            (
                "released",
                &follower(t, Some(record("", "1"))),
                0,
                take.clone(),
            ),
            (
                "my own from before a restart",
                &follower(t, Some(record("me", "1"))),
                0,
                Action::Renew,
            ),
            ("held, just seen", &held, 0, Action::Wait(t + S / 2)),
            ("held, time to look", &held, 1, Action::Look),
            ("held, expired", &held, 15, take.clone()),
            ("renewed at 14", &renewed, 15, Action::Look),
            ("renewed at 14, later", &renewed, 29, take.clone()),
            (
                "seen again at 14",
                &unchanged,
                14,
                Action::Wait(t + 29 * S / 2),
            ),
            ("seen again at 14, expired", &unchanged, 15, take.clone()),
            ("conflict", &conflicted, 15, Action::Look),
            ("look failed", &unanswered, 14, Action::Wait(t + 15 * S)),
            ("look failed, expired", &unanswered, 15, take),
            ("failure", &failed, 15, Action::Wait(t + 17 * S)),
            ("failure, later", &failed, 17, Action::Look),
        ];
        for (what, election, at, action) in rows {
            assert_eq!(election.decide(t + at * S), action, "{what}");
            assert_eq!(election.leads_until(), None, "{what}");
        }
    }

    #[test]
    fn a_leader_renews_and_steps_down() {
        let t = Instant::now();
        let good = leader(t);
        assert_eq!(good.leads_until(), Some(t + 10 * S));
        let mut failed = good.clone();
        failed.write_failed(t + 2 * S);
        let mut late = good.clone();
        late.write_failed(t + 9 * S);
        let mut taken = good.clone();
        taken.conflicted(t + 2 * S);
        taken.looked(Some(record("other", "9")), t + 2 * S);
        let mut touched = good.clone();
        touched.conflicted(t + 2 * S);
        let mut kept = touched.clone();
        kept.looked(Some(record("me", "1")), t + 2 * S);
        let rows = [
            ("just renewed", &good, 0, Action::Wait(t + 2 * S)),
            ("time to renew", &good, 2, Action::Renew),
            (
                "past the deadline",
                &good,
                10,
                Action::StepDown(Loss::NotRenewed),
            ),
            ("failed", &failed, 2, Action::Wait(t + 4 * S)),
            ("failed, again", &failed, 4, Action::Look),
            (
                "never past the deadline",
                &late,
                9,
                Action::Wait(t + 10 * S),
            ),
            (
                "taken",
                &taken,
                2,
                Action::StepDown(Loss::TakenBy("other".into())),
            ),
            ("conflict", &touched, 2, Action::Look),
            ("conflict, still mine", &kept, 2, Action::Renew),
        ];
        for (what, election, at, action) in rows {
            assert_eq!(election.decide(t + at * S), action, "{what}");
        }
    }
}
