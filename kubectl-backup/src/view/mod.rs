//! What is shown, as pure functions of what was read and of `now`.

pub(crate) mod advice;
pub(crate) mod calendar;
pub(crate) mod chain;
pub(crate) mod describe;
pub(crate) mod describe_restore;
pub(crate) mod describe_run;
pub(crate) mod duration;
pub(crate) mod events;
pub(crate) mod list;
pub(crate) mod log;
pub(crate) mod output;
pub(crate) mod page;
pub(crate) mod pod;
pub(crate) mod preview;
pub(crate) mod progress;
pub(crate) mod report;
pub(crate) mod retention;
pub(crate) mod runs;
pub(crate) mod settings;
pub(crate) mod stored;
pub(crate) mod table;
pub(crate) mod time;
pub(crate) mod top;
pub(crate) mod verdict;
pub(crate) mod written;
