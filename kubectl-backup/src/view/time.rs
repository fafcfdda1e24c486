//! Absolute times: RFC 3339 with offset, never a bare local time.

use chrono::{DateTime, SecondsFormat, Utc};
use chrono_tz::Tz;

/// The zone times are shown in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Zone {
    /// Each in the zone of its schedule.
    #[default]
    Schedule,
    /// UTC.
    Utc,
    /// That of this machine.
    Local,
    /// One the user named.
    Named(Tz),
}

impl Zone {
    /// The instant as text; `schedule` is the zone of the schedule it belongs to.
    pub(crate) fn show(self, at: DateTime<Utc>, schedule: Tz) -> String {
        match self {
            Self::Schedule => crds::time::rfc3339_in(at, schedule),
            Self::Utc => crds::time::rfc3339(at),
            Self::Local => at
                .with_timezone(&chrono::Local)
                .to_rfc3339_opts(SecondsFormat::Secs, true),
            Self::Named(zone) => crds::time::rfc3339_in(at, zone),
        }
    }

    /// The time of day with its offset: `12:00:03Z`, in UTC where no schedule says otherwise.
    pub(crate) fn time_of_day(self, at: DateTime<Utc>) -> String {
        let whole = self.show(at, Tz::UTC);
        whole
            .split_once('T')
            .map_or(whole.clone(), |(_, time)| time.to_owned())
    }
}

/// The zone of a name, UTC if there is none or it is unknown.
pub(crate) fn zone_or_utc(name: &str) -> Tz {
    name.parse().unwrap_or(Tz::UTC)
}
