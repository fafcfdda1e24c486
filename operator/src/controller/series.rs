//! The users' objects for /metrics.

use std::sync::{Arc, Weak};

use crds::ScheduleStatus;

use super::shared::Controller;
use crate::digest::Kept;
use crate::guard::caught_now;
use crate::metrics::Task;
use crate::metrics::{Row, Series, Source};

/// Lets /metrics show the controller's objects, as long as it stands.
pub(super) fn publish(controller: &Arc<Controller>) {
    let source: Weak<dyn Source> = Arc::<Controller>::downgrade(controller);
    controller.ctx.metrics.objects.come_from(source);
}

impl Source for Controller {
    fn rows(&self) -> Vec<Row> {
        let now = self.ctx.clock.now();
        let keys = self.store.keys();
        let rows = keys.iter().filter_map(|key| {
            // An object that can't be shown costs its own series, not the scrape of all.
            let row = || {
                let (series, live) = self
                    .store
                    .series(key, |kind, kept| self.series(kind, kept))?;
                Some(Row::new(series, live, now))
            };
            let shown = caught_now(&self.ctx.metrics, Task::Scrape, row);
            shown.unwrap_or_else(|said| {
                tracing::error!(panic = %said, uid = %key, "the series of an object can't be made; it is left out");
                None
            })
        });
        rows.collect()
    }
}

impl Controller {
    fn series(&self, kind: usize, kept: &Kept) -> Series {
        let name = self.resources[kind].kind.clone();
        let object = kept.object.clone().into_object(name);
        let read = self.kinds[kind].read(&object, &kept.spec);
        let settings = read.as_ref().ok().map(|(settings, _)| settings);
        // A status that does not fit its type is told by the condition; its figures are unknown.
        let status: ScheduleStatus =
            serde_json::from_value(kept.status.clone()).unwrap_or_default();
        let refused = crds::condition::get(&status.conditions, crds::condition::ACCEPTED)
            .is_some_and(|c| c.status == "False");
        let accepted = !refused && read.as_ref().is_ok_and(|(_, problems)| problems.is_empty());
        Series::of(&object, &kept.spec, settings, accepted, &status)
    }
}
