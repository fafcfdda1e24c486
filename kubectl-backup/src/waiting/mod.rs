//! Staying with a run, a restore or a request until it has ended.

pub(crate) mod log_stream;
pub(crate) mod request;
pub(crate) mod restore;
pub(crate) mod run;
pub(crate) mod tail;
