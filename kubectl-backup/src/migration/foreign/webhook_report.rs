//! What `doctor` says about webhooks of other installations, and which of them `--fix` may take away.

use super::webhooks::{self, Answer, Asks, Webhook};
use crds::verdict::State;

use crate::cluster::Cluster;
use crate::text::sanitise;
use crate::view::report::Report;

/// Looks for webhooks in front of our kinds that are not ours, and says what each does.
/// What could not be listed is added to `hidden`.
pub(crate) async fn examine(
    cluster: &Cluster,
    report: &mut Report,
    hidden: &mut Vec<(&'static str, String)>,
) -> Vec<Webhook> {
    let seen = webhooks::webhooks(cluster).await;
    hidden.extend(seen.hidden);
    for hook in &seen.found {
        let (verdict, what) = judged(hook);
        let of = match hook.asks {
            Asks::Conversion => "the conversion of ",
            Asks::Validating | Asks::Mutating => "",
        };
        report.add(
            verdict,
            format!("webhook: {of}{}, not ours, {what}", name(hook)),
            Some(&remedy(hook)),
        );
    }
    seen.found
}

/// `resource/name`.
pub(crate) fn name(hook: &Webhook) -> String {
    format!("{}/{}", hook.asks.resource(), sanitise(&hook.name))
}

/// Why `--fix` leaves it; nothing if it goes.
pub(crate) fn kept(hook: &Webhook) -> Option<String> {
    if let Some(doubt) = hook.doubt {
        return Some(doubt.to_owned());
    }
    match &hook.answer {
        Answer::Ready(service) => Some(format!("{service} still answers; stop its operator first")),
        Answer::Unknown(at) => Some(format!("whether {at} answers is not known")),
        Answer::NoPod(_) | Answer::NoService(_) => None,
    }
}

fn judged(hook: &Webhook) -> (State, String) {
    let about = sanitise(&hook.about.join(", "));
    let silent = match &hook.answer {
        Answer::Ready(_) | Answer::Unknown(_) => None,
        Answer::NoPod(service) => Some(format!("{service} has no ready pod")),
        Answer::NoService(service) => Some(format!("{service} does not exist")),
    };
    let (Answer::Ready(at) | Answer::NoPod(at) | Answer::NoService(at) | Answer::Unknown(at)) =
        &hook.answer;
    let does = match hook.asks {
        Asks::Validating => format!("judges {about}"),
        Asks::Mutating => format!("changes {about}"),
        Asks::Conversion => "converts between versions".to_owned(),
    };
    match (silent, hook.fails, hook.asks) {
        (Some(why), true, Asks::Conversion) => (
            State::Critical,
            format!("is asked for each version but the stored one, which can't be read: {why}"),
        ),
        (Some(why), true, _) => (
            State::Critical,
            format!("refuses every write of {about}: {why}"),
        ),
        (Some(why), false, Asks::Conversion) => (
            State::Warning,
            format!("is asked once a second version is served: {why}"),
        ),
        (Some(why), false, _) => (
            State::Warning,
            format!("holds up every write of {about} and refuses none: {why}"),
        ),
        (None, _, _) if matches!(hook.answer, Answer::Ready(_)) => {
            (State::Warning, format!("{does}: {at} answers"))
        }
        (None, fails, _) => {
            let then = if fails && hook.asks != Asks::Conversion {
                "; if it does not, every write is refused"
            } else {
                ""
            };
            (
                State::Warning,
                format!("{does}; whether {at} answers is not known{then}"),
            )
        }
    }
}

/// The command that takes it out of the way, and nothing else with it.
fn remedy(hook: &Webhook) -> String {
    let (resource, name) = (hook.asks.resource(), sanitise(&hook.name));
    let command = match hook.asks {
        Asks::Conversion => format!(
            "kubectl patch {resource} {name} --type=merge -p '{{\"spec\":{{\"conversion\":{{\"strategy\":\"None\",\"webhook\":null}}}}}}'"
        ),
        _ if hook.mixed && !hook.among.is_empty() => without(hook),
        _ if hook.mixed => format!("kubectl edit {resource} {name}"),
        _ => format!("kubectl delete {resource} {name}"),
    };
    match kept(hook) {
        None => format!("kubectl backup doctor --fix, or: {command}"),
        Some(_) if hook.doubt.is_some() && matches!(hook.answer, Answer::Ready(_)) => {
            format!("leave it if it is meant to be there, or: {command}")
        }
        Some(_) => command,
    }
}

/// Takes single webhooks out of a configuration that has others too; from the last, so that
/// positions stay, and only if each is still where it was seen.
fn without(hook: &Webhook) -> String {
    let (resource, name) = (hook.asks.resource(), sanitise(&hook.name));
    let steps: Vec<String> = hook
        .among
        .iter()
        .rev()
        .map(|(at, named)| {
            format!(
                "{{\"op\":\"test\",\"path\":\"/webhooks/{at}/name\",\"value\":\"{}\"}},{{\"op\":\"remove\",\"path\":\"/webhooks/{at}\"}}",
                sanitise(named)
            )
        })
        .collect();
    format!(
        "kubectl patch {resource} {name} --type=json -p '[{}]'",
        steps.join(",")
    )
}
