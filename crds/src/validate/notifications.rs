//! Notifications.

use crate::parts::{Notification, NotificationType};

use super::Problem;

/// Every mistake in `spec.notifications`, which two kinds have.
pub fn notifications(all: &[Notification]) -> Vec<Problem> {
    let mut found = vec![];
    for (i, entry) in all.iter().enumerate() {
        let at = format!("spec.notifications[{i}]");
        if entry.contradicts_itself() {
            found.push(Problem::new(
                &at,
                "events and on say different things; on is the former name of events: keep events and remove on",
            ));
        }
        let http = entry.method.is_some() || !entry.headers.is_empty();
        if http && entry.type_ != NotificationType::Webhook {
            found.push(Problem::new(
                &at,
                "method and headers are sent by type Webhook alone: remove them, or set type: Webhook",
            ));
        }
        for (n, header) in entry.headers.iter().enumerate() {
            if let Some(fault) = header.fault() {
                found.push(Problem::new(format!("{at}.headers[{n}]"), fault));
            }
        }
    }
    found
}
