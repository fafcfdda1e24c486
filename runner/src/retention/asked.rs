//! What somebody asks of retention by a Prune, and what is said of it.

use crate::context::Context;
use crate::retention::{Asked, For, Outcome};
use crate::settings::options::Options;

/// What these options of a Prune ask of retention.
pub fn asked<'a>(options: &Options, rules: &'a crds::parts::Retention) -> Asked<'a> {
    Asked {
        what: if options.all {
            For::Everything
        } else {
            For::Rules
        },
        rules,
        dry_run: options.dry_run,
        prefix: "",
        storage: None,
    }
}

/// The report of a Prune; `{}` of `what` becomes what was done.
pub fn report_pruned(context: &Context, options: &Options, outcome: &Outcome, what: &str) {
    let verb = if options.dry_run {
        "would be removed"
    } else {
        "removed"
    };
    let message = format!(
        "{} of {} {}",
        outcome.gone,
        outcome.of,
        what.replace("{}", verb)
    );
    context.reporter.update(|r| {
        r.message = message;
        r.pruned = Some(if options.dry_run { 0 } else { outcome.gone });
    });
}
