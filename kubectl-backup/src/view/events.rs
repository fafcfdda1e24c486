//! Events of an object, as kubectl describes them.

use chrono::{DateTime, Utc};
use k8s_openapi::api::core::v1::Event;

use super::duration;
use super::table::Table;
use crate::cluster::last_seen;

fn first_seen(event: &Event) -> Option<DateTime<Utc>> {
    event
        .event_time
        .as_ref()
        .map(crds::time::from_micro)
        .or_else(|| event.first_timestamp.as_ref().map(crds::time::from_k8s))
        .or_else(|| last_seen(event))
}

fn count(event: &Event) -> i32 {
    let series = event.series.as_ref().and_then(|s| s.count);
    series.or(event.count).unwrap_or(1)
}

/// `2m (x5 over 10m)`.
pub(crate) fn age(event: &Event, now: DateTime<Utc>) -> String {
    let text = |at: Option<DateTime<Utc>>| {
        at.map_or_else(|| "<unknown>".to_owned(), |at| duration::age(at, now))
    };
    let last = text(last_seen(event));
    match count(event) {
        n if n > 1 => format!("{last} (x{n} over {})", text(first_seen(event))),
        _ => last,
    }
}

/// The table of events, oldest first.
pub(crate) fn table(events: &[Event], now: DateTime<Utc>) -> Table {
    let mut table = Table::new(&["TYPE", "REASON", "AGE", "FROM", "MESSAGE"]);
    for event in events {
        let source = event.source.as_ref().and_then(|s| s.component.clone());
        let from = event
            .reporting_component
            .clone()
            .filter(|c| !c.is_empty())
            .or(source)
            .unwrap_or_default();
        table.push(vec![
            event.type_.clone().unwrap_or_default(),
            event.reason.clone().unwrap_or_default(),
            age(event, now),
            from,
            crds::secret::mask(event.message.as_deref().unwrap_or_default().trim()),
        ]);
    }
    table
}
