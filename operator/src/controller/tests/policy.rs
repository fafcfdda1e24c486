//! What the policy forbids is in no Job, whatever it is for.

use std::sync::Arc;

use chrono::DateTime;
use crds::request::Action;
use crds::run::Trigger;
use kube::core::DynamicObject;
use serde_json::json;

use super::super::Controller;
use super::super::watch::{Feed as _, Objects};
use crate::context::{ApiClient, Clock, Config, Context, Leadership};
use crate::engine::{Object, Seed, reason};
use crate::fake_api::{Server, State};
use crate::metrics::Metrics;
use crate::mysql_backup::MysqlBackups;
use crate::policy::Policy;

/// Why the Job of an object that asks for a privileged container is not made, by action.
fn refused(policy: Policy, action: Action) -> Option<&'static str> {
    let begin = DateTime::UNIX_EPOCH;
    let mut state = State {
        now: begin,
        ..State::default()
    };
    let object = json!({
        "apiVersion": "batch.isekiro.com/v1", "kind": "MysqlBackup", "metadata": {"name": "shop"},
        "spec": {"schedule": "@daily", "securityContext": {"privileged": true}},
    });
    let object = state.put("mysqlbackups", object);
    let controller = Controller::new(
        Context {
            client: ApiClient(Server::of(state).client()),
            leadership: Leadership::always(begin),
            clock: Clock::new(move || begin),
            config: Arc::new(Config {
                policy,
                ..Config::default()
            }),
            metrics: Metrics::default(),
        },
        vec![Box::new(MysqlBackups::new("runner"))],
    );
    let feed = Objects {
        controller: controller.clone(),
        kind: 0,
    };
    let found: DynamicObject = serde_json::from_value(object).unwrap();
    feed.apply(&found);
    let key = controller.queue.try_next().unwrap();
    let view = controller.store.view(&key).unwrap();
    let seed = Seed {
        action,
        ..Seed::new("shop-1", Trigger::Manual)
    };
    let built = controller.build(&view, &Object::default(), &seed);
    built.err().map(|why| why.reason)
}

/// A notice is sent for an object that is not accepted, too: its Job is judged like all others.
#[tokio::test]
async fn h4_no_job_is_planned_that_the_policy_forbids() {
    let policy = Policy {
        forbid_privileged: true,
        ..Policy::default()
    };
    for action in [Action::Backup, Action::Notify, Action::List] {
        assert_eq!(refused(Policy::default(), action), None);
        assert_eq!(refused(policy.clone(), action), Some(reason::POLICY_DENIED));
    }
}
