//! `describe RUN`: one run, whichever of an object's it is.

use crds::run::{Run, Trigger};
use crds::time::from_k8s;

use super::page::{Inputs, Page, or};
use super::time::zone_or_utc;
use super::{chain, duration, runs};

/// The description of the run of this name. `run` is none where status no longer lists it.
pub(crate) fn describe_run(inputs: &Inputs<'_>, name: &str, run: Option<&Run>) -> String {
    let object = inputs.object;
    let mut page = Page::new(inputs.color);
    page.field("Name", name);
    page.field("Kind", "run (a Job of its object)");
    page.field("Object", &object.kind.short_name(&object.name()));
    page.field("Namespace", &object.namespace());
    match run {
        Some(run) => known(&mut page, inputs, run),
        None => page.field(
            "Status",
            "no longer listed in the status of its object; below is what is left of it",
        ),
    }
    chain::behind(&mut page, inputs, name);
    page.events(&inputs.events, inputs.now);
    page.finish()
}

fn known(page: &mut Page, inputs: &Inputs<'_>, run: &Run) {
    let status = inputs.object.status();
    let schedule = status.schedule.as_ref();
    let zone = zone_or_utc(schedule.map_or("UTC", |s| s.time_zone.as_str()));
    let show = |at: &k8s_openapi::apimachinery::pkg::apis::meta::v1::Time| {
        inputs.zone.show(from_k8s(at), zone)
    };
    page.field("Status", &runs::outcome(run, inputs.now));
    let request = run.request_id.as_ref();
    let request = request.and_then(|id| status.requests.iter().find(|r| &r.id == id));
    let trigger = match (run.trigger, request, &run.slot) {
        (Trigger::Manual, Some(request), _) => {
            let why = crds::secret::mask(&request.reason);
            let why = if why.is_empty() {
                why
            } else {
                format!(": {why:?}")
            };
            format!("Manual, by {}{why}", or(&request.by, "<unknown>"))
        }
        (trigger, _, Some(slot)) => format!("{}, due {}", trigger.as_str(), show(slot)),
        (trigger, _, None) => trigger.as_str().to_owned(),
    };
    page.field("Trigger", &trigger);
    if let Some(at) = &run.start_time {
        page.field("Started", &show(at));
    }
    if let Some(at) = &run.completion_time {
        page.field("Ended", &show(at));
    }
    if let Some(took) = runs::took(run, inputs.now) {
        page.field("Duration", &took);
    }
    if let Some(bytes) = run.raw_bytes {
        let tables = run.tables.zip(run.rows);
        let tables = tables.map(|(tables, rows)| format!(", {tables} tables, {rows} rows"));
        let text = format!("{}{}", duration::bytes(bytes), tables.unwrap_or_default());
        page.field("Dump", &text);
    }
    if let Some(engine) = runs::engine(run, inputs.zone, zone) {
        page.field("Engine", &engine);
    }
    if let Some(size) = runs::size(run) {
        page.field("Stored", &size);
    }
    let mut verified = runs::verified(run).to_owned();
    if let Some(verification) = &run.verification {
        let message = crds::secret::mask(&verification.message);
        verified.push_str(&format!(
            "  {} at {}: {message}",
            verification.mode,
            show(&verification.time)
        ));
    } else if let Some(job) = &run.verify_job {
        verified.push_str(&format!("  a verification is due: job/{job}"));
    }
    page.field("Verified", &verified);
    chain::stored(page, run);
}
