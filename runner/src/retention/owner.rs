//! Whose an artefact is. Objects of two clusters may have one name and one store.

use crds::run_spec::ObjectId;

use crate::settings::Identity;

/// Whose an artefact is that names an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// This object.
    This,
    /// An object of this name of which nobody can say whether it is this one, or another cluster's.
    Unknown,
    /// Another object, or another cluster's.
    Other,
}

/// Whose it is. Kind, namespace and name must be the same; then a UID decides, which no two objects
/// share, in whatever cluster they are. An object that was deleted and made again has another UID: it
/// goes on with its artefacts where both name the same cluster. Where one of them names none, because the operator may
/// not read the namespace kube-system, nothing tells the two apart.
pub fn owner(cluster: &str, object: &ObjectId, identity: &Identity) -> Owner {
    let this = &identity.object;
    if (&object.kind, &object.namespace, &object.name) != (&this.kind, &this.namespace, &this.name)
    {
        return Owner::Other;
    }
    if object.uid == this.uid && !this.uid.is_empty() {
        return Owner::This;
    }
    match (cluster, identity.cluster_id.as_str()) {
        // Runs outside a cluster have neither.
        ("", "") if object.uid == this.uid => Owner::This,
        ("", _) | (_, "") => Owner::Unknown,
        (a, b) if a == b => Owner::This,
        _ => Owner::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::{DateTime, Utc};
    use crds::run::Trigger;

    fn object(name: &str, uid: &str) -> ObjectId {
        ObjectId {
            kind: "MysqlBackup".into(),
            namespace: "ns".into(),
            name: name.into(),
            uid: uid.into(),
        }
    }

    #[test]
    fn r2_an_empty_cluster_is_nobodys_cluster() {
        let slot: Option<DateTime<Utc>> = None;
        for (cluster, uid, own_cluster, own_uid, expected) in [
            // The same object, whatever is known of the cluster now and was then.
            ("", "u", "", "u", Owner::This),
            ("c", "u", "", "u", Owner::This),
            ("", "u", "c", "u", Owner::This),
            ("d", "u", "c", "u", Owner::This),
            // Deleted and made again.
            ("c", "old", "c", "u", Owner::This),
            ("", "old", "", "u", Owner::Unknown),
            ("c", "old", "", "u", Owner::Unknown),
            ("", "old", "c", "u", Owner::Unknown),
            // Another cluster.
            ("d", "other", "c", "u", Owner::Other),
            // Without an operator.
            ("", "", "", "", Owner::This),
            ("", "old", "", "", Owner::Unknown),
            ("c", "", "", "", Owner::Unknown),
        ] {
            let identity = Identity {
                object: object("a", own_uid),
                run: String::new(),
                slot,
                trigger: Trigger::Schedule,
                cluster_id: own_cluster.into(),
                pod: String::new(),
            };
            let row = (cluster, uid, own_cluster, own_uid);
            assert_eq!(
                owner(cluster, &object("a", uid), &identity),
                expected,
                "{row:?}"
            );
            assert_eq!(
                owner(cluster, &object("b", uid), &identity),
                Owner::Other,
                "{row:?}"
            );
        }
    }
}
