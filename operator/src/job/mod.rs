//! The Job of a run or restore. A kind says what its pods are asked for ([`PodOptions`]) and what the
//! runner is told; both become a Job here, and here alone. PURE.

mod parts;
mod pod;
mod run;

pub(crate) use self::parts::{Pairs, Parts};
pub(crate) use self::pod::{PodOptions, STARTUP, work_directory};
pub(crate) use self::run::{
    Run, failure_policy, has_bot, has_client, has_scratch_server, is_slim, needs_client, replays,
    staying,
};
