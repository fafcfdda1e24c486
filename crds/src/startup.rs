//! Why the container of a pod does not run yet, in words: one rule for the operator, which writes it into
//! status, and the plugin, which waits beside the pod.

/// True for a pod's reason that says no more than that it is on its way; what keeps it, if something
/// does, stands in its events.
#[must_use]
pub fn is_on_its_way(reason: &str) -> bool {
    matches!(reason, "" | "ContainerCreating" | "PodInitializing")
}

/// What to do, where the words of API server, scheduler and kubelet do not say it. Empty, or text that
/// goes on behind them.
#[must_use]
pub fn remedy(message: &str) -> &'static str {
    let has = |text: &str| message.contains(text);
    if has("must specify limits") || has("must specify requests") || has("failed quota") {
        "; set resources (requests and limits) in the object, or a LimitRange with defaults in the namespace"
    } else if has("exceeded quota") {
        "; ask for less in resources, or raise the quota of the namespace"
    } else if has("violates PodSecurity") {
        "; change podSecurityContext, securityContext or volumes of the object to what the namespace admits"
    } else if has("per Container is") || has("per Pod is") {
        "; change resources in the object to what the namespace's LimitRange admits"
    } else {
        ""
    }
}
